// stepcast microbench, profile and what takes a profile, run as a user would.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "model/compute/profiled_compute.h"
#include "model/step/priors.h"
#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using namespace program;  // NOLINT: the file's only subject

const Words kMeasure = {"microbench", "--backend",  "onednn",    "--threads",
                        "1",          "--workload", "mlp_mnist", "--batch"};

bool HasCpuBackend() {
  const ProcessResult result =
      Stepcast({"microbench", "--backend", "onednn", "--threads", "1", "--ceilings", "--json"});
  return result.exit_code == 0;
}

#define SKIP_WITHOUT_CPU_BACKEND() \
  if (!HasCpuBackend()) GTEST_SKIP() << "this build has no oneDNN"

// A measurement that does not end by itself. A shell's background ignores the terminal's interrupt.
Words EndlessMeasure(const std::string& threads, const std::string& output) {
  Words words = Words{"/usr/bin/env", "--default-signal=INT", STEPCAST_PROGRAM} + kMeasure +
                Words{"1,4,16", "--error", "0.0001", "--output", output};
  *std::find(words.begin(), words.end(), "1") = threads;
  return words;
}

// The exit code, or 128 + the signal, of a measurement that is sent `signal` after so long.
ProcessResult MeasureUntil(const std::string& signal, const std::string& seconds,
                           const std::string& output) {
  return RunProcess(Words{"/usr/bin/timeout", "--foreground", "--signal=" + signal,
                          "--preserve-status", seconds} +
                    EndlessMeasure("1", output));
}

// The same once it has measured something, or half a minute is over: `commands` of a shell, in
// which $pid is the measurement.
ProcessResult MeasureAnd(const std::string& commands, const std::string& threads,
                         const std::string& output) {
  return RunProcess(Words{"/bin/sh", "-c",
                          "\"$@\" & pid=$!; n=0; until [ $n -gt 300 ] || grep -q seconds '" +
                              output + "' 2>/dev/null; do sleep 0.1; n=$((n+1)); done; " +
                              commands + "; wait $pid",
                          "sh"} +
                    EndlessMeasure(threads, output));
}

TEST(MicrobenchCli, WithoutAGpuItSaysSoInOneLineAndWhatToDo) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "this machine has a GPU";
  for (const Words& arguments :
       {Words{"microbench", "--workload", "resnet18"},
        Words{"microbench", "--workload", "ResNet-18", "--optimizer", "adamw"},
        Words{"microbench", "--ceilings"}}) {
    const ProcessResult result = Stepcast(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_NE(result.err.find("--backend onednn"), std::string::npos) << result.err;
  }
}

TEST(MicrobenchCli, BadInputIsNamedBeforeAnythingIsMeasured) {
  const Words start = {"microbench", "--workload", "resnet18"};
  ExpectError({"microbench"}, {"--workload", "is required"});
  ExpectError({"microbench", "--workload", "resnet17"}, {"resnet17", "is not a known workload"});
  ExpectError(start + Words{"--batch", "8,0"}, {"--batch", "'0'"});
  ExpectError(start + Words{"--batch", "8,x"}, {"--batch", "'x'"});
  ExpectError(start + Words{"--batch", "8,"}, {"--batch"});
  ExpectError(start + Words{"--batch", ""}, {"--batch"});
  ExpectError(start + Words{"--batch", "8,4,8"}, {"--batch", "'8'", "given twice"});
  ExpectError(start + Words{"--backend", "onednn", "--search"}, {"--search", "no meaning"});
  ExpectError({"microbench", "--ceilings", "--output", "x"}, {"--output", "no meaning"});
  ExpectError({"profile", "xeon-onednn-1", "--layers"}, {"--layers", "with --workload"});
  ExpectError(start + Words{"--precision", "fp8"}, {"--precision", "'fp8'", "fp32, tf32"});
  ExpectError(start + Words{"--backend", "cpu"}, {"--backend", "'cpu'", "cuda, onednn"});
  ExpectError(start + Words{"--budget", "2"}, {"--budget", "'2'", "unit"});
  ExpectError(start + Words{"--backend", "onednn", "--threads", "0"}, {"--threads", "'0'"});
  ExpectError(start + Words{"--threads", "2"}, {"--threads", "no meaning"});
  ExpectError(start + Words{"--optimizer", "lion"}, {"--optimizer", "'lion'", "momentum"});
  ExpectError(start + Words{"--error", "0"}, {"--error"});
  ExpectError(start + Words{"--layout", "nhwc"}, {"--layout", "channels-last"});
  const TempFolder folder;
  const std::string totals = folder.Write("totals.yaml", "name: totals\nparameters: 10\n");
  ExpectError({"microbench", "--workload-file", totals, "--workload", "totals"},
              {"totals", "has no layers with operations"});
}

