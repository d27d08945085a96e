// Step times out of logs. The lines are those of tests/fuzz/corpus/step_log, in the form that the
// programs print (their sources stand in the table of data/logs/step_log.cc), with numbers that can
// be added up by hand; those of keras-2 are the first epochs of data/logs/node/archive01.out of the
// companion repository of the low-bandwidth paper (kenichi220/comp-sys-perf-analysis-final-work).
#include "data/logs/step_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
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
      // 20 steps of 0.5 s are the warm-up; then 20 of 8 s, too few for the clock, and 40 of 16 s.
      {"lightning", "progress bar", 20, 0.4, 1, 1, 40, 2},
      {"lightning", "progress bar", 0, (20 * 0.5 + 40 * 0.4) / 60, 2, 0, 60, 2},
      // Steps 11 to 25 take from 00:43 to 01:48, 41 to 50 from 02:52 to 03:30; evaluations stand
      // within the steps between them, and behind.
      {"trainer", "progress bar", 10, (65.0 + 38.0) / 25, 2, 1, 25, 4},
      {"pytorch", "PyTorch", 20, (0.252 + 0.248) / 2, 2, 3, 2, 1},
      {"tensorflow", "TensorFlow", 20, (0.5 + 0.4) / 2, 2, 1, 2, 0},
      {"slim", "TensorFlow slim", 20, (3.002 + 3.004 + 2.0) / 3, 3, 1, 3, 0},
      // 50 steps of 1 ms and 50 of 2 ms a sample, behind 49.
      {"mxnet", "MXNet", 20, (0.001 + 0.002) / 2, 2, 1, 100, 0},
      // Per device, the first of each rank left out; the slower rank is taken.
      {"horovod", "Horovod", 20, 1 / 320.0, 1, 2, 1, 0},
      {"tf_cnn_benchmarks", "tf_cnn_benchmarks", 20, 1 / 300.0, 1, 0, 1, 0},
      {"megatron", "Megatron", 10, 1.05, 2, 1, 20, 0},
      // Ten steps each, behind a first one; of a token.
      {"torchtitan", "torchtitan", 10, (1 / 8000.0 + 1 / 10000.0) / 2, 2, 2, 20, 1},
      {"torchtitan", "torchtitan", 0, (1 / 500.0 + 9 / 5000.0 + 10 / 8000.0 + 10 / 10000.0) / 30, 4,
       0, 30, 1},
      // Step 40 has an evaluation within it, and is as little a step's time as that.
      {"nanogpt", "nanoGPT", 20, (0.5 + 0.3 + 0.4) / 3, 3, 2, 3, 3},
      {"nanogpt", "nanoGPT", 0, (34.56789 + 0.6 + 0.5 + 0.3 + 0.4) / 5, 5, 0, 5, 3},
      // A first step that waits for the second, and a second that is not waited for.
      {"maxtext", "MaxText", 2, (5.0 + 5.2) / 2, 2, 2, 2, 0},
      // The step 0 stands for none of the steps before it.
      {"nemo", "NeMo", 2, (2.6 + 2.4) / 2, 2, 2, 2, 0},
      // A bar that is drawn anew tells nothing new, and its rate is not asked.
      {"nemo-bars", "NeMo", 1, (3.1 + 3.3) / 2, 2, 1, 2, 0},
      {"nemo-json", "NeMo", 1, (2.0 + 3.0) / 2, 2, 1, 20, 0},
      // All devices' batches, and not each device's share of them.
      {"composer", "Composer", 20, (1 / 0.4 + 1 / 0.25) / 2, 2, 1, 2, 0},
      {"trainer-state", "Trainer", 20, 4, 1, 0, 1, 0},
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

// A mean of ranks would be nobody's step.
TEST(StepLog, OfRanksThatDifferTheSlowestIsTaken) {
  const TempFolder folder;
  const auto steps = [&](double second, int numbers) {
    std::ostringstream text;
    for (int i = 0; i < 40; ++i) {
      text << "[rank0]:Epoch: [0][" << i << "/301]\tTime  0.350 ( 0.400)\n";
      if (i >= 20 + numbers) continue;
      text << "[rank1]:Epoch: [0][" << i << "/301]\tTime  " << second << " ( 0.400)\n";
    }
    const std::string path = folder.Write("ranks.log", text.str());
    return ChooseSteps(ReadStepLog(path, {20, nullptr}), {}, path);
  };
  const LoggedSteps differ = steps(0.55, 20);
  EXPECT_EQ(differ.slowest, 1U);
  EXPECT_NEAR(differ.mean_s, 0.55, 1e-12);
  EXPECT_EQ(differ.numbers, 20);
  EXPECT_EQ(differ.warm_up, 40) << "of both";
  EXPECT_EQ(differ.step_s, std::vector<double>(20, 0.55));
  EXPECT_EQ(steps(0.2, 20).slowest, 0U);
  const LoggedSteps alike = steps(0.36, 20);
  EXPECT_FALSE(alike.slowest);
  EXPECT_EQ(alike.numbers, 40);
  EXPECT_NEAR(alike.mean_s, 0.355, 1e-12);
  EXPECT_FALSE(steps(0.55, 5).slowest) << "it tells too little";
  // Half as many are enough, and a tenth more time is alike.
  EXPECT_EQ(steps(0.55, 10).slowest, 1U);
  EXPECT_FALSE(steps(0.55, 9).slowest);
  EXPECT_EQ(steps(0.386, 20).slowest, 1U);
  EXPECT_FALSE(steps(0.384, 20).slowest);
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
  for (const char* sample : {"keras-2", "lightning", "trainer", "pytorch", "tensorflow", "slim",
                             "mxnet", "horovod", "tf_cnn_benchmarks", "megatron", "nanogpt",
                             "torchtitan", "maxtext", "nemo", "composer", "others", "epochs"}) {
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
                              EXPECT_FALSE(number.by_rate && !number.warm_up);
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

// A line of a bar that shows 2 steps a second, whatever it does.
std::string Bar(const std::string& title, int at, int whole, double elapsed_s) {
  const int seconds = static_cast<int>(elapsed_s);
  return fmt::format("{} {:3}%|###| {}/{} [{:02}:{:02}<02:00,  2.00it/s, loss=0.3]\n", title,
                     100 * at / whole, at, whole, seconds / 60, seconds % 60);
}

struct Told {
  StepLog log;
  std::vector<LoggedNumber> numbers;
};

Told TellEach(const std::string& text, int warm_up) {
  Told told;
  StepLogReader reader(
      {warm_up, nullptr, [&](const LoggedNumber& number) { told.numbers.push_back(number); }});
  ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "train.log"); });
  told.log = reader.Finish();
  return told;
}

