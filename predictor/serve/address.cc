#include "predictor/serve/address.h"

#include <arpa/inet.h>

#include "data/values/numbers.h"

namespace stepcast::serve {
namespace {

bool IsAddress(int family, const std::string& host) {
  in6_addr parsed{};  // the larger of the two
  return inet_pton(family, host.c_str(), &parsed) == 1;
}

}  // namespace

std::string Address::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Address ParseAddress(const std::string& text, const InputPlace& place) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (v6) host = host.substr(1, host.size() - 2);
  if (colon == std::string::npos || !IsAddress(v6 ? AF_INET6 : AF_INET, host)) {
    throw InputError(place, text, "is not an address with a port",
                     "like 127.0.0.1:8080 or [::1]:8080");
  }
  constexpr int kMostPort = 65535;
  return {host,
          static_cast<std::uint16_t>(ParseInteger(text.substr(colon + 1), place, 0, kMostPort))};
}

}  // namespace stepcast::serve
