// The throughput model of Pollux: seven numbers a job, fitted to its measured steps. It is no part
// of stepcast; the tests compare stepcast with it on the same runs.
//
//   A(b)    = alpha_c + beta_c b                                a step that does not synchronise
//   N(n, k) = alpha_n + beta_n max( k - 2, e )                  n > 1
//             alpha_r + beta_r max( k - 2, e )                  n = 1, k > 1
//             e + e max( k - 2, e )                             k = 1
//   O       = ( A^gamma + N^gamma )^(1/gamma)                   the step that synchronises
//   T       = ( a - 1 ) A + O                                   from one optimizer step to the next
//
//   n, k, a          nodes, workers, micro-steps of an optimizer step    [1]
//   b                samples of a worker's micro-step                    [samples]
//   alpha_c          constant part of compute                            [s]       >= e
//   beta_c           compute of a sample                                 [s]       >= e
//   alpha_n, alpha_r exchange of two workers, across nodes and in a node [s]       >= e
//   beta_n, beta_r   what every worker beyond two adds to it             [s]       >= e
//   gamma            sharpness of the overlap: 1 hides nothing           [1]       1 to 10
//   e                1e-8, in place of zero
//
// The fit minimises, over the measured pairs of A and O,
//
//   F = rms( ln A / A_measured ) + rms( ln O / O_measured )
//       + 1e-3 ( gamma - 1 )^2 + 1e-2 ( ( beta_n / alpha_n )^2 + ( beta_r / alpha_r )^2 )
//
// and keeps what the measurements cannot tell:
//
//   one batch only             alpha_c at half the mean A_measured
//   no run across nodes        alpha_n and beta_n at e; after the fit they are raised to 1.1 times
//                              alpha_r and beta_r where they are less
//   no run of n = 1 and k > 1  alpha_r and beta_r at e
//   no run of k > 2            beta_n and beta_r at e
//
// From a run, O_measured is the step and A_measured the step without its exposed synchronisation;
// each run counts once.
//
// Holds for synchronous all-reduce of one job whose links never change: the model sees neither
// the network nor the strategy, nor how workers are spread over nodes. N grows without bound with
// k, although the transfers of a ring do not; what was fitted on few workers overstates many.
//
// Note that T never falls with b or a, nor with k on as many nodes, and that O lies between the
// larger of A and N and their sum.
//
// The published code minimises F from one starting point with L-BFGS-B and stops near a minimum.
// Here each root is replaced by the parabola that touches it from above at the present point,
// sqrt( x ) <= x / ( 2 c ) + c / 2 with c the present root: what is then left is a least-squares
// problem with bounds, no step of which raises F. From several starting points the lowest F wins,
// so that the comparison does not rest on where a solver stopped.
//
// Source: Qiao et al., Pollux, OSDI 2021; constants and special cases are those of petuum/adaptdl,
// branch osdi21-artifact, commit c793c708: simulator/goodput.py (model, objective, bounds,
// starting point) and simulator/simulator.py (A and O of a measured step).
#ifndef STEPCAST_TESTS_CALIBRATE_POLLUX_MODEL_H_
#define STEPCAST_TESTS_CALIBRATE_POLLUX_MODEL_H_

#include <ceres/ceres.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/record/run.h"
#include "data/units/quantity.h"

