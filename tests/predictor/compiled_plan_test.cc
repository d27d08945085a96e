// Compiled plans against the predictor that they are compiled from, and against themselves.
#include "predictor/compiled_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/record/operation_counts.h"
#include "data/values/compression.h"
#include "data/workloads/catalog.h"
#include "model/compute/profiled_compute.h"
#include "model/memory/memory.h"
#include "model/statistics/normal.h"
#include "model/step/belief.h"
#include "model/step/job_spread.h"
#include "predictor/search/allocations.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/hot_path/random_plans.h"
#include "tests/support/input_error.h"
#include "tests/support/query_columns.h"
#include "tests/support/small_stacks.h"

namespace stepcast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool SameBits(const Forecast& a, const Forecast& b) {
  return SameBits(a.step_time.si(), b.step_time.si()) && SameBits(a.low.si(), b.low.si()) &&
         SameBits(a.high.si(), b.high.si()) && SameBits(a.log_sd, b.log_sd) &&
         a.limiter == b.limiter && a.status == b.status;
}

// |a/b - 1|; two that are not numbers agree.
double Apart(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  const double apart = a == b ? 0 : std::abs(a / b - 1);
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

// ---- Derivatives by central differences, from the belief itself.

struct Interval {
  double log_sd = 0;
  double low_s = 0;
};

// The interval that the derivatives of the step give; none at a corner of the formulas, where there
// is no derivative.
std::optional<Interval> CentralInterval(const Predictor& predictor, const Plan& plan,
                                        const Prediction& prediction) {
  constexpr int kNodeLink = Belief::kHostOffset;
  constexpr int kSlowdown = kNodeLink + 1;
  constexpr int kShare = kSlowdown + 1;
  constexpr int kCount = kShare + 1;
  const Belief& belief = predictor.belief();
  const StepFacts facts = predictor.Facts(plan);
  std::array<int, kCount> index{};
  for (int i = 0; i < kCount; ++i) index[static_cast<std::size_t>(i)] = i;
  const auto [link, slowdown] = belief.SlowestOf(plan);
  const bool slowed = slowdown.has_value();
  index[kNodeLink] = link;
  index[kSlowdown] = slowdown.value_or(link);
  std::array<double, kCount> at{};
  for (std::size_t i = 0; i < kShare; ++i) at[i] = belief.log_value(index[i]);
  const auto step_at = [&](const std::array<double, kCount>& log_values) {
    ClusterParameters<double> cluster{};
    WorkloadParameters<double> workload{};
    for (std::size_t i = 0; i < cluster.si.size(); ++i) cluster.si[i] = std::exp(log_values[i]);
    for (std::size_t i = 0; i < workload.si.size(); ++i) {
      workload.si[i] = std::exp(log_values[Belief::kWorkloadOffset + i]);
    }
    cluster.node_link_si = std::exp(log_values[kNodeLink]);
    if (slowed) cluster.node_slowdown = std::exp(log_values[kSlowdown]);
    cluster.stated_share = std::exp(log_values[kShare]);
    const StepTime<double> step = EvaluateStep(facts, cluster, workload);
    return std::array<double, 2>{step.total().si(), step.compute().si()};
  };
  // Gradients of the step and of its compute.
  std::array<std::array<double, kCount>, 2> gradient{};
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto difference = [&](double h) {
      std::array<double, kCount> above = at;
      std::array<double, kCount> below = at;
      above[i] += h;
      below[i] -= h;
      const std::array<double, 2> high = step_at(above);
      const std::array<double, 2> low = step_at(below);
      std::array<double, 2> by{};
      for (std::size_t part = 0; part < 2; ++part) {
        by[part] = low[part] > 0 ? std::log(high[part] / low[part]) / (2 * h) : 0;
      }
      return by;
    };
    constexpr double kDistance = 2e-4;
    const std::array<double, 2> coarse = difference(kDistance);
    const std::array<double, 2> fine = difference(kDistance / 2);
    for (std::size_t part = 0; part < 2; ++part) {
      if (std::abs(coarse[part] - fine[part]) > 1e-6) return std::nullopt;
      gradient[part][i] = (4 * fine[part] - coarse[part]) / 3;  // Richardson
    }
  }
  const auto variance = [&](const std::array<double, kCount>& g) {
    const bool apart = facts.server.HasOwnLink(facts.servers);
    const double by_share =
        g[kShare] * belief.StatedShareLogSd(facts.link, apart ? facts.server_link : LinkFacts(),
                                            index[kNodeLink]);
    double sum = by_share * by_share;
    for (std::size_t i = 0; i < kShare; ++i) {
      for (std::size_t j = 0; j < kShare; ++j) {
        sum += g[i] * g[j] * belief.log_covariance()(index[i], index[j]);
      }
    }
    const std::optional<Calibration>& calibration = predictor.cluster().calibration;
    const OtherJobs jobs(calibration ? calibration->range : CalibratedRange(),
                         predictor.calibrated_batches());
    return std::max(0.0, sum) + JobVariance(facts, g, jobs);
  };
  const double beyond = prediction.discrepancy_log_sd;
  const double log_sd =
      std::hypot(std::sqrt(variance(gradient[0])), prediction.scatter_log_sd, beyond);
  const double compute_log_sd =
      std::hypot(std::sqrt(variance(gradient[1])), belief.ScatterAt(0), beyond);
  const double low =
      std::max(prediction.step_time.si() / std::exp(kNinetyPercent * log_sd),
               prediction.breakdown.compute().si() / std::exp(kNinetyPercent * compute_log_sd));
  return Interval{log_sd, low};
}

// How far the answers are apart: of a whole test, so that it fails with the worst of them.
struct Differences {
  int asked = 0;
  int corners = 0;
  double step = 0;
  double short_way = 0;  // StepTime and Predict
  double staged = 0;     // intervals of the predictor
  double interval = 0;   // by central differences
};

// What is wrong with the answer to one query; empty where nothing is.
std::string Compare(const Predictor& predictor, const CompiledPlan& compiled,
                    const PlanQuery& query, Differences* apart) {
  const Plan plan = PlanOf(compiled.plan(), query);
  const Prediction expected = predictor.Predict(plan);
  const Forecast forecast = compiled.Predict(query);
  std::string wrong;
  const auto say = [&](const char* what, double got, double wanted) {
    char line[200];
    std::snprintf(line, sizeof line, "%s is %.17g, not %.17g (%.2g apart);", what, got, wanted,
                  Apart(got, wanted));
    wrong += line;
  };
  const auto compare = [&](const char* what, double got, double wanted, double tolerance,
                           double* worst) {
    const double a = Apart(got, wanted);
    *worst = std::max(*worst, a);
    if (a > tolerance) say(what, got, wanted);
  };
  ++apart->asked;
  if (forecast.status != QueryStatus::kOk) {
    wrong += std::string("status ") + QueryStatusText(forecast.status) + ";";
  }
  compare("step_time", forecast.step_time.si(), expected.step_time.si(), 1e-11, &apart->step);
  compare("StepTime", compiled.StepTime(query).si(), forecast.step_time.si(), 1e-13,
          &apart->short_way);
  double alone = kNan;
  const QueryStatus status =
      compiled.StepTimes(query, &query.local_batch, &query.accumulation_steps, 1, &alone);
  if (status != QueryStatus::kOk) wrong += "StepTimes has a status;";
  compare("StepTimes", alone, forecast.step_time.si(), 1e-12, &apart->short_way);
  if (forecast.limiter != expected.breakdown.limiter) {
    // On the edge between latency and bytes either is right.
    const StepTime<double>& b = expected.breakdown;
    if (Apart(b.exposed_transfer.si(), b.exposed_latency.si()) > 1e-9) {
      say("limiter", static_cast<double>(forecast.limiter), static_cast<double>(b.limiter));
    }
  }
  // The staged derivatives are those of the one answer, at corners too.
  compare("log_sd", forecast.log_sd, expected.log_sd, 1e-9, &apart->staged);
  compare("low", forecast.low.si(), expected.low.si(), 1e-9, &apart->staged);
  compare("high", forecast.high.si(), expected.high.si(), 1e-9, &apart->staged);
  Plan supplied = plan;
  supplied.input_rate = std::nullopt;
  const Prediction without_input = plan.input_rate ? predictor.Predict(supplied) : expected;
  std::optional<Interval> central = CentralInterval(predictor, supplied, without_input);
  if (central && plan.input_rate) {
    // The bounds of the larger of two times are the larger bounds, of each kind of workers.
    const double rest = without_input.step_time.si();
    const double arrival = internal::ArrivalOf(predictor.Facts(plan)).si();
    const double factor = std::exp(kNinetyPercent * predictor.belief().ScatterAt(0));
    const auto waiting = [&](double mean, double late) {
      const std::optional<AsyncServers<double>>& servers = without_input.async_servers;
      if (!servers || servers->slow_updates == 0) return std::max(mean, late);
      const double slow = 1.0 * plan.slow_workers() / plan.workers();
      const double longer = mean / rest;
      return 1 / ((1 - slow) / std::max(longer * servers->fast_cycle.si(), late) +
                  slow / std::max(longer * servers->slow_cycle.si(), late));
    };
    const double high =
        waiting(rest * std::exp(kNinetyPercent * central->log_sd), arrival * factor);
    central = Interval{std::log(high / waiting(rest, arrival)) / kNinetyPercent,
                       waiting(central->low_s, arrival / factor)};
  }
  if (!central) {
    ++apart->corners;
  } else {
    compare("log_sd by central differences", forecast.log_sd, central->log_sd, 2e-5,
            &apart->interval);
    compare("low by central differences", forecast.low.si(), central->low_s, 2e-5,
            &apart->interval);
  }
  if (!(forecast.low <= forecast.step_time && forecast.step_time <= forecast.high)) {
    wrong += "the interval does not hold the step;";
  }
  return wrong.empty()
             ? wrong
             : wrong + " compiled:" + Describe(compiled.plan()) + " | asked:" + Describe(plan);
}

// ---- One plan of each kind.

Predictor Calibrated(const Workload& workload) {
  return {CalibratedCluster(PlausibleTruth()), workload, T4()};
}

