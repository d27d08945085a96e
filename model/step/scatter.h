// How measured steps scatter where no calibration has told.
#ifndef STEPCAST_MODEL_STEP_SCATTER_H_
#define STEPCAST_MODEL_STEP_SCATTER_H_

namespace stepcast {

// Of one measured step around the model, as a standard deviation of ln(measured / predicted): the
// runs of public traces scatter by 6 %.
inline constexpr double kUncalibratedScatter = 0.06;

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_SCATTER_H_
