// stepcast probe, on the loopback: who is who, what is written, and what is refused.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "data/io/machines.h"
#include "data/io/network_profile_file.h"
#include "microbench/network/findings.h"
#include "microbench/network/socket.h"
#include "tests/cli/program.h"
#include "tests/cli/worker.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectText;
using program::FreeMaster;
using program::Json;
using program::kToken;
using program::Words;
using program::operator+;

class ProbeCli : public testing::Test {
 protected:
  ProcessResult Run(const Words& words, const Words& variables = {kToken}) const {
    return RunProcess(Words{STEPCAST_PROGRAM, "probe"} + words,
                      {.folder = folder_.Path("."), .variables = variables});
  }
  std::string ContentOf(const std::string& file) const { return FileContent(folder_.Path(file)); }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_.Path(file)) << text;
  }

  TempFolder folder_;
};

const Words kShort = {"network", "--time", "0.1s", "--flows", "2", "--wait", "20s"};

TEST_F(ProbeCli, RanksOfTheEnvironmentMeasureAndWriteAProfile) {
  const std::string master = FreeMaster();
  const std::size_t colon = master.rfind(':');
  const std::vector<Words> launchers = {
      {"RANK=", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + master.substr(colon + 1)},
      // torchrun listens at the port that it tells, and leaves the next one to its workers.
      {"OMPI_COMM_WORLD_RANK=", "OMPI_COMM_WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1",
       "MASTER_PORT=" + std::to_string(std::stoi(master.substr(colon + 1)) - 1),
       "TORCHELASTIC_USE_AGENT_STORE=True"},
      {"SLURM_PROCID=", "SLURM_NTASKS=3", "SLURM_STEP_NODELIST=127.0.0.1,n[2-3]"}};
  std::vector<ProcessResult> results(3);
  std::vector<std::thread> hosts;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    hosts.emplace_back([&, rank] {
      Words variables = launchers[rank];
      variables.front() += std::to_string(rank);
      variables.push_back(kToken);
      Words words = kShort;
      // Slurm says no port: the last of --master is for that.
      if (rank == 2) words = words + Words{"--master", master, "--name", "third"};
      if (rank == 0) words = words + Words{"--json", "--name", "first"};
      results[rank] = Run(words, variables);
    });
  }
  for (std::thread& host : hosts) host.join();
  for (const ProcessResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(results[1].out, "");
  const Json json = Json::parse(results[0].out);
  EXPECT_TRUE(json["complete"].get<bool>());
  EXPECT_EQ(json["measured"], json["planned"]);
  EXPECT_EQ(json["hosts"][0]["name"], "first");
  EXPECT_EQ(json["hosts"][2]["name"], "third");
  EXPECT_GT(json["hosts"][0]["sends_bytes_per_s"].get<double>(), 0);

  const ProcessResult shown = Run({"show", "network.json", "--pairs"}, {});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* part : {"Network of 3 hosts", "from \\ to", "round trip", "third"}) {
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << "\n" << shown.out;
  }
}

