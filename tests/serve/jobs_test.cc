// Jobs that a service follows: what their steps teach, and who is told of it.
#include "predictor/serve/jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calibrate/online/fleet.h"
#include "data/io/fleet_record.h"
#include "tests/serve/support.h"
#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

constexpr const char* kPlan = R"("plan":{"workers":8,"local_batch":32,"strategy":"ring"})";

// The body of an observation of job `name` on gce-t4.
std::string Steps(const std::string& name, const std::string& times,
                  const std::string& more = R"("cluster":"gce-t4","workload":"resnet50",)") {
  return R"({"job":")" + name + R"(",)" + more + kPlan + R"(,"step_times_s":)" + times + "}";
}

std::string Asked(const std::string& who, int workers) {
  return "{" + who + R"(,"local_batch":32,"strategy":"ring","workers":)" + std::to_string(workers) +
         "}";
}

double Step(const TestService& test, const std::string& who, int workers) {
  return test.JsonOf("/v1/predict", Asked(who, workers))["step_time_s"].get<double>();
}

constexpr const char* kWithoutJob = R"("cluster":"gce-t4","workload":"resnet50")";

// What is wrong with an observation: the key that the answer names.
std::string WrongKey(const TestService& test, const std::string& body,
                     const std::string& path = "/v1/observe") {
  const Reply reply = test.Post(path, body);
  EXPECT_EQ(reply.status, 422) << reply.body << "\nto " << body;
  return TestJson::parse(reply.body).value("key", "");
}

Plan Ring(int workers) {
  Plan plan;
  plan.placement.assign(static_cast<std::size_t>(workers / 4), 4);
  plan.local_batch = 32;
  plan.strategy = Strategy::kRing;
  return plan;
}

// The same job of one who has linked the library.
struct LinkedJob {
  const std::shared_ptr<const Snapshot> snapshot = TestService().service.Current();
  const TargetParts parts = snapshot->PartsOf({"gce-t4", "resnet50", ""});
  Fleet fleet{parts.cluster};
  const std::shared_ptr<OnlineCalibration> job =
      fleet.Add("a", parts.workload, parts.facts, parts.device);
};

// ---- One job.

TEST(Jobs, LearnAsALibraryThatIsLinkedDoes) {
  const TestService test;
  const std::vector<double> times = {0.31, 0.30, 0.33, 0.305};
  const TestJson answer = test.JsonOf("/v1/observe", Steps("a", "[0.31,0.30,0.33,0.305]"));

  LinkedJob linked;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Observation said = linked.job->Observe(Ring(8), Seconds(times[i]));
    EXPECT_EQ(answer["predicted_s"][i], said.predicted.in(kSeconds)) << i;
    EXPECT_EQ(answer["surprise"][i], said.surprise) << i;
  }
  EXPECT_EQ(answer["steps"], 4);
  EXPECT_EQ(answer["drifted"], false);
  EXPECT_EQ(answer["changes"], TestJson::array());
  const Predictor learnt(linked.job->cluster(), linked.parts.workload, linked.parts.facts,
                         linked.parts.device);
  EXPECT_EQ(Step(test, R"("job":"a")", 16), learnt.Predict(Ring(16)).step_time.in(kSeconds));
  EXPECT_NE(Step(test, R"("job":"a")", 16), Step(test, kWithoutJob, 16)) << "the file knows less";
}

TEST(Jobs, AreToldWhatDidNotFitInMemory) {
  const TestService test;
  const std::string told = R"({"cluster":"gce-t4","workload":"resnet50","job":"a",)";
  EXPECT_EQ(test.JsonOf("/v1/observe", told + R"("out_of_memory":true,)" + kPlan + "}")["steps"],
            0);
  const auto verdict = [&](const std::string& who) {
    return test.JsonOf("/v1/predict", Asked(who, 8))["memory"]["verdict"];
  };
  EXPECT_EQ(verdict(R"("job":"a")"), "out of memory");
  EXPECT_NE(verdict(kWithoutJob), "out of memory") << "the file knows less";
  // One or the other, and one of the two.
  EXPECT_EQ(WrongKey(test, told + R"("out_of_memory":true,"step_times_s":[0.3],)" + kPlan + "}"),
            "step_times_s");
  EXPECT_EQ(WrongKey(test, told + kPlan + "}"), "step_times_s");
}

