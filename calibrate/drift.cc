#include "calibrate/drift.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "calibrate/group_rows.h"
#include "calibrate/host_findings.h"
#include "calibrate/parameter_layout.h"
#include "calibrate/text.h"
#include "data/plan/fields.h"
#include "data/record/host_texts.h"
#include "data/values/placement.h"
#include "data/values/workload_scope.h"
#include "model/statistics/f_distribution.h"
#include "model/statistics/normal.h"
#include "model/statistics/scatter.h"
#include "model/step/answer.h"
#include "model/step/belief.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/parameter_specs.h"
#include "model/step/plan_key.h"
#include "model/step/workload_counts.h"

namespace stepcast {
namespace {

constexpr double kWinsor = 3;      // standard deviations that a run counts for at most, in Q
constexpr double kMostOfARun = 6;  // of the fall of L that significance is judged by
constexpr double kTold = 6;        // less of a difference in L does not tell explanations apart
constexpr double kLevel = 0.01;    // of false alarms, of each of the two tests
constexpr double kLeastZ = 3;
// Of (Q/n)^(1/2): a calibration whose intervals are nearly right still holds.
constexpr double kLeastScatter = 1.25;
constexpr double kLeastMore = 0.01;   // share of the runs that a change must explain besides
constexpr double kLeastEffect = 0.5;  // of s, on some run: less would not change a forecast much
constexpr double kMet = 2;            // standard deviations
// Calibrated runs as degrees of freedom of s^2: the quantile of nine tenths knows it with a
// relative variance of 3.13 / n, where a normal law's n squares have 2 / n.
constexpr double kScatterEfficiency = 0.64;
// Information about ln(value): a value known no better than to a factor of e^100 is not known.
constexpr double kLeastInformation = 1e-4;
// Share of the calibrated runs that stay free, however many parameters were fitted: priors decide
// some of these.
constexpr double kLeastFree = 0.25;

// The search on a grid takes so many plans at most: it need only find the neighbourhood, and the
// best explanations are then made exact on all of them.
constexpr std::size_t kSearchPlans = 200;
constexpr std::size_t kFinalists = 8;
constexpr double kGrid[] = {0.1, 0.25, 0.5, 0.9, 1.4, 2.0, 2.8, 3.8};
constexpr int kGaussNewtonSteps = 8;

// One parameter of all that the new runs depend on.
struct Variable {
  std::string scope;
  const ParameterSpec* spec = nullptr;
  double log_value = 0;         // ln(SI value), as calibrated
  std::optional<int> estimate;  // index in the calibration; none where it is a prior or transferred
};

struct PlanState {
  PlanAnswer answer;
  // The variables that the plan's link is, and what holds back the compute of its hosts.
  int link = kLinkBandwidth;
  std::optional<int> slowdown;
};

// Runs that the model does not tell apart.
struct CheckedPlan {
  PlanModel model;
  int workload = 0;  // index of the first of its parameters
  const Belief* belief = nullptr;
  std::vector<int> links;         // indices of the links that its named hosts have
  std::vector<int> slowdowns;     // and of their compute
  double scatter = 0;             // s
  double discrepancy = 0;         // (D^2 + J^2)^(1/2)
  std::vector<double> log_steps;  // ln(s), as measured

  void SetScatter(double fitted, const PlanState& state) {
    scatter = fitted * std::max(kLeastStepScatter,
                                belief->ScatterOf(model.facts(), state.answer.sync_share));
  }
};

// A change that is tried: of one parameter, or of several that move together.
struct ShiftCandidate {
  std::string scope;
  const ParameterSpec* spec = nullptr;
  double log_value = 0;                       // ln(SI value)
  std::vector<std::pair<int, double>> terms;  // (variable, how it moves with ln(value))
  // The most that it can have become: a link is no faster than its port.
  double log_high = 0;

  ShiftCandidate(std::string of, const ParameterSpec& which, double at)
      : scope(std::move(of)), spec(&which), log_value(at), log_high(which.log_high()) {}
};

// How readily a parameter changes of itself: of explanations that the runs do not tell apart, those
// of a lower number are named first. Cables, ports and neighbours change what a link carries, and
// heat or a neighbour what a device computes; drivers, code and settings come next, then the buses
// of a host. The rest are shares and growths of the formula, which hardware has no part of.
int Rarity(const ParameterSpec& spec) {
  static constexpr std::string_view kHardware[] = {"link_bandwidth", "device_speed",
                                                   "compute_slowdown"};
  static constexpr std::string_view kBuses[] = {"host_bandwidth", "device_latency"};
  static constexpr std::string_view kFormula[] = {
      "host_sharing", "hop_spread",         "host_contention", "overlap_share",
      "rpc_rounds",   "overlap_contention", "loss_timeout"};
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), spec.name) != std::end(names);
  };
  return among(kHardware) ? 0 : among(kBuses) ? 2 : among(kFormula) ? 3 : 1;
}

// A candidate, and where the search for its change has led.
struct Found {
  const ShiftCandidate* candidate = nullptr;
  double shift = 0;
  double gain = 0;  // in the search
};

// What is said of it on all runs.
struct Explanation {
  ParameterDrift drift;
  bool significant = false;
  double distance = 0;  // Q
  int rarity = 0;
};

using States = std::vector<PlanState>;

// Some plans, the variables that they depend on, and a root of those variables' covariance.
struct Subset {
  std::vector<int> plans;
  std::vector<int> column;  // by variable; -1 where no plan depends on it
  Eigen::MatrixXd root;     // C = root root'
};

struct Fit {
  double cost = std::numeric_limits<double>::infinity();  // L
  std::vector<double> costs;  // of each run, in the order of the subset's plans and their runs
  double shared_cost = 0;     // of u and d
  double distance = 0;        // Q
  int met = 0;
  Eigen::VectorXd deviations;  // d, by column of the subset
  // Gauss-Newton step of the candidate, and its information g' V^-1 g.
  double step = 0;
  double information = 0;
  // Where it is a single parameter: what the runs say of d, the change apart, and the variance of
  // the value after both.
  double known = 0;
  double value_variance = 0;
};

// The runs of a subset's plans where the formula is linear: what is left of each is e + u + g' z,
// with d = root z and z ~ N(0, 1).
struct LinearRuns {
  struct OfPlan {
    double variance = 0;         // of e
    double shared_variance = 0;  // of u
    std::size_t begin = 0;       // of its runs
    std::size_t end = 0;
  };
  std::vector<OfPlan> plans;
  std::vector<double> residuals;  // of each run
  Eigen::MatrixXd gradient;       // g, by plan
  Eigen::VectorXd direction;      // of the candidate, by plan
};

