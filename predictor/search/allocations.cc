#include "predictor/search/allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "data/values/numbers.h"
#include "model/statistics/noise_scale.h"

namespace stepcast {
namespace {

// The global batches that one allocation may have.
struct Range {
  double least = 1;
  double most = 1;
  int least_local = 1;        // local batch
  int most_alone = 1;         // of a single micro-step
  int most_accumulating = 1;  // and of several, which may keep whole gradients

  bool empty() const { return most < least || most_alone < least_local; }
};

// Whether a search keeps the rules, to which it may belong that no most is below its least. The
// first that it breaks goes to refuse(tell), where tell() makes the text of it.
template <class Refuse>
bool KeepsRules(const BatchSearch& s, bool most_from_least, const Refuse& refuse) {
  const int least_most = most_from_least ? s.least_global_batch : 1;
  const int least_local_most = most_from_least && s.most_local_batch != 0 ? s.least_local_batch : 0;
  const auto count = [&](const char* field, int value, int least) {
    if (value >= least) return true;
    refuse([&] {
      return QueryProblem{field, std::to_string(value), "is out of range",
                          fmt::format("at least {}", least)};
    });
    return false;
  };
  const auto samples = [&](const char* field, const std::optional<double>& value, double least) {
    constexpr double kMostSamples = 1e15;
    const NumberRange range{least, kMostSamples};
    if (!value || range.Holds(*value)) return true;
    refuse([&] {
      return QueryProblem{field, fmt::format("{}", *value), "is out of range", range.Text()};
    });
    return false;
  };
  if (!count("least_global_batch", s.least_global_batch, 1) ||
      !count("most_global_batch", s.most_global_batch, least_most) ||
      !count("least_local_batch", s.least_local_batch, 1) ||
      !count("most_local_batch", s.most_local_batch, least_local_most) ||
      !count("candidates", s.candidates, 0) || !samples("noise_scale", s.noise_scale, 0) ||
      !samples("initial_batch", s.initial_batch, 1)) {
    return false;
  }
  if (s.noise_scale.has_value() == s.initial_batch.has_value()) return true;
  refuse([&] {
    return QueryProblem{s.noise_scale ? "noise_scale" : "initial_batch", "", "says nothing alone",
                        "noise_scale and initial_batch, or neither"};
  });
  return false;
}

// Samples of a step by the local batch that is chosen: of workers that take it, and of slow ones
// that take what their plan states.
struct StepSamples {
  double choosing = 1;  // workers
  double fixed = 0;     // samples of a micro-step on the others

  StepSamples(const CompiledPlan& compiled, const PlanQuery& query) {
    const int others = compiled.WorkersOfSlowBatch(query);
    choosing = query.workers - others;
    fixed = 1.0 * others * compiled.plan().slow_local_batch.value_or(0);
  }
  double Of(int local_batch, int accumulation_steps) const {
    return (choosing * local_batch + fixed) * accumulation_steps;
  }
  // Fixed samples for each worker that chooses.
  double beside() const { return fixed > 0 ? fixed / choosing : 0; }
};

Range RangeOf(const CompiledPlan& compiled, PlanQuery query, const StepSamples& samples,
              const BatchSearch& search) {
  const auto most_local = [&](int accumulation_steps) {
    query.accumulation_steps = accumulation_steps;
    const int most = compiled.MostLocalBatch(query);
    return search.most_local_batch > 0 ? std::min(most, search.most_local_batch) : most;
  };
  Range range;
  range.least_local = std::max(1, search.least_local_batch);
  range.most_alone = most_local(1);
  range.most_accumulating = search.accumulate ? std::min(most_local(2), range.most_alone) : 0;
  range.least = std::max(1.0 * search.least_global_batch, samples.Of(range.least_local, 1));
  range.most = search.most_global_batch;
  if (range.most_accumulating < 1) {
    range.most = std::min(range.most, samples.Of(range.most_alone, 1));
  }
  return range;
}

// The log-spaced candidates that are tried where limits leave none of the default ones.
constexpr int kFallbackCandidates = 50;
constexpr double kRounding = 1e-9;  // of powers of their ratio

PlanQuery QueryFor(const Allocation& allocation) {
  PlanQuery query;
  query.workers = allocation.workers;
  query.nodes = allocation.nodes;
  query.devices_per_node = allocation.devices_per_node;
  query.servers = allocation.servers;
  query.slow_nodes = allocation.slow_nodes;
  return query;
}

// The search of one allocation. Candidates are answered many at a time.
class Chooser {
 public:
  Chooser(const CompiledPlan& compiled, const Allocation& allocation, const BatchSearch& search)
      : compiled_(compiled),
        search_(search),
        query_(QueryFor(allocation)),
        samples_(compiled, query_),
        range_(RangeOf(compiled, query_, samples_, search)),
        workers_(query_.workers) {
    const Plan& plan = compiled.plan();
    const bool alone = TraitsOf(plan.strategy).asynchronous();
    counted_ = 1 - plan.backup_workers / workers_;
    update_share_ = alone ? 1 / workers_ : counted_;
    if (!worth()) return;
    // 1 / efficiency = constant + update batch x by_batch, so that a goodput takes one division.
    const double all = *search.noise_scale + *search.initial_batch;
    constant_ = *search.noise_scale / all;
    by_batch_ = update_share_ / all;
  }

