// Every number, yes and no that a command prints as JSON, beside the answer of C++ that it stands
// for: one table a command, which must name all that is printed. The plans are such that what may
// be mixed up differs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/drift.h"
#include "calibrate/identifiability.h"
#include "calibrate/next_runs.h"
#include "data/io/compute_profile_file.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/plan/fields.h"
#include "data/record/point_samples.h"
#include "data/values/names.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "model/catalog/catalog.h"
#include "model/compute/profiled_compute.h"
#include "model/exchange/sharding.h"
#include "model/statistics/normal.h"
#include "model/step/discrepancy.h"
#include "model/step/parameter_specs.h"
#include "predictor/binding.h"
#include "predictor/diagnose/diagnose.h"
#include "predictor/explanation.h"
#include "predictor/outlook.h"
#include "predictor/predictor.h"
#include "predictor/report/terminal.h"
#include "predictor/search/inverse.h"
#include "predictor/search/limits.h"
#include "predictor/search/recommend.h"
#include "predictor/search/unequal.h"
#include "predictor/shared_link.h"
#include "tests/cli/number_table.h"
#include "tests/cli/program.h"
#include "tests/support/changed_plans.h"
#include "tests/support/temp_file.h"
#include "tests/support/wrong_points.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class
using program::AddUnder;
using program::ExpectNumbers;
using program::Json;
using program::JsonOf;
using program::NumberTable;
using program::Or;
using program::Same;
using program::Stepcast;
using program::Unwrapped;
using program::Words;
using program::operator+;

const std::string kData = std::string(STEPCAST_SOURCE_DIR) + "/data";

// ---- A prediction.

NumberTable OfPrediction(const Prediction& p) {
  NumberTable table = {
      {"/step_time_s", p.step_time.in(kSeconds)},
      {"/low_s", p.low.in(kSeconds)},
      {"/high_s", p.high.in(kSeconds)},
      {"/uncertainty/log_sd", p.log_sd},
      {"/uncertainty/parameters_log_sd", p.parameter_log_sd},
      {"/uncertainty/step_log_sd", p.scatter_log_sd},
      {"/uncertainty/beyond_range_log_sd", p.discrepancy_log_sd},
      {"/quantiles/p50_s", p.p50.in(kSeconds)},
      {"/quantiles/p95_s", p.p95.in(kSeconds)},
      {"/quantiles/p99_s", p.p99.in(kSeconds)},
      {"/throughput_samples_per_s", p.throughput.in(kSamplesPerSecond)},
      {"/breakdown/forward_s", p.breakdown.forward.in(kSeconds)},
      {"/breakdown/backward_s", p.breakdown.backward.in(kSeconds)},
      {"/breakdown/update_s", p.breakdown.update.in(kSeconds)},
      {"/breakdown/exposed_transfer_s", p.breakdown.exposed_transfer.in(kSeconds)},
      {"/breakdown/exposed_latency_s", p.breakdown.exposed_latency.in(kSeconds)},
      {"/breakdown/straggler_wait_s", p.breakdown.straggler_wait.in(kSeconds)},
      {"/breakdown/coding_s", p.breakdown.coding.in(kSeconds)},
      {"/breakdown/input_wait_s", p.breakdown.input_wait.in(kSeconds)},
      {"/synchronisation_s", p.breakdown.synchronisation.in(kSeconds)},
      {"/idle_ratio", 1 - p.breakdown.compute() / p.step_time},
      {"/binding/share", FindBinding(p).share},
      {"/traffic/gradient_bytes", p.traffic.gradient.in(kBytes)},
      {"/traffic/transfers", p.traffic.transfers},
      {"/traffic/buckets", p.buckets},
      {"/traffic/bytes_per_worker", p.traffic.per_worker.in(kBytes)},
      {"/traffic/bytes_per_server",
       p.traffic.per_server ? Json(p.traffic.per_server->in(kBytes)) : Json(nullptr)},
      {"/traffic/bytes_total", p.traffic.total.in(kBytes)},
      {"/memory/parameters_bytes", p.memory.parameters.in(kBytes)},
      {"/memory/gradients_bytes", p.memory.gradients.in(kBytes)},
      {"/memory/optimizer_bytes", p.memory.optimizer.in(kBytes)},
      {"/memory/accumulation_bytes", p.memory.accumulation.in(kBytes)},
      {"/memory/buckets_bytes", p.memory.buckets.in(kBytes)},
      {"/memory/activations_bytes", p.memory.activations.in(kBytes)},
      {"/memory/workspace_bytes", p.memory.workspace.in(kBytes)},
      {"/memory/total_bytes", p.memory.total.in(kBytes)},
      {"/memory/available_bytes", p.memory.available->in(kBytes)}};
  if (p.work) {
    AddUnder("/work",
             {{"/flop_per_s", p.work->rate.si()},
              {"/share_of_peak", p.work->of_peak ? Json(*p.work->of_peak) : Json()}},
             &table);
  }
  if (p.server_times) {
    AddUnder("/server_times",
             {{"/push_s", p.server_times->push.in(kSeconds)},
              {"/update_s", p.server_times->update.in(kSeconds)},
              {"/pull_s", p.server_times->pull.in(kSeconds)}},
             &table);
  }
  if (p.server_phases) {
    const PhaseBenefit<double>& phases = *p.server_phases;
    AddUnder("/server_phases",
             {{"/remaining_aggregation_s", phases.remaining_aggregation.in(kSeconds)},
              {"/remaining_distribution_s", phases.remaining_distribution.in(kSeconds)},
              {"/multicast_saves_s", phases.multicast_saves.in(kSeconds)},
              {"/in_network_aggregation_saves_s", phases.in_network_aggregation_saves.in(kSeconds)},
              {"/both_save_s", phases.both_save.in(kSeconds)}},
             &table);
  }
  if (p.async_servers) {
    const AsyncServers<double>& a = *p.async_servers;
    AddUnder("/async_servers",
             {{"/updates_per_s", a.updates.si()},
              {"/cycle_s", a.cycle.in(kSeconds)},
              {"/queueing_s", a.queueing().in(kSeconds)},
              {"/server_link_busy", a.server_link},
              {"/server_processor_busy", a.server_processor},
              {"/server_update_busy", a.server_update},
              {"/worker_link_busy", a.worker_link},
              {"/slow_updates_share", a.slow_updates},
              {"/mean_staleness", a.mean_staleness},
              {"/staleness_sd", a.staleness_sd}},
             &table);
    if (a.slow_updates > 0) {
      AddUnder("/async_servers",
               {{"/fast_cycle_s", a.fast_cycle.in(kSeconds)},
                {"/slow_cycle_s", a.slow_cycle.in(kSeconds)}},
               &table);
    }
  }
  return table;
}

NumberTable OfPlan(const Plan& plan) {
  NumberTable table = {{"/workers", plan.workers()},
                       {"/servers", plan.servers},
                       {"/local_batch", plan.local_batch},
                       {"/accumulation_steps", plan.accumulation_steps},
                       {"/global_batch", plan.global_batch()}};
  if (plan.link.bandwidth) {
    table["/link_gbit_per_s"] = plan.link.bandwidth->in(kGigabitsPerSecond);
  }
  if (plan.link.rtt) table["/rtt_ms"] = plan.link.rtt->in(kMilliseconds);
  if (plan.backup_workers > 0) table["/backup_workers"] = plan.backup_workers;
  if (plan.slow_nodes > 0) {
    table["/slow_nodes"] = plan.slow_nodes;
    table["/slow_speed"] = *plan.slow_speed;
    if (plan.slow_local_batch) table["/slow_local_batch"] = *plan.slow_local_batch;
  }
  return table;
}

NumberTable OfStretch(const JobStretch& s) {
  return {{"/updates", s.updates},
          {"/samples", s.samples.in(kSamples)},
          {"/time_s", s.time.in(kSeconds)},
          {"/low_s", s.low.in(kSeconds)},
          {"/high_s", s.high.in(kSeconds)},
          {"/price_usd", Or(s.price_usd)},
          {"/energy_j", Or(s.energy_j)},
          {"/time_with_failures_s", Or(s.time_with_failures)},
          {"/price_with_failures_usd", Or(s.price_with_failures_usd)}};
}

NumberTable OfJob(const JobOutlook& job) {
  NumberTable table = {
      {"/spending/price_usd", Or(job.spending.price_usd)},
      {"/spending/energy_j", Or(job.spending.energy_j)},
      {"/spending/servers_priced", !job.spending.servers_unpriced},
      {"/spending/energy_at_most", job.spending.energy_at_most},
      {"/spending/energy_of_devices_alone", job.spending.energy_of_devices},
      {"/spending/device_busy_w", job.spending.device_busy_w},
      {"/time_limit_s", job.limit->limit.in(kSeconds)},
      {"/finishes_within_limit", job.limit->finishes},
      {"/finishes_probability", job.limit->probability},
      {"/outlook/update_batch", job.update_batch.in(kSamples)},
      {"/outlook/update_interval_s", job.update_interval.in(kSeconds)},
      {"/outlook/statistical_efficiency", *job.efficiency},
      {"/outlook/goodput_samples_per_s", job.goodput->in(kSamplesPerSecond)},
      {"/outlook/goodput_low_samples_per_s", job.goodput_low->in(kSamplesPerSecond)},
      {"/outlook/goodput_high_samples_per_s", job.goodput_high->in(kSamplesPerSecond)}};
  AddUnder("/outlook/epoch", OfStretch(*job.epoch), &table);
  AddUnder("/outlook/target", OfStretch(*job.target), &table);
  const FailureOutlook& f = *job.failures;
  AddUnder("/outlook/failures",
           {{"/between_failures_s", f.between.in(kSeconds)},
            {"/between_restarts_s", f.between_restarts.in(kSeconds)},
            {"/young_interval_s", f.young.in(kSeconds)},
            {"/daly_interval_s", f.daly.in(kSeconds)},
            {"/slowdown", f.slowdown},
            {"/throughput_samples_per_s", f.throughput.in(kSamplesPerSecond)},
            {"/chief_loss_s", f.chief_loss.in(kSeconds)},
            {"/at_least", f.at_least}},
           &table);
  if (f.worker) {
    AddUnder("/outlook/failures/worker_loss",
             {{"/stall_s", f.worker->stall.in(kSeconds)},
              {"/stalled_share", f.worker->stalled_share},
              {"/slowdown", f.worker->slowdown}},
             &table);
  }
  return table;
}

