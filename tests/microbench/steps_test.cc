// Trainings between hosts that are threads of this process, each with a worker of its own on the
// loopback; and the messages that they tell each other.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cmath>
#include <numeric>
#include <thread>

#include "microbench/network/socket.h"
#include "microbench/network/token.h"
#include "microbench/steps/agent.h"
#include "microbench/steps/coordinator.h"
#include "microbench/steps/program.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {
namespace {

using network::Address;
using network::Deadline;
using network::Message;
using network::NetworkError;

// ---- Messages.

Work ReadAgain(const std::vector<Message>& messages, int hosts) {
  std::size_t read = 1;
  return ReadWork(messages.at(0), hosts, [&] {
    if (read == messages.size()) throw NetworkError("no more");
    return Message::Parse(messages[read++].Line());
  });
}

RC_GTEST_PROP(StepsMessage, WorkIsReadAsItWasWritten, ()) {
  Work work;
  work.ranks = {3, 0, 2};
  work.rank = work.ranks[*rc::gen::inRange<std::size_t>(0, 3)];
  Training& training = work.training;
  training.forward_s = *rc::gen::inRange(0, 1000) * 1e-3;
  training.backward_s = *rc::gen::inRange(0, 1000) * 1e-3;
  training.update_s = 1.0 / 3;
  training.micro_steps = *rc::gen::inRange(1, 9);
  training.warm_up = *rc::gen::inRange(0, 9);
  training.steps = *rc::gen::inRange(1, 99);
  training.limit_s = 60;
  training.library = *rc::gen::element(Library::kGloo, Library::kMpi);
  const int buckets = *rc::gen::inRange(0, 20);
  for (int k = 0; k < buckets; ++k) {
    training.buckets.push_back(
        {1.0 + *rc::gen::inRange(0, 1'000'000), training.backward_s * k / buckets});
  }
  if (buckets > 0 && *rc::gen::arbitrary<bool>()) {
    Servers& servers = training.servers.emplace();
    servers.count = *rc::gen::inRange(1, 4);
    servers.asynchronous = *rc::gen::arbitrary<bool>();
    servers.pipelined = *rc::gen::arbitrary<bool>();
    servers.bound = 0;
    if (servers.asynchronous) {
      servers.bound.reset();
      if (*rc::gen::arbitrary<bool>()) servers.bound = *rc::gen::inRange(0, 1000);
    }
    for (int k = 0; k < buckets; ++k) {
      for (int server = 0; server < servers.count; ++server) {
        servers.parts.push_back({k, server, 1.0 + *rc::gen::inRange(0, 1000)});
      }
    }
    // Some beside workers, and one host may have several.
    for (int server = 0; server < servers.count; ++server) {
      work.server_ranks.push_back(*rc::gen::inRange(0, 4));
    }
    work.word = network::RandomWord();
  }
  const Work again = ReadAgain(WorkMessages(work), 4);
  RC_ASSERT(again.ranks == work.ranks);
  RC_ASSERT(again.rank == work.rank);
  RC_ASSERT(again.server_ranks == work.server_ranks);
  RC_ASSERT(again.word == work.word);
  RC_ASSERT(again.training.servers.has_value() == training.servers.has_value());
  if (training.servers) {
    const Servers& read = *again.training.servers;
    RC_ASSERT(read.count == training.servers->count);
    RC_ASSERT(read.asynchronous == training.servers->asynchronous);
    RC_ASSERT(read.pipelined == training.servers->pipelined);
    RC_ASSERT(read.bound == training.servers->bound);
    RC_ASSERT(read.parts.size() == training.servers->parts.size());
    for (std::size_t i = 0; i < read.parts.size(); ++i) {
      RC_ASSERT(read.parts[i].bucket == training.servers->parts[i].bucket);
      RC_ASSERT(read.parts[i].server == training.servers->parts[i].server);
      RC_ASSERT(read.parts[i].floats == training.servers->parts[i].floats);
    }
  }
  RC_ASSERT(again.training.forward_s == training.forward_s);
  RC_ASSERT(again.training.backward_s == training.backward_s);
  RC_ASSERT(again.training.update_s == training.update_s);
  RC_ASSERT(again.training.micro_steps == training.micro_steps);
  RC_ASSERT(again.training.warm_up == training.warm_up);
  RC_ASSERT(again.training.steps == training.steps);
  RC_ASSERT(again.training.limit_s == training.limit_s);
  RC_ASSERT(again.training.library == training.library);
  RC_ASSERT(again.training.buckets.size() == training.buckets.size());
  for (std::size_t k = 0; k < training.buckets.size(); ++k) {
    RC_ASSERT(again.training.buckets[k].floats == training.buckets[k].floats);
    RC_ASSERT(again.training.buckets[k].ready_s == training.buckets[k].ready_s);
  }
}

TEST(StepsMessage, WorkThatCannotBeIsRefused) {
  Work good;
  good.ranks = {0, 1};
  good.training.backward_s = 0.5;
  good.training.buckets = {{10, 0.1}, {20, 0.5}};
  EXPECT_NO_THROW(ReadAgain(WorkMessages(good), 2));
  const auto refused = [&](auto change, int hosts = 2) {
    Work work = good;
    change(&work);
    EXPECT_THROW(ReadAgain(WorkMessages(work), hosts), NetworkError);
  };
  refused([](Work* w) { w->ranks = {0, 0}; });
  refused([](Work* w) { w->ranks = {0, 2}; });
  refused([](Work* w) { w->rank = 2; });
  refused([](Work*) {}, 1);
  refused([](Work* w) { w->training.buckets[0].floats = 0.5; });
  refused([](Work* w) { w->training.buckets[0].floats = 1.5; });
  refused([](Work* w) { w->training.buckets[0].floats = 2 * kMostFloats; });
  refused([](Work* w) {
    w->training.buckets[0].floats = w->training.buckets[1].floats = 0.75 * kMostFloats;
  });
  refused([](Work* w) { w->training.buckets[1].ready_s = 0.6; });
  refused([](Work* w) { w->training.forward_s = std::nan(""); });
  refused([](Work* w) { w->training.micro_steps = 0; });
  refused([](Work* w) { w->training.steps = 0; });
  refused([](Work* w) { w->training.library = static_cast<Library>(kLibraryNames.size()); });
  Work served = good;
  served.ranks = {0};
  served.server_ranks = {1};
  served.word = std::string(kWordBytes, 'a');
  served.training.servers = {.count = 1, .bound = 0, .parts = {{0, 0, 10}, {1, 0, 20}}};
  good = served;
  EXPECT_NO_THROW(ReadAgain(WorkMessages(good), 2));
  refused([](Work* w) { w->server_ranks = {2}; });
  refused([](Work* w) {
    w->server_ranks = {0};
    w->rank = 1;
  });
  refused([](Work* w) { w->word = "short"; });
  refused([](Work* w) { w->training.servers->bound = 1; });
  refused([](Work* w) { w->training.servers->bound.reset(); });
  refused([](Work* w) { w->training.servers->parts.pop_back(); });
  refused([](Work* w) { w->training.servers->parts = {{0, 0, 10}, {0, 0, 20}}; });
  refused([](Work* w) { w->training.servers->parts = {{1, 0, 10}, {0, 0, 20}}; });
  refused([](Work* w) { w->training.servers->parts[0].server = 1; });
  refused([](Work* w) { w->training.servers->parts[0].floats = 2 * kMostFloatsOfPart; });
  std::vector<Message> torn = WorkMessages(good);
  torn.pop_back();
  EXPECT_THROW(ReadAgain(torn, 2), NetworkError);
}

TEST(StepsMessage, AnswersAreWithinTheirRange) {
  EXPECT_EQ(ReadListening(ListeningMessage({1, 0, 4000, 7}), 2, 2).sequence, 7);
  EXPECT_THROW(ReadListening(ListeningMessage({1, 2, 4000, 7}), 2, 2), NetworkError);
  EXPECT_THROW(ReadListening(ListeningMessage({2, 1, 4000, 7}), 2, 2), NetworkError);
  EXPECT_THROW(ReadListening(ListeningMessage({1, 0, 0, 7}), 2, 2), NetworkError);
  const auto timed = [](double step_s, double forward_s) {
    TimedStep step;
    step.step_s = step_s;
    step.forward_s = forward_s;
    step.synchronising_s = 5;
    step.bytes = 4e9;
    return ReadTimed(TimedMessage(step));
  };
  EXPECT_EQ(timed(6, 1).synchronising_s, 5);
  EXPECT_THROW(timed(kLongestRunS * 1.01, 1), NetworkError);
  EXPECT_EQ(timed(6, 1).bytes, 4e9);
  EXPECT_THROW(timed(0, 1), NetworkError);
  EXPECT_THROW(timed(6, -1), NetworkError);
  std::vector<double> seconds(2, 0);
  TakeBucketTime(BucketTimeMessage(1, 0.25), &seconds);
  EXPECT_EQ(seconds, (std::vector<double>{0, 0.25}));
  EXPECT_THROW(TakeBucketTime(BucketTimeMessage(2, 0.25), &seconds), NetworkError);
}

// What is told of a step comes back where it was, and no number is larger than it can be.
TEST(StepsMessage, EachNumberOfAStepIsItsOwn) {
  const std::vector<std::pair<double TimedStep::*, double>> fields = {
      {&TimedStep::step_s, kLongestRunS},
      {&TimedStep::forward_s, kLongestRunS},
      {&TimedStep::backward_s, kLongestRunS},
      {&TimedStep::exposed_s, kLongestRunS},
      {&TimedStep::update_s, kLongestRunS},
      {&TimedStep::synchronising_s, kLongestRunS},
      {&TimedStep::push_s, kLongestRunS},
      {&TimedStep::pull_s, kLongestRunS},
      {&TimedStep::server_update_s, kLongestRunS},
      {&TimedStep::held_s, kLongestRunS},
      {&TimedStep::staleness, 1e9},
      {&TimedStep::messages, 2e6},
      {&TimedStep::bytes, 128e9}};
  TimedStep step;
  for (std::size_t i = 0; i < fields.size(); ++i)
    step.*fields[i].first = 1.5 + static_cast<double>(i);
  const TimedStep read = ReadTimed(Message::Parse(TimedMessage(step).Line()));
  for (const auto& [field, most] : fields) {
    EXPECT_EQ(read.*field, step.*field);
    for (const double value : {most, most * 1.01}) {
      TimedStep changed = step;
      changed.*field = value;
      const auto again = [&] { return ReadTimed(TimedMessage(changed)).*field; };
      if (value == most) {
        EXPECT_EQ(again(), most);
      } else {
        EXPECT_THROW(again(), NetworkError) << most;
      }
    }
  }
  EXPECT_THROW(ReadTimed(Message(kDone)), NetworkError);
}

TEST(StepsMessage, AWorkerIsWhereItsRankStands) {
  Work work;
  work.ranks = {3, 0, 2};
  for (const auto& [rank, worker] :
       {std::pair(3, 0), std::pair(0, 1), std::pair(2, 2), std::pair(1, -1)}) {
    work.rank = rank;
    EXPECT_EQ(work.worker(), worker) << rank;
  }
}

// As many as can be, and one more.
TEST(StepsMessage, LimitsOfWorkAreWhereTheyAreSaid) {
  const auto read = [](const auto& change) {
    Work work;
    work.ranks = {0, 1};
    work.training.backward_s = 0.5;
    work.training.buckets = {{10, 0.1}};
    change(&work.training);
    return ReadAgain(WorkMessages(work), 2).training;
  };
  EXPECT_EQ(read([](Training* t) { t->forward_s = t->update_s = 3600; }).forward_s, 3600);
  EXPECT_EQ(read([](Training* t) { t->backward_s = t->buckets[0].ready_s = 3600; }).backward_s,
            3600);
  EXPECT_EQ(read([](Training* t) { t->limit_s = 30 * 86400; }).limit_s, 2'592'000);
  EXPECT_EQ(read([](Training* t) { t->warm_up = t->steps = 1'000'000; }).steps, 1'000'000);
  EXPECT_EQ(read([](Training* t) { t->buckets[0].floats = 16e9; }).buckets[0].floats, 16e9);
  EXPECT_THROW(read([](Training* t) { t->forward_s = 3601; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->backward_s = 3601; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->update_s = 3601; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->limit_s = 30 * 86400 + 1; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->warm_up = 1'000'001; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->warm_up = -1; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->steps = 1'000'001; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->micro_steps = 1'000'001; }), NetworkError);
  EXPECT_THROW(read([](Training* t) { t->buckets[0].floats = 16e9 + 1; }), NetworkError);
}

TEST(StepsMessage, TimesOfAStepAreThoseOfItsWorkers) {
  TrainingTimes times;
  const auto step = [](double seconds) {
    TimedStep timed;
    timed.push_s = seconds;
    return timed;
  };
  times.workers = {{step(1), step(5)}, {step(3), step(1)}};
  for (auto& worker : times.workers) {
    for (TimedStep& timed : worker) timed.step_s = 8;
  }
  EXPECT_EQ(times.Means(&TimedStep::push_s), (std::vector<double>{2, 3}));
  EXPECT_EQ(times.Longest(&TimedStep::push_s), (std::vector<double>{3, 5}));
  // Two workers of cycles of 1 and of 4 s make 5/4 updates a second: a cycle is 1.6 s on average.
  for (TimedStep& of_quick : times.workers[0]) of_quick.step_s = 1;
  for (TimedStep& of_slow : times.workers[1]) of_slow.step_s = 4;
  EXPECT_EQ(times.Means(&TimedStep::step_s), (std::vector<double>{1.6, 1.6}));
  EXPECT_EQ(times.Means(&TimedStep::push_s), (std::vector<double>{1.4, 4.2}));
}

// An exchange of nothing that is over after four steps, whoever wanted more. Its calls take 1, 2, 3
// and 4 seconds by its own telling, and ten times that for the second bucket.
class FourSteps : public Exchange {
 public:
  void Send(std::size_t k, bool /*out_of_time*/, Timing* timing) override {
    timing->bucket_s[k] = (steps_ + 1) * (k == 0 ? 1.0 : 10.0);
  }
  void Finish(Timing* /*timing*/) override { ++steps_; }
  bool Over() const override { return steps_ == 4; }

