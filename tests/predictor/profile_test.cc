// Predictions from a profile of the device: when it speaks, what it says, what it adds to doubt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/record/operation_counts.h"
#include "data/workloads/catalog.h"
#include "model/compute/carried_profile.h"
#include "model/compute/profiled_compute.h"
#include "model/overlap/buckets.h"
#include "model/step/parameter_specs.h"
#include "predictor/explanation.h"
#include "predictor/prediction_fields.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

// A device of 8 TFLOP/s and 300 GB/s, every kernel of which takes 5 us to start.
double IdealSeconds(const Operation& operation, TrainingPass pass, double batch) {
  const OperationCounts n = CountOperation(operation, pass);
  return 5e-6 + std::max(n.flop_per_sample * batch / 8e12,
                         (n.elements_per_sample * batch + n.elements) * 4 / 300e9);
}

void Add(ComputeProfile* profile, const Operation& operation, TrainingPass pass, int batch) {
  MeasuredSamples samples;
  samples.point = {operation, batch, Precision::kFp32, pass};
  samples.seconds.assign(5, IdealSeconds(operation, pass, batch));
  profile->samples.push_back(samples);
}

ComputeProfile Measured(const Workload& workload, const std::string& kind = "gpu") {
  ComputeProfile profile;
  profile.device.name = "t4";
  profile.device.kind = kind;
  for (const Layer& layer : workload.layers) {
    for (const int batch : {8, 32, 128}) {
      Add(&profile, layer.operation, TrainingPass::kForward, batch);
      Add(&profile, layer.operation, TrainingPass::kBackward, batch);
    }
    if (layer.tensors.empty()) continue;
    Add(&profile, UpdateOp{Optimizer::kMomentum, layer.parameters()}, TrainingPass::kUpdate, 1);
  }
  return profile;
}

std::shared_ptr<const ProfiledCompute> Compute(const ComputeProfile& profile,
                                               const Workload& workload) {
  return std::make_shared<const ProfiledCompute>(profile, workload);
}

Workload Resnet50() { return *FindWorkload("resnet50"); }

const std::shared_ptr<const ProfiledCompute>& Resnet50Profile() {
  static const std::shared_ptr<const ProfiledCompute> profile =
      Compute(Measured(Resnet50()), Resnet50());
  return profile;
}

Predictor Profiled(const std::optional<Device>& facts = std::nullopt) {
  return {SyntheticCluster(), Resnet50(), facts, "t4", Resnet50Profile()};
}

bool HasFlag(const Prediction& prediction, const std::string& fragment) {
  return std::any_of(
      prediction.flags.begin(), prediction.flags.end(),
      [&](const std::string& flag) { return flag.find(fragment) != std::string::npos; });
}

// ---- The number.

// No data sheet is needed, and where there is one the profile goes before it.
// Times of one device say nothing of another, whatever else is known of it.
TEST(ProfilePrediction, IsOfItsDeviceAlone) {
  ComputeProfile profile = Measured(Resnet50());
  profile.device.name = "NVIDIA H100";
  const auto compute = Compute(profile, Resnet50());
  const auto error = [&](const std::optional<Device>& facts, const std::string& device) {
    return ErrorOf([&] { Predictor(SyntheticCluster(), Resnet50(), facts, device, compute); });
  };
  for (const std::optional<InputError>& e :
       {error(T4(), "t4"), error(std::nullopt, "t4"), error(T4(), ""), ErrorOf([&] {
          Predictor(CalibratedCluster(PlausibleTruth()), Resnet50(), T4(), "t4", compute);
        })}) {
    EXPECT_TRUE(Says(e, "profile: 'NVIDIA H100' is the device that was measured"));
    EXPECT_TRUE(Says(e, "allowed: a profile of t4"));
  }
  Device alias = T4();
  alias.aliases = {"nvidia-h100"};
  EXPECT_EQ(error(alias, "t4"), std::nullopt) << "another name of the same device";
  EXPECT_EQ(error(std::nullopt, "nvidia h100"), std::nullopt);
}

