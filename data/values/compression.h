// What is done to gradients before they are sent, as text.
#ifndef STEPCAST_DATA_VALUES_COMPRESSION_H_
#define STEPCAST_DATA_VALUES_COMPRESSION_H_

#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/plan.h"
#include "data/values/numbers.h"

namespace stepcast {

// What a method keeps, as Compression::kept counts it: topk a share, powersgd a whole rank; 0 to 0
// of those that keep all.
NumberRange KeptRange(Compressor method);

// "none", "fp16", "topk=0.01", "powersgd=4". Throws InputError for any other text.
Compression ParseCompression(std::string_view text, const InputPlace& place);
std::string FormatCompression(const Compression& compression);
// "none, fp16, bf16, int8, topk=SHARE, powersgd=RANK": what an error allows.
std::string CompressionNames();

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_COMPRESSION_H_