// A program of that name that runs its command here, and keeps what it was called with.
TEST_F(ProbeCli, StartsTheOthersBySshWithoutShowingTheToken) {
  Write("ssh",
        "#!/bin/sh\necho \"$@\" >> calls\n"
        "while [ \"$1\" != -- ]; do shift; done\nexec sh -c \"$3\"\n");
  ASSERT_EQ(chmod(folder_.Path("ssh").c_str(), 0755), 0);
  const std::string path = "PATH=" + folder_.Path(".") + ":/usr/bin:/bin";
  Write("lab.yaml",
        "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n"
        "link: {bandwidth: 1 Gbit/s, loss: 0.001}\n");
  const ProcessResult result =
      RunProcess(Words{"/usr/bin/env", path, STEPCAST_PROGRAM, "probe"} + kShort +
                     Words{"--hosts", "a,b", "--ssh", "--master", FreeMaster(), "--cluster",
                           "lab.yaml", "--cluster-output", "out.yaml"},
                 {.folder = folder_.Path(".")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string calls = ContentOf("calls");
  EXPECT_NE(calls.find("-- b IFS= read -r STEPCAST_PROBE_TOKEN"), std::string::npos) << calls;
  EXPECT_EQ(calls.find("-- a "), std::string::npos) << calls;
  // What a forecast takes is what was measured: it takes the share that headers leave.
  const Cluster cluster = ReadCluster(folder_.Path("out.yaml"));
  const Json json = Json::parse(Run({"show", "network.json", "--json"}, {}).out);
  const double line = json["bandwidth_bytes_per_s"].get<double>() * 1538 / 1448;
  EXPECT_NEAR(cluster.link.bandwidth->si() / line, 1, 1e-3);
  EXPECT_NEAR(cluster.link.rtt->si() / json["rtt_s"].get<double>(), 1, 1e-3);
  EXPECT_EQ(cluster.link.loss, 0.001);  // none was seen, which says nothing of so little
  EXPECT_EQ(cluster.link.transport, Transport::kTcp);
  ASSERT_EQ(cluster.hosts.size(), 2U);
  EXPECT_EQ(cluster.hosts[1].name, "b");
  ExpectText({"predict", "--cluster", folder_.Path("out.yaml"), "--workload", "resnet50",
              "--local-batch", "64", "--workers", "2"},
             {"resnet50 on lab"});
}

TEST_F(ProbeCli, AHostThatDoesNotComeIsAnAnswer) {
  const ProcessResult result =
      Run({"network", "--hosts", "a,b,c", "--master", FreeMaster(), "--wait", "0.3s"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("2 of 3 hosts did not come: b, c"), std::string::npos) << result.err;
  // The others are told how, without the token.
  EXPECT_NE(result.err.find("on c: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--rank 2 --of 3 --master 127.0.0.1:"), std::string::npos);
  EXPECT_EQ(result.err.find("0123456789abcdef"), std::string::npos) << result.err;
  EXPECT_NE(access(folder_.Path("network.json").c_str(), F_OK), 0);
}

// An address with colons of its own is told in brackets, as --master reads it.
TEST_F(ProbeCli, OthersJoinAtAnAddressOfVersionSix) {
  try {
    network::Socket::Listen(network::LocalAddress("::1"));
  } catch (const std::exception& e) {
    GTEST_SKIP() << "no IPv6 here: " << e.what();
  }
  const std::string any = FreeMaster();
  const std::string master = "[::1]" + any.substr(any.rfind(':'));
  const ProcessResult result =
      Run({"network", "--hosts", "a,b", "--master", master, "--wait", "0.3s"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--rank 1 --of 2 --master '" + master + "'"), std::string::npos)
      << result.err;
}

// Where a launcher gives each the same words and its rank.
TEST_F(ProbeCli, HostsThatAllAreGivenAreNotToldHowToJoin) {
  const Words both = kShort + Words{"--hosts", "a,b", "--master", FreeMaster(), "--rank"};
  ProcessResult other;
  std::thread beside([&] { other = Run(both + Words{"1"}); });
  const ProcessResult first = Run(both + Words{"0", "--json"});
  beside.join();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(first.err.find("on b: "), std::string::npos) << first.err;
  EXPECT_EQ(Json::parse(first.out)["hosts"][1]["name"], "b");
}

// An earlier profile is worth more than a probe that never began.
TEST_F(ProbeCli, WhatCannotBeginLeavesTheFilesThatAreThere) {
  Write("network.json", "earlier");
  Write("lab.yaml", "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n");
  Write("out.yaml", "earlier");
  const network::Socket busy = network::Socket::Listen(network::LocalAddress("127.0.0.1"));
  const ProcessResult result = Run({"network", "--hosts", "a,b", "--master", busy.local().text(),
                                    "--cluster", "lab.yaml", "--cluster-output", "out.yaml"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("choose another port"), std::string::npos) << result.err;
  const ProcessResult late =
      Run({"network", "--hosts", "a,b", "--master", FreeMaster(), "--wait", "0.3s"});
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_EQ(ContentOf("network.json"), "earlier");
  EXPECT_EQ(ContentOf("out.yaml"), "earlier");
  EXPECT_NE(access(folder_.Path("network.json.partial").c_str(), F_OK), 0);
}

// Nobody waits for those whose ssh has failed.
TEST_F(ProbeCli, AnSshThatEndsIsSaidAtOnce) {
  Write("ssh", "#!/bin/sh\necho no route >&2\nexit 255\n");
  ASSERT_EQ(chmod(folder_.Path("ssh").c_str(), 0755), 0);
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = RunProcess(
      {"/usr/bin/env", "PATH=" + folder_.Path(".") + ":/usr/bin:/bin", STEPCAST_PROGRAM, "probe",
       "network", "--hosts", "a,b,c", "--ssh", "--master", FreeMaster(), "--wait", "50s"},
      {.folder = folder_.Path(".")});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("2 of 3 hosts did not come: b, c: ssh to "), std::string::npos)
      << result.err;
}

TEST_F(ProbeCli, WhatIsWrongIsSaid) {
  const struct {
    Words words;
    Words variables;
    Words fragments;
  } cases[] = {
      {{}, {}, {"WHAT: is required; allowed: network, show"}},
      {{"netwrok"}, {}, {"did you mean network?"}},
      {{"network"}, {kToken}, {"--hosts: is required", "torchrun, mpirun or srun"}},
      {{"network", "--hosts", "a"}, {kToken}, {"--hosts: 'a' is no list of hosts"}},
      {{"network", "--hosts", "a,a"}, {kToken}, {"'a' is given twice"}},
      {{"network", "--hosts", "a,-oProxyCommand=x"}, {kToken}, {"is no name of a host"}},
      {{"network", "--hosts", "a,b"}, {}, {"STEPCAST_PROBE_TOKEN", "openssl rand -hex 16"}},
      {{"network", "--hosts", "a,b"}, {"STEPCAST_PROBE_TOKEN=short"}, {"'5 characters'"}},
      {{"network", "--hosts", "a,b", "--rank", "2"}, {kToken}, {"--rank: '2'", "0 to 1"}},
      {{"network", "--hosts", "a,b", "--of", "2"}, {kToken}, {"--of: has no meaning"}},
      {{"network", "--hosts", "a,b", "--ssh", "--rank", "0"}, {}, {"--rank: has no meaning with"}},
      {{"network", "--rank", "2", "--of", "2"}, {kToken}, {"--rank: '2'", "0 to 1"}},
      {{"network", "--rank", "1", "--of", "2"}, {kToken}, {"--master: is required"}},
      {{"network"}, {kToken, "RANK=x", "WORLD_SIZE=2"}, {"RANK: 'x'"}},
      {{"network"}, {kToken, "RANK=0", "WORLD_SIZE=1"}, {"WORLD_SIZE: '1'", "2 to 256"}},
      {{"network", "--hosts", "a,b", "--time", "1"}, {kToken}, {"--time: '1' has no unit"}},
      {{"network", "--hosts", "a,b", "--flows", "1"}, {kToken}, {"--flows: '1'", "2 to 64"}},
      {{"network", "--hosts", "a,b", "--bind", "no0"}, {kToken}, {"--bind", "no0 is no interface"}},
      {{"network", "--hosts", "a,b", "--cluster", "x.yaml"}, {kToken}, {"--cluster-output"}},
      {{"network", "--hosts", "a,b", "--master", "127.0.0.1", "--output", "no/where.json"},
       {kToken},
       {"no/where.json: cannot be written"}},
      {{"network", "--hosts", "a,b", "--master", "127.0.0.1", "--cluster", "gce-t4",
        "--cluster-output", "no/where.yaml"},
       {kToken},
       {"no/where.yaml: cannot be written"}},
      {{"network", "--hosts", "a,b", "--master", "127.0.0.1:0"}, {kToken}, {"--master: '0'"}},
      {{"network", "--rank", "1", "--of", "2", "--master", "[::1]x3"},
       {kToken},
       {"--master: '[::1]x3' is no host with a port"}},
      {{"network", "--rank", "1", "--of", "2", "--master", ":3"},
       {kToken},
       {"--master: ':3' is no host with a port"}},
      {{"network"},
       {kToken, "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=[]"},
       {"SLURM_STEP_NODELIST: '[]' names no host"}},
      {{"network", "a"}, {kToken}, {"FILE: 'a' belongs to nothing"}},
      {{"steps", "a", "b", "c"}, {kToken}, {"FILE: 'b' belongs to nothing"}},
      {{"show", "a", "b"}, {}, {"FILE: 'b' belongs to nothing"}},
      {{"show"}, {}, {"FILE: is required"}},
      {{"show", "nowhere.json"}, {}, {"nowhere.json: cannot be read"}},
      {{"show", "x.json", "--time", "1s"}, {}, {"--time: has no meaning for show"}},
  };
  for (const auto& c : cases) {
    const ProcessResult result = Run(c.words, c.variables);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    for (const std::string& fragment : c.fragments) {
      EXPECT_NE(result.err.find(fragment), std::string::npos) << result.err << fragment;
    }
  }
}

// Four hosts: a, b and c carry 100 MB/s, d half of it from afar and over a lossy path; one flow
// carries two fifths of several.
NetworkProfile SlowFourth() {
  NetworkProfile profile;
  profile.version = "0.2.0";
  profile.started = "now";
  profile.settings["time"] = "2 s";
  for (const char* name : {"a", "b", "c", "d"}) {
    profile.hosts.push_back({name, "10.0.0.1", {}});
    profile.hosts.back().facts["interface"] = "eth0";
  }
  const auto add = [&](NetworkKind kind, int from, int to, double share) {
    const bool of_fourth = from == 3 || to == 3;
    NetworkRow row;
    row.kind = kind;
    row.from = from;
    row.to = to;
    row.bytes_per_s = share * (of_fourth ? 50e6 : 100e6);
    if (kind == NetworkKind::kLatency) {
      row.bytes_per_s.reset();
      row.rtt_median_s = of_fourth ? 5e-3 : 1e-3;
    }
    if (kind == NetworkKind::kPaced) {
      row.tcp = TcpFacts();
      row.tcp->segments = 100'000;
      row.tcp->retransmitted = of_fourth ? 1600 : 120;
      row.tcp->needless = of_fourth ? 100 : 20;
      row.tcp->congestion_control = "cubic";
    }
    profile.rows.push_back(row);
  };
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      if (from < to) add(NetworkKind::kLatency, from, to, 1);
      add(NetworkKind::kSeveralFlows, from, to, 1);
      add(NetworkKind::kOneFlow, from, to, 0.4);
      add(NetworkKind::kBothWays, from, to, 0.6);
      add(NetworkKind::kPaced, from, to, 0.8);
      // All receive 28 MB/s from each, and d the half.
      add(NetworkKind::kIncast, from, to, to == 3 || from != 3 ? 0.28 : 0.56);
      if (to == (from + 1) % 4 || to == (from + 2) % 4) {
        add(NetworkKind::kTwoPeers, from, to, 0.45);
      }
    }
  }
  profile.planned = static_cast<int>(profile.rows.size());
  return profile;
}

TEST_F(ProbeCli, EveryNumberOfAHostIsItsOwn) {
  Write("net.json", FormatNetworkProfile(SlowFourth()));
  const Json json = Json::parse(Run({"show", "net.json", "--json"}, {}).out);
  const auto expect = [](const Json& part, const char* key, double value) {
    ASSERT_TRUE(part[key].is_number()) << key << " " << part[key];
    EXPECT_NEAR(part[key].get<double>() / value, 1, 1e-9) << key;
  };
  const Json& a = json["hosts"][0];
  expect(a, "sends_bytes_per_s", 100e6);
  expect(a, "receives_bytes_per_s", 100e6);
  expect(a, "one_flow_bytes_per_s", 40e6);
  expect(a, "both_ways_bytes_per_s", 120e6);
  expect(a, "to_two_bytes_per_s", 90e6);
  expect(a, "from_all_bytes_per_s", 84e6);
  expect(a, "rtt_s", 1e-3);
  expect(a, "segments", 600'000);
  expect(a, "lost", 3400);
  expect(a, "loss_rate", 3400.0 / 600'000);
  expect(json, "bandwidth_bytes_per_s", 100e6);
  expect(json, "flow_cap_bytes_per_s", 30e6);
  expect(json, "rtt_s", 1e-3);
  expect(json, "loss_rate", 1e-3);
  int of_fourth = 0;
  for (const Json& finding : json["findings"]) {
    const std::string kind = finding["kind"].get<std::string>();
    if (kind == "capped_flow") continue;
    ++of_fourth;
    EXPECT_EQ(finding["host"], "d") << kind;
    EXPECT_TRUE(finding["peer"].is_null()) << kind;
    const bool slow = kind == "slow_host";
    const bool far = kind == "distant_host";
    EXPECT_TRUE(slow || far || kind == "lossy_host") << kind;
    expect(finding, "value", slow ? 50e6 : far ? 5e-3 : 0.015);
    expect(finding, "like", slow ? 100e6 : 1e-3);
  }
  EXPECT_EQ(of_fourth, 3);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["planned"], json["measured"]);
  EXPECT_EQ(json["loss_limited"], false);
}

// Of as many findings of a kind as there may be five are told, and the others counted.
TEST_F(ProbeCli, FiveFindingsOfAKindAreTold) {
  Write("net.json", FormatNetworkProfile(SlowFourth()));
  const Json json = Json::parse(Run({"show", "net.json", "--json"}, {}).out);
  const std::string text = program::Unwrapped(Run({"show", "net.json"}, {}).out);
  std::map<std::string, int> told;
  std::map<std::string, int> all;
  for (const Json& finding : json["findings"]) {
    const std::string kind = finding["kind"].get<std::string>();
    ++all[kind];
    const auto sentence = finding["sentence"].get<std::string>();
    told[kind] += text.find(sentence) != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(all["capped_flow"], 12);
  for (const auto& [kind, count] : all) {
    EXPECT_EQ(told[kind], std::min(count, 5)) << kind << "\n" << text;
  }
  EXPECT_NE(text.find("; and 7 more like it: --json lists them"), std::string::npos) << text;
}

// A host that receives at a third less than it sends, and flows that three things hold back.
TEST_F(ProbeCli, WhatHoldsAFlowBackIsSaid) {
  NetworkProfile profile = SlowFourth();
  for (NetworkRow& row : profile.rows) {
    if (row.kind == NetworkKind::kSeveralFlows && row.to == 2) {
      row.bytes_per_s = *row.bytes_per_s * 2 / 3;
    }
    if (row.kind != NetworkKind::kOneFlow || row.from > 1) continue;
    row.tcp = TcpFacts();
    row.tcp->segments = 100'000;
    row.tcp->retransmitted = row.from == 1 && row.to == 3 ? 2000 : 0;
    row.tcp->receiver_limited = row.from == 0 && row.to == 1 ? 0.5 : 0.1;
    row.tcp->sender_limited = row.from == 1 && row.to == 0 ? 0.5 : 0.1;
    row.tcp->congestion_control = "cubic";
  }
  Write("net.json", FormatNetworkProfile(profile));
  const Json json = Json::parse(Run({"show", "net.json", "--json"}, {}).out);
  EXPECT_NEAR(json["hosts"][2]["sends_bytes_per_s"].get<double>(), 100e6, 1);
  EXPECT_NEAR(json["hosts"][2]["receives_bytes_per_s"].get<double>(), 100e6 * 2 / 3, 1);
  const auto why = [&](const std::string& from, const std::string& to) {
    for (const Json& finding : json["findings"]) {
      if (finding["kind"] != "capped_flow" || finding["host"] != from || finding["peer"] != to) {
        continue;
      }
      const std::string sentence = finding["sentence"].get<std::string>();
      const std::size_t at = sentence.rfind(": ");
      return at < sentence.find(", several") ? "" : sentence.substr(at + 2);
    }
    return std::string("none");
  };
  EXPECT_EQ(why("a", "b"), "the receiver's window held it back (net.ipv4.tcp_rmem)");
  EXPECT_EQ(why("b", "a"), "the sender's buffer held it back (net.ipv4.tcp_wmem)");
  EXPECT_EQ(why("b", "d"), "it sent 2 % of its segments again");
  EXPECT_EQ(why("c", "a"), "");
}

// A measurement that was cut short, over paths that lose a hundredth.
TEST_F(ProbeCli, WhatWasNotMeasuredAndWhatLossHeldBackIsSaid) {
  NetworkProfile profile = SlowFourth();
  profile.planned += 3;
  profile.rows.back().problem = "timed out";
  profile.rows.back().bytes_per_s.reset();
  for (NetworkRow& row : profile.rows) {
    if (row.kind != NetworkKind::kPaced && row.kind != NetworkKind::kSeveralFlows) continue;
    row.tcp = TcpFacts();
    row.tcp->segments = 100'000;
    row.tcp->retransmitted = 3000;
    row.tcp->rtt_s = 1e-3;
    row.tcp->congestion_control = "cubic";
  }
  Write("net.json", FormatNetworkProfile(profile));
  const ProcessResult shown = Run({"show", "net.json", "--json"}, {});
  EXPECT_EQ(shown.exit_code, 1) << "not all that was planned was measured";
  EXPECT_EQ(Run({"show", "net.json"}, {}).exit_code, 1);
  const Json json = Json::parse(shown.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["planned"], profile.planned);
  EXPECT_EQ(json["measured"], static_cast<int>(profile.rows.size()) - 1);
  EXPECT_EQ(json["loss_limited"], true);
}

// What a forecast takes of a network whose fourth host is another.
TEST_F(ProbeCli, ADeviantHostHasALinkOfItsOwn) {
  Write("net.json", FormatNetworkProfile(SlowFourth()));
  Write("lab.yaml",
        "name: lab\ndevice: t4\nnodes: 8\ndevices_per_node: 1\nlink: {bandwidth: 25 Gbit/s, rtt: "
        "9 ms}\ncalibration:\n  residual_log_sd: 0.05\n  parameters:\n"
        "    - {scope: cluster, name: hop_spread, value: 0.1, log_sd: 0.25, prior_value: 0.1, "
        "prior_log_sd: 0.7, decided_by: data}\n");
  const ProcessResult result =
      Run({"show", "net.json", "--cluster", "lab.yaml", "--cluster-output", "out.yaml"}, {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Cluster cluster = ReadCluster(folder_.Path("out.yaml"));
  constexpr double kLine = 1538.0 / 1448;  // of payload
  EXPECT_EQ(cluster.nodes, 8);
  EXPECT_NEAR(cluster.link.bandwidth->si() / (100e6 * kLine), 1, 1e-3);
  EXPECT_NEAR(cluster.link.rtt->si(), 1e-3, 1e-9);
  EXPECT_NEAR(cluster.link.loss.value_or(0), 1e-3, 1e-9);
  ASSERT_EQ(cluster.hosts.size(), 4U);
  EXPECT_FALSE(cluster.hosts[0].link.bandwidth || cluster.hosts[0].link.rtt);
  const LinkFacts& fourth = cluster.hosts[3].link;
  ASSERT_TRUE(fourth.bandwidth && fourth.rtt && fourth.loss);
  EXPECT_NEAR(fourth.bandwidth->si() / (50e6 * kLine), 1, 1e-3);
  EXPECT_NEAR(fourth.rtt->si(), 5e-3, 1e-9);
  EXPECT_NEAR(*fourth.loss, 0.015, 1e-9);
  // What another network had taught is no longer believed.
  ASSERT_TRUE(cluster.calibration);
  EXPECT_EQ(cluster.calibration->parameters.size(), 1U);
  const ParameterEstimate& cap = cluster.calibration->parameters.at(0);
  EXPECT_EQ(cap.name, "flow_bandwidth");
  EXPECT_EQ(cap.unit, "Gbit/s");
  EXPECT_NEAR(cap.value, 0.24, 1e-9);
  EXPECT_GT(cap.log_sd, 0);
  EXPECT_NEAR(cluster.calibration->log_covariance(0, 0), cap.log_sd * cap.log_sd, 1e-9);
}

// Where one flow carries what several do, nothing is known of a flow either.
TEST_F(ProbeCli, AnotherNetworksCalibrationIsForgotten) {
  NetworkProfile profile = SlowFourth();
  for (NetworkRow& row : profile.rows) {
    if (row.kind == NetworkKind::kOneFlow) row.bytes_per_s = *row.bytes_per_s / 0.4;
  }
  Write("net.json", FormatNetworkProfile(profile));
  Write("lab.yaml",
        "name: lab\ndevice: t4\nnodes: 4\ndevices_per_node: 1\ncalibration:\n"
        "  residual_log_sd: 0.05\n  parameters:\n"
        "    - {scope: cluster, name: hop_spread, value: 0.1, log_sd: 0.25, prior_value: 0.1, "
        "prior_log_sd: 0.7, decided_by: data}\n");
  ASSERT_TRUE(ReadCluster(folder_.Path("lab.yaml")).calibration);
  const ProcessResult result =
      Run({"show", "net.json", "--cluster", "lab.yaml", "--cluster-output", "out.yaml"}, {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(ReadCluster(folder_.Path("out.yaml")).calibration);
}

TEST_F(ProbeCli, LinksOfRdmaAreNotThoseOfTcp) {
  Write("net.json",
        R"({"stepcast_network": 1, "version": "1", "started": "now", "planned": 1, "hosts": [
            {"name": "a", "address": "1"}, {"name": "b", "address": "2"}], "rows": [
            {"kind": "one_flow", "from": "a", "to": "b", "flows": 1, "bytes_per_s": 1e9}]})");
  Write("rdma.yaml",
        "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\nlink: {transport: rdma}\n");
  const ProcessResult result =
      Run({"show", "net.json", "--cluster", "rdma.yaml", "--cluster-output", "out.yaml"}, {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("link.transport: 'rdma' is not what was measured"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace stepcast
