#include "predictor/diagnose/hypotheses.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/record/link_path.h"
#include "model/exchange/synchronisation.h"
#include "model/network/hop.h"
#include "model/step/discrepancy.h"
#include "model/step/job_spread.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "model/step/slow_ends.h"

namespace stepcast::internal {
namespace {

using Eigen::VectorXd;

// Packets are lost everywhere; so few are no matter.
constexpr double kHarmlessLoss = 1e-6;
// Of ln(share of lost packets) from one count to the next: losses come in bursts.
constexpr double kLossLogSd = 0.5;
// What a round trip has to be, beside the stated one, to be too long.
constexpr double kTooLong = 3;
constexpr double kNumericStep = 1e-4;
// Of ln(what a network carries) where nothing is wrong with it and nobody has measured it: what
// flows reach on two public clusters, 5.4 and 18 Gbit/s, is a standard deviation to either side.
// The priors of parameters are wider: they hold what is wrong too, which here is told apart.
constexpr double kHealthyLogSd = 0.6;
// The same of what devices of one host exchange at: nine in ten within 1.2 to 12 GB/s, from devices
// that meet in the host's memory to slots of 16 lanes (those of the prior, 1.3 to 11 GB/s).
constexpr double kHealthyDeviceLinkLogSd = 0.7;
// And servers of one kind; their prior is of all libraries together.
constexpr double kHealthyServerLogSd = 0.7;

// Of ln(compute of a step / the step), where nothing but one measured step tells: what else is in
// it nobody knows.
constexpr double kReferenceLogSd = 1.0;

// Loaders work ahead: what the slower of the two pipelines leaves of the knee between them.
constexpr double kInputKnee = 8;

struct Range {
  double low;
  double high;
  double log_sd = 0;
};
constexpr Range kLinkShare{0.004, 0.7};
// From one lane of a slot, or copies through the processor, instead of 16; and PCIe instead of
// NVLink.
constexpr Range kDeviceLinkShare{0.01, 0.7};
constexpr Range kFlowShare{0.05, 0.5};
constexpr Range kRoundTrips{0.3e-3, 0.3};
constexpr Range kLosses{1e-5, kMostLoss};
constexpr Range kSlowdowns{1.15, 8, kComputeSlowdownSpec.prior_log_sd};
constexpr Range kFixedTimes{4, 200};
constexpr Range kInputTimes{0.5, 100};

// The share of packets that get lost on a path of which `stated` is known.
std::optional<double> LossUnder(const Hypothesis& hypothesis, double x,
                                std::optional<double> stated) {
  if (hypothesis.cause == Cause::kLoss) return x;
  return hypothesis.loss > stated.value_or(0) ? hypothesis.loss : stated;
}

// What the hypothesis makes of the plan itself.
Plan PlanUnder(const Hypothesis& hypothesis, Plan plan) {
  if (hypothesis.cause != Cause::kServers || !UsesServers(plan.strategy)) return plan;
  switch (hypothesis.form) {
    case kOnWorkers:
      plan.server.colocated = true;
      plan.server_link.bandwidth.reset();  // theirs is the link of the node
      break;
    case kOnOne:
      plan.servers = 1;
      break;
    default:
      plan.server.sharding = Sharding::kRoundRobin;
  }
  return plan;
}

}  // namespace

std::vector<Hypothesis> HypothesesOf(const Predictor& predictor, const Plan& plan,
                                     bool knows_links) {
  std::vector<Hypothesis> all = {{Cause::kNothing}};
  const auto add = [&](Cause cause, Range range = {1, 1}, int form = 0) {
    all.push_back({cause, form, range.low, range.high, range.log_sd});
  };
  const StepFacts facts = predictor.Facts(plan);
  const bool alone = Alone(facts);
  const bool computes = facts.has_compute;
  const LinkFacts link = *ExchangeLink(facts);
  if (!alone && LeavesNode(facts)) {
    add(Cause::kLink, kLinkShare);
    if (!link.rdma() && knows_links) add(Cause::kFlow, kFlowShare);
    const double least =
        link.rtt ? std::max(kRoundTrips.low, kTooLong * link.rtt->si()) : kRoundTrips.low;
    if (least < kRoundTrips.high) add(Cause::kLatency, {least, kRoundTrips.high});
    if (link.loss.value_or(0) < kLosses.high / 2) {
      add(Cause::kLoss, {std::max(kLosses.low, 2 * link.loss.value_or(0)), kLosses.high});
    }
  }
  if (!alone && !HostLeadsOut(plan)) add(Cause::kDeviceLink, kDeviceLinkShare);
  if (computes && plan.workers() > 1 && TraitsOf(plan.strategy).synchronous) {
    add(Cause::kHost, kSlowdowns);
  }
  if (computes && !alone && plan.overlap != Overlap::kNone) add(Cause::kOverlap);
  if (computes) {
    add(Cause::kBatch, kFixedTimes);
    add(Cause::kInput, kInputTimes, kOfEachHost);
    if (plan.nodes() > 1) add(Cause::kInput, kInputTimes, kOfAll);
  }
  if (UsesServers(plan.strategy)) {
    if (!plan.server.colocated && plan.workers() > 1) add(Cause::kServers, {1, 1}, kOnWorkers);
    if (plan.servers > 1) {
      add(Cause::kServers, {1, 1}, kOnOne);
      if (plan.server.sharding != Sharding::kRoundRobin) {
        add(Cause::kServers, {1, 1}, kDealtInTurn);
      }
    }
  }
  return all;
}

Forecaster::Forecaster(const Predictor& predictor, const Plan& plan,
                       const DiagnosisOptions& options)
    : predictor_(predictor),
      plan_(plan),
      step_log_sd_(options.step_log_sd),
      hosts_(predictor.belief().SlowestOf(plan)),
      link_(*ExchangeLink(predictor.Facts(plan))) {
  const Belief& belief = predictor.belief();
  const auto known = static_cast<Eigen::Index>(belief.log_values().size());
  mean_ = VectorXd::Zero(known + 1);
  mean_.head(known) = Eigen::Map<const VectorXd>(belief.log_values().data(), known);
  covariance_ = Eigen::MatrixXd::Zero(known + 1, known + 1);
  covariance_.topLeftCorner(known, known) = belief.log_covariance();
  const LinkFacts of_servers =
      plan.has_server_link() ? ServerLinkOf(predictor.cluster(), plan) : LinkFacts();
  const double share = belief.StatedShareLogSd(plan.link, of_servers, hosts_.link);
  covariance_(known, known) = share * share;
  knows_rate_ =
      predictor.cluster().link.bandwidth || belief.origin(kLinkBandwidth) != Origin::kPrior;
  const ParameterSpec& of_devices = kClusterParameterSpecs[kHostBandwidth];
  knows_device_rate_ =
      belief.origin(kHostBandwidth) != Origin::kPrior ||
      std::sqrt(covariance_(kHostBandwidth, kHostBandwidth)) < of_devices.prior_log_sd;
  constexpr std::pair<int, double> kHealthy[] = {{kLinkBandwidth, kHealthyLogSd},
                                                 {kFlowBandwidth, kHealthyLogSd},
                                                 {kHostBandwidth, kHealthyDeviceLinkLogSd},
                                                 {kServerRate, kHealthyServerLogSd}};
  for (const auto& [rate, log_sd] : kHealthy) {
    if (belief.origin(rate) != Origin::kPrior) continue;
    covariance_(rate, rate) = std::min(covariance_(rate, rate), log_sd * log_sd);
  }
  // Published steps are of machines at their best. On those of which somebody complains, what a
  // batch costs beside its samples may be anything; launches that are too long are a cause.
  const ComputeBelief compute = belief.compute();
  if (compute == ComputeBelief::kDataSheet || compute == ComputeBelief::kFromDevice) {
    for (const int time : {kFixedTime, kFloorTime}) {
      const double log_sd = kWorkloadParameterSpecs[static_cast<std::size_t>(time)].prior_log_sd;
      const Eigen::Index at = Belief::kWorkloadOffset + time;
      covariance_(at, at) = log_sd * log_sd;
    }
  }
  SetSpread();
  SetSlowWays();
  base_ = Seconds(std::exp(StepOf(Measurement::Step(plan, {}), {}, 1, mean_).log_value));
}

// A belief may hold what is certain, and what goes together: such a covariance has no inverse, and
// rounding leaves eigenvalues below nought.
void Forecaster::SetSpread() {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_);
  spread_ = solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
            solver.eigenvectors().transpose();
}

