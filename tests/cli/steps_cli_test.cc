// stepcast probe steps, on the loopback: from what a plan asks for to a fit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "data/io/runs.h"
#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/cli/worker.h"

namespace stepcast {
namespace {

using program::ExpectText;
using program::FreeMaster;
using program::HasWorker;
using program::Json;
using program::kToken;
using program::Words;
using program::operator+;

constexpr const char* kHeader =
    "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

class StepsCli : public testing::Test {
 protected:
  ProcessResult Run(const Words& words) const {
    return RunProcess(Words{STEPCAST_PROGRAM, "probe", kind_} + words,
                      {.folder = folder_.Path("."), .variables = {kToken}});
  }
  // Rank 0 of two hosts, with the other beside it; each with words of its own.
  ProcessResult Both(const Words& of_first, const Words& of_other) const {
    const Words host = {"--of", "2", "--master", FreeMaster(), "--wait", "20s", "--rank"};
    ProcessResult other;
    std::thread beside([&] { other = Run(host + Words{"1"} + of_other); });
    const ProcessResult result =
        Run((kind_ == "steps" ? Words{"wanted.csv"} : Words{}) + host +
            Words{"0", "--cluster", "gce-t4", "--steps", "12", "--warm-up", "1"} + of_first);
    beside.join();
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out, "");
    return result;
  }
  ProcessResult Both(const Words& words) const { return Both(words + Words{"--json"}, {}); }
  ProcessResult BothNamed() const { return Both({"--name", "one"}, {"--name", "two"}); }
  void Wants(const std::string& rows) const {
    std::ofstream(folder_.Path("wanted.csv")) << kHeader << rows;
  }

  std::string kind_ = "steps";
  TempFolder folder_;
};

TEST_F(StepsCli, WantedRunsBecomeRunsThatAFitReads) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
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

// How long it takes is told before anything runs: all steps, those of the warm-up too, of all runs.
TEST_F(StepsCli, TellsHowLongItTakes) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  double step_s = 0;
  std::string rows;
  for (const char* batch : {"128", "96"}) {  // on more hosts than there are
    rows += std::string("vgg16,t4,1-1-1,0,ring,") + batch + ",STEP_TIME\n";
    step_s +=
        program::JsonOf({"predict", "--cluster", "gce-t4", "--workload", "vgg16", "--strategy",
                         "ring", "--placement", "1-1-1", "--local-batch", batch})
            .at("step_time_s")
            .get<double>();
  }
  ASSERT_GT(step_s, 2) << "or the text is too coarse";
  Wants(rows);
  const ProcessResult result = Both({});
  EXPECT_EQ(result.exit_code, 1);
  const std::string said =
      "2 hosts, 2 runs: about " + FormatDuration(Seconds(std::ceil((1 + 12) * step_s))) + "\n";
  EXPECT_NE(result.err.find(said), std::string::npos) << result.err << "lacks: " << said;
}

// Thirty steps behind three of warm-up, where nobody says how many.
TEST_F(StepsCli, TakesThirtyStepsBehindThree) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  const double step_s =
      program::JsonOf({"predict", "--cluster", "gce-t4", "--workload", "vgg16", "--strategy",
                       "ring", "--placement", "1-1-1", "--local-batch", "128"})
          .at("step_time_s");
  Wants("vgg16,t4,1-1-1,0,ring,128,STEP_TIME\n");
  const ProcessResult result = Run({"wanted.csv", "--rank", "0", "--of", "2", "--master",
                                    FreeMaster(), "--wait", "0.3s", "--cluster", "gce-t4"});
  EXPECT_EQ(result.exit_code, 1);
  const std::string said =
      "2 hosts, 1 runs: about " + FormatDuration(Seconds(std::ceil(33 * step_s))) + "\n";
  EXPECT_NE(result.err.find(said), std::string::npos) << result.err << "lacks: " << said;
}

