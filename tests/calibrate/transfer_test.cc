// From what was measured to what was not: other workloads, other devices, nothing at all; and what
// becomes of runs that say little, or contradict each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "model/compute/sheet_compute.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Device V100() {
  Device device;
  device.name = "v100";
  device.fp32 = TeraflopPerSecond(15.7);
  device.memory_bandwidth = GigabytesPerSecond(900.0);
  return device;
}

bool HasFlag(const Prediction& prediction, const std::string& fragment) {
  return std::any_of(
      prediction.flags.begin(), prediction.flags.end(),
      [&](const std::string& flag) { return flag.find(fragment) != std::string::npos; });
}

// A world in which devices compute at a speed of their own that workloads differ from somewhat,
// and in which the cluster is that of PlausibleTruth.
class World {
 public:
  explicit World(std::uint64_t seed, double t4 = 0.8, double v100 = 1.2) : noise_(seed) {
    speed_ = {{"t4", t4}, {"v100", v100}};
    problem.cluster = SyntheticCluster();
    problem.devices = {{"t4", T4()}, {"v100", V100()}};
  }

  const WorkloadParameters<double>& ParametersOf(const std::string& name,
                                                 const std::string& device) {
    const auto known = workloads_.find({name, device});
    if (known != workloads_.end()) return known->second;
    // A workload is as good on one device as on another, but for a tenth.
    const double own = factor_.try_emplace(name, std::exp(0.25 * noise_.Next())).first->second;
    const double reached = speed_.at(device) * own * std::exp(0.1 * noise_.Next());
    const Workload workload = *FindWorkload(name);
    const Device facts = problem.devices.at(device);
    const SheetCompute sheet(workload, facts);
    const FittedCurve<double> curve = sheet.Curve();
    WorkloadParameters<double>& values = workloads_[{name, device}];
    values.si[kFixedTime] = curve.fixed.si() / reached;
    values.si[kFloorTime] = 2 * curve.floor.si();
    values.si[kSampleTime] = curve.per_sample.si() / reached;
    values.si[kStragglerSpread] = 0.04;
    values.si[kUpdateTime] = sheet.At(1).update.si() / reached;
    return values;
  }

  double TrueSeconds(const std::string& name, const Plan& plan, const std::string& device = "t4") {
    const Workload workload = *FindWorkload(name);
    const StepFacts facts = MakeStepFacts(
        problem.cluster, plan, workload,
        std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, kDefaultBucket)));
    return EvaluateStep(facts, truth_.cluster, ParametersOf(name, device)).total().in(kSeconds);
  }

  void Add(const std::string& name, const Plan& plan, const std::string& device = "t4") {
    problem.workloads[name] = *FindWorkload(name);
    stepcast::Run run;
    run.workload = name;
    run.device = device;
    run.plan = plan;
    run.step_time = Seconds(TrueSeconds(name, plan, device) * std::exp(0.03 * noise_.Next()));
    run.place = {"world.csv", static_cast<int>(problem.runs.size()) + 2, ""};
    problem.runs.push_back(run);
  }

  void AddAll(const std::vector<std::string>& names, const std::vector<Placement>& placements,
              const std::string& device = "t4") {
    for (const std::string& name : names) {
      for (const Placement& placement : placements) {
        for (const int batch : {2, 8, 32, 128}) Add(name, AllreducePlan(placement, batch), device);
      }
    }
  }

  Cluster Fit() const {
    const CalibrationOutcome outcome = Calibrate(problem);
    EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
    return outcome.cluster;
  }

  CalibrationProblem problem;

 private:
  Noise noise_;
  Truth truth_ = PlausibleTruth();
  std::map<std::string, double> speed_;
  std::map<std::string, double> factor_;
  std::map<std::pair<std::string, std::string>, WorkloadParameters<double>> workloads_;
};

const std::vector<Placement>& Large() {
  static const std::vector<Placement> placements = {
      {1, 1}, {4, 4}, {2, 2, 2}, Placement(8, 4), Placement(16, 4)};
  return placements;
}