TEST(Jobs, AnswerEveryQuestion) {
  const TestService test;
  test.JsonOf("/v1/observe", Steps("a", "[0.4,0.41]"));
  const TestJson batch = test.JsonOf(
      "/v1/predict_batch",
      R"({"job":"a","plan":{"strategy":"ring","local_batch":32},"queries":{"workers":[8,16]}})");
  for (const std::size_t i : {0U, 1U}) {  // compiled and plain, which agree to rounding
    const double step = Step(test, R"("job":"a")", i == 0 ? 8 : 16);
    EXPECT_NEAR(batch["step_time_s"][i], step, 1e-12 * step);
  }
  EXPECT_EQ(batch["workload"], "resnet50");
  const std::string search =
      R"(,"allocations":{"workers":[8]},"search":{"most_global_batch":512}})";
  EXPECT_NE(test.JsonOf("/v1/recommend", R"({"job":"a")" + search)["step_time_s"],
            test.JsonOf("/v1/recommend", std::string("{") + kWithoutJob + search)["step_time_s"]);
}

// Plans that were compiled before a step was learnt are not taken for those after it.
TEST(Jobs, ForgetWhatTheyAnsweredBefore) {
  const TestService test;
  const std::string asked =
      R"({"job":"a","plan":{"strategy":"ring","local_batch":32},"queries":{"workers":[8]}})";
  test.JsonOf("/v1/observe", Steps("a", "[0.3]"));
  const double before = test.JsonOf("/v1/predict_batch", asked)["step_time_s"][0];
  test.JsonOf("/v1/observe", Steps("a", "[0.5,0.5,0.5,0.5]"));
  const double after = test.JsonOf("/v1/predict_batch", asked)["step_time_s"][0];
  EXPECT_GT(after, 1.1 * before);
}

TEST(Jobs, OfAnUnknownNetworkNeedItsSizeOnly) {
  const TestService test;
  const std::string own = R"("cluster":"gce-t4","workload":"mine",)";
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", own)), "workload");
  test.JsonOf("/v1/observe", Steps("a", "[0.3,0.3]", own + R"("parameters":25000000,)"));
  EXPECT_NEAR(Step(test, R"("job":"a")", 8), 0.3, 0.03);
  EXPECT_EQ(WrongKey(test, Steps("b", "[0.3]", own + R"("parameters":0,)")), "parameters");
  EXPECT_EQ(WrongKey(test, Steps("b", "[0.3]",
                                 R"("cluster":"gce-t4","workload":"resnet50","parameters":7,)")),
            "parameters")
      << "the catalogue knows better";
}

// A job says once how it is trained; it may say so again, and nothing else.
TEST(Jobs, AreTrainedAsTheirFirstStepSays) {
  const TestService test;
  const std::string own = R"("cluster":"gce-t4","workload":"resnet50",)";
  test.JsonOf("/v1/observe",
              Steps("a", "[0.3]", own + R"("precision":"fp16","optimizer":"adam",)"));
  test.JsonOf("/v1/observe", Steps("a", "[0.3]", own + R"("precision":"fp16",)"));
  test.JsonOf("/v1/observe", Steps("a", "[0.3]", ""));
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("precision":"fp32",)")), "precision");
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("optimizer":"sgd",)")), "optimizer");
  EXPECT_EQ(WrongKey(test, Steps("b", "[0.3]", own + R"("optimizer":"lion",)")), "optimizer");
  EXPECT_EQ(WrongKey(test, Asked(R"("job":"a","precision":"fp16")", 8), "/v1/predict"), "precision")
      << "the job says it";
  const auto state = [&](const std::string& who) {
    return test.JsonOf("/v1/predict", Asked(who, 8))["memory"]["optimizer_bytes"].get<double>();
  };
  EXPECT_EQ(state(R"("job":"a")"), 2 * state(kWithoutJob));
}

