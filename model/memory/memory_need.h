// What a training step needs of a device's memory, and whether the device has it (memory.h).
#ifndef STEPCAST_MODEL_MEMORY_MEMORY_NEED_H_
#define STEPCAST_MODEL_MEMORY_MEMORY_NEED_H_

#include <optional>

#include "data/units/quantity.h"

namespace stepcast {

enum class MemoryVerdict { kFits, kTight, kOutOfMemory, kUnknown };
inline constexpr const char* kMemoryVerdictNames[] = {"fits", "tight", "out of memory", "unknown"};

struct MemoryNeed {
  DataSize<> parameters;
  DataSize<> gradients;
  DataSize<> optimizer;
  DataSize<> accumulation;
  DataSize<> buckets;
  DataSize<> activations;
  DataSize<> workspace;  // with the context
  DataSize<> total;
  std::optional<DataSize<>> available;
  MemoryVerdict verdict = MemoryVerdict::kUnknown;
  // Whether more than there is may fit as a step has run that lacked the exchange's `buckets`.
  bool ran_without_copies = false;

  // Whether the count is more than there is.
  bool exceeds() const { return available && total > *available; }
  // What nobody knows may fit.
  bool may_fit() const { return verdict != MemoryVerdict::kOutOfMemory; }
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_MEMORY_MEMORY_NEED_H_
