// The entries of the catalogue, for any scalar.
#ifndef STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_
#define STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_

#include <memory>

#include "model/catalog/catalog.h"
#include "model/collective/allreduce.h"
#include "model/collective/parameter_server.h"
#include "model/compute/fitted_curve.h"
#include "model/network/transport.h"
#include "model/overlap/buckets.h"
#include "model/step/step.h"
#include "model/sync/straggler.h"

namespace stepcast::internal {

// The shapes at which entries are evaluated: counts are no inputs, they have no derivative.
inline constexpr int kEntryWorkers = 12;
inline constexpr int kEntryNodes = 3;
inline constexpr int kEntryDevices = 4;
inline constexpr int kEntryServers = 2;
inline const DataSize<> kEntryGradient = Megabytes(100.0);

template <class T>
Hop<T> EntryHop(const std::vector<T>& x, std::size_t at) {
  return {Duration<T>::FromSi(x[at]), DataRate<T>::FromSi(x[at + 1])};
}

template <class T>
ServerPaths<T> EntryServers(const std::vector<T>& x) {
  return {kEntryWorkers,
          kEntryServers,
          kEntryDevices,
          EntryHop(x, 0),
          DataRate<T>::FromSi(x[2]),
          Duration<T>::FromSi(x[3])};
}

inline std::shared_ptr<const std::vector<Bucket>> EntryBuckets() {
  return std::make_shared<const std::vector<Bucket>>(
      std::vector<Bucket>{{kEntryGradient * 0.1, 0.1},
                          {kEntryGradient * 0.3, 0.4},
                          {kEntryGradient * 0.4, 0.8},
                          {kEntryGradient * 0.2, 1.0}});
}

// A whole step: all parameters of the table are inputs, in SI, within a decade of their priors.
template <class T>
Model<T> StepEntry(const char* id, const char* sentence, Strategy strategy) {
  StepFacts facts;
  facts.workers = kEntryWorkers;
  facts.nodes = kEntryNodes;
  facts.devices_per_node = kEntryDevices;
  facts.servers = UsesServers(strategy) ? kEntryServers : 0;
  facts.accumulation_steps = 2;
  facts.batch = 32;
  facts.strategy = strategy;
  facts.gradient = kEntryGradient;
  facts.buckets = EntryBuckets();
  Model<T> model{id,
                 sentence,
                 "model/step/step.h",
                 "equal devices on equal nodes, synchronous steps; ps-async in the mean",
                 {},
                 nullptr};
  const auto add = [&](const ParameterSpec& spec, Trend trend) {
    const double centre = spec.prior * spec.si_per_unit;
    const bool share = spec.name == "overlap_share";
    model.inputs.push_back({spec.name.data(), share ? "" : "SI", share ? 0.3 : centre / 3,
                            share ? 0.8 : centre * 3, trend});
  };
  for (int i = 0; i < kClusterParameterCount; ++i) {
    const bool rate =
        i == kLinkBandwidth || i == kFlowBandwidth || i == kHostBandwidth || i == kOverlapShare;
    add(kClusterParameterSpecs[static_cast<std::size_t>(i)],
        rate ? Trend::kNeverRises : Trend::kNeverFalls);
  }
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) add(spec, Trend::kNeverFalls);
  model.evaluate = [facts](const std::vector<T>& x) {
    ClusterParameters<T> cluster{};
    WorkloadParameters<T> workload{};
    std::copy_n(x.begin(), cluster.si.size(), cluster.si.begin());
    std::copy_n(x.begin() + kClusterParameterCount, workload.si.size(), workload.si.begin());
    return EvaluateStep(facts, cluster, workload).total().si();
  };
  return model;
}

}  // namespace stepcast::internal

