// Captures, as tests write them byte by byte.
#include "data/pcap/import_pcap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "data/io/training_steps_file.h"
#include "data/pcap/capture_file.h"
#include "data/pcap/packet.h"
#include "data/pcap/traffic_summary.h"
#include "tests/support/capture.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

constexpr std::int64_t kStart = 1'769'860'800'000'000'000;
constexpr std::int64_t kMs = 1'000'000;

std::string Address(int host) { return "10.0.0." + std::to_string(host + 1); }

// A file of the folder, read alone.
class PcapTest : public testing::Test {
 protected:
  CapturedTraffic Import(const TestCapture& capture, const std::vector<HostSteps>& steps = {},
                         const PcapOptions& options = {}) const {
    return ImportPcap({{folder_.Write("one.pcap", capture.bytes()), ""}}, steps, options);
  }
  std::optional<InputError> ErrorFor(const std::string& bytes) const {
    const std::string path = folder_.Write("bad.pcap", bytes);
    return ErrorOf([&] { ImportPcap({{path, ""}}, {}, {}); });
  }

  TempFolder folder_;
};

// ---- Packets.

TEST_F(PcapTest, EveryKindOfFrameTellsTheSame) {
  for (const LinkType link : {LinkType::kEthernet, LinkType::kRaw, LinkType::kCooked,
                              LinkType::kCooked2, LinkType::kLoopback}) {
    for (const bool ipv6 : {false, true}) {
      for (const bool udp : {false, true}) {
        for (int more = 0; more < 3; ++more) {
          TestPacket packet;
          if (ipv6) {
            packet.from = "fd00::1";
            packet.to = "fd00::2";
            packet.extensions = 2 * more;
          }
          packet.udp = udp;
          packet.payload = 1234 + more;
          const bool has_tags = link != LinkType::kRaw && link != LinkType::kLoopback;
          packet.tags = has_tags ? more : 0;
          TestCapture capture(link);
          capture.Add(kStart, packet);
          const CapturedTraffic traffic = Import(capture);
          ASSERT_EQ(traffic.flows.size(), 1U) << static_cast<int>(link) << ipv6 << udp << more;
          const CapturedFlow& flow = traffic.flows[0];
          EXPECT_EQ(flow.from, packet.from);
          EXPECT_EQ(flow.to, packet.to);
          EXPECT_EQ(flow.from_port, packet.from_port);
          EXPECT_EQ(flow.to_port, packet.to_port);
          EXPECT_EQ(flow.tcp, !udp);
          EXPECT_EQ(flow.all.bytes, packet.payload);
          EXPECT_EQ(flow.begin_ns, kStart);
        }
      }
    }
  }
}

TEST(DecodePacket, CookedCapturesTellTheDirection) {
  for (const LinkType link : {LinkType::kCooked, LinkType::kCooked2}) {
    for (const bool outgoing : {false, true}) {
      TestPacket sent;
      sent.outgoing = outgoing;
      const std::string bytes = sent.Bytes(link);
      const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
      pcap::Packet packet;
      pcap::Decode(static_cast<int>(link), {data, bytes.size(), bytes.size()}, &packet);
      EXPECT_EQ(packet.outgoing, outgoing) << static_cast<int>(link);
      EXPECT_EQ(packet.interface, link == LinkType::kCooked2 ? sent.interface : 0);
    }
  }
}

// Takes a packet apart of which so many bytes were kept.
pcap::Decoded DecodeBytes(LinkType link, const std::string& bytes, std::size_t kept,
                          pcap::Packet* packet) {
  // On the heap, so that whoever reads too far is seen.
  const std::vector<unsigned char> heap(bytes.begin(),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(kept));
  return pcap::Decode(static_cast<int>(link), {heap.data(), heap.size(), bytes.size()}, packet);
}
pcap::Decoded DecodeBytes(LinkType link, const std::string& bytes) {
  pcap::Packet packet;
  return DecodeBytes(link, bytes, bytes.size(), &packet);
}

// What is needed is the link's header, IP's, and 20 bytes of TCP's or 8 of UDP's; what was cut off
// before is cut short, and a packet that is shorter than it says is broken.
TEST(DecodePacket, TakesWhatItNeeds) {
  using D = pcap::Decoded;
  const std::pair<LinkType, std::size_t> links[] = {{LinkType::kEthernet, 14},
                                                    {LinkType::kCooked, 16},
                                                    {LinkType::kCooked2, 20},
                                                    {LinkType::kLoopback, 4},
                                                    {LinkType::kRaw, 0}};
  for (const auto& [link, header] : links) {
    for (const bool ipv6 : {false, true}) {
      for (const bool udp : {false, true}) {
        TestPacket sent{.sequence = 0x01020304, .payload = 100, .flags = "S", .udp = udp};
        if (ipv6) sent.from = "fd00::1", sent.to = "fd00::2";
        const std::string bytes = sent.Bytes(link);
        const std::size_t needed = header + (ipv6 ? 40 : 20) + (udp ? 8 : 20);
        for (std::size_t kept = 0; kept <= bytes.size(); ++kept) {
          pcap::Packet packet;
          const D decoded = DecodeBytes(link, bytes, kept, &packet);
          ASSERT_EQ(decoded, kept < needed ? D::kCutShort : D::kPacket) << kept;
          ASSERT_EQ(packet.payload, decoded == D::kPacket ? 100 : 0) << kept;
          ASSERT_EQ(DecodeBytes(link, bytes.substr(0, kept)),
                    kept < bytes.size() ? D::kBroken : D::kPacket)
              << kept;
        }
      }
    }
  }
}