// How predictions compare with the truth.
struct Score {
  int count = 0;
  int inside = 0;
  double worst = 0;   // |ln(predicted / true)|
  double widest = 0;  // log_sd

  void Add(const Prediction& p, double truth) {
    ++count;
    if (truth >= p.low.in(kSeconds) && truth <= p.high.in(kSeconds)) ++inside;
    worst = std::max(worst, std::abs(std::log(p.step_time.in(kSeconds) / truth)));
    widest = std::max(widest, p.log_sd);
  }
};

// ---- A workload of which only one device's steps are known.

TEST(NewWorkload, ItsStepsOnOneDeviceAreEnough) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    World world(seed);
    world.AddAll({"resnet50", "vgg16"}, FittedPlacements());
    world.AddAll({"bert_base"}, {{1}});
    const Predictor predictor(world.Fit(), *FindWorkload("bert_base"), T4(), "t4");
    EXPECT_EQ(predictor.compute_source(), ComputeSource::kFitted);
    Score score;
    for (const Placement& placement : Large()) {
      for (const int batch : {2, 16, 128}) {
        const Plan plan = AllreducePlan(placement, batch);
        const Prediction p = predictor.Predict(plan);
        EXPECT_FALSE(HasFlag(p, "not measured"));
        score.Add(p, world.TrueSeconds("bert_base", plan));
      }
    }
    EXPECT_LT(score.worst, 0.12) << seed;
    EXPECT_GE(score.inside, 0.9 * score.count) << seed;
    EXPECT_LT(score.widest, 0.25) << "and says so";
  }
}

// ---- A workload that nobody ran.

TEST(NewWorkload, ItsLayersAndTheDevicesSpeedGiveAnInterval) {
  for (const double speed : {0.57, 1.0, 1.75}) {
    Score with;
    Score without;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      World world(seed, speed);
      world.AddAll({"resnet50", "bert_base", "inception_v3"},
                   {{1}, {4}, {1, 1}, {1, 1, 1}, {4, 4}});
      const Cluster fitted = world.Fit();
      for (const char* name : {"vgg16", "resnet101", "gpt2", "densenet121", "bert_large"}) {
        const Predictor predictor(fitted, *FindWorkload(name), T4(), "t4");
        const Predictor ignorant(SyntheticCluster(), *FindWorkload(name), T4(), "t4");
        EXPECT_EQ(predictor.compute_source(), ComputeSource::kFromDevice);
        for (const Placement& placement : std::vector<Placement>{{1}, {4, 4}, Placement(8, 4)}) {
          const Plan plan = AllreducePlan(placement, 64);
          const double truth = world.TrueSeconds(name, plan);
          const Prediction p = predictor.Predict(plan);
          EXPECT_TRUE(HasFlag(p, std::string(name) + " was not measured on t4: compute is "
                                                     "forecast from the data sheet, at the speed"));
          with.Add(p, truth);
          without.Add(ignorant.Predict(plan), truth);
          if (plan.workers() == 1) {
            EXPECT_GT(p.log_sd, 0.9 * kWorkloadSpeedLogSd) << "its own speed is not known";
          }
        }
      }
    }
    EXPECT_GE(with.inside, 0.85 * with.count) << speed;
    EXPECT_LT(with.widest, without.widest) << "but the device's is";
    // A guess in the middle of what is believed is right by chance.
    if (speed != 1) {
      EXPECT_LT(with.worst, without.worst) << speed;
    }
  }
}

// The more workloads have shown the device, the better it is known.
TEST(NewWorkload, EachFurtherOneHelps) {
  const auto log_sd = [](const std::vector<std::string>& names) {
    World world(5);
    world.AddAll(names, {{1}});
    const Predictor predictor(world.Fit(), *FindWorkload("vgg16"), T4(), "t4");
    return predictor.Predict(AllreducePlan({1}, 64)).parameter_log_sd;
  };
  const double one = log_sd({"resnet50"});
  const double three = log_sd({"resnet50", "bert_base", "inception_v3"});
  EXPECT_LT(three, 0.95 * one);
  EXPECT_GT(three, 0.9 * kWorkloadSpeedLogSd) << "what is its own remains";
}

