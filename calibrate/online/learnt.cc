// The minimum of the penalised least squares, from where the rows have led and from other starts;
// and the cluster as learnt, as `stepcast calibrate` would leave it: the joint normal law of the
// job's parameters and of what the calibration that it began with knows beside them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "calibrate/online/state.h"
#include "data/values/workload_scope.h"
#include "model/statistics/normal.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

using internal::Alone;
using internal::ObservedPlan;
using State = internal::OnlineState;

// The cost of all rows and of the start at one y, with its normal equations.
struct Normal {
  double cost = 0;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd a;  // its lower triangle
};

// The answers to the plans at one y.
std::vector<PlanAnswer> AnswersAt(const State& state, const Eigen::VectorXd& y) {
  const Eigen::VectorXd log_x = state.LogValues(y);
  const Eigen::VectorXd x = log_x.array().exp().matrix();
  std::vector<PlanAnswer> answers;
  for (const ObservedPlan& plan : state.plans) {
    Belief::AtHosts at_hosts;
    answers.push_back(state.Answer(plan, log_x, x, &at_hosts));
  }
  return answers;
}

class Minimum {
 public:
  Minimum(const State& state, double scatter, bool repeats)
      : state_(state), scatter_(scatter), repeats_(repeats) {}

  // How much a row counts for in the normal equations: such that no step goes too far (Weight), or
  // as curvature at a minimum (Curvature), for standard errors.
  static double Weight(double root) { return 1 / root; }
  static double Curvature(double root) { return (1 + root) / (2 * root * root); }

  template <class Counts>
  Normal At(const Eigen::VectorXd& y, const Counts& counts) const {
    Normal normal;
    normal.a = Eigen::MatrixXd::Identity(y.size(), y.size()) + state_.folded;
    normal.gradient = normal.a.selfadjointView<Eigen::Lower>() * y - state_.folded_b;
    normal.cost = 0.5 * (y.dot(normal.gradient) - state_.folded_b.dot(y));
    const Eigen::VectorXd log_x = state_.LogValues(y);
    const Eigen::VectorXd x = log_x.array().exp().matrix();
    const auto plans = static_cast<Eigen::Index>(state_.plans.size());
    Eigen::MatrixXd slopes(y.size(), plans);
    Eigen::VectorXd weights(plans);
    Eigen::VectorXd pulls(plans);
    for (Eigen::Index i = 0; i < plans; ++i) {
      const ObservedPlan& plan = state_.plans[static_cast<std::size_t>(i)];
      Belief::AtHosts at_hosts;
      const PlanAnswer answer = state_.Answer(plan, log_x, x, &at_hosts);
      state_.Gradient(answer, at_hosts, log_x, slopes.col(i));
      const double sd = SdOf(plan);
      double weight = 0;
      double pull = 0;
      for (const MeasuredTime& time : plan.times) {
        const double z = (time.log_step - answer.log_step) / sd;
        const double root = std::sqrt(1 + z * z);
        normal.cost += time.rows * (root - 1);
        weight += time.rows * counts(root) / (sd * sd);
        pull += time.rows * z / (root * sd);
      }
      weights[i] = weight;
      pulls[i] = pull;
    }
    // All plans at once: products of matrices take less than as many of vectors.
    slopes = state_.root.triangularView<Eigen::Lower>().transpose() * slopes;
    normal.gradient.noalias() -= slopes * pulls;
    slopes *= weights.cwiseSqrt().asDiagonal();
    normal.a.selfadjointView<Eigen::Lower>().rankUpdate(slopes);
    return normal;
  }

  struct Point {
    Eigen::VectorXd y;
    double cost = 0;
  };