TEST(DecodePacket, TellsFlagsPortsAndNumbers) {
  for (const std::string flags : {"", "S", "F", "R", "A", "SA", "FA"}) {
    const std::string bytes =
        TestPacket{.from_port = 0x0102, .to_port = 0xfffe, .sequence = 0xf1020304, .flags = flags}
            .Bytes(LinkType::kRaw);
    pcap::Packet packet;
    ASSERT_EQ(DecodeBytes(LinkType::kRaw, bytes, bytes.size(), &packet), pcap::Decoded::kPacket);
    EXPECT_EQ(packet.syn, flags.find('S') != std::string::npos) << flags;
    EXPECT_EQ(packet.fin, flags.find('F') != std::string::npos) << flags;
    EXPECT_EQ(packet.rst, flags.find('R') != std::string::npos) << flags;
    EXPECT_EQ(packet.from_port, 0x0102);
    EXPECT_EQ(packet.to_port, 0xfffe);
    EXPECT_EQ(packet.sequence, 0xf1020304);
    EXPECT_EQ(packet.payload, 0);
  }
}

// Headers between, options, and pieces of which the first alone has ports.
TEST(DecodePacket, HeadersBetween) {
  using D = pcap::Decoded;
  const auto decode = [](std::string bytes, LinkType link = LinkType::kRaw) {
    pcap::Packet packet;
    const D decoded = DecodeBytes(link, bytes, bytes.size(), &packet);
    EXPECT_TRUE(decoded != D::kPacket || (packet.payload == 100 && packet.to_port == 2000));
    return decoded;
  };
  const std::string v4 = TestPacket{.payload = 100}.Bytes(LinkType::kRaw);
  const auto v4_with = [&](std::size_t at, int value) {
    std::string bytes = v4;
    bytes[at] = static_cast<char>(value);
    return bytes;
  };
  std::string options = v4_with(0, 0x46);
  options.insert(20, 4, '\1');
  options.replace(2, 2, Big(options.size(), 2));
  EXPECT_EQ(decode(options), D::kPacket);
  EXPECT_EQ(decode(v4_with(0, 0x44)), D::kBroken) << "a header of 16 bytes";
  EXPECT_EQ(decode(v4_with(0, 0x55)), D::kBroken) << "IP of version 5";
  EXPECT_EQ(decode(v4_with(6, 0x40)), D::kPacket) << "not to be cut";
  EXPECT_EQ(decode(v4_with(6, 0x20)), D::kPacket) << "the first of several pieces";
  EXPECT_EQ(decode(v4_with(6, 0x10)), D::kOther);
  EXPECT_EQ(decode(v4_with(7, 1)), D::kOther);
  EXPECT_EQ(decode(v4_with(9, 1)), D::kOther) << "ICMP";
  EXPECT_EQ(decode(v4_with(32, 0x10)), D::kBroken) << "TCP's header of 4 bytes";

  const std::string v6 =
      TestPacket{.from = "fd00::1", .to = "fd00::2", .payload = 100}.Bytes(LinkType::kRaw);
  const auto v6_with = [&](int kind, int length, unsigned offset, std::size_t size) {
    std::string bytes = v6;
    std::string header = Big(6, 1) + Big(static_cast<std::uint64_t>(length), 1) + Big(offset, 2);
    header.resize(size);
    bytes.insert(40, header);
    bytes[6] = static_cast<char>(kind);
    return bytes.replace(4, 2, Big(bytes.size() - 40, 2));
  };
  for (const int kind : {0, 43, 60, 135}) {
    EXPECT_EQ(decode(v6_with(kind, 0, 0, 8)), D::kPacket) << kind;
    EXPECT_EQ(decode(v6_with(kind, 2, 0, 24)), D::kPacket) << kind;
  }
  EXPECT_EQ(decode(v6_with(44, 0, 0, 8)), D::kPacket);
  EXPECT_EQ(decode(v6_with(44, 2, 1, 8)), D::kPacket) << "the first of several, of any number";
  EXPECT_EQ(decode(v6_with(44, 0, 8, 8)), D::kOther);
  EXPECT_EQ(decode(v6_with(51, 4, 0, 24)), D::kPacket) << "counted in fours";
  EXPECT_EQ(decode(v6_with(59, 0, 0, 8)), D::kOther) << "nothing more";

  const std::string frame = TestPacket{.payload = 100}.Bytes(LinkType::kEthernet);
  for (const unsigned tag : {0x8100U, 0x88a8U, 0x9100U, 0x8101U}) {
    std::string tagged = frame;
    tagged.insert(12, Big(tag, 2) + Big(7, 2));
    EXPECT_EQ(decode(tagged, LinkType::kEthernet), tag == 0x8101 ? D::kOther : D::kPacket) << tag;
  }
  std::string mistyped = frame;
  mistyped.replace(12, 2, Big(0x86dd, 2));
  EXPECT_EQ(decode(mistyped, LinkType::kEthernet), D::kBroken);
}

// By the numbers of libpcap: Ethernet, Linux cooked in both forms, raw IP in three, BSD loopback in
// two; not wireless, token ring or Bluetooth.
TEST(DecodePacket, LinksThatAreKnown) {
  for (const int type : {1, 113, 276, 12, 228, 229, 0, 108}) {
    EXPECT_TRUE(pcap::KnowsLinkType(type)) << type;
  }
  for (const int type : {105, 127, 6, 187, -1}) EXPECT_FALSE(pcap::KnowsLinkType(type)) << type;
}

TEST(DecodePacket, AddressesAreWrittenAsTheyAreRead) {
  const std::pair<const char*, const char*> cases[] = {{"10.0.0.1", "10.0.0.1"},
                                                       {"::ffff:10.0.0.1", "10.0.0.1"},
                                                       {"fd00:0::1", "fd00::1"},
                                                       {"::1", "::1"}};
  for (const auto& [text, written] : cases) {
    const auto address = pcap::IpAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->Text(), written);
  }
  for (const char* text : {"", "10.0.0", "host", "10.0.0.256", "fd00"}) {
    EXPECT_FALSE(pcap::IpAddress::Parse(text)) << text;
  }
}

