// How a workload is spread over a cluster: the question that a prediction answers.
#ifndef STEPCAST_DATA_RECORD_PLAN_H_
#define STEPCAST_DATA_RECORD_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/record/link.h"
#include "data/record/strategy.h"
#include "data/units/quantity.h"

namespace stepcast {

// How a model is spread over parameter servers: whole tensors, the largest first to the server with
// the fewest bytes; equal shares that cut tensors; or variables in turn, whatever their size, as
// TensorFlow does by default.
enum class Sharding { kTensor, kEven, kRoundRobin };
inline constexpr int kShardingCount = 3;
inline constexpr const char* kShardingNames[kShardingCount] = {"tensor", "even", "round-robin"};

// What the workers share out among themselves instead of each keeping the whole: the optimizer's
// state (ZeRO-1), the gradients too (ZeRO-2), or the parameters as well (ZeRO-3, FSDP); these among
// all workers, or among the devices of each node alone, so that each node has the whole model
// (FSDP's HYBRID_SHARD).
enum class Shard { kNone, kOptimizer, kGradients, kParameters, kHybrid };
inline constexpr int kShardCount = 5;
inline constexpr const char* kShardNames[kShardCount] = {"none", "optimizer", "gradients",
                                                         "parameters", "hybrid"};

// Whether parameters are gathered, unit by unit, for each pass.
inline constexpr bool GathersUnits(Shard shard) { return shard >= Shard::kParameters; }
// What a worker keeps a share of in memory: gradients that add up over micro-steps are whole until
// their one exchange, so that of ZeRO-2 what ZeRO-1 shares out is left.
inline constexpr Shard ShardInMemory(Shard shard, int accumulation_steps) {
  return shard == Shard::kGradients && accumulation_steps > 1 ? Shard::kOptimizer : shard;
}
// What a plan on so many nodes shares out: on one node all are who share within nodes.
inline constexpr Shard ShardOnNodes(Shard shard, int nodes) {
  return shard == Shard::kHybrid && nodes <= 1 ? Shard::kParameters : shard;
}
// Whether each part of the model is with one worker alone, where there are several.
inline constexpr bool HasNoReplica(Shard shard) {
  return shard != Shard::kNone && shard != Shard::kHybrid;
}
// Workers that share one model out among themselves, on nodes with so many devices each.
inline int SharersOf(Shard shard, int workers, int devices_per_node) {
  if (shard == Shard::kNone) return 1;
  return shard == Shard::kHybrid ? devices_per_node : workers;
}

// What gradients are made of while they are exchanged: half as many bytes of each (fp16, bf16), a
// quarter with a scale of the bucket (int8), only a share of them, the largest, with their places
// (topk), or two narrow factors of each matrix (powersgd).
enum class Compressor { kNone, kFp16, kBf16, kInt8, kTopK, kPowerSgd };
inline constexpr int kCompressorCount = 6;
inline constexpr const char* kCompressorNames[kCompressorCount] = {"none", "fp16", "bf16",
                                                                   "int8", "topk", "powersgd"};

struct Compression {
  Compressor method = Compressor::kNone;
  // topk: share of the gradients that a worker sends; powersgd: rank of what it sends of a matrix.
  double kept = 0;

  bool exists() const { return method != Compressor::kNone; }
  // Who sends a part of its gradients keeps the rest for the next step (error feedback).
  bool leaves_a_rest() const { return is_gathered() || is_factored(); }
  // Whether what workers send cannot be added up on the way, so that each sends it to all.
  bool is_gathered() const { return method == Compressor::kTopK; }
  // Whether each bucket is exchanged as the factors of its matrices, whose bytes depend on the
  // shapes of the workload's tensors (model/overlap/buckets.h).
  bool is_factored() const { return method == Compressor::kPowerSgd; }
  // Bytes that a worker sends, as a share of those of its buckets in float32. Of topk an index of
  // four bytes goes with each value of four.
  double share() const {
    switch (method) {
      case Compressor::kNone:
      case Compressor::kPowerSgd:
        break;
      case Compressor::kFp16:
      case Compressor::kBf16:
        return 0.5;
      case Compressor::kInt8:
        return 0.25;
      case Compressor::kTopK:
        return 2 * kept;
    }
    return 1;
  }
  bool operator==(const Compression&) const = default;
};

// How synchronisation and the backward pass go together: bucket by bucket as gradients become
// ready, one after the other, or as the p-norm of the two.
enum class Overlap { kBuckets, kNone, kPNorm };
inline constexpr int kOverlapCount = 3;
inline constexpr const char* kOverlapNames[kOverlapCount] = {"buckets", "none", "p-norm"};

inline constexpr double kBytesPerFloat = 4;  // float32

// Devices used on each node, one entry a node in use: "4-4-2" is {4, 4, 2}.
using Placement = std::vector<int>;

inline int Workers(const Placement& p) { return std::accumulate(p.begin(), p.end(), 0); }
inline int Nodes(const Placement& p) { return static_cast<int>(p.size()); }
inline int DevicesOnFullestNode(const Placement& p) {
  return p.empty() ? 0 : *std::max_element(p.begin(), p.end());
}
inline bool AreNodesEqual(const Placement& p) {
  return std::all_of(p.begin(), p.end(), [&](int devices) { return devices == p.front(); });
}
// Nodes are filled one after another: 10 workers on nodes of 4 are 4-4-2.
inline Placement FillNodes(int workers, int devices_per_node) {
  Placement placement;
  for (int left = workers; left > 0; left -= devices_per_node) {
    placement.push_back(std::min(left, devices_per_node));
  }
  return placement;
}

// How parameter servers work, where a plan has them.
struct ServerOptions {
  // On the workers' nodes in turn, from the first, instead of nodes of their own.
  bool colocated = false;
  Sharding sharding = Sharding::kTensor;
  // Whether a bucket is pulled as soon as it has been pushed; otherwise pulls wait for all pushes.
  bool pipelined = false;
  bool multicast = false;               // the network copies what a server distributes
  bool in_network_aggregation = false;  // the network adds up what workers push
  // The devices of a node add up their gradients before one push for all of them, and share what it
  // pulls, instead of each exchanging for itself.
  bool local_aggregation = false;
  // ps-async: a worker waits that is more than this many steps ahead of the slowest (stale
  // synchronous parallel); without it nobody waits.
  std::optional<int> staleness_bound;

