// Online calibration against the batch fit of the same rows, and against itself.
#include "calibrate/online/online_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/online/state.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/plan/key.h"
#include "data/values/workload_scope.h"
#include "predictor/predictor.h"
#include "tests/calibrate/adaptdl_traces.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/changed_plans.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"
#include "tests/support/members.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Row = Run;  // inside a TEST, Run is a member of GoogleTest's class
using Runs = std::vector<Row>;
using Plans = std::vector<Plan>;

constexpr std::size_t kRows = 100;
constexpr double kAgreed = 0.02;

std::string TextOf(const OnlineCalibration& job) { return FormatOnlineRecord(job.Export()); }

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// ---- Agreement with the batch fit.

struct Job {
  Cluster cluster;  // that it begins with
  std::string workload;
  Runs rows;
  Plans others;  // in the range of the rows
  Runs before;   // that the cluster's calibration was fitted to
};

struct Deviations {
  std::vector<double> values;

  void Add(const Deviations& more) {
    values.insert(values.end(), more.values.begin(), more.values.end());
  }
  double Quantile(double q) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(q * (sorted.size() - 1.0))];
  }
  void Print(const char* job, const char* of) const {
    std::printf(
        "[ measured ] %-34s %-14s %4zu predictions: %6.3f %% of the batch fit's at most, "
        "%.3f %% median\n",
        job, of, values.size(), 100 * Quantile(1), 100 * Quantile(0.5));
  }
};

struct Agreement {
  Deviations observed;   // of plans with rows
  Deviations others;     // of plans without
  Deviations streaming;  // of what the next row is compared with, of all of these
  bool drifted = false;

  void Add(const Agreement& more) {
    observed.Add(more.observed);
    others.Add(more.others);
    streaming.Add(more.streaming);
  }
  void Print(const char* job) const {
    observed.Print(job, "observed plans");
    others.Print(job, "other plans");
    streaming.Print(job, "while it runs");
  }
};

Cluster BatchFit(const Job& job) {
  CalibrationProblem problem;
  problem.cluster = job.cluster;
  problem.runs = job.before;
  problem.runs.insert(problem.runs.end(), job.rows.begin(), job.rows.end());
  problem.devices["t4"] = T4();
  for (Run& run : problem.runs) {
    run.exposed_sync.reset();  // what is observed is a time
    problem.workloads[run.workload] = *FindWorkload(run.workload);
  }
  return Calibrate(problem).cluster;
}

Agreement Compare(const Job& job) {
  const Workload workload = *FindWorkload(job.workload);
  const Predictor batch(BatchFit(job), workload, T4());
  OnlineCalibration online(job.cluster, workload, T4());
  for (const Row& row : job.rows) online.Observe(row.plan, row.step_time);
  const std::string text = TextOf(online);
  const Predictor learnt(online.cluster(), workload, T4());
  Agreement agreement;
  agreement.drifted = online.drifted();
  const auto compare = [&](const Plan& plan, Deviations* deviations) {
    const Duration<> expected = batch.PredictStep(plan).total();
    deviations->values.push_back(std::abs(learnt.PredictStep(plan).total() / expected - 1));
    OnlineCalibration next(job.cluster, workload, T4());
    next.Import(ParseOnlineRecord(text));
    agreement.streaming.values.push_back(
        std::abs(next.Observe(plan, expected).predicted / expected - 1));
  };
  for (const Row& row : job.rows) compare(row.plan, &agreement.observed);
  for (const Plan& plan : job.others) compare(plan, &agreement.others);
  return agreement;
}

template <class T>
void Shuffle(std::vector<T>* values, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (std::size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[engine() % i]);
}

TEST(OnlineAgreement, WithFitsOfPublicTraces) {
  const std::optional<Traces> traces = ReadTraces();
  if (!traces) GTEST_SKIP() << MissingDataset("adaptdl");
  std::map<std::string, Runs> of;
  for (const Row& run : traces->All()) of[run.workload].push_back(run);
  Agreement all;
  for (auto& [workload, runs] : of) {
    Agreement own;
    for (const std::uint64_t seed : {0, 1, 2}) {
      Shuffle(&runs, seed);
      Job job{traces->cluster, workload, {}, {}, {}};
      ASSERT_GT(runs.size(), kRows + 50);
      job.rows.assign(runs.begin(), runs.begin() + kRows);
      for (std::size_t i = kRows; i < kRows + 50; ++i) job.others.push_back(runs[i].plan);
      own.Add(Compare(job));
    }
    own.Print(workload.c_str());
    all.Add(own);
  }
  all.Print("public traces");
  // What binds a hop, its flows or its host, has a minimum each where runs tell little.
  EXPECT_LT(all.observed.Quantile(0.95), kAgreed);
  EXPECT_LT(all.others.Quantile(0.95), kAgreed);
  EXPECT_LT(all.streaming.Quantile(0.5), kAgreed);
}

enum class Way { kRing, kOneNode, kServers, kTrees, kMixed, kRoundTrips };
const std::vector<std::pair<Way, const char*>> kWays = {
    {Way::kRing, "ring"},   {Way::kOneNode, "one node"}, {Way::kServers, "servers"},
    {Way::kTrees, "trees"}, {Way::kMixed, "mixed"},      {Way::kRoundTrips, "round trips"}};

// Some thirty plans; every third is left for others.
void MakePlans(Way way, const std::string& workload, Plans* observed, Plans* others) {
  constexpr std::size_t kMostObserved = 30;
  std::size_t i = 0;
  for (const Placement& placement : FittedPlacements()) {
    for (const int batch : SyntheticBatches(workload)) {
      Plan plan = AllreducePlan(placement, batch);
      if (way == Way::kOneNode && plan.nodes() > 1) continue;
      if (plan.workers() > 1) {
        if (way == Way::kServers) plan.strategy = Strategy::kPsSync;
        if (way == Way::kTrees) {
          plan.strategy = i % 2 == 0 ? Strategy::kHierarchical : Strategy::kTree;
        }
        if (way == Way::kMixed) {
          constexpr Strategy kSome[] = {Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync,
                                        Strategy::kTree};
          plan.strategy = kSome[i % 4];
          plan.accumulation_steps = 1 + static_cast<int>(i % 2);
        }
        if (UsesServers(plan.strategy)) plan.servers = 1 + static_cast<int>(i % 3);
      }
      if (way == Way::kRoundTrips && plan.nodes() > 1) {
        plan.link.rtt = Milliseconds(1.0 + static_cast<double>(i % 5));
      }
      const bool other = i++ % 3 == 2 || observed->size() == kMostObserved;
      (other ? others : observed)->push_back(plan);
    }
  }
}

// Rows of the truth in their turn.
Runs MakeRows(const Truth& truth, const std::string& workload, const Plans& plans, std::size_t rows,
              double noise_sd, std::uint64_t seed) {
  SyntheticProblem synthetic(truth);
  Noise noise(seed);
  for (std::size_t i = 0; i < rows; ++i) {
    synthetic.Add(workload, plans[7 * i % plans.size()], noise_sd * noise.Next());
  }
  return synthetic.problem().runs;
}

TEST(OnlineAgreement, WithFitsOfKnownTruthsFromPriors) {
  Agreement all;
  for (const auto& [way, name] : kWays) {
    Agreement own;
    for (const auto& [workload, values] : PlausibleTruth().workloads) {
      for (const double noise : {0.03, 0.06}) {
        Job job{SyntheticCluster(), workload, {}, {}, {}};
        Plans observed;
        MakePlans(way, workload, &observed, &job.others);
        job.rows = MakeRows(PlausibleTruth(), workload, observed, kRows, noise, 17);
        const Agreement agreement = Compare(job);
        EXPECT_FALSE(agreement.drifted) << name << " " << workload;
        own.Add(agreement);
      }
    }
    own.Print(name);
    all.Add(own);
  }
  all.Print("known truths, from priors");
  EXPECT_LT(all.observed.Quantile(0.95), kAgreed);
  EXPECT_LT(all.others.Quantile(0.95), kAgreed);
  EXPECT_LT(all.streaming.Quantile(0.9), kAgreed);
}

// The start is what a campaign taught, of all three workloads or without the job's; the batch fit
// is that of the campaign's runs and the job's.
TEST(OnlineAgreement, WithFitsOfKnownTruthsFromACalibration) {
  Agreement all;
  for (const bool known : {true, false}) {
    for (const auto& [workload, values] : PlausibleTruth().workloads) {
      SyntheticProblem campaign(PlausibleTruth());
      AddCampaign(&campaign, FittedPlacements(), 0.04, 3);
      CalibrationProblem problem = campaign.problem();
      problem.devices["t4"] = T4();
      if (!known) {
        problem.runs = RunsWhere(
            problem.runs, [&, &of = workload](const Row& run) { return run.workload != of; });
      }
      Job job{Calibrate(problem).cluster, workload, {}, {}, problem.runs};
      Plans observed;
      MakePlans(Way::kRing, workload, &observed, &job.others);
      job.rows = MakeRows(PlausibleTruth(), workload, observed, kRows, 0.04, 5);
      const Agreement agreement = Compare(job);
      EXPECT_FALSE(agreement.drifted) << workload;
      agreement.Print((workload + (known ? ", known before" : ", new")).c_str());
      all.Add(agreement);
    }
  }
  all.Print("from a calibration");
  // What a campaign has taught is a normal law here and rows there.
  EXPECT_LT(all.observed.Quantile(1), 1.25 * kAgreed);
  EXPECT_LT(all.others.Quantile(1), 1.25 * kAgreed);
  EXPECT_LT(all.streaming.Quantile(0.9), kAgreed);
}

// ---- Learning.

OnlineCalibration NewJob(const std::string& workload = "resnet50") {
  return {SyntheticCluster(), *FindWorkload(workload), T4()};
}

Plans SomePlans() {
  Plans plans;
  Plans others;
  MakePlans(Way::kRing, "resnet50", &plans, &others);
  return plans;
}

Runs SomeRows(std::size_t rows, double noise_sd = 0.03, std::uint64_t seed = 1) {
  return MakeRows(PlausibleTruth(), "resnet50", SomePlans(), rows, noise_sd, seed);
}

void ObserveAll(const Runs& rows, OnlineCalibration* job) {
  for (const Row& row : rows) job->Observe(row.plan, row.step_time);
}

TEST(OnlineCalibration, BeginsWithWhatIsBelieved) {
  for (const Cluster& cluster : {SyntheticCluster(), CalibratedCluster(PlausibleTruth())}) {
    const Predictor predictor(cluster, *FindWorkload("resnet50"), T4());
    for (const Plan& plan : SomePlans()) {
      OnlineCalibration job(cluster, *FindWorkload("resnet50"), T4());
      const Prediction expected = predictor.Predict(plan);
      const Observation said = job.Observe(plan, expected.step_time * 2.0);
      EXPECT_NEAR(said.predicted / expected.step_time, 1, 1e-12);
      EXPECT_NEAR(said.log_ratio, std::log(2.0), 1e-12);
      EXPECT_FALSE(said.drifted);
      // With one device the discrepancy's range is the same before the first run as after none.
      if (cluster.calibration) {
        EXPECT_NEAR(said.surprise * expected.log_sd, said.log_ratio, 1e-3);
      }
    }
  }
}

