// stepcast probe script, with small programs in the place of a training.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "data/io/csv.h"
#include "data/io/runs.h"
#include "tests/cli/program.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectText;
using program::Json;
using program::JsonOf;
using program::Words;
using program::operator+;

constexpr const char* kPython = "/usr/bin/python3";

class ScriptCli : public testing::Test {
 protected:
  void SetUp() override {
    // A step takes 100 ms for a worker, and 2 ms for each sample.
    training_ = folder_.Write("train.sh",
                              "i=0; while true; do i=$((i+1))\n"
                              "echo \"[$STEPCAST_STRATEGY] step $i: $((100 * $1 + 2 * $2 + i % 3)) "
                              "ms\"; sleep 0.002; done\n");
    wanted_ = folder_.Write("wanted.csv",
                            "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                            "resnet50,t4,1,0,none,32,STEP_TIME\n"
                            "resnet50,t4,1-1,0,ring,32,STEP_TIME\n"
                            "resnet50,t4,1-1,0,ring,64,STEP_TIME\n");
    runs_ = folder_.Path("runs.csv");
  }
  Words Probe(const Words& options, const Words& command) const {
    return Words{"probe", "script", wanted_, "--output", runs_} + options + Words{"--"} + command;
  }
  // What it answers, as JSON.
  Json Answer(const Words& options, const Words& command, int exit_code = 0) const {
    const ProcessResult result = program::Stepcast(Probe(options + Words{"--json"}, command));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return Json::parse(result.out);
  }
  Words Training() const { return {"sh", training_, "{workers}", "{local_batch}"}; }

  const Words kShort = {"--steps", "12", "--warm-up", "2"};
  const Words kPattern = {"--pattern", ": (?<ms>[0-9]+) ms"};
  TempFolder folder_;
  std::string training_;
  std::string wanted_;
  std::string runs_;
};

TEST_F(ScriptCli, RunsWhatThePlanAsksFor) {
  // As the plan writes it.
  const Words plan = {"plan",          "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                      "--local-batch", "32",        "--count",    "2"};
  ExpectText(plan + Words{"--output", wanted_}, {"STEP_TIME"});
  const Json asked = JsonOf(plan);
  const std::string text = FileContent(wanted_);
  EXPECT_EQ(text.substr(0, text.find('\n')), asked["runs_header"].get<std::string>());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<long>(asked["runs"].size()) + 1);

  ExpectText(Probe(kShort + kPattern, Training()), {"measured", "runs: " + runs_});
  const std::vector<stepcast::Run> runs = ReadRuns(runs_);
  ASSERT_EQ(runs.size(), asked["runs"].size());
  for (const stepcast::Run& run : runs) {
    // Steps 3 to 14: 0, 1, 2 ms in turn, four times.
    EXPECT_NEAR(run.step_time.in(kMilliseconds),
                100 * run.plan.workers() + 2 * run.plan.local_batch + 1, 1e-6);
    EXPECT_NE(run.source.find("probe script"), std::string::npos) << run.source;
    EXPECT_NE(run.source.find("12 steps behind 2: sh " + training_), std::string::npos);
  }
  const CsvTable table = CsvTable::Read(runs_);
  EXPECT_EQ(table.rows()[0].fields[table.RequiredColumn("measured_steps")], "12");
  ExpectText({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs_, "--output",
              folder_.Path("fit.yaml")},
             {"The fit converged"});
}

// Steps 3 to 14 take 9, 16, ... 196 ms.
TEST_F(ScriptCli, QuantilesAreThoseOfTheTimedSteps) {
  const std::string training =
      folder_.Write("squares.sh",
                    "i=0; while true; do i=$((i+1)); echo step $i: $((i * i)) ms; sleep 0.002; "
                    "done\n");
  const Json run = Answer(kShort + kPattern, {"sh", training})["runs"][0];
  const CsvTable table = CsvTable::Read(runs_);
  const struct {
    const char* key;
    const char* column;
    double ms;
  } expected[] = {{"step_time_s", "step_time_s", 1010.0 / 12},
                  {"p50_s", "p50_s", 72.5},
                  {"p95_s", "p95_s", 181.15},
                  {"p99_s", "p99_s", 193.03}};
  for (const auto& e : expected) {
    EXPECT_NEAR(run[e.key].get<double>(), 1e-3 * e.ms, 1e-12) << e.key;
    const std::string field = table.rows().at(0).fields[table.RequiredColumn(e.column)];
    EXPECT_NEAR(std::stod(field), 1e-3 * e.ms, 1e-6) << e.column;
  }
}