// The times that a text tells, without a warm-up.
std::vector<double> TimesOf(const std::string& text, std::int64_t* not_understood = nullptr) {
  std::vector<double> times;
  StepLogReader reader(
      {0, nullptr, [&](const LoggedNumber& number) { times.push_back(number.time_s); }});
  ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "train.log"); });
  const StepLog log = reader.Finish();
  if (not_understood != nullptr) *not_understood = log.unknown.count;
  return times;
}

// A part of a number is no number.
TEST(StepLog, ThousandsThatAreSetApartAreReadOrTheLineIsNotUnderstood) {
  const char* const numbers[] = {"1200.5",  "1,200.5",      "1'200.5",
                                 "1_200.5", "1\u2019200.5", "1\u202f200.5"};
  for (const std::string number : numbers) {
    for (const std::string& line :
         {"step 10 " + number + " samples/s loss 2.1", "Speed: " + number + " samples/sec\tacc=1",
          "total images/sec: " + number, "Iter #3: " + number + " img/sec per GPU",
          "CurrSamplesPerSec=" + number + ", MemAllocated=1.0GB",
          "images/sec: " + number + " +/- 2", number + "img/s", "img/s: " + number + "."}) {
      EXPECT_EQ(TimesOf(line), std::vector<double>{1 / 1200.5}) << line;
    }
    EXPECT_EQ(TimesOf(" iteration 10/ 100 | elapsed time per iteration (ms): " + number + " |"),
              std::vector<double>{1200.5 * 1e-3})
        << number;
  }
  EXPECT_EQ(TimesOf("1,234,567 samples/s"), std::vector<double>{1 / 1234567.0});
  EXPECT_EQ(TimesOf("12'345 samples/s"), std::vector<double>{1 / 12345.0});
  // A comma alone may be that of a fraction, and a blank may stand between two numbers.
  for (const std::string number : {"12,345", "1.200,5", "1200,5", "1 200.5", "1,20.5", "0,200.5",
                                   "1,200'500", "1.5,200.5", "1,2000.5"}) {
    for (const std::string& line :
         {"step 10: " + number + " samples/s", "Speed: " + number + " samples/sec\tacc=1",
          "total images/sec: " + number, "CurrSamplesPerSec=" + number + ", MemAllocated=1.0GB"}) {
      std::int64_t not_understood = 0;
      EXPECT_TRUE(TimesOf(line, &not_understood).empty()) << line;
      EXPECT_EQ(not_understood, 1) << line;
    }
  }
  for (const char* line :
       {"total images/sec: -1,200.5", "total images/sec: 1e2,200.5", "images/s: 1e2,200.5"}) {
    EXPECT_TRUE(TimesOf(line).empty()) << line;
  }
  // Commas and blanks between numbers set nothing apart.
  for (const char* line : {"10:00:12 200.5 img/s", "2023-01-12 200.5 img/s", "step 1, 200.5 img/s",
                           "epoch 3 20.5 img/s", "epoch 1234 200.5 img/s", "3/40 200.5 img/s"}) {
    EXPECT_EQ(TimesOf(line).size(), 1U) << line;
  }
}

TEST(StepLog, CountsMayHaveTheirThousandsSetApart) {
  std::string text;
  for (const char* at : {"990", "1,000", "1,010"}) {
    text += fmt::format("iteration {}/ 12,000 | elapsed time per iteration (ms): 500.0 |\n", at);
  }
  EXPECT_EQ(TellEach(text, 0).log.series.at(0).steps, 990 + 10 + 10);
  EXPECT_EQ(TellEach(text, 0).log.series.at(0).begun_anew, 0);
}

// "samples/s: 1200.5" behind a step or a loss.
TEST(StepLog, AUnitTakesTheNumberThatIsItsOwn) {
  for (const char* line :
       {"step 100 samples/sec: 1200.5", "loss 2.1 samples/s: 1200.5", "loss=2.1 img/s=1200.5",
        "epoch 3 samples/s = 1200.5", "Step 100 images/sec : 1200.5", "samples/s 1200.5 (step 100)",
        "[step 100] samples/sec: 1200.5", "{\"step\": 100, \"img/s\": 1200.5}",
        "{'samples/s': '1200.5'}", "acc 75.3 imgs/second: 1,200.5", "1200.5 img/s", "1200.5img/s 3",
        "step 100 1200.5 samples/sec", "1200.5 samples/sec 0.027s", "1200.5 img/s 75%",
        "1200.5 samples/s (step 100)", "1200.5 samples/second"}) {
    EXPECT_EQ(TimesOf(line), std::vector<double>{1 / 1200.5}) << line;
  }
  // Either may be another's, or both.
  for (const char* line : {"lr 0.01 img/s 1200.5", "acc 75.3 images/sec 1200.5", "32 samples/step",
                           "loss 2.1 samples/s: 1,200"}) {
    std::int64_t not_understood = 0;
    EXPECT_TRUE(TimesOf(line, &not_understood).empty()) << line;
    EXPECT_EQ(not_understood, 1) << line;
  }
}

