// The values made last are kept, and so many of them.
#include "predictor/serve/lru_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stepcast::serve {
namespace {

TEST(LruCache, MakesOnceAndDropsWhatWasNotUsedForLongest) {
  LruCache<int> cache(2);
  int made = 0;
  const auto get = [&](const std::string& key) { return cache.GetOr(key, [&] { return ++made; }); };
  EXPECT_EQ(get("a"), 1);
  EXPECT_EQ(get("b"), 2);
  EXPECT_EQ(get("a"), 1);
  EXPECT_EQ(get("c"), 3) << "in place of b";
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(get("a"), 1);
  EXPECT_EQ(get("b"), 4);
}

TEST(LruCache, KeepsNothingOfAFailure) {
  LruCache<int> cache(2);
  EXPECT_THROW(cache.GetOr("a", []() -> int { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.GetOr("a", [] { return 7; }), 7);
}

TEST(LruCache, ManyThreadsSeeOneValueForAKey) {
  LruCache<int> cache(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const int key = (i * 7 + t) % 9;
        if (cache.GetOr(std::to_string(key), [&] { return key; }) != key) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.size(), 4U);
}

}  // namespace
}  // namespace stepcast::serve
