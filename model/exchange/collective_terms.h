// What `explain` prints of collectives, whatever their algorithm: the values that their formulas
// take, and the cost of a call.
#ifndef STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_
#define STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_

#include <algorithm>
#include <string>
#include <utility>

#include "model/step/explainer.h"

namespace stepcast::internal {

struct CallText {
  const char* model = "";
  FormulaText per_call;
  FormulaText per_byte;
};

struct CollectiveTerms {
  explicit CollectiveTerms(Explainer* explainer)
      : to(*explainer), facts(to.facts()), terms(to.terms()) {}

  Explainer& to;
  const StepFacts& facts;
  const StepTerms<double>& terms;
  const bool between = facts.nodes > 1;
  const bool within = facts.devices_per_node > 1;
  const int used = std::min(facts.devices_per_node, facts.nics);
  const NamedValue alpha = TimeValue("alpha", terms.node_hop.alpha);
  const NamedValue alpha_i = TimeValue("alpha_i", terms.device_hop.alpha);
  const NamedValue b_hop = RateValue("B_hop", terms.node_hop.bandwidth);
  const NamedValue b_host = ByteRateValue("B_host", terms.device_hop.bandwidth, "host_bandwidth");
  const NamedValue w = to.WorkerCount();
  const NamedValue n = to.NodeCount();
  const NamedValue g = to.DevicesOfNode();
  const NamedValue cards = PlainValue("cards", used, "network cards in use");
  // With one level the workers are the nodes, or the devices of the only node.
  const NamedValue& one = between ? alpha : alpha_i;
  const NamedValue& rate = between ? b_hop : b_host;
  const NamedValue count = PlainValue("K", static_cast<double>(facts.buckets->size()), "buckets");
  const NamedValue per_byte = PerByteValue("per_byte", terms.cost.per_byte);

  // A ring of one level.
  CallText RingText() const {
    return {"collective/ring",
            {"2 (w-1) " + one.symbol, {w, one}},
            {"2 (w-1)/w / " + rate.symbol, {w, rate}}};
  }

  // Adds the terms of a call that is affine in its bytes; returns what all calls take.
  FormulaText AddCall(CallText text) const {
    const NamedValue per_call = TimeValue("per_call", terms.cost.per_call);
    to.Add("cost of a call", text.model, 4, std::move(text.per_call), per_call);
    to.Add("time per byte", text.model, 4, std::move(text.per_byte), per_byte);
    return {"K per_call + per_byte m", {count, per_call, per_byte, to.Gradient()}};
  }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_
