#include "microbench/harness/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/record/point_samples.h"
#include "data/values/operation_text.h"
#include "data/workloads/catalog.h"
#include "microbench/harness/ceilings.h"
#include "microbench/harness/journal.h"
#include "microbench/harness/state_space.h"
#include "tests/microbench/recorded_backend.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

constexpr double kForever = 1e9;

// ---- State spaces.

// A step of products with so many units each, forward and backward, and an update of the first.
StateSpace DenseSteps(const std::vector<std::vector<std::int64_t>>& units_of_steps) {
  StateSpace space;
  for (const std::vector<std::int64_t>& step : units_of_steps) {
    const std::size_t sum = space.sums.size();
    space.sums.push_back({"step" + std::to_string(sum), 4, Precision::kFp32});
    for (const std::int64_t units : step) {
      space.states.push_back({DenseOp{1, 8, units},
                              4,
                              Precision::kFp32,
                              {TrainingPass::kForward, TrainingPass::kBackward},
                              {{sum, {1, 1}}}});
    }
  }
  return space;
}

StateSpace WithUpdate(StateSpace space) {
  space.states.push_back(
      {UpdateOp{Optimizer::kAdam, 100}, 1, Precision::kFp32, {TrainingPass::kUpdate}, {{0, {1}}}});
  return space;
}

StateSpace Catalogue(const std::vector<std::string>& names, const std::vector<int>& batches) {
  StateSpaceAxes axes;
  for (const std::string& name : names) axes.workloads.push_back(FindWorkload(name).value());
  axes.batches = batches;
  axes.precisions = {Precision::kFp32};
  return MakeStateSpace(axes);
}

std::int64_t Units(const MeasuredPoint& point) {
  const auto* dense = std::get_if<DenseOp>(&point.operation);
  return dense == nullptr ? 1 : dense->units;
}

// A microsecond for each unit, in every pass.
double UnitsTime(const MeasuredPoint& point) { return 1e-6 * static_cast<double>(Units(point)); }

RecordedScript UnitsScript(double noise = 0) {
  RecordedScript script;
  script.seconds = UnitsTime;
  script.noise = [noise](const MeasuredPoint&) { return noise; };
  return script;
}

double TrueSum(const StateSpace& space, const RecordedScript& script, std::size_t sum) {
  double seconds = 0;
  for (const State& state : space.states) {
    for (const State::Use& use : state.uses) {
      if (use.sum != sum) continue;
      for (std::size_t p = 0; p < state.passes.size(); ++p) {
        seconds += use.count[p] * script.seconds(state.Point(state.passes[p]));
      }
    }
  }
  return seconds;
}

std::size_t PointCount(const StateSpace& space) {
  std::size_t points = 0;
  for (const State& state : space.states) points += state.passes.size();
  return points;
}

// ---- Campaigns.

// Every step counts as known as soon as it is measured.
CampaignOptions FirstWalkOnly() {
  CampaignOptions options;
  options.budget_s = kForever;
  options.relative_error = kForever;
  options.least_visit_s = 0;
  return options;
}

ComputeProfile HeaderOf(RecordedBackend* device) {
  ComputeProfile profile;
  profile.device = device->Device();
  profile.backend = device->Name();
  profile.settings = device->Settings();
  profile.version = "0";
  profile.started = "2026-01-31T12:00:00Z";
  return profile;
}

CampaignOutcome RunOn(const std::string& path, const StateSpace& space, RecordedBackend* device,
                      const CampaignOptions& options) {
  Journal journal(path, HeaderOf(device));
  return RunCampaign(space, device, &journal, options, device->Hooks());
}

// With a journal of its own.
CampaignOutcome RunAlone(const StateSpace& space, RecordedBackend* device,
                         const CampaignOptions& options) {
  const TempFolder folder;
  return RunOn(folder.Path("p"), space, device, options);
}

std::vector<MeasuredSamples> LinesOf(const std::string& path) {
  const ReadProfile read = ReadComputeProfile(path);
  EXPECT_FALSE(read.torn);
  return read.profile.samples;
}

std::map<MeasuredPoint, PointSamples> PointsOf(const std::string& path) {
  std::map<MeasuredPoint, PointSamples> points;
  for (const MeasuredSamples& line : LinesOf(path)) points[line.point].Add(line);
  return points;
}

std::map<MeasuredPoint, int> LineCounts(const std::string& path) {
  std::map<MeasuredPoint, int> counts;
  for (const MeasuredSamples& line : LinesOf(path)) ++counts[line.point];
  return counts;
}

std::string Text(const MeasuredPoint& point) {
  return FormatOperation(point.operation) + " " + kTrainingPassNames[static_cast<int>(point.pass)];
}

// ---- The first walk.

TEST(CampaignTest, VisitsEveryStateOnceTheLargestFirst) {
  const StateSpace space = Catalogue({"resnet18", "mlp_mnist"}, {2, 8});
  RecordedBackend device;
  const CampaignOutcome outcome = RunAlone(space, &device, FirstWalkOnly());
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  EXPECT_EQ(outcome.points, PointCount(space));
  EXPECT_EQ(outcome.measured, outcome.points);
  EXPECT_EQ(outcome.missing, 0U);
  EXPECT_EQ(outcome.taken_over, 0U);
  ASSERT_EQ(device.prepared().size(), space.states.size());
  for (std::size_t s = 0; s < space.states.size(); ++s) {
    const State& state = space.states[s];
    EXPECT_EQ(device.prepared()[s].point, state.Point(state.passes.front())) << s;
  }
  // What was visited first is more of some step than what was visited last.
  const auto share = [&](const State& state) {
    double most = 0;
    for (const State::Use& use : state.uses) {
      double seconds = 0;
      for (std::size_t p = 0; p < state.passes.size(); ++p) {
        seconds += use.count[p] * WorkTime(state.Point(state.passes[p]));
      }
      most = std::max(most, seconds / TrueSum(space, device.script(), use.sum));
    }
    return most;
  };
  double first_half = 0;
  double second_half = 0;
  for (std::size_t s = 0; s < space.states.size(); ++s) {
    (2 * s < space.states.size() ? first_half : second_half) += share(space.states[s]);
  }
  EXPECT_GT(first_half, 5 * second_half);
}

