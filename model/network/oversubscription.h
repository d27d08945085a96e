// How much longer bytes take between nodes where the core of a network carries less than their
// links do together.
//
//   ring                c = max( 1, o/S )                                          N > S
//   trees               c = max( 1, o min( 1, X/4S ) )                             N > S
//   halving-doubling    c = u + o v = sum_d w_d max( 1, o s_d ),  d = 1, 2, 4 ...  N > S
//                       w_d = (1/d - 1/min(2d, N)) / (1 - 1/N),  d < N
//                       s_d = 0 where 2d divides S, 1 where d >= S, else min( 1, (2d - e)/S )
//   BytePS              c = max( 1, o min(N, S)/S s )
//   at n of N           c = max( 1, o min(n, S)/S (N - S)/(N - 1) )                N > S
//   to n apart          c = max( 1, o min(N, S)/S ),  and at these max( 1, o min(n, S)/S )
//   the same, added up and copied in the network: at the N, c = max( 1, o/S )
//
//   c   time of a byte, as a multiple of that over the node's link alone           [1]   >= 1
//   o   oversubscription: what the links of all nodes of a switch carry, over what the uplinks of
//       that switch do                                                             [1]   >= 1
//   S   nodes on a switch                                                          [1]   >= 1
//   N   nodes of the job, which fill one switch after another                      [1]   >= 1
//   n   nodes that all of them send to: parameter servers                          [1]   >= 0
//   X   halves of the vector that leave a switch: 4 with one other switch, 6 with more, twice as
//       many where S is no power of two; at most 4 (N - S)                         [1]
//   d   how far apart the partners of a round are, w_d its share of the bytes      [1]
//   e   from S to the nearest multiple of 2d                                       [1]
//   u   share of the bytes in rounds that the links of the nodes hold back         [1]
//   v   share of the bytes that leave a switch in the others                       [1]
//   s   share of what a machine sends that leaves its switch (byteps.h)            [1]
//
// The uplinks of a switch carry S B/o each way, where B is the rate of a node's link. A ring that
// follows the order of the nodes leaves each switch once: a single flow of B. A double binary tree
// in that order has few edges between switches that begin at multiples of a power of two, and more
// elsewhere. Of halving-doubling's rounds, those between nodes that are S and more apart send from
// all nodes at once; where S is no power of two the nearer ones cross the edges of switches too,
// and the worst switch sets the pace. Where everybody sends to everybody N - S of N - 1 messages
// leave the switch, while the others go on beside them; and so it is where all send to the servers
// on n of the nodes, the first of them. Servers that have switches of their own are reached by
// uplinks only.
//
// Holds for switches that are alike and used in order, and for flows that share the uplinks evenly
// (one uplink, packets sprayed, or paths that adapt): flows that hashes put on one of several
// uplinks fare worse. Exact but for trees, whose c is 0.6 to 1.5 times what is counted where it
// bites, and up to twice that where a second switch is nearly empty. Halving-doubling is exact for
// as many nodes as a power of two, of switches enough that the worst is among them. BytePS cuts its
// shares for a switch that does not block, and helpers may then do harm. Either adding up or
// copying in the network, without the other, is not counted.
//
// What nodes carry besides (model/network/sharing.h) is taken to stay below its switch, while other
// jobs cross the same uplinks.
//
// Note that o is a ratio: links twice as fast come with uplinks twice as fast, and where the
// uplinks are what they are, o is to be doubled too. c is 1 where o is 1 or all nodes are on one
// switch with nobody apart, and never falls with o.
//
// Sources: Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005) for the rounds; Sanders, Speck, Traff,
// Parallel Computing 35 (2009) for two trees; Al-Fares, Loukissas, Vahdat, SIGCOMM 2008
// (oversubscription of a fat tree); the rest is counted here.
#ifndef STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_
#define STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_

#include <algorithm>
#include <bit>
#include <cmath>

