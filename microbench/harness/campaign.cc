#include "microbench/harness/campaign.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/record/point_samples.h"

namespace stepcast {
namespace {

// Below this share of its wall time a run was not alone on the device.
constexpr double kAlone = 0.97;
// Beyond this multiple of its best time the reference work ran at a lower clock.
constexpr double kSlowedReference = 1.10;
// The reference is timed again when the last time is older.
constexpr double kReferenceAge = 0.25;
constexpr int kReferenceRuns = 3;
// Flagged points are visited again so often.
constexpr int kMostRepeats = 2;

struct Condition {
  bool busy = false;
  bool throttled = false;
  double reference_s = 0;
};

class Walk {
 public:
  Walk(const StateSpace& space, Backend* backend, Journal* journal, const CampaignOptions& options,
       const CampaignHooks& hooks)
      : space_(space),
        backend_(backend),
        journal_(journal),
        options_(options),
        hooks_(hooks),
        start_(hooks.now()),
        last_reference_(-std::numeric_limits<double>::infinity()) {
    for (const MeasuredSamples& old : journal->before().samples) {
      earlier_[old.point].Add(old);
      if (old.reference_s > 0) best_reference_ = std::min(best_reference_, old.reference_s);
    }
    points_.reserve(space.states.size());
    for (const State& state : space.states) {
      std::vector<PointSamples>& passes = points_.emplace_back();
      for (const TrainingPass pass : state.passes) {
        const auto it = earlier_.find(state.Point(pass));
        passes.push_back(it == earlier_.end() ? PointSamples() : it->second);
        taken_over_ += passes.back().empty() ? 0 : 1;
      }
      runs_.emplace_back();
      for (const PointSamples& point : passes) runs_.back().push_back(point.summary().count);
    }
    repeats_.assign(space.states.size(), 0);
    visit_cost_.assign(space.states.size(), 0.0);
  }

  CampaignOutcome Run() {
    CampaignEnd end = VisitAll();
    if (end == CampaignEnd::kKnown) end = Refine();
    return Outcome(end);
  }

 private:
  double Elapsed() const { return hooks_.now() - start_; }
  bool Spent() const { return Elapsed() >= options_.budget_s; }

  void Report(std::size_t visited, bool refining, double worst, const State& state) const {
    if (!hooks_.progress) return;
    CampaignProgress progress;
    progress.visited = visited;
    progress.states = space_.states.size();
    progress.elapsed_s = Elapsed();
    progress.refining = refining;
    progress.worst_error = worst;
    progress.state = &state;
    const double budget_left = std::max(0.0, options_.budget_s - progress.elapsed_s);
    progress.left_s = budget_left;
    if (!refining && walked_ > 0) {
      // The smaller states remain: this is an upper bound, and a falling one.
      const double each = walk_s_ / static_cast<double>(walked_);
      progress.left_s =
          std::min(budget_left, each * static_cast<double>(progress.states - visited));
    }
    hooks_.progress(progress);
  }

  bool Flagged(std::size_t s, std::size_t p) const {
    return points_[s][p].busy() || points_[s][p].throttled();
  }
  bool Full(std::size_t s, std::size_t p) const {
    return runs_[s][p] >= static_cast<std::size_t>(options_.most_runs);
  }
  std::vector<std::size_t> Unknown(std::size_t s) const {
    std::vector<std::size_t> passes;
    for (std::size_t p = 0; p < points_[s].size(); ++p) {
      if (points_[s][p].empty()) passes.push_back(p);
    }
    return passes;
  }
  std::vector<std::size_t> Improvable(std::size_t s) const {
    std::vector<std::size_t> passes;
    for (std::size_t p = 0; p < points_[s].size(); ++p) {
      if (points_[s][p].measured() && (Flagged(s, p) || !Full(s, p))) passes.push_back(p);
    }
    return passes;
  }

  CampaignEnd VisitAll() {
    for (std::size_t s = 0; s < space_.states.size(); ++s) {
      const std::vector<std::size_t> unknown = Unknown(s);
      if (unknown.empty()) continue;
      if (hooks_.stop()) return CampaignEnd::kStopped;
      if (Spent()) return CampaignEnd::kBudgetSpent;
      Report(s, false, 0, space_.states[s]);
      const double before = Elapsed();
      if (!Visit(s, unknown, options_.first_runs)) return CampaignEnd::kStopped;
      walk_s_ += Elapsed() - before;
      ++walked_;
    }
    return CampaignEnd::kKnown;
  }

