// Device memory of one training step.
//
//   total = p C + r K + q m + r 4 s n + e m + G + h A b + workspace + reserve
//
//   C, K       parameters as they are computed with, and copies that the optimizer updates: 4 P and
//              none, or 2 P and 4 P at 16 bits                             [B]
//   P, n       parameters and statistics; those that are trained           [1]
//   m          gradients, in 32 bits; of a model that is divided as wide as they are sent, and no
//              narrower than 16                                            [B]
//   s          numbers of optimizer state: none of SGD, one with momentum, two of Adam   [1]
//   p, q, r    shares of them that one worker keeps: 1 wherever the model is not
//              divided among the workers                                   [1]
//   G          what is whole beside the shares. Where each micro-step is exchanged, units of the
//              model: min( U, (1 - p) C + (1 - q) m ), as no more can be whole than the shares
//              lack. Gradients that wait for the last micro-step are whole until they are
//              exchanged: (1 - q) m, of ZeRO-2                             [B]
//   U          two of the largest units, as wide as m                      [B]
//   e m        flattened copies for the exchange, as they are sent: e = 1 with more than 1 worker
//              and a whole model, less where they are compressed, and 1 more where what is not
//              sent is kept
//   A b        activations kept for the backward pass, of b samples, in 32 bits: on the devices
//              that take the most where slow nodes take others              [B]
//              as counted, or what has run and what has not fitted tell of them (fitted.h)
//   h          1/2 at 16 bits, else 1; of the last layer's output always 1 [1]
//   workspace, reserve   library scratch space and the context             [B]
//
// At 16 bits a parameter has 2 bytes to compute with and 4 that the optimizer updates. These are
// divided as its state is: in ZeRO-1 and ZeRO-2, and in Megatron's distributed optimizer, each
// worker updates its share and the others gather the result in 16 bits. At 32 bits there is one.
//
// Micro-steps add up in the gradients themselves, as PyTorch's .grad and Megatron's main_grad do;
// a training loop that keeps a sum of its own beside them needs m more. What is exchanged is
//
//   PyTorch's DDP, Horovod        a copy, in buckets: e = 1; there is none with
//                                 gradient_as_bucket_view, which is not the default
//   DeepSpeed, Megatron, FSDP     the gradients where they are: e = 0
//
// so that a model that is whole is taken as DDP keeps it, and one that is divided as ZeRO does. Of
// N workers with Adam, gradients of 4 bytes and products of 16 bits each parameter has
//
//   DDP       22 bytes; 18 in Megatron, which exchanges its buffer itself
//   ZeRO-1    6 + 12/N, as Megatron's distributed optimizer
//   ZeRO-2    2 + 16/N
//   ZeRO-3    18/N
//
// and with gradients of 2 bytes (bytes_per_parameter), as in DeepSpeed, 4 + 12/N, 2 + 14/N, 16/N.
// PyTorch's ZeroRedundancyOptimizer is not told apart from ZeRO-1: it leaves the parameters in 32
// bits whole beside DDP's copies, 14 + 8/N.
//
// A counts the outputs of layers that some gradient needs, mostly that of the layer behind, whose
// input they are. They are all outputs except
//
// - what frameworks compute in place: reshapes, and activations other than behind a dense layer (a
//   transformer's GELU keeps its input and its output);
// - what is only added, whether drop-out or another copy is between or not: the gradient of a sum
//   needs neither summand. Activations, recurrent layers and fused attention keep their output for
//   their own gradient;
// - what stored angles turn (queries and keys: a product, a copy, a product and their sum), and
//   what is between: factors that are not trained need no gradient, and the sum alone is needed
//   behind.
//
// A sum is taken to add the output of the layer before it; that of another branch is counted. Of
// fused attention it is the result alone. Where activations are recomputed (data/record/blocks.h)
//
//   A = max over blocks (inputs of it and of those before it + its A) + A of layers of no block
//   A = A of layers of no core of attention + results of cores + the rest of the largest core's A
//
// in full, and selectively. A block's input is the output of the layer before it, and adds nothing
// where that is of no block and keeps it anyway; when a block is recomputed, those behind it are
// done with theirs. What a core reads are outputs of layers of none. One block or core at a time is
// recomputed. Fused attention has no rest.
//
// The loss is of the last layer's output and is computed in 32 bits, in whatever the layers compute
// (PyTorch's autocast casts losses and log-softmax so): it keeps 32 bits of each number, of logits
// the 4 s v bytes of s tokens and v words that Korthikanti et al. count. A loss that goes through
// the tokens piece by piece, fused with the output layer, keeps none of them.
//
// By hand, A of LLaMA's block with fused attention, of h features and f in its feed-forward part,
// is 8 h + 4 f for each token: inputs and outputs of two normalisations, queries, keys, values and
// the result of attention; gate, its activation, up and their product. That is PyTorch's own; a
// kernel that does gate, activation and product at once, as Liger's and Megatron's do, computes the
// activation once more and keeps 3 f. Of GPT-2's it is 16 h, or
// 32 h bytes at 16 bits, where Korthikanti et al. (arXiv 2205.05198) count 34 h: masks of drop-out,
// a byte each, are left out here, as is what drop-out of plain attention keeps beside its scores:
// of a heads and s tokens a block has 2 a s^2 bytes of scores here, where they count 5 a s^2.
//
// 16 bits are mixed precision as frameworks cast by themselves (PyTorch's autocast): what is
// trained, its gradients and the optimizer's state keep 32. fp8 is taken to need what bf16 does:
// two layouts of the weights in 8 bits are as large as the copy, and activations that only dense
// layers read may be kept in 8 bits, which is less. Holds within about a quarter:
// allocators round and fragment, and algorithms choose workspaces by themselves. A plan that needs
// more than the device has is a verdict, not a number to trust; one within kTightShare of it is
// called tight, and so is one beyond it by what an exchange adds to a step that has run (fitted.h).
//
// Note that the need never falls with the batch, and never rises with what is shared out, from
// nothing to ZeRO-1, ZeRO-2 and ZeRO-3, nor with those who share.
//
// Sources: Korthikanti et al. (section 4.3: 4 s b v bytes of logits in 32 bits); PyTorch's pages of
// torch.amp (losses are cast to float32); Liger-Kernel, LigerSiLUMulFunction (saves gate and up
// alone); Rajbhandari et al., SC 2020 (parameters, gradients, optimizer state); Micikevicius et
// al., ICLR 2018 (mixed precision: parameters in 32 bits and their copy in 16); Megatron Core's
// guide, Distributed Optimizer (6 + 12/N and 18 bytes; at 32 bits 8 + 8/N and 16); PyTorch's
// DistributedDataParallel (gradient_as_bucket_view saves the size of the gradients); CUDA context
// and library handles of some hundred MB are what nvidia-smi shows for an idle framework process.
#ifndef STEPCAST_MODEL_MEMORY_MEMORY_H_
#define STEPCAST_MODEL_MEMORY_MEMORY_H_

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/exchange/exchange.h"
#include "model/memory/memory_need.h"