// ---- A device that the cluster did not have.

TEST(NewDevice, TakesTheWorkloadFromTheOther) {
  Score score;
  for (const std::uint64_t seed : {6, 7, 8}) {
    World world(seed);
    world.AddAll({"resnet50", "bert_base"}, {{1}, {1, 1}, {1, 1, 1}});
    const Cluster fitted = world.Fit();
    for (const char* name : {"resnet50", "bert_base"}) {
      const Predictor known(fitted, *FindWorkload(name), T4(), "t4");
      const Predictor predictor(fitted, *FindWorkload(name), V100(), "v100");
      EXPECT_EQ(predictor.compute_source(), ComputeSource::kFromOtherDevice);
      for (const Placement& placement : std::vector<Placement>{{1}, {1, 1, 1}}) {
        const Plan plan = AllreducePlan(placement, 64);
        const Prediction p = predictor.Predict(plan);
        EXPECT_TRUE(HasFlag(p, std::string(name) + " was not measured on v100: compute is that on "
                                                   "another device, scaled by the data sheets"));
        score.Add(p, world.TrueSeconds(name, plan, "v100"));
        EXPECT_GT(p.log_sd, 2 * known.Predict(plan).log_sd);
      }
      // What the host takes is no part of the device's speed.
      EXPECT_GT(predictor.Predict(AllreducePlan({1}, 64)).log_sd,
                0.75 * kDeviceSpeedSpec.prior_log_sd);
      EXPECT_LT(predictor.Predict(AllreducePlan({1}, 64)).step_time,
                known.Predict(AllreducePlan({1}, 64)).step_time)
          << "the data sheet says it is faster";
    }
  }
  EXPECT_GE(score.inside, 0.9 * score.count);
}

// Another workload shows how efficient it is: whatever that is worth, more runs do not tell less.
TEST(NewDevice, AnotherWorkloadThereDoesNotHarm) {
  World world(9);
  world.AddAll({"resnet50", "bert_base"}, {{1}, {1, 1}});
  const Cluster before = world.Fit();
  world.AddAll({"bert_base"}, {{1}}, "v100");
  const Cluster after = world.Fit();
  const Plan plan = AllreducePlan({1}, 64);
  const auto on_v100 = [&](const Cluster& cluster) {
    return Predictor(cluster, *FindWorkload("resnet50"), V100(), "v100").Predict(plan);
  };
  EXPECT_LE(on_v100(after).log_sd, 1.01 * on_v100(before).log_sd);
  EXPECT_TRUE(HasFlag(on_v100(after), "another device"));
  Score score;
  score.Add(on_v100(after), world.TrueSeconds("resnet50", plan, "v100"));
  EXPECT_EQ(score.inside, 1);
  EXPECT_LT(score.worst, 0.4);
}

// One batch was measured: of another, neither that it takes as long nor that it takes a share of
// the time is ruled out, whatever the step takes, as long as the floor that is believed of every
// network, of milliseconds, is small beside it.
TEST(OneBatch, LeavesOpenWhatGrowsWithIt) {
  for (const double seconds : {0.2, 1.0, 5.0}) {
    CalibrationProblem problem;
    problem.cluster = SyntheticCluster();
    Workload mine;
    mine.name = "mine";
    mine.parameters = mine.trainable_parameters = 1'000'000;
    mine.gradient_bytes = Megabytes(4.0);
    problem.workloads["mine"] = mine;
    for (int i = 0; i < 3; ++i) {
      stepcast::Run run;
      run.workload = "mine";
      run.device = "t4";
      run.plan = AllreducePlan({1}, 32);
      run.step_time = Seconds(seconds);
      problem.runs.push_back(run);
    }
    const CalibrationOutcome outcome = Calibrate(problem);
    ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
    const Predictor predictor(outcome.cluster, mine, T4());
    const Prediction same = predictor.Predict(AllreducePlan({1}, 32));
    EXPECT_NEAR(same.step_time.si() / seconds, 1, 0.05);
    const Prediction half = predictor.Predict(AllreducePlan({1}, 16));
    EXPECT_NEAR(half.step_time.si() / seconds, 0.6, 0.1);
    EXPECT_LT(half.low.si() / seconds, 0.55);
    EXPECT_GT(half.high.si() / seconds, 0.75);
  }
}

