// stepcast-gloo: one worker of a training whose gradients Gloo adds up, and whose compute is waited
// for. A program of its own: what a stranger's bytes, a peer that is gone or too little memory do
// to the library ends this program, and its host says so. Work comes in on its standard input, a
// socket to the host that started it, and what was timed goes out there.
#include <fcntl.h>
#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/network/socket.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {
namespace {

using network::Address;
using network::Clock;
using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;
using network::SecondsToClock;

// How long Gloo waits for another to connect is five times this.
constexpr std::chrono::seconds kConnect{3};
constexpr double kPatienceS = 30;

double Between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// All workers connected to each other.
class Mesh : public gloo::Context {
 public:
  Mesh(const Work& work, const std::vector<Address>& hosts, LineSocket* line)
      : gloo::Context(work.worker, static_cast<int>(hosts.size())) {
    gloo::transport::tcp::attr attr;
    attr.hostname = hosts[static_cast<std::size_t>(rank)].host();
    device_ = gloo::transport::tcp::CreateDevice(attr);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(kConnect);
    const Deadline deadline = Deadline::In(kPatienceS);
    for (int to = 0; to < size; ++to) {
      if (to == rank) continue;
      const auto bytes = transportContext_->createPair(to)->address().bytes();
      const gloo::transport::tcp::Address own(bytes);
      Address at;
      at.storage = own.getSockaddr();
      at.length = sizeof at.storage;
      line->Send(ListeningMessage({rank, to, at.port(), static_cast<int>(own.getSeq())}).Line(),
                 deadline);
    }
    for (int i = 0; i + 1 < size; ++i) {
      const Listening other = ReadListening(Message::Parse(line->Read(deadline)), size);
      if (other.to != rank || other.from == rank) throw NetworkError("told of another's port");
      // Wherever it says that it waits, it is at its host's address.
      const Address at = hosts[static_cast<std::size_t>(other.from)].WithPort(other.port);
      transportContext_->getPair(other.from)
          ->connect(gloo::transport::tcp::Address(at.storage, other.sequence).bytes());
    }
  }
};

void WaitUntil(Clock::time_point when) {
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  const timespec at{static_cast<time_t>(nanoseconds / 1'000'000'000),
                    static_cast<long>(nanoseconds % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

class Worker {
 public:
  Worker(const Work& work, const std::vector<Address>& hosts, LineSocket* line)
      : training_(work.training), line_(line) {
    double floats = 1;
    for (const GradientBucket& bucket : training_.buckets) floats += bucket.floats;
    gradients_.assign(static_cast<std::size_t>(floats), 0.0F);
    bucket_s_.assign(training_.buckets.size(), 0);
    if (hosts.size() > 1) mesh_ = std::make_shared<Mesh>(work, hosts, line);
  }

  void Run() {
    begin_ = Clock::now();
    int counted = 0;
    for (int i = 0; i < training_.warm_up + training_.steps; ++i) {
      if (i == training_.warm_up) std::fill(bucket_s_.begin(), bucket_s_.end(), 0);
      const TimedStep step = Step();
      if (i >= training_.warm_up) {
        ++counted;
        line_->Send(TimedMessage(step).Line(), Deadline::In(kPatienceS));
      }
      if (over_) break;
    }
    if (counted == 0) return;
    for (std::size_t k = 0; k < bucket_s_.size(); ++k) {
      line_->Send(BucketTimeMessage(static_cast<int>(k), bucket_s_[k] / counted).Line(),
                  Deadline::In(kPatienceS));
    }
  }

 private:
  // From one optimizer step to the next.
  TimedStep Step() {
    TimedStep timed;
    const Clock::time_point begin = Clock::now();
    Clock::time_point now = begin;
    const auto wait = [&](double seconds, double* part) {
      WaitUntil(now + SecondsToClock(seconds));
      const Clock::time_point then = std::exchange(now, Clock::now());
      *part += Between(then, now);
    };
    for (int micro = 1; micro < training_.micro_steps; ++micro) {
      wait(training_.forward_s, &timed.forward_s);
      wait(training_.backward_s, &timed.backward_s);
    }
    wait(training_.forward_s, &timed.forward_s);
    // Compute is waiting: an all-reduce runs beside it without a thread of its own.
    for (std::size_t k = 0, from = 0; k < training_.buckets.size(); ++k) {
      const GradientBucket& bucket = training_.buckets[k];
      WaitUntil(now + SecondsToClock(bucket.ready_s));
      const auto size = static_cast<std::size_t>(bucket.floats);
      const double seconds = AddUp(k, &gradients_[from], size);
      bucket_s_[k] += seconds;
      timed.synchronising_s += seconds;
      from += size;
    }
    const Clock::time_point computed = now + SecondsToClock(training_.backward_s);
    wait(training_.backward_s, &timed.backward_s);
    if (!training_.buckets.empty() && mesh_) {
      // `wait` has returned at once where synchronisation took longer.
      timed.exposed_s = std::max(0.0, Between(computed, now));
      timed.backward_s -= timed.exposed_s;
    }
    if (!mesh_) over_ = OutOfTime();
    wait(training_.update_s, &timed.update_s);
    timed.step_s = Between(begin, now);
    return timed;
  }

  bool OutOfTime() const { return Between(begin_, Clock::now()) > training_.limit_s; }

  // Behind the last bucket there is a number, which tells all whether one of them is out of time.
  double AddUp(std::size_t k, float* gradients, std::size_t size) {
    if (!mesh_) return 0;
    const bool last = k + 1 == training_.buckets.size();
    if (last) gradients[size] = OutOfTime() ? 1 : 0;
    gloo::AllreduceOptions options(mesh_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(gradients, size + (last ? 1 : 0));
    options.setTag(static_cast<std::uint32_t>(k % kMostBuckets));
    using Add = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(static_cast<Add>(&gloo::sum<float>));
    options.setTimeout(std::chrono::milliseconds(
        static_cast<std::int64_t>(1e3 * std::max(1.0, training_.limit_s))));
    const Clock::time_point before = Clock::now();
    gloo::allreduce(options);
    const double seconds = Between(before, Clock::now());
    if (last) over_ = gradients[size] > 0;
    return seconds;
  }

  const Training& training_;
  LineSocket* line_;
  std::shared_ptr<Mesh> mesh_;  // none of a worker that is alone
  std::vector<float> gradients_;
  std::vector<double> bucket_s_;
  Clock::time_point begin_;
  bool over_ = false;
};

int Main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1UL);
  LineSocket line(network::Socket(dup(STDIN_FILENO)));
  const Deadline deadline = Deadline::In(kPatienceS);
  const auto next = [&] { return Message::Parse(line.Read(deadline)); };
  std::string why;
  try {
    const Work work = ReadWork(next(), kMostProbedHosts, next);
    std::vector<Address> hosts;
    for (std::size_t i = 0; i < work.ranks.size(); ++i) {
      hosts.push_back(network::Resolve(next().Text("address"), 1).front());
    }
    Worker(work, hosts, &line).Run();
  } catch (const std::exception& e) {
    why = e.what();
    if (why.empty()) why = "it failed";
  }
  try {
    Message last(why.empty() ? kDone : kFailed);
    // A line of the library's own may be longer than one of ours.
    if (!why.empty()) last.Set("why", why.substr(0, 500));
    line.Send(last.Line(), Deadline::In(kPatienceS));
  } catch (const NetworkError&) {
    return 1;
  }
  // Neither the library's threads nor its connections are worth a wait.
  std::fflush(nullptr);
  _exit(why.empty() ? 0 : 1);
}

}  // namespace
}  // namespace stepcast::steps

int main() { return stepcast::steps::Main(); }
