// What a burst loses by starting slowly after the flow was idle.
//
//   lost = R ( K - (2^K - 1) 2^-k ),   k = min( log2(P / I), h ),   K = min( k, k_d )
//   P    = r R
//   h    = max( 0, idle / T_0 - 1/2 )
//   k_d  = max( 0, log2( (1 + d/I) / 2 ) )
//
//   d      bytes of the burst, of one flow                                         [B]
//   r      rate that the flow reaches (Deliver, over its flows)                    [B/s]
//   R      round-trip time                                                         [s]
//   I      initial window, 10 segments of 1448 B
//   P      bytes in flight at rate r                                               [B]
//   k      doublings from the first window to P
//   k_d    doublings that the burst is long enough for
//   idle   how long the flow was silent; unbounded when not given                  [s]
//   T_0    retransmission timeout                                                  [s]
//   h      halvings during the silence
//
// The window doubles each round trip until P bytes are in flight. Window number j, of P 2^(j-k)
// bytes, is sent at rate r and then waits for the rest of its round trip: R - R 2^(j-k) are lost,
// and K such terms add up to the first line, read for any K. Linux halves the window for each
// timeout of silence, down to I (switch: net.ipv4.tcp_slow_start_after_idle); idle / T_0 - 1/2 is
// the mean number of halvings. Steps of training that compute longer than a second start from I.
//
// Holds for flows whose last window was P. Bursts are counted in windows from I on, which is too
// many after a short silence. Loss during slow start is left out: with loss P is already small.
//
// Note that nothing is lost when 10 segments fill the pipe or hold the burst, nor for R = 0; that
// `lost` is never negative; and that, though a faster line loses more, d / r + lost never rises
// with r and never falls with d, R or idle.
//
// Sources: Cardwell, Savage, Anderson, INFOCOM 2000; RFC 6928 (10 segments); RFC 2861 (decay while
// idle).
#ifndef STEPCAST_MODEL_NETWORK_SLOW_START_H_
#define STEPCAST_MODEL_NETWORK_SLOW_START_H_

#include <cmath>
#include <optional>

#include "data/units/quantity.h"
#include "model/network/transport.h"

namespace stepcast {

inline constexpr double kInitialSegments = 10.0;  // RFC 6928

// The time lost against sending at Deliver's rate from the first byte. `message` is what all flows
// of the link carry together in one burst.
template <class T>
Duration<T> SlowStartDelay(const Path<T>& path, const DataSize<T>& message, double flows,
                           const std::optional<Duration<T>>& idle = std::nullopt) {
  using std::exp2;
  using std::log2;
  if (!(path.rtt.si() > 0.0)) return {};
  const DataSize<> first = Bytes(kInitialSegments * kSegmentBytes);
  const T pipe = Deliver(path, flows) * path.rtt / (first * flows);
  const T burst = 0.5 + 0.5 * (message / (first * flows));
  if (!(pipe > 1.0) || !(burst > 1.0)) return {};
  T doublings = log2(pipe);
  if (idle) {
    const T halvings = *idle / path.timeout - 0.5;
    if (!(halvings > 0.0)) return {};
    if (halvings < doublings) doublings = halvings;
  }
  const T needed = log2(burst);
  const T stalls = needed < doublings ? needed : doublings;
  return path.rtt * (stalls - (exp2(stalls) - 1.0) * exp2(-doublings));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_SLOW_START_H_
