// The model of Pollux, written anew, against numbers of its authors' code; and how well it
// forecasts the public traces from few workers.
//
// "Published" numbers here were computed once by running petuum/adaptdl, branch osdi21-artifact,
// commit c793c708, simulator/goodput.py, unchanged, with Python 3.11, NumPy 1.24 and SciPy 1.10;
// derivatives for its L-BFGS-B came from complex steps in place of autograd.
#include "tests/calibrate/pollux_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/io/import_adaptdl.h"
#include "tests/support/datasets.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class
using Rows = std::vector<PolluxRow>;

// The first two stand in the published tests (adaptdl/fit_test.py, sched/.../pollux_test.py).
constexpr PolluxParameters kParameters[] = {
    {0.1, 0.01, 0.5, 1.0, 1e-6, 1e-6, 1.2},
    {0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317, 1.14},
    {0.02, 0.0007, 0.1, 0.026, 0.033, 0.0046, 10.0},
    {0.05, 0.003, 0.4, 1e-8, 0.2, 1e-8, 1.0},
};
constexpr PolluxParameters kTruth = {0.08, 0.004, 0.15, 0.02, 0.05, 0.008, 2.5};

Placement Even(int nodes, int workers) {
  Placement placement(static_cast<std::size_t>(nodes), workers / nodes);
  for (int i = 0; i < workers % nodes; ++i) ++placement[static_cast<std::size_t>(i)];
  return placement;
}

TEST(Pollux, StepsAreThePublishedOnes) {
  struct Case {
    int parameters;
    int nodes;
    int workers;
    int batch;
    int micro_steps;
    double accumulation;
    double network;
    double optimizer;
    double step;
  };
  static constexpr Case kCases[] = {
      {0, 1, 1, 32, 1, 0.42, 1.00000001e-08, 0.4200000002489826, 0.4200000002489826},
      {0, 1, 2, 64, 1, 0.74, 1.00000001e-06, 0.7400000558434719, 0.7400000558434719},
      {0, 1, 4, 16, 3, 0.26, 3e-06, 0.2600002572583899, 0.78000025725839},
      {0, 2, 2, 8, 1, 0.18, 0.5000000100000001, 0.6195839754840535, 0.6195839754840535},
      {0, 2, 8, 128, 2, 1.38, 6.5, 7.333177096364716, 8.713177096364717},
      {0, 16, 64, 12, 1, 0.22, 62.5, 62.55922551225356, 62.55922551225356},
      {1, 1, 1, 32, 1, 0.30276, 1.00000001e-08, 0.3027600007865773, 0.3027600007865773},
      {1, 1, 2, 64, 1, 0.48452, 0.0118000000317, 0.4906677023711638, 0.4906677023711638},
      {1, 1, 4, 16, 3, 0.21188, 0.01814, 0.2231183719066083, 0.6468783719066084},
      {1, 2, 2, 8, 1, 0.16644, 0.0236000000634, 0.182088161064284, 0.182088161064284},
      {1, 2, 8, 128, 2, 0.84804, 0.06164, 0.8853856533085741, 1.733425653308574},
      {1, 16, 64, 12, 1, 0.18916, 0.41668, 0.5620009818578678, 0.5620009818578678},
      {2, 1, 1, 32, 1, 0.0424, 1.00000001e-08, 0.0424, 0.0424},
      {2, 1, 2, 64, 1, 0.0648, 0.033000000046, 0.06480759862778289, 0.06480759862778289},
      {2, 1, 4, 16, 3, 0.0312, 0.0422, 0.04240154938301667, 0.1048015493830167},
      {2, 2, 2, 8, 1, 0.0256, 0.10000000026, 0.1000000123492513, 0.1000000123492513},
      {2, 2, 8, 128, 2, 0.1096, 0.256, 0.2560052954811591, 0.3656052954811591},
      {2, 16, 64, 12, 1, 0.0284, 1.712, 1.712, 1.712},
      {3, 1, 1, 32, 1, 0.146, 1.00000001e-08, 0.1460000100000001, 0.1460000100000001},
      {3, 1, 2, 64, 1, 0.242, 0.2000000000000001, 0.4420000000000001, 0.4420000000000001},
      {3, 1, 4, 16, 3, 0.098, 0.20000002, 0.29800002, 0.49400002},
      {3, 2, 2, 8, 1, 0.074, 0.4000000000000001, 0.4740000000000001, 0.4740000000000001},
      {3, 2, 8, 128, 2, 0.434, 0.40000006, 0.83400006, 1.26800006},
      {3, 16, 64, 12, 1, 0.086, 0.40000062, 0.4860006200000001, 0.4860006200000001},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << "parameters " << c.parameters << ", " << c.nodes
                                    << " nodes, " << c.workers << " workers");
    const PolluxParameters& p = kParameters[c.parameters];
    EXPECT_NEAR(PolluxAccumulationSeconds(p, c.batch), c.accumulation, 1e-14 * c.accumulation);
    EXPECT_NEAR(PolluxNetworkSeconds(p, c.nodes, c.workers), c.network, 1e-14 * c.network);
    EXPECT_NEAR(PolluxOptimizerSeconds(p, c.nodes, c.workers, c.batch), c.optimizer,
                1e-13 * c.optimizer);
    Plan plan;
    plan.placement = Even(c.nodes, c.workers);
    plan.local_batch = c.batch;
    plan.accumulation_steps = c.micro_steps;
    EXPECT_NEAR(PolluxStepSeconds(p, plan), c.step, 1e-13 * c.step);
  }
}

