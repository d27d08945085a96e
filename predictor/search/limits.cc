#include "predictor/search/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/input_error.h"
#include "data/record/link_path.h"
#include "model/exchange/async_server_limits.h"
#include "model/exchange/compression.h"
#include "model/exchange/exchange.h"
#include "model/exchange/parameter_server_limits.h"
#include "model/exchange/sharding.h"
#include "model/overlap/buckets.h"
#include "model/step/step.h"
#include "predictor/search/bisect.h"
#include "predictor/search/one_worker.h"

namespace stepcast {
namespace {

constexpr int kSamplesPerDoubling = 8;
// An end beyond so many workers is none: they are about as many as all devices there are.
constexpr double kMostMeant = 1e9;
constexpr int kMostServersTried = 4096;
constexpr double kAnyBatch = std::numeric_limits<double>::infinity();

// The plan on `workers` workers, or those of them that may train together. Named hosts cannot be
// stretched over more nodes: the first ones repeat, so that the slowest link still counts.
Plan Scaled(const Plan& plan, int workers, int devices_per_node) {
  Plan scaled = OnFilledNodes(plan, workers, devices_per_node);
  if (!plan.hosts.empty()) {
    scaled.hosts.clear();
    for (int i = 0; i < scaled.nodes(); ++i) {
      scaled.hosts.push_back(plan.hosts[static_cast<std::size_t>(i) % plan.hosts.size()]);
    }
  }
  return scaled;
}

// The share of a fixed step, in micro-steps of at most the plan's samples; where slow nodes take
// others, in the plan's proportion.
Plan Shared(const Plan& plan, int workers, int devices_per_node, int global_batch) {
  Plan share = Scaled(plan, workers, devices_per_node);
  const long long micro_batch = share.micro_batch();
  share.accumulation_steps = static_cast<int>((global_batch - 1) / micro_batch + 1);
  const long long of_all = micro_batch * share.accumulation_steps;
  const auto share_of = [&](int batch) {
    return static_cast<int>((1LL * global_batch * batch - 1) / of_all + 1);
  };
  share.local_batch = share_of(share.local_batch);
  if (share.slow_local_batch) share.slow_local_batch = share_of(*share.slow_local_batch);
  return share;
}

// ---- The search.

// Ascending numbers up to `most` that are looked at.
std::vector<int> SampledWorkers(int most, int devices_per_node) {
  std::vector<int> sampled;
  for (int w = 1; w <= std::min(most, kEveryWorkerTo); ++w) sampled.push_back(w);
  for (int i = 1; sampled.back() < most; ++i) {
    const double exact = kEveryWorkerTo * std::exp2(1.0 * i / kSamplesPerDoubling);
    int w = most;
    if (exact < most) {
      w = static_cast<int>(std::llround(exact));
      if (i % kSamplesPerDoubling != 0) w = std::max(1, w / devices_per_node) * devices_per_node;
    }
    if (sampled.back() < w) sampled.push_back(w);
  }
  return sampled;
}

// The number between `low` and `high` with the least cost(): every one of few, else a closer and
// closer look around the best of some.
template <class Cost>
int LeastAround(int low, int high, int best, const Cost& cost) {
  constexpr int kLooks = 32;
  double least = cost(best);
  const auto look = [&](int w) {
    const double of_w = cost(w);
    if (of_w < least) {
      least = of_w;
      best = w;
    }
  };
  while (high - low > 2 * kLooks) {
    const int stride = (high - low) / kLooks;
    for (int w = low; w <= high; w += stride) look(w);
    low = std::max(low, best - stride);
    high = std::min(high, best + stride);
  }
  for (int w = low; w <= high; ++w) look(w);
  return best;
}

template <class Cost>
int LeastOf(const std::vector<int>& sampled, const Cost& cost) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const double of_w = cost(sampled[i]);
    if (of_w < least) {
      least = of_w;
      best = i;
    }
  }
  const int low = best == 0 ? sampled[best] : sampled[best - 1];
  const int high = best + 1 == sampled.size() ? sampled[best] : sampled[best + 1];
  return LeastAround(low, high, sampled[best], cost);
}

class Search {
 public:
  Search(const Predictor& predictor, const Plan& plan, int devices_per_node, ScalingLimits* limits)
      : predictor_(predictor), plan_(plan), devices_(devices_per_node), limits_(*limits) {}

