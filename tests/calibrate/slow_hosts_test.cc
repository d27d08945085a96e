// Hosts that compute slower than the others: found where runs show them, and nowhere else.
#include "calibrate/slow_hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calibrate/drift.h"
#include "calibrate/host_findings.h"
#include "calibrate/next_runs.h"
#include "calibrate/online/online_calibration.h"
#include "calibrate/text.h"
#include "data/io/machines.h"
#include "data/record/host_texts.h"
#include "model/step/parameter_specs.h"
#include "predictor/predictor.h"
#include "tests/calibrate/synthetic_runs.h"

namespace stepcast {
namespace {

constexpr double kNoise = 0.02;

using Hosts = std::vector<std::string>;

Truth TruthOf(const Hosts& hosts) {
  Truth truth = PlausibleTruth();
  truth.workloads = {{"resnet50", truth.workloads.at("resnet50")}};
  for (const std::string& host : hosts) truth.host_links[host] = GigabitsPerSecond(9.0);
  return truth;
}

Plan OnHosts(const Hosts& hosts, int batch) {
  Plan plan = AllreducePlan(Placement(hosts.size(), 1), batch);
  plan.hosts = hosts;
  return plan;
}

// Each host alone twice, and what else there is.
SyntheticProblem AloneTwice(const Truth& truth, std::uint64_t seed,
                            const std::vector<Hosts>& together = {}) {
  SyntheticProblem synthetic(truth);
  Noise noise(seed);
  for (const auto& [host, link] : truth.host_links) {
    for (const int batch : {32, 32}) {
      synthetic.Add("resnet50", OnHosts({host}, batch), kNoise * noise.Next());
    }
  }
  for (const Hosts& hosts : together) {
    synthetic.Add("resnet50", OnHosts(hosts, 32), kNoise * noise.Next());
  }
  return synthetic;
}

std::vector<const ParameterEstimate*> Slowdowns(const Cluster& cluster) {
  std::vector<const ParameterEstimate*> found;
  for (const ParameterEstimate& p : cluster.calibration->parameters) {
    if (p.name == kComputeSlowdownSpec.name) found.push_back(&p);
  }
  return found;
}

const Hosts kFour = {"n1", "n2", "n3", "n4"};

TEST(SlowHosts, OneMeasuredAloneTwiceIsFound) {
  for (const double factor : {1.3, 1.6, 3.0}) {
    Truth truth = TruthOf(kFour);
    truth.host_slowdowns["n3"] = factor;
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
      const Cluster cluster =
          Calibrate(AloneTwice(truth, seed, {{"n1", "n2"}, {"n1", "n4"}}).problem()).cluster;
      const auto slow = Slowdowns(cluster);
      ASSERT_EQ(slow.size(), 1U) << factor << ", seed " << seed;
      EXPECT_EQ(slow.front()->scope, "hosts n3");
      EXPECT_NEAR(std::log(slow.front()->value / factor), 0, 3 * slow.front()->log_sd);
      EXPECT_LT(slow.front()->log_sd, 0.08);
      EXPECT_LE(slow.front()->low, factor);
      EXPECT_GE(slow.front()->high, factor);
      EXPECT_EQ(slow.front()->runs, 2);
      EXPECT_EQ(slow.front()->runs_nearer, 2);
      const std::string finding = HostFindings(*cluster.calibration, cluster, {}).front();
      EXPECT_EQ(finding.find("n3 computes "), 0U) << finding;
      EXPECT_NE(finding.find(" times slower (2 of 2 runs)."), std::string::npos) << finding;
    }
  }
}

TEST(SlowHosts, HealthyHardwareHasNone) {
  int alarms = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SyntheticProblem synthetic =
        AloneTwice(TruthOf(kFour), seed, {{"n1", "n2"}, {"n3", "n4"}, {"n2", "n3"}, kFour});
    alarms += Slowdowns(Calibrate(synthetic.problem()).cluster).empty() ? 0 : 1;
  }
  EXPECT_LE(alarms, 1);
}

TEST(SlowHosts, TwoAreFoundOneAfterTheOther) {
  Truth truth = TruthOf({"n1", "n2", "n3", "n4", "n5", "n6"});
  truth.host_slowdowns = {{"n2", 1.4}, {"n5", 2.0}};
  const Cluster cluster = Calibrate(AloneTwice(truth, 1).problem()).cluster;
  const auto slow = Slowdowns(cluster);
  ASSERT_EQ(slow.size(), 2U);
  for (const ParameterEstimate* p : slow) {
    EXPECT_NEAR(std::log(p->value / truth.ValueOf(*p)), 0, 3 * p->log_sd) << p->scope;
  }
}

