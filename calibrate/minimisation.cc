#include "calibrate/minimisation.h"

#include <ceres/ceres.h>
#include <ceres/crs_matrix.h>
#include <ceres/normal_prior.h>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "calibrate/solver.h"

namespace stepcast {
namespace {

// ln(value) is normal around a centre, less the logarithm of another parameter.
class RelativePrior final : public ceres::CostFunction {
 public:
  RelativePrior(int size, int index, double centre, double log_sd)
      : size_(size), index_(index), centre_(centre), log_sd_(log_sd) {
    set_num_residuals(1);
    *mutable_parameter_block_sizes() = {size, 1};
  }

  bool Evaluate(double const* const* parameters, double* residuals,
                double** jacobians) const override {
    residuals[0] = (parameters[0][index_] + parameters[1][0] - centre_) / log_sd_;
    if (jacobians == nullptr) return true;
    if (jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], size_, 0.0);
      jacobians[0][index_] = 1 / log_sd_;
    }
    if (jacobians[1] != nullptr) jacobians[1][0] = 1 / log_sd_;
    return true;
  }

 private:
  int size_;
  int index_;
  double centre_;
  double log_sd_;
};

}  // namespace

Minimisation::Minimisation(const ParameterLayout& layout, const std::vector<const PlanRows*>& plans,
                           std::vector<double> start, const MinimisationOptions& options)
    : layout_(layout), values_(std::move(start)), hold_(options.hold) {
  const std::optional<int>& only = options.only;
  std::unordered_set<int> of_plans;  // hosts' blocks
  if (only) {
    for (const PlanRows* plan : plans) {
      of_plans.insert(plan->host_offsets.begin(), plan->host_offsets.end());
      of_plans.insert(plan->slowdown_offsets.begin(), plan->slowdown_offsets.end());
    }
  }
  const auto matters = [&](const ParameterLayout::Block& block) {
    if (!only || block.offset == *only) return true;
    if (block.kind == ParameterLayout::Kind::kHosts) return of_plans.count(block.offset) > 0;
    if (block.kind == ParameterLayout::Kind::kDevice) {
      const auto sample = static_cast<std::size_t>(*only + kSampleTime);
      return layout.parameters()[sample].relative_to == block.offset;
    }
    return block.kind != ParameterLayout::Kind::kWorkload;
  };
  std::copy_if(layout.blocks().begin(), layout.blocks().end(), std::back_inserter(blocks_),
               matters);
  for (const ParameterLayout::Block& block : blocks_) {
    AddBlock(block);
    if (only && block.offset != *only) {
      problem_.SetParameterBlockConstant(values_.data() + block.offset);
    }
  }
  std::map<std::pair<std::vector<double*>, bool>, std::vector<const PlanRows*>> of_blocks;
  for (const PlanRows* plan : plans) {
    of_blocks[{BlocksOf(*plan, values_.data()), plan->others}].push_back(plan);
  }
  for (auto& [at, own] : of_blocks) {
    problem_.AddResidualBlock(new PlanCost(std::move(own), options.threads), nullptr, at.first);
  }
}

Fit Minimisation::Solve(int max_iterations, double tolerance) {
  const std::vector<double> start = values_;
  Fit fit = SolveAsSet(max_iterations, tolerance);
  if (fit.usable && WithinBounds()) return fit;
  values_ = start;
  SetBounds();
  const int iterations = fit.iterations;
  fit = SolveAsSet(max_iterations, tolerance);
  fit.iterations += iterations;
  return fit;
}

Fit Minimisation::SolveAsSet(int max_iterations, double tolerance) {
  ceres::Solver::Options options = MakeSolverOptions(max_iterations);
  options.function_tolerance = tolerance;
  if (HasManyLinks()) {
    options.linear_solver_type = ceres::SPARSE_NORMAL_CHOLESKY;
    options.dynamic_sparsity = true;
  } else {
    options.linear_solver_type = ceres::DENSE_SCHUR;
    auto ordering = std::make_shared<ceres::ParameterBlockOrdering>();
    for (const ParameterLayout::Block& block : blocks_) {
      const bool first = block.kind == ParameterLayout::Kind::kWorkload;
      ordering->AddElementToGroup(values_.data() + block.offset, first ? 0 : 1);
    }
    options.linear_solver_ordering = ordering;
  }
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem_, &summary);
  Fit fit;
  fit.values = values_;
  fit.cost = summary.final_cost;
  fit.iterations = static_cast<int>(summary.iterations.size());
  fit.usable = summary.IsSolutionUsable();
  fit.converged = summary.termination_type == ceres::CONVERGENCE;
  return fit;
}

bool Minimisation::HasManyLinks() const {
  constexpr std::ptrdiff_t kMany = 100;  // of which a dense system takes as long as a sparse one
  return std::count_if(blocks_.begin(), blocks_.end(), [](const ParameterLayout::Block& block) {
           return block.kind == ParameterLayout::Kind::kHosts;
         }) > kMany;
}

