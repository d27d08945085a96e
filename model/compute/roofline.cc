#include "model/compute/roofline.h"

#include "model/compute/fitted_curve.h"

namespace stepcast {

bool HasRoofline(const Workload& workload, const std::optional<Device>& device) {
  return !workload.layers.empty() && workload.forward_flop().si() > 0 && device && device->fp32 &&
         device->memory_bandwidth;
}

RooflineTime EvaluateRoofline(const Workload& workload, const Device& device, double batch) {
  constexpr double kOptimizerStates = 1;
  RooflineTime time;
  DataSize<> in;
  for (const Layer& layer : workload.layers) {
    double parameters = 0;
    for (const std::int64_t tensor : layer.tensors) parameters += static_cast<double>(tensor);
    const Duration<> compute = layer.forward_flop * batch / *device.fp32;
    const DataSize<> activations = (in + layer.activation_bytes) * batch;
    const DataSize<> weights = Bytes(4 * parameters);
    const Duration<> forward = Max(compute, (activations + weights) / *device.memory_bandwidth);
    const bool two_gradients = parameters > 0;
    time.forward += forward;
    time.backward +=
        two_gradients
            ? Max(compute * 2.0, (activations * 2.0 + weights * 2.0) / *device.memory_bandwidth)
            : forward;
    time.update += weights * (3 + 2 * kOptimizerStates) / *device.memory_bandwidth;
    time.launches += kKernelLaunch * (two_gradients ? 4.0 : 2.0);
    in = layer.activation_bytes;
  }
  return time;
}

FittedCurve<double> RooflineCurve(const Workload& workload, const Device& device) {
  constexpr double kLargeBatch = 256;
  const RooflineTime one = EvaluateRoofline(workload, device, 1);
  const RooflineTime large = EvaluateRoofline(workload, device, kLargeBatch);
  const RooflineTime half = EvaluateRoofline(workload, device, kLargeBatch / 2);
  FittedCurve<double> curve;
  curve.fixed = one.launches;
  curve.floor = (one.forward + one.backward) / kKernelEfficiency;
  curve.per_sample = (large.forward + large.backward - half.forward - half.backward) /
                     Samples(kLargeBatch / 2) / kKernelEfficiency;
  return curve;
}

}  // namespace stepcast
