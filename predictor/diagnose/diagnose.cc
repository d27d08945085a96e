#include "predictor/diagnose/diagnose.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "data/record/input_error.h"
#include "model/statistics/normal.h"
#include "model/step/slow_ends.h"
#include "predictor/diagnose/advice.h"
#include "predictor/diagnose/hypotheses.h"
#include "predictor/diagnose/text.h"

namespace stepcast {
namespace internal {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kPriorOfNothing = 0.5;
// How often each cause was what was wrong, in the order of kCauseNames: in 22 public reports of
// which it is known, and in five more of each, since those are few. Slow links and slow flows were
// seldom told apart there: each has half of their eleven.
constexpr double kReports[kCauseCount] = {0, 10.5, 10.5, 5, 5, 6, 5, 6, 10, 5, 9};
// Points of ln x: first over the whole range, then as many within each of the intervals about the
// likeliest.
constexpr int kCoarse = 33;
constexpr int kFine = 8;
constexpr int kMostIterations = 12;
constexpr int kMostHalvings = 6;
constexpr double kConverged = 1e-4;
// A parameter moves by no more at once: formulas are not linear over the widths of priors.
constexpr double kLongestMove = 2;
// Points of a hypothesis that are less likely than the likeliest by this factor are left out.
constexpr double kNegligible = 1e-3;
// So many lost packets tell their share to 3 %; more tell no more, since losses come in bursts.
constexpr double kLostThatTell = 1000;

double LogNormal(double x, double sd) {
  return -0.5 * x * x / (sd * sd) - std::log(sd * std::sqrt(2 * std::numbers::pi));
}

// The parameters at their likeliest, where one hypothesis holds to one degree.
struct Fit {
  VectorXd theta;
  double log_evidence = 0;
  MatrixXd reduction;  // C G' L^-T: the posterior's covariance is C less its square
};

class Evidence {
 public:
  Evidence(const Forecaster& model, std::vector<Measurement> rows) : model_(model) {
    for (Measurement& row : rows) {
      (row.what == Measured::kLoss ? losses_ : rows_).push_back(std::move(row));
    }
    for (const Measurement& row : losses_) {
      lost_ += row.value * row.packets;
      packets_ += row.packets;
    }
    if (packets_ > 0) healthy_loss_evidence_ = HealthyLossEvidence();
  }

  // The share of packets that were lost, as counted.
  double loss() const { return packets_ > 0 ? lost_ / packets_ : 0; }

  // The likeliest parameters. What is hidden where they are believed to be has no derivative there,
  // so that what is likeliest may lie beyond a hill, where some pace is slow. A hypothesis that has
  // no degrees, which would make it slow, is tried from there too.
  Fit At(const Hypothesis& hypothesis, double x) const {
    const MatrixXd& spread = model_.spread();
    Fit best = From(hypothesis, x, VectorXd::Zero(model_.mean().size()));
    if (hypothesis.has_degrees() || rows_.empty()) return best;
    for (const SlowWay& way : model_.slow_ways()) {
      // What goes with it goes along: spread * away is a column of the covariance.
      const double sd = std::sqrt(model_.covariance()(way.at, way.at));
      if (sd == 0) continue;
      Fit other = From(hypothesis, x, way.sds / sd * spread.col(way.at));
      if (other.log_evidence > best.log_evidence) best = std::move(other);
    }
    return best;
  }

  // Standard deviation of what has this gradient, once the rows are known.
  double LogSd(const Fit& fit, const VectorXd& gradient) const {
    const double before = gradient.dot(model_.covariance() * gradient);
    return std::sqrt(std::max(0.0, before - (fit.reduction.transpose() * gradient).squaredNorm()));
  }

  // By how much each parameter moves with theta[at], once the rows are known, for one standard
  // deviation of that.
  VectorXd Along(const Fit& fit, Index at) const {
    const VectorXd covariance =
        model_.covariance().col(at) - fit.reduction * fit.reduction.row(at).transpose();
    const double variance = covariance[at];
    return variance > 0 ? VectorXd(covariance / std::sqrt(variance)) : VectorXd(0 * covariance);
  }

