#include "calibrate/calibrate.h"

#include <ceres/ceres.h>
#include <ceres/normal_prior.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"
#include "calibrate/scatter.h"
#include "calibrate/solver.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

// Quantile of the standard normal that leaves 2.5 % on each side.
constexpr double kNinetyFivePercent = 1.959963984540054;

// Relative changes of the cost at which a search ends: of the search for a start, and of the fit. A
// fit to hundreds of runs then stands within a tenth of its standard errors.
constexpr double kStartTolerance = 1e-4;
constexpr double kFitTolerance = 1e-5;
// Share of the variance of a step that its repeats have in common: other layouts of one shape differ
// by 3 to 6 % where single steps scatter by 6 to 8 % (public traces).
constexpr double kSharedByRepeats = 0.3;

// Plans of the first sample, and by how much the next is larger.
constexpr std::size_t kFirstSample = 100;
constexpr std::size_t kSampleGrowth = 8;
// Plans on which the two shapes of a workload's curve are compared.
constexpr std::size_t kCurveSample = 480;

double Median(std::vector<double> values) {
  const auto nth = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

// ln(value) is normal around a centre, less the logarithm of another parameter.
class RelativePrior final : public ceres::CostFunction {
 public:
  RelativePrior(int size, int index, double centre, double log_sd)
      : size_(size), index_(index), centre_(centre), log_sd_(log_sd) {
    set_num_residuals(1);
    *mutable_parameter_block_sizes() = {size, 1};
  }

  bool Evaluate(double const* const* parameters, double* residuals,
                double** jacobians) const override {
    residuals[0] = (parameters[0][index_] + parameters[1][0] - centre_) / log_sd_;
    if (jacobians == nullptr) return true;
    if (jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], size_, 0.0);
      jacobians[0][index_] = 1 / log_sd_;
    }
    if (jacobians[1] != nullptr) jacobians[1][0] = 1 / log_sd_;
    return true;
  }

 private:
  int size_;
  int index_;
  double centre_;
  double log_sd_;
};

// What decides a plan's answer, as numbers: equal keys have equal answers.
using PlanKey = std::vector<double>;

PlanKey KeyOf(const StepFacts& f, const DataSize<>& bucket_cap, int workload_offset,
              const std::vector<int>& host_offsets) {
  const auto known = [](const auto& optional, auto si) { return optional ? si(*optional) : -1.0; };
  const auto quantity = [](const auto& q) { return q.si(); };
  const auto number = [](const auto& n) { return static_cast<double>(n); };
  PlanKey key = {number(workload_offset),
                 number(f.workers),
                 number(f.nodes),
                 number(f.devices_per_node),
                 f.batch,
                 number(f.accumulation_steps),
                 number(f.strategy),
                 number(f.servers),
                 number(f.overlap),
                 number(f.backup_workers),
                 number(f.server.colocated),
                 number(f.server.sharding),
                 number(f.server.pipelined),
                 number(f.server.multicast),
                 number(f.server.in_network_aggregation),
                 known(f.server.staleness_bound, number),
                 bucket_cap.si()};
  for (const LinkFacts* link : {&f.link, &f.server_link}) {
    key.push_back(known(link->bandwidth, quantity));
    key.push_back(known(link->rtt, quantity));
    key.push_back(known(link->loss, number));
    key.push_back(known(link->congestion_control, number));
    key.push_back(known(link->loss_burst, quantity));
  }
  for (const int offset : host_offsets) key.push_back(offset);
  return key;
}

// The exposed synchronisation of an all-reduce includes the wait for the slowest worker, because
// nobody's ends before everybody's began. What one device measures is the call alone.
std::optional<double> SyncShare(const Run& run) {
  if (!run.exposed_sync || run.plan.workers() == 1 || UsesServers(run.plan.strategy)) {
    return std::nullopt;
  }
  return *run.exposed_sync / run.step_time;
}

