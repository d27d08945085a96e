// Functions of the C interface that read and write files, where no readers were built: they refuse.
#include <cstdint>

#include "predictor/capi/handles.h"

using namespace stepcast::capi;  // NOLINT(google-build-using-namespace): these sources are its own

namespace {

[[noreturn]] void Refuse() {
  throw Refusal{STEPCAST_NOT_BUILT,
                "this library was built without readers of files (STEPCAST_BUILD_IO)"};
}

template <class T>
stepcast_status NotMade(T** out, char** error) {
  return Made(out, {}, error, []() -> T* { Refuse(); });
}

}  // namespace

extern "C" {

stepcast_status stepcast_cluster_read(const char* /*path*/, stepcast_cluster** cluster,
                                      char** error) {
  return NotMade(cluster, error);
}

stepcast_status stepcast_cluster_parse(const char* /*text*/, const char* /*name*/,
                                       stepcast_cluster** cluster, char** error) {
  return NotMade(cluster, error);
}

stepcast_status stepcast_cluster_format(const stepcast_cluster* /*cluster*/, char** text,
                                        char** error) {
  return NotMade(text, error);
}

stepcast_status stepcast_device_read(const char* /*path*/, const char* /*name*/,
                                     stepcast_device** device, char** error) {
  return NotMade(device, error);
}

stepcast_status stepcast_workload_read(const char* /*path*/, stepcast_workload** workload,
                                       char** error) {
  return NotMade(workload, error);
}

stepcast_status stepcast_workload_parse(const char* /*text*/, const char* /*name*/,
                                        stepcast_workload** workload, char** error) {
  return NotMade(workload, error);
}

stepcast_status stepcast_workload_from_totals(const char* /*name*/, int64_t /*parameters*/,
                                              int64_t /*gradient_bytes*/,
                                              stepcast_workload** workload, char** error) {
  return NotMade(workload, error);
}

stepcast_status stepcast_online_export(const stepcast_online* /*online*/, char** text,
                                       char** error) {
  return NotMade(text, error);
}

stepcast_status stepcast_online_import(stepcast_online* /*online*/, const char* /*text*/,
                                       char** error) {
  return Guarded({}, error, Refuse);
}

stepcast_status stepcast_fleet_export(const stepcast_fleet* /*fleet*/, char** text, char** error) {
  return NotMade(text, error);
}

stepcast_status stepcast_fleet_import(stepcast_fleet* /*fleet*/, const char* /*text*/,
                                      char** error) {
  return Guarded({}, error, Refuse);
}

}  // extern "C"
