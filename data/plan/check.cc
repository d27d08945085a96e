#include "data/plan/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/host_texts.h"
#include "data/values/compression.h"
#include "data/values/names.h"
#include "data/values/placement.h"

namespace stepcast {

namespace {

constexpr bool MayDiffer(GoesWith with, const StrategyTraits& strategy) {
  switch (with) {
    case GoesWith::kAll:
      return true;
    case GoesWith::kServers:
      return strategy.may_have_servers();
    case GoesWith::kParameterServers:
      return strategy.servers;
    case GoesWith::kPsSync:
      return strategy.has_phases();
    case GoesWith::kPsAsync:
      return strategy.may_bound_staleness();
    case GoesWith::kExchanging:
      return strategy.exchanges;
    case GoesWith::kSynchronous:
      return strategy.may_have_backup_workers();
    case GoesWith::kAllreduces:
      return strategy.may_be_rare();
    case GoesWith::kHalves:
      return strategy.may_shard();
    case GoesWith::kCompresses:
      return strategy.may_compress();
  }
  return false;
}

// Asynchronous workers meet in a queue, of which the p-norm says nothing.
constexpr bool KnowsOverlap(const StrategyTraits& strategy, Overlap overlap) {
  return overlap != Overlap::kPNorm || !strategy.asynchronous();
}

// The strategies that a way to compress goes with.
GoesWith StrategiesOf(const Compression& compression) {
  if (compression.is_gathered()) return GoesWith::kHalves;
  return compression.is_factored() ? GoesWith::kAllreduces : GoesWith::kCompresses;
}

}  // namespace

std::string StrategiesWith(GoesWith with) {
  if (with == GoesWith::kExchanging) return "a strategy other than none";
  if (with == GoesWith::kSynchronous) return "a synchronous strategy";
  std::vector<std::string> names;
  for (const StrategyTraits& strategy : kStrategies) {
    if (MayDiffer(with, strategy)) names.emplace_back(strategy.name);
  }
  return "strategy " + ListedNames(names, "or");
}

namespace {

constexpr const char* SiSymbol(const DataRate<>& /*kind*/) { return kBytesPerSecond.symbol; }
constexpr const char* SiSymbol(const Duration<>& /*kind*/) { return kSeconds.symbol; }
constexpr const char* SiSymbol(const DataSize<>& /*kind*/) { return kBytes.symbol; }
constexpr const char* SiSymbol(const SampleRate<>& /*kind*/) { return kSamplesPerSecond.symbol; }

// Throws where a number is out of the range of its field.
class RangeCheck {
 public:
  RangeCheck(const FieldFacts& facts, const std::function<InputPlace(const FieldFacts&)>& place)
      : facts_(facts), place_(place) {}

  void operator()(int value) const {
    if (facts_.range.Holds(value)) return;
    Refuse(value,
           fmt::format("a whole number from {} to {}", facts_.range.least, facts_.range.most));
  }
  void operator()(double value) const {
    const bool certain = facts_.is_probability() && value == 1;
    if (facts_.range.Holds(value) && !certain) return;
    Refuse(value, facts_.is_probability()
                      ? fmt::format("0, or from {} to below 1", facts_.range.least)
                      : facts_.range.Text());
  }
  template <class D>
  void operator()(const Quantity<D>& value) const {
    const NumberRange& range = facts_.range;
    const double unit = ColumnUnit(value).si;
    if (range.Holds(value.si() / unit)) return;
    const NumberRange in_si{range.least * unit, range.most * unit, range.or_nought};
    Refuse(value.si(), in_si.Text() + " " + SiSymbol(value));
  }
  template <class T>
  void operator()(const std::optional<T>& value) const {
    if (value) (*this)(*value);
  }
  void operator()(const Placement& placement) const {
    for (const int devices : placement) (*this)(devices);
  }
  void operator()(const std::vector<std::string>& /*names*/) const {}
  void operator()(bool /*choice*/) const {}
  void operator()(const Compression& compression) const {
    const NumberRange kept = KeptRange(compression.method);
    const bool is_whole =
        !compression.is_factored() || std::floor(compression.kept) == compression.kept;
    if (kept.Holds(compression.kept) && is_whole) return;
    Refuse(compression.kept, (compression.is_factored() ? "a whole number " : "") + kept.Text());
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E /*choice*/) const {}

