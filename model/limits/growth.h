// How the cost of one synchronisation grows with the workers: the form in which limits are closed.
//
// Every strategy of model/exchange, taken as a function of a real number w of workers, is
//
//   S(w) = s_0 + s_1 f(w) - s_r / w + sum_k max(u_k, v_k w),     f(w) = w or log2 w
//
//   s_0   what does not depend on w                                            [s]
//   s_1   what each worker (f = w) or each doubling of them (f = log2) adds    [s]
//   s_r   what small numbers save: a ring moves (w-1)/w of its bytes           [s]
//   u, v  one side of a phase costs u whatever w, the other v for each worker, and the slower one
//         is waited for (servers only)                                         [s]
//
// and it is affine in the message: J calls with m bytes in all cost J per_call(w) + m per_byte(w),
// each part of the form above. For a hop alpha, B:
//
//   strategy           per_call(w)                         per_byte(w)
//   ring               2 alpha (w-1)                       2/B (1 - 1/w)
//   halving-doubling   2 alpha log2 w                      2/B (1 - 1/w)
//   binomial tree      2 alpha log2 w                      2/B log2 w
//   double tree        2 alpha log2 w                      2/B                              w >= 4
//   flat ring          h alpha + (2 (w-1) - h) alpha_i     max(2/(B c), 2/B_i) (1 - 1/w)    w >= 2g
//   hierarchical       2 alpha_i (g-1) + that of N = w/g   2/B_i (1 - 1/g) + that of N / c  w >= g
//   tree over nodes    2 alpha_i (g-1) + 2 alpha log2 N    max(2/(B c), min(2, g-1)/B_i)    w >= 4g
//   servers            2 A + 2 c_x max(n, w)               2 max(g/B, w q) + s u
//     aggregation      push: c_x n for c_x max(n, w)       push: max(g/B, q)
//     multicast        pull: c_x n for c_x max(n, w)       pull: max(g/B, q)
//     colocated        2 A + 2 c_x w                       2 g/B (1 - g/w)                  w >= g
//   byteps             2 alpha                             2/((1+k) B) (1 - (1-d)/w)        w >= 2
//
//   alpha, B     one-way cost of a message [s] and bandwidth [B/s] between nodes; with i: in a node
//   g, N, c      workers of a node, nodes, cards of a node that its workers use
//   h            2 N - max(0, 3 - g), the hops between nodes of a flat ring's piece
//   n, s, P, u   servers, largest share of the bytes on one of them, the rate at which it handles
//                bytes [B/s] and its time to update one [s/B]; q = s max(1/B_s, 1/P)
//   A, c_x       alpha with its further round trips, and processor time to start a transfer [s]
//   k, d         helper machines for each worker, 0 to 1, and d = 2k/(1+k)
//
// Where rounds or phases follow each other bucket by bucket, less of them is seen:
//
//   pipelined ring     c m/2 + max( 4 alpha J + c m/2, J per_call(w) )     c m = m per_byte(w)
//   pipelined servers  (phase that grows) + q (other phase)                apart from the workers
//
//   q            share of the message in its largest bucket, 1/J of the calls; where both phases
//                grow alike, one of them counts once and the other q times (a flow shop of two
//                machines). Colocated servers have one link for both phases and gain nothing.
//
// Holds where w is a power of two (halving-doubling, trees) or fills its nodes (flat ring,
// hierarchical, colocated servers, one on each node); in between, the algorithms cost up to a round
// and, for halving-doubling, two passes more. The bytes of byteps are exact for k = 0 and k = 1 and
// at most 0.25 / (w (w-1)) of 2/B too many for other k (expansion in 1/w). The pipelined ring is
// exact while bytes set the pace, and at most (m/B)/w too short where latency does. Colocated
// servers are taken to handle and update bytes as fast as links bring them. Nothing is said below
// `least`.
//
// Note that S never falls with w from `least` on, so that "where S reaches y" has one answer; and
// that ring and halving-doubling cost exactly nothing at w = 1.
//
// Sources: those of model/exchange, whose costs these are (the tests compare them); docs/
// explanation/limits.md.
#ifndef STEPCAST_MODEL_LIMITS_GROWTH_H_
#define STEPCAST_MODEL_LIMITS_GROWTH_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"
#include "model/exchange/parameter_server.h"

namespace stepcast {

// f(w) of the header.
enum class GrowthShape { kLinear, kLogarithmic };

// max(flat, per_worker w)
template <class Q>
struct GrowthHinge {
  Q flat;
  Q per_worker;
};

// One quantity as a function of w. Hinges go with kLinear only.
template <class Q, std::size_t kHinges>
struct Growth {
  using T = typename Q::Scalar;

  Q fixed;
  Q slope;
  Q saved;
  std::array<GrowthHinge<Q>, kHinges> hinges = {};

