#include <fmt/format.h>
#include <google/protobuf/reflection.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <stepcast.grpc.pb.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "data/record/input_error.h"
#include "predictor/serve/rpc_server.h"

namespace stepcast::serve {
namespace {

using google::protobuf::FieldDescriptor;

// The plan's fields are called as its columns.
PlanText TextOf(const v1::Plan& plan) {
  return [&plan](const char* column, bool /*is_number*/) -> std::optional<std::string> {
    const FieldDescriptor* field = plan.GetDescriptor()->FindFieldByName(column);
    const google::protobuf::Reflection& values = *plan.GetReflection();
    if (field == nullptr || !values.HasField(plan, field)) return std::nullopt;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return std::to_string(values.GetInt32(plan, field));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return fmt::format("{}", values.GetDouble(plan, field));
      case FieldDescriptor::CPPTYPE_BOOL:
        return values.GetBool(plan, field) ? "yes" : "no";
      default:
        return values.GetString(plan, field);
    }
  };
}

// And so are the columns of queries.
QueryColumns ColumnsOf(const v1::Queries& queries, const std::string& prefix, std::size_t most) {
  QueryColumns columns;
  const google::protobuf::Descriptor& fields = *queries.GetDescriptor();
  const google::protobuf::Reflection& values = *queries.GetReflection();
  for (std::size_t i = 0; i < kCountColumns.size(); ++i) {
    const auto column = values.GetRepeatedFieldRef<std::int32_t>(
        queries, fields.FindFieldByName(kCountColumns[i].name));
    columns.counts[i].assign(column.begin(), column.end());
  }
  for (std::size_t i = 0; i < kNumberColumns.size(); ++i) {
    const auto column =
        values.GetRepeatedFieldRef<double>(queries, fields.FindFieldByName(kNumberColumns[i].name));
    columns.numbers[i].assign(column.begin(), column.end());
  }
  CheckColumns(prefix, most, &columns);
  return columns;
}

TargetName NameOf(const v1::Target& target) {
  return {target.cluster(), target.workload(), target.device()};
}

BatchSearch SearchOf(const v1::Search& stated) {
  BatchSearch search;
  if (stated.has_least_global_batch()) search.least_global_batch = stated.least_global_batch();
  search.most_global_batch = stated.most_global_batch();
  if (stated.has_least_local_batch()) search.least_local_batch = stated.least_local_batch();
  if (stated.has_most_local_batch()) search.most_local_batch = stated.most_local_batch();
  if (stated.has_accumulate()) search.accumulate = stated.accumulate();
  if (stated.has_candidates()) search.candidates = stated.candidates();
  if (stated.has_noise_scale()) search.noise_scale = stated.noise_scale();
  if (stated.has_initial_batch()) search.initial_batch = stated.initial_batch();
  return search;
}

void SetReply(const Prediction& p, const Target& target, v1::PredictReply* reply) {
  reply->set_step_time_s(p.step_time.in(kSeconds));
  reply->set_low_s(p.low.in(kSeconds));
  reply->set_high_s(p.high.in(kSeconds));
  reply->set_throughput_samples_per_s(p.throughput.in(kSamplesPerSecond));
  v1::Breakdown* breakdown = reply->mutable_breakdown();
  breakdown->set_forward_s(p.breakdown.forward.in(kSeconds));
  breakdown->set_backward_s(p.breakdown.backward.in(kSeconds));
  breakdown->set_update_s(p.breakdown.update.in(kSeconds));
  breakdown->set_exposed_transfer_s(p.breakdown.exposed_transfer.in(kSeconds));
  breakdown->set_exposed_latency_s(p.breakdown.exposed_latency.in(kSeconds));
  breakdown->set_straggler_wait_s(p.breakdown.straggler_wait.in(kSeconds));
  v1::Traffic* traffic = reply->mutable_traffic();
  traffic->set_gradient_bytes(target.predictor.workload().gradient_bytes.in(kBytes));
  traffic->set_transfers(p.traffic.transfers);
  traffic->set_buckets(p.buckets);
  traffic->set_bytes_per_worker(p.traffic.per_worker.in(kBytes));
  if (p.traffic.per_server) traffic->set_bytes_per_server(p.traffic.per_server->in(kBytes));
  traffic->set_bytes_total(p.traffic.total.in(kBytes));
  v1::Memory* memory = reply->mutable_memory();
  memory->set_total_bytes(p.memory.total.in(kBytes));
  if (p.memory.available) memory->set_available_bytes(p.memory.available->in(kBytes));
  memory->set_verdict(kMemoryVerdictNames[static_cast<int>(p.memory.verdict)]);
  reply->set_algorithm(StrategyName(p.algorithm));
  reply->set_compute_source(kComputeSourceNames[static_cast<int>(p.compute_source)]);
  for (const std::string& flag : p.flags) reply->add_flags(flag);
}

const char* CodeText(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "OK";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    default:
      return "INTERNAL";
  }
}

