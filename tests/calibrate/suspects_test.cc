// Rows that were spoilt on purpose, and measured ones that contradict each other, are found and
// explained; rows that merely scatter are left alone.
#include "calibrate/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/workloads/catalog.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/changed_plans.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class
using Suspects = std::vector<Suspect>;

constexpr double kNoise = 0.03;

Suspects FindIn(const CalibrationProblem& problem) {
  const CalibrationOutcome outcome = Calibrate(problem);
  EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
  return FindSuspects(problem, outcome);
}

std::string Text(const Suspects& suspects) {
  std::string text;
  for (const Suspect& s : suspects) {
    text +=
        "run " + std::to_string(s.run) + ", " + std::to_string(s.factor) + ": " + s.cause + "\n";
  }
  return text;
}

bool Says(const Suspect& suspect, const std::string& part) {
  return suspect.cause.find(part) != std::string::npos;
}

SyntheticProblem Campaign(double noise, std::uint64_t seed) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), noise, seed);
  return synthetic;
}

// A row spoilt on purpose: the step of `truth` stands beside `stated`, as `written` made of it.
struct Spoilt {
  std::string name;
  std::string workload;
  Plan stated;
  Plan truth;
  std::function<double(double)> written;  // [s] -> what the row says
  std::string cause;
};

void PrintTo(const Spoilt& spoilt, std::ostream* os) { *os << spoilt.name; }

Plan Changed(Plan plan, const std::function<void(Plan*)>& change) {
  change(&plan);
  return plan;
}

