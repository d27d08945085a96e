#include "microbench/network/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace stepcast::network {
namespace {

tcp_info Ask(const Socket& socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
    throw NetworkError("the kernel tells nothing of the connection");
  }
  return info;
}

}  // namespace

Arrived ReadArrived(const Socket& socket) {
  const tcp_info info = Ask(socket);
  return {static_cast<double>(info.tcpi_data_segs_in),
          static_cast<double>(info.tcpi_bytes_received), static_cast<double>(info.tcpi_rcv_mss)};
}

TcpFacts ReadTcpInfo(const Socket& socket) {
  const tcp_info info = Ask(socket);
  TcpFacts facts;
  constexpr double kMicrosecond = 1e-6;
  facts.segments = info.tcpi_data_segs_out;
  facts.retransmitted = info.tcpi_total_retrans;
  // What the receiver had twice was sent again without need.
  facts.needless = std::min(info.tcpi_dsack_dups, info.tcpi_total_retrans);
  facts.rtt_s = info.tcpi_rtt * kMicrosecond;
  facts.min_rtt_s = info.tcpi_min_rtt * kMicrosecond;
  facts.window_segments = info.tcpi_snd_cwnd;
  facts.segment_bytes = static_cast<int>(info.tcpi_snd_mss);
  if (info.tcpi_busy_time > 0) {
    const auto busy = static_cast<double>(info.tcpi_busy_time);
    facts.receiver_limited = std::min(1.0, static_cast<double>(info.tcpi_rwnd_limited) / busy);
    facts.sender_limited = std::min(1.0, static_cast<double>(info.tcpi_sndbuf_limited) / busy);
  }
  char name[32] = "";
  socklen_t length = sizeof name - 1;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) {
    facts.congestion_control = name;
  }
  if (facts.congestion_control.empty()) facts.congestion_control = "unknown";
  return facts;
}

TcpFacts Joined(const std::vector<TcpFacts>& flows) {
  TcpFacts sum;
  for (const TcpFacts& flow : flows) {
    const double share = 1.0 / static_cast<double>(flows.size());
    sum.segments += flow.segments;
    sum.retransmitted += flow.retransmitted;
    sum.needless += flow.needless;
    sum.rtt_s += flow.rtt_s * share;
    sum.min_rtt_s = sum.min_rtt_s > 0 ? std::min(sum.min_rtt_s, flow.min_rtt_s) : flow.min_rtt_s;
    sum.window_segments += flow.window_segments * share;
    sum.segment_bytes = flow.segment_bytes;
    sum.receiver_limited += flow.receiver_limited * share;
    sum.sender_limited += flow.sender_limited * share;
    sum.congestion_control = flow.congestion_control;
  }
  return sum;
}

}  // namespace stepcast::network
