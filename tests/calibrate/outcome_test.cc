// What a calibration answers when there is little or nothing to learn from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/scatter.h"
#include "data/io/machines.h"
#include "model/statistics/normal.h"
#include "model/step/answer.h"
#include "model/step/believed_model.h"
#include "model/step/parameter_specs.h"
#include "model/step/worker_spread.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Status = CalibrationOutcome::Status;

Truth OneWorkload() {
  Truth truth = PlausibleTruth();
  const WorkloadParameters<double> resnet50 = truth.workloads.at("resnet50");
  truth.workloads = {{"resnet50", resnet50}};
  return truth;
}

TEST(Outcome, NoRuns) {
  const SyntheticProblem synthetic(OneWorkload());
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  EXPECT_EQ(outcome.status, Status::kNoRuns);
  EXPECT_FALSE(outcome.IsUsable());
  EXPECT_FALSE(outcome.message.empty());
  EXPECT_FALSE(outcome.cluster.calibration.has_value());
  EXPECT_TRUE(outcome.residuals.empty());
}

// How far runs are from what is believed before any of them is their median: a few of another unit
// among them change nothing.
TEST(Outcome, BeforeTheFitTheMiddleRunCounts) {
  const auto log_ratio = [](const std::vector<double>& times) {
    SyntheticProblem synthetic(OneWorkload());
    synthetic.problem().devices[kSyntheticDevice] = T4();
    for (const double factor : times) {
      synthetic.Add("resnet50", AllreducePlan({1}, 32), std::log(factor));
    }
    return Calibrate(synthetic.problem()).prior_log_ratio;
  };
  const double alike = log_ratio({1, 1, 1, 1, 1});
  EXPECT_NEAR(log_ratio({1, 60, 1, 60, 1}), alike, 1e-9);
  EXPECT_NEAR(log_ratio({1, 1 / 60.0, 1, 1, 1 / 60.0}), alike, 1e-9);
  EXPECT_NEAR(log_ratio({3, 3, 3, 3, 3}), alike + std::log(3.0), 1e-9);
}

TEST(Outcome, OneRunWorksWithWideIntervals) {
  SyntheticProblem synthetic(OneWorkload());
  const Plan measured = AllreducePlan({1, 1}, 32);
  synthetic.Add("resnet50", measured);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_EQ(outcome.status, Status::kConverged) << outcome.message;
  EXPECT_LT(outcome.mape, 0.05);
  EXPECT_EQ(outcome.residuals.size(), 1U);

  const Predictor predictor(outcome.cluster, synthetic.problem().workloads.at("resnet50"),
                            std::nullopt, kSyntheticDevice);
  const auto spread = [&](const Plan& plan) {
    const Prediction p = predictor.Predict(plan);
    return p.high / p.low;
  };
  EXPECT_LT(spread(measured), 1.4) << "the plan it was fitted to";
  EXPECT_GT(spread(AllreducePlan({1, 1}, 256)), 1.05 * spread(measured)) << "a larger batch";
  EXPECT_GT(spread(AllreducePlan({1, 1}, 1)), 2) << "where the fixed time counts";
  EXPECT_GT(spread(AllreducePlan(Placement(16, 4), 8)), 2) << "another layout";
}

TEST(Outcome, FewerRunsWidenTheInterval) {
  const auto log_sd = [](const std::vector<Placement>& placements) {
    SyntheticProblem synthetic(OneWorkload());
    AddCampaign(&synthetic, placements, 0.05, 3);
    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    const Predictor predictor(outcome.cluster, synthetic.problem().workloads.at("resnet50"),
                              std::nullopt, kSyntheticDevice);
    return predictor.Predict(AllreducePlan(Placement(8, 2), 16)).log_sd;
  };
  EXPECT_GT(log_sd({{1}}), 1.2 * log_sd(FittedPlacements()));
}

TEST(Outcome, AFitThatWasCutShortSaysSo) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), 0.05, 1);
  CalibrationOptions hasty;
  hasty.max_iterations = 1;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem(), hasty);
  EXPECT_EQ(outcome.status, Status::kNotConverged);
  EXPECT_TRUE(outcome.IsUsable());
  EXPECT_NE(outcome.message.find("not converged"), std::string::npos) << outcome.message;
}

