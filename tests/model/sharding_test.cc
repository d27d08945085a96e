// How a model lies on its servers, against spreads worked out by hand and published tensor sizes.
#include "model/exchange/sharding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// One tensor a layer, named a, b, c, ...
Workload Tensors(const std::vector<std::int64_t>& sizes) {
  Workload workload;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Layer layer;
    layer.name = std::string(1, static_cast<char>('a' + i % 26));
    layer.tensors = {sizes[i]};
    layer.forward_flop = Flop(1.0);
    workload.layers.push_back(layer);
    workload.trainable_parameters += sizes[i];
  }
  workload.gradient_bytes = Bytes(4.0 * static_cast<double>(workload.trainable_parameters));
  return workload;
}

TEST(Sharding, LargestFirstByHand) {
  // 7 | 6, then 5 -> second, 4 -> first: 11 each; 3 -> first: 14 of 25.
  const LargestShard shard = LargestShare(Tensors({3, 7, 5, 6, 4}), 2, Sharding::kTensor);
  EXPECT_DOUBLE_EQ(shard.share, 14.0 / 25);
  EXPECT_EQ(shard.layer, "b");
  EXPECT_FALSE(shard.one_tensor);
  EXPECT_EQ(shard.tensors, 3);
}

TEST(Sharding, EvenSharesCutTensors) {
  const LargestShard shard = LargestShare(Tensors({3, 70}), 4, Sharding::kEven);
  EXPECT_DOUBLE_EQ(shard.share, 0.25);
  EXPECT_TRUE(shard.layer.empty());
  EXPECT_FALSE(shard.one_tensor);
}

TEST(Sharding, WithoutLayersSharesAreEven) {
  Workload workload;
  workload.gradient_bytes = Megabytes(10.0);
  EXPECT_DOUBLE_EQ(LargestShare(workload, 5, Sharding::kTensor).share, 0.2);
  EXPECT_DOUBLE_EQ(LargestShare(workload, 5, Sharding::kRoundRobin).share, 0.2);
}

// The weight of VGG-16's first dense layer: 25088 x 4096 of 138,357,544.
TEST(Sharding, OneTensorOfVgg16FillsAServer) {
  const Workload vgg = *FindWorkload("vgg16");
  for (const int servers : {2, 4, 16, 1000000}) {
    const LargestShard shard = LargestShare(vgg, servers, Sharding::kTensor);
    EXPECT_NEAR(shard.share, 25088.0 * 4096 / 138357544, servers == 2 ? 0.02 : 1e-12) << servers;
    EXPECT_TRUE(shard.one_tensor);
    EXPECT_EQ(shard.layer, "fc1");
  }
}

TEST(Sharding, ResNetSpreadsWell) {
  const LargestShard shard = LargestShare(*FindWorkload("resnet101"), 4, Sharding::kTensor);
  EXPECT_LT(shard.share, 0.2501);
  EXPECT_FALSE(shard.one_tensor);
}

// Turns go around whatever the size; the statistics of a normalisation take two of them.
TEST(Sharding, InTurnByHand) {
  Workload workload = Tensors({10, 1, 20, 2});
  EXPECT_DOUBLE_EQ(LargestShare(workload, 2, Sharding::kRoundRobin).share, 30.0 / 33);
  EXPECT_EQ(LargestShare(workload, 2, Sharding::kRoundRobin).layer, "c");
  EXPECT_TRUE(LargestShare(workload, 2, Sharding::kRoundRobin).one_tensor);
  workload.layers[1].statistics = 2;
  // a on the first; b on the second, its statistics on the third and the first; c on the second.
  EXPECT_DOUBLE_EQ(LargestShare(workload, 3, Sharding::kRoundRobin).share, 21.0 / 33);
  // Of six variables, c is on the fifth server, by itself.
  EXPECT_DOUBLE_EQ(LargestShare(workload, 5, Sharding::kRoundRobin).share, 20.0 / 33);
}

