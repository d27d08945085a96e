#include "data/plan/bucket_words.h"

#include "data/values/numbers.h"
#include "data/values/spelling.h"

namespace stepcast {
namespace {

// The cap of a word, else what `read` makes of the text. Its errors name the words as well.
template <class Read>
DataSize<> WordOr(std::string_view text, const InputPlace& place, const Read& read) {
  const std::string spelled = CanonicalName(text);
  for (const BucketWord& word : kBucketWords) {
    if (CanonicalName(word.word) == spelled) return word.cap;
  }
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError(place, error.value(), error.problem(),
                     error.allowed() + ", or " + BucketWordsText());
  }
}

}  // namespace

std::string BucketWordsText() {
  std::string text;
  for (const BucketWord& word : kBucketWords) {
    text += (text.empty() ? "" : "; ") + std::string(word.word) + ": " + std::string(word.meaning);
  }
  return text;
}

DataSize<> ParseBucketCap(std::string_view text, const InputPlace& place) {
  return WordOr(text, place, [&] {
    const DataSize<> cap = ParseDataSize(text, place);
    if (cap > kOneMessage.cap) {
      throw InputError(place, std::string(text), "is out of range", "from 1 B to 10^9 MiB");
    }
    return cap;
  });
}

DataSize<> ParseBucketColumn(std::string_view text, const InputPlace& place) {
  return WordOr(text, place, [&] {
    return Mebibytes(ParseNumber(text, place, kBucketPerTensor.cap.in(kMebibytes),
                                 kOneMessage.cap.in(kMebibytes)));
  });
}

}  // namespace stepcast
