// What a cause of a slow step does to it, against a job that is so; and what is asked and advised.
#include "predictor/diagnose/hypotheses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "predictor/diagnose/advice.h"
#include "predictor/diagnose/text.h"
#include "predictor/search/one_worker.h"
#include "tests/calibrate/synthetic_runs.h"
#include "tests/support/devices.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using internal::Candidate;
using internal::CandidatesFor;
using internal::Forecaster;
using internal::HypothesesOf;
using internal::Hypothesis;
using internal::kDealtInTurn;
using internal::kOfAll;
using internal::kOfEachHost;
using internal::kOnOne;
using internal::kOnWorkers;
using internal::RemediesFor;
using internal::RemedyIdea;

// Hosts a to d, of which the last is slow and has a link of its own.
Truth TheTruth() {
  Truth truth = PlausibleTruth();
  for (const char* host : {"a", "b", "c"}) truth.host_links[host] = GigabitsPerSecond(8.0);
  truth.host_links["d"] = GigabitsPerSecond(3.0);
  truth.host_slowdowns["d"] = 1.3;
  return truth;
}

Predictor PredictorOf(const Truth& truth) {
  return {CalibratedCluster(truth), *FindWorkload("resnet50"), std::nullopt};
}

Plan BasePlan(Strategy strategy = Strategy::kAllreduce, int servers = 0) {
  Plan plan;
  plan.placement = {2, 2, 2, 1};
  plan.local_batch = 32;
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

// Links that the plan states, those to servers too.
Plan Stated(Plan plan) {
  plan.link.bandwidth = GigabitsPerSecond(5.0);
  plan.link.rtt = Milliseconds(0.5);
  plan.link.loss = 1e-4;
  if (UsesServers(plan.strategy)) {
    plan.server_link.bandwidth = GigabitsPerSecond(4.0);
    plan.server_link.rtt = Milliseconds(0.4);
    plan.server_link.loss = 2e-4;
  }
  return plan;
}

double StepUnder(const Predictor& predictor, const Plan& plan, const Hypothesis& hypothesis,
                 double x, const Measurement& measurement) {
  const Forecaster model(predictor, plan, {});
  return std::exp(model.Of(measurement, hypothesis, x, model.mean()).log_value);
}
double StepUnder(const Predictor& predictor, const Plan& plan, const Hypothesis& hypothesis,
                 double x = 1) {
  return StepUnder(predictor, plan, hypothesis, x, Measurement::Step(plan, {}));
}

void ExpectSame(double step, double expected) { EXPECT_NEAR(step / expected, 1, 1e-9); }

// A plan that is so.
TEST(Hypotheses, OfThePlanAreOtherPlans) {
  const Predictor predictor = PredictorOf(TheTruth());
  const auto step = [&](const Plan& plan) { return predictor.PredictStep(plan).total().si(); };
  for (const Plan& plan : {BasePlan(), Stated(BasePlan()), BasePlan(Strategy::kPsSync, 3),
                           Stated(BasePlan(Strategy::kPsSync, 3))}) {
    SCOPED_TRACE(std::string(StrategyName(plan.strategy)) + (plan.link.rtt ? ", stated" : ""));
    const bool servers = UsesServers(plan.strategy);
    ExpectSame(StepUnder(predictor, plan, {}), step(plan));
    const auto changed = [&](const std::function<void(Plan*)>& change) {
      Plan other = plan;
      change(&other);
      EXPECT_NE(step(other), step(plan)) << "or this says nothing";
      return step(other);
    };
    ExpectSame(StepUnder(predictor, plan, {Cause::kLatency}, 0.01), changed([](Plan* p) {
                 p->link.rtt = Seconds(0.01);
                 if (p->server_link.rtt) p->server_link.rtt = Seconds(0.01);
               }));
    ExpectSame(StepUnder(predictor, plan, {Cause::kLoss}, 0.03), changed([](Plan* p) {
                 p->link.loss = 0.03;
                 if (p->server_link.loss) p->server_link.loss = 0.03;
               }));
    ExpectSame(StepUnder(predictor, plan, {Cause::kOverlap}),
               changed([](Plan* p) { p->overlap = Overlap::kNone; }));
    if (plan.link.bandwidth) {
      ExpectSame(StepUnder(predictor, plan, {Cause::kLink}, 0.2), changed([](Plan* p) {
                   p->link.bandwidth = *p->link.bandwidth * 0.2;
                   if (p->server_link.bandwidth) {
                     p->server_link.bandwidth = *p->server_link.bandwidth * 0.2;
                   }
                 }));
    }
    if (!servers) continue;
    ExpectSame(StepUnder(predictor, plan, {Cause::kServers, kOnWorkers}), changed([](Plan* p) {
                 p->server.colocated = true;
                 p->server_link.bandwidth.reset();
               }));
    ExpectSame(StepUnder(predictor, plan, {Cause::kServers, kOnOne}),
               changed([](Plan* p) { p->servers = 1; }));
    ExpectSame(StepUnder(predictor, plan, {Cause::kServers, kDealtInTurn}),
               changed([](Plan* p) { p->server.sharding = Sharding::kRoundRobin; }));
  }
}

// A cluster, or a workload, that is so.
TEST(Hypotheses, OfTheJobAreOtherParameters) {
  const Plan plan = BasePlan();
  Plan named = plan;
  named.hosts = {"a", "b", "c", "d"};
  const auto step = [](const Truth& truth, const Plan& of) {
    return PredictorOf(truth).PredictStep(of).total().si();
  };
  const Predictor predictor = PredictorOf(TheTruth());
  Truth truth = TheTruth();
  truth.cluster.si[kLinkBandwidth] *= 0.3;
  ExpectSame(StepUnder(predictor, plan, {Cause::kLink}, 0.3), step(truth, plan));
  truth = TheTruth();
  truth.host_links["d"] = truth.host_links["d"] * 0.3;
  ExpectSame(StepUnder(predictor, named, {Cause::kLink}, 0.3), step(truth, named));
  truth = TheTruth();
  truth.cluster.si[kFlowBandwidth] *= 0.1;
  ExpectSame(StepUnder(predictor, plan, {Cause::kFlow}, 0.1), step(truth, plan));
  truth = TheTruth();
  truth.cluster.si[kHostBandwidth] *= 0.05;
  ExpectSame(StepUnder(predictor, plan, {Cause::kDeviceLink}, 0.05), step(truth, plan));
  truth = TheTruth();
  truth.workloads["resnet50"].si[kFixedTime] *= 20;
  ExpectSame(StepUnder(predictor, plan, {Cause::kBatch}, 20), step(truth, plan));
  // The slowest is slower still by so much.
  truth = TheTruth();
  truth.host_slowdowns["d"] *= 2;
  ExpectSame(StepUnder(predictor, named, {Cause::kHost}, 2), step(truth, named));
  Plan alone = OneWorkerOf(plan);
  Measurement measurement = Measurement::Step(alone, {});
  ExpectSame(StepUnder(predictor, plan, {Cause::kHost}, 2, measurement),
             predictor.PredictStep(alone).total().si());
  measurement.slowest_of_hosts = true;
  alone.hosts = {"d"};
  truth = TheTruth();
  truth.host_slowdowns["d"] = 2;
  ExpectSame(StepUnder(predictor, plan, {Cause::kHost}, 2, measurement), step(truth, alone));
}

// Where a step of one device is all that tells of compute, it is the centre of what is believed.
TEST(Hypotheses, ComputeIsCentredOnWhatWasMeasured) {
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), std::nullopt);
  Plan plan = BasePlan();
  Forecaster model(predictor, plan, {});
  const Plan alone = OneWorkerOf(plan);
  for (const double step : {0.02, 0.1, 10.0}) {
    Measurement one = Measurement::Step(alone, Seconds(step));
    model.CentreCompute(one);
    EXPECT_NEAR(std::exp(model.Of(one, {}, 1, model.mean()).log_value) / step, 1, 0.2) << step;
  }
}

