// What is done to gradients before they are sent, as text.
#ifndef STEPCAST_DATA_VALUES_COMPRESSION_H_
#define STEPCAST_DATA_VALUES_COMPRESSION_H_

#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/plan.h"

namespace stepcast {

// "none", "fp16", "topk=0.01". Throws InputError for any other text.
Compression ParseCompression(std::string_view text, const InputPlace& place);
std::string FormatCompression(const Compression& compression);
// "none, fp16, bf16, int8, topk=SHARE": what an error allows.
std::string CompressionNames();

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_COMPRESSION_H_
