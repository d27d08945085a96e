// What the C++ library of Debian's emscripten lacks of C++20, included before every source: numbers
// that are no integers in <charconv>, and the order of two variants and of two optional values.
#ifndef STEPCAST_PREDICTOR_WEB_WASM_MISSING_H_
#define STEPCAST_PREDICTOR_WEB_WASM_MISSING_H_

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

static_assert(_LIBCPP_VERSION < 15000, "This library has them itself: see what is still missing.");

namespace std {  // NOLINT(cert-dcl58-cpp)

// As std::from_chars: no space and no plus before a number, none in hexadecimal digits, and nothing
// is written where it is out of range.
template <class T>
inline from_chars_result FloatFromChars(const char* first, const char* last, T& value,
                                        T (*parse)(const char*, char**)) {
  const string text(first, last);  // ends with a zero
  const size_t digits = text.starts_with('-') ? 1 : 0;
  const bool is_number = digits < text.size() && text[digits] != '+' &&
                         !isspace(static_cast<unsigned char>(text[digits]));
  if (!is_number) return {first, errc::invalid_argument};
  if (text.size() > digits + 1 && text[digits] == '0' && (text[digits + 1] | 0x20) == 'x') {
    value = digits == 1 ? T(-0.0) : T(0);
    return {first + digits + 1, errc()};
  }
  char* end = nullptr;
  errno = 0;
  const T parsed = parse(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* stop = first + (end - text.c_str());
  const bool out = errno == ERANGE && (parsed == 0 || isinf(parsed));
  if (out) return {stop, errc::result_out_of_range};
  value = parsed;
  return {stop, errc()};
}
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  return FloatFromChars(first, last, value, &strtod);
}
inline from_chars_result from_chars(const char* first, const char* last, long double& value) {
  return FloatFromChars(first, last, value, &strtold);
}

// The shortest digits that read as `value`.
inline to_chars_result to_chars(char* first, char* last, double value) {
  const auto [end, size] = fmt::format_to_n(first, last - first, "{}", value);
  if (size > static_cast<size_t>(last - first)) return {last, errc::value_too_large};
  return {end, errc()};
}

template <class... Ts>
constexpr strong_ordering operator<=>(const variant<Ts...>& a, const variant<Ts...>& b) {
  if (a.index() != b.index()) return a.index() <=> b.index();
  return visit(
      [&b](const auto& value) -> strong_ordering {
        using T = decay_t<decltype(value)>;
        if constexpr (is_same_v<T, monostate>) {
          return strong_ordering::equal;
        } else {
          return value <=> *get_if<T>(&b);
        }
      },
      a);
}

template <class T>
constexpr auto operator<=>(const optional<T>& a, const optional<T>& b) -> decltype(*a <=> *b) {
  return a && b ? *a <=> *b : a.has_value() <=> b.has_value();
}

}  // namespace std

#endif  // STEPCAST_PREDICTOR_WEB_WASM_MISSING_H_