TEST(CampaignTest, EachPointIsWarmedUpAndMeasuredSoOften) {
  const StateSpace space = WithUpdate(DenseSteps({{3000, 2000}}));
  RecordedBackend device(UnitsScript());
  const TempFolder folder;
  CampaignOptions options = FirstWalkOnly();
  options.warm_up = 3;
  options.first_runs = 9;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  std::map<MeasuredPoint, int> runs;
  for (const RecordedBackend::Ran& run : device.ran()) ++runs[run.point];
  ASSERT_EQ(runs.size(), PointCount(space));
  for (const auto& [point, count] : runs) EXPECT_EQ(count, 3 + 9) << Text(point);
  EXPECT_EQ(outcome.samples, 9 * PointCount(space));
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    EXPECT_EQ(line.seconds.size(), 9U) << Text(line.point);
    EXPECT_EQ(line.algorithm,
              std::string("algorithm_") + kTrainingPassNames[static_cast<int>(line.point.pass)]);
    EXPECT_DOUBLE_EQ(line.reference_s, device.script().reference_s);
    EXPECT_FALSE(line.at.empty());
    EXPECT_FALSE(line.busy || line.throttled);
  }
}

TEST(CampaignTest, ShortOperationsAreRepeatedAndLongOnesCutShort) {
  const StateSpace space = DenseSteps({{1'500'000, 10}});  // 1.5 s, 10 us
  RecordedBackend device(UnitsScript());
  const TempFolder folder;
  CampaignOptions options = FirstWalkOnly();
  options.least_visit_s = CampaignOptions().least_visit_s;
  RunOn(folder.Path("p"), space, &device, options);
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    if (Units(line.point) == 10) {
      EXPECT_GT(line.seconds.size(), 100U);
      EXPECT_LE(line.seconds.size(), static_cast<std::size_t>(options.most_runs));
    } else {
      EXPECT_EQ(line.seconds.size(), 3U);  // the fewest with an error
    }
  }
}

// A visit lasts as long as is allowed behind its warm-up, however long that was: seven runs of
// 0.3 s pass two seconds.
TEST(CampaignTest, AVisitIsCutShortByWhatCounts) {
  const StateSpace space = DenseSteps({{300'000}});
  for (const int warm_up : {0, 1, 3, 5}) {
    RecordedBackend device(UnitsScript());
    const TempFolder folder;
    CampaignOptions options = FirstWalkOnly();
    options.warm_up = warm_up;
    options.first_runs = 50;
    options.most_visit_s = 2;
    RunOn(folder.Path("p"), space, &device, options);
    const std::vector<MeasuredSamples> lines = LinesOf(folder.Path("p"));
    EXPECT_EQ(lines.size(), 2U);
    for (const MeasuredSamples& line : lines) EXPECT_EQ(line.seconds.size(), 7U) << warm_up;
    // The warm-up itself is over once it has lasted for half of that: four runs pass a second.
    std::map<MeasuredPoint, int> runs;
    for (const RecordedBackend::Ran& run : device.ran()) ++runs[run.point];
    EXPECT_EQ(runs.size(), 2U);
    for (const auto& [point, count] : runs) EXPECT_EQ(count, std::min(warm_up, 4) + 7) << warm_up;
  }
}

TEST(CampaignTest, MediansAndSumsAreThoseOfTheDevice) {
  const StateSpace space = Catalogue({"resnet18"}, {1, 4});
  RecordedBackend device;
  const TempFolder folder;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, FirstWalkOnly());
  const std::map<MeasuredPoint, PointSamples> points = PointsOf(folder.Path("p"));
  EXPECT_EQ(points.size(), PointCount(space));
  for (const auto& [point, samples] : points) {
    // Seven digits are written.
    EXPECT_NEAR(samples.summary().median, WorkTime(point), 1e-6 * WorkTime(point)) << Text(point);
  }
  ASSERT_EQ(outcome.sums.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const double truth = TrueSum(space, device.script(), i);
    EXPECT_NEAR(outcome.sums[i].seconds, truth, 1e-9 * truth);
    EXPECT_NEAR(outcome.sums[i].relative_error, 0, 1e-9);
    EXPECT_EQ(outcome.sums[i].measured, outcome.sums[i].points);
    EXPECT_EQ(outcome.sums[i].sum.batch, i == 0 ? 1 : 4);
    EXPECT_EQ(outcome.sums[i].sum.workload, "resnet18");
  }
}

TEST(CampaignTest, TheStatedErrorIsThatOfTheSum) {
  StateSpace space = DenseSteps({{9000, 5000, 3000, 2000, 1000}});
  space.states[4].uses[0].count = {20, 10};  // whose errors are its own, however often it happens
  constexpr int kSeeds = 60;
  double square = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    RecordedScript script = UnitsScript(0.05);
    script.seed = static_cast<std::uint64_t>(seed);
    RecordedBackend device(script);
    CampaignOptions options = FirstWalkOnly();
    options.first_runs = 25;
    const CampaignOutcome outcome = RunAlone(space, &device, options);
    const double truth = TrueSum(space, script, 0);
    const double errors =
        (outcome.sums[0].seconds - truth) / (outcome.sums[0].relative_error * truth);
    EXPECT_LT(std::abs(errors), 4.5) << seed;
    square += errors * errors / kSeeds;
  }
  EXPECT_NEAR(std::sqrt(square), 1, 0.3);
}

TEST(CampaignTest, NothingToMeasureIsKnownAtOnce) {
  RecordedBackend device;
  const CampaignOutcome outcome = RunAlone(StateSpace(), &device, CampaignOptions());
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  EXPECT_EQ(outcome.points, 0U);
  EXPECT_TRUE(device.prepared().empty());
}

// ---- When it ends.

TEST(CampaignTest, StopsWhenEachSumIsKnown) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}, {700, 400}});
  RecordedBackend device(UnitsScript(0.05));
  CampaignOptions options;
  options.budget_s = 1000;
  options.relative_error = 0.01;
  options.most_runs = 10'000;
  const CampaignOutcome outcome = RunAlone(space, &device, options);
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  for (std::size_t i = 0; i < outcome.sums.size(); ++i) {
    EXPECT_LE(outcome.sums[i].relative_error, options.relative_error);
    EXPECT_GT(outcome.sums[i].relative_error, options.relative_error / 3) << "more than asked for";
    const double truth = TrueSum(space, device.script(), i);
    EXPECT_NEAR(outcome.sums[i].seconds, truth, 0.05 * truth);
  }
  EXPECT_LT(outcome.elapsed_s, 60);
  EXPECT_DOUBLE_EQ(outcome.elapsed_s, device.now());
}

