// The model's answers with their derivatives, and the residuals that the solver sees.
#include "calibrate/plan_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/group_rows.h"
#include "calibrate/parameter_layout.h"
#include "data/io/machines.h"
#include "data/values/workload_scope.h"
#include "model/statistics/normal.h"
#include "model/statistics/order_statistics.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/model/support.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

// ---- Plans of every kind.

struct PlanCase {
  std::string name;
  Plan plan;
  bool named_link = false;
};

void PrintTo(const PlanCase& its, std::ostream* out) { *out << its.name; }

Plan OnNodes(int nodes, int devices, Strategy strategy, int servers = 0) {
  Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(nodes), devices), 32);
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

std::vector<PlanCase> PlanCases() {
  std::vector<PlanCase> cases = {
      {"one_device", OnNodes(1, 1, Strategy::kNone)},
      {"one_node", OnNodes(1, 4, Strategy::kAllreduce)},
      {"pair", OnNodes(2, 1, Strategy::kRing)},
      {"ring", OnNodes(4, 2, Strategy::kRing)},
      {"many_nodes", OnNodes(16, 4, Strategy::kAllreduce)},
      {"tree", OnNodes(4, 2, Strategy::kTree)},
      {"halving_doubling", OnNodes(4, 1, Strategy::kHalvingDoubling)},
      {"hierarchical", OnNodes(4, 4, Strategy::kHierarchical)},
      {"ps_sync", OnNodes(4, 1, Strategy::kPsSync, 2)},
      {"ps_async", OnNodes(4, 1, Strategy::kPsAsync, 2)},
      {"ps_one_node", OnNodes(1, 1, Strategy::kPsSync, 1)},
      {"byteps", OnNodes(4, 2, Strategy::kBytePs, 2)},
      {"byteps_one_node", OnNodes(1, 4, Strategy::kBytePs, 1)},
  };
  const auto with = [&](const std::string& name, const Plan& plan, const auto& change) {
    cases.push_back({name, plan});
    change(&cases.back().plan);
  };
  const Plan ring = OnNodes(4, 2, Strategy::kRing);
  const Plan servers = OnNodes(4, 2, Strategy::kPsSync, 2);
  const Plan async = OnNodes(4, 2, Strategy::kPsAsync, 2);
  const auto lossy = [](Plan* p) {
    p->link.rtt = Milliseconds(8.0);
    p->link.loss = 0.01;
  };
  with("ring_rtt", ring, [](Plan* p) { p->link.rtt = Milliseconds(20.0); });
  with("ring_rtt_loss", ring, lossy);
  with("ring_loss_alone", ring, [](Plan* p) { p->link.loss = 0.02; });
  with("ring_bandwidth", ring, [](Plan* p) { p->link.bandwidth = GigabitsPerSecond(1.0); });
  with("ring_accumulating", ring, [](Plan* p) { p->accumulation_steps = 5; });
  with("ring_p_norm", ring, [](Plan* p) { p->overlap = Overlap::kPNorm; });
  with("ring_no_overlap", ring, [](Plan* p) { p->overlap = Overlap::kNone; });
  with("ring_backup", ring, [](Plan* p) { p->backup_workers = 2; });
  with("ring_sharing_the_optimizer", ring, [](Plan* p) { p->shard = Shard::kOptimizer; });
  with("ring_sharing_the_parameters", ring, [](Plan* p) {
    p->shard = Shard::kParameters;
    p->accumulation_steps = 2;
  });
  with("ring_sharing_within_nodes", ring, [](Plan* p) {
    p->shard = Shard::kHybrid;
    p->accumulation_steps = 2;
  });
  with("ring_every_four_steps", ring, [](Plan* p) { p->local_steps = 4; });
  with("bbr", ring, [&](Plan* p) {
    lossy(p);
    p->link.congestion_control = CongestionControl::kBbr;
  });
  with("ps_sync_rtt_loss", servers, lossy);
  with("ps_async_rtt_loss", async, lossy);
  with("ps_server_rtt", servers, [](Plan* p) { p->server_link.rtt = Milliseconds(20.0); });
  with("ps_server_loss", servers, [](Plan* p) { p->server_link.loss = 0.01; });
  with("ps_server_bandwidth", servers,
       [](Plan* p) { p->server_link.bandwidth = GigabitsPerSecond(2.0); });
  with("ps_colocated", servers, [](Plan* p) { p->server.colocated = true; });
  with("ps_pipelined", servers, [](Plan* p) { p->server.pipelined = true; });
  with("ps_bounded_staleness", async, [](Plan* p) { p->server.staleness_bound = 3; });
  with("byteps_rtt", OnNodes(4, 2, Strategy::kBytePs, 2),
       [](Plan* p) { p->server_link.rtt = Milliseconds(5.0); });
  const std::size_t unnamed = cases.size();
  for (std::size_t i = 0; i < unnamed; ++i) {
    if (cases[i].plan.nodes() < 2 && !UsesServers(cases[i].plan.strategy)) continue;
    PlanCase named = cases[i];
    named.name += "_named_link";
    named.named_link = true;
    cases.push_back(named);
  }
  return cases;
}

StepFacts FactsOf(const Plan& plan, const std::string& name = "resnet50") {
  const Workload workload = *FindWorkload(name);
  const DataSize<> cap = plan.bucket.value_or(DefaultBucket(plan.strategy));
  return MakeStepFacts(SyntheticCluster(), plan, workload,
                       std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, cap)));
}

// ln(SI value) by columns.
using Point = std::array<double, kPlanColumns>;

// Around the truth; the link of its own is 3 Gbit/s, and its host computes 1.2 times slower.
Point RandomPoint(Noise* noise, double sd) {
  const Truth truth = PlausibleTruth();
  const WorkloadParameters<double>& workload = truth.workloads.at("resnet50");
  Point point{};
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double si = i < kClusterParameterCount ? truth.cluster.si[i]
                      : i < kLinkColumn          ? workload.si[i - kClusterParameterCount]
                      : i == kLinkColumn         ? 3e9 / 8
                      : i == kSlowdownColumn     ? 1.2
                                                 : 1;  // of a stated rate
    point[i] = std::log(si) + sd * noise->Next();
  }
  return point;
}

// A named host has a link of its own, and a factor on its compute.
PlanAnswer Answer(const StepFacts& facts, bool named_link, const Point& at, bool with_gradient) {
  PlanParameters parameters = PlanParameters::FromLogs(at.data(), at.data() + kWorkloadColumn,
                                                       named_link ? &at[kLinkColumn] : nullptr,
                                                       named_link ? &at[kSlowdownColumn] : nullptr);
  parameters.cluster.stated_share = std::exp(at[kShareColumn]);
  return PlanModel(facts).Answer(parameters,
                                 with_gradient ? Derivatives::kAll : Derivatives::kNone);
}

class AnswerOf : public ::testing::TestWithParam<PlanCase> {};

