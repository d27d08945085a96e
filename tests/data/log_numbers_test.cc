// Every number that is taken out of a log: the logs are written here, of numbers drawn anew, in the
// forms of the samples in tests/fuzz/corpus, and what they tell is worked out beside them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/logs/collective_log.h"
#include "data/logs/link_log.h"
#include "data/logs/step_log.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

class Drawn {
 public:
  explicit Drawn(int seed) : random_(static_cast<unsigned>(seed)) {}
  int Whole(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  // With the two digits that tools print.
  double Number(double least, double most) {
    const double value = std::uniform_real_distribution<double>(least, most)(random_);
    return std::stod(fmt::format("{:.2f}", value));
  }
  bool Coin() { return Whole(0, 1) == 1; }

 private:
  std::mt19937 random_;
};

constexpr int kLogs = 60;

// ---- Tables of collectives.

// A table as nccl-tests print it, with or without its name, and what is to be read of it.
std::string NcclTable(Drawn* drawn, CollectiveTable* table) {
  const char* const programs[] = {"all_reduce_perf", "reduce_scatter_perf", ""};
  const int program = drawn->Whole(0, 2);
  table->name = programs[program];
  const bool old = drawn->Coin();
  const bool one_device = drawn->Coin();
  std::string text = fmt::format("# Collective test starting: {}\n", table->name);
  if (table->name.empty()) text.clear();
  text += "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n";
  int rank = 0;
  for (int host = 0; host < drawn->Whole(1, 3); ++host) {
    const int ranks = drawn->Whole(host == 0 ? 2 : 1, 4);
    for (int i = 0; i < ranks; ++i) {
      text += fmt::format("#  Rank {:2} Group  0 Pid  653 on  host{} device {:2} [0x06] GPU {}\n",
                          rank++, host, i, one_device || i % 2 == 0 ? "A" : "B");
    }
    table->hosts.push_back(fmt::format("host{}", host));
    table->placement.push_back(ranks);
  }
  table->device = one_device ? "GPU A" : "";
  const char* const errors = old ? "error" : "#wrong";
  text += fmt::format("# size count type redop root time algbw busbw {0} time algbw busbw {0}\n",
                      errors);
  text += "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n";
  // Of a table without a name: whether it reduces, has a root, and which rate its busbw is.
  const bool reduces = drawn->Whole(0, 3) > 0;
  const int root = drawn->Whole(0, 3) > 0 ? -1 : 1;
  const bool both_ways = drawn->Coin();
  const int rows = drawn->Whole(1, 4);
  for (int i = 0; i < rows; ++i) {
    const double once = drawn->Number(1, 90);
    CollectiveRow row;
    row.bytes = 1024.0 * drawn->Whole(1, 1 << 20);
    row.out_of_place_s = drawn->Number(1, 900) * 1e-6;
    row.in_place_s = drawn->Number(1, 900) * 1e-6;
    row.bytes_per_s = once * 1e9;
    const double bus = (both_ways ? 2 : 1) * once * (rank - 1) / rank;
    row.bus_bytes_per_s = bus * 1e9;
    const bool wrong = drawn->Whole(0, 4) == 0;
    text += fmt::format("{} 256 float {} {} {} {} {} {} {} 1.5 2.5 {}\n", row.bytes,
                        reduces ? "sum" : "none", root, 1e6 * *row.out_of_place_s, once, bus,
                        wrong ? 3 : 0, 1e6 * *row.in_place_s, old ? "1e-7" : "0");
    if (wrong && !old) {
      ++table->wrong;
    } else {
      table->rows.push_back(row);
    }
  }
  const bool known = program == 0;
  const bool by_rates = program == 2 && reduces && root < 0 && both_ways && !table->rows.empty();
  table->kind = known || by_rates ? CollectiveKind::kAllreduce : CollectiveKind::kOther;
  return text;
}

TEST(LogNumbers, OfTablesOfNcclTests) {
  const TempFolder folder;
  std::set<std::pair<std::string, CollectiveKind>> kinds;
  for (int seed = 0; seed < kLogs; ++seed) {
    SCOPED_TRACE(seed);
    Drawn drawn(seed);
    CollectiveTable expected[2];
    // The name of a test holds until another is told.
    std::string text = NcclTable(&drawn, &expected[1]);
    if (!expected[1].name.empty()) text = NcclTable(&drawn, &expected[0]) + text;
    const CollectiveLog log = ReadNcclTests(folder.Write("nccl.txt", text));
    EXPECT_EQ(log.unknown.count, 0) << text;
    ASSERT_EQ(log.tables.size(), expected[1].name.empty() ? 1U : 2U) << text;
    for (std::size_t t = 0; t < log.tables.size(); ++t) {
      const CollectiveTable& read = log.tables[t];
      const CollectiveTable& is = expected[t + 2 - log.tables.size()];
      kinds.emplace(is.name, is.kind);
      EXPECT_EQ(read.name, is.name) << text;
      EXPECT_EQ(read.kind, is.kind) << text;
      EXPECT_EQ(read.placement, is.placement) << text;
      EXPECT_EQ(read.hosts, is.hosts) << text;
      EXPECT_EQ(read.device, is.device) << text;
      EXPECT_EQ(read.wrong, is.wrong) << text;
      ASSERT_EQ(read.rows.size(), is.rows.size()) << text;
      for (std::size_t i = 0; i < is.rows.size(); ++i) {
        EXPECT_EQ(read.rows[i].bytes, is.rows[i].bytes);
        EXPECT_DOUBLE_EQ(*read.rows[i].out_of_place_s, *is.rows[i].out_of_place_s);
        EXPECT_DOUBLE_EQ(*read.rows[i].in_place_s, *is.rows[i].in_place_s);
        EXPECT_DOUBLE_EQ(*read.rows[i].bytes_per_s, *is.rows[i].bytes_per_s);
        EXPECT_DOUBLE_EQ(*read.rows[i].bus_bytes_per_s, *is.rows[i].bus_bytes_per_s);
      }
    }
  }
  EXPECT_EQ(kinds.size(), 4U) << "the nameless are of both kinds";
}

TEST(LogNumbers, OfTablesOfOsu) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    Drawn drawn(seed);
    const bool rate = drawn.Coin();
    const double value = drawn.Number(1, 9000);
    const CollectiveLog log = ReadOsuBenchmarks(folder.Write(
        "osu.txt",
        fmt::format("# OSU MPI {} Test v5.8\n# Size {}\n{} {}\n", rate ? "Bandwidth" : "Latency",
                    rate ? "Bandwidth (MB/s)" : "Latency (us)", seed, value)));
    const CollectiveRow& row = log.tables.at(0).rows.at(0);
    EXPECT_EQ(row.bytes, seed);
    EXPECT_EQ(row.bytes_per_s.has_value(), rate);
    EXPECT_DOUBLE_EQ(rate ? *row.bytes_per_s : *row.out_of_place_s,
                     rate ? value * 1e6 : value * 1e-6);
  }
}

