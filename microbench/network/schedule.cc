#include "microbench/network/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stepcast::network {
namespace {

using Kind = NetworkKind;

// Share of a measurement that is not counted, and the least of it in round trips: from ten segments
// a slow start reaches a gigabyte in flight within seventeen.
constexpr double kWarmShare = 0.3;
constexpr double kWarmRoundTrips = 17;
// What lies between two measurements.
constexpr double kBetweenS = 0.1;

// Rounds of pairs by the circle method: host 0 stays, the others turn. Who meets the one that is
// not there rests.
std::vector<std::vector<Edge>> Tournament(int hosts) {
  const int even = hosts + hosts % 2;
  std::vector<std::vector<Edge>> rounds;
  for (int round = 0; round + 1 < even; ++round) {
    const auto at = [&](int seat) { return seat == 0 ? 0 : 1 + (round + seat - 1) % (even - 1); };
    std::vector<Edge> pairs;
    for (int seat = 0; seat < even / 2; ++seat) {
      const auto [low, high] = std::minmax({at(seat), at(even - 1 - seat)});
      if (high < hosts) pairs.push_back({low, high});
    }
    rounds.push_back(pairs);
  }
  return rounds;
}

std::vector<Edge> Reversed(std::vector<Edge> edges) {
  for (Edge& edge : edges) std::swap(edge.from, edge.to);
  return edges;
}

std::vector<Edge> Both(const std::vector<Edge>& edges) {
  std::vector<Edge> both = edges;
  const std::vector<Edge> back = Reversed(edges);
  both.insert(both.end(), back.begin(), back.end());
  return both;
}

}  // namespace

std::vector<ProbeStep> MakeSchedule(int hosts) {
  std::vector<ProbeStep> steps;
  for (const std::vector<Edge>& pairs : Tournament(hosts)) {
    const std::vector<Edge> back = Reversed(pairs);
    steps.push_back({Kind::kLatency, pairs});
    steps.push_back({Kind::kOneFlow, pairs});
    steps.push_back({Kind::kOneFlow, back});
    steps.push_back({Kind::kSeveralFlows, pairs});
    steps.push_back({Kind::kSeveralFlows, back});
    steps.push_back({Kind::kBothWays, Both(pairs)});
    steps.push_back({Kind::kPaced, Both(pairs)});
  }
  if (hosts < 3) return steps;
  // Each host sends to the two behind it; as many at once as share no host.
  std::set<int> waiting;
  for (int host = 0; host < hosts; ++host) waiting.insert(host);
  while (!waiting.empty()) {
    ProbeStep step{Kind::kTwoPeers, {}};
    std::set<int> busy;
    for (auto it = waiting.begin(); it != waiting.end();) {
      const int a = (*it + 1) % hosts;
      const int b = (*it + 2) % hosts;
      if (busy.count(*it) + busy.count(a) + busy.count(b) > 0) {
        ++it;
        continue;
      }
      busy.insert({*it, a, b});
      step.edges.push_back({*it, a});
      step.edges.push_back({*it, b});
      it = waiting.erase(it);
    }
    steps.push_back(step);
  }
  for (int to = 0; to < hosts; ++to) {
    ProbeStep step{Kind::kIncast, {}};
    for (int from = 0; from < hosts; ++from) {
      if (from != to) step.edges.push_back({from, to});
    }
    steps.push_back(step);
  }
  return steps;
}

int FlowsOf(Kind kind, const ProbeSettings& settings) {
  return kind == Kind::kLatency || kind == Kind::kOneFlow || kind == Kind::kIncast ? 1
                                                                                   : settings.flows;
}

double WarmSeconds(Kind kind, const ProbeSettings& settings, double rtt_s) {
  if (kind == Kind::kLatency) return 0;
  return std::max(kWarmShare * settings.seconds, kWarmRoundTrips * rtt_s);
}

double MeasuredSeconds(Kind kind, const ProbeSettings& settings) {
  // Losses are few, and are counted for longer.
  if (kind == Kind::kPaced) return 2 * settings.seconds;
  if (kind == Kind::kLatency) return kWarmShare * settings.seconds;
  return (1 - kWarmShare) * settings.seconds;
}

double ExpectedSeconds(const std::vector<ProbeStep>& steps, std::size_t from,
                       const ProbeSettings& settings) {
  double sum = 0;
  for (std::size_t i = from; i < steps.size(); ++i) {
    const Kind kind = steps[i].kind;
    sum += WarmSeconds(kind, settings, 0) + MeasuredSeconds(kind, settings) + kBetweenS;
  }
  return sum;
}

}  // namespace stepcast::network
