// Expectations about the one error that a user can cause.
#ifndef STEPCAST_TESTS_SUPPORT_INPUT_ERROR_H_
#define STEPCAST_TESTS_SUPPORT_INPUT_ERROR_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "data/record/input_error.h"

namespace stepcast {

// The error that `act` throws: it must be an InputError, whose text is one line.
template <class Act>
std::optional<InputError> ErrorOf(Act&& act) {
  try {
    act();
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find_first_of("\r\n"), std::string::npos) << text;
    EXPECT_FALSE(error.problem().empty()) << text;
    EXPECT_NE(text.find(error.problem()), std::string::npos) << text;
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an InputError: " << error.what();
  }
  return std::nullopt;
}

// Whether the text of `error` contains `fragment`.
inline ::testing::AssertionResult Says(const std::optional<InputError>& error,
                                       const std::string& fragment) {
  if (!error) return ::testing::AssertionFailure() << "no InputError was thrown";
  const std::string text = error->what();
  if (text.find(fragment) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << text << "' does not say '" << fragment << "'";
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_INPUT_ERROR_H_