 private:
  template <class T>
  [[noreturn]] void Refuse(T value, const std::string& allowed) const {
    throw InputError(place_(facts_), fmt::format("{}", value), "is out of range", allowed);
  }

  const FieldFacts& facts_;
  const std::function<InputPlace(const FieldFacts&)>& place_;
};

}  // namespace

bool Allows(GoesWith with, const StrategyTraits& strategy) { return MayDiffer(with, strategy); }

void CheckPlan(const Plan& plan, const std::function<InputPlace(const FieldFacts&)>& place) {
  const std::function<InputPlace(const FieldFacts&)> at = [&](const FieldFacts& facts) {
    return facts.flag != nullptr ? place(facts) : InputPlace{"", 0, facts.state};
  };
  const auto refuse = [&](const char* flag, const std::string& value, const std::string& problem,
                          const std::string& allowed) {
    throw InputError(at(*FindPlanField(flag)), value, problem, allowed);
  };
  // What sentences call a field: as its place does, where that tells fields apart.
  const auto named = [&](const char* flag) -> std::string {
    const FieldFacts& facts = *FindPlanField(flag);
    const std::string key = at(facts).key;
    for (const char* name : {facts.column, facts.keyword}) {
      if (key.ends_with(name)) return name;
    }
    return flag;
  };
  if (plan.placement.empty()) {
    refuse("placement", "", "is empty", "devices used on each node, like 4-4-2");
  }
  ForEachField([&](const FieldFacts& facts, auto field) { RangeCheck(facts, at)(field.Of(plan)); });
  long long workers = 0;
  for (const int devices : plan.placement) workers += devices;
  if (workers > kMostCount) {
    refuse("placement", std::to_string(workers), "workers are too many",
           fmt::format("at most {}", kMostCount));
  }
  if (!plan.hosts.empty() && static_cast<int>(plan.hosts.size()) != plan.nodes()) {
    refuse("hosts", JoinHosts(plan.hosts), fmt::format("names {} hosts", plan.hosts.size()),
           fmt::format("{}, one for each node of placement {}", plan.nodes(),
                       FormatPlacement(plan.placement)));
  }
  // Nearly all plans are right, and pay for no text.
  const auto with_strategy = [&] {
    return fmt::format("with strategy {}", StrategyName(plan.strategy));
  };
  if (UsesServers(plan.strategy) && plan.servers == 0) {
    refuse("servers", "", "are required " + with_strategy(), "at least 1");
  }
  const StrategyTraits& strategy = TraitsOf(plan.strategy);
  ForEachField([&](const FieldFacts& facts, auto field) {
    const auto& value = field.Of(plan);
    if (MayDiffer(facts.with, strategy) || value == field.Of(DefaultPlan())) return;
    const bool is_servers = &value == static_cast<const void*>(&plan.servers);
    throw InputError(at(facts), is_servers ? std::to_string(plan.servers) : "", with_strategy(),
                     (is_servers ? "0, or " : "") + StrategiesWith(facts.with));
  });
  if (plan.backup_workers >= plan.workers()) {
    refuse("backup-workers", std::to_string(plan.backup_workers), "is out of range",
           fmt::format("a whole number from 0 to {}", plan.workers() - 1));
  }
  if (plan.slow_nodes > plan.nodes()) {
    refuse("slow-nodes", std::to_string(plan.slow_nodes), "is out of range",
           fmt::format("a whole number from 0 to {}, the nodes of placement {}", plan.nodes(),
                       FormatPlacement(plan.placement)));
  }
  if (plan.slow_nodes > 0 && !plan.slow_speed) {
    refuse("slow-speed", "",
           fmt::format("is required with {} {}", named("slow-nodes"), plan.slow_nodes),
           "their speed as a share of the others', like 0.6");
  }
  if (plan.slow_speed && plan.slow_nodes == 0) {
    refuse("slow-nodes", "0", fmt::format("with {} {}", named("slow-speed"), *plan.slow_speed),
           "at least 1");
  }
  if (plan.slow_local_batch) {
    const std::string batch = std::to_string(*plan.slow_local_batch);
    if (plan.slow_nodes == 0) {
      refuse("slow-nodes", "0", "with " + named("slow-local-batch") + " " + batch, "at least 1");
    }
    if (plan.slow_nodes == plan.nodes()) {
      refuse("slow-local-batch", batch, "where all nodes are slow",
             "nothing: " + named("local-batch") + " says what each device takes");
    }
  }
  if (plan.slow_nodes > 0 && plan.backup_workers > 0) {
    refuse(
        "backup-workers", std::to_string(plan.backup_workers),
        fmt::format("with {} {}", named("slow-nodes"), plan.slow_nodes),
        "0, or " + named("slow-nodes") + " 0: how many of the slow a step drops is not modelled");
  }
  if (plan.server_link.bandwidth && !plan.has_server_link()) {
    if (plan.server.colocated) {
      refuse("server-bandwidth", "", "with " + named("colocated-servers"),
             "none: such servers have the links of their nodes");
    }
    refuse("server-bandwidth", "", with_strategy() + " and no servers", "servers, at least 1");
  }
  if (plan.server.pipelined && plan.overlap != Overlap::kBuckets) {
    refuse("pipelined-servers", "", fmt::format("with overlap {}", NameOf(plan.overlap)),
           "overlap buckets, which alone says when a bucket has been pushed");
  }
  if (!KnowsOverlap(strategy, plan.overlap)) {
    refuse("overlap", NameOf(plan.overlap), with_strategy(), "buckets or none");
  }
  if (plan.shard != Shard::kNone) {
    const std::string with_shard = fmt::format("with shard {}", NameOf(plan.shard));
    if (plan.local_steps > 1) {
      refuse("local-steps", std::to_string(plan.local_steps), with_shard,
             "1: who keeps a part of the model only cannot go on by itself");
    }
    if (plan.backup_workers > 0) {
      refuse("backup-workers", std::to_string(plan.backup_workers), with_shard,
             "0: each worker has a part that the others need");
    }
    if (plan.overlap == Overlap::kPNorm) {
      refuse("overlap", NameOf(plan.overlap), with_shard, "buckets or none");
    }
    if (!MayBeOn(plan.placement, plan.shard)) {
      refuse("shard", NameOf(plan.shard),
             "with placement " + FormatPlacement(plan.placement) + ", whose nodes are not equal",
             "as many devices on each node, like 4-4, or another shard");
    }
  }
  if (plan.compress.exists()) {
    const std::string with = "with compress " + FormatCompression(plan.compress);
    if (plan.shard != Shard::kNone) {
      refuse("shard", NameOf(plan.shard), with, "none: parameters are gathered as they are");
    }
    if (plan.local_steps > 1) {
      refuse("local-steps", std::to_string(plan.local_steps), with,
             "1: what workers average after more are parameters, not gradients");
    }
    if (plan.bytes_per_parameter != DefaultPlan().bytes_per_parameter) {
      refuse("bytes-per-parameter", std::to_string(plan.bytes_per_parameter), with,
             "4: what is encoded are gradients in float32");
    }
    const GoesWith with_those = StrategiesOf(plan.compress);
    if (!MayDiffer(with_those, strategy)) {
      refuse("compress", FormatCompression(plan.compress), with_strategy(),
             StrategiesWith(with_those) + (plan.compress.is_gathered() ? ", which gather" : ""));
    }
  }
}

void CheckPlan(const Plan& plan) {
  CheckPlan(plan, [](const FieldFacts& facts) { return InputPlace{"", 0, facts.flag}; });
}

bool WorkersExchange(const Plan& plan) {
  return TraitsOf(plan.strategy).exchanges && plan.workers() > 1;
}

bool CrossesNodes(const Plan& plan) { return plan.nodes() > 1 || UsesServers(plan.strategy); }

bool ServersOnEveryNode(const Plan& plan) {
  return UsesServers(plan.strategy) && plan.server.colocated && plan.servers == plan.nodes();
}

void RequireKeptWith(const Plan& plan, Strategy strategy) {
  const StrategyTraits& traits = TraitsOf(strategy);
  const auto require = [&](bool states, GoesWith with, const std::string& what) {
    if (!states || MayDiffer(with, traits)) return;
    throw InputError({"", 0, "strategy"}, StrategyName(strategy), what, StrategiesWith(with));
  };
  require(plan.slow_nodes > 0, GoesWith::kExchanging,
          fmt::format("says nothing of slow nodes, of which there are {}", plan.slow_nodes));
  require(plan.slow_local_batch.has_value(), GoesWith::kSynchronous,
          fmt::format("says nothing of other samples on slow nodes, {} of a micro-step",
                      plan.slow_local_batch.value_or(0)));
  // Who exchanges nothing compresses nothing.
  require(plan.compress.exists() && traits.exchanges, StrategiesOf(plan.compress),
          fmt::format("does not go with compress {}", FormatCompression(plan.compress)));
  // Nor does it share anything out.
  require(plan.shard != Shard::kNone && traits.exchanges, GoesWith::kHalves,
          fmt::format("does not go with shard {}", NameOf(plan.shard)));
}

Plan WithSlowNodes(Plan plan, int nodes) {
  plan.slow_nodes = nodes;
  if (nodes == 0) plan.slow_speed.reset();
  if (nodes == plan.nodes() && plan.slow_local_batch) plan.local_batch = *plan.slow_local_batch;
  if (nodes == 0 || nodes == plan.nodes()) plan.slow_local_batch.reset();
  return plan;
}

Plan WithPlacement(Plan plan, Placement placement) {
  const bool serves_everywhere = ServersOnEveryNode(plan);
  const int fast_workers = plan.workers() - plan.slow_workers();
  plan.placement = std::move(placement);
  if (serves_everywhere) plan.servers = plan.nodes();
  plan.backup_workers = std::min(plan.backup_workers, plan.workers() - 1);
  int beyond = 0;  // nodes that the fast workers do not fill alone
  int workers = 0;
  for (const int devices : plan.placement) {
    workers += devices;
    if (workers > fast_workers) ++beyond;
  }
  const int slow_nodes = std::min(beyond, plan.slow_nodes);
  return WithSlowNodes(std::move(plan), slow_nodes);
}

Plan OnFilledNodes(const Plan& plan, int workers, int devices_per_node) {
  Placement placement = FillNodes(workers, devices_per_node);
  if (!MayBeOn(placement, plan.shard)) placement.pop_back();
  return WithPlacement(plan, std::move(placement));
}

Plan WithStrategy(Plan plan, Strategy strategy) {
  plan.strategy = strategy;
  ForEachField([&](const FieldFacts& facts, auto field) {
    if (!MayDiffer(facts.with, TraitsOf(strategy))) field.Of(plan) = field.Of(DefaultPlan());
  });
  const StrategyTraits& traits = TraitsOf(strategy);
  if (!MayDiffer(StrategiesOf(plan.compress), traits)) plan.compress = {};
  if (!KnowsOverlap(traits, plan.overlap)) plan.overlap = DefaultPlan().overlap;
  if (traits.helpers && plan.servers == 0) plan.server_link.bandwidth.reset();
  return plan;
}

}  // namespace stepcast
