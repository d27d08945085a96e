#include "calibrate/calibrate.h"

#include <ceres/ceres.h>
#include <ceres/normal_prior.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "calibrate/parameter_layout.h"
#include "calibrate/step_residual.h"
#include "model/statistics/normal.h"

namespace stepcast {
namespace {

// Derivatives are carried four at a time: enough for SIMD, few enough for registers.
constexpr int kJetStride = 4;

// Steps scatter with heavier tails than a normal law. The fit weighs runs by the scatter of their
// core, where the median is; an interval that is to hold nine tenths of all steps is as wide as the
// quantile of nine tenths says.
constexpr double kCoreQuantile = 0.5;
constexpr double kIntervalQuantile = 0.9;

double Quantile(std::vector<double> values, double q) {
  const auto at = static_cast<long>(q * static_cast<double>(values.size()));
  const auto nth = values.begin() + std::min<long>(at, static_cast<long>(values.size()) - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

std::vector<StepResidual> MakeResiduals(const CalibrationProblem& problem,
                                        const ParameterLayout& layout) {
  std::map<std::pair<std::string, double>, std::shared_ptr<const std::vector<Bucket>>> buckets;
  std::vector<StepResidual> residuals;
  residuals.reserve(problem.runs.size());
  for (const Run& run : problem.runs) {
    const Workload& workload = problem.workloads.at(run.workload);
    const DataSize<> cap = run.plan.bucket.value_or(DefaultBucket(run.plan.strategy));
    auto& shared = buckets[{run.workload, cap.in(kBytes)}];
    if (!shared) {
      shared = std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, cap));
    }
    StepResidual residual;
    try {
      residual.facts = MakeStepFacts(problem.cluster, run.plan, workload, shared);
    } catch (const InputError& e) {
      throw InputError({run.place.file, run.place.line, e.place().key}, e.value(), e.problem(),
                       e.allowed());
    }
    residual.log_measured = std::log(run.step_time.in(kSeconds));
    residual.host_groups = static_cast<int>(layout.HostOffsets(run).size());
    residuals.push_back(std::move(residual));
  }
  return residuals;
}

std::vector<double*> BlocksOf(const Run& run, const ParameterLayout& layout, double* values) {
  std::vector<double*> blocks = {values + ParameterLayout::kClusterOffset,
                                 values + layout.WorkloadOffset(run)};
  for (const int offset : layout.HostOffsets(run)) blocks.push_back(values + offset);
  return blocks;
}

// Where the search begins: at the priors, but with each workload's curve through its own runs with
// the fewest workers, so that the first linearisation is near the data.
std::vector<double> StartingPoint(const CalibrationProblem& problem,
                                  const ParameterLayout& layout) {
  std::vector<double> values;
  for (const FittedParameter& p : layout.parameters()) values.push_back(std::log(p.prior.si));
  std::map<int, std::vector<const Run*>> fewest;  // by the workload's offset
  for (const Run& run : problem.runs) {
    std::vector<const Run*>& chosen = fewest[layout.WorkloadOffset(run)];
    if (!chosen.empty() && run.plan.workers() > chosen.front()->plan.workers()) continue;
    if (!chosen.empty() && run.plan.workers() < chosen.front()->plan.workers()) chosen.clear();
    chosen.push_back(&run);
  }
  for (const auto& [offset, runs] : fewest) {
    std::vector<double> per_sample;
    int smallest = runs.front()->plan.local_batch;
    for (const Run* run : runs) {
      per_sample.push_back(run->step_time.in(kSeconds) / run->plan.accumulation_steps /
                           run->plan.local_batch);
      smallest = std::min(smallest, run->plan.local_batch);
    }
    const double sample = 0.8 * Quantile(per_sample, 0.5);
    values[offset + kSampleTime] = std::log(sample);
    values[offset + kFixedTime] = std::log(0.3 * sample * smallest);
    values[offset + kFloorTime] = std::log(0.3 * sample * smallest);
  }
  return values;
}

struct Fit {
  std::vector<double> values;
  double cost = 0;
  int iterations = 0;
  bool usable = false;
  bool converged = false;
  std::string message;
};

// One minimisation at a given scatter. With `covariance` also that of the minimum.
Fit Minimise(const CalibrationProblem& problem, const ParameterLayout& layout,
             std::vector<StepResidual> residuals, double step_log_sd, int max_iterations,
             std::vector<double> start, Eigen::MatrixXd* covariance) {
  Fit fit;
  fit.values = std::move(start);
  double* const values = fit.values.data();
  ceres::Problem::Options problem_options;
  problem_options.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ceres::Problem ceres_problem(problem_options);
  ceres::SoftLOneLoss loss(1.0);

  for (const ParameterLayout::Block& block : layout.blocks()) {
    double* const at = values + block.offset;
    ceres_problem.AddParameterBlock(at, block.size);
    ceres::Matrix information = ceres::Matrix::Zero(block.size, block.size);
    ceres::Vector centre(block.size);
    for (int i = 0; i < block.size; ++i) {
      const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(block.offset + i)];
      const double low = std::log(p.spec->low * p.spec->si_per_unit);
      const double high = std::log(p.spec->high * p.spec->si_per_unit);
      ceres_problem.SetParameterLowerBound(at, i, low);
      ceres_problem.SetParameterUpperBound(at, i, high);
      at[i] = std::clamp(at[i], low, high);
      information(i, i) = 1 / p.prior.log_sd;
      centre[i] = std::log(p.prior.si);
    }
    ceres_problem.AddResidualBlock(new ceres::NormalPrior(information, centre), nullptr, at);
  }
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i].weight = 1 / step_log_sd;
    auto* cost = new ceres::DynamicAutoDiffCostFunction<StepResidual, kJetStride>(
        new StepResidual(residuals[i]));
    cost->AddParameterBlock(kClusterParameterCount);
    cost->AddParameterBlock(kWorkloadParameterCount);
    for (int h = 0; h < residuals[i].host_groups; ++h) cost->AddParameterBlock(1);
    cost->SetNumResiduals(1);
    ceres_problem.AddResidualBlock(cost, &loss, BlocksOf(problem.runs[i], layout, values));
  }

  ceres::Solver::Options options;
  options.max_num_iterations = max_iterations;
  options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  options.num_threads = 1;  // one order of summation: the same bits every time
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-9;
  options.parameter_tolerance = 1e-8;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &ceres_problem, &summary);
  fit.cost = summary.final_cost;
  fit.iterations = static_cast<int>(summary.iterations.size());
  fit.usable = summary.IsSolutionUsable();
  fit.converged = summary.termination_type == ceres::CONVERGENCE;
  fit.message = summary.message;
  if (covariance == nullptr || !fit.usable) return fit;

  std::vector<const double*> all;
  for (const ParameterLayout::Block& block : layout.blocks()) all.push_back(values + block.offset);
  ceres::Covariance::Options covariance_options;
  covariance_options.algorithm_type = ceres::DENSE_SVD;
  covariance_options.null_space_rank = -1;
  covariance_options.num_threads = 1;
  ceres::Covariance estimate(covariance_options);
  ceres::Matrix matrix(layout.size(), layout.size());
  fit.usable =
      estimate.Compute(all, &ceres_problem) && estimate.GetCovarianceMatrix(all, matrix.data());
  *covariance = matrix;
  return fit;
}

