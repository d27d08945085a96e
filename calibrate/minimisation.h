// One minimisation of the cost over some plans: the problem of calibrate.h as Ceres takes it.
#ifndef STEPCAST_CALIBRATE_MINIMISATION_H_
#define STEPCAST_CALIBRATE_MINIMISATION_H_

#include <ceres/problem.h>

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "calibrate/parameter_layout.h"
#include "calibrate/plan_rows.h"

namespace stepcast {

// Relative changes of the cost at which a search ends: of the search for a start, and of the fit. A
// fit to hundreds of runs then stands within a few hundredths of its standard errors.
inline constexpr double kStartTolerance = 1e-4;
inline constexpr double kFitTolerance = 1e-6;

struct Fit {
  std::vector<double> values;  // ln(SI value), in the order of the layout
  double cost = 0;
  int iterations = 0;
  bool usable = false;
  bool converged = false;
};

// What of the values a minimisation moves, and on how many threads.
struct MinimisationOptions {
  // The block at that offset alone, a workload's with its plans: all others keep their values.
  std::optional<int> only = {};
  // One parameter that keeps its value.
  std::optional<int> hold = {};
  // Values do not depend on it.
  int threads = 1;
};

// Bounds cost the solver a line search in each step, and parameters hardly ever meet theirs: it
// goes without them until a value has left its range. Workloads are eliminated first, since each
// row has one: the cost of a step is linear in rows and workloads. With many links of hosts the
// system is sparse, since of a row's links the slowest alone has a derivative: linear in links too.
class Minimisation {
 public:
  // `layout` and the plans must outlive it.
  Minimisation(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans,
               std::vector<double> start, const MinimisationOptions& options = {});

  // From where the values are.
  Fit Solve(int max_iterations, double tolerance);

  // Covariance of the values at the present point; empty where there is none.
  std::optional<Eigen::MatrixXd> Covariance();

 private:
  bool HasManyLinks() const;
  std::optional<Eigen::MatrixXd> SparseCovariance();
  Fit SolveAsSet(int max_iterations, double tolerance);
  void AddBlock(const ParameterLayout::Block& block);
  bool WithinBounds() const;
  void SetBounds();

  const ParameterLayout& layout_;
  std::vector<ParameterLayout::Block> blocks_;  // those that may matter
  std::vector<double> values_;
  std::optional<int> hold_;
  ceres::Problem problem_;
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_MINIMISATION_H_
