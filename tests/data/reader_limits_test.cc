// Small files that ask for much: each gets one short error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "data/io/csv.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/io/runs.h"
#include "data/io/strict_json.h"
#include "data/io/workload_file.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "tests/support/input_error.h"
#include "tests/support/reader_inputs.h"

namespace stepcast {
namespace {

constexpr const char* kHeader =
    "workload,device,placement,servers,strategy,local_batch,step_time_s";

std::string Calibrated(const std::string& rest) {
  return "{name: a, device: t4, nodes: 1, devices_per_node: 1, calibration: {residual_log_sd: 0, "
         "range: {max_workers: 1, max_nodes: 1, max_devices_per_node: 1}, " +
         rest + "}}";
}

std::string Parameters(int count) {
  return "parameters: [" +
         Times(count,
               "{scope: s#, name: n, value: 1, log_sd: 1, prior_value: 1, prior_log_sd: 1, "
               "decided_by: data},\n") +
         "]";
}

void ReadAsCluster(const std::string& text) { ParseCluster(text, "c.yaml"); }

TEST(ReaderLimits, ASectionThatIsEmptyIsAnError) {
  for (const char* empty : {"x: ", "x: ~", "? x", "x, y", "\"\": "}) {
    const std::string text = Calibrated(std::string("scatter: {") + empty + "}");
    EXPECT_TRUE(Says(ErrorOf([&] { ReadAsCluster(text); }), "is empty; allowed: a value")) << text;
    EXPECT_TRUE(Says(ErrorOf([&] {
                       ReadAsCluster(
                           "{name: a, device: t4, nodes: 1, devices_per_node: 1, sources: "
                           "{" +
                           std::string(empty) + "}}");
                     }),
                     "is empty"))
        << empty;
  }
}

TEST(ReaderLimits, ACovarianceIsNoLargerThanItsText) {
  const auto error =
      ErrorOf([] { ReadAsCluster(Calibrated(Parameters(3000) + ", log_covariance: \"1 2 3\"")); });
  EXPECT_TRUE(Says(error, "calibration.log_covariance: '' is not a number") ||
              Says(error, "calibration.log_covariance: is not a number"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadAsCluster(Calibrated(Parameters(3001))); }),
                   "calibration.parameters: '3001' are too many; allowed: at most 3000"));
}

TEST(ReaderLimits, HostsWithALinkOfTheirOwnAreAsManyAsACovarianceHolds) {
  const auto text = [](int count) {
    return "{name: a, device: t4, nodes: 9000, devices_per_node: 1, hosts: [" +
           Times(count, "{name: h#, link: {bandwidth: 1 Gbit/s}},") + "]}";
  };
  ReadAsCluster(text(3000));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadAsCluster(text(3001)); }),
                   "hosts: '3001' hosts state a bandwidth of their own; allowed: at most 3000"));
}

TEST(ReaderLimits, AStateThatNestsIsAnError) {
  OnlineRecord record;
  record.cluster = record.workload = record.device = "x";
  record.scatter = 0.1;
  const std::string good = FormatOnlineRecord(record);
  ParseOnlineRecord(good);
  constexpr std::size_t kDeep = 500'000;
  const std::string deep[] = {std::string(kDeep, '['),
                              std::string(kDeep, '[') + std::string(kDeep, ']')};
  for (const std::string& nested : deep) {
    for (const char* key :
         {"\"local_batch\":", "\"plans\":", "\"y\":", "\"range\":", "\"sums\":"}) {
      std::string text = good;
      text.insert(text.find(key) + std::string(key).size(), nested);
      EXPECT_TRUE(Says(ErrorOf([&] { ParseOnlineRecord(text); }), "is nested too deeply")) << key;
    }
    EXPECT_TRUE(Says(ErrorOf([&] { ParseOnlineRecord(nested); }), "is nested too deeply"));
  }
}

