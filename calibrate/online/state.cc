#include "calibrate/online/state.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/run_ranges.h"
#include "data/record/input_error.h"
#include "data/units/shortest.h"
#include "model/memory/fitted.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/priors.h"

namespace stepcast {

namespace {

// Plans beside the observed one that a row evaluates anew.
constexpr std::size_t kAnew = 1;
// Rows from one summation of the normal equations to the next, against rounding.
constexpr std::int64_t kRebuilt = 256;
// Row from which on the minimum is searched for from other starts, whenever rows have doubled.
constexpr std::int64_t kFirstSearch = 16;
// The same of doubts in the start.
constexpr std::int64_t kFirstDoubt = 8;
// The longest step of y, in standard deviations of the start.
constexpr double kLongestStep = 2;
// Of a step, in standard deviations of what is known: a longer one has left the plans' tangents.
constexpr double kLongStep = 0.1;
constexpr int kMostSteps = 8;
// Rows by which the number grows until the scatter is estimated anew and the minimum is settled.
constexpr std::int64_t kScatterGrowth = 8;  // an eighth more
constexpr double kLooked = 0.223;           // ln 1.25: the change that is looked for

// L of C = L L', lower triangular; of a singular C as well.
Eigen::MatrixXd RootOf(const Eigen::MatrixXd& covariance) {
  constexpr double kSingular = 1e-12;
  const Eigen::Index n = covariance.rows();
  Eigen::MatrixXd root = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const double left = covariance(j, j) - root.row(j).head(j).squaredNorm();
    if (!(left > kSingular * covariance(j, j))) continue;
    root(j, j) = std::sqrt(left);
    for (Eigen::Index i = j + 1; i < n; ++i) {
      root(i, j) = (covariance(i, j) - root.row(i).head(j).dot(root.row(j).head(j))) / root(j, j);
    }
  }
  return root;
}

// How much rows that are so many standard deviations off count for: those of rho.
double RowWeight(double rows, double z) { return rows / std::sqrt(1 + z * z); }

// ln(s) of a measured step. Throws InputError for a time that is none.
double LogOf(Duration<> step_time) {
  const double seconds = step_time.in(kSeconds);
  if (kStepTimes.Holds(seconds)) return std::log(seconds);
  throw InputError({"", 0, "step_time_s"}, ShortestText(seconds), "is no time of a step",
                   kStepTimes.Text());
}

// What is known of the parameters of a level that changed is known but for a common factor.
void Free(const std::vector<internal::Drifting>& levels, const std::string& workload,
          Calibration* calibration) {
  std::vector<ParameterEstimate>& parameters = calibration->parameters;
  std::vector<std::string_view> names;
  for (const ParameterEstimate& e : parameters) {
    const bool others = e.scope.starts_with(kWorkloadScopePrefix) && e.scope != workload;
    const bool moves = e.log_sd != 0 && !others;  // and nobody stated it
    names.push_back(moves ? std::string_view(e.name) : std::string_view());
  }
  const Eigen::MatrixXd moved = internal::MovesOfChange(levels, names);
  calibration->log_covariance += moved * moved.transpose();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    parameters[i].log_sd = std::sqrt(calibration->log_covariance(at, at));
  }
}

// Each host's link and compute may be another's by now.
void FreeHosts(Calibration* calibration) {
  for (std::size_t i = 0; i < calibration->parameters.size(); ++i) {
    const ParameterEstimate& e = calibration->parameters[i];
    if (e.log_sd == 0 || !e.scope.starts_with(kHostsScopePrefix)) continue;
    const auto at = static_cast<Eigen::Index>(i);
    calibration->log_covariance(at, at) += internal::kChangeLogSd * internal::kChangeLogSd;
  }
}

}  // namespace

