// What a recommendation promises, for many questions.
#include "predictor/search/recommend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "predictor/outlook.h"
#include "predictor/search/limits.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

constexpr int kDevicesPerNode = 4;

Device DeviceWith(DataSize<> memory) {
  Device device;
  device.name = kSyntheticDevice;
  device.memory = memory;
  return device;
}

Predictor MakePredictor(DataSize<> memory = Gibibytes(16.0)) {
  return {CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), DeviceWith(memory)};
}

// On which no batch has run, as one that has fits.
Predictor MakeUnseenPredictor(DataSize<> memory) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.local_batch.clear();
  return {cluster, *FindWorkload("resnet50"), DeviceWith(memory)};
}

struct Question {
  std::string name;
  Plan plan;
  RecommendOptions options;
};

std::vector<Question> Questions() {
  std::vector<Question> questions;
  const auto ask = [&](const std::string& name, const Placement& placement) -> Question& {
    questions.push_back({name, AllreducePlan(placement, 32), {}});
    return questions.back();
  };
  ask("one device", {1});
  ask("two nodes", {1, 1});
  ask("four full nodes", {4, 4, 4, 4});
  ask("a slow link", {1, 1}).plan.link.bandwidth = MegabitsPerSecond(100.0);
  ask("a small global batch", {4, 4}).options.most_global_batch = 256;
  ask("the best, whatever it takes", {4, 4}).options.tolerance = 0;
  ask("a generous tolerance", {4, 4}).options.tolerance = 0.3;
  ask("workers to choose", {1}).options.workers = {1, 2, 4, 8, 16};
  {
    Question& q = ask("strategies to choose", {4, 4});
    q.options.strategies = {Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                            Strategy::kPsSync};
    q.options.servers = {1, 2, 4};
    q.options.buckets = {Mebibytes(1.0), Mebibytes(25.0), Mebibytes(100.0)};
    q.options.local_batches = {16, 32, 64};
    q.options.accumulation_steps = {1, 2, 4, 8};
  }
  {
    Question& q = ask("asynchronous servers", {1, 1, 1, 1});
    q.plan.strategy = Strategy::kPsAsync;
    q.plan.servers = 1;
  }
  {
    Question& q = ask("the plan is already the fastest", {1});
    q.plan.local_batch = 64;
    q.options.local_batches = {32, 64};
    q.options.accumulation_steps = {1};
  }
  return questions;
}

bool Dominates(const Recommendation& a, const Recommendation& b) {
  return a.plan.global_batch() <= b.plan.global_batch() &&
         a.prediction.throughput >= b.prediction.throughput &&
         (a.plan.global_batch() < b.plan.global_batch() ||
          a.prediction.throughput > b.prediction.throughput);
}

TEST(Recommend, TheBestIsFeasibleAndNotDominated) {
  const Predictor predictor = MakePredictor();
  for (const Question& q : Questions()) {
    SCOPED_TRACE(q.name);
    const RecommendOutcome outcome = Recommend(predictor, q.plan, kDevicesPerNode, q.options);
    ASSERT_TRUE(outcome.best.has_value());
    const Recommendation& best = *outcome.best;
    EXPECT_NE(best.prediction.memory.verdict, MemoryVerdict::kOutOfMemory);
    EXPECT_LE(best.plan.global_batch(), q.options.most_global_batch);
    EXPECT_EQ(best.prediction.step_time, predictor.Predict(best.plan).step_time);
    ASSERT_FALSE(outcome.pareto.empty());
    for (const Recommendation& other : outcome.pareto) EXPECT_FALSE(Dominates(other, best));
    // It is the last of them.
    EXPECT_EQ(best.plan.global_batch(), outcome.pareto.back().plan.global_batch());
    EXPECT_EQ(best.prediction.throughput, outcome.pareto.back().prediction.throughput);
  }
}

// On a slow link the fewest bytes win, on a fast one those that take no time to code; each plan is
// the best of all candidates, looked at one by one.
TEST(Recommend, NothingIsComparedWithOneWorkerThatSendsNothing) {
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("message_1048576"),
                            std::nullopt);
  Plan plan = AllreducePlan({4, 4}, 1);
  const char* const kAlone =
      "workload: 'message_1048576' is a bare message, and one worker, which plans are compared "
      "with "
      "here, sends nothing";
  EXPECT_TRUE(Says(ErrorOf([&] { Recommend(predictor, plan, kDevicesPerNode, {}); }), kAlone));
  const auto limits = [&] { FindScalingLimits(predictor, plan, kDevicesPerNode, {}); };
  EXPECT_TRUE(Says(ErrorOf(limits), kAlone));
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  plan.server.colocated = true;
  EXPECT_TRUE(Says(ErrorOf(limits), kAlone));
  plan.server.colocated = false;
  EXPECT_NO_THROW(limits()) << "one worker has the servers";
}

TEST(Recommend, CompressesWhereItPays) {
  const Predictor predictor = MakePredictor();
  RecommendOptions options;
  options.compressions = {{}, {Compressor::kFp16}, {Compressor::kInt8}, {Compressor::kTopK, 0.01}};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  for (const double gigabits : {0.1, 10.0, 10'000.0}) {
    Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
    plan.link.bandwidth = GigabitsPerSecond(gigabits);
    plan.compress_rate = GigabytesPerSecond(1.0);
    options.tolerance = 0;
    const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, options);
    ASSERT_TRUE(outcome.best.has_value());
    for (const Compression& compression : options.compressions) {
      Plan tried = plan;
      tried.compress = compression;
      EXPECT_LE(outcome.best->prediction.step_time, predictor.Predict(tried).step_time);
    }
    if (gigabits < 1) {
      EXPECT_EQ(outcome.best->plan.compress.method, Compressor::kTopK);
    }
    if (gigabits > 1000) {
      EXPECT_FALSE(outcome.best->plan.compress.exists());
    }
  }
  // A strategy that cannot gather is tried without.
  options.strategies = {Strategy::kTree, Strategy::kRing};
  options.compressions = {{Compressor::kTopK, 0.01}};
  Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
  plan.link.bandwidth = GigabitsPerSecond(0.1);
  plan.compress_rate = GigabytesPerSecond(1.0);
  EXPECT_EQ(Recommend(predictor, plan, kDevicesPerNode, options).best->plan.strategy,
            Strategy::kRing);
}

