#include "predictor/predictor.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/record/blocks.h"
#include "data/record/fused_attention.h"
#include "data/record/host_texts.h"
#include "data/record/input_error.h"
#include "data/record/link_path.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/text_as_number.h"
#include "data/values/workload_scope.h"
#include "model/compute/device_sheet.h"
#include "model/compute/profiled_compute.h"
#include "model/memory/fitted.h"
#include "model/memory/memory.h"
#include "model/network/sharing.h"
#include "model/statistics/normal.h"
#include "model/step/alternatives.h"
#include "model/step/belief.h"
#include "model/step/believed_model.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "model/step/slow_ends.h"
#include "model/step/workload_counts.h"
#include "model/sync/idleness.h"
#include "predictor/active.h"
#include "predictor/arrival.h"
#include "predictor/binding.h"

namespace stepcast {
namespace {

// From here on back-to-back timeouts, which the transport formula leaves out, show.
constexpr double kCertainLoss = 0.05;
// From here on BBR's second version takes loss for congestion, its first does not (BBRLossThresh,
// draft-cardwell-iccrg-bbr-congestion-control-02).
constexpr double kCertainBbrLoss = 0.02;

ComputeSource SourceOf(ComputeBelief belief) {
  switch (belief) {
    case ComputeBelief::kFitted:
      return ComputeSource::kFitted;
    case ComputeBelief::kProfile:
      return ComputeSource::kProfile;
    case ComputeBelief::kFromDevice:
      return ComputeSource::kFromDevice;
    case ComputeBelief::kFromOtherDevice:
      return ComputeSource::kFromOtherDevice;
    case ComputeBelief::kFromOtherTraining:
      return ComputeSource::kFromOtherTraining;
    case ComputeBelief::kDataSheet:
      return ComputeSource::kDataSheet;
    default:
      return ComputeSource::kPrior;
  }
}

// Those of `hosts` that have no entry among the known ones.
template <class Entries, class NameOf>
std::vector<std::string> NotAmong(const std::vector<std::string>& hosts, const Entries& known,
                                  const NameOf& name_of) {
  std::unordered_set<std::string_view> left(hosts.begin(), hosts.end());
  for (const auto& entry : known) {
    if (left.empty()) break;
    left.erase(name_of(entry));
  }
  std::vector<std::string> unknown;
  for (const std::string& host : hosts) {
    if (left.count(host) > 0) unknown.push_back(host);
  }
  return unknown;
}

// Gradients are ready when the layers that were measured say so.
Workload WithBackwardTimes(Workload workload, const ProfiledCompute* profile) {
  if (profile == nullptr) return workload;
  const std::vector<double> seconds = profile->BackwardSeconds(profile->batches().back());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    workload.layers[i].backward_time = Seconds(seconds[i]);
  }
  return workload;
}

// The forward work of a sample by the least products that compute it: windows of 3 or 5 that slide
// by one may be Winograd's (model/compute/operation_curve.h), 36 for (7 - r) x (7 - r) results.
Work<> LeastForwardFlop(const Workload& workload) {
  constexpr double kProducts = 36;
  Work<> sum;
  for (const Layer& layer : workload.layers) {
    const auto* op = std::get_if<ConvolutionOp>(&layer.operation);
    double share = 1;
    if (op != nullptr && op->kernel.height == op->kernel.width && op->groups == 1 &&
        op->stride == Lengths2{1, 1} && op->dilation == Lengths2{1, 1} &&
        (op->kernel.height == 3 || op->kernel.height == 5)) {
      const auto window = static_cast<double>(op->kernel.height);
      share = kProducts / std::pow(window * (7 - window), 2);
    }
    sum += layer.forward_flop * share;
  }
  return sum;
}

// The plan with the algorithm that strategy auto stands for.
Plan ResolvedPlan(const Plan& plan, const StepFacts& facts) {
  Plan resolved = plan;
  resolved.strategy = facts.strategy;
  return resolved;
}

}  // namespace

Predictor::Predictor(Cluster cluster, Workload workload, const std::optional<Device>& facts,
                     const std::string& device, std::shared_ptr<const ProfiledCompute> profile)
    : cluster_(std::move(cluster)),
      workload_(WithBackwardTimes(std::move(workload), profile.get())),
      device_(DeviceName(cluster_, facts, device)),
      profile_(std::move(profile)),
      belief_(std::make_shared<const Belief>(cluster_, workload_, facts, device_, profile_.get())),
      compute_source_(SourceOf(belief_->compute())),
      counts_(std::make_shared<const WorkloadCounts>(
          workload_, facts, compute_source_ == ComputeSource::kProfile ? profile_ : nullptr)),
      gradients_(std::make_shared<const GradientOrder>(workload_)),
      default_buckets_(
          std::make_shared<const std::vector<Bucket>>(gradients_->Cut(kDefaultBucket))),
      server_buckets_(std::make_shared<const std::vector<Bucket>>(gradients_->Cut(kServerBucket))) {
  if (profile_) RequireProfileOf(profile_->device(), device_, facts, {"", 0, "profile"});
  if (facts) {
    device_memory_ = facts->memory;
    memory_bandwidth_ = facts->memory_bandwidth;
    peak_ = PeakOf(*facts, workload_.precision);
    const bool needs_peak =
        compute_source_ != ComputeSource::kFitted && compute_source_ != ComputeSource::kNone;
    if (workload_.precision == Precision::kFp8 && !peak_ && needs_peak) {
      throw InputError({"", 0, "precision"}, NameOf(workload_.precision),
                       "needs units that compute in 8 bits, and the data sheet of " + device_ +
                           " states no peak of such",
                       "fp32, tf32, fp16, bf16, or a device with fp8, like h100");
    }
  }
  if (workload_.attention == AttentionForm::kFused ||
      workload_.recompute == Recompute::kSelective) {
    const AttentionLayers attention = CountAttentionLayers(workload_);
    attention_layers_ = attention.all;
    fusable_layers_ = attention.fusable;
  }
  forward_flop_ = workload_.forward_flop();
  least_flop_ = LeastForwardFlop(workload_);
  recomputes_nothing_ = workload_.recompute == Recompute::kFull && !HasBlocks(workload_);
  if (cluster_.calibration) {
    calibrated_batches_ = cluster_.calibration->range.BatchesOf(belief_->scope());
    const std::vector<ParameterEstimate>& parameters = cluster_.calibration->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == kComputeSlowdownSpec.name) slowdowns_.push_back(i);
    }
  }
  Activations activations(KeptActivations(workload_));
  if (device_memory_ && cluster_.calibration) {
    const CalibratedRange& range = cluster_.calibration->range;
    for (const TrainingThatRan& one : TrainingsThatRan(range, workload_, device_)) {
      const bool in_the_same_way = one.scope == belief_->scope();
      LearnFromRuns(in_the_same_way ? workload_ : one.trained, in_the_same_way,
                    one.batches.WhatRan(), *device_memory_, &activations);
    }
  }
  const std::string own = WorkloadScope(workload_, device_);
  const bool has_own = cluster_.out_of_memory.contains(own);
  const auto seen = cluster_.out_of_memory.find(has_own ? own : belief_->scope());
  if (seen != cluster_.out_of_memory.end()) activations.least = seen->second;
  activations_ = std::make_shared<const Activations>(activations);
  if (compute_source_ != ComputeSource::kProfile) profile_.reset();
  if (workload_.communication_only) compute_source_ = ComputeSource::kNone;
  CheckDeviceIsKnown(*belief_, workload_, cluster_, facts, device_);
}