// Of a host's runs those count that it holds back, and among them those nearer to its factor.
TEST(SlowHosts, CountsTheRunsThatShowIt) {
  Truth truth = TruthOf({"n1", "n2", "n3", "n4", "n5", "n6"});
  truth.host_slowdowns = {{"n2", 1.4}, {"n5", 2.0}};
  SyntheticProblem synthetic = AloneTwice(truth, 1, {{"n2", "n5"}, {"n1", "n2"}});
  for (int i = 0; i < 4; ++i) synthetic.Add("resnet50", OnHosts({"n2"}, 32));
  // Once it was as fast as the others.
  synthetic.Add("resnet50", OnHosts({"n2"}, 32), -std::log(1.4));
  const Cluster cluster = Calibrate(synthetic.problem()).cluster;
  const auto slow = Slowdowns(cluster);
  ASSERT_EQ(slow.size(), 2U);
  for (const ParameterEstimate* p : slow) {
    const bool second = p->scope == "hosts n2";
    EXPECT_EQ(p->runs, second ? 8 : 3) << p->scope;
    EXPECT_EQ(p->runs_nearer, second ? 7 : 3) << p->scope;
  }
}

// However exact the runs are, and however many, a few hundredths more are no slow host.
TEST(SlowHosts, ALittleSlowerIsNone) {
  for (const double factor : {1.02, 1.07, 1.2}) {
    Truth truth = TruthOf(kFour);
    truth.host_slowdowns["n3"] = factor;
    SyntheticProblem synthetic(truth);
    for (int i = 0; i < 40; ++i) {
      for (const std::string& host : kFour) {
        synthetic.Add("resnet50", OnHosts({host}, 32), i % 2 == 0 ? 1e-4 : -1e-4);
      }
    }
    EXPECT_EQ(Slowdowns(Calibrate(synthetic.problem()).cluster).empty(), factor < 1.1) << factor;
  }
}

// A tenth more, or less, is the least that is told, however exact the runs are.
TEST(SlowHosts, BeginAtATenth) {
  for (const double factor : {1.09, 1.11}) {
    for (const bool faster : {false, true}) {
      Truth truth = TruthOf(kFour);
      truth.host_slowdowns["n3"] = faster ? 1 / factor : factor;
      SyntheticProblem synthetic(truth);
      for (int i = 0; i < 40; ++i) {
        for (const std::string& host : kFour) {
          synthetic.Add("resnet50", OnHosts({host}, 32), i % 2 == 0 ? 1e-4 : -1e-4);
        }
      }
      EXPECT_EQ(Slowdowns(Calibrate(synthetic.problem()).cluster).size(), factor > 1.1 ? 1U : 0U)
          << factor << (faster ? " faster" : " slower");
    }
  }
}

// Either may be the odd one: devices break rather than improve.
TEST(SlowHosts, OfTwoTheSlowerIsNamed) {
  Truth truth = TruthOf({"n1", "n2"});
  truth.host_slowdowns["n2"] = 1.5;
  const Cluster cluster = Calibrate(AloneTwice(truth, 1).problem()).cluster;
  const auto slow = Slowdowns(cluster);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow.front()->scope, "hosts n2");
  EXPECT_GT(slow.front()->value, 1.3);
}

TEST(SlowHosts, OneRunAloneDecidesNothing) {
  Truth truth = TruthOf(kFour);
  SyntheticProblem synthetic = AloneTwice(truth, 1);
  synthetic.problem().runs[4].step_time = synthetic.problem().runs[4].step_time * 1.5;
  EXPECT_TRUE(Slowdowns(Calibrate(synthetic.problem()).cluster).empty());
}

// Among many hosts chance alone makes one of them look slow, and a row that is far off is not
// enough by itself.
TEST(SlowHosts, AmongManyItTakesMore) {
  constexpr double kEach = 0.05;  // that rows of a host are apart, to either side
  const auto found = [](int hosts, double one, double other) {
    Truth truth = TruthOf({});
    for (int i = 0; i < hosts; ++i) {
      truth.host_links["n" + std::to_string(i)] = GigabitsPerSecond(9.0);
    }
    SyntheticProblem synthetic(truth);
    for (const auto& [host, link] : truth.host_links) {
      const bool slow = host == "n0";
      synthetic.Add("resnet50", OnHosts({host}, 32), slow ? one : kEach);
      synthetic.Add("resnet50", OnHosts({host}, 32), slow ? other : -kEach);
    }
    return !Slowdowns(Calibrate(synthetic.problem()).cluster).empty();
  };
  EXPECT_TRUE(found(4, 0.4 + kEach, 0.4 - kEach));
  EXPECT_FALSE(found(100, 0.4 + kEach, 0.4 - kEach));
  EXPECT_TRUE(found(100, 0.55 + kEach, 0.55 - kEach));
  EXPECT_FALSE(found(100, 1.2, 0.4));
}