std::vector<Spoilt> SpoiltRows() {
  const auto same = [](double t) { return t; };
  const Plan single = AllreducePlan({1}, 24);
  const Plan four = AllreducePlan({1, 1, 1, 1}, 24);
  const Plan eight = AllreducePlan(Placement(8, 1), 24);
  const auto accumulate = [](int steps) {
    return [steps](Plan* plan) { plan->accumulation_steps = steps; };
  };
  const auto link = [](double gbit) {
    return [gbit](Plan* plan) { plan->link.bandwidth = GigabitsPerSecond(gbit); };
  };
  const auto losing = [](double loss) {
    return [loss](Plan* plan) {
      plan->link.rtt = Milliseconds(10.0);
      plan->link.loss = loss;
    };
  };
  const auto servers = [](Plan* plan) {
    plan->strategy = Strategy::kPsSync;
    plan->servers = 2;
  };
  const std::string resnet = "resnet50";
  return {
      {"Milliseconds", resnet, four, four, [](double t) { return 1000 * t; }, "milliseconds"},
      {"DividedTwice", resnet, four, four, [](double t) { return t / 1000; }, "divided by 1000"},
      {"Minutes", resnet, single, single, [](double t) { return t / 60; }, "minutes given as"},
      {"TimesSixty", resnet, single, single, [](double t) { return 60 * t; }, "multiplied by 60"},
      {"StepsPerSecond", resnet, single, single, [](double t) { return 1 / t; },
       "steps per second"},
      {"SamplesPerSecond", resnet, four, four, [](double t) { return 24 * 4 / t; },
       "instead of a time: samples per second"},
      {"SamplesOfAWorker", resnet, four, four, [](double t) { return 24 / t; },
       "samples per second of one worker"},
      {"SamplesOfAWorkerInSteps", resnet, Changed(four, accumulate(4)),
       Changed(four, accumulate(4)), [](double t) { return 24 * 4 / t; },
       "samples per second of one worker"},
      {"ShareOfAStep", resnet, Changed(four, accumulate(4)), Changed(four, accumulate(4)),
       [](double t) { return t / 4; }, "the time of one micro-step of a step of 4"},
      {"MicroStep", "bert_base", Changed(AllreducePlan({1, 1, 1, 1}, 6), accumulate(4)),
       AllreducePlan({1, 1, 1, 1}, 6), same, "the time of one micro-step of a step of 4"},
      {"WholeStep", resnet, single, Changed(single, accumulate(4)), same,
       "a step of 4 accumulated micro-steps, where 1 is stated"},
      {"OfAllSteps", resnet, Changed(four, accumulate(4)), Changed(four, accumulate(4)),
       [](double t) { return 4 * t; }, "taken once for each of them"},
      {"GlobalBatch", resnet, AllreducePlan({4}, 64), AllreducePlan({4}, 16), same,
       "local_batch 64 may be the batch of all 4 workers"},
      {"DividedBatch", resnet, AllreducePlan({4}, 8), AllreducePlan({4}, 32), same,
       "local_batch 8 may be a batch already divided among all 4 workers"},
      {"BatchOfAllSteps", resnet, Changed(AllreducePlan({4}, 64), accumulate(2)),
       Changed(AllreducePlan({4}, 32), accumulate(2)), same,
       "local_batch 64 may be the batch of all 2 micro-steps"},
      {"SlowLink", resnet, eight, Changed(eight, link(0.1)), same, "link of 100 Mbit/s"},
      {"OneGigabit", "bert_base", AllreducePlan({1, 1}, 3),
       Changed(AllreducePlan({1, 1}, 3), link(1)), same, "behaves like a link of 1 Gbit/s"},
      {"FastLink", "bert_base", Changed(AllreducePlan({2, 2}, 1), link(1)),
       Changed(AllreducePlan({2, 2}, 1), link(10)), same, "the row says 1 Gbit/s"},
      {"LinkOfServers", resnet, Changed(eight, servers), Changed(Changed(eight, servers), link(1)),
       same, "behaves like a link of 1 Gbit/s"},
      {"LinkInBytes", resnet, Changed(eight, link(0.5)), Changed(eight, link(4)), same,
       "behaves like a link of 4 Gbit/s, where the row says 500 Mbit/s: bits and bytes"},
      {"LinkInBits", resnet, Changed(eight, link(8)), Changed(eight, link(1)), same,
       "behaves like a link of 1 Gbit/s, where the row says 8 Gbit/s: bits and bytes"},
      {"MoreLoss", resnet, Changed(eight, losing(0.001)), Changed(eight, losing(0.02)), same,
       " %, where 0.1 % are stated"},
      {"Throttled", resnet, single, single, [](double t) { return 1.6 * t; },
       "slower by a factor of 1."},
      {"Shared", resnet, AllreducePlan({4}, 24), AllreducePlan({4}, 24),
       [](double t) { return 1.45 * t; }, "than its like: a straggling node"},
      {"Straggling", resnet, AllreducePlan({1, 1}, 64), AllreducePlan({1, 1}, 64),
       [](double t) { return 1.5 * t; }, "steps of the warm-up, or a link of "},
      {"FasterThanCompute", resnet, four, four, [](double t) { return 0.3 * t; },
       "faster than the compute alone"},
  };
}

class SpoiltRow : public ::testing::TestWithParam<Spoilt> {};