// ---- Links.

// What a log tells, by name, with its flags.
struct Told {
  std::map<std::string, double> findings;
  std::vector<std::string> flags;
  LinkFacts link;
};

void ExpectTold(const LinkLog& log, const Told& told, const std::string& text) {
  std::map<std::string, double> left = told.findings;
  for (const LinkFinding& finding : log.findings) {
    ASSERT_EQ(left.count(finding.name), 1U) << finding.name << "\n" << text;
    EXPECT_NEAR(finding.value, left[finding.name], 1e-12 * std::abs(left[finding.name]))
        << finding.name << "\n"
        << text;
    left.erase(finding.name);
  }
  for (const auto& [name, value] : left) ADD_FAILURE() << name << " is not told\n" << text;
  EXPECT_EQ(log.flags, told.flags) << text;
  const auto si = [](const auto& fact) { return fact ? fact->si() : -1; };
  EXPECT_DOUBLE_EQ(si(log.link.rtt), si(told.link.rtt)) << text;
  EXPECT_DOUBLE_EQ(si(log.link.bandwidth), si(told.link.bandwidth)) << text;
  EXPECT_DOUBLE_EQ(log.link.loss.value_or(-1), told.link.loss.value_or(-1)) << text;
  EXPECT_EQ(log.link.congestion_control, told.link.congestion_control) << text;
  EXPECT_EQ(log.unknown.count, 0) << text;
}

