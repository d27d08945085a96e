// Catalogue entries of model/compute.
#ifndef STEPCAST_MODEL_CATALOG_COMPUTE_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_COMPUTE_ENTRIES_H_

#include <vector>

#include "model/catalog/catalog.h"
#include "model/compute/fitted_curve.h"

namespace stepcast::internal {

inline constexpr Files kFittedCurveFiles{"model/compute/fitted_curve.h",
                                         "docs/explanation/step-model.md",
                                         "tests/model/fitted_curve_test.cc"};

template <class T>
void AddComputeEntries(std::vector<Model<T>>* models) {
  models->push_back(
      {.id = "compute/fitted_curve",
       .sentence = "Time of a micro-step as a fixed part and the p-norm of a floor and a slope.",
       .formula = "t_fixed + (t_floor^4 + (32 c)^4)^(1/4)",
       .source = "Qiao et al., OSDI 2021; Williams, Waterman, Patterson, CACM 52 (2009)",
       .validity =
           "one workload on one device, from the smallest to a few times the largest fitted batch",
       .inputs = {{"t_fixed", "s", 1e-5, 1, Trend::kNeverFalls, "time that no batch changes"},
                  {"t_floor", "s", 1e-5, 1, Trend::kNeverFalls,
                   "time of a batch too small to fill "
                   "the device"},
                  {"c", "s", 1e-6, 1, Trend::kNeverFalls, "time of one more sample"}},
       .evaluate =
           [](const std::vector<T>& x) {
             const FittedCurve<T> curve{Duration<T>::FromSi(x[0]), Duration<T>::FromSi(x[1]),
                                        DurationPerSample<T>::FromSi(x[2])};
             return curve.Time(Samples(32.0)).si();
           },
       .known = {{"a large batch costs its slope", {1e-5, 1e-5, 1}, 32.00001},
                 {"floor and slope alike", {1e-3, 0.32, 0.01}, 1e-3 + 0.32 * 1.189207115002721}},
       .home = {kFittedCurveFiles, "FittedCurve", "1-compute"}});
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_COMPUTE_ENTRIES_H_
