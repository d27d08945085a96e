// What exchanges with servers come to: times of phases, the queues of asynchronous ones
// (async_server.h), and what a network that helps synchronous ones saves (parameter_server.h).
#ifndef STEPCAST_MODEL_EXCHANGE_SERVER_OUTCOMES_H_
#define STEPCAST_MODEL_EXCHANGE_SERVER_OUTCOMES_H_

#include "data/units/quantity.h"

namespace stepcast {

// The limit of the bytes of a phase.
enum class ServerLimiter { kWorkerLink, kServerLink, kServerRate, kConnection };

// What one worker's exchange of the whole model takes, hidden or not, with its queues and slow
// starts: gradients to the servers, their update of the fullest share, parameters back.
template <class T>
struct ServerTimes {
  Duration<T> push;
  Duration<T> update;
  Duration<T> pull;
};

// What aggregation still needs after the backward pass, and distribution after the last gradient
// has arrived; and the time that the network saves by helping with one of them or with both.
template <class T>
struct PhaseBenefit {
  Duration<T> remaining_aggregation;
  Duration<T> remaining_distribution;
  Duration<T> multicast_saves;
  Duration<T> in_network_aggregation_saves;
  Duration<T> both_save;
};

// The station that more workers would queue for, else the longest part of the cycle.
enum class AsyncLimiter { kCompute, kWorkerLink, kServerLink, kServerRate, kServerUpdate };

template <class T>
struct AsyncServers {
  Duration<T> cycle;                   // C_s: a worker's time from one update to its next
  Duration<T> alone;                   // the same without other workers
  Duration<T> unbounded;               // C: the same if nobody waited for the slowest
  Duration<T> wait;                    // in the cycle, for the slowest: f W
  Duration<T> input_wait;              // in the cycle, for samples
  T together = T(0.0);                 // f: share of the cycles that end as a synchronous step
  Quantity<RateDimension, T> updates;  // per second, of all workers
  // Where some workers are slow `cycle`, and all but these, are means over updates.
  Duration<T> fast_cycle;
  Duration<T> slow_cycle;
  T slow_updates = T(0.0);  // share of the updates that the slow ones make; 0 without such
  // Busy shares of the fullest server and of one worker's exchanges, the same in both directions.
  T server_link = T(0.0);
  T server_processor = T(0.0);  // that takes in, or copies out
  T server_update = T(0.0);     // that updates
  T worker_link = T(0.0);
  double mean_staleness = 0;  // updates by others in one cycle
  T staleness_sd = T(0.0);
  AsyncLimiter limiter = AsyncLimiter::kCompute;
  ServerLimiter exchange = ServerLimiter::kWorkerLink;  // what the bytes of a lone worker wait for

  Duration<T> queueing() const { return cycle - wait - input_wait - alone; }
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_EXCHANGE_SERVER_OUTCOMES_H_
