// Times of operations from a device's profile, also at batches and lengths that were not measured.
//
// At a batch between two measured ones the time is the line between them, after the medians have
// been made monotone in the batch (isotonic regression, weighted by their certainty): work and
// bytes are linear in the batch, and what is not is a fixed cost. Beyond the largest batch the last
// line goes on; below the smallest the first one, but never below proportion to the batch.
//
// An operation that was not measured is scaled from the most alike of its kind:
//
//   t(o, b) = t(r, b) roof(o, b) / roof(r, b),    roof(o, b) = max(F b / P, E b / B)
//
//   r      measured operation of the same kind with the nearest arithmetic intensity and work
//   F, E   FLOP and bytes of a sample (bytes of parameters once)                [FLOP], [B]
//   P, B   best rates of any measured point of that precision and pass          [FLOP/s], [B/s]
//
// Holds on the device, at the settings and for the library versions that were measured. A scaled
// time is off by a factor of e^kScaledLogSd = 1.5 in one standard deviation; a time beyond the
// measured batches loses kBeyondLogSd for each doubling, kBeyondOneLogSd where there is only one
// batch. Note that times never fall with the batch.
//
// Sources: Williams, Waterman, Patterson, CACM 52 (2009) for the roofline; Barlow et al.,
// Statistical Inference under Order Restrictions (1972) for pooling adjacent violators.
#ifndef STEPCAST_MODEL_COMPUTE_OPERATION_TIMES_H_
#define STEPCAST_MODEL_COMPUTE_OPERATION_TIMES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/operation_counts.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"

namespace stepcast {

// Standard deviation of ln(measured / scaled time) between layers of one kind: a factor of 1.5.
inline constexpr double kScaledLogSd = 0.4;
// That of a line which goes on beyond its data, for each doubling of the batch.
inline constexpr double kBeyondLogSd = 0.05;
// That of a time in proportion to the roofline, where a single batch was measured.
inline constexpr double kBeyondOneLogSd = 0.15;

// Worst last.
enum class TimeOrigin { kNone, kMeasured, kBetweenBatches, kBeyondBatches, kScaled };
inline constexpr const char* kTimeOriginNames[] = {"none", "measured", "between batches",
                                                   "beyond batches", "scaled"};

struct OperationTime {
  Duration<> time;
  double log_sd = 0;  // of ln(true / time), all together
  // The part of it that layers have in common: lines between and beyond batches, relatives.
  double shared_log_sd = 0;
  TimeOrigin origin = TimeOrigin::kNone;
  std::string relative;  // what it was scaled from, as "dense"; empty otherwise
  bool flagged = false;  // measured only while the device was busy or throttled
};

class OperationTimes {
 public:
  OperationTimes(const ComputeProfile& profile, Precision precision);

  // A curve answers at any batch, so that who asks at many looks the operation up once.
  struct AtBatch {
    double batch = 0;
    double seconds = 0;
    double log_sd = 0;
    bool flagged = false;
  };
  struct Curve {
    TrainingPass pass = TrainingPass::kForward;
    OperationCounts counts;
    std::vector<AtBatch> at;         // batches rise, times do not fall
    const char* relative = nullptr;  // of a scaled one
  };
  // Empty where nothing of its kind was measured at this precision; a copy is scaled from what goes
  // element by element, too. Updates are those of this precision or, without any, in 32 bits; their
  // batch does not matter.
  std::optional<Curve> Resolve(const Operation& operation, TrainingPass pass) const;
  // The same for a layer whose operation is not stated: by its kind, FLOP and bytes.
  std::optional<Curve> ResolveScaled(LayerKind kind, const OperationCounts& counts,
                                     TrainingPass pass, const UpdateOp* update = nullptr) const;
  OperationTime On(const Curve& curve, double batch) const;

  // Batches of which layers were measured, rising.
  const std::vector<double>& batches() const { return batches_; }
  // Time for a byte of memory that the host maps anew; zero where that was not measured.
  DurationPerByte<> allocation() const { return allocation_; }
  // Whether the point did not fit the device's memory.
  bool OutOfMemory(const Operation& operation, double batch) const;

 private:
  struct Peaks {
    double flop_per_s = 0;
    double elements_per_s = 0;
  };

  double Roof(const OperationCounts& counts, TrainingPass pass, double batch) const;
  static void Pool(std::vector<AtBatch>* at);

  std::map<Operation, Curve> curves_[kTrainingPassCount];
  Peaks peaks_[kTrainingPassCount];
  DurationPerByte<> allocation_;
  std::vector<double> batches_;
  std::vector<std::pair<Operation, double>> out_of_memory_;
};

// The kind of layer that an operation is; an update has none and counts as elementwise, and an
// allocation as a reshape.
LayerKind KindOf(const Operation& operation);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_OPERATION_TIMES_H_
