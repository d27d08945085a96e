// All-reduce with helper machines that have a network card and no devices (BytePS).
//
// Each of N machines with devices and k helpers sums a share of the gradients. A machine keeps the
// share x of the message for itself to sum, a helper the share y, and N x + k y = 1. Everybody
// pushes what others sum, then pulls the sums, and both directions run at once:
//
//   a machine sends    (1 - x) m pushed + (N-1) x m given back  = (1 + (N-2) x) m
//   a helper sends     N y m                                     at r = B_h / B of a card's rate
//
// Both take equally long when y = r (1 + (N-2) x) / N, which puts r k in the place of k:
//
//   T = 2 alpha + 2 N (N-1) m / ((N^2 + k' N - 2 k') B),   k' = min(N, r k)
//
//   alpha    one-way cost of a message; one push and one pull                 [s]
//   m, B     gradient bytes; bandwidth of a machine's card                    [B], [B/s]
//   N, k     machines with devices; helpers
//   B_h, r   bandwidth of a helper's card; as a share of B                    [B/s], []
//
// With g devices in a machine the message is first scattered among them and gathered in the end, as
// in the hierarchical all-reduce.
//
// Holds for shares cut freely, pushes and pulls pipelined through each other, a switch that does
// not block, and helpers whose processors add faster than their cards receive.
//
// Note that no helpers (k = 0) give the bytes of a ring, 2 (N-1)/N m/B; that k' = N gives the
// parameter servers' m/B, with x = 0; that further helpers change nothing; that two machines gain
// nothing from any helper; and that one machine costs nothing between machines.
//
// Source: Jiang, Zhu, Lan, Yi, Cui, Guo, OSDI 2020 (the optimum for r = 1; r is derived here).
#ifndef STEPCAST_MODEL_EXCHANGE_BYTEPS_H_
#define STEPCAST_MODEL_EXCHANGE_BYTEPS_H_

#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"

namespace stepcast {

// The share x of the message that each of `nodes` machines sums, with k' helpers of its own speed.
template <class T>
T BytePsMachineShare(int nodes, const T& helpers) {
  const double n = nodes;
  return (n - helpers) / (n * n + helpers * (n - 2));
}

// Of what each machine sends, the share that goes to others than the `near` machines on its switch:
// (1 - N x) m to helpers, which have switches of their own, and 2 x m for each machine elsewhere.
inline double BytePsLeavingShare(int nodes, double near, double helpers) {
  if (nodes <= 1) return 0;
  const double n = nodes;
  const double own = BytePsMachineShare(nodes, std::min(n, helpers));
  return std::min(1.0, (1 - n * own + 2 * own * (n - near)) / (1 + (n - 2) * own));
}

// Among machines with one card each.
template <class T>
SyncCost<T> BytePsAllreduce(int nodes, int helpers, const Hop<T>& hop,
                            const DataRate<T>& helper_bandwidth) {
  if (nodes <= 1) return {};
  const double n = nodes;
  T useful = static_cast<double>(helpers) * (helper_bandwidth / hop.bandwidth);
  if (useful > n) useful = T(n);
  return {hop.alpha * 2.0, (1.0 + (n - 2) * BytePsMachineShare(nodes, useful)) / hop.bandwidth};
}

template <class T>
SyncCost<T> BytePsOverNodes(int nodes, int devices, int helpers, const Hop<T>& inter,
                            const DataRate<T>& helper_bandwidth, const Hop<T>& intra,
                            int cards = 1) {
  // A machine is as fast as all the cards that it uses.
  const double used = std::min(devices, cards);
  const Hop<T> machine{inter.alpha, inter.bandwidth * used};
  return BytePsAllreduce(nodes, helpers, machine, helper_bandwidth) + RingAllreduce(devices, intra);
}

// The same with the pieces of the rings within machines following each other.
template <class T>
CallCost<T> PipelinedBytePs(int nodes, int devices, int helpers, const Hop<T>& inter,
                            const DataRate<T>& helper_bandwidth, const Hop<T>& intra,
                            int cards = 1) {
  // Called where it is returned: copies of it take a tenth of a compiled plan's interval.
  const auto within = [&] { return PipelineRing(RingAllreduce(devices, intra), intra.alpha); };
  if (nodes <= 1) return {within(), {}};
  const SyncCost<T> cost = BytePsOverNodes(
      nodes, 1, helpers,
      {inter.alpha, inter.bandwidth * static_cast<double>(std::min(devices, cards))},
      helper_bandwidth, intra);
  return {{cost, cost}, within()};
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_BYTEPS_H_
