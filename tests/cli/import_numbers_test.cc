// Every number that import prints as JSON of the log of another program, beside what the readers
// found there, which tests/data/log_numbers_test.cc holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/io/runs.h"
#include "data/kineto/import_kineto.h"
#include "data/logs/collective_log.h"
#include "data/logs/link_log.h"
#include "data/logs/step_log.h"
#include "data/record/quantile.h"
#include "data/values/placement.h"
#include "tests/cli/number_table.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"
#ifdef STEPCAST_HAS_ONNX
#include "tests/support/onnx_model.h"
#endif

namespace stepcast::program {
namespace {

std::string Sample(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
}

void AddUnknown(const std::string& prefix, const UnknownLines& unknown, NumberTable* table) {
  (*table)[prefix + "/lines"] = unknown.count;
  for (std::size_t i = 0; i < unknown.first.size(); ++i) {
    (*table)[fmt::format("{}/first/{}/line", prefix, i)] = unknown.first[i].number;
  }
}

// ---- Tables of collectives.

// Two tests of nccl-tests in which no two numbers are alike: on three devices of one host and one
// of another, with a row that is too small, one that is wrong and one that has no time in place.
constexpr const char* kTwoTests =
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid  1 on  n1 device  0 [0x06] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid  1 on  n1 device  1 [0x07] NVIDIA A100\n"
    "#  Rank  2 Group  0 Pid  1 on  n2 device  0 [0x06] NVIDIA A100\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
    "1024 256 float sum -1 11.20 0.10 0.15 0 10.90 0.11 0.16 0\n"
    "1048576 262144 float sum -1 339.61 3.09 4.12 0 335.85 3.12 4.16 0\n"
    "2097152 524288 float sum -1 355.53 5.90 7.87 4 361.77 5.80 7.73 0\n"
    "4194304 1048576 float sum -1 455.53 9.21 12.28 0 N/A N/A N/A N/A\n"
    "no line of a table\n"
    "# Collective test starting: broadcast_perf\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n"
    "1048576 262144 float none 0 139.61 7.51 7.51 0 137.85 7.61 7.61 0\n";

TEST(ImportNumbers, OfTablesOfCollectives) {
  const TempFolder folder;
  const std::string path = folder.Write("nccl.txt", kTwoTests);
  const CollectiveLog log = ReadNcclTests(path);
  ASSERT_EQ(log.tables.size(), 2U);
  NumberTable table = {{"/runs", 2}, {"/small", 1}, {"/wrong_results", 1}};
  table["/others/0"] = "broadcast_perf";
  for (std::size_t t = 0; t < log.tables.size(); ++t) {
    const CollectiveTable& one = log.tables[t];
    const std::string prefix = fmt::format("/tables/{}", t);
    AddUnder(prefix,
             {{"/benchmark", one.name},
              {"/line", one.line},
              {"/placement", FormatPlacement(one.placement)},
              {"/hosts/0", one.hosts.at(0)},
              {"/hosts/1", one.hosts.at(1)},
              {"/device", one.device},
              {"/wrong_results", one.wrong}},
             &table);
    for (std::size_t i = 0; i < one.rows.size(); ++i) {
      const CollectiveRow& row = one.rows[i];
      AddUnder(fmt::format("{}/rows/{}", prefix, i),
               {{"/bytes", row.bytes},
                {"/out_of_place_s", Or(row.out_of_place_s)},
                {"/in_place_s", Or(row.in_place_s)},
                {"/bytes_per_s", Or(row.bytes_per_s)},
                {"/bus_bytes_per_s", Or(row.bus_bytes_per_s)},
                {"/line", row.line}},
               &table);
    }
  }
  AddUnknown("/files/0/unknown", log.unknown, &table);
  ExpectNumbers(JsonOf({"import", "nccl-tests", path}), table);

  // The runs are those of the rows that are large enough, in place where that was timed.
  const std::string output = folder.Path("runs.csv");
  const Json written = JsonOf({"import", "nccl-tests", path, "--output", output});
  table["/output"] = output;
  ExpectNumbers(written, table);
  const std::vector<stepcast::Run> runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 2U);
  const std::vector<CollectiveRow>& rows = log.tables[0].rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const CollectiveRow& row = rows[i + 1];
    EXPECT_EQ(runs[i].workload, fmt::format("message_{}", row.bytes));
    EXPECT_EQ(runs[i].plan.placement, (Placement{2, 1}));
    EXPECT_EQ(runs[i].plan.hosts, (std::vector<std::string>{"n1", "n2"}));
    EXPECT_NEAR(runs[i].step_time.si(), row.in_place_s.value_or(*row.out_of_place_s), 1e-12);
    EXPECT_NE(runs[i].source.find(fmt::format("line {}", row.line)), std::string::npos);
  }
}

