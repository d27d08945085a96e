// What a measured network comes to: each host's link, and what is slower than its like.
#ifndef STEPCAST_MICROBENCH_NETWORK_FINDINGS_H_
#define STEPCAST_MICROBENCH_NETWORK_FINDINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "data/record/network_profile.h"

namespace stepcast::network {

// What is less than this share of its like is slow.
inline constexpr double kSlowShare = 0.8;
// So many packets must have been lost before a share of them is a number.
inline constexpr std::int64_t kFewestLosses = 5;

// The rows that were measured, by kind and direction.
class MeasuredRows {
 public:
  explicit MeasuredRows(const NetworkProfile& profile);
  // Null where there is none.
  const NetworkRow* Find(NetworkKind kind, int from, int to) const;
  // Payload [B/s]: of one kind; the best of one flow and several; there and back, either way's [s].
  std::optional<double> Rate(NetworkKind kind, int from, int to) const;
  std::optional<double> Best(int from, int to) const;
  std::optional<double> RoundTrip(int a, int b) const;
  int hosts() const { return hosts_; }

 private:
  int hosts_;
  std::map<std::tuple<NetworkKind, int, int>, const NetworkRow*> rows_;
};

// Segments that were sent with no queue on the way, and those of them that were lost.
struct LossCount {
  std::int64_t segments = 0;
  std::int64_t lost = 0;

  // Empty where too few were lost to tell.
  std::optional<double> share() const;
  LossCount& operator+=(const TcpFacts& tcp);
};

// One host's link, as far as it is known. Rates are payload [B/s].
struct HostLink {
  std::optional<double> sends;      // to the peer that took most
  std::optional<double> receives;   // from the peer that gave most
  std::optional<double> one_flow;   // the most that one connection carried from it
  std::optional<double> both_ways;  // sent and received at once, the sum, with the best peer
  std::optional<double> to_two;     // to two peers at once, the sum
  std::optional<double> incast;     // from all peers at once, the sum
  std::optional<double> rtt_s;      // median of its pairs' medians
  LossCount loss;                   // of its paths, both ways
  // Loss held back what it sent or received at best: the link may carry more.
  bool loss_limited = false;

  // What the link carries each way: the lesser of the two.
  std::optional<double> bandwidth() const;
};

enum class FindingKind {
  kSlowHost,
  kAsymmetricHost,
  kDistantHost,
  kLossyHost,
  kSlowPair,
  kAsymmetricPair,
  kCappedFlow,
  kLossLimited,
  kBelowPort,
  kIncastCollapse,
  kDifferentMtu
};
inline constexpr const char* kFindingNames[] = {
    "slow_host",  "asymmetric_host", "distant_host", "lossy_host",
    "slow_pair",  "asymmetric_pair", "capped_flow",  "loss_limited",
    "below_port", "incast_collapse", "different_mtu"};

struct Finding {
  FindingKind kind = FindingKind::kSlowHost;
  int host = 0;      // or from where
  int peer = -1;     // to where; -1 of a host alone
  double value = 0;  // measured: B/s, s, or a share
  double like = 0;   // what it is held against
};

struct NetworkSummary {
  std::vector<HostLink> links;  // by host
  // What most links are like: medians of the hosts', and what all paths but the lossy hosts' lose.
  std::optional<double> bandwidth;
  bool loss_limited = false;  // of most links the bandwidth is the least that they may carry
  std::optional<double> rtt_s;
  LossCount loss;
  // The median of what one flow carries, where that is less than several on most pairs.
  std::optional<double> flow_cap;
  std::vector<Finding> findings;
};

NetworkSummary Summarise(const NetworkProfile& profile);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_FINDINGS_H_
