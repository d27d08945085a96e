#include "predictor/search/unequal.h"

#include <algorithm>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "predictor/search/bisect.h"

namespace stepcast {
namespace {

class Sharing {
 public:
  Sharing(const Predictor& predictor, const Plan& plan)
      : predictor_(predictor), given_(plan), fast_(plan) {
    fast_.slow_speed = 1;
    slow_workers_ = SlowWorkers(plan);
    fast_workers_ = plan.workers() - slow_workers_;
  }

  SharedOut Equal() const { return Of(given_.local_batch, given_.local_batch); }

  std::optional<SharedOut> BySpeed() const {
    const int equal = given_.local_batch;
    const auto fits = [&](int slow) { return Fits(fast_, FastBatch(slow)); };
    if (!fits(equal - 1)) return std::nullopt;
    const int least = fits(1) ? 1 : BisectCount(1, equal - 1, fits);
    const auto slow_is_later = [&](int slow) {
      return Step(fast_, FastBatch(slow)) < Step(given_, slow);
    };
    if (slow_is_later(least)) return Of(FastBatch(least), least);
    // With equal shares the slow ones are later, or neither is.
    const int later = BisectCount(least, equal, slow_is_later);
    const SharedOut after = Of(FastBatch(later), later);
    const SharedOut before = Of(FastBatch(later - 1), later - 1);
    return after.step_time < before.step_time ? after : before;
  }

  std::optional<SharedOut> FastOnly() const {
    Placement fewer(given_.placement.begin(), given_.placement.end() - given_.slow_nodes);
    Plan plan = WithPlacement(fast_, std::move(fewer));
    if (!plan.hosts.empty()) plan.hosts.resize(plan.placement.size());
    const int batch = FastBatch(0);
    if (!Fits(plan, batch)) return std::nullopt;
    const Duration<> step = Step(plan, batch);
    return SharedOut{batch, 0, step, Samples(given_.global_batch()) / step};
  }

 private:
  // So that none is left over.
  int FastBatch(int slow_batch) const {
    const long long left =
        1LL * given_.workers() * given_.local_batch - 1LL * slow_workers_ * slow_batch;
    return static_cast<int>(std::min((left + fast_workers_ - 1) / fast_workers_, kMostBatch + 1LL));
  }
  static Plan WithBatch(Plan plan, int local_batch) {
    plan.local_batch = local_batch;
    return plan;
  }
  Duration<> Step(const Plan& plan, int local_batch) const {
    return predictor_.PredictStep(WithBatch(plan, local_batch)).total();
  }
  bool Fits(const Plan& plan, int local_batch) const {
    return local_batch <= kMostBatch &&
           predictor_.Memory(WithBatch(plan, local_batch)).verdict != MemoryVerdict::kOutOfMemory;
  }
  SharedOut Of(int fast_batch, int slow_batch) const {
    const Duration<> step = Max(Step(fast_, fast_batch), Step(given_, slow_batch));
    return {fast_batch, slow_batch, step, Samples(given_.global_batch()) / step};
  }

  const Predictor& predictor_;
  const Plan& given_;
  Plan fast_;  // if no node were slow
  int slow_workers_ = 0;
  int fast_workers_ = 0;
};

}  // namespace

std::optional<UnequalWorkers> WeighSlowNodes(const Predictor& predictor, const Plan& plan) {
  const bool waits = !TraitsOf(plan.strategy).asynchronous();
  if (!waits || plan.slow_nodes == 0 || plan.slow_nodes == plan.nodes()) return std::nullopt;
  const Sharing sharing(predictor, plan);
  UnequalWorkers unequal{plan.slow_nodes, sharing.Equal(), {}, {}, sharing.FastOnly()};
  if (plan.local_batch == 1) {
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
