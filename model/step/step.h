// One optimizer step of data-parallel training, from its parts.
//
//   t        = (t_fixed + pnorm(t_floor, c b)) s_b (1 + h (log2 g + n_c)) q     one micro-step
//   t_f, t_b = (1 - phi') t, phi' t                                   forward, backward
//   phi'     = 1 - (1 - phi) / (1 + r_b)                              model/step/recomputation.h
//   S, E_K   = whole synchronisation, end of its last bucket          model/overlap
//   supplied = (a-1) t + t_f + t_b + kappa min(hidden, t_b) + exposed + u + o + C + wait
//   step     = max(supplied, A)                                       model/overlap/input.h
//   step     = max(S_f, S_s)                       where slow nodes take other samples than others
//
// Hops between nodes are those of model/network/hop.h, with
//
//   k        1 when N = 2, 2 in a longer ring                                         [1]
//   f, q     1 and 2 in a collective, 1 and 1 where a ring has two nodes, one to each other machine
//            and helper and 4 with byteps, 0 with servers
//
//   s_b      shape of a measured profile at this batch; 1 without one                 [1]
//   a        micro-steps to a synchronisation, at least one                           [1]
//   g, n_c   devices in use on the fullest node, and parameter servers there          [1]
//   h, kappa host contention, overlap contention                                     [1]
//   q        compute_slowdown of the slowest named host; 1 without one               [1]
//   u, o     optimizer's update; fixed cost of a synchronisation                     [s]
//   C        encoding and decoding of compressed gradients                           [s]
//   A        arrival of a step's samples at the fullest node; 0 where no rate is stated [s]
//   phi      overlap share                                                           [1]
//   r_b      growth of a micro-step by activations that are recomputed, at this batch [1]
//   S_f, S_s the step if all workers were like those on the other nodes, or like those on slow
//            ones, each with its own samples, speed and update                       [s]
//
// Two nodes are special: all flows between them share one path, where a node of a longer ring has
// two neighbours; and a ring of two has nothing to pipeline, so that the round trip adds to the
// transfer (a p-norm of exponent 1) instead of hiding behind it. A model that is fitted to two
// nodes and does not know this is wrong by two at four.
//
// With parameter servers the update is the servers' work, and each connection of a worker to a
// server is held back for itself (model/exchange/parameter_server.h).
// With accumulation only the last micro-step synchronises, and only its backward pass hides
// anything. Flows that were silent while the devices computed start slowly, which delays the first
// bucket and what follows it without a pause (model/network/slow_start.h).
//
// Holds for synchronous steps of equal devices on equal nodes; unequal placements are set by their
// fullest node. ps-async is the mean time between two updates of one worker.
//
// Of two kinds of workers the later one is the step: a bucket is exchanged when the last worker has
// it, all passes of a worker are in one proportion, and its next step begins behind its own update,
// so that one kind is last with every bucket. It is its backward pass that hides the exchange, and
// its waits, parts and terms that are told. The wait for random stragglers is that of w workers
// which are all like it: a little too long.
//
// Note that one worker without servers or beside its own, or strategy none, has no communication at
// all; that every time falls or stays with more bandwidth and never falls with more bytes, loss,
// latency or workers' placement on more devices; and that the parts add up to the step exactly.
//
// Sources: Li et al., VLDB 2020 (overlap of buckets); the formulas' own headers for the parts;
// public traces of 1 to 64 devices for the form of B_hop (docs/explanation).
#ifndef STEPCAST_MODEL_STEP_STEP_H_
#define STEPCAST_MODEL_STEP_STEP_H_

#include "model/exchange/choice.h"
#include "model/exchange/parameter_server.h"
#include "model/step/parameters.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"

namespace stepcast {

// `terms`, where given, is filled with what applies to the plan.
template <class T>
StepTime<T> EvaluateStep(const StepFacts& facts, const ClusterParameters<T>& cluster,
                         const WorkloadParameters<T>& workload, StepTerms<T>* terms = nullptr);

// The facts of the workers that the step waits for, as if all were like them: `facts` themselves
// unless slow nodes take other samples than others.
template <class T>
StepFacts LaterSide(const StepFacts& facts, const ClusterParameters<T>& cluster,
                    const WorkloadParameters<T>& workload);

// The fastest all-reduce for this plan's mean bucket: what strategy auto means. EvaluateStep takes
// the algorithm and not the question.
template <class T>
AllreduceChoice<T> EvaluateChoice(const StepFacts& facts, const ClusterParameters<T>& cluster);

// The time that each phase of synchronous servers still needs after the compute it hides behind,
// and how much the network saves by helping with it.
template <class T>
PhaseBenefit<T> EvaluateServerPhases(const StepFacts& facts, const ClusterParameters<T>& cluster,
                                     const WorkloadParameters<T>& workload);

}  // namespace stepcast

#include "model/step/step_impl.h"

namespace stepcast {

// In numbers, these are compiled once, in step.cc.
extern template StepTime<double> EvaluateStep(const StepFacts& facts,
                                              const ClusterParameters<double>& cluster,
                                              const WorkloadParameters<double>& workload,
                                              StepTerms<double>* terms);
extern template AllreduceChoice<double> EvaluateChoice(const StepFacts& facts,
                                                       const ClusterParameters<double>& cluster);
extern template PhaseBenefit<double> EvaluateServerPhases(
    const StepFacts& facts, const ClusterParameters<double>& cluster,
    const WorkloadParameters<double>& workload);

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_STEP_H_
