// The same service over gRPC.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stepcast.grpc.pb.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "data/plan/fields.h"
#include "data/values/training_facts.h"
#include "predictor/prediction_fields.h"
#include "predictor/serve/rpc_server.h"
#include "tests/serve/support.h"
#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

struct RunningRpc : TestService {
  explicit RunningRpc(const ServiceOptions& options = {}, int most_message = 64 << 20,
                      bool ready = true)
      : TestService(ShippedInventory, options) {
    service.SetReady(ready);
    server = StartRpcServer(&service, &metrics, &pool, {{}, most_message});
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel = grpc::CreateCustomChannel(Address{"127.0.0.1", server->port()}.text(),
                                        grpc::InsecureChannelCredentials(), arguments);
    stub = v1::Stepcast::NewStub(channel);
  }
  ~RunningRpc() { server->Stop(std::chrono::seconds(5)); }
  RunningRpc(const RunningRpc&) = delete;
  RunningRpc& operator=(const RunningRpc&) = delete;

  WorkPool pool{2, 64};
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Stepcast::Stub> stub;
};

v1::Target ResNet() {
  v1::Target target;
  target.set_cluster("gce-t4");
  target.set_workload("resnet50");
  return target;
}

TEST(Rpc, PredictIsWhatHttpAnswers) {
  RunningRpc running;
  v1::PredictRequest request;
  *request.mutable_target() = ResNet();
  request.mutable_target()->set_precision("fp16");
  request.mutable_target()->set_optimizer("adam");
  request.mutable_plan()->set_workers(10);
  request.mutable_plan()->set_local_batch(32);
  request.mutable_plan()->set_strategy("tree");
  request.mutable_plan()->set_rtt_ms(2.5);
  grpc::ClientContext context;
  v1::PredictReply reply;
  const grpc::Status status = running.stub->Predict(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const TestJson json = running.JsonOf(
      "/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","workers":10,"local_batch":32,)"
                     R"("strategy":"tree","rtt_ms":2.5,"precision":"fp16","optimizer":"adam"})");
  EXPECT_EQ(reply.snapshot(), 1);
  EXPECT_EQ(reply.step_time_s(), json["step_time_s"]);
  EXPECT_EQ(reply.low_s(), json["low_s"]);
  EXPECT_EQ(reply.high_s(), json["high_s"]);
  EXPECT_EQ(reply.throughput_samples_per_s(), json["throughput_samples_per_s"]);
  EXPECT_EQ(reply.breakdown().exposed_transfer_s(), json["breakdown"]["exposed_transfer_s"]);
  EXPECT_EQ(reply.traffic().bytes_total(), json["traffic"]["bytes_total"]);
  EXPECT_FALSE(reply.traffic().has_bytes_per_server());
  EXPECT_EQ(reply.memory().total_bytes(), json["memory"]["total_bytes"]);
  EXPECT_EQ(reply.memory().verdict(), json["memory"]["verdict"]);
  EXPECT_EQ(reply.memory().optimizer_bytes(), 2 * reply.memory().gradients_bytes());
  EXPECT_EQ(reply.algorithm(), json["algorithm"]);
  EXPECT_EQ(reply.flags_size(), static_cast<int>(json["flags"].size()));
}

TEST(Rpc, PredictBatchIsWhatHttpAnswers) {
  RunningRpc running;
  v1::PredictBatchRequest request;
  *request.mutable_target() = ResNet();
  for (const int workers : {1, 8, 0}) request.mutable_queries()->add_workers(workers);
  for (const int batch : {8, 16, 32}) request.mutable_queries()->add_local_batch(batch);
  for (const double gbit : {1.0, std::nan(""), 10.0}) {
    request.mutable_queries()->add_link_gbit_per_s(gbit);
  }
  grpc::ClientContext context;
  v1::PredictBatchReply reply;
  const grpc::Status status = running.stub->PredictBatch(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const TestJson json = running.JsonOf(
      "/v1/predict_batch",
      R"({"cluster":"gce-t4","workload":"resnet50","queries":)"
      R"({"workers":[1,8,0],"local_batch":[8,16,32],"link_gbit_per_s":[1,null,10]}})");
  ASSERT_EQ(reply.step_time_s_size(), 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reply.step_time_s(i), json["step_time_s"][static_cast<std::size_t>(i)]);
    EXPECT_EQ(reply.high_s(i), json["high_s"][static_cast<std::size_t>(i)]);
  }
  EXPECT_TRUE(std::isnan(reply.step_time_s(2)));
  EXPECT_EQ(reply.failed(), 1);
  ASSERT_EQ(reply.status_size(), 3);
  EXPECT_EQ(reply.status(2), v1::QUERY_BAD_PLACEMENT);
  ASSERT_EQ(reply.memory_size(), 3);
  EXPECT_EQ(reply.memory(0), v1::MEMORY_FITS);
  EXPECT_EQ(reply.memory(2), v1::MEMORY_UNKNOWN);
  EXPECT_EQ(static_cast<std::size_t>(reply.flags_size()), json["flags"].size());
}

