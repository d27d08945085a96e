// TCP sockets that never wait without end: whatever they do has a deadline and heeds a stop.
#ifndef STEPCAST_MICROBENCH_NETWORK_SOCKET_H_
#define STEPCAST_MICROBENCH_NETWORK_SOCKET_H_

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::network {

using Clock = std::chrono::steady_clock;
inline Clock::duration SecondsToClock(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
inline double ClockToSeconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Why a connection did not do what was asked of it: "10.0.0.2 did not answer in time".
class NetworkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How errors begin that tell no more than that the other end has gone, for a reason of its own.
inline constexpr const char* kClosed = "the connection was closed";
inline constexpr const char* kBroke = "the connection broke";

// When to give up, or who may say so before: `stop` may be null.
struct Deadline {
  Clock::time_point until;
  const std::atomic<bool>* stop = nullptr;

  static Deadline In(double seconds, const std::atomic<bool>* stop = nullptr) {
    return {Clock::now() + SecondsToClock(seconds), stop};
  }
  // The same stop, and the earlier of the two times.
  Deadline AtMost(double seconds) const {
    return {std::min(until, Clock::now() + SecondsToClock(seconds)), stop};
  }
  bool stopped() const { return stop != nullptr && stop->load(); }
  bool over() const { return stopped() || Clock::now() >= until; }
  double left_s() const { return ClockToSeconds(until - Clock::now()); }
};

// A numeric address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  std::string host() const;  // "10.0.0.2"
  int port() const;
  std::string text() const;  // "10.0.0.2:29400", "[::1]:29400"
  Address WithPort(int port) const;
  bool loopback() const;
  bool SameHost(const Address& other) const { return host() == other.host(); }
};

// What `host` and `port` name. Throws NetworkError where nothing knows the name.
std::vector<Address> Resolve(const std::string& host, int port);
// The address of `name`, which is that of an interface of this host, or one of its addresses.
// Throws NetworkError that lists them where there is none such.
Address LocalAddress(const std::string& name);
// The interface that has the address; empty where none has.
std::string InterfaceOf(const Address& address);

// Owns a descriptor, which never blocks.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { Close(); }

  static Socket Listen(const Address& address);
  // From `source`, where it is not null.
  static Socket Connect(const Address& to, const Address* source, const Deadline& deadline);
  // The next connection that waits at a listener; no descriptor where there is none.
  Socket Accept() const;

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  Address local() const;
  Address peer() const;
  void Close();
  // Drops what has not been sent yet.
  void Abort();

  // At most this many bytes a second leave [B/s].
  void Pace(double bytes_per_s) const;

  // Some bytes: 0 where none can be sent, or none has come, right now. Read throws at the end of
  // the stream.
  std::size_t SendSome(std::span<const char> bytes) const;
  std::size_t ReadSome(std::span<char> bytes) const;
  // All of them, by the deadline.
  void Send(std::span<const char> bytes, const Deadline& deadline) const;
  void Read(std::span<char> bytes, const Deadline& deadline) const;
  // Waits for `events` of poll(2), or throws at the deadline.
  void Wait(short events, const Deadline& deadline) const;

 private:
  int fd_ = -1;
};

// Lines over a socket, of at most kLongestLine bytes: nobody makes us keep more.
class LineSocket {
 public:
  static constexpr std::size_t kLongestLine = 4096;

  LineSocket() = default;
  explicit LineSocket(Socket socket) : socket_(std::move(socket)) {}

  const Socket& socket() const { return socket_; }
  Socket Release() { return std::move(socket_); }
  void Send(const std::string& line, const Deadline& deadline) const;
  std::string Read(const Deadline& deadline);
  // The next line, where it is there.
  std::optional<std::string> TryRead();

 private:
  Socket socket_;
  std::string read_;  // behind the last line
};

}  // namespace stepcast::network

#endif  // STEPCAST_MICROBENCH_NETWORK_SOCKET_H_