void Forecaster::SetSlowWays() {
  const Eigen::Index share = mean_.size() - 1;
  for (const SlowEnd& end : UntoldEndsOf(predictor_.belief(), hosts_, predictor_.Facts(plan_))) {
    // Times that are too long beside the samples are a cause.
    if (IsWorkloadColumn(end.column)) continue;
    slow_ways_.push_back(
        {end.column == kShareColumn ? share : hosts_.Position(end.column), end.sds});
  }
}

void Forecaster::CentreCompute(const Measurement& step) {
  const Plan& plan = step.plan;
  const double sample =
      step.value / (1.0 * plan.accumulation_steps * plan.largest_batch()) / (1 + kFixedToSamples);
  constexpr auto kFixed = Eigen::Index{Belief::kWorkloadOffset + kFixedTime};
  constexpr auto kFloor = Eigen::Index{Belief::kWorkloadOffset + kFloorTime};
  constexpr auto kSample = Eigen::Index{Belief::kWorkloadOffset + kSampleTime};
  mean_[kSample] = std::log(sample);
  mean_[kFixed] = std::log(kFixedToSamples * plan.largest_batch() * sample);
  mean_[kFloor] = std::log(FloorBesideSamples(0, sample).si);
  constexpr double kVariance = kReferenceLogSd * kReferenceLogSd;
  covariance_(kSample, kSample) = kVariance;
  covariance_(kFixed, kFixed) = kVariance + kFixedToSamplesLogSd * kFixedToSamplesLogSd;
  covariance_(kSample, kFixed) = covariance_(kFixed, kSample) = kVariance;
  SetSpread();
}

