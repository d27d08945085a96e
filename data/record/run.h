// One measured run: a plan, and how long its step took.
#ifndef STEPCAST_DATA_RECORD_RUN_H_
#define STEPCAST_DATA_RECORD_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"

namespace stepcast {

// How the steps of a run differ from each other, as far as it was measured.
struct StepSpread {
  std::optional<Duration<>> sd;  // standard deviation
  std::optional<Duration<>> p50;
  std::optional<Duration<>> p95;
  std::optional<Duration<>> p99;
};

struct Run {
  std::string workload;
  std::string device;
  Plan plan;
  // A worker's wall time from one optimizer step to its next.
  Duration<> step_time;
  // The run was stopped before its step ended: it takes longer than step_time.
  bool stopped = false;
  // The part of a synchronisation that compute did not hide, where it was measured.
  std::optional<Duration<>> exposed_sync;
  StepSpread spread;
  std::string source;
  // Columns that the format does not know, kept and otherwise ignored: their names, which all rows
  // of a file share, and what the row has in each.
  std::shared_ptr<const std::vector<std::string>> extra_columns;
  std::vector<std::string> extra;
  InputPlace place;  // where the row was read, for messages
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_RUN_H_