void TellLoss(int lost, int sent, Told* told) {
  told->flags.push_back(fmt::format("--lost {}/{}", lost, sent));
  if (lost > 0) told->link.loss = 1.0 * lost / sent;
}

TEST(LogNumbers, OfIperf3OverTcp) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    Drawn drawn(seed);
    const int streams = std::vector{1, 2, 7, 8, 9}[static_cast<std::size_t>(drawn.Whole(0, 4))];
    const int told_rate = drawn.Whole(0, 3) == 0 ? 1000000 : 0;
    const int rate = drawn.Whole(1'000'000, 900'000'000);
    const int again = drawn.Whole(0, 50);
    std::string of_streams;
    int least = 1'000'000;
    int most = 0;
    for (int i = 0; i < streams; ++i) {
      const int own = drawn.Whole(10, 900);
      const int mean = own + drawn.Whole(0, 900);
      least = std::min(least, own);
      most = std::max(most, mean);
      of_streams += fmt::format(R"({}{{"sender": {{"min_rtt": {}, "mean_rtt": {}}}}})",
                                i == 0 ? "" : ", ", own, mean);
    }
    const std::string text = fmt::format(
        R"({{"start": {{"version": "iperf 3.12", "test_start": {{"protocol": "TCP",
"num_streams": {}, "target_bitrate": {}}}}},
"intervals": [{{"streams": [{{"pmtu": 1500}}]}}, {{"streams": [{{"pmtu": 9000}}]}}],
"end": {{"streams": [{}], "sum_sent": {{"bits_per_second": 1, "retransmits": {}}},
"sum_received": {{"bits_per_second": {}}}, "sender_tcp_congestion": "bbr"}}}})",
        streams, told_rate, of_streams, again, rate);
    Told told;
    told.findings = {
        {"goodput", rate}, {"loaded_rtt", most * 1e-6}, {"retransmits", again}, {"mtu", 1500}};
    // Seven connections are not all of a link.
    if (told_rate == 0 && (streams == 1 || streams >= 8)) {
      told.flags.push_back(
          fmt::format("--{}-rate \"{:.6g} Mbit/s\"", streams == 1 ? "flow" : "link", rate / 1e6));
    }
    told.flags.push_back(fmt::format("--ping \"{} us\"", least));
    told.link.rtt = Seconds(least * 1e-6);
    told.link.congestion_control = CongestionControl::kBbr;
    const LinkLog log = ReadIperf3(folder.Write("iperf3.json", text));
    ExpectTold(log, told, text);
    EXPECT_EQ(log.remarks.size(), told_rate == 0 ? 0U : 1U);
  }
}

TEST(LogNumbers, OfIperf3OverUdp) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    Drawn drawn(seed);
    const int sent = drawn.Whole(10, 1000);
    const int lost = drawn.Coin() ? 0 : drawn.Whole(1, 9);
    const double jitter = drawn.Number(0.01, 5);
    const int rate = drawn.Whole(1000, 100000);
    const std::string text = fmt::format(
        R"({{"start": {{"test_start": {{"protocol": "UDP", "num_streams": 1}}}},
"end": {{"sum": {{"bits_per_second": {}, "jitter_ms": {}, "lost_packets": {}, "packets": {}}}}}}})",
        rate, jitter, lost, sent);
    Told told;
    told.findings = {
        {"udp_rate", rate}, {"jitter", jitter * 1e-3}, {"lost", lost}, {"packets", sent}};
    TellLoss(lost, sent, &told);
    ExpectTold(ReadIperf3(folder.Write("iperf3.json", text)), told, text);
  }
}

