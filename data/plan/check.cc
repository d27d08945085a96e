#include "data/plan/check.h"

#include <fmt/format.h>

#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/values/placement.h"

namespace stepcast {
namespace {

// Options of a plan that a strategy allows beside it.
struct Allowed {
  bool servers;         // or helpers
  bool server_options;  // where servers live and what they hold
  bool phases;          // options of a push and a pull by all
  bool staleness_bound;
  bool backup_workers;
};

Allowed AllowedWith(Strategy strategy) {
  const bool sync = strategy == Strategy::kPsSync;
  const bool async = strategy == Strategy::kPsAsync;
  return {sync || async || strategy == Strategy::kBytePs, sync || async, sync, async,
          !async && strategy != Strategy::kNone};
}

}  // namespace

void CheckPlan(const Plan& plan, const std::function<InputPlace(const PlanField&)>& place) {
  const Allowed can = AllowedWith(plan.strategy);
  const auto at = [&](const char* flag) { return place(*FindPlanField(flag)); };
  const auto check_range = [&](const char* flag, int value, int low, int high) {
    if (value >= low && value <= high) return;
    throw InputError(at(flag), std::to_string(value), "is out of range",
                     fmt::format("a whole number from {} to {}", low, high));
  };
  const std::string with_strategy = fmt::format("with strategy {}", StrategyName(plan.strategy));
  if (plan.placement.empty()) {
    throw InputError(at("placement"), "", "is empty", "devices used on each node, like 4-4-2");
  }
  long long workers = 0;
  for (const int devices : plan.placement) {
    check_range("placement", devices, 1, kMostCount);
    workers += devices;
  }
  if (workers > kMostCount) {
    throw InputError(at("placement"), std::to_string(workers), "workers are too many",
                     fmt::format("at most {}", kMostCount));
  }
  check_range("local-batch", plan.local_batch, 1, kMostBatch);
  check_range("accumulation", plan.accumulation_steps, 1, kMostCount);
  if (UsesServers(plan.strategy) && plan.servers == 0) {
    throw InputError(at("servers"), "", "are required " + with_strategy, "at least 1");
  }
  if (!can.servers && plan.servers != 0) {
    throw InputError(at("servers"), std::to_string(plan.servers), with_strategy,
                     "0, or strategy ps-sync, ps-async or byteps");
  }
  check_range("servers", plan.servers, 0, kMostCount);
  const auto check_link = [&](const LinkFacts& link, const char* bandwidth) {
    const auto refuse = [&](const char* flag, double value, const char* allowed) {
      throw InputError(at(flag), fmt::format("{}", value), "is out of range", allowed);
    };
    if (link.bandwidth && !(link.bandwidth->si() > 0)) {
      refuse(bandwidth, link.bandwidth->si(), "more than 0 B/s");
    }
    if (link.rtt && !(link.rtt->si() >= 0)) refuse("rtt", link.rtt->si(), "at least 0 s");
    if (link.loss && !(*link.loss >= 0 && *link.loss < 1)) {
      refuse("loss", *link.loss, "at least 0 and below 1");
    }
    if (link.loss_burst && !(link.loss_burst->si() >= 0)) {
      refuse("loss-burst", link.loss_burst->si(), "at least 0 s");
    }
  };
  check_link(plan.link, "bandwidth");
  check_link(plan.server_link, "server-bandwidth");
  if (plan.bucket && !(plan.bucket->si() > 0)) {
    throw InputError(at("bucket"), fmt::format("{}", plan.bucket->si()), "is out of range",
                     "more than 0 B");
  }
  if (!plan.hosts.empty() && static_cast<int>(plan.hosts.size()) != plan.nodes()) {
    throw InputError(at("hosts"), JoinHosts(plan.hosts),
                     fmt::format("names {} hosts", plan.hosts.size()),
                     fmt::format("{}, one for each node of placement {}", plan.nodes(),
                                 FormatPlacement(plan.placement)));
  }
  const auto only_with = [&](bool set, const char* flag, bool may, const char* what) {
    if (set && !may) throw InputError(at(flag), "", with_strategy, what);
  };
  only_with(plan.server.colocated, "colocated-servers", can.server_options,
            "strategy ps-sync or ps-async");
  only_with(plan.server.sharding != Sharding::kTensor, "sharding", can.server_options,
            "strategy ps-sync or ps-async");
  only_with(plan.server.pipelined, "pipelined-servers", can.phases, "strategy ps-sync");
  only_with(plan.server.multicast, "multicast", can.phases, "strategy ps-sync");
  only_with(plan.server.in_network_aggregation, "in-network-aggregation", can.phases,
            "strategy ps-sync");
  only_with(plan.server.staleness_bound.has_value(), "staleness-bound", can.staleness_bound,
            "strategy ps-async");
  only_with(plan.backup_workers != 0, "backup-workers", can.backup_workers,
            "a synchronous strategy");
  check_range("backup-workers", plan.backup_workers, 0, plan.workers() - 1);
  check_range("staleness-bound", plan.server.staleness_bound.value_or(0), 0, kMostCount);
}

void CheckPlan(const Plan& plan) {
  CheckPlan(plan, [](const PlanField& field) { return InputPlace{"", 0, field.flag}; });
}

Plan WithStrategy(Plan plan, Strategy strategy) {
  const Allowed can = AllowedWith(strategy);
  plan.strategy = strategy;
  if (!can.servers) plan.servers = 0;
  if (!can.server_options) plan.server = {};
  if (!can.phases) {
    plan.server.pipelined = false;
    plan.server.multicast = false;
    plan.server.in_network_aggregation = false;
  }
  if (!can.staleness_bound) plan.server.staleness_bound.reset();
  if (!can.backup_workers) plan.backup_workers = 0;
  return plan;
}

}  // namespace stepcast
