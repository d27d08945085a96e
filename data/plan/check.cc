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

namespace {

// The checks of a plan, in the order in which errors are told: the first stands for all.
class PlanCheck {
 public:
  PlanCheck(const Plan& plan, const std::function<InputPlace(const FieldFacts&)>& place)
      : plan_(plan), at_([&place](const FieldFacts& facts) {
          return facts.flag != nullptr ? place(facts) : InputPlace{"", 0, facts.state};
        }) {}

  void Run() const {
    Counts();
    FieldsOfStrategy();
    Slowness();
    Servers();
    HowItOverlaps();
    SharedOut();
    Compressed();
  }

 private:
  const StrategyTraits& strategy() const { return TraitsOf(plan_.strategy); }

  [[noreturn]] void Refuse(const char* flag, const std::string& value, const std::string& problem,
                           const std::string& allowed) const {
    throw InputError(at_(*FindPlanField(flag)), value, problem, allowed);
  }
  // What sentences call a field: as its place does, where that tells fields apart.
  std::string Named(const char* flag) const {
    const FieldFacts& facts = *FindPlanField(flag);
    const std::string key = at_(facts).key;
    for (const char* name : {facts.column, facts.keyword}) {
      if (key.ends_with(name)) return name;
    }
    return flag;
  }
  // Nearly all plans are right, and pay for no text.
  std::string WithStrategyText() const {
    return fmt::format("with strategy {}", StrategyName(plan_.strategy));
  }

  void Counts() const {
    if (plan_.placement.empty()) {
      Refuse("placement", "", "is empty", "devices used on each node, like 4-4-2");
    }
    ForEachField(
        [&](const FieldFacts& facts, auto field) { RangeCheck(facts, at_)(field.Of(plan_)); });
    long long workers = 0;
    for (const int devices : plan_.placement) workers += devices;
    if (workers > kMostCount) {
      Refuse("placement", std::to_string(workers), "workers are too many",
             fmt::format("at most {}", kMostCount));
    }
    if (!plan_.hosts.empty() && static_cast<int>(plan_.hosts.size()) != plan_.nodes()) {
      Refuse("hosts", JoinHosts(plan_.hosts), fmt::format("names {} hosts", plan_.hosts.size()),
             fmt::format("{}, one for each node of placement {}", plan_.nodes(),
                         FormatPlacement(plan_.placement)));
    }
  }

  void FieldsOfStrategy() const {
    if (UsesServers(plan_.strategy) && plan_.servers == 0) {
      Refuse("servers", "", "are required " + WithStrategyText(), "at least 1");
    }
    const StrategyTraits& traits = strategy();
    ForEachField([&](const FieldFacts& facts, auto field) {
      const auto& value = field.Of(plan_);
      if (MayDiffer(facts.with, traits) || value == field.Of(DefaultPlan())) return;
      const bool is_servers = &value == static_cast<const void*>(&plan_.servers);
      throw InputError(at_(facts), is_servers ? std::to_string(plan_.servers) : "",
                       WithStrategyText(),
                       (is_servers ? "0, or " : "") + StrategiesWith(facts.with));
    });
  }

  void Slowness() const {
    if (plan_.backup_workers >= plan_.workers()) {
      Refuse("backup-workers", std::to_string(plan_.backup_workers), "is out of range",
             fmt::format("a whole number from 0 to {}", plan_.workers() - 1));
    }
    if (plan_.slow_nodes > plan_.nodes()) {
      Refuse("slow-nodes", std::to_string(plan_.slow_nodes), "is out of range",
             fmt::format("a whole number from 0 to {}, the nodes of placement {}", plan_.nodes(),
                         FormatPlacement(plan_.placement)));
    }
    if (plan_.slow_nodes > 0 && !plan_.slow_speed) {
      Refuse("slow-speed", "",
             fmt::format("is required with {} {}", Named("slow-nodes"), plan_.slow_nodes),
             "their speed as a share of the others', like 0.6");
    }
    if (plan_.slow_speed && plan_.slow_nodes == 0) {
      Refuse("slow-nodes", "0", fmt::format("with {} {}", Named("slow-speed"), *plan_.slow_speed),
             "at least 1");
    }
    if (plan_.slow_local_batch) {
      const std::string batch = std::to_string(*plan_.slow_local_batch);
      if (plan_.slow_nodes == 0) {
        Refuse("slow-nodes", "0", "with " + Named("slow-local-batch") + " " + batch, "at least 1");
      }
      if (plan_.slow_nodes == plan_.nodes()) {
        Refuse("slow-local-batch", batch, "where all nodes are slow",
               "nothing: " + Named("local-batch") + " says what each device takes");
      }
    }
    if (plan_.slow_nodes > 0 && plan_.backup_workers > 0) {
      Refuse(
          "backup-workers", std::to_string(plan_.backup_workers),
          fmt::format("with {} {}", Named("slow-nodes"), plan_.slow_nodes),
          "0, or " + Named("slow-nodes") + " 0: how many of the slow a step drops is not modelled");
    }
  }

