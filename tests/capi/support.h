// Shared by the tests of the C interface: handles that free themselves, and a cluster with a few
// fitted parameters.
#ifndef STEPCAST_TESTS_CAPI_SUPPORT_H_
#define STEPCAST_TESTS_CAPI_SUPPORT_H_

#include <gtest/gtest.h>
#include <stepcast.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "data/io/machines.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"

namespace stepcast {

template <auto free_function>
struct Freed {
  template <class T>
  void operator()(T* handle) const {
    free_function(handle);
  }
};
using ClusterHandle = std::unique_ptr<stepcast_cluster, Freed<stepcast_cluster_free>>;
using DeviceHandle = std::unique_ptr<stepcast_device, Freed<stepcast_device_free>>;
using WorkloadHandle = std::unique_ptr<stepcast_workload, Freed<stepcast_workload_free>>;
using PlanHandle = std::unique_ptr<stepcast_plan, Freed<stepcast_plan_free>>;
using PredictorHandle = std::unique_ptr<stepcast_predictor, Freed<stepcast_predictor_free>>;
using PredictionHandle = std::unique_ptr<stepcast_prediction, Freed<stepcast_prediction_free>>;
using CompiledHandle = std::unique_ptr<stepcast_compiled, Freed<stepcast_compiled_free>>;
using OnlineHandle = std::unique_ptr<stepcast_online, Freed<stepcast_online_free>>;
using FleetHandle = std::unique_ptr<stepcast_fleet, Freed<stepcast_fleet_free>>;
using Text = std::unique_ptr<char, Freed<stepcast_text_free>>;

// The handle that `make(&handle, &error)` makes, which must not fail.
template <class Handle, class Make>
Handle Get(const Make& make) {
  typename Handle::pointer made = nullptr;
  char* error = nullptr;
  const stepcast_status status = make(&made, &error);
  const Text text(error);
  EXPECT_EQ(status, STEPCAST_OK) << (error != nullptr ? error : "");
  EXPECT_EQ(error, nullptr);
  EXPECT_NE(made, nullptr);
  return Handle(made);
}

// `call(&error)` must fail with that status and a line that says so; and fail alike for who does
// not want the text.
template <class Call>
void ExpectFails(stepcast_status status, const std::string& fragment, const Call& call) {
  char* error = nullptr;
  EXPECT_EQ(call(&error), status) << fragment;
  const Text text(error);
  if (error == nullptr) {
    ADD_FAILURE() << "no text that says " << fragment;
    return;
  }
  const std::string said = error;
  EXPECT_NE(said.find(fragment), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_EQ(call(nullptr), status) << said;
}

// Calls that work set a stale text to NULL.
template <class Call>
void ExpectWorks(const Call& call) {
  char stale[] = "stale";
  char* error = stale;
  EXPECT_EQ(call(&error), STEPCAST_OK) << (error != nullptr ? error : "");
  if (error != stale) {
    const Text text(error);
    EXPECT_EQ(error, nullptr);
  } else {
    ADD_FAILURE() << "the text was not reset";
  }
  EXPECT_EQ(call(nullptr), STEPCAST_OK);
}

// Whether two doubles have the same bits; all that are not a number count as equal.
inline bool SameBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

inline std::string MachineFile(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/data/machines/" + name;
}

// Four nodes of four devices whose link and whose ResNet-50 were fitted.
inline Cluster FittedCluster() {
  Cluster cluster;
  cluster.name = "fitted";
  cluster.device = "t4";
  cluster.nodes = 4;
  cluster.devices_per_node = 4;
  cluster.link.bandwidth = GigabitsPerSecond(10.0);
  Device t4;
  t4.name = "t4";
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory = Gibibytes(16.0);
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  cluster.device_facts = t4;
  Calibration calibration;
  const std::string scope = WorkloadScope(*FindWorkload("resnet50"), "t4");
  const auto add = [&](const std::string& of, const char* name, const char* unit, double value) {
    ParameterEstimate p;
    p.scope = of;
    p.name = name;
    p.unit = unit;
    p.value = value;
    p.log_sd = 0.05;
    p.prior_value = value;
    p.prior_log_sd = 1;
    p.decided_by = DecidedBy::kData;
    calibration.parameters.push_back(p);
  };
  add(kClusterScope, "link_bandwidth", "Gbit/s", 9.2);
  add(kClusterScope, "flow_bandwidth", "Gbit/s", 6.5);
  add(scope, "fixed_time", "ms", 12);
  add(scope, "floor_time", "ms", 25);
  add(scope, "sample_time", "ms", 5);
  add(scope, "straggler_spread", "", 0.04);
  add(scope, "update_time", "ms", 2);
  calibration.log_covariance = 0.0025 * Eigen::MatrixXd::Identity(7, 7);
  calibration.residual_log_sd = 0.03;
  calibration.version = "0";
  calibration.sources = {{"made.csv", 20}};
  calibration.range.max_workers = 8;
  calibration.range.max_nodes = 4;
  calibration.range.max_devices_per_node = 4;
  calibration.range.local_batch[scope] = {16, 64, 8};
  cluster.calibration = calibration;
  return ParseCluster(FormatCluster(cluster), "fitted.yaml");
}

inline ClusterHandle FittedClusterHandle() {
  const std::string text = FormatCluster(FittedCluster());
  return Get<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_cluster_parse(text.c_str(), "fitted.yaml", made, error);
  });
}

inline WorkloadHandle FindWorkloadHandle(const char* name) {
  return Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
    return stepcast_workload_find(name, made, error);
  });
}

inline PredictorHandle FittedPredictorHandle() {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  return Get<PredictorHandle>([&](stepcast_predictor** made, char** error) {
    return stepcast_predictor_create(cluster.get(), workload.get(), nullptr, made, error);
  });
}

inline Predictor FittedPredictor() {
  const Cluster cluster = FittedCluster();
  return {cluster, *FindWorkload("resnet50"), cluster.device_facts};
}

inline PlanHandle NewPlan() { return Get<PlanHandle>(stepcast_plan_create); }

inline void SetText(const PlanHandle& plan, const char* field, const char* value) {
  ExpectWorks(
      [&](char** error) { return stepcast_plan_set_text(plan.get(), field, value, error); });
}
inline void SetNumber(const PlanHandle& plan, const char* field, double value) {
  ExpectWorks(
      [&](char** error) { return stepcast_plan_set_number(plan.get(), field, value, error); });
}

// 4-4-2 with a ring and a local batch of 32, in C and in C++.
inline PlanHandle UnequalPlanHandle() {
  PlanHandle plan = NewPlan();
  SetText(plan, "placement", "4-4-2");
  SetText(plan, "strategy", "ring");
  SetNumber(plan, "local_batch", 32);
  return plan;
}
inline Plan UnequalPlan() {
  Plan plan;
  plan.placement = {4, 4, 2};
  plan.strategy = Strategy::kRing;
  plan.local_batch = 32;
  return plan;
}

inline CompiledHandle Compile(const PredictorHandle& predictor, const PlanHandle& plan) {
  return Get<CompiledHandle>([&](stepcast_compiled** made, char** error) {
    return stepcast_compiled_create(predictor.get(), plan.get(), nullptr, made, error);
  });
}

// A struct of the interface as who uses it begins.
template <class T>
T Sized() {
  T made{};
  made.struct_size = sizeof made;
  return made;
}

// The struct as a newer header would have it.
template <class T>
struct Grown {
  T known;
  double unknown;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_CAPI_SUPPORT_H_
