#include "predictor/search/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/record/host_texts.h"
#include "data/record/input_error.h"
#include "model/step/belief.h"
#include "predictor/binding.h"
#include "predictor/search/one_worker.h"

namespace stepcast {
namespace {

// Candidates are kept node by node.
constexpr long long kMostNodesInAll = 100'000'000;
// The share of a step from which on compute is all that binds it.
constexpr double kNearlyAll = 0.95;

// The hosts of which something is known that is not so of all: their links, or how they compute.
std::set<std::string_view> HostsOfTheirOwn(const Predictor& predictor,
                                           const std::set<std::string>& known) {
  std::set<std::string_view> own;
  const Belief& belief = predictor.belief();
  for (const auto& [host, position] : belief.host_links()) own.insert(host);
  for (const Host& host : predictor.cluster().hosts) {
    if (!host.link.empty()) own.insert(host.name);
  }
  for (const std::string& host : known) {
    if (belief.SlowdownOf(host)) own.insert(host);
  }
  return own;
}

// The hosts that a plan had best take, where all of the cluster have names: there may be no choice
// without a slow one. None where any of them would do as well.
std::vector<std::string> QuickestHosts(const Predictor& predictor, const Plan& plan) {
  const auto nodes = static_cast<std::size_t>(plan.nodes());
  const Cluster& cluster = predictor.cluster();
  const std::set<std::string> known = KnownHosts(cluster);
  if (known.size() != std::max(nodes, static_cast<std::size_t>(cluster.nodes))) return {};
  if (known.size() == nodes) return {known.begin(), known.end()};
  // A plan waits for its slowest host, so that each is as good as the step on nodes like it alone.
  // All that are like most take one forecast.
  const std::set<std::string_view> own = HostsOfTheirOwn(predictor, known);
  std::optional<Duration<>> of_most;
  std::vector<std::pair<Duration<>, std::string>> by_step;
  Plan alike = plan;
  for (const std::string& host : known) {
    const bool is_like_most = own.count(host) == 0;
    std::optional<Duration<>> step;
    if (is_like_most) step = of_most;
    if (!step) {
      alike.hosts.assign(nodes, host);
      step = predictor.PredictStep(alike).total();
      if (is_like_most) of_most = step;
    }
    by_step.emplace_back(*step, host);
  }
  std::sort(by_step.begin(), by_step.end());
  if (by_step.front().first == by_step.back().first) return {};
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < nodes; ++i) hosts.push_back(std::move(by_step[i].second));
  return hosts;
}

// Whether a plan needs nodes that the cluster does not have. Who gives a plan that does asks what
// more nodes would do.
bool IsBeyond(const Cluster& cluster, const Plan& given, const Plan& candidate) {
  return candidate.nodes() > cluster.nodes && given.nodes() <= cluster.nodes;
}

template <class T>
std::vector<T> Or(const std::vector<T>& given, std::vector<T> otherwise) {
  return given.empty() ? otherwise : given;
}

template <class A, class B>
std::vector<std::pair<A, B>> PairsOf(const std::vector<A>& first, const std::vector<B>& second) {
  std::vector<std::pair<A, B>> pairs;
  for (const A& a : first) {
    for (const B& b : second) pairs.emplace_back(a, b);
  }
  return pairs;
}

// Whether each of `all` goes with a strategy; where none does, `otherwise` takes their place and
// goes.
template <class T, class Goes>
std::vector<std::pair<T, bool>> Judged(const std::vector<T>& all, const std::optional<T>& otherwise,
                                       Goes goes) {
  std::vector<std::pair<T, bool>> judged;
  bool any = false;
  for (const T& one : all) {
    judged.emplace_back(one, goes(one));
    any = any || judged.back().second;
  }
  if (!any && otherwise) judged.emplace_back(*otherwise, true);
  return judged;
}

bool MayCompress(Plan plan, const Compression& compression) {
  plan.compress = compression;
  return WithStrategy(plan, plan.strategy).compress == compression;
}

std::vector<int> BatchCandidates(const Predictor& predictor, const Plan& plan, int most) {
  const TrustedBatches trusted = TrustedBatchesOf(predictor.calibrated_batches());
  std::vector<int> batches;
  ForEachLocalBatch(trusted, most, plan.local_batch, [&](int b) { batches.push_back(b); });
  return batches;
}

std::vector<int> AccumulationCandidates(const Plan& plan, int most) {
  std::vector<int> intervals;
  ForEachInterval(most, plan.accumulation_steps, [&](int a) { intervals.push_back(a); });
  return intervals;
}

double Efficiency(const Predictor& predictor, const Plan& plan, const Prediction& prediction) {
  return prediction.throughput / RatesAlone(predictor, plan, OneWorkerOf(plan)).Of(plan);
}

// Calls visit(candidate, goes_together) for each plan to consider, and for those whose compression
// or shares do not go with the rest.
template <class Visit>
void ForEachCandidate(const Predictor& predictor, const Plan& plan, int devices_per_node,
                      const RecommendOptions& options, const Visit& visit) {
  Plan kept = plan;
  if (!options.shards.empty()) kept.shard = Shard::kNone;
  for (const int workers : Or(options.workers, {plan.workers()})) {
    Plan base = plan;
    if (workers != plan.workers()) {
      base = WithPlacement(plan, FillNodes(workers, devices_per_node));
      base.hosts.clear();
    }
    Plan placed = base;
    for (const Strategy strategy : Or(options.strategies, {plan.strategy})) {
      try {
        RequireKeptWith(kept, strategy);
      } catch (const InputError& e) {
        throw options.strategies.empty() ? e : e.At({"", 0, "--try-strategy"});
      }
      const std::vector<int> servers =
          UsesServers(strategy)        ? Or(options.servers, {std::max(1, plan.servers)})
          : TraitsOf(strategy).helpers ? Or(options.servers, {plan.servers})
                                       : std::vector<int>{0};
      for (const int n : servers) {
        placed.servers = n;
        base = options.strategies.empty() ? placed : WithStrategy(placed, strategy);
        if (n == 0 && plan.servers > 0) base.server_link.bandwidth.reset();  // of helpers
        std::vector<std::optional<DataSize<>>> buckets(options.buckets.begin(),
                                                       options.buckets.end());
        // Who exchanges nothing shares nothing out; without its shares any other is another plan.
        const auto unshared = TraitsOf(strategy).exchanges ? std::optional<Shard>() : Shard::kNone;
        const auto shards = Judged(Or(options.shards, {base.shard}), unshared, [&](Shard shard) {
          return (TraitsOf(strategy).may_shard() || shard == Shard::kNone) &&
                 MayBeOn(base.placement, shard);
        });
        const auto compressions =
            Judged(Or(options.compressions, {base.compress}), std::optional(Compression()),
                   [&](const Compression& one) { return MayCompress(base, one); });
        const auto cuts = PairsOf(Or(buckets, {plan.bucket}), shards);
        for (const auto& [cut, compression] : PairsOf(cuts, compressions)) {
          base.bucket = cut.first;
          base.shard = cut.second.first;
          base.compress = compression.first;
          // Not both: what is sent of gradients that are shared out is not compressed.
          const bool both = base.compress.exists() && base.shard != Shard::kNone;
          const bool goes_together = cut.second.second && compression.second && !both;
          // Samples that are stated of slow nodes stay; the search is about those of the others.
          // Where there are no others, Predict refuses the plan.
          const int stated = base.slow_local_batch ? base.slow_workers() : 0;
          const long long left =
              options.most_global_batch - 1LL * stated * base.slow_local_batch.value_or(0);
          const int most_batch =
              static_cast<int>(std::max(1LL, left / std::max(1, workers - stated)));
          for (const int batch :
               Or(options.local_batches, BatchCandidates(predictor, plan, most_batch))) {
            base.local_batch = batch;
            const int most_interval = static_cast<int>(std::clamp<long long>(
                options.most_global_batch / base.micro_batch(), 1, kMostTriedAccumulation));
            for (const int a :
                 Or(options.accumulation_steps, AccumulationCandidates(plan, most_interval))) {
              base.accumulation_steps = a;
              visit(base, goes_together);
            }
          }
        }
      }
    }
  }
}

// Whether the noise scale says what a sample is worth.
bool TellsWorth(const OutlookOptions& outlook) {
  return outlook.noise_scale && outlook.known_batch;
}

bool KnowsWorth(const RecommendOptions& options) {
  return options.objective != Objective::kThroughput && TellsWorth(options.outlook);
}

[[noreturn]] void RefuseObjective(Objective objective, const char* needs) {
  throw InputError({"", 0, "--objective"}, kObjectiveNames[static_cast<int>(objective)],
                   fmt::format("needs {}", needs));
}

double Score(const Predictor& predictor, const Plan& plan, const Prediction& prediction,
             const RecommendOptions& options) {
  const double throughput = prediction.throughput.in(kSamplesPerSecond);
  if (options.objective == Objective::kThroughput) return throughput;
  const JobOutlook job =
      MakeOutlook(prediction, plan, predictor.cluster(), options.device, options.outlook);
  const double worth = KnowsWorth(options) ? *job.efficiency : 1.0;
  const double samples = (job.update_batch / job.update_interval * prediction.step_time).si();
  switch (options.objective) {
    case Objective::kGoodput:
      if (!job.goodput) RefuseObjective(options.objective, "--noise-scale and --known-batch");
      return job.goodput->in(kSamplesPerSecond);
    case Objective::kPrice:
      if (!job.spending.price_usd) {
        RefuseObjective(options.objective, "prices.node_per_hour in the cluster file");
      }
      if (job.spending.servers_unpriced) {
        RefuseObjective(options.objective,
                        "prices.server_per_hour in the cluster file, for the servers' own nodes");
      }
      return samples * worth / *job.spending.price_usd;
    default:
      if (!job.spending.energy_j) {
        RefuseObjective(options.objective, "power.device in the cluster file");
      }
      return samples * worth / *job.spending.energy_j;
  }
}

double GainOf(double ratio) { return std::abs(ratio - 1) <= kSameScores ? 1 : ratio; }

// More devices may be slower than those that fill a node.
std::string ComputeAlone(const Predictor& predictor, const Recommendation& best,
                         int devices_per_node) {
  const Plan& plan = best.plan;
  if (TraitsOf(plan.strategy).exchanges && plan.workers() <= kMostCount / 2) {
    Plan wider = OnFilledNodes(plan, 2 * plan.workers(), devices_per_node);
    wider.hosts = QuickestHosts(predictor, wider);
    const Prediction twice = predictor.Predict(wider);
    const bool is_twice = wider.workers() == 2 * plan.workers();
    if (is_twice && twice.throughput < best.prediction.throughput) {
      return fmt::format(
          "nothing but compute: faster devices help; twice as many do not, as {} there",
          FindBinding(twice).Clause());
    }
  }
  return "nothing but compute: more devices or faster ones help";
}

std::string BindingConstraint(const Predictor& predictor, const Recommendation& best,
                              const Recommendation& fastest, int devices_per_node,
                              const RecommendOptions& options) {
  // Neither larger batches nor a faster exchange bring samples sooner.
  if (const Binding input = FindBinding(best.prediction); input.part == "input") {
    const SampleRate<> needed = predictor.InputNeeded(best.plan);
    return fmt::format(
        "the input pipeline: {:.0f} % of the step waits for samples, of which a "
        "node could take {:.4g}/s and gets {:.4g}/s",
        100 * input.share, needed.in(kSamplesPerSecond),
        best.plan.input_rate->in(kSamplesPerSecond));
  }
  if (options.objective != Objective::kThroughput &&
      best.prediction.throughput * (1 + options.tolerance) < fastest.prediction.throughput) {
    if (KnowsWorth(options) && best.plan.global_batch() < fastest.plan.global_batch()) {
      return "the gradient noise scale: of a larger batch each sample is worth less";
    }
    if (best.plan.workers() < fastest.plan.workers()) {
      return fmt::format("the {} of more workers, which would be faster",
                         kObjectiveNames[static_cast<int>(options.objective)]);
    }
  }
  const double next =
      best.plan.global_batch() / best.plan.accumulation_steps * (best.plan.accumulation_steps + 1);
  if (best.efficiency < 0.95 && next > options.most_global_batch) {
    return fmt::format("the global batch limit of {} samples", options.most_global_batch);
  }
  Plan larger = best.plan;
  larger.local_batch *= 2;
  if (larger.global_batch() <= options.most_global_batch) {
    const Prediction more = predictor.Predict(larger);
    if (!more.memory.may_fit() &&
        best.prediction.throughput * (1 + options.tolerance) < more.throughput) {
      return "the device's memory";
    }
  }
  const Binding binding = FindBinding(best.prediction);
  if (binding.part == "compute" && binding.share < kNearlyAll) {
    // What it would be rid of stands beside the compute that nothing rids it of.
    Prediction beside = best.prediction;
    StepTime<double>& rest = beside.breakdown;
    rest.forward = rest.backward = rest.update = {};
    const Binding other = FindBinding(beside);
    const double share = other.share * (rest.total() / best.prediction.breakdown.total());
    return fmt::format("beside compute, {:.0f} % of the step, {}: {:.0f} %", 100 * binding.share,
                       other.Clause(), 100 * share);
  }
  if (binding.part == "compute") return ComputeAlone(predictor, best, devices_per_node);
  return fmt::format("the {}: {}", binding.part == "link" ? "network link" : binding.part,
                     binding.sentence.substr(0, binding.sentence.find_last_not_of('.') + 1));
}

// The candidates that may be recommended, each judged; those that may not are counted.
std::vector<Recommendation> FeasibleOf(const Predictor& predictor, const Plan& plan,
                                       int devices_per_node, const RecommendOptions& options,
                                       RecommendOutcome* outcome) {
  std::vector<Recommendation> feasible;
  long long nodes = 0;
  std::optional<Plan> refused;
  // By workers, strategy and servers: those of the first plan that has them.
  std::map<std::tuple<int, Strategy, int>, std::vector<std::string>> quickest;
  const auto consider = [&](const Plan& candidate, bool goes_together) {
    if (!goes_together) {
      if (++outcome->not_together == 1) refused = candidate;
      return;
    }
    ++outcome->considered;
    if (IsBeyond(predictor.cluster(), plan, candidate)) {
      ++outcome->over_nodes;
      return;
    }
    if (candidate.global_batch() > options.most_global_batch) {
      ++outcome->over_global_batch;
      return;
    }
    Recommendation r{candidate, {}, 0, 0};
    if (candidate.workers() != plan.workers()) {
      const auto [hosts, is_new] =
          quickest.try_emplace({candidate.workers(), candidate.strategy, candidate.servers});
      if (is_new) hosts->second = QuickestHosts(predictor, candidate);
      r.plan.hosts = hosts->second;
    }
    r.prediction = predictor.Predict(r.plan);
    if (!r.prediction.memory.may_fit()) {
      ++outcome->out_of_memory;
      return;
    }
    nodes += candidate.nodes();
    if (nodes > kMostNodesInAll) {
      throw InputError({"", 0, "--try-workers"}, std::to_string(candidate.workers()),
                       fmt::format("and the rest of what is tried make plans of more than {} nodes "
                                   "together",
                                   kMostNodesInAll),
                       "fewer workers, or fewer batches and intervals to try");
    }
    r.efficiency = Efficiency(predictor, r.plan, r.prediction);
    r.score = Score(predictor, r.plan, r.prediction, options);
    feasible.push_back(std::move(r));
  };
  ForEachCandidate(predictor, plan, devices_per_node, options, consider);
  // What is stated, and not searched, is refused as by a prediction.
  const bool is_stated = options.shards.empty() && options.compressions.empty() &&
                         (options.workers.empty() || plan.compress.exists());
  if (outcome->considered == 0 && refused && is_stated) CheckPlan(*refused);
  return feasible;
}

// The smallest batch with a score that is enough, and what leads among those of that batch;
// `feasible` is by batch.
const Recommendation& BestOf(const std::vector<Recommendation>& feasible, double enough) {
  auto best = std::find_if(feasible.begin(), feasible.end(),
                           [&](const Recommendation& r) { return enough <= r.score; });
  for (auto r = best; r != feasible.end(); ++r) {
    if (r->plan.global_batch() != best->plan.global_batch()) break;
    if (enough <= r->score && LeadsAtItsBatch(r->score, r->plan.accumulation_steps, best->score,
                                              best->plan.accumulation_steps)) {
      best = r;
    }
  }
  return *best;
}

}  // namespace

