// Steps that become longer little by little, and those that only scatter.
#include "calibrate/online/slow_drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

struct Scatter {
  double log_sd = 0;
  double correlation = 0;  // with the step before
  double pauses = 0;       // share of steps that take three times as long
};

// ln(T) of one step after another, without any drift.
class ScatteredSteps {
 public:
  ScatteredSteps(const Scatter& scatter, std::uint64_t seed) : scatter_(scatter), noise_(seed) {}

  double Next() {
    const double own = std::sqrt(1 - scatter_.correlation * scatter_.correlation);
    last_ = scatter_.correlation * last_ + own * noise_.Next();
    const bool pauses = scatter_.pauses > 0 && noise_.Next() < NormalQuantile(scatter_.pauses);
    return scatter_.log_sd * last_ + (pauses ? std::log(3.0) : 0);
  }

 private:
  Scatter scatter_;
  Noise noise_;
  double last_ = 0;
};

struct SeenChange {
  int step = 0;
  SlowDrift::Change change;
};

// What is seen of so many steps, whose level is `level` of their number.
std::vector<SeenChange> ChangesSeen(const Scatter& scatter, std::uint64_t seed, int steps,
                                    const std::function<double(int)>& level) {
  ScatteredSteps of(scatter, seed);
  SlowDrift drift;
  std::vector<SeenChange> seen;
  for (int i = 0; i < steps; ++i) {
    const auto change = drift.Observe(Seconds(level(i) * std::exp(of.Next())));
    if (change) seen.push_back({i, *change});
  }
  return seen;
}

double Steady(int /*step*/) { return 0.4; }
// 1 % more every 100 steps, 20 % in all.
double Slower(int step) { return 0.4 * (1 + std::min(0.2, 1e-4 * step)); }

constexpr double kLogSds[] = {0.01, 0.03, 0.06, 0.1};

TEST(SlowDrift, FalseAlarmsAreRare) {
  constexpr int kJobs = 50;
  constexpr int kSteps = 5000;
  const struct {
    double correlation;
    double pauses;
    int most;  // alarms of all jobs
  } cases[] = {{0, 0, 1}, {0, 0.03, 2}, {0.5, 0, 8}};
  for (const auto& c : cases) {
    int alarms = 0;
    for (const double log_sd : kLogSds) {
      for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
        const Scatter scatter = {log_sd, c.correlation, c.pauses};
        alarms += ChangesSeen(scatter, seed, kSteps, Steady).empty() ? 0 : 1;
      }
    }
    std::cout << "correlation " << c.correlation << ", pauses " << c.pauses << ": " << alarms
              << " of " << std::size(kLogSds) * kJobs << " jobs without drift raise an alarm\n";
    EXPECT_LE(alarms, c.most);
  }
}

TEST(SlowDrift, IsSeenLongBeforeItIsOver) {
  constexpr int kJobs = 50;
  for (const double log_sd : kLogSds) {
    std::vector<double> first;
    for (std::uint64_t seed = 1; seed <= kJobs; ++seed) {
      const auto seen = ChangesSeen({log_sd, 0, 0}, seed, 3000, Slower);
      ASSERT_FALSE(seen.empty()) << log_sd << ", seed " << seed;
      first.push_back(seen.front().step);
      const SlowDrift::Change& change = seen.front().change;
      EXPECT_NEAR(change.before / Seconds(0.4), 1.005, 4 * log_sd / 10 + 0.002);
      const double true_now = Slower(seen.front().step) / 0.4;
      EXPECT_GT(change.now / change.before, 1 + 0.2 * (true_now - 1));
      EXPECT_LT(change.now / change.before, true_now + log_sd);
    }
    std::sort(first.begin(), first.end());
    std::cout << "1 % more every 100 steps, scatter " << log_sd << ": seen after "
              << first[kJobs / 2] << " steps in the median, " << first.back() << " at most\n";
    EXPECT_LT(first[kJobs / 2], 350 + 4000 * log_sd);
    EXPECT_LT(first.back(), 2000);
  }
}