// Times of kTruth, disturbed by a few percent that anyone can compute again.
Rows DisturbedRows(const std::vector<std::pair<int, int>>& shapes,
                   const std::vector<double>& batches) {
  Rows rows;
  for (const auto& [nodes, workers] : shapes) {
    for (const double batch : batches) {
      const auto i = static_cast<double>(rows.size());
      rows.push_back({nodes, workers, batch,
                      PolluxAccumulationSeconds(kTruth, batch) * std::exp(0.05 * std::sin(7 * i)),
                      PolluxOptimizerSeconds(kTruth, nodes, workers, batch) *
                          std::exp(0.08 * std::cos(3 * i))});
    }
  }
  return rows;
}

Rows RowsOfAllKinds() {
  return DisturbedRows({{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 8}, {8, 24}}, {8, 16, 32, 64});
}

TEST(Pollux, TheObjectiveIsThePublishedOne) {
  const Rows rows = RowsOfAllKinds();
  const double published[] = {2.791767458677238, 0.7153852685651244, 2.709392243340124,
                              0.9623402571141439};
  for (std::size_t i = 0; i < std::size(published); ++i) {
    EXPECT_NEAR(PolluxObjective(kParameters[i], rows), published[i], 1e-12) << i;
  }
  EXPECT_NEAR(PolluxObjective(kTruth, rows), 0.09774731521981239, 1e-13);
}

// `published` is the objective where the published fit stops; `lowest` the lowest that SciPy's
// differential evolution over the logarithms, refined by Nelder-Mead, finds of the published
// objective within the published bounds.
struct FitCase {
  const char* name;
  std::vector<std::pair<int, int>> shapes;  // nodes, workers
  std::vector<double> batches;
  double published;
  double lowest;
};

std::ostream& operator<<(std::ostream& out, const FitCase& c) { return out << c.name; }

class PolluxFits : public ::testing::TestWithParam<FitCase> {};

TEST_P(PolluxFits, ReachTheLowestObjectiveKnown) {
  const FitCase& c = GetParam();
  const Rows rows = DisturbedRows(c.shapes, c.batches);
  const PolluxFit fit = FitPolluxRows(rows);
  EXPECT_LE(fit.objective, c.published + 1e-8);
  EXPECT_NEAR(fit.objective, c.lowest, 1e-6);

  PolluxParameters at_minimum = fit.parameters;
  if (!HasRunsAcrossNodes(rows)) {
    EXPECT_GE(fit.parameters.alpha_n, 1.1 * fit.parameters.alpha_r);
    EXPECT_GE(fit.parameters.beta_n, 1.1 * fit.parameters.beta_r);
    at_minimum.alpha_n = kPolluxEpsilon;
    at_minimum.beta_n = kPolluxEpsilon;
  }
  EXPECT_EQ(PolluxObjective(at_minimum, rows), fit.objective);

  const PolluxBox box = MakePolluxBox(rows);
  const PolluxArray x = ToArray(at_minimum);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_GE(x[i], box.lower[i]) << i;
    EXPECT_LE(x[i], box.upper[i]) << i;
    for (const double factor : {0.999, 1.001}) {
      PolluxArray beside = x;
      beside[i] = std::clamp(factor * x[i], box.lower[i], box.upper[i]);
      EXPECT_GE(PolluxObjective(ToPolluxParameters(beside), rows), fit.objective - 1e-6) << i;
    }
  }
  EXPECT_EQ(ToArray(FitPolluxRows(rows).parameters), ToArray(fit.parameters));
}