  // Levenberg and Marquardt's search; given up where it will not come below `to_beat`. Its steps
  // shorten by about a half each, so that those to come hardly gain four times what the last did.
  Point From(Eigen::VectorXd y, double to_beat = std::numeric_limits<double>::infinity()) const {
    constexpr int kMostSteps = 60;
    constexpr double kSettled = 1e-7;  // relative change of the cost
    constexpr double kStillToCome = 4;
    constexpr double kLeastDamping = 1e-7;
    constexpr double kMostDamping = 1e9;
    constexpr double kEasier = 0.1;
    constexpr double kHarder = 5;
    Normal here = At(y, Weight);
    double damping = 1e-3;
    Eigen::LLT<Eigen::MatrixXd> solver(y.size());
    for (int step = 0; step < kMostSteps && damping < kMostDamping; ++step) {
      Eigen::MatrixXd damped = here.a;
      damped.diagonal() += damping * here.a.diagonal();
      solver.compute(damped);
      const Eigen::VectorXd to = y - solver.solve(here.gradient);
      Normal there = At(to, Weight);
      if (!(there.cost <= here.cost)) {
        damping *= kHarder;
        continue;
      }
      const double gained = here.cost - there.cost;
      const bool settled = gained <= kSettled * here.cost;
      y = to;
      here = std::move(there);
      damping = std::max(kLeastDamping, damping * kEasier);
      if (settled || here.cost - kStillToCome * gained > to_beat) break;
    }
    return {std::move(y), here.cost};
  }

  // The better of what both lead to.
  Point Better(const Point& one, const Eigen::VectorXd& other) const {
    Point found = From(other, one.cost - kLower);
    return found.cost < one.cost ? found : one;
  }

  // The same from beyond the bends of the cost, as long as it is better there. A rate that holds no
  // step back has no slope, and of two that hold one back alike neither makes it shorter by itself:
  // so any of them together are tried along all that they may be.
  Point BeyondBends(Point best) const {
    const std::vector<std::vector<int>> sets = RatesTogether();
    for (int round = 0; round < kMostRounds; ++round) {
      Point better = best;
      for (const bool anew : {false, true}) {
        const Eigen::VectorXd from = anew ? NetworkOfStart(best.y) : state_.LogValues(best.y);
        for (const std::vector<int>& together : sets) {
          const Point lowest = LowestAlong(together, from);
          if (lowest.cost < better.cost - kLower) better = Better(better, lowest.y);
        }
      }
      if (better.cost > best.cost - kLower) break;
      best = std::move(better);
    }
    return best;
  }

  // Whether rows are further off than other parameters may explain, by as much as tells a change.
  bool IsFarOff(const Eigen::VectorXd& y) const {
    return CostOfRows(y) - LeastCostOfRows() > internal::kAlarm;
  }

  // The same from where other explanations of the rows begin, as long as one of them is better:
  // another part of the curve's constant that grows with no batch, another bottleneck.
  Point Best(Point best) const {
    for (int round = 0; round < kMostRounds; ++round) {
      Point better = best;
      for (const Eigen::VectorXd& other : Others(best.y)) better = Better(better, other);
      better = BeyondBends(std::move(better));
      if (better.cost > best.cost - kLower) break;
      best = From(better.y);
    }
    return best;
  }

 private:
  // Of the cost: a better minimum, not the same one more exactly.
  static constexpr double kLower = 0.01;
  static constexpr int kMostRounds = 3;

  // What the rows of a plan cost whose step is that long.
  double CostOf(const ObservedPlan& plan, double log_step) const {
    const double sd = SdOf(plan);
    double cost = 0;
    for (const MeasuredTime& time : plan.times) {
      const double z = (time.log_step - log_step) / sd;
      cost += time.rows * (std::sqrt(1 + z * z) - 1);
    }
    return cost;
  }

  // What rows cost at y, without derivatives.
  double CostOfRows(const Eigen::VectorXd& y) const {
    const Eigen::VectorXd log_x = state_.LogValues(y);
    const Eigen::VectorXd x = log_x.array().exp().matrix();
    double cost = 0;
    for (const ObservedPlan& plan : state_.plans) {
      Belief::AtHosts at_hosts;
      cost += CostOf(plan, state_.Answer(plan, log_x, x, &at_hosts, Derivatives::kNone).log_step);
    }
    return cost;
  }