// The least L of such runs, by weights that follow from how far each is off. `runs` outlives it.
class ReweightedFit {
 public:
  explicit ReweightedFit(const LinearRuns& runs)
      : runs_(runs),
        count_(runs.gradient.rows()),
        size_(runs.gradient.cols()),
        precision_(count_),
        mean_(count_),
        left_(Eigen::VectorXd::Zero(count_)),
        solution_(Eigen::VectorXd::Zero(size_)) {
    FirstWeights();
  }

  void Minimise(Fit* fit);
  // What the candidate would add to the fit: its step, its information, and, where it is the one
  // parameter of `column`, what is known of its value.
  void AddCandidate(const Eigen::MatrixXd& root, std::optional<int> column, Fit* fit) const;

  const Eigen::VectorXd& solution() const { return solution_; }  // z

 private:
  void FirstWeights();
  void WeighPlans();
  void SolveWeighted();
  bool Reweigh(Fit* fit);

  const LinearRuns& runs_;
  const Eigen::Index count_;     // of plans
  const Eigen::Index size_;      // of z
  std::vector<double> weights_;  // of each run
  Eigen::VectorXd precision_;    // of each plan's mean
  Eigen::VectorXd mean_;         // of each plan's residuals
  Eigen::VectorXd left_;         // of it, by z
  Eigen::VectorXd solution_;
  Eigen::MatrixXd scaled_;  // gradient, by what is known
  Eigen::MatrixXd normal_;  // equations of z
  Eigen::LLT<Eigen::MatrixXd> solver_;
};

class DriftCheck {
 public:
  explicit DriftCheck(const DriftProblem& problem) : problem_(problem) {
    if (!problem.cluster.calibration) {
      throw InputError({"", 0, "calibration"}, problem.cluster.name, "has no calibration",
                       "a cluster file that stepcast calibrate has written");
    }
    AddVariables();
    MakeCovariance();
    AddPlans();
    MakeCandidates();
  }

  DriftReport Check();

 private:
  const Calibration& calibration() const { return *problem_.cluster.calibration; }

  // A workload on a device: what is believed of it, and where its variables begin.
  struct Checked {
    const Workload* workload = nullptr;
    std::string device;
    std::string scope;
    Belief belief;
    std::shared_ptr<const WorkloadCounts> counts;
    int offset = 0;
    BucketsOfPlans buckets = {};
  };

  void AddVariables();
  void AddHostVariables(const Belief& belief);
  void MakeCovariance();
  void AddPlans();
  void MakeCandidates();
  void CountStopped(const Run& run, CheckedPlan* plan);
  void AddAllLinks();
  void AddSlowHosts();
  double RoomToPort(int link) const;
  bool Matters(const ShiftCandidate& candidate) const {
    return std::any_of(plans_.begin(), plans_.end(),
                       [&](const CheckedPlan& plan) { return DependsOn(plan, candidate); });
  }

  Checked& Of(const Run& run) { return checked_[index_.at(ScopeOf(run, problem_.workloads))]; }
  PlanState Answer(const CheckedPlan& plan, const std::vector<double>& values) const;
  bool DependsOn(const CheckedPlan& plan, int variable) const;
  bool DependsOn(const CheckedPlan& plan, const ShiftCandidate& candidate) const;
  template <class F>
  void ForEachDerivative(const CheckedPlan& plan, const PlanState& state, F&& take) const;

  double Moved(int variable) const {  // from its calibrated value, to where it is linearised
    const auto at = static_cast<std::size_t>(variable);
    return values_[at] - variables_[at].log_value;
  }
  std::vector<double> Shifted(const ShiftCandidate& candidate, double shift) const {
    std::vector<double> values = values_;
    for (const auto& [variable, by] : candidate.terms) {
      values[static_cast<std::size_t>(variable)] += by * shift;
    }
    return values;
  }
  double Moved(const ShiftCandidate& candidate) const {
    return candidate.terms.size() == 1 ? Moved(candidate.terms.front().first) : 0;
  }
  void Linearise();

  Subset MakeSubset(std::vector<int> plans) const;
  Subset SearchSubset(const ShiftCandidate& candidate) const;
  LinearRuns MakeLinear(const Subset& subset, const States& states,
                        const ShiftCandidate* candidate) const;
  Fit Solve(const Subset& subset, const States& states, const ShiftCandidate* candidate) const;
  Fit SolveShifted(const Subset& subset, const ShiftCandidate& candidate, double shift,
                   States* states) const;
  // From `start`, towards the least cost; `fit` is that at the returned shift.
  double Refine(const Subset& subset, const ShiftCandidate& candidate, double start, int steps,
                Fit* fit) const;
  double Search(const Subset& subset, const ShiftCandidate& candidate) const;
  double Clamp(const ShiftCandidate& candidate, double shift) const;
  ParameterDrift Describe(const ShiftCandidate& candidate, double shift, const Fit& fit) const;
  double LargestEffect(const ShiftCandidate& candidate, double shift) const;
  double TailProbability(double distance) const;
  // Of many plans, the most promising candidates by a sample.
  bool is_sampled() const { return plans_.size() > kSearchPlans; }
  std::vector<Found> SearchCandidates(const Subset& all) const;
  // The nearest to the runs first.
  std::vector<Explanation> Explain(const std::vector<Found>& found, const Subset& all) const;
  // The likeliest and its alternatives, where one is significant.
  void TakeDrifts(std::vector<Explanation> explanations, DriftReport* report) const;

  const DriftProblem& problem_;
  std::vector<Checked> checked_;
  std::map<std::string, std::size_t> index_;  // in checked_, by scope
  std::vector<Variable> variables_;
  std::map<int, int> host_variable_;  // by position in the beliefs, which share their hosts
  std::map<std::string, int> slowdown_variable_;  // by host, of all that the runs name
  Eigen::MatrixXd covariance_;
  std::vector<CheckedPlan> plans_;
  std::vector<ShiftCandidate> candidates_;
  std::vector<int> shuffled_;
  States calibrated_;  // by plan
  double repeat_share_ = 1;
  double free_runs_ = 0;        // N - q
  double fitted_ = 1;           // (N / (N - q))^(1/2)
  std::vector<double> values_;  // ln(SI value) by variable, where the formula is linearised
  int runs_ = 0;
  int stopped_ = 0;
  int overdue_ = 0;
  Fit before_;  // of all plans, as calibrated
};

