// Calls of gRPC, one after another (parts.h): the method in a line, and the request behind it.
#include <grpcpp/grpcpp.h>
#include <stepcast.grpc.pb.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>

#include "predictor/serve/rpc_server.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/parts.h"
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

Running& TheServer() {
  static Running& running = *new Running;  // to the end, whose order it is not to know
  return running;
}

template <class Request, class Reply>
Reply Call(const std::string& input,
           grpc::Status (Stepcast::Stub::*method)(grpc::ClientContext*, const Request&, Reply*)) {
  Request request;
  const std::string bytes = MessageBytes(input, &request);
  if (!request.ParseFromString(bytes)) throw InputError({}, "", "is no message");
  grpc::ClientContext context;
  Reply reply;
  const grpc::Status status = (TheServer().stub.get()->*method)(&context, request, &reply);
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) {
    throw InputError({}, "", status.error_message());
  }
  Require(status.ok(), std::to_string(status.error_code()) + " " + status.error_message());
  return reply;
}

void RequireCall(const std::string& input) {
  const auto [method, text] = SplitHead(input);
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
  } else if (method == "Observe") {
    const auto reply = Call(text, &Stepcast::Stub::Observe);
    Require(reply.predicted_s_size() == reply.surprise_size(), "a step is lost");
    for (const double step : reply.predicted_s()) {
      Require(std::isfinite(step) && step > 0, "a step of " + std::to_string(step) + " s");
    }
    for (const double surprise : reply.surprise()) {
      Require(std::isfinite(surprise), "a surprise that is no number");
    }
  } else if (method == "EndJob") {
    Call(text, &Stepcast::Stub::EndJob);
  } else if (method == "ListJobs") {
    Call(text, &Stepcast::Stub::ListJobs);
  } else {
    throw InputError({}, method, "is no method");
  }
}

STEPCAST_DOOR(rpc) {
  // So that an input is answered the same whatever came before it.
  const auto forget = [](const void* /*none*/) {
    serve::Jobs& jobs = TheServer().service.jobs();
    for (const serve::JobTold& job : jobs.List()) jobs.End(job.job, true);
  };
  const std::unique_ptr<const std::string, decltype(forget)> at_end(&input, forget);
  for (const std::string& part : PartsOf(input)) RequireCall(part);
}

}  // namespace
}  // namespace stepcast::fuzz
