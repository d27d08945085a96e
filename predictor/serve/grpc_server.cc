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
#include <string>
#include <utility>
#include <vector>

#include "data/record/input_error.h"
#include "data/values/training_facts.h"
#include "predictor/prediction_fields.h"
#include "predictor/serve/rpc_server.h"

namespace stepcast::serve {
namespace {

using google::protobuf::FieldDescriptor;

// The plan's fields are called as its columns.
PlanText TextOf(const v1::Plan& plan) {
  return [&plan](const char* column, bool /*is_number*/) -> std::optional<std::string> {
    const FieldDescriptor* field = v1::Plan::GetDescriptor()->FindFieldByName(column);
    const google::protobuf::Reflection& values = *v1::Plan::GetReflection();
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

// The fields of queries are called as their columns.
QueryColumns ColumnsOf(const v1::Queries& queries, const std::string& prefix, std::size_t most) {
  QueryColumns columns;
  const google::protobuf::Descriptor& fields = *v1::Queries::GetDescriptor();
  const google::protobuf::Reflection& values = *v1::Queries::GetReflection();
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
  TargetName name = {target.cluster(), target.workload(), target.device(), target.job()};
  // Called as in files.
  for (const TrainingFact& fact : TrainingFacts()) {
    const FieldDescriptor* field = v1::Target::GetDescriptor()->FindFieldByName(fact.key);
    std::string word = v1::Target::GetReflection()->GetString(target, field);
    if (!word.empty()) name.training[fact.key] = std::move(word);
  }
  if (target.has_parameters()) name.parameters = target.parameters();
  return name;
}

BatchSearch SearchOf(const v1::Search& stated) {
  BatchSearch search;
  if (stated.has_least_global_batch()) search.least_global_batch = stated.least_global_batch();
  if (stated.has_most_global_batch()) search.most_global_batch = stated.most_global_batch();
  if (stated.has_least_local_batch()) search.least_local_batch = stated.least_local_batch();
  if (stated.has_most_local_batch()) search.most_local_batch = stated.most_local_batch();
  if (stated.has_accumulate()) search.accumulate = stated.accumulate();
  if (stated.has_candidates()) search.candidates = stated.candidates();
  if (stated.has_noise_scale()) search.noise_scale = stated.noise_scale();
  if (stated.has_initial_batch()) search.initial_batch = stated.initial_batch();
  return search;
}

// Sets a field of a message by its name; a test holds the messages to every name of the list.
class FieldSetter {
 public:
  FieldSetter(google::protobuf::Message* message, const char* name)
      : message_(message),
        values_(*message->GetReflection()),
        field_(message->GetDescriptor()->FindFieldByName(name)) {}

  void operator()(double value) const { values_.SetDouble(message_, field_, value); }
  void operator()(int value) const { values_.SetInt32(message_, field_, value); }
  void operator()(const Count& count) const { (*this)(count.value); }
  template <class D>
  void operator()(const Quantity<D>& value) const {
    (*this)(value.si());
  }
  void operator()(const std::string& text) const { values_.SetString(message_, field_, text); }
  void operator()(const std::vector<std::string>& texts) const {
    for (const std::string& text : texts) values_.AddString(message_, field_, text);
  }
  template <class T>
  void operator()(const std::optional<T>& value) const {
    if (value) (*this)(*value);
  }

  google::protobuf::Message* Group() const { return values_.MutableMessage(message_, field_); }

 private:
  google::protobuf::Message* message_;
  const google::protobuf::Reflection& values_;
  const FieldDescriptor* field_;
};

void SetReply(const Prediction& p, v1::PredictReply* reply) {
  const auto tell = [reply](const char* group, const char* name, const auto& value) {
    FieldSetter(group == nullptr ? reply : FieldSetter(reply, group).Group(), name)(value);
  };
  ForEachPredicted(p, tell);
  ForEachCaveat(p, tell);
}

// Where a job was asked for, whether its steps have taught what answers.
template <class Answer>
void SetLearnt(const Target& target, Answer* reply) {
  if (target.learnt) reply->set_learnt(*target.learnt);
}

// What is to be known of a reply's plans: ForecastColumns, or ChosenBatches.
template <class Answered, class Answer>
void TellCaveats(const Answered& answered, Answer* reply) {
  for (const MemoryVerdict verdict : answered.memory) {
    reply->add_memory(static_cast<v1::MemoryVerdict>(verdict));
  }
  for (const BatchFlag& flag : answered.flags) {
    v1::BatchFlag* told = reply->add_flags();
    told->set_index(static_cast<std::int64_t>(flag.index));
    told->set_flag(flag.flag);
  }
  for (const BatchProblem& one : answered.problems) {
    v1::BatchProblem* told = reply->add_problems();
    told->set_index(static_cast<std::int64_t>(one.index));
    told->set_problem(one.problem);
  }
}

void SetJob(const JobTold& told, v1::Job* job) {
  job->set_job(told.job);
  job->set_cluster(told.cluster);
  job->set_workload(told.workload);
  job->set_device(told.device);
  job->set_steps(told.rows);
  job->set_drifted(told.drifted);
}

const char* CodeText(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "OK";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case grpc::StatusCode::UNAVAILABLE:
      return "UNAVAILABLE";
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
      const std::shared_ptr<const Target> target =
          service_.Find(*snapshot, NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster());
      reply->set_snapshot(snapshot->number());
      SetReply(target->predictor.Predict(plan), reply);
      SetLearnt(*target, reply);
      ++metrics_.plans;
    }));
    return reactor;
  }