TEST(MicrobenchCli, MeasuresShowsAndPredicts) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const std::string path = folder.Path("cpu.profile.jsonl");
  const Json first =
      JsonOf(kMeasure + Words{"4,16", "--budget", "20 s", "--error", "0.02", "--output", path});
  EXPECT_EQ(first.at("missing"), 0);
  EXPECT_EQ(first.at("measured"), first.at("points"));
  EXPECT_EQ(first.at("taken_over"), 0);
  ASSERT_EQ(first.at("steps").size(), 2U);
  for (const Json& step : first.at("steps")) EXPECT_GT(step.at("seconds"), 1e-5);

  // Another batch goes into the same file.
  const Json more =
      JsonOf(kMeasure + Words{"64", "--budget", "20 s", "--error", "0.02", "--output", path});
  EXPECT_GT(more.at("taken_over"), 0);  // updates know no batch

  const Json contents = JsonOf({"profile", path});
  EXPECT_EQ(contents.at("batches"), Json({4, 16, 64}));
  EXPECT_EQ(contents.at("backend"), "onednn");
  EXPECT_EQ(contents.at("device").at("kind"), "cpu");

  const Json sum = JsonOf({"profile", path, "--workload", "mlp_mnist", "--local-batch", "16"});
  EXPECT_EQ(sum.at("layers").size(), 6U);
  const double micro_step = sum.at("micro_step_s");
  const Json p = JsonOf({"predict", "--profile", path, "--workload", "mlp_mnist", "--local-batch",
                         "16", "--workers", "1", "--strategy", "none"});
  EXPECT_EQ(p.at("compute_source"), "profile");
  const double step = p.at("step_time_s");
  EXPECT_NEAR(step, micro_step + p.at("breakdown").at("update_s").get<double>(), 1e-9);
  EXPECT_LT(p.at("low_s"), step);
  EXPECT_GT(p.at("high_s"), step);
  ExpectText({"profile", path, "--workload", "mlp_mnist", "--layers"}, {"dense_1", "measured"});
  ExpectError({"profile", path, "--workload", "mlp_mnist", "--precision", "bf16"},
              {"'bf16'", "was not measured"});
  ExpectError({"predict", "--profile", path, "--workload", "bert_base", "--local-batch", "1"},
              {"bert_base", "was not measured"});
  // What a workload's file says is what is looked up in the profile.
  ExpectError({"profile", path, "--workload", "mlp", "--workload-file",
               folder.Write("mlp.yaml",
                            "name: mlp\nprecision: bf16\nlayers:\n"
                            "  - {kind: dense, tensors: [100, 10], forward_flop: 200, "
                            "activation_bytes: 40}\n")},
              {"'bf16'", "was not measured"});

  // Without time to measure more, the table is of what is known, and what is missing is a no.
  for (const char* batches : {"4,16,64", "7"}) {
    const Words again =
        kMeasure + Words{batches, "--budget", "1 us", "--error", "0.05", "--output", path};
    const int missing = std::string(batches) == "7" ? 1 : 0;
    const Json known = JsonOf(again, missing);
    const ProcessResult words = Stepcast(again);
    EXPECT_EQ(words.exit_code, missing);
    for (const Json& sum_of : known.at("steps")) {
      program::ExpectLine(
          words.out,
          fmt::format("mlp_mnist {} fp32 {} {} {} of {}", sum_of.at("local_batch").get<int>(),
                      FormatDuration(Seconds(sum_of.at("seconds").get<double>())),
                      FormatPercent(sum_of.at("relative_error").get<double>()),
                      sum_of.at("measured").get<int>(), sum_of.at("points").get<int>()));
    }
    program::ExpectSaid(
        words.out,
        fmt::format(" {} samples of {} points in ", FormatCount(known.at("samples").get<double>()),
                    known.at("measured").get<int>()),
        true);
    program::ExpectSaid(
        words.out,
        fmt::format(", {} of them outliers; profile: {}; {} points were known from "
                    "before",
                    known.at("outliers").get<int>(), path, known.at("taken_over").get<int>()),
        true);
    EXPECT_EQ(known.at("missing").get<int>() > 0, missing == 1);
    program::ExpectSaid(words.out,
                        fmt::format("{} points are missing: the same command measures them",
                                    known.at("missing").get<int>()),
                        missing == 1);
    program::ExpectSaid(words.out, "do not fit the device's memory", false);
    program::ExpectSaid(words.out, "unsupported", false);
  }

  // A file of another number of threads is not gone on with.
  ExpectError({"microbench", "--backend", "onednn", "--threads", "2", "--workload", "mlp_mnist",
               "--output", path},
              {path, "threads", "'1'"});
}

