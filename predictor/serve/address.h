// Where a server listens.
#ifndef STEPCAST_PREDICTOR_SERVE_ADDRESS_H_
#define STEPCAST_PREDICTOR_SERVE_ADDRESS_H_

#include <cstdint>
#include <string>

#include "data/record/input_error.h"

namespace stepcast::serve {

struct Address {
  std::string host = "127.0.0.1";  // an IPv4 or IPv6 address of this machine
  std::uint16_t port = 0;          // 0: any that is free

  // Whether this machine alone can reach the address.
  bool loopback() const { return host.starts_with("127.") || host == "::1"; }
  // "127.0.0.1:8080", "[::1]:8080".
  std::string text() const;
};

// The address whose text() it is. Throws InputError for anything else.
Address ParseAddress(const std::string& text, const InputPlace& place);

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_ADDRESS_H_
