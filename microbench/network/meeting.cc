#include "microbench/network/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "microbench/network/host_facts.h"
#include "microbench/network/protocol.h"

namespace stepcast::network {
namespace {

// How often a host that waits for others looks whether they can still come.
constexpr double kLookS = 0.25;

// Tells of a wait, but of each reason once.
class Waiting {
 public:
  explicit Waiting(const WaitHook& hook) : hook_(hook) {}

  void Say(const std::string& why, bool is_there) {
    if (hook_ && why != said_) hook_(why, is_there);
    said_ = why;
  }

 private:
  const WaitHook& hook_;
  std::string said_;
};

// The coordinator may start later than this host. One attempt is short, for an address that
// nobody answers at would take them all.
Socket Reach(const Address& master, const Address* source, const Deadline& deadline,
             Waiting* waiting) {
  constexpr double kAgainS = 0.25;
  constexpr double kAttemptS = 5;
  constexpr double kUnsaidS = 1;  // hosts that start together find each other within it
  const auto start = Clock::now();
  while (true) {
    try {
      return Socket::Connect(master, source, deadline.AtMost(kAttemptS));
    } catch (const NetworkError& e) {
      if (deadline.stopped()) throw;
      if (deadline.left_s() < kAgainS) {
        throw NetworkError(fmt::format("{}; is rank 0 started, and its port open?", e.what()));
      }
      if (ClockToSeconds(Clock::now() - start) > kUnsaidS) waiting->Say(e.what(), false);
    }
    std::this_thread::sleep_for(SecondsToClock(kAgainS));
  }
}

// Whether the other end has gone, for a reason of its own.
bool HasGone(const NetworkError& error) {
  const std::string_view text = error.what();
  return text.starts_with(kClosed) || text.starts_with(kBroke);
}

// Shows the coordinator who has come, and returns what it says. One that goes before it says
// anything may be that of a probe that has just ended, where the next one is to come. As long as
// rank 0 asks this host to come later, no time of the options passes.
Message Greeted(AgentOptions* options, const Address* source,
                const std::function<Message(const LineSocket& line)>& greeting, LineSocket* line) {
  constexpr double kLaterS = 0.5;
  Waiting waiting(options->waits);
  auto since = Clock::now();
  Deadline deadline = options->deadline.AtMost(options->join_s);
  while (true) {
    *line = LineSocket(Reach(options->master, source, deadline, &waiting));
    // It may wait for others as long from now on.
    const Deadline answer = options->deadline.AtMost(options->join_s + kGraceS);
    double again_s = 0.1;
    try {
      line->Send(greeting(*line).Line(), answer);
      Message message = Message::Parse(line->Read(answer));
      if (message.verb() != kLater) return message;
      waiting.Say(PlainText(message, "why"), true);
      const auto now = Clock::now();
      options->deadline.until += now - since;
      since = now;
      deadline = options->deadline.AtMost(options->join_s);
      again_s = kLaterS;
    } catch (const NetworkError& e) {
      if (!HasGone(e) || deadline.over()) throw;
    }
    if (deadline.stopped()) throw NetworkError("interrupted");
    std::this_thread::sleep_for(SecondsToClock(again_s));
  }
}

// Where the host of rank 0 listens.
Address OwnAddress(const MeetingOptions& options) {
  return options.bind.empty() ? options.master
                              : LocalAddress(options.bind).WithPort(options.master.port());
}

}  // namespace

Message Membership::Hello(const char* verb, const std::string& token) {
  Message hello(verb);
  hello.Set("stepcast", kProtocol).Set("token", token);
  return hello;
}

void Membership::RequireWelcome(const Message& answer) {
  if (answer.verb() == kRefused) {
    throw NetworkError("refuses this host: " + PlainText(answer, "why"));
  }
  if (answer.verb() == kEnd) throw NetworkError("has ended: " + PlainText(answer, "problem"));
  if (answer.verb() != kWelcome) throw NetworkError("sent no welcome");
}

Membership Join(AgentOptions* joining, Door* door) {
  const AgentOptions& options = *joining;
  Membership member;
  member.door = door;
  std::optional<Address> source;
  if (member.door != nullptr) {
    source = member.door->address().WithPort(0);
  } else if (!options.bind.empty()) {
    source = LocalAddress(options.bind);
  }
  const auto greeting = [&](const LineSocket& line) {
    if (member.door == nullptr) {
      member.own_door = std::make_unique<Door>(line.socket().local().WithPort(0), options.token);
      member.door = member.own_door.get();
    }
    Message join = Membership::Hello(kJoin, options.token);
    join.Set("rank", options.rank).Set("of", options.of).Set("name", options.name);
    join.Set("port", member.door->address().port());
    for (const auto& [name, value] : HostFacts(member.door->address()))
      join.Set("fact." + name, value);
    return join;
  };
  // The others may be late.
  const Message welcome = Greeted(joining, source ? &*source : nullptr, greeting, &member.master);
  Membership::RequireWelcome(welcome);
  const Deadline deadline = options.deadline.AtMost(kPatienceS);
  std::set<std::string> admitted;
  for (int rank = 0; rank < options.of; ++rank) {
    const Message peer = Message::Parse(member.master.Read(deadline));
    if (peer.verb() != "peer") throw NetworkError("sent what is no peer");
    const std::string& host = peer.Text("address");
    const int port = peer.Integer("port", 1, 65535);
    // The coordinator is where it was found.
    const Address address =
        host.empty() ? member.master.socket().peer().WithPort(port) : Resolve(host, port).front();
    member.peers.push_back(address);
    admitted.insert(address.host());
  }
  member.door->AdmitOnly(std::move(admitted));
  return member;
}

void Members::Gather(Door* door, const Absent& absent) {
  members_.resize(static_cast<std::size_t>(options_.hosts));
  hosts_.resize(members_.size());
  const Deadline deadline = options_.deadline.AtMost(options_.join_s);
  for (int here = 0; here < options_.hosts;) {
    Door::Guest guest;
    const std::string gone = absent ? absent() : "";
    try {
      guest = door->TakeJoin(deadline.AtMost(kLookS));
    } catch (const NetworkError& e) {
      if (gone.empty() && !deadline.over()) continue;
      const std::string why = WhoIsMissing(*door) + ": " + (gone.empty() ? e.what() : gone);
      End(why, kLookS);
      throw NetworkError(why);
    }
    here += Greet(&guest) ? 1 : 0;
  }
  NameHosts(options_.names, &hosts_);
  for (std::size_t to = 0; to < members_.size(); ++to) {
    Say(static_cast<int>(to), Message(kWelcome));
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      Message peer("peer");
      peer.Set("name", hosts_[rank].name).Set("port", members_[rank].port);
      peer.Set("address", rank == 0 ? "" : members_[rank].address);
      Say(static_cast<int>(to), peer);
    }
  }
}