 private:
  // Gauss-Newton steps in the space of the rows. A step is halved until it leads to what is
  // likelier: where one part of a step of training takes over from another, whole ones go to and
  // fro. It begins `away` from the mean, in the belief's standard deviations:
  // theta = mean + spread * away.
  Fit From(const Hypothesis& hypothesis, double x, VectorXd away) const {
    const MatrixXd& spread = model_.spread();
    const auto n = static_cast<Index>(rows_.size());
    Fit fit{model_.mean() + spread * away, LossEvidence(hypothesis, x),
            MatrixXd::Zero(model_.mean().size(), 0)};
    if (n == 0) return fit;
    Linear here = LinearAt(hypothesis, x, fit.theta);
    Eigen::LLT<MatrixXd> root;
    // What the rows say, as far as the mean does not: residuals there, if all were linear.
    const auto at_mean = [&] {
      MatrixXd total = here.gradient * here.gradient.transpose();
      total.diagonal() += here.noise;
      root.compute(total);
      return VectorXd(here.residual + here.gradient * away);
    };
    const auto step = [&] {
      const VectorXd residual = at_mean();
      const VectorXd move = here.gradient.transpose() * root.solve(residual) - away;
      const double length = (spread * move).cwiseAbs().maxCoeff();
      if (length < kConverged) return false;
      const double cost = here.Cost(away, here.noise);
      double share = std::min(1.0, kLongestMove / length);
      for (int i = 0; i < kMostHalvings; ++i, share /= 2) {
        const VectorXd tried = away + share * move;
        const VectorXd theta = model_.mean() + spread * tried;
        Linear there = LinearAt(hypothesis, x, theta);
        if (!there.residual.allFinite() || there.Cost(tried, here.noise) >= cost) continue;
        away = tried;
        fit.theta = theta;
        here = std::move(there);
        return true;
      }
      return false;
    };
    // So bad that no step ends: nothing that was measured is like it.
    if (!here.residual.allFinite()) {
      fit.log_evidence = -std::numeric_limits<double>::infinity();
      return fit;
    }
    bool moves = true;
    for (int i = 0; moves && i < kMostIterations; ++i) moves = step();
    const VectorXd residual = at_mean();
    const VectorXd white = root.matrixL().solve(residual);
    fit.log_evidence += -0.5 * white.squaredNorm() -
                        MatrixXd(root.matrixL()).diagonal().array().log().sum() -
                        0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
    fit.reduction = spread * root.matrixL().solve(here.gradient).transpose();
    return fit;
  }

  // The rows' forecasts as they are about one theta.
  struct Linear {
    MatrixXd gradient;  // of ln value by `away`
    VectorXd residual;  // ln(measured / forecast)
    VectorXd noise;     // variance of that

    // -2 ln of how likely `away` is, but for a constant.
    double Cost(const VectorXd& away, const VectorXd& variances) const {
      return residual.cwiseAbs2().cwiseQuotient(variances).sum() + away.squaredNorm();
    }
  };

  Linear LinearAt(const Hypothesis& hypothesis, double x, const VectorXd& theta) const {
    const auto n = static_cast<Index>(rows_.size());
    MatrixXd by_theta(n, theta.size());
    Linear linear{{}, VectorXd(n), VectorXd(n)};
    for (Index i = 0; i < n; ++i) {
      const Measurement& row = rows_[static_cast<std::size_t>(i)];
      const Forecast forecast = model_.Of(row, hypothesis, x, theta);
      by_theta.row(i) = forecast.gradient;
      linear.residual[i] = std::log(row.value) - forecast.log_value;
      linear.noise[i] = forecast.log_sd * forecast.log_sd;
    }
    linear.gradient = by_theta * model_.spread();
    return linear;
  }

  double LossEvidence(const Hypothesis& hypothesis, double x) const {
    if (packets_ == 0) return 0;
    return hypothesis.cause == Cause::kLoss ? LogCount(x) : healthy_loss_evidence_;
  }

  // ln of how likely it is to count so many, where the share `loss` gets lost.
  double LogCount(double loss) const {
    return std::min(1.0, kLostThatTell / std::max(lost_, 1.0)) *
           (lost_ * std::log(loss) + (packets_ - lost_) * std::log1p(-loss));
  }