TEST(MicrobenchCli, AnInterruptLosesNothing) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const std::string path = folder.Path("cpu.profile.jsonl");
  const ProcessResult interrupted = MeasureUntil("INT", "1", path);
  ASSERT_EQ(interrupted.exit_code, 1) << interrupted.err;
  EXPECT_NE(interrupted.err.find("the same command goes on"), std::string::npos);
  const std::string before = FileContent(path);
  const ReadProfile read = ReadComputeProfile(path);
  EXPECT_FALSE(read.torn);
  EXPECT_GT(read.profile.samples.size(), 0U);
  const Json after =
      JsonOf(kMeasure + Words{"1,4,16", "--error", "0.05", "--budget", "30 s", "--output", path});
  EXPECT_GT(after.at("taken_over"), 0);
  EXPECT_EQ(after.at("missing"), 0);
  EXPECT_EQ(FileContent(path).substr(0, before.size()), before);
}

// A handler's frame would land on stacks of kernels that have no room for it.
TEST(MicrobenchCli, NoSignalIsHandledOnAThreadThatMeasures) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const ProcessResult result =
      MeasureAnd("cat /proc/$pid/task/*/status | grep -E '^Sig(Blk|Cgt)'; kill -TERM $pid", "2",
                 folder.Path("p.jsonl"));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const unsigned long long interrupts = 1ULL << (SIGINT - 1) | 1ULL << (SIGTERM - 1);
  int threads = 0;
  int open_to_them = 0;  // the one that waits, while it does
  std::istringstream lines(result.out);
  for (std::string name, mask; lines >> name >> mask && name.rfind("Sig", 0) == 0;) {
    const unsigned long long signals = std::stoull(mask, nullptr, 16);
    if (name == "SigBlk:") {
      ++threads;
      if ((signals & interrupts) != interrupts) ++open_to_them;
    } else {
      EXPECT_EQ(signals & interrupts, 0U) << "handled";
    }
  }
  EXPECT_GE(threads, 3) << result.out;
  EXPECT_LE(open_to_them, 1) << result.out;
}

// From the terminal, and from `timeout`, whom the terminal interrupted too.
TEST(MicrobenchCli, AnInterruptThatComesTwiceIsOne) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const ProcessResult result =
      MeasureAnd("kill -TERM $pid; kill -INT $pid", "1", folder.Path("p.jsonl"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("the same command goes on"), std::string::npos) << result.err;
}

TEST(MicrobenchCli, KilledAtAnyMomentTheNextStartGoesOn) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const std::string path = folder.Path("cpu.profile.jsonl");
  std::string before;
  for (const char* moment : {"0.05", "0.11", "0.17", "0.23", "0.31", "0.41", "0.53"}) {
    MeasureUntil("KILL", moment, path);
    const std::string now = FileContent(path);
    const std::size_t whole = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
    EXPECT_EQ(now.substr(0, whole), before.substr(0, whole)) << moment;
    before = now;
  }
  const Json after =
      JsonOf(kMeasure + Words{"1,4,16", "--error", "0.05", "--budget", "30 s", "--output", path});
  EXPECT_EQ(after.at("missing"), 0);
  EXPECT_EQ(after.at("measured"), after.at("points"));
  EXPECT_FALSE(ReadComputeProfile(path).torn);
}