// Where samples arrive too slowly the smallest batch does as well as any, and that is said.
TEST(Recommend, NoBatchHelpsWhereSamplesAreLate) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.input_rate = SampleRate<>::FromSi(50.0);
  const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, {});
  ASSERT_TRUE(outcome.best.has_value());
  EXPECT_TRUE(outcome.is_advice);
  EXPECT_LE(outcome.best->plan.global_batch(), plan.global_batch());
  EXPECT_NEAR(outcome.best->prediction.throughput.in(kSamplesPerSecond), 100, 1e-9);
  EXPECT_EQ(outcome.gain, 1);
  EXPECT_EQ(outcome.binding.find("the input pipeline: "), 0U) << outcome.binding;
  EXPECT_NE(outcome.binding.find("and gets 50/s"), std::string::npos) << outcome.binding;
  // With samples enough the answer is that of a plan that says nothing of them.
  plan.input_rate = SampleRate<>::FromSi(1e9);
  const RecommendOutcome rich = Recommend(predictor, plan, kDevicesPerNode, {});
  plan.input_rate = std::nullopt;
  const RecommendOutcome ever = Recommend(predictor, plan, kDevicesPerNode, {});
  EXPECT_EQ(rich.best->plan.global_batch(), ever.best->plan.global_batch());
  EXPECT_EQ(rich.best->prediction.step_time, ever.best->prediction.step_time);
  EXPECT_EQ(rich.binding, ever.binding);
}

// Throughputs that differ by rounding are the same, whichever of the two is the larger: what is
// recommended gains nothing and loses nothing, and is among the choices.
TEST(Recommend, RoundingIsNoGain) {
  const Predictor predictor = MakePredictor();
  int smaller = 0;
  for (double rate = 3; rate < 50; rate *= 1.25) {
    for (const int batch : {16, 32, 48}) {
      SCOPED_TRACE(std::to_string(rate) + " samples/s, " + std::to_string(batch));
      Plan plan = AllreducePlan({4, 4, 2}, batch);
      plan.input_rate = SampleRate<>::FromSi(rate);
      for (const std::vector<int>& tried : {std::vector<int>(), std::vector<int>{1, 3, 7}}) {
        RecommendOptions options;
        options.local_batches = tried;
        const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, options);
        ASSERT_GT(outcome.best->prediction.breakdown.input_wait.si(), 0);
        EXPECT_TRUE(outcome.is_advice);
        EXPECT_EQ(outcome.gain, 1);
        EXPECT_EQ(outcome.score_gain, 1);
        ASSERT_FALSE(outcome.pareto.empty());
        EXPECT_EQ(outcome.pareto.back().score, outcome.best->score);
        if (outcome.best->plan.global_batch() < plan.global_batch()) ++smaller;
      }
    }
  }
  EXPECT_GT(smaller, 0);
}

TEST(Recommend, TheParetoListRises) {
  const Predictor predictor = MakePredictor();
  for (const Question& q : Questions()) {
    SCOPED_TRACE(q.name);
    const auto pareto = Recommend(predictor, q.plan, kDevicesPerNode, q.options).pareto;
    for (std::size_t i = 1; i < pareto.size(); ++i) {
      EXPECT_LT(pareto[i - 1].plan.global_batch(), pareto[i].plan.global_batch());
      EXPECT_LT(pareto[i - 1].prediction.throughput, pareto[i].prediction.throughput);
    }
    for (const Recommendation& r : pareto) {
      EXPECT_LE(r.plan.global_batch(), q.options.most_global_batch);
      EXPECT_GT(r.efficiency, 0);
      // More workers never do more than their share; asynchronous ones come closest.
      EXPECT_LE(r.efficiency, 1 + 1e-9);
    }
  }
}

// The list is complete: nothing that was allowed, and is worth a row, beats it.
TEST(Recommend, AgreesWithASearchByHand) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({4, 4}, 32);
  RecommendOptions options;
  options.local_batches = {8, 16, 32, 48, 64};
  options.accumulation_steps = {1, 2, 3, 4, 8};
  options.most_global_batch = 1024;
  const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, options);
  EXPECT_EQ(outcome.considered, 25);
  int over = 0;
  double top = 0;
  for (const int batch : options.local_batches) {
    for (const int accumulation : options.accumulation_steps) {
      plan.local_batch = batch;
      plan.accumulation_steps = accumulation;
      if (plan.global_batch() > 1024) {
        ++over;
        continue;
      }
      const double throughput = predictor.Predict(plan).throughput.in(kSamplesPerSecond);
      top = std::max(top, throughput);
      const double given = outcome.baseline->prediction.throughput.in(kSamplesPerSecond);
      const double best = outcome.best->prediction.throughput.in(kSamplesPerSecond);
      if (throughput < given || throughput > best) continue;
      const bool matched =
          std::any_of(outcome.pareto.begin(), outcome.pareto.end(), [&](const auto& r) {
            return r.plan.global_batch() <= plan.global_batch() &&
                   r.prediction.throughput.in(kSamplesPerSecond) >= throughput;
          });
      EXPECT_TRUE(matched) << batch << " x " << accumulation;
    }
  }
  EXPECT_EQ(outcome.over_global_batch, over);
  EXPECT_EQ(outcome.out_of_memory, 0);
  const double best = outcome.best->prediction.throughput.in(kSamplesPerSecond);
  EXPECT_LE(best, top);
  EXPECT_GE(best, top * (1 - options.tolerance));
}