Predictor::Active Predictor::ActiveParameters(const Plan& plan) const {
  const Belief::AtHosts hosts = belief_->SlowestOf(plan);
  const LinkFacts of_servers = plan.has_server_link() ? ServerLinkOf(cluster_, plan) : LinkFacts();
  return {belief_->ParametersAt(hosts), hosts,
          belief_->StatedShareLogSd(plan.link, of_servers, hosts.link)};
}

const Recomputation& Predictor::recomputation() const { return counts_->recomputation; }

StepFacts Predictor::Facts(const Plan& plan, const Active& active, std::string* why) const {
  const bool has_default =
      !plan.bucket && !GathersUnits(plan.shard) && !plan.compress.is_factored();
  auto buckets = UsesServers(plan.strategy) ? server_buckets_ : default_buckets_;
  if (!has_default) {
    buckets = std::make_shared<const std::vector<Bucket>>(gradients_->MessagesOf(plan));
  }
  StepFacts facts =
      MakeStepFacts(cluster_, plan, workload_, buckets, memory_bandwidth_, counts_.get());
  if (profile_) {
    facts.compute_shape = profile_->ShapeAt(plan.local_batch);
    if (auto& share = facts.slow_share) share->compute_shape = profile_->ShapeAt(share->batch);
  }
  // Which algorithm is the fastest does not depend on samples that hold up all of them.
  const std::optional<SampleRate<>> input_rate = std::exchange(facts.input_rate, std::nullopt);
  if (TraitsOf(plan.strategy).to_be_chosen) {
    const AllreduceChoice<double> choice = EvaluateChoice(facts, active.values.cluster);
    // The best for a bucket of mean size is nearly always the best for the step, which decides.
    facts.strategy = choice.best.algorithm;
    Duration<> shortest = active.Evaluate(facts).total();
    for (const Strategy other : AllreduceAlgorithms(internal::ShapeOf(facts))) {
      StepFacts tried = facts;
      tried.strategy = other;
      const Duration<> step = active.Evaluate(tried).total();
      if (step < shortest) {
        facts.strategy = other;
        shortest = step;
      }
    }
    if (why != nullptr && facts.strategy == choice.best.algorithm) {
      *why = WhyChosen(choice, facts.gradient / static_cast<double>(facts.buckets->size()));
    } else if (why != nullptr) {
      *why = fmt::format(
          "{} makes the shortest step, {:.4g} ms, as its buckets follow each other; for one bucket "
          "alone {} would be faster.",
          StrategyName(facts.strategy), shortest.in(kMilliseconds),
          StrategyName(choice.best.algorithm));
    }
  }
  if (why != nullptr && plan.strategy == Strategy::kAllreduce &&
      facts.strategy != Strategy::kAllreduce) {
    *why = fmt::format(
        "Between two nodes whose devices have links of their own, NCCL takes the tree: a card "
        "carries the gradients once each way, around a ring {:.2f} times.",
        2 - 2.0 / facts.workers);
  }
  facts.input_rate = input_rate;
  return facts;
}

void Predictor::CheckPlan(const Plan& plan) const {
  stepcast::CheckPlan(plan);
  if (plan.bucket) CheckBucketCap(workload_, *plan.bucket);
}

StepFacts Predictor::Facts(const Plan& plan) const {
  CheckPlan(plan);
  return Facts(plan, ActiveParameters(plan));
}

namespace {

// Nothing tells better than a batch that did not fit when it was measured.
MemoryNeed AsMeasured(MemoryNeed need, const std::optional<ProfiledSum>& profiled) {
  if (profiled && profiled->out_of_memory) need.verdict = MemoryVerdict::kOutOfMemory;
  return need;
}

}  // namespace

SampleRate<> Predictor::InputNeeded(const Plan& plan) const {
  CheckPlan(plan);
  const Active active = ActiveParameters(plan);
  StepFacts supplied = Facts(plan, active);
  supplied.input_rate = std::nullopt;
  StepTerms<double> terms;
  const StepTime<double> step =
      EvaluateStep(supplied, active.values.cluster, active.values.workload, &terms);
  return internal::SamplesOfNode(supplied) / WaitingPaces(terms.async).Shortest(step.total());
}

MemoryNeed Predictor::Memory(const Plan& plan) const {
  std::optional<ProfiledSum> profiled;
  if (profile_) profiled = profile_->Sum(plan.largest_batch());
  return AsMeasured(CountMemory(workload_, *activations_, plan, device_memory_), profiled);
}

StepTime<double> Predictor::PredictStep(const Plan& plan) const {
  CheckPlan(plan);
  const Active active = ActiveParameters(plan);
  return active.Evaluate(Facts(plan, active));
}

StepTerms<double> Predictor::Terms(const Plan& plan, Strategy* algorithm) const {
  CheckPlan(plan);
  const Active active = ActiveParameters(plan);
  const StepFacts facts = Facts(plan, active);
  if (algorithm != nullptr) *algorithm = facts.strategy;
  StepTerms<double> terms;
  EvaluateStep(facts, active.values.cluster, active.values.workload, &terms);
  return terms;
}

double Predictor::Active::LogSd(const PlanGradient& gradient, const Belief& belief) const {
  // A plan depends on half of the columns, or less.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): as many are set as are read
  std::array<double, kPlanColumns> slopes;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): as many are set as are read
  std::array<Eigen::Index, kPlanColumns> positions;
  std::size_t count = 0;
  for (int i = 0; i < kShareColumn; ++i) {
    const double slope = gradient[static_cast<std::size_t>(i)];
    if (slope == 0) continue;
    slopes[count] = slope;
    positions[count++] = hosts.Position(i);
  }
  const double by_share = gradient[kShareColumn] * share_log_sd;
  double variance = by_share * by_share;
  for (std::size_t i = 0; i < count; ++i) {
    const double* const covariances = belief.log_covariance().col(positions[i]).data();
    double others = 0;
    for (std::size_t j = 0; j < i; ++j) others += slopes[j] * covariances[positions[j]];
    variance += slopes[i] * (slopes[i] * covariances[positions[i]] + 2 * others);
  }
  return std::sqrt(std::max(0.0, variance));
}