// The slower of two pipelines: what is fed takes x times the step as it should be, in proportion to
// the samples of all, or of the fullest host.
TEST(Hypotheses, InputFeedsAllOrEachHost) {
  const Predictor predictor = PredictorOf(TheTruth());
  const Plan plan = BasePlan();
  const double base = predictor.PredictStep(plan).total().si();
  constexpr double kMuch = 80;
  Plan half = plan;
  half.placement = {2, 1};
  half.accumulation_steps = 3;
  const Measurement measurement = Measurement::Step(half, {});
  EXPECT_NEAR(StepUnder(predictor, plan, {Cause::kInput, kOfAll}, kMuch, measurement) /
                  (kMuch * base * (3 * 3 / 7.0)),
              1, 1e-3);
  EXPECT_NEAR(StepUnder(predictor, plan, {Cause::kInput, kOfEachHost}, kMuch, measurement) /
                  (kMuch * base * 3),
              1, 1e-3);
  // Where both take as long the knee between them, of 8, leaves 2^(1/8).
  EXPECT_NEAR(StepUnder(predictor, plan, {Cause::kInput, kOfAll}, 1), base * std::pow(2, 1.0 / 8),
              1e-9 * base);
  Measurement made_up = Measurement::Step(plan, {});
  made_up.synthetic_input = true;
  ExpectSame(StepUnder(predictor, plan, {Cause::kInput, kOfAll}, kMuch, made_up), base);

  const Forecaster model(predictor, plan, {});
  const auto size = [&](int form) {
    return std::exp(model.SizeOf({Cause::kInput, form}, kMuch, model.mean()).log_value);
  };
  EXPECT_NEAR(size(kOfAll), 7 * 32 / (kMuch * base), 1e-9);
  EXPECT_NEAR(size(kOfEachHost), 7 * 32 / 4.0 / (kMuch * base), 1e-9);
}

