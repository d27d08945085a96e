// gRPC as a module, stepcast-grpc.so: loaded where it is asked for, so that who does without it
// need not have its libraries.
#ifndef STEPCAST_PREDICTOR_SERVE_RPC_SERVER_H_
#define STEPCAST_PREDICTOR_SERVE_RPC_SERVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "predictor/serve/address.h"
#include "predictor/serve/metrics.h"
#include "predictor/serve/service.h"
#include "predictor/serve/work_pool.h"

namespace stepcast::serve {

struct RpcOptions {
  Address address;
  int most_message = 64 << 20;  // [B]
};

class RpcServer {
 public:
  RpcServer() = default;
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;
  virtual ~RpcServer() = default;

  virtual std::uint16_t port() const = 0;
  // What the health service says from now on; at first whether the service was ready.
  virtual void SetServing(bool serving) = 0;
  // Takes no new calls, and returns when all are answered or cut off after `patience`.
  virtual void Stop(std::chrono::milliseconds patience) = 0;
};

// Listens and serves (predictor/serve/stepcast.proto). All that is referred to outlives the server.
// Throws InputError where the address cannot be listened on.
std::unique_ptr<RpcServer> StartRpcServer(Service* service, Metrics* metrics, WorkPool* pool,
                                          const RpcOptions& options);

// Functions of the module under the names kStartRpcServer and kTellRpcVersion. The caller owns the
// server.
using StartRpcServerFunction = RpcServer*(Service* service, Metrics* metrics, WorkPool* pool,
                                          const RpcOptions& options);
inline constexpr const char* kStartRpcServer = "StepcastStartRpcServer";
using RpcVersionFunction = const char*();
inline constexpr const char* kTellRpcVersion = "StepcastRpcVersion";
// Program and module share the layout of all that these functions are given: they are of one build.
inline constexpr const char* kRpcVersion = STEPCAST_BUILD;

// Loads stepcast-grpc.so from the first of `folders` that has it and starts the server. Throws
// InputError where none has it, or one of another build, and as StartRpcServer does.
std::unique_ptr<RpcServer> LoadRpcServer(const std::vector<std::string>& folders, Service* service,
                                         Metrics* metrics, WorkPool* pool,
                                         const RpcOptions& options);

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_RPC_SERVER_H_
