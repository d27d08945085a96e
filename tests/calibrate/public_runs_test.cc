// Public measurements as an operator would use them: some of a cluster's runs are given to
// Calibrate, others are predicted. Only what the sources state is stated; nothing is tuned to a
// data set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "data/io/machines.h"
#include "data/values/device_name.h"
#include "data/workloads/catalog.h"
#include "model/step/parameter_specs.h"
#include "predictor/predictor.h"
#include "tests/support/datasets.h"
#include "tests/support/wide_csv.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class
using Workloads = std::map<std::string, Workload>;

// Errors of predictions, as shares.
struct Score {
  std::vector<double> ratios;  // predicted / measured

  void Add(const Score& other) {
    ratios.insert(ratios.end(), other.ratios.begin(), other.ratios.end());
  }
  double Mape() const {
    double sum = 0;
    for (const double ratio : ratios) sum += std::abs(ratio - 1);
    return sum / static_cast<double>(ratios.size());
  }
  double Median() const {
    std::vector<double> errors;
    for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
    std::sort(errors.begin(), errors.end());
    const std::size_t half = errors.size() / 2;
    return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  }
  double Worst() const {
    double worst = 0;
    for (const double ratio : ratios) worst = std::max(worst, std::abs(ratio - 1));
    return worst;
  }
  double Within(double share) const {
    const auto good = std::count_if(ratios.begin(), ratios.end(),
                                    [&](double ratio) { return std::abs(ratio - 1) <= share; });
    return static_cast<double>(good) / static_cast<double>(ratios.size());
  }
  void Print(const std::string& what) const {
    std::printf("[ measured ] %-44s %3zu rows, MAPE %5.1f %%, median %5.1f %%, worst %5.1f %%\n",
                what.c_str(), ratios.size(), 100 * Mape(), 100 * Median(), 100 * Worst());
  }
};

Cluster Nodes(int nodes, int devices, const std::string& device) {
  Cluster cluster;
  cluster.name = cluster.title = "public";
  cluster.device = device;
  cluster.nodes = nodes;
  cluster.devices_per_node = devices;
  return cluster;
}

// `unbounded` names a parameter that may reach the end of its range.
Cluster Fit(const Cluster& cluster, const Runs& runs, const Workloads& workloads,
            const std::string& unbounded = "") {
  CalibrationProblem problem;
  problem.cluster = cluster;
  problem.runs = runs;
  problem.workloads = workloads;
  const CalibrationOutcome outcome = Calibrate(problem);
  EXPECT_TRUE(outcome.IsUsable()) << outcome.message;
  // What had to be fitted lies strictly within its physical range.
  for (const ParameterEstimate& p : outcome.cluster.calibration->parameters) {
    for (const ParameterSpec& spec : kClusterParameterSpecs) {
      if (p.scope != kClusterScope || p.name != spec.name || p.name == unbounded) continue;
      EXPECT_GT(p.value, spec.low * 1.001) << p.name;
      EXPECT_LT(p.value, spec.high * 0.999) << p.name;
    }
  }
  return outcome.cluster;
}

Score Judge(const Cluster& cluster, const Runs& runs, const Workloads& workloads) {
  Score score;
  for (const auto& run : runs) {
    const Predictor predictor(cluster, workloads.at(run.workload), std::nullopt, run.device);
    score.ratios.push_back(predictor.PredictStep(run.plan).total() / run.step_time);
  }
  return score;
}

Runs Where(const Runs& runs, const std::function<bool(const Run&)>& keep) {
  Runs kept;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(kept), keep);
  return kept;
}

Run MakeRun(const std::string& workload, const std::string& device, double seconds,
            const InputPlace& place) {
  Run run;
  run.workload = workload;
  run.device = device;
  run.step_time = Seconds(seconds);
  run.place = place;
  return run;
}

// ---- Gloo rings and parameter servers over emulated links with loss.

