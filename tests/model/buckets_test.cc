// The schedule of buckets against its closed form and bounds, and the buckets of known networks.
#include "model/overlap/buckets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "data/plan/bucket_words.h"
#include "data/workloads/catalog.h"
#include "tests/model/support.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

// ---- The schedule.

// Buckets of times `sync` that are ready at `ready` shares of a backward pass; an element of bytes
// stands for a second.
double LastEnd(const std::vector<double>& ready, const std::vector<double>& sync, double backward) {
  std::vector<Bucket> buckets;
  for (std::size_t k = 0; k < ready.size(); ++k) buckets.push_back({Bytes(sync[k]), ready[k]});
  return LastSynchronisationEnd(
             buckets, Seconds(backward),
             [](const Bucket& bucket) { return Seconds(bucket.bytes.in(kBytes)); })
      .si();
}

// Backward 10 s. Bucket 1: 2 to 5. Bucket 2 is ready at 4 and waits: 5 to 9. Bucket 3: 10 to 11.
TEST(BucketSchedule, ByHand) {
  EXPECT_DOUBLE_EQ(LastEnd({0.2, 0.4, 1.0}, {3, 4, 1}, 10), 11);
  // Communication-bound: 2 to 8, 8 to 16, 16 to 21.
  EXPECT_DOUBLE_EQ(LastEnd({0.2, 0.4, 1.0}, {6, 8, 5}, 10), 21);
}

TEST(BucketSchedule, OneBucketMeansNoOverlap) {
  EXPECT_DOUBLE_EQ(LastEnd({1.0}, {7}, 10), 17);
  EXPECT_DOUBLE_EQ(LastEnd({1.0}, {0}, 10), 10);
  EXPECT_EQ(LastEnd({}, {}, 10), 0);
}

struct Schedule {
  std::vector<double> ready;
  std::vector<double> sync;
  double backward = *LogUniform(1e-3, 10);

  Schedule() {
    const int count = *Whole(1, 30);
    for (int k = 0; k < count; ++k) {
      ready.push_back(*LogUniform(1e-3, 1));
      sync.push_back(*LogUniform(1e-6, 10));
    }
    std::sort(ready.begin(), ready.end());
    ready.back() = 1;
  }
  double end() const { return LastEnd(ready, sync, backward); }
  double all() const {
    double sum = 0;
    for (const double t : sync) sum += t;
    return sum;
  }
};

RC_GTEST_PROP(BucketScheduleProperty, ClosedFormIsTheRecursion, ()) {
  const Schedule s;
  double closed = 0;
  double rest = 0;
  for (std::size_t k = s.sync.size(); k-- > 0;) {
    rest += s.sync[k];
    closed = std::max(closed, s.ready[k] * s.backward + rest);
  }
  RC_ASSERT(Near(s.end(), closed));
}

RC_GTEST_PROP(BucketScheduleProperty, IsWithinItsBounds, ()) {
  const Schedule s;
  RC_ASSERT(s.end() >= (s.backward + s.sync.back()) * (1 - 1e-12));
  RC_ASSERT(s.end() >= s.all() * (1 - 1e-12));
  RC_ASSERT(s.end() <= (s.backward + s.all()) * (1 + 1e-12));
}

RC_GTEST_PROP(BucketScheduleProperty, NothingLaterEndsEarlier, ()) {
  Schedule s;
  const double before = s.end();
  const auto k = static_cast<std::size_t>(*Whole(0, static_cast<int>(s.sync.size()) - 1));
  Schedule slower = s;
  slower.sync[k] *= 2;
  RC_ASSERT(slower.end() >= before);
  Schedule longer = s;
  longer.backward *= 2;
  RC_ASSERT(longer.end() >= before);
  Schedule earlier = s;
  earlier.ready[k] /= 2;
  RC_ASSERT(earlier.end() <= before);
}

// ---- The buckets of a workload.

std::vector<Workload> Catalogue() {
  std::vector<Workload> workloads;
  for (const std::string& name : WorkloadNames()) workloads.push_back(*FindWorkload(name));
  return workloads;
}

const DataSize<> kCaps[] = {Bytes(1.0), Mebibytes(0.5), Mebibytes(1.0), Mebibytes(25.0),
                            Gibibytes(100.0)};

double Sum(const std::vector<Bucket>& buckets) {
  double sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.bytes.si();
  return sum;
}

// Bytes of the tensors in the order in which their gradients become ready.
std::vector<double> TensorsInReverse(const Workload& workload) {
  std::vector<double> bytes;
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    for (auto tensor = layer->tensors.rbegin(); tensor != layer->tensors.rend(); ++tensor) {
      bytes.push_back(4.0 * static_cast<double>(*tensor));
    }
  }
  return bytes;
}

