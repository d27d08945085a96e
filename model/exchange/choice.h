// Which all-reduce is fastest for a message, and why.
//
// The choice among all algorithms that apply to w workers on N nodes: the one with the least T(m) =
// a + b m. Rings count with their rounds pipelined, the larger of two such costs, of which a
// message takes one on each level (CallCost). Two costs with a_1 < a_2 and b_1 > b_2 tie at
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

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "data/record/strategy.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/cost.h"

namespace stepcast {

template <class T>
struct AllreduceCandidate {
  Strategy algorithm = Strategy::kRing;
  CallCost<T> cost;
};

// All of them over the same hops.
template <class T>
std::vector<AllreduceCandidate<T>> AllreduceCandidates(const NodeShape& shape, const Hop<T>& inter,
                                                       const Hop<T>& intra) {
  std::vector<AllreduceCandidate<T>> candidates;
  for (const Strategy algorithm : AllreduceAlgorithms(shape)) {
    candidates.push_back({algorithm, PipelinedAllreduce(algorithm, shape, inter, intra)});
  }
  return candidates;
}

template <class T>
struct AllreduceChoice {
  AllreduceCandidate<T> best;
  // The next best at this message; empty with one worker, where nothing is exchanged.
  std::optional<AllreduceCandidate<T>> next;
};

// The choice among one or more candidates.
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
std::optional<DataSize<>> TieMessage(const SyncCost<double>& a, const SyncCost<double>& b);

// One sentence that says what is best for the message, by how much, and why; and where the two best
// tie, if that is between a quarter and four times the message and with the costs that it takes.
std::string WhyChosen(const AllreduceChoice<double>& choice, const DataSize<>& message);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_CHOICE_H_
