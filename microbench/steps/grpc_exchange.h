// A worker's end of parameter servers: pushes what each holds of a bucket as soon as the bucket is
// ready, and pulls it again.
#ifndef STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_
#define STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
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
  ServerExchange(const ServerExchange&) = delete;
  ServerExchange& operator=(const ServerExchange&) = delete;

  // These throw NetworkError where a server fails, or holds other parameters than it should.
  void Send(std::size_t k, bool out_of_time, Timing* timing) override;
  void Finish(Timing* timing) override;
  bool Over() const override { return over_; }
  // Nobody waits for this worker any more.
  void Leave();

 private:
  using Interval = std::pair<network::Clock::time_point, network::Clock::time_point>;
  class Lane;
  struct PartState {
    std::vector<float> gradients;
    std::vector<float> parameters;
    std::int64_t version = 0;  // of the parameters
    // What was timed in this step.
    Interval push;
    Interval pull;  // without the wait for others
    double held_s = 0;
    double update_s = 0;
    std::int64_t staleness = 0;
  };

  ServerCall CallOf(CallKind kind, std::size_t part) const;
  std::size_t ServerOf(std::size_t part) const {
    return static_cast<std::size_t>(servers_.parts[part].server);
  }
  void Pull(std::size_t part);
  // Take an answer, in a thread of the library. Throw NetworkError where it cannot be.
  void Take(const Received<ServerAnswer>& answer);
  void TakePushed(std::size_t part, const ServerAnswer& told);
  void TakePulled(std::size_t part, const Received<ServerAnswer>& answer);
  // So many answers are due, or not any more.
  void Expect(int answers);
  void Fail(std::size_t server, const std::string& problem);
  // Until no answer is due; throws NetworkError where something went wrong meanwhile.
  void Wait();

  const Work& work_;
  const Servers& servers_;
  std::vector<PartState> parts_;  // by the training's parts
  std::int64_t step_ = 0;
  std::size_t next_ = 0;  // the first part of the bucket that comes next
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable answered_;
  int due_ = 0;  // answers
  std::string problem_;
  // By server. These end before all that they tell of.
  std::vector<std::unique_ptr<Lane>> pushing_;
  std::vector<std::unique_ptr<Lane>> pulling_;
};

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_GRPC_EXCHANGE_H_
