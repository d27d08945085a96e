// Online calibration of the C interface: what the C++ one learns and says.
#include <gtest/gtest.h>
#include <stepcast.h>

#include <limits>
#include <string>

#include "calibrate/online/online_calibration.h"
#include "data/io/online_record.h"
#include "tests/capi/support.h"

namespace stepcast {
namespace {

struct Both {
  OnlineHandle c;
  OnlineCalibration cpp;
};

OnlineHandle NewOnline() {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  return Get<OnlineHandle>([&](stepcast_online** made, char** error) {
    return stepcast_online_create(cluster.get(), workload.get(), nullptr, made, error);
  });
}

Both NewBoth() {
  const Cluster cluster = FittedCluster();
  return {NewOnline(), OnlineCalibration(cluster, *FindWorkload("resnet50"), cluster.device_facts)};
}

// Steps of the unequal plan that take a little longer each time.
void ObserveSome(Both* both, int count = 5) {
  const PlanHandle plan = UnequalPlanHandle();
  for (int i = 0; i < count; ++i) {
    const double step_time_s = 0.4 * (1 + 0.01 * i);
    const Observation expected = both->cpp.Observe(UnequalPlan(), Seconds(step_time_s));
    auto said = Sized<stepcast_observation>();
    char* error = nullptr;
    ASSERT_EQ(stepcast_online_observe(both->c.get(), plan.get(), step_time_s, &said, &error),
              STEPCAST_OK)
        << (error != nullptr ? error : "");
    EXPECT_PRED2(SameBits, said.predicted_s, expected.predicted.si());
    EXPECT_PRED2(SameBits, said.log_ratio, expected.log_ratio);
    EXPECT_PRED2(SameBits, said.surprise, expected.surprise);
    EXPECT_EQ(said.drifted, expected.drifted ? 1 : 0);
    EXPECT_EQ(said.rows, both->cpp.rows());
  }
}

Text Exported(const OnlineHandle& online) {
  char* text = nullptr;
  char* error = nullptr;
  EXPECT_EQ(stepcast_online_export(online.get(), &text, &error), STEPCAST_OK);
  EXPECT_EQ(error, nullptr);
  return Text(text);
}

// Of a device whose memory the file states: what the other says of the plan, and of one that is
// half as large.
TEST(CapiOnline, IsToldWhatDidNotFitInMemory) {
  Both both = NewBoth();
  ASSERT_EQ(stepcast_online_observe_out_of_memory(both.c.get(), UnequalPlanHandle().get(), nullptr),
            STEPCAST_OK);
  both.cpp.ObserveOutOfMemory(UnequalPlan());
  const std::string text(Exported(both.c).get());
  EXPECT_EQ(text, FormatOnlineRecord(both.cpp.Export()));
  EXPECT_NE(text.find("least_activations_bytes"), std::string::npos);
  EXPECT_EQ(stepcast_online_observe_out_of_memory(both.c.get(), nullptr, nullptr),
            STEPCAST_BAD_ARGUMENT);
}

TEST(CapiOnline, LearnsWhatTheOtherLearns) {
  Both both = NewBoth();
  EXPECT_EQ(stepcast_online_rows(both.c.get()), 0);
  ObserveSome(&both);
  EXPECT_EQ(stepcast_online_rows(both.c.get()), 5);
  EXPECT_EQ(stepcast_online_drifted(both.c.get()), both.cpp.drifted() ? 1 : 0);
  const auto cluster = Get<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_online_cluster(both.c.get(), made, error);
  });
  char* text = nullptr;
  ASSERT_EQ(stepcast_cluster_format(cluster.get(), &text, nullptr), STEPCAST_OK);
  const Text owned(text);
  EXPECT_EQ(std::string(text), FormatCluster(both.cpp.cluster()));
  // The observation is not needed.
  EXPECT_EQ(stepcast_online_observe(both.c.get(), UnequalPlanHandle().get(), 0.4, nullptr, nullptr),
            STEPCAST_OK);
  EXPECT_EQ(stepcast_online_rows(both.c.get()), 6);
}

TEST(CapiOnline, TellsOfADrift) {
  Both both = NewBoth();
  const PlanHandle plan = UnequalPlanHandle();
  EXPECT_EQ(stepcast_online_cause(both.c.get()), nullptr);
  std::string cause;
  bool drifted = false;
  for (int i = 0; i < 80; ++i) {
    const double seconds = (i < 40 ? 0.4 : 0.8) * (i % 2 == 0 ? 1.01 : 0.99);
    stepcast_observation said{};
    said.struct_size = sizeof said;
    ASSERT_EQ(stepcast_online_observe(both.c.get(), plan.get(), seconds, &said, nullptr),
              STEPCAST_OK);
    const std::string expected = both.cpp.Observe(UnequalPlan(), Seconds(seconds)).cause;
    const char* const told = stepcast_online_cause(both.c.get());
    EXPECT_EQ(told != nullptr, !expected.empty()) << i;
    EXPECT_EQ(told != nullptr ? told : "", expected) << i;
    if (told != nullptr) cause = told;
    EXPECT_EQ(stepcast_online_drifted(both.c.get()), both.cpp.drifted() ? 1 : 0) << i;
    EXPECT_EQ(said.drifted, both.cpp.drifted() ? 1 : 0) << i;
    drifted = drifted || both.cpp.drifted();
  }
  EXPECT_TRUE(drifted);
  EXPECT_FALSE(cause.empty());
  EXPECT_EQ(stepcast_online_cause(both.c.get()), nullptr) << "the last step has shown nothing new";
}

