// One network path as its operator describes it.
#ifndef STEPCAST_DATA_RECORD_LINK_H_
#define STEPCAST_DATA_RECORD_LINK_H_

#include <optional>

#include "data/units/quantity.h"

namespace stepcast {

// How TCP answers packet loss (Reno and CUBIC back off, BBR paces by measured bandwidth).
enum class CongestionControl { kReno, kCubic, kBbr };
inline constexpr int kCongestionControlCount = 3;
inline constexpr const char* kCongestionControlNames[kCongestionControlCount] = {"reno", "cubic",
                                                                                 "bbr"};

// What carries bytes between nodes: the kernel's TCP, or RDMA (InfiniBand, RoCE).
enum class Transport { kTcp, kRdma };
inline constexpr int kTransportCount = 2;
inline constexpr const char* kTransportNames[kTransportCount] = {"tcp", "rdma"};

// One network path, as far as it is known; unknown is a value.
struct LinkFacts {
  std::optional<DataRate<>> bandwidth = {};  // line rate, each direction
  std::optional<Duration<>> rtt = {};
  std::optional<double> loss = {};  // probability that a packet is lost, [0, 1)
  std::optional<CongestionControl> congestion_control = {};  // unknown: CUBIC, the default of Linux
  // Packets within so long are lost together; about a millisecond where an emulator on the sender
  // drops what the network card has yet to cut into packets. Unknown: each by itself.
  std::optional<Duration<>> loss_burst = {};
  std::optional<Transport> transport = {};  // unknown: TCP
  // Other traffic on it (model/network/sharing.h): exchanges of other jobs, on average over ours;
  // and what a copy or a stream of no job takes of the line rate, each direction. Unknown: none.
  std::optional<double> others = {};
  std::optional<DataRate<>> background = {};
  // What the links of a switch's nodes carry together over what its uplinks do, and how many nodes
  // those are (model/network/oversubscription.h). Unknown: the core carries all.
  std::optional<double> oversubscription = {};
  std::optional<int> nodes_per_switch = {};

  bool rdma() const { return transport == Transport::kRdma; }
  // A stated round trip or loss may hold back the connections over it.
  bool may_hold_back() const { return rtt || loss.value_or(0) > 0; }

  // Calls visit(name in files, pointer to member) for each fact: the one list of them.
  template <class Visit>
  static constexpr void ForEach(const Visit& visit) {
    visit("bandwidth", &LinkFacts::bandwidth);
    visit("rtt", &LinkFacts::rtt);
    visit("loss", &LinkFacts::loss);
    visit("congestion_control", &LinkFacts::congestion_control);
    visit("loss_burst", &LinkFacts::loss_burst);
    visit("transport", &LinkFacts::transport);
    visit("others", &LinkFacts::others);
    visit("background", &LinkFacts::background);
    visit("oversubscription", &LinkFacts::oversubscription);
    visit("nodes_per_switch", &LinkFacts::nodes_per_switch);
  }

  bool empty() const {
    bool known = false;
    ForEach([&](const char*, auto fact) { known = known || (this->*fact).has_value(); });
    return !known;
  }
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_LINK_H_
