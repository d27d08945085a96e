// The pages of `stepcast report` and `stepcast evaluate --report`: views of what calibrate,
// evaluate, plan and probe print.
#ifndef STEPCAST_PREDICTOR_CLI_REPORT_PAGE_H_
#define STEPCAST_PREDICTOR_CLI_REPORT_PAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/network_profile.h"
#include "predictor/cli/evaluation.h"
#include "predictor/cli/fit.h"
#include "predictor/cli/wanted_runs.h"

namespace stepcast::cli {

// What a page has of an evaluation: a table of some runs, and plots of some thousands.
inline constexpr KeptRuns kRunsOfPage = {.first = 0, .farthest = 30, .spread = 1500};
std::vector<std::string> GroupingsOfPage();

// `group_by`, where it is not empty, is a grouping beside those of every page.
std::string EvaluationPage(const Cluster& cluster, const Evaluation& evaluation,
                           const std::string& group_by);

// All that a calibration's page tells.
struct CalibrationReport {
  const Fit& fit;
  const Evaluation& fitted;  // of the runs that were fitted
  const Evaluation* judged;  // of others; null where there are none
  std::vector<ChosenRuns> wanted;
  std::optional<NetworkProfile> network;
};
std::string CalibrationPage(const CalibrationReport& report);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_REPORT_PAGE_H_
