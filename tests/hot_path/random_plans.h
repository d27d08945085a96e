// Clusters, workloads, plans and queries at random, each the same for the same seed.
#ifndef STEPCAST_TESTS_HOT_PATH_RANDOM_PLANS_H_
#define STEPCAST_TESTS_HOT_PATH_RANDOM_PLANS_H_

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/record/link_path.h"
#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/random.h"

namespace stepcast {

// ---- Where plans stand.

// Nodes filled from the first, which is the fullest; every node has a worker.
inline Placement PlacementOf(const PlanQuery& query) {
  Placement placement(static_cast<std::size_t>(query.nodes), 1);
  int left = query.workers - query.nodes;
  for (int& devices : placement) {
    const int more = std::min(left, query.devices_per_node - 1);
    devices += more;
    left -= more;
  }
  return placement;
}

// Without what a check refuses because no forecast reads it, where all is drawn by itself.
inline void WithoutWhatIsRefused(Plan* plan) {
  if (!plan->has_server_link()) plan->server_link.bandwidth.reset();
  if (plan->overlap != Overlap::kBuckets) plan->server.pipelined = false;
  if (plan->strategy == Strategy::kPsAsync && plan->overlap == Overlap::kPNorm) {
    plan->overlap = Overlap::kBuckets;
  }
}

// The plan that a query asks a compiled one for.
inline Plan PlanOf(const Plan& compiled, const PlanQuery& query) {
  Plan plan = compiled;
  plan.placement = PlacementOf(query);
  plan.servers = query.servers;
  plan.local_batch = query.local_batch;
  plan.accumulation_steps = query.accumulation_steps;
  plan.link = Overlay(plan.link, query.link);
  // A link of servers says nothing of a plan without them, which a check refuses.
  if (TraitsOf(plan.strategy).may_have_servers()) {
    plan.server_link = Overlay(plan.server_link, query.server_link);
  }
  WithoutWhatIsRefused(&plan);
  return plan;
}

// As flags of the command line; a server's link has no flags for round trip and loss.
inline std::string Describe(const Plan& plan) {
  std::string text;
  for (const PlanField& field : PlanFields()) {
    const std::string value = field.write(plan);
    if (!value.empty()) text += std::string(" ") + field.column + "=" + value;
  }
  const LinkFacts& link = plan.server_link;
  if (link.rtt) text += " server_rtt_ms=" + std::to_string(link.rtt->in(kMilliseconds));
  if (link.loss) text += " server_loss=" + std::to_string(*link.loss);
  return text;
}

// ---- What is known.

inline Device T4(DataSize<> memory = Gibibytes(16.0)) {
  Device t4;
  t4.name = kSyntheticDevice;
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory = memory;
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  return t4;
}

inline LinkFacts RandomLink(Random* random, double known) {
  LinkFacts link;
  if (random->Chance(known)) link.bandwidth = GigabitsPerSecond(random->LogBetween(0.05, 200));
  if (random->Chance(known)) {
    link.rtt = Milliseconds(random->Chance(0.1) ? 0 : random->LogBetween(0.01, 100));
  }
  if (random->Chance(known)) {
    link.loss = random->Chance(0.2) ? 0 : random->LogBetween(1e-6, 0.2);
  }
  if (random->Chance(known)) {
    link.congestion_control = random->Pick(
        {CongestionControl::kReno, CongestionControl::kCubic, CongestionControl::kBbr});
  }
  if (random->Chance(known / 2)) link.loss_burst = Milliseconds(random->LogBetween(0.01, 10));
  if (random->Chance(known / 4)) link.transport = Transport::kRdma;
  return link;
}

inline Workload WithoutLayers(DataSize<> gradient) {
  Workload workload;
  workload.name = "mine";
  workload.parameters = workload.trainable_parameters =
      static_cast<std::int64_t>(gradient.in(kBytes) / 4) + 1;
  workload.gradient_bytes = gradient;
  return workload;
}

inline Workload WithLayers(Random* random, int layers) {
  Workload workload = WithoutLayers({});
  workload.parameters = 0;
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.kind = LayerKind::kDense;
    layer.tensors = {random->LogWhole(1000, 20'000'000), random->LogWhole(1, 4000)};
    layer.forward_flop = Flop(random->LogBetween(1e5, 1e10));
    layer.activation_bytes = Bytes(std::floor(random->LogBetween(1e3, 1e8)));
    workload.parameters += layer.parameters();
    workload.layers.push_back(layer);
  }
  workload.trainable_parameters = workload.parameters;
  workload.gradient_bytes = Bytes(4.0 * static_cast<double>(workload.parameters));
  return workload;
}

