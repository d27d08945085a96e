// Which all-reduce is fastest for a message, and why.
//
// Of all algorithms that apply to w workers on N nodes, the one with the least T(m) = a + b m. The
// ring counts with its rounds pipelined, the larger of two such costs, of which a message takes one
// (PipelinedRing). Two costs with a_1 < a_2 and b_1 > b_2 tie at
//
//   m* = (a_2 - a_1) / (b_1 - b_2)
//
// so that the choice changes with the message: algorithms with few messages win below, those that
// move few bytes above. Libraries choose so as well, by thresholds found by measurement.
//
//   a, b   cost of a call and of a byte                                       [s], [s/B]
//   m*     the message at which the two best take equally long                [B]
//
// Holds as far as the formulas of model/exchange/allreduce.h do, all with the same hops: the
// implementations of a library may differ more than the algorithms. A tie says something about
// messages near it only: far from the message at hand the ring may take its other cost, and another
// algorithm may be better than both.
//
// Note that the least cost never falls with m, and that ties go to the algorithm that is named
// first: ring, tree, halving-doubling, hierarchical.
//
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) (choice by message size).
#ifndef STEPCAST_MODEL_EXCHANGE_CHOICE_H_
#define STEPCAST_MODEL_EXCHANGE_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"

namespace stepcast {

template <class T>
struct AllreduceCandidate {
  Strategy algorithm = Strategy::kRing;
  PipelinedRing<T> cost;  // both alike but for a ring
};

// The cost of one algorithm; kAllreduce is the ring that libraries use. `shape` is any that has
// workers; the algorithm one of kAllreduce, kRing, kTree, kHalvingDoubling, kHierarchical.
template <class T>
SyncCost<T> AllreduceCost(Strategy algorithm, const NodeShape& s, const Hop<T>& inter,
                          const Hop<T>& intra) {
  switch (algorithm) {
    case Strategy::kTree:
      return TreeOverNodes(s.nodes, s.devices, inter, intra, s.cards);
    case Strategy::kHalvingDoubling:
      return HalvingDoublingOverNodes(s.nodes, s.devices, inter, intra, s.cards);
    case Strategy::kHierarchical:
      return HierarchicalAllreduce(s.nodes, s.devices, inter, intra, s.cards);
    default:
      return FlatRingAllreduce(s, inter, intra);
  }
}

// The algorithms that apply. Two levels are another one only where there are two.
inline std::vector<Strategy> AllreduceAlgorithms(const NodeShape& shape) {
  std::vector<Strategy> algorithms = {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling};
  if (shape.nodes > 1 && shape.devices > 1) algorithms.push_back(Strategy::kHierarchical);
  return algorithms;
}

// All of them over the same hops.
template <class T>
std::vector<AllreduceCandidate<T>> AllreduceCandidates(const NodeShape& shape, const Hop<T>& inter,
                                                       const Hop<T>& intra) {
  std::vector<AllreduceCandidate<T>> candidates;
  for (const Strategy algorithm : AllreduceAlgorithms(shape)) {
    const SyncCost<T> cost = AllreduceCost(algorithm, shape, inter, intra);
    PipelinedRing<T> pipelined{cost, cost};
    if (algorithm == Strategy::kRing) {
      pipelined = PipelineRing(cost, shape.nodes > 1 ? inter.alpha : intra.alpha);
    }
    candidates.push_back({algorithm, pipelined});
  }
  return candidates;
}

template <class T>
struct AllreduceChoice {
  AllreduceCandidate<T> best;
  // The next best at this message; empty with one worker, where nothing is exchanged.
  std::optional<AllreduceCandidate<T>> next;
};

// Of at least one candidate.
template <class T, class S>
AllreduceChoice<T> ChooseAmong(const std::vector<AllreduceCandidate<T>>& candidates, int workers,
                               const DataSize<S>& message) {
  AllreduceChoice<T> choice{candidates.front(), std::nullopt};
  if (workers <= 1) return choice;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const auto time = candidates[i].cost.Time(message);
    if (time < choice.best.cost.Time(message)) {
      choice.next = choice.best;
      choice.best = candidates[i];
    } else if (!choice.next || time < choice.next->cost.Time(message)) {
      choice.next = candidates[i];
    }
  }
  return choice;
}

template <class T, class S>
AllreduceChoice<T> ChooseAllreduce(const NodeShape& shape, const Hop<T>& inter, const Hop<T>& intra,
                                   const DataSize<S>& message) {
  return ChooseAmong(AllreduceCandidates(shape, inter, intra), shape.workers, message);
}

// The message at which two costs tie; empty where one is never slower than the other.
inline std::optional<DataSize<>> TieMessage(const SyncCost<double>& a, const SyncCost<double>& b) {
  const Duration<> call = b.per_call - a.per_call;
  const DurationPerByte<double> byte = a.per_byte - b.per_byte;
  if (call.si() * byte.si() <= 0) return std::nullopt;
  return call / byte;
}

// One sentence that says what is best for the message, by how much, and why; and where the two best
// tie, if that is between a quarter and four times the message and with the costs that it takes.
inline std::string WhyChosen(const AllreduceChoice<double>& choice, const DataSize<>& message) {
  constexpr double kNear = 4;
  if (!choice.next) return "One worker has nothing to exchange.";
  const SyncCost<double>& best = choice.best.cost.Binding(message);
  const SyncCost<double>& next = choice.next->cost.Binding(message);
  const Duration<> time = best.Time(message);
  const Duration<> other = next.Time(message);
  const bool fewer_bytes = best.per_byte < next.per_byte;
  std::array<char, 160> reason{};
  if (other < time * 1.01) {
    std::snprintf(reason.data(), reason.size(), "the two differ by less than 1 %%");
  } else if (const std::optional<DataSize<>> tie = TieMessage(best, next); !tie) {
    std::snprintf(reason.data(), reason.size(),
                  "for messages like this it costs no more for a call and for a byte");
  } else {
    std::array<char, 64> where{};
    const bool same_costs = !(best.Time(*tie) < choice.best.cost.Time(*tie)) &&
                            !(next.Time(*tie) < choice.next->cost.Time(*tie));
    if (same_costs && message < *tie * kNear && *tie < message * kNear) {
      std::snprintf(where.data(), where.size(), ", which decides %s %.3g MB",
                    fewer_bytes ? "above" : "below", tie->in(kMegabytes));
    }
    std::snprintf(reason.data(), reason.size(), "it costs less for each %s%s",
                  fewer_bytes ? "byte" : "call", where.data());
  }
  std::array<char, 320> text{};
  std::snprintf(text.data(), text.size(),
                "For %.4g MB %s takes %.4g ms and %s, the next best, %.4g ms: %s.",
                message.in(kMegabytes), StrategyName(choice.best.algorithm), time.in(kMilliseconds),
                StrategyName(choice.next->algorithm), other.in(kMilliseconds), reason.data());
  return text.data();
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_CHOICE_H_
