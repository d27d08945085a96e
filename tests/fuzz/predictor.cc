// Texts that the interfaces of the predictor read: C, saved states, settings of the program.
#include <stepcast.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/online/fleet.h"
#include "calibrate/online/online_calibration.h"
#include "data/workloads/catalog.h"
#include "predictor/cli/settings.h"
#include "tests/capi/support.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"
#include "tests/support/markdown.h"

namespace stepcast::fuzz {
namespace {

constexpr const char* kTrained = "mlp_mnist";

Plan Pair() {
  Plan plan;
  plan.placement = {2, 2};
  plan.local_batch = 32;
  return plan;
}

// What a job on four nodes has learnt.
STEPCAST_DOOR(online) {
  static const Cluster cluster = FittedCluster();
  static const Workload workload = FindWorkload(kTrained).value();
  const OnlineRecord record = ParseOnlineRecord(input);
  RequireReadAgain(record);
  OnlineCalibration job(cluster, workload, cluster.device_facts);
  job.Import(record);
  RequireReadAgain(job.cluster());
  RequireAnswer(Predictor(job.cluster(), workload, cluster.device_facts), Pair());
  const Observation seen = job.Observe(Pair(), Seconds(0.25));
  RequireFinite(seen.predicted.si(), "predicted");
  RequireFinite(seen.log_ratio, "log_ratio");
  RequireFinite(seen.surprise, "surprise");
  RequireReadAgain(job.Export());
}

// What jobs on the same nodes have learnt; another goes on from it.
STEPCAST_DOOR(fleet) {
  static const Cluster cluster = FittedCluster();
  const FleetRecord record = ParseFleetRecord(input);
  RequireReadAgain(record);
  Fleet fleet(cluster);
  fleet.Import(record);
  const std::vector<std::string> running = fleet.jobs();
  for (const char* name : {kTrained, "resnet18_cifar10"}) {
    Try([&] {
      const Workload workload = FindWorkload(name).value();
      const auto job = fleet.Add(std::string("new ") + name, workload, cluster.device_facts);
      RequireReadAgain(job->start());
      RequireAnswer(Predictor(job->start(), workload, cluster.device_facts), Pair());
      const Observation seen = job->Observe(Pair(), Seconds(0.25));
      RequireFinite(seen.predicted.si(), "predicted");
      RequireFinite(seen.surprise, "surprise");
    });
  }
  if (!running.empty()) fleet.End(running.front());
  RequireReadAgain(fleet.Export());
}

// ---- C: the first line says which text follows.

// Calls report what is wrong with an input, and why.
bool Works(stepcast_status status, char** said) {
  const char* error = *said;
  const Text text(*said);
  Require(status == STEPCAST_OK || status == STEPCAST_BAD_INPUT || status == STEPCAST_NOT_FOUND,
          std::string(stepcast_status_text(status)) + ": " + (error != nullptr ? error : ""));
  Require((status == STEPCAST_OK) == (error == nullptr), "an error without a text, or none with");
  if (error != nullptr) RequireReadable(error);
  return status == STEPCAST_OK;
}

template <class Handle, class Make>
Handle TryToMake(const Make& make) {
  typename Handle::pointer made = nullptr;
  char* error = nullptr;
  const bool works = Works(make(&made, &error), &error);
  Handle handle(made);
  Require(works == (made != nullptr), "a handle without success, or none with");
  return handle;
}

void RequireForecast(const stepcast_cluster* cluster, const stepcast_workload* workload,
                     const stepcast_plan* plan) {
  const auto predictor = TryToMake<PredictorHandle>([&](stepcast_predictor** made, char** error) {
    return stepcast_predictor_create(cluster, workload, nullptr, made, error);
  });
  if (!predictor) return;
  const auto prediction =
      TryToMake<PredictionHandle>([&](stepcast_prediction** made, char** error) {
        return stepcast_predictor_predict(predictor.get(), plan, made, error);
      });
  if (!prediction) return;
  auto values = Sized<stepcast_prediction_values>();
  Require(stepcast_prediction_get_values(prediction.get(), &values) == STEPCAST_OK, "no values");
  for (const double value : {values.step_time_s, values.low_s, values.high_s, values.p99_s}) {
    Require(std::isfinite(value) && value > 0, "a time of " + std::to_string(value) + " s");
  }
}

STEPCAST_DOOR(capi) {
  static const ClusterHandle fitted = FittedClusterHandle();
  static const WorkloadHandle known = FindWorkloadHandle(kTrained);
  const std::string door = input.substr(0, input.find('\n'));
  const std::string text = input.substr(std::min(door.size() + 1, input.size()));
  const auto plan = TryToMake<PlanHandle>(stepcast_plan_create);
  if (door == "cluster") {
    const auto cluster = TryToMake<ClusterHandle>([&](stepcast_cluster** made, char** error) {
      return stepcast_cluster_parse(text.c_str(), "text", made, error);
    });
    if (!cluster) return;
    char* written = nullptr;
    char* error = nullptr;
    Require(Works(stepcast_cluster_format(cluster.get(), &written, &error), &error), "not written");
    const Text kept(written);
    const auto again = TryToMake<ClusterHandle>([&](stepcast_cluster** made, char** why) {
      return stepcast_cluster_parse(written, "again", made, why);
    });
    Require(again != nullptr, "what was written is refused");
    RequireForecast(cluster.get(), known.get(), plan.get());
  } else if (door == "workload") {
    const auto workload = TryToMake<WorkloadHandle>([&](stepcast_workload** made, char** error) {
      return stepcast_workload_parse(text.c_str(), "text", made, error);
    });
    if (workload) RequireForecast(fitted.get(), workload.get(), plan.get());
  } else if (door == "plan") {
    int refused = 0;
    for (const std::string& line : Split(text, '\n')) {
      const std::size_t equals = std::min(line.find('='), line.size());
      const std::string field = line.substr(0, equals);
      const std::string value = line.substr(std::min(equals + 1, line.size()));
      char* error = nullptr;
      const bool works =
          Works(stepcast_plan_set_text(plan.get(), field.c_str(), value.c_str(), &error), &error);
      const double number = std::strtod(value.c_str(), nullptr);
      Works(stepcast_plan_set_number(plan.get(), field.c_str(), number, &error), &error);
      constexpr int kMostRefused = 16;
      if (!works && ++refused == kMostRefused) break;
    }
    RequireForecast(fitted.get(), known.get(), plan.get());
  } else if (door == "fleet") {
    const auto fleet = TryToMake<FleetHandle>([&](stepcast_fleet** made, char** error) {
      return stepcast_fleet_create(fitted.get(), made, error);
    });
    char* error = nullptr;
    if (!Works(stepcast_fleet_import(fleet.get(), text.c_str(), &error), &error)) return;
    std::size_t count = 0;
    const char* const* jobs = stepcast_fleet_jobs(fleet.get(), &count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string job = jobs[i];
      const auto online = TryToMake<OnlineHandle>([&](stepcast_online** made, char** why) {
        return stepcast_fleet_job(fleet.get(), job.c_str(), made, why);
      });
      if (online) Require(stepcast_online_rows(online.get()) >= 0, "no number of rows");
    }
    char* written = nullptr;
    Require(Works(stepcast_fleet_export(fleet.get(), &written, &error), &error), "not written");
    const Text kept(written);
    Require(Works(stepcast_fleet_import(fleet.get(), written, &error), &error),
            "what was written is refused");
  } else if (door == "online") {
    const auto online = TryToMake<OnlineHandle>([&](stepcast_online** made, char** error) {
      return stepcast_online_create(fitted.get(), known.get(), nullptr, made, error);
    });
    char* error = nullptr;
    if (!Works(stepcast_online_import(online.get(), text.c_str(), &error), &error)) return;
    char* written = nullptr;
    Require(Works(stepcast_online_export(online.get(), &written, &error), &error), "not written");
    const Text kept(written);
    Require(Works(stepcast_online_import(online.get(), written, &error), &error),
            "what was written is refused");
  }
}

// ---- Options of the program.

STEPCAST_DOOR(settings) {
  const InputPlace place = {"", 0, "--option"};
  Try([&] {
    const cli::SweepAxis axis = cli::ParseSweepAxis(input, place);
    Require(
        !axis.key.empty() && !axis.values.empty() && axis.values.size() <= cli::kMostSweepPoints,
        "an axis of " + std::to_string(axis.values.size()) + " values");
  });
  for (const bool prior : {false, true}) {
    Try([&] {
      const ParameterStatement statement = cli::ParseStatement(input, prior, place);
      RequireFinite(statement.si, input);
      Require(statement.factor.has_value() == prior && statement.factor.value_or(2) > 1,
              "a prior without a factor, or a value with one");
    });
  }
}

}  // namespace
}  // namespace stepcast::fuzz
