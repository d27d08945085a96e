#include "model/compute/operation_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/record/point_samples.h"

namespace stepcast {
namespace {

// A median is never known better than what two sessions on one machine differ by.
constexpr double kLeastLogSd = 0.01;
// Where a single sample or two leave the error unknown.
constexpr double kUnknownLogSd = 0.2;
// Between batches another algorithm may be chosen.
constexpr double kBetweenLogSd = 0.03;

int Index(TrainingPass pass) { return static_cast<int>(pass); }

}  // namespace

LayerKind KindOf(const Operation& operation) {
  struct Visitor {
    LayerKind operator()(const std::monostate&) const { return LayerKind::kReshape; }
    LayerKind operator()(const ConvolutionOp& o) const {
      return o.groups > 1 && o.groups == o.channels ? LayerKind::kDepthwiseConvolution
                                                    : LayerKind::kConvolution;
    }
    LayerKind operator()(const DenseOp&) const { return LayerKind::kDense; }
    LayerKind operator()(const BatchedProductOp&) const { return LayerKind::kAttention; }
    LayerKind operator()(const NormalizationOp&) const { return LayerKind::kNormalization; }
    LayerKind operator()(const ActivationOp&) const { return LayerKind::kActivation; }
    LayerKind operator()(const PoolingOp&) const { return LayerKind::kPooling; }
    LayerKind operator()(const ElementwiseOp&) const { return LayerKind::kElementwise; }
    LayerKind operator()(const EmbeddingOp&) const { return LayerKind::kEmbedding; }
    LayerKind operator()(const RecurrentOp&) const { return LayerKind::kRecurrent; }
    LayerKind operator()(const CopyOp&) const { return LayerKind::kReshape; }
    LayerKind operator()(const UpdateOp&) const { return LayerKind::kElementwise; }
    LayerKind operator()(const AllocateOp&) const { return LayerKind::kReshape; }
  };
  return std::visit(Visitor(), operation);
}

OperationTimes::OperationTimes(const ComputeProfile& profile, Precision precision) {
  std::map<MeasuredPoint, PointSamples> points;
  const auto updates = [](const MeasuredSamples& samples) {
    return samples.point.pass == TrainingPass::kUpdate;
  };
  // Parameters are updated in 32 bits, but where the job keeps them as its layers compute.
  const bool kept = std::any_of(profile.samples.begin(), profile.samples.end(),
                                [&](const MeasuredSamples& samples) {
                                  return updates(samples) && samples.point.precision == precision;
                                });
  for (const MeasuredSamples& samples : profile.samples) {
    // Memory has no precision.
    const bool always =
        (updates(samples) && !kept) || std::holds_alternative<AllocateOp>(samples.point.operation);
    if (samples.point.precision != (always ? Precision::kFp32 : precision)) continue;
    points[samples.point].Add(samples);
  }
  for (const auto& [point, samples] : points) {
    if (const auto* allocated = std::get_if<AllocateOp>(&point.operation)) {
      // In the order of their sizes: the largest counts.
      if (samples.measured()) {
        allocation_ = Seconds(samples.summary().median) /
                      Bytes(kBytesPerElement * static_cast<double>(allocated->elements));
      }
      continue;
    }
    if (samples.status() == PointStatus::kOutOfMemory) {
      out_of_memory_.emplace_back(point.operation, point.batch);
    }
    if (!samples.measured()) continue;
    Curve& curve = curves_[Index(point.pass)][point.operation];
    curve.pass = point.pass;
    curve.counts = CountOperation(point.operation, point.pass);
    const Summary& summary = samples.summary();
    const double sd =
        std::isfinite(summary.relative_error) ? summary.relative_error : kUnknownLogSd;
    const double batch = point.batch;
    curve.at.push_back(
        {batch, summary.median, std::max(kLeastLogSd, sd), samples.busy() || samples.throttled()});
    if (point.pass == TrainingPass::kUpdate) continue;
    if (std::find(batches_.begin(), batches_.end(), batch) == batches_.end()) {
      batches_.push_back(batch);
    }
  }
  std::sort(batches_.begin(), batches_.end());
  for (int pass = 0; pass < kTrainingPassCount; ++pass) {
    for (auto& [operation, curve] : curves_[pass]) {
      std::sort(curve.at.begin(), curve.at.end(),
                [](const AtBatch& a, const AtBatch& b) { return a.batch < b.batch; });
      for (const AtBatch& at : curve.at) {
        Peaks& peaks = peaks_[pass];
        const OperationCounts& n = curve.counts;
        peaks.flop_per_s = std::max(peaks.flop_per_s, n.flop_per_sample * at.batch / at.seconds);
        peaks.elements_per_s = std::max(
            peaks.elements_per_s, (n.elements_per_sample * at.batch + n.elements) / at.seconds);
      }
      Pool(&curve.at);
    }
  }
}

// Pools of adjacent batches whose times fall: each takes the weighted mean of its logarithms.
void OperationTimes::Pool(std::vector<AtBatch>* at) {
  struct Level {
    std::size_t first = 0;
    double weight = 0;
    double mean = 0;
  };
  std::vector<Level> levels;
  for (std::size_t i = 0; i < at->size(); ++i) {
    const double weight = 1 / ((*at)[i].log_sd * (*at)[i].log_sd);
    levels.push_back({i, weight, std::log((*at)[i].seconds)});
    while (levels.size() > 1 && levels[levels.size() - 2].mean > levels.back().mean) {
      const Level last = levels.back();
      levels.pop_back();
      Level& into = levels.back();
      into.mean = (into.mean * into.weight + last.mean * last.weight) / (into.weight + last.weight);
      into.weight += last.weight;
    }
  }
  for (std::size_t k = 0; k < levels.size(); ++k) {
    const std::size_t end = k + 1 < levels.size() ? levels[k + 1].first : at->size();
    for (std::size_t i = levels[k].first; i < end; ++i) (*at)[i].seconds = std::exp(levels[k].mean);
  }
}

OperationTime OperationTimes::On(const Curve& curve, double batch) const {
  const std::vector<AtBatch>& at = curve.at;
  if (curve.pass == TrainingPass::kUpdate) batch = 1;
  const auto answer = [&](double seconds, double own, double shared, TimeOrigin origin,
                          bool flagged) {
    const bool scaled = curve.relative != nullptr;
    if (scaled) shared = std::hypot(shared, kScaledLogSd);
    return OperationTime{Seconds(seconds),
                         std::hypot(own, shared),
                         shared,
                         scaled ? TimeOrigin::kScaled : origin,
                         scaled ? curve.relative : "",
                         flagged};
  };
  const auto above = std::lower_bound(at.begin(), at.end(), batch,
                                      [](const AtBatch& a, double b) { return a.batch < b; });
  if (above != at.end() && above->batch == batch) {
    return answer(above->seconds, above->log_sd, 0, TimeOrigin::kMeasured, above->flagged);
  }
  const auto line = [&](const AtBatch& a, const AtBatch& b) {
    return a.seconds + (b.seconds - a.seconds) * (batch - a.batch) / (b.batch - a.batch);
  };
  if (above == at.begin() || above == at.end()) {
    const bool below = above == at.begin();
    const AtBatch& edge = below ? at.front() : at.back();
    const double shared =
        (at.size() > 1 ? kBeyondLogSd : kBeyondOneLogSd) * std::abs(std::log2(batch / edge.batch));
    double seconds = 0;
    if (at.size() > 1) {
      seconds = below ? line(at[0], at[1]) : line(at[at.size() - 2], at.back());
    } else {
      seconds = edge.seconds * Roof(curve.counts, curve.pass, batch) /
                Roof(curve.counts, curve.pass, edge.batch);
    }
    seconds = below ? std::clamp(seconds, edge.seconds * batch / edge.batch, edge.seconds)
                    : std::max(seconds, edge.seconds);
    return answer(seconds, edge.log_sd, shared, TimeOrigin::kBeyondBatches, edge.flagged);
  }
  const AtBatch& a = *(above - 1);
  const AtBatch& b = *above;
  return answer(line(a, b), std::max(a.log_sd, b.log_sd), kBetweenLogSd,
                TimeOrigin::kBetweenBatches, a.flagged || b.flagged);
}

double OperationTimes::Roof(const OperationCounts& counts, TrainingPass pass, double batch) const {
  const Peaks& peaks = peaks_[Index(pass)];
  const double flop = counts.flop_per_sample * batch;
  const double elements = counts.elements_per_sample * batch + counts.elements;
  return std::max(peaks.flop_per_s > 0 ? flop / peaks.flop_per_s : 0,
                  peaks.elements_per_s > 0 ? elements / peaks.elements_per_s : 0);
}

std::optional<OperationTimes::Curve> OperationTimes::ResolveScaled(LayerKind kind,
                                                                   const OperationCounts& counts,
                                                                   TrainingPass pass,
                                                                   const UpdateOp* update) const {
  // One batch decides who is the relative, or times would jump where another one gets nearer.
  const double common = pass == TrainingPass::kUpdate || batches_.empty() ? 1 : batches_.back();
  const double roof = Roof(counts, pass, common);
  if (!(roof > 0)) return std::nullopt;
  const auto intensity = [&](const OperationCounts& n) {
    return std::log((n.flop_per_sample * common + 1) /
                    (n.elements_per_sample * common + n.elements + 1));
  };
  // Rates depend on the intensity first, and on the size less and less.
  constexpr double kSizeWeight = 0.3;
  const Curve* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [operation, curve] : curves_[Index(pass)]) {
    if (KindOf(operation) != kind || std::holds_alternative<AllocateOp>(operation)) continue;
    // Another optimizer runs other kernels.
    const auto* known = std::get_if<UpdateOp>(&operation);
    if (update != nullptr && (known == nullptr || known->optimizer != update->optimizer)) continue;
    const double other = Roof(curve.counts, pass, common);
    if (!(other > 0)) continue;
    const double distance = std::abs(intensity(curve.counts) - intensity(counts)) +
                            kSizeWeight * std::abs(std::log(roof / other));
    if (distance < least) {
      least = distance;
      nearest = &curve;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  // At the batches of the relative, and lines between them as for any other.
  Curve scaled{pass, counts, nearest->at, kLayerKindNames[static_cast<std::size_t>(kind)]};
  for (AtBatch& at : scaled.at) {
    at.seconds *= Roof(counts, pass, at.batch) / Roof(nearest->counts, pass, at.batch);
  }
  Pool(&scaled.at);
  return scaled;
}

std::optional<OperationTimes::Curve> OperationTimes::Resolve(const Operation& operation,
                                                             TrainingPass pass) const {
  const auto known = curves_[Index(pass)].find(operation);
  if (known != curves_[Index(pass)].end()) return known->second;
  const OperationCounts counts = CountOperation(operation, pass);
  const std::optional<Curve> scaled =
      ResolveScaled(KindOf(operation), counts, pass, std::get_if<UpdateOp>(&operation));
  // Traces of operators have no copies of most trainings; one passes the memory as a sum does.
  if (scaled || !std::holds_alternative<CopyOp>(operation)) return scaled;
  return ResolveScaled(LayerKind::kElementwise, counts, pass);
}

bool OperationTimes::OutOfMemory(const Operation& operation, double batch) const {
  return std::any_of(out_of_memory_.begin(), out_of_memory_.end(), [&](const auto& known) {
    return known.first == operation && known.second <= batch;
  });
}

}  // namespace stepcast
