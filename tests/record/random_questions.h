// Questions at random, each the same for the same number, wherever it is asked: a cluster,
// calibrated or not, a workload on a device, and plans for them.
#ifndef STEPCAST_TESTS_RECORD_RANDOM_QUESTIONS_H_
#define STEPCAST_TESTS_RECORD_RANDOM_QUESTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/machines.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/compute/profiled_compute.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "tests/support/random.h"

namespace stepcast {

// Seeds that follow each other draw nothing alike.
class Draw : public Random {
 public:
  explicit Draw(std::uint64_t seed) : Random(seed * 0x9e3779b97f4a7c15U + 0x1234567U) {}
};

// What the repository ships, read once.
struct Shipped {
  explicit Shipped(const std::string& root)
      : devices(ReadDevices(root + "/data/machines/gpus.yaml")),
        profile(ReadComputeProfile(root + "/data/profiles/xeon-onednn-1.profile.jsonl").profile) {
    for (const char* place : {"aws-g4dn-12xlarge", "ec2-g3-ps", "gce-t4", "mxnet-cpu-vms",
                              "networking-perspective", "ufrgs-poti", "ufrgs-tupi"}) {
      clusters.push_back(ReadCluster(root + "/data/machines/" + place + ".yaml"));
    }
    for (const char* place : {"gce-t4", "networking-perspective", "ufrgs-tupi"}) {
      calibrated.push_back(ReadCluster(root + "/tests/record/calibrated/" + place + ".yaml"));
    }
    for (const std::string& name : WorkloadNames()) networks.push_back(*FindWorkload(name));
  }

  std::vector<Device> devices;
  ComputeProfile profile;
  std::vector<Cluster> clusters;
  std::vector<Cluster> calibrated;
  std::vector<Workload> networks;
};

// Where plans are asked.
struct Place {
  Cluster cluster;
  Workload workload;
  std::optional<Device> facts;
  std::string device;
  std::shared_ptr<const ProfiledCompute> profile;

  Predictor MakePredictor() const { return {cluster, workload, facts, device, profile}; }
};

inline LinkFacts DrawLink(Draw* draw, double known) {
  LinkFacts link;
  if (draw->Chance(known)) link.bandwidth = GigabitsPerSecond(draw->LogBetween(0.05, 200));
  if (draw->Chance(known)) {
    link.rtt = Milliseconds(draw->Chance(0.1) ? 0 : draw->LogBetween(0.01, 100));
  }
  if (draw->Chance(known)) link.loss = draw->Chance(0.2) ? 0 : draw->LogBetween(1e-6, 0.2);
  if (draw->Chance(known)) {
    link.congestion_control =
        draw->Pick({CongestionControl::kReno, CongestionControl::kCubic, CongestionControl::kBbr});
  }
  if (draw->Chance(known / 2)) link.loss_burst = Milliseconds(draw->LogBetween(0.01, 10));
  return link;
}

inline Workload OfBytes(const std::string& name, double bytes) {
  Workload workload;
  workload.name = workload.title = name;
  workload.parameters = workload.trainable_parameters = static_cast<std::int64_t>(bytes / 4) + 1;
  workload.gradient_bytes = Bytes(bytes);
  return workload;
}

inline Workload DrawLayers(Draw* draw, int layers) {
  Workload workload = OfBytes("own_layers", 0);
  workload.parameters = 0;
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.kind = LayerKind::kDense;
    layer.tensors = {draw->LogWhole(1000, 20'000'000), draw->LogWhole(1, 4000)};
    layer.forward_flop = Flop(draw->LogBetween(1e5, 1e10));
    layer.activation_bytes = Bytes(std::floor(draw->LogBetween(1e3, 1e8)));
    workload.parameters += layer.parameters();
    workload.layers.push_back(layer);
  }
  workload.trainable_parameters = workload.parameters;
  workload.gradient_bytes = Bytes(4.0 * static_cast<double>(workload.parameters));
  return workload;
}

// The calibration with other values and another covariance, within what its priors allow.
inline void Shake(Calibration* calibration, Draw* draw) {
  const Eigen::Index size = calibration->log_covariance.rows();
  Eigen::VectorXd moved(size);
  for (Eigen::Index i = 0; i < size; ++i)
    moved(i) = draw->LogBetween(1e-3, 0.3) * draw->Between(-1, 1);
  calibration->log_covariance =
      draw->LogBetween(0.05, 1.5) * calibration->log_covariance + moved * moved.transpose();
  for (Eigen::Index i = 0; i < size; ++i) {
    ParameterEstimate& estimate = calibration->parameters[static_cast<std::size_t>(i)];
    estimate.value *= std::exp(std::min(estimate.prior_log_sd, 0.4) * draw->Between(-1, 1));
    estimate.log_sd = std::sqrt(calibration->log_covariance(i, i));
  }
  calibration->residual_log_sd *= draw->Between(0.5, 2);
  if (draw->Chance(0.3)) calibration->scatter.clear();
  calibration->range.max_workers = draw->LogWhole(1, 64);
  calibration->range.max_nodes = draw->LogWhole(1, calibration->range.max_workers);
}

