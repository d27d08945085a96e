// Workload files: a network that the catalogue does not have, given by its user.
//
// Needs `name` and one of `parameters` (a count) and `gradient_bytes`. Optional: `title`, `source`,
// `trainable_parameters` (default: all of `parameters`), how it is trained, by the keys of
// data/values/training_facts.h, and `layers`, in forward order, each with `kind`, and optionally
// `name`, `tensors` (parameter count of each), `statistics`, `forward_flop` and `activation_bytes`
// for one sample, `operation`, and `causal` of attention. Where layers are given the totals must
// agree with them.
#ifndef STEPCAST_DATA_IO_WORKLOAD_FILE_H_
#define STEPCAST_DATA_IO_WORKLOAD_FILE_H_

#include <string>

#include "data/record/workload.h"

namespace stepcast {

Workload ReadWorkload(const std::string& path);
Workload ParseWorkload(const std::string& text, const std::string& path);

// The workload as YAML; ParseWorkload gives it back.
std::string FormatWorkload(const Workload& workload);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_WORKLOAD_FILE_H_
