#include "predictor/search/payoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "predictor/report/terminal.h"
#include "predictor/search/batch_grid.h"
#include "predictor/search/bisect.h"

namespace stepcast {

Plan WithLinks(Plan plan, DataRate<> rate) {
  plan.link.bandwidth = rate;
  if (plan.server_link.bandwidth) plan.server_link.bandwidth = rate;
  return plan;
}

Payoff FindPayoff(const Predictor& predictor, const Plan& plan, SampleRate<> wanted,
                  double most_global_batch) {
  Payoff payoff;
  if (plan.workers() < 2 && plan.servers == 0) return payoff;
  const auto with_rate = [&](double bytes_per_s) {
    return predictor.Predict(WithLinks(plan, BytesPerSecond(bytes_per_s))).throughput >= wanted;
  };
  const double fastest = kFastestPayoff.si();
  if (CrossesNodes(plan) && with_rate(fastest)) {
    payoff.bandwidth = BytesPerSecond(Bisect(kSlowestPayoff.si(), fastest, with_rate));
  }
  Plan tried = plan;
  const double by_batch = most_global_batch / (plan.global_batch() / plan.accumulation_steps);
  const int most = static_cast<int>(std::clamp(by_batch, 1.0, 1.0 * kMostTriedAccumulation));
  const auto with_interval = [&](int a) {
    tried.accumulation_steps = a;
    const Prediction prediction = predictor.Predict(tried);
    return prediction.memory.may_fit() && prediction.throughput >= wanted;
  };
  if (most > plan.accumulation_steps && with_interval(most)) {
    payoff.accumulation_steps = BisectCount(plan.accumulation_steps, most, with_interval);
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
