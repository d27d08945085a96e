#include "calibrate/slow_hosts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "calibrate/group_rows.h"
#include "calibrate/scatter.h"
#include "data/record/quantile.h"
#include "model/statistics/normal.h"
#include "model/step/parameter_specs.h"

namespace stepcast {
namespace {

constexpr double kLevel = 0.01;
constexpr double kLeastZ = 3;
constexpr double kMostOfARow = 8;  // of z^2: no row is enough alone
constexpr double kLeastFactor = 1.1;
constexpr double kTold = 6;  // less of a difference in z^2 does not tell groups apart
constexpr std::size_t kMostTried = 4;
constexpr double kMostlyCompute = 0.2;  // share of a step from which on its time tells of compute
constexpr int kEnoughToTell = 20;       // iterations of a fit
constexpr std::size_t kPlansToTell = 2'000;

// How far a row's ln(step) is off, and what a factor on compute does to it.
struct RowState {
  int run = 0;
  double off = 0;      // ln(measured / predicted)
  double compute = 0;  // share of the step
  double log_sd = 1;
};

std::vector<RowState> StatesOf(const std::vector<PlanRows>& plans,
                               const std::vector<double>& values) {
  std::vector<RowState> states;
  for (const PlanRows& plan : plans) {
    const PlanAnswer answer = AnswerAt(plan, values);
    for (const MeasuredRow& row : plan.rows) {
      states.push_back(
          {row.run, row.log_step - answer.log_step, 1 - answer.sync_share, plan.log_sd});
    }
  }
  return states;
}

double TypicalOf(const std::vector<RowState>& states, double before) {
  std::vector<ScatterRow> rows;
  rows.reserve(states.size());
  for (const RowState& state : states) rows.push_back({state.off, 1 - state.compute});
  return TypicalScatter(rows, before);
}

double RobustCost(double z) { return 2 * (std::sqrt(1 + z * z) - 1); }

struct Group {
  std::vector<std::string> hosts;
  std::set<int> runs;  // that it takes part in
  double score = 0;
  double log_factor = 0;
};

// Which groups are worth a fit of their own, the likeliest first: by the slope of the cost at a
// factor of 1. A fit begins at the factor that the middle one of its rows asks for, because rows
// that are far off hardly pull.
std::vector<Group> Candidates(const CalibrationProblem& problem, const ParameterLayout& layout,
                              const std::vector<RowState>& states) {
  const HostGroups found = GroupByLayouts(problem.runs, [&](const Run& run) {
    return !problem.workloads.at(run.workload).communication_only;
  });
  std::vector<Group> groups;
  // All hosts together are the cluster.
  if (found.groups.size() < 2 && !found.some_without_hosts) return groups;
  const auto known = [&](const std::string& host) {
    Run alone;
    alone.plan.hosts = {host};
    return !layout.SlowdownsOf(alone).offsets.empty();
  };
  std::unordered_map<std::string_view, std::size_t> group_of;
  for (std::size_t i = 0; i < found.groups.size(); ++i) {
    for (const std::string& host : found.groups[i]) group_of.emplace(host, i);
  }
  std::vector<std::vector<std::size_t>> states_of(found.groups.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const std::string& host :
         problem.runs[static_cast<std::size_t>(states[i].run)].plan.hosts) {
      const auto it = group_of.find(host);
      if (it == group_of.end()) continue;
      std::vector<std::size_t>& own = states_of[it->second];
      if (own.empty() || own.back() != i) own.push_back(i);
    }
  }
  for (std::size_t i = 0; i < found.groups.size(); ++i) {
    if (known(found.groups[i].front())) continue;
    Group group;
    group.hosts = found.groups[i];
    double slope = 0;
    double curvature = 0;
    std::vector<double> asked;
    for (const std::size_t at : states_of[i]) {
      const RowState& state = states[at];
      group.runs.insert(state.run);
      const double z = state.off / state.log_sd;
      const double weight = 1 / (std::sqrt(1 + z * z) * state.log_sd * state.log_sd);
      slope += weight * state.off * state.compute;
      curvature += weight * state.compute * state.compute;
      if (state.compute > kMostlyCompute) asked.push_back(state.off / state.compute);
    }
    if (asked.size() < 2 || !(curvature > 0)) continue;
    group.score = slope * slope / curvature;
    group.log_factor = MiddleOf(std::move(asked));
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.score > b.score; });
  constexpr double kLeastScore = 1;
  while (!groups.empty() && (groups.size() > kMostTried || groups.back().score < kLeastScore)) {
    groups.pop_back();
  }
  return groups;
}