TEST(PublicRuns, LosslessStepsOfTheLabPredictLossyOnes) {
  const auto path = DatasetFolder("../lab/gloo_sweep_cases.csv");
  if (!path) GTEST_SKIP() << MissingDataset("../lab/gloo_sweep_cases.csv");
  // The lab counts 1514 bytes a frame, and its switch adds 0.3 ms to a round trip.
  constexpr double kRateShare = 1538.0 / 1514;
  constexpr double kSwitchMs = 0.3;
  Runs runs;
  Workloads workloads;
  const CsvTable table = CsvTable::Read(*path);
  for (const CsvRow& fields : table.rows()) {
    const WideRow row(table, fields);
    if (row.Text("op") == "ddp" || !row.Has("mean_s")) continue;
    const double compute = row.Number("compute_s");
    std::string name = "message " + row.Text("bytes");
    Workload workload = Message(name, row.Number("bytes"));
    if (compute > 0) {
      // An emulated device: its compute time is a workload of its own.
      workload.name = name += " compute " + row.Text("compute_s");
      workload.communication_only = false;
    }
    workloads[name] = workload;
    stepcast::Run run = MakeRun(name, "none", row.Number("mean_s"), row.place());
    Plan& plan = run.plan;
    plan.placement = OnNodesOf(1, row.Count("workers"));
    plan.servers = row.Count("servers");
    plan.strategy = plan.servers > 0 ? Strategy::kPsSync : Strategy::kRing;
    plan.server.pipelined = plan.servers > 0;
    plan.link.bandwidth = MegabitsPerSecond(row.Number("link_mbit") * kRateShare);
    plan.link.rtt = Milliseconds(row.Number("rtt_ms") + kSwitchMs);
    plan.link.loss = row.Number("loss_pct") / 100;
    plan.link.congestion_control = row.Text("cc") == "bbr"    ? CongestionControl::kBbr
                                   : row.Text("cc") == "reno" ? CongestionControl::kReno
                                                              : CongestionControl::kCubic;
    plan.bucket = workload.gradient_bytes / row.Number("buckets") * 1.0001;
    runs.push_back(run);
  }
  const auto lossless = [](const auto& run) { return *run.plan.link.loss == 0; };
  const auto lossy = [&](const auto& run) { return !lossless(run); };
  const Cluster cluster = Fit(Nodes(16, 1, "none"), Where(runs, lossless), workloads);
  const Score fitted = Judge(cluster, Where(runs, lossless), workloads);
  const Score judged = Judge(cluster, Where(runs, lossy), workloads);
  fitted.Print("lab, without loss (fitted)");
  judged.Print("lab, with loss (nothing fitted to loss)");
  EXPECT_EQ(judged.ratios.size(), 25U);
  EXPECT_LE(fitted.Median(), 0.05);
  EXPECT_LE(judged.Median(), 0.25);
}

// ---- All-reduce benchmarks.

TEST(PublicRuns, HalfOfTheShapedLinksPredictsTheOther) {
  const auto path = DatasetFolder("tc_netem_collectives.csv");
  if (!path) GTEST_SKIP() << MissingDataset("tc_netem_collectives.csv");
  Runs halves[2];
  Workloads workloads;
  std::size_t count = 0;
  for (const WideRow& row : ReadWide(*path)) {
    if (row.Text("strategy") != "allreduce" || !row.Mentions("Gloo")) continue;
    const bool large = row.Text("model").find("256") != std::string::npos;
    const std::string name = large ? "256 MiB" : "128 MiB";
    workloads[name] = Message(name, (large ? 256 : 128) * 1048576.0);
    stepcast::Run run = MakeRun(name, "v100", row.Number("sync_time_s"), row.place());
    run.plan.placement = OnNodesOf(1, row.Count("workers"));
    run.plan.strategy = Strategy::kRing;
    run.plan.bucket = Mebibytes(512.0);
    if (row.Has("link_gbps")) {
      run.plan.link.bandwidth = GigabitsPerSecond(row.Number("link_gbps"));
    }
    // The delay is set at both ends.
    if (row.Has("latency_ms")) run.plan.link.rtt = Milliseconds(2 * row.Number("latency_ms"));
    halves[count++ % 2].push_back(run);
  }
  for (const int fitted : {0, 1}) {
    const Cluster cluster = Fit(Nodes(8, 1, "v100"), halves[fitted], workloads);
    const Score score = Judge(cluster, halves[1 - fitted], workloads);
    score.Print("shaped links, Gloo all-reduce, other half");
    EXPECT_EQ(score.ratios.size(), 8U);
    EXPECT_LE(score.Mape(), 0.12);
  }
}

