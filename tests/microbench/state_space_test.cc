#include "microbench/harness/state_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "data/record/operation_counts.h"
#include "data/values/operation_text.h"
#include "data/workloads/catalog.h"

namespace stepcast {
namespace {

bool Stated(const Layer& layer) { return !std::holds_alternative<std::monostate>(layer.operation); }

StateSpaceAxes Axes(const std::vector<std::string>& names, std::vector<int> batches,
                    std::vector<Precision> precisions) {
  StateSpaceAxes axes;
  for (const std::string& name : names) axes.workloads.push_back(FindWorkload(name).value());
  axes.batches = std::move(batches);
  axes.precisions = std::move(precisions);
  return axes;
}

Layer MakeLayer(const std::string& name, const Operation& operation,
                std::vector<std::int64_t> tensors) {
  Layer layer;
  layer.name = name;
  layer.operation = operation;
  layer.tensors = std::move(tensors);
  return layer;
}

StateSpaceAxes OneNetwork(std::vector<Layer> layers) {
  StateSpaceAxes axes;
  axes.workloads.emplace_back();
  axes.workloads[0].name = "net";
  axes.workloads[0].layers = std::move(layers);
  axes.batches = {4};
  axes.precisions = {Precision::kFp32};
  return axes;
}

// How often each point happens in a step, counted from the layers.
std::map<MeasuredPoint, int> PointsOfStep(const Workload& workload, int batch, Precision precision,
                                          Optimizer optimizer) {
  std::map<MeasuredPoint, int> points;
  bool gradients = false;
  for (const Layer& layer : workload.layers) {
    gradients = gradients || layer.parameters() > 0;
    if (!Stated(layer)) continue;
    ++points[{layer.operation, batch, precision, TrainingPass::kForward}];
    if (gradients) ++points[{layer.operation, batch, precision, TrainingPass::kBackward}];
    if (layer.parameters() > 0) {
      ++points[{UpdateOp{optimizer, layer.parameters()}, 1, Precision::kFp32,
                TrainingPass::kUpdate}];
    }
  }
  return points;
}

// The same as a state space tells it.
std::map<MeasuredPoint, int> PointsOfSum(const StateSpace& space, std::size_t sum) {
  std::map<MeasuredPoint, int> points;
  for (const State& state : space.states) {
    for (const State::Use& use : state.uses) {
      if (use.sum != sum) continue;
      EXPECT_EQ(use.count.size(), state.passes.size());
      for (std::size_t p = 0; p < state.passes.size(); ++p) {
        if (use.count[p] > 0) points[state.Point(state.passes[p])] += use.count[p];
      }
    }
  }
  return points;
}

std::vector<TrainingPass> PassesOf(const StateSpace& space, const Operation& operation) {
  for (const State& state : space.states) {
    if (state.operation == operation) return state.passes;
  }
  return {};
}

// ---- The catalogue.

TEST(StateSpaceTest, EverySumHasThePointsOfItsLayers) {
  for (const std::string& name : WorkloadNames()) {
    SCOPED_TRACE(name);
    const StateSpaceAxes axes = Axes({name}, {1, 8}, {Precision::kFp32, Precision::kBf16});
    const StateSpace space = MakeStateSpace(axes);
    ASSERT_EQ(space.sums.size(), 4U);
    for (std::size_t i = 0; i < space.sums.size(); ++i) {
      const MeasuredSum& sum = space.sums[i];
      EXPECT_EQ(sum.workload, name);
      EXPECT_EQ(PointsOfSum(space, i),
                PointsOfStep(axes.workloads[0], sum.batch, sum.precision, axes.optimizer));
    }
  }
}

TEST(StateSpaceTest, CountsAddUpToLayersTimesPasses) {
  for (const std::string& name : WorkloadNames()) {
    const StateSpaceAxes axes = Axes({name}, {2}, {Precision::kFp32});
    const std::vector<Layer>& layers = axes.workloads[0].layers;
    const auto with_parameters = [](const Layer& layer) { return layer.parameters() > 0; };
    const auto first = std::find_if(layers.begin(), layers.end(), with_parameters);
    std::map<TrainingPass, int> expected = {
        {TrainingPass::kForward,
         static_cast<int>(std::count_if(layers.begin(), layers.end(), Stated))},
        {TrainingPass::kBackward, static_cast<int>(std::count_if(first, layers.end(), Stated))},
        {TrainingPass::kUpdate,
         static_cast<int>(std::count_if(layers.begin(), layers.end(), with_parameters))}};
    std::map<TrainingPass, int> counted;
    for (const auto& [point, count] : PointsOfSum(MakeStateSpace(axes), 0)) {
      counted[point.pass] += count;
    }
    EXPECT_EQ(counted, expected) << name;
  }
}

TEST(StateSpaceTest, EveryLayerOfTheCatalogueIsStated) {
  const StateSpace space = MakeStateSpace(Axes(WorkloadNames(), {1}, {Precision::kFp32}));
  EXPECT_TRUE(space.unstated.empty()) << space.unstated.front();
  EXPECT_EQ(space.sums.size(), WorkloadNames().size());
}

TEST(StateSpaceTest, StatesAreDistinct) {
  const StateSpace space = MakeStateSpace(
      Axes(WorkloadNames(), {1, 8, 32}, {Precision::kFp32, Precision::kTf32, Precision::kFp16}));
  std::set<std::tuple<std::string, int, Precision>> seen;
  for (const State& state : space.states) {
    const std::string text = FormatOperation(state.operation);
    EXPECT_TRUE(seen.insert({text, state.batch, state.precision}).second) << text;
    const std::set<TrainingPass> passes(state.passes.begin(), state.passes.end());
    EXPECT_EQ(passes.size(), state.passes.size()) << text;
    EXPECT_FALSE(state.uses.empty()) << text;
    std::set<std::size_t> sums;
    for (const State::Use& use : state.uses) {
      EXPECT_LT(use.sum, space.sums.size());
      EXPECT_TRUE(sums.insert(use.sum).second) << text;
      EXPECT_EQ(use.count.size(), state.passes.size());
      EXPECT_GT(*std::max_element(use.count.begin(), use.count.end()), 0) << text;
    }
  }
}

TEST(StateSpaceTest, FarFewerStatesThanLayers) {
  const StateSpaceAxes axes = Axes({"resnet152"}, {8}, {Precision::kFp32});
  const StateSpace space = MakeStateSpace(axes);
  EXPECT_LT(5 * space.states.size(), axes.workloads[0].layers.size());
}

TEST(StateSpaceTest, WorkloadsShareTheirRepeatedOperations) {
  const auto states = [](const std::vector<std::string>& names) {
    return MakeStateSpace(Axes(names, {8}, {Precision::kFp32})).states.size();
  };
  // ResNets differ in how often they repeat the same blocks.
  EXPECT_EQ(states({"resnet50", "resnet101", "resnet152"}), states({"resnet50"}));
  EXPECT_EQ(states({"resnet50", "resnet50"}), states({"resnet50"}));
  EXPECT_LT(states({"resnet50", "vgg16"}), states({"resnet50"}) + states({"vgg16"}));

  const StateSpace space = MakeStateSpace(Axes({"resnet50", "resnet101"}, {8}, {Precision::kFp32}));
  for (const State& state : space.states) {
    ASSERT_EQ(state.uses.size(), 2U) << FormatOperation(state.operation);
    for (std::size_t p = 0; p < state.passes.size(); ++p) {
      EXPECT_LE(state.uses[0].count[p], state.uses[1].count[p]);
    }
  }
}

TEST(StateSpaceTest, UpdatesAreMadeOnceInFullPrecisionForAllBatches) {
  StateSpaceAxes axes =
      Axes({"resnet18"}, {1, 8, 32}, {Precision::kBf16, Precision::kFp16, Precision::kTf32});
  axes.optimizer = Optimizer::kAdam;
  const StateSpace space = MakeStateSpace(axes);
  std::set<std::int64_t> sizes;
  for (const Layer& layer : axes.workloads[0].layers) {
    if (layer.parameters() > 0) sizes.insert(layer.parameters());
  }
  std::size_t updates = 0;
  for (const State& state : space.states) {
    const auto* update = std::get_if<UpdateOp>(&state.operation);
    const bool has = std::count(state.passes.begin(), state.passes.end(), TrainingPass::kUpdate);
    EXPECT_EQ(has, update != nullptr);
    if (update == nullptr) {
      EXPECT_NE(state.precision, Precision::kFp32);
      continue;
    }
    ++updates;
    EXPECT_EQ(state.batch, 1);
    EXPECT_EQ(state.precision, Precision::kFp32);
    EXPECT_EQ(state.passes, std::vector<TrainingPass>{TrainingPass::kUpdate});
    EXPECT_EQ(update->optimizer, Optimizer::kAdam);
    EXPECT_EQ(state.uses.size(), space.sums.size());
    EXPECT_EQ(sizes.count(update->parameters), 1U);
  }
  EXPECT_EQ(updates, sizes.size());
}

// ---- The order.

// A pass takes the larger of its times for FLOP and for memory: who has more than twice as much of
// both takes longer, whatever weighs one against the other.
TEST(StateSpaceTest, TheLargestShareComesFirst) {
  constexpr double kTwice = 2.001;
  struct Amount {
    double flop = 0;
    double elements = 0;
  };
  for (const std::string& name : WorkloadNames()) {
    const StateSpace space = MakeStateSpace(Axes({name}, {16}, {Precision::kFp32}));
    std::vector<Amount> amounts;
    for (const State& state : space.states) {
      Amount& amount = amounts.emplace_back();
      for (std::size_t p = 0; p < state.passes.size(); ++p) {
        const OperationCounts counts = CountOperation(state.operation, state.passes[p]);
        const int times = state.uses[0].count[p];
        amount.flop += times * counts.flop_per_sample * state.batch;
        amount.elements += times * (counts.elements_per_sample * state.batch + counts.elements);
      }
      EXPECT_GT(amount.elements, 0) << FormatOperation(state.operation);
    }
    for (std::size_t after = 1; after < amounts.size(); ++after) {
      for (std::size_t before = 0; before < after; ++before) {
        EXPECT_FALSE(amounts[after].flop >= kTwice * amounts[before].flop &&
                     amounts[after].elements >= kTwice * amounts[before].elements)
            << name << ": " << FormatOperation(space.states[before].operation) << " before "
            << FormatOperation(space.states[after].operation);
      }
    }
  }
}

TEST(StateSpaceTest, AShareOfASmallStepCountsAsMuchAsOfALargeOne) {
  StateSpaceAxes axes = OneNetwork({MakeLayer("large", DenseOp{1, 2000, 2000}, {4'000'000}),
                                    MakeLayer("small", DenseOp{1, 100, 100}, {10'000})});
  axes.workloads.emplace_back();
  axes.workloads[1].name = "tiny";
  axes.workloads[1].layers = {MakeLayer("only", DenseOp{1, 10, 10}, {100})};
  const StateSpace space = MakeStateSpace(axes);
  std::map<std::string, std::size_t> place;
  for (std::size_t s = 0; s < space.states.size(); ++s) {
    if (const auto* dense = std::get_if<DenseOp>(&space.states[s].operation)) {
      place[std::to_string(dense->units)] = s;
    }
  }
  EXPECT_LT(place.at("10"), place.at("100"));
  EXPECT_LT(place.at("2000"), place.at("100"));
}

// One that is all of one step and next to nothing of another counts by the former, wherever that
// step stands; and memory takes its time as arithmetic does.
TEST(StateSpaceTest, TheLargestShareCounts) {
  const ActivationOp shared{Function::kRelu, 1, 10};
  const DenseOp heavy{1, 1000, 1000};
  const DenseOp light{1, 300, 300};
  const CopyOp copy{1'000'000};
  StateSpaceAxes axes = OneNetwork({MakeLayer("all", shared, {})});
  axes.workloads.emplace_back();
  axes.workloads[1].name = "other";
  axes.workloads[1].layers = {MakeLayer("heavy", heavy, {}), MakeLayer("light", light, {}),
                              MakeLayer("copy", copy, {}), MakeLayer("little", shared, {})};
  const auto order = [&] {
    std::vector<Operation> operations;
    for (const State& state : MakeStateSpace(axes).states) operations.push_back(state.operation);
    return operations;
  };
  const std::vector<Operation> expected = {shared, copy, heavy, light};
  EXPECT_EQ(order(), expected);
  std::swap(axes.workloads[0], axes.workloads[1]);
  EXPECT_EQ(order(), expected);
}

TEST(StateSpaceTest, TheSameAxesGiveTheSameOrder) {
  const StateSpaceAxes axes = Axes({"resnet50", "bert_base"}, {1, 8}, {Precision::kFp32});
  const StateSpace a = MakeStateSpace(axes);
  const StateSpace b = MakeStateSpace(axes);
  ASSERT_EQ(a.states.size(), b.states.size());
  for (std::size_t s = 0; s < a.states.size(); ++s) {
    EXPECT_EQ(a.states[s].operation, b.states[s].operation);
    EXPECT_EQ(a.states[s].passes, b.states[s].passes);
  }
}

// ---- Small networks.

TEST(StateSpaceTest, NoBackwardPassBeforeTheFirstParameters) {
  const CopyOp pad{1000};
  const ActivationOp scale{Function::kTanh, 10, 10};
  const DenseOp dense{1, 10, 10};
  const ActivationOp relu{Function::kRelu, 1, 10};
  const StateSpace space =
      MakeStateSpace(OneNetwork({MakeLayer("pad", pad, {}), MakeLayer("scale", scale, {}),
                                 MakeLayer("dense", dense, {100}), MakeLayer("relu", relu, {})}));
  const std::vector<TrainingPass> forward = {TrainingPass::kForward};
  const std::vector<TrainingPass> both = {TrainingPass::kForward, TrainingPass::kBackward};
  EXPECT_EQ(PassesOf(space, pad), forward);
  EXPECT_EQ(PassesOf(space, scale), forward);
  EXPECT_EQ(PassesOf(space, dense), both);
  EXPECT_EQ(PassesOf(space, relu), both);
  EXPECT_EQ(space.states.size(), 5U);  // with the update
}

TEST(StateSpaceTest, OneOperationBeforeAndAfterTheFirstParameters) {
  const ActivationOp relu{Function::kRelu, 1, 10};
  const StateSpaceAxes axes =
      OneNetwork({MakeLayer("first", relu, {}), MakeLayer("dense", DenseOp{1, 10, 10}, {100, 10}),
                  MakeLayer("second", relu, {})});
  const std::map<MeasuredPoint, int> points = PointsOfSum(MakeStateSpace(axes), 0);
  EXPECT_EQ(points.at({relu, 4, Precision::kFp32, TrainingPass::kForward}), 2);
  EXPECT_EQ(points.at({relu, 4, Precision::kFp32, TrainingPass::kBackward}), 1);
  // One update for all tensors of a layer.
  EXPECT_EQ(
      points.at({UpdateOp{Optimizer::kMomentum, 110}, 1, Precision::kFp32, TrainingPass::kUpdate}),
      1);
}

TEST(StateSpaceTest, LayersWithoutOperationAreListedOnce) {
  StateSpaceAxes axes =
      OneNetwork({MakeLayer("mystery", {}, {}), MakeLayer("dense", DenseOp{1, 10, 10}, {100}),
                  MakeLayer("riddle", {}, {})});
  axes.batches = {1, 2, 3};
  axes.precisions = {Precision::kFp32, Precision::kBf16};
  const StateSpace space = MakeStateSpace(axes);
  EXPECT_EQ(space.unstated, (std::vector<std::string>{"net: mystery", "net: riddle"}));
  EXPECT_EQ(space.sums.size(), 6U);
  for (const State& state : space.states) {
    EXPECT_FALSE(std::holds_alternative<std::monostate>(state.operation));
  }
  EXPECT_EQ(space.states.size(), 6U + 1U);
}

// The gradients behind it need its backward pass, whatever it is.
TEST(StateSpaceTest, ParametersOfAnUnstatedLayerBeginTheBackwardPass) {
  const ActivationOp relu{Function::kRelu, 1, 10};
  const StateSpace space =
      MakeStateSpace(OneNetwork({MakeLayer("mystery", {}, {100}), MakeLayer("relu", relu, {})}));
  EXPECT_EQ(PassesOf(space, relu),
            (std::vector<TrainingPass>{TrainingPass::kForward, TrainingPass::kBackward}));
}

TEST(StateSpaceTest, NothingAskedIsNothingToMeasure) {
  EXPECT_TRUE(MakeStateSpace(StateSpaceAxes()).states.empty());
  EXPECT_TRUE(MakeStateSpace(Axes({"resnet18"}, {}, {Precision::kFp32})).sums.empty());
  EXPECT_TRUE(MakeStateSpace(Axes({"resnet18"}, {1}, {})).states.empty());
  EXPECT_TRUE(MakeStateSpace(OneNetwork({})).states.empty());
}

// What a step costs beside its layers is measured once, before them, and counts in no sum.
TEST(StateSpace, OverheadsComeFirstAndOnce) {
  StateSpaceAxes axes = Axes({"mlp_mnist"}, {1, 8}, {Precision::kFp32, Precision::kBf16});
  const std::size_t before = MakeStateSpace(axes).states.size();
  axes.overheads = {AllocateOp{4096}};
  const StateSpace space = MakeStateSpace(axes);
  ASSERT_EQ(space.states.size(), before + 1);
  const State& first = space.states.front();
  EXPECT_TRUE(first.operation == Operation(AllocateOp{4096}));
  EXPECT_EQ(first.batch, 1);
  EXPECT_EQ(first.passes, std::vector<TrainingPass>{TrainingPass::kForward});
  EXPECT_TRUE(first.uses.empty());
}

}  // namespace
}  // namespace stepcast
