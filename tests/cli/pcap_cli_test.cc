// stepcast import pcap: a ring of hosts that train, captured by each of them.
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#ifdef STEPCAST_HAS_PCAP
#include <pcap/pcap.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <regex>
#include <thread>

#include "tests/microbench/network_lab.h"
#include "tests/support/capture.h"
#endif

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectText;
using program::Json;
using program::JsonOf;
using program::Stepcast;
using program::Words;
using program::operator+;

#ifndef STEPCAST_HAS_PCAP

TEST(PcapCli, IsNotBuilt) {
  const ProcessResult result = Stepcast({"import", "pcap", "x.pcap"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("built without libpcap"), std::string::npos) << result.err;
  GTEST_SKIP() << "built without libpcap";
}

#else

constexpr std::int64_t kStart = 1'769'860'800'000'000'000;
constexpr std::int64_t kMs = 1'000'000;

// What a training of this size should send, on hosts with a device each.
Words PlanOf(const TempFolder& folder, int bytes, int workers, const Words& more) {
  const std::string message = folder.Write(
      "message.yaml", "name: message\ntitle: a message\ngradient_bytes: " + std::to_string(bytes) +
                          "\ncompute: none\n");
  return Words{"--device",      "t4",      "--workload-file", message,
               "--workload",    "message", "--workers",       std::to_string(workers),
               "--local-batch", "1",       "--bandwidth",     "1 Gbit/s"} +
         more;
}

// ---- Real connections between hosts of their own.

class Capturing {
 public:
  Capturing(const char* interface, const std::string& path) {
    char problem[PCAP_ERRBUF_SIZE] = "";
    pcap_ = pcap_create(interface, problem);
    constexpr int kKept = 150;
    constexpr int kBuffer = 32 << 20;
    if (pcap_ == nullptr || pcap_set_snaplen(pcap_, kKept) != 0 ||
        pcap_set_buffer_size(pcap_, kBuffer) != 0 || pcap_set_immediate_mode(pcap_, 1) != 0 ||
        pcap_activate(pcap_) != 0 || pcap_setnonblock(pcap_, 1, problem) != 0) {
      throw std::runtime_error("no capture");
    }
    file_ = pcap_dump_open(pcap_, path.c_str());
    thread_ = std::thread([this] {
      while (true) {
        const bool last = over_;
        const int packets = pcap_dispatch(pcap_, -1, pcap_dump, reinterpret_cast<u_char*>(file_));
        if (packets == 0 && last) break;
        if (packets == 0) usleep(1000);
      }
    });
  }
  ~Capturing() {
    usleep(100'000);  // what is on its way
    over_ = true;
    thread_.join();
    pcap_dump_close(file_);
    pcap_close(pcap_);
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  pcap_t* pcap_ = nullptr;
  pcap_dumper_t* file_ = nullptr;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

constexpr int kRingPort = 5000;
sockaddr_in AddressIn(int host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kRingPort);
  inet_pton(AF_INET, NetworkLab::AddressOf(host).c_str(), &address.sin_addr);
  return address;
}

// Sends and receives as many bytes at once.
void Exchange(int out, int in, std::size_t bytes) {
  std::vector<char> buffer(std::min<std::size_t>(bytes, 1 << 16), 'x');
  std::size_t to_send = bytes;
  std::size_t to_receive = bytes;
  while (to_send + to_receive > 0) {
    pollfd polled[2] = {{out, static_cast<short>(to_send > 0 ? POLLOUT : 0), 0},
                        {in, static_cast<short>(to_receive > 0 ? POLLIN : 0), 0}};
    if (poll(polled, 2, 20'000) <= 0) throw std::runtime_error("the ring is broken");
    if ((polled[0].revents & POLLOUT) != 0) {
      const ssize_t n = send(out, buffer.data(), std::min(buffer.size(), to_send), MSG_DONTWAIT);
      if (n > 0) to_send -= static_cast<std::size_t>(n);
    }
    if ((polled[1].revents & POLLIN) != 0) {
      const ssize_t n = recv(in, buffer.data(), std::min(buffer.size(), to_receive), MSG_DONTWAIT);
      if (n == 0) throw std::runtime_error("the ring is broken");
      if (n > 0) to_receive -= static_cast<std::size_t>(n);
    }
  }
}

// One host's part of a ring all-reduce in each step, with computing before it and an update behind.
int Train(int host, int hosts, int next, int steps, std::size_t bytes, const TempFolder& folder) {
  const std::string name = "h" + std::to_string(host);
  const Capturing capturing("eth0", folder.Path(name + ".pcap"));
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in own = AddressIn(host);
  if (bind(listening, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) return 2;
  listen(listening, 1);
  const sockaddr_in peer = AddressIn(next);
  int out = -1;
  for (int tries = 0; tries < 1000; ++tries) {
    out = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(out, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) break;
    close(out);
    usleep(10'000);
  }
  const int in = accept(listening, nullptr, nullptr);
  const auto now = [] {
    timeval time{};
    gettimeofday(&time, nullptr);
    return std::to_string(time.tv_sec) + "." + std::to_string(1'000'000 + time.tv_usec).substr(1);
  };
  std::string rows;
  for (int step = 0; step < steps; ++step) {
    const std::string begin = now();
    usleep(20'000);
    const std::string computed = now();
    for (int round = 0; round < 2 * (hosts - 1); ++round) {
      Exchange(out, in, bytes / static_cast<std::size_t>(hosts));
    }
    usleep(20'000);
    rows += name + "," + std::to_string(step) + "," + begin + "," + now() + "," + computed + "\n";
  }
  folder.Write(name + ".csv", rows);
  close(out);
  close(in);
  return 0;
}

TEST(PcapLab, ARingSendsWhatTheModelCounts) {
  if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
  const TempFolder folder;
  constexpr int kHosts = 4;
  constexpr int kSteps = 4;
  constexpr int kBytes = 1'000'000;
  // Not the order of their names.
  const int next[kHosts] = {2, 0, 3, 1};
  {
    LabConditions conditions;
    conditions.hosts = kHosts;
    conditions.rate = 200e6 / 8;
    NetworkLab lab(conditions, [&](int host) {
      return Train(host, kHosts, next[host], kSteps, kBytes, folder);
    });
    for (const int code : lab.Wait()) ASSERT_EQ(code, 0);
  }
  std::string steps = "host,step,begin_s,end_s,compute_end_s\n";
  Words import = {"import", "pcap"};
  for (int host = 0; host < kHosts; ++host) {
    const std::string name = "h" + std::to_string(host);
    steps += FileContent(folder.Path(name + ".csv"));
    import.push_back(folder.Path(name + ".pcap"));
  }
  import = import + Words{"--steps", folder.Write("steps.csv", steps)} +
           PlanOf(folder, kBytes, kHosts, {"--strategy", "ring"});
  const Json json = JsonOf(import);
  EXPECT_EQ(json["ring"]["order"], (Json{"h0", "h2", "h3", "h1"}));
  EXPECT_GT(json["ring"]["share"].get<double>(), 0.99);
  constexpr double kCounted = 2.0 * (kHosts - 1) / kHosts * kBytes;
  ASSERT_EQ(json["hosts"].size(), 4U);
  for (const Json& host : json["hosts"]) {
    EXPECT_NEAR(host["model_bytes"].get<double>(), kCounted, 1);
    ASSERT_EQ(host["steps"].size(), 4U);
    for (const Json& step : host["steps"]) {
      EXPECT_NEAR(step["sent_bytes"].get<double>() / kCounted, 1, 0.02) << host["name"];
      // The first 20 ms compute, and the last update.
      EXPECT_GE(step["first_s"].get<double>(), 0.019);
      EXPECT_LT(step["busy_in_compute_s"].get<double>(), 0.005);
    }
  }
  int large = 0;
  for (const Json& flow : json["flows"]) {
    if (flow["class"] != "large") continue;
    ++large;
    EXPECT_NEAR(flow["median_step_bytes"].get<double>() / json["model"]["flow_bytes"].get<double>(),
                1, 0.02);
    EXPECT_TRUE(flow["opened"].get<bool>());
    EXPECT_TRUE(flow["closed"].get<bool>());
    EXPECT_EQ(flow["missing_bytes"], 0);
  }
  EXPECT_EQ(large, kHosts);
  EXPECT_NEAR(json["model"]["step_bytes"].get<double>() / (kHosts * kCounted), 1, 1e-9);
  EXPECT_NEAR(json["periods"]["in_steps"]["payload_bytes"].get<double>() /
                  json["payload_bytes"].get<double>(),
              1, 0.02);
}

// ---- What was written by hand.

class PcapCli : public testing::Test {
 protected:
  // A server and two workers, in two steps; by file, the server's end and a worker's.
  void SetUp() override {
    TestCapture capture(LinkType::kCooked2);
    for (int step = 0; step < 2; ++step) {
      const std::int64_t begin = kStart + step * 100 * kMs;
      for (int worker = 1; worker <= 2; ++worker) {
        const TestPacket push{.from = "10.0.0." + std::to_string(worker),
                              .to = "10.0.0.9",
                              .sequence = static_cast<std::uint32_t>(step * 4000),
                              .payload = 4000};
        TestPacket pull = push;
        std::swap(pull.from, pull.to);
        std::swap(pull.from_port, pull.to_port);
        capture.Add(begin + 10 * kMs, push);
        capture.Add(begin + 20 * kMs, pull);
      }
    }
    capture_ = folder_.Write("server.pcap", capture.bytes());
    steps_ = folder_.Write("steps.csv",
                           "step,begin_s,end_s\n0,1769860800,1769860800.09\n"
                           "1,1769860800.1,1769860800.19\n");
  }

  TempFolder folder_;
  std::string capture_;
  std::string steps_;
};

TEST_F(PcapCli, ServersAreCountedApart) {
  const Words plan =
      PlanOf(folder_, 4000, 2,
             {"--strategy", "ps-sync", "--servers", "1", "--address", "server=10.0.0.9"});
  const Json json = JsonOf(Words{"import", "pcap", capture_, "--steps", steps_} + plan);
  EXPECT_TRUE(json["ring"].is_null());
  ASSERT_EQ(json["hosts"].size(), 3U);
  for (const Json& host : json["hosts"]) {
    EXPECT_EQ(host["model_bytes"], host["name"] == "server" ? 8000 : 4000);
    EXPECT_EQ(host["model_bytes"], host["sent_bytes"]);
  }
  EXPECT_EQ(json["model"]["flow_bytes"], 4000);
  EXPECT_EQ(json["model"]["step_bytes"], 16000);
  // What the model forecasts is what predict says of the plan.
  Words asked = plan;
  asked.erase(std::find(asked.begin(), asked.end(), "--address"), asked.end());
  const Json forecast = JsonOf(Words{"predict"} + asked);
  EXPECT_EQ(json["model"]["p50_s"], forecast["quantiles"]["p50_s"]);
  const double whole = forecast["synchronisation_s"].get<double>();
  const double shown = forecast["breakdown"]["exposed_transfer_s"].get<double>() +
                       forecast["breakdown"]["exposed_latency_s"].get<double>();
  EXPECT_NEAR(json["model"]["hidden_share"].get<double>(), (whole - shown) / whole, 1e-12);
  EXPECT_EQ(json["classes"]["large"]["flows"], 4);
  EXPECT_EQ(json["distributions"]["step_time_s"]["cdf"].size(), 21U);
  EXPECT_EQ(json["distributions"]["flow_bytes"]["values"], 4);
}

// Each server has its part of what a worker sends.
TEST_F(PcapCli, AFlowToOneOfSeveralServersCarriesItsPart) {
  for (const int servers : {1, 2, 4}) {
    const Words plan =
        PlanOf(folder_, 4000, 2, {"--strategy", "ps-sync", "--servers", std::to_string(servers)});
    const Json json = JsonOf(Words{"import", "pcap", capture_, "--steps", steps_} + plan);
    EXPECT_EQ(json["model"]["flow_bytes"], 4000 / servers);
  }
}

// What was captured is told beside the model's count, above it or below.
TEST_F(PcapCli, TheTableOfHostsSaysHowFarTheyAreOff) {
  for (const auto& [bytes, off] : {std::pair(5000, "-20.00 %"), std::pair(3200, "+25.00 %")}) {
    const Words plan =
        PlanOf(folder_, bytes, 2,
               {"--strategy", "ps-sync", "--servers", "1", "--address", "server=10.0.0.9"});
    const std::string text =
        Stepcast(Words{"import", "pcap", capture_, "--steps", steps_} + plan).out;
    for (const char* host : {"10.0.0.1", "10.0.0.2", "server"}) {
      EXPECT_TRUE(std::regex_search(text, std::regex(std::string("\n *") + host + " .* \\" + off)))
          << host << " " << off << "\n"
          << text;
    }
  }
}

// The middle of the steps, which is not their mean where workers wait for each other.
TEST_F(PcapCli, AStepIsForecastByItsMedian) {
  const Words plan = {
      "--device",      "t4", "--workload", "resnet50", "--workers", "2", "--bandwidth", "1 Gbit/s",
      "--local-batch", "8",  "--strategy", "ps-sync",  "--servers", "1"};
  const Json json = JsonOf(
      Words{"import", "pcap", capture_, "--steps", steps_, "--address", "server=10.0.0.9"} + plan);
  const Json forecast = JsonOf(Words{"predict"} + plan);
  EXPECT_EQ(json["model"]["p50_s"], forecast["quantiles"]["p50_s"]);
  EXPECT_NE(forecast["quantiles"]["p50_s"], forecast["step_time_s"]);
}

// Steps that last as long as the middle of those that are forecast are not off at all.
TEST_F(PcapCli, TheTableComparesTheMiddleOfTheSteps) {
  const Words plan = {"--device",      "t4", "--workload",  "resnet50",
                      "--workers",     "2",  "--bandwidth", "100 Gbit/s",
                      "--local-batch", "64", "--strategy",  "ps-sync",
                      "--servers",     "1"};
  const Json forecast = JsonOf(Words{"predict"} + plan);
  const double middle = forecast["quantiles"]["p50_s"];
  ASSERT_GT(std::abs(middle / forecast["step_time_s"].get<double>() - 1), 1e-4);
  ASSERT_LT(middle, 9);
  const std::string steps = folder_.Write(
      "steps.csv", "step,begin_s,end_s\n0,1769860800," + std::to_string(1769860800 + middle) +
                       "\n1,1769860810," + std::to_string(1769860810 + middle) + "\n");
  const ProcessResult result = Stepcast(
      Words{"import", "pcap", capture_, "--steps", steps, "--address", "server=10.0.0.9"} + plan);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::regex_search(result.out, std::regex("\n *step time .* [+-]0\\.00 %\n")))
      << result.out;
}

TEST_F(PcapCli, EveryNumberOfAFlowIsItsOwn) {
  TestCapture capture;
  const auto at = [&](int ms, std::uint32_t sequence, int payload, const std::string& flags = {}) {
    capture.Add(kStart + ms * kMs, {.sequence = sequence, .payload = payload, .flags = flags});
  };
  at(10, 0, 4000);
  at(11, 4000, 1000);
  at(12, 4000, 1000);  // again
  at(13, 7000, 500);   // 2000 are missing
  at(95, 7500, 100, "F");
  TestCapture cut(LinkType::kEthernet, CaptureFormat::kMicroseconds, 40);
  cut.Add(kStart, {.payload = 1000});
  for (int i = 0; i < 2; ++i) {
    cut.AddFrame(kStart, std::string(12, '\2') + Big(0x0806, 2) + std::string(46, '\0'));  // ARP
  }
  for (int i = 0; i < 4; ++i) {  // longer than its frame, by its own telling
    cut.AddFrame(kStart, std::string(12, '\2') + Big(0x0800, 2) + Big(0x4500, 2) + Big(1000, 2) +
                             std::string(16, '\0'));
  }
  const Words words = {"import",
                       "pcap",
                       folder_.Write("flow.pcap", capture.bytes()),
                       folder_.Write("cut.pcap", cut.bytes()),
                       "--steps",
                       steps_};
  const Json json = JsonOf(words);
  EXPECT_EQ(json["captures"][0]["packets"], 5);
  EXPECT_EQ(json["captures"][1]["other_packets"], 2);
  EXPECT_EQ(json["captures"][1]["short_packets"], 1);
  EXPECT_EQ(json["captures"][1]["broken_packets"], 4);
  // Together they are what is not of a flow.
  const std::string text = Stepcast(words).out;
  for (const auto& [file, others] : {std::pair("flow", 0), std::pair("cut", 7)}) {
    EXPECT_TRUE(std::regex_search(
        text, std::regex(std::string("/") + file + "\\.pcap .* " + std::to_string(others) + "\n")))
        << text;
  }
  ASSERT_EQ(json["flows"].size(), 1U);
  const Json& flow = json["flows"][0];
  EXPECT_EQ(flow["packets"], 5);
  EXPECT_EQ(flow["payload_bytes"], 6600);
  EXPECT_EQ(flow["payload_in_steps_bytes"], 6500);
  EXPECT_EQ(flow["repeated_bytes"], 1000);
  EXPECT_EQ(flow["missing_bytes"], 2000);
  EXPECT_EQ(flow["steps"], 1);
  EXPECT_EQ(flow["opened"], false);
  EXPECT_EQ(flow["closed"], true);
  EXPECT_EQ(flow["reset"], false);
  EXPECT_NEAR(flow["duration_s"].get<double>(), 0.085, 1e-9);
  const Json& step = json["hosts"][0]["steps"][0];
  EXPECT_EQ(step["sent_bytes"], 6500);
  EXPECT_NEAR(step["step_time_s"].get<double>(), 0.09, 1e-9);
  EXPECT_NEAR(step["first_s"].get<double>(), 0.010, 1e-9);
  EXPECT_NEAR(step["last_s"].get<double>(), 0.013, 1e-9);
  EXPECT_NEAR(step["busy_s"].get<double>(), 0.003, 1e-9);
}

TEST_F(PcapCli, TextAndTableTellTheSame) {
  ExpectText({"import", "pcap", capture_, "--steps", steps_, "--output", folder_.Path("by.csv")},
             {"Traffic of 3 hosts: 31.2 KiB of payload in 8 packets, 2 steps", "in steps",
              "no ring", "10.0.0.9:2000", "flows by step: "});
  EXPECT_EQ(FileContent(folder_.Path("by.csv")).substr(0, 115),
            "from,from_port,to,to_port,protocol,class,step,packets,payload_bytes\n"
            "10.0.0.1,1000,10.0.0.9,2000,tcp,large,0,1,4000\n");
  // Without steps it is the traffic of all the time.
  ExpectText({"import", "pcap", capture_}, {"31.2 KiB", "no ring"});
}

// A ring of three hosts in two steps, with something before, between and behind them: of the 26,220
// bytes in steps 20 are no part of it.
TEST_F(PcapCli, EachCellOfTheTablesIsTheTraffics) {
  TestCapture capture;
  const auto add = [&](int ms, int from, int to, TestPacket packet) {
    packet.from = "10.0.0." + std::to_string(from);
    packet.to = "10.0.0." + std::to_string(to);
    capture.Add(kStart + ms * kMs, packet);
  };
  add(50, 1, 2, {.sequence = 0, .payload = 100, .flags = "S"});
  add(110, 1, 2, {.sequence = 101, .payload = 4000});
  add(120, 2, 3, {.sequence = 0, .payload = 4000});
  add(130, 3, 1, {.sequence = 0, .payload = 4000});
  add(140, 1, 3, {.payload = 20, .udp = true});
  add(250, 2, 3, {.sequence = 4000, .payload = 300});
  add(310, 1, 2, {.sequence = 4101, .payload = 4000});
  add(320, 2, 3, {.sequence = 4300, .payload = 6000});
  add(330, 3, 1, {.sequence = 4000, .payload = 4000});
  add(340, 1, 2, {.to_port = 3000, .payload = 200, .flags = "R"});
  add(350, 2, 1, {.from_port = 2000, .to_port = 1000, .flags = "A"});
  add(450, 3, 1, {.sequence = 8000, .payload = 500, .flags = "F"});
  const std::string file = folder_.Write("ring.pcap", capture.bytes());
  const std::string steps = folder_.Write("ring.csv",
                                          "step,begin_s,end_s\n0,1769860800.1,1769860800.2\n"
                                          "1,1769860800.3,1769860800.4\n");
  const Words import = {"import", "pcap", file, "--steps", steps};
  const std::string text = Stepcast(import).out;
  for (const std::string& line :
       {std::string("Traffic of 3 hosts: 26.5 KiB of payload in 12 packets, 2 steps"),
        file + " - - 12 400 ms 0", std::string("before the first step 1 8.33 % 100 B 0.369 %"),
        std::string("in steps 9 75 % 25.6 KiB 96.7 %"),
        std::string("between steps 1 8.33 % 300 B 1.11 %"),
        std::string("after the last step 1 8.33 % 500 B 1.84 %"),
        std::string("class flows packets payload"), std::string("large 3 9 75 % 26.3 KiB 99.2 %"),
        std::string("medium 2 2 16.7 % 220 B 0.811 %"), std::string("small 0 0 0 % 0 B 0 %"),
        std::string("empty 1 1 8.33 % 0 B 0 %"),
        std::string(
            "10.0.0.2:1000 10.0.0.3:2000 large earlier later 3 10.1 KiB 4.88 KiB 2 0 B 0 B"),
        std::string("10.0.0.3:1000 10.0.0.1:2000 large earlier FIN 3 8.3 KiB 3.91 KiB 2 0 B 0 B"),
        std::string("10.0.0.1:1000 10.0.0.2:2000 large SYN later 3 7.91 KiB 3.91 KiB 2 0 B 0 B"),
        std::string("10.0.0.1:1000 10.0.0.2:3000 medium earlier RST 1 200 B 200 B 1 0 B 0 B"),
        std::string("10.0.0.1:1000 10.0.0.3:2000 medium UDP UDP 1 20 B 20 B 1 0 B 0 B"),
        std::string("10.0.0.2:2000 10.0.0.1:1000 empty earlier later 1 0 B 0 B 1 0 B 0 B"),
        std::string("distribution of values least 5 % 25 % half 75 % 95 % most"),
        std::string("step 2 100 ms 100 ms 100 ms 100 ms 100 ms 100 ms 100 ms"),
        // 20, 200, 8100, 8500 and 10,300 bytes.
        std::string("a flow 5 20 B 56 B 200 B 7.91 KiB 8.3 KiB 9.71 KiB 10.1 KiB"),
        std::string("from \\ to 10.0.0.1 10.0.0.2 10.0.0.3"), std::string("10.0.0.1 8.01 KiB 20 B"),
        std::string("10.0.0.2 9.77 KiB"), std::string("10.0.0.3 7.81 KiB"),
        std::string("host steps sent a step from to busy"),
        std::string("10.0.0.1 2 4.01 KiB 10 ms 11 ms 1 ms"),
        std::string("10.0.0.2 2 4.88 KiB 20 ms 21 ms 1 ms"),
        std::string("10.0.0.3 2 3.91 KiB 30 ms 31 ms 1 ms")}) {
    program::ExpectLine(text, line);
  }
  program::ExpectSaid(text,
                      "ring: 10.0.0.1 -> 10.0.0.2 -> 10.0.0.3 -> 10.0.0.1, with 99.9 % of what "
                      "these hosts send",
                      true);
  for (const char* undue : {"no ring", "flows more", "model's count", "while computing",
                            "median of the steps", "of hosts without steps", "file ends within",
                            "too little was kept", "contradict themselves"}) {
    program::ExpectSaid(text, undue, false);
  }
  // Hosts may have names, and without steps there are none in the tables.
  const std::string named = Stepcast({"import", "pcap", file, "--address", "left=10.0.0.1"}).out;
  program::ExpectLine(named, "Traffic of 3 hosts: 26.5 KiB of payload in 12 packets");
  program::ExpectLine(named, "left:1000 10.0.0.2:2000 large SYN later 3 7.91 KiB - 0 0 B 0 B");
  for (const char* undue : {"in steps", "sent a step from", "sent by a host in a step"}) {
    program::ExpectSaid(named, undue, false);
  }
  ExpectError({"import", "pcap", file, "--address", "a=10.0.0.1", "--address", "b=10.0.0.1"},
              {"--address: '10.0.0.1' is given twice; allowed: each address once\n"});
}

// Of a dozen flows ten are shown, or all.
TEST_F(PcapCli, TheFirstFlowsAreShown) {
  TestCapture capture;
  for (int i = 0; i < 12; ++i) {
    capture.Add(kStart + i * kMs, {.from_port = 5000 + i, .payload = 1000 + 10 * i});
  }
  const Words import = {"import", "pcap", folder_.Write("many.pcap", capture.bytes())};
  const std::string few = Stepcast(import).out;
  const std::string all = Stepcast(import + Words{"--flows"}).out;
  program::ExpectSaid(few, "and 2 flows more: --flows shows them", true);
  program::ExpectSaid(all, "flows more", false);
  for (int i = 0; i < 12; ++i) {
    const std::string flow = "10.0.0.1:" + std::to_string(5000 + i) + " ";
    program::ExpectSaid(few, flow, i >= 2);  // those that carry the most
    program::ExpectSaid(all, flow, true);
  }
}

// What is captured stands beside the model's count, where there is one.
TEST_F(PcapCli, TheModelIsAskedForItsCounts) {
  const Words plan =
      PlanOf(folder_, 5000, 2,
             {"--strategy", "ps-sync", "--servers", "1", "--address", "server=10.0.0.9"});
  const std::string text =
      Stepcast(Words{"import", "pcap", capture_, "--steps", steps_} + plan).out;
  for (const char* line :
       {"median of the steps captured model captured / model - 1",
        "a large flow 3.91 KiB 4.88 KiB -20.00 %", "between all hosts 15.6 KiB 19.5 KiB -20.00 %",
        "server 2 7.81 KiB 20 ms 21 ms 1 ms 9.77 KiB -20.00 %",
        "10.0.0.1 2 3.91 KiB 10 ms 11 ms 1 ms 4.88 KiB -20.00 %", "sent while computing - 0 % -"}) {
    program::ExpectLine(text, line);
  }
}

TEST_F(PcapCli, ATruncatedCaptureIsSaid) {
  const std::string bytes = FileContent(capture_);
  const std::string cut = folder_.Write("cut.pcap", bytes.substr(0, bytes.size() - 10));
  ExpectText({"import", "pcap", cut}, {"cut.pcap: the file ends within packet 8"});
  EXPECT_TRUE(JsonOf({"import", "pcap", cut})["captures"][0]["truncated"].get<bool>());
}

// A gigabyte in less memory than a quarter of it: as a pipe, which nothing can read twice.
TEST_F(PcapCli, ALongCaptureTakesLittleMemory) {
  constexpr std::size_t kKept = 150;
  constexpr std::size_t kFileHeader = 24;
  TestCapture capture(LinkType::kEthernet, CaptureFormat::kMicroseconds, kKept);
  constexpr std::uint32_t kPackets = 6000;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    capture.Add(
        kStart + i * 1000,
        {.from_port = 1000 + static_cast<int>(i % 16), .sequence = i / 16 * 1448, .payload = 1448});
  }
  const std::string path = folder_.Path("long.pcap");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Whatever becomes of the program, the writer finds a reader, and at the end none.
  std::signal(SIGPIPE, SIG_IGN);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  constexpr std::int64_t kRepeated = 1000;
  std::thread writer([&] {
    std::ofstream out(path, std::ios::binary);
    out << capture.bytes().substr(0, kFileHeader);
    for (std::int64_t i = 0; i < kRepeated && out; ++i) {
      out.write(capture.bytes().data() + kFileHeader,
                static_cast<std::streamsize>(capture.bytes().size() - kFileHeader));
    }
  });
  const ProcessResult result = RunProcess({"/bin/sh", "-c", "ulimit -v 250000; exec \"$@\"", "sh",
                                           STEPCAST_PROGRAM, "import", "pcap", path, "--json"});
  close(reader);
  writer.join();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["packets"], kPackets * kRepeated);
  EXPECT_EQ(json["payload_bytes"], kPackets * kRepeated * 1448);
  EXPECT_LT(result.processor_s, 20);
}

TEST_F(PcapCli, TheReferenceNamesEveryKey) {
  const std::string page = FileContent(STEPCAST_SOURCE_DIR "/docs/reference/cli.md");
  const Words plan = PlanOf(folder_, 4000, 2, {"--strategy", "ps-sync", "--servers", "1"});
  const Json json = JsonOf(Words{"import", "pcap", capture_, "--steps", steps_} + plan);
  const std::function<void(const Json&)> check = [&](const Json& part) {
    for (const auto& [key, value] : part.items()) {
      if (part.is_object()) {
        EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key;
      }
      if (value.is_structured()) check(value);
    }
  };
  check(json);
}

TEST_F(PcapCli, WhatIsWrongIsSaid) {
  ExpectError({"import", "pcap", folder_.Path("none.pcap")}, {"none.pcap: cannot be read"});
  ExpectError({"import", "pcap", steps_}, {"steps.csv: is no capture"});
  ExpectError({"import", "pcap", capture_, "--steps", capture_}, {"server.pcap"});
  ExpectError({"import", "pcap", capture_, "--dim", "a=1"}, {"--dim: has no meaning for pcap"});
  ExpectError({"import", "pcap", capture_, "--output", "x.csv"},
              {"--steps: is required with --output"});
  ExpectError({"import", "pcap", capture_, "--address", "10.0.0.1"},
              {"--address", "names no host"});
  ExpectError({"import", "pcap", capture_, "--address", "a=10.0.0.1", "--address", "b=10.0.0.1"},
              {"--address: '10.0.0.1' is given twice"});
  ExpectError({"import", "pcap", capture_, "--workers", "2"}, {"--cluster: is required"});
  ExpectError({"import", "adaptdl", capture_, "--steps", steps_},
              {"--steps: has no meaning for adaptdl"});
  ExpectError({"import", "kineto", capture_, "--workers", "2"},
              {"--workers: has no meaning for kineto"});
}

#endif

}  // namespace
}  // namespace stepcast
