// A device as the harness sees it: something that prepares an operation and runs it by the clock.
//
// Back ends know their library (cuDNN, oneDNN) and nothing of files, budgets and statistics; the
// harness knows those and no library. Tests put a recorded clock in a back end's place.
#ifndef STEPCAST_MICROBENCH_HARNESS_BACKEND_H_
#define STEPCAST_MICROBENCH_HARNESS_BACKEND_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/operation.h"
#include "microbench/harness/measured_rate.h"

namespace stepcast {

// Version of this interface, which modules and program must share: each change of this header
// raises it.
inline constexpr const char* kBackendVersion = "1";

// Choices of the user; a back end takes those that it knows.
struct BackendOptions {
  int device = 0;              // which GPU
  int threads = 1;             // of a CPU
  bool search = false;         // time the library's algorithms instead of asking its heuristic
  bool channels_last = false;  // memory layout of images
};

// One run of a pass.
struct TimedRun {
  double seconds = 0;  // wall time of the device
  // Share of it in which the device worked for us; below 1 somebody else was served. 1 where the
  // back end cannot tell.
  double own_share = 1;
};

// An operation at a batch and a precision, with its buffers: made once, run many times. Each run
// takes other buffers than the one before, so that caches are as cold as in a training step.
class Trial {
 public:
  Trial() = default;
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  virtual ~Trial() = default;

  // Runs the pass once. Throws std::runtime_error where the device failed.
  virtual TimedRun Run(TrainingPass pass) = 0;
  // The algorithm that the library chose for the pass; empty where it does not tell.
  virtual std::string Algorithm(TrainingPass pass) const = 0;
};

// Outcome of preparing: a trial, or why there is none.
struct Preparation {
  std::unique_ptr<Trial> trial;
  PointStatus status = PointStatus::kMeasured;
  std::string reason;
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual std::string Name() const = 0;  // "onednn"
  virtual ProfiledDevice Device() = 0;
  // Settings that change the times on one device.
  virtual std::map<std::string, std::string> Settings() const = 0;

  // `passes` are those that will be run: their buffers are allocated, others' need not be. Too
  // little memory and a missing operation are outcomes, not errors.
  virtual Preparation Prepare(const Operation& operation, int batch, Precision precision,
                              const std::vector<TrainingPass>& passes) = 0;

  // A fixed piece of work that only the device's clock and other users change, a millisecond or so:
  // compared through a session, it tells a throttled device from a steady one.
  virtual TimedRun RunReference() = 0;

  // Why the device's clock is held down at the moment, in words ("power cap"); empty where it is
  // not, or the back end cannot tell.
  virtual std::string ThrottleReason() { return {}; }

  // Costs of a framework's step to the host beside its layers, to be measured with them.
  virtual std::vector<Operation> Overheads() const { return {}; }

  // Rates that the device reaches at best. Empty: the harness finds them by Prepare (ceilings.h).
  virtual std::vector<MeasuredRate> MeasureCeilings() { return {}; }

  // Whether frameworks update all parameters of a network at once rather than tensor by tensor.
  virtual bool UpdatesAtOnce() const { return false; }
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_BACKEND_H_
