#include "microbench/harness/ceilings.h"

#include <algorithm>

#include "data/record/operation_counts.h"
#include "microbench/harness/sampling.h"

namespace stepcast {
namespace {

void Add(Backend* backend, const Operation& operation, int batch, Precision precision,
         double amount, const char* name, std::vector<MeasuredRate>* rates) {
  const Preparation prepared =
      backend->Prepare(operation, batch, precision, {TrainingPass::kForward});
  if (prepared.status != PointStatus::kMeasured) return;
  StoppingRule rule;
  rule.most = 100;
  const SampledTimes samples =
      SampleUntilStable([&] { return prepared.trial->Run(TrainingPass::kForward).seconds; }, rule);
  rates->push_back(
      {name, amount / samples.summary.median, samples.summary.relative_error, samples.stable});
}

}  // namespace

std::vector<MeasuredRate> MeasureCeilings(Backend* backend) {
  std::vector<MeasuredRate> rates = backend->MeasureCeilings();
  if (!rates.empty()) return rates;
  constexpr int kSide = 1024;
  constexpr std::int64_t kCopied = std::int64_t{32} << 20;
  const DenseOp product{1, kSide, kSide, false, true};
  for (int i = 0; i < kMeasuredPrecisionCount; ++i) {
    const double flop =
        CountOperation(product, TrainingPass::kForward).flop_per_sample * double{kSide};
    Add(backend, product, kSide, static_cast<Precision>(i), flop, kPrecisionNames[i], &rates);
  }
  Add(backend, CopyOp{kCopied}, 1, Precision::kFp32, 2 * kBytesPerElement * double{kCopied}, "copy",
      &rates);
  return rates;
}

}  // namespace stepcast
