// Compute profiles as files: JSON, one object a line, so that measuring appends and an interrupted
// measurement has lost at most the line that it was writing.
//
//   {"stepcast_profile": 1, "backend": "onednn", "device": {"name": ..., "kind": "cpu", "facts":
//   {}},
//    "settings": {...}, "version": "0.1.0", "started": "2026-01-31T12:00:00Z"}
//   {"operation": "dense inputs=512 units=1000 bias=yes", "batch": 8, "precision": "fp32",
//    "pass": "forward", "seconds": [...], "algorithm": ..., "reference_s": ..., "at": ...}
//   {"operation": ..., "status": "out_of_memory", "reason": "needs 93 GiB, 79 GiB are free"}
//
// (Each of them is one line.) "busy" and "throttled" are there where they are true.
#ifndef STEPCAST_DATA_IO_COMPUTE_PROFILE_FILE_H_
#define STEPCAST_DATA_IO_COMPUTE_PROFILE_FILE_H_

#include <cstddef>
#include <string>

#include "data/record/compute_profile.h"

namespace stepcast {

// Whether a profile may hold the time of a run [s]: no clock tells less, no layer takes longer.
inline bool IsRunTime(double seconds) { return seconds >= 1e-12 && seconds <= 1e6; }

struct ReadProfile {
  ComputeProfile profile;
  // Bytes that hold whole lines; what is behind them is the torn end of an interrupted write.
  std::size_t whole_bytes = 0;
  bool torn = false;
};

// Throws InputError for whatever is not such a file; a last line without its end is left out.
ReadProfile ReadComputeProfile(const std::string& path);
ReadProfile ParseComputeProfile(const std::string& text, const std::string& path);

// One line each, with its end.
std::string FormatProfileHeader(const ComputeProfile& profile);
std::string FormatProfileSamples(const MeasuredSamples& samples);
// The whole file.
std::string FormatComputeProfile(const ComputeProfile& profile);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_COMPUTE_PROFILE_FILE_H_
