// A fleet: what jobs teach the next one, and what they keep to themselves.
#include "calibrate/online/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/workloads/catalog.h"
#include "model/step/parameter_specs.h"
#include "predictor/predictor.h"
#include "tests/calibrate/adaptdl_traces.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Row = Run;  // inside a TEST, Run is a member of GoogleTest's class
using Runs = std::vector<Row>;

const Placement kPlacements[] = {{1}, {2}, {4}, {1, 1}, {2, 2}, {4, 4}, {1, 1, 1}, {4, 4, 4, 4}};

Runs SomeRows(const std::string& workload, std::size_t rows, std::uint64_t seed = 1) {
  SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(seed);
  for (std::size_t i = 0; i < rows; ++i) {
    const Plan plan = AllreducePlan(kPlacements[i % std::size(kPlacements)], i % 3 == 0 ? 16 : 32);
    synthetic.Add(workload, plan, 0.03 * noise.Next());
  }
  return synthetic.problem().runs;
}

std::shared_ptr<OnlineCalibration> Add(const std::string& job, const std::string& workload,
                                       Fleet* fleet) {
  return fleet->Add(job, *FindWorkload(workload), T4());
}

void ObserveAll(const Runs& rows, OnlineCalibration* job) {
  for (const Row& row : rows) job->Observe(row.plan, row.step_time);
}

// A job that has run and is over.
void RunOne(const std::string& job, const std::string& workload, Fleet* fleet,
            std::uint64_t seed = 1) {
  ObserveAll(SomeRows(workload, 40, seed), Add(job, workload, fleet).get());
  fleet->End(job);
}

// Mean error of what a cluster forecasts for the true steps of a workload.
double ErrorOf(const Cluster& cluster, const std::string& workload) {
  const Predictor predictor(cluster, *FindWorkload(workload), T4());
  SyntheticProblem truth(PlausibleTruth());
  for (const Placement& placement : kPlacements)
    truth.Add(workload, AllreducePlan(placement, 32), 0);
  double sum = 0;
  for (const Row& row : truth.problem().runs) {
    sum += std::abs(predictor.Predict(row.plan).step_time / row.step_time - 1);
  }
  return sum / static_cast<double>(std::size(kPlacements));
}

const ParameterEstimate& EstimateOf(const Cluster& cluster, const std::string& name) {
  const auto at = static_cast<std::size_t>(*cluster.calibration->Find(kClusterScope, name));
  return cluster.calibration->parameters[at];
}

double LogSdOf(const Cluster& cluster, const std::string& name) {
  return EstimateOf(cluster, name).log_sd;
}

std::string TextOf(const OnlineCalibration& job) { return FormatOnlineRecord(job.Export()); }

TEST(Fleet, AJobAloneIsAnOnlineCalibration) {
  Fleet fleet(SyntheticCluster());
  const auto job = Add("job", "resnet50", &fleet);
  OnlineCalibration alone(SyntheticCluster(), *FindWorkload("resnet50"), T4());
  const Runs rows = SomeRows("resnet50", 30);
  ObserveAll(rows, job.get());
  ObserveAll(rows, &alone);
  EXPECT_EQ(TextOf(*job), TextOf(alone));
}

TEST(Fleet, AJobOfAKnownWorkloadBeginsWithWhatItsLikeHaveLearnt) {
  Fleet fleet(SyntheticCluster());
  const double before = ErrorOf(fleet.ClusterFor(*FindWorkload("resnet50"), T4()), "resnet50");
  RunOne("first", "resnet50", &fleet);
  const double after = ErrorOf(fleet.ClusterFor(*FindWorkload("resnet50"), T4()), "resnet50");
  std::printf(
      "[ measured ] a job of a known workload is forecast %.1f %% off, and %.1f %% of an "
      "unknown one, before its first step\n",
      100 * after, 100 * before);
  EXPECT_LT(after, 0.04);
  EXPECT_GT(before, 3 * after);
}

// What a job has taught counts once: the next of its workload, which may differ a little, is known
// no better than the first itself.
TEST(Fleet, TheNextJobIsKnownNoBetterThanTheFirst) {
  Fleet fleet(SyntheticCluster());
  const auto first = Add("first", "resnet50", &fleet);
  ObserveAll(SomeRows("resnet50", 40), first.get());
  const Cluster own = first->cluster();
  fleet.End("first");
  const Cluster next = fleet.ClusterFor(*FindWorkload("resnet50"), T4());
  for (const ParameterSpec& spec : kClusterParameterSpecs) {
    const std::string name(spec.name);
    EXPECT_GT(LogSdOf(next, name), 0.98 * LogSdOf(own, name)) << name;
  }
}