TEST(NewDevice, WithoutADataSheetHasAPrior) {
  World world(10);
  world.AddAll({"resnet50"}, {{1}});
  Cluster fitted = world.Fit();
  const auto nobodys =
      ErrorOf([&] { Predictor(fitted, *FindWorkload("resnet50"), std::nullopt, "abacus"); });
  EXPECT_TRUE(Says(nobodys, "device: 'abacus' is known to nobody"));
  fitted.device = "abacus";
  const Predictor unknown(fitted, *FindWorkload("resnet50"), std::nullopt, "abacus");
  const Prediction p = unknown.Predict(AllreducePlan({1}, 64));
  EXPECT_EQ(p.compute_source, ComputeSource::kPrior);
  EXPECT_TRUE(HasFlag(p, "was not measured on abacus, and no data sheet"));
  EXPECT_GT(p.log_sd, 3);
}

// ---- A cluster that nobody measured.

TEST(Uncalibrated, AnswersWithAWideInterval) {
  Score score;
  for (const std::uint64_t seed : {11, 12, 13}) {
    World world(seed);
    for (const char* name : {"resnet50", "bert_base", "vgg16"}) {
      const Predictor predictor(SyntheticCluster(), *FindWorkload(name), T4(), "t4");
      for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, Placement(8, 4)}) {
        const Plan plan = AllreducePlan(placement, 32);
        const Prediction p = predictor.Predict(plan);
        EXPECT_TRUE(HasFlag(p, "cluster not calibrated"));
        EXPECT_TRUE(HasFlag(p, "forecast from the data sheet, operation by operation"));
        EXPECT_GT(p.high / p.low, 2.5);
        score.Add(p, world.TrueSeconds(name, plan));
      }
    }
  }
  EXPECT_GE(score.inside, 0.9 * score.count);
}

// ---- Runs that say little.

struct PoorRuns {
  const char* name;
  std::function<void(SyntheticProblem*)> add;
};

void PrintTo(const PoorRuns& poor, std::ostream* out) { *out << poor.name; }

SyntheticProblem Resnet50() {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  return SyntheticProblem(truth);
}

Plan Pair(int batch) { return AllreducePlan({1, 1}, batch); }

