// The door of the page, and what is handed through it.
#include "predictor/web/door.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/io/machines.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "predictor/json/json.h"
#include "predictor/web/records.h"
#include "predictor/web/timeline.h"
#include "tests/record/random_questions.h"

namespace stepcast::web {
namespace {

const Shipped& TheShipped() {
  static const Shipped shipped(STEPCAST_SOURCE_DIR);
  return shipped;
}

TEST(Records, AreReadAsTheyWereWritten) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Draw draw(seed);
    const Place place = DrawPlace(TheShipped(), &draw);
    const serve::Inventory inventory{
        {place.cluster}, {place.workload, TheShipped().networks.front()}, TheShipped().devices};
    const std::string bytes = WriteRecords(inventory);
    const serve::Inventory read = ReadRecords(bytes);
    ASSERT_EQ(FormatCluster(read.clusters.at(0)), FormatCluster(place.cluster));
    ASSERT_EQ(WriteRecords(read), bytes);
    ASSERT_EQ(read.devices.size(), TheShipped().devices.size());
  }
}

TEST(Records, ThatAreCutOffAreRefused) {
  const std::string bytes = WriteRecords({{TheShipped().calibrated.front()}, {}, {}});
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_THROW(ReadRecords(std::string_view(bytes).substr(0, size)), InputError) << size;
  }
  EXPECT_THROW(ReadRecords(bytes + "x"), InputError);
}

TEST(Records, ThatAreDamagedAreRefused) {
  const std::string bytes = WriteRecords({{TheShipped().calibrated.front()}, {}, {}});
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_THROW(ReadRecords(damaged), InputError) << at;
  }
}

TEST(Door, TellsEveryFieldThatHasAFlag) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  const Json fields = Json::parse(door.Ask("fields", "").body);
  ASSERT_EQ(fields.size(), PlanFields().size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i]["column"], PlanFields()[i].column);
    EXPECT_EQ(fields[i].contains("unit"), PlanFields()[i].unit != nullptr);
    EXPECT_FALSE(fields[i]["strategies"].empty()) << fields[i];
  }
}

TEST(Door, SaysWhatIsWrongAsTheServiceDoes) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  for (const char* target : {"explain", "recommend", "/v1/predict"}) {
    const serve::Reply reply = door.Ask(
        target,
        R"({"cluster": "gce-t4", "workload": "resnet50", "local_batch": 32, "loss_rate": 2})");
    EXPECT_EQ(reply.status, 422) << target;
    EXPECT_NE(reply.body.find("loss_rate: '2'"), std::string::npos) << reply.body;
  }
}

// The bars of the device are the step; those of the network end where the step has waited for them.
TEST(Timeline, AddsUpToTheStep) {
  int by_buckets = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Draw draw(seed);
    Place place = DrawPlace(TheShipped(), &draw);
    place.profile = nullptr;  // which may be of another device
    const Plan plan = DrawPlan(place, &draw);
    const Predictor predictor = place.MakePredictor();
    const StepTime<double> step = predictor.PredictStep(plan);
    const double total = step.total().si();
    double now = 0;
    double network_end = 0;
    double exposed_until = 0;
    int buckets = 0;
    for (const Span& span : MakeTimeline(predictor, plan)) {
      ASSERT_LE(span.start.si(), span.end.si() * (1 + 1e-9)) << span.name << " " << seed;
      if (span.lane == Lane::kNetwork) {
        network_end = std::max(network_end, span.end.si());
        buckets += span.name.starts_with("bucket") ? 1 : 0;
        continue;
      }
      ASSERT_NEAR(span.start.si(), now, 1e-9 * total) << span.name << " " << seed;
      now = span.end.si();
      if (span.name == "backward" || span.name == "waiting for the network") exposed_until = now;
    }
    ASSERT_NEAR(now, total, 1e-9 * total) << seed;
    if (step.exposed().si() > 1e-6 * total && step.synchronisation.si() > 0 &&
        TraitsOf(plan.strategy).synchronous) {
      ASSERT_NEAR(network_end, exposed_until, 1e-6 * total) << seed << StrategyName(plan.strategy);
    }
    by_buckets += buckets > 1 ? 1 : 0;
  }
  EXPECT_GT(by_buckets, 50);
}

// Of an exchange that is not the buckets of an all-reduce only the whole is drawn.
TEST(Timeline, OfWhatIsSharedOutHasNoBuckets) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Predictor predictor(cluster, TheShipped().networks.front(), std::nullopt);
  Plan plan;
  plan.placement = {1, 1};
  plan.local_batch = 64;
  plan.accumulation_steps = 3;
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    plan.shard = shard;
    const double total = predictor.PredictStep(plan).total().si();
    double now = 0;
    for (const Span& span : MakeTimeline(predictor, plan)) {
      EXPECT_FALSE(span.name.starts_with("bucket")) << NameOf(shard);
      EXPECT_FALSE(shard == Shard::kParameters && span.name.starts_with("micro-steps without"));
      if (span.lane == Lane::kDevice) now = span.end.si();
    }
    EXPECT_NEAR(now, total, 1e-9 * total) << NameOf(shard);
  }
}

}  // namespace
}  // namespace stepcast::web
