#include "microbench/network/findings.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>

#include "data/record/quantile.h"

namespace stepcast::network {
namespace {

using Kind = NetworkKind;

// A round trip that is longer by less is no distance.
constexpr double kLeastDistanceS = 2e-4;
constexpr double kDistantFactor = 2;
constexpr double kLossyFactor = 2;
// A flow that loses more may be slow for that, and not for a cap.
constexpr double kLossThatSlows = 1e-4;
// Flows that fill a line wait in its queue, or lose more than those that leave it room.
constexpr double kLeastQueueing = 1.5;
constexpr double kLeastOverflow = 1.5;

std::optional<double> Median(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(MedianOf(values));
}

void Raise(std::optional<double>* most, const std::optional<double>& value) {
  if (value) *most = std::max(most->value_or(*value), *value);
}

// What `part` tells of each host's link, where it tells something; the host `but` is left out.
template <class Part>
std::vector<double> Of(const std::vector<HostLink>& links, const Part& part, int but = -1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::optional<double> value = part(links[i]);
    if (value && static_cast<int>(i) != but) values.push_back(*value);
  }
  return values;
}

class Summary {
 public:
  explicit Summary(const NetworkProfile& profile) : profile_(profile), rows_(profile) {}

  NetworkSummary Make() {
    for (int host = 0; host < rows_.hosts(); ++host) result_.links.push_back(LinkOf(host));
    const auto bandwidth = [](const HostLink& link) { return link.bandwidth(); };
    const auto rtt = [](const HostLink& link) { return link.rtt_s; };
    result_.bandwidth = Median(Of(result_.links, bandwidth));
    result_.rtt_s = Median(Of(result_.links, rtt));
    const auto limited = std::count_if(result_.links.begin(), result_.links.end(),
                                       [](const HostLink& link) { return link.loss_limited; });
    result_.loss_limited = 2 * static_cast<std::size_t>(limited) > result_.links.size();
    Hosts();
    Losses();
    Pairs();
    Ports();
    return std::move(result_);
  }

 private:
  const HostLink& Link(int host) const { return result_.links[static_cast<std::size_t>(host)]; }

  HostLink LinkOf(int host) const {
    HostLink link;
    std::vector<double> round_trips;
    std::vector<double> to_two;
    std::vector<double> incast;
    for (int peer = 0; peer < rows_.hosts(); ++peer) {
      if (peer == host) continue;
      Raise(&link.sends, rows_.Best(host, peer));
      Raise(&link.receives, rows_.Best(peer, host));
      Raise(&link.one_flow, rows_.Rate(Kind::kOneFlow, host, peer));
      const std::optional<double> out = rows_.Rate(Kind::kBothWays, host, peer);
      const std::optional<double> in = rows_.Rate(Kind::kBothWays, peer, host);
      if (out && in) Raise(&link.both_ways, *out + *in);
      if (const auto rate = rows_.Rate(Kind::kTwoPeers, host, peer)) to_two.push_back(*rate);
      if (const auto rate = rows_.Rate(Kind::kIncast, peer, host)) incast.push_back(*rate);
      if (const auto rtt = rows_.RoundTrip(host, peer)) round_trips.push_back(*rtt);
      for (const auto& [from, to] : {std::pair(host, peer), std::pair(peer, host)}) {
        const NetworkRow* row = rows_.Find(Kind::kPaced, from, to);
        if (row != nullptr && row->tcp) link.loss += *row->tcp;
      }
    }
    link.rtt_s = Median(round_trips);
    for (int peer = 0; peer < rows_.hosts(); ++peer) {
      const bool best_out = link.sends && rows_.Best(host, peer) == link.sends;
      const bool best_in = link.receives && rows_.Best(peer, host) == link.receives;
      link.loss_limited = link.loss_limited || (best_out && LossLimits(host, peer)) ||
                          (best_in && LossLimits(peer, host));
    }
    // A sum without one of its parts is none.
    const auto sum = [](const std::vector<double>& rates, std::size_t parts) {
      double all = 0;
      for (const double rate : rates) all += rate;
      return rates.size() == parts && parts > 1 ? std::optional(all) : std::nullopt;
    };
    link.to_two = sum(to_two, 2);
    link.incast = sum(incast, static_cast<std::size_t>(rows_.hosts() - 1));
    return link;
  }

