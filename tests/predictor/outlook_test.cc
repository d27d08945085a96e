// What a step means for a job, against figures worked out by hand.
#include "predictor/outlook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "data/io/machines.h"
#include "data/values/numbers.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

// 8 workers on 2 nodes, 64 samples each in 2 micro-steps; 2 s a step, half of it compute.
Plan SomePlan() {
  Plan plan;
  plan.placement = {4, 4};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  plan.accumulation_steps = 2;
  return plan;
}

Plan ServerPlan(Strategy strategy, int servers) {
  Plan plan = SomePlan();
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

Prediction SomePrediction() {
  Prediction p;
  p.breakdown.forward = Seconds(0.4);
  p.breakdown.backward = Seconds(0.5);
  p.breakdown.update = Seconds(0.1);
  p.breakdown.exposed_transfer = Seconds(1.0);
  p.step_time = p.breakdown.total();
  p.log_sd = 0.1;
  p.low = p.step_time / std::exp(0.16448536);
  p.high = p.step_time * std::exp(0.16448536);
  return p;
}

Cluster PricedCluster() {
  Cluster cluster;
  cluster.node_price_per_hour = 3.6;
  cluster.device_power_w = 300;
  cluster.device_idle_power_w = 60;
  cluster.node_power_w = 200;
  return cluster;
}

JobOutlook Outlook(const OutlookOptions& options, const Plan& plan = SomePlan(),
                   const Cluster& cluster = PricedCluster()) {
  return MakeOutlook(SomePrediction(), plan, cluster, std::nullopt, options);
}

// ---- The time limit.

TEST(Outlook, TheLimitFollowsTheLogNormalInterval) {
  const Prediction p = SomePrediction();
  EXPECT_NEAR(MakeLimitOutlook(p, Seconds(2.0)).probability, 0.5, 1e-12);
  // Two standard deviations above, one below.
  EXPECT_NEAR(MakeLimitOutlook(p, Seconds(2.0 * std::exp(0.2))).probability, 0.97724987, 1e-7);
  EXPECT_NEAR(MakeLimitOutlook(p, Seconds(2.0 * std::exp(-0.1))).probability, 0.15865525, 1e-7);
  // The end of the interval leaves 5 %.
  const LimitOutlook at_end = MakeLimitOutlook(p, p.low);
  EXPECT_NEAR(at_end.probability, 0.05, 1e-7);
  EXPECT_TRUE(at_end.finishes);
  EXPECT_FALSE(MakeLimitOutlook(p, p.low * 0.999).finishes);
  EXPECT_TRUE(MakeLimitOutlook(p, Seconds(1.8)).finishes) << "inside the interval";
  double before = 0;
  for (double limit = 0.5; limit < 8; limit *= 1.1) {
    const double now = MakeLimitOutlook(p, Seconds(limit)).probability;
    EXPECT_GE(now, before);
    before = now;
  }
}

// Where the interval reaches further up than down, so does what is left beyond it.
TEST(Outlook, TheUpperEndOfTheIntervalLeavesFivePerCent) {
  Prediction p = SomePrediction();
  p.high = p.step_time * 3.0;
  EXPECT_NEAR(MakeLimitOutlook(p, p.high).probability, 0.95, 1e-7);
  EXPECT_NEAR(MakeLimitOutlook(p, p.low).probability, 0.05, 1e-7);
  EXPECT_NEAR(MakeLimitOutlook(p, p.step_time).probability, 0.5, 1e-12);
}

TEST(Outlook, ACertainStepFinishesOrNot) {
  Prediction p = SomePrediction();
  p.log_sd = 0;
  p.low = p.high = p.step_time;
  EXPECT_EQ(MakeLimitOutlook(p, Seconds(2.0)).probability, 1);
  EXPECT_EQ(MakeLimitOutlook(p, Seconds(1.99)).probability, 0);
  EXPECT_FALSE(MakeLimitOutlook(p, Seconds(1.99)).finishes);
}

TEST(Outlook, NothingIsToldThatWasNotAsked) {
  const JobOutlook job = Outlook({});
  EXPECT_FALSE(job.limit || job.efficiency || job.goodput || job.epoch || job.target ||
               job.failures);
}

// ---- Money and energy.

TEST(Outlook, NodesAndServersArePaidFor) {
  // 3.6 USD an hour is 0.001 USD a second: 2 nodes for 2 s.
  EXPECT_NEAR(*Outlook({}).spending.price_usd, 0.004, 1e-15);
  Cluster cluster = PricedCluster();
  const Plan apart = ServerPlan(Strategy::kPsSync, 3);
  const StepSpending without = Outlook({}, apart, cluster).spending;
  EXPECT_NEAR(*without.price_usd, 0.004, 1e-15);
  EXPECT_TRUE(without.servers_unpriced);
  cluster.server_price_per_hour = 1.8;
  const StepSpending with = Outlook({}, apart, cluster).spending;
  EXPECT_NEAR(*with.price_usd, 0.004 + 3 * 0.0005 * 2, 1e-15);
  EXPECT_FALSE(with.servers_unpriced);
  Plan colocated = apart;
  colocated.server.colocated = true;
  EXPECT_NEAR(*Outlook({}, colocated, cluster).spending.price_usd, 0.004, 1e-15);
  EXPECT_EQ(ServerNodes(colocated), 0);
  EXPECT_FALSE(Outlook({}, SomePlan(), Cluster()).spending.price_usd.has_value());
}

TEST(Outlook, AServerNeverLowersTheEnergyOfAnEqualStep) {
  Cluster cluster = PricedCluster();
  const auto energy = [&](const Plan& plan) {
    return *Outlook({}, plan, cluster).spending.energy_j;
  };
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync, Strategy::kBytePs}) {
    Plan plan = ServerPlan(strategy, 1);
    // Another 200 W for 2 s each, and as much as without servers for the rest.
    EXPECT_NEAR(energy(plan), energy(SomePlan()) + 400, 1e-9) << StrategyName(strategy);
    for (int n = 2; n <= 5; ++n) {
      const double before = energy(plan);
      plan.servers = n;
      EXPECT_NEAR(energy(plan), before + 400, 1e-9) << StrategyName(strategy) << " " << n;
    }
  }
  Plan colocated = ServerPlan(Strategy::kPsSync, 2);
  colocated.server.colocated = true;
  EXPECT_NEAR(energy(colocated), energy(SomePlan()), 1e-9);
  // What a node draws is not known: the answer says that it is not in it.
  cluster.node_power_w.reset();
  const Plan apart = ServerPlan(Strategy::kPsSync, 2);
  EXPECT_TRUE(Outlook({}, apart, cluster).spending.energy_of_devices);
  EXPECT_NEAR(energy(apart), energy(SomePlan()), 1e-9);
}

