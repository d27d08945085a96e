// What other programs printed, as the program takes it in.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "data/io/machines.h"
#include "data/io/runs.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

std::string Sample(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
}

Words Steps(const std::string& sample, const Words& more = {}) {
  return Words{"import", "steps", Sample("step_log/" + sample)} + more;
}

double StepOf(const std::string& sample, const Words& more) {
  return JsonOf(Steps(sample, more)).value("step_time_s", -1.0);
}

TEST(ImportLogsCli, ALogBecomesARowOfRuns) {
  const TempFolder folder;
  const std::string output = folder.Path("runs.csv");
  const Words command =
      Steps("pytorch", {"--workload", "resnet50", "--device", "v100", "--local-batch", "32",
                        "--workers", "4", "--bandwidth", "10 Gbit/s", "--output", output});
  const Json json = JsonOf(command);
  EXPECT_EQ(json["form"], "PyTorch");
  EXPECT_EQ(json["output"], output);
  const std::vector<stepcast::Run> runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].workload, "resnet50");
  EXPECT_EQ(runs[0].device, "v100");
  EXPECT_EQ(runs[0].plan.workers(), 4);
  EXPECT_NEAR(runs[0].plan.link.bandwidth->in(kGigabitsPerSecond), 10, 1e-12);
  EXPECT_NEAR(runs[0].step_time.si(), 0.25, 1e-9);
  EXPECT_FALSE(runs[0].spread.p50) << "two steps show no quantiles";
  EXPECT_NE(runs[0].source.find("pytorch lines 4 to 5 (PyTorch): 2 times of single steps"),
            std::string::npos)
      << runs[0].source;
}

TEST(ImportLogsCli, SingleStepsGiveTheirQuantiles) {
  const TempFolder folder;
  std::string log;
  for (int i = 1; i <= 101; ++i)
    log += "step " + std::to_string(i) + " took 1" + (i < 101 ? "0" : "9") + "0 ms\n";
  const std::string path = folder.Write("own.log", log);
  const std::string output = folder.Path("runs.csv");
  const Json json = JsonOf({"import", "steps", path, "--pattern", "took (?<ms>[0-9]+) ms",
                            "--warm-up", "1", "--device", "v100", "--workload", "resnet50",
                            "--local-batch", "8", "--output", output});
  EXPECT_EQ(json["warm_up"], 1);
  EXPECT_EQ(json["numbers"], 100);
  EXPECT_NEAR(json["step_time_s"].get<double>(), 0.1009, 1e-12);
  EXPECT_NEAR(json["p50_s"].get<double>(), 0.1, 1e-12);
  const std::vector<stepcast::Run> runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_NEAR(runs[0].spread.p95->si(), 0.1, 1e-12);
  EXPECT_EQ(runs[0].plan.strategy, Strategy::kNone) << "one device exchanges nothing";
}

TEST(ImportLogsCli, MeansOverStepsHaveNoQuantiles) {
  const TempFolder folder;
  std::string log;
  for (int i = 1; i <= 60; ++i) {
    log += "step " + std::to_string(50 * i) + " took 1" + std::to_string(i % 7) + "0 ms\n";
  }
  const std::string path = folder.Write("own.log", log);
  const Words import = {"import", "steps", path, "--pattern", "took (?<ms>[0-9]+) ms"};
  const Json unknown = JsonOf(import);
  EXPECT_EQ(unknown["tells"], "times of single steps, or means over several");
  EXPECT_TRUE(unknown["p50_s"].is_null());
  ExpectText(import, {"several steps apart", "tell no spread", "--tells"});
  const Json means = JsonOf(import + Words{"--tells", "means"});
  EXPECT_EQ(means["tells"], "means over the steps between two lines");
  EXPECT_TRUE(means["p50_s"].is_null());
  ExpectText(import + Words{"--tells", "means"}, {"means do not tell: there are no quantiles"});
  const Json steps = JsonOf(import + Words{"--tells", "steps"});
  EXPECT_EQ(steps["tells"], "times of single steps");
  EXPECT_NEAR(steps["p50_s"].get<double>(), 0.13, 1e-12);
  EXPECT_EQ(steps["step_time_s"], unknown["step_time_s"]);
  ExpectError({"import", "steps", path, "--tells", "means"}, {"--tells", "--pattern with it"});
  ExpectError(import + Words{"--tells", "medians"}, {"--tells", "steps, means"});
}

