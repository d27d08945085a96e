// The best batch of every allocation, against a search that does no more than it says.
#include "predictor/search/allocations.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "data/plan/limits.h"
#include "data/workloads/catalog.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/hot_path/random_plans.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr int kMostInt = std::numeric_limits<int>::max();

CompiledPlan Compile(Strategy strategy = Strategy::kRing,
                     std::optional<DataSize<>> memory = std::nullopt,
                     const Workload& workload = *FindWorkload("resnet50")) {
  std::optional<Device> device;
  if (memory) device = T4(*memory);
  Plan plan = AllreducePlan({1, 1}, 1);
  plan.strategy = strategy;
  plan.servers = UsesServers(strategy) ? 1 : 0;
  return {Predictor(CalibratedCluster(PlausibleTruth()), workload, device), plan};
}

// Of a device on which no batch has run, as one that has fits.
CompiledPlan CompileUnseen(DataSize<> memory, Shard shard = Shard::kNone) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.local_batch.clear();
  Plan plan = AllreducePlan({1, 1}, 1);
  plan.strategy = Strategy::kRing;
  plan.shard = shard;
  return {Predictor(cluster, *FindWorkload("resnet50"), T4(memory)), plan};
}

std::vector<BatchChoice> Choose(const CompiledPlan& compiled,
                                const std::vector<Allocation>& allocations,
                                const BatchSearch& search, std::size_t* none = nullptr) {
  std::vector<BatchChoice> choices(allocations.size());
  const std::size_t without =
      ChooseBatches(compiled, allocations.data(), allocations.size(), search, choices.data());
  if (none != nullptr) *none = without;
  return choices;
}

// ---- The search as its header states it.

struct Candidate {
  int local_batch = 0;
  int accumulation_steps = 0;
  double step_time_s = 0;
  double throughput = 0;
  double efficiency = 1;
  double goodput() const { return throughput * efficiency; }
};

PlanQuery QueryFor(const Allocation& allocation) {
  PlanQuery query;
  query.workers = allocation.workers;
  query.nodes = allocation.nodes;
  query.devices_per_node = allocation.devices_per_node;
  query.servers = allocation.servers;
  return query;
}

// The largest local batch with so many micro-steps; 0 where memory holds none.
int MostLocal(const CompiledPlan& compiled, const Allocation& allocation, const BatchSearch& search,
              int steps) {
  PlanQuery query = QueryFor(allocation);
  query.accumulation_steps = steps;
  const int most = compiled.MostLocalBatch(query);
  return search.most_local_batch > 0 ? std::min(search.most_local_batch, most) : most;
}

// Workers that take the batch that is chosen, and samples of a micro-step on slow nodes that do
// not.
struct Takers {
  double choosing = 1;
  double fixed = 0;

  Takers(const CompiledPlan& compiled, const Allocation& allocation) {
    const Plan& plan = compiled.plan();
    const Placement placement = PlacementOf(QueryFor(allocation));
    const int slow = plan.slow_local_batch ? plan.slow_nodes : 0;
    const int others = std::accumulate(placement.end() - slow, placement.end(), 0);
    choosing = allocation.workers - others;
    fixed = 1.0 * others * plan.slow_local_batch.value_or(0);
  }
  double beside() const { return fixed / choosing; }
  double Samples(double local) const { return choosing * local + fixed; }
};

// What the global batch `wanted` becomes on an allocation; none where a limit forbids it.
std::optional<Candidate> CandidateOf(const CompiledPlan& compiled, const Allocation& allocation,
                                     const BatchSearch& search, double share) {
  const auto most_local = [&](int steps) { return MostLocal(compiled, allocation, search, steps); };
  const double w = allocation.workers;
  const Takers takers(compiled, allocation);
  double a = 1;
  if (std::floor(share - takers.beside()) > most_local(1)) {
    if (!search.accumulate || most_local(2) < 1) return std::nullopt;
    a = std::ceil(share / (most_local(2) + takers.beside()));
  }
  const double b = std::floor(share / a - takers.beside());
  const double batch = takers.Samples(b) * a;
  if (b < std::max(1, search.least_local_batch) || a > kMostCount || b > kMostBatch ||
      batch < search.least_global_batch || batch > search.most_global_batch) {
    return std::nullopt;
  }
  PlanQuery query = QueryFor(allocation);
  query.local_batch = static_cast<int>(b);
  query.accumulation_steps = static_cast<int>(a);
  const double seconds = compiled.StepTime(query).si();
  if (std::isnan(seconds)) return std::nullopt;
  const Plan& plan = compiled.plan();
  const double counted = batch * (1 - plan.backup_workers / w);
  Candidate candidate{query.local_batch, query.accumulation_steps, seconds, counted / seconds, 1};
  if (search.noise_scale && search.initial_batch) {
    const double update = TraitsOf(plan.strategy).asynchronous() ? batch / w : counted;
    candidate.efficiency =
        (*search.initial_batch + *search.noise_scale) / (update + *search.noise_scale);
  }
  return candidate;
}