TEST(Outlook, EnergyIsKnownBoundedOrAbsent) {
  Cluster cluster = PricedCluster();
  // 8 x 240 W for 1 s, and 8 x 60 W + 2 x 200 W for 2 s.
  const StepSpending full = Outlook({}, SomePlan(), cluster).spending;
  EXPECT_NEAR(*full.energy_j, 1920 + 1760, 1e-9);
  EXPECT_FALSE(full.energy_at_most || full.energy_of_devices);
  cluster.device_idle_power_w.reset();
  const StepSpending bound = Outlook({}, SomePlan(), cluster).spending;
  EXPECT_NEAR(*bound.energy_j, 8 * 300 * 2 + 800, 1e-9);
  EXPECT_TRUE(bound.energy_at_most);
  EXPECT_GT(*bound.energy_j, *full.energy_j);
  cluster.node_power_w.reset();
  const StepSpending devices = Outlook({}, SomePlan(), cluster).spending;
  EXPECT_NEAR(*devices.energy_j, 8 * 300 * 2, 1e-9);
  EXPECT_TRUE(devices.energy_of_devices);
  cluster.device_power_w.reset();
  EXPECT_FALSE(Outlook({}, SomePlan(), cluster).spending.energy_j.has_value());
  Device sheet;
  sheet.power_w = 70;
  const StepSpending from_sheet =
      MakeOutlook(SomePrediction(), SomePlan(), cluster, sheet, {}).spending;
  EXPECT_NEAR(*from_sheet.energy_j, 8 * 70 * 2, 1e-9);
  EXPECT_TRUE(from_sheet.energy_at_most);
  EXPECT_EQ(from_sheet.device_busy_w, 70);
}

// ---- Epochs and targets.

