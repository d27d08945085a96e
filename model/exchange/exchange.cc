#include "model/exchange/exchange.h"

#include <algorithm>

#include "model/exchange/collective_step.h"
#include "model/exchange/growth.h"
#include "model/step/explainer.h"

namespace stepcast {
namespace {

// Nobody to exchange with.
class Nothing final : public Exchange {
 public:
  Traffic CountTraffic(const Plan& /*plan*/, DataSize<> /*gradient*/,
                       DataSize<> /*shard*/) const override {
    return {};
  }
  MemoryShares Memory(const MemoryQuestion& /*question*/) const override { return {}; }
  SyncGrowth<double> Growth(const GrowthQuestion& /*question*/) const override { return {}; }
  void ExplainHops(Explainer* /*explainer*/) const override {}
  FormulaText ExplainCalls(Explainer* /*explainer*/) const override { return {}; }
};

}  // namespace

MemoryShares Exchange::Memory(const MemoryQuestion& question) const {
  return {.buckets = question.workers > 1 ? 1.0 : 0.0};
}

CallPaces Exchange::Paces(const GrowthQuestion& q) const { return {q.terms.cost, q.terms.cost}; }

Duration<> Exchange::Room(const GrowthQuestion& q) const {
  if (q.plan.local_steps > 1) return {};
  switch (q.plan.overlap) {
    case Overlap::kNone:
      return {};
    case Overlap::kPNorm:
      return q.terms.hidden;
    case Overlap::kBuckets:
      break;
  }
  return q.terms.backward * (1 - q.buckets.front().ready);
}

void Exchange::Explain(Explainer* explainer) const { explainer->Synchronisation(*this, 4); }

void Exchange::ExplainParts(Explainer* explainer) const { explainer->SynchronisationParts(); }

void Exchange::ExplainSlowStart(Explainer* explainer, FormulaText* whole) const {
  const StepFacts& facts = explainer->facts();
  const StepTerms<double>& terms = explainer->terms();
  whole->Add(" + x", {explainer->SlowStart(
                         "slow start after silence", "x", 1, internal::PiecesOf(facts).first,
                         internal::TimeOfPieces(facts, terms.cost, terms.node_hop),
                         facts.buckets->front().bytes)});
}

// Each in its own source.
const Exchange& AllreduceExchange();
const Exchange& ServerExchange();
const Exchange& AsyncServerExchange();
const Exchange& BytePsExchange();

const Exchange& ExchangeOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::kNone:
      break;
    case Strategy::kAllreduce:
    case Strategy::kRing:
    case Strategy::kTree:
    case Strategy::kHalvingDoubling:
    case Strategy::kHierarchical:
    case Strategy::kAuto:
      return AllreduceExchange();
    case Strategy::kPsSync:
      return ServerExchange();
    case Strategy::kPsAsync:
      return AsyncServerExchange();
    case Strategy::kBytePs:
      return BytePsExchange();
  }
  static const Nothing exchange;
  return exchange;
}

Traffic CountTraffic(const Plan& plan, DataSize<> gradient,
                     std::optional<DataSize<>> largest_shard) {
  const DataSize<> equal = gradient / std::max(1.0, static_cast<double>(plan.servers));
  Traffic traffic =
      ExchangeOf(plan.strategy).CountTraffic(plan, gradient, largest_shard.value_or(equal));
  traffic.gradient = gradient;
  return traffic;
}

}  // namespace stepcast
