#include "microbench/steps/grpc_server.h"

#include <fmt/format.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "microbench/network/token.h"
#include "microbench/steps/program.h"

namespace stepcast::steps {

using network::Clock;
using network::NetworkError;

namespace {

// Of a worker that has left.
constexpr std::int64_t kAllPushed = std::numeric_limits<std::int64_t>::max();

}  // namespace

// One message and its answer.
class ParameterServer::Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(ParameterServer* server, std::string method) : server_(server), method_(std::move(method)) {
    StartRead(&message_);
  }

  const std::string& method() const { return method_; }
  const Received<ServerCall>& request() const { return *request_; }
  // What it has pushed is needed no longer.
  void Drop() { request_ = Received<ServerCall>(); }

  void Answer(const ServerAnswer& answer, std::vector<float> numbers = {}) {
    numbers_ = std::move(numbers);
    answer_ = MakeMessage(answer, numbers_);
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }
  void Refuse(const std::string& why) {
    Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, why));
  }

  void OnReadDone(bool ok) override {
    request_ = ok ? Received<ServerCall>::Read(&message_) : std::nullopt;
    if (!request_) return Refuse("it sent what is no call");
    server_->Take(this);
  }
  void OnDone() override { delete this; }

 private:
  ParameterServer* server_;
  std::string method_;
  grpc::ByteBuffer message_;
  std::optional<Received<ServerCall>> request_;
  std::vector<float> numbers_;
  grpc::ByteBuffer answer_;
};

ParameterServer::ParameterServer(const Work& work, int server, const network::Address& address)
    : work_(work),
      servers_(*work.training.servers),
      parts_(servers_.parts.size()),
      left_(work.ranks.size(), false) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (servers_.parts[i].server != server) continue;
    const auto floats = static_cast<std::size_t>(servers_.parts[i].floats);
    parts_[i] = std::make_unique<HeldPart>();
    parts_[i]->parameters.assign(floats, 0.0F);
    if (!servers_.asynchronous) parts_[i]->sum.assign(floats, 0.0F);
    parts_[i]->pushes.assign(work.ranks.size(), 0);
    parts_[i]->last_step = work.training.warm_up + work.training.steps - 1;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address.WithPort(0).text(), grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(-1);
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
  const bool all = left_all_.wait_until(lock, deadline.until, [this] {
    return std::all_of(left_.begin(), left_.end(), [](bool left) { return left; });
  });
  if (!all) throw NetworkError("its workers did not end in time");
}

grpc::ServerGenericBidiReactor* ParameterServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new Call(this, context->method());  // which deletes itself
}

void ParameterServer::Take(Call* call) {
  const ServerCall& asked = call->request().record();
  if (!network::SameToken({asked.word.data(), asked.word.size()}, work_.word)) {
    return call->Refuse("it showed another word");
  }
  if (asked.worker < 0 || asked.worker >= static_cast<int>(left_.size())) {
    return call->Refuse("there is no such worker");
  }
  if (call->method() == kLeave) return Leave(call);
  const bool is_held = asked.part >= 0 && asked.part < static_cast<int>(parts_.size()) &&
                       parts_[static_cast<std::size_t>(asked.part)];
  if (!is_held) return call->Refuse("there is no such part");
  HeldPart* part = parts_[static_cast<std::size_t>(asked.part)].get();
  if (call->method() == kPush) return Push(call, part);
  if (call->method() == kPull) return Pull(call, part);
  call->Refuse("there is no such method");
}

void ParameterServer::Push(Call* call, HeldPart* part) {
  const ServerCall asked = call->request().record();
  const auto worker = static_cast<std::size_t>(asked.worker);
  ServerAnswer answer;
  std::vector<Held> released;
  {
    const std::lock_guard lock(part->mutex);
    if (asked.step != part->pushes[worker] || call->request().size() != part->parameters.size()) {
      return call->Refuse("it pushed what is no gradient of its next step");
    }
    answer.version = part->versions;
    if (servers_.asynchronous) {
      const Clock::time_point before = Clock::now();
      call->request().ForEach(
          [&](std::size_t i, float gradient) { part->parameters[i] -= kLearningRate * gradient; });
      part->update_s = Between(before, Clock::now());
      ++part->versions;
      answer.update_s = part->update_s;
    } else {
      call->request().ForEach([&](std::size_t i, float gradient) { part->sum[i] += gradient; });
    }
    ++part->pushes[worker];
    if (asked.out_of_time != 0) part->last_step = std::min(part->last_step, asked.step);
    const std::int64_t all = *std::min_element(part->pushes.begin(), part->pushes.end());
    if (!servers_.asynchronous && part->versions < all) {
      const Clock::time_point before = Clock::now();
      const float rate = kLearningRate / static_cast<float>(part->pushes.size());
      for (std::size_t i = 0; i < part->sum.size(); ++i) {
        part->parameters[i] -= rate * std::exchange(part->sum[i], 0.0F);
      }
      part->update_s = Between(before, Clock::now());
      ++part->versions;
      answer.update_s = part->update_s;
    }
    released = Release(part);
  }
  call->Drop();
  call->Answer(answer);
  AnswerAll(part, released);
}

void ParameterServer::Pull(Call* call, HeldPart* part) {
  const ServerCall asked = call->request().record();
  {
    const std::lock_guard lock(part->mutex);
    if (asked.step < 0 || asked.step >= part->pushes[static_cast<std::size_t>(asked.worker)]) {
      return call->Refuse("it pulled for a step that it has not pushed");
    }
    if (!MayPull(*part, asked.step)) {
      part->held.push_back({call, asked.step, Clock::now()});
      return;
    }
  }
  AnswerAll(part, {{call, asked.step, Clock::now()}});
}

void ParameterServer::Leave(Call* call) {
  const auto worker = static_cast<std::size_t>(call->request().record().worker);
  for (const auto& part : parts_) {
    if (!part) continue;
    std::vector<Held> released;
    {
      const std::lock_guard lock(part->mutex);
      part->pushes[worker] = kAllPushed;
      released = Release(part.get());
    }
    AnswerAll(part.get(), released);
  }
  call->Answer({});
  const std::lock_guard lock(mutex_);
  left_[worker] = true;
  left_all_.notify_all();
}

bool ParameterServer::MayPull(const HeldPart& part, std::int64_t step) const {
  if (!servers_.bound) return true;
  return *std::min_element(part.pushes.begin(), part.pushes.end()) >= step + 1 - *servers_.bound;
}

std::vector<ParameterServer::Held> ParameterServer::Release(HeldPart* part) const {
  std::vector<Held> released;
  const auto may =
      std::stable_partition(part->held.begin(), part->held.end(),
                            [&](const Held& held) { return !MayPull(*part, held.step); });
  released.assign(may, part->held.end());
  part->held.erase(may, part->held.end());
  return released;
}

void ParameterServer::AnswerAll(HeldPart* part, const std::vector<Held>& released) {
  const Clock::time_point now = Clock::now();
  for (const Held& held : released) {
    ServerAnswer answer;
    answer.held_s = Between(held.since, now);
    std::vector<float> parameters;
    {
      const std::lock_guard lock(part->mutex);
      const std::int64_t all = *std::min_element(part->pushes.begin(), part->pushes.end());
      answer.version = part->versions;
      answer.update_s = part->update_s;
      answer.over = held.step >= part->last_step && all > part->last_step ? 1 : 0;
      parameters = part->parameters;
    }
    held.call->Answer(answer, std::move(parameters));
  }
}

}  // namespace stepcast::steps