TEST(CapiOnline, ForgetsTheCauseOfWhatItHasImportedOver) {
  Both both = NewBoth();
  const PlanHandle plan = UnequalPlanHandle();
  const Text before = Exported(both.c);
  for (int i = 0; i < 80 && stepcast_online_cause(both.c.get()) == nullptr; ++i) {
    const double seconds = (i < 40 ? 0.4 : 0.8) * (i % 2 == 0 ? 1.01 : 0.99);
    ASSERT_EQ(stepcast_online_observe(both.c.get(), plan.get(), seconds, nullptr, nullptr),
              STEPCAST_OK);
  }
  ASSERT_NE(stepcast_online_cause(both.c.get()), nullptr) << "whoever wants no observation is told";
  EXPECT_EQ(stepcast_online_observe(both.c.get(), plan.get(), -1, nullptr, nullptr),
            STEPCAST_BAD_INPUT);
  EXPECT_NE(stepcast_online_cause(both.c.get()), nullptr) << "what is refused changes nothing";
  ASSERT_EQ(stepcast_online_import(both.c.get(), before.get(), nullptr), STEPCAST_OK);
  EXPECT_EQ(stepcast_online_cause(both.c.get()), nullptr);
}

TEST(CapiOnline, GoesOutAndIn) {
  Both both = NewBoth();
  ObserveSome(&both);
  const Text text = Exported(both.c);
  EXPECT_EQ(std::string(text.get()), FormatOnlineRecord(both.cpp.Export()));
  const OnlineHandle again = NewOnline();
  ExpectWorks([&](char** error) { return stepcast_online_import(again.get(), text.get(), error); });
  EXPECT_EQ(stepcast_online_rows(again.get()), 5);
  EXPECT_STREQ(Exported(again).get(), text.get());
}

TEST(CapiOnline, RefusesWhatIsNoStep) {
  const OnlineHandle online = NewOnline();
  const PlanHandle plan = UnequalPlanHandle();
  const auto observe = [&](double step_time_s) {
    return [&, step_time_s](char** error) {
      auto said = Sized<stepcast_observation>();
      const stepcast_status status =
          stepcast_online_observe(online.get(), plan.get(), step_time_s, &said, error);
      EXPECT_EQ(said.predicted_s, 0) << "what is refused fills nothing";
      return status;
    };
  };
  for (const double none : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    ExpectFails(STEPCAST_BAD_INPUT, "", observe(none));
  }
  SetText(plan, "strategy", "auto");
  ExpectFails(STEPCAST_BAD_INPUT, "auto", observe(0.4));
  SetText(plan, "strategy", "ps-sync");
  ExpectFails(STEPCAST_BAD_INPUT, "servers", observe(0.4));
  EXPECT_EQ(stepcast_online_rows(online.get()), 0) << "nothing was learnt";
  for (const char* text : {"", "{", "[]", "{\"version\": 99}", "calibration"}) {
    ExpectFails(STEPCAST_BAD_INPUT, "",
                [&](char** error) { return stepcast_online_import(online.get(), text, error); });
  }
  EXPECT_EQ(stepcast_online_rows(online.get()), 0);
}

TEST(CapiOnline, LearnsAWorkloadOfWhichOnlyTheSizeIsKnown) {
  const ClusterHandle cluster = FittedClusterHandle();
  const auto workload = Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
    return stepcast_workload_from_totals("mine", 1000, 0, made, error);
  });
  const auto online = Get<OnlineHandle>([&](stepcast_online** made, char** error) {
    return stepcast_online_create(cluster.get(), workload.get(), nullptr, made, error);
  });
  const PlanHandle plan = UnequalPlanHandle();
  auto said = Sized<stepcast_observation>();
  for (int i = 0; i < 5; ++i) {
    ExpectWorks([&](char** error) {
      return stepcast_online_observe(online.get(), plan.get(), 0.25, &said, error);
    });
  }
  EXPECT_NEAR(said.predicted_s, 0.25, 0.01);
}

TEST(CapiOnline, RefusesNull) {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  const OnlineHandle online = NewOnline();
  const PlanHandle plan = UnequalPlanHandle();
  stepcast_online* made = nullptr;
  stepcast_cluster* learnt = nullptr;
  char* text = nullptr;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "cluster is NULL", [&](char** error) {
    return stepcast_online_create(nullptr, workload.get(), nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "workload is NULL", [&](char** error) {
    return stepcast_online_create(cluster.get(), nullptr, nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_online_create(cluster.get(), workload.get(), nullptr, nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "online is NULL", [&](char** error) {
    return stepcast_online_observe(nullptr, plan.get(), 1, nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_online_observe(online.get(), nullptr, 1, nullptr, error);
  });
  stepcast_observation said = {};
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size of observation", [&](char** error) {
    return stepcast_online_observe(online.get(), plan.get(), 0.4, &said, error);
  });
  EXPECT_EQ(stepcast_online_rows(online.get()), 0) << "nothing was learnt";
  EXPECT_EQ(stepcast_online_rows(nullptr), -1);
  EXPECT_EQ(stepcast_online_drifted(nullptr), -1);
  EXPECT_EQ(stepcast_online_cause(nullptr), nullptr);
  ExpectFails(STEPCAST_BAD_ARGUMENT, "online is NULL",
              [&](char** error) { return stepcast_online_cluster(nullptr, &learnt, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_online_cluster(online.get(), nullptr, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "online is NULL",
              [&](char** error) { return stepcast_online_export(nullptr, &text, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_online_export(online.get(), nullptr, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "online is NULL",
              [&](char** error) { return stepcast_online_import(nullptr, "{}", error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "text is NULL",
              [&](char** error) { return stepcast_online_import(online.get(), nullptr, error); });
}

}  // namespace
}  // namespace stepcast
