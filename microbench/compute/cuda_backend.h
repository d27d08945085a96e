// NVIDIA GPUs as the harness sees them: convolutions, pooling, batch normalization and recurrent
// layers by cuDNN, products by cuBLASLt and cuBLAS, the rest by kernels of our own. Frameworks
// divide it much the same; PyTorch pools by kernels of its own.
//
// This header knows no CUDA, so that the harness's program needs none to be compiled.
//
// A run of a pass is the time between two events on a stream of its own. A short pass is recorded
// as a graph that does it several times, each on buffers of its own, and the time is divided, so
// that the events' resolution does not enter. A longer pass of more than one launch is recorded as
// a graph that does it once. Before the first event the cache is filled with something else, and
// arithmetic then keeps the device busy for twice as long as the host takes to put the pass on the
// stream, 100 us at least: pass and events stand in line when it ends, and the time that the host
// takes to launch does not enter.
//
// A pass that cannot be recorded is launched kernel by kernel, on buffers that take turns.
//
// Precisions: fp32 multiplies in full (no tf32), tf32 rounds the factors of products only, fp16 and
// bf16 are stored in 16 bits and accumulated in 32. What mixed precision (autocast) keeps in 32
// bits is in 32 bits: parameters, statistics and their gradients of normalizations, tables of
// embeddings with what they give, and optimizers. Weights of products and convolutions, and their
// gradients, are in 16 bits, as the library sees them. Data between layers are in 16 bits
// throughout. Conversions are part of no operation: neither of weights to 16 bits and their
// gradients back, nor those that autocast makes around softmax and layer normalization.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_BACKEND_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "microbench/harness/backend.h"

namespace stepcast {

struct CudaOptions {
  int device = 0;  // 0 is the first
  // Algorithms are timed, as cudnn.benchmark does in PyTorch; otherwise the libraries' heuristics
  // choose, as frameworks let them by default.
  bool search = false;
  bool channels_last = false;  // NHWC instead of NCHW
};

struct CudaBackendOutcome {
  std::unique_ptr<Backend> backend;  // null where there is none
  std::string message;               // why, in one sentence without a full stop
};

CudaBackendOutcome MakeCudaBackend(const CudaOptions& options);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_BACKEND_H_
