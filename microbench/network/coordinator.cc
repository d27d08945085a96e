#include "microbench/network/coordinator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "microbench/network/agent.h"

namespace stepcast::network {
namespace {

// Share of a path's rate at which no queue on it grows.
constexpr double kPacedShare = 0.8;
constexpr double kKeepEveryS = 5;

class Coordinator {
 public:
  Coordinator(const ProbeOptions& options, NetworkProfile* profile, const ProbeHooks& hooks)
      : options_(options),
        profile_(*profile),
        hooks_(hooks),
        members_(options, &profile->hosts, &profile->problem) {}

  void Gather(Door* door) { members_.Gather(door, hooks_.absent); }

  void Measure() {
    const std::vector<ProbeStep> steps = MakeSchedule(options_.hosts);
    for (const ProbeStep& step : steps) profile_.planned += static_cast<int>(step.edges.size());
    Clock::time_point kept = Clock::now();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (options_.deadline.stopped()) return End("interrupted");
      if (options_.deadline.over()) return End("the time limit is over");
      const Edge& first = steps[i].edges.front();
      if (hooks_.progress) {
        hooks_.progress(
            {i, steps.size(), ExpectedSeconds(steps, i, options_.settings),
             fmt::format("{}, {} to {}{}", kNetworkKindNames[static_cast<int>(steps[i].kind)],
                         members_.Name(first.from), members_.Name(first.to),
                         steps[i].edges.size() > 1 ? " and others" : "")});
      }
      Do(static_cast<int>(i), steps[i]);
      if (members_.Left() < 2) {
        return End("fewer than two hosts are left");
      }
      if (hooks_.keep && Clock::now() - kept > SecondsToClock(kKeepEveryS)) {
        hooks_.keep(profile_);
        kept = Clock::now();
      }
    }
    End("");
  }

 private:
  void End(const std::string& problem) {
    // What they say until they have read it would break the connection before it arrives.
    constexpr double kMostS = 5;
    members_.End(problem, std::min(kMostS, MeasuredSeconds(NetworkKind::kPaced, options_.settings) +
                                               kMostS / 2));
  }

  // The round trip of an edge, once it is known.
  double RoundTrip(const Edge& edge) const {
    const auto found = round_trips_.find(std::minmax(edge.from, edge.to));
    return found == round_trips_.end() ? 0 : found->second;
  }

  // What each flow of the edge sends at most [B/s].
  double Pace(const Edge& edge, int flows) const {
    const auto found = rates_.find({edge.from, edge.to});
    return found == rates_.end() ? 0 : kPacedShare * found->second / flows;
  }

  void Do(int id, const ProbeStep& step) {
    const ProbeSettings& settings = options_.settings;
    const int flows = FlowsOf(step.kind, settings);
    std::vector<NetworkRow> rows;
    std::map<int, std::vector<Message>> tasks;
    double warm_s = 0;
    for (const Edge& edge : step.edges) {
      NetworkRow row;
      row.kind = step.kind;
      row.from = edge.from;
      row.to = edge.to;
      row.flows = flows;
      const double pace = step.kind == NetworkKind::kPaced ? Pace(edge, flows) : 0;
      for (const int rank : {edge.from, edge.to}) {
        if (row.problem.empty()) row.problem = members_.ProblemOf(rank);
      }
      if (step.kind == NetworkKind::kPaced && pace <= 0 && row.problem.empty()) {
        row.problem = "the rate is not known";
      }
      rows.push_back(row);
      if (!row.problem.empty()) continue;
      tasks[edge.from].push_back(Message("send").Set("peer", edge.to).Set("pace", pace));
      tasks[edge.to].push_back(Message("receive").Set("peer", edge.from).Set("pace", pace));
      warm_s = std::max(warm_s, WarmSeconds(step.kind, settings, RoundTrip(edge)));
    }
    const double seconds = MeasuredSeconds(step.kind, settings);
    for (int rank = 0; rank < options_.hosts; ++rank) {
      Message message("step");
      message.Set("id", id).Set("kind", static_cast<int>(step.kind)).Set("flows", flows);
      message.Set("warm", warm_s).Set("seconds", seconds);
      message.Set("tasks", static_cast<int>(tasks[rank].size()));
      members_.Say(rank, message);
      for (const Message& task : tasks[rank]) members_.Say(rank, task);
    }
    // All hosts get the same time; who was slow leaves others none.
    const auto everybody = [&](double within_s, const auto& listen) {
      const Deadline deadline = options_.deadline.AtMost(within_s);
      for (int rank = 0; rank < options_.hosts; ++rank) listen(rank, deadline);
    };
    everybody(kReadyS, [&](int rank, const Deadline& deadline) {
      const std::optional<Message> ready = members_.Hear(rank, deadline);
      if (ready && ready->verb() != "ready") members_.Lose(rank, "it sent what is no answer");
    });
    // Who was interrupted has not heard all, and would take what is still to come for results.
    if (options_.deadline.stopped()) {
      for (NetworkRow& row : rows) Keep(std::move(row));
      return;
    }
    for (int rank = 0; rank < options_.hosts; ++rank) members_.Say(rank, Message("go"));
    everybody(warm_s + seconds + kGraceS, [&](int rank, const Deadline& deadline) {
      const std::size_t most = tasks[rank].size() + 1;
      for (std::size_t i = 0; i < most; ++i) {
        const std::optional<Message> told = members_.Hear(rank, deadline);
        if (!told || told->verb() == "done") return;
        try {
          TakeResult(*told, rank, profile_.hosts, warm_s + seconds + kGraceS, &rows);
        } catch (const NetworkError& e) {
          return members_.Lose(rank, std::string("it ") + e.what());
        }
      }
      members_.Lose(rank, "it sent more than was asked for");
    });
    for (NetworkRow& row : rows) Keep(std::move(row));
  }

  void Keep(NetworkRow row) {
    std::string reason;
    for (const int rank : {row.from, row.to}) {
      if (reason.empty()) reason = members_.ProblemOf(rank);
    }
    Settle(reason.empty() ? "interrupted" : reason, &row);
    if (row.rtt_median_s) {
      round_trips_[std::minmax(row.from, row.to)] = *row.rtt_median_s;
    } else if (row.bytes_per_s &&
               (row.kind == NetworkKind::kOneFlow || row.kind == NetworkKind::kSeveralFlows)) {
      double& rate = rates_[{row.from, row.to}];
      rate = std::max(rate, *row.bytes_per_s);
    }
    profile_.rows.push_back(std::move(row));
  }

  const ProbeOptions& options_;
  NetworkProfile& profile_;
  const ProbeHooks& hooks_;
  Members members_;
  std::map<std::pair<int, int>, double> round_trips_;
  std::map<std::pair<int, int>, double> rates_;
};

}  // namespace

NetworkProfile RunProbe(const ProbeOptions& options, NetworkProfile profile,
                        const ProbeHooks& hooks) {
  // This host measures, too, as all others do.
  Lead(
      options, [](const AgentOptions& agent, Door* door) { RunAgent(agent, door); },
      [&](Door* door) {
        Coordinator coordinator(options, &profile, hooks);
        coordinator.Gather(door);
        coordinator.Measure();
      });
  if (hooks.keep) hooks.keep(profile);
  return profile;
}

}  // namespace stepcast::network
