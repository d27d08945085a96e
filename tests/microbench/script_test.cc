// What a training's command becomes, and how its steps are found.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "data/io/csv.h"
#include "data/io/runs.h"
#include "microbench/script/step_pattern.h"
#include "microbench/script/training.h"
#include "microbench/script/wanted_runs.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast::script {
namespace {

StepPattern Pattern(const std::string& text) { return {text, {"", 0, "--pattern"}}; }

TEST(StepPattern, FindsTheNumberWithItsUnit) {
  EXPECT_NEAR(*Pattern("step (?<ms>[0-9.]+) ms").Find("I0131 step 12.5 ms, loss 3"), 0.0125, 1e-15);
  EXPECT_NEAR(*Pattern("(?<s>\\d+\\.\\d+)s").Find("took 1.25s"), 1.25, 1e-15);
  EXPECT_NEAR(*Pattern("(?<us>[0-9]+)").Find("250"), 250e-6, 1e-15);
  EXPECT_NEAR(*Pattern("(?<per_s>[0-9.]+)it/s").Find(" 10/100 [00:01, 8.00it/s]"), 0.125, 1e-15);
  // Other groups, classes with brackets, and escapes stand before it.
  EXPECT_NEAR(*Pattern("(a|b)(?:c)[(\\]]\\((d) (?<s>[0-9]+)(e)?").Find("bc](d 7"), 7, 1e-15);
  EXPECT_FALSE(Pattern("step (?<ms>.*) ms").Find("step many ms"));
  EXPECT_FALSE(Pattern("(?<s>[0-9.]+)").Find("0"));
  EXPECT_FALSE(Pattern("(?<s>[0-9.]+)").Find("none"));
  std::string held;
  EXPECT_FALSE(Pattern("tps: (?<per_s>[0-9.,]+)").Find("tps: 6,500 of 7,000", &held));
  EXPECT_EQ(held, "6,500");
  // No runs file has such times.
  EXPECT_FALSE(Pattern("(?<us>[0-9.e-]+)").Find("1e-320"));
  EXPECT_FALSE(Pattern("(?<per_s>[0-9.e-]+)").Find("1e-320"));
  EXPECT_FALSE(Pattern("(?<s>[0-9.]+)").Find("12345678"));
}

// The named group is the one that is meant, whatever looks like a bracket before it.
TEST(StepPattern, OnlyGroupsAreGroups) {
  EXPECT_EQ(Pattern("[[:alpha:](](?<s>[0-9])").Find("(7"), 7);
  EXPECT_EQ(Pattern("[](?<ms>](?<s>[0-9])").Find("(]7"), 7);
  EXPECT_EQ(Pattern("[^](?<ms>](?<s>[0-9])").Find("<1 x7"), 7);
  EXPECT_EQ(Pattern("\\(?<ms>\\)(?<s>[0-9])").Find("(<ms>)7"), 7);
  EXPECT_EQ(Pattern("\\(\\?<ms>\\)(?<s>[0-9])").Find("(?<ms>)7"), 7);
  EXPECT_EQ(Pattern("\\Q(?<ms>[\\E(?<s>[0-9])").Find("(?<ms>[7"), 7);
  EXPECT_EQ(Pattern("(?i:STEP) (?P<s>[0-9])").Find("step 7"), 7) << "as Python writes it";
  EXPECT_EQ(Pattern("((a)|b)*(x(?<s>[0-9]))?(c)").Find("abx7c"), 7);
  EXPECT_EQ(Pattern("(?<s>[0-9])?c").Find("c"), std::nullopt) << "it took no part";
}

// Lines are bytes, whether they are UTF-8 or not.
TEST(StepPattern, LinesAreBytes) {
  EXPECT_EQ(Pattern("\u03bc(?<s>[0-9])").Find("4 \u03bc5"), 5);
  EXPECT_EQ(Pattern("^..(?<s>[0-9])").Find("\u03bc5"), 5);
  EXPECT_EQ(Pattern("^x.(?<s>[0-9])").Find("x\3775"), 5);
  EXPECT_EQ(Pattern("^x\\377\\12(?<s>[0-9])").Find("x\377\n5"), 5) << "in octal";
  EXPECT_EQ(Pattern(std::string(1, '\0') + "(?<s>[0-9])").Find('4' + std::string(1, '\0') + '5'),
            5);
}

TEST(StepPattern, LongLinesAreReadToTheirEnd) {
  EXPECT_EQ(Pattern("(?<s>[0-9]+)$").Find(std::string(1'000'000, ' ') + "7"), 7);
}

// Whatever it is asked to try, an answer comes, and soon: of each of these a matcher that goes back
// and tries again takes seconds to years.
TEST(StepPattern, NoPatternTakesLong) {
  constexpr std::size_t kLength = 1'000'000;
  const std::string ones(kLength, '1');
  std::string mixed = ones;
  std::mt19937 random(1);
  for (char& digit : mixed) digit = random() % 2 == 0 ? '1' : '2';
  for (const char* const text :
       {"(1+)+b(?<s>[0-9]+)", "((1|11)*)*x(?<s>[0-9]+)", "(1+1+)+y(?<s>[0-9]+)",
        ".*1.*1.*1.*y(?<s>[0-9]+)", "(.*1){20}c(?<s>[0-9]+)", "^(([0-9])+.)+[A-Z](?<s>[0-9]+)$",
        "(1|2)*1(1|2){20}c(?<s>[0-9]+)"}) {
    SCOPED_TRACE(text);
    const StepPattern pattern = Pattern(text);
    for (const std::string& line : {ones, mixed}) {
      const std::clock_t begin = std::clock();
      EXPECT_FALSE(pattern.Find(line));
      EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 1.0);
    }
  }
}

