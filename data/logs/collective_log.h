// Tables of collective and point-to-point benchmarks, as they are printed.
//
//   nccl-tests (NVIDIA; rccl-tests alike): "# Rank 0 ... on HOST device 0 [...] DEVICE", a header
//     of "# size count type redop root time algbw busbw #wrong time ...", its units, and rows:
//     times in us, rates in GB/s of 10^9 bytes, out of place first and in place second
//     (doc/PERFORMANCE.md).
//   OSU micro-benchmarks: "# OSU MPI Allreduce Latency Test v5.8", "# Size  Avg Latency(us)", and
//     rows: a latency is half a round trip, a bandwidth in MB/s of 10^6 bytes.
//
// A file may hold several tables. Rows that do not fit their header are unknown lines.
#ifndef STEPCAST_DATA_LOGS_COLLECTIVE_LOG_H_
#define STEPCAST_DATA_LOGS_COLLECTIVE_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/logs/log_lines.h"
#include "data/record/plan.h"

namespace stepcast {

enum class CollectiveKind { kAllreduce, kLatency, kBandwidth, kOther };

struct CollectiveRow {
  double bytes = 0;
  std::optional<double> out_of_place_s;  // the only time of OSU's
  std::optional<double> in_place_s;
  std::optional<double> bytes_per_s;  // the log's: algbw, or OSU's bandwidth
  std::optional<double> bus_bytes_per_s;
  int line = 0;
};

struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::kOther;
  std::string name;  // "all_reduce_perf", "OSU MPI Allreduce Latency Test v5.8"; empty if not told
  int line = 0;      // of the header
  Placement placement;             // ranks by host; empty where the log does not tell
  std::vector<std::string> hosts;  // as the placement goes
  std::string device;              // empty where none, or several, are told
  std::vector<CollectiveRow> rows;
  std::int64_t wrong = 0;  // rows of which the benchmark says that the result is wrong, left out
};

struct CollectiveLog {
  std::vector<CollectiveTable> tables;
  UnknownLines unknown;
};

// Throws InputError for a file without a table, and for one whose units are others.
CollectiveLog ReadNcclTests(const std::string& path);
CollectiveLog ReadOsuBenchmarks(const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_COLLECTIVE_LOG_H_
