// The CPU as the harness sees it: layers by oneDNN, as a framework that hands its layers to oneDNN
// pays for them while it trains (PyTorch's mkldnn tensors, of which the order of calls was taken).
//
// What a pass contains
//   - Activations and their gradients are in the format that the kernels like (nChw16c), the
//     network's own input (input_gradient == false) is plain, parameters are plain fp32. A reorder
//     belongs to the pass that needs it: weights before forward and before the gradient of the
//     data, the gradient of the weights after it.
//   - Every pass writes into other tensors than it reads; nothing is done in place but updates.
//   - Optimizers, look-ups and copies are loops of our own, one pass over memory for each
//     arithmetic operation, as frameworks do it by default.
//   - bf16 is mixed precision: parameters and their gradients stay in fp32 and are converted by the
//     reorders; updates and look-ups are in fp32. tf32 and fp16 are unknown to CPUs of oneDNN 2.6.
//
// Memory that a pass allocates. glibc's malloc, which frameworks call for each tensor, maps blocks
// above 32 MiB anew where it has no free block as large, at the price of a page fault for each
// 4 KiB (1 us, several times what writing them takes), and reuses smaller ones. Tensors made by a
// pass do the same here. Note that in a process that has allocated and freed much, either may
// happen to any tensor: of 118 thousand pages that the layers of MobileNet write forward at batch
// 8, PyTorch 1.13 had between 0 and 65 thousand faulted in a step, from process to process and from
// step to step. That is a property of the process, not of a layer, and not in these times; mapping
// all tensors anew would double the step. A malloc that keeps its memory (MALLOC_TRIM_THRESHOLD_
// and MALLOC_MMAP_THRESHOLD_ of 100 GB) makes steps steady, and the sums of these times agree.
//
// Caches are as in a step: gradients of activations are written into the memory that other
// gradients left; all else (parameters, activations, outputs) rotates: through 16 times its bytes,
// at least 64 MiB and twice the L2 caches of the threads, at most the L3 cache, beyond which
// nothing gets colder. The output of the neighbouring layer is not brought back into the caches
// before a run: with it there, normalisations and activations of MobileNet at batch 2 took two
// thirds of their time in PyTorch, and without nine tenths and more (kernels stream their output
// past the caches).
//
// Note that the backward pass of an average over the whole image takes a gradient in the format of
// the kernels. Where a dense layer follows directly, oneDNN 2.6 gets it plain and falls back to
// slow reference code (11 ms more for ResNet-18 at batch 8); the layer alone does not tell.
#ifndef STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_
#define STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_

#include <memory>

#include "microbench/harness/backend.h"

namespace stepcast {

// Runs on `threads` OpenMP threads. Throws std::invalid_argument unless that is positive.
std::unique_ptr<Backend> MakeOneDnnBackend(int threads);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_