// The exchange alone is a bare message of all gradients.
TEST(Hypotheses, TheExchangeAloneIsABareMessage) {
  Workload message = *FindWorkload("resnet50");
  message.communication_only = true;
  const Plan plan = BasePlan();
  Measurement measurement = Measurement::Step(plan, {});
  measurement.exchange_alone = true;
  const Predictor predictor = PredictorOf(TheTruth());
  const Predictor of_message(predictor.cluster(), message, std::nullopt);
  ExpectSame(StepUnder(predictor, plan, {}, 1, measurement),
             of_message.PredictStep(plan).total().si());
}

TEST(Hypotheses, OfANetworkTellWhatItsProbesShow) {
  const Truth truth = TheTruth();
  const Predictor predictor = PredictorOf(truth);
  const auto value = [&](const Plan& plan, const Measurement& measurement,
                         const Hypothesis& hypothesis = {}, double x = 1) {
    return StepUnder(predictor, plan, hypothesis, x, measurement);
  };
  // Where nobody states it, a round trip is twice the latency of a message.
  const Measurement ping = Measurement::RoundTrip({});
  EXPECT_NEAR(value(BasePlan(), ping), 2 * truth.cluster.si[kLinkLatency], 1e-12);
  EXPECT_NEAR(value(Stated(BasePlan()), ping), 0.5e-3, 1e-12);
  EXPECT_NEAR(value(BasePlan(), ping, {Cause::kLatency}, 0.02), 0.02, 1e-12);
  EXPECT_NEAR(value(Stated(BasePlan()), Measurement::Loss(0, 1)), 1e-4, 1e-12);
  EXPECT_NEAR(value(BasePlan(), Measurement::Loss(0, 1), {Cause::kLoss}, 0.04), 0.04, 1e-12);
  // A link that is much faster than its flows carries what they do together.
  Plan fast = BasePlan();
  fast.link.bandwidth = GigabitsPerSecond(4000.0);
  const double flow = truth.cluster.si[kFlowBandwidth];
  for (const int connections : {1, 8}) {
    const Measurement rate = Measurement::Rate({}, connections);
    EXPECT_NEAR(value(fast, rate) / (connections * flow), 1, 1e-6) << connections;
    EXPECT_NEAR(value(fast, rate, {Cause::kFlow}, 0.2) / (0.2 * connections * flow), 1, 1e-6);
  }
}

// A latency that is no longer than the stated one by much is none.
TEST(Hypotheses, BeginWhereSomethingIsWrong) {
  const Predictor predictor = PredictorOf(TheTruth());
  const auto find = [&](const Plan& plan, Cause cause) {
    std::vector<Hypothesis> found;
    for (const Hypothesis& one : HypothesesOf(predictor, plan, true)) {
      if (one.cause == cause) found.push_back(one);
    }
    return found;
  };
  Plan plan = Stated(BasePlan());
  plan.link.rtt = Milliseconds(20.0);
  ASSERT_EQ(find(plan, Cause::kLatency).size(), 1U);
  EXPECT_NEAR(find(plan, Cause::kLatency)[0].low, 0.06, 1e-12);
  plan.link.rtt = Milliseconds(200.0);
  EXPECT_TRUE(find(plan, Cause::kLatency).empty());
  plan.link.loss = 0.03;
  EXPECT_NEAR(find(plan, Cause::kLoss).at(0).low, 0.06, 1e-12);
  plan = BasePlan(Strategy::kPsSync, 3);
  EXPECT_EQ(find(plan, Cause::kServers).size(), 3U);
  plan.server.sharding = Sharding::kRoundRobin;
  EXPECT_EQ(find(plan, Cause::kServers).size(), 2U) << "they are dealt in turn as it is";
  plan.servers = 1;
  EXPECT_EQ(find(plan, Cause::kServers).size(), 1U);
  plan.server.colocated = true;
  EXPECT_TRUE(find(plan, Cause::kServers).empty());
}

