// Asynchronous parameter servers against flows that share links, simulated one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "model/exchange/async_server.h"
#include "model/sync/straggler.h"
#include "tests/model/simulated_servers.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

const DataSize<> kBytesOfAll = Megabytes(100.0);

// The same workers by the closed form.
AsyncServers<double> Forecast(const SimulatedServers& given) {
  ServerPaths<double> paths;
  paths.workers = given.workers;
  paths.worker.bandwidth = kBytesOfAll / Seconds(std::max(given.at_worker, 1e-9));
  paths.server_bandwidth = kBytesOfAll / Seconds(given.at_server);
  paths.update = Seconds(given.update) / kBytesOfAll;
  AsyncWork<double> work;
  work.forward = Seconds(given.compute);
  work.spread = given.spread;
  work.bound = given.bound;
  work.slowest = work.forward * (given.spread * ExpectedSlowest(given.workers, 0));
  if (given.slow_workers > 0) {
    AsyncWork<double> slow = work;
    slow.forward = work.forward * given.slowdown;
    return UnequalServers<double>(paths, {given.workers - given.slow_workers, work},
                                  {given.slow_workers, slow}, kBytesOfAll, nullptr);
  }
  return AsynchronousServers(paths, work, kBytesOfAll);
}

std::string Name(const SimulatedServers& g) {
  return std::to_string(g.workers) + " workers, spread " + std::to_string(g.spread) + ", server " +
         std::to_string(g.at_server) + " s, own link " + std::to_string(g.at_worker) +
         " s, update " + std::to_string(g.update) + " s, bound " +
         (g.bound ? std::to_string(*g.bound) : "none");
}

// Ratios of forecasts to simulations.
struct Ratios {
  double least = 1;
  double most = 1;

  void Add(double ratio) {
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
};

// Calls with(servers) for loads from a tenth of what the server carries to four times that.
template <class With>
void ForEachLoad(const With& with) {
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const double load : {0.1, 0.5, 1.0, 1.5, 4.0}) {
      for (const double spread : {0.05, 0.5}) {
        SimulatedServers servers;
        servers.workers = workers;
        servers.spread = spread;
        servers.at_server = load / workers;
        with(servers);
      }
    }
  }
}

// Shared links have product form whatever the service and the compute, so messages of one size and
// steady compute queue as the formula says.
TEST(ServerSimulation, QueuesOfSharedLinksAreTheProductForm) {
  Ratios ratios;
  ForEachLoad([&](SimulatedServers servers) {
    SCOPED_TRACE(Name(servers));
    const double ratio = Forecast(servers).cycle.si() / SimulateServers(servers).cycle;
    EXPECT_NEAR(ratio, 1, 0.06);
    ratios.Add(ratio);
  });
  RecordProperty("least", std::to_string(ratios.least));
  RecordProperty("most", std::to_string(ratios.most));
}

// Where a worker's own link is slower than the server's, few workers cannot be in each other's way.
TEST(ServerSimulation, SlowLinksOfWorkersAreOverestimatedALittle) {
  Ratios ratios;
  for (const double slower : {1.5, 2.0, 3.0, 4.0, 8.0, 16.0}) {
    ForEachLoad([&](SimulatedServers servers) {
      if (servers.spread > 0.1) return;
      servers.at_worker = servers.at_server * slower;
      SCOPED_TRACE(Name(servers));
      const double ratio = Forecast(servers).cycle.si() / SimulateServers(servers).cycle;
      EXPECT_GT(ratio, 0.94);
      EXPECT_LT(ratio, 1.16);
      if (servers.workers <= slower) {
        EXPECT_NEAR(ratio, 1, 0.01);
      }
      ratios.Add(ratio);
    });
  }
  RecordProperty("least", std::to_string(ratios.least));
  RecordProperty("most", std::to_string(ratios.most));
}

