// stepcast probe steps --shape: on the loopback by a tc that only keeps what it was called with,
// and in a network of namespaces by the kernel's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "data/io/runs.h"
#include "tests/cli/program.h"
#include "tests/cli/worker.h"
#include "tests/microbench/network_lab.h"

namespace stepcast {
namespace {

using program::ExpectText;
using program::FreeMaster;
using program::HasWorker;
using program::Json;
using program::kToken;
using program::Words;
using program::operator+;

constexpr const char* kWanted =
    "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
    "mlp_mnist,t4,1-1,0,ring,1,STEP_TIME\n";
// Of the network's 669,706 parameters each of two workers sends half twice; a worker and a server
// send all of them once.
constexpr double kSentBytes = 4 * 669'706.0;

std::vector<std::string> LinesOf(const std::string& path) {
  std::istringstream in(FileContent(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// ---- On the loopback.

class ShapeCli : public testing::Test {
 protected:
  void SetUp() override {
    Program("tc", "echo \"$*\" >>" + folder_.Path("calls") + "\n. " + folder_.Path("fail") +
                      "\n[ \"$2\" = show ] && echo 'qdisc noqueue 0: root refcnt 2'\nexit 0\n");
    Program("unshare", "while [ \"${1#--}\" != \"$1\" ]; do shift; done; exec \"$@\"\n");
    Program("ip", "exit 1\n");
    folder_.Write("fail", "");
    folder_.Write("wanted.csv", kWanted);
  }
  void Program(const std::string& name, const std::string& script) const {
    chmod(folder_.Write(name, "#!/bin/sh\n" + script).c_str(), 0755);
  }
  ProcessResult Run(const Words& words) const {
    const std::string path = "PATH=" + folder_.path() + ":" + std::getenv("PATH");
    return RunProcess(Words{"/usr/bin/env", path, STEPCAST_PROGRAM, "probe", "steps"} + words,
                      {.folder = folder_.Path("."), .variables = {kToken}});
  }
  ProcessResult Both(const Words& words) const {
    const std::string master = FreeMaster();
    ProcessResult other;
    std::thread beside([&] {
      other = Run({"--rank", "1", "--of", "2", "--master", master, "--wait", "20s",
                   "--shape-interface", "lo"});
    });
    const ProcessResult result =
        Run(Words{"wanted.csv", "--rank", "0", "--of", "2", "--master", master, "--wait", "20s",
                  "--cluster", "gce-t4", "--steps", "3", "--warm-up", "1", "--json",
                  "--shape-interface", "lo"} +
            words);
    beside.join();
    other_ = other;
    return result;
  }

  TempFolder folder_;
  mutable ProcessResult other_;
};

TEST_F(ShapeCli, EachCombinationIsSetOnAllHostsInTheOrderOfTheSeed) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  const Words shape = {"--shape",      "bandwidth=100 Mbit/s,1 Gbit/s; rtt=0 ms,10 ms",
                       "--shape",      "loss=0,0.01",
                       "--replicates", "2",
                       "--seed",       "5"};
  const ProcessResult result = Both(shape);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(other_.exit_code, 0) << other_.err;
  EXPECT_NE(result.err.find("8 conditions of lo, 2 times in an order by chance: --seed 5"),
            std::string::npos)
      << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["shape"]["seed"], 5);
  EXPECT_EQ(json["shape"]["replicates"], 2);
  EXPECT_EQ(json["shape"]["interface"], "lo");
  EXPECT_EQ(json["shape"]["sending_only"].size(), 2U);
  EXPECT_EQ(json["shape"]["cells"].size(), 8U);
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("runs.csv"));
  ASSERT_EQ(runs.size(), 16U);
  // All of it once in each replicate, in orders of their own.
  std::vector<std::string> order;
  for (const stepcast::Run& run : runs) {
    const LinkFacts& link = run.plan.link;
    ASSERT_TRUE(link.bandwidth && link.rtt && link.loss);
    EXPECT_EQ(link.loss_burst.has_value(), *link.loss > 0);
    order.push_back(std::to_string(link.bandwidth->in(kGigabitsPerSecond)) + " " +
                    std::to_string(link.rtt->in(kMilliseconds)) + " " + std::to_string(*link.loss));
  }
  std::set<std::string> asked;
  std::size_t cell = 0;
  for (const double gigabits : {0.1, 1.0}) {
    for (const double trip_ms : {0.0, 10.0}) {
      for (const double loss : {0.0, 0.01}) {
        // Told in SI units, the last of them fastest.
        const Json& told = json["shape"]["cells"][cell++];
        EXPECT_NEAR(told["bandwidth_bytes_per_s"].get<double>(), gigabits * 1e9 / 8, 1);
        EXPECT_NEAR(told["rtt_s"].get<double>(), 1e-3 * trip_ms, 1e-12);
        EXPECT_EQ(told["loss_rate"], loss);
        asked.insert(std::to_string(gigabits) + " " + std::to_string(trip_ms) + " " +
                     std::to_string(loss));
      }
    }
  }
  EXPECT_EQ(std::set(order.begin(), order.begin() + 8), asked);
  EXPECT_EQ(std::set(order.begin() + 8, order.end()).size(), 8U);
  EXPECT_NE(std::vector(order.begin(), order.begin() + 8),
            std::vector(order.begin() + 8, order.end()));
  // Both hosts were given each of them, and have given all of them back.
  std::map<std::string, int> expected;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i] == order[i - 1]) continue;
    const LinkFacts& link = runs[i].plan.link;
    expected["tbf"] += 2;
    expected["del dev lo root"] += 2;
    if (link.rtt->si() > 0) expected["delay 5000us"] += 2;
    if (*link.loss > 0) expected["loss 1%"] += 2;
  }
  for (const auto& [words, times] : expected) {
    int called = 0;
    for (const std::string& call : LinesOf(folder_.Path("calls"))) {
      const bool tried = call.find("rate 8mbit") != std::string::npos ||
                         call.find(" root handle 57ca:") + 18 == call.size();
      if (!tried && call.find(words) != std::string::npos) ++called;
    }
    EXPECT_EQ(called, times) << words;
  }
  // The same seed, the same order; and what is there is not measured again.
  std::filesystem::rename(folder_.Path("runs.csv"), folder_.Path("first.csv"));
  std::ofstream(folder_.Path("runs.csv")) << LinesOf(folder_.Path("first.csv")).at(0) << "\n"
                                          << LinesOf(folder_.Path("first.csv")).at(3) << "\n";
  const Json again = Json::parse(Both(shape).out);
  ASSERT_EQ(again["runs"].size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(again["runs"][i]["plan"], json["runs"][i]["plan"]);
    EXPECT_EQ(again["runs"][i]["outcome"], i == 2 ? "taken over" : "measured");
  }
  ExpectText({"calibrate", "--cluster", "gce-t4", "--runs", folder_.Path("runs.csv"), "--output",
              folder_.Path("fit.yaml")},
             {"written to"});
}