 private:
  int steps_ = 0;
};

TEST(StepsProgram, TheTimeOfABucketIsTheMeanOfTheStepsThatThereWere) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
  network::LineSocket here{network::Socket(pair[0])};
  network::LineSocket there{network::Socket(pair[1])};
  Training training;
  training.forward_s = 0.001;
  training.warm_up = 1;
  training.steps = 10;
  training.limit_s = 60;
  training.buckets = {{10, 0}, {10, 0}};
  FourSteps exchange;
  Train(training, &exchange, &there);
  const Deadline soon = Deadline::In(10);
  for (int step = 0; step < 3; ++step) ReadTimed(Message::Parse(here.Read(soon)));
  // The first step is the warm-up: the others took 2, 3 and 4.
  std::vector<double> seconds(2, 0);
  for (int k = 0; k < 2; ++k) TakeBucketTime(Message::Parse(here.Read(soon)), &seconds);
  EXPECT_EQ(seconds, (std::vector<double>{3, 30}));
  EXPECT_FALSE(here.TryRead());
}

// A host that says what a worker says, and what came over the line.
struct Heard {
  explicit Heard(const Training& training, Exchange* exchange = nullptr) {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
    network::LineSocket here{network::Socket(pair[0])};
    network::LineSocket there{network::Socket(pair[1])};
    Train(training, exchange, &there);
    while (const auto line = here.TryRead()) steps.push_back(ReadTimed(Message::Parse(*line)));
  }