// A cluster whose machines cost money and power, and what C++ knows of it.
struct Lab {
  TempFolder folder;
  std::string file = folder.Write(
      "lab.yaml",
      "name: lab\ndevice: t4\nnodes: 8\ndevices_per_node: 2\nlink: {bandwidth: 10 Gbit/s}\n"
      "power: {device: 70 W, device_idle: 30 W, node: 200 W}\n"
      "prices: {node_per_hour: 1.5, server_per_hour: 0.4}\n");
  Cluster cluster = ReadCluster(file);
  Workload workload = *FindWorkload("vgg16");
  Device device = *FindDevice(ReadDevices(kData + "/machines/gpus.yaml"), "t4");
  Predictor predictor{cluster, workload, device};
};

TEST(Numbers, OfAPredictionAndItsJob) {
  const Lab lab;
  OutlookOptions asked;
  asked.time_limit = Seconds(2.0);
  asked.data_set = Samples(1e6);
  asked.noise_scale = Samples(8000.0);
  asked.known_batch = Samples(200.0);
  asked.least_steps = 14000;
  asked.node_mtbf = Seconds(60.0 * 86400);
  asked.device_mtbf = Seconds(400.0 * 86400);
  asked.checkpoint_time = Seconds(20.0);
  asked.restart_time = Seconds(300.0);
  const Words options = {
      "--time-limit",  "2 s",   "--data-set",        "1000000", "--noise-scale",  "8000",
      "--known-batch", "200",   "--least-steps",     "14000",   "--node-mtbf",    "60 d",
      "--device-mtbf", "400 d", "--checkpoint-time", "20 s",    "--restart-time", "5 min"};
  for (const Strategy strategy :
       {Strategy::kPsSync, Strategy::kPsAsync, Strategy::kTree, Strategy::kRing}) {
    SCOPED_TRACE(StrategyName(strategy));
    Plan plan;
    plan.placement = {2, 2, 2, 1};
    plan.strategy = strategy;
    // So that no two parts of the memory are alike.
    if (strategy == Strategy::kRing) plan.shard = Shard::kOptimizer;
    plan.servers = UsesServers(strategy) ? 3 : 0;
    plan.local_batch = 24;
    plan.accumulation_steps = 2;
    plan.backup_workers = strategy == Strategy::kPsSync ? 1 : 0;
    plan.link.bandwidth = GigabitsPerSecond(5.0);
    Words words = {"predict",
                   "--cluster",
                   lab.file,
                   "--workload",
                   "vgg16",
                   "--placement",
                   "2-2-2-1",
                   "--strategy",
                   StrategyName(strategy),
                   "--servers",
                   std::to_string(plan.servers),
                   "--local-batch",
                   "24",
                   "--accumulation",
                   "2",
                   "--bandwidth",
                   "5 Gbit/s",
                   "--backup-workers",
                   std::to_string(plan.backup_workers),
                   "--shard",
                   NameOf(plan.shard)};
    if (strategy == Strategy::kPsAsync) {
      plan.slow_nodes = 2;
      plan.slow_speed = 0.5;
      words = words + Words{"--slow-nodes", "2", "--slow-speed", "0.5"};
    }
    const Prediction p = lab.predictor.Predict(plan);
    const JobOutlook job = MakeOutlook(p, plan, lab.cluster, lab.device, asked);
    NumberTable table = OfPrediction(p);
    AddUnder("/plan", OfPlan(plan), &table);
    AddUnder("", OfJob(job), &table);
    if (UsesServers(strategy)) {
      const LargestShard shard = LargestShare(lab.workload, 3, Sharding::kTensor);
      AddUnder(
          "/largest_shard",
          {{"/share", shard.share}, {"/tensors", shard.tensors}, {"/one_tensor", shard.one_tensor}},
          &table);
    }
    ExpectNumbers(JsonOf(words + options, job.limit->finishes ? 0 : 1), table);

    // The same in words.
    const auto text = [](Duration<> time) { return FormatDuration(time); };
    const FailureOutlook& f = *job.failures;
    std::vector<std::string> said = {
        text(p.step_time),
        text(p.low) + " to " + text(p.high),
        FormatThroughput(p.throughput),
        "half the steps within " + text(p.p50),
        "95 % within " + text(p.p95),
        "99 % within " + text(p.p99),
        "one in " + text(f.between) +
            (TraitsOf(strategy).asynchronous()
                 ? ", of a server's node one in " + text(f.between_restarts)
                 : "") +
            "; save every " + text(f.daly) + " of training (Daly; Young " + text(f.young) + ")",
        "costs all workers " + text(f.chief_loss),
        FormatPercent(*job.efficiency) + " statistical efficiency",
        text(job.epoch->time),
        text(*job.epoch->time_with_failures),
        text(job.target->time),
        FormatCount(job.target->updates)};
    // Of a model that is shared out nobody else has the share of a lost worker.
    EXPECT_EQ(f.worker.has_value(), plan.shard == Shard::kNone);
    if (f.worker) said.push_back(text(f.worker->stall));
    const double joule = *job.spending.energy_j;
    ASSERT_TRUE(1e3 < joule && joule < 3.6e6);
    said.push_back(FormatNumber(1e-3 * joule) + " kJ a step");
    if (!TraitsOf(strategy).asynchronous()) {
      const StepTime<double>& parts = p.breakdown;
      const Duration<> shown = parts.exposed_transfer + parts.exposed_latency;
      said.push_back(text(parts.synchronisation) + " of synchronisation, " +
                     text(parts.synchronisation - shown) + " of it hidden");
    }
    if (p.server_times && strategy == Strategy::kPsSync) {
      said.push_back("push " + text(p.server_times->push) + ", update " +
                     text(p.server_times->update) + ", pull " + text(p.server_times->pull));
      const PhaseBenefit<double>& phases = *p.server_phases;
      said.push_back("multicast saves " + text(phases.multicast_saves) +
                     ", in-network aggregation " + text(phases.in_network_aggregation_saves) +
                     ", both " + text(phases.both_save));
    }
    if (p.async_servers) {
      const AsyncServers<double>& a = *p.async_servers;
      said.push_back("link " + FormatPercent(a.server_link) + ", processor " +
                     FormatPercent(a.server_processor) + ", update " +
                     FormatPercent(a.server_update) + "; worker's link " +
                     FormatPercent(a.worker_link));
      said.push_back(FormatNumber(a.mean_staleness) + " updates by others, give or take " +
                     FormatNumber(a.staleness_sd));
      said.push_back(text(a.fast_cycle) + ", on slow nodes " + text(a.slow_cycle) + "; " +
                     FormatPercent(a.slow_updates) + " of the updates");
    }
    const std::string printed = Unwrapped(Stepcast(words + options).out);
    for (const std::string& one : said) {
      EXPECT_NE(printed.find(one), std::string::npos) << printed << "lacks: " << one;
    }
    // A bound from above on the energy is none from below.
    EXPECT_EQ(printed.find("with devices busy throughout") != std::string::npos,
              job.spending.energy_at_most && !job.not_counted.empty());
  }
}

// Jobs on the same links: this one, and those of a file on the link of this one.
TEST(Numbers, OfJobsBeside) {
  const Lab lab;
  const TempFolder folder;
  const std::string file =
      folder.Write("others.csv",
                   "workload,device,placement,servers,strategy,local_batch,rtt_ms,step_time_s\n"
                   "vgg16," +
                       lab.device.name +
                       ",1-1,0,ring,16,,STEP_TIME\n"
                       "vgg16," +
                       lab.device.name + ",2-2,0,tree,8,3,STEP_TIME\n");
  Plan plan;
  plan.placement = {2, 2};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 24;
  plan.link.bandwidth = GigabitsPerSecond(5.0);
  std::vector<SharingJob> jobs(3, {&lab.predictor, plan});
  jobs[1].plan.placement = {1, 1};
  jobs[1].plan.local_batch = 16;
  jobs[2].plan.strategy = Strategy::kTree;
  jobs[2].plan.local_batch = 8;
  jobs[2].plan.link.rtt = Milliseconds(3.0);
  const std::vector<SharedJob> shared = ShareLink(jobs);
  NumberTable table;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string at = "/" + std::to_string(i);
    AddUnder(at + "/plan", OfPlan(jobs[i].plan), &table);
    table[at + "/link_busy"] = shared[i].link_busy;
    table[at + "/others"] = shared[i].others;
    table[at + "/alone_s"] = shared[i].alone.in(kSeconds);
    table[at + "/beside_s"] = shared[i].beside.in(kSeconds);
    EXPECT_GT(shared[i].beside, shared[i].alone);
  }
  const Words words = {"predict",     "--cluster",   lab.file,     "--workload", "vgg16",
                       "--placement", "2-2",         "--strategy", "ring",       "--local-batch",
                       "24",          "--bandwidth", "5 Gbit/s",   "--beside",   file};
  const Json printed = JsonOf(words);
  ExpectNumbers(printed.at("beside"), table);
  EXPECT_TRUE(Same(printed.at("plan").at("link_others"), shared[0].others));
  EXPECT_TRUE(Same(printed.at("step_time_s"), shared[0].beside.in(kSeconds)));
  // The same in words, a row for each.
  const std::string text = Unwrapped(Stepcast(words).out);
  EXPECT_NE(text.find("jobs on the same links"), std::string::npos) << text;
  for (const SharedJob& job : shared) {
    const std::string row = FormatPercent(job.link_busy) + " " + FormatDuration(job.alone) + " " +
                            FormatDuration(job.beside) + " " +
                            FormatPercent((job.beside - job.alone) / job.alone) + " ";
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  }
  const std::string apart = folder.Write("apart.csv",
                                         "workload,device,placement,hosts,servers,strategy,"
                                         "local_batch\nvgg16," +
                                             lab.device.name + ",1-1,c+d,0,ring,16\n");
  const Words named = {"predict", "--cluster",     lab.file,      "--workload",  "vgg16",
                       "--hosts", "a+b",           "--placement", "1-1",         "--strategy",
                       "ring",    "--local-batch", "24",          "--bandwidth", "5 Gbit/s"};
  const Json on_own_links = JsonOf(named + Words{"--beside", apart});
  EXPECT_TRUE(Same(on_own_links.at("step_time_s"), JsonOf(named).at("step_time_s").get<double>()));
  program::ExpectText(named + Words{"--beside", apart},
                      {"jobs on links of their own", "No two of the jobs have a host in common"});
  program::ExpectError(words + Words{"--link-others", "1"},
                       {"--beside", "says who else is on the links"});
  const std::string bad = folder.Write("bad.csv",
                                       "workload,device,placement,servers,strategy,local_batch,"
                                       "link_others,step_time_s\nvgg1," +
                                           lab.device.name + ",1-1,0,ring,16,,STEP_TIME\n");
  program::ExpectError(Words{"predict", "--cluster", lab.file, "--workload", "vgg16",
                             "--local-batch", "24", "--workers", "4", "--beside", bad},
                       {"bad.csv:2: workload: 'vgg1'"});
  folder.Write("bad.csv",
               "workload,device,placement,servers,strategy,local_batch,link_others,step_time_s\n"
               "vgg16," +
                   lab.device.name + ",1-1,0,ring,16,2,STEP_TIME\n");
  program::ExpectError(Words{"predict", "--cluster", lab.file, "--workload", "vgg16",
                             "--local-batch", "24", "--workers", "4", "--beside", bad},
                       {"bad.csv:2", "says who else is on the links"});
}

