#include "calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "calibrate/group_rows.h"
#include "calibrate/minimisation.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"
#include "calibrate/profile.h"
#include "calibrate/scatter.h"
#include "calibrate/slow_hosts.h"
#include "calibrate/starting_point.h"
#include "data/plan/check_spread.h"
#include "data/record/input_error.h"
#include "data/record/quantile.h"
#include "data/units/shortest.h"
#include "data/values/size_limits.h"
#include "data/values/workload_scope.h"
#include "model/compute/sheet_compute.h"
#include "model/numeric/run_parts.h"
#include "model/statistics/normal.h"
#include "model/statistics/scatter.h"

namespace stepcast {
namespace {

// Plans of the first sample, and by how much the next is larger.
constexpr std::size_t kFirstSample = 100;
constexpr std::size_t kSampleGrowth = 8;
// Plans on which the two shapes of a workload's curve are compared.
constexpr std::size_t kCurveSample = 480;

struct PlanPrediction {
  double log_step = 0;
  double sync_share = 0;
};

std::vector<PlanPrediction> Predict(const std::vector<PlanRows>& plans,
                                    const std::vector<double>& values) {
  std::vector<PlanPrediction> predictions;
  predictions.reserve(plans.size());
  for (const PlanRows& plan : plans) {
    const PlanAnswer answer = AnswerAt(plan, values);
    predictions.push_back({answer.log_step, answer.sync_share});
  }
  return predictions;
}

struct ScatterRows {
  std::vector<ScatterRow> all;
  std::map<int, std::vector<ScatterRow>> of;  // by the workload's offset
};

// What synchronisation adds to how steps differ, of the rows that state how they do: of what is
// left of their spread beside that of the workers, in logarithms, the slope by the exposed share,
// drawn towards what is believed as if one more row had shown it. Rows that hardly synchronise thus
// say little.
std::optional<double> SyncJitter(const std::vector<PlanRows>& plans,
                                 const std::vector<double>& values) {
  constexpr double kBelieved = 0.1;
  constexpr double kBelievedAt = 0.3;
  constexpr double kMost = 1;  // beyond, it is not the same exchange any more
  const auto square = [](double x) { return x * x; };
  const double q95 = NormalQuantile(0.95);
  bool any = false;
  double squares = square(square(kBelievedAt)) * square(kBelieved);
  double weights = square(square(kBelievedAt));
  for (const PlanRows& plan : plans) {
    if (!plan.spread || plan.spread->is_all()) continue;
    const PlanAnswer answer = AnswerAt(plan, values);
    const double of_workers = std::exp(plan.spread->Log(answer, StragglerSpreadOf(plan, values)));
    const double share = square(answer.step.exposed() / answer.step.total());
    for (const MeasuredRow& row : plan.rows) {
      if (!row.log_spread) continue;
      any = true;
      const double left =
          square(std::log1p(std::exp(*row.log_spread))) - square(std::log1p(of_workers));
      squares += share * std::max(0.0, left) / square(q95);
      weights += square(share);
    }
  }
  if (!any) return std::nullopt;
  return std::min(kMost, std::sqrt(squares / weights));
}

// How far measured steps are from what is believed of such a cluster, of those of some plans whose
// compute a data sheet tells of.
double PriorLogRatio(const CalibrationProblem& problem, const ParameterLayout& layout,
                     const std::vector<const PlanRows*>& plans) {
  const auto is_known = [&](const MeasuredRow& row) {
    const Run& run = problem.runs[static_cast<std::size_t>(row.run)];
    return HasSheetTime(problem.workloads.at(run.workload),
                        DataSheetOf(problem.devices, run.device));
  };
  std::vector<double> priors;
  for (const FittedParameter& p : layout.parameters()) priors.push_back(std::log(p.prior.si));
  std::vector<double> ratios;
  for (const PlanRows* plan : plans) {
    const PlanAnswer answer = AnswerAt(*plan, priors);
    for (const MeasuredRow& row : plan->rows) {
      if (is_known(row)) ratios.push_back(row.log_step - answer.log_step);
    }
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios.empty() ? 0 : Quantile(ratios, 0.5);
}

ScatterRows MakeScatterRows(const std::vector<PlanRows>& plans,
                            const std::vector<PlanPrediction>& predictions) {
  ScatterRows rows;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const MeasuredRow& row : plans[i].rows) {
      rows.all.push_back({row.log_step - predictions[i].log_step, predictions[i].sync_share});
      rows.of[plans[i].workload_offset].push_back(rows.all.back());
    }
  }
  return rows;
}

void CheckTimes(const Run& run) {
  const double seconds = run.step_time.in(kSeconds);
  if (!std::isfinite(seconds) || seconds <= 0) {
    throw InputError({run.place.file, run.place.line, "step_time_s"}, ShortestText(seconds),
                     "is no time of a step", "a finite time above 0");
  }
  CheckSpread(run);
}

// Runs of which a step was seen.
auto MeasuredRuns(const CalibrationProblem& problem) {
  return std::count_if(problem.runs.begin(), problem.runs.end(),
                       [](const Run& run) { return !run.stopped; });
}

// What a calibration names as the source of a run: its file, else what was said of it.
std::string SourceOf(const Run& run) {
  if (!run.place.file.empty()) return run.place.file;
  return run.source.empty() ? "runs without a source" : run.source;
}

Calibration MakeCalibration(const CalibrationProblem& problem, const ParameterLayout& layout,
                            const std::vector<double>& values, Eigen::MatrixXd covariance,
                            const std::vector<Interval>& intervals, Eigen::MatrixXd alternatives,
                            const ScatterRows& rows, const Scatter& prior_scatter) {
  Calibration c;
  c.version = STEPCAST_VERSION;
  const Scatter core = EstimateScatter(rows.all, prior_scatter);
  c.residual_log_sd = TotalScatter(rows.all, prior_scatter.compute);
  c.scatter[kAllScope] = IntervalScatter(rows.all, core);
  for (const auto& [offset, own] : rows.of) {
    c.scatter[layout.parameters()[static_cast<std::size_t>(offset)].scope] =
        IntervalScatter(own, EstimateScatter(own, core));
  }
  for (int i = 0; i < layout.size(); ++i) {
    const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(i)];
    ParameterEstimate e;
    e.scope = p.scope;
    e.name = p.spec->name;
    e.unit = p.spec->unit;
    e.value = std::exp(values[static_cast<std::size_t>(i)]) / p.spec->si_per_unit;
    e.log_sd = std::sqrt(covariance(i, i));
    const Interval& interval = intervals[static_cast<std::size_t>(i)];
    e.low = std::max(p.spec->low, e.value * std::exp(-interval.down));
    e.high = std::min(p.spec->high, e.value * std::exp(interval.up));
    e.prior_value = p.prior.si / p.spec->si_per_unit;
    e.prior_log_sd = PriorLogSd(layout, i);
    e.prior_source = p.source;
    e.decided_by = p.fixed ? DecidedBy::kStated : WhatDecided(e.log_sd, e.prior_log_sd);
    c.parameters.push_back(std::move(e));
  }
  c.log_covariance = std::move(covariance);
  c.alternatives = std::move(alternatives);
  std::map<std::string, int> files;
  for (const Run& run : problem.runs) {
    if (run.stopped) continue;  // no step of it was seen
    ++files[SourceOf(run)];
    if (problem.workloads.at(run.workload).communication_only) {
      c.range.IncludeMessage(problem.cluster, run.plan);
    } else {
      c.range.Include(problem.cluster, run.plan, ScopeOf(run, problem.workloads));
    }
  }
  for (const auto& [file, runs] : files) c.sources.push_back({file, runs});
  return c;
}

