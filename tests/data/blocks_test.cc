// Blocks by the names of their layers, and what of a network is computed twice.
#include "data/record/blocks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"

namespace stepcast {
namespace {

TEST(Blocks, AreWhatStandsBeforeTheFirstNumberAndIt) {
  EXPECT_EQ(BlockOf("h.0.ln_1"), "h.0");
  EXPECT_EQ(BlockOf("h.0.mlp.c_fc"), "h.0");
  EXPECT_EQ(BlockOf("layers.12.self_attn.query"), "layers.12");
  EXPECT_EQ(BlockOf("encoder/layer/11/fc1"), "encoder/layer/11");
  EXPECT_EQ(BlockOf("/encoder/layer.3/attention/MatMul"), "/encoder/layer.3");
  EXPECT_EQ(BlockOf("layer1.0.downsample.1"), "layer1.0");
  EXPECT_EQ(BlockOf("0.1.conv"), "0");
  EXPECT_EQ(BlockOf("wte"), "");
  EXPECT_EQ(BlockOf(""), "");
  EXPECT_EQ(BlockOf("conv1.bn1"), "");
  EXPECT_EQ(BlockOf("h..ln"), "");
  EXPECT_EQ(BlockOf("h.0a.ln"), "");
  // A layer that has only a number for a name is no block of layers.
  EXPECT_EQ(BlockOf("conv.3"), "");
  EXPECT_EQ(BlockOf("/342"), "");
}

Layer Named(const char* name, double flop) {
  Layer layer;
  layer.name = name;
  layer.forward_flop = Flop(flop);
  return layer;
}

// What is in the middle of a block and not of it leaves it one block.
TEST(Blocks, AreCountedInTheOrderInWhichTheyBegin) {
  Workload workload;
  workload.layers = {Named("in", 1), Named("b.1.x", 2), Named("b.0.x", 4), Named("mask", 8),
                     Named("b.1.y", 16)};
  using Numbers = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(BlocksOf(workload), (Numbers{std::nullopt, 0, 1, std::nullopt, 0}));
  EXPECT_TRUE(HasBlocks(workload));
  EXPECT_EQ(RecomputedLayers(workload), std::vector<bool>(5, false));
  EXPECT_EQ(RecomputedShare(workload), 0);
  workload.recompute = Recompute::kFull;
  EXPECT_EQ(RecomputedLayers(workload), (std::vector<bool>{false, true, true, false, true}));
  EXPECT_EQ(RecomputedShare(workload), 22.0 / 31);
  for (Layer& layer : workload.layers) layer.forward_flop = Work<>();
  EXPECT_EQ(RecomputedShare(workload), 0);
}

TEST(Blocks, OfKnownNetworks) {
  const auto count = [](const char* name) {
    std::set<std::size_t> blocks;
    for (const std::optional<std::size_t>& block : BlocksOf(FindWorkload(name).value())) {
      if (block) blocks.insert(*block);
    }
    return blocks.size();
  };
  EXPECT_EQ(count("gpt2"), 12U);
  EXPECT_EQ(count("bert_large"), 24U);
  EXPECT_EQ(count("llama_13b"), 40U);
  EXPECT_EQ(count("t5_base"), 24U);
  EXPECT_EQ(count("vit_l_16"), 24U);
  EXPECT_EQ(count("resnet50_v1_5"), 16U);
  EXPECT_EQ(count("vgg16"), 0U);
  EXPECT_FALSE(HasBlocks(FindWorkload("vgg16").value()));
  EXPECT_FALSE(HasBlocks(Workload()));
}

}  // namespace
}  // namespace stepcast
