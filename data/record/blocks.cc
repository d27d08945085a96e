#include "data/record/blocks.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "data/record/fused_attention.h"

namespace stepcast {
namespace {

constexpr std::string_view kDigitsOfNumbers = "0123456789";
constexpr std::string_view kComponentEnds = "./";
constexpr std::string_view kSeparators = "./_-";

// What a number in a name counts, from coarse to fine; what no word says first, and last what one
// says that is none of the others.
enum class Counted { kNothing, kStages, kLayers, kBlocks, kUnits, kOthers };

struct NumberedPart {
  std::size_t begin = 0;  // of the word
  std::size_t end = 0;    // behind the number
  Counted counted = Counted::kNothing;
};

bool IsOneOf(std::string_view characters, std::string_view name, std::size_t at) {
  return at < name.size() && characters.find(name[at]) != std::string_view::npos;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t EndOfNumber(std::string_view name, std::size_t begin) {
  return std::min(name.find_first_not_of(kDigitsOfNumbers, begin), name.size());
}

// Whether the name has more than a separator there.
bool IsInside(std::string_view name, std::size_t at) {
  return IsOneOf(kSeparators, name, at) && at + 1 < name.size();
}

// In letters of either size.
bool EndsIn(std::string_view text, std::string_view word) {
  constexpr int kToCapital = 'A' - 'a';
  if (text.size() < word.size()) return false;
  text.remove_prefix(text.size() - word.size());
  return std::equal(word.begin(), word.end(), text.begin(),
                    [](char a, char b) { return a == b || a + kToCapital == b; });
}
bool IsWord(std::string_view text, std::string_view word) {
  return text.size() == word.size() && EndsIn(text, word);
}

Counted CountedBy(std::string_view word) {
  if (word.empty()) return Counted::kNothing;
  if (word == "l" || word == "h") return Counted::kLayers;
  if (word.ends_with('s')) word.remove_suffix(1);
  if (IsWord(word, "stage") || IsWord(word, "denseblock")) return Counted::kStages;
  if (EndsIn(word, "layer")) return Counted::kLayers;
  if (IsWord(word, "unit")) return Counted::kUnits;
  for (const char* const block : {"blk", "fire", "inception", "mixed"}) {
    if (IsWord(word, block)) return Counted::kBlocks;
  }
  return EndsIn(word, "block") ? Counted::kBlocks : Counted::kOthers;
}

// What the number at `at` counts, if that can be a block.
std::optional<NumberedPart> NumberedAt(std::string_view name, std::size_t at) {
  std::size_t word_end = at;
  while (word_end > 0 && IsOneOf(kSeparators, name, word_end - 1)) --word_end;
  std::size_t begin = word_end;
  while (begin > 0 && IsLetter(name[begin - 1])) --begin;
  const std::string_view word = name.substr(begin, word_end - begin);
  NumberedPart part{begin, EndOfNumber(name, at), CountedBy(word)};
  const bool is_component =
      (at == 0 || IsOneOf(kComponentEnds, name, at - 1)) && IsOneOf(kComponentEnds, name, part.end);
  if (!is_component) {
    const bool is_short = word.size() == 1;
    const bool begins = begin == 0 || IsOneOf(kSeparators, name, begin - 1);
    const bool is_unit = part.counted == Counted::kLayers || part.counted == Counted::kBlocks ||
                         part.counted == Counted::kUnits;
    if (!is_unit || (is_short && !begins)) return std::nullopt;
    if (word == "l" && !IsOneOf(kComponentEnds, name, part.end)) return std::nullopt;
    const bool has_letter =
        part.end < name.size() && name[part.end] >= 'a' && name[part.end] <= 'z';
    if (part.counted == Counted::kBlocks && has_letter) ++part.end;
  }
  if (!IsInside(name, part.end)) return std::nullopt;
  const bool is_one_block = part.counted == Counted::kBlocks && !word.ends_with('s');
  while (IsOneOf(kDigitsOfNumbers, name, part.end + 1)) {
    const std::size_t end = EndOfNumber(name, part.end + 1);
    const bool is_its_number = is_one_block && name[part.end] == '_';
    if (is_its_number || !IsInside(name, end)) break;
    part.end = end;
  }
  return part;
}

// Whether the part is followed by itself and more: "layer1" of "/layer1/layer1.0/conv1".
bool IsSaidAgain(std::string_view name, const NumberedPart& part) {
  const std::string_view text = name.substr(part.begin, part.end - part.begin);
  const std::string_view rest = name.substr(part.end + 1);
  return rest.starts_with(text) && IsInside(rest, text.size());
}

bool IsFiner(Counted inner, Counted outer) { return inner != Counted::kOthers && inner > outer; }

bool IsOfBlock(const Layer& layer) { return !BlockOf(layer.name).empty(); }

}  // namespace

std::string_view BlockOf(std::string_view layer) {
  std::optional<NumberedPart> block;
  for (std::size_t at = layer.find_first_of(kDigitsOfNumbers); at != std::string_view::npos;) {
    std::size_t end = EndOfNumber(layer, at);
    if (const std::optional<NumberedPart> part = NumberedAt(layer, at)) {
      end = part->end;
      const bool is_finer = !block || IsFiner(part->counted, block->counted);
      if (is_finer && !IsSaidAgain(layer, *part)) block = part;
    }
    at = layer.find_first_of(kDigitsOfNumbers, end);
  }
  return block ? layer.substr(0, block->end) : std::string_view();
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
  switch (workload.recompute) {
    case Recompute::kNone:
      break;
    case Recompute::kSelective:
      for (const AttentionCore& core : AttentionCores(workload)) {
        for (std::size_t i = core.first; i <= core.last; ++i) recomputed[i] = true;
      }
      break;
    case Recompute::kFull:
      std::transform(workload.layers.begin(), workload.layers.end(), recomputed.begin(), IsOfBlock);
      break;
  }
  return recomputed;
}

double RecomputedShare(const Workload& workload) {
  const Work<> all = workload.forward_flop();
  if (all.si() == 0) return 0;
  const std::vector<bool> is_recomputed = RecomputedLayers(workload);
  Work<> recomputed;
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    if (is_recomputed[i]) recomputed += workload.layers[i].forward_flop;
  }
  return recomputed / all;
}

}  // namespace stepcast