// What a fit's cost has beside its steps: the distances of values from their priors, and of shares
// of exposed synchronisation from the measured ones.
double CostBeside(const Fit& fit, const std::vector<RowState>& states) {
  double steps = 0;
  for (const RowState& state : states) steps += RobustCost(state.off / state.log_sd) / 2;
  return fit.cost - steps;
}

// Of many plans enough to tell, those that the slowdown at the offset has part in before others.
std::vector<PlanRows> Telling(const std::vector<PlanRows>& plans, int offset) {
  if (plans.size() <= kPlansToTell) return plans;
  std::vector<const PlanRows*> shuffled = Shuffled(plans);
  std::stable_partition(shuffled.begin(), shuffled.end(), [&](const PlanRows* plan) {
    const std::vector<int>& own = plan->slowdown_offsets;
    return std::find(own.begin(), own.end(), offset) != own.end();
  });
  std::vector<PlanRows> telling;
  for (std::size_t i = 0; i < kPlansToTell; ++i) telling.push_back(*shuffled[i]);
  return telling;
}

struct Tried {
  SlowHosts with;
  double z2 = 0;
  double log_factor = 0;
};

std::optional<Tried> Try(const CalibrationProblem& problem, const ParameterLayout& layout,
                         const Fit& fit, const Group& group, const CalibrationOptions& options) {
  Tried tried{{layout, {}, {}}, 0, 0};
  ParameterLayout& own = tried.with.layout;
  const int offset = own.AddSlowHosts(group.hosts);
  tried.with.plans = GroupRows(problem, own);
  std::vector<PlanRows> plans = Telling(tried.with.plans, offset);
  const std::vector<const PlanRows*> shuffled = Shuffled(plans);
  std::vector<double> start = fit.values;
  start.push_back(group.log_factor);
  SetScatter(options.step_log_sd, &plans);
  const int iterations = std::min(options.max_iterations, kEnoughToTell);
  const auto solve = [&](std::vector<double> from, std::optional<int> hold) {
    return Minimisation(own, shuffled, std::move(from), {.hold = hold})
        .Solve(iterations, kStartTolerance);
  };
  // The scatter around the fit with the factor, then both fits by it.
  Fit with = solve(start, std::nullopt);
  if (!with.usable) return std::nullopt;
  const double typical = TypicalOf(StatesOf(plans, with.values), options.step_log_sd);
  SetScatter(typical, &plans);
  with = solve(with.values, std::nullopt);
  start.back() = 0;
  const Fit without = solve(start, offset);
  if (!with.usable || !without.usable) return std::nullopt;
  const std::vector<RowState> near = StatesOf(plans, with.values);
  const std::vector<RowState> far = StatesOf(plans, without.values);
  tried.log_factor = with.values.back();
  // Whether there is a factor is asked of the runs alone: its own prior says how large it may be.
  const double log_sd = own.parameters().back().prior.log_sd;
  tried.z2 = 2 * (CostBeside(without, far) - CostBeside(with, near)) +
             tried.log_factor * tried.log_factor / (log_sd * log_sd);
  int nearer = 0;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const double fall =
        RobustCost(far[i].off / far[i].log_sd) - RobustCost(near[i].off / near[i].log_sd);
    tried.z2 += std::min(fall, kMostOfARow);
    if (fall > 0 && group.runs.count(near[i].run) > 0) ++nearer;
  }
  if (nearer < 2 || std::abs(tried.log_factor) < std::log(kLeastFactor)) return std::nullopt;
  SetScatter(typical, &tried.with.plans);
  tried.with.fit = with;
  return tried;
}

}  // namespace