namespace internal {

int SignOf(Drifting level, std::string_view name) {
  const auto is = [&](const auto& specs, int i) {
    return name == specs[static_cast<std::size_t>(i)].name;
  };
  if (level == kComputeDrift) {
    for (const int time : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
      if (is(kWorkloadParameterSpecs, time)) return 1;
    }
    return 0;
  }
  if (level == kNodeDrift) return is(kClusterParameterSpecs, kHostBandwidth) ? -1 : 0;
  for (const int rate : {kLinkBandwidth, kFlowBandwidth, kServerRate}) {
    if (is(kClusterParameterSpecs, rate)) return -1;
  }
  return 0;
}

Eigen::MatrixXd MovesOfChange(std::span<const Drifting> levels,
                              const std::vector<std::string_view>& names) {
  Eigen::MatrixXd moves(names.size(), levels.size());
  for (std::size_t j = 0; j < levels.size(); ++j) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      moves(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          kChangeLogSd * SignOf(levels[j], names[i]);
    }
  }
  return moves;
}

void DriftSums::Add(Row row) {
  constexpr double kMost = 3;  // standard deviations that a row counts for, or the change itself
  constexpr double kMostOfARow = 0.5 * kMost * kMost;
  constexpr std::size_t kMostLatest = 64;
  for (std::size_t i = 0; i < row.slopes.size(); ++i) {
    for (const std::size_t side : {0, 1}) {
      const double shift = row.slopes[i] * (side == 0 ? kLooked : -kLooked);
      const double most = std::max(kMost * row.sd, std::abs(shift));
      const double counted = std::clamp(row.residual, -most, most);
      sums[2 * i + side] +=
          std::min(kMostOfARow, shift * (counted - 0.5 * shift) / (row.sd * row.sd));
    }
  }
  latest.push_back(std::move(row));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    rows[i] = sums[i] > 0 ? std::min<std::int64_t>(rows[i] + 1, kMostLatest) : 0;
    sums[i] = std::max(0.0, sums[i]);
    kept = std::max(kept, static_cast<std::size_t>(rows[i]));
  }
  latest.erase(latest.begin(), latest.end() - static_cast<std::ptrdiff_t>(kept));
}

std::optional<std::vector<DriftSums::Row>> DriftSums::RowsSinceChange() const {
  const auto most = std::max_element(sums.begin(), sums.end());
  if (*most <= kAlarm) return std::nullopt;
  const auto of = rows[static_cast<std::size_t>(most - sums.begin())];
  return std::vector<Row>(latest.end() - of, latest.end());
}

std::vector<Drifting> LevelsChanged(const std::vector<DriftSums::Row>& rows) {
  constexpr double kNearly = 2;  // of the log-likelihood
  std::array<double, kDriftingCount> gains{};
  for (std::size_t i = 0; i < gains.size(); ++i) {
    double pull = 0;
    double information = 0;
    for (const DriftSums::Row& row : rows) {
      if (row.slopes.empty()) continue;
      pull += row.slopes[i] * row.residual / (row.sd * row.sd);
      information += row.slopes[i] * row.slopes[i] / (row.sd * row.sd);
    }
    gains[i] = information > 0 ? 0.5 * pull * pull / information : 0;
  }
  const double most = *std::max_element(gains.begin(), gains.end());
  std::vector<Drifting> changed;
  for (std::size_t i = 0; i < gains.size(); ++i) {
    if (gains[i] > most - kNearly) changed.push_back(static_cast<Drifting>(i));
  }
  return changed;
}

void ObservedPlan::Add(double log_time) {
  const auto at = std::lower_bound(
      times.begin(), times.end(), log_time,
      [](const MeasuredTime& time, double value) { return time.log_step < value; });
  rows += 1;
  if (at != times.end() && at->log_step == log_time) {
    at->rows += 1;
    return;
  }
  times.insert(at, {log_time, 1});
  if (times.size() <= kMostTimes) return;
  std::size_t nearest = 0;
  double least = 0;
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    const MeasuredTime& one = times[i];
    const MeasuredTime& other = times[i + 1];
    const double gap = other.log_step - one.log_step;
    // Growth of the sum of squares around the means.
    const double cost = gap * gap * one.rows * other.rows / (one.rows + other.rows);
    if (i > 0 && cost >= least) continue;
    least = cost;
    nearest = i;
  }
  MeasuredTime& one = times[nearest];
  const MeasuredTime other = times[nearest + 1];
  const double both = one.rows + other.rows;
  one = {one.log_step + (other.log_step - one.log_step) * (other.rows / both), both};
  times.erase(times.begin() + static_cast<std::ptrdiff_t>(nearest) + 1);
}

