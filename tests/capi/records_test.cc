// Clusters, devices, workloads, plans and predictions of the C interface: they say what the C++
// ones say, and refuse with a status and a line.
#include <gtest/gtest.h>
#include <stepcast.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <locale>
#include <string>
#include <utility>
#include <vector>

#include "data/io/workload_file.h"
#include "data/plan/fields.h"
#include "predictor/search/unequal.h"
#include "tests/capi/support.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

// ---- Version and status

TEST(Version, IsTheProjects) {
  const std::string version = std::to_string(stepcast_version_major()) + "." +
                              std::to_string(stepcast_version_minor()) + "." +
                              std::to_string(stepcast_version_patch());
  EXPECT_EQ(version, STEPCAST_PROJECT_VERSION);
  EXPECT_EQ(version, stepcast_version());
  EXPECT_EQ(stepcast_abi(), STEPCAST_ABI) << "the soname has this number";
}

TEST(Status, EachHasAText) {
  std::vector<std::string> texts;
  for (stepcast_status s = STEPCAST_OK; s <= STEPCAST_NOT_BUILT; ++s) {
    texts.emplace_back(stepcast_status_text(s));
  }
  EXPECT_EQ(texts.front(), "ok");
  for (int32_t s = STEPCAST_QUERY_OK; s <= STEPCAST_QUERY_BAD_SLOW_NODES; ++s) {
    EXPECT_STREQ(stepcast_query_status_text(s), QueryStatusText(static_cast<QueryStatus>(s)));
  }
  EXPECT_STREQ(stepcast_query_status_text(STEPCAST_QUERY_BAD_SLOW_NODES + 1), "unknown status");
  for (const int32_t none : {-1, 1000, std::numeric_limits<int32_t>::min()}) {
    EXPECT_STREQ(stepcast_status_text(none), "unknown status");
    EXPECT_STREQ(stepcast_query_status_text(none), "unknown status");
  }
  EXPECT_STREQ(stepcast_status_text(STEPCAST_NOT_BUILT + 1), "unknown status")
      << "a status without a text, or a text without a status";
}

TEST(Free, OfNullIsNothing) {
  stepcast_text_free(nullptr);
  stepcast_cluster_free(nullptr);
  stepcast_device_free(nullptr);
  stepcast_workload_free(nullptr);
  stepcast_plan_free(nullptr);
  stepcast_predictor_free(nullptr);
  stepcast_prediction_free(nullptr);
  stepcast_compiled_free(nullptr);
  stepcast_online_free(nullptr);
}

// ---- Clusters

TEST(CapiCluster, ReadsAFile) {
  const std::string path = MachineFile("ufrgs-tupi.yaml");
  const auto cluster = Get<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_cluster_read(path.c_str(), made, error);
  });
  auto info = Sized<stepcast_cluster_info>();
  ASSERT_EQ(stepcast_cluster_get_info(cluster.get(), &info), STEPCAST_OK);
  EXPECT_STREQ(info.name, "ufrgs-tupi");
  EXPECT_STREQ(info.device, "rtx_4090");
  EXPECT_EQ(info.nodes, 4);
  EXPECT_EQ(info.devices_per_node, 1);
  EXPECT_EQ(info.describes_device, 0);
  EXPECT_EQ(info.calibrated, 0);
}

TEST(CapiCluster, TextGoesOutAndIn) {
  const ClusterHandle cluster = FittedClusterHandle();
  auto info = Sized<stepcast_cluster_info>();
  ASSERT_EQ(stepcast_cluster_get_info(cluster.get(), &info), STEPCAST_OK);
  EXPECT_EQ(info.describes_device, 1);
  EXPECT_EQ(info.calibrated, 1);
  char* text = nullptr;
  ExpectWorks([&](char** error) {
    stepcast_text_free(text);
    return stepcast_cluster_format(cluster.get(), &text, error);
  });
  const Text owned(text);
  EXPECT_EQ(std::string(text), FormatCluster(FittedCluster()));
}

TEST(CapiCluster, RefusesBadFiles) {
  stepcast_cluster* made = nullptr;
  const auto parse = [&](const char* text) {
    return [&made, text](char** error) {
      return stepcast_cluster_parse(text, "mine.yaml", &made, error);
    };
  };
  ExpectFails(STEPCAST_BAD_INPUT, "/no/such.yaml",
              [&](char** error) { return stepcast_cluster_read("/no/such.yaml", &made, error); });
  ExpectFails(STEPCAST_BAD_INPUT, "mine.yaml", parse(""));
  ExpectFails(STEPCAST_BAD_INPUT, "mine.yaml", parse("name: [a"));
  ExpectFails(STEPCAST_BAD_INPUT, "mine.yaml", parse("name: a\nname: b\n"));
  ExpectFails(STEPCAST_BAD_INPUT, "mine.yaml:3: nodes",
              parse("name: a\ndevice: t4\nnodes: many\ndevices_per_node: 1\n"));
  ExpectFails(STEPCAST_BAD_INPUT, "mine.yaml", parse("name: \xff\xfe\ndevice: t4\nnodes: x\n"));
  EXPECT_EQ(made, nullptr);
}

