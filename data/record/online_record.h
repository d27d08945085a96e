// All that an online calibration has learnt: what it is kept as between two processes.
#ifndef STEPCAST_DATA_RECORD_ONLINE_RECORD_H_
#define STEPCAST_DATA_RECORD_ONLINE_RECORD_H_

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/plan.h"

namespace stepcast {

// Where the count of observed rows ends: those beyond are learnt as well, and count no further.
inline constexpr std::int64_t kMostObservedRows = 1'000'000'000;

// Rows of one plan that are so near to each other that their mean stands for them.
struct MeasuredTime {
  double log_step = 0;  // ln(s)
  double rows = 0;
};

// The measured steps of a plan, and the model's answer to it where it was linearised last.
struct MeasuredPlan {
  Plan plan;
  std::vector<MeasuredTime> times;  // ascending
  std::int64_t last = 0;            // row at which it was observed last
  double log_step = 0;              // ln T_p
  double weight = 0;                // w_p
  double target = 0;                // t_p
  Eigen::VectorXd slopes;           // h_p
};

// What can drift by itself, by the names that causes of a change have; " or " joins several.
inline constexpr const char* kDriftCauses[] = {"compute", "network", "node"};

// Symbols are those of calibrate/online/state.h.
struct OnlineRecord {
  // The job, and the belief at its start, to which all that was learnt is relative.
  std::string cluster;
  std::string workload;
  std::string device;
  Eigen::VectorXd start_log_values;
  Eigen::VectorXd start_log_sds;
  double start_scatter = 0;
  int smallest_batch = 0;  // to which the start relates fixed_time; 0 where it does not
  // Of a sample, as what did not fit in memory has shown; 0 where nothing has.
  DataSize<> least_activations;

  // Where learning began anew: after a change, or where the rows were so much likelier of another
  // start that the first was given up. Empty as long as neither has been.
  std::optional<Calibration> anew;

  std::int64_t earlier_rows = 0;  // before the last change
  std::int64_t rows = 0;          // since then
  Eigen::VectorXd y;
  double scatter = 0;
  std::int64_t next_scatter = 0;
  std::int64_t next_plan = 0;
  // Sums of what speaks for a change, and how many of the latest rows they are of: of each thing
  // that can drift, becoming slower and faster.
  std::vector<double> drift_sums;
  std::vector<std::int64_t> drift_rows;
  // The latest rows, as far as a sum is of them.
  struct LatestRow {
    Plan plan;
    double log_step = 0;         // measured
    double residual = 0;         // r, before it is cut off
    double sd = 0;               // s_r
    std::vector<double> slopes;  // u of each thing that can drift
  };
  std::vector<LatestRow> latest;
  Eigen::MatrixXd folded;  // lower triangle, as of `a`
  Eigen::VectorXd folded_b;
  Eigen::MatrixXd a;
  Eigen::VectorXd b;
  CalibratedRange range;
  std::vector<MeasuredPlan> plans;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_ONLINE_RECORD_H_
