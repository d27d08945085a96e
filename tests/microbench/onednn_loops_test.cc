// Operations without a library do the whole of their work, among whatever number of threads.
#include "microbench/compute/onednn_loops.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {
namespace {

// More than is shared at all, and a number that none of these threads divides.
constexpr std::int64_t kMany = 100'003;
constexpr int kThreads[] = {1, 2, 3, 4};

class OneDnnLoopsTest : public ::testing::Test {
 protected:
  OneDnnLoopsTest() : before_(omp_get_max_threads()) {}
  ~OneDnnLoopsTest() override { omp_set_num_threads(before_); }

 private:
  int before_;
};

TEST_F(OneDnnLoopsTest, EveryByteIsCopiedAndSetToZero) {
  for (const int threads : kThreads) {
    omp_set_num_threads(threads);
    for (const std::int64_t many : {std::int64_t{1}, std::int64_t{1000}, kMany}) {
      const std::vector<std::byte> from(static_cast<std::size_t>(many), std::byte{7});
      std::vector<std::byte> to(from.size(), std::byte{0});
      CopyBytes(from.data(), to.data(), to.size());
      EXPECT_EQ(to, from) << threads << " threads";
      ZeroBytes(to.data(), to.size());
      EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{0}), many) << threads << " threads";
    }
  }
}

TEST_F(OneDnnLoopsTest, EveryParameterIsUpdated) {
  const std::vector<float> gradient(static_cast<std::size_t>(kMany), 1);
  for (const int threads : kThreads) {
    omp_set_num_threads(threads);
    std::vector<float> parameters(gradient.size(), 1);
    SgdUpdate(parameters.data(), gradient.data(), kMany);
    EXPECT_LT(*std::max_element(parameters.begin(), parameters.end()), 1) << threads << " threads";
    parameters.assign(gradient.size(), 1);
    std::vector<float> buffer(gradient.size(), 0);
    MomentumUpdate(parameters.data(), gradient.data(), buffer.data(), kMany);
    EXPECT_LT(*std::max_element(parameters.begin(), parameters.end()), 1) << threads << " threads";
    EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 1.0F), kMany) << threads << " threads";
  }
}

TEST_F(OneDnnLoopsTest, EveryRowIsReadAndAddedTo) {
  constexpr std::int64_t kRows = 1003;
  constexpr std::int64_t kFeatures = 64;
  constexpr std::int64_t kTokens = 2000;
  std::vector<std::int64_t> index(kTokens);
  FillIndices(index.data(), kTokens, kRows);
  index.back() = kRows - 1;
  const std::vector<float> gradient(kTokens * kFeatures, 1);
  for (const int threads : kThreads) {
    omp_set_num_threads(threads);
    std::vector<float> table(kRows * kFeatures, 7);
    ScatterRows(gradient.data(), index.data(), table.data(), kTokens, kFeatures, kRows);
    std::vector<float> out(kTokens * kFeatures, -1);
    GatherRows(table.data(), index.data(), out.data(), kTokens, kFeatures);
    int wrong = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto times = static_cast<float>(std::count(index.begin(), index.end(), row));
      for (std::int64_t i = 0; i < kFeatures; ++i) {
        wrong += table[static_cast<std::size_t>(row * kFeatures + i)] == times ? 0 : 1;
      }
    }
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::int64_t row = index[static_cast<std::size_t>(t)];
      wrong += out[static_cast<std::size_t>(t * kFeatures)] ==
                       table[static_cast<std::size_t>(row * kFeatures)]
                   ? 0
                   : 1;
    }
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace stepcast
