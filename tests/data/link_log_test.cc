// What tools of the network print, and tables of collectives. The samples are in tests/fuzz/corpus:
// those of iperf3 (3.12), ping (iputils) and ss are what these tools printed on loopback and
// between two network namespaces, those of ethtool of a veth and of a virtual machine with the
// lines that a port adds; the tables are typed in the form that nccl-tests and the OSU
// micro-benchmarks print.
#include "data/logs/link_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "data/logs/collective_log.h"
#include "data/logs/guess.h"
#include "data/logs/json_leaves.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

std::string Sample(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
}

double Finding(const LinkLog& log, const std::string& name) {
  for (const LinkFinding& finding : log.findings) {
    if (finding.name == name) return finding.value;
  }
  ADD_FAILURE() << "no finding " << name;
  return 0;
}

bool HasFlag(const LinkLog& log, const std::string& flag) {
  return std::count(log.flags.begin(), log.flags.end(), flag) > 0;
}

TEST(LinkLog, Iperf3TellsRoundTripsRatesAndControl) {
  const LinkLog log = ReadIperf3(Sample("iperf3/two-streams.json"));
  EXPECT_EQ(log.tool, "iperf 3.12");
  // The least of both connections.
  EXPECT_DOUBLE_EQ(log.link.rtt->si(), 19e-6);
  EXPECT_EQ(log.link.congestion_control, CongestionControl::kCubic);
  EXPECT_FALSE(log.link.bandwidth) << "a rate that was reached is no line rate";
  EXPECT_FALSE(log.link.loss);
  EXPECT_DOUBLE_EQ(Finding(log, "goodput"), 3312918548.908415);
  EXPECT_DOUBLE_EQ(Finding(log, "loaded_rtt"), 2389e-6);
  EXPECT_DOUBLE_EQ(Finding(log, "retransmits"), 7);
  EXPECT_DOUBLE_EQ(Finding(log, "mtu"), 1500);
  EXPECT_TRUE(HasFlag(log, "--ping \"19 us\""));
  EXPECT_EQ(log.flags.size(), 1U) << "two connections are neither one nor all";
}

TEST(LinkLog, EachNumberOfIperf3NamesItsLine) {
  const std::string path = Sample("iperf3/two-streams.json");
  std::vector<std::string> lines;
  ForEachLogLine(path, [&](const LogLine& line) {
    lines.resize(static_cast<std::size_t>(line.number));
    lines.back() = line.text;
  });
  const LinkLog log = ReadIperf3(path);
  ASSERT_FALSE(log.findings.empty());
  for (const LinkFinding& finding : log.findings) {
    const std::size_t line = std::stoul(finding.from.substr(std::string("line ").size()));
    const std::string key = finding.from.substr(finding.from.rfind('.') + 1);
    EXPECT_NE(lines.at(line - 1).find("\"" + key + "\""), std::string::npos) << finding.from;
  }
}

TEST(LinkLog, WhatIperf3WasToldToSendIsNoRateOfTheLink) {
  const LinkLog told = ReadIperf3(Sample("iperf3/told-a-rate.json"));
  EXPECT_EQ(told.flags, std::vector<std::string>{"--ping \"80 us\""});
  ASSERT_EQ(told.remarks.size(), 1U);
  EXPECT_NE(told.remarks.front().find("no more than 300 Mbit/s"), std::string::npos);
  EXPECT_EQ(told.link.congestion_control, CongestionControl::kBbr);

  // The same without the limit: one connection's rate is what diagnose asks for.
  std::string text = FileContent(Sample("iperf3/told-a-rate.json"));
  for (std::size_t at = 0;
       (at = text.find("\"target_bitrate\":\t300000000", at)) != std::string::npos;) {
    text.replace(at, std::string("\"target_bitrate\":\t300000000").size(),
                 "\"target_bitrate\":\t0");
  }
  const TempFolder folder;
  EXPECT_TRUE(
      HasFlag(ReadIperf3(folder.Write("one.json", text)), "--flow-rate \"285.224 Mbit/s\""));
  const std::string eight = "\"num_streams\":\t1";
  text.replace(text.find(eight), eight.size(), "\"num_streams\":\t8");
  EXPECT_TRUE(
      HasFlag(ReadIperf3(folder.Write("eight.json", text)), "--link-rate \"285.224 Mbit/s\""));
}

TEST(LinkLog, Iperf3OverUdpTellsLoss) {
  const LinkLog none = ReadIperf3(Sample("iperf3/udp.json"));
  EXPECT_TRUE(HasFlag(none, "--lost 0/39"));
  EXPECT_FALSE(none.link.loss) << "none of 39 is not none";
  std::string text = FileContent(Sample("iperf3/udp.json"));
  for (std::size_t at = 0; (at = text.find("\"lost_packets\":\t0", at)) != std::string::npos;) {
    text.replace(at, std::string("\"lost_packets\":\t0").size(), "\"lost_packets\":\t3");
  }
  const TempFolder folder;
  const LinkLog some = ReadIperf3(folder.Write("lossy.json", text));
  EXPECT_DOUBLE_EQ(*some.link.loss, 3.0 / 39);
  EXPECT_TRUE(HasFlag(some, "--lost 3/39"));
}

// Traffic both ways is no test of one connection alone.
TEST(LinkLog, Iperf3OfBothDirectionsTellsBoth) {
  const TempFolder folder;
  const auto read = [&](int streams, const std::string& back) {
    return ReadIperf3(folder.Write(
        "i.json", R"({"start": {"test_start": {"protocol": "TCP", "num_streams": )" +
                      std::to_string(streams) +
                      R"(}}, "end": {"sum_received": {"bits_per_second": 9e8})" + back + "}}"));
  };
  const std::string back = R"(, "sum_received_bidir_reverse": {"bits_per_second": 4e8})";
  for (const int streams : {1, 8}) {
    const LinkLog log = read(streams, back);
    EXPECT_DOUBLE_EQ(Finding(log, "goodput"), 9e8);
    EXPECT_DOUBLE_EQ(Finding(log, "reverse_goodput"), 4e8);
    EXPECT_TRUE(log.flags.empty());
    ASSERT_EQ(log.remarks.size(), 1U);
    EXPECT_NE(log.remarks[0].find("both directions"), std::string::npos);
    EXPECT_EQ(read(streams, "").flags.size(), 1U);
  }
}

TEST(LinkLog, ASenderElsewhereTellsNoRoundTrip) {
  const TempFolder folder;
  const LinkLog log = ReadIperf3(folder.Write(
      "i.json", R"({"start": {"test_start": {"protocol": "TCP", "num_streams": 1, "reverse": 1}},)"
                R"("end": {"sum_received": {"bits_per_second": 9e8},)"
                R"("streams": [{"sender": {"min_rtt": 0, "mean_rtt": 0}}]}})"));
  EXPECT_FALSE(log.link.rtt);
  EXPECT_TRUE(std::none_of(log.findings.begin(), log.findings.end(),
                           [](const LinkFinding& one) { return one.name == "loaded_rtt"; }));
}

