// One check that every plan passes, wherever it comes from, and what goes with a strategy.
#ifndef STEPCAST_DATA_PLAN_CHECK_H_
#define STEPCAST_DATA_PLAN_CHECK_H_

#include <functional>
#include <string>

#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

struct FieldFacts;
enum class GoesWith;

// Whether a field that goes with `with` may say something else than its default beside `strategy`.
bool Allows(GoesWith with, const StrategyTraits& strategy);
// "strategy ps-sync, ps-async or byteps": those beside which it may.
std::string StrategiesWith(GoesWith with);

// Throws InputError for a plan that no model covers: a number out of range, servers missing or
// superfluous, an option of servers without servers, hosts that do not match the placement.
// `place` says where a field was read.
void CheckPlan(const Plan& plan, const std::function<InputPlace(const FieldFacts&)>& place);
// The same with errors that name the flag alone.
void CheckPlan(const Plan& plan);

// The plan with `strategy`, without what CheckPlan refuses beside it: servers, their options,
// backup workers, the bandwidth of helpers where there are none. Servers that the strategy requires
// are for the caller to name.
Plan WithStrategy(Plan plan, Strategy strategy);

// Throws InputError where WithStrategy would leave out what the plan is about: slow nodes, without
// which it would be one of other machines, the samples that they take, how gradients are
// compressed, or what is shared out.
void RequireKeptWith(const Plan& plan, Strategy strategy);

// Whether there are several workers, and a strategy by which they exchange something.
bool WorkersExchange(const Plan& plan);

// Whether what is exchanged goes over links between nodes; servers have links of their own.
bool CrossesNodes(const Plan& plan);

// A parameter server beside the workers of each node: more nodes bring more servers.
bool ServersOnEveryNode(const Plan& plan);

// The plan with so many slow nodes, as slow as its own: without their speed and samples where there
// are none, and with their samples as the local batch where there are no others.
Plan WithSlowNodes(Plan plan, int nodes);

// The plan on other nodes, of which the slow ones are the first to go, worker by worker, and new
// ones are not slow. Where each node has a server it has one still; no more workers are backup than
// may be; hosts are as they were.
Plan WithPlacement(Plan plan, Placement placement);

// The plan on so many workers, nodes filled one after another. Where the model is shared out within
// nodes, a last node that is not full is left out.
Plan OnFilledNodes(const Plan& plan, int workers, int devices_per_node);

// Whether workers may be placed so: who shares the model out within nodes has as many devices on
// each.
inline bool MayBeOn(const Placement& placement, Shard shard) {
  return shard != Shard::kHybrid || AreNodesEqual(placement);
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_CHECK_H_