// One such row among 180 others: it alone is found.
TEST_P(SpoiltRow, IsFoundAndExplained) {
  const Spoilt& spoilt = GetParam();
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SyntheticProblem synthetic = Campaign(kNoise, seed);
    const std::size_t at = synthetic.problem().runs.size();
    synthetic.Add(spoilt.workload, spoilt.stated);
    stepcast::Run& run = synthetic.problem().runs.back();
    const double noise = std::exp(kNoise * Noise(seed + 100).Next());
    const double truth = synthetic.TrueStep(spoilt.workload, spoilt.truth).in(kSeconds)*noise;
    run.step_time = Seconds(spoilt.written(truth));
    // No other row of its plan tells what it should be.
    Runs& runs = synthetic.problem().runs;
    const auto has_its_plan = [&](const stepcast::Run& other) {
      const Plan& a = other.plan;
      const Plan& b = spoilt.stated;
      return other.workload == spoilt.workload && a.placement == b.placement &&
             a.local_batch == b.local_batch && a.accumulation_steps == b.accumulation_steps &&
             a.strategy == b.strategy && a.servers == b.servers &&
             a.link.bandwidth.has_value() == b.link.bandwidth.has_value();
    };
    const auto end =
        std::remove_if(runs.begin(), runs.begin() + static_cast<long>(at), has_its_plan);
    runs.erase(end, runs.begin() + static_cast<long>(at));

    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    const Suspects suspects = FindSuspects(synthetic.problem(), outcome);
    ASSERT_EQ(suspects.size(), 1U) << "seed " << seed << "\n" << Text(suspects);
    EXPECT_EQ(suspects[0].run, runs.size() - 1);
    EXPECT_TRUE(Says(suspects[0], spoilt.cause)) << "seed " << seed << "\n" << Text(suspects);
    EXPECT_DOUBLE_EQ(suspects[0].factor, std::exp(outcome.residuals[suspects[0].run].log_ratio));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SpoiltRow, ::testing::ValuesIn(SpoiltRows()),
                         [](const auto& test) { return test.param.name; });

TEST(Suspects, NoneWhereRowsOnlyScatter) {
  for (const double noise : {0.03, 0.045, 0.06}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      const Suspects suspects = FindIn(Campaign(noise, seed).problem());
      EXPECT_TRUE(suspects.empty()) << noise << ", seed " << seed << "\n" << Text(suspects);
    }
  }
}

TEST(Suspects, FoundInASmallCampaign) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SyntheticProblem synthetic(PlausibleTruth());
    Noise normal(seed);
    for (const int batch : {8, 16, 32}) {
      for (const Placement& placement : {Placement{1}, Placement{1, 1}, Placement{1, 1, 1}}) {
        synthetic.Add("resnet50", AllreducePlan(placement, batch), kNoise * normal.Next());
      }
    }
    Duration<>& spoilt = synthetic.problem().runs[4].step_time;
    spoilt = spoilt * 1000.0;
    const Suspects suspects = FindIn(synthetic.problem());
    ASSERT_EQ(suspects.size(), 1U) << Text(suspects);
    EXPECT_EQ(suspects[0].run, 4U);
    EXPECT_TRUE(Says(suspects[0], "milliseconds")) << Text(suspects);
  }
}

// A row that is far off among few is not what the others are judged to scatter by, so that it is
// not hidden by itself; nor are rows of a wide scatter suspect for being few.
TEST(Suspects, FoundAmongFew) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SyntheticProblem synthetic(PlausibleTruth());
    synthetic.problem().cluster.link.bandwidth = GigabitsPerSecond(100.0);
    synthetic.problem().cluster.link.transport = Transport::kRdma;
    Noise normal(seed);
    for (const char* workload : {"resnet50", "bert_base"}) {
      for (const Placement& placement : {Placement{1}, Placement{4}, Placement{4, 4}}) {
        synthetic.Add(workload, AllreducePlan(placement, 32), 0.02 * normal.Next());
      }
    }
    EXPECT_TRUE(FindIn(synthetic.problem()).empty()) << seed;
    Duration<>& slow = synthetic.problem().runs.back().step_time;
    slow = slow * 1.6;
    const Suspects suspects = FindIn(synthetic.problem());
    ASSERT_EQ(suspects.size(), 1U) << seed << "\n" << Text(suspects);
    EXPECT_EQ(suspects[0].run, 5U);
  }
}

// Of a campaign whose cluster file says 10 Gbit/s and that has a run of five nodes over a link of
// another rate, which the run does not state.
Suspects OfARunAt(DataRate<> rate, const std::string& workload, int batch, double log_noise = 0) {
  SyntheticProblem synthetic = Campaign(kNoise, 1);
  synthetic.problem().cluster.link.bandwidth = GigabitsPerSecond(10.0);
  Plan plan = AllreducePlan({1, 1, 1, 1, 1}, batch);
  plan.link.bandwidth = rate;
  synthetic.Add(workload, plan, log_noise);
  synthetic.problem().runs.back().plan.link = {};
  return FindIn(synthetic.problem());
}

