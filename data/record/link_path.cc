#include "data/record/link_path.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stepcast {

DataRate<> NominalRate(DataRate<> rate) {
  constexpr double kEthernetMbit[] = {10,    100,   1000,  2500,   5000,   10000,
                                      25000, 40000, 50000, 100000, 200000, 400000};
  const double mbit = rate.in(kMegabitsPerSecond);
  const double* nearest =
      std::min_element(std::begin(kEthernetMbit), std::end(kEthernetMbit), [&](double a, double b) {
        return std::abs(std::log(a / mbit)) < std::abs(std::log(b / mbit));
      });
  return MegabitsPerSecond(*nearest);
}

}  // namespace stepcast
