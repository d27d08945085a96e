#include "predictor/cli/outlook.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/values/numbers.h"
#include "model/exchange/sharding.h"
#include "model/failures/failures.h"
#include "model/spending/spending.h"

namespace stepcast::cli {
namespace {

constexpr double kMostSamples = 1e15;
constexpr double kMostSteps = 1e12;
constexpr long long kMostDataSet = 1'000'000'000'000'000;
// A job that takes so many times its time because of failures is no job.
constexpr double kHopeless = 1000;

// Indexed by AsyncLimiter.
constexpr const char* kAsyncLimiterTexts[] = {
    "compute sets the pace", "workers wait for their own links",
    "workers queue for the servers' links", "workers queue for the servers' processors",
    "workers queue for the servers' updates"};

std::string FormatMoney(double usd) { return FormatNumber(usd) + " USD"; }

// J up to a thousand, kJ up to a kWh.
std::string FormatEnergy(double joule) {
  constexpr double kJoulePerKwh = 3.6e6;
  if (joule < 1e3) return FormatNumber(joule) + " J";
  if (joule < kJoulePerKwh) return FormatNumber(joule * 1e-3) + " kJ";
  return FormatNumber(KilowattHours(joule)) + " kWh";
}

bool HasServers(const Plan& plan) { return UsesServers(plan.strategy); }

bool ServersBind(const Prediction& p) {
  if (p.async_servers) {
    const AsyncLimiter limiter = p.async_servers->limiter;
    return limiter != AsyncLimiter::kCompute && limiter != AsyncLimiter::kWorkerLink;
  }
  return p.breakdown.limiter == Limiter::kServerLink || p.breakdown.limiter == Limiter::kServer;
}

// `at_least`: of a bound from below, in which energy that is one from above is neither.
std::string StretchText(const JobStretch& s, const StepSpending& spending, const char* unit,
                        bool at_least = false) {
  std::string text = at_least ? "at least " : "";
  text += fmt::format("{} {}, {} (90 % interval {} to {})", FormatCount(s.updates), unit,
                      FormatDuration(s.time), FormatDuration(s.low), FormatDuration(s.high));
  if (s.price_usd) text += ", " + FormatMoney(*s.price_usd);
  if (s.energy_j) {
    const char* bound = spending.energy_at_most && !at_least ? "at most " : "";
    text += fmt::format(", {}{}", bound, FormatEnergy(*s.energy_j));
    if (spending.energy_at_most && at_least) text += " with devices busy throughout";
  }
  if (s.time_with_failures && *s.time_with_failures < s.time * kHopeless) {
    text += "; with failures " + FormatDuration(*s.time_with_failures);
    if (s.price_with_failures_usd) text += ", " + FormatMoney(*s.price_with_failures_usd);
  }
  return text;
}

Json StretchJson(const std::optional<JobStretch>& s) {
  if (!s) return nullptr;
  return {{"updates", NumberJson(s->updates)},
          {"samples", CountJson(s->samples.in(kSamples))},
          {"time_s", NumberJson(s->time.in(kSeconds))},
          {"low_s", NumberJson(s->low.in(kSeconds))},
          {"high_s", NumberJson(s->high.in(kSeconds))},
          {"price_usd", NumberJson(s->price_usd)},
          {"energy_j", NumberJson(s->energy_j)},
          {"time_with_failures_s", OptionalJson(s->time_with_failures, kSeconds)},
          {"price_with_failures_usd", NumberJson(s->price_with_failures_usd)}};
}

void AddFailureLines(const FailureOutlook& f, const Plan& plan, NamedLines* lines) {
  const bool async = TraitsOf(plan.strategy).asynchronous();
  std::string text = fmt::format("one in {}", FormatDuration(f.between));
  if (async) {
    text += fmt::format(", of a server's node one in {}", FormatDuration(f.between_restarts));
  }
  lines->emplace_back("failures",
                      text + fmt::format("; save every {} of training (Daly; Young {})",
                                         FormatDuration(f.daly), FormatDuration(f.young)));
  const char* bound = f.at_least ? "at least " : "";
  if (f.slowdown > kHopeless) {
    text = "hardly any work gets done between failures";
  } else {
    text = fmt::format("{}{}: {}{}", bound,
                       f.slowdown < 2 ? FormatPercent(f.slowdown - 1) + " more time"
                                      : FormatFactor(f.slowdown) + " the time",
                       f.at_least ? "at most " : "", FormatThroughput(f.throughput));
  }
  lines->emplace_back("they cost", text);
  const bool shared_out = HasNoReplica(plan.shard_on_nodes()) && plan.workers() > 1;
  text = fmt::format("{} costs all workers {}{}",
                     async        ? "a lost server"
                     : shared_out ? "a lost worker, whose share of the model nobody else has,"
                                  : "a lost chief",
                     bound, FormatDuration(f.chief_loss));
  if (shared_out) text += ": all begin again at the last checkpoint";
  if (f.worker) {
    text +=
        async ? fmt::format(", a lost worker {}{} of its own work ({} of the throughput)", bound,
                            FormatDuration(f.worker->stall), FormatPercent(f.worker->stalled_share))
              : fmt::format(", a lost worker that is replaced in place {}{}", bound,
                            FormatDuration(f.worker->stall));
  }
  lines->emplace_back("", text);
}

Json FailuresJson(const std::optional<FailureOutlook>& f) {
  if (!f) return nullptr;
  Json json = {{"between_failures_s", NumberJson(f->between.in(kSeconds))},
               {"between_restarts_s", NumberJson(f->between_restarts.in(kSeconds))},
               {"young_interval_s", NumberJson(f->young.in(kSeconds))},
               {"daly_interval_s", NumberJson(f->daly.in(kSeconds))},
               {"slowdown", NumberJson(f->slowdown)},
               {"throughput_samples_per_s", NumberJson(f->throughput.in(kSamplesPerSecond))},
               {"chief_loss_s", NumberJson(f->chief_loss.in(kSeconds))},
               {"worker_loss", nullptr},
               {"at_least", f->at_least}};
  if (f->worker) {
    json["worker_loss"] = {{"stall_s", NumberJson(f->worker->stall.in(kSeconds))},
                           {"stalled_share", NumberJson(f->worker->stalled_share)},
                           {"slowdown", NumberJson(f->worker->slowdown)}};
  }
  return json;
}

}  // namespace

void AddLimitOption(po::options_description* options) {
  options->add_options()("time-limit", OptionValue("T"),
                         "time that a step may take, like \"30 min\": exit code 1 where its whole "
                         "90 % interval lies above");
}

void AddNoiseOptions(po::options_description* options) {
  options->add_options()("noise-scale", OptionValue("N"),
                         "gradient noise scale, samples; with --known-batch or --least-steps")(
      "known-batch", OptionValue("N"),
      "global batch for which learning rate and epochs are known: statistical efficiency is "
      "against it; with --noise-scale");
}

void AddJobOptions(po::options_description* options) {
  options->add_options()("data-set", OptionValue("N"),
                         "samples of an epoch: tells its time, price and energy")(
      "least-steps", OptionValue("N"),
      "steps to the target with an endless batch: tells the time to it; with --noise-scale")(
      "node-mtbf", OptionValue("T"),
      "mean time between failures of a node, like \"200 d\"; with --checkpoint-time")(
      "device-mtbf", OptionValue("T"),
      "the same of a device with its process (never fails); with --node-mtbf")(
      "checkpoint-time", OptionValue("T"),
      "time to write a checkpoint, while training stands; with --node-mtbf")(
      "restart-time", OptionValue("T"),
      "time to notice a failure, start again and read the checkpoint; with --node-mtbf");
}

OutlookOptions ReadOutlookOptions(const Arguments& arguments) {
  OutlookOptions options;
  const auto duration = [&](const char* name, std::optional<Duration<>>* value) {
    if (arguments.Has(name)) *value = ParseDuration(arguments.Text(name), OptionPlace(name));
  };
  const auto samples = [&](const char* name, std::optional<SampleCount<>>* value) {
    if (!arguments.Has(name)) return;
    *value = Samples(ParseNumber(arguments.Text(name), OptionPlace(name), 0, kMostSamples));
  };
  duration("time-limit", &options.time_limit);
  duration("node-mtbf", &options.node_mtbf);
  duration("device-mtbf", &options.device_mtbf);
  duration("checkpoint-time", &options.checkpoint_time);
  duration("restart-time", &options.restart_time);
  if (arguments.Has("data-set")) {
    options.data_set = Samples(static_cast<double>(
        ParseLongInteger(arguments.Text("data-set"), OptionPlace("data-set"), 1, kMostDataSet)));
  }
  samples("noise-scale", &options.noise_scale);
  samples("known-batch", &options.known_batch);
  if (arguments.Has("least-steps")) {
    options.least_steps =
        ParseNumber(arguments.Text("least-steps"), OptionPlace("least-steps"), 0, kMostSteps);
  }
  CheckOutlookOptions(options);
  return options;
}

NamedLines StrategyLines(const Prediction& p, const Plan& plan, const Target& target) {
  NamedLines lines;
  if (!p.algorithm_reason.empty()) {
    lines.emplace_back("algorithm",
                       fmt::format("{}. {}", StrategyName(p.algorithm), p.algorithm_reason));
  }
  if (plan.local_steps > 1 && p.traffic.transfers > 0) {
    const Duration<> alone = p.breakdown.compute();
    lines.emplace_back(
        "rounds", fmt::format("{} of {} steps take {}, the one that exchanges {}",
                              plan.local_steps - 1, plan.local_steps, FormatDuration(alone),
                              FormatDuration(alone + (p.step_time - alone) *
                                                         static_cast<double>(plan.local_steps))));
  }
  if (p.server_times) {
    lines.emplace_back("servers", fmt::format("push {}, update {}, pull {} of the whole model",
                                              FormatDuration(p.server_times->push),
                                              FormatDuration(p.server_times->update),
                                              FormatDuration(p.server_times->pull)));
  }
  if (p.server_phases) {
    const PhaseBenefit<double>& phases = *p.server_phases;
    const bool helped = plan.server.multicast || plan.server.in_network_aggregation;
    lines.emplace_back("aggregation", fmt::format("{}{} after the backward pass, distribution {}",
                                                  helped ? "without the network's help " : "",
                                                  FormatDuration(phases.remaining_aggregation),
                                                  FormatDuration(phases.remaining_distribution)));
    const bool crossed = p.traffic.transfers > 0;
    lines.emplace_back(
        "network", !crossed
                       ? "nothing crosses it: neither multicast nor in-network aggregation saves"
                       : fmt::format("multicast saves {}, in-network aggregation {}, both {}",
                                     FormatDuration(phases.multicast_saves),
                                     FormatDuration(phases.in_network_aggregation_saves),
                                     FormatDuration(phases.both_save)));
  }
  if (p.async_servers) {
    const AsyncServers<double>& a = *p.async_servers;
    lines.emplace_back("updates",
                       fmt::format("{}/s of all workers; {}", FormatNumber(a.updates.si()),
                                   kAsyncLimiterTexts[static_cast<int>(a.limiter)]));
    lines.emplace_back(
        "busy", fmt::format("fullest server: link {}, processor {}, update {}; worker's link {}",
                            FormatPercent(a.server_link), FormatPercent(a.server_processor),
                            FormatPercent(a.server_update), FormatPercent(a.worker_link)));
    lines.emplace_back("staleness",
                       fmt::format("{} updates by others, give or take {}",
                                   FormatNumber(a.mean_staleness), FormatNumber(a.staleness_sd)));
    if (a.slow_updates > 0) {
      lines.emplace_back("paces",
                         fmt::format("a worker's cycle is {}, on slow nodes {}; {} of the "
                                     "updates are theirs",
                                     FormatDuration(a.fast_cycle), FormatDuration(a.slow_cycle),
                                     FormatPercent(a.slow_updates)));
    }
  }
  if (HasServers(plan) && plan.servers > 1) {
    const auto share = [&](Sharding by) { return LargestShare(target.workload, plan.servers, by); };
    const LargestShard shard = share(plan.server.sharding);
    const LargestShard balanced = share(Sharding::kTensor);
    // More than what the largest tensor cannot help.
    constexpr double kUneven = 1.5;
    if (shard.share > kUneven * balanced.share) {
      lines.emplace_back(
          "fullest",
          fmt::format("variables in turn put {} of the model on one of {} servers, where the "
                      "largest first (--sharding tensor) leave {}",
                      FormatPercent(shard.share), plan.servers, FormatPercent(balanced.share)));
    } else if (shard.one_tensor && ServersBind(p)) {
      lines.emplace_back("largest",
                         fmt::format("the tensor of {} puts {} of the model on one server: more "
                                     "servers do not help",
                                     shard.layer, FormatPercent(shard.share)));
    }
  }
  return lines;
}

std::string LimitText(const LimitOutlook& limit) {
  // Nothing that rests on a fitted interval is certain.
  constexpr double kAlmost = 0.001;
  const std::string probability = limit.probability < kAlmost ? "under 0.1 %"
                                  : limit.probability > 1 - kAlmost
                                      ? "over 99.9 %"
                                      : FormatPercent(limit.probability);
  return fmt::format("{} within {}: probability {}",
                     limit.finishes ? "finishes" : "does not finish", FormatDuration(limit.limit),
                     probability);
}

std::string NotCountedText(const std::vector<std::string>& costs) {
  return fmt::format("what {} cost in samples is not counted: it is measured, not derived",
                     fmt::join(costs, " and "));
}

NamedLines OutlookLines(const JobOutlook& job, const Plan& plan) {
  NamedLines lines;
  const StepSpending& s = job.spending;
  if (s.price_usd) {
    lines.emplace_back("price",
                       fmt::format("{} a step{}", FormatMoney(*s.price_usd),
                                   s.servers_unpriced ? ", without the servers' nodes" : ""));
  }
  if (s.energy_j) {
    std::string text =
        fmt::format("{}{} a step", s.energy_at_most ? "at most " : "", FormatEnergy(*s.energy_j));
    const char* part = s.energy_of_devices ? "devices alone" : "devices";
    if (s.energy_at_most) {
      text += fmt::format(" ({}, taken as busy throughout at {} W)", part,
                          FormatNumber(s.device_busy_w));
    } else if (s.energy_of_devices) {
      text += " (devices alone)";
    }
    lines.emplace_back("energy", text);
  }
  const bool async = TraitsOf(plan.strategy).asynchronous();
  const char* unit = async ? "updates" : "steps";
  if (job.epoch) lines.emplace_back("epoch", StretchText(*job.epoch, s, unit));
  if (job.efficiency) {
    lines.emplace_back(
        "goodput",
        fmt::format("{}{} (90 % interval {} to {}), at {} statistical efficiency",
                    job.not_counted.empty() ? "" : "at most ", FormatThroughput(*job.goodput),
                    FormatThroughput(*job.goodput_low), FormatThroughput(*job.goodput_high),
                    FormatPercent(*job.efficiency)));
  }
  if (job.target) {
    lines.emplace_back("target", StretchText(*job.target, s, unit, !job.not_counted.empty()));
  }
  if ((job.efficiency || job.target) && !job.not_counted.empty()) {
    lines.emplace_back("", NotCountedText(job.not_counted));
  }
  if (job.failures) AddFailureLines(*job.failures, plan, &lines);
  return lines;
}

void AddLimitJson(const JobOutlook& job, Json* json) {
  if (!job.limit) return;
  (*json)["time_limit_s"] = job.limit->limit.in(kSeconds);
  (*json)["finishes_within_limit"] = job.limit->finishes;
  (*json)["finishes_probability"] = job.limit->probability;
}

void AddJobJson(const JobOutlook& job, Json* json) {
  AddLimitJson(job, json);
  if (!job.epoch && !job.target && !job.efficiency && !job.failures) return;
  (*json)["outlook"] = {
      {"update_batch", CountJson(job.update_batch.in(kSamples))},
      {"update_interval_s", NumberJson(job.update_interval.in(kSeconds))},
      {"statistical_efficiency", NumberJson(job.efficiency)},
      {"goodput_samples_per_s", OptionalJson(job.goodput, kSamplesPerSecond)},
      {"goodput_low_samples_per_s", OptionalJson(job.goodput_low, kSamplesPerSecond)},
      {"goodput_high_samples_per_s", OptionalJson(job.goodput_high, kSamplesPerSecond)},
      {"epoch", StretchJson(job.epoch)},
      {"target", StretchJson(job.target)},
      {"not_counted", job.not_counted},
      {"failures", FailuresJson(job.failures)}};
}

}  // namespace stepcast::cli