void DriftCheck::AddVariables() {
  for (const Run& run : problem_.runs) {
    const auto workload = problem_.workloads.find(run.workload);
    if (workload == problem_.workloads.end()) {
      throw InputError({run.place.file, run.place.line, "workload"}, run.workload,
                       "is not a known workload");
    }
    const std::string scope = ScopeOf(run, problem_.workloads);
    if (index_.count(scope) > 0) continue;
    const std::optional<Device> facts = DataSheetOf(problem_.devices, run.device);
    index_[scope] = checked_.size();
    checked_.push_back({&workload->second, run.device, scope,
                        Belief(problem_.cluster, workload->second, facts, run.device),
                        std::make_shared<const WorkloadCounts>(workload->second, facts)});
  }
  if (checked_.empty()) return;
  const Belief& first = checked_.front().belief;
  for (int i = 0; i < kClusterParameterCount; ++i) {
    const ParameterSpec& spec = kClusterParameterSpecs[static_cast<std::size_t>(i)];
    variables_.push_back(
        {kClusterScope, &spec, first.log_value(i), calibration().Find(kClusterScope, spec.name)});
  }
  AddHostVariables(first);
  for (Checked& checked : checked_) {
    checked.offset = static_cast<int>(variables_.size());
    for (int i = 0; i < kWorkloadParameterCount; ++i) {
      const ParameterSpec& spec = kWorkloadParameterSpecs[static_cast<std::size_t>(i)];
      variables_.push_back({checked.scope, &spec,
                            checked.belief.log_value(Belief::kWorkloadOffset + i),
                            calibration().Find(checked.scope, spec.name)});
    }
  }
}

void DriftCheck::AddHostVariables(const Belief& belief) {
  std::map<int, std::string> scopes;  // by position
  for (const auto& [host, position] : belief.host_links()) {
    std::string& scope = scopes[position];
    scope += (scope.empty() ? kHostsScopePrefix : "+") + host;
  }
  for (const auto& [position, scope] : scopes) {
    const ParameterSpec& spec = kClusterParameterSpecs[kLinkBandwidth];
    host_variable_[position] = static_cast<int>(variables_.size());
    variables_.push_back(
        {scope, &spec, belief.log_value(position), calibration().Find(scope, spec.name)});
  }
  // A host without a factor computes exactly like the others, as calibrated.
  for (const Run& run : problem_.runs) {
    for (const std::string& host : run.plan.hosts) {
      if (slowdown_variable_.count(host) > 0) continue;
      const std::optional<int> position = belief.SlowdownOf(host);
      const auto known = position ? host_variable_.find(*position) : host_variable_.end();
      if (known != host_variable_.end()) {
        slowdown_variable_[host] = known->second;
        continue;
      }
      const auto variable = static_cast<int>(variables_.size());
      slowdown_variable_[host] = variable;
      const std::string scope = kHostsScopePrefix + (position ? belief.HostsOf(*position) : host);
      const double log_value = position ? belief.log_value(*position) : 0;
      if (position) host_variable_[*position] = variable;
      variables_.push_back({scope, &kComputeSlowdownSpec, log_value,
                            calibration().Find(scope, kComputeSlowdownSpec.name)});
    }
  }
}

void DriftCheck::MakeCovariance() {
  const auto size = static_cast<Eigen::Index>(variables_.size());
  covariance_ = Eigen::MatrixXd::Zero(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j < size; ++j) {
      const auto& a = variables_[static_cast<std::size_t>(i)].estimate;
      const auto& b = variables_[static_cast<std::size_t>(j)].estimate;
      if (a && b) covariance_(i, j) = calibration().log_covariance(*a, *b);
    }
  }
  // A value that was not fitted is as uncertain as the beliefs say, and depends on no fitted one.
  const auto take = [&](const Belief& belief, const std::vector<std::pair<int, int>>& where) {
    for (const auto& [i, from] : where) {
      for (const auto& [j, to] : where) {
        if (variables_[static_cast<std::size_t>(i)].estimate) continue;
        if (variables_[static_cast<std::size_t>(j)].estimate) continue;
        covariance_(i, j) = belief.log_covariance()(from, to);
      }
    }
  };
  if (checked_.empty()) return;
  std::vector<std::pair<int, int>> shared;
  for (int i = 0; i < kClusterParameterCount; ++i) shared.emplace_back(i, i);
  for (const auto& [position, variable] : host_variable_) shared.emplace_back(variable, position);
  take(checked_.front().belief, shared);
  for (const Checked& checked : checked_) {
    std::vector<std::pair<int, int>> own;
    for (int i = 0; i < kWorkloadParameterCount; ++i) {
      own.emplace_back(checked.offset + i, Belief::kWorkloadOffset + i);
    }
    take(checked.belief, own);
  }
}

