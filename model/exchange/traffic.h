// Bytes and transfers that one synchronisation puts on the network: counted, not fitted.
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
//   hybrid            3/2 G + 2 g N (N-1)    3/2 I + 2 m (N-1)/(g N)  -             m (3 w - N - 2)
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
// the machine's bytes. hybrid is one micro-step of any all-reduce whose parameters are shared out
// within equal nodes, gathered twice there; shared out among all workers, they are 3/2 of the row.
// ps-async counts one update by one worker; the others count one step of all.
//
// Colocated servers live on the workers' nodes in turn, from the first; the g_s workers' own
// transfers stay within the node; a worker on a node without a server has m each way. With local
// aggregation nodes take the place of workers in the rows of ps-sync, and g_s is 1; what the
// devices of a node add up among themselves is not counted. With multicast the network copies what
// a server distributes, with aggregation it adds up what workers push: transfers are then those
// that hosts start, and the total is what crosses the links of the servers. With colocated servers
// it is the same: n for n w - L transfers of the pull, 1 for w - L/n and 1 for w - g_s copies of a
// phase (0 on a single node). Where a largest shard is given, the busiest server has it in the
// place of m/n. Where the two ways of a server differ, `per_server` is the heavier one.
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

#include <optional>

#include "data/record/plan.h"
#include "data/units/quantity.h"

namespace stepcast {

struct Traffic {
  double transfers = 0;
  DataSize<> per_worker;                 // each way, of the busiest worker
  std::optional<DataSize<>> per_server;  // each way, or the heavier way, of the busiest server
  DataSize<> total;
  std::optional<DataSize<>> server_in;  // of the busiest server
  std::optional<DataSize<>> server_out;
  DataSize<> gradient = {};  // what each worker has to exchange
};

// `largest_shard` is what the busiest server holds; equal shares when it is not given. kAuto counts
// as the ring: let the choice be made first.
Traffic CountTraffic(const Plan& plan, DataSize<> gradient,
                     std::optional<DataSize<>> largest_shard = std::nullopt);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_TRAFFIC_H_