  // What they cost at least: each plan met at its middle.
  double LeastCostOfRows() const {
    double cost = 0;
    for (const ObservedPlan& plan : state_.plans) {
      double passed = 0;
      for (const MeasuredTime& time : plan.times) {
        passed += time.rows;
        if (2 * passed < plan.rows) continue;
        cost += CostOf(plan, time.log_step);
        break;
      }
    }
    return cost;
  }

  double CostOfStart(const Eigen::VectorXd& y) const {
    const Eigen::VectorXd folded = state_.folded.selfadjointView<Eigen::Lower>() * y;
    return 0.5 * y.dot(y + folded) - state_.folded_b.dot(y);
  }

  // Rates that may hold an exchange of the rows back.
  std::vector<int> Rates() const {
    std::vector<int> rates;
    for (const int rate : {kLinkBandwidth, kFlowBandwidth, kHostBandwidth, kServerRate}) {
      if (state_.root.row(rate).isZero(0)) continue;  // stated
      const bool matters =
          std::any_of(state_.plans.begin(), state_.plans.end(), [&](const ObservedPlan& plan) {
            return !Alone(plan.model.facts()) &&
                   (rate != kServerRate || UsesServers(plan.model.facts().strategy)) &&
                   (rate == kHostBandwidth || internal::LeavesNode(plan.model.facts()));
          });
      if (matters) rates.push_back(rate);
    }
    return rates;
  }

  // Positions of those of them that are moved together: any of them. With the cluster's link go
  // the links that hosts have of their own.
  std::vector<std::vector<int>> RatesTogether() const {
    std::set<int> links = {kLinkBandwidth};
    for (const ObservedPlan& plan : state_.plans)
      links.insert(plan.links.begin(), plan.links.end());
    std::vector<std::vector<int>> sets = {{}};
    for (const int rate : Rates()) {
      const std::size_t without = sets.size();
      for (std::size_t i = 0; i < without; ++i) {
        std::vector<int> with = sets[i];
        if (rate == kLinkBandwidth) {
          with.insert(with.end(), links.begin(), links.end());
        } else {
          with.push_back(rate);
        }
        sets.push_back(std::move(with));
      }
    }
    sets.erase(sets.begin());  // none of them
    return sets;
  }

  // x of y with the network as it was believed at the start: nothing that it has in excess, such as
  // stragglers, stands for a rate.
  Eigen::VectorXd NetworkOfStart(const Eigen::VectorXd& y) const {
    constexpr int kStragglers = Belief::kWorkloadOffset + kStragglerSpread;
    Eigen::VectorXd x = state_.LogValues(y);
    x.head(Belief::kWorkloadOffset) = state_.centre.head(Belief::kWorkloadOffset);
    x[kStragglers] = state_.centre[kStragglers];
    return x;
  }

  // Where these rates, each times one factor, meet the rows best.
  Point LowestAlong(const std::vector<int>& together, const Eigen::VectorXd& from) const {
    constexpr double kStep = 0.25;  // in ln
    constexpr int kMostSteps = 16;
    constexpr int kNarrowings = 5;  // each to 0.618 of it
    const auto at = [&](double moved) {
      Eigen::VectorXd to = from;
      for (const int position : together) to[position] += moved;
      Point point;
      point.y = state_.YOf(to);
      point.cost = CostOfStart(point.y) + CostOfRows(point.y);
      return point;
    };
    double lowest = 0;
    Point best;
    for (int step = -kMostSteps; step <= kMostSteps; ++step) {
      Point point = at(step * kStep);
      if (step > -kMostSteps && !(point.cost < best.cost)) continue;
      best = std::move(point);
      lowest = step * kStep;
    }
    // Golden section between its neighbours.
    const double golden = 0.5 * (std::sqrt(5) - 1);
    double low = lowest - kStep;
    double high = lowest + kStep;
    for (int i = 0; i < kNarrowings; ++i) {
      const double one = high - golden * (high - low);
      const double other = low + golden * (high - low);
      Point at_one = at(one);
      Point at_other = at(other);
      const bool is_one = at_one.cost < at_other.cost;
      (is_one ? high : low) = is_one ? other : one;
      Point& less = is_one ? at_one : at_other;
      if (less.cost < best.cost) best = std::move(less);
    }
    return best;
  }

