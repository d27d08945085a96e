#include "data/plan/fields.h"

#include <fmt/format.h>

#include <cstring>

#include "data/plan/limits.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"

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

}  // namespace stepcast
