// What a recommendation promises, for random plans on random clusters: it is never worse than the
// plan as given, its gain is what its throughputs say, and schedulers get the same answer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/plan/check.h"
#include "predictor/search/allocations.h"
#include "predictor/search/batch_grid.h"
#include "predictor/search/payoff.h"
#include "predictor/search/recommend.h"
#include "tests/hot_path/random_plans.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr int kDevicesPerNode = 4;

struct Asked {
  RandomCase made;
  RecommendOptions options;
};

// A plan of moderate size, and some of what may be tried beside it.
Asked RandomQuestion(std::uint64_t seed) {
  Random random(seed);
  Asked asked;
  const auto strategy = static_cast<Strategy>(random.Whole(0, kStrategyCount - 1));
  do {
    asked.made = MakeRandomCase(strategy, random.Seed(), 30);
  } while (asked.made.workload.communication_only || asked.made.plan.workers() > 128 ||
           asked.made.plan.global_batch() > 1e6);
  RecommendOptions& options = asked.options;
  options.most_global_batch = random.LogWhole(64, 16384);
  if (random.Chance(0.4)) options.workers = {2, 8};
  if (random.Chance(0.3)) options.local_batches = {1, 16, 48};
  if (random.Chance(0.3)) options.accumulation_steps = {1, 3};
  // A gathered gradient goes round a ring, and so does a model that is shared out.
  const bool on_rings_alone =
      asked.made.plan.compress.is_gathered() || asked.made.plan.shard != Shard::kNone;
  if (random.Chance(0.3) && !on_rings_alone) {
    options.strategies = {Strategy::kRing, Strategy::kTree};
  }
  if (random.Chance(0.2)) options.buckets = {Mebibytes(8.0), Mebibytes(64.0)};
  return asked;
}

TEST(Advice, IsNeverWorseThanThePlanAsGiven) {
  int no = 0;
  int yes = 0;
  EXPECT_TRUE(rc::check([&](std::uint64_t seed) {
    const Asked asked = RandomQuestion(seed);
    const Predictor predictor = asked.made.MakePredictor();
    const Plan& plan = asked.made.plan;
    const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, asked.options);
    if (!outcome.best) {
      RC_ASSERT(!outcome.is_advice);
      return;
    }
    const Recommendation& given = *outcome.baseline;
    const Recommendation& best = *outcome.best;
    // The plan as given is just that.
    RC_ASSERT(given.plan.placement == plan.placement);
    RC_ASSERT(given.plan.strategy == plan.strategy);
    RC_ASSERT(given.plan.local_batch == plan.local_batch);
    RC_ASSERT(given.plan.accumulation_steps == plan.accumulation_steps);
    RC_ASSERT(given.prediction.step_time == predictor.Predict(given.plan).step_time);
    const auto is_gain = [](double gain, double ratio) {
      return std::abs(ratio - 1) <= kSameScores ? gain == 1 : Near(gain, ratio, 1e-15);
    };
    RC_ASSERT(is_gain(outcome.gain, best.prediction.throughput / given.prediction.throughput));
    RC_ASSERT(is_gain(outcome.score_gain, best.score / given.score));
    const bool usable = IsUsable(given, asked.options);
    // Equal ones but for rounding are equal: what has fewer micro-steps leads.
    const double least = given.score * (outcome.is_advice ? 1 - kSameScores : 1 + kSameScores);
    const bool leads = !usable || best.score >= least;
    RC_ASSERT(outcome.is_advice == leads);
    ++(outcome.is_advice ? yes : no);
    for (const Recommendation& row : outcome.pareto) {
      RC_ASSERT(row.score <= best.score);
      if (usable) RC_ASSERT(row.score >= std::min(given.score, best.score));
    }
    if (outcome.is_advice) {
      RC_ASSERT(outcome.pareto.back().score == best.score);
      RC_ASSERT(!outcome.payoff.bandwidth && !outcome.payoff.accumulation_steps);
    } else {
      RC_ASSERT(outcome.pareto.empty());
    }
  }));
  EXPECT_GT(yes, 0);
  EXPECT_GT(no, 0);
}

// Throughput is samples that count over time, whatever tells it; efficiency is what is left of the
// workers' throughputs alone, each of which updates its own share of a model that is shared out.
TEST(Advice, EfficiencyIsThatOfTheWorkers) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const Asked asked = RandomQuestion(seed);
    const Predictor predictor = asked.made.MakePredictor();
    const RecommendOutcome outcome =
        Recommend(predictor, asked.made.plan, kDevicesPerNode, asked.options);
    if (!outcome.baseline) return;
    const Recommendation& given = *outcome.baseline;
    Plan alone = WithStrategy(given.plan, Strategy::kNone);
    alone.placement = {1};
    alone.hosts.clear();
    alone.backup_workers = 0;
    const int slow = given.plan.slow_local_batch ? given.plan.slow_workers() : 0;
    const int workers = given.plan.workers();
    const int sharers =
        SharersOf(given.plan.shard, workers, DevicesOnFullestNode(given.plan.placement));
    const auto rate = [&] {
      const StepTime<double> step = predictor.Predict(alone).breakdown;
      return Samples(1.0 * alone.local_batch * alone.accumulation_steps) /
             (step.total() - step.update * (1 - 1.0 / sharers));
    };
    SampleRate<> all = rate() * (1.0 * (workers - slow));
    if (slow > 0) {
      alone.local_batch = *given.plan.slow_local_batch;
      all += rate() * (1.0 * slow);
    }
    RC_ASSERT(Near(given.efficiency, given.prediction.throughput / all, 1e-12));
  }));
}

