#include "data/pcap/traffic_summary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "data/record/quantile.h"

namespace stepcast {
namespace {

template <class Value>
double MedianOf(const std::vector<HostStepTraffic>& steps, const Value& value) {
  Sample sample;
  for (const HostStepTraffic& step : steps) sample.push_back(value(step));
  std::sort(sample.begin(), sample.end());
  return sample.empty() ? 0 : Quantile(sample, 0.5);
}

HostSummary SummariseHost(const CapturedHost& host, double* busy_s, double* hidden_s) {
  HostSummary summary;
  summary.steps = host.steps.size();
  summary.bytes = MedianOf(host.steps, [](const auto& s) { return static_cast<double>(s.bytes); });
  summary.first_s = MedianOf(host.steps, [](const auto& s) { return s.first_s; });
  summary.last_s = MedianOf(host.steps, [](const auto& s) { return s.last_s; });
  summary.busy_s = MedianOf(host.steps, [](const auto& s) { return s.busy_s; });
  double busy = 0;
  double hidden = 0;
  for (const HostStepTraffic& step : host.steps) {
    busy += step.busy_s;
    hidden += step.busy_in_compute_s;
  }
  if (busy > 0) summary.hidden = hidden / busy;
  *busy_s += busy;
  *hidden_s += hidden;
  return summary;
}

}  // namespace

std::optional<RingOrder> FindRing(const TrafficMatrix& between) {
  const std::size_t hosts = between.size();
  std::vector<std::size_t> next(hosts);
  std::vector<double> sent(hosts);
  for (std::size_t host = 0; host < hosts; ++host) {
    sent[host] = std::accumulate(between[host].begin(), between[host].end(), 0.0);
    next[host] = static_cast<std::size_t>(
        std::max_element(between[host].begin(), between[host].end()) - between[host].begin());
  }
  std::optional<RingOrder> best;
  std::vector<bool> known(hosts, false);  // to lead into a ring, or on it
  for (std::size_t start = 0; start < hosts; ++start) {
    RingOrder ring;
    double along = 0;
    double all = 0;
    std::size_t at = start;
    do {
      const double step = between[at][next[at]];
      if (step == 0) break;
      ring.hosts.push_back(at);
      along += step;
      all += sent[at];
      at = next[at];
    } while (at != start && !known[at] && ring.hosts.size() < hosts);
    known[start] = true;
    if (at != start || ring.hosts.size() < 2 || along < kLeastOfRing * all) continue;
    ring.share = along / all;
    for (const std::size_t host : ring.hosts) known[host] = true;
    if (!best || ring.hosts.size() > best->hosts.size()) best = ring;
  }
  return best;
}

TrafficSummary Summarise(const CapturedTraffic& traffic) {
  TrafficSummary summary;
  const std::size_t hosts = traffic.hosts.size();
  summary.between.assign(hosts, std::vector<double>(hosts, 0));
  std::map<std::int64_t, double> step_bytes;
  for (const CapturedFlow& flow : traffic.flows) {
    summary.all += flow.all;
    summary.periods += flow.periods;
    ClassTraffic& own = summary.classes[static_cast<std::size_t>(flow.size)];
    ++own.flows;
    own.count += flow.all;
    if (flow.all.bytes > 0) summary.flow_bytes.push_back(static_cast<double>(flow.all.bytes));
    const bool between_hosts = flow.from_host && flow.to_host;
    if (between_hosts) {
      summary.between[*flow.from_host][*flow.to_host] +=
          static_cast<double>(traffic.steps.empty() ? flow.all.bytes : flow.periods.during.bytes);
    }
    for (const StepTraffic& step : flow.steps) {
      const auto bytes = static_cast<double>(step.count.bytes);
      if (flow.size == FlowClass::kLarge) summary.large_flow_step_bytes.push_back(bytes);
      if (between_hosts) step_bytes[step.step] += bytes;
    }
  }
  summary.ring = FindRing(summary.between);
  std::set<std::int64_t> numbers;
  for (const HostSteps& host : traffic.steps) {
    for (const TrainingStep& step : host.steps) {
      numbers.insert(step.number);
      summary.step_s.push_back(static_cast<double>(step.end_ns - step.begin_ns) * 1e-9);
    }
  }
  summary.steps = numbers.size();
  double busy_s = 0;
  double hidden_s = 0;
  for (const CapturedHost& host : traffic.hosts) {
    summary.hosts.push_back(SummariseHost(host, &busy_s, &hidden_s));
    for (const HostStepTraffic& step : host.steps) {
      summary.host_step_bytes.push_back(static_cast<double>(step.bytes));
    }
  }
  if (traffic.knows_compute && busy_s > 0) summary.hidden = hidden_s / busy_s;
  for (const auto& [step, bytes] : step_bytes) summary.step_bytes.push_back(bytes);
  for (Sample* sample : {&summary.step_s, &summary.flow_bytes, &summary.large_flow_step_bytes,
                         &summary.host_step_bytes, &summary.step_bytes}) {
    std::sort(sample->begin(), sample->end());
  }
  return summary;
}

}  // namespace stepcast