// In words: the parts of a step beside its forecast, what was measured, and where it is written.
TEST_F(StepsCli, PartsAreToldInWords) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  Wants(
      "mlp_mnist,t4,1,0,none,1,STEP_TIME\n"
      "mlp_mnist,t4,1-1,0,ring,1,STEP_TIME\n");
  const ProcessResult result = BothNamed();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Parts of the steps\n", 0), 0U) << result.out;
  EXPECT_EQ(program::RowOf(result.out, "run"), (Words{"run", "forward", "backward", "exposed",
                                                      "update", "exchanging", "step", "forecast"}));
  EXPECT_EQ(result.out.find("Parameter servers"), std::string::npos) << "there is none";
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("runs.csv"));
  ASSERT_EQ(runs.size(), 2U);
  // What is waited for is what one worker alone computes: the exchange takes its share by itself.
  const Json compute = program::JsonOf({"predict", "--cluster", "gce-t4", "--workload", "mlp_mnist",
                                        "--placement", "1", "--local-batch", "1"})
                           .at("breakdown");
  const std::string names[] = {"mlp_mnist: 1 worker, local batch 1",
                               "mlp_mnist: 2 workers (2 x 1), ring, local batch 1"};
  const std::size_t results = result.out.find("2 runs of a training\n");
  ASSERT_NE(results, std::string::npos) << result.out;
  for (std::size_t i = 0; i < 2; ++i) {
    const Json forecast = program::JsonOf(
        {"predict", "--cluster", "gce-t4", "--workload", "mlp_mnist", "--strategy",
         i == 0 ? "none" : "ring", "--placement", i == 0 ? "1" : "1-1", "--local-batch", "1"});
    const Words parts = program::RowOf(result.out, names[i]);
    ASSERT_EQ(parts.size(), 8U) << result.out;
    EXPECT_EQ(parts[3] == "0 s", i == 0) << "nobody to exchange with";
    EXPECT_EQ(parts[5] == "0 s", i == 0);
    EXPECT_EQ(parts[6], FormatDuration(runs[i].step_time));
    EXPECT_EQ(parts[7], FormatDuration(Seconds(forecast.at("step_time_s").get<double>())));
    const Words of_run = program::RowOf(result.out.substr(results), names[i]);
    ASSERT_EQ(of_run.size(), 7U) << result.out;
    EXPECT_EQ(of_run[1], "12");
    EXPECT_EQ(of_run[2], FormatDuration(runs[i].step_time));
    EXPECT_EQ(of_run[6], "measured");
    char waited[100];
    std::snprintf(waited, sizeof waited, "; compute waited for: %.6g s forward, %.6g s backward",
                  compute.at("forward_s").get<double>(), compute.at("backward_s").get<double>());
    EXPECT_TRUE(runs[i].source.ends_with(std::string(", 12 steps behind 1 of Gloo's ring on ") +
                                         (i == 0 ? "one" : "one+two") + waited))
        << runs[i].source << waited;
  }
  EXPECT_TRUE(result.out.ends_with("- runs: runs.csv\n")) << result.out;
}

// Servers have a table of their own: their phases beside the forecasts, and how often they update.
TEST_F(StepsCli, ServersAreToldInWords) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  Wants("mlp_mnist,t4,1,1,ps-sync,1,STEP_TIME\n");
  const ProcessResult result = BothNamed();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::size_t at = result.out.find("Parameter servers\n");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string table = result.out.substr(at);
  EXPECT_EQ(program::RowOf(table, "run"),
            (Words{"run", "push", "forecast", "update", "forecast", "pull", "forecast", "held back",
                   "updates [1/s]", "staleness"}));
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("runs.csv"));
  ASSERT_EQ(runs.size(), 1U);
  const Json forecast =
      program::JsonOf({"predict", "--cluster", "gce-t4", "--workload", "mlp_mnist", "--strategy",
                       "ps-sync", "--servers", "1", "--placement", "1", "--local-batch", "1"})
          .at("server_times");
  const auto time = [&](const char* key) {
    return FormatDuration(Seconds(forecast.at(key).get<double>()));
  };
  const Words row =
      program::RowOf(table, "mlp_mnist: 1 worker, ps-sync with 1 server, local batch 1");
  ASSERT_EQ(row.size(), 10U) << table;
  EXPECT_EQ(row[2], time("push_s"));
  EXPECT_EQ(row[4], time("update_s"));
  EXPECT_EQ(row[6], time("pull_s"));
  EXPECT_EQ(row[8], FormatNumber(1 / runs[0].step_time.si()));
  EXPECT_EQ(row[9], "0") << "one worker waits for its own update";
  EXPECT_NE(runs[0].source.find(" of gRPC's servers on two, workers on one; compute waited for: "),
            std::string::npos)
      << runs[0].source;
}

// A worker alone waits as long as the forecast says that it computes, in every micro-step.
TEST_F(StepsCli, AWorkerAloneTakesAsLongAsItsForecast) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,accumulation_steps,step_time_s\n"
         "resnet18,t4,1,0,none,8,1,STEP_TIME\n"
         "resnet18,t4,1,0,none,8,3,STEP_TIME\n";
  const ProcessResult result = Both({});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Json& run : Json::parse(result.out)["runs"]) {
    const double longer =
        run["step_time_s"].get<double>() / run["predicted_step_time_s"].get<double>();
    EXPECT_GT(longer, 0.99) << run;
    EXPECT_LT(longer, 1.5) << run;
  }
}