TEST(CapiCluster, RefusesNull) {
  const ClusterHandle cluster = FittedClusterHandle();
  stepcast_cluster* made = nullptr;
  char* text = nullptr;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "path is NULL",
              [&](char** error) { return stepcast_cluster_read(nullptr, &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_cluster_read(MachineFile("ufrgs-tupi.yaml").c_str(), nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "text is NULL",
              [&](char** error) { return stepcast_cluster_parse(nullptr, "mine", &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "name is NULL", [&](char** error) {
    return stepcast_cluster_parse("name: a", nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_cluster_parse("name: a", "mine", nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "cluster is NULL",
              [&](char** error) { return stepcast_cluster_format(nullptr, &text, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_cluster_format(cluster.get(), nullptr, error); });
  auto info = Sized<stepcast_cluster_info>();
  EXPECT_EQ(stepcast_cluster_get_info(nullptr, &info), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_cluster_get_info(cluster.get(), nullptr), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(info.name, nullptr);
  info.struct_size = 4;
  EXPECT_EQ(stepcast_cluster_get_info(cluster.get(), &info), STEPCAST_BAD_ARGUMENT);
}

// What could not be made is NULL, whatever stood there.
TEST(Handles, AreNullAfterAFailure) {
  int stale = 0;
  auto* cluster = reinterpret_cast<stepcast_cluster*>(&stale);
  EXPECT_EQ(stepcast_cluster_parse("", "mine", &cluster, nullptr), STEPCAST_BAD_INPUT);
  EXPECT_EQ(cluster, nullptr);
  auto* workload = reinterpret_cast<stepcast_workload*>(&stale);
  EXPECT_EQ(stepcast_workload_find(nullptr, &workload, nullptr), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(workload, nullptr);
}

TEST(Structs, NewerOnesAreFilledAsFarAsKnown) {
  const ClusterHandle cluster = FittedClusterHandle();
  Grown<stepcast_cluster_info> newer{};
  newer.known.struct_size = sizeof newer;
  newer.unknown = 7;
  ASSERT_EQ(stepcast_cluster_get_info(cluster.get(), &newer.known), STEPCAST_OK);
  EXPECT_EQ(newer.known.nodes, 4);
  EXPECT_EQ(newer.unknown, 0);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
}

// ---- Devices

TEST(CapiDevice, IsFoundByAnyOfItsNames) {
  const std::string path = MachineFile("gpus.yaml");
  for (const char* name : {"rtx_4090", "RTX 4090", "rtx-4090"}) {
    const auto device = Get<DeviceHandle>([&](stepcast_device** made, char** error) {
      return stepcast_device_read(path.c_str(), name, made, error);
    });
    EXPECT_STREQ(stepcast_device_name(device.get()), "rtx_4090");
  }
  EXPECT_EQ(stepcast_device_name(nullptr), nullptr);
}

TEST(CapiDevice, RefusesWhatIsNone) {
  const std::string path = MachineFile("gpus.yaml");
  stepcast_device* made = nullptr;
  ExpectFails(STEPCAST_NOT_FOUND,
              "gpus.yaml: devices: 'abacus' is not among them; allowed: ", [&](char** error) {
                return stepcast_device_read(path.c_str(), "abacus", &made, error);
              });
  ExpectFails(STEPCAST_BAD_INPUT, "/no/such.yaml", [&](char** error) {
    return stepcast_device_read("/no/such.yaml", "t4", &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "path is NULL",
              [&](char** error) { return stepcast_device_read(nullptr, "t4", &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "name is NULL", [&](char** error) {
    return stepcast_device_read(path.c_str(), nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_device_read(path.c_str(), "t4", nullptr, error);
  });
  EXPECT_EQ(made, nullptr);
}

// ---- Workloads

void ExpectSame(const WorkloadHandle& handle, const Workload& workload) {
  auto info = Sized<stepcast_workload_info>();
  ASSERT_EQ(stepcast_workload_get_info(handle.get(), &info), STEPCAST_OK);
  EXPECT_EQ(info.name, workload.name);
  EXPECT_EQ(info.title, workload.title);
  EXPECT_EQ(info.parameters, workload.parameters);
  EXPECT_EQ(info.trainable_parameters, workload.trainable_parameters);
  EXPECT_EQ(info.gradient_bytes, workload.gradient_bytes.in(kBytes));
  EXPECT_EQ(info.layers, static_cast<int64_t>(workload.layers.size()));
}

TEST(CapiWorkload, TheWholeCatalogueIsFound) {
  for (const std::string& name : WorkloadNames()) {
    ExpectSame(FindWorkloadHandle(name.c_str()), *FindWorkload(name));
  }
}

TEST(CapiWorkload, DecodersAreFoundByTheirNumbers) {
  const char* name = "gpt:layers=24:hidden=2048:heads=16@2048";
  ExpectSame(FindWorkloadHandle(name), *FindWorkload(name));
}

TEST(CapiWorkload, ReadsFilesAndTexts) {
  const std::string text = FormatWorkload(*FindWorkload("mlp_mnist"));
  const TempFolder folder;
  const std::string path = folder.Write("mine.yaml", text);
  ExpectSame(Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
               return stepcast_workload_read(path.c_str(), made, error);
             }),
             ReadWorkload(path));
  ExpectSame(Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
               return stepcast_workload_parse(text.c_str(), "mine", made, error);
             }),
             ParseWorkload(text, "mine"));
}

TEST(CapiWorkload, IsMadeOfItsTotals) {
  const auto totals = [](const char* name, int64_t parameters, int64_t bytes) {
    const auto handle = Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
      return stepcast_workload_from_totals(name, parameters, bytes, made, error);
    });
    auto info = Sized<stepcast_workload_info>();
    EXPECT_EQ(stepcast_workload_get_info(handle.get(), &info), STEPCAST_OK);
    EXPECT_STREQ(info.name, name);
    EXPECT_EQ(info.layers, 0);
    return std::pair(info.parameters, info.gradient_bytes);
  };
  using Totals = std::pair<int64_t, double>;
  EXPECT_EQ(totals("mine", 1'000'000, 0), Totals(1'000'000, 4e6));
  EXPECT_EQ(totals("mine", 0, 4'000'000), Totals(1'000'000, 4e6));
  EXPECT_EQ(totals("mine", 1'000'000, 2'000'000), Totals(1'000'000, 2e6));
  EXPECT_EQ(totals("it's \"mine\": {a} \\ # ?", 10, 0), Totals(10, 40.0));
}

// What the file of a workload says, a call says of any: a copy of its parameters, half of its
// activations, and two numbers of state.
TEST(CapiWorkload, SaysHowItIsTrained) {
  const WorkloadHandle handle = FindWorkloadHandle("resnet50");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "precision"), "fp32");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "optimizer"), "momentum");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "attention"), "plain");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "recompute"), "none");
  EXPECT_EQ(stepcast_workload_get_text(handle.get(), "name"), nullptr);
  EXPECT_EQ(stepcast_workload_get_text(handle.get(), nullptr), nullptr);
  EXPECT_EQ(stepcast_workload_get_text(nullptr, "precision"), nullptr);
  const auto set = [&](const char* fact, const char* value) {
    return [=, &handle](char** error) {
      return stepcast_workload_set_text(handle.get(), fact, value, error);
    };
  };
  EXPECT_EQ(set("precision", "bf16")(nullptr), STEPCAST_OK);
  EXPECT_EQ(set("optimizer", "adam")(nullptr), STEPCAST_OK);
  EXPECT_EQ(set("attention", "fused")(nullptr), STEPCAST_OK);
  EXPECT_EQ(set("recompute", "full")(nullptr), STEPCAST_OK);
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "precision"), "bf16");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "optimizer"), "adam");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "attention"), "fused");
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "recompute"), "full");
  ExpectFails(STEPCAST_BAD_INPUT, "precision: 'fp64' is not a precision", set("precision", "fp64"));
  ExpectFails(STEPCAST_BAD_INPUT, "allowed: sgd, momentum, adam", set("optimizer", "lion"));
  ExpectFails(STEPCAST_BAD_INPUT, "allowed: none, selective, full", set("recompute", "some"));
  ExpectFails(STEPCAST_BAD_INPUT, "'layers' is not a fact that can be set; allowed: precision, opt",
              set("layers", "3"));
  ExpectFails(STEPCAST_BAD_ARGUMENT, "fact is NULL", set(nullptr, "fp32"));
  ExpectFails(STEPCAST_BAD_ARGUMENT, "value is NULL", set("precision", nullptr));
  ExpectFails(STEPCAST_BAD_ARGUMENT, "workload is NULL", [](char** error) {
    return stepcast_workload_set_text(nullptr, "precision", "fp32", error);
  });
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "precision"), "bf16") << "as it was";
}

