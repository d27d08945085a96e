// What reaches an utilisation, against the utilisation itself.
#include "predictor/search/inverse.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "data/plan/check.h"
#include "data/workloads/catalog.h"
#include "model/exchange/parameter_server_limits.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr int kDevicesPerNode = 4;
constexpr int kMost = 256;

Predictor MakePredictor() {
  return {CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), std::nullopt};
}

Plan BasePlan(Strategy strategy = Strategy::kRing, int servers = 0) {
  Plan plan;
  plan.placement = FillNodes(8, kDevicesPerNode);
  plan.local_batch = 32;
  plan.strategy = strategy;
  plan.servers = servers;
  plan.link.bandwidth = GigabitsPerSecond(2.0);
  plan.link.rtt = Milliseconds(0.2);
  return plan;
}

double Utilisation(const Predictor& predictor, const Plan& plan) {
  Plan one;
  one.local_batch = plan.local_batch;
  one.accumulation_steps = plan.accumulation_steps;
  one.strategy = Strategy::kNone;
  const StepTime<double> alone = predictor.PredictStep(one);
  const StepTime<double> step = predictor.PredictStep(plan);
  // Each of those that share the model out updates its share alone.
  const Duration<> update = plan.shard == Shard::kNone ? alone.update : step.update;
  return (alone.total() - alone.update + update) / step.total();
}

TEST(InverseQuestions, AnswersReachTheUtilisationAndNothingLessDoes) {
  const Predictor predictor = MakePredictor();
  int answered = 0;
  for (const Plan& plan : {BasePlan(), BasePlan(Strategy::kTree), BasePlan(Strategy::kPsSync, 2)}) {
    const InverseAnswers answers = AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost);
    EXPECT_NEAR(answers.utilisation, Utilisation(predictor, plan), 1e-12);
    ASSERT_EQ(answers.reaches.size(), std::size(kUtilisationsAsked));
    for (const WhatReaches& reach : answers.reaches) {
      // `change` sets the answer, or a little less than it.
      const auto check = [&](const auto& answer, auto change, double less) {
        if (!answer) return;
        ++answered;
        Plan changed = plan;
        change(&changed, *answer, 1.0);
        EXPECT_GE(Utilisation(predictor, changed), reach.utilisation);
        changed = plan;
        change(&changed, *answer, less);
        EXPECT_LT(Utilisation(predictor, changed), reach.utilisation);
      };
      check(
          reach.bandwidth,
          [](Plan* p, DataRate<> rate, double by) { p->link.bandwidth = rate * by; }, 0.99);
      check(
          reach.rtt, [](Plan* p, Duration<> trip, double by) { p->link.rtt = trip * by; }, 1.01);
      check(
          reach.loss, [](Plan* p, double loss, double by) { p->link.loss = loss * by; }, 1.01);
      const auto fewer = [](int count, double by) { return by < 1 ? count - 1 : count; };
      if (reach.accumulation_steps.value_or(0) > 1) {
        check(
            reach.accumulation_steps,
            [&](Plan* p, int a, double by) { p->accumulation_steps = fewer(a, by); }, 0.5);
      }
      if (reach.local_batch.value_or(0) > 1) {
        check(
            reach.local_batch,
            [&](Plan* p, int batch, double by) { p->local_batch = fewer(batch, by); }, 0.5);
      }
      if (reach.workers.value_or(kMost) < kMost) {
        check(
            reach.workers,
            [](Plan* p, int workers, double by) {
              p->placement = FillNodes(workers + (by < 1 ? 1 : 0), kDevicesPerNode);
            },
            0.5);
      }
    }
  }
  EXPECT_GT(answered, 20);
}

TEST(InverseQuestions, MoreUtilisationTakesMore) {
  const InverseAnswers answers =
      AnswerInverseQuestions(MakePredictor(), BasePlan(), kDevicesPerNode, kMost);
  for (std::size_t i = 1; i < answers.reaches.size(); ++i) {
    const WhatReaches& less = answers.reaches[i - 1];
    const WhatReaches& more = answers.reaches[i];
    if (more.bandwidth) {
      EXPECT_GE(*more.bandwidth, less.bandwidth.value());
    }
    if (more.accumulation_steps) {
      EXPECT_GE(*more.accumulation_steps, less.accumulation_steps.value());
    }
    if (more.workers) {
      EXPECT_LE(*more.workers, less.workers.value());
    }
  }
  ASSERT_TRUE(answers.twice_the_link);
  EXPECT_GT(*answers.twice_the_link, 1);
  EXPECT_LE(*answers.twice_the_link, 2);
}