// Where the global batch allows no power of two more, the largest that it allows is a choice: on a
// link that binds, nearly twice the samples for each exchange.
TEST(Recommend, TheLargestBatchIsTried) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan(Placement(8, 4), 8);
  plan.link.bandwidth = GigabitsPerSecond(2.0);
  RecommendOptions options;
  options.most_global_batch = 500;
  const RecommendOutcome outcome = Recommend(predictor, plan, kDevicesPerNode, options);
  double top = 0;
  for (int batch = 1; batch <= 500 / 32; ++batch) {
    plan.local_batch = batch;
    for (int a = 1; a <= 500 / (32 * batch); ++a) {
      plan.accumulation_steps = a;
      top = std::max(top, predictor.Predict(plan).throughput.in(kSamplesPerSecond));
    }
  }
  EXPECT_GE(outcome.best->score, top * (1 - options.tolerance));
  EXPECT_GT(outcome.best->score, outcome.baseline->score * 1.5);
  EXPECT_EQ(outcome.best->plan.local_batch, 15);
}

TEST(Recommend, NeverLosesToThePlanAsGiven) {
  const Predictor predictor = MakePredictor();
  for (const Question& q : Questions()) {
    SCOPED_TRACE(q.name);
    const RecommendOutcome outcome = Recommend(predictor, q.plan, kDevicesPerNode, q.options);
    ASSERT_TRUE(outcome.best.has_value());
    ASSERT_TRUE(outcome.baseline.has_value());
    EXPECT_EQ(outcome.baseline->plan.placement, q.plan.placement);
    EXPECT_EQ(outcome.baseline->plan.local_batch, q.plan.local_batch);
    EXPECT_EQ(outcome.baseline->plan.accumulation_steps, q.plan.accumulation_steps);
    EXPECT_DOUBLE_EQ(outcome.gain,
                     outcome.best->prediction.throughput / outcome.baseline->prediction.throughput);
    // The given plan is usable in each of these questions: it is beaten, or kept.
    EXPECT_EQ(outcome.is_advice, outcome.gain >= 1);
    EXPECT_FALSE(outcome.binding.empty());
  }
}

TEST(Recommend, KeepsToTheCandidates) {
  const Predictor predictor = MakePredictor();
  const auto has = [](const auto& values, const auto& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  for (const Question& q : Questions()) {
    SCOPED_TRACE(q.name);
    const RecommendOutcome outcome = Recommend(predictor, q.plan, kDevicesPerNode, q.options);
    for (const Recommendation& r : outcome.pareto) {
      const Plan& plan = r.plan;
      if (!q.options.local_batches.empty()) {
        EXPECT_TRUE(has(q.options.local_batches, plan.local_batch));
      }
      if (!q.options.accumulation_steps.empty()) {
        EXPECT_TRUE(has(q.options.accumulation_steps, plan.accumulation_steps));
      }
      if (q.options.workers.empty()) {
        EXPECT_EQ(plan.placement, q.plan.placement);
      } else {
        EXPECT_TRUE(has(q.options.workers, plan.workers()));
      }
      if (q.options.strategies.empty()) {
        EXPECT_EQ(plan.strategy, q.plan.strategy);
      } else {
        EXPECT_TRUE(has(q.options.strategies, plan.strategy));
      }
      EXPECT_EQ(UsesServers(plan.strategy), plan.servers > 0);
      EXPECT_EQ(plan.link.bandwidth, q.plan.link.bandwidth) << "links are not searched";
    }
    EXPECT_LE(outcome.out_of_memory + outcome.over_global_batch + 1, outcome.considered);
  }
}

// Where a candidate takes all nodes that there are, the slowest of their hosts is among them.
TEST(Recommend, AllNodesAreThoseThatThereAre) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.nodes = 4;
  for (const char* name : {"a", "b", "c", "d"}) {
    Host host;
    host.name = name;
    host.link.bandwidth = GigabitsPerSecond(std::string(name) == "d" ? 0.1 : 10.0);
    cluster.hosts.push_back(host);
  }
  const Predictor predictor(cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0)));
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.hosts = {"a", "b"};
  RecommendOptions options;
  options.workers = {2, 4};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  const RecommendOutcome outcome = Recommend(predictor, plan, 1, options);
  EXPECT_EQ(outcome.best->plan.workers(), 2);
  Plan all = AllreducePlan({1, 1, 1, 1}, 32);
  all.hosts = {"a", "b", "c", "d"};
  EXPECT_LT(predictor.Predict(all).throughput, outcome.best->prediction.throughput);
  // A host without a name is like any, and no option can name it.
  cluster.nodes = 5;
  const Predictor unnamed(cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0)));
  options.workers = {5};
  EXPECT_TRUE(Recommend(unnamed, plan, 1, options).best->plan.hosts.empty());
}

