// stepcast calibrate --fresh: from a described cluster to a calibrated one, by one command on each
// host; on the loopback, and between hosts whose links are known.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "data/io/runs.h"
#include "microbench/network/meeting.h"
#include "tests/cli/program.h"
#include "tests/cli/worker.h"
#include "tests/microbench/network_lab.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::FreeMaster;
using program::HasWorker;
using program::Json;
using program::kToken;
using program::Words;
using program::operator+;

class FreshCli : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  }

  ProcessResult Run(int rank, int hosts, const std::string& master, const Words& words,
                    const std::string& wait = "60s") const {
    return RunProcess(Words{STEPCAST_PROGRAM, "calibrate", "--fresh", "--rank",
                            std::to_string(rank), "--of", std::to_string(hosts), "--master", master,
                            "--name", "h" + std::to_string(rank), "--wait", wait} +
                          words,
                      {.folder = folder_.Path("."), .variables = {kToken}});
  }
  // Rank 0 of two hosts on the loopback, with the other beside it.
  ProcessResult Both(const Words& words) const {
    const std::string master = FreeMaster();
    ProcessResult other;
    std::thread beside([&] { other = Run(1, 2, master, {}); });
    Words asked = kAsked;
    *(std::find(asked.begin(), asked.end(), "--steps") + 1) = asked_steps_;
    const ProcessResult result = Run(0, 2, master, asked + words);
    beside.join();
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out, "");
    return result;
  }

  const Words kAsked = {"--cluster",     "gce-t4", "--workload", "mlp_mnist",  "--backend", "none",
                        "--local-batch", "8",      "--count",    "2",          "--steps",   "12",
                        "--time",        "0.1 s",  "--output",   "fitted.yaml"};
  std::string asked_steps_ = "12";
  TempFolder folder_;
};

