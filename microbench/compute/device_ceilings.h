// The best that a GPU can do, measured: the figures that a roofline needs and a data sheet only
// promises. Matrix products by cuBLASLt, convolutions by cuDNN, copies within device memory and to
// and from the host.
//
// Each figure is the best of several ways, so that it is the device's and not a library's choice:
// products of several shapes and layouts with the most promising algorithms of each, copies by the
// driver and by kernels of our own.
//
// C++17 without CUDA, so that both sides can include it.
#ifndef STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
#define STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_

#include <vector>

#include "microbench/harness/measured_rate.h"

namespace stepcast {

// Measures device `index` (0 is the first). Takes some ten seconds, up to 1.5 GiB of device memory
// and 256 MiB of page-locked memory. Throws std::runtime_error where the device fails.
//
// Besides the names of MeasuredRate: "copy_host_to_device" and "copy_device_to_host", bytes that
// cross the bus from or to page-locked memory.
std::vector<MeasuredRate> MeasureDeviceCeilings(int index);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_DEVICE_CEILINGS_H_