  CampaignEnd Refine() {
    for (;;) {
      if (hooks_.stop()) return CampaignEnd::kStopped;
      if (Spent()) return CampaignEnd::kBudgetSpent;
      double worst = 0;
      const std::optional<std::size_t> next = MostTelling(&worst);
      if (!next) {
        return worst <= options_.relative_error ? CampaignEnd::kKnown : CampaignEnd::kExhausted;
      }
      Report(space_.states.size(), true, worst, space_.states[*next]);
      if (!Visit(*next, Improvable(*next), options_.more_runs)) return CampaignEnd::kStopped;
    }
  }

  // The state whose next visit cuts the variance of a step's share most for its cost; flagged ones
  // come first. None where every step is known well enough, or nothing can be improved.
  std::optional<std::size_t> MostTelling(double* worst) {
    const std::vector<SumOutcome> sums = Sums();
    for (const SumOutcome& sum : sums) *worst = std::max(*worst, sum.relative_error);
    std::optional<std::size_t> flagged;
    for (std::size_t s = 0; s < space_.states.size(); ++s) {
      for (std::size_t p = 0; p < points_[s].size(); ++p) {
        if (Flagged(s, p) && repeats_[s] < kMostRepeats &&
            (!flagged || repeats_[s] < repeats_[*flagged])) {
          flagged = s;
        }
      }
    }
    if (flagged) {
      ++repeats_[*flagged];
      return flagged;
    }
    std::optional<std::size_t> best;
    double best_gain = 0;
    for (std::size_t s = 0; s < space_.states.size(); ++s) {
      const State& state = space_.states[s];
      double gain = 0;
      double cost = 0;
      for (std::size_t p = 0; p < state.passes.size(); ++p) {
        const PointSamples& point = points_[s][p];
        if (!point.measured()) continue;
        const Summary& summary = point.summary();
        // Runs that were flagged count too: where they are many, more of them promise little.
        const auto n = static_cast<double>(runs_[s][p]);
        if (Full(s, p)) continue;
        cost += summary.median * options_.more_runs;
        for (const State::Use& use : state.uses) {
          const SumOutcome& sum = sums[use.sum];
          if (sum.relative_error <= options_.relative_error) continue;
          const double part =
              use.count[p] * summary.median * std::min(1.0, summary.relative_error) / sum.seconds;
          gain += part * part * options_.more_runs / (n + options_.more_runs);
        }
      }
      gain /= std::max(cost, visit_cost_[s]) + options_.least_visit_s;
      if (gain > best_gain) {
        best_gain = gain;
        best = s;
      }
    }
    return best;
  }

  Condition Check() {
    Condition condition;
    if (hooks_.now() - last_reference_ >= kReferenceAge) {
      double best = std::numeric_limits<double>::infinity();
      double own = 0;
      for (int i = 0; i < kReferenceRuns; ++i) {
        const TimedRun run = backend_->RunReference();
        best = std::min(best, run.seconds);
        own = std::max(own, run.own_share);
      }
      last_reference_ = hooks_.now();
      reference_ = best;
      reference_alone_ = own >= kAlone;
      best_reference_ = std::min(best_reference_, best);
    }
    condition.reference_s = reference_;
    condition.busy = !reference_alone_;
    condition.throttled = (reference_alone_ && reference_ > kSlowedReference * best_reference_) ||
                          !backend_->ThrottleReason().empty();
    return condition;
  }

  // False where it was stopped before all passes were written.
  bool Visit(std::size_t s, const std::vector<std::size_t>& which, int runs) {
    const State& state = space_.states[s];
    const double begin = Elapsed();
    const Condition condition = Check();
    std::vector<TrainingPass> passes;
    for (const std::size_t p : which) passes.push_back(state.passes[p]);
    const Preparation prepared =
        backend_->Prepare(state.operation, state.batch, state.precision, passes);
    for (const std::size_t p : which) {
      if (Spent() && p != which.front()) break;
      MeasuredSamples samples;
      samples.point = state.Point(state.passes[p]);
      samples.status = prepared.status;
      samples.reason = prepared.reason;
      samples.reference_s = condition.reference_s;
      samples.at = hooks_.time();
      if (prepared.status == PointStatus::kMeasured) {
        const int most = options_.most_runs - static_cast<int>(runs_[s][p]);
        if (!Sample(prepared.trial.get(), state.passes[p], runs, most, condition, &samples)) {
          return false;
        }
        samples.algorithm = prepared.trial->Algorithm(state.passes[p]);
      }
      journal_->Append(samples);
      runs_[s][p] += samples.seconds.size();
      // Where it cannot be prepared any more, there is no use in trying again.
      if (prepared.status != PointStatus::kMeasured) {
        runs_[s][p] = static_cast<std::size_t>(options_.most_runs);
        repeats_[s] = kMostRepeats;
      }
      points_[s][p].Add(samples);
    }
    visit_cost_[s] = Elapsed() - begin;
    return true;
  }

