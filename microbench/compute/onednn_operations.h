// Which primitives of oneDNN an operation consists of.
#ifndef STEPCAST_MICROBENCH_COMPUTE_ONEDNN_OPERATIONS_H_
#define STEPCAST_MICROBENCH_COMPUTE_ONEDNN_OPERATIONS_H_

#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/operation.h"
#include "microbench/compute/onednn_plan.h"

namespace stepcast {

// Why the operation makes no sense or is none of oneDNN's, before any of its lengths is used; empty
// where nothing is wrong.
std::string WhyUnsupported(const Operation& operation, int batch, Precision precision,
                           const std::vector<TrainingPass>& passes);

// Bytes and elements in plain formats, to refuse what cannot fit before oneDNN is asked.
struct PlainSize {
  double bytes = 0;           // of all tensors that any pass needs
  double largest_tensor = 0;  // elements; of those that oneDNN works on
};
PlainSize PlainSizeOf(const Operation& operation, int batch, Precision precision);

// Writes the passes into the plan. Throws dnnl::error where oneDNN has no such primitive.
void DescribeOperation(const Operation& operation, int batch, Precision precision,
                       const std::vector<TrainingPass>& passes, OneDnnPlan* plan);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_ONEDNN_OPERATIONS_H_
