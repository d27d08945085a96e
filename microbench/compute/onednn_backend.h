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
// above 32 MiB anew each time, at the price of a page fault for each 4 KiB (1 us, five times what
// writing them takes), and mostly reuses smaller blocks. Tensors made by a pass do the same here.
// Note that malloc also gives smaller memory back whenever much of its top is free. That depends on
// the tensors of the whole network, not on the layer, and is not in these times: with PyTorch 1.13
// 4 % of a step of ResNet-18 and 10 % of MobileNet at batch 8, where mapping all tensors anew would
// add 40 % and more.
//
// Caches. The sets of buffers that runs take in turn are together twice as large as the L2 caches
// of the threads; what is written to the L3 cache may still be there, as in training.
//
// Note that the backward pass of an average over the whole image takes a gradient in the format of
// the kernels. Where a dense layer follows directly, oneDNN 2.6 gets it plain and falls back to slow
// reference code (11 ms more for ResNet-18 at batch 8); that cannot be told from the layer alone.
#ifndef STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_
#define STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_

#include <memory>

#include "microbench/harness/backend.h"

namespace stepcast {

// Runs on `threads` OpenMP threads. Throws std::invalid_argument unless that is positive.
std::unique_ptr<Backend> MakeOneDnnBackend(int threads);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_ONEDNN_BACKEND_H_
