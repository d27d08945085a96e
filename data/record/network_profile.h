// What was measured of a network: who was there, and a row for each direction of each measurement.
#ifndef STEPCAST_DATA_RECORD_NETWORK_PROFILE_H_
#define STEPCAST_DATA_RECORD_NETWORK_PROFILE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stepcast {

// What was measured, of one host's bytes on their way to another.
//
// kLatency: small messages there and back, one at a time
// kOneFlow, kSeveralFlows: as fast as one connection carries them, or several at once
// kBothWays: several each way at once
// kPaced: several at four fifths of that rate both ways, so that no queue overflows: what is sent
// again then was lost on the way
// kTwoPeers: as fast as can be, while the sender sends to another host, too
// kIncast: while all other hosts send to the same one
enum class NetworkKind { kLatency, kOneFlow, kSeveralFlows, kBothWays, kPaced, kTwoPeers, kIncast };
inline constexpr int kNetworkKindCount = 7;
inline constexpr const char* kNetworkKindNames[kNetworkKindCount] = {
    "latency", "one_flow", "several_flows", "both_ways", "paced", "two_peers", "incast"};

// What the sender's kernel knows of its connections at the end.
struct TcpFacts {
  std::int64_t segments = 0;       // with data, those sent again included
  std::int64_t retransmitted = 0;  // of them
  std::int64_t needless = 0;       // of these, had twice by the receiver
  double rtt_s = 0;                // smoothed, with what waits in queues
  double min_rtt_s = 0;
  double window_segments = 0;   // of congestion control
  int segment_bytes = 0;        // of payload
  double receiver_limited = 0;  // share of the time in which the receiver's window held it back
  double sender_limited = 0;    // the same of the sender's buffer
  std::string congestion_control;
};

// The most that a profile may say, whoever tells it.
inline constexpr int kMostProbedHosts = 256;
inline constexpr int kMostProbeFlows = 64;    // from one of them to another at once
inline constexpr double kMostPayload = 1e14;  // B/s
inline constexpr double kMostSegments = 1e15;
inline constexpr int kLargestSegment = 1 << 20;   // bytes
inline constexpr double kLongestRoundTrip = 1e6;  // s

struct NetworkRow {
  NetworkKind kind = NetworkKind::kLatency;
  int from = 0;  // among the hosts
  int to = 0;
  int flows = 1;
  // Of kLatency, there and back.
  std::optional<double> rtt_median_s;
  std::optional<double> rtt_p10_s;
  // Of all others: payload that the receiver's program got [B/s].
  std::optional<double> bytes_per_s;
  std::optional<TcpFacts> tcp;
  std::string problem;  // why it is not known; empty where it is
};

struct NetworkHost {
  std::string name;
  std::string address;
  std::map<std::string, std::string> facts;  // interface, its speed, kernel, ...
};

struct NetworkProfile {
  std::string version;  // of the program
  std::string started;
  std::map<std::string, std::string> settings;
  std::vector<NetworkHost> hosts;
  std::vector<NetworkRow> rows;
  int planned = 0;      // rows of a whole profile
  std::string problem;  // why it ended early; empty where it did not

  bool complete() const {
    return problem.empty() && static_cast<int>(rows.size()) >= planned &&
           std::all_of(rows.begin(), rows.end(),
                       [](const NetworkRow& row) { return row.problem.empty(); });
  }
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_NETWORK_PROFILE_H_
