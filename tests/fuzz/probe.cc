// What hosts of a probe tell each other, profiles of what they measured, and who is which of them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/io/network_profile_file.h"
#include "data/values/names.h"
#include "microbench/network/findings.h"
#include "microbench/network/protocol.h"
#include "microbench/network/schedule.h"
#include "microbench/network/socket.h"
#include "microbench/steps/shaping.h"
#include "microbench/steps/work.h"
#include "predictor/cli/probe_place.h"
#include "predictor/cli/probe_report.h"
#include "predictor/cli/shapes.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"
#include "tests/support/markdown.h"

namespace stepcast::fuzz {
namespace {

// All that the program makes of a profile.
void RequireShown(const NetworkProfile& profile) {
  const std::string text = FormatNetworkProfile(profile);
  const NetworkProfile again =
      ReadAgain(text, [](const auto& t) { return ParseNetworkProfile(t, "again.json"); });
  RequireSame(FormatNetworkProfile(again), text);
  const network::NetworkSummary summary = network::Summarise(again);
  RequireFiniteJson(cli::NetworkJson(again, summary), "network");
  for (const bool pairs : {false, true}) {
    Require(!cli::NetworkText(again, summary, pairs, Style()).empty(), "nothing is shown");
  }
  Cluster cluster;
  cluster.name = cluster.title = "lab";
  cluster.device = "t4";
  for (const bool stated : {false, true}) {
    if (stated) cluster.link.bandwidth = GigabitsPerSecond(10.0);
    RequireReadAgain(cli::WithMeasuredLinks(cluster, again, summary, "lab.yaml"));
  }
}

STEPCAST_DOOR(network_profile) { RequireShown(ParseNetworkProfile(input, "network.json")); }

// Lines of RANK KIND MESSAGE: what hosts of that rank tell the first of three about measurements of
// that kind, or the first tells them.
STEPCAST_DOOR(probe) {
  constexpr int kHosts = 3;
  constexpr double kLongestS = 6;
  NetworkProfile profile;
  profile.version = "1";
  profile.started = "now";
  profile.hosts = {{"a", "10.0.0.1", {}}, {"b", "10.0.0.2", {}}, {"b", "10.0.0.3", {}}};
  std::map<NetworkKind, std::vector<NetworkRow>> rows;
  for (const network::ProbeStep& step : network::MakeSchedule(kHosts)) {
    for (const network::Edge& edge : step.edges) {
      NetworkRow row;
      row.kind = step.kind;
      row.from = edge.from;
      row.to = edge.to;
      rows[step.kind].push_back(row);
    }
  }
  for (const std::string& line : Split(input, '\n')) {
    const std::size_t first = std::min(line.find(' '), line.size());
    const std::size_t second = std::min(line.find(' ', first + 1), line.size());
    if (second == line.size()) continue;
    const int rank = (line[0] - '0' + kHosts) % kHosts;
    const auto kind = FindName(line.substr(first + 1, second - first - 1), kNetworkKindNames);
    try {
      const auto message = network::Message::Parse(line.substr(second + 1));
      const auto copy = network::Message::Parse(message.Line());
      Require(copy.verb() == message.verb() && copy.fields() == message.fields(),
              "another message is read: " + message.Line());
      if (message.verb() == "join") {
        const network::Joining joining = network::ReadJoining(message, kHosts);
        NetworkHost& host = profile.hosts[static_cast<std::size_t>(joining.rank)];
        host.name = joining.name;
        host.facts = joining.facts;
      } else if (message.verb() == "step") {
        const network::Step step = network::ReadStep(message);
        Require(step.tasks * step.flows <= 1024, "a host is to make many threads");
      } else if (message.verb() == "send" || message.verb() == "receive") {
        Require(network::ReadTask(message, kHosts).peer < kHosts, "a task with nobody");
      } else if (message.verb() == "end") {
        profile.problem = network::PlainText(message, "problem");
      } else {
        if (!kind) continue;
        network::TakeResult(message, rank, profile.hosts, kLongestS,
                            &rows[static_cast<NetworkKind>(*kind)]);
      }
    } catch (const network::NetworkError& e) {
      RequireReadable(e.what());
    }
  }
  network::NameHosts({}, &profile.hosts);
  for (auto& [kind, measured] : rows) {
    for (NetworkRow& row : measured) {
      network::Settle("gone", &row);
      profile.rows.push_back(row);
    }
  }
  profile.planned = static_cast<int>(profile.rows.size());
  RequireShown(profile);
}

// Lines of messages: what the first of three hosts of `probe steps` and the others tell each other.
STEPCAST_DOOR(probe_steps) {
  constexpr int kHosts = 3;
  const std::vector<std::string> lines = Split(input, '\n');
  std::vector<double> bucket_s(4, 0);
  for (std::size_t i = 0; i < lines.size();) {
    try {
      const auto message = network::Message::Parse(lines[i++]);
      if (message.verb() == steps::kRun) {
        const auto next = [&] {
          if (i == lines.size()) throw network::NetworkError("is gone");
          return network::Message::Parse(lines[i++]);
        };
        const steps::Work work = steps::ReadWork(message, kHosts, next);
        std::string written;
        for (const network::Message& m : steps::WorkMessages(work)) written += m.Line() + "\n";
        const std::vector<std::string> again = Split(written, '\n');
        std::size_t read = 1;
        const steps::Work copy = steps::ReadWork(network::Message::Parse(again[0]), kHosts, [&] {
          return network::Message::Parse(again[read++]);
        });
        std::string rewritten;
        for (const network::Message& m : steps::WorkMessages(copy)) rewritten += m.Line() + "\n";
        RequireSame(rewritten, written);
      } else if (message.verb() == steps::kListens) {
        const steps::Listening listening = steps::ReadListening(message, kHosts, kHosts);
        RequireSame(steps::ListeningMessage(
                        steps::ReadListening(steps::ListeningMessage(listening), kHosts, kHosts))
                        .Line(),
                    steps::ListeningMessage(listening).Line());
      } else if (message.verb() == steps::kShape || message.verb() == steps::kMayShape) {
        const steps::Conditions conditions = steps::ReadConditions(message);
        const network::Message written = steps::ConditionsMessage(steps::kShape, conditions);
        Require(steps::ReadConditions(written) == conditions, "other conditions than were told");
        Require(steps::ShapingCommands("eth0", 1500, conditions, "in").size() <= 7,
                "too many commands");
      } else if (message.verb() == steps::kTimed) {
        Require(steps::ReadTimed(message).step_s > 0, "a step of no time");
      } else {
        steps::TakeBucketTime(message, &bucket_s);
      }
    } catch (const network::NetworkError& e) {
      RequireReadable(e.what());
    }
  }
}

// Conditions of links that are measured in turn: what one host is told of them, it sets.
STEPCAST_DOOR(shape) {
  constexpr std::size_t kMostShown = 100;
  const std::vector<steps::Conditions> cells = cli::ParseShapes({input}, {"", 0, "--shape"});
  Require(!cells.empty() && cells.size() <= cli::kMostDesignedRuns, "too many conditions, or none");
  for (std::size_t i = 0; i < std::min(cells.size(), kMostShown); ++i) {
    const network::Message told = steps::ConditionsMessage(steps::kShape, cells[i]);
    const std::string line = told.Line();
    Require(steps::ReadConditions(network::Message::Parse(line)) == cells[i],
            "other conditions than were told: " + line);
    Require(steps::ShapingCommands("eth0", 1500, cells[i], "in").size() <= 7, "too many commands");
  }
}

// Lines of NAME=VALUE: variables of the environment, and options with their dashes.
STEPCAST_DOOR(probe_place) {
  std::map<std::string, std::string> given;
  for (const std::string& line : Split(input, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals + 1 == line.size()) continue;
    given[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const auto look = [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? std::nullopt : std::optional(found->second);
  };
  const cli::Place place =
      cli::ReadPlace([&](const char* option) { return look(std::string("--") + option); }, look);
  Require(place.of >= 2 && place.of <= kMostProbedHosts && place.rank >= 0 && place.rank < place.of,
          "rank " + std::to_string(place.rank) + " of " + std::to_string(place.of));
  Require(!place.master.empty() && place.port > 0 && place.port < 65536, "nobody to reach");
  const std::set<std::string> hosts(place.hosts.begin(), place.hosts.end());
  Require(hosts.size() == place.hosts.size(), "a host is there twice");
}

}  // namespace
}  // namespace stepcast::fuzz