void DriftCheck::AddPlans() {
  for (const Variable& variable : variables_) values_.push_back(variable.log_value);
  if (calibration().repeat_log_sd && calibration().residual_log_sd > 0) {
    const double ratio = *calibration().repeat_log_sd / calibration().residual_log_sd;
    repeat_share_ = std::clamp(ratio * ratio, 0.1, 1.0);
  } else {
    repeat_share_ = 1 - kSharedByRepeats;
  }
  double calibrated = kScatterRuns;
  for (const Calibration::Source& source : calibration().sources) calibrated += source.runs;
  free_runs_ = calibrated;
  for (const ParameterEstimate& e : calibration().parameters) {
    if (!(e.prior_log_sd > 0)) continue;
    const double kept = e.log_sd / e.prior_log_sd;
    free_runs_ -= std::max(0.0, 1 - kept * kept);
  }
  free_runs_ = std::max(free_runs_, kLeastFree * calibrated);
  fitted_ = std::sqrt(calibrated / free_runs_);
  std::map<PlanKey, std::size_t> known;
  for (const Run& run : problem_.runs) {
    Checked& checked = Of(run);
    const auto buckets = checked.buckets.Of(*checked.workload, run.plan);
    CheckedPlan plan;
    plan.workload = checked.offset;
    for (const std::string& host : run.plan.hosts) {
      const int position = checked.belief.SlowestLink({host});
      plan.links.push_back(position == kLinkBandwidth ? int{kLinkBandwidth}
                                                      : host_variable_.at(position));
    }
    for (const std::string& host : run.plan.hosts_at_own_speed()) {
      plan.slowdowns.push_back(slowdown_variable_.at(host));
    }
    for (std::vector<int>* of_hosts : {&plan.links, &plan.slowdowns}) {
      std::sort(of_hosts->begin(), of_hosts->end());
      of_hosts->erase(std::unique(of_hosts->begin(), of_hosts->end()), of_hosts->end());
    }
    const CalibratedRange& range = calibration().range;
    plan.discrepancy = Discrepancy(run.plan, range, range.BatchesOf(checked.scope));
    plan.belief = &checked.belief;

    const auto set_model = [&] {
      try {
        StepFacts facts =
            MakeStepFacts(problem_.cluster, run.plan, *checked.workload, buckets,
                          MemoryBandwidthOf(problem_.devices, run.device), checked.counts.get());
        if (TraitsOf(facts.strategy).to_be_chosen) facts.strategy = Strategy::kAllreduce;
        plan.model = PlanModel(std::move(facts));
      } catch (const InputError& e) {
        throw InRow(e, run.place);
      }
    };
    if (run.stopped) {
      set_model();
      CountStopped(run, &plan);
      continue;
    }
    PlanKey key =
        FactsKey(problem_.cluster, run.plan, plan.links, plan.slowdowns, /*others=*/false);
    key.insert(key.begin(), plan.workload);
    const auto [it, is_new] = known.try_emplace(std::move(key), plans_.size());
    if (is_new) {
      set_model();
      const PlanState state = Answer(plan, values_);
      plans_.push_back(std::move(plan));
      CheckedPlan& added = plans_.back();
      added.SetScatter(fitted_, state);
      added.discrepancy =
          std::hypot(added.discrepancy,
                     std::sqrt(JobVariance(added.model.facts(), state.answer.log_step_gradient,
                                           OtherJobs(range, range.BatchesOf(checked.scope)))));
      calibrated_.push_back(state);
    }
    plans_[it->second].log_steps.push_back(std::log(run.step_time.in(kSeconds)));
    ++runs_;
  }
  for (const std::size_t i : ShuffledOrder(plans_.size())) {
    shuffled_.push_back(static_cast<int>(i));
  }
}

void DriftCheck::CountStopped(const Run& run, CheckedPlan* plan) {
  ++stopped_;
  const PlanState state = Answer(*plan, values_);
  plan->SetScatter(fitted_, state);
  const double beyond = std::log(run.step_time.in(kSeconds)) - state.answer.log_step;
  if (beyond > kNinetyPercent * std::hypot(plan->scatter, plan->discrepancy)) ++overdue_;
}

void DriftCheck::MakeCandidates() {
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Variable& v = variables_[i];
    if (!v.estimate) continue;  // what was never calibrated cannot have changed since
    if (v.spec == &kComputeSlowdownSpec) continue;
    ShiftCandidate candidate(v.scope, *v.spec, v.log_value);
    candidate.terms = {{static_cast<int>(i), 1.0}};
    if (v.spec == &kClusterParameterSpecs[kLinkBandwidth]) {
      candidate.log_high = v.log_value + RoomToPort(static_cast<int>(i));
    }
    if (Matters(candidate)) candidates_.push_back(std::move(candidate));
  }
  AddAllLinks();
  AddSlowHosts();
  std::map<std::string, std::vector<int>> offsets;  // by device
  for (const Checked& checked : checked_) offsets[checked.device].push_back(checked.offset);
  for (const auto& [device, of] : offsets) {
    const std::string scope = kDeviceScopePrefix + device;
    const std::optional<int> estimate = calibration().Find(scope, kDeviceSpeedSpec.name);
    if (!estimate) continue;
    ShiftCandidate candidate(
        scope, kDeviceSpeedSpec,
        std::log(calibration().parameters[static_cast<std::size_t>(*estimate)].value));
    for (const int offset : of) {
      for (const int i : {kFloorTime, kSampleTime, kUpdateTime}) {
        candidate.terms.emplace_back(offset + i, -1.0);
      }
    }
    candidates_.push_back(std::move(candidate));
  }
}

// A switch, or a neighbour on it, holds back all nodes at once: where hosts have links of their
// own, these move together, as the cluster's one does where they have none.
void DriftCheck::AddAllLinks() {
  std::set<int> links;
  for (const CheckedPlan& plan : plans_) links.insert(plan.links.begin(), plan.links.end());
  links.erase(kLinkBandwidth);
  if (links.size() < 2) return;
  double centre = 0;
  double room = std::numeric_limits<double>::infinity();
  for (const int link : links) {
    const Variable& variable = variables_[static_cast<std::size_t>(link)];
    centre += variable.log_value / static_cast<double>(links.size());
    room = std::min(room, RoomToPort(link));
  }
  ShiftCandidate candidate(kClusterScope, kClusterParameterSpecs[kLinkBandwidth], centre);
  candidate.log_high = centre + room;
  for (const int link : links) candidate.terms.emplace_back(link, 1.0);
  if (!Matters(candidate)) return;
  // Servers and hosts without links of their own have the cluster's.
  if (std::any_of(plans_.begin(), plans_.end(),
                  [&](const CheckedPlan& plan) { return DependsOn(plan, kLinkBandwidth); })) {
    candidate.terms.emplace_back(kLinkBandwidth, 1.0);
  }
  candidates_.push_back(std::move(candidate));
}

// A host that has begun to compute slower than the others: of hosts that the runs do not tell
// apart, all of them. All hosts together are the device.
void DriftCheck::AddSlowHosts() {
  const HostGroups found = GroupByLayouts(problem_.runs, [](const Run& /*run*/) { return true; });
  if (found.groups.size() < 2 && !found.some_without_hosts) return;
  for (const std::vector<std::string>& hosts : found.groups) {
    std::set<int> variables;
    for (const std::string& host : hosts) variables.insert(slowdown_variable_.at(host));
    std::set<std::string> moved(hosts.begin(), hosts.end());
    for (const auto& [host, variable] : slowdown_variable_) {
      if (variables.count(variable) > 0) moved.insert(host);
    }
    const std::string scope = kHostsScopePrefix + JoinHosts({moved.begin(), moved.end()});
    const double at = variables_[static_cast<std::size_t>(*variables.begin())].log_value;
    ShiftCandidate candidate(scope, kComputeSlowdownSpec, at);
    for (const int variable : variables) candidate.terms.emplace_back(variable, 1.0);
    const bool known = std::any_of(candidates_.begin(), candidates_.end(), [&](const auto& other) {
      return other.scope == scope && other.spec == candidate.spec;
    });
    if (!known && Matters(candidate)) candidates_.push_back(std::move(candidate));
  }
}

