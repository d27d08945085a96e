// A parameter server, spoken to by a client of the test's own: what it does with gradients, and
// with what no worker would send.
#include "microbench/steps/grpc_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "microbench/network/token.h"

namespace stepcast::steps {
namespace {

// Two workers, and two servers: one of a part of three floats and one of five, and one of two.
Work TwoWorkers(std::optional<int> bound, bool asynchronous) {
  Work work;
  work.rank = 2;
  work.ranks = {0, 1};
  work.server_ranks = {2, 2};
  work.word = network::RandomWord();
  work.training.steps = 3;
  work.training.buckets = {{10, 0}};
  work.training.servers = {.count = 2,
                           .asynchronous = asynchronous,
                           .bound = bound,
                           .parts = {{0, 0, 3}, {0, 1, 2}, {0, 0, 5}}};
  return work;
}

class Client {
 public:
  explicit Client(const Work& work) : work_(work) {
    server_ = std::make_unique<ParameterServer>(work_, 0, network::LocalAddress("127.0.0.1"));
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(server_->port()), grpc::InsecureChannelCredentials()));
  }

  struct Reply {
    grpc::Status status;
    std::optional<Received<ServerAnswer>> answer;
    std::vector<float> numbers() const {
      std::vector<float> all;
      answer->ForEach([&](std::size_t, float number) { all.push_back(number); });
      return all;
    }
  };
  struct Pending {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Reply> reply;
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer answer;

    bool has_come() {
      const std::lock_guard lock(mutex);
      return reply.has_value();
    }
    Reply Get() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return reply.has_value(); });
      return *reply;
    }
  };

  // In a stream of its own.
  std::shared_ptr<Pending> Send(grpc::ByteBuffer message) {
    auto pending = std::make_shared<Pending>();
    pending->request = std::move(message);
    pending->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stub_->UnaryCall(&pending->context, kMethod, {}, &pending->request, &pending->answer,
                     [pending](const grpc::Status& status) {
                       Reply reply{status, std::nullopt};
                       if (status.ok()) {
                         reply.answer = Received<ServerAnswer>::Read(&pending->answer);
                       }
                       const std::lock_guard lock(pending->mutex);
                       pending->reply = std::move(reply);
                       pending->changed.notify_all();
                     });
    return pending;
  }
  ServerCall CallOf(CallKind kind, int worker, int part, std::int64_t step) const {
    ServerCall call;
    std::copy(work_.word.begin(), work_.word.end(), call.word.begin());
    call.kind = kind;
    call.worker = worker;
    call.part = part;
    call.step = step;
    return call;
  }
  Reply Push(int worker, int part, std::int64_t step, const std::vector<float>& gradients,
             bool out_of_time = false) {
    ServerCall call = CallOf(CallKind::kPush, worker, part, step);
    call.out_of_time = out_of_time ? 1 : 0;
    return Send(MakeMessage(call, gradients))->Get();
  }
  std::shared_ptr<Pending> Pull(int worker, int part, std::int64_t step) {
    return Send(MakeMessage(CallOf(CallKind::kPull, worker, part, step)));
  }
  // Has no answer.
  void Pushed(int worker, std::int64_t step) {
    Send(MakeMessage(CallOf(CallKind::kPushed, worker, 0, step)))->Get();
  }
  grpc::Status Leave(int worker) {
    return Send(MakeMessage(CallOf(CallKind::kLeave, worker, 0, 0)))->Get().status;
  }

  ParameterServer& server() { return *server_; }

 private:
  Work work_;
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