// In the order of the keys: by workload, then by size.
std::vector<PlanRows> GroupRows(const CalibrationProblem& problem, const ParameterLayout& layout) {
  std::map<std::pair<std::string, double>, std::shared_ptr<const std::vector<Bucket>>> buckets;
  std::map<PlanKey, PlanRows> plans;
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    const Run& run = problem.runs[i];
    const Workload& workload = problem.workloads.at(run.workload);
    const DataSize<> cap = run.plan.bucket.value_or(DefaultBucket(run.plan.strategy));
    auto& shared = buckets[{run.workload, cap.in(kBytes)}];
    if (!shared) {
      shared = std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, cap));
    }
    PlanRows plan;
    try {
      plan.facts = MakeStepFacts(problem.cluster, run.plan, workload, shared);
    } catch (const InputError& e) {
      throw InputError({run.place.file, run.place.line, e.place().key}, e.value(), e.problem(),
                       e.allowed());
    }
    plan.workload_offset = layout.WorkloadOffset(run);
    plan.host_offsets = layout.HostOffsets(run);
    PlanKey key = KeyOf(plan.facts, cap, plan.workload_offset, plan.host_offsets);
    PlanRows& group = plans.try_emplace(std::move(key), std::move(plan)).first->second;
    group.rows.push_back(
        {static_cast<int>(i), std::log(run.step_time.in(kSeconds)), SyncShare(run)});
  }
  std::vector<PlanRows> result;
  result.reserve(plans.size());
  for (auto& [key, plan] : plans) result.push_back(std::move(plan));
  return result;
}

// Where the search begins: at the priors, but with each workload's curve through its own runs with
// the fewest workers, so that the first linearisation is near the data.
std::vector<double> CurvesThroughFewestWorkers(const CalibrationProblem& problem,
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
    const double sample = 0.8 * Median(per_sample);
    const auto start = [&](int parameter, double si) {
      const auto at = static_cast<std::size_t>(offset + parameter);
      if (!layout.parameters()[at].fixed) values[at] = std::log(si);
    };
    start(kSampleTime, sample);
    start(kFixedTime, 0.3 * sample * smallest);
    start(kFloorTime, 0.3 * sample * smallest);
  }
  return values;
}

// The link, up to `fastest`, with which the model meets a row; none where no link that slow does.
std::optional<double> ImpliedLink(const PlanRows& plan, const MeasuredRow& row,
                                  const std::vector<double>& values, double fastest) {
  constexpr int kHalvings = 30;
  constexpr double kSlowest = 12;  // e-folds below the fastest
  const auto log_step = [&](double link) {
    return AnswerPlan(plan.facts, values.data(), values.data() + plan.workload_offset, &link,
                      Derivatives::kNone)
        .log_step;
  };
  double high = fastest;
  double low = fastest - kSlowest;
  if (log_step(high) > row.log_step) return high;
  if (log_step(low) < row.log_step) return std::nullopt;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = 0.5 * (low + high);
    (log_step(middle) > row.log_step ? low : high) = middle;
  }
  return high;
}

// The slowest of its hosts holds a run back, so a host is at least as fast as the fastest run that
// it took part in; begun elsewhere, a search may blame the wrong one for good.
void StartHostsAtTheirFastestRun(const ParameterLayout& layout,
                                 const std::vector<const PlanRows*>& plans,
                                 std::vector<double>* values) {
  std::map<int, double> fastest;  // by the host group's offset
  for (const PlanRows* plan : plans) {
    for (const int offset : plan->host_offsets) {
      const double prior = std::log(layout.parameters()[static_cast<std::size_t>(offset)].prior.si);
      for (const MeasuredRow& row : plan->rows) {
        const std::optional<double> link = ImpliedLink(*plan, row, *values, prior);
        if (!link) continue;
        const auto [it, first] = fastest.try_emplace(offset, *link);
        if (!first) it->second = std::max(it->second, *link);
      }
    }
  }
  for (const auto& [offset, link] : fastest) (*values)[static_cast<std::size_t>(offset)] = link;
}

struct Fit {
  std::vector<double> values;
  double cost = 0;
  int iterations = 0;
  bool usable = false;
  bool converged = false;
};

