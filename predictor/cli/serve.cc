// stepcast serve: predictions over HTTP and gRPC, for those who cannot link.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <sstream>
#include <thread>

#include "data/io/text_file.h"
#include "data/io/workload_file.h"
#include "data/record/input_error.h"
#include "data/values/numbers.h"
#include "predictor/cli/command.h"
#include "predictor/cli/signals.h"
#ifdef STEPCAST_HAS_SERVE
#include "microbench/harness/load_backend.h"
#include "predictor/serve/http_server.h"
#include "predictor/serve/rpc_server.h"
#ifdef STEPCAST_HAS_WEB
#include "predictor/web/page.h"
#endif
#endif

namespace stepcast::cli {
namespace {

#ifdef STEPCAST_HAS_SERVE

// As many descriptors as connections may be, where the system lets us.
void AllowConnections(std::size_t most) {
  constexpr rlim_t kOthers = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, most + kOthers));
  setrlimit(RLIMIT_NOFILE, &limit);
}

void Warn(const serve::Address& address) {
  if (address.loopback()) return;
  Tell(address.text() +
       " can be reached from other machines: whoever reaches it may ask, without "
       "password and encryption");
}

// A pipe would hold up whoever reads it anew until somebody writes.
void RequireNoPipe(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_fifo(path, error)) {
    throw InputError({path, 0, ""}, "", "is a pipe", "a file, which can be read anew");
  }
}

// All that is served, read anew.
serve::Inventory ReadInventory(const std::vector<std::string>& clusters,
                               const std::vector<std::string>& workload_files) {
  const Library library;
  serve::Inventory inventory;
  for (const std::string& cluster : clusters) {
    RequireNoPipe(cluster);
    inventory.clusters.push_back(library.LoadCluster(cluster));
  }
  for (const std::string& file : workload_files) {
    RequireNoPipe(file);
    inventory.workloads.push_back(ReadWorkload(file));
  }
  inventory.devices = library.Devices();
  return inventory;
}

// What jobs have learnt, kept in a file: a line for each fleet.
class StateFile {
 public:
  StateFile(std::string path, serve::Service* service)
      : path_(std::move(path)), service_(*service) {}

  bool exists() const { return std::filesystem::exists(path_); }
  // May take long, and changes no file. Throws InputError.
  void Read() {
    constexpr std::size_t kMostBytes = std::size_t{1} << 30;
    text_ = ReadTextFile(path_, kMostBytes);
    std::vector<std::string> lines;
    std::istringstream in(text_);
    for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
    try {
      left_out_ = service_.jobs().Import(*service_.Current(), lines);
    } catch (const InputError& e) {
      throw OfFile(e);
    }
  }
  // Writes it, so that a place where none can be written is known before anything is learnt. What
  // holds no more was left out, and is told; the file that had it stays under another name. Throws
  // InputError.
  void Begin() {
    if (!left_out_.empty()) WriteTextFile(path_ + ".old", text_);
    for (const InputError& e : left_out_) {
      Tell(fmt::format("{}; left out, and kept in {}.old", OfFile(e).what(), path_));
    }
    left_out_.clear();
    text_ = {};
    Write();
  }

  // Throws InputError where it cannot be written.
  void Write() {
    const std::uint64_t version = service_.jobs().version();
    if (written_ == version) return;
    std::string text;
    for (const std::string& line : service_.jobs().Export()) text += line + "\n";
    WriteTextFile(path_, text);
    written_ = version;
  }

 private:
  InputError OfFile(const InputError& e) const {
    return e.At({path_, e.place().line, e.place().key});
  }

  const std::string path_;
  serve::Service& service_;
  std::string text_;                  // of the file, as it was read
  std::vector<InputError> left_out_;  // of it
  std::optional<std::uint64_t> written_;
};

// Reads what jobs have learnt. An interrupt ends the program meanwhile: nothing is learnt yet that
// would be lost, and no file is being written. Throws InputError.
void ReadOrEnd(StateFile* state, const sigset_t& interrupts) {
  constexpr timespec kBetweenLooks = {0, 20'000'000};
  std::future<void> read = std::async(std::launch::async, [state] { state->Read(); });
  while (read.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (sigtimedwait(&interrupts, nullptr, &kBetweenLooks) < 0) continue;
    Tell("stopping: what jobs have learnt was still being read");
    std::_Exit(kDone);
  }
  read.get();
}

void ReloadFor(serve::Service* service, serve::Metrics* metrics) {
  try {
    const int snapshot = service->Reload();
    ++metrics->reloads;
    Tell(fmt::format("read anew: snapshot {}", snapshot));
  } catch (const std::exception& e) {
    ++metrics->failed_reloads;
    Tell(fmt::format("{}; snapshot {} still answers", e.what(), service->Current()->number()));
  }
}