// By central differences at two distances, which must agree first: where they do not, a maximum
// changes sides in between, and there is no derivative.
TEST_P(AnswerOf, HasTheDerivativesOfItsValues) {
  constexpr int kPoints = 6;
  constexpr double kDistance = 1e-4;
  const PlanCase& its = GetParam();
  const StepFacts facts = FactsOf(its.plan);
  Noise noise(11);
  int checked = 0;
  int kinks = 0;
  for (int round = 0; round < kPoints; ++round) {
    const Point point = RandomPoint(&noise, 0.7);
    const PlanAnswer answer = Answer(facts, its.named_link, point, true);
    ASSERT_TRUE(std::isfinite(answer.log_step));
    for (std::size_t column = 0; column < point.size(); ++column) {
      const auto difference = [&](double h) {
        Point above = point;
        Point below = point;
        above[column] += h;
        below[column] -= h;
        const PlanAnswer high = Answer(facts, its.named_link, above, false);
        const PlanAnswer low = Answer(facts, its.named_link, below, false);
        return std::pair{(high.log_step - low.log_step) / (2 * h),
                         (high.sync_share - low.sync_share) / (2 * h)};
      };
      const auto coarse = difference(kDistance);
      const auto fine = difference(kDistance / 2);
      if (std::abs(coarse.first - fine.first) > 1e-6 ||
          std::abs(coarse.second - fine.second) > 1e-6) {
        ++kinks;
        continue;
      }
      ++checked;
      EXPECT_NEAR(answer.log_step_gradient[column], fine.first, 2e-7) << "column " << column;
      EXPECT_NEAR(answer.sync_share_gradient[column], fine.second, 2e-7) << "column " << column;
    }
  }
  EXPECT_GE(checked, 0.95 * (checked + kinks)) << kinks << " were skipped";
}

TEST_P(AnswerOf, IsTheSameWithDerivatives) {
  const PlanCase& its = GetParam();
  const StepFacts facts = FactsOf(its.plan);
  Noise noise(12);
  for (int round = 0; round < 10; ++round) {
    const Point point = RandomPoint(&noise, 1);
    const PlanAnswer with = Answer(facts, its.named_link, point, true);
    const PlanAnswer without = Answer(facts, its.named_link, point, false);
    EXPECT_NEAR(with.log_step, without.log_step, 1e-13);
    EXPECT_NEAR(with.sync_share, without.sync_share, 1e-13);
  }
}

// How steps differ, by the same differences.
TEST_P(AnswerOf, HasTheDerivativesOfItsSpread) {
  constexpr double kDistance = 1e-5;
  const PlanCase& its = GetParam();
  const StepFacts facts = FactsOf(its.plan);
  const WorkerSpread spread(facts);
  Noise noise(13);
  const Point point = RandomPoint(&noise, 0.3);
  const auto log_spread = [&](const Point& at) {
    return spread.Log(Answer(facts, its.named_link, at, false),
                      std::exp(at[kWorkloadColumn + kStragglerSpread]));
  };
  const PlanAnswer answer = Answer(facts, its.named_link, point, true);
  int kinks = 0;
  for (std::size_t column = 0; column < point.size(); ++column) {
    const auto difference = [&](double h) {
      Point above = point;
      Point below = point;
      above[column] += h;
      below[column] -= h;
      return (log_spread(above) - log_spread(below)) / (2 * h);
    };
    if (std::abs(difference(kDistance) - difference(kDistance / 2)) > 1e-6) {
      ++kinks;
      continue;
    }
    EXPECT_NEAR(WorkerSpread::Slope(answer, static_cast<int>(column)), difference(kDistance), 1e-6)
        << "column " << column;
  }
  EXPECT_LE(kinks, 2);
}

// ln D of one device is that of a normal law over its micro-steps; of many, what the slowest of
// those that are waited for differs by.
TEST(WorkerSpread, ByHand) {
  const double q95 = NormalQuantile(0.95);
  Plan plan = OnNodes(1, 1, Strategy::kNone);
  plan.accumulation_steps = 4;
  constexpr double kSigma = 0.07;
  const auto log_spread = [&](const Plan& of) {
    Noise noise(14);
    const Point point = RandomPoint(&noise, 0);
    const StepFacts facts = FactsOf(of);
    const PlanAnswer answer = Answer(facts, false, point, false);
    const double share = (answer.step.forward + answer.step.backward).si() /
                         std::exp(answer.log_step) / of.accumulation_steps;
    return WorkerSpread(facts).Log(answer, kSigma) - std::log(share);
  };
  EXPECT_NEAR(log_spread(plan), std::log(q95 * kSigma * 2), 1e-9);
  const auto slowest = [&](int workers, int backup) {
    return std::log(kSigma * (NormalRankQuantile(0.95, workers, backup) -
                              NormalRankQuantile(0.5, workers, backup)));
  };
  Plan many = OnNodes(4, 2, Strategy::kRing);
  EXPECT_NEAR(log_spread(many), slowest(8, 0), 1e-9);
  many.backup_workers = 3;
  EXPECT_NEAR(log_spread(many), slowest(8, 3), 1e-9);
  // Nobody waits for others at asynchronous servers.
  EXPECT_NEAR(log_spread(OnNodes(4, 1, Strategy::kPsAsync, 2)), slowest(1, 0), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Plans, AnswerOf, ::testing::ValuesIn(PlanCases()),
                         [](const auto& its) { return its.param.name; });

TEST(Answer, IsWhatTheStepSays) {
  const Truth truth = PlausibleTruth();
  const SyntheticProblem synthetic(truth);
  Noise noise(1);
  const Point point = RandomPoint(&noise, 0);
  for (const PlanCase& its : PlanCases()) {
    // The synthetic runs have the default buckets of collectives.
    if (its.named_link || UsesServers(its.plan.strategy)) continue;
    const PlanAnswer answer = Answer(FactsOf(its.plan), false, point, false);
    EXPECT_NEAR(std::exp(answer.log_step) / synthetic.TrueStep("resnet50", its.plan).si(), 1, 1e-12)
        << its.name;
    const StepTime<double> step =
        EvaluateStep(FactsOf(its.plan), truth.cluster, truth.workloads.at("resnet50"));
    EXPECT_NEAR(answer.sync_share, (step.exposed() + step.straggler_wait) / step.total(), 1e-12)
        << its.name;
  }
}

TEST(Answer, OfOneDeviceKnowsNoNetwork) {
  Noise noise(2);
  const PlanAnswer answer =
      Answer(FactsOf(OnNodes(1, 1, Strategy::kNone)), false, RandomPoint(&noise, 0), true);
  EXPECT_EQ(answer.sync_share, 0);
  for (std::size_t i = 0; i < kClusterParameterCount; ++i) {
    EXPECT_EQ(answer.log_step_gradient[i], 0) << kClusterParameterSpecs[i].name;
  }
  EXPECT_GT(answer.log_step_gradient[int{kClusterParameterCount} + kSampleTime], 0.5);
}

// ---- Residuals.

PlanRows RowsOf(const Plan& plan, std::vector<MeasuredRow> rows, std::vector<int> hosts = {}) {
  PlanRows result;
  result.model = PlanModel(FactsOf(plan));
  result.host_offsets = std::move(hosts);
  result.log_sd = 0.08;
  result.rows = std::move(rows);
  for (const MeasuredRow& row : result.rows) {
    if (row.log_spread && !result.spread) result.spread.emplace(result.model.facts());
  }
  return result;
}

// Steps and shares around those of the model at `point`, from very near to very far.
std::vector<MeasuredRow> SpreadRows(const Plan& plan, const Point& point, bool named_link) {
  const PlanAnswer answer = Answer(FactsOf(plan), named_link, point, false);
  const auto near_share = [&](double difference) {
    return std::optional<double>(answer.sync_share + difference);
  };
  return {{0, answer.log_step + 0.01, near_share(0.02)},
          {1, answer.log_step - 0.3, std::nullopt},
          {2, answer.log_step + 2.5, near_share(-0.2)},
          {3, answer.log_step - 0.05, near_share(0.4)},
          {4, answer.log_step, std::nullopt}};
}

// The residuals of a cost at a point, with one Jacobian over all its blocks.
struct Evaluation {
  std::vector<double> residuals;
  std::vector<std::vector<double>> jacobian;  // by residual, then by parameter

  // Those of another as well.
  void Add(const Evaluation& other) {
    residuals.insert(residuals.end(), other.residuals.begin(), other.residuals.end());
    jacobian.insert(jacobian.end(), other.jacobian.begin(), other.jacobian.end());
  }
  double cost() const {
    double sum = 0;
    for (const double r : residuals) sum += r * r;
    return sum;
  }
  // J'r and J'J.
  std::vector<double> Gradient() const {
    std::vector<double> gradient(jacobian.front().size());
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      for (std::size_t j = 0; j < gradient.size(); ++j) {
        gradient[j] += residuals[i] * jacobian[i][j];
      }
    }
    return gradient;
  }
  std::vector<double> Normal() const {
    const std::size_t n = jacobian.front().size();
    std::vector<double> normal(n * n);
    for (const std::vector<double>& row : jacobian) {
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) normal[i * n + j] += row[i] * row[j];
      }
    }
    return normal;
  }
};