namespace stepcast {

template <class T>
std::vector<Model<T>> Catalog() {
  using namespace internal;  // NOLINT(google-build-using-namespace): the entries' own helpers
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  const ModelInput alpha{"alpha", "s", 1e-6, 1e-2, kUp};
  const ModelInput bandwidth{"B", "B/s", 1e6, 1e11, kDown};
  std::vector<Model<T>> models;
  models.push_back(
      {"compute/fitted_curve",
       "Time of a micro-step as a fixed part and the p-norm of a floor and a slope.",
       "Qiao et al., OSDI 2021; Williams, Waterman, Patterson, CACM 52 (2009)",
       "one workload on one device, from the smallest to a few times the largest fitted batch",
       {{"t_fixed", "s", 1e-5, 1, kUp}, {"t_floor", "s", 1e-5, 1, kUp}, {"c", "s", 1e-6, 1, kUp}},
       [](const std::vector<T>& x) {
         const FittedCurve<T> curve{Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                                    DurationPerSample<T>::FromSi(x[2])};
         return curve.Time(Samples(32.0)).si();
       }});
  models.push_back(
      {"network/transport_bandwidth",
       "What TCP delivers at 0.1 % loss: line rate, window or Mathis limit, whichever is least.",
       "Mathis, Semke, Mahdavi, Ott, CCR 1997; RFC 9438",
       "long transfers, loss below about 2 %: timeouts and slow start are left out",
       {{"B", "B/s", 1e6, 1e11, kUp}, {"R", "s", 1e-5, 1, kDown}},
       [](const std::vector<T>& x) {
         const Path<T> path{DataRate<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]), 0.001};
         return DeliveredBandwidth(path, 2).si();
       }});
  models.push_back({"collective/ring",
                    "All-reduce around a ring: every byte passes every hop almost twice.",
                    "Patarasuk & Yuan, JPDC 69 (2009)",
                    "equal full-duplex hops, messages of kilobytes up",
                    {alpha, bandwidth},
                    [](const std::vector<T>& x) {
                      return RingAllreduce(kEntryWorkers, EntryHop(x, 0)).Time(kEntryGradient).si();
                    }});
  models.push_back(
      {"collective/halving_doubling",
       "All-reduce by halving and doubling: few messages, as many bytes as the ring.",
       "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       "equal hops between any pair; other than powers of two pay two more passes",
       {alpha, bandwidth},
       [](const std::vector<T>& x) {
         return HalvingDoublingAllreduce(kEntryWorkers, EntryHop(x, 0)).Time(kEntryGradient).si();
       }});
  models.push_back({"collective/tree",
                    "All-reduce over a double binary tree, pipelined: few messages, two passes.",
                    "Sanders, Speck, Traff, Parallel Computing 35 (2009)",
                    "equal hops between any pair, messages large enough to pipeline",
                    {alpha, bandwidth},
                    [](const std::vector<T>& x) {
                      return TreeAllreduce(kEntryWorkers, EntryHop(x, 0)).Time(kEntryGradient).si();
                    }});
  models.push_back(
      {"collective/hierarchical",
       "Reduce-scatter within nodes, a ring between them, all-gather within.",
       "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), applied twice",
       "equal nodes whose devices share one link",
       {alpha, bandwidth, {"alpha_i", "s", 1e-6, 1e-3, kUp}, {"B_i", "B/s", 1e8, 1e12, kDown}},
       [](const std::vector<T>& x) {
         return HierarchicalAllreduce(kEntryNodes, kEntryDevices, EntryHop(x, 0), EntryHop(x, 2))
             .Time(kEntryGradient)
             .si();
       }});
  const std::vector<ModelInput> server_inputs = {
      alpha, bandwidth, {"B_s", "B/s", 1e6, 1e11, kDown}, {"c_x", "s", 1e-7, 1e-2, kUp}};
  models.push_back({"collective/parameter_server",
                    "Push and pull through n servers, each phase at the busier link.",
                    "Li et al., OSDI 2014; Chang et al., Network Evolution for DNNs",
                    "parameters spread evenly, servers on nodes of their own", server_inputs,
                    [](const std::vector<T>& x) {
                      return ServerSynchronisation(EntryServers(x)).Time(kEntryGradient).si();
                    }});
  std::vector<ModelInput> async_inputs = server_inputs;
  async_inputs.push_back({"t", "s", 1e-3, 10, kUp});
  models.push_back(
      {"collective/async_parameter_server",
       "Workers that meet only in the servers' queues: exact mean value analysis.",
       "Reiser & Lavenberg, JACM 27 (1980)",
       "exponential service in the mean; parameters spread evenly", async_inputs,
       [](const std::vector<T>& x) {
         return AsyncServerCycle(EntryServers(x), Duration<T>::FromSi(x[4]), kEntryGradient).si();
       }});
  models.push_back(
      {"overlap/buckets",
       "Buckets leave one after another while the backward pass still runs.",
       "Li et al., VLDB 2020",
       "one synchronisation at a time, in the order in which gradients become ready",
       {{"t_b", "s", 1e-3, 10, kUp},
        {"per call", "s", 1e-6, 1e-2, kUp},
        {"per byte", "s/B", 1e-12, 1e-6, kUp}},
       [](const std::vector<T>& x) {
         const SyncCost<T> cost{Duration<T>::FromSi(x[1]), DurationPerByte<T>::FromSi(x[2])};
         return LastSynchronisationEnd(
                    *EntryBuckets(), Duration<T>::FromSi(x[0]),
                    [&](const Bucket& bucket) { return cost.Time(bucket.bytes); })
             .si();
       }});
  models.push_back({"sync/straggler",
                    "A synchronous step waits for the slowest of its workers.",
                    "Blom 1958; Wichura, Applied Statistics 37 (1988)",
                    "spreads independent between workers",
                    {{"t", "s", 1e-3, 10, kUp}, {"sigma", "", 1e-4, 1, kUp}},
                    [](const std::vector<T>& x) {
                      return StragglerWait(Duration<T>::FromSi(x[0]), x[1], 2, kEntryWorkers).si();
                    }});
  models.push_back(
      StepEntry<T>("step/ring", "A whole step with a flat ring.", Strategy::kAllreduce));
  models.push_back(StepEntry<T>("step/hierarchical", "A whole step, reduced within nodes first.",
                                Strategy::kHierarchical));
  models.push_back(
      StepEntry<T>("step/ps-sync", "A whole step through synchronous servers.", Strategy::kPsSync));
  models.push_back(StepEntry<T>("step/ps-async", "A worker's cycle through asynchronous servers.",
                                Strategy::kPsAsync));
  return models;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_
