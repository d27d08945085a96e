// Where a pace that no run has told is slow.
#include "model/step/slow_ends.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <optional>

#include "data/workloads/catalog.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"

namespace stepcast {
namespace {

// A rate is slow where it is small, the time of a sample and what grows with devices where they are
// large: each by 1.645 standard deviations of its prior, where that is wide.
TEST(SlowEnds, AreSmallRatesAndLargeTimes) {
  const Belief belief(Cluster(), *FindWorkload("resnet50"), std::nullopt, "t4");
  const Belief::AtHosts nowhere;
  std::map<int, double> moves;  // of ln(value), by column
  for (const SlowEnd& end : SlowEndsOf(belief, nowhere)) {
    const auto& [cluster, workload] = end.parameters;
    const auto column = static_cast<std::size_t>(end.column);
    if (end.column == kShareColumn) {  // of a rate that a plan states, and no value of the belief
      moves[end.column] = std::log(cluster.stated_share);
      continue;
    }
    const double si = end.column == kLinkColumn      ? cluster.node_link_si.value()
                      : end.column < kWorkloadColumn ? cluster.si.at(column)
                                                     : workload.si.at(column - kWorkloadColumn);
    moves[end.column] = std::log(si) - belief.log_value(nowhere.Position(end.column));
  }
  const auto sd = [](ClusterParameter of) { return kClusterParameterSpecs[of].prior_log_sd; };
  const std::map<int, double> expected = {
      {kLinkColumn, -sd(kLinkBandwidth)},
      {kShareColumn, -kStatedLinkLogSd},
      {kFlowBandwidth, -sd(kFlowBandwidth)},
      {kHostBandwidth, -sd(kHostBandwidth)},
      {kHostSharing, sd(kHostSharing)},
      {kServerRate, -sd(kServerRate)},
      {kWorkloadColumn + kSampleTime, kWorkloadParameterSpecs[kSampleTime].prior_log_sd}};
  ASSERT_EQ(moves.size(), expected.size());
  for (const auto& [column, sds] : expected) {
    EXPECT_NEAR(moves[column], 1.6448536 * sds, 1e-6) << column;
  }
}

}  // namespace
}  // namespace stepcast
