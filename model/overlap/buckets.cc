#include "model/overlap/buckets.h"

#include <algorithm>

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

}  // namespace

std::vector<Bucket> MakeBuckets(const Workload& workload, DataSize<> cap) {
  if (workload.layers.empty()) return EqualBuckets(workload.gradient_bytes, cap);
  Duration<> all_time;
  for (const Layer& layer : workload.layers) all_time += layer.backward_time;
  const Work<> all_work = workload.forward_flop();
  const double bytes_per_parameter =
      workload.gradient_bytes.in(kBytes) / static_cast<double>(workload.trainable_parameters);
  std::vector<Bucket> buckets;
  Bucket open{DataSize<>(), 0};
  Work<> done;
  Duration<> passed;
  DataSize<> sent;
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    done += layer->forward_flop;
    passed += layer->backward_time;
    for (auto tensor = layer->tensors.rbegin(); tensor != layer->tensors.rend(); ++tensor) {
      const DataSize<> bytes = Bytes(bytes_per_parameter * static_cast<double>(*tensor));
      open.bytes += bytes;
      sent += bytes;
      // Without any work stated, gradients become ready with the bytes.
      const double share = all_time.si() > 0   ? passed / all_time
                           : all_work.si() > 0 ? done / all_work
                                               : sent / workload.gradient_bytes;
      open.ready = std::min(1.0, share);
      if (open.bytes >= (buckets.empty() ? Min(cap, kFirstBucket) : cap)) {
        buckets.push_back(open);
        open = {DataSize<>(), 0};
      }
    }
  }
  if (open.bytes.si() > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace stepcast