TEST(Fleet, OneWorkloadTellsAnotherOfTheClusterAlone) {
  Fleet fleet(SyntheticCluster());
  const Cluster untaught = fleet.ClusterFor(*FindWorkload("bert_base"), T4());
  RunOne("first", "resnet50", &fleet);
  const Cluster taught = fleet.ClusterFor(*FindWorkload("bert_base"), T4());
  EXPECT_FALSE(untaught.calibration);
  const Truth truth = PlausibleTruth();
  for (const char* name : {"flow_bandwidth", "overlap_share"}) {
    const ParameterEstimate& e = EstimateOf(taught, name);
    EXPECT_LT(e.log_sd, 0.9 * e.prior_log_sd) << name;
    EXPECT_LT(std::abs(std::log(e.value / truth.ValueOf(e))),
              std::abs(std::log(FindParameterSpec(name)->prior / truth.ValueOf(e))))
        << name;
  }
  for (const ParameterEstimate& e : taught.calibration->parameters) {
    EXPECT_EQ(e.scope, kClusterScope) << e.name;
  }
}

// A file that was fitted holds for all workloads: what one of them teaches makes it no less certain
// for the next, and one row no more.
TEST(Fleet, WhatTheFileKnowsStaysKnown) {
  OnlineCalibration fitted(SyntheticCluster(), *FindWorkload("resnet50"), T4());
  ObserveAll(SomeRows("resnet50", 60), &fitted);
  const Cluster file = fitted.cluster();
  Fleet fleet(file);
  ObserveAll(SomeRows("bert_base", 1), Add("other", "bert_base", &fleet).get());
  const Cluster next = fleet.ClusterFor(*FindWorkload("vgg16"), T4());
  for (const ParameterSpec& spec : kClusterParameterSpecs) {
    const std::string name(spec.name);
    EXPECT_LT(LogSdOf(next, name), 1.05 * LogSdOf(file, name)) << name;
    EXPECT_GT(LogSdOf(next, name), 0.9 * LogSdOf(file, name)) << name;
  }
  EXPECT_LT(LogSdOf(file, "flow_bandwidth"), 0.5 * EstimateOf(file, "flow_bandwidth").prior_log_sd);
}

// What the file knows of the cluster is the same for all workloads: rows of one make another one
// surer of it, and no surer than the one that they are of.
TEST(Fleet, WhatTheFileKnowsIsLearntForAllWorkloads) {
  const Cluster file = CalibratedCluster(PlausibleTruth(), 0.2);
  Fleet fleet(file);
  const auto other = Add("other", "bert_base", &fleet);
  ObserveAll(SomeRows("bert_base", 40), other.get());
  const Cluster own = other->cluster();
  const Cluster next = fleet.ClusterFor(*FindWorkload("vgg16"), T4());
  for (const ParameterSpec& spec : kClusterParameterSpecs) {
    const std::string name(spec.name);
    EXPECT_GT(LogSdOf(next, name), 0.95 * LogSdOf(own, name)) << name;
    EXPECT_LE(LogSdOf(next, name), LogSdOf(file, name) + 1e-9) << name;
  }
  EXPECT_LT(LogSdOf(next, "flow_bandwidth"), 0.7 * LogSdOf(file, "flow_bandwidth"));
}

TEST(Fleet, WhatNoRowHasToldOfIsAsItWas) {
  Fleet fleet(SyntheticCluster());
  RunOne("first", "resnet50", &fleet);
  for (const char* workload : {"resnet50", "bert_base"}) {
    const Cluster cluster = fleet.ClusterFor(*FindWorkload(workload), T4());
    for (const char* name : {"rdma_latency", "server_rate", "mesh_share"}) {
      const ParameterEstimate& e = EstimateOf(cluster, name);
      const ParameterSpec& spec = *FindParameterSpec(name);
      EXPECT_NEAR(e.value, spec.prior, 1e-9 * spec.prior) << name;
      EXPECT_NEAR(e.log_sd, spec.prior_log_sd, 0.01) << name;  // W
      EXPECT_NEAR(e.prior_log_sd, spec.prior_log_sd, 1e-9) << name;
      EXPECT_EQ(e.decided_by, DecidedBy::kPrior) << name;
    }
  }
}

