// The solver's set-up against certified answers: NIST's Statistical Reference Datasets for
// nonlinear regression, 27 sets with two starts each, the far one and the near one.
//
// A case is met if the fit has the certified residual sum of squares to a part in a million, the
// parameters to four digits and their standard deviations to three. Digits are NIST's log relative
// error, -log10(|found - certified| / |certified|).
#include <ceres/autodiff_cost_function.h>
#include <ceres/covariance.h>
#include <ceres/problem.h>
#include <ceres/solver.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <ios>
#include <iterator>
#include <limits>
#include <numbers>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/solver.h"

namespace stepcast {
namespace {

constexpr int kMaxIterations = 1000;

// ---- the models: f(b, x), with b[0] for NIST's b1 ----

// b1 (1 - exp(-b2 x))
struct Saturation {
  static constexpr int kSize = 2;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] * (1.0 - exp(-b[1] * x[0]));
  }
};

struct Misra1b {
  static constexpr int kSize = 2;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    const T base = 1.0 + b[1] * x[0] / 2.0;
    return b[0] * (1.0 - 1.0 / (base * base));
  }
};

struct Misra1c {
  static constexpr int kSize = 2;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::sqrt;
    return b[0] * (1.0 - 1.0 / sqrt(1.0 + 2.0 * b[1] * x[0]));
  }
};

struct Misra1d {
  static constexpr int kSize = 2;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    return b[0] * b[1] * x[0] / (1.0 + b[1] * x[0]);
  }
};

struct Chwirut {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return exp(-b[0] * x[0]) / (b[1] + b[2] * x[0]);
  }
};

struct Lanczos {
  static constexpr int kSize = 6;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] * exp(-b[1] * x[0]) + b[2] * exp(-b[3] * x[0]) + b[4] * exp(-b[5] * x[0]);
  }
};

// Two bells on a decaying base.
struct Gauss {
  static constexpr int kSize = 8;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    const T first = (x[0] - b[3]) / b[4];
    const T second = (x[0] - b[6]) / b[7];
    return b[0] * exp(-b[1] * x[0]) + b[2] * exp(-first * first) + b[5] * exp(-second * second);
  }
};

struct DanWood {
  static constexpr int kSize = 2;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::pow;
    return b[0] * pow(x[0], b[1]);
  }
};

struct Kirby2 {
  static constexpr int kSize = 5;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    return (b[0] + x[0] * (b[1] + x[0] * b[2])) / (1.0 + x[0] * (b[3] + x[0] * b[4]));
  }
};

// Hahn1 and Thurber: cubic over cubic.
struct Cubics {
  static constexpr int kSize = 7;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    const T above = b[0] + x[0] * (b[1] + x[0] * (b[2] + x[0] * b[3]));
    const T below = 1.0 + x[0] * (b[4] + x[0] * (b[5] + x[0] * b[6]));
    return above / below;
  }
};

// The observed quantity is log y.
struct Nelson {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] - b[1] * x[0] * exp(-b[2] * x[1]);
  }
};

struct Mgh17 {
  static constexpr int kSize = 5;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] + b[1] * exp(-x[0] * b[3]) + b[2] * exp(-x[0] * b[4]);
  }
};

struct Roszman1 {
  static constexpr int kSize = 4;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::atan;
    return b[0] - b[1] * x[0] - atan(b[2] / (x[0] - b[3])) / std::numbers::pi;
  }
};

struct Enso {
  static constexpr int kSize = 9;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::cos;
    using std::sin;
    const double turn = 2 * std::numbers::pi * x[0];
    return b[0] + b[1] * cos(turn / 12) + b[2] * sin(turn / 12) + b[4] * cos(turn / b[3]) +
           b[5] * sin(turn / b[3]) + b[7] * cos(turn / b[6]) + b[8] * sin(turn / b[6]);
  }
};

struct Mgh09 {
  static constexpr int kSize = 4;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    return b[0] * (x[0] * (x[0] + b[1])) / (x[0] * (x[0] + b[2]) + b[3]);
  }
};

struct Mgh10 {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] * exp(b[1] / (x[0] + b[2]));
  }
};

struct Rat42 {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    return b[0] / (1.0 + exp(b[1] - b[2] * x[0]));
  }
};

struct Rat43 {
  static constexpr int kSize = 4;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    using std::pow;
    return b[0] / pow(1.0 + exp(b[1] - b[2] * x[0]), 1.0 / b[3]);
  }
};

