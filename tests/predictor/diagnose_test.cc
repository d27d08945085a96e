// Diagnoses of causes that were planted, of what people have reported, and of nothing.
#include "predictor/diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "data/io/machines.h"
#include "data/values/placement.h"
#include "data/workloads/catalog.h"
#include "predictor/diagnose/hypotheses.h"
#include "tests/support/devices.h"
#include "tests/support/wide_csv.h"

namespace stepcast {
namespace {

using internal::Forecaster;
using internal::HypothesesOf;
using internal::Hypothesis;

constexpr double kNoise = 0.05;
// What people write about: a step that takes half as long again as it should.
constexpr double kNoticed = 1.5;
// Measurements that are taken because the diagnosis asks for them.
constexpr int kRounds = 3;

template <class T>
const T& OneOf(const std::vector<T>& all, std::mt19937* random) {
  return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(*random)];
}

struct Job {
  Cluster cluster;
  Workload workload;
  Device device;
  Plan plan;

  Predictor MakePredictor() const { return {cluster, workload, device}; }
};

Job RandomJob(std::mt19937* random) {
  static const std::vector<std::string> kWorkloads = {"resnet50", "vgg16", "bert_base",
                                                      "mobilenet_v2", "inception_v3"};
  static const std::vector<std::string> kDevices = {"t4", "p100", "v100", "a100"};
  static const std::vector<double> kRates = {1, 10, 25, 100};
  Job job;
  static const std::vector<Device> kSheets =
      ReadDevices(STEPCAST_SOURCE_DIR "/data/machines/gpus.yaml");
  job.device = *FindDevice(kSheets, OneOf(kDevices, random));
  job.workload = *FindWorkload(OneOf(kWorkloads, random));
  job.cluster.name = "random";
  job.cluster.device = job.device.name;
  job.cluster.nodes = 64;
  job.cluster.devices_per_node = OneOf<int>({1, 2, 4, 8}, random);
  job.plan.placement.assign(static_cast<std::size_t>(OneOf<int>({2, 3, 4, 8, 16}, random)),
                            job.cluster.devices_per_node);
  job.plan.local_batch = OneOf<int>({8, 16, 32, 64, 128}, random);
  job.plan.link.bandwidth = GigabitsPerSecond(OneOf(kRates, random));
  if (OneOf<int>({0, 0, 0, 1}, random) == 1) {
    job.plan.strategy = Strategy::kPsSync;
    job.plan.servers = OneOf<int>({1, 2, 4}, random);
  }
  return job;
}

Plan AloneOf(const Plan& plan) {
  Plan alone;
  alone.strategy = Strategy::kNone;
  alone.local_batch = plan.local_batch;
  return alone;
}

// A job with its parameters, and what is wrong with it.
class Truth {
 public:
  Truth(const Job& job, std::mt19937* random)
      : predictor_(job.MakePredictor()), model_(predictor_, job.plan, {kNoise, false}) {
    std::normal_distribution<double> normal;
    const Eigen::LDLT<Eigen::MatrixXd> root(model_.covariance());
    Eigen::VectorXd z(model_.mean().size());
    for (Eigen::Index i = 0; i < z.size(); ++i) z[i] = normal(*random);
    z = root.vectorD().cwiseMax(0).cwiseSqrt().cwiseProduct(z);
    theta_ = model_.mean() + root.transpositionsP().transpose() * (root.matrixL() * z);
    const Measurement row = Measurement::Step(job.plan, {});
    healthy_ = std::exp(model_.Of(row, {}, 1, theta_).log_value);
  }

  // Whether the cause, to a random degree, makes the step so much longer that somebody notices.
  bool Plant(Cause cause, std::mt19937* random) {
    std::vector<Hypothesis> forms;
    for (const Hypothesis& one : HypothesesOf(predictor_, model_.plan(), true)) {
      if (one.cause == cause) forms.push_back(one);
    }
    if (forms.empty()) return false;
    planted_ = OneOf(forms, random);
    x_ = planted_.low;
    if (planted_.log_sd > 0) {
      std::normal_distribution<double> degree(0, planted_.log_sd);
      do {
        x_ = std::exp(std::abs(degree(*random)));
      } while (x_ < planted_.low || x_ > planted_.high);
    } else if (planted_.has_degrees()) {
      x_ = std::exp(std::uniform_real_distribution<double>(std::log(planted_.low),
                                                           std::log(planted_.high))(*random));
    }
    const double step =
        std::exp(model_.Of(Measurement::Step(model_.plan(), {}), planted_, x_, theta_).log_value);
    return cause == Cause::kNothing || step > kNoticed * healthy_;
  }