TEST(Jobs, SayWhatHasChanged) {
  const TestService test;
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) times.push_back(i % 2 == 0 ? 0.303 : 0.297);
  for (int i = 0; i < 40; ++i) times.push_back(i % 2 == 0 ? 0.606 : 0.594);
  LinkedJob linked;
  TestJson changes = TestJson::array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Observation said = linked.job->Observe(Ring(8), Seconds(times[i]));
    if (!said.cause.empty()) changes.push_back({{"index", i}, {"cause", said.cause}});
  }
  ASSERT_EQ(changes.size(), 1U);
  const TestJson told = test.JsonOf("/v1/observe", Steps("a", TestJson(times).dump()));
  EXPECT_EQ(told["changes"], changes);
  EXPECT_EQ(told["drifted"], true);
  EXPECT_NEAR(Step(test, R"("job":"a")", 8), 0.6, 0.06);
  const std::string metrics = test.Get("/metrics").body;
  EXPECT_NE(metrics.find("stepcast_observed_steps_total 100\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("stepcast_changes_total 1\n"), std::string::npos);
  EXPECT_NE(metrics.find("stepcast_jobs 1\n"), std::string::npos);
}

// Whoever keeps what jobs have learnt sees by a number that there is something new.
TEST(Jobs, CountWhatTheyLearn) {
  const TestService test;
  const Jobs& jobs = test.service.jobs();
  std::uint64_t before = jobs.version();
  const auto grows = [&](const std::function<void()>& act) {
    act();
    return jobs.version() > std::exchange(before, jobs.version());
  };
  const std::string more = R"({"cluster":"gce-t4","workload":"resnet50","job":"b",)";
  EXPECT_TRUE(grows([&] { test.JsonOf("/v1/observe", Steps("a", "[0.3]")); }));
  EXPECT_TRUE(grows([&] { test.JsonOf("/v1/observe", Steps("a", "[0.3]")); }));
  EXPECT_TRUE(
      grows([&] { test.JsonOf("/v1/observe", more + R"("out_of_memory":true,)" + kPlan + "}"); }));
  EXPECT_FALSE(grows([&] { Step(test, R"("job":"a")", 8); }));
  EXPECT_FALSE(grows([&] { WrongKey(test, Steps("a", "[0]")); }));
  EXPECT_TRUE(grows([&] { test.JsonOf("/v1/end_job", R"({"job":"a"})"); }));
  EXPECT_TRUE(grows([&] { test.JsonOf("/v1/end_job", R"({"job":"b","forget":true})"); }));
}

// What the job has said is said by nobody else; an observation says it again.
TEST(Jobs, StandAloneInAQuestion) {
  const TestService test;
  test.JsonOf("/v1/observe", Steps("a", "[0.3]"));
  for (const auto& [key, stated] :
       std::vector<std::pair<std::string, std::string>>{{"cluster", R"("gce-t4")"},
                                                        {"workload", R"("resnet50")"},
                                                        {"device", R"("t4")"},
                                                        {"optimizer", R"("sgd")"},
                                                        {"parameters", "25557032"}}) {
    const std::string asked = R"("job":"a",")" + key + "\":" + stated;
    EXPECT_EQ(WrongKey(test, Asked(asked, 8), "/v1/predict"), key);
    const std::string told = test.Post("/v1/predict", Asked(asked, 8)).body;
    EXPECT_NE(told.find("is what the job says; allowed: one of the two"), std::string::npos)
        << told;
  }
}

// As many steps as may be told at once, and one more: of a text, and of whoever has no text.
TEST(Jobs, LearnAThousandStepsAtOnce) {
  TestService test;
  const auto body = [](std::size_t steps) {
    return Steps("a", TestJson(std::vector<double>(steps, 0.3)).dump());
  };
  EXPECT_EQ(test.JsonOf("/v1/observe", body(1000))["steps"], 1000);
  const Reply refused = test.Post("/v1/observe", body(1001));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("an array has more than 1000 numbers"), std::string::npos);
  const auto observe = [&](std::size_t steps) {
    return ErrorOf([&] {
      test.service.jobs().Observe(*test.service.Current(), "b", {"gce-t4", "resnet50", ""},
                                  [](const Cluster& /*cluster*/) { return Ring(8); },
                                  {std::vector<double>(steps, 0.3), false});
    });
  };
  EXPECT_FALSE(observe(1000));
  EXPECT_TRUE(Says(observe(1001),
                   "step_times_s: '1001' steps are too many; allowed: at most 1000 at once"));
  EXPECT_EQ(test.service.jobs().List().at(1).rows, 1000);
}