// What a workload's jobs have in common is its own: however many there are, another workload
// differs from it as much as from one of them.
TEST(Fleet, ManyJobsOfOneWorkloadDoNotSettleTheCluster) {
  Fleet fleet(SyntheticCluster());
  for (int i = 0; i < 30; ++i) RunOne("job", "resnet50", &fleet, 1 + i);
  const Cluster other = fleet.ClusterFor(*FindWorkload("bert_base"), T4());
  const Cluster same = fleet.ClusterFor(*FindWorkload("resnet50"), T4());
  for (const char* name : {"host_bandwidth", "flow_bandwidth", "overlap_share"}) {
    const double between = std::sqrt(1.0 / 3) * FindParameterSpec(name)->prior_log_sd;  // T^(1/2)
    EXPECT_GT(LogSdOf(other, name), between) << name;
    EXPECT_LT(LogSdOf(same, name), LogSdOf(other, name)) << name;
  }
  EXPECT_LT(ErrorOf(same, "resnet50"), 0.03);
}

TEST(Fleet, JobsThatRunTeachAsThoseThatAreOver) {
  Fleet fleet(SyntheticCluster());
  ObserveAll(SomeRows("resnet50", 40), Add("a", "resnet50", &fleet).get());
  ObserveAll(SomeRows("resnet18_cifar10", 40), Add("b", "resnet18_cifar10", &fleet).get());
  const Cluster running = fleet.ClusterFor(*FindWorkload("bert_base"), T4());
  fleet.End("b");
  fleet.End("a");
  const Cluster over = fleet.ClusterFor(*FindWorkload("bert_base"), T4());
  ASSERT_EQ(running.calibration->parameters.size(), over.calibration->parameters.size());
  for (std::size_t i = 0; i < over.calibration->parameters.size(); ++i) {
    const ParameterEstimate& one = running.calibration->parameters[i];
    const ParameterEstimate& other = over.calibration->parameters[i];
    EXPECT_NEAR(one.value / other.value, 1, 1e-9) << one.name;
    EXPECT_NEAR(one.log_sd, other.log_sd, 1e-9) << one.name;
  }
  EXPECT_EQ(running.calibration->range.max_workers, 16);
  EXPECT_EQ(over.calibration->range.max_workers, 16);
  EXPECT_EQ(over.calibration->sources.back().runs, 80);
}

// Each of some jobs of a workload of its own kind of rows: some on one device, more on some nodes.
struct RandomJobs {
  SyntheticProblem truth;
  std::vector<Runs> jobs;
  std::vector<Plan> plans;  // of all their rows

  RandomJobs(int count, std::uint64_t seed) : truth(Draw(seed)) {
    std::mt19937_64 random(seed);
    Noise noise(seed);
    const auto any = [&](auto... of) {
      const std::array values{of...};
      return values[random() % values.size()];
    };
    for (int i = 0; i < count; ++i) {
      const auto add = [&](int nodes, int rows) {
        Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), any(16, 32, 64));
        plan.accumulation_steps = nodes == 1 ? 1 : any(1, 1, 2);
        plan.overlap = Overlap::kNone;
        plans.push_back(plan);
        for (int row = 0; row < rows; ++row) truth.Add("resnet50", plan, 0.03 * noise.Next());
      };
      const std::size_t before = truth.problem().runs.size();
      add(1, 3);
      add(any(2, 4, 8), 8);
      const Runs& runs = truth.problem().runs;
      jobs.emplace_back(runs.begin() + static_cast<std::ptrdiff_t>(before), runs.end());
    }
  }

  // |ln(forecast / truth)| of what a fleet tells a next job of the plans.
  void Judge(const Fleet& fleet, std::vector<double>* errors) const {
    const Workload workload = *FindWorkload("resnet50");
    const Predictor predictor(fleet.ClusterFor(workload, T4()), workload, T4());
    for (const Plan& plan : plans) {
      errors->push_back(std::abs(
          std::log(predictor.PredictStep(plan).total() / truth.TrueStep("resnet50", plan))));
    }
  }

 private:
  static Truth Draw(std::uint64_t seed) {
    Noise noise(100 + seed);
    Truth truth = PlausibleTruth();
    for (const int rate : {kLinkBandwidth, kFlowBandwidth}) {
      truth.cluster.si[static_cast<std::size_t>(rate)] *= std::exp(0.6 * noise.Next());
    }
    const double speed = std::exp(0.3 * noise.Next());
    for (const int time : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
      truth.workloads.at("resnet50").si[static_cast<std::size_t>(time)] *= speed;
    }
    return truth;
  }
};