// One that was carried over from another GPU says so, and doubts.
TEST(ProfilePrediction, SaysWhatItWasCarriedOverFrom) {
  Device t4 = T4();
  t4.multiprocessors = 40;
  Device v100 = t4;
  v100.name = "v100";
  v100.fp32 = TeraflopPerSecond(15.7);
  v100.memory_bandwidth = GigabytesPerSecond(900.0);
  v100.multiprocessors = 80;
  const Workload resnet = Resnet50();
  const ComputeProfile carried = CarryOver(Measured(resnet), t4, v100);
  const Predictor predictor(SyntheticCluster(), resnet, v100, "v100", Compute(carried, resnet));
  const Prediction p = predictor.Predict(AllreducePlan({1}, 32));
  EXPECT_EQ(p.compute_source, ComputeSource::kProfile);
  EXPECT_TRUE(HasFlag(p, "v100 was not measured: the times are those of t4"));
  EXPECT_GT(p.parameter_log_sd, 0.9 * kCarriedLogSd);
  EXPECT_LT(p.step_time, Profiled(t4).Predict(AllreducePlan({1}, 32)).step_time);
}

TEST(ProfilePrediction, IsTheSource) {
  for (const std::optional<Device>& facts : {std::optional<Device>(), std::optional(T4())}) {
    const Predictor predictor = Profiled(facts);
    EXPECT_EQ(predictor.compute_source(), ComputeSource::kProfile);
    const Prediction p = predictor.Predict(AllreducePlan({1}, 32));
    EXPECT_EQ(p.compute_source, ComputeSource::kProfile);
    EXPECT_FALSE(HasFlag(p, "data-sheet"));
    EXPECT_FALSE(HasFlag(p, "was not measured"));
  }
  EXPECT_STREQ(kComputeSourceNames[static_cast<int>(ComputeSource::kProfile)], "profile");
}

// A few per cent of the compute are worth saying that they are of layers which nobody measured.
TEST(ProfilePrediction, SaysThatALayerIsScaled) {
  Workload workload = Resnet50();
  const ComputeProfile profile = Measured(workload);
  const auto said = [&] {
    const auto compute = Compute(profile, workload);
    const Predictor predictor(SyntheticCluster(), workload, std::nullopt, "t4", compute);
    return HasFlag(predictor.Predict(AllreducePlan({1}, 32)), "scaled from others by roofline");
  };
  EXPECT_FALSE(said());
  const auto convolution = std::find_if(
      workload.layers.begin() + 20, workload.layers.end(),
      [](const Layer& layer) { return std::holds_alternative<ConvolutionOp>(layer.operation); });
  convolution->operation = {};
  const ProfiledSum sum = Compute(profile, workload)->Sum(32);
  ASSERT_GT(sum.scaled / (sum.forward + sum.backward), 0.006);
  ASSERT_LT(sum.scaled / (sum.forward + sum.backward), 0.1);
  EXPECT_TRUE(said());
}

// The elasticity by the local batch is that of the layers as measured, not of a curve through them.
TEST(ProfilePrediction, ElasticityByTheBatchFollowsTheLayers) {
  for (const char* kind : {"gpu", "cpu"}) {
    ComputeProfile profile = Measured(Resnet50(), kind);
    for (MeasuredSamples& samples : profile.samples) {
      if (samples.point.batch != 128) continue;  // a cache is too small, and no line fits
      for (double& seconds : samples.seconds) seconds *= 1.4;
    }
    const auto compute = Compute(profile, Resnet50());
    const Predictor predictor(SyntheticCluster(), Resnet50(), std::nullopt, "t4", compute);
    double told = 0;
    constexpr int kBatch = 80;  // between two measured ones
    for (const ExplainedParameter& p : predictor.Explain(AllreducePlan({1}, kBatch)).parameters) {
      if (p.value.symbol == "local batch") told = p.elasticity;
    }
    const auto step = [&](double batch) {
      return (compute->MicroStep(batch) + compute->Update()).si();
    };
    const double h = 0.01;
    const double expected =
        std::log(step(kBatch * (1 + h)) / step(kBatch * (1 - h))) / std::log((1 + h) / (1 - h));
    EXPECT_NEAR(told, expected, 1e-4) << kind;
  }
}

