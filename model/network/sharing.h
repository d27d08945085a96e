// A link that jobs share: what their exchanges cost each other while their steps drift, and what
// other traffic leaves them.
//
//   T    = C + X (1 + o)
//   o    = ( sum_k (k+1)! e_k ) / ( sum_k k! e_k ) - 1,  sum_k e_k z^k = prod_j ( 1 - r_j + r_j z )
//   o    = r     of one other job
//
//   T    step of a job beside the others                                          [s]
//   C    part of its step in which it does not send                               [s]   >= 0
//   X    time in which the link would carry what a step sends, if it were alone   [s]   >= 0
//   r_j  share of its own step in which the link would carry what another job sends in a direction,
//        if no other job were on it                                               [1]   0 to 1
//   o    exchanges of the others on the link, on average over ours                [1]   >= 0
//
//   B'   = ( B - min( b, a B / (1 + a + o) ) ) / ( 1 + o )
//
//   B, B'  line rate, and what of it a job's exchange has                          [B/s]
//   b      background: traffic of no training job, each way                        [B/s]   >= 0
//   a      exchanges that a steady flow counts for beside those of jobs            [1]
//          1 beside streams, 2.5 beside rounds that wait for each other
//
// A link gives each flow the same rate, and a job that has sent computes before it sends again: one
// customer of each class who goes back and forth between a server that is shared and a delay. Such
// a network has a product form, whatever the lengths of both are distributed like, and a job's
// throughput is the quotient of two of its constants, G(others) / G(all), G = sum_k k! e_k of the
// unscaled product prod_j ( C_j + X_j z ). What a job loses is then the time in which the others
// would send.
//
// Background traffic is as fast as who sends it, all the time: a copy that is throttled, a stream.
// It is one flow more on the link, which gives way beside a job's exchange and the o others, and
// makes up for it while they compute. Streams, as those to servers are, are taken to share fairly
// with it, which held beside copies of up to 60 % of the line; one that wanted all had 83 %. A ring
// waits for its slowest flow in each of its rounds, and its flows then find the link full of one
// that never pauses: of rings of two and three hosts beside TCP copies (100 Mbit/s, 2 ms), copies
// of 30 to 75 % of the line had all that they asked for, and those of 90 % had 71; a = 2.5 leaves
// them 71 at most, and forecasts these steps to a tenth. What gives no way at all (UDP) may take
// more: its rate is to be taken off the bandwidth instead.
//
// Exact on average where nothing hides and steps drift against each other, as those of different
// lengths do. Where an exchange hides behind the backward pass its step is taken at the link's rate
// over 1 + o: a half of a per cent off on average, against simulated jobs. Jobs of one and the same
// step lock, and may do better, or worse. A job that sends and receives in turn, as synchronous
// workers of servers on nodes of their own do, is on each direction for half of its exchange, and
// meets there those who are. It leaves out that a step that got longer sends less often beside a
// third job's hidden part, and flows in unequal numbers, of which TCP gives each the same.
//
// Note that o is nought exactly where nobody else sends, never falls with any r, is at least the
// sum of all r and at most the number of the others; and that B' is B / (1 + o) exactly where b is
// nought, never rises with b and never falls below B / (1 + a + o).
//
// Sources: Baskett, Chandy, Muntz, Palacios, J. ACM 22 (1975) (product forms); Reiser & Lavenberg,
// J. ACM 27 (1980) (throughput from constants); Rajasekaran et al., NSDI 2024 (jobs whose steps
// interleave); a network of namespaces for a.
#ifndef STEPCAST_MODEL_NETWORK_SHARING_H_
#define STEPCAST_MODEL_NETWORK_SHARING_H_

#include <cstddef>
#include <span>
#include <vector>

#include "data/units/quantity.h"

namespace stepcast {

// More jobs than this, and k! leaves the numbers that a double has.
inline constexpr int kMostJobsOnLink = 100;

// a, beside rounds that wait for each other.
inline constexpr double kSteadyBesideRounds = 2.5;

// o, of the shares r of the other jobs, at most kMostJobsOnLink.
template <class T>
T OthersOnLink(std::span<const T> shares) {
  std::vector<T> sending = {T(1.0)};  // e_k
  for (const T& share : shares) {
    sending.push_back(T(0.0));
    for (std::size_t k = sending.size(); k-- > 0;) {
      sending[k] = sending[k] * (1.0 - share) + (k > 0 ? sending[k - 1] * share : T(0.0));
    }
  }
  T all(0.0);
  T ours(0.0);
  double factorial = 1;  // k!
  for (std::size_t k = 0; k < sending.size(); ++k) {
    if (k > 0) factorial *= static_cast<double>(k);
    all += sending[k] * factorial;
    ours += sending[k] * (factorial * static_cast<double>(k));
  }
  return ours / all;
}

// B - B' (1 + o), beside an exchange in rounds or one of streams.
template <class T, class S>
DataRate<T> TakenByBackground(const DataRate<T>& line, const DataRate<S>& background,
                              const S& others, bool in_rounds) {
  const double steady = in_rounds ? kSteadyBesideRounds : 1;
  return Min(line * (steady / (1.0 + steady + others)), DataRate<T>::FromSi(T(background.si())));
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_SHARING_H_
