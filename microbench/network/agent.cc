#include "microbench/network/agent.h"

#include <future>
#include <latch>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "data/record/network_profile.h"
#include "microbench/network/protocol.h"
#include "microbench/network/tcp_info.h"
#include "microbench/network/traffic.h"

namespace stepcast::network {
namespace {

// When all hosts have connected; none where the step is not measured.
using Go = std::optional<Clock::time_point>;

// One connection of a task, in a thread of its own.
struct Flow {
  const Task* task = nullptr;
  int number = 0;
  std::thread thread;
  // What came of it.
  std::optional<RoundTrips> trips;
  std::optional<double> rate;
  std::optional<TcpFacts> tcp;
  std::string problem;
};

class Agent {
 public:
  Agent(const AgentOptions& options, Door* door)
      : options_(options), member_(Join(&options_, door)) {}

  std::string Run() {
    double step_s = 0;  // the last one: others may measure it without this host
    while (true) {
      const Message message =
          Message::Parse(member_.master.Read(options_.deadline.AtMost(step_s + kPatienceS)));
      if (message.verb() == kEnd) return PlainText(message, "problem");
      const Step step = ReadStep(message);
      std::vector<Task> tasks;
      for (int i = 0; i < step.tasks; ++i) {
        tasks.push_back(ReadTask(
            Message::Parse(member_.master.Read(options_.deadline.AtMost(kGraceS))), options_.of));
      }
      step_s = step.warm_s + step.seconds;
      if (const auto ended = Do(step, tasks)) return *ended;
    }
  }

 private:
  // Connects, waits until all hosts have, measures, and tells. Why the probe ended instead, where
  // it did.
  std::optional<std::string> Do(const Step& step, const std::vector<Task>& tasks) {
    member_.door->Forget(step.id);
    std::list<Flow> flows;
    std::latch connected(static_cast<std::ptrdiff_t>(tasks.size()) * step.flows);
    std::promise<Go> go;
    const std::shared_future<Go> told = go.get_future().share();
    for (const Task& task : tasks) {
      for (int number = 0; number < step.flows; ++number) {
        Flow& flow = flows.emplace_back();
        flow.task = &task;
        flow.number = number;
        flow.thread = std::thread([&, told] { RunFlow(step, &flow, &connected, told); });
      }
    }
    connected.wait();
    const Deadline answer = options_.deadline.AtMost(kPatienceS);
    const auto join = [&](bool measure) {
      go.set_value(measure ? std::optional(Clock::now()) : std::nullopt);
      for (Flow& flow : flows) flow.thread.join();
    };
    Message word;
    try {
      member_.master.Send(Message("ready").Set("id", step.id).Line(), answer);
      word = Message::Parse(member_.master.Read(answer));
    } catch (const NetworkError&) {
      join(false);
      throw;
    }
    join(word.verb() == "go");
    if (word.verb() == kEnd) return PlainText(word, "problem");
    if (word.verb() != "go") throw NetworkError("sent no go");
    for (const Task& task : tasks) Tell(task, flows);
    member_.master.Send(Message("done").Set("id", step.id).Line(),
                        options_.deadline.AtMost(kGraceS));
    return std::nullopt;
  }

  void RunFlow(const Step& step, Flow* flow, std::latch* connected,
               const std::shared_future<Go>& go) {
    Socket socket;
    try {
      socket = SetUp(step, *flow);
    } catch (const NetworkError& e) {
      flow->problem = e.what();
    }
    connected->count_down();
    const Go told = go.get();
    if (!told || !socket) return;
    const Deadline deadline = options_.deadline.AtMost(step.warm_s + step.seconds + kGraceS / 2);
    try {
      if (step.kind == NetworkKind::kLatency) {
        if (flow->task->sends) {
          flow->trips = Ping(socket, step.seconds, deadline);
          flow->tcp = ReadTcpInfo(socket);
        } else {
          Echo(socket, deadline);
        }
      } else if (flow->task->sends) {
        flow->tcp = SendUntilDone(&socket, deadline);
      } else {
        flow->rate = Receive(socket, *told + SecondsToClock(step.warm_s), step.seconds, deadline);
      }
    } catch (const NetworkError& e) {
      flow->problem = e.what();
    }
  }

  // Senders connect, receivers are connected to.
  Socket SetUp(const Step& step, const Flow& flow) const {
    const Deadline deadline = options_.deadline.AtMost(kSetUpS);
    const int peer = flow.task->peer;
    if (!flow.task->sends) return member_.door->TakeData(step.id, peer, flow.number, deadline);
    const Address source = member_.door->address().WithPort(0);
    LineSocket line(
        Socket::Connect(member_.peers[static_cast<std::size_t>(peer)], &source, deadline));
    Message hello = Membership::Hello(kData, options_.token);
    hello.Set("step", step.id).Set("from", options_.rank).Set("flow", flow.number);
    line.Send(hello.Line(), deadline);
    Membership::RequireWelcome(Message::Parse(line.Read(deadline)));
    Socket socket = line.Release();
    if (flow.task->pace > 0) socket.Pace(flow.task->pace);
    return socket;
  }

  void Tell(const Task& task, const std::list<Flow>& flows) const {
    Message result(task.sends ? "sent" : "got");
    result.Set("peer", task.peer);
    std::optional<double> rate;
    std::vector<TcpFacts> tcp;
    std::string problem;
    for (const Flow& flow : flows) {
      if (flow.task != &task) continue;
      if (problem.empty()) problem = flow.problem;
      if (flow.rate) rate = rate.value_or(0) + *flow.rate;
      if (flow.tcp) tcp.push_back(*flow.tcp);
      if (flow.trips) result.Set("median", flow.trips->median_s).Set("p10", flow.trips->p10_s);
    }
    // Where packets are lost, one flow of several may wait for a packet all the while.
    if (problem.empty() && rate && *rate == 0) problem = "too little came to tell a rate";
    result.Set("problem", problem).Set("rate", rate.value_or(0));
    if (!tcp.empty()) {
      const TcpFacts sum = Joined(tcp);
      result.Set("segments", static_cast<double>(sum.segments));
      result.Set("retransmitted", static_cast<double>(sum.retransmitted));
      result.Set("needless", static_cast<double>(sum.needless));
      result.Set("rtt", sum.rtt_s).Set("min_rtt", sum.min_rtt_s);
      result.Set("window", sum.window_segments).Set("segment", sum.segment_bytes);
      result.Set("receiver_limited", sum.receiver_limited);
      result.Set("sender_limited", sum.sender_limited);
      result.Set("congestion_control", sum.congestion_control);
    }
    member_.master.Send(result.Line(), options_.deadline.AtMost(kGraceS));
  }

  AgentOptions options_;
  Membership member_;
};

}  // namespace

std::string RunAgent(const AgentOptions& options, Door* door) {
  return ByCoordinator(options, [&] { return Agent(options, door).Run(); });
}

}  // namespace stepcast::network
