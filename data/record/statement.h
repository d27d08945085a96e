// Statements of a person about a parameter before a fit.
#ifndef STEPCAST_DATA_RECORD_STATEMENT_H_
#define STEPCAST_DATA_RECORD_STATEMENT_H_

#include <optional>
#include <string>

namespace stepcast {

// "flow_bandwidth is 5 Gbit/s", or "is 5 Gbit/s within a factor of 1.2".
struct ParameterStatement {
  std::string name;      // "flow_bandwidth"
  std::string workload;  // for a workload's parameter; empty for all of them
  double si = 1;
  std::optional<double> factor;  // > 1, of one standard deviation; none fixes the value
  std::string source;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_STATEMENT_H_