struct Eckerle4 {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::exp;
    const T z = (x[0] - b[2]) / b[1];
    return b[0] / b[1] * exp(-0.5 * z * z);
  }
};

struct Bennett5 {
  static constexpr int kSize = 3;
  template <typename T>
  static T Evaluate(const T* b, const double* x) {
    using std::pow;
    return b[0] * pow(b[1] + x[0], -1.0 / b[2]);
  }
};

// ---- the sets ----

struct Observation {
  double y = 0;
  std::array<double, 2> x{};
};

// y - f(unit * b, x). Units other than 1 serve the covariance, see StandardDeviations(). Where f
// overflows it has no value, and the solver takes a shorter step.
template <typename Model>
struct Residual {
  template <typename T>
  bool operator()(const T* scaled, T* residual) const {
    using std::isfinite;
    std::array<T, Model::kSize> b{};
    for (int i = 0; i < Model::kSize; ++i) b[i] = scaled[i] * unit[i];
    *residual = observation.y - Model::Evaluate(b.data(), observation.x.data());
    return isfinite(*residual);
  }
  Observation observation;
  std::vector<double> unit;
};

using MakeCost = ceres::CostFunction* (*)(const Observation&, const std::vector<double>& unit);

template <typename Model>
ceres::CostFunction* Make(const Observation& observation, const std::vector<double>& unit) {
  using Cost = ceres::AutoDiffCostFunction<Residual<Model>, 1, Model::kSize>;
  return new Cost(new Residual<Model>{observation, unit});
}

struct SetModel {
  const char* set;
  MakeCost make_cost;
  std::size_t parameters;
};

template <typename Model>
constexpr SetModel Entry(const char* set) {
  return {set, Make<Model>, Model::kSize};
}

// In NIST's order, from easy to hard.
constexpr SetModel kSets[] = {
    Entry<Saturation>("Misra1a"), Entry<Chwirut>("Chwirut2"), Entry<Chwirut>("Chwirut1"),
    Entry<Lanczos>("Lanczos3"),   Entry<Gauss>("Gauss1"),     Entry<Gauss>("Gauss2"),
    Entry<DanWood>("DanWood"),    Entry<Misra1b>("Misra1b"),  Entry<Kirby2>("Kirby2"),
    Entry<Cubics>("Hahn1"),       Entry<Nelson>("Nelson"),    Entry<Mgh17>("MGH17"),
    Entry<Lanczos>("Lanczos1"),   Entry<Lanczos>("Lanczos2"), Entry<Gauss>("Gauss3"),
    Entry<Misra1c>("Misra1c"),    Entry<Misra1d>("Misra1d"),  Entry<Roszman1>("Roszman1"),
    Entry<Enso>("ENSO"),          Entry<Mgh09>("MGH09"),      Entry<Cubics>("Thurber"),
    Entry<Saturation>("BoxBOD"),  Entry<Rat42>("Rat42"),      Entry<Mgh10>("MGH10"),
    Entry<Eckerle4>("Eckerle4"),  Entry<Rat43>("Rat43"),      Entry<Bennett5>("Bennett5"),
};

struct ReferenceSet {
  std::string name;
  std::array<std::vector<double>, 2> starts;
  std::vector<double> certified;
  std::vector<double> deviations;
  double rss = 0;
  std::vector<Observation> observations;
};

// The sets of nist/strd.txt, whose head describes the format.
std::vector<ReferenceSet> ReadSets() {
  std::ifstream file(std::string(STEPCAST_SOURCE_DIR) + "/tests/calibrate/nist/strd.txt");
  while (file.peek() == '#') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::vector<ReferenceSet> sets;
  for (std::string word; file >> word;) {
    ReferenceSet& set = sets.emplace_back();
    std::string difficulty;
    std::size_t predictors = 0;
    std::size_t observations = 0;
    file >> set.name >> difficulty >> predictors >> observations >> set.rss;
    while (file >> word && word != "data") {
      set.starts[0].push_back(std::stod(word));
      file >> set.starts[1].emplace_back() >> set.certified.emplace_back() >>
          set.deviations.emplace_back();
    }
    set.observations.resize(observations);
    for (Observation& o : set.observations) {
      file >> o.y;
      for (std::size_t i = 0; i < predictors; ++i) file >> o.x.at(i);
      if (set.name == "Nelson") o.y = std::log(o.y);
    }
    if (!file) throw std::runtime_error("nist/strd.txt: " + set.name + " is not complete");
  }
  return sets;
}

