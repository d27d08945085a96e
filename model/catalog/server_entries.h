// The entries of the catalogue on parameter servers.
#ifndef STEPCAST_MODEL_CATALOG_SERVER_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_SERVER_ENTRIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/exchange/async_server.h"
#include "model/exchange/parameter_server.h"
#include "model/overlap/buckets.h"

namespace stepcast::internal {

inline constexpr Files kParameterServerFiles{"model/exchange/parameter_server.h",
                                             "docs/explanation/parameter-server.md",
                                             "tests/model/parameter_server_test.cc"};
inline constexpr Files kAsyncServerFiles{"model/exchange/async_server.h",
                                         "docs/explanation/parameter-server.md",
                                         "tests/model/async_server_test.cc"};

// alpha, B, B_s, P, c_x, u, rho, m in this order; 12 workers on 3 nodes, 2 servers, 10 tensors.
template <class T>
ServerPaths<T> ServerEntryPaths(const std::vector<T>& x) {
  ServerPaths<T> p;
  p.workers = 12;
  p.servers = 2;
  p.workers_per_node = 4;
  p.nodes = 3;
  p.worker = {Duration<T>::FromSi(x[0]), DataRate<T>::FromSi(x[1])};
  p.server_bandwidth = DataRate<T>::FromSi(x[2]);
  p.server_rate = DataRate<T>::FromSi(x[3]);
  p.initiation = Duration<T>::FromSi(x[4]);
  p.update = DurationPerByte<T>::FromSi(x[5]);
  p.rpc_rounds = x[6];
  p.tensors = 10;
  return p;
}

// A message whose size is an input: bytes are a scalar here, where a plan counts them.
template <class T>
Duration<T> CostOf(const SyncCost<T>& cost, const T& bytes) {
  return cost.per_call + Duration<T>::FromSi(cost.per_byte.si() * bytes);
}

template <class T>
void AddServerEntries(std::vector<Model<T>>* models) {
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  constexpr Trend kEither = Trend::kEither;
  const std::vector<ModelInput> server_inputs = {
      {"alpha", "s", 1e-6, 1e-2, kUp, "one-way cost of a message"},
      {"B", "B/s", 1e6, 1e11, kDown, "bandwidth of a node's link, each direction"},
      {"B_s", "B/s", 1e6, 1e11, kDown, "bandwidth of a server's link, each direction"},
      {"P", "B/s", 1e7, 1e12, kDown, "rate at which a server adds up or copies out"},
      {"c_x", "s", 1e-7, 1e-2, kUp, "processor time to initiate one transfer"},
      {"u", "s/B", 1e-13, 1e-8, kUp, "time in which a server updates a byte of the model"},
      {"rho", "", 1e-4, 10, kUp, "round trips for each tensor and phase beyond the first"},
      {"m", "B", 1e5, 1e10, kUp, "gradient bytes"}};
  const char* kSynchronousSource =
      "Li et al., OSDI 2014; Chang et al., Network Evolution for DNNs; Jiang et al., OSDI 2020";
  using Change = void (*)(ServerPaths<T>*);
  const auto synchronous = [&](const char* id, const char* sentence, const char* formula,
                               const char* validity, const char* section, Change change,
                               const std::vector<KnownCase>& known) {
    models->push_back({id,
                       sentence,
                       formula,
                       kSynchronousSource,
                       validity,
                       "s",
                       "",
                       server_inputs,
                       [change](const std::vector<T>& x) {
                         ServerPaths<T> p = ServerEntryPaths(x);
                         change(&p);
                         return CostOf(ServerSynchronisation(p), x[7]).si();
                       },
                       known,
                       {kParameterServerFiles, "ServerSynchronisation", section}});
  };
  constexpr double kFast = 1e30;
  synchronous(
      "collective/parameter_server",
      "Twelve workers on three nodes push to two servers and pull from them, each phase at the "
      "pace of its busiest part.",
      "2 (alpha (1 + 20 rho) + 12 c_x + m max(4/B, 6/B_s, 6/P)) + m u/2",
      "shares are even, servers have nodes of their own, push and pull one after the other",
      "2-one-phase", [](ServerPaths<T>*) {},
      {{"a server's link carries six times the message, twice 0.6 s",
        {0, 1e9, 1e9, kFast, 0, 0, 0, 1e8},
        1.2},
       {"four workers share a node's link", {0, 1e9, kFast, kFast, 0, 0, 0, 1e8}, 0.8},
       {"only calls: 2 (1 ms (1 + 20) + 12 x 0.1 ms)",
        {1e-3, kFast, kFast, kFast, 1e-4, 0, 1, 1e8},
        0.0444},
       {"only the update of one half", {0, kFast, kFast, kFast, 0, 1e-9, 0, 1e8}, 0.05}});
  synchronous(
      "collective/parameter_server_colocated",
      "Three servers beside twelve workers on three nodes: a third of the bytes stays within its "
      "node.",
      "2 (alpha (1 + 20 rho) + 12 c_x + m max(8/(3 B), 4/P)) + m u/3",
      "shares are even, a server on each node; B_s has no part", "2-one-phase",
      [](ServerPaths<T>* p) {
        p->servers = 3;
        p->colocated = true;
      },
      {{"4 workers send two thirds, and a server receives a third of 8 others",
        {0, 1e9, 1, kFast, 0, 0, 0, 3e8},
        1.6},
       {"the processor adds up what its own node sends as well",
        {0, kFast, 1, 1e9, 0, 0, 0, 1e8},
        0.8}});
  synchronous(
      "collective/parameter_server_multicast",
      "A server sends the parameters once and the network copies them to twelve workers.",
      "alpha (2 + 40 rho) + 14 c_x + m (max(4/B, 6/B_s, 6/P) + max(4/B, 1/(2 B_s), 1/(2 P)) + u/2)",
      "the network has multicast; workers of one node still receive a copy each",
      "4-what-the-network-could-do", [](ServerPaths<T>* p) { p->multicast = true; },
      {{"the push as before, 0.6 s, the pull a twelfth",
        {0, kFast, 1e9, kFast, 0, 0, 0, 1e8},
        0.65},
       {"12 initiations to push, and 2 at a worker to pull",
        {0, kFast, kFast, kFast, 1e-3, 0, 0, 1e8},
        0.014}});
  synchronous(
      "collective/parameter_server_aggregation",
      "The network adds up what twelve workers push, so that a server receives it once.",
      "alpha (2 + 40 rho) + 14 c_x + m (max(4/B, 1/(2 B_s), 1/(2 P)) + max(4/B, 6/B_s, 6/P) + u/2)",
      "switches add at line rate; workers of one node still send a copy each",
      "4-what-the-network-could-do", [](ServerPaths<T>* p) { p->in_network_aggregation = true; },
      {{"the pull as before, 0.6 s, the push a twelfth",
        {0, kFast, 1e9, kFast, 0, 0, 0, 1e8},
        0.65},
       {"workers' links do not gain", {0, 1e9, kFast, kFast, 0, 0, 0, 1e8}, 0.8}});
  synchronous("collective/parameter_server_both",
              "The network both adds up and copies: a server exchanges its shard once each way.",
              "2 (alpha (1 + 20 rho) + 2 c_x + m max(4/B, 1/(2 B_s), 1/(2 P))) + m u/2",
              "as multicast and in-network aggregation", "4-what-the-network-could-do",
              [](ServerPaths<T>* p) { p->multicast = p->in_network_aggregation = true; },
              {{"half the message each way", {0, kFast, 1e9, kFast, 0, 0, 0, 1e8}, 0.1},
               {"2 initiations each way", {0, kFast, kFast, kFast, 1e-3, 0, 0, 1e8}, 0.004}});
  models->push_back(
      {"overlap/server_pipeline",
       "Four buckets are pulled as soon as they have been pushed, while the backward pass runs.",
       "max over i <= j of t_b i/4 + (j-i+1) p + (5-j) q",
       "Johnson, Naval Research Logistics Quarterly 1 (1954)",
       "equal buckets, ready at equal distances; one push and one pull at a time",
       "s",
       "",
       {{"t_b", "s", 1e-3, 10, kUp, "backward pass"},
        {"p", "s", 1e-5, 10, kUp, "push of one bucket"},
        {"q", "s", 1e-5, 10, kUp, "pull of one bucket"}},
       [](const std::vector<T>& x) {
         const std::vector<Bucket> buckets = {
             {Bytes(1.0), 0.25}, {Bytes(1.0), 0.5}, {Bytes(1.0), 0.75}, {Bytes(1.0), 1.0}};
         const Duration<T> push = Duration<T>::FromSi(x[1]);
         const Duration<T> pull = Duration<T>::FromSi(x[2]);
         return PipelinedServerEnd(
                    buckets, Duration<T>::FromSi(x[0]), [&](const Bucket&) { return push; },
                    [&](const Bucket&) { return pull; })
             .si();
       },
       {{"a slow backward pass hides all but the last bucket", {4, 0.1, 0.2}, 4.3},
        {"slow pushes: the first is ready after 1 s, then four of them and a pull",
         {4, 3, 0.5},
         13.5},
        {"slow pulls: four of them after the first push", {4, 0.5, 3}, 13.5}},
       {kParameterServerFiles, "PipelinedServerEnd",
        "3-push-and-pull-one-after-the-other-or-in-step"}});
  std::vector<ModelInput> async_inputs = server_inputs;
  async_inputs.pop_back();  // the message is counted: 100 MB
  async_inputs.push_back({"t_f", "s", 1e-3, 10, kUp, "forward pass"});
  async_inputs.push_back({"t_b", "s", 1e-3, 10, kUp, "backward pass"});
  const auto buckets = std::make_shared<const std::vector<Bucket>>(
      std::vector<Bucket>{{Megabytes(50.0), 0.5}, {Megabytes(50.0), 1.0}});
  const auto network = [buckets](const std::vector<T>& x, int workers) {
    ServerPaths<T> p = ServerEntryPaths(x);
    p.workers = workers;
    p.workers_per_node = 1;
    AsyncWork<T> work;
    work.forward = Duration<T>::FromSi(x[7]);
    work.backward = Duration<T>::FromSi(x[8]);
    work.buckets = buckets.get();
    return AsynchronousServers(p, work, Megabytes(100.0));
  };
  models->push_back(
      {"collective/async_parameter_server",
       "Time between two updates of one of twelve asynchronous workers, who meet only in the "
       "queues of two servers.",
       "t_f + max(t_b, t_b/2 + R_push, t_b + R_push/2) + R_pull by mean value analysis, m = 100 MB",
       "Reiser & Lavenberg, JACM 27 (1980); Li et al., OSDI 2014",
       "flows that share links fairly; two equal buckets leave during the backward pass; at most "
       "the "
       "cycle of workers who all exchange at once",
       "s",
       "m = 100 MB",
       async_inputs,
       [network](const std::vector<T>& x) { return network(x, 12).cycle.si(); },
       {{"nobody queues: 1 + 2 s, half the push of 0.1 s behind the backward pass, the pull",
         {0, 1e9, kFast, kFast, 0, 0, 0, 1, 2},
         3.15},
        {"no compute: one more than twelve halves of the message at 1 MB/s, both ways busy at once",
         {0, 1e9, 1e6, kFast, 0, 0, 0, 0, 0},
         650}},
       {kAsyncServerFiles, "AsynchronousServers", "5-nobody-waits"}});
  std::vector<ModelInput> class_inputs = async_inputs;
  class_inputs[7] = {"t_1", "s", 1e-3, 10, kUp, "compute of a fast worker"};
  class_inputs[8] = {"t_2", "s", 1e-3, 10, kEither, "compute of a slow worker"};
  const auto classes = [](const std::vector<T>& x) {
    ServerPaths<T> p = ServerEntryPaths(x);
    p.workers_per_node = 1;
    std::array<WorkerClass<T>, 2> kinds;
    p.workers = 12;
    for (std::size_t c = 0; c < 2; ++c) {
      kinds[c].workers = 6;
      kinds[c].work.forward = Duration<T>::FromSi(x[7 + c]);
    }
    return AsynchronousClasses(p, kinds, Megabytes(100.0));
  };
  models->push_back(
      {"collective/async_classes",
       "Time between two updates of one of six fast asynchronous workers, who share two servers "
       "with six slow ones.",
       "C_i = t_i + 2 (alpha (1 + 20 rho) + c_x + max(0, m/B - D)) + R, D = max(m/(2 B_s), "
       "m/(2 P) + c_x), R that of 12 equal workers of a cycle C* with 12/C* = 6/C_1 + 6/C_2, each "
       "with stations D, m u/2, D; m = 100 MB",
       "Bard, Some extensions to multiclass queueing network analysis (1979)",
       "flows that share links fairly, nothing hidden; within 9 per cent of an exact analysis of "
       "two classes of up to six workers",
       "s",
       "m = 100 MB",
       class_inputs,
       [classes](const std::vector<T>& x) { return classes(x)[0].cycle.si(); },
       {{"nobody queues: 1 s, and 0.1 s each way", {0, 1e9, kFast, kFast, 0, 0, 0, 1, 3}, 1.2},
        {"all alike and no compute: twelve services and one more, of 50 s",
         {0, 1e9, 1e6, kFast, 0, 0, 0, 0, 0},
         650}},
       {kAsyncServerFiles, "AsynchronousClasses", "5-nobody-waits"}});
  models->push_back(
      {"collective/async_staleness_sd",
       "Spread of the number of updates by others between two updates of one of twelve "
       "asynchronous workers; its mean is eleven.",
       "sqrt(12 x 11 (2 D^2 + D_u^2)) / C, D = max(m/(2 B_s), m/(2 P) + c_x), D_u = m u/2, m = 100 "
       "MB",
       "Reiser & Lavenberg, JACM 27 (1980), for the cycle C; the spread is derived from renewal "
       "processes",
       "compute that does not vary; an upper estimate where the servers saturate",
       "",
       "m = 100 MB",
       [&] {
         std::vector<ModelInput> inputs = async_inputs;
         for (ModelInput& input : inputs) input.trend = kEither;
         return inputs;
       }(),
       [network](const std::vector<T>& x) { return network(x, 12).staleness_sd; },
       {{"nothing varies", {0, 1e9, kFast, kFast, 0, 0, 0, 1, 2}, 0},
        {"no compute: a cycle of 13 services, two of them the worker's own",
         {0, kFast, 5e10, kFast, 0, 0, 0, 0, 0},
         1.2498520622951623}},
       {kAsyncServerFiles, "AsynchronousServers", "6-staleness"}});
  models->push_back(
      {"sync/bounded_staleness",
       "Wait of a worker that may be four steps ahead of the slowest, in most cases an "
       "upper estimate.",
       "W^2 / (W + 4 t)",
       "Ho et al., NIPS 2013 (the bound); interpolation between the barrier and diffusion",
       "equal workers with independent spreads; at most about four times the simulated wait",
       "s",
       "",
       {{"W", "s", 1e-5, 10, kUp, "wait of a synchronous step"},
        {"t", "s", 1e-3, 10, kDown, "a cycle without a bound"}},
       [](const std::vector<T>& x) {
         return BoundedStalenessWait(Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]), 4).si();
       },
       {{"a tenth of a step", {0.1, 1}, 0.01 / 4.1},
        {"steps without length: the synchronous wait", {0.1, 0}, 0.1}},
       {kAsyncServerFiles, "BoundedStalenessWait", "6-staleness"}});
  models->push_back(
      {"limits/useful_servers",
       "Servers beyond which sixteen synchronous workers gain nothing, since their own links are "
       "as busy.",
       "min(16 max(1/B_s, 1/P) B, 4)",
       "Li et al., OSDI 2014; balance of the two sides of each phase",
       "one worker a node; the largest tensor is a quarter of the model",
       "",
       "",
       {{"B", "B/s", 1e6, 1e11, kUp, "bandwidth of a node's link"},
        {"B_s", "B/s", 1e6, 1e11, kDown, "bandwidth of a server's link"},
        {"P", "B/s", 1e7, 1e12, kDown, "rate of a server"}},
       [](const std::vector<T>& x) {
         ServerPaths<T> p;
         p.workers = 16;
         p.worker.bandwidth = DataRate<T>::FromSi(x[0]);
         p.server_bandwidth = DataRate<T>::FromSi(x[1]);
         p.server_rate = DataRate<T>::FromSi(x[2]);
         return UsefulServers(p, 0.25);
       },
       {{"a tensor of a quarter fills one of four", {1e9, 1e9, 1e9}, 4},
        {"servers with sixteen times the bandwidth: one is enough", {1e9, 1.6e10, kFast}, 1}},
       {kParameterServerFiles, "UsefulServers", "2-one-phase"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_SERVER_ENTRIES_H_