void ObservedPlan::Remove(double log_time) {
  const auto nearest = std::min_element(
      times.begin(), times.end(), [&](const MeasuredTime& one, const MeasuredTime& other) {
        return std::abs(one.log_step - log_time) < std::abs(other.log_step - log_time);
      });
  if (nearest == times.end()) return;
  rows -= 1;
  nearest->rows -= 1;
  if (nearest->rows <= 0) times.erase(nearest);
}

double ObservedPlan::MeanResidual(double sd) const {
  double sum = 0;
  double counted = 0;
  for (const MeasuredTime& time : times) {
    const double residual = time.log_step - log_step;
    const double w = RowWeight(time.rows, residual / sd);
    sum += w * residual;
    counted += w;
  }
  return counted > 0 ? sum / counted : 0;
}

}  // namespace internal

internal::OnlineState::OnlineState(Cluster of, const Workload& workload,
                                   const std::optional<Device>& facts, const std::string& device)
    : first(std::make_shared<const Cluster>(std::move(of))),
      cluster(*first),
      start(cluster, workload, facts, device),
      device_facts(facts) {
  const Belief& belief = start.belief();
  CheckDeviceIsKnown(belief, workload, cluster, facts, start.device());
  const auto n = static_cast<Eigen::Index>(belief.log_values().size());
  centre = Eigen::Map<const Eigen::VectorXd>(belief.log_values().data(), n);
  root = RootOf(belief.log_covariance());
  low.resize(n);
  high.resize(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const ParameterSpec& spec = belief.SpecOf(static_cast<int>(i));
    low[i] = std::min(spec.log_low(), centre[i]);
    high[i] = std::max(spec.log_high(), centre[i]);
  }
  const std::optional<Calibration>& calibration = cluster.calibration;
  start_scatter =
      std::max(kLeastStepScatter, calibration ? calibration->residual_log_sd : belief.ScatterAt(0));
  if (calibration) range = calibration->range;
  scatter = start_scatter;
  folded = Eigen::MatrixXd::Zero(n, n);
  folded_b = Eigen::VectorXd::Zero(n);
  scratch = Eigen::VectorXd::Zero(n);
  y = Eigen::VectorXd::Zero(n);
  SetY(y);
  Rebuild();
}

bool internal::OnlineState::FixedTimeGoesWithSamples() const {
  const ComputeBelief compute = start.belief().compute();
  return smallest_batch > 0 && compute != ComputeBelief::kDataSheet &&
         compute != ComputeBelief::kFromDevice;
}

void internal::OnlineState::KnowSmallestBatch(int batch) {
  if (start.belief().origin(kFixedPosition) != Origin::kPrior) return;
  const Eigen::VectorXd x = centre + root * y;
  const bool first_batch = smallest_batch == 0;
  smallest_batch = batch;
  const bool by_samples = FixedTimeGoesWithSamples();
  if (first_batch) {
    Eigen::MatrixXd covariance = root * root.transpose();
    if (by_samples) {
      covariance.row(kFixedPosition) = covariance.row(kSamplePosition);
      covariance.col(kFixedPosition) = covariance.row(kSamplePosition).transpose();
      covariance(kFixedPosition, kFixedPosition) = covariance(kSamplePosition, kSamplePosition) +
                                                   kFixedToSamplesLogSd * kFixedToSamplesLogSd;
    } else {
      const double of_sheet = std::exp(centre[kFixedPosition]);
      const Prior floor = FloorBesideSamples(of_sheet, std::exp(centre[kSamplePosition]));
      const Prior fixed = FixedBesideSheet(of_sheet);
      centre[kFloorPosition] = std::log(floor.si);
      centre[kFixedPosition] = std::log(fixed.si);
      covariance(kFloorPosition, kFloorPosition) = floor.log_sd * floor.log_sd;
      covariance(kFixedPosition, kFixedPosition) = fixed.log_sd * fixed.log_sd;
    }
    root = RootOf(covariance);
  } else if (!by_samples) {
    return;  // whichever batch is the smallest
  }
  if (by_samples) {
    centre[kFixedPosition] = centre[kSamplePosition] + std::log(kFixedToSamples * batch);
  }
  if (rows == 0) {
    SetY(y);
    Rebuild();
    return;
  }
  // What was learnt stays where it is, as seen from another start.
  const Eigen::VectorXd moved = y - YOf(x);
  folded_b -= folded.selfadjointView<Eigen::Lower>() * moved;
  SetY(y - moved);
  LineariseAll();
}

