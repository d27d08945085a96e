#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/placement.h"
#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "predictor/capi/handles.h"
#include "predictor/prediction.h"
#include "predictor/search/unequal.h"

using stepcast::InputError;
using stepcast::Prediction;
using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

// Values that cross the border as they are.
static_assert(sizeof(int) == sizeof(int32_t));
static_assert(static_cast<int>(stepcast::Limiter::kNothing) == STEPCAST_LIMITER_NOTHING);
static_assert(static_cast<int>(stepcast::Limiter::kLink) == STEPCAST_LIMITER_LINK);
static_assert(static_cast<int>(stepcast::Limiter::kFlow) == STEPCAST_LIMITER_FLOW);
static_assert(static_cast<int>(stepcast::Limiter::kWindow) == STEPCAST_LIMITER_WINDOW);
static_assert(static_cast<int>(stepcast::Limiter::kLoss) == STEPCAST_LIMITER_LOSS);
static_assert(static_cast<int>(stepcast::Limiter::kHost) == STEPCAST_LIMITER_HOST);
static_assert(static_cast<int>(stepcast::Limiter::kServerLink) == STEPCAST_LIMITER_SERVER_LINK);
static_assert(static_cast<int>(stepcast::Limiter::kServer) == STEPCAST_LIMITER_SERVER);
static_assert(static_cast<int>(stepcast::Limiter::kLatency) == STEPCAST_LIMITER_LATENCY);
static_assert(static_cast<int>(stepcast::Limiter::kCore) == STEPCAST_LIMITER_CORE);
static_assert(static_cast<int>(stepcast::MemoryVerdict::kFits) == STEPCAST_MEMORY_FITS);
static_assert(static_cast<int>(stepcast::MemoryVerdict::kTight) == STEPCAST_MEMORY_TIGHT);
static_assert(static_cast<int>(stepcast::MemoryVerdict::kOutOfMemory) == STEPCAST_MEMORY_EXCEEDED);
static_assert(static_cast<int>(stepcast::MemoryVerdict::kUnknown) == STEPCAST_MEMORY_UNKNOWN);
static_assert(static_cast<int>(stepcast::ComputeSource::kFitted) == STEPCAST_COMPUTE_FITTED);
static_assert(static_cast<int>(stepcast::ComputeSource::kProfile) == STEPCAST_COMPUTE_PROFILE);
static_assert(static_cast<int>(stepcast::ComputeSource::kDataSheet) == STEPCAST_COMPUTE_DATA_SHEET);
static_assert(static_cast<int>(stepcast::ComputeSource::kFromDevice) ==
              STEPCAST_COMPUTE_FROM_DEVICE);
static_assert(static_cast<int>(stepcast::ComputeSource::kFromOtherDevice) ==
              STEPCAST_COMPUTE_FROM_OTHER_DEVICE);
static_assert(static_cast<int>(stepcast::ComputeSource::kNone) == STEPCAST_COMPUTE_NONE);
static_assert(static_cast<int>(stepcast::WhyEqual::kOneSample) + 1 == STEPCAST_EQUAL_ONE_SAMPLE);
static_assert(static_cast<int>(stepcast::WhyEqual::kMemory) + 1 == STEPCAST_EQUAL_MEMORY);
static_assert(static_cast<int>(stepcast::WhyEqual::kNoneQuicker) + 1 ==
              STEPCAST_EQUAL_NONE_QUICKER);
static_assert(static_cast<int>(stepcast::ComputeSource::kPrior) == STEPCAST_COMPUTE_PRIOR);
static_assert(static_cast<int>(stepcast::ComputeSource::kFromOtherTraining) ==
              STEPCAST_COMPUTE_FROM_OTHER_TRAINING);

struct stepcast_prediction {
  Prediction prediction;
  std::vector<const char*> flags;  // of prediction.flags
};