// Throws InputError where the runs, or what is said of them, are no problem to fit.
void CheckProblem(const CalibrationProblem& problem, const CalibrationOptions& options) {
  for (const Run& run : problem.runs) {
    if (problem.workloads.count(run.workload) > 0) continue;
    throw InputError({run.place.file, run.place.line, "workload"}, run.workload,
                     "is not a known workload");
  }
  if (!(options.step_log_sd > 0) || !std::isfinite(options.step_log_sd)) {
    throw InputError({"", 0, "step_log_sd"}, ShortestText(options.step_log_sd),
                     "is no scatter of a step", "a finite number above 0");
  }
  for (const Run& run : problem.runs) {
    CheckTimes(run);
  }
}

// A fit of more would be written, and read by nobody.
void RequireFewEstimates(const CalibrationProblem& problem, const ParameterLayout& layout) {
  if (layout.parameters().size() <= kMostEstimates) return;
  throw InputError({problem.runs.front().place.file, 0, ""}, "",
                   "has runs of too many workloads, devices and hosts: " +
                       std::to_string(layout.parameters().size()) + " values to fit",
                   "at most " + std::to_string(kMostEstimates));
}

// A fit to samples of the plans; each fit to more plans starts where that to fewer ended. What it
// tells of priors, and how often it iterated, goes into the outcome.
Fit FitSamples(const CalibrationProblem& problem, const ParameterLayout& layout,
               const std::vector<const PlanRows*>& shuffled, const CalibrationOptions& options,
               CalibrationOutcome* outcome) {
  const auto sample = [&](std::size_t size) {
    return std::vector<const PlanRows*>(
        shuffled.begin(), shuffled.begin() + static_cast<long>(std::min(size, shuffled.size())));
  };
  outcome->prior_log_ratio = PriorLogRatio(problem, layout, sample(kFirstSample));
  Fit fit = FindStart(problem, layout, sample(kFirstSample), options.max_iterations);
  outcome->iterations = fit.iterations + ImproveCurves(layout, sample(kCurveSample), &fit.values);
  for (std::size_t size = kFirstSample; fit.usable && size < shuffled.size();
       size *= kSampleGrowth) {
    fit = Minimisation(layout, sample(size), fit.values, {.threads = options.threads})
              .Solve(options.max_iterations, kStartTolerance);
    outcome->iterations += fit.iterations;
    outcome->iterations += ImproveHosts(layout, sample(size), options.max_iterations, &fit);
  }
  return fit;
}