// However many steps there were before a host was lost, they are no run: which of them it slowed
// down nobody knows.
TEST_F(StepsCli, ARunThatLosesAHostHasFailed) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  Wants("resnet18,t4,1-1,0,ring,8,STEP_TIME\n");
  const std::string master = FreeMaster();
  const Words host = {"--of", "2", "--master", master, "--wait", "20s", "--rank"};
  std::thread beside([&] {
    RunProcess(Words{"/usr/bin/timeout", "-s", "KILL", "5", STEPCAST_PROGRAM, "probe", "steps"} +
                   host + Words{"1", "--name", "lost"},
               {.folder = folder_.Path("."), .variables = {kToken}});
  });
  const ProcessResult result = Run(
      Words{"wanted.csv", "--cluster", "gce-t4", "--steps", "2000", "--json"} + host + Words{"0"});
  beside.join();
  EXPECT_EQ(result.exit_code, 1);
  if (result.out.empty()) GTEST_SKIP() << "the host was lost before it had come: " << result.err;
  const Json run = Json::parse(result.out).at("runs")[0];
  EXPECT_EQ(run.at("outcome"), "failed") << run;
  EXPECT_NE(run.at("problem"), "") << run;
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("runs.csv")) &&
               !ReadRuns(folder_.Path("runs.csv")).empty());
}

// Transfers and bytes as they are counted: each phase sends the model once for each worker, in a
// message of each bucket and server.
TEST_F(StepsCli, ServersAreTimedBesideTheirForecasts) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,colocated_servers,sharding,"
         "pipelined_servers,bucket_mib,staleness_bound,step_time_s\n"
         "mlp_mnist,t4,1,1,ps-sync,1,,,,,,STEP_TIME\n"
         "mlp_mnist,t4,1-1,2,ps-sync,1,yes,even,,one-message,,STEP_TIME\n"
         "mlp_mnist,t4,1-1,2,ps-sync,1,yes,tensor,yes,1,,STEP_TIME\n"
         "mlp_mnist,t4,1-1,2,ps-async,1,yes,tensor,,1,,STEP_TIME\n"
         "mlp_mnist,t4,1-1,1,ps-sync,1,,,,,,STEP_TIME\n";
  const ProcessResult result = Both({});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["runs"].size(), 5U);
  EXPECT_EQ(json["runs"][4]["problem"], "it needs 2 hosts for workers and 1 for servers, of 2");
  const double bytes = 4 * 669'706.0;
  for (int i = 0; i < 4; ++i) {
    const Json& run = json["runs"][i];
    ASSERT_EQ(run["outcome"], "measured") << run;
    const Json& servers = run["servers"];
    const double workers = i == 0 ? 1 : 2;
    EXPECT_NEAR(servers["bytes"].get<double>(), 2 * workers * bytes, 100);
    EXPECT_EQ(servers["hosts"].size(), i == 0 ? 1U : 2U);
    EXPECT_GT(servers["push_s"].get<double>(), 0);
    EXPECT_GT(servers["pull_s"].get<double>(), 0);
    EXPECT_GT(servers["update_s"].get<double>(), 0);
    EXPECT_GT(servers["predicted"]["push_s"].get<double>(), 0);
    const double updates = (i == 3 ? workers : 1) / run["step_time_s"].get<double>();
    EXPECT_NEAR(servers["updates_per_s"].get<double>() / updates, 1, 1e-6);
    const double staleness = servers["mean_staleness"].get<double>();
    // The other's update, or half of it where a cycle is all exchange.
    EXPECT_GE(staleness, i == 3 ? 0.2 : 0);
    EXPECT_LE(staleness, i == 3 ? 1.3 : 0);
  }
  // n w transfers in a phase.
  EXPECT_NE(json["runs"][0]["servers"]["hosts"], json["runs"][0]["hosts"]);
  EXPECT_EQ(json["runs"][1]["servers"]["messages"], 2 * 2 * 2);
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("runs.csv"));
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_NE(runs[1].source.find("of gRPC's servers on "), std::string::npos) << runs[1].source;
  ExpectText({"calibrate", "--cluster", "gce-t4", "--runs", folder_.Path("runs.csv"), "--output",
              folder_.Path("fit.yaml")},
             {"written to"});
}