constexpr std::size_t kOwnColumns = kLinkColumn;  // of the cluster and the workload

// `values`: the cluster's, the workload's, then one for each group of hosts.
Evaluation EvaluateCost(const PlanCost& cost, const std::vector<double>& values) {
  std::vector<const double*> blocks = {values.data(), values.data() + kClusterParameterCount};
  std::vector<int> sizes = {kClusterParameterCount, kWorkloadParameterCount};
  for (std::size_t h = kOwnColumns; h < values.size(); ++h) {
    blocks.push_back(&values[h]);
    sizes.push_back(1);
  }
  EXPECT_EQ(cost.parameter_block_sizes(), sizes);
  Evaluation result;
  const auto count = static_cast<std::size_t>(cost.num_residuals());
  result.residuals.resize(count);
  std::vector<std::vector<double>> jacobians;
  for (const int size : sizes) jacobians.emplace_back(count * static_cast<std::size_t>(size), 777);
  std::vector<double*> pointers;
  for (auto& jacobian : jacobians) pointers.push_back(jacobian.data());
  EXPECT_TRUE(cost.Evaluate(blocks.data(), result.residuals.data(), pointers.data()));
  result.jacobian.resize(count);
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      const auto size = static_cast<std::size_t>(sizes[b]);
      for (std::size_t i = 0; i < size; ++i) {
        result.jacobian[r].push_back(jacobians[b][r * size + i]);
      }
    }
  }
  // Without derivatives the residuals are the same.
  std::vector<double> again(count);
  EXPECT_TRUE(cost.Evaluate(blocks.data(), again.data(), nullptr));
  for (std::size_t r = 0; r < count; ++r) EXPECT_NEAR(again[r], result.residuals[r], 1e-9);
  return result;
}

Evaluation EvaluateCost(const PlanRows& plan, const std::vector<double>& values) {
  return EvaluateCost(PlanCost({&plan}), values);
}

std::vector<double> ValuesAt(const Point& point, const std::vector<double>& links = {}) {
  std::vector<double> values(point.begin(), point.begin() + kOwnColumns);
  values.insert(values.end(), links.begin(), links.end());
  return values;
}

double Robust(double z) { return 2 * (std::sqrt(1 + z * z) - 1); }
double RobustInverse(double cost) { return std::sqrt(std::pow(1 + cost / 2, 2) - 1); }

// s_x of a measured share, from what one row of it costs.
double ShareSd(double measured) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(3);
  const Point point = RandomPoint(&noise, 0.2);
  const PlanAnswer answer = Answer(FactsOf(plan), false, point, false);
  const PlanRows one = RowsOf(plan, {{0, answer.log_step, measured}});
  const double cost = EvaluateCost(one, ValuesAt(point)).cost();
  return std::abs(answer.sync_share - measured) / RobustInverse(cost);
}

TEST(PlanCost, WeighsSharesAsTheHeaderSays) {
  for (const double measured : {0.0, 0.1, 0.3, 0.95}) {
    EXPECT_NEAR(ShareSd(measured), std::hypot(0.05, 0.3 * measured), 1e-6) << measured;
  }
}

TEST(PlanCost, CostsWhatItsRowsCost) {
  for (const PlanCase& its : PlanCases()) {
    if (its.named_link) continue;
    Noise noise(4);
    Point point = RandomPoint(&noise, 0.2);
    point[kShareColumn] = 0;  // which no calibration fits
    const PlanRows plan = RowsOf(its.plan, SpreadRows(its.plan, point, false));
    const PlanAnswer answer = Answer(plan.model.facts(), false, point, false);
    double expected = 0;
    for (const MeasuredRow& row : plan.rows) {
      expected += Robust((answer.log_step - row.log_step) / 0.08);
      if (!row.sync_share) continue;
      expected += Robust((answer.sync_share - *row.sync_share) / ShareSd(*row.sync_share));
    }
    EXPECT_NEAR(EvaluateCost(plan, ValuesAt(point)).cost(), expected, 1e-6 * expected) << its.name;
  }
}

TEST(PlanCost, NearRowsCountBySquareAndFarOnesByDistance) {
  const Plan plan = OnNodes(2, 1, Strategy::kRing);
  Noise noise(5);
  const Point point = RandomPoint(&noise, 0.2);
  const double log_step = Answer(FactsOf(plan), false, point, false).log_step;
  const auto cost_at = [&](double z) {
    const PlanRows one = RowsOf(plan, {{0, log_step + z * 0.08, std::nullopt}});
    return EvaluateCost(one, ValuesAt(point)).cost();
  };
  EXPECT_NEAR(cost_at(0.02) / cost_at(0.01), 4, 1e-2);
  EXPECT_NEAR(cost_at(0.01), 1e-4, 1e-7);
  EXPECT_NEAR(cost_at(2000) / cost_at(1000), 2, 1e-2);
  EXPECT_NEAR(cost_at(-3), cost_at(3), 1e-9);
}

TEST(PlanCost, GradientIsThatOfHalfTheCost) {
  for (const PlanCase& its : PlanCases()) {
    Noise noise(6);
    const Point point = RandomPoint(&noise, 0.3);
    const std::vector<int> hosts = its.named_link ? std::vector<int>{100, 101} : std::vector<int>();
    std::vector<MeasuredRow> rows = SpreadRows(its.plan, point, its.named_link);
    const PlanAnswer answer = Answer(FactsOf(its.plan), its.named_link, point, false);
    const double log_spread = WorkerSpread(FactsOf(its.plan))
                                  .Log(answer, std::exp(point[kWorkloadColumn + kStragglerSpread]));
    rows[0].log_spread = log_spread + 0.2;
    rows[1].log_spread = log_spread - 0.5;
    PlanRows plan = RowsOf(its.plan, std::move(rows), hosts);
    for (const double above : {-0.5, -0.05, 0.1, 4.0}) {
      plan.stopped.push_back({9, answer.log_step + above});
    }
    // The slower of two links is the one that was answered.
    const std::vector<double> values =
        its.named_link ? ValuesAt(point, {point[kLinkColumn] + 0.5, point[kLinkColumn]})
                       : ValuesAt(point);
    const std::vector<double> gradient = EvaluateCost(plan, values).Gradient();
    ASSERT_EQ(gradient.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto difference = [&](double h) {
        std::vector<double> above = values;
        std::vector<double> below = values;
        above[i] += h;
        below[i] -= h;
        return (EvaluateCost(plan, above).cost() - EvaluateCost(plan, below).cost()) / (4 * h);
      };
      const double fine = difference(1e-5);
      if (std::abs(fine - difference(2e-5)) > 1e-4) continue;  // a corner of the model
      EXPECT_NEAR(gradient[i], fine, 1e-5 * (1 + std::abs(fine))) << its.name << ", value " << i;
    }
  }
}

