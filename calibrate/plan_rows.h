// Measured runs as the solver sees them: the rows of one plan, the model's answer to it, and the
// residuals between the two.
//
// Runs that the model cannot tell apart (one workload, and plans of the same facts) share one
// evaluation, because it is what a fit spends its time on. Each row keeps its own robust residual:
//
//   z   = (ln T_measured - ln T) / s_w                    of the step
//   z   = (X/T measured - X/T) / s_x                      of the exposed synchronisation
//   z   = (ln D - ln D measured) / 0.3           of how the steps of one device differ
//   s_x = sqrt( 0.05^2 + (0.3 X/T measured)^2 )
//   f   = sign(z) sqrt( 2 (sqrt(1 + z^2) - 1) )
//
//   T, X  step; exposed synchronisation with the wait for the slowest worker         [s]
//   D     how far 95 % of the steps stay above their median, as a share of T         [1]
//   s_w   scatter of one measured step of the plan around the model                  [1]
//
// What is known to be more, or less, than something has the residual of that probability:
//
//   z   = sqrt( -2 ln Phi(b) )
//   b   = (ln T - ln T given) / s_w              of runs that were stopped, the last after T given
//   b   = (ln D measured - ln D) / 0.3           of steps that a network makes differ, too
//
// f^2 grows as z^2 near 0 and as 2 |z| far away: a row that is far off counts by its distance
// rather than its square. Rows of a plan have one gradient g, so that they are handed over as
//
//   (sum d_i^2)^(1/2) g,  sum d_i f_i / (sum d_i^2)^(1/2),   d_i = df/dz
//
// and one more residual that holds the rest of the cost: cost, gradient and normal equations are
// those of all rows. Likewise plans over the same blocks that have more residuals than these have
// values: of their Jacobian J and residuals f
//
//   R, R^-T J^T f,   R^T R = J^T J
//
// are handed over, which the solver need not sum in every step.
//
// Sources: Charbonnier et al., ICIP 1994 (the loss). Repeats of a layout differ by a
// median of 5 to 25 % in their exposed synchronisation, hence 0.3 (public traces of 1 to
// 64 devices, four jobs); 0.05 for what a framework counts as neither. The spread of ten steps is
// known to 22 %, and tails are heavier than a normal law's, hence 0.3. Tobin, Econometrica 26
// (1958) (what is known to be more than a value).
#ifndef STEPCAST_CALIBRATE_PLAN_ROWS_H_
#define STEPCAST_CALIBRATE_PLAN_ROWS_H_

#include <ceres/cost_function.h>

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "model/step/answer.h"
#include "model/step/worker_spread.h"

namespace stepcast {

struct MeasuredRow {
  int run = 0;  // index into the problem's runs
  double log_step = 0;
  std::optional<double> sync_share;
  std::optional<double> log_spread = std::nullopt;  // ln D
};

// A run that was stopped before a step ended.
struct StoppedRow {
  int run = 0;
  double log_bound = 0;
};

struct PlanRows {
  PlanModel model;
  int workload_offset = 0;
  std::vector<int> host_offsets;      // of links
  std::vector<int> slowdown_offsets;  // of compute
  bool others = false;                // whether some of its hosts compute like most
  double log_sd = 1;                  // s_w, of its steps
  std::vector<MeasuredRow> rows;
  std::vector<StoppedRow> stopped;
  std::optional<WorkerSpread> spread;  // where a row has one
};

// The blocks of a plan's cost, in its order, of a vector of all values.
template <class Value>
std::vector<Value*> BlocksOf(const PlanRows& plan, Value* values) {
  std::vector<Value*> blocks = {values, values + plan.workload_offset};
  for (const int offset : plan.host_offsets) blocks.push_back(values + offset);
  for (const int offset : plan.slowdown_offsets) blocks.push_back(values + offset);
  return blocks;
}

// The model's answer at these values of all parameters, without derivatives.
PlanAnswer AnswerAt(const PlanRows& plan, const std::vector<double>& values);

// straggler_spread of the plan's workload there.
double StragglerSpreadOf(const PlanRows& plan, const std::vector<double>& values);

// The sum of a plan's squared robust residuals there; infinite where there is no answer.
double CostAt(const PlanRows& plan, const std::vector<double>& values);

// The scatter of each plan's steps, where that of one run is `of_one`: what repeats share counts
// for all of them.
void SetScatter(double of_one, std::vector<PlanRows>* plans);

// Residuals of the rows of plans over the same blocks (cluster, workload, links of host groups ...,
// slow hosts ...).
//
// The solver asks for the cost of a point, and for its derivatives where it goes there. Where it
// went to the last point both are worked out at once, and kept. Note that it must not be asked by
// several threads, therefore; it may use some itself. Sums of many plans are those of parts that do
// not depend on how many there are, and neither does any bit.
class PlanCost final : public ceres::CostFunction {
 public:
  // The plans must outlive the cost.
  explicit PlanCost(std::vector<const PlanRows*> plans, int threads = 1);

  bool Evaluate(double const* const* parameters, double* residuals,
                double** jacobians) const override;

 private:
  // Columns of the cluster, the workload, the slowest link and the slowest compute; the residual.
  static constexpr int kColumns = kSlowdownColumn + 1;
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, kColumns + 1, Eigen::RowMajor>;

  // What was worked out last.
  struct Point {
    std::vector<double> values;
    Derivatives derivatives = Derivatives::kNone;
    bool is_finite = false;
    Rows rows;
    double rest = 0;
  };
  void WorkOut(double const* const* parameters, Derivatives derivatives) const;

  // What some of the plans say at a point: their rows, or the sums of the rows' products.
  struct Sums {
    Rows rows;
    Eigen::Matrix<double, kColumns + 1, kColumns + 1> products;
    double rest = 0;
    bool is_finite = true;
  };
  Sums SumsOf(std::size_t begin, std::size_t end, double const* const* parameters,
              Derivatives derivatives) const;

  std::vector<const PlanRows*> plans_;
  int threads_ = 1;
  int count_ = 0;  // of residuals, without the rest
  bool is_joined_ = false;
  bool has_rest_ = false;  // one row is its own residual
  mutable Point point_;
  mutable Derivatives asked_ = Derivatives::kNone;  // at the last point
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_PLAN_ROWS_H_
