// A workload's compute time from a device's profile: the sum of its layers.
//
//   D(b)   = sum over layers of forward and backward                         on the device  [s]
//   host   = o (2 L + R)                                                                    [s]
//   A(b)   = c max(0, G + s b O - K)                                        allocation      [s]
//   t(b)   = host + D(b) + A(b)        where the host computes and starts kernels in turn (CPU)
//   t(b)   = || host, D(b) ||_4        where it runs ahead of the device (GPU)
//   u      = sum of updates, and o_u for each tensor, where the host's work adds; one update of all
//            parameters, as PyTorch's foreach, on a GPU                                        [s]
//
//   L      layers; a backward pass counts where there is one
//   R      layers that are recomputed (data/record/blocks.h): their forward pass is part of their
//          backward pass once more
//   c      time for a byte of memory that is mapped anew, where it was measured            [s/B]
//   G, O   bytes of gradients; of outputs, as often as they are computed, and their
//          gradients, for one sample                                                        [B]
//   s, K   kRemappedShare, kKeptMemory of the allocator                                    [1], [B]
//   o, o_u what a framework spends on one pass of a layer, and on the update of one tensor,
//          whatever their size: HostOverhead(), kUpdateHostOverhead                           [s]
//
// Layers are taken one by one, as an eager framework runs them: nothing is fused, nothing runs
// beside anything else. A compiler that fuses element-wise layers saves up to the time of those.
// Both o and fusion are what calibration finds out: they move fixed_time (CPU) or floor_time (GPU),
// and sample_time, of which this sum gives the prior.
//
// Attention that is fused is one layer, scaled from products of attention that were measured.
//
// Before the first layer with parameters nothing has a backward pass. The backward pass of a sum is
// a fork's (data/record/operation.h). Note that t never falls with b.
#ifndef STEPCAST_MODEL_COMPUTE_PROFILED_COMPUTE_H_
#define STEPCAST_MODEL_COMPUTE_PROFILED_COMPUTE_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/fused_attention.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/compute/fitted_curve.h"
#include "model/compute/operation_times.h"

namespace stepcast {

// Where a GPU computes, the host launches kernels through a driver, allocates, and casts where the
// precision is mixed. Steps of small batches that no longer tell one GPU, network or precision from
// another take 78 to 90 us for each layer and pass: PyTorch 0.3 to 2 in eager mode and MXNet 1.2,
// on GTX 1080 Ti, RTX 2080 Ti, V100 and A100 (tables of ryujaehun/pytorch-gpu-benchmark,
// u39kun/deep-learning-benchmark and mvsjober/ml-benchmarks at GitHub). DenseNet-121 takes 73 ms on
// an A100 in fp16 and 74 ms in TF32. A graph that is replayed, or a compiler, spends less:
// calibration finds that out.
inline constexpr Duration<> kGpuHostOverhead = Microseconds(80.0);
// Overheads of PyTorch 1.13 in eager mode, autograd included, on one core of a 2023 Xeon, per layer
// or tensor that a perceptron of eight units has more: 5 us forward and 9 us backward; 5 us for a
// tensor's update by momentum (three operations outside autograd). Where layers run in oneDNN,
// which is handed each call's primitive anew, 15 us and 26 us.
inline constexpr Duration<> kCpuHostOverhead = Microseconds(7.0);
inline constexpr Duration<> kOneDnnHostOverhead = Microseconds(20.0);
inline constexpr Duration<> kUpdateHostOverhead = Microseconds(5.0);
// glibc's allocator gives freed memory at the top of its heap back, and PyTorch frees gradients and
// activations in each step. Counted page faults of PyTorch 1.13: the gradients of ResNet-18 in each
// step, 8 to 18 per cent of what ResNet-18 and MobileNet write at batches 2 and 8, none of a
// perceptron with 3 MB of gradients. Other allocators keep all.
inline constexpr double kRemappedShare = 0.1;
inline constexpr DataSize<> kKeptMemory = Mebibytes(16.0);
// Standard deviation of ln(step / sum), for all layers together: a sum of layers measured one by
// one knows nothing of neighbours in a cache, allocation, and the framework between operations.
inline constexpr double kProfiledLogSd = 0.08;
// That of a profile which was carried over from another device (model/compute/carried_profile.h):
// by how much whole GPUs differ from each other in the curve's errors, in tables of products and of
// convolutions (tools/learn_devices).
inline constexpr double kCarriedLogSd = 0.3;

// A layer as it runs.
struct ProfiledLayer {
  std::string name;
  LayerKind kind = LayerKind::kElementwise;
  OperationTime forward;
  OperationTime backward;  // origin kNone where there is none
  OperationTime update;
};

struct ProfiledSum {
  std::vector<ProfiledLayer> layers;
  Duration<> forward;  // on the device
  Duration<> backward;
  Duration<> update;
  Duration<> host;         // of forward and backward
  Duration<> allocation;   // of memory that the host maps anew
  Duration<> host_update;  // of the update
  // Standard deviation of ln(true / sum) of forward and backward, by what was measured alone.
  double log_sd = 0;
  Duration<> scaled;  // of forward and backward, the part of layers that were not measured
  Duration<> beyond;  // and of those beyond the measured batches
  bool flagged = false;
  bool out_of_memory = false;
};

// Of a pass of a layer, in training on the profile's device. Profiles hold the device's time alone,
// whether a library's bare calls or a framework's kernels were timed.
Duration<> HostOverhead(const ComputeProfile& profile);

class ProfiledCompute {
 public:
  // At the workload's precision, with its optimizer. Throws InputError, naming the layer, where the
  // profile has nothing of its kind.
  ProfiledCompute(const ComputeProfile& profile, const Workload& workload);

