#include "model/compute/fitted_curve.h"

#include <algorithm>
#include <cstddef>

namespace stepcast {

FittedCurve<double> CurveThrough(const std::vector<double>& batches,
                                 const std::vector<double>& seconds, const Duration<>& fixed,
                                 const Duration<>& floor) {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double x = 0;
  double y = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double batch = batches[i];
    const double t = seconds[i];
    xx += 1 / (t * t);
    xy += batch / (t * t);
    yy += batch * batch / (t * t);
    x += 1 / t;
    y += batch / t;
  }
  const double determinant = xx * yy - xy * xy;
  double constant = 0;
  if (batches.size() > 1 && determinant > 1e-9 * xx * yy) {
    constant = std::max(0.0, (x * yy - y * xy) / determinant);
  }
  double per_sample = (y - constant * xy) / yy;
  if (!(per_sample > 0)) {
    constant = 0;
    per_sample = y / yy;
  }
  // The step model wants three positive parts; what does not apply is far below what does.
  constexpr Duration<> kNothing = Microseconds(2.0);
  FittedCurve<double> curve;
  curve.fixed = Max(kNothing, Seconds(constant) + fixed);
  curve.floor = Max(kNothing, floor);
  curve.per_sample = Seconds(per_sample) / Samples(1.0);
  return curve;
}

}  // namespace stepcast
