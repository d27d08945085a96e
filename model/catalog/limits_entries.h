// The entries of the catalogue for where scaling ends.
#ifndef STEPCAST_MODEL_CATALOG_LIMITS_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_LIMITS_ENTRIES_H_

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/exchange/allreduce_limits.h"
#include "model/exchange/async_server_limits.h"
#include "model/exchange/byteps_limits.h"
#include "model/exchange/parameter_server_limits.h"
#include "model/limits/limits.h"

namespace stepcast::internal {

inline constexpr Files kServerLimitsFiles{"model/exchange/parameter_server_limits.h",
                                          "docs/explanation/limits.md",
                                          "tests/model/limits_test.cc"};
inline constexpr Files kAsyncLimitsFiles{"model/exchange/async_server_limits.h",
                                         "docs/explanation/limits.md",
                                         "tests/model/limits_test.cc"};
inline constexpr Files kLimitsFiles{"model/limits/limits.h", "docs/explanation/limits.md",
                                    "tests/model/limits_test.cc"};

// The shape at which the limits of servers and nodes are evaluated.
inline constexpr int kLimitServers = 4;
inline constexpr int kLimitDevices = 4;
inline constexpr int kLimitWorkers = 16;
inline constexpr double kLimitHelpers = 0.5;
inline constexpr double kLimitEfficiency = 0.75;

template <class T>
Hop<T> LimitHop(const std::vector<T>& x, std::size_t alpha, std::size_t bandwidth) {
  return {Duration<T>::FromSi(x[alpha]), DataRate<T>::FromSi(x[bandwidth])};
}

// alpha, c_x, B, B_s from `at` on.
template <class T>
ServerPaths<T> LimitServers(const std::vector<T>& x, std::size_t at) {
  ServerPaths<T> network;
  network.servers = kLimitServers;
  network.workers = kLimitWorkers;
  network.workers_per_node = 1;
  network.worker = LimitHop(x, at, at + 2);
  network.initiation = Duration<T>::FromSi(x[at + 1]);
  network.server_bandwidth = DataRate<T>::FromSi(x[at + 3]);
  return network;
}

template <class T>
Duration<T> LimitDuration(const std::vector<T>& x, std::size_t at) {
  return Duration<T>::FromSi(x[at]);
}

template <class T>
DataSize<T> LimitBytes(const std::vector<T>& x, std::size_t at) {
  return DataSize<T>::FromSi(x[at]);
}

template <class T>
void AddLimitsEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  constexpr Trend kAny = Trend::kEither;
  const double ln2 = std::log(2.0);
  const auto alpha = [](Trend trend, double low = 1e-6, double high = 1e-2) {
    return ModelInput{"alpha", "s", low, high, trend, "one-way cost of a message"};
  };
  const auto initiation = [](Trend trend) {
    return ModelInput{"c_x", "s", 1e-6, 1e-3, trend, "processor time to start a transfer"};
  };
  const auto bandwidth = [](Trend trend) {
    return ModelInput{"B", "B/s", 1e8, 1e11, trend, "bandwidth of a node's link"};
  };
  const auto server_bandwidth = [](Trend trend) {
    return ModelInput{"B_s", "B/s", 1e8, 1e11, trend, "bandwidth of a server's link"};
  };
  const auto bytes = [](Trend trend) {
    return ModelInput{"m", "B", 1e6, 1e9, trend, "gradient bytes"};
  };
  const auto compute = [](Trend trend, double low = 1e-2, double high = 10) {
    return ModelInput{"t", "s", low, high, trend, "compute of a step"};
  };
  const auto work = [](Trend trend) {
    return ModelInput{"C", "s", 1e-1, 1e3, trend, "compute of the whole step on one worker"};
  };
  const ModelInput samples{"s", "samples", 1, 1e5, kUp, "samples of a worker's step"};
  const char* const own = "derivative of the cost of the collective; docs/explanation/limits.md";

