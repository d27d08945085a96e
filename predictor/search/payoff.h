// What would make a plan worth having: a faster network, or fewer synchronisations.
#ifndef STEPCAST_PREDICTOR_SEARCH_PAYOFF_H_
#define STEPCAST_PREDICTOR_SEARCH_PAYOFF_H_

#include <optional>
#include <string>

#include "predictor/predictor.h"

namespace stepcast {

// Each by itself, with all else as the plan says; absent where it does not help however far it
// goes: a line rate of kFastestPayoff, an interval of kMostTriedAccumulation.
struct Payoff {
  std::optional<DataRate<>> bandwidth;    // the slowest line rate from which on it pays
  std::optional<int> accumulation_steps;  // the fewest micro-steps from which on it pays
};
inline constexpr DataRate<> kFastestPayoff = GigabitsPerSecond(1e4);
// The slowest that searches of a line rate try.
inline constexpr DataRate<> kSlowestPayoff = MegabitsPerSecond(0.001);

// The plan on links of that rate. Servers have the workers' links unless the plan states theirs,
// which then change alike.
Plan WithLinks(Plan plan, DataRate<> rate);

// What makes `plan` reach `wanted`. Both searches bisect: more of either is never slower.
// `most_global_batch` bounds the accumulation; it may be infinite.
Payoff FindPayoff(const Predictor& predictor, const Plan& plan, SampleRate<> wanted,
                  double most_global_batch);

// "links of 1.2 Gbit/s, or 12 micro-steps accumulated (a global batch of 3,072)"; empty for none.
std::string PayoffText(const Payoff& payoff, const Plan& plan);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_PAYOFF_H_
