// Device memory of one training step.
//
//   total = p (4 + c) P + q m + r 4 s n + [a > 1] q' m + e m + U + h A b + workspace + reserve
//
//   P, n       parameters and statistics; those that are trained           [1]
//   c          bytes of a parameter's copy to compute with: 2 at 16 bits, else 0   [B]
//   m          gradients                                                   [B]
//   s          numbers of optimizer state: none of SGD, one with momentum, two of Adam   [1]
//   [a > 1] m  accumulation buffer of a training loop that keeps its own; where gradients add up
//              in place, as in PyTorch's .grad, there is none, and less is needed   [B]
//   U          units of a model that is divided: two of the largest        [B]
//   p, q, r    shares of them that one worker keeps: 1 wherever the model is not
//              divided among the workers                                   [1]
//   q'         share of what accumulates: q where each micro-step is exchanged; 1 where gradients
//              wait for the last one, and are whole until they are exchanged   [1]
//   e m        flattened copies for the exchange, as they are sent: e = 1 with more than 1 worker,
//              less where they are compressed, and 1 more where what is not sent is kept
//   A b        activations kept for the backward pass, of b samples, in 32 bits: on the devices
//              that take the most where slow nodes take others              [B]
//              as counted, or what has run and what has not fitted tell of them (fitted.h)
//   h          1/2 at 16 bits, else 1                                      [1]
//   workspace, reserve   library scratch space and the context             [B]
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
// By hand, A of LLaMA's block with fused attention, of h features and f in its feed-forward part,
// is 8 h + 4 f for each token: inputs and outputs of two normalisations, queries, keys, values and
// the result of attention; gate, its activation, up and their product. Of GPT-2's it is 16 h, or
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
// called tight.
//
// Note that the need never falls with the batch.
//
// Sources: Rajbhandari et al., SC 2020 (parameters, gradients, optimizer state); Micikevicius et
// al., ICLR 2018 (mixed precision: parameters in 32 bits and their copy in 16); CUDA context and
// library handles of some hundred MB are what nvidia-smi shows for an idle framework process.
#ifndef STEPCAST_MODEL_MEMORY_MEMORY_H_
#define STEPCAST_MODEL_MEMORY_MEMORY_H_

#include <optional>

#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "data/units/quantity.h"
#include "model/memory/memory_need.h"

namespace stepcast {

inline constexpr double kTightShare = 0.85;

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

// The same, with what is known of them beside the count.
struct Activations {
  DataSize<> counted;               // 0 where there are no layers to count
  std::optional<DataSize<>> most;   // a step ran that had no room for more
  std::optional<DataSize<>> least;  // one did not fit that would have with no more than these

  Activations(DataSize<> of = {}) : counted(of) {}  // NOLINT(google-explicit-constructor)

  // h A
  DataSize<> PerSample() const {
    const DataSize<> at_most = most ? Min(counted, *most) : counted;
    return least ? Max(at_most, *least) : at_most;
  }
  // The verdict of so many samples beside `rest`, all that does not grow with them. What has run
  // fits, what has not does not, and what has done both is tight. kUnknown where nothing was
  // counted and nothing of these tells.
  MemoryVerdict VerdictOf(double samples, DataSize<> rest, DataSize<> available,
                          bool is_counted) const {
    const bool ran = most && rest + *most * samples <= available;
    const DataSize<> need = rest + PerSample() * samples;
    if (available < need) return ran ? MemoryVerdict::kTight : MemoryVerdict::kOutOfMemory;
    if (ran) return MemoryVerdict::kFits;
    return is_counted ? stepcast::VerdictOf(need, available) : MemoryVerdict::kUnknown;
  }
};

// `available` is the device's memory, without which the verdict is kUnknown.
MemoryNeed CountMemory(const Workload& workload, const Activations& activations, const Plan& plan,
                       const std::optional<DataSize<>>& available);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_MEMORY_MEMORY_H_
