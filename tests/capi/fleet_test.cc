// Fleets of the C interface, as a scheduler uses them: what the C++ ones learn and say.
#include "calibrate/online/fleet.h"

#include <gtest/gtest.h>
#include <stepcast.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "data/io/fleet_record.h"
#include "tests/capi/support.h"

namespace stepcast {
namespace {

FleetHandle NewFleet() {
  const ClusterHandle cluster = FittedClusterHandle();
  return Get<FleetHandle>([&](stepcast_fleet** made, char** error) {
    return stepcast_fleet_create(cluster.get(), made, error);
  });
}

OnlineHandle AddJob(const FleetHandle& fleet, const char* job, const char* workload) {
  const WorkloadHandle of = FindWorkloadHandle(workload);
  return Get<OnlineHandle>([&](stepcast_online** made, char** error) {
    return stepcast_fleet_add(fleet.get(), job, of.get(), nullptr, made, error);
  });
}

OnlineHandle JobOf(const FleetHandle& fleet, const char* job) {
  return Get<OnlineHandle>([&](stepcast_online** made, char** error) {
    return stepcast_fleet_job(fleet.get(), job, made, error);
  });
}

std::vector<std::string> JobsOf(const FleetHandle& fleet) {
  std::size_t count = 0;
  const char* const* jobs = stepcast_fleet_jobs(fleet.get(), &count);
  return {jobs, jobs + count};
}

Text Exported(const FleetHandle& fleet) {
  char* text = nullptr;
  EXPECT_EQ(stepcast_fleet_export(fleet.get(), &text, nullptr), STEPCAST_OK);
  return Text(text);
}

// Devices, nodes and local batch of steps that a job has.
struct Step {
  const char* placement;
  std::vector<int> devices;
  int batch;
  double seconds;
};

const std::vector<Step>& Steps() {
  static const std::vector<Step> steps = {{"1", {1}, 16, 0.2},
                                          {"1", {1}, 32, 0.35},
                                          {"4", {4}, 32, 0.42},
                                          {"2-2", {2, 2}, 32, 0.6},
                                          {"4-4", {4, 4}, 16, 0.5}};
  return steps;
}

PlanHandle PlanHandleOf(const Step& step) {
  PlanHandle plan = NewPlan();
  SetText(plan, "placement", step.placement);
  SetText(plan, "strategy", "ring");
  SetNumber(plan, "local_batch", step.batch);
  return plan;
}

Plan PlanOf(const Step& step) {
  Plan plan;
  plan.placement = Placement(step.devices);
  plan.strategy = Strategy::kRing;
  plan.local_batch = step.batch;
  return plan;
}

// The same steps in C and in C++, which say the same of each.
void ObserveSteps(const OnlineHandle& c, OnlineCalibration* cpp, int rounds = 4) {
  for (int round = 0; round < rounds; ++round) {
    for (const Step& step : Steps()) {
      const double seconds = step.seconds * (1 + 0.01 * round);
      auto said = Sized<stepcast_observation>();
      ASSERT_EQ(stepcast_online_observe(c.get(), PlanHandleOf(step).get(), seconds, &said, nullptr),
                STEPCAST_OK);
      const Observation expected = cpp->Observe(PlanOf(step), Seconds(seconds));
      ASSERT_PRED2(SameBits, said.predicted_s, expected.predicted.si());
      ASSERT_EQ(said.rows, cpp->rows());
    }
  }
}

// The job's step as a compiled plan has it: from what it has learnt itself.
double StepOf(const OnlineHandle& job, const Step& step) {
  const auto predictor = Get<PredictorHandle>([&](stepcast_predictor** made, char** error) {
    return stepcast_online_predictor(job.get(), made, error);
  });
  const CompiledHandle compiled = Compile(predictor, PlanHandleOf(step));
  auto query = Sized<stepcast_query>();
  EXPECT_EQ(stepcast_compiled_get_query(compiled.get(), &query), STEPCAST_OK);
  return stepcast_compiled_step_time_s(compiled.get(), &query);
}

double StepOf(const OnlineCalibration& job, const Step& step) {
  const Predictor predictor(job.cluster(), job.workload(), job.facts(), job.device());
  const CompiledPlan compiled(predictor, PlanOf(step));
  return compiled.StepTime(QueryOf(compiled.plan())).si();
}

double ErrorOf(const OnlineHandle& job) {
  double sum = 0;
  for (const Step& step : Steps()) sum += std::abs(std::log(StepOf(job, step) / step.seconds));
  return sum / static_cast<double>(Steps().size());
}

// A scheduler's day: jobs come, learn, end, and teach the next.
TEST(CapiFleet, SchedulesAsTheOtherDoes) {
  const FleetHandle fleet = NewFleet();
  const Cluster cluster = FittedCluster();
  Fleet cpp(cluster);
  const OnlineHandle first = AddJob(fleet, "first", "mlp_mnist");
  const auto cpp_first = cpp.Add("first", *FindWorkload("mlp_mnist"), cluster.device_facts);
  const double before = ErrorOf(first);
  ObserveSteps(first, cpp_first.get());
  const double after = ErrorOf(first);
  EXPECT_LT(after, 0.25 * before);
  for (const Step& step : Steps()) {
    EXPECT_PRED2(SameBits, StepOf(first, step), StepOf(*cpp_first, step)) << step.placement;
  }
  EXPECT_EQ(JobsOf(fleet), std::vector<std::string>{"first"});

  // One that waits is forecast by what the first has learnt, which may run or be over.
  const WorkloadHandle workload = FindWorkloadHandle("mlp_mnist");
  for (const bool over : {false, true}) {
    if (over) {
      ASSERT_EQ(stepcast_fleet_end(fleet.get(), "first", nullptr), STEPCAST_OK);
      cpp.End("first");
    }
    const auto waiting = Get<ClusterHandle>([&](stepcast_cluster** made, char** error) {
      return stepcast_fleet_cluster(fleet.get(), workload.get(), nullptr, made, error);
    });
    char* text = nullptr;
    ASSERT_EQ(stepcast_cluster_format(waiting.get(), &text, nullptr), STEPCAST_OK);
    const Text owned(text);
    EXPECT_EQ(std::string(text),
              FormatCluster(cpp.ClusterFor(*FindWorkload("mlp_mnist"), cluster.device_facts)));
  }
  EXPECT_TRUE(JobsOf(fleet).empty());
  const OnlineHandle second = AddJob(fleet, "second", "mlp_mnist");
  const auto cpp_second = cpp.Add("second", *FindWorkload("mlp_mnist"), cluster.device_facts);
  EXPECT_EQ(stepcast_online_rows(second.get()), 0);
  EXPECT_LT(ErrorOf(second), 0.4 * before) << "the first has taught it";
  for (const Step& step : Steps()) {
    EXPECT_PRED2(SameBits, StepOf(second, step), StepOf(*cpp_second, step)) << step.placement;
  }
  EXPECT_EQ(stepcast_online_rows(first.get()), 20) << "who has a handle goes on with it";
  EXPECT_STREQ(Exported(fleet).get(), FormatFleetRecord(cpp.Export()).c_str());
}

TEST(CapiFleet, GoesOutAndIn) {
  const FleetHandle fleet = NewFleet();
  Fleet cpp(FittedCluster());
  const auto facts = FittedCluster().device_facts;
  ObserveSteps(AddJob(fleet, "over", "resnet50"),
               cpp.Add("over", *FindWorkload("resnet50"), facts).get(), 1);
  ASSERT_EQ(stepcast_fleet_end(fleet.get(), "over", nullptr), STEPCAST_OK);
  cpp.End("over");
  const OnlineHandle job = AddJob(fleet, "running", "mlp_mnist");
  const auto cpp_job = cpp.Add("running", *FindWorkload("mlp_mnist"), facts);
  ObserveSteps(job, cpp_job.get(), 1);

  const Text text = Exported(fleet);
  const FleetHandle again = NewFleet();
  const OnlineHandle old = AddJob(again, "old", "resnet50");
  ExpectWorks([&](char** error) { return stepcast_fleet_import(again.get(), text.get(), error); });
  EXPECT_EQ(JobsOf(again), std::vector<std::string>{"running"});
  EXPECT_STREQ(Exported(again).get(), text.get());
  // It goes on as the first would have, and so do its jobs, whose workload the text has.
  const OnlineHandle read = JobOf(again, "running");
  ObserveSteps(read, cpp_job.get(), 2);
  EXPECT_PRED2(SameBits, StepOf(read, Steps()[3]), StepOf(*cpp_job, Steps()[3]));
  EXPECT_STREQ(Exported(again).get(), FormatFleetRecord(cpp.Export()).c_str());
  // The handle of a job that was there before is none of the fleet's any more.
  ASSERT_EQ(stepcast_online_observe(old.get(), PlanHandleOf(Steps()[0]).get(), 1, nullptr, nullptr),
            STEPCAST_OK);
  EXPECT_STREQ(Exported(again).get(), FormatFleetRecord(cpp.Export()).c_str());
}

TEST(CapiFleet, NamesItsJobs) {
  const FleetHandle fleet = NewFleet();
  EXPECT_TRUE(JobsOf(fleet).empty());
  for (const char* job : {"b", "a, a", "c d"}) AddJob(fleet, job, "mlp_mnist");
  EXPECT_EQ(JobsOf(fleet), (std::vector<std::string>{"a, a", "b", "c d"}));
  ASSERT_EQ(stepcast_fleet_remove(fleet.get(), "a, a", nullptr), STEPCAST_OK);
  ASSERT_EQ(stepcast_fleet_end(fleet.get(), "c d", nullptr), STEPCAST_OK);
  EXPECT_EQ(JobsOf(fleet), std::vector<std::string>{"b"});
  // Two handles of one job are one calibration.
  const OnlineHandle one = JobOf(fleet, "b");
  const OnlineHandle other = JobOf(fleet, "b");
  ASSERT_EQ(stepcast_online_observe(one.get(), PlanHandleOf(Steps()[0]).get(), 1, nullptr, nullptr),
            STEPCAST_OK);
  EXPECT_EQ(stepcast_online_rows(other.get()), 1);
}

// A job that is removed is not one that has ended: the next one begins without what it has seen.
TEST(CapiFleet, ForgetsWhatARemovedJobHasTaught) {
  const FleetHandle fleet = NewFleet();
  Fleet cpp(FittedCluster());
  const auto facts = FittedCluster().device_facts;
  ObserveSteps(AddJob(fleet, "a", "mlp_mnist"),
               cpp.Add("a", *FindWorkload("mlp_mnist"), facts).get(), 1);
  const FleetHandle ended = NewFleet();
  ExpectWorks([&](char** error) {
    return stepcast_fleet_import(ended.get(), Exported(fleet).get(), error);
  });
  ASSERT_EQ(stepcast_fleet_end(ended.get(), "a", nullptr), STEPCAST_OK);
  ASSERT_EQ(stepcast_fleet_remove(fleet.get(), "a", nullptr), STEPCAST_OK);
  cpp.Remove("a");
  EXPECT_STREQ(Exported(fleet).get(), FormatFleetRecord(cpp.Export()).c_str());
  EXPECT_STRNE(Exported(fleet).get(), Exported(ended).get());
}

TEST(CapiFleet, AJobOutlivesIt) {
  OnlineHandle job;
  {
    const FleetHandle fleet = NewFleet();
    job = AddJob(fleet, "a", "mlp_mnist");
  }
  EXPECT_EQ(stepcast_online_observe(job.get(), PlanHandleOf(Steps()[0]).get(), 1, nullptr, nullptr),
            STEPCAST_OK);
  EXPECT_EQ(stepcast_online_rows(job.get()), 1);
}

TEST(CapiFleet, AnswersManyThreadsAtOnce) {
  const FleetHandle fleet = NewFleet();
  Fleet cpp(FittedCluster());
  ObserveSteps(AddJob(fleet, "a", "mlp_mnist"),
               cpp.Add("a", *FindWorkload("mlp_mnist"), FittedCluster().device_facts).get(), 2);
  const std::string text = Exported(fleet).get();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        char* said = nullptr;
        stepcast_cluster* cluster = nullptr;
        stepcast_online* job = nullptr;
        stepcast_fleet_cluster(fleet.get(), workload.get(), nullptr, &cluster, nullptr);
        stepcast_fleet_job(fleet.get(), "a", &job, nullptr);
        const ClusterHandle start(cluster);
        const OnlineHandle online(job);
        const bool exported = stepcast_fleet_export(fleet.get(), &said, nullptr) == STEPCAST_OK;
        const Text owned(said);
        if (exported && said == text && start && stepcast_online_rows(job) == 10) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 5));
}

