// Writes the inputs of the doors `online`, `fleet` and `jobs` anew: a record fits the belief that
// its job began with, so that other priors or parameters need other records.
//
//   ninja stepcast_online_seeds && tests/fuzz/stepcast_online_seeds
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/online/fleet.h"
#include "calibrate/online/online_calibration.h"
#include "data/io/fleet_record.h"
#include "data/io/online_record.h"
#include "data/workloads/catalog.h"
#include "tests/capi/support.h"

namespace stepcast {
namespace {

void Write(const std::string& name, const std::string& text) {
  const std::string path = std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
  std::ofstream file(path);
  file << text;
  std::cout << path << "\n";
}

void Write(const std::string& name, const OnlineCalibration& job) {
  Write("online/" + name + ".json", FormatOnlineRecord(job.Export()));
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

// One job that is over, one that has become slower, one of another device; and nobody yet.
void WriteFleets() {
  Fleet fleet(FittedCluster());
  const auto write = [&](const std::string& name, const std::string& line_behind) {
    const std::string text = FormatFleetRecord(fleet.Export());
    Write("fleet/" + name + ".json", text);
    Write("jobs/" + name + ".jsonl", text + "\n" + line_behind);
    return text + "\n";
  };
  const std::string empty = write("new", "");
  const Workload trained = FindWorkload("mlp_mnist").value();
  const auto observe = [&](const char* job, int rows, double seconds) {
    for (int i = 0; i < rows; ++i) {
      const Placement placement = i % 3 == 0 ? Placement{1} : Placement{2, 2};
      const double spread = 1 + 0.02 * (i % 5 - 2);
      fleet.Job(job)->Observe(PlanOf(Strategy::kRing, placement), Seconds(seconds * spread));
    }
  };
  fleet.Add("over", trained, fleet.cluster().device_facts);
  observe("over", 6, 0.05);
  fleet.End("over");
  FleetRecord of_another;
  of_another.cluster = "another";
  write("over", FormatFleetRecord(of_another) + "\n");
  fleet.Add("slower", trained, fleet.cluster().device_facts);
  observe("slower", 20, 0.05);
  observe("slower", 20, 0.1);
  Device other = *fleet.cluster().device_facts;
  other.name = "other";
  fleet.Add("other", trained, other);
  write("running", empty);
}

}  // namespace
}  // namespace stepcast

int main() {
  stepcast::WriteAll();
  stepcast::WriteFleets();
}
