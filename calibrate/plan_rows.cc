#include "calibrate/plan_rows.h"

#include <algorithm>
#include <cmath>

#include "model/statistics/scatter.h"

namespace stepcast {
namespace {

// Scatter of the exposed share, and of it relative to itself.
constexpr double kShareSd = 0.05;
constexpr double kShareRelativeSd = 0.3;

constexpr double kSpreadLogSd = 0.3;

struct Robust {
  double f = 0;
  double slope = 1;  // df/dz
};

Robust RobustResidual(double z) {
  const double root = std::sqrt(1 + z * z);
  const double shrink = std::sqrt(2 / (1 + root));
  return {z * shrink, 1 / (shrink * root)};
}

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
  void Add(double z, double dz) {
    const Robust robust = RobustResidual(z);
    const double d = robust.slope * dz;
    cost_ += robust.f * robust.f;
    slopes_ += d * d;
    product_ += d * robust.f;
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

}  // namespace

PlanAnswer AnswerAt(const PlanRows& plan, double const* const* blocks, Derivatives derivatives) {
  const SlowestBlocks slowest = FindSlowest(plan, blocks);
  return plan.model.Answer(
      PlanParameters::FromLogs(blocks[0], blocks[1], slowest.link ? blocks[*slowest.link] : nullptr,
                               slowest.slowdown ? blocks[*slowest.slowdown] : nullptr),
      derivatives);
}

void SetScatter(double of_one, std::vector<PlanRows>* plans) {
  for (PlanRows& plan : *plans) {
    const std::size_t repeats = std::max<std::size_t>(1, plan.rows.size());
    plan.log_sd = of_one * RepeatFactor(static_cast<double>(repeats));
  }
}

PlanCost::PlanCost(const PlanRows* plan) : plan_(plan) {
  for (const MeasuredRow& row : plan->rows) has_sync_ = has_sync_ || row.sync_share.has_value();
  mutable_parameter_block_sizes()->push_back(kClusterParameterCount);
  mutable_parameter_block_sizes()->push_back(kWorkloadParameterCount);
  const std::size_t of_hosts = plan->host_offsets.size() + plan->slowdown_offsets.size();
  for (std::size_t h = 0; h < of_hosts; ++h) mutable_parameter_block_sizes()->push_back(1);
  has_rest_ = plan->rows.size() + plan->stopped.size() > 1;
  set_num_residuals(1 + (has_sync_ ? 1 : 0) + (plan->spread ? 1 : 0) + (has_rest_ ? 1 : 0));
}

bool PlanCost::Evaluate(double const* const* parameters, double* residuals,
                        double** jacobians) const {
  // Blocks that are kept constant ask for none.
  Derivatives derivatives = Derivatives::kNone;
  if (jacobians != nullptr) {
    derivatives = Derivatives::kOfWorkload;
    for (std::size_t b = 0; b < parameter_block_sizes().size(); ++b) {
      if (b != 1 && jacobians[b] != nullptr) derivatives = Derivatives::kAll;
    }
  }
  const PlanAnswer answer = AnswerAt(*plan_, parameters, derivatives);
  Joiner steps;
  Joiner shares;
  Joiner spreads;
  const double log_spread =
      plan_->spread ? plan_->spread->Log(answer, std::exp(parameters[1][kStragglerSpread])) : 0;
  for (const MeasuredRow& row : plan_->rows) {
    steps.Add((answer.log_step - row.log_step) / plan_->log_sd, 1 / plan_->log_sd);
    if (row.sync_share) {
      const double sd = ShareSd(*row.sync_share);
      shares.Add((answer.sync_share - *row.sync_share) / sd, 1 / sd);
    }
    if (!row.log_spread) continue;
    const double z = (log_spread - *row.log_spread) / kSpreadLogSd;
    if (plan_->spread->is_all()) {
      spreads.Add(z, 1 / kSpreadLogSd);
    } else {
      const Bounded bounded = BoundedResidual(-z);
      spreads.Add(bounded.z, -bounded.slope / kSpreadLogSd);
    }
  }
  if (!plan_->stopped.empty()) {
    const Bounded bounded =
        BoundedResidual((answer.log_step - HighestBound(plan_->stopped)) / plan_->log_sd);
    steps.Add(bounded.z, bounded.slope / plan_->log_sd);
  }
  const Joined step = steps.Result();
  const Joined share = shares.Result();
  const Joined spread = spreads.Result();
  const int of_share = 1;
  const int of_spread = has_sync_ ? 2 : 1;
  residuals[0] = step.residual;
  if (has_sync_) residuals[of_share] = share.residual;
  if (plan_->spread) residuals[of_spread] = spread.residual;
  if (has_rest_) {
    residuals[num_residuals() - 1] = std::sqrt(std::max(0.0, step.rest + share.rest + spread.rest));
  }
  if (jacobians == nullptr) return std::isfinite(answer.log_step);
  const auto fill = [&](double* block, std::size_t column, int size) {
    if (block == nullptr) return;
    for (int i = 0; i < size; ++i) {
      const std::size_t c = column + static_cast<std::size_t>(i);
      block[i] = step.weight * answer.log_step_gradient[c];
      if (has_sync_) block[of_share * size + i] = share.weight * answer.sync_share_gradient[c];
      if (plan_->spread) {
        block[of_spread * size + i] =
            spread.weight * WorkerSpread::Slope(answer, static_cast<int>(c));
      }
      if (has_rest_) block[(num_residuals() - 1) * size + i] = 0;
    }
  };
  fill(jacobians[0], 0, kClusterParameterCount);
  fill(jacobians[1], kClusterParameterCount, kWorkloadParameterCount);
  const SlowestBlocks slowest = FindSlowest(*plan_, parameters);
  for (std::size_t b = 2; b < parameter_block_sizes().size(); ++b) {
    if (jacobians[b] == nullptr) continue;
    if (b == slowest.link) {
      fill(jacobians[b], kLinkColumn, 1);
    } else if (b == slowest.slowdown) {
      fill(jacobians[b], kSlowdownColumn, 1);
    } else {
      std::fill_n(jacobians[b], num_residuals(), 0.0);
    }
  }
  return std::isfinite(answer.log_step);
}

}  // namespace stepcast
