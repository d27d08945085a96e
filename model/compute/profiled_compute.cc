#include "model/compute/profiled_compute.h"

#include <algorithm>
#include <cmath>

#include "data/record/input_error.h"
#include "model/numeric/p_norm.h"

namespace stepcast {
namespace {

constexpr double kBytesPerElement = 4;

// What the layer does, where no operation says so.
OperationCounts CountLayer(const Layer& layer, const DataSize<>& in, TrainingPass pass) {
  const auto parameters = static_cast<double>(layer.parameters());
  const double gradients = pass == TrainingPass::kBackward && parameters > 0 ? 2 : 1;
  return {gradients * layer.forward_flop.si(),
          gradients * (in + layer.activation_bytes).in(kBytes) / kBytesPerElement,
          gradients * parameters};
}

}  // namespace

ProfiledCompute::ProfiledCompute(const ComputeProfile& profile, const Workload& workload,
                                 Precision precision, Optimizer optimizer)
    : times_(profile, precision),
      workload_(workload),
      precision_(precision),
      optimizer_(optimizer),
      runs_ahead_(profile.device.kind == "gpu") {
  if (workload_.layers.empty()) {
    throw InputError({"", 0, "workload"}, workload_.name, "has no layers to look up in a profile",
                     "a workload with layers");
  }
  if (times_.batches().empty()) {
    throw InputError({"", 0, "precision"}, kPrecisionNames[static_cast<int>(precision)],
                     "was not measured on " + profile.device.name,
                     "a precision that the profile has");
  }
  Sum(times_.batches().back());
}

ProfiledSum ProfiledCompute::Sum(double batch) const {
  ProfiledSum sum;
  double variance = 0;
  double operations = 0;
  double updated_tensors = 0;
  bool gradients = false;
  DataSize<> in;
  for (const Layer& layer : workload_.layers) {
    gradients = gradients || !layer.tensors.empty();
    ProfiledLayer line;
    line.name = layer.name;
    const auto look_up = [&](TrainingPass pass) {
      std::optional<OperationTime> time =
          layer.operation.index() > 0
              ? times_.Find(layer.operation, pass, batch)
              : times_.Scale(layer.kind, CountLayer(layer, in, pass), pass, batch);
      if (time) return *time;
      const char* kind = kLayerKindNames[static_cast<std::size_t>(layer.kind)];
      throw InputError({"", 0, "profile"}, workload_.name + ": " + layer.name,
                       std::string("is a layer of a kind that was not measured, ") + kind,
                       "a profile of this workload, or of one with such a layer, at precision " +
                           std::string(kPrecisionNames[static_cast<int>(precision_)]));
    };
    const auto add = [&](const OperationTime& time, Duration<>* total) {
      *total += time.time;
      if (time.origin == TimeOrigin::kScaled) sum.scaled += time.time;
      if (time.origin == TimeOrigin::kBeyondBatches) sum.beyond += time.time;
      variance += std::pow(time.time.si() * time.log_sd, 2);
      sum.flagged = sum.flagged || time.flagged;
      operations += 1;
    };
    line.forward = look_up(TrainingPass::kForward);
    add(line.forward, &sum.forward);
    if (gradients) {
      line.backward = look_up(TrainingPass::kBackward);
      add(line.backward, &sum.backward);
    }
    sum.out_of_memory = sum.out_of_memory || times_.OutOfMemory(layer.operation, batch);
    if (const std::int64_t parameters = layer.parameters(); parameters > 0) {
      const UpdateOp update{optimizer_, parameters};
      const std::optional<OperationTime> time = times_.Find(update, TrainingPass::kUpdate, 1);
      if (!time) {
        throw InputError({"", 0, "optimizer"}, kOptimizerNames[static_cast<int>(optimizer_)],
                         "has no update in the profile", "an optimizer that was measured");
      }
      line.update = *time;
      sum.update += time->time;
      sum.flagged = sum.flagged || time->flagged;
      updated_tensors += static_cast<double>(layer.tensors.size());
    }
    in = layer.activation_bytes;
    sum.layers.push_back(std::move(line));
  }
  sum.host = kHostOverhead * operations;
  sum.host_update = kUpdateHostOverhead * updated_tensors;
  const Duration<> device = sum.forward + sum.backward;
  if (device.si() > 0) sum.log_sd = std::sqrt(variance) / device.si();
  return sum;
}

Duration<> ProfiledCompute::Join(const Duration<>& host, const Duration<>& device) const {
  return runs_ahead_ ? PNorm(host, device, FittedCurve<double>::kKneeSharpness) : host + device;
}

Duration<> ProfiledCompute::MicroStep(double batch) const {
  const ProfiledSum sum = Sum(batch);
  return Join(sum.host, sum.forward + sum.backward);
}

Duration<> ProfiledCompute::Update() const {
  const ProfiledSum sum = Sum(times_.batches().front());
  // Frameworks update all tensors on a GPU by a few kernels; there the host has nothing to add.
  return runs_ahead_ ? sum.update : sum.update + sum.host_update;
}

double ProfiledCompute::LogSd(double batch) const {
  return std::hypot(Sum(batch).log_sd, kProfiledLogSd);
}

double ProfiledCompute::ExtraLogSd(double batch) const {
  const double here = LogSd(batch);
  const double there = LogSd(times_.batches().back());
  return std::sqrt(std::max(0.0, here * here - there * there));
}

FittedCurve<double> ProfiledCompute::Curve() const {
  const double batch = times_.batches().back();
  const ProfiledSum sum = Sum(batch);
  FittedCurve<double> curve;
  // The step model wants three positive parts; what does not apply is far below what does.
  constexpr Duration<> kNothing = Microseconds(2.0);
  curve.fixed = runs_ahead_ ? kNothing : sum.host;
  curve.floor = runs_ahead_ ? sum.host : kNothing;
  curve.per_sample = (sum.forward + sum.backward) / Samples(batch);
  return curve;
}

double ProfiledCompute::ShapeAt(double batch) const {
  return MicroStep(batch) / Curve().Time(Samples(batch));
}

std::vector<double> ProfiledCompute::BackwardSeconds(double batch) const {
  std::vector<double> seconds;
  for (const ProfiledLayer& layer : Sum(batch).layers) seconds.push_back(layer.backward.time.si());
  return seconds;
}

}  // namespace stepcast
