// A step as bars over time: what the device computes, and what crosses the network meanwhile.
#ifndef STEPCAST_PREDICTOR_WEB_TIMELINE_H_
#define STEPCAST_PREDICTOR_WEB_TIMELINE_H_

#include <string>
#include <vector>

#include "data/record/plan.h"
#include "predictor/predictor.h"

namespace stepcast::web {

enum class Lane { kDevice, kNetwork };

struct Span {
  Lane lane = Lane::kDevice;
  std::string name;
  Duration<> start;  // from the beginning of the step
  Duration<> end;
};

// The spans in order. Those of the device follow each other without a gap and end with the step.
// Those of the network are the buckets of a collective, one by one; of other exchanges only the
// whole is known, which ends where the device has waited for it.
std::vector<Span> MakeTimeline(const Predictor& predictor, const Plan& plan);

}  // namespace stepcast::web

#endif  // STEPCAST_PREDICTOR_WEB_TIMELINE_H_