  void Given(const Cluster& cluster) {
    const long long all = 1LL * cluster.nodes * devices_;
    const bool stated = plan_.workers() > 1;
    if (!stated && (all < 2 || all > limits_.most_workers)) return;
    const Plan plan = stated ? plan_ : Scaled(plan_, static_cast<int>(all), devices_);
    const RatesAlone alone(predictor_, plan_, Scaled(plan_, 1, devices_));
    GivenScaling given;
    given.point.workers = plan.workers();
    given.point.step_time = Step(plan).total();
    given.point.throughput = CountedSamples(plan) / given.point.step_time;
    given.speedup = given.point.throughput / alone.of_one();
    given.point.efficiency = given.point.throughput / alone.Of(plan);
    if (given.speedup < 1) given.payoff = FindPayoff(predictor_, plan, alone.of_one(), kAnyBatch);
    limits_.given = given;
  }

  void WeakScaling(const ClosedForm<SampleRate<>>& ceiling) {
    const int most = limits_.most_workers;
    const std::vector<int> sampled = SampledWorkers(most, devices_);
    std::vector<ScalingPoint> points;
    const Plan single = Scaled(plan_, 1, devices_);
    const RatesAlone alone(predictor_, plan_, single);
    const auto look = [&](int w) {
      const Plan plan = Scaled(plan_, w, devices_);
      const StepTime<double> step = Step(plan);
      const SampleRate<> throughput = CountedSamples(plan) / step.total();
      const int workers = plan.workers();
      ScalingPoint point{workers, step.total(), throughput, throughput / alone.Of(plan)};
      return std::pair(point, step.compute() < step.exposed());
    };
    // One worker exchanges with servers too, which devices that exchange nothing do not.
    std::optional<RatesAlone> nobody;
    if (UsesServers(plan_.strategy) && !predictor_.workload().communication_only) {
      nobody.emplace(predictor_, plan_, OneWorkerOf(single));
    }
    const auto faster = [&](int w) { return points.front().throughput < look(w).first.throughput; };
    const auto is_half_used = [&](const ScalingPoint& point) {
      const double used =
          nobody ? point.throughput / nobody->Of(Scaled(plan_, point.workers, devices_))
                 : point.efficiency;
      return used < 0.5;
    };
    // The last of those looked at of which each is not true, behind which it is for good.
    std::optional<std::size_t> last_slower;
    std::optional<std::size_t> last_uncrossed;
    std::optional<std::size_t> last_efficient;
    std::optional<std::size_t> last_used;
    std::optional<std::size_t> last_low;
    const auto from_on = [&](const std::optional<std::size_t>& last, const auto& holds) {
      if (!last) return std::optional(sampled.front());
      if (*last + 1 == sampled.size()) return std::optional<int>();
      return std::optional(BisectCount(sampled[*last], sampled[*last + 1], holds));
    };
    for (std::size_t i = 0; i < sampled.size(); ++i) {
      const auto [point, crossed] = look(sampled[i]);
      points.push_back(point);
      if (!(points.front().throughput < point.throughput)) {
        last_slower = i;
      } else if (!limits_.worth_it) {
        limits_.worth_it = BisectCount(sampled[i - 1], sampled[i], faster);
      }
      if (!crossed) last_uncrossed = i;
      if (!(point.efficiency < 0.5)) last_efficient = i;
      if (!is_half_used(point)) last_used = i;
      if (ceiling && ceiling->exists() && point.throughput < ceiling->value() * 0.5) last_low = i;
      if (std::has_single_bit(static_cast<unsigned>(sampled[i])) || sampled[i] == most) {
        limits_.curve.push_back(point);
      }
    }
    limits_.worth_it_from = from_on(last_slower, faster);
    limits_.crossing = from_on(last_uncrossed, [&](int w) { return look(w).second; });
    limits_.half_efficiency =
        from_on(last_efficient, [&](int w) { return look(w).first.efficiency < 0.5; });
    limits_.half_utilisation =
        from_on(last_used, [&](int w) { return is_half_used(look(w).first); });
    if (ceiling && ceiling->exists()) {
      limits_.half_ceiling = from_on(
          last_low, [&](int w) { return !(look(w).first.throughput < ceiling->value() * 0.5); });
    }
    limits_.best_workers = LeastOf(sampled, [&](int w) {
      return w <= kEveryWorkerTo ? -points[static_cast<std::size_t>(w - 1)].throughput.si()
                                 : -look(w).first.throughput.si();
    });
    const ScalingPoint best = look(limits_.best_workers).first;
    limits_.best_workers = best.workers;
    limits_.best_throughput = best.throughput;
    limits_.efficiency_at_most = points.back().efficiency;
    const Prediction at_most = predictor_.Predict(Scaled(plan_, most, devices_));
    limits_.weak_binding = FindBinding(at_most);
    limits_.flags = at_most.flags;
    NameMemoryFlags(at_most);
  }

