// The host of rank 0: brings all together, has them measure step by step, and keeps what they tell.
#ifndef STEPCAST_MICROBENCH_NETWORK_COORDINATOR_H_
#define STEPCAST_MICROBENCH_NETWORK_COORDINATOR_H_

#include <functional>
#include <string>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/network/meeting.h"
#include "microbench/network/schedule.h"

namespace stepcast::network {

struct ProbeOptions : MeetingOptions {
  ProbeSettings settings;
};

struct ProbeProgress {
  std::size_t done = 0;
  std::size_t steps = 0;
  double left_s = 0;
  std::string what;
};

struct ProbeHooks {
  std::function<void(const ProbeProgress&)> progress;
  // What has been measured so far, now and then and at the end.
  std::function<void(const NetworkProfile&)> keep;
  Absent absent;
};

// Measures between all hosts, of which this one is the first. A host that goes away ends what it
// had part in, and no more. Whatever happens, the profile has what was measured, and says what is
// missing and why; `profile` brings its version, its start and its settings. Throws NetworkError
// where nothing could begin: no port, or a host that did not come.
NetworkProfile RunProbe(const ProbeOptions& options, NetworkProfile profile,
                        const ProbeHooks& hooks);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_COORDINATOR_H_