// By how much ln(rate) of a link may have grown, up to its port: none where it is fitted beyond it.
double DriftCheck::RoomToPort(int link) const {
  const Variable& variable = variables_[static_cast<std::size_t>(link)];
  const std::optional<DataRate<>> port = variable.scope == kClusterScope
                                             ? problem_.cluster.link.bandwidth
                                             : PortOf(problem_.cluster, variable.scope);
  if (!port) return variable.spec->log_high() - variable.log_value;
  return std::max(0.0, std::log(port->si()) - variable.log_value);
}

PlanState DriftCheck::Answer(const CheckedPlan& plan, const std::vector<double>& values) const {
  PlanState state;
  const auto link_at = [&](std::size_t i) { return static_cast<std::size_t>(plan.links[i]); };
  if (const auto slowest =
          SlowestLink(plan.links.size(), [&](std::size_t i) { return values[link_at(i)]; })) {
    state.link = plan.links[*slowest];
  }
  const double* link =
      state.link == kLinkBandwidth ? nullptr : &values[static_cast<std::size_t>(state.link)];
  const auto slowdown_at = [&](std::size_t i) {
    return static_cast<std::size_t>(plan.slowdowns[i]);
  };
  if (const auto slowest = SlowestCompute(plan.slowdowns.size(), /*others=*/false,
                                          [&](std::size_t i) { return values[slowdown_at(i)]; })) {
    state.slowdown = plan.slowdowns[*slowest];
  }
  const double* slowdown =
      state.slowdown ? &values[static_cast<std::size_t>(*state.slowdown)] : nullptr;
  state.answer = plan.model.Answer(
      PlanParameters::FromLogs(values.data(), values.data() + plan.workload, link, slowdown),
      Derivatives::kAll);
  return state;
}

bool DriftCheck::DependsOn(const CheckedPlan& plan, int variable) const {
  // The links are in ascending order, the cluster's own first.
  const bool own_link = !plan.links.empty() && plan.links.front() != kLinkBandwidth;
  if (variable < kClusterParameterCount) {
    return MattersTo(plan.model.facts(), own_link, variable);
  }
  if (variable >= plan.workload && variable < plan.workload + kWorkloadParameterCount) {
    return MattersTo(plan.model.facts(), own_link, kWorkloadColumn + variable - plan.workload);
  }
  if (std::binary_search(plan.slowdowns.begin(), plan.slowdowns.end(), variable)) {
    return MattersTo(plan.model.facts(), own_link, kSlowdownColumn);
  }
  return std::binary_search(plan.links.begin(), plan.links.end(), variable) &&
         MattersTo(plan.model.facts(), /*own_link=*/true, kLinkColumn);
}

bool DriftCheck::DependsOn(const CheckedPlan& plan, const ShiftCandidate& candidate) const {
  return std::any_of(candidate.terms.begin(), candidate.terms.end(),
                     [&](const auto& term) { return DependsOn(plan, term.first); });
}

// Calls take(variable, d log_step / d ln(value)).
template <class F>
void DriftCheck::ForEachDerivative(const CheckedPlan& plan, const PlanState& state,
                                   F&& take) const {
  const PlanGradient& g = state.answer.log_step_gradient;
  for (int i = 0; i < kClusterParameterCount; ++i) take(i, g[static_cast<std::size_t>(i)]);
  for (int i = 0; i < kWorkloadParameterCount; ++i) {
    take(plan.workload + i, g[static_cast<std::size_t>(kClusterParameterCount + i)]);
  }
  if (state.link != kLinkBandwidth) take(state.link, g[kLinkColumn]);
  if (state.slowdown) take(*state.slowdown, g[kSlowdownColumn]);
}

Subset DriftCheck::MakeSubset(std::vector<int> plans) const {
  Subset subset;
  subset.plans = std::move(plans);
  subset.column.assign(variables_.size(), -1);
  std::vector<int> used;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const auto variable = static_cast<int>(v);
    if (!(covariance_(variable, variable) > 0)) continue;
    const bool matters = std::any_of(subset.plans.begin(), subset.plans.end(), [&](int p) {
      return DependsOn(plans_[static_cast<std::size_t>(p)], variable);
    });
    if (!matters) continue;
    subset.column[v] = static_cast<int>(used.size());
    used.push_back(variable);
  }
  if (used.empty()) return subset;
  const Eigen::MatrixXd covariance = covariance_(used, used);
  // With pivots, because what was stated by hand, or is as certain as something else, has no rank.
  const Eigen::LDLT<Eigen::MatrixXd> factor(covariance);
  const Eigen::VectorXd pivots = factor.vectorD().cwiseMax(0.0).cwiseSqrt();
  const Eigen::MatrixXd lower = factor.matrixL();
  subset.root = factor.transpositionsP().transpose() * (lower * pivots.asDiagonal());
  return subset;
}

// Most of the sample depends on the candidate; the rest tells what else there is.
Subset DriftCheck::SearchSubset(const ShiftCandidate& candidate) const {
  constexpr std::size_t kOthers = kSearchPlans / 4;
  std::vector<int> chosen;
  std::size_t own = 0;
  std::size_t others = 0;
  for (const int p : shuffled_) {
    const bool depends = DependsOn(plans_[static_cast<std::size_t>(p)], candidate);
    std::size_t& count = depends ? own : others;
    if (count >= (depends ? kSearchPlans - kOthers : kOthers)) continue;
    ++count;
    chosen.push_back(p);
  }
  return MakeSubset(std::move(chosen));
}