// Loops over epochs and over their steps, each with its bar: 3 steps of `outer`, each of them 60
// steps of `inner`, of half a second, with an evaluation behind them.
std::string Nested(const std::string& outer, const std::string& inner, bool with_first_lines) {
  std::string text;
  const auto begin = [&](const std::string& title, int steps) {
    if (!with_first_lines) return;
    text += fmt::format("{}   0%|          | 0/{} [00:00<?, ?it/s]\n", title, steps);
  };
  begin(outer, 3);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const std::string title = fmt::format(fmt::runtime(inner), epoch);
    begin(title, 60);
    for (int at = 1; at <= 60; ++at) text += Bar(title, at, 60, 0.5 * at);
    begin("Evaluating:", 50);
    text += Bar("Evaluating:", 50, 50, 9);
    text += fmt::format("{}  33%|###       | {}/3 [{:02}:{:02}<01:20, 40.00s/it]\n", outer, epoch,
                        epoch * 40 / 60, epoch * 40 % 60);
  }
  return text;
}

LoggedSteps Chosen(const std::string& text, const StepChoice& choice = {}, int warm_up = 20) {
  StepLogReader reader({warm_up, nullptr});
  ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "train.log"); });
  return ChooseSteps(reader.Finish(), choice, "train.log");
}

TEST(StepLog, OfABarWithinABarTheInnerHasTheSteps) {
  struct Titles {
    const char* outer;
    const char* inner;
    const char* name;
  };
  for (const Titles& titles : {Titles{"Epoch:", "Iteration:", "Iteration"},
                               {"Training:", "Epoch {}:", "Epoch N"},
                               {"Epoch:", "Epoch {}:", "Epoch N"},
                               {"epochs:", "", ""},
                               {"Total:", "Train:", "Train"}}) {
    for (const bool with_first_lines : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {} {}", titles.outer, titles.inner, with_first_lines));
      const std::string text = Nested(titles.outer, titles.inner, with_first_lines);
      const LoggedSteps steps = Chosen(text);
      EXPECT_EQ(steps.bar, titles.name);
      EXPECT_NEAR(steps.mean_s, 0.5, 0.01);
      EXPECT_GE(steps.steps, 3 * 60 - 20 - 20);
      if (std::string(titles.outer) == "Total:") continue;  // of no training
      ASSERT_EQ(steps.other_bars.size(), 1U);
      EXPECT_TRUE(steps.other_bars[0].holds_another);
      EXPECT_EQ(steps.other_bars[0].steps, 3);
      // Each can be asked for, by its title or its steps.
      for (const StepChoice& outer : {StepChoice{"", 3}, {"", 0, BarTitle(titles.outer)}}) {
        EXPECT_NEAR(Chosen(text, outer, 0).mean_s, 40, 1);
      }
      EXPECT_NEAR(Chosen(text, {"", 60}).mean_s, 0.5, 0.01);
    }
  }
}

// A loop within a loop within a loop.
TEST(StepLog, OfThreeBarsWithinEachOtherTheInnermostHasTheSteps) {
  std::string text;
  for (int round = 1; round <= 2; ++round) {
    for (int epoch = 1; epoch <= 3; ++epoch) {
      for (int at = 1; at <= 60; ++at) text += Bar("Step:", at, 60, 0.5 * at);
      text += Bar("Epoch:", epoch, 3, 30 * epoch);
    }
    text += Bar("Training:", round, 2, 90 * round);
  }
  const LoggedSteps steps = Chosen(text);
  EXPECT_EQ(steps.bar, "Step");
  EXPECT_NEAR(steps.mean_s, 0.5, 0.01);
}

// Bars of other titles that do not hold each other may both be the training's.
TEST(StepLog, OfBarsWithOtherTitlesOneIsChosen) {
  std::string text;
  for (int at = 1; at <= 60; ++at) text += Bar("Train generator:", at, 60, 0.5 * at);
  for (int at = 1; at <= 80; ++at) text += Bar("Train critic:", at, 80, 0.25 * at);
  EXPECT_TRUE(Says(ErrorOf([&] { Chosen(text); }),
                   "train.log: --bar: does not say which bar is the training's; allowed: one of "
                   "\"Train critic\" (80), \"Train generator\" (60) steps"));
  EXPECT_TRUE(Says(ErrorOf([&] {
                     Chosen(text, {"", 0, "Train"});
                   }),
                   "--bar: 'Train' does not say"));
  EXPECT_NEAR(Chosen(text, {"", 0, "Train critic"}).mean_s, 0.25, 0.01);
  EXPECT_NEAR(Chosen(text, {"", 60}).mean_s, 0.5, 0.01);
  // Where both have as many steps, these do not tell.
  EXPECT_TRUE(Says(ErrorOf([&] {
                     Chosen(Bar("Train a:", 60, 60, 30) + Bar("Train b:", 60, 60, 30), {"", 60});
                   }),
                   "--bar: '60' does not say"));
  // An evaluation that begins within some steps of a training makes it no loop over evaluations.
  std::string evaluated;
  for (int at = 1; at <= 100; ++at) {
    evaluated += Bar("Training:", at, 100, 0.5 * at);
    if (at % 20 == 0) evaluated += Bar("", 1, 8, 1) + Bar("", 8, 8, 8);
  }
  const LoggedSteps steps = Chosen(evaluated);
  EXPECT_EQ(steps.bar, "Training");
  ASSERT_EQ(steps.other_bars.size(), 1U);
  EXPECT_FALSE(steps.other_bars[0].holds_another);
}