  // ln of how likely it is where loss is not what is wrong: such a network loses the share that is
  // stated, or so few that they are no matter, and a larger one as seldom as it is large:
  // P(share > l) = least / l. A few lost packets rule no cause out; many speak for loss.
  double HealthyLossEvidence() const {
    const double least =
        std::exp(model_.Of(losses_.front(), Hypothesis(), 1, model_.mean()).log_value);
    constexpr int kCells = 1000;
    if (least >= kMostLoss) return LogCount(least);
    const double width = std::log(kMostLoss / least) / kCells;
    std::array<double, kCells> logs;
    for (int i = 0; i < kCells; ++i) {
      const double log_share = (i + 0.5) * width;  // beyond the least
      logs[static_cast<std::size_t>(i)] = LogCount(least * std::exp(log_share)) - log_share;
    }
    const double best = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double one : logs) sum += std::exp(one - best) * width;
    return best + std::log(sum);
  }

  const Forecaster& model_;
  std::vector<Measurement> rows_;
  std::vector<Measurement> losses_;
  double lost_ = 0;
  double packets_ = 0;
  double healthy_loss_evidence_ = 0;
};

// One hypothesis, weighed.
struct Weighed {
  struct Point {
    double log_x = 0;
    Fit fit;
    double weight = 0;  // of all points of the hypothesis
  };
  Hypothesis hypothesis;
  std::vector<Point> points;
  double log_evidence = 0;
  double probability = 0;

  const Point& likeliest() const {
    const auto density = [&](const Point& point) {
      return point.fit.log_evidence + hypothesis.LogDensity(point.log_x);
    };
    return *std::max_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
      return density(a) < density(b);
    });
  }
};

Weighed Weigh(const Hypothesis& hypothesis, const Evidence& evidence) {
  Weighed weighed{hypothesis, {}, 0, 0};
  std::vector<Weighed::Point>& points = weighed.points;
  const auto add = [&](double log_x) {
    points.push_back({log_x, evidence.At(hypothesis, std::exp(log_x)), 0});
  };
  if (!hypothesis.has_degrees()) {
    add(0);
    points.front().weight = 1;
    weighed.log_evidence = points.front().fit.log_evidence;
    return weighed;
  }
  const double low = std::log(hypothesis.low);
  const double high = std::log(hypothesis.high);
  const double step = (high - low) / (kCoarse - 1);
  for (int i = 0; i < kCoarse; ++i) add(low + i * step);
  const double peak = weighed.likeliest().log_x;
  for (int i = -kFine + 1; i < kFine; ++i) {
    const double log_x = peak + i * step / kFine;
    if (i != 0 && log_x > low && log_x < high) add(log_x);
  }
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.log_x < b.log_x; });
  const double best = weighed.likeliest().fit.log_evidence;
  if (!std::isfinite(best)) {
    points.resize(1);
    points.front().weight = 1;
    weighed.log_evidence = best;
    return weighed;
  }
  double sum = 0;
  double all = 0;  // of the prior
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double before = i > 0 ? points[i].log_x - points[i - 1].log_x : 0;
    const double behind = i + 1 < points.size() ? points[i + 1].log_x - points[i].log_x : 0;
    const double prior = std::exp(hypothesis.LogDensity(points[i].log_x)) * (before + behind) / 2;
    points[i].weight = std::exp(points[i].fit.log_evidence - best) * prior;
    sum += points[i].weight;
    all += prior;
  }
  for (Weighed::Point& point : points) point.weight /= sum;
  weighed.log_evidence = best + std::log(sum / all);
  return weighed;
}

void SetProbabilities(std::vector<Weighed>* all) {
  std::array<int, kCauseCount> forms{};
  double reports = 0;
  for (const Weighed& one : *all) {
    const auto cause = static_cast<std::size_t>(one.hypothesis.cause);
    if (forms[cause]++ == 0) reports += kReports[cause];
  }
  double best = -std::numeric_limits<double>::infinity();
  for (const Weighed& one : *all) best = std::max(best, one.log_evidence);
  if (!std::isfinite(best)) {
    throw InputError({"", 0, "measured"}, "", "is no time of such a plan, of which no step ends",
                     "a plan with less loss");
  }
  double sum = 0;
  for (Weighed& one : *all) {
    const auto cause = static_cast<std::size_t>(one.hypothesis.cause);
    const double prior = one.hypothesis.cause == Cause::kNothing
                             ? kPriorOfNothing
                             : (1 - kPriorOfNothing) * kReports[cause] / reports / forms[cause];
    one.probability = prior * std::exp(one.log_evidence - best);
    sum += one.probability;
  }
  for (Weighed& one : *all) one.probability /= sum;
}