// Different starts for the parameter in which the cost has been seen to have two minima: whether
// the host or the flow holds a hop back.
Fit MinimiseFromSeveralStarts(const CalibrationProblem& problem, const ParameterLayout& layout,
                              const std::vector<StepResidual>& residuals, double step_log_sd,
                              int max_iterations) {
  constexpr double kHostFactors[] = {1.0, 0.3};
  Fit best;
  for (const double factor : kHostFactors) {
    std::vector<double> start = StartingPoint(problem, layout);
    start[ParameterLayout::kClusterOffset + kHostBandwidth] += std::log(factor);
    Fit fit = Minimise(problem, layout, residuals, step_log_sd, max_iterations, std::move(start),
                       nullptr);
    if (fit.usable && (!best.usable || fit.cost < best.cost)) best = std::move(fit);
  }
  return best;
}

std::vector<RunResidual> Predict(const CalibrationProblem& problem, const ParameterLayout& layout,
                                 const std::vector<StepResidual>& residuals,
                                 std::vector<double>* values) {
  std::vector<RunResidual> results;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const std::vector<double*> blocks = BlocksOf(problem.runs[i], layout, values->data());
    const double log_predicted = residuals[i].LogPredicted<double>(blocks.data());
    results.push_back(
        {Seconds(std::exp(log_predicted)), residuals[i].log_measured - log_predicted});
  }
  return results;
}

// The standard deviation of a normal law with the same quantile of |ln(measured / predicted)|,
// drawn towards what is known beforehand.
double EstimateScatter(const std::vector<RunResidual>& residuals, double quantile, double before) {
  std::vector<double> deviations;
  for (const RunResidual& r : residuals) deviations.push_back(std::abs(r.log_ratio));
  const double seen =
      Quantile(std::move(deviations), quantile) / NormalQuantile((1 + quantile) / 2);
  const auto n = static_cast<double>(residuals.size());
  return std::sqrt((n * seen * seen + kStepLogSdRuns * before * before) / (n + kStepLogSdRuns));
}

