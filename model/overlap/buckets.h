// Gradients leave in buckets while the backward pass still runs (wait-free backpropagation).
//
// Bucket k of K is ready at r_k and takes T_k on the network; buckets go out one after another:
//
//   E_k = max(r_k, E_{k-1}) + T_k,   so   E_K = max_k ( r_k + sum_{j >= k} T_j )
//
//   r_k   moment at which the last gradient of bucket k exists, from the start of backward   [s]
//   T_k   time of one synchronisation of bucket k                                            [s]
//   E_K   moment at which the last synchronisation ends                                      [s]
//
// With T_k = tau + m_k / B (a cost for every bucket and the bytes over a bandwidth) and r_k a share
// of the backward time this is a maximum over K affine functions of (t_b, tau, 1/B).
//
// Buckets are filled as PyTorch's DistributedDataParallel does it: in reverse order of the forward
// pass, closed by the tensor that reaches the cap; the first has 1 MiB, to start early, but where
// all are one message; a tensor is never split (Li et al., VLDB 2020; torch.nn.parallel's pages).
// A layer's gradients exist when its share of the backward pass is done, by measured time where
// layers have one, else by forward FLOP; half as much again of a layer that is recomputed
// (data/record/blocks.h), whose backward pass of twice the work has its forward pass before it.
//
// Where matrices are sent as two factors of rank r (PowerSGD), a bucket is three messages, ready
// together: what is no matrix or would not shrink to half, whole; the left factors P, and with what
// they have become the right ones Q. Of a matrix of n rows and k columns
//
//   M = P Q^T    n r and k r numbers instead of n k, where 2 r (n + k) < n k
//
// The rows are as frameworks store weights: filters, units, gates of hidden units, words; the other
// lengths make one column each.
//
// Note that E_K is at least r_K + T_K, at least the sum of all T_k, and at most their sum with the
// backward pass; one bucket means no overlap. A framework that fuses tensors into a buffer of its
// own (Horovod: 64 MiB) is one with that cap.
//
// Sources beside those: Vogels et al., NeurIPS 2019 (PowerSGD); PyTorch's powerSGD_hook (what is
// sent whole, and what of a bucket is one message).
#ifndef STEPCAST_MODEL_OVERLAP_BUCKETS_H_
#define STEPCAST_MODEL_OVERLAP_BUCKETS_H_

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/record/plan.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/numeric/dual.h"

namespace stepcast {

struct Bucket {
  DataSize<> bytes;
  double ready = 1;  // share of the backward pass after which it can leave, (0, 1]
};

// As torch.nn.parallel.DistributedDataParallel documents them.
inline constexpr DataSize<> kDefaultBucket = Mebibytes(25.0);
inline constexpr DataSize<> kFirstBucket = Mebibytes(1.0);
// Workers and servers exchange tensor by tensor. Small ones are joined here, up to the least that
// DistributedDataParallel finds worth a call of its own.
inline constexpr DataSize<> kServerBucket = kFirstBucket;

inline constexpr DataSize<> DefaultBucket(Strategy strategy) {
  return UsesServers(strategy) ? kServerBucket : kDefaultBucket;
}
// Parameters that are shared out are gathered block by block: large networks have some thirty
// (BERT-large 24, LLaMA-7B 32, GPT-3 96), and frameworks wrap each (Zhao et al., VLDB 2023).
inline constexpr double kDefaultUnits = 32;

// The cap of a plan's buckets, of gradients of so many bytes in all: as stated, else the default.
inline constexpr DataSize<> BucketCap(const Plan& plan, const DataSize<>& gradient) {
  if (plan.bucket) return *plan.bucket;
  const DataSize<> cap = DefaultBucket(plan.strategy);
  return GathersUnits(plan.shard) ? Max(cap, gradient / kDefaultUnits) : cap;
}

// Throws InputError where this cap cuts the gradients into more than 100,000 buckets, or each
// tensor is to be sent by itself and nobody knows them. Layers bound the number where they are
// known: tensors are never cut.
void CheckBucketCap(const Workload& workload, DataSize<> cap);

// The gradients of a workload in the order in which they exist, to be cut into buckets again and
// again.
class GradientOrder {
 public:
  explicit GradientOrder(const Workload& workload);

