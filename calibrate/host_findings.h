// What a calibration found out about named hosts, in sentences for people.
//
// A link is told by the nominal rate next to its fitted one, and never as faster than its stated
// port: a link that holds nothing back is fitted anywhere beyond what is needed, and that it has
// its port's rate is all that the runs say. Hosts that no run tells apart share an estimate: where
// it is slow, one of them or another is meant; and what one run alone shows is doubtful.
//
// A run is as fast as the slowest of its links. Of hosts whose every pair is slow all but one
// explain all runs, and the last, which no run shows without another, stays as stated: none of them
// is to blame then, but the rate that the cluster file states of them all.
#ifndef STEPCAST_CALIBRATE_HOST_FINDINGS_H_
#define STEPCAST_CALIBRATE_HOST_FINDINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/run.h"

namespace stepcast {

// Libraries reach as little as 0.57 of a line (docs/explanation/step-model.md): a link of less than
// this share of the stated rate is another one.
inline constexpr double kLeastShareOfLine = 0.5;

// The rate of a host's port as the cluster file states it: the host's own, else the cluster's. Of
// the hosts of a scope "hosts a+b" the slowest.
std::optional<DataRate<>> PortOf(const Cluster& cluster, const std::string& scope);

// Two links or more that are alike and slower than half of what is stated, one of them in each run
// between hosts that are named. No other link is known.
struct LinksBelowStated {
  std::vector<std::string> hosts;
  DataRate<> slowest;
  DataRate<> fastest;
  DataRate<> stated;
};
std::optional<LinksBelowStated> FindLinksBelowStated(const Calibration& calibration,
                                                     const Cluster& cluster,
                                                     const std::vector<Run>& runs);

// A sentence for each group of hosts: those that compute otherwise than the rest, then links, the
// slowest first. `cluster` as stated, `runs` as fitted.
std::vector<std::string> HostFindings(const Calibration& calibration, const Cluster& cluster,
                                      const std::vector<Run>& runs);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_HOST_FINDINGS_H_
