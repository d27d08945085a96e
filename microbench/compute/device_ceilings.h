// What a GPU can do at best, measured: the figures that a roofline needs and a data sheet only
// promises. Matrix products by cuBLAS, convolutions by cuDNN, copies within device memory.
//
// This header knows neither CUDA nor the rest of the project, so that both sides can include it.
#ifndef STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
#define STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_

#include <string>
#include <vector>

namespace stepcast {

struct MeasuredRate {
  std::string name;   // "fp32", "tf32", "fp16", "bf16", "convolution_fp32", "copy"
  double per_second;  // FLOP/s, a multiply-add counting as 2; for the copy bytes read and written
  double relative_error;  // standard error of the median time, as a share of it
  bool stable;            // whether the stopping rule was satisfied
};

struct DeviceCeilings {
  std::string name;  // as the driver calls it
  int multiprocessors = 0;
  double memory_bytes = 0;
  int driver_version = 0;  // as cudaDriverGetVersion: 13000 is 13.0
  int cuda_version = 0;
  unsigned long long cudnn_version = 0;
  std::vector<MeasuredRate> rates;
};

struct CeilingsOutcome {
  bool measured = false;
  std::string message;  // why not, in one sentence
  DeviceCeilings ceilings;
};

// Measures device `index` (0 is the first). Takes a few seconds and up to 1.5 GiB of device memory.
CeilingsOutcome MeasureDeviceCeilings(int index);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