// One minimisation over `plans`. Bounds cost the solver a line search in each step, and parameters
// hardly ever meet theirs: it goes without them until a value has left its range.
class Minimisation {
 public:
  // With `only`, all other blocks keep their values; with `hold`, one parameter does.
  Minimisation(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans,
               std::vector<double> start, std::optional<int> only = std::nullopt,
               std::optional<int> hold = std::nullopt)
      : layout_(layout), values_(std::move(start)), hold_(hold) {
    for (const ParameterLayout::Block& block : layout.blocks()) {
      AddBlock(block);
      if (only && block.offset != *only) {
        problem_.SetParameterBlockConstant(values_.data() + block.offset);
      }
    }
    for (const PlanRows* plan : plans) {
      std::vector<double*> blocks = {values_.data() + ParameterLayout::kClusterOffset,
                                     values_.data() + plan->workload_offset};
      for (const int offset : plan->host_offsets) blocks.push_back(values_.data() + offset);
      problem_.AddResidualBlock(new PlanCost(plan), nullptr, blocks);
    }
  }

  Fit Solve(int max_iterations, double tolerance) {
    const std::vector<double> start = values_;
    Fit fit = SolveAsSet(max_iterations, tolerance);
    if (fit.usable && WithinBounds()) return fit;
    values_ = start;
    SetBounds();
    const int iterations = fit.iterations;
    fit = SolveAsSet(max_iterations, tolerance);
    fit.iterations += iterations;
    return fit;
  }

  // Solve as it is set.
  Fit SolveAsSet(int max_iterations, double tolerance) {
    ceres::Solver::Options options = MakeSolverOptions(max_iterations);
    options.function_tolerance = tolerance;
    // Each row has one workload: their blocks are eliminated first, at a cost linear in both.
    options.linear_solver_type = ceres::DENSE_SCHUR;
    auto ordering = std::make_shared<ceres::ParameterBlockOrdering>();
    for (const ParameterLayout::Block& block : layout_.blocks()) {
      const bool first = block.kind == ParameterLayout::Kind::kWorkload;
      ordering->AddElementToGroup(values_.data() + block.offset, first ? 0 : 1);
    }
    options.linear_solver_ordering = ordering;
    ceres::Solver::Summary summary;
    ceres::Solve(options, &problem_, &summary);
    Fit fit;
    fit.values = values_;
    fit.cost = summary.final_cost;
    fit.iterations = static_cast<int>(summary.iterations.size());
    fit.usable = summary.IsSolutionUsable();
    fit.converged = summary.termination_type == ceres::CONVERGENCE;
    return fit;
  }

  // Of the values, where they are now; empty where there is none.
  std::optional<Eigen::MatrixXd> Covariance() {
    std::vector<const double*> all;
    for (const ParameterLayout::Block& block : layout_.blocks()) {
      all.push_back(values_.data() + block.offset);
    }
    ceres::Covariance::Options options;
    options.algorithm_type = ceres::SPARSE_QR;
    options.num_threads = 1;
    ceres::Covariance estimate(options);
    ceres::Matrix matrix(layout_.size(), layout_.size());
    if (!estimate.Compute(all, &problem_) || !estimate.GetCovarianceMatrix(all, matrix.data())) {
      return std::nullopt;
    }
    return matrix;
  }