TEST(ParameterServer, OneUpdateIsTheMeanOfAllWorkers) {
  Client client(TwoWorkers(0, false));
  EXPECT_TRUE(client.Push(0, 0, 0, {1, 2, 3}).status.ok());
  client.Pushed(0, 0);
  const auto early = client.Pull(0, 0, 0);
  EXPECT_TRUE(client.Push(1, 0, 0, {3, 2, 7}).status.ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(early->has_come()) << "the other has not pushed all";
  client.Pushed(1, 0);
  const Client::Reply reply = early->Get();
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.numbers(), (std::vector<float>{-2, -2, -5}));
  EXPECT_EQ(reply.answer->record().version, 1);
  EXPECT_EQ(reply.answer->record().over, 0);
  EXPECT_GT(reply.answer->record().held_s, 0.09);
  // The other part knows nothing of it.
  EXPECT_EQ(client.Pull(0, 2, 0)->Get().status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(ParameterServer, PipelinedPartsWaitForTheirOwnPushes) {
  Work work = TwoWorkers(0, false);
  work.training.servers->pipelined = true;
  Client client(work);
  client.Push(0, 0, 0, {1, 1, 1});
  const auto early = client.Pull(0, 0, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(early->has_come());
  client.Push(1, 0, 0, {3, 3, 3});
  EXPECT_EQ(early->Get().numbers(), (std::vector<float>{-2, -2, -2}));
}

TEST(ParameterServer, EachPushIsAnUpdateAndTellsHowStaleItWas) {
  Client client(TwoWorkers(std::nullopt, true));
  EXPECT_EQ(client.Push(0, 0, 0, {1, 2, 3}).answer->record().version, 0);
  EXPECT_EQ(client.Push(0, 0, 1, {1, 0, 0}).answer->record().version, 1);
  EXPECT_EQ(client.Push(1, 0, 0, {1, 1, 1}).answer->record().version, 2);
  EXPECT_EQ(client.Pull(1, 0, 0)->Get().numbers(), (std::vector<float>{-3, -3, -4}));
}

// A worker is as far ahead as the bound and no further, until the other has left.
TEST(ParameterServer, ABoundHoldsBackWhoIsAhead) {
  Client client(TwoWorkers(1, true));
  client.Push(0, 0, 0, {1, 1, 1});
  client.Pushed(0, 0);
  EXPECT_TRUE(client.Pull(0, 0, 0)->Get().status.ok());
  client.Push(0, 0, 1, {1, 1, 1});
  client.Pushed(0, 1);
  const auto ahead = client.Pull(0, 0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(ahead->has_come());
  EXPECT_THROW(client.server().WaitForAllToLeave(network::Deadline::In(0.05)),
               network::NetworkError);
  EXPECT_TRUE(client.Leave(1).ok());
  EXPECT_EQ(ahead->Get().numbers(), (std::vector<float>{-2, -2, -2}));
  EXPECT_TRUE(client.Leave(0).ok());
  EXPECT_NO_THROW(client.server().WaitForAllToLeave(network::Deadline::In(5)));
}

// Whoever is out of time, and after the last step: all end at the same one.
TEST(ParameterServer, AllAreOverAfterTheSameStep) {
  Client client(TwoWorkers(0, false));
  for (std::int64_t step = 0; step < 2; ++step) {
    for (int worker = 0; worker < 2; ++worker) {
      ASSERT_TRUE(client.Push(worker, 0, step, {1, 1, 1}, step == 1 && worker == 1).status.ok());
      ASSERT_TRUE(client.Push(worker, 2, step, {1, 1, 1, 1, 1}).status.ok());
      client.Pushed(worker, step);
    }
    for (int worker = 0; worker < 2; ++worker) {
      EXPECT_EQ(client.Pull(worker, 0, step)->Get().answer->record().over, step);
      EXPECT_EQ(client.Pull(worker, 2, step)->Get().answer->record().over, 0);
    }
  }
  for (int worker = 0; worker < 2; ++worker) {
    ASSERT_TRUE(client.Push(worker, 2, 2, {1, 1, 1, 1, 1}).status.ok());
    client.Pushed(worker, 2);
  }
  EXPECT_EQ(client.Pull(0, 2, 2)->Get().answer->record().over, 1) << "of three";
}

// Who goes away while it is held back is forgotten.
TEST(ParameterServer, AClientThatGoesAwayEndsNothing) {
  Client client(TwoWorkers(0, false));
  client.Push(0, 0, 0, {1, 1, 1});
  const auto gone = client.Pull(0, 0, 0);
  gone->context.TryCancel();
  EXPECT_FALSE(gone->Get().status.ok());
  client.Push(1, 0, 0, {3, 3, 3});
  client.Pushed(0, 0);
  client.Pushed(1, 0);
  EXPECT_EQ(client.Pull(1, 0, 0)->Get().numbers(), (std::vector<float>{-2, -2, -2}));
}

TEST(ParameterServer, RefusesWhatNoWorkerSends) {
  Client client(TwoWorkers(0, false));
  const auto refused = [&](const ServerCall& call, const std::vector<float>& numbers) {
    const grpc::Status status = client.Send(MakeMessage(call, numbers))->Get().status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    return status.error_message();
  };
  const std::vector<float> three = {1, 2, 3};
  using enum CallKind;
  ServerCall call = client.CallOf(kPush, 0, 0, 0);
  call.word[31] ^= 1;
  EXPECT_EQ(refused(call, three), "it showed another word");
  call.kind = kLeave;
  EXPECT_EQ(refused(call, {}), "it showed another word");
  EXPECT_EQ(refused(client.CallOf(kPush, 2, 0, 0), three), "there is no such worker");
  EXPECT_EQ(refused(client.CallOf(kPush, -1, 0, 0), three), "there is no such worker");
  EXPECT_EQ(refused(client.CallOf(kPush, 0, 1, 0), three), "there is no such part");
  EXPECT_EQ(refused(client.CallOf(kPush, 0, 3, 0), three), "there is no such part");
  EXPECT_EQ(refused(client.CallOf(kPush, 0, -1, 0), three), "there is no such part");
  EXPECT_EQ(refused(client.CallOf(static_cast<CallKind>(7), 0, 0, 0), {}), "there is no such call");
  EXPECT_EQ(refused(client.CallOf(kPushed, 0, 0, -1), {}), "there is no such step");
  EXPECT_NE(refused(client.CallOf(kPush, 0, 0, 1), three).find("next step"), std::string::npos);
  EXPECT_NE(refused(client.CallOf(kPush, 0, 0, 0), {1, 2}).find("next step"), std::string::npos);
  EXPECT_NE(refused(client.CallOf(kPull, 0, 0, 0), {}).find("not pushed"), std::string::npos);
  // Bytes of any number, too.
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 70, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const grpc::Slice slice(bytes);
    const auto reply = client.Send(grpc::ByteBuffer(&slice, 1))->Get();
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  // Nobody makes it keep more than its largest part.
  const std::vector<float> many(1000, 1);
  EXPECT_EQ(client.Push(0, 0, 0, many).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  // None of it was taken.
  EXPECT_TRUE(client.Push(0, 0, 0, three).status.ok());
}

}  // namespace
}  // namespace stepcast::steps
