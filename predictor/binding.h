// What a prediction says in words: the part of its step that binds, and what its flags are about.
#ifndef STEPCAST_PREDICTOR_BINDING_H_
#define STEPCAST_PREDICTOR_BINDING_H_

#include <string>

#include "data/record/plan.h"
#include "predictor/prediction.h"

namespace stepcast {

// The subject of a flag: those of one subject differ in their numbers, not in names.
std::string KindOfFlag(const std::string& flag);

// The part of the step that binds, in words with its share: "The node links bind: 92 % of the
// step".
struct Binding {
  std::string part;  // "compute", "link", "flow", "window", "loss", "host", "server_link",
                     // "server", "latency", "core", "stragglers", "coding", "input"
  double share = 0;
  std::string sentence;

  // The sentence within another, without its share: "the node links bind".
  std::string Clause() const;
};
Binding FindBinding(const Prediction& prediction);

// Whether bytes pass the hosts of a plan to reach the network alone: each node has one device, or
// the exchange is with servers, which devices that add up beside them on a lone node do without.
bool HostLeadsOut(const Plan& plan);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_BINDING_H_