void Predictor::SetInterval(const Plan& plan, const StepFacts& facts, const PlanAnswer& answer,
                            const Active& active, Prediction* prediction) const {
  const StepTime<double>& step = prediction->breakdown;
  const Duration<> shown = step.exposed() + step.straggler_wait;
  // How much worse the profile knows this batch than the one that the parameters stand for.
  const double profile_log_sd = profile_ ? profile_->ExtraLogSd(answer.batch) : 0;
  static const CalibratedRange kNothing;
  const CalibratedRange& range = cluster_.calibration ? cluster_.calibration->range : kNothing;
  const OtherJobs other_jobs(range, calibrated_batches_);
  const auto by_parameters = [&](const PlanGradient& gradient) {
    const double log_sd = active.LogSd(gradient, *belief_);
    return log_sd * log_sd + JobVariance(facts, gradient, other_jobs);
  };
  const double variance = by_parameters(answer.log_step_gradient);
  prediction->parameter_log_sd = std::sqrt(variance);
  prediction->scatter_log_sd = belief_->ScatterOf(facts, shown / prediction->step_time);
  prediction->discrepancy_log_sd =
      std::hypot(profile_log_sd, Discrepancy(plan, range, calibrated_batches_));
  prediction->log_sd = std::hypot(prediction->parameter_log_sd, prediction->scatter_log_sd,
                                  prediction->discrepancy_log_sd);
  const AlternativeReaches alternatives = ReachesOf(*belief_, active.hosts, facts, step);
  const auto factor = [&](double parameter_variance, double scatter_log_sd) {
    return NinetyPercentFactor(
        std::hypot(std::sqrt(parameter_variance), scatter_log_sd, prediction->discrepancy_log_sd));
  };
  const double at_ends = VarianceOfSlowEnds(*belief_, active.hosts, facts, answer.log_step_gradient,
                                            prediction->step_time);
  prediction->high =
      prediction->step_time *
      factor(alternatives.step.VarianceAbove(variance + at_ends), prediction->scatter_log_sd);
  // However little is known of the network, no step is shorter than its compute, nor that than at
  // the device's peak.
  const double of_compute =
      alternatives.compute.VarianceBelow(by_parameters(answer.log_compute_gradient));
  const double below = alternatives.step.VarianceBelow(variance);
  prediction->low = Max(Max(prediction->step_time / factor(below, prediction->scatter_log_sd),
                            step.compute() / factor(of_compute, belief_->ScatterAt(0))),
                        belief_->LeastCompute(facts));
}

Prediction Predictor::Predict(const Plan& plan) const {
  CheckPlan(plan);
  Prediction prediction;
  const Active active = ActiveParameters(plan);
  StepFacts supplied = Facts(plan, active, &prediction.algorithm_reason);
  // What is not certain of a step is not of the samples that it may wait for: they come last.
  const std::optional<SampleRate<>> input_rate = std::exchange(supplied.input_rate, std::nullopt);
  const PlanModel model(std::move(supplied));
  const StepFacts& facts = model.facts();
  prediction.algorithm = facts.strategy == Strategy::kAllreduce ? Strategy::kRing : facts.strategy;
  const auto& [cluster, workload] = active.values;
  const PlanAnswer answer = model.Answer(active.values, Derivatives::kAll);
  prediction.breakdown = answer.step;
  // Servers have more to tell than the times of a step, and so has a link with other traffic.
  const bool has_servers = UsesServers(facts.strategy);
  const DataRate<> background = facts.link.background.value_or(DataRate<>());
  std::optional<StepTerms<double>> terms;
  if (has_servers || background.si() > 0) {
    prediction.breakdown = EvaluateStep(facts, cluster, workload, &terms.emplace());
  }
  prediction.step_time = prediction.breakdown.total();

  SetInterval(plan, facts, answer, active, &prediction);
  // Asynchronous workers wait for nobody, but for the share of their cycles that a staleness bound
  // makes synchronous steps of; the mean of both is that of the step.
  const double together = TraitsOf(facts.strategy).synchronous ? 1
                          : has_servers                        ? terms->async.together
                                                               : 0;
  const bool asynchronous = has_servers && TraitsOf(facts.strategy).asynchronous();
  std::optional<StepFacts> with_input;
  if (input_rate) with_input.emplace(facts).input_rate = input_rate;
  const Duration<> arrival = with_input ? internal::ArrivalOf(*with_input) : Duration<>();
  SetQuantiles(facts, answer.micro * workload.straggler_spread(), together,
               asynchronous ? &terms->async : nullptr, arrival, &prediction);
  if (with_input) {
    const WaitingPaces paces = asynchronous ? WaitingPaces(terms->async) : WaitingPaces();
    // Servers are less busy where workers wait.
    const StepTime<double> step =
        EvaluateStep(*with_input, cluster, workload, terms ? &*terms : nullptr);
    WaitForInput(arrival, paces, step, &prediction);
  }
  prediction.throughput = CountedSamples(plan) / prediction.step_time;
  prediction.work = WorkIn(plan, prediction.throughput);
  prediction.traffic = facts.strategy == plan.strategy
                           ? CountTraffic(plan, facts.gradient)
                           : CountTraffic(ResolvedPlan(plan, facts), facts.gradient);
  prediction.buckets = static_cast<int>(facts.buckets->size());
  std::optional<ProfiledSum> profiled;
  if (profile_) profiled = profile_->Sum(plan.largest_batch());
  prediction.memory =
      AsMeasured(CountMemory(workload_, *activations_, plan, device_memory_), profiled);
  prediction.compute_source = compute_source_;
  prediction.host_leads_out = HostLeadsOut(plan);
  if (has_servers && !internal::Alone(facts)) prediction.server_times = terms->server_times;
  if (TraitsOf(facts.strategy).has_phases()) {
    prediction.server_phases = EvaluateServerPhases(facts, cluster, workload);
  }
  if (asynchronous) prediction.async_servers = terms->async;  // less busy where samples are late
  AddFlags(plan, facts, answer, profiled, &prediction);
  if (internal::LeavesNode(facts) && background.si() > 0 && TraitsOf(facts.strategy).exchanges) {
    const DataRate<> line = facts.link.bandwidth.value_or(cluster.node_link());
    const DataRate<> taken = terms->node_path.path.taken / kPayloadShare;
    if (taken < background * (1 - 1e-9)) {
      prediction.flags.push_back(
          fmt::format("other traffic of {:.3g} Gbit/s asks for more than {} on a link of {:.3g} "
                      "Gbit/s: taken as {:.3g}; what gives no way may have more, so state the "
                      "bandwidth that it leaves",
                      background.in(kGigabitsPerSecond),
                      background > line ? "there is" : "it gets beside an exchange",
                      line.in(kGigabitsPerSecond), taken.in(kGigabitsPerSecond)));
    }
  }
  return prediction;
}