TEST(StepLog, ATitleIsThatOfItsBarWhateverItCounts) {
  for (const char* title : {"Epoch 1", "Epoch 12:", "Epoch 3, loss 0.5:", "Epoch #7", "Epoch N"}) {
    EXPECT_EQ(BarTitle(title), "Epoch N") << title;
  }
  EXPECT_EQ(BarTitle("Epoch:"), "Epoch");
  EXPECT_EQ(BarTitle("train loss -0.5:"), BarTitle("train loss 0.5:"));
  EXPECT_EQ(BarTitle("2 epochs"), "N");
  EXPECT_EQ(BarTitle("Epoch [2/10] train:"), "Epoch N");
  EXPECT_EQ(BarTitle("[train epoch 3]"), "train epoch N");
  EXPECT_EQ(BarTitle("[train] loss"), "[train] loss");
  EXPECT_EQ(BarTitle(""), "");
}

// From its beginning a bar's clock is off by half a second at most, and 5 s are enough at its end.
TEST(StepLog, ABarThatIsTooShortForItsClockTellsByItsRate) {
  const auto epochs_of = [](double seconds) {
    std::string text;
    for (int epoch = 0; epoch < 3; ++epoch) {
      text += Bar(fmt::format("Epoch {}:", epoch), 40, 40, seconds);
    }
    return TellEach(text, 0).log.series.at(0);
  };
  const StepSeries too_short = epochs_of(4.9);
  EXPECT_EQ(too_short.numbers, 3);
  EXPECT_EQ(too_short.by_rate, 3);
  EXPECT_DOUBLE_EQ(too_short.mean_s(), 0.5);
  EXPECT_EQ(too_short.steps, 120);
  const StepSeries long_enough = epochs_of(5.2);
  EXPECT_EQ(long_enough.numbers, 3);
  EXPECT_EQ(long_enough.by_rate, 0);
  EXPECT_DOUBLE_EQ(long_enough.mean_s(), 5.5 / 40);
  // A rate that the clock bears out tells the part of a second.
  EXPECT_DOUBLE_EQ(epochs_of(20.9).mean_s(), 20.0 / 40);
  EXPECT_DOUBLE_EQ(epochs_of(19.9).mean_s(), 20.0 / 40);
  EXPECT_DOUBLE_EQ(epochs_of(21.9).mean_s(), 21.5 / 40);
}

// A log that was cut has a few seconds behind its warm-up: better than nothing.
TEST(StepLog, ABarsRateIsTakenWhereNothingElseIsThere) {
  const std::string begin = Bar("Epoch 0:", 40, 1000, 4);
  EXPECT_EQ(TellEach(begin, 20).log.series.at(0).numbers, 0) << "it is the warm-up";
  const StepSeries cut = TellEach(begin + Bar("Epoch 0:", 60, 1000, 6), 20).log.series.at(0);
  EXPECT_EQ(cut.numbers, 1);
  EXPECT_EQ(cut.by_rate, 1);
  EXPECT_EQ(cut.steps, 20);
  EXPECT_EQ(cut.mean_s(), 0.5);
  EXPECT_EQ(cut.warm_up, 1);
  const StepSeries enough =
      TellEach(begin + Bar("Epoch 0:", 60, 1000, 6) + Bar("Epoch 0:", 100, 1000, 24), 20)
          .log.series.at(0);
  EXPECT_EQ(enough.numbers, 1);
  EXPECT_EQ(enough.by_rate, 0);
  EXPECT_DOUBLE_EQ(enough.mean_s(), 20.0 / 60);
}

// The clock of a training's bar goes on while an evaluation within it takes a minute.
TEST(StepLog, AnEvaluationWithinABarIsNoneOfItsSteps) {
  std::string text;
  double elapsed_s = 0;
  for (int at = 10; at <= 1000; at += 10) {
    elapsed_s += 10 * 0.25;
    text += Bar("Training:", at, 1000, elapsed_s);
    if (at % 250 != 0) continue;
    elapsed_s += 60;
    text += "Validation: 100%|##| 4/4 [01:00<00:00, 15.00s/it]\n{'eval_loss': 0.3}\n";
  }
  const Told told = TellEach(text, 20);
  EXPECT_GE(told.numbers.size(), 10U);
  for (const LoggedNumber& number : told.numbers) {
    if (number.warm_up) continue;
    EXPECT_NEAR(number.time_s, 0.25, 0.25 * 0.05) << number.line;
  }
  EXPECT_NEAR(told.log.series.at(0).mean_s(), 0.25, 0.003);
}

