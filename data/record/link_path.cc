#include "data/record/link_path.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"

namespace stepcast {
namespace {

// How often a plan names a host.
class NamedHosts {
 public:
  explicit NamedHosts(const std::vector<std::string>& hosts) : hosts_(hosts) {
    if (hosts.size() <= kFew) return;
    times_.reserve(hosts.size());
    for (const std::string& host : hosts) ++times_[host];
  }

  std::size_t TimesOf(const std::string& host) const {
    if (hosts_.size() <= kFew) {
      return static_cast<std::size_t>(std::count(hosts_.begin(), hosts_.end(), host));
    }
    const auto found = times_.find(host);
    return found == times_.end() ? 0 : found->second;
  }

 private:
  static constexpr std::size_t kFew = 16;  // that are found as quickly one after another

  const std::vector<std::string>& hosts_;
  std::unordered_map<std::string_view, std::size_t> times_;
};

}  // namespace

LinkFacts LinkOf(const Cluster& cluster, const Plan& plan) {
  // Where hosts differ an exchange waits for the worst, in the largest crowd.
  std::optional<LinkFacts> worst;
  const auto meet = [&](const LinkFacts& own) {
    if (!worst) {
      worst = own;
      return;
    }
    LinkFacts path = Worse(*worst, own);
    path.others = std::max(worst->others, own.others);
    path.background = std::max(worst->background, own.background);
    worst = path;
  };
  std::size_t others = plan.hosts.size();  // than those that the cluster file knows
  const NamedHosts hosts(plan.hosts);
  for (const Host& host : cluster.hosts) {
    if (others == 0) break;
    const std::size_t named = hosts.TimesOf(host.name);
    if (named == 0) continue;
    others -= named;
    meet(Overlay(cluster.link, host.link));
  }
  if (others > 0) meet(cluster.link);
  LinkFacts link = worst.value_or(cluster.link);
  link = Overlay(link, plan.link);
  link.bandwidth = plan.link.bandwidth;
  return link;
}

LinkFacts ServerLinkOf(const Cluster& cluster, const Plan& plan) {
  return Overlay(cluster.server_link, plan.server_link);
}

Transport TransportOf(const Cluster& cluster, const Plan& plan) {
  const LinkFacts link = LinkOf(cluster, plan);
  const bool rdma =
      link.rdma() && (!plan.has_server_link() || Overlay(link, ServerLinkOf(cluster, plan)).rdma());
  return rdma ? Transport::kRdma : Transport::kTcp;
}

DataRate<> NominalRate(DataRate<> rate) {
  constexpr double kEthernetMbit[] = {10,    100,   1000,  2500,   5000,   10000,
                                      25000, 40000, 50000, 100000, 200000, 400000};
  const double mbit = rate.in(kMegabitsPerSecond);
  const double* nearest =
      std::min_element(std::begin(kEthernetMbit), std::end(kEthernetMbit), [&](double a, double b) {
        return std::abs(std::log(a / mbit)) < std::abs(std::log(b / mbit));
      });
  return MegabitsPerSecond(*nearest);
}

}  // namespace stepcast