  void StrongScaling() {
    const int batch = limits_.strong_global_batch;
    const auto step = [&](int w) { return Step(Shared(plan_, w, devices_, batch)).total(); };
    const int most = std::min(limits_.most_workers, batch);
    const auto seconds = [&](int w) {
      if (predictor_.Memory(Shared(plan_, w, devices_, batch)).may_fit()) return step(w).si();
      return std::numeric_limits<double>::infinity();
    };
    const std::vector<int> sampled = SampledWorkers(most, devices_);
    int best = LeastOf(sampled, seconds);
    if (std::isinf(seconds(best))) {
      best = LeastOf(sampled, [&](int w) { return step(w).si(); });
      NameMemoryFlag(Scaled(plan_, best, devices_),
                     predictor_.Memory(Shared(plan_, best, devices_, batch)), "a fixed step ");
    }
    limits_.strong_best_workers = Scaled(plan_, best, devices_).workers();
    limits_.strong_best_step = step(limits_.strong_best_workers);
    limits_.strong_binding = FindBinding(
        predictor_.Predict(Shared(plan_, limits_.strong_best_workers, devices_, batch)));
  }

  void Reference() {
    Plan plan = Scaled(plan_, limits_.reference_workers, devices_);
    if (plan.input_rate && !predictor_.workload().communication_only) {
      limits_.input_needed = predictor_.InputNeeded(plan);
    }
    if (plan.compress.exists() && plan.nodes() > 1) CompressionPays(plan);
    const auto computes = [&](int a) {
      plan.accumulation_steps = a;
      const Duration<> micro_steps = predictor_.Terms(plan).micro * static_cast<double>(a);
      return micro_steps >= Step(plan).total() * limits_.target_efficiency;
    };
    int enough = 1;
    while (enough < kMostCount && !computes(enough)) enough = std::min(2 * enough, kMostCount);
    if (computes(enough)) limits_.accumulation = BisectCount(enough / 2, enough, computes);
    plan.accumulation_steps = plan_.accumulation_steps;
    if (limits_.closed.buckets) Buckets(plan);
    if (limits_.closed.servers) Servers(plan);
  }

 private:
  StepTime<double> Step(const Plan& plan) const { return predictor_.PredictStep(plan); }

  // Memory differs with the workers: what is said of it names them, at the end of the search, and
  // on the machines that there are or else on one.
  void NameMemoryFlags(const Prediction& at_most) {
    const Plan last = Scaled(plan_, limits_.most_workers, devices_);
    if (const std::optional<std::string> flag = MemoryFlag(at_most.memory)) {
      for (std::string& one : limits_.flags) {
        if (one == *flag) one = Named(last, one);
      }
    }
    // Throughputs are compared with that of one worker.
    for (const int workers : {limits_.reference_workers, 1}) {
      const Plan plan = Scaled(plan_, workers, devices_);
      if (plan.workers() == last.workers()) continue;
      if (NameMemoryFlag(plan, predictor_.Memory(plan))) break;
    }
  }

  // Puts first what is said of these workers' memory, unless it is said already.
  bool NameMemoryFlag(const Plan& plan, const MemoryNeed& memory, const char* of = "") {
    const std::optional<std::string> flag = MemoryFlag(memory);
    if (!flag) return false;
    std::vector<std::string>& flags = limits_.flags;
    const std::string named = of + Named(plan, *flag);
    if (std::count(flags.begin(), flags.end(), named) == 0) flags.insert(flags.begin(), named);
    return true;
  }

  static std::string Named(const Plan& plan, const std::string& flag) {
    return fmt::format("on {} worker{}: {}", plan.workers(), plan.workers() == 1 ? "" : "s", flag);
  }

