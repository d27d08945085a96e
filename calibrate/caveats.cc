#include "calibrate/caveats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "calibrate/host_findings.h"
#include "calibrate/text.h"
#include "data/plan/key.h"
#include "data/values/names.h"
#include "data/values/suggest.h"
#include "model/compute/fitted_curve.h"
#include "model/statistics/normal.h"
#include "model/step/parameter_specs.h"

namespace stepcast {
namespace {

// Beyond this the model does not describe the runs; public traces are met within 6 %.
constexpr double kUselessMape = 0.5;
// No cluster is so far from what is believed of its like, whatever its network.
constexpr double kAnotherUnit = 100;
constexpr double kAtBound = 1e-6;
// Share of a stated rate up to which a fitted one does not contradict it.
constexpr double kMostShare = 1.1;
// Standard deviations of its prior that a fitted value lies from it at most: beyond, it takes the
// blame for something else. Fits to public sources reach 2.9, where the board itself is a guess.
constexpr double kFarFromBelief = 3;
constexpr std::size_t kMostStrangeValues = 3;
// Times that its standard deviation lets expect by which an end of a value's interval is off where
// something else may explain the runs.
constexpr double kOfTwoMinds = 3;

void AddUnits(double prior_log_ratio, std::vector<std::string>* caveats) {
  if (std::abs(prior_log_ratio) < std::log(kAnotherUnit)) return;
  caveats->push_back("runs take " + NumberText(std::exp(prior_log_ratio)) +
                     " times as long as clusters of such devices and links do, by their median: "
                     "are their times in seconds?");
}

// What runs are of and the cluster file does not have.
void AddStrangers(const CalibrationProblem& problem, std::vector<std::string>* caveats) {
  const Cluster& cluster = problem.cluster;
  std::set<std::string> hosts;
  std::set<std::string> devices;
  PlansExtent extent;
  for (const Run& run : problem.runs) {
    hosts.insert(run.plan.hosts.begin(), run.plan.hosts.end());
    if (problem.devices.count(run.device) == 0) devices.insert(run.device);
    extent.Include(run.plan);
  }
  for (const Host& host : cluster.hosts) hosts.erase(host.name);
  if (!cluster.hosts.empty() && !hosts.empty()) {
    caveats->push_back(JoinNames(std::vector<std::string>(hosts.begin(), hosts.end())) +
                       (hosts.size() == 1 ? " is no host" : " are no hosts") + " of " +
                       cluster.name);
  }
  for (std::string& sentence : extent.Beyond(cluster)) caveats->push_back(std::move(sentence));
  const std::vector<std::string> known = {cluster.device};
  for (const std::string& device : devices) {
    const std::string meant = DidYouMean(device, known);
    if (device != cluster.device && !meant.empty()) {
      caveats->push_back(device + " has no data sheet, and is another device than " +
                         cluster.device + meant);
    }
  }
}

// Whether a value that nobody stated stands where its range ends.
bool IsAtEdge(const ParameterEstimate& p) {
  const ParameterSpec* spec = FindParameterSpec(p.name);
  if (spec == nullptr || p.decided_by == DecidedBy::kStated) return false;
  return !(p.value >= spec->low * (1 + kAtBound) && p.value <= spec->high * (1 - kAtBound));
}

void AddEdges(const Calibration& calibration, std::vector<std::string>* caveats) {
  for (const ParameterEstimate& p : calibration.parameters) {
    if (!IsAtEdge(p)) continue;
    caveats->push_back(p.name + " of " + p.scope + " stands at the edge of its range (" +
                       ValueText(p.value, p.unit) + "): these runs do not fit the formula");
  }
}

// Whether a value is what one job, host or link makes of it, however far from others: an optimizer
// that launches a kernel for each tensor, short sentences, a throttled host, a port that nobody
// stated. Public fits have such values 3 to 6 standard deviations off, and forecast well. Links and
// hosts have caveats and findings of their own.
bool IsOwn(const ParameterEstimate& p) {
  const auto is = [&](const ParameterSpec& spec) { return p.name == spec.name; };
  const auto of_workload = [&](WorkloadParameter at) { return is(kWorkloadParameterSpecs[at]); };
  return is(kClusterParameterSpecs[kLinkBandwidth]) || is(kComputeSlowdownSpec) ||
         of_workload(kFixedTime) || of_workload(kFloorTime) || of_workload(kSampleTime) ||
         of_workload(kUpdateTime);
}

// How far a value lies from what is believed of it, in standard deviations of its prior. 0 of what
// somebody stated.
double FarFromBelief(const ParameterEstimate& p) {
  if (p.decided_by == DecidedBy::kStated || p.prior_log_sd <= 0) return 0;
  return std::abs(std::log(p.value / p.prior_value)) / p.prior_log_sd;
}

// Values of the network, of a device or of how workers differ by which runs are met that contradict
// each other or the formula. Those at the edge of their range have been told.
void AddStrangeValues(const Calibration& calibration, std::vector<std::string>* caveats) {
  std::vector<const ParameterEstimate*> strange;
  for (const ParameterEstimate& p : calibration.parameters) {
    if (FarFromBelief(p) > kFarFromBelief && !IsOwn(p) && !IsAtEdge(p)) strange.push_back(&p);
  }
  if (strange.empty()) return;
  std::stable_sort(strange.begin(), strange.end(), [](const auto* p, const auto* q) {
    return FarFromBelief(*p) > FarFromBelief(*q);
  });
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(strange.size(), kMostStrangeValues); ++i) {
    const ParameterEstimate& p = *strange[i];
    named.push_back(p.name + " of " + p.scope + " is " + ValueText(p.value, p.unit) + " (prior " +
                    ValueText(p.prior_value, p.unit) + " x/ " +
                    NumberText(std::exp(p.prior_log_sd)) + ")");
  }
  const std::size_t more = strange.size() - named.size();
  caveats->push_back(
      JoinNames(named) + (more > 0 ? " and " + std::to_string(more) + " more" : "") +
      ", beyond three standard deviations of the prior: the formula, the runs or something stated "
      "is likely wrong, as where bare messages and training steps disagree about the network; do "
      "not trust forecasts beyond the fitted runs");
}

// Jobs that compute far more quickly or slowly than the device's data sheet lets expect, by the
// batch at which that is surest: a step of one batch may be met by a time that no batch changes, or
// by samples that are slow, and which of them is believed decides all other batches.
void AddStrangeCompute(const Calibration& calibration, std::vector<std::string>* caveats) {
  for (const auto& [scope, batches] : calibration.range.local_batch) {
    std::array<const ParameterEstimate*, 3> curve{};
    for (const WorkloadParameter i : {kFixedTime, kFloorTime, kSampleTime}) {
      const auto index = calibration.Find(scope, kWorkloadParameterSpecs[i].name);
      if (index) curve[i] = &calibration.parameters[static_cast<std::size_t>(*index)];
    }
    if (std::count(curve.begin(), curve.end(), nullptr) > 0) continue;
    // Of ln(time) at a batch: what it is believed to be, and how it changes with ln of each part.
    const auto time = [&](int batch, bool believed, int moved = -1, double by = 0) {
      std::array<double, 3> si{};
      for (int i = 0; i < 3; ++i) {
        const ParameterEstimate& p = *curve[i];
        si[i] = (believed ? p.prior_value : p.value) * kWorkloadParameterSpecs[i].si_per_unit *
                (i == moved ? std::exp(by) : 1);
      }
      const FittedCurve<double> of{Seconds(si[kFixedTime]), Seconds(si[kFloorTime]),
                                   DurationPerSample<>::FromSi(si[kSampleTime])};
      return std::log(of.Time(Samples(batch)).si());
    };
    double furthest = 0;
    double log_ratio = 0;
    for (const int batch : {batches.min, batches.max}) {
      constexpr double kStep = 1e-4;
      double variance = kDeviceSpeedSpec.prior_log_sd * kDeviceSpeedSpec.prior_log_sd;
      for (int i = 0; i < 3; ++i) {
        const double slope = (time(batch, true, i, kStep) - time(batch, true)) / kStep;
        variance += std::pow(slope * curve[i]->prior_log_sd, 2);
      }
      const double off = time(batch, false) - time(batch, true);
      if (std::abs(off) / std::sqrt(variance) <= furthest) continue;
      furthest = std::abs(off) / std::sqrt(variance);
      log_ratio = off;
    }
    if (furthest <= kFarFromBelief) continue;
    caveats->push_back(scope + " computes " + NumberText(std::exp(std::abs(log_ratio))) +
                       (log_ratio > 0 ? " times as long as" : " times as fast as") +
                       " the device's data sheet lets expect: is it this device, this precision, "
                       "and inputs of this size? How its time changes with the batch is a guess "
                       "until another batch is measured");
  }
}

// Whether the cluster file says the rate of these links.
bool IsStated(const Cluster& cluster, const ParameterEstimate& link) {
  if (cluster.link.bandwidth) return true;
  const std::vector<std::string> hosts = HostsOfScope(link.scope);
  return std::any_of(cluster.hosts.begin(), cluster.hosts.end(), [&](const Host& host) {
    return host.link.bandwidth && std::count(hosts.begin(), hosts.end(), host.name) > 0;
  });
}

// Fitted links that are surely not what the cluster file says of them.
void AddLinks(const CalibrationProblem& problem, const Calibration& calibration,
              std::vector<std::string>* caveats) {
  const Cluster& cluster = problem.cluster;
  const auto below = FindLinksBelowStated(calibration, cluster, problem.runs);
  bool surely_below = false;
  // A library that finds no RDMA falls back to sockets, and says so in its log alone.
  const std::string other_transport =
      cluster.link.rdma() ? "; or does TCP carry these exchanges, where the file says rdma?" : "";
  const std::string name(kClusterParameterSpecs[kLinkBandwidth].name);
  for (const ParameterEstimate& p : calibration.parameters) {
    if (p.name != name || !IsStated(cluster, p)) continue;
    const std::vector<std::string> hosts = HostsOfScope(p.scope);
    const bool slower = p.high < kLeastShareOfLine * p.prior_value;
    if (!slower && p.low <= kMostShare * p.prior_value) continue;
    if (slower && below && !hosts.empty()) {
      surely_below = true;
      continue;
    }
    caveats->push_back(name + " of " + p.scope + " is " + ValueText(p.value, p.unit) +
                       ", where the cluster file says " + NumberText(p.prior_value) +
                       (slower
                            ? ": look at the cable, the port and who else uses it" + other_transport
                            : ": no link is faster than its port"));
  }
  if (surely_below) {
    caveats->push_back(name + " of all hosts that the runs tell of is " + RateText(below->fastest) +
                       " or less, where the cluster file says " + RateText(below->stated) +
                       ": is that the rate of these links?" + other_transport);
  }
}

// Fitted links whose rate nobody states, and which are not all that may hold these runs back.
void AddUnstatedLinks(const Cluster& cluster, const Calibration& calibration,
                      std::vector<std::string>* caveats) {
  for (const ParameterEstimate& p : calibration.parameters) {
    if (p.name != kClusterParameterSpecs[kLinkBandwidth].name || IsStated(cluster, p)) continue;
    if (p.decided_by != DecidedBy::kData && p.decided_by != DecidedBy::kBoth) continue;
    const double reach = std::log(p.high / p.value) / kNinetyFivePercent;
    if (!(reach > kOfTwoMinds * p.log_sd)) continue;
    caveats->push_back(p.name + " of " + p.scope + " is " + ValueText(p.value, p.unit) +
                       " if links hold these runs back, and may be " + ValueText(p.high, p.unit) +
                       " if something else does, as what one connection carries: forecasts are "
                       "of the former, intervals of both. State the links' rate in the cluster "
                       "file, or measure it");
  }
}

// Caveats of a campaign that is one run short of telling the network.
void AddNetwork(const CalibrationProblem& problem, std::vector<std::string>* caveats) {
  if (problem.cluster.nodes < 2) return;
  // Nodes of runs between workers; those with servers have no neighbours.
  int most_nodes = 0;
  bool servers = false;
  for (const Run& run : problem.runs) {
    if (run.stopped || !TraitsOf(run.plan.strategy).exchanges) continue;
    const bool by_servers = UsesServers(run.plan.strategy);
    servers = servers || (by_servers && (run.plan.nodes() > 1 || !run.plan.server.colocated));
    if (!by_servers) most_nodes = std::max(most_nodes, run.plan.nodes());
  }
  if (most_nodes < 2 && !servers) {
    caveats->push_back("no run leaves its node: the network between nodes is a prior");
  } else if (most_nodes == 2 && problem.cluster.nodes > 2) {
    caveats->push_back(
        "no run has three nodes: all flows between two share one path, and what a node with two "
        "neighbours does is a prior");
  }
}

// All that a row says, its place aside.
std::string TextOfRow(const Run& run) {
  std::string text;
  const auto word = [&](const std::string& part) { text += part + '\0'; };
  const auto number = [&](double value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text.append(bytes, sizeof bytes);
  };
  const auto time = [&](const std::optional<Duration<>>& value) {
    number(value ? value->in(kSeconds) : -1);
  };
  word(run.workload);
  word(run.device);
  for (const int devices : run.plan.placement) number(devices);
  word("");
  for (const std::string& host : run.plan.hosts) word(host);
  for (const double part : StatedKey(run.plan)) number(part);
  time(run.step_time);
  number(run.stopped ? 1 : 0);
  time(run.exposed_sync);
  for (const auto& part : {run.spread.sd, run.spread.p50, run.spread.p95, run.spread.p99}) {
    time(part);
  }
  word(run.source);
  for (const std::string& part : run.extra) word(part);
  return text;
}

// Rows that say what an earlier row says, in every column.
void AddRepeats(const std::vector<Run>& runs, std::vector<std::string>* caveats) {
  std::unordered_multimap<std::size_t, std::size_t> seen;  // by hash
  std::size_t repeats = 0;
  std::string first;
  const auto place = [](const Run& run) {
    return run.place.file + ":" + std::to_string(run.place.line);
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string text = TextOfRow(runs[i]);
    const std::size_t hash = std::hash<std::string>()(text);
    const auto [begin, end] = seen.equal_range(hash);
    const auto same = std::find_if(
        begin, end, [&](const auto& earlier) { return TextOfRow(runs[earlier.second]) == text; });
    if (same == end) {
      seen.emplace(hash, i);
    } else if (++repeats == 1 && runs[i].place.line > 0) {
      first = place(runs[i]) + " that of " + place(runs[same->second]);
    }
  }
  if (repeats == 0) return;
  caveats->push_back((repeats == 1 ? "a row repeats" : std::to_string(repeats) + " rows repeat") +
                     " an earlier one in every column" +
                     (first.empty()  ? ""
                      : repeats == 1 ? " (" + first + ")"
                                     : " (first " + first + ")") +
                     ": what was measured once counts as often as it stands there");
}

void AddBatches(const CalibrationProblem& problem, std::vector<std::string>* caveats) {
  struct Seen {
    int runs = 0;
    std::set<int> batches;
  };
  std::map<std::string, Seen> by_workload;
  for (const Run& run : problem.runs) {
    if (run.stopped || problem.workloads.at(run.workload).communication_only) continue;
    Seen& seen = by_workload[run.workload + " on " + run.device];
    ++seen.runs;
    seen.batches.insert({run.plan.smallest_batch(), run.plan.largest_batch()});
  }
  std::vector<std::string> alone;
  int batch = 0;
  for (const auto& [name, seen] : by_workload) {
    if (seen.batches.size() > 1) continue;
    batch = *seen.batches.begin();
    alone.push_back(name);
  }
  if (alone.empty()) return;
  const bool one = alone.size() == 1;
  caveats->push_back(
      JoinNames(alone) + (one ? " was" : " were each") + " measured at one batch only" +
      (one ? " (" + std::to_string(batch) + "): how its time grows" : ": how their times grow") +
      " with the batch is a prior");
}

}  // namespace