Objective DefaultObjective(const OutlookOptions& outlook) {
  return TellsWorth(outlook) ? Objective::kGoodput : Objective::kThroughput;
}

RecommendOutcome Recommend(const Predictor& predictor, const Plan& plan, int devices_per_node,
                           const RecommendOptions& options) {
  RequireWorkOfOne(predictor.workload());
  RecommendOutcome outcome;
  std::vector<Recommendation> feasible =
      FeasibleOf(predictor, plan, devices_per_node, options, &outcome);
  if (feasible.empty()) return outcome;

  // Options for the strategies that are tried need not go with the plan's own strategy.
  Recommendation given{
      options.strategies.empty() ? plan : WithStrategy(plan, plan.strategy), {}, 0, 0};
  given.prediction = predictor.Predict(given.plan);
  given.efficiency = Efficiency(predictor, given.plan, given.prediction);
  given.score = Score(predictor, given.plan, given.prediction, options);
  const bool may_keep = IsUsable(given, options);

  const auto faster = [](const Recommendation& a, const Recommendation& b) {
    return a.prediction.throughput < b.prediction.throughput;
  };
  const Recommendation fastest = *std::max_element(feasible.begin(), feasible.end(), faster);
  const double top = std::max_element(feasible.begin(), feasible.end(),
                                      [](const Recommendation& a, const Recommendation& b) {
                                        return a.score < b.score;
                                      })
                         ->score;
  std::sort(feasible.begin(), feasible.end(),
            [&](const Recommendation& a, const Recommendation& b) {
              const double batch_a = a.plan.global_batch();
              const double batch_b = b.plan.global_batch();
              return batch_a != batch_b ? batch_a < batch_b : a.score > b.score;
            });
  // Scores that differ by rounding are the same, here and in what is told of them.
  const bool no_worse = !may_keep || given.score <= top * (1 + kSameScores);
  double enough = top * (1 - (KnowsWorth(options) ? 0 : options.tolerance));
  if (may_keep && no_worse) enough = std::max(enough, given.score * (1 - kSameScores));
  outcome.best = BestOf(feasible, enough);
  // Nobody who has a plan takes a worse one; without one, half of the best is little.
  const double least = !may_keep  ? outcome.best->score / 2
                       : no_worse ? std::min(given.score, outcome.best->score)
                                  : given.score;
  for (const Recommendation& r : feasible) {
    if (outcome.best->score < r.score) {
      ++outcome.little_gain;
    } else if (r.score < least ||
               (!outcome.pareto.empty() && r.score <= outcome.pareto.back().score)) {
      ++outcome.no_better;
    } else {
      outcome.pareto.push_back(r);
    }
  }
  outcome.baseline = given;
  outcome.is_advice = no_worse;
  outcome.gain = GainOf(outcome.best->prediction.throughput / given.prediction.throughput);
  outcome.score_gain = GainOf(outcome.best->score / given.score);
  const Plan one = OneWorkerOf(outcome.best->plan);
  const SampleRate<> alone = RatesAlone(predictor, outcome.best->plan, one).of_one();
  if (outcome.best->prediction.throughput < alone && predictor.Memory(one).may_fit()) {
    outcome.one_worker = alone;
  }
  if (!no_worse && options.objective == Objective::kThroughput) {
    outcome.payoff = FindPayoff(predictor, outcome.best->plan, given.prediction.throughput,
                                options.most_global_batch);
  }
  outcome.binding = BindingConstraint(predictor, *outcome.best, fastest, devices_per_node, options);
  return outcome;
}