TEST(ImportLogsCli, APatternThatFindsNothingIsToldSo) {
  const TempFolder folder;
  const std::string path = folder.Write("own.log", "begin\ntps: 6,500\ntps: 6,600\n");
  ExpectError({"import", "steps", path, "--pattern", "tps: (?<per_s>[0-9.,]+)"},
              {"own.log:2: --pattern: '6,500' is no time of a step", "allowed: a group"});
  ExpectError({"import", "steps", path, "--pattern", "tps=(?<per_s>[0-9.,]+)"},
              {"own.log: --pattern: matches none of 3 lines"});
  ExpectError({"import", "steps", folder.Write("one.log", "begin\n"), "--pattern", "(?<s>[0-9])"},
              {"one.log: --pattern: does not match the only line"});
  ExpectError({"import", "steps", path, "--pattern", "(.)\\1(?<s>[0-9])"},
              {"--pattern: '(.)\\1(?<s>[0-9])' refers back to a group", "RE2", "allowed: what"});
}

TEST(ImportLogsCli, WhatALogSaysIsNotAskedAgain) {
  ExpectError(Steps("epochs", {"--steps-per-epoch", "500", "--samples-of", "job"}),
              {"--samples-of: says nothing of ", "allowed: a log that tells a throughput"});
  ExpectError(Steps("epochs", {"--steps-per-epoch", "500", "--bar", "10"}),
              {"epochs: --bar: '10' is no bar of a log that has none"});
  const TempFolder folder;
  const Words own = {"import",
                     "steps",
                     folder.Write("own.log", "a\nstep 5 ms\n"),
                     "--pattern",
                     "(?<ms>[0-9.]+) ms",
                     "--warm-up",
                     "0"};
  ExpectError(own + Words{"--steps-per-epoch", "500"}, {"--steps-per-epoch: says nothing of "});
  ExpectError(own + Words{"--samples-of", "job"}, {"--samples-of: says nothing of "});
  ExpectText(own + Words{"--tells", "steps"}, {"the time of a single step, line 2\n"});
}