TEST(LinkLog, IperfThatTellsNoRateIsRefused) {
  const TempFolder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    const std::string path = folder.Write("i.json", text);
    const auto error = ErrorOf([&] { ReadIperf3(path); });
    EXPECT_TRUE(Says(error, path));
    EXPECT_TRUE(Says(error, why)) << why;
  };
  refused(R"({"event": "start", "data": {}})",
          "i.json: event: is a stream of events; allowed: iperf3 --json");
  const std::string tcp = R"({"start": {"test_start": {"protocol": "TCP", "num_streams": 1}})";
  refused(tcp + "}", "i.json: end.sum_received.bits_per_second: tells no rate");
  refused(tcp + R"(, "end": {"sum_received": {"bits_per_second": 0}}})", "tells no rate");
  refused(R"({"start": {"test_start": {"protocol": "UDP"}}})",
          "i.json: end.sum.bits_per_second: tells no rate");
  refused(R"({"start": {"test_start": {"protocol": "SCTP"}}})", "protocol: 'SCTP' is not known");
  const auto streams = [](const char* count) {
    return std::string(R"({"start": {"test_start": {"protocol": "TCP", "num_streams": )") + count +
           R"(}}, "end": {"sum_received": {"bits_per_second": 1e9}}})";
  };
  refused(streams("-1e19"), "i.json: start.test_start.num_streams: '-1e+19' is out of range");
  refused(streams("0"), "'0' is out of range; allowed: 1 to 1000000");
  refused(R"({")" + std::string(1001, 'k') + R"(": 1})", "is too long for a key");
}

// Keys of what is around stand in every path: a small file could make them many times its size.
TEST(LinkLog, PathsOfNoInterestAreNotKept) {
  std::string text = R"({"start": {"test_start": {"protocol": "TCP", "num_streams": 1}},)"
                     R"("end": {"sum_received": {"bits_per_second": 1e9}}, ")" +
                     std::string(900, 'k') + R"(": [0)";
  for (int i = 0; i < 400'000; ++i) text += ",0";
  const TempFolder folder;
  const LinkLog log = ReadIperf3(folder.Write("i.json", text + "]}"));
  EXPECT_DOUBLE_EQ(Finding(log, "goodput"), 1e9);
}

// The reader of clusters would refuse it.
TEST(LinkLog, ANumberThatNoLinkHasIsRefused) {
  const TempFolder folder;
  const auto refused = [&](auto read, const std::string& text, const std::string& says) {
    const std::string path = folder.Write("log", text);
    const auto error = ErrorOf([&] { read(path); });
    EXPECT_TRUE(Says(error, says)) << text;
    EXPECT_TRUE(Says(error, path + ": ")) << text;
  };
  const std::string ping = "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=";
  const std::string counts = "1 packets transmitted, 1 received\n";
  refused(ReadPing, ping + "1e300 ms\n" + counts, "'1e+297' is out of range");
  refused(ReadPing, ping + "1 ms\n" + "1e300 packets transmitted, 1 received\n",
          "line 2: '1e+300' is out of range");
  refused(ReadEthtool, "Settings for eth0:\n\tSpeed: 1e-300Mb/s\n", "is out of range");
  refused(ReadSs, "cubic rtt:1/1 minrtt:1e-300 cwnd:10 mss:1448 data_segs_out:5\n",
          "is out of range");
  refused(ReadSs, "cubic rtt:1/1 cwnd:1e300 mss:1448 data_segs_out:5\n", "is out of range");
  refused(ReadIperf3,
          R"({"start": {"test_start": {"protocol": "UDP"}},)"
          R"("end": {"sum": {"bits_per_second": 1e9, "jitter_ms": -3}}})",
          "line 1: end.sum.jitter_ms: '-0.003' is out of range");
}

TEST(LinkLog, PingTellsTheMedianOfItsReplies) {
  const LinkLog replies = ReadPing(Sample("ping/replies.txt"));
  EXPECT_NEAR(replies.link.rtt->si(), 0.037e-3, 1e-15);
  EXPECT_TRUE(HasFlag(replies, "--ping \"0.037 ms\""));
  EXPECT_TRUE(HasFlag(replies, "--lost 0/3"));
  EXPECT_FALSE(replies.link.loss);
  EXPECT_NEAR(ReadPing(Sample("ping/bsd.txt")).link.rtt->si(), (1.440 + 0.365) / 2e3, 1e-15);

  const LinkLog quiet = ReadPing(Sample("ping/quiet-with-loss.txt"));
  EXPECT_NEAR(quiet.link.rtt->si(), 10.257e-3, 1e-15) << "without replies the mean";
  EXPECT_DOUBLE_EQ(*quiet.link.loss, 4.0 / 200);
  EXPECT_TRUE(HasFlag(quiet, "--lost 4/200"));
  EXPECT_EQ(quiet.unknown.count, 0);

  const LinkLog nobody = ReadPing(Sample("ping/nobody.txt"));
  EXPECT_TRUE(nobody.link.empty());
  EXPECT_TRUE(nobody.flags.empty());
  EXPECT_EQ(nobody.remarks.size(), 1U);
}

TEST(LinkLog, FewPacketsTellLittleOfLoss) {
  const TempFolder folder;
  const LinkLog few = ReadPing(folder.Write("p.txt", "3 packets transmitted, 2 received\n"));
  EXPECT_DOUBLE_EQ(*few.link.loss, 1.0 / 3);
  EXPECT_EQ(few.sources.at("loss"), "line 1: 1 of 3, which are few");
  ASSERT_EQ(few.remarks.size(), 1U);
  EXPECT_NE(few.remarks[0].find("1 of 3 packets lost tells little"), std::string::npos);
  const LinkLog enough = ReadPing(folder.Write("p.txt", "100 packets transmitted, 99 received\n"));
  EXPECT_EQ(enough.sources.at("loss"), "line 1: 1 of 100");
  EXPECT_TRUE(enough.remarks.empty());
  // A host that is away loses none.
  const LinkLog away = ReadPing(
      folder.Write("p.txt", "200 packets transmitted, 190 received, +6 errors, 5% packet loss\n"));
  EXPECT_TRUE(HasFlag(away, "--lost 10/200"));
  ASSERT_EQ(away.remarks.size(), 1U);
  EXPECT_NE(away.remarks[0].find("6 of those lost were answered by errors"), std::string::npos);
}

TEST(LinkLog, EthtoolTellsTheSpeedOfThePort) {
  const LinkLog port = ReadEthtool(Sample("ethtool/gigabit.txt"));
  EXPECT_DOUBLE_EQ(port.link.bandwidth->in(kGigabitsPerSecond), 1);
  EXPECT_EQ(port.sources.at("bandwidth"), "line 7: Speed");
  EXPECT_EQ(port.unknown.count, 0);
  const LinkLog machine = ReadEthtool(Sample("ethtool/of-a-virtual-machine.txt"));
  EXPECT_TRUE(machine.link.empty());
  EXPECT_EQ(machine.remarks.size(), 1U);
  const TempFolder folder;
  const LinkLog silent = ReadEthtool(folder.Write("e.txt", "Settings for eth0:\n\tDuplex: Full\n"));
  EXPECT_EQ(silent.remarks, std::vector<std::string>{"the port tells no speed"});
}