  void Buckets(Plan plan) {
    constexpr int kMostPieces = 4096;
    const DataSize<> largest = Mebibytes(FindPlanField("bucket")->range.most);
    std::vector<std::pair<int, Duration<>>> tried;  // by falling cap
    for (double pieces = 1; pieces <= kMostPieces; pieces *= std::sqrt(2.0)) {
      plan.bucket = Min(predictor_.workload().gradient_bytes / pieces, largest);
      const auto count = MakeBuckets(predictor_.workload(), *plan.bucket).size();
      tried.emplace_back(static_cast<int>(count), Step(plan).total());
    }
    const auto best =
        std::min_element(tried.begin(), tried.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto enough = [&](const auto& at) { return at.second <= best->second * (1 + kEnough); };
    auto from = best;
    while (from != tried.begin() && enough(*(from - 1))) --from;
    auto end = best;
    while (end != tried.end() && enough(*end)) ++end;
    limits_.buckets = CountRange{from->first, std::nullopt};
    if (end != tried.end()) limits_.buckets->to = (end - 1)->first;
  }

  // The faster the links, the less there is to save.
  void CompressionPays(Plan plan) {
    plan.input_rate = std::nullopt;
    const auto is_longer = [&](double bytes_per_s) {
      const Plan compressed = WithLinks(plan, BytesPerSecond(bytes_per_s));
      Plan whole = compressed;
      whole.compress = {};
      return Step(whole).total() <= Step(compressed).total();
    };
    const double slowest = kSlowestPayoff.si();
    const double fastest = kFastestPayoff.si();
    if (is_longer(slowest)) return;
    limits_.compression_pays_below =
        BytesPerSecond(is_longer(fastest) ? Bisect(slowest, fastest, is_longer) : fastest);
  }

  void Servers(Plan plan) {
    std::vector<std::pair<int, Duration<>>> tried;
    Duration<> shortest;
    for (int n = 1; n <= kMostServersTried; n += std::max(1, n / 32)) {
      plan.servers = n;
      tried.emplace_back(n, Step(plan).total());
      if (n == 1 || tried.back().second < shortest) shortest = tried.back().second;
    }
    for (const auto& [n, step] : tried) {
      if (step <= shortest * (1 + kEnough)) {
        limits_.servers = n;
        return;
      }
    }
  }

  const Predictor& predictor_;
  const Plan& plan_;
  const int devices_;
  ScalingLimits& limits_;
};

// ---- The closed forms.

class Closed {
 public:
  Closed(const Predictor& predictor, const Plan& plan, int devices_per_node,
         const ScalingLimits& limits)
      : predictor_(predictor),
        plan_(plan),
        devices_(devices_per_node),
        limits_(limits),
        facts_(predictor.Facts(plan)) {
    single_ = predictor_.PredictStep(Scaled(plan, 1, devices_));
    const Plan whole = Shared(plan, 1, devices_, limits.strong_global_batch);
    const StepTime<double> step = predictor_.PredictStep(whole);
    work_ = step.compute() - step.update;
  }

  ClosedLimits Make() {
    if (plan_.compress.is_gathered() || plan_.slow_nodes > 0 || IsOversubscribed(facts_.link)) {
      // A gather grows with the workers in its bytes, slow nodes compute more slowly than the one
      // worker that all is held against, and how much crosses a core changes where a switch is
      // full: there is no law of any of them here.
      Reference();
      return closed_;
    }
    if (TraitsOf(plan_.strategy).asynchronous()) {
      Asynchronous();
    } else if (!TraitsOf(plan_.strategy).exchanges) {
      const Limit<double> none = Limit<double>::None();
      closed_.ceiling = Limit<SampleRate<>>::None();
      closed_.half_ceiling = closed_.half_efficiency = closed_.crossing = none;
      closed_.strong_best_workers = none;
    } else {
      Synchronous();
    }
    Reference();
    return closed_;
  }

 private:
  // The law of growth with the constants that hold at some number of workers.
  struct Law {
    SyncGrowth<double> growth;
    Duration<> compute;
    Duration<> hidden;  // what the backward pass has room for
  };

  const std::vector<Bucket>& buckets() const { return *facts_.buckets; }
  double calls() const { return static_cast<double>(buckets().size()); }
  DataSize<> bytes() const { return facts_.gradient; }
  SampleCount<> samples() const {
    return Samples(1.0 * plan_.local_batch * plan_.accumulation_steps);
  }

