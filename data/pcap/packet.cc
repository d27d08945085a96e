#include "data/pcap/packet.h"

#include <arpa/inet.h>
#include <pcap/dlt.h>

#include <algorithm>

namespace stepcast::pcap {
namespace {

constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

constexpr unsigned kIpv4 = 0x0800;
constexpr unsigned kIpv6 = 0x86dd;
constexpr int kTcp = 6;
constexpr int kUdp = 17;

unsigned Short(const unsigned char* at) { return (unsigned{at[0]} << 8) | at[1]; }
std::uint32_t Long(const unsigned char* at) { return (Short(at) << 16) | Short(at + 2); }

// The part of a frame that is not yet taken apart.
struct Rest {
  const unsigned char* at;
  std::size_t kept;
  std::size_t length;

  void Skip(std::size_t bytes) {
    at += bytes;
    kept -= bytes;
    length -= bytes;
  }
};

// Whether `bytes` more can be read; else why not.
bool Take(const Rest& rest, std::size_t bytes, Decoded* why) {
  if (rest.kept >= bytes) return true;
  *why = rest.length < bytes ? Decoded::kBroken : Decoded::kCutShort;
  return false;
}

Decoded Transport(int protocol, Rest rest, Packet* packet) {
  constexpr std::size_t kUdpHeader = 8;
  constexpr std::size_t kTcpHeader = 20;
  Decoded why{};
  if (protocol == kUdp) {
    if (!Take(rest, kUdpHeader, &why)) return why;
    packet->tcp = false;
  } else if (protocol == kTcp) {
    // Options need not have been kept.
    if (!Take(rest, kTcpHeader, &why)) return why;
    packet->tcp = true;
    packet->sequence = Long(rest.at + 4);
    const unsigned flags = rest.at[13];
    packet->fin = (flags & 1U) != 0;
    packet->syn = (flags & 2U) != 0;
    packet->rst = (flags & 4U) != 0;
  } else {
    return Decoded::kOther;
  }
  packet->from_port = static_cast<std::uint16_t>(Short(rest.at));
  packet->to_port = static_cast<std::uint16_t>(Short(rest.at + 2));
  const std::size_t header = packet->tcp ? std::size_t{rest.at[12]} / 16 * 4 : kUdpHeader;
  if (header < kUdpHeader || header > rest.length) return Decoded::kBroken;
  packet->payload = static_cast<std::int64_t>(rest.length - header);
  return Decoded::kPacket;
}

// Segments that the card is to cut up may be longer than the header can say: it says 0.
bool SetLength(std::size_t said, Rest* rest) {
  if (said == 0) return true;
  if (said > rest->length) return false;
  rest->length = said;
  rest->kept = std::min(rest->kept, said);
  return true;
}

Decoded Ipv4(Rest rest, Packet* packet) {
  constexpr std::size_t kHeader = 20;
  constexpr unsigned kOffset = 0x1fff;
  Decoded why{};
  if (!Take(rest, kHeader, &why)) return why;
  const std::size_t header = std::size_t{rest.at[0]} % 16 * 4;
  if (header < kHeader || !SetLength(Short(rest.at + 2), &rest)) return Decoded::kBroken;
  // The rest of a fragmented packet has no ports.
  if ((Short(rest.at + 6) & kOffset) != 0) return Decoded::kOther;
  const int protocol = rest.at[9];
  for (IpAddress* address : {&packet->from, &packet->to}) {
    std::copy(kMapped.begin(), kMapped.end(), address->bytes.begin());
    std::copy_n(rest.at + (address == &packet->from ? 12 : 16), 4, address->bytes.begin() + 12);
  }
  if (!Take(rest, header, &why)) return why;
  rest.Skip(header);
  return Transport(protocol, rest, packet);
}

Decoded Ipv6(Rest rest, Packet* packet) {
  constexpr std::size_t kHeader = 40;
  constexpr std::size_t kAddress = 16;
  Decoded why{};
  if (!Take(rest, kHeader, &why)) return why;
  const std::size_t said = Short(rest.at + 4);
  if (!SetLength(said == 0 ? 0 : said + kHeader, &rest)) return Decoded::kBroken;
  int next = rest.at[6];
  std::copy_n(rest.at + 8, kAddress, packet->from.bytes.begin());
  std::copy_n(rest.at + 24, kAddress, packet->to.bytes.begin());
  rest.Skip(kHeader);
  constexpr int kHopByHop = 0;
  constexpr int kRouting = 43;
  constexpr int kFragment = 44;
  constexpr int kAuthentication = 51;
  constexpr int kDestination = 60;
  constexpr int kMobility = 135;
  while (next == kHopByHop || next == kRouting || next == kFragment || next == kAuthentication ||
         next == kDestination || next == kMobility) {
    if (!Take(rest, 8, &why)) return why;
    if (next == kFragment && (Short(rest.at + 2) & 0xfff8U) != 0) return Decoded::kOther;
    std::size_t header = 8 + std::size_t{rest.at[1]} * 8;
    if (next == kFragment) header = 8;
    if (next == kAuthentication) header = 8 + std::size_t{rest.at[1]} * 4;
    next = rest.at[0];
    if (!Take(rest, header, &why)) return why;
    rest.Skip(header);
  }
  return Transport(next, rest, packet);
}

Decoded Ip(Rest rest, Packet* packet) {
  Decoded why{};
  if (!Take(rest, 1, &why)) return why;
  const int version = rest.at[0] / 16;
  if (version == 4) return Ipv4(rest, packet);
  return version == 6 ? Ipv6(rest, packet) : Decoded::kBroken;
}

// What follows an EtherType.
Decoded Typed(unsigned type, Rest rest, Packet* packet) {
  constexpr std::size_t kTag = 4;
  Decoded why{};
  while (type == 0x8100 || type == 0x88a8 || type == 0x9100) {
    if (!Take(rest, kTag, &why)) return why;
    type = Short(rest.at + 2);
    rest.Skip(kTag);
  }
  if (type != kIpv4 && type != kIpv6) return Decoded::kOther;
  if (!Take(rest, 1, &why)) return why;
  if (rest.at[0] / 16 != (type == kIpv4 ? 4 : 6)) return Decoded::kBroken;
  return Ip(rest, packet);
}

}  // namespace

std::string IpAddress::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (std::equal(kMapped.begin(), kMapped.end(), bytes.begin())) {
    inet_ntop(AF_INET, bytes.data() + kMapped.size(), text, sizeof text);
  } else {
    inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  }
  return text;
}

