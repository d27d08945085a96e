// What tools tell of the network between two nodes.
//
//   iperf3 --json   a test of TCP or UDP (iperf_api.c of esnet/iperf): rates, retransmissions,
//   round
//                   trips of TCP, congestion control, MTU, and of UDP the packets lost
//   ping            of iputils, BusyBox and BSD: the round trip and the packets lost
//   ethtool IF      the port's speed
//   ss -ti          TCP's own view of connections (misc/ss.c of iproute2): the least round trip,
//                   retransmissions, windows, congestion control, MTU; none of ssh (port 22)
//
// A fact is what a cluster file states of a link; a rate that one tool reached is none, as a line
// may carry more, and stands among the findings. Every number says from where in the file it comes.
#ifndef STEPCAST_DATA_LOGS_LINK_LOG_H_
#define STEPCAST_DATA_LOGS_LINK_LOG_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/logs/log_lines.h"
#include "data/record/link.h"

namespace stepcast {

enum class LinkUnit { kRate, kTime, kSize, kCount };

struct LinkFinding {
  std::string name;  // "goodput"
  double value = 0;
  LinkUnit unit = LinkUnit::kCount;
  std::string what;  // in words
  std::string from;  // "line 78: end.sum_received.bits_per_second"
};

struct LinkLog {
  std::string tool;  // with its version, where the file tells it
  LinkFacts link;
  std::map<std::string, std::string> sources;  // by the names of LinkFacts::ForEach
  std::vector<LinkFinding> findings;
  std::vector<std::string> flags;  // of stepcast diagnose, as a shell reads them
  std::vector<std::string> remarks;
  UnknownLines unknown;
};

// Heads the table that iperf3 prints without --json.
inline constexpr std::string_view kIperf3Table = "[ ID] Interval";

// What was read of the file. Throws InputError for a number that no link has.
LinkLog CheckedLink(LinkLog log, const std::string& path);

// Each throws InputError for what is no output of its tool, and where that failed.
LinkLog ReadIperf3(const std::string& path);
LinkLog ReadPing(const std::string& path);
LinkLog ReadEthtool(const std::string& path);
LinkLog ReadSs(const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_LINK_LOG_H_
