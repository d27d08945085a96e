#include "data/io/runs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "data/values/training_facts.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

const std::string kHeader = "workload,device,placement,servers,strategy,local_batch,step_time_s";

Runs Parse(const std::string& text) { return ParseRuns(text, "runs.csv"); }

// One row with the required columns and those of `more`: "rtt_ms" = "2".
Runs ParseWith(const std::string& column, const std::string& value) {
  return Parse(kHeader + "," + column + "\nresnet50,t4,4-4,0,ring,32,0.5," + value + "\n");
}

TEST(Runs, RequiredColumns) {
  const Runs runs = Parse(kHeader + "\nresnet50,t4,4-4-2,3,ps-async,32,0.5\n");
  ASSERT_EQ(runs.size(), 1U);
  const auto& run = runs[0];
  EXPECT_EQ(run.workload, "resnet50");
  EXPECT_EQ(run.device, "t4");
  EXPECT_EQ(run.plan.placement, (Placement{4, 4, 2}));
  EXPECT_EQ(run.plan.workers(), 10);
  EXPECT_EQ(run.plan.nodes(), 3);
  EXPECT_EQ(run.plan.servers, 3);
  EXPECT_EQ(run.plan.strategy, Strategy::kPsAsync);
  EXPECT_EQ(run.plan.local_batch, 32);
  EXPECT_EQ(run.step_time, Seconds(0.5));
  EXPECT_EQ(run.place.file, "runs.csv");
  EXPECT_EQ(run.place.line, 2);
}

// An absent column, and an empty field, are unknown; accumulation alone has a value then: 1.
TEST(Runs, OptionalColumnsAreUnknownWhenAbsentOrEmpty) {
  const std::string columns =
      ",accumulation_steps,exposed_sync_s,link_gbit_per_s,server_link_gbit_per_s,rtt_ms,loss_rate,"
      "bucket_mib,hosts,source";
  for (const std::string& text :
       {kHeader + "\nresnet50,t4,1,0,none,32,0.5\n",
        kHeader + columns + "\nresnet50,t4,1,0,none,32,0.5,,,, ,,,,,\n"}) {
    const Runs runs = Parse(text);
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].plan.accumulation_steps, 1);
    EXPECT_FALSE(runs[0].exposed_sync.has_value());
    EXPECT_TRUE(runs[0].plan.link.empty());
    EXPECT_TRUE(runs[0].plan.server_link.empty());
    EXPECT_FALSE(runs[0].plan.bucket.has_value());
    EXPECT_TRUE(runs[0].plan.hosts.empty());
    EXPECT_TRUE(runs[0].source.empty());
    EXPECT_TRUE(runs[0].extra.empty());
  }
}

TEST(Runs, OptionalColumns) {
  EXPECT_EQ(ParseWith("accumulation_steps", "8")[0].plan.accumulation_steps, 8);
  EXPECT_EQ(ParseWith("exposed_sync_s", "0.25")[0].exposed_sync, Seconds(0.25));
  EXPECT_EQ(ParseWith("exposed_sync_s", "0")[0].exposed_sync, Seconds(0.0)) << "0 is known";
  EXPECT_EQ(ParseWith("link_gbit_per_s", "10")[0].plan.link.bandwidth, GigabitsPerSecond(10.0));
  EXPECT_EQ(ParseWith("rtt_ms", "2")[0].plan.link.rtt, Milliseconds(2.0));
  EXPECT_EQ(ParseWith("loss_rate", "0.01")[0].plan.link.loss, 0.01);
  EXPECT_EQ(ParseWith("bucket_mib", "25")[0].plan.bucket, Mebibytes(25.0));
  EXPECT_EQ(ParseWith("hosts", "tupi1+tupi2")[0].plan.hosts,
            (std::vector<std::string>{"tupi1", "tupi2"}));
  EXPECT_EQ(ParseWith("source", "\"a paper, table 2\"")[0].source, "a paper, table 2");
}

// One row of a plan with servers and one more column.
Runs ParseServers(const std::string& strategy, const std::string& column,
                  const std::string& value) {
  return Parse(kHeader + "," + column + "\nresnet50,t4,4-4,2," + strategy + ",32,0.5," + value +
               "\n");
}