namespace {

// When samples arrive, and how that scatters; none where they are always there.
struct Arrivals {
  Duration<> mean;
  double log_sd = 0;

  double ShareBefore(Duration<> time) const {
    return mean.si() > 0 ? ShareOfStepsBefore(time, mean, {}, log_sd) : 1;
  }
  Duration<> At(double q) const {
    return mean.si() > 0 ? StepQuantile(mean, Duration<>(), log_sd, {}, q) : Duration<>();
  }
};

// The quantile q of the cycle that ends in an update, be it a fast worker's or a slow one's. Each
// kind scatters about its own mean as StepQuantiles says of the mean of all, and waits by itself
// for its samples: of two times the quantile of the longer is the larger quantile.
Duration<> QuantileOfEither(Duration<> mean, Duration<> spread, double log_sd,
                            const AsyncServers<double>& servers, const Arrivals& arrivals,
                            double q) {
  const double fast = servers.fast_cycle / servers.cycle;
  const double slow = servers.slow_cycle / servers.cycle;
  const double slow_share = WaitingPaces(servers).SlowShare(mean, arrivals.mean);
  const auto share_before = [&](Duration<> time) {
    const double arrived = arrivals.ShareBefore(time);
    const auto of = [&](double pace) {
      return std::min(arrived, ShareOfStepsBefore(time / pace, mean, spread, log_sd));
    };
    return (1 - slow_share) * of(fast) + slow_share * of(slow);
  };
  const Duration<> at = StepQuantile(mean, spread, log_sd, {}, q);
  Duration<> low = at * fast;
  Duration<> high = Max(at * slow, arrivals.At(q));
  constexpr int kHalvings = 40;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const Duration<> middle = (low + high) * 0.5;
    (share_before(middle) < q ? low : high) = middle;
  }
  return (low + high) * 0.5;
}

}  // namespace

void Predictor::SetQuantiles(const StepFacts& facts, Duration<> spread_of_micro, double together,
                             const AsyncServers<double>* servers, Duration<> arrival,
                             Prediction* prediction) const {
  const Duration<> spread = spread_of_micro * internal::SpreadOfStep(facts);
  const Duration<> without_wait = prediction->step_time - prediction->breakdown.straggler_wait;
  const double exposed = prediction->breakdown.exposed() / prediction->step_time;
  const double log_sd = std::hypot(prediction->scatter_log_sd, belief_->JitterAt(exposed));
  const Arrivals arrivals{arrival, std::hypot(belief_->ScatterAt(0), belief_->JitterAt(0))};
  if (servers != nullptr && servers->slow_updates > 0) {
    const auto at = [&](double q) {
      return QuantileOfEither(without_wait, spread, log_sd, *servers, arrivals, q);
    };
    prediction->p50 = at(0.5);
    prediction->p95 = at(0.95);
    prediction->p99 = at(0.99);
    return;
  }
  const auto add = [&](double share, const StepScatter& scatter) {
    if (share == 0) return;
    const StepQuantiles step(without_wait, spread, log_sd, scatter);
    prediction->p50 += step.median() * share;
    prediction->p95 += step.At(0.95) * share;
    prediction->p99 += step.At(0.99) * share;
  };
  add(1 - together, {});
  add(together, {Spread::kNormal, facts.workers, facts.backup_workers});
  prediction->p50 = Max(prediction->p50, arrivals.At(0.5));
  prediction->p95 = Max(prediction->p95, arrivals.At(0.95));
  prediction->p99 = Max(prediction->p99, arrivals.At(0.99));
}

void Predictor::WaitForInput(Duration<> arrival, const WaitingPaces& paces,
                             const StepTime<double>& step, Prediction* prediction) const {
  const double scatter = belief_->ScatterAt(0);
  const double log_sd = prediction->log_sd;
  LengthenBy(arrival, paces, scatter, prediction);
  prediction->breakdown = step;
  prediction->step_time = step.total();
  if (log_sd > 0) {
    const double share = prediction->log_sd / log_sd;
    prediction->parameter_log_sd *= share;
    prediction->scatter_log_sd *= share;
    prediction->discrepancy_log_sd *= share;
  }
}

namespace {

// Those of the workers that take the most, and the fewest where that is less.
std::vector<int> DistinctBatches(const Plan& plan) {
  std::vector<int> batches = {plan.largest_batch()};
  if (plan.smallest_batch() < batches.front()) batches.push_back(plan.smallest_batch());
  return batches;
}

}  // namespace

void Predictor::AddProfileFlags(const Plan& plan, const ProfiledSum& sum,
                                Prediction* prediction) const {
  const Duration<> device = sum.forward + sum.backward;
  std::vector<std::string>& flags = prediction->flags;
  const auto percent = [&](Duration<> part) { return 100 * (part / device); };
  if (sum.out_of_memory) {
    flags.push_back(
        fmt::format("out of memory: an operation of {} did not fit {} at local batch "
                    "{} or less when it was measured",
                    workload_.name, device_, plan.largest_batch()));
  }
  constexpr double kWorthSaying = 0.005;
  if (!profile_->carried_from().empty()) {
    flags.push_back(fmt::format(
        "{} was not measured: the times are those of {}, each operation carried over by "
        "the ratio of what the two data sheets let expect, good to a factor of {:.1f}",
        device_, profile_->carried_from(), NinetyPercentFactor(kCarriedLogSd)));
  }
  if (sum.scaled > device * kWorthSaying) {
    flags.push_back(
        fmt::format("{:.0f} % of the compute is of layers that the profile does not have: scaled "
                    "from others by roofline",
                    percent(sum.scaled)));
  }
  for (const int batch : DistinctBatches(plan)) {
    const ProfiledSum its = batch == plan.largest_batch() ? sum : profile_->Sum(batch);
    if (its.beyond <= (its.forward + its.backward) * kWorthSaying) continue;
    flags.push_back(fmt::format("local batch {} is beyond the measured ones, {:g} to {:g}", batch,
                                profile_->batches().front(), profile_->batches().back()));
  }
  if (sum.flagged) {
    flags.emplace_back("the device was busy or throttled while some layers were measured");
  }
}