struct Kind {
  std::string name;
  Plan plan;
};

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds;
  const auto add = [&](const std::string& name, Strategy strategy, int servers = 0) -> Plan& {
    Plan plan;
    plan.placement = {4, 4, 2};
    plan.local_batch = 32;
    plan.strategy = strategy;
    plan.servers = servers;
    kinds.push_back({name, plan});
    return kinds.back().plan;
  };
  add("none", Strategy::kNone);
  add("allreduce", Strategy::kAllreduce);
  add("ring", Strategy::kRing);
  add("tree", Strategy::kTree);
  add("halving-doubling", Strategy::kHalvingDoubling);
  add("hierarchical", Strategy::kHierarchical);
  add("auto", Strategy::kAuto);
  add("byteps", Strategy::kBytePs);
  add("byteps with helpers", Strategy::kBytePs, 4);
  add("ps-sync", Strategy::kPsSync, 3);
  add("ps-async", Strategy::kPsAsync, 3);
  add("ring without overlap", Strategy::kRing).overlap = Overlap::kNone;
  add("ring, p-norm", Strategy::kRing).overlap = Overlap::kPNorm;
  add("ring of small buckets", Strategy::kRing).bucket = Mebibytes(0.25);
  add("ring of one bucket", Strategy::kRing).bucket = Gibibytes(10.0);
  add("ring with backup workers", Strategy::kRing).backup_workers = 2;
  for (const Strategy strategy :
       {Strategy::kRing, Strategy::kTree, Strategy::kHierarchical, Strategy::kPsSync}) {
    for (const int slow_batch : {3, 24, 200}) {  // on either side of what their speed asks for
      const std::string samples = std::to_string(slow_batch) + " samples on slow nodes";
      Plan& plan = add(StrategyName(strategy) + (" with " + samples), strategy,
                       UsesServers(strategy) ? 5 : 0);
      plan.slow_nodes = 1;
      plan.slow_speed = 0.6;
      plan.slow_local_batch = slow_batch;
      if (slow_batch == 24) plan.input_rate = SampleRate<>::FromSi(300);
    }
  }
  add("ps-sync with backup workers", Strategy::kPsSync, 2).backup_workers = 1;
  for (const Shard shard :
       {Shard::kOptimizer, Shard::kGradients, Shard::kParameters, Shard::kHybrid}) {
    const std::string what = kShardNames[static_cast<int>(shard)];
    add("ring, shared " + what, Strategy::kRing).shard = shard;
    add("hierarchical, shared " + what, Strategy::kHierarchical).shard = shard;
    Plan& late = add("ring with a round trip, shared " + what, Strategy::kRing);
    late.shard = shard;
    late.link.rtt = Milliseconds(20.0);
  }
  for (Kind& kind : kinds) {
    if (kind.plan.shard == Shard::kHybrid) kind.plan.placement = {4, 4};
  }
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kAuto}) {
    Plan& rare = add(std::string(StrategyName(strategy)) + " every eight steps", strategy);
    rare.local_steps = 8;
    rare.link.rtt = Milliseconds(2.0);
  }
  for (const Compression& compression :
       {Compression{Compressor::kFp16}, Compression{Compressor::kInt8},
        Compression{Compressor::kTopK, 0.01}, Compression{Compressor::kTopK, 0.5}}) {
    for (const Strategy strategy : {Strategy::kRing, Strategy::kHierarchical, Strategy::kTree,
                                    Strategy::kAuto, Strategy::kPsSync}) {
      if (compression.is_gathered() && !TraitsOf(strategy).halves) continue;
      const std::string name =
          StrategyName(strategy) + (" compressed " + FormatCompression(compression));
      add(name, strategy, UsesServers(strategy) ? 2 : 0).compress = compression;
      Plan& late = add(name + " with a round trip", strategy, UsesServers(strategy) ? 2 : 0);
      late.compress = compression;
      late.compress_rate = GigabytesPerSecond(5.0);
      late.link.rtt = Milliseconds(10.0);
    }
  }
  for (const Strategy strategy :
       {Strategy::kNone, Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync}) {
    for (const double rate : {20.0, 200.0, 2000.0}) {
      add(StrategyName(strategy) + std::string(" of few samples, ") + std::to_string(rate),
          strategy, UsesServers(strategy) ? 2 : 0)
          .input_rate = SampleRate<>::FromSi(rate);
    }
  }
  for (const double rate : {30.0, 100.0, 300.0}) {
    Plan& paces =
        add("ps-async of two paces, few samples, " + std::to_string(rate), Strategy::kPsAsync, 2);
    paces.slow_nodes = 1;
    paces.slow_speed = 0.3;
    paces.input_rate = SampleRate<>::FromSi(rate);
  }
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    const std::string name = StrategyName(strategy);
    add(name + " colocated", strategy, 2).server.colocated = true;
    add(name + " even", strategy, 5).server.sharding = Sharding::kEven;
    add(name + " round-robin", strategy, 5).server.sharding = Sharding::kRoundRobin;
    add(name + " without overlap", strategy, 2).overlap = Overlap::kNone;
    if (TraitsOf(strategy).synchronous) {
      add(name + " p-norm", strategy, 2).overlap = Overlap::kPNorm;
    }
    add(name + " of large buckets", strategy, 2).bucket = Mebibytes(64.0);
    Plan& far = add(name + " behind a slow link", strategy, 2);
    far.server_link.bandwidth = MegabitsPerSecond(300.0);
    far.server_link.rtt = Milliseconds(5.0);
    far.server_link.loss = 0.001;
  }
  add("ps-sync pipelined", Strategy::kPsSync, 3).server.pipelined = true;
  Plan& shared = add("ps-sync pipelined colocated", Strategy::kPsSync, 3);
  shared.server.pipelined = shared.server.colocated = true;
  add("ps-sync multicast", Strategy::kPsSync, 1).server.multicast = true;
  add("ps-sync aggregation", Strategy::kPsSync, 1).server.in_network_aggregation = true;
  add("ps-sync by node", Strategy::kPsSync, 2).server.local_aggregation = true;
  for (const bool pipelined : {false, true}) {
    for (const bool delayed : {false, true}) {
      Plan& at_home =
          add("ps-sync by node, colocated" + std::string(pipelined ? " pipelined" : "") +
                  (delayed ? " with a round trip" : ""),
              Strategy::kPsSync, 1);
      at_home.server.colocated = at_home.server.local_aggregation = true;
      at_home.server.pipelined = pipelined;
      if (delayed) at_home.link.rtt = Milliseconds(2.0);
    }
  }
  add("ps-async bounded", Strategy::kPsAsync, 1).server.staleness_bound = 3;
  add("ps-async in step", Strategy::kPsAsync, 1).server.staleness_bound = 0;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kBytePs,
                                  Strategy::kPsSync, Strategy::kPsAsync}) {
    for (const CongestionControl congestion :
         {CongestionControl::kReno, CongestionControl::kCubic, CongestionControl::kBbr}) {
      Plan& lossy = add(std::string(StrategyName(strategy)) + " with loss, " +
                            kCongestionControlNames[static_cast<int>(congestion)],
                        strategy, UsesServers(strategy) || strategy == Strategy::kBytePs ? 2 : 0);
      lossy.link = {.bandwidth = GigabitsPerSecond(1.0),
                    .rtt = Milliseconds(10.0),
                    .loss = 0.005,
                    .congestion_control = congestion,
                    .loss_burst = Milliseconds(1.0)};
    }
    Plan& late = add(std::string(StrategyName(strategy)) + " with a round trip", strategy,
                     UsesServers(strategy) ? 2 : 0);
    late.link.rtt = Milliseconds(20.0);
    Plan& lost = add(std::string(StrategyName(strategy)) + " with loss alone", strategy,
                     UsesServers(strategy) ? 2 : 0);
    lost.link.loss = 0.01;
  }
  return kinds;
}

// Placements, batches and servers of each plan.
std::vector<PlanQuery> QueriesOf(const Plan& plan) {
  std::vector<PlanQuery> queries;
  // workers, nodes, devices_per_node
  constexpr int kPlaces[][3] = {{1, 1, 1},  {4, 1, 4},   {2, 2, 1},   {8, 2, 4},
                                {10, 3, 4}, {16, 16, 1}, {64, 16, 4}, {33, 33, 1}};
  for (const auto& [workers, nodes, devices] : kPlaces) {
    if (workers <= plan.backup_workers) continue;
    if (plan.shard == Shard::kHybrid && workers < nodes * devices) continue;
    if (plan.slow_local_batch && nodes <= plan.slow_nodes) continue;
    for (const auto& [batch, accumulation] :
         {std::pair(1, 1), std::pair(48, 1), std::pair(20, 7)}) {
      PlanQuery query;
      query.workers = workers;
      query.nodes = nodes;
      query.devices_per_node = devices;
      query.local_batch = batch;
      query.accumulation_steps = accumulation;
      query.servers = plan.servers;
      if (plan.server.colocated) query.servers = std::min(query.servers, workers);
      queries.push_back(query);
    }
  }
  return queries;
}

class CompiledKinds : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CompiledKinds, AnswerAsThePredictor) {
  const Kind kind = Kinds()[GetParam()];
  Differences apart;
  Workload curve = *FindWorkload("resnet50");
  curve.layers.clear();
  Workload recomputed = *FindWorkload("bert_base");
  recomputed.recompute = Recompute::kFull;
  for (const Workload& workload : {*FindWorkload("resnet50"), recomputed, curve}) {
    const Predictor predictor = Calibrated(workload);
    const CompiledPlan compiled(predictor, kind.plan);
    for (const PlanQuery& query : QueriesOf(kind.plan)) {
      const std::string wrong = Compare(predictor, compiled, query, &apart);
      ASSERT_EQ(wrong, "") << kind.name << ", " << workload.name;
    }
  }
  // As many servers as workers have links as busy: a corner for each such plan.
  EXPECT_LE(apart.corners, 0.15 * apart.asked);
  RecordProperty("corners", apart.corners);
}

INSTANTIATE_TEST_SUITE_P(CompiledPlan, CompiledKinds,
                         ::testing::Range<std::size_t>(0, Kinds().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& kind) {
                           std::string name = Kinds()[kind.param].name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// ---- Any plan.

// The plan with a slow node, and samples that arrive in about the time of a step: by chance plans
// hardly ever have both.
Plan WithLateSamples(const Predictor& predictor, Plan plan, Random* random) {
  const bool may_slow = plan.slow_nodes == 0 && plan.nodes() > 1 && plan.backup_workers == 0;
  if (TraitsOf(plan.strategy).exchanges && may_slow) {
    plan.slow_nodes = 1;
    plan.slow_speed = random->LogBetween(0.1, 1);
  }
  plan.input_rate = std::nullopt;
  const Duration<> step = predictor.PredictStep(plan).total();
  plan.input_rate =
      internal::SamplesOfNode(predictor.Facts(plan)) / (step * random->LogBetween(0.2, 3));
  return plan;
}

class CompiledStrategies : public ::testing::TestWithParam<int> {};

TEST_P(CompiledStrategies, AnswerAsThePredictorWhateverThePlan) {
  const auto strategy = static_cast<Strategy>(GetParam());
  Differences apart;
  const bool held = rc::check([&](std::uint64_t seed) {
    RandomCase made = MakeRandomCase(strategy, seed, 100);
    const Predictor predictor = made.MakePredictor();
    Random late(seed + 2);
    if (!made.workload.communication_only && late.Chance(0.3)) {
      made.plan = WithLateSamples(predictor, made.plan, &late);
    }
    const CompiledPlan compiled(predictor, made.plan);
    Random random(seed + 1);
    for (int i = 0; i < 8; ++i) {
      PlanQuery query = i == 0 ? QueryOf(made.plan) : RandomQuery(made.plan, &random);
      if (random.Chance(0.3)) query.link = RandomLink(&random, 0.5);
      if (random.Chance(0.3)) query.server_link = RandomLink(&random, 0.5);
      if (compiled.Predict(query).status == QueryStatus::kNothingExchanged) continue;
      const std::string wrong = Compare(predictor, compiled, query, &apart);
      if (!wrong.empty()) RC_FAIL(wrong);
    }
  });
  EXPECT_TRUE(held);
  EXPECT_LE(apart.corners, 0.1 * apart.asked);
  RecordProperty("asked", apart.asked);
  RecordProperty("corners", apart.corners);
  RecordProperty("step_apart", std::to_string(apart.step));
  RecordProperty("staged_apart", std::to_string(apart.staged));
  RecordProperty("interval_apart", std::to_string(apart.interval));
}

INSTANTIATE_TEST_SUITE_P(CompiledPlan, CompiledStrategies, ::testing::Range(0, kStrategyCount),
                         [](const ::testing::TestParamInfo<int>& strategy) {
                           std::string name = kStrategyNames[strategy.param];
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Where tables of what was computed before end, the same formulas go on.
TEST(CompiledPlan, KnowsNoEdgeWhereTablesEnd) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                                  Strategy::kBytePs, Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = AllreducePlan({1, 1}, 8);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
    const CompiledPlan compiled(predictor, plan);
    Differences apart;
    for (const int nodes : {255, 256, 257, 258, 1023, 1024, 1025, 4095, 4096, 4097, 20'000}) {
      PlanQuery query = QueryOf(plan);
      query.workers = query.nodes = nodes;
      query.devices_per_node = 1;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "");
    }
    for (const int batch : {1, 1023, 1024, 1025, 1'000'000}) {
      PlanQuery query = QueryOf(plan);
      query.local_batch = batch;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "");
    }
  }
}

// Servers of any number that was asked for, and helpers of any number at all.
// What a step takes to start its exchange, 1 ms here, counts as latency: of two nodes whose two
// messages take 80 us each, half a megabyte at 5 Gbit/s is behind that, and a hundred are not.
TEST(CompiledPlan, WhatStartsAnExchangeIsLatency) {
  Workload curve = *FindWorkload("resnet50");
  curve.layers.clear();
  Plan plan = AllreducePlan({1, 1}, 32);
  plan.strategy = Strategy::kRing;
  plan.overlap = Overlap::kNone;
  for (const auto& [gradient, is_latency] :
       {std::pair(Bytes(1e4), true), {Bytes(5e5), true}, {Bytes(1e8), false}}) {
    curve.gradient_bytes = gradient;
    const Predictor predictor = Calibrated(curve);
    const Forecast forecast = CompiledPlan(predictor, plan).Predict(QueryOf(plan));
    EXPECT_EQ(forecast.limiter == Limiter::kLatency, is_latency) << gradient.in(kBytes);
    EXPECT_EQ(forecast.limiter, predictor.Predict(plan).breakdown.limiter);
  }
}

TEST(CompiledPlan, KnowsEveryNumberOfServers) {
  const Predictor predictor = Calibrated(*FindWorkload("vgg16"));
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync, Strategy::kBytePs}) {
    Plan plan = AllreducePlan({2, 2}, 8);
    plan.strategy = strategy;
    plan.servers = 1;
    const CompiledPlan compiled(predictor, plan, {70});
    EXPECT_EQ(compiled.options().most_servers, 70);
    // What is refused is what was given.
    for (const int given : {0, -1, 65'537}) {
      const auto error = ErrorOf([&] { CompiledPlan(predictor, plan, {given}); });
      EXPECT_TRUE(Says(error, "most_servers: '" + std::to_string(given) + "'"));
    }
    if (strategy != Strategy::kBytePs) {
      Plan many = plan;
      many.servers = 65'537;
      const auto error = ErrorOf([&] { CompiledPlan(predictor, many, {70}); });
      EXPECT_TRUE(Says(error, "most_servers: '65537' is out of range; allowed: 1 to 65536"));
    }
    Differences apart;
    for (int servers = strategy == Strategy::kBytePs ? 0 : 1; servers <= 70; ++servers) {
      PlanQuery query = QueryOf(plan);
      query.servers = servers;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "") << servers;
    }
    if (strategy != Strategy::kBytePs) continue;
    for (const int servers : {254, 255, 256, 257, 100'000}) {
      PlanQuery query = QueryOf(plan);
      query.servers = servers;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "") << servers;
    }
  }
}

