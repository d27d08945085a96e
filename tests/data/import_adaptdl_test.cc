#include "data/io/import_adaptdl.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "data/io/runs.h"
#include "data/workloads/catalog.h"
#include "tests/support/datasets.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

constexpr const char* kPlacements =
    "placement,local_bsz,step_time,sync_time\n"
    "1,4,0.5,0.01\n"
    "13,6,0.75,0.25\n"
    "4444,8,1.5,1.75\n";
constexpr const char* kScalability =
    "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
    "1,1,4,0.5,0.01\n"
    "2,8,6,0.75,0.25\n"
    "3,8,8,1.5,1\n";

Runs Import(const std::string& name, const std::string& text, const std::string& workload = "") {
  const TempFolder folder;
  return ImportAdaptdl(folder.Write(name, text), workload, "t4");
}

TEST(ImportAdaptdl, Placements) {
  const Runs runs = Import("bert_placements.csv", kPlacements);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].workload, "bert_base");
  EXPECT_EQ(runs[0].device, "t4");
  EXPECT_EQ(runs[0].plan.placement, (Placement{1}));
  EXPECT_EQ(runs[0].plan.strategy, Strategy::kNone) << "one worker exchanges nothing";
  EXPECT_EQ(runs[0].plan.local_batch, 4);
  EXPECT_EQ(runs[0].plan.accumulation_steps, 1);
  EXPECT_EQ(runs[0].step_time, Seconds(0.5));
  EXPECT_EQ(runs[0].exposed_sync, Seconds(0.01));
  EXPECT_EQ(runs[0].source, "bert_placements.csv line 2");
  EXPECT_EQ(runs[1].plan.placement, (Placement{1, 3}));
  EXPECT_EQ(runs[1].plan.strategy, Strategy::kAllreduce);
  EXPECT_EQ(runs[2].plan.placement, (Placement{4, 4, 4, 4}));
  EXPECT_EQ(runs[2].plan.servers, 0);
}

TEST(ImportAdaptdl, DevicesOfOneNodeExchangeToo) {
  const Runs runs =
      Import("bert_placements.csv", "placement,local_bsz,step_time,sync_time\n4,6,0.75,0.75\n");
  EXPECT_EQ(runs.at(0).plan.strategy, Strategy::kAllreduce);
  EXPECT_EQ(runs.at(0).exposed_sync, Seconds(0.75)) << "as long as the step, but no longer";
}

// The exposed part of the step cannot be longer than the step: such a figure is dropped, and said.
TEST(ImportAdaptdl, AnImpossibleSyncTimeIsLeftOut) {
  const Runs runs = Import("bert_placements.csv", kPlacements);
  EXPECT_FALSE(runs.at(2).exposed_sync.has_value());
  EXPECT_EQ(runs.at(2).source,
            "bert_placements.csv line 4; sync_time is longer than the step and was left out");
}

TEST(ImportAdaptdl, ScalabilityIsSpreadEvenly) {
  const Runs runs = Import("imagenet_scalability.csv", kScalability);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].workload, "resnet50");
  EXPECT_EQ(runs[0].plan.placement, (Placement{1}));
  EXPECT_EQ(runs[1].plan.placement, (Placement{4, 4}));
  EXPECT_EQ(runs[1].source, "imagenet_scalability.csv line 3");
  EXPECT_EQ(runs[2].plan.placement, (Placement{3, 3, 2}));
  EXPECT_EQ(runs[2].source, "imagenet_scalability.csv line 4; layout within nodes taken as even");
}

TEST(ImportAdaptdl, NamesComeFromTheFileUnlessGiven) {
  EXPECT_EQ(AdaptdlApplication("/a/b/bert_placements.csv"), "bert");
  EXPECT_EQ(AdaptdlApplication("deepspeech2_scalability.csv"), "deepspeech2");
  EXPECT_EQ(AdaptdlApplication("my_net_placements.csv"), "my_net");
  EXPECT_EQ(AdaptdlApplication("trace.csv"), "trace");
  EXPECT_EQ(AdaptdlApplication("_trace.csv"), "_trace");
  // A file that is named after what it holds has its folder's name.
  EXPECT_EQ(AdaptdlApplication("/a/ncf/placements.csv"), "ncf");
  EXPECT_EQ(AdaptdlApplication("/a/yolov3/scalability.csv"), "yolov3");
  EXPECT_EQ(AdaptdlApplication("/a/yolov3/scalability2.csv"), "scalability2");
  EXPECT_EQ(AdaptdlWorkload("cifar10"), "resnet18_cifar10");
  EXPECT_EQ(AdaptdlWorkload("my_net"), "my_net");
  EXPECT_EQ(Import("my_net_placements.csv", kPlacements).at(0).workload, "my_net");
  EXPECT_EQ(Import("bert_placements.csv", kPlacements, "vgg16").at(0).workload, "vgg16");
}

// Each of the traces' own applications is in the catalogue.
TEST(ImportAdaptdl, KnownApplicationsAreCatalogueWorkloads) {
  for (const char* application : {"bert", "cifar10", "imagenet", "deepspeech2", "yolov3", "ncf"}) {
    EXPECT_TRUE(FindWorkload(AdaptdlWorkload(application)).has_value()) << application;
  }
}