// A job that goes on from step 500, though it had come to 600: its bar counts from there, and its
// clock from 0, which would make 501 steps of half a minute.
TEST(StepLog, ABarThatGoesOnFromACheckpointIsToldAndBeginsAnew) {
  std::string text;
  for (int at = 10; at <= 600; at += 10) text += Bar("Training:", at, 1000, 3 + 0.5 * at);
  const int lines = 60;
  for (int at = 510; at <= 1000; at += 10) {
    text += Bar("Training:", at, 1000, 30 + 0.5 * (at - 500));
  }
  const Told told = TellEach(text, 20);
  const StepSeries& series = told.log.series.at(0);
  EXPECT_EQ(series.begun_anew, 1);
  EXPECT_NEAR(series.mean_s(), 0.5, 0.005);
  // The first steps of each: 10 and 20; then 510, and 20 more.
  EXPECT_EQ(series.warm_up, 2 + 3);
  for (const LoggedNumber& number : told.numbers) {
    EXPECT_EQ(number.begins_anew, number.line == lines + 1) << number.line;
    EXPECT_TRUE(number.warm_up || !number.begins_anew) << number.line;
    if (number.warm_up) continue;
    EXPECT_NEAR(number.time_s, 0.5, 0.5 * 0.05) << number.line;
  }
  // Where the checkpoint is younger than the last line, the clock alone goes back.
  const StepSeries further =
      TellEach(Bar("Training:", 20, 1000, 10) + Bar("Training:", 60, 1000, 30) +
                   Bar("Training:", 70, 1000, 20) + Bar("Training:", 110, 1000, 60),
               20)
          .log.series.at(0);
  EXPECT_EQ(further.begun_anew, 1);
  EXPECT_DOUBLE_EQ(further.mean_s(), 20.0 / 40);
}

// The same title in each epoch: the clock goes back where a bar had ended, and time does not.
TEST(StepLog, ABarOfTheSameTitleBeginsWithEachEpoch) {
  std::string text;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int at = 10; at <= 80; at += 10) text += Bar("Training:", at, 80, 0.4 * at);
  }
  const Told told = TellEach(text, 0);
  EXPECT_EQ(told.log.series.at(0).begun_anew, 0);
  for (const LoggedNumber& number : told.numbers) {
    EXPECT_NEAR(number.time_s, 0.4, 0.4 * 0.1) << number.line;
  }
  // From 0 to 12 s, and to 32 s.
  EXPECT_EQ(told.log.series.at(0).steps, 4 * 80);
  EXPECT_EQ(told.numbers.size(), 4 * 2U);
}

// Two processes print bars into one log, each a little behind the other.
TEST(StepLog, BarsOfProcessesInOneLogAreOne) {
  std::string text;
  for (int at = 2; at <= 200; ++at) {
    text += Bar("Epoch 0:", at, 200, at) + Bar("Epoch 0:", at - 1, 200, at - 1);
  }
  const StepSeries series = TellEach(text, 20).log.series.at(0);
  EXPECT_EQ(series.begun_anew, 0);
  EXPECT_LE(series.steps, 180);
  EXPECT_GE(series.steps, 160);
  EXPECT_DOUBLE_EQ(series.mean_s(), 1);
}

// A title that tells the loss is another with each line, and the bar the same.
TEST(StepLog, ALossInTheTitleBeginsNoBar) {
  std::string text;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int at = 1; at <= 100; ++at) {
      text += Bar(fmt::format("Epoch {} loss {:.3f}:", epoch, 1.0 / at), at, 100, 0.6 * at);
    }
  }
  const StepSeries series = TellEach(text, 20).log.series.at(0);
  EXPECT_LE(series.steps, 180);
  EXPECT_GE(series.steps, 120);
  EXPECT_NEAR(series.mean_s(), 0.6, 0.01);
}

// Clocks that no bar shows are none, and the rate is what is left.
TEST(StepLog, AClockThatCannotBeReadIsNone) {
  for (const char* clock : {"00:20<00:00", "0:00:20<00:00", "00:20", "1:00:00<?"}) {
    const std::string text = fmt::format("Epoch 0: 100%|##| 40/40 [{}, 8.00it/s]\n", clock);
    EXPECT_NE(TellEach(text, 0).log.series.at(0).mean_s(), 0.125) << clock;
  }
  for (const char* clock : {"20<00:00", "-1:20<00:00", ":20<00:00", "00:<00:00", "00:20 <00:00",
                            "1e9:20<0:00", "99999999999999999999:00<0", "?<00:00", ""}) {
    const std::string text = fmt::format("Epoch 0: 100%|##| 40/40 [{}, 8.00it/s]\n", clock);
    EXPECT_EQ(TellEach(text, 0).log.series.at(0).mean_s(), 0.125) << clock;
  }
}