TEST(CompiledPlan, MostServersIsAtLeastThePlans) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  Plan plan = AllreducePlan(Placement(100, 1), 8);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 80;
  for (const int most : {-1, 0, kMostCompiledServers + 1}) {
    EXPECT_THROW(CompiledPlan(predictor, plan, {most}), InputError) << most;
  }
  for (const int most : {1, 64, 80}) {
    const CompiledPlan compiled(predictor, plan, {most});
    EXPECT_EQ(compiled.Predict(QueryOf(plan)).status, QueryStatus::kOk);
    PlanQuery more = QueryOf(plan);
    more.servers = 81;
    EXPECT_EQ(compiled.Predict(more).status, QueryStatus::kBadServers);
  }
}

// ---- What a query says replaces what the plan and the cluster say.

TEST(CompiledPlan, AQuerysLinksGoBefore) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.link.rtt = Milliseconds(1.0);
  cluster.link.loss = 0.001;
  cluster.server_link.rtt = Milliseconds(3.0);
  const Predictor predictor(cluster, *FindWorkload("resnet50"), T4());
  const std::vector<LinkFacts> links = {{.bandwidth = MegabitsPerSecond(500.0)},
                                        {.rtt = Milliseconds(30.0)},
                                        {.rtt = Seconds(0.0)},
                                        {.loss = 0.05},
                                        {.loss = 0.0},
                                        {.congestion_control = CongestionControl::kBbr},
                                        {.loss_burst = Milliseconds(2.0)},
                                        {.transport = Transport::kRdma},
                                        {.loss = 0.0, .transport = Transport::kRdma},
                                        {.bandwidth = GigabitsPerSecond(40.0),
                                         .rtt = Milliseconds(0.5),
                                         .loss = 0.02,
                                         .congestion_control = CongestionControl::kReno,
                                         .loss_burst = Seconds(0.0),
                                         .transport = Transport::kTcp,
                                         .others = 0.4,
                                         .background = MegabitsPerSecond(700.0)},
                                        {.oversubscription = 5.0, .nodes_per_switch = 2}};
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(predictor, kind.plan);
    Differences apart;
    for (const LinkFacts& link : links) {
      PlanQuery query = QueryOf(kind.plan);
      query.link = link;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "") << kind.name;
      query.link = {};
      query.server_link = link;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "") << kind.name << ", servers'";
    }
  }
}

// What runs have told depends on the transport, which a query may state.
TEST(CompiledPlan, EndsAreOfWhatNoRunUsed) {
  Cluster cluster = CalibratedCluster(PlausibleTruth(), 0.5);
  const Predictor told(cluster, *FindWorkload("resnet50"), T4());
  cluster.calibration->range.exchanges = {{Strategy::kRing, Transport::kTcp}};
  const Predictor predictor(cluster, *FindWorkload("resnet50"), T4());
  int higher[kTransportCount] = {};
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(predictor, kind.plan);
    Differences apart;
    for (int transport = 0; transport < kTransportCount; ++transport) {
      PlanQuery query = QueryOf(kind.plan);
      query.link.transport = query.server_link.transport = static_cast<Transport>(transport);
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "") << kind.name;
      const Plan plan = PlanOf(kind.plan, query);
      if (predictor.Predict(plan).high > told.Predict(plan).high * 1.01) ++higher[transport];
    }
  }
  for (const int plans : higher) EXPECT_GT(plans, 0) << "or the case is none";
}

// Two other explanations: of faster links and slower flows, and of compute that is a batch's more
// than the samples'.
TEST(CompiledPlan, AlternativesAreThePredictors) {
  Cluster cluster = CalibratedCluster(PlausibleTruth(), 0.02);
  const Predictor without(cluster, *FindWorkload("resnet50"), T4());
  Calibration& calibration = *cluster.calibration;
  calibration.alternatives.setZero(2, static_cast<Eigen::Index>(calibration.parameters.size()));
  const auto move = [&](int alternative, const std::string& scope, const char* name, double by) {
    calibration.alternatives(alternative, *calibration.Find(scope, name)) = by;
  };
  move(0, kClusterScope, "link_bandwidth", 1);
  move(0, kClusterScope, "flow_bandwidth", -0.7);
  move(1, ScopeOfSynthetic("resnet50"), "sample_time", -0.6);
  move(1, ScopeOfSynthetic("resnet50"), "fixed_time", 1.5);
  const Predictor predictor(cluster, *FindWorkload("resnet50"), T4());
  int higher = 0;
  int lower = 0;
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(predictor, kind.plan);
    for (const int batch : {8, 16, 64}) {
      PlanQuery query = QueryOf(kind.plan);
      query.local_batch = batch;
      const Plan plan = PlanOf(kind.plan, query);
      const Prediction p = predictor.Predict(plan);
      const Forecast forecast = compiled.Predict(query);
      EXPECT_NEAR(forecast.step_time / p.step_time, 1, 1e-9) << kind.name;
      EXPECT_NEAR(forecast.low / p.low, 1, 1e-9) << kind.name;
      EXPECT_NEAR(forecast.high / p.high, 1, 1e-9) << kind.name;
      const Prediction before = without.Predict(plan);
      EXPECT_EQ(p.step_time, before.step_time) << kind.name;
      EXPECT_GE(p.high, before.high) << kind.name;
      EXPECT_LE(p.low, before.low) << kind.name;
      if (p.high > before.high * 1.01) ++higher;
      if (p.low < before.low * 0.99) ++lower;
    }
  }
  EXPECT_GT(higher, 10) << "or the case is none";
  EXPECT_GT(lower, 10) << "or the case is none";
}

// A link of its own must not be mixed up with what was computed for the compiled one.
TEST(CompiledPlan, ForgetsAQuerysLink) {
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    const PlanQuery own = QueryOf(kind.plan);
    PlanQuery other = own;
    other.link = {.bandwidth = MegabitsPerSecond(50.0), .rtt = Milliseconds(3.0), .loss = 0.01};
    const Forecast before = compiled.Predict(own);
    const Forecast between = compiled.Predict(other);
    EXPECT_TRUE(SameBits(before, compiled.Predict(own))) << kind.name;
    EXPECT_TRUE(SameBits(between, compiled.Predict(other))) << kind.name;
  }
}

TEST(CompiledPlan, UnequalNodesAreToldByTheFullest) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  for (const Kind& kind : Kinds()) {
    Plan plan = kind.plan;
    plan.placement = {4, 4, 2};
    const PlanQuery query = QueryOf(plan);
    EXPECT_EQ(query.workers, 10);
    EXPECT_EQ(query.nodes, 3);
    EXPECT_EQ(query.devices_per_node, 4);
    const CompiledPlan compiled(predictor, AllreducePlan({2, 2}, 1));
    if (kind.name != "allreduce") continue;
    const Prediction expected = predictor.Predict(plan);
    EXPECT_LT(Apart(compiled.Predict(query).step_time.si(), expected.step_time.si()), 1e-11);
  }
}

TEST(CompiledPlan, HostsAreThePlans) {
  Truth truth = PlausibleTruth();
  truth.host_links["fast"] = GigabitsPerSecond(20.0);
  truth.host_links["slow"] = GigabitsPerSecond(0.5);
  const Predictor predictor(CalibratedCluster(truth), *FindWorkload("resnet50"), T4());
  double before = 0;
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"fast", "fast"}, {"fast", "slow"}}) {
    Plan plan = AllreducePlan({1, 1}, 16);
    plan.hosts = hosts;
    const CompiledPlan compiled(predictor, plan);
    Differences apart;
    for (const int devices : {1, 2, 4}) {
      PlanQuery query = QueryOf(plan);
      query.devices_per_node = devices;
      query.workers = 2 * devices;
      EXPECT_EQ(Compare(predictor, compiled, query, &apart), "");
    }
    EXPECT_GT(compiled.StepTime(QueryOf(plan)).si(), before) << "or the case is none";
    before = compiled.StepTime(QueryOf(plan)).si();
  }
}

TEST(CompiledPlan, AutoIsResolvedForThePlanAsItIs) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  for (const Placement& placement :
       std::vector<Placement>{{1, 1}, {4, 4}, {4, 4, 4, 4}, Placement(64, 1)}) {
    Plan plan = AllreducePlan(placement, 16);
    plan.strategy = Strategy::kAuto;
    plan.bucket = Mebibytes(0.5);
    const CompiledPlan compiled(predictor, plan);
    EXPECT_EQ(compiled.plan().strategy, predictor.Predict(plan).algorithm);
    EXPECT_EQ(compiled.Predict(QueryOf(plan)).step_time.si(),
              compiled.Predict(QueryOf(compiled.plan())).step_time.si());
  }
}

// ---- Profiles.

