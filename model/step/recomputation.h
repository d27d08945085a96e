// What recomputed activations (data/record/blocks.h) make of a micro-step: the forward pass keeps
// its time, and all that is added is part of the backward pass.
//
//   phi' = 1 - (1 - phi)/(1 + r_b)           where the time of each layer is known
//   phi' = 1 - (1 - phi)/(1 + r (1 - phi))   where only its FLOP are
//   r_b  = t(b)/t_0(b) - 1
//
//   phi, phi'  share of the backward pass in a micro-step that recomputes nothing, and in this [1]
//   r_b        growth of a micro-step by what is recomputed, at this batch                   [1]
//   t, t_0     forward and backward time of a micro-step, and the same were nothing recomputed:
//              by the profile, else by the curves that the data sheet lets expect (priors.h) [s]
//   r          share of the forward pass that is recomputed, by FLOP                         [1]
//
// FLOP are for want of times: they take all of the forward pass to be equally fast, where layers
// that pass the memory, and calls of the host, have next to none.
//
// Both r_b and r are facts, which no fitted value changes. Where t is fitted, it is taken to have
// grown by as much as the data sheet lets expect.
//
// Note that phi' is exactly phi where nothing is recomputed; that it rises with r_b, r and phi; and
// that (1 - phi') t is (1 - phi) t_0 where t is not fitted.
#ifndef STEPCAST_MODEL_STEP_RECOMPUTATION_H_
#define STEPCAST_MODEL_STEP_RECOMPUTATION_H_

#include <memory>
#include <optional>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "model/compute/fitted_curve.h"

namespace stepcast {

class ProfiledCompute;

// Of the two one is 0.
struct Recomputing {
  double of_all = 0;      // r_b
  double of_forward = 0;  // r

  bool exists() const { return of_all != 0 || of_forward != 0; }
};

// phi', of phi.
template <class T>
T BackwardShare(const Recomputing& again, const T& overlap_share) {
  if (!again.exists()) return overlap_share;
  const T forward = 1.0 - overlap_share;
  return 1.0 - forward / (1.0 + again.of_all + again.of_forward * forward);
}

class Recomputation {
 public:
  // `profile`, where given, is of this workload, and goes before the data sheet of `device`.
  explicit Recomputation(const Workload& workload,
                         const std::optional<Device>& device = std::nullopt,
                         std::shared_ptr<const ProfiledCompute> profile = nullptr);

  bool exists() const { return profile_ || curves_ || by_flop_ > 0; }
  Recomputing At(double batch) const;

 private:
  struct Curves {
    FittedCurve<double> whole;
    FittedCurve<double> once;  // were nothing recomputed
  };

  std::shared_ptr<const ProfiledCompute> profile_;
  std::optional<Curves> curves_;
  double by_flop_ = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_RECOMPUTATION_H_