// ---- Jobs beside each other.

TEST(Jobs, TeachTheNext) {
  const TestService test;
  for (int i = 0; i < 4; ++i) test.JsonOf("/v1/observe", Steps("a", "[0.6,0.6,0.6,0.6]"));
  EXPECT_EQ(test.JsonOf("/v1/end_job", R"({"job":"a"})")["steps"], 16);
  const TestJson next = test.JsonOf("/v1/observe", Steps("b", "[0.6]"));
  EXPECT_NEAR(next["predicted_s"][0], 0.6, 0.03);
  test.JsonOf("/v1/end_job", R"({"job":"b","forget":true})");

  const TestService alone;
  const double first = alone.JsonOf("/v1/observe", Steps("b", "[0.6]"))["predicted_s"][0];
  EXPECT_GT(std::abs(first / 0.6 - 1), 0.1);
  // And what is forgotten teaches nobody.
  alone.JsonOf("/v1/end_job", R"({"job":"b","forget":true})");
  EXPECT_EQ(alone.JsonOf("/v1/observe", Steps("c", "[0.6]"))["predicted_s"][0], first);
}

TEST(Jobs, AreListedByName) {
  const TestService test;
  EXPECT_EQ(TestJson::parse(test.Get("/v1/jobs").body), (TestJson{{"jobs", TestJson::array()}}));
  test.JsonOf("/v1/observe", Steps("b", "[0.3]"));
  test.JsonOf("/v1/observe", Steps("a", "[0.3,0.3]"));
  const TestJson jobs = TestJson::parse(test.Get("/v1/jobs").body)["jobs"];
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0], (TestJson{{"job", "a"},
                               {"cluster", "gce-t4"},
                               {"workload", "resnet50"},
                               {"device", "t4"},
                               {"steps", 2},
                               {"drifted", false}}));
  test.JsonOf("/v1/end_job", R"({"job":"a"})");
  EXPECT_EQ(TestJson::parse(test.Get("/v1/jobs").body)["jobs"].size(), 1U);
  EXPECT_EQ(WrongKey(test, R"({"job":"a"})", "/v1/end_job"), "job");
  EXPECT_NE(test.Post("/v1/end_job", "{}").body.find("job: is required"), std::string::npos);
}

TEST(Jobs, AreBounded) {
  ServiceOptions options;
  options.most_jobs = 2;
  const TestService test(ShippedInventory, options);
  test.JsonOf("/v1/observe", Steps("a", "[0.3]"));
  test.JsonOf("/v1/observe", Steps("b", "[0.3]"));
  EXPECT_EQ(WrongKey(test, Steps("c", "[0.3]")), "job");
  test.JsonOf("/v1/observe", Steps("a", "[0.3]"));
  test.JsonOf("/v1/end_job", R"({"job":"a"})");
  test.JsonOf("/v1/observe", Steps("c", "[0.3]"));
}

// ---- What is wrong.

