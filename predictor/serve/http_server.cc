#include "predictor/serve/http_server.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "data/record/input_error.h"

namespace stepcast::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadSize = 4096;
constexpr auto kSweepInterval = std::chrono::milliseconds(100);
// A closed connection may still receive so much and so long: a sending client gets to see why.
constexpr std::size_t kMostLingering = 1 << 20;
constexpr auto kLingerTimeout = std::chrono::milliseconds(1000);

// Whether a line of the header goes on the line before it, which RFC 9112 (5.2) has servers refuse:
// who reads the two apart sees another request.
bool HasFoldedLine(std::string_view text) {
  const std::string_view header = text.substr(0, text.find("\r\n\r\n"));
  return header.find("\r\n ") != std::string_view::npos ||
         header.find("\r\n\t") != std::string_view::npos;
}

class Connection;

// All open connections: those that wait for a request, the longest first, and the busy ones.
class Connections {
 public:
  struct Entry {
    std::weak_ptr<Connection> connection;
    bool closing = false;  // for another
  };
  using List = std::list<Entry>;

  List::iterator Add(const std::weak_ptr<Connection>& connection) {
    const std::lock_guard lock(mutex_);
    return busy_.insert(busy_.end(), {connection});
  }
  void Remove(List::iterator place, bool waiting) {
    const std::lock_guard lock(mutex_);
    (waiting ? waiting_ : busy_).erase(place);
    if (waiting_.empty() && busy_.empty()) empty_.notify_all();
  }
  void SetWaiting(List::iterator place, bool waiting) {
    const std::lock_guard lock(mutex_);
    List& to = waiting ? waiting_ : busy_;
    to.splice(to.end(), waiting ? busy_ : waiting_, place);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size() + busy_.size();
  }
  // The one that has waited longest and is to be closed: each is returned once.
  std::shared_ptr<Connection> TakeLongestWaiting() {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : waiting_) {
      if (!std::exchange(entry.closing, true)) return entry.connection.lock();
    }
    return nullptr;
  }
  List All() const {
    const std::lock_guard lock(mutex_);
    List all = waiting_;
    all.insert(all.end(), busy_.begin(), busy_.end());
    return all;
  }
  bool WaitUntilEmpty(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, patience, [&] { return waiting_.empty() && busy_.empty(); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  List waiting_;
  List busy_;
};

// Shared by all connections.
struct Shared {
  Api& api;
  Metrics& metrics;
  WorkPool& pool;
  const HttpOptions options;
  Connections connections;
  std::atomic<bool> stopping{false};
  std::atomic<int> large{0};
};

// One client's connection: its requests one after the other. All members but `deadline_` are used
// on the socket's strand, or by the pool while it answers.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared* shared) : socket_(std::move(socket)), shared_(*shared) {
    ++shared_.metrics.connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    EndRequest();
    --shared_.metrics.connections;
    shared_.connections.Remove(place_, waiting_);
  }

  // Once, by who made it.
  void Start() {
    place_ = shared_.connections.Add(weak_from_this());
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->WaitForRequest(); });
  }
  // Closes it where it waits for a request of which nothing has come, or not all of its header.
  void CloseWaiting(bool even_begun) {
    asio::post(socket_.get_executor(), [self = shared_from_this(), even_begun] {
      if (self->waiting_ && (even_begun || self->buffer_.size() == 0)) self->Close();
    });
  }
  // Stops what takes too long.
  void CheckDeadline(Clock::time_point now) {
    if (deadline_.load() > now.time_since_epoch().count()) return;
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->deadline_.load() > Clock::now().time_since_epoch().count()) return;
      // It stays, for the next look: what has just ended cannot be cancelled, and goes on.
      self->timed_out_ = true;
      error_code ignored;
      self->socket_.cancel(ignored);
    });
  }
  void Close() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  // Runs a member function when an operation ends, and keeps the connection until then.
  template <class Member>
  auto Then(Member member) {
    return [self = shared_from_this(), member](error_code error, std::size_t count) {
      ((*self).*member)(error, count);
    };
  }

  void SetDeadline(Clock::duration from_now) {
    deadline_ = from_now == Clock::duration::max()
                    ? Clock::time_point::max().time_since_epoch().count()
                    : (Clock::now() + from_now).time_since_epoch().count();
  }
  // For so many bytes.
  void SetTransferDeadline(double bytes) {
    SetDeadline(shared_.options.transfer_timeout +
                std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(bytes / shared_.options.least_bytes_per_s)));
  }
  void SetWaiting(bool waiting) {
    waiting_ = waiting;
    shared_.connections.SetWaiting(place_, waiting);
  }

  void WaitForRequest() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.most_header));
    // Checked where it is known what is asked.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    refusal_.reset();
    reply_ = {};
    if (buffer_.size() == 0 && shared_.stopping) return Close();
    SetWaiting(true);
    if (buffer_.size() > 0) return ReadHeader();
    if (buffer_.capacity() > 2 * kReadSize) buffer_.shrink_to_fit();
    SetDeadline(shared_.options.idle_timeout);
    socket_.async_read_some(buffer_.prepare(kReadSize), Then(&Connection::OnFirstBytes));
  }

  void OnFirstBytes(error_code error, std::size_t count) {
    if (error) return Close();
    buffer_.commit(count);
    ReadHeader();
  }

  void ReadHeader() {
    SetDeadline(shared_.options.header_timeout);
    ParseHeader();
  }

  // The parser takes nothing before the whole header is there, so that it can be looked at here.
  void ParseHeader() {
    error_code error;
    if (buffer_.size() > 0) {
      const auto bytes = buffer_.cdata();
      if (HasFoldedLine({static_cast<const char*>(bytes.data()), bytes.size()})) {
        return OnHeader(http::error::bad_obs_fold, 0);
      }
      buffer_.consume(parser_->put(bytes, error));
      if (parser_->is_header_done()) return OnHeader({}, 0);
      if (error && error != http::error::need_more) return OnHeader(error, 0);
    }
    socket_.async_read_some(buffer_.prepare(kReadSize), Then(&Connection::OnMoreHeader));
  }

  void OnMoreHeader(error_code error, std::size_t count) {
    if (error == asio::error::eof) {
      error = parser_->got_some() ? http::error::partial_message : http::error::end_of_stream;
    }
    if (error) return OnHeader(error, 0);
    buffer_.commit(count);
    ParseHeader();
  }

  void OnHeader(error_code error, std::size_t /*count*/) {
    if (!socket_.is_open()) return;  // closed for another
    SetWaiting(false);
    ++shared_.metrics.in_flight;
    begun_ = true;
    read_ = Clock::now();
    endpoint_ = nullptr;
    keep_alive_ = false;
    is_head_ = false;
    if (timed_out_) return Refuse(408, "header: did not arrive in time");
    if (error == http::error::header_limit) {
      return Refuse(431, fmt::format("header: is too long; allowed: at most {} bytes",
                                     shared_.options.most_header));
    }
    const bool malformed = error.category() == http::make_error_code({}).category() &&
                           error != http::error::end_of_stream &&
                           error != http::error::partial_message;
    if (malformed) return Refuse(400, "header: is not HTTP: " + error.message());
    if (error) return EndAndClose();

    const auto& header = parser_->get();
    keep_alive_ = header.keep_alive();
    is_head_ = header.method() == http::verb::head;
    const std::uint64_t length = parser_->content_length().value_or(0);
    if (header.count(http::field::transfer_encoding) > 0) {
      return Refuse(411, "Transfer-Encoding: is not read; allowed: a body with its Content-Length");
    }
    if (length > shared_.options.most_body) {
      return Refuse(413, fmt::format("body: {} bytes are too many; allowed: at most {}", length,
                                     shared_.options.most_body));
    }
    Reply refusal;
    endpoint_ = Api::Find(RequestAsRead(), &refusal);
    if (endpoint_ == nullptr) refusal_ = std::move(refusal);
    if (length > kLargeBody) {
      if (refusal_) return Refuse(std::move(*refusal_));
      if (++shared_.large > shared_.options.most_large) {
        --shared_.large;
        return RefuseForNow("too many large requests are being answered");
      }
      large_ = true;
    }
    ReadBody(length);
  }

  void ReadBody(std::uint64_t length) {
    SetTransferDeadline(static_cast<double>(length));
    const auto expect = parser_->get().find(http::field::expect);
    if (expect != parser_->get().end() && !boost::beast::iequals(expect->value(), "100-continue")) {
      return Refuse(417, "Expect: is not met; allowed: 100-continue");
    }
    if (length > 0 && expect != parser_->get().end()) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      return asio::async_write(socket_, asio::buffer(kContinue), Then(&Connection::OnContinueSent));
    }
    if (length == 0) return OnBody({}, 0);
    http::async_read(socket_, buffer_, *parser_, Then(&Connection::OnBody));
  }

  void OnContinueSent(error_code error, std::size_t /*count*/) {
    if (error) return EndAndClose();
    http::async_read(socket_, buffer_, *parser_, Then(&Connection::OnBody));
  }

  void OnBody(error_code error, std::size_t /*count*/) {
    read_ = Clock::now();
    if (timed_out_) return Refuse(408, "body: did not arrive in time");
    if (error) return EndAndClose();
    SetDeadline(Clock::duration::max());
    if (refusal_) {
      reply_ = std::move(*refusal_);
      return Send();
    }
    if (!endpoint_->slow && !large_) {
      reply_ = shared_.api.Answer(*endpoint_, RequestAsRead());
      return Send();
    }
    const bool posted = shared_.pool.Post([self = shared_from_this()] {
      self->reply_ = self->shared_.api.Answer(*self->endpoint_, self->RequestAsRead());
      auto executor = self->socket_.get_executor();
      asio::post(executor, [self] { self->Send(); });
    });
    if (!posted) {
      reply_ = Api::ProblemForNow(503, "too many requests wait for an answer");
      Send();
    }
  }

  Request RequestAsRead() const {
    const auto view = [](boost::beast::string_view text) {
      return std::string_view(text.data(), text.size());
    };
    const auto& message = parser_->get();
    return {view(message.method_string()), view(message.target()),
            view(message[http::field::content_type]), message.body()};
  }

  // Answers before the body is read, which is then left, and so the connection ends.
  void Refuse(Reply reply) {
    keep_alive_ = false;
    unread_ = true;
    reply_ = std::move(reply);
    Send();
  }
  void Refuse(int status, const std::string& sentence) { Refuse(Api::Problem(status, sentence)); }
  void RefuseForNow(const std::string& sentence) { Refuse(Api::ProblemForNow(503, sentence)); }

  void Send() {
    if (timed_out_) ++shared_.metrics.timeouts;
    timed_out_ = false;
    if (shared_.stopping) keep_alive_ = false;
    shared_.metrics.Answered(endpoint_ == nullptr ? "other" : endpoint_->path,
                             std::to_string(reply_.status),
                             std::chrono::duration<double>(Clock::now() - read_).count());
    head_ =
        fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", reply_.status,
                    StatusText(reply_.status), reply_.content_type, reply_.body.size());
    if (reply_.snapshot > 0) head_ += fmt::format("Stepcast-Snapshot: {}\r\n", reply_.snapshot);
    if (reply_.allow != nullptr) head_ += fmt::format("Allow: {}\r\n", reply_.allow);
    if (reply_.retry_later) head_ += "Retry-After: 1\r\n";
    // HTTP/1.0 must be told either way.
    head_ += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    if (is_head_) reply_.body.clear();
    SetTransferDeadline(static_cast<double>(reply_.body.size()));
    asio::async_write(socket_, std::array{asio::buffer(head_), asio::buffer(reply_.body)},
                      Then(&Connection::OnSent));
  }

  void OnSent(error_code error, std::size_t /*count*/) {
    if (timed_out_) ++shared_.metrics.timeouts;
    EndRequest();
    if (error) return Close();
    if (keep_alive_) return WaitForRequest();
    if (!unread_) return Close();
    parser_.reset();
    reply_ = {};
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    SetDeadline(kLingerTimeout);
    buffer_.consume(buffer_.size());
    Linger();
  }

  void Linger() {
    socket_.async_read_some(buffer_.prepare(kReadSize), Then(&Connection::OnLingering));
  }
  void OnLingering(error_code error, std::size_t count) {
    lingered_ += count;
    if (error || lingered_ > kMostLingering) return Close();
    Linger();
  }

  void EndRequest() {
    if (std::exchange(begun_, false)) --shared_.metrics.in_flight;
    if (std::exchange(large_, false)) --shared_.large;
  }
  void EndAndClose() {
    if (timed_out_) ++shared_.metrics.timeouts;
    EndRequest();
    Close();
  }

  tcp::socket socket_;
  Shared& shared_;
  Connections::List::iterator place_;
  std::atomic<Clock::rep> deadline_{Clock::time_point::max().time_since_epoch().count()};
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  const Endpoint* endpoint_ = nullptr;
  std::optional<Reply> refusal_;  // sent once the body has been read
  Reply reply_;
  std::string head_;  // of the answer
  Clock::time_point read_;
  std::size_t lingered_ = 0;
  bool waiting_ = false;  // for a request, up to the end of its header
  bool begun_ = false;    // a request counts as in flight
  bool large_ = false;    // it counts as large
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool timed_out_ = false;
  bool unread_ = false;  // the client may still be sending
};

}  // namespace

