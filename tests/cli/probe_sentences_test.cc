// What stepcast probe says of a measured network, cell by cell and sentence by sentence, and to
// whom it tells how to join.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/io/machines.h"
#include "data/io/network_profile_file.h"
#include "microbench/network/schedule.h"
#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/cli/worker.h"

namespace stepcast {
namespace {

using program::FreeMaster;
using program::Json;
using program::kToken;
using program::RowOf;
using program::Unwrapped;
using program::Words;
using program::operator+;
using Kind = NetworkKind;
using Change = std::function<void(NetworkRow* row)>;

TcpFacts Lost(std::int64_t segments) {
  TcpFacts tcp;
  tcp.segments = 100'000;
  tcp.retransmitted = segments;
  tcp.rtt_s = tcp.min_rtt_s = 1e-3;
  tcp.segment_bytes = 1448;
  tcp.congestion_control = "cubic";
  return tcp;
}

// Hosts a, b, c and d, whose paths carry 100 MB/s of payload and lose nothing, 1 ms apart.
NetworkProfile EvenNetwork() {
  NetworkProfile profile;
  profile.version = "test";
  profile.started = "2026-01-31T12:00:00Z";
  for (int i = 0; i < 4; ++i) {
    profile.hosts.push_back({std::string(1, static_cast<char>('a' + i)), "10.0.0.1", {}});
    profile.hosts.back().facts = {{"interface", "eth" + std::to_string(i)}, {"mtu", "1500"}};
  }
  const std::pair<Kind, double> rates[] = {{Kind::kSeveralFlows, 100e6}, {Kind::kOneFlow, 95e6},
                                           {Kind::kBothWays, 60e6},      {Kind::kPaced, 80e6},
                                           {Kind::kTwoPeers, 42e6},      {Kind::kIncast, 30e6}};
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      NetworkRow row;
      row.from = from;
      row.to = to;
      row.rtt_median_s = 1e-3;
      if (from < to) profile.rows.push_back(row);
      row.rtt_median_s.reset();
      for (const auto& [kind, rate] : rates) {
        const int on = (to - from + 4) % 4;
        if (kind == Kind::kTwoPeers && on == 3) continue;
        row.kind = kind;
        row.bytes_per_s = rate;
        row.tcp.reset();
        if (kind == Kind::kPaced) row.tcp = Lost(0);
        profile.rows.push_back(row);
      }
    }
  }
  profile.planned = static_cast<int>(profile.rows.size());
  return profile;
}

class ProbeSays : public testing::Test {
 protected:
  ProcessResult Probe(const Words& words, const Words& variables = {}) const {
    return RunProcess(Words{STEPCAST_PROGRAM, "probe"} + words,
                      {.folder = folder_.Path("."), .variables = variables});
  }
  ProcessResult Show(const NetworkProfile& profile, const Words& more = {}) const {
    folder_.Write("net.json", FormatNetworkProfile(profile));
    return Probe(Words{"show", "net.json"} + more);
  }

  TempFolder folder_;
};

bool Fills(const NetworkRow& row) {
  return row.kind == Kind::kSeveralFlows || row.kind == Kind::kOneFlow;
}
bool Between(const NetworkRow& row, int from, int to) { return row.from == from && row.to == to; }
bool IsOf(const NetworkRow& row, int host) { return row.from == host || row.to == host; }

