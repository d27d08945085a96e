#include "calibrate/online/fleet.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/online/state.h"
#include "data/record/input_error.h"
#include "data/record/within.h"
#include "data/units/shortest.h"

namespace stepcast {
namespace {

using internal::ObservedPlan;
using internal::OnlineState;

// T, as a share of the variance between clusters.
constexpr double kShareBetweenWorkloads = 1.0 / 3;
// W^(1/2).
constexpr double kBetweenJobsLogSd = 0.05;

enum class Difference { kBetweenJobs, kBetweenWorkloads };

// exp(pull' x - x' information x / 2) of x = ln(SI value), by the positions of a belief.
struct Lesson {
  Eigen::MatrixXd information;
  Eigen::VectorXd pull;

  explicit Lesson(Eigen::Index size)
      : information(Eigen::MatrixXd::Zero(size, size)), pull(Eigen::VectorXd::Zero(size)) {}

  void Add(const Lesson& other) {
    information += other.information;
    pull += other.pull;
  }
};

// Information that is none: a value known to a factor of e^1000.
constexpr double kNothing = 1e-6;

bool IsOfCluster(Eigen::Index position) {
  return position < Belief::kWorkloadOffset || position >= Belief::kHostOffset;
}

// What was learnt of all parameters, or of the cluster's whatever the workload's are.
Lesson LessonOf(const OnlineState& state, bool of_cluster) {
  std::vector<Eigen::Index> free;  // that nobody has stated
  for (Eigen::Index i = 0; i < state.size(); ++i) {
    if (state.root(i, i) > 0 && (!of_cluster || IsOfCluster(i))) free.push_back(i);
  }
  const Eigen::MatrixXd slopes = state.root(free, Eigen::all);
  const auto inverse = [](const Eigen::MatrixXd& covariance) -> Eigen::MatrixXd {
    const Eigen::Index n = covariance.rows();
    return Eigen::LLT<Eigen::MatrixXd>(covariance).solve(Eigen::MatrixXd::Identity(n, n));
  };
  const Eigen::MatrixXd before = inverse(slopes * slopes.transpose());
  const Eigen::MatrixXd after = inverse(slopes * state.solver.solve(slopes.transpose()));
  const Eigen::VectorXd centre = state.centre(free);
  const Eigen::VectorXd mean = centre + slopes * state.solver.solve(state.b);
  Lesson lesson(state.size());
  lesson.information(free, free) = after - before;
  lesson.pull(free) = after * mean - before * centre;
  return lesson;
}

// Throws InputError for what no rows can have told.
void CheckLesson(const OnlineState& state) {
  constexpr double kMost = 1e15;  // known to a factor of e^(3e-8)
  const Lesson lesson = LessonOf(state, false);
  if (lesson.information.cwiseAbs().maxCoeff() < kMost && lesson.pull.cwiseAbs().maxCoeff() < kMost)
    return;
  throw InputError({}, "", "is of more than rows can have told");
}

// Positions in two states of what is in both. Where a calibration tells of hosts, these have
// positions there beside those of the cluster's file; no row tells of what no host has any more.
std::vector<std::pair<Eigen::Index, Eigen::Index>> SamePositions(const OnlineState& from,
                                                                 const OnlineState& to) {
  std::map<std::string, Eigen::Index> hosts;
  const auto name = [](const OnlineState& state, Eigen::Index position) -> std::string {
    const Belief& belief = state.start.belief();
    const int at = static_cast<int>(position);
    return belief.HostsOf(at).empty() ? "" : belief.NameOf(at);
  };
  for (Eigen::Index i = Belief::kHostOffset; i < from.size(); ++i) hosts.emplace(name(from, i), i);
  hosts.erase("");
  std::vector<std::pair<Eigen::Index, Eigen::Index>> same;
  for (Eigen::Index i = 0; i < to.size(); ++i) {
    const auto found = i < Belief::kHostOffset ? hosts.end() : hosts.find(name(to, i));
    if (i >= Belief::kHostOffset && found == hosts.end()) continue;
    same.emplace_back(i < Belief::kHostOffset ? i : found->second, i);
  }
  return same;
}

// The same by the positions of another state.
Lesson Aligned(const Lesson& lesson, const OnlineState& from, const OnlineState& to) {
  std::vector<Eigen::Index> here;
  std::vector<Eigen::Index> there;
  for (const auto& [one, other] : SamePositions(from, to)) {
    here.push_back(one);
    there.push_back(other);
  }
  Lesson aligned(to.size());
  aligned.information(there, there) = lesson.information(here, here);
  aligned.pull(there) = lesson.pull(here);
  return aligned;
}

// Where a lesson is likeliest, and a root R of its information R' R, of what it tells at all.
struct Likeliest {
  Eigen::VectorXd mean;
  Eigen::MatrixXd root;