struct HttpServer::State {
  State(Api* api, Metrics* metrics, WorkPool* pool, const HttpOptions& options)
      : shared{*api, *metrics, *pool, options, {}, {}, {}} {
    const tcp::endpoint endpoint(asio::ip::make_address(options.address.host),
                                 options.address.port);
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
    port = acceptor.local_endpoint().port();
    Accept();
    Sweep();
    for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { Run(); });
  }

  // An exception of a handler, for want of memory say, ends its own connection, which it held.
  void Run() {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception&) {
        ++shared.metrics.failures;
      }
    }
  }

  void Accept() {
    acceptor.async_accept(asio::make_strand(io), [this](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (error) {
        // No descriptors are left, say: those that are open go on.
        CloseForAnother();
        again.expires_after(kSweepInterval);
        return again.async_wait([this](error_code /*error*/) { Accept(); });
      }
      Admit(std::move(socket));
      Accept();
    });
  }

  // Closes the connection that has waited longest; false where none waits.
  bool CloseForAnother() {
    const std::shared_ptr<Connection> longest = shared.connections.TakeLongestWaiting();
    if (longest == nullptr) return false;
    ++shared.metrics.closed_for_others;
    longest->CloseWaiting(true);
    return true;
  }

  void Admit(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (shared.connections.size() >= shared.options.most_connections) {
      if (!CloseForAnother()) {
        ++shared.metrics.refused_connections;
        static constexpr std::string_view kRefusal =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
            "Connection: close\r\n\r\n";
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(kRefusal), ignored);
        return;
      }
    }
    std::make_shared<Connection>(std::move(socket), &shared)->Start();
  }

  // Looks for what takes too long. One look at all is cheaper than a timer for each.
  void Sweep() {
    sweep.expires_after(kSweepInterval);
    sweep.async_wait([this](error_code error) {
      if (error) return;
      const Clock::time_point now = Clock::now();
      for (const Connections::Entry& entry : shared.connections.All()) {
        if (const std::shared_ptr<Connection> connection = entry.connection.lock()) {
          connection->CheckDeadline(now);
        }
      }
      Sweep();
    });
  }

  Shared shared;
  asio::io_context io;
  asio::strand<asio::io_context::executor_type> strand{io.get_executor()};  // of what follows
  tcp::acceptor acceptor{strand};
  asio::steady_timer again{strand};
  asio::steady_timer sweep{strand};
  std::vector<std::thread> threads;
  std::uint16_t port = 0;
};

