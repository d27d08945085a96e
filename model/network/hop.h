// The rate and the latency of a hop between two nodes: the heart of every exchange.
//
//   P       = || || || C/B_link, (1 + s z)/(k B_flow) ||_4, v/f ||_q, l/f ||_4 / (1-p)   the path
//           C/B_link (1 + p N/(1-p)) over RDMA, N = B_link/C R/M packets of M bytes on the way
//   C       = max( 1, c L )                                           link, or core
//   1/B_hop = || P, (1 + d (g-1)) / B_host ||_4                                      the hop
//   alpha   = alpha_link + R/2                                                      its latency
//   t       = max(v, l) / (1-p)                                                     a connection
//
//   B_link  line rate of the node's link, less headers                              [B/s]   > 0
//   c       what the core between the nodes' switches makes of a byte's time
//           (model/network/oversubscription.h)                                      >= 1
//   L       share of the line rate that traffic of no job leaves, which stays below its switch
//           (model/network/sharing.h)                                       [1]  > 0, <= 1
//   k       distinct peers of the node, each of which has a cap of its own           >= 1
//   B_flow  most that the flows to one peer carry                                   [B/s]   > 0
//   v, l    limits of one connection by its window and by loss                      [s/B]
//           (model/network/transport.h)
//   f       connections at once; 0 leaves v and l out, which are then counted for each connection
//   q       sharpness of the knee between bytes and round trips                     >= 1
//   p       probability that a packet is lost                                       [0, 1)
//   B_host  rate of an exchange within the node                                     [B/s]   > 0
//   d, g    host sharing; devices in use on the fullest node                        [1]
//   s       spread of what flows carry between one pair of nodes and another        [1]
//   z       the largest of N standard normal values, for the hops of N nodes        [1]
//   alpha_link, R   one-way cost of a message; round trip, where it is stated       [s]
//
// Bytes pass the sender's host and its link in a pipeline, piece by piece: the slower of the two
// sets the pace. All limits join with knees, since none is sharp while transfers of many nodes
// meet. The devices of a node share its host, and not its link. Rounds wait for the slowest of N
// hops, whose flows share the network with others: where that differs by a share s, as among the
// neighbours of a cloud, they go at 1 + s z times the mean's time a byte. Ports have one line rate,
// so that where the link sets the pace nothing grows with the nodes. A node that exchanges with
// many peers at once sees their mean, of which little spread is left; z is then 0.
//
// Where the rate of the cluster's links is stated, its uplinks are known by it, and a slower link
// of one node does not slow them: a byte takes max( 1/B_own, C/B_link ), B_link being that of most
// nodes and B_own that of the slowest. Rounds of which some cross the core and some do not, as
// halving-doubling has, take more than that, and less than both together.
//
// Holds for equal nodes and messages of many segments. It leaves out what several jobs on one
// switch do to each other.
//
// Note that a path is never faster than its link, nor than its flows or its windows alone; that a
// hop is never faster than its path or its host; that B_hop never falls with B_link, k, B_flow, f,
// B_host and never rises with v, l, p, d, g, s, N; and that a host much faster than the path, or
// devices that share one, change nothing.
//
// Sources: public traces of 1 to 64 devices for the form of B_hop (docs/explanation/step-model.md,
// section 3); those of model/network/transport.h for v and l; a ring simulated segment by segment
// for q (model/exchange/segments.h).
#ifndef STEPCAST_MODEL_NETWORK_HOP_H_
#define STEPCAST_MODEL_NETWORK_HOP_H_

#include "data/units/quantity.h"
#include "model/network/limiter.h"
#include "model/network/oversubscription.h"
#include "model/network/transport.h"
#include "model/numeric/dual.h"
#include "model/numeric/p_norm.h"

