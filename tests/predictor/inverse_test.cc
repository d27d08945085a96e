// What reaches an utilisation, against the utilisation itself.
#include "predictor/search/inverse.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/calibrate/synthetic_runs.h"

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
  return predictor.PredictStep(one).total() / predictor.PredictStep(plan).total();
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

// One worker of what is shared out, or rarely exchanged, is one that exchanges nothing.
TEST(InverseQuestions, GoWithEveryPlanThatExchanges) {
  const Predictor predictor = MakePredictor();
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
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