TEST(Outlook, AnEpochCountsEverySampleOnce) {
  OutlookOptions options;
  options.data_set = Samples(51200.0);
  const JobStretch sync = *Outlook(options).epoch;
  EXPECT_DOUBLE_EQ(sync.updates, 100);  // of 512 samples
  EXPECT_DOUBLE_EQ(sync.time.in(kSeconds), 200);
  // As far apart as the ends of the step.
  EXPECT_NEAR(sync.low.in(kSeconds), 200 / std::exp(0.16448536), 1e-9);
  EXPECT_NEAR(sync.high.in(kSeconds), 200 * std::exp(0.16448536), 1e-9);
  EXPECT_NEAR(*sync.price_usd, 0.4, 1e-13);
  EXPECT_NEAR(*sync.energy_j, 368000, 1e-6);
  EXPECT_FALSE(sync.time_with_failures.has_value());

  // The gradients of backup workers do not count: 384 of 512 samples do.
  Plan backup = SomePlan();
  backup.backup_workers = 2;
  const JobStretch fewer = *Outlook(options, backup).epoch;
  EXPECT_DOUBLE_EQ(fewer.updates, 51200.0 / 384);
  EXPECT_DOUBLE_EQ(fewer.time.in(kSeconds), 2 * 51200.0 / 384);

  // Asynchronous workers update eight times as often, with an eighth of the samples.
  const JobOutlook async = Outlook(options, ServerPlan(Strategy::kPsAsync, 1));
  EXPECT_DOUBLE_EQ(async.update_batch.in(kSamples), 64);
  EXPECT_DOUBLE_EQ(async.update_interval.in(kSeconds), 0.25);
  EXPECT_DOUBLE_EQ(async.epoch->updates, 800);
  EXPECT_DOUBLE_EQ(async.epoch->time.in(kSeconds), 200);
  EXPECT_NEAR(*async.epoch->price_usd, 0.4, 1e-13);
}

TEST(Outlook, AnEpochHasAtLeastTheSamplesOfAStep) {
  OutlookOptions options;
  options.data_set = Samples(511.0);
  EXPECT_TRUE(Says(ErrorOf([&] { Outlook(options); }),
                   "--data-set: '511' is less than a step takes; allowed: at least the 512 samples "
                   "of a step"));
  EXPECT_NO_THROW(Outlook(options, ServerPlan(Strategy::kPsAsync, 1))) << "64 of one worker";
  options.data_set = Samples(512.0);
  EXPECT_DOUBLE_EQ(Outlook(options).epoch->updates, 1);
}

TEST(Outlook, TheNoiseScaleSaysWhatASampleIsWorth) {
  OutlookOptions options;
  options.noise_scale = Samples(1000.0);
  options.known_batch = Samples(256.0);
  JobOutlook job = Outlook(options);
  EXPECT_NEAR(*job.efficiency, 1256.0 / 1512.0, 1e-14);
  EXPECT_NEAR(job.goodput->in(kSamplesPerSecond), 256 * 1256.0 / 1512.0, 1e-10);
  // The slowest step has the least of it.
  EXPECT_NEAR(*job.goodput_low / *job.goodput, std::exp(-0.16448536), 1e-12);
  EXPECT_NEAR(*job.goodput_high / *job.goodput, std::exp(0.16448536), 1e-12);
  EXPECT_FALSE(job.target.has_value());
  options.least_steps = 1000;
  job = Outlook(options);
  EXPECT_NEAR(job.target->updates, 1000 * (1 + 1000.0 / 512), 1e-9);
  EXPECT_NEAR(job.target->time.in(kSeconds), 5906.25, 1e-9);
  EXPECT_NEAR(*job.target->price_usd, 0.002 * 5906.25, 1e-10);
  EXPECT_NEAR(job.target->samples.in(kSamples), 512 * 2953.125, 1e-6);
  // A batch of 64: an asynchronous worker's.
  job = Outlook(options, ServerPlan(Strategy::kPsAsync, 1));
  EXPECT_NEAR(*job.efficiency, 1256.0 / 1064.0, 1e-14);
  EXPECT_NEAR(job.target->time.in(kSeconds), 1000 * (1 + 1000.0 / 64) * 0.25, 1e-9);
  // The target alone needs no known batch.
  options.known_batch.reset();
  EXPECT_TRUE(Outlook(options).target.has_value());
  EXPECT_FALSE(Outlook(options).efficiency.has_value());
}

// ---- Failures.

OutlookOptions FailureOptions() {
  OutlookOptions options;
  options.node_mtbf = Seconds(40000.0);
  options.checkpoint_time = Seconds(100.0);
  options.restart_time = Seconds(200.0);
  return options;
}

