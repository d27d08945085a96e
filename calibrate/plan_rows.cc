#include "calibrate/plan_rows.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "model/numeric/run_parts.h"
#include "model/statistics/scatter.h"

namespace stepcast {
namespace {

// Scatter of the exposed share, and of it relative to itself.
constexpr double kShareSd = 0.05;
constexpr double kShareRelativeSd = 0.3;

constexpr double kSpreadLogSd = 0.3;

// How many plans are summed in one part at least, by one thread, and how many parts there are at
// most.
constexpr std::size_t kPlansOfAPart = 256;
constexpr int kMostParts = 16;

// sqrt(-2 ln Phi(b)) and its slope by b: of what is known to be above its bound, b standard
// deviations above it as the model says.
struct Bounded {
  double z = 0;
  double slope = 0;
};

Bounded BoundedResidual(double b) {
  constexpr double kFarAbove = 8;    // where 1 - Phi(b) is rounding
  constexpr double kFarBelow = -35;  // where Phi(b) soon is no number: Mills' ratio from there on
  if (b > kFarAbove) return {};
  const double log_density = -0.5 * (b * b + std::log(2 * M_PI));
  const bool far = b < kFarBelow;
  const double log_probability = far     ? log_density - std::log(-b)
                                 : b < 0 ? std::log(0.5 * std::erfc(-b * M_SQRT1_2))
                                         : std::log1p(-0.5 * std::erfc(b * M_SQRT1_2));
  const double hazard = far ? -b - 1 / b : std::exp(log_density - log_probability);
  const double z = std::sqrt(-2 * log_probability);
  return {z, -hazard / z};
}

// Rows of one gradient as one residual, and what is left of their cost.
struct Joined {
  double residual = 0;
  double weight = 0;  // of the gradient
  double rest = 0;
};

class Joiner {
 public:
  // With r = (1 + z^2)^(1/2): f^2 = 2 z^2 / (1 + r), d f = z / r, d^2 = (1 + r) / (2 r^2).
  void Add(double z, double dz) {
    const double root = std::sqrt(1 + z * z);
    const double inverse = 1 / root;
    cost_ += 2 * z * z / (1 + root);
    slopes_ += 0.5 * (1 + root) * inverse * inverse * dz * dz;
    product_ += z * inverse * dz;
  }
  Joined Result() const {
    if (!(slopes_ > 0)) return {};
    const double weight = std::sqrt(slopes_);
    const double residual = product_ / weight;
    return {residual, weight, cost_ - residual * residual};
  }

 private:
  double cost_ = 0;
  double slopes_ = 0;
  double product_ = 0;
};

struct SlowestBlocks {
  std::optional<std::size_t> link;
  std::optional<std::size_t> slowdown;
};

SlowestBlocks FindSlowest(const PlanRows& plan, double const* const* blocks) {
  const std::size_t links = plan.host_offsets.size();
  SlowestBlocks slowest;
  slowest.link = SlowestLink(links, [&](std::size_t h) { return blocks[2 + h][0]; });
  slowest.slowdown = SlowestCompute(plan.slowdown_offsets.size(), plan.others,
                                    [&](std::size_t h) { return blocks[2 + links + h][0]; });
  if (slowest.link) *slowest.link += 2;
  if (slowest.slowdown) *slowest.slowdown += 2 + links;
  return slowest;
}

// The others say no more.
double HighestBound(const std::vector<StoppedRow>& stopped) {
  double highest = stopped.front().log_bound;
  for (const StoppedRow& row : stopped) highest = std::max(highest, row.log_bound);
  return highest;
}

double ShareSd(double measured) { return std::hypot(kShareSd, kShareRelativeSd * measured); }

// The residuals of one plan's rows, those of one gradient joined.
struct PlanResiduals {
  Joined step;
  Joined share;
  Joined spread;
  bool is_finite = false;

  PlanResiduals(const PlanRows& plan, const PlanAnswer& answer, double straggler_spread)
      : is_finite(std::isfinite(answer.log_step)) {
    Joiner steps;
    Joiner shares;
    Joiner spreads;
    const double log_spread = plan.spread ? plan.spread->Log(answer, straggler_spread) : 0;
    const double per_sd = 1 / plan.log_sd;
    for (const MeasuredRow& row : plan.rows) {
      steps.Add((answer.log_step - row.log_step) * per_sd, per_sd);
      if (row.sync_share) {
        const double sd = ShareSd(*row.sync_share);
        shares.Add((answer.sync_share - *row.sync_share) / sd, 1 / sd);
      }
      if (!row.log_spread) continue;
      const double z = (log_spread - *row.log_spread) / kSpreadLogSd;
      if (plan.spread->is_all()) {
        spreads.Add(z, 1 / kSpreadLogSd);
      } else {
        const Bounded bounded = BoundedResidual(-z);
        spreads.Add(bounded.z, -bounded.slope / kSpreadLogSd);
      }
    }
    if (!plan.stopped.empty()) {
      const Bounded bounded =
          BoundedResidual((answer.log_step - HighestBound(plan.stopped)) / plan.log_sd);
      steps.Add(bounded.z, bounded.slope / plan.log_sd);
    }
    step = steps.Result();
    share = shares.Result();
    spread = spreads.Result();
  }