// Of both the same cost, gradient and normal equations.
void ExpectSameEquations(const Evaluation& its, const Evaluation& other) {
  EXPECT_NEAR(its.cost(), other.cost(), 1e-9 * other.cost());
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < b.size(); ++i) {
      EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i])));
    }
  };
  expect_near(its.Gradient(), other.Gradient());
  expect_near(its.Normal(), other.Normal());
}

TEST(PlanCost, RowsTogetherAreRowsApart) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsAsync}) {
    const Plan plan = OnNodes(4, 2, strategy, UsesServers(strategy) ? 2 : 0);
    Noise noise(7);
    const Point point = RandomPoint(&noise, 0.3);
    const std::vector<MeasuredRow> rows = SpreadRows(plan, point, false);
    Evaluation apart;
    for (const MeasuredRow& row : rows) {
      apart.Add(EvaluateCost(RowsOf(plan, {row}), ValuesAt(point)));
    }
    ExpectSameEquations(EvaluateCost(RowsOf(plan, rows), ValuesAt(point)), apart);
  }
}

// Few keep their residuals, many are joined.
TEST(PlanCost, PlansTogetherArePlansApart) {
  Noise noise(11);
  const Point point = RandomPoint(&noise, 0.3);
  const std::vector<double> values =
      ValuesAt(point, {point[kLinkColumn] + 0.5, point[kLinkColumn]});
  std::vector<PlanRows> plans;
  for (int nodes = 2; nodes < 30; ++nodes) {
    const Plan plan =
        OnNodes(nodes, 1 + nodes % 3, nodes % 2 == 0 ? Strategy::kRing : Strategy::kTree);
    plans.push_back(RowsOf(plan, SpreadRows(plan, point, true), {50, 51}));
    if (nodes % 4 == 0) plans.back().stopped.push_back({9, plans.back().rows[0].log_step});
  }
  for (const std::size_t count : {std::size_t{2}, plans.size()}) {
    std::vector<const PlanRows*> together;
    Evaluation apart;
    for (std::size_t p = 0; p < count; ++p) {
      together.push_back(&plans[p]);
      apart.Add(EvaluateCost(plans[p], values));
    }
    const PlanCost joined(together);
    EXPECT_EQ(joined.num_residuals() < 2 * static_cast<int>(count), count > 2);
    ExpectSameEquations(EvaluateCost(joined, values), apart);
  }
}

// What was worked out at one point is no answer at another.
TEST(PlanCost, IsThatOfThePoint) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(12);
  const Point first = RandomPoint(&noise, 0.2);
  const Point second = RandomPoint(&noise, 0.2);
  const PlanRows rows = RowsOf(plan, SpreadRows(plan, first, false));
  const PlanCost kept({&rows});
  for (const Point* point : {&first, &second, &second, &first}) {
    const Evaluation its = EvaluateCost(kept, ValuesAt(*point));
    const Evaluation fresh = EvaluateCost(rows, ValuesAt(*point));
    EXPECT_EQ(its.residuals, fresh.residuals);
    EXPECT_EQ(its.jacobian, fresh.jacobian);
  }
}

// -2 ln Phi by a table of the normal law, counted by distance where it is far.
TEST(PlanCost, ARunThatWasStoppedIsABound) {
  const Plan plan = OnNodes(2, 1, Strategy::kRing);
  Noise noise(5);
  const Point point = RandomPoint(&noise, 0.2);
  const double log_step = Answer(FactsOf(plan), false, point, false).log_step;
  const auto cost_at = [&](double b) {
    PlanRows rows = RowsOf(plan, {});
    rows.stopped = {{0, log_step - b * 0.08}};
    return EvaluateCost(rows, ValuesAt(point)).cost();
  };
  EXPECT_NEAR(cost_at(0), Robust(std::sqrt(2 * std::log(2.0))), 1e-9);
  EXPECT_NEAR(cost_at(1), Robust(std::sqrt(-2 * std::log(0.841344746))), 1e-8);
  EXPECT_NEAR(cost_at(-1), Robust(std::sqrt(-2 * std::log(0.158655254))), 1e-8);
  EXPECT_NEAR(cost_at(-3), Robust(std::sqrt(-2 * std::log(0.001349898))), 1e-6);
  EXPECT_LT(cost_at(3), 0.003) << "a step that goes on for longer says no more";
  EXPECT_EQ(cost_at(20), 0);
  // Smooth where one form of Phi takes over from another.
  EXPECT_NEAR(cost_at(-35.001) - cost_at(-35), cost_at(-35) - cost_at(-34.999), 1e-4);
  EXPECT_NEAR(cost_at(-100) / cost_at(-200), 0.5, 0.01)
      << "what contradicts by far by its distance";
}

// A time and a bound of one plan cost as much as both apart.
TEST(PlanCost, ABoundAddsToWhatWasMeasured) {
  const Plan plan = OnNodes(2, 1, Strategy::kRing);
  Noise noise(6);
  const Point point = RandomPoint(&noise, 0.2);
  const double log_step = Answer(FactsOf(plan), false, point, false).log_step;
  const std::vector<StoppedRow> stopped = {{1, log_step + 0.2}};
  for (const double off : {-0.3, 0.1, 0.3}) {
    PlanRows both = RowsOf(plan, {{0, log_step + off, std::nullopt}});
    const double of_row = EvaluateCost(both, ValuesAt(point)).cost();
    PlanRows bound = RowsOf(plan, {});
    bound.stopped = both.stopped = stopped;
    const double of_bound = EvaluateCost(bound, ValuesAt(point)).cost();
    EXPECT_NEAR(EvaluateCost(both, ValuesAt(point)).cost(), of_row + of_bound, 1e-9) << off;
  }
}

// One device's steps differ as its workload does: by a tenth more or less counts as a third of a
// standard deviation. Where a network is between, what is measured is the most that it can be.
TEST(PlanCost, HowStepsDifferTellsOfTheWorkers) {
  Noise noise(5);
  const Point point = RandomPoint(&noise, 0.2);
  const double sigma = std::exp(point[kWorkloadColumn + kStragglerSpread]);
  const auto cost_at = [&](const Plan& plan, double more) {
    const PlanAnswer answer = Answer(FactsOf(plan), false, point, false);
    // One device's step is its passes and its update; a normal law has 0.95 at 1.645 above its
    // median.
    const double passes = (answer.step.forward + answer.step.backward) / answer.step.total();
    const double of_one = std::log(1.6448536 * sigma * passes);
    const double model = WorkerSpread(FactsOf(plan)).Log(answer, sigma);
    if (plan.workers() == 1) {
      EXPECT_NEAR(model, of_one, 1e-6);
    } else {
      EXPECT_LT(model, of_one) << "the slowest of several differs less";
    }
    MeasuredRow row{0, answer.log_step, std::nullopt, model + more};
    return EvaluateCost(RowsOf(plan, {row}), ValuesAt(point)).cost();
  };
  const Plan one = OnNodes(1, 1, Strategy::kNone);
  const Plan ring = OnNodes(4, 2, Strategy::kRing);
  EXPECT_NEAR(cost_at(one, 0), 0, 1e-9);
  EXPECT_NEAR(cost_at(one, 0.3), Robust(1), 1e-9);
  EXPECT_NEAR(cost_at(one, -0.3), Robust(1), 1e-9);
  EXPECT_LT(cost_at(ring, 0.9), 0.003);
  EXPECT_NEAR(cost_at(ring, -0.3), Robust(std::sqrt(-2 * std::log(0.158655254))), 1e-8);
}

