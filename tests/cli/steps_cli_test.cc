// stepcast probe steps, on the loopback: from what a plan asks for to a fit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "data/io/runs.h"
#include "microbench/network/socket.h"
#include "tests/cli/program.h"

namespace stepcast {
namespace {

using program::ExpectText;
using program::Json;
using program::Words;
using program::operator+;

constexpr const char* kToken = "STEPCAST_PROBE_TOKEN=0123456789abcdef";
constexpr const char* kHeader =
    "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

class StepsCli : public testing::Test {
 protected:
  ProcessResult Run(const Words& words) const {
    return RunProcess(Words{STEPCAST_PROGRAM, "probe", "steps"} + words,
                      {.folder = folder_.Path("."), .variables = {kToken}});
  }
  // Rank 0 of two hosts, with the other beside it.
  ProcessResult Both(const Words& words) const {
    const std::string master =
        network::Socket::Listen(network::LocalAddress("127.0.0.1")).local().text();
    ProcessResult other;
    std::thread beside([&] {
      other = Run({"--rank", "1", "--of", "2", "--master", master, "--wait", "20s"});
    });
    const ProcessResult result =
        Run(Words{"wanted.csv", "--rank", "0", "--of", "2", "--master", master, "--wait", "20s",
                  "--cluster", "gce-t4", "--steps", "12", "--warm-up", "1", "--json"} +
            words);
    beside.join();
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out, "");
    return result;
  }
  void Wants(const std::string& rows) const {
    std::ofstream(folder_.Path("wanted.csv")) << kHeader << rows;
  }
  static bool IsBuilt() {
    const std::string program = STEPCAST_PROGRAM;
    const std::string beside =
        program.substr(0, program.rfind('/')) + "/../lib/stepcast/stepcast-gloo";
    return access(beside.c_str(), X_OK) == 0;
  }

  TempFolder folder_;
};

TEST_F(StepsCli, WantedRunsBecomeRunsThatAFitReads) {
  if (!IsBuilt()) GTEST_SKIP() << "built without Gloo";
  Wants(
      "mlp_mnist,t4,1,0,none,1,STEP_TIME\n"
      "mlp_mnist,t4,1-1,0,ring,1,STEP_TIME\n"
      "mlp_mnist,t4,1-1-1,0,ring,1,STEP_TIME\n");
  const ProcessResult result = Both({});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["runs"].size(), 3U);
  EXPECT_EQ(json["runs"][2]["outcome"], "failed");
  EXPECT_EQ(json["runs"][2]["problem"], "it needs 3 hosts of 2");
  for (int i = 0; i < 2; ++i) {
    const Json& run = json["runs"][i];
    EXPECT_EQ(run["outcome"], "measured");
    EXPECT_EQ(run["measured_steps"], 12);
    const Json& parts = run["parts"];
    double sum = 0;
    for (const char* part : {"forward_s", "backward_s", "exposed_sync_s", "update_s"}) {
      sum += parts[part].get<double>();
    }
    EXPECT_NEAR(sum / run["step_time_s"].get<double>(), 1, 1e-6);
    EXPECT_EQ(parts["synchronising_s"].get<double>() > 0, i == 1);
    double bytes = 0;
    for (const Json& bucket : run["buckets"]) bytes += bucket["bytes"].get<double>();
    // Four bytes for each of the network's 669,706 parameters.
    EXPECT_NEAR(bytes, i == 1 ? 4 * 669'706.0 : 0, 16);
  }
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("runs.csv"));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_NE(runs[1].source.find("probe steps"), std::string::npos) << runs[1].source;
  EXPECT_TRUE(runs[1].spread.p95);
  ExpectText({"calibrate", "--cluster", "gce-t4", "--runs", folder_.Path("runs.csv"), "--output",
              folder_.Path("fit.yaml")},
             {"written to"});
  // Once more: nothing is left to do but what failed.
  const Json again = Json::parse(Both({}).out);
  EXPECT_EQ(again["runs"][0]["outcome"], "taken over");
  EXPECT_EQ(again["runs"][1]["outcome"], "taken over");
  EXPECT_EQ(ReadRuns(folder_.Path("runs.csv")).size(), 2U);
}

TEST_F(StepsCli, WhatItCannotMeasureIsRefusedWithItsRow) {
  if (!IsBuilt()) GTEST_SKIP() << "built without Gloo";
  const struct {
    const char* row;
    const char* fragment;
  } cases[] = {
      {"resnet50,t4,1-1,1,ps-sync,8,STEP_TIME\n", "wanted.csv:2: strategy: 'ps-sync'"},
      {"resnet50,t4,1-1,0,tree,8,STEP_TIME\n", "strategy: 'tree'"},
      {"resnet50,t4,2-2,0,ring,8,STEP_TIME\n", "placement: '2-2'"},
      {"resnet50,v100,1-1,0,ring,8,STEP_TIME\n", "device: 'v100'"},
  };
  for (const auto& c : cases) {
    Wants(c.row);
    const ProcessResult result =
        Run({"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(c.fragment), std::string::npos) << result.err;
  }
  const ProcessResult none = Run({"--hosts", "127.0.0.1,b", "--cluster", "gce-t4"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("FILE: is required"), std::string::npos) << none.err;
  const ProcessResult other = Run({"wanted.csv", "--hosts", "a,b", "--flows", "3"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("--flows: has no meaning for steps"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace stepcast