TEST(StepPattern, IsAsLongAsItMayBe) {
  const std::string pattern = "(?<s>1)|[" + std::string(990, 'a') + "]";
  ASSERT_EQ(pattern.size(), 1000U);
  EXPECT_EQ(Pattern(pattern).Find("21"), 1);
  EXPECT_TRUE(Says(ErrorOf([&] { Pattern(pattern + "a"); }), "allowed: at most 1000 bytes"));
}

TEST(StepPattern, WhatBeginsWithAnythingTakesTheLast) {
  // The last of them, as .* takes as much as it can.
  EXPECT_EQ(Pattern(".*time (?<s>[0-9.]+)").Find("time 1 time 2 end"), 2);
  EXPECT_EQ(Pattern(".*time (?<s>[0-9.]+)").Find("a\rtime 3"), 3) << ". is no line end";
  EXPECT_EQ(Pattern(".*x|time (?<s>[0-9.]+)").Find("a time 3"), 3) << "the other way";
}

TEST(StepPattern, WhatIsWrongIsSaid) {
  const auto error = [](const std::string& text) { return ErrorOf([&] { Pattern(text); }); };
  EXPECT_TRUE(Says(error("step [0-9]+"), "--pattern: 'step [0-9]+' has no named group"));
  EXPECT_TRUE(Says(error("(?<min>[0-9]+)"), "'min' is not a unit"));
  EXPECT_TRUE(Says(error("(?<s"), "is not a unit"));
  EXPECT_TRUE(Says(error("(?<s>a)(?<ms>b)"), "has two named groups"));
  EXPECT_TRUE(Says(error("(?<s>a)" + std::string(100'000, '(')), "is too long"));
  EXPECT_TRUE(Says(error("(?P<s>a)(?<s>b)"), "has two named groups"));
  EXPECT_NEAR(*Pattern("a{2}(?<s>[0-9]{1,50})b{2,}").Find("aa12bb"), 12, 1e-12);
  EXPECT_TRUE(Says(error("(?<s>[0-9]+"), "is not a regular expression: "));
  EXPECT_FALSE(Says(error("(a)(?<s>[0-9]+"), "(?:")) << "only what was typed is quoted";
  EXPECT_TRUE(Says(error("\\y(?<s>[0-9]+)"), "is not a regular expression: "));
  EXPECT_TRUE(Says(error("\\y(?<s>[0-9]+)"), ": \\y; allowed: a regular expression with"));
  EXPECT_TRUE(Says(error("(?<s>[0-9]{1001})"), "is not a regular expression: "));
  for (const char* const text : {"", "\\", "[", "[[:", "(", "(?", "(?<", "(?P<", "(?P", "\\Q"}) {
    EXPECT_TRUE(error(text)) << text;
    EXPECT_TRUE(error(std::string(text) + "(?<s>1")) << text;
  }
}

// What RE2 has not is named, for other expressions have it.
TEST(StepPattern, NeitherRefersBackNorLooksAround) {
  const auto error = [](const std::string& text) { return ErrorOf([&] { Pattern(text); }); };
  for (const char* const text :
       {"(a)\\1(?<s>b)", "(a)\\18(?<s>b)", "(a)\\8(?<s>b)", "(?<s>b)\\k<s>", "(?<s>b)(?P=s)"}) {
    EXPECT_TRUE(Says(error(text), "--pattern: '" + std::string(text) +
                                      "' refers back to a group, which no expression of RE2 does; "
                                      "allowed: what the group holds"));
  }
  for (const char* const text :
       {"(?=a)(?<s>b)", "(?<s>b)(?!a)", "(?<=a)(?<s>b)", "(?<!a)(?<s>b)"}) {
    EXPECT_TRUE(Says(error(text), "--pattern: '" + std::string(text) +
                                      "' looks around, which no expression of RE2 does; allowed: "
                                      "what stands before or behind"));
  }
}

// A pattern takes no more than a bounded part of time and memory: what it may be is told.
TEST(StepPattern, TooLargeOnesAreRefused) {
  const auto error = [](const std::string& text) { return ErrorOf([&] { Pattern(text); }); };
  EXPECT_TRUE(Says(error("(?<s>((a?){9}){1,99})"), "makes too many instructions of RE2: "));
  EXPECT_TRUE(Says(error("(?<s>((a?){9}){1,99})"), "; allowed: at most 300; a character is one"));
  EXPECT_TRUE(Says(error("(" + std::string(900, 'a') + "){900}(?<s>1)"),
                   "makes too many instructions of RE2, and needs too much memory; allowed: at"));
  EXPECT_TRUE(Says(error("(?<s>1)" + std::string(400, 'a')), "makes too many instructions"));
  EXPECT_EQ(Pattern("(?<s>1)" + std::string(250, 'a')).Find('1' + std::string(250, 'a')), 1);
  // Groups beside the named one are as many as one likes.
  std::string groups = "(?<s>[0-9]+)";
  for (int i = 0; i < 50; ++i) groups += "(a?)";
  EXPECT_EQ(Pattern(groups).Find("12aaa"), 12);
}

constexpr const char* kWanted =
    "workload,device,placement,servers,strategy,local_batch,accumulation_steps,step_time_s,note\n"
    "resnet50,t4,2-2,0,ring,32,4,STEP_TIME,\"a, b\"\n"
    "resnet50,t4,1,0,none,64,1,STEP_TIME,\n";

TEST(WantedRuns, FillCommands) {
  const WantedRuns wanted = ParseWantedRuns(kWanted, "w.csv");
  ASSERT_EQ(wanted.runs.size(), 2U);
  EXPECT_EQ(wanted.runs[1].run.place.line, 3);
  const auto values = ValuesOf(wanted, wanted.runs[0]);
  EXPECT_EQ(FillIn("--n={workers}x{nodes}x{devices_per_node}", values), "--n=4x2x2");
  EXPECT_EQ(FillIn("{local_batch}*{accumulation_steps}={global_batch}", values), "32*4=512");
  EXPECT_EQ(FillIn("{note}", values), "a, b");
  // Braces of the command's own.
  EXPECT_EQ(FillIn("{\"a\": 1} ${{HOME}} {} {A} {{workers} {", values),
            "{\"a\": 1} ${HOME}} {} {A} {workers} {");
  EXPECT_TRUE(Says(ErrorOf([&] { FillIn("{worker}", values); }), "'{worker}' stands for nothing"));
  EXPECT_EQ(values.count("step_time_s"), 0U);
}

// What two runs of one command differ in, which nobody tells it.
TEST(WantedRuns, OfOneCommandAreNoTwoMeasurements) {
  const WantedRuns wanted = ParseWantedRuns(
      "workload,device,placement,servers,strategy,local_batch,note,step_time_s\n"
      "resnet50,t4,1,0,none,8,a,STEP_TIME\n"
      "resnet50,t4,1,0,none,16,b,STEP_TIME\n"
      "resnet50,t4,1,0,none,16,c,STEP_TIME\n",
      "w.csv");
  const std::set<std::string> batch = {"local_batch"};
  EXPECT_EQ(UntoldColumns(wanted, {"train"}), batch);
  EXPECT_EQ(UntoldColumns(wanted, {"train", "--nodes={nodes}"}), batch);
  EXPECT_TRUE(UntoldColumns(wanted, {"train", "{local_batch}"}).empty());
  EXPECT_TRUE(UntoldColumns(wanted, {"train", "{global_batch}"}).empty());
  EXPECT_TRUE(UntoldColumns(wanted, {"sh", "-c", "train $STEPCAST_LOCAL_BATCH"}).empty());
}

TEST(WantedRuns, MayBeginWithAnEmptyField) {
  const WantedRuns wanted = ParseWantedRuns(
      "accumulation_steps,workload,device,placement,servers,strategy,local_batch,step_time_s\n"
      ",resnet50,t4,1,0,none,8,STEP_TIME\n",
      "w.csv");
  ASSERT_EQ(wanted.runs.size(), 1U);
  EXPECT_EQ(wanted.runs[0].run.workload, "resnet50");
  EXPECT_EQ(wanted.runs[0].run.plan.accumulation_steps, 1);
}

TEST(WantedRuns, AreRunsWithoutTimes) {
  const auto error = [](const std::string& text) {
    return ErrorOf([&] { ParseWantedRuns(text, "w.csv"); });
  };
  const std::string header = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";
  EXPECT_TRUE(Says(error(header + "resnet50,t4,1,0,none,8,0.5\n"),
                   "w.csv:2: step_time_s: '0.5' is no run to be measured"));
  EXPECT_TRUE(Says(error(header + "resnet50,t4,1,0,none,8,STEP_TIME\n\nresnet50,t4,0,0,none,8,"
                                  "STEP_TIME\n"),
                   "w.csv:4: placement: '0'"));
  EXPECT_TRUE(Says(error(header), "has no runs"));
  EXPECT_TRUE(Says(error("workload,step_time_s\nx,STEP_TIME\n"), "w.csv:1: device"));
  EXPECT_TRUE(Says(error("workload\nx\n"), "step_time_s"));
}

TEST(WantedRuns, APlanIsReadFromARunWhateverItsTimes) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) {
    return ReadPlannedRuns(folder.Write("jobs.csv", text));
  };
  const std::string header = "workload,device,placement,servers,strategy,local_batch";
  const std::string row = "resnet50,t4,1-1,0,ring,8";
  EXPECT_EQ(read(header + "\n" + row + "\n").front().plan.workers(), 2);
  for (const char* time : {"STEP_TIME", "0.5", ">1800", ""}) {
    const std::vector<stepcast::Run> runs =
        read(header + ",step_time_s,p50_s,exposed_sync_s,source\n" + row + "," + time +
             ",30,20,a log\n");
    ASSERT_EQ(runs.size(), 1U) << time;
    EXPECT_EQ(runs[0].plan.local_batch, 8);
    EXPECT_FALSE(runs[0].stopped);
    // What another measurement has left is not this run's.
    EXPECT_FALSE(runs[0].exposed_sync) << time;
    EXPECT_EQ(runs[0].source, "") << time;
  }
  EXPECT_TRUE(Says(ErrorOf([&] { read(header + "\n"); }), "jobs.csv: has no runs"));
  EXPECT_TRUE(Says(ErrorOf([&] { read(header + "\n\nresnet50,t4,1-1,0,ring,0\n"); }),
                   "jobs.csv:3: local_batch: '0'"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("workload\nx\n"); }), "jobs.csv:1: device"));
}

TEST(WantedRuns, KnowTheLinesOfRowsThatHaveSeveral) {
  const std::string text =
      "note,workload,device,placement,servers,strategy,local_batch,step_time_s\n"
      "\"two\nlines\",resnet50,t4,1,0,none,8,STEP_TIME\n"
      "\n"
      "\"three\n\nlines\",resnet50,t4,1,0,none,PLACE,STEP_TIME\n";
  const auto with = [&](const std::string& batch) {
    std::string changed = text;
    return ParseWantedRuns(changed.replace(changed.find("PLACE"), 5, batch), "w.csv");
  };
  const WantedRuns wanted = with("16");
  ASSERT_EQ(wanted.runs.size(), 2U);
  EXPECT_EQ(wanted.runs[0].run.place.line, 2);
  EXPECT_EQ(wanted.runs[1].run.place.line, 5);
  EXPECT_EQ(wanted.runs[1].fields[0], "three\n\nlines");
  EXPECT_TRUE(Says(ErrorOf([&] { with("-3"); }), "w.csv:5: local_batch: '-3'"));
}

// A header is read once: with each row anew half a gigabyte of names is read, and kept.
TEST(WantedRuns, OfAFileOfAMegabyteAreReadAtOnce) {
  std::string header = "workload,device,placement,servers,strategy,local_batch,step_time_s";
  std::string row = "resnet50,t4,1,0,none,8,STEP_TIME";
  constexpr int kColumns = 400;
  for (int i = 0; i < kColumns; ++i) {
    header += "," + std::string(990, 'x') + std::to_string(i);
    row += ',';
  }
  std::string text = header + "\n";
  constexpr int kRows = 1'300;
  for (int i = 0; i < kRows; ++i) text += row + "\n";
  ASSERT_LE(text.size(), 1'000'000U);
  const std::clock_t start = std::clock();
  EXPECT_EQ(ParseWantedRuns(text, "w.csv").runs.size(), std::size_t{kRows});
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2);
}

