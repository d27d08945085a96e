#include <dlfcn.h>

#include <filesystem>

#include "data/record/input_error.h"
#include "predictor/serve/rpc_server.h"

namespace stepcast::serve {

std::unique_ptr<RpcServer> LoadRpcServer(const std::vector<std::string>& folders, Service* service,
                                         Metrics* metrics, WorkPool* pool,
                                         const RpcOptions& options) {
  const InputPlace place{"", 0, "--grpc"};
  for (const std::string& folder : folders) {
    const std::string path = folder + "/stepcast-grpc.so";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      throw InputError(place, "", std::string("cannot be served: ") + dlerror());  // NOLINT
    }
    auto* version =
        reinterpret_cast<RpcVersionFunction*>(dlsym(module, kTellRpcVersion));  // NOLINT
    auto* start = reinterpret_cast<StartRpcServerFunction*>(  // NOLINT: that is how dlsym works
        dlsym(module, kStartRpcServer));
    if (version == nullptr || start == nullptr || std::string(version()) != kRpcVersion) {
      throw InputError(place, path, "is of another build of stepcast", "build or install again");
    }
    return std::unique_ptr<RpcServer>(start(service, metrics, pool, options));
  }
  throw InputError(place, "", "cannot be served: this stepcast was built without gRPC",
                   "--listen, or a build with libgrpc++-dev");
}

}  // namespace stepcast::serve
