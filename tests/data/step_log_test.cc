// Step times out of logs. The lines are those of tests/fuzz/corpus/step_log, in the form that the
// programs print (their sources stand in the table of data/logs/step_log.cc), with numbers that can
// be added up by hand; those of keras-2 are the first epochs of data/logs/node/archive01.out of the
// companion repository of the low-bandwidth paper (kenichi220/comp-sys-perf-analysis-final-work).
#include "data/logs/step_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "data/values/size_limits.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

std::string Sample(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/step_log/" + name;
}

LoggedSteps Steps(const std::string& name, int warm_up, const StepChoice& choice = {}) {
  return ChooseSteps(ReadStepLog(Sample(name), {warm_up, nullptr}), choice, name);
}

struct Expected {
  const char* sample;
  const char* form;
  int warm_up;
  double mean_s;  // of a step, or of a sample
  std::int64_t numbers;
  std::int64_t left_out;
  double steps;
  std::int64_t validation;
};

TEST(StepLog, TellsEachFormsMeanAndWhatIsLeftOut) {
  const Expected all[] = {
      // The first epoch begins within the warm-up; evaluate() after the last is validation.
      {"keras-2", "Keras", 20, 0.219, 2, 1, 782, 1},
      {"keras-2", "Keras", 0, (0.244 + 0.218 + 0.220) / 3, 3, 0, 1173, 1},
      {"keras-2-bars", "Keras", 20, 9, 1, 1, 196, 0},
      {"keras-3", "Keras", 20, 0.080, 1, 1, 100, 1},
      // 20 steps of 0.5 s are the warm-up; then 20 and 40 of 0.4 s, in whole seconds.
      {"lightning", "progress bar", 20, 0.4, 2, 1, 60, 2},
      {"lightning", "progress bar", 0, (20 * 0.5 + 60 * 0.4) / 80, 2, 0, 80, 2},
      // Steps 11 to 25, 26 to 40 and 41 to 50; evaluations stand within and behind.
      {"trainer", "progress bar", 10, (210.0 - 43.0) / 40, 3, 1, 40, 4},
      {"pytorch", "PyTorch", 20, (0.252 + 0.248) / 2, 2, 3, 2, 1},
      {"tensorflow", "TensorFlow", 20, (0.5 + 0.4) / 2, 2, 1, 2, 0},
      {"slim", "TensorFlow slim", 20, (3.002 + 3.004 + 2.0) / 3, 3, 1, 3, 0},
      // 50 steps of 1 ms and 50 of 2 ms a sample, behind 49.
      {"mxnet", "MXNet", 20, (0.001 + 0.002) / 2, 2, 1, 100, 0},
      // Per device, the first of each rank left out.
      {"horovod", "Horovod", 20, (1 / 640.0 + 1 / 320.0) / 2, 2, 2, 2, 0},
      {"tf_cnn_benchmarks", "tf_cnn_benchmarks", 20, 1 / 300.0, 1, 0, 1, 0},
      {"megatron", "Megatron", 10, 1.05, 2, 1, 20, 0},
      {"epochs", "epochs", 20, (206.52 + 206.40) / 2, 2, 1, 2, 0},
  };
  for (const Expected& e : all) {
    SCOPED_TRACE(std::string(e.sample) + ", warm-up " + std::to_string(e.warm_up));
    const StepLog log = ReadStepLog(Sample(e.sample), {e.warm_up, nullptr});
    const LoggedSteps steps = ChooseSteps(log, {}, e.sample);
    EXPECT_STREQ(steps.form.name, e.form);
    EXPECT_NEAR(steps.mean_s, e.mean_s, 1e-12 * e.mean_s);
    EXPECT_EQ(steps.numbers, e.numbers);
    EXPECT_EQ(steps.warm_up, e.left_out);
    EXPECT_DOUBLE_EQ(steps.steps, e.steps);
    EXPECT_EQ(log.validation, e.validation);
  }
}

TEST(StepLog, SingleStepsKeepTheirTimes) {
  EXPECT_EQ(Steps("pytorch", 20).step_s, (std::vector<double>{0.248, 0.252}));
  EXPECT_EQ(Steps("pytorch", 0).step_s.size(), 4U);
  // Means do not show how steps scatter.
  EXPECT_TRUE(Steps("lightning", 0).step_s.empty());
}