// Mean and standard deviation of ln(size) over all degrees.
CauseSize SizeOf(const Weighed& weighed, const Forecaster& model, const Evidence& evidence) {
  CauseSize size;
  const Hypothesis& hypothesis = weighed.hypothesis;
  double mean = 0;
  double squares = 0;
  for (const Weighed::Point& point : weighed.points) {
    if (point.weight == 0) continue;
    const Forecast at = model.SizeOf(hypothesis, std::exp(point.log_x), point.fit.theta);
    const double sd = evidence.LogSd(point.fit, at.gradient);
    mean += point.weight * at.log_value;
    squares += point.weight * (at.log_value * at.log_value + sd * sd);
  }
  const double sd = std::sqrt(std::max(0.0, squares - mean * mean));
  const double unit = UnitOf(hypothesis);
  size.value = std::exp(mean) / unit;
  size.low = std::exp(mean - kNinetyPercent * sd) / unit;
  size.high = std::exp(mean + kNinetyPercent * sd) / unit;
  size.unit = UnitNameOf(hypothesis);
  return size;
}

// What a measurement would show under one cause: a mixture over its forms and degrees.
struct Outlook {
  struct Part {
    double mean = 0;  // of the logarithm
    double sd = 0;
    double weight = 0;
  };
  Cause cause = Cause::kNothing;
  double probability = 0;
  std::vector<Part> parts;  // whose weights sum to the probability
};

// I(cause; result) [bits].
double Information(const std::vector<Outlook>& outlooks) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double narrowest = low;
  for (const Outlook& one : outlooks) {
    for (const Outlook::Part& part : one.parts) {
      narrowest = std::min(narrowest, part.sd);
      low = std::min(low, part.mean - 4 * part.sd);
      high = std::max(high, part.mean + 4 * part.sd);
    }
  }
  constexpr int kMostCells = 4000;
  constexpr double kCellsPerSd = 4;
  const int cells =
      static_cast<int>(std::clamp((high - low) / narrowest * kCellsPerSd, 1.0, 1.0 * kMostCells));
  const double width = (high - low) / cells;
  double information = 0;
  std::vector<double> density(outlooks.size());
  for (int cell = 0; cell < cells; ++cell) {
    const double at = low + (cell + 0.5) * width;
    for (std::size_t i = 0; i < outlooks.size(); ++i) {
      density[i] = 0;
      for (const Outlook::Part& part : outlooks[i].parts) {
        density[i] += part.weight * std::exp(LogNormal(at - part.mean, part.sd));
      }
    }
    const double all = std::accumulate(density.begin(), density.end(), 0.0);
    for (std::size_t i = 0; i < outlooks.size(); ++i) {
      if (density[i] <= 0) continue;
      information += density[i] * width * std::log2(density[i] / (outlooks[i].probability * all));
    }
  }
  return information;
}

class Doctor {
 public:
  Doctor(const Predictor& predictor, const Complaint& complaint, const DiagnosisOptions& options)
      : predictor_(predictor), complaint_(complaint), model_(predictor, complaint.plan, options) {}

  Diagnosis Examine(bool advise) {
    Diagnosis diagnosis;
    diagnosis.measured = complaint_.step;
    CentreCompute();
    const Measurement row = Measurement::Step(complaint_.plan, complaint_.step);
    SetExpected(row, &diagnosis);
    std::vector<Measurement> rows = complaint_.known;
    rows.push_back(row);
    evidence_.emplace(model_, rows);
    all_ = WeighAll(*evidence_);
    SetCauses(row, &diagnosis);
    if (diagnosis.is_only_short()) {
      std::erase_if(all_,
                    [](const Weighed& one) { return one.hypothesis.cause != Cause::kNothing; });
      SetCauses(row, &diagnosis);
    }
    if (!diagnosis.is_short()) SetContradiction(rows, &diagnosis);
    if (advise) {
      if (diagnosis.is_met()) SetRemedies(&diagnosis);
      SetNext(&diagnosis);
    }
    return diagnosis;
  }

 private:
  // Whether it is the step of a part of the job, or of all of it without its input: what is wrong
  // with the whole has no part in it.
  bool IsOfPart(const Measurement& known) const {
    return known.what == Measured::kStep && !known.slowest_of_hosts && !known.exchange_alone &&
           (known.synthetic_input || known.plan.workers() < complaint_.plan.workers());
  }