  GrowthQuestion Question(const Plan& plan, Strategy algorithm,
                          const StepTerms<double>& terms) const {
    return {plan,
            algorithm,
            terms,
            buckets(),
            bytes(),
            devices_,
            predictor_.cluster().nics_per_node,
            ServersOnEveryNode(plan_)};
  }

  // A library's all-reduce is the ring beyond two nodes, where the laws hold.
  Law At(Plan plan) const {
    if (plan.strategy == Strategy::kAllreduce) plan.strategy = Strategy::kRing;
    Strategy algorithm = plan.strategy;
    const StepTerms<double> terms = predictor_.Terms(plan, &algorithm);
    Law law;
    const Exchange& exchange = ExchangeOf(algorithm);
    const GrowthQuestion question = Question(plan, algorithm, terms);
    law.growth = exchange.Growth(question);
    law.growth.time.fixed += terms.overhead + terms.coding;
    law.compute = predictor_.PredictStep(plan).compute();
    law.hidden = exchange.Room(question);
    return law;
  }

  // The answer of `limit` to the law at that answer; `plan_on(w)` is the plan on w workers.
  template <class PlanOn, class LimitOf>
  Limit<double> AtItsAnswer(const PlanOn& plan_on, const LimitOf& limit_of) const {
    // An all-reduce within a node is a law of its own.
    const bool node_first = !UsesServers(plan_.strategy) && devices_ > 1;
    if (node_first) {
      const Limit<double> within = limit_of(plan_on(devices_));
      if (within.exists() && within.value() <= devices_) return within;
    }
    // Its constants get worse with the workers, so that the law at w answers more than w up to the
    // answer, and less beyond.
    int low = node_first ? devices_ + 1 : 1;
    int high = kMostCount;
    Limit<double> answer = limit_of(plan_on(high));
    if (!answer.exists() || answer.value() >= high) {
      return answer.exists() && answer.value() > kMostMeant ? Limit<double>::None() : answer;
    }
    while (high - low > 1) {
      const int middle = static_cast<int>(std::sqrt(1.0 * low * high));
      const int w = std::clamp(middle, low + 1, high - 1);
      const Limit<double> there = limit_of(plan_on(w));
      if (there.exists() && there.value() < w) {
        high = w;
        answer = there;
      } else {
        low = w;
      }
    }
    return answer;
  }

  void Synchronous() {
    const auto on = [&](int w) { return Scaled(plan_, w, devices_); };
    // The law for many workers; those of one node would have an end of their own. What auto chooses
    // changes with the workers, and only the last choice tells whether there is an end.
    const int many = TraitsOf(plan_.strategy).to_be_chosen
                         ? kMostCount
                         : std::max(limits_.most_workers, 2 * devices_);
    closed_.ceiling = WeakScalingCeiling(samples(), At(on(many)).growth);
    closed_.half_ceiling = Limit<double>::None();
    if (closed_.ceiling->exists()) {
      closed_.half_ceiling = AtItsAnswer(on, [&](const Plan& plan) {
        const Law law = At(plan);
        return HalfCeilingWorkers(law.growth, law.compute, law.hidden);
      });
    }
    closed_.half_efficiency = AtItsAnswer(on, [&](const Plan& plan) {
      const Law law = At(plan);
      return WorkersAtEfficiency(law.growth, 0.5, StepAlone(predictor_, single_, plan), law.compute,
                                 law.hidden);
    });
    closed_.crossing = AtItsAnswer(on, [&](const Plan& plan) {
      const Law law = At(plan);
      return CrossingWorkers(law.growth, law.compute, law.hidden);
    });
    Duration<> step;
    Limit<double> best =
        AtItsAnswer([&](int w) { return Shared(plan_, w, devices_, limits_.strong_global_batch); },
                    [&](const Plan& plan) {
                      const Law law = At(plan);
                      const StrongScaling<double> strong =
                          BestStrongScaling(law.growth, work_, law.hidden / law.compute);
                      step = strong.step;
                      return strong.workers;
                    });
    // Scaling out may end before it begins.
    if (!UsesServers(plan_.strategy)) {
      if (devices_ > 1) {
        const Law law = At(Shared(plan_, devices_, devices_, limits_.strong_global_batch));
        const double g = devices_;
        const Duration<> exposed = Max(law.growth.Time(g) - law.hidden, Duration<>());
        if (work_ / g + exposed < step) {
          best = Limit<double>::At(g);
          step = work_ / g + exposed;
        }
      }
      if (work_ <= step) best = Limit<double>::At(1.0);
    }
    closed_.strong_best_workers = best;
  }

