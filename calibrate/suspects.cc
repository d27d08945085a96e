#include "calibrate/suspects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "calibrate/excerpt.h"
#include "calibrate/scatter.h"
#include "calibrate/text.h"
#include "data/plan/check.h"
#include "data/plan/key.h"
#include "data/record/link_path.h"
#include "data/values/workload_scope.h"
#include "model/step/believed_model.h"
#include "model/step/step_facts.h"

namespace stepcast {
namespace {

// When a row is suspect.
constexpr double kScattersOff = 4;
constexpr double kLeastRowFactor = 1.25;
constexpr double kMostFactor = 3;
// Among so few rows one that is far off is a good part of the scatter that it is judged by.
constexpr std::size_t kFewRows = 32;
constexpr std::size_t kFewestRows = 5;
// A fit to few rows, which leaves much to priors, misses some by more than many rows let it.
constexpr double kLeastFactorOfFew = 1.35;
// When runs of one plan contradict each other, and which share of them is right against the rest.
constexpr double kContradiction = 2;
constexpr double kLargeMajority = 0.75;
// When an explanation is accepted.
constexpr double kScattersMet = 3;
constexpr double kLargestScatterMet = 0.1;
constexpr double kTimesCloser = 3;
// When a factor may be the network's.
constexpr double kNetworkShare = 0.5;
constexpr double kNetworkFactor = 2;
// How near a rate or a loss is looked for, by its logarithm.
constexpr double kPrecision = 1e-3;
constexpr double kLeastLossLookedFor = 1e-6;
constexpr double kMostLossLookedFor = 0.5;
// The slowest link that is worth a thought beside a simpler explanation.
constexpr DataRate<> kSlowestInUse = MegabitsPerSecond(100.0);

// Where a function that grows is nought, by bisection; none where that is beyond the ends.
template <class Function>
std::optional<double> RootBetween(double low, double high, const Function& function) {
  if (function(low) > 0 || function(high) < 0) return std::nullopt;
  while (high - low > kPrecision) {
    const double middle = (low + high) / 2;
    (function(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

// How many times as long, or as short: at least 1.
std::string TimesText(double log_ratio) { return NumberText(std::exp(std::abs(log_ratio))); }

// "slower by a factor of 1.6".
std::string SpeedText(double log_ratio) {
  return (log_ratio > 0 ? "slower by a factor of " : "faster by a factor of ") +
         TimesText(log_ratio);
}

// The rate that a link was sold with, where what was found may be it: libraries reach as little as
// 0.57 of one (docs/explanation/step-model.md).
std::optional<DataRate<>> SoldAs(DataRate<> rate) {
  constexpr double kWithin = 0.43;
  const DataRate<> nominal = NominalRate(rate);
  if (std::abs(rate / nominal - 1) > kWithin) return std::nullopt;
  return nominal;
}

// Numbers for names, in the order of their first appearance.
class Numbering {
 public:
  double operator()(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<double>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, double> numbers_;
};

// All that is stated of a run but its times: equal keys are the same experiment.
PlanKey KeyOf(const Run& run, Numbering* names) {
  const Plan& plan = run.plan;
  PlanKey key = StatedKey(plan);
  key.insert(key.begin(), {(*names)(run.workload), (*names)(run.device)});
  key.push_back(static_cast<double>(plan.placement.size()));
  for (const int devices : plan.placement) key.push_back(devices);
  for (const std::string& host : plan.hosts) key.push_back((*names)(host));
  return key;
}

// The fitted model of each workload on each device, made when it is first asked for. Those of the
// last ones asked for are kept, because each has the covariance of all hosts.
class Models {
 public:
  Models(const CalibrationProblem& problem, const CalibrationOutcome& outcome)
      : problem_(problem), excerpts_(outcome.cluster) {}

  const BelievedModel& Of(const Run& run) {
    const std::pair<std::string, std::string> key(run.workload, run.device);
    const auto known = models_.find(key);
    if (known != models_.end()) return known->second;
    if (kept_ > kMostKept) {
      models_.clear();
      kept_ = 0;
    }
    const Workload& workload = problem_.workloads.at(run.workload);
    const BelievedModel& model =
        models_
            .try_emplace(key, excerpts_.Of(workload, run.device), workload,
                         DataSheetOf(problem_.devices, run.device), run.device)
            .first->second;
    kept_ += model.belief().log_covariance().size();
    return model;
  }

 private:
  static constexpr Eigen::Index kMostKept = 5'000'000;  // covariances: 40 MB

  const CalibrationProblem& problem_;
  Excerpts excerpts_;
  std::map<std::pair<std::string, std::string>, BelievedModel> models_;
  Eigen::Index kept_ = 0;
};

// Runs of one experiment.
struct Experiment {
  std::vector<std::size_t> runs;
  std::vector<std::size_t> contradictory;  // those of them to report as such
  double log_spread = 0;                   // ln(longest / shortest), where some are contradictory
  std::optional<double> sync_share;        // of the predicted step, once it is known
};

double LogStep(const Run& run) { return std::log(run.step_time.in(kSeconds)); }

void FindContradiction(const CalibrationProblem& problem, Experiment* experiment) {
  std::vector<std::size_t> sorted = experiment->runs;
  const auto log_step = [&](std::size_t i) { return LogStep(problem.runs[i]); };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return log_step(a) < log_step(b); });
  std::vector<std::size_t> ends;  // of the lots
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const double gap = log_step(sorted[i]) - log_step(sorted[i - 1]);
    if (gap >= std::log(kContradiction)) ends.push_back(i);
  }
  if (ends.empty()) return;
  ends.push_back(sorted.size());
  const double majority = kLargeMajority * static_cast<double>(sorted.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (static_cast<double>(end - begin) < majority) {
      experiment->contradictory.insert(experiment->contradictory.end(),
                                       sorted.begin() + static_cast<long>(begin),
                                       sorted.begin() + static_cast<long>(end));
    }
    begin = end;
  }
  experiment->log_spread = log_step(sorted.back()) - log_step(sorted.front());
}

// Those of one workload on one device follow each other, in the order of their first runs.
std::vector<Experiment> GroupRuns(const CalibrationProblem& problem) {
  Numbering names;
  std::map<PlanKey, std::size_t> index;
  std::vector<Experiment> experiments;
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    if (problem.runs[i].stopped) continue;
    const auto [it, is_new] = index.try_emplace(KeyOf(problem.runs[i], &names), experiments.size());
    if (is_new) experiments.emplace_back();
    experiments[it->second].runs.push_back(i);
  }
  for (Experiment& experiment : experiments) FindContradiction(problem, &experiment);
  const auto of = [&](const Experiment& experiment) {
    const Run& run = problem.runs[experiment.runs.front()];
    return std::tie(run.workload, run.device);
  };
  std::stable_sort(experiments.begin(), experiments.end(),
                   [&](const Experiment& a, const Experiment& b) { return of(a) < of(b); });
  return experiments;
}

double SyncShareOf(const CalibrationProblem& problem, Models* models, Experiment* experiment) {
  if (!experiment->sync_share) {
    const Run& run = problem.runs[experiment->runs.front()];
    experiment->sync_share = models->Of(run).Evaluate(run.plan).sync_share;
  }
  return *experiment->sync_share;
}

// Scatter of workloads with contradictory runs, without these; by scope.
std::map<std::string, Scatter> ScatterWithoutContradictions(const CalibrationProblem& problem,
                                                            const CalibrationOutcome& outcome,
                                                            Models* models,
                                                            std::vector<Experiment>* experiments) {
  const auto scope_of = [&](const Experiment& experiment) {
    const Run& run = problem.runs[experiment.runs.front()];
    return ScopeOf(run, problem.workloads);
  };
  std::map<std::string, std::vector<ScatterRow>> rows;
  for (const Experiment& experiment : *experiments) {
    if (!experiment.contradictory.empty()) rows[scope_of(experiment)];
  }
  if (rows.empty()) return {};
  for (Experiment& experiment : *experiments) {
    const auto of_scope = rows.find(scope_of(experiment));
    if (of_scope == rows.end()) continue;
    const std::set<std::size_t> left_out(experiment.contradictory.begin(),
                                         experiment.contradictory.end());
    for (const std::size_t i : experiment.runs) {
      if (left_out.count(i) > 0) continue;
      of_scope->second.push_back(
          {outcome.residuals[i].log_ratio, SyncShareOf(problem, models, &experiment)});
    }
  }
  std::map<std::string, Scatter> result;
  for (const auto& [scope, own] : rows) {
    result[scope] = EstimateScatter(own, {kStepLogSd, kStepLogSd});
  }
  return result;
}

// Rows among few, each of which is judged by the scatter of the others: of its workload, drawn
// towards that of all. None where they are many, or too few to tell.
class FewRows {
 public:
  FewRows(const CalibrationProblem& problem, const CalibrationOutcome& outcome, Models* models,
          std::vector<Experiment>* experiments) {
    if (problem.runs.size() > kFewRows || problem.runs.size() < kFewestRows) return;
    for (Experiment& experiment : *experiments) {
      for (const std::size_t i : experiment.runs) {
        const ScatterRow row = {outcome.residuals[i].log_ratio,
                                SyncShareOf(problem, models, &experiment)};
        rows_.push_back({i, ScopeOf(problem.runs[i], problem.workloads), row});
      }
    }
  }

  std::optional<Scatter> OfOthers(std::size_t run, const std::string& scope) const {
    if (rows_.empty()) return std::nullopt;
    std::vector<ScatterRow> all;
    std::vector<ScatterRow> own;
    for (const Row& other : rows_) {
      if (other.run == run) continue;
      all.push_back(other.row);
      if (other.scope == scope) own.push_back(other.row);
    }
    return EstimateScatter(own, EstimateScatter(all, {kStepLogSd, kStepLogSd}));
  }

 private:
  struct Row {
    std::size_t run = 0;
    std::string scope;
    ScatterRow row;
  };
  std::vector<Row> rows_;
};

double ScatterAt(const Calibration& calibration, const std::string& scope, double sync_share) {
  const std::optional<Scatter> scatter = calibration.ScatterOf(scope);
  return scatter ? scatter->At(sync_share) : calibration.residual_log_sd;
}

// |ln(measured / predicted)| up to which a row of that scatter is none.
double LeastSuspicious(double scatter) {
  return std::clamp(kScattersOff * scatter, std::log(kLeastRowFactor), std::log(kMostFactor));
}

struct RowOff {
  std::size_t run = 0;
  double log_ratio = 0;
  double severity = 0;
  double scatter = 0;
  double sync_share = 0;
  // ln(longest / shortest) of the plan's runs, where the row is one of a contradiction.
  std::optional<double> log_spread;
};

// Whether the plan exchanges something over a network.
bool UsesNetwork(const Plan& plan) {
  if (!TraitsOf(plan.strategy).exchanges) return false;
  return plan.nodes() > 1 || (UsesServers(plan.strategy) && !plan.server.colocated);
}

// Looks for what one row behaves like.
class Diagnosis {
 public:
  // `accumulations`: those of all runs.
  Diagnosis(const CalibrationProblem& problem, const BelievedModel& model,
            const std::set<int>& accumulations, const RowOff& candidate)
      : cluster_(problem.cluster),
        model_(model),
        accumulations_(accumulations),
        row_(candidate),
        run_(problem.runs[candidate.run]),
        plan_(run_.plan),
        log_measured_(LogStep(run_)),
        met_(kScattersMet * std::min(ScatterOfPrediction(model, run_.plan, candidate.scatter),
                                     kLargestScatterMet)) {}

  std::string Cause() const {
    std::string cause = Joined(ErrorsOfRecord());
    if (cause.empty()) cause = OtherLink();
    if (cause.empty()) cause = OtherSpeed();
    if (row_.log_spread) {
      cause += "; runs of this plan differ by a factor of " + TimesText(*row_.log_spread);
      if (plan_.hosts.empty() && plan_.nodes() > 1) cause += ": name the hosts of each";
    }
    return cause;
  }

 private:
  // Scatter of a step, with what the fit does not know of the plan: it has learnt nothing from a
  // row that is far off.
  static double ScatterOfPrediction(const BelievedModel& model, const Plan& plan, double scatter) {
    const Eigen::VectorXd gradient = model.Evaluate(plan).gradient;
    const double variance = gradient.dot(model.belief().log_covariance() * gradient);
    return std::sqrt(scatter * scatter + std::max(variance, 0.0));
  }

  // ln(measured / what the model says of `plan`)
  double LogRatio(const Plan& plan) const { return log_measured_ - model_.Evaluate(plan).log_step; }

  // Whether a factor like the row's is more likely the network's than a device's.
  bool MayBeNetwork() const {
    return row_.log_spread || row_.sync_share >= kNetworkShare ||
           std::abs(row_.log_ratio) >= std::log(kNetworkFactor);
  }

  bool IsMetByFit() const { return std::abs(row_.log_ratio) <= met_; }

  bool Explains(double log_ratio) const {
    return !IsMetByFit() && std::abs(log_ratio) <= met_ &&
           std::abs(log_ratio) * kTimesCloser <= std::abs(row_.log_ratio);
  }

  static std::string Joined(const std::vector<std::string>& causes) {
    std::string joined;
    for (const std::string& cause : causes) joined += (joined.empty() ? "" : ", or ") + cause;
    return joined;
  }

  // All that explain the row, and with them what else could have slowed it as much.
  std::vector<std::string> ErrorsOfRecord() const {
    std::vector<std::string> causes;
    if (IsMetByFit()) return causes;
    for (const auto& look : {&Diagnosis::OtherUnit, &Diagnosis::RateForTime,
                             &Diagnosis::OtherAccumulation, &Diagnosis::OtherBatch}) {
      std::string cause = (this->*look)();
      if (!cause.empty()) causes.push_back(std::move(cause));
    }
    if (causes.empty() || row_.log_ratio < 0) return causes;
    if (!MayBeNetwork()) {
      causes.emplace_back("like a straggling node or a throttled device");
      return causes;
    }
    for (LinkFacts Plan::*link : Links()) {
      if (LossOf(link) > 0) continue;
      const std::optional<DataRate<>> found = RateWithinPort(link);
      const std::optional<DataRate<>> nominal = found ? SoldAs(*found) : std::nullopt;
      if (!nominal || *nominal < kSlowestInUse || IsBeyondPort(link, *nominal)) continue;
      causes.push_back("behaves like a " + LinkName(link) + " of " + RateText(*nominal));
      break;
    }
    return causes;
  }

  std::string OtherUnit() const {
    struct Mistake {
      double factor;
      const char* cause;
    };
    constexpr Mistake kMistakes[] = {
        {1000, "looks like milliseconds given as seconds"},
        {1e-3, "looks like seconds divided by 1000 once too often"},
        {60, "looks like seconds multiplied by 60 once too often"},
        {1 / 60.0, "looks like minutes given as seconds"},
    };
    for (const Mistake& mistake : kMistakes) {
      if (Explains(row_.log_ratio - std::log(mistake.factor))) return mistake.cause;
    }
    return "";
  }

  std::string RateForTime() const {
    const double log_predicted = log_measured_ - row_.log_ratio;
    const auto is_rate_of = [&](double samples) {
      return Explains(log_measured_ - (std::log(samples) - log_predicted));
    };
    if (is_rate_of(1)) return "looks like steps per second instead of a time";
    if (is_rate_of(plan_.global_batch())) {
      return "looks like throughput instead of a time: samples per second";
    }
    if (is_rate_of(plan_.global_batch() / plan_.workers())) {
      return "looks like throughput instead of a time: samples per second of one worker";
    }
    return "";
  }

  std::string OtherAccumulation() const {
    const int stated = plan_.accumulation_steps;
    const std::string of_stated = " of a step of " + std::to_string(stated) + " micro-steps";
    if (stated > 1 && Explains(row_.log_ratio + std::log(stated))) {
      return "looks like the time of one micro-step" + of_stated;
    }
    if (stated > 1 && Explains(row_.log_ratio - std::log(stated))) {
      return "looks like the time" + of_stated + " taken once for each of them";
    }
    std::optional<int> best;
    double best_ratio = std::numeric_limits<double>::infinity();
    const auto look = [&](int steps) {
      if (steps == stated) return;
      Plan other = plan_;
      other.accumulation_steps = steps;
      const double ratio = LogRatio(other);
      if (!Explains(ratio) || std::abs(ratio) >= std::abs(best_ratio)) return;
      best = steps;
      best_ratio = ratio;
    };
    look(1);
    for (const int steps : accumulations_) look(steps);
    if (!best) return "";
    if (*best == 1) return "looks like the time of one micro-step" + of_stated;
    return "looks like a step of " + std::to_string(*best) + " accumulated micro-steps, where " +
           std::to_string(stated) + (stated == 1 ? " is stated" : " are stated");
  }

  std::string OtherBatch() const {
    const std::string batch = "looks like a local batch of ";
    const std::string stated = ": local_batch " + std::to_string(plan_.local_batch) + " may be ";
    struct Sharing {
      int parts;
      std::string of_all;
    };
    const int workers = plan_.workers();
    const int steps = plan_.accumulation_steps;
    for (const Sharing& sharing : {Sharing{workers, "all " + std::to_string(workers) + " workers"},
                                   Sharing{steps, "all " + std::to_string(steps) + " micro-steps"},
                                   Sharing{workers * steps, "all workers and micro-steps"}}) {
      if (sharing.parts <= 1) continue;
      Plan other = plan_;
      if (plan_.local_batch % sharing.parts == 0) {
        other.local_batch = plan_.local_batch / sharing.parts;
        if (Explains(LogRatio(other))) {
          return batch + std::to_string(other.local_batch) + stated + "the batch of " +
                 sharing.of_all;
        }
      }
      if (plan_.local_batch <= std::numeric_limits<int>::max() / sharing.parts) {
        other.local_batch = plan_.local_batch * sharing.parts;
        if (Explains(LogRatio(other))) {
          return batch + std::to_string(other.local_batch) + stated +
                 "a batch already divided among " + sharing.of_all;
        }
      }
    }
    return "";
  }

  // The rate at which the model gives the measured time; none where no rate does.
  std::optional<DataRate<>> RateOf(LinkFacts Plan::*link) const {
    const ParameterSpec& spec = kClusterParameterSpecs[kLinkBandwidth];
    Plan plan = plan_;
    // Steps shorten with the rate, so that the ratio grows with it.
    const std::optional<double> found =
        RootBetween(spec.log_low(), spec.log_high(), [&](double log_rate) {
          (plan.*link).bandwidth = DataRate<>::FromSi(std::exp(log_rate));
          return LogRatio(plan);
        });
    return found ? std::optional(DataRate<>::FromSi(std::exp(*found))) : std::nullopt;
  }

  // The rate of the link as the row or the cluster file states it, with who says it.
  struct StatedRate {
    std::optional<DataRate<>> rate;
    const char* by = "the row";
  };
  StatedRate StatedRateOf(LinkFacts Plan::*link) const {
    if ((plan_.*link).bandwidth) return {(plan_.*link).bandwidth};
    const bool servers = link == &Plan::server_link;
    StatedRate stated = {(servers ? cluster_.server_link : cluster_.link).bandwidth,
                         "the cluster file"};
    if (servers) return stated;
    // The slowest of the hosts' own links.
    const std::unordered_set<std::string_view> named(plan_.hosts.begin(), plan_.hosts.end());
    for (const Host& host : cluster_.hosts) {
      if (!host.link.bandwidth || named.count(host.name) == 0) continue;
      stated.rate = stated.rate ? Min(*stated.rate, *host.link.bandwidth) : *host.link.bandwidth;
    }
    return stated;
  }

  // What a row states may be mistaken, but no link is faster than the port of the cluster file.
  bool IsBeyondPort(LinkFacts Plan::*link, DataRate<> rate) const {
    if ((plan_.*link).bandwidth) return false;
    const StatedRate port = StatedRateOf(link);
    return port.rate && rate > *port.rate;
  }

  std::optional<DataRate<>> RateWithinPort(LinkFacts Plan::*link) const {
    std::optional<DataRate<>> rate = RateOf(link);
    if (rate && IsBeyondPort(link, *rate)) rate.reset();
    return rate;
  }

  static std::string LinkName(LinkFacts Plan::*link) {
    return link == &Plan::server_link ? "server link" : "link";
  }

  std::string BitsForBytes(LinkFacts Plan::*link) const {
    constexpr double kBitsPerByte = 8;
    if (!(plan_.*link).bandwidth) return "";
    const DataRate<> stated = *(plan_.*link).bandwidth;
    for (const double factor : {kBitsPerByte, 1 / kBitsPerByte}) {
      Plan other = plan_;
      (other.*link).bandwidth = stated * factor;
      if (!Explains(LogRatio(other))) continue;
      return "behaves like a " + LinkName(link) + " of " + RateText(stated * factor) +
             ", where the row says " + RateText(stated) + ": bits and bytes mixed up";
    }
    return "";
  }

  // The loss of the link, where the row or the cluster file states one.
  double LossOf(LinkFacts Plan::*link) const {
    const bool servers = link == &Plan::server_link;
    return (servers ? ServerLinkOf(cluster_, plan_) : LinkOf(cluster_, plan_)).loss.value_or(0);
  }

  // As "link that loses 2 %"; empty where no loss explains the row.
  std::string LossText(LinkFacts Plan::*link) const {
    Plan plan = plan_;
    // Steps lengthen with the loss.
    const std::optional<double> found = RootBetween(
        std::log(kLeastLossLookedFor), std::log(kMostLossLookedFor), [&](double log_loss) {
          (plan.*link).loss = std::exp(log_loss);
          return -LogRatio(plan);
        });
    if (!found) return "";
    return LinkName(link) + " that loses " + NumberText(100 * std::exp(*found)) + " %, where " +
           NumberText(100 * LossOf(link)) + " % are stated";
  }

  // As "link of 100 Mbit/s"; empty where no rate explains the row.
  std::string LinkText(LinkFacts Plan::*link) const {
    constexpr double kFarBelow = 3;
    const std::optional<DataRate<>> found = RateWithinPort(link);
    if (!found) return "";
    const DataRate<> nominal = SoldAs(*found).value_or(*found);
    const DataRate<> rate = IsBeyondPort(link, nominal) ? *found : nominal;
    std::string text = LinkName(link) + " of " + RateText(rate);
    const StatedRate stated = StatedRateOf(link);
    if (!stated.rate) return text;
    const bool far_below = rate * kFarBelow < *stated.rate;
    if (far_below || rate > *stated.rate * kFarBelow) {
      text += std::string("; ") + stated.by + " says " + RateText(*stated.rate);
      if (far_below) text += ": look at the cable and the port";
    }
    return text;
  }

  std::vector<LinkFacts Plan::*> Links() const {
    std::vector<LinkFacts Plan::*> links;
    if (UsesNetwork(plan_)) links.push_back(&Plan::link);
    if (UsesNetwork(plan_) && plan_.has_server_link()) links.push_back(&Plan::server_link);
    return links;
  }

  std::string OtherLink() const {
    for (LinkFacts Plan::*link : Links()) {
      std::string cause = BitsForBytes(link);
      if (!cause.empty()) return cause;
    }
    if (!MayBeNetwork()) return "";
    for (LinkFacts Plan::*link : Links()) {
      const std::string text = LossOf(link) > 0 ? LossText(link) : LinkText(link);
      if (!text.empty()) return "behaves like a " + text;
    }
    return "";
  }

  std::string OtherSpeed() const {
    if (IsMetByFit()) return "behaves as the model says";
    if (row_.log_ratio > 0) {
      const std::string cause = SpeedText(row_.log_ratio) +
                                " than its like: a straggling node, a device that is throttled or "
                                "shared, ";
      for (LinkFacts Plan::*link : Links()) {
        if (LossOf(link) > 0) continue;
        const std::optional<DataRate<>> rate = RateWithinPort(link);
        if (!rate) continue;
        return cause + "steps of the warm-up, or a " + LinkName(link) + " of " + RateText(*rate);
      }
      return cause + "or steps of the warm-up";
    }
    const Plan alone = WithStrategy(plan_, Strategy::kNone);
    if (!model_.workload().communication_only && LogRatio(alone) < -met_) {
      return "faster than the compute alone: fewer samples, another precision or another device?";
    }
    return SpeedText(row_.log_ratio) +
           " than the model says: compressed gradients, another strategy or fewer nodes?";
  }

  const Cluster& cluster_;
  const BelievedModel& model_;
  const std::set<int>& accumulations_;
  const RowOff& row_;
  const Run& run_;
  const Plan& plan_;
  double log_measured_;
  double met_;  // |ln| within which an explanation meets the row
};

std::vector<RowOff> FindRowsOff(const CalibrationProblem& problem,
                                const CalibrationOutcome& outcome, Models* models) {
  std::vector<Experiment> experiments = GroupRuns(problem);
  const std::map<std::string, Scatter> cleared =
      ScatterWithoutContradictions(problem, outcome, models, &experiments);
  const FewRows few(problem, outcome, models, &experiments);
  std::vector<RowOff> candidates;
  for (Experiment& experiment : experiments) {
    const std::set<std::size_t> contradictory(experiment.contradictory.begin(),
                                              experiment.contradictory.end());
    for (const std::size_t i : experiment.runs) {
      const double log_ratio = outcome.residuals[i].log_ratio;
      const bool contradicts = contradictory.count(i) > 0;
      if (!contradicts && std::abs(log_ratio) <= std::log(kLeastRowFactor)) continue;
      RowOff candidate;
      candidate.run = i;
      candidate.log_ratio = log_ratio;
      candidate.severity = std::abs(log_ratio);
      candidate.sync_share = SyncShareOf(problem, models, &experiment);
      const Run& run = problem.runs[i];
      const std::string scope = ScopeOf(run, problem.workloads);
      candidate.scatter = ScatterAt(*outcome.cluster.calibration, scope, candidate.sync_share);
      const auto other = cleared.find(scope);
      if (other != cleared.end()) {
        candidate.scatter = std::min(candidate.scatter, other->second.At(candidate.sync_share));
      }
      if (const std::optional<Scatter> others = few.OfOthers(i, scope)) {
        const double least = std::log(kLeastFactorOfFew) / kScattersOff;
        candidate.scatter =
            std::min(candidate.scatter, std::max(least, others->At(candidate.sync_share)));
      }
      if (contradicts) {
        candidate.log_spread = experiment.log_spread;
        candidate.severity = std::max(candidate.severity, experiment.log_spread / 2);
      } else if (std::abs(log_ratio) <= LeastSuspicious(candidate.scatter)) {
        continue;
      }
      candidates.push_back(candidate);
    }
  }
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    const Run& run = problem.runs[i];
    const double log_ratio = outcome.residuals[i].log_ratio;  // 0 where a bound is kept
    if (!run.stopped || log_ratio <= std::log(kLeastRowFactor)) continue;
    RowOff candidate;
    candidate.run = i;
    candidate.log_ratio = candidate.severity = log_ratio;
    candidate.sync_share = models->Of(run).Evaluate(run.plan).sync_share;
    candidate.scatter = ScatterAt(*outcome.cluster.calibration, ScopeOf(run, problem.workloads),
                                  candidate.sync_share);
    if (log_ratio > LeastSuspicious(candidate.scatter)) candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const RowOff& a, const RowOff& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    if (std::abs(a.log_ratio) != std::abs(b.log_ratio)) {
      return std::abs(a.log_ratio) > std::abs(b.log_ratio);
    }
    return a.run < b.run;
  });
  return candidates;
}

}  // namespace