TEST_F(ProbeSays, WhatIsSlowerThanItsLike) {
  const std::string sound = "No link, pair or flow is below four fifths of its like.";
  const auto carries = [](double bytes_per_s) {
    return [bytes_per_s](NetworkRow* row) { row->bytes_per_s = bytes_per_s; };
  };
  const struct {
    std::vector<std::pair<const char*, const char*>> findings;  // kind, sentence
    std::function<bool(const NetworkRow& row)> of;
    Change change = {};
    std::pair<const char*, const char*> fact = {"mtu", "1500"};  // of host a
  } cases[] = {
      {{}, [](const NetworkRow&) { return false; }},
      {{{"slow_host", "d is slow: its link carries 400 Mbit/s, those of the others 800 Mbit/s"}},
       [](const NetworkRow& row) { return Fills(row) && IsOf(row, 3); },
       carries(50e6)},
      {{{"slow_host", "d is slow: its link carries 480 Mbit/s, those of the others 800 Mbit/s"},
        {"asymmetric_host", "d sends at 480 Mbit/s and receives at 800 Mbit/s"}},
       [](const NetworkRow& row) { return Fills(row) && row.from == 3; },
       carries(60e6)},
      {{{"distant_host", "d is far: 5 ms there and back, between the others 1 ms"}},
       [](const NetworkRow& row) { return row.kind == Kind::kLatency && IsOf(row, 3); },
       [](NetworkRow* row) { row->rtt_median_s = 5e-3; }},
      {{{"lossy_host", "paths of d lose 1.5 % of their packets, those of the others 0.1 %"}},
       [](const NetworkRow& row) { return row.kind == Kind::kPaced; },
       [](NetworkRow* row) { row->tcp = Lost(IsOf(*row, 3) ? 1500 : 100); }},
      {{{"slow_pair",
         "between a and b is a slow link: it carries 400 Mbit/s, though both exchange 800 Mbit/s "
         "with others"}},
       [](const NetworkRow& row) { return Fills(row) && row.from < 2 && row.to < 2; },
       carries(50e6)},
      {{{"asymmetric_pair", "a to b is slow: 400 Mbit/s, and 800 Mbit/s back"}},
       [](const NetworkRow& row) { return Fills(row) && Between(row, 0, 1); },
       carries(50e6)},
      {{{"asymmetric_pair", "b to a is slow: 400 Mbit/s, and 800 Mbit/s back"}},
       [](const NetworkRow& row) { return Fills(row) && Between(row, 1, 0); },
       carries(50e6)},
      {{{"capped_flow",
         "one flow from a to b is capped: it carries 320 Mbit/s, several 800 Mbit/s"}},
       [](const NetworkRow& row) { return row.kind == Kind::kOneFlow && Between(row, 0, 1); },
       carries(40e6)},
      {{{"lossy_host", "paths of a lose 0.0167 % of their packets, those of the others 0 %"},
        {"lossy_host", "paths of b lose 0.0167 % of their packets, those of the others 0 %"},
        {"loss_limited",
         "loss holds back what a sends to b: 800 Mbit/s, and no queue filled. The line may carry "
         "more; more --flows tell"}},
       [](const NetworkRow& row) {
         return (row.kind == Kind::kPaced || row.kind == Kind::kSeveralFlows) && Between(row, 0, 1);
       },
       [](NetworkRow* row) { row->tcp = Lost(100); }},
      {{{"below_port", "a has a port of 10 Gbit/s and carries 800 Mbit/s"}},
       [](const NetworkRow&) { return false; },
       {},
       {"speed", "10000 Mbit/s"}},
      {{{"incast_collapse",
         "while all send to a it receives 480 Mbit/s, from one peer 800 Mbit/s"}},
       [](const NetworkRow& row) { return row.kind == Kind::kIncast && row.to == 0; },
       carries(20e6)},
      {{{"different_mtu", "interfaces have different MTUs: a 9000, b 1500, c 1500, d 1500"}},
       [](const NetworkRow&) { return false; },
       {},
       {"mtu", "9000"}},
  };
  for (const auto& c : cases) {
    NetworkProfile profile = EvenNetwork();
    profile.hosts.front().facts[c.fact.first] = c.fact.second;
    for (NetworkRow& row : profile.rows) {
      if (c.of(row)) c.change(&row);
    }
    const Json findings = Json::parse(Show(profile, {"--json"}).out).at("findings");
    const ProcessResult shown = Show(profile);
    EXPECT_EQ(shown.exit_code, 0) << "whatever the network is";
    const std::string text = Unwrapped(shown.out);
    ASSERT_EQ(findings.size(), c.findings.size()) << findings;
    int said = 0;
    for (std::size_t at = 0; (at = text.find(" ! ", at)) != std::string::npos; ++at) ++said;
    EXPECT_EQ(said, static_cast<int>(c.findings.size())) << text;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      EXPECT_EQ(findings.at(i).at("kind"), c.findings[i].first);
      EXPECT_EQ(findings.at(i).at("sentence"), c.findings[i].second);
      EXPECT_NE(text.find(std::string(" ! ") + c.findings[i].second + " "), std::string::npos)
          << text;
    }
    EXPECT_EQ(text.find(sound) != std::string::npos, c.findings.empty()) << text;
  }
}