TEST(PublicRuns, FourAndSixteenRanksPredictEightAndThirtyTwo) {
  const auto path = DatasetFolder("deepbench_allreduce.csv");
  if (!path) GTEST_SKIP() << MissingDataset("deepbench_allreduce.csv");
  constexpr double kLeastBytes = 1e6;
  std::map<std::string, Runs> systems;
  Workloads workloads;
  for (const WideRow& row : ReadWide(*path)) {
    const double bytes = row.Note("message_bytes");
    if (bytes < kLeastBytes) continue;
    const std::string name = std::to_string(static_cast<long long>(bytes)) + " B";
    workloads[name] = Message(name, bytes);
    stepcast::Run run = MakeRun(name, "x", row.Number("sync_time_s"), row.place());
    run.plan.placement = OnNodesOf(row.Count("gpus_per_node"), row.Count("workers"));
    run.plan.strategy = Strategy::kRing;
    run.plan.bucket = Mebibytes(512.0);
    // One library on one kind of machine.
    const char* library = row.Mentions("OSU") ? "OSU" : row.Mentions("MLSL") ? "MLSL" : "NCCL";
    systems[row.Text("gpu") + ", " + library].push_back(run);
  }
  Score all;
  for (const auto& [system, runs] : systems) {
    const auto ranks = [](int a, int b) {
      return [a, b](const auto& run) { return run.plan.workers() == a || run.plan.workers() == b; };
    };
    const Runs fitted = Where(runs, ranks(4, 16));
    const Runs judged = Where(runs, ranks(8, 32));
    if (fitted.empty() || judged.empty()) continue;
    const Score score = Judge(Fit(Nodes(32, 8, "x"), fitted, workloads), judged, workloads);
    score.Print("all-reduce, " + system);
    all.Add(score);
  }
  all.Print("all-reduce, all systems");
  EXPECT_GE(all.ratios.size(), 60U);
  EXPECT_LE(all.Median(), 0.15);
}

// ---- Asynchronous parameter servers.

struct Cmdare {
  Runs runs;
  Workloads workloads;
};

Cmdare ReadCmdare(const std::string& path) {
  Cmdare data;
  for (const WideRow& row : ReadWide(path)) {
    const std::string name = row.Text("model");
    data.workloads[name] = Network(name, row.Note("params"));
    Run run = MakeRun(name, "k80", row.Number("step_time_s"), row.place());
    run.plan.placement = OnNodesOf(1, row.Count("workers"));
    run.plan.servers = 1;
    run.plan.strategy = Strategy::kPsAsync;
    run.plan.local_batch = row.Count("local_batch");
    if (row.Has("latency_ms")) run.plan.link.rtt = Milliseconds(row.Number("latency_ms"));
    data.runs.push_back(run);
  }
  return data;
}

TEST(PublicRuns, FourAsynchronousWorkersPredictEight) {
  const auto path = DatasetFolder("cmdare_ps_async_scaling.csv");
  if (!path) GTEST_SKIP() << MissingDataset("cmdare_ps_async_scaling.csv");
  const Cmdare data = ReadCmdare(*path);
  const auto few = [](const auto& run) { return run.plan.workers() <= 4; };
  const auto many = [&](const auto& run) { return !few(run); };
  const Cluster cluster = Fit(Nodes(9, 1, "k80"), Where(data.runs, few), data.workloads);
  const Score score = Judge(cluster, Where(data.runs, many), data.workloads);
  score.Print("asynchronous K80, 5 to 8 workers");
  EXPECT_EQ(score.ratios.size(), 16U);
  EXPECT_LE(score.Mape(), 0.10);
}

TEST(PublicRuns, ShortRoundTripsPredictLongOnes) {
  const auto path = DatasetFolder("cmdare_ps_latency.csv");
  if (!path) GTEST_SKIP() << MissingDataset("cmdare_ps_latency.csv");
  const Cmdare data = ReadCmdare(*path);
  const auto near = [](const auto& run) { return run.plan.link.rtt->in(kMilliseconds) < 1; };
  const auto far = [&](const auto& run) { return !near(run); };
  const Cluster cluster = Fit(Nodes(2, 1, "k80"), Where(data.runs, near), data.workloads);
  for (const auto& [name, workload] : data.workloads) {
    const Runs judged =
        Where(data.runs, [&](const auto& run) { return far(run) && run.workload == name; });
    if (judged.empty()) continue;
    const Score score = Judge(cluster, judged, data.workloads);
    score.Print("asynchronous K80 at 30.3 ms, " + name);
    EXPECT_LE(score.Mape(), 0.20) << name;
  }
}

// ---- Synchronous against asynchronous.

