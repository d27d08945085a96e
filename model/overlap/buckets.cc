#include "model/overlap/buckets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "data/plan/bucket_words.h"
#include "data/record/blocks.h"
#include "data/record/input_error.h"

namespace stepcast {
namespace {

// More pieces than this change nothing that one could see.
constexpr double kMostEqualBuckets = 10'000;

std::vector<Bucket> EqualBuckets(DataSize<> total, DataSize<> cap) {
  const int count = static_cast<int>(std::clamp(std::ceil(total / cap), 1.0, kMostEqualBuckets));
  std::vector<Bucket> buckets;
  for (int k = 1; k <= count; ++k) {
    buckets.push_back({total / static_cast<double>(count), static_cast<double>(k) / count});
  }
  return buckets;
}

// Whether `middle` is at most a mixture of the two others in all that times multiply, but for
// rounding.
bool Between(const BucketLine& before, const BucketLine& middle, const BucketLine& after) {
  // Shares of `before` in the mixture: at least so much for the buckets and the bytes, and at most
  // so much for the moment.
  const double of_count = (middle.count - after.count) / (before.count - after.count);
  const double of_bytes = (middle.bytes - after.bytes) / (before.bytes - after.bytes);
  const double least = std::max(of_count, of_bytes);
  constexpr double kRounding = 1e-14;
  return least * (after.ready - before.ready) <= after.ready - middle.ready + kRounding;
}

// Rows of the matrices that a layer's weights are; 0 where it has none, nothing where nobody says.
std::optional<std::int64_t> RowsOf(const Layer& layer) {
  if (const auto* convolution = std::get_if<ConvolutionOp>(&layer.operation)) {
    return convolution->filters;
  }
  if (const auto* dense = std::get_if<DenseOp>(&layer.operation)) return dense->units;
  if (const auto* embedding = std::get_if<EmbeddingOp>(&layer.operation)) return embedding->rows;
  if (const auto* recurrent = std::get_if<RecurrentOp>(&layer.operation)) {
    return (recurrent->cell == RecurrentCell::kLstm ? 4 : 3) * recurrent->hidden;
  }
  if (std::holds_alternative<std::monostate>(layer.operation)) return std::nullopt;
  return 0;
}

// Whether a matrix is sent as its factors: where they are less than half of it.
bool IsFactored(double rows, double columns, double rank) {
  constexpr double kLeastGain = 2;
  return kLeastGain * rank * (rows + columns) < rows * columns;
}

}  // namespace

std::vector<BucketLine> MakeBucketLines(const std::vector<Bucket>& buckets) {
  std::vector<BucketLine> all;
  BucketLine line{0, 0, DataSize<>()};
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    line = {bucket->ready, line.count + 1, line.bytes + bucket->bytes};
    all.push_back(line);
  }
  std::vector<BucketLine> lines;
  for (auto next = all.rbegin(); next != all.rend(); ++next) {
    while (lines.size() > 1 && Between(lines[lines.size() - 2], lines.back(), *next)) {
      lines.pop_back();
    }
    lines.push_back(*next);
  }
  return lines;
}

void CheckBucketCap(const Workload& workload, DataSize<> cap) {
  constexpr double kMostBuckets = 100'000;
  if (!workload.layers.empty() || cap * kMostBuckets >= workload.gradient_bytes) return;
  if (cap == kBucketPerTensor.cap) {
    throw InputError({"", 0, "bucket"}, std::string(kBucketPerTensor.word),
                     "needs the tensors of the workload, which is known by its size only",
                     "a size, like \"25 MiB\", or a workload with layers");
  }
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.begin(), text.end(), cap.in(kBytes)).ptr;
  throw InputError({"", 0, "bucket"},
                   std::string(text.data(), static_cast<std::size_t>(end - text.data())) + " B",
                   "cuts the gradients into more than 100000 buckets", "a larger cap");
}