// Names of a column are not copied for each row, nor is a name of any length one.
TEST(ReaderLimits, NamesAreShort) {
  const std::string name(kLongestName + 1, 'n');
  const char* says = "is too long for a name; allowed: at most 1000 bytes";
  const std::string row = ",t4,1,0,none,1,1";
  const std::string runs = std::string(kHeader) + "\n";
  EXPECT_TRUE(Says(ErrorOf([&] { ParseRuns(runs + name + row + "\n", "r.csv"); }), says));
  EXPECT_TRUE(Says(ErrorOf([&] { ParseRuns(name + "," + runs, "r.csv"); }), says));
  EXPECT_TRUE(Says(ErrorOf([&] {
                     ParseRuns(std::string(kHeader) + ",hosts\nw" + row + "," + name + "\n", "r");
                   }),
                   says));
  EXPECT_TRUE(Says(ErrorOf([&] {
                     ReadAsCluster("{name: " + name +
                                   ", device: t4, nodes: 1, devices_per_node: 1}");
                   }),
                   says));
  EXPECT_TRUE(
      Says(ErrorOf([&] { ParseWorkload("name: " + name + "\nparameters: 1\n", "w"); }), says));
}

TEST(ReaderLimits, RowsShareTheNamesOfTheirColumns) {
  const auto runs =
      ParseRuns(std::string(kHeader) + ",x\nw,t4,1,0,none,1,1,a\nw,t4,1,0,none,1,1,b\n", "r.csv");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].extra_columns, runs[1].extra_columns);
}

