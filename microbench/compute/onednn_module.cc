// The module stepcast-onednn.so.
#include "microbench/compute/onednn_backend.h"
#include "microbench/harness/load_backend.h"

extern "C" __attribute__((visibility("default"))) const char* StepcastBackendVersion() {
  return stepcast::kBackendVersion;
}

extern "C" __attribute__((visibility("default"))) stepcast::Backend* StepcastMakeBackend(
    const stepcast::BackendOptions& options, std::string* message) {
  message->clear();
  return stepcast::MakeOneDnnBackend(options.threads).release();
}
