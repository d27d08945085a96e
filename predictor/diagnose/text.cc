#include "predictor/diagnose/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "predictor/report/terminal.h"

namespace stepcast {
namespace internal {

namespace {

// A unit of any kind.
struct SizeUnit {
  double si = 1;
  const char* symbol = "";

  SizeUnit() = default;
  template <class D>
  explicit SizeUnit(const Unit<D>& unit) : si(unit.si), symbol(unit.symbol) {}
};

SizeUnit SizeUnitOf(Cause cause) {
  switch (cause) {
    case Cause::kLink:
    case Cause::kFlow:
      return SizeUnit(kGigabitsPerSecond);
    case Cause::kDeviceLink:
      return SizeUnit(kGigabytesPerSecond);
    case Cause::kLatency:
    case Cause::kBatch:
      return SizeUnit(kMilliseconds);
    case Cause::kInput:
      return SizeUnit(kSamplesPerSecond);
    default:
      return {};
  }
}

}  // namespace

double UnitOf(const Hypothesis& hypothesis) { return SizeUnitOf(hypothesis.cause).si; }
std::string UnitNameOf(const Hypothesis& hypothesis) { return SizeUnitOf(hypothesis.cause).symbol; }

std::string DeviceRateText(DataRate<> rate) {
  return fmt::format("{} {}", FormatNumber(rate.in(kGigabytesPerSecond)),
                     kGigabytesPerSecond.symbol);
}

namespace {

// Where nothing is wrong.
std::string PaceText(const Hypothesis& sized, DataRate<> rate) {
  if (sized.cause == Cause::kNothing) return "";
  if (sized.cause == Cause::kDeviceLink) {
    return fmt::format("what the devices of a host exchange at, {}, sets the pace",
                       DeviceRateText(rate));
  }
  const std::string text = FormatRate(rate);
  return sized.cause == Cause::kFlow
             ? fmt::format("what connections between two nodes carry, {}, sets the pace", text)
             : fmt::format("the links, which behave like ones of {}, set the pace", text);
}

}  // namespace

std::string SizeText(const Hypothesis& hypothesis, const Hypothesis& sized, const CauseSize& size,
                     const Forecaster& model, const Plan& plan, const StepTime<double>& parts) {
  const double si = size.value * UnitOf(sized);
  switch (hypothesis.cause) {
    case Cause::kLink:
      return fmt::format("the links behave like ones of {}, where {} {}",
                         FormatRate(BytesPerSecond(si)), FormatRate(model.StatedRate()),
                         model.knows_rate() ? "are known" : "are taken, as nobody states them");
    case Cause::kFlow:
      return fmt::format("the connections between two nodes carry {} together, whatever the link",
                         FormatRate(BytesPerSecond(si)));
    case Cause::kDeviceLink:
      return fmt::format(
          "the devices of a host exchange at {}, where {} {}", DeviceRateText(BytesPerSecond(si)),
          DeviceRateText(model.DeviceRate()),
          model.knows_device_rate() ? "are known" : "are taken, as nobody states them");
    case Cause::kLatency:
      return fmt::format("messages between nodes wait for a round trip of {}",
                         FormatDuration(Seconds(si)));
    case Cause::kLoss:
      return fmt::format("{} of the packets are lost", FormatLoss(si));
    case Cause::kHost:
      return fmt::format("one {} computes {} times as long as the others",
                         plan.nodes() > 1 ? "host" : "device", FormatNumber(si));
    case Cause::kOverlap:
      return fmt::format("nothing of the exchange hides behind the backward pass: {} show",
                         FormatDuration(parts.exposed()));
    case Cause::kBatch:
      return fmt::format(
          "{} of each micro-step are launches and the like, whatever the batch of {}",
          FormatDuration(Seconds(si)), plan.local_batch);
    case Cause::kInput:
      return fmt::format("{} gets no more than {}",
                         hypothesis.form == kOfAll ? "the whole job"
                         : plan.nodes() > 1        ? "each host"
                                                   : "the host",
                         FormatThroughput(Samples(1.0) / Seconds(1.0) * si));
    case Cause::kServers:
      return hypothesis.form == kOnWorkers ? "the servers share the nodes and links of the workers"
             : hypothesis.form == kOnOne   ? "one server does the work of all"
                                           : "variables are dealt in turn, and the largest decides";
    default:
      return PaceText(sized, BytesPerSecond(si));
  }
}

std::string ValueText(const Measurement& measurement, double value) {
  switch (measurement.what) {
    case Measured::kRate:
      return FormatRate(BytesPerSecond(value));
    case Measured::kLoss:
      return FormatPercent(value);
    default:
      return FormatDuration(Seconds(value));
  }
}

std::string MeasurementText(const Measurement& measurement) {
  const std::string value = ValueText(measurement, measurement.value);
  const Plan& plan = measurement.plan;
  switch (measurement.what) {
    case Measured::kRate:
      return measurement.connections == 1
                 ? fmt::format("the rate of {} of one connection", value)
                 : fmt::format("the rate of {} of {} connections", value, measurement.connections);
    case Measured::kRoundTrip:
      return fmt::format("the round trip of {}", value);
    case Measured::kLoss:
      return fmt::format("the loss of {} of {} packets", value, FormatCount(measurement.packets));
    default:
      if (measurement.exchange_alone) return fmt::format("the exchange of {}", value);
      if (measurement.slowest_of_hosts) {
        return fmt::format("the step of {} of the slowest host alone", value);
      }
      return fmt::format(
          "the step of {} of {}{}", value,
          plan.workers() == 1 ? "one worker" : fmt::format("{} workers", plan.workers()),
          measurement.synthetic_input ? " on samples made up" : "");
  }
}

std::string OverfillText(const Measurement& measurement, DataRate<> links) {
  return fmt::format("{} is more than links of {}, which are stated, carry",
                     MeasurementText(measurement), FormatRate(links));
}

std::string ContradictionText(const std::vector<std::string>& at_odds, std::size_t measured,
                              bool one_is_enough) {
  const std::string all = fmt::format("{}", fmt::join(at_odds, one_is_enough ? " or " : " and "));
  if (!one_is_enough) return fmt::format("{} do not go together", all);
  if (at_odds.size() == 1) return fmt::format("{} is at odds with all else", all);
  if (measured == 2) {
    return fmt::format("{} contradict each other", fmt::join(at_odds, " and "));
  }
  return fmt::format("{} is at odds with the rest", all);
}

namespace {

std::string SureText(double probability) {
  constexpr double kLeastSaid = 1e-3;
  return probability < kLeastSaid ? "under " + FormatPercent(kLeastSaid)
                                  : FormatPercent(probability);
}

// Why the likeliest is not named.
std::string OutweighedText(const Diagnosis& diagnosis) {
  const ExplainedBy& first = diagnosis.causes.front();
  const auto nothing =
      std::find_if(diagnosis.causes.begin(), diagnosis.causes.end(),
                   [](const ExplainedBy& one) { return one.cause == Cause::kNothing; });
  if (nothing == diagnosis.causes.end() || nothing->probability <= first.probability) return "";
  return fmt::format(
      "; that all is well, {}, is less likely than all causes together, and the step is longer "
      "than the 90 % interval of a healthy cluster",
      SureText(nothing->probability));
}

}  // namespace
}  // namespace internal

std::string CauseText(const ExplainedBy& explained, const Diagnosis& diagnosis) {
  if (explained.cause != Cause::kNothing) return explained.size.text;
  if (diagnosis.is_short()) return "no cause makes a step shorter";
  if (explained.step <= diagnosis.high) return "all as the model expects it";
  return "nothing is wrong, and the job is slower than is believed" +
         (explained.size.text.empty() ? "" : ": " + explained.size.text);
}

std::string VerdictOf(const Diagnosis& diagnosis) {
  if (diagnosis.is_only_short()) {
    return fmt::format(
        "the step is shorter than it should be, {} against {} to {}: nothing slows it; look at "
        "what was typed in, or calibrate",
        FormatDuration(diagnosis.measured), FormatDuration(diagnosis.low),
        FormatDuration(diagnosis.high));
  }
  const ExplainedBy& first = diagnosis.causes.front();
  const bool nothing = first.cause == Cause::kNothing;
  const bool likeliest =
      std::all_of(diagnosis.causes.begin(), diagnosis.causes.end(),
                  [&](const ExplainedBy& one) { return one.probability <= first.probability; });
  if (!diagnosis.is_explained() && first.surprise > 0) {
    return fmt::format(
        "no single cause explains it: {}that {}{} gives {}, {} standard deviations of a "
        "step away; {}look for a second one, or for a slip in what was typed in",
        likeliest ? "the likeliest, " : "", nothing ? "nothing is wrong" : first.size.text,
        likeliest ? "," : "", FormatDuration(first.step), FormatNumber(first.surprise),
        diagnosis.contradiction.empty() ? "" : diagnosis.contradiction + ": ");
  }
  if (!diagnosis.at_odds.empty()) {
    return fmt::format("no single cause meets all that was measured: {}; look at what was typed in",
                       diagnosis.contradiction);
  }
  if (!diagnosis.is_explained()) {
    return fmt::format(
        "the step is shorter than all else lets expect, {}, by {} standard deviations of a step: "
        "look at what was typed in",
        FormatDuration(first.step), FormatNumber(-first.surprise));
  }
  const std::string sure = internal::SureText(first.probability);
  if (nothing) {
    const std::string pace = first.size.text.empty() ? "" : ", and " + first.size.text;
    if (diagnosis.is_long()) {
      return fmt::format(
          "{}, though the step is longer than the 90 % interval of a healthy cluster{}",
          likeliest ? fmt::format("that nothing is wrong is likeliest ({} sure)", sure)
                    : "nothing that is likely adds most of what it is too long by",
          pace);
    }
    if (first.probability < 0.5) {
      if (diagnosis.measured <= diagnosis.expected) {
        return fmt::format("nothing slows it: the step is no longer than it should be{}", pace);
      }
      return fmt::format("{}: the step is within the 90 % interval of a healthy cluster{}",
                         likeliest
                             ? fmt::format("that nothing is wrong is likeliest ({} sure)", sure)
                             : "nothing that is likely slows it",
                         pace);
    }
    return fmt::format("nothing is wrong with it ({} sure): the step is as it should be{}", sure,
                       pace);
  }
  return fmt::format("{} ({} sure){}", first.size.text, sure, internal::OutweighedText(diagnosis));
}

}  // namespace stepcast