// What a network that nobody measured carries where nothing is wrong is known better than its
// priors say, which hold what is wrong too.
TEST(Hypotheses, AHealthyNetworkIsKnownBetterThanAnyNetwork) {
  const Cluster unknown = SyntheticCluster();
  const Predictor predictor(unknown, *FindWorkload("resnet50"), std::nullopt);
  const Forecaster model(predictor, BasePlan(), {});
  for (const int rate : {int{kLinkBandwidth}, int{kFlowBandwidth}, int{kHostBandwidth}}) {
    EXPECT_LT(model.covariance()(rate, rate), predictor.belief().log_covariance()(rate, rate));
    EXPECT_NEAR(std::sqrt(model.covariance()(rate, rate)), rate == kHostBandwidth ? 0.7 : 0.6,
                1e-12);
  }
  EXPECT_LT((model.spread() * model.spread() - model.covariance()).cwiseAbs().maxCoeff(), 1e-9);
}

// ---- What is asked next, and what is advised.

// What has been measured is not asked for again, and nothing else is taken for it.
TEST(Candidates, AreAskedForUntilTheyAreKnown) {
  const Predictor predictor = PredictorOf(TheTruth());
  Plan plan = BasePlan();
  plan.accumulation_steps = 2;
  Plan servers = BasePlan(Strategy::kPsSync, 3);
  servers.local_batch = 9;
  for (const Plan& of : {plan, servers}) {
    Complaint complaint{of, Seconds(1.0), {}};
    const std::vector<Candidate> all = CandidatesFor(complaint, predictor);
    EXPECT_GE(all.size(), 8U);
    for (const Candidate& known : all) {
      complaint.known = {known.measurement};
      std::vector<std::string> left;
      for (const Candidate& other : all) {
        if (other.text != known.text) left.push_back(other.text);
      }
      std::vector<std::string> asked;
      for (const Candidate& other : CandidatesFor(complaint, predictor)) {
        asked.push_back(other.text);
      }
      EXPECT_EQ(asked, left) << known.text;
    }
  }
  const auto asks = [&](const Plan& of, const auto& what) {
    const std::vector<Candidate> all = CandidatesFor({of, Seconds(1.0), {}}, predictor);
    return std::count_if(all.begin(), all.end(),
                         [&](const Candidate& one) { return what(one.measurement); });
  };
  EXPECT_EQ(asks(plan, [](const Measurement& m) { return m.exchange_alone; }), 1);
  EXPECT_EQ(asks(plan, [](const Measurement& m) { return m.synthetic_input; }), 1);
  EXPECT_EQ(asks(plan, [](const Measurement& m) { return m.slowest_of_hosts; }), 1);
  EXPECT_EQ(asks(plan, [](const Measurement& m) { return m.plan.local_batch == 16; }), 1);
  EXPECT_EQ(asks(plan, [](const Measurement& m) { return m.plan.accumulation_steps == 8; }), 1);
  EXPECT_EQ(asks(servers, [](const Measurement& m) { return m.plan.local_batch == 4; }), 1);
  EXPECT_EQ(asks(servers, [](const Measurement& m) { return m.plan.servers == 6; }), 1);
  EXPECT_EQ(asks(servers, [](const Measurement& m) { return m.connections == 8; }), 1);
}