DecidedBy Decide(double log_sd, double prior_log_sd) {
  const double kept = log_sd * log_sd / (prior_log_sd * prior_log_sd);
  return kept < 0.25 ? DecidedBy::kData : kept < 0.75 ? DecidedBy::kBoth : DecidedBy::kPrior;
}

Calibration MakeCalibration(const CalibrationProblem& problem, const ParameterLayout& layout,
                            const Fit& fit, Eigen::MatrixXd covariance, double scatter) {
  Calibration c;
  c.version = STEPCAST_VERSION;
  c.residual_log_sd = scatter;
  for (int i = 0; i < layout.size(); ++i) {
    const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(i)];
    ParameterEstimate e;
    e.scope = p.scope;
    e.name = p.spec->name;
    e.unit = p.spec->unit;
    e.value = std::exp(fit.values[static_cast<std::size_t>(i)]) / p.spec->si_per_unit;
    e.log_sd = std::sqrt(covariance(i, i));
    e.prior_value = p.prior.si / p.spec->si_per_unit;
    e.prior_log_sd = p.prior.log_sd;
    e.decided_by = Decide(e.log_sd, e.prior_log_sd);
    c.parameters.push_back(std::move(e));
  }
  c.log_covariance = std::move(covariance);
  std::map<std::string, int> files;
  for (const Run& run : problem.runs) {
    c.range.max_workers = std::max(c.range.max_workers, run.plan.workers());
    c.range.max_nodes = std::max(c.range.max_nodes, run.plan.nodes());
    c.range.max_devices_per_node =
        std::max(c.range.max_devices_per_node, DevicesOnFullestNode(run.plan.placement));
    const int batch = run.plan.local_batch;
    auto& range = c.range.local_batch
                      .try_emplace(WorkloadScope(run.workload, run.device),
                                   CalibratedRange::BatchRange{batch, batch})
                      .first->second;
    range.min = std::min(range.min, batch);
    range.max = std::max(range.max, batch);
    ++files[run.place.file];
  }
  for (const auto& [file, runs] : files) c.sources.push_back({file, runs});
  return c;
}

}  // namespace

CalibrationOutcome Calibrate(const CalibrationProblem& problem, const CalibrationOptions& options) {
  CalibrationOutcome outcome;
  outcome.cluster = problem.cluster;
  if (problem.runs.empty()) {
    outcome.status = CalibrationOutcome::Status::kNoRuns;
    outcome.message = "There are no runs to learn from.";
    return outcome;
  }
  for (const Run& run : problem.runs) {
    if (problem.workloads.count(run.workload) > 0) continue;
    throw InputError({run.place.file, run.place.line, "workload"}, run.workload,
                     "is not a known workload");
  }
  const ParameterLayout layout(problem.cluster, problem.runs, problem.workloads, problem.devices);
  const std::vector<StepResidual> residuals = MakeResiduals(problem, layout);

  Fit fit = MinimiseFromSeveralStarts(problem, layout, residuals, options.step_log_sd,
                                      options.max_iterations);
  if (!fit.usable) {
    outcome.message = "The solver found no usable fit: " + fit.message;
    return outcome;
  }
  const double core = EstimateScatter(Predict(problem, layout, residuals, &fit.values),
                                      kCoreQuantile, options.step_log_sd);
  Eigen::MatrixXd covariance;
  const int first_iterations = fit.iterations;
  fit = Minimise(problem, layout, residuals, core, options.max_iterations, std::move(fit.values),
                 &covariance);
  if (!fit.usable) {
    outcome.message = "The solver found no usable fit: " + fit.message;
    return outcome;
  }
  outcome.status = fit.converged ? CalibrationOutcome::Status::kConverged
                                 : CalibrationOutcome::Status::kNotConverged;
  outcome.message = fit.converged ? "The fit converged."
                                  : "The fit had not converged after " +
                                        std::to_string(fit.iterations) + " iterations.";
  outcome.iterations = first_iterations + fit.iterations;
  outcome.residuals = Predict(problem, layout, residuals, &fit.values);
  for (const RunResidual& r : outcome.residuals) {
    outcome.mape += std::abs(std::exp(-r.log_ratio) - 1) / static_cast<double>(problem.runs.size());
  }
  outcome.cluster.calibration =
      MakeCalibration(problem, layout, fit, std::move(covariance),
                      EstimateScatter(outcome.residuals, kIntervalQuantile, options.step_log_sd));
  return outcome;
}

}  // namespace stepcast