  void Servers() const {
    if (plan_.server_link.bandwidth && !plan_.has_server_link()) {
      if (plan_.server.colocated) {
        Refuse("server-bandwidth", "", "with " + Named("colocated-servers"),
               "none: such servers have the links of their nodes");
      }
      Refuse("server-bandwidth", "", WithStrategyText() + " and no servers", "servers, at least 1");
    }
    if (plan_.server.pipelined && plan_.overlap != Overlap::kBuckets) {
      Refuse("pipelined-servers", "", fmt::format("with overlap {}", NameOf(plan_.overlap)),
             "overlap buckets, which alone says when a bucket has been pushed");
    }
  }

  void HowItOverlaps() const {
    if (!KnowsOverlap(strategy(), plan_.overlap)) {
      Refuse("overlap", NameOf(plan_.overlap), WithStrategyText(), "buckets or none");
    }
  }

  void SharedOut() const {
    if (plan_.shard == Shard::kNone) return;
    const std::string with_shard = fmt::format("with shard {}", NameOf(plan_.shard));
    if (plan_.local_steps > 1) {
      Refuse("local-steps", std::to_string(plan_.local_steps), with_shard,
             "1: who keeps a part of the model only cannot go on by itself");
    }
    if (plan_.backup_workers > 0) {
      Refuse("backup-workers", std::to_string(plan_.backup_workers), with_shard,
             "0: each worker has a part that the others need");
    }
    if (plan_.overlap == Overlap::kPNorm) {
      Refuse("overlap", NameOf(plan_.overlap), with_shard, "buckets or none");
    }
    if (!MayBeOn(plan_.placement, plan_.shard)) {
      Refuse("shard", NameOf(plan_.shard),
             "with placement " + FormatPlacement(plan_.placement) + ", whose nodes are not equal",
             "as many devices on each node, like 4-4, or another shard");
    }
  }

  void Compressed() const {
    if (!plan_.compress.exists()) return;
    const std::string with = "with compress " + FormatCompression(plan_.compress);
    if (plan_.shard != Shard::kNone) {
      Refuse("shard", NameOf(plan_.shard), with, "none: parameters are gathered as they are");
    }
    if (plan_.local_steps > 1) {
      Refuse("local-steps", std::to_string(plan_.local_steps), with,
             "1: what workers average after more are parameters, not gradients");
    }
    if (plan_.bytes_per_parameter != DefaultPlan().bytes_per_parameter) {
      Refuse("bytes-per-parameter", std::to_string(plan_.bytes_per_parameter), with,
             "4: what is encoded are gradients in float32");
    }
    const GoesWith with_those = StrategiesOf(plan_.compress);
    if (!MayDiffer(with_those, strategy())) {
      Refuse("compress", FormatCompression(plan_.compress), WithStrategyText(),
             StrategiesWith(with_those) + (plan_.compress.is_gathered() ? ", which gather" : ""));
    }
  }

  const Plan& plan_;
  const std::function<InputPlace(const FieldFacts&)> at_;
};

}  // namespace

void CheckPlan(const Plan& plan, const std::function<InputPlace(const FieldFacts&)>& place) {
  PlanCheck(plan, place).Run();
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
