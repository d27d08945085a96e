// How hosts of a probe come together: each joins that of rank 0, shows the token, and is told who
// the others are. What they do then is up to the probe.
#ifndef STEPCAST_MICROBENCH_NETWORK_MEETING_H_
#define STEPCAST_MICROBENCH_NETWORK_MEETING_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/network/door.h"
#include "microbench/network/message.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

// How long the coordinator waits for what a host has ready, and how long a host waits for a word of
// the coordinator, who may be waiting for another.
inline constexpr double kGraceS = 5;
inline constexpr double kPatienceS = 20;

// The verb with which a probe ends.
inline constexpr const char* kEnd = "end";
// What rank 0 answers to a host that joins while it has something else to do first.
inline constexpr const char* kLater = "later";

// ---- A host.

// Told why a host waits: for rank 0 to be there, or, where it `is_there`, for it to begin.
using WaitHook = std::function<void(const std::string& why, bool is_there)>;

struct AgentOptions {
  int rank = 0;
  int of = 0;
  std::string name;
  Address master;  // where the coordinator waits
  std::string token;
  std::string bind;    // interface or address to listen at; empty for that towards the master
  double join_s = 60;  // for the coordinator to be there
  Deadline deadline;   // for all
  WaitHook waits;      // may be null
};

// A host among the others.
struct Membership {
  std::unique_ptr<Door> own_door;  // where it was given none
  Door* door = nullptr;
  // Closed before the door, whose end takes a moment in which the others would go on sending.
  LineSocket master;
  std::vector<Address> peers;  // by rank

  // The first line of a connection to another.
  static Message Hello(const char* verb, const std::string& token);
  static void RequireWelcome(const Message& answer);
};

// `door` is that of this host, or null for one of its own. What rank 0 has this host wait is added
// to its deadline. Throws NetworkError where the coordinator cannot be reached, refuses this host,
// or goes away.
Membership Join(AgentOptions* options, Door* door);

// What `act` returns; its NetworkErrors name the coordinator.
std::string ByCoordinator(const AgentOptions& options, const std::function<std::string()>& act);

// ---- The host of rank 0.

struct MeetingOptions {
  int hosts = 0;
  std::vector<std::string> names;  // by rank; empty for those that the hosts give themselves
  std::string name;                // that this one gives itself; needless with `names`
  std::string bind;                // empty for the master's address
  Address master;
  std::string token;
  double join_s = 60;
  Deadline deadline;
};

// Why it is in vain to wait for hosts that have not come; empty while it is not.
using Absent = std::function<std::string()>;

// The hosts as the first of them sees them. One that goes away is lost, and nobody waits for it
// again.
class Members {
 public:
  // Names and addresses go to `hosts`; why the probe ends early, to `problem`.
  Members(const MeetingOptions& options, std::vector<NetworkHost>* hosts, std::string* problem)
      : options_(options), hosts_(*hosts), problem_(*problem) {}

  // Throws NetworkError where a host does not come.
  void Gather(Door* door, const Absent& absent);

  const std::string& Name(int rank) const { return hosts_[static_cast<std::size_t>(rank)].name; }
  // Why the host takes no part any longer.
  const std::string& ProblemOf(int rank) const {
    return members_[static_cast<std::size_t>(rank)].problem;
  }
  bool Takes(int rank) const { return ProblemOf(rank).empty(); }
  int Left() const;

  void Lose(int rank, const std::string& why);
  void Say(int rank, const Message& message);
  // The next message of a host; none where it is gone, or goes.
  std::optional<Message> Hear(int rank, const Deadline& deadline);
  // The same, where a message is there already.
  std::optional<Message> HearNow(int rank);
  // A moment, or until one of these has something to say.
  void WaitForWord(const std::vector<int>& ranks) const;
  // Tells all that the probe is over, and hears them out for so long.
  void End(const std::string& problem, double hear_s);

 private:
  struct Member {
    LineSocket line;
    std::string address;
    int port = 0;
    std::string problem;
  };

  std::string WhoIsMissing(const Door& door) const;
  bool Greet(Door::Guest* guest);
  // What is said at the end, of which nobody learns that it failed.
  template <class Act>
  void Quietly(int rank, const Act& act);

  const MeetingOptions& options_;
  std::vector<NetworkHost>& hosts_;
  std::string& problem_;
  std::vector<Member> members_;
  std::vector<std::string> turned_away_;
};

// Opens the door of rank 0 and leads there: `agent` is this host's own part, beside it, and has
// ended when this returns, or throws what `lead` throws.
void Lead(const MeetingOptions& options,
          const std::function<void(const AgentOptions& options, Door* door)>& agent,
          const std::function<void(Door* door)>& lead);

// While it lives, hosts that join that of rank 0 are asked to come later, and told why: "measures
// its compute first". They go on to wait as long as they are told so.
class HoldOff {
 public:
  // Throws NetworkError where it cannot listen there.
  HoldOff(const MeetingOptions& options, std::string why);
  ~HoldOff();
  HoldOff(const HoldOff&) = delete;
  HoldOff& operator=(const HoldOff&) = delete;

 private:
  Door door_;
  std::string why_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_MEETING_H_