TEST(Outcome, UnknownWorkloadNamesItsLine) {
  SyntheticProblem synthetic(OneWorkload());
  for (int i = 0; i < 3; ++i) synthetic.Add("resnet50", AllreducePlan({1}, 32));
  synthetic.problem().runs[1].workload = "resnet5000";
  const auto error = ErrorOf([&] { Calibrate(synthetic.problem()); });
  EXPECT_TRUE(Says(error, "synthetic.csv:3: workload: 'resnet5000'"));
}

TEST(Outcome, LossWithoutARoundTripIsFitted) {
  SyntheticProblem synthetic(OneWorkload());
  for (int i = 0; i < 3; ++i) synthetic.Add("resnet50", AllreducePlan({1, 1}, 32));
  synthetic.problem().runs[2].plan.link.loss = 0.01;
  EXPECT_TRUE(Calibrate(synthetic.problem()).IsUsable());
}

TEST(Outcome, KeepsWhatItWasFittedTo) {
  SyntheticProblem synthetic(PlausibleTruth());
  synthetic.Add("resnet50", AllreducePlan({4, 4, 2}, 8));
  synthetic.Add("resnet50", AllreducePlan({1}, 64));
  synthetic.Add("bert_base", AllreducePlan({2, 2}, 3));
  synthetic.problem().runs[2].place.file = "other.csv";
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Calibration& calibration = *outcome.cluster.calibration;
  EXPECT_EQ(calibration.range.max_workers, 10);
  EXPECT_EQ(calibration.range.max_nodes, 3);
  EXPECT_EQ(calibration.range.max_devices_per_node, 4);
  const std::set<CalibratedRange::Exchange> exchanges = {{Strategy::kAllreduce, Transport::kTcp}};
  EXPECT_EQ(calibration.range.exchanges, exchanges);
  EXPECT_EQ(calibration.range.local_batch.at("workload resnet50 on t4").min, 8);
  EXPECT_EQ(calibration.range.local_batch.at("workload resnet50 on t4").max, 64);
  EXPECT_EQ(calibration.range.local_batch.at("workload bert_base on t4").max, 3);
  ASSERT_EQ(calibration.sources.size(), 2U);
  EXPECT_EQ(calibration.sources[0].file, "other.csv");
  EXPECT_EQ(calibration.sources[0].runs, 1);
  EXPECT_EQ(calibration.sources[1].runs, 2);
  EXPECT_FALSE(calibration.version.empty());
}

// By hand from the residuals: of the runs whose steps were seen.
TEST(Outcome, TellsHowFarItIsFromTheRuns) {
  SyntheticProblem synthetic(OneWorkload());
  for (const double log_noise : {0.2, -0.1, 0.0}) {
    synthetic.Add("resnet50", AllreducePlan({1}, 8), log_noise);
    synthetic.Add("resnet50", AllreducePlan({2, 2}, 32), 2 * log_noise);
  }
  synthetic.Add("resnet50", AllreducePlan({4, 4}, 32));
  CalibrationProblem problem = synthetic.problem();
  for (int i = 0; i < 3; ++i) {
    problem.runs.push_back(problem.runs.back());
    problem.runs.back().stopped = true;
  }
  const CalibrationOutcome outcome = Calibrate(problem);
  double mape = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    const Duration<> measured = problem.runs[i].step_time;
    const double predicted = outcome.residuals[i].predicted / measured;
    EXPECT_NEAR(outcome.residuals[i].log_ratio, -std::log(predicted), 1e-9);
    mape += std::abs(predicted - 1) / 7;
  }
  EXPECT_GT(mape, 0.02);
  EXPECT_NEAR(outcome.mape, mape, 1e-9);
  // Repeats of two plans, of noises 0.2, -0.1, 0 and twice these: 0.14 / 3 each, and four times.
  ASSERT_TRUE(outcome.cluster.calibration->repeat_log_sd);
  EXPECT_NEAR(*outcome.cluster.calibration->repeat_log_sd, std::sqrt(5 * (0.14 / 3) / 4), 1e-9);
}