TEST(ImportNumbers, OfTwoRanksOnALink) {
  const TempFolder folder;
  const std::string path = folder.Write("osu.txt",
                                        "# OSU MPI Latency Test v5.8\n# Size Latency (us)\n"
                                        "8 1.75\n1 1.59\n16 1.60\n"
                                        "# OSU MPI Bandwidth Test v5.8\n# Size Bandwidth (MB/s)\n"
                                        "1 3.5\n1024 9000.25\n2048 8000.5\n");
  ExpectNumbers(JsonOf({"import", "osu", path}), {{"/link/rtt_s/value", 2 * 1.59e-6},
                                                  {"/measured/0/name", "bandwidth_bit_per_s"},
                                                  {"/measured/0/value", 8 * 9000.25e6},
                                                  {"/diagnose/0", "--ping \"3.18 us\""},
                                                  {"/files/0/unknown/lines", 0}});
}

// ---- Traces.

TEST(ImportNumbers, OfATrace) {
  const TempFolder folder;
  const std::string trace = Sample("kineto/steps-on-a-gpu");
  const KinetoSummary summary = ImportKineto(trace).summary;
  ASSERT_FALSE(summary.kernels.empty());
  const Json printed = JsonOf({"import", "kineto", trace, "--output", folder.Path("p.jsonl")});
  EXPECT_EQ(printed.at("steps"), summary.steps);
  EXPECT_EQ(printed.at("step_time_s"), summary.step_time_s);
  EXPECT_EQ(printed.at("device_busy_share"), summary.device_busy_share);
  ASSERT_EQ(printed.at("kernels").size(), summary.kernels.size());
  bool several = false;
  for (std::size_t i = 0; i < summary.kernels.size(); ++i) {
    const KernelTime& kernel = summary.kernels[i];
    const Json& own = printed.at("kernels").at(i);
    EXPECT_EQ(own.at("name"), kernel.name);
    EXPECT_EQ(own.at("calls"), kernel.calls);
    EXPECT_EQ(own.at("total_s"), kernel.total_s);
    EXPECT_EQ(own.at("mean_s"), kernel.mean_s);
    several = several || kernel.calls > 1;
  }
  EXPECT_TRUE(several) << "where the mean is not the sum";
  double calls = 0;
  for (const MeasuredSamples& samples : ImportKineto(trace).profile.samples) {
    calls += static_cast<double>(samples.seconds.size());
  }
  EXPECT_EQ(printed.at("calls"), calls);
}

