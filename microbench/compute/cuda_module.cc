// The module stepcast-cuda.so.
#include <utility>

#include "microbench/compute/cuda_backend.h"
#include "microbench/harness/load_backend.h"

extern "C" __attribute__((visibility("default"))) stepcast::Backend* StepcastMakeBackend(
    const stepcast::BackendOptions& options, std::string* message) {
  stepcast::CudaBackendOutcome outcome =
      stepcast::MakeCudaBackend({options.device, options.search, options.channels_last});
  *message = std::move(outcome.message);
  return outcome.backend.release();
}

extern "C" __attribute__((visibility("default"))) const char* StepcastBackendVersion() {
  return stepcast::kBackendVersion;
}
