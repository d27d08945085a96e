// Which rows of a problem are runs of one plan.
//
// Rows whose plans the model cannot tell apart share one evaluation: one workload on one device,
// and equal facts, down to the cap of the buckets and the groups of hosts.
#ifndef STEPCAST_CALIBRATE_GROUP_ROWS_H_
#define STEPCAST_CALIBRATE_GROUP_ROWS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"

namespace stepcast {

// The rows of each plan, in the order of the workloads' blocks, then by size. Throws InputError,
// naming the row, for a plan that no model covers.
std::vector<PlanRows> GroupRows(const CalibrationProblem& problem, const ParameterLayout& layout);

// 0 to n - 1 in an order that has nothing to do with what they stand for, and is always the same.
std::vector<std::size_t> ShuffledOrder(std::size_t n);

// The plans in an order that has nothing to do with what they are, and is always the same, but for
// the first few of each workload, which come first: the first so many are a sample of all.
std::vector<const PlanRows*> Shuffled(const std::vector<PlanRows>& plans);

// Standard deviation of ln(step) among runs of one plan: no model can be nearer to them. Empty
// without repeats.
std::optional<double> RepeatScatter(const std::vector<PlanRows>& plans);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_GROUP_ROWS_H_
