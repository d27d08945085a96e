// What no run has told of a step, moved to the slow end of its range.
//
// The interval of a step follows from derivatives at the believed parameters, which tell enough as
// long as ln(step) is nearly straight over what they may be. A pace that no run has told is another
// matter: an exchange that is hidden at the centre, where its derivative is 0, may be a third of
// the step on a link of half the stated rate, and so may compute behind which an exchange is not
// hidden. So each such parameter z is moved to the slow end of its 90 % range, what is correlated
// with it goes along, and the step is evaluated there. Where the slowest of these steps is more
// than the most that derivatives make of one such direction, it takes their place:
//
//   V_e = V + max( 0, max_z (ln+(s_z / s) / q)^2 - max_z t_z^2 )
//   t_z = sum_j g_j C_jz / sqrt(C_zz)
//
//   V, V_e  variance of ln(step): by derivatives, and for the upper end of the interval    [1]
//   s, s_z  the step as believed, and with z at its slow end; ln+ is 0 where s_z < s  [s]
//   g, C    derivatives of ln(step); covariance of the parameters, both by ln       [1]
//   q       standard deviations from the centre to an end: 1.645
//
// Note that the lower end stays as derivatives tell it: one slow pace is enough for a slow step,
// but a quick one leaves the next to hold it back. That several are slow at once adds nothing: they
// are limits of one step, the slowest of which it takes, and by a sum a plan would look the worse
// the shorter its step is. So an untold pace that binds at the centre, where its derivative tells
// all, gets nothing on top for another's slow end that is quicker than its own. And that this is of
// paces that no run has told: an exchange that was hidden in all fitted runs tells what its pace is
// not, though derivatives at the centre are 0 and the covariance is the prior's. Runs tell of what
// they used (CalibratedRange::exchanges): rings tell no rate of servers, and exchanges over TCP
// tell nothing of links over RDMA. Behind a link of 1 Gbit/s flows, hosts and servers of any higher
// rate are hidden: to a plan that states a faster link runs have told of these that they are no
// slower than 1 Gbit/s, where their slow end is then. Compute is a pace that no run has told where
// nothing at all tells it.
//
// Note too that a faster link has hardly a higher end for all this: a rate behind it that takes
// over at the centre, where derivatives jump, has been at its slow end before.
#ifndef STEPCAST_MODEL_STEP_SLOW_ENDS_H_
#define STEPCAST_MODEL_STEP_SLOW_ENDS_H_

#include <array>
#include <bitset>
#include <optional>
#include <vector>

#include "data/record/link.h"
#include "data/units/quantity.h"
#include "model/step/answer.h"
#include "model/step/belief.h"

namespace stepcast {

// Whether a column is a parameter of the workload.
inline constexpr bool IsWorkloadColumn(int column) {
  return column >= kWorkloadColumn && column < kLinkColumn;
}

// One that sets the pace of bytes or samples, and that no run could show, with the parameters of a
// plan where it is slow.
struct SlowEnd {
  int column = 0;
  double sds = 0;  // standard deviations from the belief to here; negative where less is slow
  // The transports over which it is, and where runs told it over slower links: the fastest of them.
  std::bitset<kTransportCount> over;
  std::optional<DataRate<>> told_to;
  // C_jz / sqrt(C_zz) of each column.
  std::array<double, kPlanColumns> along{};
  PlanParameters parameters;

  // Whether no run has told it to a plan of these facts.
  bool IsUntoldTo(const StepFacts& facts) const;
};

// Those of a plan that these positions hold back.
std::vector<SlowEnd> SlowEndsOf(const Belief& belief, const Belief::AtHosts& hosts);

// Of these, those that matter to a plan of these facts and that no run has told it.
std::vector<SlowEnd> UntoldEndsOf(const Belief& belief, const Belief::AtHosts& hosts,
                                  const StepFacts& facts);

// V_e - V of the step of a plan that these positions hold back, and whose ln has this gradient.
double VarianceOfSlowEnds(const Belief& belief, const Belief::AtHosts& hosts,
                          const StepFacts& facts, const PlanGradient& gradient, Duration<> step);

// The worst of a plan's ends, by derivatives and by steps.
class WorstEnd {
 public:
  // `tangent` is t, and `slow` the step at that end.
  void Include(double tangent, Duration<> step, Duration<> slow);
  // What it adds to V.
  double variance() const;

 private:
  double tangent_ = 0;
  double reached_ = 0;  // ln(s_z / s) / q
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_SLOW_ENDS_H_
