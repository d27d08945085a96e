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
// On its way to an end the search passes where the cost has risen by z^2/2 with z = 1.645: the end
// of the 90 % range, with all other parameters where they meet the runs best. Where one of these or
// the parameter itself is more than one standard deviation from where the covariance puts it, this
// is another explanation of the runs, of which forecasts have to know (model/step/alternatives.h).
//
// Source: Venzon, Moolgavkar, Applied Statistics 37 (1988) (profile-likelihood intervals).
#ifndef STEPCAST_CALIBRATE_PROFILE_H_
#define STEPCAST_CALIBRATE_PROFILE_H_

#include <Eigen/Core>
#include <optional>
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

// ln(value) of all parameters, at the end of the 90 % range of one of them.
struct Alternative {
  std::vector<double> values;
  double distance = 0;  // from where the covariance puts it, in standard deviations
};

// What of them a calibration keeps, a row each of ln(value there / value): the farthest first, and
// of those that are about the same one.
Eigen::MatrixXd MovesTo(std::vector<Alternative> all, const Fit& fit,
                        const Eigen::MatrixXd& covariance);

class Profile {
 public:
  // All must outlive it.
  Profile(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans, const Fit& fit,
          const Eigen::MatrixXd& covariance)
      : layout_(layout), plans_(plans), fit_(fit), covariance_(covariance) {}

  struct Followed {
    Interval interval;
    std::vector<Alternative> alternatives;
    Fit lowest;  // the fit, or one of a lower cost that was met
  };
  Followed Follow(int parameter) const;
  // As the covariance says.
  Interval Linear(int parameter) const { return {LinearReach(parameter), LinearReach(parameter)}; }

 private:
  // Where a search leaves the 90 % range: the last fit inside of it, and the first outside.
  struct Passage {
    std::optional<Fit> inside;
    std::optional<Fit> outside;
  };

  double Reach(int parameter, double sign, Passage* passage, Fit* lowest) const;
  std::optional<Alternative> AlternativeAt(int parameter, double sign,
                                           const Passage& passage) const;
  double DistanceAt(int parameter, double sign, const std::vector<double>& values) const;
  double RootOfRise(const Fit& at) const;
  double LinearReach(int parameter) const;
  Fit FitHolding(int parameter, double move, const Fit& from) const;

  const ParameterLayout& layout_;
  const std::vector<const PlanRows*>& plans_;
  const Fit& fit_;
  const Eigen::MatrixXd& covariance_;
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_PROFILE_H_
