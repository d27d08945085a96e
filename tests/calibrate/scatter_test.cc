// How steps scatter, from residuals whose law is known.
#include "calibrate/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

constexpr Scatter kBefore = {0.06, 0.06};

// The bound that |t| keeps in nine cases of ten, for the t-distribution with 4 degrees of freedom.
constexpr double kNinetyOfT4 = 2.1318;
constexpr double kNinetyOfNormal = 1.6449;

double Normal(Noise* noise) { return noise->Next(); }

double T4(Noise* noise) {
  double squares = 0;
  for (int i = 0; i < 4; ++i) squares += std::pow(noise->Next(), 2);
  return noise->Next() / std::sqrt(squares / 4);
}

// `count` residuals in turn at each share of synchronisation.
template <class Law>
std::vector<ScatterRow> Rows(int count, const Scatter& truth, const Law& law,
                             const std::vector<double>& shares, std::uint64_t seed = 1) {
  Noise noise(seed);
  std::vector<ScatterRow> rows;
  for (int i = 0; i < count; ++i) {
    const double share = shares[static_cast<std::size_t>(i) % shares.size()];
    rows.push_back({truth.At(share) * law(&noise), share});
  }
  return rows;
}

const std::vector<double> kShares = {0, 0.1, 0.3, 0.6, 0.9};

double ShareWithin(const std::vector<ScatterRow>& rows, const Scatter& scatter) {
  double inside = 0;
  for (const ScatterRow& row : rows) {
    if (std::abs(row.log_ratio) <= kNinetyOfNormal * scatter.At(row.sync_share)) ++inside;
  }
  return inside / static_cast<double>(rows.size());
}

std::vector<double> AbsoluteOf(const std::vector<ScatterRow>& rows) {
  std::vector<double> values;
  for (const ScatterRow& row : rows) values.push_back(std::abs(row.log_ratio));
  return values;
}

// ---- The law of one step.

TEST(ScatterAt, AddsInSquares) {
  const Scatter scatter = {0.03, 0.2};
  EXPECT_DOUBLE_EQ(scatter.At(0), 0.03);
  EXPECT_DOUBLE_EQ(scatter.At(1), 0.2);
  EXPECT_DOUBLE_EQ(scatter.At(0.5), std::hypot(0.015, 0.1));
}

// ---- Both parts are found.

TEST(EstimateScatter, FindsTheScaleOfHeavyTails) {
  for (const Scatter& truth : {Scatter{0.02, 0.2}, Scatter{0.1, 0.03}, Scatter{0.05, 0.05}}) {
    const std::vector<ScatterRow> rows = Rows(60000, truth, T4, kShares);
    const Scatter found = EstimateScatter(rows, kBefore);
    EXPECT_NEAR(found.compute / truth.compute, 1, 0.03);
    EXPECT_NEAR(found.sync / truth.sync, 1, 0.03);
    // Nine tenths of a t-distribution are further out than those of a normal law.
    const Scatter interval = IntervalScatter(rows, found);
    EXPECT_NEAR(interval.compute / truth.compute, kNinetyOfT4 / kNinetyOfNormal, 0.03);
    EXPECT_NEAR(interval.sync / truth.sync, kNinetyOfT4 / kNinetyOfNormal, 0.03);
  }
}

TEST(IntervalScatter, FindsTheStandardDeviationsOfANormalLaw) {
  for (const Scatter& truth : {Scatter{0.02, 0.2}, Scatter{0.1, 0.03}, Scatter{0.05, 0.05}}) {
    const std::vector<ScatterRow> rows = Rows(60000, truth, Normal, kShares);
    const Scatter found = IntervalScatter(rows, EstimateScatter(rows, kBefore));
    EXPECT_NEAR(found.compute / truth.compute, 1, 0.03);
    EXPECT_NEAR(found.sync / truth.sync, 1, 0.03);
  }
}

// What is estimated does not depend on what was believed, once there are enough runs.
TEST(EstimateScatter, ForgetsWhatWasBelieved) {
  const std::vector<ScatterRow> rows = Rows(60000, {0.03, 0.1}, T4, kShares);
  const Scatter low = EstimateScatter(rows, {0.01, 0.01});
  const Scatter high = EstimateScatter(rows, {0.1, 0.3});
  EXPECT_NEAR(low.compute / high.compute, 1, 0.02);
  EXPECT_NEAR(low.sync / high.sync, 1, 0.02);
}