TEST(CampaignTest, ASmallerErrorTakesLonger) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  double before = 0;
  for (const double error : {0.01, 0.005, 0.0025}) {
    RecordedBackend device(UnitsScript(0.05));
    CampaignOptions options;
    options.budget_s = kForever;
    options.most_runs = 100'000;
    options.relative_error = error;
    const CampaignOutcome outcome = RunAlone(space, &device, options);
    EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
    EXPECT_LE(outcome.sums[0].relative_error, error);
    EXPECT_GT(outcome.elapsed_s, 1.5 * before);
    before = outcome.elapsed_s;
  }
}

TEST(CampaignTest, NoVisitBeginsAfterTheBudget) {
  const StateSpace space = DenseSteps({{90'000, 50'000, 30'000, 20'000, 1000, 1000}});
  for (double budget = 0; budget < 12; budget += 0.37) {
    RecordedBackend device(UnitsScript(0.2));
    CampaignOptions options;
    options.budget_s = budget;
    options.relative_error = 1e-6;
    const CampaignOutcome outcome = RunAlone(space, &device, options);
    EXPECT_EQ(outcome.end, CampaignEnd::kBudgetSpent) << budget;
    EXPECT_GE(outcome.elapsed_s, budget);
    if (device.prepared().empty()) {
      EXPECT_EQ(budget, 0);
      EXPECT_EQ(outcome.missing, outcome.points);
      continue;
    }
    // The reference work of the visit comes before its preparation.
    const double begin = device.prepared().back().at - 3 * device.script().reference_s;
    EXPECT_LT(begin, budget);
    // A warm-up, the samples, and a last run of each for two passes.
    EXPECT_LT(outcome.elapsed_s - begin, 2 * (1.5 * options.most_visit_s + 2 * 0.2))
        << "more than one visit";
  }
}

TEST(CampaignTest, ASpentBudgetLeavesPointsMissingAndMoreOfItMeasuresThem) {
  const StateSpace space = DenseSteps({{90'000, 50'000, 30'000, 20'000, 1000, 1000}});
  const TempFolder folder;
  RecordedBackend first(UnitsScript());
  CampaignOptions options = FirstWalkOnly();
  options.budget_s = 2;
  const CampaignOutcome spent = RunOn(folder.Path("p"), space, &first, options);
  EXPECT_EQ(spent.end, CampaignEnd::kBudgetSpent);
  EXPECT_GT(spent.missing, 0U);
  EXPECT_GT(spent.measured, 0U);
  EXPECT_EQ(spent.missing + spent.measured, spent.points);
  EXPECT_EQ(static_cast<std::size_t>(spent.sums[0].measured), spent.measured);
  EXPECT_EQ(static_cast<std::size_t>(spent.sums[0].points), spent.points);

  RecordedBackend second(UnitsScript());
  const CampaignOutcome whole = RunOn(folder.Path("p"), space, &second, FirstWalkOnly());
  EXPECT_EQ(whole.end, CampaignEnd::kKnown);
  EXPECT_EQ(whole.missing, 0U);
  EXPECT_EQ(whole.taken_over, spent.measured);
  // The budget may end between the two passes of a state.
  EXPECT_EQ(second.prepared().size(), (spent.missing + 1) / 2);
}

TEST(CampaignTest, NoPointIsMeasuredMoreOftenThanAllowed) {
  const StateSpace space = DenseSteps({{26, 3000}});  // short ones fill their visits
  const TempFolder folder;
  RecordedBackend device(UnitsScript(0.3));
  CampaignOptions options;
  options.budget_s = kForever;
  options.relative_error = 1e-9;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  EXPECT_LT(outcome.elapsed_s, 60) << "nothing could be improved any more";
  for (const auto& [point, samples] : PointsOf(folder.Path("p"))) {
    // A last visit may begin just below the limit.
    EXPECT_LE(samples.summary().count,
              static_cast<std::size_t>(options.most_runs + options.more_runs))
        << Text(point);
  }
}

TEST(CampaignTest, TenMinutesOnTheRecordedClockTakeNoTime) {
  const StateSpace space = Catalogue({"resnet50"}, {32, 128, 512});
  RecordedScript script;
  script.noise = [](const MeasuredPoint&) { return 0.1; };
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 600;
  options.relative_error = 1e-9;
  const auto start = std::chrono::steady_clock::now();
  const CampaignOutcome outcome = RunAlone(space, &device, options);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(outcome.end, CampaignEnd::kBudgetSpent);
  EXPECT_EQ(outcome.missing, 0U);
  EXPECT_GE(outcome.elapsed_s, 600);
  EXPECT_LT(outcome.elapsed_s, 610);
  // Some hundred milliseconds, and room for sanitizers.
  EXPECT_LT(wall.count(), 5);
}

// ---- Where the budget goes.

std::map<std::int64_t, std::size_t> RunsByUnits(const RecordedBackend& device) {
  std::map<std::int64_t, std::size_t> runs;
  for (const RecordedBackend::Ran& run : device.ran()) ++runs[Units(run.point)];
  return runs;
}