namespace stepcast::capi {

void NotFound(const InputError& why) { throw Refusal{STEPCAST_NOT_FOUND, why.what()}; }

char* CopyText(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void Check(std::initializer_list<Required> required) {
  for (const Required& one : required) {
    if (one.pointer == nullptr) {
      throw Refusal{STEPCAST_BAD_ARGUMENT, std::string(one.name) + " is NULL"};
    }
  }
}

void RequireNodes(std::size_t nodes, const char* key) {
  if (nodes <= std::size_t{stepcast::kMostCount}) return;
  throw InputError({"", 0, key}, std::to_string(nodes), "nodes are too many",
                   fmt::format("at most {}", stepcast::kMostCount));
}

stepcast_status Describe(char** error) noexcept {
  const auto fail = [error](stepcast_status status, const char* text) {
    if (error != nullptr) *error = ::strdup(text);
    return status;
  };
  try {
    throw;
  } catch (const Refusal& refusal) {
    return fail(refusal.status, refusal.text.c_str());
  } catch (const InputError& input) {
    return fail(STEPCAST_BAD_INPUT, input.what());
  } catch (const std::bad_alloc&) {
    return fail(STEPCAST_OUT_OF_MEMORY, stepcast_status_text(STEPCAST_OUT_OF_MEMORY));
  } catch (const std::exception& other) {
    return fail(STEPCAST_INTERNAL_ERROR, other.what());
  } catch (...) {
    return fail(STEPCAST_INTERNAL_ERROR, stepcast_status_text(STEPCAST_INTERNAL_ERROR));
  }
}

// Before compression and the wait for samples.
template <>
inline constexpr std::size_t kFirstSize<stepcast_prediction_values> =
    offsetof(stepcast_prediction_values, input_wait_s);

namespace {

// The text at `index`, or what is said of an index that this library does not know.
template <std::size_t N>
const char* TextOf(const std::array<const char*, N>& texts, int32_t index) {
  const bool known = index >= 0 && static_cast<std::size_t>(index) < N;
  return known ? texts[static_cast<std::size_t>(index)] : "unknown status";
}

const std::vector<const char*>& FieldNames() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (const PlanField& field : stepcast::PlanFields()) all.push_back(field.column);
    return all;
  }();
  return names;
}

// The field of a plan that a column names; nullptr where there is none.
const PlanField* FindField(const char* column) {
  for (const PlanField& field : stepcast::PlanFields()) {
    if (std::strcmp(field.column, column) == 0) return &field;
  }
  return nullptr;
}

const PlanField& FieldOf(const char* column) {
  if (const PlanField* field = FindField(column)) return *field;
  throw InputError({"", 0, "plan"}, column, "is not a field",
                   fmt::format("{}", fmt::join(FieldNames(), ", ")));
}

void SetField(stepcast_plan* plan, const char* column, const std::string& value) {
  const PlanField& field = FieldOf(column);
  // As an empty cell of a runs file.
  if (value.empty() && field.told != stepcast::Told::kAlways) return field.set_default(&plan->plan);
  field.read_column(value, InputPlace{"", 0, field.column}, &plan->plan);
}

}  // namespace
}  // namespace stepcast::capi