// A fit to all plans, and how well each value is known.
struct KnownFit {
  Fit fit;
  Eigen::MatrixXd covariance;
  std::vector<Interval> intervals;
  Eigen::MatrixXd alternatives;  // as a calibration has them
};

// Where an interval, followed to its end, meets a better minimum, the fit starts there anew.
// Nothing where no fit is usable.
std::optional<KnownFit> FitAll(const ParameterLayout& layout,
                               const std::vector<const PlanRows*>& plans, const Fit& start,
                               const CalibrationOptions& options, int* iterations) {
  constexpr int kAttempts = 4;
  constexpr double kLower = 0.5;  // of the cost: a better minimum, not the same one more exactly
  KnownFit known;
  Fit& fit = known.fit;
  fit = start;
  for (int attempt = 0;; ++attempt) {
    Minimisation minimisation(layout, plans, fit.values, {.threads = options.threads});
    fit = minimisation.Solve(options.max_iterations, kFitTolerance);
    *iterations += fit.iterations;
    if (!fit.usable) return std::nullopt;
    std::optional<Eigen::MatrixXd> covariance = minimisation.Covariance();
    if (!covariance) return std::nullopt;
    known.covariance = std::move(*covariance);
    const bool follow = plans.size() <= options.profiled_plans;
    const std::size_t count = layout.parameters().size();
    known.intervals.assign(count, {});
    const Profile profile(layout, plans, fit, known.covariance);
    std::vector<Profile::Followed> followed(count);
    RunParts(count, follow ? options.threads : 1, [&](std::size_t i) {
      Profile::Followed& of_it = followed[i];
      of_it.lowest.cost = fit.cost;
      if (layout.parameters()[i].fixed) return;
      const int parameter = static_cast<int>(i);
      if (follow) {
        of_it = profile.Follow(parameter);
      } else {
        of_it.interval = profile.Linear(parameter);
      }
    });
    std::vector<Alternative> alternatives;
    for (std::size_t i = 0; i < count; ++i) {
      known.intervals[i] = followed[i].interval;
      std::move(followed[i].alternatives.begin(), followed[i].alternatives.end(),
                std::back_inserter(alternatives));
    }
    const auto better = std::min_element(
        followed.begin(), followed.end(),
        [](const auto& a, const auto& b) { return a.lowest.cost < b.lowest.cost; });
    if (attempt == kAttempts || better->lowest.cost > fit.cost - kLower) {
      known.alternatives = MovesTo(std::move(alternatives), fit, known.covariance);
      return known;
    }
    fit = std::move(better->lowest);
  }
}