// One worker does its layers and its update, at any batch.
TEST(ProfilePrediction, OneWorkerTakesTheSumOfItsLayers) {
  const Workload workload = Resnet50();
  for (const char* kind : {"gpu", "cpu"}) {
    const auto compute = Compute(Measured(workload, kind), workload);
    const Predictor predictor(SyntheticCluster(), workload, std::nullopt, "t4", compute);
    for (const int batch : {1, 8, 20, 32, 128, 300}) {
      const double expected = (compute->MicroStep(batch) + compute->Update()).si();
      const Plan plan = AllreducePlan({1}, batch);
      EXPECT_NEAR(predictor.PredictStep(plan).total().si() / expected, 1, 1e-12) << batch;
      EXPECT_NEAR(predictor.Predict(plan).step_time.si() / expected, 1, 1e-12) << batch;
    }
  }
  double device = 0;
  bool trained = false;
  for (const Layer& layer : workload.layers) {
    trained = trained || !layer.tensors.empty();
    device += IdealSeconds(layer.operation, TrainingPass::kForward, 32);
    if (trained) device += IdealSeconds(layer.operation, TrainingPass::kBackward, 32);
  }
  EXPECT_NEAR((Resnet50Profile()->Sum(32).forward + Resnet50Profile()->Sum(32).backward).si(),
              device, 1e-9 * device);
}

// Where layers were measured, what is recomputed is as long as they were.
TEST(ProfilePrediction, RecomputationMovesNoForwardPass) {
  Workload workload = Resnet50();
  workload.recompute = Recompute::kFull;
  const auto profile = Compute(Measured(Resnet50()), workload);
  const Predictor predictor(SyntheticCluster(), workload, std::nullopt, "t4", profile);
  for (const int batch : {1, 32, 500}) {
    const StepTime<double> kept = Profiled().PredictStep(AllreducePlan({1}, batch));
    const StepTime<double> step = predictor.PredictStep(AllreducePlan({1}, batch));
    EXPECT_NEAR(step.forward / kept.forward, 1, 1e-12) << batch;
    EXPECT_NEAR((step.backward - kept.backward) /
                    (profile->MicroStep(batch) - Resnet50Profile()->MicroStep(batch)),
                1, 1e-9)
        << batch;
  }
}

TEST(ProfilePrediction, AccumulationRepeatsTheMicroStep) {
  Plan plan = AllreducePlan({1}, 32);
  plan.accumulation_steps = 4;
  const double expected =
      (Resnet50Profile()->MicroStep(32) * 4.0 + Resnet50Profile()->Update()).si();
  EXPECT_NEAR(Profiled().PredictStep(plan).total().si() / expected, 1, 1e-12);
}

TEST(ProfilePrediction, StepsNeverFallWithTheBatch) {
  const Predictor predictor = Profiled();
  for (const Placement& placement : std::vector<Placement>{{1}, {4}, {1, 1}, {4, 4}}) {
    double last = 0;
    for (int batch = 1; batch < 2000; batch += 1 + batch / 5) {
      const double seconds = predictor.PredictStep(AllreducePlan(placement, batch)).compute().si();
      EXPECT_GE(seconds, last) << batch;
      last = seconds;
    }
  }
}