TEST_F(PcapTest, EveryKindOfFileTellsTheSame) {
  for (const CaptureFormat format : {CaptureFormat::kMicroseconds, CaptureFormat::kNanoseconds,
                                     CaptureFormat::kBigEndian, CaptureFormat::kNextGeneration}) {
    TestCapture capture(LinkType::kEthernet, format);
    capture.Add(kStart + 5000, {.payload = 100});
    capture.Add(kStart + 9000, {.sequence = 100, .payload = 50});
    const CapturedTraffic traffic = Import(capture);
    ASSERT_EQ(traffic.flows.size(), 1U);
    EXPECT_EQ(traffic.flows[0].all.bytes, 150);
    EXPECT_EQ(traffic.flows[0].begin_ns, kStart + 5000);
    EXPECT_EQ(traffic.flows[0].end_ns, kStart + 9000);
    EXPECT_FALSE(traffic.captures[0].truncated);
  }
}

// A card cuts up what the kernel hands over whole; its header may not hold the length.
TEST_F(PcapTest, SegmentsLongerThanAHeaderCanSay) {
  for (const bool ipv6 : {false, true}) {
    TestCapture capture;
    TestPacket packet{.payload = 150'000, .length_is_zero = true};
    if (ipv6) packet.from = "fd00::1", packet.to = "fd00::2";
    capture.Add(kStart, packet);
    const CapturedTraffic traffic = Import(capture);
    ASSERT_EQ(traffic.flows.size(), 1U);
    EXPECT_EQ(traffic.flows[0].all.bytes, 150'000);
  }
}

TEST_F(PcapTest, TheFirstBytesOfAPacketAreEnough) {
  TestCapture capture(LinkType::kCooked2, CaptureFormat::kMicroseconds, 150);
  capture.Add(kStart, {.payload = 1448});
  EXPECT_EQ(Import(capture).flows.at(0).all.bytes, 1448);
  TestCapture too_few(LinkType::kEthernet, CaptureFormat::kMicroseconds, 40);
  too_few.Add(kStart, {.payload = 1448});
  const CapturedTraffic traffic = Import(too_few);
  EXPECT_EQ(traffic.flows.size(), 0U);
  EXPECT_EQ(traffic.captures[0].cut_short, 1);
}

TEST_F(PcapTest, WhatIsNoFlowIsCounted) {
  TestCapture capture;
  std::string arp(60, '\0');
  arp[12] = '\x08', arp[13] = '\x06';
  capture.AddFrame(kStart, arp);
  std::string icmp = TestPacket{.payload = 40}.Bytes(LinkType::kEthernet);
  icmp[23] = '\1';
  capture.AddFrame(kStart, icmp);
  std::string fragment = TestPacket{.payload = 40}.Bytes(LinkType::kEthernet);
  fragment[21] = '\x10';
  capture.AddFrame(kStart, fragment);
  // A header longer than its packet, and an address family that is none.
  std::string broken = TestPacket{.payload = 40}.Bytes(LinkType::kEthernet);
  broken[46] = '\xf0', broken[17] = '\x30', broken[16] = '\0';
  capture.AddFrame(kStart, broken);
  std::string none = TestPacket{.payload = 40}.Bytes(LinkType::kEthernet);
  none[14] = '\x75';
  capture.AddFrame(kStart, none);
  capture.Add(kStart, {.payload = 40});
  const CapturedTraffic traffic = Import(capture);
  EXPECT_EQ(traffic.flows.size(), 1U);
  EXPECT_EQ(traffic.captures[0].packets, 6);
  EXPECT_EQ(traffic.captures[0].others, 3);
  EXPECT_EQ(traffic.captures[0].broken, 2);
  EXPECT_EQ(traffic.captures[0].first_broken, 4);
}

// However it is cut off or changed, a packet is told or counted, and nothing is read beyond it.
RC_GTEST_PROP(Packet, AnyBytesAreTakenApart, ()) {
  const LinkType links[] = {LinkType::kEthernet, LinkType::kRaw, LinkType::kCooked,
                            LinkType::kCooked2, LinkType::kLoopback};
  const LinkType link =
      *rc::gen::elementOf(std::vector<LinkType>(std::begin(links), std::end(links)));
  TestPacket packet;
  packet.payload = *rc::gen::inRange(0, 60);
  packet.udp = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) packet.from = "fd00::1", packet.to = "fd00::2";
  packet.extensions = *rc::gen::inRange(0, 4);
  packet.tags = *rc::gen::inRange(0, 3);
  std::string bytes = packet.Bytes(link);
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  }
  const std::size_t kept = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  // On the heap, so that whoever reads too far is seen.
  const std::vector<unsigned char> heap(bytes.begin(), bytes.begin() + static_cast<long>(kept));
  constexpr int kRawOfLinux = 12;
  const int type = link == LinkType::kRaw ? kRawOfLinux : static_cast<int>(link);
  pcap::Packet decoded;
  if (pcap::Decode(type, {heap.data(), heap.size(), bytes.size()}, &decoded) ==
      pcap::Decoded::kPacket) {
    RC_ASSERT(decoded.payload >= 0);
    RC_ASSERT(decoded.payload < static_cast<std::int64_t>(bytes.size()));
  }
}

// ---- Flows.