TEST(SlowHosts, ForecastsSayAndCountIt) {
  Truth truth = TruthOf(kFour);
  truth.host_slowdowns["n3"] = 1.3;
  const Cluster fitted =
      Calibrate(AloneTwice(truth, 1, {{"n1", "n2"}, {"n1", "n4"}, {"n2", "n4"}}).problem()).cluster;
  // As files hold it.
  const Cluster cluster = ParseCluster(FormatCluster(fitted), "fitted.yaml");
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  const auto flag = [&](const Hosts& hosts) {
    Plan plan = OnHosts(hosts.empty() ? Hosts{"n1", "n2"} : hosts, 32);
    plan.hosts = hosts;
    for (const std::string& text : predictor.Predict(plan).flags) {
      if (text.find("computes") != std::string::npos) return text;
    }
    return std::string();
  };
  EXPECT_NE(flag({"n1", "n3"}).find("times slower (2 of 2 runs)"), std::string::npos);
  EXPECT_EQ(flag({"n1", "n2"}), "");
  EXPECT_NE(flag({}).find("no host is named"), std::string::npos);
  const double factor = Slowdowns(cluster).front()->value;
  const auto step = [&](const Hosts& hosts) {
    return predictor.Predict(OnHosts(hosts, 32)).step_time;
  };
  EXPECT_NEAR(step({"n3"}) / step({"n1"}), factor, 1e-9) << "all of a step alone is compute";
  EXPECT_EQ(step({"n2"}), step({"n1"}));
  EXPECT_GT(step({"n1", "n3"}), step({"n1", "n2"}));
  // What is not known of the factor widens the forecasts that depend on it, and no others.
  const auto width = [&](const Hosts& hosts) {
    return predictor.Predict(OnHosts(hosts, 32)).parameter_log_sd;
  };
  EXPECT_GT(width({"n3"}), 0);
  EXPECT_EQ(width({"n2"}), width({"n1"}));
}