  void CentreCompute() {
    if (predictor_.compute_source() != ComputeSource::kPrior) return;
    const Measurement* smallest = nullptr;
    for (const Measurement& known : complaint_.known) {
      if (!IsOfPart(known)) continue;
      if (smallest == nullptr || known.plan.workers() < smallest->plan.workers()) smallest = &known;
    }
    if (smallest != nullptr) model_.CentreCompute(*smallest);
  }

  std::vector<Weighed> WeighAll(const Evidence& evidence) const {
    std::vector<Weighed> all;
    for (Hypothesis& hypothesis : HypothesesOf(predictor_, complaint_.plan, KnowsLinks())) {
      // Packets that were counted as lost are lost whatever else is wrong. Nothing is wrong where
      // the step is as it should be without them.
      if (hypothesis.cause != Cause::kNothing && hypothesis.cause != Cause::kLoss) {
        hypothesis.loss = std::min(evidence.loss(), kMostLoss);
      }
      all.push_back(Weigh(hypothesis, evidence));
    }
    return all;
  }

  Binding BindingOf(const StepTime<double>& parts) const {
    Prediction prediction;
    prediction.breakdown = parts;
    prediction.host_leads_out = HostLeadsOut(complaint_.plan);
    return FindBinding(prediction);
  }

  // The forecast, with measured steps of parts of the job or on samples made up, but not with what
  // was measured of all of it or of the network, where whatever is wrong has its part: links are as
  // they are stated.
  void SetExpected(const Measurement& row, Diagnosis* diagnosis) {
    std::vector<Measurement> steps;
    std::copy_if(complaint_.known.begin(), complaint_.known.end(), std::back_inserter(steps),
                 [&](const Measurement& known) { return IsOfPart(known); });
    const Hypothesis nothing;
    const Evidence others(model_, steps);
    const Fit fit = others.At(nothing, 1);
    const Forecast forecast = model_.Of(row, nothing, 1, fit.theta);
    const double log_sd = std::hypot(others.LogSd(fit, forecast.gradient), forecast.log_sd);
    const auto beyond = [&](double log) { return Seconds(std::exp(forecast.log_value + log)); };
    diagnosis->expected = beyond(0);
    diagnosis->low = beyond(-kNinetyPercent * log_sd);
    // One pace that is slow is enough for a long step (model/step/slow_ends.h).
    WorstEnd worst;
    for (const SlowWay& way : model_.slow_ways()) {
      const VectorXd along = others.Along(fit, way.at);
      const Forecast slow = model_.Of(row, nothing, 1, fit.theta + way.sds * along);
      worst.Include(forecast.gradient.dot(along), diagnosis->expected,
                    Seconds(std::exp(slow.log_value)));
    }
    diagnosis->high = beyond(kNinetyPercent * std::hypot(log_sd, std::sqrt(worst.variance())));
    diagnosis->expected_parts = forecast.parts;
    diagnosis->expected_binding = BindingOf(forecast.parts);
    if (predictor_.compute_source() == ComputeSource::kPrior) model_.SetBase(diagnosis->expected);
  }

  bool KnowsLinks() const {
    return model_.knows_rate() ||
           std::any_of(complaint_.known.begin(), complaint_.known.end(), [](const auto& known) {
             return known.what == Measured::kRate && known.connections > 1;
           });
  }

  // Where nothing is wrong, what sets the pace has a size.
  static Hypothesis Sized(Hypothesis hypothesis, const Binding& binding, bool host_leads_out) {
    if (hypothesis.cause != Cause::kNothing) return hypothesis;
    if (binding.part == "flow") hypothesis.cause = Cause::kFlow;
    if (binding.part == "link") hypothesis.cause = Cause::kLink;
    if (binding.part == "host" && !host_leads_out) hypothesis.cause = Cause::kDeviceLink;
    return hypothesis;
  }