TEST(PlanCost, OneRowHasNothingLeftOver) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(8);
  const Point point = RandomPoint(&noise, 0.3);
  const double log_step = Answer(FactsOf(plan), false, point, false).log_step;
  const Evaluation one =
      EvaluateCost(RowsOf(plan, {{0, log_step + 0.5, std::nullopt}}), ValuesAt(point));
  EXPECT_NEAR(one.residuals[0] * one.residuals[0], one.cost(), 1e-9 * one.cost());
  EXPECT_LT(one.residuals[0], 0) << "the model is too fast: its residual has the sign of that";
}

TEST(PlanCost, SharesHaveAResidualOnlyWhereTheyWereMeasured) {
  const auto count = [](const std::vector<MeasuredRow>& rows) {
    const PlanRows plan = RowsOf(OnNodes(4, 2, Strategy::kRing), rows);
    return PlanCost({&plan}).num_residuals();
  };
  const int one = count({{0, 0.0, std::nullopt}});
  EXPECT_EQ(count({{0, 0.0, 0.2}}), one + 1);
  EXPECT_EQ(count({{0, 0.0, 0.0}}), one + 1) << "a share of nothing is a measurement too";
  const int two = count({{0, 0.0, std::nullopt}, {1, 0.1, std::nullopt}});
  EXPECT_EQ(count({{0, 0.0, std::nullopt}, {1, 0.1, 0.2}}), two + 1) << "of one row of two";
  EXPECT_EQ(count({{0, 0.0, 0.3}, {1, 0.1, 0.2}}), two + 1) << "both have one gradient";
}

TEST(PlanCost, OnlyTheSlowestHostIsHeldResponsible) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(9);
  const Point point = RandomPoint(&noise, 0.2);
  const std::vector<MeasuredRow> rows = SpreadRows(plan, point, true);
  const double slow = point[kLinkColumn];
  for (std::size_t slowest = 0; slowest < 3; ++slowest) {
    std::vector<double> links = {slow + 0.4, slow + 0.7, slow + 1};
    links[slowest] = slow;
    const Evaluation its = EvaluateCost(RowsOf(plan, rows, {50, 51, 52}), ValuesAt(point, links));
    const Evaluation alone = EvaluateCost(RowsOf(plan, rows, {50}), ValuesAt(point, {slow}));
    EXPECT_NEAR(its.cost(), alone.cost(), 1e-9 * alone.cost());
    for (std::size_t r = 0; r < its.residuals.size(); ++r) {
      for (std::size_t h = 0; h < 3; ++h) {
        const double expected = h == slowest ? alone.jacobian[r][kOwnColumns] : 0;
        EXPECT_NEAR(its.jacobian[r][kOwnColumns + h], expected, 1e-9) << slowest;
      }
      EXPECT_EQ(its.jacobian[r][kLinkBandwidth], 0) << "the cluster's link is not in use";
    }
    EXPECT_GT(std::abs(alone.Gradient()[kOwnColumns]), 0.01) << "the link must matter here";
  }
}

// A step waits for the host that computes slowest; hosts without a factor compute as ever.
TEST(PlanCost, OnlyTheSlowestComputeIsHeldResponsible) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(9);
  const Point point = RandomPoint(&noise, 0.2);
  const std::vector<MeasuredRow> rows = SpreadRows(plan, point, false);
  const auto evaluate = [&](const std::vector<double>& factors, bool others) {
    PlanRows of_hosts = RowsOf(plan, rows);
    of_hosts.slowdown_offsets.assign(factors.size(), 50);
    of_hosts.others = others;
    return EvaluateCost(of_hosts, ValuesAt(point, factors));
  };
  const Evaluation none = EvaluateCost(RowsOf(plan, rows), ValuesAt(point));
  const Evaluation slow = evaluate({0.3}, false);
  EXPECT_GT(std::abs(slow.Gradient()[kOwnColumns]), 0.01);
  for (const bool others : {false, true}) {
    const Evaluation two = evaluate({0.1, 0.3}, others);
    EXPECT_NEAR(two.cost(), slow.cost(), 1e-9 * slow.cost());
    EXPECT_EQ(two.Gradient()[kOwnColumns], 0);
    EXPECT_NEAR(two.Gradient()[kOwnColumns + 1], slow.Gradient()[kOwnColumns], 1e-9);
  }
  EXPECT_NEAR(evaluate({-0.3}, true).cost(), none.cost(), 1e-9 * none.cost());
  EXPECT_EQ(evaluate({-0.3}, true).Gradient()[kOwnColumns], 0) << "a fast host waits";
  EXPECT_GT(std::abs(evaluate({-0.3}, false).cost() - none.cost()), 1e-3);
}

// The solver asks for no derivatives of what is held constant.
TEST(PlanCost, BlocksMayBeConstant) {
  const Plan plan = OnNodes(4, 2, Strategy::kRing);
  Noise noise(10);
  const Point point = RandomPoint(&noise, 0.2);
  const PlanRows rows = RowsOf(plan, SpreadRows(plan, point, true), {50, 51});
  const std::vector<double> values = ValuesAt(point, {point[kLinkColumn], 30});
  const Evaluation all = EvaluateCost(rows, values);
  const PlanCost cost({&rows});
  const double* blocks[] = {values.data(), values.data() + kClusterParameterCount,
                            &values[kOwnColumns], &values[kOwnColumns + 1]};
  std::vector<double> residuals(3);
  std::vector<double> workload(3 * std::size_t{kWorkloadParameterCount});
  double* jacobians[] = {nullptr, workload.data(), nullptr, nullptr};
  ASSERT_TRUE(cost.Evaluate(blocks, residuals.data(), jacobians));
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_DOUBLE_EQ(residuals[r], all.residuals[r]);
    for (std::size_t i = 0; i < kWorkloadParameterCount; ++i) {
      EXPECT_DOUBLE_EQ(workload[r * kWorkloadParameterCount + i],
                       all.jacobian[r][kClusterParameterCount + i]);
    }
  }
}

// ---- What a fit makes of runs.

SyntheticProblem OneWorkload() {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  return SyntheticProblem(truth);
}

// Only equal plans may share an answer: what is predicted of each run is what its own plan takes.
TEST(RowsOfAFit, AreThoseOfTheirOwnPlan) {
  SyntheticProblem synthetic = OneWorkload();
  const auto add = [&](const auto& change) {
    Plan plan = AllreducePlan({1, 1, 1, 1}, 32);
    change(&plan);
    synthetic.Add("resnet50", plan);
    synthetic.Add("resnet50", plan, 0.05);
  };
  add([](Plan*) {});
  add([](Plan* p) { p->local_batch = 16; });
  add([](Plan* p) { p->accumulation_steps = 2; });
  add([](Plan* p) { p->strategy = Strategy::kTree; });
  add([](Plan* p) { p->placement = {2, 1, 1}; });
  add([](Plan* p) { p->placement = {2, 2}; });
  add([](Plan* p) { p->overlap = Overlap::kNone; });
  add([](Plan* p) { p->backup_workers = 1; });
  add([](Plan* p) { p->link.bandwidth = GigabitsPerSecond(1.0); });
  add([](Plan* p) { p->link.rtt = Milliseconds(5.0); });
  add([](Plan* p) {
    p->link.rtt = Milliseconds(5.0);
    p->link.loss = 0.01;
  });
  add([](Plan* p) {
    p->link.rtt = Milliseconds(5.0);
    p->link.loss = 0.01;
    p->link.congestion_control = CongestionControl::kReno;
  });
  // Among them some of as many buckets, which are cut elsewhere; where compute hides most of them,
  // that counts.
  for (int mebibytes = 18; mebibytes <= 28; mebibytes += 2) {
    add([&](Plan* p) {
      p->local_batch = 128;
      p->bucket = Mebibytes(static_cast<double>(mebibytes));
    });
  }
  const auto servers = [](Plan* p) {
    p->strategy = Strategy::kPsSync;
    p->servers = 2;
  };
  add(servers);
  add([&](Plan* p) {
    servers(p);
    p->server.sharding = Sharding::kRoundRobin;
  });
  add([&](Plan* p) {
    servers(p);
    p->server.pipelined = true;
  });
  add([&](Plan* p) {
    servers(p);
    p->server_link.bandwidth = GigabitsPerSecond(1.0);
  });
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt,
                            kSyntheticDevice);
  for (std::size_t i = 0; i < outcome.residuals.size(); ++i) {
    const auto& run = synthetic.problem().runs[i];
    const Duration<> expected = predictor.PredictStep(run.plan).total();
    EXPECT_NEAR(outcome.residuals[i].predicted / expected, 1, 1e-9) << run.place.line;
    EXPECT_NEAR(outcome.residuals[i].log_ratio, std::log(run.step_time / expected), 1e-9);
  }
}