extern "C" {

int32_t stepcast_abi(void) { return STEPCAST_ABI; }
const char* stepcast_version(void) { return STEPCAST_VERSION; }
int32_t stepcast_version_major(void) { return STEPCAST_VERSION_MAJOR; }
int32_t stepcast_version_minor(void) { return STEPCAST_VERSION_MINOR; }
int32_t stepcast_version_patch(void) { return STEPCAST_VERSION_PATCH; }

const char* stepcast_status_text(stepcast_status status) {
  static constexpr std::array kTexts = {
      "ok",
      "an argument is NULL, or a struct_size cannot be",
      "bad input",
      "not found",
      "the query has no answer",
      "out of memory",
      "internal error",
      "this library was built without it",
  };
  return TextOf(kTexts, status);
}

void stepcast_text_free(char* text) { std::free(text); }

// ---- Clusters

stepcast_status stepcast_cluster_get_info(const stepcast_cluster* cluster,
                                          stepcast_cluster_info* info) {
  if (cluster == nullptr) return STEPCAST_BAD_ARGUMENT;
  const stepcast::Cluster& c = cluster->cluster;
  const stepcast_cluster_info ours = {sizeof ours,
                                      c.name.c_str(),
                                      c.device.c_str(),
                                      c.nodes,
                                      c.devices_per_node,
                                      c.device_facts.has_value() ? 1 : 0,
                                      c.calibration.has_value() ? 1 : 0};
  return GiveStruct(ours, info) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

void stepcast_cluster_free(stepcast_cluster* cluster) { delete cluster; }

// ---- Devices

const char* stepcast_device_name(const stepcast_device* device) {
  return device != nullptr ? device->device.name.c_str() : nullptr;
}

void stepcast_device_free(stepcast_device* device) { delete device; }

// ---- Workloads

stepcast_status stepcast_workload_find(const char* name, stepcast_workload** workload,
                                       char** error) {
  return Made(workload, {{name, "name"}}, error, [&] {
    const std::optional<stepcast::Workload> found = stepcast::FindWorkload(name);
    if (!found) {
      const std::vector<std::string> names = stepcast::WorkloadNames();
      NotFound(InputError({"", 0, "workload"}, name,
                          "is not in the catalogue" + stepcast::DidYouMeanWorkload(name, names),
                          stepcast::JoinNames(names)));
    }
    return new stepcast_workload{*found};
  });
}

stepcast_status stepcast_workload_get_info(const stepcast_workload* workload,
                                           stepcast_workload_info* info) {
  if (workload == nullptr) return STEPCAST_BAD_ARGUMENT;
  const stepcast::Workload& w = workload->workload;
  const stepcast_workload_info ours = {sizeof ours,
                                       w.name.c_str(),
                                       w.title.c_str(),
                                       w.parameters,
                                       w.trainable_parameters,
                                       w.gradient_bytes.in(stepcast::kBytes),
                                       static_cast<int64_t>(w.layers.size())};
  return GiveStruct(ours, info) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

stepcast_status stepcast_workload_set_text(stepcast_workload* workload, const char* fact,
                                           const char* value, char** error) {
  return Guarded({{workload, "workload"}, {fact, "fact"}, {value, "value"}}, error, [&] {
    const stepcast::TrainingFact* known = stepcast::FindTrainingFact(fact);
    if (known == nullptr) {
      std::vector<const char*> keys;
      for (const stepcast::TrainingFact& one : stepcast::TrainingFacts()) keys.push_back(one.key);
      throw InputError({"", 0, "workload"}, fact, "is not a fact that can be set",
                       fmt::format("{}", fmt::join(keys, ", ")));
    }
    known->Read(value, {"", 0, known->key}, &workload->workload);
  });
}

stepcast_status stepcast_workload_train_as_fitted(stepcast_workload* workload,
                                                  const stepcast_cluster* cluster, char** error) {
  return Guarded({{workload, "workload"}, {cluster, "cluster"}}, error, [&] {
    const auto& calibration = cluster->cluster.calibration;
    if (calibration) stepcast::TrainAsFitted(*calibration, "", {}, &workload->workload);
  });
}

const char* stepcast_workload_get_text(const stepcast_workload* workload, const char* fact) {
  if (workload == nullptr || fact == nullptr) return nullptr;
  const stepcast::TrainingFact* known = stepcast::FindTrainingFact(fact);
  return known == nullptr ? nullptr : known->WordOf(workload->workload);
}

void stepcast_workload_free(stepcast_workload* workload) { delete workload; }

// ---- Plans

stepcast_status stepcast_plan_create(stepcast_plan** plan, char** error) {
  return Made(plan, {}, error, [] { return new stepcast_plan; });
}

stepcast_status stepcast_plan_set_text(stepcast_plan* plan, const char* field, const char* value,
                                       char** error) {
  return Guarded({{plan, "plan"}, {field, "field"}, {value, "value"}}, error,
                 [&] { SetField(plan, field, value); });
}

stepcast_status stepcast_plan_set_number(stepcast_plan* plan, const char* field, double value,
                                         char** error) {
  return Guarded({{plan, "plan"}, {field, "field"}}, error,
                 [&] { SetField(plan, field, fmt::format("{}", value)); });
}

stepcast_status stepcast_plan_set_placement(stepcast_plan* plan, const int32_t* devices,
                                            size_t nodes, char** error) {
  return Guarded({{plan, "plan"}, {devices, "devices"}}, error, [&] {
    // A placement is checked when the plan is used.
    RequireNodes(nodes, "placement");
    plan->plan.placement.assign(devices, devices + nodes);
  });
}

stepcast_status stepcast_plan_set_hosts(stepcast_plan* plan, const char* const* hosts, size_t nodes,
                                        char** error) {
  return Guarded({{plan, "plan"}, {hosts, "hosts"}}, error, [&] {
    RequireNodes(nodes, "hosts");
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes; ++i) {
      if (hosts[i] == nullptr) {
        throw Refusal{STEPCAST_BAD_ARGUMENT, fmt::format("hosts[{}] is NULL", i)};
      }
      names.emplace_back(hosts[i]);
    }
    plan->plan.hosts = stepcast::CheckedHosts(names, {"", 0, "hosts"});
  });
}

void stepcast_plan_free(stepcast_plan* plan) { delete plan; }

const char* const* stepcast_plan_fields(size_t* count) {
  const char* const* names = nullptr;
  std::size_t size = 0;
  if (count == nullptr) return nullptr;
  Guarded({}, nullptr, [&] {
    names = FieldNames().data();
    size = FieldNames().size();
  });
  *count = size;
  return names;
}

stepcast_status stepcast_plan_get_field(const char* name, stepcast_field_info* info) {
  return Guarded({{name, "name"}}, nullptr, [&] {
    const stepcast::PlanField* field = FindField(name);
    if (field == nullptr) throw Refusal{STEPCAST_NOT_FOUND, ""};
    const bool has_range = field->has_range();
    const stepcast_field_info ours = {sizeof ours,
                                      field->column,
                                      field->meaning,
                                      stepcast::kFieldKindNames[static_cast<int>(field->kind)],
                                      field->unit,
                                      has_range ? field->range.least : kNotKnown,
                                      has_range ? field->range.most : kNotKnown,
                                      has_range && field->range.or_nought ? 1 : 0,
                                      field->is_below_most() ? 1 : 0,
                                      field->words.size(),
                                      field->words.empty() ? nullptr : field->words.data()};
    if (!GiveStruct(ours, info)) throw Refusal{STEPCAST_BAD_ARGUMENT, ""};
  });
}

// ---- Predictions

stepcast_status stepcast_predictor_create(const stepcast_cluster* cluster,
                                          const stepcast_workload* workload,
                                          const stepcast_device* device,
                                          stepcast_predictor** predictor, char** error) {
  return Made(predictor, {{cluster, "cluster"}, {workload, "workload"}}, error, [&] {
    return new stepcast_predictor{stepcast::Predictor(cluster->cluster, workload->workload,
                                                      FactsOf(device, cluster->cluster))};
  });
}

void stepcast_predictor_free(stepcast_predictor* predictor) { delete predictor; }

stepcast_status stepcast_predictor_predict(const stepcast_predictor* predictor,
                                           const stepcast_plan* plan,
                                           stepcast_prediction** prediction, char** error) {
  return Made(prediction, {{predictor, "predictor"}, {plan, "plan"}}, error, [&] {
    auto made = std::make_unique<stepcast_prediction>();
    made->prediction = predictor->predictor.Predict(plan->plan);
    for (const std::string& flag : made->prediction.flags) made->flags.push_back(flag.c_str());
    return made.release();
  });
}

stepcast_status stepcast_prediction_get_values(const stepcast_prediction* prediction,
                                               stepcast_prediction_values* values) {
  if (prediction == nullptr) return STEPCAST_BAD_ARGUMENT;
  const Prediction& p = prediction->prediction;
  stepcast_prediction_values ours{};
  ours.step_time_s = p.step_time.si();
  ours.low_s = p.low.si();
  ours.high_s = p.high.si();
  ours.log_sd = p.log_sd;
  ours.p50_s = p.p50.si();
  ours.p95_s = p.p95.si();
  ours.p99_s = p.p99.si();
  ours.throughput_samples_per_s = p.throughput.si();
  ours.forward_s = p.breakdown.forward.si();
  ours.backward_s = p.breakdown.backward.si();
  ours.update_s = p.breakdown.update.si();
  ours.exposed_latency_s = p.breakdown.exposed_latency.si();
  ours.exposed_transfer_s = p.breakdown.exposed_transfer.si();
  ours.straggler_wait_s = p.breakdown.straggler_wait.si();
  ours.synchronisation_s = p.breakdown.synchronisation.si();
  ours.memory_need_bytes = p.memory.total.si();
  ours.memory_available_bytes = ValueOf(p.memory.available);
  ours.strategy = StrategyName(p.algorithm);
  ours.limiter = static_cast<int32_t>(p.breakdown.limiter);
  ours.memory_verdict = static_cast<int32_t>(p.memory.verdict);
  ours.compute_source = static_cast<int32_t>(p.compute_source);
  ours.buckets = p.buckets;
  ours.input_wait_s = p.breakdown.input_wait.si();
  ours.coding_s = p.breakdown.coding.si();
  return GiveStruct(ours, values) ? STEPCAST_OK : STEPCAST_BAD_ARGUMENT;
}

stepcast_status stepcast_predictor_weigh_slow_nodes(const stepcast_predictor* predictor,
                                                    const stepcast_plan* plan,
                                                    stepcast_slow_nodes* weighed, char** error) {
  return Guarded({{predictor, "predictor"}, {plan, "plan"}, {weighed, "weighed"}}, error, [&] {
    RequireSize(weighed, "weighed");
    const auto unequal = stepcast::WeighSlowNodes(predictor->predictor, plan->plan);
    if (!unequal) throw Refusal{STEPCAST_NO_ANSWER, "no synchronous step waits for slow nodes"};
    const auto time = [](const std::optional<stepcast::SharedOut>& shared) {
      return shared ? shared->step_time.si() : kNotKnown;
    };
    stepcast_slow_nodes ours{};
    ours.equal_step_time_s = unequal->equal.step_time.si();
    if (unequal->by_speed) {
      ours.by_speed_fast_batch = unequal->by_speed->fast_batch;
      ours.by_speed_slow_batch = unequal->by_speed->slow_batch;
    }
    ours.by_speed_step_time_s = time(unequal->by_speed);
    if (unequal->fast_only) ours.fast_only_batch = unequal->fast_only->fast_batch;
    ours.fast_only_step_time_s = time(unequal->fast_only);
    // The enumerators begin with one for shares by speed.
    ours.why_equal = unequal->why_equal ? static_cast<int32_t>(*unequal->why_equal) + 1
                                        : STEPCAST_EQUAL_NOT_BEST;
    GiveStruct(ours, weighed);
  });
}

const char* const* stepcast_prediction_flags(const stepcast_prediction* prediction, size_t* count) {
  if (count != nullptr) *count = prediction != nullptr ? prediction->flags.size() : 0;
  return prediction != nullptr && count != nullptr ? prediction->flags.data() : nullptr;
}

void stepcast_prediction_free(stepcast_prediction* prediction) { delete prediction; }

}  // extern "C"
