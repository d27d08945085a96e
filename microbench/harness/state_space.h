// The states that a campaign measures: every distinct operation of some workloads at every batch
// and precision, and how often each counts in each step.
#ifndef STEPCAST_MICROBENCH_HARNESS_STATE_SPACE_H_
#define STEPCAST_MICROBENCH_HARNESS_STATE_SPACE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/workload.h"

namespace stepcast {

struct StateSpaceAxes {
  std::vector<Workload> workloads;
  std::vector<int> batches;
  std::vector<Precision> precisions;
  Optimizer optimizer = Optimizer::kMomentum;
  bool updates_at_once = false;      // one update of all parameters, not one for each layer
  std::vector<Operation> overheads;  // measured once each, first, forward at batch 1
};

// A step whose time is the sum of its operations.
struct MeasuredSum {
  std::string workload;
  int batch = 1;
  Precision precision = Precision::kFp32;
};

// One operation at one batch and precision, prepared once for all of its passes.
struct State {
  Operation operation;
  int batch = 1;
  Precision precision = Precision::kFp32;
  std::vector<TrainingPass> passes;
  // (index of a sum, how often each of the passes happens in it)
  struct Use {
    std::size_t sum = 0;
    std::vector<int> count;  // in the order of `passes`
  };
  std::vector<Use> uses;

  MeasuredPoint Point(TrainingPass pass) const { return {operation, batch, precision, pass}; }
};

struct StateSpace {
  std::vector<MeasuredSum> sums;
  std::vector<State> states;
  // Layers of which no file states the operation, as "workload: layer".
  std::vector<std::string> unstated;
};

// Overheads come first, then states in order of the largest share of any step that they are: a
// campaign that runs out of time has measured what matters most. The backward pass of layers before
// the first that has parameters is left out: nothing asks for it.
StateSpace MakeStateSpace(const StateSpaceAxes& axes);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_STATE_SPACE_H_
