// Parameter servers against numbers worked out by hand, and the asynchronous ones against the
// queueing network that they are, solved in two other ways.
#include "model/collective/parameter_server.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/model/support.h"

namespace stepcast {
namespace {

const DataSize<> kMessage = Megabytes(100.0);

// 50 us, 10 Gbit/s at nodes and servers, 20 us a transfer.
ServerPaths<double> Paths(int workers, int servers, int per_node = 1) {
  ServerPaths<double> paths;
  paths.workers = workers;
  paths.servers = servers;
  paths.workers_per_node = per_node;
  paths.worker = {Microseconds(50.0), GigabitsPerSecond(10.0)};
  paths.server_bandwidth = GigabitsPerSecond(10.0);
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

// ---- Asynchronous.

struct Network {
  double think;   // Z: compute, latency, and what only the worker's link adds
  double demand;  // D of each of the two stations
};

// From the header: Z = t + 2 (alpha + c_x n) + 2 m max(0, g/B - 1/(n B_s)), D = m / (n B_s).
Network NetworkOf(const ServerPaths<double>& p, double compute, double bytes) {
  const double demand = bytes / (p.servers * p.server_bandwidth.si());
  const double at_worker = bytes * p.workers_per_node / p.worker.bandwidth.si();
  return {compute + 2 * (p.worker.alpha.si() + p.initiation.si() * p.servers) +
              2 * std::max(0.0, at_worker - demand),
          demand};
}

// The normalising constants of the product form: with j of k customers at the stations, which can
// stand there in j + 1 ways, G(k) = sum_j (j + 1) D^j Z^(k-j) / (k-j)!. Throughput G(w-1) / G(w).
double CycleByConvolution(const Network& network, int workers) {
  const double d = network.demand / network.think;  // in units of Z, which keeps powers small
  const auto constant = [d](int k) {
    long double sum = 0;
    for (int j = 0; j <= k; ++j) {
      sum += static_cast<long double>(j + 1) *
             std::exp(j * std::log(static_cast<long double>(d)) - std::lgamma(k - j + 1.0L));
    }
    return sum;
  };
  return static_cast<double>(workers * constant(workers) / constant(workers - 1)) * network.think;
}

// The Markov chain itself: i customers at the first station, j at the second, the rest thinking.
// Solves the balance equations; throughput is the rate at which the second station sends them on.
double CycleByMarkovChain(const Network& network, int workers) {
  std::vector<std::pair<int, int>> states;
  for (int i = 0; i <= workers; ++i) {
    for (int j = 0; i + j <= workers; ++j) states.emplace_back(i, j);
  }
  const auto index = [&](int i, int j) {
    return std::find(states.begin(), states.end(), std::make_pair(i, j)) - states.begin();
  };
  const auto size = static_cast<Eigen::Index>(states.size());
  Eigen::MatrixXd balance = Eigen::MatrixXd::Zero(size, size);
  const auto flow = [&](std::pair<int, int> from, std::pair<int, int> to, double rate) {
    balance(index(to.first, to.second), index(from.first, from.second)) += rate;
    balance(index(from.first, from.second), index(from.first, from.second)) -= rate;
  };
  for (const auto& [i, j] : states) {
    const int thinking = workers - i - j;
    if (thinking > 0) flow({i, j}, {i + 1, j}, thinking / network.think);
    if (i > 0) flow({i, j}, {i - 1, j + 1}, 1 / network.demand);
    if (j > 0) flow({i, j}, {i, j - 1}, 1 / network.demand);
  }
  balance.row(size - 1).setOnes();  // one balance equation follows from the others
  Eigen::VectorXd right = Eigen::VectorXd::Zero(size);
  right(size - 1) = 1;
  const Eigen::VectorXd probability = balance.fullPivLu().solve(right);
  double busy = 0;
  for (const auto& [i, j] : states) {
    if (j > 0) busy += probability(index(i, j));
  }
  return workers / (busy / network.demand);
}

TEST(ServerAsync, ALoneWorkerComputesPushesAndPulls) {
  for (const int servers : {1, 2, 8}) {
    for (const double server_gbit : {1.0, 10.0, 100.0}) {
      ServerPaths<double> paths = Paths(1, servers);
      paths.server_bandwidth = GigabitsPerSecond(server_gbit);
      const double one_way =
          50e-6 + 20e-6 * servers +
          100e6 * std::max(1 / 1.25e9, 1 / (servers * paths.server_bandwidth.si()));
      EXPECT_DOUBLE_EQ(AsyncServerCycle(paths, Milliseconds(30.0), kMessage).si(),
                       0.030 + 2 * one_way);
    }
  }
}

// Z = 100 ms + 2 (50 us + 20 us), D = 80 ms, two workers. The second finds the first at the
// stations for 160 of 260.14 ms, half at each: R = 160 (1 + 160 / 260.14 / 2).
TEST(ServerAsync, TwoWorkersByHand) {
  const double think = 100.14;
  const double residence = 160 * (1 + 160 / (think + 160) / 2);
  EXPECT_NEAR(AsyncServerCycle(Paths(2, 1), Milliseconds(100.0), kMessage).in(kMilliseconds),
              think + residence, 1e-9);
}

RC_GTEST_PROP(ServerAsyncProperty, IsTheProductFormSolution, ()) {
  ServerPaths<double> paths = Paths(*Whole(1, 64), *Whole(1, 8), *Whole(1, 8));
  paths.worker.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e11));
  paths.server_bandwidth = BytesPerSecond(*LogUniform(1e7, 1e11));
  const double compute = *LogUniform(1e-3, 10);
  const Network network = NetworkOf(paths, compute, kMessage.si());
  RC_ASSERT(Near(AsyncServerCycle(paths, Seconds(compute), kMessage).si(),
                 CycleByConvolution(network, paths.workers), 1e-9));
}

TEST(ServerAsync, IsTheMarkovChain) {
  for (int workers = 1; workers <= 8; ++workers) {
    for (const double compute : {0.01, 0.1, 1.0}) {
      const ServerPaths<double> paths = Paths(workers, 2);
      const double cycle = AsyncServerCycle(paths, Seconds(compute), kMessage).si();
      const Network network = NetworkOf(paths, compute, kMessage.si());
      EXPECT_NEAR(cycle, CycleByMarkovChain(network, workers), 1e-9 * cycle)
          << workers << " workers, " << compute << " s";
    }
  }
}

// D = 40 ms, so at most 25 updates a second; a third of the way there in a dozen workers.
TEST(ServerAsync, RateSaturatesAtTheServers) {
  const double demand = 0.040;
  double before = 0;
  for (int workers = 1; workers <= 8192; workers *= 2) {
    const double rate =
        workers / AsyncServerCycle(Paths(workers, 2), Seconds(1.0), kMessage).in(kSeconds);
    EXPECT_LT(rate, 1 / demand);
    EXPECT_GT(rate, before);
    before = rate;
  }
  EXPECT_GT(before, 0.999 / demand);
}

// Neither faster than a lone worker, nor slower than one behind all others at both stations.
RC_GTEST_PROP(ServerAsyncProperty, CycleIsBetweenItsBounds, ()) {
  ServerPaths<double> paths = Paths(*Whole(1, 64), *Whole(1, 8), *Whole(1, 8));
  paths.server_bandwidth = BytesPerSecond(*LogUniform(1e7, 1e11));
  const double compute = *LogUniform(1e-3, 10);
  const Network network = NetworkOf(paths, compute, kMessage.si());
  const double cycle = AsyncServerCycle(paths, Seconds(compute), kMessage).si();
  const double lone = network.think + 2 * network.demand;
  RC_ASSERT(cycle >= lone * (1 - 1e-12));
  RC_ASSERT(cycle >= paths.workers * network.demand * (1 - 1e-12));
  RC_ASSERT(cycle <= (network.think + 2 * paths.workers * network.demand) * (1 + 1e-12));
}

}  // namespace
}  // namespace stepcast
