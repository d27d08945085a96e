// Many plans as columns: the one list of what a query may hold, for JSON, binary and gRPC.
#ifndef STEPCAST_PREDICTOR_SERVE_COLUMNS_H_
#define STEPCAST_PREDICTOR_SERVE_COLUMNS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predictor/compiled_plan.h"

namespace stepcast::serve {

struct CountColumn {
  const char* name;
  const int* QueryArrays::*member;
};
struct NumberColumn {
  const char* name;
  const char* si_name;  // of the member
  const double* QueryArrays::*member;
  double to_si;  // a value of the request in the units of QueryArrays
};

enum CountIndex {
  kWorkers,
  kNodes,
  kDevicesPerNode,
  kServers,
  kLocalBatch,
  kAccumulationSteps,
  kSlowNodes
};
inline constexpr std::array<CountColumn, 7> kCountColumns = {
    {{"workers", &QueryArrays::workers},
     {"nodes", &QueryArrays::nodes},
     {"devices_per_node", &QueryArrays::devices_per_node},
     {"servers", &QueryArrays::servers},
     {"local_batch", &QueryArrays::local_batch},
     {"accumulation_steps", &QueryArrays::accumulation_steps},
     {"slow_nodes", &QueryArrays::slow_nodes}}};
inline constexpr std::array<NumberColumn, 3> kNumberColumns = {
    {{"link_gbit_per_s", "bandwidth_bytes_per_s", &QueryArrays::bandwidth_bytes_per_s, 1e9 / 8},
     {"rtt_ms", "rtt_s", &QueryArrays::rtt_s, 1e-3},
     {"loss_rate", "loss_rate", &QueryArrays::loss_rate, 1}}};

// Queries as a request states them: columns of `size`, or empty ones. In number columns a value
// that is not a number stands for "not stated".
struct QueryColumns {
  std::size_t size = 0;
  std::array<std::vector<int>, kCountColumns.size()> counts;
  std::array<std::vector<double>, kNumberColumns.size()> numbers;

  bool Has(CountIndex i) const { return !counts[i].empty(); }
};

// What to know before trusting the times, and the first query of which it was found.
struct BatchFlag {
  std::size_t index = 0;
  std::string flag;
};

// Why a query has no answer: a sentence that names the column, its value and what is allowed.
struct BatchProblem {
  std::size_t index = 0;
  std::string problem;
};

// Step times and, where they were asked for, intervals; times are not a number where the status
// says why.
struct ForecastColumns {
  std::vector<double> step_time_s;
  std::vector<double> low_s;
  std::vector<double> high_s;
  std::vector<QueryStatus> status;
  std::vector<MemoryVerdict> memory;
  std::vector<BatchFlag> flags;
  std::vector<BatchProblem> problems;  // of the first hundred without an answer
  std::size_t failed = 0;
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_COLUMNS_H_