LinearRuns DriftCheck::MakeLinear(const Subset& subset, const States& states,
                                  const ShiftCandidate* candidate) const {
  LinearRuns runs;
  const auto count = static_cast<Eigen::Index>(subset.plans.size());
  runs.plans.resize(subset.plans.size());
  runs.gradient = Eigen::MatrixXd::Zero(count, subset.root.cols());
  runs.direction = Eigen::VectorXd::Zero(count);
  for (std::size_t k = 0; k < subset.plans.size(); ++k) {
    const auto p = static_cast<std::size_t>(subset.plans[k]);
    const CheckedPlan& plan = plans_[p];
    const PlanState& state = states[p];
    const auto at = static_cast<Eigen::Index>(k);
    double moved_by = 0;
    ForEachDerivative(plan, state, [&](int variable, double derivative) {
      if (derivative == 0) return;
      moved_by += derivative * Moved(variable);
      const int column = subset.column[static_cast<std::size_t>(variable)];
      if (column >= 0) runs.gradient.row(at) += derivative * subset.root.row(column);
      if (candidate == nullptr) return;
      for (const auto& [term, by] : candidate->terms) {
        if (term == variable) runs.direction[at] += by * derivative;
      }
    });
    const double s = plan.scatter;
    LinearRuns::OfPlan& row = runs.plans[k];
    row.variance = repeat_share_ * s * s;
    row.shared_variance = (1 - repeat_share_) * s * s + plan.discrepancy * plan.discrepancy;
    row.begin = runs.residuals.size();
    for (const double log_step : plan.log_steps) {
      runs.residuals.push_back(log_step - state.answer.log_step + moved_by);
    }
    row.end = runs.residuals.size();
  }
  return runs;
}

// As far off as each run is where nothing deviates.
void ReweightedFit::FirstWeights() {
  weights_.resize(runs_.residuals.size());
  for (std::size_t k = 0; k < runs_.plans.size(); ++k) {
    const LinearRuns::OfPlan& plan = runs_.plans[k];
    const double variance = plan.variance + plan.shared_variance +
                            runs_.gradient.row(static_cast<Eigen::Index>(k)).squaredNorm();
    for (std::size_t i = plan.begin; i < plan.end; ++i) {
      weights_[i] = TailWeight(runs_.residuals[i] * runs_.residuals[i] / variance);
    }
  }
}

// The weighted mean of each plan's residuals, and how well it is known.
void ReweightedFit::WeighPlans() {
  for (std::size_t k = 0; k < runs_.plans.size(); ++k) {
    const LinearRuns::OfPlan& plan = runs_.plans[k];
    double weight_sum = 0;
    double residual_sum = 0;
    for (std::size_t i = plan.begin; i < plan.end; ++i) {
      weight_sum += weights_[i];
      residual_sum += weights_[i] * runs_.residuals[i];
    }
    precision_[static_cast<Eigen::Index>(k)] =
        1 / (plan.variance / weight_sum + plan.shared_variance);
    mean_[static_cast<Eigen::Index>(k)] = residual_sum / weight_sum;
  }
}

// The z that meets those means best.
void ReweightedFit::SolveWeighted() {
  if (size_ > 0) {
    scaled_ = precision_.cwiseSqrt().asDiagonal() * runs_.gradient;
    normal_ = Eigen::MatrixXd::Identity(size_, size_);
    normal_.selfadjointView<Eigen::Lower>().rankUpdate(scaled_.transpose());
    solver_.compute(normal_.selfadjointView<Eigen::Lower>());
    solution_ = solver_.solve(runs_.gradient.transpose() * precision_.cwiseProduct(mean_));
  }
  left_ = mean_;
  if (size_ > 0) left_ -= runs_.gradient * solution_;
}

// What the fit costs, and the weights by how far off each run is now. Whether the cost has settled.
bool ReweightedFit::Reweigh(Fit* fit) {
  constexpr double kSettled = 1e-5;
  double shared = solution_.squaredNorm();
  double distance = shared;
  double cost = shared;
  int met = 0;
  for (std::size_t k = 0; k < runs_.plans.size(); ++k) {
    const LinearRuns::OfPlan& plan = runs_.plans[k];
    const auto at = static_cast<Eigen::Index>(k);
    const double fitted = mean_[at] - left_[at];
    const double u = plan.shared_variance * precision_[at] * left_[at];
    const double u_cost = plan.shared_variance > 0 ? u * u / plan.shared_variance : 0;
    shared += u_cost;
    distance += u_cost;
    cost += u_cost;
    for (std::size_t i = plan.begin; i < plan.end; ++i) {
      const double e = runs_.residuals[i] - fitted - u;
      const double z2 = e * e / plan.variance;
      weights_[i] = TailWeight(z2);
      fit->costs[i] = (kTailDegrees + 1) * std::log1p(z2 / kTailDegrees);
      cost += fit->costs[i];
      distance += std::min(z2, kWinsor * kWinsor);
      const double total = runs_.residuals[i] - fitted;
      if (total * total <= kMet * kMet * (plan.variance + plan.shared_variance)) ++met;
    }
  }
  const bool settled = std::abs(fit->cost - cost) < kSettled * (1 + cost);
  fit->cost = cost;
  fit->shared_cost = shared;
  fit->distance = distance;
  fit->met = met;
  return settled;
}

void ReweightedFit::Minimise(Fit* fit) {
  constexpr int kRounds = 30;
  fit->costs.resize(runs_.residuals.size());
  for (int round = 0; round < kRounds; ++round) {
    WeighPlans();
    SolveWeighted();
    if (Reweigh(fit)) break;
  }
}

void ReweightedFit::AddCandidate(const Eigen::MatrixXd& root, std::optional<int> column,
                                 Fit* fit) const {
  const Eigen::VectorXd weighted = precision_.cwiseProduct(runs_.direction);
  fit->information = weighted.dot(runs_.direction);
  Eigen::VectorXd absorbed = Eigen::VectorXd::Zero(size_);
  if (size_ > 0) {
    const Eigen::VectorXd seen = runs_.gradient.transpose() * weighted;
    absorbed = solver_.solve(seen);
    fit->information -= seen.dot(absorbed);
  }
  fit->information = std::max(fit->information, kLeastInformation);
  fit->step = weighted.dot(left_) / fit->information;
  fit->value_variance = 1 / fit->information;
  if (!column) return;
  const Eigen::VectorXd own = root.row(*column);
  fit->known = fit->deviations[*column];
  const double kept = 1 - own.dot(absorbed);
  fit->value_variance = kept * kept / fit->information + own.dot(solver_.solve(own));
}

Fit DriftCheck::Solve(const Subset& subset, const States& states,
                      const ShiftCandidate* candidate) const {
  const LinearRuns runs = MakeLinear(subset, states, candidate);
  ReweightedFit solver(runs);
  Fit fit;
  solver.Minimise(&fit);
  fit.deviations = subset.root * solver.solution();
  if (candidate == nullptr) return fit;
  const int column = subset.column[static_cast<std::size_t>(candidate->terms.front().first)];
  const bool is_one_known = candidate->terms.size() == 1 && column >= 0;
  solver.AddCandidate(subset.root, is_one_known ? std::optional(column) : std::nullopt, &fit);
  return fit;
}