// What the calibration knows of its first workload is said of this one on this device.
inline void SayOf(const Workload& workload, const std::string& device, Calibration* calibration) {
  std::string old;
  const std::string scope = WorkloadScope(workload, device);
  for (ParameterEstimate& estimate : calibration->parameters) {
    if (estimate.scope.rfind(kWorkloadScopePrefix, 0) != 0) continue;
    if (estimate.scope == scope) return;
    if (old.empty()) old = estimate.scope;
    if (estimate.scope == old) estimate.scope = scope;
  }
  const auto rename = [&](auto* map) {
    if (auto node = map->extract(old); !node.empty()) {
      node.key() = scope;
      map->insert(std::move(node));
    }
  };
  rename(&calibration->scatter);
  rename(&calibration->range.local_batch);
}

inline Place DrawPlace(const Shipped& shipped, Draw* draw) {
  Place place;
  const bool calibrated = draw->Chance(0.7);
  place.cluster = calibrated ? draw->From(shipped.calibrated) : draw->From(shipped.clusters);
  Cluster& cluster = place.cluster;
  switch (draw->Whole(0, 9)) {
    case 0:
      place.workload = DrawLayers(draw, draw->LogWhole(1, 60));
      break;
    case 1:
      place.workload = OfBytes("own_message", draw->LogBetween(1e3, 1e9));
      place.workload.communication_only = true;
      break;
    case 2:
      if (calibrated) {
        place.workload = OfBytes("own_network", draw->LogBetween(1e4, 5e9));
        break;
      }
      [[fallthrough]];
    default:
      place.workload = draw->From(shipped.networks);
  }
  place.device = draw->Chance(0.6) ? cluster.device : draw->From(shipped.devices).name;
  place.facts = FindDevice(shipped.devices, place.device);
  if (!place.facts && place.device == cluster.device) place.facts = cluster.device_facts;
  const auto has_sheet = [&] {
    return place.facts && place.facts->fp32 && place.facts->memory_bandwidth;
  };
  while (!calibrated && !has_sheet()) {
    place.facts = draw->From(shipped.devices);
    place.device = place.facts->name;
  }
  if (calibrated) {
    if (draw->Chance(0.8)) Shake(&*cluster.calibration, draw);
    const bool only_fitted = place.workload.layers.empty() || !has_sheet();
    if (only_fitted || draw->Chance(0.5)) {
      SayOf(place.workload, place.device, &*cluster.calibration);
    }
  } else if (draw->Chance(0.3)) {
    cluster.hosts.clear();
    for (const char* name : {"a", "b", "c", "d"}) {
      cluster.hosts.push_back({name, DrawLink(draw, 0.5)});
    }
  }
  cluster.nics_per_node = draw->Pick({1, 1, 2, 4});
  if (draw->Chance(0.4)) cluster.link = DrawLink(draw, 0.4);
  if (draw->Chance(0.4)) cluster.server_link = DrawLink(draw, 0.4);
  if (draw->Chance(0.3)) cluster.device_link.rtt = Microseconds(draw->LogBetween(1, 100));
  // The shipped profile has the layers of convolutional networks.
  constexpr const char* kProfiled[] = {"alexnet",  "mobilenet", "mobilenet_v2", "resnet18",
                                       "resnet50", "resnet101", "vgg16"};
  const bool profiled = std::find(std::begin(kProfiled), std::end(kProfiled),
                                  place.workload.name) != std::end(kProfiled);
  if (profiled && draw->Chance(0.3)) {
    place.profile = std::make_shared<const ProfiledCompute>(shipped.profile, place.workload);
  }
  return place;
}

// Mostly of a scheduler's size, now and then far beyond.
inline Placement DrawPlacement(int nodes, Draw* draw) {
  const int devices = draw->Pick({1, 1, 2, 4, 8});
  Placement placement(static_cast<std::size_t>(nodes), devices);
  if (draw->Chance(0.3)) {
    for (int& used : placement) used = draw->Whole(1, devices);
    std::sort(placement.rbegin(), placement.rend());
  }
  return placement;
}