TEST(Outlook, FailuresOfASynchronousJob) {
  OutlookOptions options = FailureOptions();
  options.data_set = Samples(51200.0);
  const JobOutlook job = Outlook(options);
  const FailureOutlook& f = *job.failures;
  EXPECT_NEAR(f.between.in(kSeconds), 20000, 1e-9);  // two nodes
  EXPECT_EQ(f.between_restarts, f.between);
  EXPECT_NEAR(f.young.in(kSeconds), 2000, 1e-9);               // sqrt(2 x 100 x 20000)
  EXPECT_NEAR(f.daly.in(kSeconds), 1933.8888889, 1e-6);        // x = 1/400
  EXPECT_NEAR(f.slowdown, 1.1181715617, 1e-9);                 // Daly's formula by hand
  EXPECT_NEAR(f.chief_loss.in(kSeconds), 1216.9444444, 1e-6);  // half an interval, and the restart
  ASSERT_TRUE(f.worker.has_value());
  EXPECT_NEAR(f.worker->stall.in(kSeconds), 201, 1e-9);  // the restart and half a step
  EXPECT_EQ(f.worker->stalled_share, 1);
  EXPECT_NEAR(f.worker->slowdown, 1 + 201.0 / 20000, 1e-12);
  EXPECT_NEAR(f.throughput.in(kSamplesPerSecond), 256 / 1.1181715617, 1e-6);
  EXPECT_FALSE(f.at_least);
  EXPECT_NEAR(job.epoch->time_with_failures->in(kSeconds), 200 * 1.1181715617, 1e-6);
  EXPECT_NEAR(*job.epoch->price_with_failures_usd, 0.4 * 1.1181715617, 1e-9);
  EXPECT_DOUBLE_EQ(job.epoch->time.in(kSeconds), 200);
}

TEST(Outlook, DevicesAndServersFailAsWell) {
  OutlookOptions options = FailureOptions();
  options.device_mtbf = Seconds(80000.0);
  // 2 / 40000 + 8 / 80000 a second.
  EXPECT_NEAR(Outlook(options).failures->between.in(kSeconds), 20000.0 / 3, 1e-6);
  options.device_mtbf.reset();
  EXPECT_NEAR(Outlook(options, ServerPlan(Strategy::kPsSync, 2)).failures->between.in(kSeconds),
              10000, 1e-6);
  Plan colocated = ServerPlan(Strategy::kPsSync, 2);
  colocated.server.colocated = true;
  EXPECT_NEAR(Outlook(options, colocated).failures->between.in(kSeconds), 20000, 1e-6);
}

TEST(Outlook, AnAsynchronousJobGoesOnWithoutALostWorker) {
  const FailureOutlook f = *Outlook(FailureOptions(), ServerPlan(Strategy::kPsAsync, 2)).failures;
  EXPECT_NEAR(f.between.in(kSeconds), 10000, 1e-9);           // four nodes
  EXPECT_NEAR(f.between_restarts.in(kSeconds), 20000, 1e-9);  // two of them servers
  EXPECT_NEAR(f.daly.in(kSeconds), 1933.8888889, 1e-6);
  EXPECT_NEAR(f.worker->stall.in(kSeconds), 200, 1e-9);
  EXPECT_NEAR(f.worker->stalled_share, 0.125, 1e-12);
  EXPECT_NEAR(f.worker->slowdown, 1.005, 1e-12);
  EXPECT_NEAR(f.slowdown, 1.1181715617 * 1.005, 1e-9);
}

TEST(Outlook, WithoutARestartTimeFailuresCostAtLeastSoMuch) {
  OutlookOptions options = FailureOptions();
  const FailureOutlook known = *Outlook(options).failures;
  options.restart_time.reset();
  const FailureOutlook bound = *Outlook(options).failures;
  EXPECT_TRUE(bound.at_least);
  EXPECT_LT(bound.slowdown, known.slowdown);
  EXPECT_GT(bound.slowdown, 1);
  EXPECT_EQ(bound.daly, known.daly) << "the interval does not depend on it";
}

// What a lost worker held nobody else has, so that no replacement goes on from it.
TEST(Outlook, WorkersThatShareTheModelOutAreEachTheChief) {
  const FailureOutlook whole = *Outlook(FailureOptions()).failures;
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    Plan plan = SomePlan();
    plan.shard = shard;
    const FailureOutlook f = *Outlook(FailureOptions(), plan).failures;
    EXPECT_FALSE(f.worker.has_value());
    EXPECT_EQ(f.chief_loss, whole.chief_loss);
    EXPECT_EQ(f.slowdown, whole.slowdown);
  }
}