  Q At(GrowthShape shape, const T& workers) const {
    using std::log2;
    Q value = fixed + slope * (shape == GrowthShape::kLinear ? workers : T(log2(workers))) -
              saved / workers;
    for (const GrowthHinge<Q>& hinge : hinges) {
      value += Max(hinge.flat, hinge.per_worker * workers);
    }
    return value;
  }
};

// S(w) for given messages.
template <class T>
struct SyncGrowth {
  GrowthShape shape = GrowthShape::kLinear;
  double least = 1;  // workers from which on it holds
  Growth<Duration<T>, 4> time;

  Duration<T> Time(const std::type_identity_t<T>& workers) const { return time.At(shape, workers); }
};

// SyncCost as a function of w.
template <class T>
struct CostGrowth {
  GrowthShape shape = GrowthShape::kLinear;
  double least = 1;
  Growth<Duration<T>, 2> per_call;
  Growth<DurationPerByte<T>, 2> per_byte;

  SyncCost<T> At(const std::type_identity_t<T>& workers) const {
    return {per_call.At(shape, workers), per_byte.At(shape, workers)};
  }

  // S(w) of `calls` messages with `bytes` in all.
  SyncGrowth<T> Of(const std::type_identity_t<DataSize<T>>& bytes,
                   const std::type_identity_t<T>& calls = T(1.0)) const {
    SyncGrowth<T> growth;
    growth.shape = shape;
    growth.least = least;
    growth.time.fixed = per_call.fixed * calls + per_byte.fixed * bytes;
    growth.time.slope = per_call.slope * calls + per_byte.slope * bytes;
    growth.time.saved = per_call.saved * calls + per_byte.saved * bytes;
    for (std::size_t i = 0; i < 2; ++i) {
      growth.time.hinges[i] = {per_call.hinges[i].flat * calls,
                               per_call.hinges[i].per_worker * calls};
      growth.time.hinges[i + 2] = {per_byte.hinges[i].flat * bytes,
                                   per_byte.hinges[i].per_worker * bytes};
    }
    return growth;
  }
};

template <class T>
CostGrowth<T> RingGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.per_call.fixed = hop.alpha * -2.0;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  growth.per_byte.saved = 2.0 / hop.bandwidth;
  return growth;
}

template <class T>
CostGrowth<T> HalvingDoublingGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  growth.per_byte.saved = 2.0 / hop.bandwidth;
  return growth;
}

// Reduced up one tree and sent down it again, the whole message in every round.
template <class T>
CostGrowth<T> BinomialTreeGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.slope = 2.0 / hop.bandwidth;
  return growth;
}

template <class T>
CostGrowth<T> DoubleTreeGrowth(const Hop<T>& hop) {
  CostGrowth<T> growth;
  growth.shape = GrowthShape::kLogarithmic;
  growth.least = 4;
  growth.per_call.slope = hop.alpha * 2.0;
  growth.per_byte.fixed = 2.0 / hop.bandwidth;
  return growth;
}

// On full nodes of `devices`, two of them at least.
template <class T>
CostGrowth<T> FlatRingGrowth(int devices, const Hop<T>& inter, const Hop<T>& intra, int cards = 1) {
  const double g = devices;
  const double used = std::min(devices, cards);
  const double left_out = std::max(0, 3 - devices);
  const DurationPerByte<T> slowest = Max(1.0 / (inter.bandwidth * used), 1.0 / intra.bandwidth);
  CostGrowth<T> growth;
  growth.least = 2 * g;
  growth.per_call.fixed = intra.alpha * (left_out - 2) - inter.alpha * left_out;
  growth.per_call.slope = inter.alpha * (2 / g) + intra.alpha * (2 - 2 / g);
  growth.per_byte.fixed = slowest * 2.0;
  growth.per_byte.saved = slowest * 2.0;
  return growth;
}

namespace internal {

// A law of the nodes as a law of the workers, `devices` on each.
template <class Q>
void CountWorkers(GrowthShape shape, double devices, Growth<Q, 2>* growth) {
  if (shape == GrowthShape::kLinear) {
    growth->slope = growth->slope / devices;
  } else {
    growth->fixed -= growth->slope * std::log2(devices);
  }
  growth->saved = growth->saved * devices;
}

}  // namespace internal

// `between` is the law of one device of each node: of a ring, or of halving-doubling.
template <class T>
CostGrowth<T> HierarchicalGrowth(const CostGrowth<T>& between, int devices, const Hop<T>& intra,
                                 int cards = 1) {
  const SyncCost<T> within = RingAllreduce(devices, intra);
  const double used = std::min(devices, cards);
  CostGrowth<T> growth = between;
  growth.least = between.least * devices;
  internal::CountWorkers(growth.shape, devices, &growth.per_call);
  internal::CountWorkers(growth.shape, devices, &growth.per_byte);
  growth.per_call.fixed += within.per_call;
  growth.per_byte.fixed = growth.per_byte.fixed / used + within.per_byte;
  growth.per_byte.slope = growth.per_byte.slope / used;
  growth.per_byte.saved = growth.per_byte.saved / used;
  return growth;
}