// What is asked of the program in its options.
struct ServeOptions {
  std::vector<std::string> clusters;
  std::vector<std::string> workload_files;
  serve::ServiceOptions service;
  serve::HttpOptions http;
  std::optional<serve::Address> grpc;
  std::chrono::milliseconds patience{};  // with what was asked, once it stops
};

ServeOptions ReadServeOptions(const Arguments& args) {
  ServeOptions options;
  options.clusters = args.Texts("cluster");
  if (options.clusters.empty()) args.Required("cluster");
  serve::HttpOptions& http = options.http;
  http.address = {"127.0.0.1", 8080};
  if (args.Has("listen")) {
    http.address = serve::ParseAddress(args.Text("listen"), OptionPlace("listen"));
  }
  if (args.Has("grpc")) options.grpc = serve::ParseAddress(args.Text("grpc"), OptionPlace("grpc"));
  options.service.most_plans = static_cast<std::size_t>(
      ReadInteger(args, "max-plans", 1, 100'000'000, static_cast<int>(options.service.most_plans)));
  http.threads = ReadInteger(args, "threads", 1, 1024,
                             std::max(2, static_cast<int>(std::thread::hardware_concurrency())));
  http.most_connections = static_cast<std::size_t>(
      ReadInteger(args, "max-connections", 1, 1'000'000, static_cast<int>(http.most_connections)));
  if (args.Has("max-body")) {
    const InputPlace place = OptionPlace("max-body");
    const double bytes = ParseDataSize(args.Text("max-body"), place).in(kBytes);
    constexpr double kMost = 1 << 30;
    if (bytes < 1 || bytes > kMost) {
      throw InputError(place, args.Text("max-body"), "is out of range", "1 B to 1 GiB");
    }
    http.most_body = static_cast<std::uint64_t>(bytes);
  }
  Duration<> drain = Seconds(10.0);
  if (args.Has("drain")) drain = ParseDuration(args.Text("drain"), OptionPlace("drain"));
  options.patience = std::chrono::milliseconds(static_cast<long long>(drain.in(kMilliseconds)));
  options.workload_files = args.Texts("workload-file");
  return options;
}

// That requests are answered from now on, and where.
void TellAddresses(const serve::Address& listen, const std::optional<serve::Address>& grpc,
                   const serve::Service& service, bool as_json) {
  if (!as_json) {
    Tell(
        fmt::format("http://{} answers{}", listen.text(), grpc ? ", gRPC on " + grpc->text() : ""));
    return;
  }
  Json names = Json::array();
  for (const Cluster& c : service.Current()->inventory().clusters) names.push_back(c.name);
  const Json told = {{"listen", listen.text()},
                     {"grpc", grpc ? Json(grpc->text()) : Json(nullptr)},
                     {"clusters", names}};
  Print(JsonText(told) + "\n");
  std::fflush(stdout);
}

// Reads files anew at each SIGHUP, and writes what jobs have learnt each minute, until one of the
// other signals asks to stop. By the pool: whatever a file takes to read, the next signal is heard.
// By one of its threads, however many signals come, so that the others go on answering.
class SignalLoop {
 public:
  // `state` is null where nothing is kept.
  SignalLoop(serve::Service* service, serve::Metrics* metrics, serve::WorkPool* pool,
             StateFile* state)
      : service_(*service), metrics_(*metrics), pool_(*pool), state_(state) {}

  void Run(const sigset_t& signals) {
    constexpr timespec kBetweenSaves = {60, 0};
    while (true) {
      const int signal = sigtimedwait(&signals, nullptr, &kBetweenSaves);
      if (signal < 0) {
        if (errno == EAGAIN && state_ != nullptr) PostSave();
        continue;
      }
      if (signal != SIGHUP) break;
      PostReload();
    }
  }

 private:
  void PostSave() {
    const auto save = [this] {
      try {
        state_->Write();
      } catch (const std::exception& e) {
        Tell(e.what());  // and the next one may succeed
      }
      saving_ = false;
    };
    if (!saving_.exchange(true) && !pool_.Post(save)) saving_ = false;
  }

  void PostReload() {
    const auto reload = [this] {
      for (int heard = asked_; heard > 0; heard = asked_.fetch_sub(heard) - heard) {
        ReloadFor(&service_, &metrics_);
      }
    };
    if (asked_.fetch_add(1) > 0 || pool_.Post(reload)) return;
    asked_ = 0;
    Tell("not read anew: too many requests wait for an answer");
  }

  serve::Service& service_;
  serve::Metrics& metrics_;
  serve::WorkPool& pool_;
  StateFile* const state_;
  std::atomic<bool> saving_{false};
  std::atomic<int> asked_{0};
};