// Twice as many nodes as were measured add 4 % to the 3 % that steps scatter by: together 5 %.
TEST(OnlineSurprise, IsLessBeyondTheCalibratedRange) {
  const Cluster cluster = CalibratedCluster(PlausibleTruth(), 1e-6);
  const SyntheticProblem synthetic(PlausibleTruth());
  for (const std::size_t nodes : {8, 16}) {
    OnlineCalibration job(cluster, *FindWorkload("resnet50"), T4());
    const Plan plan = AllreducePlan(Placement(nodes, 1), 32);
    const Observation said = job.Observe(plan, synthetic.TrueStep("resnet50", plan) * 2.0);
    EXPECT_NEAR(said.surprise, std::log(2.0) / (nodes == 8 ? 0.03 : 0.05), 1e-6) << nodes;
  }
}

TEST(OnlineCalibration, WithoutRowsTheClusterIsTheStart) {
  EXPECT_FALSE(NewJob().cluster().calibration.has_value());
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  const OnlineCalibration job(cluster, *FindWorkload("resnet50"), T4());
  EXPECT_EQ(FormatCluster(job.cluster()), FormatCluster(cluster));
}

TEST(OnlineCalibration, FindsTheTruth) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(400), &job);
  EXPECT_EQ(job.rows(), 400);
  EXPECT_FALSE(job.drifted());
  const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
  const SyntheticProblem synthetic(PlausibleTruth());
  for (const Plan& plan : SomePlans()) {
    const Prediction prediction = learnt.Predict(plan);
    const Duration<> truth = synthetic.TrueStep("resnet50", plan);
    EXPECT_NEAR(prediction.step_time / truth, 1, 0.03);
    EXPECT_LT(prediction.low, truth);
    EXPECT_GT(prediction.high, truth);
  }
}

// Two nodes teach what a job of which only the size is known does on four.
TEST(OnlineCalibration, LearnsAWorkloadOfWhichOnlyTheSizeIsKnown) {
  const SyntheticProblem synthetic(PlausibleTruth());
  Workload job;
  job.name = "job";
  job.parameters = job.trainable_parameters = FindWorkload("bert_base")->trainable_parameters;
  job.gradient_bytes = FindWorkload("bert_base")->gradient_bytes;
  for (const std::optional<Device>& facts :
       {std::optional<Device>(T4()), std::optional<Device>()}) {
    OnlineCalibration online(SyntheticCluster(), job, facts);
    for (const Placement& placement : std::vector<Placement>{{1}, {4}, {4, 4}}) {
      for (const int batch : {4, 8}) {
        const Plan plan = AllreducePlan(placement, batch);
        online.Observe(plan, synthetic.TrueStep("bert_base", plan));
      }
    }
    const Predictor learnt(online.cluster(), job, facts);
    for (const int batch : {4, 8}) {
      const Plan plan = AllreducePlan(Placement(4, 4), batch);
      EXPECT_NEAR(learnt.PredictStep(plan).total() / synthetic.TrueStep("bert_base", plan), 1, 0.1);
    }
  }
}

TEST(OnlineCalibration, AWrongPriorIsNoDrift) {
  for (const double factor : {0.4, 1.7, 5.0}) {
    const Predictor before(SyntheticCluster(), *FindWorkload("resnet50"), T4());
    OnlineCalibration job = NewJob();
    for (int round = 0; round < 10; ++round) {
      for (const Plan& plan : SomePlans()) {
        job.Observe(plan, before.PredictStep(plan).total() * factor);
      }
    }
    EXPECT_FALSE(job.drifted()) << factor;
    const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
    for (const Plan& plan : SomePlans()) {
      const double ratio = learnt.PredictStep(plan).total() / before.PredictStep(plan).total();
      EXPECT_NEAR(ratio / factor, 1, 0.03);
    }
  }
}

// A row that is far off counts by its distance, not its square.
// However far that is from what was believed: steps of the search do not go to and fro.
TEST(OnlineCalibration, AJobOfOnePlanIsForecastAsItsStepsAre) {
  for (const Placement& placement : {Placement{1}, Placement{4, 4}, Placement{4, 4, 4, 4}}) {
    const Plan plan = AllreducePlan(placement, 32);
    for (const double factor : {0.1, 0.2, 0.35, 0.5, 2.0, 5.0}) {
      OnlineCalibration job = NewJob();
      const double step = factor * job.Observe(plan, Seconds(0.3)).predicted.si();
      job = NewJob();
      for (int i = 0; i < 150; ++i) {
        const Observation said = job.Observe(plan, Seconds(step * (1 + 0.01 * (i % 3))));
        if (i < 30) continue;
        EXPECT_NEAR(said.predicted.si() / step, 1.01, 0.025)
            << placement.size() << " " << factor << " " << i;
      }
    }
  }
}

// After rows of these plans and times, with a noise of 2 %, the last plan is forecast as it is: by
// the learnt cluster, as the batch fit does, and of its next row.
void ExpectLearnt(const Cluster& cluster, const std::vector<std::pair<Plan, double>>& steps,
                  std::uint64_t seed) {
  Noise noise(seed);
  Job job;
  job.cluster = cluster;
  job.workload = "resnet50";
  OnlineCalibration online(cluster, *FindWorkload(job.workload), T4());
  for (const auto& [plan, step] : steps) {
    Row row;
    row.workload = job.workload;
    row.device = kSyntheticDevice;
    row.plan = plan;
    row.step_time = Seconds(step * std::exp(0.02 * noise.Next()));
    online.Observe(plan, row.step_time);
    job.rows.push_back(std::move(row));
  }
  EXPECT_FALSE(online.drifted());
  EXPECT_LT(online.cluster().calibration->residual_log_sd, 0.04);
  const Predictor learnt(online.cluster(), *FindWorkload(job.workload), T4());
  const Predictor batch(BatchFit(job), *FindWorkload(job.workload), T4());
  const auto& [plan, step] = steps.back();
  EXPECT_NEAR(learnt.PredictStep(plan).total().si() / step, 1, 0.03);
  EXPECT_NEAR(learnt.PredictStep(plan).total() / batch.PredictStep(plan).total(), 1, kAgreed);
  EXPECT_NEAR(online.Observe(plan, Seconds(step)).predicted.si() / step, 1, 0.05);
}

// Link and servers hold a step back alike: neither makes it shorter by itself.
TEST(OnlineCalibration, LearnsStepsThatTwoRatesTogetherMakeShorter) {
  Cluster cluster = SyntheticCluster();
  cluster.link.bandwidth = GigabitsPerSecond(10);
  Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  const double forecast =
      Predictor(cluster, *FindWorkload("resnet50"), T4()).PredictStep(plan).total().si();
  for (const double factor : {0.4, 0.5, 0.75}) {
    SCOPED_TRACE(factor);
    ExpectLearnt(cluster, std::vector<std::pair<Plan, double>>(60, {plan, factor * forecast}), 3);
  }
}

// The link is stated, and what a flow reaches is many times as much before it holds anything back.
TEST(OnlineCalibration, LearnsALinkThatDeliversAPartOfWhatIsStated) {
  const double rate = 1.25e8;  // bytes/s
  const double gradient = FindWorkload("resnet50")->gradient_bytes.si();
  Plan alone = AllreducePlan({1}, 32);
  alone.strategy = Strategy::kRing;
  Plan ring = AllreducePlan({1, 1, 1, 1}, 32);
  ring.strategy = Strategy::kRing;
  for (Plan* plan : {&alone, &ring}) plan->link.bandwidth = BytesPerSecond(rate);
  for (const double share : {0.7, 0.6, 0.5, 0.3}) {
    SCOPED_TRACE(share);
    std::vector<std::pair<Plan, double>> steps(5, {alone, 0.25});
    steps.resize(65, {ring, 0.25 + 1.5 * gradient / (rate * share)});
    ExpectLearnt(SyntheticCluster(), steps, 5);
  }
}

TEST(OnlineCalibration, OneWildRowChangesLittle) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(100), &job);
  const Predictor before(job.cluster(), *FindWorkload("resnet50"), T4());
  const Plan plan = SomePlans()[3];
  const Observation said = job.Observe(plan, before.PredictStep(plan).total() * 20.0);
  EXPECT_GT(said.surprise, 10);
  EXPECT_FALSE(said.drifted);
  const Predictor after(job.cluster(), *FindWorkload("resnet50"), T4());
  EXPECT_NEAR(after.PredictStep(plan).total() / before.PredictStep(plan).total(), 1, 0.02);
}

TEST(OnlineCalibration, TheSameRowsGiveTheSameBits) {
  OnlineCalibration one = NewJob();
  OnlineCalibration other = NewJob();
  for (const Row& row : SomeRows(150)) {
    const Observation a = one.Observe(row.plan, row.step_time);
    if (one.rows() % 10 == 0) one.cluster();  // asking changes nothing
    const Observation b = other.Observe(row.plan, row.step_time);
    EXPECT_PRED2(SameBits, a.predicted.si(), b.predicted.si());
    EXPECT_PRED2(SameBits, a.surprise, b.surprise);
  }
  EXPECT_EQ(TextOf(one), TextOf(other));
  EXPECT_EQ(FormatCluster(one.cluster()), FormatCluster(other.cluster()));
}

TEST(OnlineCalibration, AnotherOrderOfTheRowsLearnsTheSame) {
  Runs rows = SomeRows(100);
  OnlineCalibration first = NewJob();
  ObserveAll(rows, &first);
  const Predictor expected(first.cluster(), *FindWorkload("resnet50"), T4());
  for (const std::uint64_t seed : {1, 2, 3}) {
    Shuffle(&rows, seed);
    OnlineCalibration job = NewJob();
    ObserveAll(rows, &job);
    const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
    for (const Plan& plan : SomePlans()) {
      EXPECT_NEAR(learnt.PredictStep(plan).total() / expected.PredictStep(plan).total(), 1, 1e-3);
    }
  }
}

// Beyond what is kept row by row and plan by plan.
TEST(OnlineCalibration, ManyRowsAndPlansTakeABoundedState) {
  OnlineCalibration job = NewJob();
  const SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(1);
  std::size_t longest = 0;
  for (int i = 0; i < 3000; ++i) {
    Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(1 + i % 8), 1 + i / 8 % 4),
                              4 + i * 37 % 90);
    job.Observe(plan, synthetic.TrueStep("resnet50", plan) * std::exp(0.03 * noise.Next()));
    if (i == 1500) longest = TextOf(job).size();
  }
  EXPECT_FALSE(job.drifted());
  EXPECT_LT(TextOf(job).size(), 1.2 * static_cast<double>(longest));
  EXPECT_LT(longest, 1'000'000U);
  const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
  // Plans that are kept no longer were linearised where the parameters were then.
  double error = 0;
  for (const Plan& plan : SomePlans()) {
    const double ratio = learnt.PredictStep(plan).total() / synthetic.TrueStep("resnet50", plan);
    EXPECT_NEAR(ratio, 1, 0.04);
    error += std::abs(ratio - 1);
  }
  EXPECT_LT(error / static_cast<double>(SomePlans().size()), 0.015);
  // The state goes on elsewhere.
  OnlineCalibration again = NewJob();
  again.Import(ParseOnlineRecord(TextOf(job)));
  EXPECT_EQ(TextOf(again), TextOf(job));
}