  grpc::ServerUnaryReactor* Observe(grpc::CallbackServerContext* context,
                                    const v1::ObserveRequest* request,
                                    v1::ObserveReply* reply) override {
    return AnswerLater(context, "grpc/Observe", [this, request, reply] {
      TargetName start = NameOf(request->target());
      const std::string job = std::exchange(start.job, "");
      if (request->has_parameters()) start.parameters = request->parameters();
      const std::shared_ptr<const Snapshot> snapshot = service_.Current();
      const ObservedSteps observed =
          service_.jobs().Observe(*snapshot, job, start,
                                  [&](const Cluster& cluster) {
                                    return ReadPlan(TextOf(request->plan()), "plan.", cluster);
                                  },
                                  {{request->step_times_s().begin(), request->step_times_s().end()},
                                   request->out_of_memory()});
      reply->set_snapshot(snapshot->number());
      SetJob(observed.job, reply->mutable_job());
      for (const Observation& step : observed.steps) {
        if (!step.cause.empty()) {
          ++metrics_.changes;
          v1::Change* change = reply->add_changes();
          change->set_index(reply->predicted_s_size());
          change->set_cause(step.cause);
        }
        reply->add_predicted_s(step.predicted.in(kSeconds));
        reply->add_surprise(step.surprise);
      }
      metrics_.observed += static_cast<std::int64_t>(observed.steps.size());
    });
  }

  grpc::ServerUnaryReactor* EndJob(grpc::CallbackServerContext* context,
                                   const v1::EndJobRequest* request, v1::Job* reply) override {
    return AnswerLater(context, "grpc/EndJob", [this, request, reply] {
      SetJob(service_.jobs().End(request->job(), request->forget()), reply);
    });
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* /*request*/,
                                     v1::ListJobsReply* reply) override {
    return AnswerLater(context, "grpc/ListJobs", [this, reply] {
      for (const JobTold& told : service_.jobs().List()) SetJob(told, reply->add_jobs());
    });
  }

  grpc::ServerUnaryReactor* PredictBatch(grpc::CallbackServerContext* context,
                                         const v1::PredictBatchRequest* request,
                                         v1::PredictBatchReply* reply) override {
    return AnswerLater(context, "grpc/PredictBatch", [this, request, reply] {
      QueryColumns queries = ColumnsOf(request->queries(), "queries.", most_plans());
      const std::shared_ptr<const Snapshot> snapshot = service_.Current();
      const std::shared_ptr<const Target> target =
          service_.Find(*snapshot, NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster(),
                                 StatedBy(queries, queries.Has(kLocalBatch) ? 1 : 0));
      const ForecastColumns forecasts =
          PredictMany(*snapshot, *target, plan, !request->step_time_alone(), &queries);
      reply->set_snapshot(snapshot->number());
      SetLearnt(*target, reply);
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
      TellCaveats(forecasts, reply);
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
      const std::shared_ptr<const Target> target =
          service_.Find(*snapshot, NameOf(request->target()));
      const Plan plan = ReadPlan(TextOf(request->plan()), "plan.", target->predictor.cluster(),
                                 StatedBy(allocations, UnstatedBatch(target->predictor)));
      reply->set_snapshot(snapshot->number());
      SetLearnt(*target, reply);
      const ChosenBatches chosen = serve::Recommend(*snapshot, *target, plan, search, &allocations);
      for (const BatchChoice& choice : chosen.choices) {
        reply->add_local_batch(choice.local_batch);
        reply->add_accumulation_steps(choice.accumulation_steps);
        reply->add_step_time_s(choice.step_time_s);
        reply->add_throughput_samples_per_s(choice.throughput);
        reply->add_statistical_efficiency(choice.statistical_efficiency);
        reply->add_goodput_samples_per_s(choice.goodput);
      }
      reply->set_failed(static_cast<std::int64_t>(chosen.failed));
      TellCaveats(chosen, reply);
      metrics_.plans += static_cast<std::int64_t>(allocations.size) * MostTried(search);
    });
  }

 private:
  std::size_t most_plans() const { return service_.options().most_plans; }

  template <class F>
  grpc::Status Answer(const char* name, std::chrono::steady_clock::time_point begun,
                      const F& answer) {
    grpc::Status status;
    try {
      if (service_.ready()) {
        answer();
      } else {
        status = {grpc::StatusCode::UNAVAILABLE, kNotReady};
      }
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
    server_->GetHealthCheckService()->SetServingStatus(service->ready());
  }
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  // A client that watches the health holds it up no longer.
  ~GrpcServer() override { End(std::chrono::milliseconds(0)); }

  std::uint16_t port() const override { return static_cast<std::uint16_t>(port_); }

  void SetServing(bool serving) override {
    server_->GetHealthCheckService()->SetServingStatus(serving);
  }

  void Stop(std::chrono::milliseconds patience) override { End(patience); }

 private:
  void End(std::chrono::milliseconds patience) {
    server_->GetHealthCheckService()->SetServingStatus(false);
    server_->Shutdown(std::chrono::system_clock::now() + patience);
  }

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