TEST(EstimateScatter, OutliersHardlyCount) {
  std::vector<ScatterRow> rows = Rows(4000, {0.03, 0.1}, T4, kShares);
  const Scatter before = EstimateScatter(rows, kBefore);
  for (std::size_t i = 0; i < rows.size(); i += 33) rows[i].log_ratio = 2;
  const Scatter after = EstimateScatter(rows, kBefore);
  // Their squares alone would make it tenfold.
  EXPECT_NEAR(after.compute / before.compute, 1, 0.2);
  EXPECT_NEAR(after.sync / before.sync, 1, 0.2);
}

// ---- With few rows.

TEST(EstimateScatter, WithoutRowsIsWhatWasBelieved) {
  const Scatter found = EstimateScatter({}, {0.04, 0.3});
  EXPECT_NEAR(found.compute, 0.04, 1e-12);
  EXPECT_NEAR(found.sync, 0.3, 1e-12);
}

TEST(EstimateScatter, RowsTellOnlyOfWhatTheyContain) {
  const Scatter truth = {0.2, 0.2};
  const Scatter all_compute = EstimateScatter(Rows(3000, truth, T4, {0}), kBefore);
  EXPECT_NEAR(all_compute.compute, 0.2, 0.02);
  EXPECT_NEAR(all_compute.sync, kBefore.sync, 1e-9);
  const Scatter all_sync = EstimateScatter(Rows(3000, truth, T4, {1}), kBefore);
  EXPECT_NEAR(all_sync.sync, 0.2, 0.02);
  EXPECT_NEAR(all_sync.compute, kBefore.compute, 1e-9);
}

// The more rows, the further from what was believed; ten weigh about as much as the belief.
TEST(EstimateScatter, IsDrawnTowardsWhatWasBelieved) {
  constexpr double kTrue = 0.3;
  double last = kBefore.compute;
  std::vector<double> found;
  for (const int count : {1, 3, 10, 30, 100, 1000}) {
    // All as far away as a middling residual, so that only their number counts.
    std::vector<ScatterRow> rows;
    for (int i = 0; i < count; ++i) rows.push_back({kTrue, 0});
    found.push_back(EstimateScatter(rows, kBefore).compute);
    EXPECT_GT(found.back(), last) << count;
    EXPECT_LT(found.back(), kTrue) << count;
    last = found.back();
  }
  EXPECT_LT(found[0], 1.5 * kBefore.compute) << "one row";
  EXPECT_GT(found[2], kBefore.compute + 0.25 * (kTrue - kBefore.compute)) << "ten rows";
  EXPECT_LT(found[2], kBefore.compute + 0.85 * (kTrue - kBefore.compute)) << "ten rows";
  EXPECT_GT(found[5], 0.95 * kTrue) << "a thousand";
}

TEST(IntervalScatter, ItsFactorIsDrawnTowardsOne) {
  constexpr Scatter kCore = {0.05, 0.1};
  const auto factor = [&](int count) {
    std::vector<ScatterRow> rows;
    for (int i = 0; i < count; ++i) rows.push_back({3 * kNinetyOfNormal * 0.05, 0});
    const Scatter interval = IntervalScatter(rows, kCore);
    EXPECT_NEAR(interval.sync / interval.compute, 2, 1e-12) << "both by one factor";
    return interval.compute / kCore.compute;
  };
  EXPECT_NEAR(factor(1), std::sqrt((1 * 9.0 + 10) / 11), 1e-4);
  EXPECT_NEAR(factor(10), std::sqrt((10 * 9.0 + 10) / 20), 1e-4);
  EXPECT_NEAR(factor(10000), 3, 0.01);
}