// No interval leaves the range of its parameter, however little the runs say of it, and however
// short the steps.
TEST(Outcome, IntervalsAreWithinTheRanges) {
  int at_low = 0;
  int at_high = 0;
  for (const double times : {1.0, 1e-4}) {
    SyntheticProblem synthetic(OneWorkload());
    for (const Plan& plan : {AllreducePlan({1}, 2), AllreducePlan({1}, 64)}) {
      synthetic.Add("resnet50", plan, std::log(times));
    }
    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    for (const ParameterEstimate& e : outcome.cluster.calibration->parameters) {
      const ParameterSpec& spec = *FindParameterSpec(e.name);
      EXPECT_GE(e.low, spec.low) << e.name;
      EXPECT_LE(e.high, spec.high) << e.name;
      EXPECT_LE(e.low, e.value) << e.name;
      EXPECT_GE(e.high, e.value) << e.name;
      at_low += e.low == spec.low ? 1 : 0;
      at_high += e.high == spec.high ? 1 : 0;
    }
  }
  EXPECT_GT(at_low, 0);
  EXPECT_GT(at_high, 0);
}

// A bare message tells of the network, and of no workload's batches.
TEST(Outcome, OfMessagesKnowsNoBatch) {
  SyntheticProblem synthetic(OneWorkload());
  Workload message = *FindWorkload("resnet50");
  message.name = "message";
  message.communication_only = true;
  synthetic.problem().workloads["message"] = message;
  synthetic.Add("resnet50", AllreducePlan({1, 1}, 8));
  CalibrationProblem problem = synthetic.problem();
  for (int i = 0; i < 2; ++i) {
    problem.runs.push_back(problem.runs.front());
    problem.runs.back().workload = "message";
    problem.runs.back().plan = AllreducePlan({1, 1, 1}, 64);
    problem.runs.back().step_time = Milliseconds(250.0);
  }
  const CalibrationOutcome outcome = Calibrate(problem);
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const CalibratedRange& range = outcome.cluster.calibration->range;
  EXPECT_EQ(range.max_nodes, 3);
  ASSERT_EQ(range.local_batch.size(), 1U);
  EXPECT_EQ(range.local_batch.at("workload resnet50 on t4").max, 8);
}

// A run that was fitted has run, whatever its memory is counted as.
TEST(Outcome, OfARunThatCannotFitByItsCount) {
  SyntheticProblem synthetic(OneWorkload());
  Plan ran = AllreducePlan({4}, 16);
  ran.shard = Shard::kOptimizer;
  synthetic.Add("resnet50", AllreducePlan({1}, 8));
  synthetic.Add("resnet50", ran);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Cluster read = ParseCluster(FormatCluster(outcome.cluster), "read.yaml");
  Device small = T4();
  small.memory = Gibibytes(1.0);
  for (const Cluster& cluster : {outcome.cluster, read}) {
    const Predictor predictor(cluster, *FindWorkload("resnet50"), small);
    EXPECT_EQ(predictor.Predict(ran).memory.verdict, MemoryVerdict::kTight);
    Plan more = ran;
    more.local_batch = 17;
    EXPECT_EQ(predictor.Predict(more).memory.verdict, MemoryVerdict::kOutOfMemory);
    // It proves a training that needs less too, and none that needs more.
    Workload leaner = *FindWorkload("resnet50");
    leaner.recompute = Recompute::kFull;
    EXPECT_EQ(Predictor(cluster, leaner, small).Memory(more).verdict, MemoryVerdict::kTight);
    Workload larger = *FindWorkload("resnet50");
    larger.optimizer = Optimizer::kAdam;
    EXPECT_EQ(Predictor(cluster, larger, small).Memory(ran).verdict, MemoryVerdict::kOutOfMemory);
    Plan wide = ran;
    wide.shard = Shard::kNone;
    EXPECT_EQ(predictor.Memory(wide).verdict, MemoryVerdict::kOutOfMemory);
  }
}

// What was fitted is the same once it was written and read, from whichever runs: of a file, of a
// source that is told, or of none.
TEST(Outcome, IsReadAsItWasWritten) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SyntheticProblem synthetic(PlausibleTruth());
    AddCampaign(&synthetic, FittedPlacements(), 0.03 * static_cast<double>(seed), seed);
    CalibrationProblem problem = synthetic.problem();
    problem.devices["t4"] = T4();
    for (std::size_t i = 0; i < problem.runs.size(); ++i) {
      if ((i + seed) % 3 == 0) continue;
      problem.runs[i].place = {};
      if ((i + seed) % 3 == 1) problem.runs[i].source = "a log: line 3";
    }
    problem.cluster.link.rtt = Milliseconds(static_cast<double>(seed) / 7);
    CalibrationOptions quick;
    quick.profiled_plans = 0;
    const Cluster fitted = Calibrate(problem, quick).cluster;
    ASSERT_TRUE(fitted.calibration.has_value());
    EXPECT_EQ(fitted.calibration->sources.size(), 3U);
    const std::string text = FormatCluster(fitted);
    const Cluster read = ParseCluster(text, "fitted.yaml");
    EXPECT_EQ(FormatCluster(read), text);
    for (const auto& [workload, values] : PlausibleTruth().workloads) {
      const Predictor one(fitted, *FindWorkload(workload), T4());
      const Predictor other(read, *FindWorkload(workload), T4());
      for (const Placement& placement : std::vector<Placement>{{1}, {2, 1}, {4, 4, 4, 4}}) {
        const Prediction a = one.Predict(AllreducePlan(placement, 5));
        const Prediction b = other.Predict(AllreducePlan(placement, 5));
        EXPECT_EQ(a.step_time, b.step_time);
        EXPECT_EQ(a.low, b.low);
        EXPECT_EQ(a.high, b.high);
        EXPECT_EQ(a.flags, b.flags);
      }
    }
  }
}

