// JSON, read strictly: nothing nests without end, and an object has each key once. Included by
// readers of this project only.
#ifndef STEPCAST_DATA_IO_STRICT_JSON_H_
#define STEPCAST_DATA_IO_STRICT_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "data/record/input_error.h"

namespace stepcast {

// Throws InputError at `place` for what is no JSON, nests more than `deepest` objects and arrays or
// has a key twice; `allowed` says what should be there.
nlohmann::json ParseStrictJson(std::string_view text, int deepest, const InputPlace& place,
                               const std::string& allowed);
// The same; objects have their keys in the order of the text. They should be few: the time is that
// of the square of an object's keys.
nlohmann::ordered_json ParseStrictJsonInOrder(std::string_view text, int deepest,
                                              const InputPlace& place, const std::string& allowed);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_STRICT_JSON_H_
