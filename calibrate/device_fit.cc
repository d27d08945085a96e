#include "calibrate/device_fit.h"

#include <ceres/ceres.h>

#include <cmath>

#include "calibrate/solver.h"
#include "model/numeric/p_norm.h"

namespace stepcast {
namespace {

constexpr double kOutlier = 0.25;  // of ln(measured / t)
constexpr int kCount = int{kCurveParameterCount} + int{kTableParameterCount};

struct TablePrior {
  double value;
  double log_sd;
};
constexpr std::array<TablePrior, kTableParameterCount> kTablePriors = {{{1.2, 0.2},
                                                                        {1.8, 0.2},
                                                                        {2.5, 0.2},
                                                                        {1.1, 0.2},
                                                                        {1.3, 0.2},
                                                                        {1.8, 0.2},
                                                                        {10e-6, 1.0},
                                                                        {30e-6, 1.0},
                                                                        {1.7, 0.5},
                                                                        {200e-6, 1.0}}};

template <class T>
T RowTime(const MeasuredOperation& row, const CurveParameters<T>& curve,
          const std::array<T, kTableParameterCount>& table) {
  using std::exp;
  using std::log;
  const OperationCurve<T> at(row.sheet, curve, row.host_call > 0 ? table[kBurst] : T(0.0));
  T time = row.recurrence ? at.Recurrent(row.recurrence->gates, row.recurrence->positions, 0,
                                         row.recurrence->hidden, 1, row.pass, row.batch)
                          : at.Time(row.operation, row.pass, row.batch);
  if (row.host_call == 0) {
    if (row.recurrence) return time + table[kLoopRecurrent];
    if (std::holds_alternative<ConvolutionOp>(row.operation)) {
      return time + table[kLoopConvolution];
    }
    return time;
  }
  if (row.call == kProductCall || row.call == kLinearCall || row.call == kConvolutionCall) {
    return time + table[row.call] * row.host_call;
  }
  const T ratio = log(table[row.call] * row.host_call / time);
  const T& j = table[kCallSharpness];
  return time * exp(log(1.0 + exp(j * ratio)) / j);
}

template <class T>
void Unpack(const T* logs, CurveParameters<T>* curve, std::array<T, kTableParameterCount>* table) {
  using std::exp;
  for (std::size_t i = 0; i < kCurveParameterCount; ++i) curve->si[i] = exp(logs[i]);
  for (std::size_t i = 0; i < kTableParameterCount; ++i) {
    (*table)[i] = exp(logs[kCurveParameterCount + i]);
  }
}

class RowError {
 public:
  explicit RowError(const MeasuredOperation* row) : row_(row) {}

  template <class T>
  bool operator()(const T* logs, T* residual) const {
    using std::log;
    CurveParameters<T> curve;
    std::array<T, kTableParameterCount> table;
    Unpack(logs, &curve, &table);
    residual[0] = log(RowTime(*row_, curve, table) / row_->seconds);
    return true;
  }

 private:
  const MeasuredOperation* row_;
};

class PriorError {
 public:
  PriorError(int index, double centre, double log_sd)
      : index_(index), centre_(centre), log_sd_(log_sd) {}

  template <class T>
  bool operator()(const T* logs, T* residual) const {
    residual[0] = (logs[index_] - centre_) / log_sd_;
    return true;
  }

 private:
  int index_;
  double centre_;
  double log_sd_;
};

}  // namespace

double DeviceFit::Predict(const MeasuredOperation& row) const { return RowTime(row, curve, table); }

DeviceFit FitDevices(const std::vector<MeasuredOperation>& rows) {
  std::array<double, kCount> logs{};
  ceres::Problem problem;
  // Errors of one table are alike: a row tells less than an independent one would.
  constexpr double kScatter = 0.25;
  for (const MeasuredOperation& row : rows) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<RowError, 1, kCount>(new RowError(&row)),
        new ceres::ScaledLoss(new ceres::SoftLOneLoss(kOutlier), 1 / (kScatter * kScatter),
                              ceres::TAKE_OWNERSHIP),
        logs.data());
  }
  const auto add = [&](int i, double value, double log_sd) {
    logs[static_cast<std::size_t>(i)] = std::log(value);
    problem.AddResidualBlock(new ceres::AutoDiffCostFunction<PriorError, 1, kCount>(
                                 new PriorError(i, std::log(value), log_sd)),
                             nullptr, logs.data());
  };
  for (int i = 0; i < kCurveParameterCount; ++i) {
    const CurveParameterSpec& spec = kCurveParameterSpecs[static_cast<std::size_t>(i)];
    add(i, spec.prior * spec.si_per_unit, spec.log_sd);
    problem.SetParameterLowerBound(logs.data(), i, std::log(spec.low * spec.si_per_unit));
    problem.SetParameterUpperBound(logs.data(), i, std::log(spec.high * spec.si_per_unit));
  }
  for (int i = 0; i < kTableParameterCount; ++i) {
    const TablePrior& prior = kTablePriors[static_cast<std::size_t>(i)];
    add(int{kCurveParameterCount} + i, prior.value, prior.log_sd);
  }
  constexpr int kIterations = 60;
  ceres::Solver::Options options = MakeSolverOptions(kIterations);
  options.function_tolerance = 1e-6;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  DeviceFit fit;
  fit.converged = summary.IsSolutionUsable();
  Unpack(logs.data(), &fit.curve, &fit.table);
  return fit;
}

}  // namespace stepcast
