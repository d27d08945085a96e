#include "calibrate/identifiability.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/next_runs.h"

namespace stepcast {
namespace {

constexpr double kConditional = 0.55;  // of a standard deviation, that the other one would leave
constexpr double kUncertain = 0.15;    // a parameter known better needs no partner
constexpr double kWorthARun = 0.9;     // of the standard deviation, that may remain

// The share of a standard deviation that remains once a correlated value is known.
double Conditional(double correlation) {
  return std::sqrt(std::max(0.0, 1 - correlation * correlation));
}

// A run that may be measured, and how much it lets the variance of each value fall.
struct Separator {
  const Plan* plan = nullptr;
  Eigen::VectorXd falls;
};

std::vector<Separator> MakeSeparators(const BelievedModel& model,
                                      const std::vector<Plan>& candidates) {
  std::vector<Separator> separators;
  for (const Plan& plan : candidates) {
    const BelievedModel::Answer answer = model.Evaluate(plan);
    const double noise = answer.scatter * answer.scatter;
    separators.push_back(
        {&plan, VariancesLost(model.belief().log_covariance(), answer.gradient, noise)});
  }
  return separators;
}

void FindSeparatingRun(const std::vector<Separator>& separators, double variance, int position,
                       Ambiguity* ambiguity) {
  double least = variance * kWorthARun * kWorthARun;
  for (const Separator& separator : separators) {
    const double after = variance - separator.falls[position];
    if (after >= least) continue;
    least = after;
    ambiguity->separating = *separator.plan;
    ambiguity->separated_log_sd = std::sqrt(after);
  }
}

}  // namespace

std::vector<Ambiguity> FindAmbiguities(const BelievedModel& model,
                                       const std::vector<Plan>& candidates) {
  struct Pair {
    int first;
    int second;
    double correlation;
  };
  const Eigen::MatrixXd& covariance = model.belief().log_covariance();
  const auto sd = [&](int i) { return std::sqrt(covariance(i, i)); };
  std::vector<Pair> pairs;
  for (int i = 0; i < covariance.rows(); ++i) {
    for (int j = i + 1; j < covariance.rows(); ++j) {
      if (std::min(sd(i), sd(j)) < kUncertain) continue;
      const double correlation = covariance(i, j) / (sd(i) * sd(j));
      if (Conditional(correlation) <= kConditional) pairs.push_back({i, j, correlation});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::abs(a.correlation) > std::abs(b.correlation);
  });
  std::vector<Ambiguity> ambiguities;
  if (pairs.empty()) return ambiguities;
  const std::vector<Separator> separators = MakeSeparators(model, candidates);
  std::set<int> taken;
  for (const Pair& pair : pairs) {
    if (taken.count(pair.first) > 0 || taken.count(pair.second) > 0) continue;
    taken.insert({pair.first, pair.second});
    Ambiguity ambiguity;
    ambiguity.first = model.belief().NameOf(pair.first);
    ambiguity.second = model.belief().NameOf(pair.second);
    ambiguity.product = pair.correlation < 0;
    const int worse = sd(pair.first) > sd(pair.second) ? pair.first : pair.second;
    ambiguity.log_sd = sd(worse);
    ambiguity.conditional_log_sd = ambiguity.log_sd * Conditional(pair.correlation);
    FindSeparatingRun(separators, covariance(worse, worse), worse, &ambiguity);
    ambiguities.push_back(std::move(ambiguity));
  }
  return ambiguities;
}

}  // namespace stepcast
