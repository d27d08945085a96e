// `stepcast watch`, by logs as PyTorch's imagenet example prints them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "calibrate/online/online_calibration.h"
#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "predictor/report/terminal.h"
#include "tests/cli/number_table.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectNumbers;
using program::ExpectText;
using program::Json;
using program::JsonOf;
using program::Stepcast;
using program::Words;
using program::operator+;

const Words kJob = {"--cluster", "gce-t4", "--workload",    "resnet50",
                    "--workers", "8",      "--local-batch", "32"};

Words Watch(const std::string& log, const Words& more = {}) {
  return Words{"watch", log, "--for", "0 s"} + kJob + more;
}

// Steps of 0.4 s within 3 %, from `slower` on by the factor; behind 20 of warm-up.
std::string Log(int steps, int slower, double factor) {
  std::ostringstream log;
  log.precision(4);
  log << std::fixed;
  for (int i = 0; i < steps; ++i) {
    const double step_s = (0.4 + 0.012 * std::sin(7.0 * i)) * (i >= slower ? factor : 1);
    log << "Epoch: [0][" << i << "/9999]\tTime " << step_s << " (0.4)\tLoss 6.9 (6.9)\n";
    if (i == 30) log << "Test: [0/10]\tTime 9.000 (9.000)\tLoss 6.9 (6.9)\n";
  }
  return log.str();
}

std::vector<Json> EventsOf(const ProcessResult& result) {
  std::vector<Json> events;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    events.push_back(Json::parse(line, nullptr, false));
    EXPECT_TRUE(events.back().is_object()) << line;
  }
  return events;
}

