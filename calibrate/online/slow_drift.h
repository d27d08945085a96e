// Whether the steps of one plan become longer or shorter little by little, which a forecast that
// learns from them follows without noticing.
//
// The first n steps are what later ones are held against: their centre c, and the standard
// deviation s of a step, as far as the mean of many goes, with that of one step s_1 and the
// correlation q of a step with the one before,
//
//   s = max(1 %, s_1 ((1 + q) / (1 - q))^(1/2)),   q from 0 to 0.9
//
// Of becoming longer and shorter the logarithm of how much likelier the steps are with their level
// off by d than without is summed up (Page's test):
//
//   g = max(0, g + min(1.5, (d r - d^2 / 2) / s^2)) > 24,   d = +-max(ln 1.05, 8 s / n^(1/2))
//
//   n  100
//   r  ln(T_measured) - c of a step, at most 3 s_1 or |d|, whichever is more               [1]
//
// A level that is off by less than |d| / 2, at least four standard errors of c, is none that is
// looked for: of steps that scatter by 3 % one of 2.5 %, of 10 % one of 4 %. A step adds 1.5 at
// most, so that 17 have to agree at least: what comes at once is found by OnlineCalibration before.
//
// Were c known, a sum would pass h once in exp(h) steps at most. With c from n steps: of 2,000 jobs
// of 5,000 independent steps that scatter by 1 to 10 % none raised an alarm, and 2 where 3 % of the
// steps are pauses of three times a step; 1.3 % of jobs did where q is 0.5, 6 % where it is 0.8.
// What 1 % more every 100 steps brings was seen after 380 steps in the median where steps scatter
// by 1 %, 420 at 3 % and 670 at 10 % (tests/calibrate/slow_drift_test.cc prints both, of fewer).
//
// Note that a change is told once: what comes then is held against the steps behind it. What the
// first n steps are off by themselves, as a machine that warms up, is no drift of theirs but of
// the others.
//
// Sources: Page, Biometrika 41 (1954); Lorden, Annals of Mathematical Statistics 42 (1971) (the
// bound of exp(h)). The variance of a mean of correlated steps is that of a first-order
// autoregression.
#ifndef STEPCAST_CALIBRATE_ONLINE_SLOW_DRIFT_H_
#define STEPCAST_CALIBRATE_ONLINE_SLOW_DRIFT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "data/units/quantity.h"

namespace stepcast {

class SlowDrift {
 public:
  static constexpr std::size_t kReference = 100;  // n
  static constexpr double kLeastShift = 0.0488;   // ln 1.05

  struct Change {
    Duration<> before;  // of the reference
    Duration<> now;     // in the middle of the steps that show it, or of the latest 50 of them
  };

  // Takes the job's next step, above 0 s. The change, if this step has shown one; then the next n
  // steps are the reference.
  std::optional<Change> Observe(Duration<> step);
  // The same where something else has shown a change.
  void BeginAnew();

 private:
  struct Sum {
    double g = 0;
    std::size_t steps = 0;  // since it left 0
  };

  void TakeReference();

  std::vector<double> reference_;  // ln(T), until there are n
  double centre_ = 0;
  double most_ = 0;   // that a residual counts for
  double sd_ = 0;     // s
  double shift_ = 0;  // |d|
  std::array<Sum, 2> sums_{};
  std::vector<double> latest_;  // ln(T) of so many steps as count for `now`, the latest last
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_ONLINE_SLOW_DRIFT_H_
