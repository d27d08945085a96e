// The C interface of a library without readers of files: what needs one says so, whatever it is
// given, and leaves nothing behind.
#include <gtest/gtest.h>
#include <stepcast.h>

#include <memory>
#include <string>

namespace stepcast {
namespace {

// `call(&out, &error)` of a function that would make a T.
template <class T, class Call>
void ExpectNotBuilt(const Call& call) {
  int somewhere = 0;
  T* out = reinterpret_cast<T*>(&somewhere);
  char* error = nullptr;
  EXPECT_EQ(call(&out, &error), STEPCAST_NOT_BUILT);
  EXPECT_EQ(out, nullptr);
  const std::unique_ptr<char, void (*)(char*)> text(error, stepcast_text_free);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("without readers of files"), std::string::npos) << error;
  EXPECT_EQ(call(&out, nullptr), STEPCAST_NOT_BUILT);
  T** const nowhere = nullptr;
  EXPECT_EQ(call(nowhere, nullptr), STEPCAST_BAD_ARGUMENT);
}

TEST(WithoutFiles, WhatNeedsAReaderSaysSo) {
  ExpectNotBuilt<stepcast_cluster>(
      [](auto** out, char** error) { return stepcast_cluster_read("a.yaml", out, error); });
  ExpectNotBuilt<stepcast_cluster>(
      [](auto** out, char** error) { return stepcast_cluster_parse("", "a", out, error); });
  ExpectNotBuilt<char>(
      [](auto** out, char** error) { return stepcast_cluster_format(nullptr, out, error); });
  ExpectNotBuilt<stepcast_device>(
      [](auto** out, char** error) { return stepcast_device_read("a.yaml", "t4", out, error); });
  ExpectNotBuilt<stepcast_workload>(
      [](auto** out, char** error) { return stepcast_workload_read("a.yaml", out, error); });
  ExpectNotBuilt<stepcast_workload>(
      [](auto** out, char** error) { return stepcast_workload_parse("", "a", out, error); });
  ExpectNotBuilt<stepcast_workload>([](auto** out, char** error) {
    return stepcast_workload_from_totals("a", 1, 4, out, error);
  });
  ExpectNotBuilt<char>(
      [](auto** out, char** error) { return stepcast_online_export(nullptr, out, error); });
  EXPECT_EQ(stepcast_online_import(nullptr, "{}", nullptr), STEPCAST_NOT_BUILT);
  ExpectNotBuilt<char>(
      [](auto** out, char** error) { return stepcast_fleet_export(nullptr, out, error); });
  EXPECT_EQ(stepcast_fleet_import(nullptr, "{}", nullptr), STEPCAST_NOT_BUILT);
}

// The rest works.
TEST(WithoutFiles, TheCatalogueAndPlansAreThere) {
  stepcast_workload* workload = nullptr;
  EXPECT_EQ(stepcast_workload_find("resnet50", &workload, nullptr), STEPCAST_OK);
  stepcast_workload_free(workload);
  stepcast_plan* plan = nullptr;
  ASSERT_EQ(stepcast_plan_create(&plan, nullptr), STEPCAST_OK);
  EXPECT_EQ(stepcast_plan_set_text(plan, "link", "10 Gbit/s", nullptr), STEPCAST_BAD_INPUT);
  EXPECT_EQ(stepcast_plan_set_text(plan, "link_gbit_per_s", "10", nullptr), STEPCAST_OK);
  stepcast_plan_free(plan);
}

}  // namespace
}  // namespace stepcast