TEST(ProfilePrediction, EveryStrategyHasAStep) {
  const Predictor predictor = Profiled(T4());
  for (const Strategy strategy :
       {Strategy::kAllreduce, Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
        Strategy::kHierarchical, Strategy::kAuto, Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = AllreducePlan({2, 2}, 32);
    plan.strategy = strategy;
    if (UsesServers(strategy)) plan.servers = 2;
    const Prediction p = predictor.Predict(plan);
    EXPECT_TRUE(std::isfinite(p.step_time.si())) << StrategyName(strategy);
    EXPECT_GT(p.step_time, Resnet50Profile()->MicroStep(32)) << StrategyName(strategy);
    EXPECT_LT(p.low, p.step_time) << StrategyName(strategy);
    EXPECT_GT(p.high, p.step_time) << StrategyName(strategy);
    EXPECT_NO_THROW(predictor.Explain(plan)) << StrategyName(strategy);
  }
}

double Si(const NamedValue& value) {
  for (const auto& [unit, si] : {std::pair("s", 1.0), {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}) {
    if (value.unit == unit) return value.value * si;
  }
  return value.value;
}

// The formula that is shown gives its result from the inputs that are shown, also where the batch
// is not the one that the parameters stand for.
TEST(ProfilePrediction, TheExplanationHasTheShapeOfTheProfile) {
  for (const int batch : {8, 20, 128, 300}) {
    const Explanation explanation = Profiled().Explain(AllreducePlan({1}, batch));
    const auto term = std::find_if(explanation.terms.begin(), explanation.terms.end(),
                                   [](const ExplainedTerm& t) { return t.name == "micro-step"; });
    ASSERT_NE(term, explanation.terms.end());
    const auto input = [&](const std::string& symbol, double otherwise) {
      for (const NamedValue& value : term->inputs) {
        if (value.symbol == symbol) return Si(value);
      }
      return otherwise;
    };
    EXPECT_NEAR(Si(term->result), Resnet50Profile()->MicroStep(batch).si(), 1e-9);
    const double curve =
        input("t_fixed", NAN) + std::pow(std::pow(input("t_floor", NAN), 4) +
                                             std::pow(input("c", NAN) * input("b", NAN), 4),
                                         0.25);
    EXPECT_NEAR(curve * input("s_b", 1) / Si(term->result), 1, 1e-6) << batch;
  }
}

// Searches ask for thousands of plans: layers are looked up once, not with each of them.
TEST(ProfilePrediction, AskingForAStepIsCheap) {
  Workload others;
  for (const std::string& name : WorkloadNames()) {
    if (name == "yolov3") continue;
    const Workload other = *FindWorkload(name);
    others.layers.insert(others.layers.end(), other.layers.begin(), other.layers.end());
  }
  const Workload yolo = *FindWorkload("yolov3");
  const Predictor predictor(SyntheticCluster(), yolo, std::nullopt, "t4",
                            Compute(Measured(others), yolo));
  constexpr int kPlans = 200;
  const std::clock_t start = std::clock();
  for (int batch = 1; batch <= kPlans; ++batch) {
    ASSERT_GT(predictor.PredictStep(AllreducePlan({1, 1}, batch)).total().si(), 0);
  }
  const double seconds = 1.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 1) << "a step without a profile takes microseconds";
}

// ---- Beside a calibration.

// Runs of the workload itself know better.
TEST(ProfilePrediction, AFitOfTheWorkloadGoesBefore) {
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  const Predictor fitted(cluster, Resnet50(), T4());
  const Predictor both(cluster, Resnet50(), T4(), "t4", Resnet50Profile());
  EXPECT_EQ(both.compute_source(), ComputeSource::kFitted);
  for (const int batch : {4, 32, 500}) {
    const Plan plan = AllreducePlan({1}, batch);
    EXPECT_EQ(both.PredictStep(plan).total(), fitted.PredictStep(plan).total());
    EXPECT_EQ(both.Predict(plan).log_sd, fitted.Predict(plan).log_sd);
    EXPECT_EQ(both.Predict(plan).flags, fitted.Predict(plan).flags);
  }
  EXPECT_NE(fitted.PredictStep(AllreducePlan({1}, 32)).total(),
            Profiled().PredictStep(AllreducePlan({1}, 32)).total())
      << "or the case is none";
}

// A fit of other workloads tells of the network alone.
TEST(ProfilePrediction, AFitOfOthersTellsOfTheNetwork) {
  const Workload vgg = *FindWorkload("vgg16");
  const auto compute = Compute(Measured(vgg), vgg);
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), vgg, T4(), "t4", compute);
  EXPECT_EQ(predictor.compute_source(), ComputeSource::kProfile);
  const Prediction p = predictor.Predict(AllreducePlan({1}, 32));
  EXPECT_NEAR(p.step_time / (compute->MicroStep(32) + compute->Update()), 1, 1e-12);
  EXPECT_TRUE(p.flags.empty()) << p.flags.front();
}

