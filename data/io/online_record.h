// What an online calibration has learnt as JSON, and back.
#ifndef STEPCAST_DATA_IO_ONLINE_RECORD_H_
#define STEPCAST_DATA_IO_ONLINE_RECORD_H_

#include <string>

#include "data/record/online_record.h"

namespace stepcast {

// Numbers have as many digits as it takes to read the same bits.
std::string FormatOnlineRecord(const OnlineRecord& record);

// Throws InputError for text that is no such record, or one of another version.
OnlineRecord ParseOnlineRecord(const std::string& text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_ONLINE_RECORD_H_