TEST(SlowHosts, ProposedRunsShowThem) {
  const Cluster cluster = Calibrate(AloneTwice(TruthOf({"n1", "n2"}), 1).problem()).cluster;
  const BelievedModel model(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  const CalibratedRange& range = cluster.calibration->range;
  EXPECT_EQ(range.hosts_alone, (std::set<std::string>{"n1", "n2"}));
  NextRuns next;
  AddHostRuns(model, OnHosts(kFour, 32), range, {"n1", "n2", "n3", "n4"}, &next);
  ASSERT_EQ(next.runs.size(), 2U);
  EXPECT_EQ(next.runs[0].plan.hosts, Hosts{"n3"});
  EXPECT_EQ(next.runs[1].plan.hosts, Hosts{"n4"});
  for (const NextRun& run : next.runs) {
    EXPECT_EQ(run.plan.workers(), 1);
    EXPECT_EQ(run.plan.strategy, Strategy::kNone);
    EXPECT_GT(run.device_seconds, 0);
    EXPECT_NE(run.tells.find("computes like the others"), std::string::npos);
  }
  // Of several devices a node all are run together, as the target runs them; servers have none.
  Plan pairs = OnHosts(kFour, 32);
  pairs.placement = Placement(4, 2);
  for (const Strategy strategy : {Strategy::kAllreduce, Strategy::kRing, Strategy::kPsSync}) {
    pairs.strategy = strategy;
    pairs.servers = UsesServers(strategy) ? 2 : 0;
    NextRuns of_pairs;
    AddHostRuns(model, pairs, range, {"n3", "n4"}, &of_pairs);
    ASSERT_EQ(of_pairs.runs.size(), 2U);
    for (const NextRun& run : of_pairs.runs) {
      EXPECT_EQ(run.plan.workers(), UsesServers(strategy) ? 1 : 2);
      EXPECT_EQ(run.plan.strategy, UsesServers(strategy) ? Strategy::kNone : strategy);
    }
  }
  NextRuns of_one;
  AddHostRuns(model, OnHosts({"n1"}, 32), {}, {"n1"}, &of_one);
  EXPECT_TRUE(of_one.runs.empty()) << "one host has nobody to be compared with";
}

// ---- Elsewhere.

TEST(SlowHosts, OnlineLearningTakesThemOver) {
  Truth truth = TruthOf(kFour);
  truth.host_slowdowns["n3"] = 1.4;
  const Cluster cluster = CalibratedCluster(truth);
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  OnlineCalibration job(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
  for (const Hosts& hosts : {Hosts{"n3"}, Hosts{"n1", "n3"}, Hosts{"n1", "n2"}}) {
    const Plan plan = OnHosts(hosts, 32);
    // Each the first of its kind, from where the calibration stands.
    OnlineCalibration anew(cluster, *FindWorkload("resnet50"), std::nullopt, kSyntheticDevice);
    const Duration<> forecast = predictor.Predict(plan).step_time;
    EXPECT_NEAR(anew.Observe(plan, Seconds(0.2)).predicted / forecast, 1, 1e-12);
    // The host got worse.
    const bool slow = plan.hosts.back() == "n3";
    for (int i = 0; i < 30; ++i) job.Observe(plan, forecast * (slow ? 1.2 : 1.0));
  }
  const auto learnt = Slowdowns(job.cluster());
  ASSERT_EQ(learnt.size(), 1U);
  EXPECT_GT(learnt.front()->value, 1.42);
}

TEST(SlowHosts, ThatRecoverAreADrift) {
  Truth truth = TruthOf(kFour);
  truth.host_slowdowns["n3"] = 1.4;
  const std::vector<Hosts> together = {{"n1", "n2"}, {"n1", "n4"}, {"n3", "n4"}};
  const SyntheticProblem before = AloneTwice(truth, 1, together);
  DriftProblem problem;
  problem.cluster = Calibrate(before.problem()).cluster;
  problem.workloads = before.problem().workloads;
  problem.runs = AloneTwice(truth, 2, together).problem().runs;
  EXPECT_FALSE(CheckDrift(problem).stale);
  problem.runs = AloneTwice(TruthOf(kFour), 3, together).problem().runs;
  const DriftReport report = CheckDrift(problem);
  ASSERT_FALSE(report.drifts.empty()) << report.verdict;
  EXPECT_EQ(report.drifts.front().scope, "hosts n3");
  EXPECT_EQ(report.drifts.front().name, "compute_slowdown");
  EXPECT_NEAR(report.drifts.front().now, 1, 0.1);
}

TEST(SlowHosts, OneOfTwoThatNoRunTellsApart) {
  ParameterEstimate p;
  p.scope = "hosts n6+n7+n8";
  p.name = kComputeSlowdownSpec.name;
  p.value = 1.5;
  EXPECT_EQ(ComputeText(p), "n6, n7 or n8 computes 1.50 times slower");
  p.value = 0.5;
  EXPECT_EQ(ComputeText(p), "n6, n7 and n8 compute 2.00 times faster");
  p.scope = "hosts n6";
  EXPECT_EQ(ComputeText(p), "n6 computes 2.00 times faster");
}

// ---- What is said of links.

Calibration FittedLinks(const std::vector<ParameterEstimate>& links) {
  Calibration calibration;
  calibration.parameters = links;
  return calibration;
}

ParameterEstimate FittedLink(const std::string& scope, double gbit, int runs) {
  ParameterEstimate p;
  p.scope = scope;
  p.name = "link_bandwidth";
  p.unit = "Gbit/s";
  p.value = gbit;
  p.log_sd = 0.1;
  p.decided_by = DecidedBy::kData;
  p.runs = p.runs_nearer = runs;
  return p;
}

// Where no port is stated, others' links say what is slow.
TEST(HostFindings, DoubtWhatOneRunShows) {
  const auto findings = [](const std::string& scope, double gbit, int runs) {
    return HostFindings(
        FittedLinks({FittedLink(scope, gbit, runs), FittedLink("hosts n1+n2", 9.5, 0)}), {}, {});
  };
  EXPECT_EQ(findings("hosts n6+n8", 0.95, 2),
            (std::vector<std::string>{
                "n6 or n8 sits on a link of about 1 Gbit/s (fitted 950 Mbit/s, standard error 10 "
                "%): no run tells them apart.",
                "n1 and n2 sit on a link of about 10 Gbit/s (fitted 9.5 Gbit/s, standard error 10 "
                "%)."}));
  EXPECT_EQ(findings("hosts n6", 0.95, 1).front(),
            "n6 sits on a link of about 1 Gbit/s (fitted 950 Mbit/s, standard error 10 %). One run "
            "alone shows it, which something else may have slowed.");
  EXPECT_EQ(findings("hosts n6", 7, 1).front().find("One run"), std::string::npos)
      << "as fast as others: nothing to doubt";
}

// All pairs of three hosts at 5 of 50 Gbit/s: two links explain them, and the third is whatever is
// stated. None of the hosts is to blame.
TEST(HostFindings, BlameNoHostWhereAllLinksAreSlower) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(50.0);
  ParameterEstimate hidden = FittedLink("hosts n3", 50, 0);
  hidden.decided_by = DecidedBy::kPrior;
  const auto between = [](const std::vector<std::string>& hosts) {
    stepcast::Run run;
    run.plan.strategy = Strategy::kAllreduce;
    run.plan.placement.assign(hosts.size(), 1);
    run.plan.hosts = hosts;
    return run;
  };
  const std::vector<stepcast::Run> pairs = {between({"n1", "n2"}), between({"n1", "n3"}),
                                            between({"n2", "n3"}), between({"n3"})};
  const Calibration all =
      FittedLinks({FittedLink("hosts n2", 5.4, 4), FittedLink("hosts n1", 5.5, 4), hidden});
  EXPECT_EQ(HostFindings(all, cluster, pairs),
            (std::vector<std::string>{
                "No run between hosts reaches the 50 Gbit/s that the cluster file says: each has a "
                "link of n1 or n2, fitted at 5.4 Gbit/s to 5.5 Gbit/s. No host stands out: correct "
                "the rate, or look at what all links share."}));
  const auto blames = [&](const Calibration& calibration, const Cluster& stated,
                          const std::vector<stepcast::Run>& runs) {
    return !FindLinksBelowStated(calibration, stated, runs) &&
           HostFindings(calibration, stated, runs).front().find(" sits on a link of about ") !=
               std::string::npos;
  };
  EXPECT_FALSE(blames(all, cluster, pairs));
  EXPECT_FALSE(FindLinksBelowStated(all, cluster, {})) << "no run tells";
  // Hosts beside them whose pair reaches its rate, a link that does, and one that is slower than
  // all others.
  std::vector<stepcast::Run> others = pairs;
  others.push_back(between({"n3", "n4"}));
  EXPECT_TRUE(blames(all, cluster, others));
  EXPECT_TRUE(
      blames(FittedLinks({FittedLink("hosts n2", 5.4, 4), FittedLink("hosts n1", 48, 4), hidden}),
             cluster, pairs));
  EXPECT_TRUE(
      blames(FittedLinks({FittedLink("hosts n2", 5.4, 4), FittedLink("hosts n1", 0.9, 4), hidden}),
             cluster, pairs));
  EXPECT_TRUE(blames(FittedLinks({FittedLink("hosts n2", 5.4, 4), hidden}), cluster, pairs));
  // Each by a port of its own: they are told by that.
  Host own;
  own.name = "n1";
  own.link.bandwidth = GigabitsPerSecond(25.0);
  cluster.hosts = {own};
  EXPECT_TRUE(blames(all, cluster, pairs));
  EXPECT_TRUE(blames(all, {}, pairs)) << "nobody states a rate";
}

// Two links that are as stated are told one by one, more of them together.
TEST(HostFindings, CountLinksThatAreAsStated) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(10.0);
  std::vector<ParameterEstimate> links;
  for (std::size_t count = 1; count <= 4; ++count) {
    const double gbit = 9.7 - 0.1 * static_cast<double>(count);  // the last is the slowest
    links.push_back(FittedLink("hosts n" + std::to_string(count), gbit, 4));
    const std::vector<std::string> findings = HostFindings(FittedLinks(links), cluster, {});
    if (count <= 2) {
      EXPECT_EQ(findings.size(), count);
      for (const std::string& one : findings) {
        EXPECT_NE(one.find(" sits on a "), std::string::npos) << one;
      }
    } else {
      EXPECT_EQ(findings, (std::vector<std::string>{
                              std::to_string(count) +
                              " hosts sit on links as the cluster file says (the slowest fitted " +
                              RateText(GigabitsPerSecond(gbit)) + ")."}));
    }
  }
}