TEST_F(PcapTest, AFlowGoesFromSynToFin) {
  TestCapture capture;
  const TestPacket to{};
  const TestPacket back{.from = "10.0.0.2", .to = "10.0.0.1", .from_port = 2000, .to_port = 1000};
  const auto with = [](TestPacket packet, std::uint32_t sequence, int payload,
                       const std::string& flags) {
    packet.sequence = sequence;
    packet.payload = payload;
    packet.flags = flags;
    return packet;
  };
  capture.Add(kStart, with(to, 10, 0, "S"));
  capture.Add(kStart + kMs, with(to, 10, 0, "S"));  // once more: nobody answered
  capture.Add(kStart + 2 * kMs, with(back, 500, 0, "SA"));
  capture.Add(kStart + 3 * kMs, with(to, 11, 100, "A"));
  capture.Add(kStart + 4 * kMs, with(to, 111, 0, "FA"));
  capture.Add(kStart + 5 * kMs, with(back, 501, 30, "A"));
  capture.Add(kStart + 6 * kMs, with(to, 112, 0, "A"));  // the last acknowledgement
  // The same ports, another connection.
  capture.Add(kStart + 7 * kMs, with(to, 9000, 0, "S"));
  capture.Add(kStart + 8 * kMs, with(to, 9001, 60, "A"));
  capture.Add(kStart + 9 * kMs, with(back, 531, 0, "RA"));
  const CapturedTraffic traffic = Import(capture);
  ASSERT_EQ(traffic.flows.size(), 3U);
  const CapturedFlow& first = traffic.flows[0];
  EXPECT_EQ(first.all.bytes, 100);
  EXPECT_EQ(first.all.packets, 5);
  EXPECT_TRUE(first.opened && first.closed && !first.reset);
  EXPECT_EQ(first.end_ns, kStart + 6 * kMs);
  const CapturedFlow& second = traffic.flows[1];
  EXPECT_EQ(second.all.bytes, 60);
  EXPECT_TRUE(second.opened && second.closed) << "a RST ends both ways";
  EXPECT_FALSE(second.reset) << "which it did not send";
  EXPECT_TRUE(traffic.flows[2].opened && traffic.flows[2].reset);
}

TEST_F(PcapTest, WhatIsSentAgainAndWhatIsMissing) {
  TestCapture capture;
  const auto at = [](std::uint32_t sequence, int payload) {
    return TestPacket{.sequence = sequence, .payload = payload};
  };
  // Sequence numbers pass 2^32.
  const std::uint32_t first = 0U - 150U;
  capture.Add(kStart, at(first, 100));
  capture.Add(kStart, at(first + 100, 100));
  capture.Add(kStart, at(first + 100, 100));  // again
  capture.Add(kStart, at(first + 150, 100));  // half of it again
  capture.Add(kStart, at(first + 300, 100));  // 50 are missing
  capture.Add(kStart, at(first + 250, 20));   // 20 of them come late
  const CapturedFlow flow = Import(capture).flows.at(0);
  EXPECT_EQ(flow.all.bytes, 520);
  EXPECT_EQ(flow.repeated_bytes, 150);
  EXPECT_EQ(flow.missing_bytes, 30);
  EXPECT_FALSE(flow.opened);
}

// A connection that was over and begins anew is another, with whatever number it begins; data that
// comes with the first packet are numbered behind it.
TEST_F(PcapTest, AConnectionThatWasOverBeginsAnew) {
  TestCapture capture;
  for (int times = 0; times < 2; ++times) {
    capture.Add(kStart, {.sequence = 10, .payload = 100, .flags = "S"});
    capture.Add(kStart, {.sequence = 111, .payload = 20, .flags = "A"});
    capture.Add(kStart, {.sequence = 131, .flags = "FA"});
  }
  const CapturedTraffic traffic = Import(capture);
  ASSERT_EQ(traffic.flows.size(), 2U);
  for (const CapturedFlow& flow : traffic.flows) {
    EXPECT_EQ(flow.all.bytes, 120);
    EXPECT_EQ(flow.repeated_bytes, 0);
    EXPECT_EQ(flow.missing_bytes, 0);
  }
}

// Of segments of which some are lost and some come twice, each told by its place alone.
RC_GTEST_PROP(ImportPcap, CountsWhatIsSentAgainAndWhatIsMissing, ()) {
  const TempFolder folder;
  TestCapture capture;
  std::uint32_t sequence = *rc::gen::arbitrary<std::uint32_t>();
  std::int64_t lost = 0;
  std::int64_t missing = 0;
  std::int64_t again = 0;
  for (int i = 0; i < 20; ++i) {
    const int kind = i == 0 ? 2 : *rc::gen::inRange(0, 4);
    const TestPacket packet{.sequence = sequence, .payload = *rc::gen::inRange(1, 1000)};
    sequence += static_cast<std::uint32_t>(packet.payload);
    // Nobody misses what is lost behind the last.
    if (kind == 0) {
      lost += packet.payload;
      continue;
    }
    capture.Add(kStart, packet);
    missing += lost;
    lost = 0;
    if (kind != 1 || missing > 0) continue;
    capture.Add(kStart, packet);
    again += packet.payload;
  }
  const CapturedTraffic traffic =
      ImportPcap({{folder.Write("one.pcap", capture.bytes()), ""}}, {}, {});
  RC_ASSERT(traffic.flows.at(0).repeated_bytes == again);
  RC_ASSERT(traffic.flows.at(0).missing_bytes == missing);
}

TEST_F(PcapTest, ClassesAreSharesOfTheLargest) {
  TestCapture capture;
  int port = 1;
  for (const int bytes : {0, 1, 59, 60, 5999, 6000, 60000}) {
    for (int left = bytes; left >= 0; left -= 10000) {
      capture.Add(kStart, {.from_port = port,
                           .sequence = static_cast<std::uint32_t>(bytes - left),
                           .payload = std::min(left, 10000)});
      if (left == 0) break;
    }
    ++port;
  }
  std::map<int, FlowClass> found;
  for (const CapturedFlow& flow : Import(capture).flows) found[flow.from_port] = flow.size;
  using C = FlowClass;
  const std::vector<C> expected = {C::kEmpty,  C::kSmall, C::kSmall, C::kMedium,
                                   C::kMedium, C::kLarge, C::kLarge};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[static_cast<int>(i) + 1], expected[i]) << i;
  }
}

