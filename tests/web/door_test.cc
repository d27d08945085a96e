// The door of the page, and what is handed through it.
#include "predictor/web/door.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "data/io/machines.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/training_facts.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"
#include "predictor/json/json.h"
#include "predictor/search/recommend.h"
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

// These records as they are read, whatever they say: behind the first line, and with the digest
// that is theirs (FNV-1a of 64 bits).
std::string Sealed(const std::string& written, const std::string& records) {
  std::uint64_t digest = 14'695'981'039'346'656'037U;
  for (const char byte : records) {
    digest ^= static_cast<unsigned char>(byte);
    digest *= 1'099'511'628'211U;
  }
  std::string seal(sizeof digest, '\0');
  std::memcpy(seal.data(), &digest, sizeof digest);
  return written.substr(0, written.find('\n') + 1) + seal + records;
}

std::string RecordsIn(const std::string& written) {
  return written.substr(written.find('\n') + 1 + sizeof(std::uint64_t));
}

// Where two records of one length differ, which is in one byte.
std::size_t OnlyDifference(const std::string& one, const std::string& other) {
  EXPECT_EQ(one.size(), other.size());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (one[i] != other[i]) places.push_back(i);
  }
  EXPECT_EQ(places.size(), 1U);
  return places.empty() ? 0 : places.front();
}

// A yes or no is a byte of 1 or 0, and nothing else.
TEST(Records, AYesOrNoIsOneOrNought) {
  Workload workload;
  workload.name = "w";
  const std::string no = WriteRecords({{}, {workload}, {}});
  workload.communication_only = true;
  std::string records = RecordsIn(WriteRecords({{}, {workload}, {}}));
  const std::size_t at = OnlyDifference(RecordsIn(no), records);
  for (const int byte : {0, 1, 2, 255}) {
    records[at] = static_cast<char>(byte);
    const std::string bytes = Sealed(no, records);
    if (byte > 1) {
      EXPECT_THROW(ReadRecords(bytes), InputError) << byte;
    } else {
      EXPECT_EQ(ReadRecords(bytes).workloads.at(0).communication_only, byte == 1);
    }
  }
}

// An operation is one of those that there are.
TEST(Records, AnOperationIsOneThatIsKnown) {
  const auto records = [](const Operation& operation) {
    Workload workload;
    workload.layers.emplace_back();
    workload.layers.back().operation = operation;
    return WriteRecords({{}, {workload}, {}});
  };
  const std::string copies = records(CopyOp{7});
  std::string changed = RecordsIn(copies);
  const std::size_t at = OnlyDifference(changed, RecordsIn(records(AllocateOp{7})));
  EXPECT_EQ(static_cast<std::size_t>(changed[at]), Operation(CopyOp()).index());
  EXPECT_TRUE(std::holds_alternative<CopyOp>(
      ReadRecords(Sealed(copies, changed)).workloads.at(0).layers.at(0).operation));
  for (const std::size_t index : {std::variant_size_v<Operation>, std::size_t{255}}) {
    changed[at] = static_cast<char>(index);
    EXPECT_THROW(ReadRecords(Sealed(copies, changed)), InputError) << index;
  }
}

