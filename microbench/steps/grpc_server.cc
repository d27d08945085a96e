#include "microbench/steps/grpc_server.h"

#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <utility>

#include "microbench/network/token.h"
#include "microbench/steps/program.h"

namespace stepcast::steps {

using network::Clock;
using network::NetworkError;

namespace {

// The progress of a worker that has left.
constexpr std::int64_t kAllPushed = std::numeric_limits<std::int64_t>::max();

std::int64_t OfAll(const std::vector<std::int64_t>& steps) {
  return *std::min_element(steps.begin(), steps.end());
}

}  // namespace

// Calls of one worker, taken one after another, and their answers, sent as they come.
class ParameterServer::Stream : public grpc::ServerGenericBidiReactor {
 public:
  explicit Stream(ParameterServer* server) : server_(server) { StartRead(&message_); }

  // One of the answers to what it has asked; of a pull, the part as it is when its turn has come.
  void Send(const ServerAnswer& answer, StoredPart* part = nullptr, std::int64_t step = 0) {
    const std::lock_guard lock(mutex_);
    --owed_;
    answers_.push_back({answer, part, step});
    if (answers_.size() == 1) Write();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      const std::lock_guard lock(mutex_);
      has_read_all_ = true;
      return FinishIfDone();
    }
    auto call = Received<ServerCall>::Read(&message_);
    std::string problem = "it sent what is no call";
    if (call) {
      {
        const std::lock_guard lock(mutex_);
        if (call->record().kind != CallKind::kPushed) ++owed_;
      }
      problem = server_->Take(this, *call);
    }
    if (problem.empty()) return StartRead(&message_);
    const std::lock_guard lock(mutex_);
    problem_ = problem;
    if (call && call->record().kind != CallKind::kPushed) --owed_;
    has_read_all_ = true;
    FinishIfDone();
  }
  void OnWriteDone(bool /*ok*/) override {
    const std::lock_guard lock(mutex_);
    answers_.pop_front();
    if (!answers_.empty()) return Write();
    FinishIfDone();
  }
  void OnCancel() override {
    const int forgotten = server_->Forget(this);
    const std::lock_guard lock(mutex_);
    owed_ -= forgotten;
    FinishIfDone();
  }
  void OnDone() override { delete this; }

 private:
  struct Due {
    ServerAnswer answer;
    StoredPart* part = nullptr;
    std::int64_t step = 0;
  };

  void Write() {
    Due& due = answers_.front();
    numbers_.clear();
    if (due.part != nullptr) Fill(*due.part, due.step, &due.answer, &numbers_);
    message_out_ = MakeMessage(due.answer, numbers_);
    StartWrite(&message_out_);
  }
  void FinishIfDone() {
    if (!has_read_all_ || owed_ > 0 || !answers_.empty() || is_finished_) return;
    is_finished_ = true;
    Finish(problem_.empty() ? grpc::Status::OK
                            : grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, problem_));
  }

  ParameterServer* server_;
  grpc::ByteBuffer message_;
  std::mutex mutex_;
  std::deque<Due> answers_;  // the first is being sent
  std::vector<float> numbers_;
  grpc::ByteBuffer message_out_;
  int owed_ = 0;  // answers that are not among them yet
  bool has_read_all_ = false;
  bool is_finished_ = false;
  std::string problem_;
};

ParameterServer::ParameterServer(const Work& work, int server, const network::Address& address)
    : work_(work),
      servers_(*work.training.servers),
      parts_(servers_.parts.size()),
      pushed_(work.ranks.size(), 0) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (servers_.parts[i].server != server) continue;
    const auto floats = static_cast<std::size_t>(servers_.parts[i].floats);
    parts_[i] = std::make_unique<StoredPart>();
    parts_[i]->parameters.assign(floats, 0.0F);
    if (!servers_.asynchronous) parts_[i]->sum.assign(floats, 0.0F);
    parts_[i]->pushes.assign(work.ranks.size(), 0);
    parts_[i]->last_step = work.training.warm_up + work.training.steps - 1;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address.WithPort(0).text(), grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(LongestMessage(servers_));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0) throw NetworkError("cannot listen at " + address.host());
}

ParameterServer::~ParameterServer() {
  // What is on its way gets there.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  server_->Wait();
}

void ParameterServer::WaitForAllToLeave(const network::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const bool all =
      progressed_.wait_until(lock, deadline.until, [this] { return pushed_by_all_ == kAllPushed; });
  if (!all) throw NetworkError("its workers did not end in time");
}

grpc::ServerGenericBidiReactor* ParameterServer::CreateReactor(
    grpc::GenericCallbackServerContext* /*context*/) {
  return new Stream(this);  // which deletes itself
}