// Each share is with all other nodes too, where there are several.
TEST(Outlook, NodesThatShareTheModelOutHaveAChief) {
  const FailureOutlook whole = *Outlook(FailureOptions()).failures;
  Plan plan = SomePlan();
  plan.shard = Shard::kHybrid;
  const FailureOutlook f = *Outlook(FailureOptions(), plan).failures;
  ASSERT_TRUE(f.worker.has_value());
  EXPECT_EQ(f.worker->stall, whole.worker->stall);
  EXPECT_EQ(f.worker->slowdown, whole.worker->slowdown);
  plan.placement = {8};
  EXPECT_FALSE(Outlook(FailureOptions(), plan).failures->worker.has_value());
}

TEST(Outlook, ALoneWorkerIsTheChief) {
  Plan plan = SomePlan();
  plan.placement = {1};
  plan.strategy = Strategy::kNone;
  EXPECT_FALSE(Outlook(FailureOptions(), plan).failures->worker.has_value());
}

// ---- What options need of each other.

TEST(Outlook, OptionsNameWhatTheyNeed) {
  struct Case {
    std::function<void(OutlookOptions*)> set;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {[](OutlookOptions* o) { o->noise_scale = Samples(10.0); },
       {"--noise-scale", "--known-batch or --least-steps"}},
      {[](OutlookOptions* o) { o->known_batch = Samples(10.0); },
       {"--known-batch", "--noise-scale"}},
      {[](OutlookOptions* o) { o->least_steps = 10; }, {"--least-steps", "--noise-scale"}},
      {[](OutlookOptions* o) { o->node_mtbf = Seconds(10.0); },
       {"--node-mtbf", "--checkpoint-time"}},
      {[](OutlookOptions* o) { o->checkpoint_time = Seconds(10.0); },
       {"--checkpoint-time", "--node-mtbf"}},
      {[](OutlookOptions* o) { o->device_mtbf = Seconds(10.0); }, {"--device-mtbf", "--node-mtbf"}},
      {[](OutlookOptions* o) { o->restart_time = Seconds(10.0); },
       {"--restart-time", "--node-mtbf"}},
      {[](OutlookOptions* o) { o->time_limit = Seconds(0.0); }, {"--time-limit", "more than 0"}},
      {[](OutlookOptions* o) { o->data_set = Samples(0.0); }, {"--data-set", "more than 0"}},
      {[](OutlookOptions* o) { o->least_steps = 0.5; }, {"--least-steps", "at least 1"}},
      {[](OutlookOptions* o) {
         o->node_mtbf = Seconds(0.0);
         o->checkpoint_time = Seconds(1.0);
       },
       {"--node-mtbf", "more than 0"}},
  };
  for (const Case& c : cases) {
    OutlookOptions options;
    c.set(&options);
    const auto error = ErrorOf([&] { CheckOutlookOptions(options); });
    for (const std::string& fragment : c.says) EXPECT_TRUE(Says(error, fragment));
  }
  OutlookOptions all = FailureOptions();
  all.noise_scale = Samples(0.0);
  all.known_batch = Samples(1.0);
  all.least_steps = 1;
  all.data_set = Samples(1.0);
  all.time_limit = Seconds(60.0);
  EXPECT_NO_THROW(CheckOutlookOptions(all));
  EXPECT_NO_THROW(CheckOutlookOptions({}));
}

// ---- Where the facts come from.

