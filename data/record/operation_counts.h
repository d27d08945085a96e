// The work of an operation, counted: floating-point operations and elements that pass the memory.
#ifndef STEPCAST_DATA_RECORD_OPERATION_COUNTS_H_
#define STEPCAST_DATA_RECORD_OPERATION_COUNTS_H_

#include "data/record/compute_profile.h"
#include "data/record/operation.h"

namespace stepcast {

// Elements are counted as 32-bit numbers.
inline constexpr double kBytesPerElement = 4;

// Work of one pass: at a batch of b, flop_per_sample b FLOP, and (elements_per_sample b + elements)
// elements read or written.
struct OperationCounts {
  double flop_per_sample = 0;      // a multiply-add is 2
  double elements_per_sample = 0;  // activations and their gradients
  double elements = 0;             // parameters, their gradients, optimizer states
};

// Forward: inputs and parameters are read, outputs written. Backward: the gradient of the data
// reads that of the output and the parameters; the gradient of the parameters reads that of the
// output and the input. Work is counted as data/workloads/network_builder.h says; the backward pass
// has once the forward work for each gradient.
OperationCounts CountOperation(const Operation& operation, TrainingPass pass);

// Work of one forward element of an activation function, a multiply-add counting as 2.
int FlopPerElement(Function function);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_OPERATION_COUNTS_H_
