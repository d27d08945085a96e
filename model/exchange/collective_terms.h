// What `explain` prints of collectives, whatever their algorithm: the values that their formulas
// take, and the cost of a call.
#ifndef STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_
#define STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/exchange/collective_step.h"
#include "model/exchange/exchange.h"
#include "model/exchange/growth.h"
#include "model/step/explainer.h"

namespace stepcast::internal {

// One level of a call. The level of a ring has the latency of its slowest hop.
struct CallText {
  const char* model = "";
  FormulaText per_call;
  FormulaText per_byte;
  std::optional<NamedValue> slowest = std::nullopt;
};

// A law of the nodes with `times` rings of `devices` within them, before and after it.
inline SyncGrowth<double> BesideRingsWithin(SyncGrowth<double> growth, int devices,
                                            const GrowthQuestion& q, double times = 1) {
  const Hop<double>& hop = q.terms.device_hop;
  const PipelinedRing<double> within =
      Times(PipelineRing(RingAllreduce(devices, hop), hop.alpha), times);
  for (const Bucket& bucket : q.buckets) growth.time.fixed += within.Time(bucket.bytes);
  return growth;
}

struct CollectiveTerms {
  explicit CollectiveTerms(Explainer* explainer)
      : to(*explainer), facts(to.facts()), terms(to.terms()) {}

  Explainer& to;
  const StepFacts& facts;
  const StepTerms<double>& terms;
  const bool between = facts.nodes > 1;
  const bool within = facts.devices_per_node > 1;
  const int used = std::min(facts.devices_per_node, facts.nics);
  const bool gathers = facts.compress.is_gathered();
  const bool hybrid = facts.shard == Shard::kHybrid;
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

  // A ring of one level.
  CallText RingText() const {
    return {"collective/ring",
            {"2 (w-1) " + one.symbol, {w, one}},
            {"2 (w-1)/w / " + rate.symbol, {w, rate}},
            one};
  }
  // The rings within nodes, of two levels.
  CallText RingWithin() const {
    if (hybrid) {
      return {"collective/hybrid",
              {"3 (g-1) alpha_i", {g, alpha_i}},
              {"3 (g-1)/g / B_host", {g, b_host}},
              alpha_i};
    }
    return {"collective/ring",
            {"2 (g-1) alpha_i", {g, alpha_i}},
            {"2 (g-1)/g / B_host", {g, b_host}},
            alpha_i};
  }

  // Adds the terms of a call, level by level; returns what all calls take.
  FormulaText AddCalls(std::vector<CallText> levels) const {
    for (CallText& level : levels) {
      if (!gathers) break;
      level.model = "";
      std::string& rounds = level.per_call.formula;
      const std::size_t end = std::min(rounds.find(", h = "), rounds.size());
      rounds = "(" + rounds.substr(0, end) + ") / 2" + rounds.substr(end);
      level.per_byte.formula = "w/2 (" + level.per_byte.formula + ")";
      const TermInputs& known = level.per_byte.inputs;
      const bool has_w = std::any_of(known.begin(), known.end(), [&](const NamedValue& value) {
        return value.symbol == w.symbol;
      });
      if (!has_w) level.per_byte.inputs.push_back(w);
    }
    CollectiveHops<double> hops;
    hops.node = terms.node_hop;
    hops.device = terms.device_hop;
    hops.helper_link = terms.server_path.rate;
    const CallCost<double> cost = CollectiveCost(facts, hops);
    FormulaText all;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      AddLevel(std::move(levels[i]), i == 0 ? cost.between : cost.within, levels.size() > 1, i == 1,
               &all);
    }
    return all;
  }

 private:
  // What all calls take on one level, beside what they take on those before.
  void AddLevel(CallText text, const PipelinedRing<double>& cost, bool one_of_two, bool inside,
                FormulaText* all) const {
    const std::string where = !one_of_two ? "" : inside ? " within nodes" : " between nodes";
    const std::string mark = inside ? "_i" : "";
    const std::string join = all->formula.empty() ? "" : " + ";
    const auto symbol = [&](const char* name) { return name + mark; };
    const NamedValue byte = PerByteValue(symbol("c").c_str(), cost.steady.per_byte);
    const NamedValue latency = TimeValue(symbol("L").c_str(), cost.chain.per_call);
    const int section = gathers ? 16 : 4;
    to.Add((text.slowest ? "latency of all rounds" : "cost of a call") + where, text.model, section,
           std::move(text.per_call), latency);
    to.Add("time per byte" + where, text.model, section, std::move(text.per_byte), byte);
    TermInputs inputs{latency, byte};
    if (join.empty()) {
      inputs.push_back(count);
      inputs.push_back(to.Gradient());
    }
    if (!text.slowest) {
      all->Add(join + "K " + latency.symbol + " + " + byte.symbol + " m", inputs);
      return;
    }
    const NamedValue& slowest = *text.slowest;
    const std::string trips = gathers ? "2 " : hybrid && inside ? "6 " : "4 ";
    const std::string steady = "min(" + latency.symbol + ", " + trips + slowest.symbol + ")";
    const std::string bytes = byte.symbol;
    to.Add(
        "one call, of a mean bucket" + where, gathers ? "" : "collective/pipelined_ring", section,
        {"max(" + steady + " + " + bytes + " m/K, " + latency.symbol + " + " + bytes + " m/(2 K))",
         {latency, slowest, byte, to.Gradient(), count}},
        TimeValue(symbol("T").c_str(), cost.Time(MeanBucket(facts))));
    inputs.push_back(slowest);
    // Short buckets wait for one piece that goes all the way round.
    double chains = 0;
    DataSize<> in_chains;
    for (const Bucket& bucket : *facts.buckets) {
      if (!(cost.steady.Time(bucket.bytes) < cost.chain.Time(bucket.bytes))) continue;
      ++chains;
      in_chains += bucket.bytes;
    }
    if (chains == 0) {
      all->Add(join + "K " + steady + " + " + bytes + " m", inputs);
      return;
    }
    const NamedValue number =
        PlainValue(symbol("K_L").c_str(), chains, "buckets that latency sets");
    const NamedValue size = SizeValue(symbol("m_L").c_str(), in_chains, "their bytes");
    inputs.push_back(number);
    inputs.push_back(size);
    all->Add(join + "(K - " + number.symbol + ") " + steady + " + " + number.symbol + " " +
                 latency.symbol + " + " + bytes + " (m - " + size.symbol + "/2)",
             inputs);
  }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_COLLECTIVE_TERMS_H_
