// stepcast-parameters: a worker, parameter servers, or both, of a training whose parameters live on
// servers that speak gRPC, and whose compute is waited for. A program of its own, as stepcast-gloo
// is.
#include <memory>
#include <vector>

#include "microbench/steps/grpc_exchange.h"
#include "microbench/steps/grpc_server.h"
#include "microbench/steps/program.h"

namespace stepcast::steps {
namespace {

using network::Address;
using network::Deadline;
using network::LineSocket;
using network::Message;
using network::NetworkError;

void TakePart(const Work& work, const std::vector<Address>& hosts, LineSocket* line) {
  const auto workers = static_cast<int>(work.ranks.size());
  const auto servers = static_cast<int>(work.server_ranks.size());
  const Deadline start = Deadline::In(kAnswerS);
  std::vector<std::unique_ptr<ParameterServer>> own;
  std::vector<Address> addresses(hosts.begin() + workers, hosts.end());  // of the servers
  for (int server = 0; server < servers; ++server) {
    const auto i = static_cast<std::size_t>(server);
    if (work.server_ranks[i] != work.rank) continue;
    own.push_back(std::make_unique<ParameterServer>(work, server, addresses[i]));
    for (int worker = 0; worker < workers; ++worker) {
      line->Send(ListeningMessage({server, worker, own.back()->port(), 0}).Line(), start);
    }
  }
  if (work.worker() >= 0) {
    for (int i = 0; i < servers; ++i) {
      const Listening other = ReadListening(Message::Parse(line->Read(start)), servers, workers);
      if (other.to != work.worker()) throw NetworkError("told of another's port");
      // Wherever it says that it waits, it is at its host's address.
      Address& server = addresses[static_cast<std::size_t>(other.from)];
      server = server.WithPort(other.port);
    }
    ServerExchange exchange(work, addresses);
    Train(work.training, &exchange, line);
    exchange.Leave();
  }
  const Deadline end = Deadline::In(work.training.longest_s() + kAnswerS);
  for (const auto& server : own) server->WaitForAllToLeave(end);
}

}  // namespace
}  // namespace stepcast::steps

int main() { return stepcast::steps::RunProgram(stepcast::steps::TakePart); }