TEST_F(PcapTest, AFilterLeavesOut) {
  TestCapture capture;
  capture.Add(kStart, {.payload = 10});
  capture.Add(kStart, {.to_port = 22, .payload = 20});
  PcapOptions options;
  options.filter = "not port 22";
  const CapturedTraffic traffic = Import(capture, {}, options);
  ASSERT_EQ(traffic.flows.size(), 1U);
  EXPECT_EQ(traffic.flows[0].all.bytes, 10);
  options.filter = "nott port 22";
  EXPECT_TRUE(Says(ErrorOf([&] { Import(capture, {}, options); }), "--filter: 'nott port 22'"));
}

// ---- Steps.

std::vector<HostSteps> TwoSteps(const std::vector<std::string>& hosts = {""}) {
  std::vector<HostSteps> steps;
  for (const std::string& host : hosts) {
    steps.push_back({host,
                     {{0, kStart, kStart + 100 * kMs, {}},
                      {1, kStart + 110 * kMs, kStart + 200 * kMs, kStart + 150 * kMs}}});
  }
  return steps;
}

TEST_F(PcapTest, PacketsFallIntoStepsByTheirTime) {
  TestCapture capture;
  const std::vector<std::pair<std::int64_t, int>> sent = {
      {-1, 1},        {0, 2},          {100 * kMs - 1, 4},
      {100 * kMs, 8}, {110 * kMs, 16}, {200 * kMs - 1, 32},
      {200 * kMs, 64}};
  TestCapture exact(LinkType::kEthernet, CaptureFormat::kNanoseconds);
  for (const auto& [time, bytes] : sent) exact.Add(kStart + time, {.payload = bytes});
  const CapturedTraffic traffic = Import(exact, TwoSteps());
  const CapturedFlow& flow = traffic.flows.at(0);
  EXPECT_EQ(flow.periods.before.bytes, 1);
  EXPECT_EQ(flow.periods.during.bytes, 2 + 4 + 16 + 32);
  EXPECT_EQ(flow.periods.between.bytes, 8);
  EXPECT_EQ(flow.periods.after.bytes, 64);
  ASSERT_EQ(flow.steps.size(), 2U);
  EXPECT_EQ(flow.steps[0].count.bytes, 6);
  EXPECT_EQ(flow.steps[0].count.packets, 2);
  EXPECT_EQ(flow.steps[1].count.bytes, 48);
  EXPECT_EQ(Summarise(traffic).between, (TrafficMatrix{{0, 54}, {0, 0}}));
}

