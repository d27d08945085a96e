#include "data/workloads/by_numbers.h"

#include <algorithm>
#include <span>
#include <string>

#include "data/record/input_error.h"
#include "data/values/size_limits.h"
#include "data/values/spelling.h"
#include "data/values/text_as_number.h"
#include "data/workloads/families.h"

namespace stepcast {
namespace {

using std::to_string;

constexpr std::int64_t kMostTokens = 131'072;

struct NumberKey {
  std::string_view key;
  std::int64_t DecoderNumbers::*number;
  std::int64_t most;
  bool required;
};

constexpr NumberKey kLayersKey = {"layers", &DecoderNumbers::layers, 256, true};
constexpr NumberKey kHiddenKey = {"hidden", &DecoderNumbers::hidden, 65'536, true};
constexpr NumberKey kHeadsKey = {"heads", &DecoderNumbers::heads, 1'024, true};
constexpr NumberKey kKeyValueHeadsKey = {"kv_heads", &DecoderNumbers::key_value_heads, 1'024,
                                         false};
constexpr NumberKey kMlpKey = {"mlp", &DecoderNumbers::mlp, 1'048'576, false};
constexpr NumberKey kVocabularyKey = {"vocabulary", &DecoderNumbers::vocabulary, 1'048'576, false};

constexpr NumberKey kGptKeys[] = {kLayersKey, kHiddenKey, kHeadsKey, kMlpKey, kVocabularyKey};
constexpr NumberKey kLlamaKeys[] = {kLayersKey,        kHiddenKey, kHeadsKey,
                                    kKeyValueHeadsKey, kMlpKey,    kVocabularyKey};

std::int64_t LlamaMlp(std::int64_t hidden) {
  constexpr std::int64_t kMultiple = 256;
  return (8 * hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

struct DecoderFamily {
  std::string_view name;
  std::span<const NumberKey> keys;
  std::int64_t (*usual_mlp)(std::int64_t hidden);
  std::int64_t usual_vocabulary;
  std::int64_t usual_tokens;
  std::int64_t depth_divisor;  // of the features of a head
  Workload (*make)(const std::string& name, const DecoderNumbers& numbers, std::int64_t tokens);
};

constexpr DecoderFamily kFamilies[] = {
    {"gpt", kGptKeys, GptMlp, kGpt2Vocabulary, kGpt2Positions, 1, GptOf},
    {"llama", kLlamaKeys, LlamaMlp, kLlamaVocabulary, 2048, 2, LlamaOf},
};

std::string UsageOf(const DecoderFamily& family) {
  std::string usage(family.name);
  for (const NumberKey& key : family.keys) {
    const std::string part = ":" + std::string(key.key) + "=N";
    usage += key.required ? part : "[" + part + "]";
  }
  return usage + "[@TOKENS]";
}

// Reads what stands behind the family's name and colon.
class NumbersReader {
 public:
  NumbersReader(std::string_view name, const DecoderFamily& family)
      : name_(name), family_(family) {}

  Workload Read() {
    std::string_view rest = name_.substr(name_.find(':') + 1);
    std::int64_t tokens = family_.usual_tokens;
    if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
      tokens = Number("tokens", rest.substr(at + 1), kMostTokens);
      rest = rest.substr(0, at);
    }
    for (std::size_t from = 0; from <= rest.size();) {
      const std::size_t to = std::min(rest.find(':', from), rest.size());
      Take(rest.substr(from, to - from));
      from = to + 1;
    }
    for (const NumberKey& key : family_.keys) {
      if (key.required && numbers_.*key.number == 0) {
        throw Wrong("does not say " + std::string(key.key), UsageOf(family_));
      }
    }
    const DecoderNumbers usual = {.key_value_heads = numbers_.heads,
                                  .mlp = family_.usual_mlp(numbers_.hidden),
                                  .vocabulary = family_.usual_vocabulary};
    for (const NumberKey& key : {kKeyValueHeadsKey, kMlpKey, kVocabularyKey}) {
      if (numbers_.*key.number == 0) numbers_.*key.number = usual.*key.number;
    }
    Check(tokens);
    std::string canonical(family_.name);
    for (const NumberKey& key : family_.keys) {
      const std::int64_t number = numbers_.*key.number;
      if (!key.required && number == usual.*key.number) continue;
      canonical += ":" + std::string(key.key) + "=" + to_string(number);
    }
    if (tokens != family_.usual_tokens) canonical += "@" + to_string(tokens);
    return family_.make(canonical, numbers_, tokens);
  }

 private:
  InputError Wrong(const std::string& problem, const std::string& allowed) const {
    return {{"", 0, "workload"}, std::string(name_), problem, allowed};
  }

  std::int64_t Number(std::string_view key, std::string_view text, std::int64_t most) const {
    const auto number = TextAsNumber<std::int64_t>(text);
    if (!number || *number < 1 || *number > most) {
      throw Wrong("has no such number of " + std::string(key) + ": '" + Shortened(text) + "'",
                  "1 to " + to_string(most));
    }
    return *number;
  }

  void Take(std::string_view part) {
    const std::size_t equals = std::min(part.find('='), part.size());
    for (const NumberKey& key : family_.keys) {
      if (CanonicalName(key.key) != CanonicalName(part.substr(0, equals))) continue;
      if (numbers_.*key.number != 0) {
        throw Wrong("says " + std::string(key.key) + " twice", UsageOf(family_));
      }
      if (equals == part.size()) break;
      numbers_.*key.number = Number(key.key, part.substr(equals + 1), key.most);
      return;
    }
    throw Wrong("has a part that is none of its numbers: '" + Shortened(part) + "'",
                UsageOf(family_));
  }

  void Check(std::int64_t tokens) const {
    const DecoderNumbers& n = numbers_;
    if (n.hidden % n.heads != 0 || n.hidden / n.heads % family_.depth_divisor != 0) {
      const bool pairs = family_.depth_divisor > 1;
      throw Wrong("has " + to_string(n.hidden) + " features, which do not divide into " +
                      to_string(n.heads) + " heads" + (pairs ? " of pairs" : ""),
                  std::string("heads that divide hidden") + (pairs ? " into even parts" : ""));
    }
    if (n.heads % n.key_value_heads != 0) {
      throw Wrong("has " + to_string(n.heads) + " heads, which do not divide into " +
                      to_string(n.key_value_heads) + " groups",
                  "kv_heads that divide heads");
    }
    if (n.heads * tokens * tokens > kMostOperationElements) {
      throw Wrong("has too many scores of attention",
                  "heads x tokens x tokens of at most " + to_string(kMostOperationElements));
    }
  }

  std::string_view name_;
  const DecoderFamily& family_;
  DecoderNumbers numbers_;
};

}  // namespace

std::optional<Workload> FindByNumbers(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string spelled = CanonicalName(name.substr(0, colon));
  for (const DecoderFamily& family : kFamilies) {
    if (family.name == spelled) return NumbersReader(name, family).Read();
  }
  return std::nullopt;
}

}  // namespace stepcast