// A flag for each field: the forecast is that of the plan that it states, and the answer repeats
// it.
TEST(Numbers, OfEachFlagOfAPlan) {
  const Lab lab;
  for (const ChangedPlan& changed : ChangedPlans()) {
    if (changed.facts.flag == nullptr) continue;
    Words words = {"predict", "--cluster", lab.file, "--workload", "vgg16"};
    for (const PlanField& field : PlanFields()) {
      const std::string text = field.write(changed.after);
      if (text.empty()) continue;
      words.push_back(std::string("--") + field.flag);
      if (field.placeholder == nullptr) continue;  // yes
      const bool has_unit = field.unit != nullptr && *field.unit != '\0';
      words.push_back(has_unit ? text + " " + field.unit : text);
    }
    const Json printed = JsonOf(words);
    const Prediction expected = lab.predictor.Predict(changed.after);
    EXPECT_TRUE(Same(printed.at("step_time_s"), expected.step_time.in(kSeconds)))
        << changed.facts.flag;
    EXPECT_TRUE(Same(printed.at("high_s"), expected.high.in(kSeconds))) << changed.facts.flag;
    EXPECT_EQ(printed.at("flags"), expected.flags) << changed.facts.flag;
    EXPECT_TRUE(printed.at("plan").contains(changed.facts.column)) << changed.facts.flag;
  }
}

// ---- Searches.

template <class Q, class Value>
Json OfClosed(const ClosedForm<Q>& closed, const Value& value) {
  if (!closed || !closed->exists()) return nullptr;
  return value(closed->value());
}
Json OfClosed(const ClosedForm<double>& closed) {
  return OfClosed(closed, [](double value) { return value; });
}

NumberTable OfPoint(const ScalingPoint& point) {
  return {{"/workers", point.workers},
          {"/step_time_s", point.step_time.in(kSeconds)},
          {"/throughput_samples_per_s", point.throughput.in(kSamplesPerSecond)},
          {"/efficiency", point.efficiency}};
}

TEST(Numbers, OfTheLimits) {
  const Lab lab;
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kRing}) {
    SCOPED_TRACE(StrategyName(strategy));
    Plan plan;
    plan.placement = {2, 2, 2};
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    plan.local_batch = 4;
    plan.link.bandwidth = GigabitsPerSecond(1.0);
    plan.link.rtt = Milliseconds(5.0);
    LimitsOptions options;
    options.most_workers = 20;
    options.strong_global_batch = 300;
    options.target_efficiency = 0.8;
    const ScalingLimits limits = FindScalingLimits(lab.predictor, plan, 2, options);
    EXPECT_TRUE(UsesServers(strategy) || limits.buckets->to) << "more of them cost something";
    const auto rate = [](SampleRate<> r) { return r.in(kSamplesPerSecond); };
    const ClosedLimits& closed = limits.closed;
    NumberTable table = {{"/most_workers", limits.most_workers},
                         {"/worth_it_workers", Or(limits.worth_it)},
                         {"/worth_it_from_workers", Or(limits.worth_it_from)},
                         {"/crossing_workers", Or(limits.crossing)},
                         {"/half_utilisation_workers", Or(limits.half_utilisation)},
                         {"/half_efficiency_workers", Or(limits.half_efficiency)},
                         {"/efficiency_at_most", limits.efficiency_at_most},
                         {"/best_workers", limits.best_workers},
                         {"/strong_scaling/global_batch", 300},
                         {"/strong_scaling/best_workers", limits.strong_best_workers},
                         {"/strong_scaling/step_time_s", limits.strong_best_step.in(kSeconds)},
                         {"/reference_workers", limits.reference_workers},
                         {"/target_efficiency", 0.8},
                         {"/half_ceiling_workers", Or(limits.half_ceiling)},
                         {"/accumulation", Or(limits.accumulation)},
                         {"/buckets", limits.buckets ? Json(limits.buckets->from) : Json(nullptr)},
                         {"/most_buckets", limits.buckets ? Or(limits.buckets->to) : Json(nullptr)},
                         {"/servers", Or(limits.servers)}};
    AddUnder("/plan", OfPlan(plan), &table);
    AddUnder("/closed_form",
             {{"/ceiling_samples_per_s", OfClosed(closed.ceiling, rate)},
              {"/half_ceiling_workers", OfClosed(closed.half_ceiling)},
              {"/half_efficiency_workers", OfClosed(closed.half_efficiency)},
              {"/crossing_workers", OfClosed(closed.crossing)},
              {"/strong_best_workers", OfClosed(closed.strong_best_workers)},
              {"/knee_workers", OfClosed(closed.knee)},
              {"/accumulation", OfClosed(closed.accumulation)},
              {"/buckets", OfClosed(closed.buckets)},
              {"/servers", OfClosed(closed.servers)}},
             &table);
    const bool servers = UsesServers(strategy);
    table["/server_ceiling_samples_per_s"] =
        servers ? OfClosed(closed.ceiling, rate) : Json(nullptr);
    table["/server_half_ceiling_workers"] = servers ? OfClosed(closed.half_ceiling) : Json(nullptr);
    table["/ring_best_workers"] = servers ? Json(nullptr) : OfClosed(closed.strong_best_workers);
    const GivenScaling& given = *limits.given;
    AddUnder("/given", OfPoint(given.point), &table);
    table["/given/times_one_worker"] = given.speedup;
    if (given.speedup < 1) {
      table["/given/pays_from/link_gbit_per_s"] =
          given.payoff.bandwidth ? Json(given.payoff.bandwidth->in(kGigabitsPerSecond))
                                 : Json(nullptr);
      table["/given/pays_from/accumulation_steps"] = Or(given.payoff.accumulation_steps);
    } else {
      table["/given/pays_from"] = nullptr;
    }
    for (std::size_t i = 0; i < limits.curve.size(); ++i) {
      AddUnder("/curve/" + std::to_string(i), OfPoint(limits.curve[i]), &table);
    }
    const InverseAnswers inverse = AnswerInverseQuestions(lab.predictor, plan, 2, 20);
    table["/inverse/utilisation"] = inverse.utilisation;
    table["/inverse/twice_the_link"] = Or(inverse.twice_the_link);
    for (std::size_t i = 0; i < inverse.reaches.size(); ++i) {
      const WhatReaches& reach = inverse.reaches[i];
      const auto in = [](const auto& answer, const auto& unit) {
        return answer ? Json(answer->in(unit)) : Json(nullptr);
      };
      AddUnder("/inverse/reaches/" + std::to_string(i),
               {{"/utilisation", reach.utilisation},
                {"/link_gbit_per_s", in(reach.bandwidth, kGigabitsPerSecond)},
                {"/rtt_ms", in(reach.rtt, kMilliseconds)},
                {"/loss_rate", Or(reach.loss)},
                {"/accumulation_steps", Or(reach.accumulation_steps)},
                {"/local_batch", Or(reach.local_batch)},
                {"/workers", Or(reach.workers)}},
               &table);
    }
    const Words words = {"limits",
                         "--cluster",
                         lab.file,
                         "--workload",
                         "vgg16",
                         "--placement",
                         "2-2-2",
                         "--strategy",
                         StrategyName(strategy),
                         "--servers",
                         std::to_string(plan.servers),
                         "--local-batch",
                         "4",
                         "--bandwidth",
                         "1 Gbit/s",
                         "--rtt",
                         "5 ms",
                         "--most-workers",
                         "20",
                         "--global-batch",
                         "300",
                         "--target-efficiency",
                         "0.8"};
    Json printed = JsonOf(words);
    // A closed form that says that there is no such limit is a word.
    for (auto& [key, value] : printed["closed_form"].items()) {
      if (value == "none") value = nullptr;
    }
    ExpectNumbers(printed, table);
    const std::string text = Stepcast(words).out;
    const std::string twice =
        "Links twice as fast bring " + FormatPercent(*inverse.twice_the_link - 1) + " more";
    EXPECT_NE(Unwrapped(text).find(twice), std::string::npos) << twice << "\n" << text;
    if (servers) continue;
    for (const ScalingPoint& point : limits.curve) {
      std::size_t at = 0;
      for (const std::string& cell :
           {FormatCount(point.workers), FormatDuration(point.step_time),
            FormatThroughput(point.throughput), FormatPercent(point.efficiency)}) {
        at = text.find(cell, at);
        EXPECT_NE(at, std::string::npos) << cell << "\n" << text;
        if (at == std::string::npos) break;
      }
    }
    EXPECT_NE(text.find(FormatFactor(given.speedup)), std::string::npos) << text;
  }
}