  Measurement Measure(Measurement measurement, std::mt19937* random) const {
    std::normal_distribution<double> normal;
    const auto forecast = model_.Of(measurement, planted_, x_, theta_);
    const double noise = measurement.what == Measured::kStep ? kNoise : forecast.log_sd;
    measurement.value = std::exp(forecast.log_value + noise * normal(*random));
    return measurement;
  }

  const Predictor& predictor() const { return predictor_; }
  const Plan& plan() const { return model_.plan(); }

 private:
  Predictor predictor_;
  Forecaster model_;
  Eigen::VectorXd theta_;
  double healthy_ = 0;
  Hypothesis planted_;
  double x_ = 1;
};

auto Find(const Diagnosis& diagnosis, Cause cause) {
  return std::find_if(diagnosis.causes.begin(), diagnosis.causes.end(),
                      [&](const ExplainedBy& one) { return one.cause == cause; });
}

int RankOf(const Diagnosis& diagnosis, Cause cause) {
  return static_cast<int>(Find(diagnosis, cause) - diagnosis.causes.begin());
}

// One job's own draws, whatever was asked about others.
std::mt19937 RandomOf(unsigned sample, Cause cause, int job) {
  std::seed_seq seeds = {sample, static_cast<unsigned>(cause), static_cast<unsigned>(job)};
  return std::mt19937(seeds);
}

// Of so many jobs, those in which the planted cause is first, and first or second, after as many
// measurements as have been asked for.
struct Score {
  int jobs = 0;
  std::array<int, kRounds + 1> first{};
  std::array<int, kRounds + 1> second{};
  int contradicted = 0;  // where all that was measured is said not to go together
};

Score Try(Cause cause, int jobs, unsigned sample, int rounds = kRounds) {
  Score score;
  for (int job = 0; score.jobs < jobs; ++job) {
    std::mt19937 own = RandomOf(sample, cause, job);
    std::mt19937* random = &own;
    Truth truth(RandomJob(random), random);
    if (!truth.Plant(cause, random)) continue;
    ++score.jobs;
    Complaint complaint{truth.plan(), {}, {}};
    complaint.step = Seconds(truth.Measure(Measurement::Step(truth.plan(), {}), random).value);
    complaint.known.push_back(truth.Measure(Measurement::Step(AloneOf(truth.plan()), {}), random));
    for (int round = 0; round <= rounds; ++round) {
      const Diagnosis diagnosis = Diagnose(truth.predictor(), complaint, {kNoise, rounds > 0});
      const int rank = RankOf(diagnosis, cause);
      const bool is_last = round == rounds || !diagnosis.next;
      for (int at = round; at <= (is_last ? rounds : round); ++at) {
        score.first[static_cast<std::size_t>(at)] += rank == 0 ? 1 : 0;
        score.second[static_cast<std::size_t>(at)] += rank <= 1 ? 1 : 0;
      }
      if (is_last) {
        score.contradicted += diagnosis.at_odds.empty() ? 0 : 1;
        break;
      }
      complaint.known.push_back(truth.Measure(diagnosis.next->measurement, random));
    }
  }
  return score;
}

// Whether so many jobs are that share of all, as far as a sample of so many can tell.
bool IsAtLeast(double share, int right, int jobs) {
  const double sd = std::sqrt(share * (1 - share) / jobs);
  return right >= (share - 2 * sd) * jobs;
}

TEST(Diagnose, FindsPlantedCauses) {
  constexpr unsigned kSample = 1;  // 230 of the 760 jobs of docs/howto/slow-training.md
  Score all;
  constexpr int kEach = 23;  // of ten causes, 230 jobs
  for (int cause = 1; cause < kCauseCount; ++cause) {
    const Score score = Try(static_cast<Cause>(cause), kEach, kSample);
    std::cout << kCauseNames[cause] << ":";
    for (int round = 0; round <= kRounds; ++round) {
      const auto at = static_cast<std::size_t>(round);
      std::cout << "  " << score.first[at] << "+" << score.second[at] - score.first[at];
      all.first[at] += score.first[at];
      all.second[at] += score.second[at];
    }
    std::cout << "\n";
    all.jobs += score.jobs;
    all.contradicted += score.contradicted;
  }
  for (int round = 0; round <= kRounds; ++round) {
    const auto at = static_cast<std::size_t>(round);
    std::cout << "after " << round << " more: first " << 100.0 * all.first[at] / all.jobs
              << " %, first two " << 100.0 * all.second[at] / all.jobs << " %\n";
  }
  std::cout << all.contradicted << " contradicted\n";
  EXPECT_LT(all.contradicted, 0.1 * all.jobs) << "single causes contradict nothing";
  // With a step and the time of one device alone, most causes look alike; what is asked for tells
  // them apart. What is left are causes that what is believed of a device, a server or an overlap
  // explains as well: nobody can measure those from outside.
  EXPECT_TRUE(IsAtLeast(0.8, all.first[kRounds], all.jobs)) << all.first[kRounds];
  EXPECT_TRUE(IsAtLeast(0.9, all.second[kRounds], all.jobs)) << all.second[kRounds];
  EXPECT_LT(all.jobs - all.first[kRounds], 0.4 * (all.jobs - all.first[0]))
      << "what is asked for tells them apart";
}

// At once, and after what is asked for.
TEST(Diagnose, SaysWhereNothingIsWrong) {
  const Score at_once = Try(Cause::kNothing, 400, 1, 0);
  std::cout << at_once.first[0] << " of " << at_once.jobs << " at once\n";
  EXPECT_TRUE(IsAtLeast(0.9, at_once.first[0], at_once.jobs)) << at_once.first[0];
  const Score asked = Try(Cause::kNothing, 60, 2);
  std::cout << asked.first[kRounds] << " of " << asked.jobs << " after " << kRounds << " more\n";
  EXPECT_TRUE(IsAtLeast(0.9, asked.first[kRounds], asked.jobs)) << asked.first[kRounds];
}

// Whether half of what a step is too long by is the cause's own.
bool AddsMost(const ExplainedBy& one, const Diagnosis& diagnosis) {
  return std::log(one.step / (one.step - one.added)) >=
         0.5 * std::log(diagnosis.measured / diagnosis.expected);
}

// A step that is too long has a cause, though each be less likely than none; one that is as it
// should be has none.
TEST(Diagnose, WhatIsLikelierWrongThanNotHasACause) {
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), T4(), "t4");
  Complaint complaint;
  complaint.plan.placement = Placement(8, 1);
  complaint.plan.strategy = Strategy::kAllreduce;
  complaint.plan.local_batch = 64;
  complaint.plan.link.bandwidth = GigabitsPerSecond(10);
  const double expected = predictor.Predict(complaint.plan).step_time.si();
  int outweighed = 0;
  for (double times = 0.4; times < 8; times *= 1.08) {
    complaint.step = Seconds(times * expected);
    const Diagnosis diagnosis = Diagnose(predictor, complaint);
    const auto nothing = Find(diagnosis, Cause::kNothing);
    const auto likeliest = std::max_element(
        diagnosis.causes.begin(), diagnosis.causes.end(),
        [](const auto& a, const auto& b) { return a.probability < b.probability; });
    const bool too_long = complaint.step > diagnosis.high && nothing->probability < 0.5;
    const bool adds_most =
        std::any_of(diagnosis.causes.begin(), diagnosis.causes.end(),
                    [&](const ExplainedBy& one) { return AddsMost(one, diagnosis); });
    outweighed += too_long && adds_most && likeliest == nothing ? 1 : 0;
    EXPECT_EQ(
        nothing == diagnosis.causes.begin(),
        complaint.step <= diagnosis.expected || (likeliest == nothing && !(too_long && adds_most)))
        << times;
    const std::string verdict = VerdictOf(diagnosis);
    const bool is_nothing = verdict.find("nothing is wrong with it") != std::string::npos;
    EXPECT_FALSE(too_long && is_nothing) << times;
    EXPECT_EQ(verdict.find("as it should be") != std::string::npos && diagnosis.is_long(), false);
    const bool says_why = verdict.find("; that all is well, ") != std::string::npos;
    EXPECT_EQ(says_why, too_long && adds_most && likeliest == nothing) << verdict;
  }
  EXPECT_GT(outweighed, 0);
}