// One worker of what is shared out, or rarely exchanged, is one that exchanges nothing, and updates
// what it would.
TEST(InverseQuestions, GoWithEveryPlanThatExchanges) {
  const Predictor predictor = MakePredictor();
  for (const Shard shard :
       {Shard::kOptimizer, Shard::kGradients, Shard::kParameters, Shard::kHybrid}) {
    Plan plan = BasePlan();
    plan.shard = shard;
    const InverseAnswers answers = AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost);
    EXPECT_NEAR(answers.utilisation, Utilisation(predictor, plan), 1e-12);
    EXPECT_GT(*answers.twice_the_link, 1);
  }
  Plan rare = BasePlan();
  rare.local_steps = 8;
  EXPECT_NEAR(AnswerInverseQuestions(predictor, rare, kDevicesPerNode, kMost).utilisation,
              Utilisation(predictor, rare), 1e-12);
}

// Of nodes that share the model out full ones alone count.
TEST(InverseQuestions, CountFullNodesWhereNodesAreEqual) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.shard = Shard::kHybrid;
  constexpr int kThree = 3;
  plan.placement = FillNodes(6, kThree);
  int answered = 0;
  for (const WhatReaches& reach : AnswerInverseQuestions(predictor, plan, kThree, kMost).reaches) {
    if (!reach.workers) continue;
    ++answered;
    EXPECT_TRUE(*reach.workers <= kThree || *reach.workers % kThree == 0) << *reach.workers;
    EXPECT_GE(Utilisation(predictor, OnFilledNodes(plan, *reach.workers, kThree)),
              reach.utilisation);
  }
  EXPECT_GT(answered, 0);
}

// A model that eight devices share out, and two do not hold.
TEST(InverseQuestions, WhatReachesItFitsTheMemory) {
  Workload workload = *FindWorkload("opt_2.7b@128");
  workload.optimizer = Optimizer::kAdam;
  Device slow = T4();
  slow.fp32 = TeraflopPerSecond(0.2);  // beside which the exchange is short
  const Predictor predictor(Cluster(), workload, slow, "t4");
  Plan plan = BasePlan(Strategy::kAllreduce);
  plan.shard = Shard::kParameters;
  plan.local_batch = 1;
  plan.link.bandwidth = GigabitsPerSecond(100.0);
  const auto fits = [&](int workers, int batch, int steps) {
    Plan of = OnFilledNodes(plan, workers, kDevicesPerNode);
    of.local_batch = batch;
    of.accumulation_steps = steps;
    return predictor.Memory(of).may_fit();
  };
  ASSERT_TRUE(fits(8, 1, 1));
  ASSERT_FALSE(fits(2, 1, 1));
  int answered = 0;
  for (const WhatReaches& reach :
       AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost).reaches) {
    EXPECT_TRUE(fits(reach.workers.value_or(8), 1, 1)) << reach.utilisation;
    EXPECT_TRUE(fits(8, reach.local_batch.value_or(1), 1)) << reach.utilisation;
    EXPECT_TRUE(fits(8, 1, reach.accumulation_steps.value_or(1))) << reach.utilisation;
    answered += (reach.workers || reach.local_batch || reach.accumulation_steps) ? 1 : 0;
  }
  EXPECT_GT(answered, 0);
}

// Links to servers that the plan states grow with the workers'; what is stated otherwise stays.
TEST(InverseQuestions, LinksToServersGrowAlike) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan(Strategy::kPsSync, 2);
  plan.server_link.bandwidth = GigabitsPerSecond(1.0);
  plan.accumulation_steps = 16;
  const InverseAnswers answers = AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost);
  const auto with = [&](DataRate<> rate) {
    Plan other = plan;
    other.link.bandwidth = other.server_link.bandwidth = rate;
    return Utilisation(predictor, other);
  };
  EXPECT_NEAR(*answers.twice_the_link,
              with(*plan.link.bandwidth * 2.0) / with(*plan.link.bandwidth), 1e-12);
  const WhatReaches& half = answers.reaches.at(0);
  ASSERT_TRUE(half.bandwidth);
  EXPECT_NEAR(with(*half.bandwidth), half.utilisation, 1e-3);
}