// Repeats of what has one answer have a part of their scatter in common, however they are stated.
TEST(OnlineCalibration, PlansThatTheModelCannotTellApartAreOne) {
  const auto times = [](const OnlineCalibration& job) {
    const std::string text = TextOf(job);
    std::size_t plans = 0;
    for (std::size_t at = text.find("\"times\""); at != std::string::npos;
         at = text.find("\"times\"", at + 1)) {
      ++plans;
    }
    return plans;
  };
  OnlineCalibration job = NewJob();
  OnlineCalibration same = NewJob();
  Plan plan = AllreducePlan({2, 1, 1}, 32);
  Plan turned = AllreducePlan({1, 1, 2}, 32);
  for (int i = 0; i < 20; ++i) {
    const Duration<> time = Seconds(0.2 + 0.001 * i);
    same.Observe(plan, time);
    job.Observe(i % 2 == 0 ? plan : turned, time);
  }
  EXPECT_EQ(times(job), 1);
  EXPECT_EQ(TextOf(job), TextOf(same));
  // Hosts of which nothing is known are none; and likeness makes no plan valid.
  turned.hosts = {"a", "b", "c"};
  job.Observe(turned, Seconds(0.2));
  EXPECT_EQ(times(job), 1);
  turned.hosts = {"a", "b"};
  EXPECT_TRUE(Says(ErrorOf([&] { job.Observe(turned, Seconds(0.2)); }), "hosts"));
  for (const Placement& other : {Placement{2, 2}, Placement{4}, Placement{3, 1}}) {
    job.Observe(AllreducePlan(other, 32), Seconds(0.2));
  }
  EXPECT_EQ(times(job), 4);
}

TEST(OnlineCalibration, NamedHostsHaveTheirOwnLinks) {
  Cluster cluster = SyntheticCluster();
  AddHosts({"a", "b", "c"}, GigabitsPerSecond(10.0), &cluster);
  Truth truth = PlausibleTruth();
  truth.host_links = {{"a", GigabitsPerSecond(10.0)},
                      {"b", GigabitsPerSecond(10.0)},
                      {"c", GigabitsPerSecond(7.0)}};
  truth.cluster.si[kFlowBandwidth] = GigabitsPerSecond(40.0).si();  // so that links limit
  const SyntheticProblem synthetic(truth, cluster);
  OnlineCalibration job(cluster, *FindWorkload("resnet50"), T4());
  for (int i = 0; i < 60; ++i) {
    Plan plan =
        AllreducePlan({1, 1}, SyntheticBatches("resnet50")[static_cast<std::size_t>(i % 4)]);
    plan.hosts =
        i % 2 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"c", "a"};
    job.Observe(plan, synthetic.TrueStep("resnet50", plan));
  }
  const Cluster learnt = job.cluster();
  const Predictor predictor(learnt, *FindWorkload("resnet50"), T4());
  // Their order tells nothing.
  OnlineCalibration copy(cluster, *FindWorkload("resnet50"), T4());
  copy.Import(ParseOnlineRecord(TextOf(job)));
  Plan plan = AllreducePlan({1, 1}, 24);
  plan.hosts = {"a", "c"};
  job.Observe(plan, Seconds(0.2));
  plan.hosts = {"c", "a"};
  copy.Observe(plan, Seconds(0.2));
  EXPECT_EQ(FormatCluster(job.cluster()), FormatCluster(copy.cluster()));
  plan.hosts = {"b", "c"};
  EXPECT_NEAR(predictor.PredictStep(plan).total() / synthetic.TrueStep("resnet50", plan), 1, 0.04);
  const auto link = learnt.calibration->Find("hosts c", "link_bandwidth");
  ASSERT_TRUE(link.has_value());
  EXPECT_LT(learnt.calibration->parameters[static_cast<std::size_t>(*link)].value, 8.5);
}

// Of too many times those become one whose squares around their mean are least: not the nearest,
// where hundreds of rows are at each.
TEST(OnlineState, JoinsTimesThatHardlyDiffer) {
  internal::ObservedPlan plan;
  for (int i = 0; i < 100; ++i) {
    plan.Add(0);
    plan.Add(0.01);
  }
  for (int i = 1; i < 31; ++i) plan.Add(i);
  ASSERT_EQ(plan.times.size(), internal::kMostTimes);
  plan.Add(30.011);
  ASSERT_EQ(plan.times.size(), internal::kMostTimes);
  EXPECT_EQ(plan.times[0].rows, 100);
  EXPECT_EQ(plan.times[1].rows, 100);
  EXPECT_NEAR(plan.times.back().log_step, 30.0055, 1e-12);
  EXPECT_EQ(plan.times.back().rows, 2);
  EXPECT_EQ(plan.rows, 231);
}

// ---- What is learnt, as a cluster.

TEST(OnlineCluster, IsACalibrationThatFilesHold) {
  for (const Cluster& start : {SyntheticCluster(), CalibratedCluster(PlausibleTruth())}) {
    OnlineCalibration job(start, *FindWorkload("resnet50"), T4());
    ObserveAll(SomeRows(100), &job);
    const Cluster cluster = job.cluster();
    const TempFolder folder;
    const Cluster read = ReadCluster(folder.Write("learnt.yaml", FormatCluster(cluster)));
    const Predictor one(cluster, *FindWorkload("resnet50"), T4());
    const Predictor other(read, *FindWorkload("resnet50"), T4());
    for (const Plan& plan : SomePlans()) {
      const Prediction a = one.Predict(plan);
      const Prediction b = other.Predict(plan);
      EXPECT_EQ(a.step_time, b.step_time);
      EXPECT_EQ(a.log_sd, b.log_sd);
      EXPECT_EQ(a.compute_source, ComputeSource::kFitted);
    }
    const Calibration& c = *cluster.calibration;
    EXPECT_EQ(c.sources.back().runs, 100);
    EXPECT_EQ(c.range.max_nodes, 8);
    EXPECT_EQ(c.range.BatchesOf(WorkloadScope(*FindWorkload("resnet50"), "t4"))->min, 2);
    const auto sample = c.Find(WorkloadScope(*FindWorkload("resnet50"), "t4"), "sample_time");
    ASSERT_TRUE(sample.has_value());
    const ParameterEstimate& e = c.parameters[static_cast<std::size_t>(*sample)];
    EXPECT_EQ(e.decided_by, start.calibration ? e.decided_by : DecidedBy::kData);
    EXPECT_LT(e.low, e.value);
    EXPECT_GT(e.high, e.value);
  }
}

// Intervals of 95 % of a normal ln(value), within what the parameter can be.
TEST(OnlineCluster, TellsIntervalsOfItsStandardErrors) {
  constexpr double kNinetyFive = 1.959964;
  const auto spec_of = [](const std::string& name) -> const ParameterSpec* {
    for (const ParameterSpec& spec : kClusterParameterSpecs) {
      if (spec.name == name) return &spec;
    }
    for (const ParameterSpec& spec : kWorkloadParameterSpecs) {
      if (spec.name == name) return &spec;
    }
    return nullptr;
  };
  int bounded = 0;
  int free = 0;
  for (const std::size_t rows : {3U, 100U}) {
    OnlineCalibration job = NewJob();
    ObserveAll(SomeRows(rows), &job);
    const Calibration c = *job.cluster().calibration;
    for (const ParameterEstimate& e : c.parameters) {
      const ParameterSpec* const spec = spec_of(e.name);
      if (spec == nullptr) continue;
      const double low = e.value * std::exp(-kNinetyFive * e.log_sd);
      const double high = e.value * std::exp(kNinetyFive * e.log_sd);
      EXPECT_NEAR(e.low, std::max(spec->low, low), 1e-6 * e.low) << e.name;
      EXPECT_NEAR(e.high, std::min(spec->high, high), 1e-6 * e.high) << e.name;
      bounded += low < spec->low || high > spec->high ? 1 : 0;
      free += low > spec->low && high < spec->high ? 1 : 0;
    }
  }
  EXPECT_GT(bounded, 0);
  EXPECT_GT(free, 0);
}

// What the file says of both parts of a step's scatter is multiplied by one factor: near 1 where
// rows scatter so, whatever their share of synchronisation.
TEST(OnlineCluster, ScattersAsTheFileSaysTimesAFactor) {
  Cluster start = CalibratedCluster(PlausibleTruth());
  start.calibration->scatter["all"] = {0.03, 0.3};
  const Workload workload = *FindWorkload("resnet50");
  const Predictor predictor(start, workload, T4());
  const std::string scope = WorkloadScope(*FindWorkload("resnet50"), "t4");
  for (const double times : {1.0, 3.0}) {
    OnlineCalibration job(start, workload, T4());
    Noise noise(8);
    double least_share = 1;
    for (int i = 0; i < 60; ++i) {
      const Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(2 + i % 6), 1), 2);
      const Prediction p = predictor.Predict(plan);
      const double share = p.breakdown.exposed() / p.step_time;
      const double sd = std::hypot(0.03 * (1 - share), 0.3 * share);
      least_share = std::min(least_share, share);
      job.Observe(plan, p.step_time * std::exp(times * sd * noise.Next()));
    }
    EXPECT_GT(least_share, 0.3) << "so that the two parts are told apart";
    const Scatter learnt = job.cluster().calibration->scatter.at(scope);
    EXPECT_NEAR(learnt.sync / learnt.compute, 10, 1e-9);
    EXPECT_NEAR(std::log(learnt.compute / (0.03 * times)), 0, 0.35) << times;
  }
}

// Steps that take twice as long are those of a slower device, for other workloads too.
TEST(OnlineCluster, ASlowWorkloadIsPartlyASlowDevice) {
  const auto speed = [](double times) {
    OnlineCalibration job(SyntheticCluster(), *FindWorkload("resnet50"), T4());
    for (const Row& row : SomeRows(40)) job.Observe(row.plan, row.step_time * times);
    const Calibration c = *job.cluster().calibration;
    return c.parameters[static_cast<std::size_t>(*c.Find("device t4", "device_speed"))].value;
  };
  EXPECT_LT(speed(2), 0.9 * speed(1));
  EXPECT_GT(speed(2), 0.5 * speed(1)) << "the rest is the workload's";
}