// What the program prints on a terminal of this name; of none where it is empty.
std::string OnTerminal(const Words& arguments, const std::string& term) {
  const int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (screen < 0 || grantpt(screen) != 0 || unlockpt(screen) != 0) return "";
  ProcessOptions options;
  options.out_path = ptsname(screen);
  // As long as it is open the other end is no end.
  const int held = open(options.out_path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::string shown;
  std::thread reader([&] {
    char bytes[4096];
    for (ssize_t n = 0; (n = read(screen, bytes, sizeof bytes)) > 0;) {
      shown.append(bytes, static_cast<std::size_t>(n));
    }
  });
  const char* const before = std::getenv("TERM");
  const std::string own = before == nullptr ? "" : before;
  term.empty() ? unsetenv("TERM") : setenv("TERM", term.c_str(), 1);
  EXPECT_EQ(RunProcess(Words{STEPCAST_PROGRAM} + arguments, options).exit_code, 0);
  before == nullptr ? unsetenv("TERM") : setenv("TERM", own.c_str(), 1);
  close(held);
  reader.join();
  close(screen);
  return shown;
}

// Of a network that is known by its size and a step of one device, which needs no device either.
TEST(WatchCli, ANetworkOfAKnownSizeIsFollowed) {
  const TempFolder folder;
  const Words known = {"--parameters",  "44000000",  "--one-worker", "380 ms",
                       "--bandwidth",   "10 Gbit/s", "--workers",    "4",
                       "--local-batch", "32"};
  const ProcessResult watched = Stepcast(
      Words{"watch", folder.Write("train.log", Log(60, 999, 1)), "--for", "0 s", "--json"} + known);
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_EQ(EventsOf(watched).back().at("forecast_s"),
            JsonOf(Words{"predict"} + known).at("step_time_s"));
  ExpectError(
      Words{"watch", folder.Write("train.log", Log(60, 999, 1)), "--workload", "resnet50"} + known,
      {"--parameters", "says the same as --workload"});
}

// A screen is drawn anew from its corner, where it can be: not where it is none, as editors' are.
TEST(WatchCli, DrawsOnAScreenAlone) {
  const TempFolder folder;
  const Words watch = Watch(folder.Write("train.log", Log(60, 999, 1)));
  const std::string drawn = OnTerminal(watch, "xterm");
  if (drawn.empty()) GTEST_SKIP() << "there is no pseudo-terminal here";
  EXPECT_NE(drawn.find("\x1b[H"), std::string::npos) << drawn;
  EXPECT_EQ(drawn.find("forecast 3"), std::string::npos) << "lines are for what is no screen";
  for (const char* term : {"dumb", ""}) {
    const std::string printed = OnTerminal(watch, term);
    EXPECT_EQ(printed.find('\x1b'), std::string::npos) << term << printed;
    EXPECT_EQ(printed.rfind("forecast 3", 0), 0U) << term << printed;
  }
}

// The same of two ranks, of which the second has its own time behind the warm-up and within.
std::string OfTwoRanks(double within_s, double behind_s) {
  std::ostringstream log;
  for (int i = 0; i < 60; ++i) {
    const double second_s = i < 20 ? within_s : behind_s;
    log << "[rank0]:Epoch: [0][" << i << "/9999]\tTime 0.350 (0.4)\n";
    log << "[rank1]:Epoch: [0][" << i << "/9999]\tTime " << second_s << " (0.4)\n";
  }
  return log.str();
}

TEST(WatchCli, OfRanksThatDifferTheSlowestIsWatched) {
  const TempFolder folder;
  const auto end = [&](const std::string& log) {
    return EventsOf(Stepcast(Watch(folder.Write("train.log", log), {"--json"}))).back();
  };
  const Json slow = end(OfTwoRanks(0.55, 0.55));
  EXPECT_EQ(slow.at("rank"), "1");
  EXPECT_NEAR(slow.at("mean_s"), 0.55, 1e-9);
  EXPECT_EQ(slow.at("numbers"), 40);
  EXPECT_EQ(slow.at("warm_up"), 20);
  EXPECT_EQ(slow.at("others").at("another rank"), 60);
  EXPECT_TRUE(slow.at("slower_rank").is_null());
  ExpectText(Watch(folder.Write("train.log", OfTwoRanks(0.55, 0.55))),
             {"rank 1 is watched, the slowest in the warm-up"});
  for (const double second_s : {0.2, 0.36}) {
    const Json first = end(OfTwoRanks(second_s, second_s));
    EXPECT_EQ(first.at("rank"), "0");
    EXPECT_TRUE(first.at("slower_rank").is_null());
  }
  // One that has become slower since is told.
  const Json later = end(OfTwoRanks(0.35, 0.7));
  EXPECT_EQ(later.at("rank"), "0");
  EXPECT_EQ(later.at("slower_rank").at("rank"), "1");
  EXPECT_NEAR(later.at("slower_rank").at("mean_s"), 0.7, 1e-9);
  ExpectText(Watch(folder.Write("train.log", OfTwoRanks(0.35, 0.7))),
             {"rank 1 takes 700 ms, 2 times as long as rank 0"});
}

// What is told of a rank beside the one that is watched is in steps too, of at least half as many.
TEST(WatchCli, ASlowerRankIsToldInStepsOnceItHasToldEnough) {
  const TempFolder folder;
  const auto end = [&](const std::string& log, const Words& more = {}) {
    return EventsOf(Stepcast(Watch(folder.Write("train.log", log), Words{"--json"} + more))).back();
  };
  const Json micro = end(OfTwoRanks(0.35, 0.7), {"--accumulation", "4", "--counts", "micro-steps"});
  EXPECT_NEAR(micro.at("mean_s"), 4 * 0.35, 1e-9);
  EXPECT_NEAR(micro.at("slower_rank").at("mean_s"), 4 * 0.7, 1e-9);
  // Of the 40 steps behind the warm-up the second tells the last ones alone.
  const auto of_the_last = [&](int count) {
    std::istringstream lines(OfTwoRanks(0.35, 0.7));
    std::string log;
    int behind = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("Time 0.7") != std::string::npos && ++behind <= 40 - count) continue;
      log += line + "\n";
    }
    return end(log).at("slower_rank");
  };
  EXPECT_TRUE(of_the_last(1).is_null());
  EXPECT_TRUE(of_the_last(19).is_null());
  EXPECT_EQ(of_the_last(20).at("rank"), "1");
  EXPECT_NEAR(of_the_last(20).at("mean_s"), 0.7, 1e-9);
}

