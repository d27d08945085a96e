#include "data/pcap/flow_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/record/input_error.h"
#include "data/values/size_limits.h"

namespace stepcast::pcap {
namespace {

constexpr std::int64_t kSlotNs = 1'000'000;

double Seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerS); }

}  // namespace

std::size_t FlowTable::Hash::operator()(const Key& key) const {
  // Mixes the words of both addresses and of the ports by Knuth's multiplier.
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  std::uint64_t hash = key.point * 2 + (key.tcp ? 1 : 0);
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  for (const IpAddress* address : {&key.from, &key.to}) {
    std::uint64_t words[2];
    std::memcpy(words, address->bytes.data(), sizeof words);
    add(words[0]);
    add(words[1]);
  }
  add((std::uint64_t{key.from_port} << 16) | key.to_port);
  return hash;
}

FlowTable::FlowTable(const std::vector<HostSteps>& steps, std::map<IpAddress, std::string> host_of,
                     std::optional<double> compute_s)
    : steps_(&steps), host_of_(std::move(host_of)) {
  if (compute_s) compute_ns_ = static_cast<std::int64_t>(*compute_s * static_cast<double>(kNsPerS));
}

void FlowTable::Begin(std::size_t place, const std::string& host) {
  place_ = place;
  place_steps_ = nullptr;
  for (const HostSteps& steps : *steps_) {
    if (steps.host.empty() || (!host.empty() && steps.host == host)) place_steps_ = &steps;
  }
}

std::size_t FlowTable::PointOf(std::uint32_t interface) {
  const Point point{place_, interface};
  if (!points_.empty() && points_.back() == point) return points_.size() - 1;
  const auto found = std::find(points_.begin(), points_.end(), point);
  if (found != points_.end()) return static_cast<std::size_t>(found - points_.begin());
  points_.push_back(point);
  return points_.size() - 1;
}

void FlowTable::StartFlow(const Key& key, Open* open) {
  if (flows_.size() >= kMostFlows) {
    throw InputError({"", 0, "captures"}, "", "have too many flows",
                     fmt::format("{} in all captures; --filter leaves out what is not of the "
                                 "training",
                                 kMostFlows));
  }
  open->flow = flows_.size();
  open->holes = 0;
  open->any = false;
  open->cursor = 0;
  Flow flow;
  flow.point = key.point;
  flow.from = key.from;
  flow.to = key.to;
  flow.facts.from_port = key.from_port;
  flow.facts.to_port = key.to_port;
  flow.facts.tcp = key.tcp;
  flows_.push_back(std::move(flow));
}

FlowTable::Open& FlowTable::OpenOf(const Packet& packet, Key* key) {
  *key = {PointOf(packet.interface), packet.from,    packet.to,
          packet.from_port,          packet.to_port, packet.tcp};
  const auto [found, is_new] = open_.try_emplace(*key);
  Open& open = found->second;
  if (is_new) {
    StartFlow(*key, &open);
    open.sender = &senders_[{key->point, packet.from}];
    open.steps = place_steps_;
    const auto host = host_of_.find(packet.from);
    if (open.steps == nullptr && host != host_of_.end()) {
      for (const HostSteps& steps : *steps_) {
        if (steps.host == host->second) open.steps = &steps;
      }
    }
  } else if (packet.syn && open.any &&
             (flows_[open.flow].facts.closed || !flows_[open.flow].facts.opened ||
              open.syn != packet.sequence)) {
    StartFlow(*key, &open);  // the same ports, once more
  }
  return open;
}

// What TCP numbers: bytes that nobody has seen yet, or that are sent again.
void FlowTable::Follow(const Packet& packet, Open* open, CapturedFlow* flow) {
  if (packet.syn) {
    flow->opened = true;
    open->syn = packet.sequence;
    if (!open->any) open->next = packet.sequence + 1;
  } else if (!open->any) {
    open->next = packet.sequence;
  }
  if (packet.fin || packet.rst) flow->closed = true;
  if (packet.payload == 0 || packet.rst) return;
  const auto length = static_cast<std::uint32_t>(packet.payload);
  const std::uint32_t start = packet.sequence + (packet.syn ? 1 : 0);
  const auto ahead = static_cast<std::int32_t>(start - open->next);
  const auto end_ahead = static_cast<std::int32_t>(start + length - open->next);
  if (ahead > 0) open->holes += ahead;
  const std::int64_t old = ahead >= 0 ? 0 : std::min<std::int64_t>(-std::int64_t{ahead}, length);
  const std::int64_t late = std::min(old, open->holes);
  open->holes -= late;
  flow->repeated_bytes += old - late;
  flow->missing_bytes = open->holes;
  if (end_ahead > 0) open->next = start + length;
}

