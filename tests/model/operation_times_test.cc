// Times from synthetic profiles: what was measured, the lines between and beyond, and relatives.
#include "model/compute/operation_times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/model/operation_time.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr TrainingPass kForward = TrainingPass::kForward;
constexpr TrainingPass kBackward = TrainingPass::kBackward;
constexpr TrainingPass kUpdate = TrainingPass::kUpdate;

MeasuredSamples* Add(ComputeProfile* profile, const Operation& operation, double batch,
                     std::vector<double> seconds, TrainingPass pass = kForward,
                     Precision precision = Precision::kFp32) {
  MeasuredSamples samples;
  samples.point = {operation, static_cast<int>(batch), precision, pass};
  samples.seconds = std::move(seconds);
  profile->samples.push_back(std::move(samples));
  return &profile->samples.back();
}

// Three equal samples: as certain as any.
void AddSure(ComputeProfile* profile, const Operation& operation, double batch, double seconds,
             TrainingPass pass = kForward) {
  Add(profile, operation, batch, {seconds, seconds, seconds}, pass);
}

OperationTimes Times(const ComputeProfile& profile, Precision precision = Precision::kFp32) {
  return {profile, precision};
}

OperationTime Find(const OperationTimes& times, const Operation& operation, double batch,
                   TrainingPass pass = kForward) {
  const std::optional<OperationTime> time = TimeIn(times, operation, pass, batch);
  EXPECT_TRUE(time.has_value());
  return time.value_or(OperationTime());
}

const Operation kDense = DenseOp{1, 512, 1000, true};

// 8: 1 ms, 16: 1.5 ms, 64: 3 ms.
ComputeProfile ThreeBatches() {
  ComputeProfile profile;
  AddSure(&profile, kDense, 16, 1.5e-3);
  AddSure(&profile, kDense, 64, 3e-3);
  AddSure(&profile, kDense, 8, 1e-3);
  return profile;
}

// ---- What was measured.

TEST(OperationTimes, MeasuredBatchesHaveTheirMedians) {
  ComputeProfile profile;
  Add(&profile, kDense, 8, {1.1e-3, 1e-3, 9e-3});
  Add(&profile, kDense, 8, {1.2e-3, 1.05e-3});
  Add(&profile, kDense, 32, {4e-3, 5e-3});
  Add(&profile, kDense, 32, {7e-3}, kBackward);
  const OperationTimes times = Times(profile);
  EXPECT_TRUE(Near(Find(times, kDense, 8).time.si(), 1.1e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 32).time.si(), 4.5e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 32, kBackward).time.si(), 7e-3));
  EXPECT_EQ(Find(times, kDense, 8).origin, TimeOrigin::kMeasured);
  EXPECT_EQ(Find(times, kDense, 8).relative, "");
  EXPECT_FALSE(Find(times, kDense, 8).flagged);
}

// Never better than what two sessions differ by; unknown for one sample or two.
TEST(OperationTimes, TheErrorIsThatOfTheMedian) {
  ComputeProfile profile = ThreeBatches();
  Add(&profile, kDense, 128, {5e-3, 6e-3});
  Add(&profile, kDense, 256, {8e-3, 10e-3, 12e-3});
  const OperationTimes times = Times(profile);
  EXPECT_EQ(Find(times, kDense, 8).log_sd, 0.01);
  EXPECT_EQ(Find(times, kDense, 128).log_sd, 0.2);
  EXPECT_TRUE(Near(Find(times, kDense, 256).log_sd, 4.0 / (2 * 1.96 * 10)));
}

TEST(OperationTimes, BatchesAreThoseOfLayers) {
  ComputeProfile profile = ThreeBatches();
  AddSure(&profile, CopyOp{9}, 4, 1e-5, kBackward);
  AddSure(&profile, UpdateOp{}, 1, 1e-5, kUpdate);
  Add(&profile, kDense, 1024, {1}, kForward, Precision::kBf16);
  Add(&profile, kDense, 2048, {})->status = PointStatus::kOutOfMemory;
  EXPECT_EQ(Times(profile).batches(), (std::vector<double>{4, 8, 16, 64}));
  EXPECT_EQ(Times(profile, Precision::kBf16).batches(), (std::vector<double>{1024}));
  EXPECT_TRUE(Times(profile, Precision::kFp16).batches().empty());
}