TEST(CampaignTest, ANoisyLargePointGetsMoreSamplesThanQuietOnes) {
  const StateSpace space = DenseSteps({{20'000, 19'999, 10'000, 1000}});
  RecordedScript script = UnitsScript();
  script.noise = [](const MeasuredPoint& point) { return Units(point) == 20'000 ? 0.1 : 0.005; };
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 30;
  options.relative_error = 1e-6;
  options.most_runs = 10'000;
  RunAlone(space, &device, options);
  const std::map<std::int64_t, std::size_t> runs = RunsByUnits(device);
  for (const std::int64_t quiet : {19'999, 10'000, 1000}) {
    EXPECT_GT(runs.at(20'000), 4 * runs.at(quiet)) << quiet;
  }
}

// Both are equally uncertain in the sum, and one takes a hundredth of the time.
TEST(CampaignTest, OfTwoUncertainPointsTheCheaperGetsMoreSamples) {
  StateSpace space = DenseSteps({{100'000, 1000}});
  space.states[1].uses[0].count = {10, 10};
  RecordedScript script = UnitsScript();
  script.noise = [](const MeasuredPoint& point) { return Units(point) == 1000 ? 0.1 : 0.01; };
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 60;
  options.relative_error = 1e-6;
  options.most_runs = 10'000;
  RunAlone(space, &device, options);
  const std::map<std::int64_t, std::size_t> runs = RunsByUnits(device);
  EXPECT_GT(runs.at(1000), 3 * runs.at(100'000));
}

// Ten more runs cut the variance of a median of 5 to a third, and that of a median of 100 by an
// eleventh: the first is visited next where its standard error is more than 0.37 times the other's.
TEST(CampaignTest, MoreRunsOfOftenMeasuredPointsPromiseLittle) {
  const auto spread = [](int runs, double error) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) seconds.push_back(1 + 0.01 * (2.0 * i / (runs - 1) - 1));
    const double as_it_is = Summarise(seconds).relative_error;
    for (double& second : seconds) second = 1e-3 * (1 + (second - 1) * error / as_it_is);
    return seconds;
  };
  for (const double of_few : {0.3, 0.45}) {
    const StateSpace space = DenseSteps({{1000, 1001}});
    const TempFolder folder;
    RecordedBackend device(UnitsScript());
    {
      Journal journal(folder.Path("p"), HeaderOf(&device));
      for (const State& state : space.states) {
        for (const TrainingPass pass : state.passes) {
          MeasuredSamples samples;
          samples.point = state.Point(pass);
          const bool few = Units(samples.point) == 1000;
          samples.seconds = spread(few ? 5 : 100, 1e-3 * (few ? of_few : 1));
          journal.Append(samples);
        }
      }
    }
    CampaignOptions options;
    options.budget_s = 1e-6;  // one visit
    options.relative_error = 1e-9;
    options.more_runs = 10;
    options.least_visit_s = 0;
    RunOn(folder.Path("p"), space, &device, options);
    ASSERT_EQ(device.prepared().size(), 1U);
    EXPECT_EQ(Units(device.prepared()[0].point), of_few > 0.37 ? 1000 : 1001) << of_few;
  }
}

// A first visit and later ones each have the runs that are asked of their kind.
TEST(CampaignTest, LaterVisitsHaveRunsOfTheirOwnNumber) {
  const StateSpace space = DenseSteps({{30'000}});
  const TempFolder folder;
  RecordedBackend device(UnitsScript(0.1));
  CampaignOptions options;
  options.budget_s = kForever;
  options.relative_error = 1e-9;
  options.least_visit_s = 0;
  options.first_runs = 4;
  options.more_runs = 9;
  options.most_runs = 22;
  RunOn(folder.Path("p"), space, &device, options);
  std::map<MeasuredPoint, std::vector<std::size_t>> visits;
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    visits[line.point].push_back(line.seconds.size());
  }
  ASSERT_EQ(visits.size(), 2U);
  for (const auto& [point, runs] : visits) {
    EXPECT_EQ(runs, (std::vector<std::size_t>{4, 9, 9})) << Text(point);
  }
}

TEST(CampaignTest, TheWorstStepGetsTheTime) {
  const StateSpace space = DenseSteps({{20'000, 10'000}, {20'001, 10'001}});
  RecordedScript script = UnitsScript();
  script.noise = [](const MeasuredPoint& point) { return Units(point) % 2 == 1 ? 0.1 : 0.005; };
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 15;
  options.relative_error = 0.005;
  options.most_runs = 10'000;
  const CampaignOutcome outcome = RunAlone(space, &device, options);
  const std::map<std::int64_t, std::size_t> runs = RunsByUnits(device);
  EXPECT_GT(runs.at(20'001), 3 * runs.at(20'000));
  EXPECT_GT(runs.at(10'001), 3 * runs.at(10'000));
  EXPECT_LE(outcome.sums[0].relative_error, 0.005);
}

// Standard error and sum of visits that take every state in turn for the same time.
SumOutcome InTurn(const StateSpace& space, const RecordedScript& script,
                  const CampaignOptions& options) {
  RecordedBackend device(script);
  std::map<MeasuredPoint, PointSamples> points;
  for (std::size_t s = 0; device.now() < options.budget_s; s = (s + 1) % space.states.size()) {
    const State& state = space.states[s];
    const Preparation prepared =
        device.Prepare(state.operation, state.batch, state.precision, state.passes);
    for (const TrainingPass pass : state.passes) {
      for (int i = 0; i < options.warm_up; ++i) prepared.trial->Run(pass);
      MeasuredSamples samples;
      samples.point = state.Point(pass);
      for (int i = 0; i < options.more_runs; ++i) {
        samples.seconds.push_back(prepared.trial->Run(pass).seconds);
      }
      points[samples.point].Add(samples);
    }
  }
  SumOutcome sum;
  double variance = 0;
  for (const auto& [point, samples] : points) {
    sum.seconds += samples.summary().median;
    variance += std::pow(samples.summary().median * samples.summary().relative_error, 2);
  }
  sum.relative_error = std::sqrt(variance) / sum.seconds;
  return sum;
}

TEST(CampaignTest, ItKnowsTheSumBetterThanTakingStatesInTurn) {
  std::vector<std::int64_t> units = {30'000, 20'000};
  for (int i = 0; i < 20; ++i) units.push_back(8000 + i);
  const StateSpace space = DenseSteps({units});
  CampaignOptions options;
  options.budget_s = 40;
  options.relative_error = 1e-6;
  options.most_runs = 10'000;
  constexpr int kSeeds = 20;
  double stated = 0;
  double stated_in_turn = 0;
  double square = 0;
  double square_in_turn = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    RecordedScript script = UnitsScript();
    script.seed = static_cast<std::uint64_t>(seed);
    script.noise = [](const MeasuredPoint& point) { return Units(point) == 30'000 ? 0.2 : 0.01; };
    const double truth = TrueSum(space, script, 0);
    RecordedBackend device(script);
    const CampaignOutcome outcome = RunAlone(space, &device, options);
    const SumOutcome in_turn = InTurn(space, script, options);
    stated += outcome.sums[0].relative_error / kSeeds;
    stated_in_turn += in_turn.relative_error / kSeeds;
    square += std::pow(outcome.sums[0].seconds / truth - 1, 2) / kSeeds;
    square_in_turn += std::pow(in_turn.seconds / truth - 1, 2) / kSeeds;
  }
  EXPECT_LT(stated, 0.75 * stated_in_turn);
  EXPECT_LT(std::sqrt(square), 0.85 * std::sqrt(square_in_turn));
}

// ---- Stopping and going on.

// What a campaign that ended early and one that went on have left.
struct TwoStarts {
  std::vector<MeasuredSamples> after_first;
  std::vector<MeasuredSamples> after_second;
  CampaignOutcome second;
};

// The device fails, or somebody interrupts, before a run of the first start.
TwoStarts EndEarly(const StateSpace& space, std::size_t run, bool fails) {
  const TempFolder folder;
  TwoStarts starts;
  RecordedScript script = UnitsScript(0.02);
  (fails ? script.fail_at_run : script.stop_at_run) = run;
  RecordedBackend first(script);
  if (fails) {
    EXPECT_THROW(RunOn(folder.Path("p"), space, &first, FirstWalkOnly()), std::runtime_error);
  } else {
    const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &first, FirstWalkOnly());
    EXPECT_EQ(outcome.end, CampaignEnd::kStopped);
    EXPECT_LE(first.ran().size(), run + 3);
  }
  starts.after_first = LinesOf(folder.Path("p"));
  RecordedBackend second(UnitsScript(0.02));
  starts.second = RunOn(folder.Path("p"), space, &second, FirstWalkOnly());
  starts.after_second = LinesOf(folder.Path("p"));
  return starts;
}

class EndEarlyTest : public ::testing::TestWithParam<bool> {};

TEST_P(EndEarlyTest, AtAnyRunLosesNoPointAndMeasuresNoneTwice) {
  const StateSpace space = WithUpdate(DenseSteps({{3000, 2000, 1000}}));
  RecordedBackend whole(UnitsScript(0.02));
  RunAlone(space, &whole, FirstWalkOnly());
  ASSERT_EQ(whole.ran().size(), PointCount(space) * (2 + 7));
  int lost = 0;
  int twice = 0;
  std::string where;
  for (std::size_t run = 0; run < whole.ran().size(); ++run) {
    const TwoStarts starts = EndEarly(space, run, GetParam());
    // The second start only adds.
    ASSERT_GE(starts.after_second.size(), starts.after_first.size());
    for (std::size_t i = 0; i < starts.after_first.size(); ++i) {
      EXPECT_EQ(starts.after_second[i].seconds, starts.after_first[i].seconds);
    }
    EXPECT_EQ(starts.second.end, CampaignEnd::kKnown) << run;
    EXPECT_EQ(starts.second.missing, 0U) << run;
    std::map<MeasuredPoint, int> counts;
    for (const MeasuredSamples& line : starts.after_second) {
      EXPECT_GE(line.seconds.size(), 3U);
      ++counts[line.point];
    }
    lost += static_cast<int>(PointCount(space) - counts.size());
    for (const auto& [point, count] : counts) {
      if (count == 1) continue;
      ++twice;
      where = "e.g. ended before run " + std::to_string(run) + ": " + Text(point);
    }
    // At most the visit under way is lost.
    EXPECT_GE(starts.after_first.size() + 1, (run + 1) / (2 + 7));
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(twice, 0) << where;
}

INSTANTIATE_TEST_SUITE_P(CampaignTest, EndEarlyTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& param) {
                           return param.param ? "ADeviceFailure" : "AnInterrupt";
                         });

TEST(CampaignTest, AnInterruptWhileRefiningKeepsWhatIsThere) {
  const StateSpace space = DenseSteps({{3000, 2000}});
  CampaignOptions options = FirstWalkOnly();
  options.relative_error = 1e-4;
  options.most_runs = 60;
  for (std::size_t run = 4 * 9; run < 4 * 9 + 60; ++run) {
    const TempFolder folder;
    RecordedScript script = UnitsScript(0.05);
    script.stop_at_run = run;
    RecordedBackend first(script);
    const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &first, options);
    ASSERT_EQ(outcome.end, CampaignEnd::kStopped) << run;
    EXPECT_EQ(outcome.missing, 0U) << run;
    std::size_t written = 0;
    for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) written += line.seconds.size();
    EXPECT_EQ(written, outcome.samples) << run;
    EXPECT_LE(first.ran().size(), run + 3);
  }
}

TEST(CampaignTest, AKnownProfileIsTakenOver) {
  const StateSpace space = DenseSteps({{3000, 2000}});
  const TempFolder folder;
  RecordedBackend first(UnitsScript());
  const CampaignOutcome measured = RunOn(folder.Path("p"), space, &first, CampaignOptions());
  const std::string before = FileContent(folder.Path("p"));
  RecordedBackend second(UnitsScript());
  const CampaignOutcome again = RunOn(folder.Path("p"), space, &second, CampaignOptions());
  EXPECT_EQ(again.end, CampaignEnd::kKnown);
  EXPECT_EQ(again.taken_over, again.points);
  EXPECT_EQ(again.samples, measured.samples);
  EXPECT_NEAR(again.sums[0].seconds, measured.sums[0].seconds, 1e-6 * measured.sums[0].seconds);
  EXPECT_TRUE(second.prepared().empty());
  EXPECT_EQ(FileContent(folder.Path("p")), before);
}

TEST(CampaignTest, FurtherWorkloadsAndBatchesAreAdded) {
  const TempFolder folder;
  RecordedBackend first;
  RunOn(folder.Path("p"), Catalogue({"resnet18"}, {4}), &first, FirstWalkOnly());
  const std::map<MeasuredPoint, PointSamples> known = PointsOf(folder.Path("p"));

  const StateSpace more = Catalogue({"vgg16", "resnet18"}, {4, 8});
  RecordedBackend second;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), more, &second, FirstWalkOnly());
  EXPECT_EQ(outcome.taken_over, known.size());
  EXPECT_EQ(outcome.missing, 0U);
  for (const auto& [point, count] : LineCounts(folder.Path("p"))) {
    EXPECT_EQ(count, 1) << Text(point);
  }
  for (const RecordedBackend::Ran& run : second.ran()) {
    EXPECT_EQ(known.count(run.point), 0U) << Text(run.point);
  }
}

// A layer that reads one network's input is in the middle of another.
TEST(CampaignTest, APassThatIsAddedLeavesTheOthers) {
  StateSpace forward = DenseSteps({{3000}});
  forward.states[0].passes = {TrainingPass::kForward};
  forward.states[0].uses[0].count = {1};
  const TempFolder folder;
  RecordedBackend first(UnitsScript());
  RunOn(folder.Path("p"), forward, &first, FirstWalkOnly());

  const StateSpace both = DenseSteps({{3000}});
  RecordedScript script = UnitsScript();
  script.too_large = [](const Operation&, int) { return true; };  // backward needs more
  RecordedBackend second(script);
  const CampaignOutcome outcome = RunOn(folder.Path("p"), both, &second, FirstWalkOnly());
  EXPECT_EQ(outcome.taken_over, 1U);
  EXPECT_EQ(outcome.measured, 1U);
  EXPECT_EQ(outcome.out_of_memory, 1U);
  EXPECT_NEAR(outcome.sums[0].seconds, 3e-3, 1e-9);
}

// ---- Other users, and a clock that is down.

// Each line is either flagged or as fast as the undisturbed device, but for at most `late` lines.
void ExpectFlagged(const std::vector<MeasuredSamples>& lines, const RecordedScript& script,
                   int late) {
  int missed = 0;
  for (const MeasuredSamples& line : lines) {
    const double slowed = Summarise(line.seconds).median / script.seconds(line.point);
    EXPECT_GT(slowed, 0.99);
    if (slowed > 1.1 && !line.busy && !line.throttled) ++missed;
  }
  EXPECT_LE(missed, late);
}

TEST(CampaignTest, VisitsWithOthersAreFlaggedAndRepeatedAndCleanOnesSpeakAlone) {
  const StateSpace space = DenseSteps({{90'000, 50'000, 30'000, 20'000, 10'000}});
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.busy = {{1.0, 4.0}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 60;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  EXPECT_EQ(outcome.busy, 0U);
  EXPECT_EQ(outcome.throttled, 0U);
  EXPECT_NEAR(outcome.sums[0].seconds, TrueSum(space, script, 0), 1e-6 * TrueSum(space, script, 0));
  const std::vector<MeasuredSamples> lines = LinesOf(folder.Path("p"));
  ExpectFlagged(lines, script, 0);
  std::set<MeasuredPoint> busy;
  std::set<MeasuredPoint> clean_later;
  for (const MeasuredSamples& line : lines) {
    EXPECT_FALSE(line.throttled) << "others are no throttling";
    if (line.busy) busy.insert(line.point);
    if (!line.busy && busy.count(line.point) > 0) clean_later.insert(line.point);
  }
  EXPECT_GE(busy.size(), 2U);
  EXPECT_LT(busy.size(), 10U);
  EXPECT_EQ(clean_later, busy);
}

// Repeats in turn, not one state at a time: what ends meanwhile is over for all.
TEST(CampaignTest, RepeatsAreMadeWhenTheOthersAreGone) {
  const StateSpace space = DenseSteps({{90'000, 80'000, 70'000, 60'000, 50'000, 40'000}});
  RecordedScript script = UnitsScript();
  RecordedBackend undisturbed(script);
  const double walk_s = RunAlone(space, &undisturbed, FirstWalkOnly()).elapsed_s;
  // Alone again after half of the first repeats.
  script.busy = {{0, 2 * walk_s * 1.5}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 10 * walk_s;
  const CampaignOutcome outcome = RunAlone(space, &device, options);
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  EXPECT_LT(outcome.elapsed_s, options.budget_s / 2) << "there was time left";
  EXPECT_EQ(outcome.busy, 0U);
  EXPECT_NEAR(outcome.sums[0].seconds, TrueSum(space, script, 0), 1e-6);
}

TEST(CampaignTest, AThrottledDeviceThatSaysSoIsFlaggedAndRepeated) {
  const StateSpace space = DenseSteps({{20'000, 19'000, 18'000, 17'000, 16'000, 15'000, 14'000}});
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.throttled = {{0.8, 2.5}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 60;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  const std::vector<MeasuredSamples> lines = LinesOf(folder.Path("p"));
  ExpectFlagged(lines, script, 2);  // the passes of the visit in which it begins
  EXPECT_GE(std::count_if(lines.begin(), lines.end(),
                          [](const MeasuredSamples& line) { return line.throttled; }),
            4);
  EXPECT_TRUE(std::none_of(lines.begin(), lines.end(),
                           [](const MeasuredSamples& line) { return line.busy; }));
  EXPECT_EQ(outcome.throttled, 0U) << "repeated when the clock was up again";
}

// What the device tells is believed, though its reference work takes no longer.
TEST(CampaignTest, ADeviceThatSaysSoIsThrottledHoweverFastItIs) {
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.throttled = {{0, kForever}};
  script.throttled_factor = 1;
  RecordedBackend device(script);
  const CampaignOutcome outcome =
      RunOn(folder.Path("p"), DenseSteps({{3000, 2000}}), &device, FirstWalkOnly());
  EXPECT_EQ(outcome.throttled, outcome.points);
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    EXPECT_TRUE(line.throttled);
    EXPECT_DOUBLE_EQ(line.reference_s, script.reference_s);
  }
}

TEST(CampaignTest, TheReferenceWorkTellsAThrottledDevice) {
  const StateSpace space = DenseSteps({{90'000, 80'000, 70'000, 60'000, 50'000, 40'000}});
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.tells_throttling = false;
  script.throttled = {{2.0, 7.0}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 60;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  const std::vector<MeasuredSamples> lines = LinesOf(folder.Path("p"));
  ExpectFlagged(lines, script, 2);
  int flagged = 0;
  for (const MeasuredSamples& line : lines) {
    EXPECT_EQ(line.throttled, line.reference_s > 1.2 * script.reference_s);
    flagged += line.throttled ? 1 : 0;
  }
  EXPECT_GE(flagged, 4);
  EXPECT_EQ(outcome.throttled, 0U);
}

// The best reference time of the profile counts, not of this start alone.
TEST(CampaignTest, ADeviceThatIsThrottledFromTheStartIsKnownByItsProfile) {
  const TempFolder folder;
  RecordedBackend steady(UnitsScript());
  RunOn(folder.Path("p"), DenseSteps({{3000}}), &steady, FirstWalkOnly());
  RecordedScript script = UnitsScript();
  script.tells_throttling = false;
  script.throttled = {{0, kForever}};
  RecordedBackend slow(script);
  const CampaignOutcome outcome =
      RunOn(folder.Path("p"), DenseSteps({{3000, 2000}}), &slow, FirstWalkOnly());
  EXPECT_EQ(outcome.throttled, 2U);
  // Nor that of the last start, which was slow.
  RecordedBackend again(script);
  EXPECT_EQ(
      RunOn(folder.Path("p"), DenseSteps({{3000, 2000, 1000}}), &again, FirstWalkOnly()).throttled,
      4U);
}

TEST(CampaignTest, ADeviceThatIsBusyThroughoutEndsAndSaysSo) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  for (const double noise : {0.0, 0.3}) {
    const TempFolder folder;
    RecordedScript script = UnitsScript(noise);
    script.busy = {{0, kForever}};
    RecordedBackend device(script);
    CampaignOptions options;
    options.budget_s = kForever;
    const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
    EXPECT_EQ(outcome.missing, 0U);
    EXPECT_EQ(outcome.measured, outcome.points);
    EXPECT_EQ(outcome.busy, outcome.points);
    EXPECT_NE(outcome.end, CampaignEnd::kStopped);
    EXPECT_LT(outcome.elapsed_s, 600);
    for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) EXPECT_TRUE(line.busy);
  }
}

TEST(CampaignTest, ADeviceThatIsThrottledThroughoutEndsAndSaysSo) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  RecordedScript script = UnitsScript();
  script.throttled = {{0, kForever}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = kForever;
  const CampaignOutcome outcome = RunAlone(space, &device, options);
  EXPECT_EQ(outcome.throttled, outcome.points);
  EXPECT_EQ(outcome.busy, 0U);
  EXPECT_LT(outcome.elapsed_s, 60);
}

// Even those that were measured as often as they may be.
TEST(CampaignTest, FlaggedPointsOfAnEarlierStartAreRepeated) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  for (const int most_runs : {CampaignOptions().most_runs, CampaignOptions().first_runs}) {
    const TempFolder folder;
    RecordedScript script = UnitsScript();
    script.busy = {{0, kForever}};
    RecordedBackend first(script);
    CampaignOptions options;
    options.budget_s = kForever;
    options.most_runs = most_runs;
    EXPECT_EQ(RunOn(folder.Path("p"), space, &first, options).busy, PointCount(space));
    RecordedBackend second(UnitsScript());
    const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &second, options);
    EXPECT_EQ(outcome.busy, 0U) << most_runs;
    EXPECT_EQ(second.prepared().size(), space.states.size());
    const double truth = TrueSum(space, script, 0);
    EXPECT_NEAR(outcome.sums[0].seconds, truth, 1e-6 * truth);
  }
}

// ---- What cannot be measured.

TEST(CampaignTest, OutOfMemoryAndUnsupportedAreRecordedAndNotTriedAgain) {
  const StateSpace space = DenseSteps({{9000, 8000, 50, 40}});
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.too_large = [](const Operation& operation, int) {
    return std::get<DenseOp>(operation).units > 8500;
  };
  script.unsupported = [](const Operation& operation, Precision) {
    return std::get<DenseOp>(operation).units == 50;
  };
  RecordedBackend first(script);
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &first, CampaignOptions());
  EXPECT_EQ(outcome.end, CampaignEnd::kKnown);
  EXPECT_EQ(outcome.out_of_memory, 2U);
  EXPECT_EQ(outcome.unsupported, 2U);
  EXPECT_EQ(outcome.measured, 4U);
  EXPECT_EQ(outcome.missing, 0U);
  EXPECT_EQ(outcome.sums[0].points, 8);
  EXPECT_EQ(outcome.sums[0].measured, 4);
  EXPECT_EQ(outcome.sums[0].out_of_memory, 2);
  EXPECT_EQ(outcome.sums[0].unsupported, 2);
  EXPECT_NEAR(outcome.sums[0].seconds, 2 * (8000 + 40) * 1e-6, 1e-9);
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    const std::int64_t units = Units(line.point);
    EXPECT_EQ(line.status, units == 9000 ? PointStatus::kOutOfMemory
                           : units == 50 ? PointStatus::kUnsupported
                                         : PointStatus::kMeasured);
    EXPECT_EQ(line.reason, units == 9000 ? kOutOfMemoryReason
                           : units == 50 ? kUnsupportedReason
                                         : "");
  }

  RecordedBackend second(script);
  const CampaignOutcome again = RunOn(folder.Path("p"), space, &second, CampaignOptions());
  EXPECT_EQ(again.taken_over, again.points);
  EXPECT_EQ(again.out_of_memory, 2U);
  EXPECT_EQ(again.unsupported, 2U);
  EXPECT_TRUE(second.prepared().empty());
}

TEST(CampaignTest, ADeviceThatCanDoNothingEndsAtOnce) {
  RecordedScript script = UnitsScript();
  script.unsupported = [](const Operation&, Precision) { return true; };
  RecordedBackend device(script);
  const CampaignOutcome outcome = RunAlone(DenseSteps({{3000, 2000}}), &device, CampaignOptions());
  EXPECT_EQ(outcome.unsupported, 4U);
  EXPECT_EQ(outcome.measured, 0U);
  EXPECT_EQ(outcome.sums[0].measured, 0);
  EXPECT_TRUE(device.ran().empty());
  EXPECT_LT(outcome.elapsed_s, 1);
}

// Others take the memory while points are visited again.
TEST(CampaignTest, WhatWasMeasuredIsNotForgottenForLackOfMemory) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  const TempFolder folder;
  RecordedBackend undisturbed(UnitsScript(0.1));
  const double walk_s = RunAlone(space, &undisturbed, FirstWalkOnly()).elapsed_s;
  RecordedScript script = UnitsScript(0.1);
  script.memory_taken = {{walk_s, kForever}};
  RecordedBackend device(script);
  CampaignOptions options;
  options.budget_s = 20;
  options.relative_error = 0.001;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  EXPECT_EQ(outcome.measured, outcome.points);
  EXPECT_EQ(outcome.out_of_memory, 0U);
  const double truth = TrueSum(space, script, 0);
  EXPECT_NEAR(outcome.sums[0].seconds, truth, 0.1 * truth);
  for (const auto& [point, samples] : PointsOf(folder.Path("p"))) {
    EXPECT_TRUE(samples.measured()) << Text(point);
  }
  EXPECT_LT(device.prepared().size(), 100U) << "tried again and again";
}

TEST(CampaignTest, ADeviceFailureIsThrownAsItIs) {
  const TempFolder folder;
  RecordedScript script = UnitsScript();
  script.fail_at_run = 20;
  RecordedBackend device(script);
  try {
    RunOn(folder.Path("p"), DenseSteps({{3000, 2000}}), &device, FirstWalkOnly());
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the device fell off the bus");
  }
  const std::vector<MeasuredSamples> lines = LinesOf(folder.Path("p"));
  ASSERT_EQ(lines.size(), 2U);
  for (const MeasuredSamples& line : lines) EXPECT_EQ(line.seconds.size(), 7U);
}

// ---- Outliers and progress.

TEST(CampaignTest, OutliersAreCountedAndDoNotMoveTheSum) {
  const StateSpace space = DenseSteps({{9000, 5000, 3000}});
  const TempFolder folder;
  RecordedScript script = UnitsScript(0.02);
  script.outlier_every = 25;
  RecordedBackend device(script);
  CampaignOptions options;
  options.relative_error = 0.001;
  const CampaignOutcome outcome = RunOn(folder.Path("p"), space, &device, options);
  std::size_t interrupts = 0;
  std::size_t samples = 0;
  for (const MeasuredSamples& line : LinesOf(folder.Path("p"))) {
    for (const double seconds : line.seconds) {
      ++samples;
      interrupts += seconds > 10 * script.seconds(line.point) ? 1 : 0;
    }
  }
  EXPECT_EQ(outcome.samples, samples);
  EXPECT_GT(interrupts, samples / 50);
  EXPECT_GE(outcome.outliers, interrupts);
  EXPECT_LE(outcome.outliers, interrupts + samples / 100);
  const double truth = TrueSum(space, script, 0);
  EXPECT_NEAR(outcome.sums[0].seconds, truth, 5 * outcome.sums[0].relative_error * truth);
}

TEST(CampaignTest, ProgressGoesOnAndPromisesNoMoreThanTheBudget) {
  const StateSpace space = Catalogue({"resnet18"}, {1, 8});
  for (const double budget : {0.3, 2.0, 200.0}) {
    RecordedScript script;
    script.noise = [](const MeasuredPoint&) { return 0.05; };
    RecordedBackend device(script);
    CampaignOptions options;
    options.budget_s = budget;
    std::vector<CampaignProgress> reports;
    CampaignHooks hooks = device.Hooks();
    hooks.progress = [&](const CampaignProgress& progress) {
      ASSERT_NE(progress.state, nullptr);
      EXPECT_LE(progress.left_s, budget - progress.elapsed_s + 1e-9);
      EXPECT_GE(progress.left_s, 0);
      EXPECT_EQ(progress.states, space.states.size());
      EXPECT_DOUBLE_EQ(progress.elapsed_s, device.now());
      if (progress.refining) {
        EXPECT_EQ(progress.visited, space.states.size());
        EXPECT_GT(progress.worst_error, options.relative_error);
      } else {
        EXPECT_EQ(progress.state, &space.states[progress.visited]);
      }
      if (!reports.empty()) {
        EXPECT_GE(progress.visited, reports.back().visited);
        EXPECT_GE(progress.elapsed_s, reports.back().elapsed_s);
        EXPECT_GE(progress.refining, reports.back().refining);
      }
      reports.push_back(progress);
    };
    const TempFolder folder;
    Journal journal(folder.Path("p"), HeaderOf(&device));
    RunCampaign(space, &device, &journal, options, hooks);
    EXPECT_EQ(reports.size(), device.prepared().size()) << "one for each visit";
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.front().visited, 0U);
  }
}

// As the largest states come first, what is said to be left is no less than it takes.
TEST(CampaignTest, TheTimeLeftOfTheFirstWalkIsAnUpperBound) {
  const StateSpace space = DenseSteps({{90'000, 50'000, 30'000, 20'000, 10'000, 5000}});
  RecordedBackend device(UnitsScript());
  std::vector<CampaignProgress> reports;
  CampaignHooks hooks = device.Hooks();
  hooks.progress = [&](const CampaignProgress& progress) { reports.push_back(progress); };
  const TempFolder folder;
  Journal journal(folder.Path("p"), HeaderOf(&device));
  const CampaignOutcome outcome = RunCampaign(space, &device, &journal, FirstWalkOnly(), hooks);
  ASSERT_EQ(reports.size(), space.states.size());
  for (std::size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].left_s, outcome.elapsed_s - reports[i].elapsed_s);
    EXPECT_LE(reports[i].left_s, reports[i - 1].left_s);
  }
}

// ---- Ceilings.

TEST(CeilingsTest, ARateIsTheWorkOverTheMedianTime) {
  RecordedScript script;
  script.seconds = [](const MeasuredPoint& point) {
    return std::holds_alternative<CopyOp>(point.operation) ? 2e-3 : 1e-3;
  };
  script.unsupported = [](const Operation&, Precision precision) {
    return precision == Precision::kTf32;
  };
  RecordedBackend device(script);
  const std::vector<MeasuredRate> rates = MeasureCeilings(&device);
  std::map<std::string, double> by_name;
  for (const MeasuredRate& rate : rates) {
    by_name[rate.name] = rate.per_second;
    EXPECT_TRUE(rate.stable) << rate.name;
    EXPECT_NEAR(rate.relative_error, 0, 1e-12) << rate.name;
  }
  // 1024 x 1024 times 1024 x 1024 in 1 ms; 128 MiB read and 128 MiB written in 2 ms.
  const double flop_per_s = 2.0 * 1024 * 1024 * 1024 / 1e-3;
  const double bytes_per_s = 2.0 * 128 * 1024 * 1024 / 2e-3;
  ASSERT_EQ(rates.size(), 4U);  // without the precision that is not supported
  EXPECT_NEAR(by_name["fp32"], flop_per_s, 1e-9 * flop_per_s);
  EXPECT_NEAR(by_name["fp16"], flop_per_s, 1e-9 * flop_per_s);
  EXPECT_NEAR(by_name["bf16"], flop_per_s, 1e-9 * flop_per_s);
  EXPECT_NEAR(by_name["copy"], bytes_per_s, 1e-9 * bytes_per_s);
}

TEST(CeilingsTest, ANoisyDeviceSaysSo) {
  RecordedScript script;
  script.seconds = [](const MeasuredPoint&) { return 1e-4; };
  script.noise = [](const MeasuredPoint&) { return 0.5; };
  RecordedBackend device(script);
  const std::vector<MeasuredRate> rates = MeasureCeilings(&device);
  ASSERT_EQ(rates.size(), 5U);
  // A hundred runs behind three of the warm-up are as many as there are for one.
  std::map<MeasuredPoint, int> runs;
  for (const RecordedBackend::Ran& run : device.ran()) ++runs[run.point];
  ASSERT_EQ(runs.size(), 5U);
  for (const auto& [point, count] : runs) EXPECT_EQ(count, 3 + 100) << Text(point);
  for (const MeasuredRate& rate : rates) {
    EXPECT_FALSE(rate.stable) << rate.name;
    EXPECT_GT(rate.relative_error, 0.01) << rate.name;
  }
}

TEST(CeilingsTest, TheBackEndsOwnFiguresComeFirst) {
  class Knowing : public RecordedBackend {
   public:
    std::vector<MeasuredRate> MeasureCeilings() override { return {{"fp32", 1e12, 0.001, true}}; }
  };
  Knowing device;
  const std::vector<MeasuredRate> rates = MeasureCeilings(&device);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates.front().per_second, 1e12);
  EXPECT_TRUE(device.prepared().empty());
}

}  // namespace
}  // namespace stepcast