// ---- What it is made of.

// How steps scatter, from the residuals of the runs: of all together and of each workload, from
// what the options believe of a step. A run that was stopped scatters not.
TEST(Outcome, ScattersAsItsResidualsDo) {
  SyntheticProblem synthetic(PlausibleTruth());
  Noise noise(21);
  for (const char* workload : {"resnet50", "bert_base"}) {
    const double scatter = workload[0] == 'r' ? 0.02 : 0.15;
    for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, {2, 2}, {1, 1, 1}}) {
      for (const int batch : {4, 16}) {
        synthetic.Add(workload, AllreducePlan(placement, batch), scatter * noise.Next());
      }
    }
  }
  CalibrationProblem problem = synthetic.problem();
  problem.runs.push_back(problem.runs.front());
  problem.runs.back().stopped = true;
  problem.runs.back().step_time = problem.runs.back().step_time * 5.0;
  CalibrationOptions options;
  options.profiled_plans = 0;
  options.step_log_sd = 0.1;
  const CalibrationOutcome outcome = Calibrate(problem, options);
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Calibration& calibration = *outcome.cluster.calibration;
  std::map<std::string, std::vector<ScatterRow>> rows_of;
  std::vector<ScatterRow> all;
  for (std::size_t i = 0; i + 1 < problem.runs.size(); ++i) {
    const auto& run = problem.runs[i];
    const BelievedModel model(outcome.cluster, problem.workloads.at(run.workload), std::nullopt,
                              kSyntheticDevice);
    all.push_back({outcome.residuals[i].log_ratio, model.Evaluate(run.plan).sync_share});
    rows_of[ScopeOfSynthetic(run.workload)].push_back(all.back());
  }
  const Scatter core = EstimateScatter(all, {0.1, 0.1});
  EXPECT_NEAR(calibration.residual_log_sd, TotalScatter(all, 0.1), 1e-9);
  const auto expect_near = [](const Scatter& its, const Scatter& expected) {
    EXPECT_NEAR(its.compute, expected.compute, 1e-8);
    EXPECT_NEAR(its.sync, expected.sync, 1e-8);
  };
  ASSERT_EQ(calibration.scatter.size(), 3U);
  expect_near(calibration.scatter.at(kAllScope), IntervalScatter(all, core));
  for (const auto& [scope, rows] : rows_of) {
    SCOPED_TRACE(scope);
    expect_near(calibration.scatter.at(scope), IntervalScatter(rows, EstimateScatter(rows, core)));
  }
  EXPECT_GT(calibration.scatter.at(ScopeOfSynthetic("bert_base")).compute,
            calibration.scatter.at(ScopeOfSynthetic("resnet50")).compute);
}

