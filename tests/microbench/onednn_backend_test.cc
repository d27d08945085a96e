#include "microbench/compute/onednn_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "microbench/compute/onednn_operations.h"
#include "microbench/compute/onednn_plan.h"

namespace stepcast {
namespace {

const std::vector<TrainingPass> kBoth = {TrainingPass::kForward, TrainingPass::kBackward};
const std::vector<TrainingPass> kUpdate = {TrainingPass::kUpdate};

ConvolutionOp Convolution(std::int64_t channels, std::int64_t size, std::int64_t filters,
                          std::int64_t kernel) {
  ConvolutionOp op;
  op.channels = channels;
  op.input = {size, size};
  op.filters = filters;
  op.kernel = {kernel, kernel};
  op.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  return op;
}

double Median(Trial* trial, TrainingPass pass, int runs) {
  trial->Run(pass);
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(trial->Run(pass).seconds);
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Prepares and runs every pass more often than there can be sets of buffers in so small a test.
void ExpectRuns(const Operation& operation, const std::vector<TrainingPass>& passes,
                Precision precision = Precision::kFp32, int threads = 1) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(threads);
  const int batch = passes == kUpdate ? 1 : 3;
  const Preparation prepared = backend->Prepare(operation, batch, precision, passes);
  ASSERT_EQ(prepared.status, PointStatus::kMeasured) << prepared.reason;
  ASSERT_NE(prepared.trial, nullptr);
  for (int i = 0; i < 5; ++i) {
    for (const TrainingPass pass : passes) {
      const TimedRun run = prepared.trial->Run(pass);
      EXPECT_GT(run.seconds, 0);
      EXPECT_LT(run.seconds, 1);
      EXPECT_GE(run.own_share, 0);
      EXPECT_LE(run.own_share, 1);
    }
  }
}

void ExpectRefused(const Operation& operation, int batch, PointStatus status,
                   const std::string& part, const std::vector<TrainingPass>& passes = kBoth,
                   Precision precision = Precision::kFp32) {
  const Preparation prepared = MakeOneDnnBackend(1)->Prepare(operation, batch, precision, passes);
  EXPECT_EQ(prepared.status, status) << prepared.reason;
  EXPECT_EQ(prepared.trial, nullptr);
  EXPECT_NE(prepared.reason.find(part), std::string::npos) << prepared.reason;
}

TEST(OneDnnBackendTest, SaysWhatItRunsOn) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(1);
  EXPECT_EQ(backend->Name(), "onednn");
  const ProfiledDevice device = backend->Device();
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_FALSE(device.name.empty());
  EXPECT_EQ(device.facts.at("threads"), "1");
  EXPECT_EQ(device.facts.count("memory"), 1U);
  EXPECT_EQ(backend->Settings().at("onednn").substr(0, 2), "2.");
  EXPECT_EQ(backend->Settings().at("layout"), "blocked");
  EXPECT_THROW(MakeOneDnnBackend(0), std::invalid_argument);
}

TEST(OneDnnBackendTest, RunsConvolutionsOfAllShapes) {
  ExpectRuns(Convolution(16, 14, 32, 3), kBoth);
  ConvolutionOp first = Convolution(3, 32, 20, 7);
  first.stride = {2, 2};
  first.bias = true;
  first.input_gradient = false;
  ExpectRuns(first, kBoth);
  ConvolutionOp depthwise = Convolution(24, 13, 24, 3);
  depthwise.groups = 24;
  depthwise.stride = {2, 2};
  depthwise.padding = {0, 0, 1, 1};
  ExpectRuns(depthwise, kBoth);
  ConvolutionOp grouped = Convolution(32, 9, 64, 3);
  grouped.groups = 4;
  grouped.dilation = {2, 2};
  grouped.padding = {2, 2, 2, 2};
  ExpectRuns(grouped, kBoth);
  ConvolutionOp flat = Convolution(16, 17, 16, 1);
  flat.kernel = {1, 7};
  flat.padding = {0, 3, 0, 3};
  ExpectRuns(flat, kBoth);
}

TEST(OneDnnBackendTest, RunsProducts) {
  ExpectRuns(DenseOp{1, 100, 37, true, true}, kBoth);
  ExpectRuns(DenseOp{16, 64, 128, false, false}, kBoth);
  ExpectRuns(BatchedProductOp{4, 24, 16, 8}, kBoth);
}

TEST(OneDnnBackendTest, RunsNormalizations) {
  ExpectRuns(NormalizationOp{NormalizationKind::kBatch, 24, {7, 7}}, kBoth);
  ExpectRuns(NormalizationOp{NormalizationKind::kLayer, 96, {1, 20}}, kBoth);
}

TEST(OneDnnBackendTest, RunsEveryFunction) {
  for (int i = 0; i < kFunctionCount; ++i) {
    SCOPED_TRACE(kFunctionNames[i]);
    ExpectRuns(ActivationOp{static_cast<Function>(i), 8, 50}, kBoth);
  }
}

TEST(OneDnnBackendTest, RunsPoolings) {
  for (const PoolingKind kind : {PoolingKind::kMax, PoolingKind::kAverage}) {
    ExpectRuns(PoolingOp{kind, 24, {14, 14}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, kBoth);
    ExpectRuns(PoolingOp{kind, 24, {7, 7}, {7, 7}, {7, 7}, {}}, kBoth);
  }
}

TEST(OneDnnBackendTest, RunsWhatHasNoArithmeticIntensity) {
  for (const ElementwiseKind kind : {ElementwiseKind::kAdd, ElementwiseKind::kMultiply}) {
    ExpectRuns(ElementwiseOp{kind, 24, 49, false}, kBoth);
    ExpectRuns(ElementwiseOp{kind, 24, 49, true}, kBoth);
  }
  ExpectRuns(EmbeddingOp{1000, 32, 20}, kBoth);
  ExpectRuns(CopyOp{1000}, kBoth);
  for (int i = 0; i < kOptimizerCount; ++i) {
    ExpectRuns(UpdateOp{static_cast<Optimizer>(i), 100'001}, kUpdate);
  }
}

TEST(OneDnnBackendTest, RunsRecurrentLayers) {
  for (const RecurrentCell cell : {RecurrentCell::kLstm, RecurrentCell::kGru}) {
    ExpectRuns(RecurrentOp{cell, 5, 12, 16, 1}, kBoth);
    ExpectRuns(RecurrentOp{cell, 5, 12, 16, 2}, kBoth);
  }
}

TEST(OneDnnBackendTest, RunsOnePassAlone) {
  ExpectRuns(PoolingOp{PoolingKind::kMax, 16, {8, 8}, {2, 2}, {2, 2}, {}},
             {TrainingPass::kBackward});
  ExpectRuns(RecurrentOp{RecurrentCell::kLstm, 5, 12, 16, 1}, {TrainingPass::kBackward});
  const Preparation prepared = MakeOneDnnBackend(1)->Prepare(
      DenseOp{1, 16, 16, true, true}, 2, Precision::kFp32, {TrainingPass::kForward});
  ASSERT_NE(prepared.trial, nullptr) << prepared.reason;
  EXPECT_THROW(prepared.trial->Run(TrainingPass::kBackward), std::runtime_error);
}

TEST(OneDnnBackendTest, RunsOnTwoThreads) {
  ExpectRuns(Convolution(16, 14, 32, 3), kBoth, Precision::kFp32, 2);
  ExpectRuns(EmbeddingOp{2000, 32, 20}, kBoth, Precision::kFp32, 2);
  ExpectRuns(UpdateOp{Optimizer::kAdam, 100'001}, kUpdate, Precision::kFp32, 2);
}

TEST(OneDnnBackendTest, RunsInBf16OrSaysWhyNot) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(1);
  for (const Operation& operation :
       {Operation(Convolution(16, 14, 32, 3)), Operation(DenseOp{4, 64, 48, true, true}),
        Operation(ActivationOp{Function::kGelu, 8, 50})}) {
    const Preparation prepared = backend->Prepare(operation, 2, Precision::kBf16, kBoth);
    if (prepared.trial == nullptr) {
      EXPECT_EQ(prepared.status, PointStatus::kUnsupported);
      EXPECT_NE(prepared.reason.find("AVX-512"), std::string::npos) << prepared.reason;
    } else {
      for (const TrainingPass pass : kBoth) EXPECT_GT(prepared.trial->Run(pass).seconds, 0);
    }
  }
}

// A tensor above 32 MiB is mapped anew in each run, and others are not: both must work together.
TEST(OneDnnBackendTest, MapsLargeResults) {
  ExpectRuns(ActivationOp{Function::kRelu, 3, 1'000'000}, kBoth);
}

// Time to map memory grows with it: four times as much takes two to ten times as long.
TEST(OneDnnBackendTest, MapsMemoryAnew) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(1);
  ASSERT_EQ(backend->Overheads().size(), 1U);
  const auto least = [&](std::int64_t elements) {
    const Preparation p =
        backend->Prepare(AllocateOp{elements}, 1, Precision::kFp32, {TrainingPass::kForward});
    EXPECT_EQ(p.status, PointStatus::kMeasured) << p.reason;
    double best = 1;
    for (int i = 0; i < 7; ++i) {
      best = std::min(best, p.trial->Run(TrainingPass::kForward).seconds);
    }
    return best;
  };
  const double small = least(1 << 20);
  const double large = least(4 << 20);
  EXPECT_GT(large, 2 * small);
  EXPECT_LT(large, 10 * small);
}

TEST(OneDnnBackendTest, NamesTheImplementation) {
  const Preparation prepared =
      MakeOneDnnBackend(1)->Prepare(Convolution(16, 14, 32, 3), 2, Precision::kFp32, kBoth);
  ASSERT_NE(prepared.trial, nullptr) << prepared.reason;
  for (const TrainingPass pass : kBoth) EXPECT_FALSE(prepared.trial->Algorithm(pass).empty());
}

// All that a pass runs, each implementation once: the gradient of a factor that is the same at all
// positions is summed up over them, as that of such a summand is.
TEST(OneDnnBackendTest, NamesAllThatAPassRunsOnce) {
  const auto names = [](ElementwiseKind kind, bool broadcast) {
    const Preparation prepared = MakeOneDnnBackend(1)->Prepare(
        ElementwiseOp{kind, 32, 49, broadcast}, 2, Precision::kFp32, {TrainingPass::kBackward});
    EXPECT_NE(prepared.trial, nullptr) << prepared.reason;
    std::vector<std::string> all;
    if (prepared.trial == nullptr) return all;
    constexpr const char* kBetween = " + ";
    std::string rest = prepared.trial->Algorithm(TrainingPass::kBackward);
    for (std::size_t at = 0; (at = rest.find(kBetween)) != std::string::npos;) {
      all.push_back(rest.substr(0, at));
      rest.erase(0, at + std::string(kBetween).size());
    }
    all.push_back(rest);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size()) << rest;
    return all;
  };
  const std::vector<std::string> sums = names(ElementwiseKind::kAdd, true);
  const std::vector<std::string> products = names(ElementwiseKind::kMultiply, true);
  names(ElementwiseKind::kMultiply, false);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_TRUE(std::any_of(products.begin(), products.end(), [&](const std::string& name) {
    return name.find(sums.front()) != std::string::npos;
  })) << sums.front();
}

// What is mapped anew counts, in whichever pass it is most: of a function of 36 MB its input, the
// gradient behind it, and what a pass makes of them.
TEST(OneDnnPlanTest, NeedsWhatItsPassesMap) {
  constexpr double kBytes = 4.0 * 3 * 3'000'000;
  ASSERT_GT(kBytes, 1.0 * kAlwaysMappedBytes);
  const auto least = [](const std::vector<TrainingPass>& passes) {
    OneDnnPlan plan(dnnl::engine(dnnl::engine::kind::cpu, 0), 1, {});
    DescribeOperation(ActivationOp{Function::kRelu, 3, 1'000'000}, 3, Precision::kFp32, passes,
                      &plan);
    return plan.LeastBytes();
  };
  EXPECT_GE(least({TrainingPass::kForward}), 2 * kBytes);
  EXPECT_GE(least({TrainingPass::kBackward}), 3 * kBytes);
  EXPECT_GE(least(kBoth), 3 * kBytes);
}

// By the caches that the system tells of.
TEST(OneDnnBackendTest, GoesThroughMoreThanCachesHold) {
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  const auto l2 = std::max<std::int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), kMebibyte);
  const auto l3 = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
  for (const int threads : {1, 2}) {
    const std::int64_t least = std::max(64 * kMebibyte, 2 * l2 * threads);
    const auto settings = MakeOneDnnBackend(threads)->Settings();
    EXPECT_EQ(settings.at("threads"), std::to_string(threads));
    EXPECT_EQ(settings.at("cold_bytes"), std::to_string(least));
    EXPECT_EQ(settings.at("most_cold_bytes"), std::to_string(std::max(least, l3)));
  }
}

TEST(OneDnnBackendTest, RefusesWhatDoesNotFit) {
  constexpr int kHuge = 1'000'000'000;
  ExpectRefused(Convolution(64, 224, 64, 3), kHuge, PointStatus::kOutOfMemory, "are free");
  ExpectRefused(DenseOp{1024, 1024, 1024, false, true}, kHuge, PointStatus::kOutOfMemory,
                "GiB are free");
  ExpectRefused(CopyOp{std::int64_t{1} << 40U}, kHuge, PointStatus::kOutOfMemory, "are free");
  ExpectRefused(UpdateOp{Optimizer::kAdam, std::int64_t{1} << 50U}, 1, PointStatus::kOutOfMemory,
                "are free", kUpdate);
  // Each length counts, the rows of tables and matrices too.
  constexpr std::int64_t kMany = std::int64_t{1} << 21U;
  ExpectRefused(EmbeddingOp{std::int64_t{1} << 32U, 1024, 1}, 1, PointStatus::kOutOfMemory,
                "are free");
  ExpectRefused(BatchedProductOp{1, kMany, 1, kMany}, 1, PointStatus::kOutOfMemory, "are free");
  ExpectRefused(BatchedProductOp{1, 1, kMany, kMany}, 1, PointStatus::kOutOfMemory, "are free");
  ExpectRefused(ActivationOp{Function::kRelu, kMany, kMany}, 1, PointStatus::kOutOfMemory,
                "are free");
}

TEST(OneDnnBackendTest, RefusesWhatItHasNot) {
  const DenseOp dense{1, 16, 16, true, true};
  ExpectRefused(std::monostate(), 1, PointStatus::kUnsupported, "does not state");
  ExpectRefused(dense, 1, PointStatus::kUnsupported, "tf32", kBoth, Precision::kTf32);
  ExpectRefused(dense, 1, PointStatus::kUnsupported, "fp16", kBoth, Precision::kFp16);
  ExpectRefused(dense, 1, PointStatus::kUnsupported, "optimizer", kUpdate);
  ExpectRefused(UpdateOp{}, 1, PointStatus::kUnsupported, "neither", kBoth);
  ExpectRefused(dense, 0, PointStatus::kUnsupported, "not positive");
  for (const Operation& empty :
       {Operation(BatchedProductOp{2, 0, 3, 4}), Operation(BatchedProductOp{2, 3, 4, 0}),
        Operation(ActivationOp{Function::kRelu, 0, 8}),
        Operation(ActivationOp{Function::kSoftmax, 8, 0}), Operation(EmbeddingOp{0, 8, 8}),
        Operation(EmbeddingOp{8, 8, 0})}) {
    ExpectRefused(empty, 1, PointStatus::kUnsupported, "not positive");
  }
  ConvolutionOp bad = Convolution(16, 14, 32, 3);
  bad.groups = 5;
  ExpectRefused(bad, 1, PointStatus::kUnsupported, "groups");
  bad.groups = 0;
  ExpectRefused(bad, 1, PointStatus::kUnsupported, "not positive");
  bad = Convolution(16, 14, 32, 3);
  bad.stride = {0, 1};
  ExpectRefused(bad, 1, PointStatus::kUnsupported, "not positive");
  bad = Convolution(16, 2, 32, 5);
  bad.padding = {};
  ExpectRefused(bad, 1, PointStatus::kUnsupported, "larger than");
}

TEST(OneDnnBackendTest, ReferenceTakesAboutAMillisecond) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(1);
  double least = 1;
  for (int i = 0; i < 50 && (i < 5 || least >= 1e-2); ++i) {
    least = std::min(least, backend->RunReference().seconds);
  }
  EXPECT_GT(least, 1e-4);
  EXPECT_LT(least, 1e-2);
  const std::string reason = backend->ThrottleReason();
  EXPECT_TRUE(reason.empty() || reason == "too hot") << reason;
}

