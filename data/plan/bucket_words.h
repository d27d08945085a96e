// Caps of buckets that have a word: at the ends of their range a size says nothing to its reader.
#ifndef STEPCAST_DATA_PLAN_BUCKET_WORDS_H_
#define STEPCAST_DATA_PLAN_BUCKET_WORDS_H_

#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/units/quantity.h"

namespace stepcast {

struct BucketWord {
  std::string_view word;
  std::string_view meaning;
  DataSize<> cap;
};

// The smallest and the largest cap that a plan may have.
inline constexpr BucketWord kBucketPerTensor = {"tensor", "each tensor by itself", Bytes(1.0)};
inline constexpr BucketWord kOneMessage = {"one-message", "all gradients together", Mebibytes(1e9)};
inline constexpr BucketWord kBucketWords[] = {kBucketPerTensor, kOneMessage};

// "tensor: each tensor by itself; one-message: all gradients together".
std::string BucketWordsText();

// "25 MiB", or one of the words.
DataSize<> ParseBucketCap(std::string_view text, const InputPlace& place);
// A number of MiB, or one of the words.
DataSize<> ParseBucketColumn(std::string_view text, const InputPlace& place);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_BUCKET_WORDS_H_