// A length that reaches behind the end is none, however large.
TEST(Records, NoTextIsLongerThanWhatThereIs) {
  Workload workload;
  workload.name = std::string(200, 'w');
  const std::string written = WriteRecords({{}, {workload}, {}});
  std::string records = RecordsIn(written);
  const std::size_t at = records.find("www") - sizeof(std::uint32_t);
  EXPECT_EQ(static_cast<unsigned char>(records[at]), 200);
  EXPECT_NO_THROW(ReadRecords(Sealed(written, records)));
  for (const std::uint32_t size : {1'000'000U, 0xffff'ffffU}) {
    std::memcpy(&records[at], &size, sizeof size);
    EXPECT_THROW(ReadRecords(Sealed(written, records)), InputError) << size;
  }
}

// Nothing but what is recorded is in a record: no byte between the members of an operation, which
// would differ from one page to the next.
TEST(Records, AreTheSameBytesEachTime) {
  const serve::Inventory shipped = {TheShipped().clusters, TheShipped().networks,
                                    TheShipped().devices};
  const std::string once = WriteRecords(shipped);
  EXPECT_EQ(once, WriteRecords(ReadRecords(once)));
  // Memory that was not nought is used again.
  { const std::vector<std::string> used(1000, std::string(120, '\xa5')); }
  EXPECT_EQ(once, WriteRecords(serve::Inventory(shipped)));
}

TEST(Door, TellsTheDevicesByNameAndTitle) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  const Json devices = Json::parse(door.Ask("devices", "").body);
  ASSERT_EQ(devices.size(), TheShipped().devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Device& device = TheShipped().devices[i];
    EXPECT_NE(device.title, device.name);
    EXPECT_EQ(devices[i], (Json{{"name", device.name}, {"title", device.title}}));
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
    // A number that has a word is what the word says.
    for (const Json& size : fields[i].value("words", Json::array())) {
      Plan by_word;
      Plan by_number;
      PlanFields()[i].read_column(size["word"], {}, &by_word);
      PlanFields()[i].read_column(size["value"].dump(), {}, &by_number);
      EXPECT_EQ(PlanFields()[i].text(by_word), PlanFields()[i].text(by_number)) << size;
      EXPECT_NE(std::string(PlanFields()[i].more).find(size["word"]), std::string::npos);
    }
    EXPECT_EQ(fields[i].contains("words"), PlanFields()[i].column == std::string("bucket_mib"));
  }
}

TEST(Door, TellsEveryFactOfTraining) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  const Json facts = Json::parse(door.Ask("training", "").body);
  ASSERT_EQ(facts.size(), TrainingFacts().size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const TrainingFact& fact = TrainingFacts()[i];
    EXPECT_EQ(facts[i]["column"], fact.key);
    EXPECT_EQ(facts[i]["flag"], fact.key);
    EXPECT_EQ(facts[i]["kind"], "choice");
    EXPECT_EQ(facts[i]["meaning"], fact.meaning);
    EXPECT_EQ(facts[i]["more"], fact.more());
    EXPECT_EQ(facts[i]["noun"], fact.noun);
    EXPECT_EQ(facts[i]["default"], "") << "a cluster's runs may have been trained in another way";
    EXPECT_EQ(facts[i]["always_told"], false);
    const auto& words = fact.words.names;
    EXPECT_EQ(facts[i]["choices"], Json(std::vector<std::string>(words.begin(), words.end())));
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

TEST(Door, RecommendsNoBatchOfABareMessage) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  const std::string body =
      R"({"cluster": "gce-t4", "workload": "message_1024", "workers": 2, "local_batch": 1})";
  EXPECT_EQ(door.Ask("/v1/predict", body).status, 200);
  const serve::Reply reply = door.Ask("recommend", body);
  EXPECT_EQ(reply.status, 422);
  EXPECT_NE(reply.body.find("workload: 'message_1024' is a bare message, and one worker"),
            std::string::npos)
      << reply.body;
}

// What explains, and what recommends, is about the network as the question has it trained.
TEST(Door, AnswersOfTheNetworkAsItIsTrained) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Door door({{cluster}, {}, TheShipped().devices});
  const auto body = [&](const std::string& stated) {
    return R"({"cluster": ")" + cluster.name +
           R"(", "workload": "gpt:layers=4:hidden=256:heads=4@128", "device": "h100",
        "workers": 2, "local_batch": 4)" +
           stated + "}";
  };
  for (const TrainingFact& fact : TrainingFacts()) {
    std::set<std::string> explained;
    std::set<std::string> recommended;
    for (const char* word : fact.words.names) {
      const std::string asked = body(std::string(", \"") + fact.key + "\": \"" + word + "\"");
      const Json explanation = Json::parse(door.Ask("explain", asked).body);
      EXPECT_EQ(explanation[fact.key], word) << explanation;
      explained.insert(explanation["terms"].dump());
      const serve::Reply advice = door.Ask("recommend", asked);
      EXPECT_EQ(advice.status, 200) << advice.body;
      recommended.insert(advice.body);
    }
    EXPECT_GT(explained.size(), 1U) << fact.key;
    EXPECT_GT(recommended.size(), 1U) << fact.key;
  }
}