struct Search {
  std::vector<Candidate> tried;  // from the smallest
  double certain = 0;            // the best goodput of those that rounding does not decide about
};

Search BruteForce(const CompiledPlan& compiled, const Allocation& allocation,
                  const BatchSearch& search) {
  const Takers takers(compiled, allocation);
  const double w = takers.choosing;
  const double least =
      std::max(1.0 * search.least_global_batch, takers.Samples(search.least_local_batch));
  double most = search.most_global_batch;
  // Without micro-steps no worker's share is larger than its batch.
  if (!search.accumulate || MostLocal(compiled, allocation, search, 2) < 1) {
    most = std::min(most, takers.Samples(MostLocal(compiled, allocation, search, 1)));
  }
  Search found;
  if (most < least) return found;
  const int count = std::max(1, search.candidates);
  for (int i = 0; i < count; ++i) {
    const double part = count > 1 ? 1.0 * i / (count - 1) : 0;
    const double wanted = i + 1 == count && count > 1 ? most : least * std::pow(most / least, part);
    const double first = std::ceil(least / w);
    // The shares that M may round to.
    const double shares[] = {std::max(first, std::floor(wanted * (1 - 1e-10) / w)),
                             std::max(first, std::floor(wanted * (1 + 1e-10) / w))};
    double certain = std::numeric_limits<double>::infinity();
    for (const double share : shares) {
      const std::optional<Candidate> candidate = CandidateOf(compiled, allocation, search, share);
      certain = std::min(certain, candidate ? candidate->goodput() : 0);
      if (candidate) found.tried.push_back(*candidate);
    }
    found.certain = std::max(found.certain, certain);
  }
  return found;
}

// What is wrong with a choice; empty where nothing is.
std::string Judge(const CompiledPlan& compiled, const Allocation& allocation,
                  const BatchSearch& search, const BatchChoice& choice) {
  const Search found = BruteForce(compiled, allocation, search);
  constexpr double kRounding = 1e-11;
  if (choice.local_batch == 0) {
    if (choice.goodput != 0) return "no batch, but a goodput";
    return found.certain > 0 ? "no batch, but there is one" : "";
  }
  const auto same = std::find_if(found.tried.begin(), found.tried.end(), [&](const Candidate& c) {
    return c.local_batch == choice.local_batch && c.accumulation_steps == choice.accumulation_steps;
  });
  if (same == found.tried.end()) return "not a candidate";
  if (choice.goodput < found.certain * (1 - kRounding)) return "not the best";
  for (const Candidate& candidate : found.tried) {
    if (candidate.goodput() > choice.goodput * (1 + kRounding)) {
      // Rounding may have kept it away.
      if (candidate.goodput() <= found.certain) return "not the best";
    }
  }
  if (!Near(choice.step_time_s, same->step_time_s, kRounding)) return "another step time";
  if (!Near(choice.throughput, same->throughput, kRounding)) return "another throughput";
  if (!Near(choice.statistical_efficiency, same->efficiency, 1e-14)) return "another efficiency";
  if (!Near(choice.goodput, choice.throughput * choice.statistical_efficiency, 1e-15))
    return "goodput";
  return "";
}