TEST(Runs, ColumnsOfLinksOverlapAndBackups) {
  EXPECT_EQ(ParseWith("congestion_control", "bbr")[0].plan.link.congestion_control,
            CongestionControl::kBbr);
  EXPECT_FALSE(ParseWith("congestion_control", "")[0].plan.link.congestion_control.has_value());
  EXPECT_EQ(ParseWith("loss_burst_ms", "1")[0].plan.link.loss_burst, Milliseconds(1.0));
  EXPECT_EQ(ParseWith("overlap", "none")[0].plan.overlap, Overlap::kNone);
  EXPECT_EQ(ParseWith("overlap", "")[0].plan.overlap, Overlap::kBuckets);
  EXPECT_EQ(ParseWith("backup_workers", "2")[0].plan.backup_workers, 2);
}

TEST(Runs, ColumnsOfServers) {
  EXPECT_EQ(ParseServers("ps-sync", "server_link_gbit_per_s", "3.5")[0].plan.server_link.bandwidth,
            GigabitsPerSecond(3.5));
  EXPECT_TRUE(Says(ErrorOf([] { ParseWith("server_link_gbit_per_s", "3.5"); }),
                   "server_link_gbit_per_s: with strategy"));
  EXPECT_TRUE(ParseServers("ps-sync", "colocated_servers", "yes")[0].plan.server.colocated);
  EXPECT_FALSE(ParseServers("ps-sync", "colocated_servers", "no")[0].plan.server.colocated);
  EXPECT_EQ(ParseServers("ps-async", "sharding", "even")[0].plan.server.sharding, Sharding::kEven);
  EXPECT_TRUE(ParseServers("ps-sync", "pipelined_servers", "yes")[0].plan.server.pipelined);
  EXPECT_TRUE(ParseServers("ps-sync", "multicast", "yes")[0].plan.server.multicast);
  EXPECT_TRUE(ParseServers("ps-sync", "in_network_aggregation", "yes")[0]
                  .plan.server.in_network_aggregation);
  EXPECT_EQ(ParseServers("ps-async", "staleness_bound", "0")[0].plan.server.staleness_bound, 0);
  EXPECT_FALSE(
      ParseServers("ps-async", "staleness_bound", "")[0].plan.server.staleness_bound.has_value());
  EXPECT_EQ(ParseServers("byteps", "rtt_ms", "1")[0].plan.servers, 2) << "helpers";
}

TEST(Runs, ErrorsNameFileLineColumnValueAndWhatIsAllowed) {
  const struct {
    const char* strategy;
    const char* column;
    const char* value;
    const char* says;
  } cases[] = {
      {"ps-sync", "congestion_control", "vegas",
       "runs.csv:2: congestion_control: 'vegas' is not a known congestion control; allowed: reno, "
       "cubic, bbr"},
      {"ps-sync", "loss_burst_ms", "-1", "runs.csv:2: loss_burst_ms: '-1' is out of range"},
      {"ps-sync", "overlap", "all",
       "runs.csv:2: overlap: 'all' is not a way to overlap; allowed: buckets, none, p-norm"},
      {"ps-sync", "sharding", "odd",
       "runs.csv:2: sharding: 'odd' is not a way to shard; allowed: tensor, even"},
      {"ps-sync", "colocated_servers", "true",
       "runs.csv:2: colocated_servers: 'true' is neither yes nor no; allowed: yes, no"},
      {"ps-sync", "multicast", "1", "runs.csv:2: multicast: '1' is neither yes nor no"},
      {"ps-sync", "in_network_aggregation", "y", "in_network_aggregation: 'y' is neither"},
      {"ps-async", "staleness_bound", "-1", "runs.csv:2: staleness_bound: '-1' is out of range"},
      {"ps-async", "staleness_bound", "few", "runs.csv:2: staleness_bound: 'few' is not a whole"},
      {"ps-sync", "staleness_bound", "2",
       "runs.csv:2: staleness_bound: with strategy ps-sync; allowed: strategy ps-async"},
      {"ps-async", "multicast", "yes",
       "runs.csv:2: multicast: with strategy ps-async; allowed: strategy ps-sync"},
      {"byteps", "colocated_servers", "yes",
       "runs.csv:2: colocated_servers: with strategy byteps; allowed: strategy ps-sync or "
       "ps-async"},
      {"ps-sync", "backup_workers", "8",
       "runs.csv:2: backup_workers: '8' is out of range; allowed: a whole number from 0 to 7"},
      {"ps-async", "backup_workers", "1",
       "runs.csv:2: backup_workers: with strategy ps-async; allowed: a synchronous strategy"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] { ParseServers(c.strategy, c.column, c.value); }), c.says))
        << c.column;
  }
}

