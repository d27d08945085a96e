// Captures of packets.
#include <cmath>
#include <string>
#include <vector>

#include "data/pcap/import_pcap.h"
#include "data/pcap/traffic_summary.h"
#include "tests/fuzz/door.h"

namespace stepcast::fuzz {
namespace {

STEPCAST_DOOR(pcap) {
  // Steps of a tenth of a second, as captures of the corpus have them.
  constexpr std::int64_t kFirst = 1'769'860'800'000'000'000;
  constexpr std::int64_t kStep = 100'000'000;
  HostSteps steps;
  for (int i = 0; i < 3; ++i) {
    steps.steps.push_back({i, kFirst + i * kStep, kFirst + (i + 1) * kStep - kStep / 10, {}});
  }
  PcapOptions options;
  options.compute_s = 0.05;
  const std::string path = FileOf(input, "capture.pcap");
  const CapturedTraffic traffic = ImportPcap({{path, "a"}, {path, "b"}}, {steps}, options);
  const TrafficSummary summary = Summarise(traffic);
  TrafficCount in_steps;
  for (const CapturedFlow& flow : traffic.flows) {
    Require(flow.all.packets > 0 && flow.all.bytes >= 0, "a flow of nothing");
    Require(flow.begin_ns <= flow.end_ns, "a flow ends before it begins");
    Require(flow.repeated_bytes >= 0 && flow.missing_bytes >= 0 &&
                flow.repeated_bytes <= flow.all.bytes,
            "a flow repeats more than it carries");
    TrafficCount own;
    for (const StepTraffic& step : flow.steps) own += step.count;
    Require(own.packets == flow.periods.during.packets && own.bytes == flow.periods.during.bytes,
            "steps are not what is in steps");
    in_steps += own;
  }
  const TrafficPeriods& p = summary.periods;
  TrafficCount periods = p.before;
  periods += p.during;
  periods += p.between;
  periods += p.after;
  Require(periods.packets == summary.all.packets && periods.bytes == summary.all.bytes,
          "periods are not all");
  Require(in_steps.bytes == p.during.bytes, "hosts and flows differ");
  // The same file twice is the same packets seen twice.
  Require(summary.all.packets <= traffic.captures[0].packets, "a packet counts twice");
  for (const HostSummary& host : summary.hosts) {
    Require(host.hidden >= 0 && host.hidden <= 1 && std::isfinite(host.busy_s), "a host's time");
  }
  if (summary.ring) {
    Require(summary.ring->share >= kLeastOfRing && summary.ring->share <= 1 + 1e-9,
            "a ring's share");
  }
}

// "NAME=FILE", or a file of one of two hosts.
STEPCAST_DOOR(capture_file) {
  const std::vector<HostSteps> hosts = {{"n1", {}}, {"n1.eth0", {}}};
  const CaptureFile file = ParseCaptureFile(input, hosts);
  Require(input.ends_with(file.path) && IsUtf8(file.host), "another file, or a host of no name");
  const bool stated = file.path.size() < input.size();
  Require(!stated || input == file.host + "=" + file.path, "a name is cut");
}

}  // namespace
}  // namespace stepcast::fuzz
