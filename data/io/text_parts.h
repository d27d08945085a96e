// Texts of files that stand within another text: as in their files, but for aliases, by which each
// of many small parts could tell much. For the readers of this folder.
#ifndef STEPCAST_DATA_IO_TEXT_PARTS_H_
#define STEPCAST_DATA_IO_TEXT_PARTS_H_

#include <string>

#include "data/record/calibration.h"
#include "data/record/machine.h"
#include "data/record/workload.h"

namespace stepcast {

Workload ParseWorkloadPart(const std::string& text, const std::string& path);

// A data sheet, as it stands under `device` in a cluster file.
std::string FormatDevicePart(const Device& device);
Device ParseDevicePart(const std::string& text, const std::string& path);

// A calibration by itself, as a cluster file of that name which has nothing else.
std::string FormatCalibrationPart(const Calibration& calibration, const std::string& name);
Calibration ParseCalibrationPart(const std::string& text, const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_TEXT_PARTS_H_