namespace stepcast {

inline constexpr double kTightShare = 0.85;
inline constexpr double kCountedWithin = 0.25;  // of what is needed

inline constexpr double kOptimizerStates[kOptimizerCount] = {0, 1, 2};  // numbers a parameter
inline constexpr double kBytesOfCopy = 2;  // of a parameter, where products have 16 bits
inline constexpr DataSize<> kWorkspace = Mebibytes(512.0);
inline constexpr DataSize<> kContext = Mebibytes(512.0);

inline MemoryVerdict VerdictOf(DataSize<> need, DataSize<> available) {
  return available < need                 ? MemoryVerdict::kOutOfMemory
         : available * kTightShare < need ? MemoryVerdict::kTight
                                          : MemoryVerdict::kFits;
}

// Activations that one sample leaves in memory until its backward pass, at the workload's
// precision.
DataSize<> KeptActivations(const Workload& workload);

// A micro-step that has run: so many samples, or what needs as much, beside so much that does not
// grow with them.
struct RunNeed {
  DataSize<> rest;
  double samples = 0;
};

// The same, with what is known of them beside the count.
struct Activations {
  DataSize<> counted;               // 0 where there are no layers to count
  std::optional<DataSize<>> most;   // a step ran that had no room for more
  std::optional<DataSize<>> least;  // one did not fit that would have with no more than these
  // What has run by itself, whether the count of it is what it needs or not.
  std::vector<RunNeed> ran;