std::shared_ptr<const ProfiledCompute> Profile(const Workload& workload,
                                               std::optional<int> fails_at = std::nullopt) {
  ComputeProfile profile;
  profile.device.name = "t4";
  profile.device.kind = "gpu";
  const auto add = [&](const Operation& operation, TrainingPass pass, int batch) {
    const OperationCounts n = CountOperation(operation, pass);
    MeasuredSamples samples;
    samples.point = {operation, batch, Precision::kFp32, pass};
    samples.seconds.assign(
        5, 5e-6 + std::max(n.flop_per_sample * batch / 8e12,
                           (n.elements_per_sample * batch + n.elements) * 4 / 300e9));
    profile.samples.push_back(samples);
  };
  for (const Layer& layer : workload.layers) {
    for (const int batch : {8, 32, 128}) {
      add(layer.operation, TrainingPass::kForward, batch);
      add(layer.operation, TrainingPass::kBackward, batch);
    }
    if (layer.tensors.empty()) continue;
    add(UpdateOp{Optimizer::kMomentum, layer.parameters()}, TrainingPass::kUpdate, 1);
  }
  if (fails_at) {
    MeasuredSamples failed;
    failed.point = {workload.layers[0].operation, *fails_at, Precision::kFp32,
                    TrainingPass::kForward};
    failed.status = PointStatus::kOutOfMemory;
    failed.reason = "needs 93 GiB";
    profile.samples.push_back(failed);
  }
  return std::make_shared<const ProfiledCompute>(profile, workload);
}

// What is recomputed is another share of each batch, in the tables and beyond them, and a profile
// has another than a data sheet.
TEST(CompiledPlan, WhatIsRecomputedIsThatOfEveryBatch) {
  Workload resnet = *FindWorkload("resnet50");
  resnet.recompute = Recompute::kFull;
  const auto profile = Profile(resnet);
  for (const bool measured : {false, true}) {
    const Predictor predictor(SyntheticCluster(), resnet, T4(), kSyntheticDevice,
                              measured ? profile : nullptr);
    ASSERT_NE(predictor.recomputation().At(1).of_all, predictor.recomputation().At(5000).of_all);
    const Plan plan = AllreducePlan({4, 4}, 32);
    const CompiledPlan compiled(predictor, plan);
    Differences apart;
    for (const int batch : {1, 2, 31, 32, 129, 1023, 1024, 1025, 5000}) {
      PlanQuery query = QueryOf(plan);
      query.local_batch = batch;
      ASSERT_EQ(Compare(predictor, compiled, query, &apart), "") << measured;
    }
    EXPECT_LE(apart.corners, 2) << "of " << apart.asked;
  }
}

TEST(CompiledPlan, AProfilesShapeIsThatOfEveryBatch) {
  const Workload resnet = *FindWorkload("resnet50");
  for (const Cluster& cluster : {SyntheticCluster(), CalibratedCluster([] {
                                   Truth truth = PlausibleTruth();
                                   truth.workloads.erase("resnet50");
                                   return truth;
                                 }())}) {
    const Predictor predictor(cluster, resnet, T4(), kSyntheticDevice, Profile(resnet));
    ASSERT_EQ(predictor.compute_source(), ComputeSource::kProfile);
    for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync}) {
      Plan plan = AllreducePlan({4, 4}, 32);
      plan.strategy = strategy;
      plan.servers = UsesServers(strategy) ? 2 : 0;
      const CompiledPlan compiled(predictor, plan);
      Differences apart;
      for (const int batch : {1, 7, 8, 9, 31, 32, 100, 128, 129, 1023, 1024, 1025, 5000}) {
        PlanQuery query = QueryOf(plan);
        query.local_batch = batch;
        ASSERT_EQ(Compare(predictor, compiled, query, &apart), "");
      }
      EXPECT_LE(apart.corners, 2) << "of " << apart.asked;
    }
  }
}

// ---- Many at once.

// Compares all that PredictMany can be asked for with single queries.
void ExpectManyAsSingles(const CompiledPlan& compiled, const std::vector<PlanQuery>& queries,
                         std::size_t at_once, const std::string& name) {
  const QueryColumns arrays(queries);
  std::vector<double> step(queries.size()), low(step), high(step), log_sd(step), alone(step);
  std::vector<QueryStatus> status(queries.size()), status_alone(status);
  for (std::size_t first = 0; first < queries.size(); first += at_once) {
    const std::size_t size = std::min(at_once, queries.size() - first);
    const QueryArrays view = arrays.View(first, size);
    std::size_t bad = 0;
    for (std::size_t i = first; i < first + size; ++i) {
      bad += compiled.Predict(queries[i]).status != QueryStatus::kOk ? 1 : 0;
    }
    EXPECT_EQ(compiled.PredictMany(
                  view, {&step[first], &low[first], &high[first], &log_sd[first], &status[first]}),
              bad)
        << name;
    ForecastArrays times;
    times.step_time_s = &alone[first];
    times.status = &status_alone[first];
    EXPECT_EQ(compiled.PredictMany(view, times), bad) << name;
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const Forecast single = compiled.Predict(queries[i]);
    const std::string where = name + ", query " + std::to_string(i) + ", " +
                              std::to_string(queries[i].workers) + " workers on " +
                              std::to_string(queries[i].nodes) + " nodes";
    ASSERT_EQ(status[i], single.status) << where;
    ASSERT_EQ(status_alone[i], single.status) << where;
    ASSERT_TRUE(SameBits(step[i], single.step_time.si())) << where;
    ASSERT_TRUE(SameBits(low[i], single.low.si())) << where;
    ASSERT_TRUE(SameBits(high[i], single.high.si())) << where;
    ASSERT_TRUE(SameBits(log_sd[i], single.log_sd)) << where;
    ASSERT_LE(Apart(alone[i], single.step_time.si()), 1e-12) << where;
    ASSERT_EQ(std::isnan(alone[i]), single.status != QueryStatus::kOk) << where;
  }
}

// Placements in any order, few and many, with links and with questions that make no sense.
TEST(PredictMany, AnswersAsOneByOne) {
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    Random random(7);
    std::vector<PlanQuery> queries;
    for (int i = 0; i < 300; ++i) {
      PlanQuery query = i % 3 == 0 ? QueryOf(kind.plan) : RandomQuery(kind.plan, &random);
      query.local_batch = random.LogWhole(1, 512);
      if (random.Chance(0.2)) query.link.bandwidth = GigabitsPerSecond(random.LogBetween(0.1, 50));
      if (random.Chance(0.1)) query.link.rtt = Milliseconds(random.Between(0, 5));
      if (random.Chance(0.1)) query.link.loss = random.Between(0, 0.05);
      if (random.Chance(0.05)) query.workers = random.Whole(-1, 1);
      if (random.Chance(0.05)) query.nodes = random.Whole(-1, 2000);
      if (random.Chance(0.05)) query.local_batch = random.Whole(-1, 0);
      if (random.Chance(0.05)) query.servers = random.Whole(-1, 100);
      queries.push_back(query);
    }
    for (const std::size_t at_once : {1U, 5U, 63U, 64U, 65U, 300U}) {
      ExpectManyAsSingles(compiled, queries, at_once, kind.name);
    }
  }
}

// Of times alone and of intervals, with questions that make no sense among them; on threads that
// have little stack.
TEST(PredictMany, ThreadsChangeNoBit) {
  const SmallStacks small;
  constexpr std::size_t kQueries = 3 * kQueriesOfAThread + 17;
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    Random random(11);
    std::vector<PlanQuery> queries;
    for (std::size_t i = 0; i < kQueries; ++i) {
      queries.push_back(i % 3 == 0 ? QueryOf(kind.plan) : RandomQuery(kind.plan, &random));
      queries.back().local_batch = random.Whole(0, 50);
    }
    const QueryColumns arrays(queries);
    const auto ask = [&](bool interval, int threads) {
      std::vector<double> answers(4 * kQueries + 1);
      double* const low = interval ? &answers[kQueries] : nullptr;
      double* const high = interval ? &answers[2 * kQueries] : nullptr;
      double* const log_sd = interval ? &answers[3 * kQueries] : nullptr;
      answers.back() = static_cast<double>(compiled.PredictMany(
          arrays.View(0, kQueries), {answers.data(), low, high, log_sd}, threads));
      return answers;
    };
    for (const bool interval : {false, true}) {
      const std::vector<double> alone = ask(interval, 1);
      ASSERT_GT(alone.back(), 0) << "some make no sense";
      for (const int threads : {-1, 0, 2, 3, 1000}) {
        const std::vector<double> shared = ask(interval, threads);
        for (std::size_t i = 0; i < alone.size(); ++i) {
          ASSERT_TRUE(SameBits(shared[i], alone[i])) << kind.name << ", " << i << " on " << threads;
        }
      }
    }
  }
}

// More placements than any cache of them has places, each of them twice, far apart.
TEST(PredictMany, AnswersMorePlacementsThanItKeeps) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync}) {
    Plan plan = AllreducePlan({1, 1}, 16);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 1 : 0;
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), plan);
    std::vector<PlanQuery> queries;
    for (int again = 0; again < 2; ++again) {
      for (int i = 0; i < 6000; ++i) {
        PlanQuery query = QueryOf(plan);
        query.nodes = 1 + i % 100;
        query.devices_per_node = 1 + i / 100;
        query.workers = query.nodes * query.devices_per_node;
        if (plan.servers > 0) query.servers = 1 + i % 7;
        query.local_batch = 1 + i % 50 + again;
        queries.push_back(query);
      }
    }
    ExpectManyAsSingles(compiled, queries, queries.size(), StrategyName(strategy));
  }
}

// A query of zeros is no placement, however many are asked.
TEST(PredictMany, ZerosAreNoPlacement) {
  const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), AllreducePlan({1, 1}, 16));
  for (const std::size_t size : {1U, 63U, 64U, 200U}) {
    const std::vector<int> zeros(size, 0);
    QueryArrays queries{size};
    queries.workers = queries.nodes = queries.devices_per_node = queries.servers = zeros.data();
    std::vector<double> step(size);
    std::vector<QueryStatus> status(size);
    ForecastArrays answers;
    answers.step_time_s = step.data();
    answers.status = status.data();
    EXPECT_EQ(compiled.PredictMany(queries, answers), size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(status[i], QueryStatus::kBadPlacement) << i << " of " << size;
      ASSERT_TRUE(std::isnan(step[i])) << i << " of " << size;
    }
  }
}

TEST(PredictMany, WhatIsNotGivenIsThePlansOwn) {
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    const double own = compiled.StepTime(QueryOf(kind.plan)).si();
    for (const std::size_t size : {1U, 100U}) {
      std::vector<double> step(size);
      ForecastArrays answers;
      answers.step_time_s = step.data();
      EXPECT_EQ(compiled.PredictMany({size}, answers), 0U);
      for (const double s : step) EXPECT_LE(Apart(s, own), 1e-12) << kind.name;
    }
  }
}

TEST(PredictMany, FillsNothingThatIsNotWanted) {
  const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), AllreducePlan({1, 1}, 16));
  EXPECT_EQ(compiled.PredictMany({0}, {}), 0U);
  EXPECT_EQ(compiled.PredictMany({100}, {}), 0U);
  const std::vector<int> bad(100, -1);
  QueryArrays queries{100};
  queries.local_batch = bad.data();
  EXPECT_EQ(compiled.PredictMany(queries, {}), 100U);
  std::vector<double> high(100);
  ForecastArrays answers;
  answers.high_s = high.data();
  EXPECT_EQ(compiled.PredictMany({100}, answers), 0U);
  const double expected = compiled.Predict(QueryOf(compiled.plan())).high.si();
  for (const double h : high) EXPECT_TRUE(SameBits(h, expected));
}

