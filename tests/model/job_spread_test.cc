// How far a job may be from what the others of its cluster have shown.
#include "model/step/job_spread.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "model/step/answer.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

using Batches = CalibratedRange::BatchRange;

// Of so many other jobs, each with as many workers.
CalibratedRange UpTo(int workers, int jobs = 1) {
  CalibratedRange range;
  range.max_workers = workers;
  for (int i = 0; i < jobs; ++i) range.local_batch[std::to_string(i)] = {16, 64, workers};
  return range;
}

Batches OwnUpTo(int workers) { return {16, 64, workers}; }

StepFacts Of(int workers) {
  StepFacts facts;
  facts.workers = workers;
  return facts;
}

// Of a step that each of these makes shorter or longer.
PlanGradient Elasticities() {
  PlanGradient gradient{};
  gradient[kHostContention] = 0.05;
  gradient[kHostBandwidth] = -0.3;
  gradient[kOverlapShare] = -0.2;
  gradient[kLinkBandwidth] = -0.4;  // which jobs share
  return gradient;
}

double Variance(int workers, const CalibratedRange& range, const std::optional<Batches>& own) {
  return JobVariance(Of(workers), Elasticities(), OtherJobs(range, own));
}

TEST(JobSpread, IsThatOfWhatJobsShareNearly) {
  const double one = std::pow(0.9 * 0.05, 2) + std::pow(0.25 * 0.3, 2) + std::pow(0.32 * 0.2, 2);
  EXPECT_DOUBLE_EQ(Variance(16, UpTo(16), std::nullopt), 2 * one) << "two differ from each other";
  EXPECT_DOUBLE_EQ(Variance(16, UpTo(16, 4), std::nullopt), 1.25 * one) << "from the mean of four";
  EXPECT_DOUBLE_EQ(Variance(16, UpTo(16), OwnUpTo(1)), 2 * one) << "alone";
  EXPECT_DOUBLE_EQ(Variance(2, UpTo(16), OwnUpTo(1)), 2 * one) << "however few workers";
  EXPECT_DOUBLE_EQ(Variance(16, UpTo(16), OwnUpTo(4)), one) << "two doublings of four";
  EXPECT_DOUBLE_EQ(Variance(64, UpTo(16), OwnUpTo(4)), one) << "nobody has shown more";
}

TEST(JobSpread, IsOfJobsThatHaveShownMore) {
  CalibratedRange range = UpTo(16);
  range.local_batch["small"] = {1, 1, 4};
  EXPECT_EQ(Variance(16, range, OwnUpTo(4)), Variance(16, UpTo(16), OwnUpTo(4)));
  EXPECT_LT(Variance(16, range, OwnUpTo(2)), Variance(16, UpTo(16), OwnUpTo(2)));
  CalibratedRange messages = UpTo(16, 0);
  EXPECT_EQ(Variance(16, messages, std::nullopt), 0);
}

TEST(JobSpread, IsNothingWhereNoOtherJobHasShownMore) {
  EXPECT_EQ(Variance(16, UpTo(16), OwnUpTo(16)), 0);
  EXPECT_EQ(Variance(4, UpTo(16), OwnUpTo(4)), 0);
  EXPECT_EQ(Variance(64, UpTo(16), OwnUpTo(16)), 0);
  EXPECT_EQ(Variance(1, UpTo(16), std::nullopt), 0) << "alone";
  EXPECT_EQ(Variance(16, UpTo(1), std::nullopt), 0) << "nobody has run on more than one";
  EXPECT_EQ(Variance(16, CalibratedRange(), std::nullopt), 0) << "not calibrated";
  EXPECT_EQ(Variance(16, UpTo(16), OwnUpTo(0)), 0) << "the file does not say";
  StepFacts messages = Of(16);
  messages.has_compute = false;
  EXPECT_EQ(JobVariance(messages, Elasticities(), OtherJobs(UpTo(16), std::nullopt)), 0);
}

RC_GTEST_PROP(JobSpreadProperty, FallsWithTheWorkersOfOwnRuns, ()) {
  const int workers = *rc::gen::inRange(2, 2000);
  const int most = *rc::gen::inRange(2, 2000);
  const int own = *rc::gen::inRange(1, most + 1);
  const double variance = Variance(workers, UpTo(most), OwnUpTo(own));
  RC_ASSERT(variance <= Variance(workers, UpTo(most), OwnUpTo(1)));
  RC_ASSERT(Variance(workers, UpTo(most), OwnUpTo(std::min(own + 1, most))) <= variance);
  RC_ASSERT((variance == 0) == (own >= std::min(workers, most)));
}

}  // namespace
}  // namespace stepcast
