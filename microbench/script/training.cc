#include "microbench/script/training.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "data/io/training_steps_file.h"
#include "data/record/input_error.h"
#include "data/values/size_limits.h"
#include "microbench/script/spawn.h"

namespace stepcast::script {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLastLines = 10;
constexpr int kPollMs = 50;
constexpr double kGraceS = 5;  // from asking to ending

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What this process has started, and what those left behind have: who loses its parent gets us.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream list(thread.path() / "children");
    children.insert(children.end(), std::istream_iterator<pid_t>(list),
                    std::istream_iterator<pid_t>());
  }
  return children;
}

class Process {
 public:
  explicit Process(const TrainingOptions& options) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    before_ = Children();
    std::array<int, 2> output{};
    if (pipe2(output.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the command");
    output_ = output[0];
    fcntl(output_, F_SETFL, O_NONBLOCK);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int error = SpawnApart(
        options.command, options.variables,
        {{nothing, STDIN_FILENO}, {output[1], STDOUT_FILENO}, {output[1], STDERR_FILENO}}, &pid_);
    if (nothing >= 0) close(nothing);
    close(output[1]);
    if (error != 0) {
      close(output_);
      throw InputError({"", 0, "COMMAND"}, options.command.front(),
                       std::string("cannot be run: ") + std::strerror(error), "a program");
    }
  }
  ~Process() {
    End();
    close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int output() const { return output_; }

  // Whether the command itself has ended.
  bool Ended() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ == 0;
  }
  int exit_code() const {
    constexpr int kSignalled = 128;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : kSignalled + WTERMSIG(status_);
  }

  // Asks the command and all that it started to end, and after a while makes them.
  void End() {
    const Clock::time_point start = Clock::now();
    for (bool asked = false; true; asked = true) {
      const bool ended = Ended();
      const std::vector<pid_t> left = Left();
      if (ended && left.empty()) return;
      const bool patient = Since(start) < kGraceS;
      if (!asked || !patient) {
        const int signal = patient ? SIGTERM : SIGKILL;
        if (!ended) kill(-pid_, signal);
        for (const pid_t pid : left) kill(pid, signal);
      } else if (ended) {
        for (const pid_t pid : left) kill(pid, SIGTERM);  // that came to us since
      }
      poll(nullptr, 0, kPollMs);
    }
  }

 private:
  // The processes that the command started and left behind; those that have ended are waited for.
  std::vector<pid_t> Left() {
    std::vector<pid_t> left;
    for (const pid_t pid : Children()) {
      if (pid == pid_ || std::count(before_.begin(), before_.end(), pid) > 0) continue;
      if (waitpid(pid, nullptr, WNOHANG) == 0) left.push_back(pid);
    }
    return left;
  }

  pid_t pid_ = 0;
  int status_ = 0;
  int output_ = -1;
  std::vector<pid_t> before_;
};

// The lines of what a command prints, however it comes; of a long one, the beginning.
class Lines {
 public:
  template <class Take>
  void Add(std::string_view bytes, const Take& take) {
    for (const char c : bytes) {
      // A progress bar writes its line anew.
      if (c != '\n' && c != '\r') {
        if (line_.size() < kLongestLogLine) line_ += c;
      } else if (!line_.empty()) {
        Finish(take);
      }
    }
  }
  template <class Take>
  void Finish(const Take& take) {
    if (!line_.empty()) take(line_);
    line_.clear();
  }

 private:
  std::string line_;
};

// Times of steps that the callback has written so far, whole lines of them.
std::vector<double> StepsOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t end = text.rfind('\n');
  std::vector<double> times;
  if (end == std::string::npos || text.find('\n') == end) return times;  // the header alone
  const std::vector<HostSteps> hosts = ParseTrainingSteps(text.substr(0, end + 1), path);
  for (const TrainingStep& step : hosts.front().steps) {
    times.push_back(static_cast<double>(step.end_ns - step.begin_ns) * 1e-9);
  }
  return times;
}

}  // namespace

Training RunTraining(const TrainingOptions& options) {
  Training training;
  std::vector<double> all;
  const auto wanted = static_cast<std::size_t>(options.warm_up + options.steps);
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  Lines lines;
  const auto take_line = [&](const std::string& line) {
    training.last_lines.push_back(line);
    if (training.last_lines.size() > kLastLines) {
      training.last_lines.erase(training.last_lines.begin());
    }
    if (options.pattern == nullptr) return;
    if (const auto time = options.pattern->Find(line)) {
      all.push_back(*time);
      last = Clock::now();
    }
  };
  {
    Process process(options);
    const auto read_all = [&] {
      std::array<char, 1 << 16> buffer{};
      for (ssize_t n = 0; (n = read(process.output(), buffer.data(), buffer.size())) > 0;) {
        lines.Add({buffer.data(), static_cast<std::size_t>(n)}, take_line);
        if (all.size() >= wanted) return true;
        if (Since(start) > options.limit_s) return true;
      }
      return false;
    };
    while (true) {
      pollfd polled{process.output(), POLLIN, 0};
      poll(&polled, 1, kPollMs);
      // Asked before reading: what it wrote by then is read.
      const bool ended = process.Ended();
      const bool more = read_all();
      if (options.pattern == nullptr) {
        std::vector<double> times = StepsOf(options.steps_file);
        if (times.size() > all.size()) last = Clock::now();
        all = std::move(times);
      }
      if (options.progress) options.progress(static_cast<int>(std::min(all.size(), wanted)));
      if (all.size() >= wanted) {
        training.end = TrainingEnd::kEnough;
        break;
      }
      if (options.interrupted != nullptr && *options.interrupted) {
        training.end = TrainingEnd::kInterrupted;
        break;
      }
      if (ended && !more) {
        lines.Finish(take_line);
        training.end = TrainingEnd::kEnded;
        training.exit_code = process.exit_code();
        break;
      }
      if (Since(start) > options.limit_s) {
        training.end = TrainingEnd::kOutOfTime;
        break;
      }
      // A pipe that nobody holds any more is always ready.
      if ((polled.revents & POLLHUP) != 0 && !ended) poll(nullptr, 0, kPollMs);
    }
    training.elapsed_s = Since(start);
    training.since_step_s = Since(last);
  }
  const std::size_t warm_up = std::min(all.size(), static_cast<std::size_t>(options.warm_up));
  training.warm_up_seen = static_cast<int>(warm_up);
  training.step_s.assign(all.begin() + static_cast<std::ptrdiff_t>(warm_up),
                         all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), wanted)));
  return training;
}

}  // namespace stepcast::script
