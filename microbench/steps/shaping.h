// The conditions of a link, set by tc on the interface of each host: a rate by tbf, on what the
// host sends and, where the kernel can, on what it receives; a delay and losses by netem, on what
// it sends.
//
// Whatever is set is undone, whoever dies: a guard, a small process of its own, runs each command
// of tc and keeps with it the one that undoes it. When the connection to the program that it serves
// is closed, for whatever reason, it undoes what is left, and ends.
#ifndef STEPCAST_MICROBENCH_STEPS_SHAPING_H_
#define STEPCAST_MICROBENCH_STEPS_SHAPING_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/units/quantity.h"
#include "microbench/network/message.h"
#include "microbench/network/socket.h"

namespace stepcast::steps {

inline constexpr double kLongestSetRtt = 10;  // s: workers wait no longer to be connected
inline constexpr double kLeastSetRate = 1e3;  // B/s
inline constexpr double kMostSetRate = 1e12;  // B/s
inline constexpr double kMostSetLoss = 0.9;

// What a link is given. What is not stated is left as it is.
struct Conditions {
  std::optional<DataRate<>> bandwidth;
  std::optional<Duration<>> rtt;  // added: half of it to all that each of two hosts sends
  std::optional<double> loss;     // share of the packets that each host sends

  bool delays() const { return rtt && rtt->si() > 0; }
  bool loses() const { return loss.value_or(0) > 0; }
  bool needs_netem() const { return delays() || loses(); }
  bool operator==(const Conditions&) const = default;
};

inline constexpr const char* kShape = "shape";
inline constexpr const char* kMayShape = "may_shape";  // what could be shaped, without doing it
inline constexpr const char* kShaped = "shaped";
// With kShaped: whether a bandwidth is set on what comes in, too.
inline constexpr const char* kReceives = "receives";
network::Message ConditionsMessage(const char* verb, const Conditions& conditions);
// A message that says what cannot be set is a NetworkError.
Conditions ReadConditions(const network::Message& message);

// A command, and the one that undoes it; nothing where the one before is undone with it.
struct UndoableCommand {
  std::string words;
  std::string undo;
};
// What sets the conditions on an interface that has its default queue, whose packets have at most
// so many bytes. `receiver` is the interface that is made for what it receives, empty where that is
// left as it is.
std::vector<UndoableCommand> ShapingCommands(const std::string& interface, int mtu,
                                             const Conditions& conditions,
                                             const std::string& receiver);

// Whether the text may be the name of an interface.
bool IsInterfaceName(const std::string& text);

// Runs commands, and undoes at the end what is then left to be undone.
class Guard {
 public:
  // Throws NetworkError where it cannot be started.
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  struct Answer {
    int code = 0;
    std::vector<std::string> lines;

    std::string text() const;  // on one line
  };
  // Throws NetworkError where the guard is gone, or says nothing for too long.
  Answer Run(const UndoableCommand& command);
  // Has a shell run the words in a network of its own, which ends with them; the answer names
  // unshare where there can be none.
  Answer RunApart(const std::string& words);
  // Undoes all that was done so far.
  Answer Undo();

  pid_t pid() const { return pid_; }

 private:
  Answer Ask(const std::string& line);

  network::LineSocket line_;
  pid_t pid_ = 0;
  std::vector<std::string> undo_;  // what it has to do at the end, should it be killed itself
};

// The interface of this host, which has its own conditions again when this ends.
class Shaper {
 public:
  explicit Shaper(std::string interface) : interface_(std::move(interface)) {}

  const std::string& interface() const { return interface_; }
  // Why such conditions cannot be set here, found without setting any; empty where they can.
  std::string WhyNot(const Conditions& conditions);
  // Whether a bandwidth is set on what comes in too, as far as WhyNot has found.
  bool receives() const { return !receiver_.empty(); }
  // Throws NetworkError where tc refuses; nothing is set then.
  void Set(const Conditions& conditions);

 private:
  Guard* guard();

  std::string interface_;
  std::string receiver_;
  std::optional<Guard> guard_;
};

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_SHAPING_H_