TEST(ImportLogsCli, WhatALogLeavesOpenIsAsked) {
  const Words plan = {"--local-batch", "32", "--placement", "2-2"};
  ExpectError(Steps("horovod"), {"--local-batch", "is required"});
  EXPECT_NEAR(StepOf("horovod", plan), 32 / 320.0, 1e-12);
  // Tokens of a device: 4096 of each of its 32 samples.
  const Words tokens = plan + Words{"--warm-up", "10", "--tokens-per-sample"};
  ExpectError(Steps("torchtitan", plan), {"--tokens-per-sample", "is required", "tokens"});
  ExpectError(Steps("torchtitan", {"--tokens-per-sample", "4096"}), {"--local-batch"});
  ExpectError(Steps("torchtitan", tokens + Words{"0"}), {"--tokens-per-sample: '0'"});
  EXPECT_NEAR(StepOf("torchtitan", tokens + Words{"4096"}),
              32 * 4096 * (1 / 8000.0 + 1 / 10000.0) / 2, 1e-9);
  ExpectError(Steps("horovod", plan + Words{"--tokens-per-sample", "8"}),
              {"--tokens-per-sample: says nothing of Horovod"});
  // Whose samples: with 4 devices on 2 nodes.
  ExpectError(Steps("mxnet", plan), {"--samples-of", "is required", "job, device, node"});
  for (const auto& [whose, samples] :
       {std::pair("job", 128), std::pair("device", 32), std::pair("node", 64)}) {
    EXPECT_NEAR(StepOf("mxnet", plan + Words{"--samples-of", whose}), samples * 0.0015, 1e-12);
  }
  ExpectError(Steps("mxnet", {"--local-batch", "32", "--placement", "2-1", "--samples-of", "node"}),
              {"--samples-of", "is not the same on all nodes"});
  EXPECT_NEAR(StepOf("mxnet", {"--local-batch", "32"}), 32 * 0.0015, 1e-12);
  // Without a number of workers one is taken, which is said where it matters.
  const Words batch = {"--local-batch", "32"};
  ExpectText(Steps("mxnet", batch),
             {"one worker is taken", "the throughput as its own (--samples-of)"});
  ExpectText(Steps("tf_cnn_benchmarks", batch), {"one worker is taken", "the whole job's"});
  EXPECT_TRUE(JsonOf(Steps("mxnet", batch))["assumed"].is_string());
  for (const Words& told :
       {Steps("horovod", batch), Steps("pytorch", batch),
        Steps("mxnet", batch + Words{"--workers", "1"}), Steps("tf_cnn_benchmarks", plan)}) {
    EXPECT_TRUE(JsonOf(told)["assumed"].is_null()) << told[2];
    EXPECT_EQ(Stepcast(told).out.find("one worker is taken"), std::string::npos) << told[2];
  }
  // Four micro-steps in a step.
  const TempFolder folder;
  const Words deepspeed = {
      "import",
      "steps",
      folder.Write("ds.log",
                   "micro_step=40/global_step=10, CurrSamplesPerSec=66.0, M\n"
                   "micro_step=160/global_step=40, CurrSamplesPerSec=66.0, M\n"),
      "--local-batch",
      "8",
      "--workers",
      "2",
      "--warm-up",
      "0"};
  EXPECT_EQ(JsonOf(deepspeed)["micro_steps"], 4);
  ExpectText(deepspeed, {"the log tells of 4 micro-steps in a step, where --accumulation is 1"});
  EXPECT_EQ(Stepcast(deepspeed + Words{"--accumulation", "4"}).out.find("micro-steps in a step"),
            std::string::npos);
  // What is counted.
  ExpectError(Steps("lightning", {"--accumulation", "4"}),
              {"--counts", "is required", "micro-steps"});
  EXPECT_NEAR(StepOf("lightning", {"--accumulation", "4", "--counts", "micro-steps"}), 1.6, 1e-12);
  EXPECT_NEAR(StepOf("lightning", {"--accumulation", "4", "--counts", "steps"}), 0.4, 1e-12);
  EXPECT_NEAR(StepOf("pytorch", {"--accumulation", "4"}), 4 * 0.25, 1e-12);
  EXPECT_NEAR(StepOf("megatron", {"--accumulation", "4"}), 1.0, 1e-12);
  // How long an epoch is.
  ExpectError(Steps("epochs"), {"--steps-per-epoch", "is required"});
  EXPECT_NEAR(StepOf("epochs", {"--steps-per-epoch", "500"}), (206.52 + 206.40) / 1000, 1e-12);
  // And for a row, what ran and on what.
  ExpectError(Steps("pytorch", {"--output", "x.csv"}), {"--device", "is required"});
}

// Epochs of 35 s, and steps of 0.4 s within them.
TEST(ImportLogsCli, OfABarWithinABarTheInnerIsTakenAndAnyCanBeAsked) {
  const TempFolder folder;
  std::string text;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    text +=
        "Iteration: 50%|##| 30/75 [00:12<00:18, 2.50it/s]\n"
        "Iteration: 100%|##| 75/75 [00:30<00:00, 2.50it/s]\n";
    text += "Epoch: 50%|##| " + std::to_string(epoch) + "/3 [0" + std::to_string(epoch * 35 / 60) +
            ":" + std::to_string(epoch * 35 % 60) + "<01:00, 35.00s/it]\n";
  }
  const Words import = {"import", "steps", folder.Write("bars.log", text)};
  const Json json = JsonOf(import);
  EXPECT_NEAR(json["step_time_s"].get<double>(), 0.4, 1e-9);
  EXPECT_EQ(json["bar"], "Iteration");
  ASSERT_EQ(json["bars_left_out"].size(), 1U);
  EXPECT_EQ(json["bars_left_out"][0]["title"], "Epoch");
  EXPECT_EQ(json["bars_left_out"][0]["holds_another"], true);
  ExpectText(import,
             {"bar \"Epoch\" (3) is left out: within each of its steps another bar begins"});
  const auto step_of = [&](const std::string& bar) {
    return JsonOf(import + Words{"--warm-up", "0", "--bar", bar})["step_time_s"].get<double>();
  };
  EXPECT_NEAR(step_of("Epoch"), 35, 0.5);
  EXPECT_NEAR(step_of("3"), 35, 0.5);
  EXPECT_NEAR(step_of("Iteration:"), 0.4, 1e-9);
  ExpectError(import + Words{"--bar", "Step"},
              {"--bar: 'Step' does not say", "\"Epoch\" (3), \"Iteration\" (75) steps"});
  ExpectError(import + Words{"--bar", "0"}, {"--bar: '0'"});
}

