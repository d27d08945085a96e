// The module stepcast-grpc.so.
#include "predictor/serve/rpc_server.h"

extern "C" __attribute__((visibility("default"))) const char* StepcastRpcVersion() {
  return stepcast::serve::kRpcVersion;
}

extern "C" __attribute__((visibility("default"))) stepcast::serve::RpcServer*
StepcastStartRpcServer(stepcast::serve::Service* service, stepcast::serve::Metrics* metrics,
                       stepcast::serve::WorkPool* pool,
                       const stepcast::serve::RpcOptions& options) {
  return stepcast::serve::StartRpcServer(service, metrics, pool, options).release();
}