// Each part is pulled as soon as it was pushed where servers are pipelined; else pulls begin behind
// the last push, and the two phases have no time in common.
TEST_F(StepsCli, PullsBeginBehindThePushesOrBesideThem) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,sharding,pipelined_servers,"
         "bucket_mib,step_time_s\n"
         "mlp_mnist,t4,1,1,ps-sync,1,tensor,,1,STEP_TIME\n"
         "mlp_mnist,t4,1,1,ps-sync,1,tensor,yes,1,STEP_TIME\n";
  const Json runs = Json::parse(Both({}).out)["runs"];
  ASSERT_EQ(runs.size(), 2U);
  const auto together_s = [&](int i) {
    EXPECT_EQ(runs[i].at("outcome"), "measured") << runs[i];
    const Json& servers = runs[i].at("servers");
    return servers["push_s"].get<double>() + servers["pull_s"].get<double>() -
           runs[i]["parts"]["synchronising_s"].get<double>();
  };
  EXPECT_NEAR(together_s(0), 0, 1e-9);
  EXPECT_GT(together_s(1), 1e-6);
}

// What the server takes to update is no part of the push that it answers, and is waited for.
TEST_F(StepsCli, AnUpdateIsNoPartOfThePush) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,sharding,bucket_mib,step_time_s\n"
         "mlp_mnist,t4,1,1,ps-async,1,even,one-message,STEP_TIME\n";
  const Json run = Json::parse(Both({}).out)["runs"][0];
  ASSERT_EQ(run["outcome"], "measured") << run;
  const double update_s = run["servers"]["update_s"];
  EXPECT_GT(update_s, 1e-5);
  EXPECT_GT(
      run["parts"]["exposed_sync_s"].get<double>() - run["parts"]["synchronising_s"].get<double>(),
      0.99 * update_s)
      << run;
}

// A step of workers who do not wait for each other is w over the rate of updates.
TEST_F(StepsCli, AsynchronousWorkersOfTwoPacesAreMeasured) {
  if (!HasWorker("stepcast-parameters")) GTEST_SKIP() << "built without gRPC";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,colocated_servers,slow_nodes,"
         "slow_speed,staleness_bound,step_time_s\n"
         "mlp_mnist,t4,1-1,1,ps-async,20000,yes,1,0.4,,STEP_TIME\n"
         "mlp_mnist,t4,1-1,1,ps-async,20000,yes,1,0.4,1,STEP_TIME\n";
  const ProcessResult result = Both({});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json runs = Json::parse(result.out)["runs"];
  // With a bound the quick one is held back, and all move at the pace of the slow one.
  const auto held = [&](int i) { return runs[i]["servers"]["held_back_s"].get<double>(); };
  EXPECT_LT(held(0), held(1));
  const auto bounded = runs[1]["servers"]["cycles_s"].get<std::vector<double>>();
  ASSERT_EQ(bounded.size(), 2U);
  EXPECT_NEAR(bounded[0] / bounded[1], 1, 0.25);
  const Json& run = runs[0];
  ASSERT_EQ(run["outcome"], "measured") << run;
  const auto cycles = run["servers"]["cycles_s"].get<std::vector<double>>();
  ASSERT_EQ(cycles.size(), 2U);
  EXPECT_GT(cycles[1], cycles[0]);
  const double step_s = 2 / (1 / cycles[0] + 1 / cycles[1]);
  EXPECT_NEAR(run["step_time_s"].get<double>() / step_s, 1, 1e-6);
  EXPECT_NEAR(run["servers"]["updates_per_s"].get<double>() * step_s, 2, 1e-6);
  const Json& predicted = run["servers"]["predicted"];
  EXPECT_GT(predicted["slow_cycle_s"].get<double>(), predicted["fast_cycle_s"].get<double>());
}

// What is sent of compressed gradients, whose coding is waited for.
TEST_F(StepsCli, CompressedGradientsAreAsManyBytesAsAreSent) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  std::ofstream(folder_.Path("wanted.csv"))
      << "workload,device,placement,servers,strategy,local_batch,compress,compress_gbit_per_s,"
         "step_time_s\n"
         "mlp_mnist,t4,1-1,0,ring,1,fp16,2,STEP_TIME\n"
         "mlp_mnist,t4,1-1,0,ring,1,powersgd=2,2,STEP_TIME\n";
  const Json json = Json::parse(Both({}).out);
  ASSERT_EQ(json["runs"].size(), 2U);
  const auto bytes = [&](int run) {
    double sum = 0;
    for (const Json& bucket : json["runs"][run]["buckets"]) sum += bucket["bytes"].get<double>();
    return sum;
  };
  EXPECT_NEAR(bytes(0), 2 * 669'706.0, 16);
  // Layers of 784 x 512, 512 x 512 and 512 x 10: two numbers of each row and column, and biases.
  const double factors = 2.0 * ((784 + 512) + (512 + 512) + (512 + 10));
  EXPECT_NEAR(bytes(1), 4 * (factors + 512 + 512 + 10), 16);
  // 2.7 MB at 2 Gbit/s.
  EXPECT_GT(json["runs"][1]["parts"]["update_s"].get<double>(), 0.0107);
}