Eigen::VectorXd internal::OnlineState::LogValues(const Eigen::VectorXd& at) const {
  Eigen::VectorXd x = centre;
  x.noalias() += root.triangularView<Eigen::Lower>() * at;
  return x.cwiseMax(low).cwiseMin(high);
}

Eigen::VectorXd internal::OnlineState::YOf(const Eigen::VectorXd& log_x) const {
  Eigen::VectorXd at = Eigen::VectorXd::Zero(size());
  for (Eigen::Index i = 0; i < size(); ++i) {
    if (root(i, i) == 0) continue;
    at[i] = (log_x[i] - centre[i] - root.row(i).head(i).dot(at.head(i))) / root(i, i);
  }
  return at;
}

void internal::OnlineState::SetY(const Eigen::VectorXd& to) {
  y = to;
  log_values = LogValues(y);
  values = log_values.array().exp().matrix();
}

PlanAnswer internal::OnlineState::Answer(const ObservedPlan& plan, const Eigen::VectorXd& log_x,
                                         const Eigen::VectorXd& x, Belief::AtHosts* at_hosts,
                                         Derivatives derivatives) const {
  const auto slowest =
      SlowestLink(plan.links.size(), [&](std::size_t i) { return log_x[plan.links[i]]; });
  at_hosts->link = slowest ? plan.links[*slowest] : int{kLinkBandwidth};
  const auto slowest_compute = SlowestCompute(
      plan.slowdowns.size(), plan.others, [&](std::size_t i) { return log_x[plan.slowdowns[i]]; });
  at_hosts->slowdown.reset();
  if (slowest_compute) at_hosts->slowdown = plan.slowdowns[*slowest_compute];
  PlanParameters at;
  std::copy_n(x.data(), at.cluster.si.size(), at.cluster.si.begin());
  std::copy_n(x.data() + kWorkloadColumn, at.workload.si.size(), at.workload.si.begin());
  if (at_hosts->link != kLinkBandwidth) at.cluster.node_link_si = x[at_hosts->link];
  if (at_hosts->slowdown) at.cluster.node_slowdown = x[*at_hosts->slowdown];
  return plan.model.Answer(at, derivatives);
}

void internal::OnlineState::Gradient(const PlanAnswer& answer, const Belief::AtHosts& at_hosts,
                                     const Eigen::VectorXd& log_x,
                                     Eigen::Ref<Eigen::VectorXd> gradient) const {
  gradient = start.belief().ByPosition(answer.log_step_gradient, at_hosts);
  // A value that its bound holds does not move.
  for (Eigen::Index i = 0; i < size(); ++i) {
    if (gradient[i] == 0 || (log_x[i] > low[i] && log_x[i] < high[i])) continue;
    gradient[i] = 0;
  }
}

void internal::OnlineState::Slopes(const PlanAnswer& answer, const Belief::AtHosts& at_hosts,
                                   const Eigen::VectorXd& log_x, Eigen::VectorXd* slopes) const {
  Eigen::VectorXd gradient(size());
  Gradient(answer, at_hosts, log_x, gradient);
  slopes->noalias() = root.triangularView<Eigen::Lower>().transpose() * gradient;
}

