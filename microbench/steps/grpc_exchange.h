// A worker's end of parameter servers: pushes what each holds of a bucket as soon as the bucket is
// ready, and pulls it again.
#ifndef STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_
#define STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_

#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "microbench/network/socket.h"
#include "microbench/steps/grpc_message.h"
#include "microbench/steps/program.h"

namespace stepcast::steps {

class ServerExchange : public Exchange {
 public:
  // `servers` are their addresses, with ports. Throws NetworkError where one cannot be reached in
  // time. `work` outlives it.
  ServerExchange(const Work& work, const std::vector<network::Address>& servers);
  ~ServerExchange() override;

  // These throw NetworkError where a server fails, or holds other parameters than it should.
  void Send(std::size_t k, bool out_of_time, Timing* timing) override;
  void Finish(Timing* timing) override;
  bool Over() const override { return over_; }
  // Nobody waits for this worker any more.
  void Leave();

 private:
  using Interval = std::pair<network::Clock::time_point, network::Clock::time_point>;
  struct Message;
  struct HeldPart {
    std::vector<float> gradients;
    std::vector<float> parameters;
    std::int64_t version = 0;  // of the parameters
    // Of this step.
    Interval push;
    Interval pull;  // without the wait for others
    double held_s = 0;
    double update_s = 0;
    std::int64_t staleness = 0;
  };

  // Sends a message, which `take` gets with its answer, in a thread of the library.
  void Say(std::size_t server, const char* method, const ServerCall& call,
           std::span<const float> numbers,
           std::function<void(const Message& sent, const Received<ServerAnswer>& answer)> take);
  void Push(std::size_t part, bool out_of_time);
  void Pull(std::size_t part);
  // Until no message is on its way.
  void Wait();

  const Work& work_;
  const Servers& servers_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;  // by server
  std::vector<HeldPart> parts_;                            // by the training's parts
  ServerCall call_;                                        // who calls
  std::int64_t step_ = 0;
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::size_t under_way_ = 0;
  std::size_t next_ = 0;  // the first part of the bucket that comes next
  std::string problem_;
};

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_