  // The buckets under a cap. Where no tensors are known the bytes are cut into equal pieces of at
  // most the cap, or into 10,000, ready at equal distances.
  std::vector<Bucket> Cut(DataSize<> cap) const;

  // What a plan sends in each call: its buckets, or their messages where it factors matrices.
  std::vector<Bucket> MessagesOf(const Plan& plan) const;

  // The messages of these buckets where matrices are sent as factors of this rank. Throws
  // InputError where a layer does not say its operation, and thereby not the shapes of its tensors.
  std::vector<Bucket> CutFactored(DataSize<> cap, double rank) const;

 private:
  struct Tensor {
    DataSize<> bytes;
    double ready = 1;
    double rows = 0;  // of the matrix that it is, or of one column
    double columns = 0;
  };

  // Hands bucket after bucket to `close(first, last, bucket)`, with its tensors.
  template <class Close>
  void ForEachBucket(DataSize<> cap, const Close& close) const;

  std::vector<Tensor> tensors_;
  DataSize<> total_;
  std::string unknown_;  // a layer whose tensors are of unknown shapes
};

// The buckets of `workload` under a cap.
inline std::vector<Bucket> MakeBuckets(const Workload& workload, DataSize<> cap) {
  return GradientOrder(workload).Cut(cap);
}

// What the plans of one workload send, each made once. Not to be shared by threads.
class BucketsOfPlans {
 public:
  // Throws InputError where nobody knows the shapes that a plan's compression needs.
  std::shared_ptr<const std::vector<Bucket>> Of(const Workload& workload, const Plan& plan);

 private:
  // By cap [B] and rank.
  std::map<std::pair<double, double>, std::shared_ptr<const std::vector<Bucket>>> buckets_;
};

// The buckets with `share` of their bytes, ready as they were; the same list where `share` is 1.
std::shared_ptr<const std::vector<Bucket>> Scaled(
    const std::shared_ptr<const std::vector<Bucket>>& buckets, double share);

// E_K, from the start of the backward pass. `time_of(bucket)` is the bucket's T_k.
template <class T, class TimeOf>
Duration<T> LastSynchronisationEnd(const std::vector<Bucket>& buckets, const Duration<T>& backward,
                                   const TimeOf& time_of) {
  Duration<T> end;
  for (const Bucket& bucket : buckets) {
    end = Max(backward * bucket.ready, end) + time_of(bucket);
  }
  return end;
}

// E_K where all buckets cost alike, as the largest of few straight lines in (t_b, tau, 1/B):
//
//   E_K = max_k ( r_k t_b + n_k tau + M_k / B )
//
//   n_k, M_k   buckets from k on, and their bytes
struct BucketLine {
  double ready = 1;  // r_k
  double count = 1;  // n_k
  DataSize<> bytes;  // M_k
};

// E_K of these lines; `cost` has tau as per_call and 1/B as per_byte. `late` is what the first
// bucket takes longer.
template <class T, class Cost>
Duration<T> LastSynchronisationEnd(const std::vector<BucketLine>& lines,
                                   const Duration<T>& backward, const Cost& cost,
                                   const Duration<T>& late) {
  const auto pass = ValueOf(backward);
  const auto call = ValueOf(cost.per_call);
  const auto byte = ValueOf(cost.per_byte);
  const BucketLine* binding = lines.data();
  Duration<> most =
      pass * binding->ready + call * binding->count + byte * binding->bytes + ValueOf(late);
  for (std::size_t k = 1; k < lines.size(); ++k) {
    const Duration<> end = pass * lines[k].ready + call * lines[k].count + byte * lines[k].bytes;
    if (most < end) {
      most = end;
      binding = &lines[k];
    }
  }
  const Duration<T> end =
      backward * binding->ready + cost.per_call * binding->count + cost.per_byte * binding->bytes;
  return binding == lines.data() ? end + late : end;
}

// The lines of `buckets`, first that of all of them; without those that lie nowhere above two
// others together, whatever the times.
std::vector<BucketLine> MakeBucketLines(const std::vector<Bucket>& buckets);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_OVERLAP_BUCKETS_H_