TEST(OperationTimes, FlaggedSamplesYieldToCleanOnes) {
  ComputeProfile profile = ThreeBatches();
  Add(&profile, kDense, 8, {5, 6, 7})->busy = true;
  Add(&profile, kDense, 32, {2e-3})->throttled = true;
  const OperationTimes times = Times(profile);
  EXPECT_TRUE(Near(Find(times, kDense, 8).time.si(), 1e-3));
  EXPECT_FALSE(Find(times, kDense, 8).flagged);
  EXPECT_TRUE(Near(Find(times, kDense, 32).time.si(), 2e-3));
  EXPECT_TRUE(Find(times, kDense, 32).flagged);
  EXPECT_TRUE(Find(times, kDense, 40).flagged) << "one end of the line is";
  EXPECT_FALSE(Find(times, kDense, 12).flagged);
}

TEST(OperationTimes, PrecisionsAreApart) {
  ComputeProfile profile = ThreeBatches();
  Add(&profile, kDense, 8, {2e-4}, kForward, Precision::kBf16);
  EXPECT_TRUE(Near(Find(Times(profile), kDense, 8).time.si(), 1e-3));
  EXPECT_TRUE(Near(Find(Times(profile, Precision::kBf16), kDense, 8).time.si(), 2e-4));
  EXPECT_FALSE(TimeIn(Times(profile, Precision::kFp16), kDense, kForward, 8).has_value());
}

TEST(OperationTimes, OutOfMemory) {
  ComputeProfile profile = ThreeBatches();
  MeasuredSamples* failed = Add(&profile, kDense, 128, {});
  failed->status = PointStatus::kOutOfMemory;
  failed->reason = "needs 93 GiB";
  Add(&profile, CopyOp{9}, 128, {})->status = PointStatus::kUnsupported;
  const OperationTimes times = Times(profile);
  EXPECT_FALSE(times.OutOfMemory(kDense, 64));
  EXPECT_TRUE(times.OutOfMemory(kDense, 128));
  EXPECT_TRUE(times.OutOfMemory(kDense, 129));
  EXPECT_FALSE(times.OutOfMemory(CopyOp{9}, 128)) << "for another reason";
  EXPECT_FALSE(Times(profile, Precision::kBf16).OutOfMemory(kDense, 128));
  EXPECT_EQ(times.batches(), (std::vector<double>{8, 16, 64}));
  EXPECT_EQ(Find(times, kDense, 128).origin, TimeOrigin::kBeyondBatches);
}

// ---- Lines.

TEST(OperationTimes, BetweenBatchesIsTheLine) {
  const OperationTimes times = Times(ThreeBatches());
  const OperationTime time = Find(times, kDense, 40);
  EXPECT_TRUE(Near(time.time.si(), 2.25e-3));
  EXPECT_EQ(time.origin, TimeOrigin::kBetweenBatches);
  EXPECT_TRUE(Near(time.log_sd, std::hypot(0.01, 0.03)));
  EXPECT_TRUE(Near(Find(times, kDense, 12).time.si(), 1.25e-3));
}

TEST(OperationTimes, BeyondTheLargestTheLastLineGoesOn) {
  const OperationTimes times = Times(ThreeBatches());
  const OperationTime time = Find(times, kDense, 256);
  EXPECT_TRUE(Near(time.time.si(), 3e-3 + 1.5e-3 * 192 / 48));
  EXPECT_EQ(time.origin, TimeOrigin::kBeyondBatches);
  EXPECT_TRUE(Near(time.log_sd, std::hypot(0.01, 2 * kBeyondLogSd)));
}