// What a workload takes for each sample tells of its device. Its fixed time, which is believed
// around that, tells nothing more: whether the cluster was fitted before, or not.
TEST(OnlineCluster, AFixedTimeTellsNothingOfTheDevice) {
  const auto taught = [](const Cluster& start, const std::string& workload, const Truth& truth) {
    const SyntheticProblem synthetic(truth);
    OnlineCalibration job(start, *FindWorkload(workload), T4());
    for (int i = 0; i < 25; ++i) {
      for (const int batch : SyntheticBatches(workload)) {
        const Plan plan = AllreducePlan({1}, batch);
        job.Observe(plan, synthetic.TrueStep(workload, plan));
      }
    }
    return job.cluster();
  };
  const Cluster fitted = taught(SyntheticCluster(), "bert_base", PlausibleTruth());
  for (const Cluster& start : {SyntheticCluster(), fitted}) {
    const auto log_speed = [&](double fixed_ms) {
      Truth truth = PlausibleTruth();
      truth.workloads.at("resnet50").si[kFixedTime] = 1e-3 * fixed_ms;
      const Calibration c = *taught(start, "resnet50", truth).calibration;
      const std::optional<int> at = c.Find("device t4", "device_speed");
      EXPECT_TRUE(at);
      return at ? std::log(c.parameters[static_cast<std::size_t>(*at)].value) : 0;
    };
    EXPECT_NEAR(log_speed(4), log_speed(60), 0.01);
  }
}

// What a job says of the network moves what is believed of other jobs, and no more than that.
TEST(OnlineCluster, KeepsWhatItDoesNotTouch) {
  const Cluster start = CalibratedCluster(PlausibleTruth(), 0.1);
  OnlineCalibration job(start, *FindWorkload("resnet50"), T4());
  ObserveAll(SomeRows(100), &job);
  const Calibration after = *job.cluster().calibration;
  const Calibration& before = *start.calibration;
  ASSERT_EQ(after.parameters.size(), before.parameters.size());
  for (std::size_t i = 0; i < before.parameters.size(); ++i) {
    const ParameterEstimate& a = after.parameters[i];
    const ParameterEstimate& b = before.parameters[i];
    EXPECT_EQ(a.scope, b.scope);
    EXPECT_EQ(a.name, b.name);
    EXPECT_LE(a.log_sd, b.log_sd * (1 + 1e-9)) << a.scope << " " << a.name;
    // All were independent, so that nothing was said of the others' curves.
    if (a.scope == WorkloadScope(*FindWorkload("bert_base"), "t4")) {
      EXPECT_NEAR(a.value / b.value, 1, 1e-12);
    }
  }
  EXPECT_LT(after.parameters[kLinkBandwidth].log_sd,
            0.5 * before.parameters[kLinkBandwidth].log_sd);
}

// ---- Drift.

// Rows until the alarm, at most `most`; of the truth with everything slower by `factor`.
int RowsToAlarm(OnlineCalibration* job, double factor, double noise_sd, std::uint64_t seed,
                int most) {
  const SyntheticProblem synthetic(PlausibleTruth());
  const Plans plans = SomePlans();
  std::mt19937_64 engine(seed);
  Noise noise(seed);
  for (int i = 1; i <= most; ++i) {
    const Plan& plan = plans[engine() % plans.size()];
    const Duration<> step = synthetic.TrueStep("resnet50", plan) * factor;
    if (job->Observe(plan, step * std::exp(noise_sd * noise.Next())).drifted) return i;
  }
  return most + 1;
}

TEST(OnlineDrift, FalseAlarmsAreRare) {
  constexpr int kJobs = 40;
  constexpr int kRowsEach = 500;
  int alarms = 0;
  const SyntheticProblem synthetic(PlausibleTruth());
  const Plans plans = SomePlans();
  for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
    OnlineCalibration job = NewJob();
    std::mt19937_64 engine(seed);
    Noise noise(seed);
    const double noise_sd = 0.02 + 0.002 * static_cast<double>(seed);
    for (int i = 0; i < kRowsEach; ++i) {
      const Plan& plan = plans[engine() % plans.size()];
      const Duration<> step = synthetic.TrueStep("resnet50", plan);
      if (!job.Observe(plan, step * std::exp(noise_sd * noise.Next())).cause.empty()) ++alarms;
    }
  }
  std::printf("[ measured ] %d false alarms in %d rows of %d jobs\n", alarms, kJobs * kRowsEach,
              kJobs);
  EXPECT_LE(alarms, 2);  // 3 of 100,000 rows, 2,500 each
}

// A checkpoint's pause is one of a step, long as it may be: the steps after it are as before.
TEST(OnlineDrift, APauseIsNoDriftNorAreTheStepsAfterIt) {
  const Plan plan = AllreducePlan({4, 4, 4, 4}, 32);
  const SyntheticProblem synthetic(PlausibleTruth());
  const double step = synthetic.TrueStep("resnet50", plan).si();
  int alarms = 0;
  for (const double pause : {0.5, 1.0, 3.0, 10.0}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      OnlineCalibration job(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), T4());
      Noise noise(seed);
      for (int i = 0; i < 1000; ++i) {
        const double paused = i % 250 == 125 ? pause : 0;
        const Observation said =
            job.Observe(plan, Seconds(step * std::exp(0.02 * noise.Next()) + paused));
        if (!said.cause.empty()) ++alarms;
      }
    }
  }
  std::printf("[ measured ] %d alarms in 24,000 rows with 96 pauses\n", alarms);
  EXPECT_LE(alarms, 1);
}

TEST(OnlineDrift, ASlowdownOfAFifthIsSeenSoon) {
  for (const double factor : {1.2, 1 / 1.2}) {
    std::vector<int> delays;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const double noise = seed % 2 == 0 ? 0.03 : 0.06;
      OnlineCalibration job = NewJob();
      ASSERT_GT(RowsToAlarm(&job, 1, noise, seed, 100), 100);
      delays.push_back(RowsToAlarm(&job, factor, noise, 1000 + seed, 100));
    }
    std::sort(delays.begin(), delays.end());
    std::printf(
        "[ measured ] a change by %+.0f %% is seen after %d rows in the median, %d at most\n",
        100 * (factor - 1), delays[delays.size() / 2], delays.back());
    EXPECT_LE(delays[delays.size() / 2], 8);
    EXPECT_LE(delays.back(), 25);
  }
}

// One row that is so far off is a pause; of a steady job a few are a change, however much it knows.
TEST(OnlineDrift, ASteadyJobsChangeIsSeenAsSoon) {
  Plan plan = AllreducePlan({1}, 32);
  for (const double noise_sd : {0.002, 0.01, 0.03}) {
    for (const double factor : {1.5, 1.2, 1 / 1.5}) {
      for (const int rows : {60, 1000}) {
        OnlineCalibration job = NewJob();
        Noise noise(1);
        const auto observe = [&](double seconds) {
          return job.Observe(plan, Seconds(seconds * std::exp(noise_sd * noise.Next())));
        };
        for (int i = 0; i < rows; ++i) {
          const double pause = i % 20 == 19 ? 3 : 1;
          EXPECT_EQ(observe(0.3 * pause).cause, "") << noise_sd << " " << i;
        }
        int seen = 1;
        while (seen < 100 && observe(0.3 * factor).cause.empty()) ++seen;
        EXPECT_LE(seen, 12) << noise_sd << " " << factor << " " << rows;
        for (int i = 0; i < 5; ++i) observe(0.3 * factor);
        EXPECT_NEAR(observe(0.3 * factor).predicted.si() / (0.3 * factor), 1, 0.1)
            << noise_sd << " " << factor << " " << rows;
      }
    }
  }
}

// What is said to have changed must be able to change the steps so.
TEST(OnlineDrift, AChangeThatNoOneLevelExplainsIsLearntAllTheSame) {
  const Plan plan = AllreducePlan({4, 4, 4, 4}, 32);
  for (const double factor : {0.5, 0.7, 2.0}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      OnlineCalibration job = NewJob();
      Noise noise(seed);
      const auto observe = [&](double seconds) {
        return job.Observe(plan, Seconds(seconds * std::exp(0.03 * noise.Next())));
      };
      for (int i = 0; i < 60; ++i) observe(0.4);
      for (int i = 0; i < 100; ++i) observe(0.4 * factor);
      EXPECT_TRUE(job.drifted());
      EXPECT_NEAR(observe(0.4 * factor).predicted.si() / (0.4 * factor), 1, 0.1)
          << factor << " " << seed;
    }
  }
}

// Where several levels may have changed, plans that were not observed since are known no better
// than a change leaves each of them; the plan that was is as certain as its rows make it.
TEST(OnlineDrift, PlansThatWereNotObservedSinceAreUncertainByTheChange) {
  const SyntheticProblem synthetic(PlausibleTruth());
  const Plan watched = AllreducePlan({4, 4}, 32);
  const Plan node = AllreducePlan({4}, 32);
  const Plan alone = AllreducePlan({1}, 32);
  for (const double factor : {0.6, 1.6, 3.0}) {
    OnlineCalibration job = NewJob();
    Noise noise(3);
    const auto observe = [&](const Plan& plan, double times) {
      return job.Observe(
          plan, synthetic.TrueStep("resnet50", plan) * times * std::exp(0.03 * noise.Next()));
    };
    const auto log_sd = [&](const Plan& plan) {
      return Predictor(job.cluster(), *FindWorkload("resnet50"), T4()).Predict(plan).log_sd;
    };
    for (int i = 0; i < 30; ++i) {
      for (const Plan& plan : {watched, node, alone}) observe(plan, 1);
    }
    ASSERT_FALSE(job.drifted()) << factor;
    ASSERT_LT(log_sd(alone), 0.1) << factor;
    std::string cause;
    for (int i = 0; i < 40; ++i) {
      if (const Observation said = observe(watched, factor); !said.cause.empty()) {
        cause = said.cause;
      }
    }
    ASSERT_NE(cause.find(" or "), std::string::npos) << factor << ": " << cause;
    EXPECT_GT(log_sd(alone), 0.3) << factor;
    EXPECT_GT(log_sd(node), 0.3) << factor;
    EXPECT_LT(log_sd(watched), 0.15) << factor;
    // Steps of one device tell the levels apart again.
    for (int i = 0; i < 8; ++i) observe(alone, factor);
    EXPECT_LT(log_sd(alone), 0.15) << factor;
  }
}

// What a job is told to have changed where its steps are of one truth, and then of another: 200 of
// these plans by turns, and up to 60. All of them count as rows.
std::string CauseOf(const SyntheticProblem& before, const SyntheticProblem& after,
                    std::span<const Plan> plans, OnlineCalibration job) {
  Noise noise(1);
  std::size_t rows = 0;
  std::string cause;
  const auto observe = [&](const SyntheticProblem& of) {
    const Plan& plan = plans[rows++ % plans.size()];
    const Duration<> step = of.TrueStep("resnet50", plan) * std::exp(0.03 * noise.Next());
    cause = job.Observe(plan, step).cause;
  };
  for (int i = 0; i < 200; ++i) observe(before);
  EXPECT_FALSE(job.drifted());
  for (int i = 0; i < 60 && cause.empty(); ++i) observe(after);
  EXPECT_EQ(job.rows(), static_cast<int>(rows));
  return cause;
}

