// Captures for tests, byte by byte: packets as hosts send them, and files as tcpdump writes them.
#ifndef STEPCAST_TESTS_SUPPORT_CAPTURE_H_
#define STEPCAST_TESTS_SUPPORT_CAPTURE_H_

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace stepcast {

// Numbers as networks send them, and as this file has them otherwise.
inline std::string Big(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}
inline std::string Little(std::uint64_t value, int bytes) {
  const std::string big = Big(value, bytes);
  return {big.rbegin(), big.rend()};
}

enum class LinkType {
  kLoopback = 0,
  kEthernet = 1,
  kRaw = 101,
  kCooked = 113,
  kIpv4 = 228,
  kIpv6 = 229,
  kCooked2 = 276
};

struct TestPacket {
  std::string from = "10.0.0.1";
  std::string to = "10.0.0.2";
  int from_port = 1000;
  int to_port = 2000;
  std::uint32_t sequence = 0;
  int payload = 0;
  std::string flags = {};  // of S, F, R, A
  bool udp = false;
  int tags = 0;           // of VLANs
  int extensions = 0;     // headers of IPv6
  bool outgoing = false;  // as cooked captures tell
  std::uint32_t interface = 3;
  bool length_is_zero = false;  // as of segments that the card is to cut up

  bool ipv6() const { return from.find(':') != std::string::npos; }

  std::string Bytes(LinkType link) const {
    std::string transport =
        Big(static_cast<std::uint64_t>(from_port), 2) + Big(static_cast<std::uint64_t>(to_port), 2);
    if (udp) {
      transport += Big(static_cast<std::uint64_t>(8 + payload), 2) + Big(0, 2);
    } else {
      unsigned bits = 0;
      constexpr std::array<char, 5> kFlags = {'F', 'S', 'R', 'P', 'A'};
      for (std::size_t i = 0; i < kFlags.size(); ++i) {
        if (flags.find(kFlags[i]) != std::string::npos) bits |= 1U << i;
      }
      // Twelve bytes of options, as with timestamps.
      transport += Big(sequence, 4) + Big(0, 4) + Big(0x80, 1) + Big(bits, 1) + Big(1000, 2) +
                   Big(0, 4) + std::string(12, '\1');
    }
    transport += std::string(static_cast<std::size_t>(payload), 'x');
    const int protocol = udp ? 17 : 6;
    std::string ip;
    if (ipv6()) {
      std::string chain;
      // Of eight bytes each, but for an authentication's twelve, which counts fours.
      constexpr int kAuthentication = 51;
      constexpr std::array<int, 4> kKinds = {0, kAuthentication, 60, 43};
      int next = protocol;
      for (int i = extensions; i-- > 0;) {
        const int kind = kKinds[static_cast<std::size_t>(i) % kKinds.size()];
        const bool longer = kind == kAuthentication;
        chain = Big(static_cast<std::uint64_t>(next), 1) + Big(longer ? 1 : 0, 1) +
                std::string(longer ? 10 : 6, '\0') + chain;
        next = kind;
      }
      const std::size_t length = length_is_zero ? 0 : chain.size() + transport.size();
      ip = Big(0x60000000, 4) + Big(length, 2) + Big(static_cast<std::uint64_t>(next), 1) +
           Big(64, 1) + Address(from) + Address(to) + chain;
    } else {
      ip = Big(0x45, 1) + Big(0, 1) + Big(length_is_zero ? 0 : 20 + transport.size(), 2) +
           Big(0, 4) + Big(64, 1) + Big(static_cast<std::uint64_t>(protocol), 1) + Big(0, 2) +
           Address(from) + Address(to);
    }
    const unsigned type = ipv6() ? 0x86dd : 0x0800;
    std::string typed;
    for (int i = 0; i < tags; ++i) typed += Big(i + 1 < tags ? 0x88a8 : 0x8100, 2) + Big(7, 2);
    typed += Big(type, 2);
    switch (link) {
      case LinkType::kEthernet: {
        std::string frame = std::string(12, '\2') + typed + ip + transport;
        // Short ones are filled up.
        frame.resize(std::max<std::size_t>(frame.size(), 60));
        return frame;
      }
      case LinkType::kCooked:
        return Big(outgoing ? 4 : 0, 2) + Big(1, 2) + Big(6, 2) + std::string(8, '\2') + typed +
               ip + transport;
      case LinkType::kCooked2:
        return typed.substr(0, 2) + Big(0, 2) + Big(interface, 4) + Big(1, 2) +
               Big(outgoing ? 4 : 0, 1) + Big(6, 1) + std::string(8, '\2') + typed.substr(2) + ip +
               transport;
      case LinkType::kLoopback:
        return Little(ipv6() ? 10 : 2, 4) + ip + transport;
      default:
        return ip + transport;
    }
  }

 private:
  static std::string Address(const std::string& text) {
    std::array<char, 16> bytes{};
    const bool v6 = text.find(':') != std::string::npos;
    inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), bytes.data());
    return {bytes.data(), v6 ? 16U : 4U};
  }
};

