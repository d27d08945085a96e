// All-reduces among equal workers: rings, trees, halving and doubling, and two levels.
#include "model/exchange/allreduce.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "model/exchange/allreduce_limits.h"
#include "model/exchange/collective_terms.h"
#include "model/exchange/exchange.h"
#include "model/step/explainer.h"

namespace stepcast {
namespace {

using internal::CallText;
using internal::CollectiveTerms;

std::vector<CallText> TextOf(const CollectiveTerms& t) {
  const std::string over = " / " + t.rate.symbol;
  const auto power = [](int count) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(count)));
  };
  const bool levels = t.between && t.within;
  const auto two_rings = [&](const char* model) -> std::vector<CallText> {
    return {{model,
             {"2 (N-1) alpha", {t.n, t.alpha}},
             {"2 (N-1)/N / (cards B_hop)", {t.n, t.cards, t.b_hop}},
             t.alpha},
            t.RingWithin()};
  };
  if (levels && t.hybrid) return two_rings("collective/hybrid");
  switch (t.facts.strategy) {
    case Strategy::kTree:
      if (levels) {
        return {{"collective/tree_over_nodes",
                 {"2 (g-1) alpha_i + 2 ceil(log2 N) alpha", {t.g, t.alpha_i, t.n, t.alpha}},
                 {"max(min(2, N/2)/(cards B_hop), min(2, g-1)/B_host)",
                  {t.n, t.cards, t.b_hop, t.g, t.b_host}}}};
      }
      return {{"collective/tree",
               {"2 ceil(log2 w) " + t.one.symbol, {t.w, t.one}},
               {"min(2, w/2)" + over, {t.w, t.rate}}}};
    case Strategy::kHalvingDoubling: {
      const int count = levels ? t.facts.nodes : t.facts.workers;
      const bool odd = power(count) < count;
      const char* const name = "largest power of two among them";
      if (levels) {
        return {{"collective/halving_doubling_over_nodes",
                 {"2 ceil(log2 N) alpha", {t.n, t.alpha}},
                 {std::string(odd ? "(2 (N'-1)/N' + 2)" : "2 (N'-1)/N'") + " / (cards B_hop)",
                  {PlainValue("N'", power(count), name), t.cards, t.b_hop}}},
                t.RingWithin()};
      }
      return {{"collective/halving_doubling",
               {"2 ceil(log2 w) " + t.one.symbol, {t.w, t.one}},
               {(odd ? "(2 (w'-1)/w' + 2)" : "2 (w'-1)/w'") + over,
                {PlainValue("w'", power(count), name), t.rate}}}};
    }
    case Strategy::kHierarchical:
      if (!levels) break;
      return two_rings(t.used > 1 ? "collective/hierarchical_two_cards"
                                  : "collective/hierarchical");
    default:
      if (!levels) break;
      return {{"collective/flat_ring",
               {"h alpha + (2 (w-1) - h) alpha_i, h = 2 N - max(0, 3-g)",
                {t.alpha, t.w, t.alpha_i, t.n, t.g}},
               {"2 (w-1)/w max(1/(cards B_hop), 1/B_host)", {t.w, t.cards, t.b_hop, t.b_host}},
               t.alpha}};
  }
  return {t.RingText()};
}

// A ring of one level, or one that passes all devices of a node before it leaves it.
CostGrowth<double> RingGrowthOf(const GrowthQuestion& q) {
  const StepTerms<double>& terms = q.terms;
  if (q.plan.nodes() <= 1) return RingGrowth(terms.device_hop);
  if (q.devices_per_node <= 1) return RingGrowth(terms.node_hop);
  return FlatRingGrowth(q.devices_per_node, terms.node_hop, terms.device_hop, q.cards);
}

class Allreduces final : public Exchange {
 public:
  Traffic CountTraffic(const Plan& plan, DataSize<> gradient, DataSize<> /*shard*/) const override {
    if (plan.workers() == 1) return {};
    const Shard shard = plan.shard_on_nodes();
    Traffic traffic = shard == Shard::kHybrid ? OfHybrid(plan, gradient) : OfOne(plan, gradient);
    // Half of an all-reduce, of what all have to send.
    const double gathers = plan.compress.is_gathered() ? 0.5 : 1;
    const double messages = plan.compress.is_gathered() ? plan.workers() : 1;
    const double times = ExchangesOf(shard, plan.accumulation_steps) * gathers;
    traffic.total = traffic.total * (times * messages);
    traffic.transfers *= times;
    traffic.per_worker = traffic.per_worker * (times * messages);
    return traffic;
  }