// A placement is asked with a batch that makes no sense before one that does, and the other way.
TEST(PredictMany, ABadQueryLeavesTheOthersAlone) {
  const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), AllreducePlan({1, 1}, 16));
  std::vector<PlanQuery> queries;
  for (int i = 0; i < 200; ++i) {
    PlanQuery query = QueryOf(compiled.plan());
    query.nodes = 1 + i % 4;
    query.workers = query.nodes + (i % 5 == 0 ? 1 : 0);  // one too many
    if (i % 7 == 0) query.local_batch = 0;
    if (i % 11 == 0) query.accumulation_steps = kMostCount + 1;
    if (i % 13 == 0) query.servers = 1;
    queries.push_back(query);
  }
  ExpectManyAsSingles(compiled, queries, queries.size(), "");
}

TEST(StepTimes, AnswerAsOneByOne) {
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    for (PlanQuery query : QueriesOf(kind.plan)) {
      for (const bool own_link : {false, true}) {
        if (own_link)
          query.link = {
              .bandwidth = GigabitsPerSecond(1.0), .rtt = Milliseconds(1.0), .loss = 0.001};
        std::vector<int> batches = {1, 2, 50, 0, 1000, -1, kMostBatch, kMostBatch + 1, 8};
        std::vector<int> accumulation = {1, 3, 1, 1, kMostCount, 1, 1, 1, kMostCount + 1};
        for (int i = 0; i < 130; ++i) {  // more than are worked out at a time
          batches.push_back(1 + 7 * i);
          accumulation.push_back(1 + i % 3);
        }
        std::vector<double> times(batches.size(), -1);
        query.local_batch = query.accumulation_steps = -5;  // not read
        ASSERT_EQ(compiled.StepTimes(query, batches.data(), accumulation.data(), batches.size(),
                                     times.data()),
                  QueryStatus::kOk);
        for (std::size_t i = 0; i < batches.size(); ++i) {
          query.local_batch = batches[i];
          query.accumulation_steps = accumulation[i];
          ASSERT_LE(Apart(times[i], compiled.StepTime(query).si()), 1e-12)
              << kind.name << " " << batches[i] << " x " << accumulation[i];
        }
      }
    }
  }
}

TEST(StepTimes, HaveNoAnswerWhereTheAllocationHasNone) {
  const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), AllreducePlan({1, 1}, 16));
  PlanQuery query = QueryOf(compiled.plan());
  query.workers = 3;
  const int batches[] = {1, 2};
  double times[] = {1, 1};
  EXPECT_EQ(compiled.StepTimes(query, batches, batches, 2, times), QueryStatus::kBadPlacement);
  EXPECT_TRUE(std::isnan(times[0]) && std::isnan(times[1]));
  query.workers = 2;
  EXPECT_EQ(compiled.StepTimes(query, nullptr, nullptr, 0, nullptr), QueryStatus::kOk);
}

// ---- What has no answer.

struct Refusal {
  QueryStatus status;
  void (*change)(PlanQuery*);
};

void ExpectRefused(const CompiledPlan& compiled, const std::vector<Refusal>& refusals) {
  for (std::size_t i = 0; i < refusals.size(); ++i) {
    PlanQuery query = QueryOf(compiled.plan());
    ASSERT_EQ(compiled.Predict(query).status, QueryStatus::kOk);
    refusals[i].change(&query);
    const Forecast forecast = compiled.Predict(query);
    EXPECT_EQ(forecast.status, refusals[i].status) << i << ": " << QueryStatusText(forecast.status);
    for (const double number : {forecast.step_time.si(), forecast.low.si(), forecast.high.si(),
                                forecast.log_sd, compiled.StepTime(query).si()}) {
      EXPECT_TRUE(std::isnan(number)) << i;
    }
    EXPECT_EQ(forecast.limiter, Limiter::kNothing);
    const int one = 1;
    double time = 0;
    const QueryStatus status = compiled.StepTimes(query, &one, &one, 1, &time);
    if (refusals[i].status == QueryStatus::kBadBatch) {
      EXPECT_EQ(status, QueryStatus::kOk) << "its own batches count";
    } else {
      EXPECT_EQ(status, refusals[i].status) << i;
      EXPECT_TRUE(std::isnan(time)) << i;
    }
  }
}

constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr int kLeastInt = std::numeric_limits<int>::min();

// A query may have another number of slow nodes than its plan, each way of asking.
TEST(PlanQuery, AsksForAnyNumberOfSlowNodes) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  for (const Strategy strategy :
       {Strategy::kRing, Strategy::kTree, Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = AllreducePlan({4, 4, 4, 4}, 32);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    plan.slow_nodes = 1;
    plan.slow_speed = 0.6;
    const CompiledPlan compiled(predictor, plan);
    std::vector<int> slow_nodes;
    std::vector<double> expected_s;
    for (const int slow : {1, 0, 2, 4, 1, 3}) {
      Plan asked = plan;
      asked.slow_nodes = slow;
      if (slow == 0) asked.slow_speed.reset();
      const Prediction expected = predictor.Predict(asked);
      PlanQuery query = QueryOf(compiled.plan());
      query.slow_nodes = slow;
      const Forecast forecast = compiled.Predict(query);
      EXPECT_LE(Apart(forecast.step_time.si(), expected.step_time.si()), 1e-12) << slow;
      EXPECT_LE(Apart(forecast.low.si(), expected.low.si()), 1e-9) << slow;
      EXPECT_LE(Apart(forecast.high.si(), expected.high.si()), 1e-9) << slow;
      EXPECT_LE(Apart(compiled.StepTime(query).si(), expected.step_time.si()), 1e-12) << slow;
      if (slow == plan.slow_nodes) {
        query.slow_nodes.reset();
        EXPECT_EQ(compiled.StepTime(query), compiled.StepTime(QueryOf(compiled.plan())));
      }
      slow_nodes.push_back(slow);
      expected_s.push_back(expected.step_time.si());
    }
    QueryArrays arrays;
    arrays.size = slow_nodes.size();
    arrays.slow_nodes = slow_nodes.data();
    std::vector<double> times_s(arrays.size);
    ForecastArrays answers;
    answers.step_time_s = times_s.data();
    EXPECT_EQ(compiled.PredictMany(arrays, answers), 0U);
    for (std::size_t i = 0; i < arrays.size; ++i) {
      EXPECT_LE(Apart(times_s[i], expected_s[i]), 1e-12) << slow_nodes[i];
    }
    EXPECT_LT(expected_s[1], expected_s[0]);
    const Allocation allocations[] = {{16, 4, 4, plan.servers, 0}, {16, 4, 4, plan.servers, 2}};
    BatchChoice choices[2];
    BatchSearch one_batch;
    one_batch.least_local_batch = one_batch.most_local_batch = 32;
    one_batch.accumulate = false;
    ASSERT_EQ(ChooseBatches(compiled, allocations, 2, one_batch, choices), 0U);
    EXPECT_LE(Apart(choices[0].step_time_s, expected_s[1]), 1e-12);
    EXPECT_LE(Apart(choices[1].step_time_s, expected_s[2]), 1e-12);
  }
}

// Slow nodes keep the samples that their plan states, whatever batch a query asks for.
TEST(PlanQuery, LeavesTheSamplesOfSlowNodesAsTheyAre) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync}) {
    Plan plan = AllreducePlan({2, 2, 2, 1}, 32);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    plan.slow_nodes = 1;
    plan.slow_speed = 0.5;
    plan.slow_local_batch = 20;
    const CompiledPlan compiled(predictor, plan);
    PlanQuery query = QueryOf(compiled.plan());
    const std::vector<int> batches = {1, 7, 20, 32, 64, 3000};
    const std::vector<int> steps(batches.size(), 2);
    for (const int slow : {0, 1, 2, 3}) {
      query.slow_nodes = slow;
      std::vector<double> times_s(batches.size());
      ASSERT_EQ(
          compiled.StepTimes(query, batches.data(), steps.data(), batches.size(), times_s.data()),
          QueryStatus::kOk);
      for (std::size_t i = 0; i < batches.size(); ++i) {
        Plan asked = WithSlowNodes(plan, slow);
        asked.local_batch = batches[i];
        asked.accumulation_steps = 2;
        EXPECT_LE(Apart(times_s[i], predictor.PredictStep(asked).total().si()), 1e-12)
            << slow << " slow, " << batches[i];
      }
    }
    query.slow_nodes = 4;  // all of them, of which the local batch tells
    EXPECT_EQ(compiled.Predict(query).status, QueryStatus::kBadSlowNodes);
    EXPECT_EQ(compiled.ProblemOf(query)->allowed, "a whole number from 0 to 3 of 4 nodes");

    // Six workers take what is chosen, and one 20 samples.
    const Allocation allocation = {7, 4, 2, plan.servers, 1};
    BatchSearch search;
    search.least_local_batch = search.most_local_batch = 32;
    search.accumulate = false;
    BatchChoice choice;
    ASSERT_EQ(ChooseBatches(compiled, &allocation, 1, search, &choice), 0U);
    EXPECT_NEAR(choice.throughput * choice.step_time_s, 6 * 32 + 20, 1e-9);
    search.most_global_batch = 6 * 32 + 19;
    EXPECT_EQ(ChooseBatches(compiled, &allocation, 1, search, &choice), 1U);
  }
}

// Slow nodes may be fuller than others in the plan's own placement, and are not on another layout.
RC_GTEST_PROP(PlanQuery, OfThePlansOwnLayoutHasItsSlowWorkers, ()) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  const int nodes = *rc::gen::inRange(2, 7);
  Placement placement;
  for (int i = 0; i < nodes; ++i) placement.push_back(*rc::gen::inRange(1, 5));
  Plan plan = AllreducePlan(placement, 32);
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync);
  plan.servers = UsesServers(plan.strategy) ? 2 : 0;
  plan.slow_nodes = *rc::gen::inRange(1, nodes);
  plan.slow_speed = *rc::gen::inRange(10, 100) / 100.0;
  if (!TraitsOf(plan.strategy).asynchronous()) plan.slow_local_batch = *rc::gen::inRange(1, 40);
  const CompiledPlan compiled(predictor, plan);
  for (int slow = 0; slow < nodes; ++slow) {
    const Plan asked = WithSlowNodes(plan, slow);
    PlanQuery query = QueryOf(plan);
    query.slow_nodes = slow;
    const Prediction expected = predictor.Predict(asked);
    const Forecast forecast = compiled.Predict(query);
    RC_ASSERT(forecast.status == QueryStatus::kOk);
    RC_ASSERT(Apart(forecast.step_time.si(), expected.step_time.si()) < 1e-11);
    RC_ASSERT(Apart(forecast.high.si(), expected.high.si()) < 1e-9);
    RC_ASSERT(compiled.WorkersOfSlowBatch(query) ==
              (plan.slow_local_batch ? asked.slow_workers() : 0));
    if (!plan.slow_local_batch) continue;
    const Allocation allocation = {query.workers, nodes, query.devices_per_node, plan.servers,
                                   slow};
    BatchSearch search;
    search.least_local_batch = search.most_local_batch = plan.local_batch;
    search.accumulate = false;
    BatchChoice choice;
    RC_ASSERT(ChooseBatches(compiled, &allocation, 1, search, &choice) == 0U);
    RC_ASSERT(Apart(choice.throughput * choice.step_time_s, asked.global_batch()) < 1e-12);
  }
  PlanQuery wider = QueryOf(plan);
  ++wider.workers;
  ++wider.nodes;
  RC_ASSERT(Apart(compiled.StepTime(wider).si(),
                  predictor.PredictStep(PlanOf(plan, wider)).total().si()) < 1e-11);
}

