// The terms from which a step was joined.
#ifndef STEPCAST_MODEL_STEP_STEP_TERMS_H_
#define STEPCAST_MODEL_STEP_STEP_TERMS_H_

#include "data/units/quantity.h"
#include "model/exchange/async_server.h"
#include "model/exchange/cost.h"
#include "model/exchange/parameter_server.h"
#include "model/network/hop.h"
#include "model/step/step_time.h"

namespace stepcast {

// Terms on the way to a step's time, as `explain` shows them.
template <class T>
struct StepTerms {
  bool slow_is_later = false;  // slow nodes, where they take other samples; terms are the later's
  Duration<T> micro;           // one micro-step
  Duration<T> backward;        // its backward pass, without contention
  Hop<T> node_hop;             // between nodes; for more than one node, or a server
  Hop<T> device_hop;           // between devices of a node
  PathTerms<T> node_path;      // of node_hop
  PathTerms<T> server_path;  // of a server's link, or a helper's; limits are those of a connection
  SyncCost<T> cost;          // of a call of the collective; of push and pull with servers
  double passes = 1;         // such calls of a step, for each bucket
  ServerPaths<T> servers;    // ps-sync and ps-async
  ServerPhases<T> phases;    // ps-sync
  AsyncServers<T> async;     // ps-async
  ServerTimes<T> server_times;  // ps-sync and ps-async
  Duration<T> slow_start;       // before the first bucket
  Duration<T> overhead;         // fixed cost of the synchronisation
  Duration<> coding;            // of compressed gradients
  Duration<T> end;              // of the last bucket, from the start of the backward pass
  Duration<T> hidden;
  Duration<T> contention;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_TERMS_H_
