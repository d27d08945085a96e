#include "predictor/compiled/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/plan/si_range.h"
#include "data/record/input_error.h"
#include "data/record/link_path.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "model/exchange/sharding.h"
#include "model/memory/memory.h"
#include "model/step/answer.h"

namespace stepcast::internal {

namespace {

// How far the tables go; beyond, the same formulas are evaluated.
constexpr int kTabledCounts = 4096;
constexpr int kTabledBatches = 1024;

std::shared_ptr<const CountTables> MakeCounts(int backup_workers) {
  auto made = std::make_shared<CountTables>();
  StepFacts tried;
  tried.backup_workers = backup_workers;
  for (int n = 0; n <= kTabledCounts; ++n) {
    made->slowest_hop.push_back(n == 0 ? 0 : ComputedParts().SlowestHop(n));
    tried.workers = n;
    made->slowest.push_back(n <= backup_workers ? 0 : ComputedParts().Slowest(tried));
  }
  return made;
}

// Those of plans without backup workers are made once for all.
std::shared_ptr<const CountTables> CountsOf(int backup_workers) {
  if (backup_workers > 0) return MakeCounts(backup_workers);
  static const std::shared_ptr<const CountTables> kCounts = MakeCounts(0);
  return kCounts;
}

// What a plan may say of a link, in SI units.
struct LinkRanges {
  NumberRange rate = SiRangeOf("bandwidth");
  NumberRange rtt = SiRangeOf("rtt");
  NumberRange loss = SiRangeOf("loss");
  NumberRange others = SiRangeOf("link-others");
  NumberRange background = SiRangeOf("background");
  NumberRange oversubscription = SiRangeOf("oversubscription");
  NumberRange nodes_per_switch = SiRangeOf("nodes-per-switch");
  NumberRange burst = SiRangeOf("loss-burst");
};

const LinkRanges& Ranges() {
  static const LinkRanges kRanges;
  return kRanges;
}

// Whether all that is stated of a link may be. The first that may not be goes to
// refuse(name, value, range), which returns false.
template <class Refuse>
bool IsLink(const LinkFacts& link, const Refuse& refuse) {
  const LinkRanges& ranges = Ranges();
  if (link.bandwidth && !ranges.rate.Holds(link.bandwidth->si())) {
    return refuse("bandwidth_bytes_per_s", link.bandwidth->si(), ranges.rate);
  }
  if (link.rtt && !ranges.rtt.Holds(link.rtt->si())) {
    return refuse("rtt_s", link.rtt->si(), ranges.rtt);
  }
  if (link.loss && !(ranges.loss.Holds(*link.loss) && *link.loss < 1)) {
    return refuse("loss_rate", *link.loss, ranges.loss);
  }
  if (link.others && !ranges.others.Holds(*link.others)) {
    return refuse("link_others", *link.others, ranges.others);
  }
  if (link.background && !ranges.background.Holds(link.background->si())) {
    return refuse("background_bytes_per_s", link.background->si(), ranges.background);
  }
  if (link.oversubscription && !ranges.oversubscription.Holds(*link.oversubscription)) {
    return refuse("oversubscription", *link.oversubscription, ranges.oversubscription);
  }
  if (link.nodes_per_switch && !ranges.nodes_per_switch.Holds(*link.nodes_per_switch)) {
    return refuse("nodes_per_switch", *link.nodes_per_switch, ranges.nodes_per_switch);
  }
  return !link.loss_burst || ranges.burst.Holds(link.loss_burst->si()) ||
         refuse("loss_burst_s", link.loss_burst->si(), ranges.burst);
}

bool Within(int value, int least, int most) { return value >= least && value <= most; }

QueryProblem Outside(const char* field, int value, int least, int most,
                     const std::string& of = "") {
  return {field, std::to_string(value), "is out of range",
          fmt::format("a whole number from {} to {}{}", least, most, of)};
}

// The rules of a query. The first that it breaks goes to refuse(status, tell), where tell() makes
// the text of it, and what that returns is the answer.
template <class Refuse>
QueryStatus Judge(const CompiledState& c, const PlanQuery& q, const Refuse& refuse) {
  const Plan& plan = c.plan;
  const StepFacts& facts = c.facts;
  const auto bad_placement = [&](const auto& tell) {
    return refuse(QueryStatus::kBadPlacement, tell);
  };
  if (!Within(q.workers, 1, kMostCount)) {
    return bad_placement([&] { return Outside("workers", q.workers, 1, kMostCount); });
  }
  if (facts.backup_workers > 0 && q.workers <= facts.backup_workers) {
    return bad_placement([&] {
      return Outside("workers", q.workers, facts.backup_workers + 1, kMostCount,
                     fmt::format(", with {} backup workers", facts.backup_workers));
    });
  }
  if (!Within(q.nodes, 1, q.workers)) {
    return bad_placement([&] {
      return Outside("nodes", q.nodes, 1, q.workers, fmt::format(" for {} workers", q.workers));
    });
  }
  const long long most_workers = static_cast<long long>(q.nodes) * q.devices_per_node;
  if (plan.shard == Shard::kHybrid && q.workers != most_workers) {
    return bad_placement([&] {
      if (q.workers % q.nodes == 0) {
        return QueryProblem{"devices_per_node", std::to_string(q.devices_per_node),
                            "is out of range",
                            fmt::format("{}, for {} workers on {} equal nodes", q.workers / q.nodes,
                                        q.workers, q.nodes)};
      }
      return QueryProblem{"workers", std::to_string(q.workers),
                          fmt::format("are not as many on each of {} nodes, with shard {}", q.nodes,
                                      NameOf(plan.shard)),
                          fmt::format("a multiple of {}", q.nodes)};
    });
  }
  if (q.workers > most_workers || !Within(q.devices_per_node, 1, q.workers - q.nodes + 1)) {
    return bad_placement([&] {
      return Outside("devices_per_node", q.devices_per_node, (q.workers + q.nodes - 1) / q.nodes,
                     q.workers - q.nodes + 1,
                     fmt::format(" for {} workers on {} nodes", q.workers, q.nodes));
    });
  }
  const int slow = q.slow_nodes.value_or(plan.slow_nodes);
  if (!Within(slow, 0, c.MostSlowNodes(q))) {
    return refuse(QueryStatus::kBadSlowNodes, [&] {
      return Outside("slow_nodes", slow, 0, c.MostSlowNodes(q),
                     fmt::format(" of {} nodes", q.nodes));
    });
  }
  if (slow > 0 && !plan.slow_speed) {
    return refuse(QueryStatus::kBadSlowNodes, [&] {
      return QueryProblem{"slow_nodes", std::to_string(slow),
                          "are of no speed that the compiled plan says",
                          "0, or a plan that is compiled with slow_speed"};
    });
  }
  const bool required = UsesServers(facts.strategy);
  const int least_servers = required ? 1 : 0;
  const int most_servers = required                           ? c.options.most_servers
                           : TraitsOf(facts.strategy).helpers ? kMostCount
                                                              : 0;
  if (!Within(q.servers, least_servers, most_servers)) {
    return refuse(QueryStatus::kBadServers, [&] {
      return Outside("servers", q.servers, least_servers, most_servers,
                     fmt::format(" with strategy {}", StrategyName(facts.strategy)));
    });
  }
  if (!CompiledState::IsBatch(q.local_batch, q.accumulation_steps)) {
    return refuse(QueryStatus::kBadBatch, [&] {
      return CompiledState::IsBatch(q.local_batch, 1)
                 ? Outside("accumulation_steps", q.accumulation_steps, 1, kMostCount)
                 : Outside("local_batch", q.local_batch, 1, kMostBatch);
    });
  }
  QueryStatus status = QueryStatus::kOk;
  const auto is_link = [&](const LinkFacts& link, const char* prefix) {
    return IsLink(link, [&](const char* name, double value, const NumberRange& allowed) {
      status = refuse(QueryStatus::kBadLink, [&] {
        const bool is_loss = &allowed == &Ranges().loss;
        return QueryProblem{
            std::string(prefix) + name, fmt::format("{}", value), "is out of range",
            is_loss ? fmt::format("0, or from {} to below 1", kLeastLoss) : allowed.Text()};
      });
      return false;
    });
  };
  if (!is_link(q.link, "") || !is_link(q.server_link, "server_")) return status;
  if (q.link.oversubscription || q.server_link.oversubscription) {
    const LinkFacts link = Overlay(facts.link, q.link);
    const LinkFacts last = Overlay(link, Overlay(facts.server_link, q.server_link));
    if (LacksSwitches(link) || LacksSwitches(last)) {
      return refuse(QueryStatus::kBadLink, [] {
        return QueryProblem{"nodes_per_switch", "", "is required with oversubscription",
                            "nodes on a switch"};
      });
    }
  }
  if (!facts.has_compute) {
    StepFacts asked = facts;
    asked.workers = q.workers;
    if (Alone(asked)) {
      return refuse(QueryStatus::kNothingExchanged, [&] {
        return QueryProblem{"workers", std::to_string(q.workers),
                            "exchange nothing, and nothing is computed", "at least 2"};
      });
    }
  }
  return QueryStatus::kOk;
}

// Whether the library that a plan leaves the algorithm to takes the tree between two nodes.
bool TakesTreeOfTwo(const Predictor& predictor) {
  Plan two_nodes;
  two_nodes.placement = {2, 2};
  return predictor.Facts(two_nodes).strategy == Strategy::kTree;
}

// A pointer that owns nothing, so that copies cost nothing.
template <class T>
std::shared_ptr<const T> Borrowed(const std::shared_ptr<const T>& owner) {
  return std::shared_ptr<const T>(std::shared_ptr<const T>(), owner.get());
}

}  // namespace

CompiledState::CompiledState(const Predictor& predictor, const Plan& compiled_plan,
                             const CompileOptions& given)
    : plan(compiled_plan),
      options(given),
      own(QueryOf(plan)),
      belief(predictor.belief()),
      facts(predictor.Facts(plan)),
      buckets(facts.buckets),
      lines(MakeBucketLines(*buckets)),
      async_lines(AsyncLinesOf(facts)),
      profile(predictor.profile()),
      recomputation(predictor.recomputation()),
      batches(predictor.calibrated_batches()),
      model_memory(predictor.workload(), plan) {
  Ranges();  // made here, so that no query has to
  own_slow_workers.push_back(0);
  for (auto node = plan.placement.rbegin(); node != plan.placement.rend(); ++node) {
    own_slow_workers.push_back(own_slow_workers.back() + *node);
  }
  if (UsesServers(facts.strategy)) {
    options.most_servers = std::max(options.most_servers, plan.servers);
  }
  if (given.most_servers < 1 || options.most_servers > kMostCompiledServers) {
    const int wrong = given.most_servers < 1 ? given.most_servers : options.most_servers;
    throw InputError({"", 0, "most_servers"}, std::to_string(wrong), "is out of range",
                     "1 to " + std::to_string(kMostCompiledServers));
  }
  if (LeavesAlgorithm(plan)) {
    library_may_choose = TakesTreeOfTwo(predictor);
    facts.strategy = plan.strategy;
  }
  plan.strategy = facts.strategy;
  facts.buckets = Borrowed(buckets);
  facts.held_buckets = nullptr;
  if (predictor.cluster().calibration) range = predictor.cluster().calibration->range;
  other_jobs = OtherJobs(range, batches);
  for (int b = 0; profile && b <= kTabledBatches; ++b) {
    shape.push_back(profile->ShapeAt(std::max(b, 1)));
    profile_log_sd.push_back(profile->ExtraLogSd(std::max(b, 1)));
  }
  for (int b = 0; recomputation.exists() && b <= kTabledBatches; ++b) {
    recomputing.push_back(recomputation.At(std::max(b, 1)));
  }
  if (UsesServers(plan.strategy)) SetShards(predictor.workload());
  SetMemory(predictor);
  SetTables();
}

void CompiledState::SetShards(const Workload& network) {
  shards.resize(static_cast<std::size_t>(options.most_servers) + 1);
  const TensorShards tensors(network, plan.server.sharding);
  const std::vector<Bucket> whole = MakeBuckets(network, BucketCap(plan, network.gradient_bytes));
  const bool has_phases = TraitsOf(plan.strategy).has_phases();
  for (int n = 1; n <= options.most_servers; ++n) {
    Shards& shard = shards[static_cast<std::size_t>(n)];
    const TensorShards::Held held = tensors.HeldOf(n, has_phases && n > 1 ? &whole : nullptr);
    shard.share = held.share;
    if (!has_phases) continue;
    shard.held = held.buckets ? Scaled(held.buckets, plan.exchanged_share()) : buckets;
    shard.lines = MakeBucketLines(*shard.held);
  }
}

void CompiledState::SetMemory(const Predictor& predictor) {
  memory_available = predictor.device_memory();
  activations = predictor.activations();
  counts_activations = !predictor.workload().layers.empty();
  // From the batch on at which an operation did not fit when it was measured, none fits.
  const auto fails = [&](int batch) { return profile->Sum(batch).out_of_memory; };
  if (profile && fails(kMostBatch)) {
    int failing = kMostBatch;
    for (most_batch = 0; failing - most_batch > 1;) {
      const int middle = most_batch + (failing - most_batch) / 2;
      (fails(middle) ? failing : most_batch) = middle;
    }
  }
}

MemoryNeed CompiledState::MemoryBesideSamples(const PlanQuery& q) const {
  const int sharers = SharersOf(plan.shard, q.workers, q.devices_per_node);
  return model_memory.NeedOf({plan.shard, q.workers, sharers, q.accumulation_steps});
}

void CompiledState::SetTables() {
  const Belief::AtHosts at_hosts = belief.SlowestOf(plan);
  const PlanParameters at = belief.ParametersAt(at_hosts);
  cluster = at.cluster;
  workload = at.workload;
  counts = CountsOf(facts.backup_workers);
  RecordRates(cluster, workload, &rates);
  intervals = MakeIntervalTables(*this, at_hosts, kTabledBatches, &curve);
}

QueryStatus CompiledState::Check(const PlanQuery& q) const {
  return Judge(*this, q, [](QueryStatus status, const auto& /*tell*/) { return status; });
}

std::optional<QueryProblem> CompiledState::ProblemOf(const PlanQuery& q) const {
  std::optional<QueryProblem> problem;
  Judge(*this, q, [&](QueryStatus status, const auto& tell) {
    problem = tell();
    return status;
  });
  return problem;
}

MemoryVerdict CompiledState::Memory(const PlanQuery& q) const {
  const int batch = std::max(q.local_batch, SlowBatch(q).value_or(1));
  if (batch > most_batch) return MemoryVerdict::kOutOfMemory;
  if (!memory_available) return MemoryVerdict::kUnknown;
  const MemoryNeed beside = MemoryBesideSamples(q);
  return activations.VerdictOf(batch, beside.total, beside.buckets, *memory_available,
                               counts_activations);
}

int CompiledState::SlowWorkers(const PlanQuery& q) const {
  const int slow = q.slow_nodes.value_or(plan.slow_nodes);
  if (slow == 0) return 0;
  if (q.has_layout_of(own)) return own_slow_workers[static_cast<std::size_t>(slow)];
  // Nodes are filled from the first, and the slow ones are the last.
  const long long fast = q.nodes - slow;
  const long long beyond_one =
      std::min<long long>(q.workers - q.nodes, fast * (q.devices_per_node - 1));
  return static_cast<int>(q.workers - fast - beyond_one);
}

StepFacts CompiledState::FactsOf(const PlanQuery& q) const {
  StepFacts f = facts;
  f.strategy = StrategyOf(q);
  f.workers = q.workers;
  f.nodes = q.nodes;
  f.shard = ShardOnNodes(plan.shard, q.nodes);
  f.devices_per_node = q.devices_per_node;
  f.slow_workers = SlowWorkers(q);
  if (f.slow_workers == 0) f.slow_speed.reset();
  f.slow_share.reset();
  if (const std::optional<int> batch = SlowBatch(q); batch && *batch != q.local_batch) {
    f.slow_share = StepFacts::SlowShare{1.0 * *batch, RecomputingAt(*batch), ShapeAt(*batch)};
  }
  f.servers = q.servers;
  f.accumulation_steps = q.accumulation_steps;
  f.batch = q.local_batch;
  f.recomputing = RecomputingAt(q.local_batch);
  f.compute_shape = ShapeAt(q.local_batch);
  if (!shards.empty()) {
    const Shards& shard = shards[static_cast<std::size_t>(q.servers)];
    f.server_share = shard.share;
    f.held_buckets = Borrowed(shard.held);
  }
  if (!q.link.empty()) f.link = Overlay(f.link, q.link);
  if (!q.server_link.empty()) f.server_link = Overlay(f.server_link, q.server_link);
  return f;
}

[[gnu::noinline]] StepFacts CompiledState::LaterSideAt(const CompiledValues& at,
                                                       const PlanQuery& query,
                                                       const StepFacts& f) const {
  return LaterSide<double>(f, at.cluster, at.workload, PartsOf(query, at.curve, at.rates));
}

namespace {

stepcast::StepTime<double> JoinAt(const CompiledState& s, const CompiledValues& at,
                                  const PlanQuery& query, const StepFacts& f) {
  const KnownParts<double> parts = s.PartsOf(query, at.curve, at.rates);
  return JoinStep<double>(f, MakeStepInputs<double>(f, at.cluster, at.workload, parts, nullptr),
                          parts, nullptr);
}

}  // namespace

STEPCAST_FLATTEN Duration<> CompiledState::StepTimeAt(const CompiledValues& at,
                                                      const PlanQuery& query,
                                                      const StepFacts& f) const {
  if (f.slow_share) return StepTimeAt(at, query, LaterSideAt(at, query, f));
  return JoinAt(*this, at, query, f).total();
}

stepcast::StepTime<double> CompiledState::StepAt(const CompiledValues& at, const PlanQuery& query,
                                                 const StepFacts& f) const {
  return JoinAt(*this, at, query, f.slow_share ? LaterSideAt(at, query, f) : f);
}

double CompiledState::ProfileLogSd(int batch) const {
  if (!profile) return 0;
  const auto at = static_cast<std::size_t>(batch);
  return at < profile_log_sd.size() ? profile_log_sd[at] : profile->ExtraLogSd(batch);
}

}  // namespace stepcast::internal
