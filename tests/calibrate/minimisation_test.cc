// What a fit is made of: where it begins, what it holds, and how far it lets a value be.
#include "calibrate/minimisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/group_rows.h"
#include "calibrate/profile.h"
#include "calibrate/starting_point.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

// A problem as a fit takes it.
struct Posed {
  explicit Posed(CalibrationProblem of)
      : problem(std::move(of)),
        layout(problem.cluster, problem.runs, problem.workloads, problem.devices),
        plans(GroupRows(problem, layout)) {
    SetScatter(0.05, &plans);
    for (const PlanRows& plan : plans) pointers.push_back(&plan);
    for (const FittedParameter& p : layout.parameters()) priors.push_back(std::log(p.prior.si));
  }

  // The fit in which one value stays where `from` has it.
  Fit Holding(std::vector<double> from, int held) const {
    return Minimisation(layout, pointers, std::move(from), {.hold = held})
        .Solve(100, kFitTolerance);
  }

  CalibrationProblem problem;
  ParameterLayout layout;
  std::vector<PlanRows> plans;
  std::vector<const PlanRows*> pointers;
  std::vector<double> priors;
};

SyntheticProblem OneWorkload() {
  Truth truth = PlausibleTruth();
  const WorkloadParameters<double> resnet50 = truth.workloads.at("resnet50");
  truth.workloads = {{"resnet50", resnet50}};
  return SyntheticProblem(truth);
}

SyntheticProblem Campaign() {
  SyntheticProblem synthetic = OneWorkload();
  AddCampaign(&synthetic, {{1}, {2}, {1, 1}, {2, 2}, {1, 1, 1}}, 0.03, 5);
  return synthetic;
}

TEST(Minimisation, HoldsWhatItIsTold) {
  const Posed posed(Campaign().problem());
  for (int i = 0; i < posed.layout.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::vector<double> start = posed.priors;
    start[at] += 0.01;
    const Fit held = posed.Holding(start, i);
    EXPECT_EQ(held.values[at], start[at]) << posed.layout.parameters()[at].spec->name;
    EXPECT_NE(held.values, start) << "the others move";
  }
}

// The block that is told alone moves: all others, of which some would, stay where they were.
TEST(Minimisation, MovesOneBlockAlone) {
  const Posed posed(Campaign().problem());
  const std::vector<ParameterLayout::Block>& blocks = posed.layout.blocks();
  const auto block =
      std::find_if(blocks.begin(), blocks.end(), [](const ParameterLayout::Block& one) {
        return one.kind == ParameterLayout::Kind::kWorkload;
      });
  ASSERT_NE(block, blocks.end());
  const auto inside = [&](std::size_t i) {
    const int at = static_cast<int>(i) - block->offset;
    return at >= 0 && at < block->size;
  };
  const auto moved_of = [&](const MinimisationOptions& options, bool own) {
    const Fit fit =
        Minimisation(posed.layout, posed.pointers, posed.priors, options).Solve(100, kFitTolerance);
    int moved = 0;
    for (std::size_t i = 0; i < fit.values.size(); ++i) {
      moved += inside(i) == own && fit.values[i] != posed.priors[i];
    }
    return moved;
  };
  EXPECT_GT(moved_of({}, false), 0);
  EXPECT_EQ(moved_of({.only = block->offset}, false), 0);
  EXPECT_GT(moved_of({.only = block->offset}, true), 0);
}

// Through the middle of the samples' times with the fewest workers, whatever comes before or behind
// them; a run that was stopped has no time.
TEST(FindStart, IsTheCurveThroughTheFewestWorkers) {
  SyntheticProblem synthetic = OneWorkload();
  const auto add = [&](const Placement& placement, int batch, int accumulation, double seconds,
                       bool stopped) {
    Plan plan = AllreducePlan(placement, batch);
    plan.accumulation_steps = accumulation;
    synthetic.Add("resnet50", plan);
    synthetic.problem().runs.back().step_time = Seconds(seconds);
    synthetic.problem().runs.back().stopped = stopped;
  };
  add({1, 1}, 8, 1, 9, false);
  add({2}, 8, 1, 9, false);
  add({1}, 8, 1, 80, true);
  add({1}, 8, 1, 0.8, false);
  add({1}, 16, 1, 3.2, false);
  add({1}, 32, 2, 19.2, false);
  add({1}, 4, 1, 80, true);
  add({1, 1}, 4, 1, 9, false);
  const Posed posed(synthetic.problem());
  const Fit start = FindStart(posed.problem, posed.layout, posed.pointers, 0);
  const auto value = [&](int parameter) {
    const int offset = posed.layout.WorkloadOffset(posed.problem.runs.front());
    return std::exp(start.values[static_cast<std::size_t>(offset + parameter)]);
  };
  // Of 0.1, 0.2 and 0.3 s a sample; the constant parts are 0.3 of the smallest batch of 8.
  EXPECT_NEAR(value(kSampleTime), 0.8 * 0.2, 1e-9);
  EXPECT_NEAR(value(kFixedTime), 0.3 * 0.16 * 8, 1e-9);
  EXPECT_NEAR(value(kFloorTime), 0.3 * 0.16 * 8, 1e-9);
}