TEST(Remedies, ChangeWhatTheySay) {
  const Predictor predictor = PredictorOf(TheTruth());
  const auto find = [&](const Plan& plan, const Hypothesis& hypothesis, const std::string& text) {
    const Forecaster model(predictor, plan, {});
    std::vector<RemedyIdea> found;
    for (const RemedyIdea& idea : RemediesFor(hypothesis, predictor, model)) {
      if (idea.text.find(text) != std::string::npos) found.push_back(idea);
    }
    return found;
  };
  const Plan plan = Stated(BasePlan(Strategy::kPsSync, 3));
  const std::vector<RemedyIdea> faster = find(plan, {}, "links of ");
  ASSERT_FALSE(faster.empty());
  for (const RemedyIdea& idea : faster) {
    EXPECT_GT(*idea.plan.link.bandwidth, *plan.link.bandwidth);
    EXPECT_EQ(idea.plan.server_link.bandwidth, idea.plan.link.bandwidth);
    EXPECT_FALSE(idea.cured || idea.repairs);
  }
  EXPECT_EQ(find(plan, {}, "6 servers").at(0).plan.servers, 6);
  EXPECT_EQ(find(plan, {}, "16 bits").at(0).plan.bytes_per_parameter, 2);
  Plan halved = plan;
  halved.bytes_per_parameter = 2;
  EXPECT_TRUE(find(halved, {}, "16 bits").empty());
  Plan compressed = plan;
  compressed.compress = {Compressor::kInt8, 0};
  compressed.compress_rate = GigabytesPerSecond(20.0);
  EXPECT_TRUE(find(compressed, {}, "16 bits").empty());
  EXPECT_EQ(find(plan, {}, "twice the local batch: 64").at(0).plan.local_batch, 64);
  EXPECT_EQ(find(plan, {Cause::kLoss}, "BBR").at(0).plan.link.congestion_control,
            CongestionControl::kBbr);
  EXPECT_TRUE(find(plan, {Cause::kLink}, "links of ").at(0).cured);
  Plan apart = BasePlan();
  EXPECT_TRUE(find(apart, {}, "in buckets beside the backward pass").empty());
  apart.overlap = Overlap::kNone;
  EXPECT_EQ(find(apart, {}, "in buckets beside the backward pass").at(0).plan.overlap,
            Overlap::kBuckets);
  const RemedyIdea without = find(BasePlan(), {Cause::kHost}, "without the slow one").at(0);
  EXPECT_TRUE(without.cured);
  EXPECT_EQ(without.plan.nodes(), 3);
}

TEST(Values, AreWrittenAsWhatTheyAre) {
  EXPECT_EQ(internal::ValueText(Measurement::Loss(0, 1), 0.01), "1 %");
  EXPECT_EQ(internal::ValueText(Measurement::Rate({}, 1), 1.25e9), "10 Gbit/s");
  EXPECT_EQ(internal::ValueText(Measurement::RoundTrip({}), 2e-3), "2 ms");
  EXPECT_EQ(internal::ValueText(Measurement::Step({}, {}), 2), "2 s");
}

// The rate that links should have is known where somebody states it or runs have told it.
TEST(Values, ARateThatNobodyStatesIsSaidToBeTaken) {
  EXPECT_EQ(internal::DeviceRateText(GigabytesPerSecond(0.25)), "0.25 GB/s");
  const Hypothesis link{Cause::kLink};
  CauseSize size;
  size.value = 2;  // Gbit/s
  const auto text = [&](const Predictor& predictor, const Plan& plan) {
    return internal::SizeText(link, link, size, Forecaster(predictor, plan, {}), plan, {});
  };
  const Predictor fitted = PredictorOf(PlausibleTruth());
  const Predictor unknown(SyntheticCluster(), *FindWorkload("resnet50"), T4());
  Plan plan = BasePlan();
  EXPECT_EQ(text(fitted, plan), "the links behave like ones of 2 Gbit/s, where 9 Gbit/s are known");
  const std::string taken = text(unknown, plan);
  EXPECT_NE(taken.find(" are taken, as nobody states them"), std::string::npos) << taken;
  EXPECT_EQ(taken.find("known"), std::string::npos) << taken;
  plan.link.bandwidth = GigabitsPerSecond(5.0);
  EXPECT_EQ(text(unknown, plan),
            "the links behave like ones of 2 Gbit/s, where 5 Gbit/s are known");
}

// ---- Weighed by arithmetic: where the step tells nothing, priors are left, and single probes.

// A step of which nothing is learnt.
constexpr DiagnosisOptions kBlind{1e4, true};

TEST(Weighing, EachCauseIsAsLikelyAsItIsReportedHoweverManyFormsItHas) {
  const Predictor predictor = PredictorOf(TheTruth());
  // Of 22 public reports eleven were of links or flows, five of input, four of the exchange within
  // a host, one of a host and one of a batch; and five more of each.
  const std::map<Cause, double> reports = {
      {Cause::kLink, 10.5}, {Cause::kFlow, 10.5},   {Cause::kLatency, 5}, {Cause::kLoss, 5},
      {Cause::kHost, 6},    {Cause::kOverlap, 5},   {Cause::kBatch, 6},   {Cause::kInput, 10},
      {Cause::kServers, 5}, {Cause::kDeviceLink, 9}};
  for (const Plan& plan : {BasePlan(), BasePlan(Strategy::kPsSync, 3)}) {
    const Diagnosis diagnosis = Diagnose(predictor, {plan, Seconds(1.0), {}}, kBlind);
    double all = 0;
    for (const ExplainedBy& one : diagnosis.causes) {
      if (one.cause != Cause::kNothing) all += reports.at(one.cause);
    }
    for (const ExplainedBy& one : diagnosis.causes) {
      EXPECT_NEAR(one.probability,
                  one.cause == Cause::kNothing ? 0.5 : 0.5 * reports.at(one.cause) / all, 1e-3)
          << kCauseNames[static_cast<int>(one.cause)];
    }
  }
}

