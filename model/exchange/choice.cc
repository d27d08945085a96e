#include "model/exchange/choice.h"

#include <array>
#include <cstdio>

namespace stepcast {

std::optional<DataSize<>> TieMessage(const SyncCost<double>& a, const SyncCost<double>& b) {
  const Duration<> call = b.per_call - a.per_call;
  const DurationPerByte<double> byte = a.per_byte - b.per_byte;
  if (call.si() * byte.si() <= 0) return std::nullopt;
  return call / byte;
}

std::string WhyChosen(const AllreduceChoice<double>& choice, const DataSize<>& message) {
  constexpr double kNear = 4;
  if (!choice.next) return "One worker has nothing to exchange.";
  const SyncCost<double> best = choice.best.cost.Binding(message);
  const SyncCost<double> next = choice.next->cost.Binding(message);
  const Duration<> time = best.Time(message);
  const Duration<> other = next.Time(message);
  const bool fewer_bytes = best.per_byte < next.per_byte;
  std::array<char, 160> reason{};
  if (other < time * 1.01) {
    std::snprintf(reason.data(), reason.size(), "the two differ by less than 1 %%");
  } else if (const std::optional<DataSize<>> tie = TieMessage(best, next); !tie) {
    std::snprintf(reason.data(), reason.size(),
                  "for messages like this it costs no more for a call and for a byte");
  } else {
    std::array<char, 64> where{};
    const bool same_costs = !(best.Time(*tie) < choice.best.cost.Time(*tie)) &&
                            !(next.Time(*tie) < choice.next->cost.Time(*tie));
    if (same_costs && message < *tie * kNear && *tie < message * kNear) {
      std::snprintf(where.data(), where.size(), ", which decides %s %.3g MB",
                    fewer_bytes ? "above" : "below", tie->in(kMegabytes));
    }
    std::snprintf(reason.data(), reason.size(), "it costs less for each %s%s",
                  fewer_bytes ? "byte" : "call", where.data());
  }
  std::array<char, 320> text{};
  std::snprintf(text.data(), text.size(),
                "For %.4g MB %s takes %.4g ms and %s, the next best, %.4g ms: %s.",
                message.in(kMegabytes), StrategyName(choice.best.algorithm), time.in(kMilliseconds),
                StrategyName(choice.next->algorithm), other.in(kMilliseconds), reason.data());
  return text.data();
}

}  // namespace stepcast