TEST(WantedRuns, WhatIsMeasuredIsARunsFile) {
  const WantedRuns wanted = ParseWantedRuns(kWanted, "w.csv");
  Timed timed;
  for (int i = 1; i <= 20; ++i) timed.step_s.push_back(0.1 * i);
  timed.source = "a test, \"as it is\"";
  Timed stopped;
  stopped.step_s = {0.5};
  stopped.bound_s = 1800.25;
  const std::string text = CsvLine(MeasuredHeader(wanted)) +
                           CsvLine(MeasuredFields(wanted, wanted.runs[0], timed)) +
                           CsvLine(MeasuredFields(wanted, wanted.runs[1], stopped));
  const std::vector<stepcast::Run> runs = ParseRuns(text, "runs.csv");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_NEAR(runs[0].step_time.si(), 1.05, 1e-6);
  EXPECT_EQ(runs[0].plan.placement, wanted.runs[0].run.plan.placement);
  EXPECT_EQ(runs[0].source, timed.source);
  EXPECT_NEAR(runs[0].spread.sd->si(), 0.591608, 1e-6);
  EXPECT_NEAR(runs[0].spread.p50->si(), 1.05, 1e-6);
  EXPECT_NEAR(runs[0].spread.p95->si(), 1.905, 1e-6);
  EXPECT_NEAR(runs[0].spread.p99->si(), 1.981, 1e-6);
  EXPECT_TRUE(runs[1].stopped);
  EXPECT_NEAR(runs[1].step_time.si(), 1800.25, 1e-2);
  EXPECT_FALSE(runs[1].spread.p50);
  EXPECT_EQ(WantedKey(wanted, MeasuredFields(wanted, wanted.runs[0], timed)),
            WantedKey(wanted, wanted.runs[0].fields));
  EXPECT_NE(WantedKey(wanted, wanted.runs[0].fields), WantedKey(wanted, wanted.runs[1].fields));
}