void Predictor::AddPriorFlag(const Plan& plan, const PlanAnswer& answer,
                             Prediction* prediction) const {
  // Per cent by which the step shortens with one per cent more of the parameter.
  constexpr double kWorthSaying = 0.05;
  struct Pace {
    ClusterParameter parameter;
    const char* runs;
  };
  // What one device has of a node's host, no link between devices tells.
  const char* const of_host =
      prediction->host_leads_out
          ? "with runs between nodes"
          : "with runs on several devices, or state device_link in the cluster file";
  const Pace paces[] = {
      {kFlowBandwidth, "with runs between nodes"},
      {kFlowWindow, "with runs between nodes"},
      {kServerRate, "with runs that use servers"},
      {kHostBandwidth, of_host},
      {kLinkBandwidth, "with runs between nodes, or state it with the plan or in the cluster file"},
  };
  const auto by = [&](int column) {
    return answer.log_step_gradient[static_cast<std::size_t>(column)];
  };
  // What the plan or the cluster's file states sets the pace where it does so more than any other.
  double most = by(kShareColumn);
  const Pace* pace = nullptr;
  for (const Pace& one : paces) {
    const bool is_link = one.parameter == kLinkBandwidth;
    const double elasticity = by(one.parameter) + (is_link ? by(kLinkColumn) : 0.0);
    if (elasticity >= most) continue;
    most = elasticity;
    const bool stated = is_link ? plan.link.bandwidth || cluster_.link.bandwidth
                                : one.parameter == kHostBandwidth && cluster_.device_link.bandwidth;
    pace = stated ? nullptr : &one;
  }
  if (pace == nullptr || most > -kWorthSaying) return;
  if (prediction->breakdown.input_wait.si() > 0) return;
  const Origin origin = belief_->origin(pace->parameter);
  if (origin != Origin::kPrior && origin != Origin::kFittedPrior) return;
  const ParameterSpec& spec = belief_->SpecOf(pace->parameter);
  const double log_sd = std::sqrt(belief_->log_covariance()(pace->parameter, pace->parameter));
  const bool leads_out = pace->parameter == kHostBandwidth && prediction->host_leads_out;
  prediction->flags.push_back(
      fmt::format("{} sets the pace of the exchange, a prior that nobody measured here: {:.3g} {} "
                  "assumed{}, known to a factor of {:.2g}; calibrate {}, or use calibrate --fix or "
                  "--prior",
                  spec.name, std::exp(belief_->log_value(pace->parameter)) / spec.si_per_unit,
                  spec.unit, leads_out ? " from a device to its network card" : "",
                  NinetyPercentFactor(log_sd), pace->runs));
  // Whoever names a device and no cluster, which is as many nodes as anybody asks for, may mean one
  // machine.
  const bool is_imagined = cluster_.nodes == kMostCount && cluster_.devices_per_node == 1;
  const bool of_network = pace->parameter != kServerRate && pace->parameter != kHostBandwidth;
  const bool all_alone = plan.workers() > 1 && plan.nodes() == plan.workers();
  if (of_network && all_alone && !plan.link.bandwidth && is_imagined) {
    prediction->flags.push_back(
        fmt::format("{} workers without a cluster are {} nodes of one device each; devices of one "
                    "node are --placement {}",
                    plan.workers(), plan.nodes(), plan.workers()));
  }
}

// Steps that nobody can have measured of this work on this device.
void Predictor::AddPeakFlag(Prediction* prediction) const {
  const std::optional<ModelWork>& work = prediction->work;
  const Duration<> compute = prediction->breakdown.compute();
  if (!work || !work->of_peak || !(compute.si() > 0)) return;
  if (compute_source_ == ComputeSource::kPrior) return;  // which knows nothing of the device
  const double of_peak =
      *work->of_peak * (least_flop_ / forward_flop_) * (prediction->step_time / compute);
  if (of_peak <= 1) return;
  prediction->flags.push_back(fmt::format(
      "{} computes {:.2g} times as fast as the peak of {} allows in {}: is the precision, the size "
      "of its inputs or the device another than stated?",
      workload_.name, of_peak, device_, NameOf(workload_.precision)));
}

// Where the compute of a workload comes from that was not measured on this device.
void Predictor::AddComputeSourceFlags(const Plan& plan, const PlanAnswer& answer,
                                      std::vector<std::string>* flags) const {
  if (compute_source_ == ComputeSource::kFromDevice) {
    flags->push_back(
        fmt::format("{} was not measured on {}: compute is forecast from the data sheet, at the "
                    "speed that other workloads reach there",
                    workload_.name, device_));
  }
  if (compute_source_ == ComputeSource::kFromOtherDevice) {
    flags->push_back(
        fmt::format("{} was not measured on {}: compute is that on another device, scaled by the "
                    "data sheets of the two",
                    workload_.name, device_));
  }
  if (compute_source_ == ComputeSource::kPrior) {
    const char* const why = workload_.layers.empty()
                                ? "it has no layers to count work from"
                                : "no data sheet with fp32 and memory_bandwidth is known of it";
    flags->push_back(
        fmt::format("{} was not measured on {}, and {}: compute is a prior, good to a factor of "
                    "{:.0f}; one measured step of it tells more",
                    workload_.name, device_, why,
                    NinetyPercentFactor(kWorkloadParameterSpecs[kSampleTime].prior_log_sd)));
  }
  if (compute_source_ == ComputeSource::kFitted && workload_.layers.empty() &&
      !workload_.communication_only) {
    // Steps of many devices may tell next to nothing of what each computes.
    constexpr double kWorthSayingFactor = 2;
    const double log_sd = ActiveParameters(plan).LogSd(answer.log_compute_gradient, *belief_);
    if (std::exp(log_sd) > kWorthSayingFactor) {
      flags->push_back(fmt::format(
          "what was measured of {} on {} tells little of its compute, and it has no layers to "
          "count work from: compute is in the main a prior, good to a factor of {:.0f}; a step of "
          "one device tells more",
          workload_.name, device_, NinetyPercentFactor(log_sd)));
    }
  }
  if (compute_source_ == ComputeSource::kDataSheet) {
    flags->push_back(fmt::format(
        "{} was not measured on {}: compute is forecast from the data sheet, operation by "
        "operation, good to a factor of {:.1f}",
        workload_.name, device_, NinetyPercentFactor(kSheetTimeLogSd)));
  }
}

