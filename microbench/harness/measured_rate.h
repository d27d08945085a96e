// A rate that a device reaches at best. C++17, without the rest of the project, for CUDA sources.
#ifndef STEPCAST_MICROBENCH_HARNESS_MEASURED_RATE_H_
#define STEPCAST_MICROBENCH_HARNESS_MEASURED_RATE_H_

#include <string>

namespace stepcast {

struct MeasuredRate {
  std::string name;       // "fp32", "tf32", "fp16", "bf16", "convolution_fp32", "copy"
  double per_second;      // FLOP/s, a multiply-add counting as 2; for copies bytes read and written
  double relative_error;  // standard error of the median time, as a share of it
  bool stable;            // whether the stopping rule was satisfied
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_MEASURED_RATE_H_