// Of any form: a count that goes back before the epoch has ended.
TEST(StepLog, AJobThatGoesOnFromACheckpointHasAWarmUpOfItsOwn) {
  std::string text;
  const auto add = [&](int at, double time_s) {
    text += fmt::format("Epoch: [3][{:4}/1000]\tTime {:6.3f} ( 0.400)\n", at, time_s);
  };
  for (int at = 0; at <= 800; at += 10) add(at, at == 0 ? 9 : 0.35);
  for (int at = 500; at < 1000; at += 10) add(at, at <= 510 ? 9 : 0.35);
  const StepSeries series = TellEach(text, 20).log.series.at(0);
  EXPECT_EQ(series.begun_anew, 1);
  EXPECT_EQ(series.warm_up, 2 + 2);
  EXPECT_NEAR(series.mean_s(), 0.35, 1e-12);

  // A mean stands for the steps since the line before, not for all.
  const auto megatron = [](int at, int ms) {
    return fmt::format(" iteration {:8}/    1000 | elapsed time per iteration (ms): {}.0 |\n", at,
                       ms);
  };
  std::string again;
  for (int at = 10; at <= 100; at += 10) again += megatron(at, 500);
  for (int at = 51; at <= 91; at += 10) again += megatron(at, at <= 61 ? 900 : 500);
  const StepSeries iterations = TellEach(again, 20).log.series.at(0);
  EXPECT_EQ(iterations.begun_anew, 1);
  EXPECT_EQ(iterations.warm_up, 2 + 2);
  EXPECT_EQ(iterations.mean_s(), 0.5);
  EXPECT_EQ(iterations.steps, 80 + 30);
  // A count without a whole is the job's, or an epoch's.
  std::string steps;
  std::string batches;
  for (const int begin : {100, 10}) {
    for (int i = 0; i < 10; ++i) {
      steps += fmt::format("global_step={}, CurrSamplesPerSec=16.0, Mem\n", begin + 10 * i);
      batches += fmt::format("Batch [{}]\tSpeed: 16.0 samples/sec\n", begin + 10 * i);
    }
  }
  EXPECT_EQ(TellEach(steps, 20).log.series.at(0).begun_anew, 1);
  EXPECT_EQ(TellEach(batches, 20).log.series.at(0).begun_anew, 0);
  // Processes that print into one log are lines apart.
  std::string lagging;
  for (int at = 10; at <= 900; at += 10) {
    for (const int lag : {0, 10}) {
      lagging += fmt::format("Epoch: [3][{:4}/1000]\tTime 0.350 ( 0.4)\n", at - lag);
    }
  }
  EXPECT_EQ(TellEach(lagging, 20).log.series.at(0).begun_anew, 0);
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

TEST(StepLog, DeepSpeedTellsHowManyMicroStepsAStepHas) {
  const auto of = [](const char* counts) {
    return Chosen(fmt::format("epoch=0/{}, CurrSamplesPerSec=66.0, Mem\n", counts), {}, 0)
        .micro_steps;
  };
  EXPECT_EQ(of("micro_step=40/global_step=10"), 4);
  EXPECT_EQ(of("micro_step=40/global_step=40"), 1);
  EXPECT_EQ(of("micro_step=41/global_step=10"), 0);
  EXPECT_EQ(of("global_step=10"), 0);
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
  const std::string path = folder.Write("own.log", "x 1\ny 5\nx -\nx 3\n");
  const StepLog log = ReadStepLog(
      path, {0, [](const std::string& line, std::string* found) -> std::optional<double> {
               if (line.front() != 'x') return std::nullopt;
               *found = line.substr(2);
               if (*found == "-") return std::nullopt;
               return std::stod(*found);
             }});
  const LoggedSteps steps = ChooseSteps(log, {}, "own.log");
  EXPECT_EQ(steps.step_s, (std::vector<double>{1, 3}));
  EXPECT_EQ(log.unknown.count, 2);
  EXPECT_EQ(log.unknown.first.front().text, "y 5");
}

// Fifty steps to a line: a time may be one step's or the mean of all.
TEST(StepLog, LinesOfAPatternThatAreStepsApartMayTellMeans) {
  const auto steps_of = [](const std::string& format, int apart, std::optional<LoggedSpan> tells) {
    StepLogOptions options;
    options.warm_up = 0;
    options.pattern = [](const std::string& line, std::string* found) {
      const std::size_t at = line.find("took ");
      if (at == std::string::npos) return std::optional<double>();
      *found = line.substr(at + 5);
      return std::optional(std::stod(*found));
    };
    options.pattern_tells = tells;
    StepLogReader reader(options);
    std::string text;
    for (int i = 1; i <= 20; ++i) {
      text += fmt::format(fmt::runtime(format), i * apart, i % 2 == 0 ? 3 : 1) + "\n";
    }
    ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "own.log"); });
    return ChooseSteps(reader.Finish(), {}, "own.log");
  };
  for (const char* format :
       {"step {} took {}", "[Step: {}] took {}", "global_step={} took {}", "iter {}, took {}",
        "Iteration #{} (batch 64) took {}", "{}/9999 took {}", "epoch 2 batch {} took {}"}) {
    SCOPED_TRACE(format);
    const LoggedSteps single = steps_of(format, 1, std::nullopt);
    EXPECT_FALSE(single.may_be_means);
    const LoggedSteps apart = steps_of(format, 50, std::nullopt);
    EXPECT_TRUE(apart.may_be_means);
    // Nothing else is another.
    EXPECT_EQ(apart.step_s, single.step_s);
    EXPECT_EQ(apart.mean_s, single.mean_s);
    EXPECT_EQ(apart.warm_up, 0);
    EXPECT_FALSE(steps_of(format, 50, LoggedSpan::kStep).may_be_means);
    const LoggedSteps means = steps_of(format, 50, LoggedSpan::kInterval);
    EXPECT_FALSE(means.may_be_means);
    EXPECT_TRUE(means.step_s.empty());
    EXPECT_EQ(means.form.span, LoggedSpan::kInterval);
    EXPECT_EQ(means.numbers, 20);
  }
  // No counts of steps: a loss, a part of a word, and the time itself.
  for (const char* format :
       {"loss {} took {}", "timestep {} took {}", "step {}.5 took {}", "steps/s took {1}"}) {
    SCOPED_TRACE(format);
    EXPECT_FALSE(steps_of(format, 50, std::nullopt).may_be_means);
  }
}

