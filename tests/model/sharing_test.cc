// Jobs on one link: the closed form against jobs that are simulated, and its limits.
#include "model/network/sharing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "data/record/machine.h"
#include "data/workloads/catalog.h"
#include "model/exchange/exchange.h"
#include "tests/model/prior_step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

rc::Gen<double> Within(double low, double high) {
  return rc::gen::map(Whole(0, 1'000'000),
                      [=](int part) { return low + (high - low) * (part / 1e6); });
}

double Others(const std::vector<double>& shares) {
  return OthersOnLink<double>(std::span<const double>(shares));
}

// ---- Jobs that are simulated: each computes, sends over a link that all who send share alike, and
// begins anew when both are done. It sends from a moment of its compute on.
struct Job {
  double compute = 1;   // s
  double sends_at = 1;  // s, at most its compute
  double sends = 1;     // s alone
};

double Alone(const Job& job) { return std::max(job.sends_at + job.sends, job.compute); }

// Mean steps, of compute whose length differs by a twentieth from step to step.
std::vector<double> Simulate(const std::vector<Job>& jobs, std::mt19937* random) {
  constexpr int kSteps = 4000;
  std::normal_distribution<double> differs(1, 0.05);
  struct State {
    double begin = 0;
    double sends_at = 0;
    double computed = 0;
    std::optional<double> left;
    int steps = 0;
    double sum = 0;
  };
  std::vector<State> states(jobs.size());
  const auto start = [&](std::size_t i, double now) {
    const double factor = std::max(0.5, differs(*random));
    State& state = states[i];
    state.begin = now;
    state.sends_at = now + jobs[i].sends_at * factor;
    state.computed = now + jobs[i].compute * factor;
    state.left.reset();
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    start(i, std::uniform_real_distribution<double>(0, Alone(jobs[i]))(*random));
  }
  double now = 0;
  const auto few = [](const State& state) { return state.steps < kSteps; };
  while (std::any_of(states.begin(), states.end(), few)) {
    const auto crowd = static_cast<double>(std::count_if(
        states.begin(), states.end(), [](const State& state) { return state.left.has_value(); }));
    std::size_t next = 0;
    double when = 1e300;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const double at = states[i].left ? now + *states[i].left * crowd : states[i].sends_at;
      if (at < when) when = at, next = i;
    }
    for (State& state : states) {
      if (state.left) *state.left -= (when - now) / crowd;
    }
    now = when;
    State& state = states[next];
    if (!state.left) {
      state.left = jobs[next].sends;
      continue;
    }
    const double end = std::max(now, state.computed);
    state.sum += end - state.begin;
    ++state.steps;
    start(next, end);
  }
  std::vector<double> means;
  for (const State& state : states) means.push_back(state.sum / state.steps);
  return means;
}

// Predicted over simulated of each of some jobs, whose exchanges hide or not.
std::vector<double> Errors(int count, bool hides, std::mt19937* random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(*random);
  };
  std::vector<Job> jobs;
  for (int i = 0; i < count; ++i) {
    Job job;
    job.compute = between(0.2, 2);
    job.sends_at = hides ? job.compute * between(0.4, 1) : job.compute;
    job.sends = job.compute * between(0.1, 2);
    jobs.push_back(job);
  }
  const std::vector<double> simulated = Simulate(jobs, random);
  std::vector<double> errors;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) shares.push_back(jobs[j].sends / Alone(jobs[j]));
    }
    const double sends = jobs[i].sends * (1 + Others(shares));
    errors.push_back(std::max(jobs[i].sends_at + sends, jobs[i].compute) / simulated[i] - 1);
  }
  return errors;
}

double MeanSize(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::abs(error);
  return sum / static_cast<double>(errors.size());
}

TEST(SharedLink, IsWhatSimulatedJobsLose) {
  std::mt19937 random(7);
  for (const int count : {2, 3, 5}) {
    std::vector<double> plain;
    std::vector<double> hidden;
    for (int i = 0; i < 12; ++i) {
      const std::vector<double> first = Errors(count, false, &random);
      const std::vector<double> second = Errors(count, true, &random);
      plain.insert(plain.end(), first.begin(), first.end());
      hidden.insert(hidden.end(), second.begin(), second.end());
    }
    EXPECT_LT(MeanSize(plain), 0.005) << count;
    EXPECT_LT(*std::max_element(plain.begin(), plain.end()), 0.02) << count;
    EXPECT_LT(MeanSize(hidden), 0.015) << count;
  }
}

TEST(SharedLink, ByHand) {
  EXPECT_EQ(Others({}), 0);
  EXPECT_EQ(Others({0, 0}), 0);
  EXPECT_DOUBLE_EQ(Others({0.3}), 0.3);
  EXPECT_DOUBLE_EQ(Others({0.5, 0.5}), 1.2);
  // Who always sends is always there.
  EXPECT_DOUBLE_EQ(Others({1, 1, 1}), 3);
}

RC_GTEST_PROP(SharedLinkProperty, GrowsWithEachShareWithinItsBounds, ()) {
  std::vector<double> shares;
  const int count = *Whole(1, 12);
  for (int i = 0; i < count; ++i) shares.push_back(*Within(0, 1));
  const double others = Others(shares);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  RC_ASSERT(others >= sum * (1 - 1e-12));
  RC_ASSERT(others <= count * (1 + 1e-12));
  const auto at = static_cast<std::size_t>(*Whole(0, count - 1));
  shares[at] = *Within(shares[at], 1);
  RC_ASSERT(Others(shares) >= others * (1 - 1e-12));
}