  // Whether the devices of a lone node add up among themselves for the servers beside them, so that
  // no byte leaves the node.
  bool AddsUpAtHome(int nodes) const { return local_aggregation && colocated && nodes == 1; }
  // Whether so many servers, or helpers, have links of their own: nodes that no worker is on.
  bool HasOwnLink(int servers) const { return servers > 0 && !colocated; }
};

struct Plan {
  Placement placement = {1};
  int servers = 0;
  Strategy strategy = Strategy::kAllreduce;
  int local_batch = 1;               // samples of one micro-step on one device
  int accumulation_steps = 1;        // micro-steps from one synchronisation to the next
  LinkFacts link;                    // replaces the cluster's node-to-node link where known
  LinkFacts server_link;             // replaces the cluster's server link where known
  std::optional<DataSize<>> bucket;  // cap of a gradient bucket
  std::vector<std::string> hosts;    // by node, in placement order; empty when not named
  ServerOptions server;
  Overlap overlap = Overlap::kBuckets;
  int backup_workers = 0;  // a synchronous step does not wait for its slowest so many
  // Nodes, the last ones, whose devices compute more slowly than others, and their speed as a share
  // of that of devices which do not. A synchronous step waits for the slowest of all.
  int slow_nodes = 0;
  std::optional<double> slow_speed;
  // Samples of one micro-step on each of those devices; without it as many as on the others.
  std::optional<int> slow_local_batch;
  // Bytes of each parameter that one synchronisation exchanges; 4 where gradients are float32. The
  // sizes of buckets stay those of float32, which libraries cut before they convert.
  int bytes_per_parameter = 4;
  Shard shard = Shard::kNone;
  // Steps from one synchronisation to the next: each worker goes on by itself for so many, and then
  // all take the mean of their parameters (local SGD).
  int local_steps = 1;
  // What storage and loaders deliver to each node; without it samples are always there in time.
  std::optional<SampleRate<>> input_rate;
  Compression compress;
  // Gradients in float32 that a device encodes and decodes again in a second; without it, as much
  // as its memory moves.
  std::optional<DataRate<>> compress_rate;

  // What a worker has to exchange in a synchronisation, as a share of its buckets in float32.
  double exchanged_share() const { return bytes_per_parameter / kBytesPerFloat * compress.share(); }
  // The hosts, where they are named, whose compute is as it was measured: all but the slow nodes'.
  std::span<const std::string> hosts_at_own_speed() const {
    const auto stated = static_cast<std::size_t>(std::max(0, slow_nodes));
    return std::span(hosts).first(hosts.size() - std::min(hosts.size(), stated));
  }
  int workers() const { return Workers(placement); }
  int nodes() const { return Nodes(placement); }
  Shard shard_on_nodes() const { return ShardOnNodes(shard, nodes()); }
  // Devices of the slow nodes.
  int slow_workers() const {
    const int slow = std::clamp(slow_nodes, 0, nodes());
    return std::accumulate(placement.end() - slow, placement.end(), 0);
  }
  bool has_server_link() const { return server.HasOwnLink(servers); }
  // Samples of one micro-step on the devices that take the fewest, and the most.
  int smallest_batch() const {
    return std::min(local_batch, slow_local_batch.value_or(local_batch));
  }
  int largest_batch() const {
    return std::max(local_batch, slow_local_batch.value_or(local_batch));
  }
  // Samples of one micro-step on all workers.
  long long micro_batch() const {
    const long long equal = 1LL * local_batch * workers();
    if (!slow_local_batch) return equal;
    return equal + (1LL * *slow_local_batch - local_batch) * slow_workers();
  }
  double global_batch() const { return static_cast<double>(micro_batch()) * accumulation_steps; }
};

// Samples of one step that count: the gradients of backup workers come too late and are dropped.
inline SampleCount<> CountedSamples(const Plan& plan) {
  return Samples(plan.global_batch() * (1 - 1.0 * plan.backup_workers / plan.workers()));
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_PLAN_H_
