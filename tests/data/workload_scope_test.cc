// What a calibration knows belongs to a workload as it was trained.
#include "data/values/workload_scope.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/input_error.h"

namespace stepcast {
namespace {

Workload Gpt2(Precision precision = Precision::kFp32, Optimizer optimizer = Optimizer::kMomentum,
              AttentionForm attention = AttentionForm::kPlain) {
  Workload workload;
  workload.name = "gpt2";
  workload.precision = precision;
  workload.optimizer = optimizer;
  workload.attention = attention;
  return workload;
}

Calibration FittedTo(const std::vector<std::string>& scopes) {
  Calibration calibration;
  for (const std::string& scope : scopes) {
    ParameterEstimate e;
    e.scope = scope;
    e.name = "sample_time";
    calibration.parameters.push_back(e);
  }
  return calibration;
}

TEST(WorkloadScope, SaysHowItIsTrainedWhereThatIsNotTheDefault) {
  EXPECT_EQ(WorkloadScope(Gpt2(), "t4"), "workload gpt2 on t4");
  EXPECT_EQ(WorkloadScope(Gpt2(Precision::kBf16), "t4"), "workload gpt2 (bf16) on t4");
  EXPECT_EQ(WorkloadScope(Gpt2(Precision::kFp16, Optimizer::kAdam, AttentionForm::kFused), ""),
            "workload gpt2 (fp16, adam, fused) on ");
  Workload recomputed = Gpt2(Precision::kBf16);
  recomputed.recompute = Recompute::kFull;
  EXPECT_EQ(WorkloadScope(recomputed, "t4"), "workload gpt2 (bf16, full recompute) on t4");
  recomputed.recompute = Recompute::kSelective;
  EXPECT_EQ(WorkloadScope(recomputed, "t4"), "workload gpt2 (bf16, selective recompute) on t4");
}

// Runs may name a workload otherwise than it calls itself.
TEST(WorkloadScope, OfARunIsThatOfItsWorkloadOnItsDevice) {
  stepcast::Run run;
  run.workload = "ours";
  run.device = "t4";
  EXPECT_EQ(ScopeOf(run, {{"gpt2", Gpt2()}, {"ours", Gpt2(Precision::kBf16)}}),
            "workload gpt2 (bf16) on t4");
}

// Else two ways of training had one scope.
TEST(WorkloadScope, NoTwoFactsShareAWord) {
  std::set<std::string> words;
  std::size_t count = 0;
  for (const TrainingFact& fact : TrainingFacts()) {
    count += fact.words.names.size();
    words.insert(fact.words.names.begin(), fact.words.names.end());
  }
  EXPECT_EQ(words.size(), count);
}

TEST(WorkloadScope, NamesAreWhole) {
  EXPECT_TRUE(IsOfWorkload("workload gpt2 on t4", "gpt2"));
  EXPECT_TRUE(IsOfWorkload("workload gpt2 (fp16) on t4", "gpt2"));
  EXPECT_FALSE(IsOfWorkload("workload gpt2_medium on t4", "gpt2"));
  EXPECT_FALSE(IsOfWorkload("workload gpt2", "gpt2"));
  EXPECT_FALSE(IsOfWorkload("device gpt2 on t4", "gpt2"));
  EXPECT_EQ(WorkloadOfScope("workload gpt2 (fp16, adam) on t4"), "gpt2");
  EXPECT_EQ(WorkloadOfScope("workload resnet50 on t4"), "resnet50");
  EXPECT_EQ(WorkloadOfScope("device t4"), "");
  EXPECT_EQ(WorkloadOfScope("workload resnet50 (v2) on t4"), "resnet50 (v2)");
  EXPECT_EQ(WorkloadOfScope("workload resnet50 (v2) (bf16) on b on c"), "resnet50 (v2)");
  EXPECT_FALSE(IsOfWorkload("workload resnet50 (v2) on t4", "resnet50"));
  EXPECT_FALSE(IsOfWorkload("workload resnet50 (fp16, v2) on t4", "resnet50"));
  EXPECT_FALSE(IsOfWorkload("workload resnet50 (adam, fp16) on t4", "resnet50"))
      << "no scope says it in this order";
}

// Every name that is allowed, with every way of training and any device, is found again.
TEST(WorkloadScope, IsTakenApartAsItWasMade) {
  for (const std::string name :
       {"gpt2", "gpt2 (v2)", "on", "on x", "only", "net (bf16) x", "(bf16)", "a (b) (c)",
        "net (fp32)", "net ()", "net(bf16)", "net (bf16"}) {
    EXPECT_EQ(CheckedWorkloadName(name, {}), name);
    for (const TrainingFact& fact : TrainingFacts()) {
      for (std::size_t word = 0; word < fact.words.names.size(); ++word) {
        Workload workload = Gpt2(Precision::kBf16);
        workload.name = name;
        fact.set(static_cast<int>(word), &workload);
        for (const std::string device : {"t4", "b on c", "on", "d (bf16)"}) {
          const std::string scope = WorkloadScope(workload, device);
          EXPECT_EQ(WorkloadOfScope(scope), name) << scope;
          const auto fitted = FittedTrainings(FittedTo({scope}), name, device);
          ASSERT_EQ(fitted.size(), 1U) << scope;
          EXPECT_EQ(WorkloadScope(fitted[0], device), scope);
        }
      }
    }
  }
}

TEST(CheckedWorkloadName, RefusesWhatAScopeWouldBeMisreadBy) {
  const auto error_of = [](const std::string& name) {
    return ErrorOf([&] { CheckedWorkloadName(name, {"net.yaml", 1, "name"}); });
  };
  for (const char* name : {"resnet50 on imagenet", "net on", " on x", "a (fp32) on t4"}) {
    EXPECT_TRUE(Says(error_of(name), "net.yaml:1: name: '" + std::string(name) +
                                         "' has the word \"on\", behind which cluster files name "
                                         "the device; allowed: a name without it"));
  }
  EXPECT_TRUE(Says(error_of("net (bf16)"),
                   "net.yaml:1: name: 'net (bf16)' ends like net trained in a way of its own; "
                   "allowed: a name without (bf16); how it is trained has keys"));
  for (const char* name : {"net (bf16, adam)", "net (v2) (full recompute)", " (fused)"}) {
    EXPECT_TRUE(Says(error_of(name), "ends like")) << name;
  }
  EXPECT_TRUE(Says(error_of(""), "is empty"));
}

TEST(FittedTrainings, AreThoseOfTheWorkloadOnTheDevice) {
  const Calibration c =
      FittedTo({"cluster", "workload gpt2 on t4", "workload gpt2 (bf16, adam) on t4",
                "workload gpt2 (fp16) on v100", "workload gpt2_medium (tf32) on t4",
                "workload gpt2 (full recompute) on a100"});
  const auto scopes = [&](const std::string& name, const std::string& device) {
    std::set<std::string> all;
    for (const Workload& w : FittedTrainings(c, name, device)) all.insert(WorkloadScope(w, "x"));
    return all;
  };
  EXPECT_EQ(scopes("gpt2", "t4"),
            (std::set<std::string>{"workload gpt2 on x", "workload gpt2 (bf16, adam) on x"}));
  EXPECT_EQ(scopes("gpt2", "v100"), (std::set<std::string>{"workload gpt2 (fp16) on x"}));
  EXPECT_EQ(scopes("gpt2", "a100"), (std::set<std::string>{"workload gpt2 (full recompute) on x"}));
  EXPECT_EQ(scopes("gpt2", "").size(), 4U);
  EXPECT_TRUE(scopes("gpt2", "t").empty());
  EXPECT_TRUE(scopes("gpt", "t4").empty());
}

// Nothing of a workload without layers is attention or a block.
TEST(FittedScope, IsOneThatDiffersInNameAlone) {
  Workload gpt = Gpt2(Precision::kBf16, Optimizer::kAdam, AttentionForm::kFused);
  gpt.recompute = Recompute::kFull;
  const std::string own = "workload gpt2 (bf16, adam, fused, full recompute) on t4";
  const std::string plain = "workload gpt2 (bf16, adam) on t4";
  EXPECT_EQ(FittedScope(FittedTo({plain}), gpt, "t4"), plain);
  EXPECT_EQ(FittedScope(FittedTo({plain}), gpt, ""), "workload gpt2 (bf16, adam) on ");
  EXPECT_EQ(FittedScope(FittedTo({plain, own}), gpt, "t4"), own);
  EXPECT_EQ(FittedScope(FittedTo({plain}), gpt, "v100"),
            "workload gpt2 (bf16, adam, fused, full recompute) on v100");
  EXPECT_EQ(FittedScope(FittedTo({"workload gpt2 on t4"}), gpt, "t4"), own) << "another precision";
  EXPECT_EQ(FittedScope(FittedTo({}), gpt, "t4"), own);
  gpt.layers.resize(1);
  gpt.layers[0].name = "h.0.mlp";
  EXPECT_EQ(FittedScope(FittedTo({plain}), gpt, "t4"), own) << "a block";
}

TEST(TrainAsFitted, FollowsTheRunsInWhatNobodyStates) {
  const Calibration c = FittedTo({"workload gpt2 (bf16, adam) on t4"});
  Workload workload = Gpt2(Precision::kFp16);
  TrainAsFitted(c, "", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (bf16, adam)");

  const auto stated = [](const std::string& key) {
    return [key](const TrainingFact& fact) { return key == fact.key; };
  };
  workload = Gpt2(Precision::kBf16);
  TrainAsFitted(c, "", stated("precision"), &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (bf16, adam)");
  workload = Gpt2(Precision::kFp16);
  TrainAsFitted(c, "", stated("precision"), &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (fp16, adam)") << "the optimizer is not asked about";
}

TEST(TrainAsFitted, DoesNotChooseBetweenTwo) {
  const Calibration c = FittedTo({"workload gpt2 (bf16) on t4", "workload gpt2 (fp16) on v100"});
  Workload workload = Gpt2(Precision::kTf32);
  TrainAsFitted(c, "", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (tf32)");
  workload.precision = Precision::kFp16;
  TrainAsFitted(
      FittedTo({"workload gpt2 (fp16, adam) on v100", "workload gpt2 (bf16) on t4"}), "",
      [](const TrainingFact& fact) { return std::string("precision") == fact.key; }, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (fp16, adam)") << "but for what is stated";
  Workload other = Gpt2(Precision::kTf32);
  other.name = "bert_base";
  TrainAsFitted(c, "", {}, &other);
  EXPECT_EQ(DescribeWorkload(other), "bert_base (tf32)");
}

TEST(TrainAsFitted, TakesEachFactOnWhichItsRunsAgree) {
  const Calibration c =
      FittedTo({"workload gpt2 (bf16, adam) on t4", "workload gpt2 (fp16, adam) on v100"});
  Workload workload = Gpt2();
  TrainAsFitted(c, "", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (adam)");
  workload = Gpt2();
  TrainAsFitted(c, "v100", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (fp16, adam)") << "those on the device first";
  workload = Gpt2();
  TrainAsFitted(c, "a100", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (adam)") << "and on any where it has none there";
  workload = Gpt2(Precision::kTf32);
  TrainAsFitted(
      c, "", [](const TrainingFact& fact) { return std::string("precision") == fact.key; },
      &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (tf32, adam)") << "none was trained as stated";
  EXPECT_TRUE(workload.as_others.empty());
}

// A calibration with runs of each scope.
Calibration WithRuns(const std::vector<std::string>& scopes) {
  Calibration calibration = FittedTo(scopes);
  for (const std::string& scope : scopes) calibration.range.local_batch[scope] = {8, 8, 1};
  return calibration;
}

Workload Attending(Workload workload) {
  Layer query;
  query.name = "h.0.attention.scores";
  query.kind = LayerKind::kAttention;
  query.operation = BatchedProductOp{12, 128, 128, 64};
  Layer softmax;
  softmax.name = "h.0.attention.softmax";
  softmax.kind = LayerKind::kActivation;
  softmax.operation = ActivationOp{Function::kSoftmax, 12 * 128, 128};
  Layer context;
  context.name = "h.0.attention.context";
  context.kind = LayerKind::kAttention;
  context.operation = BatchedProductOp{12, 128, 64, 128};
  workload.layers = {query, softmax, context};
  return workload;
}

TEST(TrainAsFitted, FollowsTheRunsOfOthersWhereItHasNone) {
  const Calibration c =
      WithRuns({"workload bert_base (bf16, adam, fused) on t4",
                "workload opt_125m (bf16, sgd, fused) on t4", "workload resnet50 (fp16) on v100"});
  Workload workload = Attending(Gpt2());
  TrainAsFitted(c, "t4", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (bf16, fused)") << "not of one optimizer";
  EXPECT_EQ(workload.as_others, (std::set<std::string>{"attention", "precision"}));
  EXPECT_EQ(AsOthersFlag(workload, "ours"),
            "nobody states precision, attention of gpt2, of which ours has no run: taken as bf16, "
            "fused, as all its runs were");
  // What is said afterwards is not taken from others.
  FindTrainingFact("attention")->Read("plain", {}, &workload);
  EXPECT_EQ(workload.as_others, (std::set<std::string>{"precision"}));
  FindTrainingFact("precision")->Read("bf16", {}, &workload);
  EXPECT_FALSE(AsOthersFlag(workload, "ours").has_value());

  const auto trained_on = [&](const char* device) {
    Workload asked = Gpt2();
    TrainAsFitted(c, device, {}, &asked);
    return DescribeWorkload(asked);
  };
  EXPECT_EQ(trained_on("t4"), "gpt2 (bf16)") << "without layers there is nothing to fuse";
  EXPECT_EQ(trained_on("v100"), "gpt2 (fp16)");
  EXPECT_EQ(trained_on("a100"), "gpt2") << "nothing ran there";
  EXPECT_EQ(trained_on(""), "gpt2") << "not all of one precision";
}

TEST(TrainAsFitted, OthersChangeNothingThatIsSaid) {
  const Calibration c = WithRuns({"workload opt_125m (bf16, adam, full recompute) on t4"});
  Workload workload = Gpt2(Precision::kFp16);
  TrainAsFitted(c, "t4", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (fp16, adam)") << "the workload says so itself";
  EXPECT_EQ(workload.as_others, (std::set<std::string>{"optimizer"}));
  workload = Gpt2();
  TrainAsFitted(
      c, "t4", [](const TrainingFact& fact) { return std::string("optimizer") == fact.key; },
      &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (bf16)");
  // Runs of others tell nothing where it has its own.
  Calibration own = WithRuns({"workload opt_125m (bf16, adam) on t4", "workload gpt2 on v100"});
  workload = Gpt2();
  TrainAsFitted(own, "t4", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2");
  // Bare messages are not trained, neither those that ran nor those that are asked about.
  own = WithRuns({"workload opt_125m (bf16) on t4"});
  own.parameters.push_back(FittedTo({"workload message_1000 on t4"}).parameters.front());
  TrainAsFitted(own, "t4", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2 (bf16)");
  workload = Gpt2();
  workload.communication_only = true;
  TrainAsFitted(own, "t4", {}, &workload);
  EXPECT_EQ(DescribeWorkload(workload), "gpt2");
}

TEST(TrainAsFitted, OfOthersThoseCountThatAreAsStated) {
  const Calibration c = WithRuns({"workload a (bf16, adam) on t4", "workload b (fp16, sgd) on t4"});
  const auto stated = [](const TrainingFact& fact) { return std::string("precision") == fact.key; };
  const auto trained_in = [&](Precision precision) {
    Workload workload = Gpt2(precision);
    TrainAsFitted(c, "t4", stated, &workload);
    return DescribeWorkload(workload);
  };
  EXPECT_EQ(trained_in(Precision::kFp16), "gpt2 (fp16, sgd)");
  EXPECT_EQ(trained_in(Precision::kBf16), "gpt2 (bf16, adam)");
  EXPECT_EQ(trained_in(Precision::kTf32), "gpt2 (tf32)");
}

}  // namespace
}  // namespace stepcast
