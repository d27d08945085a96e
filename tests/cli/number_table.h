// Tables of the numbers that a command prints as JSON, beside what they stand for.
#ifndef STEPCAST_TESTS_CLI_NUMBER_TABLE_H_
#define STEPCAST_TESTS_CLI_NUMBER_TABLE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/units/quantity.h"
#include "tests/cli/program.h"

namespace stepcast::program {

// What stands at a JSON pointer.
using NumberTable = std::map<std::string, Json>;

template <class T>
Json Or(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json Or(const std::optional<Duration<>>& value) {
  return value ? Json(value->in(kSeconds)) : Json(nullptr);
}

inline void AddUnder(const std::string& prefix, const NumberTable& part, NumberTable* table) {
  for (const auto& [key, value] : part) (*table)[prefix + key] = value;
}

inline bool Same(const Json& printed, const Json& expected) {
  if (!printed.is_number() || !expected.is_number()) return printed == expected;
  const auto a = printed.get<double>();
  const auto b = expected.get<double>();
  return std::abs(a - b) <= 1e-12 * std::abs(b);
}

// The table and what is printed have the same numbers, under all but the keys in `elsewhere`; words
// are compared where the table has them.
inline void ExpectNumbers(const Json& printed, const NumberTable& table,
                          const std::vector<std::string>& elsewhere = {}) {
  const auto skipped = [&](const std::string& pointer) {
    for (const std::string& prefix : elsewhere) {
      if (pointer.rfind(prefix, 0) == 0) return true;
    }
    return false;
  };
  NumberTable left = table;
  const Json flat = printed.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (skipped(pointer) || value.is_structured()) continue;
    const auto known = left.find(pointer);
    if (known == left.end()) {
      if (value.is_string()) continue;
      EXPECT_TRUE(value.is_null()) << pointer << " is in no table: " << value;
      continue;
    }
    EXPECT_TRUE(Same(value, known->second))
        << pointer << ": printed " << value << ", stands for " << known->second;
    left.erase(known);
  }
  for (const auto& [pointer, value] : left) ADD_FAILURE() << pointer << " is not printed";
}

}  // namespace stepcast::program

#endif  // STEPCAST_TESTS_CLI_NUMBER_TABLE_H_
