// Broadcast from one worker to all, and reduction to one: the two halves of an exchange with a
// parameter server, and of a tree all-reduce that does not pipeline.
//
//   binomial            r (alpha + m/B)                       broadcast, and reduce mirrored
//   binomial, at once   r alpha + m sum_i max(c_i / B, 1 / B_f)   broadcast
//   chain, pipelined    (w-1) alpha + m/B                     either
//   scatter and gather  w alpha + (w-1)/w m (1/B_r + 1/B_g)   reduce
//
//   alpha  one-way cost of a message                                          [s]
//   m      bytes of the message                                               [B]
//   B, B_f bandwidth of a link, of one flow                                   [B/s]
//   B_r    bandwidth of a hop of the ring that reduces and scatters           [B/s]
//   B_g    rate at which the root receives from the w-1 others                [B/s]
//   w, r   workers; ceil(log2 w)
//   c_i    children of the i-th worker of the path 0, 1, 3, 7, ... that ends last
//
// The classic binomial tree sends to one child after another: the holders double each round. A
// library that starts all sends of a worker at once shares its link among them; they all end at
// c m/B and only then the child with most children begins. For w = 2^r that sums up to
// r (r+1)/2 m/B, three passes among 4 and six among 8. Worker v passes the message on to v + 2^i
// for every 2^i > v, so that worker 2^i - 1 is the one of its generation with most to do.
//
// The reduction by scatter and gather runs the first half of a ring all-reduce, then every worker
// sends its finished part to the root, all at once.
//
// Hold for whole messages passed on when they have arrived (the chain apart), full-duplex links, a
// switch that does not block.
//
// Note that one worker costs nothing, two workers alpha + m/B in every form but the last (with
// flows that fill a link), and that the sums run over at most 31 generations whatever the number of
// workers.
//
// Sources: Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) (binomial); Gloo, gloo/broadcast.cc and
// gloo/reduce.cc (sends started together; scatter and gather); Patarasuk & Yuan, JPDC 69 (2009).
#ifndef STEPCAST_MODEL_EXCHANGE_BROADCAST_H_
#define STEPCAST_MODEL_EXCHANGE_BROADCAST_H_

#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"

namespace stepcast {

template <class T>
SyncCost<T> BinomialBroadcast(int workers, const Hop<T>& hop) {
  const double rounds = DoublingRounds(workers);
  return {hop.alpha * rounds, rounds / hop.bandwidth};
}

// Reduce to one, by the same tree upwards, and broadcast from there: twice the passes of every
// round.
template <class T>
SyncCost<T> BinomialAllreduce(int workers, const Hop<T>& hop) {
  const SyncCost<T> once = BinomialBroadcast(workers, hop);
  return once + once;
}

// Children of worker 2^generation - 1, which got the message in that generation.
inline int BinomialChildren(int workers, int generation) {
  const long long worker = (1LL << generation) - 1;
  int children = 0;
  for (int i = generation; worker + (1LL << i) < workers; ++i) ++children;
  return children;
}

template <class T>
SyncCost<T> ConcurrentBinomialBroadcast(int workers, const Hop<T>& link, const DataRate<T>& flow) {
  SyncCost<T> cost{};
  for (int generation = 0; generation < DoublingRounds(workers); ++generation) {
    const int children = BinomialChildren(workers, generation);
    if (children == 0) break;
    cost.per_call += link.alpha;
    cost.per_byte += Max(static_cast<double>(children) / link.bandwidth, 1.0 / flow);
  }
  return cost;
}

template <class T>
SyncCost<T> ChainBroadcast(int workers, const Hop<T>& hop) {
  if (workers <= 1) return {};
  return {hop.alpha * (workers - 1.0), 1.0 / hop.bandwidth};
}

template <class T>
SyncCost<T> GatheringReduce(int workers, const Hop<T>& ring, const DataRate<T>& gather) {
  if (workers <= 1) return {};
  const double w = workers;
  const SyncCost<T> gathering{ring.alpha, ((w - 1) / w) / gather};
  return RingReduceScatter(workers, ring) + gathering;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_BROADCAST_H_