  // Whether loss held several flows back before the line could.
  bool LossLimits(int from, int to) const {
    const NetworkRow* several = rows_.Find(Kind::kSeveralFlows, from, to);
    const NetworkRow* paced = rows_.Find(Kind::kPaced, from, to);
    if (several == nullptr || !several->tcp || paced == nullptr || !paced->tcp) return false;
    const auto lost = [](const TcpFacts& tcp) { return (LossCount() += tcp).share().value_or(0); };
    if (several->tcp->congestion_control.starts_with("bbr")) return false;  // which goes by no loss
    const double on_the_way = lost(*paced->tcp);
    const double as_much = lost(*several->tcp) / on_the_way;
    return on_the_way >= kLossThatSlows && as_much < kLeastOverflow &&
           as_much > 1 / kLeastOverflow &&
           several->tcp->rtt_s < kLeastQueueing * rows_.RoundTrip(from, to).value_or(0);
  }

  void Add(FindingKind kind, int host, int peer, double value, double like) {
    result_.findings.push_back({kind, host, peer, value, like});
  }

  // Of two hosts nobody can say which is the slow one.
  void Hosts() {
    if (rows_.hosts() < 3) return;
    for (int host = 0; host < rows_.hosts(); ++host) {
      const HostLink& link = Link(host);
      const auto others = Median(Of(
          result_.links, [](const HostLink& l) { return l.bandwidth(); }, host));
      if (link.bandwidth() && others && *link.bandwidth() < kSlowShare * *others) {
        Add(FindingKind::kSlowHost, host, -1, *link.bandwidth(), *others);
      }
      if (link.sends && link.receives &&
          std::min(*link.sends, *link.receives) <
              kSlowShare * std::max(*link.sends, *link.receives)) {
        Add(FindingKind::kAsymmetricHost, host, -1, *link.sends, *link.receives);
      }
      const auto near = Median(Of(
          result_.links, [](const HostLink& l) { return l.rtt_s; }, host));
      if (link.rtt_s && near && *link.rtt_s > kDistantFactor * *near &&
          *link.rtt_s > *near + kLeastDistanceS) {
        Add(FindingKind::kDistantHost, host, -1, *link.rtt_s, *near);
      }
    }
  }

  LossCount LossBut(const std::set<int>& but) const {
    LossCount sum;
    for (const NetworkRow& row : profile_.rows) {
      if (row.kind != Kind::kPaced || !row.tcp || but.count(row.from) + but.count(row.to) > 0) {
        continue;
      }
      sum += *row.tcp;
    }
    return sum;
  }

  void Losses() {
    std::set<int> lossy;
    for (int host = 0; host < rows_.hosts() && rows_.hosts() > 2; ++host) {
      const std::optional<double> own = Link(host).loss.share();
      const LossCount others = LossBut({host});
      if (!own || others.segments == 0) continue;
      const double like = static_cast<double>(others.lost) / static_cast<double>(others.segments);
      if (*own <= kLossyFactor * like) continue;
      lossy.insert(host);
      Add(FindingKind::kLossyHost, host, -1, *own, like);
    }
    result_.loss = LossBut(lossy);
  }

  // What the path would carry if the hosts' own links were all.
  std::optional<double> Expected(int from, int to) const {
    if (!Link(from).sends || !Link(to).receives) return std::nullopt;
    return std::min(*Link(from).sends, *Link(to).receives);
  }

  void Pairs() {
    std::vector<double> caps;
    std::size_t both = 0;
    for (int a = 0; a < rows_.hosts(); ++a) {
      for (int b = 0; b < rows_.hosts(); ++b) {
        if (a == b) continue;
        const std::optional<double> one = rows_.Rate(Kind::kOneFlow, a, b);
        const std::optional<double> several = rows_.Rate(Kind::kSeveralFlows, a, b);
        if (one && several) {
          ++both;
          if (*one < kSlowShare * *several) {
            const NetworkRow* row = rows_.Find(Kind::kOneFlow, a, b);
            LossCount again;
            if (row->tcp) again += *row->tcp;
            if (again.share().value_or(0) < kLossThatSlows) caps.push_back(*one);
            Add(FindingKind::kCappedFlow, a, b, *one, *several);
          }
        }
        if (several && LossLimits(a, b)) Add(FindingKind::kLossLimited, a, b, *several, *several);
        if (a < b) Pair(a, b);
      }
    }
    if (caps.size() > both / 2) result_.flow_cap = Median(caps);
  }