void internal::OnlineState::Enter(const ObservedPlan& plan, double sign) {
  if (plan.weight == 0) return;
  a.selfadjointView<Eigen::Lower>().rankUpdate(plan.slopes, sign * plan.weight);
  b.noalias() += (sign * plan.weight * plan.target) * plan.slopes;
}

void internal::OnlineState::Linearise(ObservedPlan* plan, const PlanAnswer& answer,
                                      const Belief::AtHosts& at_hosts) {
  Enter(*plan, -1);
  Slopes(answer, at_hosts, log_values, &plan->slopes);
  plan->log_step = answer.log_step;
  const double sd = scatter * RepeatFactor(plan->rows);
  double weight = 0;
  double sum = 0;
  for (const MeasuredTime& time : plan->times) {
    const double residual = time.log_step - answer.log_step;
    const double w = RowWeight(time.rows, residual / sd) / (sd * sd);
    weight += w;
    sum += w * residual;
  }
  plan->weight = weight;
  plan->target = plan->slopes.dot(y) + sum / weight;
  Enter(*plan, 1);
}

void internal::OnlineState::Rebuild() {
  a = Eigen::MatrixXd::Identity(size(), size()) + folded;
  b = folded_b;
  for (const ObservedPlan& plan : plans) Enter(plan, 1);
  solver.compute(a);
}

double internal::OnlineState::Solve() {
  solver.compute(a);
  scratch = solver.solve(b) - y;
  const double length = scratch.norm();
  if (solver.info() != Eigen::Success || !std::isfinite(length)) {
    Rebuild();
    return 0;
  }
  if (length > kLongestStep) scratch *= kLongestStep / length;
  SetY(y + scratch);
  return (solver.matrixU() * scratch).norm();
}

void internal::OnlineState::LineariseAll() {
  for (ObservedPlan& plan : plans) {
    if (plan.rows == 0) continue;
    Belief::AtHosts at_hosts;
    const PlanAnswer answer = Answer(plan, log_values, values, &at_hosts);
    Linearise(&plan, answer, at_hosts);
  }
  Rebuild();
}

double internal::OnlineState::Variance(const Eigen::VectorXd& slopes) const {
  return solver.matrixL().solve(slopes).squaredNorm();
}

void internal::OnlineState::Forget() {
  const auto oldest = std::min_element(
      plans.begin(), plans.end(),
      [](const ObservedPlan& p, const ObservedPlan& q) { return p.last < q.last; });
  folded.selfadjointView<Eigen::Lower>().rankUpdate(oldest->slopes, oldest->weight);
  folded_b += oldest->weight * oldest->target * oldest->slopes;
  Drop(static_cast<std::size_t>(oldest - plans.begin()));
}

void internal::OnlineState::Drop(std::size_t at) {
  index.erase(KeyOf(plans[at]));
  // The last takes its place.
  if (at + 1 < plans.size()) {
    plans[at] = std::move(plans.back());
    index[KeyOf(plans[at])] = at;
  }
  plans.pop_back();
}

std::vector<int> internal::OnlineState::LinksOf(const Plan& plan) const {
  std::set<int> links;
  for (const std::string& host : plan.hosts) links.insert(start.belief().SlowestLink({host}));
  // Hosts without links of their own are as good as none.
  if (links.size() == 1 && *links.begin() == kLinkBandwidth) return {};
  return {links.begin(), links.end()};
}

void internal::OnlineState::SetSlowdowns(ObservedPlan* observed) const {
  std::set<int> slowdowns;
  for (const std::string& host : observed->plan.hosts_at_own_speed()) {
    if (const std::optional<int> slowdown = start.belief().SlowdownOf(host)) {
      slowdowns.insert(*slowdown);
    } else {
      observed->others = true;
    }
  }
  observed->slowdowns.assign(slowdowns.begin(), slowdowns.end());
}

