// HTTP/1.1 over TCP for the api, without encryption and authentication.
//
// A connection costs a descriptor and some kilobytes, whatever its client does: few threads serve
// all. What each part of an exchange may take is bounded in bytes and, as a whole, in time: a
// client that sends a byte now and then gets 408, and closes nobody else's connection. What takes
// longer than others should wait for is answered by a pool of threads of lower priority; bodies of
// more than kLargeBody are held for so many requests at once, and others get 503 meanwhile. When
// all connections are in use, the one idle longest is closed for a new one.
#ifndef STEPCAST_PREDICTOR_SERVE_HTTP_SERVER_H_
#define STEPCAST_PREDICTOR_SERVE_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "predictor/serve/address.h"
#include "predictor/serve/api.h"
#include "predictor/serve/metrics.h"
#include "predictor/serve/work_pool.h"

namespace stepcast::serve {

inline constexpr std::size_t kLargeBody = 64 << 10;  // [B]

struct HttpOptions {
  Address address;
  int threads = 2;
  std::uint64_t most_body = std::uint64_t{64} << 20;  // [B]
  std::size_t most_header = 16 << 10;                 // [B]
  std::size_t most_connections = 1000;
  int most_large = 4;                                 // requests with large bodies at once
  std::chrono::milliseconds idle_timeout{60'000};     // between requests
  std::chrono::milliseconds header_timeout{5'000};    // from a request's first byte
  std::chrono::milliseconds transfer_timeout{5'000};  // of a body or an answer, and
  double least_bytes_per_s = 8 << 20;                 // longer by its length at this rate
};

class HttpServer {
 public:
  // Listens and serves from now on. All that is referred to outlives the server. Throws InputError
  // where the address cannot be listened on.
  HttpServer(Api* api, Metrics* metrics, WorkPool* pool, const HttpOptions& options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // As Stop(0); and stops the pool, whose jobs are its connections.
  ~HttpServer();

  std::uint16_t port() const;

  // Takes no new connections, answers requests that have begun, and returns when all are answered
  // or after `patience`; then true where nothing was cut off.
  bool Stop(std::chrono::milliseconds patience);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_HTTP_SERVER_H_