// Jobs of one workload that run at once have each learnt what all of them know, and explain it each
// in its own way. The next is told as well as by the same jobs in their turn.
TEST(Fleet, JobsAtOnceTeachAsWellAsInTheirTurn) {
  for (const int jobs : {2, 3, 5}) {
    std::map<std::string, std::vector<double>> errors;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const RandomJobs random(jobs, seed);
      Fleet at_once(SyntheticCluster());
      Fleet in_turn(SyntheticCluster());
      for (int i = 0; i < jobs; ++i) Add(std::to_string(i), "resnet50", &at_once);
      for (int i = 0; i < jobs; ++i) {
        const std::string job = std::to_string(i);
        ObserveAll(random.jobs[static_cast<std::size_t>(i)], at_once.Job(job).get());
        ObserveAll(random.jobs[static_cast<std::size_t>(i)], Add(job, "resnet50", &in_turn).get());
        in_turn.End(job);
      }
      random.Judge(in_turn, &errors["in their turn"]);
      random.Judge(at_once, &errors["at once"]);
      for (int i = 0; i < jobs; ++i) at_once.End(std::to_string(i));
      random.Judge(at_once, &errors["at once, and over"]);
    }
    std::map<std::string, double> means;
    for (auto& [when, of] : errors) {
      means[when] = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
      const double most = *std::max_element(of.begin(), of.end());
      std::printf(
          "[ measured ] %d jobs %s: the next is told %.1f %% off on average, %.0f %% at most\n",
          jobs, when.c_str(), 100 * means[when], 100 * std::expm1(most));
      EXPECT_LT(most, std::log(2)) << jobs << " " << when;
    }
    for (const char* when : {"at once", "at once, and over"}) {
      EXPECT_LT(means[when], 1.1 * means["in their turn"] + 0.002) << jobs << " " << when;
    }
  }
}

// Times are a workload's own: those of another are no part of what is learnt of the cluster.
TEST(Fleet, EachWorkloadKeepsItsOwnTimes) {
  Fleet fleet(SyntheticCluster());
  RunOne("first", "resnet50", &fleet);
  RunOne("second", "bert_base", &fleet);
  for (const char* workload : {"resnet50", "bert_base"}) {
    const Cluster cluster = fleet.ClusterFor(*FindWorkload(workload), T4());
    EXPECT_LT(ErrorOf(cluster, workload), 0.08) << workload;
    EXPECT_EQ(cluster.calibration->sources.back().runs, 80) << workload;
  }
}

TEST(Fleet, TheSmallestBatchIsThatOfAnyJob) {
  Fleet fleet(SyntheticCluster());
  const auto large = Add("large", "resnet50", &fleet);
  const auto small = Add("small", "resnet50", &fleet);
  const auto observe = [](int batch, OnlineCalibration* job) {
    SyntheticProblem synthetic(PlausibleTruth());
    synthetic.Add("resnet50", AllreducePlan({1}, batch), 0);
    ObserveAll(synthetic.problem().runs, job);
  };
  observe(32, large.get());
  observe(8, small.get());
  for (const char* job : {"large", "small"}) fleet.End(job);
  EXPECT_EQ(fleet.Export().taught.at(0).state.smallest_batch, 8);
}

// What a cluster's file states of hosts' links is one parameter to all jobs, those too that began
// with a calibration of it.
TEST(Fleet, JobsTeachOfTheLinkOfAHost) {
  Cluster cluster = SyntheticCluster();
  AddHosts({"a", "b", "c"}, GigabitsPerSecond(4.0), &cluster);
  Truth truth = PlausibleTruth();
  truth.host_links = {
      {"a", GigabitsPerSecond(4.0)}, {"b", GigabitsPerSecond(1.0)}, {"c", GigabitsPerSecond(4.0)}};
  const auto link_of_b = [](const Cluster& learnt) -> const ParameterEstimate& {
    const std::optional<int> at =
        learnt.calibration->Find(kHostsScopePrefix + std::string("b"), "link_bandwidth");
    return learnt.calibration->parameters.at(static_cast<std::size_t>(at.value()));
  };
  Fleet fleet(cluster);
  double log_sd = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto job = Add("job", "resnet50", &fleet);
    SyntheticProblem synthetic(truth);
    Noise noise(1 + i);
    for (int row = 0; row < 12; ++row) {
      Plan plan = AllreducePlan(row % 3 == 0 ? Placement{1} : Placement{1, 1}, 32);
      if (row % 3 != 0) plan.hosts = {row % 3 == 1 ? "a" : "b", "c"};
      synthetic.Add("resnet50", plan, 0.03 * noise.Next());
    }
    ObserveAll(synthetic.problem().runs, job.get());
    fleet.End("job");
    const Cluster next = fleet.ClusterFor(*FindWorkload("resnet50"), T4());
    const ParameterEstimate& link = link_of_b(next);
    EXPECT_NEAR(link.value, 1, 0.15) << i;
    EXPECT_LT(link.log_sd, log_sd) << i;
    log_sd = link.log_sd;
    // A link is the cluster's, whatever trains on it.
    EXPECT_NEAR(link_of_b(fleet.ClusterFor(*FindWorkload("vgg16"), T4())).value, 1, 0.15) << i;
  }
}

