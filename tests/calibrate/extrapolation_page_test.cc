// How errors grow with the distance from the fitted runs, ours and those of the published model of
// the traces' authors; docs/reference/extrapolation.md says so. STEPCAST_UPDATE_DOCS=1 writes its
// tables and its picture.
#include "tests/calibrate/extrapolation_page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast::extrapolation {
namespace {

const std::string kPage = std::string(STEPCAST_SOURCE_DIR) + "/docs/reference/extrapolation.md";
const std::string kPicture = std::string(STEPCAST_SOURCE_DIR) + "/docs/images/extrapolation.svg";

void ExpectSameFile(const std::string& path, const std::string& content) {
  if (std::getenv("STEPCAST_UPDATE_DOCS") != nullptr) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return;
  }
  std::istringstream said(FileContent(path));
  std::istringstream actual(content);
  std::string a;
  std::string b;
  int line = 0;
  while (std::getline(said, a)) {
    ++line;
    ASSERT_TRUE(std::getline(actual, b)) << path << ":" << line << ": " << a;
    ASSERT_TRUE(SameButForNoise(a, b)) << path << ":" << line << "\n"
                                       << a << "\n"
                                       << b << "\nSTEPCAST_UPDATE_DOCS=1 writes it anew.";
  }
  EXPECT_FALSE(std::getline(actual, b)) << path << " ends before: " << b;
}

double ValueOf(const Cluster& fit, const std::string& scope, const std::string& name) {
  for (const ParameterEstimate& p : fit.calibration->parameters) {
    if (p.scope == scope && p.name == name) return p.value;
  }
  throw std::invalid_argument("no " + name + " of " + scope);
}

// What the page says in words: where it fails, the page wants another sentence.
void ExpectGrowthWithDistance(const std::vector<JudgedFit>& fits) {
  // Per doubling, in addition to the error of the nearest rows.
  constexpr double kGrowth = 0.04;
  for (const JudgedFit& fit : fits) {
    SCOPED_TRACE("fitted on " + fit.name);
    const std::vector<DistanceBin> bins = BinsOf(fit.rows);
    ASSERT_GE(bins.size(), 3U);
    const double near = bins.front().scores.ours.mape();
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const DistanceBin& bin = bins[i];
      SCOPED_TRACE(bin.label() + " doublings");
      EXPECT_LE(bin.scores.ours.mape(), near + kGrowth * bin.doublings);
      EXPECT_GE(bin.scores.ours.coverage(), 0.6);
      // The nearest rows are of two nodes, whose one pair depends on a single flow.
      if (i >= 2) {
        EXPECT_GT(bin.half_width, bins[i - 1].half_width);
      }
    }
  }
}

void ExpectCoverage(const std::vector<JudgedFit>& fits) {
  EXPECT_GE(ScoresOf(fits.front().rows).ours.coverage(), 0.8);
  for (std::size_t i = kSmall; i < fits.size(); ++i) {
    SCOPED_TRACE("fitted on " + fits[i].name);
    const double all = ScoresOf(fits[i].rows).ours.coverage();
    EXPECT_GE(all, 0.87);
    EXPECT_LE(all, 0.93);
    // The nearest rows are held least often.
    const std::vector<DistanceBin> bins = BinsOf(fits[i].rows);
    for (const DistanceBin& bin : bins) EXPECT_GE(bin.scores.ours.coverage(), 0.78) << bin.label();
  }
}

void ExpectComparison(const std::vector<JudgedFit>& fits) {
  const Scores one_node = ScoresOf(fits.front().rows);
  EXPECT_GT(one_node.published.mape(), one_node.ours.mape());
  for (const std::size_t i : {kSmall, kSmall + 1}) {
    SCOPED_TRACE("fitted on " + fits[i].name);
    const std::vector<DistanceBin> bins = BinsOf(fits[i].rows);
    for (const DistanceBin& bin : bins) {
      if (bin.number < 2) continue;
      EXPECT_GT(bin.scores.published.mape(), 4 * bin.scores.ours.mape()) << bin.label();
    }
    EXPECT_GT(bins.back().scores.published.mape(),
              bins.front().scores.published.mape() + 0.5 * bins.back().doublings);
  }
  // Nearby it is about as good, and with many runs far away nearly so.
  const Scores nearby = BinsOf(fits[kSmall].rows).front().scores;
  EXPECT_LT(nearby.published.mape(), 1.3 * nearby.ours.mape());
  const JudgedFit& four = fits.back();
  const Scores many = ScoresOf(four.rows);
  EXPECT_LT(many.published.mape(), 1.4 * many.ours.mape());
  for (const char* app : {"cifar10", "imagenet"}) {
    const Scores job = ScoresOfJob(four, AdaptdlWorkload(app));
    EXPECT_LT(job.published.mape(), 1.1 * job.ours.mape()) << app;
  }
  const Scores bert = ScoresOfJob(four, AdaptdlWorkload("bert"));
  EXPECT_LT(bert.published.mape(), 1.3 * bert.ours.mape());
  const Scores deepspeech = ScoresOfJob(four, AdaptdlWorkload("deepspeech2"));
  EXPECT_GT(deepspeech.published.mape(), 2 * deepspeech.ours.mape());
}

