#include "model/exchange/sharding.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

namespace stepcast {
namespace {

struct Tensor {
  std::int64_t parameters;
  std::size_t layer;
  std::size_t place;  // in its layer
};

std::vector<Tensor> AllTensors(const Workload& workload) {
  std::vector<Tensor> all;
  for (std::size_t layer = 0; layer < workload.layers.size(); ++layer) {
    const std::vector<std::int64_t>& tensors = workload.layers[layer].tensors;
    for (std::size_t place = 0; place < tensors.size(); ++place) {
      if (tensors[place] > 0) all.push_back({tensors[place], layer, place});
    }
  }
  return all;
}

std::int64_t Sum(const std::vector<Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.parameters;
  return sum;
}

using Servers = std::vector<std::vector<Tensor>>;

// The largest tensor first, each to the emptiest server.
void DealBySize(std::vector<Tensor> tensors, Servers* held) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const Tensor& a, const Tensor& b) { return a.parameters > b.parameters; });
  using Load = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> emptiest;
  for (std::size_t server = 0; server < held->size(); ++server) emptiest.emplace(0, server);
  for (const Tensor& tensor : tensors) {
    const auto [load, server] = emptiest.top();
    emptiest.pop();
    (*held)[server].push_back(tensor);
    emptiest.emplace(load + tensor.parameters, server);
  }
}

// In the order in which they are made; the two moving statistics of a normalisation take their
// turns as well.
void DealInTurn(const Workload& workload, Servers* held) {
  std::size_t turn = 0;
  for (std::size_t layer = 0; layer < workload.layers.size(); ++layer) {
    const std::vector<std::int64_t>& tensors = workload.layers[layer].tensors;
    for (std::size_t place = 0; place < tensors.size(); ++place) {
      (*held)[turn++ % held->size()].push_back({tensors[place], layer, place});
    }
    if (workload.layers[layer].statistics > 0) turn += 2;
  }
}

// The tensors of each server; nothing where shares are even.
Servers Deal(const Workload& workload, int servers, Sharding sharding) {
  const std::vector<Tensor> all = AllTensors(workload);
  if (sharding == Sharding::kEven || all.empty()) return {};
  std::size_t variables = all.size();
  if (sharding == Sharding::kRoundRobin) {
    for (const Layer& layer : workload.layers) variables += layer.statistics > 0 ? 2 : 0;
  }
  // More servers than variables stay empty.
  Servers held(std::min(variables, static_cast<std::size_t>(std::max(1, servers))));
  if (sharding == Sharding::kTensor) {
    DealBySize(all, &held);
  } else {
    DealInTurn(workload, &held);
  }
  return held;
}

// The tensors of the fullest server, the largest first; empty where shares are even.
std::vector<Tensor> OnFullestServer(const Workload& workload, int servers, Sharding sharding) {
  Servers held = Deal(workload, servers, sharding);
  if (held.empty()) return {};
  std::vector<Tensor>& fullest = *std::max_element(
      held.begin(), held.end(), [](const auto& a, const auto& b) { return Sum(a) < Sum(b); });
  std::stable_sort(fullest.begin(), fullest.end(),
                   [](const Tensor& a, const Tensor& b) { return a.parameters > b.parameters; });
  return fullest;
}

}  // namespace

LargestShard LargestShare(const Workload& workload, int servers, Sharding sharding) {
  const std::vector<Tensor> held = OnFullestServer(workload, servers, sharding);
  LargestShard shard;
  if (held.empty()) {
    shard.share = 1.0 / std::max(1, servers);
    shard.tensors = std::max<double>(1, static_cast<double>(AllTensors(workload).size()));
    return shard;
  }
  const std::int64_t total = Sum(AllTensors(workload));
  shard.share = static_cast<double>(Sum(held)) / static_cast<double>(total);
  shard.layer = workload.layers[held.front().layer].name;
  shard.one_tensor = held.front().parameters * servers > total;
  shard.tensors = static_cast<double>(held.size());
  return shard;
}

std::vector<Bucket> LastServerBuckets(const Workload& workload, int servers, Sharding sharding,
                                      DataSize<> cap) {
  const Servers held = Deal(workload, servers, sharding);
  std::vector<Bucket> buckets = MakeBuckets(workload, cap);
  if (held.empty()) {
    for (Bucket& bucket : buckets)
      bucket.bytes = bucket.bytes / std::max(1.0, static_cast<double>(servers));
    return buckets;
  }
  std::vector<std::vector<std::size_t>> server_of(workload.layers.size());
  for (std::size_t i = 0; i < server_of.size(); ++i) {
    server_of[i].resize(workload.layers[i].tensors.size());
  }
  for (std::size_t server = 0; server < held.size(); ++server) {
    for (const Tensor& tensor : held[server]) server_of[tensor.layer][tensor.place] = server;
  }
  // Walk the tensors as the buckets were filled.
  struct Part {
    std::size_t bucket;
    std::size_t server;
    double bytes;
  };
  std::vector<Part> parts;
  const double bytes_per_parameter =
      workload.gradient_bytes.in(kBytes) / static_cast<double>(workload.trainable_parameters);
  std::size_t bucket = 0;
  double filled = 0;
  for (std::size_t layer = workload.layers.size(); layer-- > 0;) {
    const std::vector<std::int64_t>& tensors = workload.layers[layer].tensors;
    for (std::size_t place = tensors.size(); place-- > 0;) {
      const double bytes = bytes_per_parameter * static_cast<double>(tensors[place]);
      parts.push_back({bucket, server_of[layer][place], bytes});
      filled += bytes;
      // MakeBuckets adds up the same numbers in the same order.
      if (bucket + 1 < buckets.size() && filled >= buckets[bucket].bytes.in(kBytes)) {
        filled = 0;
        ++bucket;
      }
    }
  }
  // From the last bucket on, the most that one server has of it and all later ones.
  std::vector<double> later(held.size(), 0);
  std::vector<double> growth(buckets.size(), 0);
  double most = 0;
  for (std::size_t i = parts.size(); i-- > 0;) {
    const Part& part = parts[i];
    const double mine = later[part.server] += part.bytes;
    growth[part.bucket] += std::max(0.0, mine - most);
    most = std::max(most, mine);
  }
  std::vector<Bucket> kept;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    if (growth[k] > 0) kept.push_back({Bytes(growth[k]), buckets[k].ready});
  }
  return kept;
}

}  // namespace stepcast