BatchSearch RandomSearch(Random* random) {
  BatchSearch search;
  search.least_global_batch = random->LogWhole(1, 5000);
  search.most_global_batch = random->Chance(0.1)
                                 ? random->LogWhole(1, 1000)
                                 : random->LogWhole(search.least_global_batch, 1'000'000);
  if (random->Chance(0.3)) search.least_local_batch = random->LogWhole(1, 200);
  if (random->Chance(0.5)) search.most_local_batch = random->LogWhole(1, 500);
  search.accumulate = random->Chance(0.7);
  search.candidates = random->Pick({1, 2, 3, 50, 64, 65, 130, 200});
  search.tolerance = 0;
  if (random->Chance(0.6)) search.noise_scale = random->LogBetween(1, 1e5);
  if (random->Chance(0.9)) search.initial_batch = random->LogBetween(1, 1e4);
  return search;
}

std::string Text(const BatchSearch& s) {
  return "global " + std::to_string(s.least_global_batch) + " to " +
         std::to_string(s.most_global_batch) + ", local " + std::to_string(s.least_local_batch) +
         " to " + std::to_string(s.most_local_batch) + ", " + std::to_string(s.candidates) +
         (s.accumulate ? " candidates" : " candidates, one micro-step");
}

class AllocationStrategies : public ::testing::TestWithParam<int> {};

TEST_P(AllocationStrategies, ChooseAsTheBruteForce) {
  const auto strategy = static_cast<Strategy>(GetParam());
  EXPECT_TRUE(rc::check([&](std::uint64_t seed) {
    const RandomCase made = MakeRandomCase(strategy, seed, 30);
    if (made.workload.communication_only) return;
    const CompiledPlan compiled(made.MakePredictor(), made.plan);
    Random random(seed + 1);
    const BatchSearch search = RandomSearch(&random);
    std::vector<Allocation> allocations;
    for (int i = 0; i < 4; ++i) {
      const PlanQuery query = RandomQuery(made.plan, &random);
      allocations.push_back({query.workers, query.nodes, query.devices_per_node, query.servers});
    }
    std::size_t none = 0;
    const std::vector<BatchChoice> choices = Choose(compiled, allocations, search, &none);
    std::size_t without = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      without += choices[i].local_batch == 0 ? 1 : 0;
      const std::string wrong = Judge(compiled, allocations[i], search, choices[i]);
      if (!wrong.empty()) {
        RC_FAIL(wrong + ": " + std::to_string(choices[i].local_batch) + " x " +
                std::to_string(choices[i].accumulation_steps) + " on " +
                std::to_string(allocations[i].workers) + " workers; " + Text(search) + ";" +
                Describe(made.plan));
      }
    }
    RC_ASSERT(none == without);
  }));
}