TEST(ImportAdaptdl, WhatIsImportedIsARunsFile) {
  const Runs runs = Import("bert_placements.csv", kPlacements);
  const std::string text = FormatRuns(runs);
  EXPECT_EQ(FormatRuns(ParseRuns(text, "out.csv")), text);
}

TEST(ImportAdaptdl, Errors) {
  const std::string placements = "placement,local_bsz,step_time,sync_time\n";
  const std::string scalability = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"a,b\n1,2\n",
       ":1: placement: is a required column that is missing; allowed: a header with "
       "placement, or with num_nodes and num_replicas"},
      {"num_nodes,local_bsz,step_time,sync_time\n",
       ":1: num_replicas: is a required column that is missing"},
      {"placement,local_bsz,step_time\n", ":1: sync_time: is a required column that is missing"},
      {placements + "4-4,8,1,0\n", ":2: placement: '4-4' is not a placement; allowed: one digit"},
      {placements + "40,8,1,0\n", ":2: placement: '40' is not a placement"},
      {placements + ",8,1,0\n", ":2: placement: is empty"},
      {placements + "4,0,1,0\n", ":2: local_bsz: '0' is out of range"},
      {placements + "4,8,0,0\n", ":2: step_time: '0' is out of range; allowed: a number from 1"},
      {placements + "4,8,1,-0.5\n", ":2: sync_time: '-0.5' is out of range"},
      {scalability + "2,1,8,1,0\n",
       ":2: num_replicas: '1' is out of range; allowed: a whole number "
       "from 2"},
      {scalability + "0,1,8,1,0\n", ":2: num_nodes: '0' is out of range"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] { Import("x_placements.csv", c.text); }), c.says)) << c.text;
  }
}

// A line of a few bytes may ask for a million nodes, but not each line of a file.
TEST(ImportAdaptdl, PlacementsAreBoundedTogether) {
  std::string text = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
  for (int i = 0; i < 21; ++i) text += "1000000,1000000,1,1,0\n";
  EXPECT_TRUE(Says(ErrorOf([&] { Import("x_scalability.csv", text); }),
                   ":22: num_nodes: '1000000' are too many with those before; allowed: at most "
                   "20000000 nodes in all rows"));
  const auto digits = [](std::size_t count, std::size_t rows) {
    std::string lines = "placement,local_bsz,step_time,sync_time\n";
    for (std::size_t i = 0; i < rows; ++i) lines += std::string(count, '1') + ",1,1,0\n";
    return lines;
  };
  EXPECT_TRUE(Says(ErrorOf([&] { Import("x_placements.csv", digits(1'000'000, 21)); }),
                   ":22: placement: '1"));
  EXPECT_TRUE(Says(ErrorOf([&] { Import("x_placements.csv", digits(1'000'001, 1)); }),
                   ":2: placement: '1000001' "));
}

// What is read is written, and read as what it was; the rest is refused.
TEST(ImportAdaptdl, WhatIsWrittenIsRead) {
  const std::vector<std::string> numbers = {"1",    "2",         "3",         "1024",      "1025",
                                            "9999", "100000000", "100000001", "1e7",       "1e-300",
                                            "0",    "0.5",       "9",         "999999999", "12"};
  std::mt19937 random(3);
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    const auto any = [&] { return numbers[random() % numbers.size()]; };
    const bool placed = random() % 2 == 0;
    std::string text = placed ? "placement," : "num_nodes,num_replicas,";
    text += "local_bsz,step_time,sync_time\n" + any() + "," + any() + "," + any() + "," + any();
    text += placed ? "\n" : "," + any() + "\n";
    try {
      const Runs runs = Import("a,\"b_placements.csv", text);
      const std::string written = FormatRuns(runs);
      EXPECT_EQ(FormatRuns(ParseRuns(written, "out.csv")), written) << text;
      ++read;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("_placements.csv"), std::string::npos) << text;
    }
  }
  EXPECT_GT(read, 30);
  EXPECT_TRUE(Says(ErrorOf([] { Import("b\xff_placements.csv", kPlacements); }),
                   "has a name that is not UTF-8"));
  EXPECT_TRUE(
      Says(ErrorOf([] { Import("x_placements.csv", kPlacements, " "); }), "workload: is empty"));
}

// ---- The traces themselves.

TEST(ImportAdaptdl, TheTraces) {
  const auto folder = DatasetFolder("adaptdl");
  if (!folder) GTEST_SKIP() << MissingDataset("adaptdl");
  std::size_t rows = 0;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".csv") continue;
    SCOPED_TRACE(entry.path().string());
    const Runs runs = ImportAdaptdl(entry.path().string(), "", "t4");
    ++files;
    rows += runs.size();
    ASSERT_FALSE(runs.empty());
    EXPECT_TRUE(FindWorkload(runs[0].workload).has_value()) << runs[0].workload;
    for (const auto& run : runs) {
      EXPECT_LE(run.plan.workers(), 64) << run.source;
      EXPECT_LE(DevicesOnFullestNode(run.plan.placement), 4) << run.source;
    }
    const std::string text = FormatRuns(runs);
    EXPECT_EQ(FormatRuns(ParseRuns(text, "out.csv")), text);
  }
  EXPECT_EQ(files, 8U);
  EXPECT_EQ(rows, 4336U);
}

}  // namespace
}  // namespace stepcast