// "rank 2 did not come", with who was turned away.
std::string Members::WhoIsMissing(const Door& door) const {
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
bool Members::Greet(Door::Guest* guest) {
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
    hosts_[rank] = {std::move(joining.name), address.host(), std::move(joining.facts)};
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

void Members::Lose(int rank, const std::string& why) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (!member.problem.empty()) return;
  member.problem = Name(rank) + " is gone: " + why;
  member.line = LineSocket();
  if (problem_.empty()) problem_ = member.problem;
}

void Members::Say(int rank, const Message& message) {
  if (!Takes(rank)) return;
  try {
    members_[static_cast<std::size_t>(rank)].line.Send(message.Line(),
                                                       options_.deadline.AtMost(kGraceS));
  } catch (const NetworkError& e) {
    Lose(rank, e.what());
  }
}

std::optional<Message> Members::Hear(int rank, const Deadline& deadline) {
  if (!Takes(rank)) return std::nullopt;
  try {
    return Message::Parse(members_[static_cast<std::size_t>(rank)].line.Read(deadline));
  } catch (const NetworkError& e) {
    // Who is interrupted himself has nothing to say of others.
    if (!deadline.stopped()) Lose(rank, e.what());
    return std::nullopt;
  }
}

std::optional<Message> Members::HearNow(int rank) {
  if (!Takes(rank)) return std::nullopt;
  try {
    const auto line = members_[static_cast<std::size_t>(rank)].line.TryRead();
    return line ? std::optional(Message::Parse(*line)) : std::nullopt;
  } catch (const NetworkError& e) {
    Lose(rank, e.what());
    return std::nullopt;
  }
}

void Members::WaitForWord(const std::vector<int>& ranks) const {
  constexpr int kNoticeMs = 50;
  std::vector<pollfd> polled;
  for (const int rank : ranks) {
    polled.push_back({members_[static_cast<std::size_t>(rank)].line.socket().fd(), POLLIN, 0});
  }
  poll(polled.data(), polled.size(), kNoticeMs);
}

template <class Act>
void Members::Quietly(int rank, const Act& act) {
  try {
    act(&members_[static_cast<std::size_t>(rank)].line);
  } catch (const NetworkError&) {
    // The host has closed the connection, which says enough.
  }
}

void Members::End(const std::string& problem, double hear_s) {
  if (problem_.empty()) problem_ = problem;
  Message end(kEnd);
  end.Set("problem", problem_);
  const auto is_here = [&](int rank) {
    return Takes(rank) && members_[static_cast<std::size_t>(rank)].line.socket();
  };
  // Also where an interrupt, or the limit, has ended all other waiting.
  for (int rank = 0; rank < options_.hosts; ++rank) {
    if (!is_here(rank)) continue;
    Quietly(rank, [&](LineSocket* line) { line->Send(end.Line(), Deadline::In(1)); });
  }
  // What they say until they have read it would break the connection before it arrives.
  const Deadline gone = Deadline::In(hear_s);
  for (int rank = 0; rank < options_.hosts; ++rank) {
    if (!is_here(rank)) continue;
    Quietly(rank, [&](LineSocket* line) {
      while (true) line->Read(gone);
    });
  }
}

int Members::Left() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [](const Member& m) { return m.problem.empty(); }));
}

