// Online calibration of the C interface.
#include <cstdint>

#include "calibrate/online/online_calibration.h"
#include "predictor/capi/handles.h"

using stepcast::Observation;
using stepcast::OnlineCalibration;
using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

extern "C" {

stepcast_status stepcast_online_create(const stepcast_cluster* cluster,
                                       const stepcast_workload* workload,
                                       const stepcast_device* device, stepcast_online** online,
                                       char** error) {
  return Made(online, {{cluster, "cluster"}, {workload, "workload"}}, error, [&] {
    return new stepcast_online{
        std::make_shared<OnlineCalibration>(cluster->cluster, workload->workload,
                                            FactsOf(device, cluster->cluster)),
        {}};
  });
}

void stepcast_online_free(stepcast_online* online) { delete online; }

stepcast_status stepcast_online_observe(stepcast_online* online, const stepcast_plan* plan,
                                        double step_time_s, stepcast_observation* observation,
                                        char** error) {
  return Guarded({{online, "online"}, {plan, "plan"}}, error, [&] {
    if (observation != nullptr) RequireSize(observation, "observation");
    Observation said = online->calibration->Observe(plan->plan, stepcast::Seconds(step_time_s));
    online->cause.swap(said.cause);
    if (observation == nullptr) return;
    GiveStruct({sizeof(stepcast_observation), said.predicted.si(), said.log_ratio, said.surprise,
                said.drifted ? 1 : 0, online->calibration->rows()},
               observation);
  });
}

stepcast_status stepcast_online_observe_out_of_memory(stepcast_online* online,
                                                      const stepcast_plan* plan, char** error) {
  return Guarded({{online, "online"}, {plan, "plan"}}, error,
                 [&] { online->calibration->ObserveOutOfMemory(plan->plan); });
}

int32_t stepcast_online_rows(const stepcast_online* online) {
  int32_t rows = -1;
  Guarded({{online, "online"}}, nullptr, [&] { rows = online->calibration->rows(); });
  return rows;
}

int32_t stepcast_online_drifted(const stepcast_online* online) {
  int32_t drifted = -1;
  Guarded({{online, "online"}}, nullptr, [&] { drifted = online->calibration->drifted() ? 1 : 0; });
  return drifted;
}

const char* stepcast_online_cause(const stepcast_online* online) {
  return online != nullptr && !online->cause.empty() ? online->cause.c_str() : nullptr;
}

stepcast_status stepcast_online_cluster(const stepcast_online* online, stepcast_cluster** cluster,
                                        char** error) {
  return Made(cluster, {{online, "online"}}, error,
              [&] { return new stepcast_cluster{online->calibration->cluster()}; });
}

stepcast_status stepcast_online_predictor(const stepcast_online* online,
                                          stepcast_predictor** predictor, char** error) {
  return Made(predictor, {{online, "online"}}, error, [&] {
    const OnlineCalibration& job = *online->calibration;
    return new stepcast_predictor{
        stepcast::Predictor(job.cluster(), job.workload(), job.facts(), job.device())};
  });
}

}  // extern "C"