  std::vector<Eigen::VectorXd> Others(const Eigen::VectorXd& y) const {
    constexpr double kFactor = 1.2;  // of a bottleneck, in ln
    constexpr double kSmallShare = 0.1;
    const Eigen::VectorXd x = state_.LogValues(y);
    std::vector<Eigen::VectorXd> others;
    const auto add = [&](const std::vector<std::pair<int, double>>& moves) {
      Eigen::VectorXd to = x;
      for (const auto& [position, log_value] : moves) to[position] = log_value;
      others.push_back(state_.YOf(to));
    };
    const int fixed = internal::kFixedPosition;
    const int floor = Belief::kWorkloadOffset + kFloorTime;
    // The constant part of the curve is time that no batch hides, or a floor that ends at the
    // batches in the middle of those observed; what hides behind it stays as believed.
    const double both = std::exp(x[fixed]) + std::exp(x[floor]);
    const double small = std::log(kSmallShare * both);
    const double large = std::log((1 - kSmallShare) * both);
    double end = x[Belief::kWorkloadOffset + kSampleTime];
    for (const ObservedPlan& plan : state_.plans) {
      end += std::log(plan.model.facts().batch) / static_cast<double>(state_.plans.size());
    }
    add({{fixed, small}, {floor, large}});
    add({{fixed, large}, {floor, small}});
    add({{fixed, small}, {floor, end}});
    add({{fixed, small}, {floor, end}, {kOverlapShare, state_.centre[kOverlapShare]}});
    for (const int rate : Rates()) {
      for (const double sign : {-1, 1}) add({{rate, x[rate] + sign * kFactor}});
    }
    return others;
  }

  double SdOf(const ObservedPlan& plan) const {
    return scatter_ * (repeats_ ? RepeatFactor(plan.rows) : 1);
  }

  const State& state_;
  double scatter_;
  bool repeats_;
};

std::vector<Deviation> Deviations(const std::vector<ObservedPlan>& plans,
                                  const std::vector<PlanAnswer>& answers,
                                  const std::optional<Scatter>& in) {
  std::vector<Deviation> deviations;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const double unit = in ? in->At(answers[i].sync_share) : 1;
    for (const MeasuredTime& time : plans[i].times) {
      deviations.push_back({std::abs(time.log_step - answers[i].log_step) / unit, time.rows});
    }
  }
  return deviations;
}

// A parameter of the outcome: ln(SI value) = centre + slopes' y + what no row of the job tells.
struct Slot {
  ParameterEstimate estimate;  // but for what is learnt
  const ParameterSpec* spec = nullptr;
  double centre = 0;
  Eigen::VectorXd slopes;
  int fitted = -1;  // index in the calibration at the start
};

// The slopes of all that was fitted, which the job's parameters are only a part of: K of K L' = C,
// C the covariance of fitted ones (rows) with the job's.
Eigen::MatrixXd SlopesOf(const Eigen::MatrixXd& covariance, const Eigen::MatrixXd& root) {
  Eigen::MatrixXd slopes = Eigen::MatrixXd::Zero(covariance.rows(), covariance.cols());
  for (Eigen::Index j = 0; j < root.cols(); ++j) {
    if (!(root(j, j) > 0)) continue;
    slopes.col(j) =
        (covariance.col(j) - slopes.leftCols(j) * root.row(j).head(j).transpose()) / root(j, j);
  }
  return slopes;
}

// Scope of a position in the belief.
std::string ScopeOf(const BelievedModel& start, int position) {
  if (position < Belief::kWorkloadOffset) return kClusterScope;
  if (position < Belief::kHostOffset) {
    return WorkloadScope(start.workload(), start.device());
  }
  return kHostsScopePrefix + start.belief().HostsOf(position);
}