std::optional<IpAddress> IpAddress::Parse(const std::string& text) {
  IpAddress address;
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  std::copy(kMapped.begin(), kMapped.end(), address.bytes.begin());
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data() + kMapped.size()) == 1) return address;
  return std::nullopt;
}

bool KnowsLinkType(int link_type) {
  constexpr int kKnown[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_RAW,
                            DLT_IPV4,   DLT_IPV6,      DLT_NULL,       DLT_LOOP};
  return std::find(std::begin(kKnown), std::end(kKnown), link_type) != std::end(kKnown);
}

Decoded Decode(int link_type, const Frame& frame, Packet* packet) {
  constexpr std::size_t kEthernet = 14;
  constexpr std::size_t kCooked = 16;
  constexpr std::size_t kCooked2 = 20;
  constexpr std::size_t kLoopback = 4;
  constexpr unsigned kOutgoing = 4;
  // A longer record than packet is a capture's slip: the packet is what counts.
  Rest rest{frame.data, std::min(frame.kept, frame.length), frame.length};
  packet->interface = 0;
  packet->outgoing = false;
  Decoded why{};
  switch (link_type) {
    case DLT_EN10MB: {
      if (!Take(rest, kEthernet, &why)) return why;
      const unsigned type = Short(rest.at + 12);
      rest.Skip(kEthernet);
      return Typed(type, rest, packet);
    }
    case DLT_LINUX_SLL: {
      if (!Take(rest, kCooked, &why)) return why;
      packet->outgoing = Short(rest.at) == kOutgoing;
      const unsigned type = Short(rest.at + 14);
      rest.Skip(kCooked);
      return Typed(type, rest, packet);
    }
    case DLT_LINUX_SLL2: {
      if (!Take(rest, kCooked2, &why)) return why;
      packet->interface = Long(rest.at + 4);
      packet->outgoing = rest.at[10] == kOutgoing;
      const unsigned type = Short(rest.at);
      rest.Skip(kCooked2);
      return Typed(type, rest, packet);
    }
    case DLT_NULL:
    case DLT_LOOP:
      if (!Take(rest, kLoopback, &why)) return why;
      rest.Skip(kLoopback);
      return Ip(rest, packet);
    default:
      return Ip(rest, packet);
  }
}

}  // namespace stepcast::pcap