TEST(Numbers, OfARecommendation) {
  const Lab lab;
  for (const bool worse : {false, true}) {
    SCOPED_TRACE(worse);
    Plan plan;
    plan.placement = {2, 2, 2, 2};
    plan.strategy = Strategy::kRing;
    plan.local_batch = worse ? 32 : 8;
    RecommendOptions options;
    options.objective = worse ? Objective::kThroughput : Objective::kPrice;
    options.device = lab.device;
    options.most_global_batch = 512;
    options.workers = worse ? std::vector<int>{1, 2} : std::vector<int>{2, 8};
    if (worse) options.local_batches = {1};
    const RecommendOutcome outcome = Recommend(lab.predictor, plan, 2, options);
    EXPECT_EQ(outcome.is_advice, !worse);
    Words words = {"recommend",
                   "--cluster",
                   lab.file,
                   "--workload",
                   "vgg16",
                   "--placement",
                   "2-2-2-2",
                   "--strategy",
                   "ring",
                   "--local-batch",
                   std::to_string(plan.local_batch),
                   "--objective",
                   worse ? "throughput" : "price",
                   "--most-global-batch",
                   "512",
                   "--try-workers",
                   worse ? "1,2" : "2,8"};
    if (worse) words = words + Words{"--try-local-batch", "1"};
    const Json printed = JsonOf(words, worse ? 1 : 0);
    NumberTable table = {{"/feasible", true},
                         {"/considered", outcome.considered},
                         {"/out_of_memory", outcome.out_of_memory},
                         {"/over_global_batch", outcome.over_global_batch},
                         {"/over_nodes", outcome.over_nodes},
                         {"/objective_gain", outcome.score_gain},
                         {"/gain", outcome.gain},
                         {"/recommended", outcome.is_advice},
                         {"/baseline_usable", true}};
    const auto add = [&](const std::string& where, const Recommendation& r) {
      const JobOutlook job = MakeOutlook(r.prediction, r.plan, lab.cluster, lab.device, {});
      AddUnder(where, OfPrediction(r.prediction), &table);
      AddUnder(where + "/plan", OfPlan(r.plan), &table);
      AddUnder(where,
               {{"/efficiency", r.efficiency},
                {worse ? "/throughput_samples_per_s" : "/samples_per_usd", r.score},
                {"/spending/price_usd", *job.spending.price_usd},
                {"/spending/servers_priced", true},
                {"/spending/energy_j", *job.spending.energy_j},
                {"/spending/energy_at_most", false},
                {"/spending/energy_of_devices_alone", false},
                {"/spending/device_busy_w", 70}},
               &table);
    };
    add("/best", *outcome.best);
    add("/baseline", *outcome.baseline);
    for (std::size_t i = 0; i < outcome.pareto.size(); ++i) {
      add("/pareto/" + std::to_string(i), outcome.pareto[i]);
    }
    const std::vector<LeftOut> reasons = ReasonsLeftOut(outcome, options);
    EXPECT_FALSE(reasons.empty());
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      table["/left_out/" + std::to_string(i) + "/plans"] = reasons[i].plans;
    }
    ExpectNumbers(printed, table, {"/pays_from"});
  }
}

TEST(Numbers, OfSlowNodes) {
  const Lab lab;
  Plan plan;
  plan.placement = {2, 2, 2, 2};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  const auto unequal = WeighSlowNodes(lab.predictor, plan);
  ASSERT_TRUE(unequal && unequal->by_speed && unequal->fast_only);
  const Words words = {"recommend", "--cluster",          lab.file,  "--workload",
                       "vgg16",     "--placement",        "2-2-2-2", "--strategy",
                       "ring",      "--local-batch",      "32",      "--slow-nodes",
                       "1",         "--slow-speed",       "0.5",     "--try-local-batch",
                       "32",        "--try-accumulation", "1"};
  const Json printed = JsonOf(words, 0);
  NumberTable table;
  const auto add = [&](const char* where, const SharedOut& shared) {
    AddUnder(where,
             {{"/fast_local_batch", shared.fast_batch},
              {"/slow_local_batch", shared.slow_batch},
              {"/step_time_s", shared.step_time.in(kSeconds)},
              {"/throughput_samples_per_s", shared.throughput.in(kSamplesPerSecond)}},
             &table);
  };
  add("/equal", unequal->equal);
  add("/by_speed", *unequal->by_speed);
  add("/fast_only", *unequal->fast_only);
  table["/worth"] = unequal->by_speed->throughput / unequal->fast_only->throughput;
  ExpectNumbers(printed.at("shares"), table, {});

  // A plan states the shares that were found.
  const SharedOut& best = *unequal->by_speed;
  const Json forecast = JsonOf(
      {"predict", "--cluster", lab.file, "--workload", "vgg16", "--placement", "2-2-2-2",
       "--strategy", "ring", "--local-batch", std::to_string(best.fast_batch), "--slow-nodes", "1",
       "--slow-speed", "0.5", "--slow-local-batch", std::to_string(best.slow_batch)},
      0);
  const int samples = 6 * best.fast_batch + 2 * best.slow_batch;
  EXPECT_EQ(forecast.at("plan").at("slow_local_batch"), best.slow_batch);
  EXPECT_EQ(forecast.at("plan").at("global_batch"), samples);
  const double step_time_s = forecast.at("step_time_s");
  EXPECT_NEAR(step_time_s / best.step_time.in(kSeconds), 1, 1e-12);
  const double throughput = forecast.at("throughput_samples_per_s");
  EXPECT_NEAR(throughput * step_time_s / samples, 1, 1e-12);
}

