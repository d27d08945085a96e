// Compressed gradients: bytes against messages that are really passed, thresholds against predicted
// steps, coding by hand, and the limits.
#include "model/exchange/compression.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/workloads/catalog.h"
#include "model/exchange/exchange.h"
#include "model/exchange/traffic.h"
#include "model/memory/memory.h"
#include "model/step/answer.h"
#include "model/step/step.h"
#include "tests/model/step_derivatives.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

constexpr Compressor kMethods[] = {Compressor::kFp16, Compressor::kBf16, Compressor::kInt8,
                                   Compressor::kTopK};

Compression AnyCompression() {
  Compression compression{kMethods[*Whole(0, 3)]};
  if (compression.is_gathered()) compression.kept = *LogUniform(1e-4, 0.9);
  return compression;
}

Workload Gradients(DataSize<> bytes) {
  Workload workload;
  workload.name = "mine";
  workload.gradient_bytes = bytes;
  workload.parameters = workload.trainable_parameters =
      static_cast<std::int64_t>(bytes.si() / kBytesPerFloat);
  return workload;
}

Plan PlanOn(const Placement& placement, const Compression& compression = {}) {
  Plan plan;
  plan.placement = placement;
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  plan.compress = compression;
  return plan;
}

StepFacts FactsOf(const Plan& plan, DataSize<> gradient = Megabytes(100.0)) {
  const Workload workload = Gradients(gradient);
  return MakeStepFacts(
      {}, plan, workload,
      std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, BucketCap(plan, gradient))),
      GigabytesPerSecond(320.0));
}

// ---- Messages that are passed.

// Bytes that each worker sends of a message of `workers` parts that rings add up and hand on:
// partial sums in the first half of the rounds, which end at their owner, sums in the second.
double SentByRingAllreduce(int workers, double part) {
  const auto count = static_cast<std::size_t>(workers);
  std::vector<std::vector<int>> added(count, std::vector<int>(count, 1));
  std::vector<double> sent(count);
  for (std::size_t round = 0; round + 1 < 2 * count - 1; ++round) {
    const bool reduces = round + 1 < count;
    std::vector<std::vector<int>> next = added;
    for (std::size_t w = 0; w < count; ++w) {
      // Sums start from the worker behind their owner.
      const std::size_t p = (w + 2 * count - round) % count;
      std::vector<int>& to = next[(w + 1) % count];
      to[p] = reduces ? to[p] + added[w][p] : added[w][p];
      sent[w] += part;
    }
    added = next;
  }
  for (const std::vector<int>& parts : added) {
    for (const int sum : parts) EXPECT_EQ(sum, workers);
  }
  return *std::max_element(sent.begin(), sent.end());
}

// Every worker hands on what it got the round before, until all have the messages of all.
double SentByRingGather(int workers, double message) {
  const auto count = static_cast<std::size_t>(workers);
  std::vector<std::vector<bool>> has(count, std::vector<bool>(count));
  std::vector<std::size_t> latest(count);
  for (std::size_t w = 0; w < count; ++w) {
    has[w][w] = true;
    latest[w] = w;
  }
  std::vector<double> sent(count);
  for (bool all = workers == 1; !all;) {
    std::vector<std::size_t> arrived(count);
    for (std::size_t w = 0; w < count; ++w) {
      arrived[(w + 1) % count] = latest[w];
      sent[w] += message;
    }
    all = true;
    for (std::size_t w = 0; w < count; ++w) {
      latest[w] = arrived[w];
      has[w][latest[w]] = true;
      for (const bool one : has[w]) all = all && one;
    }
  }
  return *std::max_element(sent.begin(), sent.end());
}

RC_GTEST_PROP(CompressionProperty, SendsTheBytesOfItsMessages, ()) {
  const int workers = *Whole(2, 24);
  const int parameters = workers * *Whole(1, 1000) * 1000;
  const Compression compression = AnyCompression();
  const Plan plan = PlanOn(Placement(static_cast<std::size_t>(workers), 1), compression);
  const StepFacts facts = FactsOf(plan, Bytes(kBytesPerFloat * parameters));
  double sent = 0;
  if (compression.is_gathered()) {
    sent = SentByRingGather(workers, 8 * compression.kept * parameters);
  } else {
    const double bytes = compression.method == Compressor::kInt8 ? 1 : 2;
    sent = SentByRingAllreduce(workers, bytes * parameters / workers);
  }
  const Traffic traffic = CountTraffic(plan, facts.gradient);
  RC_ASSERT(Near(traffic.per_worker.si() / sent, 1));
  RC_ASSERT(Near(traffic.total.si() / (sent * workers), 1));
  // What a call takes for each byte are these on the hop.
  StepTerms<double> terms;
  EvaluateStep(facts, PriorCluster(), PriorWorkload(), &terms);
  RC_ASSERT(
      Near((terms.cost.per_byte * facts.gradient * terms.node_hop.bandwidth).si() / sent, 1, 1e-9));
}