INSTANTIATE_TEST_SUITE_P(
    Of, PolluxFits,
    ::testing::Values(FitCase{"AllKinds",
                              {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 8}, {8, 24}},
                              {8, 16, 32, 64},
                              0.0938376872863,
                              0.0938338699684},
                      FitCase{"OneBatch",
                              {{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 8}},
                              {32},
                              0.094624353552,
                              0.0942550937093},
                      FitCase{"OneNode",
                              {{1, 1}, {1, 2}, {1, 3}, {1, 4}},
                              {8, 32, 64},
                              0.102226772714,
                              0.101961617592},
                      FitCase{"OneWorkerANode",
                              {{1, 1}, {2, 2}, {4, 4}, {8, 8}},
                              {8, 32, 64},
                              0.102388677399,
                              0.102388676387},
                      FitCase{"TwoWorkersAtMost",
                              {{1, 1}, {1, 2}, {2, 2}},
                              {8, 32, 64},
                              0.0976921283415,
                              0.0976921273943},
                      FitCase{"OneWorker", {{1, 1}}, {8, 32, 64}, 0.102407641362, 0.102407640185}),
    [](const auto& its) { return std::string(its.param.name); });

TEST(Pollux, KeepsWhatTheRunsCannotTell) {
  const auto kept = [](const std::vector<std::pair<int, int>>& shapes,
                       const std::vector<double>& batches) {
    const PolluxBox box = MakePolluxBox(DisturbedRows(shapes, batches));
    std::string text;
    for (std::size_t i = 0; i < box.start.size(); ++i) text += box.IsKept(i) ? 'k' : '.';
    return text;
  };
  EXPECT_EQ(kept({{1, 1}, {1, 4}, {2, 2}}, {8, 16}), ".......");
  EXPECT_EQ(kept({{1, 1}, {1, 4}, {2, 2}}, {8}), "k......");
  EXPECT_EQ(kept({{1, 1}, {1, 4}}, {8, 16}), "..kk...");
  EXPECT_EQ(kept({{1, 1}, {2, 4}}, {8, 16}), "....kk.");
  EXPECT_EQ(kept({{1, 2}, {2, 2}}, {8, 16}), "...k.k.");
  EXPECT_EQ(kept({{1, 1}}, {8}), "k.kkkk.");

  const PolluxBox box = MakePolluxBox({{1, 1, 8, 0.2, 0.2}, {1, 2, 8, 0.4, 0.5}});
  EXPECT_DOUBLE_EQ(box.start[0], 0.15);
  EXPECT_THROW(FitPolluxRows({}), std::invalid_argument);
  EXPECT_THROW(FitPolluxRows({{1, 1, 8, 0.0, 0.2}}), std::invalid_argument);
}

// The penalties are next to nothing at this truth: what the formula made, the fit finds.
TEST(Pollux, ReturnsToExactTimes) {
  Rows rows;
  const PolluxParameters truth = {0.08, 0.004, 0.15, 1e-4, 0.05, 1e-4, 1.0};
  for (const auto& [nodes, workers] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 8}, {4, 16}}) {
    for (const double batch : {8.0, 32.0}) {
      rows.push_back({nodes, workers, batch, PolluxAccumulationSeconds(truth, batch),
                      PolluxOptimizerSeconds(truth, nodes, workers, batch)});
    }
  }
  const PolluxFit fit = FitPolluxRows(rows);
  EXPECT_LT(fit.objective, 1e-6);
  for (const PolluxRow& row : rows) {
    EXPECT_NEAR(
        PolluxOptimizerSeconds(fit.parameters, row.nodes, row.workers, row.batch) / row.optimizer,
        1.0, 1e-4);
  }
}