TEST(CapiWorkload, IsTrainedAsTheFittedRunsWere) {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle handle = FindWorkloadHandle("resnet50");
  const auto train = [&](char** error) {
    return stepcast_workload_train_as_fitted(handle.get(), cluster.get(), error);
  };
  ASSERT_EQ(stepcast_workload_set_text(handle.get(), "precision", "bf16", nullptr), STEPCAST_OK);
  EXPECT_EQ(train(nullptr), STEPCAST_OK);
  EXPECT_STREQ(stepcast_workload_get_text(handle.get(), "precision"), "fp32");
  ExpectFails(STEPCAST_BAD_ARGUMENT, "cluster is NULL", [&](char** error) {
    return stepcast_workload_train_as_fitted(handle.get(), nullptr, error);
  });
}

TEST(CapiWorkload, RefusesWhatIsNone) {
  stepcast_workload* made = nullptr;
  const auto totals = [&made](const char* name, int64_t parameters, int64_t bytes) {
    return [=, &made](char** error) {
      return stepcast_workload_from_totals(name, parameters, bytes, &made, error);
    };
  };
  ExpectFails(
      STEPCAST_NOT_FOUND,
      "workload: 'resnet5000' is not in the catalogue (did you mean resnet200?); allowed: alexnet",
      [&](char** error) { return stepcast_workload_find("resnet5000", &made, error); });
  ExpectFails(
      STEPCAST_NOT_FOUND,
      "'llama3_1_8b@4096' is not in the catalogue (did you mean llama3.1_8b@4096?); allowed: "
      "alexnet, bert_base, bert_large, bloom_7b1, codellama_34b, ",
      [&](char** error) { return stepcast_workload_find("llama3_1_8b@4096", &made, error); });
  ExpectFails(STEPCAST_BAD_INPUT, "/no/such.yaml",
              [&](char** error) { return stepcast_workload_read("/no/such.yaml", &made, error); });
  ExpectFails(STEPCAST_BAD_INPUT, "mine: parameters", [&](char** error) {
    return stepcast_workload_parse("name: a", "mine", &made, error);
  });
  ExpectFails(STEPCAST_BAD_INPUT, "parameters: is a required key", totals("mine", 0, 0));
  ExpectFails(STEPCAST_BAD_INPUT, "parameters: '-1'", totals("mine", -1, 0));
  ExpectFails(STEPCAST_BAD_INPUT, "gradient_bytes: '3'", totals("mine", 0, 3));
  ExpectFails(STEPCAST_BAD_INPUT, "parameters: '9223372036854775807'",
              totals("mine", std::numeric_limits<int64_t>::max(), 0));
  ExpectFails(STEPCAST_BAD_ARGUMENT, "name is NULL", totals(nullptr, 1, 0));
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_workload_from_totals("mine", 1, 0, nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "name is NULL",
              [&](char** error) { return stepcast_workload_find(nullptr, &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_workload_find("vgg16", nullptr, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "path is NULL",
              [&](char** error) { return stepcast_workload_read(nullptr, &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_workload_read("mine", nullptr, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "text is NULL",
              [&](char** error) { return stepcast_workload_parse(nullptr, "mine", &made, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "name is NULL", [&](char** error) {
    return stepcast_workload_parse("name: a", nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_workload_parse("name: a", "mine", nullptr, error);
  });
  EXPECT_EQ(made, nullptr);
  auto info = Sized<stepcast_workload_info>();
  EXPECT_EQ(stepcast_workload_get_info(nullptr, &info), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_workload_get_info(FindWorkloadHandle("vgg16").get(), nullptr),
            STEPCAST_BAD_ARGUMENT);
}

// ---- Plans, and what is predicted for them

PredictionHandle PredictionOf(const PredictorHandle& predictor, const PlanHandle& plan) {
  return Get<PredictionHandle>([&](stepcast_prediction** made, char** error) {
    return stepcast_predictor_predict(predictor.get(), plan.get(), made, error);
  });
}

void ExpectSame(const PredictionHandle& handle, const Prediction& p) {
  auto v = Sized<stepcast_prediction_values>();
  ASSERT_EQ(stepcast_prediction_get_values(handle.get(), &v), STEPCAST_OK);
  EXPECT_PRED2(SameBits, v.step_time_s, p.step_time.si());
  EXPECT_PRED2(SameBits, v.low_s, p.low.si());
  EXPECT_PRED2(SameBits, v.high_s, p.high.si());
  EXPECT_PRED2(SameBits, v.log_sd, p.log_sd);
  EXPECT_PRED2(SameBits, v.p50_s, p.p50.si());
  EXPECT_PRED2(SameBits, v.p95_s, p.p95.si());
  EXPECT_PRED2(SameBits, v.p99_s, p.p99.si());
  EXPECT_PRED2(SameBits, v.throughput_samples_per_s, p.throughput.in(kSamplesPerSecond));
  EXPECT_PRED2(SameBits, v.forward_s, p.breakdown.forward.si());
  EXPECT_PRED2(SameBits, v.backward_s, p.breakdown.backward.si());
  EXPECT_PRED2(SameBits, v.update_s, p.breakdown.update.si());
  EXPECT_PRED2(SameBits, v.exposed_latency_s, p.breakdown.exposed_latency.si());
  EXPECT_PRED2(SameBits, v.exposed_transfer_s, p.breakdown.exposed_transfer.si());
  EXPECT_PRED2(SameBits, v.straggler_wait_s, p.breakdown.straggler_wait.si());
  EXPECT_PRED2(SameBits, v.input_wait_s, p.breakdown.input_wait.si());
  EXPECT_PRED2(SameBits, v.coding_s, p.breakdown.coding.si());
  EXPECT_PRED2(SameBits, v.synchronisation_s, p.breakdown.synchronisation.si());
  EXPECT_PRED2(SameBits, v.memory_need_bytes, p.memory.total.in(kBytes));
  EXPECT_PRED2(SameBits, v.memory_available_bytes,
               p.memory.available ? p.memory.available->in(kBytes)
                                  : std::numeric_limits<double>::quiet_NaN());
  EXPECT_STREQ(v.strategy, StrategyName(p.algorithm));
  EXPECT_EQ(v.limiter, static_cast<int>(p.breakdown.limiter));
  EXPECT_EQ(v.memory_verdict, static_cast<int>(p.memory.verdict));
  EXPECT_EQ(v.compute_source, static_cast<int>(p.compute_source));
  EXPECT_EQ(v.buckets, p.buckets);
  EXPECT_NEAR(v.forward_s + v.backward_s + v.update_s + v.exposed_latency_s + v.exposed_transfer_s +
                  v.straggler_wait_s + v.input_wait_s + v.coding_s,
              v.step_time_s, 1e-12 * v.step_time_s);
  std::size_t count = 99;
  const char* const* flags = stepcast_prediction_flags(handle.get(), &count);
  ASSERT_EQ(count, p.flags.size());
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(flags[i], p.flags[i]);
}

TEST(CapiPrediction, IsThatOfThePredictor) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const Predictor reference = FittedPredictor();
  ExpectSame(PredictionOf(predictor, NewPlan()), reference.Predict(Plan()));
  ExpectSame(PredictionOf(predictor, UnequalPlanHandle()), reference.Predict(UnequalPlan()));

  // Out of memory, out of range, a loss without a round trip: verdicts and flags.
  const PlanHandle large = UnequalPlanHandle();
  SetNumber(large, "local_batch", 4096);
  SetNumber(large, "loss_rate", 0.01);
  Plan reference_plan = UnequalPlan();
  reference_plan.local_batch = 4096;
  reference_plan.link.loss = 0.01;
  const PredictionHandle flagged = PredictionOf(predictor, large);
  ExpectSame(flagged, reference.Predict(reference_plan));
  auto values = Sized<stepcast_prediction_values>();
  ASSERT_EQ(stepcast_prediction_get_values(flagged.get(), &values), STEPCAST_OK);
  EXPECT_EQ(values.memory_verdict, STEPCAST_MEMORY_EXCEEDED);
  EXPECT_EQ(values.compute_source, STEPCAST_COMPUTE_FITTED);
  std::size_t count = 0;
  stepcast_prediction_flags(flagged.get(), &count);
  EXPECT_GE(count, 2U);
}

TEST(CapiPrediction, UsesTheDeviceThatIsGiven) {
  const std::string path = MachineFile("ufrgs-tupi.yaml");
  const auto cluster = Get<ClusterHandle>([&](stepcast_cluster** made, char** error) {
    return stepcast_cluster_read(path.c_str(), made, error);
  });
  const std::string gpus = MachineFile("gpus.yaml");
  const auto device = Get<DeviceHandle>([&](stepcast_device** made, char** error) {
    return stepcast_device_read(gpus.c_str(), "v100", made, error);
  });
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  const auto predictor = Get<PredictorHandle>([&](stepcast_predictor** made, char** error) {
    return stepcast_predictor_create(cluster.get(), workload.get(), device.get(), made, error);
  });
  const Predictor reference(ReadCluster(path), *FindWorkload("resnet50"),
                            FindDevice(ReadDevices(gpus), "v100"));
  const PredictionHandle prediction = PredictionOf(predictor, UnequalPlanHandle());
  ExpectSame(prediction, reference.Predict(UnequalPlan()));
  auto values = Sized<stepcast_prediction_values>();
  ASSERT_EQ(stepcast_prediction_get_values(prediction.get(), &values), STEPCAST_OK);
  EXPECT_EQ(values.compute_source, STEPCAST_COMPUTE_DATA_SHEET);
}

// A value for every field that a plan has, by the names of the runs CSV.
TEST(CapiPlan, EveryFieldCanBeSet) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const Predictor reference = FittedPredictor();

  const PlanHandle collective = NewPlan();
  SetText(collective, "placement", "2-2");
  SetText(collective, "hosts", "a+b");
  SetText(collective, "strategy", "auto");
  SetNumber(collective, "local_batch", 16);
  SetNumber(collective, "accumulation_steps", 4);
  SetNumber(collective, "link_gbit_per_s", 2.5);
  SetNumber(collective, "rtt_ms", 0.3);
  SetNumber(collective, "loss_rate", 1e-4);
  SetText(collective, "congestion_control", "reno");
  SetNumber(collective, "loss_burst_ms", 1);
  SetNumber(collective, "bucket_mib", 12.5);
  SetText(collective, "overlap", "none");
  SetNumber(collective, "backup_workers", 1);
  Plan plan;
  plan.placement = {2, 2};
  plan.hosts = {"a", "b"};
  plan.strategy = Strategy::kAuto;
  plan.local_batch = 16;
  plan.accumulation_steps = 4;
  plan.link.bandwidth = GigabitsPerSecond(2.5);
  plan.link.rtt = Milliseconds(0.3);
  plan.link.loss = 1e-4;
  plan.link.congestion_control = CongestionControl::kReno;
  plan.link.loss_burst = Milliseconds(1.0);
  plan.bucket = Mebibytes(12.5);
  plan.overlap = Overlap::kNone;
  plan.backup_workers = 1;
  ExpectSame(PredictionOf(predictor, collective), reference.Predict(plan));

  const PlanHandle servers = NewPlan();
  const int32_t devices[] = {1, 1, 1, 1};
  ExpectWorks(
      [&](char** error) { return stepcast_plan_set_placement(servers.get(), devices, 4, error); });
  SetText(servers, "strategy", "ps-sync");
  SetNumber(servers, "servers", 2);
  SetNumber(servers, "local_batch", 8);
  SetText(servers, "colocated_servers", "yes");
  SetText(servers, "sharding", "even");
  SetText(servers, "pipelined_servers", "yes");
  SetText(servers, "multicast", "yes");
  SetText(servers, "in_network_aggregation", "yes");
  plan = Plan();
  plan.placement = {1, 1, 1, 1};
  plan.strategy = Strategy::kPsSync;
  plan.servers = 2;
  plan.local_batch = 8;
  plan.server.colocated = true;
  plan.server.sharding = Sharding::kEven;
  plan.server.pipelined = true;
  plan.server.multicast = true;
  plan.server.in_network_aggregation = true;
  ExpectSame(PredictionOf(predictor, servers), reference.Predict(plan));

  const PlanHandle async = NewPlan();
  SetText(async, "placement", "1-1-1");
  SetText(async, "strategy", "ps-async");
  SetText(async, "servers", "1");
  SetNumber(async, "staleness_bound", 3);
  SetNumber(async, "server_link_gbit_per_s", 25);
  plan = Plan();
  plan.placement = {1, 1, 1};
  plan.strategy = Strategy::kPsAsync;
  plan.servers = 1;
  plan.server.staleness_bound = 3;
  plan.server_link.bandwidth = GigabitsPerSecond(25.0);
  ExpectSame(PredictionOf(predictor, async), reference.Predict(plan));
}

// One plan may be asked with a link and without: what was said of a field is taken back.
TEST(CapiPlan, AnEmptyTextSaysNothing) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = NewPlan();
  SetText(plan, "placement", "2-2");
  SetNumber(plan, "local_batch", 16);
  const auto step = [&] {
    auto values = Sized<stepcast_prediction_values>();
    EXPECT_EQ(stepcast_prediction_get_values(PredictionOf(predictor, plan).get(), &values),
              STEPCAST_OK);
    return values.step_time_s;
  };
  const double plain = step();
  const std::pair<const char*, const char*> said[] = {{"link_gbit_per_s", "0.25"},
                                                      {"overlap", "none"},
                                                      {"accumulation_steps", "3"},
                                                      {"hosts", "a+b"},
                                                      {"compress", "fp16"}};
  for (const auto& [field, value] : said) {
    SetText(plan, field, value);
    if (std::string(field) != "hosts") {
      EXPECT_NE(step(), plain) << field;
    }
    SetText(plan, field, "");
    EXPECT_EQ(step(), plain) << field;
  }
  for (const char* field : {"placement", "strategy", "local_batch"}) {
    ExpectFails(STEPCAST_BAD_INPUT, std::string(field) + ": ", [&, field](char** error) {
      return stepcast_plan_set_text(plan.get(), field, "", error);
    });
  }
}

TEST(CapiPlan, SaysWhatEachFieldMayHold) {
  std::size_t count = 0;
  const char* const* names = stepcast_plan_fields(&count);
  ASSERT_EQ(count, PlanFields().size());
  const PlanHandle plan = NewPlan();
  for (std::size_t i = 0; i < count; ++i) {
    const PlanField& field = PlanFields()[i];
    EXPECT_STREQ(names[i], field.column);
    auto info = Sized<stepcast_field_info>();
    ASSERT_EQ(stepcast_plan_get_field(names[i], &info), STEPCAST_OK);
    EXPECT_STREQ(info.name, field.column);
    EXPECT_STREQ(info.meaning, field.meaning);
    EXPECT_STREQ(info.unit, field.unit);
    EXPECT_EQ(info.words_count, field.words.size());
    if (info.unit == nullptr) continue;
    // The ends are allowed, and what is beyond them is not.
    const auto set = [&](double value) {
      return stepcast_plan_set_number(plan.get(), names[i], value, nullptr);
    };
    EXPECT_EQ(set(info.least), STEPCAST_OK) << names[i];
    EXPECT_EQ(set(info.most), info.below_most != 0 ? STEPCAST_BAD_INPUT : STEPCAST_OK) << names[i];
    EXPECT_EQ(set(2 * info.most), STEPCAST_BAD_INPUT) << names[i];
    EXPECT_EQ(set(info.least == 0 ? -1 : info.least / 2), STEPCAST_BAD_INPUT) << names[i];
    EXPECT_EQ(set(0), info.or_nought != 0 || info.least == 0 ? STEPCAST_OK : STEPCAST_BAD_INPUT)
        << names[i];
  }
  auto info = Sized<stepcast_field_info>();
  ASSERT_EQ(stepcast_plan_get_field("loss_rate", &info), STEPCAST_OK);
  EXPECT_STREQ(info.kind, "number");
  EXPECT_EQ(info.most, 1);
  EXPECT_EQ(info.below_most, 1);
  EXPECT_EQ(info.or_nought, 1);
  ASSERT_EQ(stepcast_plan_get_field("rtt_ms", &info), STEPCAST_OK);
  EXPECT_STREQ(info.unit, "ms");
  EXPECT_EQ(info.most, 1e6);
  EXPECT_EQ(info.below_most, 0);
  EXPECT_EQ(info.or_nought, 1);
  ASSERT_EQ(stepcast_plan_get_field("local_batch", &info), STEPCAST_OK);
  EXPECT_STREQ(info.kind, "count");
  EXPECT_STREQ(info.unit, "");
  EXPECT_EQ(info.least, 1);
  EXPECT_EQ(info.most, 100'000'000);
  EXPECT_EQ(info.or_nought, 0);
  EXPECT_EQ(info.words, nullptr);
  ASSERT_EQ(stepcast_plan_get_field("placement", &info), STEPCAST_OK);
  EXPECT_EQ(info.unit, nullptr);
  EXPECT_EQ(info.least, 1);
  ASSERT_EQ(stepcast_plan_get_field("overlap", &info), STEPCAST_OK);
  EXPECT_STREQ(info.kind, "choice");
  EXPECT_TRUE(std::isnan(info.least) && std::isnan(info.most));
  ASSERT_EQ(info.words_count, 3U);
  EXPECT_STREQ(info.words[0], "buckets");

  EXPECT_EQ(stepcast_plan_get_field("batch", &info), STEPCAST_NOT_FOUND);
  EXPECT_STREQ(info.name, "overlap") << "what is refused fills nothing";
  EXPECT_EQ(stepcast_plan_get_field(nullptr, &info), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_plan_get_field("overlap", nullptr), STEPCAST_BAD_ARGUMENT);
  info.struct_size = 1;
  EXPECT_EQ(stepcast_plan_get_field("overlap", &info), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_plan_fields(nullptr), nullptr);
}

TEST(CapiPlan, TakesHostsAsAnArray) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  const char* hosts[] = {"a", "b", "c"};
  const auto set = [&](std::size_t nodes) {
    return [&, nodes](char** error) {
      return stepcast_plan_set_hosts(plan.get(), hosts, nodes, error);
    };
  };
  ExpectWorks(set(3));
  Plan same = UnequalPlan();
  same.hosts = {"a", "b", "c"};
  ExpectSame(PredictionOf(predictor, plan), FittedPredictor().Predict(same));
  hosts[2] = "a";
  ExpectFails(STEPCAST_BAD_INPUT, "hosts: 'a+b+a' names a host twice", set(3));
  hosts[2] = "";
  ExpectFails(STEPCAST_BAD_INPUT, "hosts: 'a+b+' has an empty host name", set(3));
  hosts[2] = "c+d";
  ExpectFails(STEPCAST_BAD_INPUT, "hosts: 'c+d' is not the name of one host", set(3));
  hosts[2] = nullptr;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "hosts[2] is NULL", set(3));
  ExpectFails(STEPCAST_BAD_INPUT, "hosts: '1000001' nodes are too many", set(1'000'001));
  ExpectSame(PredictionOf(predictor, plan), FittedPredictor().Predict(same));

  ExpectWorks(set(2));
  stepcast_prediction* none = nullptr;
  ExpectFails(STEPCAST_BAD_INPUT, "hosts: 'a+b' names 2 hosts", [&](char** error) {
    return stepcast_predictor_predict(predictor.get(), plan.get(), &none, error);
  });
  ExpectWorks(set(0));
  ExpectSame(PredictionOf(predictor, plan), FittedPredictor().Predict(UnequalPlan()));
}

TEST(CapiPlan, RefusesWhatNoFieldTakes) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  const auto text = [&](const char* field, const char* value) {
    return [&, field, value](char** error) {
      return stepcast_plan_set_text(plan.get(), field, value, error);
    };
  };
  const auto number = [&](const char* field, double value) {
    return [&, field, value](char** error) {
      return stepcast_plan_set_number(plan.get(), field, value, error);
    };
  };
  ExpectFails(STEPCAST_BAD_INPUT, "plan: 'batch' is not a field; allowed: placement, ",
              number("batch", 1));
  ExpectFails(STEPCAST_BAD_INPUT, "plan: 'local-batch' is not a field", number("local-batch", 1));
  ExpectFails(STEPCAST_BAD_INPUT, "strategy: 'rings'", text("strategy", "rings"));
  ExpectFails(STEPCAST_BAD_INPUT, "placement: '4-0'", text("placement", "4-0"));
  ExpectFails(STEPCAST_BAD_INPUT, "pipelined_servers: '1'", text("pipelined_servers", "1"));
  for (const double value :
       {0.0, -1.0, 0.5, 1e9, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
    ExpectFails(STEPCAST_BAD_INPUT, "local_batch: ", number("local_batch", value));
  }
  for (const double value : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    ExpectFails(STEPCAST_BAD_INPUT, "link_gbit_per_s: ", number("link_gbit_per_s", value));
    ExpectFails(STEPCAST_BAD_INPUT, "bucket_mib: ", number("bucket_mib", value));
  }
  const int32_t devices[] = {1};
  ExpectFails(STEPCAST_BAD_INPUT, "placement: '1000001' nodes are too many", [&](char** error) {
    return stepcast_plan_set_placement(plan.get(), devices, 1'000'001, error);
  });
  ExpectSame(PredictionOf(predictor, plan), FittedPredictor().Predict(UnequalPlan()));
}

TEST(CapiPlan, RefusesNull) {
  stepcast_plan* plan = nullptr;
  const int32_t devices[] = {1};
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL",
              [&](char** error) { return stepcast_plan_create(nullptr, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_plan_set_text(nullptr, "strategy", "ring", error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_plan_set_number(nullptr, "local_batch", 1, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_plan_set_placement(nullptr, devices, 1, error);
  });
  const PlanHandle owned = NewPlan();
  plan = owned.get();
  ExpectFails(STEPCAST_BAD_ARGUMENT, "field is NULL",
              [&](char** error) { return stepcast_plan_set_text(plan, nullptr, "ring", error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "value is NULL", [&](char** error) {
    return stepcast_plan_set_text(plan, "strategy", nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "field is NULL",
              [&](char** error) { return stepcast_plan_set_number(plan, nullptr, 1, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "devices is NULL",
              [&](char** error) { return stepcast_plan_set_placement(plan, nullptr, 1, error); });
  const char* const hosts[] = {"a"};
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL",
              [&](char** error) { return stepcast_plan_set_hosts(nullptr, hosts, 1, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "hosts is NULL",
              [&](char** error) { return stepcast_plan_set_hosts(plan, nullptr, 1, error); });
}

TEST(CapiPredictor, RefusesWhatNoModelCovers) {
  const PredictorHandle predictor = FittedPredictorHandle();
  stepcast_prediction* made = nullptr;
  const PlanHandle plan = NewPlan();
  const auto predict = [&](char** error) {
    return stepcast_predictor_predict(predictor.get(), plan.get(), &made, error);
  };
  ExpectWorks([&](char** error) {
    return stepcast_plan_set_placement(plan.get(), std::vector<int32_t>{1}.data(), 0, error);
  });
  ExpectFails(STEPCAST_BAD_INPUT, "placement: is empty", predict);
  const int32_t bad[] = {2, -1};
  ExpectWorks([&](char** error) { return stepcast_plan_set_placement(plan.get(), bad, 2, error); });
  ExpectFails(STEPCAST_BAD_INPUT, "placement: '-1' is out of range", predict);
  SetText(plan, "placement", "1-1");
  SetText(plan, "strategy", "ps-sync");
  ExpectFails(STEPCAST_BAD_INPUT, "servers: are required", predict);
  EXPECT_EQ(made, nullptr);
}

TEST(CapiPredictor, SaysWhereNothingTellsTheComputeTime) {
  const ClusterHandle cluster = FittedClusterHandle();
  const auto workload = Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
    return stepcast_workload_from_totals("mine", 1000, 0, made, error);
  });
  const auto predictor = Get<PredictorHandle>([&](stepcast_predictor** made, char** error) {
    return stepcast_predictor_create(cluster.get(), workload.get(), nullptr, made, error);
  });
  const PredictionHandle prediction = PredictionOf(predictor, NewPlan());
  auto values = Sized<stepcast_prediction_values>();
  ASSERT_EQ(stepcast_prediction_get_values(prediction.get(), &values), STEPCAST_OK);
  EXPECT_EQ(values.compute_source, STEPCAST_COMPUTE_PRIOR);
  EXPECT_GT(values.high_s, 10 * values.low_s);
}

TEST(CapiPredictor, RefusesNull) {
  const ClusterHandle cluster = FittedClusterHandle();
  const WorkloadHandle workload = FindWorkloadHandle("resnet50");
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = NewPlan();
  stepcast_predictor* made = nullptr;
  stepcast_prediction* prediction = nullptr;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "cluster is NULL", [&](char** error) {
    return stepcast_predictor_create(nullptr, workload.get(), nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "workload is NULL", [&](char** error) {
    return stepcast_predictor_create(cluster.get(), nullptr, nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_predictor_create(cluster.get(), workload.get(), nullptr, nullptr, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "predictor is NULL", [&](char** error) {
    return stepcast_predictor_predict(nullptr, plan.get(), &prediction, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_predictor_predict(predictor.get(), nullptr, &prediction, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_predictor_predict(predictor.get(), plan.get(), nullptr, error);
  });
  const PredictionHandle made_one = PredictionOf(predictor, plan);
  auto values = Sized<stepcast_prediction_values>();
  EXPECT_EQ(stepcast_prediction_get_values(nullptr, &values), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_prediction_get_values(made_one.get(), nullptr), STEPCAST_BAD_ARGUMENT);
  std::size_t count = 99;
  EXPECT_EQ(stepcast_prediction_flags(nullptr, &count), nullptr);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(stepcast_prediction_flags(made_one.get(), nullptr), nullptr);
}

TEST(CapiPredictor, WeighsSlowNodes) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const auto plan_with = [](const char* strategy, const char* slow_nodes) {
    PlanHandle plan = NewPlan();
    SetText(plan, "placement", "2-2-2-2");
    SetText(plan, "strategy", strategy);
    SetText(plan, "local_batch", "32");
    if (std::string(strategy) == "ps-async") SetText(plan, "servers", "2");
    if (slow_nodes != nullptr) {
      SetText(plan, "slow_nodes", slow_nodes);
      SetText(plan, "slow_speed", "0.5");
    }
    return plan;
  };
  auto weighed = Sized<stepcast_slow_nodes>();
  const auto weigh = [&](const PlanHandle& plan, char** error) {
    return stepcast_predictor_weigh_slow_nodes(predictor.get(), plan.get(), &weighed, error);
  };
  const PlanHandle plan = plan_with("ring", "1");
  ExpectWorks([&](char** error) { return weigh(plan, error); });
  Plan same;
  same.placement = {2, 2, 2, 2};
  same.strategy = Strategy::kRing;
  same.local_batch = 32;
  same.slow_nodes = 1;
  same.slow_speed = 0.5;
  const auto expected = WeighSlowNodes(FittedPredictor(), same);
  ASSERT_TRUE(expected && expected->by_speed && expected->fast_only);
  EXPECT_EQ(weighed.equal_step_time_s, expected->equal.step_time.si());
  EXPECT_EQ(weighed.by_speed_fast_batch, expected->by_speed->fast_batch);
  EXPECT_EQ(weighed.by_speed_slow_batch, expected->by_speed->slow_batch);
  EXPECT_EQ(weighed.by_speed_step_time_s, expected->by_speed->step_time.si());
  EXPECT_EQ(weighed.fast_only_batch, expected->fast_only->fast_batch);
  EXPECT_EQ(weighed.fast_only_step_time_s, expected->fast_only->step_time.si());
  EXPECT_EQ(weighed.why_equal, STEPCAST_EQUAL_NOT_BEST);

  SetText(plan, "local_batch", "1");
  ExpectWorks([&](char** error) { return weigh(plan, error); });
  EXPECT_EQ(weighed.why_equal, STEPCAST_EQUAL_ONE_SAMPLE);
  EXPECT_EQ(weighed.by_speed_fast_batch, 0);
  EXPECT_EQ(weighed.by_speed_slow_batch, 0);
  EXPECT_TRUE(std::isnan(weighed.by_speed_step_time_s));
  EXPECT_EQ(weighed.fast_only_batch, 2);

  const stepcast_slow_nodes before = weighed;
  for (const auto& [strategy, slow_nodes] :
       {std::pair<const char*, const char*>("ring", nullptr), {"ring", "4"}, {"ps-async", "1"}}) {
    const PlanHandle none = plan_with(strategy, slow_nodes);
    ExpectFails(STEPCAST_NO_ANSWER, "waits for slow nodes",
                [&](char** error) { return weigh(none, error); });
  }
  const PlanHandle no_server = plan_with("ps-sync", "1");
  ExpectFails(STEPCAST_BAD_INPUT, "servers", [&](char** error) { return weigh(no_server, error); });
  EXPECT_EQ(std::memcmp(&before, &weighed, sizeof weighed), 0);
  weighed.struct_size = 4;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size",
              [&](char** error) { return weigh(plan, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "weighed is NULL", [&](char** error) {
    return stepcast_predictor_weigh_slow_nodes(predictor.get(), plan.get(), nullptr, error);
  });
}

// ---- The process around the library

// A host program may have any locale: numbers are read and written as ever.
TEST(Locale, OfTheProgramChangesNothing) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::string text = FormatCluster(FittedCluster());
  const Prediction expected = FittedPredictor().Predict(UnequalPlan());
  const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  SetNumber(plan, "rtt_ms", 0.25);
  const auto totals = Get<WorkloadHandle>([&](stepcast_workload** made, char** error) {
    return stepcast_workload_from_totals("mine", 1234567, 0, made, error);
  });
  const std::string formatted = FormatCluster(FittedCluster());
  const PredictionHandle prediction = PredictionOf(predictor, UnequalPlanHandle());
  std::locale::global(before);
  EXPECT_EQ(formatted, text);
  ExpectSame(prediction, expected);
}

}  // namespace
}  // namespace stepcast