Slot MakeSlot(const std::string& scope, const ParameterSpec& spec, double log_si, double log_sd) {
  Slot slot;
  slot.spec = &spec;
  slot.centre = log_si;
  slot.estimate.scope = scope;
  slot.estimate.name = spec.name;
  slot.estimate.unit = spec.unit;
  slot.estimate.prior_value = std::exp(log_si) / spec.si_per_unit;
  slot.estimate.prior_log_sd = log_sd;
  return slot;
}

std::vector<Slot> SlotsOf(const State& state) {
  const BelievedModel& start = state.start;
  const Belief& belief = start.belief();
  const std::optional<Calibration>& before = state.cluster.calibration;
  std::vector<Slot> slots;
  if (before) {
    Eigen::MatrixXd covariance = belief.CovarianceWith(*before).transpose();
    if (state.FixedTimeGoesWithSamples()) {
      covariance.col(internal::kFixedPosition) = covariance.col(internal::kSamplePosition);
    }
    const Eigen::MatrixXd slopes = SlopesOf(covariance, state.root);
    for (std::size_t i = 0; i < before->parameters.size(); ++i) {
      Slot slot;
      slot.estimate = before->parameters[i];
      slot.spec = FindParameterSpec(slot.estimate.name);
      slot.centre = std::log(slot.estimate.value * slot.spec->si_per_unit);
      slot.slopes = slopes.row(static_cast<Eigen::Index>(i));
      slot.fitted = static_cast<int>(i);
      slots.push_back(std::move(slot));
    }
  }
  for (int i = 0; i < static_cast<int>(state.size()); ++i) {
    const ParameterSpec& spec = belief.SpecOf(i);
    const std::string scope = ScopeOf(start, i);
    if (before && before->Find(scope, spec.name)) continue;
    if (scope == kHostsScopePrefix) continue;  // its hosts have another by now
    Slot slot = MakeSlot(scope, spec, state.centre[i], state.root.row(i).norm());
    slot.slopes = state.root.row(i);
    slots.push_back(std::move(slot));
  }
  const std::string device = kDeviceScopePrefix + start.device();
  const bool has_device = before && before->Find(device, kDeviceSpeedSpec.name);
  if (!has_device && belief.compute() == ComputeBelief::kDataSheet) {
    // A slower workload is, by half, a slower device.
    const Prior prior = PriorOf(kDeviceSpeedSpec);
    Slot slot = MakeSlot(device, kDeviceSpeedSpec, std::log(prior.si), prior.log_sd);
    Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(1, state.size());
    covariance(0, internal::kSamplePosition) = -prior.log_sd * prior.log_sd;
    slot.slopes = SlopesOf(covariance, state.root).row(0);
    slots.push_back(std::move(slot));
  }
  return slots;
}

}  // namespace

void internal::OnlineState::Descend(const Eigen::VectorXd& from) {
  SetY(Minimum(*this, scatter, true).From(from).y);
  LineariseAll();
}

void internal::OnlineState::DescendFrom(const std::vector<Eigen::VectorXd>& starts) {
  const Minimum minimum(*this, scatter, true);
  Minimum::Point best = minimum.From(y);
  for (const Eigen::VectorXd& other : starts) best = minimum.Better(best, other);
  SetY(best.y);
  LineariseAll();
}

double internal::OnlineState::CostAt(double of_scatter) const {
  return Minimum(*this, of_scatter, true).From(y).cost;
}

void internal::OnlineState::Settle(bool from_other_starts) {
  // The scatter is that around a fit which takes every row alike, as the batch fit's is: around one
  // that it has a part in, rows of one plan that are all far off would be taken for scatter.
  const Minimum equal(*this, start_scatter, false);
  Minimum::Point led = equal.From(y);
  if (equal.IsFarOff(led.y)) led = equal.BeyondBends(std::move(led));
  const Eigen::VectorXd alike = std::move(led.y);
  scatter = std::max(kLeastStepScatter, ScatterOf(Deviations(plans, AnswersAt(*this, alike), {}),
                                                  kTypicalShare, start_scatter));
  const Minimum minimum(*this, scatter, true);
  const Minimum::Point best = minimum.Better(minimum.From(y), alike);
  SetY(from_other_starts ? minimum.Best(best).y : best.y);
  LineariseAll();
}

