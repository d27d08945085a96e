// Words that stand for enumerators, and what is allowed where one is wrong.
#ifndef STEPCAST_DATA_VALUES_NAMES_H_
#define STEPCAST_DATA_VALUES_NAMES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/operation.h"
#include "data/record/plan.h"

namespace stepcast {

// Another word for the one of an enumeration's names that means the same here.
struct OtherWord {
  std::string_view word;
  std::string_view name;
};
// PyTorch's DistributedDataParallel leaves the algorithm to the library.
inline constexpr OtherWord kStrategyOtherWords[] = {{"ddp", "allreduce"}};
// DeepSpeed's stages, and PyTorch's names.
inline constexpr OtherWord kShardOtherWords[] = {
    {"zero1", "optimizer"},   {"zero2", "gradients"},      {"zero3", "parameters"},
    {"fsdp", "parameters"},   {"fullshard", "parameters"}, {"hsdp", "hybrid"},
    {"hybridshard", "hybrid"}};
inline constexpr OtherWord kPrecisionOtherWords[] = {
    {"float32", "fp32"}, {"float", "fp32"}, {"single", "fp32"},   {"tensorfloat32", "tf32"},
    {"float16", "fp16"}, {"half", "fp16"},  {"bfloat16", "bf16"}, {"float8", "fp8"}};
inline constexpr OtherWord kCompressorOtherWords[] = {
    {"float16", "fp16"}, {"half", "fp16"}, {"bfloat16", "bf16"}};
// Where weights decay apart from the gradient (AdamW), an update passes over the same states.
inline constexpr OtherWord kOptimizerOtherWords[] = {{"adamw", "adam"}};

// The words of an enumeration in files and flags, in the order of its enumerators, and what is
// wrong with any word that is neither of them nor of the others, which are read but never written.
// All are read in any spelling (data/values/spelling.h).
struct Names {
  std::span<const char* const> names;
  const char* problem;
  std::span<const OtherWord> others = {};
  // Words that people say here and that another fact knows: what they are said to be, and that
  // fact as a flag has it without its dashes.
  std::span<const OtherWord> elsewhere = {};
  const char* elsewhere_is = "";
  const char* elsewhere_flag = "";
};
constexpr Names NamesOf(Strategy /*kind*/) {
  return {kStrategyNames,
          "is not a strategy",
          kStrategyOtherWords,
          kShardOtherWords,
          "a way to share the model out",
          "shard"};
}
constexpr Names NamesOf(CongestionControl /*kind*/) {
  return {kCongestionControlNames, "is not a known congestion control"};
}
constexpr Names NamesOf(Transport /*kind*/) { return {kTransportNames, "is not a transport"}; }
constexpr Names NamesOf(Sharding /*kind*/) { return {kShardingNames, "is not a way to shard"}; }
constexpr Names NamesOf(Shard /*kind*/) {
  return {kShardNames, "cannot be shared out", kShardOtherWords};
}
constexpr Names NamesOf(Overlap /*kind*/) { return {kOverlapNames, "is not a way to overlap"}; }
constexpr Names NamesOf(Precision /*kind*/) {
  return {kPrecisionNames, "is not a precision", kPrecisionOtherWords};
}
constexpr Names NamesOf(Compressor /*kind*/) {
  return {kCompressorNames, "is not a way to compress", kCompressorOtherWords};
}
constexpr Names NamesOf(Optimizer /*kind*/) {
  return {kOptimizerNames, "is not an optimizer", kOptimizerOtherWords};
}
constexpr Names NamesOf(AttentionForm /*kind*/) {
  return {kAttentionFormNames, "is not a form of attention"};
}
constexpr Names NamesOf(Recompute /*kind*/) {
  return {kRecomputeNames, "is not a way to recompute activations"};
}

template <class E>
const char* NameOf(E value) {
  return NamesOf(value).names[static_cast<std::size_t>(value)];
}

// The position of the word among the names; empty where it is none of the words.
std::optional<int> FindWord(std::string_view text, const Names& known);
// Throws InputError where `text` is none of the words.
int ParseName(std::string_view text, const InputPlace& place, const Names& known);
// "ring", "ps-sync", ...
template <class E>
E ParseEnum(std::string_view text, const InputPlace& place) {
  return static_cast<E>(ParseName(text, place, NamesOf(E())));
}

// The position of `name` among `names`, to the letter, as programs write them; empty where it is
// none of them.
std::optional<int> FindName(std::string_view name, std::span<const char* const> names);
// The same as people write them: in any spelling.
std::optional<int> FindAlike(std::string_view name, std::span<const char* const> names);
// "a, b, c": what an error allows.
std::string JoinNames(std::span<const char* const> names);
// The same of names that a file may have in any number: of more than twenty the first ten, "and
// 1,190 more".
std::string JoinNames(std::span<const std::string> names);

// The parts of "a,b,c", as they stand. A text without a comma is one part, an empty text too.
std::vector<std::string> SplitList(std::string_view text);

// `text` as the name of something. Throws InputError where it is empty or longer than kLongestName.
std::string CheckedName(std::string_view text, const InputPlace& place);

// The text without white space at both ends.
std::string_view Trim(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_NAMES_H_
