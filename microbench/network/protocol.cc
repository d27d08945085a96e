#include "microbench/network/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "data/record/controls.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/utf8.h"
#include "microbench/network/socket.h"

namespace stepcast::network {
namespace {

void RequirePlain(const std::string& text, const std::string& what) {
  if (HasControls(text) || !IsUtf8(text)) throw NetworkError("sent a " + what + " that is no text");
}

bool EachIsTheNameOfOne(const std::vector<NetworkHost>& hosts) {
  std::set<std::string_view> names;
  for (const NetworkHost& host : hosts) names.insert(host.name);
  return names.size() == hosts.size();
}

}  // namespace

const std::string& PlainText(const Message& message, const std::string& key) {
  const std::string& text = message.Text(key);
  RequirePlain(text, key);
  return text;
}

Joining ReadJoining(const Message& hello, int hosts) {
  Joining joining;
  joining.rank = hello.Integer("rank", 0, hosts - 1);
  hello.Integer("of", hosts, hosts);
  joining.port = hello.Integer("port", 1, 65535);
  joining.name = PlainText(hello, "name");
  if (Trim(joining.name).empty()) throw NetworkError("has no name");
  if (joining.name.size() > kLongestHostName) {
    throw NetworkError(fmt::format("has a name of more than {} bytes", kLongestHostName));
  }
  constexpr std::string_view kFact = "fact.";
  for (const auto& [key, value] : hello.fields()) {
    if (!key.starts_with(kFact)) continue;
    const std::string name = key.substr(kFact.size());
    for (const std::string& text : {name, value}) {
      RequirePlain(text, "fact");
      if (Trim(text).empty()) throw NetworkError("sent a fact that says nothing");
    }
    joining.facts[name] = value;
  }
  return joining;
}

void NameHosts(const std::vector<std::string>& list, std::vector<NetworkHost>* hosts) {
  const auto number = [](std::size_t rank, NetworkHost* host) {
    host->name += fmt::format("-{}", rank);
  };
  std::map<std::string, int> times;
  for (std::size_t rank = 0; rank < hosts->size(); ++rank) {
    std::string& name = (*hosts)[rank].name;
    if (rank < list.size()) name = list[rank];
    std::replace(name.begin(), name.end(), '+', '-');  // which joins names of hosts
    ++times[name];
  }
  for (std::size_t rank = 0; rank < hosts->size(); ++rank) {
    if (times[(*hosts)[rank].name] > 1) number(rank, &(*hosts)[rank]);
  }
  // "a", "a" and "a-1": names that end in different numbers differ.
  if (EachIsTheNameOfOne(*hosts)) return;
  for (std::size_t rank = 0; rank < hosts->size(); ++rank) number(rank, &(*hosts)[rank]);
}

Task ReadTask(const Message& message, int hosts) {
  const bool sends = message.verb() == "send";
  if (!sends && message.verb() != "receive") throw NetworkError("sent no task");
  return {message.Integer("peer", 0, hosts - 1), sends, message.Number("pace", 0, kMostPayload)};
}

Step ReadStep(const Message& message) {
  // One flow with each of the others, or several each way with two: each is a thread.
  constexpr int kMostConnections = std::max(kMostProbedHosts, 4 * kMostProbeFlows);
  if (message.verb() != "step") throw NetworkError("sent what is no step");
  Step step;
  step.id = message.Integer("id", 0, kMostSteps);
  step.kind = static_cast<NetworkKind>(message.Integer("kind", 0, kNetworkKindCount - 1));
  step.flows = message.Integer("flows", 1, kMostProbeFlows);
  step.warm_s = message.Number("warm", 0, kLongestStepS);
  step.seconds = message.Number("seconds", 0, kLongestStepS);
  step.tasks = message.Integer("tasks", 0, kMostConnections / step.flows);
  return step;
}

namespace {

// Whether a row's problem, "HOST: PROBLEM", is only that its other end has gone.
bool TellsOfTheOtherEnd(const std::string& problem) {
  return problem.find(kClosed) != std::string::npos || problem.find(kBroke) != std::string::npos;
}

}  // namespace

void TakeResult(const Message& told, int rank, const std::vector<NetworkHost>& hosts,
                double longest_s, std::vector<NetworkRow>* rows) {
  const bool sent = told.verb() == "sent";
  if (!sent && told.verb() != "got") throw NetworkError("sent what is no answer");
  const int peer = told.Integer("peer", 0, static_cast<int>(hosts.size()) - 1);
  const auto row = std::find_if(rows->begin(), rows->end(), [&](const NetworkRow& r) {
    return sent ? r.from == rank && r.to == peer : r.to == rank && r.from == peer;
  });
  if (row == rows->end()) throw NetworkError("told of a path that nobody asked for");
  if (const std::string& problem = PlainText(told, "problem"); !problem.empty()) {
    const std::string& name = hosts[static_cast<std::size_t>(rank)].name;
    // Who ended it knows why, whoever is heard first.
    const bool is_known = !row->problem.empty() && !TellsOfTheOtherEnd(row->problem);
    if (!is_known) row->problem = fmt::format("{}: {}", name, problem);
    return;
  }
  const bool latency = row->kind == NetworkKind::kLatency;
  if (!sent) {
    if (!latency) row->bytes_per_s = told.Number("rate", kLeastRate, kMostPayload);
    return;
  }
  const auto time = [&](const char* key, double most) {
    return told.Number(key, kLeastTime, most);
  };
  const auto count = [&](const char* key, double most) {
    return static_cast<std::int64_t>(told.Number(key, 0, most));
  };
  TcpFacts tcp;
  tcp.segments = count("segments", kMostSegments);
  tcp.retransmitted = count("retransmitted", static_cast<double>(tcp.segments));
  tcp.needless = count("needless", static_cast<double>(tcp.retransmitted));
  tcp.rtt_s = told.Number("rtt", 0, kLongestRoundTrip);
  tcp.min_rtt_s = told.Number("min_rtt", 0, kLongestRoundTrip);
  tcp.window_segments = told.Number("window", 0, kMostSegments);
  tcp.segment_bytes = told.Integer("segment", 0, kLargestSegment);
  tcp.receiver_limited = told.Number("receiver_limited", 0, 1);
  tcp.sender_limited = told.Number("sender_limited", 0, 1);
  tcp.congestion_control = PlainText(told, "congestion_control");
  if (Trim(tcp.congestion_control).empty()) throw NetworkError("sent no congestion control");
  if (latency) {
    row->rtt_median_s = time("median", longest_s);
    row->rtt_p10_s = time("p10", *row->rtt_median_s);
  }
  row->tcp = tcp;
}

void Settle(const std::string& reason, NetworkRow* row) {
  const bool known = row->kind == NetworkKind::kLatency ? row->rtt_median_s.has_value()
                                                        : row->bytes_per_s && row->tcp;
  if (row->problem.empty() && !known) row->problem = reason;
  if (row->problem.empty()) return;
  row->rtt_median_s = row->rtt_p10_s = row->bytes_per_s = std::nullopt;
  row->tcp.reset();
}

}  // namespace stepcast::network