// ---- The step.

// Nothing but the bytes of a step differs from one whose gradients are so many to begin with, and
// coding is added to it.
RC_GTEST_PROP(CompressionProperty, IsAnExchangeOfFewerBytesAndTheirCoding, ()) {
  const Compression compression{kMethods[*Whole(0, 2)]};
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(*Whole(1, 20)), *Whole(1, 4)), compression);
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
                                    Strategy::kHierarchical, Strategy::kPsSync);
  plan.servers = UsesServers(plan.strategy) ? 2 : 0;
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone, Overlap::kPNorm);
  const StepFacts facts = FactsOf(plan);
  Plan fewer = plan;
  fewer.compress = {};
  fewer.bytes_per_parameter = compression.method == Compressor::kInt8 ? 1 : 2;
  const StepTime<double> with = EvaluateStep(facts, PriorCluster(), PriorWorkload());
  const StepTime<double> as_few = EvaluateStep(FactsOf(fewer), PriorCluster(), PriorWorkload());
  RC_ASSERT(with.exposed_transfer == as_few.exposed_transfer);
  RC_ASSERT(with.exposed_latency == as_few.exposed_latency);
  RC_ASSERT(as_few.coding.si() == 0);
  RC_ASSERT(with.coding == internal::CodingOf(facts));
  RC_ASSERT(Near((with.total() - with.coding) / as_few.total(), 1));
}

RC_GTEST_PROP(CompressionProperty, NeverRisesWithBandwidthAndFallsWithTheRate, ()) {
  Plan plan =
      PlanOn(Placement(static_cast<std::size_t>(*Whole(2, 20)), *Whole(1, 4)), AnyCompression());
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kHierarchical);
  plan.compress_rate = BytesPerSecond(*LogUniform(1e6, 1e12));
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = *LogUniform(1e6, 1e11);
  const auto total = [](const Plan& p, const ClusterParameters<double>& at) {
    return EvaluateStep(FactsOf(p), at, PriorWorkload()).total().si();
  };
  const double step = total(plan, cluster);
  RC_ASSERT(std::isfinite(step));
  const double slack = 1 + 1e-12;
  ClusterParameters<double> faster = cluster;
  faster.si[kLinkBandwidth] *= *LogUniform(1, 100);
  RC_ASSERT(total(plan, faster) <= step * slack);
  Plan sooner = plan;
  sooner.compress_rate = *plan.compress_rate * *LogUniform(1, 100);
  RC_ASSERT(total(sooner, cluster) <= step * slack);
}

TEST(Compression, OneWorkerHasNone) {
  const StepTime<double> whole =
      EvaluateStep(FactsOf(PlanOn({1})), PriorCluster(), PriorWorkload());
  for (const Compressor method : kMethods) {
    const Compression compression{method, method == Compressor::kTopK ? 0.1 : 0};
    const StepTime<double> step =
        EvaluateStep(FactsOf(PlanOn({1}, compression)), PriorCluster(), PriorWorkload());
    EXPECT_EQ(step.total(), whole.total());
    EXPECT_EQ(step.coding.si(), 0);
  }
}

// The exact derivatives against differences.
RC_GTEST_PROP(CompressionProperty, HasItsDerivatives, ()) {
  const Plan plan =
      PlanOn(Placement(static_cast<std::size_t>(*Whole(2, 20)), *Whole(1, 4)), AnyCompression());
  const StepFacts facts = FactsOf(plan);
  RequireStepDerivatives(facts, {kLinkBandwidth, kHostBandwidth, kLinkLatency});
}

// ---- Where it pays.