// A cluster that has changed is not forecast for ever as the mean of what it was and is: the first
// job that finds it so learns it, and those that come after begin there.
TEST(Fleet, AClusterThatHasChangedIsLearntAnew) {
  Truth slow = PlausibleTruth();
  slow.cluster.si[kLinkBandwidth] /= 3;
  slow.cluster.si[kFlowBandwidth] /= 3;
  const auto error = [&](const Cluster& learnt, const Truth& truth) {
    const Predictor predictor(learnt, *FindWorkload("resnet50"), T4());
    SyntheticProblem synthetic(truth);
    double sum = 0;
    for (const Placement& placement : kPlacements) {
      const Plan plan = AllreducePlan(placement, 32);
      sum +=
          std::abs(predictor.PredictStep(plan).total() / synthetic.TrueStep("resnet50", plan) - 1);
    }
    return sum / static_cast<double>(std::size(kPlacements));
  };
  Fleet fleet(SyntheticCluster());
  for (int i = 0; i < 5; ++i) {
    const Truth& truth = i < 2 ? PlausibleTruth() : slow;
    const auto job = Add("job", "resnet50", &fleet);
    const double at_first = error(job->cluster(), truth);
    SyntheticProblem synthetic(truth);
    Noise noise(1 + i);
    for (int row = 0; row < 60; ++row) {
      const Plan plan =
          AllreducePlan(kPlacements[row % std::size(kPlacements)], row % 3 == 0 ? 16 : 32);
      synthetic.Add("resnet50", plan, 0.05 * noise.Next());
    }
    ObserveAll(synthetic.problem().runs, job.get());
    const double in_the_end = error(job->cluster(), truth);
    fleet.End("job");
    std::printf("[ measured ] job %d on the %s network: %.1f %% off at first, %.1f %% in the end\n",
                i, i < 2 ? "fast" : "slow", 100 * at_first, 100 * in_the_end);
    EXPECT_LT(in_the_end, 0.04) << i;
    if (i != 4) continue;
    EXPECT_LT(at_first, 0.06);
  }
}

// The same between workloads, where the cluster's file knows what has changed.
TEST(Fleet, WorkloadsThatFoundDifferentClustersTeachNoneOfThemFirmly) {
  Truth slow = PlausibleTruth();
  slow.cluster.si[kLinkBandwidth] /= 5;
  slow.cluster.si[kFlowBandwidth] /= 5;
  const auto after = [](const Truth& of_second) {
    Fleet fleet(CalibratedCluster(PlausibleTruth(), 0.7));
    for (const char* workload : {"resnet50", "bert_base"}) {
      const bool second = std::string(workload) == "bert_base";
      SyntheticProblem synthetic(second ? of_second : PlausibleTruth());
      Noise noise(1);
      for (int row = 0; row < 60; ++row) {
        const Plan plan =
            AllreducePlan(kPlacements[row % std::size(kPlacements)], row % 3 == 0 ? 16 : 32);
        synthetic.Add(workload, plan, 0.03 * noise.Next());
      }
      ObserveAll(synthetic.problem().runs, Add(workload, workload, &fleet).get());
      fleet.End(workload);
    }
    return LogSdOf(fleet.ClusterFor(*FindWorkload("vgg16"), T4()), "flow_bandwidth");
  };
  EXPECT_GT(after(slow), 1.5 * after(PlausibleTruth()));
}

Workload NumberedNetwork(int number) {
  Workload workload = *FindWorkload("resnet50");
  workload.name = "network_" + std::to_string(number);
  return workload;
}

// What many workloads have taught, each in its turn, is what a fleet finds that has never been
// asked before.
TEST(Fleet, WhatIsKeptOfManyWorkloadsIsWhatTheyTeach) {
  constexpr int kWorkloads = 100;
  Fleet fleet(SyntheticCluster());
  std::vector<std::string> before(3);
  for (int i = 0; i < kWorkloads; ++i) {
    const Workload workload = NumberedNetwork(i);
    const auto job = fleet.Add(workload.name, workload, T4());
    ObserveAll(SomeRows("resnet50", 2 + i % 5, 1 + i), job.get());
    if (i % 3 == 0) fleet.End(workload.name);
    if (i % 9 == 4) fleet.Remove("network_" + std::to_string(i - 3));
    if (i % 25 != 24) continue;
    // One that has told already learns more, and a second job of a workload begins.
    ObserveAll(SomeRows("resnet50", 3, 1000 + i), fleet.Job("network_2").get());
    const std::string again = "again " + std::to_string(i);
    ObserveAll(SomeRows("resnet50", 3, 2000 + i), fleet.Add(again, NumberedNetwork(5), T4()).get());
    Fleet anew(SyntheticCluster());
    anew.Import(fleet.Export());
    const int asked[] = {0, 2, kWorkloads};  // over, running, and not known
    for (std::size_t k = 0; k < std::size(asked); ++k) {
      const std::string start = FormatCluster(fleet.ClusterFor(NumberedNetwork(asked[k]), T4()));
      EXPECT_EQ(start, FormatCluster(anew.ClusterFor(NumberedNetwork(asked[k]), T4())))
          << i << " " << k;
      EXPECT_NE(start, before[k]) << i << " " << k;
      before[k] = start;
    }
  }
}

