// The batches that a search tries where nobody names any: one list for `recommend`, the C
// interface, Python and the service, so that all of them give one answer.
//
//   b   powers of two within the batches to trust; the plan's own; and the largest to trust that
//       the global batch allows
//   a   1, 2, 3, 4, 6, 8, 12, ...: powers of two and half as much again; the plan's own; and the
//       most that the global batch allows
//
//   b, a   local batch, accumulation interval                                     [samples], [1]
#ifndef STEPCAST_PREDICTOR_SEARCH_BATCH_GRID_H_
#define STEPCAST_PREDICTOR_SEARCH_BATCH_GRID_H_

#include <algorithm>
#include <bit>
#include <optional>

#include "data/plan/limits.h"
#include "data/record/calibration.h"

namespace stepcast {

// Global batches beyond this have needed special optimizers: ResNet-50 keeps its accuracy to 8192
// samples a step (Goyal et al., "Accurate, Large Minibatch SGD", 2017).
inline constexpr int kDefaultMostGlobalBatch = 8192;
// Scores within this share of the best count as equal; the smallest global batch then wins, because
// it is worth more to the optimizer.
inline constexpr double kEqualScores = 0.05;
// Scores of one global batch that differ by less differ by rounding, as all do where samples come
// no faster. Fewer micro-steps then win.
inline constexpr double kSameScores = 1e-9;
inline bool LeadsAtItsBatch(double score, int steps, double other_score, int other_steps) {
  if (score > other_score * (1 + kSameScores)) return true;
  return score >= other_score * (1 - kSameScores) && steps < other_steps;
}
// Beyond so many micro-steps a synchronisation costs nothing that could still be saved.
inline constexpr int kMostTriedAccumulation = 4096;

// Local batches at which the compute curve is no guess: within a factor of four of what was
// calibrated, or all where nothing was.
struct TrustedBatches {
  int least = 1;
  int most = kMostBatch;
};
inline TrustedBatches TrustedBatchesOf(const std::optional<CalibratedRange::BatchRange>& seen) {
  constexpr int kFactor = 4;
  if (!seen) return {};
  return {(seen->min + kFactor - 1) / kFactor,
          static_cast<int>(std::min<long long>(1LL * seen->max * kFactor, kMostBatch))};
}

namespace internal {

// Calls visit(n) for the rising numbers of next(n), from the first to `last`, which ends them
// whatever is next, with `own` in its place among them where it is at least 1.
template <class Next, class Visit>
void VisitRising(long long first, long long last, long long own, const Next& next,
                 const Visit& visit) {
  bool told = own < 1;
  for (long long n = first; n <= last; n = n < last ? std::min(next(n), last) : last + 1) {
    if (!told && own <= n) {
      told = true;
      if (own < n) visit(static_cast<int>(own));
    }
    visit(static_cast<int>(n));
  }
  if (!told) visit(static_cast<int>(own));
}

}  // namespace internal

// Calls visit(b) for the local batches up to `most`, rising; `own` is the plan's, or 0 to leave it
// out. Where no batch to trust is that small, the largest power of two is tried, and `most`.
template <class Visit>
void ForEachLocalBatch(const TrustedBatches& trusted, int most, int own, const Visit& visit) {
  if (most < 1) return;
  const int last = std::min(trusted.most, most);
  const long long first = std::min(std::bit_ceil(static_cast<unsigned>(trusted.least)),
                                   std::bit_floor(static_cast<unsigned>(last)));
  internal::VisitRising(
      first, last, own <= most ? own : 0, [](long long b) { return 2 * b; }, visit);
}

// Calls visit(a) for the accumulation intervals up to `most`, rising.
template <class Visit>
void ForEachInterval(int most, int own, const Visit& visit) {
  const auto next = [](long long a) -> long long {
    const bool power = (a & (a - 1)) == 0;
    return a == 1 ? 2 : power ? a + a / 2 : a / 3 * 4;
  };
  internal::VisitRising(1, most, own <= most ? own : 0, next, visit);
}

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_BATCH_GRID_H_
