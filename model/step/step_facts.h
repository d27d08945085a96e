// A plan as the formulas of a step see it.
#ifndef STEPCAST_MODEL_STEP_STEP_FACTS_H_
#define STEPCAST_MODEL_STEP_STEP_FACTS_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "data/record/link.h"
#include "data/record/link_path.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/compression.h"
#include "model/network/congestion.h"
#include "model/network/oversubscription.h"
#include "model/numeric/count_log2.h"
#include "model/numeric/dual.h"
#include "model/overlap/input.h"
#include "model/step/recomputation.h"

namespace stepcast {

// Where packets are lost, what a step exchanges is good to this (standard deviation of ln): rings
// and servers of a shaped network, 0.1 to 1 % of loss, lie 5 % off in the median and up to 25 %,
// and repeats of one differ by 8 to 20 %.
inline constexpr double kLossScatter = 0.12;

struct Bucket;
struct Cluster;
struct Workload;
struct WorkloadCounts;

// Everything about a plan that is counted rather than fitted, resolved once.
struct StepFacts {
  int workers = 1;
  int nodes = 1;
  int devices_per_node = 1;  // in use, on the fullest node
  int nics = 1;              // of a node
  int servers = 0;
  int accumulation_steps = 1;
  double batch = 1;
  Strategy strategy = Strategy::kAllreduce;
  Overlap overlap = Overlap::kBuckets;
  int backup_workers = 0;
  std::optional<double> slow_speed;  // of nodes that compute more slowly, where there are any
  int slow_workers = 0;              // on those
  // What those take of a micro-step where it is not `batch`, and what `recomputing` and
  // `compute_shape` are there.
  struct SlowShare {
    double batch = 1;
    Recomputing recomputing = {};
    double compute_shape = 1;
  };
  std::optional<SlowShare> slow_share;
  Shard shard = Shard::kNone;
  int local_steps = 1;
  std::optional<SampleRate<>> input_rate;  // of a node, where it is stated
  Compression compress;
  DataSize<> dense_gradient;  // in float32; `gradient` is what a worker has to exchange
  // Of compressed gradients: those in float32 that are encoded and decoded in a second, as stated,
  // or the memory bandwidth of the device.
  std::optional<DataRate<>> coding_rate;
  DataRate<> memory_bandwidth;
  bool has_compute = true;
  Recomputing recomputing;  // at this batch
  // The profile's interpolation at this batch as a multiple of the curve of the parameters.
  double compute_shape = 1;
  DataSize<> gradient;
  double tensors = 1;
  ServerOptions server;
  double server_share = 1;                                  // of the model, on the fullest server
  std::shared_ptr<const std::vector<Bucket>> buckets;       // shared by the plans of a workload
  std::shared_ptr<const std::vector<Bucket>> held_buckets;  // ps-sync: those of the fullest server
  // Links as stated: a stated bandwidth replaces the fitted one.
  LinkFacts link;
  LinkFacts server_link;
  // Whether the cluster file states the rate of its links, by which the uplinks of an
  // oversubscribed core are known whatever the link of one host carries.
  bool uplinks_known = false;
  Duration<> device_rtt;  // between devices of one node, where the cluster file states it
};

// The plan on the cluster, with the buckets of its gradients in float32. Loss where no round trip
// is stated meets the latency of the link alone, which is a parameter. Throws InputError for a bare
// message that nobody exchanges: a step of no time at all; and for compressed gradients where
// neither the plan nor `memory_bandwidth`, the device's, tells how long coding takes. `counts` are
// the workload's, made here where nobody keeps them for its next plan.
StepFacts MakeStepFacts(const Cluster& cluster, const Plan& plan, const Workload& workload,
                        const std::shared_ptr<const std::vector<Bucket>>& buckets,
                        const std::optional<DataRate<>>& memory_bandwidth = std::nullopt,
                        const WorkloadCounts* counts = nullptr);

namespace internal {

// What is known of a path: one link, as it is stated, or what several make of it. That link has to
// outlive it.
class PathFacts {
 public:
  PathFacts(const LinkFacts& link) : link_(&link) {}     // NOLINT(google-explicit-constructor)
  PathFacts(LinkFacts&& several) : several_(several) {}  // NOLINT(google-explicit-constructor)

  const LinkFacts& operator*() const { return several_ ? *several_ : *link_; }
  const LinkFacts* operator->() const { return &**this; }
  bool Is(const LinkFacts& link) const { return link_ == &link; }

