#include "model/step/recomputation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/record/blocks.h"
#include "data/units/quantity.h"
#include "model/compute/profiled_compute.h"
#include "model/compute/sheet_compute.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

FittedCurve<double> ExpectedCurve(const Workload& workload, const std::optional<Device>& device) {
  const WorkloadPriors priors = MakeWorkloadPriors(workload, device);
  return {Seconds(priors[kFixedTime].si), Seconds(priors[kFloorTime].si),
          DurationPerSample<>::FromSi(priors[kSampleTime].si)};
}

}  // namespace

Recomputation::Recomputation(const Workload& workload, const std::optional<Device>& device,
                             std::shared_ptr<const ProfiledCompute> profile) {
  const std::vector<bool> layers = RecomputedLayers(workload);
  if (std::find(layers.begin(), layers.end(), true) == layers.end()) return;
  if (profile) {
    profile_ = std::move(profile);
  } else if (HasSheetTime(workload, device)) {
    Workload once = workload;
    once.recompute = Recompute::kNone;
    curves_ = Curves{ExpectedCurve(workload, device), ExpectedCurve(once, device)};
  } else {
    by_flop_ = RecomputedShare(workload);
  }
}

Recomputing Recomputation::At(double batch) const {
  if (profile_) return {profile_->MicroStep(batch) / profile_->MicroStepOnce(batch) - 1, 0};
  if (!curves_) return {0, by_flop_};
  const SampleCount<> samples = Samples(batch);
  return {curves_->whole.Time(samples) / curves_->once.Time(samples) - 1, 0};
}

}  // namespace stepcast