std::string ParameterServer::Take(Stream* stream, const Received<ServerCall>& call) {
  const ServerCall& asked = call.record();
  if (!network::SameToken({asked.word.data(), asked.word.size()}, work_.word)) {
    return "it showed another word";
  }
  if (asked.worker < 0 || asked.worker >= static_cast<int>(pushed_.size())) {
    return "there is no such worker";
  }
  if (asked.step < 0 || asked.step >= kAllPushed) return "there is no such step";
  if (asked.kind == CallKind::kPushed) {
    TakeProgress(asked.worker, asked.step + 1);
    return "";
  }
  if (asked.kind == CallKind::kLeave) {
    stream->Send({.kind = CallKind::kLeave});
    TakeProgress(asked.worker, kAllPushed);
    return "";
  }
  const bool is_held = asked.part >= 0 && asked.part < static_cast<int>(parts_.size()) &&
                       parts_[static_cast<std::size_t>(asked.part)];
  if (!is_held) return "there is no such part";
  StoredPart* part = parts_[static_cast<std::size_t>(asked.part)].get();
  if (asked.kind == CallKind::kPush) return Push(stream, call, part);
  if (asked.kind == CallKind::kPull) return Pull(stream, asked, part);
  return "there is no such call";
}

std::string ParameterServer::Push(Stream* stream, const Received<ServerCall>& call,
                                  StoredPart* part) {
  const ServerCall& asked = call.record();
  const auto worker = static_cast<std::size_t>(asked.worker);
  ServerAnswer answer{.kind = CallKind::kPush, .part = asked.part};
  std::vector<Waiting> released;
  {
    const std::lock_guard lock(part->mutex);
    if (asked.step != part->pushes[worker] || call.size() != part->parameters.size()) {
      return "it pushed what is no gradient of its next step";
    }
    answer.version = part->versions;
    const auto update = [&](const auto& change) {
      const Clock::time_point before = Clock::now();
      change();
      answer.update_s = part->update_s = network::ClockToSeconds(Clock::now() - before);
      ++part->versions;
    };
    std::vector<float>& parameters = part->parameters;
    if (servers_.asynchronous) {
      update([&] {
        call.ForEach(
            [&](std::size_t i, float gradient) { parameters[i] -= kLearningRate * gradient; });
      });
    } else {
      call.ForEach([&](std::size_t i, float gradient) { part->sum[i] += gradient; });
    }
    ++part->pushes[worker];
    if (asked.out_of_time != 0) part->last_step = std::min(part->last_step, asked.step);
    if (!servers_.asynchronous && part->versions < OfAll(part->pushes)) {
      update([&] {
        const float rate = kLearningRate / static_cast<float>(part->pushes.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          parameters[i] -= rate * std::exchange(part->sum[i], 0.0F);
        }
      });
    }
    released = Release(part);
  }
  stream->Send(answer);
  Answer(part, released);
  return "";
}

std::string ParameterServer::Pull(Stream* stream, const ServerCall& asked, StoredPart* part) {
  const Waiting ask{stream, asked.part, asked.step, Clock::now()};
  {
    const std::lock_guard lock(part->mutex);
    if (asked.step >= part->pushes[static_cast<std::size_t>(asked.worker)]) {
      return "it pulled for a step that it has not pushed";
    }
    if (!MayPull(*part, asked.step)) {
      part->waiting.push_back(ask);
      return "";
    }
  }
  Answer(part, {ask});
  return "";
}

void ParameterServer::TakeProgress(int worker, std::int64_t steps) {
  {
    const std::lock_guard lock(mutex_);
    pushed_[static_cast<std::size_t>(worker)] = steps;
    pushed_by_all_ = OfAll(pushed_);
  }
  progressed_.notify_all();
  for (const auto& part : parts_) {
    if (!part) continue;
    std::vector<Waiting> released;
    {
      const std::lock_guard lock(part->mutex);
      if (steps == kAllPushed) part->pushes[static_cast<std::size_t>(worker)] = steps;
      released = Release(part.get());
    }
    Answer(part.get(), released);
  }
}

bool ParameterServer::MayPull(const StoredPart& part, std::int64_t step) const {
  if (!servers_.bound) return true;
  const std::int64_t steps = servers_.pipelined ? OfAll(part.pushes) : pushed_by_all_.load();
  return steps >= step + 1 - *servers_.bound;
}

std::vector<ParameterServer::Waiting> ParameterServer::Release(StoredPart* part) const {
  const auto may =
      std::stable_partition(part->waiting.begin(), part->waiting.end(),
                            [&](const Waiting& one) { return !MayPull(*part, one.step); });
  std::vector<Waiting> released(may, part->waiting.end());
  part->waiting.erase(may, part->waiting.end());
  return released;
}

void ParameterServer::Answer(StoredPart* part, const std::vector<Waiting>& released) {
  const Clock::time_point now = Clock::now();
  for (const Waiting& one : released) {
    ServerAnswer answer{.kind = CallKind::kPull, .part = one.part};
    answer.held_s = network::ClockToSeconds(now - one.since);
    one.stream->Send(answer, part, one.step);
  }
}

void ParameterServer::Fill(StoredPart& part, std::int64_t step, ServerAnswer* answer,
                           std::vector<float>* parameters) {
  const std::lock_guard lock(part.mutex);
  answer->version = part.versions;
  answer->update_s = part.update_s;
  answer->over = step >= part.last_step && OfAll(part.pushes) > part.last_step ? 1 : 0;
  *parameters = part.parameters;
}

int ParameterServer::Forget(Stream* stream) {
  int count = 0;
  for (const auto& part : parts_) {
    if (!part) continue;
    const std::lock_guard lock(part->mutex);
    count += static_cast<int>(
        std::erase_if(part->waiting, [&](const Waiting& one) { return one.stream == stream; }));
  }
  return count;
}

}  // namespace stepcast::steps