TEST(Jobs, NothingWrongIsLearnt) {
  const TestService test;
  const std::string good = R"("cluster":"gce-t4","workload":"resnet50",)";
  EXPECT_EQ(WrongKey(test, Steps("", "[0.3]")), "job");
  EXPECT_EQ(WrongKey(test, Steps(std::string(1001, 'a'), "[0.3]")), "job");
  for (const char* times :
       {"[]", "[0]", "[-1]", "[0.3,null]", "[0.3,0]", "[1e-300]", "[0.3,1e300]"}) {
    EXPECT_EQ(WrongKey(test, Steps("a", times)), "step_times_s") << times;
  }
  EXPECT_EQ(WrongKey(test, R"({"job":"a",)" + good + kPlan + "}"), "step_times_s");
  EXPECT_EQ(WrongKey(test, R"({"job":"a",)" + good + R"("step_times_s":[0.3]})"),
            "plan.local_batch");
  EXPECT_EQ(WrongKey(test, R"({"job":"a",)" + good +
                               R"("plan":{"workers":8,"local_batch":32,"strategy":"auto"},)"
                               R"("step_times_s":[0.3]})"),
            "strategy");
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("workload":"resnet50",)")), "cluster");
  EXPECT_EQ(WrongKey(test, Asked(R"("job":"a")", 8), "/v1/predict"), "job");
  EXPECT_EQ(TestJson::parse(test.Get("/v1/jobs").body)["jobs"].size(), 0U);

  test.JsonOf("/v1/observe", Steps("a", "[0.3]"));
  test.JsonOf("/v1/observe", Steps("a", "[0.3]", ""));  // it has said what it trains
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("workload":"vgg16",)")), "workload");
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("cluster":"ec2-g3-ps",)")), "cluster");
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("device":"v100",)")), "device");
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("parameters":9,)")), "parameters");
  EXPECT_EQ(WrongKey(test, Asked(R"("job":"a","workload":"resnet50")", 8), "/v1/predict"),
            "workload");
  EXPECT_EQ(TestJson::parse(test.Get("/v1/jobs").body)["jobs"][0]["steps"], 2);
}

// Who begins a job by another name of its device or workload goes on by it.
TEST(Jobs, AreTheSameByWhateverName) {
  const TestService test;
  for (const char* device : {"NVIDIA T4", "t4", "T4"}) {
    for (const char* workload : {"resnet50@224", "resnet50"}) {
      const std::string more = std::string(R"("cluster":"gce-t4","workload":")") + workload +
                               R"(","device":")" + device + R"(",)";
      const TestJson answer = test.JsonOf("/v1/observe", Steps("a", "[0.3]", more));
      EXPECT_EQ(answer["device"], "t4");
      EXPECT_EQ(answer["workload"], "resnet50");
    }
  }
  EXPECT_EQ(TestJson::parse(test.Get("/v1/jobs").body)["jobs"][0]["steps"], 6);
  EXPECT_EQ(WrongKey(test, Steps("a", "[0.3]", R"("device":"NVIDIA V100",)")), "device");
}

// ---- Files that are read anew.

TEST(Jobs, OutliveFilesThatAreReadAnew) {
  bool other = false;
  TestService test([&] {
    Inventory inventory = ShippedInventory();
    if (other) inventory.clusters[0].link.bandwidth = GigabitsPerSecond(1.0);
    return inventory;
  });
  test.JsonOf("/v1/observe", Steps("a", "[0.6,0.6,0.6]"));
  const double before = Step(test, R"("job":"a")", 16);
  const double taught = test.JsonOf("/v1/observe", Steps("b", "[0.6]"))["predicted_s"][0];
  test.JsonOf("/v1/end_job", R"({"job":"b","forget":true})");

  test.service.Reload();  // the same: the fleet goes on
  EXPECT_EQ(Step(test, R"("job":"a")", 16), before);
  EXPECT_EQ(test.JsonOf("/v1/observe", Steps("b", "[0.6]"))["predicted_s"][0], taught);
  test.JsonOf("/v1/end_job", R"({"job":"b","forget":true})");

  other = true;  // another cluster: a job that runs goes on, a new one does not learn from it
  test.service.Reload();
  EXPECT_EQ(Step(test, R"("job":"a")", 16), before);
  const double anew = test.JsonOf("/v1/observe", Steps("b", "[0.6]"))["predicted_s"][0];
  EXPECT_NE(anew, taught);
  EXPECT_EQ(anew, TestService([&] {
                    return test.service.Current()->inventory();
                  }).JsonOf("/v1/observe", Steps("b", "[0.6]"))["predicted_s"][0]);
  test.JsonOf("/v1/end_job", R"({"job":"a"})");
}

// ---- Answers that say whether a job's steps have taught them.

