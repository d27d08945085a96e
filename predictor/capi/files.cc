// Functions of the C interface that read and write files, and their text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <iomanip>
#include <sstream>

#include "data/io/fleet_record.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/io/workload_file.h"
#include "model/step/belief.h"
#include "predictor/capi/handles.h"

using stepcast::InputError;
using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

extern "C" {

stepcast_status stepcast_cluster_read(const char* path, stepcast_cluster** cluster, char** error) {
  return Made(cluster, {{path, "path"}}, error, [&] {
    return new stepcast_cluster{stepcast::WithUsableCalibration(stepcast::ReadCluster(path), path)};
  });
}

stepcast_status stepcast_cluster_parse(const char* text, const char* name,
                                       stepcast_cluster** cluster, char** error) {
  return Made(cluster, {{text, "text"}, {name, "name"}}, error, [&] {
    return new stepcast_cluster{
        stepcast::WithUsableCalibration(stepcast::ParseCluster(text, name), name)};
  });
}

stepcast_status stepcast_cluster_format(const stepcast_cluster* cluster, char** text,
                                        char** error) {
  return Made(text, {{cluster, "cluster"}}, error,
              [&] { return CopyText(stepcast::FormatCluster(cluster->cluster)); });
}

stepcast_status stepcast_device_read(const char* path, const char* name, stepcast_device** device,
                                     char** error) {
  return Made(device, {{path, "path"}, {name, "name"}}, error, [&] {
    const std::vector<stepcast::Device> devices = stepcast::ReadDevices(path);
    const std::optional<stepcast::Device> found = stepcast::FindDevice(devices, name);
    if (!found) {
      std::vector<std::string> names;
      for (const stepcast::Device& known : devices) names.push_back(known.name);
      NotFound(InputError({path, 0, "devices"}, name, "is not among them",
                          fmt::format("{}", fmt::join(names, ", "))));
    }
    return new stepcast_device{*found};
  });
}

stepcast_status stepcast_workload_read(const char* path, stepcast_workload** workload,
                                       char** error) {
  return Made(workload, {{path, "path"}}, error,
              [&] { return new stepcast_workload{stepcast::ReadWorkload(path)}; });
}

stepcast_status stepcast_workload_parse(const char* text, const char* name,
                                        stepcast_workload** workload, char** error) {
  return Made(workload, {{text, "text"}, {name, "name"}}, error,
              [&] { return new stepcast_workload{stepcast::ParseWorkload(text, name)}; });
}

stepcast_status stepcast_workload_from_totals(const char* name, int64_t parameters,
                                              int64_t gradient_bytes, stepcast_workload** workload,
                                              char** error) {
  return Made(workload, {{name, "name"}}, error, [&] {
    // The totals are read as a file would be, with the same checks.
    std::ostringstream file;
    file << "name: " << std::quoted(name) << '\n';
    if (parameters != 0) file << "parameters: " << fmt::format("{}\n", parameters);
    if (gradient_bytes != 0) file << "gradient_bytes: " << fmt::format("{}\n", gradient_bytes);
    return new stepcast_workload{stepcast::ParseWorkload(file.str(), name)};
  });
}

stepcast_status stepcast_online_export(const stepcast_online* online, char** text, char** error) {
  return Made(text, {{online, "online"}}, error, [&] {
    return CopyText(stepcast::FormatOnlineRecord(online->calibration->Export()));
  });
}

stepcast_status stepcast_online_import(stepcast_online* online, const char* text, char** error) {
  return Guarded({{online, "online"}, {text, "text"}}, error, [&] {
    online->calibration->Import(stepcast::ParseOnlineRecord(text));
    online->cause.clear();
  });
}

stepcast_status stepcast_fleet_export(const stepcast_fleet* fleet, char** text, char** error) {
  return Made(text, {{fleet, "fleet"}}, error,
              [&] { return CopyText(stepcast::FormatFleetRecord(fleet->fleet.Export())); });
}

stepcast_status stepcast_fleet_import(stepcast_fleet* fleet, const char* text, char** error) {
  return Guarded({{fleet, "fleet"}, {text, "text"}}, error, [&] {
    const stepcast::FleetRecord record = stepcast::ParseFleetRecord(text);
    std::vector<std::string> names;
    for (const stepcast::FleetRecord::Job& job : record.jobs) names.push_back(job.name);
    JobNames of(std::move(names));
    fleet->fleet.Import(record);
    fleet->jobs.swap(of);
  });
}

}  // extern "C"