TEST(LinkLog, SsTellsWhatTcpKnows) {
  const LinkLog log = ReadSs(Sample("ss/three-connections.txt"));
  EXPECT_DOUBLE_EQ(log.link.rtt->si(), 0.003e-3);
  EXPECT_FALSE(log.link.congestion_control) << "one is of BBR, two are of CUBIC";
  EXPECT_DOUBLE_EQ(Finding(log, "connections"), 3);
  EXPECT_DOUBLE_EQ(Finding(log, "loaded_rtt"), 11.896e-3);
  EXPECT_DOUBLE_EQ(Finding(log, "segments"), 3 + 55696 + 60424);
  // Each segment that was sent again had arrived.
  EXPECT_DOUBLE_EQ(Finding(log, "retransmits"), 0);
  EXPECT_DOUBLE_EQ(Finding(log, "window"), 4957 * 1448);
  EXPECT_DOUBLE_EQ(Finding(log, "mtu"), 1500);
  EXPECT_TRUE(HasFlag(log, "--lost 0/116123"));
  EXPECT_EQ(log.unknown.count, 0);
  EXPECT_EQ(ReadSs(Sample("ss/one-of-bbr.txt")).link.congestion_control, CongestionControl::kBbr);

  const TempFolder folder;
  const LinkLog lossy = ReadSs(
      folder.Write("ss.txt",
                   "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 cubic rto:204 rtt:0.7/1 mss:1448 cwnd:10 "
                   "data_segs_out:1000 retrans:1/12 dsack_dups:2 minrtt:0.5\nwhat is this\n"));
  EXPECT_DOUBLE_EQ(*lossy.link.loss, 10.0 / 1000);
  EXPECT_EQ(lossy.link.congestion_control, CongestionControl::kCubic);
  EXPECT_EQ(lossy.unknown.first.front().text, "what is this");
  // The kind of a socket is no congestion control.
  const LinkLog with_kind = ReadSs(folder.Write(
      "ss.txt",
      "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"
      "tcp ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 ino:1 sk:1 <-> ts sack bbr rto:204 rtt:0.7/1 mss:1448 "
      "cwnd:10 data_segs_out:1000 minrtt:0.5\n"
      "tcp ESTAB 0 0 10.0.0.1:3 10.0.0.2:4\n"));
  EXPECT_EQ(with_kind.link.congestion_control, CongestionControl::kBbr);
  EXPECT_TRUE(with_kind.remarks.empty());
  EXPECT_EQ(with_kind.unknown.count, 0);
}

// Who looks at a training by ssh has a connection too.
TEST(LinkLog, SsLeavesOutConnectionsOfSsh) {
  const std::string training =
      "ESTAB 0 0 10.0.0.1:40022 10.0.0.2:22022\n"
      "\t cubic rto:204 rtt:0.7/1 mss:1448 cwnd:10 data_segs_out:1000 retrans:0/5 minrtt:0.5\n";
  const std::string info =
      " cubic rto:204 rtt:9/1 mss:1448 cwnd:99 data_segs_out:200 retrans:0/90 minrtt:0.1\n";
  const TempFolder folder;
  for (const std::string ends : {"10.0.0.1:22 10.0.9.9:51234", "10.0.0.1:51234 10.0.9.9:22",
                                 "10.0.0.1:ssh 10.0.9.9:5000", "[fd00::1]:22 [fd00::2]:5000"}) {
    SCOPED_TRACE(ends);
    const std::string own = "ESTAB 0 0 " + ends;
    // Asked for one state, or for several kinds of sockets, ss says neither or both.
    const std::string stateless = "0 0 " + ends;
    const std::string with_kind = "tcp ESTAB 0 0 " + ends;
    for (const std::string& text :
         {training + own + "\n\t" + info, own + "\n\t" + info + training, training + own + info,
          own + info + training, training + stateless + "\n\t" + info, training + stateless + info,
          with_kind + "\n\t" + info + training}) {
      const LinkLog log = ReadSs(folder.Write("ss.txt", text));
      EXPECT_DOUBLE_EQ(Finding(log, "connections"), 1) << text;
      EXPECT_DOUBLE_EQ(log.link.rtt->si(), 0.5e-3) << text;
      EXPECT_DOUBLE_EQ(*log.link.loss, 5.0 / 1000) << text;
      EXPECT_DOUBLE_EQ(Finding(log, "window"), 10 * 1448) << text;
      EXPECT_EQ(log.remarks,
                std::vector<std::string>{"one connection of ssh (port 22) is left out"})
          << text;
      EXPECT_EQ(log.unknown.count, 0);
    }
    const std::string alone = folder.Write("ss.txt", own + "\n\t" + info);
    EXPECT_TRUE(Says(ErrorOf([&] { ReadSs(alone); }),
                     "tells of no connection that sent but those of ssh (port 22)"));
  }
  EXPECT_TRUE(ReadSs(folder.Write("ss.txt", training)).remarks.empty());
}

// As iperf3 prints it where nobody asks for JSON.
constexpr const char* kIperf3Text =
    "Connecting to host 10.0.0.2, port 5201\n"
    "[  5] local 10.0.0.1 port 43210 connected to 10.0.0.2 port 5201\n"
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
    "[  5]   0.00-1.00   sec  1.10 GBytes  9.42 Gbits/sec    0   3.02 MBytes       \n"
    "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
    "[ ID] Interval           Transfer     Bitrate         Retr\n"
    "[  5]   0.00-1.00   sec  1.10 GBytes  9.42 Gbits/sec    0             sender\n"
    "[  5]   0.00-1.04   sec  1.10 GBytes  9.33 Gbits/sec                  receiver\n"
    "\n"
    "iperf Done.\n";

TEST(LinkLog, TheTextOfIperf3IsToldAsSuch) {
  const TempFolder folder;
  const std::string path = folder.Write("iperf.txt", kIperf3Text);
  EXPECT_TRUE(Says(ErrorOf([&] { ReadIperf3(path); }),
                   "iperf.txt: is what iperf3 prints as text; allowed: what iperf3 --json (-J) "
                   "prints of a test"));
  // With --get-server-output a JSON document holds such a text.
  std::string json = FileContent(Sample("iperf3/two-streams.json"));
  json.insert(json.find('{') + 1, R"("server_output_text": "[ ID] Interval\nand so on",)");
  EXPECT_EQ(ReadIperf3(folder.Write("i.json", json)).tool, "iperf 3.12");
}

