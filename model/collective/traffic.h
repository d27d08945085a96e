// What one synchronisation puts on the network: counted, not fitted.
//
//   m gradient bytes, w workers, n servers, N nodes, g devices on the fullest node
//
//   strategy          transfers              bytes per worker    bytes per server   total
//                                            (each way)          (each way)
//   none              0                      0                   -                  0
//   ring, allreduce   2 w (w-1)              2 m (w-1)/w         -                  2 m (w-1)
//   halving-doubling  2 w' log2 w' + 2 r     2 m (w'-1)/w' [+m]  -                  2 m (w-1)
//   tree              4 (w-1)                m min(2, w/2)       -                  2 m (w-1)
//   hierarchical      sum 2 g(g-1) + 2gN(N-1) 2m((g-1)/g + (N-1)/(gN)) -            2 m (w-1)
//   ps-sync           2 n w                  m                   m w / n            2 m w
//   ps-async          2 n                    m                   m / n              2 m
//
// halving-doubling works on w' = 2^floor(log2 w) workers; each of the r = w - w' others first hands
// its gradients to a partner and gets the result back, which costs the partner m each way. The tree
// is a double binary tree: two trees with m/2 each, in which a worker is inner node of one and leaf
// of the other. ps-async counts one update by one worker; the others count one step of all.
//
// Note that one worker sends nothing, whatever the collective, and that every all-reduce puts
// 2 m (w-1) bytes on the wire: they differ in transfers and in who carries them.
//
// Sources: Patarasuk & Yuan, JPDC 2009 (ring); Thakur, Rabenseifner, Gropp, IJHPCA 2005
// (halving-doubling); Sanders, Speck, Traff, Parallel Computing 2009 (double tree); Chang et al.,
// "Network Evolution for DNNs" (n w transfers a phase and 2 m w bytes with parameter servers).
#ifndef STEPCAST_MODEL_COLLECTIVE_TRAFFIC_H_
#define STEPCAST_MODEL_COLLECTIVE_TRAFFIC_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "data/record/plan.h"
#include "data/units/quantity.h"

namespace stepcast {

struct Traffic {
  double transfers = 0;
  DataSize<> per_worker;                 // each way, of the busiest worker
  std::optional<DataSize<>> per_server;  // each way
  DataSize<> total;
};

inline Traffic CountTraffic(const Plan& plan, DataSize<> gradient) {
  const double w = plan.workers();
  const double n = plan.servers;
  switch (plan.strategy) {
    case Strategy::kNone:
      return {};
    case Strategy::kPsSync:
      return {2 * n * w, gradient, gradient * w / n, gradient * (2 * w)};
    case Strategy::kPsAsync:
      return {2 * n, gradient, gradient / n, gradient * 2.0};
    default:
      break;
  }
  if (plan.workers() == 1) return {};
  Traffic traffic;
  traffic.total = gradient * (2 * (w - 1));
  if (plan.strategy == Strategy::kHalvingDoubling) {
    const unsigned whole = std::bit_floor(static_cast<unsigned>(plan.workers()));
    const double folded = w - whole;
    traffic.transfers = 2.0 * whole * (std::bit_width(whole) - 1) + 2 * folded;
    traffic.per_worker = gradient * 2.0 * (whole - 1.0) / static_cast<double>(whole) +
                         gradient * (folded > 0 ? 1.0 : 0.0);
  } else if (plan.strategy == Strategy::kTree) {
    traffic.transfers = 4 * (w - 1);
    traffic.per_worker = gradient * std::min(2.0, w / 2);
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
