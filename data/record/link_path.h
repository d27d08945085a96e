// What is known of a path from what is known of its links.
#ifndef STEPCAST_DATA_RECORD_LINK_PATH_H_
#define STEPCAST_DATA_RECORD_LINK_PATH_H_

#include <algorithm>

#include "data/record/link.h"

namespace stepcast {

struct Cluster;
struct Plan;

// Fields of `over` that are known replace those of `base`.
inline LinkFacts Overlay(LinkFacts base, const LinkFacts& over) {
  LinkFacts::ForEach([&](const char*, auto fact) {
    if (over.*fact) base.*fact = over.*fact;
  });
  return base;
}

// What a path over both links suffers: the longer round trip, the greater loss; and RDMA only where
// both speak it. All else is that of `a`.
inline LinkFacts Worse(LinkFacts a, const LinkFacts& b) {
  if (b.rtt) a.rtt = a.rtt ? Max(*a.rtt, *b.rtt) : *b.rtt;
  if (b.loss) a.loss = std::max(a.loss.value_or(0), *b.loss);
  if (a.rdma() != b.rdma()) a.transport = Transport::kTcp;
  return a;
}

// The path, with what else is on the link `of`.
inline LinkFacts WithTrafficOf(LinkFacts path, const LinkFacts& of) {
  path.others = of.others;
  path.background = of.background;
  return path;
}

// The links between the plan's nodes, and to its servers, as stated. A bandwidth that the plan
// states is taken as it is; that of the cluster file is the centre of a prior and not a fact here,
// but its round trip and loss are, and those of the worst host that the plan names.
LinkFacts LinkOf(const Cluster& cluster, const Plan& plan);
LinkFacts ServerLinkOf(const Cluster& cluster, const Plan& plan);
// What carries the plan's exchange between nodes, and to servers: RDMA where all these links do.
Transport TransportOf(const Cluster& cluster, const Plan& plan);

// Whether the core behind a link carries less than the links of its nodes do together.
inline bool IsOversubscribed(const LinkFacts& link) {
  return link.oversubscription.value_or(1) > 1;
}
// Such a core cannot be reckoned without the nodes on a switch.
inline bool LacksSwitches(const LinkFacts& link) {
  return IsOversubscribed(link) && !link.nodes_per_switch;
}

// The nearest, as a ratio, of the rates that Ethernet links are sold with: hosts and protocols take
// their share of a line rate.
DataRate<> NominalRate(DataRate<> rate);

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_LINK_PATH_H_
