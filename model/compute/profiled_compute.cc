#include "model/compute/profiled_compute.h"

#include <algorithm>
#include <cmath>

#include "data/record/input_error.h"
#include "model/numeric/p_norm.h"

namespace stepcast {
namespace {

constexpr double kBytesPerElement = 4;
constexpr const char* kOneDnnBackend = "onednn";

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
      runs_ahead_(profile.device.kind == "gpu"),
      host_overhead_(profile.backend == kOneDnnBackend ? kOneDnnHostOverhead : kHostOverhead) {
  if (workload_.layers.empty()) {
    throw InputError({"", 0, "workload"}, workload_.name, "has no layers to look up in a profile",
                     "a workload with layers");
  }
  if (times_.batches().empty()) {
    throw InputError({"", 0, "precision"}, kPrecisionNames[static_cast<int>(precision)],
                     "was not measured on " + profile.device.name,
                     "a precision that the profile has");
  }
  written_ = workload_.activation_bytes() * 2.0;
  gradients_ = Bytes(kBytesPerElement * static_cast<double>(workload_.trainable_parameters));
  bool gradients = false;
  DataSize<> in;
  for (const Layer& layer : workload_.layers) {
    gradients = gradients || !layer.tensors.empty();
    Parts parts;
    const auto look_up = [&](TrainingPass pass) {
      operations_ += 1;
      std::optional<OperationTimes::Curve> curve =
          layer.operation.index() > 0
              ? times_.Resolve(layer.operation, pass)
              : times_.ResolveScaled(layer.kind, CountLayer(layer, in, pass), pass);
      if (curve) return curve;
      const char* kind = kLayerKindNames[static_cast<std::size_t>(layer.kind)];
      throw InputError({"", 0, "profile"}, workload_.name + ": " + layer.name,
                       std::string("is a layer of a kind that was not measured, ") + kind,
                       "a profile of this workload, or of one with such a layer, at precision " +
                           std::string(kPrecisionNames[static_cast<int>(precision_)]));
    };
    parts.forward = look_up(TrainingPass::kForward);
    if (gradients) parts.backward = look_up(TrainingPass::kBackward);
    if (const std::int64_t parameters = layer.parameters(); parameters > 0) {
      parts.update = times_.Resolve(UpdateOp{optimizer_, parameters}, TrainingPass::kUpdate);
      if (!parts.update) {
        throw InputError({"", 0, "optimizer"}, kOptimizerNames[static_cast<int>(optimizer_)],
                         "has no update in the profile", "an optimizer that was measured");
      }
      updated_tensors_ += static_cast<double>(layer.tensors.size());
    }
    in = layer.activation_bytes;
    parts_.push_back(std::move(parts));
  }
  at_largest_ = OnDevice(times_.batches().back());
}

ProfiledCompute::Device ProfiledCompute::OnDevice(double batch) const {
  Device device;
  double variance = 0;
  for (const Parts& parts : parts_) {
    for (const auto* curve : {&parts.forward, &parts.backward}) {
      if (!*curve) continue;
      const OperationTime time = times_.On(**curve, batch);
      device.time += time.time;
      variance += std::pow(time.time.si() * time.log_sd, 2);
    }
  }
  if (device.time.si() > 0) device.log_sd = std::sqrt(variance) / device.time.si();
  device.time += Allocation(batch);
  return device;
}

Duration<> ProfiledCompute::Allocation(double batch) const {
  const DataSize<> remapped = gradients_ + written_ * (kRemappedShare * batch) - kKeptMemory;
  return times_.allocation() * Max(remapped, DataSize<>());
}

ProfiledSum ProfiledCompute::Sum(double batch) const {
  ProfiledSum sum;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Layer& layer = workload_.layers[i];
    ProfiledLayer line;
    line.name = layer.name;
    const auto add = [&](const std::optional<OperationTimes::Curve>& curve, OperationTime* time,
                         Duration<>* total) {
      if (!curve) return;
      *time = times_.On(*curve, batch);
      *total += time->time;
      sum.flagged = sum.flagged || time->flagged;
      if (curve->pass == TrainingPass::kUpdate) return;
      if (time->origin == TimeOrigin::kScaled) sum.scaled += time->time;
      if (time->origin == TimeOrigin::kBeyondBatches) sum.beyond += time->time;
    };
    add(parts_[i].forward, &line.forward, &sum.forward);
    add(parts_[i].backward, &line.backward, &sum.backward);
    add(parts_[i].update, &line.update, &sum.update);
    sum.out_of_memory = sum.out_of_memory || times_.OutOfMemory(layer.operation, batch);
    sum.layers.push_back(std::move(line));
  }
  sum.host = Host();
  sum.allocation = Allocation(batch);
  sum.host_update = kUpdateHostOverhead * updated_tensors_;
  sum.log_sd = OnDevice(batch).log_sd;
  return sum;
}

Duration<> ProfiledCompute::Join(const Duration<>& host, const Duration<>& device) const {
  return runs_ahead_ ? PNorm(host, device, FittedCurve<double>::kKneeSharpness) : host + device;
}

Duration<> ProfiledCompute::MicroStep(double batch) const {
  return Join(Host(), OnDevice(batch).time);
}

Duration<> ProfiledCompute::Update() const {
  const ProfiledSum sum = Sum(times_.batches().front());
  // Frameworks update all tensors on a GPU by a few kernels; there the host has nothing to add.
  return runs_ahead_ ? sum.update : sum.update + sum.host_update;
}

double ProfiledCompute::LogSd(double batch) const {
  return std::hypot(OnDevice(batch).log_sd, kProfiledLogSd);
}

double ProfiledCompute::ExtraLogSd(double batch) const {
  const double here = LogSd(batch);
  const double there = LogSd(times_.batches().back());
  return std::sqrt(std::max(0.0, here * here - there * there));
}

FittedCurve<double> ProfiledCompute::Curve() const {
  const double batch = times_.batches().back();
  const Duration<> host = Host();
  FittedCurve<double> curve;
  // The step model wants three positive parts; what does not apply is far below what does.
  constexpr Duration<> kNothing = Microseconds(2.0);
  curve.fixed = runs_ahead_ ? kNothing : host;
  curve.floor = runs_ahead_ ? host : kNothing;
  curve.per_sample = at_largest_.time / Samples(batch);
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
