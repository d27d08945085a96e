// Where a job runs, as text: devices by node, and the names of hosts.
#ifndef STEPCAST_DATA_VALUES_PLACEMENT_H_
#define STEPCAST_DATA_VALUES_PLACEMENT_H_

#include <string>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

// "4-4-2": devices used on each node.
Placement ParsePlacement(std::string_view text, const InputPlace& place);
std::string FormatPlacement(const Placement& placement);

// "tupi1+tupi2".
std::vector<std::string> ParseHosts(std::string_view text, const InputPlace& place);
// The same of names that stand apart already; none are none.
std::vector<std::string> CheckedHosts(const std::vector<std::string>& names,
                                      const InputPlace& place);
std::string JoinHosts(const std::vector<std::string>& hosts);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_PLACEMENT_H_