TEST(Numbers, OfAnExplanation) {
  const Lab lab;
  Plan plan;
  plan.placement = {2, 2, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 16;
  const Explanation explanation = lab.predictor.Explain(plan);
  const Json printed =
      JsonOf({"explain", "--cluster", lab.file, "--workload", "vgg16", "--placement", "2-2-1",
              "--strategy", "ring", "--local-batch", "16"});
  ASSERT_EQ(printed.at("terms").size(), explanation.terms.size());
  for (std::size_t i = 0; i < explanation.terms.size(); ++i) {
    const ExplainedTerm& term = explanation.terms[i];
    NumberTable table = {
        {"/result/value", term.result.value}, {"/is_part", term.is_part}, {"/share", term.share}};
    for (std::size_t k = 0; k < term.inputs.size(); ++k) {
      table["/inputs/" + std::to_string(k) + "/value"] = term.inputs[k].value;
    }
    ExpectNumbers(printed.at("terms").at(i), table);
  }
  ASSERT_EQ(printed.at("parameters").size(), explanation.parameters.size());
  for (std::size_t i = 0; i < explanation.parameters.size(); ++i) {
    const ExplainedParameter& parameter = explanation.parameters[i];
    ExpectNumbers(printed.at("parameters").at(i), {{"/value", parameter.value.value},
                                                   {"/log_sd", parameter.log_sd},
                                                   {"/elasticity", parameter.elasticity}});
  }
}

// ---- A diagnosis.

// A complaint with all that can be measured, as options and as C++ takes it.
struct Told {
  Words words;
  Complaint complaint;
};

Told TellAll(const Plan& plan) {
  Told told{{"--measured", "2.5 s"}, {plan, Seconds(2.5), {}}};
  const auto tell = [&](const char* option, const char* text, Measurement measurement) {
    told.words.insert(told.words.end(), {std::string("--") + option, text});
    told.complaint.known.push_back(std::move(measurement));
    return &told.complaint.known.back();
  };
  Plan alone;
  alone.strategy = Strategy::kNone;
  alone.local_batch = plan.local_batch;
  alone.accumulation_steps = plan.accumulation_steps;
  tell("one-worker", "0.5 s", Measurement::Step(alone, Seconds(0.5)));
  tell("slowest-alone", "0.55 s", Measurement::Step(alone, Seconds(0.55)))->slowest_of_hosts = true;
  tell("synthetic-input", "2.3 s", Measurement::Step(plan, Seconds(2.3)))->synthetic_input = true;
  tell("exchange-alone", "1.9 s", Measurement::Step(plan, Seconds(1.9)))->exchange_alone = true;
  if (!UsesServers(plan.strategy)) {
    Plan node = plan;
    node.placement = {2};
    node.hosts.clear();
    node.backup_workers = 0;
    tell("one-node", "0.6 s", Measurement::Step(node, Seconds(0.6)));
  }
  Plan rarer = plan;
  rarer.accumulation_steps = 4;
  rarer.local_batch = 9;
  tell("also", "accumulation=4, local-batch=9: 3.1 s", Measurement::Step(rarer, Seconds(3.1)));
  Plan fewer = plan;
  fewer.placement = {2, 1};
  fewer.hosts.clear();
  tell("also", "placement=2-1: 2.1 s", Measurement::Step(fewer, Seconds(2.1)));
  tell("flow-rate", "3 Gbit/s", Measurement::Rate(GigabitsPerSecond(3.0), 1));
  tell("link-rate", "4 Gbit/s", Measurement::Rate(GigabitsPerSecond(4.0), 8));
  tell("ping", "0.4 ms", Measurement::RoundTrip(Milliseconds(0.4)));
  tell("lost", "12/100000", Measurement::Loss(12e-5, 1e5));
  return told;
}

NumberTable OfDiagnosis(const Diagnosis& d, const Plan& plan) {
  const StepTime<double>& parts = d.expected_parts;
  NumberTable table = {{"/measured_s", d.measured.in(kSeconds)},
                       {"/expected_s", d.expected.in(kSeconds)},
                       {"/low_s", d.low.in(kSeconds)},
                       {"/high_s", d.high.in(kSeconds)},
                       {"/expected_parts/compute_s", parts.compute().in(kSeconds)},
                       {"/expected_parts/exposed_transfer_s", parts.exposed_transfer.in(kSeconds)},
                       {"/expected_parts/exposed_latency_s", parts.exposed_latency.in(kSeconds)},
                       {"/expected_parts/straggler_wait_s", parts.straggler_wait.in(kSeconds)},
                       {"/expected_parts/coding_s", parts.coding.in(kSeconds)},
                       {"/expected_parts/input_wait_s", parts.input_wait.in(kSeconds)}};
  AddUnder("/plan", OfPlan(plan), &table);
  for (std::size_t i = 0; i < d.causes.size(); ++i) {
    const ExplainedBy& cause = d.causes[i];
    const std::string at = "/causes/" + std::to_string(i);
    AddUnder(at,
             {{"/probability", cause.probability},
              {"/step_time_s", cause.step.in(kSeconds)},
              {"/surprise", cause.surprise},
              {"/added_s", cause.added.in(kSeconds)}},
             &table);
    if (cause.size.unit.empty() && cause.size.high <= cause.size.low) continue;
    AddUnder(at + "/size",
             {{"/value", cause.size.value}, {"/low", cause.size.low}, {"/high", cause.size.high}},
             &table);
  }
  for (std::size_t i = 0; i < d.remedies.size(); ++i) {
    const Remedy& remedy = d.remedies[i];
    const std::string at = "/remedies/" + std::to_string(i);
    AddUnder(at,
             {{"/repairs", remedy.repairs},
              {"/step_time_s", remedy.step.in(kSeconds)},
              {"/throughput_samples_per_s", remedy.throughput.in(kSamplesPerSecond)},
              {"/gain", remedy.gain}},
             &table);
    AddUnder(at + "/plan", OfPlan(remedy.plan), &table);
    if (remedy.plan.bytes_per_parameter != plan.bytes_per_parameter) {
      table[at + "/plan/bytes_per_parameter"] = remedy.plan.bytes_per_parameter;
    }
  }
  if (d.next) table["/next/bits"] = d.next->bits;
  return table;
}

TEST(Numbers, OfADiagnosis) {
  const Lab lab;
  const std::string file = lab.folder.Write(
      "named.yaml",
      "name: lab\ndevice: t4\nnodes: 3\ndevices_per_node: 2\nlink: {bandwidth: 10 Gbit/s}\n"
      "hosts: [{name: a}, {name: b}, {name: c}]\n");
  const Predictor predictor(ReadCluster(file), lab.workload, lab.device);
  for (const Strategy strategy : {Strategy::kAllreduce, Strategy::kPsSync}) {
    SCOPED_TRACE(StrategyName(strategy));
    Plan plan;
    plan.placement = {2, 2, 1};
    plan.hosts = {"a", "b", "c"};
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    plan.local_batch = 16;
    plan.accumulation_steps = 2;
    plan.backup_workers = 1;
    Words words = {"diagnose",
                   "--cluster",
                   file,
                   "--workload",
                   "vgg16",
                   "--placement",
                   "2-2-1",
                   "--hosts",
                   "a+b+c",
                   "--strategy",
                   StrategyName(strategy),
                   "--servers",
                   std::to_string(plan.servers),
                   "--local-batch",
                   "16",
                   "--accumulation",
                   "2",
                   "--backup-workers",
                   "1"};
    const Told told = TellAll(plan);
    const Diagnosis all = Diagnose(predictor, told.complaint);
    ExpectNumbers(JsonOf(words + told.words), OfDiagnosis(all, plan));
    // And with the complaint alone, which leaves more to ask.
    const Complaint complaint{plan, Seconds(2.5), {}};
    const Diagnosis bare = Diagnose(predictor, complaint);
    ASSERT_TRUE(bare.next);
    const Json printed = JsonOf(words + Words{"--measured", "2.5 s"});
    ExpectNumbers(printed, OfDiagnosis(bare, plan));
    EXPECT_EQ(printed.at("next").at("text"), bare.next->text);
    EXPECT_EQ(printed.at("next").at("forecasts").size(), bare.next->forecasts.size());
  }
}

// The table shows each point in words; the plot has its line between the bounds of its band.
TEST(Numbers, OfASweepInWordsAndOnAPlot) {
  const Lab lab;
  const Words sweep = {"sweep",         "--cluster", lab.file, "--workload",   "vgg16",
                       "--local-batch", "8",         "--over", "workers=2,4,8"};
  const std::string text = Stepcast(sweep).out;
  for (const int workers : {2, 4, 8}) {
    Plan plan;
    plan.placement = FillNodes(workers, 2);
    plan.local_batch = 8;
    const Prediction p = lab.predictor.Predict(plan);
    for (const std::string& said :
         {FormatDuration(p.step_time), FormatDuration(p.low) + " - " + FormatDuration(p.high),
          FormatThroughput(p.throughput), FormatPercent(p.idle_ratio())}) {
      EXPECT_NE(text.find(said), std::string::npos) << said << " is not in\n" << text;
    }
  }
  const std::string plot = lab.folder.Path("sweep.svg");
  const auto heights = [](const std::string& svg, const std::string& begin) {
    const std::size_t at = svg.find(
        "<path d=\"", svg.find(begin) == std::string::npos ? 0 : svg.rfind('\n', svg.find(begin)));
    std::string path = svg.substr(at + 9, svg.find('"', at + 9) - at - 9);
    std::replace_if(
        path.begin(), path.end(), [](char c) { return c == 'M' || c == 'L' || c == 'Z'; }, ' ');
    std::istringstream numbers(path);
    std::vector<double> ys;
    for (double x = 0, y = 0; numbers >> x >> y;) ys.push_back(y);
    return ys;
  };
  for (const char* what : {"throughput", "step_time"}) {
    EXPECT_EQ(Stepcast(sweep + Words{"--plot", plot, "--y", what}).exit_code, 0);
    const std::string svg = FileContent(plot);
    const std::vector<double> band = heights(svg, "fill-opacity=\"0.14\"");
    const std::vector<double> line = heights(svg, "fill=\"none\" stroke=\"#0072b2\"");
    ASSERT_EQ(line.size(), 3U) << what;
    ASSERT_EQ(band.size(), 6U) << what;
    for (std::size_t i = 0; i < line.size(); ++i) {
      // Heights are counted downwards; the band goes along one bound and comes back on the other.
      EXPECT_LT(band[i], line[i] - 0.5) << what;
      EXPECT_GT(band[5 - i], line[i] + 0.5) << what;
    }
  }
}

// Numbers of one size lie on a plain axis: equal differences are as far apart as each other. From
// fifty times on equal ratios are.
TEST(Numbers, OfTheAxisOfASweep) {
  const Lab lab;
  const std::string plot = lab.folder.Path("axis.svg");
  const auto places = [&](const std::string& over) {
    EXPECT_EQ(Stepcast({"sweep", "--cluster", lab.file, "--workload", "vgg16", "--local-batch", "2",
                        "--workers", "4", "--over", over, "--plot", plot})
                  .exit_code,
              0);
    const std::string svg = FileContent(plot);
    std::vector<double> found;
    const std::regex marker("<circle cx=\"([0-9.]+)\"");
    for (std::sregex_iterator at(svg.begin(), svg.end(), marker), end; at != end; ++at) {
      found.push_back(std::stod((*at)[1]));
    }
    return found;
  };
  for (const std::string over : {"local-batch=1,25,49", "bandwidth=1 Gbit/s,2 Gbit/s,3 Gbit/s"}) {
    const std::vector<double> x = places(over);
    ASSERT_EQ(x.size(), 3U) << over;
    EXPECT_NEAR(x[2] - x[1], x[1] - x[0], 0.03) << over;
  }
  for (const std::string over :
       {"local-batch=1,7,49,343", "bandwidth=1 Gbit/s,10 Gbit/s,100 Gbit/s,1000 Gbit/s"}) {
    const std::vector<double> x = places(over);
    ASSERT_EQ(x.size(), 4U) << over;
    EXPECT_NEAR(x[2] - x[1], x[1] - x[0], 0.03) << over;
    EXPECT_NEAR(x[3] - x[2], x[1] - x[0], 0.03) << over;
  }
}

// Named hosts say on how many nodes a point of a sweep is, and what does not fit is said.
TEST(Numbers, OfHostsInASweep) {
  const Lab lab;
  const Json printed = JsonOf({"sweep", "--cluster", lab.file, "--workload", "vgg16",
                               "--local-batch", "8", "--over", "hosts=a,a+b+c"});
  ASSERT_EQ(printed.at("points").size(), 2U);
  EXPECT_EQ(printed.at("points").at(0).at("plan").at("workers"), 2);
  EXPECT_EQ(printed.at("points").at(1).at("plan").at("workers"), 6);
  const std::string text = Stepcast({"sweep", "--cluster", lab.file, "--workload", "vgg16",
                                     "--over", "local-batch=8,4096"})
                               .out;
  // At the end of one line of the table.
  EXPECT_EQ(text.find("out of memory\n"), text.rfind("out of memory\n")) << text;
  EXPECT_NE(text.find("out of memory\n"), std::string::npos) << text;
}

TEST(Numbers, OfEachPointOfASweep) {
  const Lab lab;
  const Json printed =
      JsonOf({"sweep", "--cluster", lab.file, "--workload", "vgg16", "--local-batch", "8", "--over",
              "workers=1..4..3", "--over", "bandwidth=1 Gbit/s,5 Gbit/s"});
  ASSERT_EQ(printed.at("points").size(), 4U);
  std::size_t at = 0;
  for (const int workers : {1, 4}) {
    for (const double rate : {1.0, 5.0}) {
      Plan plan;
      plan.placement = FillNodes(workers, 2);
      plan.local_batch = 8;
      plan.strategy = workers == 1 ? Strategy::kNone : Strategy::kAllreduce;
      plan.link.bandwidth = GigabitsPerSecond(rate);
      NumberTable table = OfPrediction(lab.predictor.Predict(plan));
      AddUnder("/plan", OfPlan(plan), &table);
      ExpectNumbers(printed.at("points").at(at++), table,
                    {"/spending", "/outlook", "/time_limit", "/finishes"});
    }
  }
}

TEST(Numbers, OfTheLists) {
  const Json workloads = JsonOf({"workloads"}).at("workloads");
  ASSERT_EQ(workloads.size(), WorkloadNames().size());
  for (const Json& printed : workloads) {
    const Workload w = *FindWorkload(printed.at("name").get<std::string>());
    EXPECT_EQ(printed.at("inputs_vary"), w.inputs_vary.value());
    EXPECT_EQ(printed.at("precision"), "fp32");
    EXPECT_EQ(printed.at("optimizer"), "momentum");
    EXPECT_EQ(printed.at("attention"), w.attention == AttentionForm::kFused ? "fused" : "plain");
    EXPECT_EQ(printed.at("recompute"), "none");
    ExpectNumbers(printed,
                  {{"/parameters", w.parameters},
                   {"/trainable_parameters", w.trainable_parameters},
                   {"/gradient_bytes", w.gradient_bytes.in(kBytes)},
                   {"/forward_flop", w.forward_flop().si()},
                   {"/activation_bytes", w.activation_bytes().in(kBytes)},
                   {"/layers", w.layers.size()}},
                  {"/inputs_vary"});
  }
  const Json clusters = JsonOf({"machines"}).at("clusters");
  ASSERT_GT(clusters.size(), 5U);
  for (const Json& printed : clusters) {
    const Cluster c =
        ReadCluster(kData + "/machines/" + printed.at("name").get<std::string>() + ".yaml");
    NumberTable table = {{"/nodes", c.nodes},
                         {"/devices_per_node", c.devices_per_node},
                         {"/calibrated", c.calibration.has_value()}};
    if (c.link.bandwidth) table["/link_gbit_per_s"] = c.link.bandwidth->in(kGigabitsPerSecond);
    ExpectNumbers(printed, table);
  }
}

TEST(Numbers, OfTheFormulasAndTheirParameters) {
  const Json json = JsonOf({"models"});
  const std::vector<Model<double>> catalog = Catalog<double>();
  ASSERT_EQ(json.at("models").size(), catalog.size());
  for (std::size_t i = 0; i < catalog.size(); ++i) {
    NumberTable table;
    for (std::size_t k = 0; k < catalog[i].inputs.size(); ++k) {
      const std::string at = "/inputs/" + std::to_string(k);
      table[at + "/low"] = catalog[i].inputs[k].low;
      table[at + "/high"] = catalog[i].inputs[k].high;
    }
    for (std::size_t k = 0; k < catalog[i].known.size(); ++k) {
      const KnownCase& known = catalog[i].known[k];
      const std::string at = "/known/" + std::to_string(k);
      table[at + "/expected"] = known.expected;
      for (std::size_t n = 0; n < known.inputs.size(); ++n) {
        table[at + "/inputs/" + std::to_string(n)] = known.inputs[n];
      }
    }
    ExpectNumbers(json.at("models").at(i), table);
  }
  ASSERT_EQ(json.at("parameters").size(), kParameterSpecs.size());
  for (std::size_t i = 0; i < kParameterSpecs.size(); ++i) {
    const ParameterSpec& spec = *kParameterSpecs[i];
    ExpectNumbers(json.at("parameters").at(i), {{"/prior", spec.prior},
                                                {"/prior_log_sd", spec.prior_log_sd},
                                                {"/low", spec.low},
                                                {"/high", spec.high}});
  }
}

// The contents by the samples, whatever is wrong with them; and what they add up to.
TEST(Numbers, OfAProfile) {
  const ComputeProfile profile = ProfileWithWrongPoints();
  const TempFolder folder;
  const std::string file = folder.Write("it.profile.jsonl", FormatComputeProfile(profile));
  std::map<MeasuredPoint, PointSamples> points;
  for (const MeasuredSamples& samples : profile.samples) points[samples.point].Add(samples);
  std::map<std::string, int> counts;
  std::set<int> batches;
  for (const auto& [point, samples] : points) {
    counts["/out_of_memory"] += samples.status() == PointStatus::kOutOfMemory ? 1 : 0;
    counts["/unsupported"] += samples.status() == PointStatus::kUnsupported ? 1 : 0;
    if (!samples.measured()) continue;
    ++counts["/measured"];
    counts["/busy"] += samples.busy() ? 1 : 0;
    counts["/throttled"] += samples.throttled() ? 1 : 0;
    counts["/samples"] += static_cast<int>(samples.summary().count);
    counts["/outliers"] += static_cast<int>(samples.summary().outliers);
    const bool is_layer =
        point.pass != TrainingPass::kUpdate && !std::holds_alternative<AllocateOp>(point.operation);
    if (is_layer) batches.insert(point.batch);
  }
  NumberTable table(counts.begin(), counts.end());
  std::size_t at = 0;
  for (const int batch : batches) table["/batches/" + std::to_string(at++)] = batch;
  const Json contents = JsonOf({"profile", file});
  ExpectNumbers(contents, table, {"/points"});
  EXPECT_GT(counts["/outliers"], 0);
  EXPECT_GE(counts["/busy"] + counts["/throttled"], 1);
  int kinds = 0;
  for (const auto& [kind, count] : contents.at("points").items()) kinds += count.get<int>();
  EXPECT_EQ(kinds, counts["/measured"]);

  const std::string shipped = kData + "/profiles/xeon-onednn-1.profile.jsonl";
  const Workload workload = *FindWorkload("resnet50");
  const ProfiledCompute compute(ReadComputeProfile(shipped).profile, workload);
  const int batch = static_cast<int>(compute.batches().back());
  const ProfiledSum sum = compute.Sum(batch);
  NumberTable sums = {{"/local_batch", batch},
                      {"/forward_s", sum.forward.si()},
                      {"/backward_s", sum.backward.si()},
                      {"/update_s", sum.update.si()},
                      {"/host_s", sum.host.si()},
                      {"/host_update_s", sum.host_update.si()},
                      {"/allocation_s", sum.allocation.si()},
                      {"/micro_step_s", compute.MicroStep(batch).si()},
                      {"/log_sd", compute.LogSd(batch)},
                      {"/scaled_s", sum.scaled.si()},
                      {"/beyond_batches_s", sum.beyond.si()}};
  for (std::size_t i = 0; i < sum.layers.size(); ++i) {
    const auto add = [&](const char* pass, const OperationTime& time) {
      if (time.origin == TimeOrigin::kNone) return;
      const std::string place = "/layers/" + std::to_string(i) + "/" + pass;
      sums[place + "/seconds"] = time.time.si();
      sums[place + "/log_sd"] = time.log_sd;
    };
    add("forward", sum.layers[i].forward);
    add("backward", sum.layers[i].backward);
    add("update", sum.layers[i].update);
  }
  const Words shipped_words = {"profile", shipped, "--workload", "resnet50"};
  ExpectNumbers(JsonOf(shipped_words), sums);
  // What the host adds, in words.
  ASSERT_GT(std::min({sum.host, sum.allocation, sum.host_update}).si(), 0);
  const std::string host = "The host adds " + FormatDuration(sum.host) + " of its own and " +
                           FormatDuration(sum.allocation) + " for memory mapped anew, " +
                           FormatDuration(sum.host + sum.allocation + sum.host_update) +
                           " a step with the update; ";
  const std::string text = Unwrapped(Stepcast(shipped_words).out);
  EXPECT_NE(text.find(host), std::string::npos) << host << "\n" << text;
  EXPECT_NE(text.find("Micro-step " + FormatDuration(compute.MicroStep(batch)) + ", update " +
                      FormatDuration(sum.update + sum.host_update) + "."),
            std::string::npos)
      << text;

  // The shares of the kinds of layers, whose updates are a part of them, make up the whole.
  const std::string few = std::to_string(static_cast<int>(compute.batches().front()));
  std::istringstream shown(
      Stepcast({"profile", shipped, "--workload", "resnet50", "--local-batch", few}).out);
  double shares = 0;
  const std::regex share("([0-9.]+) %");
  for (std::string line; std::getline(shown, line) && line.find("  sum ") == std::string::npos;) {
    std::smatch match;
    if (std::regex_search(line, match, share)) shares += std::stod(match[1]);
  }
  EXPECT_NEAR(shares, 100, 0.5);
}

// A layer is known as well as the worst of its passes: here as its update alone, which was not
// measured.
TEST(Numbers, OfALayerWhoseUpdateWasNotMeasured) {
  ComputeProfile profile =
      ReadComputeProfile(kData + "/profiles/xeon-onednn-1.profile.jsonl").profile;
  const auto origins = [&] {
    const TempFolder folder;
    const std::string file = folder.Write("it.profile.jsonl", FormatComputeProfile(profile));
    const Words words = {"profile", file, "--workload", "resnet50", "--local-batch", "16"};
    const Json layers = JsonOf(words).at("layers");
    for (const Json& layer : layers) {
      if (layer.at("name") != "conv1_bn") continue;
      EXPECT_EQ(layer.at("forward").at("origin"), "measured");
      EXPECT_EQ(layer.at("backward").at("origin"), "measured");
      const std::string text = Stepcast(words + Words{"--layers"}).out;
      std::istringstream row(text.substr(text.find("  conv1_bn ")));
      std::string line;
      std::getline(row, line);
      return std::pair(layer.at("update").at("origin").get<std::string>(),
                       line.substr(line.rfind(' ') + 1));
    }
    return std::pair<std::string, std::string>();
  };
  EXPECT_EQ(origins(), std::pair(std::string("measured"), std::string("measured")));
  std::erase_if(profile.samples, [](const MeasuredSamples& samples) {
    const auto* update = std::get_if<UpdateOp>(&samples.point.operation);
    return update != nullptr && update->parameters == 2 * 64;  // scales and shifts of 64 channels
  });
  EXPECT_EQ(origins(), std::pair(std::string("scaled"), std::string("scaled")));
}

// What remains unknown falls from run to run, and each takes the time of all of its devices.
TEST(Numbers, OfTheNextRuns) {
  const Lab lab;
  const Json json = JsonOf(
      {"plan", "--cluster", lab.file, "--workload", "vgg16", "--local-batch", "8", "--count", "4"});
  Plan whole;
  whole.placement = Placement(8, 2);
  whole.strategy = Strategy::kAllreduce;
  whole.local_batch = 8;
  const Prediction now = lab.predictor.Predict(whole);
  EXPECT_NEAR(json.at("half_width"), now.high / now.step_time - 1, 1e-9);
  double before = json.at("log_sd");
  EXPECT_NEAR(before, now.log_sd, 1e-9);
  ASSERT_EQ(json.at("runs").size(), 4U);
  std::vector<double> started;
  for (const Json& run : json.at("runs")) {
    const double log_sd = run.at("log_sd");
    EXPECT_LT(log_sd, before);
    before = log_sd;
    // The interval reaches as far up as down, or further.
    EXPECT_GE(run.at("half_width").get<double>(), NinetyPercentFactor(log_sd) - 1 - 1e-9);
    Plan plan;
    plan.placement.clear();
    std::istringstream placement(run.at("plan").at("placement").get<std::string>());
    for (std::string node; std::getline(placement, node, '-');) {
      plan.placement.push_back(std::stoi(node));
    }
    plan.strategy = plan.workers() == 1 ? Strategy::kNone : Strategy::kAllreduce;
    plan.local_batch = run.at("plan").at("local_batch");
    const double step = lab.predictor.PredictStep(plan).total().in(kSeconds);
    EXPECT_NEAR(run.at("step_time_s"), step, 1e-9 * step);
    // As many steps for each, behind what a job takes to start.
    started.push_back(run.at("device_s").get<double>() / plan.workers() - kMeasuredSteps * step);
  }
  for (const double start : started) EXPECT_NEAR(start, started.front(), 1e-6 * start);
  EXPECT_GT(started.front(), 1);
}

// ---- Fits, checks, and what they are judged by.

constexpr const char* kHeader =
    "workload,device,placement,servers,strategy,local_batch,accumulation_steps,step_time_s\n";

std::string RunsOf(const Predictor& truth, const std::vector<Placement>& placements,
                   const std::vector<int>& batches, double factor, double* worst = nullptr) {
  std::string rows = kHeader;
  int at = 0;
  for (const Placement& placement : placements) {
    for (const int batch : batches) {
      Plan plan;
      plan.placement = placement;
      plan.strategy = plan.workers() == 1 ? Strategy::kNone : Strategy::kAllreduce;
      plan.local_batch = batch;
      // A scatter of some per cent, the same each time.
      const double noise = 1 + 0.03 * ((at * 7) % 5 - 2);
      std::string text;
      for (const int devices : placement)
        text += (text.empty() ? "" : "-") + std::to_string(devices);
      double step = truth.PredictStep(plan).total().in(kSeconds)*factor * noise;
      if (worst != nullptr && at == 3) step *= *worst;
      rows += "vgg16,t4," + text + ",0," + StrategyName(plan.strategy) + "," +
              std::to_string(batch) + ",1," + Json(step).dump() + "\n";
      ++at;
    }
  }
  return rows;
}

TEST(Numbers, OfAFitItsCheckAndItsErrors) {
  const Lab lab;
  double spoilt = 6;
  const std::string runs = lab.folder.Write(
      "runs.csv",
      RunsOf(lab.predictor, {{1}, {2}, {1, 1}, {2, 2}, {1, 1, 1}}, {4, 8, 16, 32}, 1, &spoilt));
  const std::string fitted = lab.folder.Path("fitted.yaml");
  const Json printed =
      JsonOf({"calibrate", "--cluster", lab.file, "--runs", runs, "--output", fitted, "--all"});
  CalibrationProblem problem;
  problem.cluster = lab.cluster;
  problem.runs = ReadRuns(runs);
  problem.workloads["vgg16"] = lab.workload;
  problem.devices["t4"] = lab.device;
  const CalibrationOutcome outcome = Calibrate(problem);
  ASSERT_TRUE(outcome.IsUsable());
  // The fit's own summary, by arithmetic.
  double mape = 0;
  for (std::size_t i = 0; i < problem.runs.size(); ++i) {
    mape += std::abs(outcome.residuals[i].predicted / problem.runs[i].step_time - 1) /
            static_cast<double>(problem.runs.size());
  }
  const Calibration& calibration = *outcome.cluster.calibration;
  NumberTable table = {{"/usable", true},
                       {"/runs", 20},
                       {"/stopped_runs", 0},
                       {"/iterations", outcome.iterations},
                       {"/mape", outcome.mape},
                       {"/residual_log_sd", calibration.residual_log_sd},
                       {"/repeat_log_sd", Or(calibration.repeat_log_sd)},
                       {"/sync_jitter", Or(calibration.sync_jitter)},
                       {"/alternatives", static_cast<double>(calibration.alternatives.rows())}};
  EXPECT_NEAR(outcome.mape, mape, 1e-12);
  for (const auto& [scope, scatter] : calibration.scatter) {
    table["/scatter/" + scope + "/compute"] = scatter.compute;
    table["/scatter/" + scope + "/sync"] = scatter.sync;
  }
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const ParameterEstimate& p = calibration.parameters[i];
    AddUnder("/parameters/" + std::to_string(i),
             {{"/value", p.value},
              {"/log_sd", p.log_sd},
              {"/low", p.low},
              {"/high", p.high},
              {"/prior_value", p.prior_value},
              {"/prior_log_sd", p.prior_log_sd}},
             &table);
    EXPECT_LE(p.low, p.value) << p.name;
    EXPECT_LE(p.value, p.high) << p.name;
  }
  EXPECT_EQ(printed.at("suspects").size(), 1U);
  table["/suspects/0/line"] = 5;
  table["/suspects/0/stopped"] = false;
  table["/suspects/0/measured_step_time_s"] = problem.runs[3].step_time.in(kSeconds);
  table["/suspects/0/predicted_step_time_s"] = outcome.residuals[3].predicted.in(kSeconds);
  ExpectNumbers(printed, table, {"/ambiguities", "/whole_cluster"});

  // The forecast of the whole cluster, and in words what its interval is made of.
  Plan whole;
  whole.placement = Placement(8, 2);
  whole.local_batch = 4;
  const Prediction p = Predictor(outcome.cluster, lab.workload, lab.device).Predict(whole);
  // Pairs are known less well alone than beside the other, and a run that parts them helps.
  const std::vector<Ambiguity> pairs = FindAmbiguities(
      BelievedModel(outcome.cluster, lab.workload, lab.device, "t4"),
      CandidatePlans(whole, calibration.range.local_batch.at(WorkloadScope(lab.workload, "t4"))));
  ASSERT_FALSE(pairs.empty());
  ASSERT_EQ(printed.at("ambiguities").size(), pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Ambiguity& pair = pairs[i];
    NumberTable of_pair = {{"/first", pair.first},
                           {"/second", pair.second},
                           {"/known", pair.product ? "product" : "ratio"},
                           {"/log_sd", pair.log_sd},
                           {"/conditional_log_sd", pair.conditional_log_sd}};
    if (pair.separating) {
      AddUnder("/separating_run", OfPlan(*pair.separating), &of_pair);
      of_pair["/separated_log_sd"] = pair.separated_log_sd;
      EXPECT_LT(pair.separated_log_sd, pair.log_sd);
    }
    EXPECT_LT(pair.conditional_log_sd, pair.log_sd);
    ExpectNumbers(printed.at("ambiguities").at(i), of_pair);
  }
  EXPECT_TRUE(pairs.front().separating);

  ASSERT_EQ(printed.at("whole_cluster").size(), 1U);
  NumberTable of_whole = OfPrediction(p);
  AddUnder("/plan", OfPlan(whole), &of_whole);
  ExpectNumbers(printed.at("whole_cluster").at(0), of_whole, {"/spending"});
  const std::string budget = Stepcast({"calibrate", "--cluster", lab.file, "--runs", runs}).out;
  std::size_t at = budget.find("beyond the runs");
  for (const std::string& cell :
       {FormatDuration(p.step_time), FormatPercent(p.parameter_log_sd),
        FormatPercent(p.scatter_log_sd), FormatPercent(p.discrepancy_log_sd),
        FormatDuration(p.low) + " - " + FormatDuration(p.high)}) {
    at = budget.find(cell, at);
    ASSERT_NE(at, std::string::npos) << cell << "\n" << budget;
    at += cell.size();
  }

  const Cluster known = ReadCluster(fitted);
  const Predictor forecast(known, lab.workload, lab.device);
  const std::string slower =
      lab.folder.Write("slower.csv", RunsOf(forecast, {{1}, {2}, {2, 2}}, {4, 8, 16, 32}, 1.5));
  DriftProblem check{known, ReadRuns(slower), problem.workloads, problem.devices};
  const DriftReport report = CheckDrift(check);
  ASSERT_FALSE(report.drifts.empty());
  NumberTable of_check = {{"/stale", report.stale},
                          {"/runs", 12},
                          {"/stopped_runs", 0},
                          {"/overdue_runs", 0},
                          {"/mean_log_ratio", report.mean_log_ratio},
                          {"/scatter", report.scatter},
                          {"/p_value", report.p_value}};
  for (std::size_t i = 0; i < report.drifts.size(); ++i) {
    const ParameterDrift& d = report.drifts[i];
    AddUnder("/drifts/" + std::to_string(i),
             {{"/before", d.before},
              {"/now", d.now},
              {"/log_sd", d.log_sd},
              {"/z", d.z},
              {"/alternative", d.alternative}},
             &of_check);
  }
  const Words check_words = {"calibrate", "--cluster", fitted, "--check", slower};
  ExpectNumbers(JsonOf(check_words, 1), of_check);
  const ParameterDrift& first = report.drifts.front();
  char factor[80];
  std::snprintf(factor, sizeof factor, "(x %.3g, %.1f standard errors)", first.now / first.before,
                std::abs(first.z));
  EXPECT_NE(Stepcast(check_words).out.find(factor), std::string::npos) << factor;

  // Too few runs to tell are a no, though nothing seems stale.
  const std::string few = lab.folder.Write("few.csv", RunsOf(forecast, {{1}}, {4, 8}, 1));
  ASSERT_LT(2, kFewestDriftRuns);
  const Json too_few = JsonOf({"calibrate", "--cluster", fitted, "--check", few}, 1);
  EXPECT_EQ(too_few.at("stale"), false);
  EXPECT_EQ(too_few.at("runs"), 2);
}