void Predictor::AddRangeFlags(const Plan& plan, bool communicates,
                              std::vector<std::string>* flags) const {
  if (!cluster_.calibration) return;
  const CalibratedRange& range = cluster_.calibration->range;
  const auto beyond = [&](int value, int most, const char* what) {
    if (value > most) {
      flags->push_back(fmt::format(FMT_COMPILE("outside the calibrated range: {} {}, fitted to {}"),
                                   value, what, most));
    }
  };
  beyond(plan.workers(), range.max_workers, "workers");
  beyond(plan.nodes(), range.max_nodes, "nodes");
  beyond(DevicesOnFullestNode(plan.placement), range.max_devices_per_node, "devices per node");
  if (const auto& rates = range.bandwidth; rates && communicates) {
    const auto gigabits = [](DataRate<> rate) { return rate.in(kGigabitsPerSecond); };
    const std::string seen =
        rates->min == rates->max
            ? fmt::format("at {:.3g} only", gigabits(rates->min))
            : fmt::format("from {:.3g} to {:.3g}", gigabits(rates->min), gigabits(rates->max));
    for (const auto& [rate, whose] : {std::pair(plan.link.bandwidth, "a link"),
                                      std::pair(plan.server_link.bandwidth, "a server link")}) {
      if (!rate || (rates->min <= *rate && *rate <= rates->max)) continue;
      flags->push_back(fmt::format("outside the calibrated range: {} of {:.3g} Gbit/s, fitted {}",
                                   whose, gigabits(*rate), seen));
    }
  }
  for (const int batch : DistinctBatches(plan)) {
    const auto& batches = calibrated_batches_;
    if (!batches || (batches->min <= batch && batch <= batches->max)) continue;
    const std::string seen = batches->min == batches->max
                                 ? fmt::format("at {} only", batches->min)
                                 : fmt::format("from {} to {}", batches->min, batches->max);
    flags->push_back(
        fmt::format("outside the calibrated range: local batch {}, fitted {}", batch, seen));
  }
}

// More than the cluster has, or less than what is shared out.
void Predictor::AddSizeFlags(const Plan& plan, std::vector<std::string>* flags) const {
  if (plan.nodes() > cluster_.nodes) {
    flags->push_back(fmt::format("the plan uses {} nodes, {} has {}", plan.nodes(), cluster_.name,
                                 cluster_.nodes));
  }
  if (plan.shard_on_nodes() == Shard::kHybrid && DevicesOnFullestNode(plan.placement) == 1) {
    flags->push_back("nodes of one device share nothing out within them: shard hybrid is as none");
  }
  if (DevicesOnFullestNode(plan.placement) > cluster_.devices_per_node) {
    flags->push_back(fmt::format("the plan uses {} devices on a node, {} has {}",
                                 DevicesOnFullestNode(plan.placement), cluster_.name,
                                 cluster_.devices_per_node));
  }
}

// Links of hosts that the exchange may go over and that the plan does not tell.
void Predictor::AddHostLinkFlags(const Plan& plan, std::vector<std::string>* flags) const {
  if (plan.link.bandwidth || belief_->host_links().empty()) return;
  if (plan.hosts.empty()) {
    const auto log_rate = [&](int position) { return belief_->log_value(position); };
    const auto in_gbit = [&](int position) {
      return BytesPerSecond(std::exp(log_rate(position))).in(kGigabitsPerSecond);
    };
    const auto& slowest = *std::min_element(
        belief_->host_links().begin(), belief_->host_links().end(),
        [&](const auto& a, const auto& b) { return log_rate(a.second) < log_rate(b.second); });
    std::string flag =
        fmt::format("hosts have links of their own and none is named: {:.3g} Gbit/s assumed",
                    in_gbit(kLinkBandwidth));
    if (log_rate(slowest.second) < log_rate(kLinkBandwidth)) {
      flag += fmt::format(", where that of {} has {:.3g}", slowest.first, in_gbit(slowest.second));
    }
    flags->push_back(std::move(flag));
  }
  for (const std::string& host :
       NotAmong(plan.hosts, belief_->host_links(),
                [](const auto& known) -> std::string_view { return known.first; })) {
    flags->push_back(fmt::format("no run has shown the link of host {}", host));
  }
}

// What packet loss leaves uncertain of an exchange between nodes.
void Predictor::AddLossFlags(const Plan& plan, const StepFacts& facts, Limiter limiter,
                             std::vector<std::string>* flags) const {
  const double loss = std::max(facts.link.loss.value_or(0), facts.server_link.loss.value_or(0));
  const bool rdma = internal::ExchangeLink(facts)->rdma();
  const auto of_tcp = [&](bool stated, const char* what) {
    if (!rdma || !stated) return;
    flags->push_back(fmt::format("{} is a matter of TCP: over RDMA it changes nothing", what));
  };
  of_tcp(plan.link.congestion_control.has_value(), "congestion control");
  of_tcp(plan.link.loss_burst.has_value(), "how long losses last together");
  const bool bbr = !rdma && facts.link.congestion_control == CongestionControl::kBbr;
  if (bbr && loss >= kCertainBbrLoss) {
    flags->push_back(fmt::format("BBR with a loss of {:.3g}: its rate is not certain beyond {:g} %",
                                 loss, 100 * kCertainBbrLoss));
  }
  if (loss >= kCertainLoss && limiter == Limiter::kLoss) {
    flags->push_back(fmt::format(
        "packet loss of {:.3g} sets the pace: from {:.2g} on timeouts multiply, and steps may "
        "take up to three times as long",
        loss, kCertainLoss));
  }
  if (loss > 0 && internal::LeavesNode(facts) && !Overlay(facts.link, facts.server_link).rtt) {
    flags->push_back(fmt::format("loss without a round trip: {:.3g} us assumed",
                                 2e6 * std::exp(belief_->log_value(internal::LatencyParameter(
                                           *internal::ExchangeLink(facts))))));
  }
}

