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

#include <cstddef>
#include <cstdint>
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

// A model's tensors, ready to be dealt to any number of servers. The workload outlives it.
class TensorShards {
 public:
  TensorShards(const Workload& workload, Sharding sharding);

  // The share of the fullest of `servers`; `servers` below 1 counts as 1.
  LargestShard Largest(int servers) const;

  // What each server holds of a bucket, by bucket and then by server; `buckets` are the model's, as
  // MakeBuckets fills them. Servers that hold nothing of one are left out.
  struct Part {
    std::size_t bucket = 0;
    std::size_t server = 0;
    DataSize<> bytes;
  };
  std::vector<Part> Parts(int servers, const std::vector<Bucket>& buckets) const;

  // What the server that ends last gets of the model's `buckets`, as MakeBuckets fills them: each
  // is as large as the most that one server holds of it and all later ones exceeds the same of
  // those after it. The schedule of these, max_k ( r_k + sum_{j >= k} m_j / B ), is the latest of
  // all servers' schedules; the fullest server may have most of its tensors early, and end before
  // another that is nearly as full. Their sum is what the fullest holds. Where shares are even
  // these are the buckets, each 1/n as large, and no spread of whole tensors ends earlier by its
  // bytes. Calls are counted for each bucket that is left, which may be more than one server has.
  std::vector<Bucket> LastBuckets(int servers, std::vector<Bucket> buckets) const;

 private:
  struct Tensor {
    std::int64_t parameters;
    std::size_t layer;
    std::size_t turn;  // of all variables, those without a gradient among them
  };
  // Who holds which tensor, and how much of the model; no load where shares are even.
  struct Dealt {
    std::vector<std::size_t> server_of;
    std::vector<std::int64_t> load;
  };

  Dealt Deal(int servers) const;
  // Of each tensor, as they were filled.
  std::vector<std::size_t> BucketsOfTensors(const std::vector<Bucket>& buckets) const;
  double BytesOf(const Tensor& tensor) const {
    return bytes_per_parameter_ * static_cast<double>(tensor.parameters);
  }

  const Workload* workload_;
  Sharding sharding_;
  std::vector<Tensor> tensors_;       // as they are made
  std::vector<std::size_t> by_size_;  // of those that have parameters, the largest first
  std::size_t variables_ = 0;         // more servers stay empty
  std::int64_t total_ = 0;
  double bytes_per_parameter_ = 0;
};

// The same of one number of servers.
LargestShard LargestShare(const Workload& workload, int servers, Sharding sharding);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SHARDING_H_