void FlowTable::CountStep() {
  if (++flow_steps_ <= kMostFlowSteps) return;
  throw InputError({"", 0, "captures"}, "", "have too many flows in so many steps",
                   fmt::format("{} pairs of a flow and a step; --filter leaves out what is not of "
                               "the training",
                               kMostFlowSteps));
}

void FlowTable::Use(const Packet& packet, const TrainingStep& step, Sender* sender) {
  if (sender->steps.empty() || sender->steps.back().step != step.number) {
    CountStep();
    HostStepTraffic fresh;
    fresh.step = step.number;
    fresh.step_s = Seconds(step.end_ns - step.begin_ns);
    sender->steps.push_back(fresh);
    sender->slot = -1;
  }
  HostStepTraffic& use = sender->steps.back();
  std::optional<std::int64_t> compute_end = step.compute_end_ns;
  if (!compute_end && compute_ns_) compute_end = step.begin_ns + *compute_ns_;
  const bool computing = compute_end && packet.time_ns < *compute_end;
  use.bytes += packet.payload;
  if (computing) use.bytes_in_compute += packet.payload;
  const std::int64_t slot = (packet.time_ns - step.begin_ns) / kSlotNs;
  if (slot != sender->slot) sender->slot_bytes = 0;
  sender->slot = slot;
  const bool was_busy = sender->slot_bytes >= kBusyBytes;
  sender->slot_bytes += packet.payload;
  if (was_busy || sender->slot_bytes < kBusyBytes) return;
  const double slot_s = Seconds(kSlotNs);
  if (use.busy_s == 0) use.first_s = static_cast<double>(slot) * slot_s;
  use.last_s = std::min(static_cast<double>(slot + 1) * slot_s, use.step_s);
  use.busy_s += slot_s;
  if (computing) use.busy_in_compute_s += slot_s;
}

void FlowTable::Bin(const Packet& packet, Open* open, CapturedFlow* flow) {
  if (open->steps == nullptr) return;
  const std::vector<TrainingStep>& steps = open->steps->steps;
  const std::int64_t now = packet.time_ns;
  const auto holds = [&](std::size_t i) {
    return i < steps.size() && steps[i].begin_ns <= now && now < steps[i].end_ns;
  };
  if (!holds(open->cursor)) {
    // The last that began before now.
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), now,
        [](std::int64_t time, const TrainingStep& step) { return time < step.begin_ns; });
    if (after == steps.begin()) {
      flow->periods.before.Add(packet.payload);
      return;
    }
    const auto at = static_cast<std::size_t>(after - steps.begin()) - 1;
    if (!holds(at)) {
      (after == steps.end() ? flow->periods.after : flow->periods.between).Add(packet.payload);
      return;
    }
    open->cursor = at;
  }
  const TrainingStep& step = steps[open->cursor];
  flow->periods.during.Add(packet.payload);
  if (flow->steps.empty() || flow->steps.back().step != step.number) {
    CountStep();
    flow->steps.push_back({step.number, {}});
  }
  flow->steps.back().count.Add(packet.payload);
  if (packet.payload > 0) Use(packet, step, open->sender);
}

void FlowTable::Take(const Packet& packet) {
  Key key;
  Open& open = OpenOf(packet, &key);
  CapturedFlow& flow = flows_[open.flow].facts;
  if (flow.all.packets == 0) flow.begin_ns = flow.end_ns = packet.time_ns;
  flow.begin_ns = std::min(flow.begin_ns, packet.time_ns);
  flow.end_ns = std::max(flow.end_ns, packet.time_ns);
  flow.all.Add(packet.payload);
  if (packet.tcp) Follow(packet, &open, &flow);
  if (packet.rst) {
    flow.reset = true;
    std::swap(key.from, key.to);
    std::swap(key.from_port, key.to_port);
    if (const auto back = open_.find(key); back != open_.end()) {
      flows_[back->second.flow].facts.closed = true;
    }
  }
  Bin(packet, &open, &flow);
  open.any = true;
  open.sender->all.Add(packet.payload);
  if (packet.outgoing) ++open.sender->outgoing;
}

}  // namespace stepcast::pcap