 private:
  void AddBlock(const ParameterLayout::Block& block) {
    double* const at = values_.data() + block.offset;
    problem_.AddParameterBlock(at, block.size);
    std::vector<int> fixed;
    ceres::Matrix information = ceres::Matrix::Zero(block.size, block.size);
    ceres::Vector centre = ceres::Vector::Zero(block.size);
    for (int i = 0; i < block.size; ++i) {
      const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(block.offset + i)];
      if (p.fixed) {
        fixed.push_back(i);
        continue;
      }
      at[i] = std::clamp(at[i], Low(p), High(p));
      if (hold_ == block.offset + i) fixed.push_back(i);
      if (p.relative_to >= 0) {
        AddRelativePrior(p, at, i, block.size);
      } else {
        information(i, i) = 1 / p.prior.log_sd;
        centre[i] = std::log(p.prior.si);
      }
    }
    problem_.AddResidualBlock(new ceres::NormalPrior(information, centre), nullptr, at);
    if (static_cast<int>(fixed.size()) == block.size) {
      problem_.SetParameterBlockConstant(at);
    } else if (!fixed.empty()) {
      problem_.SetManifold(at, new ceres::SubsetManifold(block.size, fixed));
    }
  }

  static double Low(const FittedParameter& p) {
    return std::log(p.spec->low * p.spec->si_per_unit);
  }
  static double High(const FittedParameter& p) {
    return std::log(p.spec->high * p.spec->si_per_unit);
  }

  bool WithinBounds() const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const FittedParameter& p = layout_.parameters()[i];
      if (values_[i] < Low(p) || values_[i] > High(p)) return false;
    }
    return true;
  }

  void SetBounds() {
    for (const ParameterLayout::Block& block : layout_.blocks()) {
      double* const at = values_.data() + block.offset;
      if (problem_.IsParameterBlockConstant(at)) continue;
      for (int i = 0; i < block.size; ++i) {
        const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(block.offset + i)];
        if (p.fixed) continue;
        problem_.SetParameterLowerBound(at, i, Low(p));
        problem_.SetParameterUpperBound(at, i, High(p));
      }
    }
  }

  // The prior was made at the efficiency that is believed before any run.
  void AddRelativePrior(const FittedParameter& p, double* at, int index, int size) {
    const double centre = std::log(p.prior.si * DeviceEfficiencyPrior().si);
    problem_.AddResidualBlock(new RelativePrior(size, index, centre, p.prior.log_sd), nullptr, at,
                              values_.data() + p.relative_to);
  }

  const ParameterLayout& layout_;
  std::vector<double> values_;
  std::optional<int> hold_;
  ceres::Problem problem_;
};

// In an order that has nothing to do with what they are, and is always the same, but for the first
// few of each workload, which come first: the first so many are a sample of all.
std::vector<const PlanRows*> Shuffled(const std::vector<PlanRows>& plans) {
  constexpr int kFewOfEach = 8;
  std::vector<const PlanRows*> pointers;
  for (const PlanRows& plan : plans) pointers.push_back(&plan);
  std::mt19937_64 random;
  for (std::size_t i = pointers.size(); i > 1; --i) {
    std::swap(pointers[i - 1], pointers[random() % i]);
  }
  std::map<int, int> seen;
  std::stable_partition(pointers.begin(), pointers.end(), [&](const PlanRows* plan) {
    return ++seen[plan->workload_offset] <= kFewOfEach;
  });
  return pointers;
}

std::vector<const PlanRows*> OfWorkload(const std::vector<const PlanRows*>& plans, int offset) {
  std::vector<const PlanRows*> chosen;
  for (const PlanRows* plan : plans) {
    if (plan->workload_offset == offset) chosen.push_back(plan);
  }
  return chosen;
}

// Half the squared robust residuals of the plans, without priors.
double CostOf(const std::vector<const PlanRows*>& plans, const std::vector<double>& values) {
  constexpr int kMostResiduals = 3;
  double cost = 0;
  for (const PlanRows* plan : plans) {
    std::vector<const double*> blocks = {values.data() + ParameterLayout::kClusterOffset,
                                         values.data() + plan->workload_offset};
    for (const int offset : plan->host_offsets) blocks.push_back(values.data() + offset);
    std::array<double, kMostResiduals> residuals{};
    const PlanCost plan_cost(plan);
    if (!plan_cost.Evaluate(blocks.data(), residuals.data(), nullptr)) {
      return std::numeric_limits<double>::infinity();
    }
    for (const double r : residuals) cost += 0.5 * r * r;
  }
  return cost;
}

bool HaveServers(const std::vector<const PlanRows*>& plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [](const PlanRows* plan) { return UsesServers(plan->facts.strategy); });
}

