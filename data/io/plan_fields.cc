#include "data/io/plan_fields.h"

#include <fmt/format.h>

#include <cstring>

#include "data/io/parse.h"

namespace stepcast {
namespace {

constexpr double kFastestLink = 1e6;    // Gbit/s
constexpr double kLongestRtt = 1e6;     // ms
constexpr double kLargestBucket = 1e9;  // MiB

std::string Number(double value) { return fmt::format("{}", value); }

template <class Q, class D>
std::string Number(const std::optional<Q>& value, const Unit<D>& unit) {
  return value ? Number(value->in(unit)) : std::string();
}

double Positive(const std::string& text, const InputPlace& place, double high) {
  const double value = ParseNumber(text, place, 0, high);
  if (value == 0) throw InputError(place, text, "is out of range", "more than 0");
  return value;
}

bool ParseYesNo(const std::string& text, const InputPlace& place) {
  const std::string_view word = Trim(text);
  if (word == "yes") return true;
  if (word == "no") return false;
  throw InputError(place, text, "is neither yes nor no", "yes, no");
}

std::string YesOrNothing(bool value) { return value ? "yes" : ""; }

// A field that flag and column spell alike.
PlanField Plain(const char* flag, const char* column, const char* placeholder, const char* help,
                const char* unit, PlanField::Reader read, std::string (*write)(const Plan&)) {
  return {flag, column, placeholder, help, unit, read, read, write};
}

}  // namespace

const std::vector<PlanField>& PlanFields() {
  static const std::vector<PlanField> fields = {
      Plain(
          "placement", "placement", "P", "devices used on each node, like 4-4-2", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->placement = ParsePlacement(t, p);
          },
          [](const Plan& plan) { return FormatPlacement(plan.placement); }),
      Plain(
          "hosts", "hosts", "A+B", "names of the nodes, in placement order", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->hosts = ParseHosts(t, p);
          },
          [](const Plan& plan) { return JoinHosts(plan.hosts); }),
      Plain(
          "strategy", "strategy", "S",
          "none, allreduce, ring, tree, halving-doubling, hierarchical, byteps, auto (the "
          "fastest all-reduce), ps-sync, ps-async",
          nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->strategy = ParseStrategy(t, p);
          },
          [](const Plan& plan) { return std::string(StrategyName(plan.strategy)); }),
      Plain(
          "servers", "servers", "N", "parameter servers (ps-sync, ps-async), helpers (byteps)", "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->servers = Trim(t).empty() ? 0 : ParseInteger(t, p, 0, kMostCount);
          },
          [](const Plan& plan) { return std::to_string(plan.servers); }),
      Plain(
          "local-batch", "local_batch", "N", "samples of one micro-step on one device", "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->local_batch = ParseInteger(t, p, 1, kMostBatch);
          },
          [](const Plan& plan) { return std::to_string(plan.local_batch); }),
      Plain(
          "accumulation", "accumulation_steps", "N", "micro-steps between synchronisations", "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->accumulation_steps = ParseInteger(t, p, 1, kMostCount);
          },
          [](const Plan& plan) {
            return plan.accumulation_steps == 1 ? std::string()
                                                : std::to_string(plan.accumulation_steps);
          }),
      {"bandwidth", "link_gbit_per_s", "RATE", "line rate of a node's link, like \"1 Gbit/s\"",
       "Gbit/s",
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.bandwidth = ParseDataRate(t, p);
       },
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.bandwidth = GigabitsPerSecond(Positive(t, p, kFastestLink));
       },
       [](const Plan& plan) { return Number(plan.link.bandwidth, kGigabitsPerSecond); }},
      {"server-bandwidth", "server_link_gbit_per_s", "RATE", "line rate of a server's link",
       "Gbit/s",
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->server_link.bandwidth = ParseDataRate(t, p);
       },
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->server_link.bandwidth = GigabitsPerSecond(Positive(t, p, kFastestLink));
       },
       [](const Plan& plan) { return Number(plan.server_link.bandwidth, kGigabitsPerSecond); }},
      {"rtt", "rtt_ms", "TIME", "round-trip time between nodes, like \"2 ms\"", "ms",
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.rtt = ParseDuration(t, p);
       },
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.rtt = Milliseconds(ParseNumber(t, p, 0, kLongestRtt));
       },
       [](const Plan& plan) { return Number(plan.link.rtt, kMilliseconds); }},
      Plain(
          "loss", "loss_rate", "P", "probability that a packet is lost, like 0.01", "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->link.loss = ParseProbability(t, p);
          },
          [](const Plan& plan) {
            return plan.link.loss ? Number(*plan.link.loss) : std::string();
          }),
      Plain(
          "congestion-control", "congestion_control", "CC",
          "how TCP answers loss: reno, cubic (the default), bbr", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->link.congestion_control = ParseCongestionControl(t, p);
          },
          [](const Plan& plan) {
            return plan.link.congestion_control
                       ? std::string(kCongestionControlNames[static_cast<int>(
                             *plan.link.congestion_control)])
                       : std::string();
          }),
      {"loss-burst", "loss_burst_ms", "TIME",
       "packets within so long are lost together, like \"1 ms\" under tc netem on the sender", "ms",
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.loss_burst = ParseDuration(t, p);
       },
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->link.loss_burst = Milliseconds(ParseNumber(t, p, 0, kLongestRtt));
       },
       [](const Plan& plan) { return Number(plan.link.loss_burst, kMilliseconds); }},
      {"bucket", "bucket_mib", "SIZE",
       "cap of a gradient bucket, 25 MiB by default, 1 MiB with servers", "MiB",
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->bucket = ParseDataSize(t, p);
       },
       [](const std::string& t, const InputPlace& p, Plan* plan) {
         plan->bucket = Mebibytes(Positive(t, p, kLargestBucket));
       },
       [](const Plan& plan) { return Number(plan.bucket, kMebibytes); }},
      Plain(
          "overlap", "overlap", "HOW",
          "how synchronisation hides behind the backward pass: buckets (the default), none, "
          "p-norm",
          nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->overlap = ParseOverlap(t, p);
          },
          [](const Plan& plan) {
            return plan.overlap == Overlap::kBuckets
                       ? std::string()
                       : std::string(kOverlapNames[static_cast<int>(plan.overlap)]);
          }),
      Plain(
          "backup-workers", "backup_workers", "K", "slowest workers that a step does not wait for",
          "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->backup_workers = ParseInteger(t, p, 0, kMostCount);
          },
          [](const Plan& plan) {
            return plan.backup_workers == 0 ? std::string() : std::to_string(plan.backup_workers);
          }),
      Plain(
          "colocated-servers", "colocated_servers", nullptr,
          "servers run on the workers' nodes instead of nodes of their own", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.colocated = ParseYesNo(t, p);
          },
          [](const Plan& plan) { return YesOrNothing(plan.server.colocated); }),
      Plain(
          "sharding", "sharding", "HOW",
          "how the model is spread over servers: tensor (whole, the largest first; the default), "
          "even, round-robin",
          nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.sharding = ParseSharding(t, p);
          },
          [](const Plan& plan) {
            return plan.server.sharding == Sharding::kTensor
                       ? std::string()
                       : std::string(kShardingNames[static_cast<int>(plan.server.sharding)]);
          }),
      Plain(
          "pipelined-servers", "pipelined_servers", nullptr,
          "a bucket is pulled as soon as it has been pushed (ps-sync)", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.pipelined = ParseYesNo(t, p);
          },
          [](const Plan& plan) { return YesOrNothing(plan.server.pipelined); }),
      Plain(
          "multicast", "multicast", nullptr, "the network copies what servers distribute (ps-sync)",
          nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.multicast = ParseYesNo(t, p);
          },
          [](const Plan& plan) { return YesOrNothing(plan.server.multicast); }),
      Plain(
          "in-network-aggregation", "in_network_aggregation", nullptr,
          "the network adds up what workers push (ps-sync)", nullptr,
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.in_network_aggregation = ParseYesNo(t, p);
          },
          [](const Plan& plan) { return YesOrNothing(plan.server.in_network_aggregation); }),
      Plain(
          "staleness-bound", "staleness_bound", "S",
          "ps-async: steps that a worker may be ahead of the slowest", "",
          [](const std::string& t, const InputPlace& p, Plan* plan) {
            plan->server.staleness_bound = ParseInteger(t, p, 0, kMostCount);
          },
          [](const Plan& plan) {
            return plan.server.staleness_bound ? std::to_string(*plan.server.staleness_bound)
                                               : std::string();
          }),
  };
  return fields;
}

const PlanField* FindPlanField(const std::string& flag) {
  for (const PlanField& field : PlanFields()) {
    if (flag == field.flag) return &field;
  }
  return nullptr;
}

namespace {

// What goes with a strategy.
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
      throw InputError(at(flag), Number(value), "is out of range", allowed);
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
    throw InputError(at("bucket"), Number(plan.bucket->si()), "is out of range", "more than 0 B");
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