TEST(Suspects, SayWhatTheClusterFileSays) {
  const Suspects suspects = OfARunAt(GigabitsPerSecond(1.0), "resnet50", 24);
  ASSERT_EQ(suspects.size(), 1U) << Text(suspects);
  EXPECT_EQ(suspects[0].cause,
            "behaves like a link of 1 Gbit/s; the cluster file says 10 Gbit/s: look at the cable "
            "and the port");
}

// Half of what the file says may be what a link gives; a cable is looked at for less than a third.
TEST(Suspects, OfALinkNotFarBelowTheFileSaysNothing) {
  const Suspects suspects = OfARunAt(GigabitsPerSecond(4.0), "bert_base", 1);
  ASSERT_EQ(suspects.size(), 1U) << Text(suspects);
  EXPECT_TRUE(Says(suspects[0], "link of ")) << suspects[0].cause;
  EXPECT_FALSE(Says(suspects[0], "the cluster file says")) << suspects[0].cause;
}

// A row that is faster than the model does not behave like a link beyond the port.
TEST(Suspects, NameNoLinkBeyondThePort) {
  const Suspects suspects = OfARunAt(GigabitsPerSecond(100.0), "bert_base", 8, -0.7);
  ASSERT_EQ(suspects.size(), 1U) << Text(suspects);
  EXPECT_FALSE(Says(suspects[0], "link of")) << suspects[0].cause;
}

// A row within the fit's scatter is reported where another run of its plan contradicts it.
TEST(Suspects, AllRowsOfAContradiction) {
  SyntheticProblem synthetic = Campaign(kNoise, 2);
  const Plan plan = AllreducePlan({1, 1, 1, 1, 1}, 24);
  const std::size_t at = synthetic.problem().runs.size();
  synthetic.Add("resnet50", plan);
  synthetic.Add("resnet50", plan, std::log(2.5));
  const Suspects suspects = FindIn(synthetic.problem());
  ASSERT_EQ(suspects.size(), 2U) << Text(suspects);
  EXPECT_EQ(suspects[0].run, at + 1);
  EXPECT_EQ(suspects[1].run, at);
  EXPECT_NEAR(suspects[1].factor, 1, 0.1);
  for (const Suspect& suspect : suspects) {
    EXPECT_TRUE(Says(suspect, "; runs of this plan differ by a factor of 2.5: name the hosts"))
        << suspect.cause;
  }
}

// Runs of ResNet-50 with what a fit forecasts of them.
struct AsFitted {
  AsFitted() {
    problem.cluster = SyntheticCluster();
    problem.workloads["resnet50"] = *FindWorkload("resnet50");
    outcome.status = CalibrationOutcome::Status::kConverged;
    outcome.cluster = CalibratedCluster(PlausibleTruth());
  }
  void Add(const Plan& plan, double predicted_s, double log_ratio) {
    stepcast::Run run;
    run.workload = "resnet50";
    run.device = kSyntheticDevice;
    run.plan = plan;
    run.step_time = Seconds(predicted_s * std::exp(log_ratio));
    problem.runs.push_back(run);
    outcome.residuals.push_back({Seconds(predicted_s), log_ratio});
  }

  CalibrationProblem problem;
  CalibrationOutcome outcome;
};

// Runs of these times, as a fit has met each of them: only that they differ is to be said.
Suspects FindAmong(const std::vector<std::pair<Plan, double>>& timed) {
  AsFitted fitted;
  for (const auto& [plan, seconds] : timed) fitted.Add(plan, seconds, 0);
  return FindSuspects(fitted.problem, fitted.outcome);
}

