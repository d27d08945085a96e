// How far a parameter may be from its fitted value, by the cost itself.
//
// The interval of ln(value) ends where the cost, with all other parameters fitted anew, has risen
// by z^2/2, z = 1.96 for 95 %. Where the cost is a parabola this is what the covariance says; where
// what the runs show is a sum of which the value is a small part, or a maximum of which it is the
// smaller side, the interval is wider and lopsided, and ends at the edge of the parameter's range.
//
// Note that an interval is never narrower than the covariance says, within the range. A search on
// the way may meet a lower cost than the fit's own: another minimum.
//
// Source: Venzon, Moolgavkar, Applied Statistics 37 (1988) (profile-likelihood intervals).
#ifndef STEPCAST_CALIBRATE_PROFILE_H_
#define STEPCAST_CALIBRATE_PROFILE_H_

#include <Eigen/Core>
#include <vector>

#include "calibrate/minimisation.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"

namespace stepcast {

// Below and above ln(value); both positive.
struct Interval {
  double down = 0;
  double up = 0;
};

// Standard deviation of what is believed of ln(value) before any run: of a parameter whose prior is
// around another one's value, with what is not known of that.
double PriorLogSd(const ParameterLayout& layout, int parameter);

class Profile {
 public:
  // All must outlive it.
  Profile(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans, const Fit& fit,
          const Eigen::MatrixXd& covariance)
      : layout_(layout), plans_(plans), fit_(fit), covariance_(covariance) {}

  // `lowest` begins as the fit, and is the one of the lowest cost that was met where that is lower.
  Interval Follow(int parameter, Fit* lowest) const {
    return {Reach(parameter, -1, lowest), Reach(parameter, 1, lowest)};
  }
  // As the covariance says.
  Interval Linear(int parameter) const { return {LinearReach(parameter), LinearReach(parameter)}; }

 private:
  double Reach(int parameter, double sign, Fit* lowest) const;
  double LinearReach(int parameter) const;
  Fit FitHolding(int parameter, double move, const Fit& from) const;

  const ParameterLayout& layout_;
  const std::vector<const PlanRows*>& plans_;
  const Fit& fit_;
  const Eigen::MatrixXd& covariance_;
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_PROFILE_H_
