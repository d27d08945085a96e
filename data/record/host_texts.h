// Hosts that are known, names in words, and what a calibration found of hosts.
#ifndef STEPCAST_DATA_RECORD_HOST_TEXTS_H_
#define STEPCAST_DATA_RECORD_HOST_TEXTS_H_

#include <set>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/machine.h"

namespace stepcast {

// The names of hosts that a cluster's file or its calibration knows.
std::set<std::string> KnownHosts(const Cluster& cluster);

// The hosts of so many nodes where the cluster has no more, so that there is no choice of them.
// Nodes that nobody knows by name come last, without one. Empty where there is a choice, or no host
// is known.
std::vector<std::string> HostsOfAllNodes(const Cluster& cluster, int nodes);

// "a", "a and b", "a, b and c"; with "or" for names of which one is meant or is enough.
std::string ListedNames(const std::vector<std::string>& names, const char* word = "and");

// "n3 computes 1.30 times slower (2 of 2 runs)": of an estimate of compute_slowdown. Of hosts that
// no run tells apart one is enough to be slower, and all have to be faster.
std::string ComputeText(const ParameterEstimate& slowdown);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_HOST_TEXTS_H_