PlanKey internal::OnlineState::KeyOf(const ObservedPlan& observed) const {
  return FactsKey(cluster, observed.plan, observed.links, observed.slowdowns, observed.others);
}

std::size_t internal::OnlineState::FindOrAdd(const Plan& plan) {
  CheckPlan(plan);  // before it is taken for another
  if (TraitsOf(plan.strategy).to_be_chosen) {
    throw InputError({"", 0, "strategy"}, "auto", "is no algorithm that a step was measured with",
                     "allreduce, ring, tree, halving-doubling, hierarchical, ...");
  }
  ObservedPlan observed;
  observed.plan = plan;
  observed.links = LinksOf(plan);
  SetSlowdowns(&observed);
  PlanKey key = KeyOf(observed);
  const auto known = index.find(key);
  if (known != index.end()) return known->second;
  observed.model = PlanModel(start.Facts(plan));
  observed.slopes = Eigen::VectorXd::Zero(size());
  plans.push_back(std::move(observed));
  return index[std::move(key)] = plans.size() - 1;
}

void internal::OnlineState::ObserveOutOfMemory(const Plan& plan) {
  CheckPlan(plan);
  if (!device_facts || !device_facts->memory) {
    throw InputError({"", 0, "device"}, start.device(), "has no memory that anybody states",
                     "a device whose data sheet has its memory");
  }
  // Of a model that is too large by itself no more is to be known.
  if (const std::optional<DataSize<>> least =
          ActivationsThatDidNotFit(start.workload(), plan, *device_facts->memory)) {
    KnowLeastActivations(*least);
  }
}

DataSize<> internal::OnlineState::LeastActivations() const {
  const auto known = cluster.out_of_memory.find(scope());
  return known == cluster.out_of_memory.end() ? DataSize<>() : known->second;
}

void internal::OnlineState::KnowLeastActivations(DataSize<> least) {
  if (LeastActivations() < least) cluster.out_of_memory[scope()] = least;
}

PlanAnswer internal::OnlineState::Forecast(std::size_t at, Belief::AtHosts* at_hosts) {
  const PlanAnswer answer = Answer(plans[at], log_values, values, at_hosts);
  if (std::isfinite(answer.log_step)) return answer;
  const Strategy strategy = plans[at].plan.strategy;
  if (plans[at].rows == 0) Drop(at);
  throw InputError({"", 0, "plan"}, StrategyName(strategy), "has no finite step time");
}

void internal::OnlineState::LearnTogether(std::span<const MeasuredStep> steps) {
  int smallest = steps.front().plan.smallest_batch();
  for (const MeasuredStep& step : steps) {
    const double log_time = LogOf(step.step_time);
    const std::size_t at = FindOrAdd(step.plan);
    Belief::AtHosts at_hosts;
    Forecast(at, &at_hosts);
    plans[at].Add(log_time);
    range.Include(start.cluster(), step.plan, scope());
    smallest = std::min(smallest, step.plan.smallest_batch());
  }
  KnowSmallestBatch(smallest);
  rows = static_cast<std::int64_t>(steps.size());
  Settle(true);
  const bool starts_by_runs = cluster.calibration && !cluster.calibration->sources.empty();
  if (starts_by_runs && rows >= kFirstDoubt) DoubtStart();
}

