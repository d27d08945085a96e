// What an observer of one plan alone sees of a change: steps that the model makes, with 5 % of
// noise, before and after one thing has changed for good.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/workloads/catalog.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr double kNoise = 0.05;
constexpr int kSeeds = 100;
constexpr int kBefore = 200;
constexpr int kSoon = 30;
const char* const kHosts[] = {"a", "b", "c", "d"};

Truth TruthOfHosts() {
  Truth truth = PlausibleTruth();
  for (const char* host : kHosts) {
    truth.host_links[host] = BytesPerSecond(truth.cluster.si[kLinkBandwidth]);
  }
  return truth;
}

Plan WatchedPlan() { return AllreducePlan({1, 1, 1, 1}, 32); }

// A step of what happens, whatever the observer is told of it.
double StepS(const Truth& truth, double loss = 0) {
  Plan plan = WatchedPlan();
  plan.hosts.assign(std::begin(kHosts), std::end(kHosts));
  if (loss > 0) plan.link.loss = loss;
  return SyntheticProblem(truth).TrueStep("resnet50", plan).in(kSeconds);
}

struct Planted {
  const char* what;
  const char* cause;
  double step_s;
};

std::vector<Planted> PlantedChanges() {
  Truth link = TruthOfHosts();
  link.cluster.si[kLinkBandwidth] /= 2;
  link.cluster.si[kFlowBandwidth] /= 2;
  for (auto& [host, rate] : link.host_links) rate = rate / 2;
  Truth host = TruthOfHosts();
  host.host_slowdowns["c"] = 1.5;
  return {{"link halved", "network", StepS(link)},
          {"a host slower by 1.5", "compute", StepS(host)},
          {"1 % lost", "network", StepS(TruthOfHosts(), 0.01)}};
}

OnlineCalibration NewJob(bool calibrated) {
  Truth known = PlausibleTruth();
  return {calibrated ? CalibratedCluster(known) : SyntheticCluster(), *FindWorkload("resnet50"),
          T4()};
}

class WatchedChange : public testing::TestWithParam<bool> {};

TEST_P(WatchedChange, IsSeenAndNamedSoon) {
  const double before_s = StepS(TruthOfHosts());
  for (const Planted& planted : PlantedChanges()) {
    ASSERT_GT(planted.step_s, 1.1 * before_s) << planted.what;
    int seen = 0;
    int among = 0;
    int alone = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      OnlineCalibration job = NewJob(GetParam());
      Noise noise(static_cast<std::uint64_t>(seed));
      std::string cause;
      const auto observe = [&](double step_s) {
        cause = job.Observe(WatchedPlan(), Seconds(step_s * std::exp(kNoise * noise.Next()))).cause;
      };
      for (int i = 0; i < kBefore; ++i) observe(before_s);
      cause.clear();
      for (int i = 0; i < kSoon && cause.empty(); ++i) observe(planted.step_s);
      seen += cause.empty() ? 0 : 1;
      among += cause.find(planted.cause) == std::string::npos ? 0 : 1;
      alone += cause == planted.cause ? 1 : 0;
    }
    std::printf(
        "[ measured ] %s (a step of %.0f ms takes %.0f): seen within %d steps in %d of %d, its "
        "cause among those named in %d, alone in %d\n",
        planted.what, 1e3 * before_s, 1e3 * planted.step_s, kSoon, seen, kSeeds, among, alone);
    EXPECT_GE(seen, 95) << planted.what;
    EXPECT_GE(among, 95) << planted.what;
  }
}

TEST_P(WatchedChange, IsNotSeenWhereThereIsNone) {
  constexpr int kJobs = 20;
  constexpr int kRows = 1000;
  const double step_s = StepS(TruthOfHosts());
  int alarms = 0;
  for (int seed = 1; seed <= kJobs; ++seed) {
    OnlineCalibration job = NewJob(GetParam());
    Noise noise(1000 + static_cast<std::uint64_t>(seed));
    for (int i = 0; i < kRows; ++i) {
      const double measured = step_s * std::exp(kNoise * noise.Next());
      if (!job.Observe(WatchedPlan(), Seconds(measured)).cause.empty()) ++alarms;
    }
  }
  std::printf("[ measured ] %d false alarms in %d steps\n", alarms, kJobs * kRows);
  EXPECT_LE(alarms, kJobs * kRows / 10'000);
}

INSTANTIATE_TEST_SUITE_P(Start, WatchedChange, testing::Bool(), [](const auto& start) {
  return std::string(start.param ? "Calibrated" : "FromPriors");
});

}  // namespace
}  // namespace stepcast