  MemoryShares Memory(const MemoryQuestion& q) const override {
    MemoryShares shares = Exchange::Memory(q);
    if (q.sharers == 1) return shares;  // each has the whole, and gathers nothing
    const double share = 1.0 / q.sharers;
    shares.optimizer = share;
    shares.buckets = 0;  // the gradients are exchanged where they are
    if (q.shard >= Shard::kGradients) shares.gradients = share;
    // Of whole gradients, or parameters, there is a unit in use and one on its way.
    if (ShardInMemory(q.shard, q.accumulation_steps) >= Shard::kGradients) shares.units = 2;
    if (q.shard >= Shard::kParameters) shares.parameters = share;
    return shares;
  }

  SyncGrowth<double> Growth(const GrowthQuestion& q) const override {
    return GrowthOfOne(q).Times(ExchangesOf(q.plan.shard_on_nodes(), q.plan.accumulation_steps) /
                                q.plan.local_steps);
  }

  Duration<> Room(const GrowthQuestion& q) const override {
    if (!GathersUnits(q.plan.shard) || q.plan.overlap != Overlap::kBuckets) {
      return Exchange::Room(q);
    }
    if (q.plan.shard_on_nodes() == Shard::kHybrid) return RoomOfHybrid(q);
    // Once the link is busy all the time, only the last unit of the forward pass waits for all.
    const Duration<> forward = (q.terms.micro - q.terms.backward) * (1 - q.buckets.front().ready);
    const Duration<> backward = q.buckets.size() > 1 ? q.terms.backward : Duration<>();
    return (forward + backward) * (1.0 * q.plan.accumulation_steps);
  }

  CallPaces Paces(const GrowthQuestion& q) const override {
    const NodeShape shape{q.plan.workers(), q.plan.nodes(), DevicesOnFullestNode(q.plan.placement),
                          q.cards};
    CallCost<double> call =
        PipelinedAllreduce(q.algorithm, shape, q.terms.node_hop, q.terms.device_hop);
    if (q.plan.compress.is_gathered()) call = GatherCall(call, shape.workers);
    return {call.Steady(), call.Chain()};
  }

  void ExplainHops(Explainer* explainer) const override { explainer->DeviceHop(); }

  FormulaText ExplainCalls(Explainer* explainer) const override {
    const CollectiveTerms t(explainer);
    return t.AddCalls(TextOf(t));
  }

 private:
  // Rings between nodes are busy from the first unit on that is reduced, once they are long: what
  // is done by then, and all else of the exchange, is hidden but for what the forward pass waits.
  static Duration<> RoomOfHybrid(const GrowthQuestion& q) {
    const Hop<double>& hop = q.terms.device_hop;
    const UnitExchange<double> within{
        {Times(PipelineRing(RingAllreduce(q.devices_per_node, hop), hop.alpha), 0.5)}};
    Duration<> all;
    for (const Bucket& unit : q.buckets) {
      all += within.half.Time(unit.bytes) * (2 * kGathersAndReduce);
    }
    const Duration<> forward = q.terms.micro - q.terms.backward;
    const Duration<> gathered = GatherUnits(within, q.buckets, forward, q.terms.backward).forward;
    const Bucket& first = q.buckets.front();
    const Duration<> gathers = within.half.Time(first.bytes);
    Duration<> reduced = gathers + q.terms.backward * first.ready;
    // The link gathers the next unit before it reduces this one.
    if (q.buckets.size() > 1) {
      reduced = Max(reduced, gathers + within.half.Time(q.buckets[1].bytes));
    }
    reduced += within.half.Time(first.bytes);
    return (all - (gathered - forward) + q.terms.backward - reduced) *
           (1.0 * q.plan.accumulation_steps);
  }