// Of a workload that is known by its size nobody knows the tensors, and a word is told as one.
TEST(Buckets, OfEachTensorNeedTensors) {
  Workload known = Catalogue().front();
  EXPECT_NO_THROW(CheckBucketCap(known, kBucketPerTensor.cap));
  known.layers.clear();
  EXPECT_TRUE(Says(ErrorOf([&] { CheckBucketCap(known, kBucketPerTensor.cap); }),
                   "bucket: 'tensor' needs the tensors of the workload"));
  EXPECT_TRUE(Says(ErrorOf([&] { CheckBucketCap(known, known.gradient_bytes / 200'000.0); }),
                   "cuts the gradients into more than 100000 buckets"));
  EXPECT_NO_THROW(CheckBucketCap(known, known.gradient_bytes / 50'000.0));
}

TEST(Buckets, AddUpToTheGradient) {
  for (const Workload& workload : Catalogue()) {
    for (const DataSize<> cap : kCaps) {
      EXPECT_NEAR(Sum(MakeBuckets(workload, cap)), workload.gradient_bytes.si(), 0.5)
          << workload.name << " " << cap.si();
    }
  }
}

// Walks tensors and buckets together: a bucket is closed by the tensor that reaches its cap, and by
// no other, so that no tensor is split and no bucket is empty.
TEST(Buckets, AreClosedByTheTensorThatReachesTheCap) {
  for (const Workload& workload : Catalogue()) {
    for (const DataSize<> cap : kCaps) {
      const std::string where = workload.name + " " + std::to_string(cap.si());
      const std::vector<double> tensors = TensorsInReverse(workload);
      const std::vector<Bucket> buckets = MakeBuckets(workload, cap);
      std::size_t next = 0;
      for (std::size_t k = 0; k < buckets.size(); ++k) {
        const double limit = k == 0 ? std::min(cap.si(), 1048576.0) : cap.si();
        double filled = 0;
        while (next < tensors.size() && filled < limit) filled += tensors[next++];
        ASSERT_NEAR(buckets[k].bytes.si(), filled, 1e-3) << where << " bucket " << k;
        ASSERT_GT(filled, 0) << where;
      }
      EXPECT_EQ(next, tensors.size()) << where;
    }
  }
}

TEST(Buckets, BecomeReadyInOrderAndTheLastAtTheEnd) {
  for (const Workload& workload : Catalogue()) {
    for (const DataSize<> cap : kCaps) {
      const std::vector<Bucket> buckets = MakeBuckets(workload, cap);
      double before = 0;
      for (const Bucket& bucket : buckets) {
        EXPECT_GT(bucket.ready, 0) << workload.name;
        EXPECT_LE(bucket.ready, 1) << workload.name;
        EXPECT_GE(bucket.ready, before) << workload.name;
        before = bucket.ready;
      }
      // The first layer's gradients, but for the work of layers before it that have no parameters.
      EXPECT_GT(before, 0.99) << workload.name;
    }
  }
}

TEST(Buckets, TheFirstIsSmallSoThatItLeavesEarly) {
  const std::vector<Bucket> buckets = MakeBuckets(*FindWorkload("resnet50"), kDefaultBucket);
  ASSERT_GE(buckets.size(), 4u);
  // The classifier, 2048 x 1000 weights, is beyond 1 MiB at once: a bucket of its own.
  EXPECT_NEAR(buckets[0].bytes.si(), 4.0 * (2048 * 1000 + 1000), 0.5);
  EXPECT_LT(buckets[0].ready, 0.01);
  for (std::size_t k = 1; k + 1 < buckets.size(); ++k) {
    EXPECT_GE(buckets[k].bytes, kDefaultBucket);
  }
}

// Of two layers of as much work the first is of a block: its backward pass takes half as long again
// where it is recomputed, and the other's gradients are ready after two fifths.
TEST(Buckets, AreReadyLaterWhereBlocksAreRecomputed) {
  Workload workload;
  for (const char* name : {"h.0.dense", "head"}) {
    Layer layer;
    layer.name = name;
    layer.tensors = {1 << 20};
    layer.forward_flop = Flop(10.0);
    workload.layers.push_back(layer);
  }
  workload.trainable_parameters = 1 << 21;
  workload.gradient_bytes = Mebibytes(8.0);
  const auto ready = [&] {
    const std::vector<Bucket> buckets = MakeBuckets(workload, Mebibytes(1.0));
    EXPECT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets.back().ready, 1);
    return buckets.front().ready;
  };
  EXPECT_DOUBLE_EQ(ready(), 0.5);
  workload.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(ready(), 0.4);
  // Measured times are of what runs.
  workload.layers[0].backward_time = Seconds(3.0);
  workload.layers[1].backward_time = Seconds(1.0);
  EXPECT_DOUBLE_EQ(ready(), 0.25);
}

TEST(Buckets, WordsSayWhatTheySend) {
  for (const std::string& name : WorkloadNames()) {
    const Workload network = *FindWorkload(name);
    std::size_t tensors = 0;
    for (const Layer& layer : network.layers) tensors += layer.tensors.size();
    EXPECT_EQ(MakeBuckets(network, kBucketPerTensor.cap).size(), tensors) << name;
    const std::vector<Bucket> all = MakeBuckets(network, kOneMessage.cap);
    ASSERT_EQ(all.size(), 1u) << name;
    EXPECT_NEAR(all.front().bytes / network.gradient_bytes, 1, 1e-12);
    EXPECT_GT(all.front().ready, 0.99);
  }
}

// Servers exchange nearly tensor by tensor, in pieces that collectives would fuse.
TEST(Buckets, ServersHaveSmallerOnes) {
  for (int i = 0; i < kStrategyCount; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    EXPECT_EQ(DefaultBucket(strategy), UsesServers(strategy) ? Mebibytes(1.0) : Mebibytes(25.0));
  }
  const Workload resnet = *FindWorkload("resnet50");
  EXPECT_GT(MakeBuckets(resnet, DefaultBucket(Strategy::kPsSync)).size(),
            4 * MakeBuckets(resnet, DefaultBucket(Strategy::kRing)).size());
}

// 30522 words x 768, 93.8 MB: the first layer of the network, so the last gradient.
TEST(Buckets, BertsWordEmbeddingLeavesLast) {
  const std::vector<Bucket> buckets = MakeBuckets(*FindWorkload("bert_base"), kDefaultBucket);
  ASSERT_GE(buckets.size(), 10u);
  EXPECT_GE(buckets.back().bytes.si(), 4.0 * 30522 * 768);
  EXPECT_DOUBLE_EQ(buckets.back().ready, 1);
  for (std::size_t k = 0; k + 1 < buckets.size(); ++k) {
    EXPECT_LT(buckets[k].bytes.si(), 4.0 * 30522 * 768);
  }
}

// 25088 x 4096 weights, 411 MB of the 553, in one piece and within the first hundredth of the pass.
TEST(Buckets, Vgg16sFirstDenseLayerIsOneLargeBucket) {
  const std::vector<Bucket> buckets = MakeBuckets(*FindWorkload("vgg16"), kDefaultBucket);
  const auto largest =
      std::max_element(buckets.begin(), buckets.end(),
                       [](const Bucket& a, const Bucket& b) { return a.bytes < b.bytes; });
  EXPECT_GE(largest->bytes, Megabytes(411.0));
  EXPECT_LT(largest->bytes, Megabytes(411.0) + kDefaultBucket);
  EXPECT_LT(largest->ready, 0.01);
}

TEST(Buckets, WithoutLayersPiecesAreEqual) {
  Workload workload;
  workload.gradient_bytes = Mebibytes(110.0);
  workload.trainable_parameters = workload.parameters = 28835840;  // 4 bytes each
  const std::vector<Bucket> buckets = MakeBuckets(workload, Mebibytes(25.0));
  ASSERT_EQ(buckets.size(), 5u);
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    EXPECT_DOUBLE_EQ(buckets[k].bytes.in(kMebibytes), 22);
    EXPECT_DOUBLE_EQ(buckets[k].ready, 0.2 * static_cast<double>(k + 1));
  }
  const std::vector<Bucket> one = MakeBuckets(workload, Mebibytes(110.0));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].ready, 1);
  EXPECT_EQ(MakeBuckets(workload, Mebibytes(109.0)).size(), 2u);
}

// Layers whose file states no work: the gradients are ready as their bytes come along.
TEST(Buckets, WithoutWorkGradientsAreReadyWithTheirBytes) {
  Workload workload;
  for (const int weights : {250, 750, 1000}) {
    Layer layer;
    layer.tensors = {weights};
    workload.layers.push_back(layer);
  }
  workload.parameters = workload.trainable_parameters = 2000;
  workload.gradient_bytes = Bytes(8000.0);
  const std::vector<Bucket> buckets = MakeBuckets(workload, Bytes(1.0));
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_DOUBLE_EQ(buckets[0].ready, 0.5);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 0.875);
  EXPECT_DOUBLE_EQ(buckets[2].ready, 1.0);
}

// 0.1 + 0.2 + 0.3 from the last layer on is more than 0.3 + 0.2 + 0.1, and no share is above one.
TEST(Buckets, ReadySharesDoNotExceedOneByRounding) {
  Workload workload;
  for (const double flop : {0.3, 0.2, 0.1}) {
    Layer layer;
    layer.tensors = {1000};
    layer.forward_flop = Flop(flop);
    workload.layers.push_back(layer);
  }
  workload.parameters = workload.trainable_parameters = 3000;
  workload.gradient_bytes = Bytes(12000.0);
  EXPECT_EQ(MakeBuckets(workload, Bytes(1.0)).back().ready, 1);
}

// A workload of half precision sends half the bytes, in as many tensors.
TEST(Buckets, FollowTheGradientsWidth) {
  Workload half = *FindWorkload("resnet50");
  half.gradient_bytes = half.gradient_bytes * 0.5;
  EXPECT_NEAR(Sum(MakeBuckets(half, kDefaultBucket)), half.gradient_bytes.si(), 0.5);
  EXPECT_EQ(MakeBuckets(half, Bytes(1.0)).size(),
            MakeBuckets(*FindWorkload("resnet50"), Bytes(1.0)).size());
}

}  // namespace
}  // namespace stepcast
