// Machine files: devices from data sheets, and clusters with what a calibration learnt about them.
#ifndef STEPCAST_DATA_IO_MACHINES_H_
#define STEPCAST_DATA_IO_MACHINES_H_

#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/values/device_name.h"

namespace stepcast {

// All entries of a device file (key `devices`).
std::vector<Device> ReadDevices(const std::string& path);

Cluster ReadCluster(const std::string& path);
Cluster ParseCluster(const std::string& text, const std::string& path);

// Where the cluster file names its device; without the line where it cannot be read again, as a
// pipe cannot.
InputPlace PlaceOfDevice(const std::string& path);

// The cluster as YAML, calibration included; ParseCluster gives it back.
std::string FormatCluster(const Cluster& cluster);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_MACHINES_H_
