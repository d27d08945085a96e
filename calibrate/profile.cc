#include "calibrate/profile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/values/size_limits.h"
#include "model/statistics/normal.h"

namespace stepcast {
namespace {

// The root of z^2/2.
constexpr double kRootOfTwo = 1.4142135623730951;
constexpr double kRootOfRise = kNinetyFivePercent / kRootOfTwo;
constexpr double kRootOfNinety = kNinetyPercent / kRootOfTwo;
constexpr double kAbout = 1.1;
// Standard deviations between two explanations.
constexpr double kLeastDistance = 1;
constexpr double kNothingKnown = 0.98;
constexpr double kGrowth = 1.6;
constexpr double kFarthest = 1.2;
constexpr int kMaxIterations = 30;

// How far apart two sets of values are: the most standard deviations of any parameter.
double DistanceOf(const std::vector<double>& one, const std::vector<double>& other,
                  const Eigen::MatrixXd& covariance) {
  double most = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double variance = covariance(static_cast<long>(i), static_cast<long>(i));
    if (variance > 0) most = std::max(most, std::abs(one[i] - other[i]) / std::sqrt(variance));
  }
  return most;
}

}  // namespace

double PriorLogSd(const ParameterLayout& layout, int parameter) {
  const FittedParameter& p = layout.parameters()[static_cast<std::size_t>(parameter)];
  if (p.multiple_of >= 0) return std::hypot(p.prior.log_sd, PriorLogSd(layout, p.multiple_of));
  if (p.relative_to < 0) return p.prior.log_sd;
  const FittedParameter& other = layout.parameters()[static_cast<std::size_t>(p.relative_to)];
  return other.fixed ? p.prior.log_sd : std::hypot(p.prior.log_sd, other.prior.log_sd);
}

Eigen::MatrixXd MovesTo(std::vector<Alternative> all, const Fit& fit,
                        const Eigen::MatrixXd& covariance) {
  std::stable_sort(all.begin(), all.end(), [](const Alternative& a, const Alternative& b) {
    return a.distance > b.distance;
  });
  std::vector<std::vector<double>> kept;
  for (Alternative& alternative : all) {
    if (kept.size() == kMostAlternatives) break;
    const bool is_new = std::all_of(kept.begin(), kept.end(), [&](const auto& other) {
      return DistanceOf(alternative.values, other, covariance) >= kLeastDistance;
    });
    if (is_new) kept.push_back(std::move(alternative.values));
  }
  Eigen::MatrixXd moves(kept.size(), fit.values.size());
  for (Eigen::Index i = 0; i < moves.rows(); ++i) {
    for (Eigen::Index j = 0; j < moves.cols(); ++j) {
      const auto at = static_cast<std::size_t>(j);
      moves(i, j) = kept[static_cast<std::size_t>(i)][at] - fit.values[at];
    }
  }
  return moves;
}

Profile::Followed Profile::Follow(int parameter) const {
  Followed followed;
  followed.lowest = fit_;
  for (const double sign : {-1.0, 1.0}) {
    Passage passage;
    (sign < 0 ? followed.interval.down : followed.interval.up) =
        Reach(parameter, sign, &passage, &followed.lowest);
    if (std::optional<Alternative> there = AlternativeAt(parameter, sign, passage)) {
      followed.alternatives.push_back(std::move(*there));
    }
  }
  return followed;
}

double Profile::RootOfRise(const Fit& at) const {
  return std::sqrt(std::max(0.0, at.cost - fit_.cost));
}

double Profile::DistanceAt(int parameter, double sign, const std::vector<double>& values) const {
  const double log_sd = std::sqrt(covariance_(parameter, parameter));
  std::vector<double> expected = fit_.values;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += sign * kNinetyPercent * covariance_(static_cast<long>(i), parameter) / log_sd;
  }
  return DistanceOf(values, expected, covariance_);
}

std::optional<Alternative> Profile::AlternativeAt(int parameter, double sign,
                                                  const Passage& passage) const {
  const auto& [last, outside] = passage;
  if (!last && !outside) return std::nullopt;
  const Fit& inside = last ? *last : fit_;
  Fit end = inside;
  if (outside) {
    const double root = RootOfRise(inside);
    const double share = (kRootOfNinety - root) / (RootOfRise(*outside) - root);
    for (std::size_t i = 0; i < end.values.size(); ++i) {
      end.values[i] += share * (outside->values[i] - inside.values[i]);
    }
  }
  double distance = DistanceAt(parameter, sign, end.values);
  if (distance >= kLeastDistance && outside) {
    // Between two explanations the others do not lie on a line.
    const auto at = static_cast<std::size_t>(parameter);
    const Fit met = FitHolding(parameter, end.values[at] - fit_.values[at], inside);
    const bool is_within = met.usable && RootOfRise(met) <= kAbout * kRootOfNinety;
    end = is_within ? met : inside;
    distance = DistanceAt(parameter, sign, end.values);
  }
  if (distance < kLeastDistance) return std::nullopt;
  return Alternative{std::move(end.values), distance};
}

double Profile::Reach(int parameter, double sign, Passage* passage, Fit* lowest) const {
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
    if (at.cost < lowest->cost) *lowest = at;
    const double root = RootOfRise(at);
    if (!passage->outside) {
      if (root < kRootOfNinety) {
        passage->inside = at;
      } else {
        passage->outside = at;
      }
    }
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