TEST_F(ProbeSays, EachCellOfALink) {
  NetworkProfile profile = EvenNetwork();
  for (NetworkRow& row : profile.rows) {
    if (row.kind == Kind::kSeveralFlows && row.to == 0) row.bytes_per_s = 96e6;
    if (row.kind == Kind::kLatency && row.from == 0) row.rtt_median_s = 1.5e-3;
    // Of the twelve paths those of a lose 4 packets, and that from b to c 300.
    if (row.kind == Kind::kPaced && Between(row, 0, 3)) row.tcp = Lost(4);
    if (row.kind == Kind::kPaced && Between(row, 1, 2)) row.tcp = Lost(300);
  }
  const std::string text = Show(profile).out;
  EXPECT_EQ(RowOf(text, "host"), (Words{"host", "interface", "sends", "receives", "one flow",
                                        "both ways", "to two", "from all", "round trip", "loss"}));
  EXPECT_EQ(RowOf(text, "a"),
            (Words{"a", "eth0", "800 Mbit/s", "768 Mbit/s", "760 Mbit/s", "960 Mbit/s",
                   "672 Mbit/s", "720 Mbit/s", "1.5 ms", "4 of 600,000"}));
  EXPECT_EQ(RowOf(text, "b"), (Words{"b", "eth1", "800 Mbit/s", "800 Mbit/s", "760 Mbit/s",
                                     "960 Mbit/s", "672 Mbit/s", "720 Mbit/s", "1 ms", "0.05 %"}));
  EXPECT_NE(text.find("Payload of TCP. sends, receives: with the best peer; both ways: the sum"),
            std::string::npos);
  // What was not measured is a dash.
  std::erase_if(profile.rows, [](const NetworkRow& row) {
    return row.kind == Kind::kPaced || (row.kind == Kind::kBothWays && row.from == 0) ||
           (row.kind == Kind::kIncast && Between(row, 1, 0)) ||
           (row.kind == Kind::kTwoPeers && Between(row, 0, 1));
  });
  EXPECT_EQ(RowOf(Show(profile).out, "a"), (Words{"a", "eth0", "800 Mbit/s", "768 Mbit/s",
                                                  "760 Mbit/s", "-", "-", "-", "1.5 ms", "-"}));
}