namespace {

// What hangs on the transport of a fast link, where nobody says which it is.
void AddTransportFlag(const Predictor& predictor, const Plan& plan, const StepFacts& facts,
                      Prediction* prediction) {
  constexpr double kWorthSaying = 1.5;
  const DataRate<> slowest = GigabitsPerSecond(25.0);  // that network cards with RDMA commonly have
  const LinkFacts& link = facts.link;
  const Origin origin = predictor.belief().origin(kFlowBandwidth);
  const bool is_told = link.transport || link.congestion_control ||
                       (origin != Origin::kPrior && origin != Origin::kFittedPrior);
  if (prediction->breakdown.limiter != Limiter::kFlow || is_told || !link.bandwidth ||
      *link.bandwidth < slowest) {
    return;
  }
  Plan remote = plan;
  remote.link.transport = Transport::kRdma;
  const Duration<> step = predictor.PredictStep(remote).total();
  if (prediction->step_time < step * kWorthSaying) return;
  prediction->flags.push_back(fmt::format(
      "nobody says how nodes are connected: TCP is assumed; over RDMA (InfiniBand, RoCE: "
      "--transport rdma) a step of {} workers takes {:.3g} s, not {:.3g} s",
      plan.workers(), step.in(kSeconds), prediction->step_time.in(kSeconds)));
}

// What hangs on the width of what workers with shares of a model in 16 bits exchange, where the
// plan says nothing of it.
void AddWidthFlag(const Predictor& predictor, const Plan& plan, const StepFacts& facts,
                  Prediction* prediction) {
  constexpr double kWorthSaying = 1.05;
  if (facts.shard == Shard::kNone || !HasSixteenBits(predictor.workload().precision) ||
      plan.bytes_per_parameter != Plan().bytes_per_parameter) {
    return;
  }
  Plan narrow = plan;
  narrow.bytes_per_parameter = 2;
  const Duration<> step = predictor.PredictStep(narrow).total();
  if (prediction->step_time < step * kWorthSaying) return;
  prediction->flags.push_back(fmt::format(
      "gradients are taken to be reduced and parameters to be gathered in 4 bytes each; FSDP and "
      "DeepSpeed send both in 16 bits unless told otherwise, and Megatron gathers in them: "
      "--bytes-per-parameter 2 makes a step of {} workers {:.3g} s, not {:.3g} s",
      plan.workers(), step.in(kSeconds), prediction->step_time.in(kSeconds)));
}

}  // namespace

void Predictor::AddFlags(const Plan& plan, const StepFacts& facts, const PlanAnswer& answer,
                         const std::optional<ProfiledSum>& profiled, Prediction* prediction) const {
  std::vector<std::string>& flags = prediction->flags;
  if (const std::optional<std::string> flag = MemoryFlag(prediction->memory)) {
    flags.push_back(*flag);
  }
  AddHostsFlag(plan, prediction);
  if (!cluster_.calibration) {
    flags.emplace_back("cluster not calibrated: network and overlap are priors");
  }
  if (cluster_.calibration && !cluster_.calibration->has_covariance) {
    flags.emplace_back(
        "the calibration has no covariance: its parameters are taken as independent of each other, "
        "and the interval may be too wide or too narrow");
  }
  AddPriorFlag(plan, answer, prediction);
  AddTransportFlag(*this, plan, facts, prediction);
  AddWidthFlag(*this, plan, facts, prediction);
  if (prediction->breakdown.coding.si() > 0 && !plan.compress_rate) {
    flags.emplace_back(
        "encoding and decoding are taken to move bytes as fast as the device's memory does: "
        "kernels take longer, and selecting the largest, or making factors orthogonal, several "
        "times as long; state what was measured with --compress-rate");
  }
  if (profiled) AddProfileFlags(plan, *profiled, prediction);
  AddPeakFlag(prediction);
  AddComputeSourceFlags(plan, answer, &flags);
  AddTrainingFlags(&flags);
  const bool communicates = TraitsOf(plan.strategy).exchanges && CrossesNodes(plan);
  AddRangeFlags(plan, communicates, &flags);
  AddSizeFlags(plan, &flags);
  if (communicates) AddHostLinkFlags(plan, &flags);
  AddComputeFlags(plan, &flags);
  if (!cluster_.hosts.empty()) {
    for (const std::string& host :
         NotAmong(plan.hosts, cluster_.hosts,
                  [](const Host& known) -> std::string_view { return known.name; })) {
      flags.push_back(fmt::format("{} has no host {}", cluster_.name, host));
    }
  }
  if (communicates) AddLossFlags(plan, facts, prediction->breakdown.limiter, &flags);
}

std::optional<std::string> MemoryFlag(const MemoryNeed& memory) {
  if (!memory.exceeds()) return std::nullopt;
  const std::string need = fmt::format("{:.1f} GiB", memory.total.in(kGibibytes));
  const std::string available = fmt::format("{:.1f} GiB", memory.available->in(kGibibytes));
  if (!memory.may_fit()) {
    return fmt::format("out of memory: needs about {}, the device has {}", need, available);
  }
  if (memory.ran_without_copies) {
    return fmt::format(
        "memory is tight: as large a step has run, but without the {:.2g} GiB that an exchange "
        "adds to it; it needs at most about {} so, and the device has {}",
        memory.buckets.in(kGibibytes), need, available);
  }
  return fmt::format(
      "memory is counted as {}, and the device has {}: a fitted run that needs no less has run, "
      "which tells more than the count",
      need, available);
}

std::optional<ModelWork> Predictor::WorkIn(const Plan& plan, SampleRate<> throughput) const {
  constexpr double kPasses = 3;  // backward is two of forward
  if (!(forward_flop_.si() > 0)) return std::nullopt;
  ModelWork work;
  work.rate = WorkRate<>::FromSi(kPasses * forward_flop_.si() * throughput.si() / plan.workers());
  // Slow nodes may be other devices.
  if (peak_ && plan.slow_nodes == 0) work.of_peak = work.rate / *peak_;
  return work;
}

double Prediction::idle_ratio() const { return IdlenessRatio(breakdown.compute(), step_time); }

std::string KindOfFlag(const std::string& flag) {
  std::istringstream words(flag);
  std::string kind;
  for (std::string word; words >> word;) {
    const std::string number = word.substr(0, word.find_last_not_of(",:;") + 1);
    kind += (TextAsNumber<double>(number) ? "0" : word) + " ";
  }
  return kind;
}

