// Measured runs as CSV: the format that `--runs` reads and `import` writes.
//
// Required columns: workload, device, placement, servers, strategy, local_batch, step_time_s.
// Optional: exposed_sync_s, source and the other columns of data/plan/fields.h; an empty field
// is an absent one. Order is free; other columns are kept and ignored.
#ifndef STEPCAST_DATA_IO_RUNS_H_
#define STEPCAST_DATA_IO_RUNS_H_

#include <string>
#include <vector>

#include "data/io/csv.h"
#include "data/record/run.h"

namespace stepcast {

std::vector<Run> ReadRuns(const std::string& path);
std::vector<Run> ParseRuns(const CsvTable& table);

// The runs as CSV text: all known columns that any run uses, then the extra ones.
std::string FormatRuns(const std::vector<Run>& runs);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_RUNS_H_
