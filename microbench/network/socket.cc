#include "microbench/network/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

namespace stepcast::network {
namespace {

// A stop is noticed within so long.
constexpr double kNoticeS = 0.05;

[[noreturn]] void Fail(const std::string& what) {
  throw NetworkError(what + ": " + std::strerror(errno));
}

bool IsTransient() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Address FromSockaddr(const sockaddr* address) {
  Address result;
  result.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&result.storage, address, result.length);
  return result;
}

Socket Open(const Address& address) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) Fail("no socket");
  return socket;
}

const sockaddr* Plain(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

// Calls visit(name of the interface, address) for each address of this host.
template <class Visit>
void ForEachLocal(const Visit& visit) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) Fail("the interfaces of this host");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
    visit(std::string(i->ifa_name), FromSockaddr(i->ifa_addr));
  }
}

void SendWithoutDelay(const Socket& socket) {
  const int yes = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1] = "";
  if (length > 0) {
    getnameinfo(Plain(*this), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  }
  return text;
}

int Address::port() const {
  // Addresses of IPv4 and IPv6 have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string Address::text() const {
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                                       : fmt::format("{}:{}", host(), port());
}

Address Address::WithPort(int port) const {
  Address address = *this;
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port =
      htons(static_cast<std::uint16_t>(port));
  return address;
}

bool Address::loopback() const {
  const std::string name = host();
  return name.starts_with("127.") || name == "::1";
}

std::vector<Address> Resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    throw NetworkError(fmt::format("{} has no address: {}", host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
    addresses.push_back(FromSockaddr(i->ai_addr).WithPort(port));
  }
  if (addresses.empty()) throw NetworkError(host + " has no address");
  return addresses;
}

Address LocalAddress(const std::string& name) {
  std::vector<Address> found;
  std::set<std::string> known;
  ForEachLocal([&](const std::string& interface, const Address& address) {
    known.insert(interface);
    known.insert(address.host());
    if (name == interface || name == address.host()) found.push_back(address);
  });
  // An interface's IPv4 address goes before its others.
  std::stable_sort(found.begin(), found.end(), [](const Address& a, const Address& b) {
    return a.storage.ss_family == AF_INET && b.storage.ss_family != AF_INET;
  });
  if (!found.empty()) return found.front().WithPort(0);
  throw NetworkError(fmt::format("{} is no interface or address of this host, which has {}", name,
                                 fmt::join(known, ", ")));
}

std::string InterfaceOf(const Address& address) {
  std::string name;
  ForEachLocal([&](const std::string& interface, const Address& own) {
    if (own.SameHost(address)) name = interface;
  });
  return name;
}

void Socket::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void Socket::Abort() {
  if (fd_ < 0) return;
  const linger none{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  Close();
}

void Socket::Pace(double bytes_per_s) const {
  const auto rate = static_cast<std::uint64_t>(bytes_per_s);
  if (setsockopt(fd_, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate) != 0) Fail("pacing");
}

Socket Socket::Listen(const Address& address) {
  Socket socket = Open(address);
  const int yes = 1;
  setsockopt(socket.fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket.fd_, Plain(address), address.length) != 0 || listen(socket.fd_, SOMAXCONN) != 0) {
    const std::string advice = errno == EADDRINUSE
                                   ? " (another program listens there: choose another port)"
                               : errno == EADDRNOTAVAIL ? " (this host does not have that address)"
                                                        : "";
    Fail("cannot listen at " + address.text() + advice);
  }
  return socket;
}

Socket Socket::Connect(const Address& to, const Address* source, const Deadline& deadline) {
  Socket socket = Open(to);
  if (source != nullptr && source->storage.ss_family == to.storage.ss_family &&
      bind(socket.fd_, Plain(*source), source->length) != 0) {
    Fail("cannot send from " + source->host());
  }
  if (connect(socket.fd_, Plain(to), to.length) != 0) {
    if (errno != EINPROGRESS) Fail("cannot reach " + to.text());
    try {
      socket.Wait(POLLOUT, deadline);
    } catch (const NetworkError&) {
      throw NetworkError(to.text() + " did not answer in time");
    }
    socklen_t length = sizeof errno;
    int error = 0;
    getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &error, &length);
    errno = error;
    if (error != 0) Fail("cannot reach " + to.text());
  }
  SendWithoutDelay(socket);
  return socket;
}

Socket Socket::Accept() const {
  Socket socket(accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) SendWithoutDelay(socket);
  return socket;
}

Address Socket::local() const {
  Address address;
  address.length = sizeof address.storage;
  getsockname(fd_, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

Address Socket::peer() const {
  Address address;
  address.length = sizeof address.storage;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    address.length = 0;
  }
  return address;
}

std::size_t Socket::SendSome(std::span<const char> bytes) const {
  const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n >= 0) return static_cast<std::size_t>(n);
  if (!IsTransient()) Fail(kBroke);
  return 0;
}

std::size_t Socket::ReadSome(std::span<char> bytes) const {
  const ssize_t n = recv(fd_, bytes.data(), bytes.size(), 0);
  if (n > 0) return static_cast<std::size_t>(n);
  if (n == 0) throw NetworkError(kClosed);
  if (!IsTransient()) Fail(kBroke);
  return 0;
}

void Socket::Wait(short events, const Deadline& deadline) const {
  while (true) {
    if (deadline.stopped()) throw NetworkError("interrupted");
    const double left = deadline.left_s();
    if (left <= 0) throw NetworkError("no answer in time");
    pollfd poll_one{fd_, events, 0};
    const timespec wait{0, static_cast<long>(std::min(left, kNoticeS) * 1e9)};
    const int ready = ppoll(&poll_one, 1, &wait, nullptr);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) Fail("waiting");
  }
}

void Socket::Send(std::span<const char> bytes, const Deadline& deadline) const {
  while (!bytes.empty()) {
    const std::size_t sent = SendSome(bytes);
    if (sent == 0) Wait(POLLOUT, deadline);
    bytes = bytes.subspan(sent);
  }
}

void Socket::Read(std::span<char> bytes, const Deadline& deadline) const {
  while (!bytes.empty()) {
    const std::size_t read = ReadSome(bytes);
    if (read == 0) Wait(POLLIN, deadline);
    bytes = bytes.subspan(read);
  }
}

void LineSocket::Send(const std::string& line, const Deadline& deadline) const {
  socket_.Send(line + "\n", deadline);
}

std::string LineSocket::Read(const Deadline& deadline) {
  while (true) {
    if (std::optional<std::string> line = TryRead()) return std::move(*line);
    socket_.Wait(POLLIN, deadline);
  }
}

std::optional<std::string> LineSocket::TryRead() {
  while (true) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (read_.size() >= kLongestLine) throw NetworkError("sent a line without an end");
    char some[kLongestLine];
    const std::size_t n = socket_.ReadSome({some, kLongestLine - read_.size()});
    if (n == 0) return std::nullopt;
    read_.append(some, n);
  }
}

}  // namespace stepcast::network
