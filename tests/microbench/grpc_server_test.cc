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

  std::shared_ptr<Pending> Send(const std::string& method, grpc::ByteBuffer message) {
    auto pending = std::make_shared<Pending>();
    pending->request = std::move(message);
    pending->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stub_->UnaryCall(&pending->context, method, {}, &pending->request, &pending->answer,
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
  ServerCall CallOf(int worker, int part, std::int64_t step) const {
    ServerCall call;
    std::copy(work_.word.begin(), work_.word.end(), call.word.begin());
    call.worker = worker;
    call.part = part;
    call.step = step;
    return call;
  }
  Reply Push(const ServerCall& call, const std::vector<float>& gradients) {
    return Send(kPush, MakeMessage(call, gradients))->Get();
  }
  std::shared_ptr<Pending> Pull(const ServerCall& call) { return Send(kPull, MakeMessage(call)); }

  ParameterServer& server() { return *server_; }

 private:
  Work work_;
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

TEST(ParameterServer, OneUpdateIsTheMeanOfAllWorkers) {
  Client client(TwoWorkers(0, false));
  EXPECT_TRUE(client.Push(client.CallOf(0, 0, 0), {1, 2, 3}).status.ok());
  const auto early = client.Pull(client.CallOf(0, 0, 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(early->has_come()) << "the other has not pushed";
  EXPECT_TRUE(client.Push(client.CallOf(1, 0, 0), {3, 2, 7}).status.ok());
  const Client::Reply reply = early->Get();
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.numbers(), (std::vector<float>{-2, -2, -5}));
  EXPECT_EQ(reply.answer->record().version, 1);
  EXPECT_EQ(reply.answer->record().over, 0);
  EXPECT_GT(reply.answer->record().held_s, 0.09);
  // The other part knows nothing of it.
  EXPECT_EQ(client.Pull(client.CallOf(0, 2, 0))->Get().status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(ParameterServer, EachPushIsAnUpdateAndTellsHowStaleItWas) {
  Client client(TwoWorkers(std::nullopt, true));
  EXPECT_EQ(client.Push(client.CallOf(0, 0, 0), {1, 2, 3}).answer->record().version, 0);
  EXPECT_EQ(client.Push(client.CallOf(0, 0, 1), {1, 0, 0}).answer->record().version, 1);
  EXPECT_EQ(client.Push(client.CallOf(1, 0, 0), {1, 1, 1}).answer->record().version, 2);
  EXPECT_EQ(client.Pull(client.CallOf(1, 0, 0))->Get().numbers(), (std::vector<float>{-3, -3, -4}));
}

// A worker is as far ahead as the bound and no further, until the other has left.
TEST(ParameterServer, ABoundHoldsBackWhoIsAhead) {
  Client client(TwoWorkers(1, true));
  client.Push(client.CallOf(0, 0, 0), {1, 1, 1});
  EXPECT_TRUE(client.Pull(client.CallOf(0, 0, 0))->Get().status.ok());
  client.Push(client.CallOf(0, 0, 1), {1, 1, 1});
  const auto ahead = client.Pull(client.CallOf(0, 0, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(ahead->has_come());
  EXPECT_THROW(client.server().WaitForAllToLeave(network::Deadline::In(0.05)),
               network::NetworkError);
  EXPECT_TRUE(client.Send(kLeave, MakeMessage(client.CallOf(1, 0, 0)))->Get().status.ok());
  EXPECT_EQ(ahead->Get().numbers(), (std::vector<float>{-2, -2, -2}));
  EXPECT_TRUE(client.Send(kLeave, MakeMessage(client.CallOf(0, 0, 0)))->Get().status.ok());
  EXPECT_NO_THROW(client.server().WaitForAllToLeave(network::Deadline::In(5)));
}

// Whoever is out of time, and after the last step: all end at the same one.
TEST(ParameterServer, AllAreOverAfterTheSameStep) {
  Client client(TwoWorkers(0, false));
  for (std::int64_t step = 0; step < 2; ++step) {
    for (int worker = 0; worker < 2; ++worker) {
      ServerCall call = client.CallOf(worker, 0, step);
      call.out_of_time = step == 1 && worker == 1 ? 1 : 0;
      ASSERT_TRUE(client.Push(call, {1, 1, 1}).status.ok());
      call.part = 2;
      call.out_of_time = 0;
      ASSERT_TRUE(client.Push(call, {1, 1, 1, 1, 1}).status.ok());
    }
    for (int worker = 0; worker < 2; ++worker) {
      EXPECT_EQ(client.Pull(client.CallOf(worker, 0, step))->Get().answer->record().over, step);
      EXPECT_EQ(client.Pull(client.CallOf(worker, 2, step))->Get().answer->record().over, 0);
    }
  }
  for (int worker = 0; worker < 2; ++worker) {
    ASSERT_TRUE(client.Push(client.CallOf(worker, 2, 2), {1, 1, 1, 1, 1}).status.ok());
  }
  EXPECT_EQ(client.Pull(client.CallOf(0, 2, 2))->Get().answer->record().over, 1) << "of three";
}

TEST(ParameterServer, RefusesWhatNoWorkerSends) {
  Client client(TwoWorkers(0, false));
  const auto refused = [&](const std::string& method, const ServerCall& call,
                           const std::vector<float>& numbers) {
    const grpc::Status status = client.Send(method, MakeMessage(call, numbers))->Get().status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    return status.error_message();
  };
  const std::vector<float> three = {1, 2, 3};
  ServerCall call = client.CallOf(0, 0, 0);
  call.word[31] ^= 1;
  EXPECT_EQ(refused(kPush, call, three), "it showed another word");
  EXPECT_EQ(refused(kLeave, call, {}), "it showed another word");
  EXPECT_EQ(refused(kPush, client.CallOf(2, 0, 0), three), "there is no such worker");
  EXPECT_EQ(refused(kPush, client.CallOf(-1, 0, 0), three), "there is no such worker");
  EXPECT_EQ(refused(kPush, client.CallOf(0, 1, 0), three), "there is no such part");
  EXPECT_EQ(refused(kPush, client.CallOf(0, 3, 0), three), "there is no such part");
  EXPECT_EQ(refused(kPush, client.CallOf(0, -1, 0), three), "there is no such part");
  EXPECT_EQ(refused("/stepcast.Parameters/Other", client.CallOf(0, 0, 0), {}),
            "there is no such method");
  EXPECT_NE(refused(kPush, client.CallOf(0, 0, 1), three).find("next step"), std::string::npos);
  EXPECT_NE(refused(kPush, client.CallOf(0, 0, 0), {1, 2}).find("next step"), std::string::npos);
  EXPECT_NE(refused(kPull, client.CallOf(0, 0, 0), {}).find("not pushed"), std::string::npos);
  EXPECT_NE(refused(kPull, client.CallOf(0, 0, -1), {}).find("not pushed"), std::string::npos);
  // Bytes of any number, too.
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 120, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const grpc::Slice slice(bytes);
    const auto reply = client.Send(i % 2 == 0 ? kPush : kPull, grpc::ByteBuffer(&slice, 1))->Get();
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  // None of it was taken.
  EXPECT_TRUE(client.Push(client.CallOf(0, 0, 0), three).status.ok());
}

}  // namespace
}  // namespace stepcast::steps