std::optional<SlowHosts> NextSlowHosts(const CalibrationProblem& problem,
                                       const ParameterLayout& layout,
                                       const std::vector<PlanRows>& plans, const Fit& fit,
                                       const CalibrationOptions& options) {
  const std::vector<Group> groups = Candidates(problem, layout, StatesOf(plans, fit.values));
  if (groups.empty()) return std::nullopt;
  std::set<std::string> hosts;
  for (const Run& run : problem.runs) hosts.insert(run.plan.hosts.begin(), run.plan.hosts.end());
  const double least_z =
      std::max(kLeastZ, NormalQuantile(1 - kLevel / (2 * static_cast<double>(hosts.size()))));
  std::optional<Tried> best;
  const auto slower = [](const Tried& tried) { return tried.log_factor > 0; };
  for (const Group& group : groups) {
    std::optional<Tried> tried = Try(problem, layout, fit, group, options);
    if (!tried || tried->z2 < least_z * least_z) continue;
    bool better = !best || tried->z2 > best->z2;
    if (best && slower(*tried) != slower(*best) && std::abs(tried->z2 - best->z2) < kTold) {
      better = slower(*tried);
    }
    if (better) best = std::move(tried);
  }
  if (!best) return std::nullopt;
  return std::move(best->with);
}

void CountSlowRuns(const CalibrationProblem& problem, const ParameterLayout& layout,
                   const std::vector<PlanRows>& plans, const std::vector<double>& values,
                   std::vector<ParameterEstimate>* estimates) {
  std::map<int, std::vector<const PlanRows*>> plans_of;
  for (const PlanRows& plan : plans) {
    for (const int offset : plan.slowdown_offsets) plans_of[offset].push_back(&plan);
    // Of links the slowest alone holds a run back.
    const std::vector<int>& links = plan.host_offsets;
    const auto slowest = SlowestLink(
        links.size(), [&](std::size_t i) { return values[static_cast<std::size_t>(links[i])]; });
    if (slowest) plans_of[links[*slowest]].push_back(&plan);
  }
  for (const auto& [offset, own] : plans_of) {
    const auto at = static_cast<std::size_t>(offset);
    const FittedParameter& p = layout.parameters()[at];
    const bool is_link = p.spec != &kComputeSlowdownSpec;
    std::vector<double> as_others = values;
    as_others[at] = is_link ? std::log(p.prior.si) : 0;
    if (is_link && !(values[at] < as_others[at])) continue;
    struct Off {
      double with = 0;
      double without = 0;
    };
    std::map<std::pair<int, std::vector<std::string>>, Off> runs;  // a row, or hosts
    for (const PlanRows* plan : own) {
      const auto log_step = [&](const std::vector<double>& of) {
        return AnswerAt(*plan, of).log_step;
      };
      const double with = log_step(values);
      const double without = log_step(as_others);
      if (with == without) continue;  // another host holds it back
      for (const MeasuredRow& row : plan->rows) {
        const Run& run = problem.runs[static_cast<std::size_t>(row.run)];
        std::pair<int, std::vector<std::string>> key{row.run, {}};
        if (problem.workloads.at(run.workload).communication_only) {
          key = {-1, run.plan.hosts};
          std::sort(key.second.begin(), key.second.end());
        }
        Off& off = runs[std::move(key)];
        off.with += std::abs(row.log_step - with);
        off.without += std::abs(row.log_step - without);
      }
    }
    ParameterEstimate& estimate = (*estimates)[at];
    estimate.runs = static_cast<int>(runs.size());
    estimate.runs_nearer =
        static_cast<int>(std::count_if(runs.begin(), runs.end(), [](const auto& run) {
          return run.second.with < run.second.without;
        }));
  }
}

}  // namespace stepcast