TEST(MostLocalBatch, IsNoneWhereSlowNodesRunOutOfMemory) {
  Plan plan = AllreducePlan({1, 1}, 8);
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"), T4());
  const int most = CompiledPlan(predictor, plan).MostLocalBatch(QueryOf(plan));
  ASSERT_GT(most, 8);
  for (const auto& [slow_batch, expected] : {std::pair(most, most), std::pair(most + 1, 0)}) {
    plan.slow_local_batch = slow_batch;
    const CompiledPlan compiled(predictor, plan);
    EXPECT_EQ(compiled.MostLocalBatch(QueryOf(plan)), expected);
    EXPECT_EQ(compiled.Memory(QueryOf(plan)) == MemoryVerdict::kOutOfMemory, expected == 0);
    EXPECT_EQ(predictor.Memory(plan).verdict == MemoryVerdict::kOutOfMemory, expected == 0);
    PlanQuery without = QueryOf(plan);
    without.slow_nodes = 0;
    EXPECT_EQ(compiled.MostLocalBatch(without), most);
  }
}

// One worker ran 64 samples, on a device that by the count has no room for so many: several keep
// copies besides, and the two agree on what may fit.
TEST(MostLocalBatch, IsWhatRanAloneBesideAnExchange) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.local_batch[ScopeOfSynthetic("resnet50")] = {8, 64, 1};
  const Predictor predictor(cluster, *FindWorkload("resnet50"), T4(Gibibytes(5.0)));
  ASSERT_GT(predictor.activations().counted, predictor.activations().most.value());
  EXPECT_EQ(predictor.Memory(AllreducePlan({1}, 64)).verdict, MemoryVerdict::kFits);
  EXPECT_EQ(predictor.Memory(AllreducePlan({1}, 65)).verdict, MemoryVerdict::kOutOfMemory);
  Plan plan = AllreducePlan({2, 2}, 64);
  const CompiledPlan compiled(predictor, plan);
  EXPECT_EQ(compiled.MostLocalBatch(QueryOf(plan)), 64);
  const Prediction beside = predictor.Predict(plan);
  EXPECT_EQ(beside.memory.verdict, MemoryVerdict::kTight);
  EXPECT_TRUE(std::any_of(beside.flags.begin(), beside.flags.end(), [](const std::string& flag) {
    return flag.starts_with(
        "memory is tight: as large a step has run, but without the 0.095 GiB "
        "that an exchange adds to it; it needs at most about 5.1 GiB so, and "
        "the device has 5.0 GiB");
  }));
  for (plan.local_batch = 50; plan.local_batch < 70; ++plan.local_batch) {
    EXPECT_EQ(compiled.Memory(QueryOf(plan)), predictor.Memory(plan).verdict) << plan.local_batch;
    EXPECT_EQ(predictor.Memory(plan).may_fit(), plan.local_batch <= 64) << plan.local_batch;
  }
}

TEST(QueryStatus, SaysWhatIsWrong) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  const CompiledPlan ring(predictor, AllreducePlan({2, 2}, 16));
  constexpr QueryStatus kPlace = QueryStatus::kBadPlacement;
  constexpr QueryStatus kServers = QueryStatus::kBadServers;
  constexpr QueryStatus kBatch = QueryStatus::kBadBatch;
  constexpr QueryStatus kLink = QueryStatus::kBadLink;
  constexpr QueryStatus kSlow = QueryStatus::kBadSlowNodes;
  ExpectRefused(
      ring, {{kPlace, [](PlanQuery* q) { q->workers = 0; }},
             {kPlace, [](PlanQuery* q) { q->workers = -1; }},
             {kPlace, [](PlanQuery* q) { q->workers = kLeastInt; }},
             {kPlace, [](PlanQuery* q) { q->workers = kMostInt; }},
             {kPlace, [](PlanQuery* q) { q->nodes = 0; }},
             {kPlace, [](PlanQuery* q) { q->nodes = 5; }},
             {kPlace, [](PlanQuery* q) { q->nodes = kLeastInt; }},
             {kPlace, [](PlanQuery* q) { q->nodes = kMostInt; }},
             {kPlace, [](PlanQuery* q) { q->devices_per_node = 0; }},
             {kPlace, [](PlanQuery* q) { q->devices_per_node = 1; }},
             {kPlace, [](PlanQuery* q) { q->devices_per_node = 4; }},
             {kPlace, [](PlanQuery* q) { q->devices_per_node = kMostInt; }},
             {kPlace, [](PlanQuery* q) { q->workers = q->nodes = q->devices_per_node = kMostInt; }},
             {kPlace, [](PlanQuery* q) { q->workers = 5; }},
             {kPlace, [](PlanQuery* q) { q->workers = 2; }},
             {kPlace,
              [](PlanQuery* q) {
                q->workers = q->nodes = kMostCount + 1;
                q->devices_per_node = 1;
              }},
             {kServers, [](PlanQuery* q) { q->servers = 1; }},
             {kServers, [](PlanQuery* q) { q->servers = -1; }},
             {kServers, [](PlanQuery* q) { q->servers = kMostInt; }},
             {kSlow, [](PlanQuery* q) { q->slow_nodes = 1; }},
             {kSlow, [](PlanQuery* q) { q->slow_nodes = -1; }},
             {kBatch, [](PlanQuery* q) { q->local_batch = 0; }},
             {kBatch, [](PlanQuery* q) { q->local_batch = kMostBatch + 1; }},
             {kBatch, [](PlanQuery* q) { q->local_batch = kLeastInt; }},
             {kBatch, [](PlanQuery* q) { q->accumulation_steps = 0; }},
             {kBatch, [](PlanQuery* q) { q->accumulation_steps = kMostCount + 1; }},
             {kBatch, [](PlanQuery* q) { q->accumulation_steps = kMostInt; }},
             {kLink, [](PlanQuery* q) { q->link.bandwidth = BytesPerSecond(0.0); }},
             {kLink, [](PlanQuery* q) { q->link.bandwidth = BytesPerSecond(-1.0); }},
             {kLink, [](PlanQuery* q) { q->link.bandwidth = BytesPerSecond(kNan); }},
             {kLink, [](PlanQuery* q) { q->link.bandwidth = BytesPerSecond(HUGE_VAL); }},
             {kLink, [](PlanQuery* q) { q->link.rtt = Seconds(-1e-9); }},
             {kLink, [](PlanQuery* q) { q->link.rtt = Seconds(kNan); }},
             {kLink, [](PlanQuery* q) { q->link.rtt = Seconds(HUGE_VAL); }},
             {kLink, [](PlanQuery* q) { q->link.loss = 1.0; }},
             {kLink, [](PlanQuery* q) { q->link.loss = -1e-9; }},
             {kLink, [](PlanQuery* q) { q->link.loss = kNan; }},
             {kLink, [](PlanQuery* q) { q->link.loss_burst = Seconds(-1.0); }},
             {kLink, [](PlanQuery* q) { q->link.loss_burst = Seconds(kNan); }},
             {kLink, [](PlanQuery* q) { q->link.others = -0.1; }},
             {kLink, [](PlanQuery* q) { q->link.others = kNan; }},
             {kLink, [](PlanQuery* q) { q->link.background = BytesPerSecond(-1.0); }},
             {kLink, [](PlanQuery* q) { q->link.background = BytesPerSecond(kNan); }},
             {kLink, [](PlanQuery* q) { q->link.oversubscription = 0.5; }},
             {kLink, [](PlanQuery* q) { q->link.oversubscription = kNan; }},
             {kLink, [](PlanQuery* q) { q->link.oversubscription = 4; }},  // of which switches?
             {kLink, [](PlanQuery* q) { q->link.nodes_per_switch = 0; }},
             {kLink, [](PlanQuery* q) { q->server_link.bandwidth = BytesPerSecond(0.0); }},
             {kLink, [](PlanQuery* q) { q->server_link.rtt = Seconds(kNan); }},
             {kLink, [](PlanQuery* q) { q->server_link.loss = 2.0; }},
             {kLink, [](PlanQuery* q) { q->link.loss = 1e-16; }},
             {kLink, [](PlanQuery* q) { q->link.rtt = Seconds(2000.0); }},
             {kLink, [](PlanQuery* q) { q->link.bandwidth = GigabitsPerSecond(2e6); }},
             {kLink, [](PlanQuery* q) { q->link.oversubscription = 4.0; }}});

  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = AllreducePlan({2, 2}, 16);
    plan.strategy = strategy;
    plan.servers = 2;
    ExpectRefused(CompiledPlan(predictor, plan, {8}),
                  {{kServers, [](PlanQuery* q) { q->servers = 0; }},
                   {kServers, [](PlanQuery* q) { q->servers = -1; }},
                   {kServers, [](PlanQuery* q) { q->servers = 9; }},
                   {kServers, [](PlanQuery* q) { q->servers = kMostInt; }},
                   {kServers, [](PlanQuery* q) { q->servers = kLeastInt; }},
                   {kLink, [](PlanQuery* q) { q->server_link.oversubscription = 4.0; }}});
  }
  Plan byteps = AllreducePlan({2, 2}, 16);
  byteps.strategy = Strategy::kBytePs;
  ExpectRefused(CompiledPlan(predictor, byteps),
                {{kServers, [](PlanQuery* q) { q->servers = -1; }},
                 {kServers, [](PlanQuery* q) { q->servers = kMostCount + 1; }}});

  Plan slow = AllreducePlan({2, 2}, 16);
  slow.slow_nodes = 2;
  slow.slow_speed = 0.5;
  ExpectRefused(CompiledPlan(predictor, slow),
                {{kSlow, [](PlanQuery* q) { q->slow_nodes = 3; }},
                 {kSlow, [](PlanQuery* q) { q->slow_nodes = kLeastInt; }},
                 {kSlow, [](PlanQuery* q) { q->workers = q->nodes = q->devices_per_node = 1; }}});

  Plan backup = AllreducePlan({2, 2}, 16);
  backup.backup_workers = 2;
  ExpectRefused(CompiledPlan(predictor, backup), {{kPlace, [](PlanQuery* q) {
                                                     q->workers = q->nodes = 2;
                                                     q->devices_per_node = 1;
                                                   }}});
}

TEST(QueryStatus, ABareMessageIsNotSentToNobody) {
  Workload message = WithoutLayers(Megabytes(10.0));
  message.communication_only = true;
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), message, std::nullopt);
  const auto to_one = [](PlanQuery* q) { q->workers = q->nodes = q->devices_per_node = 1; };
  ExpectRefused(CompiledPlan(predictor, AllreducePlan({1, 1}, 1)),
                {{QueryStatus::kNothingExchanged, to_one}});
  Plan plan = AllreducePlan({1, 1}, 1);
  plan.strategy = Strategy::kPsSync;
  plan.servers = 1;
  const CompiledPlan apart(predictor, plan);
  PlanQuery lone = QueryOf(plan);
  to_one(&lone);
  EXPECT_EQ(apart.Predict(lone).status, QueryStatus::kOk) << "to a server";
  plan.server.colocated = true;
  ExpectRefused(CompiledPlan(predictor, plan), {{QueryStatus::kNothingExchanged, to_one}});
}

// What the predictor answers has an answer, and what it refuses has none.
TEST(QueryStatus, IsOkWhereThePredictorAnswers) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(predictor, kind.plan);
    Random random(3);
    for (int i = 0; i < 300; ++i) {
      PlanQuery query = QueryOf(kind.plan);
      query.nodes = random.Whole(0, 6);
      query.devices_per_node = random.Whole(0, 4);
      query.workers = random.Whole(0, 12);
      query.servers = random.Whole(-1, 6);
      query.local_batch = random.Whole(0, 4);
      // As many nodes, of which one has the most; or there is no such plan.
      const bool placed = query.nodes >= 1 && query.devices_per_node >= 1 &&
                          query.workers >= query.nodes + query.devices_per_node - 1 &&
                          query.workers <= query.nodes * query.devices_per_node;
      bool answered = placed;
      if (placed) {
        try {
          predictor.PredictStep(PlanOf(kind.plan, query));
        } catch (const InputError&) {
          answered = false;
        }
      }
      ASSERT_EQ(!compiled.ProblemOf(query), answered);
      ASSERT_EQ(compiled.Predict(query).status == QueryStatus::kOk, answered)
          << kind.name << ": " << query.workers << " workers, " << query.nodes << " nodes, "
          << query.devices_per_node << " devices, " << query.servers << " servers, batch "
          << query.local_batch;
    }
  }
}

