#include "data/record/blocks.h"

#include <algorithm>
#include <unordered_map>

namespace stepcast {
namespace {

bool IsOfBlock(const Layer& layer) { return !BlockOf(layer.name).empty(); }

}  // namespace

std::string_view BlockOf(std::string_view layer) {
  constexpr std::string_view kEnds = "./";
  constexpr std::string_view kDigits = "0123456789";
  std::size_t begin = 0;
  for (std::size_t end = layer.find_first_of(kEnds); end != std::string_view::npos;
       end = layer.find_first_of(kEnds, begin)) {
    const std::string_view component = layer.substr(begin, end - begin);
    const bool is_number =
        !component.empty() && component.find_first_not_of(kDigits) == std::string_view::npos;
    if (is_number) return layer.substr(0, end);
    begin = end + 1;
  }
  return {};
}

std::vector<std::optional<std::size_t>> BlocksOf(const Workload& workload) {
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<std::optional<std::size_t>> blocks;
  blocks.reserve(workload.layers.size());
  for (const Layer& layer : workload.layers) {
    const std::string_view block = BlockOf(layer.name);
    blocks.emplace_back();
    if (!block.empty()) blocks.back() = known.try_emplace(block, known.size()).first->second;
  }
  return blocks;
}

bool HasBlocks(const Workload& workload) {
  return std::any_of(workload.layers.begin(), workload.layers.end(), IsOfBlock);
}

std::vector<bool> RecomputedLayers(const Workload& workload) {
  std::vector<bool> recomputed(workload.layers.size());
  if (workload.recompute == Recompute::kNone) return recomputed;
  std::transform(workload.layers.begin(), workload.layers.end(), recomputed.begin(), IsOfBlock);
  return recomputed;
}

double RecomputedShare(const Workload& workload) {
  if (workload.recompute == Recompute::kNone) return 0;
  const Work<> all = workload.forward_flop();
  if (all.si() == 0) return 0;
  Work<> recomputed;
  for (const Layer& layer : workload.layers) {
    if (IsOfBlock(layer)) recomputed += layer.forward_flop;
  }
  return recomputed / all;
}

}  // namespace stepcast