int Serve(const Arguments& args) {
  const ServeOptions options = ReadServeOptions(args);
  AllowConnections(options.http.most_connections);
  std::signal(SIGPIPE, SIG_IGN);  // whoever read what is told may have gone
  BlockSignal(SIGHUP);
  serve::Service service([&] { return ReadInventory(options.clusters, options.workload_files); },
                         options.service);
  // Files may take for ever to read: only now.
  const sigset_t interrupts = BlockInterrupts();
  std::optional<StateFile> state;
  if (args.Has("state")) {
    state.emplace(args.Text("state"), &service);
    service.SetReady(false);
  }
  serve::Metrics metrics;
#ifdef STEPCAST_HAS_WEB
  const auto make_page = [&](const serve::Inventory& inventory) {
    return web::MakePage(inventory, {options.clusters, options.workload_files});
  };
#else
  const auto make_page = nullptr;
#endif
  serve::Api api(&service, &metrics, make_page);
  constexpr std::size_t kMostWaiting = 256;
  serve::WorkPool pool(options.http.threads, kMostWaiting);
  serve::HttpServer server(&api, &metrics, &pool, options.http);
  serve::Address listen = options.http.address;
  listen.port = server.port();
  Warn(listen);
  std::optional<serve::Address> grpc = options.grpc;
  std::unique_ptr<serve::RpcServer> rpc;
  if (grpc) {
    rpc = serve::LoadRpcServer(ModuleFolders(), &service, &metrics, &pool,
                               {*grpc, static_cast<int>(options.http.most_body)});
    grpc->port = rpc->port();
    Warn(*grpc);
  }
  // What asks whether the process lives is answered while a large file is read.
  if (state) {
    if (state->exists()) {
      Tell(fmt::format("http://{} listens, and answers once {} is read", listen.text(),
                       args.Text("state")));
      ReadOrEnd(&*state, interrupts);
    }
    state->Begin();
    service.SetReady(true);
    if (rpc) rpc->SetServing(true);
  }
  TellAddresses(listen, grpc, service, args.Has("json"));

  sigset_t signals = interrupts;
  sigaddset(&signals, SIGHUP);
  SignalLoop loop(&service, &metrics, &pool, state ? &*state : nullptr);
  loop.Run(signals);
  std::thread([interrupts] { EndAtNextInterrupt(interrupts); }).detach();
  Tell("stopping: answers what was asked");
  api.SetStopping();
  std::thread rpc_stops([&] {
    if (rpc) rpc->Stop(options.patience);
  });
  if (!server.Stop(options.patience)) {
    Tell("requests were cut off that took longer than --drain");
  }
  rpc_stops.join();
  pool.Stop();
  if (state) state->Write();
  return kDone;
}

#else

int Serve(const Arguments& /*args*/) { return NotBuilt("serve", "libboost-dev"); }

#endif

}  // namespace

int RunServe(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("cluster", OptionValues("C"),
                        "cluster file, or the name of a shipped one; may be repeated")(
      "workload-file", OptionValues("F"), "workload file; may be repeated")(
      "listen", OptionValue("A:P"), "address and port of HTTP (127.0.0.1:8080); port 0 is any")(
      "grpc", OptionValue("A:P"),
      "address and port of gRPC, which is not served without this option")(
      "threads", OptionValue("N"),
      "threads that answer, and as many for large requests (as many as cores)")(
      "max-body", OptionValue("SIZE"), "the largest request (64 MiB)")(
      "max-plans", OptionValue("N"), "the most plans of one request (1000000)")(
      "max-connections", OptionValue("N"), "HTTP connections at once (1000)")(
      "state", OptionValue("FILE"),
      "where what jobs have learnt is kept: read at the start where it is there, written each "
      "minute and at the end")("drain", OptionValue("T"),
                               "time to finish what was asked, when stopped (\"10 s\")")(
      "json", "print one JSON object with the addresses, once they answer")("help",
                                                                            "print this text");
  const Arguments args("serve", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast serve --cluster C [--cluster C ...] [--listen A:P] [--grpc A:P] ...",
        "Answers predictions over HTTP (JSON) and gRPC until it is stopped (SIGTERM, SIGINT).\n"
        "SIGHUP reads the cluster and workload files anew, without a pause; one that is wrong\n"
        "leaves the old ones in place. There is neither authentication nor encryption: by\n"
        "default only this machine is answered. GET /openapi.yaml tells what may be asked.",
        options,
        "  stepcast serve --cluster fitted.yaml\n"
        "  stepcast serve --cluster a.yaml --cluster b.yaml --workload-file mine.yaml "
        "--listen 127.0.0.1:9000 --grpc 127.0.0.1:9001\n"
        "  curl -H \"Content-Type: application/json\" -d '{\"workload\": \"resnet50\", "
        "\"workers\": 8, \"local_batch\": 32}' http://127.0.0.1:8080/v1/predict\n");
    return kDone;
  }
  return Serve(args);
}

}  // namespace stepcast::cli