  explicit Likeliest(const Lesson& lesson) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(lesson.information);
    const Eigen::VectorXd values =
        solver.eigenvalues().unaryExpr([](double v) { return v > kNothing ? v : 0; });
    const Eigen::VectorXd inverse = values.unaryExpr([](double v) { return v > 0 ? 1 / v : 0; });
    const Eigen::MatrixXd& vectors = solver.eigenvectors();
    mean = vectors * inverse.cwiseProduct(vectors.transpose() * lesson.pull);
    root = values.cwiseSqrt().asDiagonal() * vectors.transpose();
  }
};

// The same of parameters that differ from those by so much.
Lesson Widened(const Lesson& lesson, const Eigen::MatrixXd& covariance) {
  const auto [mean, root] = Likeliest(lesson);
  const Eigen::Index n = mean.size();
  const Eigen::MatrixXd wider =
      Eigen::MatrixXd::Identity(n, n) + root * covariance * root.transpose();
  Lesson widened(n);
  widened.information = root.transpose() * Eigen::LLT<Eigen::MatrixXd>(wider).solve(root);
  widened.pull = widened.information * mean;
  return widened;
}

// How much likelier, in ln, two lessons are of a cluster that has changed between them, by U z of a
// standard normal z for either, than of one that is the same:
//
//   g' (I / 2 + U' P U)^-1 g / 2,   P = J_1 (J_1 + J_2)^-1 J_2,   g = U' (J_1 x - e_1)
//   x = (J_1 + J_2)^-1 (e_1 + e_2)
double GainOfChange(const Lesson& one, const Lesson& other, const Eigen::MatrixXd& change) {
  std::vector<Eigen::Index> told;  // positions that either tells of
  for (Eigen::Index i = 0; i < one.pull.size(); ++i) {
    if (one.information(i, i) + other.information(i, i) > kNothing) told.push_back(i);
  }
  if (told.empty()) return 0;
  const Eigen::MatrixXd first = one.information(told, told);
  const Eigen::MatrixXd second = other.information(told, told);
  const Eigen::MatrixXd u = change(told, Eigen::all);
  Eigen::MatrixXd both = first + second;
  both.diagonal().array() += kNothing;  // what neither tells of stays in its place
  const Eigen::LDLT<Eigen::MatrixXd> solver(both);
  const Eigen::VectorXd pull = one.pull(told);
  const Eigen::VectorXd x = solver.solve(pull + other.pull(told));
  const Eigen::VectorXd g = u.transpose() * (first * x - pull);
  Eigen::MatrixXd information = (first * u).transpose() * solver.solve(second * u);
  information.diagonal().array() += 0.5;
  return 0.5 * g.dot(Eigen::LDLT<Eigen::MatrixXd>(information).solve(g));
}

// Whether more than a prior told of it before all jobs.
bool IsKnownByFile(const OnlineState& state, Eigen::Index position) {
  return state.start.belief().origin(static_cast<int>(position)) != Origin::kPrior;
}

// W or T, by position.
Eigen::VectorXd VarianceOf(const OnlineState& state, Difference difference) {
  Eigen::VectorXd variance = Eigen::VectorXd::Zero(state.size());
  for (Eigen::Index i = 0; i < Belief::kHostOffset; ++i) {
    if (!(state.root(i, i) > 0)) continue;
    if (difference == Difference::kBetweenJobs) {
      variance[i] = kBetweenJobsLogSd * kBetweenJobsLogSd;
    } else if (i < Belief::kWorkloadOffset && !IsKnownByFile(state, i)) {
      const double log_sd = kClusterParameterSpecs[static_cast<std::size_t>(i)].prior_log_sd;
      variance[i] = kShareBetweenWorkloads * log_sd * log_sd;
    }
  }
  return variance;
}

// Enters what others have learnt, as rows that nobody can linearise anew.
void Enter(const Lesson& lesson, OnlineState* state) {
  const Eigen::MatrixXd root = state->root.triangularView<Eigen::Lower>();
  state->folded += root.transpose() * lesson.information * root;
  state->folded_b += root.transpose() * (lesson.pull - lesson.information * state->centre);
}

// How far a change moves the parameters of each level together, a column for each level.
Eigen::MatrixXd AnyChange(const OnlineState& state) {
  std::vector<std::string_view> names;
  for (Eigen::Index i = 0; i < state.size(); ++i) {
    const bool stated = !(state.root(i, i) > 0);
    names.push_back(stated ? "" : state.start.belief().SpecOf(static_cast<int>(i)).name);
  }
  return internal::MovesOfChange(internal::kAllDrifting, names);
}

// Where a level is far likelier to have changed between two lessons than to be the same, nobody
// knows which of them the next job will find: both tell of it no better than a change leaves it.
// Whether that is so.
bool WidenWhereChanged(const Eigen::MatrixXd& change, Lesson* one, Lesson* other) {
  if (!(GainOfChange(*one, *other, change) > internal::kAlarm)) return false;
  const Eigen::MatrixXd covariance = change * change.transpose();
  *one = Widened(*one, covariance);
  *other = Widened(*other, covariance);
  return true;
}

// Takes all out that was entered.
Lesson TakeOut(OnlineState* state) {
  Lesson lesson = LessonOf(*state, false);
  state->folded.setZero();
  state->folded_b.setZero();
  return lesson;
}

// Takes what is known for that of others, who differ by so much.
void Widen(const Eigen::VectorXd& variance, OnlineState* state) {
  const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(state->size(), state->size());
  state->Rebuild();
  const Eigen::VectorXd y = state->solver.solve(state->b);
  Eigen::MatrixXd spread = state->solver.solve(one);
  for (Eigen::Index i = 0; i < state->size(); ++i) {
    const Eigen::VectorXd of = state->YOf(state->centre + one.col(i));
    spread += variance[i] * of * of.transpose();
  }
  const Eigen::MatrixXd information = Eigen::LLT<Eigen::MatrixXd>(spread).solve(one);
  state->folded = information - one;
  state->folded_b = information * y;
}

// ln(SI value) by the positions of a state, from elsewhere; what is told of no such position stays.
Eigen::VectorXd SeenFrom(const OnlineState& from, const Eigen::VectorXd& log_x,
                         const OnlineState& to) {
  Eigen::VectorXd seen = to.log_values;
  for (const auto& [here, there] : SamePositions(from, to)) seen[there] = log_x[here];
  return seen;
}

using Jobs = std::vector<const OnlineState*>;

// Where the rows of jobs of one workload on one device and what was taught before meet best, by the
// positions of the latter.
Eigen::VectorXd CommonPoint(OnlineState all, const Jobs& jobs) {
  const std::size_t most = std::max<std::size_t>(1, internal::kMostPlans / jobs.size());
  double variance = 0;
  double rows = 0;
  std::vector<Eigen::VectorXd> starts;
  for (const OnlineState* job : jobs) {
    starts.push_back(all.YOf(SeenFrom(*job, job->log_values, all)));
    if (!job->folded.isZero(0)) {
      OnlineState forgotten = *job;
      forgotten.plans.clear();
      forgotten.Rebuild();
      Enter(Aligned(LessonOf(forgotten, false), *job, all), &all);
    }
    std::vector<const ObservedPlan*> latest;
    for (const ObservedPlan& plan : job->plans) latest.push_back(&plan);
    std::sort(latest.begin(), latest.end(), [](const ObservedPlan* one, const ObservedPlan* other) {
      return one->last > other->last;
    });
    latest.resize(std::min(latest.size(), most));
    for (const ObservedPlan* plan : latest) {
      if (plan->rows == 0) continue;
      ObservedPlan& observed = all.plans[all.FindOrAdd(plan->plan)];
      observed.rows += plan->rows;
      observed.times.insert(observed.times.end(), plan->times.begin(), plan->times.end());
      variance += plan->rows * job->scatter * job->scatter;
      rows += plan->rows;
    }
  }
  // A step of one job is off that point by W as well.
  if (rows > 0) all.scatter = std::sqrt(variance / rows + kBetweenJobsLogSd * kBetweenJobsLogSd);
  all.SetY(all.solver.solve(all.b));
  all.DescendFrom(starts);
  return all.log_values;
}

// What a job's rows say where the parameters are about these.
Lesson LessonAt(const Eigen::VectorXd& log_x, OnlineState job) {
  job.SetY(job.YOf(log_x));
  job.LineariseAll();
  return LessonOf(job, false);
}

// Of two batches, 0 where none is known.
bool IsSmallest(int batch, int known) { return batch > 0 && (known == 0 || batch < known); }

// Jobs of one workload on one device that are over: what they have taught beside the cluster's
// file, as rows that cannot be linearised anew.
struct Taught {
  OnlineState state;

