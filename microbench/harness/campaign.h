// Walks through a state space with a back end until every step's time is known well enough or the
// budget is spent.
//
// First every state is visited once, the largest first; then the budget goes where it cuts the
// uncertainty of the worst-known step most for each second that it takes. The variance of a step's
// sum is that of its parts,
//
//   v = sum_i (c_i t_i e_i)^2                                                             [s^2]
//
//   c_i   how often the point happens in the step                                          [1]
//   t_i   its median time                                                                  [s]
//   e_i   standard error of the median, as a share of it; falls with 1/sqrt(samples)       [1]
//
// so k more samples of point i, on top of n, cut it by (c t e)^2 k / (n + k) and cost k t.
//
// (an unknown e counts as 1). A point is visited with a few warm-up runs that do not count. Before
// a visit the device's reference work is timed, unless that was done within the last quarter of a
// second. Others use the device where it did not work for us all of the time; it is throttled where
// its driver says so, or where the reference takes longer than at best although nobody else is
// there. Such a visit is written down as flagged, and repeated later while there is time; a point
// that has unflagged samples is judged by these alone.
//
// The clock and what happens between visits are the caller's, so that all of this is tested on
// recorded times.
#ifndef STEPCAST_MICROBENCH_HARNESS_CAMPAIGN_H_
#define STEPCAST_MICROBENCH_HARNESS_CAMPAIGN_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/summary.h"
#include "microbench/harness/backend.h"
#include "microbench/harness/journal.h"
#include "microbench/harness/state_space.h"

namespace stepcast {

struct CampaignOptions {
  double budget_s = 120;
  // Standard error of a step's sum, as a share of it, at which it counts as known.
  double relative_error = 0.005;
  int warm_up = 2;      // runs of a visit that do not count, less for long ones
  int first_runs = 7;   // of the first visit
  int more_runs = 10;   // of each later one
  int most_runs = 400;  // of one point in all
  // Runs shorter than this in sum are repeated within a visit: a short operation is known better
  // at no cost.
  double least_visit_s = 0.01;
  // Runs longer than this in sum end a visit, after the least number that has an error.
  double most_visit_s = 2;
};

// How one step is known, at the end or on the way.
struct SumOutcome {
  MeasuredSum sum;
  double seconds = 0;         // of what was measured
  double relative_error = 0;  // of that; infinite while a part has no error
  int points = 0;
  int measured = 0;
  int out_of_memory = 0;
  int unsupported = 0;
};

struct CampaignProgress {
  std::size_t visited = 0;  // states of the first walk that are done
  std::size_t states = 0;
  double elapsed_s = 0;
  double left_s = 0;       // estimated, never beyond the budget
  bool refining = false;   // all are visited, and some are visited again
  double worst_error = 0;  // of any step, while refining
  const State* state = nullptr;
};

// The caller's clock, and its part between visits.
struct CampaignHooks {
  std::function<double()> now;        // [s], from any moment on
  std::function<std::string()> time;  // of day, ISO 8601 in UTC
  std::function<bool()> stop;         // whether to stop before the next run
  std::function<void(const CampaignProgress&)> progress;
};

enum class CampaignEnd {
  kKnown,      // every step, as well as asked for
  kExhausted,  // not all of them, and no point may be measured more often
  kBudgetSpent,
  kStopped,
};
inline constexpr const char* kCampaignEndNames[] = {"known", "runs spent", "budget spent",
                                                    "interrupted"};

struct CampaignOutcome {
  CampaignEnd end = CampaignEnd::kKnown;
  std::vector<SumOutcome> sums;
  std::size_t points = 0;
  std::size_t measured = 0;
  std::size_t out_of_memory = 0;
  std::size_t unsupported = 0;
  std::size_t missing = 0;     // not visited when it ended
  std::size_t taken_over = 0;  // known from an earlier start
  std::size_t busy = 0;        // points that have flagged samples alone
  std::size_t throttled = 0;
  std::size_t outliers = 0;  // samples
  std::size_t samples = 0;
  double elapsed_s = 0;
};

// Throws std::runtime_error where the device fails, InputError where the journal cannot be written.
// The journal then holds all that was measured before.
CampaignOutcome RunCampaign(const StateSpace& space, Backend* backend, Journal* journal,
                            const CampaignOptions& options, const CampaignHooks& hooks);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_CAMPAIGN_H_