Fit DriftCheck::SolveShifted(const Subset& subset, const ShiftCandidate& candidate, double shift,
                             States* states) const {
  const std::vector<double> values = Shifted(candidate, shift);
  for (const int p : subset.plans) {
    const auto at = static_cast<std::size_t>(p);
    if (DependsOn(plans_[at], candidate)) (*states)[at] = Answer(plans_[at], values);
  }
  return Solve(subset, *states, &candidate);
}

// Keeps the values of all that moves within what is plausible at all.
double DriftCheck::Clamp(const ShiftCandidate& candidate, double shift) const {
  const double at = candidate.log_value + Moved(candidate);
  const double low = candidate.spec->log_low() - at;
  return std::clamp(shift, low, std::max(low, candidate.log_high - at));
}

// Moves what was never calibrated, and is hardly known, to where the new runs have it: over the
// width of such beliefs the formula is no longer linear. What was calibrated stays, because it
// would be drawn to where it explains what something else did.
void DriftCheck::Linearise() {
  constexpr double kLooseSd = 0.5;
  constexpr double kLongest = 1;
  constexpr double kSettled = 1e-3;
  constexpr int kRounds = 30;
  std::vector<int> sample = shuffled_;
  sample.resize(std::min(sample.size(), 2 * kSearchPlans));
  const Subset subset = MakeSubset(std::move(sample));
  States states = calibrated_;
  double longest = kLongest;
  for (int round = 0; round < kRounds; ++round, longest *= 0.9) {
    const Fit fit = Solve(subset, states, nullptr);
    double most = 0;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      const auto variable = static_cast<int>(v);
      if (subset.column[v] < 0 || variables_[v].estimate) continue;
      if (covariance_(variable, variable) < kLooseSd * kLooseSd) continue;
      const ParameterSpec& spec = *variables_[v].spec;
      const double to = std::clamp(variables_[v].log_value + fit.deviations[subset.column[v]],
                                   spec.log_low(), spec.log_high());
      const double step = std::clamp(to - values_[v], -longest, longest);
      values_[v] += step;
      most = std::max(most, std::abs(step));
    }
    if (most == 0) break;
    for (const int p : subset.plans) {
      const auto at = static_cast<std::size_t>(p);
      states[at] = Answer(plans_[at], values_);
      plans_[at].SetScatter(fitted_, states[at]);
    }
    if (most < kSettled) break;
  }
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    calibrated_[p] = Answer(plans_[p], values_);
    plans_[p].SetScatter(fitted_, calibrated_[p]);
  }
}

double DriftCheck::Refine(const Subset& subset, const ShiftCandidate& candidate, double start,
                          int steps, Fit* fit) const {
  constexpr int kHalvings = 5;
  constexpr double kLongest = 0.7;
  constexpr double kShort = 1e-4;
  States states = calibrated_;
  double shift = start;
  *fit = SolveShifted(subset, candidate, shift, &states);
  for (int i = 0; i < steps; ++i) {
    double step = std::clamp(fit->step, -kLongest, kLongest);
    bool better = false;
    for (int halving = 0; halving < kHalvings && !better; ++halving, step *= 0.5) {
      const double next = Clamp(candidate, shift + step);
      if (std::abs(next - shift) < kShort) break;
      Fit tried = SolveShifted(subset, candidate, next, &states);
      if (tried.cost >= fit->cost) continue;
      better = true;
      shift = next;
      *fit = std::move(tried);
    }
    if (!better) break;
  }
  return shift;
}

double DriftCheck::Search(const Subset& subset, const ShiftCandidate& candidate) const {
  // Shifts of so nearly one cost are not told apart, and the smallest is meant.
  constexpr double kEqual = 0.1;
  States states = calibrated_;
  double best = 0;
  double least = SolveShifted(subset, candidate, 0, &states).cost;
  for (const double size : kGrid) {
    for (const double shift : {Clamp(candidate, size), Clamp(candidate, -size)}) {
      const double cost = SolveShifted(subset, candidate, shift, &states).cost;
      if (cost >= least - kEqual) continue;
      least = cost;
      best = shift;
    }
  }
  Fit fit;
  return Refine(subset, candidate, best, kGaussNewtonSteps, &fit);
}

double DriftCheck::LargestEffect(const ShiftCandidate& candidate, double shift) const {
  const std::vector<double> values = Shifted(candidate, shift);
  double largest = 0;
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    if (!DependsOn(plans_[p], candidate)) continue;
    const double moved = Answer(plans_[p], values).answer.log_step - calibrated_[p].answer.log_step;
    largest = std::max(largest, std::abs(moved) / plans_[p].scatter);
  }
  return largest;
}

ParameterDrift DriftCheck::Describe(const ShiftCandidate& candidate, double shift,
                                    const Fit& fit) const {
  ParameterDrift drift;
  drift.scope = candidate.scope;
  drift.name = candidate.spec->name;
  drift.unit = candidate.spec->unit;
  drift.before = std::exp(candidate.log_value) / candidate.spec->si_per_unit;
  const double moved = Moved(candidate);
  drift.log_shift = Clamp(candidate, shift + fit.known - moved) + moved;
  drift.now = drift.before * std::exp(drift.log_shift);
  drift.now_log_sd = std::sqrt(fit.value_variance);
  drift.log_sd = 1 / std::sqrt(fit.information);
  drift.improvement = before_.cost - fit.cost;
  drift.explained = fit.met;
  double judged = before_.shared_cost - fit.shared_cost;
  for (std::size_t i = 0; i < fit.costs.size(); ++i) {
    judged += std::min(before_.costs[i] - fit.costs[i], kMostOfARun);
  }
  drift.z = std::copysign(std::sqrt(std::max(0.0, judged)), shift);
  const std::vector<double> values = Shifted(candidate, shift);
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    if (!DependsOn(plans_[p], candidate)) continue;
    const double before = calibrated_[p].answer.log_step;
    const double now = Answer(plans_[p], values).answer.log_step;
    if (now == before) continue;
    for (const double log_step : plans_[p].log_steps) {
      ++drift.moved;
      if (std::abs(log_step - now) < std::abs(log_step - before)) ++drift.nearer;
    }
  }
  return drift;
}

double DriftCheck::TailProbability(double distance) const {
  const double n = runs_;
  return TailOfF(distance / n, n, kScatterEfficiency * free_runs_);
}

