// The cost of one synchronisation: what every call costs, and what every byte costs.
//
// Every collective and each phase of parameter servers is affine in the message, T(m) = per_call +
// per_byte m, and a pipelined ring the larger of two such costs (model/exchange/allreduce.h). The
// two numbers of an affine cost are the efficiency curve by which collectives are often described:
//
//   eta(m) = m / (m + m_half),   m_half = per_call / per_byte
//
//   eta     share of its largest rate that a call of m bytes reaches                    []
//   m_half  the message that reaches half of it                                         [B]
//
// and a rate that benchmarks of collectives print, which BusFactor of data/record/collective_call.h
// turns into the other one, that of a link:
//
//   algbw = m / T(m)
//
//   algbw   bytes of the message over the time of the call                              [B/s]
//
// Where the sum of what arrives does not hide behind the transfer, it adds (w-1)/w m c_reduce:
//
//   c_reduce  time to add up one byte                                                   [s/B]
//
// Note that eta, algbw and m_half exist for a cost that is not zero only: one worker has none.
//
// Sources: Hockney, Parallel Computing 20 (1994) (half-performance length); nccl-tests,
// doc/PERFORMANCE.md (algbw); Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) (reduction).
#ifndef STEPCAST_MODEL_EXCHANGE_COST_H_
#define STEPCAST_MODEL_EXCHANGE_COST_H_

#include "data/units/quantity.h"

namespace stepcast {

template <class T>
struct SyncCost {
  Duration<T> per_call;
  DurationPerByte<T> per_byte;

  template <class S>
  auto Time(const DataSize<S>& message) const {
    return per_call + per_byte * message;
  }
};

// One after the other.
template <class T>
SyncCost<T> operator+(const SyncCost<T>& a, const SyncCost<T>& b) {
  return {a.per_call + b.per_call, a.per_byte + b.per_byte};
}

// One hop between neighbours: the one-way cost of a message, and the rate at which bytes follow.
template <class T>
struct Hop {
  Duration<T> alpha;
  DataRate<T> bandwidth;
};

template <class T, class S>
auto Efficiency(const SyncCost<T>& cost, const DataSize<S>& message) {
  return cost.per_byte * message / cost.Time(message);
}

template <class T, class S>
auto AlgorithmBandwidth(const SyncCost<T>& cost, const DataSize<S>& message) {
  return message / cost.Time(message);
}

// An all-reduce whose additions do not hide behind its transfers.
template <class T>
SyncCost<T> WithReduction(const SyncCost<T>& cost, int workers, const DurationPerByte<T>& reduce) {
  const double w = workers;
  return {cost.per_call, cost.per_byte + reduce * ((w - 1) / w)};
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_COST_H_
