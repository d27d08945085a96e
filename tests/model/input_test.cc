// Steps that wait for samples: against a simulation of a loader that works ahead, by hand, and in
// the limits.
#include "model/overlap/input.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "data/record/machine.h"
#include "model/step/answer.h"
#include "model/step/step.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

// Facts of any plan that is trained, and of the parameters that it is asked with.
StepFacts AnyFacts() {
  Plan plan;
  plan.strategy =
      *rc::gen::element(Strategy::kNone, Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                        Strategy::kBytePs, Strategy::kPsSync, Strategy::kPsAsync);
  plan.placement = Placement(static_cast<std::size_t>(*Whole(1, 20)), *Whole(1, 4));
  plan.servers = UsesServers(plan.strategy) ? *Whole(1, 4) : 0;
  plan.local_batch = *Whole(1, 256);
  plan.accumulation_steps = *Whole(1, 5);
  if (plan.strategy == Strategy::kPsAsync && *Whole(0, 1) == 1) {
    plan.server.staleness_bound = *Whole(0, 5);
  }
  Workload workload;
  workload.name = "mine";
  workload.gradient_bytes = Bytes(*LogUniform(1e5, 1e9));
  workload.parameters = workload.trainable_parameters =
      static_cast<std::int64_t>(workload.gradient_bytes.si() / kBytesPerFloat);
  return MakeStepFacts({}, plan, workload,
                       std::make_shared<const std::vector<Bucket>>(
                           MakeBuckets(workload, DefaultBucket(plan.strategy))));
}

StepTime<double> Step(const StepFacts& facts, StepTerms<double>* terms = nullptr) {
  return EvaluateStep(facts, PriorCluster(), PriorWorkload(), terms);
}

// The mean of many steps on a node whose loader works ahead, up to a few steps, and waits where
// nobody has taken what it has.
double SimulatedStep(double rest, double arrival, int ahead) {
  constexpr int kSteps = 4000;
  double loaded = 0;         // when the samples of the last step were there
  std::deque<double> taken;  // when the last steps began, which freed a place
  double now = 0;
  double at_half = 0;
  for (int i = 0; i < kSteps; ++i) {
    double begins = loaded;
    if (static_cast<int>(taken.size()) == ahead) {
      begins = std::max(begins, taken.front());
      taken.pop_front();
    }
    loaded = begins + arrival;
    now = std::max(now, loaded);
    taken.push_back(now);
    now += rest;
    if (i == kSteps / 2 - 1) at_half = now;
  }
  return (now - at_half) / (kSteps / 2);
}

RC_GTEST_PROP(InputProperty, IsTheMeanOfALoaderThatWorksAhead, ()) {
  const double rest = *LogUniform(1e-3, 1);
  const double arrival = *LogUniform(1e-3, 1);
  const double step = rest + InputWait(Seconds(rest), Seconds(arrival)).si();
  RC_ASSERT(step == std::max(rest, arrival) || Near(step, std::max(rest, arrival)));
  RC_ASSERT(Near(step, SimulatedStep(rest, arrival, *Whole(2, 8)), 1e-9));
}

// Without a rate, and with one that no step waits for, all is as ever.
RC_GTEST_PROP(InputProperty, ChangesNoBitWhereSamplesAreThere, ()) {
  StepFacts facts = AnyFacts();
  StepTerms<double> terms;
  const StepTime<double> without = Step(facts, &terms);
  facts.input_rate = SampleRate<>::FromSi(1e15);
  StepTerms<double> with_rate;
  const StepTime<double> with = Step(facts, &with_rate);
  RC_ASSERT(without.input_wait.si() == 0 && with.input_wait.si() == 0);
  RC_ASSERT(with.total() == without.total());
  RC_ASSERT(with.supplied() == without.total());
  RC_ASSERT(with_rate.async.updates.si() == terms.async.updates.si());
}

// A step that waits takes what its samples take, whatever the network.
RC_GTEST_PROP(InputProperty, IsTheLongerOfTheTwo, ()) {
  StepFacts facts = AnyFacts();
  const Duration<> rest = Step(facts).total();
  const double samples = facts.batch * facts.accumulation_steps * facts.devices_per_node;
  const double times = *LogUniform(0.1, 10);
  facts.input_rate = Samples(samples) / (rest * times);
  StepTerms<double> terms;
  const StepTime<double> step = Step(facts, &terms);
  RC_ASSERT(Near(step.total() / rest, std::max(1.0, times)));
  RC_ASSERT(Near(step.supplied() / rest, 1));
  if (times > 1) {
    StepFacts faster = facts;
    faster.link.bandwidth = GigabitsPerSecond(1e5);
    faster.server_link.bandwidth = faster.link.bandwidth;
    RC_ASSERT(Near(Step(faster).total() / step.total(), 1));
  }
  if (TraitsOf(facts.strategy).asynchronous()) {
    RC_ASSERT(Near(terms.async.updates * step.total(), 1.0 * facts.workers, 1e-9));
    RC_ASSERT(terms.async.queueing().si() >= -1e-9 * step.total().si());
  }
}

RC_GTEST_PROP(InputProperty, NeverShortensAStepWithASlowerRateOrMoreWorkersOfANode, ()) {
  StepFacts facts = AnyFacts();
  facts.input_rate = SampleRate<>::FromSi(*LogUniform(1, 1e5));
  const Duration<> step = Step(facts).total();
  StepFacts slower = facts;
  slower.input_rate = *facts.input_rate / *LogUniform(1, 100);
  RC_ASSERT(step <= Step(slower).total());
  RC_ASSERT(internal::ArrivalOf(facts) <= step * (1 + 1e-12));
}

// Where samples set the pace nothing else of the cluster or the workload does.
RC_GTEST_PROP(InputProperty, HasTheDerivativesOfTheLonger, ()) {
  StepFacts facts = AnyFacts();
  const PlanParameters at{PriorCluster(), PriorWorkload()};
  const PlanAnswer supplied = PlanModel(facts).Answer(at, Derivatives::kAll);
  const double samples = facts.batch * facts.accumulation_steps * facts.devices_per_node;
  const bool waits = *Whole(0, 1) == 1;
  facts.input_rate = Samples(samples) / (supplied.step.total() * (waits ? 2.0 : 0.5));
  const PlanAnswer answer = PlanModel(facts).Answer(at, Derivatives::kAll);
  for (std::size_t i = 0; i < answer.log_step_gradient.size(); ++i) {
    const double expected = waits ? 0 : supplied.log_step_gradient[i];
    RC_ASSERT(std::abs(answer.log_step_gradient[i] - expected) <= 1e-9);
  }
}

// 2 devices of the fullest node, 3 micro-steps of 32 samples at 96 samples/s: two seconds.
TEST(Input, ByHand) {
  StepFacts facts;
  facts.devices_per_node = 2;
  facts.accumulation_steps = 3;
  facts.batch = 32;
  EXPECT_EQ(internal::ArrivalOf(facts).si(), 0);
  facts.input_rate = SampleRate<>::FromSi(96);
  EXPECT_EQ(internal::SamplesOfNode(facts), Samples(192.0));
  EXPECT_EQ(internal::ArrivalOf(facts), Seconds(2.0));
  EXPECT_EQ(InputWait(Seconds(0.5), internal::ArrivalOf(facts)), Seconds(1.5));
  EXPECT_EQ(InputWait(Seconds(2.5), internal::ArrivalOf(facts)), Seconds(0.0));
  facts.has_compute = false;
  EXPECT_EQ(internal::ArrivalOf(facts).si(), 0) << "a bare message takes no samples";
}

}  // namespace
}  // namespace stepcast
