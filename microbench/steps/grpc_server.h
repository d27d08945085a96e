// A parameter server: holds parts of a network's parameters, takes the gradients that workers push,
// updates the parameters, and lets workers pull them.
//
// A worker pulls a part of its step i once every worker has pushed its step i - s: s = 0 where one
// update is of all workers' gradients, the bound of staleness where each push is an update, and at
// once without a bound. Pushed is all of a step, on all servers; where parts are pulled as soon as
// they have been pushed, it is that part. A worker that has left is not waited for.
#ifndef STEPCAST_MICROBENCH_STEPS_GRPC_SERVER_H_
#define STEPCAST_MICROBENCH_STEPS_GRPC_SERVER_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "microbench/network/socket.h"
#include "microbench/steps/grpc_message.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {

// Each update takes this times the mean gradient off the parameters, which begin as noughts.
inline constexpr float kLearningRate = 1;

class ParameterServer : public grpc::CallbackGenericService {
 public:
  // The server of that number, at a port of its own of this address. Throws NetworkError where it
  // cannot listen. `work` outlives it.
  ParameterServer(const Work& work, int server, const network::Address& address);
  ~ParameterServer() override;
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  int port() const { return port_; }
  // Until all workers have left, or it is too late: then throws NetworkError.
  void WaitForAllToLeave(const network::Deadline& deadline);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  class Stream;
  struct Waiting {
    Stream* stream = nullptr;
    std::int32_t part = 0;
    std::int64_t step = 0;
    network::Clock::time_point since;
  };
  struct StoredPart {
    std::mutex mutex;
    std::vector<float> parameters;
    std::vector<float> sum;            // of gradients, where one update is of all workers
    std::vector<std::int64_t> pushes;  // of each worker
    std::int64_t versions = 0;
    std::int64_t last_step = 0;  // no worker needs a later one
    double update_s = 0;         // of the last update
    std::vector<Waiting> waiting;
  };

  // These return what is wrong with a call, empty where nothing is.
  std::string Take(Stream* stream, const Received<ServerCall>& call);
  std::string Push(Stream* stream, const Received<ServerCall>& call, StoredPart* part);
  std::string Pull(Stream* stream, const ServerCall& asked, StoredPart* part);
  // All of a worker's steps up to so many have been pushed.
  void TakeProgress(int worker, std::int64_t steps);
  // Whether a worker may pull what it has pushed in this step.
  bool MayPull(const StoredPart& part, std::int64_t step) const;
  // The workers that wait for a part and may go on now.
  std::vector<Waiting> Release(StoredPart* part) const;
  static void Answer(StoredPart* part, const std::vector<Waiting>& released);
  // What a worker is sent that pulls for this step.
  static void Fill(StoredPart& part, std::int64_t step, ServerAnswer* answer,
                   std::vector<float>* parameters);
  // Nobody waits for its answers any more. How many there would have been.
  int Forget(Stream* stream);

  const Work& work_;
  const Servers& servers_;
  // By the training's parts; none of those that others hold.
  std::vector<std::unique_ptr<StoredPart>> parts_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable progressed_;
  std::vector<std::int64_t> pushed_;  // steps of each worker
  std::atomic<std::int64_t> pushed_by_all_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_GRPC_SERVER_H_
