#include "calibrate/next_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "data/plan/check.h"
#include "model/step/answer.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/slow_ends.h"

namespace stepcast {
namespace {

constexpr double kGoodShare = 0.5;  // of what the best candidate brings
// Variance of ln(step) that a run must gain: less than a hundredth is not worth it.
constexpr double kLeastGain = 1e-4;

struct Candidate {
  Plan plan;
  BelievedModel::Answer answer;
  double device_seconds = 0;
  bool chosen = false;
};

double Square(double x) { return x * x; }

double DeviceSeconds(const Plan& plan, double log_step) {
  const double measuring = kJobStart.si() + kMeasuredSteps * std::exp(log_step);
  return (plan.workers() + plan.servers) * measuring;
}

CalibratedRange Extended(CalibratedRange range, const Cluster& cluster, const Plan& plan,
                         const std::string& scope) {
  range.Include(cluster, plan, scope);
  return range;
}

double DiscrepancyOf(const Plan& plan, const CalibratedRange& range, const std::string& scope) {
  return Discrepancy(plan, range, range.BatchesOf(scope));
}

// The plan that matters.
class Goal {
 public:
  Goal(const BelievedModel& model, const Plan& plan)
      : plan_(plan),
        hosts_(model.belief().SlowestOf(plan)),
        model_(model.Facts(plan)),
        answer_(model_.Answer(model.belief().ParametersAt(hosts_), Derivatives::kAll)),
        scatter_(model.belief().ScatterOf(model_.facts(), answer_.sync_share)),
        gradient_(model.belief().ByPosition(answer_.log_step_gradient, hosts_)) {}

  const Eigen::VectorXd& gradient() const { return gradient_; }

  // V and V_e, of what is believed after runs of this range.
  struct Variances {
    double all = 0;
    double above = 0;
  };
  Variances At(const Belief& belief, const CalibratedRange& range) const {
    const double stated = answer_.log_step_gradient[kShareColumn] *
                          belief.StatedShareLogSd(model_.facts(), hosts_.link);
    const double all = gradient_.dot(belief.log_covariance() * gradient_) + Square(stated) +
                       Square(scatter_) + Beyond(range, belief.scope());
    return {all, all + VarianceOfSlowEnds(belief, hosts_, model_.facts(), answer_.log_step_gradient,
                                          answer_.step.total())};
  }

  // What runs of this range leave of the formula's own errors, and of what a job differs by.
  double Beyond(const CalibratedRange& range, const std::string& scope) const {
    return Square(DiscrepancyOf(plan_, range, scope)) +
           JobVariance(model_.facts(), answer_.log_step_gradient,
                       OtherJobs(range, range.BatchesOf(scope)));
  }

 private:
  Plan plan_;
  Belief::AtHosts hosts_;
  PlanModel model_;
  PlanAnswer answer_;
  double scatter_;
  Eigen::VectorXd gradient_;
};

// "flow_bandwidth (within 1.1x)": those whose variance falls most, and what remains.
std::string Tells(const Belief& belief, const Eigen::MatrixXd& before,
                  const Eigen::MatrixXd& after) {
  constexpr int kMost = 3;
  constexpr double kLeastShare = 0.1;  // of the variance, to be named
  std::vector<int> order;
  const auto share = [&](int i) { return before(i, i) > 0 ? 1 - after(i, i) / before(i, i) : 0; };
  for (int i = 0; i < before.rows(); ++i) {
    if (share(i) >= kLeastShare) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return share(a) > share(b); });
  std::ostringstream text;
  text << std::fixed;
  text.precision(2);
  for (std::size_t k = 0; k < order.size() && k < kMost; ++k) {
    text << (k == 0 ? "" : ", ") << belief.NameOf(order[k]) << " (within "
         << std::exp(std::sqrt(after(order[k], order[k]))) << "x)";
  }
  return text.str();
}

// A plan of one worker, or without its exchange.
Plan Alone(const Plan& plan) { return WithStrategy(plan, Strategy::kNone); }

}  // namespace

Eigen::MatrixXd CovarianceAfter(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& gradient,
                                double variance) {
  const Eigen::VectorXd product = covariance * gradient;
  return covariance - product * product.transpose() / (gradient.dot(product) + variance);
}

Eigen::VectorXd VariancesLost(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& gradient,
                              double variance) {
  const Eigen::VectorXd product = covariance * gradient;
  return product.cwiseAbs2() / (gradient.dot(product) + variance);
}

