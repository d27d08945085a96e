// Derivatives of a step by ln(parameter), by the chain rule in three stages: the step by what it is
// joined from, a synchronisation by the hops that it takes, hops and compute by the parameters. Each
// stage is the model's own formula on numbers with as many derivatives as it has variables, which is
// a tenth of the work of carrying all parameters through all of it.
#ifndef STEPCAST_PREDICTOR_COMPILED_SLOPES_H_
#define STEPCAST_PREDICTOR_COMPILED_SLOPES_H_

#include <Eigen/Core>
#include <algorithm>

#include "data/units/quantity.h"
#include "model/numeric/dual.h"
#include "model/step/belief.h"
#include "model/step/parameters.h"
#include "model/step/step.h"

namespace stepcast::internal {

// Parameters that hops between nodes depend on, in this order. A path's derivatives are by their
// logarithms.
enum LinkLane {
  kNodeLinkLane,
  kFlowLane,
  kHostLane,
  kLatencyLane,
  kSharingLane,
  kScalingLane,
  kWindowLane,
  kTimeoutLane,
  kServerLinkLane,
  kLinkLanesUsed,
};
// The first is that of the slowest host's link.
inline constexpr ClusterParameter kLinkLaneParameters[kLinkLanesUsed] = {
    kLinkBandwidth, kFlowBandwidth, kHostBandwidth, kLinkLatency,  kHostSharing,
    kNodeScaling,   kFlowWindow,    kLossTimeout,   kLinkBandwidth};
inline constexpr int kLinkLanes = (kLinkLanesUsed + 1) / 2 * 2;  // even, for registers of two
using LinkDual = DualOf<kLinkLanes>;

// Those that a micro-step depends on.
enum ComputeLane { kFixedLane, kFloorLane, kSampleLane, kContentionLane, kComputeLanes };
using ComputeDual = DualOf<kComputeLanes>;

// What a synchronisation depends on, by the values themselves: of a collective, and of servers in the
// same places. The last ones are needed only where a round trip or loss holds flows back. The latency
// of servers' phases stands beside all else and has no lane.
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
  kHopLane,
  kIdleLane,
  kSilenceLane,
  kHeldLanes,
};

// What compute and synchronisation are joined to.
enum JoinLane { kMicroLane, kPassLane, kEndLane, kAllLane, kJoinLanes };
using JoinDual = DualOf<kJoinLanes>;

// Parameters that a synchronisation depends on by themselves.
enum Other { kDeviceLatencyOf, kInitiationOf, kServerRateOf, kRoundsOf, kOthers };
inline constexpr ClusterParameter kOtherParameters[kOthers] = {kDeviceLatency, kTransferInitiation,
                                                               kServerRate, kRpcRounds};

// Derivatives of a time of the synchronisation: by the backward pass and the silence before it, and
// by ln(parameter).
struct TimeSlopes {
  double by_backward = 0;
  double by_idle = 0;
  double by_timeout = 0;
  double by_update = 0;
  double other[kOthers] = {};
  Lanes<kLinkLanes> by_link;
};

struct SyncSlopes {
  Duration<> end;
  Duration<> all;
  Duration<> transfer;  // of it, bytes at their pace
  Limiter limiter = Limiter::kNothing;
  TimeSlopes of_end;
  TimeSlopes of_all;
};

// A quantity of this value, by itself.
template <class Q, class D, class S>
Q Seeded(const Quantity<D, S>& value, int lane) {
  typename Q::Scalar dual(ValueOf(value.si()));
  dual.slope.Set(lane, 1);
  return Q::FromSi(dual);
}

// The parameters that one plan uses, in the order of their gradient: the cluster's, the workload's,
// the link of the slowest host.
inline constexpr int kWorkloadOffset = Belief::kWorkloadOffset;
inline constexpr int kNodeLink = Belief::kHostOffset;
inline constexpr int kActive = kNodeLink + 1;
inline constexpr int kPadded = (kActive + 1) / 2 * 2;
using Gradient = Eigen::Matrix<double, kPadded, 1>;
using Covariance = Eigen::Matrix<double, kPadded, kPadded>;

// Variance of what has this gradient. Column by column, which needs no sums across registers; most
// plans depend on few parameters.
inline double Variance(const Covariance& covariance, const Gradient& gradient) {
  Gradient sum = Gradient::Zero();
  for (int i = 0; i < kActive; ++i) {
    if (gradient[i] == 0) continue;
    for (int j = 0; j < kPadded; ++j) sum[j] += covariance(j, i) * gradient[i];
  }
  return std::max(0.0, sum.dot(gradient));
}

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_SLOPES_H_
