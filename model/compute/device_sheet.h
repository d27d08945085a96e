// What a device's data sheet says of how fast it computes at one precision: all that the curve of
// an operation knows of a device.
#ifndef STEPCAST_MODEL_COMPUTE_DEVICE_SHEET_H_
#define STEPCAST_MODEL_COMPUTE_DEVICE_SHEET_H_

#include <optional>

#include "data/record/machine.h"
#include "data/record/operation.h"

namespace stepcast {

struct DeviceSheet {
  double flop_per_s = 0;         // peak of the unit that does products at this precision
  double bytes_per_s = 0;        // of the memory
  double element_bytes = 4;      // of a stored number
  bool matrix_units = false;     // products are done by units for matrices and not by ordinary ones
  double vector_flop_per_s = 0;  // peak of the ordinary units at 32 bits
  // Peak of products of 8 bits, where dense layers compute in them and all else in 16; else 0.
  double narrow_flop_per_s = 0;
  // Peak of the ordinary units, where they compute the same numbers as those for matrices; else 0.
  double ordinary_flop_per_s = 0;
  double multiprocessors = 0;  // 0: unknown, and neither waves nor small products tell
  double cache_bytes = 0;      // the last level; 0: unknown, and nothing stays in it
  double watts = 0;            // board power limit; 0: unknown, and it does not hold the clock back
  double process_nm = 0;       // as the foundry calls it; 0: unknown, as without a limit
};

// Of products at that precision; empty where the sheet states none.
std::optional<WorkRate<>> PeakOf(const Device& device, Precision precision);

// Empty without a peak at 32 bits and a memory bandwidth. A precision whose peak the sheet does not
// have is computed at that of 32 bits; fp8 at that of bf16, which is what all but dense layers are.
std::optional<DeviceSheet> SheetOf(const Device& device, Precision precision);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_DEVICE_SHEET_H_
