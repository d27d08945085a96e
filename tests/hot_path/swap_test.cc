// Threads ask one plan while another thread replaces it by that of a new calibration.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "predictor/compiled_plan.h"
#include "tests/hot_path/random_plans.h"

namespace stepcast {
namespace {

bool SameBits(const Forecast& a, const Forecast& b) {
  const double of_a[] = {a.step_time.si(), a.low.si(), a.high.si(), a.log_sd};
  const double of_b[] = {b.step_time.si(), b.low.si(), b.high.si(), b.log_sd};
  return std::memcmp(of_a, of_b, sizeof of_a) == 0 && a.limiter == b.limiter &&
         a.status == b.status;
}

Predictor Fitted(double faster) {
  Truth truth = PlausibleTruth();
  truth.cluster.si[kFlowBandwidth] *= faster;
  truth.workloads["resnet50"].si[kSampleTime] /= faster;
  return {CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt};
}

// The plan that answers now, under a lock that is held to copy a pointer alone. An atomic
// shared_ptr would do too; that of libstdc++ 12 unlocks without release, as race detectors see.
class Current {
 public:
  explicit Current(std::shared_ptr<const CompiledPlan> plan) : plan_(std::move(plan)) {}

  std::shared_ptr<const CompiledPlan> Get() const {
    const std::lock_guard lock(mutex_);
    return plan_;
  }
  void Set(std::shared_ptr<const CompiledPlan> plan) {
    const std::lock_guard lock(mutex_);
    plan_.swap(plan);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const CompiledPlan> plan_;
};

class Swap : public ::testing::TestWithParam<int> {};

TEST_P(Swap, EveryAnswerIsThatOfOneOfTheTwo) {
  constexpr int kReaders = 8;
  constexpr int kRounds = 3000;
  constexpr int kMostSwaps = 20'000;
  const auto strategy = static_cast<Strategy>(GetParam());
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.strategy = strategy;
  plan.servers = UsesServers(strategy) ? 2 : 0;
  const Predictor fitted[] = {Fitted(1.0), Fitted(1.3)};
  const auto compile = [&](int which) {
    return std::make_shared<const CompiledPlan>(fitted[which], plan, CompileOptions{4});
  };
  std::vector<PlanQuery> queries;
  for (int nodes = 1; nodes <= 16; ++nodes) {
    PlanQuery query = QueryOf(plan);
    query.nodes = nodes;
    query.workers = nodes * query.devices_per_node;
    queries.push_back(query);
  }
  std::vector<Forecast> expected[2];
  for (int which = 0; which < 2; ++which) {
    const auto compiled = compile(which);
    for (const PlanQuery& query : queries) expected[which].push_back(compiled->Predict(query));
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    ASSERT_FALSE(SameBits(expected[0][i], expected[1][i])) << "or nothing is swapped";
  }

  Current current(compile(0));
  std::atomic<int> reading{kReaders};
  std::atomic<long> neither{0};
  std::atomic<long> answers[2] = {0, 0};
  std::vector<std::thread> readers;
  for (int t = 0; t < kReaders; ++t) {
    readers.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t i = static_cast<std::size_t>(round + t) % queries.size();
        const std::shared_ptr<const CompiledPlan> compiled = current.Get();
        const Forecast forecast = compiled->Predict(queries[i]);
        if (SameBits(forecast, expected[0][i])) {
          ++answers[0];
        } else if (SameBits(forecast, expected[1][i])) {
          ++answers[1];
        } else {
          ++neither;
        }
        if (round % 64 == 0) std::this_thread::yield();
      }
      --reading;
    });
  }
  int swaps = 0;
  while (reading > 0 && swaps < kMostSwaps) current.Set(compile(++swaps % 2));
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(neither, 0);
  EXPECT_EQ(answers[0] + answers[1], 1L * kReaders * kRounds);
  EXPECT_GT(swaps, 0);
  RecordProperty("swaps", swaps);
}

INSTANTIATE_TEST_SUITE_P(HotPath, Swap,
                         ::testing::Values(static_cast<int>(Strategy::kRing),
                                           static_cast<int>(Strategy::kPsSync),
                                           static_cast<int>(Strategy::kPsAsync)),
                         [](const ::testing::TestParamInfo<int>& strategy) {
                           std::string name = kStrategyNames[strategy.param];
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stepcast
