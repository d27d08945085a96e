#include "predictor/search/unequal.h"

#include <algorithm>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "model/step/step_terms.h"
#include "predictor/search/bisect.h"

namespace stepcast {
namespace {

class Sharing {
 public:
  Sharing(const Predictor& predictor, const Plan& plan)
      : predictor_(predictor),
        given_(plan),
        slow_workers_(plan.slow_workers()),
        fast_workers_(plan.workers() - slow_workers_) {}

  SharedOut AsGiven() const {
    return Of(given_.local_batch, given_.slow_local_batch.value_or(given_.local_batch));
  }

  // The samples of a micro-step on each device if all took the same, rounded up.
  int EqualShare() const {
    const long long workers = given_.workers();
    return static_cast<int>((given_.micro_batch() + workers - 1) / workers);
  }

  std::optional<SharedOut> BySpeed() const {
    const int equal = EqualShare();
    const int most = std::min(equal, MostOfSlow());
    const auto fits = [&](int slow) { return Fits(Shares(FastBatch(slow), slow)); };
    if (!fits(equal - 1)) return std::nullopt;
    const int least = fits(1) ? 1 : BisectCount(1, equal - 1, fits);
    const auto slow_is_later = [&](int slow) {
      return predictor_.Terms(Shares(FastBatch(slow), slow)).slow_is_later;
    };
    if (slow_is_later(least)) return Of(FastBatch(least), least);
    // With equal shares the slow ones are later, or neither is. Where the fast ones would have none
    // then, one sample less may leave the slow ones the earlier.
    if (most < equal && !slow_is_later(most)) return Of(FastBatch(most), most);
    const int later = BisectCount(least, most, slow_is_later);
    const SharedOut after = Of(FastBatch(later), later);
    const SharedOut before = Of(FastBatch(later - 1), later - 1);
    return after.step_time < before.step_time ? after : before;
  }

  std::optional<SharedOut> FastOnly() const {
    Placement fewer(given_.placement.begin(), given_.placement.end() - given_.slow_nodes);
    Plan plan = WithPlacement(given_, std::move(fewer));
    if (!plan.hosts.empty()) plan.hosts.resize(plan.placement.size());
    plan.local_batch = FastBatch(0);
    if (!Fits(plan)) return std::nullopt;
    const Duration<> step = Step(plan);
    return SharedOut{plan.local_batch, 0, step, Samples(given_.global_batch()) / step};
  }

 private:
  // The most that a slow device may take, so that each fast one has a sample. Not less than one
  // below the equal share, as that is above 1 where shares are sought.
  int MostOfSlow() const {
    return static_cast<int>((given_.micro_batch() - fast_workers_) / slow_workers_);
  }
  // What each fast device has to take so that no sample is left over.
  int FastBatch(int slow_batch) const {
    const long long left = given_.micro_batch() - 1LL * slow_workers_ * slow_batch;
    return static_cast<int>(std::min((left + fast_workers_ - 1) / fast_workers_, kMostBatch + 1LL));
  }
  Plan Shares(int fast_batch, int slow_batch) const {
    Plan plan = given_;
    plan.local_batch = fast_batch;
    plan.slow_local_batch = slow_batch;
    return plan;
  }
  Duration<> Step(const Plan& plan) const { return predictor_.PredictStep(plan).total(); }
  bool Fits(const Plan& plan) const {
    return plan.local_batch <= kMostBatch && predictor_.Memory(plan).may_fit();
  }
  SharedOut Of(int fast_batch, int slow_batch) const {
    const Duration<> step = Step(Shares(fast_batch, slow_batch));
    return {fast_batch, slow_batch, step, Samples(given_.global_batch()) / step};
  }

  const Predictor& predictor_;
  const Plan& given_;
  int slow_workers_;
  int fast_workers_;
};

}  // namespace

std::optional<UnequalWorkers> WeighSlowNodes(const Predictor& predictor, const Plan& plan) {
  const bool waits = !TraitsOf(plan.strategy).asynchronous();
  if (!waits || plan.slow_nodes == 0 || plan.slow_nodes == plan.nodes()) return std::nullopt;
  const Sharing sharing(predictor, plan);
  UnequalWorkers unequal{plan.slow_nodes, sharing.AsGiven(), {}, {}, sharing.FastOnly()};
  if (sharing.EqualShare() == 1) {
    unequal.why_equal = WhyEqual::kOneSample;
  } else if (!(unequal.by_speed = sharing.BySpeed())) {
    unequal.why_equal = WhyEqual::kMemory;
  } else if (unequal.equal.step_time <= unequal.by_speed->step_time) {
    unequal.by_speed.reset();
    unequal.why_equal = WhyEqual::kNoneQuicker;
  }
  return unequal;
}

}  // namespace stepcast