const ExplainedBy& Explained(const Diagnosis& diagnosis, Cause cause) {
  return *std::find_if(diagnosis.causes.begin(), diagnosis.causes.end(),
                       [&](const ExplainedBy& one) { return one.cause == cause; });
}

TEST(Weighing, AProbeAloneSaysHowBadItIs) {
  const Predictor predictor = PredictorOf(TheTruth());
  constexpr double kNinety = 1.6448536;
  Complaint complaint{BasePlan(), Seconds(1.0), {Measurement::RoundTrip(Milliseconds(20.0))}};
  const Diagnosis far = Diagnose(predictor, complaint, kBlind);
  const CauseSize& trip = Explained(far, Cause::kLatency).size;
  EXPECT_EQ(trip.unit, "ms");
  EXPECT_NEAR(trip.value, 20, 1);
  EXPECT_NEAR(std::log(trip.high / trip.value), kNinety * kTripLogSd, 0.03);
  EXPECT_NEAR(std::log(trip.value / trip.low), kNinety * kTripLogSd, 0.03);

  // 40 of 1000 packets, give or take their root.
  complaint.known = {Measurement::Loss(0.04, 1000)};
  const Diagnosis lossy = Diagnose(predictor, complaint, kBlind);
  const CauseSize& loss = Explained(lossy, Cause::kLoss).size;
  EXPECT_NEAR(loss.value, 0.04, 0.002);
  EXPECT_NEAR(std::log(loss.high / loss.low), 2 * kNinety / std::sqrt(40.0), 0.05);
  EXPECT_EQ(lossy.causes.front().cause, Cause::kLoss);
}

// The step as it should be is the forecast; what was measured of the whole job, where whatever is
// wrong has its part, changes nothing of it.
TEST(Weighing, TheExpectationIsTheForecast) {
  const Predictor predictor = PredictorOf(TheTruth());
  Complaint complaint{BasePlan(), Seconds(5.0), {}};
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  const Prediction p = predictor.Predict(complaint.plan);
  ExpectSame(diagnosis.expected.si(), p.step_time.si());
  ExpectSame(diagnosis.high.si(), p.high.si());
  EXPECT_NEAR(diagnosis.expected / diagnosis.low, diagnosis.high / diagnosis.expected, 1e-9);
  Plan rarer = complaint.plan;
  rarer.accumulation_steps = 4;
  complaint.known = {Measurement::Step(rarer, Seconds(9.0))};
  ExpectSame(Diagnose(predictor, complaint).expected.si(), p.step_time.si());
  complaint.known = {Measurement::Step(OneWorkerOf(complaint.plan), Seconds(1.0))};
  EXPECT_GT(Diagnose(predictor, complaint).expected / p.step_time, 1.01);
}

// A surprise is in standard deviations of what a step scatters by.
TEST(Weighing, SurprisesAreStandardDeviations) {
  const Predictor predictor = PredictorOf(TheTruth());
  constexpr double kSd = 0.04;
  const Diagnosis diagnosis = Diagnose(predictor, {BasePlan(), Seconds(3.0), {}}, {kSd, true});
  for (const ExplainedBy& one : diagnosis.causes) {
    EXPECT_NEAR(one.surprise, std::log(3.0 / one.step.si()) / kSd, 1e-9);
  }
}

std::map<Cause, double> ProbabilitiesOf(const Diagnosis& diagnosis) {
  std::map<Cause, double> probabilities;
  for (const ExplainedBy& one : diagnosis.causes) probabilities[one.cause] = one.probability;
  return probabilities;
}
void ExpectSameProbabilities(const Diagnosis& diagnosis, const Diagnosis& expected, double within) {
  const std::map<Cause, double> probabilities = ProbabilitiesOf(diagnosis);
  ASSERT_EQ(probabilities.size(), expected.causes.size());
  for (const auto& [cause, probability] : ProbabilitiesOf(expected)) {
    EXPECT_NEAR(probabilities.at(cause), probability, within)
        << kCauseNames[static_cast<int>(cause)];
  }
}

