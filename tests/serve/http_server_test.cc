// HTTP over sockets of this machine: what clients may do, and what they may not do to each other.
#include "predictor/serve/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/serve/http_client.h"
#include "tests/serve/support.h"
#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kGood =
    R"({"cluster":"gce-t4","workload":"resnet50","workers":8,"local_batch":32})";

// A service that listens on a port of its own.
struct Running : TestService {
  explicit Running(const HttpOptions& options = {}, Service::Read read = ShippedInventory)
      : TestService(std::move(read)),
        server(std::make_unique<HttpServer>(&api, &metrics, &pool, options)) {}

  std::uint16_t port() const { return server->port(); }
  void WaitUntilInFlight(int requests) const {
    const Clock::time_point begun = Clock::now();
    while (metrics.in_flight != requests && Clock::now() - begun < std::chrono::seconds(10)) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_EQ(metrics.in_flight, requests);
  }
  // Whether all connections end, within ten seconds.
  bool IsDeserted() const {
    const Clock::time_point begun = Clock::now();
    while (metrics.connections > 0 && Clock::now() - begun < std::chrono::seconds(10)) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    return metrics.connections == 0;
  }

  WorkPool pool{2, 64};
  std::unique_ptr<HttpServer> server;
};

HttpOptions Impatient() {
  HttpOptions options;
  options.idle_timeout = milliseconds(300);
  options.header_timeout = milliseconds(300);
  options.transfer_timeout = milliseconds(300);
  return options;
}

// ---- Exchanges.

TEST(HttpServer, AnswersOnOneConnection) {
  Running running;
  HttpClient client(running.port());
  for (int i = 0; i < 3; ++i) {
    const HttpResponse response = client.Post("/v1/predict", kGood);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.Field("content-type"), "application/json");
    EXPECT_EQ(response.Field("stepcast-snapshot"), "1");
    EXPECT_EQ(response.body, running.Post("/v1/predict", kGood).body);
  }
  EXPECT_EQ(client.Get("/nothing").status, 404);
  EXPECT_EQ(client.Get("/v1/predict").Field("allow"), "post") << "fields are in lower case";
  EXPECT_EQ(client.Post("/v1/predict", "{").status, 400) << "and the connection goes on";
  EXPECT_EQ(client.Post("/v1/recommend", "{}").status, 422);
  EXPECT_EQ(client.Get("/readyz").body, "ready\n");
  EXPECT_EQ(running.metrics.connections, 1);
}

TEST(HttpServer, AnswersWhatWasSentAtOnceInOrder) {
  Running running;
  HttpClient client(running.port());
  const std::string ask =
      HttpClient::Message("GET", "/healthz") + HttpClient::Message("POST", "/v1/predict", kGood) +
      HttpClient::Message("GET", "/v1/clusters") + HttpClient::Message("GET", "/readyz");
  ASSERT_TRUE(client.Send(ask));
  EXPECT_EQ(client.Receive().body, "ok\n");
  EXPECT_NE(client.Receive().body.find("step_time_s"), std::string::npos);
  EXPECT_NE(client.Receive().body.find("gce-t4"), std::string::npos);
  EXPECT_EQ(client.Receive().body, "ready\n");
}

TEST(HttpServer, HeadIsGetWithoutItsBody) {
  Running running;
  HttpClient client(running.port());
  ASSERT_TRUE(client.Send(HttpClient::Message("HEAD", "/v1/clusters")));
  const HttpResponse head = client.Receive(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Field("content-length"), std::to_string(running.Get("/v1/clusters").body.size()));
  EXPECT_EQ(client.Get("/healthz").body, "ok\n") << "which is what comes next";
}