// Largest first is never worse than 4/3 - 1/(3n) times the least that is possible, which is at
// least an equal share and the largest tensor.
RC_GTEST_PROP(ShardingProperty, WithinGrahamsBound, ()) {
  std::vector<std::int64_t> sizes;
  const int count = *Whole(1, 12);
  for (int i = 0; i < count; ++i) sizes.push_back(*Whole(1, 1000));
  const int servers = *Whole(1, 3);
  // The best spread, by trying all.
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  std::vector<std::int64_t> load(static_cast<std::size_t>(servers), 0);
  std::int64_t best = total;
  const auto place = [&](const auto& self, std::size_t at) -> void {
    if (at == sizes.size()) {
      best = std::min(best, *std::max_element(load.begin(), load.end()));
      return;
    }
    for (std::int64_t& server : load) {
      if (server + sizes[at] >= best) continue;
      server += sizes[at];
      self(self, at + 1);
      server -= sizes[at];
    }
  };
  place(place, 0);
  const double share = LargestShare(Tensors(sizes), servers, Sharding::kTensor).share;
  const double least = static_cast<double>(best) / static_cast<double>(total);
  RC_ASSERT(share >= least * (1 - 1e-12));
  RC_ASSERT(share <= least * (4.0 / 3 - 1.0 / (3 * servers)) * (1 + 1e-12));
}

DataSize<> Total(const std::vector<Bucket>& buckets) {
  DataSize<> sum;
  for (const Bucket& bucket : buckets) sum += bucket.bytes;
  return sum;
}

// What the fullest server holds of the buckets adds up to its share, in the same order.
TEST(Sharding, HeldBucketsAddUpToTheShare) {
  for (const char* name : {"vgg16", "resnet101", "inception_v3", "bert_base"}) {
    const Workload workload = *FindWorkload(name);
    for (const int servers : {1, 4, 16}) {
      for (const DataSize<> cap : {Bytes(1.0), Mebibytes(1.0), Mebibytes(25.0)}) {
        for (const Sharding sharding : {Sharding::kTensor, Sharding::kEven}) {
          const auto held =
              TensorShards(workload, sharding).LastBuckets(servers, MakeBuckets(workload, cap));
          const double share = LargestShare(workload, servers, sharding).share;
          EXPECT_TRUE(Near(Total(held) / workload.gradient_bytes, share, 1e-9))
              << name << ' ' << servers;
          EXPECT_LE(held.size(), MakeBuckets(workload, cap).size());
          for (std::size_t i = 1; i < held.size(); ++i) {
            EXPECT_GE(held[i].ready, held[i - 1].ready);
          }
        }
      }
    }
  }
}

// What is remembered changes no answer, whatever was asked before and however many threads ask.
TEST(Sharding, WhatIsRememberedIsOfThePlan) {
  const Workload workload = *FindWorkload("resnet50");
  const auto in_all =
      std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, Bytes(1.0)));
  const auto few =
      std::make_shared<const std::vector<Bucket>>(MakeBuckets(workload, Mebibytes(25.0)));
  const ShardsOfPlans shards;
  const auto ask = [&](unsigned seed) {
    std::mt19937 engine(seed);
    for (int i = 0; i < 300; ++i) {
      Plan plan;
      plan.servers = 1 + static_cast<int>(engine() % 3);
      plan.server.sharding =
          std::array{Sharding::kTensor, Sharding::kEven, Sharding::kRoundRobin}[engine() % 3];
      const auto buckets = std::array{in_all, few, decltype(few)()}[engine() % 3];
      const TensorShards::Held held = shards.Of(workload, plan, buckets);
      const TensorShards alone(workload, plan.server.sharding);
      EXPECT_EQ(held.share, alone.FullestOf(plan.servers).share);
      ASSERT_EQ(held.buckets != nullptr, buckets != nullptr);
      if (!buckets) continue;
      const std::vector<Bucket> expected = alone.LastBuckets(plan.servers, *buckets);
      ASSERT_EQ(held.buckets->size(), expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ((*held.buckets)[k].bytes.si(), expected[k].bytes.si());
        EXPECT_EQ((*held.buckets)[k].ready, expected[k].ready);
      }
    }
  };
  ask(1);
  std::vector<std::thread> threads;
  for (unsigned seed = 2; seed < 6; ++seed) threads.emplace_back(ask, seed);
  for (std::thread& thread : threads) thread.join();
}