TEST(Jobs, AnswersSayWhetherTheirStepsHaveTaughtThem) {
  TestService test;
  test.JsonOf("/v1/observe", Steps("a", "[0.6]"));
  const auto batch = [](const std::string& who) {
    return "{" + who + R"(,"queries":{"workers":[4],"local_batch":[32]}})";
  };
  const auto allocations = [](const std::string& who) {
    return "{" + who + R"(,"allocations":{"workers":[4]}})";
  };
  const std::string job = R"("job":"a")";
  EXPECT_EQ(test.JsonOf("/v1/predict", Asked(job, 8))["learnt"], true);
  EXPECT_EQ(test.JsonOf("/v1/predict_batch", batch(job))["learnt"], true);
  EXPECT_EQ(test.JsonOf("/v1/recommend", allocations(job))["learnt"], true);
  EXPECT_FALSE(test.JsonOf("/v1/predict", Asked(kWithoutJob, 8)).contains("learnt"));
  EXPECT_FALSE(test.JsonOf("/v1/predict_batch", batch(kWithoutJob)).contains("learnt"));
  EXPECT_FALSE(test.JsonOf("/v1/recommend", allocations(kWithoutJob)).contains("learnt"));

  // One that another program has begun, and of which it has observed nothing.
  const auto snapshot = test.service.Current();
  const TargetParts parts = snapshot->PartsOf({"gce-t4", "resnet50", ""});
  Fleet fleet(parts.cluster);
  fleet.Add("fresh", parts.workload, parts.facts, parts.device);
  ASSERT_TRUE(test.service.jobs().Import(*snapshot, {FormatFleetRecord(fleet.Export())}).empty());
  EXPECT_EQ(test.JsonOf("/v1/predict", Asked(R"("job":"fresh")", 8))["learnt"], false);
}

