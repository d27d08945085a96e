#include "model/numeric/run_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stepcast {
namespace {

TEST(RunParts, RunsEachPartOnce) {
  for (const std::size_t parts : {0U, 1U, 2U, 7U, 200U}) {
    for (const int threads : {-1, 0, 1, 2, 3, 8, 1000}) {
      std::vector<std::atomic<int>> ran(parts);
      RunParts(parts, threads, [&](std::size_t part) { ++ran[part]; });
      for (const std::atomic<int>& times : ran) EXPECT_EQ(times, 1) << parts << " on " << threads;
    }
  }
}

TEST(RunParts, LessThanTwoThreadsAreTheCallersAlone) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const int threads : {-1, 0, 1}) {
    RunParts(5, threads,
             [&](std::size_t /*part*/) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  }
}

// Each part waits until all have begun, which they only do at once.
TEST(RunParts, RunAtOnceOnAsManyThreads) {
  constexpr std::size_t kParts = 3;
  constexpr auto kLongest = std::chrono::seconds(20);
  std::atomic<std::size_t> begun = 0;
  std::array<std::thread::id, kParts> threads;
  const auto start = std::chrono::steady_clock::now();
  RunParts(kParts, kParts, [&](std::size_t part) {
    threads[part] = std::this_thread::get_id();
    ++begun;
    while (begun < kParts && std::chrono::steady_clock::now() - start < kLongest) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, kLongest);
  EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), kParts);
  EXPECT_EQ(threads[0], std::this_thread::get_id());
}

TEST(RunParts, ThrowsWhatAPartThrows) {
  for (const std::size_t bad : {0U, 1U, 3U}) {
    std::atomic<int> ran = 0;
    EXPECT_THROW(RunParts(4, 4,
                          [&](std::size_t part) {
                            if (part == bad) throw std::runtime_error("bad");
                            ++ran;
                          }),
                 std::runtime_error);
    EXPECT_EQ(ran, 3) << "the others end first";
  }
}

TEST(ShareOut, GivesEachAtLeastSoManyThatFollowEachOther) {
  struct Share {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Case {
    std::size_t size;
    int threads;
    std::size_t parts;
  };
  for (const Case& c :
       {Case{0, 4, 1}, Case{99, 4, 1}, Case{199, 4, 1}, Case{200, 4, 2}, Case{399, 4, 3},
        Case{1001, 4, 4}, Case{1001, 1, 1}, Case{1001, 0, 1}, Case{100'000, 1000, kMostThreads}}) {
    std::array<Share, kMostThreads> shares;
    std::atomic<std::size_t> parts = 0;
    ShareOut(c.size, PartCount(c.size, 100, c.threads), c.threads,
             [&](std::size_t part, std::size_t begin, std::size_t end) {
               shares.at(part) = {begin, end};
               ++parts;
             });
    ASSERT_EQ(parts, c.parts) << c.size << " on " << c.threads;
    std::size_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      EXPECT_EQ(shares[part].begin, at);
      at = shares[part].end;
      EXPECT_LE(at - shares[part].begin, c.size / c.parts + 1) << "as even as can be";
      EXPECT_GE(at - shares[part].begin, c.parts > 1 ? 100U : 0U);
    }
    EXPECT_EQ(at, c.size);
  }
}

}  // namespace
}  // namespace stepcast
