// What waits for a thread is bounded.
#include "predictor/serve/work_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace stepcast::serve {
namespace {

TEST(WorkPool, TakesAsManyAsMayWait) {
  WorkPool pool(0, 2);  // nobody works, so that all wait
  std::atomic<int> ran{0};
  const auto post = [&] { return pool.Post([&] { ++ran; }); };
  EXPECT_TRUE(post());
  EXPECT_TRUE(post());
  EXPECT_FALSE(post());
  pool.Stop();
  EXPECT_FALSE(post());
  EXPECT_EQ(ran, 0) << "what waits is dropped";
}

// What runs waits no longer.
TEST(WorkPool, WhatRunsMakesRoom) {
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<int> ran{0};
  WorkPool pool(1, 1);
  ASSERT_TRUE(pool.Post([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();
  std::promise<void> done;
  EXPECT_TRUE(pool.Post([&] {
    ++ran;
    done.set_value();
  }));
  EXPECT_FALSE(pool.Post([&] { ++ran; }));
  go_on.set_value();
  done.get_future().wait();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace stepcast::serve
