// The parts of a step that few of a compiled plan's questions differ in, looked up.
#ifndef STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_
#define STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "model/overlap/buckets.h"
#include "model/step/line_parts.h"

// Marks a function that everything it calls is compiled into, for speed. With sanitizers it would
// take minutes to compile.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPCAST_FLATTEN
#else
#define STEPCAST_FLATTEN [[gnu::flatten]]
#endif

// Marks a function that is compiled for wider registers too, for processors that have them; without
// fused operations, so that answers are the same bits on all. kWide numbers are in a register.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define STEPCAST_WIDE [[gnu::target_clones("avx2", "default")]]
#define STEPCAST_WIDE_NUMBERS 4
#else
#define STEPCAST_WIDE
#define STEPCAST_WIDE_NUMBERS 2
#endif

namespace stepcast::internal {

inline constexpr int kWide = STEPCAST_WIDE_NUMBERS;

// Shares of the fullest of so many servers, as a synchronisation needs them.
struct Shards {
  double share = 1;
  std::shared_ptr<const std::vector<Bucket>> held;  // ps-sync
  std::vector<BucketLine> lines;                    // of these
};

// What depends on a count and on no parameter.
struct CountTables {
  std::vector<double> slowest_hop;  // by nodes
  std::vector<double> slowest;      // by workers, but for a plan's backup workers
};

// Rates of paths by the peers that a node, or the workers that a server, exchanges with; only those
// that were asked for when the tables were made.
template <class T>
struct Rates {
  std::vector<std::optional<PathRate<T>>> node;
  std::vector<std::optional<PathRate<T>>> server;

  static const PathRate<T>* Find(const std::vector<std::optional<PathRate<T>>>& rates,
                                 double peers) {
    const auto at = static_cast<std::size_t>(peers);
    return at < rates.size() && rates[at] ? &*rates[at] : nullptr;
  }
};

// Of the shapes that one strategy has: hops that wait for each other have a fixed number of peers.
inline double KeyOf(const FlowShape& shape) { return std::max<double>(shape.peers, shape.hops); }

// Fills the tables with what a plan's routes ask for.
template <class T>
struct RecordedParts : ComputedParts {
  Rates<T>* rates = nullptr;

  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* terms) const {
    return Keep(&rates->node, KeyOf(shape),
                ComputedParts::NodeRate(link, cluster, shape, barrier, terms));
  }
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* terms) const {
    return Keep(&rates->server, shape.peers,
                ComputedParts::ServerRate(link, cluster, shape, barrier, terms));
  }

 private:
  static PathRate<T> Keep(std::vector<std::optional<PathRate<T>>>* table, double peers,
                          const PathRate<T>& rate) {
    const auto at = static_cast<std::size_t>(peers);
    if (table->size() <= at) table->resize(at + 1);
    (*table)[at] = rate;
    return rate;
  }
};

// The curve's time of a whole number of samples, looked up where the table reaches.
template <class T>
Duration<T> CurveTimeIn(const std::vector<Duration<T>>& curve, double batch,
                        const WorkloadParameters<T>& workload) {
  // By way of a signed number, which a processor converts in one step.
  const auto at = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(batch));
  return at < curve.size() ? curve[at] : ComputedParts().CurveTime(batch, workload);
}

// Looks up what has been computed before, and computes the rest. Rate and Curve are the scalars of
// the two tables.
template <class Rate, class Curve = Rate>
struct KnownParts : LineParts {
  const std::vector<Duration<Curve>>* curve = nullptr;  // by local batch
  const Rates<Rate>* rates = nullptr;  // none where the query has a link of its own
  const CountTables* counts = nullptr;

  Duration<Curve> CurveTime(double batch, const WorkloadParameters<Curve>& workload) const {
    return CurveTimeIn(*curve, batch, workload);
  }
  // Null where it is not known.
  const PathRate<Rate>* KnownNodeRate(const FlowShape& shape) const {
    return rates != nullptr ? Rates<Rate>::Find(rates->node, KeyOf(shape)) : nullptr;
  }
  const PathRate<Rate>* KnownServerRate(const FlowShape& shape) const {
    return rates != nullptr ? Rates<Rate>::Find(rates->server, shape.peers) : nullptr;
  }
  PathRate<Rate> NodeRate(const LinkFacts& link, const ClusterParameters<Rate>& cluster,
                          const FlowShape& shape, const Barrier<Rate>& barrier,
                          PathTerms<Rate>* terms) const {
    const PathRate<Rate>* known = KnownNodeRate(shape);
    return known != nullptr ? *known
                            : ComputedParts::NodeRate(link, cluster, shape, barrier, terms);
  }
  PathRate<Rate> ServerRate(const LinkFacts& link, const ClusterParameters<Rate>& cluster,
                            const FlowShape& shape, const Barrier<Rate>& barrier,
                            PathTerms<Rate>* terms) const {
    const PathRate<Rate>* known = KnownServerRate(shape);
    return known != nullptr ? *known
                            : ComputedParts::ServerRate(link, cluster, shape, barrier, terms);
  }
  double SlowestHop(int nodes) const {
    const auto at = static_cast<std::size_t>(nodes);
    return at < counts->slowest_hop.size() ? counts->slowest_hop[at]
                                           : ComputedParts::SlowestHop(nodes);
  }
  double Slowest(const StepFacts& facts) const {
    const auto at = static_cast<std::size_t>(facts.workers);
    return at < counts->slowest.size() ? counts->slowest[at] : ComputedParts::Slowest(facts);
  }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_
