// Readers take time in proportion to the file.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "tests/support/reader_inputs.h"

namespace stepcast {
namespace {

// The least processor time of three readings [s].
double TimeToRead(const ReaderInput& input, const std::string& text) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    input.read(text);
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

// A sixteenth of what is honest, and all of it, or as much of it as a test has time for.
// The square of the size would be a slope of 2; caches and trees make somewhat more than 1.
TEST(Readers, TimeGoesWithTheSizeOfTheFile) {
  constexpr int kMost = 40'000;
  constexpr double kSteepest = 1.35;
  constexpr double kQuickest = 2e-3;  // below it start-up would be measured
  // Memory that is given back and mapped anew would be the system's time.
  constexpr int kKept = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_TOP_PAD, kKept / 2);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that there may be
  for (const ReaderInput& input : ReaderInputs()) {
    const int most = std::min(input.most, kMost);
    const std::string small = input.text(most / 16);
    const std::string large = input.text(most);
    const TempFolder folder;
    const double quick = std::max(kQuickest, TimeToRead(input, Given(input, small, folder)));
    const double slow = TimeToRead(input, Given(input, large, folder));
    const double slope = std::log(slow / quick) / std::log(static_cast<double>(large.size()) /
                                                           static_cast<double>(small.size()));
    EXPECT_LT(slope, kSteepest) << input.name << ": " << quick << " s, " << slow << " s";
    RecordProperty(input.name, std::to_string(slope));
  }
}

}  // namespace
}  // namespace stepcast