TEST(LogNumbers, OfPing) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    Drawn drawn(seed);
    const bool quiet = drawn.Coin();
    const int sent = drawn.Whole(5, 30);
    const int lost = drawn.Whole(0, 4);
    std::vector<double> times;
    std::string text;
    for (int i = lost; i < sent; ++i) {
      times.push_back(drawn.Number(0.01, 90));
      if (quiet) continue;
      const std::string line =
          fmt::format("64 bytes from 10.0.0.2: icmp_seq={} ttl=64 time={} ms\n", i, times.back());
      text += line;
    }
    const double mean = std::stod(fmt::format(
        "{:.3f}", std::accumulate(times.begin(), times.end(), 0.0) / std::ssize(times)));
    std::sort(times.begin(), times.end());
    text += fmt::format("\n{} packets transmitted, {} received, 0% packet loss, time 9ms\n", sent,
                        sent - lost);
    text +=
        fmt::format("rtt min/avg/max/mdev = {}/{}/{}/0.1 ms\n", times.front(), mean, times.back());
    const std::size_t half = times.size() / 2;
    const double median =
        times.size() % 2 == 1 ? times[half] : 0.5 * (times[half - 1] + times[half]);
    Told told;
    told.findings = {{"packets", sent},
                     {"lost", lost},
                     {"rtt_min", times.front() * 1e-3},
                     {"rtt_mean", mean * 1e-3},
                     {"rtt_max", times.back() * 1e-3}};
    TellLoss(lost, sent, &told);
    told.link.rtt = Seconds((quiet ? mean : median) * 1e-3);
    told.flags.push_back(fmt::format("--ping \"{:.6g} ms\"", quiet ? mean : median));
    ExpectTold(ReadPing(folder.Write("ping.txt", text)), told, text);

    // A reply that came twice is none of a round trip.
    if (quiet) continue;
    const std::string again =
        "64 bytes from 10.0.0.2: icmp_seq=9 ttl=64 time=500 ms (DUP!)\n" + text;
    const LinkLog log = ReadPing(folder.Write("ping.txt", again));
    EXPECT_EQ(log.unknown.count, 1);
    EXPECT_DOUBLE_EQ(log.link.rtt->si(), told.link.rtt->si());
  }
}

TEST(LogNumbers, OfEthtool) {
  const TempFolder folder;
  for (const int speed : {10, 1000, 25000, 400000}) {
    const std::string text =
        fmt::format("Settings for eth0:\n\tSpeed: {}Mb/s\n\tDuplex: Full\n", speed);
    Told told;
    told.findings = {{"port_speed", speed * 1e6}};
    told.flags = {fmt::format("--bandwidth \"{} Mbit/s\"", speed)};
    told.link.bandwidth = MegabitsPerSecond(1.0 * speed);
    const LinkLog log = ReadEthtool(folder.Write("ethtool.txt", text));
    ExpectTold(log, told, text);
    EXPECT_TRUE(log.remarks.empty());
    const LinkLog half =
        ReadEthtool(folder.Write("ethtool.txt", text + "\tDuplex: Half\n\tLink detected: no\n"));
    EXPECT_EQ(half.remarks.size(), 2U) << "one each way at a time, and no link";
  }
}