// An error is a line that somebody reads, whatever the file has a million of.
TEST(ReaderLimits, ErrorsAreShort) {
  constexpr int kMany = 9'000;
  const std::string long_word(500'000, 'k');
  const std::string texts[] = {
      "{" + Times(kMany, "k#: 1, ") + "z: 1}",
      "{name: a, device: t4, nodes: 1, devices_per_node: 1, " + long_word + ": 1}",
      "{name: a, device: t4, nodes: " + long_word + "}",
      "{name: a, device: t4, nodes: 1, devices_per_node: 1, sources: {" + long_word + ": {}}}",
      "name: a\ndevice: t4\nnodes: 1\n" + long_word + ":\n  " + long_word + ": 1\n",
      Calibrated("scatter: {" + long_word + ": {compute: x}}"),
      Calibrated("log_covariance: \"1 " + long_word + "\""),
  };
  constexpr std::size_t kLongest = 1500;
  for (const std::string& text : texts) {
    const auto error = ErrorOf([&] { ReadAsCluster(text); });
    ASSERT_TRUE(error) << text.substr(0, 80);
    EXPECT_LT(std::string(error->what()).size(), kLongest) << text.substr(0, 80);
    const auto workload = ErrorOf([&] { ParseWorkload(text, "w.yaml"); });
    ASSERT_TRUE(workload);
    EXPECT_LT(std::string(workload->what()).size(), kLongest);
  }
  const auto columns = ErrorOf([&] { ParseRuns("a" + Times(kMany, ",c#") + "\n", "r.csv"); });
  EXPECT_TRUE(Says(columns, "this file has a, c0, c1, c2, c3, c4, c5, c6, c7, c8 and 8,991 more"));
  const std::string header = R"({"stepcast_profile": 1, "backend": "x", )";
  for (const std::string& rest :
       {"\"" + long_word + "\": 1}\n", "\"device\": \"" + long_word + "\"}\n",
        "\"device\": {\"name\": \"d\", \"kind\": \"cpu\", \"facts\": {\"" + long_word +
            "\": 1}}}\n"}) {
    const auto error = ErrorOf([&] { ParseComputeProfile(header + rest, "p.jsonl"); });
    ASSERT_TRUE(error);
    EXPECT_LT(std::string(error->what()).size(), kLongest);
  }
}

// Whatever is repeated, wherever: maps, long values, and aliases of what holds aliases.
TEST(ReaderLimits, AliasesRepeatWhatAFileCouldHold) {
  const std::string cluster = "name: a\ndevice: t4\nnodes: 9000\ndevices_per_node: 1\n";
  const std::string map = "&a {" + Times(30'000, "k#: 1, ") + "z: 1}";
  const std::string text = "&a " + std::string(500'000, 'x');
  const std::string many = Times(2000, ", *a");
  for (const std::string& file :
       {cluster + "hosts: [" + map + many + "]",
        cluster + "calibration: {sources: [" + map + many + "]}",
        cluster + "calibration: {sources: {k: " + text + Times(2000, ", k#: *a") + "}}",
        cluster + "x: [&a [1, 2, 3, 4, 5, 6, 7, 8], &b [*a" + Times(999, ", *a") + "], *b" +
            Times(999, ", *b") + "]"}) {
    EXPECT_TRUE(
        Says(ErrorOf([&] { ParseCluster(file, "c.yaml"); }), "repeats too much by aliases"));
  }
  EXPECT_TRUE(Says(ErrorOf([&] { ParseCluster(cluster + "hosts: &a [*a]", "c.yaml"); }),
                   "c.yaml:5: is an alias within its own anchor"));
  const std::string layer =
      "{kind: dense, tensors: &t [1000, 1000], forward_flop: 1, "
      "activation_bytes: 1}, {kind: dense, tensors: *t, forward_flop: 1, "
      "activation_bytes: 1}";
  EXPECT_EQ(ParseWorkload("name: n\nlayers: [" + layer + "]\n", "w.yaml").layers[1].tensors,
            (std::vector<std::int64_t>{1000, 1000}));
}

TEST(ReaderLimits, NoPartOfAnErrorIsEndless) {
  constexpr std::size_t kLongest = 5000;
  const std::string endless(1'000'000, 'z');
  for (const InputError& error :
       {InputError({endless, 1, endless}, endless, endless, endless),
        InputError({"f", 1, "k"}, "", "is wrong in " + endless, "that of " + endless)}) {
    EXPECT_LT(std::string(error.what()).size(), kLongest + error.place().file.size());
  }
}

TEST(JoinNames, ManyAreCounted) {
  const auto names = [](int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back("n" + std::to_string(i));
    return JoinNames(all);
  };
  EXPECT_EQ(names(0), "");
  EXPECT_EQ(names(3), "n0, n1, n2");
  EXPECT_EQ(names(20).find("more"), std::string::npos);
  EXPECT_EQ(names(21), "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 11 more");
  EXPECT_EQ(names(1200).substr(38), " and 1,190 more");
  EXPECT_EQ(names(1'000'010).substr(38), " and 1,000,000 more");
  EXPECT_EQ(JoinNames(std::vector<std::string>{std::string(100, 'n')}),
            std::string(60, 'n') + "...");
}

// Objects and arrays within one, as many as a megabyte holds, take no time by the square of that.
TEST(ReaderLimits, ManyObjectsWithinOneTakeNoTime) {
  for (const std::string& text :
       {"{" + Times(70'000, "\"k#\": {},") + "\"k\": {}}", "[" + Times(300'000, "{},") + "{}]"}) {
    const std::clock_t start = std::clock();
    ParseStrictJson(text, 10, {"a.json", 1, ""}, "what was saved");
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2);
  }
  const std::string deep = std::string(11, '[') + std::string(11, ']');
  EXPECT_TRUE(Says(ErrorOf([&] {
                     ParseStrictJson(deep, 10, {"a.json", 1, ""}, "less");
                   }),
                   "is nested too deeply"));
  const std::string twice = R"({"a": {"b": 1, "b": 2}})";
  EXPECT_TRUE(Says(ErrorOf([&] {
                     ParseStrictJson(twice, 10, {"a.json", 1, ""}, "once");
                   }),
                   "a.json:1: b: is given twice"));
  ParseStrictJson(R"([{"b": 1}, {"b": 2}, {"c": {"b": 3}, "b": 4}])", 3, {"a.json", 1, ""}, "");
}

TEST(ReaderLimits, JsonInItsOrderIsReadAsStrictly) {
  const auto in_order = [](const std::string& text) {
    return ParseStrictJsonInOrder(text, 2, {"a.json", 1, ""}, "an answer").dump();
  };
  const std::string text = R"({"z":1,"a":{"y":2,"b":3}})";
  EXPECT_EQ(in_order(text), text);
  EXPECT_EQ(ParseStrictJson(text, 2, {"a.json", 1, ""}, "").dump(), R"({"a":{"b":3,"y":2},"z":1})");
  EXPECT_TRUE(Says(ErrorOf([&] { in_order("[[[]]]"); }), "'[[[]]]' is nested too deeply"));
  EXPECT_TRUE(Says(ErrorOf([&] { in_order(R"({"b": 1, "b": 2})"); }), "b: is given twice"));
  EXPECT_TRUE(Says(ErrorOf([&] { in_order("{"); }), "is not JSON; allowed: an answer"));
}

}  // namespace
}  // namespace stepcast