TEST(Pollux, ARunIsSplitIntoItsTwoTimes) {
  stepcast::Run run;
  run.plan.placement = {2, 1};
  run.plan.local_batch = 16;
  run.step_time = Seconds(0.5);
  run.exposed_sync = Seconds(0.2);
  PolluxRow row = ToPolluxRow(run);
  EXPECT_EQ(row.nodes, 2);
  EXPECT_EQ(row.workers, 3);
  EXPECT_EQ(row.batch, 16);
  EXPECT_DOUBLE_EQ(row.accumulation, 0.3);
  EXPECT_DOUBLE_EQ(row.optimizer, 0.5);

  run.plan.accumulation_steps = 3;
  row = ToPolluxRow(run);
  EXPECT_DOUBLE_EQ(row.accumulation, 0.1);
  EXPECT_DOUBLE_EQ(row.optimizer, 0.3);

  run.exposed_sync = Seconds(0.5);
  EXPECT_THROW(ToPolluxRow(run), InputError);
  run.exposed_sync.reset();
  EXPECT_THROW(ToPolluxRow(run), InputError);
  run.plan.placement = {1};
  EXPECT_DOUBLE_EQ(ToPolluxRow(run).optimizer, ToPolluxRow(run).accumulation);
}

// The published code stops at `objective`, and its errors on the rows judged are `mape`.
struct PublishedFit {
  const char* application;
  std::size_t fitted;
  std::size_t judged;
  double objective;
  double mape;
};

class PolluxOnTraces : public ::testing::TestWithParam<PublishedFit> {};

TEST_P(PolluxOnTraces, FourWorkersDoNotForetellMore) {
  const std::optional<std::string> folder = DatasetFolder("adaptdl");
  if (!folder) GTEST_SKIP() << MissingDataset("adaptdl");
  const PublishedFit& published = GetParam();
  const std::string stem = *folder + "/" + published.application;
  const Runs placements = ImportAdaptdl(stem + "_placements.csv", "", "t4");
  Runs judged = ImportAdaptdl(stem + "_scalability.csv", "", "t4");
  judged.insert(judged.end(), placements.begin(), placements.end());
  std::erase_if(judged, [](const auto& run) { return run.plan.workers() <= 4; });
  Runs fitted = placements;
  std::erase_if(fitted,
                [](const auto& run) { return run.plan.nodes() > 2 || run.plan.workers() > 4; });
  ASSERT_EQ(fitted.size(), published.fitted);
  ASSERT_EQ(judged.size(), published.judged);

  const PolluxFit fit = FitPolluxRows(ToPolluxRows(fitted));
  EXPECT_EQ(ToArray(FitPollux(fitted)), ToArray(fit.parameters));
  EXPECT_LE(fit.objective, published.objective + 1e-8);
  EXPECT_GE(fit.objective, 0.999 * published.objective);

  std::vector<double> errors;
  double error_sum = 0;
  double signed_sum = 0;
  for (const auto& run : judged) {
    const double error = PolluxStepSeconds(fit.parameters, run.plan) / run.step_time.in(kSeconds)-1;
    errors.push_back(std::abs(error));
    error_sum += std::abs(error);
    signed_sum += error;
  }
  std::sort(errors.begin(), errors.end());
  const auto n = static_cast<double>(errors.size());
  const double mape = error_sum / n;
  const double bias = signed_sum / n;
  const double p90 = errors[static_cast<std::size_t>(std::ceil(0.9 * n)) - 1];
  std::printf("[ measured ] Pollux, %-11s MAPE %.1f %%, p90 %.1f %%, bias %+.1f %%, F %.6f\n",
              published.application, 100 * mape, 100 * p90, 100 * bias, fit.objective);
  const PolluxParameters& p = fit.parameters;
  std::printf("[ measured ]   alpha_c %.4g s, beta_c %.4g s, alpha_n %.4g s, beta_n %.4g s, ",
              p.alpha_c, p.beta_c, p.alpha_n, p.beta_n);
  std::printf("alpha_r %.4g s, beta_r %.4g s, gamma %.3f\n", p.alpha_r, p.beta_r, p.gamma);
  EXPECT_NEAR(mape, published.mape, 0.1 * published.mape);
  EXPECT_GT(bias, 0.9 * mape) << "what grows with every worker overstates";
  EXPECT_GT(p90, mape);
}

INSTANTIATE_TEST_SUITE_P(
    Of, PolluxOnTraces,
    ::testing::Values(PublishedFit{"bert", 40, 665, 0.06138072438, 2.0803},
                      PublishedFit{"cifar10", 88, 1391, 0.1179971646, 0.8094},
                      PublishedFit{"deepspeech2", 56, 875, 0.1669671857, 0.8440},
                      PublishedFit{"imagenet", 64, 1064, 0.08932176774, 0.6581}),
    [](const auto& its) { return std::string(its.param.application); });

}  // namespace
}  // namespace stepcast
