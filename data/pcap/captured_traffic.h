// What captures of a training's hosts say: flows, and the steps in which they carried something.
//
// A flow is one direction of a connection, from its SYN to its FIN or RST. Bytes are payload of TCP
// or UDP, as the packets' own headers tell it, whatever a capture kept of them.
#ifndef STEPCAST_DATA_PCAP_CAPTURED_TRAFFIC_H_
#define STEPCAST_DATA_PCAP_CAPTURED_TRAFFIC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/record/training_steps.h"

namespace stepcast {

struct TrafficCount {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;

  void Add(std::int64_t payload) {
    ++packets;
    bytes += payload;
  }
  TrafficCount& operator+=(const TrafficCount& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
};

// By what a flow carries beside the one that carries most: at least a tenth of it, at least a
// thousandth, less, and acknowledgements alone.
enum class FlowClass { kLarge, kMedium, kSmall, kEmpty };
inline constexpr const char* kFlowClassNames[] = {"large", "medium", "small", "empty"};
inline constexpr int kFlowClassCount = 4;
inline constexpr double kLargeFlow = 1e-1;
inline constexpr double kMediumFlow = 1e-3;

struct StepTraffic {
  std::int64_t step = 0;  // its number
  TrafficCount count;
};

// Packets and bytes before the first step, in steps, between them, and after the last.
struct TrafficPeriods {
  TrafficCount before;
  TrafficCount during;
  TrafficCount between;
  TrafficCount after;

  TrafficPeriods& operator+=(const TrafficPeriods& other) {
    before += other.before;
    during += other.during;
    between += other.between;
    after += other.after;
    return *this;
  }
};

struct CapturedFlow {
  std::string from;  // address
  std::string to;
  int from_port = 0;
  int to_port = 0;
  bool tcp = false;
  std::optional<std::size_t> from_host;  // among the hosts
  std::optional<std::size_t> to_host;
  bool opened = false;  // its SYN was seen
  bool closed = false;  // its FIN, or a RST
  bool reset = false;   // a RST
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  TrafficCount all;
  TrafficPeriods periods;           // nothing where no steps are known
  std::int64_t repeated_bytes = 0;  // that TCP sent again
  std::int64_t missing_bytes = 0;   // that TCP numbered, and no packet of the capture has
  std::vector<StepTraffic> steps;   // in the order of time
  FlowClass size = FlowClass::kEmpty;
};

// What a host sent in a step. A millisecond in which it sent kBusyBytes of payload or more is busy.
inline constexpr std::int64_t kBusyBytes = 1000;
struct HostStepTraffic {
  std::int64_t step = 0;
  double step_s = 0;  // that it took
  std::int64_t bytes = 0;
  std::int64_t bytes_in_compute = 0;
  double first_s = 0;  // the first busy millisecond, since the step began
  double last_s = 0;   // the end of the last
  double busy_s = 0;
  double busy_in_compute_s = 0;  // before the end of the backward pass
};

struct CapturedHost {
  std::string name;  // an address where no name is known
  std::vector<std::string> addresses;
  std::vector<HostStepTraffic> steps;  // in which it sent anything
};

// A file, and what of it is no flow.
struct Capture {
  std::string path;
  std::string host;     // whose it is; empty where nobody said
  std::string address;  // the host's own, where the packets tell
  std::int64_t packets = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool truncated = false;         // it ends in the middle of a packet
  std::int64_t others = 0;        // packets of other protocols, and pieces of fragmented ones
  std::int64_t cut_short = 0;     // packets of which too little was kept to tell
  std::int64_t broken = 0;        // packets whose headers contradict themselves
  std::int64_t first_broken = 0;  // the number of the first
};

struct CapturedTraffic {
  std::vector<Capture> captures;
  std::vector<CapturedHost> hosts;  // ends of large flows, and those that have a name
  std::vector<CapturedFlow> flows;  // the largest first
  std::vector<HostSteps> steps;     // as they were given
  bool knows_compute = false;       // when compute ended in each step
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_PCAP_CAPTURED_TRAFFIC_H_