  Activations(DataSize<> of = {}) : counted(of) {}  // NOLINT(google-explicit-constructor)

  // h A
  DataSize<> PerSample() const {
    const DataSize<> at_most = most ? Min(counted, *most) : counted;
    return least ? Max(at_most, *least) : at_most;
  }
  // The most samples that have run beside no less than `rest`.
  double SamplesThatRan(DataSize<> rest) const {
    double samples = 0;
    for (const RunNeed& step : ran) {
      if (rest <= step.rest) samples = std::max(samples, step.samples);
    }
    return samples;
  }
  // Whether so many samples have run beside no less than `rest`, or what needs as much.
  bool HaveRun(double samples, DataSize<> rest, DataSize<> available) const {
    const double ran_beside = SamplesThatRan(rest);
    return (most && rest + *most * samples <= available) ||
           (ran_beside > 0 && samples <= ran_beside);
  }
  // The most samples of which nobody knows that they do not fit beside `rest`, as they have run
  // without `copies` of it: what a step that has run needs is at most what there is, and may be
  // less by as much as the count is uncertain.
  double SamplesBesideCopies(DataSize<> rest, DataSize<> copies, DataSize<> available) const {
    if (!most) return 0;
    const auto room = [](DataSize<> in, DataSize<> beside, DataSize<> of_sample) {
      if (in < beside) return 0.0;
      return of_sample.si() > 0 ? (in - beside) / of_sample
                                : std::numeric_limits<double>::infinity();
    };
    double samples = room(available, rest - copies, *most);
    samples = std::min(samples, room(available * (1 + kCountedWithin), rest, PerSample()));
    return least ? std::min(samples, room(available, rest, *least)) : samples;
  }
  // The verdict of so many samples beside `rest`, all that does not grow with them, of which
  // `copies` are for the exchange. What has run fits, what has not does not, and what has done both
  // is tight, as is what has run but for the copies. kUnknown where nothing was counted and nothing
  // of these tells.
  MemoryVerdict VerdictOf(double samples, DataSize<> rest, DataSize<> copies, DataSize<> available,
                          bool is_counted) const {
    const bool has_run = HaveRun(samples, rest, available);
    const DataSize<> need = rest + PerSample() * samples;
    if (available < need) {
      const bool may_fit = has_run || samples <= SamplesBesideCopies(rest, copies, available);
      return may_fit ? MemoryVerdict::kTight : MemoryVerdict::kOutOfMemory;
    }
    if (has_run) return MemoryVerdict::kFits;
    return is_counted ? stepcast::VerdictOf(need, available) : MemoryVerdict::kUnknown;
  }
};

// All that does not grow with the samples, of plans that differ in their workers and micro-steps
// alone.
class ModelMemory {
 public:
  ModelMemory(const Workload& workload, const Plan& plan);

  // Of no samples, on a device that nobody knows.
  MemoryNeed NeedOf(const MemoryQuestion& question) const;

 private:
  Strategy strategy_;
  DataSize<> largest_unit_;  // in 32 bits, where there are units
  DataSize<> gradients_;     // m, in 32 bits
  double width_;             // of it where the model is divided, as a share of 32 bits
  double copies_;            // e with more than 1 worker
  DataSize<> computed_;      // C
  DataSize<> updated_;       // K
  DataSize<> states_;        // 4 s n
};

// `available` is the device's memory, without which the verdict is kUnknown.
MemoryNeed CountMemory(const Workload& workload, const Activations& activations, const Plan& plan,
                       const std::optional<DataSize<>>& available);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_MEMORY_MEMORY_H_