  void Pair(int a, int b) {
    const auto out = rows_.Best(a, b);
    const auto back = rows_.Best(b, a);
    const auto out_like = Expected(a, b);
    const auto back_like = Expected(b, a);
    if (!out || !back || !out_like || !back_like) return;
    if (rows_.hosts() == 2) {
      // Their links are the pair.
      if (*out < kSlowShare * *back) Add(FindingKind::kAsymmetricPair, a, b, *out, *back);
      if (*back < kSlowShare * *out) Add(FindingKind::kAsymmetricPair, b, a, *back, *out);
      return;
    }
    const bool slow_out = *out < kSlowShare * *out_like;
    const bool slow_back = *back < kSlowShare * *back_like;
    if (slow_out && slow_back) Add(FindingKind::kSlowPair, a, b, *out, *out_like);
    if (slow_out && !slow_back) Add(FindingKind::kAsymmetricPair, a, b, *out, *back);
    if (slow_back && !slow_out) Add(FindingKind::kAsymmetricPair, b, a, *back, *out);
  }

  void Ports() {
    std::set<std::string> mtus;
    for (int host = 0; host < rows_.hosts(); ++host) {
      const auto& facts = profile_.hosts[static_cast<std::size_t>(host)].facts;
      if (const auto mtu = facts.find("mtu"); mtu != facts.end()) mtus.insert(mtu->second);
      const HostLink& link = Link(host);
      if (link.incast && link.receives && *link.incast < kSlowShare * *link.receives) {
        Add(FindingKind::kIncastCollapse, host, -1, *link.incast, *link.receives);
      }
      const auto speed = facts.find("speed");
      if (speed == facts.end() || !link.bandwidth()) continue;
      double mbit = 0;
      const std::string& text = speed->second;
      std::from_chars(text.data(), text.data() + text.size(), mbit);
      const double port = mbit * 1e6 / 8;
      // A virtual port may state a speed that it exceeds.
      const double most = std::max(*link.sends, *link.receives);
      if (most < port && *link.bandwidth() < kSlowShare * port) {
        Add(FindingKind::kBelowPort, host, -1, *link.bandwidth(), port);
      }
    }
    if (mtus.size() > 1) Add(FindingKind::kDifferentMtu, 0, -1, 0, 0);
  }

  const NetworkProfile& profile_;
  MeasuredRows rows_;
  NetworkSummary result_;
};

}  // namespace

MeasuredRows::MeasuredRows(const NetworkProfile& profile)
    : hosts_(static_cast<int>(profile.hosts.size())) {
  for (const NetworkRow& row : profile.rows) {
    if (row.problem.empty()) rows_[{row.kind, row.from, row.to}] = &row;
  }
}

const NetworkRow* MeasuredRows::Find(Kind kind, int from, int to) const {
  const auto found = rows_.find({kind, from, to});
  return found == rows_.end() ? nullptr : found->second;
}

std::optional<double> MeasuredRows::Rate(Kind kind, int from, int to) const {
  const NetworkRow* row = Find(kind, from, to);
  return row == nullptr ? std::nullopt : row->bytes_per_s;
}

std::optional<double> MeasuredRows::Best(int from, int to) const {
  std::optional<double> best = Rate(Kind::kOneFlow, from, to);
  Raise(&best, Rate(Kind::kSeveralFlows, from, to));
  return best;
}

std::optional<double> MeasuredRows::RoundTrip(int a, int b) const {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const NetworkRow* row = Find(Kind::kLatency, from, to);
    if (row != nullptr) return row->rtt_median_s;
  }
  return std::nullopt;
}

std::optional<double> LossCount::share() const {
  if (lost < kFewestLosses) return std::nullopt;
  return static_cast<double>(lost) / static_cast<double>(segments);
}

LossCount& LossCount::operator+=(const TcpFacts& tcp) {
  segments += tcp.segments;
  lost += tcp.retransmitted - tcp.needless;
  return *this;
}

std::optional<double> HostLink::bandwidth() const {
  if (!sends || !receives) return std::nullopt;
  return std::min(*sends, *receives);
}

NetworkSummary Summarise(const NetworkProfile& profile) { return Summary(profile).Make(); }

}  // namespace stepcast::network
