#include "predictor/cli/probe_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/values/compression.h"
#include "model/exchange/sharding.h"
#include "model/overlap/buckets.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"
#include "predictor/cli/profile_option.h"

namespace stepcast::cli {
namespace {

using script::WantedRun;

void RequireMeasurable(const WantedRun& wanted) {
  const Plan& plan = wanted.run.plan;
  const auto refuse = [&](const char* column, const std::string& value,
                          const std::string& allowed) {
    throw InputError({wanted.run.place.file, wanted.run.place.line, column}, value,
                     "is not what probe steps can measure", allowed);
  };
  const StrategyTraits& traits = TraitsOf(plan.strategy);
  if (!traits.ring && !UsesServers(plan.strategy) && traits.exchanges) {
    refuse("strategy", traits.name, "none, allreduce, ring, ps-sync, ps-async");
  }
  if (DevicesOnFullestNode(plan.placement) > 1) {
    refuse("placement", fmt::format("{}", fmt::join(plan.placement, "-")),
           "one device on each node: a host has one worker");
  }
  if (plan.shard != Shard::kNone) {
    refuse("shard", NameOf(plan.shard), "none");
  }
  if (plan.overlap != Overlap::kBuckets) {
    refuse("overlap", NameOf(plan.overlap), "buckets");
  }
  if (plan.local_steps > 1) refuse("local_steps", std::to_string(plan.local_steps), "1");
  if (plan.backup_workers > 0) refuse("backup_workers", std::to_string(plan.backup_workers), "0");
  if (plan.compress.is_gathered()) {
    refuse("compress", FormatCompression(plan.compress), "none, fp16, bf16, int8, powersgd=RANK");
  }
  if (plan.slow_local_batch) {
    refuse("slow_local_batch", std::to_string(*plan.slow_local_batch),
           "nothing: all workers take local_batch");
  }
  // No network here copies or adds up.
  if (plan.server.multicast) refuse("multicast", "yes", "no");
  if (plan.server.in_network_aggregation) refuse("in_network_aggregation", "yes", "no");
}

double FloatsOf(const DataSize<>& size) { return std::ceil(size.in(kBytes) / kBytesPerFloat); }

// What each server holds of the plan's buckets.
steps::Servers ServersOf(const WantedRun& wanted, const Workload& workload) {
  const Plan& plan = wanted.run.plan;
  steps::Servers servers;
  servers.count = plan.servers;
  servers.asynchronous = TraitsOf(plan.strategy).asynchronous();
  servers.bound = servers.asynchronous ? plan.server.staleness_bound : 0;
  servers.pipelined = plan.server.pipelined;
  const std::vector<Bucket> buckets = GradientOrder(workload).MessagesOf(plan);
  for (const TensorShards::Part& part :
       TensorShards(workload, plan.server.sharding).Parts(plan.servers, buckets)) {
    const double floats = FloatsOf(part.bytes * plan.exchanged_share());
    if (floats > steps::kMostFloatsOfPart) {
      throw InputError({wanted.run.place.file, wanted.run.place.line, "servers"},
                       std::to_string(plan.servers),
                       fmt::format("makes one message of {}", FormatSize(part.bytes)),
                       fmt::format("at most {}, which sharding even and smaller buckets make",
                                   FormatSize(Bytes(kBytesPerFloat * steps::kMostFloatsOfPart))));
    }
    servers.parts.push_back({static_cast<int>(part.bucket), static_cast<int>(part.server), floats});
  }
  return servers;
}

}  // namespace

// Compute takes as long as a forecast says, and gradients leave in the buckets of the forecast.
PreparedRun PrepareRun(const Arguments& args, const WantedRun& wanted) {
  RequireMeasurable(wanted);
  const Run& run = wanted.run;
  const Target target = ReadTarget(args, run.workload);
  if (target.library.CanonicalDevice(run.device, target.cluster) !=
      target.library.CanonicalDevice(target.device, target.cluster)) {
    throw InputError({run.place.file, run.place.line, "device"}, run.device,
                     "is not the device whose compute is waited for", target.device);
  }
  const Predictor predictor = target.MakePredictor();
  PreparedRun prepared;
  prepared.wanted = &wanted;
  Plan alike = run.plan;  // if no node were stated to be slow
  if (alike.slow_nodes > 0) alike.slow_speed = 1;
  const StepFacts facts = predictor.Facts(alike);
  const StepTerms<double> terms = predictor.Terms(alike);
  steps::Training& training = prepared.training;
  training.slow_workers = run.plan.slow_nodes;  // one on each
  training.backward_s = terms.backward.si();
  training.forward_s = std::max(0.0, terms.micro.si() - training.backward_s);
  const StepTime<double> step = predictor.PredictStep(alike);
  training.update_s = (step.update + step.coding).si();  // neither hides anything
  training.micro_steps = run.plan.accumulation_steps;
  if (TraitsOf(run.plan.strategy).exchanges) {
    for (const Bucket& bucket : *facts.buckets) {
      training.buckets.push_back({FloatsOf(bucket.bytes), bucket.ready * training.backward_s});
    }
    if (UsesServers(run.plan.strategy)) {
      training.servers = ServersOf(wanted, target.workload);
    }
  }
  if (training.slow_workers > 0) {
    // The others wait as long as the slowest of them computes.
    Plan healthy = alike;
    healthy.hosts.clear();
    const double others = terms.micro / predictor.Terms(healthy).micro;
    training.slowdown = 1 / (*run.plan.slow_speed * others);
  }
  const double longest = std::max({training.forward_s, training.backward_s, training.update_s});
  if (longest * std::max(1.0, training.slowdown) > steps::kLongestWaitS) {
    throw InputError({run.place.file, run.place.line, "local_batch"},
                     std::to_string(run.plan.local_batch),
                     fmt::format("makes a worker compute for {:.3g} s at once",
                                 longest * std::max(1.0, training.slowdown)),
                     fmt::format("at most {} s", steps::kLongestWaitS));
  }
  prepared.predicted = predictor.Predict(run.plan);
  return prepared;
}

int ServersApart(const Plan& plan) {
  return UsesServers(plan.strategy) && !plan.server.colocated ? plan.servers : 0;
}

std::optional<steps::Cast> CastOf(const Plan& plan, const std::vector<NetworkHost>& hosts,
                                  std::string* why) {
  const auto count = static_cast<int>(hosts.size());
  const int apart = ServersApart(plan);
  if (plan.nodes() + apart > count) {
    *why = apart == 0 ? fmt::format("it needs {} hosts of {}", plan.nodes(), count)
                      : fmt::format("it needs {} hosts for workers and {} for servers, of {}",
                                    plan.nodes(), apart, count);
    return std::nullopt;
  }
  steps::Cast cast;
  std::vector<int>& workers = cast.workers;
  for (const std::string& name : plan.hosts) {
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const NetworkHost& host) { return host.name == name; });
    if (found == hosts.end()) {
      std::vector<std::string> names;
      for (const NetworkHost& host : hosts) names.push_back(host.name);
      *why = fmt::format("{} is none of the hosts: {}", name, fmt::join(names, ", "));
      return std::nullopt;
    }
    workers.push_back(static_cast<int>(found - hosts.begin()));
  }
  if (workers.empty()) {
    workers.resize(static_cast<std::size_t>(plan.nodes()));
    std::iota(workers.begin(), workers.end(), 0);
  }
  if (!UsesServers(plan.strategy)) return cast;
  for (int rank = 0; rank < count && static_cast<int>(cast.servers.size()) < apart; ++rank) {
    if (std::find(workers.begin(), workers.end(), rank) == workers.end()) {
      cast.servers.push_back(rank);
    }
  }
  for (int server = 0; plan.server.colocated && server < plan.servers; ++server) {
    cast.servers.push_back(workers[static_cast<std::size_t>(server) % workers.size()]);
  }
  return cast;
}

}  // namespace stepcast::cli