// Different starts where the cost has been seen to have several minima: whether the link, its flows,
// the host, or the servers' processors hold a hop back; what does not is not felt, and a search that
// begins with a bottleneck at the wrong place may never find the right one. Of a grid around the
// priors the points that are nearest to the data.
std::vector<std::vector<double>> GridStarts(const ParameterLayout& layout,
                                            const std::vector<const PlanRows*>& sample,
                                            const std::vector<double>& centre) {
  constexpr double kStep = 1.2;  // in ln
  constexpr std::size_t kStarts = 3;
  struct Axis {
    ClusterParameter parameter;
    std::vector<double> moves;
  };
  std::vector<Axis> axes = {{kLinkBandwidth, {-kStep, 0, kStep}},
                            {kFlowBandwidth, {-kStep, 0, kStep}},
                            {kHostBandwidth, {-kStep, 0, kStep}}};
  if (HaveServers(sample)) axes.push_back({kServerRate, {-kStep, 0}});

  std::vector<std::vector<double>> points = {centre};
  for (const Axis& axis : axes) {
    const std::size_t at = ParameterLayout::kClusterOffset + axis.parameter;
    if (layout.parameters()[at].fixed) continue;
    std::vector<std::vector<double>> moved;
    for (const std::vector<double>& point : points) {
      for (const double move : axis.moves) {
        moved.push_back(point);
        moved.back()[at] += move;
      }
    }
    points = std::move(moved);
  }
  std::vector<std::pair<double, std::size_t>> costs;
  for (std::size_t i = 0; i < points.size(); ++i) costs.emplace_back(CostOf(sample, points[i]), i);
  std::stable_sort(costs.begin(), costs.end());
  std::vector<std::vector<double>> chosen = {centre};
  for (std::size_t i = 0; i < costs.size() && chosen.size() < kStarts; ++i) {
    chosen.push_back(std::move(points[costs[i].second]));
  }
  return chosen;
}

// For each workload whether what no batch changes is a fixed time or the floor of the device, the
// other being small: two minima again.
int ImproveCurves(const ParameterLayout& layout, const std::vector<const PlanRows*>& sample,
                  std::vector<double>* values) {
  constexpr double kSmallShare = 0.1;
  constexpr int kMaxIterations = 8;
  int iterations = 0;
  for (const ParameterLayout::Block& block : layout.blocks()) {
    if (block.kind != ParameterLayout::Kind::kWorkload) continue;
    const std::vector<const PlanRows*> own = OfWorkload(sample, block.offset);
    if (own.empty()) continue;
    const auto fixed = static_cast<std::size_t>(block.offset + kFixedTime);
    const auto floor = static_cast<std::size_t>(block.offset + kFloorTime);
    if (layout.parameters()[fixed].fixed || layout.parameters()[floor].fixed) continue;
    const double both = std::exp((*values)[fixed]) + std::exp((*values)[floor]);
    Fit best = Minimisation(layout, own, *values, block.offset).Solve(0, kStartTolerance);
    for (const double share : {kSmallShare, 1 - kSmallShare}) {
      std::vector<double> start = *values;
      start[fixed] = std::log(share * both);
      start[floor] = std::log((1 - share) * both);
      Fit fit = Minimisation(layout, own, std::move(start), block.offset)
                    .Solve(kMaxIterations, kStartTolerance);
      iterations += fit.iterations;
      if (fit.usable && fit.cost < best.cost) best = std::move(fit);
    }
    *values = std::move(best.values);
  }
  return iterations;
}

// A sample of the plans is enough to tell minima apart.
Fit FindStart(const CalibrationProblem& problem, const ParameterLayout& layout,
              const std::vector<const PlanRows*>& sample, int max_iterations) {
  constexpr int kEnoughToTell = 20;  // iterations of each start, before the best goes on
  std::vector<double> centre = CurvesThroughFewestWorkers(problem, layout);
  StartHostsAtTheirFastestRun(layout, sample, &centre);
  Fit best;
  int iterations = 0;
  for (std::vector<double>& start : GridStarts(layout, sample, centre)) {
    Fit fit = Minimisation(layout, sample, std::move(start))
                  .Solve(std::min(max_iterations, kEnoughToTell), kStartTolerance);
    iterations += fit.iterations;
    if (best.values.empty() || (fit.usable && (!best.usable || fit.cost < best.cost))) {
      best = std::move(fit);
    }
  }
  best = Minimisation(layout, sample, best.values).Solve(max_iterations, kStartTolerance);
  iterations += best.iterations;
  // A server that just about sets the pace holds a search on its corner.
  const std::size_t server = ParameterLayout::kClusterOffset + kServerRate;
  if (HaveServers(sample) && !layout.parameters()[server].fixed) {
    for (const double move : {-1.0, 1.0}) {
      std::vector<double> start = best.values;
      start[server] += move;
      Fit fit = Minimisation(layout, sample, std::move(start))
                    .Solve(std::min(max_iterations, kEnoughToTell), kStartTolerance);
      iterations += fit.iterations;
      if (fit.usable && fit.cost < best.cost) best = std::move(fit);
    }
  }
  best.iterations = iterations;
  return best;
}