TEST(Door, ExplainsANetworkThatIsKnownByItsSize) {
  const Door door({TheShipped().clusters, {}, TheShipped().devices});
  const Json explained = Json::parse(
      door.Ask("explain", R"({"cluster": "gce-t4", "workload": "ours", "parameters": 110000000,
          "workers": 2, "local_batch": 4})")
          .body);
  EXPECT_EQ(explained["workload"], "ours");
  EXPECT_GT(explained["terms"].size(), 0U) << explained;
}

// What the door says of a plan is what C++ says.
TEST(Door, AnswersAsCppDoes) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Workload network = *FindWorkload("resnet50");
  const Door door({{cluster}, {network}, TheShipped().devices});
  const std::optional<Device> facts = FindDevice(TheShipped().devices, cluster.device);
  const Predictor predictor(cluster, network, facts);
  Plan plan;
  plan.placement = {1, 1};
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  plan.local_batch = 16;
  plan.server.multicast = true;
  const std::string body = R"({"cluster": ")" + cluster.name +
                           R"(", "workload": "resnet50", "placement": "1-1", "servers": 2,
      "strategy": "ps-sync", "local_batch": 16, "multicast": true,
      "colocated_servers": false})";
  Json explained = Json::parse(door.Ask("explain", body).body);
  ASSERT_TRUE(explained.contains("timeline")) << explained;
  const std::vector<Span> spans = MakeTimeline(predictor, plan);
  ASSERT_EQ(explained["timeline"].size(), spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Json& printed = explained["timeline"][i];
    EXPECT_EQ(printed["lane"], spans[i].lane == Lane::kDevice ? "device" : "network");
    EXPECT_EQ(printed["name"], spans[i].name);
    EXPECT_EQ(printed["start_s"], spans[i].start.in(kSeconds));
    EXPECT_EQ(printed["end_s"], spans[i].end.in(kSeconds));
  }
  explained.erase("timeline");
  EXPECT_EQ(explained, ExplanationJson(predictor.Explain(plan), plan,
                                       {cluster, network, cluster.device, facts}));

  const RecommendOutcome outcome =
      stepcast::Recommend(predictor, plan, cluster.devices_per_node, {});
  const Json recommended = Json::parse(door.Ask("recommend", body).body);
  EXPECT_EQ(recommended["recommended"], outcome.is_advice);
  EXPECT_EQ(recommended["gain"], outcome.gain);
  const auto expect = [](const Json& printed, const Recommendation& r) {
    EXPECT_EQ(printed["local_batch"], r.plan.local_batch);
    EXPECT_EQ(printed["accumulation_steps"], r.plan.accumulation_steps);
    EXPECT_EQ(printed["global_batch"], r.plan.global_batch());
    EXPECT_EQ(printed["step_time_s"], r.prediction.step_time.in(kSeconds));
    EXPECT_EQ(printed["throughput_samples_per_s"], r.prediction.throughput.in(kSamplesPerSecond));
    EXPECT_EQ(printed["efficiency"], r.efficiency);
  };
  expect(recommended["best"], *outcome.best);
  expect(recommended["baseline"], *outcome.baseline);
  ASSERT_EQ(recommended["pareto"].size(), outcome.pareto.size());
  for (std::size_t i = 0; i < outcome.pareto.size(); ++i) {
    expect(recommended["pareto"][i], outcome.pareto[i]);
  }
}