TEST(OperationTimes, BelowTheSmallestTheFirstLineGoesOn) {
  const OperationTimes times = Times(ThreeBatches());
  const OperationTime time = Find(times, kDense, 2);
  EXPECT_TRUE(Near(time.time.si(), 0.5e-3 + 2 * 0.5e-3 / 8));
  EXPECT_EQ(time.origin, TimeOrigin::kBeyondBatches);
  EXPECT_TRUE(Near(time.log_sd, std::hypot(0.01, 2 * kBeyondLogSd)));
}

// A line through points that rise faster than the batch would fall below zero.
TEST(OperationTimes, BelowTheSmallestIsNeverBelowProportion) {
  ComputeProfile profile;
  AddSure(&profile, kDense, 8, 1e-3);
  AddSure(&profile, kDense, 16, 4e-3);
  const OperationTimes times = Times(profile);
  for (const double batch : {1.0, 2.0, 4.0, 7.0}) {
    EXPECT_TRUE(Near(Find(times, kDense, batch).time.si(), 1e-3 * batch / 8)) << batch;
  }
}

TEST(OperationTimes, ALineThatFallsIsLevel) {
  ComputeProfile profile;
  AddSure(&profile, kDense, 8, 2e-3);
  AddSure(&profile, kDense, 16, 1e-3);
  const OperationTimes times = Times(profile);
  for (const double batch : {2.0, 8.0, 11.0, 16.0, 300.0}) {
    EXPECT_TRUE(Near(Find(times, kDense, batch).time.si(), std::sqrt(2.0) * 1e-3)) << batch;
  }
}

// ---- A single batch: in proportion to the roofline of the same pass.

// Peaks that the points of one pass reach, counted here.
struct Roofline {
  double flop = 0;
  double elements = 0;

  Roofline(const ComputeProfile& profile, TrainingPass pass) {
    for (const MeasuredSamples& samples : profile.samples) {
      if (samples.point.pass != pass) continue;
      const OperationCounts n = CountOperation(samples.point.operation, pass);
      const double seconds = samples.seconds.at(0);
      flop = std::max(flop, n.flop_per_sample * samples.point.batch / seconds);
      elements =
          std::max(elements, (n.elements_per_sample * samples.point.batch + n.elements) / seconds);
    }
  }
  double Of(const OperationCounts& n, double batch) const {
    return std::max(n.flop_per_sample * batch / flop,
                    (n.elements_per_sample * batch + n.elements) / elements);
  }
};

TEST(OperationTimes, OneBatchFollowsTheRoofline) {
  for (const TrainingPass pass : {kForward, kBackward}) {
    ComputeProfile profile;
    AddSure(&profile, kDense, 8, 1e-3, pass);
    const OperationTimes times = Times(profile);
    // Its own rates are the peaks: more samples are more work, fewer read the parameters yet.
    const OperationTime above = Find(times, kDense, 32, pass);
    EXPECT_TRUE(Near(above.time.si(), 4e-3)) << above.time.si();
    EXPECT_TRUE(Near(above.log_sd, std::hypot(0.01, 2 * kBeyondOneLogSd)));
    EXPECT_EQ(above.origin, TimeOrigin::kBeyondBatches);
    const OperationCounts n = CountOperation(kDense, pass);
    const OperationTime below = Find(times, kDense, 2, pass);
    EXPECT_TRUE(Near(below.time.si(), 1e-3 * (2 * n.elements_per_sample + n.elements) /
                                          (8 * n.elements_per_sample + n.elements)));
  }
}

// Peaks of the backward pass decide the backward pass: here the forward pass is bound by memory at
// this operation, the backward pass by work.
TEST(OperationTimes, OneBatchFollowsTheRooflineOfItsPass) {
  const Operation copy = CopyOp{1000};
  const Operation product = BatchedProductOp{1, 100, 100, 100};
  ComputeProfile profile;
  AddSure(&profile, kDense, 8, 1e-3);
  AddSure(&profile, kDense, 8, 2e-3, kBackward);
  AddSure(&profile, product, 8, 1e-7);
  AddSure(&profile, copy, 8, 1e-8, kBackward);
  const OperationTimes times = Times(profile);
  for (const TrainingPass pass : {kForward, kBackward}) {
    const Roofline roof(profile, pass);
    const OperationCounts n = CountOperation(kDense, pass);
    for (const double batch : {1.0, 4.0, 16.0, 4096.0}) {
      const double seconds = (pass == kForward ? 1e-3 : 2e-3) * roof.Of(n, batch) / roof.Of(n, 8);
      EXPECT_TRUE(Near(Find(times, kDense, batch, pass).time.si(), seconds, 1e-9))
          << batch << " " << kTrainingPassNames[static_cast<int>(pass)];
    }
  }
}

