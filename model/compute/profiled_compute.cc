#include "model/compute/profiled_compute.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "data/record/blocks.h"
#include "data/record/input_error.h"
#include "model/numeric/p_norm.h"

namespace stepcast {
namespace {

// Work of a layer whose operation is not stated.
OperationCounts CountLayer(const Layer& layer, const DataSize<>& in, TrainingPass pass) {
  const auto parameters = static_cast<double>(layer.parameters());
  const double gradients = pass == TrainingPass::kBackward && parameters > 0 ? 2 : 1;
  return {gradients * layer.forward_flop.si(),
          gradients * (in + layer.activation_bytes).in(kBytes) / kBytesPerElement,
          gradients * parameters};
}

// "fp32, bf16": those at which layers were measured.
std::string PrecisionsOf(const ComputeProfile& profile) {
  std::string names;
  for (int i = 0; i < kPrecisionCount; ++i) {
    const bool known = std::any_of(
        profile.samples.begin(), profile.samples.end(), [&](const MeasuredSamples& samples) {
          return samples.point.pass == TrainingPass::kForward &&
                 samples.point.precision == static_cast<Precision>(i) &&
                 samples.status == PointStatus::kMeasured &&
                 !std::holds_alternative<AllocateOp>(samples.point.operation);
        });
    if (known) names += (names.empty() ? "" : ", ") + std::string(kPrecisionNames[i]);
  }
  return names.empty() ? "a profile with layers" : names;
}

// Of what errs by itself, beside what is shared.
double OwnVariance(const OperationTime& time) {
  return std::max(0.0, time.log_sd * time.log_sd - time.shared_log_sd * time.shared_log_sd);
}

// Two passes of a layer, one behind the other. What is not shared errs in each by itself.
OperationTime Together(const OperationTime& first, const OperationTime& second) {
  const bool first_is_worse = first.origin > second.origin;
  OperationTime both = first_is_worse ? first : second;
  both.time = first.time + second.time;
  both.flagged = first.flagged || second.flagged;
  if (both.time.si() == 0) return both;
  double variance = 0;
  both.shared_log_sd = 0;
  for (const OperationTime* one : {&first, &second}) {
    const double share = one->time / both.time;
    variance += share * share * OwnVariance(*one);
    both.shared_log_sd += share * one->shared_log_sd;
  }
  both.log_sd = std::hypot(std::sqrt(variance), both.shared_log_sd);
  return both;
}

bool RunsAhead(const ComputeProfile& profile) { return profile.device.kind == "gpu"; }

}  // namespace

Duration<> HostOverhead(const ComputeProfile& profile) {
  if (RunsAhead(profile)) return kGpuHostOverhead;
  return profile.backend == kOneDnnBackend ? kOneDnnHostOverhead : kCpuHostOverhead;
}

ProfiledCompute::ProfiledCompute(const ComputeProfile& profile, const Workload& workload)
    : times_(profile, workload.precision),
      workload_(workload),
      device_(profile.device.name),
      carried_from_(profile.carried_from),
      runs_ahead_(RunsAhead(profile)),
      host_overhead_(HostOverhead(profile)) {
  if (workload_.layers.empty()) {
    throw InputError({"", 0, "workload"}, workload_.name, "has no layers to look up in a profile",
                     "a workload with layers");
  }
  if (times_.batches().empty()) {
    throw InputError({"", 0, "precision"}, kPrecisionNames[static_cast<int>(workload_.precision)],
                     "was not measured on " + profile.device.name, PrecisionsOf(profile));
  }
  gradients_ = Bytes(kBytesPerElement * static_cast<double>(workload_.trainable_parameters));
  bool gradients = false;
  DataSize<> in;
  const std::vector<bool> recomputed = RecomputedLayers(workload_);
  for (const LayerAsRun& run : LayersAsRun(workload_)) {
    const Layer& layer = workload_.layers[run.index];
    gradients = gradients || !layer.tensors.empty();
    Parts parts;
    parts.run = run;
    parts.recomputed = gradients && recomputed[run.index];
    written_ += layer.activation_bytes * (parts.recomputed ? 3.0 : 2.0);
    operations_ += parts.recomputed ? 1 : 0;
    if (parts.recomputed) {
      operations_again_ += 1;
      written_again_ += layer.activation_bytes;
    }
    const auto look_up = [&](TrainingPass pass) {
      operations_ += 1;
      std::optional<OperationTimes::Curve> curve;
      if (run.fused) {
        curve = times_.ResolveScaled(layer.kind, CountAttention(*run.fused, pass), pass);
      } else if (layer.operation.index() > 0) {
        curve = times_.Resolve(layer.operation, pass);
      } else {
        curve = times_.ResolveScaled(layer.kind, CountLayer(layer, in, pass), pass);
      }
      if (curve) return curve;
      const char* kind = kLayerKindNames[static_cast<std::size_t>(layer.kind)];
      throw InputError({"", 0, "profile"}, workload_.name + ": " + layer.name,
                       std::string("is a layer of a kind whose ") +
                           kTrainingPassNames[static_cast<int>(pass)] + " pass was not measured, " +
                           kind,
                       "a profile of this workload, or of one with such a layer, at precision " +
                           std::string(kPrecisionNames[static_cast<int>(workload_.precision)]));
    };
    parts.forward = look_up(TrainingPass::kForward);
    if (gradients) parts.backward = look_up(TrainingPass::kBackward);
    if (layer.parameters() > 0) {
      if (!runs_ahead_) parts.update = ResolveUpdate(layer.parameters());
      updated_tensors_ += static_cast<double>(layer.tensors.size());
    }
    in = layer.activation_bytes;
    parts_.push_back(std::move(parts));
  }
  if (runs_ahead_ && workload_.trainable_parameters > 0) {
    update_at_once_ = ResolveUpdate(workload_.trainable_parameters);
  }
  batches_ = OwnBatches();
  at_largest_ = OnDevice(batches_.back());
  curve_ = FitCurve();
}

// Batches at which at least half as many of its layers were measured as at the best of them.
std::vector<double> ProfiledCompute::OwnBatches() const {
  std::map<double, int> layers;
  int most = 0;
  for (const Parts& parts : parts_) {
    if (!parts.forward || parts.forward->relative != nullptr) continue;
    for (const OperationTimes::AtBatch& at : parts.forward->at) {
      most = std::max(most, ++layers[at.batch]);
    }
  }
  std::vector<double> batches;
  for (const auto& [batch, count] : layers) {
    if (2 * count >= most) batches.push_back(batch);
  }
  return batches.empty() ? times_.batches() : batches;
}

OperationTimes::Curve ProfiledCompute::ResolveUpdate(std::int64_t parameters) const {
  const std::optional<OperationTimes::Curve> curve =
      times_.Resolve(UpdateOp{workload_.optimizer, parameters}, TrainingPass::kUpdate);
  if (curve) return *curve;
  throw InputError({"", 0, "optimizer"}, kOptimizerNames[static_cast<int>(workload_.optimizer)],
                   "has no update in the profile", "an optimizer that was measured");
}

ProfiledCompute::Device ProfiledCompute::OnDevice(double batch, bool once) const {
  Device device;
  // Samples err by themselves; a line or a relative errs for all layers alike.
  double variance = 0;
  double shared = 0;
  const auto add = [&](const std::optional<OperationTimes::Curve>& curve, int passes) {
    if (!curve) return;
    const OperationTime time = times_.On(*curve, batch);
    const Duration<> all = time.time * static_cast<double>(passes);
    device.time += all;
    variance += all.si() * all.si() * OwnVariance(time);
    shared += all.si() * time.shared_log_sd;
  };
  for (const Parts& parts : parts_) {
    add(parts.forward, parts.recomputed && !once ? 2 : 1);
    add(parts.backward, 1);
  }
  if (device.time.si() > 0) {
    device.log_sd = std::hypot(std::sqrt(variance), shared) / device.time.si();
  }
  device.time += Allocation(batch, once);
  return device;
}

Duration<> ProfiledCompute::Allocation(double batch, bool once) const {
  const DataSize<> written = once ? written_ - written_again_ : written_;
  const DataSize<> remapped = gradients_ + written * (kRemappedShare * batch) - kKeptMemory;
  return times_.allocation() * Max(remapped, DataSize<>());
}

ProfiledSum ProfiledCompute::Sum(double batch) const {
  ProfiledSum sum;
  for (const Parts& parts : parts_) {
    const Layer& layer = workload_.layers[parts.run.index];
    ProfiledLayer line;
    line.name = layer.name + (parts.run.fused ? " (fused)" : "");
    line.kind = layer.kind;
    const auto add = [&](const std::optional<OperationTimes::Curve>& curve, Duration<>* total) {
      if (!curve) return OperationTime();
      const OperationTime time = times_.On(*curve, batch);
      *total += time.time;
      sum.flagged = sum.flagged || time.flagged;
      if (curve->pass == TrainingPass::kUpdate) return time;
      if (time.origin == TimeOrigin::kScaled) sum.scaled += time.time;
      if (time.origin == TimeOrigin::kBeyondBatches) sum.beyond += time.time;
      return time;
    };
    line.forward = add(parts.forward, &sum.forward);
    line.backward = add(parts.backward, &sum.backward);
    if (parts.recomputed) {
      line.backward = Together(add(parts.forward, &sum.backward), line.backward);
    }
    line.update = add(parts.update, &sum.update);
    sum.out_of_memory =
        sum.out_of_memory || (!parts.run.fused && times_.OutOfMemory(layer.operation, batch));
    sum.layers.push_back(std::move(line));
  }
  if (update_at_once_) {
    const OperationTime time = times_.On(*update_at_once_, 1);
    sum.update = time.time;
    sum.flagged = sum.flagged || time.flagged;
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

Duration<> ProfiledCompute::MicroStepOnce(double batch) const {
  return Join(host_overhead_ * (operations_ - operations_again_), OnDevice(batch, true).time);
}

Duration<> ProfiledCompute::Update() const {
  const ProfiledSum sum = Sum(batches_.front());
  // All tensors on a GPU are updated by a few kernels; there the host has nothing to add.
  return runs_ahead_ ? sum.update : sum.update + sum.host_update;
}

double ProfiledCompute::WithTheRest(double log_sd) const {
  return std::hypot(log_sd, kProfiledLogSd, carried_from_.empty() ? 0.0 : kCarriedLogSd);
}

double ProfiledCompute::LogSd(double batch) const { return WithTheRest(OnDevice(batch).log_sd); }

double ProfiledCompute::ExtraLogSd(double batch) const {
  const double here = LogSd(batch);
  const double there = WithTheRest(at_largest_.log_sd);
  return std::sqrt(std::max(0.0, here * here - there * there));
}

FittedCurve<double> ProfiledCompute::FitCurve() const {
  std::vector<double> seconds;
  for (const double batch : batches_) seconds.push_back(OnDevice(batch).time.si());
  return runs_ahead_ ? CurveThrough(batches_, seconds, Duration<>(), Host())
                     : CurveThrough(batches_, seconds, Host(), Duration<>());
}

double ProfiledCompute::CurveMisfit() const {
  double squares = 0;
  for (const double batch : batches_) squares += std::pow(std::log(ShapeAt(batch)), 2);
  return std::sqrt(squares / static_cast<double>(batches_.size()));
}

double ProfiledCompute::ShapeAt(double batch) const {
  return MicroStep(batch) / curve_.Time(Samples(batch));
}

std::vector<double> ProfiledCompute::BackwardSeconds(double batch) const {
  const ProfiledSum sum = Sum(batch);
  std::vector<double> seconds(workload_.layers.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    seconds[parts_[i].run.index] = sum.layers[i].backward.time.si();
  }
  return seconds;
}

}  // namespace stepcast
