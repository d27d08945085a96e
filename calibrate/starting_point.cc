#include "calibrate/starting_point.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "data/record/quantile.h"

namespace stepcast {
namespace {

// Where the search begins: at the priors, but with each workload's curve through its own runs with
// the fewest workers, so that the first linearisation is near the data.
std::vector<double> CurvesThroughFewestWorkers(const CalibrationProblem& problem,
                                               const ParameterLayout& layout) {
  std::vector<double> values;
  for (const FittedParameter& p : layout.parameters()) values.push_back(std::log(p.prior.si));
  std::map<int, std::vector<const Run*>> fewest;  // by the workload's offset
  for (const Run& run : problem.runs) {
    std::vector<const Run*>& chosen = fewest[layout.WorkloadOffset(run)];
    if (run.stopped) continue;
    if (!chosen.empty() && run.plan.workers() > chosen.front()->plan.workers()) continue;
    if (!chosen.empty() && run.plan.workers() < chosen.front()->plan.workers()) chosen.clear();
    chosen.push_back(&run);
  }
  for (const auto& [workload_offset, runs] : fewest) {
    if (runs.empty()) continue;          // all were stopped
    const int offset = workload_offset;  // which the lambda below may capture
    std::vector<double> per_sample;
    int smallest = runs.front()->plan.smallest_batch();
    for (const Run* run : runs) {
      per_sample.push_back(run->step_time.in(kSeconds) / run->plan.accumulation_steps /
                           run->plan.local_batch);
      smallest = std::min(smallest, run->plan.smallest_batch());
    }
    const double sample = 0.8 * MiddleOf(per_sample);
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
    return plan.model
        .Answer(
            PlanParameters::FromLogs(values.data(), values.data() + plan.workload_offset, &link),
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
        double& known = fastest.try_emplace(offset, *link).first->second;
        known = std::max(known, *link);
      }
    }
  }
  for (const auto& [offset, link] : fastest) (*values)[static_cast<std::size_t>(offset)] = link;
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
  double cost = 0;
  for (const PlanRows* plan : plans) cost += 0.5 * CostAt(*plan, values);
  return cost;
}

bool HaveServers(const std::vector<const PlanRows*>& plans) {
  return std::any_of(plans.begin(), plans.end(), [](const PlanRows* plan) {
    return UsesServers(plan->model.facts().strategy);
  });
}

// Different starts where the cost has been seen to have several minima: whether the link, its
// flows, the host, or the servers' processors hold a hop back; what does not is not felt, and a
// search that begins with a bottleneck at the wrong place may never find the right one. Of a grid
// around the priors the points that are nearest to the data.
std::vector<std::vector<double>> GridStarts(const ParameterLayout& layout,
                                            const std::vector<const PlanRows*>& sample,
                                            const std::vector<double>& centre) {
  constexpr double kStep = 1.2;  // in ln
  constexpr std::size_t kStarts = 4;
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

// Hosts' links as they are where fewer of them are slow, or others: that of each host that is
// slower than most goes back to where theirs are, and one that it shares runs with has its rate, or
// one between the two. A run is held back by the slowest of its links, and tells by its derivative
// of that one alone: a search that blames the wrong one of two hosts never tries the other.
std::vector<double> OtherSlowHosts(const ParameterLayout& layout,
                                   const std::vector<const PlanRows*>& plans,
                                   std::vector<double> values) {
  constexpr double kMost = 0.75;      // share of the hosts that may be slower than most
  constexpr double kSlow = 0.2;       // e-folds below these
  constexpr double kLeastFall = 0.1;  // of the cost
  constexpr std::size_t kMostAnswers = 20'000;
  const auto index = [](int link) { return static_cast<std::size_t>(link); };
  const auto prior = [&](int link) { return layout.parameters()[index(link)].prior; };
  // Against what is believed of its port.
  const auto relative = [&](int link) { return values[index(link)] - std::log(prior(link).si); };
  std::vector<int> links;
  std::vector<double> rates;
  for (const ParameterLayout::Block& block : layout.blocks()) {
    const FittedParameter& p = layout.parameters()[index(block.offset)];
    if (block.kind != ParameterLayout::Kind::kHosts || p.fixed) continue;
    if (p.spec != &kClusterParameterSpecs[kLinkBandwidth]) continue;
    links.push_back(block.offset);
    rates.push_back(relative(block.offset));
  }
  if (links.empty()) return values;
  std::sort(rates.begin(), rates.end());
  const double healthy = Quantile(rates, kMost);
  const auto is_slow = [&](int link) { return relative(link) < healthy - kSlow; };
  if (std::none_of(links.begin(), links.end(), is_slow)) return values;

  std::map<int, std::vector<const PlanRows*>> plans_of;
  for (const PlanRows* plan : plans) {
    for (const int link : plan->host_offsets) plans_of[link].push_back(plan);
  }
  std::size_t answers = 0;
  const auto cost_of = [&](int one, int other, const std::vector<double>& at) {
    std::vector<const PlanRows*> either = plans_of[one];
    for (const PlanRows* plan : plans_of[other]) {
      const std::vector<int>& of = plan->host_offsets;
      if (std::find(of.begin(), of.end(), one) == of.end()) either.push_back(plan);
    }
    answers += either.size();
    double cost = CostOf(either, at);
    for (const int link : {one, other}) {
      const double off = (at[index(link)] - std::log(prior(link).si)) / prior(link).log_sd;
      cost += 0.5 * off * off;
    }
    return cost;
  };
  for (;;) {
    double most = kLeastFall;
    std::vector<double> best;
    for (const int slow : links) {
      if (!is_slow(slow)) continue;
      std::set<int> others;
      for (const PlanRows* plan : plans_of[slow]) {
        others.insert(plan->host_offsets.begin(), plan->host_offsets.end());
      }
      others.erase(slow);
      for (const int other : others) {
        if (answers > kMostAnswers) return values;
        const double before = cost_of(slow, other, values);
        const double its = values[index(slow)];
        const double others_own = values[index(other)];
        std::vector<double> moved = values;
        moved[index(slow)] = std::log(prior(slow).si) + healthy;
        for (const double rate : {others_own, its, 0.5 * (others_own + its)}) {
          moved[index(other)] = rate;
          const double gain = before - cost_of(slow, other, moved);
          if (!(gain > most)) continue;
          most = gain;
          best = moved;
        }
      }
    }
    if (best.empty()) return values;
    values = std::move(best);
  }
}

}  // namespace

int ImproveHosts(const ParameterLayout& layout, const std::vector<const PlanRows*>& sample,
                 int max_iterations, Fit* fit) {
  constexpr int kRounds = 3;
  int iterations = 0;
  for (int round = 0; round < kRounds && fit->usable; ++round) {
    std::vector<double> start = OtherSlowHosts(layout, sample, fit->values);
    if (start == fit->values) break;
    Fit other =
        Minimisation(layout, sample, std::move(start)).Solve(max_iterations, kStartTolerance);
    iterations += other.iterations;
    if (!other.usable || !(other.cost < fit->cost)) break;
    *fit = std::move(other);
  }
  return iterations;
}

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
    Fit best = Minimisation(layout, own, *values, {.only = block.offset}).Solve(0, kStartTolerance);
    for (const double share : {kSmallShare, 1 - kSmallShare}) {
      std::vector<double> start = *values;
      start[fixed] = std::log(share * both);
      start[floor] = std::log((1 - share) * both);
      Fit fit = Minimisation(layout, own, std::move(start), {.only = block.offset})
                    .Solve(kMaxIterations, kStartTolerance);
      iterations += fit.iterations;
      if (fit.usable && fit.cost < best.cost) best = std::move(fit);
    }
    *values = std::move(best.values);
  }
  return iterations;
}

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
  iterations += ImproveHosts(layout, sample, max_iterations, &best);
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

}  // namespace stepcast
