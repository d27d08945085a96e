// Requests that are wrong somewhere: good ones, changed at random.
#ifndef STEPCAST_TESTS_SERVE_MUTATIONS_H_
#define STEPCAST_TESTS_SERVE_MUTATIONS_H_

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::serve {

// Changes `text` at a few places: bits, bytes, pieces left out, repeated, or taken from elsewhere.
inline std::string Mutate(std::string text, std::mt19937* random) {
  static constexpr std::string_view kPieces[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 ":",
                                                 "\"",
                                                 "null",
                                                 "true",
                                                 "-1",
                                                 "0",
                                                 "1e308",
                                                 "-1e-308",
                                                 "1e999",
                                                 "0.5",
                                                 "2147483648",
                                                 "999999999999999999999",
                                                 "\\u0000",
                                                 "\xff",
                                                 "\"plan\":{",
                                                 "{\"a\":",
                                                 "[[[[",
                                                 "\n",
                                                 "\"workers\":16",
                                                 "\"ps-sync\"",
                                                 "NaN",
                                                 "\\ud800",
                                                 "/",
                                                 "\"\"",
                                                 "65536"};
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : (*random)() % n; };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 16) + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 4:
        text.replace(at, length, kPieces[below(std::size(kPieces))]);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

}  // namespace stepcast::serve

#endif  // STEPCAST_TESTS_SERVE_MUTATIONS_H_