TEST(StepLog, APatternThatFindsNoTimeIsToldWithWhatItFound) {
  const auto error_of = [](const char* text, const char* found) {
    StepLogReader reader({0, [&](const std::string& line, std::string* held) {
                            if (line.front() == 'x') *held = found;
                            return std::optional<double>();
                          }});
    ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "own.log"); });
    return ErrorOf([&] { ChooseSteps(reader.Finish(), {}, "own.log"); });
  };
  EXPECT_TRUE(Says(error_of("a\nx 1\nx 2\n", "6,500"),
                   "own.log:2: --pattern: '6,500' is no time of a step; allowed: a group that"));
  EXPECT_TRUE(Says(error_of("a\nb\n", ""), "own.log: --pattern: matches none of 2 lines"));
}

// The words of a bar's title, to the letter but for capitals: what is of neither is named.
TEST(StepLog, WordsOfATitle) {
  const auto told = [](const std::string& title) {
    return TellEach(Bar(title, 40, 40, 20), 0).log;
  };
  for (const char* title :
       {"val:", "Valid", "validation 3:", "Validating", "validate", "Sanity Checking:", "test",
        "Testing:", "eval", "Evaluating", "EVALUATION", "Predicting", "epoch 1 (val)"}) {
    const StepLog log = told(title);
    EXPECT_EQ(log.validation, 1) << title;
    EXPECT_TRUE(log.series.empty() && log.bars.empty()) << title;
  }
  for (const char* title : {"Epoch 1", "epochs:", "Train", "TRAINING:", "step", "Steps", "iter",
                            "Iteration 3:", "iterations", "batch", "Batches", "fit"}) {
    const StepLog log = told(title);
    ASSERT_EQ(log.series.size(), 1U) << title;
    EXPECT_DOUBLE_EQ(log.series[0].mean_s(), 0.5) << title;
    EXPECT_EQ(log.validation, 0) << title;
  }
  for (const char* title : {"Loading:", "validator", "my_val", "trainer", "tests", "Map"}) {
    const StepLog log = told(title);
    EXPECT_TRUE(log.series.empty()) << title;
    EXPECT_EQ(log.validation, 0) << title;
    EXPECT_EQ(log.bars, (std::map<std::string, std::int64_t>{{title, 1}}));
  }
}

