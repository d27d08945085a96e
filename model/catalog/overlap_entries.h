// Catalogue entries of model/overlap.
#ifndef STEPCAST_MODEL_CATALOG_OVERLAP_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_OVERLAP_ENTRIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/exchange/cost.h"
#include "model/exchange/sharded.h"
#include "model/overlap/buckets.h"
#include "model/overlap/input.h"
#include "model/overlap/overlap.h"

namespace stepcast::internal {

inline constexpr Files kBucketsFiles{"model/overlap/buckets.h", "docs/explanation/step-model.md",
                                     "tests/model/buckets_test.cc"};
inline constexpr Files kOverlapFiles{"model/overlap/overlap.h", "docs/explanation/step-model.md",
                                     "tests/model/overlap_test.cc"};

inline constexpr Files kInputFiles{"model/overlap/input.h", "docs/explanation/step-model.md",
                                   "tests/model/input_test.cc"};
inline constexpr Files kShardedFiles{"model/exchange/sharded.h", "docs/explanation/step-model.md",
                                     "tests/model/sharded_test.cc"};

// Four buckets of a message of `bytes`, the first a small one.
inline std::shared_ptr<const std::vector<Bucket>> EntryBuckets(DataSize<> bytes) {
  return std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{
      {bytes * 0.1, 0.1}, {bytes * 0.3, 0.4}, {bytes * 0.4, 0.8}, {bytes * 0.2, 1.0}});
}