// Runs that agree perfectly do not promise that the next one does.
TEST(EstimateScatter, StaysPositiveWithoutAnyScatter) {
  for (const int count : {1, 20, 1000}) {
    std::vector<ScatterRow> rows;
    for (int i = 0; i < count; ++i) rows.push_back({0, i % 2 == 0 ? 0.0 : 0.5});
    const Scatter core = EstimateScatter(rows, kBefore);
    const Scatter interval = IntervalScatter(rows, core);
    EXPECT_GT(interval.compute, 0) << count;
    EXPECT_GT(interval.sync, 0) << count;
    EXPECT_LE(interval.compute, kBefore.compute) << count;
    EXPECT_GT(TypicalScatter(rows, 0.06), 0);
    EXPECT_GT(TotalScatter(rows, 0.06), 0);
    EXPECT_NEAR(TotalScatter(rows, 0.06), 0.06 * std::sqrt(10.0 / (10 + count)), 1e-12);
  }
}

// ---- Nine tenths.

TEST(NineTenths, AreWithinTheInterval) {
  const Scatter truth = {0.03, 0.15};
  const auto expect = [&](const std::vector<ScatterRow>& rows) {
    const Scatter interval = IntervalScatter(rows, EstimateScatter(rows, kBefore));
    EXPECT_NEAR(ShareWithin(rows, interval), 0.9, 0.005);
    // One width for all rows, whatever their share.
    const double bound = kNinetyOfNormal * TotalScatter(rows, 0.06);
    const std::vector<double> values = AbsoluteOf(rows);
    const auto inside =
        std::count_if(values.begin(), values.end(), [&](double value) { return value <= bound; });
    EXPECT_NEAR(static_cast<double>(inside) / static_cast<double>(values.size()), 0.9, 0.005);
  };
  expect(Rows(5000, truth, Normal, kShares, 2));
  expect(Rows(5000, truth, T4, kShares, 3));
  expect(Rows(5000, truth, T4, {0.5}, 4));
}

// Nine tenths of small and of large shares, which one number for all cannot give.
TEST(NineTenths, AreWithinTheIntervalAtEveryShare) {
  const std::vector<ScatterRow> rows = Rows(10000, {0.03, 0.2}, Normal, {0.05, 0.8}, 5);
  const Scatter interval = IntervalScatter(rows, EstimateScatter(rows, kBefore));
  for (const double share : {0.05, 0.8}) {
    std::vector<ScatterRow> own;
    for (const ScatterRow& row : rows) {
      if (row.sync_share == share) own.push_back(row);
    }
    EXPECT_NEAR(ShareWithin(own, interval), 0.9, 0.02) << share;
    const double bound = kNinetyOfNormal * TotalScatter(rows, 0.06);
    const std::vector<double> values = AbsoluteOf(own);
    const auto inside =
        std::count_if(values.begin(), values.end(), [&](double value) { return value <= bound; });
    EXPECT_GT(std::abs(static_cast<double>(inside) / static_cast<double>(own.size()) - 0.9), 0.05)
        << "one width for all is wrong for each";
  }
}

TEST(TotalScatter, OfAHomogeneousNormalLawIsItsStandardDeviation) {
  const std::vector<ScatterRow> rows = Rows(10000, {0.08, 0.08}, Normal, {0}, 6);
  EXPECT_NEAR(TotalScatter(rows, 0.06), 0.08, 0.002);
  EXPECT_NEAR(TypicalScatter(rows, 0.06), 0.08, 0.002);
  std::vector<double> values = AbsoluteOf(rows);
  std::sort(values.begin(), values.end());
  EXPECT_NEAR(TotalScatter(rows, 0.06), values[9000] / kNinetyOfNormal, 1e-4);
}

// The middle of the rows does not see what the tails do.
TEST(TypicalScatter, IsThatOfTheCore) {
  std::vector<ScatterRow> rows = Rows(10000, {0.08, 0.08}, Normal, {0}, 7);
  const double core = TypicalScatter(rows, 0.06);
  const double total = TotalScatter(rows, 0.06);
  for (std::size_t i = 0; i < rows.size(); i += 8) rows[i].log_ratio *= 20;
  EXPECT_NEAR(TypicalScatter(rows, 0.06) / core, 1, 0.2);
  EXPECT_GT(TotalScatter(rows, 0.06) / total, 2);
}

}  // namespace
}  // namespace stepcast