  std::string scope() const { return state.scope(); }

  // What some of these jobs have learnt, which all run at once.
  void Take(const Jobs& told, const Jobs& running) {
    for (const OnlineState* job : told) {
      if (!IsSmallest(job->smallest_batch, state.smallest_batch)) continue;
      const Lesson before = TakeOut(&state);
      state.KnowSmallestBatch(job->smallest_batch);
      Enter(before, &state);
    }
    state.Rebuild();
    Lesson lesson = Together(told, running);
    const Eigen::MatrixXd change = AnyChange(state);
    Lesson others = LessonOf(state, false);
    if (WidenWhereChanged(change, &lesson, &others)) {
      TakeOut(&state);
      Enter(others, &state);
      state.Rebuild();
      lesson = Widened(Together(told, running), change * change.transpose());
    }
    Enter(lesson, &state);
    state.Rebuild();
    for (const OnlineState* job : told) {
      for (const ObservedPlan& plan : job->plans) {
        if (plan.rows > 0) state.range.Include(job->start.cluster(), plan.plan, scope());
      }
      state.rows = std::min(state.rows + job->rows, kMostObservedRows);
    }
  }

 private:
  Lesson Together(const Jobs& told, const Jobs& running) const {
    const bool alone = running.size() == 1 && state.rows == 0;
    const Eigen::VectorXd point = alone ? state.log_values : CommonPoint(state, running);
    Lesson sum(state.size());
    for (const OnlineState* job : told) {
      const Lesson own =
          alone ? LessonOf(*job, false) : LessonAt(SeenFrom(state, point, *job), *job);
      const Eigen::VectorXd between_jobs = VarianceOf(*job, Difference::kBetweenJobs);
      sum.Add(Aligned(Widened(own, between_jobs.asDiagonal()), *job, state));
    }
    return sum;
  }
};

// What all jobs of one workload on one device say of the cluster to other workloads.
struct ClusterLesson {
  std::optional<Taught> with_running;  // where jobs of it run
  Lesson lesson;
  std::int64_t rows;
  CalibratedRange range;

