// One calibration of a cluster that all its jobs share: what some learn, the next begin with.
//
//   Fleet fleet(cluster);
//   const auto job = fleet.Add("job 7", workload, facts);
//   job->Observe(plan, Seconds(0.31));
//   Predictor predictor(job->cluster(), workload, facts);
//   fleet.End("job 7");
//
// Each job learns by itself (calibrate/online/online_calibration.h). What its rows say, apart from
// what it began with, is a normal likelihood of the ln(value) of its parameters,
//
//   exp(e' x - x' J x / 2),   J = C^-1 - S^-1,   e = C^-1 m - S^-1 m_0
//
// It is taken at the values that the job has come to. Jobs of one workload that have learnt side by
// side have each come to values of their own, of which the rows hold alike, but not the tangents:
// the sum of these is far from all of them. Theirs are taken at one point, at which the rows of all
// of them and what was taught before meet best, and a job that ends is kept as it is seen from
// there.
//
// Jobs have ways of their own: those of one workload on one device differ from each other by W, and
// workloads from each other by T in how they use the cluster (frameworks, small messages, copies).
// Seen from further off, a likelihood is as much wider:
//
//   J -> (J^-1 + W)^-1   summed over the jobs of one workload: what they say of it;
//   J -> (J_c^-1 + T)^-1 of that sum, J_c what it says of the cluster whatever the workload is.
//
// A new job's workload begins with the cluster file's belief and the latter of all others, widened
// by T; the former of its own, where there is one, comes to that, widened by W for the job.
//
//   m_0, S   mean and covariance of the job's ln(value) before its rows, with what it was taught
//   m, C     and after them
//   T        a third of the variance between clusters, which the prior has in it; nought for what
//            the cluster's file knows, which holds for every workload that is forecast from it
//   W        (0.05)^2
//
// Note that a job learns from the others when it is added, and goes on by its own rows: they tell
// it more. Of one that has drifted the rows since then count. Threads may call const functions at
// once, where no other changes the fleet or observes one of its jobs meanwhile.
//
// Sources: Gelman et al., Bayesian Data Analysis, chapter 5 (hierarchical models); T is what serves
// best on the jobs of two public clusters (docs/explanation/online.md).
#ifndef STEPCAST_CALIBRATE_ONLINE_FLEET_H_
#define STEPCAST_CALIBRATE_ONLINE_FLEET_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/record/fleet_record.h"
#include "data/record/machine.h"
#include "data/record/workload.h"

namespace stepcast {

class Fleet {
 public:
  explicit Fleet(Cluster cluster);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  Fleet(Fleet&&) noexcept;
  Fleet& operator=(Fleet&&) noexcept;

  // A new job, which begins with what the others have learnt. `facts` and `device` as for
  // Predictor. Throws InputError as Predictor does, for a name that is running or empty, and for a
  // workload that has the name of another job's, is trained as it is, and has other gradients.
  std::shared_ptr<OnlineCalibration> Add(const std::string& job, const Workload& workload,
                                         const std::optional<Device>& facts,
                                         const std::string& device = "");
  // Throws InputError for a job that is not running, as those below do.
  std::shared_ptr<OnlineCalibration> Job(const std::string& job) const;
  // The job is over: what it has taught is kept, in a space that does not grow with the jobs.
  void End(const std::string& job);
  // What the job has taught is forgotten, but by those that began with it.
  void Remove(const std::string& job);

  std::vector<std::string> jobs() const;  // that are running, by name
  const Cluster& cluster() const;         // that the caller gave
  // The cluster as a new job of this workload begins with it, for Predictor. Throws as Add does.
  Cluster ClusterFor(const Workload& workload, const std::optional<Device>& facts,
                     const std::string& device = "") const;

  // All that was learnt, and back: the two have the same bits ahead of them. Import throws
  // InputError for a record of another cluster, or of what no jobs can have learnt, and changes
  // nothing then; the jobs that are running are the record's. data/io/fleet_record.h has the text
  // of a record.
  FleetRecord Export() const;
  void Import(const FleetRecord& record);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast

#endif  // STEPCAST_CALIBRATE_ONLINE_FLEET_H_