// What is expected of a step is what was learnt before it, as a program that is linked learns.
TEST(WatchCli, EveryNumberIsThatOfWhoLearnsTheSameSteps) {
  const TempFolder folder;
  const std::vector<Json> events = EventsOf(Stepcast(Watch(
      folder.Write("train.log", Log(120, 80, 1.1)), {"--json", "--every", "1", "--warm-up", "0"})));
  const std::string machines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines/";
  const Cluster cluster = ReadCluster(machines + "gce-t4.yaml");
  const Workload workload = *FindWorkload("resnet50");
  const std::optional<Device> t4 = FindDevice(ReadDevices(machines + "gpus.yaml"), "t4");
  Plan plan;
  plan.placement = {4, 4};
  plan.local_batch = 32;
  OnlineCalibration learner(cluster, workload, t4, "t4");
  const Prediction forecast = Predictor(cluster, workload, t4, "t4").Predict(plan);
  double sum_s = 0;
  int steps = 0;
  int inside = 0;
  for (const Json& event : events) {
    if (event.at("event") != "steps") continue;
    const double step_s = event.at("step_time_s");
    const Duration<> expected = learner.Observe(plan, Seconds(step_s)).predicted;
    const Prediction learnt = Predictor(learner.cluster(), workload, t4, "t4").Predict(plan);
    sum_s += step_s;
    ++steps;
    inside += forecast.low <= Seconds(step_s) && Seconds(step_s) <= forecast.high ? 1 : 0;
    ExpectNumbers(event, {{"/line", steps + (steps > 31 ? 1 : 0)},  // one of validation before
                          {"/steps", steps},
                          {"/numbers", steps},
                          {"/inside", inside},
                          {"/step_time_s", step_s},
                          {"/expected_s", expected.in(kSeconds)},
                          {"/mean_s", sum_s / steps},
                          {"/learnt_s", learnt.step_time.in(kSeconds)},
                          {"/low_s", learnt.low.in(kSeconds)},
                          {"/high_s", learnt.high.in(kSeconds)}});
  }
  EXPECT_EQ(steps, 120);
}

// A file may go on at any time, and a pipe that has ended does not: its last line is one without an
// end too.
TEST(WatchCli, TheLastLineOfAPipeIsALine) {
  const TempFolder folder;
  std::string log = Log(60, 99, 1);
  log.pop_back();
  ASSERT_NE(log.back(), '\n');
  const std::string file = folder.Write("train.log", log);
  const Json end = EventsOf(RunProcess(Words{"/bin/sh", "-c", "cat \"$0\" | \"$@\"", file,
                                             STEPCAST_PROGRAM, "watch", "-", "--json"} +
                                       kJob))
                       .back();
  EXPECT_EQ(end.at("numbers"), 40);
  EXPECT_EQ(end.at("line"), 61);
  EXPECT_EQ(EventsOf(Stepcast(Watch(file, {"--json"}))).back().at("numbers"), 39);
}

