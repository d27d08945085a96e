// The listening port of a host that probes. Whoever connects says who he is in one line, which must
// show the token, within a moment; whoever does not is shut out. Many who say nothing, or nonsense,
// hold nobody up and take no memory worth speaking of.
#ifndef STEPCAST_MICROBENCH_NETWORK_DOOR_H_
#define STEPCAST_MICROBENCH_NETWORK_DOOR_H_

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "microbench/network/message.h"
#include "microbench/network/protocol.h"
#include "microbench/network/socket.h"

namespace stepcast::network {

inline constexpr int kProtocol = 1;
// A connection's first line, and what it is answered.
inline constexpr const char* kJoin = "join";
inline constexpr const char* kData = "data";
inline constexpr const char* kWelcome = "welcome";
inline constexpr const char* kRefused = "refused";

class Door {
 public:
  // Waits at an address of this host; at any free port where its port is 0.
  Door(const Address& address, std::string token);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  const Address& address() const { return address_; }
  // From now on only these hosts may come in, by their numeric addresses.
  void AdmitOnly(std::set<std::string> hosts);

  struct Guest {
    Message hello;
    LineSocket line;
  };
  // The next that has joined. Throws NetworkError at the deadline.
  Guest TakeJoin(const Deadline& deadline);
  // The connection of a measurement.
  Socket TakeData(int step, int from, int flow, const Deadline& deadline);
  // Drops connections of measurements before this one.
  void Forget(int step);

  // Who was shut out and why, the first few: "10.0.0.9 showed another token".
  std::vector<std::string> refusals() const;

 private:
  struct Stranger {
    LineSocket line;
    Clock::time_point until;
  };
  void Watch();
  void LetIn(Socket socket);
  // Whether he need not be heard any longer.
  bool Hear(Stranger* stranger);
  void Refuse(const Socket& socket, const std::string& why);
  Guest Take(const std::string& key, const Deadline& deadline);

  Address address_;
  std::string token_;
  Socket listener_;
  std::list<Stranger> strangers_;  // of the thread alone

  mutable std::mutex mutex_;
  std::condition_variable came_;
  bool only_some_ = false;
  std::set<std::string> admitted_;
  std::multimap<std::string, Guest> guests_;
  int oldest_step_ = 0;
  std::vector<std::string> refusals_;

  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_DOOR_H_