  BatchChoice Choose() {
    const bool by_default = search_.candidates < 1;
    // Only limits that Recommend does not know may leave none of the default candidates.
    const bool limited = search_.least_global_batch > 1 || search_.least_local_batch > 1 ||
                         search_.most_local_batch > 0 || !search_.accumulate;
    if (by_default) {
      ChooseAmong([this] { TryGrid(); });
      if (best_.local_batch > 0 || !limited) return Finished();
    }
    const int tried = by_default ? kFallbackCandidates : search_.candidates;
    ChooseAmong([this, tried] { TrySpaced(tried); });
    return Finished();
  }

 private:
  static constexpr std::size_t kAtOnce = 64;

  bool worth() const { return search_.noise_scale && search_.initial_batch; }

  // The best of the candidates that `try_all` tries; in a second pass the smallest that is good
  // enough.
  template <class TryAll>
  void ChooseAmong(const TryAll& try_all) {
    enough_ = 0;
    best_ = {};
    own_score_ = 0;
    try_all();
    Answer();
    if (worth() || !(search_.tolerance > 0) || best_.local_batch == 0) return;
    enough_ = std::max(best_.goodput * (1 - search_.tolerance), own_score_ * (1 - kSameScores));
    best_ = {};
    try_all();
    Answer();
  }

  void TryGrid() {
    // By whole samples: a quotient may fall short of what divides the most.
    int most = Whole((search_.most_global_batch - samples_.fixed) / samples_.choosing);
    TrustedBatches trusted;
    if (search_.most_local_batch > 0) {
      most = std::min(most, search_.most_local_batch);
    } else {
      trusted = TrustedBatchesOf(compiled_.calibrated_batches());
    }
    const Plan& plan = compiled_.plan();
    ForEachLocalBatch(trusted, most, plan.local_batch, [&](int batch) {
      const double intervals = std::clamp(search_.most_global_batch / samples_.Of(batch, 1), 1.0,
                                          1.0 * kMostTriedAccumulation);
      ForEachInterval(Whole(intervals), plan.accumulation_steps, [&](int a) {
        const bool own = batch == plan.local_batch && a == plan.accumulation_steps;
        Try(batch, a, own);
      });
    });
  }

  void TrySpaced(int tried) {
    if (range_.empty()) return;
    // Shares are of a worker that chooses, with what is beside it.
    const double beside = samples_.beside();
    const int least_share = Whole(std::ceil(range_.least / samples_.choosing));
    const int alone =
        range_.most_accumulating > 0 ? range_.most_alone : std::numeric_limits<int>::max();
    const double ratio =
        tried > 1 ? std::exp(std::log(range_.most / range_.least) / (tried - 1)) : 1.0;
    double wanted = range_.least;
    int before = 0;
    for (int i = 0; i < tried; ++i) {
      const bool is_last = i > 0 && i + 1 == tried;
      if (is_last) wanted = range_.most;
      // Else two grids of which one has the other in it would differ where a share is whole.
      const double rounded = is_last ? wanted : wanted * (1 + kRounding);
      const int share = std::max(Whole(rounded / samples_.choosing), least_share);
      wanted *= ratio;
      if (share == before) continue;
      before = share;
      if (const int local = Whole(share - beside); local <= alone) {
        Try(local, 1);
      } else {
        const int steps = Whole(std::ceil(share / (range_.most_accumulating + beside)));
        Try(Whole(1.0 * share / steps - beside), steps);
      }
    }
  }

  // Limits are those of int; shares are smaller, but for rounding.
  static int Whole(double share) {
    return static_cast<int>(std::min(share, 1.0 * std::numeric_limits<int>::max()));
  }

  void Try(int local_batch, int accumulation_steps, bool own = false) {
    const double batch = samples_.Of(local_batch, accumulation_steps);
    const bool allowed =
        batch >= range_.least && batch <= range_.most && local_batch >= range_.least_local &&
        local_batch <= (accumulation_steps > 1 ? range_.most_accumulating : range_.most_alone);
    if (!allowed) return;
    if (own) own_at_ = static_cast<int>(waiting_);
    local_batches_[waiting_] = local_batch;
    accumulation_steps_[waiting_] = accumulation_steps;
    batches_[waiting_] = batch;
    if (++waiting_ == kAtOnce) Answer();
  }

