#include "model/exchange/sharding.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace stepcast {

TensorShards::TensorShards(const Workload& workload, Sharding sharding)
    : sharding_(sharding),
      bytes_per_parameter_(workload.gradient_bytes.in(kBytes) /
                           static_cast<double>(workload.trainable_parameters)) {
  std::size_t turn = 0;
  std::size_t statistics = 0;
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const Layer& layer = workload.layers[i];
    for (const std::int64_t parameters : layer.tensors) {
      if (parameters > 0) by_size_.push_back(tensors_.size());
      tensors_.push_back({parameters, i, turn++});
      total_ += parameters;
    }
    // The two moving statistics of a normalisation take their turns as well.
    if (layer.statistics > 0) {
      turn += 2;
      statistics += 2;
    }
  }
  std::stable_sort(by_size_.begin(), by_size_.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].parameters > tensors_[b].parameters;
  });
  variables_ = by_size_.size() + (sharding_ == Sharding::kRoundRobin ? statistics : 0);
}

TensorShards::Dealt TensorShards::Deal(int servers) const {
  Dealt dealt;
  if (sharding_ == Sharding::kEven || by_size_.empty()) return dealt;
  const std::size_t count = std::min(variables_, static_cast<std::size_t>(std::max(1, servers)));
  dealt.server_of.resize(tensors_.size());
  dealt.load.resize(count);
  if (sharding_ == Sharding::kRoundRobin) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      dealt.server_of[i] = tensors_[i].turn % count;
      dealt.load[dealt.server_of[i]] += tensors_[i].parameters;
    }
    return dealt;
  }
  // The largest tensor first, each to the emptiest server.
  using Load = std::pair<std::int64_t, std::size_t>;
  std::vector<Load> empty(count);
  for (std::size_t server = 0; server < count; ++server) empty[server] = {0, server};
  std::priority_queue<Load, std::vector<Load>, std::greater<>> emptiest(std::greater<>(),
                                                                        std::move(empty));
  for (const std::size_t i : by_size_) {
    const std::size_t server = emptiest.top().second;
    emptiest.pop();
    dealt.server_of[i] = server;
    dealt.load[server] += tensors_[i].parameters;
    emptiest.emplace(dealt.load[server], server);
  }
  return dealt;
}

TensorShards::Fullest TensorShards::FullestOf(int servers) const {
  return FullestOf(Deal(servers), servers);
}

TensorShards::Fullest TensorShards::FullestOf(const Dealt& dealt, int servers) const {
  Fullest shard;
  if (dealt.load.empty()) {
    shard.share = 1.0 / std::max(1, servers);
    shard.tensors = std::max<double>(1, static_cast<double>(by_size_.size()));
    return shard;
  }
  const auto fullest = std::max_element(dealt.load.begin(), dealt.load.end());
  const auto holds = [&](std::size_t i) {
    return dealt.server_of[i] == static_cast<std::size_t>(fullest - dealt.load.begin());
  };
  const Tensor& largest = tensors_[*std::find_if(by_size_.begin(), by_size_.end(), holds)];
  shard.share = static_cast<double>(*fullest) / static_cast<double>(total_);
  shard.layer = largest.layer;
  shard.one_tensor = largest.parameters * servers > total_;
  shard.tensors = static_cast<double>(std::count_if(by_size_.begin(), by_size_.end(), holds));
  return shard;
}

std::vector<std::size_t> TensorShards::BucketsOfTensors(const std::vector<Bucket>& buckets) const {
  // MakeBuckets adds up the same numbers in the same order.
  std::vector<std::size_t> bucket_of(tensors_.size());
  std::size_t bucket = 0;
  double filled = 0;
  for (std::size_t i = tensors_.size(); i-- > 0;) {
    bucket_of[i] = bucket;
    filled += BytesOf(tensors_[i]);
    if (bucket + 1 < buckets.size() && filled >= buckets[bucket].bytes.in(kBytes)) {
      filled = 0;
      ++bucket;
    }
  }
  return bucket_of;
}

std::vector<TensorShards::Part> TensorShards::Parts(int servers,
                                                    const std::vector<Bucket>& buckets) const {
  const Dealt dealt = Deal(servers);
  std::vector<Part> parts;
  if (dealt.load.empty()) {
    const auto count = static_cast<std::size_t>(std::max(1, servers));
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      for (std::size_t server = 0; server < count; ++server) {
        parts.push_back({k, server, buckets[k].bytes / static_cast<double>(count)});
      }
    }
    return parts;
  }
  const std::vector<std::size_t> bucket_of = BucketsOfTensors(buckets);
  std::map<std::pair<std::size_t, std::size_t>, double> bytes;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].parameters == 0) continue;
    bytes[{bucket_of[i], dealt.server_of[i]}] += BytesOf(tensors_[i]);
  }
  for (const auto& [at, held] : bytes) parts.push_back({at.first, at.second, Bytes(held)});
  return parts;
}

std::vector<Bucket> TensorShards::LastBuckets(const Dealt& dealt, int servers,
                                              std::vector<Bucket> buckets) const {
  if (dealt.load.empty()) {
    for (Bucket& bucket : buckets) {
      bucket.bytes = bucket.bytes / std::max(1.0, static_cast<double>(servers));
    }
    return buckets;
  }
  const std::vector<std::size_t> bucket_of = BucketsOfTensors(buckets);
  // From the last bucket on, the most that one server has of it and all later ones.
  std::vector<double> later(dealt.load.size(), 0);
  std::vector<double> growth(buckets.size(), 0);
  double most = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const double mine = later[dealt.server_of[i]] += BytesOf(tensors_[i]);
    growth[bucket_of[i]] += std::max(0.0, mine - most);
    most = std::max(most, mine);
  }
  std::vector<Bucket> kept;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    if (growth[k] > 0) kept.push_back({Bytes(growth[k]), buckets[k].ready});
  }
  return kept;
}

TensorShards::Held TensorShards::HeldOf(int servers, const std::vector<Bucket>* buckets) const {
  const Dealt dealt = Deal(servers);
  Held held;
  held.share = FullestOf(dealt, servers).share;
  if (buckets != nullptr) {
    held.buckets =
        std::make_shared<const std::vector<Bucket>>(LastBuckets(dealt, servers, *buckets));
  }
  return held;
}

TensorShards::Held ShardsOfPlans::Of(
    const Workload& workload, const Plan& plan,
    const std::shared_ptr<const std::vector<Bucket>>& buckets) const {
  const Sharding sharding = plan.server.sharding;
  std::shared_ptr<const TensorShards> tensors;
  {
    const std::lock_guard lock(mutex_);
    if (servers_ == plan.servers && sharding_ == sharding && buckets_ == buckets) return held_;
    tensors = tensors_[sharding];
    if (!tensors) {
      tensors = tensors_[sharding] = std::make_shared<const TensorShards>(workload, sharding);
    }
  }
  TensorShards::Held held = tensors->HeldOf(plan.servers, buckets.get());
  const std::lock_guard lock(mutex_);
  sharding_ = sharding;
  servers_ = plan.servers;
  buckets_ = buckets;
  held_ = held;
  return held;
}

LargestShard LargestShare(const Workload& workload, int servers, Sharding sharding) {
  const TensorShards::Fullest fullest = TensorShards(workload, sharding).FullestOf(servers);
  LargestShard shard{fullest.share, "", fullest.one_tensor, fullest.tensors};
  if (fullest.layer) shard.layer = workload.layers[*fullest.layer].name;
  return shard;
}

}  // namespace stepcast
