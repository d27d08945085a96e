#include "predictor/search/inverse.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "model/exchange/parameter_server_limits.h"
#include "model/step/belief.h"
#include "predictor/search/batch_grid.h"
#include "predictor/search/bisect.h"
#include "predictor/search/one_worker.h"
#include "predictor/search/payoff.h"

namespace stepcast {
namespace {

constexpr double kShortestTrip = 1e-6;
constexpr double kLongestTrip = 100;
constexpr double kLeastLossTried = 1e-9;
constexpr double kMostLossTried = 0.5;
constexpr int kMostTimesBatch = 1000;

class Asked {
 public:
  Asked(const Predictor& predictor, const Plan& plan, int devices_per_node, int most_workers)
      : predictor_(predictor),
        plan_(plan),
        devices_per_node_(devices_per_node),
        most_workers_(most_workers) {}

  double Utilisation(const Plan& plan) const {
    const SampleRate<> rate = CountedSamples(plan) / predictor_.PredictStep(plan).total();
    return rate / RatesAlone(predictor_, plan, OneWorkerOf(plan)).Of(plan);
  }

  WhatReaches Reach(double utilisation) const {
    WhatReaches answer;
    answer.utilisation = utilisation;
    const auto does = [&](const Plan& plan) { return Utilisation(plan) >= utilisation; };
    const auto does_and_fits = [&](const Plan& plan) {
      return predictor_.Memory(plan).may_fit() && does(plan);
    };
    const auto with_rate = [&](double rate) {
      return does(WithLinks(plan_, BytesPerSecond(rate)));
    };
    const auto with_trip = [&](double trip) {
      Plan plan = plan_;
      plan.link.rtt = Seconds(trip);
      return does(plan);
    };
    const auto with_loss = [&](double loss) {
      Plan plan = plan_;
      plan.link.loss = loss;
      return does(plan);
    };
    const auto with_steps = [&](int steps) {
      Plan plan = plan_;
      plan.accumulation_steps = steps;
      return does_and_fits(plan);
    };
    const auto with_batch = [&](int batch) { return does_and_fits(WithBatch(batch)); };
    const auto with_workers = [&](int workers) { return does(On(workers)); };
    if (CrossesNodes(plan_)) {
      const double fastest = kFastestPayoff.si();
      if (with_rate(fastest)) {
        const double slowest = kSlowestPayoff.si();
        answer.bandwidth =
            BytesPerSecond(with_rate(slowest) ? slowest : Bisect(slowest, fastest, with_rate));
      }
      if (with_trip(kShortestTrip) && !with_trip(kLongestTrip)) {
        answer.rtt = Seconds(Bisect(kLongestTrip, kShortestTrip, with_trip));
      }
      if (with_loss(kLeastLossTried) && !with_loss(kMostLossTried)) {
        answer.loss = Bisect(kMostLossTried, kLeastLossTried, with_loss);
      }
    }
    if (with_steps(1)) {
      answer.accumulation_steps = 1;
    } else if (with_steps(kMostTriedAccumulation)) {
      answer.accumulation_steps = BisectCount(1, kMostTriedAccumulation, with_steps);
    }
    answer.local_batch = FewestBatch(with_batch);
    int most = 1;
    for (int workers = 2; workers <= most_workers_; workers *= 2) {
      if (with_workers(workers)) most = workers;
    }
    if (most > 1) {
      const int beyond = std::min(2 * most, most_workers_);
      const Plan on = On(with_workers(beyond) ? beyond : BisectCount(beyond, most, with_workers));
      // The more workers, the less memory each needs.
      if (predictor_.Memory(on).may_fit()) answer.workers = on.workers();
    }
    return answer;
  }

 private:
  Plan On(int workers) const {
    Plan plan = OnFilledNodes(plan_, workers, devices_per_node_);
    plan.hosts.clear();
    return plan;
  }

  Plan WithBatch(int batch) const {
    Plan plan = plan_;
    plan.local_batch = batch;
    if (const std::optional<int> slow = plan_.slow_local_batch) {
      plan.slow_local_batch = static_cast<int>((1LL * batch * *slow - 1) / plan_.local_batch + 1);
    }
    return plan;
  }

  // Upwards in doublings: what does not fit in memory ends it.
  template <class Does>
  std::optional<int> FewestBatch(const Does& does) const {
    if (does(1)) return 1;
    const double most = plan_.local_batch *
                        std::min<double>(kMostTimesBatch, 1.0 * kMostBatch / plan_.largest_batch());
    for (int batch = 2; batch <= most; batch *= 2) {
      if (does(batch)) return BisectCount(batch / 2, batch, does);
    }
    return std::nullopt;
  }

  const Predictor& predictor_;
  const Plan& plan_;
  int devices_per_node_;
  int most_workers_;
};

}  // namespace

InverseAnswers AnswerInverseQuestions(const Predictor& predictor, const Plan& plan,
                                      int devices_per_node, int most_workers) {
  InverseAnswers answers;
  const bool exchanges = WorkersExchange(plan);
  if (!exchanges || predictor.workload().communication_only) return answers;
  const Asked asked(predictor, plan, devices_per_node, most_workers);
  answers.utilisation = asked.Utilisation(plan);
  if (CrossesNodes(plan)) {
    const Belief& belief = predictor.belief();
    const double believed = std::exp(belief.log_value(belief.SlowestLink(plan.hosts)));
    const DataRate<> rate = plan.link.bandwidth.value_or(BytesPerSecond(believed));
    answers.twice_the_link =
        asked.Utilisation(WithLinks(plan, rate * 2.0)) / asked.Utilisation(WithLinks(plan, rate));
  }
  for (const double utilisation : kUtilisationsAsked) {
    answers.reaches.push_back(asked.Reach(utilisation));
  }
  return answers;
}

}  // namespace stepcast
