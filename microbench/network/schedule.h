// Which hosts measure what, and who at the same time.
#ifndef STEPCAST_MICROBENCH_NETWORK_SCHEDULE_H_
#define STEPCAST_MICROBENCH_NETWORK_SCHEDULE_H_

#include <vector>

#include "data/record/network_profile.h"

namespace stepcast::network {

// How long one measurement lasts, and how many flows are several.
struct ProbeSettings {
  double seconds = 1;
  int flows = 4;
};

struct Edge {
  int from = 0;
  int to = 0;
};

// One thing that is measured at once; no host is in two of its groups.
struct ProbeStep {
  NetworkKind kind = NetworkKind::kLatency;
  std::vector<Edge> edges;
};

// Every pair meets once, in rounds of pairs that have no host in common, as in a tournament: n
// hosts take n-1 rounds, n if n is odd. Behind them each host sends to two others, groups of three
// beside each other, and all send to each in turn.
std::vector<ProbeStep> MakeSchedule(int hosts);

// Flows of an edge of the kind.
int FlowsOf(NetworkKind kind, const ProbeSettings& settings);
// How long one of the kind measures [s], its start left out: the first part is not counted, in
// which TCP finds the rate.
double MeasuredSeconds(NetworkKind kind, const ProbeSettings& settings);
// The part that is not counted, on paths of this round trip [s].
double WarmSeconds(NetworkKind kind, const ProbeSettings& settings, double rtt_s);

// How long the steps will take [s], as far as nobody knows the round trips.
double ExpectedSeconds(const std::vector<ProbeStep>& steps, std::size_t from,
                       const ProbeSettings& settings);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_SCHEDULE_H_
