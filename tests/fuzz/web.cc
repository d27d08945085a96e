// What the page in a browser asks, and the records that are handed to it.
#include <memory>
#include <string>

#include "data/io/machines.h"
#include "predictor/json/json.h"
#include "predictor/web/door.h"
#include "predictor/web/records.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/parts.h"
#include "tests/fuzz/written.h"
#include "tests/serve/support.h"

namespace stepcast::fuzz {
namespace {

// TARGET in a line, and the body behind it. Curves are drawn of what the page itself has made: what
// is none of it is answered by an error, and ends nothing.
STEPCAST_DOOR(page) {
  static const web::Door& page = *new web::Door(serve::ShippedInventory());
  const auto [target, body] = SplitHead(input);
  const serve::Reply reply = page.Ask(target, body);
  const bool json = std::string(reply.content_type).find("json") != std::string::npos;
  Require(reply.status < 500 || target == "plot", std::to_string(reply.status) + reply.body);
  Require(!json || Json::accept(reply.body), "no JSON: " + reply.body);
  if (reply.status >= 400) throw InputError({}, "", reply.body);
}

// Of a cluster, or of a workload's file behind it (parts.h).
STEPCAST_DOOR(records) {
  serve::Inventory inventory;
  const std::vector<std::string> files = PartsOf(input, 2);
  inventory.clusters.push_back(ParseCluster(files.front(), "cluster.yaml"));
  if (files.size() > 1) inventory.workloads.push_back(ParseWorkload(files[1], "workload.yaml"));
  if (const auto& facts = inventory.clusters[0].device_facts) inventory.devices.push_back(*facts);
  const std::string bytes = web::WriteRecords(inventory);
  const serve::Inventory again = web::ReadRecords(bytes);
  Require(web::WriteRecords(again) == bytes, "records are read as something else");
  RequireSame(FormatCluster(again.clusters.at(0)), FormatCluster(inventory.clusters[0]));
  if (files.size() > 1) {
    RequireSame(FormatWorkload(again.workloads.at(0)), FormatWorkload(inventory.workloads[0]));
  }
  Require(Try([&] { web::ReadRecords(input); }) == false, "a file of text is taken for records");
}

}  // namespace
}  // namespace stepcast::fuzz
