// stepcast probe collectives --library mpi, under mpirun: on the loopback, and between hosts whose
// links are known (network_lab.h).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
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

class MpiProbe : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasWorker("stepcast-mpi")) GTEST_SKIP() << "built without MPI";
    const ProcessResult version = RunProcess({"/usr/bin/env", "mpirun", "--version"});
    if (version.exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  }
  // What `timeout` is told stands before the command.
  ProcessResult Run(const Words& limit, const Words& command,
                    const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> all = variables;
    all.emplace_back(kToken);
    return RunProcess(
        Words{"/usr/bin/env", "timeout", "--preserve-status", "-k", "10"} + limit + command,
        {.folder = folder_.Path("."), .variables = all});
  }
  static Words MpiRun(int ranks) {
    return {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks)};
  }
  static Words Probe(const std::string& master) {
    return {STEPCAST_PROGRAM, "probe",     "collectives", "--library", "mpi", "--master",
            master,           "--cluster", "gce-t4",      "--wait",    "20s", "--json"};
  }
  // Which library the run says that it is of.
  static std::string LibraryOf(const stepcast::Run& run) {
    for (std::size_t i = 0; run.extra_columns && i < run.extra.size(); ++i) {
      if (run.extra_columns->at(i) == "library") return run.extra[i];
    }
    return "";
  }

  TempFolder folder_;
};

class MpiCli : public MpiProbe {};

TEST_F(MpiCli, WhatCannotBeIsRefused) {
  const struct {
    Words words;
    std::vector<std::string> variables;
    const char* said;
  } cases[] = {
      {{"collectives", "--library", "mpj"},
       {},
       "--library: 'mpj' is not one of them (did you mean mpi?); allowed: gloo, mpi"},
      {{"collectives", "--library", "mpi", "--hosts", "127.0.0.1,b"},
       {},
       "--library: 'mpi' needs hosts that an MPI launcher has started; allowed: mpirun --map-by "
       "node -x STEPCAST_PROBE_TOKEN stepcast probe collectives --library mpi --master HOST ..., "
       "or the same behind srun --mpi=pmix"},
      {{"steps", "wanted.csv", "--library", "mpi"}, {}, "--library: has no meaning for steps"},
      {{"collectives", "--library", "mpi", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4",
        "--sizes", "1 KiB,8 GiB"},
       {"PMIX_RANK=0"},
       "--sizes: '8 GiB' is too large a message"},
  };
  for (const auto& c : cases) {
    const ProcessResult result =
        Run({"60"}, Words{STEPCAST_PROGRAM, "probe"} + c.words, c.variables);
    EXPECT_EQ(result.exit_code, 2) << c.said;
    EXPECT_NE(result.err.find(c.said), std::string::npos) << result.err << "lacks: " << c.said;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(MpiCli, MessagesAreTimedAndTheirRunsSayOfWhat) {
  const Words sizes = {"--sizes", "1 KiB,4 MiB", "--steps", "12", "--warm-up", "1"};
  const ProcessResult result = Run({"60"}, MpiRun(2) + Probe(FreeMaster()) + sizes);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["runs"].size(), 2U);
  for (const Json& run : json["runs"]) {
    EXPECT_EQ(run["outcome"], "measured");
    EXPECT_EQ(run["measured_steps"], 12);
    EXPECT_EQ(run["library"], "mpi");
    EXPECT_EQ(run["hosts"].size(), 2U);
  }
  const Json& large = json["runs"][1];
  EXPECT_NEAR(large["parts"]["synchronising_s"].get<double>() / large["step_time_s"].get<double>(),
              1, 0.2);
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("messages.csv"));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].workload, "message_1024");
  EXPECT_LT(runs[0].step_time, runs[1].step_time);
  for (const stepcast::Run& run : runs) {
    EXPECT_EQ(LibraryOf(run), "mpi");
    EXPECT_EQ(run.plan.strategy, Strategy::kAllreduce);
    EXPECT_NE(run.source.find("of MPI's all-reduce on "), std::string::npos) << run.source;
  }
  ExpectText({"calibrate", "--cluster", "gce-t4", "--runs", folder_.Path("messages.csv"),
              "--output", folder_.Path("fit.yaml")},
             {"written to"});
  // Once more: all is there. Gloo's runs have a file of their own.
  const Json again = Json::parse(Run({"60"}, MpiRun(2) + Probe(FreeMaster()) + sizes).out);
  for (const Json& run : again["runs"]) EXPECT_EQ(run["outcome"], "taken over");
  if (!HasWorker("stepcast-gloo")) return;
  const ProcessResult gloo = Run({"60"}, {STEPCAST_PROGRAM, "probe", "collectives", "--hosts",
                                          "127.0.0.1,b", "--cluster", "gce-t4"});
  EXPECT_EQ(gloo.exit_code, 2);
  EXPECT_NE(gloo.err.find("messages.csv:1: has other columns"), std::string::npos) << gloo.err;
}

// Two launchers know nothing of each other.
TEST_F(MpiCli, HostsOfTwoJobsAreToldSo) {
  const std::string master = FreeMaster();
  const auto host = [&](const char* rank) {
    return Run({"60"},
               MpiRun(1) + Probe(master) + Words{"--of", "2", "--rank", rank, "--sizes", "1 KiB"});
  };
  std::thread beside([&] { host("1"); });
  const ProcessResult result = host("0");
  beside.join();
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string problem = Json::parse(result.out)["runs"][0]["problem"];
  EXPECT_NE(problem.find("MPI has it as rank 0 of 1, and the probe as "), std::string::npos)
      << problem;
  EXPECT_LT(result.wall_s, 30);
}

