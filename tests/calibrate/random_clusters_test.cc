// Two hundred clusters drawn from what is believed beforehand, each measured and fitted: the true
// parameters are inside their intervals as often as the intervals say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "model/compute/sheet_compute.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

constexpr int kClusters = 200;
constexpr double kNoise = 0.05;
constexpr double kNinetyFivePercent = 1.959964;

struct RandomCluster {
  Truth truth;
  double speed = 1;
};

RandomCluster DrawCluster(Noise* noise) {
  RandomCluster drawn;
  const ClusterPriors cluster = MakeClusterPriors(SyntheticCluster(), std::nullopt);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    drawn.truth.cluster.si[i] = DrawFrom(cluster[i], kClusterParameterSpecs[i], noise);
  }
  drawn.speed = DrawFrom(PriorOf(kDeviceSpeedSpec), kDeviceSpeedSpec, noise);
  for (const char* name : {"resnet50", "bert_base", "resnet18_cifar10"}) {
    WorkloadPriors priors = MakeWorkloadPriors(*FindWorkload(name), T4());
    priors[kFloorTime] = FloorBesideSamples(priors[kFixedTime].si, priors[kSampleTime].si);
    priors[kFixedTime] = FixedBesideSheet(priors[kFixedTime].si);
    priors[kSampleTime].si /= drawn.speed;
    priors[kSampleTime].log_sd = kWorkloadSpeedLogSd;
    auto& si = drawn.truth.workloads[name].si;
    for (std::size_t i = 0; i < priors.size(); ++i) {
      si[i] = DrawFrom(priors[i], kWorkloadParameterSpecs[i], noise);
    }
  }
  return drawn;
}

TEST(RandomClusters, TrueParametersAreInTheirIntervals) {
  int parameters = 0;
  int inside = 0;
  int decided = 0;
  int decided_inside = 0;
  std::map<std::string, std::pair<int, int>> by_name;  // inside, all
  for (int i = 0; i < kClusters; ++i) {
    Noise noise(1000 + static_cast<std::uint64_t>(i));
    const RandomCluster drawn = DrawCluster(&noise);
    SyntheticProblem synthetic(drawn.truth);
    synthetic.problem().devices[kSyntheticDevice] = T4();
    AddCampaign(&synthetic, FittedPlacements(), kNoise, 5000 + static_cast<std::uint64_t>(i));
    CalibrationOptions options;
    options.profiled_plans = 1000;
    const CalibrationOutcome outcome = Calibrate(synthetic.problem(), options);
    ASSERT_TRUE(outcome.IsUsable()) << "cluster " << i << ": " << outcome.message;
    for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
      const double truth = p.name == kDeviceSpeedSpec.name ? drawn.speed : drawn.truth.ValueOf(p);
      const bool in = p.low <= truth && truth <= p.high;
      ++parameters;
      inside += in ? 1 : 0;
      if (p.decided_by == DecidedBy::kData) {
        ++decided;
        decided_inside += in ? 1 : 0;
      }
      auto& [ins, all] = by_name[p.name];
      ins += in ? 1 : 0;
      ++all;
    }
  }
  const double share = static_cast<double>(inside) / parameters;
  const double decided_share = static_cast<double>(decided_inside) / decided;
  std::printf(
      "[ measured ] %d clusters: %.1f %% of %d true parameters in their 95 %% intervals, "
      "%.1f %% of the %d that the runs decided\n",
      kClusters, 100 * share, parameters, 100 * decided_share, decided);
  for (const auto& [name, count] : by_name) {
    std::printf("[ measured ]   %-20s %5.1f %% of %d\n", name.c_str(),
                100.0 * count.first / count.second, count.second);
  }
  EXPECT_GE(share, 0.95);
  EXPECT_LE(share, 0.985) << "intervals are wider than they need be";
  EXPECT_GE(decided_share, 0.93);
}

}  // namespace
}  // namespace stepcast
