// A measured profile of a device: the times of operations, sample by sample.
#ifndef STEPCAST_DATA_RECORD_COMPUTE_PROFILE_H_
#define STEPCAST_DATA_RECORD_COMPUTE_PROFILE_H_

#include <map>
#include <string>
#include <vector>

#include "data/record/operation.h"

namespace stepcast {

// The pass of a training step that was timed. Layers have the first two, UpdateOp the third.
enum class TrainingPass { kForward, kBackward, kUpdate };
inline constexpr int kTrainingPassCount = 3;
inline constexpr const char* kTrainingPassNames[kTrainingPassCount] = {"forward", "backward",
                                                                       "update"};

// One point of the state space that a microbenchmark walks through.
struct MeasuredPoint {
  Operation operation;
  int batch = 1;  // 1 for UpdateOp and AllocateOp, which is in fp32
  Precision precision = Precision::kFp32;
  TrainingPass pass = TrainingPass::kForward;

  auto operator<=>(const MeasuredPoint&) const = default;  // NOLINT: as in operation.h
};

enum class PointStatus {
  kMeasured,
  kOutOfMemory,  // the device has not enough for it
  kUnsupported,  // the back end has no such operation
};
inline constexpr int kPointStatusCount = 3;
inline constexpr const char* kPointStatusNames[kPointStatusCount] = {"measured", "out_of_memory",
                                                                     "unsupported"};

// Samples of one point taken together, or why there are none.
struct MeasuredSamples {
  MeasuredPoint point;
  PointStatus status = PointStatus::kMeasured;
  std::vector<double> seconds;  // in the order in which they were taken
  std::string algorithm;        // what the library chose; empty where it does not tell
  std::string reason;           // where not measured
  bool busy = false;            // others used the device meanwhile
  bool throttled = false;       // its clock was lower than at other times
  // Time of the device's reference work just before, which is always the same work. 0: not taken.
  double reference_s = 0;
  std::string at;  // when, ISO 8601 in UTC
};

// Back ends, by the names that profiles hold.
inline constexpr const char* kCudaBackend = "cudnn";
inline constexpr const char* kOneDnnBackend = "onednn";
inline constexpr const char* kKinetoBackend = "kineto";

struct ProfiledDevice {
  std::string name;  // as the driver or the operating system calls it
  std::string kind;  // "gpu" or "cpu"
  // Versions, clocks, memory, multiprocessors, threads: what decides the times, by name with unit.
  std::map<std::string, std::string> facts;
};

struct ComputeProfile {
  ProfiledDevice device;
  std::string backend;  // "onednn", "cudnn"; "kineto" for an imported trace
  // Settings that change the times on one device: layout, threads, whether caches were cold.
  std::map<std::string, std::string> settings;
  std::string version;  // of the program that measured
  // The device whose times were carried over to this one; empty where it was measured. No file has
  // it.
  std::string carried_from;
  std::string started;                   // ISO 8601 in UTC
  std::vector<MeasuredSamples> samples;  // in the order in which they were taken
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_COMPUTE_PROFILE_H_