// One rule for the best: Recommend by whole predictions, ChooseBatches by a compiled plan.
TEST(Advice, SchedulersGetTheSameAnswer) {
  int answered = 0;
  EXPECT_TRUE(rc::check([&](std::uint64_t seed) {
    Random random(seed);
    Asked asked = RandomQuestion(seed);
    asked.options.workers.clear();
    asked.options.local_batches.clear();
    asked.options.accumulation_steps.clear();
    asked.options.strategies.clear();
    asked.options.buckets.clear();
    Plan& plan = asked.made.plan;
    if (TraitsOf(plan.strategy).to_be_chosen) return;  // for each batch anew, or once for all
    if (plan.placement != PlacementOf(QueryOf(plan))) return;
    BatchSearch search;
    search.most_global_batch = asked.options.most_global_batch;
    if (random.Chance(0.5)) {
      const double noise = random.LogBetween(10, 1e5);
      const double known = random.LogBetween(10, 1000);
      asked.options.objective = Objective::kGoodput;
      asked.options.outlook.noise_scale = Samples(noise);
      asked.options.outlook.known_batch = Samples(known);
      search.noise_scale = noise;
      search.initial_batch = known;
    }
    const Predictor predictor = asked.made.MakePredictor();
    const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, asked.options);
    const PlanQuery own = QueryOf(plan);
    const Allocation allocation{own.workers, own.nodes, own.devices_per_node, own.servers};
    BatchChoice choice;
    ChooseBatches(CompiledPlan(predictor, plan), &allocation, 1, search, &choice);
    const std::string text = Describe(plan);
    if (!outcome.best) {
      if (choice.local_batch != 0) RC_FAIL(text + ": a batch for nothing that fits");
      return;
    }
    ++answered;
    RC_ASSERT(Near(outcome.score_gain, outcome.best->score / outcome.baseline->score, 1e-15));
    const Plan& best = outcome.best->plan;
    if (choice.local_batch != best.local_batch ||
        choice.accumulation_steps != best.accumulation_steps) {
      // Scores that differ by rounding alone are equals: near the best batch of a goodput, and of
      // batches that differ wherever samples come no faster.
      const bool has_equals = search.noise_scale ||
                              (plan.input_rate && choice.local_batch * choice.accumulation_steps !=
                                                      best.local_batch * best.accumulation_steps);
      if (has_equals && Near(choice.goodput, outcome.best->score, 1e-9)) return;
      RC_FAIL(text + ": " + std::to_string(choice.local_batch) + " x " +
              std::to_string(choice.accumulation_steps) + ", not " +
              std::to_string(best.local_batch) + " x " + std::to_string(best.accumulation_steps));
    }
    RC_ASSERT(
        Near(choice.throughput, outcome.best->prediction.throughput.in(kSamplesPerSecond), 1e-9));
    RC_ASSERT(Near(choice.goodput, outcome.best->score, 1e-9));
  }));
  EXPECT_GT(answered, 20);
}

// What slow nodes are stated to take leaves the others less of the largest global batch: here one
// sample each, below those that the calibration would have tried.
TEST(Advice, StatedSamplesOfSlowNodesLeaveTheOthersFewer) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"),
                            std::nullopt);
  Plan plan;
  plan.placement = {2, 2, 2};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 8;
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  plan.slow_local_batch = 40;
  RecommendOptions options;
  options.most_global_batch = 2 * 40 + 4 * 1 + 3;
  const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, options);
  ASSERT_TRUE(outcome.best);
  EXPECT_EQ(outcome.best->plan.local_batch, 1);
}

// Of two that are as good as equal the smaller is taken, unless it is worse than the plan as given.
TEST(Advice, NobodyIsToldToTakeWhatIsALittleWorse) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"),
                            std::nullopt);
  Plan plan;
  plan.placement = {4, 4};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  RecommendOptions options;
  options.most_global_batch = 1 << 14;
  const RecommendOutcome first = Recommend(predictor, plan, kDevicesPerNode, options);
  // Within what counts as equal, and better than what was chosen.
  Plan own = first.best->plan;
  own.accumulation_steps *= 2;
  ASSERT_LE(own.global_batch(), options.most_global_batch);
  const RecommendOutcome outcome = Recommend(predictor, own, kDevicesPerNode, options);
  ASSERT_GT(outcome.baseline->score, first.best->score);
  EXPECT_GE(outcome.best->score, outcome.baseline->score);
  BatchSearch search;
  search.most_global_batch = options.most_global_batch;
  const PlanQuery query = QueryOf(own);
  const Allocation allocation{query.workers, query.nodes, query.devices_per_node, query.servers};
  BatchChoice choice;
  ChooseBatches(CompiledPlan(predictor, own), &allocation, 1, search, &choice);
  EXPECT_EQ(choice.local_batch, outcome.best->plan.local_batch);
  EXPECT_EQ(choice.accumulation_steps, outcome.best->plan.accumulation_steps);
}