void ExpectCauses(const Measured& measured) {
  const double scaling = ValueOf(measured.all, kClusterScope, "hop_spread") /
                         ValueOf(measured.small, kClusterScope, "hop_spread");
  EXPECT_GT(scaling, 1);
  EXPECT_LT(scaling, 1.5);
  const std::string deepspeech = "workload deepspeech2 on t4";
  EXPECT_NEAR(ValueOf(measured.all, deepspeech, "straggler_spread") /
                  ValueOf(measured.small, deepspeech, "straggler_spread"),
              1, 0.25);
}

TEST(ExtrapolationPage, SaysWhatIsMeasured) {
  const std::optional<Traces> traces = ReadTraces();
  if (!traces) GTEST_SKIP() << MissingDataset("adaptdl");
  const Measured measured = Measure(*traces);
  ASSERT_EQ(measured.ranges[kSmall].fitted, 248U);
  ASSERT_EQ(measured.ranges[kSmall].rows.size(), 3995U);
  ExpectGrowthWithDistance(measured.ranges);
  ExpectCoverage(measured.ranges);
  ExpectComparison(measured.ranges);
  ExpectCauses(measured);
  for (const JudgedFit& fit : measured.others) {
    const Scores scores = ScoresOf(fit.rows);
    EXPECT_LT(scores.ours.mape(), scores.published.mape()) << fit.name;
  }
  ExpectSameFile(kPage, WithTables(FileContent(kPage), PageTables(*traces, measured)));
  ExpectSameFile(kPicture, PagePicture(measured));
}

TEST(ExtrapolationPage, BinsAreADoublingWide) {
  EXPECT_EQ(BinOf(0), 0);
  EXPECT_EQ(BinOf(0.49), 0);
  EXPECT_EQ(BinOf(0.5), 1);
  EXPECT_EQ(BinOf(1.5), 2);
  const auto row = [](double doublings, double error, double half_width) {
    HeldOutRow r;
    r.doublings = doublings;
    r.ours = {error, half_width, true};
    return r;
  };
  const std::vector<DistanceBin> bins =
      BinsOf({row(2.0, 0.3, 0.5), row(0.2, -0.1, 0.1), row(0.4, 0.2, 0.3)});
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins[0].label(), "0.0 to 0.5");
  EXPECT_EQ(bins[1].label(), "1.5 to 2.5");
  EXPECT_DOUBLE_EQ(bins[0].doublings, 0.3);
  EXPECT_DOUBLE_EQ(bins[0].half_width, 0.1);
  EXPECT_DOUBLE_EQ(bins[0].scores.ours.mape(), 0.15);
}

Run MakeRun(const Placement& placement, double seconds) {
  Run run;
  run.workload = "x";
  run.plan.placement = placement;
  run.plan.local_batch = 8;
  run.step_time = Seconds(seconds);
  return run;
}

TEST(ExtrapolationPage, OtherLayoutsTellARun) {
  EXPECT_TRUE(OtherLayouts({MakeRun({1, 3}, 1), MakeRun({1, 2}, 2)}).empty());
  // 2 by 1 is 100 % off, 1 by 2 is 50 %.
  const auto told = OtherLayouts({MakeRun({1, 3}, 1), MakeRun({2, 2}, 2), MakeRun({4}, 9)});
  EXPECT_DOUBLE_EQ(told.at("x"), 0.75);
}

TEST(ExtrapolationPage, TablesHaveTheirPlaces) {
  const std::string page = "a\n<!-- measured: x -->\nold\n<!-- end -->\nb\n";
  EXPECT_EQ(WithTables(page, {{"x", "| 1 |\n"}}),
            "a\n<!-- measured: x -->\n| 1 |\n<!-- end -->\nb\n");
  EXPECT_THROW(WithTables(page, {}), std::runtime_error);
  EXPECT_THROW(WithTables("a\n", {{"x", ""}}), std::runtime_error);
  EXPECT_THROW(WithTables("<!-- measured: x -->\n", {{"x", ""}}), std::runtime_error);
}

TEST(ExtrapolationPage, OnlyNoiseIsForgiven) {
  EXPECT_TRUE(SameButForNoise("| a | 208 % | -0.1 % |", "| a | 209 % | +0.0 % |"));
  EXPECT_FALSE(SameButForNoise("| 208 % |", "| 218 % |"));
  EXPECT_FALSE(SameButForNoise("| +7.5 % |", "| -7.5 % |"));
  EXPECT_FALSE(SameButForNoise("| a |", "| b |"));
  EXPECT_FALSE(SameButForNoise("one line", "one line more"));
}

}  // namespace
}  // namespace stepcast::extrapolation