// A link that was left at its port's rate has just that.
TEST(HostFindings, TellOfAPortWhatNoRunTells) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(50.0);
  ParameterEstimate left = FittedLink("hosts n3", 49.9, 0);
  left.decided_by = DecidedBy::kPrior;
  EXPECT_EQ(HostFindings(FittedLinks({left}), cluster, {}).front(),
            "n3 sits on a port of 50 Gbit/s, and the runs show nothing slower. The runs hardly "
            "tell.");
}

// Sizes of messages between the same hosts are one run of a benchmark; steps of a job are each one.
TEST(HostFindings, CountTheRunsOfASlowLink) {
  Truth truth = TruthOf({"n1", "n2", "n3", "n4"});
  truth.host_links["n3"] = GigabitsPerSecond(0.9);
  SyntheticProblem synthetic =
      AloneTwice(truth, 1, {{"n1", "n2"}, {"n1", "n2"}, {"n1", "n4"}, {"n2", "n4"}, {"n2", "n3"}});
  const auto runs = [&] {
    const Cluster cluster = Calibrate(synthetic.problem()).cluster;
    const Calibration& calibration = *cluster.calibration;
    const auto at = calibration.Find("hosts n3", "link_bandwidth");
    return at ? calibration.parameters[static_cast<std::size_t>(*at)].runs : -1;
  };
  EXPECT_EQ(runs(), 1);
  synthetic.Add("resnet50", OnHosts({"n3", "n1"}, 32));
  EXPECT_EQ(runs(), 2);
  Workload message = synthetic.problem().workloads.at("resnet50");
  message.name = "message";
  message.communication_only = true;
  synthetic.problem().workloads["message"] = message;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto run = synthetic.problem().runs.back();
    run.workload = "message";
    run.step_time = run.step_time * (0.8 - 0.01 * repeat);
    // Whichever host is named first.
    if (repeat == 1) std::reverse(run.plan.hosts.begin(), run.plan.hosts.end());
    synthetic.problem().runs.push_back(run);
  }
  EXPECT_EQ(runs(), 3) << "one of messages";
}