// It does not matter in which order things were measured.
TEST(Weighing, WhatIsKnownHasNoOrder) {
  const Predictor predictor = PredictorOf(TheTruth());
  const Plan one = OneWorkerOf(BasePlan());
  std::vector<Measurement> known = {
      Measurement::RoundTrip(Milliseconds(20.0)), Measurement::Rate(GigabitsPerSecond(0.5), 8),
      Measurement::Step(one, predictor.PredictStep(one).total() * 1.1),
      Measurement::Loss(0.001, 5000)};
  Complaint complaint{BasePlan(), predictor.PredictStep(BasePlan()).total() * 2.0, known};
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  for (std::size_t turn = 1; turn < known.size(); ++turn) {
    std::rotate(known.begin(), known.begin() + 1, known.end());
    complaint.known = known;
    ExpectSameProbabilities(Diagnose(predictor, complaint), diagnosis, 1e-6);
  }
  std::reverse(known.begin(), known.end());
  complaint.known = known;
  ExpectSameProbabilities(Diagnose(predictor, complaint), diagnosis, 1e-6);
}

// Of each packet it is known whether it got lost: 10 of 1000 and 15 of 500 are 25 of 1500.
TEST(Weighing, LossesOfTwoPingsAddUp) {
  const Predictor predictor = PredictorOf(TheTruth());
  const auto diagnose = [&](const std::vector<Measurement>& known) {
    return Diagnose(predictor, {BasePlan(), Seconds(1.0), known}, {1e4, false});
  };
  const Diagnosis both = diagnose({Measurement::Loss(0.01, 1000), Measurement::Loss(0.03, 500)});
  ExpectSameProbabilities(both, diagnose({Measurement::Loss(25.0 / 1500, 1500)}), 1e-9);
  EXPECT_NEAR(Explained(both, Cause::kLoss).size.value, 25.0 / 1500, 0.002);
}