Observation internal::OnlineState::Observe(const Plan& plan, Duration<> step_time) {
  const double log_time = LogOf(step_time);
  const std::size_t at = FindOrAdd(plan);
  Belief::AtHosts at_hosts;
  const PlanAnswer answer = Forecast(at, &at_hosts);
  Observation said;
  said.predicted = Seconds(std::exp(answer.log_step));
  said.log_ratio = log_time - answer.log_step;

  // The scatter that was expected of the step.
  ObservedPlan& observed = plans[at];
  Slopes(answer, at_hosts, log_values, &scratch);
  const double of_parameters = Variance(scratch);
  const std::optional<CalibratedRange::BatchRange> batches = range.BatchesOf(scope());
  const double beyond = Discrepancy(plan, range, batches);
  const double of_job =
      JobVariance(observed.model.facts(), answer.log_step_gradient, OtherJobs(range, batches));
  const double of_step = start.belief().ScatterOf(observed.model.facts(), answer.sync_share) *
                         (scatter / start_scatter);
  said.surprise =
      said.log_ratio / std::sqrt(of_parameters + of_step * of_step + beyond * beyond + of_job);
  // And once more, as far as the formula is off for this plan: what its rows have in common.
  const double variance = scatter * scatter;
  const double common = kSharedByRepeats * variance;
  const double own = variance - common;
  const double known = common * observed.rows / (common * observed.rows + own);
  observed.log_step = answer.log_step;
  const double misfit = known * observed.MeanResidual(scatter);
  const double unknown = of_parameters + beyond * beyond;
  DriftSums::Row row;
  row.plan = observed.plan;
  row.log_step = log_time;
  row.residual = said.log_ratio - misfit;
  row.sd = std::sqrt(unknown + own + common * (1 - known));
  if (unknown < variance) {
    const DriftSlopes of = DriftSlopesOf(answer);
    row.slopes.assign(of.begin(), of.end());
  }
  drift.Add(std::move(row));
  const bool smaller = smallest_batch > 0 && plan.smallest_batch() < smallest_batch;
  if (!anew && (rows == 0 || smaller)) {
    KnowSmallestBatch(plan.smallest_batch());
    Learn(plan, at, Answer(plans[at], log_values, values, &at_hosts), at_hosts, log_time);
  } else {
    Learn(plan, at, answer, at_hosts, log_time);
  }
  if (const auto since = drift.RowsSinceChange()) {
    for (const Drifting level : BeginAnew(*since)) {
      said.cause += (said.cause.empty() ? "" : " or ") + std::string(kDriftCauses[level]);
    }
  }
  said.drifted = earlier_rows > 0;
  return said;
}

void internal::OnlineState::Learn(const Plan& plan, std::size_t at, const PlanAnswer& answer,
                                  const Belief::AtHosts& at_hosts, double log_time) {
  ObservedPlan& observed = plans[at];
  observed.Add(log_time);
  observed.last = ++rows;
  if (observed.rows == 1) {
    range.Include(start.cluster(), plan, scope());
  }
  Linearise(&observed, answer, at_hosts);
  for (std::size_t i = 0; i < std::min(kAnew, plans.size() - 1); ++i) {
    next_plan = (next_plan + 1) % plans.size();
    ObservedPlan& other = plans[next_plan];
    Belief::AtHosts others_hosts;
    const PlanAnswer its = Answer(other, log_values, values, &others_hosts);
    Linearise(&other, its, others_hosts);
  }
  if (plans.size() > kMostPlans) Forget();
  if (rows % kRebuilt == 0) Rebuild();
  if (rows >= next_scatter) {
    // From where earlier rows have led: the tangents' next step may be one over a bend.
    const bool doubled = (rows & (rows - 1)) == 0;
    Settle(doubled && rows >= kFirstSearch);
    if (doubled && rows >= kFirstDoubt) DoubtStart();
    std::int64_t power = 1;
    while (power <= rows) power *= 2;
    next_scatter = std::min(power, rows + 1 + rows / kScatterGrowth);
    return;
  }
  const Eigen::VectorXd before = y;
  double step = Solve();
  for (int i = 0; i < kMostSteps && step > kLongStep; ++i) {
    LineariseAll();
    step = Solve();
  }
  // Steps that do not shorten go from one side of a bend to the other for ever.
  if (step > kLongStep) Descend(before);
}

internal::DriftSlopes internal::OnlineState::DriftSlopesOf(const PlanAnswer& answer) const {
  const auto& by = answer.log_step_gradient;
  DriftSlopes slopes{};
  for (const int time : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
    slopes[kComputeDrift] += by[static_cast<std::size_t>(Belief::kWorkloadOffset + time)];
  }
  slopes[kNetworkDrift] =
      -by[kLinkBandwidth] - by[kLinkColumn] - by[kFlowBandwidth] - by[kServerRate];
  slopes[kNodeDrift] = -by[kHostBandwidth];
  return slopes;
}