// Limits that hold on any machine: more work takes longer, and memory is slower than caches.
TEST(OneDnnBackendTest, TimesGrowWithTheWork) {
  const std::unique_ptr<Backend> backend = MakeOneDnnBackend(1);
  const auto time = [&](const Operation& operation, int batch, TrainingPass pass) {
    const Preparation prepared = backend->Prepare(operation, batch, Precision::kFp32, {pass});
    return prepared.trial == nullptr ? 0.0 : Median(prepared.trial.get(), pass, 9);
  };
  const Operation convolution = Convolution(32, 28, 32, 3);
  const double one = time(convolution, 1, TrainingPass::kForward);
  EXPECT_GT(one, 0);
  EXPECT_GT(time(convolution, 8, TrainingPass::kForward), 3 * one);
  EXPECT_GT(time(convolution, 4, TrainingPass::kBackward),
            time(convolution, 4, TrainingPass::kForward));
  // Of a sequence each position is a row of the product.
  EXPECT_GT(time(DenseOp{64, 256, 256, false, true}, 4, TrainingPass::kForward),
            4 * time(DenseOp{1, 256, 256, false, true}, 4, TrainingPass::kForward));
  EXPECT_GT(time(UpdateOp{Optimizer::kAdam, 500'000}, 1, TrainingPass::kUpdate),
            time(UpdateOp{Optimizer::kSgd, 500'000}, 1, TrainingPass::kUpdate));
}

}  // namespace
}  // namespace stepcast
