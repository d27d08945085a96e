// The intervals of a compiled plan: derivatives of a step by ln(parameter), from tables and in less
// time than model/step/answer.h takes.
//
// The chain rule goes in stages: the step by what it is joined from, a synchronisation by the hops
// that it takes, a hop by the rate of its path, rates and compute by the parameters. Each stage is
// the model's own template on numbers with as many derivatives as the stage has variables; only the
// way from one stage to the next is written by hand, and interval.cc holds all of it.
//
// Note that the result is that of PlanModel::Answer, to rounding (tests/predictor).
#ifndef STEPCAST_PREDICTOR_COMPILED_INTERVAL_H_
#define STEPCAST_PREDICTOR_COMPILED_INTERVAL_H_

#include <memory>
#include <vector>

#include "data/units/quantity.h"
#include "model/step/belief.h"
#include "model/step/step_facts.h"
#include "predictor/compiled_plan.h"

namespace stepcast::internal {

struct CompiledState;
struct IntervalTables;

// Tables for plans whose hosts have these positions in the belief, from the parameters in `state`.
// `curve` gets the times of the batches from 0 to the last that is tabled.
std::shared_ptr<const IntervalTables> MakeIntervalTables(const CompiledState& state,
                                                         const Belief::AtHosts& at_hosts,
                                                         int last_batch,
                                                         std::vector<Duration<>>* curve);

// Sets all but the status of a forecast. `facts` are those of the query.
void PredictInterval(const CompiledState& state, const PlanQuery& query, const StepFacts& facts,
                     Forecast* forecast);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_INTERVAL_H_