  void SetCauses(const Measurement& row, Diagnosis* diagnosis) {
    SetProbabilities(&all_);
    diagnosis->causes.clear();
    std::sort(all_.begin(), all_.end(),
              [](const Weighed& a, const Weighed& b) { return a.probability > b.probability; });
    for (const Weighed& one : all_) {
      const Cause cause = one.hypothesis.cause;
      auto known = std::find_if(diagnosis->causes.begin(), diagnosis->causes.end(),
                                [&](const ExplainedBy& other) { return other.cause == cause; });
      if (known != diagnosis->causes.end()) {
        known->probability += one.probability;  // another form of it, and less likely
        continue;
      }
      const Weighed::Point& point = one.likeliest();
      const double x = std::exp(point.log_x);
      const Forecast forecast = model_.Of(row, one.hypothesis, x, point.fit.theta);
      ExplainedBy explained;
      explained.cause = cause;
      explained.probability = one.probability;
      explained.step = Seconds(std::exp(forecast.log_value));
      explained.added =
          explained.step -
          Seconds(std::exp(model_.Of(row, one.hypothesis.Cured(), 1, point.fit.theta).log_value));
      explained.parts = forecast.parts;
      explained.surprise = SurpriseOf(row, one);
      Weighed sized = one;
      sized.hypothesis =
          Sized(one.hypothesis, BindingOf(forecast.parts), HostLeadsOut(complaint_.plan));
      explained.size = SizeOf(sized, model_, *evidence_);
      explained.size.text = SizeText(one.hypothesis, sized.hypothesis, explained.size, model_,
                                     complaint_.plan, forecast.parts);
      diagnosis->causes.push_back(std::move(explained));
    }
    std::stable_sort(
        diagnosis->causes.begin(), diagnosis->causes.end(),
        [](const ExplainedBy& a, const ExplainedBy& b) { return a.probability > b.probability; });
    SetFirst(diagnosis);
    first_ = &LikeliestFormOf(diagnosis->causes.front().cause);
    diagnosis->binding = BindingOf(diagnosis->causes.front().parts);
  }

  // Which cause is named: what is likelier wrong than not has something wrong with it, though each
  // cause alone be less likely than none. Within the interval it is one that is likelier than none;
  // in a step that is no longer than expected only one that is likelier than all else, as other
  // measurements show it.
  static void SetFirst(Diagnosis* diagnosis) {
    std::vector<ExplainedBy>& causes = diagnosis->causes;
    auto named = std::find_if(causes.begin(), causes.end(),
                              [](const ExplainedBy& one) { return one.cause == Cause::kNothing; });
    if (named->probability < 0.5) {
      const double least = diagnosis->measured <= diagnosis->expected ? 0.5
                           : diagnosis->is_long()                     ? kWorthNaming
                                                  : std::max(kWorthNaming, named->probability);
      const auto slow = std::find_if(causes.begin(), causes.end(), [&](const ExplainedBy& one) {
        return one.probability >= least && Slows(one, *diagnosis);
      });
      if (slow != causes.end()) named = slow;
    }
    std::rotate(causes.begin(), named, named + 1);
  }

  // Whether the step is longer by the cause, and at least half of what it is too long by is the
  // cause's own, in logarithms. The rest would be there without it: parameters that are not as they
  // are believed.
  static bool Slows(const ExplainedBy& one, const Diagnosis& diagnosis) {
    return std::log(one.step / (one.step - one.added)) >=
           std::max(kLeastAdded, 0.5 * std::log(diagnosis.measured / diagnosis.expected));
  }

  const Weighed& LikeliestFormOf(Cause cause) const {
    return *std::find_if(all_.begin(), all_.end(),
                         [&](const Weighed& one) { return one.hypothesis.cause == cause; });
  }

  // How far a measurement is from what the hypothesis makes of it where it is likeliest, in
  // standard deviations.
  double SurpriseOf(const Measurement& row, const Weighed& one) const {
    const Weighed::Point& point = one.likeliest();
    const Forecast forecast =
        model_.Of(row, one.hypothesis, std::exp(point.log_x), point.fit.theta);
    if (row.what != Measured::kLoss) {
      return (std::log(row.value) - forecast.log_value) / forecast.log_sd;
    }
    // Packets lost are counted, and they are lost in bursts; a single one says little.
    const double expected = std::exp(forecast.log_value) * row.packets;
    const double spread = forecast.log_sd * expected;
    return (row.value * row.packets - expected) / std::sqrt(1 + expected + spread * spread);
  }

  bool Meets(const Weighed& one, const std::vector<Measurement>& rows) const {
    return std::all_of(rows.begin(), rows.end(), [&](const Measurement& row) {
      return std::abs(SurpriseOf(row, one)) <= kMostSurprise;
    });
  }