// Fewer nodes than there are may be chosen among, and are those on which the plan is quickest.
TEST(Recommend, FewerNodesAreTheQuickestThereAre) {
  const auto best = [](const Truth& truth, int workers) {
    Cluster cluster = CalibratedCluster(truth);
    cluster.nodes = 4;
    const Predictor predictor(cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0)));
    RecommendOptions options;
    options.workers = {workers};
    options.local_batches = {32};
    options.accumulation_steps = {1};
    Plan given = AllreducePlan({1}, 32);
    given.strategy = Strategy::kAllreduce;
    const Recommendation found = *Recommend(predictor, given, 1, options).best;
    EXPECT_EQ(found.prediction.step_time, predictor.Predict(found.plan).step_time);
    return found.plan.hosts;
  };
  using Hosts = std::vector<std::string>;
  const DataRate<> fast = GigabitsPerSecond(10.0);
  const DataRate<> slow = GigabitsPerSecond(0.1);
  Truth truth = PlausibleTruth();
  truth.host_links = {{"a", fast}, {"b", slow}, {"c", fast}, {"d", slow}};
  EXPECT_EQ(best(truth, 2), Hosts({"a", "c"}));
  EXPECT_EQ(best(truth, 3), Hosts({"a", "c", "b"})) << "no three are without a slow one";
  EXPECT_EQ(best(truth, 4), Hosts({"a", "b", "c", "d"}));
  truth.host_links = {{"a", fast}, {"b", fast}, {"c", fast}, {"d", fast}};
  EXPECT_EQ(best(truth, 3), Hosts()) << "any do as well";
  truth.host_slowdowns = {{"a", 1.5}};
  EXPECT_EQ(best(truth, 3), Hosts({"b", "c", "d"}));
  // A link that is a little slower is better than a host that computes much more slowly.
  truth.host_links["b"] = GigabitsPerSecond(9.0);
  EXPECT_EQ(best(truth, 3), Hosts({"c", "d", "b"}));
}

// Most of many hosts are alike, and take a forecast together: those of which something is known
// besides, by the file or by runs, are told from them.
TEST(Recommend, OfManyHostsThoseAreLeftOutThatAreKnownToBeSlow) {
  Truth truth = PlausibleTruth();
  truth.host_links = {{"h00001", GigabitsPerSecond(0.1)}};
  truth.host_slowdowns = {{"h00002", 1.5}};
  Cluster cluster = CalibratedCluster(truth);
  cluster.nodes = 20'000;
  for (int i = 0; i < cluster.nodes; ++i) {
    Host host;
    host.name = fmt::format("h{:05}", i);
    if (i == 1) continue;  // is there by its link
    if (i == 0) host.link.rtt = Milliseconds(50.0);
    cluster.hosts.push_back(host);
  }
  const Predictor predictor(cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0)));
  RecommendOptions options;
  options.workers = {3};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  Plan given = AllreducePlan({1}, 32);
  given.strategy = Strategy::kAllreduce;
  const Recommendation best = *Recommend(predictor, given, 1, options).best;
  EXPECT_EQ(best.plan.hosts, std::vector<std::string>({"h00003", "h00004", "h00005"}));
  EXPECT_EQ(best.prediction.step_time, predictor.Predict(best.plan).step_time);
}

// What the cluster does not have is left out, unless the plan as given asks what it would do.
TEST(Recommend, MoreNodesThanThereAreAreLeftOut) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.nodes = 2;
  const Predictor predictor(cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0)));
  RecommendOptions options;
  options.workers = {1, 8, 9, 64};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  const Plan given = AllreducePlan({4}, 32);
  const RecommendOutcome some = Recommend(predictor, given, kDevicesPerNode, options);
  EXPECT_EQ(some.best->plan.workers(), 8);
  EXPECT_EQ(some.over_nodes, 2);
  EXPECT_EQ(some.considered, 4);
  EXPECT_EQ(ReasonsLeftOut(some, options).front().reason, "more nodes than the cluster has");
  const RecommendOutcome what_if =
      Recommend(predictor, AllreducePlan({4, 4, 4}, 32), kDevicesPerNode, options);
  EXPECT_EQ(what_if.best->plan.workers(), 64);
  EXPECT_EQ(what_if.over_nodes, 0);
  options.workers = {9, 64};
  EXPECT_FALSE(Recommend(predictor, given, kDevicesPerNode, options).best.has_value());
  EXPECT_FALSE(FindFitting(predictor, given, kDevicesPerNode, options).has_value());
}

TEST(Recommend, BatchesStayNearTheCalibratedOnes) {
  const RecommendOutcome outcome =
      Recommend(MakePredictor(), AllreducePlan({1, 1}, 32), kDevicesPerNode, {});
  for (const Recommendation& r : outcome.pareto) {
    EXPECT_GE(r.plan.local_batch, 8 / 4);
    EXPECT_LE(r.plan.local_batch, 64 * 4);
  }
}

TEST(Recommend, ASmallerGlobalBatchWinsAmongEquals) {
  const Predictor predictor = MakePredictor();
  const Plan plan = AllreducePlan({4, 4}, 8);
  RecommendOptions strict;
  strict.tolerance = 0;
  RecommendOptions generous;
  generous.tolerance = 0.2;
  const RecommendOutcome best = Recommend(predictor, plan, kDevicesPerNode, strict);
  const RecommendOutcome good = Recommend(predictor, plan, kDevicesPerNode, generous);
  EXPECT_LT(good.best->plan.global_batch(), best.best->plan.global_batch());
  EXPECT_GT(best.best->prediction.throughput, good.best->prediction.throughput);
}

// ---- Other objectives.

TEST(Recommend, WhatASampleIsWorthCountsWhereItIsKnown) {
  OutlookOptions outlook;
  EXPECT_EQ(DefaultObjective(outlook), Objective::kThroughput);
  outlook.noise_scale = Samples(1000.0);
  EXPECT_EQ(DefaultObjective(outlook), Objective::kThroughput) << "against no batch";
  outlook.known_batch = Samples(256.0);
  EXPECT_EQ(DefaultObjective(outlook), Objective::kGoodput);
}

RecommendOptions Weighing(Objective objective) {
  RecommendOptions options;
  options.objective = objective;
  options.local_batches = {8, 16, 32, 64};
  options.accumulation_steps = {1, 2, 4, 8, 16};
  options.workers = {2, 8, 16, 32};
  return options;
}

