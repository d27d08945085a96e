// Calls of gRPC: the method in a line, and the request behind it.
#include <grpcpp/grpcpp.h>
#include <stepcast.grpc.pb.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>

#include "predictor/serve/rpc_server.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/message.h"
#include "tests/serve/support.h"

namespace stepcast::fuzz {
namespace {

using v1::Stepcast;

struct Running : serve::TestService {
  serve::WorkPool pool{1, 64};
  std::unique_ptr<serve::RpcServer> server =
      serve::StartRpcServer(&service, &metrics, &pool, serve::RpcOptions());
  std::unique_ptr<Stepcast::Stub> stub = Stepcast::NewStub(grpc::CreateChannel(
      serve::Address{"127.0.0.1", server->port()}.text(), grpc::InsecureChannelCredentials()));
};

template <class Request, class Reply>
Reply Call(const std::string& input,
           grpc::Status (Stepcast::Stub::*method)(grpc::ClientContext*, const Request&, Reply*)) {
  static const Running& running = *new Running;  // to the end, whose order it is not to know
  Request request;
  const std::string bytes = MessageBytes(input, &request);
  if (!request.ParseFromString(bytes)) throw InputError({}, "", "is no message");
  grpc::ClientContext context;
  Reply reply;
  const grpc::Status status = (running.stub.get()->*method)(&context, request, &reply);
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) {
    throw InputError({}, "", status.error_message());
  }
  Require(status.ok(), std::to_string(status.error_code()) + " " + status.error_message());
  return reply;
}

STEPCAST_DOOR(rpc) {
  const std::string method = input.substr(0, input.find('\n'));
  const std::string text = input.substr(std::min(method.size() + 1, input.size()));
  if (method == "Predict") {
    const double step = Call(text, &Stepcast::Stub::Predict).step_time_s();
    Require(std::isfinite(step) && step > 0, "a step of " + std::to_string(step) + " s");
  } else if (method == "PredictBatch") {
    const auto reply = Call(text, &Stepcast::Stub::PredictBatch);
    int failed = 0;
    for (const double step : reply.step_time_s()) failed += std::isfinite(step) ? 0 : 1;
    Require(failed == reply.failed(), std::to_string(failed) + " steps are none");
  } else if (method == "Recommend") {
    const auto reply = Call(text, &Stepcast::Stub::Recommend);
    int failed = 0;
    for (const int batch : reply.local_batch()) failed += batch > 0 ? 0 : 1;
    Require(failed == reply.failed(), std::to_string(failed) + " batches are none");
  } else {
    throw InputError({}, method, "is no method");
  }
}

}  // namespace
}  // namespace stepcast::fuzz
