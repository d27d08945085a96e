// Requests: METHOD PATH CONTENT-TYPE in a line, and the body behind it.
#include <sstream>
#include <string>
#include <string_view>

#include "predictor/serve/address.h"
#include "tests/fuzz/door.h"
#include "tests/serve/support.h"

namespace stepcast::fuzz {
namespace {

STEPCAST_DOOR(request) {
  static const serve::TestService test;
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::istringstream head(input.substr(0, end));
  std::string method;
  std::string path;
  std::string type;
  head >> method >> path >> type;
  const serve::Reply reply = test.api.Answer(
      {method, path, type, std::string_view(input).substr(std::min(end + 1, input.size()))});
  const bool json = std::string_view(reply.content_type).find("json") != std::string_view::npos;
  Require(reply.status < 500, std::to_string(reply.status) + " " + reply.body);
  Require(!json || serve::TestJson::accept(reply.body), "no JSON: " + reply.body);
  if (reply.status >= 400) RequireReadable(reply.body);
  if (path == "/v1/predict" && reply.status == 200) {
    Require(serve::TestJson::parse(reply.body)["step_time_s"].is_number(), reply.body);
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
