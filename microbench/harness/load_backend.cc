#include "microbench/harness/load_backend.h"

#include <dlfcn.h>

#include <filesystem>

#ifndef STEPCAST_RELATIVE_MODULES
#define STEPCAST_RELATIVE_MODULES "../lib/stepcast"
#endif

namespace stepcast {

LoadedBackend LoadBackend(const std::string& name, const BackendOptions& options,
                          const std::vector<std::string>& folders) {
  LoadedBackend loaded;
  std::string path;
  for (const std::string& folder : folders) {
    const std::string candidate = folder + "/stepcast-" + name + ".so";
    std::error_code error;
    if (path.empty() && std::filesystem::exists(candidate, error)) path = candidate;
  }
  if (path.empty()) {
    loaded.message = "this stepcast was built without the back end " + name;
    return loaded;
  }
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    loaded.message = "the back end " + name + " cannot be loaded: " + dlerror();
    return loaded;
  }
  auto* make = reinterpret_cast<MakeBackendFunction*>(dlsym(module, kMakeBackend));  // NOLINT
  if (make == nullptr) {
    loaded.message = path + " is no back end of stepcast";
    return loaded;
  }
  auto* version = reinterpret_cast<BackendVersionFunction*>(dlsym(module, kTellVersion));  // NOLINT
  if (version == nullptr || std::string(version()) != kBackendVersion) {
    loaded.message = path + " is of another build of stepcast; build or install again";
    return loaded;
  }
  loaded.backend.reset(make(options, &loaded.message));
  return loaded;
}

std::vector<std::string> ModuleFolders() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::vector<std::string> folders;
  for (const char* relative : {"../lib/stepcast", STEPCAST_RELATIVE_MODULES}) {
    folders.push_back((self.parent_path() / relative).lexically_normal().string());
  }
  return folders;
}

}  // namespace stepcast