  void Asynchronous() {
    if (ServersOnEveryNode(plan_)) return;  // more nodes bring more servers
    const auto on = [&](int w) { return Scaled(plan_, w, devices_); };
    const auto queues = [&](const Plan& plan) {
      const StepTerms<double> terms = predictor_.Terms(plan);
      ServerQueues<double> result = AsyncServerQueues(PathsOfLaws(terms.servers), bytes());
      result.think += terms.overhead;
      return result;
    };
    const auto compute = [&](const Plan& plan) { return predictor_.PredictStep(plan).compute(); };
    closed_.ceiling =
        Limit<SampleRate<>>::At(AsyncCeiling(samples(), queues(on(limits_.most_workers))));
    const auto knee = [&](const Plan& plan) { return AsyncKnee(queues(plan), compute(plan)); };
    const auto at = [&](const auto& workers_of) {
      return AtItsAnswer(on, [&](const Plan& plan) { return Limit<double>::At(workers_of(plan)); });
    };
    closed_.knee = at(knee);
    closed_.half_ceiling = at([&](const Plan& plan) { return std::max(1.0, knee(plan) - 1); });
    closed_.half_efficiency = at([&](const Plan& plan) { return 2 * knee(plan); });
    closed_.crossing =
        at([&](const Plan& plan) { return AsyncCrossingWorkers(queues(plan), compute(plan)); });
    closed_.strong_best_workers =
        at([&](const Plan& plan) { return AsyncBestWorkers(queues(plan), work_); });
  }

  void Reference() {
    Plan plan = Scaled(plan_, limits_.reference_workers, devices_);
    const StepTerms<double> terms = predictor_.Terms(plan);
    // What is exchanged in each micro-step does not get rarer with their number, and queues of
    // asynchronous workers empty as these come more rarely: what shows then is no constant.
    const bool has_queues = TraitsOf(plan.strategy).asynchronous() && plan.workers() > 1;
    if (terms.micro > Duration<>() && !GathersUnits(plan.shard) && !has_queues) {
      plan.accumulation_steps = 1;
      closed_.accumulation = Limit<double>::At(AccumulationForEfficiency(
          limits_.target_efficiency, predictor_.PredictStep(plan).total() - terms.micro,
          terms.micro));
      plan.accumulation_steps = plan_.accumulation_steps;
    }
    if (plan.compress.exists() && TraitsOf(plan.strategy).ring && plan.nodes() == plan.workers()) {
      CompressionPays(plan, terms);
    }
    const bool server_sync = TraitsOf(plan.strategy).has_phases();
    // The messages of factored buckets are no equal pieces.
    if (terms.cost.per_call > Duration<>() && plan.shard == Shard::kNone &&
        !plan.compress.is_factored() && facts_.overlap == Overlap::kBuckets) {
      closed_.buckets = Limit<double>::At(BestBuckets(plan, terms));
    }
    const bool helped = plan.server.multicast && plan.server.in_network_aggregation;
    if (UsesServers(plan.strategy) && !plan.server.colocated && !helped) {
      const std::int64_t tensors = predictor_.workload().tensor_count();
      double largest = 0;
      if (tensors > 0 && plan.server.sharding == Sharding::kTensor) {
        largest =
            LargestShare(predictor_.workload(), static_cast<int>(tensors), Sharding::kTensor).share;
      }
      if (server_sync) {
        closed_.servers = Limit<double>::At(
            ServersThatSuffice(WithoutLatency(terms.servers), bytes(), calls(), largest));
      } else {
        const double servers =
            AsyncServersThatSuffice(terms.servers, bytes(), predictor_.PredictStep(plan).compute());
        closed_.servers = Limit<double>::At(
            largest > 0 ? std::min(servers, std::max(1.0, 1 / largest)) : servers);
      }
    }
  }