  std::vector<TimedStep> steps;
};

// Nobody to exchange anything with: as many steps as are asked for, each of all its parts.
TEST(StepsProgram, AStepAloneIsWhatItComputes) {
  Training training;
  training.forward_s = 0.002;
  training.backward_s = 0.004;
  training.update_s = 0.001;
  training.micro_steps = 3;
  training.warm_up = 1;
  training.steps = 3;
  training.limit_s = 60;
  const Heard heard(training);
  ASSERT_EQ(heard.steps.size(), 3U);
  for (const TimedStep& step : heard.steps) {
    EXPECT_GE(step.forward_s, 3 * 0.002);
    EXPECT_GE(step.backward_s, 3 * 0.004);
    EXPECT_GE(step.update_s, 0.001);
    EXPECT_EQ(step.exposed_s, 0);
    EXPECT_EQ(step.synchronising_s, 0);
    EXPECT_NEAR(step.forward_s + step.backward_s + step.update_s, step.step_s, 1e-9);
  }
}

// The step that runs out of time is the last one, and counts where it is no warm-up.
TEST(StepsProgram, OutOfTimeIsAfterTheFirstStep) {
  Training training;
  training.steps = 10;
  EXPECT_EQ(Heard(training).steps.size(), 1U);
  training.warm_up = 1;
  EXPECT_EQ(Heard(training).steps.size(), 0U);
}

