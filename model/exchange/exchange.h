// One place for each way to exchange gradients, and one to ask which it is.
//
// Each exchange has its cost in a header of its own (allreduce.h, parameter_server.h,
// async_server.h, byteps.h), its closed-form limits in ..._limits.h, and in the source beside them
// what is asked through this interface: traffic, share of memory, law of growth, and what `explain`
// prints of it. Everything else asks ExchangeOf(strategy), or for a property (TraitsOf).
//
// Note that a strategy which ExchangeOf does not name is an error of the compiler.
#ifndef STEPCAST_MODEL_EXCHANGE_EXCHANGE_H_
#define STEPCAST_MODEL_EXCHANGE_EXCHANGE_H_

#include <vector>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/exchange/cost.h"
#include "model/exchange/traffic.h"
#include "model/overlap/buckets.h"

namespace stepcast {

class Explainer;
struct FormulaText;
template <class T>
struct StepTerms;
template <class T>
struct SyncGrowth;

// What a worker keeps of the model in its device's memory, as shares of the whole; and of the
// copies that it exchanges.
struct MemoryShares {
  double parameters = 1;
  double gradients = 1;  // once they are exchanged
  double optimizer = 1;  // its state, and the parameters that it updates where these are a copy
  double buckets = 0;    // copies of gradients that are exchanged in their place
  // Whole units of the model that are in memory beside the shares, the largest; never more than
  // the shares lack of the whole.
  double units = 0;
};

// What the shares of memory depend on.
struct MemoryQuestion {
  Shard shard = Shard::kNone;
  int workers = 1;
  int sharers = 1;  // as SharersOf has it
  int accumulation_steps = 1;

  static MemoryQuestion Of(const Plan& plan) {
    return {plan.shard, plan.workers(),
            SharersOf(plan.shard, plan.workers(), DevicesOnFullestNode(plan.placement)),
            plan.accumulation_steps};
  }
};

// A plan on as many workers as give the constants of a law of growth.
struct GrowthQuestion {
  const Plan& plan;
  Strategy algorithm = Strategy::kRing;  // of it, where stepcast has chosen one
  const StepTerms<double>& terms;
  const std::vector<Bucket>& buckets;
  DataSize<> bytes;                   // of all of them
  int devices_per_node = 1;           // of a full node
  int cards = 1;                      // of a node
  bool server_on_every_node = false;  // and on each that is added

  double calls() const { return static_cast<double>(buckets.size()); }
};

// The costs of a call of which the larger one sets the pace. On two levels they are the sums of
// both: a lower bound where bytes hold up one level and latency the other.
struct CallPaces {
  SyncCost<double> steady;
  SyncCost<double> chain;
};

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  // What one synchronisation puts on the network; `shard` is what the busiest server holds.
  virtual Traffic CountTraffic(const Plan& plan, DataSize<> gradient, DataSize<> shard) const = 0;
  virtual MemoryShares Memory(const MemoryQuestion& question) const;

  // S(w) of model/exchange/growth.h. Only a synchronous exchange is asked.
  virtual SyncGrowth<double> Growth(const GrowthQuestion& question) const = 0;
  // By default its cost, whatever the bytes of a call.
  virtual CallPaces Paces(const GrowthQuestion& question) const;
  // How much of it the step has room to hide: by default what of the backward pass is left when the
  // first bucket leaves.
  virtual Duration<> Room(const GrowthQuestion& question) const;

  // The terms that `explain` prints: of the hops beside that between nodes, before those of
  // compute, and of the parts of a step.
  virtual void ExplainHops(Explainer* explainer) const = 0;
  virtual void Explain(Explainer* explainer) const;
  virtual void ExplainParts(Explainer* explainer) const;
  // For a synchronous exchange: what all calls and their bytes take, and what slow starts add.
  virtual FormulaText ExplainCalls(Explainer* explainer) const = 0;
  virtual void ExplainSlowStart(Explainer* explainer, FormulaText* whole) const;
};

const Exchange& ExchangeOf(Strategy strategy);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_EXCHANGE_H_