// Of what belongs to no layer the five that took longest are told, the longest first; a name of the
// trace steers no terminal.
TEST(ImportNumbers, OfATraceInWordsTheLongestFirst) {
  std::string events;
  const auto add = [&](const std::string& name, int thread, int start, int duration,
                       const std::string& more = "") {
    events += fmt::format(
        R"({}{{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 7, "tid": {}, "ts": {}, )"
        R"("dur": {}, "args": {{{}}}}})",
        events.empty() ? "" : ",\n", name, thread, start, duration, more);
  };
  add("aten::relu", 1, 10, 20,
      R"("Sequence number": 5, "Fwd thread id": 0, )"
      R"("Input Dims": [[4, 6]], "Input type": ["float"])");
  // Neither in the order of their names nor in that of their times.
  const std::pair<const char*, int> others[] = {
      {"aten::sort", 300},           {"aten::topk", 50},         {"aten::cumsum", 250},
      {R"(a\u001b[2Jb\u009b)", 350}, {"aten::multinomial", 100}, {"aten::nonzero", 200},
      {"aten::bincount", 150}};
  int start = 1000;
  for (const auto& [name, duration] : others) {
    add(name, 1, start, duration);
    start += 400;
  }
  add("autograd::engine::evaluate_function: ReluBackward0", 2, 5000, 60,
      R"("Sequence number": 5, "Fwd thread id": 1)");
  const TempFolder folder;
  const std::string trace = folder.Write(
      "trace.json",
      "{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [\n" + events + "\n]}\n");
  const ProcessResult result =
      Stepcast({"import", "kineto", trace, "--output", folder.Path("p.jsonl")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("stepcast: no layer: 350 us of a\\x1b[2Jb\\xc2\\x9b\n"
                            "stepcast: no layer: 300 us of aten::sort\n"
                            "stepcast: no layer: 250 us of aten::cumsum\n"
                            "stepcast: no layer: 200 us of aten::nonzero\n"
                            "stepcast: no layer: 150 us of aten::bincount\n"
                            "stepcast: and 2 more: --json lists them\n"),
            std::string::npos)
      << result.err;
}

// ---- Links.

TEST(ImportNumbers, OfEachKindOfLog) {
  struct Kind {
    const char* name;
    LinkLog (*read)(const std::string& path);
    std::vector<std::string> samples;
  };
  const Kind kinds[] = {
      {"iperf3", ReadIperf3, {"two-streams.json", "told-a-rate.json", "udp.json"}},
      {"ping", ReadPing, {"quiet-with-loss.txt", "replies.txt"}},
      {"ethtool", ReadEthtool, {"gigabit.txt"}},
      {"ss", ReadSs, {"three-connections.txt", "one-of-bbr.txt"}}};
  const char* const suffixes[] = {"_bit_per_s", "_s", "_bytes", ""};  // of LinkUnit
  for (const Kind& kind : kinds) {
    for (const std::string& sample : kind.samples) {
      const std::string path = Sample(std::string(kind.name) + "/" + sample);
      SCOPED_TRACE(path);
      const LinkLog log = kind.read(path);
      NumberTable table;
      if (log.link.rtt) table["/link/rtt_s/value"] = log.link.rtt->si();
      if (log.link.loss) table["/link/loss/value"] = *log.link.loss;
      if (log.link.bandwidth) {
        table["/link/bandwidth_bit_per_s/value"] = 8 * log.link.bandwidth->si();
      }
      if (log.link.congestion_control) {
        table["/link/congestion_control/value"] =
            kCongestionControlNames[static_cast<int>(*log.link.congestion_control)];
      }
      for (std::size_t i = 0; i < log.findings.size(); ++i) {
        const LinkFinding& f = log.findings[i];
        const std::string prefix = fmt::format("/measured/{}", i);
        table[prefix + "/name"] = f.name + suffixes[static_cast<int>(f.unit)];
        table[prefix + "/value"] = f.value;
      }
      for (std::size_t i = 0; i < log.flags.size(); ++i) {
        table[fmt::format("/diagnose/{}", i)] = log.flags[i];
      }
      AddUnknown("/files/0/unknown", log.unknown, &table);
      ExpectNumbers(JsonOf({"import", kind.name, path}), table);
    }
  }
}

// ---- Steps of a training.

// `factor` makes a number of the log a step's time.
void ExpectSteps(const std::string& path, const StepLogOptions& options, double factor,
                 const Words& words) {
  SCOPED_TRACE(path);
  const StepLog log = ReadStepLog(path, options);
  const LoggedSteps steps = ChooseSteps(log, {}, path);
  NumberTable table = {{"/form", steps.form.name},
                       {"/step_time_s", steps.mean_s * factor},
                       {"/numbers", steps.numbers},
                       {"/steps", steps.steps},
                       {"/warm_up", steps.warm_up},
                       {"/with_validation", steps.with_others},
                       {"/by_rate", steps.by_rate},
                       {"/begun_anew", steps.begun_anew},
                       {"/validation_lines", log.validation},
                       {"/lines_without_time", log.without_time}};
  // The quantiles of fewer steps would say little.
  if (steps.step_s.size() >= 10) {
    table["/p50_s"] = Quantile(steps.step_s, 0.5) * factor;
    table["/p95_s"] = Quantile(steps.step_s, 0.95) * factor;
    table["/p99_s"] = Quantile(steps.step_s, 0.99) * factor;
  }
  int first = 0;
  int last = 0;
  for (std::size_t i = 0; i < steps.ranks.size(); ++i) {
    const StepSeries& series = steps.ranks[i];
    const std::string prefix = fmt::format("/ranks/{}", i);
    table[prefix + "/numbers"] = series.numbers;
    table[prefix + "/warm_up"] = series.warm_up;
    if (series.numbers == 0) continue;
    table[prefix + "/step_time_s"] = series.mean_s() * factor;
    if (steps.slowest && i != *steps.slowest) continue;
    first = first == 0 ? series.first_line : std::min(first, series.first_line);
    last = std::max(last, series.last_line);
  }
  table["/first_line"] = first;
  table["/last_line"] = last;
  for (const auto& [title, lines] : log.bars) table["/other_bars/" + title] = lines;
  AddUnknown("/unknown", log.unknown, &table);
  ExpectNumbers(
      JsonOf(Words{"import", "steps", path, "--warm-up", std::to_string(options.warm_up)} + words),
      table);
}

TEST(ImportNumbers, OfStepsOfEachKindOfLog) {
  const Words four = {"--local-batch", "32", "--placement", "2-2"};
  for (const int warm_up : {0, 10, 20}) {
    const StepLogOptions options = {warm_up, nullptr};
    for (const char* sample : {"keras-2", "keras-2-bars", "keras-3", "trainer", "tensorflow"}) {
      ExpectSteps(Sample("step_log/") + sample, options, 1, {});
    }
    ExpectSteps(Sample("step_log/pytorch"), options, 3, {"--accumulation", "3"});
    ExpectSteps(Sample("step_log/horovod"), options, 32, four);
    ExpectSteps(Sample("step_log/tf_cnn_benchmarks"), options, 128, four);
    ExpectSteps(Sample("step_log/mxnet"), options, 64, four + Words{"--samples-of", "node"});
    ExpectSteps(Sample("step_log/epochs"), options, 1.0 / 500, {"--steps-per-epoch", "500"});
  }
}

// Ranks that are alike, whichever of them the log tells of first.
TEST(ImportNumbers, OfRanksThatAreAlike) {
  const TempFolder folder;
  for (const int first : {0, 1}) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      for (const int rank : {first, 1 - first}) {
        text += fmt::format("[rank{}]:Epoch: [0][{}/99]\tTime  0.350 ( 0.4)\n", rank, i);
      }
    }
    const std::string path = folder.Write(std::to_string(first), text);
    ExpectSteps(path, {0, nullptr}, 1, {});
    const Json json = JsonOf({"import", "steps", path, "--warm-up", "0"});
    EXPECT_EQ(json.at("first_line"), 1);
    EXPECT_EQ(json.at("last_line"), 60);
  }
}