// It is told again as it goes on, a part each time, and no more once it is over.
TEST(SlowDrift, GoesOnUntilItIsOver) {
  const auto seen = ChangesSeen({0.02, 0, 0}, 1, 6000, Slower);
  ASSERT_GE(seen.size(), 2U);
  EXPECT_LE(seen.size(), 5U);
  EXPECT_LT(seen.back().step, 3000);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GT(seen[i].change.now, seen[i].change.before);
    if (i > 0) {
      EXPECT_GT(seen[i].change.before, seen[i - 1].change.before);
      EXPECT_GE(seen[i].step, seen[i - 1].step + static_cast<int>(SlowDrift::kReference));
    }
  }
}

TEST(SlowDrift, ShorterIsALikeChange) {
  const auto seen = ChangesSeen({0.02, 0, 0}, 2, 2000, [](int i) { return 0.16 / Slower(i); });
  ASSERT_FALSE(seen.empty());
  EXPECT_LT(seen.front().change.now, seen.front().change.before);
  EXPECT_LT(seen.front().step, 700);
}

// Steps that do not scatter at all: what is less than half of 5 % is none, however long it lasts;
// pauses of a few steps are none, however long they take.
TEST(SlowDrift, OfSteadySteps) {
  const Scatter none;
  const auto at_once = [](double factor) {
    return [factor](int i) { return i < 150 ? 1.0 : factor; };
  };
  EXPECT_TRUE(ChangesSeen(none, 1, 20'000, at_once(1.02)).empty());
  EXPECT_TRUE(ChangesSeen(none, 1, 20'000, at_once(0.98)).empty());
  for (const double factor : {1.04, 0.96, 3.0}) {
    const auto seen = ChangesSeen(none, 1, 20'000, at_once(factor));
    ASSERT_EQ(seen.size(), 1U) << factor;
    EXPECT_GE(seen.front().step, 150 + 15) << factor;
    EXPECT_LT(seen.front().step, 150 + 60) << factor;
    EXPECT_NEAR(seen.front().change.before / Seconds(1), 1, 1e-12);
    EXPECT_NEAR(seen.front().change.now / Seconds(factor), 1, 1e-12);
  }
  const auto pauses = [](int i) { return i % 200 < 12 && i > 150 ? 5.0 : 1.0; };
  EXPECT_TRUE(ChangesSeen(none, 1, 20'000, pauses).empty());
}

// Where something else has shown a change, later steps are held against those behind it.
TEST(SlowDrift, BeginsAnew) {
  SlowDrift drift;
  for (int i = 0; i < 150; ++i) EXPECT_FALSE(drift.Observe(Seconds(1.0)));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(drift.Observe(Seconds(2.0)));
  drift.BeginAnew();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(drift.Observe(Seconds(2.0)));
  std::optional<SlowDrift::Change> change;
  for (int i = 0; i < 100 && !change; ++i) change = drift.Observe(Seconds(2.1));
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->before / Seconds(2.0), 1, 1e-12);
  EXPECT_NEAR(change->now / Seconds(2.1), 1, 1e-9);
}

// What steps had shown before they begin anew counts no more: a step adds 1.5 at most to a sum that
// tells above 24, so that 16 longer ones tell nothing, and 17 do.
TEST(SlowDrift, BeginsAnewWithoutWhatHadNearlyShownAChange) {
  for (const double factor : {1.1, 1 / 1.1}) {
    SlowDrift drift;
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(drift.Observe(Seconds(1.0)));
    for (int i = 0; i < 16; ++i) EXPECT_FALSE(drift.Observe(Seconds(factor)));
    drift.BeginAnew();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(drift.Observe(Seconds(2.0)));
    for (int i = 0; i < 16; ++i) EXPECT_FALSE(drift.Observe(Seconds(2 * factor))) << i;
    EXPECT_TRUE(drift.Observe(Seconds(2 * factor)));
  }
}

// What the header says, step by step over the whole series.
std::vector<SeenChange> ChangesByTheHeader(const std::vector<double>& log_steps) {
  const auto middle = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  std::vector<SeenChange> seen;
  std::size_t begin = 0;
  while (begin + 100 <= log_steps.size()) {
    const std::vector<double> first(log_steps.begin() + static_cast<std::ptrdiff_t>(begin),
                                    log_steps.begin() + static_cast<std::ptrdiff_t>(begin) + 100);
    std::vector<double> distances;
    for (const double step : first) distances.push_back(std::abs(step - middle(first)));
    // Steps count for three standard deviations at most, by the median of their distances.
    const double most = 3 * std::max(0.01, 1.4826 * middle(distances));
    double centre = 0;
    for (const double step : first) {
      centre += (middle(first) + std::clamp(step - middle(first), -most, most)) / 100;
    }
    std::vector<double> off;
    for (const double step : first) off.push_back(std::clamp(step - centre, -most, most));
    const double squares = std::inner_product(off.begin(), off.end(), off.begin(), 0.0);
    const double products = std::inner_product(off.begin() + 1, off.end(), off.begin(), 0.0);
    const double one = std::sqrt(squares / 99);
    const double q = squares > 0 ? std::clamp(products / squares, 0.0, 0.9) : 0;
    const double s = std::max(0.01, one * std::sqrt((1 + q) / (1 - q)));
    const double d = std::max(0.0488, 8 * s / 10);
    const double bound = std::max(3 * std::max(0.01, one), d);
    double sums[2] = {0, 0};
    std::size_t since[2] = {0, 0};
    std::size_t next = begin + 100;
    for (std::size_t i = next; i < log_steps.size() && next == begin + 100; ++i) {
      const double r = std::clamp(log_steps[i] - centre, -bound, bound);
      for (const int side : {0, 1}) {
        const double towards = side == 0 ? r : -r;
        sums[side] += std::min(1.5, (d * towards - d * d / 2) / (s * s));
        since[side] = sums[side] > 0 ? since[side] + 1 : 0;
        sums[side] = std::max(0.0, sums[side]);
        if (sums[side] <= 24 || next != begin + 100) continue;
        const std::size_t shown = std::min(since[side], std::min<std::size_t>(50, i + 1 - next));
        const auto end = log_steps.begin() + static_cast<std::ptrdiff_t>(i) + 1;
        const double now = middle({end - static_cast<std::ptrdiff_t>(shown), end});
        seen.push_back({static_cast<int>(i), {Seconds(std::exp(centre)), Seconds(std::exp(now))}});
        next = i + 1;
      }
    }
    if (next == begin + 100) break;
    begin = next;
  }
  return seen;
}

TEST(SlowDrift, IsWhatTheHeaderSays) {
  int seen = 0;
  int late = 0;
  for (const double log_sd : {0.003, 0.02, 0.06, 0.12}) {
    for (const double correlation : {0.0, 0.6, 0.98}) {
      for (const double pauses : {0.0, 0.05}) {
        for (const double drift : {0.0, 4e-5, 3e-4, -2e-4}) {
          ScatteredSteps of({log_sd, correlation, pauses}, 7);
          std::vector<double> log_steps;
          for (int i = 0; i < 3000; ++i) log_steps.push_back(of.Next() + drift * i);
          SlowDrift its;
          std::vector<SeenChange> found;
          for (std::size_t i = 0; i < log_steps.size(); ++i) {
            const auto change = its.Observe(Seconds(std::exp(log_steps[i])));
            if (change) found.push_back({static_cast<int>(i), *change});
          }
          const std::vector<SeenChange> expected = ChangesByTheHeader(log_steps);
          SCOPED_TRACE(std::to_string(log_sd) + " " + std::to_string(correlation) + " " +
                       std::to_string(pauses) + " " + std::to_string(drift));
          ASSERT_EQ(found.size(), expected.size());
          for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].step, expected[i].step);
            EXPECT_NEAR(found[i].change.before / expected[i].change.before, 1, 1e-9);
            EXPECT_NEAR(found[i].change.now / expected[i].change.now, 1, 1e-9);
          }
          seen += found.empty() ? 0 : 1;
          late += !found.empty() && found.front().step > 200 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(seen, 40);
  EXPECT_GT(late, 20);
}

}  // namespace
}  // namespace stepcast