// ---- Pooling.

// Isotonic regression by its max-min formula, on logarithms.
std::vector<double> Pooled(const std::vector<double>& logs, const std::vector<double>& weights) {
  std::vector<double> pooled;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j <= i; ++j) {
      double lowest = std::numeric_limits<double>::infinity();
      double sum = 0;
      double weight = 0;
      for (std::size_t k = j; k < logs.size(); ++k) {
        sum += weights[k] * logs[k];
        weight += weights[k];
        if (k >= i) lowest = std::min(lowest, sum / weight);
      }
      highest = std::max(highest, lowest);
    }
    pooled.push_back(highest);
  }
  return pooled;
}

TEST(OperationTimes, PoolsByHand) {
  ComputeProfile profile;
  AddSure(&profile, kDense, 1, 1e-3);
  AddSure(&profile, kDense, 2, 4e-3);
  AddSure(&profile, kDense, 4, 1e-3);
  AddSure(&profile, kDense, 8, 8e-3);
  const OperationTimes times = Times(profile);
  EXPECT_TRUE(Near(Find(times, kDense, 1).time.si(), 1e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 2).time.si(), 2e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 3).time.si(), 2e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 4).time.si(), 2e-3));
  EXPECT_TRUE(Near(Find(times, kDense, 8).time.si(), 8e-3));
}

RC_GTEST_PROP(OperationTimesProperty, PoolsAsTheMaxMinFormula, ()) {
  ComputeProfile profile;
  std::vector<double> logs;
  std::vector<double> weights;
  std::vector<double> batches;
  const int count = *Whole(1, 12);
  double batch = 0;
  for (int i = 0; i < count; ++i) {
    batch += *Whole(1, 20);
    const double seconds = *LogUniform(1e-4, 1e-2);
    const double spread = *LogUniform(0.001, 0.5);
    Add(&profile, kDense, batch, {seconds * (1 - spread), seconds, seconds * (1 + spread)});
    const double sd = std::max(0.01, 2 * spread / (2 * 1.96));
    batches.push_back(batch);
    logs.push_back(std::log(seconds));
    weights.push_back(1 / (sd * sd));
  }
  const OperationTimes times = Times(profile);
  const std::vector<double> pooled = Pooled(logs, weights);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::optional<OperationTime> time = TimeIn(times, kDense, kForward, batches[i]);
    RC_ASSERT(time.has_value());
    RC_ASSERT(Near(time->time.si(), std::exp(pooled[i]), 1e-9));
  }
}

// ---- Random profiles.

DenseOp AnyDense() {
  return {*Whole(1, 300), *Whole(1, 5000), *Whole(1, 5000), *Whole(0, 1) == 1, *Whole(0, 1) == 1};
}

// Some operations at some batches, each with noise of its own.
ComputeProfile NoisyProfile(const std::vector<Operation>& operations) {
  ComputeProfile profile;
  for (const Operation& operation : operations) {
    for (const TrainingPass pass : {kForward, kBackward}) {
      const double fixed = *LogUniform(1e-6, 1e-3);
      const double per_sample = *LogUniform(1e-7, 1e-3);
      double batch = 0;
      for (int i = *Whole(1, 5); i > 0; --i) {
        batch += *Whole(1, 64);
        const double median = (fixed + per_sample * batch) * *LogUniform(0.6, 1.6);
        std::vector<double> seconds;
        for (int k = *Whole(1, 5); k > 0; --k) seconds.push_back(median * *LogUniform(0.9, 1.1));
        Add(&profile, operation, batch, seconds, pass);
      }
    }
  }
  return profile;
}