// The exchange within nodes is another's than the network's and the devices'; rows count once.
TEST(OnlineDrift, ASlowerExchangeWithinANodeIsTheNodes) {
  Truth truth = PlausibleTruth();
  const SyntheticProblem before(truth);
  truth.cluster.si[kHostBandwidth] /= 3;
  const SyntheticProblem after(truth);
  const Plan plans[] = {AllreducePlan({1}, 8), AllreducePlan({2}, 8), AllreducePlan({4}, 8)};
  const std::string cause = CauseOf(before, after, plans, NewJob());
  EXPECT_NE(cause.find("node"), std::string::npos) << cause;
}

// Where servers set the pace their rate is what the network shows as, whatever has slowed it.
TEST(OnlineDrift, SlowerExchangeWithServersIsTheNetworks) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kServerRate] = 0.4e9;
  const SyntheticProblem before(truth);
  Plan plans[] = {AllreducePlan({1}, 8), AllreducePlan({1, 1}, 8), AllreducePlan({1, 1, 1, 1}, 8)};
  for (Plan& plan : plans) {
    if (plan.nodes() == 1) continue;
    plan.strategy = Strategy::kPsSync;
    plan.servers = 1;
  }
  for (const bool servers : {true, false}) {
    Truth slower = truth;
    if (servers) {
      slower.cluster.si[kServerRate] /= 2;
    } else {
      slower.cluster.si[kLinkBandwidth] /= 6;
      slower.cluster.si[kFlowBandwidth] /= 6;
    }
    const SyntheticProblem after(slower);
    const std::string cause =
        CauseOf(before, after, plans,
                OnlineCalibration(CalibratedCluster(truth), *FindWorkload("resnet50"), T4()));
    EXPECT_NE(cause.find("network"), std::string::npos)
        << cause << (servers ? " servers" : " links");
    EXPECT_EQ(cause.find("compute"), std::string::npos)
        << cause << (servers ? " servers" : " links");
  }
}

TEST(OnlineDrift, StaysKnown) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(100), &job);
  ASSERT_LE(RowsToAlarm(&job, 1.5, 0.03, 1, 50), 50);
  EXPECT_TRUE(job.drifted());
  const Row row = SomeRows(1)[0];
  EXPECT_TRUE(job.Observe(row.plan, row.step_time).drifted);
  EXPECT_TRUE(job.drifted());
}

// The truth with one thing changed, lastingly.
struct Change {
  const char* cause;
  std::function<void(Truth*)> make;
};

std::vector<Change> Changes() {
  std::vector<Change> changes;
  for (const double factor : {1.5, 1 / 1.5}) {
    changes.push_back({"network", [=](Truth* truth) {
                         for (const int rate : {kLinkBandwidth, kFlowBandwidth}) {
                           truth->cluster.si[static_cast<std::size_t>(rate)] /= factor;
                         }
                       }});
    changes.push_back({"compute", [=](Truth* truth) {
                         auto& curve = truth->workloads.at("resnet50");
                         for (const int time : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
                           curve.si[static_cast<std::size_t>(time)] *= factor;
                         }
                       }});
  }
  return changes;
}

// Found soon, named, followed; and what did not change is forecast as before.
TEST(OnlineDrift, AChangeIsFoundNamedAndFollowed) {
  constexpr int kSoon = 20;
  constexpr int kLater = 40;
  const Plans plans = SomePlans();
  const SyntheticProblem before(PlausibleTruth());
  int found = 0;
  int named = 0;
  int cases = 0;
  std::vector<double> off;    // of plans that have changed by a tenth at least
  std::vector<double> moved;  // of plans that have not
  for (const Change& change : Changes()) {
    Truth truth = PlausibleTruth();
    change.make(&truth);
    const SyntheticProblem after(truth);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const double noise_sd = seed % 2 == 0 ? 0.03 : 0.06;
      OnlineCalibration job = NewJob();
      std::mt19937_64 engine(seed);
      Noise noise(seed);
      std::string cause;
      int delay = 0;
      const auto observe = [&](const SyntheticProblem& of) {
        const Plan& plan = plans[engine() % plans.size()];
        const Duration<> step = of.TrueStep("resnet50", plan) * std::exp(noise_sd * noise.Next());
        const Observation said = job.Observe(plan, step);
        if (cause.empty()) cause = said.cause;
      };
      for (int i = 0; i < 200; ++i) observe(before);
      EXPECT_FALSE(job.drifted());
      const Predictor old(job.cluster(), *FindWorkload("resnet50"), T4());
      for (delay = 0; delay < kSoon && cause.empty(); ++delay) observe(after);
      ++cases;
      if (cause.empty()) continue;
      ++found;
      if (cause.find(change.cause) != std::string::npos) ++named;
      for (int i = 0; i < kLater; ++i) observe(after);
      const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
      for (const Plan& plan : plans) {
        const double factor = after.TrueStep("resnet50", plan) / before.TrueStep("resnet50", plan);
        const Duration<> says = learnt.PredictStep(plan).total();
        if (std::abs(factor - 1) > 0.1) {
          off.push_back(std::abs(says / after.TrueStep("resnet50", plan) - 1));
        } else if (std::abs(factor - 1) < 0.001) {
          moved.push_back(std::abs(says / old.PredictStep(plan).total() - 1));
        }
      }
    }
  }
  std::sort(off.begin(), off.end());
  std::sort(moved.begin(), moved.end());
  const auto at = [](const std::vector<double>& sorted, double q) {
    return 100 * sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  std::printf(
      "[ measured ] %d of %d changes found within %d rows, %d named; %d rows later forecasts are "
      "off by %.2f %% in the median, %.2f %% in 95 of 100; what did not change moved by %.2f %% in "
      "the median, %.2f %% in 95 of 100\n",
      found, cases, kSoon, named, kLater, at(off, 0.5), at(off, 0.95), at(moved, 0.5),
      at(moved, 0.95));
  EXPECT_GE(found, 0.95 * cases);
  EXPECT_GE(named, 0.95 * found);
  EXPECT_LT(at(off, 0.95), 5);
  EXPECT_LT(at(moved, 0.5), 1);
  EXPECT_LT(at(moved, 0.95), 5);
}

// What the next row is compared with is what cluster() forecasts, within what a step scatters.
TEST(OnlineState, SaysTheSameInBothWays) {
  std::mt19937_64 engine(3);
  Deviations apart;
  const SyntheticProblem synthetic(PlausibleTruth());
  for (int history = 0; history < 20; ++history) {
    const Plans plans = SomePlans();
    Noise noise(history + 1);
    OnlineCalibration taught = NewJob();
    ObserveAll(SomeRows(6 + engine() % 60, 0.05, 1 + engine() % 1000), &taught);
    OnlineCalibration job =
        history % 2 == 0 ? NewJob()
                         : OnlineCalibration(taught.cluster(), *FindWorkload("resnet50"), T4());
    const int change = static_cast<int>(engine() % 60);
    for (int i = 0; i < 60; ++i) {
      const Plan& plan = plans[engine() % (history % 3 == 0 ? 1 : plans.size())];
      const double factor = i < change ? 1 : 1.5;
      const Duration<> step =
          synthetic.TrueStep("resnet50", plan) * (factor * std::exp(0.05 * noise.Next()));
      const double expected =
          Predictor(job.cluster(), *FindWorkload("resnet50"), T4()).PredictStep(plan).total().si();
      apart.values.push_back(std::abs(job.Observe(plan, step).predicted.si() / expected - 1));
    }
  }
  std::printf(
      "[ measured ] the two ways are apart by %.3f %% in the median, %.2f %% in 95 of 100\n",
      100 * apart.Quantile(0.5), 100 * apart.Quantile(0.95));
  EXPECT_LT(apart.Quantile(0.5), 0.001);
  EXPECT_LT(apart.Quantile(0.95), 0.05);
}

// A plan that was never seen, from a calibration that is sure of itself: rows move the forecast to
// where they are, in both ways.
TEST(OnlineCalibration, FollowsRowsThatAreFarFromWhatItIsSureOf) {
  for (const char* workload : {"resnet50", "bert_base"}) {
    const SyntheticProblem synthetic(PlausibleTruth());
    OnlineCalibration job = NewJob(workload);
    Noise noise(1);
    for (int i = 0; i < 60; ++i) {
      const Placement some[] = {{1}, {2}, {4}, {1, 1}, {2, 2}, {4, 4}};
      const Plan plan = AllreducePlan(some[i % 6], SyntheticBatches(workload)[i % 2]);
      job.Observe(plan, synthetic.TrueStep(workload, plan) * std::exp(0.03 * noise.Next()));
    }
    OnlineCalibration slowed(job.cluster(), *FindWorkload(workload), T4());
    const Plan plan = AllreducePlan({4, 4, 4, 4}, SyntheticBatches(workload)[0]);
    const Duration<> slow = synthetic.TrueStep(workload, plan) * 1.5;
    Observation said;
    for (int i = 0; i < 40; ++i) {
      said = slowed.Observe(plan, slow * std::exp(0.03 * noise.Next()));
    }
    EXPECT_NEAR(said.predicted / slow, 1, 0.05) << workload;
    const Predictor learnt(slowed.cluster(), *FindWorkload(workload), T4());
    EXPECT_NEAR(learnt.PredictStep(plan).total() / slow, 1, 0.05) << workload;
  }
}

// ---- Rows together.

std::vector<MeasuredStep> StepsOf(const Runs& rows) {
  std::vector<MeasuredStep> steps;
  for (const Row& row : rows) steps.push_back({row.plan, row.step_time});
  return steps;
}

Cluster Together(const Cluster& start, const Runs& rows) {
  return LearnTogether(start, *FindWorkload("resnet50"), T4(), "", StepsOf(rows));
}

// How far forecasts of some plans by the one cluster are from those by the other, at most.
double MostApart(const Cluster& one, const Cluster& other) {
  const Workload workload = *FindWorkload("resnet50");
  const Predictor by_one(one, workload, T4());
  const Predictor by_other(other, workload, T4());
  double most = 0;
  for (const Plan& plan : SomePlans()) {
    const double ratio = by_one.PredictStep(plan).total() / by_other.PredictStep(plan).total();
    most = std::max(most, std::abs(ratio - 1));
  }
  return most;
}

TEST(OnlineTogether, IsWhereRowsLeadOneByOne) {
  for (const Cluster& start : {SyntheticCluster(), CalibratedCluster(PlausibleTruth())}) {
    for (const std::size_t count : {1, 7, 20, 100}) {
      const Runs rows = SomeRows(count);
      OnlineCalibration job(start, *FindWorkload("resnet50"), T4());
      ObserveAll(rows, &job);
      const Cluster one_by_one = job.cluster();
      const Cluster together = Together(start, rows);
      EXPECT_LT(MostApart(together, one_by_one), 0.1 * 0.03) << count << ", beside the noise";
      const Calibration& told = *together.calibration;
      EXPECT_EQ(told.sources.back().runs, one_by_one.calibration->sources.back().runs);
      EXPECT_EQ(told.range.max_workers, one_by_one.calibration->range.max_workers);
      EXPECT_NEAR(told.residual_log_sd / one_by_one.calibration->residual_log_sd, 1, 1e-2);
    }
  }
  EXPECT_EQ(FormatCluster(Together(SyntheticCluster(), {})), FormatCluster(SyntheticCluster()));
}