// Adds up nothing, but for what another worker says of its time.
class NotedSums : public AllReduce {
 public:
  struct Call {
    std::size_t bucket = 0;
    std::size_t size = 0;
    const float* numbers = nullptr;
    float last = 0;
  };
  using AllReduce::AllReduce;

  float other = 0;  // what another tells of its time
  std::vector<Call> calls;

 protected:
  void AddUp(std::size_t k, float* numbers, std::size_t size) override {
    calls.push_back({k, size, numbers, numbers[size - 1]});
    if (k == 1) numbers[size - 1] += other;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
};

// Buckets lie behind each other, and behind the last is whether anybody is out of time.
TEST(StepsProgram, TheLastBucketTellsWhoIsOutOfTime) {
  Training training;
  training.buckets = {{3, 0}, {2, 0}};
  training.warm_up = 1;
  training.steps = 2;
  const auto step = [](bool out_of_time, NotedSums* sums) {
    Timing timing{{}, std::vector<double>(2, 0)};
    for (const std::size_t k : {0U, 1U}) sums->Send(k, out_of_time, &timing);
    sums->Finish(&timing);
    for (const double seconds : timing.bucket_s) EXPECT_GE(seconds, 0.002);
    EXPECT_DOUBLE_EQ(timing.step.synchronising_s, timing.bucket_s[0] + timing.bucket_s[1]);
    return sums->Over();
  };
  NotedSums sums(training);
  EXPECT_FALSE(step(false, &sums));
  EXPECT_FALSE(step(false, &sums));
  EXPECT_TRUE(step(false, &sums)) << "a warm-up and two";
  ASSERT_EQ(sums.calls.size(), 6U);
  for (std::size_t i = 0; i < 6; i += 2) {
    EXPECT_EQ(sums.calls[i].bucket, 0U);
    EXPECT_EQ(sums.calls[i].size, 3U);
    EXPECT_EQ(sums.calls[i].numbers, sums.calls[0].numbers);
    EXPECT_EQ(sums.calls[i + 1].bucket, 1U);
    EXPECT_EQ(sums.calls[i + 1].size, 2U + 1);
    EXPECT_EQ(sums.calls[i + 1].numbers, sums.calls[0].numbers + 3);
    EXPECT_EQ(sums.calls[i + 1].last, 0);
  }
  NotedSums own(training);
  EXPECT_TRUE(step(true, &own));
  EXPECT_EQ(own.calls[1].last, 1);
  NotedSums others(training);
  others.other = 2;
  EXPECT_TRUE(step(false, &others));
}

// ---- Trainings.

// Three buckets, of 4 MB in all.
Training Short() {
  Training training;
  training.forward_s = 0.01;
  training.backward_s = 0.02;
  training.update_s = 0.005;
  training.warm_up = 1;
  training.steps = 8;
  training.limit_s = 20;
  training.buckets = {{1e5, 0.005}, {5e5, 0.01}, {4e5, 0.02}};
  return training;
}

TEST(StepsTraining, AStepThatHasBegunAtTheLimitMayLastAsLongAgain) {
  EXPECT_EQ(Short().longest_s(), 20 + 20);
}

// All that a slow worker computes takes as long, and so do the parts of its backward pass.
TEST(StepsTraining, TheLastWorkersAreSlowInAll) {
  Training training = Short();
  training.slow_workers = 1;
  training.slowdown = 4;
  const auto ready = [](const Training& of) {
    std::vector<double> seconds;
    for (const GradientBucket& bucket : of.buckets) seconds.push_back(bucket.ready_s);
    return seconds;
  };
  const Training fast = TrainingOf(training, 1, 3);
  EXPECT_EQ(fast.slow_workers, 0) << "which is of the coordinator alone";
  EXPECT_EQ(fast.slowdown, 1);
  EXPECT_EQ(fast.backward_s, 0.02);
  EXPECT_EQ(ready(fast), (std::vector<double>{0.005, 0.01, 0.02}));
  const Training slow = TrainingOf(training, 2, 3);
  EXPECT_EQ(slow.forward_s, 4 * 0.01);
  EXPECT_EQ(slow.backward_s, 4 * 0.02);
  EXPECT_EQ(slow.update_s, 4 * 0.005);
  EXPECT_EQ(ready(slow), (std::vector<double>{4 * 0.005, 4 * 0.01, 4 * 0.02}));
}

class StepsOnLoopback : public testing::Test {
 protected:
  void SetUp() override {
#ifdef STEPCAST_GLOO_PROGRAM
    program_.gloo = STEPCAST_GLOO_PROGRAM;
#else
    GTEST_SKIP() << "built without Gloo";
#endif
  }