ReferenceSet ReadSet(const std::string& name) {
  for (ReferenceSet& set : ReadSets()) {
    if (set.name == name) return std::move(set);
  }
  throw std::runtime_error("nist/strd.txt has no set " + name);
}

// ---- fits ----

void AddResiduals(const SetModel& model, const ReferenceSet& set, const std::vector<double>& unit,
                  double* b, ceres::Problem* problem) {
  for (const Observation& o : set.observations) {
    problem->AddResidualBlock(model.make_cost(o, unit), nullptr, b);
  }
}

struct Fit {
  std::vector<double> b;
  double rss = 0;
  int iterations = 0;
  bool converged = false;
};

Fit Solve(const SetModel& model, const ReferenceSet& set, std::vector<double> start,
          const ceres::Solver::Options& options) {
  Fit fit{std::move(start)};
  ceres::Problem problem;
  AddResiduals(model, set, std::vector<double>(fit.b.size(), 1), fit.b.data(), &problem);
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  fit.rss = 2 * summary.final_cost;
  fit.iterations = static_cast<int>(summary.iterations.size()) - 1;
  fit.converged = summary.termination_type == ceres::CONVERGENCE;
  return fit;
}

// The standard deviations at b: with s^2 = RSS/(n - p), the roots of the diagonal of s^2 (J'J)^-1.
// Each parameter is measured in units of itself, since ceres::Covariance does not scale and the
// parameters of one set differ by up to nine orders of magnitude. Directions which the data do not
// determine are left out, as in Calibrate().
std::vector<double> StandardDeviations(const SetModel& model, const ReferenceSet& set,
                                       const std::vector<double>& b) {
  std::vector<double> ones(b.size(), 1);
  ceres::Problem problem;
  AddResiduals(model, set, b, ones.data(), &problem);
  double cost = 0;
  problem.Evaluate({}, &cost, nullptr, nullptr, nullptr);
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::DENSE_SVD;
  options.null_space_rank = -1;
  ceres::Covariance covariance(options);
  const std::vector<const double*> blocks{ones.data()};
  std::vector<double> matrix(b.size() * b.size());
  if (!covariance.Compute(blocks, &problem) ||
      !covariance.GetCovarianceMatrix(blocks, matrix.data())) {
    return {};
  }
  const double variance = 2 * cost / static_cast<double>(set.observations.size() - b.size());
  std::vector<double> deviations;
  for (std::size_t i = 0; i < b.size(); ++i) {
    deviations.push_back(std::abs(b[i]) * std::sqrt(variance * matrix[i * (b.size() + 1)]));
  }
  return deviations;
}

// The largest relative error; infinite if a value is missing or not a number.
double LargestError(const std::vector<double>& found, const std::vector<double>& certified) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (found.size() != certified.size()) return kInfinity;
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] / certified[i] - 1);
    largest = std::isnan(error) ? kInfinity : std::max(largest, error);
  }
  return largest;
}

// How far the rounding of the observations alone may move the sum of squares, relative to itself.
// Note that this is less than 1e-8 for all sets but Lanczos1, with residuals of 1e-13.
double Rounding(const ReferenceSet& set) {
  double y2 = 0;
  for (const Observation& o : set.observations) y2 += o.y * o.y;
  return 2 * std::numeric_limits<double>::epsilon() * std::sqrt(y2 / set.rss);
}

struct Score {
  double rss_excess = 0;  // RSS over the certified one, less 1
  double parameter_error = 0;
  double deviation_error = 0;
  double rounding = 0;

  bool rss_met() const { return rss_excess <= 1e-6 + rounding; }
  bool parameters_met() const { return parameter_error <= 1e-4; }
  bool deviations_met() const { return deviation_error <= 1e-3 + rounding; }
  bool met() const { return rss_met() && parameters_met() && deviations_met(); }
};

Score Examine(const SetModel& model, const ReferenceSet& set, const Fit& fit) {
  return {fit.rss / set.rss - 1, LargestError(fit.b, set.certified),
          LargestError(StandardDeviations(model, set, fit.b), set.deviations), Rounding(set)};
}

// ---- what is not met ----

struct Unmet {
  const char* set;
  int start;  // 1 or 2, as NIST counts
  const char* reason;
};

