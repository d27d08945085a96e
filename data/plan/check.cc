#include "data/plan/check.h"

#include <fmt/format.h>

#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/values/placement.h"

namespace stepcast {
namespace {

// "strategy ps-sync, ps-async or byteps": those that `may`.
std::string StrategiesThat(bool (*may)(const StrategyTraits&)) {
  std::string text;
  std::string last;
  for (const StrategyTraits& traits : kStrategies) {
    if (!may(traits)) continue;
    if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
    last = traits.name;
  }
  return "strategy " + (text.empty() ? last : text + " or " + last);
}

}  // namespace

void CheckPlan(const Plan& plan, const std::function<InputPlace(const PlanField&)>& place) {
  const StrategyTraits& traits = TraitsOf(plan.strategy);
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
  if (traits.servers && plan.servers == 0) {
    throw InputError(at("servers"), "", "are required " + with_strategy, "at least 1");
  }
  if (!traits.may_have_servers() && plan.servers != 0) {
    throw InputError(
        at("servers"), std::to_string(plan.servers), with_strategy,
        "0, or " + StrategiesThat([](const StrategyTraits& t) { return t.may_have_servers(); }));
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
  const auto only_with = [&](bool set, const char* flag, bool (*may)(const StrategyTraits&)) {
    if (set && !may(traits)) throw InputError(at(flag), "", with_strategy, StrategiesThat(may));
  };
  const auto holds_model = [](const StrategyTraits& t) { return t.servers; };
  const auto has_phases = [](const StrategyTraits& t) { return t.has_phases(); };
  const auto may_be_stale = [](const StrategyTraits& t) { return t.may_bound_staleness(); };
  only_with(plan.server.colocated, "colocated-servers", holds_model);
  only_with(plan.server.sharding != Sharding::kTensor, "sharding", holds_model);
  only_with(plan.server.pipelined, "pipelined-servers", has_phases);
  only_with(plan.server.multicast, "multicast", has_phases);
  only_with(plan.server.in_network_aggregation, "in-network-aggregation", has_phases);
  only_with(plan.server.staleness_bound.has_value(), "staleness-bound", may_be_stale);
  if (plan.backup_workers != 0 && !traits.may_have_backup_workers()) {
    throw InputError(at("backup-workers"), "", with_strategy, "a synchronous strategy");
  }
  check_range("backup-workers", plan.backup_workers, 0, plan.workers() - 1);
  check_range("staleness-bound", plan.server.staleness_bound.value_or(0), 0, kMostCount);
}

void CheckPlan(const Plan& plan) {
  CheckPlan(plan, [](const PlanField& field) { return InputPlace{"", 0, field.flag}; });
}

Plan WithStrategy(Plan plan, Strategy strategy) {
  const StrategyTraits& traits = TraitsOf(strategy);
  plan.strategy = strategy;
  if (!traits.may_have_servers()) plan.servers = 0;
  if (!traits.servers) plan.server = {};
  if (!traits.has_phases()) {
    plan.server.pipelined = false;
    plan.server.multicast = false;
    plan.server.in_network_aggregation = false;
  }
  if (!traits.may_bound_staleness()) plan.server.staleness_bound.reset();
  if (!traits.may_have_backup_workers()) plan.backup_workers = 0;
  return plan;
}

}  // namespace stepcast