PlanParameters Forecaster::ParametersAt(const VectorXd& theta) const {
  PlanParameters at = PlanParameters::FromLogs(
      theta.data(), theta.data() + Belief::kWorkloadOffset, theta.data() + hosts_.link,
      hosts_.slowdown ? theta.data() + *hosts_.slowdown : nullptr);
  at.cluster.stated_share = std::exp(theta[theta.size() - 1]);
  return at;
}

DataRate<> Forecaster::StatedRate() const {
  if (link_.bandwidth) return *link_.bandwidth;
  return DataRate<>::FromSi(std::exp(mean_[hosts_.link]));
}

DataRate<> Forecaster::DeviceRate() const {
  return DataRate<>::FromSi(std::exp(mean_[kHostBandwidth]));
}

bool Forecaster::Overfills(const Measurement& measurement) const {
  return measurement.what == Measured::kRate && link_.bandwidth &&
         std::log(measurement.value / link_.bandwidth->si()) > kMostSurprise * kProbeLogSd;
}

int Forecaster::LatencyPosition() const { return LatencyParameter(link_); }

Forecast Forecaster::StepOf(const Measurement& measurement, const Hypothesis& hypothesis, double x,
                            const VectorXd& theta) const {
  const Plan plan = PlanUnder(hypothesis, measurement.plan);
  StepFacts facts = predictor_.Facts(plan);
  if (measurement.exchange_alone) facts.has_compute = false;
  if (measurement.synthetic_input) facts.input_rate = std::nullopt;
  // The slowest of the hosts, each of which computes alone, is a slow node; where slow nodes take
  // other samples it is of the kind that is later.
  if (measurement.slowest_of_hosts && plan_.slow_nodes > 0) {
    facts.slow_speed = plan_.slow_speed;
    facts.slow_share = predictor_.Facts(plan_).slow_share;
  }
  // Of the path to servers too, which is lossy as the worse of its ends.
  facts.link.loss = LossUnder(hypothesis, x, facts.link.loss);
  PlanParameters at = ParametersAt(theta);
  ClusterParameters<double>& cluster = at.cluster;
  switch (hypothesis.cause) {
    case Cause::kLink:
      cluster.si[kLinkBandwidth] *= x;
      cluster.node_link_si = *cluster.node_link_si * x;
      cluster.stated_share *= x;
      break;
    case Cause::kFlow:
      cluster.si[kFlowBandwidth] *= x;
      break;
    case Cause::kDeviceLink:
      cluster.si[kHostBandwidth] *= x;
      break;
    case Cause::kLatency:
      facts.link.rtt = Seconds(x);
      if (facts.server_link.rtt) facts.server_link.rtt = facts.link.rtt;
      break;
    case Cause::kHost:
      if (measurement.slowest_of_hosts || (plan.nodes() >= plan_.nodes() && plan.workers() > 1)) {
        facts = LaterSide(facts, cluster, at.workload);
        cluster.node_slowdown = internal::SlowdownOf(facts, cluster).value_or(1) * x;
        facts.slow_speed.reset();
      }
      break;
    case Cause::kOverlap:
      facts.overlap = Overlap::kNone;
      break;
    case Cause::kBatch:
      at.workload.si[kFixedTime] *= x;
      break;
    default:
      break;
  }
  const PlanAnswer answer = PlanModel(facts).Answer(at, Derivatives::kAll);
  const CalibratedRange none;
  const auto& calibration = predictor_.cluster().calibration;
  Forecast forecast;
  forecast.log_value = answer.log_step;
  forecast.parts = answer.step;
  const CalibratedRange& range = calibration ? calibration->range : none;
  const auto& batches = predictor_.calibrated_batches();
  forecast.log_sd = step_log_sd_.value_or(std::hypot(
      predictor_.belief().ScatterOf(facts, answer.sync_share), Discrepancy(plan, range, batches),
      std::sqrt(JobVariance(facts, answer.log_step_gradient, OtherJobs(range, batches)))));
  forecast.gradient.resize(mean_.size());
  forecast.gradient << predictor_.belief().ByPosition(answer.log_step_gradient, hosts_),
      answer.log_step_gradient[kShareColumn];
  if (hypothesis.cause == Cause::kInput && !measurement.synthetic_input &&
      !measurement.exchange_alone) {
    // The slower of two pipelines that feed each other sets the pace.
    const auto samples = [&](const Plan& of) {
      if (hypothesis.form == kOfAll) return of.global_batch();
      return 1.0 * of.largest_batch() * of.accumulation_steps * DevicesOnFullestNode(of.placement);
    };
    const double fed = std::log(samples(plan) / samples(plan_) * x * base_.si());
    const double share = 1 / (1 + std::exp(kInputKnee * (fed - forecast.log_value)));
    forecast.log_value =
        std::max(fed, forecast.log_value) +
        std::log1p(std::exp(-kInputKnee * std::abs(fed - forecast.log_value))) / kInputKnee;
    forecast.gradient *= share;
  }
  return forecast;
}