// What is left of how steps differ beside the workers, by the squares of the exposed share, with
// one row of a tenth at a share of 0.3 that was believed before.
TEST(Outcome, KnowsHowSynchronisationDiffers) {
  for (const double sd : {0.06, 0.3, 5.0}) {
    SyntheticProblem synthetic(OneWorkload());
    const std::vector<Plan> plans = {AllreducePlan({1}, 32), AllreducePlan({1, 1}, 32),
                                     AllreducePlan({1, 1, 1}, 16)};
    for (const Plan& plan : plans) synthetic.Add("resnet50", plan);
    synthetic.Add("resnet50", AllreducePlan({2, 2}, 16));  // of which nobody said how they differ
    CalibrationProblem problem = synthetic.problem();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      problem.runs[i].spread.sd = problem.runs[i].step_time * (i == 0 ? 0.04 : sd);
    }
    const CalibrationOutcome outcome = Calibrate(problem);
    ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
    const BelievedModel model(outcome.cluster, problem.workloads.at("resnet50"), std::nullopt,
                              kSyntheticDevice);
    const auto spread =
        outcome.cluster.calibration->Find(ScopeOfSynthetic("resnet50"), "straggler_spread");
    const double sigma =
        outcome.cluster.calibration->parameters[static_cast<std::size_t>(spread.value())].value;
    const double q95 = NormalQuantile(0.95);
    double squares = std::pow(0.3, 4) * std::pow(0.1, 2);
    double weights = std::pow(0.3, 4);
    for (std::size_t i = 1; i < plans.size(); ++i) {  // one device alone exchanges nothing
      const PlanModel of_plan(model.Facts(plans[i]));
      const PlanAnswer answer = of_plan.Answer(
          model.belief().ParametersAt(model.belief().SlowestOf(plans[i])), Derivatives::kNone);
      const double of_workers = std::exp(WorkerSpread(of_plan.facts()).Log(answer, sigma));
      const double share = std::pow(answer.step.exposed() / answer.step.total(), 2);
      ASSERT_GT(share, 0.01);
      const double left = std::pow(std::log1p(q95 * sd), 2) - std::pow(std::log1p(of_workers), 2);
      squares += share * std::max(0.0, left) / (q95 * q95);
      weights += share * share;
    }
    const double expected = std::sqrt(squares / weights);
    EXPECT_EQ(expected > 1, sd > 1) << expected;
    ASSERT_TRUE(outcome.cluster.calibration->sync_jitter.has_value());
    EXPECT_NEAR(*outcome.cluster.calibration->sync_jitter, std::min(1.0, expected), 1e-6) << sd;
  }
  // One device says nothing of it.
  SyntheticProblem alone(OneWorkload());
  alone.Add("resnet50", AllreducePlan({1}, 32));
  alone.problem().runs[0].spread.sd = alone.problem().runs[0].step_time * 0.05;
  EXPECT_FALSE(Calibrate(alone.problem()).cluster.calibration->sync_jitter.has_value());
}

// Only of devices with a data sheet something is believed that could be off.
TEST(Outcome, BeforeTheFitRunsOfUnknownDevicesDoNotCount) {
  const auto log_ratio = [](bool with_sheet, const std::vector<std::string>& devices) {
    SyntheticProblem synthetic(OneWorkload());
    if (with_sheet) synthetic.problem().devices[kSyntheticDevice] = T4();
    for (const std::string& device : devices) {
      synthetic.Add("resnet50", AllreducePlan({1}, 32), device == "v100" ? std::log(60.0) : 0);
      synthetic.problem().runs.back().device = device;
    }
    return Calibrate(synthetic.problem()).prior_log_ratio;
  };
  const double known = log_ratio(true, {"t4"});
  EXPECT_NE(known, 0);
  EXPECT_NEAR(log_ratio(true, {"t4", "v100", "v100", "v100"}), known, 1e-12);
  EXPECT_EQ(log_ratio(false, {"t4"}), 0);
}

TEST(Outcome, NamesTheSourcesOfItsRuns) {
  SyntheticProblem synthetic(OneWorkload());
  for (int i = 0; i < 6; ++i) synthetic.Add("resnet50", AllreducePlan({1}, 8 + i));
  auto& runs = synthetic.problem().runs;
  runs[1].source = "of a file all the same";
  runs[2].place = {};
  runs[2].source = "a log";
  runs[3].place = {};
  runs[4].place = {};
  runs[5].stopped = true;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  std::map<std::string, int> sources;
  for (const Calibration::Source& source : outcome.cluster.calibration->sources) {
    sources[source.file] = source.runs;
  }
  EXPECT_EQ(sources, (std::map<std::string, int>{
                         {"synthetic.csv", 2}, {"a log", 1}, {"runs without a source", 2}}));
}

TEST(Outcome, SaysHowItEnded) {
  SyntheticProblem synthetic(PlausibleTruth());
  EXPECT_EQ(Calibrate(synthetic.problem()).message, "There are no runs to learn from.");
  synthetic.Add("resnet50", AllreducePlan({1, 1}, 32));
  EXPECT_EQ(Calibrate(synthetic.problem()).message, "The fit converged.");
  AddCampaign(&synthetic, FittedPlacements(), 0.05, 1);
  CalibrationOptions options;
  options.max_iterations = 1;
  const std::string message = Calibrate(synthetic.problem(), options).message;
  EXPECT_EQ(message.rfind("The fit had not converged after ", 0), 0U) << message;
  for (auto& run : synthetic.problem().runs) run.stopped = true;
  EXPECT_EQ(Calibrate(synthetic.problem()).message,
            "All runs were stopped before a step ended: there is no time to learn from.");
}

