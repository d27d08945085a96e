// What a fleet has learnt as JSON, and back.
#ifndef STEPCAST_DATA_IO_FLEET_RECORD_H_
#define STEPCAST_DATA_IO_FLEET_RECORD_H_

#include <string>

#include "data/record/fleet_record.h"

namespace stepcast {

// Numbers have as many digits as it takes to read the same bits. Workloads, data sheets and
// calibrations are texts of their files. Throws InputError for a name of a job that is none
// (CheckedName). Note that no file has a layer's backward_time: it is not kept.
std::string FormatFleetRecord(const FleetRecord& record);

// Throws InputError for text that is no such record, or one of another version.
FleetRecord ParseFleetRecord(const std::string& text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_FLEET_RECORD_H_