// Each bucket is somewhere, and what one server holds of all is what its schedule has.
TEST(Sharding, PartsAddUpToBucketsAndToServers) {
  for (const char* name : {"vgg16", "resnet50", "bert_base"}) {
    const Workload workload = *FindWorkload(name);
    for (const int servers : {1, 3, 16}) {
      for (const Sharding sharding : {Sharding::kTensor, Sharding::kEven, Sharding::kRoundRobin}) {
        const std::vector<Bucket> buckets = MakeBuckets(workload, Mebibytes(4.0));
        const TensorShards shards(workload, sharding);
        std::vector<double> of_bucket(buckets.size(), 0);
        std::vector<double> of_server(static_cast<std::size_t>(servers), 0);
        for (const TensorShards::Part& part : shards.Parts(servers, buckets)) {
          EXPECT_GT(part.bytes.si(), 0);
          of_bucket.at(part.bucket) += part.bytes.si();
          of_server.at(part.server) += part.bytes.si();
        }
        for (std::size_t k = 0; k < buckets.size(); ++k) {
          EXPECT_NEAR(of_bucket[k] / buckets[k].bytes.si(), 1, 1e-9) << name << ' ' << k;
        }
        const double fullest = *std::max_element(of_server.begin(), of_server.end());
        EXPECT_NEAR(fullest / Total(shards.LastBuckets(servers, buckets)).si(), 1, 1e-9);
      }
    }
  }
}

TEST(Sharding, PartsByHand) {
  // Reverse order, in buckets of two: 4 and 6, 5 and 7, 3.
  const Workload network = Tensors({3, 7, 5, 6, 4});
  const std::vector<Bucket> buckets = {{Bytes(40.0), 0.4}, {Bytes(48.0), 0.8}, {Bytes(12.0), 1.0}};
  std::vector<std::vector<double>> parts;
  for (const TensorShards::Part& part :
       TensorShards(network, Sharding::kTensor).Parts(2, buckets)) {
    parts.push_back({1.0 * static_cast<double>(part.bucket), 1.0 * static_cast<double>(part.server),
                     part.bytes.si() / 4});
  }
  // The first server holds 7, 4 and 3.
  EXPECT_EQ(parts, (std::vector<std::vector<double>>{
                       {0, 0, 4}, {0, 1, 6}, {1, 0, 7}, {1, 1, 5}, {2, 0, 3}}));
}

TEST(Sharding, HeldBucketsByHand) {
  // Reverse order: 4, 6, 5, 7, 3; one server holds 7, 4 and 3, the other 6 and 5. From each on, the
  // one with more has 14, 11, 10, 10, 3.
  const Workload network = Tensors({3, 7, 5, 6, 4});
  const auto held =
      TensorShards(network, Sharding::kTensor).LastBuckets(2, MakeBuckets(network, Bytes(1.0)));
  ASSERT_EQ(held.size(), 4u);
  EXPECT_EQ(held[0].bytes, Bytes(12.0));
  EXPECT_EQ(held[1].bytes, Bytes(4.0));
  EXPECT_EQ(held[2].bytes, Bytes(28.0));
  EXPECT_EQ(held[3].bytes, Bytes(12.0));
  EXPECT_DOUBLE_EQ(held[0].ready, 0.2);
  EXPECT_DOUBLE_EQ(held[1].ready, 0.4);
  EXPECT_DOUBLE_EQ(held[2].ready, 0.8);
  EXPECT_DOUBLE_EQ(held[3].ready, 1.0);
}

// Whole tensors never end earlier than equal shares of each, whatever the pace of the servers.
TEST(Sharding, WholeTensorsEndNoEarlierThanEqualShares) {
  for (const char* name : {"vgg16", "resnet50", "inception_v3", "bert_base"}) {
    const Workload workload = *FindWorkload(name);
    for (const int servers : {2, 3, 8, 16}) {
      for (const DataSize<> cap : {Mebibytes(1.0), Mebibytes(25.0), Mebibytes(200.0)}) {
        for (const double seconds : {0.01, 0.3, 10.0}) {
          const auto end = [&](Sharding sharding) {
            return LastSynchronisationEnd(TensorShards(workload, sharding)
                                              .LastBuckets(servers, MakeBuckets(workload, cap)),
                                          Seconds(1.0),
                                          [&](const Bucket& bucket) {
                                            return Seconds(seconds) *
                                                   (bucket.bytes / workload.gradient_bytes);
                                          })
                .si();
          };
          const double even = end(Sharding::kEven);
          EXPECT_GE(end(Sharding::kTensor), even * (1 - 1e-9)) << name << ' ' << servers;
          EXPECT_GE(end(Sharding::kRoundRobin), even * (1 - 1e-9)) << name << ' ' << servers;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