TEST(PublicRuns, AsynchronousStepsPredictTheRatioToSynchronousOnes) {
  const auto path = DatasetFolder("syncswitch_bsp_vs_asp.csv");
  const auto servers = DatasetFolder("cmdare_ps_async_scaling.csv");
  if (!path || !servers) GTEST_SKIP() << MissingDataset("syncswitch_bsp_vs_asp.csv");
  // The rate of a server on this cloud's machines is known from another data set.
  const Cmdare known = ReadCmdare(*servers);
  Runs runs = known.runs;
  Workloads workloads = known.workloads;
  const std::string name = "resnet50";
  workloads[name] = *FindWorkload(name);
  Runs synchronous;
  for (const WideRow& row : ReadWide(*path)) {
    if (row.Text("model").find("ResNet-50") == std::string::npos) continue;
    stepcast::Run run = MakeRun(name, "k80", row.Number("step_time_s"), row.place());
    run.plan.placement = OnNodesOf(1, row.Count("workers"));
    run.plan.servers = row.Count("servers");
    run.plan.local_batch = row.Count("local_batch");
    run.plan.server.colocated = true;
    run.plan.server.sharding = Sharding::kRoundRobin;  // TensorFlow's default
    run.plan.strategy = row.Text("strategy") == "ps_async" ? Strategy::kPsAsync : Strategy::kPsSync;
    (run.plan.strategy == Strategy::kPsAsync ? runs : synchronous).push_back(run);
  }
  const Cluster cluster = Fit(Nodes(16, 1, "k80"), runs, workloads);
  const Score score = Judge(cluster, synchronous, workloads);
  score.Print("synchronous K80, from asynchronous steps");
  EXPECT_GE(synchronous.size(), 20U);
  EXPECT_LE(score.Mape(), 0.20);
}

// ---- Parameter servers against rings.

TEST(PublicRuns, ServersAgainstRings) {
  const auto path = DatasetFolder("horovod_2017_ps_vs_ring.csv");
  if (!path) GTEST_SKIP() << MissingDataset("horovod_2017_ps_vs_ring.csv");
  const std::map<std::string, std::string> names = {
      {"InceptionV3", "inception_v3"}, {"ResNet-101", "resnet101"}, {"VGG-16", "vgg16"}};
  Workloads workloads;
  for (const auto& [title, name] : names) workloads[name] = *FindWorkload(name);
  // A stack is a piece of software on one of the two clusters, which a calibration of its own
  // describes; compute comes from the same cluster's single devices.
  std::map<std::string, Runs> single;
  std::map<std::pair<std::string, std::string>, Runs> stacks;
  for (const WideRow& row : ReadWide(*path)) {
    const std::string& notes = row.Text("notes");
    const std::string size = notes.find("cluster: 16") != std::string::npos ? "64" : "16";
    stepcast::Run run =
        MakeRun(names.at(row.Text("model")), "pascal", row.Number("step_time_s"), row.place());
    run.plan.local_batch = 64;
    if (row.Text("strategy") == "single") {
      run.plan.strategy = Strategy::kNone;
      single[size].push_back(run);
      continue;
    }
    run.plan.placement = OnNodesOf(4, row.Count("workers"));
    run.plan.link.bandwidth = GigabitsPerSecond(row.Number("link_gbps"));
    run.plan.strategy = Strategy::kRing;
    if (row.Text("strategy") == "ps_sync") {
      run.plan.strategy = Strategy::kPsSync;
      run.plan.servers = run.plan.nodes();  // not stated; one server a node
      run.plan.server.colocated = true;
      run.plan.server.pipelined = true;
    } else {
      run.plan.bucket = Mebibytes(64.0);  // Horovod's fusion buffer
    }
    stacks[{size, notes.substr(0, notes.find(';'))}].push_back(run);
  }
  Score all;
  std::map<std::pair<std::string, std::string>, std::map<bool, std::pair<double, double>>> best;
  for (const auto& [key, runs] : stacks) {
    Runs fitted = single.at(key.first);
    fitted.insert(fitted.end(), runs.begin(), runs.end());
    // Three rows of servers with variables beside the processors hide more than a backward pass:
    // TensorFlow's pull also runs beside the next forward pass, which the formula leaves out.
    const Cluster cluster = Fit(Nodes(16, 4, "pascal"), fitted, workloads, "overlap_share");
    const Score score = Judge(cluster, runs, workloads);
    score.Print(key.first + " devices, " + key.second);
    all.Add(score);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      auto& cell = best[{key.first, runs[i].workload}]
                       .try_emplace(UsesServers(runs[i].plan.strategy), 1e9, 1e9)
                       .first->second;
      const double measured = runs[i].step_time.si();
      cell.first = std::min(cell.first, measured);
      cell.second = std::min(cell.second, measured * score.ratios[i]);
    }
  }
  all.Print("servers against rings, all stacks (fitted)");
  for (const auto& [cell, by_servers] : best) {
    const auto& ring = by_servers.at(false);
    const auto& servers = by_servers.at(true);
    EXPECT_EQ(ring.first < servers.first, ring.second < servers.second)
        << cell.first << " " << cell.second;
  }
  std::printf("[ measured ] %.0f %% of %zu steps within 25 %%\n", 100 * all.Within(0.25),
              all.ratios.size());
  EXPECT_GE(all.Within(0.25), 0.80);
}