// A step of shade for each fifth below the best, which for round trips is the least.
TEST_F(ProbeSays, PairsAreShadedByFifths) {
  NetworkProfile profile = EvenNetwork();
  for (NetworkRow& row : profile.rows) {
    if (Fills(row) && Between(row, 0, 1)) row.bytes_per_s = 81e6;
    if (Fills(row) && Between(row, 0, 2)) row.bytes_per_s = 50e6;
    if (Fills(row) && Between(row, 0, 3)) row.bytes_per_s = 25e6;
    if (Fills(row) && Between(row, 1, 0)) row.bytes_per_s = 10e6;
    if (Fills(row) && Between(row, 1, 2)) row.bytes_per_s = 79e6;
    if (Fills(row) && Between(row, 2, 0)) {
      row.bytes_per_s.reset();
      row.problem = "timed out";
    }
    if (row.kind == Kind::kLatency && Between(row, 0, 2)) row.rtt_median_s = 2e-3;
    if (row.kind == Kind::kLatency && Between(row, 0, 3)) row.rtt_median_s = 4e-3;
  }
  const std::string text = Show(profile, {"--pairs"}).out;
  const std::size_t rates = text.find("  from \\ to");
  const std::size_t trips = text.find("  round trip  ", rates);
  ASSERT_NE(trips, std::string::npos) << text;
  const std::string of_rates = text.substr(rates, trips - rates);
  EXPECT_EQ(RowOf(of_rates, "from \\ to"), (Words{"from \\ to", "a", "b", "c", "d"}));
  EXPECT_EQ(RowOf(of_rates, "a"), (Words{"a", "648 Mbit/s", "400 Mbit/s :", "200 Mbit/s +"}));
  EXPECT_EQ(RowOf(of_rates, "b"), (Words{"b", "80 Mbit/s #", "632 Mbit/s .", "800 Mbit/s"}));
  EXPECT_EQ(RowOf(of_rates, "c"), (Words{"c", "?", "800 Mbit/s", "800 Mbit/s"}));
  EXPECT_EQ(RowOf(text.substr(trips), "a"), (Words{"a", "1 ms", "2 ms :", "4 ms +"}));
  EXPECT_EQ(RowOf(text.substr(trips), "d"), (Words{"d", "4 ms +", "1 ms", "1 ms"}));
  EXPECT_EQ(Show(profile).out.find("from \\ to"), std::string::npos) << "only when asked for";
}

TEST_F(ProbeSays, WhatWasNotMeasured) {
  NetworkProfile profile = EvenNetwork();
  for (NetworkRow& row : profile.rows) {
    if (row.from != 0 || (row.kind != Kind::kSeveralFlows && row.kind != Kind::kBothWays)) continue;
    row.bytes_per_s.reset();
    row.problem = "timed out";
  }
  const int whole = profile.planned;
  const ProcessResult some = Show(profile);
  EXPECT_EQ(some.exit_code, 1);
  const std::string of_some = Unwrapped(some.out);
  // Five of the six, in order.
  for (const char* row : {"both_ways, a to b", "both_ways, a to c", "both_ways, a to d",
                          "several_flows, a to b", "several_flows, a to c"}) {
    EXPECT_NE(of_some.find(std::string(" ! ") + row + ": timed out "), std::string::npos)
        << of_some;
  }
  EXPECT_EQ(of_some.find("several_flows, a to d"), std::string::npos) << of_some;
  const auto are_there = [&](int planned) {
    return fmt::format(" ! {} of {} measurements are there ", whole - 6, planned);
  };
  EXPECT_NE(of_some.find(are_there(whole)), std::string::npos) << of_some;
  EXPECT_EQ(of_some.find("ended early"), std::string::npos);
  EXPECT_EQ(of_some.find("below four fifths"), std::string::npos) << "nobody knows";
  profile.problem = "no more time";
  profile.planned += 3;
  const std::string early = Unwrapped(Show(profile).out);
  EXPECT_NE(early.find(" ! ended early: no more time "), std::string::npos) << early;
  EXPECT_NE(early.find(" ! several_flows, a to c: timed out "), std::string::npos) << early;
  EXPECT_NE(early.find(are_there(whole + 3)), std::string::npos) << early;
  const std::string sound = Unwrapped(Show(EvenNetwork()).out);
  EXPECT_EQ(sound.find("measurements are there"), std::string::npos) << sound;
}

