#include "predictor/cli/measured_step.h"

#include <cctype>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "calibrate/online/online_calibration.h"
#include "data/plan/check.h"
#include "data/plan/run_ranges.h"
#include "data/values/names.h"
#include "data/values/numbers.h"

namespace stepcast::cli {
namespace {

constexpr const char* kStepTexts =
    "a time in s, ms, us, ns, min, h or d, like \"0.43 s\" or \"0.43 s/it\"; steps, like "
    "\"2.3 it/s\" (or steps/s); or samples of all workers, like \"240 samples/s\"";

// The text before the unit, where it ends with one of them; "5 Gbit/s" does not end with "it/s".
std::optional<std::string> Before(std::string_view text, std::initializer_list<const char*> units) {
  for (const std::string_view unit : units) {
    if (!text.ends_with(unit)) continue;
    const std::string_view before = text.substr(0, text.size() - unit.size());
    const bool is_word = unit.front() != '/' && !before.empty() &&
                         std::isalpha(static_cast<unsigned char>(before.back())) != 0;
    if (!is_word) return std::string(before);
  }
  return std::nullopt;
}

}  // namespace

Duration<> ReadStep(const std::string& raw, const InputPlace& place, const Plan& plan) {
  const std::string text(Trim(raw));
  const auto rate = [&](const std::string& number) {
    return ParseNumber(number, place, kThroughputs);
  };
  if (const auto samples = Before(text, {"samples/s"})) {
    return CountedSamples(plan) / (Samples(rate(*samples)) / Seconds(1.0));
  }
  const auto steps = Before(text, {"it/s", "step/s", "steps/s"});
  const auto each = Before(text, {"/it", "/step"});
  if (plan.accumulation_steps > 1 && Before(text, {"it/s", "/it"})) {
    throw InputError(place, raw, "may count micro-steps, of which a step has several",
                     "steps/s or s/step, of whole steps");
  }
  if (steps) return Seconds(1 / rate(*steps));
  try {
    const Duration<> step = ParseDuration(each.value_or(text), place);
    if (step.si() > 0) return step;
  } catch (const OutOfRange&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(place, raw, error.problem(), kStepTexts);
  }
  throw InputError(place, raw, "is no time", kStepTexts);
}

Plan AloneOf(const Plan& plan) {
  Plan alone;
  alone.strategy = Strategy::kNone;
  alone.local_batch = plan.local_batch;
  alone.accumulation_steps = plan.accumulation_steps;
  return alone;
}

void AddKnownOptions(po::options_description* options) {
  options->add_options()("parameters", OptionValue("N"),
                         "of a network that nobody knows by name, in place of --workload")(
      kOneWorker, OptionValue("T"),
      "what a step of one device alone takes at this batch, as measured: \"210 ms\", \"4.8 it/s\"");
}

Cluster WithKnownStep(const Arguments& arguments, const Target& target, const Cluster& cluster) {
  if (!arguments.Has(kOneWorker)) return cluster;
  const InputPlace place = OptionPlace(kOneWorker);
  const std::string text = arguments.Text(kOneWorker);
  if (target.workload.communication_only) {
    throw InputError(place, text, "says nothing of a bare message, of which one device sends none",
                     "a workload that computes");
  }
  if (target.profile) {
    throw InputError(place, text, "says what compute takes, as --profile does", "one of the two");
  }
  const Plan alone = AloneOf(ReadPlan(arguments, target));
  RequireBatch(alone);
  const MeasuredStep step = {alone, ReadStep(text, place, alone)};
  if (!kStepTimes.Holds(step.step_time.in(kSeconds))) {
    throw InputError(place, text, "is no time of a step", kStepTimes.Text() + " s");
  }
  return LearnTogether(cluster, target.workload, target.facts, target.device, {&step, 1});
}

Target ReadKnownTarget(const Arguments& arguments) {
  Target target = ReadTarget(arguments, "", !arguments.Has(kOneWorker));
  target.cluster = WithKnownStep(arguments, target, target.cluster);
  return target;
}

}  // namespace stepcast::cli