TEST(LinkLog, WhatIsNoneIsRefused) {
  const TempFolder folder;
  const auto refused = [&](auto read, const std::string& text, const std::string& says) {
    const std::string path = folder.Write("log", text);
    EXPECT_TRUE(Says(ErrorOf([&] { read(path); }), says)) << text;
  };
  refused(ReadIperf3, "{\"start\": {\n", "log:2: is not JSON");
  refused(ReadIperf3, "hello\n", "log:1: is not JSON: Invalid value; allowed: what iperf3 --json");
  refused(ReadIperf3, std::string(100, '['), "is nested too deeply");
  refused(ReadIperf3, "{}", "log: start.test_start.protocol: is missing");
  refused(ReadIperf3, "{\"start\": {\"test_start\": {\"protocol\": \"SCTP\"}}}",
          "'SCTP' is not known");
  refused(
      ReadIperf3, FileContent(Sample("iperf3/refused-by-the-server.json")),
      "log: error: 'unable to connect to server: Connection refused' is what iperf3 ended with");
  refused(ReadPing, "PING 10.0.0.1\n", "log: has no count of packets");
  refused(ReadPing, "2 packets transmitted, 3 received\n", "is no count of packets");
  refused(ReadPing, "2 packets transmitted, 2 received\nrtt min/avg/max/mdev = 1/2/3/1 us\n",
          "log:2: 'rtt min/avg/max/mdev = 1/2/3/1 us' is no line of times in ms");
  refused(ReadPing, "1 packets transmitted, 1 received\n1 packets transmitted, 1 received\n",
          "log:2: ends a second ping");
  refused(ReadEthtool, "Speed: 1000Mb/s\n", "log: has no settings of a port");
  refused(ReadEthtool, "Settings for eth0:\n\tSpeed: 1Gb/s\n", "log:2: Speed: '1Gb/s' is no speed");
  refused(ReadEthtool, "Settings for eth0:\nSettings for eth1:\n", "is a second port");
  refused(ReadSs, "State Recv-Q Send-Q\n", "log: tells of no connection that sent");
}

// ---- Words and ends of ranges, one at a time.

TEST(LinkLog, WhatPingSays) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) { return ReadPing(folder.Write("p.txt", text)); };
  const std::string counts = "5 packets transmitted, 5 received\n";
  // A few packets are less than a hundred.
  EXPECT_EQ(read("99 packets transmitted, 98 received\n").remarks.size(), 1U);
  EXPECT_EQ(read("100 packets transmitted, 99 received\n").remarks.size(), 0U);
  // As many errors as are lost, and more than that.
  EXPECT_EQ(read("200 packets transmitted, 190 received, +10 errors\n").remarks.size(), 1U);
  EXPECT_EQ(read("200 packets transmitted, 190 received, +11 errors\n").remarks.size(), 0U);
  EXPECT_EQ(read("9 packets transmitted, 9 packets received, 0.0% packet loss\n").flags,
            std::vector<std::string>{"--lost 0/9"});
  for (const char* none : {"0 packets transmitted, 0 received\n", "-1 packets transmitted\n",
                           "5 packets transmitted\n", "5 packets transmitted, -1 received\n"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { read(none); }), "is no count of packets")) << none;
  }
  // What tells no round trip, and what is no news.
  for (const char* line : {"64 bytes from 10.0.0.2: icmp_seq=1 ttl=64",
                           "64 bytes from 10.0.0.2: icmp_seq=1 time=-1 ms",
                           "64 bytes from 10.0.0.2: icmp_seq=1 time=1 s", "hello"}) {
    const LinkLog log = read(std::string(line) + "\n" + counts);
    EXPECT_EQ(log.unknown.count, 1) << line;
    EXPECT_FALSE(log.link.rtt) << line;
  }
  for (const char* line :
       {"PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.", "--- 10.0.0.2 ping statistics ---",
        "From 10.0.0.1 icmp_seq=1 Destination Host Unreachable"}) {
    EXPECT_EQ(read(std::string(line) + "\n" + counts).unknown.count, 0) << line;
  }
  // Three times are enough, and the first may be 0.
  const LinkLog three = read(counts + "round-trip min/avg/max = 0/2/3 ms\n");
  EXPECT_DOUBLE_EQ(three.link.rtt->si(), 2e-3);
  EXPECT_EQ(three.sources.at("rtt"), "line 2: the mean of all");
  for (const char* times : {"1/2 ms", "-1/2/3 ms", "1/2/3", "1/2/3 s", "x"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { read(counts + "rtt min/avg/max = " + times + "\n"); }),
                     "is no line of times in ms"))
        << times;
  }
  // The lines of the replies.
  const std::string reply = "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=1 ms\n";
  EXPECT_EQ(read("PING x\n" + reply + "hello\n" + reply + counts).sources.at("rtt"),
            "lines 2 to 4: the median of 2 replies");
}

TEST(LinkLog, WhatEthtoolSays) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) {
    return ReadEthtool(folder.Write("e.txt", text));
  };
  const std::string head = "Settings for eth0:\n\tSupported ports: [ TP ]\n";
  const LinkLog list = read("hello\nno: setting\n" + head +
                            "\tSupported link modes:   10baseT/Half\n"
                            "\t                        100baseT/Full\n\tSpeed: 100Mb/s\n");
  EXPECT_EQ(list.unknown.count, 2) << "before the settings";
  EXPECT_DOUBLE_EQ(list.link.bandwidth->in(kMegabitsPerSecond), 100);
  EXPECT_EQ(read("Settings for eth0:\nno colon\n\tDuplex: Full\n").unknown.count, 1)
      << "no list has begun";
  EXPECT_EQ(read(head + "\tLink detected: yes\n\tSpeed: 10Mb/s\n\tDuplex: Full\n").remarks.size(),
            0U);
  EXPECT_EQ(read(head + "\tLink detected: no\n\tSpeed: 10Mb/s\n").remarks,
            std::vector<std::string>{"the port has no link (line 3: Link detected)"});
  EXPECT_EQ(
      read(head + "\tDuplex: Half\n\tSpeed: 10Mb/s\n").remarks,
      std::vector<std::string>{"the port sends or receives, not both at once (line 3: Duplex)"});
  EXPECT_EQ(read(head + "\tSpeed: Unknown!\n").remarks,
            std::vector<std::string>{"the port tells no speed (line 3: Speed)"});
  EXPECT_DOUBLE_EQ(read(head + "\tSpeed: 1Mb/s\n").link.bandwidth->in(kMegabitsPerSecond), 1);
  for (const char* speed : {"0Mb/s", "-10Mb/s", "100000001Mb/s", "10 Mb/s?", "Mb/s"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { read(head + "\tSpeed: " + speed + "\n"); }), "is no speed"))
        << speed;
  }
}

