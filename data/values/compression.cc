#include "data/values/compression.h"

#include <fmt/format.h>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

// Of fewer gradients a worker sends none.
constexpr NumberRange kKeptShares{1e-9, 1};

}  // namespace

std::string CompressionNames() { return JoinNames(kCompressorNames) + "=SHARE"; }

Compression ParseCompression(std::string_view text, const InputPlace& place) {
  const std::string_view trimmed = Trim(text);
  const std::size_t equals = trimmed.find('=');
  const std::string_view name = Trim(trimmed.substr(0, equals));
  const std::optional<int> known = FindName(name, kCompressorNames);
  if (!known) {
    throw InputError(place, std::string(text),
                     "is not a way to compress" + DidYouMean(name, kCompressorNames),
                     CompressionNames());
  }
  Compression compression{static_cast<Compressor>(*known)};
  const bool is_stated = equals != std::string_view::npos;
  if (compression.method == Compressor::kTopK) {
    if (!is_stated) {
      throw InputError(place, std::string(text), "does not say how much is kept", "topk=0.01");
    }
    compression.kept = ParseNumber(trimmed.substr(equals + 1), place, kKeptShares);
  } else if (is_stated) {
    throw InputError(place, std::string(text), "takes no number", std::string(name));
  }
  return compression;
}

std::string FormatCompression(const Compression& compression) {
  std::string text = kCompressorNames[static_cast<int>(compression.method)];
  if (compression.method == Compressor::kTopK) text += fmt::format("={}", compression.kept);
  return text;
}

}  // namespace stepcast