enum class CaptureFormat { kMicroseconds, kNanoseconds, kBigEndian, kNextGeneration };

// A file of packets. `kept` bytes of each are in it, as tcpdump -s has it.
class TestCapture {
 public:
  explicit TestCapture(LinkType link = LinkType::kEthernet,
                       CaptureFormat format = CaptureFormat::kMicroseconds,
                       std::size_t kept = 262144)
      : link_(link), format_(format), kept_(kept) {
    const auto type = static_cast<std::uint64_t>(link);
    if (format == CaptureFormat::kNextGeneration) {
      bytes_ = Block(0x0a0d0d0a,
                     Little(0x1a2b3c4d, 4) + Little(1, 2) + Little(0, 2) + std::string(8, '\xff'));
      // Times in nanoseconds.
      bytes_ += Block(1, Little(type, 2) + Little(0, 2) + Little(kept, 4) + Little(9, 2) +
                             Little(1, 2) + Little(9, 4) + Little(0, 4));
      return;
    }
    bytes_ = Number(format == CaptureFormat::kNanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 4) +
             Number(2, 2) + Number(4, 2) + Number(0, 4) + Number(0, 4) + Number(kept, 4) +
             Number(type, 4);
  }

  void Add(std::int64_t time_ns, const TestPacket& packet) {
    AddFrame(time_ns, packet.Bytes(link_));
  }
  void AddFrame(std::int64_t time_ns, const std::string& frame) {
    const std::string data = frame.substr(0, kept_);
    const auto time = static_cast<std::uint64_t>(time_ns);
    if (format_ == CaptureFormat::kNextGeneration) {
      std::string padded = data;
      padded.resize((data.size() + 3) / 4 * 4);
      bytes_ += Block(6, Little(0, 4) + Little(time >> 32, 4) + Little(time & 0xffffffff, 4) +
                             Little(data.size(), 4) + Little(frame.size(), 4) + padded);
      return;
    }
    constexpr std::uint64_t kNs = 1'000'000'000;
    bytes_ += Number(time / kNs, 4) +
              Number(time % kNs / (format_ == CaptureFormat::kNanoseconds ? 1 : 1000), 4) +
              Number(data.size(), 4) + Number(frame.size(), 4) + data;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string Number(std::uint64_t value, int bytes) const {
    return format_ == CaptureFormat::kBigEndian ? Big(value, bytes) : Little(value, bytes);
  }
  static std::string Block(std::uint32_t type, const std::string& body) {
    const std::string length = Little(body.size() + 12, 4);
    return Little(type, 4) + length + body + length;
  }

  LinkType link_;
  CaptureFormat format_;
  std::size_t kept_;
  std::string bytes_;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_CAPTURE_H_
