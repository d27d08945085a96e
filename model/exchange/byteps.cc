// Machines that sum for each other, with helpers that have no devices.
#include "model/exchange/byteps.h"

#include <algorithm>
#include <vector>

#include "model/exchange/allreduce_limits.h"
#include "model/exchange/byteps_limits.h"
#include "model/exchange/collective_terms.h"
#include "model/exchange/exchange.h"
#include "model/step/explainer.h"

namespace stepcast {
namespace {

using internal::CallText;
using internal::CollectiveTerms;

std::vector<CallText> BytePsText(const CollectiveTerms& t) {
  if (!t.between) return {t.RingText()};
  CallText text{"collective/byteps", {"2 alpha", {t.alpha}}, {}};
  if (t.facts.servers > 0) {
    text.per_byte = {
        "(1 + (N-2) x) / (cards B_hop), x = (N - k')/(N^2 + k' (N-2)), "
        "k' = min(N, k B_h/(cards B_hop))",
        {t.n, t.cards, t.b_hop, PlainValue("k", t.facts.servers, "helpers"),
         RateValue("B_h", t.terms.server_path.rate)}};
  } else {
    text.per_byte = {"2 (N-1)/N / (cards B_hop)", {t.n, t.cards, t.b_hop}};
  }
  if (!t.within) return {text};
  return {text, t.RingWithin()};
}

class BytePs final : public Exchange {
 public:
  Traffic CountTraffic(const Plan& plan, DataSize<> gradient, DataSize<> /*shard*/) const override {
    const double nodes = plan.nodes();
    const double fullest = DevicesOnFullestNode(plan.placement);
    const double helpers = plan.servers;
    Traffic traffic;
    for (const int g : plan.placement) traffic.transfers += 2.0 * g * (g - 1);
    traffic.per_worker = gradient * (2 * (fullest - 1) / fullest);
    traffic.total = gradient * (2 * (plan.workers() - nodes));
    if (plan.nodes() == 1) return traffic;
    const double share = BytePsMachineShare(plan.nodes(), std::min(helpers, nodes));
    traffic.transfers += 2 * fullest * nodes * (nodes - 1 + helpers);
    traffic.per_worker += gradient * ((1 + (nodes - 2) * share) / fullest);
    traffic.total += gradient * (2 * nodes * (1 - share));
    if (plan.servers > 0) {
      traffic.per_server = gradient * (nodes * (1 - nodes * share) / helpers);
      traffic.server_in = traffic.per_server;
      traffic.server_out = traffic.per_server;
    }
    return traffic;
  }

  SyncGrowth<double> Growth(const GrowthQuestion& q) const override {
    const int nodes = q.plan.nodes();
    const Hop<double>& device = q.terms.device_hop;
    if (nodes <= 1) {
      return PipelinedRingGrowth(RingGrowth(device), device.alpha, q.bytes, q.calls());
    }
    const CostGrowth<double> growth =
        BytePsGrowth(std::min(1.0, 1.0 * q.plan.servers / nodes), q.terms.node_hop);
    const int g = q.devices_per_node;
    if (g <= 1) return growth.Of(q.bytes, q.calls());
    return internal::BesideRingsWithin(OverFullNodes(growth, g, q.cards).Of(q.bytes, q.calls()), g,
                                       q);
  }

  CallPaces Paces(const GrowthQuestion& q) const override {
    const CallCost<double> call =
        PipelinedBytePs(q.plan.nodes(), DevicesOnFullestNode(q.plan.placement), q.plan.servers,
                        q.terms.node_hop, q.terms.server_path.rate, q.terms.device_hop, q.cards);
    return {call.Steady(), call.Chain()};
  }

  void ExplainHops(Explainer* explainer) const override {
    const StepFacts& facts = explainer->facts();
    if (facts.nodes > 1 && facts.servers > 0) {
      explainer->PathRateTerm("rate of a helper's link", "B_h", 4, explainer->terms().server_path,
                              explainer->NodeCount());
    }
    explainer->DeviceHop();
  }

  FormulaText ExplainCalls(Explainer* explainer) const override {
    const CollectiveTerms t(explainer);
    return t.AddCalls(BytePsText(t));
  }
};

}  // namespace

const Exchange& BytePsExchange() {
  static const BytePs exchange;
  return exchange;
}

}  // namespace stepcast
