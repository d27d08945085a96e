// Synchronous parameter servers against numbers worked out by hand, and their schedule against the
// closed form that it has.
#include "model/exchange/parameter_server.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/model/server_paths.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// 20 us a transfer.
ServerPaths<double> Paths(int workers, int servers, int per_node = 1) {
  ServerPaths<double> paths = PathsWithoutInitiations(workers, servers, per_node);
  paths.initiation = Microseconds(20.0);
  return paths;
}

double SyncMilli(const ServerPaths<double>& paths) {
  return ServerSynchronisation(paths).Time(kMessage).in(kMilliseconds);
}

// ---- Synchronous.

// 4 workers, 2 servers: a server's link carries 4 halves, 160 ms a phase; 4 initiations.
TEST(ServerSync, ServersBindByHand) {
  EXPECT_NEAR(SyncMilli(Paths(4, 2)), 2 * (0.05 + 4 * 0.02 + 160.0), 1e-9);
}

// 2 workers, 8 servers: a worker's link carries all, 80 ms; a worker starts 8 transfers.
TEST(ServerSync, WorkersBindByHand) {
  EXPECT_NEAR(SyncMilli(Paths(2, 8)), 2 * (0.05 + 8 * 0.02 + 80.0), 1e-9);
}

// 4 workers on one node share its link: 320 ms a phase.
TEST(ServerSync, ANodesLinkIsSharedByHand) {
  EXPECT_NEAR(SyncMilli(Paths(4, 4, 4)), 2 * (0.05 + 4 * 0.02 + 320.0), 1e-9);
}

TEST(ServerSync, ASlowServerLinkByHand) {
  ServerPaths<double> paths = Paths(4, 4);
  paths.server_bandwidth = GigabitsPerSecond(1.0);
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 4 * 0.02 + 800.0), 1e-9);
}

TEST(ServerSync, LimitsOfBytesAndLatency) {
  ServerPaths<double> wide = Paths(4, 2);
  wide.worker.bandwidth = wide.server_bandwidth = BytesPerSecond(1e30);
  EXPECT_NEAR(SyncMilli(wide), 2 * (0.05 + 0.08), 1e-12);
  ServerPaths<double> instant = Paths(4, 2);
  instant.worker.alpha = instant.initiation = Duration<>();
  EXPECT_EQ(ServerSynchronisation(instant).per_call.si(), 0);
  EXPECT_NEAR(SyncMilli(instant), 320.0, 1e-9);
}

RC_GTEST_PROP(ServerSyncProperty, TheBusierLinkIsWaitedFor, ()) {
  ServerPaths<double> paths = Paths(*Whole(1, 64), *Whole(1, 16), *Whole(1, 8));
  paths.worker.bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  paths.server_bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  const double at_worker = paths.workers_per_node / paths.worker.bandwidth.si();
  const double at_server =
      static_cast<double>(paths.workers) / (paths.servers * paths.server_bandwidth.si());
  RC_ASSERT(Near(ServerSynchronisation(paths).per_byte.si(), 2 * std::max(at_worker, at_server)));
}

RC_GTEST_PROP(ServerSyncProperty, MoreServersNeverSlowAStepUpToTheWorkers, ()) {
  const int workers = *Whole(2, 64);
  const int servers = *Whole(1, workers - 1);
  ServerPaths<double> paths = Paths(workers, servers, *Whole(1, 8));
  paths.server_bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  const double few = SyncMilli(paths);
  ++paths.servers;
  RC_ASSERT(SyncMilli(paths) <= few * (1 + 1e-12));
}

TEST(ServerSync, BeyondTheWorkersMoreServersOnlyCostInitiations) {
  EXPECT_GT(SyncMilli(Paths(4, 9)), SyncMilli(Paths(4, 4)));
}

TEST(ServerSync, ServersBesideTheirWorkersByHand) {
  // 4 nodes with a worker and a server each: 3 of 4 quarters leave, 3 quarters arrive.
  ServerPaths<double> paths = Paths(4, 4);
  paths.colocated = true;
  paths.nodes = 4;
  paths.server_bandwidth = BytesPerSecond(1.0);  // has no meaning here
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 4 * 0.02 + 60.0), 1e-9);
  // 2 servers on 4 nodes of 2 workers: the half of a server arrives from 6 workers, 240 ms.
  paths = Paths(8, 2, 2);
  paths.colocated = true;
  paths.nodes = 4;
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 8 * 0.02 + 240.0), 1e-9);
  // One node: nothing crosses a link, the processor still adds up what 4 workers push.
  paths = Paths(4, 1, 4);
  paths.colocated = true;
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 4 * 0.02), 1e-9);
  paths.server_rate = GigabytesPerSecond(2.0);
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 4 * 0.02 + 200.0), 1e-9);
}