// So it is where a server updates tensors of several messages by turns. Where it takes one whole
// message after the other, queues are shorter than by the formula.
TEST(ServerSimulation, UpdatesInTurnAreOverestimated) {
  Ratios shared;
  Ratios in_turn;
  for (const double update : {0.2, 1.0, 4.0}) {
    ForEachLoad([&](SimulatedServers servers) {
      servers.update = update * servers.at_server;
      SCOPED_TRACE(Name(servers));
      if (servers.spread > 0.1) return;
      const double cycle = Forecast(servers).cycle.si();
      const double ratio = cycle / SimulateServers(servers).cycle;
      EXPECT_NEAR(ratio, 1, 0.06);
      shared.Add(ratio);
      servers.in_turn = true;
      in_turn.Add(cycle / SimulateServers(servers).cycle);
    });
  }
  EXPECT_GT(in_turn.least, 0.94);
  EXPECT_LT(in_turn.most, 1.6);
  RecordProperty("least", std::to_string(shared.least));
  RecordProperty("most", std::to_string(shared.most));
  RecordProperty("most_in_turn", std::to_string(in_turn.most));
}

// Some workers, or most, compute more slowly, and none waits for another.
TEST(ServerSimulation, WorkersOfTwoSpeeds) {
  Ratios cycles;
  Ratios shares;
  Ratios spreads;
  ForEachLoad([&](SimulatedServers servers) {
    if (servers.workers < 3) return;
    for (const int slow_workers : {1, servers.workers - 1}) {
      for (const double slowdown : {1.5, 3.0}) {
        servers.slow_workers = slow_workers;
        servers.slowdown = slowdown;
        SCOPED_TRACE(Name(servers));
        const AsyncServers<double> forecast = Forecast(servers);
        const SimulatedCycle simulated = SimulateServers(servers);
        cycles.Add(forecast.cycle.si() / simulated.cycle);
        shares.Add(forecast.slow_updates / simulated.slow_updates);
        EXPECT_NEAR(simulated.staleness, forecast.mean_staleness, 0.02 * servers.workers);
        if (simulated.staleness_sd > 1) spreads.Add(forecast.staleness_sd / simulated.staleness_sd);
      }
    }
  });
  std::cout << "two speeds: cycles " << cycles.least << " to " << cycles.most << ", shares "
            << shares.least << " to " << shares.most << ", spreads " << spreads.least << " to "
            << spreads.most << '\n';
  EXPECT_GT(cycles.least, 0.98);
  EXPECT_LT(cycles.most, 1.02);
  EXPECT_GT(shares.least, 0.95);
  EXPECT_LT(shares.most, 1.05);
  EXPECT_GT(spreads.least, 0.75);
  EXPECT_LT(spreads.most, 1.25);
}

// From a synchronous step to none that waits: the cycle, and the spread of what a cycle sees.
TEST(ServerSimulation, BoundsOfStaleness) {
  Ratios cycles;
  Ratios uneven;  // workers of spread 0.5
  Ratios spreads;
  ForEachLoad([&](SimulatedServers servers) {
    if (servers.workers == 1) return;
    for (const int bound : {0, 1, 4}) {
      servers.bound = bound;
      SCOPED_TRACE(Name(servers));
      const AsyncServers<double> forecast = Forecast(servers);
      const SimulatedCycle simulated = SimulateServers(servers);
      const double ratio = forecast.cycle.si() / simulated.cycle;
      // As long as all wait for the slowest the first ones push in its time, which no step counts.
      (servers.spread > 0.1 ? uneven : cycles).Add(ratio);
      EXPECT_NEAR(simulated.staleness, forecast.mean_staleness, 0.01 * servers.workers);
      if (bound == 0) {
        EXPECT_NEAR(forecast.staleness_sd / simulated.staleness_sd, 1, 0.05);
      }
      if (simulated.staleness_sd > 1) spreads.Add(forecast.staleness_sd / simulated.staleness_sd);
    }
  });
  EXPECT_GT(cycles.least, 0.9);
  EXPECT_LT(cycles.most, 1.2);
  EXPECT_GT(uneven.least, 0.9);
  EXPECT_LT(uneven.most, 1.4);
  EXPECT_GT(spreads.least, 0.5);
  EXPECT_LT(spreads.most, 2);
  RecordProperty("least_uneven", std::to_string(uneven.least));
  RecordProperty("most_uneven", std::to_string(uneven.most));
  RecordProperty("least", std::to_string(cycles.least));
  RecordProperty("most", std::to_string(cycles.most));
  RecordProperty("least_sd", std::to_string(spreads.least));
  RecordProperty("most_sd", std::to_string(spreads.most));
}

}  // namespace
}  // namespace stepcast