// A row for each change of each field that a column states: evaluate takes none for another.
TEST(Numbers, EvaluateForecastsEachPlanFieldByField) {
  const Lab lab;
  Runs runs;
  for (const ChangedPlan& changed : ChangedPlans()) {
    if (changed.facts.column == nullptr) continue;
    for (Plan plan : {changed.before, changed.after}) {
      plan.local_batch += 7;
      stepcast::Run run;
      run.workload = "vgg16";
      run.device = "t4";
      run.plan = plan;
      // Some forecasts are too high, and some too low.
      run.step_time =
          Seconds((runs.size() % 3 == 0 ? 50.0 : 0.05) + 0.001 * static_cast<double>(runs.size()));
      runs.push_back(run);
    }
  }
  const Json printed = JsonOf({"evaluate", "--cluster", lab.file, "--rows", "--runs",
                               lab.folder.Write("fields.csv", FormatRuns(runs))});
  ASSERT_EQ(printed.at("rows").size(), runs.size());
  std::vector<double> errors;
  double bias = 0;
  double covered = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Prediction p = lab.predictor.Predict(runs[i].plan);
    ExpectNumbers(printed.at("rows").at(i),
                  {{"/predicted_step_time_s", p.step_time.in(kSeconds)},
                   {"/low_s", p.low.in(kSeconds)},
                   {"/high_s", p.high.in(kSeconds)},
                   {"/measured_step_time_s", runs[i].step_time.in(kSeconds)},
                   {"/doublings_beyond", DoublingsBeyond(runs[i].plan, {}, {})},
                   {"/stopped", false}});
    const double error = p.step_time / runs[i].step_time - 1;
    bias += error / static_cast<double>(runs.size());
    errors.push_back(std::abs(error));
    const bool inside = p.low <= runs[i].step_time && runs[i].step_time <= p.high;
    covered += inside ? 1.0 / static_cast<double>(runs.size()) : 0;
  }
  std::sort(errors.begin(), errors.end());
  double mape = 0;
  for (const double error : errors) mape += error / static_cast<double>(errors.size());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(errors.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    return errors[below] +
           (at - std::floor(at)) * (errors[std::min(below + 1, errors.size() - 1)] - errors[below]);
  };
  const Json& overall = printed.at("overall");
  EXPECT_EQ(overall.at("runs"), runs.size());
  EXPECT_NEAR(overall.at("mape"), mape, 1e-12 * mape);
  EXPECT_NEAR(overall.at("bias"), bias, 1e-12 * mape);
  EXPECT_NEAR(overall.at("median_ape"), quantile(0.5), 1e-12);
  EXPECT_NEAR(overall.at("p90_ape"), quantile(0.9), 1e-12);
  EXPECT_NEAR(overall.at("coverage90"), covered, 1e-12);
  EXPECT_EQ(overall.at("stopped_runs"), 0);
  EXPECT_EQ(overall.at("stopped_forecast_longer"), 0);
}

