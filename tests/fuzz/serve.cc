// Requests, one after another (parts.h): METHOD PATH CONTENT-TYPE in a line, and the body behind
// it. And what a service has kept of its jobs.
#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"
#include "data/workloads/catalog.h"
#include "predictor/serve/address.h"
#include "predictor/serve/jobs.h"
#include "tests/capi/support.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/parts.h"
#include "tests/fuzz/written.h"
#include "tests/serve/support.h"

namespace stepcast::fuzz {
namespace {

void RequireReply(const serve::TestService& test, const std::string& input) {
  const auto [line, body] = SplitHead(input);
  std::istringstream head(line);
  std::string method;
  std::string path;
  std::string type;
  head >> method >> path >> type;
  const serve::Reply reply = test.api.Answer({method, path, type, body});
  const bool json = std::string_view(reply.content_type).find("json") != std::string_view::npos;
  Require(reply.status < 500, std::to_string(reply.status) + " " + reply.body);
  Require(!json || serve::TestJson::accept(reply.body), "no JSON: " + reply.body);
  if (reply.status >= 400) RequireReadable(reply.body);
  if (path == "/v1/predict" && reply.status == 200) {
    Require(serve::TestJson::parse(reply.body)["step_time_s"].is_number(), reply.body);
  }
}

STEPCAST_DOOR(request) {
  static serve::TestService test;
  for (const std::string& part : PartsOf(input)) RequireReply(test, part);
  // So that an input is answered the same whatever came before it.
  serve::Jobs& jobs = test.service.jobs();
  for (const serve::JobTold& job : jobs.List()) jobs.End(job.job, true);
}

// A line for each fleet: what is left of it is kept again, and is the same.
STEPCAST_DOOR(jobs) {
  static const serve::Snapshot snapshot({{FittedCluster()}, {}, {}}, 1, {});
  serve::Jobs jobs(1000);
  std::vector<std::string> lines;
  std::istringstream in(input);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (const InputError& e : jobs.Import(snapshot, lines)) RequireReadable(e.what());
  const std::vector<std::string> kept = jobs.Export();
  serve::Jobs again(1000);
  try {
    Require(again.Import(snapshot, kept).empty(), "what was kept is left out");
  } catch (const InputError& e) {
    throw Broken(std::string("what was kept is refused: ") + e.what());
  }
  Require(again.Export() == kept, "what was kept is read as something else");
  for (const serve::JobTold& job : jobs.List()) {
    Require(job.rows >= 0 && again.Find(job.job) != nullptr, "a job is lost");
  }
}

STEPCAST_DOOR(address) {
  const serve::Address address = serve::ParseAddress(input, {"", 0, "address"});
  const serve::Address again =
      ReadAgain(address.text(), [](const auto& t) { return serve::ParseAddress(t, {}); });
  Require(again.host == address.host && again.port == address.port, "another address is read");
}

}  // namespace
}  // namespace stepcast::fuzz