// A cause that the step needs is what it adds, and one that changes nothing is not named instead of
// nothing, nor any where the step is no longer than it should be.
TEST(Diagnose, ACauseThatIsNamedAddsWhatTheStepIsTooLongBy) {
  const Predictor predictor(Cluster(), *FindWorkload("alexnet"), std::nullopt);
  Complaint complaint;
  complaint.plan.local_batch = 32;
  for (const Placement& placement : {Placement{4}, Placement{1, 1, 1, 1}, Placement{4, 4}}) {
    complaint.plan.placement = placement;
    complaint.known = {Measurement::Step(AloneOf(complaint.plan), Seconds(0.12))};
    int named = 0;
    for (double step = 0.1; step < 20; step *= 1.2) {
      complaint.step = Seconds(step);
      const Diagnosis diagnosis = Diagnose(predictor, complaint);
      const ExplainedBy& first = diagnosis.causes.front();
      for (const ExplainedBy& one : diagnosis.causes) {
        EXPECT_GE(one.added.si(), -1e-9);
        EXPECT_LE(one.added, one.step);
        if (one.cause == Cause::kNothing) {
          EXPECT_EQ(one.added.si(), 0);
        }
      }
      if (first.cause == Cause::kNothing) continue;
      ++named;
      EXPECT_GT(complaint.step, diagnosis.expected);
      const bool outweighed = std::any_of(
          diagnosis.causes.begin(), diagnosis.causes.end(), [&](const ExplainedBy& one) {
            return one.cause == Cause::kNothing && one.probability > first.probability;
          });
      EXPECT_TRUE(!outweighed || AddsMost(first, diagnosis)) << VerdictOf(diagnosis);
    }
    EXPECT_GT(named, 0);
  }
}

