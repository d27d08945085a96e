// The rate and the latency of a hop between two nodes: the heart of every exchange.
//
//   P       = || || || 1/B_link, 1/(k B_flow) ||_4, v/f ||_q, l/f ||_4 / (1-p)      the path
//   1/B_hop = (P + 1/B_host) (1 + d (g-1)) (1 + s log2 N)                           the hop
//   alpha   = alpha_link + R/2                                                      its latency
//   t       = max(v, l) / (1-p)                                                     a connection
//
//   B_link  line rate of the node's link, less headers                              [B/s]   > 0
//   k       distinct peers of the node, each of which has a cap of its own           >= 1
//   B_flow  most that the flows to one peer carry                                   [B/s]   > 0
//   v, l    limits of one connection by its window and by loss                      [s/B]
//           (model/network/transport.h)
//   f       connections at once; 0 leaves v and l out, which are then counted for each connection
//   q       sharpness of the knee between bytes and round trips                     >= 1
//   p       probability that a packet is lost                                       [0, 1)
//   B_host  rate of an exchange within the node                                     [B/s]   > 0
//   d, g    host sharing; devices in use on the fullest node                        [1]
//   s, N    node scaling; nodes in use                                              [1]
//   alpha_link, R   one-way cost of a message; round trip, where it is stated       [s]
//
// The sender's bytes pass its host and then its link, one after the other: times add. What limits
// the link joins with knees: no limit is sharp while transfers of many nodes meet. Crowding is a
// plain growth for each further device and each doubling of the nodes.
//
// Holds for equal nodes and messages of many segments. It leaves out what several jobs on one
// switch do to each other.
//
// Note that a path is never faster than its link, nor than its flows or its windows alone; that a
// hop is never faster than its path or its host; that B_hop never falls with B_link, k, B_flow, f,
// B_host and never rises with v, l, p, d, g, s, N; and that with f = 0, p = 0, one device and no
// node scaling it is the path and the host alone.
//
// Sources: public traces of 1 to 64 devices for the form of B_hop (docs/explanation/step-model.md,
// section 3); those of model/network/transport.h for v and l; a ring simulated segment by segment
// for q (model/exchange/segments.h).
#ifndef STEPCAST_MODEL_NETWORK_HOP_H_
#define STEPCAST_MODEL_NETWORK_HOP_H_

#include "data/units/quantity.h"
#include "model/network/limiter.h"
#include "model/network/transport.h"
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
  double peers = 1;        // that have a cap of their own
  double connections = 0;  // that the limits are shared by; 0 where they are not part of the rate
  double window_knee = 0;
};

// 1/P, and what limits it.
template <class T>
PathRate<T> DeliverTo(const Path<T>& path, const FlowShape& shape,
                      const DataRate<T>& flow_bandwidth, const Barrier<T>& barrier = {},
                      PathTerms<T>* terms = nullptr) {
  FlowLimits<T> limits;
  if (shape.connections > 0) limits = LimitsOfFlow(path, barrier);
  const DurationPerByte<T> line = 1.0 / path.bandwidth;
  const DurationPerByte<T> flows = 1.0 / (flow_bandwidth * shape.peers);
  PathRate<T> rate;
  rate.limiter = line < flows ? Limiter::kFlow : Limiter::kLink;
  DurationPerByte<T> time = PNorm(line, flows, kLinkKnee);
  DurationPerByte<T> most = Max(line, flows);
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
  if (terms != nullptr) {
    *terms = {path, limits, rate.bandwidth, shape.peers, shape.connections, shape.window_knee};
  }
  return rate;
}

// How much the transfers of a node's devices, and those of many nodes, slow each other.
template <class T>
struct Crowding {
  T host_sharing = T(0.0);      // d
  double devices_per_node = 1;  // g
  T node_scaling = T(0.0);      // s
  double doublings = 0;         // log2 N
};

// B_hop, over a path of 1/P.
template <class T>
DataRate<T> HopRate(const DataRate<T>& path, const DataRate<T>& host, const Crowding<T>& crowding) {
  const T growth = (1.0 + crowding.host_sharing * (crowding.devices_per_node - 1.0)) *
                   (1.0 + crowding.node_scaling * crowding.doublings);
  return 1.0 / ((1.0 / path + 1.0 / host) * growth);
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