inline Plan DrawPlan(const Place& place, Draw* draw) {
  const Workload& workload = place.workload;
  Plan plan;
  const bool message = workload.communication_only;
  do {
    plan.strategy = static_cast<Strategy>(draw->Whole(0, kStrategyCount - 1));
  } while (message && plan.strategy == Strategy::kNone);
  const Strategy strategy = plan.strategy;
  const auto& hosts = place.cluster.hosts;
  do {
    plan.hosts.clear();
    if (!hosts.empty() && draw->Chance(0.5)) {
      for (int node = draw->Whole(1, 5); node > 0; --node) {
        plan.hosts.push_back(draw->Chance(0.05) ? "stranger" : draw->From(hosts).name);
      }
      plan.placement = DrawPlacement(static_cast<int>(plan.hosts.size()), draw);
    } else {
      plan.placement = DrawPlacement(draw->LogWhole(1, draw->Chance(0.02) ? 5000 : 64), draw);
    }
  } while (message && plan.workers() == 1);
  if (UsesServers(strategy)) {
    plan.server.colocated = draw->Chance(0.3);
    plan.server.sharding = draw->Pick({Sharding::kTensor, Sharding::kEven, Sharding::kRoundRobin});
    plan.servers = draw->LogWhole(1, plan.server.colocated ? std::min(32, plan.workers()) : 32);
  } else if (strategy == Strategy::kBytePs && draw->Chance(0.7)) {
    plan.servers = draw->LogWhole(1, 32);
  }
  if (strategy == Strategy::kPsSync) {
    plan.server.pipelined = draw->Chance(0.3);
    plan.server.multicast = draw->Chance(0.3);
    plan.server.in_network_aggregation = draw->Chance(0.3);
    plan.server.local_aggregation = draw->Chance(0.3);
  }
  if (strategy == Strategy::kPsAsync && draw->Chance(0.5)) {
    plan.server.staleness_bound = draw->LogWhole(1, 1000) - 1;
  }
  const bool together = strategy != Strategy::kNone && strategy != Strategy::kPsAsync;
  if (together && draw->Chance(0.2)) {
    plan.backup_workers = std::min(draw->Whole(1, 4), plan.workers() - 1);
  }
  plan.overlap =
      draw->Pick({Overlap::kBuckets, Overlap::kBuckets, Overlap::kNone, Overlap::kPNorm});
  plan.local_batch = draw->LogWhole(1, draw->Chance(0.02) ? 1'000'000 : 2048);
  plan.accumulation_steps = draw->Chance(0.5) ? 1 : draw->LogWhole(1, 64);
  if (draw->Chance(0.4)) plan.link = DrawLink(draw, 0.4);
  if (draw->Chance(0.4)) {
    // Drawn for all strategies, so that the rest of the draw is the same.
    const LinkFacts of_servers = DrawLink(draw, 0.4);
    if (TraitsOf(plan.strategy).may_have_servers()) plan.server_link = of_servers;
  }
  // Many buckets take long, and tell no more than some.
  constexpr double kMostBuckets = 300;
  const DataSize<> least = workload.gradient_bytes / kMostBuckets;
  const DataSize<> usual = UsesServers(strategy) ? Mebibytes(1.0) : Mebibytes(25.0);
  if (usual < least || draw->Chance(0.4)) {
    plan.bucket = least * draw->LogBetween(1, 2 * kMostBuckets);
  }
  // What a check refuses because no forecast reads it.
  if (!plan.has_server_link()) plan.server_link.bandwidth.reset();
  if (plan.overlap != Overlap::kBuckets) plan.server.pipelined = false;
  if (strategy == Strategy::kPsAsync && plan.overlap == Overlap::kPNorm) {
    plan.overlap = Overlap::kBuckets;
  }
  return plan;
}

// What else the compiled plan may be asked: other workers, batches and links.
inline PlanQuery DrawQuery(const Plan& plan, Draw* draw) {
  PlanQuery query = QueryOf(plan);
  if (plan.hosts.empty()) {
    query.nodes = draw->LogWhole(1, 64);
    query.devices_per_node = draw->Pick({1, 2, 4, 8});
    query.workers = query.nodes * query.devices_per_node;
  }
  if (plan.server.colocated) query.servers = std::min(query.servers, query.workers);
  query.local_batch = draw->LogWhole(1, 2048);
  query.accumulation_steps = draw->LogWhole(1, 16);
  if (draw->Chance(0.3)) query.link = DrawLink(draw, 0.3);
  return query;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_RECORD_RANDOM_QUESTIONS_H_
