// What a GPU can do at best, measured: the figures that a roofline needs and a data sheet only
// promises. Matrix products by cuBLASLt, convolutions by cuDNN, copies within device memory and to
// and from the host, and what a launch takes.
//
// Each figure is the best of several ways, so that it is the device's and not a library's choice:
// products of several shapes and layouts with the most promising algorithms of each, copies by the
// driver and by kernels of our own.
//
// This header knows neither CUDA nor the rest of the project, so that both sides can include it.
#ifndef STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
#define STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_

#include <string>
#include <vector>

namespace stepcast {

struct MeasuredRate {
  // "fp32", "tf32", "fp16", "bf16", "convolution_fp32": FLOP/s, a multiply-add counting as 2.
  // "copy": bytes read and written in device memory. "copy_host_to_device",
  // "copy_device_to_host": bytes that cross the bus from or to page-locked memory.
  std::string name;
  double per_second;
  double relative_error;  // standard error of the median time, as a share of it
  bool stable;            // whether the stopping rule was satisfied
};

struct MeasuredTime {
  // Of kernels that do nothing, one after the other: "launch" of one by the host, "graph_launch" of
  // a graph of one kernel, "graph_kernel" of one among many in a graph.
  std::string name;
  double seconds;
  double relative_error;
  bool stable;
};

struct DeviceCeilings {
  std::string name;  // as the driver calls it
  int multiprocessors = 0;
  double memory_bytes = 0;
  int driver_version = 0;  // as cudaDriverGetVersion: 13000 is 13.0
  int cuda_version = 0;
  unsigned long long cudnn_version = 0;
  std::vector<MeasuredRate> rates;
  std::vector<MeasuredTime> latencies;
};

struct CeilingsOutcome {
  bool measured = false;
  std::string message;  // why not, in one sentence
  DeviceCeilings ceilings;
};

// Measures device `index` (0 is the first). Takes some ten seconds, up to 1.5 GiB of device memory
// and 256 MiB of page-locked memory.
CeilingsOutcome MeasureDeviceCeilings(int index);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
