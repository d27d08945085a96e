// What a calibration says of one workload on one device, as it is trained, for who asks about many
// in turn: the covariance of all that was fitted together grows with the square of their number,
// and whoever predicts keeps a copy of it.
#ifndef STEPCAST_CALIBRATE_EXCERPT_H_
#define STEPCAST_CALIBRATE_EXCERPT_H_

#include <string>

#include "data/record/machine.h"
#include "data/record/workload.h"

namespace stepcast {

class Excerpts {
 public:
  // `cluster` must outlive it.
  explicit Excerpts(const Cluster& cluster);

  // The cluster without what was fitted of other workloads and devices. Forecasts of this workload
  // on this device are those of the whole. Where it was not fitted there, all that tells of the
  // workload or of a device is kept.
  Cluster Of(const Workload& workload, const std::string& device) const;

 private:
  const Cluster& whole_;
  Cluster bare_;  // without a calibration
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_EXCERPT_H_
