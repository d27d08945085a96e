// When a row is suspect, and when an explanation of it is accepted: on both sides of each bound,
// with rows that are off by what is said here, beside a model whose values are known exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/suspects.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/step/believed_model.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

constexpr double kExact = 1e-6;  // standard error of values that are as good as known

// A fit of these values whose steps scatter so, and rows that are off by what is said of each.
struct Fitted {
  explicit Fitted(double scatter, double log_sd = kExact) {
    problem.cluster = SyntheticCluster();
    for (const char* name : {"bert_base", "resnet50"}) {
      problem.workloads[name] = *FindWorkload(name);
    }
    outcome.status = CalibrationOutcome::Status::kConverged;
    outcome.cluster = CalibratedCluster(PlausibleTruth(), log_sd);
    outcome.cluster.calibration->residual_log_sd = scatter;
  }

  BelievedModel Model(const std::string& workload = "resnet50") const {
    return {outcome.cluster, problem.workloads.at(workload), std::nullopt, kSyntheticDevice};
  }
  double LogStep(const Plan& plan) const { return Model().Evaluate(plan).log_step; }
  void Add(const Plan& plan, double log_ratio, const std::string& workload = "resnet50") {
    const double log_step = Model(workload).Evaluate(plan).log_step;
    stepcast::Run run;
    run.workload = workload;
    run.device = kSyntheticDevice;
    run.plan = plan;
    run.step_time = Seconds(std::exp(log_step + log_ratio));
    problem.runs.push_back(run);
    outcome.residuals.push_back({Seconds(std::exp(log_step)), log_ratio});
  }
  std::vector<Suspect> Find() const { return FindSuspects(problem, outcome); }

  CalibrationProblem problem;
  CalibrationOutcome outcome;
};

const Plan kAlone = AllreducePlan({1}, 32);
const Placement kEightNodes = Placement(8, 1);

// What is said of one row, off by so much; nothing where it is not suspect.
std::string CauseOf(Fitted fitted, const Plan& plan, double log_ratio) {
  fitted.Add(plan, log_ratio);
  for (const Suspect& suspect : fitted.Find()) {
    if (suspect.run + 1 == fitted.problem.runs.size()) return suspect.cause;
  }
  return "";
}

// Of a row that takes as long as `truth` would.
std::string CauseAs(const Fitted& fitted, const Plan& stated, const Plan& truth) {
  return CauseOf(fitted, stated, fitted.LogStep(truth) - fitted.LogStep(stated));
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Plan At(Plan plan, double gbit) {
  plan.link.bandwidth = GigabitsPerSecond(gbit);
  return plan;
}

// ---- When a row is suspect.

// Four scatters, but a quarter more at least and three times as much at most.
TEST(SuspectBounds, OfARow) {
  for (const auto& [scatter, bound] :
       {std::pair(0.03, std::log(1.25)), std::pair(0.0559, 4 * 0.0559), std::pair(0.1, 0.4),
        std::pair(0.27, 4 * 0.27), std::pair(0.28, std::log(3.0)), std::pair(1.0, std::log(3.0))}) {
    for (const double share : {0.999, 1.001}) {
      for (const int sign : {1, -1}) {
        for (const bool stopped : {false, true}) {
          Fitted fitted(scatter);
          fitted.Add(kAlone, sign * share * bound);
          fitted.problem.runs.back().stopped = stopped;
          EXPECT_EQ(fitted.Find().size(), share > 1 && (sign > 0 || !stopped) ? 1U : 0U)
              << scatter << " " << share << " " << sign << " " << stopped;
        }
      }
    }
  }
}

// The scatter of the workload's own steps, by their shares, else of all.
TEST(SuspectBounds, OfARowByItsParts) {
  const std::string own = WorkloadScope(*FindWorkload("resnet50"), kSyntheticDevice);
  const Scatter of_own = {0.1, 0.25};
  const Scatter of_all = {0.06, 0.2};
  const Plan plan = AllreducePlan({1, 1}, 32);
  for (const bool has_own : {false, true}) {
    Fitted empty(0.03);
    Calibration& calibration = *empty.outcome.cluster.calibration;
    calibration.scatter[kAllScope] = of_all;
    if (has_own) calibration.scatter[own] = of_own;
    const double share = empty.Model().Evaluate(plan).sync_share;
    ASSERT_GT(share, 0.05);
    const double bound = 4 * (has_own ? of_own : of_all).At(share);
    ASSERT_GT(bound, std::log(1.25));
    ASSERT_LT(bound, std::log(3.0));
    EXPECT_EQ(CauseOf(empty, plan, 0.999 * bound), "") << has_own;
    EXPECT_NE(CauseOf(empty, plan, 1.001 * bound), "") << has_own;
    Fitted stopped = empty;
    stopped.Add(plan, 0.999 * bound);
    stopped.Add(plan, 1.001 * bound);
    for (stepcast::Run& run : stopped.problem.runs) run.stopped = true;
    ASSERT_EQ(stopped.Find().size(), 1U);
    EXPECT_EQ(stopped.Find()[0].run, 1U);
  }
}

TEST(SuspectBounds, OfARunThatWasStopped) {
  Fitted fitted(0.03);
  fitted.Add(kAlone, std::log(3.5));
  fitted.problem.runs.back().stopped = true;
  const std::vector<Suspect> found = fitted.Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].factor, 3.5, 1e-12);
  EXPECT_EQ(found[0].cause,
            "it hung, or took longer by 3.5 at least than the other runs let expect; a run that "
            "hung is no bound of a step");
}