GradientOrder::GradientOrder(const Workload& workload) : total_(workload.gradient_bytes) {
  tensors_.reserve(static_cast<std::size_t>(workload.tensor_count()));
  Duration<> all_time;
  for (const Layer& layer : workload.layers) all_time += layer.backward_time;
  // Half the work of a layer's backward pass.
  const std::vector<bool> recomputed = RecomputedLayers(workload);
  const auto work_of = [&](std::size_t i) {
    constexpr double kRecomputed = 1.5;
    return workload.layers[i].forward_flop * (recomputed[i] ? kRecomputed : 1.0);
  };
  Work<> all_work;
  for (std::size_t i = 0; i < workload.layers.size(); ++i) all_work += work_of(i);
  const double bytes_per_parameter =
      workload.gradient_bytes.in(kBytes) / static_cast<double>(workload.trainable_parameters);
  Work<> done;
  Duration<> passed;
  DataSize<> sent;
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    done += work_of(static_cast<std::size_t>(workload.layers.rend() - layer) - 1);
    passed += layer->backward_time;
    const std::optional<std::int64_t> rows = RowsOf(*layer);
    if (!rows && !layer->tensors.empty()) unknown_ = layer->name;
    for (auto tensor = layer->tensors.rbegin(); tensor != layer->tensors.rend(); ++tensor) {
      const DataSize<> bytes = Bytes(bytes_per_parameter * static_cast<double>(*tensor));
      sent += bytes;
      // Without any work stated, gradients become ready with the bytes.
      const double share = all_time.si() > 0   ? passed / all_time
                           : all_work.si() > 0 ? done / all_work
                                               : sent / workload.gradient_bytes;
      const bool is_matrix = rows && *rows > 0 && *tensor % *rows == 0;
      const auto height = static_cast<double>(is_matrix ? *rows : *tensor);
      tensors_.push_back(
          {bytes, std::min(1.0, share), height, static_cast<double>(*tensor) / height});
    }
  }
}

template <class Close>
void GradientOrder::ForEachBucket(DataSize<> cap, const Close& close) const {
  Bucket open;
  // One message has no early start.
  DataSize<> full = cap < kOneMessage.cap ? Min(cap, kFirstBucket) : cap;
  auto first = tensors_.begin();
  for (auto tensor = tensors_.begin(); tensor != tensors_.end(); ++tensor) {
    open = {open.bytes + tensor->bytes, tensor->ready};
    if (open.bytes < full) continue;
    close(first, tensor + 1, open);
    open = {};
    full = cap;
    first = tensor + 1;
  }
  if (open.bytes.si() > 0) close(first, tensors_.end(), open);
}

std::vector<Bucket> GradientOrder::Cut(DataSize<> cap) const {
  if (tensors_.empty()) return EqualBuckets(total_, cap);
  std::vector<Bucket> buckets;
  ForEachBucket(cap, [&](auto, auto, const Bucket& bucket) { buckets.push_back(bucket); });
  return buckets;
}

std::vector<Bucket> GradientOrder::CutFactored(DataSize<> cap, double rank) const {
  if (tensors_.empty() || !unknown_.empty()) {
    throw InputError(
        {"", 0, "compress"}, "powersgd=" + std::to_string(std::lround(rank)),
        tensors_.empty()
            ? "needs the shapes of tensors, and the workload is known by its size only"
            : "needs the shapes of tensors, and layer " + unknown_ + " does not say its operation",
        "a workload whose layers with parameters say their operations");
  }
  std::vector<Bucket> messages;
  ForEachBucket(cap, [&](auto first, auto last, const Bucket& bucket) {
    DataSize<> whole;
    DataSize<> left;
    DataSize<> right;
    for (auto tensor = first; tensor != last; ++tensor) {
      if (IsFactored(tensor->rows, tensor->columns, rank)) {
        left += tensor->bytes * (rank / tensor->columns);
        right += tensor->bytes * (rank / tensor->rows);
      } else {
        whole += tensor->bytes;
      }
    }
    for (const DataSize<>& message : {whole, left, right}) {
      if (message.si() > 0) messages.push_back({message, bucket.ready});
    }
  });
  return messages;
}

std::vector<Bucket> GradientOrder::MessagesOf(const Plan& plan) const {
  const DataSize<> cap = BucketCap(plan, total_);
  return plan.compress.is_factored() ? CutFactored(cap, plan.compress.kept) : Cut(cap);
}

std::shared_ptr<const std::vector<Bucket>> BucketsOfPlans::Of(const Workload& workload,
                                                              const Plan& plan) {
  const DataSize<> cap = BucketCap(plan, workload.gradient_bytes);
  const double rank = plan.compress.is_factored() ? plan.compress.kept : 0;
  auto& buckets = buckets_[{cap.in(kBytes), rank}];
  if (!buckets) {
    buckets = std::make_shared<const std::vector<Bucket>>(GradientOrder(workload).MessagesOf(plan));
  }
  return buckets;
}

std::shared_ptr<const std::vector<Bucket>> Scaled(
    const std::shared_ptr<const std::vector<Bucket>>& buckets, double share) {
  if (share == 1) return buckets;
  std::vector<Bucket> scaled = *buckets;
  for (Bucket& bucket : scaled) bucket.bytes = bucket.bytes * share;
  return std::make_shared<const std::vector<Bucket>>(std::move(scaled));
}

}  // namespace stepcast
