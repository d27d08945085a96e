// What one synchronisation puts on the network: counted, not fitted.
//
//   m gradient bytes, w workers, n servers or helpers, N nodes, g devices on the fullest node
//
//   strategy          transfers              bytes per worker    bytes per server   total
//                                            (each way)          (each way)
//   none              0                      0                   -                  0
//   ring, allreduce   2 w (w-1)              2 m (w-1)/w         -                  2 m (w-1)
//   halving-doubling  2 w' log2 w' + 2 r     2 m (w'-1)/w' [+m]  -                  2 m (w-1)
//   tree              4 (w-1)                m min(2, w/2)       -                  2 m (w-1)
//   hierarchical      G + 2 g N (N-1)        I + 2 m (N-1)/(g N) -                  2 m (w-1)
//   byteps            G + 2 g N (N-1+n)      I + m (1+(N-2)x)/g  N y m              2 m (w - N x)
//   ps-sync           2 n w                  m                   m w / n            2 m w
//     colocated       2 (n w - L)            m (n-1)/n           m (w - g_s)/n      2 m (w - L/n)
//     multicast       n w + n                m                   in m w/n, out m/n  m w + m
//     aggregation     2 n w                  m                   in m/n, out m w/n  m + m w
//     both            n w + n                m                   m/n                2 m
//   ps-async          2 n                    m                   m / n              2 m
//
//   G = sum of 2 g_s (g_s - 1) over the nodes s, of g_s devices; I = 2 m (g-1)/g
//   L = sum of g_s over the nodes that have a server
//
// halving-doubling works on w' = 2^floor(log2 w) workers; each of the r = w - w' others first hands
// its gradients to a partner and gets the result back, which costs the partner m each way. The tree
// is a double binary tree: two trees with m/2 each, in which a worker is inner node of one and leaf
// of the other. Over nodes of several devices both span the nodes: halving-doubling as the
// hierarchical all-reduce with halving and doubling in the place of its ring, the tree with a chain
// in each node, whose head also hands m down the chain. byteps leaves each machine a share x of the
// message to sum and each helper y (model/collective/byteps.h, cards all alike); its devices divide
// the machine's bytes. ps-async counts one update by one worker; the others count one step of all.
//
// Colocated servers live on the first n of the workers' nodes; the g_s workers' own transfers stay
// within the node; a worker on a node without a server has m each way. With multicast the network
// copies what a server distributes, with aggregation it adds up what workers push: transfers are
// then those that hosts start, and the total is what crosses the links of the servers. Where a
// largest shard is given, the busiest server has it in the place of m/n. Where the two ways of a
// server differ, `per_server` is the heavier one.
//
// Note that one worker sends nothing, whatever the collective, and that every all-reduce without
// helpers puts 2 m (w-1) bytes on the wire: they differ in transfers and in who carries them.
//
// Sources: Patarasuk & Yuan, JPDC 2009 (ring); Thakur, Rabenseifner, Gropp, IJHPCA 2005
// (halving-doubling); Sanders, Speck, Traff, Parallel Computing 2009 (double tree); Jiang et al.,
// OSDI 2020 (byteps); Chang et al., "Network Evolution for DNNs" (n w transfers a phase and 2 m w
// bytes with parameter servers; multicast distribution and in-network aggregation).
#ifndef STEPCAST_MODEL_COLLECTIVE_TRAFFIC_H_
#define STEPCAST_MODEL_COLLECTIVE_TRAFFIC_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/collective/byteps.h"

