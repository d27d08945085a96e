#include "microbench/network/traffic.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <vector>

#include "microbench/network/tcp_info.h"

namespace stepcast::network {
namespace {

constexpr std::size_t kPingBytes = 64;
constexpr std::size_t kFewestPings = 10;
constexpr std::size_t kMostPings = 2000;
constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kMostChunks = 16;  // that are read at a time
constexpr double kToEndS = 2;
// A loop that transfers comes round at least this often, where its host lets it.
constexpr double kRoundS = 0.05;
constexpr double kMostAwayS = 0.2;
constexpr char kDone[] = {'.'};

// How long a loop did not come round when it should have: other programs had the processors. What
// moved meanwhile tells of them, and not of the network.
class Presence {
 public:
  void Round() {
    const Clock::time_point now = Clock::now();
    const double away = ClockToSeconds(now - last_);
    if (away > 2 * kRoundS) away_s_ += away;
    last_ = now;
  }
  void Check() const {
    if (away_s_ < kMostAwayS) return;
    throw NetworkError(
        fmt::format("the host was too busy: its program got no processor for {:.1f} s", away_s_));
  }

 private:
  Clock::time_point last_ = Clock::now();
  double away_s_ = 0;
};

// Waits for a round at most.
void WaitARound(const Socket& socket, short events, const Deadline& deadline) {
  try {
    socket.Wait(events, deadline.AtMost(kRoundS));
  } catch (const NetworkError&) {
    if (deadline.over()) throw;
  }
}

}  // namespace

RoundTrips Ping(const Socket& socket, double seconds, const Deadline& deadline) {
  char message[kPingBytes] = {};
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + SecondsToClock(seconds);
  Clock::time_point start = Clock::now();
  while ((start < end || times.size() < kFewestPings) && times.size() < kMostPings) {
    socket.Send(message, deadline);
    socket.Read(message, deadline);
    const Clock::time_point now = Clock::now();
    times.push_back(ClockToSeconds(now - start));
    start = now;
  }
  // The first waits for whatever is cold.
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() / 10]};
}

void Echo(const Socket& socket, const Deadline& deadline) {
  char message[kPingBytes];
  while (true) {
    socket.Wait(POLLIN, deadline);
    std::size_t n = 0;
    try {
      n = socket.ReadSome(message);
    } catch (const NetworkError&) {
      return;  // the other end has enough
    }
    socket.Send({message, n}, deadline);
  }
}

double Receive(const Socket& socket, Clock::time_point start, double seconds,
               const Deadline& deadline) {
  std::vector<char> chunk(kChunk);
  const auto read_what_came = [&] {
    for (std::size_t i = 0; i < kMostChunks && socket.ReadSome(chunk) > 0; ++i) {
    }
  };
  // The kernel counts, so that a program that wakes late does not move the moments. Segments are
  // counted and not bytes: those come in order, and at once where a lost packet was waited for.
  struct Moment {
    Clock::time_point at;
    Arrived arrived;
  };
  const auto moment = [&] { return Moment{Clock::now(), ReadArrived(socket)}; };
  Presence presence;
  const auto read_until = [&](Clock::time_point end) {
    const Deadline until{std::min(end, deadline.until), deadline.stop};
    while (!until.over()) {
      presence.Round();
      read_what_came();
      try {
        WaitARound(socket, POLLIN, until);
      } catch (const NetworkError&) {
        if (deadline.over()) throw;
      }
    }
    if (deadline.stopped()) throw NetworkError("interrupted");
    presence.Round();
    return moment();
  };

  socket.Wait(POLLIN, deadline);
  const Moment first = read_until(std::max(start, Clock::now()));
  const Moment last = read_until(first.at + SecondsToClock(seconds));
  presence.Check();
  // The mean payload is that of all so far; what waits at a moment would make it too small.
  const double payload =
      std::min(last.arrived.largest, std::max(first.arrived.payload(), last.arrived.payload()));
  const double bytes = (last.arrived.segments - first.arrived.segments) * payload;
  socket.Send(kDone, deadline);
  // To close now, with bytes on their way, would break the connection before the sender reads it.
  const Deadline gone = deadline.AtMost(kToEndS);
  try {
    while (!gone.over()) {
      if (socket.ReadSome(chunk) == 0) socket.Wait(POLLIN, gone);
    }
  } catch (const NetworkError&) {
    // The sender has closed.
  }
  return bytes / ClockToSeconds(last.at - first.at);
}

TcpFacts SendUntilDone(Socket* socket, const Deadline& deadline) {
  const std::vector<char> chunk(kChunk);
  char answer[sizeof kDone];
  Presence presence;
  while (true) {
    presence.Round();
    if (socket->ReadSome(answer) > 0) break;
    if (socket->SendSome(chunk) == 0) WaitARound(*socket, POLLIN | POLLOUT, deadline);
    if (deadline.over()) throw NetworkError("the receiver did not end in time");
  }
  presence.Check();
  const TcpFacts facts = ReadTcpInfo(*socket);
  socket->Abort();
  return facts;
}

}  // namespace stepcast::network