// Of threads that ask a fleet which nobody has asked before, one works out what jobs teach, and all
// have the same answer.
TEST(Fleet, ThreadsMayAskAtOnce) {
  constexpr int kWorkloads = 20;
  constexpr std::size_t kThreads = 8;
  Fleet fleet(SyntheticCluster());
  for (int i = 0; i < kWorkloads; ++i) {
    const Workload workload = NumberedNetwork(i);
    const auto job = fleet.Add(workload.name, workload, T4());
    ObserveAll(SomeRows("resnet50", 3, 1 + i), job.get());
    if (i % 2 == 0) fleet.End(workload.name);
  }
  Fleet anew(SyntheticCluster());
  anew.Import(fleet.Export());
  const auto start_of = [](const Fleet& asked) {
    return FormatCluster(asked.ClusterFor(NumberedNetwork(kWorkloads), T4()));
  };
  std::vector<std::string> starts(kThreads);
  std::vector<std::thread> threads;
  for (std::string& start : starts) {
    threads.emplace_back([&] { start = start_of(anew); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(starts, std::vector<std::string>(kThreads, start_of(fleet)));
}

// A job that goes on from another record teaches what that one has learnt, though its rows are as
// many.
TEST(Fleet, AJobTeachesWhatItWasGivenLast) {
  const auto start_after = [](const Fleet& fleet) {
    return FormatCluster(fleet.ClusterFor(*FindWorkload("bert_base"), T4()));
  };
  Fleet fleet(SyntheticCluster());
  Fleet other(SyntheticCluster());
  const auto job = Add("a", "resnet50", &fleet);
  const auto another = Add("a", "resnet50", &other);
  ObserveAll(SomeRows("resnet50", 12, 1), job.get());
  ObserveAll(SomeRows("resnet50", 12, 2), another.get());
  EXPECT_NE(start_after(fleet), start_after(other));
  job->Import(another->Export());
  EXPECT_EQ(start_after(fleet), start_after(other));
}

TEST(Fleet, AWorkloadThatTaughtNothingLeavesNoTrace) {
  Fleet fleet(SyntheticCluster());
  const auto of = [](std::int64_t parameters) {
    Workload workload;
    workload.name = "ours";
    workload.parameters = workload.trainable_parameters = parameters;
    workload.gradient_bytes = Bytes(4.0 * static_cast<double>(parameters));
    return workload;
  };
  for (const bool end : {false, true}) {
    fleet.Add("a", of(11'000'000), T4());
    fleet.Add("b", of(11'000'000), T4());
    fleet.Remove("b");
    EXPECT_THROW(fleet.Add("c", of(110'000'000), T4()), InputError) << "while one runs";
    end ? fleet.End("a") : fleet.Remove("a");
    fleet.Add("c", of(110'000'000), T4());
    fleet.Remove("c");
    EXPECT_TRUE(fleet.Export().taught.empty());
  }
  const auto job = fleet.Add("a", of(11'000'000), T4());
  job->Observe(AllreducePlan({1, 1}, 32), Seconds(0.3));
  fleet.End("a");
  EXPECT_THROW(fleet.Add("c", of(110'000'000), T4()), InputError) << "it has taught";
}

TEST(Fleet, WhatIsRemovedIsForgotten) {
  Fleet fleet(SyntheticCluster());
  ObserveAll(SomeRows("resnet50", 40), Add("a", "resnet50", &fleet).get());
  EXPECT_TRUE(fleet.ClusterFor(*FindWorkload("bert_base"), T4()).calibration);
  fleet.Remove("a");
  EXPECT_FALSE(fleet.ClusterFor(*FindWorkload("bert_base"), T4()).calibration);
  EXPECT_TRUE(fleet.jobs().empty());
}

TEST(Fleet, AJobOutlivesItsFleet) {
  std::shared_ptr<OnlineCalibration> job;
  {
    Fleet fleet(SyntheticCluster());
    job = Add("a", "resnet50", &fleet);
  }
  ObserveAll(SomeRows("resnet50", 5), job.get());
  EXPECT_EQ(job->rows(), 5);
}

TEST(Fleet, IsExportedAndImportedToTheSameBits) {
  Fleet fleet(SyntheticCluster());
  RunOne("over", "resnet50", &fleet);
  const auto job = Add("running", "bert_base", &fleet);
  ObserveAll(SomeRows("bert_base", 7), job.get());
  Fleet copy(SyntheticCluster());
  copy.Import(fleet.Export());
  EXPECT_EQ(copy.jobs(), fleet.jobs());
  const auto copied = copy.Job("running");
  EXPECT_EQ(TextOf(*copied), TextOf(*job));
  const Runs more = SomeRows("bert_base", 12, 5);
  ObserveAll(more, job.get());
  ObserveAll(more, copied.get());
  EXPECT_EQ(TextOf(*copied), TextOf(*job));
  for (const char* workload : {"resnet50", "bert_base", "resnet18_cifar10"}) {
    OnlineCalibration one(fleet.ClusterFor(*FindWorkload(workload), T4()), *FindWorkload(workload),
                          T4());
    OnlineCalibration other(copy.ClusterFor(*FindWorkload(workload), T4()), *FindWorkload(workload),
                            T4());
    EXPECT_EQ(TextOf(one), TextOf(other)) << workload;
  }
  Fleet another(CalibratedCluster(PlausibleTruth()));
  EXPECT_THROW(another.Import(fleet.Export()), InputError);
  EXPECT_TRUE(another.jobs().empty());
}

TEST(Fleet, RefusesWhatIsNone) {
  Fleet fleet(SyntheticCluster());
  EXPECT_THROW(fleet.Job("a"), InputError);
  Add("a", "resnet50", &fleet);
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([&] { Add("a", "bert_base", &fleet); }).find("running already"),
            std::string::npos);
  EXPECT_NE(message([&] { Add("", "bert_base", &fleet); }).find("no name"), std::string::npos);
  EXPECT_NE(message([&] { fleet.End("b"); }).find("allowed: a"), std::string::npos);
  Workload other = *FindWorkload("resnet50");
  other.gradient_bytes = other.gradient_bytes * 2.0;
  const std::string gradients = message([&] { fleet.Add("c", other, T4()); });
  EXPECT_NE(gradients.find("other gradients"), std::string::npos);
  // 25,583,592 parameters of four bytes, without a fraction.
  EXPECT_NE(gradients.find("or 102334368 bytes"), std::string::npos) << gradients;
  EXPECT_EQ(fleet.jobs(), std::vector<std::string>{"a"});
}

// What a network computes in 16 bits its jobs in 32 do not learn, but what the cluster is like.
TEST(Fleet, JobsOfOneNameMayBeTrainedOtherwise) {
  Fleet fleet(SyntheticCluster());
  const auto job = Add("a", "resnet50", &fleet);
  for (int i = 0; i < 20; ++i) job->Observe(AllreducePlan({2, 2}, 32), Seconds(0.5));
  Workload half = *FindWorkload("resnet50");
  half.precision = Precision::kFp16;
  const auto other = fleet.Add("b", half, T4());
  const auto value = [](const Cluster& cluster, const std::string& scope, const char* name) {
    const auto at = cluster.calibration->Find(scope, name);
    return at ? std::optional(cluster.calibration->parameters[static_cast<std::size_t>(*at)].value)
              : std::nullopt;
  };
  const Cluster start = other->cluster();
  EXPECT_FALSE(value(start, "workload resnet50 on t4", "sample_time"));
  const Cluster untaught = Fleet(SyntheticCluster()).ClusterFor(half, T4());
  EXPECT_FALSE(untaught.calibration);
  EXPECT_TRUE(value(start, kClusterScope, "flow_bandwidth"));
  for (int i = 0; i < 20; ++i) other->Observe(AllreducePlan({2, 2}, 32), Seconds(0.25));
  const std::string own = "workload resnet50 (fp16) on t4";
  EXPECT_LT(*value(other->cluster(), own, "sample_time"),
            *value(job->cluster(), "workload resnet50 on t4", "sample_time"));
  // Kept as it is.
  Fleet again(SyntheticCluster());
  again.Import(fleet.Export());
  EXPECT_EQ(*value(again.Job("b")->cluster(), own, "sample_time"),
            *value(other->cluster(), own, "sample_time"));
}

// ---- Measured jobs.

struct Scores {
  std::map<int, std::vector<double>> errors;  // by the job's own rows

  double Mean(int rows) const {
    double sum = 0;
    for (const double error : errors.at(rows)) sum += error;
    return sum / static_cast<double>(errors.at(rows).size());
  }
};

// Each application is new in its turn, where 40 rows of each of the others were seen; beside it,
// the same job where nothing was.
void Judge(const Runs& all, const Cluster& cluster, const Device& device) {
  std::map<std::string, Runs> by_workload;
  for (const Row& row : all) by_workload[row.workload].push_back(row);
  Scores taught_of_all;
  double all_taught = 0;
  double all_alone = 0;
  for (const auto& [workload, rows] : by_workload) {
    Scores alone;
    Scores taught;
    for (const unsigned seed : {7U, 8U, 9U}) {
      std::mt19937 random(seed);
      Fleet fleet(cluster);
      for (const auto& [other, its_rows] : by_workload) {
        if (other == workload) continue;
        const auto job = fleet.Add(other, *FindWorkload(other), device);
        for (int i = 0; i < 40; ++i) {
          const Row& row = its_rows[random() % its_rows.size()];
          job->Observe(row.plan, row.step_time);
        }
        fleet.End(other);
      }
      Fleet empty(cluster);
      const auto job = fleet.Add("new", *FindWorkload(workload), device);
      const auto lonely = empty.Add("new", *FindWorkload(workload), device);
      const Runs singles = RunsWhere(rows, [](const Row& row) { return row.plan.workers() == 1; });
      for (int n = 1; n <= 8; ++n) {
        const Runs& from = n <= 2 ? singles : rows;
        const Row& row = from[random() % from.size()];
        job->Observe(row.plan, row.step_time);
        lonely->Observe(row.plan, row.step_time);
        if (n == 3 || (n > 4 && n < 8)) continue;
        for (const auto& [of, scores] : {std::pair(job, &taught), std::pair(lonely, &alone)}) {
          const Predictor predictor(of->cluster(), *FindWorkload(workload), device);
          double sum = 0;
          for (const Row& judged : rows) {
            sum += std::abs(predictor.Predict(judged.plan).step_time / judged.step_time - 1);
          }
          scores->errors[n].push_back(100 * sum / static_cast<double>(rows.size()));
        }
      }
    }
    double sum = 0;
    double sum_alone = 0;
    for (const int n : {1, 2, 4, 8}) {
      std::printf("[ measured ] %-8s %-17s after %d rows: %5.1f %% off, %5.1f %% without others\n",
                  cluster.name.c_str(), workload.c_str(), n, taught.Mean(n), alone.Mean(n));
      auto& of_all = taught_of_all.errors[n];
      of_all.insert(of_all.end(), taught.errors[n].begin(), taught.errors[n].end());
      sum += taught.Mean(n);
      sum_alone += alone.Mean(n);
    }
    // One of the eight begins worse than from nothing, which happens to be right for it.
    EXPECT_LT(sum, 1.25 * sum_alone) << cluster.name << " " << workload;
    all_taught += sum;
    all_alone += sum_alone;
  }
  EXPECT_LT(all_taught, 0.95 * all_alone) << cluster.name;
  EXPECT_LT(taught_of_all.Mean(4), 14) << cluster.name;
  EXPECT_LT(taught_of_all.Mean(8), 9) << cluster.name;
}

TEST(FleetOnTraces, OtherApplicationsTeachANewOne) {
  const std::optional<Traces> traces = ReadTraces();
  if (!traces) GTEST_SKIP() << MissingDataset("adaptdl");
  Judge(traces->All(), traces->cluster, traces->device);
}

TEST(FleetOnTraces, OtherApplicationsTeachANewOneOfAnotherCluster) {
  const std::optional<std::string> folder = DatasetFolder("sia-rtx");
  if (!folder) GTEST_SKIP() << MissingDataset("sia-rtx");
  Cluster cluster;
  cluster.name = cluster.title = "sia-rtx";
  cluster.device = "rtx_2080_ti";
  cluster.nodes = 3;
  cluster.devices_per_node = 8;
  const std::string devices = std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gpus.yaml";
  Runs runs;
  for (const char* app : kTraceApps) {
    for (const char* kind : {"placements", "scalability"}) {
      const Runs more =
          ImportAdaptdl(*folder + "/" + app + "_" + kind + ".csv", "", cluster.device);
      runs.insert(runs.end(), more.begin(), more.end());
    }
  }
  Judge(runs, cluster, FindDevice(ReadDevices(devices), cluster.device).value());
}

}  // namespace
}  // namespace stepcast
