// Jobs on one link by their forecasts: how busy each keeps it, against its bytes, and that no link
// carries more than it can.
#include "predictor/shared_link.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

const Predictor& Of(const std::string& workload) {
  static std::map<std::string, Predictor> made;
  const auto found = made.find(workload);
  if (found != made.end()) return found->second;
  return made.emplace(workload, Predictor(Cluster(), *FindWorkload(workload), std::nullopt))
      .first->second;
}

Plan Sends(Strategy strategy, int nodes, double gigabits, int local_batch) {
  Plan plan;
  plan.strategy = strategy;
  plan.placement = Placement(static_cast<std::size_t>(nodes), 1);
  plan.servers = UsesServers(strategy) ? 2 : 0;
  plan.local_batch = local_batch;
  plan.link.bandwidth = GigabitsPerSecond(gigabits);
  return plan;
}

double StepOf(const SharingJob& job) { return job.predictor->PredictStep(job.plan).total().si(); }

// The time of what a direction of the fullest link carries. Servers on nodes of their own have
// links like those of the workers.
double BytesTime(const SharingJob& job) {
  const Traffic traffic = job.predictor->Predict(job.plan).traffic;
  const DataSize<> server = traffic.per_server.value_or(DataSize<>());
  const DataSize<> bytes =
      job.plan.server.colocated ? traffic.per_worker + server : Max(traffic.per_worker, server);
  return (bytes / *job.plan.link.bandwidth).si();
}

TEST(LinkBusy, IsTheTimeOfTheBytesOfADirection) {
  for (const char* workload : {"bert_base", "resnet50"}) {
    for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kTree}) {
      for (const bool colocated : {false, true}) {
        if (colocated && !UsesServers(strategy)) continue;
        for (const double gigabits : {1.0, 10.0, 100.0}) {
          Plan plan = Sends(strategy, 4, gigabits, 16);
          plan.server.colocated = colocated;
          const SharingJob job{&Of(workload), plan};
          const double share = LinkBusy(*job.predictor, plan).share * StepOf(job) / BytesTime(job);
          // 94 % of an Ethernet line is left to bytes; largest shards are a little more than equal.
          EXPECT_GT(share, 1) << workload << ' ' << gigabits << ' ' << colocated;
          EXPECT_LT(share, 1.35) << workload << ' ' << gigabits << ' ' << colocated;
        }
      }
    }
  }
}

// A frame of Ethernet takes 1538 bytes of the line, 1448 of which are a job's.
Duration<> OnTheLine(DataSize<> bytes, const Plan& plan) {
  return bytes / (*plan.link.bandwidth * (1448.0 / 1538.0));
}

Plan Asynchronous(int nodes, int devices, int servers) {
  Plan plan = Sends(Strategy::kPsAsync, nodes, 2, 32);
  plan.placement = Placement(static_cast<std::size_t>(nodes), devices);
  plan.servers = servers;
  return plan;
}

// Asynchronous workers of a node push and pull at the same time: each direction of its link carries
// the model once for each of them, however long they wait for each other. A server on a link like
// theirs has its share of what all workers send.
TEST(LinkBusy, CountsAllAsynchronousWorkersOfANode) {
  const Predictor& predictor = Of("resnet50");
  for (const int devices : {1, 2, 4}) {
    Plan plan = Asynchronous(2, devices, 4);
    plan.server_link.bandwidth = GigabitsPerSecond(100.0);
    const Prediction alone = predictor.Predict(plan);
    const Duration<> sending = OnTheLine(alone.traffic.per_worker * devices, plan);
    EXPECT_NEAR(LinkBusy(predictor, plan).share, sending / alone.step_time, 1e-6) << devices;
    EXPECT_NEAR(LinkBusy(predictor, plan).share, alone.async_servers->worker_link, 0.01) << devices;
    const SharingJob job{&predictor, plan};
    for (const SharedJob& shared : ShareLink({job, job})) {
      EXPECT_GE(shared.beside, sending * (2 * (1 - 1e-6))) << "no link carries more than it can";
    }
  }
  Plan plan = Asynchronous(4, 1, 1);
  const Prediction alone = predictor.Predict(plan);
  const Duration<> sending = OnTheLine(*alone.traffic.per_server * plan.workers(), plan);
  EXPECT_NEAR(LinkBusy(predictor, plan).share, sending / alone.step_time, 1e-6);
}

