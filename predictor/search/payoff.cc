#include "predictor/search/payoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/plan/limits.h"
#include "predictor/report/terminal.h"
#include "predictor/search/batch_grid.h"

namespace stepcast {
namespace {

// Rates are found to so many parts of themselves.
constexpr double kPrecision = 1e-3;

}  // namespace

Payoff FindPayoff(const Predictor& predictor, const Plan& plan, SampleRate<> wanted,
                  double most_global_batch) {
  Payoff payoff;
  if (plan.workers() < 2 && plan.servers == 0) return payoff;
  const auto pays = [&](const Plan& tried) {
    return predictor.Predict(tried).throughput >= wanted;
  };
  Plan tried = plan;
  const auto with_rate = [&](double bytes_per_s) {
    tried.link.bandwidth = BytesPerSecond(bytes_per_s);
    // Servers have the workers' links unless the plan states theirs, which then grow alike.
    if (plan.server_link.bandwidth) tried.server_link.bandwidth = tried.link.bandwidth;
    return pays(tried);
  };
  double yes = kFastestPayoff.si();
  const bool crosses_nodes = plan.nodes() > 1 || UsesServers(plan.strategy);
  if (crosses_nodes && with_rate(yes)) {
    double no = MegabitsPerSecond(0.001).si();
    while (yes / no > 1 + kPrecision) {
      const double middle = std::sqrt(yes * no);
      (with_rate(middle) ? yes : no) = middle;
    }
    payoff.bandwidth = BytesPerSecond(yes);
  }
  tried = plan;
  const double by_batch = most_global_batch / (plan.global_batch() / plan.accumulation_steps);
  const int most = static_cast<int>(std::clamp(by_batch, 1.0, 1.0 * kMostTriedAccumulation));
  const auto with_interval = [&](int a) {
    tried.accumulation_steps = a;
    const Prediction prediction = predictor.Predict(tried);
    return prediction.memory.verdict != MemoryVerdict::kOutOfMemory &&
           prediction.throughput >= wanted;
  };
  if (most > plan.accumulation_steps && with_interval(most)) {
    int fewest = most;
    int no = plan.accumulation_steps;
    while (fewest - no > 1) {
      const int middle = no + (fewest - no) / 2;
      (with_interval(middle) ? fewest : no) = middle;
    }
    payoff.accumulation_steps = fewest;
  }
  return payoff;
}

std::string PayoffText(const Payoff& payoff, const Plan& plan) {
  std::string text;
  if (payoff.bandwidth) text = fmt::format("links of {} or more", FormatRate(*payoff.bandwidth));
  if (payoff.accumulation_steps) {
    Plan more = plan;
    more.accumulation_steps = *payoff.accumulation_steps;
    text += fmt::format("{}{} micro-steps accumulated (a global batch of {})",
                        text.empty() ? "" : ", or ", FormatCount(*payoff.accumulation_steps),
                        FormatCount(more.global_batch()));
  }
  return text;
}

}  // namespace stepcast