// A double tree between the nodes, whose devices form a chain; `devices` of 2 and more.
template <class T>
CostGrowth<T> TreeOverNodesGrowth(int devices, const Hop<T>& inter, const Hop<T>& intra,
                                  int cards = 1) {
  CostGrowth<T> growth = DoubleTreeGrowth(inter);
  growth.least *= devices;
  internal::CountWorkers(growth.shape, devices, &growth.per_call);
  growth.per_call.fixed += intra.alpha * (2.0 * (devices - 1));
  growth.per_byte.fixed = Max(growth.per_byte.fixed / static_cast<double>(std::min(devices, cards)),
                              std::min(2.0, devices - 1.0) / intra.bandwidth);
  return growth;
}

// S(w) of a ring whose pieces follow each other through its rounds (PipelineRing), `slowest` the
// latency of its slowest hop.
template <class T>
SyncGrowth<T> PipelinedRingGrowth(const CostGrowth<T>& ring, const Duration<T>& slowest,
                                  const std::type_identity_t<DataSize<T>>& bytes,
                                  const std::type_identity_t<T>& calls = T(1.0)) {
  SyncGrowth<T> growth;
  growth.least = ring.least;
  const Duration<T> half = ring.per_byte.fixed * bytes * 0.5;
  const Duration<T> chain = ring.per_call.fixed * calls;
  growth.time.fixed = half + chain;
  growth.time.saved = ring.per_byte.saved * bytes;
  growth.time.hinges[0] = {slowest * (calls * 4.0) + half - chain, ring.per_call.slope * calls};
  return growth;
}

namespace internal {

// A byte of the model at the fullest server, for each time that it comes or goes.
template <class T>
DurationPerByte<T> ServerPerByte(const ServerPaths<T>& p) {
  return Max(p.share() / p.server_bandwidth, p.share() / p.server_rate);
}

}  // namespace internal

// Of servers on nodes of their own; `p.workers` is not read. `seen` is q for calls and for bytes
// where a bucket is pulled while later ones are pushed; 1 where the phases take turns.
template <class T>
CostGrowth<T> ServerGrowth(const ServerPaths<T>& p, double seen_calls = 1, double seen_bytes = 1) {
  const double n = p.servers;
  const DurationPerByte<T> at_worker =
      Max(static_cast<double>(p.workers_per_node) / p.worker.bandwidth, p.connection * p.share());
  const DurationPerByte<T> at_server = internal::ServerPerByte(p);
  const std::array<bool, 2> merged = {p.in_network_aggregation, p.multicast};  // push, pull
  const std::size_t other = merged[0] && !merged[1] ? 0 : 1;  // the phase of which q is seen
  CostGrowth<T> growth;
  growth.per_call.fixed = PhaseLatency(p) * (1 + seen_calls);
  growth.per_byte.fixed = p.update * p.share();
  for (std::size_t phase = 0; phase < 2; ++phase) {
    const Duration<T> call = p.initiation * (phase == other ? seen_calls : 1.0);
    const double bytes = phase == other ? seen_bytes : 1.0;
    if (merged[phase]) {
      growth.per_call.fixed += call * n;
      growth.per_byte.fixed += Max(at_worker, at_server) * bytes;
    } else {
      growth.per_call.hinges[phase] = {call * n, call};
      growth.per_byte.hinges[phase] = {at_worker * bytes, at_server * bytes};
    }
  }
  return growth;
}

// Of one server on each of the workers' nodes; the numbers of servers, workers and nodes are not
// read. What the network merges saves transfers at the server and no byte: a worker still sends and
// receives all.
template <class T>
CostGrowth<T> ColocatedServerGrowth(const ServerPaths<T>& p) {
  const double g = p.workers_per_node;
  const double transfers =  // for each worker, of both phases
      (p.in_network_aggregation ? 1 / g : 1.0) + (p.multicast ? 1 / g : 1.0);
  CostGrowth<T> growth;
  growth.least = std::max(2.0, g);
  growth.per_call.fixed = PhaseLatency(p) * 2.0;
  growth.per_call.slope = p.initiation * transfers;
  growth.per_byte.fixed = (2 * g) / p.worker.bandwidth;
  growth.per_byte.saved = (2 * g * g) / p.worker.bandwidth;
  return growth;
}

// `helpers_per_worker` of 0 to 1, with cards as fast as the workers'.
template <class T>
CostGrowth<T> BytePsGrowth(double helpers_per_worker, const Hop<T>& hop) {
  const double k = helpers_per_worker;
  CostGrowth<T> growth;
  growth.least = 2;
  growth.per_call.fixed = hop.alpha * 2.0;
  growth.per_byte.fixed = (2 / (1 + k)) / hop.bandwidth;
  growth.per_byte.saved = (2 / (1 + k) * (1 - 2 * k / (1 + k))) / hop.bandwidth;
  return growth;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_LIMITS_GROWTH_H_
