// How gradients are exchanged: the strategies, and what is true of each whatever it costs. The
// formulas are in model/exchange.
#ifndef STEPCAST_DATA_RECORD_STRATEGY_H_
#define STEPCAST_DATA_RECORD_STRATEGY_H_

#include <array>
#include <cstddef>
#include <iterator>

namespace stepcast {

// kAllreduce leaves the algorithm to the library (model/exchange/library_choice.h), mostly the
// ring; kAuto lets stepcast choose the fastest all-reduce. kBytePs sums on the workers and on
// `servers` helper machines without devices.
enum class Strategy {
  kNone,
  kAllreduce,
  kRing,
  kTree,
  kHalvingDoubling,
  kHierarchical,
  kPsSync,
  kPsAsync,
  kBytePs,
  kAuto,
};

struct StrategyTraits {
  const char* name = "";      // in files and flags
  bool exchanges = true;      // gradients, with anybody at all
  bool synchronous = true;    // a step ends when all workers have exchanged, or all but the backups
  bool servers = false;       // parameter servers hold the model and update it
  bool helpers = false;       // machines without devices may help to sum
  bool ring = false;          // an all-reduce whose rounds pipeline
  bool halves = false;        // an all-reduce of a reduce-scatter and an all-gather, equally long
  bool to_be_chosen = false;  // a question: stepcast chooses one of the others

  constexpr bool asynchronous() const { return exchanges && !synchronous; }

  // The options of a plan that go with it.
  constexpr bool may_have_servers() const { return servers || helpers; }
  constexpr bool has_phases() const { return servers && synchronous; }  // a push and a pull by all
  constexpr bool may_bound_staleness() const { return servers && !synchronous; }
  constexpr bool may_have_backup_workers() const { return synchronous; }
  constexpr bool may_be_rare() const { return exchanges && synchronous && !may_have_servers(); }
  constexpr bool may_shard() const { return halves; }
  constexpr bool may_compress() const { return exchanges && synchronous && !helpers; }
};

// In the order of the enumerators.
inline constexpr StrategyTraits kStrategies[] = {
    {.name = "none", .exchanges = false, .synchronous = false},
    {.name = "allreduce", .ring = true, .halves = true},
    {.name = "ring", .ring = true, .halves = true},
    {.name = "tree"},
    {.name = "halving-doubling"},
    {.name = "hierarchical", .halves = true},
    {.name = "ps-sync", .servers = true},
    {.name = "ps-async", .synchronous = false, .servers = true},
    {.name = "byteps", .helpers = true},
    {.name = "auto", .to_be_chosen = true},
};
inline constexpr int kStrategyCount = static_cast<int>(std::size(kStrategies));
static_assert(kStrategyCount == static_cast<int>(Strategy::kAuto) + 1);

// Their names, in that order.
inline constexpr auto kStrategyNames = [] {
  std::array<const char*, kStrategyCount> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kStrategies[i].name;
  return names;
}();

inline constexpr const StrategyTraits& TraitsOf(Strategy s) {
  return kStrategies[static_cast<std::size_t>(s)];
}
inline constexpr const char* StrategyName(Strategy s) { return TraitsOf(s).name; }
// Whether parameter servers hold the model.
inline constexpr bool UsesServers(Strategy s) { return TraitsOf(s).servers; }

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_STRATEGY_H_