// A step beside others is that on a link of so much less.
RC_GTEST_PROP(SharedLinkProperty, LeavesAShareOfTheLink, ()) {
  const Workload network = *FindWorkload("resnet50");
  Plan plan;
  plan.placement = Placement(static_cast<std::size_t>(*Whole(2, 16)), *Whole(1, 4));
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                                    Strategy::kPsSync, Strategy::kPsAsync, Strategy::kBytePs);
  plan.servers = UsesServers(plan.strategy) ? *Whole(1, 4) : 0;
  plan.local_batch = 32;
  plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  if (*Whole(0, 1) == 1) plan.link.transport = Transport::kRdma;
  const double others = *LogUniform(0.01, 10);
  const auto total = [&](const Plan& p) { return PriorStep(p, network).total().si(); };
  Plan beside = plan;
  beside.link.others = others;
  Plan slower = plan;
  slower.link.bandwidth = *plan.link.bandwidth / (1 + others);
  RC_ASSERT(Near(total(beside) / total(slower), 1, 1e-12));
  beside.link.others = 0;
  RC_ASSERT(total(beside) == total(plan));

  // A copy takes its rate, and at most what it has beside o others: a fair share beside streams,
  // that of two and a half exchanges beside rounds.
  const bool in_rounds = !UsesServers(plan.strategy) && plan.strategy != Strategy::kBytePs;
  const double least = in_rounds ? 3.5 : 2;
  Plan copied = plan;
  const double taken = *LogUniform(0.01, 10);
  copied.link.background = *plan.link.bandwidth * taken;
  slower.link.bandwidth = *plan.link.bandwidth * std::max(1 - taken, 1 / least);
  RC_ASSERT(Near(total(copied) / total(slower), 1, 1e-12));
  copied.link.others = others;
  slower.link.bandwidth =
      *plan.link.bandwidth * std::max((1 - taken) / (1 + others), 1 / (least + others));
  RC_ASSERT(Near(total(copied) / total(slower), 1, 1e-12));
  copied.link.others.reset();
  copied.link.background = BytesPerSecond(0.0);
  RC_ASSERT(total(copied) == total(plan));
}

// The copy sends what it has, as soon as it can, and beside an exchange has a half of the link, or
// five sevenths of it.
TEST(SharedLink, ACopyLeavesWhatItDoesAsSimulated) {
  for (const double load : {0.1, 0.3, 0.5, 0.7, 0.9})
    for (const bool in_rounds : {false, true}) {
      const double share = in_rounds ? 5.0 / 7 : 0.5;
      constexpr double kExchange = 1.0;  // of the whole line
      constexpr double kCompute = 2.0;
      constexpr double kTick = 1e-4;
      double backlog = 0;
      double sent = 0;
      double time = 0;
      int steps = 0;
      double computed = 0;
      for (; steps < 200; time += kTick) {
        backlog += load * kTick;
        const bool exchanging = computed >= kCompute;
        const double copied = std::min(backlog, exchanging ? share * kTick : kTick);
        backlog -= copied;
        if (exchanging) {
          sent += kTick - copied;
          if (sent >= kExchange) {
            ++steps;
            sent = computed = 0;
          }
        } else {
          computed += kTick;
        }
      }
      const double left =
          1 - TakenByBackground(BytesPerSecond(1.0), BytesPerSecond(load), 0.0, in_rounds).si();
      EXPECT_NEAR(time / steps, kCompute + kExchange / left, 0.02 * time / steps) << load;
    }
}

// Who is on the servers' link leaves the workers' own alone, and the other way round.
TEST(SharedLink, OthersAreOnTheLinkThatTheyAreStatedOf) {
  const Workload network = *FindWorkload("resnet50");
  const auto total = [&](std::optional<double> of_nodes, std::optional<double> of_servers,
                         double nodes_gbit, double servers_gbit) {
    Plan plan;
    plan.placement = {1, 1};
    plan.strategy = Strategy::kPsSync;
    plan.servers = 1;
    plan.local_batch = 32;
    plan.link.bandwidth = GigabitsPerSecond(nodes_gbit);
    plan.link.others = of_nodes;
    plan.server_link.bandwidth = GigabitsPerSecond(servers_gbit);
    plan.server_link.others = of_servers;
    return PriorStep(plan, network).total().si();
  };
  EXPECT_NEAR(total({}, 9, 1, 100) / total({}, {}, 1, 10), 1, 1e-12);
  EXPECT_NEAR(total(4, {}, 10, 100) / total({}, {}, 2, 100), 1, 1e-12);
  EXPECT_NEAR(total(1, 3, 10, 40) / total({}, {}, 5, 10), 1, 1e-12);
}

TEST(SharedLink, ACopyIsOnTheLinkThatItIsStatedOf) {
  const Workload network = *FindWorkload("resnet50");
  const auto total = [&](double of_nodes, double of_servers, double nodes_gbit,
                         double servers_gbit) {
    Plan plan;
    plan.placement = {1, 1};
    plan.strategy = Strategy::kPsSync;
    plan.servers = 1;
    plan.local_batch = 32;
    plan.link.bandwidth = GigabitsPerSecond(nodes_gbit);
    plan.link.background = GigabitsPerSecond(of_nodes);
    plan.server_link.bandwidth = GigabitsPerSecond(servers_gbit);
    plan.server_link.background = GigabitsPerSecond(of_servers);
    return PriorStep(plan, network).total().si();
  };
  EXPECT_NEAR(total(0, 4, 1, 100) / total(0, 0, 1, 96), 1, 1e-12);
  EXPECT_NEAR(total(4, 0, 10, 100) / total(0, 0, 6, 100), 1, 1e-12);
  EXPECT_NEAR(total(3, 8, 10, 40) / total(0, 0, 7, 32), 1, 1e-12);
}

}  // namespace
}  // namespace stepcast