  // Leads hosts, of which each has its worker's program.
  static void Lead(const std::vector<Programs>& programs,
                   const std::function<void(Session*)>& lead) {
    network::MeetingOptions options;
    options.hosts = static_cast<int>(programs.size());
    for (std::size_t i = 0; i < programs.size(); ++i) {
      options.names.push_back("h" + std::to_string(i));
    }
    options.token = "a token of tests";
    options.master = network::Socket::Listen(network::LocalAddress("127.0.0.1")).local();
    options.deadline = Deadline::In(60);
    options.join_s = 20;
    std::vector<std::thread> others;
    for (int rank = 1; rank < options.hosts; ++rank) {
      others.emplace_back([&, rank] {
        network::AgentOptions agent;
        agent.rank = rank;
        agent.of = options.hosts;
        agent.name = "other";
        agent.master = options.master;
        agent.token = options.token;
        agent.join_s = 20;
        agent.deadline = Deadline::In(60);
        EXPECT_EQ(RunAgent(agent, programs[static_cast<std::size_t>(rank)]), "");
      });
    }
    LeadSession(options, programs.front(), {}, lead);
    for (std::thread& other : others) other.join();
  }

  Programs program_;
};

TEST_F(StepsOnLoopback, PartsOfAStepMakeUpTheWhole) {
  Training training = Short();
  training.micro_steps = 3;
  Lead({program_, program_, program_}, [&](Session* session) {
    const TrainingTimes times = session->Measure(training, {{0, 2, 1}, {}}, {});
    EXPECT_EQ(times.problem, "");
    ASSERT_EQ(times.workers.size(), 3U);
    for (const auto& worker : times.workers) {
      ASSERT_EQ(worker.size(), 8U);
      for (const TimedStep& step : worker) {
        // A wait never ends early.
        EXPECT_GE(step.forward_s, 3 * training.forward_s);
        EXPECT_GE(step.backward_s, 3 * training.backward_s - 1e-9);
        EXPECT_GE(step.update_s, training.update_s);
        EXPECT_GT(step.synchronising_s, 0);
        EXPECT_NEAR(step.forward_s + step.backward_s + step.exposed_s + step.update_s, step.step_s,
                    1e-9);
      }
    }
    ASSERT_EQ(times.bucket_s.size(), 3U);
    for (const double seconds : times.bucket_s) EXPECT_GT(seconds, 0);
  });
}

// The ranks in another order: who is slow is the last worker, and not the last host.
TEST_F(StepsOnLoopback, AllWaitForTheSlowWorker) {
  Training training = Short();
  training.slow_workers = 1;
  training.slowdown = 4;
  Lead({program_, program_, program_}, [&](Session* session) {
    const TrainingTimes times = session->Measure(training, {{2, 0, 1}, {}}, {});
    EXPECT_EQ(times.problem, "");
    ASSERT_EQ(times.workers.size(), 3U);
    const double slow_s = 4 * (training.forward_s + training.backward_s);
    for (std::size_t worker = 0; worker < 3; ++worker) {
      const double factor = worker == 2 ? 4 : 1;
      ASSERT_EQ(times.workers[worker].size(), 8U);
      for (const TimedStep& step : times.workers[worker]) {
        EXPECT_GE(step.forward_s, factor * training.forward_s);
        EXPECT_GE(step.backward_s, factor * training.backward_s - 1e-9);
        EXPECT_GE(step.update_s, factor * training.update_s);
        if (worker < 2) {
          EXPECT_LT(step.forward_s + step.backward_s, slow_s);
        }
      }
      // Those that have computed wait in their exchange: nobody is ahead for long.
      const double all_s =
          std::accumulate(times.workers[worker].begin(), times.workers[worker].end(), 0.0,
                          [](double sum, const TimedStep& step) { return sum + step.step_s; });
      EXPECT_GT(all_s, 7 * slow_s);
    }
  });
}

TEST_F(StepsOnLoopback, AWorkerAloneExchangesNothing) {
  Lead({program_, program_}, [&](Session* session) {
    std::size_t seen = 0;
    const TrainingTimes times =
        session->Measure(Short(), {{1}, {}}, [&](std::size_t steps) { seen = steps; });
    EXPECT_EQ(times.problem, "");
    EXPECT_EQ(times.steps(), 8U);
    EXPECT_EQ(seen, 8U);
    for (const TimedStep& step : times.workers.at(0)) {
      EXPECT_EQ(step.synchronising_s, 0);
      EXPECT_EQ(step.exposed_s, 0);
    }
  });
}

// All workers end after the same step, whoever is out of time.
TEST_F(StepsOnLoopback, TheTimeLimitEndsAllWithTheStepsThatThereAre) {
  Training training = Short();
  training.steps = 100'000;
  training.limit_s = 3;
  Lead({program_, program_}, [&](Session* session) {
    const TrainingTimes times = session->Measure(training, {{0, 1}, {}}, {});
    EXPECT_EQ(times.problem, "");
    EXPECT_GT(times.steps(), 0U);
    EXPECT_LT(times.steps(), 100'000U);
  });
}

// The others hear of it at once, and go on with those that are left.
TEST_F(StepsOnLoopback, AWorkerThatFailsIsNamedAndOthersGoOn) {
  Lead({program_, program_, Programs{"/bin/false", ""}}, [&](Session* session) {
    const auto start = network::Clock::now();
    const TrainingTimes failed = session->Measure(Short(), {{0, 1, 2}, {}}, {});
    EXPECT_NE(failed.problem.find("h2: its worker"), std::string::npos) << failed.problem;
    EXPECT_LT(network::Clock::now() - start, std::chrono::seconds(20));
    const TrainingTimes times = session->Measure(Short(), {{0, 1}, {}}, {});
    EXPECT_EQ(times.problem, "");
    EXPECT_EQ(times.steps(), 8U);
  });
}

// ---- Parameter servers. Each worker's program compares what it pulls with what all have pushed.

class ServedOnLoopback : public StepsOnLoopback {
 protected:
  void SetUp() override {
#ifdef STEPCAST_PARAMETERS_PROGRAM
    program_.servers = STEPCAST_PARAMETERS_PROGRAM;
#else
    GTEST_SKIP() << "built without gRPC";
#endif
  }

  // The buckets of Short(), of which the second is cut in two.
  static Training Served(std::optional<int> bound = 0, bool asynchronous = false) {
    Training training = Short();
    training.servers = {.count = 2,
                        .asynchronous = asynchronous,
                        .bound = bound,
                        .parts = {{0, 0, 1e5}, {1, 0, 2e5}, {1, 1, 3e5}, {2, 1, 4e5}}};
    return training;
  }
  static double MeanOf(const TrainingTimes& times, std::size_t worker, double TimedStep::*part) {
    double sum = 0;
    for (const TimedStep& step : times.workers.at(worker)) sum += step.*part;
    return sum / static_cast<double>(times.workers.at(worker).size());
  }
};

TEST_F(ServedOnLoopback, PartsOfAStepMakeUpTheWhole) {
  for (const bool pipelined : {false, true}) {
    Training training = Served();
    training.servers->pipelined = pipelined;
    training.micro_steps = 2;
    // Two workers, one of them beside a server, and a server alone.
    Lead({program_, program_, program_}, [&](Session* session) {
      const TrainingTimes times = session->Measure(training, {{0, 2}, {1, 2}}, {});
      EXPECT_EQ(times.problem, "");
      ASSERT_EQ(times.workers.size(), 2U);
      for (const auto& worker : times.workers) {
        ASSERT_EQ(worker.size(), 8U);
        for (const TimedStep& step : worker) {
          EXPECT_NEAR(step.forward_s + step.backward_s + step.exposed_s + step.update_s,
                      step.step_s, 1e-9);
          EXPECT_GE(step.backward_s, 2 * training.backward_s - 1e-9);
          EXPECT_EQ(step.messages, 8);
          EXPECT_EQ(step.bytes, 2 * 4 * 1e6);
          EXPECT_EQ(step.staleness, 0);
          EXPECT_GT(step.push_s, 0);
          EXPECT_GT(step.pull_s, 0);
          EXPECT_GT(step.server_update_s, 0);
          EXPECT_GE(step.held_s, 0);
          EXPECT_LE(step.synchronising_s, step.push_s + step.pull_s + 1e-9);
        }
      }
      ASSERT_EQ(times.bucket_s.size(), 3U);
      for (const double seconds : times.bucket_s) EXPECT_GT(seconds, 0);
    });
  }
}

TEST_F(ServedOnLoopback, OneUpdateOfAllWaitsForTheSlowWorker) {
  Training training = Served();
  training.slow_workers = 1;
  training.slowdown = 4;
  Lead({program_, program_, program_}, [&](Session* session) {
    const TrainingTimes times = session->Measure(training, {{0, 1}, {2, 2}}, {});
    EXPECT_EQ(times.problem, "");
    const double slow_s = 4 * (training.forward_s + training.backward_s);
    EXPECT_GT(MeanOf(times, 0, &TimedStep::step_s), 0.9 * slow_s);
    // The fast one is held back for what the other computes longer.
    EXPECT_GT(MeanOf(times, 0, &TimedStep::held_s),
              0.5 * (slow_s - training.forward_s - training.backward_s));
    EXPECT_LT(MeanOf(times, 1, &TimedStep::held_s), 0.5 * training.forward_s);
    // That it is held back is no part of what its parameters take to come.
    EXPECT_LT(MeanOf(times, 0, &TimedStep::pull_s),
              0.5 * (slow_s - training.forward_s - training.backward_s));
  });
}

// Nobody waits, and the slow one finds the updates of the others; with a bound they wait for it.
TEST_F(ServedOnLoopback, AsynchronousWorkersGoOnAsFarAsTheBound) {
  for (const std::optional<int> bound : {std::optional<int>(), std::optional(2)}) {
    Training training = Served(bound, true);
    training.steps = 20;
    training.slow_workers = 1;
    training.slowdown = 4;
    Lead({program_, program_, program_}, [&](Session* session) {
      const TrainingTimes times = session->Measure(training, {{0, 1}, {2, 2}}, {});
      EXPECT_EQ(times.problem, "");
      ASSERT_EQ(times.workers.at(0).size(), 20U);
      ASSERT_EQ(times.workers.at(1).size(), 20U);
      const double fast_s = MeanOf(times, 0, &TimedStep::step_s);
      const double slow_s = MeanOf(times, 1, &TimedStep::step_s);
      const double fast_stale = MeanOf(times, 0, &TimedStep::staleness);
      const double slow_stale = MeanOf(times, 1, &TimedStep::staleness);
      if (bound) {
        EXPECT_GT(fast_s, 0.8 * slow_s);
        EXPECT_LT(slow_stale, *bound + 1.5);
      } else {
        EXPECT_LT(fast_s, 0.7 * slow_s);
        EXPECT_LT(MeanOf(times, 0, &TimedStep::held_s), 1e-4);
        // Each cycle of the slow one has several of the other.
        EXPECT_GT(slow_stale, 1.5);
        EXPECT_LT(fast_stale, 1);
      }
      double all_s = 0;
      for (const double step_s : times.Means(&TimedStep::step_s)) all_s += step_s;
      EXPECT_NEAR(all_s / 20 * (1 / fast_s + 1 / slow_s), 2, 1e-9);
    });
  }
}

TEST_F(ServedOnLoopback, TheTimeLimitEndsAllWithTheStepsThatThereAre) {
  for (const bool asynchronous : {false, true}) {
    Training training = Served(asynchronous ? std::optional<int>() : 0, asynchronous);
    training.steps = 100'000;
    training.limit_s = 2;
    Lead({program_, program_, program_}, [&](Session* session) {
      const TrainingTimes times = session->Measure(training, {{0, 1}, {2, 0}}, {});
      EXPECT_EQ(times.problem, "");
      EXPECT_GT(times.steps(), 0U);
      EXPECT_LT(times.steps(), 100'000U);
    });
  }
}

TEST_F(ServedOnLoopback, AServerThatFailsIsNamedAndOthersGoOn) {
  Lead({program_, program_, Programs{"", "/bin/false"}}, [&](Session* session) {
    const TrainingTimes failed = session->Measure(Served(), {{0, 1}, {2, 2}}, {});
    EXPECT_NE(failed.problem.find("h2: its worker"), std::string::npos) << failed.problem;
    const TrainingTimes none = session->Measure(Short(), {{0, 1}, {}}, {});
    EXPECT_NE(none.problem.find("was built without Gloo"), std::string::npos) << none.problem;
    const TrainingTimes times = session->Measure(Served(), {{0}, {1, 1}}, {});
    EXPECT_EQ(times.problem, "");
    EXPECT_EQ(times.steps(), 8U);
  });
}

}  // namespace
}  // namespace stepcast::steps
