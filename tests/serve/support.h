// A service of two shipped clusters, as tests ask it: without sockets, files read each time.
#ifndef STEPCAST_TESTS_SERVE_SUPPORT_H_
#define STEPCAST_TESTS_SERVE_SUPPORT_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "data/io/machines.h"
#include "predictor/serve/api.h"

namespace stepcast::serve {

using TestJson = nlohmann::json;

inline std::string DataFile(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/data/" + name;
}

inline Inventory ShippedInventory() {
  Inventory inventory;
  for (const char* cluster : {"gce-t4", "ec2-g3-ps"}) {
    inventory.clusters.push_back(
        ReadCluster(DataFile(std::string("machines/") + cluster + ".yaml")));
  }
  inventory.devices = ReadDevices(DataFile("machines/gpus.yaml"));
  return inventory;
}

// A service with what an HTTP server needs.
struct TestService {
  explicit TestService(Service::Read read = ShippedInventory, const ServiceOptions& options = {})
      : service(std::move(read), options) {}

  Reply Post(const std::string& path, const std::string& body,
             const std::string& type = "application/json") const {
    return api.Answer({"POST", path, type, body});
  }
  Reply Get(const std::string& path) const { return api.Answer({"GET", path, "", ""}); }
  // The JSON of an answer that must be good.
  TestJson JsonOf(const std::string& path, const std::string& body) const {
    const Reply reply = Post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body << "\nto " << body.substr(0, 200);
    return TestJson::parse(reply.body, nullptr, false);
  }

  Service service;
  Metrics metrics;
  Api api{&service, &metrics};
};

}  // namespace stepcast::serve

#endif  // STEPCAST_TESTS_SERVE_SUPPORT_H_