namespace stepcast {

inline constexpr double kPolluxEpsilon = 1e-8;

// Times in seconds; the order is that of the published code.
template <class T>
struct PolluxValues {
  T alpha_c;
  T beta_c;
  T alpha_n;
  T beta_n;
  T alpha_r;
  T beta_r;
  T gamma;
};
using PolluxParameters = PolluxValues<double>;

inline constexpr int kPolluxParameterCount = 7;
// The same as an array, for solvers.
using PolluxArray = std::array<double, kPolluxParameterCount>;

inline PolluxArray ToArray(const PolluxParameters& p) {
  return {p.alpha_c, p.beta_c, p.alpha_n, p.beta_n, p.alpha_r, p.beta_r, p.gamma};
}
inline PolluxParameters ToPolluxParameters(const PolluxArray& x) {
  return {x[0], x[1], x[2], x[3], x[4], x[5], x[6]};
}

// A, of a micro-step of `batch` samples.
template <class T>
T PolluxAccumulationSeconds(const PolluxValues<T>& p, double batch) {
  return p.alpha_c + p.beta_c * batch;
}

// N.
template <class T>
T PolluxNetworkSeconds(const PolluxValues<T>& p, int nodes, int workers) {
  const double beyond_two = std::max(workers - 2.0, kPolluxEpsilon);
  if (nodes > 1) return p.alpha_n + p.beta_n * beyond_two;
  if (workers > 1) return p.alpha_r + p.beta_r * beyond_two;
  return T(kPolluxEpsilon + kPolluxEpsilon * beyond_two);
}

// ln O, on the ratio of the two, so that no power overflows.
template <class T>
T PolluxLogOptimizerSeconds(const T& accumulation, const T& network, const T& gamma) {
  using std::log;
  using std::pow;
  const T& hi = accumulation < network ? network : accumulation;
  const T& lo = accumulation < network ? accumulation : network;
  return log(hi) + log(1.0 + pow(T(lo / hi), gamma)) / gamma;
}

// O.
inline double PolluxOptimizerSeconds(const PolluxParameters& p, int nodes, int workers,
                                     double batch) {
  return std::exp(PolluxLogOptimizerSeconds(PolluxAccumulationSeconds(p, batch),
                                            PolluxNetworkSeconds(p, nodes, workers), p.gamma));
}

// T.
inline double PolluxStepSeconds(const PolluxParameters& p, const Plan& plan) {
  return (plan.accumulation_steps - 1) * PolluxAccumulationSeconds(p, plan.local_batch) +
         PolluxOptimizerSeconds(p, plan.nodes(), plan.workers(), plan.local_batch);
}

// A measured step, as the model sees it.
struct PolluxRow {
  int nodes = 1;
  int workers = 1;
  double batch = 1;         // samples of a worker's micro-step
  double accumulation = 0;  // A_measured, s
  double optimizer = 0;     // O_measured, s
};

// Of a run with accumulation, A is the mean of its micro-steps without the synchronisation. Throws
// InputError where the exposed synchronisation is not known, or is not less than the step; a single
// worker has none.
inline PolluxRow ToPolluxRow(const Run& run) {
  if (!run.exposed_sync && run.plan.workers() > 1) {
    throw InputError(run.place, "", "has no exposed synchronisation",
                     "a run of which it was measured");
  }
  const double step = run.step_time.in(kSeconds);
  const double sync = run.exposed_sync ? run.exposed_sync->in(kSeconds) : 0.0;
  if (!(sync < step)) {
    throw InputError(run.place, std::to_string(sync), "leaves no time to compute",
                     "an exposed synchronisation shorter than the step");
  }
  const double accumulation = (step - sync) / run.plan.accumulation_steps;
  return {run.plan.nodes(), run.plan.workers(), static_cast<double>(run.plan.local_batch),
          accumulation, accumulation + sync};
}

inline std::vector<PolluxRow> ToPolluxRows(const std::vector<Run>& runs) {
  std::vector<PolluxRow> rows;
  rows.reserve(runs.size());
  for (const Run& run : runs) rows.push_back(ToPolluxRow(run));
  return rows;
}

// The weights of the two penalties.
inline constexpr double kPolluxGammaPenalty = 1e-3;
inline constexpr double kPolluxGrowthPenalty = 1e-2;

// The two roots of F.
struct PolluxErrors {
  double accumulation = 0;
  double optimizer = 0;
};

inline PolluxErrors PolluxLogErrors(const PolluxParameters& p, const std::vector<PolluxRow>& rows) {
  PolluxErrors sum;
  for (const PolluxRow& row : rows) {
    const double accumulation = PolluxAccumulationSeconds(p, row.batch);
    const double network = PolluxNetworkSeconds(p, row.nodes, row.workers);
    const double a = std::log(accumulation / row.accumulation);
    const double o =
        PolluxLogOptimizerSeconds(accumulation, network, p.gamma) - std::log(row.optimizer);
    sum.accumulation += a * a;
    sum.optimizer += o * o;
  }
  const auto n = static_cast<double>(rows.size());
  return {std::sqrt(sum.accumulation / n), std::sqrt(sum.optimizer / n)};
}

// F.
inline double PolluxObjective(const PolluxParameters& p, const std::vector<PolluxRow>& rows) {
  const auto square = [](double x) { return x * x; };
  const PolluxErrors errors = PolluxLogErrors(p, rows);
  return errors.accumulation + errors.optimizer + kPolluxGammaPenalty * square(p.gamma - 1) +
         kPolluxGrowthPenalty * (square(p.beta_n / p.alpha_n) + square(p.beta_r / p.alpha_r));
}

// Where the published fit starts, and within what it stays; what is kept has one bound twice.
struct PolluxBox {
  PolluxArray start = {0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001};
  PolluxArray lower = {kLeast, kLeast, kLeast, kLeast, kLeast, kLeast, 1.0};
  PolluxArray upper = {kNone, kNone, kNone, kNone, kNone, kNone, 10.0};