// What would be a change of a job that runs is none of rows that are no sequence.
TEST(OnlineTogether, TheirOrderTellsNothing) {
  Runs rows = SomeRows(60);
  for (std::size_t i = 40; i < rows.size(); ++i) rows[i].step_time = rows[i].step_time * 1.5;
  OnlineCalibration job = NewJob();
  ObserveAll(rows, &job);
  EXPECT_TRUE(job.drifted());
  const Cluster first = Together(SyntheticCluster(), rows);
  for (const std::uint64_t seed : {1, 2, 3}) {
    Shuffle(&rows, seed);
    EXPECT_LT(MostApart(Together(SyntheticCluster(), rows), first), 1e-6) << seed;
  }
}

TEST(OnlineTogether, RefusesWhatObserveRefuses) {
  std::vector<MeasuredStep> steps = StepsOf(SomeRows(5));
  const auto refuses = [&](const MeasuredStep& step, const std::string& why) {
    steps.back() = step;
    EXPECT_TRUE(Says(ErrorOf([&] {
                       LearnTogether(SyntheticCluster(), *FindWorkload("resnet50"), T4(), "",
                                     steps);
                     }),
                     why));
  };
  Plan plan = steps.front().plan;
  refuses({plan, Seconds(0)}, "step_time_s");
  plan.strategy = Strategy::kAuto;
  refuses({plan, Seconds(1)}, "auto");
}

// ---- The start.

// Steps of a cluster whose links and flows have a third of the rate that its calibration knows.
Duration<> StepOnASlowNetwork(const Plan& plan) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kLinkBandwidth] /= 3;
  truth.cluster.si[kFlowBandwidth] /= 3;
  return SyntheticProblem(truth).TrueStep("resnet50", plan);
}

// However sure the calibration is, its rows say of which days it is. What it is kept as goes on
// with the same bits.
TEST(OnlineStart, OfOtherDaysIsGivenUp) {
  const Cluster fitted = CalibratedCluster(PlausibleTruth());
  const Plans plans = SomePlans();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    OnlineCalibration job(fitted, *FindWorkload("resnet50"), T4());
    std::mt19937_64 engine(seed);
    Noise noise(seed);
    const auto observe = [&](OnlineCalibration* by) {
      const Plan& plan = plans[engine() % plans.size()];
      return by->Observe(plan, StepOnASlowNetwork(plan) * std::exp(0.04 * noise.Next()));
    };
    for (int i = 0; i < 40; ++i) observe(&job);
    EXPECT_TRUE(job.Export().anew);
    OnlineCalibration copy(fitted, *FindWorkload("resnet50"), T4());
    copy.Import(ParseOnlineRecord(TextOf(job)));
    EXPECT_EQ(TextOf(copy), TextOf(job));
    const Predictor learnt(job.cluster(), *FindWorkload("resnet50"), T4());
    for (const Plan& plan : plans) {
      EXPECT_NEAR(learnt.PredictStep(plan).total() / StepOnASlowNetwork(plan), 1, 0.08) << seed;
    }
    for (int i = 0; i < 20; ++i) {
      const std::mt19937_64 same = engine;
      const Noise as_loud = noise;
      const Observation one = observe(&job);
      engine = same;
      noise = as_loud;
      EXPECT_TRUE(SameBits(observe(&copy).predicted.si(), one.predicted.si()));
    }
  }
}

TEST(OnlineStart, OfOtherDaysIsGivenUpByRowsTogether) {
  Cluster fitted = CalibratedCluster(PlausibleTruth());
  fitted.calibration->sources = {{"runs", 100}};
  Noise noise(1);
  Runs rows;
  for (const Plan& plan : SomePlans()) {
    rows.emplace_back();
    rows.back().plan = plan;
    rows.back().step_time = StepOnASlowNetwork(plan) * std::exp(0.04 * noise.Next());
  }
  const Predictor learnt(Together(fitted, rows), *FindWorkload("resnet50"), T4());
  for (const Row& row : rows) {
    EXPECT_NEAR(learnt.PredictStep(row.plan).total() / StepOnASlowNetwork(row.plan), 1, 0.08);
  }
}

// A start that holds is never doubted, however noisy the steps are, nor one that is off by less
// than it says.
TEST(OnlineStart, ThatHoldsIsKept) {
  const Plans plans = SomePlans();
  const SyntheticProblem synthetic(PlausibleTruth());
  int given_up = 0;
  constexpr int kJobs = 40;
  for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
    Noise noise(seed);
    Truth believed = PlausibleTruth();
    const double log_sd = 0.02 + 0.1 * static_cast<double>(seed % 3);
    for (const int rate : {kLinkBandwidth, kFlowBandwidth, kHostBandwidth}) {
      believed.cluster.si[static_cast<std::size_t>(rate)] *= std::exp(log_sd * noise.Next());
    }
    OnlineCalibration job(CalibratedCluster(believed, log_sd), *FindWorkload("resnet50"), T4());
    std::mt19937_64 engine(seed);
    const double noise_sd = 0.01 * static_cast<double>(1 + seed % 10);
    for (int i = 0; i < 300; ++i) {
      const Plan& plan = plans[engine() % plans.size()];
      job.Observe(plan, synthetic.TrueStep("resnet50", plan) * std::exp(noise_sd * noise.Next()));
    }
    if (job.Export().anew && !job.drifted()) ++given_up;
  }
  std::printf("[ measured ] %d of %d starts that hold were given up\n", given_up, kJobs);
  EXPECT_EQ(given_up, 0);
}

// ---- State.

// At random moments of random histories, some of them of jobs that drift.
TEST(OnlineState, GoesOnWithTheSameBits) {
  std::mt19937_64 engine(1);
  for (int history = 0; history < 40; ++history) {
    const std::size_t before = engine() % 120;
    Runs rows = SomeRows(before + 30, 0.05, 1 + engine() % 1000);
    // From some row on the job is slower or faster than it was, or as it was.
    constexpr double kFactors[] = {0.8, 1.0, 1.1, 1.3};
    const double factor = kFactors[engine() % 4];
    for (std::size_t i = engine() % rows.size(); i < rows.size(); ++i) {
      rows[i].step_time = rows[i].step_time * factor;
    }
    const auto moment = rows.begin() + static_cast<std::ptrdiff_t>(before);
    OnlineCalibration job = NewJob();
    ObserveAll(Runs(rows.begin(), moment), &job);
    OnlineCalibration copy = NewJob();
    copy.Import(ParseOnlineRecord(TextOf(job)));
    ASSERT_EQ(TextOf(copy), TextOf(job));
    for (auto row = moment; row != rows.end(); ++row) {
      const Observation a = job.Observe(row->plan, row->step_time);
      const Observation b = copy.Observe(row->plan, row->step_time);
      ASSERT_TRUE(SameBits(a.predicted.si(), b.predicted.si()));
      ASSERT_TRUE(SameBits(a.surprise, b.surprise));
      ASSERT_EQ(a.drifted, b.drifted);
    }
    ASSERT_EQ(TextOf(job), TextOf(copy));
  }
}

// More plans than are kept one by one, some of them again and again: the oldest are forgotten, and
// the state goes on with the same bits from any moment.
TEST(OnlineState, GoesOnWithTheSameBitsWhilePlansAreForgotten) {
  constexpr int kRowsInAll = 420;
  const SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(7);
  std::mt19937_64 engine(7);
  std::vector<std::pair<Plan, Duration<>>> rows;
  for (int i = 0; i < kRowsInAll; ++i) {
    // Another plan most times, else one of the last three or of the first ten.
    int batch = 1 + i;
    if (i > 10 && i % 7 == 0) batch = 1 + static_cast<int>(engine() % 10);
    if (i > 10 && i % 5 == 0) batch = i - static_cast<int>(engine() % 3);
    const Plan plan = AllreducePlan(i % 2 == 0 ? Placement{1, 1} : Placement{2, 2}, batch);
    rows.emplace_back(plan, synthetic.TrueStep("resnet50", plan) * std::exp(0.03 * noise.Next()));
  }
  OnlineCalibration job = NewJob();
  std::vector<std::pair<int, OnlineCalibration>> copies;
  for (int i = 0; i < kRowsInAll; ++i) {
    if (i == 100 || i == 257 || i == 300 || i == 390) {
      copies.emplace_back(i, NewJob());
      copies.back().second.Import(ParseOnlineRecord(TextOf(job)));
      ASSERT_EQ(TextOf(copies.back().second), TextOf(job));
    }
    const Observation said = job.Observe(rows[i].first, rows[i].second);
    for (auto& [from, copy] : copies) {
      if (i >= from + 30) continue;
      const Observation same = copy.Observe(rows[i].first, rows[i].second);
      ASSERT_TRUE(SameBits(same.surprise, said.surprise)) << from << " at " << i;
      ASSERT_TRUE(SameBits(same.predicted.si(), said.predicted.si())) << from << " at " << i;
    }
  }
}

// The plan that takes the place of a forgotten one is found again, and is no second one.
TEST(OnlineState, KnowsThePlanThatMovedWhenAnotherWasForgotten) {
  OnlineCalibration job = NewJob();
  const auto plans = [&] { return job.Export().plans; };
  constexpr int kKept = 256;
  for (int batch = 1; batch <= kKept + 1; ++batch) {
    job.Observe(AllreducePlan({1}, batch), Seconds(0.1 + 0.005 * batch));
  }
  ASSERT_EQ(plans().size(), static_cast<std::size_t>(kKept));
  for (const MeasuredPlan& plan : plans()) EXPECT_NE(plan.plan.local_batch, 1) << "the oldest";
  for (const int again : {kKept + 1, 2, kKept}) {
    job.Observe(AllreducePlan({1}, again), Seconds(0.1 + 0.005 * again));
    int rows = 0;
    for (const MeasuredPlan& plan : plans()) {
      if (plan.plan.local_batch != again) continue;
      for (const MeasuredTime& time : plan.times) rows += static_cast<int>(time.rows);
    }
    EXPECT_EQ(rows, 2) << again;
    EXPECT_EQ(plans().size(), static_cast<std::size_t>(kKept));
  }
  // What was forgotten comes back as one that is new, and the next oldest goes.
  job.Observe(AllreducePlan({1}, 1), Seconds(0.105));
  EXPECT_EQ(plans().size(), static_cast<std::size_t>(kKept));
}

TEST(OnlineState, KeepsEverythingThatAPlanSays) {
  OnlineCalibration job = NewJob();
  Plan plan = AllreducePlan({2, 1, 1}, 16);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  plan.accumulation_steps = 3;
  plan.bucket = Mebibytes(3.3);
  plan.hosts = {"x", "y", "\xc3\xa9 \"z\""};
  plan.backup_workers = 1;
  plan.link = {.bandwidth = GigabitsPerSecond(3.7),
               .rtt = Milliseconds(1.1),
               .loss = 0.001,
               .congestion_control = CongestionControl::kBbr,
               .loss_burst = Milliseconds(0.3)};
  plan.server_link.bandwidth = GigabitsPerSecond(1.3);
  plan.server.sharding = Sharding::kEven;
  plan.server.pipelined = true;
  job.Observe(plan, Seconds(1.0));
  OnlineCalibration copy = NewJob();
  copy.Import(ParseOnlineRecord(TextOf(job)));
  EXPECT_EQ(TextOf(copy), TextOf(job));
  // It is the same plan to the copy: no second one appears.
  job.Observe(plan, Seconds(1.1));
  copy.Observe(plan, Seconds(1.1));
  EXPECT_EQ(TextOf(copy), TextOf(job));
}

