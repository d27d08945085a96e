// Fleets of the C interface.
#include "calibrate/online/fleet.h"

#include "data/values/names.h"
#include "predictor/capi/handles.h"

using stepcast::InputError;
using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

namespace {

std::shared_ptr<stepcast::OnlineCalibration> JobOf(const stepcast_fleet* fleet, const char* job) {
  try {
    return fleet->fleet.Job(job);
  } catch (const InputError& error) {
    NotFound(error);
  }
}

// Takes a job away by `take()`, after all else that can fail.
template <class Take>
void Without(stepcast_fleet* fleet, const char* job, const Take& take) {
  JobOf(fleet, job);
  std::vector<std::string> names = fleet->fleet.jobs();
  std::erase(names, job);
  JobNames left(std::move(names));
  take();
  fleet->jobs.swap(left);
}

}  // namespace

extern "C" {

stepcast_status stepcast_fleet_create(const stepcast_cluster* cluster, stepcast_fleet** fleet,
                                      char** error) {
  return Made(fleet, {{cluster, "cluster"}}, error, [&] {
    return new stepcast_fleet{stepcast::Fleet(cluster->cluster), {}};
  });
}

void stepcast_fleet_free(stepcast_fleet* fleet) { delete fleet; }

stepcast_status stepcast_fleet_add(stepcast_fleet* fleet, const char* job,
                                   const stepcast_workload* workload, const stepcast_device* device,
                                   stepcast_online** online, char** error) {
  return Made(online, {{fleet, "fleet"}, {job, "job"}, {workload, "workload"}}, error, [&] {
    // All that can fail comes before the job is there.
    std::vector<std::string> names = fleet->fleet.jobs();
    names.push_back(stepcast::CheckedName(job, {"", 0, "job"}));
    JobNames with(std::move(names));
    auto made = std::make_unique<stepcast_online>();
    made->calibration =
        fleet->fleet.Add(job, workload->workload, FactsOf(device, fleet->fleet.cluster()));
    fleet->jobs.swap(with);
    return made.release();
  });
}

stepcast_status stepcast_fleet_job(const stepcast_fleet* fleet, const char* job,
                                   stepcast_online** online, char** error) {
  return Made(online, {{fleet, "fleet"}, {job, "job"}}, error, [&] {
    return new stepcast_online{JobOf(fleet, job), {}};
  });
}

stepcast_status stepcast_fleet_end(stepcast_fleet* fleet, const char* job, char** error) {
  return Guarded({{fleet, "fleet"}, {job, "job"}}, error,
                 [&] { Without(fleet, job, [&] { fleet->fleet.End(job); }); });
}

stepcast_status stepcast_fleet_remove(stepcast_fleet* fleet, const char* job, char** error) {
  return Guarded({{fleet, "fleet"}, {job, "job"}}, error,
                 [&] { Without(fleet, job, [&] { fleet->fleet.Remove(job); }); });
}

const char* const* stepcast_fleet_jobs(const stepcast_fleet* fleet, size_t* count) {
  if (count != nullptr) *count = fleet != nullptr ? fleet->jobs.begins().size() : 0;
  return fleet != nullptr && count != nullptr ? fleet->jobs.begins().data() : nullptr;
}

stepcast_status stepcast_fleet_cluster(const stepcast_fleet* fleet,
                                       const stepcast_workload* workload,
                                       const stepcast_device* device, stepcast_cluster** cluster,
                                       char** error) {
  return Made(cluster, {{fleet, "fleet"}, {workload, "workload"}}, error, [&] {
    return new stepcast_cluster{
        fleet->fleet.ClusterFor(workload->workload, FactsOf(device, fleet->fleet.cluster()))};
  });
}

}  // extern "C"