// How far it is stands on a terminal, and elsewhere now and then: not within a second or two.
TEST_F(ScriptCli, SaysNothingOfAShortRun) {
  const std::string training = folder_.Write(
      "slow.sh", "i=0; while true; do i=$((i+1)); echo step $i: $i ms; sleep 0.1; done\n");
  std::ofstream(wanted_) << "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                            "resnet50,t4,1,0,none,32,STEP_TIME\n";
  const ProcessResult result = program::Stepcast(Probe(kShort + kPattern, {"sh", training}));
  EXPECT_EQ(result.exit_code, 0);
  if (result.wall_s > 8) GTEST_SKIP() << "the machine was too busy";
  EXPECT_EQ(result.err, "");
}

TEST_F(ScriptCli, WhatWasMeasuredIsTakenOver) {
  EXPECT_EQ(Answer(kShort + kPattern, Training())["runs"].size(), 3U);
  const std::string before = FileContent(runs_);
  std::ofstream(wanted_, std::ios::app) << "resnet50,t4,1-1-1,0,ring,64,STEP_TIME\n";
  const Json json = Answer(kShort + kPattern, Training());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(json["runs"][i]["outcome"], "taken over");
  EXPECT_EQ(json["runs"][3]["outcome"], "measured");
  const std::string after = FileContent(runs_);
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_EQ(ReadRuns(runs_).size(), 4U);
  // Other columns are another file.
  folder_.Write("wanted.csv",
                "note,workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                "x,resnet50,t4,1,0,none,32,STEP_TIME\n");
  ExpectError(Probe(kShort + kPattern, Training()), {"runs.csv:1: has other columns"});
  EXPECT_EQ(FileContent(runs_), after);
}

TEST_F(ScriptCli, WhatDoesNotFinishOrFailsIsToldAndTheRestIsKept) {
  // Two workers take too long, a batch of 64 fails.
  const std::string training =
      folder_.Write("bad.sh",
                    "if [ $2 = 64 ]; then echo out of memory; exit 3; fi\n"
                    "if [ $1 = 2 ]; then echo step 1: 5 ms; sleep 1000; fi\nexec sh " +
                        training_ + " $1 $2\n");
  const Words options = kShort + kPattern + Words{"--run-limit", "1 s"};
  const Words command = {"sh", training, "{workers}", "{local_batch}"};
  const Json json = Answer(options, command, 1);
  EXPECT_EQ(json["runs"][0]["outcome"], "measured");
  EXPECT_TRUE(json["runs"][0]["bound_s"].is_null());
  EXPECT_EQ(json["runs"][1]["outcome"], "unfinished");
  const double bound = json["runs"][1]["bound_s"].get<double>();
  EXPECT_GT(bound, 0.3);
  EXPECT_LT(bound, 5);
  EXPECT_TRUE(json["runs"][1]["step_time_s"].is_null());
  EXPECT_EQ(json["runs"][2]["outcome"], "failed");
  const std::string problem = json["runs"][2]["problem"].get<std::string>();
  EXPECT_NE(problem.find("exit code 3 after 0 steps"), std::string::npos) << problem;
  EXPECT_NE(problem.find("out of memory"), std::string::npos) << problem;
  // What is known of it is written, and it is tried again.
  const std::vector<stepcast::Run> runs = ReadRuns(runs_);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_FALSE(runs[0].stopped);
  EXPECT_TRUE(runs[0].spread.p95.has_value());
  EXPECT_TRUE(runs[1].stopped);
  EXPECT_NEAR(runs[1].step_time.in(kSeconds), bound, 1e-5 * bound);
  EXPECT_FALSE(runs[1].spread.p50.has_value());
  ExpectText(Probe(options, command), {"> ", "unfinished", "failed", "taken over"}, 1);
  EXPECT_EQ(ReadRuns(runs_).size(), 3U);
}

// What has gone wrong is said with the steps that were seen and where they were looked for.
TEST_F(ScriptCli, WhyARunFailedIsSaid) {
  folder_.Write("wanted.csv",
                "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                "resnet50,t4,1,0,none,32,STEP_TIME\n");
  const struct {
    Words options;
    const char* script;
    const char* problem;
  } cases[] = {
      {{},
       "exit 4",
       "ended with exit code 4 after 0 steps that stepcast_steps.py told of; it "
       "printed nothing"},
      {kPattern, "echo hello; exit 4",
       "ended with exit code 4 after 0 steps that --pattern finds; its last line: hello"},
      {kPattern, "echo step 1: 5 ms; echo step 2: 6 ms; echo bye; exit 4",
       "ended with exit code 4 after 2 steps, of which a warm-up takes the first; its last line: "
       "bye"}};
  for (const auto& c : cases) {
    const Json json = Answer(kShort + c.options, {"sh", "-c", c.script}, 1);
    EXPECT_EQ(json["runs"][0]["outcome"], "failed");
    EXPECT_EQ(json["runs"][0]["problem"], c.problem);
    const std::string text =
        program::Stepcast(Probe(kShort + c.options, {"sh", "-c", c.script})).out;
    EXPECT_NE(program::Unwrapped(text).find(std::string("! resnet50: 1 worker, local batch 32: ") +
                                            c.problem + " "),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("runs: "), std::string::npos) << "there is no file of them";
    EXPECT_EQ(program::RowOf(text, "resnet50: 1 worker, local batch 32"),
              (Words{"resnet50: 1 worker, local batch 32", "-", "-", "-", "-", "-", "failed"}));
  }
  // Out of time before and behind the fewest steps of which there are quantiles.
  const Words soon = kShort + kPattern + Words{"--run-limit", "0.5 s"};
  const Json none = Answer(soon, {"sh", "-c", "echo step 1: 5 ms; echo bye; sleep 1000"}, 1);
  const std::string problem = none["runs"][0]["problem"].get<std::string>();
  EXPECT_EQ(problem.rfind("1 steps within ", 0), 0U) << problem;
  EXPECT_NE(problem.find(", and none in the last "), std::string::npos) << problem;
  EXPECT_TRUE(problem.ends_with(" of it; its last line: bye")) << problem;
  const Json some =
      Answer(soon, {"sh", "-c", "for i in 1 2 3 4 5 6 7; do echo step $i: 5 ms; done; sleep 1000"});
  EXPECT_EQ(some["runs"][0]["problem"], "5 steps of 12: there was no time for more");
}

// Each value of a row stands in the training's environment; a command that has none of those that
// differ is told to be the same, unless it reads them there.
TEST_F(ScriptCli, ValuesAreInTheEnvironmentToo) {
  const std::string training = folder_.Write(
      "variables.sh",
      "i=0; while true; do i=$((i+1)); echo \"step $i: $((100 * STEPCAST_WORKERS + 2 * "
      "STEPCAST_LOCAL_BATCH)) ms\"; sleep 0.002; done\n");
  const auto flag = [](const std::string& column, const std::string& variable) {
    return "runs that differ in " + column + " have the very same command: unless it reads " +
           variable + ", they are one run measured twice; {" + column +
           "} in the command stands for the value";
  };
  const Words words = Probe(kShort + kPattern, {"sh", training});
  const ProcessResult result = program::Stepcast(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Answer(kShort + kPattern, {"sh", training});
  EXPECT_EQ(json["flags"],
            Json({flag("local_batch", "STEPCAST_LOCAL_BATCH"),
                  flag("placement", "STEPCAST_PLACEMENT"), flag("strategy", "STEPCAST_STRATEGY")}));
  for (const Json& one : json["flags"]) {
    EXPECT_NE(program::Unwrapped(result.out).find("! " + one.get<std::string>()), std::string::npos)
        << result.out;
  }
  // Who names all that differ is told nothing.
  const Json named =
      Answer(kShort + kPattern, {"sh", training, "{placement}", "{strategy}", "{local_batch}"});
  EXPECT_EQ(named["flags"], Json::array());
  EXPECT_NE(result.out.find("3 runs of a training\n"), std::string::npos) << result.out;
  EXPECT_TRUE(result.out.ends_with("- runs: " + runs_ + "\n")) << result.out;
  const std::pair<const char*, const char*> rows[] = {
      {"resnet50: 1 worker, local batch 32", "164 ms"},
      {"resnet50: 2 workers (2 x 1), ring, local batch 32", "264 ms"},
      {"resnet50: 2 workers (2 x 1), ring, local batch 64", "328 ms"}};
  for (const auto& [run, time] : rows) {
    EXPECT_EQ(program::RowOf(result.out, run),
              (Words{run, "12", time, time, time, time, "measured"}))
        << result.out;
  }
}

// The limit of all runs ends the one that is under way, which may take half an hour by itself.
TEST_F(ScriptCli, TheTimeLimitEndsTheRunThatIsUnderWay) {
  const std::string training =
      folder_.Write("slow.sh", "echo step 1: 5 ms; echo step 2: 5 ms; exec sleep 30\n");
  const auto start = std::chrono::steady_clock::now();
  const Json json = Answer(kShort + kPattern + Words{"--time-limit", "1 s"}, {"sh", training}, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(json["runs"][0]["outcome"], "unfinished");
  EXPECT_EQ(json["runs"][1]["outcome"], "interrupted");
  EXPECT_EQ(json["runs"][1]["problem"], "it was not begun");
}

// The time until a first step is mostly not a step's.
TEST_F(ScriptCli, WhatNeverStepsHasNoBound) {
  const std::string training = folder_.Write("loads.sh", "sleep 1000\n");
  const Json json = Answer(kShort + kPattern + Words{"--run-limit", "0.3 s"}, {"sh", training}, 1);
  EXPECT_EQ(json["runs"][0]["outcome"], "unfinished");
  EXPECT_TRUE(json["runs"][0]["bound_s"].is_null());
}

TEST_F(ScriptCli, TooFewStepsAreSaid) {
  const std::string training =
      folder_.Write("few.sh", "for i in 1 2 3 4 5 6; do echo step $i: 100 ms; done\n");
  const Json json = Answer(kShort + kPattern, {"sh", training});
  EXPECT_EQ(json["runs"][0]["measured_steps"], 4);
  EXPECT_EQ(json["runs"][0]["problem"], "4 steps of 12: it ended with exit code 0");
  EXPECT_EQ(ReadRuns(runs_).size(), 3U);
}

// A full disk, as the system has one.
TEST_F(ScriptCli, AFullDiskEndsItWithWhatWasMeasuredPrinted) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  runs_ = "/dev/full";
  const ProcessResult result =
      program::Stepcast(Probe(kShort + kPattern + Words{"--json"}, Training()));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("/dev/full: cannot be written"), std::string::npos) << result.err;
  EXPECT_NEAR(Json::parse(result.out)["runs"][0]["step_time_s"].get<double>(), 0.165, 1e-9);
}

TEST_F(ScriptCli, AnInterruptKeepsWhatWasMeasured) {
  // The second run tells who to interrupt: the program that started it.
  const std::string training =
      folder_.Write("wait.sh", "if [ $1 = 2 ]; then kill -INT $PPID; sleep 1000; fi\nexec sh " +
                                   training_ + " $1 $2\n");
  const Json json = Answer(kShort + kPattern, {"sh", training, "{workers}", "{local_batch}"}, 1);
  EXPECT_EQ(json["runs"][0]["outcome"], "measured");
  EXPECT_EQ(json["runs"][1]["outcome"], "interrupted");
  EXPECT_EQ(json["runs"][2]["outcome"], "interrupted");
  EXPECT_EQ(ReadRuns(runs_).size(), 1U);
}

// ---- The callback, as PyTorch's and Keras's classes would call it.

class ScriptPython : public ScriptCli {
 protected:
  void SetUp() override {
    ScriptCli::SetUp();
    if (access(kPython, X_OK) != 0) GTEST_SKIP() << "no python3 in /usr/bin";
  }
  void Expect20Ms(const std::string& script) {
    const std::string program =
        folder_.Write("train.py",
                      "import sys, time\n"
                      "sys.path.insert(0, '" STEPCAST_SOURCE_DIR "/microbench/script')\n" +
                          script);
    const Json json = Answer(kShort, {kPython, program});
    for (const Json& run : json["runs"]) {
      EXPECT_EQ(run["measured_steps"], 12);
      // The machine may be busy; no step is shorter.
      EXPECT_GE(run["step_time_s"].get<double>(), 0.02);
      EXPECT_LT(run["p50_s"].get<double>(), 0.2);
    }
  }
};

TEST_F(ScriptPython, AnOptimizerIsWatched) {
  Expect20Ms(
      "import stepcast_steps\n"
      "class Optimizer:\n"
      "    def step(self, closure=None):\n"
      "        return closure\n"
      "o = Optimizer()\n"
      "stepcast_steps.watch(o)\n"
      "while True:\n"
      "    time.sleep(0.02)\n"
      "    assert o.step(closure=3) == 3\n");
}

TEST_F(ScriptPython, KerasCallsBack) {
  Expect20Ms(
      "import types\n"
      "keras = types.ModuleType('keras')\n"
      "keras.callbacks = types.ModuleType('keras.callbacks')\n"
      "keras.callbacks.Callback = type('Callback', (), {})\n"
      "sys.modules.update({'keras': keras, 'keras.callbacks': keras.callbacks})\n"
      "import stepcast_steps\n"
      "callback = stepcast_steps.keras_callback()\n"
      "assert isinstance(callback, keras.callbacks.Callback)\n"
      "for i in range(1000):\n"
      "    time.sleep(0.02)\n"
      "    callback.on_train_batch_end(i, {})\n");
}

// Ranks together are what import pcap reads.
TEST_F(ScriptPython, EachRankWritesItsOwn) {
  const std::string path = folder_.Path("steps.csv");
  for (const char* rank : {"0", "1"}) {
    const ProcessResult result = RunProcess(
        {kPython, "-c",
         "import sys; sys.path.insert(0, '" STEPCAST_SOURCE_DIR
         "/microbench/script'); import stepcast_steps; s = stepcast_steps.Steps(host='n' + '" +
             std::string(rank) + "'); s.done(); s.done()"},
        {.variables = {"RANK=" + std::string(rank), "STEPCAST_STEPS=" + path}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const std::string all = FileContent(path) + FileContent(path + ".1");
  EXPECT_EQ(all.substr(0, 26), "host,step,begin_s,end_s\nn0");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5);
  EXPECT_NE(all.find("\nn1,1,"), std::string::npos);
}

// ---- What is refused.

TEST_F(ScriptCli, WhatIsWrongIsSaid) {
  ExpectError({"probe", "script"}, {"FILE: is required"});
  ExpectError({"probe", "script", wanted_}, {"COMMAND: is required"});
  ExpectError(Probe(kPattern, {"sh", "{worker}"}), {"'{worker}' stands for nothing", "{workers}"});
  ExpectError(Probe({"--pattern", "[0-9]+"}, {"true"}), {"--pattern", "has no named group"});
  ExpectError(Probe({"--pattern", "(?<ms>[0-9]+)(?= ms)"}, {"true"}),
              {"--pattern: '(?<ms>[0-9]+)(?= ms)' looks around", "RE2", "allowed: what stands"});
  ExpectError(Probe({"--steps", "2"}, {"true"}), {"--steps: '2'"});
  ExpectError(Probe({"--run-limit", "31 d"}, {"true"}),
              {"--run-limit: '31 d' is out of range; allowed: up to 30 d"});
  ExpectError(Probe({"--time-limit", "0 s"}, {"true"}), {"--time-limit: '0 s' is out of range"});
  ExpectError(Probe({"--flows", "2"}, {"true"}), {"--flows: has no meaning for script"});
  ExpectError({"probe", "network", "--hosts", "a,b", "--steps", "9"},
              {"--steps: has no meaning for network"});
  ExpectError(Probe({}, {"no-such-program"}), {"'no-such-program' cannot be run"});
  EXPECT_NE(access(runs_.c_str(), F_OK), 0) << "nothing was measured";
  runs_ = folder_.Path("none/runs.csv");
  ExpectError(Probe({}, {"true"}), {"none/runs.csv: cannot be written: No such file"});
}

}  // namespace
}  // namespace stepcast