// The exposed synchronisation tells the overlap, which steps alone hardly do.
TEST(RowsOfAFit, ExposedSynchronisationTellsMore) {
  SyntheticProblem without = OneWorkload();
  for (const Placement& placement : std::vector<Placement>{{1}, {2}, {1, 1}, {2, 2}}) {
    for (const int batch : SyntheticBatches("resnet50")) {
      without.Add("resnet50", AllreducePlan(placement, batch));
    }
  }
  SyntheticProblem with = without;
  for (auto& run : with.problem().runs) {
    const StepTime<double> step = EvaluateStep(FactsOf(run.plan), without.truth().cluster,
                                               without.truth().workloads.at("resnet50"));
    run.exposed_sync = step.exposed() + step.straggler_wait;
  }
  const auto overlap = [](const SyntheticProblem& synthetic) {
    const CalibrationOutcome outcome = Calibrate(synthetic.problem());
    EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
    return outcome.cluster.calibration->parameters[kOverlapShare];
  };
  EXPECT_LT(overlap(with).log_sd, 0.95 * overlap(without).log_sd);
}

// One device waits for nobody, whatever its framework spends in the call; servers' phases are not
// the waits of an all-reduce.
TEST(RowsOfAFit, ExposedSynchronisationCountsOnlyWhereWorkersWaitForEachOther) {
  SyntheticProblem without = OneWorkload();
  for (const int batch : SyntheticBatches("resnet50")) {
    without.Add("resnet50", AllreducePlan({1}, batch));
    Plan servers = AllreducePlan({1, 1, 1}, batch);
    servers.strategy = Strategy::kPsSync;
    servers.servers = 1;
    without.Add("resnet50", servers);
  }
  SyntheticProblem with = without;
  for (auto& run : with.problem().runs) run.exposed_sync = run.step_time * 0.9;
  const CalibrationOutcome a = Calibrate(without.problem());
  const CalibrationOutcome b = Calibrate(with.problem());
  ASSERT_TRUE(a.IsUsable());
  ASSERT_TRUE(b.IsUsable());
  for (std::size_t i = 0; i < a.cluster.calibration->parameters.size(); ++i) {
    EXPECT_EQ(a.cluster.calibration->parameters[i].value,
              b.cluster.calibration->parameters[i].value);
  }
}

// Steps as workers make them: each waits for the slowest of its own, and what crosses the network
// differs for all together.
Run Simulated(const SyntheticProblem& synthetic, const Plan& plan, double jitter, int steps,
              Noise* noise) {
  const WorkloadParameters<double>& workload = synthetic.truth().workloads.at("resnet50");
  const StepTime<double> step = EvaluateStep(FactsOf(plan), synthetic.truth().cluster, workload);
  const double compute = step.compute().si();
  const double spread = workload.straggler_spread() * (step.forward + step.backward).si() /
                        std::sqrt(plan.accumulation_steps);
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    double slowest = -1e9;
    for (int w = 0; w < plan.workers(); ++w) slowest = std::max(slowest, noise->Next());
    times.push_back(compute + spread * slowest +
                    step.exposed().si() * std::exp(jitter * noise->Next()));
  }
  std::sort(times.begin(), times.end());
  double mean = 0;
  for (const double time : times) mean += time / steps;
  double squares = 0;
  for (const double time : times) squares += std::pow(time - mean, 2);
  const auto at = [&](double q) {
    return Seconds(times[static_cast<std::size_t>(q * (steps - 1))]);
  };
  Run run;
  run.workload = "resnet50";
  run.device = kSyntheticDevice;
  run.plan = plan;
  run.step_time = Seconds(mean);
  run.spread = {Seconds(std::sqrt(squares / (steps - 1))), at(0.5), at(0.95), at(0.99)};
  return run;
}

Plan Wide(int nodes) { return AllreducePlan(Placement(static_cast<std::size_t>(nodes), 4), 24); }

const ParameterEstimate& Spread(const CalibrationOutcome& outcome) {
  const Calibration& calibration = *outcome.cluster.calibration;
  const std::string scope = WorkloadScope(*FindWorkload("resnet50"), kSyntheticDevice);
  const std::optional<int> at = calibration.Find(scope, "straggler_spread");
  return calibration.parameters[static_cast<std::size_t>(at.value())];
}

// What workers differ by is unknown from the mean times of one device, and known from how its steps
// differ; forecasts of many workers know it then.
TEST(SpreadAsData, OfOneDeviceTellsHowLongManyWait) {
  for (const double sigma : {0.01, 0.1, 0.4}) {
    Truth truth = PlausibleTruth();
    truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
    truth.workloads["resnet50"].si[kStragglerSpread] = sigma;
    SyntheticProblem synthetic(truth);
    Noise noise(11);
    for (const int batch : SyntheticBatches("resnet50")) {
      synthetic.problem().runs.push_back(
          Simulated(synthetic, AllreducePlan({1}, batch), 0, 60, &noise));
    }
    const CalibrationOutcome by_quantiles = Calibrate(synthetic.problem());
    CalibrationProblem of_sd = synthetic.problem();
    CalibrationProblem without = synthetic.problem();
    for (auto& run : of_sd.runs) run.spread = {run.spread.sd, {}, {}, {}};
    for (auto& run : without.runs) run.spread = {};
    const CalibrationOutcome by_sd = Calibrate(of_sd);
    const CalibrationOutcome unknown = Calibrate(without);
    for (const CalibrationOutcome* outcome : {&by_quantiles, &by_sd}) {
      EXPECT_NEAR(std::log(Spread(*outcome).value / sigma), 0, 0.25) << sigma;
      EXPECT_LT(Spread(*outcome).log_sd, 0.25);
      EXPECT_EQ(Spread(*outcome).decided_by, DecidedBy::kData);
    }
    EXPECT_GT(Spread(unknown).log_sd, 0.5) << "mean times of one device say nothing of it";

    const auto wait_of = [&](const CalibrationOutcome& outcome) {
      return Predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice)
          .PredictStep(Wide(16))
          .straggler_wait;
    };
    const Duration<> truly =
        EvaluateStep(FactsOf(Wide(16)), truth.cluster, truth.workloads.at("resnet50"))
            .straggler_wait;
    EXPECT_NEAR(wait_of(by_sd) / truly, 1, 0.25) << sigma;
    EXPECT_GT(std::abs(std::log(wait_of(unknown) / truly)), 0.5) << sigma;
  }
}

