// What TCP delivers over one link.
//
//   rate  = min( B, f min( W / R, M / R sqrt(3 / (2 b_ack p)) ) )
//   wire  = bytes / (1 - p)
//
//   B      usable bandwidth of the link                                  [B/s]   > 0
//   R      round-trip time                                               [s]     >= 0
//   p      probability that a packet is lost                             [0, 1)
//   f      flows that share the link                                     >= 1
//   W      bytes that one flow may have in flight                        [B]
//   M      payload of a packet                                           [B]
//   b_ack  packets that one acknowledgement answers
//
// Holds for long transfers of loss-based congestion control (Reno, and CUBIC inside a cluster,
// whose cubic branch wins only for p < R^3 / 1.82 s^3). It leaves out timeouts, which dominate from
// a few per cent of loss on, and slow start: with loss it is an upper bound of the rate.
//
// Note that with p = 0 the loss limit is absent, not merely large, so that a lossless link gives
// the same bits whether its loss is stated or not; and that R = 0 lifts both limits.
//
// Sources: Mathis, Semke, Mahdavi, Ott, CCR 1997 (loss limit); RFC 9438 (CUBIC's Reno region);
// tcp(7) of Linux for the buffer limit, of which measurements on a shaped link with default buffers
// show 2.9 MB in flight.
#ifndef STEPCAST_MODEL_NETWORK_TRANSPORT_H_
#define STEPCAST_MODEL_NETWORK_TRANSPORT_H_

#include <cmath>

#include "data/units/quantity.h"

namespace stepcast {

// Payload of a full Ethernet frame with TCP timestamps (1500 - 20 - 32 bytes).
inline constexpr double kSegmentBytes = 1448.0;
// The same packet on the wire: 1500 + 14 header + 4 FCS + 8 preamble + 12 gap (IEEE 802.3).
inline constexpr double kFrameBytes = 1538.0;
// Delayed acknowledgements answer every second packet (RFC 5681, section 4.2).
inline constexpr double kSegmentsPerAck = 2.0;
inline constexpr double kWindowBytes = 2.9e6;

template <class T>
struct Path {
  DataRate<T> bandwidth;  // usable: headers already taken off
  Duration<T> rtt;
  double loss = 0;
};

template <class T>
DataRate<T> DeliveredBandwidth(const Path<T>& path, double flows) {
  using std::sqrt;
  DataRate<T> rate = path.bandwidth;
  if (path.rtt.si() > 0.0) {
    DataRate<T> one_flow = Bytes(kWindowBytes) / path.rtt;
    if (path.loss > 0.0) {
      const double segments_in_flight = sqrt(3.0 / (2.0 * kSegmentsPerAck * path.loss));
      one_flow = Min(one_flow, Bytes(kSegmentBytes * segments_in_flight) / path.rtt);
    }
    rate = Min(rate, one_flow * flows);
  }
  return rate * (1.0 - path.loss);
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_TRANSPORT_H_