namespace stepcast {

// One of these formulas, as it is told.
struct CoreForm {
  const char* model;  // of the catalogue
  const char* formula;
};
inline constexpr CoreForm kCoreOfRing{"network/core_ring", "max(1, o/S)"};
inline constexpr CoreForm kCoreOfTree{"network/core_tree", "max(1, o min(1, X/(4 S)))"};
inline constexpr CoreForm kCoreOfHalvingDoubling{"network/core_halving_doubling", "u + o v"};
inline constexpr CoreForm kCoreOfShare{"network/core_share", "max(1, o min(N,S)/S s)"};
inline constexpr CoreForm kCoreOfSome{"network/core_some", "max(1, o min(n,S)/S (N-S)/(N-1))"};
inline constexpr CoreForm kCoreOfAllApart{"network/core_apart", "max(1, o min(N,S)/S)"};

// What a core makes of a byte's time.
template <class T = double>
struct Crossing {
  T longer = T(1.0);   // c
  bool binds = false;  // whether more of it is spent on uplinks than on the nodes' links
  const CoreForm* form = &kCoreOfRing;
  double count = 0;  // N or n in it
  double share = 1;  // s in it
};

// The core of a network; by default one that carries whatever its nodes send.
template <class T = double>
struct NetworkCore {
  T oversubscription = T(1.0);  // o
  double nodes = 1;             // S, of a switch

  Crossing<T> OfRing(double job_nodes) const {
    return Longer(job_nodes > nodes ? 1 / nodes : 0, kCoreOfRing, job_nodes);
  }
  Crossing<T> OfTree(double job_nodes) const {
    if (!(job_nodes > nodes) || !(oversubscription > 1.0)) return {};
    return Longer(std::min(1.0, TreeHalves(job_nodes) / (4 * nodes)), kCoreOfTree, job_nodes);
  }
  // X
  double TreeHalves(double job_nodes) const {
    const bool aligned = std::has_single_bit(static_cast<unsigned>(nodes));
    const double halves = (job_nodes <= 2 * nodes ? 4 : 6) * (aligned ? 1 : 2);
    return std::min(halves, 4 * (job_nodes - nodes));
  }
  Crossing<T> OfHalvingDoubling(double job_nodes) const {
    if (!(job_nodes > nodes) || !(oversubscription > 1.0)) return {};
    const Rounds rounds = HalvingDoublingRounds(job_nodes);
    const T on_uplinks = oversubscription * rounds.beyond;
    return {on_uplinks + rounds.near, on_uplinks > rounds.near, &kCoreOfHalvingDoubling, job_nodes};
  }
  struct Rounds {
    double near = 0;    // u
    double beyond = 0;  // v
  };
  Rounds HalvingDoublingRounds(double job_nodes) const {
    Rounds rounds;
    for (double d = 1; d < job_nodes; d *= 2) {
      const double bytes = (1 / d - 1 / std::min(2 * d, job_nodes)) / (1 - 1 / job_nodes);
      const double share = ShareBeyond(d);
      if (oversubscription * share > 1.0) {
        rounds.beyond += bytes * share;
      } else {
        rounds.near += bytes;
      }
    }
    return rounds;
  }
  // Of nodes of which each sends `share` of its bytes to other switches.
  Crossing<T> OfShare(double job_nodes, double share) const {
    Crossing<T> crossing =
        Longer(std::min(job_nodes, nodes) / nodes * share, kCoreOfShare, job_nodes);
    crossing.share = share;
    return crossing;
  }
  // Of some of a job's nodes, which all of them send to.
  Crossing<T> OfSome(double job_nodes, double some) const {
    if (!(job_nodes > nodes)) return {};
    return Longer(std::min(some, nodes) / nodes * (job_nodes - nodes) / (job_nodes - 1),
                  kCoreOfSome, some);
  }
  // Of nodes that exchange with other switches only.
  Crossing<T> OfAllApart(double count) const {
    return Longer(std::min(count, nodes) / nodes, kCoreOfAllApart, count);
  }

 private:
  // s_d: the share of a switch's nodes whose partner at distance d is on another one.
  double ShareBeyond(double d) const {
    if (d >= nodes) return 1;
    const double past = std::fmod(nodes, 2 * d);
    return past == 0 ? 0 : std::min(1.0, (2 * d - std::min(past, 2 * d - past)) / nodes);
  }
  // `sent` through the uplinks of a switch, as a share of what its nodes' links carry.
  Crossing<T> Longer(double sent, const CoreForm& form, double count) const {
    const T longer = oversubscription * sent;
    if (!(oversubscription > 1.0) || !(longer > 1.0)) return {};
    return {longer, true, &form, count};
  }
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_NETWORK_OVERSUBSCRIPTION_H_
