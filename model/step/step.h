// One optimizer step of data-parallel training, from its parts.
//
//   t        = (t_fixed + pnorm(t_floor, c b)) (1 + h (g-1))          one micro-step
//   t_f, t_b = (1 - phi) t, phi t                                     forward, backward
//   E_K      = last bucket's synchronisation, from the start of backward (model/overlap/buckets.h)
//   step     = (a-1) t + t_f + max(t_b, E_K) + o + wait               a > 0 micro-steps
//
// A hop between nodes passes the sender's host and its link:
//
//   1 / B_hop = ( pnorm(1 / B_link, 1 / (peers B_flow)) + 1 / B_host ) (1 + d (g-1)) (1 + s log2 N)
//
//   B_link   what TCP delivers over the node's link (model/network/transport.h)      [B/s]
//   peers    distinct nodes that one node exchanges with: 1 when N = 2, 2 in a longer ring
//   B_flow   most that the flows to one peer carry                                   [B/s]
//   B_host   rate of an exchange within the node                                     [B/s]
//   g, N     devices in use on the fullest node, nodes in use
//   d, s     host sharing, node scaling                                              [1]
//   h        host contention                                                         [1]
//   o        fixed cost of a synchronisation                                         [s]
//   phi      overlap share                                                           [1]
//
// Two nodes are special: all flows between them share one path, where a node of a longer ring has
// two neighbours. A model that is fitted to two nodes and does not know this is wrong by two at
// four.
//
// Holds for synchronous steps of equal devices on equal nodes; unequal placements are set by their
// fullest node. ps-async is the mean time between two updates of one worker.
//
// Note that one worker, or strategy none, has no communication at all; that every time falls or
// stays with more bandwidth and never falls with more bytes, loss, latency or workers' placement on
// more devices; and that the parts add up to the step exactly.
//
// Sources: Li et al., VLDB 2020 (overlap of buckets); the formulas' own headers for the parts;
// public traces of 1 to 64 devices for the form of B_hop (docs/explanation).
#ifndef STEPCAST_MODEL_STEP_STEP_H_
#define STEPCAST_MODEL_STEP_STEP_H_

#include <memory>
#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/collective/cost.h"
#include "model/overlap/buckets.h"
#include "model/step/parameters.h"

namespace stepcast {

// Everything about a plan that is counted rather than fitted, resolved once.
struct StepFacts {
  int workers = 1;
  int nodes = 1;
  int devices_per_node = 1;  // in use, on the fullest node
  int servers = 0;
  int accumulation_steps = 1;
  double batch = 1;
  Strategy strategy = Strategy::kAllreduce;
  DataSize<> gradient;
  std::shared_ptr<const std::vector<Bucket>> buckets;  // shared by the plans of a workload
  // Links as stated: a stated bandwidth replaces the fitted one.
  LinkFacts link;
  LinkFacts server_link;
  Duration<> device_rtt;  // between devices of one node, where the cluster file states it
};

// The plan on the cluster. A bandwidth that the plan states is taken as it is; that of the cluster
// file is the centre of a prior and not a fact here, but its round trip and loss are, and those of
// the worst host that the plan names. Loss where no round trip is stated meets the latency of the
// link alone, which is a parameter.
StepFacts MakeStepFacts(const Cluster& cluster, const Plan& plan, DataSize<> gradient,
                        std::shared_ptr<const std::vector<Bucket>> buckets);

// What holds a synchronisation back.
enum class Limiter {
  kNothing,     // there is no synchronisation
  kLink,        // the node's network link
  kFlow,        // what the flows to one peer carry
  kTransport,   // TCP's window or packet loss
  kHost,        // the exchange within the node
  kServerLink,  // the servers' links
  kLatency,     // messages, initiations and fixed costs
};

template <class T>
struct StepTime {
  Duration<T> forward;           // of all micro-steps, with what the curve holds fixed
  Duration<T> backward;          // of all micro-steps
  Duration<T> exposed_latency;   // synchronisation that compute does not hide: messages, calls
  Duration<T> exposed_transfer;  // and bytes
  Duration<T> straggler_wait;
  Duration<T> synchronisation;  // whole, hidden or not
  Limiter limiter = Limiter::kNothing;

  Duration<T> compute() const { return forward + backward; }
  Duration<T> exposed() const { return exposed_latency + exposed_transfer; }
  Duration<T> total() const { return compute() + exposed() + straggler_wait; }
};

template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload);

// What a plan's hops deliver, as EvaluateStep takes them.
template <class T>
struct NetworkRates {
  Hop<T> hop;                    // between nodes, or between devices when there is one node
  DataRate<T> server_bandwidth;  // of one server's link; meaningful for ps-sync and ps-async
};

template <class T>
NetworkRates<T> EvaluateNetwork(const StepFacts& facts, const ClusterParameters<T>& cluster);

}  // namespace stepcast

#include "model/step/step_impl.h"

#endif  // STEPCAST_MODEL_STEP_STEP_H_
