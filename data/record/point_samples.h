// All samples of one point of a profile together, and what they say.
#ifndef STEPCAST_DATA_RECORD_POINT_SAMPLES_H_
#define STEPCAST_DATA_RECORD_POINT_SAMPLES_H_

#include <string>
#include <vector>

#include "data/record/compute_profile.h"
#include "data/record/summary.h"

namespace stepcast {

// Samples that were taken while others used the device, or its clock was down, are flagged; they
// speak only where there are no others.
class PointSamples {
 public:
  void Add(const MeasuredSamples& samples) {
    // A point that was measured once does fit: a later failure is the doing of others.
    if (samples.status != PointStatus::kMeasured && measured()) return;
    status_ = samples.status;
    reason_ = samples.reason;
    if (samples.status != PointStatus::kMeasured) return;
    const bool flagged = samples.busy || samples.throttled;
    if (!flagged || clean_.empty()) algorithm_ = samples.algorithm;
    std::vector<double>& all = flagged ? flagged_ : clean_;
    all.insert(all.end(), samples.seconds.begin(), samples.seconds.end());
    busy_ = busy_ || samples.busy;
    throttled_ = throttled_ || samples.throttled;
    summary_ = Summarise(clean_.empty() ? flagged_ : clean_);
  }

  bool empty() const { return status_ == PointStatus::kMeasured && summary_.count == 0; }
  PointStatus status() const { return status_; }
  bool measured() const { return status_ == PointStatus::kMeasured && summary_.count > 0; }
  const std::string& reason() const { return reason_; }
  const std::string& algorithm() const { return algorithm_; }
  const Summary& summary() const { return summary_; }
  // Whether all samples are flagged, and for which reason.
  bool busy() const { return busy_ && clean_.empty(); }
  bool throttled() const { return throttled_ && clean_.empty(); }

 private:
  PointStatus status_ = PointStatus::kMeasured;
  std::string reason_;
  std::string algorithm_;
  std::vector<double> clean_;
  std::vector<double> flagged_;
  bool busy_ = false;
  bool throttled_ = false;
  Summary summary_;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_POINT_SAMPLES_H_
