#include "calibrate/online/slow_drift.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "data/record/quantile.h"

namespace stepcast {
namespace {

constexpr double kSlowAlarm = 24;
constexpr double kLeastStepSd = 0.01;
constexpr double kMostCorrelation = 0.9;
constexpr double kErrorsOfShift = 8;  // standard errors of the reference
constexpr double kMostOfAStep = 1.5;
constexpr std::size_t kMostShown = 50;
constexpr double kMostSds = 3;       // that a step counts for
constexpr double kSdOfMad = 1.4826;  // of normal numbers, by their median distance

}  // namespace

void SlowDrift::BeginAnew() {
  reference_.clear();
  latest_.clear();
  sums_ = {};
}

void SlowDrift::TakeReference() {
  constexpr auto kSteps = static_cast<double>(kReference);
  const double middle = MiddleOf(reference_);
  std::vector<double> off;
  for (const double step : reference_) off.push_back(std::abs(step - middle));
  const double most = kMostSds * std::max(kLeastStepSd, kSdOfMad * MiddleOf(off));
  const auto counted = [&](double step, double from) {
    return std::clamp(step - from, -most, most);
  };
  double sum = 0;
  for (const double step : reference_) sum += counted(step, middle);
  centre_ = middle + sum / kSteps;
  double squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < kReference; ++i) {
    const double residual = counted(reference_[i], centre_);
    squares += residual * residual;
    if (i > 0) products += residual * counted(reference_[i - 1], centre_);
  }
  const double own = std::sqrt(squares / (kSteps - 1));
  const double correlation =
      squares > 0 ? std::clamp(products / squares, 0.0, kMostCorrelation) : 0;
  sd_ = std::max(kLeastStepSd, own * std::sqrt((1 + correlation) / (1 - correlation)));
  shift_ = std::max(kLeastShift, kErrorsOfShift * sd_ / std::sqrt(kSteps));
  most_ = std::max(kMostSds * std::max(kLeastStepSd, own), shift_);
}

std::optional<SlowDrift::Change> SlowDrift::Observe(Duration<> step) {
  const double log_step = std::log(step.in(kSeconds));
  if (reference_.size() < kReference) {
    reference_.push_back(log_step);
    if (reference_.size() == kReference) TakeReference();
    return std::nullopt;
  }
  if (latest_.size() == kMostShown) latest_.erase(latest_.begin());
  latest_.push_back(log_step);
  const double residual = std::clamp(log_step - centre_, -most_, most_);
  for (const std::size_t side : {0, 1}) {
    const double shift = side == 0 ? shift_ : -shift_;
    Sum& sum = sums_[side];
    sum.g += std::min(kMostOfAStep, shift * (residual - 0.5 * shift) / (sd_ * sd_));
    sum.steps = sum.g > 0 ? sum.steps + 1 : 0;
    sum.g = std::max(0.0, sum.g);
    if (sum.g <= kSlowAlarm) continue;
    const auto shown = static_cast<std::ptrdiff_t>(std::min(sum.steps, latest_.size()));
    const double now = MiddleOf({latest_.end() - shown, latest_.end()});
    const Change change = {Seconds(std::exp(centre_)), Seconds(std::exp(now))};
    BeginAnew();
    return change;
  }
  return std::nullopt;
}

}  // namespace stepcast