// ---- The low-bandwidth paper's own cells: two networks, two training loops, three batches, one to
// three nodes on 1 Gbit/s.

// A network in one of the loops; its trainable parameters are counted from the two programs.
struct LowBandwidthJob {
  std::string cells;  // in the names of its logs
  int accumulation_steps;
  double parameters;
};
const LowBandwidthJob kLowBandwidthJobs[] = {{"ResNet50_sync", 1, 25.84e6},
                                             {"EfficientNetB0_sync", 1, 5.52e6},
                                             {"ResNet50_ctl", 4, 23.94e6},
                                             {"EfficientNetB0_ctl", 4, 4.26e6}};

// The runs of a job by its cells' names; without those that ran out of memory, and without an
// earlier series, 734..., which had a host on a slower link (the data set's description).
Runs LowBandwidthRuns(const std::string& path, const LowBandwidthJob& job,
                      int bytes_per_parameter) {
  Runs runs;
  for (const WideRow& row : ReadWide(path)) {
    const std::string& log = row.Text("source");
    if (log.find(job.cells) == std::string::npos || log.find("_734") != std::string::npos) continue;
    if (!row.Has("step_time_s")) continue;
    runs.push_back(MakeRun(job.cells, "rtx_4070", row.Number("step_time_s"), row.place()));
    Plan& plan = runs.back().plan;
    plan.placement = OnNodesOf(1, row.Count("nodes"));
    plan.strategy = plan.nodes() == 1 ? Strategy::kNone : Strategy::kRing;
    plan.overlap = Overlap::kNone;  // the gradients are packed into one all-reduce
    plan.local_batch = row.Count("local_batch");
    plan.accumulation_steps = job.accumulation_steps;
    plan.bytes_per_parameter = bytes_per_parameter;
  }
  return runs;
}

// Calibrated on all runs of one node and the first run of two, a ResNet-50 that exchanges after
// every batch; the errors of all other runs, by job.
std::map<std::string, Score> LowBandwidthScores(const std::string& path, int bytes_of_the_loop) {
  Workloads workloads;
  Runs fitted;
  Runs judged;
  bool two = false;
  for (const LowBandwidthJob& job : kLowBandwidthJobs) {
    workloads[job.cells] = Network(job.cells, job.parameters);
    const int bytes = job.accumulation_steps == 1 ? 4 : bytes_of_the_loop;
    for (const stepcast::Run& run : LowBandwidthRuns(path, job, bytes)) {
      const bool first_of_two = run.plan.nodes() == 2 && !std::exchange(two, true);
      (run.plan.nodes() == 1 || first_of_two ? fitted : judged).push_back(run);
    }
  }
  Cluster cluster = Nodes(5, 1, "rtx_4070");
  cluster.link.bandwidth = GigabitsPerSecond(1.0);
  cluster = Fit(cluster, fitted, workloads);
  std::map<std::string, Score> scores;
  for (const LowBandwidthJob& job : kLowBandwidthJobs) {
    scores[job.cells] =
        Judge(cluster, Where(judged, [&](const auto& run) { return run.workload == job.cells; }),
              workloads);
  }
  return scores;
}