// Of a parameter whose prior is around another one's value, with what is not known of that.
double PriorLogSd(const ParameterLayout& layout, int parameter) {
  const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(parameter)];
  if (p.relative_to < 0) return p.prior.log_sd;
  const FittedParameter& other = layout.parameters()[static_cast<std::size_t>(p.relative_to)];
  return other.fixed ? p.prior.log_sd : std::hypot(p.prior.log_sd, other.prior.log_sd);
}

// Where ln(value) of a parameter ends in each direction when the cost, with all others fitted anew,
// has risen by as much as a 95 % interval allows; never less than the covariance says. A search on
// the way may find a lower cost than the fit's own.
class Profile {
 public:
  Profile(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans, const Fit& fit,
          const Eigen::MatrixXd& covariance)
      : layout_(layout), plans_(plans), fit_(fit), covariance_(covariance), better_(fit) {}

  double Reach(int parameter, double sign) {
    const double linear = LinearReach(parameter);
    const double prior = kNinetyFivePercent * PriorLogSd(layout_, parameter);
    // Of what nothing is known the prior says how far.
    if (linear > kNothingKnown * prior) return linear;
    const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(parameter)];
    const double value = fit_.values[static_cast<std::size_t>(parameter)];
    const double edge =
        std::abs(std::log((sign > 0 ? p.spec->high : p.spec->low) * p.spec->si_per_unit) - value);
    double inside = 0;
    double inside_root = 0;
    Fit at = fit_;
    for (double reach = linear;; reach *= kGrowth) {
      if (reach >= edge) return std::max(linear, edge);
      at = FitHolding(parameter, sign * reach, at);
      if (!at.usable) return std::max(linear, inside);
      const double rise = at.cost - fit_.cost;
      if (rise < better_.cost - fit_.cost) better_ = at;
      const double root = std::sqrt(std::max(0.0, rise));
      if (root >= kRootOfRise) {
        const double share = (kRootOfRise - inside_root) / (root - inside_root);
        return std::max(linear, inside + share * (reach - inside));
      }
      if (reach > kFarthest * prior) return reach;
      inside = reach;
      inside_root = root;
    }
  }

  double LinearReach(int parameter) const {
    return kNinetyFivePercent * std::sqrt(covariance_(parameter, parameter));
  }

  // The lowest cost that was met.
  const Fit& better() const { return better_; }

 private:
  static constexpr double kRootOfRise = kNinetyFivePercent / 1.4142135623730951;
  static constexpr double kNothingKnown = 0.98;
  static constexpr double kGrowth = 1.6;
  static constexpr double kFarthest = 1.2;
  static constexpr int kMaxIterations = 30;

  // The others begin where their correlation with the parameter takes them.
  Fit FitHolding(int parameter, double move, const Fit& from) const {
    std::vector<double> start = from.values;
    const auto at = static_cast<std::size_t>(parameter);
    const double step = fit_.values[at] + move - start[at];
    const double variance = covariance_(parameter, parameter);
    for (std::size_t i = 0; i < start.size(); ++i) {
      start[i] += step * covariance_(static_cast<long>(i), parameter) / variance;
    }
    return Minimisation(layout_, plans_, std::move(start), std::nullopt, parameter)
        .Solve(kMaxIterations, kStartTolerance);
  }

  const ParameterLayout& layout_;
  const std::vector<const PlanRows*>& plans_;
  const Fit& fit_;
  const Eigen::MatrixXd& covariance_;
  Fit better_;
};