  bool IsKept(std::size_t i) const { return lower[i] == upper[i]; }
  void Keep(std::size_t i, double value) { start[i] = lower[i] = upper[i] = value; }

 private:
  static constexpr double kLeast = kPolluxEpsilon;
  static constexpr double kNone = std::numeric_limits<double>::infinity();
};

inline bool HasRunsAcrossNodes(const std::vector<PolluxRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const PolluxRow& r) { return r.nodes > 1; });
}

inline PolluxBox MakePolluxBox(const std::vector<PolluxRow>& rows) {
  if (rows.empty()) throw std::invalid_argument("the model of Pollux cannot be fitted to no runs");
  const auto any = [&](auto holds) { return std::any_of(rows.begin(), rows.end(), holds); };
  if (any([](const PolluxRow& r) { return !(r.accumulation > 0 && r.optimizer > 0); })) {
    throw std::invalid_argument("the model of Pollux takes logarithms: a time must be more than 0");
  }
  PolluxBox box;
  if (!any([&](const PolluxRow& r) { return r.batch != rows.front().batch; })) {
    double sum = 0;
    for (const PolluxRow& row : rows) sum += row.accumulation;
    box.Keep(0, sum / static_cast<double>(rows.size()) / 2);
  }
  if (!HasRunsAcrossNodes(rows)) {
    box.Keep(2, kPolluxEpsilon);
    box.Keep(3, kPolluxEpsilon);
  }
  if (!any([](const PolluxRow& r) { return r.nodes == 1 && r.workers > 1; })) {
    box.Keep(4, kPolluxEpsilon);
    box.Keep(5, kPolluxEpsilon);
  }
  if (!any([](const PolluxRow& r) { return r.workers > 2; })) {
    box.Keep(3, kPolluxEpsilon);
    box.Keep(5, kPolluxEpsilon);
  }
  return box;
}

struct PolluxFit {
  PolluxParameters parameters = {};
  double objective = 0;  // F at the minimum, before alpha_n and beta_n are raised
};

namespace pollux_internal {

struct PolluxRowResidual {
  const PolluxRow* row;
  const PolluxErrors* touch;  // the roots of F where the parabolas touch it
  double rows;