TEST(Outcome, RefusesWhatIsNoTimeOrScatter) {
  SyntheticProblem synthetic(OneWorkload());
  synthetic.Add("resnet50", AllreducePlan({1}, 32));
  synthetic.Add("resnet50", AllreducePlan({1}, 16));
  const double infinite = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double log_sd : {0.0, -0.1, infinite, none}) {
    CalibrationOptions options;
    options.step_log_sd = log_sd;
    EXPECT_TRUE(Says(ErrorOf([&] { Calibrate(synthetic.problem(), options); }),
                     "is no scatter of a step; allowed: a finite number above 0"))
        << log_sd;
  }
  for (const double seconds : {0.0, -1.0, infinite, none}) {
    CalibrationProblem problem = synthetic.problem();
    problem.runs[1].step_time = Seconds(seconds);
    const auto error = ErrorOf([&] { Calibrate(problem); });
    EXPECT_TRUE(Says(error, "synthetic.csv:3: step_time_s: ")) << seconds;
    EXPECT_TRUE(Says(error, "is no time of a step; allowed: a finite time above 0")) << seconds;
  }
}

// ---- Who decided.

TEST(DecidedBy, WithoutDataAParameterStaysOnItsPrior) {
  SyntheticProblem synthetic(OneWorkload());
  for (const int batch : {2, 8, 32, 128}) synthetic.Add("resnet50", AllreducePlan({1}, batch));
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  int untouched = 0;
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    // One device has no network, no peers and nobody to wait for.
    if (p.scope != kClusterScope && p.name != "straggler_spread") continue;
    ++untouched;
    EXPECT_NEAR(p.log_sd, p.prior_log_sd, 1e-9 * p.prior_log_sd) << p.name;
    EXPECT_NEAR(p.value, p.prior_value, 1e-6 * p.prior_value) << p.name;
    EXPECT_EQ(p.decided_by, DecidedBy::kPrior) << p.name;
  }
  EXPECT_EQ(untouched, kClusterParameterCount + 1);
}

TEST(DecidedBy, DataNarrowWhatTheyDecide) {
  SyntheticProblem synthetic(OneWorkload());
  for (const int batch : {2, 8, 32, 128}) {
    synthetic.Add("resnet50", AllreducePlan({1}, batch));
    synthetic.Add("resnet50", AllreducePlan({1}, batch));
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  bool seen = false;
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    // Data never widen: the covariance is at most the prior's.
    EXPECT_LE(p.log_sd, p.prior_log_sd * (1 + 1e-9)) << p.scope << " " << p.name;
    if (p.name != "sample_time") continue;
    seen = true;
    EXPECT_EQ(p.decided_by, DecidedBy::kData);
    EXPECT_NEAR(std::log(p.value / synthetic.truth().ValueOf(p)), 0, 3 * p.log_sd);
  }
  EXPECT_TRUE(seen);
}

// The label is the share of the prior's variance that is left: under 1/4 data, over 3/4 prior.
TEST(DecidedBy, LabelsFollowTheVariance) {
  SyntheticProblem synthetic(PlausibleTruth());
  AddCampaign(&synthetic, FittedPlacements(), 0.05, 2);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Calibration& calibration = *outcome.cluster.calibration;
  int count[3] = {0, 0, 0};
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const ParameterEstimate& p = calibration.parameters[i];
    const auto row = static_cast<Eigen::Index>(i);
    EXPECT_DOUBLE_EQ(p.log_sd, std::sqrt(calibration.log_covariance(row, row)));
    const double left = std::pow(p.log_sd / p.prior_log_sd, 2);
    EXPECT_EQ(p.decided_by == DecidedBy::kData, left < 0.25) << p.name << " " << left;
    EXPECT_EQ(p.decided_by == DecidedBy::kPrior, left >= 0.75) << p.name << " " << left;
    ++count[static_cast<int>(p.decided_by)];
  }
  for (const int n : count) EXPECT_GT(n, 0) << "this campaign has all three";
}

}  // namespace
}  // namespace stepcast