// Ten steps have a spread, and nine have none; how many there were stands beside them.
TEST(WantedRuns, TheSpreadOfAFewStepsIsNone) {
  const WantedRuns wanted = ParseWantedRuns(kWanted, "w.csv");
  const std::vector<std::string> header = MeasuredHeader(wanted);
  EXPECT_EQ(std::vector<std::string>(header.begin() + 9, header.end()),
            (std::vector<std::string>{"source", "measured_steps", "step_time_sd_s", "p50_s",
                                      "p95_s", "p99_s"}));
  for (const int steps : {9, 10}) {
    Timed timed;
    for (int i = 0; i < steps; ++i) timed.step_s.push_back(i < steps / 2 ? 1 : 3);
    const std::vector<std::string> fields = MeasuredFields(wanted, wanted.runs[1], timed);
    const std::vector<std::string> spread(fields.begin() + 10, fields.end());
    // The mean of 1 and 3 is 2, and each is 1 off: of ten, the root of 10 / 9.
    EXPECT_EQ(spread, steps < 10 ? (std::vector<std::string>{"9", "", "", "", ""})
                                 : (std::vector<std::string>{"10", "1.05409", "2", "3", "3"}));
    EXPECT_EQ(fields[7], steps < 10 ? "2.11111" : "2");
    timed.bound_s = 60;
    const std::vector<std::string> stopped = MeasuredFields(wanted, wanted.runs[1], timed);
    EXPECT_EQ(stopped[7], ">60");
    EXPECT_EQ(stopped[11], "");
  }
}

