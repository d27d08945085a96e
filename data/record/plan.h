// How a workload is spread over a cluster: the question that a prediction answers.
#ifndef STEPCAST_DATA_RECORD_PLAN_H_
#define STEPCAST_DATA_RECORD_PLAN_H_

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "data/units/quantity.h"

namespace stepcast {

// How gradients are exchanged. kAllreduce leaves the algorithm to the library, which stepcast takes
// to be the ring.
enum class Strategy {
  kNone,
  kAllreduce,
  kRing,
  kTree,
  kHalvingDoubling,
  kHierarchical,
  kPsSync,
  kPsAsync,
};
inline constexpr int kStrategyCount = 8;

// The names in files and flags, in the order of the enumerators.
inline constexpr const char* kStrategyNames[kStrategyCount] = {
    "none", "allreduce", "ring", "tree", "halving-doubling", "hierarchical", "ps-sync", "ps-async"};

inline const char* StrategyName(Strategy s) { return kStrategyNames[static_cast<int>(s)]; }
inline bool UsesServers(Strategy s) { return s == Strategy::kPsSync || s == Strategy::kPsAsync; }

// What is known of one network path; unknown is a value.
struct LinkFacts {
  std::optional<DataRate<>> bandwidth;  // line rate, each direction
  std::optional<Duration<>> rtt;
  std::optional<double> loss;  // probability that a packet is lost, [0, 1)

  bool empty() const { return !bandwidth && !rtt && !loss; }
};

// Fields of `over` that are known replace those of `base`.
inline LinkFacts Overlay(const LinkFacts& base, const LinkFacts& over) {
  return {over.bandwidth ? over.bandwidth : base.bandwidth, over.rtt ? over.rtt : base.rtt,
          over.loss ? over.loss : base.loss};
}

// Devices used on each node, one entry a node in use: "4-4-2" is {4, 4, 2}.
using Placement = std::vector<int>;

inline int Workers(const Placement& p) { return std::accumulate(p.begin(), p.end(), 0); }
inline int Nodes(const Placement& p) { return static_cast<int>(p.size()); }
inline int DevicesOnFullestNode(const Placement& p) {
  return p.empty() ? 0 : *std::max_element(p.begin(), p.end());
}

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

  int workers() const { return Workers(placement); }
  int nodes() const { return Nodes(placement); }
  double global_batch() const {
    return static_cast<double>(local_batch) * accumulation_steps * workers();
  }
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_PLAN_H_