// A network of the catalogue, layers or none of our own, or a bare message.
inline Workload RandomWorkload(Random* random) {
  static const std::vector<Workload> networks = {*FindWorkload("resnet50"), *FindWorkload("vgg16"),
                                                 *FindWorkload("bert_base"),
                                                 *FindWorkload("mobilenet_v2")};
  switch (random->Whole(0, 5)) {
    case 0:
    case 1: {
      Workload network = networks[static_cast<std::size_t>(random->Whole(0, 3))];
      network.name = "mine";
      return network;
    }
    case 2:
      return WithLayers(random, random->LogWhole(1, 60));
    case 3: {
      Workload message = WithoutLayers(Bytes(random->LogBetween(1e3, 1e9)));
      message.communication_only = true;
      return message;
    }
    default:
      return WithoutLayers(Bytes(random->LogBetween(1e4, 5e9)));
  }
}

template <std::size_t n>
std::array<double, n> RandomParameters(const std::array<ParameterSpec, n>& specs, Random* random) {
  std::array<double, n> in_units{};
  for (std::size_t i = 0; i < n; ++i) {
    const ParameterSpec& spec = specs[i];
    const double apart = 1.5 * spec.prior_log_sd;
    in_units[i] = std::clamp(spec.prior * std::exp(random->Between(-apart, apart)),
                             spec.low * 1.001, spec.high * 0.999);
  }
  return SiValues<n>(specs, in_units);
}

// Parameters that hang together, as those of a fit do.
inline Eigen::MatrixXd RandomCovariance(Eigen::Index size, double log_sd, Random* random) {
  Eigen::MatrixXd root(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j) root(i, j) = random->Between(-1, 1);
  }
  return log_sd * log_sd / static_cast<double>(size) * (root * root.transpose());
}

struct RandomCase {
  std::uint64_t seed = 0;
  Cluster cluster;
  Workload workload;
  std::optional<Device> device;
  Plan plan;

  Predictor MakePredictor() const { return {cluster, workload, device, kSyntheticDevice}; }
};

inline Cluster RandomCluster(const Workload& workload, bool calibrated, Random* random) {
  Cluster cluster = SyntheticCluster();
  if (calibrated) {
    Truth truth;
    truth.cluster.si = RandomParameters(kClusterParameterSpecs, random);
    if (!workload.communication_only) {
      truth.workloads[workload.name].si = RandomParameters(kWorkloadParameterSpecs, random);
    }
    if (random->Chance(0.3)) {
      for (const char* host : {"a", "b", "c"}) {
        truth.host_links[host] = GigabitsPerSecond(random->LogBetween(0.1, 100));
        if (random->Chance(0.5)) truth.host_slowdowns[host] = random->LogBetween(0.5, 5);
      }
    }
    const double log_sd = random->LogBetween(0.005, 0.5);
    cluster = CalibratedCluster(truth, log_sd);
    Calibration& calibration = *cluster.calibration;
    calibration.log_covariance =
        RandomCovariance(calibration.log_covariance.rows(), log_sd, random);
    if (random->Chance(0.5)) {
      calibration.scatter[kAllScope] = {random->LogBetween(0.005, 0.1),
                                        random->LogBetween(0.01, 0.3)};
    }
  } else if (random->Chance(0.3)) {
    for (const char* name : {"a", "b", "c"}) {
      Host host;
      host.name = name;
      host.link = RandomLink(random, 0.5);
      cluster.hosts.push_back(host);
    }
  }
  cluster.nics_per_node = random->Pick({1, 1, 2, 4});
  if (random->Chance(0.4)) cluster.link = RandomLink(random, 0.4);
  if (random->Chance(0.4)) cluster.server_link = RandomLink(random, 0.4);
  if (random->Chance(0.3)) {
    cluster.device_link.rtt = Microseconds(random->LogBetween(1, 100));
  }
  return cluster;
}