std::optional<Eigen::MatrixXd> Minimisation::SparseCovariance() {
  ceres::Problem::EvaluateOptions options;
  std::vector<int> free;  // values that may move, in the order of the columns
  for (const ParameterLayout::Block& block : blocks_) {
    double* const at = values_.data() + block.offset;
    if (problem_.IsParameterBlockConstant(at)) continue;
    options.parameter_blocks.push_back(at);
    for (int i = block.offset; i < block.offset + block.size; ++i) {
      if (!layout_.parameters()[static_cast<std::size_t>(i)].fixed && hold_ != i) free.push_back(i);
    }
  }
  ceres::CRSMatrix rows;
  if (!problem_.Evaluate(options, nullptr, nullptr, nullptr, &rows)) return std::nullopt;
  const Eigen::Map<const Eigen::SparseMatrix<double, Eigen::RowMajor>> jacobian(
      rows.num_rows, rows.num_cols, static_cast<Eigen::Index>(rows.values.size()), rows.rows.data(),
      rows.cols.data(), rows.values.data());
  const Eigen::SparseMatrix<double> pruned = Eigen::SparseMatrix<double>(jacobian).pruned();
  const Eigen::SparseMatrix<double> information = pruned.transpose() * pruned;
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors(information);
  if (factors.info() != Eigen::Success || !(factors.vectorD().minCoeff() > 0)) return std::nullopt;
  const Eigen::MatrixXd of_free =
      factors.solve(Eigen::MatrixXd::Identity(rows.num_cols, rows.num_cols));
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(layout_.size(), layout_.size());
  covariance(free, free) = 0.5 * (of_free + of_free.transpose());
  return covariance;
}

std::optional<Eigen::MatrixXd> Minimisation::Covariance() {
  if (HasManyLinks()) return SparseCovariance();
  std::vector<const double*> all;
  for (const ParameterLayout::Block& block : blocks_) {
    all.push_back(values_.data() + block.offset);
  }
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::SPARSE_QR;
  options.num_threads = 1;
  ceres::Covariance estimate(options);
  ceres::Matrix matrix(layout_.size(), layout_.size());
  if (!estimate.Compute(all, &problem_) || !estimate.GetCovarianceMatrix(all, matrix.data())) {
    return std::nullopt;
  }
  // Symmetric to the last bit, as it is once a file was read.
  matrix.triangularView<Eigen::StrictlyUpper>() = matrix.transpose();
  return matrix;
}

void Minimisation::AddBlock(const ParameterLayout::Block& block) {
  double* const at = values_.data() + block.offset;
  problem_.AddParameterBlock(at, block.size);
  std::vector<int> fixed;
  ceres::Matrix information = ceres::Matrix::Zero(block.size, block.size);
  ceres::Vector centre = ceres::Vector::Zero(block.size);
  for (int i = 0; i < block.size; ++i) {
    const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(block.offset + i)];
    centre[i] = std::log(p.prior.si);
    if (p.fixed) {
      fixed.push_back(i);
      continue;
    }
    at[i] = std::clamp(at[i], p.spec->log_low(), p.spec->log_high());
    if (hold_ == block.offset + i) fixed.push_back(i);
    if (p.relative_to >= 0) {
      problem_.AddResidualBlock(new RelativePrior(block.size, i, centre[i], p.prior.log_sd),
                                nullptr, at, values_.data() + p.relative_to);
      continue;
    }
    information(i, i) = 1 / p.prior.log_sd;
    if (p.multiple_of >= 0) information(i, p.multiple_of - block.offset) = -1 / p.prior.log_sd;
  }
  problem_.AddResidualBlock(new ceres::NormalPrior(information, centre), nullptr, at);
  if (static_cast<int>(fixed.size()) == block.size) {
    problem_.SetParameterBlockConstant(at);
  } else if (!fixed.empty()) {
    problem_.SetManifold(at, new ceres::SubsetManifold(block.size, fixed));
  }
}

bool Minimisation::WithinBounds() const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const ParameterSpec& spec = *layout_.parameters()[i].spec;
    if (values_[i] < spec.log_low() || values_[i] > spec.log_high()) return false;
  }
  return true;
}

void Minimisation::SetBounds() {
  for (const ParameterLayout::Block& block : blocks_) {
    double* const at = values_.data() + block.offset;
    if (problem_.IsParameterBlockConstant(at)) continue;
    for (int i = 0; i < block.size; ++i) {
      const FittedParameter& p = layout_.parameters()[static_cast<std::size_t>(block.offset + i)];
      if (p.fixed) continue;
      problem_.SetParameterLowerBound(at, i, p.spec->log_low());
      problem_.SetParameterUpperBound(at, i, p.spec->log_high());
    }
  }
}

}  // namespace stepcast
