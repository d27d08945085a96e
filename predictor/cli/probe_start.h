// Starting a probe of several hosts: the word that they share, and the others' programs.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_START_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_START_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "microbench/network/meeting.h"
#include "predictor/cli/command.h"
#include "predictor/cli/probe_place.h"

namespace stepcast::cli {

// A variable of the environment; none where it is not set, or empty.
std::optional<std::string> VariableOf(const char* name);
// The options that say between which hosts something is measured, and which of them this one is.
void AddMeetingOptions(po::options_description* options);
// Who this host is among those of a probe, by options or by the environment.
Place ReadOwnPlace(const Arguments& args);
// "--rank 1 --of 4 --master n1:29411", the interface that all hosts have, and --wait: how another
// joins.
std::string JoiningWords(const Arguments& args, const Place& place, int rank);
// The time that an option gives, from `low` to `high`; `otherwise` where it is not given. All in s.
double ReadSeconds(const Arguments& args, const char* option, double otherwise, double low,
                   double high);
// How the hosts meet, on any of them, without the deadline of the agent or of the coordinator.
// Throws InputError for a token, or an interface, that is none.
network::MeetingOptions ReadMeeting(const Arguments& args, const Place& place);
// What a host that is not the first needs.
network::AgentOptions AsAgent(const network::MeetingOptions& options, const Place& place);

// The programs on the other hosts, each of which ends with its own.
class Started {
 public:
  Started() = default;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() { End(); }

  // By ssh where --ssh is given, else by a sentence for each that says how. `passed` are the
  // options that all hosts are to have.
  void StartOthers(const Arguments& args, const Place& place, const char* kind,
                   const std::vector<const char*>& passed, const network::MeetingOptions& options);
  // Waits a moment for them to end by themselves, and then ends them.
  void End();
  // Why it is in vain to wait for them; empty while it is not.
  std::string Absent();

 private:
  void Start(const std::string& host, const std::string& command, const std::string& token);
  // The hosts whose programs have ended.
  const std::vector<std::string>& Reap();

  struct Program {
    pid_t pid = 0;
    std::string host;
  };
  std::vector<Program> programs_;
  std::vector<std::string> ended_;
};

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_START_H_
