// The program, as an operator runs it: starts, answers, reads anew, stops.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/process.h"
#include "tests/serve/http_client.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

const std::string kMachines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines/";

// `stepcast serve --json` with more words, until it is stopped or has outlived its test.
class ServeProcess {
 public:
  explicit ServeProcess(const std::vector<std::string>& more, bool until_it_answers = true) {
    int out[2];
    if (pipe(out) != 0) return;
    std::vector<std::string> words = {STEPCAST_PROGRAM, "serve", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    errors_ = folder_.Path("err");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      close(out[1]);
      const int err = open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(err, STDERR_FILENO);
      signal(SIGINT, SIG_DFL);  // the tests may run in a shell's background
      execv(STEPCAST_PROGRAM, argv.data());
      _exit(127);
    }
    close(out[1]);
    out_ = out[0];
    if (until_it_answers) WaitUntilItAnswers();
  }
  // Until it tells its addresses.
  void WaitUntilItAnswers() {
    std::string line;
    pollfd wait{out_, POLLIN, 0};
    for (char c = 0; poll(&wait, 1, 20'000) == 1 && read(out_, &c, 1) == 1 && c != '\n';) line += c;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(json.is_object()) << line << errors();
    if (json.is_object()) told_ = json;
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;
  ~ServeProcess() {
    close(out_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  const nlohmann::json& told() const { return told_; }
  std::uint16_t port(const char* key = "listen") const {
    const std::string address = told_.value(key, "");
    return static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
  }
  // Memory that it holds [B].
  double resident() const {
    const std::string status = FileContent("/proc/" + std::to_string(pid_) + "/status");
    const std::size_t at = status.find("VmRSS:");
    return at == std::string::npos ? 0 : 1024 * std::strtod(status.c_str() + at + 6, nullptr);
  }
  void Signal(int signal) const { kill(pid_, signal); }
  // The exit code, within half a minute; -1 where it goes on.
  int Wait() {
    for (int i = 0; i < 3000; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }
  std::string errors() const { return FileContent(errors_); }
  // Waits until standard error has it, half a minute at most.
  bool Says(const std::string& text) const {
    for (int i = 0; i < 3000; ++i) {
      if (errors().find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  TempFolder folder_;
  std::string errors_;
  int out_ = -1;
  pid_t pid_ = -1;
  nlohmann::json told_ = nlohmann::json::object();
};

TEST(ServeProgram, AnswersReadsAnewAndStops) {
  const TempFolder folder;
  const std::string good = FileContent(kMachines + "gce-t4.yaml");
  const std::string cluster = folder.Write("mine.yaml", good);
  ServeProcess serve({"--cluster", cluster, "--listen", "127.0.0.1:0"});
  HttpClient client(serve.port());
  const std::string ask = R"({"workload":"resnet50","workers":8,"local_batch":32})";
  const HttpResponse first = client.Post("/v1/predict", ask);
  ASSERT_EQ(first.status, 200) << first.body;
  const ProcessResult program =
      RunProcess({STEPCAST_PROGRAM, "predict", "--cluster", cluster, "--workload", "resnet50",
                  "--workers", "8", "--local-batch", "32", "--json"});
  EXPECT_EQ(nlohmann::json::parse(first.body), nlohmann::json::parse(program.out));

  folder.Write("mine.yaml", "name: gce-t4\nnodes: many\n");
  serve.Signal(SIGHUP);
  EXPECT_TRUE(serve.Says("snapshot 1 still answers")) << serve.errors();
  EXPECT_EQ(client.Post("/v1/predict", ask).body, first.body);
  const HttpResponse refused = client.Post("/v1/reload", "");
  EXPECT_EQ(refused.status, 500);
  EXPECT_NE(refused.body.find("mine.yaml"), std::string::npos) << refused.body;

  // It can be read, but no forecast can be made with it.
  folder.Write("mine.yaml",
               good +
                   "calibration:\n  residual_log_sd: 0.1\n  parameters:\n"
                   "    - {scope: nonsense, name: hop_spread, value: 0.1, log_sd: 0.25, "
                   "prior_value: 0.1, prior_log_sd: 1, decided_by: data}\n");
  serve.Signal(SIGHUP);
  EXPECT_TRUE(serve.Says("'nonsense' is no scope of a parameter")) << serve.errors();
  EXPECT_EQ(client.Post("/v1/reload", "").status, 500);
  EXPECT_EQ(client.Post("/v1/predict", ask).body, first.body);

  folder.Write("mine.yaml", good + "link:\n  bandwidth: \"1 Gbit/s\"\n");
  serve.Signal(SIGHUP);
  EXPECT_TRUE(serve.Says("read anew: snapshot 2")) << serve.errors();
  EXPECT_NE(client.Post("/v1/predict", ask).body, first.body);
  EXPECT_EQ(client.Post("/v1/reload", "").body, R"({"snapshot":3})");

  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(), 0);
  EXPECT_TRUE(client.IsClosed());
}

// Who can be reached by others is told so, and everybody where it listens and what it serves.
TEST(ServeProgram, TellsWhereItListensAndWhoReachesIt) {
  for (const std::string address : {"127.0.0.1", "0.0.0.0"}) {
    ServeProcess serve(
        {"--cluster", "ufrgs-tupi", "--cluster", "gce-t4", "--listen", address + ":0"});
    const std::string listen = address + ":" + std::to_string(serve.port());
    EXPECT_GT(serve.port(), 0);
    EXPECT_EQ(serve.told(),
              (nlohmann::json{
                  {"listen", listen}, {"grpc", nullptr}, {"clusters", {"ufrgs-tupi", "gce-t4"}}}));
    EXPECT_EQ(serve.errors().find("stepcast: " + listen + " can be reached from other machines") !=
                  std::string::npos,
              address == "0.0.0.0")
        << serve.errors();
    serve.Signal(SIGTERM);
    EXPECT_EQ(serve.Wait(), 0);
    EXPECT_NE(serve.errors().find("stopping: answers what was asked\n"), std::string::npos);
    EXPECT_EQ(serve.errors().find("were cut off"), std::string::npos) << serve.errors();
  }
  // In words it stands beside all else that is told.
  const ProcessResult words =
      RunProcess({"/usr/bin/timeout", "--signal", "TERM", "2", STEPCAST_PROGRAM, "serve",
                  "--cluster", "gce-t4", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(words.out, "");
  const std::size_t answers = words.err.find(" answers\n");
  ASSERT_NE(answers, std::string::npos) << words.err;
  EXPECT_EQ(words.err.rfind("stepcast: http://127.0.0.1:", 0), 0U) << words.err;
  EXPECT_LT(answers, words.err.find("stopping: ")) << words.err;
}

TEST(ServeProgram, RefusesWhatItCannotServe) {
  const TempFolder folder;
  const std::string pipe = folder.Path("c.yaml");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<std::string> serve = {STEPCAST_PROGRAM, "serve"};
  const struct {
    std::vector<std::string> words;
    const char* said;
  } cases[] = {
      {{}, "--cluster: is required"},
      {{"--cluster", "gce-t4", "--max-body", "2 GiB"},
       "--max-body: '2 GiB' is out of range; allowed: 1 B to 1 GiB\n"},
      {{"--cluster", "gce-t4", "--max-plans", "0"},
       "--max-plans: '0' is out of range; allowed: a whole number from 1 to 100000000\n"},
      {{"--cluster", "gce-t4", "--threads", "1025"},
       "--threads: '1025' is out of range; allowed: a whole number from 1 to 1024\n"},
      {{"--cluster", "gce-t4", "--max-connections", "1000001"},
       "--max-connections: '1000001' is out of range; allowed: a whole number from 1 to 1000000\n"},
      {{"--cluster", "gce-t4", "--listen", "8080"},
       "--listen: '8080' is not an address with a port"},
      {{"--cluster", "gce-t4", "--grpc", "8080"}, "--grpc: '8080' is not an address with a port"},
      {{"--cluster", "gce-t4", "--drain", "10"}, "--drain: '10' has no unit"},
      {{"--cluster", pipe}, "c.yaml: is a pipe; allowed: a file, which can be read anew\n"},
      {{"--cluster", "gce-t4", "--workload-file", pipe}, "c.yaml: is a pipe"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words = serve;
    words.insert(words.end(), c.words.begin(), c.words.end());
    const ProcessResult result = RunProcess(words);
    EXPECT_EQ(result.exit_code, 2) << c.said;
    EXPECT_NE(result.err.find(c.said), std::string::npos) << result.err << "lacks: " << c.said;
  }
}

TEST(ServeProgram, KeepsWhatJobsHaveLearnt) {
  const TempFolder folder;
  const std::string good = FileContent(kMachines + "gce-t4.yaml");
  const std::string cluster = folder.Write("mine.yaml", good);
  const std::string state = folder.Path("jobs.jsonl");
  const std::vector<std::string> words = {"--cluster",   cluster,   "--listen",
                                          "127.0.0.1:0", "--state", state};
  const std::string steps =
      R"({"job":"a","workload":"resnet50","plan":{"workers":8,"local_batch":32},)"
      R"("step_times_s":[0.5,0.51]})";
  const std::string ask = R"({"job":"a","workers":16,"local_batch":32})";
  std::string answer;
  {
    ServeProcess serve(words);
    EXPECT_EQ(FileContent(state), "") << "written before anything is learnt";
    HttpClient client(serve.port());
    ASSERT_EQ(client.Post("/v1/observe", steps).status, 200);
    answer = client.Post("/v1/predict", ask).body;
    serve.Signal(SIGTERM);
    EXPECT_EQ(serve.Wait(), 0);
  }
  const std::string kept = FileContent(state);
  {
    ServeProcess serve(words);
    EXPECT_EQ(HttpClient(serve.port()).Post("/v1/predict", ask).body, answer);
    serve.Signal(SIGTERM);
    EXPECT_EQ(serve.Wait(), 0);
  }
  EXPECT_EQ(FileContent(state), kept);

  // Of a cluster whose file says something else now.
  folder.Write("mine.yaml", good + "link:\n  bandwidth: \"1 Gbit/s\"\n");
  {
    ServeProcess serve(words);
    EXPECT_TRUE(serve.Says("left out, and kept in")) << serve.errors();
    EXPECT_EQ(HttpClient(serve.port()).Post("/v1/predict", ask).status, 422);
  }
  EXPECT_EQ(FileContent(state + ".old"), kept);

  folder.Write("jobs.jsonl", "{");
  const ProcessResult broken = RunProcess({STEPCAST_PROGRAM, "serve", "--cluster", cluster,
                                           "--listen", "127.0.0.1:0", "--state", state});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_NE(broken.err.find("jobs.jsonl:1: "), std::string::npos) << broken.err;
  const ProcessResult nowhere =
      RunProcess({STEPCAST_PROGRAM, "serve", "--cluster", cluster, "--listen", "127.0.0.1:0",
                  "--state", folder.Path("no/jobs.jsonl")});
  EXPECT_EQ(nowhere.exit_code, 2);
}

// A service whose state is a pipe, which is read as slowly as it is written.
struct SlowState {
  SlowState() {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    serve.emplace(std::vector<std::string>{"--cluster", "gce-t4", "--listen", "127.0.0.1:0",
                                           "--state", path()},
                  false);
    EXPECT_TRUE(serve->Says("listens, and answers once")) << serve->errors();
  }
  // Where it listens, as it says on standard error.
  std::uint16_t port() const {
    const std::string host = "http://127.0.0.1:";
    const std::string errors = serve->errors();
    return static_cast<std::uint16_t>(
        std::atoi(errors.substr(errors.find(host) + host.size()).c_str()));
  }
  void Write(const std::string& text) const {
    const int pipe = open(path().c_str(), O_WRONLY);
    EXPECT_EQ(write(pipe, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(pipe);
  }
  std::string path() const { return folder.Path("slow.jsonl"); }

  TempFolder folder;
  std::optional<ServeProcess> serve;
};

TEST(ServeProgram, LivesButIsNotReadyWhileItReadsItsState) {
  SlowState slow;
  const std::string ask = R"({"workload":"resnet50","workers":8,"local_batch":32})";
  HttpClient client(slow.port());
  EXPECT_EQ(client.Get("/healthz").status, 200);
  EXPECT_EQ(client.Get("/readyz").status, 503);
  const HttpResponse early = client.Post("/v1/predict", ask);
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.Field("retry-after"), "1");
  slow.Write("");
  // What it writes at once, before anything is learnt, is nothing.
  EXPECT_EQ(FileContent(slow.path()), "");
  slow.serve->WaitUntilItAnswers();
  EXPECT_EQ(slow.serve->port(), slow.port());
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_EQ(client.Post("/v1/predict", ask).status, 200);
}

TEST(ServeProgram, EndsByAStateThatIsNone) {
  SlowState slow;
  EXPECT_EQ(HttpClient(slow.port()).Get("/healthz").status, 200);
  slow.Write("{");
  EXPECT_EQ(slow.serve->Wait(), 2);
  EXPECT_NE(slow.serve->errors().find("slow.jsonl:1: "), std::string::npos) << slow.serve->errors();
}

TEST(ServeProgram, StopsWhileItReadsItsState) {
  SlowState slow;
  slow.serve->Signal(SIGTERM);
  EXPECT_EQ(slow.serve->Wait(), 0);
  EXPECT_NE(slow.serve->errors().find("stopping"), std::string::npos) << slow.serve->errors();
}

// Files that no reader takes; the numbered ones differ.
std::string BrokenCluster(const std::string& good, int number) {
  const auto hosts = [&](int count) {
    std::string text =
        "name: gce-t4\ndevice: t4\nnodes: 1\ndevices_per_node: 1\n"
        "calibration: {residual_log_sd: 0, range: {max_workers: 1, max_nodes: 1, "
        "max_devices_per_node: 1, hosts_alone: a";
    for (int i = 0; i < count; ++i) text += "+h" + std::to_string(i);
    return text + "+a}}\n";
  };
  const std::string head = "{name: gce-t4, device: t4, nodes: 16, devices_per_node: 4, ";
  const std::string broken[] = {
      "",
      "name: gce-t4\nnodes: many\n",
      good.substr(0, static_cast<std::size_t>(number) % good.size()) + "\x01\xff",
      good + "nodes: 3\n",
      good + "link: {bandwidth: \"1e-300 bit/s\"}\n",
      head + "calibration: {residual_log_sd: 0, scatter: {x: }}}",
      head + "calibration: {residual_log_sd: 0, log_covariance: \"1\", parameters: [" +
          std::string(4000, '0') + "]}}",
      std::string(20'000, '['),
      "{" + std::string(20'000, '?') + "}",
      "name: \"" + std::string(20'000, 'n') + "\"\n",
      hosts(2000),
  };
  return broken[static_cast<std::size_t>(number) % std::size(broken)];
}

// Reads anew again and again, every other time a broken file, while clients ask: each answer is
// there, and is that of the snapshot that it names. STEPCAST_SOAK_RELOADS=10000 for the whole.
TEST(ServeProgram, ReadingAnewManyTimesLosesNothing) {
  const char* const soak = std::getenv("STEPCAST_SOAK_RELOADS");
  const int reloads = soak != nullptr ? std::atoi(soak) : 400;
  const TempFolder folder;
  const std::string good[] = {
      FileContent(kMachines + "gce-t4.yaml") + "link: {bandwidth: 25 Gbit/s}\n",
      FileContent(kMachines + "gce-t4.yaml") + "link: {bandwidth: 1 Gbit/s}\n"};
  // Snapshot 1 is the first read: odd ones have the slow link.
  const std::string cluster = folder.Write("mine.yaml", good[1]);
  ServeProcess serve({"--cluster", cluster, "--listen", "127.0.0.1:0", "--threads", "2"});
  const std::string ask = R"({"workload":"resnet50","workers":16,"local_batch":32})";
  HttpClient client(serve.port());
  std::string expected[2];
  expected[1] = client.Post("/v1/predict", ask).body;
  folder.Write("mine.yaml", good[0]);
  ASSERT_EQ(client.Post("/v1/reload", "").body, R"({"snapshot":2})");
  expected[0] = client.Post("/v1/predict", ask).body;
  ASSERT_NE(expected[0], expected[1]);

  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::atomic<int> wrong{0};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      HttpClient mine(serve.port());
      while (!stop) {
        const HttpResponse response = mine.Post("/v1/predict", ask);
        if (response.status != 200) ++lost;
        if (response.status == 0) return;
        const int snapshot = std::atoi(response.Field("stepcast-snapshot").c_str());
        if (response.body != expected[snapshot % 2]) ++wrong;
        ++answered;
      }
    });
  }
  int snapshot = 2;
  double warm = 0;
  for (int i = 0; i < reloads; ++i) {
    const bool is_good = i % 2 == 0;
    folder.Write("mine.yaml", is_good ? good[(snapshot + 1) % 2] : BrokenCluster(good[0], i / 2));
    if (i % 4 < 2) {
      const HttpResponse response = client.Post("/v1/reload", "");
      ASSERT_EQ(response.status, is_good ? 200 : 500) << i << " " << response.body;
      ASSERT_LT(response.body.size(), 2000U) << response.body;
    } else {
      // Counted when it is over.
      const std::string count = std::string("reloads_total{outcome=\"") +
                                (is_good ? "done" : "failed") + "\"} " +
                                std::to_string(i / 2 + (is_good ? 2 : 1)) + "\n";
      serve.Signal(SIGHUP);
      bool counted = false;
      for (int wait = 0; wait < 10'000 && !counted; ++wait) {
        counted = client.Get("/metrics").body.find(count) != std::string::npos;
        if (!counted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_TRUE(counted) << i << " " << count << client.Get("/metrics").body;
    }
    if (is_good) ++snapshot;
    if (i == reloads / 4) warm = serve.resident();
  }
  const double grown = serve.resident() - warm;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answered, reloads);
  EXPECT_EQ(client.Post("/v1/predict", ask).body, expected[snapshot % 2]);
  // The heap breathes by a few MB; a snapshot that stayed each time would be seen.
  EXPECT_LT(grown, 8e6);
  RecordProperty("grown_bytes", std::to_string(grown));
  RecordProperty("answered", answered.load());
  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(), 0);
}

TEST(ServeProgram, FinishesWhatHasBegunWhenItIsStopped) {
  ServeProcess serve({"--cluster", "gce-t4", "--listen", "127.0.0.1:0", "--drain", "20 s"});
  HttpClient client(serve.port());
  const std::string message = HttpClient::Message(
      "POST", "/v1/predict", R"({"workload":"resnet50","workers":8,"local_batch":32})");
  ASSERT_TRUE(client.Send(message.substr(0, message.size() - 5)));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  serve.Signal(SIGINT);
  EXPECT_TRUE(serve.Says("stopping"));
  ASSERT_TRUE(client.Send(message.substr(message.size() - 5)));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(serve.Wait(), 0);
}

// Interrupts while a request is open, for which the service waits.
class Interrupted : public ServeProcess {
 public:
  Interrupted()
      : ServeProcess({"--cluster", "gce-t4", "--listen", "127.0.0.1:0", "--drain", "60 s"}),
        client(port()) {
    const std::string message = HttpClient::Message(
        "POST", "/v1/predict", R"({"workload":"resnet50","workers":8,"local_batch":32})");
    rest = message.substr(message.size() - 5);
    EXPECT_TRUE(client.Send(message.substr(0, message.size() - 5)));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  HttpClient client;
  std::string rest;
};

// From the terminal, and from `timeout`, whom the terminal interrupted too.
TEST(ServeProgram, AnInterruptThatComesTwiceIsOne) {
  Interrupted serve;
  serve.Signal(SIGINT);
  serve.Signal(SIGTERM);
  EXPECT_TRUE(serve.Says("stopping"));
  serve.Signal(SIGHUP);  // there is nothing to read anew
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  ASSERT_TRUE(serve.client.Send(serve.rest));
  EXPECT_EQ(serve.client.Receive().status, 200);
  EXPECT_EQ(serve.Wait(), 0);
}

TEST(ServeProgram, AnotherInterruptEndsItAtOnce) {
  Interrupted serve;
  serve.Signal(SIGINT);
  EXPECT_TRUE(serve.Says("stopping"));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(), 128 + SIGTERM);
}

// Reading it anew would wait for whoever writes.
TEST(ServeProgram, TakesNoPipeForAFile) {
  const TempFolder folder;
  const std::string fifo = folder.Path("never.yaml");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const ProcessResult result =
      RunProcess({"/usr/bin/timeout", "--signal=TERM", "--preserve-status", "--kill-after=10", "1",
                  STEPCAST_PROGRAM, "serve", "--cluster", "gce-t4", "--workload-file", fifo,
                  "--listen", "127.0.0.1:0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("never.yaml: is a pipe; allowed: a file"), std::string::npos)
      << result.err;
}

TEST(ServeProgram, ServesGrpcWhereItIsBuilt) {
#ifndef STEPCAST_HAS_GRPC
  GTEST_SKIP() << "built without gRPC";
#endif
  ServeProcess serve({"--cluster", "gce-t4", "--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0"});
  EXPECT_TRUE(HttpClient(serve.port("grpc")).connected());
  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(), 0);
}

TEST(ServeProgram, WarnsOfOtherMachines) {
  ServeProcess serve({"--cluster", "gce-t4", "--listen", "0.0.0.0:0"});
  EXPECT_TRUE(serve.Says("can be reached from other machines")) << serve.errors();
}

TEST(WatchMetrics, WarnOfOtherMachines) {
  const TempFolder folder;
  const std::string log =
      folder.Write("train.log", "Epoch: [0][0/99]\tTime  0.400 ( 0.400)\tLoss 6.9 (6.9)\n");
  const auto told = [&](const std::string& address) {
    return RunProcess({STEPCAST_PROGRAM, "watch", log, "--for", "0 s", "--cluster", "gce-t4",
                       "--workload", "resnet50", "--workers", "8", "--local-batch", "32",
                       "--metrics", address})
        .err;
  };
  const std::string all = told("0.0.0.0:0");
  EXPECT_NE(all.find("/metrics answers, other machines too, without password\n"), std::string::npos)
      << all;
  const std::string own = told("127.0.0.1:0");
  EXPECT_NE(own.find("/metrics answers\n"), std::string::npos) << own;
}

TEST(ServeProgram, RefusesWhatMakesNoSense) {
  const struct {
    std::vector<std::string> words;
    const char* fragment;
  } cases[] = {
      {{}, "--cluster: is required"},
      {{"--cluster", "nowhere"}, "--cluster: 'nowhere' is not a shipped cluster"},
      {{"--cluster", "gce-t4", "--cluster", "gce-t4"}, "is the name of two clusters"},
      {{"--cluster", "gce-t4", "--listen", "8080"}, "--listen: '8080' is not an address"},
      {{"--cluster", "gce-t4", "--max-body", "64"}, "--max-body"},
      {{"--cluster", "gce-t4", "--threads", "0"}, "--threads: '0'"},
      {{"--cluster", "gce-t4", "--drain", "soon"}, "--drain"},
      {{"--cluster", "gce-t4", "--workload-file", "/nowhere.yaml"}, "/nowhere.yaml"},
      {{"--cluster", "gce-t4", "extra"}, "see stepcast serve --help"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words = {STEPCAST_PROGRAM, "serve"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const ProcessResult result = RunProcess(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(c.fragment), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace stepcast