TEST(CapiFleet, RefusesWhatIsNone) {
  const FleetHandle fleet = NewFleet();
  AddJob(fleet, "a", "mlp_mnist");
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  stepcast_online* online = nullptr;
  const auto add = [&](const char* job, const stepcast_workload* of) {
    return [&fleet, &online, job, of](char** error) {
      return stepcast_fleet_add(fleet.get(), job, of, nullptr, &online, error);
    };
  };
  const std::string text = Exported(fleet).get();
  ExpectFails(STEPCAST_BAD_INPUT, "running already", add("a", workload.get()));
  ExpectFails(STEPCAST_BAD_INPUT, "is empty", add("", workload.get()));
  ExpectFails(STEPCAST_BAD_INPUT, "is not UTF-8", add("\xff", workload.get()));
  ExpectFails(STEPCAST_BAD_INPUT, "is too long",
              add(std::string(1001, 'n').c_str(), workload.get()));
  const auto other = Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
    return stepcast_workload_from_totals("mlp_mnist", 1000, 0, made, error);
  });
  ExpectFails(STEPCAST_BAD_INPUT, "has other gradients", add("b", other.get()));
  EXPECT_EQ(online, nullptr);
  ExpectFails(STEPCAST_NOT_FOUND, "allowed: a",
              [&](char** error) { return stepcast_fleet_job(fleet.get(), "b", &online, error); });
  ExpectFails(STEPCAST_NOT_FOUND, "is not running",
              [&](char** error) { return stepcast_fleet_end(fleet.get(), "b", error); });
  ExpectFails(STEPCAST_NOT_FOUND, "is not running",
              [&](char** error) { return stepcast_fleet_remove(fleet.get(), "b", error); });
  for (const char* bad : {"", "{", "[]", "{\"version\": 99}", "fleet"}) {
    ExpectFails(STEPCAST_BAD_INPUT, "",
                [&](char** error) { return stepcast_fleet_import(fleet.get(), bad, error); });
  }
  EXPECT_EQ(JobsOf(fleet), std::vector<std::string>{"a"});
  EXPECT_EQ(std::string(Exported(fleet).get()), text) << "nothing has changed";
}