// Synchronous workers push and then pull. Where the network copies what a server sends, or adds up
// what it is sent, the other direction of its link is the full one.
TEST(LinkBusy, IsThatOfTheFullerDirection) {
  const Predictor& predictor = Of("resnet50");
  Plan plan = Sends(Strategy::kPsSync, 8, 2, 32);
  plan.servers = 1;
  for (const auto& [copies, adds] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    plan.server.multicast = copies;
    plan.server.in_network_aggregation = adds;
    const Prediction alone = predictor.Predict(plan);
    const DataSize<> bytes = Max(*alone.traffic.server_in, *alone.traffic.server_out);
    const double busy = OnTheLine(bytes, plan) / alone.step_time;
    EXPECT_NEAR(LinkBusy(predictor, plan).share, busy, 1e-6) << copies << adds;
  }
}

TEST(LinkBusy, IsNothingWhereNothingLeavesANode) {
  Plan plan = Sends(Strategy::kRing, 1, 10, 16);
  plan.placement = {4};
  EXPECT_EQ(LinkBusy(Of("resnet50"), plan).share, 0);
}

// Where the uplinks hold a ring back it is they that are busy, twice as long as they carry half.
TEST(LinkBusy, IsOfTheUplinksWhereTheyBind) {
  const Predictor& predictor = Of("vgg16");
  Plan plan = Sends(Strategy::kRing, 8, 10, 16);
  const BusyLink alone = LinkBusy(predictor, plan);
  EXPECT_FALSE(alone.is_core);
  const Duration<> sending = predictor.PredictStep(plan).total() * alone.share;
  plan.link.nodes_per_switch = 4;
  plan.link.oversubscription = 4.0;
  EXPECT_FALSE(LinkBusy(predictor, plan).is_core) << "one flow has a fourth of four links";
  plan.link.oversubscription = 8.0;
  const BusyLink busy = LinkBusy(predictor, plan);
  EXPECT_TRUE(busy.is_core);
  EXPECT_NEAR(predictor.PredictStep(plan).total() * busy.share / sending, 2, 0.02);
}

// Alone each does without the other: who sends nothing costs nobody anything.
TEST(ShareLink, WhoSendsNothingIsNoOther) {
  const SharingJob sends{&Of("vgg16"), Sends(Strategy::kRing, 4, 10, 16)};
  SharingJob none{&Of("vgg16"), Sends(Strategy::kNone, 1, 10, 16)};
  const std::vector<SharedJob> shared = ShareLink({sends, none});
  EXPECT_EQ(shared[0].others, 0);
  EXPECT_EQ(shared[0].beside, shared[0].alone);
  EXPECT_EQ(shared[0].alone.si(), StepOf(sends));
  EXPECT_EQ(shared[1].link_busy, 0);
  EXPECT_EQ(shared[1].others, shared[0].link_busy);
  EXPECT_EQ(shared[1].beside, shared[1].alone);
}

// A job has the share of the other on its link, where the link can carry both.
TEST(ShareLink, EachMeetsTheShareOfTheOther) {
  const SharingJob rare{&Of("resnet50"), Sends(Strategy::kRing, 4, 40, 128)};
  const SharingJob often{&Of("vgg16"), Sends(Strategy::kRing, 4, 40, 64)};
  const std::vector<SharedJob> shared = ShareLink({rare, often});
  ASSERT_LT(shared[0].link_busy + shared[1].link_busy, 1);
  EXPECT_DOUBLE_EQ(shared[0].others, shared[1].link_busy);
  EXPECT_DOUBLE_EQ(shared[1].others, shared[0].link_busy);
  for (std::size_t i = 0; i < 2; ++i) {
    SharingJob job = i == 0 ? rare : often;
    EXPECT_EQ(shared[i].alone.si(), StepOf(job));
    job.plan.link.others = shared[i].others;
    EXPECT_EQ(shared[i].beside.si(), StepOf(job));
  }
}

SharingJob On(SharingJob job, std::vector<std::string> hosts) {
  job.plan.placement = Placement(hosts.size(), 1);
  job.plan.hosts = std::move(hosts);
  return job;
}

