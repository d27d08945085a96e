// A ring whose receivers ask for every segment: latency that comes with every so many bytes, and
// that no pipeline of rounds hides.
//
// The library cuts a message into segments of s bytes. The receiver announces that a segment may
// come, the sender answers with it, and no more than two announcements are open. The room that one
// announcement holds is free again after R + s/B, and there are two of them, so
//
//   from 3 workers on   1/B_hop = || 1/B, (1/B + R/s) / 2 ||_8,   T = 2 R + 2 (w-1)/w m / B_hop
//   between 2 workers   1/B_hop =  1/B + R/(2 s),                 T =             m / B_hop
//
//   B    what the link delivers to a long transfer                            [B/s]
//   s    bytes of a segment: m/w in the fewest equal pieces that are at most
//        1 MiB each, and in two at least                                      [B]
//   R    round trip, and what the hosts take to answer                        [s]
//   m, w bytes of the message, workers
//
// Two workers wait for each other: both segments of either travel together, then both links are
// idle for a round trip. In a ring of three or more the two segments are at different places, and
// only what the other segment does not hide is seen. The power joins the two regimes with a knee of
// some roundness; R = 0 costs less than 0.1 per cent. The rounds of the ring follow each other
// segment by segment, so a hop's latency is paid once in each of the two halves, by the first
// request and its answer, and not in each round.
//
// Holds for messages of at least 2 w segments of some hundred kilobytes, on links whose own window
// is larger than two segments. A transport without such requests is limited by its window only
// (model/network/transport.h).
//
// Note that the rate never exceeds B, and tends to 2 s/R for long round trips.
//
// Source: Gloo, gloo/allreduce.h and .cc (two segments, at most 1 MiB each) and the unbound buffers
// of its TCP transport (the request before each segment); the power and the two round trips from
// measurements among 2 to 16 hosts at 100 to 1000 Mbit/s and 0 to 20 ms, see
// docs/explanation/collectives.md.
#ifndef STEPCAST_MODEL_EXCHANGE_SEGMENTS_H_
#define STEPCAST_MODEL_EXCHANGE_SEGMENTS_H_

#include <algorithm>
#include <cmath>

#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"
#include "model/numeric/p_norm.h"

namespace stepcast {

// The segments into which a message is cut.
inline DataSize<> SegmentOf(int workers, const DataSize<>& message) {
  const DataSize<> share = message / static_cast<double>(workers);
  const DataSize<> largest = Mebibytes(1.0);
  return share / std::max(2.0, std::ceil(share / largest));
}

template <class T>
DataRate<T> SegmentedBandwidth(int workers, const DataRate<T>& line, const Duration<T>& round_trip,
                               const DataSize<T>& segment) {
  constexpr double kKnee = 8.0;
  const auto transfer = 1.0 / line;
  const auto wait = round_trip / segment;
  if (workers <= 2) return 1.0 / (transfer + wait / 2.0);
  return 1.0 / PNorm(transfer, (transfer + wait) / 2.0, kKnee);
}

// The all-reduce of messages about as large as `message`, which decides on the segments.
template <class T>
SyncCost<T> SegmentedRingAllreduce(int workers, const DataRate<T>& line,
                                   const Duration<T>& round_trip, const DataSize<>& message) {
  if (workers <= 1) return {};
  const DataSize<T> segment = SegmentOf(workers, message);
  const Hop<T> hop{{}, SegmentedBandwidth(workers, line, round_trip, segment)};
  return {round_trip * (workers == 2 ? 0.0 : 2.0), RingAllreduce(workers, hop).per_byte};
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SEGMENTS_H_