TEST(Runs, OrderIsFree) {
  const std::string expected =
      FormatRuns(Parse(kHeader + ",rtt_ms\nresnet50,t4,4-4,0,ring,32,0.5,2\n"));
  EXPECT_EQ(FormatRuns(Parse("rtt_ms,step_time_s,local_batch,strategy,servers,placement,device,"
                             "workload\n2,0.5,32,ring,0,4-4,t4,resnet50\n")),
            expected);
}

// A slip in a column's name would leave out what was stated.
TEST(Runs, MisspeltColumnsAreRefused) {
  const auto error_of = [](const std::string& columns) {
    return ErrorOf([&] { Parse(kHeader + "," + columns + "\n"); });
  };
  EXPECT_TRUE(Says(error_of("acumulation_steps"),
                   "runs.csv:1: acumulation_steps: is not a known column (did you mean "
                   "accumulation_steps?); allowed: accumulation_steps, or for a column of your own "
                   "a name that is not so near to it"));
  EXPECT_TRUE(
      Says(error_of("note,rtt_us"), "rtt_us: is not a known column (did you mean rtt_ms?)"));
  EXPECT_TRUE(Says(error_of("host"), "host: is not a known column (did you mean hosts?)"));
  // The known column is there; another digit; three letters; nothing near.
  for (const char* columns : {"hosts,host", "p90_s", "over", "temperature_c"}) {
    EXPECT_FALSE(error_of(columns)) << columns;
  }
  EXPECT_TRUE(Says(ErrorOf([] { Parse("workload;device\nresnet50;t4\n"); }),
                   "runs.csv:1: header: 'workload;device' is separated by semicolons"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse(kHeader + "\nresnet50,t4,1,0,none,32,\"0,5\"\n"); }),
                   "runs.csv:2: step_time_s: '0,5' is not a number (did you mean 0.5?)"));
}

// Ignored without a word, runs in 16 bits would be fitted as those of 32.
TEST(Runs, HowAWorkloadIsTrainedIsNoColumn) {
  const auto error_of = [](const std::string& column) {
    return ErrorOf([&] { Parse(kHeader + "," + column + "\nresnet50,t4,1,0,none,32,0.5,x\n"); });
  };
  EXPECT_TRUE(Says(error_of("precision"),
                   "runs.csv:1: precision: is not a column of runs: how a run was trained is a "
                   "fact of its workload; allowed: precision in the workload's file, or "
                   "--precision; a workload of its own name for each way of training"));
  EXPECT_TRUE(Says(error_of("precison"),
                   "precison: is not a column of runs (did you mean precision?): how a run"));
  for (const TrainingFact& fact : TrainingFacts()) {
    EXPECT_TRUE(Says(error_of(fact.key), "or --" + std::string(fact.key))) << fact.key;
  }
  EXPECT_FALSE(error_of("prediction"));
}

TEST(Runs, UnknownColumnsAreKeptAndWrittenBack) {
  const std::string text = "note," + kHeader +
                           ",temperature_c\n\"warm, really\",resnet50,t4,1,0,none,"
                           "32,0.5,61\n,vgg16,t4,1,0,none,16,0.25,\n";
  const Runs runs = Parse(text);
  ASSERT_EQ(runs.size(), 2U);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(*runs[0].extra_columns, (Texts{"note", "temperature_c"}));
  EXPECT_EQ(runs[1].extra_columns, runs[0].extra_columns);
  EXPECT_EQ(runs[0].extra, (Texts{"warm, really", "61"}));
  EXPECT_EQ(runs[1].extra, (Texts{"", ""}));
  EXPECT_EQ(FormatRuns(runs), kHeader +
                                  ",note,temperature_c\n"
                                  "resnet50,t4,1,0,none,32,0.5,\"warm, really\",61\n"
                                  "vgg16,t4,1,0,none,16,0.25,,\n");
}