// As many as there are hosts, and each another than the probe has it as: whoever ends first, the
// launcher ends the others.
TEST_F(MpiCli, HostsOfOtherRanksAreToldSo) {
  const std::string master = FreeMaster();
  const auto host = [&](const char* rank) {
    return Probe(master) + Words{"--of", "2", "--rank", rank, "--sizes", "1 KiB"};
  };
  const ProcessResult result =
      Run({"60"}, MpiRun(1) + host("1") + Words{":", "-n", "1"} + host("0"));
  EXPECT_NE(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("\"measured\""), std::string::npos) << result.out;
  EXPECT_LT(result.wall_s, 30);
}

TEST_F(MpiCli, AnInterruptEndsAllAndKeepsWhatWasMeasured) {
  std::string sizes = "1 KiB";
  for (int i = 2; i < 60; ++i) sizes += "," + std::to_string(i) + " KiB";
  const ProcessResult result = Run(
      {"-s", "INT", "6"}, MpiRun(2) + Probe(FreeMaster()) +
                              Words{"--sizes", sizes, "--steps", "1000000", "--run-limit", "1s"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.wall_s, 16);
  const std::size_t kept = ReadRuns(folder_.Path("messages.csv")).size();
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 10U);
}

class MpiLab : public MpiProbe {
 protected:
  void SetUp() override {
    MpiProbe::SetUp();
    if (IsSkipped()) return;
    if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    const ProcessResult enters = RunProcess({"/usr/bin/env", "nsenter", "--version"});
    if (enters.exit_code != 0) GTEST_SKIP() << "there is no nsenter";
  }
  // Rank 0 is where mpirun runs, which has a program in another's namespace start its daemon there.
  int Host(int host, const std::string& connections) const {
    if (host > 0) {
      folder_.Write("host.part", std::to_string(getpid()));
      std::filesystem::rename(folder_.Path("host.part"), folder_.Path("host"));
      for (int i = 0; i < 1500 && !std::filesystem::exists(folder_.Path("over")); ++i) Nap();
      return 0;
    }
    for (int i = 0; i < 100 && !std::filesystem::exists(folder_.Path("host")); ++i) Nap();
    const std::string remote =
        folder_.Write("remote", "#!/bin/sh\nshift\nexec nsenter --net=/proc/" +
                                    FileContent(folder_.Path("host")) + "/ns/net sh -c \"$*\"\n");
    chmod(remote.c_str(), 0755);
    const ProcessResult result =
        Run({"100"},
            Words{"mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "node", "-n",
                  "2", "--mca", "btl_tcp_links", connections, "--host",
                  NetworkLab::AddressOf(0) + "," + NetworkLab::AddressOf(1), "-x",
                  "STEPCAST_PROBE_TOKEN"} +
                Probe(NetworkLab::AddressOf(0)) +
                Words{"--bind", "eth0", "--sizes", "16 MB", "--steps", "4", "--warm-up", "1"},
            {"OMPI_MCA_plm_rsh_agent=" + remote, "PRTE_MCA_plm_ssh_agent=" + remote});
    folder_.Write("out", result.out);
    folder_.Write("err", result.err);
    folder_.Write("over", "");
    return result.exit_code;
  }

 private:
  static void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }
};

// Each of two hosts has to send 16 MB, and to receive them: the share of the payload's rate at
// which what is sent passes. A link does both at once at best. Over one connection, as Open MPI has
// them, its messages of control wait behind the data of the other way, and it may do one after the
// other: at half of the rate. Over two connections they wait for half of the data at most. A tenth
// less is for what TCP takes to begin, and for acknowledgements, which share the line.
TEST_F(MpiLab, AMessageTakesWhatTheBandwidthAllows) {
  LabConditions conditions;
  conditions.rate = 100e6 / 8;
  const struct {
    const char* connections;
    double least;
  } cases[] = {{"1", 0.9 * 0.5}, {"2", 0.9 / 1.5}};
  for (const auto& c : cases) {
    double share = 0;
    bool busy = false;
    const auto is_wrong = [&] { return share < c.least || share > 1.02; };
    for (int attempt = 0; attempt < 3 && is_wrong(); ++attempt) {
      for (const char* file : {"host", "over", "messages.csv"}) {
        std::filesystem::remove(folder_.Path(file));
      }
      NetworkLab lab(conditions, [&](int host) { return Host(host, c.connections); });
      const std::vector<int> codes = lab.Wait();
      const bool answered =
          std::all_of(codes.begin(), codes.end(), [](int code) { return code == 0; });
      if (!answered && attempt < 2) continue;  // on a machine that stood still for a while
      ASSERT_TRUE(answered) << FileContent(folder_.Path("err"));
      const Json run = Json::parse(FileContent(folder_.Path("out")))["runs"][0];
      share = 16e6 / run["step_time_s"].get<double>() / (conditions.rate * kPayload);
      busy = lab.LateShare() > 0.1;
    }
    if (busy && is_wrong()) GTEST_SKIP() << "the machine is too busy to be the network";
    EXPECT_FALSE(is_wrong()) << share << " of the payload's rate, " << c.connections;
    std::printf("%s connections: %.3f of the payload's rate\n", c.connections, share);
  }
}

}  // namespace
}  // namespace stepcast