// Where nothing is likeliest the verdict says how sure that is, unless the step is no longer than
// it should be; and nothing of a step that is too long is as it should be.
TEST(Diagnose, AVerdictOfNothingSaysHowLongTheStepIs) {
  Diagnosis diagnosis;
  diagnosis.low = Seconds(0.05);
  diagnosis.expected = Seconds(0.16);
  diagnosis.high = Seconds(0.5);
  diagnosis.causes.resize(1);
  diagnosis.causes[0].cause = Cause::kNothing;
  const auto verdict = [&](double measured, double probability) {
    diagnosis.measured = Seconds(measured);
    diagnosis.causes[0].probability = probability;
    return VerdictOf(diagnosis);
  };
  EXPECT_EQ(verdict(0.16, 0.3), "nothing slows it: the step is no longer than it should be");
  EXPECT_EQ(verdict(0.18, 0.3),
            "that nothing is wrong is likeliest (30 % sure): the step is within the 90 % interval "
            "of a healthy cluster");
  EXPECT_EQ(verdict(0.18, 0.6),
            "nothing is wrong with it (60 % sure): the step is as it should be");
  EXPECT_EQ(verdict(0.6, 0.6),
            "that nothing is wrong is likeliest (60 % sure), though the step is longer than the 90 "
            "% interval of a healthy cluster");
  diagnosis.causes[0].cause = Cause::kLink;
  diagnosis.causes[0].size.text = "links are slow";
  EXPECT_EQ(verdict(0.6, 1e-13), "links are slow (under 0.1 % sure)");
}

