// What it is worth to share samples out by speed where some nodes of a plan compute more slowly.
//
//   S(b_f, b_s) = max( S_f(b_f), S_s(b_s) ),   w_f b_f + w_s b_s >= M      (model/step/step.h)
//
//   S_f, S_s   step of workers that all compute like the fast, or the slow ones, with so many
//              samples each                                                     [s]
//   b_f, b_s   samples of a micro-step on a fast and on a slow device           [samples]
//   w_f, w_s   their numbers                                                    [1]
//   M          samples of a micro-step in the plan, of all workers              [samples]
//
// S is the step of a plan that states these shares (local_batch and slow_local_batch). S_s rises
// with b_s and S_f falls with it, so that the best shares lie where they cross, between none and
// equal ones; a step has more than samples, so that a slow device gets less than its speed says.
// Whole samples: where they do not come out even, some fast workers have one less. Samples of one
// optimizer step stay the plan's.
//
// Holds where the gradients of all samples count alike, which a mean over workers of unequal shares
// has to weigh; and to the wait for random stragglers, which is that of equal workers here.
#ifndef STEPCAST_PREDICTOR_SEARCH_UNEQUAL_H_
#define STEPCAST_PREDICTOR_SEARCH_UNEQUAL_H_

#include <optional>

#include "predictor/predictor.h"

namespace stepcast {

struct SharedOut {
  int fast_batch = 0;
  int slow_batch = 0;  // 0: the slow nodes rest
  Duration<> step_time;
  SampleRate<> throughput;
};

// Why no shares by speed are better than the plan's: a device has one sample to share, memory does
// not hold more on a fast one, or none are quicker.
enum class WhyEqual { kOneSample, kMemory, kNoneQuicker };
inline constexpr const char* kWhyEqualNames[] = {"one sample", "memory", "none quicker"};

struct UnequalWorkers {
  int slow_nodes = 0;
  // The plan as given: equal shares, or those that it states.
  SharedOut equal;
  std::optional<SharedOut> by_speed;  // none where those are best
  std::optional<WhyEqual> why_equal;  // then
  // The fast nodes take all; none where memory does not hold it.
  std::optional<SharedOut> fast_only;

  const SharedOut& best() const { return by_speed ? *by_speed : equal; }
  // The throughput with the slow nodes, at the best shares, over that without them: below 1 they
  // had better rest. None where memory does not hold the samples without them.
  std::optional<double> worth() const {
    if (!fast_only) return std::nullopt;
    return best().throughput / fast_only->throughput;
  }
};

// None where the plan has no slow node, or no other.
std::optional<UnequalWorkers> WeighSlowNodes(const Predictor& predictor, const Plan& plan);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_UNEQUAL_H_
