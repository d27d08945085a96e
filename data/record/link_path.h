// What is known of a path from what is known of its links.
#ifndef STEPCAST_DATA_RECORD_LINK_PATH_H_
#define STEPCAST_DATA_RECORD_LINK_PATH_H_

#include <algorithm>

#include "data/record/link.h"

namespace stepcast {

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
