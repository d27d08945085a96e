// The parts of a step that few of a compiled plan's questions differ in, looked up.
#ifndef STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_
#define STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "model/overlap/buckets.h"
#include "model/step/line_parts.h"
#include "predictor/compiled/slopes.h"

namespace stepcast::internal {

// What a synchronisation over so many servers needs.
struct Shards {
  double share = 1;
  std::shared_ptr<const std::vector<Bucket>> held;  // ps-sync
  std::vector<BucketLine> lines;                    // of these
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

// Fills the tables with what a plan's routes ask for.
struct RecordedParts : ComputedParts {
  Rates<double>* rates = nullptr;
  Rates<LinkDual>* rates_by_link = nullptr;

  template <class T>
  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* terms) const {
    return Keep(&TablesOf(T())->node, shape.peers,
                ComputedParts::NodeRate(link, cluster, shape, barrier, terms));
  }
  template <class T>
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* terms) const {
    return Keep(&TablesOf(T())->server, shape.peers,
                ComputedParts::ServerRate(link, cluster, shape, barrier, terms));
  }

 private:
  Rates<double>* TablesOf(double /*scalar*/) const { return rates; }
  Rates<LinkDual>* TablesOf(const LinkDual& /*scalar*/) const { return rates_by_link; }
  template <class T>
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

// Looks up what has been computed before, and computes the rest.
struct KnownParts : LineParts {
  const std::vector<Duration<>>* curve = nullptr;  // by local batch
  const std::vector<Duration<ComputeDual>>* curve_by_compute = nullptr;
  const Rates<double>* rates = nullptr;  // none where the query has a link of its own
  const Rates<LinkDual>* rates_by_link = nullptr;
  const std::vector<double>* doublings = nullptr;
  const std::vector<double>* slowest = nullptr;

  template <class T>
  Duration<T> CurveTime(double batch, const WorkloadParameters<T>& workload) const {
    return CurveTimeIn(*CurveOf(T()), batch, workload);
  }
  template <class T>
  PathRate<T> NodeRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                       const FlowShape& shape, const Barrier<T>& barrier,
                       PathTerms<T>* terms) const {
    const Rates<T>* tables = TablesOf(T());
    const PathRate<T>* known =
        tables != nullptr ? Rates<T>::Find(tables->node, shape.peers) : nullptr;
    return known != nullptr ? *known
                            : ComputedParts::NodeRate(link, cluster, shape, barrier, terms);
  }
  template <class T>
  PathRate<T> ServerRate(const LinkFacts& link, const ClusterParameters<T>& cluster,
                         const FlowShape& shape, const Barrier<T>& barrier,
                         PathTerms<T>* terms) const {
    const Rates<T>* tables = TablesOf(T());
    const PathRate<T>* known =
        tables != nullptr ? Rates<T>::Find(tables->server, shape.peers) : nullptr;
    return known != nullptr ? *known
                            : ComputedParts::ServerRate(link, cluster, shape, barrier, terms);
  }
  double Doublings(int nodes) const {
    const auto at = static_cast<std::size_t>(nodes);
    return at < doublings->size() ? (*doublings)[at] : ComputedParts::Doublings(nodes);
  }
  double Slowest(const StepFacts& facts) const {
    const auto at = static_cast<std::size_t>(facts.workers);
    return at < slowest->size() ? (*slowest)[at] : ComputedParts::Slowest(facts);
  }

 private:
  const Rates<double>* TablesOf(double /*scalar*/) const { return rates; }
  const Rates<LinkDual>* TablesOf(const LinkDual& /*scalar*/) const { return rates_by_link; }
  const std::vector<Duration<>>* CurveOf(double /*scalar*/) const { return curve; }
  const std::vector<Duration<ComputeDual>>* CurveOf(const ComputeDual& /*scalar*/) const {
    return curve_by_compute;
  }
};

// For hops by the rates of their paths, which it keeps with their derivatives by the parameters.
struct HopParts : KnownParts {
  const ClusterParameters<LinkDual>* cluster_by_link = nullptr;
  RouteSlopes* route = nullptr;

  PathRate<HopDual> NodeRate(const LinkFacts& link, const ClusterParameters<HopDual>& /*cluster*/,
                             const FlowShape& shape, const Barrier<HopDual>& barrier,
                             PathTerms<HopDual>* /*terms*/) const {
    return Kept(
        KnownParts::NodeRate<LinkDual>(link, *cluster_by_link, shape, ByLink(barrier), nullptr),
        &route->node_rate);
  }
  PathRate<HopDual> ServerRate(const LinkFacts& link, const ClusterParameters<HopDual>& /*cluster*/,
                               const FlowShape& shape, const Barrier<HopDual>& barrier,
                               PathTerms<HopDual>* /*terms*/) const {
    return Kept(
        KnownParts::ServerRate<LinkDual>(link, *cluster_by_link, shape, ByLink(barrier), nullptr),
        &route->server_rate);
  }
  FlowLimits<HopDual> ConnectionLimits(const LinkFacts& path,
                                       const ClusterParameters<HopDual>& /*cluster*/,
                                       const Barrier<HopDual>& barrier) const {
    const FlowLimits<LinkDual> limits =
        KnownParts::ConnectionLimits<LinkDual>(path, *cluster_by_link, ByLink(barrier));
    route->limits = limits;
    return {Seeded<DurationPerByte<HopDual>>(limits.window, kWindowLimitLane),
            Seeded<DurationPerByte<HopDual>>(limits.loss, kLossLimitLane)};
  }

 private:
  static PathRate<HopDual> Kept(const PathRate<LinkDual>& rate, DataRate<LinkDual>* kept) {
    *kept = rate.bandwidth;
    return {Seeded<DataRate<HopDual>>(rate.bandwidth, kRateLane), rate.limiter};
  }
  static Barrier<LinkDual> ByLink(const Barrier<HopDual>& barrier) {
    return {DataSize<LinkDual>(ValueOf(barrier.message)), barrier.flows};
  }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_KNOWN_PARTS_H_