  ClusterLesson(const Taught& over, std::optional<Taught> with)
      : with_running(std::move(with)), lesson(over.state.size()) {
    const OnlineState& all = with_running ? with_running->state : over.state;
    lesson =
        Widened(LessonOf(all, true), VarianceOf(all, Difference::kBetweenWorkloads).asDiagonal());
    rows = all.rows;
    range = all.range;
  }
};

}  // namespace

struct Fleet::State {
  struct Running {
    std::shared_ptr<OnlineCalibration> job;
    std::string scope;
    mutable std::int64_t gathered_revision = 0;
  };

  explicit State(Cluster of) : cluster(std::move(of)) {}

  // The running jobs of a workload that have something to tell.
  Jobs RunningOf(const std::string& scope) const {
    Jobs jobs;
    for (const auto& [name, of] : running) {
      const OnlineState& state = *of.job->state_;
      if (of.scope == scope && state.rows > 0) jobs.push_back(&state);
    }
    return jobs;
  }

  // Brings `lessons` up to what the jobs have learnt. Of several that ask at once the first does
  // it, and the others find nothing left to do.
  void Gather() const;

  std::map<std::string, Running>::iterator Find(const std::string& job) {
    const auto found = running.find(job);
    if (found != running.end()) return found;
    std::string names;
    for (const auto& [name, of] : running) names += (names.empty() ? "" : ", ") + name;
    throw InputError({"", 0, "job"}, job, "is not running", names.empty() ? "none is" : names);
  }