namespace stepcast {

// Sharpness of the knees between a link's own limit, that of its flows and that of their windows.
inline constexpr double kLinkKnee = 4.0;
// Collectives answer segment by segment, which rounds the corner more than a sliding window does
// (model/exchange/segments.h); with nobody to pipeline with, round trips add.
inline constexpr double kSegmentKnee = 2.0;
inline constexpr double kNoPipeline = 1.0;
// Share of a line rate that full frames leave to the payload.
inline constexpr double kPayloadShare = kSegmentBytes / kFrameBytes;

// How many flows leave a node: k, f and q.
struct FlowShape {
  double peers = 1;
  double connections = 1;  // 0 where each is counted for itself
  double window_knee = kLinkKnee;
  bool mesh = false;     // all nodes send to all at once
  int hops = 1;          // that wait for each other
  double slowest = 0;    // of them, in standard deviations: z
  Crossing<> core = {};  // c
  // Whether uplinks are known by the rate of the cluster's links, whatever a node's own carries.
  bool uplinks_known = false;
};

// What the flows to one peer carry.
template <class T>
struct Flows {
  DataRate<T> bandwidth;  // B_flow
  T spread = T(0.0);      // s
};

template <class T>
struct PathRate {
  DataRate<T> bandwidth;  // 1/P
  Limiter limiter = Limiter::kLink;
};

// Parts from which the rate of a path was joined.
template <class T>
struct PathTerms {
  Path<T> path;
  FlowLimits<T> limits;  // of one connection
  DataRate<T> rate;
  FlowShape shape;
};

// C
template <class T>
T CrossedBy(const Path<T>& path, const FlowShape& shape) {
  if (shape.core.longer == 1) return T(1.0);
  const T longer = shape.core.longer * path.left;
  return longer > 1.0 ? longer : T(1.0);
}

// Whether its own link holds a slow node back for longer than the core does all nodes, the links of
// most of which it was planned for: 1/B_own >= C/B_link. Uplinks that many share are no slower for
// one slow port.
template <class T>
bool HeldByItsOwnLink(const Path<T>& own, const Path<T>& of_most, const FlowShape& shape) {
  return !(own.bandwidth * CrossedBy(of_most, shape) > of_most.bandwidth);
}

// 1/P, and what limits it.
template <class T>
PathRate<T> DeliverTo(const Path<T>& path, const FlowShape& shape, const Flows<T>& each,
                      const Barrier<T>& barrier = {}, PathTerms<T>* terms = nullptr) {
  FlowLimits<T> limits;
  if (shape.connections > 0) limits = LimitsOfFlow(path, barrier);
  const T crossing = CrossedBy(path, shape);
  const DurationPerByte<T> line = crossing / path.bandwidth;
  const bool rdma = path.transport == Transport::kRdma;  // whose flows have no cap
  DurationPerByte<T> flows;
  if (!rdma) flows = (1.0 + each.spread * shape.slowest) / (each.bandwidth * shape.peers);
  PathRate<T> rate;
  const Limiter of_line = shape.core.binds && crossing > 1.0 ? Limiter::kCore : Limiter::kLink;
  rate.limiter = line < flows ? Limiter::kFlow : of_line;
  DurationPerByte<T> time = rdma ? line : PNorm(line, flows, kLinkKnee);
  DurationPerByte<T> most = Max(line, flows);
  if (rdma && path.loss > 0.0) {
    const T share = GoBackShare(path, crossing);
    if (share < 0.5) rate.limiter = Limiter::kLoss;
    time = time * (1.0 - path.loss) / share;  // the lost packet is among the repeated
  }
  const auto join = [&](const DurationPerByte<T>& of_one, double knee, Limiter limiter) {
    if (!(of_one.si() > 0.0)) return;
    const DurationPerByte<T> limit = of_one / shape.connections;
    time = PNorm(time, limit, knee);
    if (most < limit) rate.limiter = limiter;
    most = Max(most, limit);
  };
  join(limits.window, shape.window_knee, Limiter::kWindow);
  join(limits.loss, kLinkKnee, Limiter::kLoss);
  rate.bandwidth = (1.0 - path.loss) / time;
  if (terms != nullptr) *terms = {path, limits, rate.bandwidth, shape};
  return rate;
}

// What a host's end of a hop carries while `devices` of its devices share it: B_host/(1 + d (g-1)).
template <class T>
DataRate<T> SharedHost(const DataRate<T>& host, const T& host_sharing, double devices) {
  return host / (1.0 + host_sharing * (devices - 1.0));
}

// B_hop, over a path of 1/P from a host that carries `host`.
template <class T>
DataRate<T> HopRate(const DataRate<T>& path, const DataRate<T>& host) {
  return PNormOfRates(path, host, kLinkKnee);
}

// The share of a byte's time over such a hop that a faster path saves; a faster host saves the
// rest.
template <class T>
double PathShare(const DataRate<T>& path, const DataRate<T>& host) {
  const double ratio = ValueOf(path) / ValueOf(host);
  const double square = ratio * ratio;
  return 1 / (1 + square * square);
}

// alpha; a round trip that nobody states is 0.
template <class T, class S>
Duration<T> HopLatency(const Duration<T>& one_way, const Duration<S>& round_trip) {
  return one_way + round_trip / 2.0;
}

// t.
template <class T, class S>
DurationPerByte<T> ConnectionTime(const FlowLimits<T>& limits, const S& loss) {
  return Max(limits.window, limits.loss) / (1.0 - loss);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_HOP_H_
