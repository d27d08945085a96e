// A client of HTTP/1.1 on this machine: one connection, its bytes in the hands of the test.
#ifndef STEPCAST_TESTS_SERVE_HTTP_CLIENT_H_
#define STEPCAST_TESTS_SERVE_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace stepcast {

struct HttpResponse {
  int status = 0;    // 0: none came
  std::string head;  // status line and fields, in lower case
  std::string body;

  // The value of a field, given in lower case; empty where it is not there.
  std::string Field(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

class HttpClient {
 public:
  static constexpr int kPatienceMilliseconds = 30'000;

  // `receive_buffer`, in bytes: 0 is the system's choice.
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address),  // NOLINT
                           sizeof address) == 0;
  }
  HttpClient(HttpClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        received_(std::move(other.received_)) {}
  HttpClient& operator=(HttpClient&&) = delete;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool connected() const { return connected_; }

  // False where the server has closed the connection.
  bool Send(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  // The next response; status 0 where the connection ends before one does.
  HttpResponse Receive(bool has_body = true) {
    HttpResponse response;
    std::size_t end = 0;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return {};
    }
    response.head = received_.substr(0, end + 2);
    std::transform(response.head.begin(), response.head.end(), response.head.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    received_.erase(0, end + 4);
    const std::size_t length = std::strtoul(response.Field("content-length").c_str(), nullptr, 10);
    if (has_body) {
      received_.reserve(length);
      while (received_.size() < length) {
        if (!More()) return {};
      }
      response.body = received_.substr(0, length);
      received_.erase(0, length);
    }
    const std::size_t space = response.head.find(' ');
    response.status = std::atoi(response.head.c_str() + space + 1);
    return response;
  }

  // Whether the server closes the connection within the time, while nothing more is sent.
  bool IsClosed(int milliseconds = kPatienceMilliseconds) {
    pollfd wait{socket_, POLLIN, 0};
    char byte = 0;
    return ::poll(&wait, 1, milliseconds) == 1 && ::recv(socket_, &byte, 1, MSG_PEEK) <= 0;
  }

  static std::string Message(const std::string& method, const std::string& path,
                             const std::string& body = "",
                             const std::string& type = "application/json",
                             const std::string& fields = "") {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields;
    if (!body.empty() || method == "POST") {
      text +=
          "Content-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    }
    return text + "\r\n" + body;
  }
  HttpResponse Post(const std::string& path, const std::string& body,
                    const std::string& type = "application/json") {
    return Send(Message("POST", path, body, type)) ? Receive() : HttpResponse{};
  }
  HttpResponse Get(const std::string& path) {
    return Send(Message("GET", path)) ? Receive() : HttpResponse{};
  }

 private:
  bool More() {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, kPatienceMilliseconds) != 1) return false;
    char buffer[1 << 16];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int socket_;
  bool connected_ = false;
  std::string received_;  // beyond the last response
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SERVE_HTTP_CLIENT_H_
