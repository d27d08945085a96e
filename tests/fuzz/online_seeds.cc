// Writes the inputs of the door `online` anew: a record fits the belief that its job began with, so
// that other priors or parameters need other records.
//
//   ninja stepcast_online_seeds && tests/fuzz/stepcast_online_seeds
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/io/online_record.h"
#include "data/workloads/catalog.h"
#include "tests/capi/support.h"

namespace stepcast {
namespace {

void Write(const std::string& name, const OnlineCalibration& job) {
  const std::string path =
      std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/online/" + name + ".json";
  std::ofstream file(path);
  file << FormatOnlineRecord(job.Export());
  std::cout << path << "\n";
}

OnlineCalibration NewJob() {
  const Cluster cluster = FittedCluster();
  return {cluster, FindWorkload("mlp_mnist").value(), cluster.device_facts};
}

Plan PlanOf(Strategy strategy, std::vector<int> placement) {
  Plan plan;
  plan.strategy = strategy;
  plan.placement = Placement(std::move(placement));
  plan.local_batch = 32;
  return plan;
}

void WriteAll() {
  OnlineCalibration job = NewJob();
  Write("new", job);
  for (const double seconds : {0.056, 0.055, 0.057}) {
    job.Observe(PlanOf(Strategy::kRing, {2, 2, 2}), Seconds(seconds));
  }
  job.Observe(PlanOf(Strategy::kRing, {2}), Seconds(0.05));
  job.Observe(PlanOf(Strategy::kRing, {2, 2}), Seconds(0.054));
  Write("steps", job);

  OnlineCalibration served = NewJob();
  Plan plan = PlanOf(Strategy::kPsSync, {1, 1, 1});
  plan.servers = 2;
  plan.link.rtt = Milliseconds(1.0);
  plan.server_link.bandwidth = GigabitsPerSecond(5.0);
  for (const double seconds : {0.021, 0.019, 0.02, 0.0205}) served.Observe(plan, Seconds(seconds));
  Write("servers", served);
}

}  // namespace
}  // namespace stepcast

int main() { stepcast::WriteAll(); }