class StepcastRpc final : public v1::Stepcast::CallbackService {
 public:
  StepcastRpc(serve::Service* service, Metrics* metrics, WorkPool* pool)
      : service_(*service), metrics_(*metrics), pool_(*pool) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const v1::PredictRequest* request,
                                    v1::PredictReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(Answer("grpc/Predict", std::chrono::steady_clock::now(), [&] {
      const std::shared_ptr<const Snapshot> snapshot = service_.Current();
      const std::shared_ptr<const Target> target = snapshot->Find(NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster());
      reply->set_snapshot(snapshot->number());
      SetReply(target->predictor.Predict(plan), *target, reply);
      ++metrics_.plans;
    }));
    return reactor;
  }

  grpc::ServerUnaryReactor* PredictBatch(grpc::CallbackServerContext* context,
                                         const v1::PredictBatchRequest* request,
                                         v1::PredictBatchReply* reply) override {
    return AnswerLater(context, "grpc/PredictBatch", [this, request, reply] {
      QueryColumns queries = ColumnsOf(request->queries(), "queries.", most_plans());
      const std::shared_ptr<const Snapshot> snapshot = service_.Current();
      const std::shared_ptr<const Target> target = snapshot->Find(NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster(),
                                 {queries.Has(kLocalBatch), queries.Has(kServers)});
      const ForecastColumns forecasts =
          PredictMany(*snapshot, *target, plan, !request->step_time_alone(), &queries);
      reply->set_snapshot(snapshot->number());
      const auto set = [](const std::vector<double>& column, auto* field) {
        field->Add(column.begin(), column.end());
      };
      set(forecasts.step_time_s, reply->mutable_step_time_s());
      set(forecasts.low_s, reply->mutable_low_s());
      set(forecasts.high_s, reply->mutable_high_s());
      reply->set_failed(static_cast<std::int64_t>(forecasts.failed));
      if (forecasts.failed > 0) {
        for (const QueryStatus status : forecasts.status) {
          reply->add_status(static_cast<v1::QueryStatus>(status));
        }
      }
      metrics_.plans += static_cast<std::int64_t>(queries.size);
    });
  }

  grpc::ServerUnaryReactor* Recommend(grpc::CallbackServerContext* context,
                                      const v1::RecommendRequest* request,
                                      v1::RecommendReply* reply) override {
    return AnswerLater(context, "grpc/Recommend", [this, request, reply] {
      QueryColumns allocations = ColumnsOf(request->allocations(), "allocations.", most_plans());
      const BatchSearch search = SearchOf(request->search());
      CheckSearch(search, allocations.size, most_plans());
      const std::shared_ptr<const Snapshot> snapshot = service_.Current();
      const std::shared_ptr<const Target> target = snapshot->Find(NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster(),
                                 {true, allocations.Has(kServers)});
      reply->set_snapshot(snapshot->number());
      for (const BatchChoice& choice :
           serve::Recommend(*snapshot, *target, plan, search, &allocations)) {
        reply->add_local_batch(choice.local_batch);
        reply->add_accumulation_steps(choice.accumulation_steps);
        reply->add_step_time_s(choice.step_time_s);
        reply->add_throughput_samples_per_s(choice.throughput);
        reply->add_efficiency(choice.efficiency);
        reply->add_goodput_samples_per_s(choice.goodput);
        if (choice.local_batch == 0) reply->set_failed(reply->failed() + 1);
      }
      metrics_.plans += static_cast<std::int64_t>(allocations.size) * search.candidates;
    });
  }

 private:
  std::size_t most_plans() const { return service_.options().most_plans; }

  template <class F>
  grpc::Status Answer(const char* name, std::chrono::steady_clock::time_point begun,
                      const F& answer) {
    grpc::Status status;
    try {
      answer();
    } catch (const InputError& e) {
      status = {grpc::StatusCode::INVALID_ARGUMENT, InRequestTerms(e).what()};
    } catch (const std::bad_alloc&) {
      status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "there is no memory for this request now"};
    } catch (const std::exception& e) {
      status = {grpc::StatusCode::INTERNAL, e.what()};
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
    metrics_.Answered(name, CodeText(status.error_code()), seconds.count());
    return status;
  }

  // By the pool.
  template <class F>
  grpc::ServerUnaryReactor* AnswerLater(grpc::CallbackServerContext* context, const char* name,
                                        F answer) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    ++metrics_.in_flight;
    const auto begun = std::chrono::steady_clock::now();
    const bool posted = pool_.Post([=, this, answer = std::move(answer)] {
      // Nobody wants the answer once the client has left or the server stops.
      const grpc::Status status = context->IsCancelled()
                                      ? grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")
                                      : Answer(name, begun, answer);
      --metrics_.in_flight;
      reactor->Finish(status);
    });
    if (!posted) {
      --metrics_.in_flight;
      metrics_.Answered(name, CodeText(grpc::StatusCode::RESOURCE_EXHAUSTED), 0);
      reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "too many requests wait for an answer; try again later"});
    }
    return reactor;
  }

  serve::Service& service_;
  Metrics& metrics_;
  WorkPool& pool_;
};