// Also of a device of which the fit knows how fast others run there.
TEST(ProfilePrediction, GoesBeforeTheDevicesSpeed) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  ParameterEstimate speed;
  speed.scope = std::string(kDeviceScopePrefix) + "t4";
  speed.name = kDeviceSpeedSpec.name;
  speed.value = 0.5;
  speed.log_sd = 0.1;
  cluster.calibration->parameters.push_back(speed);
  const auto size = static_cast<Eigen::Index>(cluster.calibration->parameters.size());
  cluster.calibration->log_covariance = 4e-4 * Eigen::MatrixXd::Identity(size, size);
  const Workload vgg = *FindWorkload("vgg16");
  EXPECT_EQ(Predictor(cluster, vgg, T4()).compute_source(), ComputeSource::kFromDevice);
  EXPECT_EQ(Predictor(cluster, vgg, T4(), "t4", Compute(Measured(vgg), vgg)).compute_source(),
            ComputeSource::kProfile);
}

// ---- The interval.

TEST(ProfilePrediction, IsMoreCertainThanADataSheet) {
  const Plan plan = AllreducePlan({1}, 32);
  const Prediction profiled = Profiled(T4()).Predict(plan);
  const Prediction data_sheet = Predictor(SyntheticCluster(), Resnet50(), T4()).Predict(plan);
  EXPECT_EQ(data_sheet.compute_source, ComputeSource::kDataSheet);
  EXPECT_LT(profiled.log_sd, data_sheet.log_sd / 2);
  EXPECT_GT(profiled.log_sd, kProfiledLogSd * 0.9) << "what no layer shows is in it";
}

TEST(ProfilePrediction, TheIntervalWidensBeyondTheMeasuredBatches) {
  const Predictor predictor = Profiled();
  const auto predict = [&](int batch) { return predictor.Predict(AllreducePlan({1}, batch)); };
  EXPECT_EQ(predict(128).discrepancy_log_sd, 0);
  double sd = predict(128).log_sd;
  double discrepancy = 0;
  for (const int batch : {256, 512, 2048}) {
    const Prediction p = predict(batch);
    EXPECT_GT(p.discrepancy_log_sd, discrepancy) << batch;
    EXPECT_GT(p.log_sd, sd) << batch;
    EXPECT_NEAR(p.discrepancy_log_sd, Resnet50Profile()->ExtraLogSd(batch), 1e-12) << batch;
    sd = p.log_sd;
    discrepancy = p.discrepancy_log_sd;
  }
  EXPECT_GT(predict(1).discrepancy_log_sd, 0);
}

// ---- Flags.

TEST(ProfilePrediction, NoFlagsWithinWhatWasMeasured) {
  const Prediction p = Profiled().Predict(AllreducePlan({1}, 32));
  ASSERT_EQ(p.flags.size(), 1U) << p.flags.back();
  EXPECT_TRUE(HasFlag(p, "cluster not calibrated"));
  EXPECT_EQ(Profiled().Predict(AllreducePlan({1}, 100)).flags.size(), 1U) << "between batches";
}

TEST(ProfilePrediction, BeyondTheBatchesIsFlagged) {
  for (const int batch : {7, 129}) {
    EXPECT_TRUE(
        HasFlag(Profiled().Predict(AllreducePlan({1}, batch)),
                "local batch " + std::to_string(batch) + " is beyond the measured ones, 8 to 128"));
  }
}

TEST(ProfilePrediction, ScaledLayersAreFlagged) {
  const Workload vgg = *FindWorkload("vgg16");
  const auto compute = Compute(Measured(Resnet50()), vgg);
  const Predictor predictor(SyntheticCluster(), vgg, std::nullopt, "t4", compute);
  const Prediction p = predictor.Predict(AllreducePlan({1}, 32));
  const ProfiledSum sum = compute->Sum(32);
  const double percent = 100 * (sum.scaled / (sum.forward + sum.backward));
  EXPECT_TRUE(HasFlag(p, std::to_string(std::lround(percent)) +
                             " % of the compute is of layers that the profile does not have"))
      << percent;
  EXPECT_GT(percent, 50);
}