INSTANTIATE_TEST_SUITE_P(Allocations, AllocationStrategies, ::testing::Range(0, kStrategyCount),
                         [](const ::testing::TestParamInfo<int>& strategy) {
                           std::string name = kStrategyNames[strategy.param];
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// ---- Limits.

const std::vector<Allocation> kAllocations = {{1, 1, 1, 0}, {2, 1, 2, 0},  {4, 1, 4, 0},
                                              {8, 2, 4, 0}, {10, 3, 4, 0}, {16, 4, 4, 0},
                                              {3, 3, 1, 0}, {64, 16, 4, 0}};

BatchSearch Between(int least, int most) {
  BatchSearch search;
  search.least_global_batch = least;
  search.most_global_batch = most;
  search.candidates = 50;
  search.tolerance = 0;
  return search;
}

TEST(Allocations, KeepEveryLimit) {
  const CompiledPlan compiled = Compile(Strategy::kRing, Gibibytes(8.0));
  for (const bool accumulate : {false, true}) {
    for (const int most_local : {0, 1, 7, 64, kMostInt}) {
      for (const int least_local : {1, 7, 50}) {
        BatchSearch search = Between(100, 6000);
        search.accumulate = accumulate;
        search.most_local_batch = most_local;
        search.least_local_batch = least_local;
        const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
        for (std::size_t i = 0; i < choices.size(); ++i) {
          const BatchChoice& choice = choices[i];
          EXPECT_EQ(Judge(compiled, kAllocations[i], search, choice), "") << Text(search);
          if (choice.local_batch == 0) continue;
          PlanQuery query;
          query.workers = kAllocations[i].workers;
          query.accumulation_steps = choice.accumulation_steps;
          EXPECT_LE(choice.local_batch, compiled.MostLocalBatch(query));
          EXPECT_LE(choice.local_batch, most_local > 0 ? most_local : kMostInt);
          EXPECT_GE(choice.local_batch, least_local);
          EXPECT_LE(choice.accumulation_steps, accumulate ? kMostCount : 1);
          const double batch = 1.0 * choice.local_batch * choice.accumulation_steps * query.workers;
          EXPECT_GE(batch, 100);
          EXPECT_LE(batch, 6000);
        }
      }
    }
  }
}

// Gradients that are shared out and wait for the last micro-step are whole until then.
TEST(Allocations, WithoutRoomForMicroStepsTheLargestShareIsOneBatch) {
  bool met = false;
  for (double mebibytes = 1000; mebibytes < 1600; mebibytes += 5) {
    const CompiledPlan compiled = CompileUnseen(Mebibytes(mebibytes), Shard::kGradients);
    BatchSearch search = Between(1, 1'000'000);
    search.candidates = 2;
    const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const int alone = MostLocal(compiled, kAllocations[i], search, 1);
      if (alone < 1 || MostLocal(compiled, kAllocations[i], search, 2) > 0) continue;
      met = true;
      EXPECT_EQ(choices[i].local_batch, alone) << mebibytes << " MiB";
      EXPECT_EQ(choices[i].accumulation_steps, 1);
      EXPECT_EQ(Judge(compiled, kAllocations[i], search, choices[i]), "");
    }
  }
  EXPECT_TRUE(met);
}

// They take memory, and leave room for smaller batches.
TEST(Allocations, MicroStepsHaveRoomForTheirGradients) {
  const Allocation one = {8, 1, 8, 0};
  int met = 0;
  for (double mebibytes = 1000; mebibytes < 5000; mebibytes += 40) {
    const CompiledPlan compiled = CompileUnseen(Mebibytes(mebibytes), Shard::kGradients);
    BatchSearch search = Between(1, 1'000'000);
    const int alone = MostLocal(compiled, one, search, 1);
    const int accumulating = MostLocal(compiled, one, search, 2);
    ASSERT_LE(accumulating, alone);
    if (accumulating < 1 || accumulating == alone) continue;
    ++met;
    // One sample each, and twice what fits at once.
    search.most_global_batch = 8 * 2 * alone;
    search.candidates = 2;
    const BatchChoice ends = Choose(compiled, {one}, search).front();
    EXPECT_EQ(ends.accumulation_steps, (2 * alone + accumulating - 1) / accumulating);
    EXPECT_EQ(ends.local_batch, 2 * alone / ends.accumulation_steps) << mebibytes << " MiB";
    // Of all batches.
    search.most_global_batch = 1'000'000;
    search.candidates = 0;
    const BatchChoice best = Choose(compiled, {one}, search).front();
    EXPECT_GT(best.local_batch, 0);
    EXPECT_LE(best.local_batch, best.accumulation_steps > 1 ? accumulating : alone)
        << mebibytes << " MiB";
  }
  EXPECT_GT(met, 10);
}

TEST(Allocations, NothingFits) {
  const CompiledPlan compiled = Compile(Strategy::kRing, Gibibytes(8.0));
  const auto none = [](const CompiledPlan& asked, const BatchSearch& search) {
    std::size_t without = 0;
    for (const BatchChoice& choice : Choose(asked, kAllocations, search, &without)) {
      EXPECT_EQ(choice.local_batch, 0);
      EXPECT_EQ(choice.goodput, 0);
    }
    return without == kAllocations.size();
  };
  EXPECT_TRUE(none(compiled, Between(200, 100)));
  BatchSearch search = Between(1, 1000);
  search.least_local_batch = 500;
  search.most_local_batch = 400;
  EXPECT_TRUE(none(compiled, search));
  EXPECT_TRUE(none(CompileUnseen(Gibibytes(1.0)), Between(1, 1000)));
  search = Between(1'000'000, 2'000'000);
  search.accumulate = false;
  EXPECT_TRUE(none(compiled, search)) << "too much for one micro-step";
}

TEST(Allocations, OneWithoutAnAnswerLeavesTheOthersAlone) {
  const CompiledPlan compiled = Compile();
  const BatchSearch search = Between(64, 4096);
  const std::vector<BatchChoice> alone = Choose(compiled, kAllocations, search);
  std::vector<Allocation> mixed;
  const std::vector<Allocation> bad = {{0, 0, 0, 0},
                                       {0, 1, 1, 0},
                                       {-1, 1, 1, 0},
                                       {4, 1, 2, 0},
                                       {4, 5, 1, 0},
                                       {2, 1, 2, 1},
                                       {kMostInt, kMostInt, kMostInt, kMostInt},
                                       {std::numeric_limits<int>::min(), 1, 1, 0}};
  for (std::size_t i = 0; i < kAllocations.size(); ++i) {
    mixed.push_back(bad[i]);
    mixed.push_back(kAllocations[i]);
  }
  std::size_t none = 0;
  const std::vector<BatchChoice> choices = Choose(compiled, mixed, search, &none);
  EXPECT_EQ(none, bad.size());
  for (std::size_t i = 0; i < kAllocations.size(); ++i) {
    EXPECT_EQ(choices[2 * i].local_batch, 0);
    EXPECT_EQ(choices[2 * i].goodput, 0);
    EXPECT_EQ(choices[2 * i + 1].local_batch, alone[i].local_batch);
    EXPECT_EQ(choices[2 * i + 1].goodput, alone[i].goodput);
  }
  EXPECT_EQ(ChooseBatches(compiled, nullptr, 0, search, nullptr), 0U);
}

TEST(Allocations, OneCandidateIsTheLeast) {
  const CompiledPlan compiled = Compile();
  {
    BatchSearch search = Between(64, 4096);
    search.candidates = 1;
    const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const int w = kAllocations[i].workers;
      EXPECT_EQ(choices[i].local_batch, (64 + w - 1) / w) << "the first is rounded up";
      EXPECT_EQ(choices[i].accumulation_steps, 1);
    }
  }
}

