// The program, as an operator runs it: starts, answers, reads anew, stops.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
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
  explicit ServeProcess(const std::vector<std::string>& more) {
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
    std::string line;
    pollfd wait{out[0], POLLIN, 0};
    for (char c = 0; poll(&wait, 1, 20'000) == 1 && read(out[0], &c, 1) == 1 && c != '\n';)
      line += c;
    close(out[0]);
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(json.is_object()) << line << errors();
    if (json.is_object()) told_ = json;
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;
  ~ServeProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  std::uint16_t port(const char* key = "listen") const {
    const std::string address = told_.value(key, "");
    return static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
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

  folder.Write("mine.yaml", good + "link:\n  bandwidth: \"1 Gbit/s\"\n");
  serve.Signal(SIGHUP);
  EXPECT_TRUE(serve.Says("read anew: snapshot 2")) << serve.errors();
  EXPECT_NE(client.Post("/v1/predict", ask).body, first.body);
  EXPECT_EQ(client.Post("/v1/reload", "").body, R"({"snapshot":3})");

  serve.Signal(SIGTERM);
  EXPECT_EQ(serve.Wait(), 0);
  EXPECT_TRUE(client.IsClosed());
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

TEST(ServeProgram, CanBeInterruptedWhileAFileKeepsItWaiting) {
  const TempFolder folder;
  const std::string fifo = folder.Path("never.yaml");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const ProcessResult result =
      RunProcess({"/usr/bin/timeout", "--signal=TERM", "--preserve-status", "--kill-after=10", "1",
                  STEPCAST_PROGRAM, "serve", "--cluster", "gce-t4", "--workload-file", fifo,
                  "--listen", "127.0.0.1:0"});
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
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
