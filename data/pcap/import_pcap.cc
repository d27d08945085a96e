#include "data/pcap/import_pcap.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "data/pcap/capture_file.h"
#include "data/pcap/flow_table.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

using pcap::Flow;
using pcap::FlowTable;
using pcap::IpAddress;
using pcap::Sender;

// A host's own address is an end of nearly all that it captured.
constexpr double kOwnShare = 0.9;

// Whose files these are, in the order in which they were first named.
struct Place {
  std::string host;
  std::vector<std::size_t> files;
};

std::vector<Place> PlacesOf(const std::vector<CaptureFile>& files) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto same = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return !place.host.empty() && place.host == files[i].host;
    });
    if (same == places.end()) {
      places.push_back({files[i].host, {i}});
    } else {
      same->files.push_back(i);
    }
  }
  return places;
}

// The address of the host that captured, where the packets tell; else none. What left the host has
// it as its sender; without that, nearly all packets have it, and no second one.
std::optional<IpAddress> OwnAddress(const FlowTable& table, const std::vector<Flow>& flows,
                                    std::size_t place) {
  std::map<IpAddress, std::int64_t> outgoing;
  for (const auto& [key, sender] : table.senders()) {
    if (table.points()[key.first].place == place && sender.outgoing > 0) {
      outgoing[key.second] += sender.outgoing;
    }
  }
  std::map<IpAddress, std::int64_t> ends;
  std::int64_t all = 0;
  for (const Flow& flow : flows) {
    if (table.points()[flow.point].place != place) continue;
    all += flow.facts.all.packets;
    ends[flow.from] += flow.facts.all.packets;
    if (flow.to != flow.from) ends[flow.to] += flow.facts.all.packets;
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!outgoing.empty()) {
    return std::max_element(outgoing.begin(), outgoing.end(), by_count)->first;
  }
  const auto most = std::max_element(ends.begin(), ends.end(), by_count);
  const auto own = [&](std::int64_t packets) {
    return static_cast<double>(packets) >= kOwnShare * static_cast<double>(all);
  };
  if (most == ends.end() || !own(most->second)) return std::nullopt;
  for (auto it = ends.begin(); it != ends.end(); ++it) {
    if (it != most && own(it->second)) return std::nullopt;
  }
  return most->first;
}

using Pair = std::pair<IpAddress, IpAddress>;

// Where the traffic of each pair of addresses counts: at the sender's own capture, else where most
// of its packets are.
std::map<Pair, std::size_t> ChosenPoints(const FlowTable& table, const std::vector<Flow>& flows,
                                         const std::map<IpAddress, std::size_t>& place_of) {
  std::map<Pair, std::map<std::size_t, std::int64_t>> packets;
  for (const Flow& flow : flows)
    packets[{flow.from, flow.to}][flow.point] += flow.facts.all.packets;
  std::map<Pair, std::size_t> chosen;
  for (const auto& [pair, seen] : packets) {
    const auto home = place_of.find(pair.first);
    const auto rank = [&](const auto& entry) {
      const bool own = home != place_of.end() && table.points()[entry.first].place == home->second;
      return std::pair(own, entry.second);
    };
    chosen[pair] = std::max_element(seen.begin(), seen.end(), [&](const auto& a, const auto& b) {
                     return rank(a) < rank(b);
                   })->first;
  }
  return chosen;
}

void Add(const HostStepTraffic& s, HostStepTraffic* into) {
  if (s.busy_s > 0) {
    into->first_s = into->busy_s > 0 ? std::min(into->first_s, s.first_s) : s.first_s;
    into->last_s = std::max(into->last_s, s.last_s);
  }
  into->bytes += s.bytes;
  into->bytes_in_compute += s.bytes_in_compute;
  into->busy_s += s.busy_s;
  into->busy_in_compute_s += s.busy_in_compute_s;
}

void Add(const StepTraffic& s, StepTraffic* into) { into->count += s.count; }

// One entry for each step, in their order.
template <class Step>
void MergeSteps(std::vector<Step>* steps) {
  std::stable_sort(steps->begin(), steps->end(),
                   [](const Step& a, const Step& b) { return a.step < b.step; });
  std::vector<Step> merged;
  for (const Step& s : *steps) {
    if (merged.empty() || merged.back().step != s.step) {
      merged.push_back(s);
    } else {
      Add(s, &merged.back());
    }
  }
  *steps = std::move(merged);
}

void Classify(std::vector<CapturedFlow>* flows) {
  std::int64_t most = 0;
  for (const CapturedFlow& flow : *flows) most = std::max(most, flow.all.bytes);
  for (CapturedFlow& flow : *flows) {
    const double share =
        most == 0 ? 0 : static_cast<double>(flow.all.bytes) / static_cast<double>(most);
    flow.size = flow.all.bytes == 0    ? FlowClass::kEmpty
                : share >= kLargeFlow  ? FlowClass::kLarge
                : share >= kMediumFlow ? FlowClass::kMedium
                                       : FlowClass::kSmall;
  }
}

