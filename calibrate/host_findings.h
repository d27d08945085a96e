// What a calibration found out about named hosts, in sentences for people.
//
// A link is told by the nominal rate next to its fitted one, and never as faster than its stated
// port: a link that holds nothing back is fitted anywhere beyond what is needed, and that it has
// its port's rate is all that the runs say. Hosts that no run tells apart share an estimate: where
// it is slow, one of them or another is meant; and what one run alone shows is doubtful.
#ifndef STEPCAST_CALIBRATE_HOST_FINDINGS_H_
#define STEPCAST_CALIBRATE_HOST_FINDINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/machine.h"

namespace stepcast {

// The rate of a host's port as the cluster file states it: the host's own, else the cluster's. Of
// the hosts of a scope "hosts a+b" the slowest.
std::optional<DataRate<>> PortOf(const Cluster& cluster, const std::string& scope);

// A sentence for each group of hosts: those that compute otherwise than the rest, then links, the
// slowest first. `cluster` as stated.
std::vector<std::string> HostFindings(const Calibration& calibration, const Cluster& cluster);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_HOST_FINDINGS_H_
