// Where scaling ends for one plan, and which term ends it: searched in whole predictions, and in
// closed form beside it.
//
// The search looks at every number of workers up to kEveryWorkerTo. Beyond, it looks at eight
// numbers in each doubling (full nodes), at the powers of two and at the last; bisects where an
// answer changes between two of them; and looks closer around the best. That is exact where the
// answer changes once between neighbours, which differ by 9 %, and takes no longer than some
// hundred predictions for a million workers.
//
// The closed forms (model/limits/limits.h) take their constants (hops, servers, backward pass) from
// the prediction at their own answer, which is bisected for. They differ from the search, and
// rightly,
//   - by what they leave out: stragglers, whose wait grows about as the root of ln w, and slow
//     start (both make the searched numbers smaller); and the wait for samples, of which
//     input_needed says from which rate on there is none;
//   - for compression by what the backward pass hides, which leaves less to save, and by the gap
//     between a link's rate and that of a hop over it: searched rates are those of links;
//   - by the growth of B_hop with log2 N, which moves constants but not the derivative: searched
//     best numbers are smaller where bytes matter, and throughput comes nowhere near a ceiling that
//     only latency sets;
//   - by rounding: real numbers stand for whole ones, on full nodes and powers of two (a step up
//     to two nodes, or beyond a power of two, is none in the law);
//   - for rings, whose rounds follow each other within a bucket, by taking buckets as equal;
//   - for strong scaling by the fixed and floor time of a micro-step, which no sharing shortens:
//     searched numbers are smaller once a worker's share is below the local batch;
//   - for buckets by whole tensors and the small first bucket, for servers by the time of the
//     update, of which every further server takes a part;
//   - for asynchronous servers by queues: closed numbers are bounds, and the servers are those with
//     which queues only begin, where the search wants none to be seen.
#ifndef STEPCAST_PREDICTOR_SEARCH_LIMITS_H_
#define STEPCAST_PREDICTOR_SEARCH_LIMITS_H_

#include <optional>
#include <string>
#include <vector>

#include "model/limits/limits.h"
#include "predictor/binding.h"
#include "predictor/predictor.h"
#include "predictor/search/payoff.h"

namespace stepcast {

inline constexpr int kEveryWorkerTo = 256;

struct ScalingPoint {
  int workers = 1;
  Duration<> step_time;
  SampleRate<> throughput;
  // Throughput / that of as many single workers with the samples that each has, and the update of
  // what each has of the model: weak scaling.
  double efficiency = 1;
};

// One limit in closed form: absent where the plan has no closed form for it, Limit::None where the
// closed form says that there is no end.
template <class Q>
using ClosedForm = std::optional<Limit<Q>>;

struct ClosedLimits {
  ClosedForm<SampleRate<>> ceiling;    // of weak scaling
  ClosedForm<double> half_ceiling;     // workers from which on throughput is above half of it
  ClosedForm<double> half_efficiency;  // workers, as in ScalingLimits
  ClosedForm<double> crossing;
  ClosedForm<double> strong_best_workers;
  ClosedForm<double> knee;  // ps-async: workers that queue no less than they compute alone
  // At reference_workers.
  ClosedForm<double> accumulation;  // not with queues of asynchronous workers, which it empties
  ClosedForm<double> buckets;
  ClosedForm<double> servers;
  // Rate of a hop below which the plan's compression pays, on one level of rings.
  ClosedForm<DataRate<>> compression;
};

// Numbers that do as well as the best of them; without an end where none tried does worse.
struct CountRange {
  int from = 1;
  std::optional<int> to;
};

struct LimitsOptions {
  int most_workers = 256;
  int strong_global_batch = 0;     // 0: that of the plan on one full node
  double target_efficiency = 0.9;  // between 0 and 1
};

// The machines that there are: the plan as given, or on all of the cluster where it says one
// worker.
struct GivenScaling {
  ScalingPoint point;
  double speedup = 1;  // its throughput / that of one worker
  Payoff payoff;       // where it is slower than one worker: what would make it as fast
};

struct ScalingLimits {
  // Absent for one worker on a cluster of no stated size.
  std::optional<GivenScaling> given;
  std::vector<ScalingPoint> curve;  // powers of two, and the last
  int most_workers = 1;             // to which the search went
  // Weak scaling: every worker keeps its batch. What holds from a number of workers on holds of all
  // larger ones that were looked at, for it may hold before and end again.
  std::optional<int> worth_it;         // fewest workers (2 or more) that beat a single one
  std::optional<int> worth_it_from;    // fewest from which on all do
  std::optional<int> half_efficiency;  // fewest from which efficiency stays below one half
  // The same of what as many devices would do that exchange nothing; another number where one
  // worker exchanges too, with servers.
  std::optional<int> half_utilisation;
  std::optional<int> crossing;      // fewest from which exposed synchronisation exceeds compute
  std::optional<int> half_ceiling;  // fewest from which throughput stays above half the ceiling
  int best_workers = 1;             // highest throughput within the search
  SampleRate<> best_throughput;
  double efficiency_at_most = 1;  // at most_workers
  // Strong scaling: the step's samples are shared out.
  int strong_global_batch = 0;
  int strong_best_workers = 1;  // shortest step
  Duration<> strong_best_step;
  Binding strong_binding;          // there
  Binding weak_binding;            // at most_workers
  std::vector<std::string> flags;  // of the prediction at most_workers, and of the search
  // How to spend less on synchronisation with reference_workers: the plan's own number, or as many
  // as the cluster has where the plan says one.
  int reference_workers = 1;
  double target_efficiency = 0.9;
  std::optional<int> accumulation;    // least, for that share of the step in micro-steps
  std::optional<CountRange> buckets;  // within kEnough of the shortest step
  std::optional<int> servers;         // fewest that come within kEnough of the shortest step
  // Samples that a node has to get for the step not to wait for any; where the plan says how many
  // it gets.
  std::optional<SampleRate<>> input_needed;
  // Line rate of a node's link below which the plan's compression makes a step shorter; absent
  // where it has none, crosses no link, or pays on none; kFastestPayoff where it pays on all.
  std::optional<DataRate<>> compression_pays_below;
  ClosedLimits closed;
};

// A step that is longer by this share than the shortest is as good.
inline constexpr double kEnough = 0.01;

// Scales `plan` by its workers, on as many nodes as that takes; its links, batch, accumulation,
// servers and strategy stay, but for servers on every node of the workers, which stay on every
// node, and backup workers, of which there are fewer than workers. The first hosts repeat. A plan
// that shares the model out within nodes takes full nodes alone, beyond one.
ScalingLimits FindScalingLimits(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                const LimitsOptions& options);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_LIMITS_H_