// A distance of 1.2 doublings is named by the next whole one.
TEST(Numbers, DistancesAreDoublingsRoundedUp) {
  const Lab lab;
  const std::string fitted = lab.folder.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", lab.file, "--runs",
          lab.folder.Write("fit.csv", RunsOf(lab.predictor, {{1}, {2}, {1, 1}}, {8, 16}, 1)),
          "--output", fitted});
  const CalibratedRange range = ReadCluster(fitted).calibration->range;
  const auto batches = range.BatchesOf(WorkloadScope(*FindWorkload("vgg16"), "t4"));
  std::map<std::string, int> expected;
  const std::vector<Placement> placements = {{1}, {1, 1}, {1, 1, 1}, {2, 2, 2}, {2, 2, 2, 2, 2}};
  int between = 0;
  for (const Placement& placement : placements) {
    Plan plan;
    plan.placement = placement;
    plan.local_batch = 16;
    const double doublings = DoublingsBeyond(plan, range, batches);
    between += doublings != std::round(doublings) ? 1 : 0;
    ++expected[std::to_string(static_cast<int>(std::ceil(doublings)))];
  }
  EXPECT_GE(between, 2);
  const Json printed =
      JsonOf({"evaluate", "--cluster", fitted, "--runs",
              lab.folder.Write("all.csv", RunsOf(lab.predictor, placements, {16}, 1)), "--group-by",
              "distance"});
  std::map<std::string, int> groups;
  for (const Json& group : printed.at("groups")) groups[group.at("name")] = group.at("runs");
  EXPECT_EQ(groups, expected);
}

