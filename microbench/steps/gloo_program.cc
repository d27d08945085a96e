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

class Ring : public AllReduce {
 public:
  Ring(const Work& work, const std::vector<Address>& hosts, LineSocket* line)
      : AllReduce(work.training), mesh_(std::make_shared<Mesh>(work, hosts, line)) {}

 private:
  void AddUp(std::size_t k, float* numbers, std::size_t size) override {
    gloo::AllreduceOptions options(mesh_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(numbers, size);
    options.setTag(static_cast<std::uint32_t>(k % kMostBuckets));
    using Add = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(static_cast<Add>(&gloo::sum<float>));
    options.setTimeout(std::chrono::milliseconds(
        static_cast<std::int64_t>(1e3 * std::max(1.0, training().limit_s))));
    gloo::allreduce(options);
  }

  std::shared_ptr<Mesh> mesh_;
};

void TakePart(const Work& work, const std::vector<Address>& hosts, LineSocket* line) {
  std::unique_ptr<Ring> ring;  // none of a worker that is alone
  if (hosts.size() > 1) ring = std::make_unique<Ring>(work, hosts, line);
  Train(work.training, ring.get(), line);
}

}  // namespace
}  // namespace stepcast::steps

int main() { return stepcast::steps::RunProgram(stepcast::steps::TakePart); }
