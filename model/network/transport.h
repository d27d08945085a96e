// What TCP delivers over one link.
//
//   rate = (1-p) / || 1/B, 1/(f V), A t / (f M) ||_4
//   V    = W / (R E)                       window limit of a flow; absent for R = 0
//   t                                      loss limit of a flow; absent for p = 0 and for BBR
//   A    = 1 + x / t                       barrier, where somebody waits for the slowest of c flows
//   x    = sqrt( (z s / (2 sqrt(1 + p_e N)))^2 + (T_0 min(z sqrt(p p_e / N), (c-1) p p_e))^2 )
//   wire = bytes / (1-p)
//
//   B      usable bandwidth of the link                                     [B/s]   > 0
//   R      round-trip time                                                  [s]     >= 0
//   p      probability that a packet is lost                                [0, 1)
//   f      flows that share the link                                        >= 1
//   W      bytes that one flow may have in flight                           [B]
//   M      payload of a segment                                             [B]
//   T_0    cost of a retransmission timeout                                 [s]
//   E      round trips until a window has arrived (model/network/congestion.h)
//   t, s, p_e   time per sent segment by loss, its part in congestion avoidance, loss events per
//          segment (model/network/congestion.h)
//   c, N   flows of which the slowest is waited for; segments that each of them carries
//   z      Blom's expected largest of c standard normal values
//
// The 4-norm rounds the corner: a window that loss saws fills the line only part of the time. A
// simulated window with random losses gives exponents of 4.6 (Reno) to 6.2 (CUBIC) where the two
// limits are equal, more elsewhere.
//
// RDMA has no window and no limit of a flow below the line: cards do what the kernel does for TCP.
// Its links lose next to nothing; where one does, cards go back to the packet that was lost
// (GoBackShare).
//
// BBR paces by the bandwidth that it measures, and random loss up to about 20 % costs no more than
// what is sent again, as long as the window is no limit.
//
// Barrier: the time of N segments goes with the square root of their losses, of which there is a
// random number; the relative spread is then 1 / (2 sqrt(N p_e)), or 1 / (2 sqrt(1 + N p_e)) with
// the loss that shaped the window at the start. Timeouts come on top as rare events: their largest
// sum among c flows is at most c times the mean. Flows are taken to be independent, and only what
// loss paces is spread: the line's share is the same for all.
//
// Holds for transfers of many round trips. It leaves out slow start (model/network/slow_start.h),
// queues that senders share (model/network/incast.h), and CUBIC's timeouts from 5 % of loss on.
//
// Note that with p = 0 the loss limit is absent, not merely small, so that a lossless link gives
// the same bits whether its loss is stated or not; that R = 0 lifts the window limit and leaves of
// the loss limit the timeouts alone; that A is exactly 1 without loss or with one flow; that the
// rate never falls with B, W, f and never rises with R, p, T_0, and the time of a message never
// falls with c or its bytes.
//
// Sources: those of model/network/congestion.h; Cardwell, Cheng, Gunn, Yeganeh, Jacobson, ACM Queue
// 14 (2016) (BBR); Mittal et al., SIGCOMM 2018 (what a loss costs RDMA); Altman, Avrachenkov,
// Barakat, SIGCOMM 2000 (windows under random losses); Blom
// 1958; tcp(7) of Linux for the buffer limit, of which measurements on a shaped link with default
// buffers show 2.9 MB in flight.
#ifndef STEPCAST_MODEL_NETWORK_TRANSPORT_H_
#define STEPCAST_MODEL_NETWORK_TRANSPORT_H_

#include <cmath>

#include "data/record/link.h"
#include "data/units/quantity.h"
#include "model/network/congestion.h"
#include "model/numeric/p_norm.h"
#include "model/statistics/order_statistics.h"