// The links of hosts that no other job is on are a job's own.
TEST(ShareLink, JobsOnOtherHostsHaveNoLinkInCommon) {
  const SharingJob vgg{&Of("vgg16"), Sends(Strategy::kRing, 2, 10, 16)};
  const SharingJob resnet{&Of("resnet50"), Sends(Strategy::kRing, 2, 10, 16)};
  for (const SharedJob& job : ShareLink({On(vgg, {"a", "b"}), On(resnet, {"c", "d"})})) {
    EXPECT_EQ(job.met, 0);
    EXPECT_EQ(job.others, 0);
    EXPECT_EQ(job.beside.si(), job.alone.si());
  }
  // One host in common is enough; and who names none may be on any.
  const std::vector<SharedJob> anywhere = ShareLink({vgg, resnet});
  for (const std::vector<SharingJob>& jobs :
       {std::vector{On(vgg, {"a", "b"}), On(resnet, {"b", "c"})},
        std::vector{On(vgg, {"a", "b"}), resnet}, std::vector{vgg, On(resnet, {"c", "d"})}}) {
    const std::vector<SharedJob> shared = ShareLink(jobs);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(shared[i].met, 1);
      EXPECT_EQ(shared[i].others, anywhere[i].others);
      EXPECT_EQ(shared[i].beside.si(), anywhere[i].beside.si());
      EXPECT_GT(shared[i].beside, shared[i].alone);
      EXPECT_DOUBLE_EQ(shared[i].together, shared[0].link_busy + shared[1].link_busy);
    }
  }
}

// Crowds on links that are not theirs are nothing to jobs: each pair is as if it were alone, also
// where one asks for more than its link carries.
TEST(ShareLink, WhomAJobDoesNotMeetMakesNoDifference) {
  SharingJob much{&Of("vgg16"), Sends(Strategy::kTree, 2, 1, 1)};
  SharingJob little{&Of("resnet50"), Sends(Strategy::kRing, 2, 40, 128)};
  const SharingJob a = On(much, {"a", "b"});
  const SharingJob b = On(much, {"b", "a"});
  const SharingJob c = On(little, {"c", "d"});
  const SharingJob d = On(little, {"d", "e"});
  const std::vector<SharedJob> first = ShareLink({a, b});
  const std::vector<SharedJob> second = ShareLink({c, d});
  const std::vector<SharedJob> all = ShareLink({a, c, b, d});
  const SharedJob* pairs[] = {&first[0], &second[0], &first[1], &second[1]};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].met, 1);
    EXPECT_EQ(all[i].others, pairs[i]->others) << i;
    EXPECT_EQ(all[i].beside.si(), pairs[i]->beside.si()) << i;
  }
  // In the middle of a row of jobs two are met, each on a host of its own: the busier counts.
  const std::vector<SharedJob> row =
      ShareLink({On(little, {"a", "b"}), On(little, {"b", "c"}),
                 On({&Of("vgg16"), Sends(Strategy::kRing, 2, 40, 64)}, {"c", "d"})});
  EXPECT_EQ(row[1].met, 1);
  EXPECT_GT(row[2].link_busy, row[0].link_busy);
  EXPECT_DOUBLE_EQ(row[1].others, row[2].link_busy);
  EXPECT_DOUBLE_EQ(row[0].others, row[1].link_busy);
}

// Beyond the hosts there is the core, for those whom its uplinks hold back.
TEST(ShareLink, UplinksThatBindAreSharedByJobsOnOtherHosts) {
  const auto job = [](const std::string& first, double oversubscription) {
    SharingJob made{&Of("vgg16"), Sends(Strategy::kRing, 4, 10, 16)};
    made.plan.link.nodes_per_switch = 2;
    made.plan.link.oversubscription = oversubscription;
    return On(made, {first + "1", first + "2", first + "3", first + "4"});
  };
  for (const SharedJob& shared : ShareLink({job("a", 8), job("b", 8)})) {
    EXPECT_EQ(shared.met, 1);
    EXPECT_GT(shared.beside, shared.alone);
  }
  // One flow has half of two links: the nodes' own set the pace.
  for (const SharedJob& shared : ShareLink({job("a", 1.5), job("b", 1.5)})) {
    EXPECT_EQ(shared.met, 0);
    EXPECT_EQ(shared.beside.si(), shared.alone.si());
  }
}