using HostNames = std::map<IpAddress, std::string>;
using PlaceOf = std::map<IpAddress, std::size_t>;
using HostOf = std::map<IpAddress, std::size_t>;

// The addresses that were told of. Throws InputError.
HostNames ToldNames(const PcapOptions& options) {
  HostNames names;
  for (const auto& [text, host] : options.addresses) {
    const auto address = IpAddress::Parse(text);
    if (!address) {
      throw InputError({"", 0, "--address"}, text, "is no address", "HOST=ADDRESS of IPv4 or IPv6");
    }
    names[*address] = host;
  }
  return names;
}

// Throws InputError where a host has steps and nothing tells which packets are its own.
void RequireCaptures(const std::vector<HostSteps>& steps, const std::vector<Place>& places,
                     const HostNames& names) {
  for (const HostSteps& host : steps) {
    const bool captured = host.host.empty() ||
                          std::any_of(places.begin(), places.end(),
                                      [&](const Place& place) { return place.host == host.host; });
    const bool addressed = std::any_of(names.begin(), names.end(),
                                       [&](const auto& name) { return name.second == host.host; });
    if (captured || addressed) continue;
    throw InputError({"", 0, "--steps"}, host.host, "has steps and no capture",
                     fmt::format("{0}=FILE, or --address {0}=ADDRESS", host.host));
  }
}

// Where each known address captured. Gives captures the addresses of their hosts, and addresses
// the names of the hosts that captured there.
PlaceOf PlaceAddresses(const FlowTable& table, const std::vector<Flow>& flows,
                       const std::vector<Place>& places, HostNames* names,
                       std::vector<Capture>* captures) {
  PlaceOf place_of;
  for (std::size_t place = 0; place < places.size(); ++place) {
    const std::string& host = places[place].host;
    // Who was told of is believed.
    for (const auto& [address, name] : *names) {
      if (!host.empty() && name == host) place_of.emplace(address, place);
    }
    const std::optional<IpAddress> own = OwnAddress(table, flows, place);
    if (!own) continue;
    for (const std::size_t i : places[place].files) (*captures)[i].address = own->Text();
    const auto known = names->find(*own);
    if (known != names->end() && known->second != host) continue;
    place_of.emplace(*own, place);
    if (!host.empty()) names->emplace(*own, host);
  }
  return place_of;
}

// Leaves of each flow what was captured where its traffic counts; the largest first, of equals the
// first.
void KeepChosen(const FlowTable& table, const PlaceOf& place_of, std::vector<Flow>* flows) {
  const std::map<Pair, std::size_t> chosen = ChosenPoints(table, *flows, place_of);
  std::erase_if(*flows, [&](const Flow& flow) {
    return chosen.at({flow.from, flow.to}) != flow.point;
  });
  for (Flow& flow : *flows) {
    flow.facts.from = flow.from.Text();
    flow.facts.to = flow.to.Text();
    MergeSteps(&flow.facts.steps);
  }
  std::stable_sort(flows->begin(), flows->end(), [](const Flow& a, const Flow& b) {
    return std::pair(-a.facts.all.bytes, a.facts.begin_ns) <
           std::pair(-b.facts.all.bytes, b.facts.begin_ns);
  });
}

// Named hosts by their name, the others behind them by their address.
void SortHosts(const HostNames& names, std::vector<CapturedHost>* hosts, HostOf* host_of) {
  std::vector<std::size_t> order(hosts->size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::map<std::size_t, IpAddress> first;
  for (const auto& [address, host] : *host_of) first.emplace(host, address);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t host) {
      const bool named = names.count(first.at(host)) > 0;
      return std::tuple(!named, named ? (*hosts)[host].name : "", first.at(host));
    };
    return key(a) < key(b);
  });
  std::vector<CapturedHost> sorted;
  std::vector<std::size_t> new_place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    new_place[order[i]] = i;
    sorted.push_back(std::move((*hosts)[order[i]]));
  }
  *hosts = std::move(sorted);
  for (auto& [address, host] : *host_of) host = new_place[host];
}