// The closed form is the rate of a hop at which two predicted steps are equally long, found by
// bisecting the link.
RC_GTEST_PROP(CompressionProperty, PaysBelowWhereTheStepsMeet, ()) {
  const int workers = *Whole(2, 16);
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(workers), 1), AnyCompression());
  if (plan.compress.is_gathered()) plan.compress.kept = *LogUniform(1e-4, 0.5) / workers;
  plan.overlap = Overlap::kNone;
  plan.compress_rate = BytesPerSecond(*LogUniform(1e8, 1e10));
  Plan whole = plan;
  whole.compress = {};
  ClusterParameters<double> cluster = PriorCluster();
  cluster.si[kLinkLatency] = 1e-9;  // bytes set the pace
  cluster.si[kFlowBandwidth] = cluster.si[kHostBandwidth] = 1e13;
  const auto at = [&](double rate, const Plan& p, StepTerms<double>* terms = nullptr) {
    ClusterParameters<double> there = cluster;
    there.si[kLinkBandwidth] = rate;
    return EvaluateStep(FactsOf(p), there, PriorWorkload(), terms).total().si();
  };
  double low = 1e3;
  double high = 1e12;
  RC_PRE(at(low, plan) < at(low, whole) && at(high, plan) > at(high, whole));
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    (at(middle, plan) < at(middle, whole) ? low : high) = middle;
  }
  StepTerms<double> terms;
  StepTerms<double> of_whole;
  at(low, plan, &terms);
  at(low, whole, &of_whole);
  const auto exchange = [](const StepFacts& facts, const StepTerms<double>& its) {
    return CompressedExchange<double>{
        facts.gradient, its.cost.per_byte * its.node_hop.bandwidth,
        its.cost.per_call * static_cast<double>(facts.buckets->size())};
  };
  const std::optional<DataRate<>> below =
      PaysBelow(exchange(FactsOf(whole), of_whole), exchange(FactsOf(plan), terms), terms.coding);
  RC_ASSERT(below.has_value());
  RC_ASSERT(Near(below->si() / terms.node_hop.bandwidth.si(), 1, 1e-6));
}

TEST(Compression, PaysNowhereOrEverywhere) {
  const CompressedExchange<double> whole{Megabytes(100.0), 1.5, Seconds(0.01)};
  CompressedExchange<double> fewer{Megabytes(10.0), 3, Seconds(0.01)};
  EXPECT_NEAR(PaysBelow(whole, fewer, Seconds(0.1))->si(), 120e6 / 0.1, 1);
  fewer.calls = Seconds(0.005);
  EXPECT_NEAR(PaysBelow(whole, fewer, Seconds(0.1))->si(), 120e6 / 0.095, 1);
  EXPECT_TRUE(std::isinf(PaysBelow(whole, fewer, Seconds(0.001))->si()));
  fewer.passes = 15;
  EXPECT_FALSE(PaysBelow(whole, fewer, Seconds(0.1)).has_value());
}

// Half of the rounds of an all-reduce, and of its passes over what all workers have.
TEST(Compression, GatherCallByHand) {
  const SyncCost<double> ring =
      RingAllreduce(5, Hop<double>{Milliseconds(1.0), BytesPerSecond(1e9)});
  const CallCost<double> call =
      GatherCall(CallCost<double>{PipelineRing(ring, Milliseconds(1.0)), {}}, 5);
  EXPECT_NEAR(call.Steady().per_byte.si(), 4e-9, 1e-20);  // each part passes each hop, but its own
  EXPECT_NEAR(call.Chain().per_call.si(), 4e-3, 1e-15);
  EXPECT_NEAR(call.Steady().per_call.si(), 2e-3, 1e-15);
  EXPECT_FALSE(call.two_levels());
}

// Of a share of 1/w and more a gather sends as much as an all-reduce of everything.
TEST(Compression, GathersGrowWithTheWorkers) {
  for (const int workers : {2, 8, 50}) {
    const Placement placement(static_cast<std::size_t>(workers), 1);
    const Plan all = PlanOn(placement);
    const Plan kept = PlanOn(placement, {Compressor::kTopK, 1.0 / workers});
    EXPECT_NEAR(CountTraffic(kept, FactsOf(kept).gradient).per_worker.si(),
                CountTraffic(all, FactsOf(all).gradient).per_worker.si(), 1e-3);
  }
}

// ---- Factors of matrices.

Layer LayerOf(const Operation& operation, const std::vector<std::int64_t>& tensors) {
  Layer layer;
  layer.name = "layer";
  layer.operation = operation;
  layer.tensors = tensors;
  return layer;
}

