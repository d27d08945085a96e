#include "predictor/serve/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <shared_mutex>
#include <utility>

#include "calibrate/online/fleet.h"
#include "data/io/fleet_record.h"
#include "data/io/machines.h"
#include "data/plan/run_ranges.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "predictor/serve/service.h"

namespace stepcast::serve {
namespace {

void Check(const SeenSteps& seen) {
  if (seen.times_s.empty() != seen.out_of_memory) {
    throw InputError({"", 0, "step_times_s"}, "",
                     seen.out_of_memory ? "are of a plan that is out of memory" : "says nothing",
                     "at least one time in seconds, or out_of_memory");
  }
  if (seen.times_s.size() > kMostSteps) {
    throw InputError({"", 0, "step_times_s"}, std::to_string(seen.times_s.size()),
                     "steps are too many", fmt::format("at most {} at once", kMostSteps));
  }
  for (const double time : seen.times_s) {
    if (kStepTimes.Holds(time)) continue;
    throw InputError({"", 0, "step_times_s"}, std::isnan(time) ? "null" : fmt::format("{}", time),
                     "is no time of a step", kStepTimes.Text());
  }
}

std::map<std::string, std::string> WordsOf(const Workload& workload) {
  std::map<std::string, std::string> words;
  for (const TrainingFact& fact : TrainingFacts()) words[fact.key] = fact.WordOf(workload);
  return words;
}

}  // namespace

// The jobs of a cluster learn beside each other; they are added and removed one at a time.
struct Jobs::SharedFleet {
  // `of_cluster` is the text of its file.
  SharedFleet(const Cluster& cluster, std::string of_cluster, int read_by)
      : fleet(cluster), text(std::move(of_cluster)), snapshot(read_by) {}

  std::shared_lock<std::shared_mutex> ToLearn() {
    const std::lock_guard turn(turns);
    return std::shared_lock(mutex);
  }
  std::unique_lock<std::shared_mutex> ToChange() {
    const std::lock_guard turn(turns);
    return std::unique_lock(mutex);
  }

  std::mutex turns;  // so that those who learn do not hold up those who change for ever
  std::shared_mutex mutex;
  Fleet fleet;
  const std::string text;  // of the cluster's file
  int snapshot;            // the last one that has this cluster
};

struct Jobs::Followed {
  // A job of the fleet.
  Followed(std::shared_ptr<SharedFleet> of, const std::string& job,
           std::shared_ptr<OnlineCalibration> its)
      : fleet(std::move(of)),
        parameters(its->workload().parameters),
        training(WordsOf(its->workload())),
        calibration(std::move(its)),
        told{job,
             fleet->fleet.cluster().name,
             calibration->workload().name,
             calibration->device(),
             calibration->rows(),
             calibration->drifted()} {}

  const std::shared_ptr<SharedFleet> fleet;
  const std::int64_t parameters;                      // of its workload
  const std::map<std::string, std::string> training;  // of it, every word

  std::mutex mutex;                                // of these two; after the fleet's
  std::shared_ptr<OnlineCalibration> calibration;  // nullptr once it is over
  std::shared_ptr<const Target> target;            // nullptr until somebody asks

  JobTold told;  // published, by the mutex of all jobs; its names never change

  // Throws InputError for a start that is another's, by whatever names it has.
  void RequireSame(const Snapshot& snapshot, const TargetName& start) const {
    const TargetName own{told.cluster, told.workload, told.device};
    TargetName named = start;
    for (const auto& part : {&TargetName::cluster, &TargetName::workload, &TargetName::device}) {
      if ((named.*part).empty()) named.*part = own.*part;
    }
    const TargetName known = NamesOf(snapshot, named);
    const auto require = [&](const char* key, const std::string& stated, const std::string& is,
                             const std::string& its) {
      if (is == its) return;
      throw InputError({"", 0, key}, stated, fmt::format("is not that of job {}", told.job), its);
    };
    require("cluster", named.cluster, known.cluster, own.cluster);
    require("workload", named.workload, known.workload, own.workload);
    require("device", named.device, known.device, own.device);
    Workload stated_training;
    TakeTraining(start, &stated_training);
    for (const TrainingFact& fact : TrainingFacts()) {
      const auto stated = start.training.find(fact.key);
      if (stated == start.training.end()) continue;
      require(fact.key, stated->second, fact.WordOf(stated_training), training.at(fact.key));
    }
    if (start.parameters) {
      const std::string stated = std::to_string(*start.parameters);
      require("parameters", stated, stated, std::to_string(parameters));
    }
  }