  // With its workload, where no row has told of it.
  void Erase(std::map<std::string, Running>::iterator job) {
    const std::string scope = job->second.scope;
    running.erase(job);
    lessons.erase(scope);
    const bool runs = std::any_of(running.begin(), running.end(),
                                  [&](const auto& other) { return other.second.scope == scope; });
    const OnlineState& told = taught.at(scope).state;
    if (!runs && told.rows == 0 && told.LeastActivations().si() == 0) taught.erase(scope);
  }

  Taught TaughtOf(const Workload& workload, const std::optional<Device>& facts,
                  const std::string& device) const;
  Cluster StartOf(const Taught& own) const;
  Cluster ParametersFor(const Taught& own) const;  // the same, but for what did not fit in memory
  // Of a record, which may say anything. Throw InputError.
  void Import(const FleetRecord::Learnt& record);
  void Import(const FleetRecord::Job& record);
  // Whether the cluster's file knows it.
  bool IsOfFile(const ParameterEstimate& e) const {
    return cluster.calibration && cluster.calibration->Find(e.scope, e.name);
  }

  Cluster cluster;
  std::map<std::string, Running> running;
  std::map<std::string, Taught> taught;  // of all jobs that ever ran, by scope
  // Of workloads of which rows have told, by scope; none where jobs have learnt since. All follows
  // from the above.
  mutable std::map<std::string, ClusterLesson> lessons;
  std::unique_ptr<std::mutex> gathering = std::make_unique<std::mutex>();
};

Taught Fleet::State::TaughtOf(const Workload& workload, const std::optional<Device>& facts,
                              const std::string& device) const {
  Taught own{OnlineState(cluster, workload, facts, device)};
  const auto known = taught.find(own.scope());
  if (known == taught.end()) return own;
  const Workload& others = known->second.state.start.workload();
  if (others.gradient_bytes.si() != workload.gradient_bytes.si()) {
    throw InputError(
        {"", 0, "workload"}, workload.name, "has other gradients than that of another job",
        "a name of its own, or " + ShortestText(others.gradient_bytes.in(kBytes)) + " bytes");
  }
  return known->second;
}

Cluster Fleet::State::StartOf(const Taught& own) const {
  Cluster start = ParametersFor(own);
  DataSize<> least = own.state.LeastActivations();
  const std::string scope = own.scope();
  for (const auto& [name, job] : running) {
    if (job.scope == scope) least = Max(least, job.job->state_->LeastActivations());
  }
  if (least.si() > 0) start.out_of_memory[scope] = least;
  return start;
}