Workload NetworkOf(const std::vector<Layer>& layers) {
  std::int64_t parameters = 0;
  for (const Layer& layer : layers) parameters += layer.parameters();
  Workload workload = Gradients(Bytes(kBytesPerFloat * static_cast<double>(parameters)));
  workload.layers = layers;
  return workload;
}

std::vector<double> SentFloats(const Workload& workload, double rank, DataSize<> cap) {
  std::vector<double> sent;
  for (const Bucket& message : GradientOrder(workload).CutFactored(cap, rank)) {
    sent.push_back(message.bytes.si() / kBytesPerFloat);
  }
  return sent;
}

TEST(PowerSgd, FactorsByHand) {
  ConvolutionOp convolution;
  convolution.channels = 32;
  convolution.filters = 64;
  convolution.kernel = {3, 3};
  const Workload network = NetworkOf({
      LayerOf(EmbeddingOp{5000, 64, 8}, {5000 * 64}),
      LayerOf(convolution, {64 * 32 * 9}),
      LayerOf(NormalizationOp{NormalizationKind::kBatch, 64, {}}, {64, 64}),
      LayerOf(RecurrentOp{RecurrentCell::kLstm, 8, 100, 50, 1}, {200 * 100, 200 * 50, 200, 200}),
      LayerOf(DenseOp{1, 1000, 200, true}, {200 * 1000, 200}),
  });
  const double whole = 64 + 64 + 200 + 200 + 200;
  const double left = 4.0 * (5000 + 64 + 200 + 200 + 200);
  const double right = 4.0 * (64 + 32 * 9 + 100 + 50 + 1000);
  EXPECT_EQ(SentFloats(network, 4, Mebibytes(1024.0)), (std::vector<double>{whole, left, right}));
  // Of rank 20 the factors of the recurrent layer, the smaller of its two, would be half of it.
  EXPECT_EQ(SentFloats(network, 20, Mebibytes(1024.0)),
            (std::vector<double>{whole + 200 * 50, 20.0 * (5000 + 64 + 200 + 200),
                                 20.0 * (64 + 32 * 9 + 100 + 1000)}));
  // Of rank 4 the factors of 32 depthwise filters would be more than half of them.
  convolution.groups = convolution.filters = 32;
  EXPECT_EQ(SentFloats(NetworkOf({LayerOf(convolution, {32 * 9})}), 4, Mebibytes(1.0)),
            (std::vector<double>{32 * 9}));
}

// Three gates of 50 in place of four, so that its matrices have 150 rows.
TEST(PowerSgd, AGruHasThreeGates) {
  const Workload network = NetworkOf({
      LayerOf(RecurrentOp{RecurrentCell::kGru, 8, 100, 50, 1}, {150 * 100, 150 * 50, 150, 150}),
  });
  EXPECT_EQ(SentFloats(network, 4, Mebibytes(1024.0)),
            (std::vector<double>{150 + 150, 4.0 * (150 + 150), 4.0 * (100 + 50)}));
}

TEST(PowerSgd, KnowsTheShapesOfAllNetworks) {
  for (const std::string& name : WorkloadNames()) {
    const Workload network = *FindWorkload(name);
    double sent = 0;
    for (const double floats : SentFloats(network, 4, kDefaultBucket)) sent += floats;
    EXPECT_LT(sent, 0.35 * static_cast<double>(network.trainable_parameters)) << name;
    EXPECT_GT(sent, 0) << name;
  }
}

// All messages of a bucket can leave when it can.
TEST(PowerSgd, FactorsAreReadyWithTheirBucket) {
  const Workload network = *FindWorkload("resnet50");
  std::vector<double> ready;
  for (const Bucket& bucket : MakeBuckets(network, kDefaultBucket)) ready.push_back(bucket.ready);
  ASSERT_LT(ready.front(), 1);
  std::vector<double> of_messages;
  for (const Bucket& message : GradientOrder(network).CutFactored(kDefaultBucket, 4)) {
    if (of_messages.empty() || of_messages.back() != message.ready) {
      of_messages.push_back(message.ready);
    }
  }
  EXPECT_EQ(of_messages, ready);
}