// 4 servers on 2 nodes of 2 workers: a link carries, each way, what its workers exchange with the
// other node's half, and what the other's 2 workers exchange with its own half.
TEST(ServerSync, ServersThatShareANodeShareItsLink) {
  ServerPaths<double> paths = Paths(4, 4, 2);
  paths.colocated = true;
  paths.nodes = 2;
  const DurationPerByte<> shared = SynchronousServers(paths).shared_link;
  EXPECT_NEAR((shared * kMessage).in(kMilliseconds), 80.0 + 80.0, 1e-9);
}

TEST(ServerSync, ALoneWorkerBesideItsServerCommunicatesNothing) {
  ServerPaths<double> paths = Paths(1, 1);
  paths.colocated = true;
  paths.server_rate = GigabytesPerSecond(1.0);
  paths.update = Seconds(1.0) / Gigabytes(1.0);
  EXPECT_EQ(SyncMilli(paths), 0);
}

TEST(ServerSync, RateRoundsAndUpdateByHand) {
  ServerPaths<double> paths = Paths(4, 2);
  paths.server_rate = GigabytesPerSecond(0.5);  // 4 halves: 400 ms a phase
  paths.rpc_rounds = 0.5;
  paths.tensors = 10;                            // 5 round trips of 0.1 ms
  paths.update = Milliseconds(20.0) / kMessage;  // 10 ms for a half
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 0.5 + 4 * 0.02 + 400.0) + 10.0, 1e-9);
  EXPECT_EQ(SynchronousServers(paths).push_limiter, ServerLimiter::kServerRate);
  paths.largest_share = 0.75;
  EXPECT_NEAR(SyncMilli(paths), 2 * (0.05 + 0.5 + 4 * 0.02 + 600.0) + 15.0, 1e-9);
}

TEST(ServerSync, NamesWhatBinds) {
  EXPECT_EQ(SynchronousServers(Paths(4, 2)).push_limiter, ServerLimiter::kServerLink);
  EXPECT_EQ(SynchronousServers(Paths(2, 8)).pull_limiter, ServerLimiter::kWorkerLink);
}

// 8 workers, 1 server, 10 Gbit/s: a phase is 640 ms, or 80 ms where the network copies or adds up.
TEST(ServerSync, MulticastAndAggregationByHand) {
  const std::vector<Bucket> whole = {{kMessage, 1.0}};
  ServerPaths<double> paths = Paths(8, 1);
  paths.worker.alpha = paths.initiation = Duration<>();
  const PhaseBenefit<double> benefit =
      CompareNetworkServices(paths, whole, whole, Milliseconds(100.0));
  EXPECT_NEAR(benefit.remaining_aggregation.in(kMilliseconds), 640, 1e-9);
  EXPECT_NEAR(benefit.remaining_distribution.in(kMilliseconds), 640, 1e-9);
  EXPECT_NEAR(benefit.multicast_saves.in(kMilliseconds), 560, 1e-9);
  EXPECT_NEAR(benefit.in_network_aggregation_saves.in(kMilliseconds), 560, 1e-9);
  EXPECT_NEAR(benefit.both_save.in(kMilliseconds), 1120, 1e-9);
}

// The backward pass hides aggregation and nothing hides distribution: the latter is the heavier,
// and both grow with the workers.
TEST(ServerSync, DistributionIsHeavierAndGrows) {
  std::vector<Bucket> buckets;
  for (int k = 1; k <= 10; ++k) buckets.push_back({kMessage / 10.0, k / 10.0});
  double before = 0;
  for (int workers = 1; workers <= 16; workers *= 2) {
    const PhaseBenefit<double> benefit =
        CompareNetworkServices(Paths(workers, 1), buckets, buckets, Milliseconds(300.0));
    EXPECT_LT(benefit.remaining_aggregation.si(), benefit.remaining_distribution.si());
    EXPECT_GT(benefit.remaining_distribution.si(), before);
    EXPECT_GE(benefit.multicast_saves.si(), benefit.in_network_aggregation_saves.si());
    before = benefit.remaining_distribution.si();
  }
}

ServerPaths<double> AnyPaths() {
  const int nodes = *Whole(1, 16);
  const int per_node = *Whole(1, 8);
  ServerPaths<double> paths = Paths(nodes * per_node, *Whole(1, 16), per_node);
  paths.nodes = nodes;
  paths.colocated = *Whole(0, 1) == 1;
  paths.multicast = *Whole(0, 1) == 1;
  paths.in_network_aggregation = *Whole(0, 1) == 1;
  paths.worker.bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  paths.server_bandwidth = BytesPerSecond(*LogUniform(1e6, 1e11));
  paths.server_rate = BytesPerSecond(*LogUniform(1e6, 1e11));
  paths.largest_share = *LogUniform(0.01, 1.0);
  paths.rpc_rounds = *LogUniform(1e-4, 10);
  paths.tensors = *Whole(0, 200);
  paths.update = Seconds(*LogUniform(1e-12, 1e-8)) / Bytes(1.0);
  return paths;
}

