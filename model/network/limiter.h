// What holds a synchronisation back.
#ifndef STEPCAST_MODEL_NETWORK_LIMITER_H_
#define STEPCAST_MODEL_NETWORK_LIMITER_H_

namespace stepcast {

enum class Limiter {
  kNothing,     // there is no synchronisation
  kLink,        // the node's network link
  kFlow,        // what the flows to one peer carry
  kWindow,      // bytes in flight per round trip
  kLoss,        // packet loss
  kHost,        // the exchange within the node, or the way from a device to its network card
  kServerLink,  // the servers' links
  kServer,      // the servers' processors
  kLatency,     // messages, initiations and fixed costs
  kCore,        // the uplinks of the switches between the nodes
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_LIMITER_H_
