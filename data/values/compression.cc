#include "data/values/compression.h"

#include <fmt/format.h>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/suggest.h"

namespace stepcast {

NumberRange KeptRange(Compressor method) {
  switch (method) {
    case Compressor::kTopK:
      return {1e-9, 1};  // of fewer gradients a worker sends none
    case Compressor::kPowerSgd:
      return {1, 1024};
    default:
      return {0, 0};
  }
}

std::string CompressionNames() {
  std::vector<std::string> names;
  for (const char* name : kCompressorNames) names.emplace_back(name);
  names[static_cast<int>(Compressor::kTopK)] += "=SHARE";
  names[static_cast<int>(Compressor::kPowerSgd)] += "=RANK";
  return JoinNames(names);
}

Compression ParseCompression(std::string_view text, const InputPlace& place) {
  const std::string_view trimmed = Trim(text);
  const std::size_t equals = trimmed.find('=');
  const std::string_view name = Trim(trimmed.substr(0, equals));
  const Names known = NamesOf(Compressor());
  const std::optional<int> found = FindWord(name, known);
  if (!found) {
    throw InputError(place, std::string(text), known.problem + DidYouMean(name, known.names),
                     CompressionNames());
  }
  Compression compression{static_cast<Compressor>(*found)};
  const bool is_stated = equals != std::string_view::npos;
  const NumberRange kept = KeptRange(compression.method);
  if (kept.most > 0) {
    if (!is_stated) {
      throw InputError(place, std::string(text), "does not say how much is kept",
                       compression.is_factored() ? "powersgd=4" : "topk=0.01");
    }
    const std::string_view number = trimmed.substr(equals + 1);
    compression.kept =
        compression.is_factored()
            ? ParseInteger(number, place, static_cast<int>(kept.least), static_cast<int>(kept.most))
            : ParseNumber(number, place, kept);
  } else if (is_stated) {
    throw InputError(place, std::string(text), "takes no number", std::string(name));
  }
  return compression;
}

std::string FormatCompression(const Compression& compression) {
  std::string text = kCompressorNames[static_cast<int>(compression.method)];
  if (KeptRange(compression.method).most > 0) text += fmt::format("={}", compression.kept);
  return text;
}

}  // namespace stepcast