TEST(PublicRuns, LowBandwidthCells) {
  const auto path = DatasetFolder("ufrgs_low_bandwidth_cells.csv");
  if (!path) GTEST_SKIP() << MissingDataset("ufrgs_low_bandwidth_cells.csv");
  // The accumulating loop sums its gradients as float16 and then once more as float32.
  const std::map<std::string, Score> six = LowBandwidthScores(*path, 6);
  const std::map<std::string, Score> four = LowBandwidthScores(*path, 4);
  Score all;
  Score loop;
  Score loop_of_four;
  for (const LowBandwidthJob& job : kLowBandwidthJobs) {
    six.at(job.cells).Print(job.cells);
    all.Add(six.at(job.cells));
    if (job.accumulation_steps == 1) continue;
    loop.Add(six.at(job.cells));
    loop_of_four.Add(four.at(job.cells));
  }
  all.Print("all cells");
  loop.Print("accumulating ones");
  loop_of_four.Print("accumulating ones, taken for float32 alone");
  EXPECT_GE(all.ratios.size(), 40U);
  EXPECT_LE(all.Median(), 0.06);
  EXPECT_LE(loop.Median(), 0.10);
  EXPECT_GT(loop_of_four.Median(), 2 * loop.Median());
}

// ---- Models that are shared out, and rare synchronisation.

// MPT of sequences of 2,048 tokens with all shared out (FullyShardedDataParallel) in bfloat16:
// tokens a second and device (mosaicml/llm-foundry at 061f2c7c,
// scripts/train/benchmarking/README.md). Nothing is computed twice (activation checkpointing).
struct MptRun {
  int devices;
  int local_batch;
  int accumulation_steps;
  double tokens_per_s;
};
struct MptModel {
  const char* name;
  double parameters;
  std::vector<MptRun> runs;
};
// Nodes of eight A100 of 40 GB and 8 x 200 Gbit/s.
const std::vector<MptModel> kMptOnA100 = {
    {"mpt_125m",
     125311488,
     {{8, 26, 3, 136334},
      {16, 26, 1, 130535},
      {32, 26, 1, 127122},
      {64, 26, 1, 125234},
      {128, 26, 1, 123936}}},
    {"mpt_350m",
     355985408,
     {{8, 16, 4, 55995},
      {16, 18, 1, 55413},
      {32, 18, 1, 53811},
      {64, 18, 1, 52689},
      {128, 18, 1, 51934}}},
    {"mpt_760m",
     760470528,
     {{8, 12, 4, 30173},
      {16, 12, 1, 29607},
      {32, 12, 1, 29648},
      {64, 12, 1, 29344},
      {128, 12, 1, 28940}}},
    {"mpt_1b",
     1315950592,
     {{8, 8, 8, 19271}, {16, 8, 1, 19085}, {64, 10, 1, 19001}, {128, 10, 1, 18647}}},
    {"mpt_3b",
     2651837440,
     {{8, 5, 8, 10065}, {16, 5, 1, 9750}, {32, 6, 1, 9914}, {64, 6, 1, 9736}, {128, 6, 1, 9538}}},
    {"mpt_7b",
     6658859008,
     {{8, 12, 4, 3679},
      {16, 16, 1, 3645},
      {32, 18, 1, 3725},
      {64, 18, 1, 3665},
      {128, 18, 1, 3623}}},
    {"mpt_13b",
     12853954560,
     {{8, 4, 16, 1668},
      {16, 10, 1, 1993},
      {32, 14, 1, 1998},
      {64, 16, 1, 1976},
      {128, 16, 1, 1972}}}};
// Nodes of eight H100 of 80 GB, whose network the source does not state.
const std::vector<MptModel> kMptOnH100 = {
    {"mpt_760m", 760470528, {{8, 24, 2, 63147}, {16, 24, 1, 68551}, {32, 24, 1, 67971}}},
    {"mpt_1b",
     1315950592,
     {{8, 14, 1, 45455}, {16, 20, 1, 46037}, {32, 20, 1, 45130}, {64, 20, 1, 44402}}},
    {"mpt_3b", 2651837440, {{16, 10, 3, 24142}, {32, 6, 3, 23021}, {64, 6, 3, 22525}}},
    {"mpt_13b",
     12853954560,
     {{8, 2, 1, 4792}, {16, 2, 1, 4767}, {32, 2, 1, 4811}, {64, 2, 1, 4800}}}};

struct MptScores {
  Score forecast;
  Score as_at_fewest;
};

