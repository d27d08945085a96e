// Measured runs as CSV: the format that `--runs` reads and `import` writes.
//
// Required columns: workload, device, placement, servers, strategy, local_batch, and step_time_s or
// throughput_samples_per_s: in a row without the former, the step takes CountedSamples at the
// latter. A column of throughputs is kept, too, and beside step times has to agree with them.
// Optional: exposed_sync_s, step_time_sd_s, p50_s, p95_s, p99_s, source and the other columns of
// data/plan/fields.h; an empty field is an absent one. A step_time_s like ">1800" is that of a run
// that was stopped. Order is free; other columns are kept and ignored.
#ifndef STEPCAST_DATA_IO_RUNS_H_
#define STEPCAST_DATA_IO_RUNS_H_

#include <functional>
#include <string>
#include <vector>

#include "data/plan/run_ranges.h"
#include "data/record/run.h"

namespace stepcast {

std::vector<Run> ReadRuns(const std::string& path);
std::vector<Run> ParseRuns(const std::string& text, const std::string& path);
// The same run by run, for files of which not all is to be held.
void ForEachRun(const std::string& path, const std::function<void(Run&&)>& take);

// The runs as CSV text: all known columns that any run uses, then the extra ones.
std::string FormatRuns(const std::vector<Run>& runs);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_RUNS_H_