// Devices of one host that exchange too slowly, as through one lane of a slot, are told from one
// host's network, its input and its compute.
TEST(Diagnose, TellsASlowExchangeWithinAHost) {
  const Predictor predictor(Cluster(), *FindWorkload("bert_base"), std::nullopt);
  Complaint complaint;
  complaint.plan.placement = {4};
  complaint.plan.local_batch = 8;
  complaint.known = {Measurement::Step(AloneOf(complaint.plan), Seconds(0.2))};
  const auto diagnose = [&](double rate) {
    const double exchange = 1.5 * 438e6 / (rate * 1e9);  // 2 (4 - 1)/4 of 110 M parameters
    complaint.step = Seconds(0.2 + exchange);
    Measurement alone = Measurement::Step(complaint.plan, Seconds(exchange));
    alone.exchange_alone = true;
    complaint.known.resize(1);
    complaint.known.push_back(alone);
    return Diagnose(predictor, complaint);
  };
  for (const double rate : {0.1, 0.2, 0.4}) {
    const Diagnosis slow = diagnose(rate);
    const ExplainedBy& first = slow.causes.front();
    EXPECT_EQ(first.cause, Cause::kDeviceLink) << VerdictOf(slow);
    EXPECT_EQ(first.size.unit, "GB/s");
    EXPECT_NEAR(first.size.value / rate, 1, 0.3);
    EXPECT_NE(VerdictOf(slow).find("where 3.8 GB/s are taken, as nobody states them"),
              std::string::npos)
        << VerdictOf(slow);
    EXPECT_TRUE(std::any_of(slow.remedies.begin(), slow.remedies.end(), [](const Remedy& remedy) {
      return remedy.repairs && remedy.text.find("nvidia-smi topo -m") != std::string::npos;
    }));
  }
  for (const double rate : {3.0, 12.0}) {
    EXPECT_EQ(diagnose(rate).causes.front().cause, Cause::kNothing) << rate;
  }
}

// Where one part of a step takes over from another, whole steps of the search go to and fro.
TEST(Diagnose, WhatParametersCanExplainIsExplained) {
  const Predictor predictor(Cluster(), *FindWorkload("gpt2_large"), std::nullopt);
  Complaint complaint;
  complaint.plan.placement = {2, 2};
  complaint.plan.local_batch = 1;
  complaint.plan.shard = Shard::kParameters;
  Plan node = complaint.plan;
  node.placement = {2};
  complaint.known = {Measurement::Step(node, Seconds(2.0))};
  complaint.step = Seconds(8.0);
  const double expected = Diagnose(predictor, complaint).expected.si();
  for (double times = 0.5; times < 2; times *= 1.1) {
    complaint.step = Seconds(times * expected);
    const Diagnosis diagnosis = Diagnose(predictor, complaint);
    const auto nothing = Find(diagnosis, Cause::kNothing);
    EXPECT_LT(std::abs(nothing->surprise), 1.5) << times;
  }
}

// What eight connections carry, and a step that takes one, a long round trip explains as well as a
// cap of flows does. That is known only where the search for the likeliest parameters of each
// degree does not begin where those of the degree before were left; flows are reported twice as
// often.
TEST(Diagnose, ALongRoundTripHasItsChanceBesideACapOfFlows) {
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), T4(), "t4");
  Complaint complaint;
  complaint.plan.placement = {1, 1};
  complaint.plan.local_batch = 64;
  complaint.plan.link.bandwidth = GigabitsPerSecond(100);
  complaint.step = Seconds(0.93);
  complaint.known = {Measurement::Step(AloneOf(complaint.plan), Seconds(0.275)),
                     Measurement::Rate(GigabitsPerSecond(8.5), 8)};
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  const auto probability = [&](Cause cause) { return Find(diagnosis, cause)->probability; };
  EXPECT_GT(probability(Cause::kLatency), 0.2 * probability(Cause::kFlow));
  EXPECT_LT(probability(Cause::kNothing), 0.05);
}

