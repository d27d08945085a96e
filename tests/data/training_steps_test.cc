// When steps began and ended, as a CSV tells.
#include <gtest/gtest.h>

#include "data/io/training_steps_file.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

TEST(TrainingSteps, RowsOfHostsInAnyOrder) {
  const std::vector<HostSteps> hosts = ParseTrainingSteps(
      "step,host,end_s,begin_s,compute_end_s,note\n"
      "1,n2,1769860801.5,1769860801,1769860801.25,x\n"
      "7,n1,1769860801.500000001,1769860801.123456789,,\n"
      "0,n2,1769860801,1769860800.5,,\n",
      "steps.csv");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].host, "n2");
  ASSERT_EQ(hosts[0].steps.size(), 2U);
  EXPECT_EQ(hosts[0].steps[0].number, 0);
  EXPECT_FALSE(hosts[0].steps[0].compute_end_ns);
  EXPECT_EQ(hosts[0].steps[1].compute_end_ns, 1769860801'250000000);
  EXPECT_EQ(hosts[1].host, "n1");
  // To the nanosecond, which no double holds.
  EXPECT_EQ(hosts[1].steps[0].begin_ns, 1769860801'123456789);
  EXPECT_EQ(hosts[1].steps[0].end_ns, 1769860801'500000001);
}

TEST(TrainingSteps, WithoutHostsTheyAreOfAll) {
  const std::vector<HostSteps> hosts =
      ParseTrainingSteps("step,begin_s,end_s,compute_end_s\n3,1,2,\n", "steps.csv");
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_EQ(hosts[0].host, "");
  ASSERT_EQ(hosts[0].steps.size(), 1U);
  EXPECT_EQ(hosts[0].steps[0].number, 3);
}

TEST(TrainingSteps, WhatIsWrongIsNamed) {
  const struct {
    const char* rows;
    const char* says;
  } cases[] = {
      {"0,1,2\n1,1.9,3\n", "steps.csv:3: begin_s: '1.900000000' lies in the step of line 2"},
      {"0,1,2\n0,2,3\n", "steps.csv:3: step: '0' is given twice"},
      {"0,2,2\n", "steps.csv:2: end_s: '2' is not after begin_s"},
      {"0,2,1\n", "is not after begin_s"},
      {"x,1,2\n", "steps.csv:2: step: 'x'"},
      {"0,now,2\n", "steps.csv:2: begin_s: 'now' is no time"},
      {"0,1e9,2e9\n", "is no time"},
      {"0,1.2.3,2\n", "is no time"},
      {"0,-1,2\n", "is out of range"},
      {"0,1,99999999999\n", "is out of range"},
      {"0,1,\n", "steps.csv:2: end_s: is no time"},
      {"", "steps.csv: has no steps"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] {
                       ParseTrainingSteps(std::string("step,begin_s,end_s\n") + c.rows,
                                          "steps.csv");
                     }),
                     c.says));
  }
  EXPECT_TRUE(Says(ErrorOf([] { ParseTrainingSteps("step,begin_s\n", "steps.csv"); }), "end_s"));
  EXPECT_TRUE(Says(ErrorOf([] {
                     ParseTrainingSteps("step,begin_s,end_s,compute_end_s\n0,1,2,3\n", "steps.csv");
                   }),
                   "compute_end_s: '3' lies outside of the step"));
}

}  // namespace
}  // namespace stepcast
