#include "microbench/steps/shaping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "microbench/script/spawn.h"

namespace stepcast::steps {
namespace {

using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;

constexpr double kCommandS = 10;  // tc answers at once

// A line "do COMMAND" or "do COMMAND -- UNDO" runs the command, "apart COMMANDS" a shell in a
// network of its own, with a user of its own where need be, and "undo" undoes all; the answer is
// what the command printed, and behind it its exit code. No signal of a terminal or a shell ends
// it, nor does an answer that nobody reads.
constexpr const char* kGuard = R"sh(trap '' HUP INT QUIT TERM PIPE
set -f
cd /
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
undo=
undo_all() {
  code=0
  why=
  IFS='
'
  for words in $undo; do
    IFS=' '
    if ! said=$($words 2>&1 </dev/null); then
      code=1
      why="$words: $said"
      echo "stepcast: $why" >&2
    fi
  done
  IFS=' '
  undo=
  said=$why
}
IFS=' '
while read -r verb words; do
  case $verb in
    undo) undo_all ;;
    apart)
      for user in '' '--user --map-root-user'; do
        said=$(unshare $user --net sh -c "$words" 2>&1 </dev/null)
        code=$?
        case $said in
          *unshare:*) ;;
          *) break ;;
        esac
      done
      ;;
    *)
      said=$(${words%% -- *} 2>&1 </dev/null)
      code=$?
      case $words in
        *' -- '*) [ $code = 0 ] && undo="${words##* -- }
$undo" ;;
      esac
      ;;
  esac
  printf '%s\ncode %s\n' "$said" "$code"
done
undo_all
exit $code
)sh";

// Handles by which tc's output tells our queues from those of others.
constexpr const char* kRateHandle = "57ca:";
constexpr const char* kDelayHandle = "57cb:";
constexpr const char* kReceiveHandle = "57cc:";
constexpr const char* kIncoming = "ffff:fff1";  // as tc shows the place of what comes in

// What an Ethernet line carries beside a frame that the kernel counts: preamble 8, checksum 4, gap
// 12 bytes (IEEE 802.3). With it a rate is that of the line.
constexpr int kUnseenBytes = 24;
constexpr int kHeaderBytes = 14;
// The bucket, which may leave at once when the line was idle: two full frames, and what the line
// carries in the time by which a timer of the kernel may be late. What comes later than that is
// lost to the rate (tc-tbf(8)); on two cores that were busy three times over a millisecond met 20
// and 100 Mbit/s within 0.6 %, where a quarter of it was up to 7 % slow.
constexpr double kLateS = 1e-3;
// The same for what comes in: more than the bucket of one sender lets through at once, so that a
// single sender waits for its own line and not for this one.
constexpr double kLateInS = 4e-3;
// The queue before the line, as long as a network card's of Linux (txqueuelen), of pieces as large
// as TCP makes them.
constexpr int kQueuePackets = 1000;
constexpr int kLargestPiece = 65536;

int MtuOf(const std::string& interface) {
  const network::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket.fd(), SIOCGIFMTU, &request) != 0) {
    throw NetworkError(fmt::format("{}: {}", interface, std::strerror(errno)));
  }
  return request.ifr_mtu;
}

std::string Interfaces() {
  std::vector<std::string> names;
  struct if_nameindex* list = if_nameindex();
  for (const auto* one = list; one != nullptr && one->if_index != 0; ++one) {
    names.emplace_back(one->if_name);
  }
  if (list != nullptr) if_freenameindex(list);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The queues that somebody has set up, of what "tc qdisc show" says: those of the kernel's own
// accord have the handle 0.
std::string QueueOfOthers(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    // "qdisc tbf 8001: root refcnt 2 ..."
    if (!line.starts_with("qdisc ")) continue;
    const std::size_t kind = line.find(' ', 6);
    if (kind == std::string::npos || line.compare(kind, 4, " 0: ") == 0) continue;
    // What comes in is not what is shaped.
    if (line.find(kIncoming) == std::string::npos) return line;
  }
  return "";
}

// What follows the place of a queue that lets through so much.
std::string RateLimit(const Conditions& conditions, int mtu, double late_s) {
  const double bytes_per_s = conditions.bandwidth->si();
  const double bucket = 2.0 * (mtu + kHeaderBytes) + bytes_per_s * late_s;
  return fmt::format("tbf rate {:.0f}bit burst {:.0f} limit {} overhead {}", bytes_per_s * 8,
                     std::ceil(bucket), kQueuePackets * kLargestPiece, kUnseenBytes);
}

// Sends all that comes in through another interface, as whose output it can be shaped.
std::string Redirection(const std::string& interface, const std::string& receiver) {
  return fmt::format(
      "tc filter add dev {} parent ffff: protocol all u32 match u32 0 0 action mirred egress "
      "redirect dev {}",
      interface, receiver);
}

}  // namespace

