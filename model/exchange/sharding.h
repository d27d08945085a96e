// How a model is spread over n parameter servers, and what the fullest of them holds.
//
//   even      every server holds 1/n; tensors are cut
//   tensor    whole tensors, the largest first, each to the server that holds the fewest bytes, as
//             balancing by bytes does but for the order (GreedyLoadBalancingStrategy of TensorFlow)
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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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

// A model's tensors, ready to be dealt to any number of servers.
class TensorShards {
 public:
  TensorShards(const Workload& workload, Sharding sharding);

  // The fullest of `servers`; `servers` below 1 counts as 1.
  struct Fullest {
    double share = 1;                  // of the gradient
    std::optional<std::size_t> layer;  // whose tensor is its largest; none where shares are even
    bool one_tensor = false;           // as in LargestShard
    double tensors = 1;
  };
  Fullest FullestOf(int servers) const;

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
  std::vector<Bucket> LastBuckets(int servers, std::vector<Bucket> buckets) const {
    return LastBuckets(Deal(servers), servers, std::move(buckets));
  }

  // The share of the fullest, and LastBuckets of `buckets`, where there are any.
  struct Held {
    double share = 1;
    std::shared_ptr<const std::vector<Bucket>> buckets;
  };
  Held HeldOf(int servers, const std::vector<Bucket>* buckets) const;

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
  Fullest FullestOf(const Dealt& dealt, int servers) const;
  std::vector<Bucket> LastBuckets(const Dealt& dealt, int servers,
                                  std::vector<Bucket> buckets) const;
  // Of each tensor, as they were filled.
  std::vector<std::size_t> BucketsOfTensors(const std::vector<Bucket>& buckets) const;
  double BytesOf(const Tensor& tensor) const {
    return bytes_per_parameter_ * static_cast<double>(tensor.parameters);
  }

  Sharding sharding_;
  std::vector<Tensor> tensors_;       // as they are made
  std::vector<std::size_t> by_size_;  // of those that have parameters, the largest first
  std::size_t variables_ = 0;         // more servers stay empty
  std::int64_t total_ = 0;
  double bytes_per_parameter_ = 0;
};

// What servers hold in the plans of one workload. The last is remembered, for searches ask for one
// number of servers again and again. Threads may share it.
class ShardsOfPlans {
 public:
  // `buckets` are those of the plan's gradients; null where only the share is asked for.
  TensorShards::Held Of(const Workload& workload, const Plan& plan,
                        const std::shared_ptr<const std::vector<Bucket>>& buckets) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<Sharding, std::shared_ptr<const TensorShards>> tensors_;
  // What was asked last, and the answer.
  mutable Sharding sharding_ = {};
  mutable std::optional<int> servers_;
  mutable std::shared_ptr<const std::vector<Bucket>> buckets_;
  mutable TensorShards::Held held_;
};

// What the fullest of `servers` holds; `servers` below 1 counts as 1.
LargestShard LargestShare(const Workload& workload, int servers, Sharding sharding);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SHARDING_H_
