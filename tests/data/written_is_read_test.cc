// What is written is read: whatever a reader takes, also at the ends of every range and after any
// damage that left it readable, its writer writes so that the reader takes it again, and the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "data/record/input_error.h"
#include "tests/serve/mutations.h"

namespace stepcast {
namespace {

struct Door {
  const char* name;
  std::string good;
  std::string (*rewrite)(const std::string& text);  // what the writer makes of what was read
};

std::string GoodState() {
  OnlineRecord record;
  record.cluster = "c";
  record.workload = "w";
  record.device = "d";
  record.start_log_values = record.start_log_sds = Eigen::VectorXd::Constant(2, 0.25);
  record.rows = 3;
  record.y = record.folded_b = record.b = Eigen::VectorXd::Constant(2, -0.125);
  record.scatter = 0.1;
  record.folded = record.a = Eigen::MatrixXd::Identity(2, 2);
  record.range.local_batch["workload w on d"] = {16, 64, 2};
  record.range.local_batch["workload w on d"].ran = {
      {Shard::kGradients, 2, 64},
      {Shard::kParameters, 2, 64, 2, {}, Mebibytes(100.0)},
      {Shard::kNone, 1, 32, 4, {Compressor::kTopK, 0.125}}};
  record.range.hosts_alone = {"a"};
  record.range.exchanges = {{Strategy::kRing, std::nullopt}, {Strategy::kPsAsync, Transport::kTcp}};
  MeasuredPlan plan;
  plan.plan.link.rtt = Milliseconds(2.0);
  plan.plan.hosts = {"a"};
  plan.times = {{-1.5, 2}, {-1.25, 1}};
  plan.last = 3;
  plan.slopes = Eigen::VectorXd::Constant(2, 0.5);
  record.plans = {plan};
  return FormatOnlineRecord(record);
}

const std::vector<Door>& Doors() {
  static const std::vector<Door> doors = {
      {"cluster",
       "name: lab\ntitle: A lab\ndevice: {name: t4, aliases: [tesla], fp32: 8.1 TFLOP/s, memory: "
       "16 GiB, memory_bandwidth: 320 GB/s, device_link: 150 GB/s, host_link: 15.75 GB/s, power: "
       "70 W, "
       "multiprocessors: 40, last_cache: 4 MiB, process: 12 nm}\nnodes: 4\ndevices_per_node: 2\n"
       "nics_per_node: 2\nlink: {bandwidth: 10 Gbit/s, rtt: 2 ms, loss: 0.01, congestion_control: "
       "bbr, loss_burst: 1 ms, transport: rdma}\ndevice_link: {bandwidth: 100 Gbit/s}\nhosts:\n  - "
       "name: a1\n"
       "    link: {bandwidth: 1 Gbit/s, transport: tcp}\n  - name: a2\nprices: {node_per_hour: "
       "3.9, "
       "server_per_hour: 1}\npower: {device: 70 W, device_idle: 10 W, node: 200 W}\n"
       "sources: {nodes: counted}\nnotes: |\n  A note.\ncalibration:\n  version: 0.1.0\n"
       "  residual_log_sd: 0.05\n  repeat_log_sd: 0.01\n  scatter:\n    all: {compute: 0.1, sync: "
       "0.2}\n  sources:\n    - {file: runs.csv, runs: 12}\n  range:\n    max_workers: 8\n"
       "    max_nodes: 4\n    max_devices_per_node: 2\n    hosts_alone: a1\n"
       "    exchanges: [{strategy: ring}, {strategy: tree, transport: rdma}]\n    local_batch:\n"
       "      resnet50 on t4: {min: 16, max: 128, max_workers: 8}\n  parameters:\n"
       "    - {scope: cluster, name: latency, unit: ms, value: 1.5, log_sd: 0.25, low: 1, high: 2, "
       "prior_value: 1, prior_log_sd: 2, decided_by: data}\n    - {scope: hosts a1, name: "
       "compute_slowdown, value: 2, log_sd: 0.5, prior_value: 1, prior_log_sd: 2, runs: 4, "
       "runs_nearer: 3, decided_by: both}\n  log_covariance: |\n    0.0625\n    0.001 0.25\n",
       [](const std::string& text) { return FormatCluster(ParseCluster(text, "c.yaml")); }},
      {"workload",
       "name: net\nparameters: 120\ntrainable_parameters: 110\ngradient_bytes: 440\n"
       "precision: bf16\noptimizer: adam\nlayers:\n"
       "  - {name: fc, kind: dense, tensors: [100, 10], statistics: 10, forward_flop: 2.5e5, "
       "activation_bytes: 40, operation: dense inputs=10 units=10 bias=yes}\n",
       [](const std::string& text) { return FormatWorkload(ParseWorkload(text, "w.yaml")); }},
      {"bare workload", "name: net\ntrainable_parameters: 110\nparameters: 120\n",
       [](const std::string& text) { return FormatWorkload(ParseWorkload(text, "w.yaml")); }},
      {"runs",
       "workload,device,placement,servers,strategy,local_batch,step_time_s,exposed_sync_s,"
       "accumulation_steps,link_gbit_per_s,server_link_gbit_per_s,rtt_ms,loss_rate,loss_burst_ms,"
       "bucket_mib,backup_workers,bytes_per_parameter,hosts,note,source\n"
       "resnet50,t4,4-4,1,ps-sync,32,0.5,0.25,2,10,25,2,0.01,1.5,25,1,2,a1+a2,\"a, b\",here\n",
       [](const std::string& text) { return FormatRuns(ParseRuns(text, "r.csv")); }},
      {"profile",
       R"({"stepcast_profile": 1, "backend": "onednn", "device": {"name": "d", "kind": "cpu", )"
       R"("facts": {"cores": "4"}}, "settings": {"s": "1"}, "version": "1", "started": "x"})"
       "\n"
       R"({"operation": "dense inputs=512 units=1000 bias=yes", "batch": 8, "precision": "fp32", )"
       R"("pass": "forward", "seconds": [0.1, 2e-5], "reference_s": 0.01, "at": "x"})"
       "\n"
       R"({"operation": "copy elements=10", "batch": 1, "precision": "bf16", "pass": "backward", )"
       R"("status": "unsupported", "reason": "no such thing"})"
       "\n",
       [](const std::string& text) {
         return FormatComputeProfile(ParseComputeProfile(text, "p.jsonl").profile);
       }},
      {"saved state", GoodState(),
       [](const std::string& text) { return FormatOnlineRecord(ParseOnlineRecord(text)); }}};
  return doors;
}

// The text with one of its numbers, or the word behind one of its colons or commas, replaced by
// what lies at the end of some range.
std::string WithAnExtreme(std::string text, std::mt19937* random) {
  static const std::vector<std::string> extremes = {"0",
                                                    "1",
                                                    "-1",
                                                    "1e-12",
                                                    "1e-9",
                                                    "9.9999999999999e-13",
                                                    "1e-15",
                                                    "0.99999999999999989",
                                                    "8e-9",
                                                    "1e6",
                                                    "1000000",
                                                    "999999.99999999988",
                                                    "1e7",
                                                    "1e9",
                                                    "1000000000",
                                                    "1e15",
                                                    "1000000000000000",
                                                    "4000000000000000",
                                                    "1e18",
                                                    "1e24",
                                                    "1e30",
                                                    "1e-30",
                                                    "9.5367431640625e-07",
                                                    "1e-300",
                                                    "1e-400",
                                                    "1e308",
                                                    "2147483647",
                                                    "9223372036854775807",
                                                    "100000000",
                                                    "1024",
                                                    std::string(1000, 'n'),
                                                    std::string(1001, 'n'),
                                                    "\"a\\nb\"",
                                                    "\"\"",
                                                    "~",
                                                    "null",
                                                    "yes",
                                                    "\"x: y\"",
                                                    "' z '",
                                                    "\xc3\xa9",
                                                    "\"\\u0001\"",
                                                    "- a",
                                                    "#",
                                                    "a+b",
                                                    "0x10",
                                                    "1_000",
                                                    "+5"};
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t i = 0; i < text.size();) {
    const auto of_value = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    };
    std::size_t end = i;
    while (end < text.size() && of_value(text[end])) ++end;
    if (end > i) places.emplace_back(i, end - i);
    i = end + 1;
  }
  const auto [at, length] = places[(*random)() % places.size()];
  return text.replace(at, length, extremes[(*random)() % extremes.size()]);
}

TEST(WrittenIsRead, AtTheEndsOfRangesAndAfterAnyDamage) {
  constexpr int kTexts = 6000;
  for (const Door& door : Doors()) {
    const std::string good = door.rewrite(door.good);
    ASSERT_EQ(door.rewrite(good), good) << door.name;
    std::mt19937 random(1);
    int taken = 0;
    for (int i = 0; i < kTexts; ++i) {
      std::string text = i % 8 == 0 ? good : door.good;
      for (std::size_t left = 1 + random() % 2; left > 0; --left) {
        text = random() % 4 == 0 ? serve::Mutate(text, &random) : WithAnExtreme(text, &random);
      }
      std::string written;
      try {
        written = door.rewrite(text);
      } catch (const InputError&) {
        continue;
      }
      ++taken;
      try {
        ASSERT_EQ(door.rewrite(written), written) << door.name << ":\n" << text;
      } catch (const InputError& error) {
        FAIL() << door.name << ":\n" << text << "\nis written as\n" << written << error.what();
      }
    }
    EXPECT_GT(taken, kTexts / 50) << door.name << ": nothing was tested";
    RecordProperty(door.name, taken);
  }
}

}  // namespace
}  // namespace stepcast