TEST(MicrobenchCli, WhatDoesNotFitTheMemoryIsARecordedState) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const std::string path = folder.Path("cpu.profile.jsonl");
  const std::string wide =
      folder.Write("wide.yaml",
                   "name: wide\nlayers:\n  - kind: dense\n    tensors: [1000000]\n"
                   "    operation: dense positions=10000 inputs=1000 units=1000\n");
  const Json outcome =
      JsonOf({"microbench", "--backend", "onednn", "--threads", "1", "--workload-file", wide,
              "--workload", "wide", "--batch", "1000000", "--budget", "20 s", "--output", path});
  EXPECT_GT(outcome.at("out_of_memory"), 0);
  ASSERT_EQ(outcome.at("missing"), 0);
  for (const Json& part : {outcome, outcome.at("steps").at(0)}) {
    EXPECT_GT(part.at("out_of_memory"), 0);
    EXPECT_EQ(part.at("points"), part.at("measured").get<int>() +
                                     part.at("out_of_memory").get<int>() +
                                     part.at("unsupported").get<int>());
  }
  EXPECT_NE(FileContent(path).find("out_of_memory"), std::string::npos);
}

// Of two points that the back end does not have, in a profile that is gone on with.
TEST(MicrobenchCli, WhatIsUnsupportedIsTold) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const std::string path = folder.Path("cpu.profile.jsonl");
  const Words measure = kMeasure + Words{"4", "--output", path};
  const Json first = JsonOf(measure + Words{"--budget", "20 s", "--error", "0.05"});
  ASSERT_EQ(first.at("missing"), 0);
  std::istringstream lines(FileContent(path));
  std::string changed;
  std::set<std::string> unsupported;
  for (std::string line; std::getline(lines, line);) {
    Json point = Json::parse(line);
    if (point.value("pass", "") == "backward") {
      const std::string operation = point.at("operation");
      if (unsupported.count(operation) > 0) continue;
      if (unsupported.size() < 2) {
        unsupported.insert(operation);
        point.erase("seconds");
        point["status"] = "unsupported";
        point["reason"] = "there is no such kernel";
      }
    }
    changed += (point.contains("status") ? point.dump() : line) + "\n";
  }
  folder.Write("cpu.profile.jsonl", changed);
  const Words known = measure + Words{"--budget", "1 us", "--error", "0.9"};
  const Json json = JsonOf(known);
  const int points = first.at("steps").at(0).at("points");
  EXPECT_EQ(json.at("unsupported"), 2);
  EXPECT_EQ(json.at("out_of_memory"), 0);
  EXPECT_EQ(json.at("steps").at(0).at("unsupported"), 2);
  EXPECT_EQ(json.at("steps").at(0).at("measured"), points - 2);
  const ProcessResult words = Stepcast(known);
  program::ExpectSaid(words.out, fmt::format("{} of {}, 2 unsupported", points - 2, points), true);
  program::ExpectSaid(words.out, "2 points are unsupported by the back end: they will be scaled",
                      true);
  program::ExpectSaid(words.out, "out of memory", false);
}

TEST(MicrobenchCli, CeilingsAreTheDeviceBlockOfAClusterFile) {
  SKIP_WITHOUT_CPU_BACKEND();
  const TempFolder folder;
  const ProcessResult block =
      Stepcast({"microbench", "--backend", "onednn", "--threads", "1", "--ceilings"});
  ASSERT_EQ(block.exit_code, 0) << block.err;
  const std::string cluster =
      folder.Write("here.yaml", "name: here\nnodes: 1\ndevices_per_node: 1\n" + block.out);
  const Json p = JsonOf({"predict", "--cluster", cluster, "--workload", "resnet18", "--local-batch",
                         "8", "--workers", "1"});
  EXPECT_EQ(p.at("compute_source"), "data sheet");
  EXPECT_GT(p.at("step_time_s"), 0.01);
}