std::vector<Suspect> FindSuspects(const CalibrationProblem& problem,
                                  const CalibrationOutcome& outcome) {
  if (!outcome.IsUsable() || !outcome.cluster.calibration) return {};
  Models models(problem, outcome);
  const std::vector<RowOff> candidates = FindRowsOff(problem, outcome, &models);
  std::set<int> accumulations;
  if (!candidates.empty()) {
    for (const Run& run : problem.runs) accumulations.insert(run.plan.accumulation_steps);
  }
  std::vector<Suspect> suspects;
  for (const RowOff& candidate : candidates) {
    Suspect suspect{candidate.run, std::exp(candidate.log_ratio), ""};
    if (problem.runs[candidate.run].stopped) {
      suspect.cause = "it hung, or took longer by " + TimesText(candidate.log_ratio) +
                      " at least than the other runs let expect; a run that hung is no bound of a "
                      "step";
    } else if (suspects.size() < kMaxDiagnosed) {
      suspect.cause =
          Diagnosis(problem, models.Of(problem.runs[candidate.run]), accumulations, candidate)
              .Cause();
    } else {
      suspect.cause = SpeedText(candidate.log_ratio) + " than the model says";
    }
    suspects.push_back(std::move(suspect));
  }
  return suspects;
}

}  // namespace stepcast