// Traffic that takes its rate leaves jobs a link of the rest.
TEST(ShareLink, JobsShareWhatOtherTrafficLeaves) {
  for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kBytePs}) {
    SharingJob rare{&Of("resnet50"), Sends(strategy, 4, 40, 128)};
    SharingJob often{&Of("vgg16"), Sends(strategy, 4, 40, 64)};
    for (SharingJob* job : {&rare, &often}) {
      job->plan.link.background = GigabitsPerSecond(10.0);
      if (strategy != Strategy::kRing) job->plan.servers = 2;
      if (strategy != Strategy::kRing) job->plan.server_link.bandwidth = GigabitsPerSecond(400.0);
    }
    const std::vector<SharedJob> beside_copy = ShareLink({rare, often});
    for (SharingJob* job : {&rare, &often}) {
      job->plan.link.background.reset();
      job->plan.link.bandwidth = GigabitsPerSecond(30.0);
    }
    const std::vector<SharedJob> on_rest = ShareLink({rare, often});
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_GT(on_rest[i].link_busy, 0);
      EXPECT_NEAR(beside_copy[i].link_busy / on_rest[i].link_busy, 1, 1e-6);
      EXPECT_NEAR(beside_copy[i].others / on_rest[i].others, 1, 1e-6);
      EXPECT_NEAR(beside_copy[i].beside / on_rest[i].beside, 1, 1e-6);
    }
  }
}

RC_GTEST_PROP(ShareLinkProperty, NoLinkCarriesMoreThanItCan, ()) {
  const int count = *Whole(2, 5);
  // Other traffic has no more of the link than it can defend.
  const double background = *Whole(0, 1) * *Whole(1, 100) / 100.0;
  const auto left = [&](const SharingJob& job, double others) {
    const double steady = UsesServers(job.plan.strategy) ? 1 : 2.5;
    return 1 - std::min(background, steady / (1 + steady + others));
  };
  std::vector<SharingJob> jobs;
  for (int i = 0; i < count; ++i) {
    const auto strategy = *rc::gen::element(Strategy::kRing, Strategy::kPsSync, Strategy::kTree,
                                            Strategy::kPsAsync, Strategy::kHierarchical);
    const auto* workload = *rc::gen::element("resnet50", "vgg16", "bert_base");
    SharingJob job{&Of(workload), Sends(strategy, *Whole(2, 8), 10, *Whole(1, 64))};
    job.plan.server.colocated = UsesServers(strategy) && *Whole(0, 1) == 1;
    job.plan.link.background = GigabitsPerSecond(10 * background);
    jobs.push_back(job);
  }
  const std::vector<SharedJob> shared = ShareLink(jobs);
  double sent = 0;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const SharedJob& job = shared[i];
    RC_ASSERT(job.link_busy > 0 && job.link_busy <= 1);
    RC_ASSERT(job.others > 0 && job.others <= count - 1 + 1e-9);
    RC_ASSERT(job.beside >= job.alone);
    sent += job.link_busy * left(jobs[i], 0) / left(jobs[i], job.others) * (job.alone / job.beside);
  }
  RC_ASSERT(sent <= 1 + 1e-6);
}

// Steps of MobileNetV2 that probe steps measured beside TCP copies between its hosts, each way, on
// links of 100 Mbit/s and 2 ms; nothing is fitted to them. A ring's share beside a copy (a in
// model/network/sharing.h) is what keeps those of 75 and 90 Mbit/s so near.
TEST(ShareLink, StepsBesideCopiesAreForecastAsTheyWereMeasured) {
  const struct {
    Strategy strategy;
    int nodes;
    double copy;  // Mbit/s
    double measured_s;
    double error;  // of the forecast, at most
  } runs[] = {{Strategy::kRing, 3, 30, 2.28155, 0.04},  {Strategy::kRing, 3, 45, 2.88356, 0.04},
              {Strategy::kRing, 2, 45, 2.18354, 0.04},  {Strategy::kRing, 3, 75, 6.36026, 0.15},
              {Strategy::kRing, 2, 75, 4.67975, 0.15},  {Strategy::kRing, 3, 90, 5.24678, 0.15},
              {Strategy::kPsSync, 2, 0, 4.58131, 0.08}, {Strategy::kPsSync, 2, 40, 7.17716, 0.12},
              {Strategy::kPsSync, 2, 60, 9.21176, 0.12}};
  for (const auto& run : runs) {
    Plan plan = Sends(run.strategy, run.nodes, 0.0998, 16);
    if (plan.servers > 0) plan.servers = 1;
    plan.link.rtt = Milliseconds(2.0);
    plan.link.background = MegabitsPerSecond(run.copy);
    const double told = Of("mobilenet_v2").PredictStep(plan).total().si();
    EXPECT_NEAR(told / run.measured_s, 1, run.error)
        << StrategyName(run.strategy) << " of " << run.nodes << " beside " << run.copy;
  }
}

}  // namespace
}  // namespace stepcast