// Where workers stand, and with which batch: mostly of a scheduler's size, now and then far beyond.
inline PlanQuery RandomQuery(const Plan& plan, Random* random) {
  PlanQuery query;
  const bool huge = random->Chance(0.02);
  query.nodes = plan.hosts.empty() ? random->LogWhole(1, huge ? 5000 : 64) : plan.nodes();
  // Not all nodes are slow where the slow ones take samples of their own.
  if (plan.slow_local_batch) query.nodes = std::max(query.nodes, plan.slow_nodes + 1);
  query.devices_per_node = random->Pick({1, 1, 2, 4, 8});
  const int least = query.nodes + query.devices_per_node - 1;
  const int most = query.nodes * query.devices_per_node;
  query.workers = random->Chance(0.7) ? most : random->Whole(least, most);
  if (query.workers <= plan.backup_workers) {
    query.devices_per_node += plan.backup_workers;
    query.workers += plan.backup_workers;
  }
  query.local_batch = random->LogWhole(1, random->Chance(0.02) ? 1'000'000 : 2048);
  query.accumulation_steps = random->Chance(0.5) ? 1 : random->LogWhole(1, 64);
  if (UsesServers(plan.strategy)) {
    const int most_servers = plan.server.colocated ? std::min(64, query.workers) : 64;
    query.servers = random->LogWhole(1, most_servers);
  } else if (plan.strategy == Strategy::kBytePs) {
    query.servers = random->Chance(0.3) ? 0 : random->LogWhole(1, 64);
  }
  return query;
}