TEST(WatchCli, ASteadyJobHasNoDrift) {
  const TempFolder folder;
  const std::string log = folder.Write("train.log", Log(200, 999, 1));
  const ProcessResult result = Stepcast(Watch(log, {"--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> events = EventsOf(result);
  ASSERT_EQ(events.size(), 1u + 180 / 50 + 1) << result.out;
  EXPECT_EQ(events.front().at("event"), "forecast");
  const Json& end = events.back();
  EXPECT_EQ(end.at("event"), "end");
  EXPECT_EQ(end.at("numbers"), 180);
  EXPECT_EQ(end.at("warm_up"), 20);
  EXPECT_EQ(end.at("validation_lines"), 1);
  EXPECT_TRUE(end.at("drifts").empty());
  EXPECT_NEAR(end.at("mean_s"), 0.4, 0.002);
  EXPECT_NEAR(end.at("learnt_s"), 0.4, 0.02);
  EXPECT_EQ(end.at("forecast_s"), events.front().at("step_time_s"));
}

TEST(WatchCli, AChangeIsToldWithItsLineAndSizes) {
  const TempFolder folder;
  const std::string log = folder.Write("train.log", Log(300, 200, 1.6));
  const ProcessResult result = Stepcast(Watch(log, {"--json"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json end = EventsOf(result).back();
  ASSERT_EQ(end.at("drifts").size(), 1u) << result.out;
  const Json& drift = end.at("drifts").at(0);
  EXPECT_GT(drift.at("line"), 201);  // a line of validation comes before
  EXPECT_LE(drift.at("line"), 231);
  EXPECT_NEAR(drift.at("before_s"), 0.4, 0.03);
  EXPECT_GT(drift.at("now_s"), drift.at("before_s"));
  EXPECT_NEAR(end.at("learnt_s"), 0.64, 0.04);
  ExpectText(Watch(log), {" has changed: ", "forecast ", "learnt"}, 1);
}

// 1 % more every 100 steps: what is expected follows, with small changes at most, and only the
// first steps tell of how much it is in all.
TEST(WatchCli, ASlowDriftIsTold) {
  const TempFolder folder;
  std::ostringstream text;
  text.precision(5);
  text << std::fixed;
  for (int i = 0; i < 1500; ++i) {
    const double step_s = (0.4 + 0.008 * std::sin(2.0 * i * i)) * (1 + 1e-4 * i);
    text << "Epoch: [0][" << i << "/9999]\tTime " << step_s << " (0.4)\tLoss 6.9 (6.9)\n";
  }
  const std::string log = folder.Write("train.log", text.str());
  const ProcessResult result = Stepcast(Watch(log, {"--json"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json drifts = EventsOf(result).back().at("drifts");
  const auto slow = std::find_if(drifts.begin(), drifts.end(), [](const Json& drift) {
    return drift.at("cause") == "slow drift";
  });
  ASSERT_NE(slow, drifts.end()) << result.out;
  const Json& first = *slow;
  EXPECT_GT(first.at("line"), 300);
  EXPECT_LT(first.at("line"), 700);
  EXPECT_NEAR(first.at("before_s"), 0.4 * 1.007, 0.4 * 0.01);
  EXPECT_GT(first.at("now_s"), 1.015 * first.at("before_s").get<double>());
  ExpectText(Watch(log), {"steps have changed little by little: "}, 1);
}

// Lines and summary, beside the events of the same log.
TEST(WatchCli, SaysTheNumbersOfItsJson) {
  const TempFolder folder;
  const std::string log = folder.Write("train.log", Log(120, 90, 1.6) + "hello\n");
  const ProcessResult result = Stepcast(Watch(log, {"--every", "25"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string text = program::Unwrapped(result.out);
  const auto time = [](const Json& of, const char* key) {
    return FormatDuration(Seconds(of.at(key).get<double>()));
  };
  const auto interval = [&](const Json& of, const char* middle) {
    return time(of, middle) + " (90 % interval " + time(of, "low_s") + " to " + time(of, "high_s") +
           ")";
  };
  const auto drift = [&](const Json& of) {
    return "line " + of.at("line").dump() + ", step " + of.at("steps").dump() +
           " behind the warm-up: " + of.at("cause").get<std::string>() +
           " has changed: " + time(of, "now_s") + " instead of " + time(of, "before_s");
  };
  std::size_t at = 0;
  const auto says_next = [&](const std::string& line) {
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << "\n" << text;
    at = found + line.size();
  };
  int steps = 0;
  Json forecast;
  for (const Json& event : EventsOf(Stepcast(Watch(log, {"--every", "25", "--json"})))) {
    const std::string kind = event.at("event");
    if (kind == "forecast") {
      forecast = event;
      says_next("forecast " + interval(event, "step_time_s"));
    } else if (kind == "drift") {
      says_next(drift(event));
    } else if (kind == "steps") {
      EXPECT_EQ(event.at("numbers"), 25 * ++steps);
      says_next("line " + event.at("line").dump() + ", step " + event.at("steps").dump() +
                " behind the warm-up: " + time(event, "step_time_s") + ", where " +
                time(event, "expected_s") + " was expected; learnt " + interval(event, "learnt_s"));
    } else {
      ASSERT_EQ(kind, "end");
      EXPECT_EQ(event.at("unknown_lines"), 1);
      says_next("resnet50 on gce-t4 (t4): 8 workers (2 x 4), allreduce, local batch 32 ");
      says_next(" forecast " + interval(forecast, "step_time_s"));
      says_next(" measured " + time(event, "mean_s") +
                " in the mean of 100 steps, 100 % of 100 numbers within the interval");
      says_next(" last " + time(event, "step_time_s") + ", where " + time(event, "expected_s") +
                " was expected");
      says_next(" learnt " + interval(event, "learnt_s"));
      ASSERT_EQ(event.at("drifts").size(), 1U);
      says_next(" drift " + drift(event.at("drifts").at(0)));
      says_next(" left out 20 of the warm-up, 1 line of validation, 1 line not understood ");
    }
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(text.find(" ranks "), std::string::npos) << "there is one";
  // Without a change, and with nothing left out.
  const std::string steady = program::Unwrapped(
      Stepcast(Watch(folder.Write("steady.log", Log(30, 999, 1)), {"--warm-up", "0"})).out);
  EXPECT_NE(steady.find(" drift none "), std::string::npos) << steady;
  EXPECT_EQ(steady.find(" left out "), std::string::npos) << steady;
}

// Of many changes the summary has the last five.
TEST(WatchCli, TellsTheLastFiveChanges) {
  const TempFolder folder;
  std::ostringstream text;
  for (int i = 0; i < 20 + 8 * 80; ++i) {
    const double step_s = i >= 20 && (i - 20) / 80 % 2 == 1 ? 0.8 : 0.4;
    text << "Epoch: [0][" << i << "/9999]\tTime " << step_s + 0.004 * std::sin(7.0 * i)
         << " (0.4)\tLoss 6.9 (6.9)\n";
  }
  const std::string log = folder.Write("train.log", text.str());
  const Json drifts = EventsOf(Stepcast(Watch(log, {"--json"}))).back().at("drifts");
  ASSERT_GT(drifts.size(), 5U);
  const std::string out = Stepcast(Watch(log)).out;
  const std::string summary = program::Unwrapped(out.substr(out.find("\n  forecast ")));
  for (std::size_t i = 0; i < drifts.size(); ++i) {
    const std::string line = "line " + drifts.at(i).at("line").dump() + ", step ";
    EXPECT_EQ(summary.find(line) != std::string::npos, i + 5 >= drifts.size()) << line << summary;
  }
}

TEST(WatchCli, AProfileIsNotFollowed) {
  const TempFolder folder;
  ExpectError({"watch", folder.Write("train.log", Log(30, 99, 1)), "--for", "0 s", "--profile",
               "xeon-onednn-1", "--workload", "resnet50", "--local-batch", "16"},
              {"--profile: 'xeon-onednn-1' cannot be followed by steps"});
}

// Steps shorter than the interval are as little within it as longer ones.
TEST(WatchCli, CountsTheStepsWithinTheForecast) {
  const TempFolder folder;
  const auto inside = [&](double factor) {
    const std::string log = folder.Write("train.log", Log(120, 0, factor));
    const std::vector<Json> events = EventsOf(Stepcast(Watch(log, {"--json"})));
    const Json& forecast = events.front();
    double low = forecast.at("low_s").get<double>();
    double high = forecast.at("high_s").get<double>();
    const bool within = low <= 0.4 * factor && 0.4 * factor <= high;
    for (const Json& event : events) {
      if (!event.contains("inside")) continue;
      EXPECT_EQ(event.at("inside"), within ? event.at("numbers") : Json(0)) << factor;
    }
    const std::string text = program::Unwrapped(Stepcast(Watch(log)).out);
    const char* const said =
        within ? "100 % of 100 numbers within the interval" : " 0 % of 100 numbers within the ";
    EXPECT_NE(text.find(said), std::string::npos) << text;
    return within;
  };
  EXPECT_TRUE(inside(1));
  EXPECT_FALSE(inside(0.1));
  EXPECT_FALSE(inside(10));
}

// From step 100 on, though it had come to 199: its first steps are slow, and nothing has changed.
TEST(WatchCli, AJobThatGoesOnFromACheckpointIsToldAndNotLearnt) {
  const TempFolder folder;
  std::string text = Log(200, 999, 1);
  for (int i = 100; i < 300; ++i) {
    text += "Epoch: [0][" + std::to_string(i) + "/9999]\tTime " +
            (i < 110      ? "4.000"
             : i % 2 == 0 ? "0.395"
                          : "0.405") +
            " (0.4)\tLoss 6.9 (6.9)\n";
  }
  const std::string log = folder.Write("train.log", text);
  const ProcessResult result = Stepcast(Watch(log, {"--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  int told = 0;
  for (const Json& event : EventsOf(result)) {
    if (event.at("event") != "begun_anew") continue;
    ++told;
    EXPECT_EQ(event.at("line"), 202);  // a line of validation comes before
  }
  EXPECT_EQ(told, 1);
  const Json end = EventsOf(result).back();
  EXPECT_EQ(end.at("begun_anew"), 1);
  EXPECT_EQ(end.at("warm_up"), 2 * 20);
  EXPECT_EQ(end.at("numbers"), 2 * 180);
  EXPECT_NEAR(end.at("learnt_s"), 0.4, 0.02);
  ExpectText(Watch(log),
             {"line 202: the job was begun anew", "40 of the warm-ups (times begun anew: 1)"});
}

// A loop over epochs of 35 s, and within it one over steps of 0.4 s: its steps are the job's.
TEST(WatchCli, OfABarWithinABarTheInnerIsWatched) {
  const TempFolder folder;
  std::string text;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    for (int at = 5; at <= 75; at += 5) {
      text += "Iteration: 50%|##| " + std::to_string(at) +
              "/75 [00:" + (at * 2 / 5 < 10 ? "0" : "") + std::to_string(at * 2 / 5) +
              "<00:10, 2.50it/s]\n";
    }
    text += "Epoch: 50%|##| " + std::to_string(epoch) + "/4 [0" + std::to_string(epoch * 35 / 60) +
            ":" + (epoch * 35 % 60 < 10 ? "0" : "") + std::to_string(epoch * 35 % 60) +
            "<01:00, 35.00s/it]\n";
  }
  const std::string log = folder.Write("bars.log", text);
  const Json end = EventsOf(Stepcast(Watch(log, {"--json"}))).back();
  EXPECT_NEAR(end.at("mean_s"), 0.4, 0.02);
  EXPECT_GT(end.at("others").at("another bar"), 0);
  const Json chosen = EventsOf(Stepcast(Watch(log, {"--bar", "Iteration", "--json"}))).back();
  EXPECT_EQ(chosen.at("mean_s"), end.at("mean_s"));
  // A log that was cut begins with the outer one, which has no steps behind a warm-up.
  const std::string tail = text.substr(text.find("Epoch:"));
  const Json cut = EventsOf(Stepcast(Watch(folder.Write("cut.log", tail), {"--json"}))).back();
  EXPECT_NEAR(cut.at("mean_s"), 0.4, 0.02);
}

TEST(WatchCli, WithoutStepsItSaysWhatIsKnown) {
  const TempFolder folder;
  ExpectText(Watch(folder.Write("a.log", Log(25, 99, 1)), {"--warm-up", "5"}), {"20 numbers"});
  const Words short_log = Watch(folder.Write("b.log", Log(5, 99, 1)), {"--json"});
  EXPECT_EQ(Stepcast(short_log).exit_code, 2);
  EXPECT_NE(Stepcast(short_log).err.find("--warm-up 0"), std::string::npos);
  EXPECT_NE(Stepcast(Watch(folder.Write("c.log", "hello\n"))).err.find("--pattern"),
            std::string::npos);
  ExpectError(Watch("/nowhere/train.log"), {"/nowhere/train.log"});
  ExpectError({"watch", "--workload", "resnet50"}, {"--log"});
}

TEST(WatchCli, APatternTellsStepsOfAnyLog) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "done in " + std::to_string(400 + i % 3) + " ms\n";
  const std::string log = folder.Write("own.log", text);
  const ProcessResult result =
      Stepcast(Watch(log, {"--pattern", "done in (?<ms>[0-9.]+) ms", "--json"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(EventsOf(result).back().at("mean_s"), 0.401, 0.001);
  const auto refused = [&](const char* pattern, const char* why) {
    const ProcessResult of = Stepcast(Watch(log, {"--pattern", pattern}));
    EXPECT_EQ(of.exit_code, 2) << of.out;
    EXPECT_NE(of.err.find(why), std::string::npos) << of.err;
  };
  const Words means = {"--pattern", "done in (?<ms>[0-9.]+) ms", "--tells", "means"};
  ExpectText(Watch(log, means), {"means scatter less"});
  std::string apart;
  for (int i = 0; i < 60; ++i) apart += "step " + std::to_string(50 * i) + " done in 400 ms\n";
  const auto of_apart = [&](const Words& more) {
    return Stepcast(Watch(folder.Write("apart.log", apart),
                          Words{"--pattern", "done in (?<ms>[0-9.]+) ms"} + more))
        .out;
  };
  EXPECT_NE(of_apart({}).find("(--tells)"), std::string::npos) << of_apart({});
  EXPECT_EQ(of_apart({"--tells", "steps"}).find("scatter less"), std::string::npos);
  refused("done in (?<ms>[0-9.]+) s", "own.log: --pattern: matches none of 60 lines");
  refused("(?<ms>[0-9]{400})", "--pattern: '(?<ms>[0-9]{400})' makes too many instructions of RE2");
  refused("(?<ms>done)", "own.log:1: --pattern: 'done' is no time of a step");
}

}  // namespace
}  // namespace stepcast
