// The record of an online calibration as a part of another text. For the readers of this folder.
#ifndef STEPCAST_DATA_IO_ONLINE_RECORD_JSON_H_
#define STEPCAST_DATA_IO_ONLINE_RECORD_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "data/record/online_record.h"

namespace stepcast {

// Objects and arrays within each other: the record, its plans, one of them, what it is a plan of,
// and its placement.
inline constexpr int kDeepestOnlineRecord = 5;

nlohmann::json OnlineRecordJson(const OnlineRecord& record);
// Throws InputError, for one of another version too.
OnlineRecord ReadOnlineRecord(const nlohmann::json& in);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_ONLINE_RECORD_JSON_H_