RecommendOptions WithNoise(RecommendOptions options, double noise_scale) {
  options.outlook.noise_scale = Samples(noise_scale);
  options.outlook.known_batch = Samples(256.0);
  return options;
}

Predictor PaidPredictor() {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.node_price_per_hour = 4;
  cluster.device_power_w = 70;
  cluster.device_idle_power_w = 30;
  cluster.node_power_w = 200;
  return {cluster, *FindWorkload("resnet50"), DeviceWith(Gibibytes(16.0))};
}

TEST(Recommend, ThroughputIsTheObjectiveUnlessAsked) {
  const RecommendOutcome outcome =
      Recommend(MakePredictor(), AllreducePlan({4, 4}, 32), kDevicesPerNode, {});
  EXPECT_EQ(outcome.best->score, outcome.best->prediction.throughput.in(kSamplesPerSecond));
  EXPECT_DOUBLE_EQ(outcome.score_gain, outcome.gain);
}

TEST(Recommend, GoodputAgreesWithASearchByHand) {
  const Predictor predictor = PaidPredictor();
  double batch_before = 0;
  for (const double noise_scale : {100.0, 1000.0, 10000.0, 1e9}) {
    SCOPED_TRACE(noise_scale);
    const RecommendOptions options = WithNoise(Weighing(Objective::kGoodput), noise_scale);
    const RecommendOutcome outcome =
        Recommend(predictor, AllreducePlan({4, 4}, 32), kDevicesPerNode, options);
    double top = 0;
    for (const int workers : options.workers) {
      for (const int batch : options.local_batches) {
        for (const int a : options.accumulation_steps) {
          Plan plan = AllreducePlan(
              Placement(static_cast<std::size_t>((workers + 3) / 4), std::min(workers, 4)), batch);
          plan.accumulation_steps = a;
          const double m = plan.global_batch();
          if (m > options.most_global_batch) continue;
          const double goodput = predictor.Predict(plan).throughput.in(kSamplesPerSecond) *
                                 (noise_scale + 256) / (noise_scale + m);
          top = std::max(top, goodput);
        }
      }
    }
    EXPECT_NEAR(outcome.best->score / top, 1, 1e-12);
    EXPECT_GE(outcome.score_gain, 1);
    // Noisier gradients want larger batches; the best is on the Pareto list.
    EXPECT_GE(outcome.best->plan.global_batch(), batch_before);
    batch_before = outcome.best->plan.global_batch();
    for (const Recommendation& other : outcome.pareto) {
      EXPECT_FALSE(Dominates(other, *outcome.best));
    }
  }
}

TEST(Recommend, PriceAndEnergyPreferFewerWorkers) {
  const Predictor predictor = PaidPredictor();
  const Plan plan = AllreducePlan({4, 4, 4, 4}, 32);
  const auto best = [&](Objective objective) {
    return *Recommend(predictor, plan, kDevicesPerNode, Weighing(objective)).best;
  };
  const Recommendation fastest = best(Objective::kThroughput);
  for (const Objective objective : {Objective::kPrice, Objective::kEnergy}) {
    SCOPED_TRACE(kObjectiveNames[static_cast<int>(objective)]);
    const Recommendation r = best(objective);
    EXPECT_LT(r.plan.workers(), fastest.plan.workers());
    EXPECT_LE(r.prediction.throughput, fastest.prediction.throughput);
    const StepSpending step =
        MakeOutlook(r.prediction, r.plan, predictor.cluster(), std::nullopt, {}).spending;
    const double spent = objective == Objective::kPrice ? *step.price_usd : *step.energy_j;
    EXPECT_NEAR(r.score / (r.plan.global_batch() / spent), 1, 1e-12);
  }
}

TEST(Recommend, AnObjectiveNamesTheFactThatItNeeds) {
  const Plan plan = AllreducePlan({4, 4}, 32);
  const auto error_of = [&](const Predictor& predictor, const Plan& asked, Objective objective) {
    return ErrorOf([&] { Recommend(predictor, asked, kDevicesPerNode, Weighing(objective)); });
  };
  EXPECT_TRUE(Says(error_of(MakePredictor(), plan, Objective::kGoodput),
                   "needs --noise-scale and --known-batch"));
  EXPECT_TRUE(Says(error_of(MakePredictor(), plan, Objective::kPrice), "prices.node_per_hour"));
  EXPECT_TRUE(Says(error_of(MakePredictor(), plan, Objective::kEnergy), "power.device"));
  Plan servers = plan;
  servers.strategy = Strategy::kPsSync;
  servers.servers = 2;
  EXPECT_TRUE(
      Says(error_of(PaidPredictor(), servers, Objective::kPrice), "prices.server_per_hour"));
  servers.server.colocated = true;
  EXPECT_FALSE(error_of(PaidPredictor(), servers, Objective::kPrice).has_value());
}

// What goes with one strategy only does not keep another from being tried.
TEST(Recommend, OptionsOfServersDoNotHinderOtherStrategies) {
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  plan.server.colocated = true;
  plan.server.multicast = true;
  plan.server.pipelined = true;
  plan.backup_workers = 1;
  RecommendOptions options;
  options.strategies = {Strategy::kPsSync, Strategy::kPsAsync, Strategy::kRing, Strategy::kBytePs};
  options.servers = {1, 2};
  options.workers = {1, 8};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  EXPECT_EQ(outcome.considered, 2 * (2 + 2 + 1 + 2));
  EXPECT_TRUE(outcome.best.has_value());
  EXPECT_FALSE(outcome.binding.empty());
  EXPECT_NE(outcome.binding.back(), '.');
}

