// The box that fitted runs span grows by each of them, and by other boxes.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/machine.h"
#include "data/record/plan.h"

namespace stepcast {
namespace {

constexpr const char* kScope = "workload resnet50 on t4";

Plan RingOf(int nodes, int local_batch) {
  Plan plan;
  plan.strategy = Strategy::kRing;
  plan.placement = Placement(static_cast<std::size_t>(nodes), 1);
  plan.local_batch = local_batch;
  return plan;
}

CalibratedRange RangeOf(int nodes, int local_batch) {
  CalibratedRange range;
  range.Include(Cluster(), RingOf(nodes, local_batch), kScope);
  return range;
}

TEST(CalibratedRange, GrowsByEachRun) {
  CalibratedRange range = RangeOf(2, 32);
  range.Include(Cluster(), RingOf(8, 16), kScope);
  range.Include(Cluster(), RingOf(4, 64), kScope);
  EXPECT_EQ(range.max_workers, 8);
  EXPECT_EQ(range.max_nodes, 8);
  EXPECT_EQ(range.max_devices_per_node, 1);
  EXPECT_EQ(range.local_batch.at(kScope).min, 16);
  EXPECT_EQ(range.local_batch.at(kScope).max, 64);
  EXPECT_EQ(range.local_batch.at(kScope).max_workers, 8);
}

// Whichever of the two is the larger, and of a workload that only one knows.
TEST(CalibratedRange, HasTheSamplesOfSlowNodesToo) {
  Plan plan;
  plan.placement = {1, 1};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 48;
  plan.slow_nodes = 1;
  plan.slow_speed = 0.5;
  plan.slow_local_batch = 20;
  CalibratedRange range;
  range.Include({}, plan, "mine");
  EXPECT_EQ(range.BatchesOf("mine")->min, 20);
  EXPECT_EQ(range.BatchesOf("mine")->max, 48);
  plan.slow_local_batch = 70;
  range.Include({}, plan, "mine");
  EXPECT_EQ(range.BatchesOf("mine")->min, 20);
  EXPECT_EQ(range.BatchesOf("mine")->max, 70);
}

Plan Sharing(Shard shard, int workers, int local_batch, int steps = 1) {
  Plan plan = RingOf(1, local_batch);
  plan.placement = {workers};
  plan.shard = shard;
  plan.accumulation_steps = steps;
  return plan;
}

// Of steps that have run those are kept of which no other has as few sharers and as many samples,
// with gradients as wide.
TEST(CalibratedRange, KnowsHowModelsWereSharedOut) {
  using Ran = std::vector<CalibratedRange::Ran>;
  CalibratedRange range;
  const auto include = [&](const Plan& plan) { range.Include({}, plan, kScope); };
  const auto ran = [&] { return range.BatchesOf(kScope)->WhatRan(); };
  include(Sharing(Shard::kOptimizer, 4, 2));
  include(Sharing(Shard::kOptimizer, 8, 2));
  include(Sharing(Shard::kOptimizer, 8, 1));
  EXPECT_EQ(ran(), (Ran{{Shard::kOptimizer, 4, 2, 4}}));
  include(Sharing(Shard::kOptimizer, 8, 3));
  EXPECT_EQ(ran(), (Ran{{Shard::kOptimizer, 4, 2, 4}, {Shard::kOptimizer, 8, 3, 4}}));
  EXPECT_TRUE(range.BatchesOf(kScope)->tells_more_than_batches());
  include(Sharing(Shard::kOptimizer, 2, 4));
  EXPECT_EQ(ran(), (Ran{{Shard::kOptimizer, 2, 4, 4}}));
  // Gradients that wait for the last micro-step are whole.
  include(Sharing(Shard::kGradients, 2, 5, 3));
  EXPECT_EQ(ran(), (Ran{{Shard::kOptimizer, 2, 5, 4}}));
  include(Sharing(Shard::kGradients, 2, 6));
  EXPECT_EQ(ran(), (Ran{{Shard::kOptimizer, 2, 5, 4}, {Shard::kGradients, 2, 6, 4}}));
  // Among the devices of each node.
  Plan hybrid = Sharing(Shard::kHybrid, 4, 7);
  hybrid.placement = {4, 4};
  include(hybrid);
  EXPECT_EQ(ran().back(), (CalibratedRange::Ran{Shard::kHybrid, 4, 7, 4}));
  // One worker has the whole, whatever is said.
  include(Sharing(Shard::kParameters, 1, 3));
  EXPECT_EQ(ran().back(), (CalibratedRange::Ran{Shard::kNone, 1, 3}));
  EXPECT_EQ(range.BatchesOf(kScope)->max, 7);
}

// Narrow gradients, compressed ones and units of another size are other needs.
TEST(CalibratedRange, KnowsHowGradientsWereKept) {
  using Ran = std::vector<CalibratedRange::Ran>;
  CalibratedRange range;
  const auto include = [&](const Plan& plan) { range.Include({}, plan, kScope); };
  const auto ran = [&] { return range.BatchesOf(kScope)->WhatRan(); };
  Plan narrow = Sharing(Shard::kGradients, 4, 8);
  narrow.bytes_per_parameter = 2;
  narrow.bucket = Mebibytes(100.0);
  const CalibratedRange::Ran kNarrow{Shard::kGradients, 4, 8, 2, {}, Mebibytes(100.0)};
  include(narrow);
  EXPECT_EQ(ran(), (Ran{kNarrow}));
  include(Sharing(Shard::kGradients, 4, 8));
  EXPECT_EQ(ran(), (Ran{kNarrow, {Shard::kGradients, 4, 8, 4}}));
  narrow.bytes_per_parameter = 4;
  include(narrow);
  EXPECT_EQ(ran().size(), 2U) << "what is wider tells more";
  EXPECT_EQ(ran().back().bytes_per_parameter, 4);
  // Buckets are copies of all gradients, however they are cut.
  Plan compressed = RingOf(4, 8);
  compressed.bucket = Mebibytes(100.0);
  compressed.compress = {Compressor::kInt8};
  include(compressed);
  EXPECT_EQ(ran().back(), (CalibratedRange::Ran{Shard::kNone, 1, 8, 4, {Compressor::kInt8}}));
  // One worker, and workers that exchange nothing, keep none.
  compressed.compress = {};
  compressed.strategy = Strategy::kNone;
  include(compressed);
  EXPECT_EQ(ran().back(), (CalibratedRange::Ran{Shard::kNone, 1, 8}));
  include(RingOf(4, 8));
  EXPECT_EQ(ran().back(), (CalibratedRange::Ran{Shard::kNone, 1, 8, 4}));
  EXPECT_EQ(ran().size(), 4U) << "which tells all that the last one did";
}

TEST(CalibratedRange, HasRunTheLargestBatchWhereNothingElseIsSaid) {
  using Ran = std::vector<CalibratedRange::Ran>;
  CalibratedRange range;
  range.local_batch[kScope] = {16, 64, 2};
  EXPECT_EQ(range.BatchesOf(kScope)->WhatRan(), (Ran{{Shard::kNone, 1, 64, 4}}));
  EXPECT_FALSE(range.BatchesOf(kScope)->tells_more_than_batches());
  range.Include({}, RingOf(4, 32), kScope);
  EXPECT_FALSE(range.BatchesOf(kScope)->tells_more_than_batches());
  // A worker alone has run no exchange.
  CalibratedRange alone;
  alone.local_batch[kScope] = {16, 64, 1};
  EXPECT_EQ(alone.BatchesOf(kScope)->WhatRan(), (Ran{{Shard::kNone, 1, 64}}));
  alone.Include({}, RingOf(4, 32), kScope);
  EXPECT_EQ(alone.BatchesOf(kScope)->WhatRan(),
            (Ran{{Shard::kNone, 1, 64}, {Shard::kNone, 1, 32, 4}}));
  EXPECT_TRUE(alone.BatchesOf(kScope)->tells_more_than_batches());
  // A larger one that was shared out is no proof for the whole.
  CalibratedRange other;
  other.Include({}, Sharing(Shard::kOptimizer, 4, 128), kScope);
  for (const bool other_first : {true, false}) {
    CalibratedRange both = other_first ? other : range;
    both.Include(other_first ? range : other);
    Ran ran = both.BatchesOf(kScope)->WhatRan();
    if (other_first) std::swap(ran.front(), ran.back());
    EXPECT_EQ(ran, (Ran{{Shard::kNone, 1, 64, 4}, {Shard::kOptimizer, 4, 128, 4}}));
    EXPECT_EQ(both.BatchesOf(kScope)->max, 128);
  }
}

TEST(CalibratedRange, ForgetsWhatHasRunBeyondABound) {
  CalibratedRange range;
  const auto most = static_cast<int>(CalibratedRange::kMostRan);
  for (int i = 1; i <= most + 10; ++i) {
    range.Include({}, Sharing(Shard::kOptimizer, i + 1, i), kScope);
  }
  EXPECT_EQ(range.BatchesOf(kScope)->WhatRan().size(), CalibratedRange::kMostRan);
  EXPECT_EQ(range.BatchesOf(kScope)->WhatRan().back().local_batch, most);
}

TEST(CalibratedRange, GrowsByAnother) {
  const CalibratedRange small = RangeOf(2, 32);
  CalibratedRange large = RangeOf(8, 64);
  large.Include(Cluster(), RingOf(4, 8), "another");
  for (const bool small_first : {true, false}) {
    CalibratedRange range = small_first ? small : large;
    range.Include(small_first ? large : small);
    EXPECT_EQ(range.max_workers, 8);
    EXPECT_EQ(range.max_nodes, 8);
    EXPECT_EQ(range.local_batch.at(kScope).min, 32);
    EXPECT_EQ(range.local_batch.at(kScope).max, 64);
    EXPECT_EQ(range.local_batch.at(kScope).max_workers, 8) << small_first;
    EXPECT_EQ(range.local_batch.at("another").max_workers, 4);
    EXPECT_EQ(range.local_batch.at("another").max, 8);
  }
}

using Exchanges = std::set<CalibratedRange::Exchange>;

// Who exchanges with nobody has no exchange, and what stays on its node no transport.
TEST(CalibratedRange, KnowsHowRunsExchanged) {
  const auto of = [](const Cluster& cluster, const Plan& plan) {
    CalibratedRange range;
    range.Include(cluster, plan, kScope);
    return range.exchanges.value();
  };
  Cluster rdma;
  rdma.link.transport = Transport::kRdma;
  EXPECT_EQ(of({}, RingOf(1, 8)), Exchanges());
  Plan plan = RingOf(4, 8);
  EXPECT_EQ(of({}, plan), (Exchanges{{Strategy::kRing, Transport::kTcp}}));
  EXPECT_EQ(of(rdma, plan), (Exchanges{{Strategy::kRing, Transport::kRdma}}));
  plan.strategy = Strategy::kNone;
  EXPECT_EQ(of({}, plan), Exchanges());
  plan = RingOf(1, 8);
  plan.placement = {4};
  EXPECT_EQ(of(rdma, plan), (Exchanges{{Strategy::kRing, std::nullopt}}));
  // Servers on nodes of their own are reached over the network even by one worker, and by RDMA
  // where their link has it, too.
  plan.strategy = Strategy::kPsSync;
  plan.placement = {1};
  plan.servers = 1;
  EXPECT_EQ(of(rdma, plan), (Exchanges{{Strategy::kPsSync, Transport::kRdma}}));
  rdma.server_link.transport = Transport::kTcp;
  EXPECT_EQ(of(rdma, plan), (Exchanges{{Strategy::kPsSync, Transport::kTcp}}));
}

// What one of two does not say of its runs nobody knows of both; where there are no runs there is
// nothing to say.
TEST(CalibratedRange, ForgetsHowRunsExchangedWhereAnotherDoesNotSay) {
  CalibratedRange ring = RangeOf(2, 8);
  CalibratedRange tree;
  Plan plan = RingOf(4, 8);
  plan.strategy = Strategy::kTree;
  tree.Include({}, plan, kScope);
  CalibratedRange both = ring;
  both.Include(tree);
  EXPECT_EQ(both.exchanges,
            (Exchanges{{Strategy::kRing, Transport::kTcp}, {Strategy::kTree, Transport::kTcp}}));
  CalibratedRange older = ring;
  older.exchanges.reset();
  for (const bool older_first : {true, false}) {
    CalibratedRange range = older_first ? older : tree;
    range.Include(older_first ? tree : older);
    EXPECT_FALSE(range.exchanges) << older_first;
    range.Include({}, plan, kScope);
    EXPECT_FALSE(range.exchanges) << older_first;
  }
  for (const bool empty_first : {true, false}) {
    CalibratedRange range = empty_first ? CalibratedRange() : ring;
    range.Include(empty_first ? ring : CalibratedRange());
    EXPECT_EQ(range.exchanges, ring.exchanges) << empty_first;
  }
}

// Bare messages tell of no batch, and workers that exchange nothing of one node.
TEST(CalibratedRange, MessagesAndWorkersAloneTellOfLess) {
  CalibratedRange range;
  range.IncludeMessage(Cluster(), RingOf(8, 32));
  EXPECT_EQ(range.max_workers, 8);
  EXPECT_TRUE(range.local_batch.empty());
  Plan alone = RingOf(4, 32);
  alone.strategy = Strategy::kNone;
  CalibratedRange of_one;
  of_one.Include(Cluster(), alone, kScope);
  EXPECT_EQ(of_one.max_workers, 1);
  EXPECT_EQ(of_one.max_nodes, 1);
}

}  // namespace
}  // namespace stepcast