// Runs of one plan as long as these, all of which the fit meets: those that are told of.
std::vector<std::size_t> Contradictory(const std::vector<double>& factors) {
  Fitted fitted(0.03);
  for (const double factor : factors) {
    fitted.Add(kAlone, std::log(factor));
    fitted.outcome.residuals.back().log_ratio = 0;
  }
  std::vector<std::size_t> runs;
  for (const Suspect& suspect : fitted.Find()) runs.push_back(suspect.run);
  std::sort(runs.begin(), runs.end());
  return runs;
}

// A gap of twice as much parts them; three quarters are right against the rest.
TEST(SuspectBounds, OfAContradiction) {
  using Rows = std::vector<std::size_t>;
  EXPECT_EQ(Contradictory({1, 1.998}), Rows());
  EXPECT_EQ(Contradictory({1, 2.002}), (Rows{0, 1}));
  EXPECT_EQ(Contradictory({1, 1.7, 2.9}), Rows());
  EXPECT_EQ(Contradictory({3, 1, 1}), (Rows{0, 1, 2}));
  EXPECT_EQ(Contradictory({3, 1, 1, 1}), Rows{0});
  EXPECT_EQ(Contradictory({3, 3, 3, 1}), Rows{3});
  EXPECT_EQ(Contradictory({3, 3, 1, 1, 1, 1}), (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Contradictory({3, 3, 1, 1, 1, 1, 1, 1}), (Rows{0, 1}));
  EXPECT_EQ(Contradictory({9, 3, 1}), (Rows{0, 1, 2}));
  EXPECT_EQ(Contradictory({9, 3, 1, 1, 1, 1, 1, 1}), (Rows{0, 1}));
}

TEST(SuspectBounds, OfWhatIsSaidOfAContradiction) {
  const auto causes = [](const Plan& plan) {
    Fitted fitted(0.03);
    fitted.Add(plan, 0);
    fitted.Add(plan, std::log(3.0));
    std::vector<std::string> said(2);
    for (const Suspect& suspect : fitted.Find()) said.at(suspect.run) = suspect.cause;
    return said;
  };
  const std::string differ = "; runs of this plan differ by a factor of 3";
  EXPECT_EQ(causes(kAlone)[0], "behaves as the model says" + differ);
  EXPECT_EQ(causes(kAlone)[1],
            "slower by a factor of 3 than its like: a straggling node, a device that is throttled "
            "or shared, or steps of the warm-up" +
                differ);
  Plan pair = AllreducePlan({1, 1}, 32);
  EXPECT_TRUE(Contains(causes(pair)[1], differ + ": name the hosts of each"));
  pair.hosts = {"a", "b"};
  EXPECT_TRUE(Contains(causes(pair)[1], differ));
  EXPECT_FALSE(Contains(causes(pair)[1], "name the hosts"));
}

// The worst first; of two that are as grave the one that is further off, else the earlier.
TEST(SuspectBounds, OfTheirOrder) {
  Fitted fitted(0.03);
  fitted.Add(kAlone, 0.5);
  fitted.Add(AllreducePlan({1}, 6), -0.5, "bert_base");  // whose workload comes first
  fitted.Add(AllreducePlan({1}, 64), 0.3);
  fitted.Add(AllreducePlan({1}, 64), 0.3);
  // Three times apart: as grave as the root of that, however near the fit is.
  fitted.problem.runs[3].step_time = fitted.problem.runs[2].step_time * 3.0;
  fitted.outcome.residuals[2].log_ratio = 0.1;
  fitted.outcome.residuals[3].log_ratio = -0.2;
  fitted.Add(AllreducePlan({1}, 48), 0.54);
  fitted.Add(AllreducePlan({1}, 49), 0.56);
  std::vector<std::size_t> order;
  for (const Suspect& suspect : fitted.Find()) order.push_back(suspect.run);
  EXPECT_EQ(order, (std::vector<std::size_t>{5, 3, 2, 4, 0, 1}));
}

// ---- When an explanation is accepted.

// Within three scatters, of the step and of what is not known of the plan, and 0.3 at most.
TEST(SuspectBounds, OfWhatMeetsARow) {
  for (const auto& [scatter, log_sd] : {std::pair(0.02, kExact), std::pair(0.02, 0.05),
                                        std::pair(0.1, kExact), std::pair(0.5, kExact)}) {
    const Fitted fitted(scatter, log_sd);
    double variance = scatter * scatter;
    for (const double slope : fitted.Model().Evaluate(kAlone).gradient) {
      variance += log_sd * log_sd * slope * slope;
    }
    const double met = std::min(3 * std::sqrt(variance), 0.3);
    EXPECT_EQ(met < 0.25, scatter == 0.02);
    for (const int sign : {1, -1}) {
      for (const auto& [share, explained] : {std::pair(0.99, true), std::pair(1.01, false)}) {
        const double off = sign * share * met;
        EXPECT_EQ(Contains(CauseOf(fitted, kAlone, std::log(1000.0) + off),
                           "looks like milliseconds given as seconds"),
                  explained)
            << scatter << " " << log_sd << " " << off;
      }
    }
  }
}

// Three times as near as the fit is: of a row off by ln 2 - d, what leaves d of it.
TEST(SuspectBounds, OfWhatComesNearer) {
  const Fitted fitted(0.1);
  Plan twice = kAlone;
  twice.accumulation_steps = 2;
  const double bound = std::log(2.0) / 4;
  for (const auto& [share, explained] : {std::pair(0.995, true), std::pair(1.005, false)}) {
    EXPECT_EQ(Contains(CauseOf(fitted, twice, std::log(2.0) - share * bound),
                       "looks like the time of a step of 2 micro-steps taken once for each"),
              explained)
        << share;
  }
}

// Of several numbers of micro-steps that would do, the nearest.
TEST(SuspectBounds, OfMicroStepsTheNearest) {
  Fitted fitted(0.1);
  const auto of = [](int steps, int batch) {
    Plan plan = AllreducePlan({1}, batch);
    plan.accumulation_steps = steps;
    return plan;
  };
  for (const int steps : {3, 4, 5}) fitted.Add(of(steps, 16), 0);
  EXPECT_TRUE(Contains(CauseAs(fitted, of(1, 32), of(4, 32)),
                       "looks like a step of 4 accumulated micro-steps, where 1 is stated"));
}

// Of a batch that is that of all workers and all micro-steps, or was divided among both.
TEST(SuspectBounds, OfABatchOfAll) {
  const Fitted fitted(0.03);
  const auto of = [](int batch) {
    Plan plan = AllreducePlan({4}, batch);
    plan.accumulation_steps = 2;
    return plan;
  };
  EXPECT_EQ(CauseAs(fitted, of(64), of(8)),
            "looks like a local batch of 8: local_batch 64 may be the batch of all workers and "
            "micro-steps");
  EXPECT_EQ(CauseAs(fitted, of(8), of(64)),
            "looks like a local batch of 64: local_batch 8 may be a batch already divided among "
            "all workers and micro-steps");
}

// What a slip explains a slow device may explain as well, where it is no more than that.
TEST(SuspectBounds, OfWhatElseIsAsSlow) {
  const Fitted fitted(0.03);
  const Plan stated = AllreducePlan({2}, 24);
  EXPECT_EQ(CauseAs(fitted, stated, AllreducePlan({2}, 48)),
            "looks like a local batch of 48: local_batch 24 may be a batch already divided among "
            "all 2 workers, or like a straggling node or a throttled device");
  EXPECT_EQ(CauseAs(fitted, stated, AllreducePlan({2}, 12)),
            "looks like a local batch of 12: local_batch 24 may be the batch of all 2 workers")
      << "no device is faster than it is";
}

// From half of the step on, or from a factor of two, a row is the network's.
TEST(SuspectBounds, OfWhatMayBeTheNetwork) {
  const Fitted fitted(0.03);
  const auto share_of = [&](int batch) {
    return fitted.Model().Evaluate(AllreducePlan(kEightNodes, batch)).sync_share;
  };
  int batch = 1;
  while (batch < 1000 && share_of(batch) >= 0.5) ++batch;
  ASSERT_GT(batch, 1);
  ASSERT_LT(share_of(batch), 0.5);
  const auto cause = [&](int local_batch, double factor) {
    return CauseOf(fitted, AllreducePlan(kEightNodes, local_batch), std::log(factor));
  };
  const std::string network = "behaves like a link of ";
  const std::string device = "than its like: a straggling node";
  EXPECT_TRUE(Contains(cause(batch - 1, 1.6), network)) << cause(batch - 1, 1.6);
  EXPECT_TRUE(Contains(cause(batch, 1.6), device)) << cause(batch, 1.6);
  EXPECT_TRUE(Contains(cause(batch, 1.99), device)) << cause(batch, 1.99);
  EXPECT_TRUE(Contains(cause(batch, 2.01), network)) << cause(batch, 2.01);
}

// A rate that a link is sold with, from 0.57 to 1.43 of it.
TEST(SuspectBounds, OfARateThatLinksAreSoldWith) {
  const Fitted fitted(0.03);
  const Plan plan = AllreducePlan(kEightNodes, 16);
  for (const auto& [gbit, sold] : {std::pair(0.56, false), std::pair(0.58, true),
                                   std::pair(1.42, true), std::pair(1.44, false)}) {
    const std::string cause = CauseAs(fitted, plan, At(plan, gbit));
    EXPECT_EQ(Contains(cause, "link of 1 Gbit/s"), sold) << gbit << ": " << cause;
  }
}

// Beside a simpler explanation only links that somebody may use.
TEST(SuspectBounds, OfTheSlowestLinkThatIsThoughtOf) {
  const Fitted fitted(0.03);
  const std::string minutes = "looks like seconds multiplied by 60 once too often";
  // The larger the batch, the slower a link would have to be.
  const Plan small = AllreducePlan(kEightNodes, 1);
  Plan large = AllreducePlan(kEightNodes, 101);
  const auto takes_too_long = [&] {
    return fitted.LogStep(At(large, 0.01)) - fitted.LogStep(large) > std::log(60.0);
  };
  while (large.local_batch < 2000 && takes_too_long()) large.local_batch += 50;
  ASSERT_FALSE(takes_too_long());
  const std::string of_small = CauseOf(fitted, small, std::log(60.0));
  EXPECT_EQ(of_small, minutes + ", or behaves like a link of 100 Mbit/s");
  EXPECT_EQ(CauseOf(fitted, large, std::log(60.0)), minutes);
}

// A third of what is stated, or three times as much, is worth saying.
TEST(SuspectBounds, OfARateBesideWhatIsStated) {
  const Plan plan = AllreducePlan(kEightNodes, 15);
  for (const auto& [stated, told] : {std::pair(2.97, false), std::pair(3.03, true)}) {
    Fitted fitted(0.03);
    fitted.problem.cluster.link.bandwidth = GigabitsPerSecond(stated);
    const std::string cause = CauseAs(fitted, plan, At(plan, 1));
    EXPECT_TRUE(Contains(cause, "behaves like a link of 1 Gbit/s")) << cause;
    EXPECT_EQ(
        Contains(cause, "; the cluster file says 3.03 Gbit/s: look at the cable and the port"),
        told)
        << cause;
  }
  for (const auto& [stated, told] : {std::pair(0.82, true), std::pair(0.85, false)}) {
    const std::string cause = CauseAs(Fitted(0.03), At(plan, stated), At(plan, 2.5));
    EXPECT_TRUE(Contains(cause, "behaves like a link of 2.5 Gbit/s")) << cause;
    EXPECT_EQ(Contains(cause, "; the row says 820 Mbit/s"), told) << cause;
    EXPECT_FALSE(Contains(cause, "look at the cable")) << cause;
  }
}

// Of hosts the slowest port of those that the row names.
TEST(SuspectBounds, OfThePortsOfARow) {
  Fitted fitted(0.03);
  Cluster& cluster = fitted.problem.cluster;
  cluster.link.bandwidth = GigabitsPerSecond(20.0);
  AddHosts({"a"}, GigabitsPerSecond(10.0), &cluster);
  AddHosts({"b"}, GigabitsPerSecond(4.0), &cluster);
  AddHosts({"c"}, GigabitsPerSecond(2.0), &cluster);
  AddHosts({"d"}, std::nullopt, &cluster);
  const auto says = [&](const std::vector<std::string>& hosts, const std::string& rate) {
    Plan plan = AllreducePlan(Placement(hosts.size(), 1), 15);
    plan.hosts = hosts;
    const std::string cause = CauseAs(fitted, plan, At(plan, 0.05));
    EXPECT_TRUE(Contains(cause, "; the cluster file says " + rate)) << cause;
  };
  says({"a", "b", "d"}, "4 Gbit/s");
  says({"a", "d", "d"}, "10 Gbit/s");
  says({"d", "d", "d"}, "20 Gbit/s");
}

TEST(SuspectBounds, OfALossThatIsTold) {
  const Fitted fitted(0.03);
  Plan plan = AllreducePlan(kEightNodes, 24);
  plan.link.rtt = Milliseconds(10.0);
  plan.link.loss = 0.001;
  Plan truth = plan;
  truth.link.loss = 0.02;
  EXPECT_EQ(CauseAs(fitted, plan, truth),
            "behaves like a link that loses 2 %, where 0.1 % are stated");
}

// Less than nothing but compute, or only less than the model says.
TEST(SuspectBounds, OfWhatIsFaster) {
  const Fitted fitted(0.03);
  const double log_ratio = -std::log(1.5);
  Plan plan = AllreducePlan({1, 1, 1}, 1);
  const auto alone_is_slower_by = [&] {  // than the row
    Plan alone = plan;
    alone.strategy = Strategy::kNone;
    return fitted.LogStep(alone) - fitted.LogStep(plan) - log_ratio;
  };
  constexpr double kMet = 3 * 0.03;
  while (plan.local_batch < 1000 && alone_is_slower_by() < kMet + 0.01) ++plan.local_batch;
  ASSERT_LT(plan.local_batch, 1000);
  EXPECT_EQ(CauseOf(fitted, plan, log_ratio),
            "faster than the compute alone: fewer samples, another precision or another device?");
  while (plan.local_batch > 1 && alone_is_slower_by() > kMet - 0.01) --plan.local_batch;
  ASSERT_GT(plan.local_batch, 1);
  ASSERT_LT(fitted.Model().Evaluate(plan).sync_share, 0.5);
  EXPECT_EQ(CauseOf(fitted, plan, log_ratio),
            "faster by a factor of 1.5 than the model says: compressed gradients, another strategy "
            "or fewer nodes?");
}

}  // namespace
}  // namespace stepcast
