// Structs that grow: one of which an older and a newer form is known.
#include "predictor/capi/struct_size.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace stepcast::capi {

struct Settings {  // as this library has it
  std::size_t struct_size;
  int first;
  int second;
  double later;  // since its second release
};
template <>
inline constexpr std::size_t kFirstSize<Settings> = offsetof(Settings, later);

namespace {

struct NewerSettings {
  Settings known;
  double newest;
};

Settings Defaults() { return {sizeof(Settings), 1, 2, 3}; }

TEST(TakeStruct, TakesOneOfTheSameRelease) {
  const Settings given = {sizeof given, 10, 20, 30};
  Settings taken = Defaults();
  ASSERT_TRUE(TakeStruct(&given, &taken));
  EXPECT_EQ(taken.first, 10);
  EXPECT_EQ(taken.second, 20);
  EXPECT_EQ(taken.later, 30);
}

TEST(TakeStruct, WhatAnOlderOneLacksKeepsItsDefault) {
  // What stands behind an older struct is not its own.
  const Settings given = {offsetof(Settings, later), 10, 20, -1};
  Settings taken = Defaults();
  ASSERT_TRUE(TakeStruct(&given, &taken));
  EXPECT_EQ(taken.second, 20);
  EXPECT_EQ(taken.later, 3);
  EXPECT_EQ(taken.struct_size, sizeof(Settings));
}

TEST(TakeStruct, ANewerOneMayAskForNothingNew) {
  NewerSettings given = {{sizeof given, 10, 20, 30}, 0};
  Settings taken = Defaults();
  ASSERT_TRUE(TakeStruct(&given.known, &taken));
  EXPECT_EQ(taken.later, 30);

  given.newest = 1e-300;
  taken = Defaults();
  EXPECT_FALSE(TakeStruct(&given.known, &taken));
  EXPECT_EQ(taken.first, 1) << "what is refused leaves the defaults";
}

// A kibibyte behind ours is the most, of which each byte counts.
TEST(TakeStruct, ATailIsSoLong) {
  constexpr std::size_t kMost = sizeof(Settings) + 1024;
  alignas(Settings) unsigned char bytes[kMost + 1] = {};
  auto* const given = reinterpret_cast<Settings*>(bytes);
  *given = {kMost, 10, 20, 30};
  Settings taken = Defaults();
  EXPECT_TRUE(TakeStruct(given, &taken));
  EXPECT_EQ(taken.second, 20);
  for (const std::size_t set : {sizeof(Settings), kMost - 1}) {
    bytes[set] = 1;
    EXPECT_FALSE(TakeStruct(given, &taken)) << set;
    EXPECT_TRUE(GiveStruct(Defaults(), given));
    EXPECT_EQ(bytes[set], 0) << set;
  }
  bytes[kMost] = 1;
  EXPECT_TRUE(TakeStruct(given, &taken)) << "which is not of it";
  EXPECT_TRUE(GiveStruct(Defaults(), given));
  EXPECT_EQ(bytes[kMost], 1);
  given->struct_size = kMost + 1;
  EXPECT_FALSE(TakeStruct(given, &taken));
}

TEST(TakeStruct, RefusesWhatCannotBe) {
  Settings taken = Defaults();
  EXPECT_FALSE(TakeStruct<Settings>(nullptr, &taken));
  for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t), offsetof(Settings, later) - 1,
                                 sizeof(Settings) + kLongestTail + 1, ~std::size_t{0}}) {
    const Settings given = {size, 10, 20, 30};
    EXPECT_FALSE(TakeStruct(&given, &taken)) << size;
  }
  EXPECT_EQ(taken.first, 1);
}

TEST(GiveStruct, FillsAsMuchAsThereIs) {
  const Settings ours = {sizeof ours, 10, 20, 30};
  Settings given = {sizeof given, 0, 0, 0};
  ASSERT_TRUE(GiveStruct(ours, &given));
  EXPECT_EQ(given.later, 30);

  given = {offsetof(Settings, later), 0, 0, -1};
  ASSERT_TRUE(GiveStruct(ours, &given));
  EXPECT_EQ(given.second, 20);
  EXPECT_EQ(given.later, -1) << "not the caller's to fill";
  EXPECT_EQ(given.struct_size, offsetof(Settings, later)) << "the size is the caller's";

  NewerSettings newer = {{sizeof newer, 0, 0, 0}, 7};
  ASSERT_TRUE(GiveStruct(ours, &newer.known));
  EXPECT_EQ(newer.known.later, 30);
  EXPECT_EQ(newer.newest, 0);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
}

TEST(GiveStruct, RefusesWhatCannotBe) {
  const Settings ours = {sizeof ours, 10, 20, 30};
  EXPECT_FALSE(GiveStruct<Settings>(ours, nullptr));
  Settings given = {3, 0, 0, 0};
  EXPECT_FALSE(GiveStruct(ours, &given));
  EXPECT_EQ(given.first, 0);
}

}  // namespace
}  // namespace stepcast::capi