struct PlanPrediction {
  double log_step = 0;
  double sync_share = 0;
};

std::vector<PlanPrediction> Predict(const std::vector<PlanRows>& plans,
                                    const std::vector<double>& values) {
  std::vector<PlanPrediction> predictions;
  predictions.reserve(plans.size());
  for (const PlanRows& plan : plans) {
    const double* link = nullptr;
    for (const int offset : plan.host_offsets) {
      const double* const at = values.data() + offset;
      if (link == nullptr || *at < *link) link = at;
    }
    const PlanAnswer answer = AnswerPlan(
        plan.facts, values.data(), values.data() + plan.workload_offset, link, Derivatives::kNone);
    predictions.push_back({answer.log_step, answer.sync_share});
  }
  return predictions;
}

struct ScatterRows {
  std::vector<ScatterRow> all;
  std::map<int, std::vector<ScatterRow>> of;  // by the workload's offset
};

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

// Of runs of one plan among themselves: no model can be nearer to them. Empty without repeats.
std::optional<double> RepeatScatter(const std::vector<PlanRows>& plans) {
  double squares = 0;
  int degrees = 0;
  for (const PlanRows& plan : plans) {
    double mean = 0;
    for (const MeasuredRow& row : plan.rows) mean += row.log_step;
    mean /= static_cast<double>(plan.rows.size());
    for (const MeasuredRow& row : plan.rows) squares += std::pow(row.log_step - mean, 2);
    degrees += static_cast<int>(plan.rows.size()) - 1;
  }
  if (degrees == 0) return std::nullopt;
  return std::sqrt(squares / degrees);
}

DecidedBy Decide(double log_sd, double prior_log_sd) {
  const double kept = log_sd * log_sd / (prior_log_sd * prior_log_sd);
  return kept < 0.25 ? DecidedBy::kData : kept < 0.75 ? DecidedBy::kBoth : DecidedBy::kPrior;
}

// Repeats share part of their deviation: what is special about a plan, its hosts or its hour. The
// standard deviation of each of n rows that makes them worth as much together as they are.
double RepeatFactor(std::size_t n) {
  return std::sqrt(1 - kSharedByRepeats + kSharedByRepeats * static_cast<double>(n));
}

// In ln(value), both positive.
struct Interval {
  double down = 0;
  double up = 0;
};

Calibration MakeCalibration(const CalibrationProblem& problem, const ParameterLayout& layout,
                            const std::vector<double>& values, Eigen::MatrixXd covariance,
                            const std::vector<Interval>& intervals, const ScatterRows& rows,
                            const Scatter& prior_scatter) {
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
    e.decided_by = p.fixed ? DecidedBy::kStated : Decide(e.log_sd, e.prior_log_sd);
    c.parameters.push_back(std::move(e));
  }
  c.log_covariance = std::move(covariance);
  std::map<std::string, int> files;
  for (const Run& run : problem.runs) {
    ++files[run.place.file];
    // A bare message says nothing of how training scales.
    if (problem.workloads.at(run.workload).communication_only) continue;
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
  }
  for (const auto& [file, runs] : files) c.sources.push_back({file, runs});
  return c;
}

}  // namespace