// A device alone may show what is wrong with all: then it is named, though the whole takes no
// longer than its parts let expect.
TEST(Diagnose, NamesWhatPartsOfTheJobShow) {
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), T4(), "t4");
  Complaint complaint;
  complaint.plan.placement = {1, 1};
  complaint.plan.local_batch = 64;
  complaint.plan.link.bandwidth = GigabitsPerSecond(25);
  Plan alone = AloneOf(complaint.plan);
  const double healthy = predictor.PredictStep(alone).total().si();
  const auto add = [&](int batch, double step) {
    alone.local_batch = batch;
    complaint.known.push_back(Measurement::Step(alone, Seconds(step)));
  };
  const double launches = 5 * healthy;
  add(64, launches + healthy);
  add(16, launches + healthy / 4);
  complaint.step = Seconds(launches + healthy);  // with an exchange that hides
  const Diagnosis diagnosis = Diagnose(predictor, complaint);
  EXPECT_LE(diagnosis.measured, diagnosis.expected);
  EXPECT_EQ(diagnosis.causes.front().cause, Cause::kBatch) << VerdictOf(diagnosis);
  EXPECT_NEAR(diagnosis.causes.front().size.value, 1e3 * launches, 200 * launches);
  // Where they show nothing, there is nothing.
  complaint.known.clear();
  add(64, healthy);
  add(16, healthy / 4);
  complaint.step = Seconds(healthy);
  EXPECT_EQ(Diagnose(predictor, complaint).causes.front().cause, Cause::kNothing);
}

// The step of one worker is all that is known of the compute of a network known by its size: a
// cause is not likelier for explaining that.
TEST(Diagnose, TheTimeOfAnUnknownNetworkIsWhatItIs) {
  Workload workload;
  workload.name = "network";
  workload.parameters = workload.trainable_parameters = 7'000'000'000;
  workload.gradient_bytes = Bytes(4.0 * 7e9);
  for (const double alone : {0.02, 0.2, 2.0, 20.0}) {
    const Predictor predictor(Cluster(), workload, std::nullopt);
    Complaint complaint;
    complaint.plan.placement = Placement(16, 1);
    complaint.plan.local_batch = 1;
    complaint.plan.link.bandwidth = GigabitsPerSecond(10);
    complaint.known = {Measurement::Step(AloneOf(complaint.plan), Seconds(alone))};
    complaint.step = Seconds(1.0);
    complaint.step = Diagnose(predictor, complaint).expected * 1.5;  // within the interval
    const Diagnosis diagnosis = Diagnose(predictor, complaint);
    EXPECT_LT(diagnosis.measured, diagnosis.high);
    EXPECT_EQ(diagnosis.causes.front().cause, Cause::kNothing) << VerdictOf(diagnosis);
    EXPECT_GT(diagnosis.causes.front().probability, 0.5) << VerdictOf(diagnosis);
  }
}

// A slip in what was typed in leaves no cause, and then none is named.
TEST(Diagnose, NamesWhatIsAtOdds) {
  const std::vector<Device> sheets = ReadDevices(STEPCAST_SOURCE_DIR "/data/machines/gpus.yaml");
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), *FindDevice(sheets, "v100"));
  Complaint complaint;
  complaint.plan.placement = {2, 2};
  complaint.plan.local_batch = 32;
  complaint.plan.link.bandwidth = GigabitsPerSecond(10);
  complaint.step = Seconds(0.5);
  const auto at_odds = [&](std::vector<Measurement> known) {
    complaint.known = std::move(known);
    const Diagnosis diagnosis = Diagnose(predictor, complaint);
    const std::string verdict = VerdictOf(diagnosis);
    EXPECT_EQ(diagnosis.at_odds.empty(), diagnosis.contradiction.empty());
    EXPECT_EQ(diagnosis.at_odds.empty(), !diagnosis.remedies.empty()) << verdict;
    EXPECT_EQ(diagnosis.at_odds.empty(), verdict.find("no single cause meets") != 0) << verdict;
    for (const std::string& text : diagnosis.at_odds) {
      EXPECT_NE(verdict.find(text), std::string::npos) << verdict;
    }
    return diagnosis.at_odds;
  };
  using Texts = std::vector<std::string>;
  const Measurement fast = Measurement::Rate(GigabitsPerSecond(9.0), 8);
  EXPECT_EQ(at_odds({}), Texts());
  EXPECT_EQ(at_odds({fast}), Texts());
  // Either may be the slip.
  EXPECT_EQ(at_odds({Measurement::Rate(GigabitsPerSecond(0.8), 8)}),
            (Texts{"the rate of 800 Mbit/s of 8 connections", "the step of 500 ms of 4 workers"}));
  // All but one go together.
  EXPECT_EQ(at_odds({fast, Measurement::RoundTrip(Seconds(1.0))}), Texts{"the round trip of 1 s"});
  // No link carries more than its rate, whatever is wrong.
  EXPECT_EQ(at_odds({Measurement::Rate(GigabitsPerSecond(20.0), 1)}),
            Texts{"the rate of 20 Gbit/s of one connection"});
}

