#include "microbench/steps/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <utility>

#include "data/record/network_profile.h"

namespace stepcast::steps {

using network::Address;
using network::Clock;
using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;
using network::SecondsToClock;

namespace {

void WaitUntil(Clock::time_point when) {
  // The timer takes some microseconds even then, as long as a small message.
  if (Clock::now() >= when) return;
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  const timespec at{static_cast<time_t>(nanoseconds / 1'000'000'000),
                    static_cast<long>(nanoseconds % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

// From one optimizer step to the next.
Timing TakeStep(const Training& training, bool out_of_time, Exchange* exchange) {
  Timing timing{{}, std::vector<double>(training.buckets.size(), 0)};
  TimedStep& step = timing.step;
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  const auto wait = [&](double seconds, double* part) {
    WaitUntil(now + SecondsToClock(seconds));
    const Clock::time_point then = std::exchange(now, Clock::now());
    *part += network::ClockToSeconds(now - then);
  };
  for (int micro = 1; micro < training.micro_steps; ++micro) {
    wait(training.forward_s, &step.forward_s);
    wait(training.backward_s, &step.backward_s);
  }
  wait(training.forward_s, &step.forward_s);
  const Clock::time_point computed = now + SecondsToClock(training.backward_s);
  if (exchange != nullptr) {
    for (std::size_t k = 0; k < training.buckets.size(); ++k) {
      WaitUntil(now + SecondsToClock(training.buckets[k].ready_s));
      exchange->Send(k, out_of_time, &timing);
    }
  }
  // Returns at once where an exchange took longer.
  wait(training.backward_s, &step.backward_s);
  if (exchange != nullptr) {
    exchange->Finish(&timing);
    wait(0, &step.backward_s);
    step.exposed_s = std::max(0.0, network::ClockToSeconds(now - computed));
    step.backward_s = std::max(0.0, step.backward_s - step.exposed_s);  // but for rounding
  }
  wait(training.update_s, &step.update_s);
  step.step_s = network::ClockToSeconds(now - begin);
  return timing;
}

}  // namespace

void Train(const Training& training, Exchange* exchange, LineSocket* line) {
  const Deadline end = Deadline::In(training.limit_s);
  std::vector<double> bucket_s(training.buckets.size(), 0);
  int counted = 0;
  bool over = false;
  for (int i = 0; !over; ++i) {
    const Timing timing = TakeStep(training, end.over(), exchange);
    // Workers who do not wait for each other go on until all have enough.
    if (i >= training.warm_up && counted < training.steps) {
      ++counted;
      line->Send(TimedMessage(timing.step).Line(), Deadline::In(kAnswerS));
      for (std::size_t k = 0; k < bucket_s.size(); ++k) bucket_s[k] += timing.bucket_s[k];
    }
    over = exchange != nullptr ? exchange->Over() : counted == training.steps || end.over();
  }
  if (counted == 0) return;
  for (std::size_t k = 0; k < bucket_s.size(); ++k) {
    line->Send(BucketTimeMessage(static_cast<int>(k), bucket_s[k] / counted).Line(),
               Deadline::In(kAnswerS));
  }
}

AllReduce::AllReduce(const Training& training) : training_(training) {
  double floats = 1;
  for (const GradientBucket& bucket : training.buckets) floats += bucket.floats;
  gradients_.assign(static_cast<std::size_t>(floats), 0.0F);
}

void AllReduce::Send(std::size_t k, bool out_of_time, Timing* timing) {
  if (k == 0) next_ = gradients_.data();
  const bool last = k + 1 == training_.buckets.size();
  const auto size = static_cast<std::size_t>(training_.buckets[k].floats);
  if (last) next_[size] = out_of_time ? 1 : 0;
  const Clock::time_point before = Clock::now();
  AddUp(k, next_, size + (last ? 1 : 0));
  timing->bucket_s[k] = network::ClockToSeconds(Clock::now() - before);
  timing->step.synchronising_s += timing->bucket_s[k];
  next_ += size;
  if (last) over_ = *next_ > 0;
}

void AllReduce::Finish(Timing* /*timing*/) { ++steps_; }

bool AllReduce::Over() const { return over_ || steps_ == training_.warm_up + training_.steps; }

namespace {

LineSocket LineToTheHost() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1UL);
  return LineSocket(network::Socket(dup(STDIN_FILENO)));
}

// Whether it went well. Throws NetworkError where nobody is there to be told.
bool RunWork(const DoWork& do_work, double begins_within_s, LineSocket* line) {
  const Message first = Message::Parse(line->Read(Deadline::In(begins_within_s)));
  const Deadline deadline = Deadline::In(kAnswerS);
  const auto next = [&] { return Message::Parse(line->Read(deadline)); };
  std::string why;
  try {
    const Work work = ReadWork(first, kMostProbedHosts, next);
    std::vector<Address> hosts;
    for (std::size_t i = 0; i < work.ranks.size() + work.server_ranks.size(); ++i) {
      hosts.push_back(network::Resolve(next().Text("address"), 1).front());
    }
    do_work(work, hosts, line);
  } catch (const std::exception& e) {
    why = e.what();
    if (why.empty()) why = "it failed";
  }
  Message last(why.empty() ? kDone : kFailed);
  // A line of a library's own may be longer than one of ours.
  if (!why.empty()) last.Set("why", why.substr(0, 500));
  line->Send(last.Line(), Deadline::In(kAnswerS));
  return why.empty();
}

}  // namespace

int RunProgram(const DoWork& do_work) {
  LineSocket line = LineToTheHost();
  bool good = false;
  try {
    good = RunWork(do_work, kAnswerS, &line);
  } catch (const NetworkError&) {
    return 1;
  }
  // Neither a library's threads nor its connections are worth a wait.
  std::fflush(nullptr);
  _exit(good ? 0 : 1);
}

void RunProgramToTheEnd(const DoWork& do_work) {
  LineSocket line = LineToTheHost();
  try {
    while (true) RunWork(do_work, kLongestRunS, &line);
  } catch (const NetworkError&) {
  }
}

}  // namespace stepcast::steps