// A plan's rows share a part of their scatter, so that many of them count for less each.
TEST(OnlineState, WeighsTheRowsOfAPlanByWhatTheyShare) {
  for (const int rows : {1, 2, 3}) {
    OnlineCalibration job = NewJob();
    for (int i = 0; i < rows; ++i) {
      job.Observe(AllreducePlan({1}, 32), Seconds(0.2 * std::exp(0.03 * i)));
    }
    const OnlineRecord record = job.Export();
    ASSERT_EQ(record.plans.size(), 1U);
    const MeasuredPlan& plan = record.plans[0];
    const double sd = record.scatter * std::sqrt(0.7 + 0.3 * rows);
    double weight = 0;
    for (const MeasuredTime& time : plan.times) {
      const double z = (time.log_step - plan.log_step) / sd;
      weight += time.rows / (std::sqrt(1 + z * z) * sd * sd);
    }
    EXPECT_NEAR(plan.weight, weight, 1e-9 * weight) << rows;
  }
}

// A step is cut, however far the normal equations would go at once.
TEST(OnlineState, NoStepIsLongerThanTwoStandardDeviations) {
  internal::OnlineState state(SyntheticCluster(), *FindWorkload("resnet50"), T4(), "t4");
  state.Observe(AllreducePlan({1}, 32), Seconds(0.2));
  const Eigen::VectorXd before = state.y;
  state.b += Eigen::VectorXd::Constant(state.size(), 100);
  EXPECT_GT(state.Solve(), 0);
  EXPECT_NEAR((state.y - before).norm(), 2, 1e-9);
}

// However well the rows tell, who stated a value has decided it.
TEST(OnlineCluster, WhatWasStatedStaysStated) {
  Cluster start = CalibratedCluster(PlausibleTruth());
  const auto at =
      static_cast<std::size_t>(*start.calibration->Find(kClusterScope, "overlap_share"));
  ParameterEstimate& stated = start.calibration->parameters[at];
  stated.log_sd = 0;
  stated.decided_by = DecidedBy::kStated;
  const auto row = static_cast<Eigen::Index>(at);
  start.calibration->log_covariance.row(row).setZero();
  start.calibration->log_covariance.col(row).setZero();
  OnlineCalibration job(start, *FindWorkload("resnet50"), T4());
  ObserveAll(SomeRows(20), &job);
  const ParameterEstimate learnt = job.cluster().calibration->parameters.at(at);
  EXPECT_EQ(learnt.name, "overlap_share");
  EXPECT_EQ(learnt.decided_by, DecidedBy::kStated);
  EXPECT_EQ(learnt.log_sd, 0);
  EXPECT_NEAR(learnt.value / stated.value, 1, 1e-12);
}

// What remains of a variance is what the rows of one plan leave of it: each counts by the mean of
// 1 / root and 1 / root^2, root^2 = 1 + z^2, of a scatter that rows of one plan share a part of.
TEST(OnlineCluster, IsAsCertainAsRowsOfOnePlanMakeIt) {
  const Cluster start = CalibratedCluster(PlausibleTruth(), 0.1);
  const Workload workload = *FindWorkload("resnet50");
  internal::OnlineState state(start, workload, T4(), "t4");
  const Plan plan = AllreducePlan({1}, 32);
  const double step = Predictor(start, workload, T4()).PredictStep(plan).total().si();
  const std::vector<double> offs = {0, 0, 0, 0, 0.3, -0.3};
  for (const double off : offs) state.Observe(plan, Seconds(step * std::exp(off)));
  state.Settle(true);
  const Cluster learnt = state.AtY();
  const double predicted = Predictor(learnt, workload, T4()).PredictStep(plan).total().si();
  const double sd = state.scatter * std::sqrt(0.7 + 0.3 * static_cast<double>(offs.size()));
  double weight = 0;
  for (const double off : offs) {
    const double z = (std::log(step / predicted) + off) / sd;
    const double root = std::sqrt(1 + z * z);
    weight += 0.5 * (1 / root + 1 / (root * root)) / (sd * sd);
  }
  // The slope of ln(step) by each parameter, and the variance along it before any row.
  const std::vector<ParameterEstimate>& parameters = learnt.calibration->parameters;
  std::vector<double> slopes;
  double variance = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto log_step = [&](double by) {
      Cluster moved = learnt;
      moved.calibration->parameters[i].value *= std::exp(by);
      return std::log(Predictor(moved, workload, T4()).PredictStep(plan).total().si());
    };
    constexpr double kMove = 1e-4;
    slopes.push_back((log_step(kMove) - log_step(-kMove)) / (2 * kMove));
    variance += slopes.back() * slopes.back() * 0.1 * 0.1;
  }
  int told_of = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double before = 0.1 * 0.1;
    const double seen = before * slopes[i];
    const double after = before - seen * seen * weight / (1 + variance * weight);
    EXPECT_NEAR(parameters[i].log_sd, std::sqrt(after), 1e-4) << parameters[i].name;
    told_of += after < 0.9 * before ? 1 : 0;
  }
  EXPECT_GT(told_of, 0);
}

void ExpectSamePlan(const Plan& a, const Plan& b) {
  EXPECT_EQ(StatedKey(a), StatedKey(b));
  EXPECT_EQ(a.placement, b.placement);
  EXPECT_EQ(a.hosts, b.hosts);
}

// A record that is written and read is the same, member by member.
TEST(OnlineState, WritesEveryMemberOfARecord) {
  OnlineCalibration job = NewJob();
  for (const Placement& placement : {Placement{1}, Placement{1, 1}}) {
    Plan plan = AllreducePlan(placement, 16);
    plan.hosts = {"x"};
    if (placement.size() == 2) plan.hosts = {"x", "y"};
    job.Observe(plan, Seconds(0.2 * static_cast<double>(placement.size())));
  }
  Runs rows = SomeRows(120, 0.05);
  for (std::size_t i = 60; i < rows.size(); ++i) rows[i].step_time = rows[i].step_time * 1.4;
  ObserveAll(rows, &job);
  const OnlineRecord is = job.Export();
  const OnlineRecord read = ParseOnlineRecord(FormatOnlineRecord(is));
  // One more than is compared here would be forgotten.
  EXPECT_EQ(CountMembers<OnlineRecord>(), 24U);
  EXPECT_EQ(CountMembers<OnlineRecord::LatestRow>(), 5U);
  EXPECT_EQ(CountMembers<MeasuredPlan>(), 7U);
  // What may be mixed up differs.
  EXPECT_TRUE(is.anew && is.earlier_rows > 0 && !is.latest.empty());
  EXPECT_NE(is.next_scatter, is.rows);
  EXPECT_NE(is.scatter, is.start_scatter);
  EXPECT_NE(is.next_plan, 0);
  EXPECT_FALSE(is.range.hosts_alone.empty());

  EXPECT_EQ(read.cluster, is.cluster);
  EXPECT_EQ(read.workload, is.workload);
  EXPECT_EQ(read.device, is.device);
  EXPECT_EQ(read.start_log_values, is.start_log_values);
  EXPECT_EQ(read.start_log_sds, is.start_log_sds);
  EXPECT_EQ(read.start_scatter, is.start_scatter);
  EXPECT_EQ(read.smallest_batch, is.smallest_batch);
  EXPECT_EQ(read.least_activations.si(), is.least_activations.si());
  ASSERT_TRUE(read.anew);
  ASSERT_EQ(read.anew->parameters.size(), is.anew->parameters.size());
  for (std::size_t i = 0; i < is.anew->parameters.size(); ++i) {
    EXPECT_EQ(read.anew->parameters[i].value, is.anew->parameters[i].value);
    EXPECT_EQ(read.anew->parameters[i].log_sd, is.anew->parameters[i].log_sd);
  }
  EXPECT_EQ(read.earlier_rows, is.earlier_rows);
  EXPECT_EQ(read.rows, is.rows);
  EXPECT_EQ(read.y, is.y);
  EXPECT_EQ(read.scatter, is.scatter);
  EXPECT_EQ(read.next_scatter, is.next_scatter);
  EXPECT_EQ(read.next_plan, is.next_plan);
  EXPECT_EQ(read.drift_sums, is.drift_sums);
  EXPECT_EQ(read.drift_rows, is.drift_rows);
  const auto lower = [](const Eigen::MatrixXd& m) -> Eigen::MatrixXd {
    return m.triangularView<Eigen::Lower>();
  };
  EXPECT_EQ(lower(read.a), lower(is.a));
  EXPECT_EQ(read.b, is.b);
  EXPECT_EQ(lower(read.folded), lower(is.folded));
  EXPECT_EQ(read.folded_b, is.folded_b);
  EXPECT_EQ(read.range.max_nodes, is.range.max_nodes);
  EXPECT_EQ(read.range.max_workers, is.range.max_workers);
  EXPECT_EQ(read.range.hosts_alone, is.range.hosts_alone);
  EXPECT_FALSE(is.range.exchanges.value().empty());
  EXPECT_EQ(read.range.exchanges, is.range.exchanges);
  const std::string scope = WorkloadScope(*FindWorkload("resnet50"), "t4");
  ASSERT_NE(is.range.BatchesOf(scope)->min, is.range.BatchesOf(scope)->max);
  EXPECT_EQ(read.range.BatchesOf(scope)->min, is.range.BatchesOf(scope)->min);
  EXPECT_EQ(read.range.BatchesOf(scope)->max, is.range.BatchesOf(scope)->max);
  EXPECT_EQ(read.range.BatchesOf(scope)->max_workers, is.range.BatchesOf(scope)->max_workers);
  ASSERT_EQ(read.latest.size(), is.latest.size());
  for (std::size_t i = 0; i < is.latest.size(); ++i) {
    ExpectSamePlan(read.latest[i].plan, is.latest[i].plan);
    EXPECT_EQ(read.latest[i].log_step, is.latest[i].log_step);
    EXPECT_EQ(read.latest[i].residual, is.latest[i].residual);
    EXPECT_EQ(read.latest[i].sd, is.latest[i].sd);
    EXPECT_EQ(read.latest[i].slopes, is.latest[i].slopes);
  }
  ASSERT_EQ(read.plans.size(), is.plans.size());
  for (std::size_t i = 0; i < is.plans.size(); ++i) {
    ExpectSamePlan(read.plans[i].plan, is.plans[i].plan);
    ASSERT_EQ(read.plans[i].times.size(), is.plans[i].times.size());
    for (std::size_t t = 0; t < is.plans[i].times.size(); ++t) {
      EXPECT_EQ(read.plans[i].times[t].rows, is.plans[i].times[t].rows);
      EXPECT_EQ(read.plans[i].times[t].log_step, is.plans[i].times[t].log_step);
    }
    EXPECT_EQ(read.plans[i].last, is.plans[i].last);
    EXPECT_EQ(read.plans[i].log_step, is.plans[i].log_step);
    EXPECT_EQ(read.plans[i].weight, is.plans[i].weight);
    EXPECT_EQ(read.plans[i].target, is.plans[i].target);
    EXPECT_EQ(read.plans[i].slopes, is.plans[i].slopes);
  }
}

