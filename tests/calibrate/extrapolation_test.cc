// Public traces of four jobs on 1 to 64 devices: fitted where measuring is cheap, judged where it
// is not, beside the published model of the traces' own authors on the same rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "calibrate/next_runs.h"
#include "tests/calibrate/adaptdl_traces.h"
#include "tests/calibrate/pollux_model.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

class Extrapolation : public ::testing::Test {
 protected:
  void SetUp() override {
    std::optional<Traces> read = ReadTraces();
    if (!read) GTEST_SKIP() << MissingDataset("adaptdl");
    traces = std::move(*read);
  }

  CalibrationOutcome Fit(const Runs& runs) const {
    const CalibrationOutcome outcome = Calibrate(TraceProblem(traces, runs));
    EXPECT_EQ(outcome.status, CalibrationOutcome::Status::kConverged) << outcome.message;
    return outcome;
  }

  TraceScores FitAndJudge(const TraceSplit& split) const {
    return JudgeTraces(traces, Fit(split.fitted).cluster, split.held_out);
  }

  Traces traces;
};

void ExpectMape(const TraceScores& scores, double each, double mean) {
  ASSERT_EQ(scores.size(), 4U);
  for (const auto& [name, score] : scores) EXPECT_LE(score.mape(), each) << name;
  EXPECT_LE(MeanMape(scores), mean);
}

TEST_F(Extrapolation, FourDevicesOnTwoNodesPredictSixtyFour) {
  const TraceSplit split = SmallSplit(traces, 2);
  ASSERT_EQ(split.fitted.size(), 248U);
  ASSERT_EQ(split.held_out.size(), 3995U);
  const TraceScores scores = FitAndJudge(split);
  PrintScores("small", scores);
  ExpectMape(scores, 0.12, 0.09);
  const TraceScore all = Together(scores);
  EXPECT_GE(all.coverage(), 0.80);
  EXPECT_LE(all.width_ratio(), 3.2);

  for (const char* app : kTraceApps) {
    const std::string workload = AdaptdlWorkload(app);
    const auto of_app = [&](const auto& run) { return run.workload == workload; };
    const PolluxParameters published = FitPollux(RunsWhere(split.fitted, of_app));
    double sum = 0;
    const Runs judged = RunsWhere(split.held_out, of_app);
    for (const auto& run : judged) {
      sum += std::abs(PolluxStepSeconds(published, run.plan) / run.step_time.in(kSeconds)-1);
    }
    const double mape = sum / static_cast<double>(judged.size());
    std::printf("[ measured ] small          %-16s %4zu rows, published model: MAPE %.1f %%\n",
                workload.c_str(), judged.size(), 100 * mape);
    EXPECT_GT(mape, 4 * scores.at(workload).mape()) << workload;
  }
}

TEST_F(Extrapolation, AThirdNodeHelps) {
  const TraceScores scores = FitAndJudge(SmallSplit(traces, 3));
  PrintScores("three", scores);
  ExpectMape(scores, 0.09, 0.075);
}

TEST_F(Extrapolation, ANewJobNeedsOneDevice) {
  TraceScores scores;
  for (const char* app : kTraceApps) {
    scores.merge(FitAndJudge(NewJobSplit(traces, AdaptdlWorkload(app))));
  }
  PrintScores("new job", scores);
  ExpectMape(scores, 0.15, 0.11);
}

TEST_F(Extrapolation, AFifthPredictsTheRest) {
  constexpr int kDraws = 5;
  double mean = 0;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const TraceScores scores = FitAndJudge(FifthSplit(traces, seed));
    PrintScores("fifth, seed " + std::to_string(seed), scores);
    ExpectMape(scores, 0.08, 0.065);
    mean += MeanMape(scores) / kDraws;
    const TraceScore all = Together(scores);
    EXPECT_GE(all.coverage(), 0.85);
    EXPECT_LE(all.coverage(), 0.95);
    EXPECT_LE(all.width_ratio(), 3.2);
  }
  std::printf("[ measured ] fifth, mean of %d draws: MAPE %.2f %%\n", kDraws, 100 * mean);
  EXPECT_LE(mean, 0.06);
}

// From runs within one node, each workload in turn asks what to measure next among the layouts of
// the traces, and gets it.
TEST_F(Extrapolation, TwelvePlannedRunsAreAsGoodAsAllSmallOnes) {
  Runs measured =
      RunsWhere(traces.placements, [](const auto& run) { return run.plan.nodes() == 1; });
  const Runs held_out =
      RunsWhere(traces.All(), [](const auto& run) { return run.plan.workers() > 4; });
  CalibrationOutcome outcome = Fit(measured);
  const double before = MeanMape(JudgeTraces(traces, outcome.cluster, held_out));
  int first_third_node = 0;
  constexpr int kRuns = 12;
  for (int run = 0; run < kRuns; ++run) {
    const std::string workload = AdaptdlWorkload(kTraceApps[run % std::size(kTraceApps)]);
    const Runs candidates = RunsWhere(traces.placements, [&](const auto& c) {
      return c.workload == workload && c.plan.nodes() > 1;
    });
    std::vector<Plan> plans;
    for (const auto& candidate : candidates) plans.push_back(candidate.plan);
    Plan target = plans.front();
    target.placement = Placement(16, 4);
    for (const Plan& plan : plans)
      target.local_batch = std::min(target.local_batch, plan.local_batch);
    const BelievedModel model(outcome.cluster, *FindWorkload(workload), traces.device, "t4");
    const NextRuns next =
        ChooseNextRuns(model, target, plans, outcome.cluster.calibration->range, 1);
    if (next.runs.empty()) continue;  // nothing is left that tells more of this workload
    EXPECT_LT(next.runs.front().log_sd, next.log_sd);
    const Plan& chosen = next.runs.front().plan;
    if (chosen.nodes() > 2 && first_third_node == 0) first_third_node = run + 1;
    const auto row = std::find_if(candidates.begin(), candidates.end(), [&](const auto& c) {
      return c.plan.placement == chosen.placement && c.plan.local_batch == chosen.local_batch;
    });
    ASSERT_NE(row, candidates.end());
    measured.push_back(*row);
    outcome = Fit(measured);
    const TraceScores scores = JudgeTraces(traces, outcome.cluster, held_out);
    std::printf("[ measured ] plan, run %2d: %-16s on %d nodes x %d, batch %3d: MAPE %.2f %%\n",
                run + 1, workload.c_str(), chosen.nodes(), DevicesOnFullestNode(chosen.placement),
                chosen.local_batch, 100 * MeanMape(scores));
  }
  const TraceScores scores = JudgeTraces(traces, outcome.cluster, held_out);
  PrintScores("plan", scores);
  ExpectMape(scores, 0.12, 0.09);
  EXPECT_GT(before, 1.2 * MeanMape(scores)) << "the runs must have been what helped";
  // Two nodes cannot show the effect of distinct peers.
  EXPECT_GT(first_third_node, 0);
  EXPECT_LE(first_third_node, 3);
}

}  // namespace
}  // namespace stepcast