TEST_F(StepsCli, MessagesAreTimedBesideTheirForecasts) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  kind_ = "collectives";
  const ProcessResult result = Both({"--sizes", "1 KiB,64 MiB"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["runs"].size(), 2U);
  const std::vector<stepcast::Run> runs = ReadRuns(folder_.Path("messages.csv"));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].workload, "message_1024");
  EXPECT_EQ(runs[1].workload, "message_67108864");
  EXPECT_EQ(runs[1].plan.workers(), 2);
  EXPECT_LT(runs[0].step_time, runs[1].step_time);
  EXPECT_NEAR(json["runs"][1]["parts"]["synchronising_s"].get<double>() / runs[1].step_time.si(), 1,
              0.2);
  const ProcessResult odd =
      Run({"--hosts", "127.0.0.1,b", "--cluster", "gce-t4", "--sizes", "5 B"});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_NE(odd.err.find("--sizes: '5 B' is no message"), std::string::npos) << odd.err;
}

// From 1 KiB to 256 MiB, four times as large each.
TEST_F(StepsCli, WithoutSizesThereAreTenMessages) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  kind_ = "collectives";
  const ProcessResult result = Run({"--rank", "0", "--of", "2", "--master", FreeMaster(), "--wait",
                                    "0.3s", "--cluster", "gce-t4"});
  EXPECT_NE(result.exit_code, 0) << "nobody else comes";
  EXPECT_NE(result.err.find("2 hosts, 10 runs: about "), std::string::npos) << result.err;
}

// Of two workers each sends a half of the message twice: as much as the message.
TEST_F(StepsCli, MessagesOfTwoAreAsFastOnTheWire) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  kind_ = "collectives";
  const ProcessResult result = Both({"--sizes", "4 MiB"}, {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t at = result.out.find("\n  4 MiB ");
  ASSERT_NE(at, std::string::npos) << result.out;
  const std::string row = result.out.substr(at, result.out.find('\n', at + 1) - at);
  const std::regex rates("([0-9.,]+ [MG]bit/s) +([0-9.,]+ [MG]bit/s) *$");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(row, match, rates)) << row;
  EXPECT_EQ(match[1], match[2]);
}

TEST_F(StepsCli, WhatItCannotMeasureIsRefusedWithItsRow) {
  if (!HasWorker("stepcast-gloo")) GTEST_SKIP() << "built without Gloo";
  const struct {
    const char* row;
    const char* fragment;
  } cases[] = {
      {"resnet50,t4,1-1,1,byteps,8,STEP_TIME\n", "wanted.csv:2: strategy: 'byteps'"},
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
  std::ofstream(folder_.Path("wanted.csv")) << "workload,device,placement,servers,strategy,local_"
                                               "batch,slow_nodes,slow_speed,step_time_s\n"
                                               "resnet50,t4,1-1,0,ring,1024,1,0.001,STEP_TIME\n";
  const ProcessResult long_wait =
      Run({"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4"});
  EXPECT_EQ(long_wait.exit_code, 2);
  EXPECT_NE(long_wait.err.find("makes a worker compute for"), std::string::npos) << long_wait.err;
  std::ofstream(folder_.Path("wanted.csv")) << "workload,device,placement,servers,strategy,local_"
                                               "batch,slow_nodes,slow_speed,slow_local_batch,"
                                               "step_time_s\n"
                                               "resnet50,t4,1-1,0,ring,8,1,0.5,4,STEP_TIME\n";
  const ProcessResult shares = Run({"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4"});
  EXPECT_EQ(shares.exit_code, 2);
  EXPECT_NE(shares.err.find("slow_local_batch: '4' is not what probe steps can measure"),
            std::string::npos)
      << shares.err;
  for (const char* column : {"multicast", "in_network_aggregation"}) {
    std::ofstream(folder_.Path("wanted.csv"))
        << "workload,device,placement,servers,strategy,local_batch," << column
        << ",step_time_s\nresnet50,t4,1-1,1,ps-sync,8,yes,STEP_TIME\n";
    const ProcessResult result =
        Run({"wanted.csv", "--hosts", "127.0.0.1,b", "--cluster", "gce-t4"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(std::string(column) + ": 'yes' is not what"), std::string::npos)
        << result.err;
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