// Where a network makes steps differ, that is not put on the workers, and the quantiles of a larger
// job have both.
TEST(SpreadAsData, WhatTheNetworkAddsIsTheNetworks) {
  constexpr double kJitter = 0.3;
  SyntheticProblem synthetic = OneWorkload();
  Noise noise(12);
  for (const int batch : SyntheticBatches("resnet50")) {
    for (const Placement& placement :
         std::vector<Placement>{{1}, {1, 1}, {4, 4}, Placement(4, 1), Placement(4, 4)}) {
      synthetic.problem().runs.push_back(
          Simulated(synthetic, AllreducePlan(placement, batch), kJitter, 100, &noise));
    }
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable());
  const double sigma = synthetic.truth().workloads.at("resnet50").si[kStragglerSpread];
  EXPECT_NEAR(std::log(Spread(outcome).value / sigma), 0, 0.25);
  ASSERT_TRUE(outcome.cluster.calibration->sync_jitter.has_value());
  EXPECT_NEAR(*outcome.cluster.calibration->sync_jitter / kJitter, 1, 0.25);

  const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt,
                            kSyntheticDevice);
  const Prediction p = predictor.Predict(Wide(16));
  const auto wide = Simulated(synthetic, Wide(16), kJitter, 4000, &noise);
  const auto above = [](const auto& p95, const auto& p50) { return p95 / p50 - 1; };
  EXPECT_NEAR(above(p.p95, p.p50) / above(*wide.spread.p95, *wide.spread.p50), 1, 0.3);
}

// Devices of one node that hardly exchange, and yet differ by some per cent: nobody knows how much
// a network will make steps differ, and the forecast must not claim that it will by a multiple.
TEST(SpreadAsData, OfNearlyNoExchangeSaysLittleOfIt) {
  SyntheticProblem synthetic = OneWorkload();
  for (const Placement& placement : std::vector<Placement>{{1}, {2}, {4}}) {
    synthetic.Add("resnet50", AllreducePlan(placement, 64));
    auto& run = synthetic.problem().runs.back();
    run.spread.sd = run.step_time * (placement.front() == 1 ? 0.01 : 0.05);
  }
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.cluster.calibration->sync_jitter.has_value());
  EXPECT_NEAR(*outcome.cluster.calibration->sync_jitter, 0.1, 0.1);
  for (auto& run : synthetic.problem().runs) run.spread.sd = run.step_time * 50;
  EXPECT_LE(*Calibrate(synthetic.problem()).cluster.calibration->sync_jitter, 1);
}

// A fit sees the passes of a recomputed step as its forecast does.
TEST(GroupedRows, KnowWhatTheDeviceRecomputes) {
  SyntheticProblem synthetic = OneWorkload();
  synthetic.problem().runs.clear();
  synthetic.Add("resnet50", AllreducePlan({1, 1}, 4));
  synthetic.Add("resnet50", AllreducePlan({1, 1}, 64));
  CalibrationProblem problem = synthetic.problem();
  Workload& workload = problem.workloads.at("resnet50");
  workload.recompute = Recompute::kFull;
  for (const bool known : {false, true}) {
    problem.devices.clear();
    if (known) problem.devices[problem.runs.front().device] = T4();
    const Recomputation recomputation(workload, known ? std::optional(T4()) : std::nullopt);
    const std::vector<PlanRows> plans =
        GroupRows(problem, ParameterLayout(problem.cluster, problem.runs, problem.workloads,
                                           problem.devices, problem.statements));
    ASSERT_EQ(plans.size(), 2U);
    for (const PlanRows& plan : plans) {
      const StepFacts& facts = plan.model.facts();
      EXPECT_EQ(facts.recomputing.of_all, recomputation.At(facts.batch).of_all);
      EXPECT_EQ(facts.recomputing.of_forward, recomputation.At(facts.batch).of_forward);
      EXPECT_EQ(facts.recomputing.of_all > 0, known);
    }
  }
}

// What is taken of a run, by its columns: the quantiles before the deviation, and nothing where an
// exchange every so many steps makes them differ.
TEST(SpreadAsData, IsThatOfTheColumns) {
  SyntheticProblem synthetic = OneWorkload();
  const double q95 = NormalQuantile(0.95);
  const auto log_spread = [&](const StepSpread& spread, int local_steps = 1, int workers = 2,
                              bool message = false) -> std::optional<double> {
    synthetic.problem().runs.clear();
    Plan plan = AllreducePlan(Placement(static_cast<std::size_t>(workers), 1), 32);
    plan.local_steps = local_steps;
    synthetic.Add("resnet50", plan);
    synthetic.problem().runs.back().step_time = Seconds(2.0);
    synthetic.problem().runs.back().spread = spread;
    CalibrationProblem problem = synthetic.problem();
    problem.workloads.at("resnet50").communication_only = message;
    const std::vector<PlanRows> plans =
        GroupRows(problem, ParameterLayout(problem.cluster, problem.runs, problem.workloads,
                                           problem.devices, problem.statements));
    EXPECT_EQ(plans.size(), 1U);
    const std::optional<double> log = plans.at(0).rows.at(0).log_spread;
    EXPECT_EQ(plans.at(0).spread.has_value(), log.has_value());
    return log;
  };
  const auto expect = [](const std::optional<double>& log, double spread) {
    ASSERT_TRUE(log);
    EXPECT_NEAR(std::exp(*log), spread, 1e-12);
  };
  const Duration<> p50 = Seconds(1.9);
  const Duration<> p95 = Seconds(2.3);
  const Duration<> p99 = Seconds(2.6);
  const Duration<> sd = Seconds(0.1);
  expect(log_spread({sd, {}, {}, {}}), q95 * 0.1 / 2);
  expect(log_spread({sd, p50, p95, p99}), 0.4 / 2);
  expect(log_spread({sd, p50, {}, p99}), 0.7 / 2 * q95 / NormalQuantile(0.99));
  expect(log_spread({sd, p50, {}, {}}), q95 * 0.1 / 2);
  EXPECT_FALSE(log_spread({{}, p50, {}, {}}));
  EXPECT_FALSE(log_spread({sd, {}, {}, {}}, 4)) << "every fourth step holds an exchange";
  expect(log_spread({sd, {}, {}, {}}, 4, 1), q95 * 0.1 / 2);
  EXPECT_FALSE(log_spread({sd, {}, {}, {}}, 1, 2, true)) << "a message has no workers' compute";
  EXPECT_FALSE(log_spread({Seconds(1e-6), {}, {}, {}})) << "no clock tells so little";
}

// Repeats of two plans: the root of all squares over as many degrees as there are repeats.
TEST(RowsOfAFit, RepeatsScatterByTheirDegrees) {
  const auto plan = [](const std::vector<double>& log_steps) {
    PlanRows rows;
    for (const double log_step : log_steps) rows.rows.push_back({0, log_step, std::nullopt});
    return rows;
  };
  EXPECT_NEAR(*RepeatScatter({plan({0, 0.2}), plan({1, 1.1, 1.2}), plan({5})}),
              std::sqrt((0.02 + 0.02) / 3), 1e-12);
  EXPECT_FALSE(RepeatScatter({plan({0}), plan({1})}));
}