TEST(Allocations, TwoCandidatesAreTheEnds) {
  const CompiledPlan compiled = Compile();
  BatchSearch search = Between(8, 4096);
  search.candidates = 2;
  const BatchChoice choice = Choose(compiled, {{8, 2, 4, 0}}, search).front();
  EXPECT_EQ(choice.local_batch, 512) << "throughput grows with the batch";
}

// By default too, be it a limit of all samples or of a worker's; where neither is a power of two.
TEST(Allocations, TheLargestBatchIsTried) {
  const CompiledPlan compiled = Compile();
  BatchSearch search;
  search.tolerance = 0;
  search.most_global_batch = 8 * 45 + 7;
  EXPECT_EQ(Choose(compiled, {{8, 2, 4, 0}}, search).front().local_batch, 45);
  search.most_global_batch = 8 * 400;
  search.most_local_batch = 150;
  search.accumulate = false;
  EXPECT_EQ(Choose(compiled, {{8, 2, 4, 0}}, search).front().local_batch, 150);
  // Of what is fitted from 8 to 64 samples, 256 are to be trusted.
  search.most_local_batch = 0;
  EXPECT_EQ(Choose(compiled, {{8, 2, 4, 0}}, search).front().local_batch, 256);
}

TEST(Allocations, NumbersOfAnySizeAreBorne) {
  const CompiledPlan compiled = Compile();
  const std::vector<Allocation> allocations = {
      {1, 1, 1, 0}, {8, 2, 4, 0}, {kMostCount, kMostCount, 1, 0}};
  for (const int least : {1, 1000, kMostInt}) {
    for (const int most_local : {0, 1, kMostInt}) {
      for (const int least_local : {1, kMostBatch, kMostInt}) {
        for (const int candidates : {1, 50, 1000}) {
          BatchSearch search = Between(least, kMostInt);
          search.most_local_batch = most_local;
          search.least_local_batch = least_local;
          search.candidates = candidates;
          search.noise_scale = 1e300;
          search.initial_batch = 1e-300;
          const std::vector<BatchChoice> choices = Choose(compiled, allocations, search);
          for (std::size_t i = 0; i < choices.size(); ++i) {
            EXPECT_EQ(Judge(compiled, allocations[i], search, choices[i]), "")
                << Text(search) << ", " << allocations[i].workers << " workers";
          }
        }
      }
    }
  }
}

