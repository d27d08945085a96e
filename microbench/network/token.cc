#include "microbench/network/token.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <stdexcept>

namespace stepcast::network {

std::string RandomWord() {
  std::array<unsigned char, 16> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    throw std::runtime_error("the system gives no random numbers");
  }
  std::string word;
  for (const unsigned char byte : random) word += fmt::format("{:02x}", byte);
  return word;
}

bool SameToken(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^
                 static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return different == 0;
}

}  // namespace stepcast::network