  // ---- Ceilings of weak scaling.
  models->push_back(
      {.id = "limits/ring_ceiling",
       .sentence = "However many workers a ring has, its messages cap the throughput.",
       .formula = "X = s / (2 alpha)",
       .source = own,
       .validity = "one call a step, every worker keeps its batch; halving-doubling and trees have "
                   "no such cap",
       .output = "samples/s",
       .inputs = {samples, alpha(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const Hop<T> hop{LimitDuration(x, 1), GigabytesPerSecond(T(1.0))};
             return WeakScalingCeiling(SampleCount<T>::FromSi(x[0]),
                                       RingGrowth(hop).Of(Megabytes(T(1.0))))
                 .value()
                 .si();
           },
       .known = {{"64 samples and 1 ms a message: 64 / 2 ms", {64, 1e-3}, 32000},
                 {"1 sample and 0.5 ms a message: one a millisecond", {1, 5e-4}, 1000}},
       .home = {kLimitsFiles, "WeakScalingCeiling", "2-weak-scaling-the-ceiling"}});
  models->push_back(
      {.id = "limits/server_ceiling",
       .sentence = "However many workers push to 4 synchronous servers, the servers cap the "
                   "throughput.",
       .formula = "X = s / (2 c_x + 2 m / (4 B_s))",
       .source = own,
       .validity = "one call a step, parameters spread evenly, every worker keeps its batch",
       .output = "samples/s",
       .inputs = {samples, initiation(kDown), server_bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {T(0.0), x[1], T(1e9), x[2]};
             return WeakScalingCeiling(SampleCount<T>::FromSi(x[0]),
                                       ServerGrowth(LimitServers(network, 0)).Of(LimitBytes(x, 3)))
                 .value()
                 .si();
           },
       .known = {{"1 us is little beside 200 MB over 4 GB/s: 64 / (2 us + 50 ms)",
                  {64, 1e-6, 1e9, 1e8},
                  64 / (2e-6 + 0.05)},
                 {"initiation and bytes equal: 10 / (2 ms + 2 ms)", {10, 1e-3, 1e9, 4e6}, 2500}},
       .home = {kLimitsFiles, "WeakScalingCeiling", "2-weak-scaling-the-ceiling"}});
  models->push_back(
      {.id = "limits/server_ceiling_in_network",
       .sentence = "When switches add up what workers push to 4 servers, only the pull caps the "
                   "throughput, at twice that of plain servers; with multicast as well there is no "
                   "cap.",
       .formula = "X = s / (c_x + m / (4 B_s))",
       .source = "Chang et al., Network Evolution for DNNs; docs/explanation/limits.md",
       .validity = "switches add at line rate; one call a step, parameters spread evenly",
       .output = "samples/s",
       .inputs = {samples, initiation(kDown), server_bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> values = {T(0.0), x[1], T(1e9), x[2]};
             ServerPaths<T> network = LimitServers(values, 0);
             network.in_network_aggregation = true;
             return WeakScalingCeiling(SampleCount<T>::FromSi(x[0]),
                                       ServerGrowth(network).Of(LimitBytes(x, 3)))
                 .value()
                 .si();
           },
       .known = {{"64 / (1 us + 25 ms)", {64, 1e-6, 1e9, 1e8}, 64 / (1e-6 + 0.025)},
                 {"initiation and bytes equal: 10 / (1 ms + 1 ms)", {10, 1e-3, 1e9, 4e6}, 5000}},
       .home = {kLimitsFiles, "WeakScalingCeiling", "2-weak-scaling-the-ceiling"}});
  models->push_back(
      {.id = "limits/async_ceiling",
       .sentence = "4 asynchronous servers pass no more updates than one direction of their links "
                   "carries.",
       .formula = "X = s 4 B_s / m",
       .source = "Denning & Buzen, ACM Computing Surveys 10 (1978)",
       .validity = "parameters spread evenly, links that carry both directions at once",
       .output = "samples/s",
       .inputs = {samples, server_bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {T(0.0), T(0.0), T(1e9), x[1]};
             return AsyncCeiling(SampleCount<T>::FromSi(x[0]),
                                 AsyncServerQueues(LimitServers(network, 0), LimitBytes(x, 2)))
                 .si();
           },
       .known = {{"32 samples, 4 GB/s, 100 MB: 40 updates a second", {32, 1e9, 1e8}, 1280},
                 {"1 sample, 400 MB/s, 400 MB", {1, 1e8, 4e8}, 1}},
       .home = {kAsyncLimitsFiles, "AsyncCeiling", "8-asynchronous-servers"}});

  // ---- Where synchronisation overtakes compute, and half of the ceiling.
  models->push_back(
      {.id = "limits/ring_crossing",
       .sentence = "The workers from which on a ring that hides nothing takes longer than compute.",
       .formula = "w = y + sqrt(y^2 + m/(alpha B)),  y = (t + 2 alpha - 2 m/B) / (4 alpha)",
       .source = own,
       .validity = "one call a step, every worker keeps its batch; at least 1",
       .output = "",
       .inputs = {compute(kUp), alpha(kDown), bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return CrossingWorkers(RingGrowth(LimitHop(x, 1, 2)).Of(LimitBytes(x, 3)),
                                    LimitDuration(x, 0))
                 .value();
           },
       // Both sides of 2 (w-1) alpha + 2 (w-1)/w m/B = t by hand.
       .known = {{"w = 2: 2 x 10 ms + 10 ms", {0.03, 1e-2, 1e9, 1e7}, 2},
                 {"w = 11: 20 x 1 ms + 20/11 x 11 ms", {0.04, 1e-3, 1e9, 1.1e7}, 11}},
       .home = {kLimitsFiles, "CrossingWorkers",
                "3-half-of-the-ceiling-and-where-transfer-exceeds-compute"}});
  models->push_back(
      {.id = "limits/halving_doubling_crossing",
       .sentence = "The workers from which on halving and doubling takes longer than compute: a "
                   "number that grows exponentially with compute.",
       .formula = "w = r / W(r e^(-y/c)),  c = 2 alpha / ln 2, r = 2 m/(B c), y = t - 2 m/B",
       .source = "Corless et al., Advances in Computational Mathematics 5 (1996) for W",
       .validity = "one call a step, powers of two; none beyond e^700 workers",
       .output = "",
       .inputs = {compute(kUp, 3e-2, 1e-1), alpha(kDown, 5e-3, 2e-2), bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return CrossingWorkers(HalvingDoublingGrowth(LimitHop(x, 1, 2)).Of(LimitBytes(x, 3)),
                                    LimitDuration(x, 0))
                 .value();
           },
       .known = {{"w = 2: 2 x 10 ms + 10 ms", {0.03, 0.01, 1e9, 1e7}, 2},
                 {"w = 8: 6 x 10 ms + 14/8 x 16 ms", {0.088, 0.01, 1e9, 1.6e7}, 8}},
       .home = {kLimitsFiles, "CrossingWorkers",
                "3-half-of-the-ceiling-and-where-transfer-exceeds-compute"}});
  models->push_back(
      {.id = "limits/double_tree_crossing",
       .sentence = "The workers from which on a double tree takes longer than compute.",
       .formula = "w = 2^((t - 2 m/B) / (2 alpha))",
       .source = own,
       .validity = "one call a step, powers of two from 4 on; none beyond e^700 workers",
       .output = "",
       .inputs = {compute(kUp, 3e-2, 1e-1), alpha(kDown, 5e-3, 2e-2), bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return CrossingWorkers(DoubleTreeGrowth(LimitHop(x, 1, 2)).Of(LimitBytes(x, 3)),
                                    LimitDuration(x, 0))
                 .value();
           },
       .known = {{"6 x 10 ms + 2 x 10 ms is 80 ms with 8", {0.08, 0.01, 1e9, 1e7}, 8},
                 {"too little compute even for 4", {0.03, 0.02, 1e9, 1e7}, 4}},
       .home = {kLimitsFiles, "CrossingWorkers",
                "3-half-of-the-ceiling-and-where-transfer-exceeds-compute"}});
  models->push_back(
      {.id = "limits/server_crossing",
       .sentence = "The workers from which on 4 synchronous servers take longer than compute.",
       .formula = "2 alpha + 2 c_x max(4, w) + 2 m max(1/B, w/(4 B_s)) = t, solved for w",
       .source = own,
       .validity = "one call a step, one worker a node, parameters spread evenly; at least 1",
       .output = "",
       .inputs = {compute(kUp), alpha(kDown), initiation(kDown), bandwidth(kUp),
                  server_bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             return CrossingWorkers(ServerGrowth(LimitServers(x, 1)).Of(LimitBytes(x, 5)),
                                    LimitDuration(x, 0))
                 .value();
           },
       .known = {{"w = 20: 4 ms + 40 x 1 ms + 40 x 25 ms", {1.044, 2e-3, 1e-3, 1e9, 1e9, 1e8}, 20},
                 {"the worker's link alone takes 2 s for 1 s of compute",
                  {1, 1e-6, 1e-6, 1e8, 1e9, 1e8},
                  1}},
       .home = {kLimitsFiles, "CrossingWorkers",
                "3-half-of-the-ceiling-and-where-transfer-exceeds-compute"}});
  models->push_back(
      {.id = "limits/server_half_ceiling",
       .sentence = "The workers with which 4 synchronous servers reach half of their ceiling.",
       .formula =
           "w = (t + 2 alpha + flat) / (2 rise - slope), flat and slope: the sides that bind",
       .source = own,
       .validity = "one call a step, one worker a node, parameters spread evenly; at least 1",
       .output = "",
       .inputs = {compute(kUp), alpha(kUp), initiation(kAny), bandwidth(kDown),
                  server_bandwidth(kUp), bytes(kAny)},
       .evaluate =
           [](const std::vector<T>& x) {
             return HalfCeilingWorkers(ServerGrowth(LimitServers(x, 1)).Of(LimitBytes(x, 5)),
                                       LimitDuration(x, 0))
                 .value();
           },
       .known = {{"links of the servers bind: (1 s + 4 ms) / (2 ms + 50 ms)",
                  {1, 2e-3, 1e-3, 1e10, 1e9, 1e8},
                  1.004 / 0.052},
                 {"links of the workers bind: (1 s + 4 ms + 2 s) / (2 x 22 ms - 2 ms)",
                  {1, 2e-3, 1e-3, 1e8, 2.5e9, 1e8},
                  3.004 / 0.042}},
       .home = {kLimitsFiles, "HalfCeilingWorkers",
                "3-half-of-the-ceiling-and-where-transfer-exceeds-compute"}});
  models->push_back(
      {.id = "limits/async_knee",
       .sentence = "The workers with which 4 asynchronous servers would be busy all the time if "
                   "nobody ever waited.",
       .formula =
           "w = (t + 2 alpha + 6 c_x + 2 max(0, m/B - D) + 2 D) / D,  D = max(m/(4 B_s), c_x)",
       .source = "Denning & Buzen, ACM Computing Surveys 10 (1978)",
       .validity =
           "one worker a node, parameters spread evenly; half of the ceiling needs at least "
           "half of them",
       .output = "",
       .inputs = {compute(kUp), alpha(kUp), initiation(kAny), bandwidth(kDown),
                  server_bandwidth(kUp), bytes(kAny)},
       .evaluate =
           [](const std::vector<T>& x) {
             return AsyncKnee(AsyncServerQueues(LimitServers(x, 1), LimitBytes(x, 5)),
                              LimitDuration(x, 0));
           },
       .known = {{"(1 s + 2 ms + 6 ms + 2 x 25 ms) / 25 ms",
                  {1, 1e-3, 1e-3, 1e10, 1e9, 1e8},
                  42.32},
                 {"slow workers: (1 s + 2 ms + 6 ms + 2 x 75 ms + 2 x 25 ms) / 25 ms",
                  {1, 1e-3, 1e-3, 1e9, 1e9, 1e8},
                  48.32}},
       .home = {kAsyncLimitsFiles, "AsyncKnee", "8-asynchronous-servers"}});

  // ---- Strong scaling.
  const auto add_best = [&](const char* id, const char* sentence, const char* formula,
                            const char* validity, std::function<CostGrowth<T>(const Hop<T>&)> grow,
                            Trend by_bandwidth, Trend by_bytes,
                            const std::vector<KnownCase>& known) {
    models->push_back(
        {.id = id,
         .sentence = sentence,
         .formula = formula,
         .source = own,
         .validity = validity,
         .output = "",
         .inputs = {work(kUp), alpha(kDown), bandwidth(by_bandwidth), bytes(by_bytes)},
         .evaluate =
             [grow = std::move(grow)](const std::vector<T>& x) {
               return BestStrongScaling(grow(LimitHop(x, 1, 2)).Of(LimitBytes(x, 3)),
                                        LimitDuration(x, 0))
                   .workers.value();
             },
         .known = known,
         .home = {kLimitsFiles, "BestStrongScaling",
                  "4-strong-scaling-the-best-number-of-workers"}});
  };
  add_best("limits/ring_best_workers", "The workers of a ring that finish a fixed step soonest.",
           "w = sqrt((C - 2 m/B) / (2 alpha))", "one call a step, nothing hidden; at least 1",
           [](const Hop<T>& hop) { return RingGrowth(hop); }, kUp, kDown,
           {{"sqrt((20.2 s - 0.2 s) / 2 ms)", {20.2, 1e-3, 1e9, 1e8}, 100},
            {"less work than its transfer: one worker", {0.1, 1e-3, 1e9, 1e8}, 1}});
  add_best("limits/halving_doubling_best_workers",
           "The workers that finish a fixed step soonest by halving and doubling.",
           "w = (C - 2 m/B) ln 2 / (2 alpha)", "one call a step, powers of two, nothing hidden",
           [](const Hop<T>& hop) { return HalvingDoublingGrowth(hop); }, kUp, kDown,
           {{"(20.2 s - 0.2 s) ln 2 / 2 ms", {20.2, 1e-3, 1e9, 1e8}, 1e4 * ln2},
            {"less work than its transfer: one worker", {0.1, 1e-3, 1e9, 1e8}, 1}});
  add_best("limits/binomial_tree_best_workers",
           "The workers of a binomial tree that finish a fixed step soonest.",
           "w = C ln 2 / (2 alpha + 2 m/B)", "one call a step, powers of two, nothing hidden",
           [](const Hop<T>& hop) { return BinomialTreeGrowth(hop); }, kUp, kDown,
           {{"20.2 s x ln 2 / (2 ms + 200 ms)", {20.2, 1e-3, 1e9, 1e8}, 100 * ln2},
            {"too little work for two: one worker", {0.1, 1e-3, 1e9, 1e8}, 1}});
  models->push_back(
      {.id = "limits/double_tree_best_workers",
       .sentence =
           "The workers of a double tree that finish a fixed step soonest: its bytes do not "
           "depend on their number.",
       .formula = "w = C ln 2 / (2 alpha)",
       .source = own,
       .validity = "one call a step, powers of two from 4 on, nothing hidden",
       .output = "",
       .inputs = {work(kUp), alpha(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const Hop<T> hop{LimitDuration(x, 1), GigabytesPerSecond(T(1.0))};
             return BestStrongScaling(DoubleTreeGrowth(hop).Of(Megabytes(T(1.0))),
                                      LimitDuration(x, 0))
                 .workers.value();
           },
       .known = {{"20 s x ln 2 / 2 ms", {20, 1e-3}, 1e4 * ln2},
                 {"too little work even for 4", {0.1, 1e-2}, 4}},
       .home = {kLimitsFiles, "BestStrongScaling", "4-strong-scaling-the-best-number-of-workers"}});
  add_best(
      "limits/hierarchical_best_workers",
      "The workers, 4 on a node, that finish a fixed step soonest with rings in and between nodes.",
      "w = sqrt((C - 8 m/B) 4 / (2 alpha))",
      "one call a step, full nodes, nothing hidden; at least 4",
      [](const Hop<T>& hop) {
        return HierarchicalGrowth(RingGrowth(hop), kLimitDevices,
                                  Hop<T>{Duration<T>(), hop.bandwidth});
      },
      kUp, kDown,
      {{"sqrt((20.8 s - 0.8 s) x 4 / 2 ms): twice the ring's", {20.8, 1e-3, 1e9, 1e8}, 200},
       {"less work than its transfer: one node", {0.1, 1e-3, 1e9, 1e8}, 4}});
  models->push_back(
      {.id = "limits/server_best_workers",
       .sentence = "The workers of 4 synchronous servers that finish a fixed step soonest.",
       .formula = "w = sqrt(C / slope), slope of 2 c_x max(4, w) + 2 m max(1/B, w/(4 B_s))",
       .source = own,
       .validity = "one call a step, one worker a node, nothing hidden, parameters spread evenly",
       .output = "",
       .inputs = {work(kUp), initiation(kDown), bandwidth(kDown), server_bandwidth(kUp),
                  bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {T(0.0), x[1], x[2], x[3]};
             return BestStrongScaling(ServerGrowth(LimitServers(network, 0)).Of(LimitBytes(x, 4)),
                                      LimitDuration(x, 0))
                 .workers.value();
           },
       .known = {{"sqrt(20.8 s / (2 ms + 50 ms)) = 20", {20.8, 1e-3, 1e9, 1e9, 1e8}, 20},
                 {"up to 40 workers their own links bind: sqrt(0.2 s / 2 ms) = 10",
                  {0.2, 1e-3, 1e9, 1e10, 1e8},
                  10}},
       .home = {kLimitsFiles, "BestStrongScaling", "4-strong-scaling-the-best-number-of-workers"}});
  models->push_back(
      {.id = "limits/colocated_best_workers",
       .sentence = "The workers that finish a fixed step soonest when each node serves a share.",
       .formula = "w = sqrt((C - 2 m/B) / (2 c_x))",
       .source = own,
       .validity = "one worker and one server a node, one call a step, nothing hidden; at least 2",
       .output = "",
       .inputs = {work(kUp), initiation(kDown), bandwidth(kUp), bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {T(0.0), x[1], x[2], T(1e9)};
             return BestStrongScaling(
                        ColocatedServerGrowth(LimitServers(network, 0)).Of(LimitBytes(x, 3)),
                        LimitDuration(x, 0))
                 .workers.value();
           },
       .known = {{"sqrt((20.2 s - 0.2 s) / 2 ms)", {20.2, 1e-3, 1e9, 1e8}, 100},
                 {"less work than its transfer: no more than two", {0.1, 1e-3, 1e9, 1e8}, 2}},
       .home = {kLimitsFiles, "BestStrongScaling", "4-strong-scaling-the-best-number-of-workers"}});
  models->push_back(
      {.id = "limits/byteps_floor",
       .sentence =
           "With a helper machine for every second worker a step never takes less than this, "
           "however many share the work; nor does throughput ever stop growing.",
       .formula = "T = 2 alpha + 4/3 m/B",
       .source = "Jiang et al., OSDI 2020 (cost); docs/explanation/limits.md (limit)",
       .validity = "helpers grow with the workers, one call a step, nothing hidden",
       .inputs = {alpha(kUp), bandwidth(kDown), bytes(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             // Any work above what two workers save.
             const Hop<T> hop = LimitHop(x, 0, 1);
             return BestStrongScaling(BytePsGrowth(kLimitHelpers, hop).Of(LimitBytes(x, 2)),
                                      LimitBytes(x, 2) / hop.bandwidth)
                 .step.si();
           },
       .known = {{"2 ms + 4/3 x 90 ms", {1e-3, 1e9, 9e7}, 0.122},
                 {"hardly a message: 2 us + 4/3 x 0.75 s", {1e-6, 1e9, 7.5e8}, 1.000002}},
       .home = {kLimitsFiles, "BestStrongScaling", "4-strong-scaling-the-best-number-of-workers"}});
  models->push_back(
      {.id = "limits/async_best_workers",
       .sentence = "The workers of 4 asynchronous servers beyond which sharing out the work of an "
                   "update only makes them queue.",
       .formula = "w = z + sqrt(z^2 + C/D),  z = (2 alpha + 6 c_x + 2 max(0, m/B - D) + "
                  "2 D) / (2 D),  D = max(m/(4 B_s), c_x)",
       .source = "Denning & Buzen, ACM Computing Surveys 10 (1978); docs/explanation/limits.md",
       .validity = "asymptotic bounds: the cycle there is at most twice the best one",
       .output = "",
       .inputs = {work(kUp), alpha(kUp), initiation(kAny), bandwidth(kDown), server_bandwidth(kUp),
                  bytes(kAny)},
       .evaluate =
           [](const std::vector<T>& x) {
             return AsyncBestWorkers(AsyncServerQueues(LimitServers(x, 1), LimitBytes(x, 5)),
                                     LimitDuration(x, 0));
           },
       .known = {{"D = 25 ms, z = 58/50: 1.16 + sqrt(1.16^2 + 25/0.025)",
                  {25, 1e-3, 1e-3, 1e10, 1e9, 1e8},
                  1.16 + std::sqrt(1000 + 1.16 * 1.16)},
                 {"D = 25 ms, z = 1 + 150/50 + 8/50: slow workers",
                  {25, 1e-3, 1e-3, 1e9, 1e9, 1e8},
                  4.16 + std::sqrt(1000 + 4.16 * 4.16)}},
       .home = {kAsyncLimitsFiles, "AsyncBestWorkers", "8-asynchronous-servers"}});

  // ---- Servers, accumulation, buckets.
  models->push_back(
      {.id = "limits/servers_that_suffice",
       .sentence = "The servers beyond which 16 synchronous workers gain nothing.",
       .formula = "n = min(16 B/B_s, max(16, sqrt(16 m / (c_x B_s))))",
       .source = own,
       .validity = "one worker a node, one call a step, parameters spread evenly; at least 1",
       .output = "",
       .inputs = {initiation(kDown), bandwidth(kUp), server_bandwidth(kDown), bytes(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {T(0.0), x[0], x[1], x[2]};
             return ServersThatSuffice(LimitServers(network, 0), LimitBytes(x, 3));
           },
       .known = {{"servers with four times the link of a worker: a fourth of them",
                  {1e-4, 1e9, 4e9, 1e8},
                  4},
                 {"slow servers, until starting transfers costs as much: sqrt(16 x 100 / 1)",
                  {1e-3, 1e10, 1e9, 1e8},
                  40},
                 {"starting transfers costs too much for more servers than workers",
                  {1e-3, 1e10, 1e9, 1e6},
                  16}},
       .home = {kServerLimitsFiles, "ServersThatSuffice", "5-the-number-of-servers"}});
  models->push_back(
      {.id = "limits/async_servers_that_suffice",
       .sentence = "The servers with which the knee of asynchronous servers is at 16 workers.",
       .formula = "n = m/B_s 16 / (t + 2 alpha + 2 m/B), or m/B_s 14 / (t + 2 alpha) where servers "
                  "are slower than workers",
       .source = "Denning & Buzen, ACM Computing Surveys 10 (1978)",
       .validity = "one worker a node, parameters spread evenly, short initiations; at least 1",
       .output = "",
       .inputs = {compute(kDown), alpha(kDown), bandwidth(kUp), server_bandwidth(kDown),
                  bytes(kUp)},
       .evaluate =
           [](const std::vector<T>& x) {
             const std::vector<T> network = {x[1], T(0.0), x[2], x[3]};
             return AsyncServersThatSuffice(LimitServers(network, 0), LimitBytes(x, 4),
                                            LimitDuration(x, 0));
           },
       .known = {{"1 s x 16 / (0.19 s + 10 ms + 0.2 s)", {0.19, 5e-3, 1e10, 1e9, 1e9}, 40},
                 {"slow servers: 1 s x 14 / (2.79 s + 10 ms)", {2.79, 5e-3, 1e10, 1e9, 1e9}, 5},
                 {"hardly any bytes: one", {10, 1e-3, 1e9, 1e9, 1e6}, 1}},
       .home = {kAsyncLimitsFiles, "AsyncServersThatSuffice", "8-asynchronous-servers"}});
  models->push_back(
      {.id = "limits/accumulation",
       .sentence = "The micro-steps between synchronisations that keep three quarters of the time "
                   "for computing, before rounding up.",
       .formula = "a = 0.75 / (1 - 0.75) x / t",
       .source = "share of compute in a step of a micro-steps; docs/explanation/limits.md",
       .validity = "only the last micro-step synchronises",
       .output = "",
       .inputs = {{"x", "s", 1e-4, 1e2, kUp, "exposed synchronisation of a step"},
                  {"t", "s", 1e-3, 10, kDown, "compute of a micro-step"}},
       .evaluate =
           [](const std::vector<T>& x) {
             return RealAccumulationForEfficiency(T(kLimitEfficiency), LimitDuration(x, 0),
                                                  LimitDuration(x, 1));
           },
       .known = {{"one exposed for one computed: three", {1, 1}, 3},
                 {"half of one exposed: one and a half", {0.5, 1}, 1.5}},
       .home = {kLimitsFiles, "RealAccumulationForEfficiency", "6-accumulation"}});
  models->push_back(
      {.id = "limits/best_buckets",
       .sentence = "The number of equal buckets whose last one is synchronised soonest.",
       .formula = "J = max(1, sqrt(t_b / tau), (t_b - m beta) / tau)",
       .source = "minimum of the bucket schedule of Li et al., VLDB 2020, for equal buckets",
       .validity = "buckets of equal bytes, ready at equal distances, one after another",
       .output = "",
       .inputs = {{"t_b", "s", 1e-3, 10, kUp, "backward pass"},
                  {"tau", "s", 1e-5, 1e-1, kDown, "cost of a bucket"},
                  {"beta", "s/B", 1e-11, 1e-7, kDown, "cost of a byte"},
                  bytes(kDown)},
       .evaluate =
           [](const std::vector<T>& x) {
             const SyncCost<T> cost{LimitDuration(x, 1), DurationPerByte<T>::FromSi(x[2])};
             return BestBucketCount(LimitDuration(x, 0), cost, LimitBytes(x, 3));
           },
       .known = {{"bound by the network: sqrt(0.1 s / 1 ms)", {0.1, 1e-3, 1e-9, 1e8}, 10},
                 {"bound by compute: (0.1 s - 20 ms) / 1 ms", {0.1, 1e-3, 1e-9, 2e7}, 80},
                 {"no time to hide behind: one", {1e-3, 1e-1, 1e-9, 1e8}, 1}},
       .home = {kLimitsFiles, "BestBucketCount", "7-buckets"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_LIMITS_ENTRIES_H_
