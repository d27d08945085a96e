// What an exchange of compressed gradients costs, and where it pays.
//
// A worker encodes its gradients of m bytes in float32, sends fewer bytes, and decodes what comes:
//
//              bytes that a worker has to send     collective
//   fp16       m/2                                 all-reduce
//   bf16       m/2                                 all-reduce
//   int8       m/4                                 all-reduce whose parts are decoded, added up and
//                                                  encoded anew where they are reduced
//   topk       2 k m, a value and its index of     all-gather: what workers keep lies in different
//              a share k                           places, and cannot be added up on the way
//   powersgd   two factors of rank r of each       all-reduces of what is no matrix, of the left
//              matrix (overlap/buckets.h)          factors, and with their mean of the right ones
//
// An all-gather is the second half of an all-reduce of w times as much, so that its bytes grow with
// the workers:
//
//   T = T_call / 2 with w c for its time per byte
//
// Encoding and decoding move bytes through the memory of the device, which the passes of the
// training use meanwhile: they hide behind nothing. In bytes moved for each byte of m,
//
//   fp16, bf16   4+2 to encode, 2+4 to decode, of each 4                          3
//   int8         4 for the scale, 4+1 to encode, 1+4 to decode; and of the w-th part that a worker
//                of an all-reduce adds up 1 from each of w, 4 for the sum, 4 for its scale and 4+1
//                to encode it                                        15/4 + 13/(4 w), 14/4 servers
//   topk         8+4 to add the rest of the step before, 4 times 4 to find the k-th largest digit
//                by digit, 12 k to write it and leave a rest without it, 4 for zeros, and 16 k w to
//                add up what all have sent                                    8 + 3 k + 4 k w
//   powersgd     8+4 to add the rest of the step before, 4 for each of the two products that make
//                the factors, 4 for their own product, 8+4 for the rest that it leaves           9
//
//   C = m p / M         C = m / r  where a rate is stated
//
// Less is sent in all, and compression pays while a hop carries less than
//
//   B < (n_0 m - n_1 m_1) / ( C - L )
//
//   m, m_1      gradients of a worker, and what it sends of them                   [B]
//   k, w        share of the gradients that is kept, workers                       [1]
//   c           time per byte of a call                                            [s/B]
//   p           bytes that move through memory for a byte of m                     [1]
//   M, r        memory bandwidth of the device, stated rate of coding              [B/s]
//   n_0, n_1    bytes that pass a hop for each byte of m and of m_1: 2 (w-1)/w of an all-reduce by
//               rings, w-1 of an all-gather                                        [1]
//   L           what all calls take less: nothing, half of their latency, or, where a bucket is
//               three messages, less than nothing                                  [s]
//
// The last is exact where the exchange hides behind nothing and bytes set the pace of one level of
// rings. Behind a backward pass less is left to save, and it pays on slower links only.
//
// Holds for the means of roofs: kernels reach a part of the memory's bandwidth, selecting the
// largest takes several times its passes where a library sorts, and making the columns of a factor
// orthogonal one after another takes launches that outweigh the passes on a fast device. State a
// rate where it is measured.
// The scales of int8, four bytes with each message, are left out. What a compressed gradient is
// worth in samples is measured, not derived.
//
// Note that without compression all is as ever, to the bit; that C never falls with m and, for
// topk, grows with w; and that topk of 1/w and more sends no less than an all-reduce.
//
// Sources: Micikevicius et al., ICLR 2018 (16 bits); Gan et al., VLDB 2021 (8 bits, part by part);
// Seide et al., Interspeech 2014 (error feedback); Aji & Heafield, EMNLP 2017 (the largest alone);
// Vogels et al., NeurIPS 2019 (PowerSGD); Alabi et al., JEA 17 (2012) (selection digit by digit);
// Agarwal et al., MLSys 2022 (coding competes with the passes; gathers grow with the workers).
#ifndef STEPCAST_MODEL_EXCHANGE_COMPRESSION_H_
#define STEPCAST_MODEL_EXCHANGE_COMPRESSION_H_

#include <optional>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/allreduce.h"

namespace stepcast {

// p of the header. Servers add up what they get.
inline double CodingPasses(const Compression& compression, double workers, bool servers = false) {
  switch (compression.method) {
    case Compressor::kNone:
      break;
    case Compressor::kFp16:
    case Compressor::kBf16:
      return 3;
    case Compressor::kInt8:
      return servers ? 14.0 / 4 : 15.0 / 4 + 13 / (4 * workers);
    case Compressor::kTopK:
      return 8 + 3 * compression.kept + 4 * compression.kept * workers;
    case Compressor::kPowerSgd:
      return 9;
  }
  return 0;
}

// A call of which only the gathering half takes place, of what each of the workers has.
template <class T>
CallCost<T> GatherCall(const CallCost<T>& call, double workers) {
  const auto gathers = [&](const SyncCost<T>& cost) {
    return SyncCost<T>{cost.per_call * 0.5, cost.per_byte * (0.5 * workers)};
  };
  return {{gathers(call.between.steady), gathers(call.between.chain)},
          {gathers(call.within.steady), gathers(call.within.chain)}};
}

// An exchange of one level, as the threshold sees it.
template <class T>
struct CompressedExchange {
  DataSize<T> bytes;  // of a worker
  T passes = T(0.0);  // bytes that pass a hop for each of these
  Duration<T> calls;  // what all calls take whatever their bytes
};

// The rate of a hop below which `compressed` and its coding take less than `whole`; none where it
// sends no less, infinite where it saves more than the coding takes on any hop.
template <class T>
std::optional<DataRate<T>> PaysBelow(const CompressedExchange<T>& whole,
                                     const CompressedExchange<T>& compressed,
                                     const Duration<T>& coding) {
  const DataSize<T> saved = whole.bytes * whole.passes - compressed.bytes * compressed.passes;
  if (!(saved.si() > 0.0)) return std::nullopt;
  const Duration<T> paid = coding - (whole.calls - compressed.calls);
  return saved / Max(paid, Duration<T>());
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_COMPRESSION_H_
