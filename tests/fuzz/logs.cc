// What other programs print.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "data/logs/collective_log.h"
#include "data/logs/guess.h"
#include "data/logs/link_log.h"
#include "data/logs/log_follower.h"
#include "data/logs/log_lines.h"
#include "data/logs/step_log.h"
#include "tests/fuzz/door.h"

namespace stepcast::fuzz {
namespace {

void RequireNamed(const UnknownLines& unknown) {
  for (const UnknownLines::Line& line : unknown.first) {
    Require(IsUtf8(line.text) && line.number > 0, "an unknown line is not named");
  }
}

void RequireTables(const CollectiveLog& log) {
  RequireNamed(log.unknown);
  for (const CollectiveTable& table : log.tables) {
    Require(table.hosts.size() == table.placement.size(), "a host has no place");
    for (const CollectiveRow& row : table.rows) {
      Require(std::isfinite(row.bytes) && row.bytes >= 0 && row.line > 0, "a row has no message");
      for (const auto& number : {row.out_of_place_s, row.in_place_s}) {
        Require(!number || (std::isfinite(*number) && *number > 0), "a call takes no time");
      }
      Require(row.out_of_place_s || row.in_place_s || row.bytes_per_s, "a row tells nothing");
    }
  }
}

// Every fact has a source, and is one that a cluster file may state.
void RequireFacts(const LinkLog& log) {
  RequireNamed(log.unknown);
  LinkFacts::ForEach([&](const char* name, auto fact) {
    Require((log.link.*fact).has_value() == (log.sources.count(name) > 0),
            std::string(name) + " and its source do not go together");
  });
  Require(!log.link.loss || (*log.link.loss > 0 && *log.link.loss < 1), "a loss is no share");
  Require(!log.link.rtt || (std::isfinite(log.link.rtt->si()) && log.link.rtt->si() >= 0),
          "a round trip is none");
  Require(!log.link.bandwidth || log.link.bandwidth->si() > 0, "a port has no speed");
  for (const LinkFinding& finding : log.findings) {
    Require(std::isfinite(finding.value), finding.name + " is no number");
  }
}

using LoggedLine = std::pair<int, std::string>;
LoggedLine Kept(const LogLine& line) { return {line.number, std::string(line.text)}; }

STEPCAST_DOOR(nccl_tests) { RequireTables(ReadNcclTests(FileOf(input, "nccl.txt"))); }
STEPCAST_DOOR(osu) { RequireTables(ReadOsuBenchmarks(FileOf(input, "osu.txt"))); }
STEPCAST_DOOR(iperf3) { RequireFacts(ReadIperf3(FileOf(input, "iperf3.json"))); }
STEPCAST_DOOR(ping) { RequireFacts(ReadPing(FileOf(input, "ping.txt"))); }
STEPCAST_DOOR(ethtool) { RequireFacts(ReadEthtool(FileOf(input, "ethtool.txt"))); }
STEPCAST_DOOR(ss) { RequireFacts(ReadSs(FileOf(input, "ss.txt"))); }
STEPCAST_DOOR(guess) {
  const auto guess = GuessFile(FileOf(input, "file"));
  Require(!guess || !guess->what.empty(), "a guess says nothing");
}

STEPCAST_DOOR(step_log) {
  const StepLog log = ReadStepLog(FileOf(input, "train.log"), {0, nullptr});
  RequireNamed(log.unknown);
  for (const StepSeries& series : log.series) {
    Require(series.numbers >= 0 && std::isfinite(series.steps), "steps are counted wrongly");
    Require(series.form.span != LoggedSpan::kStep ||
                series.step_s.size() == static_cast<std::size_t>(series.numbers),
            "single steps are lost");
  }
  const LoggedSteps steps = ChooseSteps(log, {}, "train.log");
  Require(steps.mean_s > 0 && steps.steps >= 1, "a step takes no time");
}

// Of a log that comes in pieces, as many bytes long as the first one says, the lines are those of
// the whole.
STEPCAST_DOOR(followed_log) {
  const auto step = static_cast<std::size_t>(input.empty() ? 1 : 1 + (input[0] & 0xFF));
  const std::size_t piece = std::max(step, input.size() / 16);
  std::vector<LoggedLine> whole;
  ForEachLogLineOf(input, [&](const LogLine& line) { whole.push_back(Kept(line)); });
  std::vector<LoggedLine> lines;
  const std::string path = FileOf("", "train.log");
  LogFollower log(path, [&](const LogLine& line) { lines.push_back(Kept(line)); });
  std::ofstream out(path, std::ios::binary);
  for (std::size_t at = 0; at < input.size(); at += piece) {
    out << input.substr(at, piece) << std::flush;
    while (log.Read() == LogFollower::News::kLines) continue;
  }
  log.Finish();
  Require(lines == whole, "lines that come in pieces are others");
  Require(log.restarts() == 0, "a file that grows is taken for another");
}

}  // namespace
}  // namespace stepcast::fuzz
