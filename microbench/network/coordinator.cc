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
// How often a host that waits for others looks whether they can still come.
constexpr double kLookS = 0.25;

struct Member {
  LineSocket line;
  std::string address;
  int port = 0;
  std::string problem;  // why it takes no part any longer
};

class Coordinator {
 public:
  Coordinator(const ProbeOptions& options, NetworkProfile* profile, const ProbeHooks& hooks)
      : options_(options), profile_(*profile), hooks_(hooks) {}

  void Gather(Door* door) {
    members_.resize(static_cast<std::size_t>(options_.hosts));
    profile_.hosts.resize(members_.size());
    const Deadline deadline = options_.deadline.AtMost(options_.join_s);
    for (int here = 0; here < options_.hosts;) {
      Door::Guest guest;
      const std::string absent = hooks_.absent ? hooks_.absent() : "";
      try {
        guest = door->TakeJoin(deadline.AtMost(kLookS));
      } catch (const NetworkError& e) {
        if (absent.empty() && !deadline.over()) continue;
        throw NetworkError(WhoIsMissing(*door) + ": " + (absent.empty() ? e.what() : absent));
      }
      here += Greet(&guest) ? 1 : 0;
    }
    NameHosts(options_.names, &profile_.hosts);
    for (std::size_t to = 0; to < members_.size(); ++to) {
      Say(static_cast<int>(to), Message(kWelcome));
      for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        Message peer("peer");
        peer.Set("name", profile_.hosts[rank].name).Set("port", members_[rank].port);
        peer.Set("address", rank == 0 ? "" : members_[rank].address);
        Say(static_cast<int>(to), peer);
      }
    }
  }

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
                         Name(first.from), Name(first.to),
                         steps[i].edges.size() > 1 ? " and others" : "")});
      }
      Do(static_cast<int>(i), steps[i]);
      if (std::count_if(members_.begin(), members_.end(),
                        [](const Member& m) { return m.problem.empty(); }) < 2) {
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
  const std::string& Name(int rank) const {
    return profile_.hosts[static_cast<std::size_t>(rank)].name;
  }

  // "rank 2 did not come", with who was turned away.
  std::string WhoIsMissing(const Door& door) const {
    std::vector<std::string> missing;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (members_[rank].line.socket()) continue;
      const bool named = rank < options_.names.size();
      missing.push_back(named ? options_.names[rank] : fmt::format("rank {}", rank));
    }
    std::vector<std::string> away = door.refusals();
    away.insert(away.end(), turned_away_.begin(), turned_away_.end());
    return fmt::format("{} of {} hosts did not come: {}{}", missing.size(), members_.size(),
                       fmt::join(missing, ", "),
                       away.empty() ? "" : fmt::format(" ({})", fmt::join(away, "; ")));
  }

  // Whether the guest is one of the hosts.
  bool Greet(Door::Guest* guest) {
    const Deadline deadline = options_.deadline.AtMost(kGraceS);
    const Message& hello = guest->hello;
    const Address address = guest->line.socket().peer();
    try {
      Joining joining = ReadJoining(hello, options_.hosts);
      const auto rank = static_cast<std::size_t>(joining.rank);
      Member& member = members_[rank];
      if (member.line.socket()) throw NetworkError(fmt::format("is a second rank {}", rank));
      for (const Member& other : members_) {
        if (other.line.socket() && other.address == address.host() && !address.loopback()) {
          throw NetworkError("is there twice; start one on a host");
        }
      }
      member.address = address.host();
      member.port = joining.port;
      profile_.hosts[rank] = {std::move(joining.name), address.host(), std::move(joining.facts)};
      member.line = std::move(guest->line);
      return true;
    } catch (const NetworkError& e) {
      turned_away_.push_back(address.host() + " " + e.what());
      try {
        guest->line.Send(Message(kRefused).Set("why", e.what()).Line(), deadline);
      } catch (const NetworkError&) {
        // It has gone.
      }
      return false;
    }
  }

  bool Takes(int rank) const { return members_[static_cast<std::size_t>(rank)].problem.empty(); }

  void Lose(int rank, const std::string& why) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    if (!member.problem.empty()) return;
    member.problem = Name(rank) + " is gone: " + why;
    member.line = LineSocket();
    if (profile_.problem.empty()) profile_.problem = member.problem;
  }

  void Say(int rank, const Message& message) {
    if (!Takes(rank)) return;
    try {
      members_[static_cast<std::size_t>(rank)].line.Send(message.Line(),
                                                         options_.deadline.AtMost(kGraceS));
    } catch (const NetworkError& e) {
      Lose(rank, e.what());
    }
  }

  // The next message of a host; none where it is gone, or goes.
  std::optional<Message> Hear(int rank, const Deadline& deadline) {
    if (!Takes(rank)) return std::nullopt;
    try {
      return Message::Parse(members_[static_cast<std::size_t>(rank)].line.Read(deadline));
    } catch (const NetworkError& e) {
      // Who is interrupted himself has nothing to say of others.
      if (!deadline.stopped()) Lose(rank, e.what());
      return std::nullopt;
    }
  }

  void End(const std::string& problem) {
    if (profile_.problem.empty()) profile_.problem = problem;
    Message end("end");
    end.Set("problem", profile_.problem);
    // Also where an interrupt, or the limit, has ended all other waiting.
    for (int rank = 0; rank < options_.hosts; ++rank) {
      if (Takes(rank))
        Quietly(rank, [&](LineSocket* line) { line->Send(end.Line(), Deadline::In(1)); });
    }
    // What they say until they have read it would break the connection before it arrives.
    constexpr double kMostS = 5;
    const Deadline gone = Deadline::In(
        std::min(kMostS, MeasuredSeconds(NetworkKind::kPaced, options_.settings) + kMostS / 2));
    for (int rank = 0; rank < options_.hosts; ++rank) {
      if (!Takes(rank)) continue;
      Quietly(rank, [&](LineSocket* line) {
        while (true) line->Read(gone);
      });
    }
  }

  // What is said at the end, of which nobody learns that it failed.
  template <class Act>
  void Quietly(int rank, const Act& act) {
    try {
      act(&members_[static_cast<std::size_t>(rank)].line);
    } catch (const NetworkError&) {
      // The host has closed the connection, which says enough.
    }
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
        if (row.problem.empty()) row.problem = members_[static_cast<std::size_t>(rank)].problem;
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
      Say(rank, message);
      for (const Message& task : tasks[rank]) Say(rank, task);
    }
    // All hosts get the same time; who was slow leaves others none.
    const auto everybody = [&](double within_s, const auto& listen) {
      const Deadline deadline = options_.deadline.AtMost(within_s);
      for (int rank = 0; rank < options_.hosts; ++rank) listen(rank, deadline);
    };
    everybody(kReadyS, [&](int rank, const Deadline& deadline) {
      const std::optional<Message> ready = Hear(rank, deadline);
      if (ready && ready->verb() != "ready") Lose(rank, "it sent what is no answer");
    });
    // Who was interrupted has not heard all, and would take what is still to come for results.
    if (options_.deadline.stopped()) {
      for (NetworkRow& row : rows) Keep(std::move(row));
      return;
    }
    for (int rank = 0; rank < options_.hosts; ++rank) Say(rank, Message("go"));
    everybody(warm_s + seconds + kGraceS, [&](int rank, const Deadline& deadline) {
      const std::size_t most = tasks[rank].size() + 1;
      for (std::size_t i = 0; i < most; ++i) {
        const std::optional<Message> told = Hear(rank, deadline);
        if (!told || told->verb() == "done") return;
        try {
          TakeResult(*told, rank, profile_.hosts, warm_s + seconds + kGraceS, &rows);
        } catch (const NetworkError& e) {
          return Lose(rank, std::string("it ") + e.what());
        }
      }
      Lose(rank, "it sent more than was asked for");
    });
    for (NetworkRow& row : rows) Keep(std::move(row));
  }

  void Keep(NetworkRow row) {
    std::string reason;
    for (const int rank : {row.from, row.to}) {
      if (reason.empty()) reason = members_[static_cast<std::size_t>(rank)].problem;
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
  std::vector<Member> members_;
  std::vector<std::string> turned_away_;
  std::map<std::pair<int, int>, double> round_trips_;
  std::map<std::pair<int, int>, double> rates_;
};

}  // namespace

NetworkProfile RunProbe(const ProbeOptions& options, NetworkProfile profile,
                        const ProbeHooks& hooks) {
  const Address own = options.bind.empty()
                          ? options.master
                          : LocalAddress(options.bind).WithPort(options.master.port());
  Door door(own, options.token);
  // This host measures, too, as all others do.
  std::atomic<bool> over = false;
  AgentOptions agent;
  agent.of = options.hosts;
  agent.name = options.names.empty() ? options.name : options.names.front();
  agent.master = door.address();
  agent.token = options.token;
  agent.join_s = options.join_s;
  agent.deadline = {options.deadline.until, &over};
  std::thread here([&] {
    try {
      RunAgent(agent, &door);
    } catch (const NetworkError&) {
      // The coordinator sees its connection end, and says so.
    }
  });
  const auto end = [&] {
    over = true;
    here.join();
  };
  try {
    Coordinator coordinator(options, &profile, hooks);
    coordinator.Gather(&door);
    coordinator.Measure();
  } catch (...) {
    end();
    throw;
  }
  end();
  if (hooks.keep) hooks.keep(profile);
  return profile;
}

}  // namespace stepcast::network