TEST(Rpc, RecommendAnswersEachAllocation) {
  RunningRpc running;
  v1::RecommendRequest request;
  *request.mutable_target() = ResNet();
  for (const int workers : {4, 16, 0}) request.mutable_allocations()->add_workers(workers);
  request.mutable_search()->set_most_global_batch(1024);
  grpc::ClientContext context;
  v1::RecommendReply reply;
  const grpc::Status status = running.stub->Recommend(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::int64_t plans = running.metrics.plans;
  EXPECT_GT(plans, 3);
  const TestJson json = running.JsonOf(
      "/v1/recommend", R"({"cluster":"gce-t4","workload":"resnet50","allocations":)"
                       R"({"workers":[4,16,0]},"search":{"most_global_batch":1024}})");
  ASSERT_EQ(reply.local_batch_size(), 3);
  EXPECT_EQ(reply.failed(), 1);
  ASSERT_EQ(reply.problems_size(), 1);
  EXPECT_EQ(reply.problems(0).index(), 2);
  EXPECT_EQ(reply.problems(0).problem(), json["problems"][0]["problem"]);
  ASSERT_EQ(reply.memory_size(), 3);
  EXPECT_EQ(reply.memory(0), v1::MEMORY_FITS);
  EXPECT_EQ(reply.memory(2), v1::MEMORY_UNKNOWN);
  ASSERT_EQ(static_cast<std::size_t>(reply.flags_size()), json["flags"].size());
  EXPECT_GT(reply.flags_size(), 0);
  EXPECT_EQ(reply.flags(0).flag(), json["flags"][0]["flag"]);
  EXPECT_EQ(running.metrics.plans, 2 * plans) << "as many over HTTP";
  for (int i = 0; i < 2; ++i) {
    const auto row = static_cast<std::size_t>(i);
    EXPECT_EQ(reply.local_batch(i), json["local_batch"][row]);
    EXPECT_EQ(reply.accumulation_steps(i), json["accumulation_steps"][row]);
    EXPECT_EQ(reply.goodput_samples_per_s(i), json["goodput_samples_per_s"][row]);
  }
}

TEST(Rpc, TargetsMayBeKnownByTheirSize) {
  RunningRpc running;
  v1::PredictRequest request;
  request.mutable_target()->set_cluster("gce-t4");
  request.mutable_target()->set_workload("ours");
  request.mutable_target()->set_parameters(25'000'000);
  request.mutable_plan()->set_workers(8);
  request.mutable_plan()->set_local_batch(32);
  grpc::ClientContext context;
  v1::PredictReply reply;
  const grpc::Status status = running.stub->Predict(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(
      reply.step_time_s(),
      running.JsonOf("/v1/predict", R"({"cluster":"gce-t4","workload":"ours","workers":8,)"
                                    R"("parameters":25000000,"local_batch":32})")["step_time_s"]);
}

// Of 100 to 160 samples on eight workers, 13 to 20 are each one's.
TEST(Rpc, EachLimitOfASearchIsKept) {
  RunningRpc running;
  v1::RecommendRequest request;
  *request.mutable_target() = ResNet();
  request.mutable_allocations()->add_workers(8);
  v1::Search* search = request.mutable_search();
  const auto recommended = [&] {
    grpc::ClientContext context;
    v1::RecommendReply reply;
    const grpc::Status status = running.stub->Recommend(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.local_batch_size(), 1);
    return reply;
  };
  search->set_least_global_batch(100);
  search->set_most_global_batch(160);
  search->set_least_local_batch(9);
  search->set_most_local_batch(24);
  search->set_accumulate(false);
  search->set_candidates(50);
  const v1::RecommendReply reply = recommended();
  EXPECT_GE(reply.local_batch(0), 13);
  EXPECT_LE(reply.local_batch(0), 20);
  EXPECT_EQ(reply.accumulation_steps(0), 1);
  const TestJson json = running.JsonOf(
      "/v1/recommend", R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[8]},)"
                       R"("search":{"least_global_batch":100,"most_global_batch":160,)"
                       R"("least_local_batch":9,"most_local_batch":24,"accumulate":false,)"
                       R"("candidates":50}})");
  EXPECT_EQ(reply.local_batch(0), json["local_batch"][0]);
  // What each limit leaves: one batch, or none.
  search->set_most_local_batch(13);
  EXPECT_EQ(recommended().local_batch(0), 13);
  search->set_least_local_batch(14);
  search->set_most_local_batch(14);
  EXPECT_EQ(recommended().local_batch(0), 14);
  search->set_least_local_batch(21);
  search->set_most_local_batch(24);
  EXPECT_EQ(recommended().failed(), 1);
}