  double rest() const { return step.rest + share.rest + spread.rest; }
  double cost() const {
    const auto square = [](double x) { return x * x; };
    return square(step.residual) + square(share.residual) + square(spread.residual) + rest();
  }
};

bool HasShare(const PlanRows& plan) {
  return std::any_of(plan.rows.begin(), plan.rows.end(),
                     [](const MeasuredRow& row) { return row.sync_share.has_value(); });
}

int ResidualsOf(const PlanRows& plan) {
  return 1 + (HasShare(plan) ? 1 : 0) + (plan.spread ? 1 : 0);
}

// The parameters where the blocks have these values: of a plan, and of all with the same blocks.
PlanParameters ParametersAt(const PlanRows& plan, double const* const* blocks) {
  const SlowestBlocks slowest = FindSlowest(plan, blocks);
  return PlanParameters::FromLogs(blocks[0], blocks[1],
                                  slowest.link ? blocks[*slowest.link] : nullptr,
                                  slowest.slowdown ? blocks[*slowest.slowdown] : nullptr);
}

}  // namespace

PlanAnswer AnswerAt(const PlanRows& plan, const std::vector<double>& values) {
  return plan.model.Answer(ParametersAt(plan, BlocksOf(plan, values.data()).data()),
                           Derivatives::kNone);
}

double StragglerSpreadOf(const PlanRows& plan, const std::vector<double>& values) {
  return std::exp(values[static_cast<std::size_t>(plan.workload_offset + kStragglerSpread)]);
}

double CostAt(const PlanRows& plan, const std::vector<double>& values) {
  const PlanResiduals residuals(plan, AnswerAt(plan, values), StragglerSpreadOf(plan, values));
  return residuals.is_finite ? residuals.cost() : std::numeric_limits<double>::infinity();
}

void SetScatter(double of_one, std::vector<PlanRows>* plans) {
  for (PlanRows& plan : *plans) {
    const std::size_t repeats = std::max<std::size_t>(1, plan.rows.size());
    plan.log_sd = of_one * RepeatFactor(static_cast<double>(repeats));
  }
}

PlanCost::PlanCost(std::vector<const PlanRows*> plans, int threads)
    : plans_(std::move(plans)), threads_(threads) {
  std::sort(plans_.begin(), plans_.end(), std::less<>());  // in the order of memory
  mutable_parameter_block_sizes()->push_back(kClusterParameterCount);
  mutable_parameter_block_sizes()->push_back(kWorkloadParameterCount);
  const PlanRows& first = *plans_.front();
  const std::size_t of_hosts = first.host_offsets.size() + first.slowdown_offsets.size();
  for (std::size_t h = 0; h < of_hosts; ++h) mutable_parameter_block_sizes()->push_back(1);
  for (const PlanRows* plan : plans_) {
    count_ += ResidualsOf(*plan);
    has_rest_ = has_rest_ || plan->rows.size() + plan->stopped.size() > 1;
  }
  if (count_ > kColumns) {
    is_joined_ = has_rest_ = true;
    count_ = kColumns;
  }
  set_num_residuals(count_ + (has_rest_ ? 1 : 0));
  point_.values.assign(kLinkColumn + of_hosts, std::numeric_limits<double>::quiet_NaN());
}

PlanCost::Sums PlanCost::SumsOf(std::size_t begin, std::size_t end, double const* const* parameters,
                                Derivatives derivatives) const {
  constexpr int kTogether = 64;  // rows whose products are summed at once
  constexpr int kMostOfAPlan = 3;
  Sums sums;
  sums.products.setZero();
  sums.rows.resize(is_joined_ ? kTogether : count_, Eigen::NoChange);
  int filled = 0;
  const auto join = [&] {
    sums.products.selfadjointView<Eigen::Lower>().rankUpdate(sums.rows.topRows(filled).transpose());
    filled = 0;
  };
  const PlanParameters at = ParametersAt(*plans_.front(), parameters);
  const double straggler_spread = std::exp(parameters[1][kStragglerSpread]);
  for (std::size_t p = begin; p < end; ++p) {
    const PlanRows* plan = plans_[p];
    // Rows lie where the heap had room: of many plans, a wait for each.
    if (p + 1 < end) __builtin_prefetch(plans_[p + 1]->rows.data());
    const PlanAnswer answer = plan->model.Answer(at, derivatives);
    const PlanResiduals residuals(*plan, answer, straggler_spread);
    sums.is_finite = sums.is_finite && residuals.is_finite;
    sums.rest += residuals.rest();
    const auto add = [&](const Joined& joined, const auto& gradient) {
      auto row = sums.rows.row(filled++);
      for (int i = 0; i < kColumns; ++i) row[i] = joined.weight * gradient(i);
      row[kColumns] = joined.residual;
    };
    const auto of = [](const PlanGradient& gradient) {
      return [&](int i) { return gradient[static_cast<std::size_t>(i)]; };
    };
    add(residuals.step, of(answer.log_step_gradient));
    if (HasShare(*plan)) add(residuals.share, of(answer.sync_share_gradient));
    if (plan->spread) {
      add(residuals.spread, [&](int i) { return WorkerSpread::Slope(answer, i); });
    }
    if (is_joined_ && filled > kTogether - kMostOfAPlan) join();
  }
  if (is_joined_) join();
  return sums;
}

void PlanCost::WorkOut(double const* const* parameters, Derivatives derivatives) const {
  bool is_known = point_.derivatives >= derivatives;
  std::size_t at_value = 0;
  for (std::size_t b = 0; b < parameter_block_sizes().size(); ++b) {
    for (int i = 0; i < parameter_block_sizes()[b]; ++i, ++at_value) {
      is_known = is_known && point_.values[at_value] == parameters[b][i];
      point_.values[at_value] = parameters[b][i];
    }
  }
  if (is_known) return;
  point_.derivatives = derivatives;
  const std::size_t count = is_joined_ ? PartCount(plans_.size(), kPlansOfAPart, kMostParts) : 1;
  std::vector<Sums> parts(count);
  ShareOut(plans_.size(), count, threads_,
           [&](std::size_t part, std::size_t begin, std::size_t end) {
             parts[part] = SumsOf(begin, end, parameters, derivatives);
           });
  Sums& all = parts.front();
  for (std::size_t part = 1; part < count; ++part) {
    all.products += parts[part].products;
    all.rest += parts[part].rest;
    all.is_finite = all.is_finite && parts[part].is_finite;
  }
  point_.is_finite = all.is_finite;
  point_.rest = all.rest;
  if (!is_joined_) {
    point_.rows = std::move(all.rows);
    return;
  }
  // The root of the sums; what they say nothing of has rows of nothing.
  using Square = Eigen::Matrix<double, kColumns, kColumns>;
  const Eigen::LDLT<Square> factors(all.products.topLeftCorner<kColumns, kColumns>());
  const Eigen::Array<double, kColumns, 1> root = factors.vectorD().array().max(0).sqrt();
  const Square lower = factors.matrixL();
  Eigen::Matrix<double, kColumns, 1> residuals =
      factors.transpositionsP() * all.products.row(kColumns).head<kColumns>().transpose();
  factors.matrixL().solveInPlace(residuals);
  residuals = (root > 0).select(residuals.array() / root, 0.0);
  point_.rows.resize(kColumns, Eigen::NoChange);
  const Square transposed =
      factors.transpositionsP().transpose() * (lower * root.matrix().asDiagonal());
  point_.rows.leftCols<kColumns>() = transposed.transpose();
  point_.rows.col(kColumns) = residuals;
  point_.rest += all.products(kColumns, kColumns) - residuals.squaredNorm();
}

bool PlanCost::Evaluate(double const* const* parameters, double* residuals,
                        double** jacobians) const {
  if (jacobians != nullptr) {
    // Blocks that are kept constant ask for no derivatives.
    asked_ = Derivatives::kOfWorkload;
    for (std::size_t b = 0; b < parameter_block_sizes().size(); ++b) {
      if (b != 1 && jacobians[b] != nullptr) asked_ = Derivatives::kAll;
    }
  }
  WorkOut(parameters, asked_);
  if (jacobians == nullptr) asked_ = Derivatives::kNone;
  Eigen::Map<Eigen::VectorXd>(residuals, count_) = point_.rows.col(kColumns);
  if (has_rest_) residuals[count_] = std::sqrt(std::max(0.0, point_.rest));
  if (jacobians == nullptr) return point_.is_finite;
  const SlowestBlocks slowest = FindSlowest(*plans_.front(), parameters);
  for (std::size_t b = 0; b < parameter_block_sizes().size(); ++b) {
    if (jacobians[b] == nullptr) continue;
    const int size = parameter_block_sizes()[b];
    Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> block(
        jacobians[b], num_residuals(), size);
    block.setZero();
    const int column = b == 0                  ? 0
                       : b == 1                ? kWorkloadColumn
                       : b == slowest.link     ? kLinkColumn
                       : b == slowest.slowdown ? kSlowdownColumn
                                               : -1;
    if (column >= 0) block.topRows(count_) = point_.rows.middleCols(column, size);
  }
  return point_.is_finite;
}

}  // namespace stepcast