// What an earlier measurement has left in the row is none of this one.
TEST(WantedRuns, LeaveBehindWhatIsNotMeasured) {
  const WantedRuns wanted = ParseWantedRuns(
      "workload,device,placement,servers,strategy,local_batch,exposed_sync_s,step_time_s,source\n"
      "resnet50,t4,1-1,0,ring,8,0.25,STEP_TIME,a log\n",
      "w.csv");
  Timed timed;
  timed.step_s = {0.5};
  timed.source = "a test";
  const std::string text =
      CsvLine(MeasuredHeader(wanted)) + CsvLine(MeasuredFields(wanted, wanted.runs[0], timed));
  const std::vector<stepcast::Run> runs = ParseRuns(text, "runs.csv");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_FALSE(runs[0].exposed_sync);
  EXPECT_EQ(runs[0].step_time.si(), 0.5);
  EXPECT_EQ(runs[0].source, "a test");
}

// ---- Commands that run.

class TrainingTest : public testing::Test {
 protected:
  TrainingOptions Shell(const std::string& script) {
    TrainingOptions options;
    options.command = {"/bin/sh", "-c", script};
    options.pattern = &pattern_;
    options.warm_up = 2;
    options.steps = 3;
    options.limit_s = 20;
    return options;
  }
  StepPattern pattern_ = Pattern("step (?<ms>[0-9.]+)");
  TempFolder folder_;
};