// Where one run accumulates, the others say that they do not.
TEST(Runs, AccumulationIsWrittenForAllOrNone) {
  Runs runs = ParseWith("accumulation_steps", "8");
  runs.push_back(runs.front());
  runs.back().plan.accumulation_steps = 1;
  const auto last_fields = [&] {
    const std::string text = FormatRuns(runs);
    return std::pair(
        std::count(text.begin(), text.begin() + text.find('\n'), ','),
        text.find(",8\n") != std::string::npos && text.find(",1\n") != std::string::npos);
  };
  const auto with = last_fields();
  EXPECT_TRUE(with.second) << FormatRuns(runs);
  runs.erase(runs.begin());
  EXPECT_EQ(last_fields().first + 1, with.first) << FormatRuns(runs);
}

TEST(Runs, FilesOfOneColumnEachAreJoined) {
  Runs runs = Parse(kHeader + ",note\nresnet50,t4,1,0,none,32,0.5,first\n");
  const Runs more = Parse(kHeader + ",rtt_ms\nresnet50,t4,1,0,none,32,0.5,2\n");
  runs.insert(runs.end(), more.begin(), more.end());
  EXPECT_EQ(FormatRuns(runs), kHeader +
                                  ",rtt_ms,note\n"
                                  "resnet50,t4,1,0,none,32,0.5,,first\n"
                                  "resnet50,t4,1,0,none,32,0.5,2,\n");
}

TEST(Runs, NoRowsAreNoRuns) {
  EXPECT_TRUE(Parse(kHeader + "\n").empty());
  EXPECT_EQ(FormatRuns({}), kHeader + "\n");
}

TEST(Runs, EachRequiredColumnIsRequired) {
  for (const std::string column :
       {"workload", "device", "placement", "servers", "strategy", "local_batch", "step_time_s"}) {
    std::string header = kHeader;
    header.replace(header.find(column), column.size(), "other");
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(header + "\n"); }),
                     "runs.csv:1: " + column + ": is a required column that is missing"));
  }
}

// ---- Throughputs for step times.

const std::string kOfThroughputs =
    "workload,device,placement,servers,strategy,local_batch,throughput_samples_per_s";

// The step is what forecasts tell the throughput of: the samples that count, of all workers.
TEST(Runs, AThroughputStandsForAStepTime) {
  const Runs runs = Parse(kOfThroughputs +
                          ",accumulation_steps,backup_workers,local_steps,slow_nodes,slow_speed,"
                          "slow_local_batch\n"
                          "resnet50,t4,1,0,none,32,64,,,,,,\n"
                          "resnet50,t4,4-4,0,ring,32,64,,,,,,\n"
                          "resnet50,t4,4-4,0,ring,32,64,8,,,,,\n"
                          "resnet50,t4,4-4,0,ring,32,64,,2,,,,\n"
                          "resnet50,t4,4-4,0,ring,32,64,,,10,,,\n"
                          "resnet50,t4,4-4,0,ring,32,64,,,,1,0.5,16\n"
                          "resnet50,t4,4-4,2,ps-async,32,64,,,,,,\n");
  const std::vector<double> steps = {0.5, 4, 32, 3, 4, 3, 4};
  ASSERT_EQ(runs.size(), steps.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_DOUBLE_EQ(runs[i].step_time.in(kSeconds), steps[i]) << i;
    EXPECT_FALSE(runs[i].stopped);
  }
  // The column is kept, so that what is written has what was read.
  ASSERT_TRUE(runs[0].extra_columns);
  EXPECT_EQ(*runs[0].extra_columns, std::vector<std::string>{"throughput_samples_per_s"});
  EXPECT_EQ(runs[0].extra, std::vector<std::string>{"64"});
  const Runs again = Parse(FormatRuns(runs));
  ASSERT_EQ(again.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(again[i].step_time, runs[i].step_time);
}

TEST(Runs, ARowHasAStepTimeOrAThroughputOrBothThatAgree) {
  const std::string both = kHeader + ",throughput_samples_per_s\nresnet50,t4,1-1,0,ring,32,";
  EXPECT_EQ(Parse(both + "0.5,\n")[0].step_time, Seconds(0.5));
  EXPECT_EQ(Parse(both + ",128\n")[0].step_time, Seconds(0.5));
  EXPECT_EQ(Parse(both + "0.5,128\n")[0].step_time, Seconds(0.5));
  // As printed to two digits.
  EXPECT_EQ(Parse(both + "0.5,130\n")[0].step_time, Seconds(0.5));
  // That of one worker.
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(both + "0.5,64\n"); }),
                   "runs.csv:2: throughput_samples_per_s: '64' is one of 1 s a step, and "
                   "step_time_s is 0.5; allowed: one of the two, or samples of all workers in a "
                   "second"));
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(both + ">1800,64\n"); }), "step_time_s is 1800"));
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(both + ",\n"); }), "runs.csv:2: step_time_s: "));
}

