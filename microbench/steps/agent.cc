#include "microbench/steps/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "data/record/input_error.h"
#include "microbench/network/protocol.h"
#include "microbench/script/spawn.h"
#include "microbench/steps/shaping.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {
namespace {

using network::Address;
using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;

// What is measured by a worker's program, the library that it is built with, and its package.
struct Needed {
  const char* measured = "";
  const char* library = "";
  const char* package = "";
};
Needed NeededBy(const Training& training) {
  if (training.servers) return {"servers", "gRPC", "libgrpc++-dev"};
  if (training.library == Library::kMpi) return {"collectives", "MPI", "libopenmpi-dev"};
  return {"steps", "Gloo", "libgloo-dev"};
}

// The program of a worker or of servers, which ends with this.
class Worker {
 public:
  explicit Worker(const std::string& program) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
      throw NetworkError(std::string("no socket for a worker: ") + std::strerror(errno));
    }
    line_ = LineSocket(network::Socket(pair[0]));
    // What the library prints is news, not an answer.
    const int error = script::SpawnApart(
        {program}, {}, {{pair[1], STDIN_FILENO}, {STDERR_FILENO, STDOUT_FILENO}}, &pid_);
    close(pair[1]);
    if (error != 0) {
      pid_ = 0;
      throw NetworkError(fmt::format("cannot run {}: {}", program, std::strerror(error)));
    }
  }
  ~Worker() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  LineSocket& line() { return line_; }

  // Has it end in order, if it does so in time.
  void Finish(const Deadline& deadline) {
    line_ = LineSocket();
    constexpr int kNoticeMs = 10;
    while (pid_ != 0 && !deadline.over()) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
      if (pid_ != 0) poll(nullptr, 0, kNoticeMs);
    }
  }

 private:
  LineSocket line_;
  pid_t pid_ = 0;
};

class Agent {
 public:
  Agent(const network::AgentOptions& options, const Programs& programs, network::Door* door,
        const std::string& shaped)
      : options_(options), programs_(programs), member_(network::Join(&options_, door)) {
    if (!shaped.empty()) shaper_.emplace(shaped);
  }

  std::string Run() {
    double silent_s = 0;  // while others train without this host
    while (true) {
      const Message message = Next(silent_s + network::kPatienceS);
      silent_s = 0;
      if (message.verb() == network::kEnd) {
        if (staying_ && staying_problem_.empty()) {
          staying_->Finish(options_.deadline.AtMost(network::kGraceS));
        }
        return network::PlainText(message, "problem");
      }
      if (message.verb() == kRest) {
        silent_s = message.Number("limit", 0, kLongestRunS) + kStartS;
      } else if (message.verb() == kRun) {
        const Work work = ReadWork(message, options_.of, [this] { return Next(network::kGraceS); });
        if (const auto ended = Train(work)) return *ended;
      } else if (message.verb() == kMayShape || message.verb() == kShape) {
        const std::string problem = Shape(message.verb(), ReadConditions(message));
        const bool receives = shaper_ && shaper_->receives();
        Tell(problem.empty() ? Message(kShaped).Set(kReceives, receives ? 1 : 0)
                             : Message(kFailed).Set("why", problem));
      } else if (message.verb() != kStop && message.verb() != kListens) {
        // "stop" and "listens" may come to a run that has failed here meanwhile.
        throw NetworkError("sent no run");
      }
    }
  }

 private:
  Message Next(double within_s) {
    return Message::Parse(member_.master.Read(options_.deadline.AtMost(within_s)));
  }
  void Tell(const Message& message) {
    member_.master.Send(message.Line(), options_.deadline.AtMost(network::kGraceS));
  }

  // Why the interface does not have these conditions, or cannot have them.
  std::string Shape(const std::string& verb, const Conditions& conditions) {
    if (!shaper_) return "it was started without --shape-interface";
    if (verb == kMayShape) {
      if (std::string why = shaper_->WhyNot(conditions); !why.empty()) return why;
      const std::string own = network::InterfaceOf(member_.door->address());
      if (own == shaper_->interface()) return "";
      return fmt::format("{} is not the interface by which it meets the others, {}",
                         shaper_->interface(), own);
    }
    try {
      shaper_->Set(conditions);
      return "";
    } catch (const NetworkError& e) {
      return e.what();
    }
  }