  ProfiledSum Sum(double batch) const;

  // Forward and backward of one micro-step, the host included; and the update.
  Duration<> MicroStep(double batch) const;
  // The same, were nothing recomputed.
  Duration<> MicroStepOnce(double batch) const;
  Duration<> Update() const;
  // The host's part of MicroStep.
  Duration<> Host() const { return host_overhead_ * operations_; }
  // Standard deviation of ln(true / MicroStep): what the samples leave open of D, kProfiledLogSd
  // for all else and, of times from another device, kCarriedLogSd.
  double LogSd(double batch) const;
  // By how much LogSd exceeds that at the largest measured batch, in squares; 0 where it does not.
  double ExtraLogSd(double batch) const;

  // t(b) as the step model's curve, as near as it comes to all measured batches; by how much that
  // misses them, as a standard deviation of logarithms; and what takes the curve to MicroStep.
  const FittedCurve<double>& Curve() const { return curve_; }
  double CurveMisfit() const;
  double ShapeAt(double batch) const;

  // Seconds of each layer's backward pass at the batch, in forward order: when gradients are ready.
  // Those of fused attention are its last layer's.
  std::vector<double> BackwardSeconds(double batch) const;

  // Batches at which most of the workload's layers were measured, rising.
  const std::vector<double>& batches() const { return batches_; }
  const std::string& device() const { return device_; }
  bool runs_ahead() const { return runs_ahead_; }
  // The device that was measured, where another one is forecast from it; else empty.
  const std::string& carried_from() const { return carried_from_; }

 private:
  // The curves that answer for a layer; none where it has no such pass.
  struct Parts {
    LayerAsRun run;
    bool recomputed = false;
    std::optional<OperationTimes::Curve> forward;
    std::optional<OperationTimes::Curve> backward;
    std::optional<OperationTimes::Curve> update;
  };
  // Forward and backward of all layers, and the error of that.
  struct Device {
    Duration<> time;
    double log_sd = 0;
  };
  // `once`: were nothing recomputed.
  Device OnDevice(double batch, bool once = false) const;
  double WithTheRest(double log_sd) const;
  FittedCurve<double> FitCurve() const;
  std::vector<double> OwnBatches() const;
  OperationTimes::Curve ResolveUpdate(std::int64_t parameters) const;
  Duration<> Join(const Duration<>& host, const Duration<>& device) const;
  Duration<> Allocation(double batch, bool once = false) const;

  OperationTimes times_;
  Workload workload_;
  std::string device_;
  std::string carried_from_;
  bool runs_ahead_;
  Duration<> host_overhead_;  // of an operation
  std::vector<Parts> parts_;
  std::optional<OperationTimes::Curve> update_at_once_;  // of all parameters
  DataSize<> written_;        // outputs and their gradients, for one sample
  DataSize<> written_again_;  // of these, what is recomputed
  DataSize<> gradients_;      // of parameters
  std::vector<double> batches_;
  FittedCurve<double> curve_;
  double operations_ = 0;
  double operations_again_ = 0;  // of these, what is recomputed
  double updated_tensors_ = 0;
  Device at_largest_;  // measured batch
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_PROFILED_COMPUTE_H_
