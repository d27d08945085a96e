// Packets, as they come, become flows and what senders did in each step.
#ifndef STEPCAST_DATA_PCAP_FLOW_TABLE_H_
#define STEPCAST_DATA_PCAP_FLOW_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/pcap/captured_traffic.h"
#include "data/pcap/packet.h"

namespace stepcast::pcap {

// Where packets were seen: an interface at one of the places of capture. A packet that passes two
// of them is seen twice.
struct Point {
  std::size_t place = 0;
  std::uint32_t interface = 0;

  auto operator<=>(const Point&) const = default;
};

struct Flow {
  std::size_t point = 0;  // among the table's
  IpAddress from;
  IpAddress to;
  CapturedFlow facts;
};

// What one address sent, as one point saw it. A step may have several entries.
struct Sender {
  TrafficCount all;
  std::int64_t outgoing = 0;  // packets that left the host of the capture
  std::vector<HostStepTraffic> steps;
  // The millisecond of the last packet, since its step began.
  std::int64_t slot = -1;
  std::int64_t slot_bytes = 0;
};

// `steps` outlive the table. Where they name hosts, those of a packet are its capture's host's,
// else those of the host that has its sender's address.
class FlowTable {
 public:
  // How long each step computes, where the steps do not say it.
  FlowTable(const std::vector<HostSteps>& steps, std::map<IpAddress, std::string> host_of,
            std::optional<double> compute_s);

  // Packets from now on were captured at this place, by `host`, which may be empty.
  void Begin(std::size_t place, const std::string& host);
  // Throws InputError where memory would not be bounded.
  void Take(const Packet& packet);

  const std::vector<Point>& points() const { return points_; }
  std::vector<Flow>& flows() { return flows_; }
  const std::map<std::pair<std::size_t, IpAddress>, Sender>& senders() const { return senders_; }

 private:
  struct Key {
    std::size_t point = 0;
    IpAddress from;
    IpAddress to;
    std::uint16_t from_port = 0;
    std::uint16_t to_port = 0;
    bool tcp = false;

    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  // What is needed of a flow while it goes on.
  struct Open {
    std::size_t flow = 0;
    std::uint32_t syn = 0;
    std::uint32_t next = 0;  // sequence number
    std::int64_t holes = 0;  // bytes before it that nobody has seen
    bool any = false;
    std::size_t cursor = 0;  // among the host's steps
    const HostSteps* steps = nullptr;
    Sender* sender = nullptr;
  };
  std::size_t PointOf(std::uint32_t interface);
  Open& OpenOf(const Packet& packet, Key* key);
  void StartFlow(const Key& key, Open* open);
  void Follow(const Packet& packet, Open* open, CapturedFlow* flow);
  void CountStep();
  void Bin(const Packet& packet, Open* open, CapturedFlow* flow);
  void Use(const Packet& packet, const TrainingStep& step, Sender* sender);

  const std::vector<HostSteps>* steps_;
  std::map<IpAddress, std::string> host_of_;
  std::optional<std::int64_t> compute_ns_;
  std::size_t place_ = 0;
  const HostSteps* place_steps_ = nullptr;
  std::vector<Point> points_;
  std::vector<Flow> flows_;
  std::unordered_map<Key, Open, Hash> open_;
  std::map<std::pair<std::size_t, IpAddress>, Sender> senders_;
  std::size_t flow_steps_ = 0;
};

}  // namespace stepcast::pcap

#endif  // STEPCAST_DATA_PCAP_FLOW_TABLE_H_
