// How measured steps scatter around a fit: of compute and of synchronisation, for each workload.
//
// Both parts (data/record/scatter.h) are estimated from the residuals by expectation maximisation
// under a t-distribution with 4 degrees of freedom, because steps have heavier tails than a normal
// law, starting from what is known beforehand as if kScatterRuns runs had shown it: the estimate of
// all workloads from a prior, that of each workload from that of all. For intervals the two are
// then scaled so that nine tenths of the residuals are within 1.645 s.
//
// Source: Lange, Little, Taylor, JASA 84 (1989) (the t-distribution's weights); Dempster, Laird,
// Rubin, J. R. Stat. Soc. B 39 (1977) (variance components).
#ifndef STEPCAST_CALIBRATE_SCATTER_H_
#define STEPCAST_CALIBRATE_SCATTER_H_

#include <vector>

#include "data/record/scatter.h"

namespace stepcast {

struct ScatterRow {
  double log_ratio = 0;   // ln(measured / predicted)
  double sync_share = 0;  // of the predicted step
};

// Scatter of all parts together: the normal law with the rows' median of |ln(measured /
// predicted)|, drawn towards `before`. A fit weighs its rows by it: all alike, although rows that
// synchronise long scatter more, because they are the ones that tell about the network.
double TypicalScatter(const std::vector<ScatterRow>& rows, double before);

// The same by the quantile of nine tenths.
double TotalScatter(const std::vector<ScatterRow>& rows, double before);

Scatter EstimateScatter(const std::vector<ScatterRow>& rows, const Scatter& before);

// Such that nine tenths of the rows are within 1.645 s: `core` times a factor, which is drawn
// towards 1.
Scatter IntervalScatter(const std::vector<ScatterRow>& rows, const Scatter& core);

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_SCATTER_H_