class GrpcServer final : public RpcServer {
 public:
  GrpcServer(Service* service, Metrics* metrics, WorkPool* pool, const RpcOptions& options)
      : rpc_(service, metrics, pool) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    // Two servers on one port would share its clients unnoticed.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    constexpr int kMostStreams = 1000;  // of one connection
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
    constexpr int kHandshakeMilliseconds = 5000;
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
    builder.SetMaxReceiveMessageSize(options.most_message);
    builder.SetMaxSendMessageSize(-1);
    // A bound on messages that are being received. Less than some megabytes chokes gRPC itself.
    constexpr std::size_t kMessagesAtOnce = 8;
    constexpr std::size_t kLeastQuota = std::size_t{64} << 20;
    grpc::ResourceQuota quota("stepcast");
    quota.Resize(
        std::max(kLeastQuota, kMessagesAtOnce * static_cast<std::size_t>(options.most_message)));
    builder.SetResourceQuota(quota);
    const std::string address = options.address.text();
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&rpc_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      throw InputError({"", 0, "--grpc"}, address, "cannot be listened on",
                       "an address of this machine and a port that is free");
    }
  }

  std::uint16_t port() const override { return static_cast<std::uint16_t>(port_); }

  void Stop(std::chrono::milliseconds patience) override {
    server_->GetHealthCheckService()->SetServingStatus(false);
    server_->Shutdown(std::chrono::system_clock::now() + patience);
  }

 private:
  StepcastRpc rpc_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;  // before rpc_ ends
};

}  // namespace

std::unique_ptr<RpcServer> StartRpcServer(Service* service, Metrics* metrics, WorkPool* pool,
                                          const RpcOptions& options) {
  return std::make_unique<GrpcServer>(service, metrics, pool, options);
}

}  // namespace stepcast::serve