TEST(QueryAt, TakesWhatArraysSayAndOtherwiseTheOwn) {
  PlanQuery own{8, 4, 2, 1, 16, 3, {}, {}, 2};
  own.link.rtt = Seconds(1e-3);
  QueryArrays none{2};
  EXPECT_EQ(QueryAt(none, 1, own).link.rtt, own.link.rtt);
  EXPECT_EQ(QueryAt(none, 1, own).slow_nodes, 2);
  EXPECT_EQ(QueryAt(none, 1, own).local_batch, 16);

  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const int counts[7][2] = {{0, 11}, {0, 12}, {0, 13}, {0, 14}, {0, 15}, {0, 16}, {0, 17}};
  const double facts[3][2] = {{kNone, 2e9}, {kNone, 2e-3}, {kNone, 2e-5}};
  const QueryArrays all{2,         counts[0], counts[1], counts[2], counts[3], counts[4],
                        counts[5], facts[0],  facts[1],  facts[2],  counts[6]};
  const PlanQuery query = QueryAt(all, 1, own);
  EXPECT_EQ(query.workers, 11);
  EXPECT_EQ(query.nodes, 12);
  EXPECT_EQ(query.devices_per_node, 13);
  EXPECT_EQ(query.servers, 14);
  EXPECT_EQ(query.local_batch, 15);
  EXPECT_EQ(query.accumulation_steps, 16);
  EXPECT_EQ(query.slow_nodes, 17);
  EXPECT_EQ(query.link.bandwidth, BytesPerSecond(2e9));
  EXPECT_EQ(query.link.rtt, Seconds(2e-3));
  EXPECT_EQ(query.link.loss, 2e-5);
  const PlanQuery unstated = QueryAt(all, 0, own);
  EXPECT_EQ(unstated.workers, 0) << "as it was asked, right or wrong";
  EXPECT_FALSE(unstated.link.bandwidth);
  EXPECT_EQ(unstated.link.rtt, own.link.rtt);
  EXPECT_FALSE(unstated.link.loss);
}

TEST(QueryProblem, NamesFieldValueAndWhatIsAllowed) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  const CompiledPlan compiled(predictor, AllreducePlan({1, 1}, 16));
  EXPECT_FALSE(compiled.ProblemOf(QueryOf(compiled.plan())));
  EXPECT_EQ(compiled.StatusOf(QueryOf(compiled.plan())), QueryStatus::kOk);
  struct Wrong {
    void (*change)(PlanQuery*);
    const char* field;
    const char* value;
    std::string allowed;
  };
  const Wrong all[] = {
      {[](PlanQuery* q) { q->workers = 0; }, "workers", "0", "a whole number from 1 to 1000000"},
      {[](PlanQuery* q) { q->nodes = 3; }, "nodes", "3",
       "a whole number from 1 to 2 for 2 workers"},
      {[](PlanQuery* q) { q->workers = 5; }, "devices_per_node", "1",
       "a whole number from 3 to 4 for 5 workers on 2 nodes"},
      {[](PlanQuery* q) { q->servers = 1; }, "servers", "1",
       std::string("a whole number from 0 to 0 with strategy ") +
           StrategyName(compiled.plan().strategy)},
      {[](PlanQuery* q) { q->local_batch = -7; }, "local_batch", "-7",
       "a whole number from 1 to 100000000"},
      {[](PlanQuery* q) { q->accumulation_steps = 1'000'001; }, "accumulation_steps", "1000001",
       "a whole number from 1 to 1000000"},
      {[](PlanQuery* q) { q->slow_nodes = 3; }, "slow_nodes", "3",
       "a whole number from 0 to 2 of 2 nodes"},
      {[](PlanQuery* q) { q->slow_nodes = 1; }, "slow_nodes", "1",
       "0, or a plan that is compiled with slow_speed"},
      {[](PlanQuery* q) { q->link.rtt = Seconds(-1.0); }, "rtt_s", "-1",
       "0, or from 1e-12 to 1000"},
      {[](PlanQuery* q) { q->link.loss = 1; }, "loss_rate", "1", "0, or from 1e-15 to below 1"},
      {[](PlanQuery* q) { q->link.others = -1; }, "link_others", "-1", "from 0 to 1000"},
      {[](PlanQuery* q) { q->link.others = 1001; }, "link_others", "1001", "from 0 to 1000"},
      {[](PlanQuery* q) {
         q->link.oversubscription = 0.5;
         q->link.nodes_per_switch = 4;
       },
       "oversubscription", "0.5", "from 1 to 1000"},
      {[](PlanQuery* q) {
         q->link.oversubscription = 4;
         q->link.nodes_per_switch = 0;
       },
       "nodes_per_switch", "0", "from 1 to 1e+06"},
      {[](PlanQuery* q) {
         q->link.oversubscription = 4;
         q->link.nodes_per_switch = 1'000'001;
       },
       "nodes_per_switch", "1000001", "from 1 to 1e+06"},
      {[](PlanQuery* q) { q->server_link.bandwidth = BytesPerSecond(0.0); },
       "server_bandwidth_bytes_per_s", "0", "from 0.125 to 1.25e+14"},
      {[](PlanQuery* q) { q->link.oversubscription = 4; }, "nodes_per_switch", "",
       "nodes on a switch"},
  };
  for (const Wrong& wrong : all) {
    PlanQuery query = QueryOf(compiled.plan());
    wrong.change(&query);
    ASSERT_NE(compiled.Predict(query).status, QueryStatus::kOk) << wrong.field;
    EXPECT_EQ(compiled.StatusOf(query), compiled.Predict(query).status) << wrong.field;
    const std::optional<QueryProblem> problem = compiled.ProblemOf(query);
    ASSERT_TRUE(problem) << wrong.field;
    EXPECT_EQ(problem->field, wrong.field);
    EXPECT_EQ(problem->value, wrong.value) << wrong.field;
    EXPECT_EQ(problem->allowed, wrong.allowed) << wrong.field;
    EXPECT_FALSE(problem->problem.empty()) << wrong.field;
  }
}

TEST(QueryProblem, NamesThePlacementsOfTheCompiledPlan) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  Plan plan = AllreducePlan({2, 2}, 16);
  plan.backup_workers = 2;
  PlanQuery query = QueryOf(plan);
  query.workers = query.nodes = 2;
  query.devices_per_node = 1;
  const CompiledPlan backup(predictor, plan);
  ASSERT_TRUE(backup.ProblemOf(query));
  EXPECT_EQ(backup.ProblemOf(query)->field, "workers");
  EXPECT_EQ(backup.ProblemOf(query)->allowed,
            "a whole number from 3 to 1000000, with 2 backup workers");

  Workload message = WithoutLayers(Megabytes(10.0));
  message.communication_only = true;
  const Predictor of_message(CalibratedCluster(PlausibleTruth()), message, std::nullopt);
  const CompiledPlan alone(of_message, AllreducePlan({1, 1}, 1));
  query = QueryOf(alone.plan());
  query.workers = query.nodes = 1;
  ASSERT_TRUE(alone.ProblemOf(query));
  EXPECT_EQ(alone.ProblemOf(query)->field, "workers");
  EXPECT_EQ(alone.ProblemOf(query)->allowed, "at least 2");
}

// Within nodes a model is shared out where these are equal.
TEST(QueryProblem, NamesNodesThatAreNotEqual) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  Plan plan = AllreducePlan({2, 2}, 16);
  plan.shard = Shard::kHybrid;
  const CompiledPlan compiled(predictor, plan);
  PlanQuery query = QueryOf(plan);
  const auto is_bad = [&] { return compiled.Predict(query).status == QueryStatus::kBadPlacement; };
  EXPECT_FALSE(is_bad());
  query.workers = 3;
  EXPECT_TRUE(is_bad());
  EXPECT_EQ(compiled.ProblemOf(query)->field, "workers");
  EXPECT_EQ(compiled.ProblemOf(query)->value, "3");
  EXPECT_EQ(compiled.ProblemOf(query)->problem,
            "are not as many on each of 2 nodes, with shard hybrid");
  EXPECT_EQ(compiled.ProblemOf(query)->allowed, "a multiple of 2");
  query.workers = 6;
  query.devices_per_node = 4;
  EXPECT_TRUE(is_bad());
  EXPECT_EQ(compiled.ProblemOf(query)->field, "devices_per_node");
  EXPECT_EQ(compiled.ProblemOf(query)->allowed, "3, for 6 workers on 2 equal nodes");
  query.devices_per_node = 3;
  EXPECT_FALSE(is_bad());
  EXPECT_FALSE(compiled.ProblemOf(query));
}

TEST(QueryStatus, HasASentenceEach) {
  std::vector<std::string> sentences;
  for (int i = 0; i < kQueryStatusCount; ++i) {
    sentences.emplace_back(QueryStatusText(static_cast<QueryStatus>(i)));
    EXPECT_FALSE(sentences.back().empty());
  }
  EXPECT_EQ(sentences[0], "ok");
  std::sort(sentences.begin(), sentences.end());
  EXPECT_EQ(std::unique(sentences.begin(), sentences.end()), sentences.end());
}

TEST(CompiledPlan, RefusesWhatThePredictorRefuses) {
  const Predictor predictor = Calibrated(*FindWorkload("resnet50"));
  Plan plan = AllreducePlan({1, 1}, 16);
  plan.strategy = Strategy::kPsSync;
  const auto compile = [&] { CompiledPlan compiled(predictor, plan); };
  EXPECT_TRUE(Says(ErrorOf(compile), ErrorOf([&] { predictor.Predict(plan); })->what()));
  plan = AllreducePlan({1, 1}, 16);
  plan.local_batch = 0;
  EXPECT_TRUE(Says(ErrorOf(compile), ErrorOf([&] { predictor.Predict(plan); })->what()));
  plan = AllreducePlan({}, 16);
  EXPECT_TRUE(Says(ErrorOf(compile), ErrorOf([&] { predictor.Predict(plan); })->what()));
  plan = AllreducePlan({1, 1}, 16);
  plan.hosts = {"only one"};
  EXPECT_TRUE(Says(ErrorOf(compile), ErrorOf([&] { predictor.Predict(plan); })->what()));
}

static_assert(noexcept(std::declval<const CompiledPlan&>().Predict(PlanQuery())));
static_assert(noexcept(std::declval<const CompiledPlan&>().StepTime(PlanQuery())));
static_assert(noexcept(std::declval<const CompiledPlan&>().PredictMany(QueryArrays(),
                                                                       ForecastArrays())));
static_assert(noexcept(std::declval<const CompiledPlan&>().StepTimes(PlanQuery(), nullptr, nullptr,
                                                                     0, nullptr)));
static_assert(noexcept(std::declval<const CompiledPlan&>().MostLocalBatch(PlanQuery())));
static_assert(std::is_nothrow_copy_constructible_v<CompiledPlan>);

// ---- Memory.