  // As the target is called where it is known.
  TargetName NamesOf(const Snapshot& snapshot, const TargetName& named) const {
    if (named.cluster == told.cluster && named.workload == told.workload &&
        named.device == told.device) {
      return named;
    }
    try {
      TargetName of_size = named;
      of_size.parameters = parameters;
      const TargetParts parts = snapshot.PartsOf(of_size);
      return {parts.cluster.name, parts.workload.name, parts.device};
    } catch (const InputError&) {
      return named;  // and no other name of this job's
    }
  }
};

Jobs::Jobs(std::size_t most) : most_(most) {}
Jobs::~Jobs() = default;

std::shared_ptr<Jobs::Followed> Jobs::TryFind(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto found = followed_.find(job);
  return found == followed_.end() ? nullptr : found->second;
}

void Jobs::RefuseUnknown(const std::string& job) const {
  std::vector<std::string> names;
  for (const JobTold& told : List()) names.push_back(told.job);
  if (job.empty()) throw InputError({"", 0, "job"}, "", "is required", "a job that is followed");
  throw InputError({"", 0, "job"}, job, "is not followed" + DidYouMean(job, names),
                   names.empty() ? "none is; its first observation begins one" : JoinNames(names));
}

std::shared_ptr<const Target> Jobs::Find(const std::string& job) const {
  const std::shared_ptr<Followed> followed = TryFind(job);
  if (!followed) RefuseUnknown(job);
  const std::lock_guard lock(followed->mutex);
  if (!followed->calibration) RefuseUnknown(job);
  if (!followed->target) {
    // No name of a cluster is empty: the key is no other target's.
    const OnlineCalibration& learnt = *followed->calibration;
    followed->target = std::make_shared<const Target>(
        Target{fmt::format("{}{}", '\0', ++targets_), learnt.facts(),
               Predictor(learnt.cluster(), learnt.workload(), learnt.facts(), learnt.device()),
               learnt.rows() > 0});
  }
  return followed->target;
}

std::vector<JobTold> Jobs::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<JobTold> all;
  for (const auto& [name, followed] : followed_) all.push_back(followed->told);
  return all;
}

std::size_t Jobs::size() const {
  const std::lock_guard lock(mutex_);
  return followed_.size();
}

std::shared_ptr<Jobs::SharedFleet> Jobs::FleetOf(const Snapshot& snapshot, const Cluster& cluster) {
  std::shared_ptr<SharedFleet>& fleet = fleets_[cluster.name];
  if (fleet && fleet->snapshot == snapshot.number()) return fleet;
  std::string text = FormatCluster(cluster);
  if (fleet && fleet->text == text) {
    fleet->snapshot = snapshot.number();
    return fleet;
  }
  return fleet = std::make_shared<SharedFleet>(cluster, std::move(text), snapshot.number());
}

ObservedSteps Jobs::Observe(const Snapshot& snapshot, const std::string& job,
                            const TargetName& start, const MakePlan& make_plan,
                            const SeenSteps& seen) {
  CheckedName(job, {"", 0, "job"});
  Check(seen);
  // Nothing where the job is not followed; it does not end while it learns.
  const auto learn_more = [&]() -> std::optional<ObservedSteps> {
    const std::shared_ptr<Followed> followed = TryFind(job);
    if (!followed) return std::nullopt;
    followed->RequireSame(snapshot, start);
    const Plan plan = make_plan(followed->fleet->fleet.cluster());
    const std::shared_lock learning = followed->fleet->ToLearn();
    if (TryFind(job) != followed) return std::nullopt;
    return Learn(plan, seen, followed.get());
  };
  if (std::optional<ObservedSteps> observed = learn_more()) return *std::move(observed);
  const std::lock_guard changing(changing_);
  if (std::optional<ObservedSteps> observed = learn_more()) return *std::move(observed);
  return Begin(snapshot, job, start, make_plan, seen);
}