Message ConditionsMessage(const char* verb, const Conditions& conditions) {
  Message message(verb);
  if (conditions.bandwidth) message.Set("bandwidth", conditions.bandwidth->si());
  if (conditions.rtt) message.Set("rtt", conditions.rtt->si());
  if (conditions.loss) message.Set("loss", *conditions.loss);
  return message;
}

Conditions ReadConditions(const Message& message) {
  Conditions conditions;
  const auto has = [&](const char* key) { return message.fields().count(key) > 0; };
  if (has("bandwidth")) {
    conditions.bandwidth = BytesPerSecond(message.Number("bandwidth", kLeastSetRate, kMostSetRate));
  }
  if (has("rtt")) conditions.rtt = Seconds(message.Number("rtt", 0, kLongestSetRtt));
  if (has("loss")) conditions.loss = message.Number("loss", 0, kMostSetLoss);
  return conditions;
}

std::vector<UndoableCommand> ShapingCommands(const std::string& interface, int mtu,
                                             const Conditions& conditions,
                                             const std::string& receiver) {
  std::vector<UndoableCommand> commands;
  const std::string add = "tc qdisc add dev " + interface;
  std::string undo = "tc qdisc del dev " + interface + " root";
  std::string place = "root";
  if (conditions.bandwidth) {
    commands.push_back(
        {fmt::format("{} root handle {} {}", add, kRateHandle, RateLimit(conditions, mtu, kLateS)),
         std::exchange(undo, "")});
    place = std::string("parent ") + kRateHandle + "1";
  }
  if (conditions.bandwidth && !receiver.empty()) {
    commands.push_back(
        {"ip link add name " + receiver + " type ifb", "ip link del dev " + receiver});
    commands.push_back({"ip link set dev " + receiver + " up", ""});
    commands.push_back({fmt::format("tc qdisc add dev {} root handle {} {}", receiver,
                                    kReceiveHandle, RateLimit(conditions, mtu, kLateInS)),
                        ""});
    commands.push_back(
        {add + " handle ffff: ingress", "tc qdisc del dev " + interface + " ingress"});
    commands.push_back({Redirection(interface, receiver), ""});
  }
  if (conditions.needs_netem()) {
    const double delay_s = conditions.delays() ? conditions.rtt->si() / 2 : 0;
    // What is under way waits there too, as packets that are no smaller than full ones on average;
    // a rate that is not known is that of the fastest line that there is.
    const double rate = conditions.bandwidth ? conditions.bandwidth->si() : kMostSetRate;
    const double under_way = std::min(1e6, std::ceil(rate * delay_s / (mtu + kHeaderBytes)));
    std::string netem = fmt::format("{} {} handle {} netem limit {:.0f}", add, place, kDelayHandle,
                                    kQueuePackets + under_way);
    if (conditions.delays()) netem += fmt::format(" delay {:.0f}us", delay_s * 1e6);
    if (conditions.loses()) netem += fmt::format(" loss {:.6g}%", *conditions.loss * 100);
    commands.push_back({netem, undo});
  }
  return commands;
}

bool IsInterfaceName(const std::string& text) {
  return !text.empty() && text.size() < IFNAMSIZ && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || std::strchr("._-:@", c) != nullptr;
         });
}

std::string Guard::Answer::text() const {
  return lines.empty() ? fmt::format("exit code {}", code)
                       : fmt::format("{}", fmt::join(lines, "; "));
}

Guard::Guard() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    throw NetworkError(std::string("no socket for the guard of tc: ") + std::strerror(errno));
  }
  // A shell reads from what blocks.
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  line_ = LineSocket(network::Socket(pair[0]));
  const int error = script::SpawnApart({"sh", "-c", kGuard, "stepcast-guard"}, {},
                                       {{pair[1], STDIN_FILENO}, {pair[1], STDOUT_FILENO}}, &pid_);
  close(pair[1]);
  if (error == 0) return;
  pid_ = 0;
  throw NetworkError(std::string("cannot run sh: ") + std::strerror(error));
}

Guard::~Guard() {
  line_ = LineSocket();  // which it takes for our end
  int status = 0;
  waitpid(pid_, &status, 0);
  if (!WIFSIGNALED(status)) return;
  // Somebody killed it, of all processes.
  for (const std::string& words : undo_) {
    std::istringstream parts(words);
    pid_t pid = 0;
    if (script::SpawnApart({std::istream_iterator<std::string>(parts), {}}, {}, {}, &pid) == 0) {
      waitpid(pid, nullptr, 0);
    }
  }
}

