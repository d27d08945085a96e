// The inverse questions of a plan: which bandwidth, round trip, loss, accumulation, batch or number
// of workers uses its devices so well, with all else as the plan says.
//
//   utilisation = throughput / that of as many devices that exchange nothing, at the same batch
//
// Where slow nodes take other samples, each device is held against one with its own; and the batch
// that is asked for is that of the others, theirs changing in proportion, rounded up.
//
// Each is found by bisection, because it never falls with more bandwidth or accumulation,
// and never rises with a longer round trip or more loss. With the batch it grows as long as compute
// takes longer for it; with the workers it falls, but for the step from two nodes to three, so that
// the answer for workers is the most of all tried numbers (powers of two, and those between that
// bisection asks for) that reach it. No bucket is asked for: it has its best between a few
// large ones and many small ones, and model/limits/limits.h says how many suffice.
//
// Note that a plan of one worker has no answers.
#ifndef STEPCAST_PREDICTOR_SEARCH_INVERSE_H_
#define STEPCAST_PREDICTOR_SEARCH_INVERSE_H_

#include <optional>
#include <vector>

#include "predictor/predictor.h"

namespace stepcast {

inline constexpr double kUtilisationsAsked[] = {0.5, 0.75, 0.9, 0.95, 0.99};

// What reaches one utilisation, each by itself; absent where nothing within reach does: a line rate
// of kFastestPayoff, an interval of kMostTriedAccumulation, a thousand times the batch. A round
// trip or a loss is the most that still does; absent where none at all does not.
struct WhatReaches {
  double utilisation = 0;
  std::optional<DataRate<>> bandwidth;
  std::optional<Duration<>> rtt;
  std::optional<double> loss;
  std::optional<int> accumulation_steps;
  std::optional<int> local_batch;
  std::optional<int> workers;
};

struct InverseAnswers {
  double utilisation = 1;  // of the plan as given
  // By how much throughput grows with links twice as fast; absent where nothing leaves a node.
  std::optional<double> twice_the_link;
  std::vector<WhatReaches> reaches;  // of kUtilisationsAsked
};

InverseAnswers AnswerInverseQuestions(const Predictor& predictor, const Plan& plan,
                                      int devices_per_node, int most_workers);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_INVERSE_H_
