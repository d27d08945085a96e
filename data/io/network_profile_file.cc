#include "data/io/network_profile_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "data/io/text_file.h"
#include "data/io/yaml_section.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr int kNetworkFormat = 1;
constexpr const char* kNetworkFormatKey = "stepcast_network";
constexpr int kMostPlanned = 10'000'000;

TcpFacts TakeTcp(YamlSection* section) {
  const auto count = [&](const char* key, double most) {
    return section->LongInteger(key, 0, static_cast<long long>(most));
  };
  TcpFacts tcp;
  tcp.segments = count("segments", kMostSegments);
  tcp.retransmitted = count("retransmitted", static_cast<double>(tcp.segments));
  tcp.needless = count("needless", static_cast<double>(tcp.retransmitted));
  tcp.rtt_s = section->Number("rtt_s", 0, kLongestRoundTrip);
  tcp.min_rtt_s = section->Number("min_rtt_s", 0, kLongestRoundTrip);
  tcp.window_segments = section->Number("window_segments", 0, kMostSegments);
  tcp.segment_bytes = static_cast<int>(count("segment_bytes", kLargestSegment));
  tcp.receiver_limited = section->Number("receiver_limited", 0, 1);
  tcp.sender_limited = section->Number("sender_limited", 0, 1);
  tcp.congestion_control = section->Text("congestion_control");
  section->Finish();
  return tcp;
}

NetworkRow TakeRow(YamlSection* section, const std::map<std::string, int>& hosts) {
  NetworkRow row;
  row.kind =
      static_cast<NetworkKind>(section->Choice("kind", kNetworkKindNames, "is not one of them"));
  for (const auto& [key, end] : {std::pair("from", &row.from), std::pair("to", &row.to)}) {
    const std::string name = section->Text(key);
    const auto host = hosts.find(name);
    if (host == hosts.end()) {
      throw InputError(section->PlaceOf(key), name, "is none of the hosts", "a name of hosts");
    }
    *end = host->second;
  }
  if (row.from == row.to) {
    throw InputError(section->PlaceOf("to"), section->Text("to"), "is where it comes from",
                     "another host");
  }
  row.flows = section->Integer("flows", 1, kMostProbeFlows);
  row.problem = section->OptionalText("problem").value_or("");
  if (row.problem.empty()) {
    if (row.kind == NetworkKind::kLatency) {
      row.rtt_median_s = section->Number("rtt_median_s", kLeastTime, kLongestRoundTrip);
      row.rtt_p10_s = section->OptionalNumber("rtt_p10_s", 0, kLongestRoundTrip);
    } else {
      row.bytes_per_s = section->Number("bytes_per_s", kLeastRate, kMostPayload);
    }
    if (std::optional<YamlSection> tcp = section->OptionalSection("tcp")) row.tcp = TakeTcp(&*tcp);
  }
  section->Finish();
  return row;
}

Ordered TcpJson(const TcpFacts& tcp) {
  return {{"segments", tcp.segments},
          {"retransmitted", tcp.retransmitted},
          {"needless", tcp.needless},
          {"rtt_s", tcp.rtt_s},
          {"min_rtt_s", tcp.min_rtt_s},
          {"window_segments", tcp.window_segments},
          {"segment_bytes", tcp.segment_bytes},
          {"receiver_limited", tcp.receiver_limited},
          {"sender_limited", tcp.sender_limited},
          {"congestion_control", tcp.congestion_control}};
}

}  // namespace

NetworkProfile ReadNetworkProfile(const std::string& path) {
  return ParseNetworkProfile(ReadTextFile(path, kMostYamlBytes), path);
}