TEST(LinkLog, WhatSsSays) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) { return ReadSs(folder.Write("s.txt", text)); };
  const std::string socket = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 ";
  const std::string sent = " rtt:0.5/1 data_segs_out:10 ";
  // Options are no congestion control, and one that is not modelled is told.
  EXPECT_EQ(read("ts sack ecn ecnseen fastopen bbr" + sent + "\n").link.congestion_control,
            CongestionControl::kBbr);
  const LinkLog other = read("ts dctcp" + sent + "\n");
  EXPECT_FALSE(other.link.congestion_control);
  ASSERT_EQ(other.remarks.size(), 1U);
  EXPECT_NE(other.remarks[0].find("congestion control dctcp is none that is modelled"),
            std::string::npos);
  const LinkLog two = read("cubic" + sent + "\nbbr" + sent + "\n");
  EXPECT_FALSE(two.link.congestion_control);
  EXPECT_EQ(two.remarks,
            std::vector<std::string>{"the connections have different congestion controls"});
  // Where all that was sent again had arrived, nothing was lost; the sum is of connections.
  const LinkLog arrived = read("State Recv-Q Send-Q\ncubic retrans:0/3 dsack_dups:5" + sent +
                               "\ncubic retrans:0/2" + sent + "\n");
  EXPECT_DOUBLE_EQ(Finding(arrived, "retransmits"), 2);
  EXPECT_DOUBLE_EQ(*arrived.link.loss, 2.0 / 20);
  EXPECT_EQ(arrived.sources.at("loss"), "lines 2 to 3: retrans and data_segs_out: 2 of 20");
  // Those that are unanswered now are none.
  EXPECT_DOUBLE_EQ(Finding(read("cubic retrans:4" + sent + "\n"), "retransmits"), 0);
  // A least round trip of 0 is none, and a rate has its unit.
  const LinkLog bare = read("cubic minrtt:0 delivery_rate 5 app_limited" + sent + "\n");
  EXPECT_FALSE(bare.link.rtt);
  EXPECT_EQ(std::count_if(bare.findings.begin(), bare.findings.end(),
                          [](const LinkFinding& one) { return one.name == "delivery_rate"; }),
            0);
  // Headers, sockets and those that have sent nothing are no news.
  for (const std::string line :
       {"State Recv-Q Send-Q Local", "Netid State", "Recv-Q Send-Q", "0 0 10.0.0.1:1 10.0.0.2:2",
        "tcp LISTEN 0 128 0.0.0.0:1 0.0.0.0:*", "cubic rto:1000 mss:536", "cubic cwnd:10"}) {
    EXPECT_EQ(read(line + "\ncubic" + sent + "\n").unknown.count, 0) << line;
  }
  for (const std::string line : {"a tcp ESTAB 0 0 10.0.0.1:1 10.0.0.2:2", "ESTAB 0 0 10.0.0.1:1"}) {
    EXPECT_EQ(read(line + "\ncubic" + sent + "\n").unknown.count, 1) << line;
  }
  const std::string ssh = "ESTAB 0 0 10.0.0.1:22 10.0.0.2:2 cubic" + sent + "\n";
  EXPECT_EQ(read(ssh + ssh + socket + "cubic" + sent + "\n").remarks,
            std::vector<std::string>{"2 connections of ssh (port 22) are left out"});
}

TEST(LinkLog, WhatIperf3Says) {
  const TempFolder folder;
  const auto read = [&](const std::string& test, const std::string& end) {
    return ReadIperf3(folder.Write("i.json", R"({"start": {"test_start": {"protocol": )" + test +
                                                 R"(}}, "end": {)" + end + "}}"));
  };
  const std::string tcp = R"("TCP", "num_streams": )";
  const std::string sum = R"("sum_received": {"bits_per_second": 9e8})";
  EXPECT_EQ(read(tcp + "1", sum).tool, "iperf3");
  EXPECT_EQ(read(tcp + "1000000", sum).flags.size(), 1U);
  // Of the sender of a stream a round trip or its mean may be missing, and what follows counts.
  const LinkLog some = read(tcp + "3", sum + R"(, "streams": [{"sender": {"mean_rtt": 700}},
                                                  {"sender": {"min_rtt": 50, "mean_rtt": 0}},
                                                  {"sender": {"min_rtt": 60, "mean_rtt": 600}}])");
  EXPECT_DOUBLE_EQ(some.link.rtt->si(), 50e-6);
  EXPECT_DOUBLE_EQ(Finding(some, "loaded_rtt"), 700e-6);
  // Told a rate, and both ways at once: each is said.
  const LinkLog both = read(tcp + R"(1, "target_bitrate": 5)",
                            sum + R"(, "sum_received_bidir_reverse": {"bits_per_second": 4e8})");
  EXPECT_EQ(both.remarks.size(), 2U);
  EXPECT_TRUE(both.flags.empty());
  // Of UDP what arrived, where that is told.
  const std::string udp = R"("sum": {"bits_per_second": 5e8, "lost_packets": 2, "packets": 50})";
  EXPECT_DOUBLE_EQ(Finding(read(R"("UDP")", udp), "udp_rate"), 5e8);
  EXPECT_DOUBLE_EQ(Finding(read(R"("UDP")", sum + ", " + udp), "udp_rate"), 9e8);
  // As many lost as sent is no loss, nor are more; and there are no fewer than none.
  const auto lost = [](const char* packets) {
    return R"("sum": {"bits_per_second": 1, "packets": 50, "lost_packets": )" +
           std::string(packets) + "}";
  };
  for (const char* packets : {"50", "51"}) {
    const LinkLog log = read(R"("UDP")", lost(packets));
    EXPECT_TRUE(log.flags.empty()) << packets;
    EXPECT_FALSE(log.link.loss) << packets;
  }
  EXPECT_TRUE(Says(ErrorOf([&] { read(R"("UDP")", lost("-1")); }),
                   "line 1: end.sum.lost_packets: '-1' is out of range"));
}

// Paths, numbers, texts and lines, in the order of the document.
TEST(JsonLeaves, AreToldWithTheirPathsAndLines) {
  std::vector<std::string> leaves;
  ForEachJsonLeaf(
      "{\"a\": [1, null, \"x\",\n [true, -2.5], {\"b\": 3}],\n \"c.d\": {\"e\": {}, \"f\": []},\n"
      "\n \"g\": {\"h\": 4e2}, \"\": 18446744073709551615, \"i\": -7}",
      "leaves.json", "a document", [&](const JsonLeaf& leaf) {
        leaves.push_back(fmt::format("{}: {}{} ({})", leaf.path,
                                     leaf.number ? fmt::format("{:g}", *leaf.number) : "",
                                     leaf.text, leaf.line));
      });
  EXPECT_EQ(leaves,
            (std::vector<std::string>{"a.0: 1 (1)", "a.2: x (1)", "a.3.1: -2.5 (2)", "a.4.b: 3 (2)",
                                      "g.h: 400 (5)", ": 1.84467e+19 (5)", "i: -7 (5)"}));
  const auto nested = [](std::size_t levels) {
    ForEachJsonLeaf(std::string(levels, '[') + "1" + std::string(levels, ']'), "deep.json", "less",
                    [](const JsonLeaf&) {});
  };
  nested(64);
  EXPECT_TRUE(
      Says(ErrorOf([&] { nested(65); }), "deep.json:1: is nested too deeply; allowed: less"));
  const auto key = [](std::size_t bytes) {
    ForEachJsonLeaf("{\"" + std::string(bytes, 'k') + "\": 1}", "key.json", "less",
                    [](const JsonLeaf&) {});
  };
  key(1000);
  EXPECT_TRUE(Says(ErrorOf([&] { key(1001); }), "at most 1000 bytes"));
}