double Forecaster::LogRate(int connections, const Hypothesis& hypothesis, double x,
                           const VectorXd& theta) const {
  const PlanParameters at = ParametersAt(theta);
  LinkFacts link = link_;
  if (hypothesis.cause == Cause::kLatency) link.rtt = Seconds(x);
  link.loss = LossUnder(hypothesis, x, link.loss);
  Path<double> path = MakePath(link, at.cluster.node_link(), at.cluster);
  if (hypothesis.cause == Cause::kLink) path.bandwidth = path.bandwidth * x;
  const double flow = hypothesis.cause == Cause::kFlow ? x : 1;
  FlowShape shape;
  shape.peers = shape.connections = connections;
  const Flows<double> each{at.cluster.flow_bandwidth() * flow};
  return std::log(DeliverTo(path, shape, each).bandwidth.si());
}

Forecast Forecaster::RateOf(const Measurement& measurement, const Hypothesis& hypothesis, double x,
                            const VectorXd& theta) const {
  const int connections = measurement.connections;
  Forecast forecast;
  forecast.log_value = LogRate(connections, hypothesis, x, theta);
  forecast.log_sd = kProbeLogSd;
  forecast.gradient = VectorXd::Zero(mean_.size());
  const std::array<Eigen::Index, 6> positions = {hosts_.link,  kFlowBandwidth,    kFlowWindow,
                                                 kLossTimeout, LatencyPosition(), mean_.size() - 1};
  VectorXd moved = theta;
  for (const Eigen::Index i : positions) {
    moved[i] = theta[i] + kNumericStep;
    forecast.gradient[i] =
        (LogRate(connections, hypothesis, x, moved) - forecast.log_value) / kNumericStep;
    moved[i] = theta[i];
  }
  return forecast;
}

Forecast Forecaster::Of(const Measurement& measurement, const Hypothesis& hypothesis, double x,
                        const VectorXd& theta) const {
  switch (measurement.what) {
    case Measured::kStep:
      return StepOf(measurement, hypothesis, x, theta);
    case Measured::kRate:
      return RateOf(measurement, hypothesis, x, theta);
    case Measured::kRoundTrip: {
      Forecast forecast{0, kTripLogSd, VectorXd::Zero(mean_.size()), {}};
      if (hypothesis.cause == Cause::kLatency) {
        forecast.log_value = std::log(x);
      } else if (link_.rtt && link_.rtt->si() > 0) {
        forecast.log_value = std::log(link_.rtt->si());
      } else {
        forecast.log_value = std::log(2.0) + theta[LatencyPosition()];
        forecast.gradient[LatencyPosition()] = 1;
      }
      return forecast;
    }
    default: {
      const double loss = std::max(kHarmlessLoss, LossUnder(hypothesis, x, link_.loss).value_or(0));
      return {std::log(loss), kLossLogSd, VectorXd::Zero(mean_.size()), {}};
    }
  }
}

Forecast Forecaster::SizeOf(const Hypothesis& hypothesis, double x, const VectorXd& theta) const {
  Forecast size{std::log(x), 0, VectorXd::Zero(mean_.size()), {}};
  const auto times = [&](Eigen::Index position) {
    size.log_value += theta[position];
    size.gradient[position] += 1;
  };
  switch (hypothesis.cause) {
    case Cause::kLink:
      if (link_.bandwidth) {
        size.log_value += std::log(link_.bandwidth->si());
        times(mean_.size() - 1);
      } else {
        times(hosts_.link);
      }
      break;
    case Cause::kFlow:
      times(kFlowBandwidth);
      break;
    case Cause::kDeviceLink:
      times(kHostBandwidth);
      break;
    case Cause::kBatch:
      times(Belief::kWorkloadOffset + kFixedTime);
      break;
    case Cause::kInput:
      size.log_value = std::log(plan_.global_batch() /
                                (hypothesis.form == kOfAll ? 1 : plan_.nodes()) / (x * base_.si()));
      break;
    default:
      break;
  }
  return size;
}

}  // namespace stepcast::internal