NetworkProfile ParseNetworkProfile(const std::string& text, const std::string& path) {
  YamlSection file = YamlSection::Parse(text, path);
  file.Integer(kNetworkFormatKey, kNetworkFormat, kNetworkFormat);
  NetworkProfile profile;
  profile.version = file.Text("version");
  profile.started = file.Text("started");
  profile.problem = file.OptionalText("problem").value_or("");
  profile.planned = file.Integer("planned", 0, kMostPlanned);
  profile.settings = file.NamedTexts("settings");
  std::map<std::string, int> numbers;
  for (YamlSection& section : file.Sections("hosts")) {
    NetworkHost host;
    host.name = section.Name("name");
    host.address = section.Text("address");
    host.facts = section.NamedTexts("facts");
    if (!numbers.emplace(host.name, static_cast<int>(profile.hosts.size())).second) {
      throw InputError(section.PlaceOf("name"), host.name, "is the name of two hosts",
                       "each host once");
    }
    if (host.name.find('+') != std::string::npos) {
      throw InputError(section.PlaceOf("name"), host.name, "contains +, which joins host names");
    }
    section.Finish();
    profile.hosts.push_back(std::move(host));
  }
  if (profile.hosts.size() < 2 || profile.hosts.size() > kMostProbedHosts) {
    throw InputError(file.PlaceOf("hosts"), std::to_string(profile.hosts.size()),
                     "is no number of hosts to measure between",
                     "2 to " + std::to_string(kMostProbedHosts));
  }
  std::map<std::tuple<NetworkKind, int, int>, bool> seen;
  for (YamlSection& section : file.Sections("rows")) {
    profile.rows.push_back(TakeRow(&section, numbers));
    const NetworkRow& row = profile.rows.back();
    if (!seen.emplace(std::tuple(row.kind, row.from, row.to), true).second) {
      throw InputError(section.PlaceOf("to"), profile.hosts[static_cast<std::size_t>(row.to)].name,
                       "is there twice", "each kind, from and to once");
    }
  }
  file.Finish();
  return profile;
}

std::string FormatNetworkProfile(const NetworkProfile& profile) {
  Ordered hosts = Ordered::array();
  for (const NetworkHost& host : profile.hosts) {
    hosts.push_back({{"name", host.name}, {"address", host.address}, {"facts", host.facts}});
  }
  Ordered rows = Ordered::array();
  for (const NetworkRow& row : profile.rows) {
    Ordered json = {{"kind", kNetworkKindNames[static_cast<int>(row.kind)]},
                    {"from", profile.hosts[static_cast<std::size_t>(row.from)].name},
                    {"to", profile.hosts[static_cast<std::size_t>(row.to)].name},
                    {"flows", row.flows}};
    if (row.rtt_median_s) json["rtt_median_s"] = *row.rtt_median_s;
    if (row.rtt_p10_s) json["rtt_p10_s"] = *row.rtt_p10_s;
    if (row.bytes_per_s) json["bytes_per_s"] = *row.bytes_per_s;
    if (row.tcp) json["tcp"] = TcpJson(*row.tcp);
    if (!row.problem.empty()) json["problem"] = row.problem;
    rows.push_back(std::move(json));
  }
  const auto text = [](const Ordered& json) {
    return json.dump(-1, ' ', true, Ordered::error_handler_t::replace);
  };
  // A row a line: people look into it, too.
  std::string out = "{";
  const auto key = [&](const char* name, const std::string& value) {
    out += (out.size() > 1 ? ",\n \"" : "\"") + std::string(name) + "\": " + value;
  };
  const auto list = [&](const Ordered& items) {
    std::string lines = "[";
    for (const Ordered& item : items) {
      lines += (lines.size() > 1 ? ",\n  " : "\n  ") + text(item);
    }
    return lines + "\n ]";
  };
  key(kNetworkFormatKey, std::to_string(kNetworkFormat));
  key("version", text(profile.version));
  key("started", text(profile.started));
  if (!profile.problem.empty()) key("problem", text(profile.problem));
  key("planned", std::to_string(profile.planned));
  key("settings", text(profile.settings));
  key("hosts", list(hosts));
  key("rows", list(rows));
  return out + "\n}\n";
}

}  // namespace stepcast
