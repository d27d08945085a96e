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
//     multicast       n w + n                m                   in m w/n, out m/n  m w + m
//     aggregation     2 n w                  m                   in m/n, out m w/n  m + m w
//     both            n w + n                m                   m/n                2 m
//     colocated       2 (n w - L)            m (1 - [n/N]/n)     m (w - g_s)/n      2 m (w - L/n)
//   ps-async          2 n                    m                   m / n              2 m
//
//   G = sum of 2 g_s (g_s - 1) over the nodes s, of g_s devices; I = 2 m (g-1)/g
//   L = sum of g_s over the servers, each on a node of g_s devices; [n/N] whole servers a node
//
// halving-doubling works on w' = 2^floor(log2 w) workers; each of the r = w - w' others first hands
// its gradients to a partner and gets the result back, which costs the partner m each way. The tree
// is a double binary tree: two trees with m/2 each, in which a worker is inner node of one and leaf
// of the other. Over nodes of several devices both span the nodes: halving-doubling as the
// hierarchical all-reduce with halving and doubling in the place of its ring, the tree with a chain
// in each node, whose head also hands m down the chain. byteps leaves each machine a share x of the
// message to sum and each helper y (model/exchange/byteps.h, cards all alike); its devices divide
// the machine's bytes. ps-async counts one update by one worker; the others count one step of all.
//
// Colocated servers live on the workers' nodes in turn, from the first; the g_s workers' own
// transfers stay within the node; a worker on a node without a server has m each way. With
// multicast the network copies what a server distributes, with aggregation it adds up what workers
// push: transfers are then those that hosts start, and the total is what crosses the links of the
// servers. With colocated servers it is the same: n for n w - L transfers of the pull, 1 for w -
// L/n and 1 for w - g_s copies of a phase (0 on a single node). Where a largest shard is given, the
// busiest server has it in the place of m/n. Where the two ways of a server differ, `per_server` is
// the heavier one.
//
// Note that one worker sends nothing, whatever the collective, and that every all-reduce without
// helpers puts 2 m (w-1) bytes on the wire: they differ in transfers and in who carries them.
//
// Sources: Patarasuk & Yuan, JPDC 2009 (ring); Thakur, Rabenseifner, Gropp, IJHPCA 2005
// (halving-doubling); Sanders, Speck, Traff, Parallel Computing 2009 (double tree); Jiang et al.,
// OSDI 2020 (byteps); Chang et al., "Network Evolution for DNNs" (n w transfers a phase and 2 m w
// bytes with parameter servers; multicast distribution and in-network aggregation).
#ifndef STEPCAST_MODEL_EXCHANGE_TRAFFIC_H_
#define STEPCAST_MODEL_EXCHANGE_TRAFFIC_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/byteps.h"

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
  if (TraitsOf(plan.strategy).asynchronous()) {
    return {2 * n, gradient, shard, gradient * 2.0, shard, shard};
  }
  // Workers at hand of each server: of all together and of the one with fewest, which serves most
  // over the wire; and the servers with workers elsewhere, which are all but a lone node's.
  double at_hand = 0;
  double fewest = 0;
  double stays = 0;  // share of a worker's bytes, where fewest of the servers are at hand
  double serving = n;
  if (plan.server.colocated) {
    const auto nodes = static_cast<double>(plan.nodes());
    fewest = w;
    for (int server = 0; server < plan.servers; ++server) {
      const int workers = plan.placement[static_cast<std::size_t>(server % plan.nodes())];
      at_hand += workers;
      fewest = std::min<double>(fewest, workers);
    }
    stays = std::floor(n / nodes) / n;
    if (plan.nodes() == 1) serving = 0;
  }
  const auto phase = [&](bool merged, DataSize<>* server) {
    *server = shard * (merged ? std::min(1.0, w - fewest) : w - fewest);
    return gradient * (merged ? serving / n : w - at_hand / n);
  };
  DataSize<> in;
  DataSize<> out;
  Traffic traffic;
  traffic.total =
      phase(plan.server.in_network_aggregation, &in) + phase(plan.server.multicast, &out);
  traffic.transfers = (n * w - at_hand) + (plan.server.multicast ? serving : n * w - at_hand);
  traffic.per_worker = gradient * (1 - stays);
  traffic.server_in = in;
  traffic.server_out = out;
  traffic.per_server = Max(in, out);
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
  // Trees, and halving and doubling, span nodes where there are some, as model/exchange does.
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

#endif  // STEPCAST_MODEL_EXCHANGE_TRAFFIC_H_