RC_GTEST_PROP(ServerSyncProperty, HelpNeverHurts, ()) {
  const ServerPaths<double> paths = AnyPaths();
  const double at = SyncMilli(paths);
  const auto better = [&](auto change) {
    ServerPaths<double> changed = paths;
    change(&changed);
    return SyncMilli(changed) <= at * (1 + 1e-12);
  };
  RC_ASSERT(better([](auto* p) { p->multicast = true; }));
  RC_ASSERT(better([](auto* p) { p->in_network_aggregation = true; }));
  RC_ASSERT(better([](auto* p) { p->worker.bandwidth = p->worker.bandwidth * 2.0; }));
  RC_ASSERT(better([](auto* p) { p->server_bandwidth = p->server_bandwidth * 2.0; }));
  RC_ASSERT(better([](auto* p) { p->server_rate = p->server_rate * 2.0; }));
  RC_ASSERT(better([](auto* p) { p->worker.alpha = p->worker.alpha / 2.0; }));
  RC_ASSERT(better([](auto* p) { p->largest_share /= 2; }));
}

// ---- The schedule.

std::vector<Bucket> AnyBuckets() {
  std::vector<Bucket> buckets;
  const int count = *Whole(1, 12);
  for (int k = 1; k <= count; ++k) {
    buckets.push_back({Bytes(*LogUniform(1e4, 1e8)), static_cast<double>(k) / count});
  }
  return buckets;
}

// max over i <= j of r_i + P_i..P_j + Q_j..Q_K, written out.
RC_GTEST_PROP(ServerSchedule, IsTheFlowShopsClosedForm, ()) {
  const std::vector<Bucket> buckets = AnyBuckets();
  const double backward = *LogUniform(1e-3, 1);
  const double push = *LogUniform(1e-11, 1e-8);
  const double pull = *LogUniform(1e-11, 1e-8);
  const auto time_of = [](double per_byte) {
    return [per_byte](const Bucket& b) { return Seconds(per_byte * b.bytes.si()); };
  };
  double longest = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    for (std::size_t j = i; j < buckets.size(); ++j) {
      double end = backward * buckets[i].ready;
      for (std::size_t k = i; k <= j; ++k) end += push * buckets[k].bytes.si();
      for (std::size_t k = j; k < buckets.size(); ++k) end += pull * buckets[k].bytes.si();
      longest = std::max(longest, end);
    }
  }
  RC_ASSERT(Near(PipelinedServerEnd(buckets, Seconds(backward), time_of(push), time_of(pull)).si(),
                 longest));
}

RC_GTEST_PROP(ServerSchedule, PipeliningNeverHurtsAndNeverHalves, ()) {
  const ServerPaths<double> paths = AnyPaths();
  const std::vector<Bucket> buckets = AnyBuckets();
  std::vector<Bucket> held = buckets;
  for (Bucket& bucket : held) bucket.bytes = bucket.bytes * paths.share();
  const ServerPhases<double> phases = SynchronousServers(paths);
  const Duration<> backward = Seconds(*LogUniform(1e-3, 1));
  const double serial = ScheduleServers(phases, buckets, held, backward, false).pulled.si();
  const double pipelined = ScheduleServers(phases, buckets, held, backward, true).pulled.si();
  RC_ASSERT(pipelined <= serial * (1 + 1e-12));
  RC_ASSERT(pipelined >= serial / 2 * (1 - 1e-12));
}

// Beside the workers, push and pull share the links: in many pieces the two phases at once take as
// long as one after the other, where links of their own halve them.
TEST(ServerSchedule, ColocatedPhasesShareTheirLinks) {
  std::vector<Bucket> buckets;
  for (int k = 0; k < 1000; ++k) buckets.push_back({kMessage / 1000.0, 1e-9});
  std::vector<Bucket> held = buckets;
  for (Bucket& bucket : held) bucket.bytes = bucket.bytes / 4.0;
  ServerPaths<double> paths = Paths(4, 4);
  paths.worker.alpha = paths.initiation = Duration<>();
  const auto end = [&](bool pipelined) {
    return ScheduleServers(SynchronousServers(paths), buckets, held, Milliseconds(1.0), pipelined)
        .pulled.in(kMilliseconds);
  };
  EXPECT_NEAR(end(false), 160, 0.1);
  EXPECT_NEAR(end(true), 80, 0.2);
  paths.colocated = true;
  paths.nodes = 4;
  EXPECT_NEAR(end(false), 120, 0.1);
  EXPECT_NEAR(end(true), 120, 0.1);
}

TEST(ServerSync, UsefulServersByHand) {
  // 16 workers, servers ten times slower than links: 160 servers would balance them, ...
  ServerPaths<double> paths = Paths(16, 1);
  paths.server_rate = GigabitsPerSecond(1.0);
  EXPECT_NEAR(UsefulServers(paths, 0), 160, 1e-9);
  // ... but a tensor of half the model fills one of two.
  EXPECT_NEAR(UsefulServers(paths, 0.5), 2, 1e-12);
  paths.server_rate = GigabitsPerSecond(1e6);
  EXPECT_NEAR(UsefulServers(paths, 0.01), 16, 1e-9);
}

}  // namespace
}  // namespace stepcast
