#include "calibrate/host_findings.h"

#include <algorithm>
#include <utility>

#include "calibrate/text.h"
#include "data/record/host_texts.h"
#include "data/record/link_path.h"
#include "model/step/parameter_specs.h"
#include "model/step/parameters.h"

namespace stepcast {
namespace {

constexpr double kContradicts = 1.25;  // a port whose hosts carry so much more is misstated
constexpr double kNear = 1.5;          // links that differ by less are alike
constexpr double kAsMuch = 1.01;       // what a fit leaves where it was

std::vector<const ParameterEstimate*> HostLinks(const Calibration& calibration) {
  std::vector<const ParameterEstimate*> links;
  for (const ParameterEstimate& p : calibration.parameters) {
    const bool is_link = p.name == kClusterParameterSpecs[kLinkBandwidth].name;
    if (is_link && !HostsOfScope(p.scope).empty()) links.push_back(&p);
  }
  std::sort(links.begin(), links.end(),
            [](const auto* a, const auto* b) { return a->value < b->value; });
  return links;
}

std::string BelowText(const LinksBelowStated& below) {
  const std::string slowest = RateText(below.slowest);
  const std::string fastest = RateText(below.fastest);
  return "No run between hosts reaches the " + RateText(below.stated) +
         " that the cluster file says: each has a link of " + ListedNames(below.hosts, "or") +
         ", fitted at " + (slowest == fastest ? slowest : slowest + " to " + fastest) +
         ". No host stands out: correct the rate, or look at what all links share.";
}

// Whether the link is about the port that the cluster file states.
bool IsAsStated(const ParameterEstimate& p, const Cluster& cluster) {
  const std::optional<DataRate<>> port = PortOf(cluster, p.scope);
  return port && p.decided_by != DecidedBy::kPrior &&
         !(GigabitsPerSecond(p.low) > *port * kContradicts) &&
         GigabitsPerSecond(p.value) * kNear >= *port;
}

// `fastest` is the fastest link of any host.
std::string LinkFinding(const ParameterEstimate& p, DataRate<> fastest, const Cluster& cluster) {
  constexpr double kFarBelow = 3;
  const std::vector<std::string> hosts = HostsOfScope(p.scope);
  const bool several = hosts.size() > 1;
  const DataRate<> rate = GigabitsPerSecond(p.value);
  const std::optional<DataRate<>> port = PortOf(cluster, p.scope);
  // Slower than it should be or than others are: of hosts that no run tells apart one is enough.
  const bool slow = (port && rate * kNear < *port) || rate * kNear < fastest;
  std::string text = ListedNames(hosts);
  if (port && GigabitsPerSecond(p.low) > *port * kContradicts) {
    text += std::string(several ? " carry" : " carries") + " more than the port of " +
            RateText(*port) + " that the cluster file states: correct it.";
  } else if (port && Max(rate * kAsMuch, NominalRate(rate)) > *port) {
    text += std::string(several ? " sit on ports" : " sits on a port") + " of " + RateText(*port) +
            ", and the runs show nothing slower.";
  } else {
    if (slow) text = ListedNames(hosts, "or");
    text += std::string(several && !slow ? " sit" : " sits") + " on a link of about " +
            RateText(NominalRate(rate)) + " (fitted " + RateText(rate) + ", standard error " +
            NumberText(100 * p.log_sd) + " %)" +
            (several && slow ? ": no run tells them apart." : ".");
    if (port && rate * kFarBelow < *port) {
      text += " The cluster file says " + RateText(*port) + ": look at the cable and the port.";
    }
  }
  if (slow && p.runs == 1) text += " One run alone shows it, which something else may have slowed.";
  if (p.decided_by == DecidedBy::kPrior) text += " The runs hardly tell.";
  return text;
}

}  // namespace

std::optional<DataRate<>> PortOf(const Cluster& cluster, const std::string& scope) {
  std::optional<DataRate<>> slowest;
  for (const std::string& name : HostsOfScope(scope)) {
    std::optional<DataRate<>> port = cluster.link.bandwidth;
    for (const Host& host : cluster.hosts) {
      if (host.name == name && host.link.bandwidth) port = host.link.bandwidth;
    }
    if (port && (!slowest || *port < *slowest)) slowest = port;
  }
  return slowest;
}

std::optional<LinksBelowStated> FindLinksBelowStated(const Calibration& calibration,
                                                     const Cluster& cluster,
                                                     const std::vector<Run>& runs) {
  LinksBelowStated below;
  int known = 0;
  for (const ParameterEstimate* p : HostLinks(calibration)) {
    if (p->decided_by == DecidedBy::kPrior) continue;
    const std::optional<DataRate<>> port = PortOf(cluster, p->scope);
    const DataRate<> rate = GigabitsPerSecond(p->value);
    if (!port || rate >= *port * kLeastShareOfLine) return std::nullopt;
    if (known++ == 0) {
      below.slowest = rate;
      below.stated = *port;
    }
    if (*port != below.stated || rate > below.slowest * kNear) return std::nullopt;
    below.fastest = rate;
    for (std::string& host : HostsOfScope(p->scope)) below.hosts.push_back(std::move(host));
  }
  if (known < 2) return std::nullopt;
  std::sort(below.hosts.begin(), below.hosts.end());
  const auto is_below = [&](const std::string& host) {
    return std::binary_search(below.hosts.begin(), below.hosts.end(), host);
  };
  bool any = false;
  for (const Run& run : runs) {
    const std::vector<std::string>& hosts = run.plan.hosts;
    if (run.plan.nodes() < 2 || !TraitsOf(run.plan.strategy).exchanges || hosts.empty()) continue;
    if (std::none_of(hosts.begin(), hosts.end(), is_below)) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  return below;
}

std::vector<std::string> HostFindings(const Calibration& calibration, const Cluster& cluster,
                                      const std::vector<Run>& runs) {
  std::vector<std::string> findings;
  for (const ParameterEstimate& p : calibration.parameters) {
    if (p.name == kComputeSlowdownSpec.name) findings.push_back(ComputeText(p) + ".");
  }
  if (const auto below = FindLinksBelowStated(calibration, cluster, runs)) {
    findings.push_back(BelowText(*below));
    return findings;
  }
  std::vector<const ParameterEstimate*> links = HostLinks(calibration);
  const DataRate<> fastest = GigabitsPerSecond(links.empty() ? 0 : links.back()->value);
  // Many that are as stated are told together.
  const auto stated =
      std::stable_partition(links.begin(), links.end(),
                            [&](const ParameterEstimate* p) { return !IsAsStated(*p, cluster); });
  constexpr std::ptrdiff_t kToldApart = 2;
  const bool together = links.end() - stated > kToldApart;
  for (auto link = links.begin(); link != (together ? stated : links.end()); ++link) {
    findings.push_back(LinkFinding(**link, fastest, cluster));
  }
  if (together) {
    std::size_t hosts = 0;
    for (auto link = stated; link != links.end(); ++link) {
      hosts += HostsOfScope((*link)->scope).size();
    }
    const DataRate<> slowest =
        Min(GigabitsPerSecond((*stated)->value), *PortOf(cluster, (*stated)->scope));
    findings.push_back(std::to_string(hosts) + (stated == links.begin() ? "" : " other") +
                       " hosts sit on links as the cluster file says (the slowest fitted " +
                       RateText(slowest) + ").");
  }
  return findings;
}

}  // namespace stepcast
