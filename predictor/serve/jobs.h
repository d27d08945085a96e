// Jobs that a service follows: what their steps teach, and answers as each has learnt by now.
//
//   jobs.Observe(*snapshot, "train-7", {{"", "resnet50", ""}}, plan, {0.31, 0.30});
//   jobs.Find("train-7")->predictor.Predict(other_plan);
//
// The jobs of a cluster are a fleet (calibrate/online/fleet.h): a new one begins with what the
// others have learnt. A cluster whose file is read anew and says something else has another fleet;
// jobs that began before go on in the old one, which ends with the last of them.
//
// Everything here may be called from many threads. Jobs learn beside each other, and those who ask
// wait for the steps of that job alone that are being learnt.
#ifndef STEPCAST_PREDICTOR_SERVE_JOBS_H_
#define STEPCAST_PREDICTOR_SERVE_JOBS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/record/plan.h"
#include "predictor/serve/target.h"

namespace stepcast::serve {

class Snapshot;

inline constexpr std::size_t kMostSteps = 1000;  // observed at once

// What was seen of a plan: times of its steps, or that one did not fit in memory.
struct SeenSteps {
  std::vector<double> times_s;
  bool out_of_memory = false;
};

struct JobTold {
  std::string job;
  std::string cluster;
  std::string workload;
  std::string device;
  int rows = 0;          // observed so far
  bool drifted = false;  // see OnlineCalibration::drifted
};

struct ObservedSteps {
  JobTold job;
  std::vector<Observation> steps;  // in the order of the times
};

class Jobs {
 public:
  // The plan that steps were of, once the cluster is known.
  using MakePlan = std::function<Plan(const Cluster&)>;

  explicit Jobs(std::size_t most);
  ~Jobs();

  // Learns the steps of a job, which begins here if it is not followed. Throws InputError, and
  // learns nothing, for times that are none, a plan that no model covers, a start that the job did
  // not have, and where too many jobs are followed.
  ObservedSteps Observe(const Snapshot& snapshot, const std::string& job, const TargetName& start,
                        const MakePlan& make_plan, const SeenSteps& seen);

  // Throws InputError for a job that is not followed, as those below do.
  std::shared_ptr<const Target> Find(const std::string& job) const;
  // The job is over. What it has taught is kept for those to come, or forgotten.
  JobTold End(const std::string& job, bool forget);

  std::vector<JobTold> List() const;  // by name
  std::size_t size() const;

  // What all have learnt and taught, a text for each fleet.
  std::vector<std::string> Export();
  // And back, in place of all that is followed. What was learnt of a cluster that is not served, or
  // whose file says something else now, holds no more: returns why each such fleet is left out.
  // Throws InputError for a text that is none, and for a job of two fleets; nothing changes then.
  std::vector<InputError> Import(const Snapshot& snapshot, const std::vector<std::string>& texts);
  // Grows with whatever changes that.
  std::uint64_t version() const { return version_; }

 private:
  struct SharedFleet;
  struct Followed;

  // nullptr where it is not followed.
  std::shared_ptr<Followed> TryFind(const std::string& job) const;
  [[noreturn]] void RefuseUnknown(const std::string& job) const;
  std::shared_ptr<SharedFleet> FleetOf(const Snapshot& snapshot, const Cluster& cluster);
  // With changing_ held.
  ObservedSteps Begin(const Snapshot& snapshot, const std::string& job, const TargetName& start,
                      const MakePlan& make_plan, const SeenSteps& seen);
  // With the fleet's mutex held.
  ObservedSteps Learn(const Plan& plan, const SeenSteps& seen, Followed* followed);

  const std::size_t most_;
  std::mutex changing_;  // held while jobs begin and end; before a fleet's
  std::map<std::string, std::shared_ptr<SharedFleet>> fleets_;  // by cluster; by changing_
  mutable std::mutex mutex_;  // of followed_, and of what is told of each job
  std::map<std::string, std::shared_ptr<Followed>> followed_;
  mutable std::atomic<std::uint64_t> targets_{0};  // made so far
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_JOBS_H_
