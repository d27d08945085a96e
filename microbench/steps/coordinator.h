// The host of rank 0 of `stepcast probe steps`: has others train with it, and hears what they
// timed.
#ifndef STEPCAST_MICROBENCH_STEPS_COORDINATOR_H_
#define STEPCAST_MICROBENCH_STEPS_COORDINATOR_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "microbench/network/meeting.h"
#include "microbench/steps/agent.h"
#include "microbench/steps/shaping.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {

// Which hosts take part, by rank.
struct Cast {
  std::vector<int> workers;
  std::vector<int> servers;  // may have several, and a worker too
};

struct TrainingTimes {
  std::vector<std::vector<TimedStep>> workers;  // as many steps of each
  std::vector<double> bucket_s;                 // mean call of each bucket, of the slowest worker
  std::string problem;                          // why there are fewer steps than were asked for

  std::size_t steps() const { return workers.empty() ? 0 : workers.front().size(); }
  // A worker's mean step [s].
  double CycleOf(std::size_t worker) const;
  // For each step a part's mean over the workers, each of which counts as often as it takes steps.
  std::vector<double> Means(double TimedStep::*part) const;
  // For each step the part of the worker for which it is longest.
  std::vector<double> Longest(double TimedStep::*part) const;
};

// The hosts that have come.
class Session {
 public:
  explicit Session(const network::MeetingOptions& options)
      : options_(options), members_(options_, &hosts_, &problem_) {}

  // Throws NetworkError where a host does not come.
  void Gather(network::Door* door, const network::Absent& absent) { members_.Gather(door, absent); }
  const std::vector<NetworkHost>& hosts() const { return hosts_; }

  // A training on these hosts. What fails is in the answer; hosts that are gone are missed in all
  // that follow. `progress` hears how many steps all workers have taken.
  TrainingTimes Measure(const Training& training, const Cast& cast,
                        const std::function<void(std::size_t steps)>& progress);
  // Has all hosts that are left set these conditions at the same time, or say whether they could.
  // Why they have not, or cannot; empty where they have, or can.
  std::string Shape(const Conditions& conditions) { return Ask(kShape, conditions); }
  std::string WhyNotShape(const Conditions& conditions) { return Ask(kMayShape, conditions); }
  // The hosts that have, or can, set a bandwidth only on what they send.
  const std::set<std::string>& sending_only() const { return sending_only_; }
  // All hosts are told at the end that it came early, and why.
  void Refuse(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }
  void End(const std::string& problem);

 private:
  std::string Ask(const char* verb, const Conditions& conditions);

  const network::MeetingOptions& options_;
  std::vector<NetworkHost> hosts_;
  std::string problem_;
  std::set<std::string> sending_only_;
  network::Members members_;
};

// Leads on this host, where a worker may run too, until `lead` returns; `shaped` is as for
// RunAgent. Throws NetworkError where nothing could begin: no port, or a host that did not come.
void LeadSession(const network::MeetingOptions& options, const Programs& programs,
                 const network::Absent& absent, const std::function<void(Session*)>& lead,
                 const std::string& shaped = {});

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_COORDINATOR_H_