 private:
  const LinkFacts* link_ = nullptr;
  std::optional<LinkFacts> several_;
};

// The known path between a worker and a server that is not on its node: with the bandwidth of the
// server's link, what else is on that, and its round trip, as it is of the path.
inline PathFacts PathToServer(const LinkFacts& node, const LinkFacts& server) {
  if (server.empty()) return node;
  const LinkFacts last = Overlay(node, server);
  LinkFacts path = WithTrafficOf(Worse(last, node), server);
  path.rtt = last.rtt;
  return path;
}
inline PathFacts PathToServers(const StepFacts& facts) {
  if (facts.server.colocated) return facts.link;
  return PathToServer(facts.link, facts.server_link);
}
// The end of such a path at the node: with the bandwidth of its link, and what else is on that.
inline PathFacts NodeEndOf(const PathFacts& path, const LinkFacts& node) {
  if (path.Is(node)) return node;
  LinkFacts end = WithTrafficOf(*path, node);
  end.bandwidth = node.bandwidth;
  return end;
}

// The known path between the nodes of a collective. Machines of BytePS exchange with helpers too.
inline PathFacts NodeLink(const StepFacts& facts) {
  const bool helped = TraitsOf(facts.strategy).helpers && facts.servers > 0;
  if (!helped || facts.server_link.empty()) return facts.link;
  return Worse(facts.link, *PathToServer(facts.link, facts.server_link));
}

// The core between the switches of the nodes on a link.
inline NetworkCore<> CoreOf(const LinkFacts& link) {
  return {link.oversubscription.value_or(1), 1.0 * link.nodes_per_switch.value_or(1)};
}

// The link that an exchange between nodes crosses.
inline PathFacts ExchangeLink(const StepFacts& facts) {
  return UsesServers(facts.strategy) ? PathToServers(facts) : NodeLink(facts);
}

// Whether the worker has nobody to exchange anything with.
inline bool Alone(const StepFacts& facts) {
  return !TraitsOf(facts.strategy).exchanges ||
         (facts.workers == 1 && (!UsesServers(facts.strategy) || facts.server.colocated));
}

// The first piece of a message that a ring sends, as a share of it; and how many such pieces pass
// each hop. What is gathered is sent as it is.
struct RingPieces {
  double first = 1;
  double count = 1;
};
inline RingPieces PiecesOf(const StepFacts& facts) {
  // Of who shares out within nodes, rings between them send all that leaves a node.
  const double w = facts.shard == Shard::kHybrid ? facts.nodes : facts.workers;
  return facts.compress.is_gathered() ? RingPieces{1, w - 1} : RingPieces{1 / w, 2 * (w - 1)};
}

// Who exchanges with parameter servers, in all and on the fullest node.
inline int ServerClients(const StepFacts& facts) {
  return facts.server.local_aggregation ? facts.nodes : facts.workers;
}
inline int ClientsPerNode(const StepFacts& facts) {
  return facts.server.local_aggregation ? 1 : facts.devices_per_node;
}
// Devices of a lone node that add up among themselves; 1 where there is no such node.
inline int AddedUpAtHome(const StepFacts& facts) {
  return facts.server.AddsUpAtHome(facts.nodes) ? facts.devices_per_node : 1;
}

// Processes of parameter servers on the fullest node, beside its workers: those share its
// processors.
inline double ServersBeside(const StepFacts& facts) {
  if (!facts.server.colocated || Alone(facts)) return 0;
  return std::ceil(1.0 * facts.servers / facts.nodes);
}

// How crowded the fullest node is: how often its devices in use double from one, and its servers.
inline double Crowding(const StepFacts& facts) {
  return CountLog2(facts.devices_per_node) + ServersBeside(facts);
}

// How many times as long a process computes on the fullest node, worker or server, as it does alone
// there. Exactly 1 for one device without servers.
template <class T>
T Crowded(const StepFacts& facts, const T& host_contention) {
  return 1.0 + host_contention * Crowding(facts);
}

// The two sides of a step whose slow nodes take other samples: as if all workers were like those on
// the other nodes, or like those on slow ones.
inline StepFacts FastSide(StepFacts facts) {
  facts.slow_speed.reset();
  facts.slow_workers = 0;
  facts.slow_share.reset();
  return facts;
}
inline StepFacts SlowSide(StepFacts facts) {
  facts.batch = facts.slow_share->batch;
  facts.recomputing = facts.slow_share->recomputing;
  facts.compute_shape = facts.slow_share->compute_shape;
  facts.slow_workers = facts.workers;
  facts.slow_share.reset();
  return facts;
}

// Whether nodes that are stated to be slow are slower than the slowest of the others, as it was
// calibrated; or there are no others.
template <class Cluster>
bool StatedIsSlowest(const StepFacts& facts, const Cluster& cluster) {
  if (!facts.slow_speed) return false;
  if (facts.slow_workers == facts.workers) return true;
  return !cluster.node_slowdown || ValueOf(*cluster.node_slowdown) < 1 / *facts.slow_speed;
}

// The factor on compute of the slowest node, stated or calibrated.
template <class Cluster>
auto SlowdownOf(const StepFacts& facts, const Cluster& cluster) {
  auto slowdown = cluster.node_slowdown;
  if (StatedIsSlowest(facts, cluster)) slowdown.emplace(1 / *facts.slow_speed);
  return slowdown;
}

// A micro-step of workers on nodes that are not stated to be slow, as a share of one of those that
// are; 1 where hosts are known to be slower still.
template <class Cluster>
double FastPace(const StepFacts& facts, const Cluster& cluster) {
  return StatedIsSlowest(facts, cluster) ? *facts.slow_speed : 1.0;
}

// Samples of a step on the fullest node; where slow nodes take others, on one that takes more.
inline SampleCount<> SamplesOfNode(const StepFacts& facts) {
  const double batch =
      facts.slow_share ? std::max(facts.batch, facts.slow_share->batch) : facts.batch;
  return Samples(batch * facts.accumulation_steps * facts.devices_per_node);
}

// Time in which a worker encodes and decodes its compressed gradients.
inline Duration<> CodingOf(const StepFacts& facts) {
  if (!facts.compress.exists() || Alone(facts)) return {};
  if (facts.coding_rate) return facts.dense_gradient / *facts.coding_rate;
  const double passes = CodingPasses(facts.compress, facts.workers, UsesServers(facts.strategy));
  return facts.dense_gradient * passes / facts.memory_bandwidth;
}

// The time in which they arrive; none where nobody says how fast they do, or nothing is trained.
inline Duration<> ArrivalOf(const StepFacts& facts) {
  if (!facts.input_rate || !facts.has_compute) return {};
  return ArrivalTime(SamplesOfNode(facts), *facts.input_rate);
}

// Micro-steps from one synchronisation to the next.
inline double MicroStepsBetween(const StepFacts& facts) {
  if (GathersUnits(facts.shard)) return 1;
  return 1.0 * facts.accumulation_steps * facts.local_steps;
}

// The compute of a step that its exchange may hide behind: all of it where units are gathered for
// both passes, else the backward pass that synchronises.
template <class T>
Duration<T> Beside(const StepFacts& facts, const Duration<T>& micro, const Duration<T>& backward) {
  return GathersUnits(facts.shard) ? micro * static_cast<double>(facts.accumulation_steps)
                                   : backward;
}

// Share of the optimizer's update that a worker does: of what it keeps of the optimizer's state.
inline double UpdateShare(const StepFacts& facts) {
  return 1.0 / SharersOf(facts.shard, facts.workers, facts.devices_per_node);
}

// Share of a micro-step that is its backward pass, or of it what a synchronisation can hide behind.
template <class T>
T BackwardShare(const StepFacts& facts, const T& overlap_share) {
  return stepcast::BackwardShare(facts.recomputing, overlap_share);
}

// Standard deviation of a worker's step, as a multiple of that of a micro-step: those of the
// micro-steps to a synchronisation add up as independent ones do, and its steps share them.
inline double SpreadOfStep(const StepFacts& facts) {
  return std::sqrt(1.0 * facts.accumulation_steps / facts.local_steps);
}

// Whether an exchange leaves the node: servers may be beside the workers of a lone one.
inline bool LeavesNode(const StepFacts& facts) {
  return facts.nodes > 1 || (UsesServers(facts.strategy) && !facts.server.colocated);
}

// Standard deviation of ln(measured / predicted) that losses add, as a share of the exposed
// exchange: nothing where a step loses no packet, kLossScatter where it loses many.
inline double LossScatter(const StepFacts& facts) {
  const auto loses = [](const LinkFacts& link) { return link.loss.value_or(0) > 0; };
  if (!loses(facts.link) && !loses(facts.server_link)) return 0;
  if (!LeavesNode(facts)) return 0;
  const LinkFacts link = *ExchangeLink(facts);
  if (link.rdma()) return 0;
  const double lost = link.loss.value_or(0) * (facts.gradient / Bytes(kSegmentBytes));
  return kLossScatter * lost / (1 + lost);
}

}  // namespace internal

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_FACTS_H_