// A least batch of nothing is no batch: what fits is chosen as from one sample on.
TEST(Allocations, LeastOfNothingIsLeastOfOne) {
  const CompiledPlan compiled = Compile();
  BatchSearch one = Between(1, 4096);
  BatchSearch nothing = Between(0, 4096);
  nothing.least_local_batch = 0;
  BatchSearch below = Between(-5, 4096);
  below.least_local_batch = -5;
  for (BatchSearch* search : {&one, &nothing, &below}) {
    search->noise_scale = 100;
    search->initial_batch = 32;
  }
  const std::vector<BatchChoice> expected = Choose(compiled, kAllocations, one);
  for (const BatchSearch& search : {nothing, below}) {
    const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      EXPECT_EQ(choices[i].local_batch, expected[i].local_batch) << kAllocations[i].workers;
      EXPECT_EQ(choices[i].goodput, expected[i].goodput);
    }
  }
}

TEST(BatchSearchProblem, NamesWhatMakesNoSense) {
  EXPECT_TRUE(IsSearch({}));
  EXPECT_FALSE(ProblemOf(BatchSearch()));
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const struct {
    void (*change)(BatchSearch*);
    const char* field;
    const char* allowed;
    bool is_search = false;
  } wrong[] = {
      {[](BatchSearch* s) { s->least_global_batch = 0; }, "least_global_batch", "at least 1"},
      {[](BatchSearch* s) { s->most_global_batch = 0; }, "most_global_batch", "at least 1"},
      {[](BatchSearch* s) { s->least_local_batch = 0; }, "least_local_batch", "at least 1"},
      {[](BatchSearch* s) { s->most_local_batch = -1; }, "most_local_batch", "at least 1"},
      {[](BatchSearch* s) { s->candidates = -1; }, "candidates", "at least 0"},
      {[](BatchSearch* s) { s->noise_scale = s->initial_batch = -1; }, "noise_scale",
       "from 0 to 1e+15"},
      {[](BatchSearch* s) { s->noise_scale = s->initial_batch = kNone; }, "noise_scale",
       "from 0 to 1e+15"},
      {[](BatchSearch* s) { s->noise_scale = s->initial_batch = 0; }, "initial_batch",
       "from 1 to 1e+15"},
      {[](BatchSearch* s) { s->noise_scale = 1; }, "noise_scale",
       "noise_scale and initial_batch, or neither"},
      {[](BatchSearch* s) { s->initial_batch = 1; }, "initial_batch",
       "noise_scale and initial_batch, or neither"},
      // These are searches that find none.
      {[](BatchSearch* s) { s->least_global_batch = 10'000; }, "most_global_batch",
       "at least 10000", true},
      {[](BatchSearch* s) {
         s->least_local_batch = 9;
         s->most_local_batch = 8;
       },
       "most_local_batch", "at least 9", true},
  };
  for (const auto& one : wrong) {
    BatchSearch search;
    one.change(&search);
    EXPECT_EQ(IsSearch(search), one.is_search) << one.field;
    const std::optional<QueryProblem> problem = ProblemOf(search);
    ASSERT_TRUE(problem) << one.field;
    EXPECT_EQ(problem->field, one.field);
    EXPECT_EQ(problem->allowed, one.allowed) << one.field;
  }
}

// ---- What is best.

TEST(Allocations, ThroughputDecidesWithoutBothNumbers) {
  const CompiledPlan compiled = Compile();
  const BatchSearch plain = Between(64, 8192);
  BatchSearch noise = plain;
  noise.noise_scale = 10;
  BatchSearch initial = plain;
  initial.initial_batch = 64;
  BatchSearch both = noise;
  both.initial_batch = 64;
  const std::vector<BatchChoice> expected = Choose(compiled, kAllocations, plain);
  for (const BatchSearch& search : {noise, initial}) {
    const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      EXPECT_EQ(choices[i].local_batch, expected[i].local_batch);
      EXPECT_EQ(choices[i].statistical_efficiency, 1);
      EXPECT_EQ(choices[i].goodput, choices[i].throughput);
    }
  }
  const std::vector<BatchChoice> worth = Choose(compiled, kAllocations, both);
  for (std::size_t i = 0; i < worth.size(); ++i) {
    EXPECT_LT(worth[i].local_batch * worth[i].accumulation_steps,
              expected[i].local_batch * expected[i].accumulation_steps)
        << "little noise makes large batches worthless";
    EXPECT_LE(worth[i].statistical_efficiency, 1);
  }
}

