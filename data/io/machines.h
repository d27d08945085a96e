// Machine files: devices from data sheets, and clusters with what a calibration learnt about them.
#ifndef STEPCAST_DATA_IO_MACHINES_H_
#define STEPCAST_DATA_IO_MACHINES_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/machine.h"

namespace stepcast {

// All entries of a device file (key `devices`).
std::vector<Device> ReadDevices(const std::string& path);

// The device that `name` means: its key, title or an alias, whatever the case and the separators
// ("RTX 4090", "rtx-4090" and "rtx_4090" are one). Empty when there is none.
std::optional<Device> FindDevice(const std::vector<Device>& devices, const std::string& name);

Cluster ReadCluster(const std::string& path);
Cluster ParseCluster(const std::string& text, const std::string& path);

// The cluster as YAML, calibration included; ParseCluster gives it back.
std::string FormatCluster(const Cluster& cluster);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_MACHINES_H_