// A bucket leaves when it is ready and the one before it has arrived; the first takes a slow start
// along.
TEST(Timeline, BucketsLeaveOneAfterAnother) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt);
  Plan plan;
  plan.placement = {1, 1, 1, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 64;
  plan.accumulation_steps = 2;
  plan.link.bandwidth = GigabitsPerSecond(25.0);
  for (const double trip_ms : {0.0, 5.0}) {
    if (trip_ms > 0) plan.link.rtt = Milliseconds(trip_ms);
    std::vector<Span> buckets;
    Duration<> backward_start;
    std::set<std::string> device;
    for (const Span& span : MakeTimeline(predictor, plan)) {
      if (span.lane == Lane::kDevice) device.insert(span.name);
      if (span.name == "backward") backward_start = span.start;
      if (span.name.starts_with("bucket")) buckets.push_back(span);
    }
    EXPECT_EQ(device.count("micro-steps without an exchange"), 1U);
    EXPECT_EQ(device.count("starting the exchange"), 1U);
    const StepFacts facts = predictor.Facts(plan);
    const StepTerms<double> terms = predictor.Terms(plan);
    ASSERT_EQ(buckets.size(), facts.buckets->size());
    ASSERT_GT(buckets.size(), 2U);
    Duration<> end;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Duration<> ready =
          backward_start + terms.contention + terms.backward * (*facts.buckets)[i].ready;
      EXPECT_NEAR(buckets[i].start.si(), Max(ready, end).si(), 1e-9) << i;
      end = buckets[i].end;
    }
    // Behind the first all follow one line of time over bytes; the first has a slow start as well.
    const auto bytes = [&](std::size_t i) { return (*facts.buckets)[i].bytes.in(kBytes); };
    const auto length = [&](std::size_t i) { return (buckets[i].end - buckets[i].start).si(); };
    ASSERT_GT(std::abs(bytes(2) - bytes(1)), 1e3);
    const double per_byte = (length(2) - length(1)) / (bytes(2) - bytes(1));
    EXPECT_NEAR(length(0) - (length(1) + per_byte * (bytes(0) - bytes(1))), terms.slow_start.si(),
                1e-6);
    EXPECT_EQ(terms.slow_start.si() > 1e-3, trip_ms > 0);
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

// What is gathered has the bytes of all workers and half the calls of an all-reduce.
TEST(Timeline, WhatIsGatheredEndsWithTheWait) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt);
  Plan plan;
  plan.placement = {1, 1, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 1;
  plan.compress = {Compressor::kTopK, 0.01};
  plan.compress_rate = GigabytesPerSecond(20.0);
  plan.link.rtt = Milliseconds(50.0);
  double waited = 0;
  double arrived = 0;
  for (const Span& span : MakeTimeline(predictor, plan)) {
    if (span.name == "waiting for the network") waited = span.end.si();
    if (span.name.starts_with("bucket")) arrived = span.end.si();
  }
  EXPECT_GT(waited, 0);
  EXPECT_NEAR(arrived, waited, 1e-9 * waited);
}

// Of an exchange that is not the buckets of a collective only the whole is drawn.
TEST(Timeline, OfWhatIsSharedOutHasNoBuckets) {
  const Cluster& cluster = TheShipped().calibrated.front();
  const Predictor predictor(cluster, TheShipped().networks.front(), std::nullopt);
  Plan plan;
  plan.placement = {2, 2};
  plan.local_batch = 64;
  plan.accumulation_steps = 3;
  for (const Shard shard :
       {Shard::kOptimizer, Shard::kGradients, Shard::kParameters, Shard::kHybrid}) {
    plan.shard = shard;
    const double total = predictor.PredictStep(plan).total().si();
    double now = 0;
    for (const Span& span : MakeTimeline(predictor, plan)) {
      EXPECT_FALSE(span.name.starts_with("bucket")) << NameOf(shard);
      EXPECT_FALSE(GathersUnits(shard) && span.name.starts_with("micro-steps without"));
      if (span.lane == Lane::kDevice) now = span.end.si();
    }
    EXPECT_NEAR(now, total, 1e-9 * total) << NameOf(shard);
  }
}

}  // namespace
}  // namespace stepcast::web
