// Nothing that a plan says is ignored: a change of one field moves the answer, or what is said of
// it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/changed_plans.h"

namespace stepcast {
namespace {

bool SameAnswer(const Prediction& a, const Prediction& b) {
  return a.step_time == b.step_time && a.low == b.low && a.high == b.high && a.p95 == b.p95 &&
         a.throughput == b.throughput && a.traffic.total == b.traffic.total &&
         a.memory.total == b.memory.total && a.flags == b.flags;
}

TEST(EveryPlanField, MovesTheAnswer) {
  const std::set<std::string> ignored = {
      "strategy",    // of allreduce, whose next name, ring, is what it is
      "slow_nodes",  // a step waits for one as for several
  };
  Plan base;
  base.local_batch = 8;
  base.servers = 2;
  // So that what says how loss is answered has something to answer, at the servers' end as well.
  base.link = {.bandwidth = GigabitsPerSecond(1.0),
               .rtt = Milliseconds(2.0),
               .loss = 0.01,
               .congestion_control = CongestionControl::kCubic,
               .loss_burst = Milliseconds(0.3)};
  base.server_link = base.link;
  base.server_link.bandwidth = GigabitsPerSecond(0.3);
  const Predictor predictor(CalibratedCluster(PlausibleTruth()), *FindWorkload("resnet50"),
                            std::nullopt, kSyntheticDevice);
  for (const ChangedPlan& changed : ChangedPlans(base)) {
    const bool same =
        SameAnswer(predictor.Predict(changed.before), predictor.Predict(changed.after));
    if (changed.facts.state == std::string("hosts")) {
      EXPECT_TRUE(same) << "no host is known here";
      Truth truth = PlausibleTruth();
      truth.host_links = {{"fast", GigabitsPerSecond(9.0)}, {"slow", GigabitsPerSecond(0.1)}};
      const Predictor knowing(CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt,
                              kSyntheticDevice);
      Plan fast = AllreducePlan({2, 2}, 8);
      fast.hosts = {"fast", "fast"};
      Plan slow = fast;
      slow.hosts = {"fast", "slow"};
      EXPECT_FALSE(SameAnswer(knowing.Predict(fast), knowing.Predict(slow)));
      continue;
    }
    if (changed.facts.state == std::string("server_transport")) {
      EXPECT_TRUE(same) << "one end alone speaks no RDMA";
      Plan both = changed.before;
      both.link.transport = Transport::kRdma;  // of servers too, where nothing else is said
      Plan one = both;
      one.server_link.transport = Transport::kTcp;
      EXPECT_FALSE(SameAnswer(predictor.Predict(both), predictor.Predict(one)));
      continue;
    }
    EXPECT_EQ(same, ignored.count(changed.facts.state) > 0) << changed.facts.state;
  }
}

}  // namespace
}  // namespace stepcast