// Copies are rates of bytes, all else of operations.
TEST(MicrobenchCli, CeilingsHaveTheirUnits) {
  SKIP_WITHOUT_CPU_BACKEND();
  const Json json = JsonOf({"microbench", "--backend", "onednn", "--threads", "1", "--ceilings"});
  int copies = 0;
  int others = 0;
  for (const Json& rate : json.at("rates")) {
    const bool copy = rate.at("name").get<std::string>().find("copy") != std::string::npos;
    ++(copy ? copies : others);
    EXPECT_EQ(rate.contains("bytes_per_s"), copy) << rate;
    EXPECT_EQ(rate.contains("flop_per_s"), !copy) << rate;
  }
  EXPECT_GT(copies, 0);
  EXPECT_GT(others, 0);
}

// Where the shipped profile says how long compute takes, a few runs move it.
// Whom the profile does not help is named with the reason, and whom it helps is not.
TEST(MicrobenchCli, ACalibrationSaysWhomItsProfileLeavesOut) {
  const TempFolder folder;
  const std::string cluster =
      folder.Write("cpus.yaml",
                   "name: cpus\ndevice: {name: xeon, aliases: [Intel(R) Xeon(R) Processor]}\n"
                   "nodes: 2\ndevices_per_node: 1\n");
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "resnet18,xeon,1,0,none,8,1.5\n"
                   "resnet50,xeon,1,0,none,8,3\n"
                   "resnet50,t4,1,0,none,8,0.1\n"
                   "bert_base,xeon,1,0,none,8,9\n");
  const std::string fitted = folder.Path("fitted.yaml");
  const ProcessResult result = Stepcast({"calibrate", "--cluster", cluster, "--runs", runs,
                                         "--profile", "xeon-onednn-1", "--output", fitted});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ExpectSaid(result.err, "the profile says nothing of resnet50: some of its runs are not on xeon",
             true);
  ExpectSaid(result.err, "the profile says nothing of bert_base: bert_base: ", true);
  ExpectSaid(result.err, "nothing of resnet18", false);
  std::set<std::string> scopes;
  const Cluster of_fit = ReadCluster(fitted);
  for (const ParameterEstimate& e : of_fit.calibration->parameters) {
    if (!e.prior_source.empty()) scopes.insert(e.scope);
  }
  EXPECT_EQ(scopes, std::set<std::string>{"workload resnet18 on xeon"});
}

TEST(MicrobenchCli, ACalibrationStartsFromAProfile) {
  const TempFolder folder;
  const std::string cluster =
      folder.Write("cpus.yaml",
                   "name: cpus\ndevice: {name: xeon, aliases: [Intel(R) Xeon(R) Processor]}\n"
                   "nodes: 2\ndevices_per_node: 1\n");
  const Json told = JsonOf({"predict", "--profile", "xeon-onednn-1", "--workload", "resnet18",
                            "--local-batch", "8", "--workers", "1", "--strategy", "none"});
  const double step = 1.1 * told.at("step_time_s").get<double>();
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "resnet18,xeon,1,0,none,8," +
                       std::to_string(step) + "\n");
  const std::string fitted = folder.Path("fitted.yaml");
  ASSERT_EQ(Stepcast({"calibrate", "--cluster", cluster, "--runs", runs, "--profile",
                      "xeon-onednn-1", "--output", fitted})
                .exit_code,
            0);
  const Json p = JsonOf({"predict", "--cluster", fitted, "--workload", "resnet18", "--local-batch",
                         "2", "--workers", "1", "--strategy", "none"});
  const Json two = JsonOf({"predict", "--profile", "xeon-onednn-1", "--workload", "resnet18",
                           "--local-batch", "2", "--workers", "1", "--strategy", "none"});
  // The slope is the profile's, moved by what one run at another batch told.
  const double ratio = p.at("step_time_s").get<double>() / two.at("step_time_s").get<double>();
  EXPECT_GT(ratio, 0.95);
  EXPECT_LT(ratio, 1.2);
  EXPECT_NE(FileContent(fitted).find("xeon-onednn-1, of "), std::string::npos);

  // A calibration has the curve alone: its priors are as much wider as the curve misses batches.
  const Workload workload = *FindWorkload("resnet18");
  const ProfiledCompute compute(ReadComputeProfile(std::string(STEPCAST_SOURCE_DIR) +
                                                   "/data/profiles/xeon-onednn-1.profile.jsonl")
                                    .profile,
                                workload);
  const WorkloadPriors priors = MakeWorkloadPriors(workload, std::nullopt, &compute);
  EXPECT_GT(compute.CurveMisfit(), 0);
  int from_profile = 0;
  const Cluster of_fit = ReadCluster(fitted);
  for (const ParameterEstimate& e : of_fit.calibration->parameters) {
    if (e.prior_source.find("xeon-onednn-1") == std::string::npos) continue;
    for (const int parameter : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) {
      const auto i = static_cast<std::size_t>(parameter);
      if (e.name != kWorkloadParameterSpecs[i].name) continue;
      ++from_profile;
      const double wide = std::hypot(priors[i].log_sd, compute.CurveMisfit());
      EXPECT_NEAR(e.prior_log_sd / wide, 1, 1e-9) << e.name;
    }
  }
  EXPECT_EQ(from_profile, 4);
}

