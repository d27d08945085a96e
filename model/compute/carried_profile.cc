#include "model/compute/carried_profile.h"

#include <utility>
#include <variant>

#include "model/compute/operation_curve.h"

namespace stepcast {

bool CanCarryOver(const ComputeProfile& profile, const Device& from, const Device& to) {
  return profile.device.kind == "gpu" && from.multiprocessors && to.multiprocessors &&
         SheetOf(from, Precision::kFp32) && SheetOf(to, Precision::kFp32);
}

ComputeProfile CarryOver(const ComputeProfile& profile, const Device& from, const Device& to) {
  ComputeProfile carried = profile;
  carried.device.name = to.name;
  carried.device.facts.clear();
  carried.carried_from = from.name;
  carried.samples.clear();
  for (const MeasuredSamples& known : profile.samples) {
    const MeasuredPoint& point = known.point;
    if (known.status != PointStatus::kMeasured ||
        std::holds_alternative<AllocateOp>(point.operation)) {
      continue;
    }
    const auto expected = [&](const Device& device) {
      const DeviceSheet sheet = SheetOf(device, point.precision).value();
      return OperationCurve<double>(sheet, LearntCurve(), 0.0)
          .Time(point.operation, point.pass, point.batch);
    };
    const double there = expected(from);
    if (!(there > 0)) continue;  // no such pass
    MeasuredSamples samples = known;
    const double ratio = expected(to) / there;
    for (double& seconds : samples.seconds) seconds *= ratio;
    samples.reference_s = 0;
    carried.samples.push_back(std::move(samples));
  }
  return carried;
}

}  // namespace stepcast