void Predictor::AddTrainingFlags(std::vector<std::string>* flags) const {
  if (std::optional<std::string> flag = AsOthersFlag(workload_, cluster_.name)) {
    flags->push_back(*std::move(flag));
  }
  const auto add_attention = [&](const char* said, const char* others) {
    if (fusable_layers_ == 0) {
      flags->push_back(fmt::format(
          "attention of {} is said to be {}, and none of its layers is such attention: nothing "
          "changes",
          workload_.name, said));
    } else if (fusable_layers_ < attention_layers_) {
      flags->push_back(fmt::format(
          "attention of {} is said to be {}, and {} of its {} layers of attention are such: the "
          "others {}",
          workload_.name, said, fusable_layers_, attention_layers_, others));
    }
  };
  if (workload_.attention == AttentionForm::kFused) add_attention("fused", "run one by one");
  if (workload_.recompute == Recompute::kSelective) {
    add_attention("recomputed", "keep what they compute");
  }
  if (recomputes_nothing_) {
    flags->push_back(fmt::format(
        "activations of {} are said to be recomputed, and none of its layers is of a block, like "
        "h.0.mlp of h.0: nothing changes",
        workload_.name));
  }
  if (compute_source_ == ComputeSource::kFromOtherTraining) {
    const Belief::OtherTraining& there = belief_->other_training();
    std::string differing;
    for (const TrainingFact& fact : TrainingFacts()) {
      if (fact.get(there.fitted) == fact.get(workload_)) continue;
      differing += fmt::format("{}{} {}, not {}", differing.empty() ? "" : "; ", fact.key,
                               fact.WordOf(there.fitted), fact.WordOf(workload_));
    }
    flags->push_back(fmt::format(
        "{} was measured on {} with {}: compute is taken from there, {}, good to a factor of "
        "{:.1f}; what was measured of its batches is not, nor of its memory what needed less",
        workload_.name, device_, differing,
        there.by_sheet ? "changed as the data sheet lets expect"
                       : "as it is, for want of a data sheet",
        NinetyPercentFactor(there.log_sd)));
  }
  if (workload_.precision == Precision::kFp32) return;
  const bool from_sheet = compute_source_ == ComputeSource::kDataSheet ||
                          compute_source_ == ComputeSource::kFromDevice ||
                          compute_source_ == ComputeSource::kFromOtherDevice ||
                          compute_source_ == ComputeSource::kFromOtherTraining;
  if (from_sheet && !peak_) {
    flags->push_back(fmt::format("the data sheet of {} states no peak at {}: that of fp32 assumed",
                                 device_, NameOf(workload_.precision)));
  }
}

namespace {

// A plan that names no hosts on all nodes that there are, with the hosts that are known named: it
// has no choice of them. Nodes that nobody knows by name are like most.
std::optional<Plan> OnAllHosts(const Cluster& cluster, const Plan& plan) {
  if (!plan.hosts.empty()) return std::nullopt;
  std::vector<std::string> hosts = HostsOfAllNodes(cluster, plan.nodes());
  if (hosts.empty()) return std::nullopt;
  Plan named = plan;
  named.hosts = std::move(hosts);
  return named;
}

}  // namespace

void Predictor::AddHostsFlag(const Plan& plan, Prediction* prediction) const {
  const std::optional<Plan> named = OnAllHosts(cluster_, plan);
  if (!named) return;
  constexpr double kWorthSaying = 1.01;
  const Duration<> step = PredictStep(*named).total();
  if (step < prediction->step_time * kWorthSaying) return;
  prediction->flags.push_back(fmt::format(
      "the plan takes every node of {} and names none: its slowest host then sets the pace, and "
      "the step is {:.3g} s, not {:.3g} s; name the hosts",
      cluster_.name, step.in(kSeconds), prediction->step_time.in(kSeconds)));
}

void Predictor::AddComputeFlags(const Plan& plan, std::vector<std::string>* flags) const {
  if (slowdowns_.empty() || workload_.communication_only) return;
  const auto computing = plan.hosts_at_own_speed();
  const std::unordered_set<std::string_view> used(computing.begin(), computing.end());
  for (const std::size_t i : slowdowns_) {
    const ParameterEstimate& p = cluster_.calibration->parameters[i];
    const std::vector<std::string> hosts = HostsOfScope(p.scope);
    const bool named = std::any_of(hosts.begin(), hosts.end(),
                                   [&](const std::string& host) { return used.count(host) > 0; });
    if (named) flags->push_back(ComputeText(p));
    if (plan.hosts.empty()) {
      flags->push_back(ComputeText(p) + " and no host is named: the others' pace assumed");
    }
  }
}

std::string Binding::Clause() const {
  std::string clause = sentence.substr(0, sentence.find(':'));
  clause.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(clause.front())));
  return clause;
}

bool HostLeadsOut(const Plan& plan) {
  if (DevicesOnFullestNode(plan.placement) <= 1) return true;
  return UsesServers(plan.strategy) && !plan.server.AddsUpAtHome(plan.nodes());
}

Binding FindBinding(const Prediction& prediction) {
  const StepTime<double>& step = prediction.breakdown;
  const double total = step.total().in(kSeconds);
  // Whatever else of the step were faster, the samples would not be there sooner.
  if (step.input_wait.si() > 0) {
    const double share = step.input_wait.in(kSeconds) / total;
    return {"input", share,
            fmt::format("The arrival of samples binds: {:.0f} % of the step waits for it.",
                        100 * share)};
  }
  struct Part {
    const char* name = "";
    const char* subject = "";
    double seconds = 0;
    const char* verb = "binds";
  };
  const auto transfer = [&]() -> Part {
    const double seconds = step.exposed_transfer.in(kSeconds);
    switch (step.limiter) {
      case Limiter::kFlow:
        return {"flow", "What the flows to one peer carry", seconds};
      case Limiter::kWindow:
        return {"window", "The bytes in flight per round trip", seconds, "bind"};
      case Limiter::kLoss:
        return {"loss", "Packet loss", seconds};
      case Limiter::kServer:
        return {"server", "The processors of the parameter servers", seconds, "bind"};
      case Limiter::kHost:
        return {"host",
                prediction.host_leads_out ? "The way from the device to its network card"
                                          : "The exchange within the node",
                seconds};
      case Limiter::kServerLink:
        return {"server_link", "The links of the parameter servers", seconds, "bind"};
      case Limiter::kCore:
        return {"core", "The uplinks of the switches between the nodes", seconds, "bind"};
      default:
        return {"link", "The network links of the nodes", seconds, "bind"};
    }
  };
  const Part parts[] = {
      {"compute", "Compute", step.compute().in(kSeconds)},
      transfer(),
      {"latency", "Latency (messages and fixed costs)", step.exposed_latency.in(kSeconds)},
      {"stragglers", "Waiting for the slowest worker", step.straggler_wait.in(kSeconds)},
      {"coding", "Encoding and decoding the gradients", step.coding.in(kSeconds)},
  };
  const Part* most =
      std::max_element(std::begin(parts), std::end(parts),
                       [](const Part& a, const Part& b) { return a.seconds < b.seconds; });
  const double share = most->seconds / total;
  return {most->name, share,
          fmt::format("{} {}: {:.0f} % of the step.", most->subject, most->verb, 100 * share)};
}

}  // namespace stepcast