TEST(LogNumbers, OfSs) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    Drawn drawn(seed);
    std::string text = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n";
    double least = 1e9;
    double most = 0;
    int rate = 0;
    int window = 0;
    int mtu = 100000;
    int sent = 0;
    int again = 0;
    int connections = 0;
    for (int i = 0; i < 5; ++i) {
      const double own = drawn.Number(0.01, 5);
      const double mean = own + drawn.Number(0, 5);
      const int own_rate = drawn.Whole(1000, 1'000'000);
      const int segment = drawn.Whole(500, 8948);
      const int own_window = drawn.Whole(1, 5000);
      const int own_sent = i > 0 && drawn.Whole(0, 3) == 0 ? 0 : drawn.Whole(100, 100000);
      const int own_again = drawn.Whole(0, 20);
      const int arrived = drawn.Whole(0, 20);
      text += fmt::format("ESTAB 0 0 10.0.0.1:{} 10.0.0.2:5201\n", i);
      text += fmt::format(
          "\t cubic wscale:7,7 rto:204 rtt:{:.3f}/1.5 mss:{} pmtu:{} cwnd:{} data_segs_out:{} "
          "delivery_rate {}bps retrans:0/{} dsack_dups:{} minrtt:{}\n",
          mean, segment, segment + 52, own_window, own_sent, own_rate, own_again, arrived, own);
      if (own_sent == 0) continue;  // it only listens
      ++connections;
      least = std::min(least, own);
      most = std::max(most, mean);
      rate = std::max(rate, own_rate);
      window = std::max(window, own_window * segment);
      mtu = std::min(mtu, segment + 52);
      sent += own_sent;
      again += std::max(0, own_again - arrived);
    }
    Told told;
    told.findings = {{"connections", connections},
                     {"loaded_rtt", most * 1e-3},
                     {"delivery_rate", rate},
                     {"window", window},
                     {"mtu", mtu},
                     {"segments", sent},
                     {"retransmits", again}};
    told.link.rtt = Seconds(least * 1e-3);
    told.link.congestion_control = CongestionControl::kCubic;
    told.flags = {fmt::format("--ping \"{:.6g} ms\"", least)};
    TellLoss(again, sent, &told);
    ExpectTold(ReadSs(folder.Write("ss.txt", text)), told, text);
  }
}

// ---- Steps of a training.

// A line of a job that prints one every few steps of an epoch.
struct Line {
  int epoch = 0;
  int at = 0;     // steps of the epoch so far
  int from = 0;   // of the whole job, the first step that it stands for
  int steps = 0;  // that it stands for
  double time_s = 0;
};

// A job's lines, of which a warm-up leaves at least the last to count.
struct Job {
  int steps = 0;  // of an epoch
  std::vector<Line> lines;
  int warm_up = 0;
};

Job DrawJob(Drawn* drawn) {
  Job job;
  const int every = drawn->Whole(1, 7);
  job.steps = every * drawn->Whole(2, 9);
  const int epochs = drawn->Whole(1, 3);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    int last = 0;
    for (int at = every; at <= job.steps; at += every) {
      job.lines.push_back({epoch, at, epoch * job.steps + last, at - last, drawn->Number(0.1, 9)});
      last = at;
    }
  }
  job.warm_up = drawn->Whole(0, job.lines.back().from);
  return job;
}

TEST(LogNumbers, OfSingleStepsBehindAWarmUp) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    SCOPED_TRACE(seed);
    Drawn drawn(seed);
    const auto [steps, lines, warm_up] = DrawJob(&drawn);
    std::string text;
    std::vector<double> counted;
    for (const Line& line : lines) {
      text += fmt::format("Epoch: [{}][{:4}/{}]\tTime  {:.3f} ( 0.400)\tData  0.001 ( 0.300)\n",
                          line.epoch, line.at - 1, steps, line.time_s);
      if (line.at == steps) text += "Test: [  0/196]\tTime  3.000 ( 3.000)\n";
      // The line is of its last step alone.
      if (line.from + line.steps > warm_up) counted.push_back(line.time_s);
    }
    const StepLog log = ReadStepLog(folder.Write("train.log", text), {warm_up, nullptr});
    const LoggedSteps read = ChooseSteps(log, {}, "train.log");
    std::sort(counted.begin(), counted.end());
    EXPECT_EQ(read.step_s, counted) << text;
    EXPECT_NEAR(read.mean_s,
                std::accumulate(counted.begin(), counted.end(), 0.0) / std::ssize(counted), 1e-12);
    EXPECT_EQ(read.numbers, std::ssize(counted));
    EXPECT_EQ(read.warm_up, std::ssize(lines) - std::ssize(counted));
    EXPECT_EQ(log.validation, lines.back().epoch + 1);
  }
}