// How far each run is from the fit.
void AddResiduals(const CalibrationProblem& problem, const std::vector<PlanRows>& plans,
                  const std::vector<PlanPrediction>& predictions, CalibrationOutcome* outcome) {
  const auto measured = MeasuredRuns(problem);
  outcome->residuals.resize(problem.runs.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const MeasuredRow& row : plans[i].rows) {
      const double log_ratio = row.log_step - predictions[i].log_step;
      outcome->residuals[static_cast<std::size_t>(row.run)] = {
          Seconds(std::exp(predictions[i].log_step)), log_ratio};
      outcome->mape += std::abs(std::exp(-log_ratio) - 1) / static_cast<double>(measured);
    }
    for (const StoppedRow& row : plans[i].stopped) {
      outcome->residuals[static_cast<std::size_t>(row.run)] = {
          Seconds(std::exp(predictions[i].log_step)),
          std::max(0.0, row.log_bound - predictions[i].log_step)};
    }
  }
}

}  // namespace

CalibrationOutcome Calibrate(const CalibrationProblem& problem, const CalibrationOptions& options) {
  CalibrationOutcome outcome;
  outcome.cluster = problem.cluster;
  outcome.cluster.calibration.reset();  // an earlier one is no part of this fit
  if (MeasuredRuns(problem) == 0) {
    outcome.status = CalibrationOutcome::Status::kNoRuns;
    outcome.message =
        problem.runs.empty()
            ? "There are no runs to learn from."
            : "All runs were stopped before a step ended: there is no time to learn from.";
    return outcome;
  }
  CheckProblem(problem, options);
  ParameterLayout layout(problem.cluster, problem.runs, problem.workloads, problem.devices,
                         problem.statements);
  RequireFewEstimates(problem, layout);
  std::vector<PlanRows> plans = GroupRows(problem, layout);
  for (PlanRows& plan : plans) plan.log_sd = options.step_log_sd;

  constexpr const char* kNoUsableFit = "The solver found no usable fit.";
  Fit fit = FitSamples(problem, layout, Shuffled(plans), options, &outcome);
  if (!fit.usable) {
    outcome.message = kNoUsableFit;
    return outcome;
  }
  while (std::optional<SlowHosts> slow = NextSlowHosts(problem, layout, plans, fit, options)) {
    layout = std::move(slow->layout);
    plans = std::move(slow->plans);
    fit = std::move(slow->fit);
  }
  const double typical =
      TypicalScatter(MakeScatterRows(plans, Predict(plans, fit.values)).all, options.step_log_sd);
  SetScatter(typical, &plans);
  std::optional<KnownFit> known =
      FitAll(layout, Shuffled(plans), fit, options, &outcome.iterations);
  if (!known) {
    outcome.message = kNoUsableFit;
    return outcome;
  }
  fit = std::move(known->fit);
  outcome.status = fit.converged ? CalibrationOutcome::Status::kConverged
                                 : CalibrationOutcome::Status::kNotConverged;
  outcome.message = fit.converged ? "The fit converged."
                                  : "The fit had not converged after " +
                                        std::to_string(fit.iterations) + " iterations.";
  const std::vector<PlanPrediction> predictions = Predict(plans, fit.values);
  AddResiduals(problem, plans, predictions, &outcome);
  Calibration calibration =
      MakeCalibration(problem, layout, fit.values, std::move(known->covariance), known->intervals,
                      std::move(known->alternatives), MakeScatterRows(plans, predictions),
                      {options.step_log_sd, options.step_log_sd});
  calibration.repeat_log_sd = RepeatScatter(plans);
  calibration.sync_jitter = SyncJitter(plans, fit.values);
  CountSlowRuns(problem, layout, plans, fit.values, &calibration.parameters);
  outcome.cluster.calibration = std::move(calibration);
  return outcome;
}

}  // namespace stepcast