// Plans that differ in one field of the list are two experiments, which may take what they will.
TEST(Suspects, APlanThatSaysSomethingElseIsAnotherExperiment) {
  for (const ChangedPlan& changed : ChangedPlans()) {
    const std::vector<std::pair<Plan, double>> runs = {
        {changed.before, 1}, {changed.before, 1}, {changed.after, 3}, {changed.after, 3}};
    EXPECT_TRUE(FindAmong(runs).empty()) << changed.facts.state << "\n" << Text(FindAmong(runs));
    const Suspects same = FindAmong({{changed.after, 1}, {changed.after, 3}});
    ASSERT_EQ(same.size(), 2U) << changed.facts.state;
    EXPECT_TRUE(Says(same[0], "runs of this plan differ by a factor of 3")) << same[0].cause;
  }
}

// A contradiction is as grave as half of what parts its runs, or as the row is off where that is
// more.
TEST(Suspects, AContradictionIsAsGraveAsHalfOfItsSpread) {
  SyntheticProblem synthetic = Campaign(kNoise, 2);
  const Plan plan = AllreducePlan({1, 1, 1, 1, 1}, 24);
  const std::size_t apart = synthetic.problem().runs.size();
  synthetic.Add("resnet50", plan, -std::log(6.0) / 2);
  synthetic.Add("resnet50", plan, std::log(6.0) / 2);
  // Off by more than the root of six, and by less than six.
  synthetic.Add("resnet50", AllreducePlan({1, 1, 1, 1, 1, 1}, 24), std::log(4.0));
  const Suspects suspects = FindIn(synthetic.problem());
  ASSERT_EQ(suspects.size(), 3U) << Text(suspects);
  EXPECT_EQ(suspects[0].run, apart + 2) << Text(suspects);
}

// Runs that contradict each other are no scatter that other rows could hide in.
TEST(Suspects, ContradictionsHideNoOthers) {
  SyntheticProblem synthetic = Campaign(kNoise, 2);
  const std::size_t wild = synthetic.problem().runs.size();
  for (int nodes = 5; nodes <= 7; ++nodes) {
    for (int i = 0; i < 12; ++i) {
      synthetic.Add("resnet50", AllreducePlan(Placement(static_cast<std::size_t>(nodes), 1), 24),
                    (i % 2 == 0 ? 1 : -1) * std::log(6.0));
    }
  }
  const std::size_t spoilt = synthetic.problem().runs.size();
  synthetic.Add("resnet50", AllreducePlan({1}, 24), std::log(1.6));
  const Suspects suspects = FindIn(synthetic.problem());
  EXPECT_EQ(suspects.size(), spoilt - wild + 1) << Text(suspects);
  EXPECT_EQ(std::count_if(suspects.begin(), suspects.end(),
                          [&](const Suspect& s) { return s.run == spoilt; }),
            1);
}

// However many they are: what the other rows of their workload scatter by is judged without them.
TEST(Suspects, ContradictionsAreNoScatterOfOthers) {
  AsFitted fitted;
  fitted.outcome.cluster.calibration->residual_log_sd = 1;  // as all runs together scatter
  const auto add = [&](const Plan& plan, double log_ratio) { fitted.Add(plan, 1, log_ratio); };
  for (int i = 0; i < 40; ++i) add(AllreducePlan({1}, 4), (i % 2 == 0 ? 1 : -1) * 1.2);
  for (int i = 0; i < 8; ++i) add(AllreducePlan({1}, 8 + i), i % 2 == 0 ? 0.02 : -0.02);
  add(AllreducePlan({1}, 64), std::log(1.6));
  const Suspects suspects = FindSuspects(fitted.problem, fitted.outcome);
  EXPECT_EQ(suspects.size(), 41U);
  EXPECT_EQ(
      std::count_if(suspects.begin(), suspects.end(), [](const Suspect& s) { return s.run == 48; }),
      1);
}