// Servers that as many or fewer workers push to take in no more than each of these sends.
TEST_F(ShapeCli, WhereMoreWorkersThanServersPushItIsSaid) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  for (const char* servers : {"1", "2"}) {
    folder_.Write("wanted.csv",
                  std::string("workload,device,placement,servers,strategy,local_batch,"
                              "colocated_servers,step_time_s\nmlp_mnist,t4,1-1,") +
                      servers + ",ps-sync,1,yes,STEP_TIME\n");
    const ProcessResult result =
        Both({"--shape", "bandwidth=1 Gbit/s", "--output", std::string("of") + servers + ".csv"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["shape"]["sending_only"].size(), 2U);
    EXPECT_EQ(
        json["flags"].dump().find("where more workers than servers push") != std::string::npos,
        *servers == '1')
        << json["flags"];
  }
}

// The host says so that cannot, and its conditions are nobody's.
TEST_F(ShapeCli, WhatTcRefusesIsARunThatFailed) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  folder_.Write("fail",
                "case \"$*\" in *'rate 800000000bit'*) echo 'no room' >&2; exit 2 ;; esac\n");
  const ProcessResult result = Both({"--shape", "bandwidth=100 Mbit/s,800 Mbit/s", "--seed", "1"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json json = Json::parse(result.out);
  int failed = 0;
  for (const Json& run : json["runs"]) {
    if (run["outcome"] == "measured") continue;
    ++failed;
    EXPECT_EQ(run["outcome"], "failed");
    EXPECT_NE(run["problem"].get<std::string>().find("no room"), std::string::npos) << run;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(ReadRuns(folder_.Path("runs.csv")).size(), 1U);
}

TEST_F(ShapeCli, WhatIsMissingIsToldBeforeAnybodyComes) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  folder_.Write("fail",
                "case \"$*\" in *netem*) echo 'Error: Specified qdisc kind is unknown.' >&2; exit "
                "2 ;; esac\n");
  // It is told whichever of the conditions needs netem.
  for (const char* shape : {"rtt=10 ms,0 ms", "rtt=0 ms,10 ms", "loss=0.01,0", "loss=0,0.01"}) {
    const ProcessResult result =
        Run({"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4", "--shape", shape,
             "--wait", "20s", "--shape-interface", "lo"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("--shape: this kernel has no netem (module sch_netem), which delays "
                              "and loses packets; bandwidth alone can be set"),
              std::string::npos)
        << shape << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_LT(result.wall_s, 10);
  }
  for (const std::string& call : LinesOf(folder_.Path("calls"))) {
    EXPECT_EQ(call.find("handle 57cb"), std::string::npos) << call;
  }
}

// Another host that nobody has allowed to be shaped ends the probe, and is named.
TEST_F(ShapeCli, AHostThatMayNotBeShapedIsNamed) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  const std::string master = FreeMaster();
  ProcessResult other;
  std::thread beside([&] {
    other = Run({"--rank", "1", "--of", "2", "--master", master, "--wait", "20s", "--name", "two"});
  });
  const ProcessResult result =
      Run({"wanted.csv", "--rank", "0", "--of", "2", "--master", master, "--wait", "20s",
           "--cluster", "gce-t4", "--shape", "bandwidth=1 Gbit/s", "--shape-interface", "lo"});
  beside.join();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--shape: two: it was started without --shape-interface"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("the probe ended early"), std::string::npos) << other.err;
}

TEST_F(ShapeCli, WhatCannotBeSetIsRefused) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  const Words start = {"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4"};
  const Words on_lo = {"--shape-interface", "lo"};
  const auto trips = [](int count) {
    std::string text = "rtt=1 ms";
    for (int i = 2; i <= count; ++i) text += "," + std::to_string(i) + " ms";
    return text;
  };
  const auto losses = [](int count) {
    std::string text = "loss=0.1";
    for (int i = 1; i < count; ++i) text += ",0.1" + std::to_string(100 + i);
    return text;
  };
  const struct {
    Words words;
    const char* said;
  } cases[] = {
      {on_lo + Words{"--shape", trips(400) + "; " + losses(300)},
       "--shape: makes too many conditions; allowed: at most 100000"},
      {on_lo + Words{"--shape", trips(200), "--replicates", "1000"},
       "runs; allowed: at most 100000"},
      // As many conditions as runs are allowed, each twice.
      {on_lo + Words{"--shape", trips(400) + "; " + losses(250), "--replicates", "2"},
       "--shape: makes 200000 runs; allowed: at most 100000"},
      {on_lo + Words{"--shape", "jitter=1 ms"},
       "--shape: 'jitter' is nothing that a link can be given; allowed: bandwidth, rtt, loss"},
      {on_lo + Words{"--shape", "bandwidth"}, "--shape: 'bandwidth' names no values"},
      {on_lo + Words{"--shape", " ; "}, "--shape: names no conditions"},
      {on_lo + Words{"--shape", "bandwidth=100"}, "--shape: '100'"},
      {on_lo + Words{"--shape", "bandwidth=1 bit/s"},
       "--shape: 'bandwidth=1 bit/s' is out of range; allowed: "},
      {on_lo + Words{"--shape", "rtt=20 s"}, "allowed: 0 s, or 2 us to 10 s"},
      {on_lo + Words{"--shape", "rtt=1 us"}, "allowed: 0 s, or 2 us to 10 s"},
      {on_lo + Words{"--shape", "loss=0.95"}, "allowed: 0, or 1e-8 to 0.9"},
      {on_lo + Words{"--shape", "loss=2"}, "--shape: '2'"},
      {on_lo + Words{"--shape", "loss=0,0"}, "--shape: 'loss=0' is stated twice"},
      {on_lo + Words{"--shape", "loss=0; loss=0.1"}, "--shape: 'loss' is stated twice"},
      {{"--shape", "loss=0"}, "--shape-interface: is required with --shape"},
      {{"--shape", "loss=0", "--shape-interface", "a b"},
       "--shape-interface: 'a b' is no name of an interface"},
      {{"--shape", "bandwidth=1 Gbit/s", "--shape-interface", "no0"},
       "--shape: there is no interface 'no0' here: lo"},
      {{"--seed", "1"}, "--seed: has no meaning without --shape"},
      {on_lo, "--shape-interface: has no meaning without --shape"},
      {on_lo + Words{"--shape", "loss=0", "--seed", "-1"}, "--seed: '-1'"},
      {{"--replicates", "0"}, "--replicates: '0'"},
      {on_lo + Words{"--shape", "bandwidth=1 Gbit/s", "--replicates", "1001"},
       "--replicates: '1001'"},
  };
  for (const auto& c : cases) {
    const ProcessResult result = Run(start + c.words);
    EXPECT_EQ(result.exit_code, 2) << c.said;
    EXPECT_NE(result.err.find(c.said), std::string::npos) << result.err << "lacks: " << c.said;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  folder_.Write("wanted.csv",
                "workload,device,placement,servers,strategy,local_batch,link_gbit_per_s,step_time_s"
                "\nmlp_mnist,t4,1-1,0,ring,1,1,STEP_TIME\n");
  const ProcessResult stated = Run(start + on_lo + Words{"--shape", "bandwidth=1 Gbit/s"});
  EXPECT_EQ(stated.exit_code, 2);
  EXPECT_NE(stated.err.find("wanted.csv:2: link_gbit_per_s: '1' is set by --shape"),
            std::string::npos)
      << stated.err;
}

// ---- In a network of namespaces.

class ShapeLab : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
    if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    const ProcessResult tc =
        RunProcess({"/usr/bin/env", "unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root",
                    "tbf", "rate", "8mbit", "burst", "10000", "limit", "10000"});
    if (tc.exit_code != 0) GTEST_SKIP() << "no tc, or no tbf in this kernel: " << tc.err;
    folder_.Write("wanted.csv", kWanted);
  }

  static std::string Queues() { return RunProcess({"/usr/bin/env", "tc", "qdisc", "show"}).out; }
  Words Command(int host, const Words& words) const {
    const Words all = {STEPCAST_PROGRAM,
                       "probe",
                       "steps",
                       "--of",
                       "2",
                       "--rank",
                       std::to_string(host),
                       "--master",
                       NetworkLab::AddressOf(0),
                       "--wait",
                       "30s",
                       "--name",
                       "h" + std::to_string(host),
                       "--shape-interface",
                       "eth0"};
    return host > 0 ? all : all + Words{"wanted.csv", "--cluster", "gce-t4", "--json"} + words;
  }
  // What a host does: runs the program, and writes what it answers and the queues of its interface
  // before and behind it. `meanwhile` is given the program's process once the interface is shaped.
  int Host(int host, const Words& words, const std::function<void(pid_t)>& meanwhile) const {
    const std::string name = std::to_string(host);
    const std::string before = Queues();
    folder_.Write("before" + name, before);
    const pid_t pid = Start(Command(host, words), name);
    int status = 0;
    if (meanwhile) {
      Await([&] { return Queues().find("tbf") != std::string::npos; });
      folder_.Write("shaped" + name, Queues());
      meanwhile(pid);
    }
    waitpid(pid, &status, 0);
    // Who was killed leaves it to his guard.
    if (meanwhile) Await([&] { return Queues() == before; });
    folder_.Write("after" + name, Queues());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void ExpectQueuesAreBack() const {
    for (const std::string host : {"0", "1"}) {
      EXPECT_NE(FileContent(folder_.Path("before" + host)), "");
      EXPECT_EQ(FileContent(folder_.Path("after" + host)),
                FileContent(folder_.Path("before" + host)))
          << "host " << host;
    }
  }
  std::string Said(int host) const {
    return FileContent(folder_.Path("err" + std::to_string(host)));
  }

  TempFolder folder_;

 private:
  static void Await(const std::function<bool()>& holds) {
    for (int i = 0; i < 300 && !holds(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  pid_t Start(Words words, const std::string& name) const {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const auto redirect = [&](const std::string& file, int to) {
      dup2(open(folder_.Path(file + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), to);
    };
    redirect("out", STDOUT_FILENO);
    redirect("err", STDERR_FILENO);
    if (chdir(folder_.path().c_str()) != 0) _exit(98);
    setenv("STEPCAST_PROBE_TOKEN", "0123456789abcdef", 1);
    execv(argv[0], argv.data());
    _exit(97);
  }
};

// What a line of the run's rate takes for what one of two hosts sends in a step.
double LineTimeOf(const Json& run) {
  return kSentBytes / (run["plan"]["link_gbit_per_s"].get<double>() * 1e9 / 8 * kPayload);
}

const Words kTwoRates = {
    "--shape", "bandwidth=25 Mbit/s,100 Mbit/s", "--replicates", "2", "--steps", "3", "--warm-up",
    "1"};

// Two rates of a network that carries more than either, each twice.
TEST_F(ShapeLab, StepsAreSlowerWhereTheRateIsLess) {
  LabConditions conditions;
  conditions.rate = 400e6 / 8;
  NetworkLab lab(conditions, [&](int host) { return Host(host, kTwoRates, {}); });
  for (const int code : lab.Wait()) EXPECT_EQ(code, 0) << Said(0) << Said(1);
  ExpectQueuesAreBack();
  const Json json = Json::parse(FileContent(folder_.Path("out0")));
  ASSERT_EQ(json["runs"].size(), 4U) << json;
  std::map<double, std::vector<double>> steps;
  for (const stepcast::Run& run : ReadRuns(folder_.Path("runs.csv"))) {
    steps[run.plan.link.bandwidth->si()].push_back(run.step_time.si());
  }
  ASSERT_EQ(steps.size(), 2U);
  const std::vector<double>& slow = steps.begin()->second;
  const std::vector<double>& fast = steps.rbegin()->second;
  ASSERT_EQ(slow.size(), 2U);
  ASSERT_EQ(fast.size(), 2U);
  EXPECT_GT(*std::min_element(slow.begin(), slow.end()),
            2 * *std::max_element(fast.begin(), fast.end()));
  // Nothing is faster than its line.
  for (const Json& run : json["runs"]) {
    EXPECT_GT(run["parts"]["synchronising_s"].get<double>() / LineTimeOf(run), 0.95) << run;
  }
}

class ShapeEndsLab : public ShapeLab {
 protected:
  // Both hosts are shaped when host `whose` is ended by the signal.
  std::vector<int> EndBy(int signal, int whose) {
    const Words words = {"--shape", "bandwidth=40 Mbit/s", "--steps", "1000"};
    NetworkLab lab({}, [&](int host) {
      return Host(host, words, [&, host](pid_t pid) {
        if (host == whose) {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          kill(pid, signal);
        }
      });
    });
    const std::vector<int> codes = lab.Wait();
    for (const std::string host : {"0", "1"}) {
      EXPECT_NE(FileContent(folder_.Path("shaped" + host)).find("rate 40Mbit"), std::string::npos)
          << Said(0) << Said(1);
    }
    return codes;
  }
};

TEST_F(ShapeEndsLab, AnInterruptGivesTheQueuesBack) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::vector<int> codes = EndBy(signal, 0);
    EXPECT_EQ(codes, (std::vector<int>{1, 1})) << Said(0) << Said(1);
    ExpectQueuesAreBack();
  }
}

TEST_F(ShapeEndsLab, WhoIsKilledLeavesNothingBehindAnywhere) {
  for (const int whose : {0, 1}) {
    const std::vector<int> codes = EndBy(SIGKILL, whose);
    EXPECT_EQ(codes[static_cast<std::size_t>(whose)], 128 + SIGKILL);
    EXPECT_EQ(codes[static_cast<std::size_t>(1 - whose)], 1) << Said(0) << Said(1);
    ExpectQueuesAreBack();
  }
}

// What somebody else has set up is not ours.
TEST_F(ShapeEndsLab, AQueueOfSomebodyElsesIsNotTouched) {
  NetworkLab lab({}, [&](int host) {
    if (host > 0) return 0;
    RunProcess(
        {"/usr/bin/env", "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "9:", "htb"});
    return Host(host, {"--shape", "bandwidth=40 Mbit/s"}, {});
  });
  EXPECT_EQ(lab.Wait()[0], 2);
  EXPECT_NE(Said(0).find("eth0 has a queue that somebody set up, which would be lost: 'qdisc htb "
                         "9: root"),
            std::string::npos)
      << Said(0);
  EXPECT_NE(FileContent(folder_.Path("after0")).find("htb 9:"), std::string::npos);
}

class ToolLab : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    const std::string made = "ip link add eth0 type veth && ip link add hub type bridge";
    if (RunProcess({"/usr/bin/env", "unshare", "--net", "sh", "-c", made}).exit_code != 0) {
      GTEST_SKIP() << "no ip, or no veth and bridge in this kernel";
    }
  }
};

// The lab of the documentation: each host has its rank and an interface of its own, what rank 0
// says is the answer, and nothing is left.
TEST_F(ToolLab, RunsACommandInEachHostAndRemovesThem) {
  const ProcessResult result =
      RunProcess({STEPCAST_SOURCE_DIR "/tools/lab", "3", "sh", "-c",
                  "echo rank $RANK of $WORLD_SIZE; ip -o -4 addr show eth0; exit $((RANK + 3))"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.out.find("rank 0 of 3"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("10.98.0.1/24"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("rank 1"), std::string::npos) << result.out;
  const ProcessResult left = RunProcess({"/usr/bin/env", "ip", "netns", "list"});
  EXPECT_EQ(left.out.find("stepcast-lab"), std::string::npos) << left.out;
  EXPECT_EQ(RunProcess({STEPCAST_SOURCE_DIR "/tools/lab", "1", "true"}).exit_code, 2);
}

// The command of the documentation, with what any kernel with tbf can set. A worker and its server
// send in turn: where both send at once, acknowledgements take a part of each line.
TEST_F(ToolLab, StepsTakeAsLongAsTheRatesThatAreSetLetThem) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  const TempFolder folder;
  folder.Write("wanted.csv",
               "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
               "mlp_mnist,t4,1,1,ps-sync,1,STEP_TIME\n");
  double worst = 1;
  // Once more, at most twice, where the machine was too busy to be the network that was set.
  for (int attempt = 0; attempt < 3 && worst > 0.05; ++attempt) {
    std::filesystem::remove(folder.Path("runs.csv"));
    const ProcessResult result = RunProcess(
        Words{STEPCAST_SOURCE_DIR "/tools/lab", "2", STEPCAST_PROGRAM, "probe", "steps",
              "wanted.csv", "--cluster", "gce-t4", "--json", "--shape-interface", "eth0"} +
            kTwoRates,
        {.folder = folder.Path(".")});
    if (result.err.find("no tbf") != std::string::npos) GTEST_SKIP() << result.err;
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    ASSERT_EQ(json["runs"].size(), 4U) << json;
    worst = 0;
    for (const Json& run : json["runs"]) {
      for (const char* phase : {"push_s", "pull_s"}) {
        const double seconds = run["servers"][phase].get<double>();
        worst = std::max(worst, std::abs(seconds / LineTimeOf(run) - 1));
      }
    }
  }
  double load = 0;
  const bool known = getloadavg(&load, 1) == 1;
  if (worst > 0.05 && known && load > std::thread::hardware_concurrency()) {
    GTEST_SKIP() << "the machine is too busy to be the network: " << worst;
  }
  EXPECT_LT(worst, 0.05) << "of the exchange that the rate makes";
}

}  // namespace
}  // namespace stepcast