  template <class T>
  bool operator()(const T* a_c, const T* b_c, const T* a_n, const T* b_n, const T* a_r,
                  const T* b_r, const T* gamma, T* residual) const {
    using std::log;
    const PolluxValues<T> p{*a_c, *b_c, *a_n, *b_n, *a_r, *b_r, *gamma};
    const T accumulation = PolluxAccumulationSeconds(p, row->batch);
    const T network = PolluxNetworkSeconds(p, row->nodes, row->workers);
    residual[0] = log(accumulation / row->accumulation) / std::sqrt(rows * touch->accumulation);
    residual[1] =
        (PolluxLogOptimizerSeconds(accumulation, network, p.gamma) - std::log(row->optimizer)) /
        std::sqrt(rows * touch->optimizer);
    return true;
  }
};

// Ceres halves the squares, hence the factor of two.
struct PolluxPenaltyResidual {
  template <class T>
  bool operator()(const T* a_n, const T* b_n, const T* a_r, const T* b_r, const T* gamma,
                  T* residual) const {
    residual[0] = (*gamma - 1.0) * std::sqrt(2 * kPolluxGammaPenalty);
    residual[1] = *b_n / *a_n * std::sqrt(2 * kPolluxGrowthPenalty);
    residual[2] = *b_r / *a_r * std::sqrt(2 * kPolluxGrowthPenalty);
    return true;
  }
};

// The minimum of F that lies downhill of `x`.
inline PolluxFit DescendPollux(const std::vector<PolluxRow>& rows, const PolluxBox& box,
                               PolluxArray x) {
  constexpr int kRounds = 100;  // about ten do, but in flat valleys
  constexpr double kSmallestGain = 1e-11;
  constexpr double kSmallestRoot = 1e-9;  // exact data must not divide by zero
  PolluxErrors touch;
  ceres::Problem problem;
  for (const PolluxRow& row : rows) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<PolluxRowResidual, 2, 1, 1, 1, 1, 1, 1, 1>(
            new PolluxRowResidual{&row, &touch, static_cast<double>(rows.size())}),
        nullptr, &x[0], &x[1], &x[2], &x[3], &x[4], &x[5], &x[6]);
  }
  problem.AddResidualBlock(new ceres::AutoDiffCostFunction<PolluxPenaltyResidual, 3, 1, 1, 1, 1, 1>(
                               new PolluxPenaltyResidual),
                           nullptr, &x[2], &x[3], &x[4], &x[5], &x[6]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (box.IsKept(i)) {
      problem.SetParameterBlockConstant(&x[i]);
      continue;
    }
    problem.SetParameterLowerBound(&x[i], 0, box.lower[i]);
    if (std::isfinite(box.upper[i])) problem.SetParameterUpperBound(&x[i], 0, box.upper[i]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  options.max_num_iterations = 100;
  options.function_tolerance = 1e-12;

  PolluxFit fit{ToPolluxParameters(x), PolluxObjective(ToPolluxParameters(x), rows)};
  for (int round = 0; round < kRounds; ++round) {
    const PolluxErrors errors = PolluxLogErrors(fit.parameters, rows);
    touch = {std::max(errors.accumulation, kSmallestRoot),
             std::max(errors.optimizer, kSmallestRoot)};
    ceres::Solver::Summary summary;
    ceres::Solve(options, &problem, &summary);
    const PolluxParameters next = ToPolluxParameters(x);
    const double objective = PolluxObjective(next, rows);
    const double gain = fit.objective - objective;
    if (!summary.IsSolutionUsable() || !(gain > 0)) break;
    fit = {next, objective};
    if (gain < kSmallestGain) break;
  }
  return fit;
}

}  // namespace pollux_internal

// Deterministic. Throws std::invalid_argument without rows, and where a time is not positive.
inline PolluxFit FitPolluxRows(const std::vector<PolluxRow>& rows) {
  const PolluxBox box = MakePolluxBox(rows);
  PolluxFit best;
  best.objective = std::numeric_limits<double>::infinity();
  // The published starting point, and others with less and more of the exchange and of overlap.
  for (const double gamma : {1.001, 3.0, 9.0}) {
    for (const double scale : {1.0, 0.1, 10.0}) {
      PolluxArray x = box.start;
      for (std::size_t i = 2; i < 6; ++i) {
        if (!box.IsKept(i)) x[i] *= scale;
      }
      x[6] = gamma;
      const PolluxFit fit = pollux_internal::DescendPollux(rows, box, x);
      if (fit.objective < best.objective) best = fit;
    }
  }
  if (!HasRunsAcrossNodes(rows)) {
    PolluxParameters& p = best.parameters;
    p.alpha_n = std::max(p.alpha_n, 1.1 * p.alpha_r);
    p.beta_n = std::max(p.beta_n, 1.1 * p.beta_r);
  }
  return best;
}

// Fits the runs of one job. Throws as ToPolluxRow and FitPolluxRows do.
inline PolluxParameters FitPollux(const std::vector<Run>& runs) {
  return FitPolluxRows(ToPolluxRows(runs)).parameters;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_CALIBRATE_POLLUX_MODEL_H_