  // Of one all-reduce of all gradients.
  static Traffic OfOne(const Plan& plan, DataSize<> gradient) {
    const double w = plan.workers();
    Traffic traffic;
    traffic.total = gradient * (2 * (w - 1));
    // Trees, and halving and doubling, span nodes where there are some.
    const double fullest_devices = DevicesOnFullestNode(plan.placement);
    const bool two_levels = plan.nodes() > 1 && fullest_devices > 1;
    const int spanned = two_levels ? plan.nodes() : plan.workers();
    if (plan.strategy == Strategy::kHalvingDoubling) {
      const unsigned whole = std::bit_floor(static_cast<unsigned>(spanned));
      const double folded = static_cast<double>(spanned) - whole;
      traffic.transfers = 2.0 * whole * (std::bit_width(whole) - 1) + 2 * folded;
      traffic.per_worker = gradient * 2.0 * (whole - 1.0) / static_cast<double>(whole) +
                           gradient * (folded > 0 ? 1.0 : 0.0);
      if (two_levels) {
        traffic.transfers *= fullest_devices;
        for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
        traffic.per_worker = traffic.per_worker / fullest_devices +
                             gradient * (2 * (fullest_devices - 1) / fullest_devices);
      }
    } else if (plan.strategy == Strategy::kTree) {
      traffic.transfers = 4 * (w - 1);
      traffic.per_worker = gradient * (std::min(2.0, spanned / 2.0) + (two_levels ? 1.0 : 0.0));
    } else if (plan.strategy == Strategy::kHierarchical) {
      const double nodes = plan.nodes();
      for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
      traffic.transfers += 2 * fullest_devices * nodes * (nodes - 1);
      traffic.per_worker =
          gradient *
          (2 * ((fullest_devices - 1) / fullest_devices + (nodes - 1) / (fullest_devices * nodes)));
    } else {
      traffic.transfers = 2 * w * (w - 1);
      traffic.per_worker = gradient * (2 * (w - 1)) / w;
    }
    return traffic;
  }

  // Of one exchange of all units, gathered and reduced within equal nodes and reduced between them.
  static Traffic OfHybrid(const Plan& plan, DataSize<> gradient) {
    const double g = DevicesOnFullestNode(plan.placement);
    const double nodes = plan.nodes();
    const double passes = 2 * kGathersAndReduce;
    Traffic traffic;
    traffic.transfers = passes * nodes * g * (g - 1) + 2 * g * nodes * (nodes - 1);
    traffic.per_worker = gradient * (passes * (g - 1) / g + 2 * (nodes - 1) / (g * nodes));
    traffic.total = gradient * (passes * nodes * (g - 1) + 2 * (nodes - 1));
    return traffic;
  }

  // Of one exchange, between devices of one node, or between full nodes.
  SyncGrowth<double> GrowthOfOne(const GrowthQuestion& q) const {
    const bool between = q.plan.nodes() > 1;
    const int g = between ? q.devices_per_node : 1;
    const Hop<double>& hop = between ? q.terms.node_hop : q.terms.device_hop;
    const Hop<double>& intra = q.terms.device_hop;
    const bool levels = g > 1;
    const auto two_rings = [&](double within) {
      const CostGrowth<double> rings = OverFullNodes(RingGrowth(hop), g, q.cards);
      return internal::BesideRingsWithin(PipelinedRingGrowth(rings, hop.alpha, q.bytes, q.calls()),
                                         g, q, within);
    };
    if (levels && q.plan.shard == Shard::kHybrid) return two_rings(kGathersAndReduce);
    switch (q.algorithm) {
      case Strategy::kTree:
        return (levels ? TreeOverNodesGrowth(g, hop, intra, q.cards) : DoubleTreeGrowth(hop))
            .Of(q.bytes, q.calls());
      case Strategy::kHalvingDoubling: {
        const CostGrowth<double> growth = HalvingDoublingGrowth(hop);
        if (!levels) return growth.Of(q.bytes, q.calls());
        return internal::BesideRingsWithin(OverFullNodes(growth, g, q.cards).Of(q.bytes, q.calls()),
                                           g, q);
      }
      case Strategy::kHierarchical:
        if (levels) return two_rings(1);
        break;
      default:
        break;
    }
    return PipelinedRingGrowth(RingGrowthOf(q), hop.alpha, q.bytes, q.calls());
  }
};

}  // namespace

const Exchange& AllreduceExchange() {
  static const Allreduces exchange;
  return exchange;
}

}  // namespace stepcast