// A line of a bar: of the epoch, the steps and the time so far.
struct BarLine {
  int epoch = 0;
  int at = 0;
  int from = 0;  // of the whole job, where the epoch begins
  double elapsed_s = 0;
  double rated_s = 0;  // a step, by the rate that it shows
  int validations = 0;
  bool ends = false;
};

// Bars whose rate is that of all their steps or of the latest, on clocks of whole seconds; some
// with a validation within. What is told of steps is what they took, off by less than a second.
TEST(LogNumbers, OfMeansOverTheStepsBetweenTwoLines) {
  const TempFolder folder;
  int all_numbers = 0;
  int all_by_rate = 0;
  for (int seed = 0; seed < kLogs; ++seed) {
    SCOPED_TRACE(seed);
    Drawn drawn(seed);
    const Job job = DrawJob(&drawn);
    const int steps = job.steps;
    const int warm_up = job.warm_up;
    const bool of_the_whole = drawn.Coin();
    const double pace = drawn.Coin() ? 1 : 0.05;
    std::string text;
    std::map<int, BarLine> bars;                    // by line
    std::map<int, std::pair<double, bool>> epochs;  // how long each took, and whether all counts
    double elapsed_s = 0;
    int validations = 0;
    int line_number = 0;
    int short_bars = 0;
    for (const Line& line : job.lines) {
      if (line.at == line.steps) elapsed_s = 0;
      elapsed_s += pace * line.steps * line.time_s;
      const double time_s = of_the_whole ? elapsed_s / line.at : pace * line.time_s;
      const bool rate = time_s < 1;
      const std::string shown =
          fmt::format("{:.2f}{}", rate ? 1 / time_s : time_s, rate ? "it/s" : "s/it");
      const int seconds = static_cast<int>(elapsed_s);
      const std::string bar =
          fmt::format("Epoch {}: 50%|##| {}/{} [{:02}:{:02}<00:10, {}, v_num=0]\n", line.epoch,
                      line.at, steps, seconds / 60, seconds % 60, shown);
      const int times = drawn.Whole(1, 2);  // drawn anew
      for (int i = 0; i < times; ++i) {
        text += bar;
        bars[++line_number] = {line.epoch,
                               line.at,
                               line.epoch * steps,
                               elapsed_s,
                               rate ? 1 / std::stod(shown) : std::stod(shown),
                               validations,
                               line.at == steps};
      }
      auto& epoch = epochs[line.epoch];
      epoch.first = elapsed_s;
      if (line.at == line.steps) epoch.second = line.epoch * steps >= warm_up;
      const bool within = line.at < steps && drawn.Whole(0, 5) == 0;
      if (line.at == steps || within) {
        text += "Validation: 100%|##| 4/4 [00:01<00:00,  3.97it/s]\n";
        ++line_number;
        ++validations;
      }
      if (within) {
        elapsed_s += drawn.Number(1, 30);
        epoch.second = false;
      }
      if (line.at == steps && elapsed_s < 6) ++short_bars;
    }
    std::map<int, double> counted_s;  // by epoch
    int until = 0;                    // of the whole job, that were counted or left out
    int by_rate = 0;
    StepLogReader reader({warm_up, nullptr, [&](const LoggedNumber& number) {
                            const BarLine& bar = bars.at(number.line);
                            const auto count = static_cast<int>(number.steps);
                            const int begin = bar.from + bar.at - count;
                            ASSERT_GE(begin, until) << "counted twice, line " << number.line;
                            until = begin + count;
                            EXPECT_EQ(number.warm_up, begin < warm_up) << number.line;
                            if (number.warm_up) return;
                            ++all_numbers;
                            double began_s = 0;
                            bool disturbed = false;
                            for (const auto& [at, other] : bars) {
                              if (other.epoch != bar.epoch || at > number.line) continue;
                              if (other.at == bar.at - count) began_s = other.elapsed_s;
                              if (other.at >= bar.at - count) {
                                disturbed = disturbed || other.validations < bar.validations;
                              }
                            }
                            const double took_s = bar.elapsed_s - began_s;
                            const double told_s = count * number.time_s;
                            counted_s[bar.epoch] += took_s;
                            if (number.by_rate) {
                              EXPECT_DOUBLE_EQ(number.time_s, bar.rated_s) << number.line;
                              ++by_rate;
                              return;
                            }
                            // The clock is exact where the bar begins.
                            const double off = bar.at == count ? 0.5 : 1;
                            EXPECT_LE(off, (bar.ends ? 0.1 : 0.05) * told_s + 1e-9) << number.line;
                            EXPECT_NEAR(told_s, took_s, 1) << number.line;
                            EXPECT_FALSE(disturbed) << number.line;
                          }});
    ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "train.log"); });
    const StepLog log = reader.Finish();
    EXPECT_EQ(log.validation, validations);
    ASSERT_EQ(log.series.size(), 1U);
    EXPECT_EQ(log.series[0].begun_anew, 0);
    EXPECT_EQ(log.series[0].by_rate, by_rate) << text;
    EXPECT_LE(by_rate, log.series[0].numbers == 1 ? 1 : short_bars) << text;
    all_by_rate += by_rate;
    for (const auto& [epoch, what] : epochs) {
      if (what.second) {
        EXPECT_GT(counted_s[epoch], what.first - 11) << epoch << "\n" << text;
      }
    }
    // Read as a whole it is the same.
    const LoggedSteps read = ChooseSteps(
        ReadStepLog(folder.Write("train.log", text), {warm_up, nullptr}), {}, "train.log");
    EXPECT_DOUBLE_EQ(read.mean_s, log.series[0].mean_s());
    EXPECT_EQ(read.by_rate, by_rate);
  }
  EXPECT_GT(all_numbers, kLogs);
  EXPECT_GT(all_by_rate, 0);
}