  // What a hop carries for each byte, and what calls cost, are those of the two predictions.
  void CompressionPays(const Plan& plan, const StepTerms<double>& terms) {
    if (plan.workers() < 2) return;
    Plan whole = plan;
    whole.compress = {};
    const auto exchange = [&](const Plan& of, const StepTerms<double>& its) {
      const StepFacts facts = predictor_.Facts(of);
      return CompressedExchange<double>{
          facts.gradient, its.cost.per_byte * its.node_hop.bandwidth,
          its.cost.per_call * static_cast<double>(facts.buckets->size())};
    };
    const std::optional<DataRate<>> below =
        PaysBelow(exchange(whole, predictor_.Terms(whole)), exchange(plan, terms), terms.coding);
    closed_.compression = below && std::isfinite(below->si()) ? Limit<DataRate<>>::At(*below)
                                                              : Limit<DataRate<>>::None();
  }

  // Each cost of a call that may set the pace has its own best number of buckets, and two of them
  // meet at another: the best of all these.
  double BestBuckets(const Plan& plan, const StepTerms<double>& terms) const {
    Strategy algorithm = plan.strategy;
    predictor_.Terms(plan, &algorithm);
    const CallPaces paces = ExchangeOf(algorithm).Paces(Question(plan, algorithm, terms));
    const auto end = [&](double count) {
      return Max(EqualBucketsEnd(count, terms.backward, paces.steady, bytes()),
                 EqualBucketsEnd(count, terms.backward, paces.chain, bytes()));
    };
    double best = BestBucketCount(terms.backward, paces.steady, bytes());
    const auto try_count = [&](double count) {
      if (count >= 1 && end(count) < end(best)) best = count;
    };
    try_count(BestBucketCount(terms.backward, paces.chain, bytes()));
    if (paces.steady.per_call < paces.chain.per_call) {
      try_count((paces.steady.per_byte - paces.chain.per_byte) * bytes() /
                (paces.chain.per_call - paces.steady.per_call));
    }
    return best;
  }

  const Predictor& predictor_;
  const Plan& plan_;
  const int devices_;
  const ScalingLimits& limits_;
  const StepFacts facts_;
  StepTime<double> single_;  // of one worker
  Duration<> work_;          // of the fixed step
  ClosedLimits closed_;
};

int StrongBatch(const Plan& plan, int devices_per_node) {
  const long long full_node = 1LL * plan.local_batch * plan.accumulation_steps * devices_per_node;
  if (full_node > kMostBatch) {
    throw InputError({"", 0, "global-batch"}, std::to_string(full_node),
                     "samples on one full node are out of range",
                     "--global-batch of at most " + std::to_string(kMostBatch));
  }
  return static_cast<int>(full_node);
}

int ReferenceWorkers(const Plan& plan, const Cluster& cluster, int devices_per_node, int most) {
  if (plan.workers() > 1) return plan.workers();
  const long long all = 1LL * cluster.nodes * devices_per_node;
  return static_cast<int>(std::min<long long>(most, all > 1 ? all : most));
}

// Each number of workers has as many backup workers as it may have.
std::string BackupFlag(int backup_workers) {
  const std::string fewer = backup_workers == 1
                                ? "one worker alone is no backup worker"
                                : fmt::format(
                                      "of {0} workers or fewer all but one are backup workers, "
                                      "and not {0}",
                                      backup_workers);
  return fewer + "; a fixed step counts the samples that backup workers throw away";
}

}  // namespace

ScalingLimits FindScalingLimits(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                const LimitsOptions& options) {
  // One worker exchanges with servers on nodes of their own.
  if (!UsesServers(plan.strategy) || plan.server.colocated) RequireWorkOfOne(predictor.workload());
  ScalingLimits limits;
  const auto of_full_nodes = [&](int workers) {
    return OnFilledNodes(plan, workers, devices_per_node).workers();
  };
  limits.most_workers = of_full_nodes(options.most_workers);
  limits.target_efficiency = options.target_efficiency;
  limits.strong_global_batch = options.strong_global_batch > 0
                                   ? options.strong_global_batch
                                   : StrongBatch(plan, devices_per_node);
  limits.reference_workers = of_full_nodes(
      ReferenceWorkers(plan, predictor.cluster(), devices_per_node, options.most_workers));
  Plan supplied = plan;
  supplied.input_rate = std::nullopt;
  limits.closed = Closed(predictor, supplied, devices_per_node, limits).Make();
  Search search(predictor, plan, devices_per_node, &limits);
  search.Given(predictor.cluster());
  search.WeakScaling(limits.closed.ceiling);
  search.StrongScaling();
  search.Reference();
  if (plan.backup_workers > 0) limits.flags.push_back(BackupFlag(plan.backup_workers));
  return limits;
}

}  // namespace stepcast