// What helpers have of a link goes with them, whether strategies are tried beside or not.
TEST(Recommend, NoHelpersHaveNoLink) {
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.strategy = Strategy::kBytePs;
  plan.servers = 2;
  plan.server_link.bandwidth = GigabitsPerSecond(5.0);
  RecommendOptions options;
  options.servers = {0, 2};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  for (const std::vector<Strategy>& strategies :
       {std::vector<Strategy>{}, std::vector<Strategy>{Strategy::kBytePs}}) {
    options.strategies = strategies;
    const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
    EXPECT_EQ(outcome.considered, 2);
    EXPECT_TRUE(outcome.baseline->plan.server_link.bandwidth);
  }
  // Those that are tried bring the link of a plan without any.
  plan.servers = 0;
  plan.strategy = Strategy::kRing;
  options.servers = {2};
  options.strategies = {Strategy::kBytePs};
  const RecommendOutcome tried = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  ASSERT_TRUE(tried.best && tried.baseline);
  EXPECT_TRUE(tried.best->plan.server_link.bandwidth);
  EXPECT_FALSE(tried.baseline->plan.server_link.bandwidth);
}

// Options of servers may be there for the strategies to try alone.
TEST(Recommend, OptionsOfTriedStrategiesNeedNotGoWithTheGivenOne) {
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.servers = 2;
  plan.server.multicast = true;
  RecommendOptions options;
  options.local_batches = {32};
  options.accumulation_steps = {1};
  EXPECT_THROW(Recommend(MakePredictor(), plan, kDevicesPerNode, options), InputError);
  options.strategies = {Strategy::kPsSync, Strategy::kPsAsync};
  const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  ASSERT_TRUE(outcome.best && outcome.baseline);
  EXPECT_EQ(outcome.considered, 2);
  // The plan as given, which is not among them, is faster than either.
  EXPECT_LT(outcome.best->score, outcome.baseline->score);
  EXPECT_FALSE(outcome.is_advice);
  EXPECT_EQ(outcome.baseline->plan.strategy, Strategy::kAllreduce);
  EXPECT_EQ(outcome.baseline->plan.servers, 0);
}

// Each plan that was tried is shown, or left out for one reason.
TEST(Recommend, CountsWhatItLeavesOut) {
  const Predictor predictor = MakePredictor();
  bool of_all[4] = {};
  for (const Question& q : Questions()) {
    const RecommendOutcome outcome = Recommend(predictor, q.plan, kDevicesPerNode, q.options);
    EXPECT_EQ(outcome.over_nodes, 0);
    const int counts[] = {outcome.out_of_memory, outcome.over_global_batch, outcome.no_better,
                          outcome.little_gain};
    int left_out = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      left_out += counts[i];
      of_all[i] = of_all[i] || counts[i] > 0;
    }
    EXPECT_EQ(left_out + static_cast<int>(outcome.pareto.size()), outcome.considered) << q.name;
    EXPECT_EQ(outcome.not_together, 0);
    int said = 0;
    for (const LeftOut& reason : ReasonsLeftOut(outcome, q.options)) {
      EXPECT_GT(reason.plans, 0);
      EXPECT_FALSE(reason.reason.empty());
      said += reason.plans;
    }
    EXPECT_EQ(said, left_out) << q.name;
  }
  EXPECT_TRUE(of_all[2] && of_all[3]);
}

// Each reason says how it was measured.
TEST(Recommend, SaysWhyItLeavesOut) {
  RecommendOutcome outcome;
  outcome.out_of_memory = 1;
  outcome.over_global_batch = 2;
  outcome.over_nodes = 5;
  outcome.no_better = 3;
  outcome.little_gain = 4;
  RecommendOptions options;
  options.tolerance = 0.075;
  options.most_global_batch = 640;
  std::vector<std::string> reasons;
  for (const LeftOut& reason : ReasonsLeftOut(outcome, options)) reasons.push_back(reason.reason);
  EXPECT_EQ(
      reasons,
      (std::vector<std::string>{
          "out of memory", "more than the global batch of 640", "more nodes than the cluster has",
          "no better than another of no larger global batch, or than half of the best",
          "better by at most 7.5 %, with a larger global batch"}));
}

// Of compression and shares each pair is tried, or counted as one that cannot be.
TEST(Recommend, CountsWhatDoesNotGoTogether) {
  RecommendOptions options;
  options.strategies = {Strategy::kRing, Strategy::kTree};
  options.shards = {Shard::kNone, Shard::kOptimizer};
  options.compressions = {{}, {Compressor::kTopK, 0.01}};
  options.local_batches = {16, 32};
  options.accumulation_steps = {1, 2, 4};
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.compress_rate = GigabytesPerSecond(1.0);
  const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  EXPECT_EQ(outcome.considered + outcome.not_together, 2 * 2 * 2 * 2 * 3);
  EXPECT_GT(outcome.considered, 0);
  EXPECT_GE(outcome.not_together, 2 * 3) << "both, with rings";
  const std::vector<LeftOut> reasons = ReasonsLeftOut(outcome, options);
  ASSERT_FALSE(reasons.empty());
  EXPECT_EQ(reasons.back().plans, outcome.not_together);
  EXPECT_NE(reasons.back().reason.find("do not go with"), std::string::npos);
}

// A model is shared out within nodes where these are equal; elsewhere it is counted as left out.
TEST(Recommend, SharesOutWithinEqualNodesAlone) {
  RecommendOptions options;
  options.shards = {Shard::kNone, Shard::kHybrid};
  options.workers = {3, 8, 9};
  options.local_batches = {32};
  options.accumulation_steps = {1};
  const Plan plan = AllreducePlan({4, 4}, 32);
  const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  EXPECT_EQ(outcome.considered, 5);
  EXPECT_EQ(outcome.not_together, 1) << "9 workers on 4-4-1";
}

// ---- No answer, and why.