// ---- Which host is the slow one.

using GigabitsOf = std::map<std::string, double>;

// Links of four hosts after a fit has been improved without a step of its own: runs are exact, of
// each two of them, and all but links stands at its true value.
GigabitsOf ImprovedLinks(const GigabitsOf& true_links, const GigabitsOf& believed, bool is_moved) {
  Truth truth = PlausibleTruth();
  const WorkloadParameters<double> resnet50 = truth.workloads.at("resnet50");
  truth.workloads = {{"resnet50", resnet50}};
  for (const char* host : {"n1", "n2", "n3", "n4"}) {
    const auto own = true_links.find(host);
    truth.host_links[host] = GigabitsPerSecond(own == true_links.end() ? 3.0 : own->second);
  }
  SyntheticProblem synthetic(truth);
  for (const auto& [one, link] : truth.host_links) {
    for (const auto& [other, its] : truth.host_links) {
      if (one >= other) continue;
      Plan plan = AllreducePlan({1, 1}, 32);
      plan.hosts = {one, other};
      synthetic.Add("resnet50", plan);
    }
  }
  const Posed posed(synthetic.problem());
  std::vector<double> values;
  std::map<std::string, std::size_t> links;
  for (const FittedParameter& p : posed.layout.parameters()) {
    ParameterEstimate estimate;
    estimate.scope = p.scope;
    estimate.name = p.spec->name;
    double value = truth.ValueOf(estimate);
    const std::string prefix = kHostsScopePrefix;
    if (p.scope.rfind(prefix, 0) == 0) {
      const std::string host = p.scope.substr(prefix.size());
      links[host] = values.size();
      if (believed.count(host) > 0) value = believed.at(host);
    }
    values.push_back(std::log(value * p.spec->si_per_unit));
  }
  EXPECT_EQ(links.size(), 4U) << "each is told from the others";
  Fit fit = Minimisation(posed.layout, posed.pointers, values).Solve(0, kStartTolerance);
  EXPECT_EQ(fit.values, values);
  EXPECT_EQ(ImproveHosts(posed.layout, posed.pointers, 0, &fit) > 0, is_moved);
  GigabitsOf improved;
  for (const auto& [host, at] : links) {
    const double si_per_unit = posed.layout.parameters()[at].spec->si_per_unit;
    improved[host] = std::exp(fit.values[at]) / si_per_unit;
  }
  return improved;
}

// A link that was blamed goes back to where most are, and that of a host beside it has its rate, or
// the one between the two, or its own, whichever meets the runs.
TEST(ImproveHosts, BlamesTheHostThatRunsTell) {
  const double between = std::sqrt(3.0 * 0.5);
  const struct {
    GigabitsOf truth;
    GigabitsOf believed;
  } cases[] = {{{{"n2", 0.5}}, {{"n1", 0.5}}},
               {{{"n2", between}}, {{"n1", 0.5}}},
               {{{"n2", 0.5}}, {{"n1", 0.5}, {"n2", 0.5}}}};
  for (const auto& c : cases) {
    GigabitsOf believed = c.believed;
    believed.try_emplace("n2", 3);
    for (const auto& [host, gbit] : ImprovedLinks(c.truth, believed, true)) {
      const auto own = c.truth.find(host);
      EXPECT_NEAR(gbit, own == c.truth.end() ? 3 : own->second, 1e-9) << host;
    }
  }
}

// A fifth of an e-fold below three quarters of the hosts is slow, and less is not.
TEST(ImproveHosts, LeavesWhatIsHardlySlow) {
  const double hardly = 3 * std::exp(-0.19);
  EXPECT_NEAR(ImprovedLinks({}, {{"n1", hardly}}, false).at("n1"), hardly, 1e-9);
  EXPECT_NEAR(ImprovedLinks({}, {{"n1", 3 * std::exp(-0.21)}}, true).at("n1"), 3, 1e-9);
  // Of four, a quarter of the way from the third to the fourth.
  const double fourth = 3 * std::exp(0.4);
  const double most = 3 * std::exp(0.1);
  EXPECT_NEAR(ImprovedLinks({{"n1", most}, {"n4", fourth}}, {{"n1", 0.5}}, true).at("n1"), most,
              1e-9);
}