// Each field of a search, one after another with another value, is what it is over HTTP.
TEST(Rpc, EachFieldOfASearchIsThatOfHttp) {
  const RunningRpc running;
  const TestJson usual = {{"least_global_batch", 64}, {"most_global_batch", 512},
                          {"least_local_batch", 4},   {"most_local_batch", 64},
                          {"accumulate", true},       {"candidates", 40},
                          {"noise_scale", 1000.0},    {"initial_batch", 32.0}};
  const TestJson others = {{"least_global_batch", 400}, {"most_global_batch", 100},
                           {"least_local_batch", 50},   {"most_local_batch", 8},
                           {"accumulate", false},       {"candidates", 3},
                           {"noise_scale", 50.0},       {"initial_batch", 320.0}};
  const google::protobuf::Descriptor* fields = v1::Search::descriptor();
  ASSERT_EQ(fields->field_count(), static_cast<int>(usual.size()));
  for (int other = -1; other < fields->field_count(); ++other) {
    TestJson search = usual;
    v1::RecommendRequest request;
    *request.mutable_target() = ResNet();
    request.mutable_allocations()->add_workers(8);
    for (int i = 0; i < fields->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = fields->field(i);
      const std::string name(field->name());
      ASSERT_TRUE(usual.contains(name)) << name;
      if (i == other) search[name] = others.at(name);
      const TestJson& value = search.at(name);
      const google::protobuf::Reflection* set = request.search().GetReflection();
      v1::Search* stated = request.mutable_search();
      if (value.is_boolean()) {
        set->SetBool(stated, field, value.get<bool>());
      } else if (value.is_number_integer()) {
        set->SetInt32(stated, field, value.get<int>());
      } else {
        set->SetDouble(stated, field, value.get<double>());
      }
    }
    SCOPED_TRACE(search.dump());
    grpc::ClientContext context;
    v1::RecommendReply reply;
    const grpc::Status status = running.stub->Recommend(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const TestJson json =
        running.JsonOf("/v1/recommend", TestJson({{"cluster", "gce-t4"},
                                                  {"workload", "resnet50"},
                                                  {"allocations", {{"workers", {8}}}},
                                                  {"search", search}})
                                            .dump());
    ASSERT_EQ(reply.local_batch_size(), 1);
    ASSERT_GT(reply.local_batch(0), 0);
    EXPECT_EQ(reply.local_batch(0), json["local_batch"][0]);
    EXPECT_EQ(reply.accumulation_steps(0), json["accumulation_steps"][0]);
    EXPECT_EQ(reply.step_time_s(0), json["step_time_s"][0]);
    EXPECT_EQ(reply.throughput_samples_per_s(0), json["throughput_samples_per_s"][0]);
    EXPECT_EQ(reply.statistical_efficiency(0), json["statistical_efficiency"][0]);
    EXPECT_EQ(reply.goodput_samples_per_s(0), json["goodput_samples_per_s"][0]);
    // What a sample is worth beside one of the initial batch: (phi + M_0) / (phi + M).
    const double noise = search["noise_scale"].get<double>();
    const double batch = 8.0 * reply.local_batch(0) * reply.accumulation_steps(0);
    EXPECT_NEAR(reply.statistical_efficiency(0),
                (noise + search["initial_batch"].get<double>()) / (noise + batch), 1e-12);
    EXPECT_GE(batch, search["least_global_batch"].get<int>());
    EXPECT_LE(batch, search["most_global_batch"].get<int>());
  }
}

// A change is told by the step among those of the request that has shown it.
TEST(Rpc, AChangeIsToldByItsStep) {
  v1::ObserveRequest request;
  *request.mutable_target() = ResNet();
  request.mutable_target()->set_job("a");
  request.mutable_plan()->set_workers(8);
  request.mutable_plan()->set_local_batch(32);
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) times.push_back(i % 2 == 0 ? 0.303 : 0.297);
  for (int i = 0; i < 40; ++i) times.push_back(i % 2 == 0 ? 0.606 : 0.594);
  const auto observed = [&](const RunningRpc& running, const std::vector<double>& steps) {
    request.clear_step_times_s();
    for (const double time : steps) request.add_step_times_s(time);
    grpc::ClientContext context;
    v1::ObserveReply reply;
    const grpc::Status status = running.stub->Observe(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  };
  const RunningRpc one_by_one;
  std::vector<int> shown;
  for (int i = 0; i < 100; ++i) {
    const v1::ObserveReply reply = observed(one_by_one, {times[static_cast<std::size_t>(i)]});
    for (const v1::Change& change : reply.changes()) {
      EXPECT_EQ(change.index(), 0);
      shown.push_back(i);
    }
  }
  ASSERT_EQ(shown.size(), 1U);
  const RunningRpc at_once;
  const v1::ObserveReply whole = observed(at_once, times);
  ASSERT_EQ(whole.changes_size(), 1);
  EXPECT_EQ(whole.changes(0).index(), shown[0]);
}

TEST(Rpc, JobsAreThoseOfHttp) {
  RunningRpc running;
  v1::ObserveRequest request;
  *request.mutable_target() = ResNet();
  request.mutable_target()->set_job("a");
  request.mutable_plan()->set_workers(8);
  request.mutable_plan()->set_local_batch(32);
  for (int i = 0; i < 60; ++i) request.add_step_times_s(i % 2 == 0 ? 0.303 : 0.297);
  for (int i = 0; i < 40; ++i) request.add_step_times_s(0.6);
  v1::ObserveReply reply;
  grpc::ClientContext first;
  grpc::Status status = running.stub->Observe(&first, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.snapshot(), 1);
  EXPECT_EQ(reply.predicted_s_size(), 100);
  EXPECT_EQ(reply.surprise_size(), 100);
  EXPECT_EQ(reply.job().steps(), 100);
  EXPECT_TRUE(reply.job().drifted());
  ASSERT_EQ(reply.changes_size(), 1);
  EXPECT_GE(reply.changes(0).index(), 60);
  EXPECT_FALSE(reply.changes(0).cause().empty());

  // A job that is known by its size alone, and one that nobody has begun.
  request.mutable_target()->set_job("b");
  request.mutable_target()->set_workload("mine");
  request.set_parameters(25'000'000);
  grpc::ClientContext second;
  v1::ObserveReply of_size;
  status = running.stub->Observe(&second, request, &of_size);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(of_size.job().workload(), "mine");
  v1::PredictRequest asked;
  asked.mutable_target()->set_job("c");
  grpc::ClientContext third;
  v1::PredictReply none;
  EXPECT_EQ(running.stub->Predict(&third, asked, &none).error_message(),
            "job: 'c' is not followed; allowed: a, b");

  EXPECT_FALSE(none.has_learnt());
  asked.mutable_target()->set_job("a");
  asked.mutable_plan()->set_workers(8);
  asked.mutable_plan()->set_local_batch(32);
  v1::PredictBatchRequest batch;
  batch.mutable_target()->set_job("a");
  batch.mutable_queries()->add_workers(8);
  batch.mutable_queries()->add_local_batch(32);
  v1::RecommendRequest recommend;
  recommend.mutable_target()->set_job("a");
  recommend.mutable_allocations()->add_workers(8);
  for (const bool of_job : {true, false}) {
    if (!of_job) {
      *asked.mutable_target() = *batch.mutable_target() = *recommend.mutable_target() = ResNet();
    }
    grpc::ClientContext contexts[3];
    v1::PredictReply predicted;
    v1::PredictBatchReply many;
    v1::RecommendReply recommended;
    EXPECT_TRUE(running.stub->Predict(&contexts[0], asked, &predicted).ok());
    EXPECT_TRUE(running.stub->PredictBatch(&contexts[1], batch, &many).ok());
    EXPECT_TRUE(running.stub->Recommend(&contexts[2], recommend, &recommended).ok());
    EXPECT_EQ(predicted.has_learnt() && predicted.learnt(), of_job);
    EXPECT_EQ(many.has_learnt() && many.learnt(), of_job);
    EXPECT_EQ(recommended.has_learnt() && recommended.learnt(), of_job);
    EXPECT_EQ(predicted.has_learnt(), of_job);
  }

  grpc::ClientContext fourth;
  v1::ListJobsReply list;
  ASSERT_TRUE(running.stub->ListJobs(&fourth, {}, &list).ok());
  const TestJson http = TestJson::parse(running.Get("/v1/jobs").body)["jobs"];
  ASSERT_EQ(list.jobs_size(), 2);
  EXPECT_EQ(list.jobs(0).job(), http[0]["job"]);
  EXPECT_EQ(list.jobs(0).cluster(), http[0]["cluster"]);
  EXPECT_EQ(list.jobs(0).device(), http[0]["device"]);
  EXPECT_EQ(list.jobs(0).drifted(), http[0]["drifted"]);
  EXPECT_EQ(list.jobs(1).steps(), http[1]["steps"]);

  v1::EndJobRequest end;
  end.set_job("b");
  grpc::ClientContext fifth;
  v1::Job ended;
  ASSERT_TRUE(running.stub->EndJob(&fifth, end, &ended).ok());
  EXPECT_EQ(ended.steps(), 100);
  EXPECT_EQ(running.service.jobs().size(), 1U);
}

TEST(Rpc, ErrorsNameKeyValueAndWhatIsAllowed) {
  ServiceOptions options;
  options.most_plans = 2;
  RunningRpc running(options);
  const auto predict = [&](const v1::PredictRequest& request) {
    grpc::ClientContext context;
    v1::PredictReply reply;
    const grpc::Status status = running.stub->Predict(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::PredictRequest request;
  EXPECT_EQ(predict(request), "cluster: is required; allowed: gce-t4, ec2-g3-ps");
  *request.mutable_target() = ResNet();
  EXPECT_NE(predict(request).find("plan.local_batch: is required"), std::string::npos);
  request.mutable_plan()->set_local_batch(8);
  request.mutable_plan()->set_loss_rate(std::nan(""));
  EXPECT_NE(predict(request).find("plan.loss_rate: 'nan'"), std::string::npos);
  v1::PredictBatchRequest batch;
  *batch.mutable_target() = ResNet();
  for (int i = 0; i < 3; ++i) batch.mutable_queries()->add_workers(1);
  grpc::ClientContext context;
  v1::PredictBatchReply reply;
  const grpc::Status status = running.stub->PredictBatch(&context, batch, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "queries: '3' plans are too many; allowed: at most 2");
}

// Health as grpc.health.v1.Health tells it, of whose messages nobody here has the classes: 1 is
// SERVING, 2 NOT_SERVING, in the first field.
int HealthOf(const RunningRpc& running) {
  grpc::GenericStub stub(running.channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  grpc::ByteBuffer reply;
  grpc::Status status;
  const std::unique_ptr<grpc::GenericClientAsyncResponseReader> call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  return bytes.size() == 2 ? bytes.begin()[1] : 0;
}

TEST(Rpc, NothingIsAnsweredBeforeTheServiceIsReady) {
  RunningRpc running({}, 64 << 20, false);
  EXPECT_EQ(HealthOf(running), 2);
  v1::PredictRequest request;
  *request.mutable_target() = ResNet();
  request.mutable_plan()->set_workers(8);
  request.mutable_plan()->set_local_batch(32);
  v1::PredictReply reply;
  {
    grpc::ClientContext context;
    const grpc::Status status = running.stub->Predict(&context, request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), kNotReady);
  }
  {
    grpc::ClientContext context;
    v1::ListJobsReply jobs;
    EXPECT_EQ(running.stub->ListJobs(&context, {}, &jobs).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_NE(running.metrics.Text(1, 0, 0).find("code=\"UNAVAILABLE\"} 1\n"), std::string::npos);
  running.service.SetReady(true);
  running.server->SetServing(true);
  EXPECT_EQ(HealthOf(running), 1);
  grpc::ClientContext context;
  EXPECT_TRUE(running.stub->Predict(&context, request, &reply).ok());
}

TEST(Rpc, MessagesBeyondTheLimitAreRefused) {
  RunningRpc running({}, 100'000);
  v1::PredictBatchRequest batch;
  *batch.mutable_target() = ResNet();
  for (int i = 0; i < 200'000; ++i) batch.mutable_queries()->add_workers(1);
  grpc::ClientContext context;
  v1::PredictBatchReply reply;
  EXPECT_EQ(running.stub->PredictBatch(&context, batch, &reply).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// The messages know every field of a plan and every column, of a kind that reads them.
TEST(Rpc, MessagesAreComplete) {
  const google::protobuf::Descriptor* plan = v1::Plan::descriptor();
  for (const PlanField& field : PlanFields()) {
    const google::protobuf::FieldDescriptor* found = plan->FindFieldByName(field.column);
    ASSERT_NE(found, nullptr) << field.column;
    EXPECT_TRUE(found->has_presence()) << field.column;
    const bool number = found->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32 ||
                        found->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE;
    EXPECT_EQ(number, field.unit != nullptr) << field.column;
  }
  EXPECT_EQ(plan->field_count(), static_cast<int>(PlanFields().size()) + 1) << "and workers";
  for (const TrainingFact& fact : TrainingFacts()) {
    const google::protobuf::FieldDescriptor* found =
        v1::Target::descriptor()->FindFieldByName(fact.key);
    ASSERT_NE(found, nullptr) << fact.key;
    EXPECT_EQ(found->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_STRING) << fact.key;
  }
  const google::protobuf::Descriptor* queries = v1::Queries::descriptor();
  for (const CountColumn& column : kCountColumns) {
    EXPECT_NE(queries->FindFieldByName(column.name), nullptr) << column.name;
  }
  for (const NumberColumn& column : kNumberColumns) {
    EXPECT_NE(queries->FindFieldByName(column.name), nullptr) << column.name;
  }
  EXPECT_EQ(queries->field_count(), static_cast<int>(kCountColumns.size() + kNumberColumns.size()));
  EXPECT_EQ(v1::QueryStatus_descriptor()->value_count(), kQueryStatusCount);
}

// A reply has a place for all that a prediction tells, of a kind that takes it.
TEST(Rpc, RepliesKnowEveryPartOfAPrediction) {
  Prediction prediction;
  prediction.server_times.emplace();
  prediction.server_phases.emplace();
  prediction.async_servers.emplace();
  prediction.work.emplace();
  int told = 0;
  const auto expect = [&](const char* group, const char* name, const auto& value) {
    ++told;
    const google::protobuf::Descriptor* message = v1::PredictReply::descriptor();
    if (group != nullptr) {
      const google::protobuf::FieldDescriptor* part = message->FindFieldByName(group);
      ASSERT_NE(part, nullptr) << group;
      message = part->message_type();
      ASSERT_NE(message, nullptr) << group;
    }
    const google::protobuf::FieldDescriptor* field = message->FindFieldByName(name);
    ASSERT_NE(field, nullptr) << (group != nullptr ? group : "") << " " << name;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int>) {
      EXPECT_EQ(field->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_INT32) << name;
    } else if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, Count>) {
      EXPECT_EQ(field->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) << name;
    }
  };
  ForEachPredicted(prediction, expect);
  ForEachCaveat(prediction, expect);
  EXPECT_GT(told, 40);
}

TEST(Rpc, APortInUseIsAnError) {
  RunningRpc running;
  EXPECT_TRUE(Says(ErrorOf([&] {
                     StartRpcServer(&running.service, &running.metrics, &running.pool,
                                    {{"127.0.0.1", running.server->port()}});
                   }),
                   "--grpc: '127.0.0.1:"));
}

TEST(Rpc, StopFinishesWhatHasBegun) {
  RunningRpc running;
  v1::PredictBatchRequest request;
  *request.mutable_target() = ResNet();
  for (int i = 0; i < 20'000; ++i) {
    request.mutable_queries()->add_workers(1 + i % 16);
    request.mutable_queries()->add_local_batch(8);
  }
  grpc::Status status(grpc::StatusCode::UNKNOWN, "");
  v1::PredictBatchReply reply;
  std::thread client([&] {
    grpc::ClientContext context;
    status = running.stub->PredictBatch(&context, request, &reply);
  });
  while (running.metrics.in_flight == 0 && running.metrics.plans == 0) std::this_thread::yield();
  running.server->Stop(std::chrono::seconds(30));
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.step_time_s_size(), 20'000);
}

}  // namespace
}  // namespace stepcast::serve