TEST(Runs, AThroughputThatIsNone) {
  const auto refused = [](const std::string& value) {
    return ErrorOf([&] { Parse(kOfThroughputs + "\nresnet50,t4,1-1,0,ring,32," + value + "\n"); });
  };
  for (const char* value : {"0", "-1", "nan", "1e16", "fast", "240 samples/s"}) {
    EXPECT_TRUE(Says(refused(value), "runs.csv:2: throughput_samples_per_s: ")) << value;
  }
  EXPECT_TRUE(Says(refused(""), "throughput_samples_per_s: is required"));
  EXPECT_TRUE(Says(refused("1e-6"), "'1e-6' is one of 6.4e+07 s a step"));
  // What is wrong with the plan is told as such.
  EXPECT_TRUE(Says(ErrorOf([] { Parse(kOfThroughputs + "\nresnet50,t4,1-1,0,auto,32,64\n"); }),
                   "strategy: 'auto' is a question"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse(kHeader.substr(0, kHeader.rfind(',')) + "\n"); }),
                   "allowed: a header with it, or with throughput_samples_per_s; this file has"));
}

TEST(Runs, WhatNoSingleFieldCanKnow) {
  const struct {
    const char* row;
    const char* says;
  } cases[] = {
      {"resnet50,t4,1-1,0,ps-sync,32,0.5,,",
       "runs.csv:2: servers: are required with strategy ps-sync; allowed: at least 1"},
      {"resnet50,t4,1-1,2,ring,32,0.5,,",
       "runs.csv:2: servers: '2' with strategy ring; allowed: 0, or strategy ps-sync, "
       "ps-async or byteps"},
      {"resnet50,t4,1-1,0,auto,32,0.5,,",
       "runs.csv:2: strategy: 'auto' is a question and not a measurement; allowed: the algorithm "
       "that ran, or allreduce where the library chose"},
      {"resnet50,t4,1-1,0,ring,32,0.5,a+b+c,",
       "runs.csv:2: hosts: 'a+b+c' names 3 hosts; allowed: 2, one for each node of placement 1-1"},
      {"resnet50,t4,1-1,0,ring,32,0.5,,0.6",
       "runs.csv:2: exposed_sync_s: '0.6' is longer than the step; allowed: at most step_time_s, "
       "0.5"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(
        Says(ErrorOf([&] { Parse(kHeader + ",hosts,exposed_sync_s\n" + c.row + "\n"); }), c.says));
  }
}

// ---- How steps differ, and runs that were stopped.

TEST(Runs, ColumnsOfTheSpread) {
  const std::string text = kHeader +
                           ",step_time_sd_s,p50_s,p95_s,p99_s\n"
                           "resnet50,t4,1,0,none,32,0.5,0.02,,,\n"
                           "resnet50,t4,1,0,none,32,0.5,,0.49,0.55,0.6\n"
                           "resnet50,t4,1,0,none,32,>1800,,,,\n";
  const Runs runs = Parse(text);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].spread.sd, Seconds(0.02));
  EXPECT_FALSE(runs[0].spread.p50.has_value());
  EXPECT_FALSE(runs[0].stopped);
  EXPECT_FALSE(runs[1].spread.sd.has_value());
  EXPECT_EQ(runs[1].spread.p50, Seconds(0.49));
  EXPECT_EQ(runs[1].spread.p95, Seconds(0.55));
  EXPECT_EQ(runs[1].spread.p99, Seconds(0.6));
  EXPECT_TRUE(runs[2].stopped);
  EXPECT_EQ(runs[2].step_time, Seconds(1800.0));
  EXPECT_EQ(FormatRuns(runs), text);
}