TEST(Suspects, OneAgainstManyIsAlone) {
  SyntheticProblem synthetic = Campaign(kNoise, 3);
  const Plan plan = AllreducePlan({1, 1, 1, 1, 1}, 24);
  const std::size_t at = synthetic.problem().runs.size();
  synthetic.Add("resnet50", plan, std::log(4.0));
  Noise normal(3);
  for (int i = 0; i < 9; ++i) synthetic.Add("resnet50", plan, kNoise * normal.Next());
  const Suspects suspects = FindIn(synthetic.problem());
  ASSERT_EQ(suspects.size(), 1U) << Text(suspects);
  EXPECT_EQ(suspects[0].run, at);
}

// Scatter may be wide, and many runs of a plan then span more than a factor of two.
TEST(Suspects, AWideSpreadIsNoContradiction) {
  constexpr double kWide = 0.25;
  SyntheticProblem synthetic(PlausibleTruth());
  Noise normal(4);
  for (int i = 0; i < 200; ++i) {
    synthetic.Add("resnet50", AllreducePlan({1, 1}, 24), kWide * normal.Next());
  }
  const Runs& runs = synthetic.problem().runs;
  const auto [low, high] =
      std::minmax_element(runs.begin(), runs.end(),
                          [](const auto& a, const auto& b) { return a.step_time < b.step_time; });
  ASSERT_GT(high->step_time / low->step_time, 3);
  const Suspects suspects = FindIn(synthetic.problem());
  EXPECT_TRUE(suspects.empty()) << Text(suspects);
}

TEST(Suspects, TheWorstFirst) {
  SyntheticProblem synthetic = Campaign(kNoise, 5);
  const auto spoil = [&](std::size_t at, double factor) {
    Duration<>& step = synthetic.problem().runs[at].step_time;
    step = step * factor;
  };
  spoil(20, 1.7);
  spoil(70, 1e-3);
  spoil(130, 30);
  const Suspects suspects = FindIn(synthetic.problem());
  ASSERT_EQ(suspects.size(), 3U) << Text(suspects);
  EXPECT_EQ(suspects[0].run, 70U);
  EXPECT_EQ(suspects[1].run, 130U);
  EXPECT_EQ(suspects[2].run, 20U);
}

TEST(Suspects, AllAreReportedAndTheWorstExplained) {
  SyntheticProblem synthetic(PlausibleTruth());
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    AddCampaign(&synthetic, FittedPlacements(), kNoise, seed);
  }
  std::vector<std::size_t> spoilt;
  for (std::size_t i = 0; i < synthetic.problem().runs.size(); i += 11) {
    Duration<>& step = synthetic.problem().runs[i].step_time;
    step = step * 1000.0;
    spoilt.push_back(i);
  }
  ASSERT_GT(spoilt.size(), kMaxDiagnosed);
  const Suspects suspects = FindIn(synthetic.problem());
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    found.push_back(suspects[i].run);
    EXPECT_EQ(Says(suspects[i], "slower by a factor of "), i >= kMaxDiagnosed) << suspects[i].cause;
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, spoilt);
}

TEST(Suspects, AreTheSameEachTime) {
  SyntheticProblem synthetic = Campaign(kNoise, 6);
  for (const std::size_t at : {10, 50, 90, 140}) {
    Duration<>& step = synthetic.problem().runs[at].step_time;
    step = step * (1.0 + static_cast<double>(at));
  }
  const Suspects first = FindIn(synthetic.problem());
  const Suspects second = FindIn(synthetic.problem());
  ASSERT_EQ(first.size(), 4U) << Text(first);
  ASSERT_EQ(second.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].run, second[i].run);
    EXPECT_EQ(first[i].factor, second[i].factor);
    EXPECT_EQ(first[i].cause, second[i].cause);
  }
}