TEST(StepLog, RanksAreToldByWhatLaunchersPutBeforeTheLine) {
  struct Prefix {
    const char* text;
    const char* rank;
    const char* rest;
  };
  const Prefix all[] = {{"[1,3]<stdout>:Iter", "3", "Iter"},
                        {"Wed Sep 25 10:28:36 2024[1,0]<stderr>:x", "0", "x"},
                        {"[prterun-n1-42@1,12]<stdout>: x", "12", " x"},
                        {"[default7]:x", "7", "x"},
                        {"[rank0]: x", "0", " x"},
                        {"[4] x", "4", " x"},
                        {"12: x", "12", "x"},
                        {" 3: [default1]:x", "3.1", "x"},
                        {"Epoch 0: x", "", "Epoch 0: x"},
                        {"[1/5] x", "", "[1/5] x"},
                        {"12:30:05 x", "", "12:30:05 x"},
                        {"[]: x", "", "[]: x"},
                        {"", "", ""}};
  for (const Prefix& prefix : all) {
    std::string_view text = prefix.text;
    EXPECT_EQ(TakeRank(&text), prefix.rank) << prefix.text;
    EXPECT_EQ(text, prefix.rest) << prefix.text;
  }
  const LoggedSteps steps = Steps("horovod", 20);
  ASSERT_EQ(steps.ranks.size(), 2U);
  EXPECT_EQ(steps.ranks[0].rank, "0");
  EXPECT_DOUBLE_EQ(steps.ranks[0].mean_s(), 1 / 640.0);
  EXPECT_DOUBLE_EQ(steps.ranks[1].mean_s(), 1 / 320.0);
  EXPECT_EQ(steps.form.samples, SamplesOf::kDevice);
}

TEST(StepLog, AnEpochWithItsValidationIsSaid) {
  EXPECT_EQ(Steps("keras-2", 0).with_others, 3);
  EXPECT_EQ(Steps("keras-3", 0).with_others, 1);
  EXPECT_EQ(Steps("keras-2-bars", 0).with_others, 0);
}

TEST(StepLog, OtherBarsAreNamedAndNotTaken) {
  const StepLog log = ReadStepLog(Sample("trainer"), {0, nullptr});
  ASSERT_EQ(log.bars.size(), 1U);
  EXPECT_EQ(log.bars.begin()->first, "Loading checkpoint shards:");
  // Examples a second are none of steps.
  ASSERT_EQ(log.unknown.count, 1);
  EXPECT_EQ(log.unknown.first.front().number, 1);
}

// Without a total a bar counts: what it has done stands before "it".
TEST(StepLog, ABarWithoutATotalCountsItsSteps) {
  const TempFolder folder;
  const std::string path = folder.Write("open.log",
                                        "Training: 20it [00:10,  2.00it/s]\n"
                                        "Training: 60it [00:20,  4.00it/s]\n"
                                        "Validating: 8it [00:01,  8.00it/s]\n");
  const StepLog log = ReadStepLog(path, {20, nullptr});
  EXPECT_EQ(log.validation, 1);
  const LoggedSteps steps = ChooseSteps(log, {}, "open.log");
  EXPECT_DOUBLE_EQ(steps.mean_s, 0.25);
  EXPECT_EQ(steps.steps, 40);
}

TEST(StepLog, OfTwoBarsWithoutTitlesOneIsChosen) {
  const TempFolder folder;
  const std::string path = folder.Write("two.log",
                                        "100%|##| 40/40 [00:20<00:00, 2.00it/s]\n"
                                        "100%|##| 8/8 [00:01<00:00, 8.00it/s]\n");
  const StepLog log = ReadStepLog(path, {0, nullptr});
  EXPECT_TRUE(
      Says(ErrorOf([&] { ChooseSteps(log, {}, "two.log"); }),
           "two.log: --bar: does not say which bar is the training's; allowed: one of 8, 40"));
  EXPECT_TRUE(Says(ErrorOf([&] { ChooseSteps(log, {"", 41}, "two.log"); }), "one of 8, 40"));
  EXPECT_DOUBLE_EQ(ChooseSteps(log, {"", 40}, "two.log").mean_s, 0.5);
}