  // Answers those that wait, and keeps the best.
  void Answer() {
    const std::size_t now = waiting_;
    const int own_at = own_at_;
    waiting_ = 0;
    own_at_ = -1;
    if (now == 0 || compiled_.StepTimes(query_, local_batches_.data(), accumulation_steps_.data(),
                                        now, step_times_s_.data()) != QueryStatus::kOk) {
      return;
    }
    for (std::size_t i = 0; i < now; ++i) {
      const double batch = batches_[i];
      goodputs_[i] = batch * counted_ / (step_times_s_[i] * (constant_ + batch * by_batch_));
    }
    if (own_at >= 0) own_score_ = goodputs_[own_at];
    for (std::size_t i = 0; i < now; ++i) {
      const double least = enough_ == 0 ? best_.goodput * (1 - kSameScores) : enough_;
      if (goodputs_[i] >= least) Consider(i);
    }
  }

  // Makes it the best if it is.
  void Consider(std::size_t i) {
    const double goodput = goodputs_[i];
    const double best_batch = samples_.Of(best_.local_batch, best_.accumulation_steps);
    const bool same = batches_[i] == best_batch;
    const bool smaller = batches_[i] < best_batch;
    const bool better = same ? LeadsAtItsBatch(goodput, accumulation_steps_[i], best_.goodput,
                                               best_.accumulation_steps)
                             : goodput > best_.goodput;
    // Before it is known what is enough the highest score leads; then the smallest batch does.
    const bool leads = enough_ == 0 ? better || (goodput == best_.goodput && smaller)
                                    : best_.local_batch == 0 || smaller || (same && better);
    if (leads) best_ = {local_batches_[i], accumulation_steps_[i], step_times_s_[i], 0, 1, goodput};
  }

  BatchChoice Finished() const {
    BatchChoice choice = best_;
    if (choice.local_batch == 0) return choice;
    const double batch = samples_.Of(choice.local_batch, choice.accumulation_steps);
    choice.throughput = batch * counted_ / choice.step_time_s;
    if (worth()) {
      choice.statistical_efficiency =
          StatisticalEfficiency(Samples(*search_.noise_scale), Samples(*search_.initial_batch),
                                Samples(batch * update_share_));
    }
    choice.goodput = choice.throughput * choice.statistical_efficiency;
    return choice;
  }

  const CompiledPlan& compiled_;
  const BatchSearch& search_;
  PlanQuery query_;
  StepSamples samples_;
  Range range_;
  double workers_;
  double counted_ = 1;       // share of the samples that count
  double update_share_ = 1;  // samples of one update / those of all workers
  double constant_ = 1;
  double by_batch_ = 0;
  double enough_ = 0;  // score from which on the smallest batch wins; 0: the highest score wins
  double own_score_ = 0;
  BatchChoice best_;
  std::size_t waiting_ = 0;
  int own_at_ = -1;  // among those that wait
  std::array<int, kAtOnce> local_batches_;
  std::array<int, kAtOnce> accumulation_steps_;
  std::array<double, kAtOnce> step_times_s_;
  std::array<double, kAtOnce> batches_;  // of all workers
  std::array<double, kAtOnce> goodputs_;
};

}  // namespace

bool IsSearch(const BatchSearch& search) noexcept {
  return KeepsRules(search, false, [](const auto& /*tell*/) {});
}

std::optional<QueryProblem> ProblemOf(const BatchSearch& search) {
  std::optional<QueryProblem> problem;
  KeepsRules(search, true, [&](const auto& tell) { problem = tell(); });
  return problem;
}

int MostTried(const BatchSearch& search) {
  if (search.candidates > 0) return search.candidates;
  int tried = 0;
  ForEachLocalBatch({}, search.most_global_batch, 1, [&](int batch) {
    const int most = std::clamp(search.most_global_batch / batch, 1, kMostTriedAccumulation);
    ForEachInterval(most, 1, [&](int /*interval*/) { ++tried; });
  });
  return tried;
}

std::size_t ChooseBatches(const CompiledPlan& compiled, const Allocation* allocations,
                          std::size_t count, const BatchSearch& search,
                          BatchChoice* choices) noexcept {
  std::size_t none = 0;
  for (std::size_t i = 0; i < count; ++i) {
    choices[i] = {};
    if (allocations[i].workers > compiled.plan().backup_workers) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): arrays are set as far as read
      choices[i] = Chooser(compiled, allocations[i], search).Choose();
    }
    if (choices[i].local_batch == 0) ++none;
  }
  return none;
}

}  // namespace stepcast