TEST(Runs, WhatASpreadCannotBe) {
  const struct {
    const char* row;
    const char* says;
  } cases[] = {
      {"0.5,,,0.6,", "runs.csv:2: p95_s: '0.6' tells no spread without the median; allowed: p50_s"},
      {"0.5,,,,0.6", "runs.csv:2: p99_s: '0.6' tells no spread without the median; allowed: p50_s"},
      {"0.5,,0.5,0.4,", "runs.csv:2: p95_s: '0.4' is shorter than p50_s; allowed: at least 0.5"},
      {"0.5,,0.5,,0.4", "runs.csv:2: p99_s: '0.4' is shorter than p50_s; allowed: at least 0.5"},
      {"0.5,,0.5,0.7,0.6", "runs.csv:2: p99_s: '0.6' is shorter than p95_s; allowed: at least 0.7"},
      {"0.5,,490,520,",
       "runs.csv:2: p50_s: '490' is more than 2 times the mean step, which it "
       "cannot be: another unit?; allowed: at most 2 x step_time_s, 1"},
      {"0.5,,0.5,11,", "runs.csv:2: p95_s: '11' is more than 20 times the mean step"},
      {"0.5,,0.5,,51", "runs.csv:2: p99_s: '51' is more than 100 times the mean step"},
      {"0.5,51,,,", "runs.csv:2: step_time_sd_s: '51' is more than 100 times the mean step"},
      {"0.5,-1,,,", "runs.csv:2: step_time_sd_s: '-1' is out of range"},
      {"0.5,,0,,", "runs.csv:2: p50_s: '0' is out of range"},
      {">,,,,", "runs.csv:2: step_time_s: is empty"},
      {"> x,,,,", "runs.csv:2: step_time_s: ' x' is not a number"},
      {">>5,,,,", "runs.csv:2: step_time_s: '>5' is not a number"},
      {"<5,,,,", "runs.csv:2: step_time_s: '<5' is not a number"},
      {">5,0.1,,,", "runs.csv:2: step_time_sd_s: '0.1' is that of a step, and the run was stopped"},
      {">5,,4,,", "runs.csv:2: p50_s: '4' is that of a step, and the run was stopped"}};
  for (const auto& c : cases) {
    const std::string text =
        kHeader + ",step_time_sd_s,p50_s,p95_s,p99_s\nresnet50,t4,1,0,none,32," + c.row + "\n";
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }), c.says)) << c.row;
  }
}

// Steps that are all alike have one quantile, and each bound is allowed itself.
TEST(Runs, WhatASpreadCanJustBe) {
  for (const char* row :
       {"0.5,,0.5,0.5,0.5", "0.5,,0.5,0.6,0.6", "0.5,,1,10,50", "0.5,50,,,", "0.5,0,0.5,,"}) {
    EXPECT_NO_THROW(Parse(kHeader + ",step_time_sd_s,p50_s,p95_s,p99_s\n" +
                          "resnet50,t4,1,0,none,32," + row + "\n"))
        << row;
  }
}

TEST(Runs, ReadAndWriteAFile) {
  const TempFolder folder;
  const std::string text = kHeader +
                           ",hosts\nresnet50,rtx_4090,1-1,0,allreduce,128,1.37,"
                           "tupi1+tupi2\n";
  const std::string path = folder.Write("runs.csv", text);
  const Runs runs = ReadRuns(path);
  EXPECT_EQ(runs.at(0).place.file, path);
  EXPECT_EQ(FormatRuns(runs), text);
}