// Packets are lost in most networks: a few of them rule nothing else out, nor do they contradict
// a step that something else makes long. Many are a cause.
TEST(Diagnose, AFewLostPacketsRuleNothingOut) {
  const std::vector<Device> sheets = ReadDevices(STEPCAST_SOURCE_DIR "/data/machines/gpus.yaml");
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), *FindDevice(sheets, "v100"));
  Complaint complaint;
  complaint.plan.placement = {1, 1};
  complaint.plan.local_batch = 128;
  complaint.plan.link.bandwidth = GigabitsPerSecond(1.0);
  const double expected = predictor.Predict(complaint.plan).step_time.si();
  for (const double times : {1.1, 1.5, 7.0}) {
    complaint.step = Seconds(times * expected);
    for (const double packets : {1e5, 2e5, 1e6}) {
      complaint.known = {Measurement::Loss(10 / packets, packets)};
      const Diagnosis diagnosis = Diagnose(predictor, complaint);
      EXPECT_TRUE(diagnosis.at_odds.empty()) << VerdictOf(diagnosis);
      EXPECT_LT(Find(diagnosis, Cause::kLoss)->probability, 0.9);
    }
  }
  complaint.known = {Measurement::Loss(0.03, 1e5)};
  const Diagnosis lossy = Diagnose(predictor, complaint);
  EXPECT_EQ(lossy.causes.front().cause, Cause::kLoss) << VerdictOf(lossy);
}

// What connections carry is a cause of its own where somebody knows what the links could: by their
// rate, or by the rate of several connections. A single one tells of itself alone.
TEST(Diagnose, FlowsAreTakenForSlowBesideLinksThatAreKnown) {
  const std::vector<Device> sheets = ReadDevices(STEPCAST_SOURCE_DIR "/data/machines/gpus.yaml");
  const Predictor predictor(Cluster(), *FindWorkload("resnet50"), *FindDevice(sheets, "v100"));
  Complaint complaint;
  complaint.plan.placement = {2, 2};
  complaint.plan.local_batch = 32;
  complaint.step = Seconds(2.0);
  const auto may_be_flows = [&](std::vector<Measurement> known) {
    complaint.known = std::move(known);
    const Diagnosis diagnosis = Diagnose(predictor, complaint);
    const auto is = [&](Cause cause) {
      return RankOf(diagnosis, cause) < static_cast<int>(diagnosis.causes.size());
    };
    EXPECT_TRUE(is(Cause::kLink));
    return is(Cause::kFlow);
  };
  EXPECT_FALSE(may_be_flows({}));
  EXPECT_FALSE(may_be_flows({Measurement::RoundTrip(Milliseconds(0.2))}));
  EXPECT_FALSE(may_be_flows({Measurement::Rate(GigabitsPerSecond(3.0), 1)}));
  for (const int connections : {2, 8}) {
    EXPECT_TRUE(may_be_flows({Measurement::Rate(GigabitsPerSecond(3.0), connections)}))
        << connections;
  }
  complaint.plan.link.bandwidth = GigabitsPerSecond(3.0);
  EXPECT_TRUE(may_be_flows({}));
}

// What people reported, as they told it: threads.csv.

