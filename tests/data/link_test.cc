#include "data/record/link.h"

#include <gtest/gtest.h>

#include "data/record/link_path.h"

namespace stepcast {
namespace {

// Hosts and protocols take their share of a line rate; the nearest is so as a ratio.
TEST(NominalRate, IsTheNearestThatLinksAreSoldWith) {
  const struct {
    double found_mbit;
    double nominal_mbit;
  } cases[] = {{1, 10},        {94.1, 100},    {773, 1000},   {310, 100},
               {320, 1000},    {2400, 2500},   {9420, 10000}, {16000, 25000},
               {45000, 50000}, {390e3, 400e3}, {3e6, 400e3}};
  for (const auto& c : cases) {
    EXPECT_DOUBLE_EQ(NominalRate(MegabitsPerSecond(c.found_mbit)).in(kMegabitsPerSecond),
                     c.nominal_mbit)
        << c.found_mbit;
  }
}

TEST(LinkFacts, WhatIsKnownReplacesWhatWas) {
  LinkFacts base;
  base.bandwidth = GigabitsPerSecond(10.0);
  base.loss = 0.01;
  LinkFacts over;
  over.loss = 0.02;
  over.rtt = Milliseconds(1.0);
  const LinkFacts both = Overlay(base, over);
  EXPECT_EQ(both.bandwidth->si(), base.bandwidth->si());
  EXPECT_EQ(both.loss, 0.02);
  EXPECT_EQ(both.rtt->si(), over.rtt->si());
  EXPECT_FALSE(both.congestion_control || both.loss_burst);
  EXPECT_TRUE(LinkFacts().empty());
  EXPECT_FALSE(over.empty());
}

}  // namespace
}  // namespace stepcast