// ---- Whatever is written is read.

std::string Word() {
  return *rc::gen::nonEmpty(rc::gen::container<std::string>(
      rc::gen::element('a', 'z', '0', '9', '_', '-', '.', ',', '"', ';')));
}

std::string Sentence() {
  return Word() + *rc::gen::element<std::string>("", "\n", " ", "\r\n", ", ", " µ \"x\" ") + Word();
}

double Positive(double scale) { return *rc::gen::inRange(1, 1'000'000'000) * 1e-9 * scale; }

bool Coin() { return *rc::gen::arbitrary<bool>(); }

Run AnyRun() {
  Run run;
  run.workload = Word();
  run.device = Word();
  run.plan.placement = *rc::gen::nonEmpty(rc::gen::container<Placement>(rc::gen::inRange(1, 17)));
  // Strategy auto is a question and not a measurement.
  const Strategy strategy =
      static_cast<Strategy>(*rc::gen::suchThat(rc::gen::inRange(0, kStrategyCount), [](int i) {
        return static_cast<Strategy>(i) != Strategy::kAuto;
      }));
  run.plan.strategy = strategy;
  if (UsesServers(strategy)) run.plan.servers = *rc::gen::inRange(1, 100);
  if (strategy == Strategy::kBytePs) run.plan.servers = *rc::gen::inRange(0, 100);
  const bool sync = strategy == Strategy::kPsSync;
  const bool async = strategy == Strategy::kPsAsync;
  run.plan.server.colocated = (sync || async) && Coin();
  if ((sync || async) && Coin()) run.plan.server.sharding = Sharding::kEven;
  run.plan.server.pipelined = sync && Coin();
  run.plan.server.multicast = sync && Coin();
  run.plan.server.in_network_aggregation = sync && Coin();
  run.plan.server.local_aggregation = sync && Coin();
  if (async && Coin()) run.plan.server.staleness_bound = *rc::gen::inRange(0, 1'000'001);
  if (!async && strategy != Strategy::kNone) {
    run.plan.backup_workers = *rc::gen::inRange(0, run.plan.workers());
  }
  if (!run.plan.server.pipelined) {
    run.plan.overlap = static_cast<Overlap>(*rc::gen::inRange(0, async ? 2 : kOverlapCount));
  }
  if (Coin()) {
    run.plan.link.congestion_control =
        static_cast<CongestionControl>(*rc::gen::inRange(0, kCongestionControlCount));
  }
  if (Coin()) run.plan.link.loss_burst = Milliseconds(Coin() ? Positive(1e3) : 0.0);
  if (Coin()) run.plan.link.background = GigabitsPerSecond(Coin() ? Positive(1e3) : 0.0);
  run.plan.local_batch = *rc::gen::inRange(1, 100'000'000);
  run.step_time = Seconds(Positive(1e4));
  if (Coin()) run.plan.accumulation_steps = *rc::gen::inRange(1, 1'000'000);
  run.stopped = Coin();
  if (!run.stopped && Coin()) run.exposed_sync = run.step_time * Positive(1);
  if (!run.stopped && Coin()) run.spread.sd = run.step_time * Positive(1);
  if (!run.stopped && Coin()) {
    run.spread.p50 = run.step_time;
    if (Coin()) run.spread.p95 = run.step_time * (1 + Positive(1));
    if (Coin()) run.spread.p99 = run.step_time * (2 + Positive(1));
  }
  if (Coin()) run.plan.link.bandwidth = GigabitsPerSecond(Positive(1e3));
  if (run.plan.has_server_link() && Coin()) {
    run.plan.server_link.bandwidth = GigabitsPerSecond(Positive(1e3));
  }
  if (Coin()) run.plan.link.rtt = Milliseconds(Coin() ? Positive(1e3) : 0.0);
  if (Coin()) run.plan.link.loss = Coin() ? Positive(1) : 0.0;
  if (Coin()) run.plan.bucket = Mebibytes(Positive(1e3));
  if (Coin()) {
    for (int i = 0; i < run.plan.nodes(); ++i) {
      run.plan.hosts.push_back(Word() + std::to_string(i));  // a host is named once
    }
  }
  if (Coin()) run.source = Sentence();
  if (Coin()) {
    run.extra_columns = std::make_shared<std::vector<std::string>>(
        std::vector<std::string>{"note", "x,\"y\"", Word()});
    run.extra = {Coin() ? Sentence() : "", Sentence(), Sentence()};
  }
  return run;
}

// A conversion of units and back may cost the last digits.
template <class Q>
bool Near(const std::optional<Q>& a, const std::optional<Q>& b) {
  if (!a || !b) return !a && !b;
  return std::abs(a->si() - b->si()) <= 1e-15 * std::abs(a->si());
}

RC_GTEST_PROP(Runs, WhatIsWrittenIsRead, ()) {
  Runs runs;
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) runs.push_back(AnyRun());
  const std::string text = FormatRuns(runs);
  const Runs read = Parse(text);
  RC_ASSERT(read.size() == runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& a = runs[i];
    const auto& b = read[i];
    RC_ASSERT(a.workload == b.workload);
    RC_ASSERT(a.device == b.device);
    RC_ASSERT(a.plan.placement == b.plan.placement);
    RC_ASSERT(a.plan.strategy == b.plan.strategy);
    RC_ASSERT(a.plan.servers == b.plan.servers);
    RC_ASSERT(a.plan.local_batch == b.plan.local_batch);
    RC_ASSERT(a.stopped == b.stopped);
    RC_ASSERT(Near(a.spread.sd, b.spread.sd));
    RC_ASSERT(Near(a.spread.p50, b.spread.p50));
    RC_ASSERT(Near(a.spread.p95, b.spread.p95));
    RC_ASSERT(Near(a.spread.p99, b.spread.p99));
    RC_ASSERT(a.plan.accumulation_steps == b.plan.accumulation_steps);
    RC_ASSERT(a.step_time == b.step_time);
    RC_ASSERT(a.exposed_sync == b.exposed_sync);
    RC_ASSERT(Near(a.plan.link.bandwidth, b.plan.link.bandwidth));
    RC_ASSERT(Near(a.plan.server_link.bandwidth, b.plan.server_link.bandwidth));
    RC_ASSERT(Near(a.plan.link.rtt, b.plan.link.rtt));
    RC_ASSERT(a.plan.link.loss == b.plan.link.loss);
    RC_ASSERT(Near(a.plan.bucket, b.plan.bucket));
    RC_ASSERT(Near(a.plan.link.loss_burst, b.plan.link.loss_burst));
    RC_ASSERT(a.plan.link.congestion_control == b.plan.link.congestion_control);
    RC_ASSERT(a.plan.overlap == b.plan.overlap);
    RC_ASSERT(a.plan.backup_workers == b.plan.backup_workers);
    RC_ASSERT(a.plan.server.colocated == b.plan.server.colocated);
    RC_ASSERT(a.plan.server.sharding == b.plan.server.sharding);
    RC_ASSERT(a.plan.server.pipelined == b.plan.server.pipelined);
    RC_ASSERT(a.plan.server.multicast == b.plan.server.multicast);
    RC_ASSERT(a.plan.server.in_network_aggregation == b.plan.server.in_network_aggregation);
    RC_ASSERT(a.plan.server.local_aggregation == b.plan.server.local_aggregation);
    RC_ASSERT(a.plan.server.staleness_bound == b.plan.server.staleness_bound);
    RC_ASSERT(a.plan.hosts == b.plan.hosts);
    RC_ASSERT(a.source == b.source);
    for (std::size_t k = 0; k < a.extra.size(); ++k) {
      const auto column =
          std::find(b.extra_columns->begin(), b.extra_columns->end(), a.extra_columns->at(k));
      RC_ASSERT(column != b.extra_columns->end());
      RC_ASSERT(b.extra[static_cast<std::size_t>(column - b.extra_columns->begin())] == a.extra[k]);
    }
  }
}

}  // namespace
}  // namespace stepcast
