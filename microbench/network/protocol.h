// What hosts of a probe tell each other, as the records that their messages stand for. They come
// from whoever has shown the token: a message that says what cannot be is a NetworkError, and what
// is taken from one a profile may hold.
#ifndef STEPCAST_MICROBENCH_NETWORK_PROTOCOL_H_
#define STEPCAST_MICROBENCH_NETWORK_PROTOCOL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/network/message.h"

namespace stepcast::network {

inline constexpr int kMostSteps = 1'000'000;
inline constexpr double kLongestStepS = 3600;
// Bytes of a host's name at most, as for a name of DNS.
inline constexpr std::size_t kLongestHostName = 253;

// A text that people read and files keep: UTF-8 on one line.
const std::string& PlainText(const Message& message, const std::string& key);

// A host that joins those of a probe.
struct Joining {
  int rank = 0;
  int port = 0;
  std::string name;
  std::map<std::string, std::string> facts;
};
Joining ReadJoining(const Message& hello, int hosts);

// Gives hosts the names of the list, or leaves those that they have given themselves, and makes
// each of them the name of one.
void NameHosts(const std::vector<std::string>& list, std::vector<NetworkHost>* hosts);

// What a host has to do in a step, towards one other or for it.
struct Task {
  int peer = 0;
  bool sends = false;
  double pace = 0;  // of each flow [B/s]; 0 as fast as can be
};
Task ReadTask(const Message& message, int hosts);

struct Step {
  int id = 0;
  NetworkKind kind = NetworkKind::kLatency;
  int flows = 1;
  double warm_s = 0;
  double seconds = 0;
  int tasks = 0;  // that follow in messages of their own
};
Step ReadStep(const Message& message);

// What the host of that rank tells of its end of a path, into the row of the path. `longest_s`: how
// long anything in the step has taken at most.
void TakeResult(const Message& told, int rank, const std::vector<NetworkHost>& hosts,
                double longest_s, std::vector<NetworkRow>* rows);

// A row of which a part is missing is none, for that reason where it has none of its own.
void Settle(const std::string& reason, NetworkRow* row);

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_PROTOCOL_H_