// Repeats of a plan share a part of their scatter, so that many weigh less than as many plans.
TEST(RowsOfAFit, ScatterMoreWhereTheyRepeat) {
  std::vector<PlanRows> plans(3);
  plans[1].rows.resize(1);
  plans[2].rows.resize(11);
  SetScatter(0.05, &plans);
  EXPECT_DOUBLE_EQ(plans[0].log_sd, 0.05) << "of runs that were stopped alone";
  EXPECT_DOUBLE_EQ(plans[1].log_sd, 0.05);
  EXPECT_DOUBLE_EQ(plans[2].log_sd, 0.1);
}

// Samples of plans have eight of each workload before more of any, in an order of chance.
TEST(RowsOfAFit, AreSampledWithAFewOfEachWorkload) {
  std::vector<PlanRows> plans(60);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].workload_offset = i < 10 ? 1 : i < 25 ? 2 : 3;
  }
  const std::vector<const PlanRows*> shuffled = Shuffled(plans);
  std::map<int, int> first;
  for (std::size_t i = 0; i < 24; ++i) ++first[shuffled[i]->workload_offset];
  EXPECT_EQ(first, (std::map<int, int>{{1, 8}, {2, 8}, {3, 8}}));
  std::vector<const PlanRows*> sorted = shuffled;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end()) << "each once";
  ASSERT_EQ(sorted.size(), plans.size());
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.begin() + 24));
  EXPECT_EQ(Shuffled(plans), shuffled);
}

// A clock that shows three digits shows steps of one length; which is no measurement of nought.
TEST(SpreadAsData, OfStepsThatNoClockTellsApartIsNone) {
  SyntheticProblem synthetic = OneWorkload();
  for (const int batch : {16, 64}) synthetic.Add("resnet50", AllreducePlan({1}, batch));
  const double without = Spread(Calibrate(synthetic.problem())).value;
  for (auto& run : synthetic.problem().runs) {
    run.spread = {Duration<>(), run.step_time, run.step_time, run.step_time};
  }
  EXPECT_EQ(Spread(Calibrate(synthetic.problem())).value, without);
}

// The forecast of what was measured has the spread that was measured, large update or not.
TEST(SpreadAsData, ComesBackAsItWasStated) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  truth.workloads["resnet50"].si[kUpdateTime] = 0.05;
  SyntheticProblem synthetic(truth);
  for (const int local_steps : {1, 16}) {
    synthetic.problem().runs.clear();
    Plan plan = AllreducePlan({1}, 8);
    plan.strategy = Strategy::kAllreduce;
    plan.local_steps = local_steps;
    synthetic.Add("resnet50", plan);
    auto& run = synthetic.problem().runs.back();
    run.spread.sd = run.step_time * 0.05;
    CalibrationProblem problem = synthetic.problem();
    problem.statements = {{"update_time", "resnet50", 0.05, std::nullopt, ""}};
    const CalibrationOutcome outcome = Calibrate(problem);
    const Predictor predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt,
                              kSyntheticDevice);
    const StepTime<double> step = predictor.PredictStep(plan);
    EXPECT_GT(step.update / step.total(), 0.2);
    EXPECT_NEAR(Spread(outcome).value * ((step.forward + step.backward) / step.total()), 0.05,
                0.005)
        << local_steps;
  }
}

TEST(SpreadAsData, ComesBackFromAFile) {
  SyntheticProblem synthetic = OneWorkload();
  Noise noise(13);
  for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, {4, 4}}) {
    synthetic.problem().runs.push_back(
        Simulated(synthetic, AllreducePlan(placement, 32), 0.2, 50, &noise));
  }
  const Cluster fitted = Calibrate(synthetic.problem()).cluster;
  const Cluster read = ParseCluster(FormatCluster(fitted), "fitted.yaml");
  EXPECT_EQ(read.calibration->sync_jitter, fitted.calibration->sync_jitter);
  EXPECT_TRUE(read.calibration->sync_jitter.has_value());
}

// ---- Runs that were stopped.

TEST(StoppedRuns, AreBounds) {
  SyntheticProblem synthetic = OneWorkload();
  Noise noise(14);
  for (const int batch : SyntheticBatches("resnet50")) {
    for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, {1, 1, 1}}) {
      synthetic.Add("resnet50", AllreducePlan(placement, batch), 0.03 * noise.Next());
    }
  }
  const auto with = [&](double times) {
    CalibrationProblem problem = synthetic.problem();
    auto run = problem.runs.back();
    run.plan = Wide(16);
    run.stopped = true;
    run.step_time = synthetic.TrueStep("resnet50", run.plan) * times;
    for (int i = 0; i < 3; ++i) problem.runs.push_back(run);
    return Calibrate(problem);
  };
  const auto forecast = [&](const CalibrationOutcome& outcome) {
    return Predictor(outcome.cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice)
        .PredictStep(Wide(16))
        .total()
        .si();
  };
  const CalibrationOutcome without = Calibrate(synthetic.problem());
  const CalibrationOutcome early = with(0.3);
  const CalibrationOutcome late = with(3);
  ASSERT_TRUE(late.IsUsable());
  EXPECT_NEAR(forecast(early) / forecast(without), 1, 0.02)
      << "it was stopped far too soon to tell";
  EXPECT_GT(forecast(late) / forecast(without), 1.5) << "it went on for longer than was believed";
  EXPECT_NEAR(early.mape, without.mape, 0.005) << "no time was missed";
  EXPECT_EQ(early.residuals.back().log_ratio, 0);
  EXPECT_GT(with(1000).residuals.back().log_ratio, 1)
      << "no parameter is believed to be so far off";
  EXPECT_EQ(early.cluster.calibration->range.max_nodes, 3) << "no step was seen on 16 nodes";
}

// The last of several says all that they say.
TEST(StoppedRuns, OfOnePlanCountOnce) {
  SyntheticProblem synthetic = OneWorkload();
  for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}}) {
    synthetic.Add("resnet50", AllreducePlan(placement, 32));
  }
  const auto forecast = [&](int times) {
    CalibrationProblem problem = synthetic.problem();
    for (int i = 0; i < times; ++i) {
      auto run = problem.runs.back();
      run.plan = Wide(4);
      run.stopped = true;
      run.step_time = Seconds(i == 0 ? 3.0 : 2.0);
      problem.runs.push_back(run);
    }
    return Calibrate(problem).residuals.back().predicted;
  };
  EXPECT_NEAR(forecast(20) / forecast(1), 1, 1e-6);
}

TEST(StoppedRuns, AloneTeachNothing) {
  SyntheticProblem synthetic = OneWorkload();
  synthetic.Add("resnet50", AllreducePlan({1, 1}, 32));
  synthetic.problem().runs.back().stopped = true;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  EXPECT_EQ(outcome.status, CalibrationOutcome::Status::kNoRuns);
  EXPECT_NE(outcome.message.find("stopped before a step ended"), std::string::npos);
}

// A workload of which every run was stopped is believed as before, and longer than that.
TEST(StoppedRuns, OfOneWorkloadLeaveTheOthersAlone) {
  SyntheticProblem synthetic(PlausibleTruth());
  for (const Placement& placement : std::vector<Placement>{{1}, {1, 1}, {1, 1, 1}}) {
    synthetic.Add("resnet50", AllreducePlan(placement, 32));
  }
  synthetic.Add("bert_base", AllreducePlan({1}, 8));
  synthetic.problem().runs.back().stopped = true;
  synthetic.problem().runs.back().step_time = Seconds(60.0);
  const CalibrationOutcome outcome = Calibrate(synthetic.problem());
  ASSERT_TRUE(outcome.IsUsable()) << outcome.message;
  EXPECT_GT(outcome.residuals.back().predicted, Seconds(30.0));
  EXPECT_LT(outcome.mape, 0.02);
}

}  // namespace
}  // namespace stepcast