// The boundary is the predictor's, to the sample.
TEST(MostLocalBatch, IsWhereThePredictorRunsOutOfMemory) {
  int bounded = 0;
  for (const char* name : {"resnet50", "bert_base", "vgg16"}) {
    for (const double gibibytes : {1.5, 4.0, 16.0, 23.7}) {
      const Workload workload = *FindWorkload(name);
      const Predictor predictor(CalibratedCluster(PlausibleTruth()), workload,
                                T4(Gibibytes(gibibytes)));
      for (const Kind& kind : Kinds()) {
        const CompiledPlan compiled(predictor, kind.plan);
        for (PlanQuery query : QueriesOf(kind.plan)) {
          const int most = compiled.MostLocalBatch(query);
          const auto fits = [&](int batch) {
            query.local_batch = batch;
            const MemoryNeed need = predictor.Memory(PlanOf(compiled.plan(), query));
            return need.verdict != MemoryVerdict::kOutOfMemory;
          };
          ASSERT_FALSE(fits(most + 1)) << name << ", " << kind.name << ", " << most;
          ASSERT_TRUE(most == 0 || fits(most)) << name << ", " << kind.name << ", " << most;
          ++bounded;
        }
      }
    }
  }
  EXPECT_GT(bounded, 1000);
}

// Memory that holds a whole number of samples to the byte holds them.
TEST(MostLocalBatch, CountsToTheByte) {
  const Workload workload = *FindWorkload("resnet50");
  for (const int batch : {1, 2, 63, 500}) {
    Plan plan = AllreducePlan({1, 1}, batch);
    const DataSize<> need =
        Predictor(SyntheticCluster(), workload, T4()).Predict(plan).memory.total;
    for (const double more : {-1.0, 0.0, 1.0}) {
      const Predictor predictor(SyntheticCluster(), workload, T4(need + Bytes(more)));
      EXPECT_EQ(CompiledPlan(predictor, plan).MostLocalBatch(QueryOf(plan)),
                more < 0 ? batch - 1 : batch);
    }
  }
}

// Whatever is shared out, among however many, of units of whatever size: a compiled plan has room
// for as many samples as the predictor, to some bytes of the device's memory.
RC_GTEST_PROP(MostLocalBatchProperty, CountsAsThePredictorWhateverIsShared, ()) {
  Workload workload = *FindWorkload(*rc::gen::element("resnet50", "vgg16", "gpt2"));
  workload.precision = *rc::gen::element(Precision::kFp32, Precision::kBf16);
  workload.optimizer = *rc::gen::element(Optimizer::kMomentum, Optimizer::kAdam);
  Plan plan = AllreducePlan({2, 2}, 1);
  plan.shard = *rc::gen::element(Shard::kNone, Shard::kOptimizer, Shard::kGradients,
                                 Shard::kParameters, Shard::kHybrid);
  plan.bytes_per_parameter = *rc::gen::element(2, 4);
  if (*rc::gen::arbitrary<bool>()) plan.bucket = Mebibytes(std::exp2(*rc::gen::inRange(0, 17)));
  PlanQuery query = QueryOf(plan);
  query.devices_per_node = *rc::gen::inRange(1, 9);
  query.nodes = *rc::gen::inRange(1, 9);
  query.workers = query.nodes * query.devices_per_node;
  query.accumulation_steps = *rc::gen::inRange(1, 4);
  query.local_batch = *rc::gen::inRange(1, 301);
  const DataSize<> need =
      Predictor(SyntheticCluster(), workload, T4()).Memory(PlanOf(plan, query)).total;
  for (const double more : {-64.0, 64.0}) {
    const Predictor predictor(SyntheticCluster(), workload, T4(need + Bytes(more)));
    RC_ASSERT(CompiledPlan(predictor, plan).MostLocalBatch(query) ==
              query.local_batch - (more < 0 ? 1 : 0));
  }
}

TEST(MostLocalBatch, IsAllWhereNothingTells) {
  const Workload resnet = *FindWorkload("resnet50");
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  const Plan plan = AllreducePlan({1, 1}, 16);
  EXPECT_EQ(CompiledPlan(Predictor(cluster, resnet, std::nullopt), plan).MostLocalBatch({}),
            kMostBatch);
  Workload curve = resnet;
  curve.layers.clear();
  EXPECT_EQ(CompiledPlan(Predictor(cluster, curve, T4()), plan).MostLocalBatch({}), kMostBatch);
  EXPECT_EQ(CompiledPlan(Predictor(cluster, resnet, T4(Gibibytes(1e9))), plan).MostLocalBatch({}),
            kMostBatch)
      << "no plan has more";
}

// Without layers nobody knows whether a step fits, as activations are not counted; of a model that
// is too large by itself everybody does.
TEST(CompiledPlan, KnowsNoMemoryWithoutLayers) {
  Workload curve = *FindWorkload("resnet50");
  curve.layers.clear();
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.local_batch.clear();  // a batch that has run fits
  const Plan plan = AllreducePlan({1, 1}, 16);
  const auto verdict = [&](const Workload& workload, DataSize<> memory) {
    return CompiledPlan(Predictor(cluster, workload, T4(memory)), plan).Memory(QueryOf(plan));
  };
  EXPECT_EQ(verdict(curve, Gibibytes(16.0)), MemoryVerdict::kUnknown);
  EXPECT_EQ(verdict(*FindWorkload("resnet50"), Gibibytes(16.0)), MemoryVerdict::kFits);
  EXPECT_EQ(verdict(curve, Mebibytes(1.0)), MemoryVerdict::kOutOfMemory);
}

TEST(MostLocalBatch, IsNothingWhereNothingFits) {
  Workload network = *FindWorkload("resnet50");
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  cluster.calibration->range.local_batch.clear();  // a batch that has run fits
  const Plan plan = AllreducePlan({1, 1}, 16);
  EXPECT_EQ(CompiledPlan(Predictor(cluster, network, T4(Gibibytes(1.0))), plan).MostLocalBatch({}),
            0);
  // Nor where a sample needs nothing, and the model alone is too large.
  for (Layer& layer : network.layers) layer.activation_bytes = {};
  const Predictor predictor(cluster, network, T4(Gibibytes(1.0)));
  ASSERT_EQ(predictor.Predict(plan).memory.verdict, MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(CompiledPlan(predictor, plan).MostLocalBatch({}), 0);
}

// A step that has run with the model shared out fits, whatever is counted of it, and with it those
// that need no more: fewer samples, or more who share.
TEST(MostLocalBatch, IsWhatHasRunWhereNothingFitsByItsCount) {
  Cluster cluster = CalibratedCluster(PlausibleTruth());
  CalibratedRange::BatchRange& seen =
      cluster.calibration->range.local_batch.at(ScopeOfSynthetic("resnet50"));
  seen.ran = {{Shard::kOptimizer, 4, 64, 4}, {Shard::kOptimizer, 2, 16, 4}};
  const Predictor predictor(cluster, *FindWorkload("resnet50"), T4(Gibibytes(1.0)));
  const auto plan_of = [](Shard shard, int workers, int batch) {
    Plan plan = AllreducePlan({workers}, batch);
    if (workers > 1) plan.shard = shard;  // one has nobody to share with
    return plan;
  };
  for (const Shard shard : {Shard::kNone, Shard::kOptimizer}) {
    const CompiledPlan compiled(predictor, plan_of(shard, 2, 1));
    for (const int workers : {1, 2, 3, 4, 5, 8}) {
      const bool shares = shard == Shard::kOptimizer && workers > 1;
      const int most = !shares ? 0 : workers < 4 ? 16 : 64;
      EXPECT_EQ(compiled.MostLocalBatch(QueryOf(plan_of(shard, workers, 1))), most) << workers;
      for (const int batch : {1, 16, 17, 64, 65}) {
        const Plan plan = plan_of(shard, workers, batch);
        const MemoryNeed need = predictor.Memory(plan);
        EXPECT_EQ(need.verdict, batch <= most ? MemoryVerdict::kTight : MemoryVerdict::kOutOfMemory)
            << workers << " x " << batch;
        EXPECT_EQ(compiled.Memory(QueryOf(plan)), need.verdict);
      }
    }
  }
  const std::vector<std::string> flags = predictor.Predict(plan_of(Shard::kOptimizer, 4, 64)).flags;
  EXPECT_TRUE(std::any_of(flags.begin(), flags.end(), [](const std::string& flag) {
    return flag.find("the device has 1.0 GiB: a fitted run that needs no less has run") !=
           std::string::npos;
  }));
}

// A batch at which an operation did not fit when it was measured does not fit.
TEST(MostLocalBatch, IsBelowWhatAProfileSawFail) {
  const Workload resnet = *FindWorkload("resnet50");
  const Predictor predictor(SyntheticCluster(), resnet, T4(Gibibytes(1000.0)), kSyntheticDevice,
                            Profile(resnet, 256));
  Plan plan = AllreducePlan({1, 1}, 16);
  const int most = CompiledPlan(predictor, plan).MostLocalBatch(QueryOf(plan));
  const auto verdict = [&](int batch) {
    plan.local_batch = batch;
    return predictor.Predict(plan).memory.verdict;
  };
  ASSERT_EQ(verdict(255), MemoryVerdict::kFits);
  ASSERT_EQ(verdict(256), MemoryVerdict::kOutOfMemory);
  EXPECT_EQ(most, 255);
  for (const int batch : {16, 255, 256, 300}) {
    PlanQuery query = QueryOf(plan);
    query.local_batch = batch;
    EXPECT_EQ(CompiledPlan(predictor, plan).Memory(query), verdict(batch)) << batch;
  }
}

// ---- A value.

TEST(CompiledPlan, OutlivesThePredictorAndItsCopiesShare) {
  for (const Kind& kind : Kinds()) {
    auto predictor = std::make_unique<Predictor>(Calibrated(*FindWorkload("resnet50")));
    auto compiled = std::make_unique<CompiledPlan>(*predictor, kind.plan);
    const PlanQuery query = QueryOf(kind.plan);
    const Forecast expected = compiled->Predict(query);
    predictor.reset();
    const CompiledPlan copy = *compiled;
    CompiledPlan assigned(Calibrated(*FindWorkload("bert_base")), AllreducePlan({1}, 1));
    assigned = copy;
    EXPECT_TRUE(SameBits(compiled->Predict(query), expected)) << kind.name;
    compiled.reset();
    EXPECT_TRUE(SameBits(copy.Predict(query), expected)) << kind.name;
    EXPECT_TRUE(SameBits(assigned.Predict(query), expected)) << kind.name;
    EXPECT_EQ(&copy.plan(), &assigned.plan()) << "one state";
    const CompiledPlan moved = std::move(assigned);
    EXPECT_TRUE(SameBits(moved.Predict(query), expected)) << kind.name;
  }
}

TEST(CompiledPlan, CompiledAgainHasTheSameBits) {
  for (const Kind& kind : Kinds()) {
    const CompiledPlan one(Calibrated(*FindWorkload("resnet50")), kind.plan);
    const CompiledPlan other(Calibrated(*FindWorkload("resnet50")), kind.plan);
    for (const PlanQuery& query : QueriesOf(kind.plan)) {
      EXPECT_TRUE(SameBits(one.Predict(query), other.Predict(query))) << kind.name;
      EXPECT_TRUE(SameBits(one.StepTime(query).si(), other.StepTime(query).si())) << kind.name;
    }
  }
}

TEST(CompiledPlan, ManyThreadsHaveTheSameBits) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  for (const Kind& kind : Kinds()) {
    const CompiledPlan compiled(Calibrated(*FindWorkload("resnet50")), kind.plan);
    const std::vector<PlanQuery> queries = QueriesOf(kind.plan);
    std::vector<Forecast> expected;
    for (const PlanQuery& query : queries) expected.push_back(compiled.Predict(query));
    std::array<int, kThreads> others{};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < kRounds; ++round) {
          for (std::size_t i = 0; i < queries.size(); ++i) {
            const std::size_t at = (i + static_cast<std::size_t>(t)) % queries.size();
            if (!SameBits(compiled.Predict(queries[at]), expected[at])) {
              ++others[static_cast<std::size_t>(t)];
            }
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int other : others) EXPECT_EQ(other, 0) << kind.name;
  }
}

}  // namespace
}  // namespace stepcast