// The batches of the grid rise, are told once, and hold what they must.
TEST(Advice, TheGridRises) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const int most = random.LogWhole(1, 1'000'000);
    const int own = random.Chance(0.3) ? 0 : random.LogWhole(1, 2'000'000);
    std::vector<int> intervals;
    ForEachInterval(most, own, [&](int a) { intervals.push_back(a); });
    RC_ASSERT(std::adjacent_find(intervals.begin(), intervals.end(), std::greater_equal<>()) ==
              intervals.end());
    RC_ASSERT(intervals.front() == 1);
    RC_ASSERT(intervals.back() == most);
    if (own >= 1 && own <= most) {
      RC_ASSERT(std::binary_search(intervals.begin(), intervals.end(), own));
    }
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      RC_ASSERT(intervals[i] <= 2 * intervals[i - 1]);
    }
    TrustedBatches trusted;
    if (random.Chance(0.5)) {
      trusted.least = random.LogWhole(1, 1000);
      trusted.most = trusted.least * random.Whole(16, 100);
    }
    std::vector<int> batches;
    ForEachLocalBatch(trusted, most, own, [&](int b) { batches.push_back(b); });
    RC_ASSERT(!batches.empty());
    RC_ASSERT(std::adjacent_find(batches.begin(), batches.end(), std::greater_equal<>()) ==
              batches.end());
    for (const int b : batches) {
      RC_ASSERT(b <= most);
      if (b != own && trusted.least <= most / 2) RC_ASSERT(b >= trusted.least);
      if (b != own) RC_ASSERT(b <= std::max(trusted.most, 1));
    }
    if (own >= 1 && own <= most) RC_ASSERT(std::binary_search(batches.begin(), batches.end(), own));
    const int largest = std::min(trusted.most, most);
    RC_ASSERT(std::binary_search(batches.begin(), batches.end(), largest));
  }));
}

// A batch to trust is at most four times as small, or as large, as one that was calibrated.
TEST(Advice, BatchesToTrustAreWithinAFactorOfFour) {
  const TrustedBatches any = TrustedBatchesOf(std::nullopt);
  EXPECT_EQ(any.least, 1);
  EXPECT_EQ(any.most, kMostBatch);
  for (int least = 1; least <= 40; ++least) {
    const TrustedBatches trusted =
        TrustedBatchesOf(CalibratedRange::BatchRange{least, 3 * least, 8});
    EXPECT_GE(4 * trusted.least, least);
    EXPECT_LT(4 * (trusted.least - 1), least) << "a smaller one would do as well";
    EXPECT_EQ(trusted.most, 12 * least);
  }
  EXPECT_EQ(TrustedBatchesOf(CalibratedRange::BatchRange{1, kMostBatch, 1}).most, kMostBatch);
}

// With what would make it pay a plan does, and with less it does not.
TEST(Payoff, IsWhereItBeginsToPay) {
  int by_network = 0;
  int by_accumulation = 0;
  EXPECT_TRUE(rc::check([&](std::uint64_t seed) {
    Random random(seed);
    const Asked asked = RandomQuestion(seed);
    const Predictor predictor = asked.made.MakePredictor();
    const Plan& plan = asked.made.plan;
    const SampleRate<> wanted = predictor.Predict(plan).throughput * random.LogBetween(1.01, 3);
    const Payoff payoff = FindPayoff(predictor, plan, wanted, 1e9);
    const auto reaches = [&](const Plan& tried) {
      return predictor.Predict(tried).throughput >= wanted;
    };
    if (payoff.bandwidth) {
      ++by_network;
      Plan tried = plan;
      const auto with = [&](double factor) {
        tried.link.bandwidth = *payoff.bandwidth * factor;
        if (plan.server_link.bandwidth) tried.server_link.bandwidth = tried.link.bandwidth;
        return reaches(tried);
      };
      RC_ASSERT(with(1));
      RC_ASSERT(!with(0.998));
    }
    if (payoff.accumulation_steps) {
      ++by_accumulation;
      Plan tried = plan;
      tried.accumulation_steps = *payoff.accumulation_steps;
      RC_ASSERT(reaches(tried));
      tried.accumulation_steps -= 1;
      if (tried.accumulation_steps > plan.accumulation_steps) RC_ASSERT(!reaches(tried));
    }
  }));
  EXPECT_GT(by_network, 0);
  EXPECT_GT(by_accumulation, 0);
}

}  // namespace
}  // namespace stepcast