// A plan with this strategy on a cluster that may be calibrated, of at most so many buckets.
inline RandomCase MakeRandomCase(Strategy strategy, std::uint64_t seed, int most_buckets = 300) {
  Random random(seed);
  RandomCase made;
  made.seed = seed;
  do {
    made.workload = RandomWorkload(&random);
  } while (made.workload.communication_only && strategy == Strategy::kNone);
  const bool calibrated = made.workload.layers.empty()
                              ? !made.workload.communication_only || random.Chance(0.5)
                              : random.Chance(0.7);
  made.cluster = RandomCluster(made.workload, calibrated, &random);
  if (!calibrated || random.Chance(0.7)) {
    made.device = T4(Gibibytes(random.LogBetween(1, 80)));
  }

  Plan& plan = made.plan;
  plan.strategy = strategy;
  const bool sync = strategy != Strategy::kNone && strategy != Strategy::kPsAsync;
  if (UsesServers(strategy)) {
    plan.server.colocated = random.Chance(0.3);
    plan.server.sharding = random.Pick({Sharding::kTensor, Sharding::kEven, Sharding::kRoundRobin});
  }
  if (strategy == Strategy::kPsSync) {
    plan.server.pipelined = random.Chance(0.3);
    plan.server.multicast = random.Chance(0.3);
    plan.server.in_network_aggregation = random.Chance(0.3);
    plan.server.local_aggregation = random.Chance(0.3);
  }
  if (strategy == Strategy::kPsAsync && random.Chance(0.5)) {
    plan.server.staleness_bound = random.LogWhole(1, 1000) - 1;
  }
  plan.overlap =
      random.Pick({Overlap::kBuckets, Overlap::kBuckets, Overlap::kNone, Overlap::kPNorm});
  if (sync && random.Chance(0.2)) plan.backup_workers = random.Whole(1, 4);
  const bool may_shard = plan.overlap != Overlap::kPNorm && plan.backup_workers == 0;
  if (TraitsOf(strategy).may_shard() && may_shard && random.Chance(0.3)) {
    plan.shard = random.Pick({Shard::kOptimizer, Shard::kGradients, Shard::kParameters});
  } else if (TraitsOf(strategy).may_be_rare() && random.Chance(0.2)) {
    plan.local_steps = random.LogWhole(2, 500);
  }
  if (!made.cluster.hosts.empty() && random.Chance(0.7)) {
    plan.hosts = {"a", "b", "c"};
    plan.hosts.resize(static_cast<std::size_t>(random.Whole(1, 3)));
    plan.placement.assign(plan.hosts.size(), 1);  // what RandomQuery reads
  }
  const bool exchanges = TraitsOf(strategy).exchanges;
  if (exchanges && plan.backup_workers == 0 && Random(seed + 1).Chance(0.1)) {
    plan.slow_nodes = 1;
    plan.slow_speed = Random(seed + 2).LogBetween(0.1, 1);
  }
  PlanQuery query = RandomQuery(plan, &random);
  while (made.workload.communication_only && query.workers == 1) query = RandomQuery(plan, &random);
  plan = PlanOf(plan, query);
  if (0 < plan.slow_nodes && plan.slow_nodes < plan.nodes() &&
      Allows(GoesWith::kSynchronous, TraitsOf(strategy)) && Random(seed + 3).Chance(0.7)) {
    plan.slow_local_batch = Random(seed + 4).LogWhole(1, 2048);
  }
  if (random.Chance(0.4)) plan.link = RandomLink(&random, 0.4);
  if (TraitsOf(strategy).may_have_servers() && random.Chance(0.4)) {
    plan.server_link = RandomLink(&random, 0.4);
  }
  const DataSize<> gradient = made.workload.gradient_bytes;
  const DataSize<> least_bucket = gradient / static_cast<double>(most_buckets);
  if (random.Chance(0.5) || DefaultBucket(strategy) < least_bucket) {
    plan.bucket = least_bucket * random.LogBetween(1, 2.0 * most_buckets);
  }
  const bool whole = plan.shard == Shard::kNone && plan.local_steps == 1;
  if (TraitsOf(strategy).may_compress() && whole && random.Chance(0.3)) {
    plan.compress.method =
        random.Pick({Compressor::kFp16, Compressor::kBf16, Compressor::kInt8, Compressor::kTopK});
    if (plan.compress.is_gathered() && !TraitsOf(strategy).halves) {
      plan.compress.method = Compressor::kFp16;
    }
    if (plan.compress.is_gathered()) plan.compress.kept = random.LogBetween(1e-4, 0.5);
    plan.compress_rate = GigabytesPerSecond(random.LogBetween(0.1, 100));
  }
  if (random.Chance(0.2)) plan.input_rate = SampleRate<>::FromSi(random.LogBetween(1, 1e5));
  // From numbers of their own, so that all else stays what a seed has always made.
  Random more(seed ^ 0x9E3779B97F4A7C15ULL);
  if (more.Chance(0.1)) made.cluster.link.others = more.LogBetween(0.01, 10);
  if (more.Chance(0.1)) plan.link.others = more.LogBetween(0.01, 10);
  if (more.Chance(0.1)) made.cluster.link.background = GigabitsPerSecond(more.LogBetween(0.01, 10));
  if (more.Chance(0.1)) plan.link.background = GigabitsPerSecond(more.LogBetween(0.01, 10));
  if (more.Chance(0.1)) plan.server_link.others = more.LogBetween(0.01, 10);
  if (more.Chance(0.1)) plan.server_link.background = GigabitsPerSecond(more.LogBetween(0.01, 10));
  Random core(seed ^ 0xBF58476D1CE4E5B9ULL);
  for (LinkFacts* link : {&made.cluster.link, &plan.link, &plan.server_link}) {
    if (!core.Chance(0.1)) continue;
    link->oversubscription = core.LogBetween(1, 16);
    link->nodes_per_switch = core.Whole(1, 8);
  }
  const auto says_shapes = [](const Layer& layer) {
    return layer.tensors.empty() || !std::holds_alternative<std::monostate>(layer.operation);
  };
  const std::vector<Layer>& layers = made.workload.layers;
  if (plan.compress.exists() && TraitsOf(strategy).may_be_rare() && !layers.empty() &&
      std::all_of(layers.begin(), layers.end(), says_shapes) && more.Chance(0.3)) {
    plan.compress = {Compressor::kPowerSgd, static_cast<double>(more.LogWhole(1, 64))};
  }
  WithoutWhatIsRefused(&plan);
  return made;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_HOT_PATH_RANDOM_PLANS_H_
