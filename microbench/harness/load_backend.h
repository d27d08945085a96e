// Back ends are modules, loaded when they are asked for: who predicts needs neither CUDA nor oneDNN
// on his machine, and who has one of them not the other.
#ifndef STEPCAST_MICROBENCH_HARNESS_LOAD_BACKEND_H_
#define STEPCAST_MICROBENCH_HARNESS_LOAD_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "microbench/harness/backend.h"

namespace stepcast {

// The function that a module stepcast-NAME.so has under the name kMakeBackend. Null, with the
// reason in `message`, where there is no device that it can use.
using MakeBackendFunction = Backend*(const BackendOptions& options, std::string* message);
inline constexpr const char* kMakeBackend = "StepcastMakeBackend";
// And one that tells kBackendVersion: a module of another build is not called.
using BackendVersionFunction = const char*();
inline constexpr const char* kTellVersion = "StepcastBackendVersion";

inline constexpr const char* kBackendNames[] = {"cuda", "onednn"};

struct LoadedBackend {
  std::unique_ptr<Backend> backend;
  std::string message;  // why there is none, in one sentence
};

// Looks for the module in `folders`, in turn. It stays loaded until the program ends.
LoadedBackend LoadBackend(const std::string& name, const BackendOptions& options,
                          const std::vector<std::string>& folders);

// lib/stepcast beside the folder that the program is in, and where this build installs modules.
std::vector<std::string> ModuleFolders();

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_LOAD_BACKEND_H_