  bool Sample(Trial* trial, TrainingPass pass, int runs, int most, const Condition& condition,
              MeasuredSamples* samples) {
    constexpr std::size_t kLeastForError = 3;
    double spent = 0;
    for (int i = 0; i < options_.warm_up; ++i) {
      if (hooks_.stop()) return false;
      spent += trial->Run(pass).seconds;
      if (spent > options_.most_visit_s / 2 || Spent()) break;
    }
    std::vector<double> own;
    spent = 0;
    for (;;) {
      if (hooks_.stop() && samples->seconds.size() < kLeastForError) return false;
      const TimedRun run = trial->Run(pass);
      samples->seconds.push_back(run.seconds);
      own.push_back(run.own_share);
      spent += run.seconds;
      const std::size_t n = samples->seconds.size();
      if (n < kLeastForError) continue;
      if (hooks_.stop() || Spent() || spent >= options_.most_visit_s) break;
      if (static_cast<int>(n) >= most) break;
      if (n >= static_cast<std::size_t>(runs) && spent >= options_.least_visit_s) break;
    }
    samples->busy = condition.busy || Summarise(std::move(own)).median < kAlone;
    samples->throttled = condition.throttled;
    return true;
  }

  std::vector<SumOutcome> Sums() const {
    std::vector<SumOutcome> sums(space_.sums.size());
    std::vector<double> variances(sums.size(), 0.0);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].sum = space_.sums[i];
    for (std::size_t s = 0; s < space_.states.size(); ++s) {
      const State& state = space_.states[s];
      for (const State::Use& use : state.uses) {
        SumOutcome& sum = sums[use.sum];
        for (std::size_t p = 0; p < state.passes.size(); ++p) {
          if (use.count[p] == 0) continue;
          const PointSamples& point = points_[s][p];
          ++sum.points;
          sum.out_of_memory += point.status() == PointStatus::kOutOfMemory ? 1 : 0;
          sum.unsupported += point.status() == PointStatus::kUnsupported ? 1 : 0;
          if (!point.measured()) continue;
          ++sum.measured;
          const double part = use.count[p] * point.summary().median;
          sum.seconds += part;
          variances[use.sum] += std::pow(part * point.summary().relative_error, 2);
        }
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      // Where nothing can be measured there is nothing to learn.
      const bool hopeless = sums[i].out_of_memory + sums[i].unsupported == sums[i].points;
      sums[i].relative_error = sums[i].measured > 0 ? std::sqrt(variances[i]) / sums[i].seconds
                               : hopeless           ? 0
                                                    : std::numeric_limits<double>::infinity();
    }
    return sums;
  }

  CampaignOutcome Outcome(CampaignEnd end) const {
    CampaignOutcome outcome;
    outcome.end = end;
    outcome.sums = Sums();
    outcome.taken_over = taken_over_;
    outcome.elapsed_s = Elapsed();
    for (const std::vector<PointSamples>& passes : points_) {
      for (const PointSamples& point : passes) {
        ++outcome.points;
        if (point.empty()) {
          ++outcome.missing;
          continue;
        }
        outcome.out_of_memory += point.status() == PointStatus::kOutOfMemory ? 1 : 0;
        outcome.unsupported += point.status() == PointStatus::kUnsupported ? 1 : 0;
        if (!point.measured()) continue;
        ++outcome.measured;
        outcome.busy += point.busy() ? 1 : 0;
        outcome.throttled += point.throttled() ? 1 : 0;
        outcome.outliers += point.summary().outliers;
        outcome.samples += point.summary().count;
      }
    }
    return outcome;
  }

  const StateSpace& space_;
  Backend* backend_;
  Journal* journal_;
  const CampaignOptions& options_;
  const CampaignHooks& hooks_;
  double start_;
  std::map<MeasuredPoint, PointSamples> earlier_;
  std::vector<std::vector<PointSamples>> points_;  // by state, by pass
  std::vector<std::vector<std::size_t>> runs_;     // made for it, flagged ones too
  std::vector<int> repeats_;
  std::vector<double> visit_cost_;
  std::size_t taken_over_ = 0;
  std::size_t walked_ = 0;
  double walk_s_ = 0;
  double last_reference_;
  double reference_ = 0;
  bool reference_alone_ = true;
  double best_reference_ = std::numeric_limits<double>::infinity();
};

}  // namespace

CampaignOutcome RunCampaign(const StateSpace& space, Backend* backend, Journal* journal,
                            const CampaignOptions& options, const CampaignHooks& hooks) {
  return Walk(space, backend, journal, options, hooks).Run();
}

}  // namespace stepcast
