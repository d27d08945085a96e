// Asks a service that runs, and measures: rate, latency, one large batch, and all that beside
// clients that are slow on purpose. Not a test: by hand, against `stepcast serve`.
//
//   stepcast_serve_load --port 8080 [--count 50000] [--connections 8] [--slow 200]
//                       [--batch 1000000]
//   stepcast_serve_load --grpc 127.0.0.1:8081 [--count 50000] [--connections 8] [--batch 1000000]
//
// --workload W (resnet50). Every loop is bounded by its count and by a minute.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/serve/http_client.h"
#ifdef STEPCAST_HAS_GRPC
#include <grpcpp/grpcpp.h>
#include <stepcast.grpc.pb.h>
#endif

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLongest = std::chrono::seconds(60);

double SecondsSince(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Asks once; false where there was no good answer.
using Ask = std::function<bool()>;

// Runs `count` requests over `connections` threads, each of which makes its own way of asking.
void Measure(const char* name, int count, int connections, const std::function<Ask()>& connect) {
  std::vector<std::vector<double>> latencies(static_cast<std::size_t>(connections));
  std::atomic<int> left{count};
  std::atomic<int> failed{0};
  const Clock::time_point begun = Clock::now();
  std::vector<std::thread> threads;
  for (std::vector<double>& mine : latencies) {
    threads.emplace_back([&] {
      const Ask ask = connect();
      while (left.fetch_sub(1) > 0 && Clock::now() - begun < kLongest) {
        const Clock::time_point sent = Clock::now();
        if (!ask()) ++failed;
        mine.push_back(SecondsSince(sent));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = SecondsSince(begun);
  std::vector<double> all;
  for (const std::vector<double>& some : latencies) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  if (all.empty()) return;
  const auto quantile = [&](double q) {
    return 1e3 * all[static_cast<std::size_t>(q * static_cast<double>(all.size() - 1))];
  };
  std::printf(
      "%s: %zu requests by %d connections, %d failed: %.0f a second; p50 %.3f ms, "
      "p99 %.3f ms, p99.9 %.3f ms, most %.3f ms\n",
      name, all.size(), connections, failed.load(), static_cast<double>(all.size()) / seconds,
      quantile(0.5), quantile(0.99), quantile(0.999), all.back() * 1e3);
}

// `size` plans of 1 to 512 workers and batches from 1 to 256.
std::string BatchBody(const std::string& workload, int size) {
  std::string workers;
  std::string batches;
  for (int i = 0; i < size; ++i) {
    workers += (i > 0 ? "," : "") + std::to_string(1 + i % 512);
    batches += (i > 0 ? "," : "") + std::to_string(1 + i / 512 % 256);
  }
  return R"({"workload":")" + workload + R"(","queries":{"workers":[)" + workers +
         R"(],"local_batch":[)" + batches + "]}}";
}

// Clients that send a byte of their header each second, and never all of it.
class SlowClients {
 public:
  SlowClients(std::uint16_t port, int count) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<HttpClient>(port));
      clients_.back()->Send("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    }
    thread_ = std::thread([this, port] {
      while (!stop_) {
        for (int i = 0; i < 10 && !stop_; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        for (std::unique_ptr<HttpClient>& client : clients_) {
          if (!client->IsClosed(0) && client->Send("x")) continue;
          client = std::make_unique<HttpClient>(port);  // comes back as soon as it is shown out
          client->Send("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
          ++shown_out_;
        }
      }
    });
  }
  SlowClients(const SlowClients&) = delete;
  SlowClients& operator=(const SlowClients&) = delete;
  ~SlowClients() {
    stop_ = true;
    thread_.join();
    if (!clients_.empty()) {
      std::printf("%zu slow connections, shown out and back %d times\n", clients_.size(),
                  shown_out_.load());
    }
  }

 private:
  std::vector<std::unique_ptr<HttpClient>> clients_;
  std::atomic<bool> stop_{false};
  std::atomic<int> shown_out_{0};
  std::thread thread_;
};

void LoadHttp(const std::map<std::string, std::string>& options) {
  const auto number = [&](const char* name, int otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : std::atoi(found->second.c_str());
  };
  const auto port = static_cast<std::uint16_t>(number("--port", 8080));
  const auto found = options.find("--workload");
  const std::string workload = found == options.end() ? "resnet50" : found->second;
  const SlowClients slow(port, number("--slow", 0));
  const std::string body =
      R"({"workload":")" + workload + R"(","workers":16,"local_batch":32,"strategy":"ring"})";
  Measure("POST /v1/predict", number("--count", 50'000), number("--connections", 8), [&] {
    auto client = std::make_shared<HttpClient>(port);
    return Ask([client, &body] { return client->Post("/v1/predict", body).status == 200; });
  });
  if (const int size = number("--batch", 0); size > 0) {
    const std::string batch = BatchBody(workload, size);
    HttpClient client(port);
    for (int i = 0; i < 3; ++i) {
      const Clock::time_point begun = Clock::now();
      const HttpResponse response = client.Post("/v1/predict_batch", batch);
      std::printf(
          "POST /v1/predict_batch: %d plans, %zu bytes asked, %zu answered with %d in %.3f s\n",
          size, batch.size(), response.body.size(), response.status, SecondsSince(begun));
    }
  }
}

#ifdef STEPCAST_HAS_GRPC
void LoadGrpc(const std::map<std::string, std::string>& options) {
  const auto number = [&](const char* name, int otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : std::atoi(found->second.c_str());
  };
  const auto found = options.find("--workload");
  const std::string workload = found == options.end() ? "resnet50" : found->second;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  const auto stub = [&] {
    return std::shared_ptr<v1::Stepcast::Stub>(v1::Stepcast::NewStub(grpc::CreateCustomChannel(
        options.at("--grpc"), grpc::InsecureChannelCredentials(), arguments)));
  };
  v1::PredictRequest request;
  request.mutable_target()->set_workload(workload);
  request.mutable_plan()->set_workers(16);
  request.mutable_plan()->set_local_batch(32);
  request.mutable_plan()->set_strategy("ring");
  Measure("grpc Predict", number("--count", 50'000), number("--connections", 8), [&] {
    return Ask([mine = stub(), &request] {
      grpc::ClientContext context;
      v1::PredictReply reply;
      return mine->Predict(&context, request, &reply).ok();
    });
  });
  if (const int size = number("--batch", 0); size > 0) {
    v1::PredictBatchRequest batch;
    batch.mutable_target()->set_workload(workload);
    for (int i = 0; i < size; ++i) {
      batch.mutable_queries()->add_workers(1 + i % 512);
      batch.mutable_queries()->add_local_batch(1 + i / 512 % 256);
    }
    const auto mine = stub();
    for (int i = 0; i < 3; ++i) {
      grpc::ClientContext context;
      v1::PredictBatchReply reply;
      const Clock::time_point begun = Clock::now();
      const grpc::Status status = mine->PredictBatch(&context, batch, &reply);
      std::printf("grpc PredictBatch: %d plans in %.3f s%s\n", reply.step_time_s_size(),
                  SecondsSince(begun), status.ok() ? "" : (": " + status.error_message()).c_str());
    }
  }
}
#endif

int Main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  if (options.count("--grpc") == 0) {
    LoadHttp(options);
    return 0;
  }
#ifdef STEPCAST_HAS_GRPC
  LoadGrpc(options);
  return 0;
#else
  std::fputs("built without gRPC\n", stderr);
  return 1;
#endif
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) { return stepcast::Main(argc, argv); }
