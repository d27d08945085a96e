#include "calibrate/profile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/statistics/normal.h"

namespace stepcast {
namespace {

// The root of z^2/2.
constexpr double kRootOfRise = kNinetyFivePercent / 1.4142135623730951;
constexpr double kNothingKnown = 0.98;
constexpr double kGrowth = 1.6;
constexpr double kFarthest = 1.2;
constexpr int kMaxIterations = 30;

}  // namespace

double PriorLogSd(const ParameterLayout& layout, int parameter) {
  const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(parameter)];
  if (p.multiple_of >= 0) return std::hypot(p.prior.log_sd, PriorLogSd(layout, p.multiple_of));
  if (p.relative_to < 0) return p.prior.log_sd;
  const FittedParameter& other = layout.parameters()[static_cast<std::size_t>(p.relative_to)];
  return other.fixed ? p.prior.log_sd : std::hypot(p.prior.log_sd, other.prior.log_sd);
}

double Profile::Reach(int parameter, double sign, Fit* lowest) const {
  const double linear = LinearReach(parameter);
  const double prior = kNinetyFivePercent * PriorLogSd(layout_, parameter);
  // The prior says how far, where the runs know nothing of the parameter.
  if (linear > kNothingKnown * prior) return linear;
  const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(parameter)];
  const double value = fit_.values[static_cast<std::size_t>(parameter)];
  const double edge = std::abs((sign > 0 ? p.spec->log_high() : p.spec->log_low()) - value);
  double inside = 0;
  double inside_root = 0;
  Fit at = fit_;
  for (double reach = linear;; reach *= kGrowth) {
    if (reach >= edge) return std::max(linear, edge);
    at = FitHolding(parameter, sign * reach, at);
    if (!at.usable) return std::max(linear, inside);
    const double rise = at.cost - fit_.cost;
    if (at.cost < lowest->cost) *lowest = at;
    const double root = std::sqrt(std::max(0.0, rise));
    if (root >= kRootOfRise) {
      const double share = (kRootOfRise - inside_root) / (root - inside_root);
      return std::max(linear, inside + share * (reach - inside));
    }
    if (reach > kFarthest * prior) return reach;
    inside = reach;
    inside_root = root;
  }
}

double Profile::LinearReach(int parameter) const {
  return kNinetyFivePercent * std::sqrt(covariance_(parameter, parameter));
}

// The others begin where their correlation with the parameter takes them.
Fit Profile::FitHolding(int parameter, double move, const Fit& from) const {
  std::vector<double> start = from.values;
  const auto at = static_cast<std::size_t>(parameter);
  const double step = fit_.values[at] + move - start[at];
  const double variance = covariance_(parameter, parameter);
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] += step * covariance_(static_cast<long>(i), parameter) / variance;
  }
  return Minimisation(layout_, plans_, std::move(start), {.hold = parameter})
      .Solve(kMaxIterations, kStartTolerance);
}

}  // namespace stepcast