TEST(ImportNumbers, OfAsManyStepsAsShowQuantiles) {
  const TempFolder folder;
  for (const int steps : {9, 10, 60}) {
    std::string text;
    for (int i = 0; i < steps; ++i) {
      text += fmt::format("Epoch: [0][{}/99]\tTime  {} ( 0.6)\n", i, 0.1 + 0.01 * (i * 7 % 60));
    }
    ExpectSteps(folder.Write(std::to_string(steps), text), {0, nullptr}, 1, {});
  }
}

// ---- Networks.

#ifdef STEPCAST_HAS_ONNX
TEST(ImportNumbers, OfANetwork) {
  Model m;
  m.Weight("volume", {4, 3, 2, 3, 3});  // which cannot be measured
  m.Weight("dense", {64, 10});
  std::string x = m.Node("Conv", {m.Input("x", {"batch", "3", "2", "4", "4"}), "volume"},
                         Model::Ints{"pads", {0, 1, 1, 0, 1, 1}});
  x = m.Node("MatMul", {m.Node("Flatten", {x}), "dense"});
  m.Output(x);
  const TempFolder folder;
  const std::string path = folder.Write("net.onnx", m.proto.SerializeAsString());
  const std::string output = folder.Path("net.yaml");
  ExpectNumbers(JsonOf({"import", "onnx", path, "--output", output}),
                {{"/workload", "net"},
                 {"/layers", 2},
                 {"/measurable_layers", 1},
                 {"/trainable_parameters", 4 * 3 * 2 * 3 * 3 + 640},
                 {"/forward_flop", 2 * (4 * 16 * 3 * 2 * 9) + 2 * 640},
                 {"/output", output}});
}
#endif

// ---- Rows.

TEST(ImportNumbers, OfARowThatIsWritten) {
  const TempFolder folder;
  const std::string output = folder.Path("runs.csv");
  JsonOf({"import", "steps", Sample("step_log/lightning"), "--device", "v100", "--workload",
          "resnet50", "--local-batch", "8", "--output", output});
  const std::vector<stepcast::Run> runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 1U);
  const LoggedSteps steps =
      ChooseSteps(ReadStepLog(Sample("step_log/lightning"), {20, nullptr}), {}, "");
  EXPECT_NEAR(runs[0].step_time.si(), steps.mean_s, 1e-9);
  ASSERT_EQ(*runs[0].extra_columns, std::vector<std::string>{"measured_steps"});
  EXPECT_EQ(std::stod(runs[0].extra.at(0)), steps.steps);
}

}  // namespace
}  // namespace stepcast::program
