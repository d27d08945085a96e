// Derivatives of a step by ln(parameter), by the chain rule in stages: the step by what it is
// joined from, a synchronisation by the hops that it takes, a hop by the rate of its path, rates
// and compute by the parameters. Each stage is the model's own formula on numbers with as many
// derivatives as it has variables, which is a tenth of the work of carrying all parameters through
// all of it.
#ifndef STEPCAST_PREDICTOR_COMPILED_SLOPES_H_
#define STEPCAST_PREDICTOR_COMPILED_SLOPES_H_

#include <array>
#include <cstddef>

#include "data/units/quantity.h"
#include "model/numeric/dual.h"
#include "model/step/answer.h"
#include "model/step/parameters.h"
#include "model/step/step.h"

namespace stepcast::internal {

// Parameters of the rate of a path, in this order; derivatives are by their logarithms.
enum LinkLane {
  kNodeLinkLane,
  kFlowLane,
  kLatencyLane,
  kWindowLane,
  kTimeoutLane,
  kServerLinkLane,
  kLinkLanes,
};
// The first is that of the slowest host's link.
inline constexpr ClusterParameter kLinkLaneParameters[kLinkLanes] = {
    kLinkBandwidth, kFlowBandwidth, kLinkLatency, kFlowWindow, kLossTimeout, kLinkBandwidth};
using LinkDual = DualOf<kLinkLanes>;

// What the bandwidth of a hop depends on: the rate of its path, by the value, and parameters, by
// their logarithms. What a single connection is held to depends on none of these, and has the first
// two places for its limits.
enum HopLane {
  kRateLane,
  kHostLane,
  kSharingLane,
  kScalingLane,
  kHopLanes,
  kWindowLimitLane = kRateLane,
  kLossLimitLane = kHostLane,
};
using HopDual = DualOf<kHopLanes>;

// What one plan's routes were made from, and the hops by these.
struct RouteSlopes {
  DataRate<LinkDual> node_rate;
  DataRate<LinkDual> server_rate;  // or a helper's
  FlowLimits<LinkDual> limits;     // of a connection
  HopDual node_bandwidth;
  HopDual connection;
};

// Those that a micro-step depends on.
enum ComputeLane { kFixedLane, kFloorLane, kSampleLane, kContentionLane, kComputeLanes };
using ComputeDual = DualOf<kComputeLanes>;

// What a synchronisation depends on, by the values themselves: of a collective, and of servers in
// the same places. The last ones are needed only where a round trip or loss holds flows back.
enum SyncLane {
  kBackwardLane,
  kBandwidthLane,
  kAlphaLane,
  kDeviceAlphaLane,
  kDeviceBandwidthLane,
  kHelperLane,
  kFreeLanes,
  kServerBandwidthLane = kAlphaLane,
  kInitiationLane = kDeviceAlphaLane,
  kServerRateLane = kDeviceBandwidthLane,
  kUpdateLane = kHelperLane,
  kConnectionLane = kFreeLanes,
  kServerAlphaLane,
  kIdleLane,
  kSilenceLane,
  kHeldLanes,
};

// What compute and synchronisation are joined to.
enum JoinLane { kMicroLane, kPassLane, kEndLane, kAllLane, kJoinLanes };
using JoinDual = DualOf<kJoinLanes>;

// A synchronisation, and the derivatives of its times by its lanes.
struct SyncSlopes {
  Duration<> end;
  Duration<> all;
  Duration<> transfer;  // of it, bytes at their pace
  Limiter limiter = Limiter::kNothing;
  Lanes<kHeldLanes> of_end;
  Lanes<kHeldLanes> of_all;
  double by_rounds = 0;  // of either, by ln(rpc_rounds)

  RouteSlopes route;
  double update_per_byte = 0;
};

// A quantity of this value, by itself.
template <class Q, class D, class S>
Q Seeded(const Quantity<D, S>& value, int lane) {
  typename Q::Scalar dual(ValueOf(value.si()));
  dual.slope.Set(lane, 1);
  return Q::FromSi(dual);
}

// A gradient by the columns of model/step/answer.h, an even number of them.
inline constexpr int kPadded = (kPlanColumns + 1) / 2 * 2;
using Gradient = std::array<double, kPadded>;

// x^T C x of a symmetric C, by the lower triangle, in which what stands for two places counts
// twice. Row by row into sums that stay in registers, without the rows of parameters that a plan
// does not depend on: most plans depend on few.
class QuadraticForm {
 public:
  void Set(int row, int column, double value) {
    rows_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] =
        row == column ? value : 2 * value;
  }
  double Of(const Gradient& x) const {
    Lanes<kPadded> sums;
    AddRows<0>(x, &sums);
    return Dot(sums, x.data());
  }

 private:
  template <std::size_t kRow>
  void AddRows(const Gradient& x, Lanes<kPadded>* sums) const {
    if constexpr (kRow < kPlanColumns) {
      if (x[kRow] != 0) AddRow<kRow / 2 + 1>(rows_[kRow].data(), x[kRow], sums);
      AddRows<kRow + 1>(x, sums);
    }
  }
  template <std::size_t kPairs, int N>
  static void AddRow(const double* row, double x, Lanes<N>* sums) {
    sums->two += typename Lanes<N>::Two{row[0], row[1]} * x;
    if constexpr (kPairs > 1) AddRow<kPairs - 1>(row + 2, x, &sums->rest);
  }
  template <int N>
  static double Dot(const Lanes<N>& sums, const double* x) {
    const double first = sums.two[0] * x[0] + sums.two[1] * x[1];
    if constexpr (N > 2) return first + Dot(sums.rest, x + 2);
    return first;
  }

  std::array<Gradient, kPlanColumns> rows_{};
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_SLOPES_H_