template <class T>
void AddOverlapEntries(std::vector<Model<T>>* models) {
  const ModelInput backward{"t_b",
                            "s",
                            1e-3,
                            10,
                            Trend::kNeverFalls,
                            "backward time of the micro-step that synchronises"};
  models->push_back(
      {.id = "overlap/buckets",
       .sentence = "Buckets leave one after another while the backward pass still runs.",
       .formula = "max_k( r_k t_b + sum_{j>=k} ( per_call + per_byte m_j ) ), 4 buckets of 100 MB",
       .source = "Li et al., VLDB 2020",
       .validity = "one synchronisation at a time, in the order in which gradients become ready",
       .constants = "m = 100 MB",
       .inputs = {backward,
                  {"per_call", "s", 1e-6, 1e-2, Trend::kNeverFalls, "cost of each call"},
                  {"per_byte", "s/B", 1e-12, 1e-6, Trend::kNeverFalls, "cost of each byte"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const SyncCost<T> cost{Duration<T>::FromSi(x[1]), DurationPerByte<T>::FromSi(x[2])};
             return LastSynchronisationEnd(
                        *EntryBuckets(Megabytes(100.0)), Duration<T>::FromSi(x[0]),
                        [&](const Bucket& bucket) { return cost.Time(bucket.bytes); })
                 .si();
           },
       .known = {{"a slow network: all buckets, from the first that is ready",
                  {1e-3, 1e-6, 1e-6},
                  1e-4 + 4e-6 + 100},
                 {"a fast network: the last bucket alone", {10, 1e-6, 1e-12}, 10 + 1e-6 + 2e-5}},
       .home = {kBucketsFiles, "LastSynchronisationEnd", "2-buckets-and-overlap"}});
  const ModelInput call{"a", "s", 1e-6, 1e-2, Trend::kNeverFalls, "cost of half an all-reduce"};
  const ModelInput byte{"b", "s/B", 1e-12, 1e-6, Trend::kNeverFalls, "cost of a byte of it"};
  const auto half_of = [](const T& per_call, const T& per_byte) {
    const SyncCost<T> cost{Duration<T>::FromSi(per_call), DurationPerByte<T>::FromSi(per_byte)};
    return CallCost<T>{{cost, cost}, {}};
  };
  models->push_back(
      {.id = "overlap/shared_update",
       .sentence = "Gradients are reduced to their owners beside the backward pass, and updated "
                   "parameters gathered after it.",
       .formula = "max(t_b, max_k( r_k t_b + sum_{j>=k} (a + b m_j) )) + sum_k (a + b m_k), "
                  "4 buckets of 100 MB",
       .source = "Rajbhandari et al., SC 2020",
       .validity = "optimizer's state, or gradients too, divided among the workers",
       .constants = "m = 100 MB",
       .inputs = {backward, call, byte},
       .evaluate =
           [=](const std::vector<T>& x) {
             const CallCost<T> half = half_of(x[1], x[2]);
             const Duration<T> pass = Duration<T>::FromSi(x[0]);
             const auto buckets = EntryBuckets(Megabytes(100.0));
             const auto time_of = [&](const Bucket& bucket) { return half.Time(bucket.bytes); };
             Duration<T> gathers;
             for (const Bucket& bucket : *buckets) gathers += time_of(bucket);
             return EndOfSharedUpdate(pass, LastSynchronisationEnd(*buckets, pass, time_of),
                                      gathers)
                 .si();
           },
       .known = {{"a fast network: the pass, the last bucket, and all of them",
                  {10, 1e-6, 1e-12},
                  10 + 1e-6 + 2e-5 + 4e-6 + 1e-4},
                 {"a slow network: all reduced, from the first on, and all gathered",
                  {1e-3, 0, 1e-6},
                  1e-4 + 200}},
       .home = {kShardedFiles, "EndOfSharedUpdate", "13-models-that-are-shared-out"}});
  models->push_back(
      {.id = "overlap/gathered_units",
       .sentence = "Units of the network are gathered before each of their passes, and their "
                   "gradients reduced behind the backward pass.",
       .formula = "F + B of the header; 4 units of 100 MB",
       .source = "Zhao et al., VLDB 2023; Johnson, Naval Research Logistics Quarterly 1 (1954)",
       .validity =
           "parameters divided among the workers, the next unit gathered while one computes",
       .constants = "m = 100 MB",
       .inputs = {{"t_f", "s", 1e-3, 10, Trend::kNeverFalls, "forward time of a micro-step"},
                  {"t_b", "s", 1e-3, 10, Trend::kNeverFalls, "backward time of a micro-step"},
                  call,
                  byte},
       .evaluate =
           [=](const std::vector<T>& x) {
             const GatheredPasses<T> passes =
                 GatherUnits(UnitExchange<T>{half_of(x[2], x[3])}, *EntryBuckets(Megabytes(100.0)),
                             Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]));
             return (passes.forward + passes.backward).si();
           },
       .known = {{"a fast network: both passes, the first gathers and the last reduce-scatter",
                  {5, 10, 0, 1e-12},
                  15 + 2e-5 + 1e-5 + 2e-5},
                 {"a slow network: three passes of all bytes, and the first unit's forward pass",
                  {1, 1, 0, 1e-6},
                  300 + 0.1}},
       .home = {kShardedFiles, "GatherUnits", "13-models-that-are-shared-out"}});
  models->push_back(
      {.id = "overlap/hybrid_units",
       .sentence = "Units are gathered and reduced within nodes, and their gradients then reduced "
                   "between nodes, unit after unit behind all else.",
       .formula = "F + B of the header, whose pass ends with A; 4 units of 100 MB",
       .source = "Zhao et al., VLDB 2023",
       .validity = "parameters divided among the devices of each node; a link within nodes and "
                   "another between them",
       .constants = "m = 100 MB",
       .inputs = {{"t_f", "s", 1e-3, 10, Trend::kNeverFalls, "forward time of a micro-step"},
                  {"t_b", "s", 1e-3, 10, Trend::kNeverFalls, "backward time of a micro-step"},
                  {"a", "s", 1e-6, 1e-2, Trend::kNeverFalls,
                   "cost of half an all-reduce in a node"},
                  byte,
                  {"A", "s", 1e-6, 1e-2, Trend::kNeverFalls, "cost of one between nodes"},
                  {"B", "s/B", 1e-12, 1e-6, Trend::kNeverFalls, "cost of a byte of that"}},
       .evaluate =
           [=](const std::vector<T>& x) {
             const UnitExchange<T> exchange{half_of(x[2], x[3]), half_of(x[4], x[5]).between};
             const GatheredPasses<T> passes =
                 GatherUnits(exchange, *EntryBuckets(Megabytes(100.0)), Duration<T>::FromSi(x[0]),
                             Duration<T>::FromSi(x[1]));
             return (passes.forward + passes.backward).si();
           },
       .known = {{"fast networks: both passes, the first gathers and all of the last unit",
                  {5, 10, 0, 1e-12, 0, 1e-12},
                  15 + 2e-5 + 1e-5 + 4e-5},
                 {"slow links between nodes: all bytes, from the first unit on that is reduced",
                  {1, 1, 0, 1e-12, 0, 1e-6},
                  101.1 + 2e-5 + 2e-5}},
       .home = {kShardedFiles, "GatherUnits", "13-models-that-are-shared-out"}});
  models->push_back(
      {.id = "collective/hybrid",
       .sentence = "All of a unit whose parameters are shared out within nodes: two gathers and a "
                   "reduce-scatter there, and a ring between nodes for each share.",
       .formula = "3 (g-1) alpha_i + 3 (g-1)/g m / B_i + 2 (N-1) alpha + 2 (N-1)/N m / B; N = 3, "
                  "g = 4",
       .source = "Zhao et al., VLDB 2023; Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "equal nodes whose devices share one network card; one part after another, "
                   "without the rounds that hide",
       .inputs = {{"alpha", "s", 1e-6, 1e-2, Trend::kNeverFalls, "one-way cost of a message"},
                  {"B", "B/s", 1e6, 1e11, Trend::kNeverRises, "bandwidth of a link, each way"},
                  {"alpha_i", "s", 1e-6, 1e-3, Trend::kNeverFalls, "the same within a node"},
                  {"B_i", "B/s", 1e8, 1e12, Trend::kNeverRises, "bandwidth within a node"},
                  {"m", "B", 1e3, 1e11, Trend::kNeverFalls, "bytes of the unit"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const auto hop = [&](std::size_t at) {
               return Hop<T>{Duration<T>::FromSi(x[at]), DataRate<T>::FromSi(x[at + 1])};
             };
             const CallCost<T> unit = HybridCall(NodeShape{12, 3, 4, 1}, hop(0), hop(2));
             const SyncCost<T> cost{unit.Chain().per_call, unit.Steady().per_byte};
             return cost.Time(DataSize<T>::FromSi(x[4])).si();
           },
       .known = {{"0.9 + 1.35 ms within, 4 + 8 between", {1e-3, 1e9, 1e-4, 1e10, 6e6}, 0.01425},
                 {"no latency: 135 ms within, 800 between", {0, 1e9, 0, 1e10, 6e8}, 0.935}},
       .home = {kShardedFiles, "HybridCall", "13-models-that-are-shared-out"}});
  models->push_back(
      {.id = "overlap/input",
       .sentence = "A step takes no less time than its samples to arrive, which are loaded ahead.",
       .formula = "max( R, g b a / r )",
       .source = "Johnson, Naval Research Logistics Quarterly 1 (1954); Mohan et al., VLDB 2021",
       .validity = "the mean of many steps, samples loaded while devices compute and exchange",
       .inputs = {{"R", "s", 1e-3, 10, Trend::kNeverFalls, "the step if all samples were there"},
                  {"n", "samples", 1, 1e5, Trend::kNeverFalls,
                   "g b a: samples of a step that the fullest node takes"},
                  {"r", "samples/s", 1, 1e7, Trend::kNeverRises, "samples that a node gets"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const Duration<T> rest = Duration<T>::FromSi(x[0]);
             const Duration<T> arrival =
                 ArrivalTime(SampleCount<T>::FromSi(x[1]), SampleRate<T>::FromSi(x[2]));
             return (rest + InputWait(rest, arrival)).si();
           },
       .known = {{"samples are there in time", {2, 100, 1000}, 2},
                 {"half of the step waits for them", {2, 400, 100}, 4}},
       .home = {kInputFiles, "InputWait", "15-samples-that-arrive-too-slowly"}});
  models->push_back(
      {.id = "overlap/p_norm",
       .sentence = "Backward pass and synchronisation joined without knowing their order.",
       .formula = "(t_b^3 + S^3)^(1/3)",
       .source = "Qiao et al., OSDI 2021",
       .validity = "workloads of which nothing but totals is known; the exponent is a convention",
       .inputs = {backward, {"S", "s", 1e-3, 10, Trend::kNeverFalls, "whole synchronisation"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const Duration<T> t_b = Duration<T>::FromSi(x[0]);
             return (t_b + PNormOverlap(t_b, Duration<T>::FromSi(x[1])).exposed).si();
           },
       .known = {{"both alike", {1, 1}, 1.259921049894873},
                 {"a synchronisation to speak of: it alone", {1e-9, 10}, 10}},
       .home = {kOverlapFiles, "PNormOverlap", "2-buckets-and-overlap"}});
  models->push_back(
      {.id = "overlap/contention",
       .sentence = "What hiding a synchronisation costs the backward pass that hides it.",
       .formula = "kappa min( t_b, max( 0, S - max( 0, E - t_b ) ) )",
       .source = "model/overlap/overlap.h",
       .validity = "exchange kernels that run beside those of the network, kappa at most 1",
       .inputs = {{"kappa", "", 1e-4, 1, Trend::kNeverFalls, "overlap contention"},
                  backward,
                  {"S", "s", 1e-3, 20, Trend::kNeverFalls, "whole synchronisation"},
                  {"E", "s", 1e-3, 20, Trend::kNeverRises, "its end, from the start of backward"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const OverlapSplit<T> split = BucketOverlap(
                 Duration<T>::FromSi(x[1]), Duration<T>::FromSi(x[2]), Duration<T>::FromSi(x[3]));
             return OverlapContention(split, Duration<T>::FromSi(x[1]), x[0]).si();
           },
       .known = {{"3 s of 10 are hidden", {0.1, 4, 10, 11}, 0.3},
                 {"pulls behind pushes: no more than the pass", {0.1, 1, 20, 11}, 0.1}},
       .home = {kOverlapFiles, "OverlapContention", "2-buckets-and-overlap"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_OVERLAP_ENTRIES_H_