bool Lives(const std::string& pid_file) {
  const std::string text = FileContent(pid_file);
  return !text.empty() && kill(std::stoi(text), 0) == 0;
}

TEST_F(TrainingTest, EndsWhenEnoughStepsWereTimed) {
  // It would go on for ever, with a child in a session of its own that takes no heed of asking.
  const std::string pid = folder_.Path("pid");
  const Training training =
      RunTraining(Shell("setsid sh -c 'trap \"\" TERM; echo $$ > " + pid +
                        "; exec sleep 1000' & "
                        "while [ ! -s " +
                        pid +
                        " ]; do sleep 0.01; done; "
                        "i=0; while true; do i=$((i+1)); echo step $i; sleep 0.01; done"));
  EXPECT_EQ(training.end, TrainingEnd::kEnough);
  EXPECT_EQ(training.step_s, (std::vector<double>{3 * 1e-3, 4 * 1e-3, 5 * 1e-3}));
  EXPECT_EQ(training.warm_up_seen, 2);
  EXPECT_FALSE(Lives(pid)) << "nothing that it started may be left";
}

TEST_F(TrainingTest, EndsByItself) {
  const Training training =
      RunTraining(Shell("echo warm; echo step 1; echo step 2 >&2; echo step 9; "
                        "printf 'step 8'; exit 7"));
  EXPECT_EQ(training.end, TrainingEnd::kEnded);
  EXPECT_EQ(training.exit_code, 7);
  EXPECT_EQ(training.step_s, (std::vector<double>{9 * 1e-3, 8 * 1e-3}))
      << "the last has no line end";
  EXPECT_EQ(training.last_lines.front(), "warm");
}

TEST_F(TrainingTest, ALongLineIsReadToo) {
  EXPECT_EQ(RunTraining(Shell("for i in 1 2 3 4 5; do printf \"%3000s $i\\n\" step; done")).step_s,
            (std::vector<double>{3 * 1e-3, 4 * 1e-3, 5 * 1e-3}));
}

// A progress bar writes its line anew, and ends it by no more than that.
TEST_F(TrainingTest, AProgressBarIsManyLines) {
  TrainingOptions options = Shell("printf 'step 1\\rstep 2\\r\\rstep 3\\r\\nstep 4\\rstep 5\\n'");
  options.warm_up = 1;
  options.steps = 10;
  const Training training = RunTraining(options);
  EXPECT_EQ(training.step_s, (std::vector<double>{2 * 1e-3, 3 * 1e-3, 4 * 1e-3, 5 * 1e-3}));
  EXPECT_EQ(training.last_lines.size(), 5U);
}