// Probabilities sum to one and fall behind the cause that is named, and without a cause nothing is
// added to the step.
TEST(Weighing, CausesAreAllThereIs) {
  const Predictor predictor = PredictorOf(TheTruth());
  for (const double longer : {0.7, 1.0, 1.5, 4.0}) {
    const Diagnosis diagnosis =
        Diagnose(predictor, {BasePlan(), predictor.PredictStep(BasePlan()).total() * longer, {}});
    double sum = 0;
    for (std::size_t i = 0; i < diagnosis.causes.size(); ++i) {
      const ExplainedBy& one = diagnosis.causes[i];
      sum += one.probability;
      EXPECT_LE(one.probability, i > 1 ? diagnosis.causes[i - 1].probability : 1.0);
      if (one.cause == Cause::kNothing) {
        EXPECT_EQ(one.added.si(), 0);
      } else {
        EXPECT_LT(one.added.si(), one.step.si());
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9) << longer;
  }
}

TEST(Weighing, WhatIsNoMeasurementIsRefused) {
  const Predictor predictor = PredictorOf(TheTruth());
  const auto error_of = [&](Duration<> step, const std::vector<Measurement>& known) {
    return ErrorOf([&] { Diagnose(predictor, {BasePlan(), step, known}, {1e4, false}); });
  };
  for (const double none : {0.0, -1.0, HUGE_VAL}) {
    const std::string value = none == 0 ? "0" : none < 0 ? "-1" : "inf";
    const std::string more = ": '" + value + "' is out of range; allowed: more than 0";
    EXPECT_TRUE(Says(error_of(Seconds(none), {}), "measured" + more));
    EXPECT_TRUE(Says(error_of(Seconds(1.0), {Measurement::Rate(BytesPerSecond(none), 1)}),
                     "flow-rate" + more));
    EXPECT_TRUE(
        Says(error_of(Seconds(1.0), {Measurement::RoundTrip(Seconds(none))}), "ping" + more));
    EXPECT_TRUE(Says(error_of(Seconds(1.0), {Measurement::Step(BasePlan(), Seconds(none))}),
                     "measured" + more));
  }
  for (const auto& [share, packets] : {std::pair(1.0, 10.0), {-0.1, 10.0}, {0.1, 0.5}}) {
    EXPECT_TRUE(Says(error_of(Seconds(1.0), {Measurement::Loss(share, packets)}),
                     "is out of range; allowed: from 0 to less than 1, of at least one packet"));
  }
  EXPECT_FALSE(error_of(Seconds(1.0), {Measurement::Loss(0, 1)}));
}

TEST(Weighing, RemediesFitAndAreForecastWithTheCauseUnlessTheyCureIt) {
  const Truth truth = TheTruth();
  const Predictor predictor = PredictorOf(truth);
  const Plan plan = BasePlan();
  Truth slow = truth;
  slow.cluster.si[kLinkBandwidth] *= 0.05;
  const Predictor slowed = PredictorOf(slow);
  const Complaint complaint{
      plan,
      slowed.PredictStep(plan).total(),
      {Measurement::Rate(BytesPerSecond(slow.cluster.si[kLinkBandwidth]), 8)}};
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  ASSERT_EQ(diagnosis.causes.front().cause, Cause::kLink);
  int with_cause = 0;
  for (std::size_t i = 0; i < diagnosis.remedies.size(); ++i) {
    const Remedy& remedy = diagnosis.remedies[i];
    EXPECT_NE(predictor.Memory(remedy.plan).verdict, MemoryVerdict::kOutOfMemory);
    EXPECT_TRUE(i == 0 || remedy.gain <= diagnosis.remedies[i - 1].gain);
    EXPECT_GT(remedy.gain, 1);
    ExpectSame(remedy.throughput.si(), (CountedSamples(remedy.plan) / remedy.step).si());
    ExpectSame(remedy.gain,
               remedy.throughput / (CountedSamples(plan) / diagnosis.causes.front().step));
    if (remedy.plan.link.bandwidth || remedy.repairs) continue;
    ++with_cause;
    EXPECT_NEAR(remedy.step / slowed.PredictStep(remedy.plan).total(), 1, 0.1) << remedy.text;
  }
  EXPECT_GE(with_cause, 3);
}

// A device that has no room for twice the batch is not told to take it.
TEST(Weighing, WhatDoesNotFitIsNoRemedy) {
  Device device;
  device.name = kSyntheticDevice;
  Plan plan = BasePlan();
  Cluster cluster = CalibratedCluster(TheTruth());
  cluster.calibration->range.local_batch.clear();  // a batch that has run fits
  const auto doubled = [&](DataSize<> memory) {
    device.memory = memory;
    const Predictor predictor(cluster, *FindWorkload("resnet50"), device);
    const Diagnosis diagnosis = Diagnose(predictor, {plan, Seconds(5.0), {}});
    return std::any_of(diagnosis.remedies.begin(), diagnosis.remedies.end(),
                       [&](const Remedy& remedy) { return remedy.plan.local_batch == 64; });
  };
  Plan larger = plan;
  larger.local_batch = 64;
  const DataSize<> need =
      Predictor(cluster, *FindWorkload("resnet50"), std::nullopt).Memory(larger).total;
  EXPECT_TRUE(doubled(need * 1.5));
  EXPECT_FALSE(doubled(need * 0.7));
}

// What tells most is asked first, and nothing is asked that hardly tells.
TEST(Weighing, WhatIsAskedTellsMost) {
  const Predictor predictor = PredictorOf(TheTruth());
  const Plan plan = BasePlan();
  Complaint complaint{plan, predictor.PredictStep(plan).total() * 3.0, {}};
  complaint.known = {
      Measurement::Step(OneWorkerOf(plan), predictor.PredictStep(OneWorkerOf(plan)).total())};
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  ASSERT_TRUE(diagnosis.next);
  EXPECT_GT(diagnosis.next->bits, 0.3);
  // As many bits as there are causes to tell apart, at most.
  double entropy = 0;
  for (const ExplainedBy& one : diagnosis.causes) {
    if (one.probability > 0) entropy -= one.probability * std::log2(one.probability);
  }
  EXPECT_LT(diagnosis.next->bits, entropy);
  // A step as it should be, and all of a network as it should be: one cannot be surer.
  Complaint healthy{plan, predictor.PredictStep(plan).total(), {}};
  for (const Candidate& candidate : CandidatesFor(healthy, predictor)) {
    Measurement known = candidate.measurement;
    const Forecaster model(predictor, plan, {});
    known.value = std::exp(model.Of(known, {}, 1, model.mean()).log_value);
    healthy.known.push_back(known);
  }
  EXPECT_FALSE(Diagnose(predictor, healthy).next);
  // One of them is left: it is asked for where it tells, and most do not.
  const std::vector<Measurement> all = healthy.known;
  std::size_t silent = 0;
  for (std::size_t left = 0; left < all.size(); ++left) {
    healthy.known = all;
    healthy.known.erase(healthy.known.begin() + static_cast<std::ptrdiff_t>(left));
    const Diagnosis sure = Diagnose(predictor, healthy);
    silent += sure.next ? 0 : 1;
    EXPECT_TRUE(!sure.next || sure.next->bits > 0.02) << sure.next->text;
  }
  EXPECT_GT(silent, all.size() / 2);
}

}  // namespace
}  // namespace stepcast