// Of each epoch the last mean so far; an epoch that begins within the warm-up is left out.
TEST(LogNumbers, OfEpochsThatTellTheirMeanSoFar) {
  const TempFolder folder;
  for (int seed = 0; seed < kLogs; ++seed) {
    SCOPED_TRACE(seed);
    Drawn drawn(seed);
    const int epochs = drawn.Whole(2, 5);
    const int warm_up = drawn.Whole(0, 1);
    std::string text;
    double sum = 0;
    int counted = 0;
    int numbers = 0;
    int with_others = 0;
    int begin = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const int all = drawn.Whole(3, 200);
      // The last line of an epoch may be missing.
      const int steps = epoch + 1 < epochs && drawn.Coin() ? all - 1 : all;
      const int mean = drawn.Whole(10, 900);
      const bool with = drawn.Coin();
      text += fmt::format("Epoch {}/{}\n", epoch + 1, epochs);
      text += fmt::format("1/{} - 1:02 {}ms/step - loss: 2.3\n", all, drawn.Whole(1000, 2000));
      text += fmt::format("{}/{} - 9s {}ms/step - loss: 1.1{}\n", steps, all, mean,
                          with ? " - val_loss: 1.0" : "");
      if (begin >= warm_up) {
        sum += steps * mean * 1e-3;
        counted += steps;
        ++numbers;
        with_others += with ? 1 : 0;
      }
      begin += steps;
    }
    text += "10/10 - 0s 30ms/step - loss: 0.9\n";  // evaluate()
    const StepLog log = ReadStepLog(folder.Write("train.log", text), {warm_up, nullptr});
    const LoggedSteps read = ChooseSteps(log, {}, "train.log");
    EXPECT_NEAR(read.mean_s, sum / counted, 1e-12 * read.mean_s) << text;
    EXPECT_DOUBLE_EQ(read.steps, counted) << text;
    EXPECT_EQ(read.numbers, numbers) << text;
    EXPECT_EQ(read.with_others, with_others) << text;
    EXPECT_EQ(log.validation, 1) << text;
  }
}

}  // namespace
}  // namespace stepcast