TEST(PowerSgd, NeedsShapes) {
  const auto says = [](const Workload& workload) {
    try {
      GradientOrder(workload).CutFactored(kDefaultBucket, 4);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(says(Gradients(Megabytes(1.0))).find("known by its size only"), std::string::npos);
  EXPECT_NE(says(NetworkOf({LayerOf({}, {100, 10})})).find("layer does not say its operation"),
            std::string::npos);
}

// A step by factors is one that exchanges these messages as they are, and codes.
RC_GTEST_PROP(CompressionProperty, FactorsAreAnExchangeOfTheirMessages, ()) {
  const Workload network =
      *FindWorkload(*rc::gen::element<std::string>("resnet50", "vgg16", "bert_base"));
  Plan plan = PlanOn(Placement(static_cast<std::size_t>(*Whole(1, 20)), *Whole(1, 4)),
                     {Compressor::kPowerSgd, static_cast<double>(*Whole(1, 64))});
  plan.strategy = *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling,
                                    Strategy::kHierarchical);
  plan.overlap = *rc::gen::element(Overlap::kBuckets, Overlap::kNone, Overlap::kPNorm);
  BucketsOfPlans buckets;
  const auto facts_of = [&](const Plan& p, const Plan& sends) {
    StepFacts facts =
        MakeStepFacts({}, p, network, buckets.Of(network, sends), GigabytesPerSecond(320.0));
    facts.gradient = {};
    for (const Bucket& message : *facts.buckets) facts.gradient += message.bytes;
    return facts;
  };
  Plan plain = plan;
  plain.compress = {};
  const StepFacts facts = facts_of(plan, plan);
  RC_ASSERT(facts.gradient ==
            MakeStepFacts({}, plan, network, buckets.Of(network, plan), GigabytesPerSecond(320.0))
                .gradient);
  const StepTime<double> step = EvaluateStep(facts, PriorCluster(), PriorWorkload());
  const StepTime<double> sends =
      EvaluateStep(facts_of(plain, plan), PriorCluster(), PriorWorkload());
  RC_ASSERT(step.exposed_transfer == sends.exposed_transfer);
  RC_ASSERT(step.exposed_latency == sends.exposed_latency);
  RC_ASSERT(Near((step.total() - step.coding) / sends.total(), 1));
  RC_ASSERT(plan.workers() == 1 || step.coding.si() > 0);
}

// ---- Coding, by hand: 100 MB through 320 GB/s.
TEST(Compression, CodingByHand) {
  const Placement eight(8, 1);
  const double once = 100e6 / 320e9;
  const auto coding = [&](const Plan& plan) { return internal::CodingOf(FactsOf(plan)).si(); };
  EXPECT_EQ(coding(PlanOn(eight)), 0);
  EXPECT_NEAR(coding(PlanOn(eight, {Compressor::kFp16})) / once, 3, 1e-12);
  EXPECT_NEAR(coding(PlanOn(eight, {Compressor::kInt8})) / once, 3.75 + 13.0 / 32, 1e-12);
  EXPECT_NEAR(coding(PlanOn(eight, {Compressor::kTopK, 0.01})) / once, 8 + 0.03 + 0.32, 1e-12);
  EXPECT_NEAR(internal::CodingOf([&] {
                StepFacts facts = FactsOf(PlanOn(eight));
                facts.compress = {Compressor::kPowerSgd, 4};
                return facts;
              }())
                      .si() /
                  once,
              9, 1e-12);
  Plan servers = PlanOn(eight, {Compressor::kInt8});
  servers.strategy = Strategy::kPsSync;
  servers.servers = 2;
  EXPECT_NEAR(coding(servers) / once, 3.5, 1e-12);
  Plan stated = PlanOn(eight, {Compressor::kTopK, 0.01});
  stated.compress_rate = GigabytesPerSecond(2.0);
  EXPECT_NEAR(coding(stated), 0.05, 1e-12);
}

// A copy as it is sent, and what is not sent is kept.
TEST(Compression, Memory) {
  const Workload workload = Gradients(Gibibytes(1.0));
  const auto buckets = [&](const Placement& placement, const Compression& compression) {
    return CountMemory(workload, DataSize<>(), PlanOn(placement, compression), std::nullopt)
        .buckets.in(kGibibytes);
  };
  EXPECT_EQ(buckets({1, 1}, {}), 1);
  EXPECT_EQ(buckets({1, 1}, {Compressor::kFp16}), 0.5);
  EXPECT_EQ(buckets({1, 1}, {Compressor::kInt8}), 0.25);
  EXPECT_NEAR(buckets({1, 1}, {Compressor::kTopK, 0.01}), 1.02, 1e-12);
  EXPECT_EQ(buckets({1}, {Compressor::kTopK, 0.01}), 0);
}

}  // namespace
}  // namespace stepcast