// A bracket is of the title, unless a bar is drawn in it or the clock stands there: lines as tqdm,
// Lightning and mmcv print them.
TEST(StepLog, WordsInBracketsAreOfTheTitle) {
  constexpr std::pair<const char*, const char*> kLogs[] = {
      {"[train] 100%|██████████| 40/40 [00:20<00:00,  2.00it/s, loss=0.3]\n",
       "[val] 100%|██████████| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"[Train] epoch 1: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
       "[Val] epoch 1: 100%|##########| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"Epoch [1/10] train: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
       "Epoch [1/10] val: 100%|##########| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"[1/10] train: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
       "[1/10] val: 100%|##########| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"[10:00:20] epoch 1: 100%|##########| 40/40 [00:20<00:00,  2.00it/s]\n",
       "[10:00:21] [val]: 100%|##########| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"[train] 40it [00:20,  2.00it/s]\n", "[val] 8it [00:01,  8.00it/s]\n"},
      {"Epoch 0: 100%|██████████| 40/40 [00:20<00:00,  2.00it/s, v_num=0]\n",
       "Validation DataLoader 0: 100%|██████████| 8/8 [00:01<00:00,  8.00it/s]\n"},
      {"Epoch 0: 100%|██████████| 40/40 [00:20<00:00,  2.00it/s, v_num=0]\n",
       "Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  8.00it/s]\n"}};
  const TempFolder folder;
  for (const auto& [train, validation] : kLogs) {
    const std::string path =
        folder.Write("run.log", train + std::string(validation) + train + validation);
    const StepLog log = ReadStepLog(path, {0, nullptr});
    EXPECT_EQ(log.validation, 2) << validation;
    EXPECT_TRUE(log.bars.empty()) << train;
    EXPECT_EQ(log.unknown.count, 0) << train;
    ASSERT_EQ(log.series.size(), 1U) << train;
    EXPECT_DOUBLE_EQ(ChooseSteps(log, {}, "run.log").mean_s, 0.5) << train;
  }
  // Bars without a word.
  for (const char* bar :
       {"[##########] 40/40 [00:20<00:00,  2.00it/s]\n", "100% [00:20<00:00,  2.00it/s]\n",
        "[10:00:20] 100%|####| 40/40 [00:20<00:00,  2.00it/s]\n",
        "[>>>>      ] 40/40 [00:20<00:00,  2.00it/s]\n"}) {
    const StepLog log = TellEach(bar, 0).log;
    ASSERT_EQ(log.series.size(), 1U) << bar;
    EXPECT_EQ(log.series[0].title, "") << bar;
    EXPECT_DOUBLE_EQ(log.series[0].mean_s(), 0.5) << bar;
  }
}

// Lines that belong to a form and tell no time, and those of validation, are understood.
TEST(StepLog, LinesThatTellNoTime) {
  const std::pair<const char*, int> cases[] = {{" 5/10 [==>...] - ETA: 3s - loss: 2.3", 0},
                                               {"  0%|   | 0/10 [00:00<?, ?it/s]", 0},
                                               {"  0%|   | 0/10 [00:00<?, ?s/it]", 0},
                                               {"{'loss': 0.3, 'epoch': 1.0}", 0},
                                               {"loss = 2.3, step = 100", 0},
                                               {"TIME TRAINING: 12", 0},
                                               {"{'eval_loss': 0.3}", 1},
                                               {"step 250: train loss 2.4, val loss 2.5", 1}};
  for (const auto& [line, validation] : cases) {
    const StepLog log = TellEach(std::string(line) + "\n", 0).log;
    EXPECT_EQ(log.validation, validation) << line;
    EXPECT_EQ(log.without_time, 1 - validation) << line;
    EXPECT_EQ(log.unknown.count, 0) << line;
    EXPECT_TRUE(log.series.empty()) << line;
  }
}

// Numbers that stand where a form has them, but without what its lines have besides.
TEST(StepLog, LinesThatLackAWordOfTheirForm) {
  for (const char* line : {"Time  0.350 ( 0.400)", "global 3.0 sec/step)",
                           "loss 2.1, time 500.00ms", "data time: 0.345", "Run finished in 206.40s",
                           "loss tps: 100", "elapsed time per iteration (ms): 500.0",
                           "Epoch: [0][ 1/301]\tTime  0.350", "Epoch 3 finished in 206.40"}) {
    std::int64_t not_understood = 0;
    EXPECT_TRUE(TimesOf(line, &not_understood).empty()) << line;
    EXPECT_EQ(not_understood, 1) << line;
  }
  // Where nobody counts, a mean so far is that of one step.
  EXPECT_EQ(TellEach("images/sec: 200.0 +/- 1.0\n", 0).log.series.at(0).steps, 1);
}

// fit() announces each epoch in a line of its own, evaluate() does not.
TEST(StepLog, EpochsThatKerasAnnounces) {
  const std::pair<const char*, bool> cases[] = {
      {"Epoch 1/5", true},      {"  Epoch 12/50 ", true}, {"Epoch 1", false},
      {"Epoch 1/5:", false},    {"epoch 1/5", false},     {"An Epoch 1/5", false},
      {"Epoch [1/5", false},    {"Epoch 1/5 [0", false},  {"Epoch x/5", false},
      {"Epoch 1/5 2/5", false}, {"Epoch 7/5", false}};
  for (const auto& [line, announces] : cases) {
    const StepLog log = TellEach(std::string(line) + "\n10/10 - 1s 30ms/step - loss: 0.9\n", 0).log;
    ASSERT_EQ(log.series.size(), announces ? 1U : 0U) << line;
    EXPECT_EQ(log.validation, announces ? 0 : 1) << line;
    if (!announces) continue;
    EXPECT_DOUBLE_EQ(log.series[0].mean_s(), 0.03);
  }
}

// Hours and days of a bar's clock.
TEST(StepLog, AClockCountsSecondsMinutesAndHours) {
  const std::pair<const char*, double> cases[] = {
      {"00:59", 59}, {"01:00", 60}, {"59:59", 3599}, {"1:00:00", 3600}, {"25:01:01", 90061}};
  for (const auto& [clock, seconds] : cases) {
    const std::string text =
        fmt::format("Epoch 0: 100%|##| 7200/7200 [{}<00:00, 900.00it/s]\n", clock);
    EXPECT_DOUBLE_EQ(TellEach(text, 0).log.series.at(0).mean_s(), (seconds + 0.5) / 7200) << clock;
  }
}

// The first ten of more bars than that.
TEST(StepLog, ManyBarsAreNotAllNamed) {
  const auto error_of = [](int bars) {
    std::string text;
    for (int i = 0; i < bars; ++i) text += Bar("", 20 + i, 20 + i, 20);
    return ErrorOf([&] { Chosen(text); });
  };
  EXPECT_TRUE(Says(error_of(10), "one of 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 steps"));
  EXPECT_TRUE(Says(error_of(12), "one of 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 and 2 more steps"));
}

// As many digits as a rank has, as many launchers as there may be, and as far behind as it may be.
TEST(StepLog, RanksThatAreNone) {
  const std::string host(91, 'h');
  const struct {
    std::string text;
    const char* rank;
    std::string rest;
  } cases[] = {{"[1234567] x", "1234567", " x"},
               {"[12345678] x", "", "[12345678] x"},
               {"1234567: x", "1234567", "x"},
               {"12345678: x", "", "12345678: x"},
               {"1: 2: 3: 4: x", "1.2.3", "4: x"},
               {host + "[1,0]<stdout>:x", "0", "x"},
               {host + "h[1,0]<stdout>:x", "", host + "h[1,0]<stdout>:x"},
               {"[1,0]<stdoutxx>:x", "", "[1,0]<stdoutxx>:x"},
               {"[1,0]<stdout>x", "", "[1,0]<stdout>x"},
               {"1,0]<stdout>:x", "0", "x"},
               {"10]<stdout>:x", "", "10]<stdout>:x"},
               {"[rank1] x", "", "[rank1] x"},
               {"[5]x", "", "[5]x"},
               {"5:x", "", "5:x"}};
  for (const auto& c : cases) {
    std::string_view text = c.text;
    EXPECT_EQ(TakeRank(&text), c.rank) << c.text;
    EXPECT_EQ(text, c.rest);
  }
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

// All are counted, and the first three are shown.
TEST(UnknownLines, AreCountedAndTheFirstShown) {
  UnknownLines unknown;
  for (int number = 1; number <= 5; ++number) {
    unknown.Add({"line", 10 * number});
    EXPECT_EQ(unknown.count, number);
    ASSERT_EQ(unknown.first.size(), static_cast<std::size_t>(std::min(number, 3)));
    EXPECT_EQ(unknown.first.back().number, 10 * std::min(number, 3));
  }
}

}  // namespace
}  // namespace stepcast