// "link_bandwidth of cluster fell from 9.4 to 4.6 Gbit/s"
std::string ChangeText(const ParameterDrift& d) {
  if (d.name == kComputeSlowdownSpec.name && d.before == 1) {
    ParameterEstimate slowdown;
    slowdown.scope = d.scope;
    slowdown.value = d.now;
    slowdown.runs = d.moved;
    slowdown.runs_nearer = d.nearer;
    return ComputeText(slowdown);
  }
  constexpr double kBound = 0.7;  // beyond a factor of two the new value is hardly known
  return d.name + " of " + d.scope + (d.log_shift < 0 ? " fell" : " rose") + " from " +
         NumberText(d.before) + " to " +
         (d.now_log_sd > kBound ? (d.log_shift < 0 ? "at most " : "at least ") : "") +
         ValueText(d.now, d.unit);
}

std::string RunsText(int runs) {
  return std::to_string(runs) + (runs == 1 ? " new run" : " new runs");
}

std::string Verdict(const DriftReport& report) {
  if (report.runs == 0) return "There are no steps to check the calibration with.";
  if (report.runs < kFewestDriftRuns) {
    return "Too few runs to tell: there " +
           (report.runs == 1 ? std::string("is 1") : "are " + std::to_string(report.runs)) +
           ", and it takes at least " + std::to_string(kFewestDriftRuns) + ".";
  }
  if (!report.stale) {
    return "The calibration still holds: " + RunsText(report.runs) + " scatter as expected.";
  }
  if (report.drifts.empty()) {
    return "The calibration is stale: " + RunsText(report.runs) + " scatter " +
           NumberText(report.scatter) + " times as far as expected, and the change of no single " +
           "parameter explains it.";
  }
  const ParameterDrift& first = report.drifts.front();
  std::string text = "The calibration is stale: " + ChangeText(first) + ", which explains " +
                     std::to_string(first.explained) + " of " + std::to_string(report.runs) +
                     " runs (" + std::to_string(report.met) + " without it)";
  std::string others;
  for (const ParameterDrift& d : report.drifts) {
    if (d.alternative) others += ", or " + ChangeText(d);
  }
  if (!others.empty()) text += others + ", which these runs do not tell from it";
  if (report.p_value_after < kLevel) {
    text += "; more must have changed, because they still scatter more than expected";
  }
  return text + ".";
}

std::vector<Found> DriftCheck::SearchCandidates(const Subset& all) const {
  std::vector<Found> found;
  for (const ShiftCandidate& candidate : candidates_) {
    if (!is_sampled()) {
      found.push_back({&candidate, Search(all, candidate), 0});
      continue;
    }
    const Subset subset = SearchSubset(candidate);
    const double before = Solve(subset, calibrated_, nullptr).cost;
    const double shift = Search(subset, candidate);
    States states = calibrated_;
    const double after = SolveShifted(subset, candidate, shift, &states).cost;
    found.push_back({&candidate, shift, before - after});
  }
  if (is_sampled()) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.gain > b.gain; });
    found.resize(std::min(found.size(), kFinalists));
  }
  return found;
}

std::vector<Explanation> DriftCheck::Explain(const std::vector<Found>& found,
                                             const Subset& all) const {
  const double tried = static_cast<double>(candidates_.size());
  const double least_z = std::max(kLeastZ, NormalQuantile(1 - kLevel / (2 * tried)));
  std::vector<Explanation> explanations;
  for (const Found& f : found) {
    Fit fit;
    const double shift = Refine(all, *f.candidate, f.shift, is_sampled() ? 3 : 0, &fit);
    Explanation explanation{Describe(*f.candidate, shift, fit), false, fit.distance,
                            Rarity(*f.candidate->spec)};
    // With thousands of runs every misfit of the formula is significant; what changed for none of
    // them is no drift that anybody would feel.
    const double more = std::max(1.0, kLeastMore * runs_);
    explanation.significant = std::abs(explanation.drift.z) >= least_z &&
                              LargestEffect(*f.candidate, shift) >= kLeastEffect &&
                              explanation.drift.explained - before_.met >= more;
    explanations.push_back(std::move(explanation));
  }
  std::stable_sort(explanations.begin(), explanations.end(),
                   [](const Explanation& a, const Explanation& b) {
                     return a.drift.improvement > b.drift.improvement;
                   });
  return explanations;
}

void DriftCheck::TakeDrifts(std::vector<Explanation> explanations, DriftReport* report) const {
  const auto best = std::find_if(explanations.begin(), explanations.end(),
                                 [](const Explanation& e) { return e.significant; });
  if (best == explanations.end()) return;
  const double most = best->drift.improvement;
  std::erase_if(explanations, [&](const Explanation& e) {
    return most - e.drift.improvement >= kTold || e.drift.log_shift == 0;
  });
  // A change that gains more without being significant does so by a run or two.
  std::stable_sort(explanations.begin(), explanations.end(),
                   [](const Explanation& a, const Explanation& b) {
                     if (a.significant != b.significant) return a.significant;
                     return a.rarity < b.rarity;
                   });
  report->p_value_after = TailProbability(explanations.front().distance);
  for (Explanation& e : explanations) {
    e.drift.alternative = &e != &explanations.front();
    report->drifts.push_back(e.drift);
  }
}

DriftReport DriftCheck::Check() {
  DriftReport report;
  report.runs = runs_;
  report.stopped = stopped_;
  report.overdue = overdue_;
  if (runs_ == 0) return report;
  std::vector<int> every;
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    every.push_back(static_cast<int>(p));
    for (const double log_step : plans_[p].log_steps) {
      report.mean_log_ratio += (log_step - calibrated_[p].answer.log_step) / runs_;
    }
  }
  Linearise();
  const Subset all = MakeSubset(std::move(every));
  before_ = Solve(all, calibrated_, nullptr);
  report.scatter = std::sqrt(before_.distance / runs_);
  report.p_value = report.p_value_after = TailProbability(before_.distance);
  report.met = before_.met;
  if (runs_ < kFewestDriftRuns) return report;

  TakeDrifts(Explain(SearchCandidates(all), all), &report);
  report.stale =
      !report.drifts.empty() || (report.p_value < kLevel && report.scatter > kLeastScatter);
  return report;
}

}  // namespace

DriftReport CheckDrift(const DriftProblem& problem) {
  DriftReport report = DriftCheck(problem).Check();
  report.verdict = Verdict(report);
  return report;
}

}  // namespace stepcast