CalibrationOutcome Calibrate(const CalibrationProblem& problem, const CalibrationOptions& options) {
  CalibrationOutcome outcome;
  outcome.cluster = problem.cluster;
  outcome.cluster.calibration.reset();  // an earlier one is no part of this fit
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
  if (!(options.step_log_sd > 0) || !std::isfinite(options.step_log_sd)) {
    throw InputError({"", 0, "step_log_sd"}, std::to_string(options.step_log_sd),
                     "is no scatter of a step", "a finite number above 0");
  }
  for (const Run& run : problem.runs) {
    const double seconds = run.step_time.in(kSeconds);
    if (std::isfinite(seconds) && seconds > 0) continue;
    throw InputError({run.place.file, run.place.line, "step_time_s"}, std::to_string(seconds),
                     "is no time of a step", "a finite time above 0");
  }
  const ParameterLayout layout(problem.cluster, problem.runs, problem.workloads, problem.devices,
                               problem.statements);
  std::vector<PlanRows> plans = GroupRows(problem, layout);
  const Scatter prior_scatter = {options.step_log_sd, options.step_log_sd};
  for (PlanRows& plan : plans) plan.log_sd = options.step_log_sd;

  const std::vector<const PlanRows*> shuffled = Shuffled(plans);
  const auto sample = [&](std::size_t size) {
    return std::vector<const PlanRows*>(
        shuffled.begin(), shuffled.begin() + static_cast<long>(std::min(size, shuffled.size())));
  };
  // Each fit to more plans starts where that to fewer ended.
  Fit fit = FindStart(problem, layout, sample(kFirstSample), options.max_iterations);
  outcome.iterations = fit.iterations + ImproveCurves(layout, sample(kCurveSample), &fit.values);
  for (std::size_t size = kFirstSample; fit.usable && size < plans.size(); size *= kSampleGrowth) {
    fit = Minimisation(layout, sample(size), fit.values)
              .Solve(options.max_iterations, kStartTolerance);
    outcome.iterations += fit.iterations;
  }
  if (!fit.usable) {
    outcome.message = "The solver found no usable fit.";
    return outcome;
  }
  const double typical =
      TypicalScatter(MakeScatterRows(plans, Predict(plans, fit.values)).all, options.step_log_sd);
  for (PlanRows& plan : plans) plan.log_sd = typical * RepeatFactor(plan.rows.size());
  std::optional<Eigen::MatrixXd> covariance;
  std::vector<Interval> intervals;
  for (int attempt = 0;; ++attempt) {
    Minimisation minimisation(layout, shuffled, fit.values);
    fit = minimisation.Solve(options.max_iterations, kFitTolerance);
    outcome.iterations += fit.iterations;
    if (fit.usable) covariance = minimisation.Covariance();
    if (!fit.usable || !covariance) {
      outcome.message = "The solver found no usable fit.";
      return outcome;
    }
    Profile profile(layout, shuffled, fit, *covariance);
    const bool follow = plans.size() <= options.profiled_plans;
    intervals.clear();
    for (int i = 0; i < layout.size(); ++i) {
      const bool fixed = layout.parameters()[static_cast<std::size_t>(i)].fixed;
      Interval interval;
      if (!fixed && follow) interval = {profile.Reach(i, -1), profile.Reach(i, 1)};
      if (!fixed && !follow) interval = {profile.LinearReach(i), profile.LinearReach(i)};
      intervals.push_back(interval);
    }
    constexpr int kAttempts = 4;
    constexpr double kLower = 0.5;  // of the cost: a better minimum, not the same one more exactly
    if (attempt == kAttempts || profile.better().cost > fit.cost - kLower) break;
    fit = profile.better();
  }
  outcome.status = fit.converged ? CalibrationOutcome::Status::kConverged
                                 : CalibrationOutcome::Status::kNotConverged;
  outcome.message = fit.converged ? "The fit converged."
                                  : "The fit had not converged after " +
                                        std::to_string(fit.iterations) + " iterations.";
  const std::vector<PlanPrediction> predictions = Predict(plans, fit.values);
  outcome.residuals.resize(problem.runs.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const MeasuredRow& row : plans[i].rows) {
      outcome.residuals[static_cast<std::size_t>(row.run)] = {
          Seconds(std::exp(predictions[i].log_step)), row.log_step - predictions[i].log_step};
    }
  }
  for (const RunResidual& r : outcome.residuals) {
    outcome.mape += std::abs(std::exp(-r.log_ratio) - 1) / static_cast<double>(problem.runs.size());
  }
  Calibration calibration =
      MakeCalibration(problem, layout, fit.values, std::move(*covariance), intervals,
                      MakeScatterRows(plans, predictions), prior_scatter);
  calibration.repeat_log_sd = RepeatScatter(plans);
  outcome.cluster.calibration = std::move(calibration);
  return outcome;
}

}  // namespace stepcast