// Of all that it printed the last ten lines, and of those with times as many as are wanted.
TEST_F(TrainingTest, KeepsItsLastLines) {
  TrainingOptions options = Shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done");
  std::vector<int> seen;
  options.progress = [&](int steps) { seen.push_back(steps); };
  const std::vector<std::string> lines = RunTraining(options).last_lines;
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines.front(), "line 3");
  EXPECT_EQ(lines.back(), "line 12");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 0);
  options = Shell("echo step 1; echo step 2; echo step 3; echo step 4; echo step 5; echo step 6");
  options.progress = [&](int steps) { seen.push_back(steps); };
  EXPECT_EQ(RunTraining(options).step_s.size(), 3U);
  EXPECT_EQ(seen.back(), 5) << "two to warm up and three, and no more";
}

// As a shell tells it: 128 and the signal's number.
TEST_F(TrainingTest, ASignalIsToldByItsNumber) {
  EXPECT_EQ(RunTraining(Shell("kill -KILL $$")).exit_code, 137);
  EXPECT_EQ(RunTraining(Shell("kill -SEGV $$")).exit_code, 139);
}

TEST_F(TrainingTest, IsEndedAtItsLimit) {
  TrainingOptions options = Shell("echo step 1; sleep 1000");
  options.limit_s = 0.5;
  const Training training = RunTraining(options);
  EXPECT_EQ(training.end, TrainingEnd::kOutOfTime);
  EXPECT_EQ(training.warm_up_seen, 1);
  EXPECT_GE(training.elapsed_s, 0.5);
  EXPECT_LT(training.elapsed_s, 10);
  EXPECT_GT(training.since_step_s, 0.2);
  EXPECT_LE(training.since_step_s, training.elapsed_s);
}

TEST_F(TrainingTest, PrintsWithoutEndUpToItsLimit) {
  TrainingOptions options = Shell("exec yes a line without a time");
  options.limit_s = 0.5;
  const Training training = RunTraining(options);
  EXPECT_EQ(training.end, TrainingEnd::kOutOfTime);
  EXPECT_LE(training.last_lines.size(), 10U);
}

TEST_F(TrainingTest, AnInterruptEndsIt) {
  TrainingOptions options = Shell("sleep 1000");
  std::atomic<bool> interrupted = false;
  options.interrupted = &interrupted;
  std::thread later([&] { interrupted = true; });
  EXPECT_EQ(RunTraining(options).end, TrainingEnd::kInterrupted);
  later.join();
}

TEST_F(TrainingTest, TimesComeFromAFileToo) {
  TrainingOptions options = Shell(
      "(echo step,begin_s,end_s; i=0; while [ $i -lt 9 ]; do "
      "echo $i,100$i,100$i.25; i=$((i+1)); sleep 0.02; done) > $STEPS; sleep 1000");
  options.pattern = nullptr;
  options.steps_file = folder_.Path("steps.csv");
  options.variables["STEPS"] = options.steps_file;
  const Training training = RunTraining(options);
  EXPECT_EQ(training.end, TrainingEnd::kEnough);
  EXPECT_EQ(training.step_s, std::vector<double>(3, 0.25));
}

// A name that stood twice would have the one value for some programs and the other for others.
TEST_F(TrainingTest, AVariableReplacesThatOfTheProgram) {
  ASSERT_EQ(setenv("STEPCAST_OF_A_TEST", "1", 1), 0);
  const StepPattern pattern = Pattern("^STEPCAST_OF_A_TEST=(?<ms>[0-9]+)");
  TrainingOptions options = Shell("");
  options.command = {"env"};
  options.pattern = &pattern;
  options.warm_up = 0;
  options.variables["STEPCAST_OF_A_TEST"] = "2";
  EXPECT_EQ(RunTraining(options).step_s, std::vector<double>{2 * 1e-3});
  unsetenv("STEPCAST_OF_A_TEST");
}

TEST_F(TrainingTest, WhatCannotBeRunIsSaid) {
  TrainingOptions options = Shell("");
  options.command = {"no-such-program-of-stepcast"};
  EXPECT_TRUE(Says(ErrorOf([&] { RunTraining(options); }),
                   "'no-such-program-of-stepcast' cannot be run: No such file"));
}

}  // namespace
}  // namespace stepcast::script
