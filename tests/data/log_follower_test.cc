// A log that grows, is cut, is rotated, or ends: every line once, in its order.
#include "data/logs/log_follower.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "data/logs/step_log.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using News = LogFollower::News;
using Lines = std::vector<std::string>;

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

struct Followed {
  explicit Followed(const std::string& path)
      : log(path, [this](const LogLine& line) {
          lines.push_back(std::to_string(line.number) + ":" + std::string(line.text));
        }) {}

  // The lines that have come since the last call.
  Lines Next() {
    lines.clear();
    while (log.Read() == News::kLines) continue;
    return lines;
  }

  Lines lines;
  LogFollower log;
};

TEST(LogFollower, ReadsWhatIsThereAndWhatComes) {
  const TempFolder folder;
  const std::string path = folder.Write("train.log", "one\ntw");
  Followed followed(path);
  EXPECT_EQ(followed.Next(), Lines({"1:one"}));
  EXPECT_EQ(followed.Next(), Lines());
  Append(path, "o\nthree\r");
  EXPECT_EQ(followed.Next(), Lines({"2:two", "3:three"}));
  Append(path, "four");
  EXPECT_EQ(followed.Next(), Lines());
  followed.log.Finish();
  EXPECT_EQ(followed.lines, Lines({"3:four"}));
  EXPECT_EQ(followed.log.restarts(), 0);
}

TEST(LogFollower, BeginsAnewWhereTheFileWasCut) {
  const TempFolder folder;
  const std::string path = folder.Write("train.log", "one\ntwo\nthree\n");
  Followed followed(path);
  EXPECT_EQ(followed.Next().size(), 3u);
  std::ofstream(path, std::ios::trunc) << "new\n";
  EXPECT_EQ(followed.Next(), Lines({"1:new"}));
  EXPECT_EQ(followed.log.restarts(), 1);
}

// What was added to the old file before it was moved away is not lost.
TEST(LogFollower, ReadsARotatedLogToItsEndAndThenTheNext) {
  const TempFolder folder;
  const std::string path = folder.Write("train.log", "one\n");
  const std::string moved = path + ".1";
  Followed followed(path);
  EXPECT_EQ(followed.Next(), Lines({"1:one"}));
  Append(path, "two\nhalf");
  std::filesystem::rename(path, moved);
  EXPECT_EQ(followed.Next(), Lines({"2:two"}));  // there is no next one yet
  Append(path, "three\n");
  EXPECT_EQ(followed.Next(), Lines({"3:half", "1:three"}));
  EXPECT_EQ(followed.log.restarts(), 1);
}

TEST(LogFollower, APipeEnds) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Followed followed("/dev/fd/" + std::to_string(ends[0]));
  EXPECT_EQ(followed.log.Read(), News::kNone);
  ASSERT_EQ(write(ends[1], "one\ntwo", 7), 7);
  EXPECT_EQ(followed.log.Read(), News::kLines);
  EXPECT_EQ(followed.lines, Lines({"1:one"}));
  EXPECT_EQ(followed.log.Read(), News::kNone);
  close(ends[1]);
  EXPECT_EQ(followed.log.Read(), News::kEnd);
  followed.log.Finish();
  EXPECT_EQ(followed.lines, Lines({"1:one", "2:two"}));
  close(ends[0]);
}

TEST(LogFollower, SaysWhatCannotBeRead) {
  EXPECT_TRUE(Says(ErrorOf([] { Followed("/nowhere/train.log"); }), "/nowhere/train.log"));
  EXPECT_TRUE(Says(ErrorOf([] { Followed("/tmp"); }), "is a folder"));
}

// The same numbers, whether a log is read as a whole or as it comes.
TEST(StepLog, TellsEachNumberAsItIsRead) {
  StepLogOptions options;
  options.warm_up = 2;
  std::vector<double> counted;
  int left_out = 0;
  options.on_number = [&](const LoggedNumber& number) {
    if (number.warm_up) {
      ++left_out;
    } else {
      counted.push_back(number.time_s);
    }
  };
  std::string text;
  for (int i = 0; i < 6; ++i) {
    text += "Epoch: [0][" + std::to_string(i) + "/100]  Time 0." + std::to_string(i + 1) +
            "00 (0.100)\n";
  }
  text += "Test: [0/10]  Time 0.900 (0.900)\n";
  StepLogReader reader(options);
  ForEachLogLineOf(text, [&](const LogLine& line) { reader.Take(line, "text"); });
  EXPECT_EQ(reader.so_far().validation, 1);
  EXPECT_EQ(left_out, 2);
  EXPECT_EQ(counted, std::vector<double>({0.3, 0.4, 0.5, 0.6}));
  const StepLog log = reader.Finish();
  ASSERT_EQ(log.series.size(), 1u);
  EXPECT_EQ(log.series[0].numbers, 4);
  EXPECT_EQ(log.series[0].warm_up, 2);
  EXPECT_TRUE(log.series[0].step_s.empty());  // whoever follows a log keeps what it needs
}

// A bar is drawn over itself: what carriage returns end are lines, also where they come in pieces.
TEST(LogFollower, ABarThatIsDrawnOverItselfTellsAsItsLinesDo) {
  using Number = std::tuple<double, std::int64_t, bool>;
  const auto numbers_of = [](const auto& give) {
    std::vector<Number> numbers;
    StepLogReader reader({20, nullptr, [&](const LoggedNumber& number) {
                            numbers.emplace_back(number.time_s, number.steps, number.warm_up);
                          }});
    give([&](const LogLine& line) { reader.Take(line, "train.log"); });
    reader.Finish();
    return numbers;
  };
  std::vector<std::string> bars;
  for (int at = 1; at <= 300; ++at) {
    const int seconds = 5 + at * 7 / 20;
    bars.push_back("Epoch 0:  " + std::to_string(at / 3) + "%|###| " + std::to_string(at) +
                   "/300 [0" + std::to_string(seconds / 60) + ":" + (seconds % 60 < 10 ? "0" : "") +
                   std::to_string(seconds % 60) + "<01:00,  2.86it/s]");
  }
  const std::vector<Number> expected = numbers_of([&](const auto& take) {
    std::string text;
    for (const std::string& bar : bars) text += bar + "\n";
    ForEachLogLineOf(text, take);
  });
  ASSERT_GE(expected.size(), 20 + 4U);
  const std::vector<Number> followed = numbers_of([&](const auto& take) {
    const TempFolder folder;
    const std::string path = folder.Write("train.log", "");
    LogFollower log(path, take);
    for (const std::string& bar : bars) {
      const std::string text = "\r" + bar;
      for (std::size_t at = 0; at < text.size(); at += 50) {
        Append(path, text.substr(at, 50));
        while (log.Read() == News::kLines) continue;
      }
    }
    log.Finish();
  });
  EXPECT_EQ(followed, expected);
}

}  // namespace
}  // namespace stepcast
