// The service without any transport: whom it knows, which plans it reads, what it keeps.
#include "predictor/serve/service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/plan/key.h"
#include "data/values/training_facts.h"
#include "data/workloads/catalog.h"
#include "predictor/binding.h"
#include "tests/serve/support.h"
#include "tests/support/changed_plans.h"
#include "tests/support/input_error.h"

namespace stepcast::serve {
namespace {

std::shared_ptr<const Snapshot> Shipped() {
  return std::make_shared<const Snapshot>(ShippedInventory(), 1, ServiceOptions{});
}

TEST(Snapshot, FindsByName) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  EXPECT_EQ(target->predictor.cluster().name, "gce-t4");
  EXPECT_EQ(target->predictor.device(), "t4");
  EXPECT_EQ(snapshot->Find({"gce-t4", "resnet50", ""}), target) << "made once";
  EXPECT_EQ(snapshot->Find({"gce-t4", "resnet50", "V100"})->predictor.device(), "v100");
}

TEST(Snapshot, SaysWhichNamesThereAre) {
  const auto snapshot = Shipped();
  const auto error = [&](const TargetName& name) { return ErrorOf([&] { snapshot->Find(name); }); };
  EXPECT_TRUE(
      Says(error({"", "resnet50", ""}), "cluster: is required; allowed: gce-t4, ec2-g3-ps"));
  EXPECT_TRUE(Says(error({"gce", "resnet50", ""}), "cluster: 'gce' is not served"));
  EXPECT_TRUE(Says(error({"gce-t4", "", ""}), "workload: is required"));
  EXPECT_TRUE(Says(error({"gce-t4", "resnet51", ""}), "allowed: alexnet, bert_base"));
  EXPECT_TRUE(Says(error({"gce-t4", "resnet50", "abacus"}), "device: 'abacus' has no data sheet"));
}

// What is stated is another target, and takes the place of what the workload says of itself.
TEST(Snapshot, AWorkloadIsTrainedAsTheNameSays) {
  Inventory inventory = ShippedInventory();
  inventory.workloads.push_back(*FindWorkload("vgg16"));
  inventory.workloads.back().precision = Precision::kFp16;
  const Snapshot snapshot(inventory, 1, {});
  const auto find = [&](const std::string& workload, std::map<std::string, std::string> training) {
    return snapshot.Find({"gce-t4", workload, "", "", std::move(training)});
  };
  const auto plain = find("resnet50", {});
  EXPECT_EQ(plain->predictor.workload().precision, Precision::kFp32);
  const auto mixed = find("resnet50", {{"precision", "fp16"}, {"optimizer", "adam"}});
  EXPECT_EQ(mixed->predictor.workload().precision, Precision::kFp16);
  EXPECT_EQ(mixed->predictor.workload().optimizer, Optimizer::kAdam);
  EXPECT_NE(mixed->key, plain->key);
  EXPECT_NE(find("resnet50", {{"precision", "fp16"}})->key, mixed->key);
  EXPECT_EQ(find("resnet50", {{"precision", " fp16"}, {"optimizer", "adam"}}), mixed);
  EXPECT_EQ(find("vgg16", {})->predictor.workload().precision, Precision::kFp16);
  EXPECT_EQ(find("vgg16", {{"precision", "fp32"}})->predictor.workload().precision,
            Precision::kFp32);
  EXPECT_TRUE(Says(ErrorOf([&] {
                     find("resnet50", {{"optimizer", "lion"}});
                   }),
                   "optimizer: 'lion' is not an optimizer"));
}

// As the cluster's runs on the device, where these are of one way, and it has none itself.
TEST(Snapshot, AWorkloadIsTrainedAsTheRunsOfOthersWere) {
  Inventory inventory = ShippedInventory();
  inventory.clusters.front().calibration.emplace().range.local_batch = {
      {"workload bert_base (fp16, adam) on t4", {8, 8, 1}}};
  const Snapshot snapshot(inventory, 1, {});
  const auto trained = [&](const char* device, std::map<std::string, std::string> training) {
    return snapshot.Find({"gce-t4", "resnet50", device, "", std::move(training)})
        ->predictor.workload();
  };
  EXPECT_EQ(DescribeWorkload(trained("", {})), "resnet50 (fp16, adam)");
  EXPECT_EQ(trained("", {}).as_others, (std::set<std::string>{"optimizer", "precision"}));
  EXPECT_EQ(DescribeWorkload(trained("Tesla T4", {})), "resnet50 (fp16, adam)");
  EXPECT_EQ(DescribeWorkload(trained("v100", {})), "resnet50");
  const Workload stated = trained("", {{"precision", "fp32"}});
  EXPECT_EQ(DescribeWorkload(stated), "resnet50 (adam)");
  EXPECT_EQ(stated.as_others, (std::set<std::string>{"optimizer"}));
}

TEST(Snapshot, OneClusterNeedNotBeNamed) {
  Inventory inventory = ShippedInventory();
  inventory.clusters.pop_back();
  const Snapshot snapshot(inventory, 1, {});
  EXPECT_EQ(snapshot.Find({"", "resnet50", ""})->predictor.cluster().name, "gce-t4");
}

TEST(Snapshot, WorkloadFilesComeBeforeTheCatalogue) {
  Inventory inventory = ShippedInventory();
  inventory.workloads.push_back(*FindWorkload("vgg16"));
  inventory.workloads.back().name = "resnet50";
  inventory.workloads.push_back(*FindWorkload("vgg16"));
  inventory.workloads.back().name = "mine";
  const Snapshot snapshot(inventory, 1, {});
  const std::int64_t vgg16 = FindWorkload("vgg16")->parameters;
  EXPECT_EQ(snapshot.Find({"gce-t4", "resnet50", ""})->predictor.workload().parameters, vgg16);
  EXPECT_EQ(snapshot.Find({"gce-t4", "mine", ""})->predictor.workload().parameters, vgg16);
  EXPECT_EQ(snapshot.Workloads().size(), WorkloadNames().size() + 1);
}

// What is listed is what answers; and a name that ends as another begins is another.
TEST(Snapshot, NamesAreWhole) {
  Inventory inventory = ShippedInventory();
  Workload own = *FindWorkload("alexnet");
  own.name = "resnet50";
  inventory.workloads.push_back(own);
  own.name = "vgg16t4";
  inventory.workloads.push_back(own);
  const Snapshot snapshot(std::move(inventory), 1, {});
  const auto parameters = [&](const std::string& name) {
    for (const Workload& listed : snapshot.Workloads()) {
      if (listed.name == name) return listed.parameters;
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(parameters("resnet50"), own.parameters);
  EXPECT_EQ(parameters("vgg16"), FindWorkload("vgg16")->parameters);
  Plan plan;
  plan.local_batch = 16;
  const auto step = [&](const char* workload, const char* device) {
    return snapshot.Find({"gce-t4", workload, device})->predictor.Predict(plan).step_time;
  };
  EXPECT_NE(step("vgg16", "t4"), step("vgg16t4", ""));
}

TEST(Snapshot, RefusesNamesTwiceAndNone) {
  EXPECT_TRUE(Says(ErrorOf([] { Snapshot({}, 1, {}); }), "at least one cluster file"));
  Inventory inventory = ShippedInventory();
  inventory.clusters.push_back(inventory.clusters.front());
  EXPECT_TRUE(Says(ErrorOf([&] { Snapshot(inventory, 1, {}); }), "name of two clusters"));
}

// ---- Plans.

Plan Read(const std::map<std::string, std::string>& texts, const StatedApart& apart = {}) {
  return ReadPlan(
      [&](const char* column, bool /*is_number*/) -> std::optional<std::string> {
        const auto found = texts.find(column);
        return found == texts.end() ? std::nullopt : std::optional(found->second);
      },
      "plan.", ReadCluster(DataFile("machines/gce-t4.yaml")), apart);
}

TEST(ReadPlan, FillsNodesOfTheCluster) {
  EXPECT_EQ(Read({{"workers", "10"}, {"local_batch", "8"}}).placement, (Placement{4, 4, 2}));
  EXPECT_EQ(Read({{"placement", "1-1"}, {"local_batch", "8"}}).placement, (Placement{1, 1}));
  EXPECT_EQ(Read({{"hosts", "a+b"}, {"local_batch", "8"}}).placement, (Placement{4, 4}));
}

TEST(ReadPlan, NamesTheKeyOfTheRequest) {
  const auto error = [&](const std::map<std::string, std::string>& texts) {
    return ErrorOf([&] { Read(texts); });
  };
  EXPECT_TRUE(Says(error({}), "plan.local_batch: is required"));
  EXPECT_TRUE(Says(error({{"local_batch", "0"}}), "plan.local_batch: '0'"));
  EXPECT_TRUE(Says(error({{"local_batch", "8"}, {"workers", "x"}}), "plan.workers: 'x'"));
  EXPECT_TRUE(Says(error({{"local_batch", "8"}, {"workers", "2"}, {"placement", "2"}}),
                   "plan.workers: '2' says the same as placement"));
  EXPECT_TRUE(Says(error({{"local_batch", "8"}, {"strategy", "ps-sync"}}),
                   "plan.servers: are required with strategy ps-sync"));
  EXPECT_TRUE(
      Says(error({{"local_batch", "8"}, {"link_gbit_per_s", "0"}}), "plan.link_gbit_per_s: '0'"));
  EXPECT_TRUE(Says(error({{"local_batch", "8"}, {"workers", "1000000"}}),
                   "plan.workers: uses 250000 nodes; allowed: at most 100000 nodes"));
  EXPECT_TRUE(Says(error({{"local_batch", "8"}, {"workers", "400001"}}), "uses 100001 nodes"));
}

// What is too long is quoted by its beginning.
TEST(ReadPlan, TextsAreBounded) {
  const auto error = [](std::size_t size) {
    return ErrorOf([&] { Read({{"local_batch", "8"}, {"hosts", std::string(size, 'a')}}); });
  };
  EXPECT_TRUE(Says(error(65'537), "is too long; allowed: at most 65536 bytes"));
  EXPECT_EQ(error(65'537)->place().key, "plan.hosts");
  EXPECT_EQ(error(65'537)->value(), std::string(200, 'a'));
  EXPECT_FALSE(Says(error(65'536), "is too long; allowed: at most 65536 bytes"));
}

TEST(ReadPlan, WhatQueriesStateMayBeMissing) {
  EXPECT_EQ(Read({}, {true, false}).local_batch, 1);
  EXPECT_EQ(Read({{"strategy", "ps-sync"}}, {true, true}).servers, 1);
}

// Keys are called as requests call them in sentences, too.
TEST(ReadPlan, SentencesNameTheKeysOfTheRequest) {
  const auto error = [&](std::map<std::string, std::string> texts) {
    texts["local_batch"] = "8";
    return ErrorOf([&] { Read(texts); });
  };
  EXPECT_TRUE(Says(error({{"slow_speed", "0.5"}}), "plan.slow_nodes: '0' with slow_speed 0.5"));
  EXPECT_TRUE(Says(error({{"slow_nodes", "1"}}), "plan.slow_speed: is required with slow_nodes 1"));
  EXPECT_TRUE(
      Says(error({{"slow_local_batch", "4"}}), "plan.slow_nodes: '0' with slow_local_batch 4"));
  EXPECT_TRUE(
      Says(error({{"slow_nodes", "1"}, {"slow_speed", "0.5"}, {"slow_local_batch", "4"}}),
           "plan.slow_local_batch: '4' where all nodes are slow; allowed: nothing: local_batch"));
  EXPECT_TRUE(Says(
      error(
          {{"workers", "8"}, {"slow_nodes", "1"}, {"slow_speed", "0.5"}, {"backup_workers", "1"}}),
      "plan.backup_workers: '1' with slow_nodes 1; allowed: 0, or slow_nodes 0"));
}

// ---- Many plans.

QueryColumns Columns() {
  QueryColumns columns;
  columns.counts[kWorkers] = {1, 2, 7, 16, 16, 0};
  columns.counts[kLocalBatch] = {8, 16, 32, 64, 0, 8};
  columns.numbers[0] = {1, std::nan(""), 10, 25, 1, 1};
  CheckColumns("queries.", 10, &columns);
  return columns;
}

TEST(PredictMany, AnswersAsThePredictorDoes) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  QueryColumns columns = Columns();
  const Plan plan = Read({{"strategy", "ring"}}, {true, false});
  const ForecastColumns answer = PredictMany(*snapshot, *target, plan, true, &columns);
  ASSERT_EQ(answer.step_time_s.size(), 6U);
  EXPECT_EQ(answer.failed, 2U);
  const std::vector<std::string> links = {"1", "", "10", "25"};
  for (std::size_t i = 0; i < links.size(); ++i) {
    std::map<std::string, std::string> texts = {
        {"strategy", "ring"},
        {"workers", std::to_string(Columns().counts[kWorkers][i])},
        {"local_batch", std::to_string(Columns().counts[kLocalBatch][i])}};
    if (!links[i].empty()) texts["link_gbit_per_s"] = links[i];
    const Prediction one = target->predictor.Predict(Read(texts));
    EXPECT_EQ(answer.status[i], QueryStatus::kOk);
    EXPECT_NEAR(answer.step_time_s[i] / one.step_time.in(kSeconds), 1, 1e-9) << i;
    EXPECT_NEAR(answer.low_s[i] / one.low.in(kSeconds), 1, 1e-4) << i;
    EXPECT_NEAR(answer.high_s[i] / one.high.in(kSeconds), 1, 1e-4) << i;
  }
  EXPECT_EQ(answer.status[4], QueryStatus::kBadBatch);
  EXPECT_EQ(answer.status[5], QueryStatus::kBadPlacement);
  EXPECT_TRUE(std::isnan(answer.step_time_s[5]));
}

TEST(PredictMany, QueriesMayHaveSlowNodes) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  const std::map<std::string, std::string> texts = {{"strategy", "ring"},
                                                    {"placement", "1-1-1"},
                                                    {"local_batch", "32"},
                                                    {"slow_nodes", "1"},
                                                    {"slow_speed", "0.5"}};
  QueryColumns columns;
  columns.size = 3;
  columns.counts[kSlowNodes] = {0, 2, 4};
  const ForecastColumns answer =
      PredictMany(*snapshot, *target, Read(texts, {true, false}), true, &columns);
  EXPECT_EQ(answer.failed, 1U);
  EXPECT_EQ(answer.status[2], QueryStatus::kBadSlowNodes);
  for (const std::size_t i : {0, 1}) {
    std::map<std::string, std::string> one = texts;
    if (i == 0) {
      one.erase("slow_nodes");
      one.erase("slow_speed");
    } else {
      one["slow_nodes"] = "2";
    }
    const Prediction expected = target->predictor.Predict(Read(one));
    EXPECT_NEAR(answer.step_time_s[i] / expected.step_time.in(kSeconds), 1, 1e-9) << i;
  }
}

// The slow node of this plan is the one with four devices, whether its queries say its layout or
// leave it to the plan.
TEST(PredictMany, SlowNodesAreThoseOfThePlansPlacement) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  const Plan plan = Read({{"strategy", "ps-async"},
                          {"servers", "2"},
                          {"placement", "1-4"},
                          {"local_batch", "8"},
                          {"slow_nodes", "1"},
                          {"slow_speed", "0.1"}});
  const Prediction expected = target->predictor.Predict(plan);
  Plan turned = plan;
  turned.placement = {4, 1};
  ASSERT_LT(target->predictor.Predict(turned).step_time * 1.5, expected.step_time);
  QueryColumns by_plan;
  by_plan.counts[kLocalBatch] = {8};
  QueryColumns by_layout = by_plan;
  by_layout.counts[kWorkers] = {5};
  by_layout.counts[kNodes] = {2};
  by_layout.counts[kDevicesPerNode] = {4};
  for (QueryColumns* columns : {&by_plan, &by_layout}) {
    CheckColumns("queries.", 10, columns);
    const ForecastColumns answer = PredictMany(*snapshot, *target, plan, true, columns);
    ASSERT_EQ(answer.failed, 0U);
    EXPECT_NEAR(answer.step_time_s[0] / expected.step_time.in(kSeconds), 1, 1e-9);
    EXPECT_NEAR(answer.high_s[0] / expected.high.in(kSeconds), 1, 1e-4);
    EXPECT_FALSE(answer.flags.empty());
    for (const BatchFlag& of : answer.flags) {
      EXPECT_EQ(std::count(expected.flags.begin(), expected.flags.end(), of.flag), 1) << of.flag;
    }
  }
}

// A plan says how slow nodes are, and its queries where they are.
TEST(PredictMany, QueriesSayWhereSlowNodesAre) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  const std::map<std::string, std::string> how = {
      {"strategy", "ring"}, {"local_batch", "32"}, {"slow_speed", "0.5"}};
  for (const bool shares : {false, true}) {
    for (const bool plan_says_nodes : {false, true}) {
      std::map<std::string, std::string> texts = how;
      if (shares) texts["slow_local_batch"] = "16";
      if (plan_says_nodes) texts["slow_nodes"] = "2";
      QueryColumns columns;
      columns.counts[kWorkers] = {8, 12, 4};
      columns.counts[kSlowNodes] = {1, 2, 1};
      CheckColumns("queries.", 10, &columns);
      const Plan plan = Read(texts, StatedBy(columns, 0));
      const ForecastColumns answer = PredictMany(*snapshot, *target, plan, true, &columns);
      for (const std::size_t i : {0, 1}) {
        std::map<std::string, std::string> one = texts;
        one["workers"] = i == 0 ? "8" : "12";
        one["slow_nodes"] = i == 0 ? "1" : "2";
        const Prediction expected = target->predictor.Predict(Read(one));
        EXPECT_NEAR(answer.step_time_s[i] / expected.step_time.in(kSeconds), 1, 1e-9) << i;
      }
      // On the only node there are no others.
      EXPECT_EQ(answer.status[2], shares ? QueryStatus::kBadSlowNodes : QueryStatus::kOk);
    }
  }
  // Queries that leave the layout to the plan are of its own, which has to be one.
  QueryColumns batches;
  batches.counts[kLocalBatch] = {8};
  CheckColumns("queries.", 10, &batches);
  EXPECT_EQ(Read({{"strategy", "ring"}}, StatedBy(batches, 1)).placement, (Placement{1}));
  EXPECT_TRUE(Says(ErrorOf([&] {
                     Read({{"slow_nodes", "1"}, {"slow_speed", "0.5"}, {"slow_local_batch", "4"}},
                          StatedBy(batches, 1));
                   }),
                   "plan.slow_local_batch: '4' where all nodes are slow"));
  QueryColumns nodes;
  nodes.counts[kSlowNodes] = {1};
  CheckColumns("queries.", 10, &nodes);
  EXPECT_TRUE(Says(ErrorOf([&] {
                     Read({{"workers", "8"}, {"local_batch", "8"}, {"slow_local_batch", "4"}},
                          StatedBy(nodes, 0));
                   }),
                   "plan.slow_speed: is required with slow_nodes 1"));
  // So are backup workers.
  QueryColumns workers;
  workers.counts[kWorkers] = {8};
  CheckColumns("queries.", 10, &workers);
  EXPECT_EQ(Read({{"local_batch", "8"}, {"backup_workers", "2"}}, StatedBy(workers, 0)).workers(),
            3);
}

TEST(PredictMany, StepTimesAloneAreTheSame) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  QueryColumns with = Columns();
  QueryColumns without = Columns();
  const Plan plan = Read({}, {true, false});
  const ForecastColumns a = PredictMany(*snapshot, *target, plan, true, &with);
  const ForecastColumns b = PredictMany(*snapshot, *target, plan, false, &without);
  EXPECT_TRUE(b.low_s.empty());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(a.step_time_s[i] / b.step_time_s[i], 1, 1e-12);
}

// What is to be known before trusting a query is what a plan by itself that says the same is told.
TEST(PredictMany, FlagsAreThoseOfThePlansThatTheyName) {
  Inventory inventory = ShippedInventory();
  CalibratedRange& range = inventory.clusters.front().calibration.emplace().range;
  range.max_workers = range.max_nodes = range.max_devices_per_node = 1;
  range.bandwidth = {GigabitsPerSecond(1.0), GigabitsPerSecond(1.0)};
  const Snapshot snapshot(std::move(inventory), 1, {});
  const auto target = snapshot.Find({"gce-t4", "resnet50", ""});
  const std::map<std::string, std::string> stated = {
      {"strategy", "ps-sync"}, {"hosts", "a+b"}, {"servers", "2"}, {"local_batch", "8"}};
  QueryColumns columns;
  columns.counts[kWorkers] = {5, 2, 3};
  columns.counts[kNodes] = {2, 2, 3};
  columns.counts[kDevicesPerNode] = {4, 1, 1};
  columns.counts[kServers] = {2, 1, 3};
  columns.counts[kLocalBatch] = {8, 16, 1 << 20};
  columns.counts[kAccumulationSteps] = {1, 2, 3};
  columns.numbers = {{{1, 1, 20}, {300, 30, 50}, {0, 0.1, 0.01}}};
  const std::vector<std::map<std::string, std::string>> alone = {
      {{"placement", "4-1"}, {"link_gbit_per_s", "1"}, {"rtt_ms", "300"}, {"loss_rate", "0"}},
      {{"placement", "1-1"},
       {"servers", "1"},
       {"local_batch", "16"},
       {"accumulation_steps", "2"},
       {"link_gbit_per_s", "1"},
       {"rtt_ms", "30"},
       {"loss_rate", "0.1"}},
      {{"placement", "1-1-1"},
       {"servers", "3"},
       {"local_batch", "1048576"},
       {"accumulation_steps", "3"},
       {"link_gbit_per_s", "20"},
       {"rtt_ms", "50"},
       {"loss_rate", "0.01"}}};
  CheckColumns("queries.", 10, &columns);
  const ForecastColumns answer =
      PredictMany(snapshot, *target, Read(stated, {false, false}), false, &columns);
  ASSERT_EQ(answer.failed, 0U);
  std::set<std::string> kinds;
  for (const BatchFlag& of : answer.flags) {
    EXPECT_TRUE(kinds.insert(KindOfFlag(of.flag)).second) << of.flag;
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    std::map<std::string, std::string> texts = alone[i];
    texts.insert(stated.begin(), stated.end());
    if (texts["placement"] == "1-1-1") texts.erase("hosts");  // which are two
    const std::vector<std::string> flags = target->predictor.Predict(Read(texts)).flags;
    for (const std::string& flag : flags) EXPECT_EQ(kinds.count(KindOfFlag(flag)), 1U) << flag;
    for (const BatchFlag& of : answer.flags) {
      if (of.index != i) continue;
      EXPECT_EQ(std::count(flags.begin(), flags.end(), of.flag), 1) << of.flag << " of " << i;
    }
  }
}

// The first hundred that have no answer are told of, each by its place.
TEST(PredictMany, TellsAHundredProblems) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  QueryColumns columns;
  columns.counts[kWorkers].assign(150, 0);
  columns.counts[kWorkers][3] = 2;
  CheckColumns("queries.", 200, &columns);
  const ForecastColumns answer =
      PredictMany(*snapshot, *target, Read({}, {8, false}), false, &columns);
  EXPECT_EQ(answer.failed, 149U);
  ASSERT_EQ(answer.problems.size(), 100U);
  for (std::size_t i = 0; i < answer.problems.size(); ++i) {
    EXPECT_EQ(answer.problems[i].index, i < 3 ? i : i + 1);
    EXPECT_EQ(answer.problems[i].problem, answer.problems[0].problem);
  }
}

TEST(PredictMany, CompilesOnceAndKeepsSoMany) {
  ServiceOptions options;
  options.most_compiled = 3;
  const Snapshot snapshot(ShippedInventory(), 1, options);
  const auto target = snapshot.Find({"gce-t4", "resnet50", ""});
  for (int i = 0; i < 10; ++i) {
    QueryColumns columns = Columns();
    PredictMany(snapshot, *target, Read({{"bucket_mib", std::to_string(1 + i / 5)}}, {true, false}),
                false, &columns);
    EXPECT_EQ(snapshot.compiled(), i < 5 ? 1U : 2U);
  }
  for (int i = 0; i < 10; ++i) {
    QueryColumns columns = Columns();
    PredictMany(snapshot, *target, Read({{"bucket_mib", std::to_string(10 + i)}}, {true, false}),
                false, &columns);
  }
  EXPECT_EQ(snapshot.compiled(), 3U);
}

// A compiled plan that is kept answers its own plan alone, whatever field another differs in.
TEST(Snapshot, KeepsPlansApartFieldByField) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"ec2-g3-ps", "resnet50", ""});
  Plan base;
  base.link.loss = 0.01;  // so that what says how loss is answered moves the answer
  for (const ChangedPlan& changed : ChangedPlans(base)) {
    if (changed.facts.column == nullptr) continue;  // no request states it
    for (const Plan& plan : {changed.before, changed.after}) {
      const Plan kept = snapshot->Compile(*target, plan, 0).plan();
      EXPECT_EQ(StatedKey(kept), StatedKey(plan)) << changed.facts.state;
      EXPECT_EQ(kept.placement, plan.placement) << changed.facts.state;
      EXPECT_EQ(kept.hosts, plan.hosts) << changed.facts.state;
    }
    const auto forecast = [&](const Plan& plan) {
      const CompiledPlan compiled = snapshot->Compile(*target, plan, 0);
      return compiled.Predict(QueryOf(compiled.plan())).step_time /
             target->predictor.Predict(plan).step_time;
    };
    EXPECT_NEAR(forecast(changed.before), 1, 1e-9) << changed.facts.state;
    EXPECT_NEAR(forecast(changed.after), 1, 1e-9) << changed.facts.state;
  }
}

// A plan that was compiled for few servers is compiled again for many.
TEST(Snapshot, CompilesForAsManyServersAsAreAsked) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"ec2-g3-ps", "resnet50", ""});
  Plan plan =
      Read({{"placement", "1-1"}, {"strategy", "ps-sync"}, {"servers", "1"}, {"local_batch", "8"}});
  const int few = CompileOptions().most_servers;
  for (const int servers : {1, 4 * few, 2}) {
    const CompiledPlan compiled = snapshot->Compile(*target, plan, servers);
    PlanQuery query = QueryOf(plan);
    query.servers = servers;
    EXPECT_EQ(compiled.Predict(query).status, QueryStatus::kOk) << servers;
    plan.servers = servers;
    EXPECT_NEAR(compiled.Predict(query).step_time / target->predictor.Predict(plan).step_time, 1,
                1e-9);
    plan.servers = 1;
  }
}

TEST(CheckColumns, RefusesWhatMakesNoSense) {
  const auto error = [](const QueryColumns& stated) {
    QueryColumns columns = stated;
    return ErrorOf([&] { CheckColumns("queries.", 3, &columns); });
  };
  QueryColumns columns;
  EXPECT_TRUE(Says(error(columns), "queries: says nothing"));
  columns.counts[kWorkers] = {1, 2};
  columns.counts[kLocalBatch] = {1};
  EXPECT_TRUE(Says(error(columns), "queries.local_batch: has 1 numbers, workers has 2"));
  columns.counts[kLocalBatch] = {1, 2};
  columns.counts[kNodes] = {1, 1};
  EXPECT_TRUE(Says(error(columns), "queries.nodes: is not all of a layout"));
  columns.counts[kNodes].clear();
  columns.counts[kWorkers] = columns.counts[kLocalBatch] = {1, 2, 3, 4};
  EXPECT_TRUE(Says(error(columns), "queries: '4' plans are too many; allowed: at most 3"));
}

// ---- Batches for allocations.

TEST(Recommend, AnswersEachAllocation) {
  const auto snapshot = Shipped();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  QueryColumns columns;
  columns.counts[kWorkers] = {1, 4, 16, 0};
  CheckColumns("allocations.", 10, &columns);
  BatchSearch search;
  search.most_global_batch = 512;
  const ChosenBatches chosen =
      Recommend(*snapshot, *target, Read({}, {true, false}), search, &columns);
  const std::vector<BatchChoice>& choices = chosen.choices;
  EXPECT_EQ(chosen.failed, 1U);
  ASSERT_EQ(choices.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(choices[i].local_batch, 0);
    EXPECT_GT(choices[i].throughput, 0);
    EXPECT_LE(choices[i].local_batch * choices[i].accumulation_steps * columns.counts[kWorkers][i],
              512);
  }
  EXPECT_EQ(choices[3].local_batch, 0) << "no workers, no batch";
}

TEST(CheckSearch, RefusesWhatMakesNoSense) {
  BatchSearch search;
  const auto error = [&] { return ErrorOf([&] { CheckSearch(search, 10, 1000); }); };
  CheckSearch(search, 1, 1000);  // the limits of the program
  search.most_global_batch = 0;
  EXPECT_TRUE(Says(error(), "search.most_global_batch: '0' is out of range"));
  search.most_global_batch = 5;
  search.least_global_batch = 6;
  EXPECT_TRUE(Says(error(), "search.most_global_batch: '5' is out of range"));
  search.least_global_batch = 1;
  search.candidates = 101;
  EXPECT_TRUE(Says(error(), "search.candidates: '101' is out of range; allowed: at most 100"));
  search.candidates = 50;
  search.noise_scale = 100;
  EXPECT_TRUE(Says(error(), "search.noise_scale: says nothing alone"));
  search.initial_batch = -1;
  EXPECT_TRUE(Says(error(), "search.initial_batch: '-1' is out of range"));
  search.initial_batch = 32;
  search.noise_scale = -1;
  EXPECT_TRUE(Says(error(), "search.noise_scale: '-1' is out of range"));
  search.noise_scale = 1e308;
  EXPECT_TRUE(Says(error(), "search.noise_scale: '1e+308' is out of range"));
  search.noise_scale = 0;
  CheckSearch(search, 10, 1000);
}

// Each limit of a search, on either side.
TEST(CheckSearch, LimitsAreWhereTheyAreSaid) {
  BatchSearch good;
  good.candidates = 50;
  good.noise_scale = 1e15;
  good.initial_batch = 1;
  good.least_local_batch = 4;
  good.most_local_batch = 4;
  const auto error = [&](const auto& change, std::size_t allocations = 20) {
    BatchSearch search = good;
    change(&search);
    return ErrorOf([&] { CheckSearch(search, allocations, 1000); });
  };
  EXPECT_FALSE(error([](BatchSearch*) {}));
  EXPECT_TRUE(Says(error([](BatchSearch*) {}, 21), "search.candidates: '50' is out of range"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->least_global_batch = 0; }),
                   "search.least_global_batch: '0' is out of range"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->least_local_batch = 0; }),
                   "search.least_local_batch: '0' is out of range"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->most_local_batch = 3; }),
                   "search.most_local_batch: '3' is out of range; allowed: at least 4"));
  EXPECT_FALSE(error([](BatchSearch* s) { s->most_local_batch = 0; })) << "what memory holds";
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->candidates = -1; }), "search.candidates: '-1'"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->noise_scale = 1.01e15; }), "search.noise_scale"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->initial_batch = 0.9; }), "search.initial_batch"));
  EXPECT_TRUE(Says(error([](BatchSearch* s) { s->noise_scale.reset(); }),
                   "search.initial_batch: says nothing alone"));
  // One sample one to four times, two of them once or twice, and four: seven of each allocation.
  const auto all = [](BatchSearch* s) {
    s->candidates = 0;
    s->most_global_batch = 4;
  };
  EXPECT_FALSE(error(all, 142));
  EXPECT_TRUE(Says(error(all, 143),
                   "allocations: '143' with 7 batches each are too many; allowed: "
                   "at most 1000 batches in all"));
}

// ---- Reading anew.

TEST(Service, ReloadSwapsAndABrokenFileLeavesTheOld) {
  bool broken = false;
  int nodes = 4;
  Service service(
      [&] {
        if (broken) throw InputError({"c.yaml", 3, "nodes"}, "x", "is not a whole number");
        Inventory inventory = ShippedInventory();
        inventory.clusters.front().nodes = nodes;
        return inventory;
      },
      {});
  const std::shared_ptr<const Snapshot> first = service.Current();
  EXPECT_EQ(first->number(), 1);
  nodes = 8;
  EXPECT_EQ(service.Reload(), 2);
  EXPECT_EQ(service.Current()->inventory().clusters.front().nodes, 8);
  EXPECT_EQ(first->inventory().clusters.front().nodes, 4) << "who has a snapshot keeps it";
  broken = true;
  EXPECT_TRUE(Says(ErrorOf([&] { service.Reload(); }), "c.yaml:3: nodes: 'x'"));
  EXPECT_EQ(service.Current()->number(), 2);
}

}  // namespace
}  // namespace stepcast::serve
