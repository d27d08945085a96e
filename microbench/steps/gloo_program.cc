// stepcast-gloo: one worker of a training whose gradients Gloo adds up, and whose compute is waited
// for. A program of its own: what a stranger's bytes, a peer that is gone or too little memory do
// to the library ends this program, and its host says so.
#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "microbench/steps/program.h"

namespace stepcast::steps {
namespace {

using network::Address;
using network::Clock;
using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;

// How long Gloo waits for another to connect is five times this.
constexpr std::chrono::seconds kConnect{3};

// All workers connected to each other.
class Mesh : public gloo::Context {
 public:
  Mesh(const Work& work, const std::vector<Address>& hosts, LineSocket* line)
      : gloo::Context(work.worker(), static_cast<int>(hosts.size())) {
    gloo::transport::tcp::attr attr;
    attr.hostname = hosts[static_cast<std::size_t>(rank)].host();
    device_ = gloo::transport::tcp::CreateDevice(attr);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(kConnect);
    const Deadline deadline = Deadline::In(kAnswerS);
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
      const Listening other = ReadListening(Message::Parse(line->Read(deadline)), size, size);
      if (other.to != rank || other.from == rank) throw NetworkError("told of another's port");
      // Wherever it says that it waits, it is at its host's address.
      const Address at = hosts[static_cast<std::size_t>(other.from)].WithPort(other.port);
      transportContext_->getPair(other.from)
          ->connect(gloo::transport::tcp::Address(at.storage, other.sequence).bytes());
    }
  }
};

// One bucket after the other.
class Ring : public Exchange {
 public:
  Ring(const Work& work, const std::vector<Address>& hosts, LineSocket* line)
      : training_(work.training), mesh_(std::make_shared<Mesh>(work, hosts, line)) {
    double floats = 1;
    for (const GradientBucket& bucket : training_.buckets) floats += bucket.floats;
    gradients_.assign(static_cast<std::size_t>(floats), 0.0F);
  }

  // Behind the last bucket there is a number, which tells all whether one of them is out of time.
  void Send(std::size_t k, bool out_of_time, Timing* timing) override {
    if (k == 0) next_ = gradients_.data();
    const bool last = k + 1 == training_.buckets.size();
    const auto size = static_cast<std::size_t>(training_.buckets[k].floats);
    if (last) next_[size] = out_of_time ? 1 : 0;
    gloo::AllreduceOptions options(mesh_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(next_, size + (last ? 1 : 0));
    options.setTag(static_cast<std::uint32_t>(k % kMostBuckets));
    using Add = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(static_cast<Add>(&gloo::sum<float>));
    options.setTimeout(std::chrono::milliseconds(
        static_cast<std::int64_t>(1e3 * std::max(1.0, training_.limit_s))));
    const Clock::time_point before = Clock::now();
    gloo::allreduce(options);
    timing->bucket_s[k] = Between(before, Clock::now());
    timing->step.synchronising_s += timing->bucket_s[k];
    next_ += size;
    if (last) over_ = *next_ > 0;
  }
  void Finish(Timing* /*timing*/) override { ++steps_; }
  bool Over() const override { return over_ || steps_ == training_.warm_up + training_.steps; }

 private:
  const Training& training_;
  std::shared_ptr<Mesh> mesh_;
  std::vector<float> gradients_;
  float* next_ = nullptr;  // of the bucket that comes next
  int steps_ = 0;
  bool over_ = false;
};

void TakePart(const Work& work, const std::vector<Address>& hosts, LineSocket* line) {
  std::unique_ptr<Ring> ring;  // none of a worker that is alone
  if (hosts.size() > 1) ring = std::make_unique<Ring>(work, hosts, line);
  Train(work.training, ring.get(), line);
}

}  // namespace
}  // namespace stepcast::steps

int main() { return stepcast::steps::RunProgram(stepcast::steps::TakePart); }
