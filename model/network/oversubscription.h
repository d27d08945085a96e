// How much longer bytes take between nodes where the core of a network carries less than their
// links do together.
//
//   ring, trees         c = max( 1, o/S )                                          N > S
//   halving-doubling    c = 1 + (o - 1) (1/S - 1/N) / (1 - 1/N)                    N > S
//   all to all          c = max( 1, o (N - S)/(N - 1) )                            N > S
//   at n of N           c = max( 1, o min(n, S)/S (N - S)/(N - 1) )                N > S
//   to n apart          c = max( 1, o min(N, S)/S ),  and at these max( 1, o min(n, S)/S )
//
//   c   time of a byte, as a multiple of that over the node's link alone           [1]   >= 1
//   o   oversubscription: what the links of all nodes of a switch carry, over what the uplinks of
//       that switch do                                                             [1]   >= 1
//   S   nodes on a switch                                                          [1]   >= 1
//   N   nodes of the job, which fill one switch after another                      [1]   >= 1
//   n   nodes that all of them send to: parameter servers, helpers                 [1]   >= 0
//
// The uplinks of a switch carry S B/o each way, where B is the rate of a node's link. A ring that
// follows the order of the nodes leaves each switch once: a single flow of B. Of halving-doubling's
// rounds, those between nodes that are S and more apart send from all nodes at once, and the sum of
// their messages is 1/S - 1/N of the vector, of 1 - 1/N in all. Where everybody sends to everybody
// N - S of N - 1 messages leave the switch, while the others go on beside them; and so it is where
// all send to the servers on n of the nodes, the first of them. Servers that have switches of their
// own are reached by uplinks only.
//
// Holds for switches that are alike and used in order, and for flows that share the uplinks evenly
// (one uplink, packets sprayed, or paths that adapt): flows that hashes put on one of several
// uplinks fare worse. Exact for powers of two with halving-doubling. Aggregation in the network is
// not counted.
//
// Note that c is 1 where o is 1 or all nodes are on one switch with nobody apart, and never falls
// with o.
//
// Sources: Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) for the rounds; Al-Fares, Loukissas,
// Vahdat, SIGCOMM 2008 (oversubscription of a fat tree); the rest is counted here.
#ifndef STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_
#define STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_

#include <algorithm>

namespace stepcast {

// The core of a network; by default one that carries whatever its nodes send.
template <class T = double>
struct NetworkCore {
  T oversubscription = T(1.0);  // o
  double nodes = 1;             // S, of a switch

  T OfRing(double job_nodes) const { return job_nodes > nodes ? Longer(1 / nodes) : T(1.0); }
  T OfHalvingDoubling(double job_nodes) const {
    if (!(job_nodes > nodes)) return T(1.0);
    return 1.0 + (oversubscription - 1.0) * ((1 / nodes - 1 / job_nodes) / (1 - 1 / job_nodes));
  }
  // Of nodes that send to each other and to as many apart, equal parts to each.
  T OfAllToAll(double job_nodes, double apart = 0) const {
    const double on_switch = std::min(job_nodes, nodes);
    const double leaving = job_nodes - on_switch + apart;
    if (leaving == 0) return T(1.0);
    return Longer(on_switch / nodes * leaving / (job_nodes - 1 + apart));
  }
  // Of some of a job's nodes, which all of them send to.
  T OfSome(double job_nodes, double some) const {
    if (!(job_nodes > nodes)) return T(1.0);
    return Longer(std::min(some, nodes) / nodes * (job_nodes - nodes) / (job_nodes - 1));
  }
  // Of nodes that exchange with other switches only.
  T OfAllApart(double count) const { return Longer(std::min(count, nodes) / nodes); }

 private:
  // `sent` through the uplinks of a switch, as a share of what its nodes' links carry.
  T Longer(double sent) const {
    const T longer = oversubscription * sent;
    return longer > 1.0 ? longer : T(1.0);
  }
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_
