// The time of an operation in a profile, asked at one batch.
#ifndef STEPCAST_TESTS_MODEL_OPERATION_TIME_H_
#define STEPCAST_TESTS_MODEL_OPERATION_TIME_H_

#include <optional>

#include "model/compute/operation_times.h"

namespace stepcast {

// Empty where nothing of its kind was measured.
inline std::optional<OperationTime> TimeIn(const OperationTimes& times, const Operation& operation,
                                           TrainingPass pass, double batch) {
  const std::optional<OperationTimes::Curve> curve = times.Resolve(operation, pass);
  return curve ? std::optional(times.On(*curve, batch)) : std::nullopt;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_OPERATION_TIME_H_