void Fleet::State::Gather() const {
  const std::lock_guard lock(*gathering);
  for (const auto& [name, of] : running) {
    const std::int64_t revision = of.job->state_->revision;
    if (of.gathered_revision != revision) lessons.erase(of.scope);
    of.gathered_revision = revision;
  }
  for (const auto& [scope, of] : taught) {
    if (lessons.count(scope) > 0) continue;
    const Jobs jobs = RunningOf(scope);
    std::optional<Taught> with;
    if (!jobs.empty()) {
      with = of;
      with->Take(jobs, jobs);
    }
    if (with || of.state.rows > 0) lessons.try_emplace(scope, of, std::move(with));
  }
}

Cluster Fleet::State::ParametersFor(const Taught& own) const {
  Gather();
  std::int64_t rows = 0;
  for (const auto& [scope, of] : lessons) rows += of.rows;
  if (rows == 0) return cluster;
  rows = std::min(rows, kMostObservedRows);

  // The cluster, as other workloads know it.
  const std::string own_scope = own.scope();
  const auto same = lessons.find(own_scope);
  const bool runs = same != lessons.end() && same->second.with_running;
  OnlineState start = (runs ? *same->second.with_running : own).state;
  const bool known = start.rows > 0;
  const Lesson lesson = TakeOut(&start);
  for (Eigen::Index i = 0; i < Belief::kWorkloadOffset; ++i) {
    if (IsKnownByFile(start, i)) continue;
    start.root.row(i) *= std::sqrt(1 - kShareBetweenWorkloads);
  }
  const Eigen::VectorXd between_workloads = VarianceOf(start, Difference::kBetweenWorkloads);
  const Eigen::MatrixXd change = AnyChange(start);
  Lesson others(start.size());
  for (const auto& [scope, of] : lessons) {
    if (scope == own_scope) continue;
    Lesson next = of.lesson;
    WidenWhereChanged(change, &next, &others);
    others.Add(next);
    start.range.Include(of.range);
  }
  Enter(others, &start);
  // This workload, and a job of it.
  Widen(between_workloads, &start);
  if (known) {
    Enter(lesson, &start);
    Widen(VarianceOf(start, Difference::kBetweenJobs), &start);
  }
  start.Rebuild();
  start.SetY(start.solver.solve(start.b));
  Cluster learnt = start.AtY();
  Calibration& calibration = *learnt.calibration;
  internal::Count(rows - start.rows, &calibration.sources.back().runs);
  for (ParameterEstimate& e : calibration.parameters) {
    if (e.scope == kClusterScope && !IsOfFile(e)) {
      e.prior_log_sd /= std::sqrt(1 - kShareBetweenWorkloads);
    }
  }
  if (known) return learnt;

  // Nothing of a workload that no rows have told of.
  std::vector<Eigen::Index> kept;
  std::vector<ParameterEstimate> parameters;
  for (std::size_t i = 0; i < calibration.parameters.size(); ++i) {
    const ParameterEstimate& e = calibration.parameters[i];
    const bool of_cluster = e.scope == kClusterScope || e.scope.starts_with(kHostsScopePrefix);
    if (!IsOfFile(e) && !of_cluster) continue;
    kept.push_back(static_cast<Eigen::Index>(i));
    parameters.push_back(e);
  }
  calibration.parameters = std::move(parameters);
  calibration.log_covariance = Eigen::MatrixXd(calibration.log_covariance(kept, kept));
  calibration.alternatives.resize(0, calibration.log_covariance.cols());
  return learnt;
}

Fleet::Fleet(Cluster cluster) : state_(std::make_unique<State>(std::move(cluster))) {}
Fleet::~Fleet() = default;
Fleet::Fleet(Fleet&&) noexcept = default;
Fleet& Fleet::operator=(Fleet&&) noexcept = default;

std::shared_ptr<OnlineCalibration> Fleet::Add(const std::string& job, const Workload& workload,
                                              const std::optional<Device>& facts,
                                              const std::string& device) {
  if (job.empty()) throw InputError({"", 0, "job"}, "", "has no name", "any text");
  if (state_->running.count(job) > 0) {
    throw InputError({"", 0, "job"}, job, "is running already", "a name of its own");
  }
  const Taught own = state_->TaughtOf(workload, facts, device);
  const auto added =
      std::make_shared<OnlineCalibration>(state_->StartOf(own), workload, facts, device);
  state_->taught.emplace(own.scope(), own);
  state_->running[job] = {added, own.scope()};
  return added;
}

