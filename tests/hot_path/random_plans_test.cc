// Many random plans, each beside one that differs in one thing: no answer is no number, the
// interval holds the step, and less bandwidth or more of anything else shortens no step.
#include "tests/hot_path/random_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "predictor/compiled_plan.h"

namespace stepcast {
namespace {

// Fields of which more never shortens a step; more bandwidth never lengthens it.
enum Direction {
  kBatch,
  kAccumulation,
  kBandwidth,
  kRtt,
  kLoss,
  kServerBandwidth,
  kServerRtt,
  kServerLoss,
  kGradient,
  kDirections
};
constexpr const char* kDirectionNames[kDirections] = {
    "local batch",      "accumulation",      "bandwidth",     "round trip",    "loss",
    "server bandwidth", "server round trip", "server's loss", "gradient bytes"};

double AllPlans() {
  const char* text = std::getenv("STEPCAST_RANDOM_PLANS");
  return text != nullptr ? std::atof(text) : STEPCAST_DEFAULT_RANDOM_PLANS;
}

// Shares of all plans, in the order of the strategies; asynchronous ones take ten times as long.
constexpr double kShares[kStrategyCount] = {0.05, 0.05, 0.2,  0.15, 0.12,
                                            0.12, 0.15, 0.01, 0.1,  0.05};
constexpr double kRounding = 1e-12;

// The same case with so many times the bytes in as many buckets; none where their number follows
// the bytes.
std::optional<RandomCase> Heavier(RandomCase made, double times) {
  const Strategy strategy = made.plan.strategy;
  const bool told =
      strategy == Strategy::kRing || strategy == Strategy::kAllreduce || UsesServers(strategy);
  if (!told || !made.workload.layers.empty()) return std::nullopt;
  made.plan.bucket = made.plan.bucket.value_or(DefaultBucket(strategy)) * times;
  made.workload.gradient_bytes = made.workload.gradient_bytes * times;
  return made;
}

// Makes `more` of what `query` says, which first says it.
void Perturb(Direction direction, Random* random, PlanQuery* query, PlanQuery* more) {
  const auto bandwidth = [&](LinkFacts* link, LinkFacts* wide) {
    link->bandwidth = GigabitsPerSecond(random->LogBetween(0.01, 200));
    wide->bandwidth = *link->bandwidth * random->LogBetween(1.0001, 20);
  };
  const auto rtt = [&](LinkFacts* link, LinkFacts* late) {
    link->rtt = random->Chance(0.1) ? Seconds(0.0) : Seconds(random->LogBetween(1e-6, 0.1));
    late->rtt = *link->rtt + Seconds(random->LogBetween(1e-8, 0.1));
  };
  const auto loss = [&](LinkFacts* link, LinkFacts* lossy) {
    link->loss = random->Chance(0.2) ? 0 : random->LogBetween(1e-6, 0.2);
    lossy->loss = *link->loss + random->LogBetween(1e-8, 0.2);
  };
  *more = *query;
  switch (direction) {
    case kBatch:
      more->local_batch += random->LogWhole(1, 1000);
      break;
    case kAccumulation:
      more->accumulation_steps += random->LogWhole(1, 64);
      break;
    case kBandwidth:
      bandwidth(&query->link, &more->link);
      break;
    case kRtt:
      rtt(&query->link, &more->link);
      break;
    case kLoss:
      loss(&query->link, &more->link);
      break;
    case kServerBandwidth:
      bandwidth(&query->server_link, &more->server_link);
      break;
    case kServerRtt:
      rtt(&query->server_link, &more->server_link);
      break;
    case kServerLoss:
      loss(&query->server_link, &more->server_link);
      break;
    default:
      break;
  }
}

struct Wrong {
  long count = 0;
  double worst = 0;
  std::string first;
};

class RandomPlans : public ::testing::TestWithParam<int> {};

TEST_P(RandomPlans, AreAnsweredInOrder) {
  const auto strategy = static_cast<Strategy>(GetParam());
  const auto plans = static_cast<long>(AllPlans() * kShares[GetParam()]);
  constexpr long kPlansOfACase = 2000;
  std::array<Wrong, kDirections> wrong;
  Wrong numbers;
  long asked = 0;
  for (std::uint64_t seed = 1; asked < plans; ++seed) {
    const RandomCase made = MakeRandomCase(strategy, seed, 24);
    RandomCase base = made;
    const std::optional<RandomCase> heavier = Heavier(made, 1.7);
    if (heavier) base.plan.bucket = base.plan.bucket.value_or(DefaultBucket(strategy));
    const CompiledPlan compiled(base.MakePredictor(), base.plan);
    const CompiledPlan heavy =
        heavier ? CompiledPlan(heavier->MakePredictor(), heavier->plan) : compiled;
    const bool servers = UsesServers(strategy) || strategy == Strategy::kBytePs;
    Random random(seed);
    const auto say = [&](Wrong* to, const char* what, const PlanQuery& query, const PlanQuery& more,
                         double got, double than) {
      ++to->count;
      to->worst = std::max(to->worst, std::isnan(got) ? HUGE_VAL : std::abs(got / than - 1));
      if (!to->first.empty()) return;
      char numbers_text[120];
      std::snprintf(numbers_text, sizeof numbers_text, "%s: %.17g beside %.17g, ", what, got, than);
      to->first = numbers_text + ("seed " + std::to_string(seed) + ", " + base.workload.name +
                                  " of " + std::to_string(base.workload.gradient_bytes.si()) +
                                  " B;" + Describe(PlanOf(compiled.plan(), query)) + " |" +
                                  Describe(PlanOf(compiled.plan(), more)));
    };
    for (long i = 0; i < kPlansOfACase && asked < plans; ++i) {
      PlanQuery query = RandomQuery(base.plan, &random);
      auto direction = static_cast<Direction>(random.Whole(0, servers ? kServerLoss : kLoss));
      if (heavier && random.Chance(0.1)) direction = kGradient;
      PlanQuery more;
      Perturb(direction, &random, &query, &more);
      const Forecast forecast = compiled.Predict(query);
      if (forecast.status == QueryStatus::kNothingExchanged) continue;
      ++asked;
      const double step = forecast.step_time.si();
      const bool fine = std::isfinite(step) && step >= 0 && std::isfinite(forecast.high.si()) &&
                        forecast.low.si() >= 0 && forecast.low <= forecast.step_time &&
                        forecast.step_time <= forecast.high && forecast.log_sd >= 0 &&
                        forecast.status == QueryStatus::kOk;
      if (!fine) say(&numbers, "an interval", query, query, forecast.low.si(), step);
      const double other = (direction == kGradient ? heavy : compiled).StepTime(more).si();
      const bool wider = direction == kBandwidth || direction == kServerBandwidth;
      const bool ordered =
          wider ? other <= step * (1 + kRounding) : other >= step * (1 - kRounding);
      if (!ordered) {
        say(&wrong[direction], kDirectionNames[direction], query, more, other, step);
      }
    }
  }
  EXPECT_EQ(numbers.count, 0) << numbers.first;
  for (int d = 0; d < kDirections; ++d) {
    const Wrong& of = wrong[static_cast<std::size_t>(d)];
    EXPECT_EQ(of.count, 0) << "of " << asked << ", by up to " << of.worst << "; " << of.first;
  }
  RecordProperty("plans", std::to_string(asked));
}

INSTANTIATE_TEST_SUITE_P(HotPath, RandomPlans, ::testing::Range(0, kStrategyCount),
                         [](const ::testing::TestParamInfo<int>& strategy) {
                           std::string name = kStrategyNames[strategy.param];
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stepcast
