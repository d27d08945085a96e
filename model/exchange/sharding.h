// How a model is spread over n parameter servers, and what the fullest of them holds.
//
//   even      every server holds 1/n; tensors are cut
//   tensor    whole tensors, the largest first, each to the server that holds the fewest bytes
//   in turn   variables as they are made, whatever their size; the moving statistics of a
//             normalisation take their turns as well, but have no gradient (round-robin)
//
//   s         share of the gradient on the fullest server, 1/n <= s <= 1     [1]
//
// A server's links and processors work in proportion to what it holds, so the fullest one sets the
// pace of all. Largest first is within 4/3 - 1/(3n) of the best spread of whole tensors, unless one
// tensor alone is larger than an equal share: then s is that tensor's share, and no spread of whole
// tensors nor any number of servers makes it smaller. In VGG-16 the weight of the first dense layer
// is 74 per cent of the model.
//
// Note that s never rises with n where tensors are cut, that n beyond the number of tensors changes
// nothing where they are not, and that a workload without layers is spread evenly.
//
// Sources: Graham, SIAM J. Appl. Math. 17 (1969) (largest first); Peng et al., SOSP 2019 (tensors
// on one server as the bottleneck of parameter servers).
#ifndef STEPCAST_MODEL_EXCHANGE_SHARDING_H_
#define STEPCAST_MODEL_EXCHANGE_SHARDING_H_

#include <string>
#include <vector>

#include "data/record/plan.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/overlap/buckets.h"

namespace stepcast {

struct LargestShard {
  double share = 1;   // of the gradient, on the fullest server
  std::string layer;  // whose tensor is the largest there; empty where shares are even
  // Whether one tensor alone is more than an equal share, so that more servers do not help.
  bool one_tensor = false;
  double tensors = 1;  // on the fullest server
};

// The share of the fullest of `servers`; `servers` below 1 counts as 1.
LargestShard LargestShare(const Workload& workload, int servers, Sharding sharding);

// What the server that ends last gets of MakeBuckets(workload, cap): each bucket is as large as the
// most that one server holds of it and all later ones exceeds the same of those after it. The
// schedule of these, max_k ( r_k + sum_{j >= k} m_j / B ), is the latest of all servers' schedules;
// the fullest server may have most of its tensors early, and end before another that is nearly as
// full. Their sum is what the fullest holds. Where shares are even these are the buckets, each 1/n
// as large, and no spread of whole tensors ends earlier by its bytes. Calls are counted for each
// bucket that is left, which may be more than one server has.
std::vector<Bucket> LastServerBuckets(const Workload& workload, int servers, Sharding sharding,
                                      DataSize<> cap);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SHARDING_H_