namespace stepcast {

struct Traffic {
  double transfers = 0;
  DataSize<> per_worker;                 // each way, of the busiest worker
  std::optional<DataSize<>> per_server;  // each way, or the heavier way, of the busiest server
  DataSize<> total;
  std::optional<DataSize<>> server_in;  // of the busiest server
  std::optional<DataSize<>> server_out;
};

namespace internal {

// `shard` is what the busiest server holds.
inline Traffic ServerTraffic(const Plan& plan, DataSize<> gradient, DataSize<> shard) {
  const double w = plan.workers();
  const double n = plan.servers;
  if (plan.strategy == Strategy::kPsAsync) {
    return {2 * n, gradient, shard, gradient * 2.0, shard, shard};
  }
  if (plan.server.colocated) {
    // Servers on the first n nodes; the one with fewest workers at hand serves most over the wire.
    const auto with_server =
        std::min(static_cast<std::size_t>(plan.servers), plan.placement.size());
    const auto end = plan.placement.begin() + static_cast<std::ptrdiff_t>(with_server);
    const double local = std::accumulate(plan.placement.begin(), end, 0);
    const double fewest = plan.servers > 0 ? *std::min_element(plan.placement.begin(), end) : 0;
    const bool every_node = with_server == plan.placement.size();
    const DataSize<> served = shard * (w - fewest);
    return {2 * (n * w - local),
            every_node ? gradient * ((n - 1) / n) : gradient,
            served,
            gradient * (2 * (w - local / n)),
            served,
            served};
  }
  const bool multicast = plan.server.multicast;
  const bool aggregation = plan.server.in_network_aggregation;
  Traffic traffic;
  traffic.transfers = n * w + (multicast ? n : n * w);
  traffic.per_worker = gradient;
  traffic.server_in = shard * (aggregation ? 1.0 : w);
  traffic.server_out = shard * (multicast ? 1.0 : w);
  traffic.per_server = Max(*traffic.server_in, *traffic.server_out);
  traffic.total = gradient * ((aggregation ? 1.0 : w) + (multicast ? 1.0 : w));
  return traffic;
}

inline Traffic BytePsTraffic(const Plan& plan, DataSize<> gradient) {
  const double nodes = plan.nodes();
  const double fullest = DevicesOnFullestNode(plan.placement);
  const double helpers = plan.servers;
  Traffic traffic;
  for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
  traffic.per_worker = gradient * (2 * (fullest - 1) / fullest);
  traffic.total = gradient * (2 * (plan.workers() - nodes));
  if (plan.nodes() == 1) return traffic;
  const double share = BytePsMachineShare(plan.nodes(), std::min(helpers, nodes));
  traffic.transfers += 2 * fullest * nodes * (nodes - 1 + helpers);
  traffic.per_worker += gradient * ((1 + (nodes - 2) * share) / fullest);
  traffic.total += gradient * (2 * nodes * (1 - share));
  if (plan.servers > 0) {
    traffic.per_server = gradient * (nodes * (1 - nodes * share) / helpers);
    traffic.server_in = traffic.per_server;
    traffic.server_out = traffic.per_server;
  }
  return traffic;
}

}  // namespace internal

// `largest_shard` is what the busiest server holds; equal shares when it is not given. kAuto counts
// as the ring: let the choice be made first.
inline Traffic CountTraffic(const Plan& plan, DataSize<> gradient,
                            std::optional<DataSize<>> largest_shard = std::nullopt) {
  const double w = plan.workers();
  switch (plan.strategy) {
    case Strategy::kNone:
      return {};
    case Strategy::kPsSync:
    case Strategy::kPsAsync:
      return internal::ServerTraffic(
          plan, gradient, largest_shard.value_or(gradient / static_cast<double>(plan.servers)));
    case Strategy::kBytePs:
      return internal::BytePsTraffic(plan, gradient);
    default:
      break;
  }
  if (plan.workers() == 1) return {};
  Traffic traffic;
  traffic.total = gradient * (2 * (w - 1));
  // Trees, and halving and doubling, span nodes where there are some, as model/collective does.
  const double fullest_devices = DevicesOnFullestNode(plan.placement);
  const bool two_levels = plan.nodes() > 1 && fullest_devices > 1;
  const int spanned = two_levels ? plan.nodes() : plan.workers();
  if (plan.strategy == Strategy::kHalvingDoubling) {
    const unsigned whole = std::bit_floor(static_cast<unsigned>(spanned));
    const double folded = static_cast<double>(spanned) - whole;
    traffic.transfers = 2.0 * whole * (std::bit_width(whole) - 1) + 2 * folded;
    traffic.per_worker = gradient * 2.0 * (whole - 1.0) / static_cast<double>(whole) +
                         gradient * (folded > 0 ? 1.0 : 0.0);
    if (two_levels) {
      traffic.transfers *= fullest_devices;
      for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
      traffic.per_worker = traffic.per_worker / fullest_devices +
                           gradient * (2 * (fullest_devices - 1) / fullest_devices);
    }
  } else if (plan.strategy == Strategy::kTree) {
    traffic.transfers = 4 * (w - 1);
    traffic.per_worker = gradient * (std::min(2.0, spanned / 2.0) + (two_levels ? 1.0 : 0.0));
  } else if (plan.strategy == Strategy::kHierarchical) {
    const double nodes = plan.nodes();
    const double fullest = DevicesOnFullestNode(plan.placement);
    for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
    traffic.transfers += 2 * fullest * nodes * (nodes - 1);
    traffic.per_worker =
        gradient * (2 * ((fullest - 1) / fullest + (nodes - 1) / (fullest * nodes)));
  } else {
    traffic.transfers = 2 * w * (w - 1);
    traffic.per_worker = gradient * (2 * (w - 1)) / w;
  }
  return traffic;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COLLECTIVE_TRAFFIC_H_
