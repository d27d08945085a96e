// How every fit of this room is solved: one set-up, certified on problems with known answers.
//
// Levenberg-Marquardt on dense normal equations, in one thread: the sums have one order, and the
// same problem gives the same bits. Normal equations square the condition number; parameters are
// logarithms with priors, which keeps it small.
//
// Note that 52 of the 54 certified nonlinear regressions of NIST's Statistical Reference Datasets
// are solved with these very options, and the other two are listed (tests/calibrate/nist_test.cc).
// A fit to noisy runs may stop earlier.
#ifndef STEPCAST_CALIBRATE_SOLVER_H_
#define STEPCAST_CALIBRATE_SOLVER_H_

#include <ceres/solver.h>

namespace stepcast {

inline ceres::Solver::Options MakeSolverOptions(int max_iterations) {
  ceres::Solver::Options options;
  options.max_num_iterations = max_iterations;
  options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-12;
  options.parameter_tolerance = 1e-10;
  options.gradient_tolerance = 1e-14;
  return options;
}

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_SOLVER_H_