namespace stepcast {

// The same packet on the wire: 1500 + 14 header + 4 FCS + 8 preamble + 12 gap (IEEE 802.3).
inline constexpr double kFrameBytes = 1538.0;
inline constexpr double kWindowBytes = 2.9e6;
// The least retransmission timeout of Linux (tcp(7)).
inline constexpr Duration<> kLeastTimeout = Milliseconds(200.0);

template <class T>
struct Path {
  Transport transport = Transport::kTcp;
  DataRate<T> bandwidth;  // usable: headers, and what others send, already taken off
  double others = 0;      // with which it is shared
  DataRate<T> taken;      // of it, by traffic of no job
  T left = T(1.0);        // share of the line rate that such traffic leaves
  Duration<T> rtt;
  T loss = T(0.0);
  CongestionControl congestion = CongestionControl::kCubic;
  DataSize<T> window = Bytes(kWindowBytes);  // of one flow
  Duration<T> timeout = kLeastTimeout;
  Duration<T> burst = {};  // of packets that are lost together; kOffloadBurst for an emulator that
                           // sees offloaded packets
};

// Somebody waits for the slowest of `flows` flows, each of which carries `message`.
template <class T>
struct Barrier {
  DataSize<T> message;
  double flows = 1;
};

// Limits of one flow, as time per byte that it sends; zero where a limit is absent.
template <class T>
struct FlowLimits {
  DurationPerByte<T> window;
  DurationPerByte<T> loss;
};

// Bytes on the wire, with what is sent again.
template <class T>
DataSize<T> WireBytes(const DataSize<T>& bytes, const T& loss) {
  return bytes / (1.0 - loss);
}

// N = B R / M, the packets of a round trip at the line's rate.
// Where the core makes bytes take `crossing` times as long, the line is so much slower.
template <class T>
T PacketsInFlight(const Path<T>& path, const T& crossing = T(1.0)) {
  return path.bandwidth * path.rtt / (Bytes(kSegmentBytes) * crossing);
}

// Share of a line that RDMA's recovery leaves: after a loss it sends again all that was on the way,
// 1 / (1 + p N / (1-p)).
template <class T>
T GoBackShare(const Path<T>& path, const T& crossing = T(1.0)) {
  return 1.0 / (1.0 + path.loss * PacketsInFlight(path, crossing) / (1.0 - path.loss));
}

// A.
template <class T>
T BarrierAmplification(const Path<T>& path, const Barrier<T>& barrier) {
  using std::sqrt;
  const bool spread = path.loss > 0.0 && path.congestion != CongestionControl::kBbr;
  if (!spread || !(barrier.flows > 1) || !(barrier.message.si() > 0.0)) return T(1.0);
  const T events = LossEventRate(path.loss, path.rtt, path.burst);
  const Duration<T> avoidance = AvoidanceSegmentTime(path.rtt, events, path.congestion);
  const T segments = barrier.message / Bytes(kSegmentBytes);
  const double z = ExpectedNormalRank(barrier.flows, barrier.flows);
  const Duration<T> sawtooth = avoidance * (z * 0.5 / sqrt(1.0 + events * segments));
  const T timeouts = path.loss * events;
  const T normal = z * sqrt(timeouts / segments);
  const T all = timeouts * (barrier.flows - 1.0);
  const Duration<T> timers = path.timeout * (all < normal ? all : normal);
  const T wait = sqrt(sawtooth.si() * sawtooth.si() + timers.si() * timers.si());
  return 1.0 + Duration<T>::FromSi(wait) /
                   SackSegmentTime(path.rtt, path.loss, path.burst, path.timeout, path.congestion);
}

template <class T>
FlowLimits<T> LimitsOfFlow(const Path<T>& path, const Barrier<T>& barrier = {}) {
  FlowLimits<T> limits;
  if (path.transport == Transport::kRdma) return limits;
  if (path.rtt.si() > 0.0) {
    const T segments = path.window / Bytes(kSegmentBytes);
    limits.window = path.rtt * WindowRounds(path.loss, segments) / path.window;
  }
  if (path.loss > 0.0 && path.congestion != CongestionControl::kBbr) {
    limits.loss = SackSegmentTime(path.rtt, path.loss, path.burst, path.timeout, path.congestion) *
                  BarrierAmplification(path, barrier) / Bytes(kSegmentBytes);
  }
  return limits;
}

// Useful bytes per second of `flows` flows together.
template <class T>
DataRate<T> Deliver(const Path<T>& path, double flows, const Barrier<T>& barrier = {}) {
  constexpr double kKnee = 4.0;
  const FlowLimits<T> one = LimitsOfFlow(path, barrier);
  const DurationPerByte<T> window = one.window / flows;
  const DurationPerByte<T> loss = one.loss / flows;
  const bool is_limited = Max(window, loss).si() > 0.0;
  const DurationPerByte<T> limit = is_limited ? PNorm(window, loss, kKnee) : DurationPerByte<T>();
  // Written so that the line is never exceeded, and without limits no bit of it changes.
  return path.bandwidth / internal::OverLarger(T(limit * path.bandwidth), kKnee) *
         (1.0 - path.loss);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_TRANSPORT_H_
