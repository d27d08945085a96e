#include "microbench/steps/grpc_exchange.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include "microbench/steps/grpc_server.h"

namespace stepcast::steps {

using network::Address;
using network::Clock;
using network::NetworkError;

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
    seconds += network::ClockToSeconds(to - begin);
    end = to;
  }
  return seconds;
}

}  // namespace

// A stream of calls to one server, which leave in order, and of its answers.
class ServerExchange::Lane : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Lane(ServerExchange* exchange, std::size_t server, grpc::GenericStub* stub, double limit_s)
      : exchange_(exchange), server_(server) {
    context_.set_deadline(After(limit_s));
    stub->PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    AddHold();  // until nothing more is sent
    StartRead(&answer_);
    StartCall();
  }
  // Ends the stream, whatever is on its way.
  ~Lane() override {
    context_.TryCancel();
    RemoveHold();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return has_ended_; });
  }

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // The numbers live until they are answered.
  void Send(const ServerCall& call, std::span<const float> numbers = {}) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(MakeMessage(call, numbers));
    if (calls_.size() == 1) StartWrite(&calls_.front());
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (!ok) return;  // the end says why
    calls_.pop_front();
    if (!calls_.empty()) StartWrite(&calls_.front());
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    try {
      const auto answer = Received<ServerAnswer>::Read(&answer_);
      if (!answer) throw NetworkError("it sent what is no answer");
      exchange_->Take(*answer);
    } catch (const NetworkError& e) {
      exchange_->Fail(server_, e.what());
    }
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override {
    exchange_->Fail(server_, status.ok() ? "it has ended" : status.error_message());
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    ended_.notify_all();
  }

 private:
  ServerExchange* exchange_;
  std::size_t server_;
  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<grpc::ByteBuffer> calls_;  // the first is being sent
  bool has_ended_ = false;
};

ServerExchange::ServerExchange(const Work& work, const std::vector<Address>& servers)
    : work_(work), servers_(*work.training.servers), parts_(servers_.parts.size()) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto floats = static_cast<std::size_t>(servers_.parts[i].floats);
    parts_[i].gradients.assign(floats, 1.0F);
    parts_[i].parameters.assign(floats, 0.0F);
  }
  const auto until = After(kAnswerS);
  for (const Address& server : servers) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(LongestMessage(servers_));
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
    grpc::GenericStub stub(channel);
    const double limit_s = work.training.longest_s() + kAnswerS;
    pushing_.push_back(std::make_unique<Lane>(this, pushing_.size(), &stub, limit_s));
    pulling_.push_back(std::make_unique<Lane>(this, pulling_.size(), &stub, limit_s));
  }
}

ServerExchange::~ServerExchange() = default;

ServerCall ServerExchange::CallOf(CallKind kind, std::size_t part) const {
  ServerCall call;
  std::copy(work_.word.begin(), work_.word.end(), call.word.begin());
  call.kind = kind;
  call.worker = work_.worker();
  call.part = static_cast<std::int32_t>(part);
  call.step = step_;
  return call;
}

void ServerExchange::Send(std::size_t k, bool out_of_time, Timing* /*timing*/) {
  if (k == 0) next_ = 0;
  for (; next_ < parts_.size() && servers_.parts[next_].bucket == static_cast<int>(k); ++next_) {
    PartState& part = parts_[next_];
    part.push.first = Clock::now();
    Expect(1);
    ServerCall call = CallOf(CallKind::kPush, next_);
    call.out_of_time = out_of_time ? 1 : 0;
    pushing_[ServerOf(next_)]->Send(call, part.gradients);
  }
}

void ServerExchange::Pull(std::size_t part) {
  parts_[part].pull.first = Clock::now();
  Expect(1);
  pulling_[ServerOf(part)]->Send(CallOf(CallKind::kPull, part));
}

void ServerExchange::Take(const Received<ServerAnswer>& answer) {
  const ServerAnswer& told = answer.record();
  if (told.part < 0 || told.part >= static_cast<int>(parts_.size())) {
    throw NetworkError("it answered for no part");
  }
  const auto part = static_cast<std::size_t>(told.part);
  if (told.kind == CallKind::kPush) TakePushed(part, told);
  if (told.kind == CallKind::kPull) TakePulled(part, answer);
  Expect(-1);
}

void ServerExchange::TakePushed(std::size_t part, const ServerAnswer& told) {
  PartState& own = parts_[part];
  // The update belongs to the server's time and not to the push.
  own.push.second = Clock::now() - network::SecondsToClock(told.update_s);
  own.staleness = told.version - own.version;
  if (servers_.asynchronous) own.update_s = told.update_s;
  if (servers_.pipelined) Pull(part);
}

void ServerExchange::TakePulled(std::size_t part, const Received<ServerAnswer>& answer) {
  PartState& own = parts_[part];
  const ServerAnswer& told = answer.record();
  if (answer.size() != own.parameters.size()) throw NetworkError("it sent what are no parameters");
  // Each update takes as much off.
  const auto expected = -kLearningRate * static_cast<float>(told.version);
  bool is_right = true;
  answer.ForEach([&](std::size_t i, float parameter) {
    own.parameters[i] = parameter;
    is_right = is_right && parameter == expected;
  });
  if (!is_right) throw NetworkError("it sent parameters that no updates make");
  own.version = told.version;
  own.held_s = told.held_s;
  own.pull.first += network::SecondsToClock(told.held_s);
  own.pull.second = Clock::now();
  if (!servers_.asynchronous) own.update_s = told.update_s;
  if (part + 1 == parts_.size()) over_ = told.over != 0;
}

void ServerExchange::Expect(int answers) {
  const std::lock_guard lock(mutex_);
  due_ += answers;
  if (due_ == 0) answered_.notify_all();
}

void ServerExchange::Fail(std::size_t server, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = fmt::format("server {}: {}", server + 1, problem);
  answered_.notify_all();
}

void ServerExchange::Wait() {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [this] { return due_ == 0 || !problem_.empty(); });
  if (!problem_.empty()) throw NetworkError(problem_);
}

void ServerExchange::Finish(Timing* timing) {
  Wait();
  if (!servers_.pipelined) {
    if (servers_.bound) {
      for (const auto& lane : pulling_) lane->Send(CallOf(CallKind::kPushed, 0));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) Pull(i);
    Wait();
  }
  ++step_;
  TimedStep& step = timing->step;
  std::vector<Interval> pushes;
  std::vector<Interval> pulls;
  std::vector<std::vector<Interval>> of_bucket(work_.training.buckets.size());
  std::vector<double> updates(static_cast<std::size_t>(servers_.count), 0);
  std::vector<Interval> waits;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PartState& part = parts_[i];
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
  step.held_s = std::max(0.0, Covered(pushes) - step.synchronising_s);  // but for rounding
  for (std::size_t k = 0; k < of_bucket.size(); ++k) timing->bucket_s[k] = Covered(of_bucket[k]);
}

void ServerExchange::Leave() {
  Expect(static_cast<int>(pulling_.size()));
  for (const auto& lane : pulling_) lane->Send(CallOf(CallKind::kLeave, 0));
  Wait();
}

}  // namespace stepcast::steps
