#include "data/record/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast {
namespace {

TEST(Quantile, LiesBetweenOrderStatistics) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_EQ(Quantile(sorted, 0), 1);
  EXPECT_EQ(Quantile(sorted, 0.5), 3);
  EXPECT_NEAR(Quantile(sorted, 0.9), 6.8, 1e-12);
  EXPECT_EQ(Quantile(sorted, 1), 8);
  EXPECT_EQ(Quantile({5}, 0.3), 5);
}

}  // namespace
}  // namespace stepcast