void RequireNeverFalls(const OperationTimes& times, const Operation& operation) {
  for (const TrainingPass pass : {kForward, kBackward}) {
    double last = 0;
    for (double batch = 0.5; batch < 2000; batch *= 1.07) {
      const std::optional<OperationTime> time = TimeIn(times, operation, pass, batch);
      RC_ASSERT(time.has_value());
      RC_ASSERT(std::isfinite(time->time.si()));
      RC_ASSERT(time->time.si() > 0);
      RC_ASSERT(std::isfinite(time->log_sd));
      RC_ASSERT(time->log_sd >= 0.01);
      RC_ASSERT(time->time.si() >= last * (1 - 1e-12));
      last = time->time.si();
    }
  }
}

RC_GTEST_PROP(OperationTimesProperty, MeasuredOnesNeverFallWithTheBatch, ()) {
  const std::vector<Operation> operations = {AnyDense(), AnyDense(), CopyOp{*Whole(1, 1'000'000)}};
  const OperationTimes times = Times(NoisyProfile(operations));
  for (const Operation& operation : operations) RequireNeverFalls(times, operation);
}

RC_GTEST_PROP(OperationTimesProperty, ScaledOnesNeverFallWithTheBatch, ()) {
  const OperationTimes times = Times(NoisyProfile({AnyDense(), AnyDense(), AnyDense()}));
  RequireNeverFalls(times, AnyDense());
}

// Launches take as long at any batch; what reads parameters mostly does so too.
TEST(OperationTimes, AScaledOneNeverFallsByHand) {
  const Operation activations = DenseOp{1000, 512, 512};
  const Operation parameters = DenseOp{1, 20'000, 20'000};
  ComputeProfile profile;
  for (const double batch : {1.0, 8.0, 64.0}) AddSure(&profile, activations, batch, 1e-5);
  const OperationTimes times = Times(profile);
  double last = 0;
  for (const double batch : {1.0, 2.0, 8.0, 32.0, 64.0, 128.0}) {
    const double seconds = Find(times, parameters, batch).time.si();
    EXPECT_GE(seconds, last) << batch;
    last = seconds;
  }
}

RC_GTEST_PROP(OperationTimesProperty, KnownLessTheFurtherFromTheBatches, ()) {
  const Operation dense = AnyDense();
  const ComputeProfile profile = NoisyProfile({dense});
  const OperationTimes times = Times(profile);
  const double last = times.batches().back();
  double sd = 0;
  for (const double factor : {1.1, 2.0, 4.0, 64.0}) {
    const std::optional<OperationTime> time = TimeIn(times, dense, kForward, last * factor);
    RC_ASSERT(time.has_value());
    RC_ASSERT(time->origin == TimeOrigin::kBeyondBatches);
    RC_ASSERT(time->log_sd > sd);
    sd = time->log_sd;
  }
}

// ---- Relatives.

// At a batch of the relative: its time, times the ratio of the two rooflines.
RC_GTEST_PROP(OperationTimesProperty, ScalesByTheRoofline, ()) {
  const Operation relative = AnyDense();
  const Operation other = AnyDense();
  RC_PRE(!(relative == other));
  const double batch = *Whole(1, 256);
  for (const TrainingPass pass : {kForward, kBackward}) {
    ComputeProfile profile;
    // Another operation may set the peaks.
    AddSure(&profile, BatchedProductOp{*Whole(1, 100), 64, 64, 64}, batch, *LogUniform(1e-6, 1e-3),
            pass);
    AddSure(&profile, relative, batch, *LogUniform(1e-6, 1e-3), pass);
    const double seconds = profile.samples.back().seconds.front();
    const Roofline roof(profile, pass);
    const std::optional<OperationTime> time = TimeIn(Times(profile), other, pass, batch);
    RC_ASSERT(time.has_value());
    const double ratio = roof.Of(CountOperation(other, pass), batch) /
                         roof.Of(CountOperation(relative, pass), batch);
    RC_ASSERT(Near(time->time.si(), seconds * ratio, 1e-9));
    RC_ASSERT(time->origin == TimeOrigin::kScaled);
    RC_ASSERT(time->relative == "dense");
    RC_ASSERT(Near(time->log_sd, std::hypot(0.01, kScaledLogSd)));
  }
}

