// Many senders that answer one receiver at once share the last queue before it.
//
//   collapse when f > Q / (4 M);   wait = T_0 then, 0 otherwise
//
//   f     senders that send at the same time
//   Q     bytes that the queue before the receiver holds                            [B]
//   M     payload of a segment, 1448 B
//   T_0   retransmission timeout                                                    [s]
//
// A sender whose share of the queue is less than four segments cannot lose one and still see three
// duplicate acknowledgements, which fast retransmit needs; sooner or later in each burst one of the
// senders waits for its timer, and whoever waits for all of them waits with it. With four segments
// or more the queue drops packets, which are repaired at line rate: no collapse.
//
// A bound rather than a forecast: one timer a burst is the least that a collapse costs; selective
// acknowledgements and tail loss probes move its beginning to more senders; bytes that the link
// itself holds (B R) count for nothing here, so that a longer round trip never helps; pacing (BBR),
// ECN and flow control by the switch avoid it. Measured: 7 senders into 64 KiB (6.5 segments each)
// and into 512 KiB do not collapse.
//
// Note that the wait never falls with f and T_0 and never rises with Q.
//
// Sources: Phanishayee et al., FAST 2008; Vasudevan et al., SIGCOMM 2009; RFC 5681 (three duplicate
// acknowledgements).
#ifndef STEPCAST_MODEL_NETWORK_INCAST_H_
#define STEPCAST_MODEL_NETWORK_INCAST_H_

#include "data/units/quantity.h"
#include "model/network/congestion.h"

namespace stepcast {

// The packet that is lost and three behind it (RFC 5681, section 3.2).
inline constexpr double kLeastQueueSegments = 4.0;

// The most senders that a queue serves without timeouts.
template <class T>
T IncastSenders(const DataSize<T>& queue) {
  return queue / Bytes(kLeastQueueSegments * kSegmentBytes);
}

// The wait of a burst of `senders` beyond the time of its bytes.
template <class T>
Duration<T> IncastWait(const DataSize<T>& queue, double senders, const Duration<T>& timeout) {
  return IncastSenders(queue) < senders ? timeout : Duration<T>();
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_INCAST_H_