std::optional<Plan> FindFitting(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                const RecommendOptions& options) {
  RecommendOptions least = options;
  const std::vector<int>& steps = options.accumulation_steps;
  // More need more memory, and more samples.
  least.accumulation_steps = {steps.empty() ? 1 : *std::min_element(steps.begin(), steps.end())};
  std::optional<Plan> found;
  const auto consider = [&](const Plan& candidate, bool goes_together) {
    if (found || !goes_together || candidate.global_batch() > options.most_global_batch) return;
    if (IsBeyond(predictor.cluster(), plan, candidate)) return;
    CheckPlan(candidate);
    if (predictor.Memory(candidate).may_fit()) found = candidate;
  };
  ForEachCandidate(predictor, plan, devices_per_node, least, consider);
  return found;
}

std::vector<LeftOut> ReasonsLeftOut(const RecommendOutcome& outcome,
                                    const RecommendOptions& options) {
  const bool may_keep = outcome.baseline && IsUsable(*outcome.baseline, options);
  std::vector<LeftOut> reasons = {
      {outcome.out_of_memory, "out of memory"},
      {outcome.over_global_batch,
       fmt::format("more than the global batch of {}", options.most_global_batch)},
      {outcome.over_nodes, "more nodes than the cluster has"},
      {outcome.no_better, fmt::format("no better than another of no larger global batch, or than "
                                      "{}",
                                      may_keep ? "the plan as given" : "half of the best")},
      {outcome.little_gain, fmt::format("better by at most {:g} %, with a larger global batch",
                                        100 * options.tolerance)},
      {outcome.not_together,
       "compression or shares that do not go with their strategy, their nodes, or each other"}};
  std::erase_if(reasons, [](const LeftOut& reason) { return reason.plans == 0; });
  return reasons;
}

bool IsUsable(const Recommendation& given, const RecommendOptions& options) {
  return given.prediction.memory.may_fit() &&
         given.plan.global_batch() <= options.most_global_batch;
}

}  // namespace stepcast