// Workers come with what the plan says of them: servers on every node, no more backups than there
// are others, hosts that nobody names for them.
TEST(InverseQuestions, WorkersComeWithTheirServersAndBackups) {
  const Predictor predictor = MakePredictor();
  const auto most = [&](const Plan& plan, int most_workers) {
    return AnswerInverseQuestions(predictor, plan, kDevicesPerNode, most_workers)
        .reaches.at(0)
        .workers;
  };
  Plan plan = BasePlan(Strategy::kPsSync, 2);
  plan.local_batch = 96;
  plan.server.colocated = true;
  ASSERT_TRUE(ServersOnEveryNode(plan));
  std::optional<int> workers;
  // On more nodes than the plan has, whose servers come with them.
  do {
    plan.accumulation_steps *= 2;
    workers = most(plan, kMost);
    ASSERT_TRUE(workers && plan.accumulation_steps < 1000);
  } while (*workers <= 3 * kDevicesPerNode);
  ASSERT_LT(*workers, kMost);
  const double asked =
      AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost).reaches.at(0).utilisation;
  for (const int more : {0, 1}) {
    Plan other = plan;
    other.placement = FillNodes(*workers + more, kDevicesPerNode);
    other.servers = other.nodes();
    EXPECT_EQ(Utilisation(predictor, other) >= asked, more == 0) << *workers + more;
  }
  Plan backups = BasePlan();
  backups.backup_workers = 2;  // of two workers one at most
  backups.accumulation_steps = 64;
  backups.hosts = {"a", "b"};
  // More would do, and no more are asked for, whatever their number.
  for (const int limit : {8, 11}) EXPECT_EQ(most(backups, limit), limit);
}

// One micro-step is enough where it is; and a batch that does not fit in memory is no answer.
TEST(InverseQuestions, AreAnsweredByTheLeastAndByWhatFits) {
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  Plan plan = BasePlan();
  plan.local_batch = 64;
  plan.link.bandwidth = GigabitsPerSecond(400.0);
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt);
  const InverseAnswers fast = AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost);
  ASSERT_GT(fast.utilisation, fast.reaches.at(0).utilisation);
  EXPECT_EQ(fast.reaches.at(0).accumulation_steps, 1);

  plan = BasePlan();
  const InverseAnswers slow = AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost);
  const std::optional<int> batch = slow.reaches.at(0).local_batch;
  ASSERT_TRUE(batch && *batch > plan.local_batch);
  Plan larger = plan;
  larger.local_batch = *batch;
  Device device;
  device.name = kSyntheticDevice;
  device.memory = predictor.Memory(larger).total * 0.8;
  const Predictor small(cluster, *FindWorkload("resnet50"), device);
  EXPECT_FALSE(
      AnswerInverseQuestions(small, plan, kDevicesPerNode, kMost).reaches.at(0).local_batch);
}

// A single node has no link to ask for, unless its servers are behind one.
TEST(InverseQuestions, ALinkIsAskedForWhereOneIsCrossed) {
  const Predictor predictor = MakePredictor();
  Plan plan = BasePlan();
  plan.placement = {4};
  EXPECT_FALSE(AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost).twice_the_link);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 1;
  EXPECT_TRUE(AnswerInverseQuestions(predictor, plan, kDevicesPerNode, kMost).twice_the_link);
}

TEST(InverseQuestions, OneWorkerAsksNothing) {
  Plan plan = BasePlan();
  plan.placement = {1};
  const InverseAnswers answers =
      AnswerInverseQuestions(MakePredictor(), plan, kDevicesPerNode, kMost);
  EXPECT_EQ(answers.utilisation, 1);
  EXPECT_TRUE(answers.reaches.empty());
  EXPECT_FALSE(answers.twice_the_link);
}

}  // namespace
}  // namespace stepcast