Cluster internal::OnlineState::Learnt() const {
  if (rows == 0) return cluster;
  OnlineState settled = *this;
  settled.Settle(true);
  return settled.AtY();
}

Cluster internal::OnlineState::AtY() const {
  Cluster learnt = cluster;
  const Normal normal = Minimum(*this, scatter, true).At(y, Minimum::Curvature);
  const Eigen::MatrixXd spread =
      Eigen::LLT<Eigen::MatrixXd>(normal.a).solve(Eigen::MatrixXd::Identity(size(), size()));

  Calibration calibration = cluster.calibration.value_or(Calibration());
  const std::vector<Slot> slots = SlotsOf(*this);
  const auto n = static_cast<Eigen::Index>(slots.size());
  Eigen::MatrixXd slopes(n, size());
  for (Eigen::Index i = 0; i < n; ++i) slopes.row(i) = slots[static_cast<std::size_t>(i)].slopes;
  Eigen::MatrixXd covariance = slopes * spread * slopes.transpose();
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      // Add the part that the calibration knew and that the job's parameters have no share in.
      const Slot& one = slots[static_cast<std::size_t>(i)];
      const Slot& other = slots[static_cast<std::size_t>(j)];
      if (one.fitted < 0 || other.fitted < 0) continue;
      covariance(i, j) +=
          calibration.log_covariance(one.fitted, other.fitted) - one.slopes.dot(other.slopes);
    }
    const Slot& slot = slots[static_cast<std::size_t>(i)];
    if (slot.spec == &kDeviceSpeedSpec && slot.fitted < 0) {
      covariance(i, i) += std::pow(slot.estimate.prior_log_sd, 2) - slot.slopes.squaredNorm();
    }
    covariance(i, i) = std::max(0.0, covariance(i, i));
  }
  covariance = 0.5 * (covariance + covariance.transpose()).eval();

  calibration.parameters.clear();
  for (Eigen::Index i = 0; i < n; ++i) {
    const Slot& slot = slots[static_cast<std::size_t>(i)];
    ParameterEstimate e = slot.estimate;
    const double log_si = slot.centre + slot.slopes.dot(y);
    e.value =
        std::clamp(std::exp(log_si) / slot.spec->si_per_unit, slot.spec->low, slot.spec->high);
    e.log_sd = std::sqrt(covariance(i, i));
    e.low = std::max(slot.spec->low, e.value * std::exp(-kNinetyFivePercent * e.log_sd));
    e.high = std::min(slot.spec->high, e.value * std::exp(kNinetyFivePercent * e.log_sd));
    if (e.decided_by != DecidedBy::kStated) {
      e.decided_by = WhatDecided(e.log_sd, e.prior_log_sd);
    }
    calibration.parameters.push_back(std::move(e));
  }
  calibration.log_covariance = std::move(covariance);
  calibration.alternatives.resize(0, n);  // they were of the rows before
  const std::vector<PlanAnswer> answers = AnswersAt(*this, y);
  const std::optional<Scatter> parts = calibration.ScatterOf(scope());
  if (parts) {
    const double factor = ScatterOf(Deviations(plans, answers, parts), kIntervalShare, 1);
    calibration.scatter[scope()] = {parts->compute * factor, parts->sync * factor};
  }
  calibration.residual_log_sd =
      ScatterOf(Deviations(plans, answers, {}), kIntervalShare, start_scatter);
  calibration.range = range;
  constexpr const char* kObserved = "observed steps";
  if (calibration.sources.empty() || calibration.sources.back().file != kObserved) {
    calibration.sources.push_back({kObserved, 0});
  }
  internal::Count(rows, &calibration.sources.back().runs);
  calibration.version = STEPCAST_VERSION;
  learnt.calibration = std::move(calibration);
  return learnt;
}

}  // namespace stepcast
