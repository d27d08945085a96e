// Which all-reduce is fastest for a message, and why.
//
// Of all algorithms that apply to w workers on N nodes, the one with the least T(m) = a + b m. Two
// costs with a_1 < a_2 and b_1 > b_2 tie at
//
//   m* = (a_2 - a_1) / (b_1 - b_2)
//
// so that the choice changes with the message, and never back: algorithms with few messages win
// below, those that move few bytes above. Libraries choose so as well, by thresholds found by
// measurement.
//
//   a, b   cost of a call and of a byte                                       [s], [s/B]
//   m*     the message at which the two best take equally long                [B]
//
// Holds as far as the formulas of model/collective/allreduce.h do, all with the same hops: the
// implementations of a library may differ more than the algorithms.
//
// Note that the least of affine costs is concave in m and never falls with it, and that ties go to
// the algorithm that is named first: ring, tree, halving-doubling, hierarchical.
//
// Source: Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) (choice by message size).
#ifndef STEPCAST_MODEL_COLLECTIVE_CHOICE_H_
#define STEPCAST_MODEL_COLLECTIVE_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "model/collective/allreduce.h"
#include "model/collective/cost.h"

namespace stepcast {

template <class T>
struct AllreduceCandidate {
  Strategy algorithm = Strategy::kRing;
  SyncCost<T> cost;
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

// Every algorithm that applies. Two levels are another algorithm only where there are two.
template <class T>
std::vector<AllreduceCandidate<T>> AllreduceCandidates(const NodeShape& shape, const Hop<T>& inter,
                                                       const Hop<T>& intra) {
  std::vector<AllreduceCandidate<T>> candidates;
  for (const Strategy algorithm :
       {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
    const bool two_levels = shape.nodes > 1 && shape.devices > 1;
    if (algorithm == Strategy::kHierarchical && !two_levels) continue;
    candidates.push_back({algorithm, AllreduceCost(algorithm, shape, inter, intra)});
  }
  return candidates;
}

template <class T>
struct AllreduceChoice {
  AllreduceCandidate<T> best;
  // The next best at this message; empty with one worker, where nothing is exchanged.
  std::optional<AllreduceCandidate<T>> next;
};

// The best and the next best for a message; there is at least one candidate.
template <class T, class S>
AllreduceChoice<T> ChooseAmong(const std::vector<AllreduceCandidate<T>>& candidates,
                               const DataSize<S>& message) {
  AllreduceChoice<T> choice{candidates.front(), std::nullopt};
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
  const std::vector<AllreduceCandidate<T>> candidates = AllreduceCandidates(shape, inter, intra);
  if (shape.workers <= 1) return {candidates.front(), std::nullopt};
  return ChooseAmong(candidates, message);
}

// The message at which two costs tie; empty where one is never slower than the other.
inline std::optional<DataSize<>> TieMessage(const SyncCost<double>& a, const SyncCost<double>& b) {
  const Duration<> call = b.per_call - a.per_call;
  const DurationPerByte<double> byte = a.per_byte - b.per_byte;
  if (call.si() * byte.si() <= 0) return std::nullopt;
  return call / byte;
}

// One sentence that says what is best for the message, by how much, and up to or from where.
inline std::string WhyChosen(const AllreduceChoice<double>& choice, const DataSize<>& message) {
  if (!choice.next) return "One worker has nothing to exchange.";
  const std::string best = StrategyName(choice.best.algorithm);
  const std::string next = StrategyName(choice.next->algorithm);
  const double time = choice.best.cost.Time(message).in(kMilliseconds);
  const double other = choice.next->cost.Time(message).in(kMilliseconds);
  std::array<char, 320> text{};
  const auto write = [&](const char* reason) {
    std::snprintf(text.data(), text.size(),
                  "For %.4g MB %s takes %.4g ms and %s, the next best, %.4g ms: %s.",
                  message.in(kMegabytes), best.c_str(), time, next.c_str(), other, reason);
    return std::string(text.data());
  };
  const std::optional<DataSize<>> tie = TieMessage(choice.best.cost, choice.next->cost);
  if (!tie) {
    return write(time < other
                     ? "it costs no more for a call and for a byte, so it leads at any size"
                     : "they take equally long");
  }
  std::array<char, 160> reason{};
  const bool fewer_bytes = choice.best.cost.per_byte < choice.next->cost.per_byte;
  std::snprintf(reason.data(), reason.size(), "it %s, which decides %s %.4g MB",
                fewer_bytes ? "costs less for each byte" : "costs less for each call",
                fewer_bytes ? "above" : "below", tie->in(kMegabytes));
  return write(reason.data());
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_CHOICE_H_