HttpServer::HttpServer(Api* api, Metrics* metrics, WorkPool* pool, const HttpOptions& options) {
  try {
    state_ = std::make_unique<State>(api, metrics, pool, options);
  } catch (const boost::system::system_error& e) {
    throw InputError({"", 0, "--listen"}, options.address.text(),
                     "cannot be listened on: " + e.code().message(),
                     "an address of this machine and a port that is free");
  }
}

HttpServer::~HttpServer() {
  Stop(std::chrono::milliseconds(0));
  state_->shared.pool.Stop();  // its jobs hold connections
}

std::uint16_t HttpServer::port() const { return state_->port; }

bool HttpServer::Stop(std::chrono::milliseconds patience) {
  State& state = *state_;
  if (state.threads.empty()) return true;
  state.shared.stopping = true;
  asio::post(state.strand, [&state] {
    error_code ignored;
    state.acceptor.close(ignored);
    // A connection that was accepted before is seen here, or finds out by itself.
    for (const Connections::Entry& entry : state.shared.connections.All()) {
      if (const std::shared_ptr<Connection> connection = entry.connection.lock()) {
        connection->CloseWaiting(false);
      }
    }
  });
  const bool all_answered = state.shared.connections.WaitUntilEmpty(patience);
  state.io.stop();
  for (std::thread& thread : state.threads) thread.join();
  state.threads.clear();
  return all_answered;
}

}  // namespace stepcast::serve