TEST(CollectiveLog, NcclTestsTellTimesAndWhereTheRanksAre) {
  const CollectiveLog log = ReadNcclTests(Sample("nccl_tests/two-nodes.txt"));
  ASSERT_EQ(log.tables.size(), 1U);
  const CollectiveTable& table = log.tables.front();
  EXPECT_EQ(table.kind, CollectiveKind::kAllreduce);
  EXPECT_EQ(table.name, "all_reduce_perf");
  EXPECT_EQ(table.placement, (Placement{1, 1}));
  EXPECT_EQ(table.hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(table.device, "NVIDIA GH200 120GB");
  ASSERT_EQ(table.rows.size(), 4U);
  const CollectiveRow& row = table.rows[1];
  EXPECT_DOUBLE_EQ(row.bytes, 1048576);
  EXPECT_DOUBLE_EQ(*row.out_of_place_s, 339.61e-6);
  EXPECT_DOUBLE_EQ(*row.in_place_s, 335.85e-6);
  EXPECT_DOUBLE_EQ(*row.bytes_per_s, 3.09e9);
  EXPECT_DOUBLE_EQ(*row.bus_bytes_per_s, 3.09e9);
  EXPECT_EQ(row.line, 13);
  // The columns agree: size / time is algbw, to the digits that are printed.
  for (const CollectiveRow& r : table.rows) {
    EXPECT_NEAR(r.bytes / *r.out_of_place_s, *r.bytes_per_s, 0.5e7);
  }
  ASSERT_EQ(log.unknown.count, 1);
  EXPECT_EQ(log.unknown.first.front().text, "n1: a line of something else");
}

// What the library says of itself under NCCL_DEBUG=VERSION or INFO, but for its warnings.
TEST(CollectiveLog, WhatNcclSaysOfItselfIsNotNews) {
  const TempFolder folder;
  const std::string sample = FileContent(Sample("nccl_tests/two-nodes.txt"));
  const std::string said =
      "NCCL version 2.18.3+cuda12.1\n"
      "[1,0]<stdout>:NCCL version 2.18.3+cuda12.1\n"
      "n1:15784:15784 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n";
  const std::string warned = "n1:15784:15790 [0] misc/socket.cc:484 NCCL WARN connect failed\n";
  const CollectiveLog log = ReadNcclTests(folder.Write("nccl.txt", said + sample + said + warned));
  ASSERT_EQ(log.tables.size(), 1U);
  EXPECT_EQ(log.tables.front().rows.size(), 4U);
  ASSERT_EQ(log.unknown.count, 2);
  EXPECT_EQ(log.unknown.first[0].text, "n1: a line of something else");
  EXPECT_NE(log.unknown.first[1].text.find("NCCL WARN"), std::string::npos);
}

TEST(CollectiveLog, WhichCollectiveItWasIsToldByItsRates) {
  const CollectiveLog old = ReadNcclTests(Sample("nccl_tests/older-under-mpirun.txt"));
  ASSERT_EQ(old.tables.size(), 1U);
  EXPECT_EQ(old.tables.front().kind, CollectiveKind::kAllreduce);
  EXPECT_EQ(old.tables.front().placement, (Placement{2, 2}));
  EXPECT_EQ(old.tables.front().rows.size(), 2U);
  EXPECT_EQ(old.unknown.count, 0);

  // A reduce-scatter, and an all-reduce of which a row is wrong.
  const CollectiveLog both = ReadNcclTests(Sample("nccl_tests/of-other-collectives.txt"));
  ASSERT_EQ(both.tables.size(), 2U);
  EXPECT_EQ(both.tables[0].kind, CollectiveKind::kOther);
  EXPECT_EQ(both.tables[0].rows.size(), 2U);
  EXPECT_FALSE(both.tables[0].rows[1].in_place_s);
  EXPECT_EQ(both.tables[1].kind, CollectiveKind::kAllreduce);
  EXPECT_EQ(both.tables[1].rows.size(), 1U);
  EXPECT_EQ(both.tables[1].wrong, 1);
}

TEST(CollectiveLog, OsuTellsLatenciesAndRates) {
  const CollectiveLog allreduce = ReadOsuBenchmarks(Sample("osu/allreduce.txt"));
  ASSERT_EQ(allreduce.tables.size(), 1U);
  EXPECT_EQ(allreduce.tables[0].kind, CollectiveKind::kAllreduce);
  EXPECT_EQ(allreduce.tables[0].rows.size(), 5U);
  EXPECT_DOUBLE_EQ(*allreduce.tables[0].rows[3].out_of_place_s, 241.87e-6);
  EXPECT_EQ(allreduce.unknown.count, 1);
  EXPECT_DOUBLE_EQ(*ReadOsuBenchmarks(Sample("osu/full-of-7.txt")).tables[0].rows[1].out_of_place_s,
                   1100.55e-6);

  const CollectiveLog pair = ReadOsuBenchmarks(Sample("osu/latency-and-bandwidth.txt"));
  ASSERT_EQ(pair.tables.size(), 2U);
  EXPECT_EQ(pair.tables[0].kind, CollectiveKind::kLatency);
  EXPECT_EQ(pair.tables[1].kind, CollectiveKind::kBandwidth);
  EXPECT_DOUBLE_EQ(*pair.tables[1].rows[1].bytes_per_s, 12254.16e6);
  for (const CollectiveTable& table : ReadOsuBenchmarks(Sample("osu/of-others.txt")).tables) {
    EXPECT_EQ(table.kind, CollectiveKind::kOther) << table.name;
  }
}

TEST(CollectiveLog, ARowThatNoComputerPrintsIsNotUnderstood) {
  const TempFolder folder;
  const auto unknown = [&](auto read, const std::string& text) {
    const CollectiveLog log = read(folder.Write("log", text));
    EXPECT_TRUE(log.tables.at(0).rows.empty()) << text;
    return log.unknown.count;
  };
  const std::string nccl = "# size time algbw busbw\n# (B) (us) (GB/s) (GB/s)\n";
  EXPECT_EQ(unknown(ReadNcclTests, nccl + "1048576 1e300 0.1 0.1\n"), 1);
  EXPECT_EQ(unknown(ReadNcclTests, nccl + "1048576.5 10 0.1 0.1\n"), 1);
  EXPECT_EQ(unknown(ReadNcclTests, nccl + "2e15 10 0.1 0.1\n"), 1);
  EXPECT_EQ(unknown(ReadNcclTests, nccl + "1048576 10 1e300 0.1\n"), 1);
  const std::string osu = "# OSU MPI Bandwidth Test v1\n# Size Bandwidth (MB/s)\n";
  EXPECT_EQ(unknown(ReadOsuBenchmarks, osu + "1024 1e308\n"), 1);
  EXPECT_EQ(
      unknown(ReadOsuBenchmarks, "# OSU MPI Latency Test v1\n# Size Latency (us)\n1024 1e300\n"),
      1);
}

TEST(CollectiveLog, WhatIsNoneIsRefused) {
  const TempFolder folder;
  const auto refused = [&](auto read, const std::string& text, const std::string& says) {
    const std::string path = folder.Write("log", text);
    EXPECT_TRUE(Says(ErrorOf([&] { read(path); }), says)) << text;
  };
  refused(ReadNcclTests, "hello\n", "log: has no table of nccl-tests");
  refused(ReadNcclTests, FileContent(Sample("nccl_tests/refused-each-alone.txt")),
          "log:4: Rank: '0' stands twice: each process tested alone");
  refused(ReadNcclTests, "# size time algbw busbw\n8 1.5 0.1 0.1\n", "log:2: time: has no unit");
  refused(ReadOsuBenchmarks, "hello\n", "log: has no table of the OSU micro-benchmarks");
  refused(ReadOsuBenchmarks, "# Size Latency (us)\n", "has no title");
  refused(ReadOsuBenchmarks, "# OSU MPI Latency Test v1\n# Size Latency (ms)\n",
          "log:2: Size: '# Size Latency (ms)' has no unit that is known; allowed: Latency (us)");
}

// What is measured between two processes stands in the title: two-sided, and not of all ranks.
TEST(CollectiveLog, TitlesOfOsu) {
  const TempFolder folder;
  using K = CollectiveKind;
  const std::pair<const char*, K> cases[] = {{"MPI Latency Test v7.3", K::kLatency},
                                             {"MPI-CUDA Latency Test v5.8", K::kLatency},
                                             {"MPI_Put Latency Test v5.8", K::kOther},
                                             {"MPI_Get-CUDA Latency Test v5.8", K::kOther},
                                             {"NCCL Latency Test v5.8", K::kOther},
                                             {"MPI Multi Latency Test v7.3", K::kOther},
                                             {"MPI Latency", K::kOther},
                                             {"MPI Latency Benchmark v7.3", K::kOther},
                                             {"MPI Bandwidth Test v7.3", K::kBandwidth},
                                             {"MPI-ROCM Bandwidth Test v7.3", K::kBandwidth},
                                             {"MPI_Put Bandwidth Test v5.8", K::kOther},
                                             {"MPI Allreduce Latency Test v7.3", K::kAllreduce},
                                             {"NCCL Allreduce Latency Test v7.3", K::kAllreduce},
                                             {"MPI Non-Blocking Allreduce Latency Test", K::kOther},
                                             {"MPI Reduce Latency Test v7.3", K::kOther}};
  for (const auto& [title, kind] : cases) {
    const CollectiveLog log = ReadOsuBenchmarks(folder.Write(
        "osu.txt", fmt::format("# OSU {}\n# Size Latency (us) Bandwidth (MB/s)\n8 2\n", title)));
    ASSERT_EQ(log.tables.size(), 1U) << title;
    EXPECT_EQ(log.tables[0].kind, kind) << title;
    EXPECT_EQ(log.tables[0].name, std::string("OSU ") + title);
    EXPECT_EQ(log.tables[0].line, 2);
    EXPECT_EQ(log.tables[0].rows.at(0).line, 3);
    EXPECT_EQ(log.tables[0].rows[0].bytes_per_s.has_value(), kind == K::kBandwidth) << title;
  }
  // A rate has one unit, a time two spellings; and a table has its own title.
  const auto refused = [&](const std::string& title, const std::string& unit) {
    return ErrorOf([&] {
      ReadOsuBenchmarks(folder.Write("osu.txt", "# OSU MPI " + title + " Test\n# Size " + unit));
    });
  };
  EXPECT_FALSE(refused("Latency", "Latency(us)"));
  EXPECT_FALSE(refused("Latency", "Latency (us)"));
  EXPECT_TRUE(Says(refused("Latency", "Bandwidth (MB/s)"), "allowed: Latency (us)"));
  EXPECT_TRUE(Says(refused("Bandwidth", "Bandwidth (GB/s)"), "allowed: Bandwidth (MB/s)"));
  const CollectiveLog closed = ReadOsuBenchmarks(folder.Write(
      "osu.txt",
      "# OSU MPI Latency Test\n# Size Latency (us)\n8 2\n# OSU MPI Bandwidth Test\n8 2\n"
      "9\n"));
  ASSERT_EQ(closed.tables.size(), 1U);
  EXPECT_EQ(closed.tables[0].rows.size(), 1U);
  EXPECT_EQ(closed.unknown.count, 2) << "behind a title and before its header";
}

// The ends of what a row of nccl-tests may say.
TEST(CollectiveLog, RowsOfNcclTestsAtTheirEnds) {
  const TempFolder folder;
  const std::string nccl =
      "# size time algbw busbw #wrong time algbw busbw #wrong\n"
      "# (B) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n";
  const auto read = [&](const std::string& row) {
    return ReadNcclTests(folder.Write("log", nccl + row + "\n"));
  };
  for (const char* row :
       {"1e15 10 1 1 0 10 1 1 0", "0 10 1 1 0 10 1 1 0", "8 10 0 0 0 10 0 0 0",
        "8 10 1000000 1 0 10 1 1 0", "8 0 1 1 0 10 1 1 0", "8 10 1 1 N/A N/A N/A N/A N/A"}) {
    const CollectiveLog log = read(row);
    EXPECT_EQ(log.tables.at(0).rows.size(), 1U) << row;
    EXPECT_EQ(log.unknown.count, 0) << row;
  }
  for (const char* row : {"-8 10 1 1 0 10 1 1 0", "8 10 1000001 1 0 10 1 1 0",
                          "8 10 1 -1 0 10 1 1 0", "8 0 1 1 0 0 1 1 0", "8 10 1 1 0 10 1 1",
                          "8 10 1 1 0 10 1 1 0 0", "8 N/A 1 1 0 N/A 1 1 0"}) {
    const CollectiveLog log = read(row);
    EXPECT_TRUE(log.tables.at(0).rows.empty()) << row;
    EXPECT_EQ(log.unknown.count, 1) << row;
  }
  // Out of place comes first, in place second, and rates are the former's.
  const CollectiveRow both = read("8 10 3 4 0 20 5 6 0").tables[0].rows.at(0);
  EXPECT_DOUBLE_EQ(*both.out_of_place_s, 10e-6);
  EXPECT_DOUBLE_EQ(*both.in_place_s, 20e-6);
  EXPECT_DOUBLE_EQ(*both.bytes_per_s, 3e9);
  EXPECT_DOUBLE_EQ(*both.bus_bytes_per_s, 4e9);
  const CollectiveRow in_place = read("8 N/A 3 4 0 20 5 6 0").tables[0].rows.at(0);
  EXPECT_FALSE(in_place.out_of_place_s);
  EXPECT_DOUBLE_EQ(*in_place.in_place_s, 20e-6);
  // A result that is wrong in either place is wrong.
  for (const char* row : {"8 10 3 4 1 20 5 6 0", "8 10 3 4 0 20 5 6 1"}) {
    EXPECT_EQ(read(row).tables[0].wrong, 1) << row;
  }
  // A table that begins anew has no units yet.
  EXPECT_TRUE(Says(ErrorOf([&] { read("8 10 3 4 0 20 5 6 0\n# size time algbw busbw\n8 10 3 4"); }),
                   "log:5: time: has no unit"));
}

// A header of a few bytes would keep the names of all hosts, and a file of 1 MB has 30,000.
TEST(CollectiveLog, RanksOfManyTablesAreBounded) {
  const TempFolder folder;
  std::string text;
  for (int rank = 0; rank < 1001; ++rank) {
    const std::string number = std::to_string(rank);
    text += "# Rank " + number + " Pid 1 on host" + number + " device 0\n";
  }
  for (int table = 0; table < 999; ++table) text += "# size time algbw busbw\n";
  EXPECT_EQ(ReadNcclTests(folder.Write("log", text)).tables.size(), 999U);
  const std::string path = folder.Write("log", text + "# size time algbw busbw\n");
  EXPECT_TRUE(Says(ErrorOf([&] { ReadNcclTests(path); }),
                   "log:2001: is a table of ranks too many; allowed: at most 1000000 ranks"));
}

TEST(Guess, TellsTheFileAndItsReader) {
  struct Guessed {
    const char* file;
    const char* command;
  };
  const Guessed all[] = {
      {"nccl_tests/two-nodes.txt", "stepcast import nccl-tests FILE --cluster C --output runs.csv"},
      {"osu/allreduce.txt", "stepcast import osu FILE --cluster C --placement P --output runs.csv"},
      {"osu/latency-and-bandwidth.txt", "stepcast import osu FILE"},
      {"iperf3/two-streams.json", "stepcast import iperf3 FILE"},
      {"ping/bsd.txt", "stepcast import ping FILE"},
      {"ethtool/gigabit.txt", "stepcast import ethtool FILE"},
      {"ss/one-of-bbr.txt", "stepcast import ss FILE"},
      {"guess/pcap", "stepcast import pcap FILE"},
      {"step_log/keras-3", "stepcast import steps FILE"},
      {"step_log/trainer", "stepcast import steps FILE"},
      {"step_log/epochs", "stepcast import steps FILE"},
      {"training_steps/of_hosts.csv", "stepcast import pcap n1.pcap n2.pcap --steps FILE"},
      {"kineto/steps-on-a-gpu", "stepcast import kineto FILE --output trace.profile.jsonl"},
      {"../../../data/machines/ufrgs-tupi.yaml",
       "stepcast predict --cluster FILE --workload W --local-batch N --workers N"},
      {"../../../data/measurements/ufrgs-tupi-fit.csv",
       "stepcast calibrate --cluster C --runs FILE"},
  };
  for (const Guessed& guessed : all) {
    const auto guess = GuessFile(Sample(guessed.file));
    ASSERT_TRUE(guess) << guessed.file;
    EXPECT_EQ(guess->command, guessed.command) << guessed.file;
  }
  EXPECT_FALSE(GuessFile(Sample("guess/nothing")));
  // Tables of OSU of which nothing is taken.
  const TempFolder folder;
  for (const char* title :
       {"Bi-Directional Bandwidth Test", "Multiple Bandwidth / Message Rate Test"}) {
    const auto guess =
        GuessFile(folder.Write("osu.txt", "# OSU MPI " + std::string(title) + " v7.3\n"));
    ASSERT_TRUE(guess) << title;
    EXPECT_EQ(guess->command, "") << title;
    EXPECT_NE(guess->what.find("run osu_bw"), std::string::npos) << guess->what;
  }
  // Of several forms the one of which there is most.
  const auto of_several = GuessFile(Sample("step_log/trainer"));
  EXPECT_NE(of_several->why.find("3 times of the form \"progress bar\""), std::string::npos)
      << of_several->why;
  // Where to look: at the first of them.
  const auto of_lines = GuessFile(folder.Write(
      "train.log", "a job\nbegins\nglobal_step/sec: 2\nglobal_step/sec: 2\nglobal_step/sec: 4\n"));
  EXPECT_EQ(of_lines->why, "3 times of the form \"TensorFlow\", from line 3 on");
}

// By the first bytes, two words that stand together, or the name.
TEST(Guess, TellsWhyItGuesses) {
  const TempFolder folder;
  const struct {
    const char* name;
    std::string content;
    const char* what;
    const char* why;
  } cases[] = {
      {"a", "\xd4\xc3\xb2\xa1", "a capture of packets (pcap)", "its first bytes"},
      {"a", "\xa1\xb2\xc3\xd4", "a capture of packets (pcap)", "its first bytes"},
      {"a", "\x4d\x3c\xb2\xa1", "a capture of packets (pcap)", "its first bytes"},
      {"a", "\xa1\xb2\x3c\x4d", "a capture of packets (pcap)", "its first bytes"},
      {"a", "\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)", "its first bytes"},
      {"a", "\x1f\x8b\x08", "compressed with gzip: gunzip it first", "its first bytes"},
      {"a", "{\"distributedInfo\": {}, \"traceEvents\": []}",
       "a trace of PyTorch's profiler, of one of several ranks",
       "\"distributedInfo\" and \"traceEvents\""},
      {"a", "{\"traceEvents\": []}", "a trace of PyTorch's profiler", "\"traceEvents\""},
      {"a", "{\"version\": \"iperf 3.12\", \"test_start\": {}}", "what iperf3 --json prints",
       "\"test_start\" and \"iperf 3\""},
      {"a", kIperf3Text, "what iperf3 prints as text: run iperf3 --json (-J), which is read",
       "\"[ ID] Interval\""},
      {"a", "[{\"name\": \"NEGOTIATE_ALLREDUCE\"}]", "a timeline of Horovod",
       "\"NEGOTIATE_ALLREDUCE\""},
      {"a", "placement,local_bsz,step_time,sync_time\n", "a throughput trace of AdaptDL",
       "\"local_bsz\" and \"sync_time\""},
      {"a", "# OSU MPI Latency Test v7\n", "a table of the OSU micro-benchmarks",
       "\"# OSU \" and \"Latency Test\""},
      {"a", "# OSU MPI Broadcast v7\n", "a table of the OSU micro-benchmarks", "\"# OSU \""},
      {"a", "name: a\nparameters: 5\n", "a workload file", "\"name:\" and \"parameters:\""},
      {"a", "gradient_bytes: 5\n", "a workload file", "\"gradient_bytes:\""},
      {"a.onnx", "\x08\x07", "a network in ONNX", "its name"},
  };
  for (const auto& c : cases) {
    const auto guess = GuessFile(folder.Write(c.name, c.content));
    ASSERT_TRUE(guess) << c.what << " " << c.why;
    EXPECT_EQ(guess->what, c.what);
    EXPECT_EQ(guess->why, c.why);
  }
  // Neither elsewhere than at the beginning, nor one of two words alone.
  for (const std::string content : {"x\xd4\xc3\xb2\xa1", "x\x1f\x8b", "local_bsz\n", "busbw\n",
                                    "name: a\n", "\"test_start\"\n", "cwnd: 5\n", ""}) {
    EXPECT_FALSE(GuessFile(folder.Write("b", content))) << content;
  }
}

}  // namespace
}  // namespace stepcast