NextRuns ChooseNextRuns(const BelievedModel& model, const Plan& target,
                        const std::vector<Plan>& candidates, const CalibratedRange& range,
                        int count) {
  const std::string scope = model.belief().scope();
  std::vector<Candidate> all;
  for (const Plan& plan : candidates) {
    Candidate candidate{plan, model.Evaluate(plan), 0, false};
    candidate.device_seconds = DeviceSeconds(plan, candidate.answer.log_step);
    all.push_back(std::move(candidate));
  }
  const Goal goal(model, target);
  Eigen::MatrixXd covariance = model.belief().log_covariance();
  CalibratedRange measured = range;
  const auto noise = [&](const Candidate& c) {
    return Square(c.answer.scatter) + Square(DiscrepancyOf(c.plan, measured, scope));
  };
  NextRuns result;
  const Goal::Variances now = goal.At(model.belief().After(covariance, measured), measured);
  result.log_sd = std::sqrt(now.all);
  result.log_sd_above = std::sqrt(now.above);
  while (static_cast<int>(result.runs.size()) < count) {
    std::vector<double> gains;
    for (const Candidate& c : all) {
      if (c.chosen) {
        gains.push_back(0);
        continue;
      }
      const Eigen::VectorXd product = covariance * c.answer.gradient;
      const double known =
          Square(goal.gradient().dot(product)) / (c.answer.gradient.dot(product) + noise(c));
      const double nearer = goal.Beyond(measured, scope) -
                            goal.Beyond(Extended(measured, model.cluster(), c.plan, scope), scope);
      gains.push_back(known + nearer);
    }
    if (gains.empty()) break;
    const double best = *std::max_element(gains.begin(), gains.end());
    if (best < kLeastGain) break;
    Candidate* chosen = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].chosen || gains[i] < kGoodShare * best) continue;
      if (chosen == nullptr || all[i].device_seconds < chosen->device_seconds) chosen = &all[i];
    }
    chosen->chosen = true;
    const Eigen::MatrixXd after =
        CovarianceAfter(covariance, chosen->answer.gradient, noise(*chosen));
    measured = Extended(measured, model.cluster(), chosen->plan, scope);
    const Goal::Variances then = goal.At(model.belief().After(after, measured), measured);
    result.runs.push_back({chosen->plan, Seconds(std::exp(chosen->answer.log_step)),
                           chosen->device_seconds, std::sqrt(then.all), std::sqrt(then.above),
                           Tells(model.belief(), covariance, after)});
    covariance = after;
  }
  return result;
}

void AddHostRuns(const BelievedModel& model, const Plan& target, const CalibratedRange& range,
                 const std::set<std::string>& hosts, NextRuns* next) {
  if (model.workload().communication_only || hosts.size() < 2) return;
  const bool first = next->runs.empty();
  const double log_sd = first ? next->log_sd : next->runs.back().log_sd;
  const double log_sd_above = first ? next->log_sd_above : next->runs.back().log_sd_above;
  std::set<std::vector<std::string>> chosen;
  for (const NextRun& run : next->runs) chosen.insert(run.plan.hosts);
  for (const std::string& host : hosts) {
    if (range.hosts_alone.count(host) > 0) continue;
    Plan plan = Alone(target);
    plan.placement = {1};
    plan.hosts = {host};
    if (!UsesServers(target.strategy) && DevicesOnFullestNode(target.placement) > 1) {
      // All of its devices: the slowest of them sets the pace.
      plan.placement = {DevicesOnFullestNode(target.placement)};
      plan.strategy = target.strategy;
    }
    if (chosen.count(plan.hosts) > 0) continue;
    const double log_step = model.Evaluate(plan).log_step;
    next->runs.push_back({plan, Seconds(std::exp(log_step)), DeviceSeconds(plan, log_step), log_sd,
                          log_sd_above, "whether " + host + " computes like the others"});
  }
}

std::vector<Plan> CandidatePlans(const Plan& target, const CalibratedRange::BatchRange& batches) {
  const int nodes = target.nodes();
  const int devices = DevicesOnFullestNode(target.placement);
  std::set<int> node_counts = {1, 2, 3, 4, nodes};
  for (int n = 4; n < nodes; n *= 2) node_counts.insert(n);
  std::set<int> device_counts = {1, std::min(2, devices), devices};
  std::set<int> sizes = {target.local_batch, std::max(1, target.local_batch / 4)};
  if (batches.max > 0) sizes.insert({batches.min, batches.max});
  std::vector<Plan> plans;
  Placement fullest_first = target.placement;
  const bool named = !target.hosts.empty();
  // With named hosts their order says which devices are whose.
  if (!named) std::sort(fullest_first.begin(), fullest_first.end(), std::greater<>());
  std::set<std::pair<Placement, int>> seen;
  for (const int n : node_counts) {
    if (n > nodes) continue;
    for (const int d : device_counts) {
      for (const int batch : sizes) {
        Placement placement(fullest_first.begin(), fullest_first.begin() + n);
        for (int& used : placement) used = std::min(used, d);
        Plan plan = WithPlacement(target, placement);
        plan.local_batch = batch;
        if (!seen.insert({plan.placement, batch}).second) continue;
        if (named) plan.hosts.resize(static_cast<std::size_t>(n));
        if (plan.workers() == 1 && !UsesServers(plan.strategy)) {
          plan = Alone(plan);
        }
        plans.push_back(std::move(plan));
      }
    }
  }
  return plans;
}

}  // namespace stepcast
