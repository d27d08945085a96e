// Captured traffic in numbers: who sends to whom, in what classes of flows, and when in a step.
#ifndef STEPCAST_DATA_PCAP_TRAFFIC_SUMMARY_H_
#define STEPCAST_DATA_PCAP_TRAFFIC_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/pcap/captured_traffic.h"

namespace stepcast {

// Bytes from each host (a row) to each other.
using TrafficMatrix = std::vector<std::vector<double>>;

// The ring that carries most of what hosts send.
struct RingOrder {
  std::vector<std::size_t> hosts;  // each sends to the next, the last to the first
  double share = 0;                // of what these hosts send to any host
};
// Each host sends the most to one other. Where following that comes back to the first, and carries
// at least kLeastOfRing of all that those on the way send, it is a ring.
inline constexpr double kLeastOfRing = 0.9;
std::optional<RingOrder> FindRing(const TrafficMatrix& between);

struct ClassTraffic {
  std::int64_t flows = 0;
  TrafficCount count;
};

// Medians over the steps of a host.
struct HostSummary {
  std::size_t steps = 0;
  double bytes = 0;
  double first_s = 0;
  double last_s = 0;
  double busy_s = 0;
  double hidden = 0;  // share of all its busy time in which its step computed
};

// The values behind a distribution, the least first.
using Sample = std::vector<double>;

struct TrafficSummary {
  TrafficCount all;
  TrafficPeriods periods;
  std::array<ClassTraffic, kFlowClassCount> classes{};
  std::vector<HostSummary> hosts;
  TrafficMatrix between;  // in steps; in all, where no steps are known
  std::optional<RingOrder> ring;
  std::size_t steps = 0;  // different ones
  // One value for each step of each host, flow, large flow in a step, host in a step, step.
  Sample step_s;
  Sample flow_bytes;
  Sample large_flow_step_bytes;
  Sample host_step_bytes;
  Sample step_bytes;             // between hosts
  std::optional<double> hidden;  // share of all busy time in which the sender's step computed
};

TrafficSummary Summarise(const CapturedTraffic& traffic);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PCAP_TRAFFIC_SUMMARY_H_
