// The forecast of a step that waits for its samples, from the forecast of the same step with all of
// them there (model/overlap/input.h).
//
//   step = W(R, A),   low = W(R_low, A / f),   high = W(R_high, A f),   f = e^(1.645 s)
//   W(r, a) = max(r, a); of two paces 1 / sum_c ( u_c x_c / max(r x_c, a) )
//
//   R        the step with all samples, and its interval                          [s]
//   A        arrival of its samples, a fact that is taken as it is stated          [s]
//   s        scatter of a step that is no network's                                [1]
//   u_c, x_c share of the updates that the fast or slow asynchronous workers make with all samples
//            there, and their cycle then as a share of the mean one                [1]
//
// A maximum never falls with either side, so that the bounds of the larger are the larger bounds.
// Workers of two paces (model/exchange/async_server.h) each wait by themselves: the slow ones may
// have all samples where the fast ones wait, and the mean cycle is longer than both R and A then;
// and of all updates the slow ones make the more, the longer the fast ones wait.
#ifndef STEPCAST_PREDICTOR_ARRIVAL_H_
#define STEPCAST_PREDICTOR_ARRIVAL_H_

#include <algorithm>
#include <cmath>

#include "data/units/quantity.h"
#include "model/exchange/server_outcomes.h"
#include "model/statistics/normal.h"

namespace stepcast {

// W: what a step comes to whose samples arrive, whoever waits for them.
class WaitingPaces {
 public:
  WaitingPaces() = default;
  // Of the servers with all samples there.
  explicit WaitingPaces(const AsyncServers<double>& servers) : slow_updates_(servers.slow_updates) {
    if (slow_updates_ == 0) return;
    fast_ = servers.fast_cycle / servers.cycle;
    slow_ = servers.slow_cycle / servers.cycle;
  }

  // Of a step with all samples there, that of the workers who are the first to wait.
  Duration<> Shortest(Duration<> rest) const { return rest * std::min(fast_, slow_); }
  // Whether nobody waits.
  bool HasAll(Duration<> rest, Duration<> arrival) const { return Shortest(rest) >= arrival; }
  Duration<> Step(Duration<> rest, Duration<> arrival) const {
    if (slow_updates_ == 0) return Max(rest, arrival);
    if (HasAll(rest, arrival)) return rest;
    return 1.0 / (FastUpdates(rest, arrival) + SlowUpdates(rest, arrival));
  }
  // Share of the updates that the slow workers make; 0 where all have one pace.
  double SlowShare(Duration<> rest, Duration<> arrival) const {
    if (HasAll(rest, arrival)) return slow_updates_;
    const Quantity<RateDimension> slow = SlowUpdates(rest, arrival);
    return slow / (FastUpdates(rest, arrival) + slow);
  }

 private:
  // Updates that a kind makes in a second, for each worker of either.
  Quantity<RateDimension> FastUpdates(Duration<> rest, Duration<> arrival) const {
    return (1 - slow_updates_) * fast_ / Max(rest * fast_, arrival);
  }
  Quantity<RateDimension> SlowUpdates(Duration<> rest, Duration<> arrival) const {
    return slow_updates_ * slow_ / Max(rest * slow_, arrival);
  }

  double slow_updates_ = 0;
  double fast_ = 1;
  double slow_ = 1;
};

// A Forecast or a Prediction.
template <class Answer>
void LengthenBy(Duration<> arrival, const WaitingPaces& paces, double scatter, Answer* answer) {
  const double factor = NinetyPercentFactor(scatter);
  // The interval may reach further up than by the standard deviation.
  const Duration<> by_log_sd = answer->step_time * NinetyPercentFactor(answer->log_sd);
  answer->low = paces.Step(answer->low, arrival / factor);
  answer->high = paces.Step(answer->high, arrival * factor);
  if (paces.HasAll(answer->step_time, arrival) && paces.HasAll(by_log_sd, arrival * factor)) return;
  answer->step_time = paces.Step(answer->step_time, arrival);
  answer->log_sd =
      std::log(paces.Step(by_log_sd, arrival * factor) / answer->step_time) / kNinetyPercent;
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_ARRIVAL_H_