void PlansExtent::Include(const Plan& plan) {
  nodes = std::max(nodes, plan.nodes());
  devices_per_node = std::max(devices_per_node, DevicesOnFullestNode(plan.placement));
}

std::vector<std::string> PlansExtent::Beyond(const Cluster& cluster) const {
  std::vector<std::string> sentences;
  if (nodes > cluster.nodes) {
    sentences.push_back("a run is on " + std::to_string(nodes) + " nodes, " + cluster.name +
                        " has " + std::to_string(cluster.nodes));
  }
  if (devices_per_node > cluster.devices_per_node) {
    sentences.push_back("a run has " + std::to_string(devices_per_node) + " devices on a node, " +
                        cluster.name + " has " + std::to_string(cluster.devices_per_node));
  }
  return sentences;
}

std::vector<std::string> Caveats(const CalibrationProblem& problem,
                                 const CalibrationOutcome& outcome) {
  std::vector<std::string> caveats;
  if (!outcome.IsUsable()) return caveats;
  const Calibration& calibration = *outcome.cluster.calibration;
  if (outcome.mape > kUselessMape) {
    caveats.push_back("the model does not describe these runs: it is " +
                      NumberText(100 * outcome.mape) +
                      " % off on average; look for a wrong unit, strategy, link or workload");
  }
  AddUnits(outcome.prior_log_ratio, &caveats);
  AddRepeats(problem.runs, &caveats);
  AddStrangers(problem, &caveats);
  AddEdges(calibration, &caveats);
  AddStrangeValues(calibration, &caveats);
  AddStrangeCompute(calibration, &caveats);
  AddLinks(problem, calibration, &caveats);
  AddUnstatedLinks(problem.cluster, calibration, &caveats);
  const bool any = std::any_of(
      calibration.parameters.begin(), calibration.parameters.end(), [](const ParameterEstimate& p) {
        return p.decided_by == DecidedBy::kData || p.decided_by == DecidedBy::kBoth;
      });
  if (!any) {
    caveats.emplace_back("no parameter was decided by the runs: forecasts rest on priors alone");
  }
  AddNetwork(problem, &caveats);
  AddBatches(problem, &caveats);
  return caveats;
}

}  // namespace stepcast