TEST(CapiFleet, RefusesNull) {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  const FleetHandle fleet = NewFleet();
  stepcast_fleet* made = nullptr;
  stepcast_online* online = nullptr;
  stepcast_cluster* start = nullptr;
  stepcast_predictor* predictor = nullptr;
  char* text = nullptr;
  const auto fails = [](const char* what, const auto& call) {
    ExpectFails(STEPCAST_BAD_ARGUMENT, std::string(what) + " is NULL", call);
  };
  fails("cluster", [&](char** e) { return stepcast_fleet_create(nullptr, &made, e); });
  fails("result", [&](char** e) { return stepcast_fleet_create(cluster.get(), nullptr, e); });
  fails("fleet", [&](char** e) {
    return stepcast_fleet_add(nullptr, "a", workload.get(), nullptr, &online, e);
  });
  fails("job", [&](char** e) {
    return stepcast_fleet_add(fleet.get(), nullptr, workload.get(), nullptr, &online, e);
  });
  fails("workload", [&](char** e) {
    return stepcast_fleet_add(fleet.get(), "a", nullptr, nullptr, &online, e);
  });
  fails("result", [&](char** e) {
    return stepcast_fleet_add(fleet.get(), "a", workload.get(), nullptr, nullptr, e);
  });
  EXPECT_TRUE(JobsOf(fleet).empty()) << "a job without a handle would be nobody's";
  fails("fleet", [&](char** e) { return stepcast_fleet_job(nullptr, "a", &online, e); });
  fails("job", [&](char** e) { return stepcast_fleet_job(fleet.get(), nullptr, &online, e); });
  fails("fleet", [&](char** e) { return stepcast_fleet_end(nullptr, "a", e); });
  fails("job", [&](char** e) { return stepcast_fleet_end(fleet.get(), nullptr, e); });
  fails("fleet", [&](char** e) { return stepcast_fleet_remove(nullptr, "a", e); });
  fails("job", [&](char** e) { return stepcast_fleet_remove(fleet.get(), nullptr, e); });
  fails("fleet", [&](char** e) {
    return stepcast_fleet_cluster(nullptr, workload.get(), nullptr, &start, e);
  });
  fails("workload",
        [&](char** e) { return stepcast_fleet_cluster(fleet.get(), nullptr, nullptr, &start, e); });
  fails("fleet", [&](char** e) { return stepcast_fleet_export(nullptr, &text, e); });
  fails("result", [&](char** e) { return stepcast_fleet_export(fleet.get(), nullptr, e); });
  fails("fleet", [&](char** e) { return stepcast_fleet_import(nullptr, "{}", e); });
  fails("text", [&](char** e) { return stepcast_fleet_import(fleet.get(), nullptr, e); });
  fails("online", [&](char** e) { return stepcast_online_predictor(nullptr, &predictor, e); });
  std::size_t count = 1;
  EXPECT_EQ(stepcast_fleet_jobs(nullptr, &count), nullptr);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(stepcast_fleet_jobs(fleet.get(), nullptr), nullptr);
  stepcast_fleet_free(nullptr);
}

}  // namespace
}  // namespace stepcast