// The state tells which plan was observed, also among plans that differ in one field of the list.
TEST(OnlineState, KeepsEveryFieldOfAPlan) {
  for (const ChangedPlan& plan : ChangedPlans()) {
    if (plan.facts.state == std::string("strategy")) continue;  // the ring is what allreduce is
    OnlineCalibration job = NewJob();
    job.Observe(plan.before, Seconds(1.0));
    const std::string before = TextOf(job);
    OnlineCalibration other = NewJob();
    other.Observe(plan.after, Seconds(1.0));
    const std::string after = TextOf(other);
    EXPECT_NE(after.find("\"" + std::string(plan.facts.state) + "\":"), std::string::npos)
        << plan.facts.state;
    OnlineCalibration copy = NewJob();
    copy.Import(ParseOnlineRecord(after));
    EXPECT_EQ(TextOf(copy), after) << plan.facts.state;
    EXPECT_NE(before, after) << plan.facts.state;
  }
}

TEST(OnlineState, OfAnotherJobIsRefused) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(20), &job);
  const std::string text = TextOf(job);
  const auto refuses = [&](OnlineCalibration other, const std::string& of, const std::string& why) {
    const std::string before = TextOf(other);
    EXPECT_TRUE(Says(ErrorOf([&] { other.Import(ParseOnlineRecord(of)); }), why));
    EXPECT_EQ(TextOf(other), before) << "nothing changes";
  };
  refuses(NewJob("vgg16"), text, "workload");
  Cluster elsewhere = SyntheticCluster();
  elsewhere.name = "elsewhere";
  refuses({elsewhere, *FindWorkload("resnet50"), T4()}, text, "cluster");
  Device p100 = T4();
  p100.name = "p100";
  refuses({SyntheticCluster(), *FindWorkload("resnet50"), p100}, text, "device");
  refuses({CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), T4()}, text,
          "another calibration");
  std::string newer = text;
  const std::string version = "\"version\":3";
  ASSERT_NE(newer.find(version), std::string::npos);
  newer.replace(newer.find(version), version.size(), "\"version\":4");
  refuses(NewJob(), newer, "version");
  for (const char* none : {"", "{", "{}", "[]", "null", "calibration", "{\"version\": 99}"}) {
    refuses(NewJob(), none, "");
  }
}

// Each part of what was learnt, as no job can have left it: refused with its name, and nothing
// changes; a little less, and it is taken.
TEST(OnlineState, ThatNoJobCanHaveLeftIsRefused) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(20), &job);
  const OnlineRecord good = job.Export();
  ASSERT_FALSE(good.anew);
  ASSERT_GT(good.plans.size(), 1U);
  OnlineCalibration other = NewJob();
  const std::string before = TextOf(other);
  const auto error_of = [&](const std::function<void(OnlineRecord*)>& change) {
    OnlineRecord record = good;
    change(&record);
    const std::optional<InputError> error = ErrorOf([&] { other.Import(record); });
    if (error) {
      EXPECT_EQ(TextOf(other), before) << error->what();
    }
    other = NewJob();
    return error;
  };
  EXPECT_FALSE(error_of([](OnlineRecord*) {}));
  const std::string size = std::to_string(good.y.size());
  const std::string more = std::to_string(good.y.size() + 1);
  const std::string of_size = ": '" + more + "' is of another size; allowed: " + size;
  const auto grown = [](const Eigen::VectorXd& vector) {
    return Eigen::VectorXd(Eigen::VectorXd::Zero(vector.size() + 1));
  };
  const auto larger = [](const Eigen::MatrixXd& matrix) {
    return Eigen::MatrixXd(Eigen::MatrixXd::Identity(matrix.rows() + 1, matrix.rows() + 1));
  };
  const auto rows = [&](std::int64_t beyond) { return std::to_string(good.rows + beyond); };
  const struct {
    std::string says;
    std::function<void(OnlineRecord*)> change;
  } cases[] = {
      {"earlier_rows: '3' are not what began anew", [](auto* r) { r->earlier_rows = 3; }},
      {"start_log_values: ", [](auto* r) { r->start_log_values[1] += 1e-6; }},
      {"start_log_sds: ", [](auto* r) { r->start_log_sds[1] *= 1.1; }},
      {"start_scatter: ", [](auto* r) { r->start_scatter *= 1.1; }},
      {"y" + of_size, [&](auto* r) { r->y = grown(r->y); }},
      {"folded" + of_size, [&](auto* r) { r->folded = larger(r->folded); }},
      {"folded_b" + of_size, [&](auto* r) { r->folded_b = grown(r->folded_b); }},
      {"a" + of_size, [&](auto* r) { r->a = larger(r->a); }},
      {"b" + of_size, [&](auto* r) { r->b = grown(r->b); }},
      {"y: is of no parameters that can be", [](auto* r) { r->y[0] = -1001; }},
      {"drift: '5' sums are not those of this version", [](auto* r) { r->drift_sums.pop_back(); }},
      {"drift: '6' sums are not those of this version", [](auto* r) { r->drift_rows.pop_back(); }},
      {"drift: '" + std::to_string(good.latest.size() + 1) + "' are more rows than there are",
       [](auto* r) { r->drift_rows[2] = static_cast<std::int64_t>(r->latest.size()) + 1; }},
      {"drift: '2' slopes are not those of this version",
       [](auto* r) {
         r->latest.emplace_back();
         r->latest.back().slopes = {1, 2};
       }},
      {"folded: is of no normal equations", [](auto* r) { r->folded(0, 0) = -2; }},
      {"a: is not positive definite", [](auto* r) { r->a(1, 1) = -1; }},
      {"plans: '257' is too many; allowed: 256",
       [](auto* r) { r->plans.resize(257, r->plans.front()); }},
      {"slopes" + of_size, [&](auto* r) { r->plans[1].slopes = grown(r->plans[1].slopes); }},
      {"times: '0' is no number of times that a plan has",
       [](auto* r) { r->plans[0].times.clear(); }},
      {"times: '33' is no number of times that a plan has",
       [](auto* r) { r->plans[0].times.resize(33, r->plans[0].times[0]); }},
      {"last_row: '" + rows(1) + "' is out of range",
       [](auto* r) { r->plans[0].last = r->rows + 1; }},
      {"is there twice", [](auto* r) { r->plans.push_back(r->plans.front()); }},
      {"rows: '" + rows(0) + "' is not what the plans have",
       [](auto* r) { r->plans[0].times[0].rows += 1; }},
      {"rows: '" + rows(0) + "' is not what the plans have", [](auto* r) { r->plans.clear(); }},
      {"next_plan: '-1' is out of range", [](auto* r) { r->next_plan = -1; }},
      {"next_plan: '257' is out of range", [](auto* r) { r->next_plan = 257; }}};
  for (const auto& c : cases) EXPECT_TRUE(Says(error_of(c.change), c.says)) << c.says;
  EXPECT_FALSE(error_of([](auto* r) { r->y[0] = -999; }));
  EXPECT_FALSE(error_of([](auto* r) { r->next_plan = 256; }));
  EXPECT_FALSE(error_of([](auto* r) { r->start_log_values[1] += 1e-9; })) << "rounded otherwise";
}

// The times of a plan rise, each once with its number of rows.
TEST(OnlineState, TimesOfAPlanAreInOrder) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(1), &job);
  OnlineRecord record = job.Export();
  const auto error_of = [&](const std::vector<MeasuredTime>& times) {
    record.plans.at(0).times = times;
    return ErrorOf([&] { ParseOnlineRecord(FormatOnlineRecord(record)); });
  };
  const char* says = "times: ";
  EXPECT_FALSE(error_of({{-1.5, 2}, {-1, 1}}));
  EXPECT_TRUE(Says(error_of({{-1, 1}, {-1.5, 2}}), says));
  EXPECT_TRUE(Says(error_of({{-1, 1}, {-1, 2}}), "is out of order, or no number of rows"));
  EXPECT_TRUE(Says(error_of({{-1.5, 2}, {-1, 1.5}}), says));
}

// Whatever is done to the text: a state as good as any other, or an error and no change.
TEST(OnlineState, DamagedTextIsRefusedOrHarmless) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(12), &job);
  const std::string text = TextOf(job);
  OnlineCalibration other = NewJob();
  const std::string before = TextOf(other);
  std::mt19937_64 engine(1);
  constexpr char kLetters[] = "0123456789.-+eE,:[]{}\"ntrufalsx \xff";
  int refused = 0;
  constexpr int kTries = 3000;
  for (int i = 0; i < kTries; ++i) {
    std::string damaged = text;
    if (i % 4 == 0) {
      damaged.resize(engine() % text.size());
    } else if (i % 4 == 1) {
      damaged.erase(engine() % text.size(), 1 + engine() % 20);
    } else {
      for (int n = 0; n < 1 + i % 3; ++n) {
        damaged[engine() % text.size()] = kLetters[engine() % (sizeof kLetters - 1)];
      }
    }
    try {
      other.Import(ParseOnlineRecord(damaged));
      // It goes on somehow.
      const Row row = SomeRows(1)[0];
      try {
        other.Observe(row.plan, row.step_time);
        other.cluster();
      } catch (const InputError&) {
      }
      other = NewJob();
    } catch (const InputError&) {
      ++refused;
      ASSERT_EQ(TextOf(other), before);
    }
  }
  EXPECT_GT(refused, kTries / 2);
}

// ---- Bad input.

TEST(OnlineInput, TeachesNothing) {
  OnlineCalibration job = NewJob();
  ObserveAll(SomeRows(5), &job);
  const std::string before = TextOf(job);
  const Plan good = SomePlans()[0];
  const auto refuses = [&](const Plan& plan, double seconds, const std::string& why) {
    EXPECT_TRUE(Says(ErrorOf([&] { job.Observe(plan, Seconds(seconds)); }), why));
    EXPECT_EQ(TextOf(job), before);
    EXPECT_EQ(job.rows(), 5);
  };
  for (const double none : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    refuses(good, none, "step_time_s");
  }
  Plan plan = good;
  plan.strategy = Strategy::kAuto;
  refuses(plan, 1, "auto");
  plan.strategy = Strategy::kPsSync;
  refuses(plan, 1, "servers");
  plan = good;
  plan.local_batch = 0;
  refuses(plan, 1, "local-batch");
  plan = good;
  plan.placement = {};
  refuses(plan, 1, "placement");
}

}  // namespace
}  // namespace stepcast