std::string ByCoordinator(const AgentOptions& options, const std::function<std::string()>& act) {
  try {
    return act();
  } catch (const NetworkError& e) {
    throw NetworkError(fmt::format("the coordinator at {}: {}", options.master.text(), e.what()));
  }
}

void Lead(const MeetingOptions& options,
          const std::function<void(const AgentOptions& options, Door* door)>& agent,
          const std::function<void(Door* door)>& lead) {
  Door door(OwnAddress(options), options.token);
  std::atomic<bool> over = false;
  AgentOptions here;
  here.of = options.hosts;
  here.name = options.names.empty() ? options.name : options.names.front();
  here.master = door.address();
  here.token = options.token;
  here.join_s = options.join_s;
  here.deadline = {options.deadline.until, &over};
  std::thread beside([&] {
    try {
      agent(here, &door);
    } catch (const NetworkError&) {
      // The coordinator sees its connection end, and says so.
    }
  });
  const auto end = [&] {
    over = true;
    beside.join();
  };
  try {
    lead(&door);
  } catch (...) {
    end();
    throw;
  }
  end();
}

HoldOff::HoldOff(const MeetingOptions& options, std::string why)
    : door_(OwnAddress(options), options.token), why_(std::move(why)) {
  thread_ = std::thread([this] {
    while (!over_) {
      try {
        const Door::Guest guest = door_.TakeJoin(Deadline::In(1, &over_));
        guest.line.Send(Message(kLater).Set("why", why_).Line(), Deadline::In(1));
      } catch (const NetworkError&) {
        // Nobody has come, or he has gone again.
      }
    }
  });
}

HoldOff::~HoldOff() {
  over_ = true;
  thread_.join();
}

}  // namespace stepcast::network