// The hosts of the traffic: those that have names, and the ends of large flows. Throws InputError
// where they are too many.
HostOf AddHosts(const std::vector<Flow>& flows, const HostNames& names, CapturedTraffic* traffic) {
  HostOf host_of;
  std::vector<CapturedHost>& hosts = traffic->hosts;
  const auto add = [&](const std::string& name, const IpAddress& address) {
    const auto same = std::find_if(hosts.begin(), hosts.end(),
                                   [&](const CapturedHost& host) { return host.name == name; });
    const auto index = static_cast<std::size_t>(same - hosts.begin());
    if (!host_of.emplace(address, index).second) return;
    if (same == hosts.end()) {
      if (hosts.size() == kMostCapturedHosts) {
        throw InputError({"", 0, "captures"}, "", "have too many hosts",
                         fmt::format("{} ends of large flows; --filter leaves out what is not of "
                                     "the training",
                                     kMostCapturedHosts));
      }
      hosts.push_back({name, {}, {}});
    }
    hosts[index].addresses.push_back(address.Text());
  };
  std::set<IpAddress> seen;
  for (const Flow& flow : flows) {
    seen.insert(flow.from);
    seen.insert(flow.to);
  }
  for (const auto& [address, name] : names) {
    if (seen.count(address) > 0) add(name, address);
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (traffic->flows[i].size != FlowClass::kLarge) continue;
    for (const IpAddress* address : {&flows[i].from, &flows[i].to}) {
      if (host_of.count(*address) == 0) add(address->Text(), *address);
    }
  }
  SortHosts(names, &hosts, &host_of);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto index = [&](const IpAddress& address) -> std::optional<std::size_t> {
      const auto found = host_of.find(address);
      return found == host_of.end() ? std::nullopt : std::optional(found->second);
    };
    traffic->flows[i].from_host = index(flows[i].from);
    traffic->flows[i].to_host = index(flows[i].to);
  }
  return host_of;
}

// What a host sent: of each address as the point tells that saw most of it, its own first.
void AddSent(const FlowTable& table, const PlaceOf& place_of, const HostOf& host_of,
             std::vector<CapturedHost>* hosts) {
  std::map<IpAddress, std::pair<std::pair<bool, std::int64_t>, const Sender*>> best;
  for (const auto& [key, sender] : table.senders()) {
    const auto home = place_of.find(key.second);
    const bool own = home != place_of.end() && table.points()[key.first].place == home->second;
    auto& so_far = best[key.second];
    so_far = std::max(so_far, {{own, sender.all.packets}, &sender},
                      [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  for (const auto& [address, host] : host_of) {
    const auto found = best.find(address);
    if (found == best.end()) continue;
    const std::vector<HostStepTraffic>& sent = found->second.second->steps;
    std::vector<HostStepTraffic>& own_steps = (*hosts)[host].steps;
    own_steps.insert(own_steps.end(), sent.begin(), sent.end());
  }
  for (CapturedHost& host : *hosts) MergeSteps(&host.steps);
}

bool KnowsCompute(const std::vector<HostSteps>& hosts, const PcapOptions& options) {
  if (options.compute_s) return true;
  for (const HostSteps& host : hosts) {
    for (const TrainingStep& step : host.steps) {
      if (step.compute_end_ns) return true;
    }
  }
  return false;
}

}  // namespace

CaptureFile ParseCaptureFile(const std::string& text, const std::vector<HostSteps>& steps) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && text.find('/') > equals) {
    const InputPlace place{"", 0, "FILE"};
    if (equals + 1 == text.size()) throw InputError(place, text, "names no file", "HOST=FILE");
    return {text.substr(equals + 1), CheckedName(text.substr(0, equals), place)};
  }
  // "n1.pcap", "n1.2.pcapng": the longest beginning up to a dot that is a host's name.
  const std::string_view stem = std::string_view(text).substr(text.rfind('/') + 1);
  for (std::size_t end = stem.size(); end != std::string_view::npos && end > 0;
       end = stem.rfind('.', end - 1)) {
    for (const HostSteps& host : steps) {
      if (host.host == stem.substr(0, end)) return {text, host.host};
    }
  }
  return {text, ""};
}

CapturedTraffic ImportPcap(const std::vector<CaptureFile>& files, std::vector<HostSteps> steps,
                           const PcapOptions& options) {
  CapturedTraffic traffic;
  traffic.steps = std::move(steps);
  HostNames names = ToldNames(options);
  const std::vector<Place> places = PlacesOf(files);
  RequireCaptures(traffic.steps, places, names);

  FlowTable table(traffic.steps, names, options.compute_s);
  traffic.captures.resize(files.size());
  for (std::size_t place = 0; place < places.size(); ++place) {
    table.Begin(place, places[place].host);
    for (const std::size_t i : places[place].files) {
      traffic.captures[i] = pcap::ReadCapture(
          files[i].path, options.filter, [&](const pcap::Packet& packet) { table.Take(packet); });
      traffic.captures[i].host = files[i].host;
    }
  }
  std::vector<Flow>& flows = table.flows();
  const PlaceOf place_of = PlaceAddresses(table, flows, places, &names, &traffic.captures);
  KeepChosen(table, place_of, &flows);
  for (Flow& flow : flows) traffic.flows.push_back(std::move(flow.facts));
  Classify(&traffic.flows);
  const HostOf host_of = AddHosts(flows, names, &traffic);
  AddSent(table, place_of, host_of, &traffic.hosts);
  traffic.knows_compute = KnowsCompute(traffic.steps, options);
  return traffic;
}

}  // namespace stepcast
