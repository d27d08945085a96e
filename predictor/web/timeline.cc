#include "predictor/web/timeline.h"

#include "model/exchange/collective_step.h"
#include "model/overlap/buckets.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"

namespace stepcast::web {
namespace {

// Whether each bucket leaves when it is ready and the one before it has arrived.
bool GoesByBuckets(const StepFacts& facts) {
  const StrategyTraits& traits = TraitsOf(facts.strategy);
  return facts.overlap == Overlap::kBuckets && traits.synchronous && !traits.servers &&
         !traits.helpers && facts.workers > 1 && facts.shard == Shard::kNone;
}

void AddBuckets(const StepFacts& facts, const StepTerms<double>& terms, Duration<> backward_start,
                std::vector<Span>* spans) {
  internal::CollectiveHops<double> hops;
  hops.node = terms.node_hop;
  hops.device = terms.device_hop;
  const CallCost<double> call = internal::CollectiveCost(facts, hops);
  Duration<> late = terms.slow_start;
  Duration<> end;
  int number = 0;
  for (const Bucket& bucket : *facts.buckets) {
    const Duration<> start = Max(terms.backward * bucket.ready, end);
    end = start + late + call.Time(bucket.bytes);
    late = {};
    spans->push_back({Lane::kNetwork, "bucket " + std::to_string(++number), backward_start + start,
                      backward_start + end});
  }
}

}  // namespace

std::vector<Span> MakeTimeline(const Predictor& predictor, const Plan& plan) {
  StepFacts facts = predictor.Facts(plan);
  const StepTerms<double> terms = predictor.Terms(plan, &facts.strategy);
  const StepTime<double> step = predictor.PredictStep(plan);
  std::vector<Span> spans;
  Duration<> now;
  const auto add = [&](const char* name, Duration<> time) {
    if (time.si() > 0) spans.push_back({Lane::kDevice, name, now, now + time});
    now = now + time;
  };
  // All micro-steps but the last compute alone, where the parameters need not be gathered.
  const double alone = GathersUnits(facts.shard) ? 0 : facts.accumulation_steps - 1;
  if (alone > 0) add("micro-steps without an exchange", terms.micro * alone);
  add("forward", step.forward - (terms.micro - terms.backward) * alone);
  const Duration<> backward_start = now;
  add("backward", step.backward - terms.backward * alone);
  const Duration<> backward_end = now;
  const Duration<> exposed = step.exposed() - terms.overhead - terms.coding;
  add("waiting for the network", exposed);
  if (step.synchronisation.si() > 0) {
    if (GoesByBuckets(facts)) {
      // Contention with the exchange draws the backward pass out by a little, and its buckets too.
      const Duration<> drawn_out = terms.contention;
      AddBuckets(facts, terms, backward_start + drawn_out, &spans);
    } else {
      const Duration<> hidden = step.synchronisation - terms.overhead - terms.coding - exposed;
      spans.push_back({Lane::kNetwork, "exchange", Max(Duration<>(), backward_end - hidden),
                       backward_end + exposed});
    }
  }
  add("starting the exchange", terms.overhead);
  add("coding", terms.coding);
  add("update", step.update);
  add("waiting for stragglers", step.straggler_wait);
  add("waiting for input", step.input_wait);
  return spans;
}

}  // namespace stepcast::web
