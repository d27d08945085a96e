// How long a segment takes when loss, not the line, paces a TCP flow; and how often a full window
// waits for its unluckiest packet.
//
//   loss events      p_e = u^2,  u = 2 p K R / (tau + sqrt(tau^2 + 4 p (K R)^2)),  K = sqrt(2/3)
//                    p_e >= p M / 64 KiB; without bursts p_e = p
//   Reno             s_r = R sqrt(2 b p_e / 3)
//   CUBIC            s_c = R / W_c,  W_c = (C (3+beta) / (4 (1-beta)))^(1/4) (R / p_e)^(3/4)
//   avoidance        s   = min(s_r, s_c) for CUBIC, s_r for Reno
//   SACK recovery    t   = s + p_e R + p p_e T_0
//   PFTK             t   = s_r + T_0 min(1, 3 sqrt(3 b p_e / 8)) p_e (1 + 32 p_e^2)
//   window rounds    E   = 1 + sum_{j=1..48} ( 1 - (1 - p^j)^n )
//
//   t, s   mean time a sent segment takes; its part in congestion avoidance        [s]
//   R      round-trip time                                                         [s]
//   p      probability that a packet is lost                                       [0, 1)
//   p_e    loss events per segment: packets lost together count once               [0, p]
//   tau    how long the sender's bursts are that are lost as a whole               [s]
//   T_0    what a retransmission timeout costs                                     [s]
//   b      segments that one acknowledgement answers                               >= 1
//   M      payload of a segment, 1448 B
//   C      0.4 segments/s^3, beta = 0.7
//   n      segments of a window
//   E      round trips until all of a window has arrived                           >= 1
//
// Bursts: a sender with segmentation offload hands down packets of about tau = 1/1024 s of its own
// rate (64 KiB at most). A loss emulator or a policer that sees those loses a whole burst, for
// which TCP backs off once; with k = 1 + tau / s segments in a burst, p_e = p / k and
// s = K R sqrt(p_e), which is a quadratic for sqrt(p_e). Losses of single packets have tau = 0.
//
// SACK recovery: the window halves (s), the flow spends about one round trip on each loss event
// (p_e R), and where a retransmission is lost too (p) it waits for the timer (T_0). The classic
// PFTK takes every loss with fewer than three later packets for a timeout; selective
// acknowledgements, early retransmit and tail loss probes repair most of these, and with
// T_0 = 200 ms PFTK is several times too slow for today's Linux at 1 % of loss and short round
// trips.
//
// Window rounds: a window that a receiver, a buffer or a stream sets cannot move past a hole. The
// packets that are lost (p) need a second round trip, those lost twice a third, and so on. Bursts
// do not enter.
//
// Hold for p below 5 %. From there to 10 % CUBIC is measured up to 3.3 times slower than this, Reno
// within 25 %. Losses are random, not caused by the flow's own queue.
//
// Note that times never fall with R, p and T_0 and never rise with tau; that E is exactly 1
// without loss; and that a window over its rounds, n / E, never falls with n.
//
// Sources: Mathis, Semke, Mahdavi, Ott, CCR 1997 (Reno); RFC 9438 (CUBIC, its mean window and Reno
// region); Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998 (PFTK); RFC 6675 and RFC 8985 (recovery by
// selective acknowledgement and time); RFC 6298 and tcp(7) (timer, 200 ms at least on Linux);
// Linux, net/ipv4/tcp_output.c (bursts).
#ifndef STEPCAST_MODEL_NETWORK_CONGESTION_H_
#define STEPCAST_MODEL_NETWORK_CONGESTION_H_

#include <cmath>

#include "data/record/link.h"
#include "data/units/quantity.h"

namespace stepcast {

// Payload of a full Ethernet frame with TCP timestamps (1500 - 20 - 32 bytes).
inline constexpr double kSegmentBytes = 1448.0;
// Largest packet that offload makes, and its length in time (Linux).
inline constexpr double kMostBurstBytes = 65536.0;
inline constexpr Duration<> kOffloadBurst = Seconds(1.0 / 1024);
// CUBIC's window grows with C, and shrinks to beta at a loss (RFC 9438, sections 4.5 and 4.6).
inline constexpr double kCubicScaling = 0.4;
inline constexpr double kCubicDecrease = 0.7;

// p_e, for Reno's pace.
template <class T>
T LossEventRate(const T& loss, const Duration<T>& rtt, const Duration<T>& burst) {
  using std::sqrt;
  if (!(burst.si() > 0.0)) return loss;
  const T pace = rtt.si() * sqrt(2.0 / 3.0);
  const T tau = burst.si();
  const T root = 2.0 * loss * pace / (tau + sqrt(tau * tau + 4.0 * loss * pace * pace));
  const T events = root * root;
  const T least = loss * (kSegmentBytes / kMostBurstBytes);
  return events < least ? least : events;
}

template <class T>
Duration<T> RenoSegmentTime(const Duration<T>& rtt, const T& events, double segments_per_ack = 1) {
  using std::sqrt;
  return rtt * sqrt(events * (2.0 * segments_per_ack / 3.0));
}

template <class T>
Duration<T> AvoidanceSegmentTime(const Duration<T>& rtt, const T& events,
                                 CongestionControl congestion) {
  using std::pow;
  const Duration<T> reno = RenoSegmentTime(rtt, events);
  if (congestion != CongestionControl::kCubic || !(rtt.si() > 0.0)) return reno;
  const double scale = pow(kCubicScaling * (3 + kCubicDecrease) / (4 * (1 - kCubicDecrease)), 0.25);
  return Min(reno, rtt / (scale * pow(rtt.si() / events, 0.75)));
}

template <class T>
Duration<T> SackSegmentTime(const Duration<T>& rtt, const T& loss, const Duration<T>& burst,
                            const Duration<T>& timeout, CongestionControl congestion) {
  const T events = LossEventRate(loss, rtt, burst);
  return AvoidanceSegmentTime(rtt, events, congestion) + rtt * events + timeout * (loss * events);
}

template <class T>
Duration<T> PftkSegmentTime(const Duration<T>& rtt, const T& events, const Duration<T>& timeout,
                            double segments_per_ack) {
  using std::sqrt;
  const T expires = 3.0 * sqrt(events * (3.0 * segments_per_ack / 8.0));
  const T share = expires < 1.0 ? expires : T(1.0);
  return RenoSegmentTime(rtt, events, segments_per_ack) +
         timeout * (share * events * (1.0 + 32.0 * events * events));
}

// E, for a window of `segments`.
template <class T>
T WindowRounds(const T& loss, const T& segments) {
  using std::expm1;
  using std::log1p;
  constexpr int kMost = 48;
  T rounds = T(1.0);
  if (!(loss > 0.0)) return rounds;
  T lost = T(1.0);
  for (int j = 0; j < kMost; ++j) {
    lost = lost * loss;
    const T another = -expm1(segments * log1p(-lost));
    rounds = rounds + another;
    if (another < 1e-17) break;
  }
  return rounds;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_CONGESTION_H_