// One row; none where the thread does not tell enough to type in.
std::optional<Complaint> ReadThread(const WideRow& row) {
  if (!row.Has("measured_s")) return std::nullopt;
  Complaint complaint;
  Plan& plan = complaint.plan;
  const auto placement = [&](const char* column) {
    return ParsePlacement(row.Text(column), row.place());
  };
  plan.placement = placement("placement");
  plan.local_batch = row.Count("local_batch");
  if (row.Has("bandwidth_gbit")) {
    plan.link.bandwidth = GigabitsPerSecond(row.Number("bandwidth_gbit"));
  }
  if (row.Has("rdma")) plan.link.transport = Transport::kRdma;
  complaint.step = Seconds(row.Number("measured_s"));
  const auto add = [&](const char* column, const Plan& of) -> Measurement* {
    if (!row.Has(column)) return nullptr;
    complaint.known.push_back(Measurement::Step(of, Seconds(row.Number(column))));
    return &complaint.known.back();
  };
  add("one_worker_s", AloneOf(plan));
  if (row.Has("reference")) {
    Plan reference = plan;
    reference.placement = placement("reference");
    add("reference_s", reference);
  }
  if (Measurement* made_up = add("synthetic_s", plan)) made_up->synthetic_input = true;
  if (row.Has("flow_rate_gbit")) {
    complaint.known.push_back(
        Measurement::Rate(GigabitsPerSecond(row.Number("flow_rate_gbit")), 1));
  }
  return complaint;
}

Workload WorkloadOf(const WideRow& row) {
  if (row.Has("workload")) return *FindWorkload(row.Text("workload"));
  Workload network;
  network.name = "network";
  network.parameters = network.trainable_parameters =
      static_cast<std::int64_t>(row.Number("parameters"));
  network.gradient_bytes = Bytes(kBytesPerFloat * row.Number("parameters"));
  return network;
}

// Whether the likeliest cause is the thread's, and its size within a factor of 1.5.
bool Solves(const Diagnosis& diagnosis, const WideRow& row) {
  constexpr double kWithin = 1.5;
  const ExplainedBy& first = diagnosis.causes.front();
  std::string name = kCauseNames[static_cast<int>(first.cause)];
  // A network that nobody need be surprised by is the cause all the same.
  if (first.cause == Cause::kNothing && row.Has("size")) name = diagnosis.binding.part;
  if ((" " + row.Text("cause") + " ").find(" " + name + " ") == std::string::npos) return false;
  if (!row.Has("size")) return true;
  const double ratio = first.size.value / row.Number("size");
  return ratio < kWithin && ratio > 1 / kWithin;
}

// What is shared out, or rarely exchanged, is diagnosed as any plan is.
TEST(Diagnose, GoesWithEveryPlanThatExchanges) {
  Cluster cluster;
  cluster.name = "four";
  cluster.device = "t4";
  cluster.nodes = 4;
  const Predictor predictor(cluster, *FindWorkload("resnet50"), std::nullopt);
  const auto diagnose = [&](Shard shard, int local_steps) {
    Complaint complaint;
    complaint.plan.placement = {1, 1, 1, 1};
    complaint.plan.local_batch = 32;
    complaint.plan.shard = shard;
    complaint.plan.local_steps = local_steps;
    complaint.step = predictor.PredictStep(complaint.plan).total() * 3.0;
    return Diagnose(predictor, complaint);
  };
  EXPECT_FALSE(diagnose(Shard::kParameters, 1).remedies.empty());
  EXPECT_FALSE(diagnose(Shard::kNone, 8).remedies.empty());
}

TEST(Diagnose, SolvesThreads) {
  int told = 0;
  int solved = 0;
  for (const WideRow& row : ReadWide(STEPCAST_SOURCE_DIR "/tests/predictor/threads.csv")) {
    const std::optional<Complaint> complaint = ReadThread(row);
    if (!complaint) {
      std::cout << "not told  " << row.Text("thread") << "\n";
      continue;
    }
    ++told;
    Cluster cluster;
    cluster.name = cluster.device = "theirs";
    cluster.nodes = 64;
    const Predictor predictor(cluster, WorkloadOf(row), std::nullopt);
    const Diagnosis diagnosis = Diagnose(predictor, *complaint);
    const bool right = Solves(diagnosis, row);
    solved += right ? 1 : 0;
    std::cout << (right ? "solved    " : "NOT       ") << row.Text("thread") << "  "
              << VerdictOf(diagnosis) << "\n";
  }
  std::cout << solved << " of " << told << "\n";
  EXPECT_EQ(told, 12);
  // Of horovod#396 the exchange within the nodes is taken for what sets the pace; of horovod#416
  // what four devices of a host lose to each other, a quarter of a step, for launches.
  EXPECT_GE(solved, 10);
}

}  // namespace
}  // namespace stepcast
