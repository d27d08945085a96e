#include "model/compute/sheet_compute.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "data/record/blocks.h"
#include "model/compute/operation_curve.h"
#include "model/compute/profiled_compute.h"

namespace stepcast {
namespace {

constexpr double kCurveBatches[] = {1, 4, 16, 64, 256};

// Whether a layer multiplies two things that both have a gradient.
bool HasTwoGradients(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
    case LayerKind::kDepthwiseConvolution:
    case LayerKind::kDense:
    case LayerKind::kRecurrent:
    case LayerKind::kAttention:
      return true;
    case LayerKind::kEmbedding:
    case LayerKind::kNormalization:
    case LayerKind::kActivation:
    case LayerKind::kPooling:
    case LayerKind::kElementwise:
    case LayerKind::kReshape:
      return false;
  }
  return false;
}

}  // namespace

bool HasSheetTime(const Workload& workload, const std::optional<Device>& device) {
  return !workload.layers.empty() && workload.forward_flop().si() > 0 && device &&
         SheetOf(*device, Precision::kFp32);
}

SheetCompute::SheetCompute(const Workload& workload, const Device& device)
    : workload_(workload),
      layers_(LayersAsRun(workload)),
      recomputed_(RecomputedLayers(workload)),
      sheet_(SheetOf(device, workload.precision).value()) {}

SheetCompute::Layers SheetCompute::Evaluate(double batch) const {
  const OperationCurve<double> curve(sheet_, LearntCurve(), 0.0);
  // Networks repeat their layers.
  std::map<Operation, std::pair<double, double>> known;
  Layers layers;
  bool gradients = false;
  DataSize<> in;
  for (const LayerAsRun& run : layers_) {
    const Layer& layer = workload_.layers[run.index];
    gradients = gradients || !layer.tensors.empty();
    std::pair<double, double> times;
    if (run.fused) {
      times = {curve.Time(*run.fused, TrainingPass::kForward, batch),
               curve.Time(*run.fused, TrainingPass::kBackward, batch)};
    } else if (layer.operation.index() > 0) {
      const auto [it, is_new] = known.try_emplace(layer.operation);
      if (is_new) {
        it->second = {curve.Time(layer.operation, TrainingPass::kForward, batch),
                      curve.Time(layer.operation, TrainingPass::kBackward, batch)};
      }
      times = it->second;
    } else {
      const double flop = layer.forward_flop.si() * batch;
      const double share = sheet_.element_bytes / kBytesPerElement;
      const double bytes = share * ((in + layer.activation_bytes).in(kBytes)*batch +
                                    kBytesPerElement * static_cast<double>(layer.parameters()));
      const bool dense = layer.kind == LayerKind::kDense;
      times.first = times.second =
          dense ? curve.CountedDense(flop, bytes) : curve.Counted(flop, bytes);
      if (HasTwoGradients(layer.kind)) times.second *= 2;
    }
    const double again = recomputed_[run.index] ? times.first : 0;
    layers.forward.push_back(times.first);
    layers.backward.push_back(gradients ? times.second + again : 0);
    in = layer.activation_bytes;
  }
  return layers;
}

SheetTime SheetCompute::At(double batch) const {
  const Layers layers = Evaluate(batch);
  const auto sum = [](const std::vector<double>& seconds) {
    return Seconds(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  };
  SheetTime time;
  time.forward = sum(layers.forward);
  time.backward = sum(layers.backward);
  const OperationCurve<double> curve(sheet_, LearntCurve(), 0.0);
  const UpdateOp update{workload_.optimizer, workload_.trainable_parameters};
  time.update = Seconds(curve.Time(update, TrainingPass::kUpdate, 1));
  double passes = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    passes += 1;
    if (layers.backward[i] > 0) passes += recomputed_[layers_[i].index] ? 2 : 1;
  }
  time.host = kGpuHostOverhead * passes;
  return time;
}

FittedCurve<double> SheetCompute::Curve() const {
  std::vector<double> batches(std::begin(kCurveBatches), std::end(kCurveBatches));
  std::vector<double> seconds;
  Duration<> host;
  for (const double batch : batches) {
    const SheetTime time = At(batch);
    seconds.push_back((time.forward + time.backward).si());
    host = time.host;
  }
  return CurveThrough(batches, seconds, Duration<>(), host);
}

Duration<> SheetCompute::LeastOfASample() const {
  if (!HasSixteenBits(workload_.precision) || !sheet_.matrix_units) return {};
  double flop = 0;
  bool gradients = false;
  for (std::size_t i = 0; i < workload_.layers.size(); ++i) {
    const Layer& layer = workload_.layers[i];
    const bool passes_back = std::exchange(gradients, gradients || !layer.tensors.empty());
    if (layer.kind != LayerKind::kDense) continue;
    const double passes =
        1 + (gradients ? 1 : 0) + (passes_back ? 1 : 0) + (recomputed_[i] ? 1 : 0);
    flop += passes * layer.forward_flop.si();
  }
  return Seconds(flop / std::max(sheet_.flop_per_s, sheet_.narrow_flop_per_s));
}

std::vector<double> SheetCompute::BackwardSeconds(double batch) const {
  const std::vector<double> as_run = Evaluate(batch).backward;
  std::vector<double> seconds(workload_.layers.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) seconds[layers_[i].index] = as_run[i];
  return seconds;
}

}  // namespace stepcast
