#include "microbench/steps/grpc_exchange.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <chrono>

#include "microbench/steps/grpc_server.h"

namespace stepcast::steps {

using network::Address;
using network::Clock;
using network::NetworkError;

// A call, which lives until it is answered.
struct ServerExchange::Message {
  Clock::time_point begin;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer answer;
  Clock::time_point end;
};

namespace {

std::chrono::system_clock::time_point After(double seconds) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(
             std::chrono::duration<double>(seconds));
}

// The time in which any of these is [s].
double Covered(std::vector<std::pair<Clock::time_point, Clock::time_point>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  double seconds = 0;
  Clock::time_point end;
  for (const auto& [from, to] : intervals) {
    const Clock::time_point begin = std::max(from, end);
    if (to <= begin) continue;
    seconds += Between(begin, to);
    end = to;
  }
  return seconds;
}

}  // namespace

ServerExchange::ServerExchange(const Work& work, const std::vector<Address>& servers)
    : work_(work), servers_(*work.training.servers), parts_(servers_.parts.size()) {
  std::copy(work.word.begin(), work.word.end(), call_.word.begin());
  call_.worker = work.worker();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto floats = static_cast<std::size_t>(servers_.parts[i].floats);
    parts_[i].gradients.assign(floats, 1.0F);
    parts_[i].parameters.assign(floats, 0.0F);
  }
  const auto until = After(kAnswerS);
  for (const Address& server : servers) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // A connection to each, and nothing between.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto scheme = server.storage.ss_family == AF_INET6 ? "ipv6" : "ipv4";
    const auto channel = grpc::CreateCustomChannel(fmt::format("{}:{}", scheme, server.text()),
                                                   grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(until)) {
      throw NetworkError(fmt::format("the server at {} did not answer in time", server.text()));
    }
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
}

ServerExchange::~ServerExchange() { Wait(); }

void ServerExchange::Say(
    std::size_t server, const char* method, const ServerCall& call, std::span<const float> numbers,
    std::function<void(const Message& sent, const Received<ServerAnswer>& answer)> take) {
  const auto message = std::make_shared<Message>();
  message->context.set_deadline(After(work_.training.limit_s + kAnswerS));
  message->request = MakeMessage(call, numbers);
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  message->begin = Clock::now();
  stubs_[server]->UnaryCall(
      &message->context, method, {}, &message->request, &message->answer,
      [this, server, message, take = std::move(take)](const grpc::Status& status) {
        message->end = Clock::now();
        std::string problem;
        try {
          const auto answer = status.ok() ? Received<ServerAnswer>::Read(&message->answer)
                                          : std::optional<Received<ServerAnswer>>();
          if (answer) {
            take(*message, *answer);
          } else {
            problem = status.ok() ? "it sent what is no answer" : status.error_message();
          }
        } catch (const NetworkError& e) {
          problem = e.what();
        }
        const std::lock_guard lock(mutex_);
        if (!problem.empty() && problem_.empty()) {
          problem_ = fmt::format("server {}: {}", server + 1, problem);
        }
        --under_way_;
        answered_.notify_all();
      });
}

void ServerExchange::Push(std::size_t part, bool out_of_time) {
  HeldPart& held = parts_[part];
  ServerCall call = call_;
  call.part = static_cast<std::int32_t>(part);
  call.step = step_;
  call.out_of_time = out_of_time ? 1 : 0;
  Say(static_cast<std::size_t>(servers_.parts[part].server), kPush, call, held.gradients,
      [this, part, &held](const Message& sent, const Received<ServerAnswer>& answer) {
        // The update belongs to the server's time and not to the push.
        const double update_s = answer.record().update_s;
        held.push = {sent.begin, sent.end - network::SecondsToClock(update_s)};
        held.staleness = answer.record().version - held.version;
        if (servers_.asynchronous) held.update_s = update_s;
        if (servers_.pipelined) Pull(part);
      });
}

void ServerExchange::Pull(std::size_t part) {
  HeldPart& held = parts_[part];
  ServerCall call = call_;
  call.part = static_cast<std::int32_t>(part);
  call.step = step_;
  Say(static_cast<std::size_t>(servers_.parts[part].server), kPull, call, {},
      [this, part, &held](const Message& sent, const Received<ServerAnswer>& answer) {
        if (answer.size() != held.parameters.size()) {
          throw NetworkError("it sent what are no parameters");
        }
        const ServerAnswer& told = answer.record();
        // Each update takes as much off.
        const auto expected = -kLearningRate * static_cast<float>(told.version);
        bool is_right = true;
        answer.ForEach([&](std::size_t i, float parameter) {
          held.parameters[i] = parameter;
          is_right = is_right && parameter == expected;
        });
        if (!is_right) throw NetworkError("it sent parameters of no update");
        held.version = told.version;
        held.held_s = told.held_s;
        held.pull = {sent.begin + network::SecondsToClock(told.held_s), sent.end};
        if (!servers_.asynchronous) held.update_s = told.update_s;
        if (part + 1 == parts_.size()) over_ = told.over != 0;
      });
}

void ServerExchange::Send(std::size_t k, bool out_of_time, Timing* /*timing*/) {
  if (k == 0) next_ = 0;
  for (; next_ < parts_.size() && servers_.parts[next_].bucket == static_cast<int>(k); ++next_) {
    Push(next_, out_of_time);
  }
}

void ServerExchange::Wait() {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [this] { return under_way_ == 0; });
}

void ServerExchange::Finish(Timing* timing) {
  Wait();
  if (problem_.empty() && !servers_.pipelined) {
    for (std::size_t i = 0; i < parts_.size(); ++i) Pull(i);
    Wait();
  }
  ++step_;
  if (!problem_.empty()) throw NetworkError(problem_);
  TimedStep& step = timing->step;
  std::vector<Interval> pushes;
  std::vector<Interval> pulls;
  std::vector<std::vector<Interval>> of_bucket(work_.training.buckets.size());
  std::vector<double> updates(static_cast<std::size_t>(servers_.count), 0);
  std::vector<Interval> waits;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const HeldPart& part = parts_[i];
    pushes.push_back(part.push);
    pulls.push_back(part.pull);
    waits.emplace_back(part.pull.first - network::SecondsToClock(part.held_s), part.pull.first);
    auto& bucket = of_bucket[static_cast<std::size_t>(servers_.parts[i].bucket)];
    bucket.insert(bucket.end(), {part.push, part.pull});
    updates[static_cast<std::size_t>(servers_.parts[i].server)] += part.update_s;
    step.staleness += static_cast<double>(part.staleness) / static_cast<double>(parts_.size());
    step.bytes += 2.0 * static_cast<double>(part.gradients.size() * sizeof(float));
  }
  step.messages = 2.0 * static_cast<double>(parts_.size());
  step.push_s = Covered(pushes);
  step.pull_s = Covered(pulls);
  step.server_update_s = *std::max_element(updates.begin(), updates.end());
  pushes.insert(pushes.end(), pulls.begin(), pulls.end());
  step.synchronising_s = Covered(pushes);
  pushes.insert(pushes.end(), waits.begin(), waits.end());
  step.held_s = Covered(pushes) - step.synchronising_s;
  for (std::size_t k = 0; k < of_bucket.size(); ++k) timing->bucket_s[k] = Covered(of_bucket[k]);
}

void ServerExchange::Leave() {
  for (std::size_t server = 0; server < stubs_.size(); ++server) {
    Say(server, kLeave, call_, {}, [](const Message&, const Received<ServerAnswer>&) {});
  }
  Wait();
  if (!problem_.empty()) throw NetworkError(problem_);
}

}  // namespace stepcast::steps