void internal::OnlineState::Unlearn(const std::vector<DriftSums::Row>& gone) {
  for (const DriftSums::Row& row : gone) {
    const std::size_t before = plans.size();
    const std::size_t at = FindOrAdd(row.plan);
    if (plans.size() == before) {
      plans[at].Remove(row.log_step);
      --rows;
    }
    if (plans[at].rows == 0) Drop(at);
  }
  next_plan = 0;
}

std::vector<internal::Drifting> internal::OnlineState::BeginAnew(
    const std::vector<DriftSums::Row>& since) {
  const std::int64_t observed = earlier_rows + rows;
  std::vector<Drifting> changed = LevelsChanged(since);
  Unlearn(since);
  const Cluster before = Learnt();
  if (!before.calibration) return changed;  // no row was left
  LearnAgain(before, changed, since);
  // A level that has no such part in these steps cannot have changed them so: then any may have.
  const double left = std::max(0.5 * kLooked, 2 * start_scatter);
  if (changed.size() < kDriftingCount && MeanDistance(since) > left) {
    changed.assign(kAllDrifting.begin(), kAllDrifting.end());
    LearnAgain(before, changed, since);
  }
  earlier_rows = observed - static_cast<std::int64_t>(since.size());
  return changed;
}

void internal::OnlineState::LearnAgain(Cluster before, const std::vector<Drifting>& changed,
                                       const std::vector<DriftSums::Row>& since) {
  Free(changed, scope(), &*before.calibration);
  const std::shared_ptr<const Cluster> given = first;
  *this = OnlineState(std::move(before), start.workload(), device_facts, start.device());
  first = given;
  anew = true;
  for (const DriftSums::Row& row : since) {
    const std::size_t at = FindOrAdd(row.plan);
    Belief::AtHosts at_hosts;
    const PlanAnswer answer = Answer(plans[at], log_values, values, &at_hosts);
    Learn(row.plan, at, answer, at_hosts, row.log_step);
  }
  Settle(true);
}

void internal::OnlineState::DoubtStart() {
  if (!cluster.calibration) return;  // no start but priors, which are wide
  Cluster freed = cluster;
  FreeHosts(&*freed.calibration);
  Free({kAllDrifting.begin(), kAllDrifting.end()}, scope(), &*freed.calibration);
  OnlineState other(std::move(freed), start.workload(), device_facts, start.device());
  if (smallest_batch > 0) other.KnowSmallestBatch(smallest_batch);
  // What y is there: L^-1 M of its root M.
  Eigen::MatrixXd turn(size(), size());
  for (Eigen::Index i = 0; i < size(); ++i) turn.col(i) = YOf(centre + other.root.col(i));
  const Eigen::MatrixXd whole = folded.selfadjointView<Eigen::Lower>();
  other.folded = turn.transpose() * whole * turn;
  other.folded_b = turn.transpose() * folded_b;
  other.first = first;
  other.anew = true;
  other.earlier_rows = earlier_rows;
  other.plans = plans;
  other.index = index;
  other.rows = rows;
  other.next_plan = next_plan;
  other.range = range;
  other.SetY(other.YOf(log_values));
  other.LineariseAll();
  other.Settle(true);
  if (CostAt(other.scatter) - other.CostAt(other.scatter) > kAlarm) *this = std::move(other);
}

double internal::OnlineState::MeanDistance(const std::vector<DriftSums::Row>& of) {
  double sum = 0;
  for (const DriftSums::Row& row : of) {
    Belief::AtHosts at_hosts;
    const ObservedPlan& plan = plans[FindOrAdd(row.plan)];
    sum += std::abs(row.log_step - Answer(plan, log_values, values, &at_hosts).log_step);
  }
  return sum / static_cast<double>(of.size());
}

}  // namespace stepcast