// Runs of at most `few` devices are fitted, and the others forecast.
MptScores JudgeMpt(const std::vector<MptModel>& models, const Cluster& cluster, int few) {
  constexpr double kTokens = 2048;
  Workloads workloads;
  Runs fitted;
  Runs judged;
  MptScores scores;
  for (const MptModel& model : models) {
    workloads[model.name] = Network(model.name, model.parameters);
    for (const MptRun& of : model.runs) {
      const double samples = 1.0 * of.local_batch * of.accumulation_steps;
      stepcast::Run run =
          MakeRun(model.name, cluster.device, samples * kTokens / of.tokens_per_s, {});
      run.plan.placement = OnNodesOf(8, of.devices);
      run.plan.strategy = Strategy::kAllreduce;
      run.plan.local_batch = of.local_batch;
      run.plan.accumulation_steps = of.accumulation_steps;
      run.plan.bytes_per_parameter = 2;
      run.plan.shard = Shard::kParameters;
      (of.devices <= few ? fitted : judged).push_back(run);
      if (of.devices <= few) continue;
      scores.as_at_fewest.ratios.push_back(of.tokens_per_s / model.runs.front().tokens_per_s);
    }
  }
  scores.forecast = Judge(Fit(cluster, fitted, workloads), judged, workloads);
  scores.forecast.Print("sharded models on " + cluster.device);
  scores.as_at_fewest.Print("as at the fewest devices");
  return scores;
}

// A quarter of the devices is fitted, and the rest forecast, better than by what the fewest devices
// reach each.
TEST(PublicRuns, AQuarterOfTheDevicesPredictsModelsThatAreSharedOut) {
  Cluster cluster = Nodes(16, 8, "a100");
  cluster.nics_per_node = 8;
  cluster.link.bandwidth = GigabitsPerSecond(200.0);
  cluster.link.transport = Transport::kRdma;
  const MptScores scores = JudgeMpt(kMptOnA100, cluster, 32);
  EXPECT_EQ(scores.forecast.ratios.size(), 14U);
  EXPECT_LE(scores.forecast.Mape(), 0.02);
  EXPECT_LE(scores.forecast.Mape(), scores.as_at_fewest.Mape() / 2);
}

// Of two nodes of one batch each, what the devices' own links carry is known from their data sheet.
TEST(PublicRuns, TwoNodesPredictModelsThatAreSharedOut) {
  Cluster cluster = Nodes(8, 8, "h100");
  cluster.device_facts = FindDevice(
      ReadDevices(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gpus.yaml"), "h100");
  const MptScores scores = JudgeMpt(kMptOnH100, cluster, 16);
  cluster.device_facts->device_link.reset();
  const MptScores without = JudgeMpt(kMptOnH100, cluster, 16);
  EXPECT_EQ(scores.forecast.ratios.size(), 7U);
  EXPECT_LE(scores.forecast.Mape(), 0.065);
  EXPECT_LT(scores.forecast.Mape(), without.forecast.Mape());
}

// ResNet-50 of 32 V100 that average their parameters every 1 to 16 steps: images a second
// (PaddleFleetX, local SGD). The source says nothing of what its all-reduce hides, nor of the
// network; fitted to both ends, what lies between is met if nothing hides, and not if all may.
TEST(PublicRuns, EveryStepAndEverySixteenthPredictWhatLiesBetween) {
  const Workloads workloads = {{"resnet50", *FindWorkload("resnet50")}};
  const auto score_of = [&](Overlap overlap) {
    Runs fitted;
    Runs judged;
    for (const auto& [local_steps, images_per_s] :
         {std::pair(1, 8271.0), {2, 8716.0}, {4, 8763.0}, {8, 9185.0}, {16, 9431.0}}) {
      stepcast::Run run = MakeRun("resnet50", "v100", 32 * 128 / images_per_s, {});
      run.plan.placement = OnNodesOf(8, 32);
      run.plan.strategy = Strategy::kAllreduce;
      run.plan.local_batch = 128;
      run.plan.local_steps = local_steps;
      run.plan.overlap = overlap;
      (local_steps == 1 || local_steps == 16 ? fitted : judged).push_back(run);
    }
    return Judge(Fit(Nodes(4, 8, "v100"), fitted, workloads), judged, workloads);
  };
  const Score after = score_of(Overlap::kNone);
  after.Print("local steps, nothing hidden");
  score_of(Overlap::kBuckets).Print("local steps, hidden behind the backward pass");
  EXPECT_EQ(after.ratios.size(), 3U);
  EXPECT_LE(after.Mape(), 0.035);
}

}  // namespace
}  // namespace stepcast