TEST(OperationTimes, TheNearestIntensityIsTheRelative) {
  const Operation wide = DenseOp{1000, 1000, 1000};  // hundreds of FLOP an element
  const Operation narrow = DenseOp{1, 1000, 1000};   // two FLOP a parameter
  ComputeProfile profile;
  AddSure(&profile, wide, 1, 1e-3);
  Add(&profile, narrow, 1, {5e-3})->busy = true;
  const OperationTimes times = Times(profile);
  EXPECT_FALSE(Find(times, DenseOp{1000, 900, 1000}, 1).flagged) << "as the wide one";
  EXPECT_TRUE(Find(times, DenseOp{1, 900, 1000}, 1).flagged) << "as the narrow one";
}

TEST(OperationTimes, OfTwoAlikeTheNearestWorkIsTheRelative) {
  ComputeProfile profile;
  AddSure(&profile, CopyOp{1000}, 1, 1e-3);
  Add(&profile, CopyOp{1'000'000}, 1, {1e-3})->busy = true;
  const OperationTimes times = Times(profile);
  EXPECT_FALSE(Find(times, CopyOp{2000}, 1).flagged);
  EXPECT_TRUE(Find(times, CopyOp{500'000}, 1).flagged);
  EXPECT_TRUE(Near(Find(times, CopyOp{2000}, 1).time.si(), 2e-3));
  EXPECT_EQ(Find(times, CopyOp{2000}, 1).relative, "reshape");
}

// A sum of 1000 and a copy of 1500 elements pass the memory 3000 times.
TEST(OperationTimes, ACopyWithoutCopiesIsScaledFromASum) {
  ComputeProfile profile;
  AddSure(&profile, ElementwiseOp{ElementwiseKind::kAdd, 1000, 1, false}, 1, 1e-3);
  const OperationTimes times(profile, Precision::kFp32);
  EXPECT_TRUE(Near(Find(times, CopyOp{1500}, 1).time.si(), 1e-3));
  EXPECT_EQ(Find(times, CopyOp{1500}, 1).relative, "elementwise");
  AddSure(&profile, CopyOp{1500}, 1, 2e-3);
  const OperationTimes measured(profile, Precision::kFp32);
  EXPECT_TRUE(Near(Find(measured, CopyOp{1500}, 1).time.si(), 2e-3));
}

TEST(OperationTimes, NothingOfTheKindIsUnknown) {
  const OperationTimes times = Times(ThreeBatches());
  EXPECT_FALSE(TimeIn(times, ConvolutionOp{}, kForward, 8).has_value());
  EXPECT_FALSE(TimeIn(times, CopyOp{9}, kForward, 8).has_value());
  EXPECT_FALSE(TimeIn(times, kDense, kBackward, 8).has_value()) << "the other pass was measured";
  EXPECT_FALSE(TimeIn(times, {}, kForward, 8).has_value());
  EXPECT_FALSE(times.ResolveScaled(LayerKind::kPooling, {1, 1, 1}, kForward).has_value());
  EXPECT_FALSE(
      TimeIn(OperationTimes(ComputeProfile(), Precision::kFp32), kDense, kForward, 8).has_value());
}

TEST(OperationTimes, DepthwiseIsAKindOfItsOwn) {
  ConvolutionOp dense;
  dense.channels = dense.filters = 32;
  dense.input = {9, 9};
  ConvolutionOp depthwise = dense;
  depthwise.groups = 32;
  ComputeProfile profile;
  AddSure(&profile, dense, 8, 1e-3);
  EXPECT_FALSE(TimeIn(Times(profile), depthwise, kForward, 8).has_value());
  ConvolutionOp grouped = dense;
  grouped.groups = 2;
  EXPECT_TRUE(TimeIn(Times(profile), grouped, kForward, 8).has_value());
}

TEST(OperationTimes, ALayerOfNoStatedOperationIsScaledByItsKind) {
  const ComputeProfile profile = ThreeBatches();
  const OperationTimes times = Times(profile);
  const OperationCounts counts = {2e6, 3000, 1e6};
  const Roofline roof(profile, kForward);
  for (const double batch : {8.0, 16.0, 64.0}) {
    const auto curve = times.ResolveScaled(LayerKind::kDense, counts, kForward);
    ASSERT_TRUE(curve.has_value());
    const OperationTime time = times.On(*curve, batch);
    EXPECT_TRUE(Near(time.time.si(),
                     Find(times, kDense, batch).time.si() * roof.Of(counts, batch) /
                         roof.Of(CountOperation(kDense, kForward), batch),
                     1e-9))
        << batch;
    EXPECT_EQ(time.origin, TimeOrigin::kScaled);
  }
}

// ---- Updates.

TEST(OperationTimes, UpdatesAreInFullPrecisionAtAnyBatch) {
  ComputeProfile profile;
  Add(&profile, kDense, 8, {1e-3}, kForward, Precision::kBf16);
  AddSure(&profile, UpdateOp{Optimizer::kAdam, 1000}, 1, 1e-5, kUpdate);
  const OperationTimes times = Times(profile, Precision::kBf16);
  for (const double batch : {1.0, 8.0, 500.0}) {
    const OperationTime time = Find(times, UpdateOp{Optimizer::kAdam, 1000}, batch, kUpdate);
    EXPECT_TRUE(Near(time.time.si(), 1e-5));
    EXPECT_EQ(time.origin, TimeOrigin::kMeasured);
  }
  const OperationTime larger = Find(times, UpdateOp{Optimizer::kAdam, 3000}, 8, kUpdate);
  EXPECT_TRUE(Near(larger.time.si(), 3e-5));
  EXPECT_EQ(larger.origin, TimeOrigin::kScaled);
}

// Where a job keeps its parameters in 16 bits, it updates them so.
TEST(OperationTimes, UpdatesIn16BitsCountWhereThereAreSome) {
  ComputeProfile profile;
  const UpdateOp adam{Optimizer::kAdam, 1000};
  Add(&profile, adam, 1, {6e-6, 6e-6, 6e-6}, kUpdate, Precision::kBf16);
  EXPECT_TRUE(Near(Find(Times(profile, Precision::kBf16), adam, 1, kUpdate).time.si(), 6e-6));
  EXPECT_FALSE(TimeIn(Times(profile, Precision::kFp16), adam, kUpdate, 1).has_value());
  AddSure(&profile, adam, 1, 1e-5, kUpdate);
  EXPECT_TRUE(Near(Find(Times(profile, Precision::kBf16), adam, 1, kUpdate).time.si(), 6e-6));
  EXPECT_TRUE(Near(Find(Times(profile, Precision::kFp16), adam, 1, kUpdate).time.si(), 1e-5));
}

// Another optimizer runs other kernels.
TEST(OperationTimes, AnotherOptimizerIsNoRelative) {
  ComputeProfile profile;
  AddSure(&profile, UpdateOp{Optimizer::kMomentum, 1000}, 1, 1e-5, kUpdate);
  const OperationTimes times = Times(profile);
  EXPECT_TRUE(TimeIn(times, UpdateOp{Optimizer::kMomentum, 900}, kUpdate, 1).has_value());
  EXPECT_FALSE(TimeIn(times, UpdateOp{Optimizer::kAdam, 1000}, kUpdate, 1).has_value());
}

// ---- Kinds.

TEST(KindOf, IsTheCataloguesKind) {
  int layers = 0;
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    for (const Layer& layer : workload.layers) {
      // A stored normalisation of the input is a product.
      if (layer.kind == LayerKind::kNormalization && layer.tensors.empty()) continue;
      EXPECT_EQ(KindOf(layer.operation), layer.kind) << name << ": " << layer.name;
      ++layers;
    }
  }
  EXPECT_GT(layers, 1000);
  EXPECT_EQ(KindOf(UpdateOp{}), LayerKind::kElementwise);
}

}  // namespace
}  // namespace stepcast