TEST(HttpServer, ClosesWhenItIsAskedTo) {
  Running running;
  for (const char* version : {"1.0\r\n", "1.1\r\nConnection: close\r\n"}) {
    HttpClient client(running.port());
    ASSERT_TRUE(client.Send("GET /healthz HTTP/" + std::string(version) + "\r\n"));
    EXPECT_EQ(client.Receive().Field("connection"), "close") << version;
    EXPECT_TRUE(client.IsClosed());
  }
  HttpClient old(running.port());
  ASSERT_TRUE(old.Send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_EQ(old.Receive().Field("connection"), "keep-alive");
  EXPECT_EQ(old.Get("/healthz").status, 200);
}

TEST(HttpServer, LetsGoOnWhoWaitsForIt) {
  Running running;
  HttpClient client(running.port());
  ASSERT_TRUE(
      client.Send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n"
                  "Expect: 100-continue\r\nContent-Length: " +
                  std::to_string(std::string(kGood).size()) + "\r\n\r\n"));
  EXPECT_EQ(client.Receive(false).status, 100);
  ASSERT_TRUE(client.Send(kGood));
  EXPECT_EQ(client.Receive().status, 200);
}

// ---- Requests that cost nothing to others.

TEST(HttpServer, RefusesBeforeItReads) {
  HttpOptions options;
  options.most_body = 100'000;
  Running running(options);
  const std::string post = "POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n";
  const std::string no_http = "header: is not HTTP: ";
  const std::string long_header = "header: is too long; allowed: at most 16384 bytes";
  const struct {
    std::string bytes;
    int status;
    std::string says;
  } cases[] = {
      {post + "Content-Length: 100001\r\n\r\n", 413,
       "body: 100001 bytes are too many; allowed: at most 100000"},
      {post + "Content-Length: 99999999999999\r\n\r\n", 413,
       "body: 99999999999999 bytes are too many"},
      {post + "Transfer-Encoding: chunked\r\n\r\n", 411,
       "Transfer-Encoding: is not read; allowed: a body with its Content-Length"},
      {post + "Expect: 102-processing\r\nContent-Length: 2\r\n\r\n", 417,
       "Expect: is not met; allowed: 100-continue"},
      {"GET /healthz HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", 431, long_header},
      {"GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n", 431, long_header},
      {"nonsense\r\n\r\n", 400, no_http},
      {"GET /healthz\r\n\r\n", 400, no_http},
      {"GET /healthz HTTP/3.7\r\n\r\n", 400, no_http},
      {"GET /healthz HTTP/1.1\r\n: x\r\n\r\n", 400, no_http},
      {"GET /healthz HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400, no_http},
      {"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, no_http},
      {"GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, no_http},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), 400, no_http},
  };
  for (const auto& c : cases) {
    HttpClient client(running.port());
    ASSERT_TRUE(client.Send(c.bytes));
    const HttpResponse response = client.Receive();
    EXPECT_EQ(response.status, c.status) << c.bytes.substr(0, 80) << response.body;
    const TestJson problem = TestJson::parse(response.body, nullptr, false);
    ASSERT_TRUE(problem.is_object()) << response.body;
    EXPECT_EQ(problem["detail"].get<std::string>().rfind(c.says, 0), 0U) << problem;
    EXPECT_EQ(response.Field("content-type"), "application/problem+json");
    EXPECT_EQ(response.Field("connection"), "close");
    EXPECT_TRUE(client.IsClosed());
  }
  EXPECT_EQ(HttpClient(running.port()).Get("/healthz").status, 200);
  // The longest body that is allowed is read, and then is no JSON.
  EXPECT_EQ(HttpClient(running.port()).Post("/v1/predict", std::string(100'000, ' ')).status, 400);
}

// RFC 9112 (5.2): a server refuses a line that goes on on the next, wherever the reads end.
TEST(HttpServer, RefusesFoldedHeaderLines) {
  Running running;
  for (const char* fold : {"\r\n ", "\r\n\t", "\r\n  \t"}) {
    for (const bool at_once : {true, false}) {
      HttpClient client(running.port());
      const std::string ask =
          "GET /healthz HTTP/1.1\r\nX-One: a" + std::string(fold) + "b\r\nHost: h\r\n\r\n";
      if (at_once) {
        ASSERT_TRUE(client.Send(ask));
      } else {
        for (const char c : ask) {
          if (!client.Send(std::string(1, c))) break;
        }
      }
      const HttpResponse reply = client.Receive();
      EXPECT_EQ(reply.status, 400) << reply.body;
      EXPECT_NE(reply.body.find("header: is not HTTP"), std::string::npos) << reply.body;
    }
  }
  // What only looks like one is none: spaces within a line, and in a body.
  HttpClient client(running.port());
  ASSERT_TRUE(client.Send("GET /healthz HTTP/1.1\r\nX-One: a  b\t\r\nHost: h\r\n\r\n"));
  EXPECT_EQ(client.Receive().status, 200);
  ASSERT_TRUE(
      client.Send(HttpClient::Message("POST", "/v1/predict", "\r\n " + std::string(kGood))));
  EXPECT_EQ(client.Receive().status, 200);
}

// A client that is still sending what is refused gets to see why.
TEST(HttpServer, ARefusalReachesWhoIsStillSending) {
  HttpOptions options;
  options.most_body = 200'000;
  Running running(options);
  HttpClient client(running.port());
  client.Send(HttpClient::Message("POST", "/v1/predict", std::string(500'000, ' ')));
  EXPECT_EQ(client.Receive().status, 413);
}

TEST(HttpServer, WhatComesTooSlowlyTimesOut) {
  Running running(Impatient());
  HttpClient header(running.port());
  HttpClient body(running.port());
  HttpClient idle(running.port());
  ASSERT_TRUE(header.Send("GET /healthz HTT"));
  ASSERT_TRUE(
      body.Send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n"
                "Content-Length: 10\r\n\r\n{"));
  const auto late = [](HttpClient* client) {
    const HttpResponse response = client->Receive();
    EXPECT_EQ(response.status, 408);
    return TestJson::parse(response.body)["detail"].get<std::string>();
  };
  EXPECT_EQ(late(&header), "header: did not arrive in time");
  EXPECT_TRUE(header.IsClosed());
  EXPECT_EQ(late(&body), "body: did not arrive in time");
  EXPECT_TRUE(body.IsClosed());
  EXPECT_TRUE(idle.IsClosed()) << "nobody waits for ever";
  EXPECT_EQ(running.metrics.timeouts, 2);
  EXPECT_EQ(running.metrics.in_flight, 0);
}

// A byte now and then does not keep a connection: what counts is the whole.
TEST(HttpServer, TricklingTimesOutAsWell) {
  Running running(Impatient());
  HttpClient client(running.port());
  ASSERT_TRUE(client.Send("GET /healthz HTTP/1.1\r\nX: "));
  const Clock::time_point begun = Clock::now();
  while (!client.IsClosed(50) && Clock::now() - begun < std::chrono::seconds(10)) {
    if (!client.Send("x")) break;
    if (running.metrics.timeouts > 0) break;
  }
  EXPECT_EQ(client.Receive().status, 408);
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(5));
}

// Who does not read his answer does not hold it for ever.
TEST(HttpServer, AnAnswerThatNobodyReadsIsGivenUp) {
  HttpOptions options = Impatient();
  options.least_bytes_per_s = 1e9;
  Running running(options);
  HttpClient client(running.port(), 4096);
  std::string queries = "1";
  for (int i = 1; i < 100'000; ++i) queries += ",1";
  ASSERT_TRUE(client.Send(
      HttpClient::Message("POST", "/v1/predict_batch",
                          R"({"cluster":"gce-t4","workload":"resnet50","plan":{"local_batch":8},)"
                          R"("queries":{"workers":[)" +
                              queries + "]}}")));
  const Clock::time_point begun = Clock::now();
  while (running.metrics.timeouts == 0 && Clock::now() - begun < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(running.metrics.timeouts, 1);
  EXPECT_TRUE(running.IsDeserted());
}

TEST(HttpServer, SlowClientsDoNotStopAFastOne) {
  constexpr int kSlow = 200;
  constexpr int kRequests = 500;
  HttpOptions options;
  options.threads = 2;
  Running running(options);
  std::vector<HttpClient> slow;
  for (int i = 0; i < kSlow; ++i) {
    slow.emplace_back(running.port());
    ASSERT_TRUE(slow.back().Send(i % 2 == 0
                                     ? "GET /healthz HTTP/1.1\r\nX: "
                                     : "POST /v1/predict HTTP/1.1\r\nContent-Type: "
                                       "application/json\r\nContent-Length: 60000\r\n\r\n{"));
  }
  const Clock::time_point begun = Clock::now();
  HttpClient fast(running.port());
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(fast.Post("/v1/predict", kGood).status, 200);
    slow[static_cast<std::size_t>(i) % slow.size()].Send("x");
  }
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(10)) << "a thread for each would hang";
  EXPECT_GE(running.metrics.connections, kSlow / 2);
}

TEST(HttpServer, TheLongestWaitingConnectionMakesRoom) {
  HttpOptions options;
  options.most_connections = 3;
  options.threads = 1;  // so that an answer is over before the next request is read
  Running running(options);
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(running.port());
    ASSERT_EQ(clients.back().Get("/healthz").status, 200);
  }
  ASSERT_EQ(clients[0].Get("/healthz").status, 200) << "so the second has waited longest";
  HttpClient next(running.port());
  EXPECT_EQ(next.Get("/healthz").status, 200);
  EXPECT_TRUE(clients[1].IsClosed());
  EXPECT_EQ(clients[0].Get("/healthz").status, 200);
  EXPECT_EQ(clients[2].Get("/healthz").status, 200);
  EXPECT_EQ(running.metrics.closed_for_others, 1);
}

TEST(HttpServer, NoConnectionMakesRoomWhileItIsAnswered) {
  HttpOptions options;
  options.most_connections = 1;
  Running running(options);
  HttpClient busy(running.port());
  ASSERT_TRUE(
      busy.Send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n"
                "Content-Length: 71\r\n\r\n"));
  running.WaitUntilInFlight(1);
  HttpClient next(running.port());
  EXPECT_EQ(next.Receive().status, 503);
  ASSERT_TRUE(busy.Send(kGood));
  EXPECT_EQ(busy.Receive().status, 200);
  EXPECT_EQ(running.metrics.refused_connections, 1);
}

TEST(HttpServer, LargeRequestsWaitForEachOther) {
  HttpOptions options;
  options.most_large = 1;
  Running running(options);
  HttpClient first(running.port());
  HttpClient second(running.port());
  const std::string head =
      "POST /v1/predict_batch HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100000"
      "\r\n\r\n";
  ASSERT_TRUE(first.Send(head));
  running.WaitUntilInFlight(1);
  ASSERT_TRUE(second.Send(head));
  const HttpResponse refused = second.Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Field("retry-after"), "1");
  EXPECT_EQ(HttpClient(running.port()).Post("/v1/predict", kGood).status, 200) << "small ones pass";
  ASSERT_TRUE(first.Send(std::string(100'000, ' ')));
  EXPECT_EQ(first.Receive().status, 400);
  // It makes room when its answer has been sent, which the client may see earlier.
  int status = 503;
  for (int i = 0; i < 100 && status == 503; ++i) {
    HttpClient third(running.port());
    ASSERT_TRUE(third.Send(head + std::string(100'000, ' ')));
    status = third.Receive().status;
  }
  EXPECT_EQ(status, 400);
}

TEST(HttpServer, ClientsThatLeaveLeaveNothing) {
  Running running;
  for (int i = 0; i < 50; ++i) {
    HttpClient client(running.port());
    const std::string message = HttpClient::Message("POST", "/v1/predict", kGood);
    client.Send(message.substr(0, message.size() * static_cast<std::size_t>(i) / 50));
  }
  EXPECT_TRUE(running.IsDeserted());
  EXPECT_EQ(running.metrics.in_flight, 0);
}

TEST(HttpServer, AnAddressInUseIsAnError) {
  Running running;
  HttpOptions taken;
  taken.address.port = running.port();
  EXPECT_TRUE(Says(ErrorOf([&] { Running another(taken); }), "cannot be listened on"));
  HttpOptions foreign;
  foreign.address.host = "192.0.2.1";  // of nobody's machine (RFC 5737)
  EXPECT_TRUE(Says(ErrorOf([&] { Running another(foreign); }), "192.0.2.1:0"));
}

// ---- Stopping and reading anew.

TEST(HttpServer, StopFinishesWhatHasBegun) {
  auto running = std::make_unique<Running>();
  HttpClient idle(running->port());
  ASSERT_EQ(idle.Get("/healthz").status, 200);
  running->WaitUntilInFlight(0);
  HttpClient begun(running->port());
  ASSERT_TRUE(
      begun.Send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n"
                 "Content-Length: 71\r\n\r\n"));
  running->WaitUntilInFlight(1);
  bool all_answered = false;
  std::thread stop([&] { all_answered = running->server->Stop(std::chrono::seconds(10)); });
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_FALSE(HttpClient(running->port()).Get("/healthz").status == 200) << "no new ones";
  EXPECT_TRUE(begun.Send(kGood));
  const HttpResponse response = begun.Receive();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.Field("connection"), "close");
  stop.join();
  EXPECT_TRUE(all_answered);
}

TEST(HttpServer, StopDoesNotWaitForEver) {
  Running running;
  HttpClient begun(running.port());
  ASSERT_TRUE(
      begun.Send("POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n"
                 "Content-Length: 71\r\n\r\n"));
  running.WaitUntilInFlight(1);
  const Clock::time_point asked = Clock::now();
  EXPECT_FALSE(running.server->Stop(milliseconds(100)));
  EXPECT_LT(Clock::now() - asked, std::chrono::seconds(3));
}

// The clusters change between two calibrations while four clients ask: each answer is of one of
// them, all of a batch too, and every request is answered.
TEST(HttpServer, ReloadDropsNothingAndMixesNothing) {
  constexpr int kReloads = 100;
  std::atomic<int> reads{0};
  Running running({}, [&] {
    Inventory inventory = ShippedInventory();
    // Snapshot 1 is the first read: odd ones have the slow link.
    inventory.clusters.front().link.bandwidth = GigabitsPerSecond(reads++ % 2 == 0 ? 1.0 : 25.0);
    return inventory;
  });
  const std::string single =
      R"({"cluster":"gce-t4","workload":"resnet50","workers":16,"local_batch":32})";
  const std::string batch =
      R"({"cluster":"gce-t4","workload":"resnet50","plan":{"local_batch":32},)"
      R"("queries":{"workers":[16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16]}})";
  double expected[2] = {0, 0};  // by snapshot % 2
  HttpClient client(running.port());
  for (int i = 0; i < 2; ++i) {
    const HttpResponse response = client.Post("/v1/predict", single);
    const TestJson json = TestJson::parse(response.body);
    expected[std::stoi(response.Field("stepcast-snapshot")) % 2] = json["step_time_s"];
    ASSERT_EQ(client.Post("/v1/reload", "").status, 200);
  }
  ASSERT_GT(std::abs(expected[0] / expected[1] - 1), 0.1) << "or nothing could be told apart";

  std::atomic<bool> stop{false};
  std::atomic<int> dropped{0};
  std::atomic<int> mixed{0};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      HttpClient mine(running.port());
      while (!stop) {
        const bool many = t % 2 == 0;
        const HttpResponse response =
            mine.Post(many ? "/v1/predict_batch" : "/v1/predict", many ? batch : single);
        if (response.status != 200) {
          ++dropped;
          continue;
        }
        ++answered;
        const double right = expected[std::stoi(response.Field("stepcast-snapshot")) % 2];
        const TestJson times = TestJson::parse(response.body)["step_time_s"];
        for (const double time :
             many ? times.get<std::vector<double>>() : std::vector<double>{times.get<double>()}) {
          if (std::abs(time / right - 1) > 1e-6) ++mixed;
        }
      }
    });
  }
  for (int i = 0; i < kReloads; ++i) EXPECT_EQ(client.Post("/v1/reload", "").status, 200);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(answered, kReloads);
  EXPECT_EQ(running.metrics.reloads, kReloads + 2);
}

}  // namespace
}  // namespace stepcast::serve
