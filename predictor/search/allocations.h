// The best batch for every allocation that a job could get: what a scheduler asks of each job, each
// time it plans anew.
//
// By default an allocation is tried with the batches of predictor/search/batch_grid.h, those of
// Recommend. With `candidates` of them, global batches are spaced evenly by their logarithm from
// the least to the most that limits and memory leave; of a global batch M a worker's share is
// s = floor(M / w), the first rounded up, and is run in
//
//   a = ceil( s / b_max ) micro-steps of b = floor( s / a ) samples
//
//   b_max  the largest local batch: that of the limits, and no more than the device's memory holds
//
// The best has the highest goodput = throughput x statistical efficiency( m ). Where no noise scale
// says what a sample is worth, scores are throughputs, and the rule is that of Recommend: of the
// candidates within `tolerance` of the highest the smallest global batch wins, unless it is worse
// than the compiled plan's own batch, where that is among them.
//
//   efficiency(m) = (M_0 + B_noise) / (m + B_noise)                  model/statistics/noise_scale.h
//
//   m        samples of one update: b a (w - k), synchronous; b a, ps-async      [samples]
//   w, k     workers, backup workers among them
//   M_0      the batch that counts as fully worth                                [samples]
//   B_noise  gradient noise scale                                                [samples]
#ifndef STEPCAST_PREDICTOR_SEARCH_ALLOCATIONS_H_
#define STEPCAST_PREDICTOR_SEARCH_ALLOCATIONS_H_

#include <cstddef>
#include <optional>

#include "predictor/compiled_plan.h"
#include "predictor/search/batch_grid.h"

namespace stepcast {

struct Allocation {
  int workers = 1;
  int nodes = 1;
  int devices_per_node = 1;  // on the fullest node
  int servers = 0;
  std::optional<int> slow_nodes = {};  // as in PlanQuery
};

struct BatchSearch {
  int least_global_batch = 1;
  int most_global_batch = kDefaultMostGlobalBatch;
  int least_local_batch = 1;
  int most_local_batch = 0;  // 0: what memory holds and, of the default candidates, is trusted
  bool accumulate = true;    // whether micro-steps may be more than one
  int candidates = 0;        // 0: those of Recommend
  // Both, or throughput decides.
  std::optional<double> noise_scale;    // [samples]
  std::optional<double> initial_batch;  // M_0 [samples]
  double tolerance = kEqualScores;      // where throughput decides
};

// Whether a search makes sense: it may still find no batch, as where a most is below its least.
bool IsSearch(const BatchSearch& search) noexcept;
// What is wrong with one that makes none, or whose most is below its least, in the names of its
// members; nothing where all is right.
std::optional<QueryProblem> ProblemOf(const BatchSearch& search);

// How many batches a search tries for an allocation, at most.
int MostTried(const BatchSearch& search);

struct BatchChoice {
  int local_batch = 0;  // 0: no candidate fits; not of slow nodes with a slow_local_batch
  int accumulation_steps = 0;
  double step_time_s = 0;
  double throughput = 0;  // samples/s
  double statistical_efficiency = 1;
  double goodput = 0;  // throughput x statistical efficiency
};

// Fills choices[0..count) for allocations[0..count). Allocates nothing and throws nothing. An
// allocation without an answer has local_batch 0 and goodput 0. Returns how many those are.
std::size_t ChooseBatches(const CompiledPlan& compiled, const Allocation* allocations,
                          std::size_t count, const BatchSearch& search,
                          BatchChoice* choices) noexcept;

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_ALLOCATIONS_H_