  // Why the probe ended meanwhile, where it did.
  std::optional<std::string> Train(const Work& work) {
    std::optional<std::string> ended;
    std::string problem;
    const bool stays = work.training.library == Library::kMpi;
    std::unique_ptr<Worker> own;  // which ends with this work
    std::unique_ptr<Worker>& worker = stays ? staying_ : own;
    try {
      const std::string& program = programs_.Of(work.training);
      if (program.empty()) {
        throw WorkerError{
            fmt::format("its stepcast was built without {}", NeededBy(work.training).library)};
      }
      if (stays && !staying_problem_.empty()) throw WorkerError{staying_problem_};
      if (!worker) worker = std::make_unique<Worker>(program);
      Start(work, &worker->line());
      problem = Relay(work, &worker->line(), &ended);
    } catch (const WorkerError& e) {
      problem = e.why;
    }
    if (stays && staying_problem_.empty()) staying_problem_ = problem;
    if (!ended) {
      Tell(problem.empty() ? Message(kDone) : Message(kFailed).Set("why", problem));
    }
    return ended;
  }

  // What is wrong with the worker, and not with the coordinator.
  struct WorkerError {
    std::string why;
  };
  template <class Act>
  static auto OfWorker(const Act& act) {
    try {
      return act();
    } catch (const NetworkError& e) {
      throw WorkerError{std::string("its worker: ") + e.what()};
    }
  }

  void Start(const Work& work, LineSocket* line) const {
    OfWorker([&] {
      const Deadline deadline = options_.deadline.AtMost(kStartS);
      for (const Message& message : WorkMessages(work)) line->Send(message.Line(), deadline);
      std::vector<int> ranks = work.ranks;
      ranks.insert(ranks.end(), work.server_ranks.begin(), work.server_ranks.end());
      for (const int rank : ranks) {
        const Address& host = rank == options_.rank ? member_.door->address()
                                                    : member_.peers[static_cast<std::size_t>(rank)];
        line->Send(Message("address").Set("address", host.host()).Line(), deadline);
      }
    });
  }

  // Passes on what the worker and the coordinator tell each other until the worker is done. Why it
  // failed, empty where it did not.
  std::string Relay(const Work& work, LineSocket* line, std::optional<std::string>* ended) {
    const Deadline deadline = options_.deadline.AtMost(work.training.longest_s() + kStartS);
    while (!deadline.over()) {
      bool idle = true;
      if (const auto text = OfWorker([&] { return line->TryRead(); })) {
        idle = false;
        const Message told = OfWorker([&] { return Message::Parse(*text); });
        if (told.verb() == kDone) return "";
        if (told.verb() == kFailed) {
          return OfWorker([&] { return network::PlainText(told, "why"); });
        }
        Tell(told);
      }
      if (const auto text = member_.master.TryRead()) {
        idle = false;
        const Message word = Message::Parse(*text);
        if (word.verb() == network::kEnd) {
          *ended = network::PlainText(word, "problem");
          return "";
        }
        if (word.verb() == kStop) return "another worker failed";
        ReadListening(word, kMostServers, static_cast<int>(work.ranks.size()));
        OfWorker([&] { line->Send(word.Line(), options_.deadline.AtMost(network::kGraceS)); });
      }
      if (!idle) continue;
      pollfd polled[] = {{line->socket().fd(), POLLIN, 0},
                         {member_.master.socket().fd(), POLLIN, 0}};
      constexpr int kNoticeMs = 50;
      poll(polled, 2, kNoticeMs);
    }
    if (deadline.stopped()) throw NetworkError("interrupted");
    return "its worker did not end in time";
  }

  network::AgentOptions options_;
  const Programs& programs_;
  network::Membership member_;
  std::optional<Shaper> shaper_;
  // MPI starts once in a job, and a rank that goes ends it for all: its worker does one work after
  // the other, and what fails leaves it there until the probe is over.
  std::unique_ptr<Worker> staying_;
  std::string staying_problem_;
};

}  // namespace

Programs FindPrograms(const std::vector<std::string>& folders) {
  Programs programs;
  for (const std::string& folder : folders) {
    for (const auto& [name, program] :
         {std::pair("stepcast-gloo", &programs.gloo), std::pair("stepcast-mpi", &programs.mpi),
          std::pair("stepcast-parameters", &programs.servers)}) {
      std::error_code error;
      const std::string path = folder + "/" + name;
      if (program->empty() && std::filesystem::exists(path, error)) *program = path;
    }
  }
  return programs;
}

void RequireProgram(const Programs& programs, const Training& training) {
  if (!programs.Of(training).empty()) return;
  const Needed needed = NeededBy(training);
  throw InputError(
      {"", 0, needed.measured}, "",
      fmt::format("cannot be measured: this stepcast was built without {}", needed.library),
      fmt::format("a build where CMake finds {}", needed.package));
}

std::string RunAgent(const network::AgentOptions& options, const Programs& programs,
                     network::Door* door, const std::string& shaped) {
  return network::ByCoordinator(options,
                                [&] { return Agent(options, programs, door, shaped).Run(); });
}

}  // namespace stepcast::steps