TEST(RateText, HasThreeDigitsOfItsUnit) {
  EXPECT_EQ(RateText(MegabitsPerSecond(999.4)), "999 Mbit/s");
  EXPECT_EQ(RateText(MegabitsPerSecond(999.6)), "1 Gbit/s");
  EXPECT_EQ(RateText(MegabitsPerSecond(1254.0)), "1.25 Gbit/s");
}

TEST(HostFindings, NameNoRateBeyondThePort) {
  Cluster cluster = SyntheticCluster();
  cluster.link.bandwidth = GigabitsPerSecond(10.0);
  Host own;
  own.name = "d";
  own.link.bandwidth = GigabitsPerSecond(25.0);
  cluster.hosts = {own};
  const auto finding = [&](const std::string& scope, double value, double low) {
    ParameterEstimate p;
    p.scope = scope;
    p.name = "link_bandwidth";
    p.unit = "Gbit/s";
    p.value = value;
    p.low = low;
    p.log_sd = 0.1;
    p.decided_by = DecidedBy::kData;
    Calibration calibration;
    calibration.parameters = {p};
    return HostFindings(calibration, cluster, {}).front();
  };
  EXPECT_EQ(finding("hosts a+b", 17, 9),
            "a and b sit on ports of 10 Gbit/s, and the runs show nothing slower.");
  EXPECT_EQ(finding("hosts a+d", 17, 9),
            "a and d sit on ports of 10 Gbit/s, and the runs show nothing slower.")
      << "the slower of their ports holds both back";
  EXPECT_EQ(finding("hosts a", 11, 9),
            "a sits on a port of 10 Gbit/s, and the runs show nothing slower.");
  EXPECT_EQ(finding("hosts a", 40, 20),
            "a carries more than the port of 10 Gbit/s that the cluster file states: correct it.");
  EXPECT_EQ(finding("hosts d", 17, 9).find("d sits on a link of about 25 Gbit/s"), 0U)
      << "its own port is of 25";
  EXPECT_EQ(
      finding("hosts a+b+c", 0.95, 0.9),
      "a, b or c sits on a link of about 1 Gbit/s (fitted 950 Mbit/s, standard error 10 %): no "
      "run tells them apart. The cluster file says 10 Gbit/s: look at the cable and the port.");
  cluster.link = {};
  EXPECT_EQ(finding("hosts a", 17, 9).find("a sits on a link of about 25 Gbit/s"), 0U)
      << "nobody states a port";
}

}  // namespace
}  // namespace stepcast
