// How much of a device's roofline (model/compute/roofline.h) training reaches, and how sure that
// is.
#ifndef STEPCAST_MODEL_COMPUTE_KERNEL_EFFICIENCY_H_
#define STEPCAST_MODEL_COMPUTE_KERNEL_EFFICIENCY_H_

namespace stepcast {

// Share of the roofline that training reaches: 0.4 to 0.7 on public step times of residual,
// recurrent and transformer networks on P100, T4 and RTX 4090; above 1 where convolutions need
// fewer multiplications than are counted (VGG) or tensor cores are used. ln-normal.
inline constexpr double kKernelEfficiency = 0.5;
inline constexpr double kKernelEfficiencyLogSd = 0.7;
// Half of that variance is the device's, shared by all its workloads, and half the workload's: four
// networks on one device lie within a factor of two of each other (public traces, T4).
inline constexpr double kDeviceEfficiencyLogSd = 0.5;
inline constexpr double kWorkloadEfficiencyLogSd = 0.5;

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_KERNEL_EFFICIENCY_H_