TEST(Suspects, NoneWithoutAFit) {
  CalibrationProblem problem = Campaign(kNoise, 1).problem();
  problem.runs[0].step_time = problem.runs[0].step_time * 1000.0;
  CalibrationOutcome outcome = Calibrate(problem);
  ASSERT_EQ(FindSuspects(problem, outcome).size(), 1U);
  outcome.status = CalibrationOutcome::Status::kFailed;
  EXPECT_TRUE(FindSuspects(problem, outcome).empty());
  problem.runs.clear();
  EXPECT_TRUE(FindSuspects(problem, Calibrate(problem)).empty());
}

// Public measurements (data/machines/ufrgs-tupi.yaml): two pairs of hosts, of which one sits on a
// slower link than the cluster's owner believes.
class UfrgsSuspects : public ::testing::Test {
 protected:
  UfrgsSuspects() {
    const std::string data = std::string(STEPCAST_SOURCE_DIR) + "/data";
    problem_.cluster = ReadCluster(data + "/machines/ufrgs-tupi.yaml");
    problem_.runs = ReadRuns(data + "/measurements/ufrgs-tupi-fit.csv");
    for (stepcast::Run& run : ReadRuns(data + "/measurements/ufrgs-tupi-holdout.csv")) {
      problem_.runs.push_back(std::move(run));
    }
    problem_.workloads["resnet50"] = *FindWorkload("resnet50");
    problem_.devices["rtx_4090"] =
        FindDevice(ReadDevices(data + "/machines/gpus.yaml"), "rtx_4090").value();
  }

  // Whoever wrote them down did not know that hosts matter.
  void ForgetHosts() {
    for (stepcast::Run& run : problem_.runs) run.plan.hosts.clear();
  }

  CalibrationProblem problem_;
};

TEST_F(UfrgsSuspects, NoneWhereHostsAreNamed) {
  const Suspects suspects = FindIn(problem_);
  EXPECT_TRUE(suspects.empty()) << Text(suspects);
}

TEST_F(UfrgsSuspects, LinksExplainWhatContradicts) {
  ForgetHosts();
  ASSERT_EQ(problem_.runs.size(), 4U);
  const Suspects suspects = FindIn(problem_);
  // The two that contradict each other; the run on three nodes may be met.
  ASSERT_GE(suspects.size(), 2U) << Text(suspects);
  for (const Suspect& suspect : suspects) {
    ASSERT_NE(suspect.run, 0U);  // one node
    const bool fast = problem_.runs[suspect.run].step_time < Seconds(2.0);
    EXPECT_EQ(Says(suspect, "link of 1 Gbit/s"), fast) << suspect.cause;
    EXPECT_EQ(Says(suspect,
                   "link of 100 Mbit/s; the cluster file says 1 Gbit/s: look at the cable and the "
                   "port"),
              !fast)
        << suspect.cause;
    EXPECT_EQ(Says(suspect, "differ by a factor of 6.81: name the hosts of each"),
              problem_.runs[suspect.run].plan.nodes() == 2)
        << suspect.cause;
  }
}

// With more rows of one kind the fit settles on its rate; the diagnosis is the same.
TEST_F(UfrgsSuspects, DoNotDependOnWhereTheFitSettles) {
  ForgetHosts();
  const Runs four = problem_.runs;
  for (const std::size_t repeated : {1, 2}) {
    problem_.runs = {four[0], four[1], four[2], four[repeated]};
    const Suspects suspects = FindIn(problem_);
    ASSERT_EQ(suspects.size(), 3U) << Text(suspects);
    for (const Suspect& suspect : suspects) {
      const bool fast = problem_.runs[suspect.run].step_time < Seconds(2.0);
      EXPECT_TRUE(Says(suspect, fast ? "link of 1 Gbit/s" : "link of 100 Mbit/s")) << suspect.cause;
    }
  }
}

}  // namespace
}  // namespace stepcast