  // Whether one of the hypotheses that count meets all rows.
  bool AnyMeets(const std::vector<Weighed>& all, const std::vector<Measurement>& rows) const {
    return std::any_of(all.begin(), all.end(), [&](const Weighed& one) {
      return one.probability >= kNegligible && Meets(one, rows);
    });
  }

  // The same with rows of their own.
  bool IsMetBySome(const std::vector<Measurement>& rows) const {
    const Evidence evidence(model_, rows);
    std::vector<Weighed> all = WeighAll(evidence);
    const bool is_possible = std::any_of(
        all.begin(), all.end(), [](const Weighed& one) { return std::isfinite(one.log_evidence); });
    if (!is_possible) return false;
    SetProbabilities(&all);
    return AnyMeets(all, rows);
  }

  // The complaint's step is the last of the rows.
  void SetContradiction(const std::vector<Measurement>& rows, Diagnosis* diagnosis) const {
    std::vector<std::string>& at_odds = diagnosis->at_odds;
    for (const Measurement& row : rows) {
      if (!model_.Overfills(row)) continue;
      at_odds.push_back(MeasurementText(row));
      diagnosis->contradiction = OverfillText(row, model_.StatedRate());
      return;
    }
    if (rows.size() < 2 || AnyMeets(all_, rows)) return;
    // Longer than the likeliest cause makes it, and all else as it should be: a second cause.
    const std::vector<Measurement> known(rows.begin(), rows.end() - 1);
    if (SurpriseOf(rows.back(), *first_) > kMostSurprise && Meets(*first_, known)) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<Measurement> others = rows;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (IsMetBySome(others)) at_odds.push_back(MeasurementText(rows[i]));
    }
    const bool one_is_enough = !at_odds.empty();
    if (!one_is_enough) {
      for (const Measurement& row : rows) {
        if (!Meets(*first_, {row})) at_odds.push_back(MeasurementText(row));
      }
    }
    if (at_odds.empty()) return;
    diagnosis->contradiction = ContradictionText(at_odds, rows.size(), one_is_enough);
  }

  // Of those plans that fit in memory, each with the leading cause or without it.
  void SetRemedies(Diagnosis* diagnosis) const {
    const Weighed::Point& point = first_->likeliest();
    const double x = std::exp(point.log_x);
    const auto step_of = [&](const Plan& plan, const Hypothesis& hypothesis) {
      const Measurement row = Measurement::Step(plan, {});
      return Seconds(std::exp(model_.Of(row, hypothesis, x, point.fit.theta).log_value));
    };
    const auto rate = [](const Plan& plan, Duration<> step) { return CountedSamples(plan) / step; };
    const SampleRate<> now = rate(complaint_.plan, step_of(complaint_.plan, first_->hypothesis));
    for (const RemedyIdea& idea : RemediesFor(first_->hypothesis, predictor_, model_)) {
      if (!predictor_.Memory(idea.plan).may_fit()) continue;
      Remedy remedy;
      remedy.text = idea.text;
      remedy.plan = idea.plan;
      remedy.repairs = idea.repairs;
      remedy.step =
          step_of(idea.plan, idea.cured ? first_->hypothesis.Cured() : first_->hypothesis);
      remedy.throughput = rate(idea.plan, remedy.step);
      remedy.gain = remedy.throughput / now;
      if (remedy.gain > kLeastGain) diagnosis->remedies.push_back(std::move(remedy));
    }
    std::stable_sort(diagnosis->remedies.begin(), diagnosis->remedies.end(),
                     [](const Remedy& a, const Remedy& b) { return a.gain > b.gain; });
  }

  // Adds what the measurement would show under one hypothesis.
  void Add(const Measurement& measurement, const Weighed& one, std::vector<Outlook>* all) const {
    const Cause cause = one.hypothesis.cause;
    auto outlook = std::find_if(all->begin(), all->end(),
                                [&](const Outlook& other) { return other.cause == cause; });
    if (outlook == all->end()) outlook = all->insert(all->end(), {cause, 0, {}});
    outlook->probability += one.probability;
    const Weighed::Point& best = one.likeliest();
    const Forecast there =
        model_.Of(measurement, one.hypothesis, std::exp(best.log_x), best.fit.theta);
    const double sd = std::hypot(evidence_->LogSd(best.fit, there.gradient), there.log_sd);
    double heaviest = 0;
    for (const Weighed::Point& point : one.points) heaviest = std::max(heaviest, point.weight);
    double left = 0;
    for (const Weighed::Point& point : one.points) {
      if (point.weight >= kNegligible * heaviest) left += point.weight;
    }
    for (const Weighed::Point& point : one.points) {
      if (point.weight < kNegligible * heaviest) continue;
      const Forecast forecast =
          model_.Of(measurement, one.hypothesis, std::exp(point.log_x), point.fit.theta);
      outlook->parts.push_back({forecast.log_value, sd, one.probability * point.weight / left});
    }
  }

  void SetNext(Diagnosis* diagnosis) const {
    for (const Candidate& candidate : CandidatesFor(complaint_, predictor_)) {
      std::vector<Outlook> outlooks;
      for (const Weighed& one : all_) {
        if (one.probability >= kNegligible) Add(candidate.measurement, one, &outlooks);
      }
      const double bits = Information(outlooks);
      if (diagnosis->next && bits <= diagnosis->next->bits) continue;
      NextMeasurement next{candidate.measurement, candidate.text, candidate.command, bits, {}};
      for (const ExplainedBy& explained : diagnosis->causes) {
        if (explained.probability < kWorthForecasting) continue;
        const Weighed& one = LikeliestFormOf(explained.cause);
        const Weighed::Point& best = one.likeliest();
        const Forecast forecast =
            model_.Of(candidate.measurement, one.hypothesis, std::exp(best.log_x), best.fit.theta);
        next.forecasts.emplace_back(explained.cause,
                                    ValueText(candidate.measurement, std::exp(forecast.log_value)));
      }
      diagnosis->next = std::move(next);
    }
    if (diagnosis->next && diagnosis->next->bits < kLeastBits) diagnosis->next.reset();
  }

  static constexpr double kLeastAdded = 0.1;  // of ln(step)
  static constexpr double kLeastGain = 1.02;
  static constexpr double kLeastBits = 0.02;
  static constexpr double kWorthForecasting = 0.02;
  static constexpr double kWorthNaming = kWorthForecasting;

  const Predictor& predictor_;
  const Complaint& complaint_;
  Forecaster model_;
  std::optional<Evidence> evidence_;
  std::vector<Weighed> all_;
  const Weighed* first_ = nullptr;
};

