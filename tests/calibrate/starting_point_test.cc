// Where a fit begins: which of the hosts of slow runs is the slow one.
#include "calibrate/starting_point.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

using Hosts = std::vector<std::string>;

struct OnLink {
  Hosts hosts;
  double log_noise = 0;
};

// Calibrates runs of one job on these hosts, of which one has a tenth of the others' link.
Calibration CalibratedOn(const Hosts& all, const std::string& slow,
                         const std::vector<OnLink>& runs) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  for (const std::string& host : all) {
    truth.host_links[host] = GigabitsPerSecond(host == slow ? 0.9 : 9.0);
  }
  SyntheticProblem synthetic(std::move(truth));
  const auto add = [&](const Hosts& hosts, int batch, double log_noise) {
    Plan plan = AllreducePlan(Placement(hosts.size(), 1), batch);
    plan.hosts = hosts;
    synthetic.Add("resnet50", plan, log_noise);
  };
  for (const int batch : {8, 32, 64}) add({all.front()}, batch, 0);
  for (const OnLink& run : runs) add(run.hosts, 32, run.log_noise);
  CalibrationOptions options;
  options.profiled_plans = 0;
  const CalibrationOutcome outcome = Calibrate(synthetic.problem(), options);
  EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
  return *outcome.cluster.calibration;
}

void ExpectSlowAlone(const Calibration& calibration, const Hosts& all, const std::string& slow) {
  for (const std::string& host : all) {
    const auto at = calibration.Find(kHostsScopePrefix + host, "link_bandwidth");
    ASSERT_TRUE(at) << host << " is told apart";
    const double link = calibration.parameters[static_cast<std::size_t>(*at)].value;
    if (host == slow) {
      EXPECT_NEAR(link, 0.9, 0.2) << host;
    } else {
      EXPECT_GT(link, 3) << host << " is not slow";
    }
  }
}

// All runs of n3 and of n5 are slow, for n4 is in them. Noise has those with n3 look slower, so
// that n3 alone seems to hold them back, and n4 those with n5.
TEST(StartingPoint, OneOfThreeHostsIsTheSlowOne) {
  const Hosts all = {"n1", "n2", "n3", "n4", "n5", "n6"};
  const Calibration calibration = CalibratedOn(all, "n4",
                                               {{{"n1", "n2"}},
                                                {{"n2", "n6"}},
                                                {{"n1", "n6"}},
                                                {{"n3", "n4"}, 0.03},
                                                {{"n4", "n5"}, -0.03},
                                                {{"n1", "n2", "n6"}}});
  ExpectSlowAlone(calibration, all, "n4");
}

// The same with a run of all of them, and the slow host named second.
TEST(StartingPoint, TheHostNamedSecondMayBeTheSlowOne) {
  const Hosts all = {"n1", "n2", "n3", "n4"};
  const Calibration calibration = CalibratedOn(
      all, "n2",
      {{{"n1", "n2"}, 0.03}, {{"n2", "n3"}, -0.03}, {{"n3", "n4"}}, {{"n1", "n2", "n3", "n4"}}});
  ExpectSlowAlone(calibration, all, "n2");
}

// Pairs, and groups across them: as operators measure racks.
TEST(StartingPoint, PairsAndGroupsTellTheSlowHost) {
  const Hosts all = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};
  for (const char* slow : {"n6", "n8"}) {
    const Calibration calibration = CalibratedOn(all, slow,
                                                 {{{"n1", "n2"}},
                                                  {{"n3", "n4"}},
                                                  {{"n5", "n6"}, 0.02},
                                                  {{"n7", "n8"}, 0.02},
                                                  {{"n1", "n3", "n5", "n7"}},
                                                  {{"n2", "n4", "n6", "n8"}, -0.02},
                                                  {{"n1", "n4", "n5", "n8"}},
                                                  {{"n2", "n3", "n6", "n7"}}});
    ExpectSlowAlone(calibration, all, slow);
  }
}

}  // namespace
}  // namespace stepcast