TEST(ProfilePrediction, BusyDevicesAreFlagged) {
  ComputeProfile profile = Measured(Resnet50());
  for (MeasuredSamples& samples : profile.samples) {
    samples.throttled = samples.point.batch == 128;
  }
  const Predictor predictor(SyntheticCluster(), Resnet50(), std::nullopt, "t4",
                            Compute(profile, Resnet50()));
  EXPECT_TRUE(HasFlag(predictor.Predict(AllreducePlan({1}, 128)), "busy or throttled"));
  EXPECT_TRUE(HasFlag(predictor.Predict(AllreducePlan({1}, 64)), "busy or throttled"));
  EXPECT_FALSE(HasFlag(predictor.Predict(AllreducePlan({1}, 32)), "busy or throttled"));
}

TEST(ProfilePrediction, OutOfMemoryIsFlagged) {
  ComputeProfile profile = Measured(Resnet50());
  MeasuredSamples failed;
  failed.point = {Resnet50().layers[0].operation, 256, Precision::kFp32, TrainingPass::kForward};
  failed.status = PointStatus::kOutOfMemory;
  failed.reason = "needs 93 GiB";
  profile.samples.push_back(failed);
  const Predictor predictor(SyntheticCluster(), Resnet50(), std::nullopt, "t4",
                            Compute(profile, Resnet50()));
  EXPECT_FALSE(HasFlag(predictor.Predict(AllreducePlan({1}, 255)), "out of memory"));
  EXPECT_TRUE(HasFlag(predictor.Predict(AllreducePlan({1}, 300)),
                      "out of memory: an operation of resnet50 did not fit t4 at local batch 300"));
}

// ---- When gradients are ready.

TEST(BackwardTimes, SetWhenBucketsAreReady) {
  Workload workload;
  for (const double seconds : {1.0, 0.0, 5.0, 2.0}) {
    Layer layer;
    layer.tensors = {1'000'000};
    layer.forward_flop = Flop(1e9);
    layer.backward_time = Seconds(seconds);
    workload.layers.push_back(layer);
  }
  workload.parameters = workload.trainable_parameters = 4'000'000;
  workload.gradient_bytes = Bytes(16e6);
  const std::vector<Bucket> buckets = MakeBuckets(workload, Megabytes(1.0));
  ASSERT_EQ(buckets.size(), 4U);
  const double ready[] = {2.0 / 8, 7.0 / 8, 7.0 / 8, 1};
  for (std::size_t i = 0; i < buckets.size(); ++i) EXPECT_DOUBLE_EQ(buckets[i].ready, ready[i]);
  for (Layer& layer : workload.layers) layer.backward_time = Duration<>();
  EXPECT_DOUBLE_EQ(MakeBuckets(workload, Megabytes(1.0)).front().ready, 0.25) << "by work";
}

TEST(BackwardTimes, AreThoseOfTheProfile) {
  const Predictor predictor = Profiled();
  const std::vector<double> seconds = Resnet50Profile()->BackwardSeconds(128);
  const std::vector<Layer>& layers = predictor.workload().layers;
  ASSERT_EQ(layers.size(), seconds.size());
  double all = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i].backward_time.si(), seconds[i]);
    all += seconds[i];
  }
  const std::vector<Bucket> buckets = MakeBuckets(predictor.workload(), kDefaultBucket);
  // The first bucket is closed by the tensor with which it reaches 1 MiB, counted from the back.
  double passed = 0;
  double bytes = 0;
  for (std::size_t i = layers.size(); i-- > 0 && bytes < kFirstBucket.in(kBytes);) {
    passed += seconds[i];
    bytes += 4.0 * static_cast<double>(layers[i].parameters());
  }
  EXPECT_NEAR(buckets.front().ready, passed / all, 1e-12);
  EXPECT_NEAR(buckets.back().ready, 1, 1e-12);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_GT(buckets[i].ready, i == 0 ? 0 : buckets[i - 1].ready);
    EXPECT_LE(buckets[i].ready, 1);
  }
  EXPECT_NE(buckets.front().ready, MakeBuckets(Resnet50(), kDefaultBucket).front().ready)
      << "by work it would be another share";
}

}  // namespace
}  // namespace stepcast