// A node that computes all the time need not gain by a second one.
TEST(Recommend, MoreDevicesHelpWhereTwiceAsManyAreFaster) {
  const auto bound = [](double mbit_per_s) {
    Plan plan = AllreducePlan({kDevicesPerNode}, 32);
    plan.link.bandwidth = MegabitsPerSecond(mbit_per_s);
    RecommendOptions options;
    options.local_batches = {32};
    options.accumulation_steps = {64};
    options.most_global_batch = 100'000;
    return Recommend(MakePredictor(), plan, kDevicesPerNode, options).binding;
  };
  EXPECT_EQ(bound(100'000), "nothing but compute: more devices or faster ones help");
  EXPECT_EQ(bound(1),
            "nothing but compute: faster devices help; twice as many do not, as the network links "
            "of the nodes bind there");
}

// Whatever else takes a visible part of the best step is named.
TEST(Recommend, ComputeAloneBindsWhereItIsNearlyAll) {
  int alone = 0;
  int beside = 0;
  for (const double mbit_per_s : {30.0, 300.0, 1000.0, 10'000.0, 100'000.0}) {
    for (const int accumulation : {1, 4, 16, 64}) {
      Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
      plan.link.bandwidth = MegabitsPerSecond(mbit_per_s);
      RecommendOptions options;
      options.local_batches = {32};
      options.accumulation_steps = {accumulation};
      const RecommendOutcome outcome = Recommend(MakePredictor(), plan, 1, options);
      const StepTime<double>& step = outcome.best->prediction.breakdown;
      const bool all = outcome.binding.find("nothing but compute") != std::string::npos;
      beside += outcome.binding.find("beside compute") == 0 ? 1 : 0;
      if (!all) continue;
      ++alone;
      EXPECT_GE(step.compute() / step.total(), 0.95) << outcome.binding;
    }
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(beside, 0);
}

TEST(Recommend, NothingFitsTheMemory) {
  const RecommendOutcome outcome = Recommend(MakeUnseenPredictor(Gibibytes(1.0)),
                                             AllreducePlan({1, 1}, 32), kDevicesPerNode, {});
  EXPECT_FALSE(outcome.best.has_value());
  EXPECT_FALSE(outcome.baseline.has_value());
  EXPECT_TRUE(outcome.pareto.empty());
  EXPECT_GT(outcome.considered, 0);
  EXPECT_EQ(outcome.out_of_memory, outcome.considered);
}

// What has run fits, whatever is counted: a step of the calibrated batches, and none that is
// larger.
TEST(Recommend, WhatHasRunIsAPlan) {
  const Predictor predictor = MakePredictor(Gibibytes(1.0));
  const int most = predictor.calibrated_batches()->max;
  const RecommendOutcome outcome =
      Recommend(predictor, AllreducePlan({1, 1}, most), kDevicesPerNode, {});
  ASSERT_TRUE(outcome.best.has_value());
  EXPECT_LE(outcome.best->plan.local_batch, most);
  EXPECT_TRUE(IsUsable(*outcome.baseline, {}));
  EXPECT_GT(outcome.out_of_memory, 0);
}

// One is found where Recommend has any to choose from.
TEST(Recommend, APlanThatFitsIsFound) {
  const auto finds = [](const Predictor& predictor, const Question& q) {
    const std::optional<Plan> found = FindFitting(predictor, q.plan, kDevicesPerNode, q.options);
    if (found) {
      EXPECT_NE(predictor.Memory(*found).verdict, MemoryVerdict::kOutOfMemory);
      EXPECT_LE(found->global_batch(), q.options.most_global_batch);
    }
    return found.has_value();
  };
  const auto accumulated = [](Question q) {
    q.options.accumulation_steps = {64, 4};
    return q;
  };
  int without = 0;
  for (const DataSize<> memory : {Gibibytes(1.0), Gibibytes(2.5), Gibibytes(4.0)}) {
    const Predictor predictor = MakeUnseenPredictor(memory);
    for (const Question& own : Questions()) {
      for (const Question& q : {own, accumulated(own)}) {
        SCOPED_TRACE(q.name);
        const RecommendOutcome outcome = Recommend(predictor, q.plan, kDevicesPerNode, q.options);
        EXPECT_EQ(finds(predictor, q), outcome.best.has_value());
        without += outcome.best ? 0 : 1;
      }
    }
  }
  EXPECT_GT(without, 0);
  Question small{"", AllreducePlan({4, 4}, 32), {}};
  small.options.most_global_batch = 3;
  EXPECT_FALSE(finds(MakePredictor(), small));
  Question both{"", AllreducePlan({4, 4}, 32), {}};
  both.plan.compress.method = Compressor::kFp16;
  both.options.shards = {Shard::kParameters};
  EXPECT_FALSE(finds(MakePredictor(), both));
  both.options.shards = {Shard::kParameters, Shard::kNone};
  both.plan.compress_rate = GigabytesPerSecond(20.0);
  EXPECT_TRUE(finds(MakePredictor(), both));
}

// A row without it would answer for another plan.
TEST(Recommend, AStrategyThatCannotCompressIsRefused) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
  plan.strategy = Strategy::kRing;
  plan.compress = {Compressor::kPowerSgd, 4};
  plan.compress_rate = GigabytesPerSecond(20.0);
  RecommendOptions options;
  options.strategies = {Strategy::kRing, Strategy::kPsSync};
  EXPECT_TRUE(Says(ErrorOf([&] { Recommend(predictor, plan, 1, options); }),
                   "strategy: 'ps-sync' does not go with compress powersgd=4"));
  options.strategies = {Strategy::kRing, Strategy::kTree, Strategy::kNone};
  EXPECT_NO_THROW(Recommend(predictor, plan, 1, options));
}

// Nobody is left whose batch could be chosen.
TEST(Recommend, ABatchOfSlowNodesAloneIsRefused) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.slow_speed = 0.5;
  plan.slow_local_batch = 16;
  const auto refused = [&](int slow_nodes) {
    plan.slow_nodes = slow_nodes;
    return ErrorOf([&] { Recommend(predictor, plan, kDevicesPerNode, {}); });
  };
  EXPECT_TRUE(Says(refused(2), "slow-local-batch: '16' where all nodes are slow"));
  EXPECT_TRUE(Says(refused(3), "slow-nodes: '3' is out of range"));
  EXPECT_FALSE(refused(1).has_value());
}

// What is stated and can be no plan is refused as a prediction refuses it, whatever else is tried.
TEST(Recommend, SharesBesideCompressionAreRefusedAsByAPrediction) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.strategy = Strategy::kRing;
  plan.shard = Shard::kParameters;
  plan.compress = {Compressor::kTopK, 0.01};
  const auto refusal = [](const auto& ask) {
    try {
      ask();
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto recommended = [&](const RecommendOptions& options) {
    return refusal([&] { Recommend(predictor, plan, kDevicesPerNode, options); });
  };
  const std::string predicted = refusal([&] { predictor.Predict(plan); });
  ASSERT_NE(predicted.find("parameters are gathered as they are"), std::string::npos);
  EXPECT_EQ(recommended({}), predicted);
  RecommendOptions workers;
  workers.workers = {4, 8};
  EXPECT_EQ(recommended(workers), predicted);
  // Nodes that are not equal, too.
  plan = AllreducePlan({4, 2}, 32);
  plan.shard = Shard::kHybrid;
  EXPECT_EQ(recommended({}), refusal([&] { predictor.Predict(plan); }));
  EXPECT_NE(recommended({}).find("whose nodes are not equal"), std::string::npos);
}

// Shares are kept: a plan without them needs other memory.
TEST(Recommend, SharesThatAreStatedAreKept) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.shard = Shard::kHybrid;
  RecommendOptions options;
  options.local_batches = {32};
  options.accumulation_steps = {1};
  options.workers = {6};
  const RecommendOutcome none = Recommend(predictor, plan, kDevicesPerNode, options);
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.considered, 0);
  EXPECT_EQ(none.not_together, 1) << "6 workers on 4-2";
  options.workers = {3, 6, 8};
  const RecommendOutcome some = Recommend(predictor, plan, kDevicesPerNode, options);
  ASSERT_TRUE(some.best);
  EXPECT_EQ(some.considered, 2);
  EXPECT_EQ(some.not_together, 1);
  for (const Recommendation& r : some.pareto) EXPECT_EQ(r.plan.shard, Shard::kHybrid);
  EXPECT_EQ(some.best->plan.shard, Shard::kHybrid);
  // Of the shares that are tried none is not one, but with who exchanges nothing.
  plan.shard = Shard::kNone;
  options.workers = {8};
  options.shards = {Shard::kParameters};
  options.strategies = {Strategy::kRing, Strategy::kTree};
  const RecommendOutcome tried = Recommend(predictor, plan, kDevicesPerNode, options);
  ASSERT_TRUE(tried.best);
  EXPECT_EQ(tried.considered, 1);
  EXPECT_EQ(tried.not_together, 1);
  EXPECT_EQ(tried.best->plan.shard, Shard::kParameters);
  options.strategies = {Strategy::kNone};
  EXPECT_EQ(Recommend(predictor, plan, kDevicesPerNode, options).best->plan.shard, Shard::kNone);
}

