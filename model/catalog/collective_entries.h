// Entries of the catalogue: collectives.
#ifndef STEPCAST_MODEL_CATALOG_COLLECTIVE_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_COLLECTIVE_ENTRIES_H_

#include <cmath>
#include <cstddef>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/broadcast.h"
#include "model/exchange/byteps.h"
#include "model/exchange/choice.h"
#include "model/exchange/compression.h"
#include "model/exchange/cost.h"
#include "model/exchange/segments.h"

namespace stepcast::internal {

inline constexpr Files kAllreduceFiles{"model/exchange/allreduce.h",
                                       "docs/explanation/collectives.md",
                                       "tests/model/allreduce_test.cc"};
inline constexpr Files kCostFiles{"model/exchange/cost.h", "docs/explanation/collectives.md",
                                  "tests/model/allreduce_test.cc"};
inline constexpr Files kBroadcastFiles{"model/exchange/broadcast.h",
                                       "docs/explanation/collectives.md",
                                       "tests/model/allreduce_test.cc"};
inline constexpr Files kChoiceFiles{"model/exchange/choice.h", "docs/explanation/collectives.md",
                                    "tests/model/allreduce_test.cc"};
inline constexpr Files kBytePsFiles{"model/exchange/byteps.h", "docs/explanation/collectives.md",
                                    "tests/model/allreduce_test.cc"};
inline constexpr Files kCompressionFiles{"model/exchange/compression.h",
                                         "docs/explanation/step-model.md",
                                         "tests/model/compression_test.cc"};
inline constexpr Files kSegmentsFiles{"model/exchange/segments.h",
                                      "docs/explanation/collectives.md",
                                      "tests/model/allreduce_test.cc"};

template <class T>
void AddCollectiveEntries(std::vector<Model<T>>* models) {
  // Counts have no derivative, so they are constants: 12 workers, as 3 nodes of 4 devices where
  // nodes matter, and 4 helpers.
  constexpr int kW = 12;
  constexpr int kN = 3;
  constexpr int kG = 4;
  constexpr int kHelpers = 4;
  constexpr Trend kUp = Trend::kNeverFalls;
  constexpr Trend kDown = Trend::kNeverRises;
  using Inputs = std::vector<T>;
  const ModelInput alpha{"alpha", "s", 1e-6, 1e-2, kUp, "one-way cost of a message"};
  const ModelInput rate{"B", "B/s", 1e6, 1e11, kDown, "bandwidth of a link, each way"};
  const ModelInput device_alpha{"alpha_i", "s", 1e-6, 1e-3, kUp, "the same within a node"};
  const ModelInput device_rate{"B_i", "B/s", 1e8, 1e12, kDown, "bandwidth within a node"};
  const ModelInput bytes{"m", "B", 1e3, 1e11, kUp, "bytes of the message"};
  const std::vector<ModelInput> flat = {alpha, rate, bytes};
  const std::vector<ModelInput> nodes = {alpha, rate, device_alpha, device_rate, bytes};
  const auto hop = [](const Inputs& x, std::size_t at) {
    return Hop<T>{Duration<T>::FromSi(x[at]), DataRate<T>::FromSi(x[at + 1])};
  };
  const auto rate_of = [](const T& x) { return DataRate<T>::FromSi(x); };
  const auto size = [](const T& x) { return DataSize<T>::FromSi(x); };
  const auto time = [size](const SyncCost<T>& cost, const T& m) { return cost.Time(size(m)).si(); };

  // ---- All-reduce over equal hops.

  models->push_back(
      {.id = "collective/ring",
       .sentence = "All-reduce around a ring: every hop carries all but a w-th of "
                   "the message twice, in many rounds.",
       .formula = "2 (w-1) alpha + 2 (w-1)/w m / B; w = 12",
       .source = "Patarasuk & Yuan, JPDC 69 (2009)",
       .validity = "equal full-duplex hops, messages of kilobytes up, sums hidden "
                   "behind transfers",
       .inputs = flat,
       .evaluate = [=](const Inputs& x) { return time(RingAllreduce(kW, hop(x, 0)), x[2]); },
       .known = {{"22 ms of latency and 22 ms of bytes", {1e-3, 1e9, 12e6}, 0.044},
                 {"no latency: 11/6 passes", {0, 1e9, 6e8}, 1.1}},
       .home = {kAllreduceFiles, "RingAllreduce", "3-all-reduce-over-equal-hops"}});
  models->push_back(
      {.id = "collective/pipelined_ring",
       .sentence = "The ring whose pieces follow each other from round to round: latency hides "
                   "behind bytes, or bytes behind latency.",
       .formula = "max(min(L, 4 alpha) + c m, L + c m/2), L = 2 (w-1) alpha, c = 2 (w-1)/(w B); "
                  "w = 12",
       .source = "Patarasuk & Yuan, JPDC 69 (2009) (the rounds); the pipeline is derived in "
                 "docs/explanation",
       .validity = "as the ring, cut into at least two pieces; rounds without a barrier",
       .inputs = flat,
       .evaluate =
           [=](const Inputs& x) {
             const Hop<T> link = hop(x, 0);
             return PipelineRing(RingAllreduce(kW, link), link.alpha).Time(size(x[2])).si();
           },
       .known = {{"bytes set the pace: 4 ms and 44 ms", {1e-3, 1e9, 24e6}, 0.048},
                 {"a single piece: 22 ms and half of 22 ms", {1e-3, 1e9, 12e6}, 0.033},
                 {"no latency: 11/6 passes", {0, 1e9, 6e8}, 1.1}},
       .home = {kAllreduceFiles, "PipelineRing", "3-all-reduce-over-equal-hops"}});
  models->push_back(
      {.id = "collective/ring_with_reduction",
       .sentence = "The ring where adding up does not hide behind the transfer.",
       .formula = "2 (w-1) alpha + 2 (w-1)/w m / B + (w-1)/w m c_reduce; w = 12",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "as the ring; one worker adds while nothing of its message travels",
       .inputs = {alpha, rate, bytes, {"c_reduce", "s/B", 1e-13, 1e-8, kUp, "time to add a byte"}},
       .evaluate =
           [=](const Inputs& x) {
             return time(
                 WithReduction(RingAllreduce(kW, hop(x, 0)), kW, DurationPerByte<T>::FromSi(x[3])),
                 x[2]);
           },
       .known = {{"no latency: 22 ms of bytes, 1.1 ms of sums", {0, 1e9, 12e6, 1e-10}, 0.0231},
                 {"free sums are the plain ring", {1e-3, 1e9, 12e6, 0}, 0.044}},
       .home = {kCostFiles, "WithReduction", "3-all-reduce-over-equal-hops"}});
  models->push_back(
      {.id = "collective/halving_doubling",
       .sentence = "All-reduce by halving and doubling: few messages, the ring's bytes for powers "
                   "of two and two more passes otherwise.",
       .formula = "2 ceil(log2 w) alpha + (2 (w'-1)/w' + 2) m / B; w = 12, w' = 8",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "equal hops between any pair; the two more passes where w is no power of two",
       .inputs = flat,
       .evaluate =
           [=](const Inputs& x) { return time(HalvingDoublingAllreduce(kW, hop(x, 0)), x[2]); },
       .known = {{"8 messages, 30 ms of bytes", {1e-3, 1e9, 8e6}, 0.038},
                 {"no latency: 3.75 passes", {0, 1e9, 4e8}, 1.5}},
       .home = {kAllreduceFiles, "HalvingDoublingAllreduce", "3-all-reduce-over-equal-hops"}});
  models->push_back(
      {.id = "collective/tree",
       .sentence = "All-reduce over a double binary tree, pipelined: few messages, two passes.",
       .formula = "2 ceil(log2 w) alpha + min(2, w/2) m / B; w = 12",
       .source = "Sanders, Speck, Traff, Parallel Computing 35 (2009)",
       .validity = "equal hops between any pair, messages large enough to pipeline",
       .inputs = flat,
       .evaluate = [=](const Inputs& x) { return time(TreeAllreduce(kW, hop(x, 0)), x[2]); },
       .known = {{"8 messages, 2 ms of bytes", {1e-3, 1e9, 1e6}, 0.01},
                 {"no latency: 2 passes", {0, 1e9, 5e8}, 1.0}},
       .home = {kAllreduceFiles, "TreeAllreduce", "3-all-reduce-over-equal-hops"}});
  models->push_back(
      {.id = "collective/binomial",
       .sentence =
           "All-reduce as a reduction to one worker and a broadcast from it, whole messages "
           "up and down a binomial tree.",
       .formula = "2 ceil(log2 w) (alpha + m / B); w = 12",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "equal hops between any pair; no pipelining, so for short messages only",
       .inputs = flat,
       .evaluate = [=](const Inputs& x) { return time(BinomialAllreduce(kW, hop(x, 0)), x[2]); },
       .known = {{"8 messages of 1 ms after 1 ms", {1e-3, 1e9, 1e6}, 0.016},
                 {"no latency: 8 passes", {0, 1e9, 1.25e8}, 1.0}},
       .home = {kBroadcastFiles, "BinomialAllreduce", "3-all-reduce-over-equal-hops"}});

  // ---- All-reduce over nodes of several devices.

  const NodeShape shape{kW, kN, kG, 1};
  models->push_back(
      {.id = "collective/flat_ring",
       .sentence = "One ring through all devices of all nodes: the slowest hop paces every byte, "
                   "latencies add up along the longest walk of a piece.",
       .formula = "h alpha + (2 (w-1) - h) alpha_i + 2 (w-1)/w m max(1/B, 1/B_i); N = 3, g = 4, "
                  "w = 12, h = 6",
       .source = "Patarasuk & Yuan, JPDC 69 (2009); the walk is derived in docs/explanation",
       .validity = "equal nodes, devices of a node next to each other in the ring; an upper bound "
                   "where latency and bytes matter alike",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) {
             return time(FlatRingAllreduce(shape, hop(x, 0), hop(x, 2)), x[4]);
           },
       .known = {{"6 hops between, 16 within, 22 ms", {1e-3, 1e9, 1e-4, 1e10, 12e6}, 0.0296},
                 {"slower within: 11/6 passes there", {0, 1e9, 0, 5e8, 6e8}, 2.2}},
       .home = {kAllreduceFiles, "FlatRingAllreduce", "4-over-nodes-of-several-devices"}});
  models->push_back(
      {.id = "collective/hierarchical",
       .sentence = "Reduce-scatter within nodes, a ring between them for each shard, all-gather "
                   "within.",
       .formula = "2 (g-1) alpha_i + 2 (g-1)/g m / B_i + 2 (N-1) alpha + 2 (N-1)/N m / B; N = 3, "
                  "g = 4",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), applied twice",
       .validity = "equal nodes whose devices share one network card; the levels one after another",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) {
             return time(HierarchicalAllreduce(kN, kG, hop(x, 0), hop(x, 2)), x[4]);
           },
       .known = {{"0.6 + 0.9 ms within, 4 + 8 between", {1e-3, 1e9, 1e-4, 1e10, 6e6}, 0.0135},
                 {"no latency: 90 ms within, 800 between", {0, 1e9, 0, 1e10, 6e8}, 0.89}},
       .home = {kAllreduceFiles, "HierarchicalAllreduce", "4-over-nodes-of-several-devices"}});
  models->push_back(
      {.id = "collective/hierarchical_two_cards",
       .sentence = "The hierarchical all-reduce with two network cards a node, each with half of "
                   "what leaves it.",
       .formula = "2 (g-1) alpha_i + 2 (g-1)/g m / B_i + 2 (N-1) alpha + 2 (N-1)/N m / (2 B); "
                  "N = 3, g = 4",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), applied twice",
       .validity = "as hierarchical; shards spread evenly over the cards",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) {
             return time(HierarchicalAllreduce(kN, kG, hop(x, 0), hop(x, 2), 2), x[4]);
           },
       .known = {{"0.6 + 0.9 ms within, 4 + 4 between", {1e-3, 1e9, 1e-4, 1e10, 6e6}, 0.0095},
                 {"no latency: 90 ms within, 400 between", {0, 1e9, 0, 1e10, 6e8}, 0.49}},
       .home = {kAllreduceFiles, "HierarchicalAllreduce", "4-over-nodes-of-several-devices"}});
  models->push_back(
      {.id = "collective/halving_doubling_over_nodes",
       .sentence = "Reduce-scatter within nodes, halving and doubling between them, all-gather "
                   "within.",
       .formula = "2 (g-1) alpha_i + 2 (g-1)/g m / B_i + 2 ceil(log2 N) alpha + (2 (N'-1)/N' + 2) "
                  "m / B; N = 3, N' = 2, g = 4",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), applied twice",
       .validity = "equal nodes whose devices share one network card",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) {
             return time(HalvingDoublingOverNodes(kN, kG, hop(x, 0), hop(x, 2)), x[4]);
           },
       .known = {{"0.6 + 0.9 ms within, 4 + 18 between", {1e-3, 1e9, 1e-4, 1e10, 6e6}, 0.0235},
                 {"no latency: 90 ms within, 1.8 s between", {0, 1e9, 0, 1e10, 6e8}, 1.89}},
       .home = {kAllreduceFiles, "HalvingDoublingOverNodes", "4-over-nodes-of-several-devices"}});
  models->push_back(
      {.id = "collective/tree_over_nodes",
       .sentence = "Chains within nodes and a double binary tree between them, pipelined through.",
       .formula = "2 (g-1) alpha_i + 2 ceil(log2 N) alpha + m max(min(2, N/2) / B, min(2, g-1) / "
                  "B_i); N = 3, g = 4",
       .source = "Sanders, Speck, Traff, Parallel Computing 35 (2009); Jeaugey, NCCL 2.4 (2019)",
       .validity = "equal nodes, messages large enough to pipeline",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) { return time(TreeOverNodes(kN, kG, hop(x, 0), hop(x, 2)), x[4]); },
       .known = {{"0.6 + 4 ms of latency, 9 of bytes", {1e-3, 1e9, 1e-4, 1e10, 6e6}, 0.0136},
                 {"slower within: 2 passes there", {0, 1e9, 0, 1e9, 1e9}, 2.0}},
       .home = {kAllreduceFiles, "TreeOverNodes", "4-over-nodes-of-several-devices"}});
  models->push_back(
      {.id = "collective/auto",
       .sentence = "The fastest of flat ring, tree, halving-doubling and hierarchical all-reduce "
                   "for the message at hand.",
       .formula = "min over algorithms of their times, rings pipelined; N = 3, g = 4",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "as each algorithm; a library may choose otherwise",
       .inputs = nodes,
       .evaluate =
           [=](const Inputs& x) {
             const auto choice = ChooseAllreduce(shape, hop(x, 0), hop(x, 2), size(x[4]));
             return choice.best.cost.Time(size(x[4])).si();
           },
       .known = {{"fast within: hierarchical", {1e-3, 1e9, 1e-4, 1e10, 6e8}, 0.8944},
                 {"slow within: the flat ring", {1e-3, 1e9, 1e-4, 1e9, 6e8}, 1.104}},
       .home = {kChoiceFiles, "ChooseAllreduce", "7-which-is-best"}});

  // ---- Helpers, and exchanges with one worker.

  models->push_back(
      {.id = "collective/byteps",
       .sentence = "All-reduce that shares the sums between machines with devices and helpers "
                   "without, so that all cards are busy equally long.",
       .formula = "2 alpha + 2 N (N-1) m / ((N^2 + k' N - 2 k') B), k' = min(N, k B_h/B); N = 12, "
                  "k = 4",
       .source = "Jiang et al., OSDI 2020; other rates of helpers derived in docs/explanation",
       .validity = "shares cut freely, push and pull pipelined, sums hidden behind transfers",
       .inputs = {alpha, rate, {"B_h", "B/s", 1e6, 1e11, kDown, "bandwidth of a helper"}, bytes},
       .evaluate =
           [=](const Inputs& x) {
             return time(BytePsAllreduce(kW, kHelpers, hop(x, 0), rate_of(x[2])), x[3]);
           },
       .known = {{"helpers worth 12: one pass", {1e-3, 1e9, 3e9, 1e9}, 1.002},
                 {"helpers worth 3.2: 1.5 passes", {1e-3, 1e9, 8e8, 2e6}, 0.005}},
       .home = {kBytePsFiles, "BytePsAllreduce", "5-with-helper-machines"}});
  models->push_back(
      {.id = "collective/broadcast_binomial",
       .sentence = "Broadcast along a binomial tree, one child after another.",
       .formula = "ceil(log2 w) (alpha + m / B); w = 12",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "whole messages, equal hops between any pair; a reduction costs the same",
       .inputs = flat,
       .evaluate = [=](const Inputs& x) { return time(BinomialBroadcast(kW, hop(x, 0)), x[2]); },
       .known = {{"4 rounds of 2 ms", {1e-3, 1e9, 1e6}, 0.008},
                 {"no latency: 4 passes", {0, 1e9, 2.5e8}, 1.0}},
       .home = {kBroadcastFiles, "BinomialBroadcast", "6-to-and-from-one-worker"}});
  models->push_back(
      {.id = "collective/broadcast_at_once",
       .sentence = "Broadcast along a binomial tree whose workers start all their sends together.",
       .formula = "3 alpha + m (max(4/B, 1/B_f) + max(3/B, 1/B_f) + max(2/B, 1/B_f)); w = 12",
       .source = "Gloo, gloo/broadcast.cc; the sum is derived in docs/explanation",
       .validity = "whole messages, a link shared evenly by the sends that it carries",
       .inputs =
           {alpha, rate, {"B_f", "B/s", 1e6, 1e11, kDown, "most that one flow carries"}, bytes},
       .evaluate =
           [=](const Inputs& x) {
             return time(ConcurrentBinomialBroadcast(kW, hop(x, 0), rate_of(x[2])), x[3]);
           },
       .known = {{"3 generations, 9 passes", {1e-3, 1e9, 1e9, 1e6}, 0.012},
                 {"slow flows: 3 passes of a flow", {0, 1e9, 1e8, 1e8}, 3.0}},
       .home = {kBroadcastFiles, "ConcurrentBinomialBroadcast", "6-to-and-from-one-worker"}});
  models->push_back(
      {.id = "collective/broadcast_chain",
       .sentence = "Broadcast along a chain in pieces, pipelined.",
       .formula = "(w-1) alpha + m / B; w = 12",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "pieces small against the message; a reduction costs the same",
       .inputs = flat,
       .evaluate = [=](const Inputs& x) { return time(ChainBroadcast(kW, hop(x, 0)), x[2]); },
       .known = {{"11 hops and one pass", {1e-3, 1e9, 1e6}, 0.012},
                 {"no latency: one pass", {0, 1e9, 1e9}, 1.0}},
       .home = {kBroadcastFiles, "ChainBroadcast", "6-to-and-from-one-worker"}});
  models->push_back(
      {.id = "collective/reduce_gather",
       .sentence = "Reduction to one worker by a reduce-scatter around a ring and a gathering of "
                   "the finished parts.",
       .formula = "w alpha + (w-1)/w m (1/B + 1/B_g); w = 12",
       .source = "Gloo, gloo/reduce.cc",
       .validity = "the parts are sent after the ring has ended",
       .inputs = {alpha,
                  rate,
                  {"B_g", "B/s", 1e6, 1e11, kDown, "rate at which the root receives"},
                  bytes},
       .evaluate =
           [=](const Inputs& x) {
             return time(GatheringReduce(kW, hop(x, 0), rate_of(x[2])), x[3]);
           },
       .known = {{"12 ms of latency, 22 ms of bytes", {1e-3, 1e9, 1e9, 12e6}, 0.034},
                 {"slow root: 110 + 220 ms", {0, 1e9, 5e8, 12e7}, 0.33}},
       .home = {kBroadcastFiles, "GatheringReduce", "6-to-and-from-one-worker"}});

  // ---- A hop whose receiver asks for every segment, and the efficiency of a call.

  const ModelInput line{"B", "B/s", 1e6, 1e11, kUp, "what the link delivers to a long transfer"};
  const ModelInput round{"R", "s", 1e-6, 1, kDown, "round trip with the hosts' answer"};
  const ModelInput segment{"s", "B", 1e4, 1e8, kUp, "bytes of a segment"};
  const double joined = std::pow(1 + std::pow(0.5, 8), 0.125);
  const auto segmented = [=](int workers, const Inputs& x) {
    return SegmentedBandwidth(workers, rate_of(x[0]), Duration<T>::FromSi(x[1]), size(x[2])).si();
  };
  models->push_back(
      {.id = "collective/segments",
       .sentence = "The rate of a hop in a ring of three or more whose segments go on request, two "
                   "at a time.",
       .formula = "1 / || 1/B, (1/B + R/s) / 2 ||_8",
       .source = "Gloo, gloo/allreduce.cc; the power from the project's own measurements",
       .validity = "messages of at least two segments for each worker",
       .output = "B/s",
       .inputs = {line, round, segment},
       .evaluate = [=](const Inputs& x) { return segmented(kW, x); },
       .known = {{"far: two segments in 40 ms", {1e8, 0.03, 1e6}, 5e7 / joined},
                 {"near: the line", {1e8, 0, 1e6}, 1e8 / joined}},
       .home = {kSegmentsFiles, "SegmentedBandwidth", "2-a-hop-whose-receiver-asks-first"}});
  models->push_back(
      {.id = "collective/segments_of_two",
       .sentence = "The rate between two workers whose segments go on request: both wait together.",
       .formula = "1 / (1/B + R/(2 s))",
       .source = "Gloo, gloo/allreduce.cc; confirmed by the project's own measurements",
       .validity = "messages of at least four segments",
       .output = "B/s",
       .inputs = {line, round, segment},
       .evaluate = [=](const Inputs& x) { return segmented(2, x); },
       .known = {{"10 ms of bytes, 10 ms of waiting", {1e8, 0.02, 1e6}, 5e7},
                 {"near: the line", {1e8, 0, 1e6}, 1e8}},
       .home = {kSegmentsFiles, "SegmentedBandwidth", "2-a-hop-whose-receiver-asks-first"}});
  models->push_back(
      {.id = "collective/gather",
       .sentence = "All-gather of what each worker has kept of its gradients: every hop carries "
                   "the parts of all others.",
       .formula = "(w-1) alpha + (w-1) m / B, without the rounds that hide; w = 12",
       .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005)",
       .validity = "equal parts of all workers, equal full-duplex hops",
       .inputs = flat,
       .evaluate =
           [=](const Inputs& x) {
             const SyncCost<T> ring = RingAllreduce(kW, hop(x, 0));
             return time(GatherCall(CallCost<T>{{ring, ring}, {}}, kW).Steady(), x[2]);
           },
       .known = {{"11 ms of latency and 11 ms of bytes", {1e-3, 1e9, 1e6}, 0.022},
                 {"no latency: 11 parts", {0, 1e9, 1e8}, 1.1}},
       .home = {kCompressionFiles, "GatherCall", "16-compressed-gradients"}});
  models->push_back(
      {.id = "collective/compression_pays",
       .sentence = "The rate of a hop below which gradients of 16 bits save more than their coding "
                   "takes.",
       .formula = "2 (w-1)/w (m - m/2) / C; w = 12",
       .source = "Agarwal et al., MLSys 2022",
       .validity = "one level of rings whose bytes set the pace, nothing that hides",
       .output = "B/s",
       .inputs = {bytes, {"C", "s", 1e-6, 1e2, kDown, "encoding and decoding of all gradients"}},
       .evaluate =
           [=](const Inputs& x) {
             const CompressedExchange<T> whole{size(x[0]), T(2 * (kW - 1.0) / kW), {}};
             const CompressedExchange<T> half{size(x[0] * 0.5), whole.passes, {}};
             return PaysBelow(whole, half, Duration<T>::FromSi(x[1]))->si();
           },
       .known = {{"11/12 of 120 MB in 11 ms", {120e6, 0.011}, 1e10},
                 {"in a second: the bytes that are saved", {12e9, 1}, 11e9}},
       .home = {kCompressionFiles, "PaysBelow", "16-compressed-gradients"}});
  const std::vector<ModelInput> affine = {{"a", "s", 1e-6, 1, kDown, "cost of a call"},
                                          {"b", "s/B", 1e-12, 1e-6, kUp, "cost of a byte"},
                                          {"m", "B", 1e3, 1e11, kUp, "bytes of the message"}};
  const auto cost = [](const Inputs& x) {
    return SyncCost<T>{Duration<T>::FromSi(x[0]), DurationPerByte<T>::FromSi(x[1])};
  };
  models->push_back(
      {.id = "collective/efficiency",
       .sentence =
           "Share of its largest rate that a call reaches, by the message that reaches half "
           "of it.",
       .formula = "m / (m + a/b)",
       .source = "Hockney, Parallel Computing 20 (1994)",
       .validity = "wherever a call costs a + b m",
       .output = "",
       .inputs = affine,
       .evaluate = [=](const Inputs& x) { return Efficiency(cost(x), size(x[2])); },
       .known = {{"the half-rate message", {1e-3, 1e-9, 1e6}, 0.5},
                 {"nine of them", {1e-3, 1e-9, 9e6}, 0.9}},
       .home = {kCostFiles, "Efficiency", "1-two-numbers-and-their-other-names"}});
  models->push_back(
      {.id = "collective/algbw",
       .sentence = "Bytes of the message over the time of the call.",
       .formula = "m / (a + b m)",
       .source = "nccl-tests, doc/PERFORMANCE.md",
       .validity = "wherever a call costs a + b m",
       .output = "B/s",
       .inputs = {affine[0], {"b", "s/B", 1e-12, 1e-6, kDown, "cost of a byte"}, affine[2]},
       .evaluate = [=](const Inputs& x) { return AlgorithmBandwidth(cost(x), size(x[2])).si(); },
       .known = {{"half of 1 GB/s", {1e-3, 1e-9, 1e6}, 5e8},
                 {"free calls: 1 GB/s", {0, 1e-9, 1e6}, 1e9}},
       .home = {kCostFiles, "AlgorithmBandwidth", "1-two-numbers-and-their-other-names"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_COLLECTIVE_ENTRIES_H_