// Steps of eight devices do not tell what each computes, of a network that is a size and no more.
TEST(Jobs, AnswersSayWhereComputeIsAPriorStill) {
  TestService test;
  const auto is_prior = [&](const std::string& job, int workers) {
    const TestJson answer = test.JsonOf("/v1/predict", Asked(R"("job":")" + job + '"', workers));
    return std::any_of(answer["flags"].begin(), answer["flags"].end(), [](const TestJson& flag) {
      const auto text = flag.get<std::string>();
      return text.find("compute is in the main a prior, good to a factor of") != std::string::npos;
    });
  };
  test.JsonOf("/v1/observe",
              Steps("mine", "[0.3,0.3,0.3]",
                    R"("cluster":"gce-t4","workload":"mine","parameters":25557032,)"));
  EXPECT_TRUE(is_prior("mine", 8));
  EXPECT_TRUE(is_prior("mine", 1));
  test.JsonOf("/v1/observe",
              R"({"job":"mine","plan":{"workers":1,"local_batch":32,"strategy":"none"},)"
              R"("step_times_s":[0.2,0.2,0.2]})");
  EXPECT_FALSE(is_prior("mine", 1)) << "a step of one device tells";
  EXPECT_FALSE(is_prior("mine", 8));
  test.JsonOf("/v1/observe", Steps("known", "[0.3,0.3,0.3]"));
  EXPECT_FALSE(is_prior("known", 1)) << "its layers tell";
}

// ---- A service that ends, and the next.

TEST(Jobs, GoOnInAnotherService) {
  TestService test;
  test.JsonOf("/v1/observe", Steps("a", "[0.6,0.61,0.59]"));
  test.JsonOf("/v1/end_job", R"({"job":"a"})");
  test.JsonOf("/v1/observe", Steps("b", "[0.6,0.62]"));
  test.JsonOf("/v1/observe",
              Steps("c", "[0.5]", R"("cluster":"gce-t4","workload":"mine","parameters":9000000,)"));
  const std::vector<std::string> texts = test.service.jobs().Export();
  ASSERT_EQ(texts.size(), 1U);

  TestService next;
  EXPECT_TRUE(next.service.jobs().Import(*next.service.Current(), texts).empty());
  EXPECT_EQ(next.Get("/v1/jobs").body, test.Get("/v1/jobs").body);
  for (const TestService* of : {&test, &next}) of->JsonOf("/v1/observe", Steps("b", "[0.58]", ""));
  for (const std::string& body :
       {Steps("b", "[0.61]"), Steps("c", "[0.51]", ""), Steps("d", "[0.6]")}) {
    EXPECT_EQ(next.JsonOf("/v1/observe", body), test.JsonOf("/v1/observe", body)) << body;
  }
  for (const char* job : {R"("job":"b")", R"("job":"c")", R"("job":"d")"}) {
    EXPECT_EQ(next.JsonOf("/v1/predict", Asked(job, 16)),
              test.JsonOf("/v1/predict", Asked(job, 16)));
  }
  EXPECT_EQ(WrongKey(next, Steps("c", "[0.5]", R"("parameters":1,)")), "parameters");
}

TEST(Jobs, OfAnotherClusterAreLeftOut) {
  TestService test;
  test.JsonOf("/v1/observe", Steps("a", "[0.6]"));
  test.JsonOf("/v1/observe",
              R"({"job":"b","cluster":"ec2-g3-ps","workload":"vgg16","plan":{"workers":2,)"
              R"("local_batch":16,"strategy":"ps-sync","servers":1},"step_times_s":[0.9]})");
  std::vector<std::string> texts = test.service.jobs().Export();
  ASSERT_EQ(texts.size(), 2U);

  TestService next([] {
    Inventory inventory = ShippedInventory();
    inventory.clusters.erase(inventory.clusters.begin() + 1);
    return inventory;
  });
  Jobs& jobs = next.service.jobs();
  const std::vector<InputError> left_out = jobs.Import(*next.service.Current(), texts);
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_EQ(left_out[0].value(), "ec2-g3-ps");
  ASSERT_EQ(jobs.List().size(), 1U);
  EXPECT_EQ(jobs.List()[0].job, "a");

  // What is no record is refused, with its line, and nothing is lost.
  const std::string good = texts[1];
  texts[1].pop_back();
  const std::optional<InputError> error =
      ErrorOf([&] { jobs.Import(*next.service.Current(), texts); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().line, 2);
  EXPECT_TRUE(Says(ErrorOf([&] {
                     jobs.Import(*next.service.Current(), {good, good});
                   }),
                   "is there twice"));
  EXPECT_EQ(jobs.List().size(), 1U);
}

// A line of a fleet in which nobody has learnt anything is short, and tells of a whole cluster.
TEST(Jobs, ManyLinesTakeLittleTime) {
  TestService test;
  FleetRecord record;
  record.cluster = "gce-t4";
  const std::string line = FormatFleetRecord(record);
  const std::vector<std::string> lines(1'000'000 / line.size(), line);
  constexpr double kMostSeconds = 2;
  const std::clock_t begun = std::clock();
  EXPECT_TRUE(test.service.jobs().Import(*test.service.Current(), lines).empty());
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, kMostSeconds);
  EXPECT_EQ(test.service.jobs().Export(), std::vector<std::string>{line});
}

// ---- Many threads.

TEST(Jobs, AreAskedWhileOthersObserve) {
  TestService test;
  test.JsonOf("/v1/observe", Steps("asked", "[0.3]"));
  std::atomic<bool> over{false};
  std::atomic<int> answers{0};
  std::thread asks([&] {
    while (!over) {
      const Reply reply = test.Post("/v1/predict", Asked(R"("job":"asked")", 8));
      if (reply.status == 200) ++answers;
    }
  });
  std::vector<std::thread> observers;
  for (const char* name : {"a", "b", "asked"}) {
    observers.emplace_back([&test, name] {
      for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(test.Post("/v1/observe", Steps(name, "[0.31,0.29]")).status, 200);
        // Jobs of the same name come and go.
        if (i % 10 == 9) test.Post("/v1/end_job", R"({"job":"b"})");
        test.Get("/v1/jobs");
      }
    });
  }
  for (std::thread& thread : observers) thread.join();
  over = true;
  asks.join();
  EXPECT_GT(answers, 0);
  const TestJson jobs = TestJson::parse(test.Get("/v1/jobs").body)["jobs"];
  EXPECT_EQ(jobs[0]["steps"], 80);
  EXPECT_EQ(jobs[1]["steps"], 81);
}

}  // namespace
}  // namespace stepcast::serve