ObservedSteps Jobs::Begin(const Snapshot& snapshot, const std::string& job, const TargetName& start,
                          const MakePlan& make_plan, const SeenSteps& seen) {
  if (size() >= most_) {
    throw InputError(
        {"", 0, "job"}, job, "is one too many",
        fmt::format("at most {} jobs that are followed: end those that are over", most_));
  }
  const TargetParts parts = snapshot.PartsOf(start);
  const Plan plan = make_plan(parts.cluster);
  const std::shared_ptr<SharedFleet> shared = FleetOf(snapshot, parts.cluster);
  const std::unique_lock changing = shared->ToChange();
  Fleet& fleet = shared->fleet;
  const auto followed = std::make_shared<Followed>(
      shared, job, fleet.Add(job, parts.workload, parts.facts, parts.device));
  try {
    ObservedSteps observed = Learn(plan, seen, followed.get());
    const std::lock_guard published(mutex_);
    followed_[job] = followed;
    return observed;
  } catch (...) {
    fleet.Remove(job);
    throw;
  }
}

ObservedSteps Jobs::Learn(const Plan& plan, const SeenSteps& seen, Followed* followed) {
  const std::lock_guard lock(followed->mutex);
  ObservedSteps observed;
  if (seen.out_of_memory) followed->calibration->ObserveOutOfMemory(plan);
  observed.steps.reserve(seen.times_s.size());
  for (const double time : seen.times_s) {
    observed.steps.push_back(followed->calibration->Observe(plan, Seconds(time)));
  }
  followed->target = nullptr;
  ++version_;
  const std::lock_guard published(mutex_);
  followed->told.rows = followed->calibration->rows();
  followed->told.drifted = followed->calibration->drifted();
  observed.job = followed->told;
  return observed;
}

std::vector<std::string> Jobs::Export() {
  const std::lock_guard changing(changing_);
  // Those that are served come first, then those in which jobs go on.
  std::vector<std::shared_ptr<SharedFleet>> all;
  for (const auto& [name, fleet] : fleets_) all.push_back(fleet);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, followed] : followed_) {
      if (std::find(all.begin(), all.end(), followed->fleet) == all.end()) {
        all.push_back(followed->fleet);
      }
    }
  }
  std::vector<std::string> texts;
  for (const std::shared_ptr<SharedFleet>& shared : all) {
    FleetRecord record;
    {
      const std::unique_lock change = shared->ToChange();
      record = shared->fleet.Export();
    }
    texts.push_back(FormatFleetRecord(record));
  }
  return texts;
}

std::vector<InputError> Jobs::Import(const Snapshot& snapshot,
                                     const std::vector<std::string>& texts) {
  const std::lock_guard changing(changing_);
  std::vector<InputError> left_out;
  std::map<std::string, std::shared_ptr<SharedFleet>> fleets;
  std::map<std::string, std::shared_ptr<Followed>> all;
  std::map<std::string, std::string> clusters;  // as texts: as many lines as there are tell of them
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto line = static_cast<int>(i + 1);
    const auto of_line = [line](const InputError& e) { return e.At({"", line, e.place().key}); };
    FleetRecord record;
    try {
      record = ParseFleetRecord(texts[i]);
    } catch (const InputError& e) {
      throw of_line(e);
    }
    const bool is_empty = record.taught.empty() && record.jobs.empty();
    if (is_empty && fleets.count(record.cluster) > 0) continue;
    std::shared_ptr<SharedFleet> shared;
    try {
      const Cluster& cluster = snapshot.FindCluster(record.cluster);
      std::string& text = clusters[record.cluster];
      if (text.empty()) text = FormatCluster(cluster);
      shared = std::make_shared<SharedFleet>(cluster, text, snapshot.number());
      shared->fleet.Import(record);
    } catch (const InputError& e) {
      left_out.push_back(of_line(e));
      continue;
    }
    fleets.try_emplace(record.cluster, shared);
    for (const std::string& job : shared->fleet.jobs()) {
      const auto followed = std::make_shared<Followed>(shared, job, shared->fleet.Job(job));
      if (!all.emplace(job, followed).second) {
        throw InputError({"", line, "job"}, job, "is there twice", "each job once");
      }
    }
  }
  fleets_ = std::move(fleets);
  const std::lock_guard published(mutex_);
  followed_ = std::move(all);
  return left_out;
}

JobTold Jobs::End(const std::string& job, bool forget) {
  const std::lock_guard changing(changing_);
  const std::shared_ptr<Followed> followed = TryFind(job);
  if (!followed) RefuseUnknown(job);
  const std::unique_lock change = followed->fleet->ToChange();
  const std::lock_guard lock(followed->mutex);
  if (forget) {
    followed->fleet->fleet.Remove(job);
  } else {
    followed->fleet->fleet.End(job);
  }
  followed->calibration = nullptr;
  ++version_;
  const std::lock_guard published(mutex_);
  followed_.erase(job);
  return followed->told;
}

}  // namespace stepcast::serve