// Note that the solver says of each of these that it converged.
constexpr Unmet kUnmet[] = {
    {"BoxBOD", 1, "overshoots to b2 = 84, where the curve is a constant and b2 is free"},
    {"MGH10", 1, "a plateau: function_tolerance is met in the seventh step, at 200 times b3"},
};

const Unmet* FindUnmet(const std::string& set, int start) {
  for (const Unmet& unmet : kUnmet) {
    if (set == unmet.set && start == unmet.start) return &unmet;
  }
  return nullptr;
}

// ---- tests ----

// The typed data and models agree: the certified values have the certified sum of squares and the
// certified standard deviations.
TEST(Nist, TheCertifiedValuesFitTheData) {
  const std::vector<ReferenceSet> sets = ReadSets();
  ASSERT_EQ(sets.size(), std::size(kSets));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const ReferenceSet& set = sets[i];
    SCOPED_TRACE(set.name);
    ASSERT_EQ(set.name, kSets[i].set);
    ASSERT_EQ(set.certified.size(), kSets[i].parameters);
    ceres::Solver::Options as_it_is;
    as_it_is.max_num_iterations = 0;
    as_it_is.logging_type = ceres::SILENT;
    const Fit fit = Solve(kSets[i], set, set.certified, as_it_is);
    if (set.name == "Lanczos1") {
      // Eleven digits of the parameters are too few for residuals of 1e-13.
      EXPECT_LT(fit.rss, 1e-20);
      continue;
    }
    const Score score = Examine(kSets[i], set, fit);
    EXPECT_LT(std::abs(score.rss_excess), 1e-9);
    EXPECT_LT(score.deviation_error, 1e-8);
  }
}

struct Case {
  SetModel model;
  int start;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model.set << " from start " << c.start; }

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const SetModel& model : kSets) {
    for (const int start : {1, 2}) cases.push_back({model, start});
  }
  return cases;
}

class NistCase : public ::testing::TestWithParam<Case> {};

TEST_P(NistCase, HasTheCertifiedAnswerUnlessListed) {
  const auto& [model, start] = GetParam();
  const ReferenceSet set = ReadSet(model.set);
  const Fit fit = Solve(model, set, set.starts.at(start - 1), MakeSolverOptions(kMaxIterations));
  const Score score = Examine(model, set, fit);
  RecordProperty("parameter_digits", std::to_string(-std::log10(score.parameter_error)));
  RecordProperty("deviation_digits", std::to_string(-std::log10(score.deviation_error)));
  if (const Unmet* unmet = FindUnmet(model.set, start)) {
    EXPECT_FALSE(score.met()) << "is met now, and leaves kUnmet, which says: " << unmet->reason;
    return;
  }
  EXPECT_TRUE(fit.converged) << fit.iterations << " iterations";
  EXPECT_TRUE(score.rss_met()) << fit.rss << " instead of " << set.rss;
  EXPECT_TRUE(score.parameters_met()) << "relative error " << score.parameter_error;
  EXPECT_TRUE(score.deviations_met()) << "relative error " << score.deviation_error;
}

std::string CaseName(const ::testing::TestParamInfo<Case>& c) {
  return std::string(c.param.model.set) + "Start" + std::to_string(c.param.start);
}

INSTANTIATE_TEST_SUITE_P(Strd, NistCase, ::testing::ValuesIn(AllCases()), CaseName);

TEST(Nist, MostCasesAreMet) {
  const std::vector<ReferenceSet> sets = ReadSets();
  ASSERT_EQ(sets.size(), std::size(kSets));
  int met = 0;
  int near_met = 0;
  int iterations = 0;
  double worst = 0;  // parameter of those that are met
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (const int start : {1, 2}) {
      const Fit fit =
          Solve(kSets[i], sets[i], sets[i].starts.at(start - 1), MakeSolverOptions(kMaxIterations));
      const Score score = Examine(kSets[i], sets[i], fit);
      iterations += fit.iterations;
      if (!score.met()) continue;
      ++met;
      near_met += start == 2;
      worst = std::max(worst, score.parameter_error);
    }
  }
  std::printf(
      "[ measured ] NIST StRD: %d of 54 certified answers met, %d of 27 from the far start, "
      "%d of 27 from the near one; %.1f digits or more of their parameters, "
      "%d iterations in all\n",
      met, met - near_met, near_met, -std::log10(worst), iterations);
  EXPECT_GE(met, 52);
  EXPECT_GE(near_met, 27);
}

}  // namespace
}  // namespace stepcast