// ---- How far a value may be.

// What is believed of a value around another adds to what is believed of that.
TEST(PriorLogSd, OfOneAroundAnotherIsThatOfBoth) {
  int relative = 0;
  int multiples = 0;
  for (const bool has_sheet : {true, false}) {
    CalibrationProblem problem = Campaign().problem();
    if (has_sheet) problem.devices["t4"] = T4();
    const Posed posed(std::move(problem));
    for (int i = 0; i < posed.layout.size(); ++i) {
      const FittedParameter& p = posed.layout.parameters()[static_cast<std::size_t>(i)];
      const int around = p.multiple_of >= 0 ? p.multiple_of : p.relative_to;
      if (around < 0) {
        EXPECT_EQ(PriorLogSd(posed.layout, i), p.prior.log_sd);
        continue;
      }
      ++(p.multiple_of >= 0 ? multiples : relative);
      EXPECT_NEAR(std::pow(PriorLogSd(posed.layout, i), 2),
                  std::pow(p.prior.log_sd, 2) + std::pow(PriorLogSd(posed.layout, around), 2),
                  1e-12);
    }
  }
  EXPECT_GT(relative, 0);
  EXPECT_GT(multiples, 0);
}

// An interval ends where the cost, all others fitted anew, has risen by 1.96^2 / 2: not before, but
// at the end of the parameter's range or where nothing is known, and not far behind. The points
// that the search interpolates its root between are a factor of 1.6 apart.
TEST(Profile, EndsWhereTheCostHasRisen) {
  SyntheticProblem few = OneWorkload();
  for (const Placement& placement : std::vector<Placement>{{1}, {2}, {1, 1}, {2, 2}}) {
    for (const int batch : {2, 64}) few.Add("resnet50", AllreducePlan(placement, batch));
  }
  int risen = 0;
  int unknown = 0;
  int others = 0;
  for (const SyntheticProblem& synthetic : {Campaign(), few}) {
    const Posed posed(synthetic.problem());
    const Fit fit = Minimisation(posed.layout, posed.pointers,
                                 FindStart(posed.problem, posed.layout, posed.pointers, 100).values)
                        .Solve(200, kFitTolerance);
    const Eigen::MatrixXd covariance =
        Minimisation(posed.layout, posed.pointers, fit.values).Covariance().value();
    Profile profile(posed.layout, posed.pointers, fit, covariance);
    for (int i = 0; i < posed.layout.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const FittedParameter& p = posed.layout.parameters()[at];
      SCOPED_TRACE(std::string(p.spec->name));
      const double linear = profile.Linear(i).up;
      EXPECT_NEAR(linear, 1.96 * std::sqrt(covariance(i, i)), 1e-4 * linear);
      const double prior = 1.96 * PriorLogSd(posed.layout, i);
      const Profile::Followed followed = profile.Follow(i);
      const Interval& interval = followed.interval;
      for (const Alternative& there : followed.alternatives) {
        ++others;
        EXPECT_GE(there.distance, 1);
        const double rise = posed.Holding(there.values, i).cost - fit.cost;
        EXPECT_LT(rise, 1.1 * 1.1 * 1.645 * 1.645 / 2 + 1e-3) << "beyond the 90 % range";
      }
      for (const double sign : {-1.0, 1.0}) {
        const double reach = sign < 0 ? interval.down : interval.up;
        const double end = (sign < 0 ? p.spec->low : p.spec->high) * p.spec->si_per_unit;
        const double edge = std::abs(std::log(end) - fit.values[at]);
        EXPECT_GE(reach, linear * (1 - 1e-12));
        if (linear > 0.98 * prior) {
          ++unknown;
          EXPECT_NEAR(reach, linear, 1e-12);
          continue;
        }
        if (reach >= edge || reach > 1.2 * prior) continue;
        std::vector<double> moved = fit.values;
        moved[at] += sign * reach;
        const double root = std::sqrt(std::max(0.0, posed.Holding(moved, i).cost - fit.cost));
        EXPECT_GT(root, 1.386 * 0.8) << reach << " of " << linear;
        if (reach < 1.0001 * linear) continue;
        ++risen;
        EXPECT_LT(root, 1.386 * 1.2) << reach << " of " << linear;
      }
    }
  }
  EXPECT_GT(risen, 3);
  EXPECT_GT(unknown, 0);
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace stepcast
