#include "model/numeric/count_log2.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace stepcast {

double CountLog2(int count) {
  static const auto kTabled = [] {
    std::array<double, 4097> all{};
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = std::log2(static_cast<double>(n));
    return all;
  }();
  const auto at = static_cast<std::size_t>(count);
  return at < kTabled.size() ? kTabled[at] : std::log2(static_cast<double>(count));
}

}  // namespace stepcast