TEST(ImportLogsCli, WhatWasFoundIsShown) {
  ExpectText(
      Steps("trainer", {"--warm-up", "10"}),
      {"trainer: progress bar", "step       4.12 s", "2 numbers, means over the steps between",
       "1 of the warm-up (10 steps), 4 lines of validation", "the log has other forms too: Trainer",
       "Loading checkpoint shards", "1 line of trainer not understood", "--measured \"4.12 s\""});
  ExpectText(Steps("horovod", {"--local-batch", "32", "--workers", "2"}),
             {"rank", "50 ms", "100 ms", "the ranks differ", "those of rank 1, the slowest"});
  ExpectText(Steps("keras-2"), {"2 of 2 means are of epochs with their validation"});
}

TEST(ImportLogsCli, FactsOfALinkAreAPartOfAClusterFile) {
  const TempFolder folder;
  const ProcessResult result = Stepcast({"import", "ping", Sample("ping/quiet-with-loss.txt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // Behind what a cluster needs besides it is one.
  const Cluster cluster =
      ParseCluster("name: c\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n" + result.out, "c.yaml");
  EXPECT_NEAR(cluster.link.rtt->in(kMilliseconds), 10.257, 1e-9);
  EXPECT_NEAR(*cluster.link.loss, 0.02, 1e-12);
  EXPECT_EQ(cluster.sources.at("link.rtt"), "quiet-with-loss.txt (ping), line 5: the mean of all");
  EXPECT_NE(result.out.find("# stepcast diagnose ... --lost 4/200 --ping \"10.257 ms\""),
            std::string::npos)
      << result.out;

  const Json json = JsonOf({"import", "iperf3", Sample("iperf3/two-streams.json")});
  EXPECT_EQ(json["link"]["congestion_control"]["value"], "cubic");
  EXPECT_NEAR(json["link"]["rtt_s"]["value"].get<double>(), 19e-6, 1e-15);
  EXPECT_EQ(json["measured"][0]["name"], "goodput_bit_per_s");
  EXPECT_EQ(json["diagnose"][0], "--ping \"19 us\"");

  const Json pair = JsonOf({"import", "osu", Sample("osu/latency-and-bandwidth.txt")});
  EXPECT_NEAR(pair["link"]["rtt_s"]["value"].get<double>(), 2 * 1.59e-6, 1e-18);
  EXPECT_NEAR(pair["measured"][0]["value"].get<double>(), 8 * 12254.16e6, 1);
  ExpectError({"import", "ping", Sample("ping/bsd.txt"), Sample("ping/replies.txt")},
              {"rtt: is stated by bsd.txt too"});
}

TEST(ImportLogsCli, TablesBecomeRunsThatCalibrateTakes) {
  const TempFolder folder;
  const std::string runs = folder.Path("runs.csv");
  const Json json =
      JsonOf({"import", "nccl-tests", Sample("nccl_tests/two-nodes.txt"), "--output", runs});
  EXPECT_EQ(json["runs"], 3);
  EXPECT_EQ(json["small"], 1);
  EXPECT_EQ(json["tables"][0]["rows"].size(), 4U);
  const std::vector<stepcast::Run> read = ReadRuns(runs);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].workload, "message_1048576");
  EXPECT_EQ(read[0].plan.placement, (Placement{1, 1}));
  EXPECT_NEAR(read[0].step_time.si(), 335.85e-6, 1e-12);
  EXPECT_FALSE(read[0].plan.bucket);
  EXPECT_NEAR(read[2].plan.bucket->in(kMebibytes), 32, 1e-9) << "a call is one message";
  const std::string cluster = folder.Write(
      "c.yaml", "name: c\ndevice: \"NVIDIA GH200 120GB\"\nnodes: 2\ndevices_per_node: 1\n");
  const std::string fitted = folder.Path("fitted.yaml");
  ExpectText({"calibrate", "--cluster", cluster, "--runs", runs, "--output", fitted},
             {"from 3 runs of 3 workloads"});
  EXPECT_TRUE(ReadCluster(fitted).calibration);

  ExpectError({"import", "osu", Sample("osu/allreduce.txt"), "--device", "cpu"},
              {"--placement", "does not say where the ranks are"});
  ExpectError({"import", "osu", Sample("osu/allreduce.txt"), "--placement", "1-1"},
              {"--device", "is required, or --cluster"});
  const Json osu = JsonOf({"import", "osu", Sample("osu/allreduce.txt"), "--device", "cpu",
                           "--placement", "1-1", "--at-least", "1 MiB", "--output", runs});
  EXPECT_EQ(osu["runs"], 1);
  EXPECT_EQ(osu["small"], 4);
  // By any of its names a device is the one of its data sheet.
  JsonOf({"import", "osu", Sample("osu/allreduce.txt"), "--device", "NVIDIA Tesla T4",
          "--placement", "1-1", "--at-least", "1 MiB", "--output", runs});
  ASSERT_EQ(ReadRuns(runs).size(), 1U);
  EXPECT_EQ(ReadRuns(runs)[0].device, "t4");
  ExpectError({"import", "nccl-tests", Sample("nccl_tests/two-nodes.txt"), "--placement", "2-2"},
              {"--placement: '2-2' has other ranks", "2 in all"});
}

// Rows name the hosts of the ranks, unless the command line says where these were.
TEST(ImportLogsCli, TablesNameTheirHosts) {
  const TempFolder folder;
  const std::string runs = folder.Path("runs.csv");
  const Words import = {"import", "nccl-tests", Sample("nccl_tests/two-nodes.txt"), "--output",
                        runs};
  const auto hosts_with = [&](const Words& options) {
    EXPECT_EQ(Stepcast(import + options).exit_code, 0);
    return ReadRuns(runs).at(0).plan.hosts;
  };
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(hosts_with({}), (Hosts{"n1", "n2"}));
  EXPECT_EQ(hosts_with({"--placement", "1-1"}), (Hosts{"n1", "n2"}));
  EXPECT_EQ(hosts_with({"--placement", "2"}), Hosts()) << "not where these ranks were";
  EXPECT_EQ(hosts_with({"--hosts", "left+right", "--placement", "1-1"}), (Hosts{"left", "right"}));
  const std::string cluster = folder.Write(
      "c.yaml",
      "name: c\ndevice: v100\nnodes: 2\ndevices_per_node: 1\nhosts: [{name: n1}, {name: n3}]\n");
  ExpectError(import + Words{"--cluster", cluster},
              {"two-nodes.txt:10: host: 'n2' is no host of c (did you mean n1?)", "n1, n3"});
}

TEST(ImportLogsCli, AGuessNamesTheCommand) {
  ExpectText({"import", "--guess", Sample("step_log/pytorch")},
             {"a log of a training", "stepcast import steps " + Sample("step_log/pytorch")});
  // Of the tables that begin alike, what stands beside tells which one it is.
  const std::string latency = Sample("osu/latency-and-bandwidth.txt");
  EXPECT_EQ(JsonOf({"import", "--guess", latency})["command"], "stepcast import osu " + latency);
  for (const char* log : {"maxtext", "nemo", "nemo-bars", "composer", "trainer-state"}) {
    ExpectText({"import", "--guess", Sample(std::string("step_log/") + log)},
               {"a log of a training"});
  }
  ExpectText({"import", "--guess", Sample("osu/allreduce.txt")}, {"--placement P"});
  ExpectText({"import", "--guess", Sample("guess/nothing")}, {"nothing that stepcast knows"}, 1);
  EXPECT_EQ(JsonOf({"import", "--guess", Sample("guess/nothing")}, 1)["command"], nullptr);
  ExpectError({"import", "--guess", Sample("guess/nothing"), "more"}, {"is a second file"});
  ExpectError({"import", "ping", Sample("ping/bsd.txt"), "--pattern", "x"},
              {"--pattern: has no meaning for ping"});
}

}  // namespace
}  // namespace stepcast::program
