// How far one job may be from what the others of its cluster have shown.
//
//   J^2 = ( 1 + 1/n ) ( 1 - l(w_j) / l(w') ) sum_k ( s_k e_k )^2 ,   w' = min(w, W)
//   l(x) = log2 x
//
//   J      standard deviation of ln(step) that jobs differ by, beside that of parameters      [1]
//   e_k    elasticity of the step by parameter k of the cluster, d ln(step) / d ln(value)     [1]
//   s_k    standard deviation of ln(value) between the jobs of a cluster, each fitted alone   [1]
//   n      jobs whose fitted runs had more workers than the workload's own
//   w, W   workers of the plan, and the most that runs of those jobs had
//   w_j    the most of the workload's own fitted runs; 1 where it has none
//
// The jobs of a cluster share its parameters, and some of them only nearly: how much of the host a
// job needs beside its devices, how its tensors lie in the memory that they are copied from, and
// when its gradients are ready. Runs of n others tell their mean, from which one more differs by
// more than from what all have in common; each doubling of its own workers that the job has run
// tells a like part of that.
//
// Note that J is exactly 0 where the job has run on as many workers, where no other has run on
// more, as before any calibration, and for bare messages, which have no more of their own than
// their bytes.
//
// Source: s_k are what the jobs of AdaptDL, Sia, HKBU and TensorFlow's of 2017 differ by within
// their clusters, each fitted alone (tools/learn_priors --jobs-apart, which prints 0.89, 0.25 and
// 0.32). With them instead of a charge by the distance alone, intervals hold 87 to 100 per cent of
// the steps of seven sources' new jobs, before 77 to 100 (docs/reference/sources.md).
#ifndef STEPCAST_MODEL_STEP_JOB_SPREAD_H_
#define STEPCAST_MODEL_STEP_JOB_SPREAD_H_

#include <algorithm>
#include <optional>

#include "data/record/calibration.h"
#include "model/numeric/count_log2.h"
#include "model/step/parameters.h"
#include "model/step/step_facts.h"

namespace stepcast {

struct JobSpread {
  ClusterParameter of{};
  double log_sd = 0;
};
inline constexpr JobSpread kJobSpreads[] = {
    {kHostContention, 0.9}, {kHostBandwidth, 0.25}, {kOverlapShare, 0.32}};

// What the fitted runs of other jobs have shown that those of one job have not.
struct OtherJobs {
  int own = 1;     // w_j
  int others = 0;  // n
  int most = 1;    // W

  OtherJobs() = default;
  // `batches` are those of the workload, where runs of it were fitted.
  OtherJobs(const CalibratedRange& range,
            const std::optional<CalibratedRange::BatchRange>& batches) {
    if (batches) own = batches->max_workers;
    if (own == 0) return;  // the file does not say
    for (const auto& [scope, of] : range.local_batch) {
      if (of.max_workers <= own) continue;
      ++others;
      most = std::max(most, of.max_workers);
    }
  }
};

// J^2 of a plan with this gradient of ln(step) by the columns of model/step/answer.h.
template <class Gradient>
double JobVariance(const StepFacts& facts, const Gradient& log_step, const OtherJobs& jobs) {
  const int known = std::min(facts.workers, jobs.most);
  if (jobs.others == 0 || known <= jobs.own || !facts.has_compute) return 0;
  double variance = 0;
  for (const auto& [of, log_sd] : kJobSpreads) {
    const double off = log_sd * log_step[of];
    variance += off * off;
  }
  const double untold = 1 - CountLog2(jobs.own) / CountLog2(known);
  return (1 + 1.0 / jobs.others) * untold * variance;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_JOB_SPREAD_H_