TEST(Outlook, ClusterFilesStatePowersAndPrices) {
  const std::string small = "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 4\n";
  const std::string text = small +
                           "prices: {node_per_hour: 3.5, server_per_hour: 0.25}\n"
                           "power: {device: 70 W, device_idle: 30.5 W, node: 0.2 kW}\n";
  const Cluster cluster = ParseCluster(text, "lab.yaml");
  EXPECT_EQ(cluster.server_price_per_hour, 0.25);
  EXPECT_EQ(cluster.device_idle_power_w, 30.5);
  EXPECT_EQ(cluster.node_power_w, 200);
  const Cluster again = ParseCluster(FormatCluster(cluster), "again.yaml");
  EXPECT_EQ(again.node_price_per_hour, cluster.node_price_per_hour);
  EXPECT_EQ(again.server_price_per_hour, cluster.server_price_per_hour);
  EXPECT_EQ(again.device_power_w, cluster.device_power_w);
  EXPECT_EQ(again.device_idle_power_w, cluster.device_idle_power_w);
  EXPECT_EQ(again.node_power_w, cluster.node_power_w);
  const Cluster node_alone = ParseCluster(small + "power: {node: 300 W}\n", "lab.yaml");
  EXPECT_EQ(ParseCluster(FormatCluster(node_alone), "again.yaml").node_power_w, 300);
  EXPECT_TRUE(Says(
      ErrorOf([&] { ParseCluster(small + "power: {device: 70 W, device_idle: 71 W}\n", "f"); }),
      "at most power.device, 70 W"));
  EXPECT_TRUE(Says(ErrorOf([&] { ParseCluster(small + "power: {device_idle: 7 W}\n", "f"); }),
                   "power.device_idle: '7 W' says nothing without power.device"));
}

TEST(Outlook, SaysWhatAPlanCostsInSamples) {
  using Costs = std::vector<std::string>;
  EXPECT_EQ(Outlook({}).not_counted, Costs());
  EXPECT_EQ(Outlook({}, ServerPlan(Strategy::kPsSync, 2)).not_counted, Costs());
  EXPECT_EQ(Outlook({}, ServerPlan(Strategy::kPsAsync, 2)).not_counted, Costs{"stale updates"});
  Plan plan = SomePlan();
  plan.local_steps = 8;
  EXPECT_EQ(Outlook({}, plan).not_counted, Costs{"local steps"});
  plan.local_steps = 1;
  plan.compress = {Compressor::kTopK, 0.01};
  EXPECT_EQ(Outlook({}, plan).not_counted, Costs{"compressed gradients"});
  // One worker alone has nobody to be apart from, nor whom to send anything.
  plan.placement = {1};
  EXPECT_EQ(Outlook({}, plan).not_counted, Costs());
  Plan servers = ServerPlan(Strategy::kPsSync, 2);
  servers.placement = {1};
  servers.compress = {Compressor::kFp16, 0};
  EXPECT_EQ(Outlook({}, servers).not_counted, Costs{"compressed gradients"});
  servers.server.colocated = true;
  EXPECT_EQ(Outlook({}, servers).not_counted, Costs());
}

TEST(Outlook, LimitsAreGivenInMinutesHoursAndDays) {
  EXPECT_EQ(ParseDuration("30 min", {}).in(kSeconds), 1800);
  EXPECT_EQ(ParseDuration("2 h", {}).in(kSeconds), 7200);
  EXPECT_EQ(ParseDuration("60 d", {}).in(kSeconds), 60 * 86400);
}

// The facade's own predictions, for every kind of plan: the parts agree with each other.
TEST(Outlook, AgreesWithThePrediction) {
  const Cluster cluster = CalibratedCluster(PlausibleTruth());
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  OutlookOptions options = FailureOptions();
  options.data_set = Samples(1281167.0);
  options.noise_scale = Samples(4000.0);
  options.known_batch = Samples(256.0);
  options.least_steps = 14000;
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kPsAsync}) {
    SCOPED_TRACE(StrategyName(strategy));
    Plan plan = AllreducePlan({4, 4}, 32);
    plan.strategy = strategy;
    plan.servers = UsesServers(strategy) ? 2 : 0;
    const Prediction p = predictor.Predict(plan);
    const JobOutlook job = MakeOutlook(p, plan, cluster, std::nullopt, options);
    EXPECT_NEAR((job.update_batch / job.update_interval) / p.throughput, 1, 1e-12);
    EXPECT_NEAR(*options.data_set / job.epoch->time / p.throughput, 1, 1e-12);
    EXPECT_NEAR(*job.goodput / p.throughput, *job.efficiency, 1e-12);
    // Goodput is what reaches the target: samples that it takes at the known batch, over the time.
    const SampleCount<> known = Samples(256.0 * 14000 * (1 + 4000.0 / 256));
    EXPECT_NEAR(known / job.target->time / *job.goodput, 1, 1e-12);
    if (strategy == Strategy::kPsAsync) {
      const double in_one_step = p.async_servers->updates.si() * p.step_time.in(kSeconds);
      EXPECT_NEAR(in_one_step / plan.workers(), 1, 1e-12);
    }
  }
}

}  // namespace
}  // namespace stepcast