void CheckMeasurement(const Measurement& measurement) {
  const bool loss = measurement.what == Measured::kLoss;
  const bool right =
      loss ? measurement.value >= 0 && measurement.value < 1 && measurement.packets >= 1
           : measurement.value > 0 && std::isfinite(measurement.value);
  if (right) return;
  constexpr const char* kFlags[] = {"measured", "flow-rate", "ping", "lost"};
  throw InputError({"", 0, kFlags[static_cast<int>(measurement.what)]},
                   fmt::format("{:g}", measurement.value), "is out of range",
                   loss ? "from 0 to less than 1, of at least one packet" : "more than 0");
}

}  // namespace
}  // namespace internal

Measurement Measurement::Step(const Plan& plan, Duration<> step) {
  Measurement measurement;
  measurement.plan = plan;
  measurement.value = step.si();
  return measurement;
}

Measurement Measurement::Rate(DataRate<> rate, int connections) {
  Measurement measurement;
  measurement.what = Measured::kRate;
  measurement.connections = connections;
  measurement.value = rate.si();
  return measurement;
}

Measurement Measurement::RoundTrip(Duration<> trip) {
  Measurement measurement;
  measurement.what = Measured::kRoundTrip;
  measurement.value = trip.si();
  return measurement;
}

Measurement Measurement::Loss(double share, double packets) {
  Measurement measurement;
  measurement.what = Measured::kLoss;
  measurement.value = share;
  measurement.packets = packets;
  return measurement;
}

Diagnosis Diagnose(const Predictor& predictor, const Complaint& complaint,
                   const DiagnosisOptions& options) {
  internal::CheckMeasurement(Measurement::Step(complaint.plan, complaint.step));
  for (const Measurement& known : complaint.known) internal::CheckMeasurement(known);
  return internal::Doctor(predictor, complaint, options).Examine(options.advise);
}

}  // namespace stepcast