TEST_F(FreshCli, OneCommandMeasuresFitsAndJudges) {
  const ProcessResult first = Both({"--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json json = Json::parse(first.out);
  EXPECT_EQ(json["network"]["profile"], "fresh/network.json");
  EXPECT_EQ(json["steps"]["runs"].size(), 4U);  // two, and each host alone
  // The goal, and the goal with four times as many micro-steps.
  EXPECT_EQ(json["judged"]["runs"].size(), 2U);
  EXPECT_EQ(json["evaluation"]["overall"]["runs"], 2);
  EXPECT_EQ(json["fit"]["runs"], 4);
  EXPECT_FALSE(json["next"]["runs_header"].empty());
  for (const auto& [name, path] : json["files"].items()) {
    EXPECT_EQ(access(folder_.Path(path.get<std::string>()).c_str(), R_OK), 0) << name;
  }
  const std::vector<stepcast::Run> judged = ReadRuns(folder_.Path("fresh/judged.csv"));
  ASSERT_EQ(judged.size(), 2U);
  EXPECT_EQ(judged[0].plan.workers(), 2);
  EXPECT_EQ(judged[1].plan.accumulation_steps, 4);

  // What judges the fit is not among what was fitted.
  for (const stepcast::Run& run : ReadRuns(folder_.Path("fresh/runs.csv"))) {
    for (const stepcast::Run& kept : judged) {
      EXPECT_FALSE(run.plan.placement == kept.plan.placement &&
                   run.plan.local_batch == kept.plan.local_batch &&
                   run.plan.accumulation_steps == kept.plan.accumulation_steps);
    }
  }

  // Once more, in words: what was measured is taken over.
  const ProcessResult again = Both({});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("stage 2 of 8, done before: stepcast plan"), std::string::npos)
      << again.err;
  EXPECT_NE(again.out.find("cluster: fitted.yaml"), std::string::npos) << again.out;
  EXPECT_EQ(ReadRuns(folder_.Path("fresh/runs.csv")).size(), 4U);
  EXPECT_EQ(ReadRuns(folder_.Path("fresh/judged.csv"))[0].step_time.si(), judged[0].step_time.si());

  // A run on more hosts than there are is none, which the exit code says behind all that follows.
  std::ofstream(folder_.Path("fresh/wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
         "mlp_mnist,t4,1,0,none,8,STEP_TIME\n"
         "mlp_mnist,t4,1-1,0,ring,4,STEP_TIME\n"
         "mlp_mnist,t4,1-1-1,0,ring,8,STEP_TIME\n";
  const ProcessResult in_part = Both({});
  EXPECT_EQ(in_part.exit_code, 1) << in_part.err;
  EXPECT_NE(in_part.err.find("stage 8 of 8"), std::string::npos) << in_part.err;
  EXPECT_EQ(ReadRuns(folder_.Path("fresh/runs.csv")).size(), 2U);
}

// What was measured with other options is set aside, and an answer of an earlier call is none.
TEST_F(FreshCli, OtherOptionsMeasureAnew) {
  // What another command has left under the same name is not this one's.
  std::filesystem::create_directory(folder_.Path("fresh"));
  folder_.Write("fresh/wanted.csv", "of another\n");
  folder_.Write("fresh/stages.json", R"({"wanted": "stepcast plan of another"})");
  const ProcessResult first = Both({"--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("stage 2 of 8: stepcast plan"), std::string::npos) << first.err;
  const std::vector<stepcast::Run> before = ReadRuns(folder_.Path("fresh/runs.csv"));
  asked_steps_ = "5";
  const ProcessResult result = Both({});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("fresh/runs.csv was measured otherwise"), std::string::npos)
      << result.err;
  const std::vector<stepcast::Run> now = ReadRuns(folder_.Path("fresh/runs.csv"));
  EXPECT_EQ(ReadRuns(folder_.Path("fresh/runs.csv.before")).size(), before.size());
  ASSERT_EQ(now.size(), before.size());
  EXPECT_NE(now[0].source.find("5 steps behind"), std::string::npos) << now[0].source;
  EXPECT_NE(access(folder_.Path("fresh/answer-steps.json").c_str(), R_OK), 0);
}

// It is read strictly: what nests without end would use up the stack of whoever writes it anew.
TEST_F(FreshCli, AListOfFinishedCommandsIsOne) {
  std::filesystem::create_directory(folder_.Path("fresh"));
  const std::string deep = R"({"wanted": )" + std::string(1'000'000, '[');
  const std::string deep_and_whole = deep + std::string(1'000'000, ']') + "}";
  for (const std::string& text :
       {std::string("[]"), std::string(R"({"wanted": 1})"), deep, deep_and_whole}) {
    folder_.Write("fresh/stages.json", text);
    const ProcessResult result = Run(0, 2, FreeMaster(), kAsked, "1s");
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("fresh/stages.json"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("the file as it was written, or none"), std::string::npos)
        << result.err;
  }
}

TEST_F(FreshCli, ServersTakePartWhereThePlanHasThem) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  const ProcessResult result =
      Both({"--strategy", "ps-sync", "--servers", "1", "--sharding", "even", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<stepcast::Run> judged = ReadRuns(folder_.Path("fresh/judged.csv"));
  ASSERT_EQ(judged.size(), 2U);
  EXPECT_EQ(judged[0].plan.strategy, Strategy::kPsSync);
  EXPECT_EQ(judged[0].plan.workers(), 1);
  EXPECT_EQ(judged[0].plan.servers, 1);
  EXPECT_EQ(judged[0].plan.server.sharding, Sharding::kEven);
  EXPECT_TRUE(Json::parse(result.out)["judged"]["runs"][0].contains("servers"));
}

// Of three hosts one never comes: neither rank 0 nor the host that came goes on to another stage.
TEST_F(FreshCli, ANetworkThatWasNotMeasuredEndsTheWayOnAllHosts) {
  const std::string master = FreeMaster();
  ProcessResult other;
  std::thread beside([&] { other = Run(1, 3, master, {}, "20s"); });
  const ProcessResult first =
      RunProcess(Words{STEPCAST_PROGRAM, "calibrate", "--fresh", "--hosts", "a,b,c", "--master",
                       master, "--bind", "lo", "--wait", "2s"} +
                     kAsked,
                 {.folder = folder_.Path("."), .variables = {kToken}});
  beside.join();
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_NE(first.err.find("on c: stepcast calibrate --fresh --rank 2 --of 3 --master " + master +
                           " --bind lo --wait 2s\n"),
            std::string::npos)
      << first.err;
  EXPECT_NE(first.err.find("1 of 3 hosts did not come: c"), std::string::npos) << first.err;
  EXPECT_EQ(first.err.find("stage 2"), std::string::npos) << first.err;
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("has ended: 1 of 3 hosts did not come: c"), std::string::npos)
      << other.err;
  EXPECT_EQ(other.err.find("probe steps"), std::string::npos) << other.err;
}

// Where there is no rank 0, a host says for whom it waits, and not for longer than it was told.
TEST_F(FreshCli, AHostDoesNotWaitForEverForAFirstThatIsNotThere) {
  const std::string master = FreeMaster();
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = Run(1, 2, master, {}, "2s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("waiting for rank 0 at " + master +
                            ", 2 s at most (--wait): cannot reach " + master),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("is rank 0 started, and its port open?"), std::string::npos)
      << result.err;
}

// While the first host does what the others have no part in, they wait, for longer than --wait.
TEST_F(FreshCli, AHostWaitsForAFirstThatIsBusy) {
  const std::string master = FreeMaster();
  network::MeetingOptions first;
  const std::string token = kToken;
  first.token = token.substr(token.find('=') + 1);
  const std::size_t colon = master.rfind(':');
  first.master =
      network::Resolve(master.substr(0, colon), std::stoi(master.substr(colon + 1))).front();
  auto held = std::make_unique<network::HoldOff>(first, "measures its compute first");
  std::thread beside([&] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    held.reset();
  });
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = Run(1, 2, master, {}, "1s");
  beside.join();
  EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_EQ(result.exit_code, 1);
  const std::string said =
      "waiting for rank 0 at " + master + ", which measures its compute first\n";
  const std::size_t at = result.err.find(said);
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(said, at + 1), std::string::npos) << "once:\n" << result.err;
}

// What judges the fit: the goal, the goal with rarer exchanges, and of four hosts or more the half.
TEST_F(FreshCli, TheRunsThatJudgeAreWrittenFirst) {
  const std::vector<std::pair<std::string, std::string>> halves = {{"1-1", ""},
                                                                   {"1-1-1", ""},
                                                                   {"1-1-1-1", "1-1"},
                                                                   {"1-1-1-1-1", "1-1"},
                                                                   {"1-1-1-1-1-1", "1-1-1"}};
  for (const auto& [all, half] : halves) {
    const int hosts = static_cast<int>(all.size() + 1) / 2;
    EXPECT_EQ(Run(0, hosts, FreeMaster(), kAsked, "0.3s").exit_code, 1) << "nobody else comes";
    std::string rows = "mlp_mnist,t4," + all + ",allreduce,0,8,,STEP_TIME\n" + "mlp_mnist,t4," +
                       all + ",allreduce,0,8,4,STEP_TIME\n";
    if (!half.empty()) rows += "mlp_mnist,t4," + half + ",allreduce,0,8,,STEP_TIME\n";
    const std::string written = FileContent(folder_.Path("fresh/to-judge.csv"));
    EXPECT_EQ(written.substr(written.find('\n') + 1), rows);
  }
}

// A command that did not come to its own end has not done its work.
TEST_F(FreshCli, AStageThatIsKilledEndsTheWay) {
  folder_.Write("ssh", "#!/bin/sh\nkill -KILL $PPID\n");
  std::filesystem::permissions(folder_.Path("ssh"), std::filesystem::perms::owner_all);
  const ProcessResult result =
      RunProcess(Words{"/usr/bin/env", "PATH=" + folder_.Path(".") + ":/usr/bin:/bin",
                       STEPCAST_PROGRAM, "calibrate", "--fresh", "--hosts", "a,b", "--ssh",
                       "--master", FreeMaster(), "--wait", "20s"} +
                     kAsked,
                 {.folder = folder_.Path(".")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("stage 1 of 8"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("stage 2"), std::string::npos) << result.err;
}

// Who measures compute too has a stage more, the first.
TEST_F(FreshCli, ComputeIsAStageOfItsOwn) {
  Words asked = kAsked;
  *(std::find(asked.begin(), asked.end(), "none")) = "onednn";
  const ProcessResult result = Run(0, 2, FreeMaster(), asked + Words{"--budget", "0.1 s"}, "0.3s");
  EXPECT_NE(result.exit_code, 0) << "nobody else comes";
  EXPECT_NE(result.err.find("stage 1 of 9: stepcast microbench --batch=8,2 "), std::string::npos)
      << result.err;
}

TEST_F(FreshCli, WhatIsMissingOrMeansNothingIsSaid) {
  const Words fresh = {"calibrate", "--fresh", "--hosts", "127.0.0.1,b"};
  ExpectError(fresh, {"--output: is required"});
  ExpectError(fresh + kAsked + Words{"--runs", "x.csv"}, {"--runs: has no meaning beside --fresh"});
  ExpectError({"calibrate", "--cluster", "gce-t4", "--budget", "1 s"},
              {"--budget: has no meaning without --fresh"});
  ExpectError({"calibrate", "--fresh"}, {"--hosts: is required"});
  ExpectError(fresh + kAsked + Words{"--profile", "x.jsonl"},
              {"--backend: 'none' has no meaning beside --profile"});
  ExpectError(fresh + kAsked + Words{"--budget", "1 s"},
              {"--budget: '1 s' has no meaning where no compute is measured"});
  // At once, and not after what would be measured before.
  const struct {
    const char* option;
    const char* value;
  } wrong[] = {{"--count", "0"},
               {"--count", "x"},
               {"--steps", "2"},
               {"--time", "3"},
               {"--prior", "nope=3"},
               {"--fix", "link_latency"},
               {"--output", "/nope/f.yaml"}};
  for (const auto& [option, value] : wrong) {
    Words asked = kAsked;
    const auto given = std::find(asked.begin(), asked.end(), option);
    if (given == asked.end()) {
      asked = asked + Words{option, value};
    } else {
      *(given + 1) = value;
    }
    const ProcessResult result = RunProcess(Words{STEPCAST_PROGRAM} + fresh + asked,
                                            {.folder = folder_.Path("."), .variables = {kToken}});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_NE(result.err.find(option), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("stage 1"), std::string::npos) << result.err;
  }
  ExpectError(fresh + kAsked + Words{"--strategy", "ps-sync", "--servers", "2"},
              {"--servers: '2' leaves none of 2 hosts to a worker"});
  ExpectError(fresh + kAsked + Words{"--folder", "/dev/null"},
              {"--folder: '/dev/null' cannot be made"});
}

// Four hosts on 100 Mbit/s: forecasts of runs that were not fitted, from nothing but this.
class FreshLab : public FreshCli {};

TEST_F(FreshLab, ForecastsWhatItHasNotFitted) {
  if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
  LabConditions conditions;
  conditions.hosts = 4;
  conditions.rate = 100e6 / 8;
  conditions.rtt_s = 2e-3;
  std::ofstream(folder_.Path("lab.yaml"))
      << "name: lab\nnodes: 4\ndevices_per_node: 1\ndevice: t4\nlink: {bandwidth: 1 Gbit/s}\n";
  double error = 1;
  bool busy = false;
  // Once more, where the machine was too busy to be the network that was set.
  for (int attempt = 0; attempt < 2 && error > 0.08; ++attempt) {
    const std::string folder = "try" + std::to_string(attempt);
    NetworkLab lab(conditions, [&](int host) {
      Words asked = kAsked + Words{"--folder", folder, "--json"};
      asked[1] = "lab.yaml";
      const ProcessResult result =
          Run(host, 4, NetworkLab::AddressOf(0) + ":29411", host > 0 ? Words{} : asked);
      if (host == 0) std::ofstream(folder_.Path("answer")) << result.out;
      if (result.exit_code != 0) std::fputs(result.err.c_str(), stderr);
      return result.exit_code;
    });
    for (const int code : lab.Wait()) EXPECT_EQ(code, 0);
    std::ifstream in(folder_.Path("answer"));
    const Json json = Json::parse(in);
    error = json["evaluation"]["overall"]["mape"].get<double>();
    EXPECT_EQ(json["evaluation"]["overall"]["runs"], 3);
    busy = lab.LateShare() > 0.1;
  }
  if (busy && error > 0.08) GTEST_SKIP() << "the machine is too busy to be the network";
  EXPECT_LT(error, 0.08);
}

}  // namespace
}  // namespace stepcast
