// One captured packet of TCP or UDP, taken apart.
#ifndef STEPCAST_DATA_PCAP_PACKET_H_
#define STEPCAST_DATA_PCAP_PACKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace stepcast::pcap {

// An address of IPv6, or one of IPv4 in the form ::ffff:a.b.c.d.
struct IpAddress {
  std::array<unsigned char, 16> bytes{};

  auto operator<=>(const IpAddress&) const = default;  // NOLINT: as in operation.h
  std::string Text() const;
  static std::optional<IpAddress> Parse(const std::string& text);
};

struct Packet {
  std::int64_t number = 0;  // in its file, from 1
  std::int64_t time_ns = 0;
  IpAddress from;
  IpAddress to;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  bool tcp = false;
  bool syn = false;
  bool fin = false;
  bool rst = false;
  std::uint32_t sequence = 0;
  std::int64_t payload = 0;
  std::uint32_t interface = 0;  // where the capture is of several and tells it
  bool outgoing = false;        // where the capture tells
};

enum class Decoded { kPacket, kOther, kCutShort, kBroken };

// What of a packet the capture kept, and how long it was on the line.
struct Frame {
  const unsigned char* data = nullptr;
  std::size_t kept = 0;
  std::size_t length = 0;
};

// Whether frames of this link type (LINKTYPE_* of libpcap) can be taken apart.
bool KnowsLinkType(int link_type);
// Sets all but the number and the time. Ethernet, Linux cooked (both versions), raw IP, BSD
// loopback; below them tags of VLANs, and IPv4 or IPv6 with its extension headers.
Decoded Decode(int link_type, const Frame& frame, Packet* packet);

}  // namespace stepcast::pcap

#endif  // STEPCAST_DATA_PCAP_PACKET_H_