TEST_F(PcapTest, WhatIsSentWhileComputing) {
  TestCapture capture;
  std::uint32_t sequence = 0;
  // A millisecond is busy by a thousand bytes in it; ten milliseconds of them, six in compute.
  for (int ms = 144; ms < 154; ++ms) {
    for (const int bytes : {600, 400}) {
      capture.Add(kStart + ms * kMs + bytes * 1000, {.sequence = sequence, .payload = bytes});
      sequence += static_cast<std::uint32_t>(bytes);
    }
  }
  capture.Add(kStart + 120 * kMs, {.sequence = sequence, .payload = 999});
  const CapturedTraffic traffic = Import(capture, TwoSteps());
  const HostStepTraffic step = traffic.hosts.at(0).steps.at(0);
  EXPECT_EQ(step.step, 1);
  EXPECT_NEAR(step.first_s, 0.034, 1e-9);
  EXPECT_NEAR(step.last_s, 0.044, 1e-9);
  EXPECT_NEAR(step.busy_s, 0.010, 1e-9);
  EXPECT_NEAR(step.busy_in_compute_s, 0.006, 1e-9);
  EXPECT_EQ(step.bytes, 10'999);
  EXPECT_EQ(step.bytes_in_compute, 6999);
  EXPECT_NEAR(*Summarise(traffic).hidden, 0.6, 1e-9);
  EXPECT_TRUE(traffic.knows_compute);
  const HostSummary host = Summarise(traffic).hosts.at(0);
  EXPECT_EQ(host.bytes, 10'999);
  EXPECT_NEAR(host.first_s, 0.034, 1e-9);
  EXPECT_NEAR(host.last_s, 0.044, 1e-9);
  EXPECT_NEAR(host.busy_s, 0.010, 1e-9);
  EXPECT_NEAR(host.hidden, 0.6, 1e-9);
  // Where the steps do not tell, the caller may: 30 ms compute nothing of it.
  std::vector<HostSteps> steps = TwoSteps();
  steps[0].steps[1].compute_end_ns.reset();
  EXPECT_FALSE(Summarise(Import(capture, steps)).hidden);
  PcapOptions options;
  options.compute_s = 0.030;
  EXPECT_EQ(Summarise(Import(capture, steps, options)).hidden, 0);
  options.compute_s = 0.040;
  EXPECT_NEAR(*Summarise(Import(capture, steps, options)).hidden, 0.6, 1e-9);
}

TEST_F(PcapTest, ABusyMillisecondEndsWithItsStep) {
  TestCapture capture;
  capture.Add(kStart + 90 * kMs, {.payload = 2000});
  const std::vector<HostSteps> steps = {{"", {{0, kStart, kStart + 90 * kMs + kMs / 4, {}}}}};
  EXPECT_NEAR(Import(capture, steps).hosts.at(0).steps.at(0).last_s, 0.09025, 1e-9);
}

// What a host sends by either of its addresses is one step's traffic.
TEST_F(PcapTest, AHostMayHaveTwoAddresses) {
  TestCapture capture;
  capture.Add(kStart + 120 * kMs, {.from = Address(2), .to = Address(1), .payload = 1500});
  capture.Add(kStart + 140 * kMs, {.from = Address(0), .to = Address(1), .payload = 2000});
  PcapOptions options;
  options.addresses = {{Address(0), "n1"}, {Address(1), "n2"}, {Address(2), "n1"}};
  const CapturedTraffic traffic = Import(capture, TwoSteps(), options);
  ASSERT_EQ(traffic.hosts.at(0).name, "n1");
  ASSERT_EQ(traffic.hosts[0].steps.size(), 1U);
  const HostStepTraffic& step = traffic.hosts[0].steps[0];
  EXPECT_EQ(step.bytes, 3500);
  EXPECT_EQ(step.bytes_in_compute, 3500);
  EXPECT_NEAR(step.first_s, 0.010, 1e-9);
  EXPECT_NEAR(step.last_s, 0.031, 1e-9);
  EXPECT_NEAR(step.busy_s, 0.002, 1e-9);
  EXPECT_NEAR(step.busy_in_compute_s, 0.002, 1e-9);
}

// A host whose steps are not told has none, whose capture is read before or after it.
TEST_F(PcapTest, StepsAreThoseOfTheHostThatCaptured) {
  for (const bool first : {false, true}) {
    std::vector<CaptureFile> files;
    for (const bool told : {first, !first}) {
      TestCapture capture;
      const int from = told ? 0 : 2;
      capture.Add(kStart + 120 * kMs,
                  {.from = Address(from), .to = Address(from + 1), .payload = 1500});
      const std::string host = told ? "n1" : "n2";
      files.push_back({folder_.Write(host + ".pcap", capture.bytes()), host});
    }
    const CapturedTraffic traffic = ImportPcap(files, TwoSteps({"n1"}), {});
    ASSERT_EQ(traffic.flows.size(), 2U);
    for (const CapturedFlow& flow : traffic.flows) {
      const bool told = flow.from == Address(0);
      EXPECT_EQ(flow.steps.size(), told ? 1U : 0U);
      EXPECT_EQ(flow.periods.during.bytes, told ? 1500 : 0);
    }
  }
}

// ---- Hosts.

// A ring of hosts, each of which captured what it sent and what it received, by a clock of its own.
struct RingCaptures {
  std::vector<std::size_t> order;  // of hosts
  std::vector<CaptureFile> files;
  std::vector<HostSteps> steps;
};
RingCaptures MakeRing(const TempFolder& folder, std::vector<std::size_t> order,
                      LinkType link = LinkType::kEthernet) {
  const std::size_t hosts = order.size();
  std::vector<std::vector<std::pair<std::int64_t, TestPacket>>> packets(hosts);
  RingCaptures ring{order, {}, {}};
  // Seconds apart: only the sender's clock puts a packet into its step.
  const auto clock = [](std::size_t host) {
    return kStart + static_cast<std::int64_t>(host) * 3000 * kMs;
  };
  constexpr int kSteps = 3;
  constexpr int kSegment = 1000;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < hosts; ++i) {
      const std::size_t from = order[i];
      const std::size_t to = order[(i + 1) % hosts];
      for (int segment = 0; segment < 5; ++segment) {
        const std::int64_t time = (step * 100 + 20 + segment) * kMs;
        TestPacket packet{.from = Address(static_cast<int>(from)),
                          .to = Address(static_cast<int>(to)),
                          .sequence = static_cast<std::uint32_t>((step * 5 + segment) * kSegment),
                          .payload = kSegment};
        packet.outgoing = true;
        packets[from].emplace_back(clock(from) + time, packet);
        packet.outgoing = false;
        packets[to].emplace_back(clock(to) + time + kMs / 2, packet);
        std::swap(packet.from, packet.to);
        std::swap(packet.from_port, packet.to_port);
        packet.payload = 0;
        packets[from].emplace_back(clock(from) + time + kMs, packet);
        packet.outgoing = true;
        packets[to].emplace_back(clock(to) + time + kMs / 2, packet);
      }
    }
  }
  for (std::size_t host = 0; host < hosts; ++host) {
    std::stable_sort(packets[host].begin(), packets[host].end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    TestCapture capture(link);
    for (const auto& [time, packet] : packets[host]) capture.Add(time, packet);
    const std::string name = "h" + std::to_string(host);
    ring.files.push_back({folder.Write(name + ".pcap", capture.bytes()), name});
    HostSteps steps{name, {}};
    for (int step = 0; step < kSteps; ++step) {
      const std::int64_t begin = clock(host) + step * 100 * kMs;
      steps.steps.push_back({step, begin, begin + 90 * kMs, {}});
    }
    ring.steps.push_back(steps);
  }
  return ring;
}

RC_GTEST_PROP(ImportPcap, FindsTheOrderOfAnyRing, ()) {
  const TempFolder folder;
  const auto hosts = *rc::gen::inRange<std::size_t>(2, 9);
  std::vector<std::size_t> order(hosts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = hosts - 1; i > 0; --i) {
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  // Of two hosts on Ethernet nothing tells which is which.
  const LinkType link = hosts > 2 ? LinkType::kEthernet : LinkType::kCooked;
  const RingCaptures ring = MakeRing(folder, order, link);
  const CapturedTraffic traffic = ImportPcap(ring.files, ring.steps, {});
  RC_ASSERT(traffic.hosts.size() == hosts);
  const TrafficSummary summary = Summarise(traffic);
  RC_ASSERT(summary.ring.has_value());
  RC_ASSERT(summary.ring->share == 1.0);
  std::vector<std::string> found;
  for (const std::size_t host : summary.ring->hosts) found.push_back(traffic.hosts[host].name);
  std::vector<std::string> expected;
  for (const std::size_t host : order) expected.push_back("h" + std::to_string(host));
  std::rotate(expected.begin(), std::find(expected.begin(), expected.end(), found.front()),
              expected.end());
  RC_ASSERT(found == expected);
  // Each packet counts once, in the step of its sender's clock.
  RC_ASSERT(summary.all.bytes == static_cast<std::int64_t>(hosts) * 15'000);
  RC_ASSERT(summary.periods.during.bytes == summary.all.bytes);
  for (const double bytes : summary.host_step_bytes) RC_ASSERT(bytes == 5000);
  RC_ASSERT(summary.step_bytes.size() == 3U);
  for (const double bytes : summary.step_bytes) RC_ASSERT(bytes == 5000.0 * hosts);
  RC_ASSERT(summary.host_step_bytes.size() == 3 * hosts);
}

// The host that captured is an end of nearly all packets, and of two such ends nobody knows which.
TEST_F(PcapTest, TheHostThatCapturedIsTheOnlyEndOfNearlyAll) {
  TestCapture capture;
  for (int i = 0; i < 9; ++i) {
    capture.Add(kStart + i * kMs, {.from = Address(0), .to = Address(1), .payload = 100});
  }
  EXPECT_EQ(Import(capture).captures.at(0).address, "");
  // Now the second host is an end of 9 in 11.
  for (int i = 9; i < 11; ++i) {
    capture.Add(kStart + i * kMs, {.from = Address(2), .to = Address(0), .payload = 100});
  }
  EXPECT_EQ(Import(capture).captures.at(0).address, Address(0));
}

TEST_F(PcapTest, ASenderThatCapturedNothingIsSeenByItsReceivers) {
  RingCaptures ring = MakeRing(folder_, {0, 1, 2, 3});
  ring.files.erase(ring.files.begin() + 2);
  EXPECT_TRUE(Says(ErrorOf([&] { ImportPcap(ring.files, ring.steps, {}); }),
                   "--steps: 'h2' has steps and no capture"));
  ring.steps.erase(ring.steps.begin() + 2);
  const CapturedTraffic traffic = ImportPcap(ring.files, ring.steps, {});
  ASSERT_EQ(traffic.hosts.size(), 4U);
  EXPECT_EQ(traffic.hosts[3].name, Address(2)) << "behind those that have a name";
  EXPECT_EQ(Summarise(traffic).all.bytes, 60'000);
  ASSERT_TRUE(Summarise(traffic).ring);
  EXPECT_EQ(Summarise(traffic).ring->hosts, (std::vector<std::size_t>{0, 1, 3, 2}));
}

TEST_F(PcapTest, FilesOfOneHostFollowOneAnother) {
  RingCaptures ring = MakeRing(folder_, {0, 1, 2});
  const CapturedTraffic whole = ImportPcap(ring.files, ring.steps, {});
  // As tcpdump -C cuts them: the file's header, and then a part of its packets.
  const std::string bytes = FileContent(ring.files[0].path);
  constexpr std::size_t kFileHeader = 24;
  constexpr std::size_t kPacketHeader = 16;
  std::size_t at = kFileHeader;
  for (int packet = 0; packet < 17; ++packet) {
    at += kPacketHeader + static_cast<unsigned char>(bytes[at + 8]) +
          256 * static_cast<unsigned char>(bytes[at + 9]);
  }
  const std::string header = bytes.substr(0, kFileHeader);
  ring.files[0].path = folder_.Write("h0.pcap0", bytes.substr(0, at));
  ring.files.insert(ring.files.begin() + 1,
                    {folder_.Write("h0.pcap1", header + bytes.substr(at)), "h0"});
  const CapturedTraffic parts = ImportPcap(ring.files, ring.steps, {});
  ASSERT_EQ(parts.flows.size(), whole.flows.size());
  EXPECT_EQ(Summarise(parts).all.bytes, Summarise(whole).all.bytes);
  EXPECT_EQ(parts.captures[0].packets, 17);
  EXPECT_EQ(parts.captures[0].packets + parts.captures[1].packets, whole.captures[0].packets);
}

TEST_F(PcapTest, OneCaptureOfAllHostsGoesByAddresses) {
  TestCapture capture;
  for (int host = 0; host < 3; ++host) {
    capture.Add(kStart + 10 * kMs * (host + 1),
                {.from = Address(host), .to = Address((host + 1) % 3), .payload = 1000});
  }
  PcapOptions options;
  std::vector<HostSteps> steps;
  for (int host = 0; host < 3; ++host) {
    const std::string name = "h" + std::to_string(host);
    options.addresses[Address(host)] = name;
    // A step that has this host's packet alone.
    const std::int64_t begin = kStart + 10 * kMs * (host + 1);
    steps.push_back({name, {{host, begin - kMs, begin + kMs, {}}}});
  }
  const TrafficSummary summary = Summarise(Import(capture, steps, options));
  EXPECT_EQ(summary.periods.during.bytes, 3000);
  EXPECT_EQ(summary.step_bytes, (Sample{1000, 1000, 1000}));
}

TEST(FindRing, OnlyWhereThereIsOne) {
  // A server and its workers; all to all; one that sends to a ring and is not on it.
  EXPECT_FALSE(FindRing({{0, 3, 3, 3}, {3, 0, 0, 0}, {3, 0, 0, 0}, {3, 0, 0, 0}}));
  EXPECT_FALSE(FindRing({{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}));
  const auto ring = FindRing({{0, 0, 0, 9}, {8, 0, 0.4, 0}, {0, 8, 0, 0}, {0, 0, 0, 0}});
  EXPECT_FALSE(ring);
  const auto within = FindRing({{0, 0, 0, 9}, {8, 0, 0.4, 0.1}, {0, 8, 0, 0}, {0, 8, 0, 0}});
  ASSERT_TRUE(within);
  EXPECT_EQ(within->hosts, (std::vector<std::size_t>{0, 3, 1}));
  EXPECT_NEAR(within->share, 25 / 25.5, 1e-12);
  // Of two rings the larger one.
  const auto larger = FindRing(
      {{0, 9, 0, 0, 0}, {9, 0, 0, 0, 0}, {0, 0, 0, 9, 0}, {0, 0, 0, 0, 9}, {0, 0, 9, 0, 0}});
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->hosts, (std::vector<std::size_t>{2, 3, 4}));
  EXPECT_FALSE(FindRing({{0}}));
  EXPECT_FALSE(FindRing({}));
  EXPECT_FALSE(FindRing({{0, 5}, {0, 0}})) << "who sends nothing is no part of a ring";
}

TEST(ParseCaptureFile, NamesItsHost) {
  const std::vector<HostSteps> steps = TwoSteps({"n1", "n1.lab"});
  EXPECT_EQ(ParseCaptureFile("n2=a/b.pcap", steps).host, "n2");
  EXPECT_EQ(ParseCaptureFile("n2=a/b.pcap", steps).path, "a/b.pcap");
  EXPECT_EQ(ParseCaptureFile("a=b/c=d.pcap", steps).path, "b/c=d.pcap");
  EXPECT_EQ(ParseCaptureFile("x/a=b.pcap", steps).path, "x/a=b.pcap");
  EXPECT_EQ(ParseCaptureFile("x/n1.pcap", steps).host, "n1");
  EXPECT_EQ(ParseCaptureFile("x/n1.lab.pcap", steps).host, "n1.lab");
  EXPECT_EQ(ParseCaptureFile("n1.2.pcapng", steps).host, "n1");
  EXPECT_EQ(ParseCaptureFile("n12.pcap", steps).host, "");
  EXPECT_TRUE(Says(ErrorOf([&] { ParseCaptureFile("n1=", steps); }), "names no file"));
}

TEST(ParseCaptureFile, ALongNameTakesLittleTime) {
  const std::clock_t begun = std::clock();
  EXPECT_EQ(ParseCaptureFile(std::string(1'000'000, '.'), TwoSteps({"n1", "n2"})).host, "");
  constexpr double kMostSeconds = 0.5;
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, kMostSeconds);
}

// ---- Files as they are found.

TEST_F(PcapTest, ATruncatedCaptureIsReadToItsEnd) {
  for (const CaptureFormat format :
       {CaptureFormat::kMicroseconds, CaptureFormat::kNextGeneration}) {
    TestCapture capture(LinkType::kEthernet, format);
    const std::size_t header = capture.bytes().size();
    std::vector<std::size_t> ends;
    for (int i = 0; i < 3; ++i) {
      capture.Add(kStart, {.sequence = static_cast<std::uint32_t>(i * 10), .payload = 10});
      ends.push_back(capture.bytes().size());
    }
    for (std::size_t size = header; size <= capture.bytes().size(); ++size) {
      const std::string path = folder_.Write("cut.pcap", capture.bytes().substr(0, size));
      const CapturedTraffic traffic = ImportPcap({{path, ""}}, {}, {});
      const auto whole =
          std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= size; });
      const bool at_end = size == header || std::count(ends.begin(), ends.end(), size) > 0;
      EXPECT_EQ(traffic.captures[0].packets, whole) << size;
      EXPECT_EQ(traffic.captures[0].truncated, !at_end) << size;
      EXPECT_EQ(Summarise(traffic).all.bytes, 10 * whole) << size;
    }
  }
}

TEST_F(PcapTest, WhatIsNoCaptureIsRefused) {
  EXPECT_TRUE(Says(ErrorFor(""), "bad.pcap: is no capture"));
  EXPECT_TRUE(Says(ErrorFor("step,begin_s,end_s\n0,1,2\n"), "bad.pcap: is no capture"));
  EXPECT_TRUE(Says(ErrorFor(TestCapture(static_cast<LinkType>(105)).bytes()),
                   "link type: 'IEEE802_11' cannot be taken apart"));
  EXPECT_TRUE(Says(ErrorOf([] {
                     ImportPcap({{"/nowhere.pcap", ""}}, {}, {});
                   }),
                   "/nowhere.pcap: cannot be read: No such file"));
  TestCapture capture;
  capture.Add(kStart, {.payload = 10});
  capture.Add(kStart, {.sequence = 10, .payload = 10});
  // The third packet is longer than any.
  EXPECT_TRUE(Says(ErrorFor(capture.bytes() + Little(1, 4) + Little(1, 4) + Little(1U << 30, 4) +
                            Little(1U << 30, 4) + std::string(100, 'x')),
                   "bad.pcap: packet 3: cannot be read"));
  TestCapture late(LinkType::kEthernet, CaptureFormat::kMicroseconds);
  std::string bytes =
      late.bytes() + Little(1, 4) + Little(1'500'000, 4) + Little(0, 4) + Little(0, 4);
  EXPECT_TRUE(Says(ErrorFor(bytes), "bad.pcap: packet 1: has a time of"));
}

TEST_F(PcapTest, AddressesAreAddresses) {
  TestCapture capture;
  PcapOptions options;
  options.addresses["10.0.0"] = "n1";
  EXPECT_TRUE(
      Says(ErrorOf([&] { Import(capture, {}, options); }), "--address: '10.0.0' is no address"));
}

}  // namespace
}  // namespace stepcast