TEST(StepLog, TheFormIsTheTablesFirstOrTheOneAskedFor) {
  const LoggedSteps first = Steps("trainer", 0);
  EXPECT_EQ(first.others, std::vector<std::string>{"Trainer"});
  const LoggedSteps whole = Steps("trainer", 0, {"Trainer", 0});
  EXPECT_DOUBLE_EQ(whole.mean_s, 1 / 0.237);
  EXPECT_EQ(whole.form.span, LoggedSpan::kRun);
  EXPECT_TRUE(Says(ErrorOf([] {
                     Steps("trainer", 0, {"Keras", 0});
                   }),
                   "--form: 'Keras' is no form that the log has; allowed: progress bar, Trainer"));
}

TEST(StepLog, EveryFormOfTheTableIsReadSomewhere) {
  std::vector<std::string> seen;
  for (const char* sample :
       {"keras-2", "lightning", "trainer", "pytorch", "tensorflow", "slim", "mxnet", "horovod",
        "tf_cnn_benchmarks", "megatron", "others", "epochs"}) {
    for (const StepSeries& series : ReadStepLog(Sample(sample), {0, nullptr}).series) {
      if (series.numbers > 0) seen.emplace_back(series.form.name);
    }
  }
  for (const std::string& name : StepFormNames()) {
    EXPECT_NE(std::count(seen.begin(), seen.end(), name), 0) << name;
  }
}

// A bar's rate is that of all its steps, or of the latest: the time that it has taken says which
// steps are slow, behind a first step that takes 12 s.
TEST(StepLog, ABarsStepsTakeWhatTheBarHasTaken) {
  for (const bool of_the_whole : {true, false}) {
    for (const bool slows : {false, true}) {
      double sum = 0;
      double steps = 0;
      double latest = 0;
      StepLogReader reader({20, nullptr, [&](const LoggedNumber& number) {
                              if (number.warm_up) return;
                              sum += number.time_s * static_cast<double>(number.steps);
                              steps += static_cast<double>(number.steps);
                              latest = number.time_s;
                            }});
      double elapsed = 12;
      double moving = 0;
      for (int i = 1; i <= 1500; ++i) {
        const double step = slows && i > 750 ? 0.22 : 0.137;
        elapsed += step;
        moving = i == 1 ? step : 0.3 * step + 0.7 * moving;
        const double time = of_the_whole ? elapsed / i : moving;
        const int seconds = static_cast<int>(elapsed);
        if (i % 5 != 0) continue;
        const std::string text = fmt::format(
            "Epoch 0: {:3}%|###| {}/1500 [{:02}:{:02}<02:00, {:.2f}{}, v_num=0]", i / 15, i,
            seconds / 60, seconds % 60, time > 1 ? time : 1 / time, time > 1 ? "s/it" : "it/s");
        reader.Take({text, i}, "bars.log");
      }
      EXPECT_NEAR(sum / steps, slows ? 0.5 * (0.137 + 0.22) : 0.137, 0.003) << of_the_whole;
      EXPECT_NEAR(latest / (slows ? 0.22 : 0.137), 1, 0.1) << of_the_whole;
    }
  }
}

// The first step of an epoch waits for the loader. A log of every tenth step tells it always, and
// would have it count for ten; a log of all steps tells it as often as it is.
TEST(StepLog, TheFirstStepOfAnEpochCountsAsOneOfAll) {
  constexpr int kSteps = 200;
  const auto steps_of = [&](int every, int first) {
    StepLogReader reader({20, nullptr});
    int line = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int i = 0; i < kSteps; ++i) {
        if (i % every != 0) continue;
        const std::string text = fmt::format("Epoch: [{}][{:4}/{}]\tTime {:6.3f} ( 0.400)", epoch,
                                             i + first, kSteps, i == 0 ? 5.5 : 0.35);
        reader.Take({text, ++line}, "train.log");
      }
    }
    return ChooseSteps(reader.Finish(), {}, "train.log");
  };
  for (const int first : {0, 1}) {
    const LoggedSteps of_some = steps_of(10, first);
    EXPECT_DOUBLE_EQ(of_some.mean_s, 0.35);
    EXPECT_EQ(of_some.step_s.back(), 0.35);
    EXPECT_EQ(of_some.numbers, 3 * kSteps / 10 - 2 - 2);
    EXPECT_EQ(of_some.warm_up, 2 + 2);
    const LoggedSteps of_all = steps_of(1, first);
    EXPECT_NEAR(of_all.numbers, 3 * kSteps - 20, first) << "of the warm-up, by a counter from 1";
    EXPECT_EQ(of_all.step_s.back(), 5.5);
    EXPECT_NEAR(of_all.mean_s, (0.35 * (3 * kSteps - 22) + 2 * 5.5) / (3 * kSteps - 20), 1e-4);
  }
}