TEST(Recommend, AStrategyThatCannotShareOutIsRefused) {
  const Predictor predictor = MakePredictor();
  Plan plan = AllreducePlan({4, 4}, 32);
  plan.shard = Shard::kParameters;
  RecommendOptions options;
  options.strategies = {Strategy::kRing, Strategy::kTree};
  EXPECT_TRUE(Says(ErrorOf([&] { Recommend(predictor, plan, kDevicesPerNode, options); }),
                   "strategy: 'tree' does not go with shard parameters"));
  options.strategies = {Strategy::kRing, Strategy::kNone};
  EXPECT_NO_THROW(Recommend(predictor, plan, kDevicesPerNode, options));
  options.strategies = {Strategy::kRing, Strategy::kTree};
  options.shards = {Shard::kNone, Shard::kParameters};  // which say what to keep
  EXPECT_NO_THROW(Recommend(predictor, plan, kDevicesPerNode, options));
}

TEST(Recommend, NothingFitsTheGlobalBatch) {
  RecommendOptions options;
  options.most_global_batch = 3;
  const RecommendOutcome outcome =
      Recommend(MakePredictor(), AllreducePlan({4, 4}, 32), kDevicesPerNode, options);
  EXPECT_FALSE(outcome.best.has_value());
  EXPECT_EQ(outcome.over_global_batch, outcome.considered);
}

TEST(Recommend, MemoryLimitsTheBatch) {
  const Predictor small = MakePredictor(Gibibytes(4.0));
  RecommendOptions options;
  options.accumulation_steps = {1};
  const RecommendOutcome outcome =
      Recommend(small, AllreducePlan({1, 1}, 8), kDevicesPerNode, options);
  ASSERT_TRUE(outcome.best.has_value());
  EXPECT_GT(outcome.out_of_memory, 0);
  EXPECT_NE(outcome.binding.find("memory"), std::string::npos) << outcome.binding;
}

TEST(Recommend, NamesTheGlobalBatchLimit) {
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  RecommendOptions options;
  options.most_global_batch = 512;
  const RecommendOutcome outcome = Recommend(MakePredictor(), plan, kDevicesPerNode, options);
  ASSERT_TRUE(outcome.best.has_value());
  EXPECT_NE(outcome.binding.find("global batch limit of 512"), std::string::npos)
      << outcome.binding;
}

}  // namespace
}  // namespace stepcast