// The more noise, the larger the batch.
TEST(Allocations, NoiseAsksForLargerBatches) {
  const CompiledPlan compiled = Compile();
  std::vector<double> before(kAllocations.size(), 0);
  for (double noise = 1; noise < 1e6; noise *= 3) {
    BatchSearch search = Between(64, 1 << 16);
    search.noise_scale = noise;
    search.initial_batch = 64;
    search.most_local_batch = 1 << 16;
    const std::vector<BatchChoice> choices = Choose(compiled, kAllocations, search);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const double batch = 1.0 * choices[i].local_batch * choices[i].accumulation_steps;
      EXPECT_GE(batch, before[i]) << noise;
      before[i] = batch;
    }
  }
}

// Steps that take no time but for the batch make all batches equal; the smallest wins. Such steps
// are those of no fixed time at all, as far as a model has them: batches that are one and the same.
TEST(Allocations, OfEqualsTheSmallerWins) {
  const CompiledPlan compiled = Compile();
  BatchSearch search = Between(8, 15);  // on 8 workers all are one sample each
  const BatchChoice choice = Choose(compiled, {{8, 2, 4, 0}}, search).front();
  EXPECT_EQ(choice.local_batch, 1);
  EXPECT_EQ(choice.accumulation_steps, 1);
  EXPECT_EQ(Judge(compiled, {8, 2, 4, 0}, search, choice), "");
  // With a noise scale of nothing every batch is worth its initial one, so that time alone counts,
  // and the shortest step is the first of many.
  search = Between(8, 4096);
  search.noise_scale = 0;
  search.initial_batch = 8;
  EXPECT_EQ(Choose(compiled, {{8, 2, 4, 0}}, search).front().local_batch, 1);
}

// ---- More to choose from is never worse, where what was to be chosen from is still there.

TEST(Allocations, MoreIsNeverWorse) {
  for (const Strategy strategy :
       {Strategy::kRing, Strategy::kTree, Strategy::kPsSync, Strategy::kPsAsync}) {
    const CompiledPlan compiled = Compile(strategy, Gibibytes(12.0));
    std::vector<Allocation> allocations = kAllocations;
    for (Allocation& allocation : allocations) {
      allocation.servers = UsesServers(strategy) ? 2 : 0;
    }
    BatchSearch search = Between(128, 5000);
    search.noise_scale = 1500;
    search.initial_batch = 128;
    const auto never_worse = [&](const BatchSearch& narrow, const BatchSearch& wide,
                                 const char* what) {
      const std::vector<BatchChoice> before = Choose(compiled, allocations, narrow);
      const std::vector<BatchChoice> after = Choose(compiled, allocations, wide);
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_GE(after[i].goodput, before[i].goodput * (1 - 1e-12))
            << what << ", " << allocations[i].workers << " workers";
      }
    };
    // Candidates in between, beside those that there were.
    for (const int candidates : {2, 5, 33, 60}) {
      BatchSearch few = search;
      few.candidates = candidates;
      BatchSearch many = search;
      many.candidates = 2 * candidates - 1;
      never_worse(few, many, "candidates");
    }
    // Micro-steps, where the global batch is the limit either way.
    BatchSearch one_step = Between(64, 64);
    one_step.accumulate = false;
    never_worse(one_step, Between(64, 64), "accumulation");
    // A smaller least local batch, where the global one is the limit either way.
    BatchSearch large = Between(6400, 12800);
    large.least_local_batch = 20;
    never_worse(large, Between(6400, 12800), "least local batch");
    // A noise scale makes no sample worth more than those of the initial batch. An asynchronous
    // worker updates by itself, with fewer.
    if (strategy == Strategy::kPsAsync) continue;
    for (const BatchChoice& choice : Choose(compiled, allocations, search)) {
      EXPECT_LE(choice.goodput, choice.throughput);
    }
  }
}

// Each device more of one node is worth something to a job that compute binds.
TEST(Allocations, MoreDevicesServeAJobThatComputes) {
  const CompiledPlan compiled = Compile();
  BatchSearch search = Between(256, 4096);
  search.noise_scale = 2000;
  search.initial_batch = 256;
  double before = 0;
  for (const int devices : {1, 2, 4}) {
    const double goodput = Choose(compiled, {{devices, 1, devices, 0}}, search).front().goodput;
    EXPECT_GT(goodput, before);
    before = goodput;
  }
}

}  // namespace
}  // namespace stepcast