std::vector<PoorRuns> Poor() {
  const auto scale = [](SyntheticProblem* s, double factor) {
    for (auto& run : s->problem().runs) run.step_time = run.step_time * factor;
  };
  return {
      {"one", [](SyntheticProblem* s) { s->Add("resnet50", Pair(32)); }},
      {"one_on_one_device",
       [](SyntheticProblem* s) { s->Add("resnet50", AllreducePlan({1}, 32)); }},
      {"two",
       [](SyntheticProblem* s) {
         s->Add("resnet50", Pair(32));
         s->Add("resnet50", AllreducePlan({1}, 8));
       }},
      {"one_batch",
       [](SyntheticProblem* s) {
         Noise noise(1);
         for (const Placement& placement : FittedPlacements()) {
           s->Add("resnet50", AllreducePlan(placement, 32), 0.05 * noise.Next());
         }
       }},
      {"twenty_identical",
       [](SyntheticProblem* s) {
         for (int i = 0; i < 20; ++i) s->Add("resnet50", Pair(32));
       }},
      {"contradictory",
       [](SyntheticProblem* s) {
         for (int i = 0; i < 4; ++i) s->Add("resnet50", Pair(32), i % 2 == 0 ? 0 : std::log(3.0));
       }},
      {"no_scatter",
       [](SyntheticProblem* s) {
         for (const int batch : {2, 8, 32, 64}) {
           for (int i = 0; i < 10; ++i) {
             s->Add("resnet50", AllreducePlan({1}, batch));
             s->Add("resnet50", Pair(batch));
           }
         }
       }},
      {"all_the_same_time",
       [](SyntheticProblem* s) {
         for (const Placement& placement : FittedPlacements()) {
           for (const int batch : {2, 8, 32, 64}) {
             s->Add("resnet50", AllreducePlan(placement, batch));
             s->problem().runs.back().step_time = Seconds(0.5);
           }
         }
       }},
      {"faster_with_more_samples",
       [](SyntheticProblem* s) {
         for (const int batch : {1, 4, 16, 64}) {
           s->Add("resnet50", AllreducePlan({1}, batch));
           s->problem().runs.back().step_time = Seconds(1.0 / batch);
         }
       }},
      {"a_million_times_too_fast",
       [=](SyntheticProblem* s) {
         AddCampaign(s, {{1}, {1, 1}}, 0.05, 1);
         scale(s, 1e-6);
       }},
      {"a_million_times_too_slow",
       [=](SyntheticProblem* s) {
         AddCampaign(s, {{1}, {1, 1}}, 0.05, 1);
         scale(s, 1e6);
       }},
      {"everything_exposed",
       [](SyntheticProblem* s) {
         for (const int batch : {2, 8, 32}) {
           s->Add("resnet50", Pair(batch));
           s->problem().runs.back().exposed_sync = s->problem().runs.back().step_time;
         }
       }},
      {"nothing_exposed",
       [](SyntheticProblem* s) {
         for (const int batch : {2, 8, 32}) {
           s->Add("resnet50", Pair(batch));
           s->problem().runs.back().exposed_sync = Seconds(0.0);
         }
       }},
  };
}

class Poorly : public ::testing::TestWithParam<PoorRuns> {};

// An answer or a refusal, and never a number that is none.
TEST_P(Poorly, MeasuredClustersAnswerOrRefuse) {
  SyntheticProblem synthetic = Resnet50();
  GetParam().add(&synthetic);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  EXPECT_FALSE(outcome.message.empty());
  if (!outcome.IsUsable()) {
    EXPECT_FALSE(outcome.cluster.calibration.has_value());
    return;
  }
  EXPECT_TRUE(std::isfinite(outcome.mape));
  const Calibration& calibration = *outcome.cluster.calibration;
  EXPECT_TRUE(calibration.log_covariance.allFinite());
  EXPECT_GT(calibration.residual_log_sd, 0);
  for (const ParameterEstimate& p : calibration.parameters) {
    EXPECT_TRUE(std::isfinite(p.value)) << p.name;
    EXPECT_GT(p.value, 0) << p.name;
    EXPECT_GT(p.log_sd, 0) << p.name;
    // Data never widen.
    EXPECT_LE(p.log_sd, p.prior_log_sd * (1 + 1e-9)) << p.name;
  }
  for (const auto& [whose, scatter] : calibration.scatter) {
    EXPECT_GT(scatter.compute, 0) << whose;
    EXPECT_GT(scatter.sync, 0) << whose;
    EXPECT_TRUE(std::isfinite(scatter.compute + scatter.sync)) << whose;
  }
  // The parameters are ones that a forecast accepts.
  const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, "t4");
  for (const Placement& placement : std::vector<Placement>{{1}, {4}, {1, 1}, Placement(16, 4)}) {
    for (const int batch : {1, 32, 1024}) {
      const Prediction p = predictor.Predict(AllreducePlan(placement, batch));
      EXPECT_TRUE(std::isfinite(p.step_time.si()));
      EXPECT_GT(p.step_time.si(), 0);
      EXPECT_TRUE(std::isfinite(p.log_sd));
      EXPECT_TRUE(std::isfinite(p.high.si()));
      EXPECT_LT(p.low, p.step_time);
      EXPECT_GT(p.high, p.step_time);
      EXPECT_GT(p.log_sd, 0.003) << "nothing is as certain as that";
      EXPECT_LE(p.p50, p.p95);
      EXPECT_LE(p.p95, p.p99);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Poorly, ::testing::ValuesIn(Poor()),
                         [](const auto& its) { return std::string(its.param.name); });

Prediction After(const std::string& name, const Plan& plan) {
  for (const PoorRuns& poor : Poor()) {
    if (poor.name != name) continue;
    SyntheticProblem synthetic = Resnet50();
    poor.add(&synthetic);
    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
    return Predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, "t4").Predict(plan);
  }
  throw std::logic_error("no case " + name);
}