// Where compute is long enough a round trip is what keeps a plan from using its devices.
TEST(Numbers, OfTheRoundTripThatReachesAUtilisation) {
  const Lab lab;
  Plan plan;
  plan.placement = {2, 2};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 256;
  plan.link.bandwidth = GigabitsPerSecond(100.0);
  plan.link.rtt = Milliseconds(5.0);
  const InverseAnswers inverse = AnswerInverseQuestions(lab.predictor, plan, 2, 8);
  const Json printed = JsonOf({"limits", "--cluster", lab.file, "--workload", "vgg16",
                               "--placement", "2-2", "--strategy", "ring", "--local-batch", "256",
                               "--bandwidth", "100 Gbit/s", "--rtt", "5 ms", "--most-workers", "8"})
                           .at("inverse")
                           .at("reaches");
  ASSERT_EQ(printed.size(), inverse.reaches.size());
  int told = 0;
  for (std::size_t i = 0; i < inverse.reaches.size(); ++i) {
    const std::optional<Duration<>>& rtt = inverse.reaches[i].rtt;
    ASSERT_EQ(printed.at(i).at("rtt_ms").is_null(), !rtt) << i;
    if (!rtt) continue;
    ++told;
    EXPECT_TRUE(Same(printed.at(i).at("rtt_ms"), rtt->in(kMilliseconds))) << printed.at(i);
  }
  EXPECT_GT(told, 0);
}

// The scores of a group are those of a file that has its runs alone, stopped ones among them.
TEST(Numbers, OfEachGroupOfAnEvaluation) {
  const Lab lab;
  std::string all = RunsOf(lab.predictor, {{1}, {1, 1}, {2, 2}}, {4, 16}, 1.2);
  // Three were stopped: the first before anybody would forecast an end, another long behind it, and
  // one between the forecast and the end of its interval.
  Plan stopped;
  stopped.placement = {2, 2};
  stopped.strategy = Strategy::kAllreduce;
  stopped.local_batch = 4;
  const Prediction p = lab.predictor.Predict(stopped);
  const std::string between = ">" + std::to_string(0.5 * (p.step_time + p.high).in(kSeconds));
  for (const std::string& bound : {std::string(">0.001"), std::string(">5000"), between}) {
    all += "vgg16,t4,2-2,0,allreduce,4,1," + bound + "\n";
  }
  const Words evaluate = {"evaluate", "--cluster", lab.file, "--runs"};
  const Json printed =
      JsonOf(evaluate + Words{lab.folder.Write("all.csv", all), "--group-by", "workers"});
  ASSERT_EQ(printed.at("groups").size(), 3U);
  for (const auto& [name, placement] :
       {std::pair("1", ",1,0,"), std::pair("2", ",1-1,0,"), std::pair("4", ",2-2,0,")}) {
    std::string own = kHeader;
    std::istringstream rows(all);
    for (std::string row; std::getline(rows, row);) {
      if (row.find(placement) != std::string::npos) own += row + "\n";
    }
    Json alone = JsonOf(evaluate + Words{lab.folder.Write("own.csv", own)}).at("overall");
    alone["name"] = name;
    EXPECT_EQ(std::count(printed.at("groups").begin(), printed.at("groups").end(), alone), 1)
        << alone << "\n"
        << printed.at("groups");
  }
  const Json& overall = printed.at("overall");
  EXPECT_EQ(overall.at("runs"), 6);
  EXPECT_EQ(overall.at("stopped_runs"), 3);
  EXPECT_EQ(overall.at("stopped_forecast_longer"), 2);
}

}  // namespace
}  // namespace stepcast
