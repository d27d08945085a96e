// Out of memory: whichever allocation of a function fails, it says so, gives back what it took and
// lets no exception out. This executable's operator new is the library's too.
#include <gtest/gtest.h>
#include <stepcast.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "tests/capi/support.h"

namespace {

// Allocations of this thread before one fails, and those that were not freed; negative: none fails.
thread_local long left = -1;
thread_local long live = 0;

void* Allocate(std::size_t size) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  ++live;
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) --live;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }

namespace stepcast {
namespace {

// Beyond so many, only some allocations are tried: a reader has thousands of one kind.
constexpr long kAll = 300;
constexpr long kStride = 37;

// `act(&error)` cleans up behind itself. Lets each of its allocations fail in turn.
void ExpectNamesMissingMemory(const std::function<stepcast_status(char**)>& act) {
  ASSERT_EQ(act(nullptr), STEPCAST_OK);  // what is made once is made now
  stepcast_status status = STEPCAST_OUT_OF_MEMORY;
  long tried = 0;
  for (long n = 0; status != STEPCAST_OK; n += n < kAll ? 1 : kStride) {
    char* error = nullptr;
    const long before = live;
    left = n;
    status = act(&error);
    left = -1;
    const Text text(error);
    EXPECT_EQ(live, before) << "lost, with allocation " << n << " failing";
    if (status == STEPCAST_OK) break;
    ++tried;
    ASSERT_EQ(status, STEPCAST_OUT_OF_MEMORY) << n << ": " << (error != nullptr ? error : "");
    ASSERT_NE(error, nullptr);
    EXPECT_STREQ(error, "out of memory");
    ASSERT_LT(tried, 100'000);
  }
  EXPECT_GT(tried, 0) << "nothing is allocated through this executable";
}

template <class Handle, class Make>
auto MadeAndFreed(const Make& make) {
  return [make](char** error) {
    typename Handle::pointer made = nullptr;
    const stepcast_status status = make(&made, error);
    if (status != STEPCAST_OK && made != nullptr) std::abort();
    const Handle handle(made);
    return status;
  };
}

TEST(OutOfMemory, WhereHandlesAreMade) {
  const std::string cluster_text = "name: a\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n";
  ExpectNamesMissingMemory(MadeAndFreed<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_cluster_parse(cluster_text.c_str(), "a.yaml", made, error);
  }));
  const std::string path = MachineFile("ufrgs-tupi.yaml");
  ExpectNamesMissingMemory(MadeAndFreed<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_cluster_read(path.c_str(), made, error);
  }));
  const std::string gpus = MachineFile("gpus.yaml");
  ExpectNamesMissingMemory(MadeAndFreed<DeviceHandle>([&](stepcast_device** made, char** error) {
    return stepcast_device_read(gpus.c_str(), "t4", made, error);
  }));
  ExpectNamesMissingMemory(MadeAndFreed<WorkloadHandle>([](stepcast_workload** made, char** error) {
    return stepcast_workload_find("resnet50", made, error);
  }));
  ExpectNamesMissingMemory(MadeAndFreed<WorkloadHandle>([](stepcast_workload** made, char** error) {
    return stepcast_workload_from_totals("mine", 1000, 0, made, error);
  }));
  ExpectNamesMissingMemory(MadeAndFreed<PlanHandle>(stepcast_plan_create));
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  ExpectNamesMissingMemory(
      MadeAndFreed<PredictorHandle>([&](stepcast_predictor** made, char** error) {
        return stepcast_predictor_create(cluster.get(), workload.get(), nullptr, made, error);
      }));
  ExpectNamesMissingMemory(MadeAndFreed<OnlineHandle>([&](stepcast_online** made, char** error) {
    return stepcast_online_create(cluster.get(), workload.get(), nullptr, made, error);
  }));
  ExpectNamesMissingMemory(MadeAndFreed<FleetHandle>([&](stepcast_fleet** made, char** error) {
    return stepcast_fleet_create(cluster.get(), made, error);
  }));
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  ExpectNamesMissingMemory(
      MadeAndFreed<PredictionHandle>([&](stepcast_prediction** made, char** error) {
        return stepcast_predictor_predict(predictor.get(), plan.get(), made, error);
      }));
  ExpectNamesMissingMemory(
      MadeAndFreed<CompiledHandle>([&](stepcast_compiled** made, char** error) {
        return stepcast_compiled_create(predictor.get(), plan.get(), nullptr, made, error);
      }));
}

TEST(OutOfMemory, WhereTextsAreMadeAndRead) {
  const ClusterHandle cluster = FittedClusterHandle();
  ExpectNamesMissingMemory([&](char** error) {
    char* text = nullptr;
    const stepcast_status status = stepcast_cluster_format(cluster.get(), &text, error);
    stepcast_text_free(text);
    return status;
  });
  ExpectNamesMissingMemory([&](char** error) {
    const PlanHandle plan(nullptr);
    stepcast_plan* made = nullptr;
    stepcast_status status = stepcast_plan_create(&made, error);
    const PlanHandle owned(made);
    if (status == STEPCAST_OK) {
      status = stepcast_plan_set_text(made, "placement", "4-4-4-4-4-4-4-4-4-4-4-4-4-4-4-4", error);
    }
    if (status == STEPCAST_OK) status = stepcast_plan_set_number(made, "rtt_ms", 0.125, error);
    return status;
  });
}

TEST(OutOfMemory, WhereAFleetChanges) {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("mlp_mnist");
  const PlanHandle plan = UnequalPlanHandle();
  ExpectNamesMissingMemory([&](char** error) {
    stepcast_fleet* made = nullptr;
    stepcast_status status = stepcast_fleet_create(cluster.get(), &made, error);
    const FleetHandle fleet(made);
    stepcast_online* job = nullptr;
    if (status == STEPCAST_OK) {
      status = stepcast_fleet_add(made, "a", workload.get(), nullptr, &job, error);
    }
    const OnlineHandle online(job);
    if (status == STEPCAST_OK) {
      status = stepcast_online_observe(job, plan.get(), 0.25, nullptr, error);
    }
    if (status == STEPCAST_OK) status = stepcast_fleet_end(made, "a", error);
    std::size_t count = 1;
    if (status == STEPCAST_OK) stepcast_fleet_jobs(made, &count);
    if (status == STEPCAST_OK && count != 0) std::abort();
    return status;
  });
}

}  // namespace
}  // namespace stepcast