double TrueStepSeconds(const Plan& plan) {
  return Resnet50().TrueStep("resnet50", plan).in(kSeconds);
}

TEST(PoorRunsAnswer, WhatWasMeasuredIsMet) {
  for (const char* name : {"one", "two", "one_batch", "twenty_identical", "no_scatter"}) {
    const Prediction p = After(name, Pair(32));
    EXPECT_NEAR(p.step_time.in(kSeconds) / TrueStepSeconds(Pair(32)), 1, 0.06) << name;
    EXPECT_LT(p.high / p.low, 1.6) << name;
  }
}

TEST(PoorRunsAnswer, WhatWasNotIsUncertain) {
  int inside = 0;
  for (const char* name : {"one", "two"}) {
    for (const Plan& plan : {AllreducePlan(Placement(16, 4), 8), AllreducePlan({1, 1}, 1),
                             AllreducePlan(Placement(4, 4), 256)}) {
      const Prediction p = After(name, plan);
      EXPECT_GT(p.high / p.low, 1.8) << name << ": " << plan.nodes() << " nodes";
      const double truth = TrueStepSeconds(plan);
      inside += p.low.in(kSeconds) < truth && truth < p.high.in(kSeconds) ? 1 : 0;
    }
  }
  EXPECT_GE(inside, 5) << "of six in intervals of 90 %";
}

TEST(PoorRunsAnswer, OneBatchSaysItIsOneBatch) {
  const Prediction p = After("one_batch", AllreducePlan({1}, 512));
  EXPECT_TRUE(HasFlag(p, "local batch 512, fitted at 32 only"));
  EXPECT_GT(p.log_sd, 1.5 * After("one_batch", AllreducePlan({1}, 32)).log_sd);
}

// Runs that differ by a factor of three: the next may be either.
TEST(PoorRunsAnswer, ContradictionsAreInTheInterval) {
  const Prediction p = After("contradictory", Pair(32));
  const double truth = TrueStepSeconds(Pair(32));
  EXPECT_LT(p.low.in(kSeconds), truth);
  EXPECT_GT(p.high.in(kSeconds), 3 * truth);
  EXPECT_GT(p.high / p.low, 3);
}

// A step of no time cannot be.
TEST(PoorRunsAnswer, StepsOfNoTimeAreRefused) {
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    SyntheticProblem synthetic = Resnet50();
    synthetic.Add("resnet50", Pair(32));
    synthetic.Add("resnet50", Pair(32));
    synthetic.problem().runs.back().step_time = Seconds(seconds);
    CalibrationOutcome outcome;
    try {
      outcome = Calibrate(synthetic.problem());
    } catch (const InputError& error) {
      EXPECT_TRUE(Says(error, "synthetic.csv:3"));
      continue;
    }
    EXPECT_FALSE(outcome.IsUsable()) << seconds;
    EXPECT_FALSE(outcome.cluster.calibration.has_value()) << seconds;
    EXPECT_FALSE(outcome.message.empty());
    EXPECT_EQ(outcome.message.find('\n'), std::string::npos) << "one sentence: " << outcome.message;
  }
}

}  // namespace
}  // namespace stepcast