TEST(ImportCli, WhatIsNoNetworkOrTraceIsRefused) {
  const TempFolder folder;
  const std::string text = folder.Write("x.txt", "hello\n");
  ExpectError({"import", "kineto", text}, {text, "is not JSON"});
  ExpectError({"import", "kineto", text, text}, {"second file"});
  ExpectError({"import", "kineto", text, "--dim", "a=1"}, {"--dim", "kineto"});
  ExpectError({"import", "torch", text}, {"'torch'", "adaptdl, onnx, kineto"});
  const ProcessResult onnx = Stepcast({"import", "onnx", text});
  if (onnx.exit_code == 1) GTEST_SKIP() << "this build has no ONNX";
  ExpectError({"import", "onnx", text}, {text, "is not an ONNX model"});
  ExpectError({"import", "onnx", text, "--dim", "sequence"}, {"--dim", "has no length"});
  ExpectError({"import", "onnx", text, "--device", "t4"}, {"--device", "onnx"});
}

TEST(ImportCli, ATraceBecomesAProfile) {
  const TempFolder folder;
  const std::string trace = folder.Write("trace.json", R"({
"schemaVersion": 1, "deviceProperties": [],
"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 1, "ts": 1, "dur": 5000, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 1, "ts": 10, "dur": 300,
 "args": {"External id": 1, "Input Dims": [[8, 16], [4, 16], [4]], "Input type": ["float", "float", "float"]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 7, "tid": 1, "ts": 20, "dur": 280,
 "args": {"External id": 2, "Sequence number": 5, "Fwd thread id": 0, "Input Dims": [[4], [8, 16], [16, 4]],
          "Input type": ["float", "float", "float"]}},
{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 7, "tid": 2,
 "ts": 1000, "dur": 500, "args": {"External id": 3, "Sequence number": 5, "Fwd thread id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "AddmmBackward0", "pid": 7, "tid": 2, "ts": 1010, "dur": 480,
 "args": {"External id": 4, "Sequence number": 5, "Fwd thread id": 1, "Input Dims": [[8, 4]], "Input type": ["float"]}}
]})");
  const std::string output = folder.Path("mine.profile.jsonl");
  const Json facts = JsonOf({"import", "kineto", trace, "--output", output});
  EXPECT_EQ(facts.at("steps"), 1);
  EXPECT_NEAR(facts.at("step_time_s"), 5e-3, 1e-9);
  const ReadProfile read = ReadComputeProfile(output);
  ASSERT_EQ(read.profile.samples.size(), 2U);
  EXPECT_EQ(read.profile.backend, "kineto");
  EXPECT_EQ(JsonOf({"profile", output}).at("measured"), 2);
}

}  // namespace
}  // namespace stepcast
