// A query allocates nothing, whatever it asks.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "predictor/compiled_plan.h"
#include "predictor/search/allocations.h"
#include "tests/hot_path/counted_allocations.h"
#include "tests/hot_path/random_plans.h"
#include "tests/support/query_columns.h"

namespace stepcast {
namespace {

class NoAllocation : public ::testing::TestWithParam<int> {};

TEST_P(NoAllocation, WhateverIsAsked) {
  if (WhyNotCounted() != nullptr) GTEST_SKIP() << WhyNotCounted();
  const auto strategy = static_cast<Strategy>(GetParam());
  constexpr int kCases = 40;
  constexpr std::size_t kQueries = 100;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const RandomCase made = MakeRandomCase(strategy, seed, 50);
    const CompiledPlan compiled(made.MakePredictor(), made.plan);
    Random random(seed);
    std::vector<PlanQuery> queries;
    QueryColumns columns;
    std::vector<Allocation> allocations;
    for (std::size_t i = 0; i < kQueries; ++i) {
      PlanQuery query = RandomQuery(made.plan, &random);
      if (random.Chance(0.1)) query.link.bandwidth = BytesPerSecond(1e9);
      columns.Add(query);
      query.link = {};
      allocations.push_back({query.workers, query.nodes, query.devices_per_node, query.servers});
      if (random.Chance(0.3)) query.link = RandomLink(&random, 0.5);
      if (random.Chance(0.2)) query.server_link = RandomLink(&random, 0.5);
      if (random.Chance(0.1)) query.workers = 0;
      queries.push_back(query);
    }
    std::vector<double> step(kQueries), low(step), high(step), log_sd(step);
    std::vector<QueryStatus> status(kQueries);
    QueryArrays arrays = columns.View(0, kQueries);
    BatchSearch search;
    search.least_global_batch = 64;
    search.most_global_batch = 8192;
    search.noise_scale = 500;
    search.initial_batch = 64;
    std::vector<BatchChoice> choices(kQueries);

    const auto allocated = [](const auto& ask) {
      const long before = Allocations();
      ask();
      return Allocations() - before;
    };
    double sum = 0;
    EXPECT_EQ(allocated([&] {
                for (const PlanQuery& query : queries) sum += compiled.Predict(query).log_sd;
              }),
              0)
        << "Predict";
    EXPECT_EQ(allocated([&] {
                for (const PlanQuery& query : queries) sum += compiled.StepTime(query).si();
              }),
              0)
        << "StepTime";
    EXPECT_EQ(allocated([&] {
                for (const PlanQuery& query : queries) sum += compiled.MostLocalBatch(query);
              }),
              0)
        << "MostLocalBatch";
    EXPECT_EQ(allocated([&] {
                for (const PlanQuery& query : queries) {
                  compiled.StepTimes(query, columns.batches.data(), columns.accumulation.data(),
                                     kQueries, step.data());
                }
              }),
              0)
        << "StepTimes";
    for (const std::size_t size : {std::size_t{5}, kQueries}) {
      arrays.size = size;
      EXPECT_EQ(allocated([&] {
                  ForecastArrays times;
                  times.step_time_s = step.data();
                  compiled.PredictMany(arrays, times);
                }),
                0)
          << "PredictMany of step times";
      EXPECT_EQ(allocated([&] {
                  compiled.PredictMany(
                      arrays, {step.data(), low.data(), high.data(), log_sd.data(), status.data()});
                }),
                0)
          << "PredictMany of intervals";
    }
    EXPECT_EQ(allocated([&] {
                ChooseBatches(compiled, allocations.data(), kQueries, search, choices.data());
              }),
              0)
        << "ChooseBatches";
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ":" << Describe(made.plan) << ", sum " << sum;
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HotPath, NoAllocation, ::testing::Range(0, kStrategyCount),
                         [](const ::testing::TestParamInfo<int>& strategy) {
                           std::string name = kStrategyNames[strategy.param];
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The counter itself sees allocations.
TEST(CountedAllocations, SeesThem) {
  if (WhyNotCounted() != nullptr) GTEST_SKIP() << WhyNotCounted();
  const long before = Allocations();
  auto number = std::make_unique<int>(3);
  EXPECT_EQ(Allocations(), before + 1);
  number.reset();
  EXPECT_EQ(Allocations(), before + 2);
  const std::vector<double> values(1000);
  EXPECT_EQ(Allocations(), before + 3);
  struct alignas(64) Aligned {
    double values[8];
  };
  const auto aligned = std::make_unique<Aligned>();
  EXPECT_EQ(Allocations(), before + 4);
  const CompiledPlan compiled(
      Predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), std::nullopt),
      AllreducePlan({1, 1}, 1));
  EXPECT_GT(Allocations(), before + 10) << "compiling does allocate";
}

}  // namespace
}  // namespace stepcast