TEST(StepLog, OneOfEachOfTheOthers) {
  const StepLog log = ReadStepLog(Sample("others"), {0, nullptr});
  std::map<std::string, std::vector<double>> means;
  for (const StepSeries& series : log.series) means[series.form.name].push_back(series.mean_s());
  EXPECT_EQ(means["timm"], (std::vector<double>{0.250, 0.260}));
  // The last has no rank; the other 100 steps are of rank 0.
  ASSERT_EQ(means["OpenMMLab"].size(), 2U);
  EXPECT_DOUBLE_EQ(means["OpenMMLab"][0], 0.4321);
  EXPECT_DOUBLE_EQ(means["OpenMMLab"][1], (50 * 0.345 + 50 * 0.3) / 100);
  EXPECT_EQ(means["DeepSpeed"], std::vector<double>{1 / 16.0});
  EXPECT_EQ(means["fairseq"], std::vector<double>{0.25});
  EXPECT_EQ(means["samples/s"], std::vector<double>{1 / 320.0});
  EXPECT_EQ(log.unknown.count, 0);
}

// It is told as a line without a time, and nothing is computed of it.
TEST(StepLog, ATimeThatNoStepTakesIsNone) {
  const TempFolder folder;
  for (const char* line : {"global_step/sec: 1e-310", "global_step/sec: 1e300"}) {
    const StepLog log = ReadStepLog(folder.Write("own.log", std::string(line) + "\n"), {});
    EXPECT_TRUE(log.series.empty()) << line;
    EXPECT_EQ(log.without_time, 1) << line;
  }
}

TEST(StepLog, APatternStandsForTheForms) {
  const TempFolder folder;
  const std::string path = folder.Write("own.log", "x 1\ny 5\nx 3\n");
  const StepLog log = ReadStepLog(path, {0, [](const std::string& line) -> std::optional<double> {
                                           if (line.front() != 'x') return std::nullopt;
                                           return std::stod(line.substr(2));
                                         }});
  const LoggedSteps steps = ChooseSteps(log, {}, "own.log");
  EXPECT_EQ(steps.step_s, (std::vector<double>{1, 3}));
  EXPECT_EQ(log.unknown.count, 1);
  EXPECT_EQ(log.unknown.first.front().text, "y 5");
}

TEST(StepLog, WhatTellsNothingIsRefused) {
  const TempFolder folder;
  const std::string path = folder.Write("none.log", "hello\n\n loss 3\n");
  EXPECT_TRUE(Says(ErrorOf([&] { ChooseSteps(ReadStepLog(path, {}), {}, "none.log"); }),
                   "none.log: tells no time of a training step that is known here; allowed: "
                   "--pattern, or a log of PyTorch"));
  EXPECT_TRUE(Says(ErrorOf([] { Steps("pytorch", 1000); }),
                   "--warm-up: leaves none of 5 numbers of PyTorch"));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadStepLog(folder.Path("away.log"), {}); }), "cannot be read"));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadStepLog(folder.path(), {}); }), "is a folder"));
}

TEST(StepLog, LinesAreBoundedAndTheirNumbersThoseOfTheFile) {
  const TempFolder folder;
  const std::string path = folder.Write(
      "long.log", "a\rb\r\n" + std::string(100'000, 'x') + "\n\n\x1b[1mc\x1b[0m\b\n\xff");
  std::vector<std::pair<int, std::string>> lines;
  ForEachLogLine(path, [&](const LogLine& line) { lines.emplace_back(line.number, line.text); });
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], std::pair(1, std::string("a")));
  EXPECT_EQ(lines[1], std::pair(1, std::string("b")));
  EXPECT_EQ(lines[2], std::pair(2, std::string(kLongestLogLine, 'x')));
  EXPECT_EQ(lines[3], std::pair(4, std::string("c")));
  EXPECT_EQ(lines[4].first, 5);
  UnknownLines unknown;
  unknown.Add({lines[4].second, 5});
  EXPECT_EQ(unknown.first.front().text, "?");
}

}  // namespace
}  // namespace stepcast