Guard::Answer Guard::Run(const UndoableCommand& command) {
  if (command.undo.empty()) return Ask("do " + command.words);
  undo_.insert(undo_.begin(), command.undo);
  Answer answer = Ask("do " + command.words + " -- " + command.undo);
  if (answer.code != 0) undo_.erase(undo_.begin());
  return answer;
}

Guard::Answer Guard::RunApart(const std::string& words) { return Ask("apart " + words); }

Guard::Answer Guard::Undo() {
  Answer answer = Ask("undo");
  undo_.clear();
  return answer;
}

Guard::Answer Guard::Ask(const std::string& line) {
  constexpr std::string_view kCode = "code ";
  const Deadline deadline = Deadline::In(kCommandS);
  Answer answer;
  try {
    line_.Send(line, deadline);
    while (true) {
      std::string said = line_.Read(deadline);
      if (said.starts_with(kCode)) {
        std::from_chars(said.data() + kCode.size(), said.data() + said.size(), answer.code);
        return answer;
      }
      if (!said.empty()) answer.lines.push_back(std::move(said));
    }
  } catch (const NetworkError& e) {
    throw NetworkError(std::string("the guard of tc: ") + e.what());
  }
}

Guard* Shaper::guard() {
  if (!guard_) guard_.emplace();
  return &*guard_;
}

std::string Shaper::WhyNot(const Conditions& conditions) {
  if (!IsInterfaceName(interface_) || if_nametoindex(interface_.c_str()) == 0) {
    return fmt::format("there is no interface '{}' here: {}", interface_, Interfaces());
  }
  const auto run = [&](const std::string& words) { return guard()->Run({words, ""}); };
  const auto says = [](const Guard::Answer& answer, const char* part) {
    return answer.text().find(part) != std::string::npos;
  };
  constexpr int kNotFound = 127;  // of a shell
  const Guard::Answer shown = run("tc qdisc show dev " + interface_);
  if (shown.code == kNotFound) return "there is no program tc here (package iproute2)";
  if (shown.code != 0) return "tc cannot show the queue of " + interface_ + ": " + shown.text();
  if (const std::string other = QueueOfOthers(shown.lines); !other.empty()) {
    return fmt::format(
        "{0} has a queue that somebody set up, which would be lost: '{1}'; 'tc qdisc del dev {0} "
        "root' removes it where it is not needed",
        interface_, other);
  }
  // A queue that is not there is looked for by those alone who may change what is.
  if (says(run(fmt::format("tc qdisc del dev {} root handle {}", interface_, kRateHandle)),
           "not permitted")) {
    return fmt::format("tc may not change {}: that needs root, or CAP_NET_ADMIN", interface_);
  }
  // What the kernel knows is tried where nobody is: in a network of its own.
  const auto knows = [&](const std::string& kind) {
    const Guard::Answer tried = guard()->RunApart("tc qdisc add dev lo root " + kind);
    // Where there can be none tc will tell.
    return tried.code == 0 || says(tried, "unshare:") ||
           !(says(tried, "kind is unknown") || says(tried, "No such file or directory"));
  };
  if (conditions.bandwidth && !knows("tbf rate 8mbit burst 10000 limit 10000")) {
    return "this kernel has no tbf (module sch_tbf), which sets a bandwidth";
  }
  if (conditions.needs_netem() && !knows("netem limit 10")) {
    return "this kernel has no netem (module sch_netem), which delays and loses packets; bandwidth "
           "alone can be set";
  }
  // Somebody else may do something with what comes in.
  const std::string receiver = fmt::format("stepcast{}", if_nametoindex(interface_.c_str()));
  const bool may_receive = conditions.bandwidth && !says(shown, kIncoming) &&
                           IsInterfaceName(receiver) && if_nametoindex(receiver.c_str()) == 0 &&
                           guard()->RunApart("ip link add name " + receiver +
                                             " type ifb && tc qdisc add dev lo handle ffff: "
                                             "ingress && " +
                                             Redirection("lo", receiver))
                                   .code == 0;
  receiver_ = may_receive ? receiver : "";
  return "";
}

void Shaper::Set(const Conditions& conditions) {
  Guard::Answer answer = guard()->Undo();
  std::string words = "tc qdisc del dev " + interface_ + " root";
  if (answer.code == 0) {
    for (const UndoableCommand& command :
         ShapingCommands(interface_, MtuOf(interface_), conditions, receiver_)) {
      words = command.words;
      answer = guard()->Run(command);
      if (answer.code != 0) break;
    }
  }
  if (answer.code == 0) return;
  const std::string why = fmt::format("{}: {}", words, answer.text());
  guard()->Undo();
  throw NetworkError(why);
}

}  // namespace stepcast::steps