std::shared_ptr<OnlineCalibration> Fleet::Job(const std::string& job) const {
  return state_->Find(job)->second.job;
}

void Fleet::End(const std::string& job) {
  const auto found = state_->Find(job);
  Taught& taught = state_->taught.at(found->second.scope);
  const OnlineState& over = *found->second.job->state_;
  if (over.rows > 0) {
    Taught with = taught;  // where memory is short, nothing changes
    with.Take({&over}, state_->RunningOf(found->second.scope));
    taught = std::move(with);
  }
  taught.state.KnowLeastActivations(over.LeastActivations());
  state_->Erase(found);
}

void Fleet::Remove(const std::string& job) { state_->Erase(state_->Find(job)); }

std::vector<std::string> Fleet::jobs() const {
  std::vector<std::string> names;
  for (const auto& [name, job] : state_->running) names.push_back(name);
  return names;
}

const Cluster& Fleet::cluster() const { return state_->cluster; }

Cluster Fleet::ClusterFor(const Workload& workload, const std::optional<Device>& facts,
                          const std::string& device) const {
  return state_->StartOf(state_->TaughtOf(workload, facts, device));
}

FleetRecord Fleet::Export() const {
  const auto learnt_by = [](const OnlineState& state) {
    return FleetRecord::Learnt{state.start.workload(), state.device_facts, state.start.device(),
                               state.Export()};
  };
  FleetRecord record;
  record.cluster = state_->cluster.name;
  for (const auto& [scope, of] : state_->taught) record.taught.push_back(learnt_by(of.state));
  for (const auto& [name, running] : state_->running) {
    const OnlineState& job = *running.job->state_;
    record.jobs.push_back({name, job.first->calibration, learnt_by(job)});
  }
  return record;
}

void Fleet::State::Import(const FleetRecord::Learnt& record) {
  Taught of{OnlineState(cluster, record.workload, record.facts, record.device)};
  if (record.state.anew || !record.state.plans.empty()) {
    throw InputError({"", 0, "state"}, "", "is of a job that is running");
  }
  Within("state", [&] {
    of.state.Import(record.state);
    CheckLesson(of.state);
  });
  if (!taught.emplace(of.scope(), of).second) {
    throw InputError({"", 0, "workload"}, of.scope(), "is there twice", "each workload once");
  }
}

void Fleet::State::Import(const FleetRecord::Job& record) {
  if (record.name.empty() || running.count(record.name) > 0) {
    throw InputError({"", 0, "job"}, record.name, "is no name, or there twice",
                     "a name of its own");
  }
  const FleetRecord::Learnt& learnt = record.learnt;
  const Taught own = TaughtOf(learnt.workload, learnt.facts, learnt.device);
  if (taught.count(own.scope()) == 0) {
    throw InputError({"", 0, "workload"}, own.scope(), "is not among what is taught");
  }
  Cluster start = cluster;
  start.calibration = record.start;
  auto job = std::make_shared<OnlineCalibration>(std::move(start), learnt.workload, learnt.facts,
                                                 learnt.device);
  Within("state", [&] {
    job->Import(learnt.state);
    CheckLesson(*job->state_);
  });
  running[record.name] = {std::move(job), own.scope()};
}

void Fleet::Import(const FleetRecord& record) {
  if (record.cluster != state_->cluster.name) {
    throw InputError({"", 0, "cluster"}, record.cluster, "is another", state_->cluster.name);
  }
  State imported(state_->cluster);
  const auto import_each = [&](const auto& records, const std::string& name) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      Within(name + "[" + std::to_string(i) + "]", [&] { imported.Import(records[i]); });
    }
  };
  import_each(record.taught, "taught");
  import_each(record.jobs, "jobs");
  *state_ = std::move(imported);
}

}  // namespace stepcast
