#include "predictor/cli/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "data/values/names.h"
#include "model/network/hop.h"
#include "model/statistics/scatter.h"
#include "model/step/parameters.h"

namespace stepcast::cli {
namespace {

using network::Finding;
using network::FindingKind;
using network::HostLink;
using network::MeasuredRows;
using network::NetworkSummary;
using Kind = NetworkKind;

// How well a measured cap of flows is known, as a standard error of its logarithm.
constexpr double kMeasuredLogSd = 0.05;
// Findings of one kind that are told one by one.
constexpr std::size_t kMostTold = 5;

std::string RateText(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? FormatRate(BytesPerSecond(*bytes_per_s)) : "-";
}
std::string TimeText(const std::optional<double>& seconds) {
  return seconds ? FormatDuration(Seconds(*seconds)) : "-";
}
std::string LossText(const network::LossCount& loss) {
  if (const std::optional<double> share = loss.share()) return FormatLoss(*share);
  if (loss.segments == 0) return "-";
  return fmt::format("{} of {}", loss.lost, FormatCount(loss.segments));
}

std::string FactOf(const NetworkHost& host, const std::string& name) {
  const auto found = host.facts.find(name);
  return found == host.facts.end() ? "" : found->second;
}

const std::string& Name(const NetworkProfile& profile, int host) {
  return profile.hosts[static_cast<std::size_t>(host)].name;
}

// What may hold a single flow back, as its kernel told.
std::string WhyCapped(const MeasuredRows& rows, const Finding& finding) {
  const NetworkRow* row = rows.Find(Kind::kOneFlow, finding.host, finding.peer);
  if (row == nullptr || !row->tcp) return "";
  const TcpFacts& tcp = *row->tcp;
  constexpr double kMost = 0.3;
  if (tcp.receiver_limited > kMost) {
    return ": the receiver's window held it back (net.ipv4.tcp_rmem)";
  }
  if (tcp.sender_limited > kMost) return ": the sender's buffer held it back (net.ipv4.tcp_wmem)";
  network::LossCount loss;
  if ((loss += tcp).share()) {
    return fmt::format(": it sent {} of its segments again", FormatLoss(*loss.share()));
  }
  return "";
}

std::string Sentence(const NetworkProfile& profile, const MeasuredRows& rows, const Finding& f) {
  const std::string host = Name(profile, f.host);
  const std::string peer = f.peer < 0 ? "" : Name(profile, f.peer);
  const std::string value = RateText(f.value);
  const std::string like = RateText(f.like);
  switch (f.kind) {
    case FindingKind::kSlowHost:
      return fmt::format("{} is slow: its link carries {}, those of the others {}", host, value,
                         like);
    case FindingKind::kAsymmetricHost:
      return fmt::format("{} sends at {} and receives at {}", host, value, like);
    case FindingKind::kDistantHost:
      return fmt::format("{} is far: {} there and back, between the others {}", host,
                         TimeText(f.value), TimeText(f.like));
    case FindingKind::kLossyHost:
      return fmt::format("paths of {} lose {} of their packets, those of the others {}", host,
                         FormatPercent(f.value), FormatPercent(f.like));
    case FindingKind::kSlowPair:
      return fmt::format(
          "between {} and {} is a slow link: it carries {}, though both exchange {} "
          "with others",
          host, peer, value, like);
    case FindingKind::kAsymmetricPair:
      return fmt::format("{} to {} is slow: {}, and {} back", host, peer, value, like);
    case FindingKind::kCappedFlow:
      return fmt::format("one flow from {} to {} is capped: it carries {}, several {}{}", host,
                         peer, value, like, WhyCapped(rows, f));
    case FindingKind::kLossLimited:
      return fmt::format(
          "loss holds back what {} sends to {}: {}, and no queue filled. The line may carry more; "
          "more --flows tell",
          host, peer, value);
    case FindingKind::kBelowPort:
      return fmt::format("{} has a port of {} and carries {}", host, like, value);
    case FindingKind::kIncastCollapse:
      return fmt::format("while all send to {} it receives {}, from one peer {}", host, value,
                         like);
    case FindingKind::kDifferentMtu:
      return "interfaces have different MTUs: " + [&] {
        std::string list;
        for (const NetworkHost& h : profile.hosts) {
          list += (list.empty() ? "" : ", ") + h.name + " " + FactOf(h, "mtu");
        }
        return list;
      }();
  }
  return "";
}

// A value of each ordered pair; dark is slow, or far.
template <class Value>
HeatMap MapOf(const NetworkProfile& profile, const std::string& corner, bool high_is_good,
              const Value& value_of, std::string (*text)(double)) {
  const std::size_t hosts = profile.hosts.size();
  const auto known = [&](std::size_t a, std::size_t b) -> std::optional<double> {
    if (a == b) return std::nullopt;
    return value_of(static_cast<int>(a), static_cast<int>(b));
  };
  double best = 0;
  for (std::size_t a = 0; a < hosts; ++a) {
    for (std::size_t b = 0; b < hosts; ++b) {
      const std::optional<double> value = known(a, b);
      if (!value || *value <= 0) continue;
      best = best == 0 ? *value : high_is_good ? std::max(best, *value) : std::min(best, *value);
    }
  }
  HeatMap map;
  map.corner = corner;
  for (const NetworkHost& host : profile.hosts) map.names.push_back(host.name);
  map.cells.assign(hosts, std::vector<std::optional<HeatMap::Cell>>(hosts));
  for (std::size_t a = 0; a < hosts; ++a) {
    for (std::size_t b = 0; b < hosts; ++b) {
      const std::optional<double> value = known(a, b);
      if (!value) continue;
      const double share = *value <= 0 ? 0 : high_is_good ? *value / best : best / *value;
      constexpr int kMost = HeatMap::kShades - 1;
      const int shade =
          static_cast<int>(std::clamp((1 - share) * HeatMap::kShades, 0.0, 1.0 * kMost));
      map.cells[a][b] = HeatMap::Cell{text(*value), shade};
    }
  }
  return map;
}

// A row for each sender, a column for each receiver.
std::string Matrix(const HeatMap& map, const Style& style) {
  constexpr const char* kShades[HeatMap::kShades] = {" ", "░", "▒", "▓", "█"};
  constexpr const char* kPlain[HeatMap::kShades] = {" ", ".", ":", "+", "#"};
  std::vector<TableColumn> columns = {LeftColumn(map.corner)};
  for (const std::string& name : map.names) columns.push_back({name, ""});
  Table table(columns);
  for (std::size_t a = 0; a < map.names.size(); ++a) {
    std::vector<std::string> cells = {map.names[a]};
    for (std::size_t b = 0; b < map.names.size(); ++b) {
      const std::optional<HeatMap::Cell>& cell = map.cells[a][b];
      cells.push_back(!cell ? (a == b ? "" : "?")
                            : cell->text + " " + (style.utf8 ? kShades : kPlain)[cell->shade]);
    }
    table.AddRow(cells);
  }
  return table.Render(style, 2);
}

}  // namespace

std::string NetworkTitle(const NetworkProfile& profile) {
  return fmt::format("Network of {} hosts", profile.hosts.size());
}

Table LinksTable(const NetworkProfile& profile, const NetworkSummary& summary) {
  Table table({LeftColumn("host"), LeftColumn("interface"), "sends", "receives", "one flow",
               "both ways", "to two", "from all", "round trip", "loss"});
  for (std::size_t i = 0; i < summary.links.size(); ++i) {
    const HostLink& link = summary.links[i];
    const NetworkHost& host = profile.hosts[i];
    table.AddRow({host.name, FactOf(host, "interface"), RateText(link.sends),
                  RateText(link.receives), RateText(link.one_flow), RateText(link.both_ways),
                  RateText(link.to_two), RateText(link.incast), TimeText(link.rtt_s),
                  LossText(link.loss)});
  }
  return table;
}

HeatMap RatesOfPairs(const NetworkProfile& profile) {
  const MeasuredRows rows(profile);
  return MapOf(
      profile, "from \\ to", true, [&](int a, int b) { return rows.Best(a, b); },
      +[](double rate) { return FormatRate(BytesPerSecond(rate)); });
}

HeatMap RoundTripsOfPairs(const NetworkProfile& profile) {
  const MeasuredRows rows(profile);
  return MapOf(
      profile, "round trip", false, [&](int a, int b) { return rows.RoundTrip(a, b); },
      +[](double time) { return FormatDuration(Seconds(time)); });
}

std::vector<std::string> FindingTexts(const NetworkProfile& profile,
                                      const NetworkSummary& summary) {
  const MeasuredRows rows(profile);
  std::map<FindingKind, std::size_t> of_kind;
  for (const Finding& finding : summary.findings) ++of_kind[finding.kind];
  std::map<FindingKind, std::size_t> told;
  std::vector<std::string> texts;
  for (const Finding& finding : summary.findings) {
    const std::size_t now = ++told[finding.kind];
    if (now > kMostTold) continue;
    std::string line = Sentence(profile, rows, finding);
    if (now == kMostTold && of_kind[finding.kind] > now) {
      line += fmt::format("; and {} more like it: --json lists them", of_kind[finding.kind] - now);
    }
    texts.push_back(std::move(line));
  }
  return texts;
}

std::vector<std::string> MissingTexts(const NetworkProfile& profile) {
  std::vector<std::string> texts;
  if (!profile.problem.empty()) texts.push_back("ended early: " + profile.problem);
  std::set<std::string> problems;
  for (const NetworkRow& row : profile.rows) {
    if (row.problem.empty() || row.problem == profile.problem) continue;
    problems.insert(fmt::format("{}, {} to {}: {}", kNetworkKindNames[static_cast<int>(row.kind)],
                                Name(profile, row.from), Name(profile, row.to), row.problem));
  }
  for (const std::string& problem : problems) {
    if (texts.size() == kMostTold + (profile.problem.empty() ? 0 : 1)) break;
    texts.push_back(problem);
  }
  if (!profile.complete()) {
    const auto measured = std::count_if(profile.rows.begin(), profile.rows.end(),
                                        [](const NetworkRow& row) { return row.problem.empty(); });
    texts.push_back(fmt::format("{} of {} measurements are there", measured, profile.planned));
  }
  return texts;
}

std::vector<std::string> SoundTexts(const NetworkProfile& profile, const NetworkSummary& summary) {
  if (!summary.findings.empty() || !profile.complete()) return {};
  return {"No link, pair or flow is below four fifths of its like."};
}

std::string NetworkText(const NetworkProfile& profile, const NetworkSummary& summary, bool pairs,
                        const Style& style) {
  std::string text = Heading(NetworkTitle(profile), style);
  text += LinksTable(profile, summary).Render(style, 2);
  text += NoteLine(kLinksMean, style);
  if (pairs) {
    text += "\n" + Matrix(RatesOfPairs(profile), style);
    text += "\n" + Matrix(RoundTripsOfPairs(profile), style);
  }
  for (const std::string& line : FindingTexts(profile, summary)) text += FlagLine(line, style);
  for (const std::string& line : SoundTexts(profile, summary)) text += NoteLine(line, style);
  for (const std::string& line : MissingTexts(profile)) text += FlagLine(line, style);
  return text;
}

Json NetworkJson(const NetworkProfile& profile, const NetworkSummary& summary) {
  Json hosts = Json::array();
  for (std::size_t i = 0; i < summary.links.size(); ++i) {
    const HostLink& link = summary.links[i];
    hosts.push_back({{"name", profile.hosts[i].name},
                     {"address", profile.hosts[i].address},
                     {"facts", profile.hosts[i].facts},
                     {"sends_bytes_per_s", NumberJson(link.sends)},
                     {"receives_bytes_per_s", NumberJson(link.receives)},
                     {"one_flow_bytes_per_s", NumberJson(link.one_flow)},
                     {"both_ways_bytes_per_s", NumberJson(link.both_ways)},
                     {"to_two_bytes_per_s", NumberJson(link.to_two)},
                     {"from_all_bytes_per_s", NumberJson(link.incast)},
                     {"rtt_s", NumberJson(link.rtt_s)},
                     {"loss_rate", NumberJson(link.loss.share())},
                     {"segments", link.loss.segments},
                     {"lost", link.loss.lost}});
  }
  const MeasuredRows rows(profile);
  Json findings = Json::array();
  for (const Finding& f : summary.findings) {
    findings.push_back({{"kind", network::kFindingNames[static_cast<int>(f.kind)]},
                        {"host", Name(profile, f.host)},
                        {"peer", f.peer < 0 ? Json(nullptr) : Json(Name(profile, f.peer))},
                        {"value", f.value},
                        {"like", f.like},
                        {"sentence", Sentence(profile, rows, f)}});
  }
  const auto measured = std::count_if(profile.rows.begin(), profile.rows.end(),
                                      [](const NetworkRow& row) { return row.problem.empty(); });
  return {{"complete", profile.complete()},
          {"problem", TextJson(profile.problem)},
          {"planned", profile.planned},
          {"measured", measured},
          {"bandwidth_bytes_per_s", NumberJson(summary.bandwidth)},
          {"flow_cap_bytes_per_s", NumberJson(summary.flow_cap)},
          {"loss_limited", summary.loss_limited},
          {"rtt_s", NumberJson(summary.rtt_s)},
          {"loss_rate", NumberJson(summary.loss.share())},
          {"hosts", hosts},
          {"findings", findings}};
}

Cluster WithMeasuredLinks(Cluster cluster, const NetworkProfile& profile,
                          const NetworkSummary& summary, const std::string& place) {
  // More digits than were measured would only be read as if they were.
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.4g}", value)); };
  const auto line_rate = [&](double payload) {
    return BytesPerSecond(rounded(payload / kPayloadShare));
  };
  // What loses nearly all carries nothing, and a link of it is not to be stated.
  const auto loss_of = [&](const std::optional<double>& share) {
    const bool carries = share && rounded(*share) < 1;
    return carries ? std::optional(rounded(*share)) : std::nullopt;
  };
  const auto refuse_rdma = [&](const LinkFacts& link, const std::string& key) {
    if (!link.rdma()) return;
    throw InputError({place, 0, key}, NameOf(Transport::kRdma), "is not what was measured",
                     "a cluster file of links with TCP");
  };
  refuse_rdma(cluster.link, "link.transport");
  // What loss held back says what the line carries at least, and the forecast knows of the loss.
  const bool whole_line =
      summary.bandwidth && !(summary.loss_limited && cluster.link.bandwidth &&
                             cluster.link.bandwidth->si() * kPayloadShare > *summary.bandwidth);
  if (whole_line) cluster.link.bandwidth = line_rate(*summary.bandwidth);
  if (summary.rtt_s) cluster.link.rtt = Milliseconds(rounded(*summary.rtt_s * 1e3));
  const std::optional<double> loss = loss_of(summary.loss.share());
  if (loss) cluster.link.loss = loss;
  cluster.link.transport = Transport::kTcp;
  std::set<std::string> controls;
  for (const NetworkHost& host : profile.hosts) controls.insert(FactOf(host, "congestion_control"));
  if (controls.size() == 1) {
    const auto known = FindName(*controls.begin(), kCongestionControlNames);
    if (known) cluster.link.congestion_control = static_cast<CongestionControl>(*known);
  }
  for (std::size_t i = 0; i < profile.hosts.size(); ++i) {
    const std::string& name = profile.hosts[i].name;
    auto host = std::find_if(cluster.hosts.begin(), cluster.hosts.end(),
                             [&](const Host& h) { return h.name == name; });
    if (host == cluster.hosts.end()) host = cluster.hosts.insert(host, Host{name, {}});
    refuse_rdma(host->link, "hosts.link.transport");
    host->link = {};
    for (const Finding& f : summary.findings) {
      if (f.host != static_cast<int>(i)) continue;
      const bool slow = f.kind == FindingKind::kSlowHost || f.kind == FindingKind::kAsymmetricHost;
      const auto bandwidth = summary.links[i].bandwidth();
      if (slow && bandwidth && !summary.links[i].loss_limited)
        host->link.bandwidth = line_rate(*bandwidth);
      if (f.kind == FindingKind::kDistantHost)
        host->link.rtt = Milliseconds(rounded(f.value * 1e3));
      if (f.kind == FindingKind::kLossyHost) host->link.loss = loss_of(f.value);
    }
  }
  cluster.nodes = std::max(cluster.nodes, static_cast<int>(cluster.hosts.size()));
  const std::string source =
      fmt::format("stepcast probe network, {}, {} hosts", profile.started, profile.hosts.size());
  if (whole_line) {
    cluster.sources["link.bandwidth"] =
        fmt::format("{}: {} of payload", source, RateText(summary.bandwidth));
  }
  if (summary.rtt_s) cluster.sources["link.rtt"] = source;
  if (loss) cluster.sources["link.loss"] = source;
  cluster.calibration.reset();
  const ParameterSpec& spec = kClusterParameterSpecs[kFlowBandwidth];
  const double flow_cap = summary.flow_cap.value_or(0) / spec.si_per_unit;
  if (flow_cap >= spec.low && flow_cap <= spec.high) {
    ParameterEstimate cap;
    cap.scope = kClusterScope;
    cap.name = spec.name;
    cap.unit = spec.unit;
    cap.value = flow_cap;
    cap.log_sd = kMeasuredLogSd;
    cap.prior_value = spec.prior;
    cap.prior_log_sd = spec.prior_log_sd;
    cap.prior_source = source;
    cap.decided_by = DecidedBy::kStated;
    Calibration stated;
    stated.parameters = {cap};
    stated.log_covariance = Eigen::MatrixXd::Constant(1, 1, kMeasuredLogSd * kMeasuredLogSd);
    stated.residual_log_sd = kUncalibratedScatter;
    stated.version = profile.version;
    cluster.calibration = stated;
  }
  return cluster;
}

}  // namespace stepcast::cli