// Where the links came from stands in the file, and who was calibrated with others is told.
TEST_F(ProbeSays, WhereTheLinksOfAClusterAreFrom) {
  const std::string bare = "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n";
  const std::string calibration =
      "calibration:\n  residual_log_sd: 0.05\n  parameters:\n"
      "    - {scope: cluster, name: hop_spread, value: 0.1, log_sd: 0.25, prior_value: 0.1, "
      "prior_log_sd: 0.7, decided_by: data}\n";
  for (const bool calibrated : {false, true}) {
    folder_.Write("lab.yaml", bare + (calibrated ? calibration : ""));
    const ProcessResult result =
        Show(EvenNetwork(), {"--cluster", "lab.yaml", "--cluster-output", "out.yaml"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("links written to out.yaml\n"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("lab.yaml was calibrated with other links: out.yaml is without its "
                              "calibration\n") != std::string::npos,
              calibrated)
        << result.err;
    const Cluster cluster = ReadCluster(folder_.Path("out.yaml"));
    EXPECT_EQ(cluster.nodes, 4) << "as many as were measured";
    const std::string source = "stepcast probe network, 2026-01-31T12:00:00Z, 4 hosts";
    EXPECT_EQ(cluster.sources.at("link.bandwidth"), source + ": 800 Mbit/s of payload");
    EXPECT_EQ(cluster.sources.at("link.rtt"), source);
    EXPECT_EQ(cluster.sources.count("link.loss"), 0U);
    EXPECT_EQ(cluster.link.congestion_control, std::nullopt) << "no host has told";
  }
  const ProcessResult alone = Show(EvenNetwork(), {"--cluster-output", "out.yaml"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("--cluster: is required"), std::string::npos) << alone.err;
}

// Each kind of probe has its own options, and refuses those of the others by name.
TEST_F(ProbeSays, WhichOptionsGoWithWhat) {
  folder_.Write("wanted.csv",
                "workload,device,placement,servers,strategy,local_batch,step_time_s\n");
  const struct {
    Words kind;
    std::vector<Words> refused;
  } cases[] = {
      {{"network"},
       {{"--steps", "9"},
        {"--warm-up", "9"},
        {"--pattern", "x"},
        {"--shape", "loss=0"},
        {"--sizes", "4 B"},
        {"--library", "mpi"},
        {"--device", "t4"},
        {"--precision", "fp16"}}},
      {{"show", "net.json"},
       {{"--hosts", "a,b"},
        {"--time-limit", "1 s"},
        {"--output", "x"},
        {"--flows", "2"},
        {"--steps", "9"}}},
      {{"script", "wanted.csv"},
       {{"--hosts", "a,b"},
        {"--pairs"},
        {"--cluster", "x"},
        {"--seed", "1"},
        {"--time", "1 s"},
        {"--replicates", "2"}}},
      {{"steps", "wanted.csv"},
       {{"--flows", "3"},
        {"--time", "1 s"},
        {"--pairs"},
        {"--cluster-output", "x"},
        {"--sizes", "4 B"},
        {"--library", "mpi"},
        {"--pattern", "x"}}},
      {{"collectives"},
       {{"--flows", "3"},
        {"--time", "1 s"},
        {"--pairs"},
        {"--cluster-output", "x"},
        {"--pattern", "x"}}},
  };
  for (const auto& c : cases) {
    for (const Words& option : c.refused) {
      const ProcessResult result = Probe(c.kind + option, {kToken});
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.err, "stepcast: " + option.front() + ": has no meaning for " +
                                c.kind.front() + "; allowed: without it\n");
    }
  }
}

// ---- Who meets where.

// The first host of a list as Slurm writes it, and the rank that each launcher has set. No host has
// an empty part in its name, whoever is asked.
TEST_F(ProbeSays, WhomItLooksForByTheEnvironment) {
  const struct {
    Words variables;
    Words words;
    const char* host;
  } cases[] = {
      {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n..x[01-04,7],m3"}, {}, "n..x01"},
      {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n..x7,m[3-4]"}, {}, "n..x7"},
      {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n..x[8,11]"}, {}, "n..x8"},
      {{"PMI_RANK=1", "PMI_SIZE=2"}, {"--master", "n..x:77"}, "n..x"},
      {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=n..x", "PMI_RANK=7", "PMI_SIZE=2"}, {}, "n..x"},
      {{}, {"--hosts", "me@n..x,b"}, "n..x"},
  };
  for (const auto& c : cases) {
    const ProcessResult result =
        Probe(Words{"network", "--wait", "0.3s"} + c.words, c.variables + Words{kToken});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err.rfind("stepcast: " + std::string(c.host) + " has no address", 0), 0U)
        << result.err;
  }
}

// A host that is told how to join gets the options that all must have alike, and no others.
TEST_F(ProbeSays, HowTheOthersJoin) {
  folder_.Write("token", "0123456789abcdef\n");
  const ProcessResult result =
      Probe({"network", "--hosts", "127.0.0.1,b,c", "--token-file", "token", "--time", "2s",
             "--flows", "3", "--wait", "0.3s", "--time-limit", "50s", "--bind", "lo", "--output",
             "mine.json", "--name", "me"});
  EXPECT_EQ(result.exit_code, 1);
  const std::string master = "--master 127.0.0.1:29411";  // without a port of its own
  for (const char* host : {"b", "c"}) {
    const std::string line = fmt::format(
        " probe network --rank {} --of 3 {} --bind lo --wait 0.3s --time 2s --flows 3 "
        "--time-limit 50s\n",
        *host - 'a', master);
    const std::size_t at = result.err.find(fmt::format("on {}: ", host));
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find(line, at), result.err.find(" probe network", at)) << result.err;
  }
  network::ProbeSettings settings;
  settings.seconds = 2;
  settings.flows = 3;
  const auto steps = network::MakeSchedule(3);
  EXPECT_NE(result.err.find(fmt::format(
                "3 hosts, {} measurements: about {}\n", steps.size(),
                FormatDuration(Seconds(std::ceil(network::ExpectedSeconds(steps, 0, settings)))))),
            std::string::npos)
      << result.err;
}

TEST_F(ProbeSays, WhatIsNoToken) {
  const auto refused = [&](const std::string& token) {
    folder_.Write("token", token);
    const ProcessResult result = Probe({"network", "--hosts", "a,b", "--token-file", "token"});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  const std::string allowed =
      "is no token that all hosts share; allowed: a word of 8 to 256 characters";
  EXPECT_NE(refused("1234567\n").find("token: '7 characters' " + allowed), std::string::npos);
  EXPECT_NE(refused(std::string(257, 'x')).find("token: '257 characters' " + allowed),
            std::string::npos);
  EXPECT_NE(refused("two of them here").find("token: '16 characters' " + allowed),
            std::string::npos);
  EXPECT_NE(refused("").find("token: " + allowed), std::string::npos);
}

// The settings of a probe stand in its profile, which is named at the end.
TEST_F(ProbeSays, HowItMeasuredAndWhereItIsKept) {
  const std::string master = FreeMaster();
  const Words host = {"network", "--time", "0.1s", "--flows",  "2",    "--wait",
                      "20s",     "--of",   "2",    "--master", master, "--rank"};
  ProcessResult other;
  std::thread beside([&] { other = Probe(host + Words{"1"}, {kToken}); });
  const ProcessResult first = Probe(host + Words{"0", "--output", "kept.json"}, {kToken});
  beside.join();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(other.out, "");
  EXPECT_EQ(first.out.rfind("Network of 2 hosts\n", 0), 0U) << first.out;
  EXPECT_TRUE(first.out.ends_with("- profile: kept.json\n")) << first.out;
  const NetworkProfile profile = ReadNetworkProfile(folder_.Path("kept.json"));
  EXPECT_EQ(profile.settings.at("time"), "0.1 s");
  EXPECT_EQ(profile.settings.at("flows"), "2");
  EXPECT_EQ(profile.settings.at("transport"), "tcp");
  for (const NetworkRow& row : profile.rows) {
    if (row.kind == Kind::kSeveralFlows) {
      EXPECT_EQ(row.flows, 2);
    }
  }
}

}  // namespace
}  // namespace stepcast
