// The lines of what a program printed, one at a time: a log of gigabytes takes no more memory than
// its longest line.
//
// A progress bar writes its line anew: what a carriage return ends is a line too, with the number
// of the line that it stands in. What dresses text on a terminal (escape sequences, backspaces) is
// left out, blank lines are passed over, and of a line of more than kLongestLogLine bytes the rest
// is not looked at.
#ifndef STEPCAST_DATA_LOGS_LOG_LINES_H_
#define STEPCAST_DATA_LOGS_LOG_LINES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast {

struct LogLine {
  std::string_view text;
  int number = 0;  // of the file, 1-based
};

// Lines out of bytes that come in pieces.
class LogLineCutter {
 public:
  explicit LogLineCutter(std::function<void(const LogLine&)> take) : take_(std::move(take)) {}

  void Add(std::string_view bytes);
  // Ends the last line, which nothing has ended.
  void Finish();
  // What comes next is another file's.
  void BeginAnew();

 private:
  std::function<void(const LogLine&)> take_;
  std::string line_;
  int number_ = 1;
};

// Throws InputError for what cannot be read.
void ForEachLogLine(const std::string& path, const std::function<void(const LogLine&)>& take);
// The same of a text.
void ForEachLogLineOf(std::string_view text, const std::function<void(const LogLine&)>& take);

// Lines that a reader does not know: how many, and the first few of them.
struct UnknownLines {
  struct Line {
    int number = 0;
    std::string text;  // UTF-8 without control characters, shortened
  };
  std::int64_t count = 0;
  std::vector<Line> first;

  void Add(const LogLine& line);
};

// What launchers put before the lines of a process:
//
//   [1,3]<stdout>:           mpirun --tag-output, horovodrun; also with a host or a time before it
//   [rank3]: [default3]:     PyTorch, torchrun --tee (the rank on its node)
//   [3]                      mpiexec -prepend-rank
//   3:                       srun --label
//
// Takes it, or several that follow one another, from the text; the ranks, with dots between them,
// are empty where there is none.
std::string TakeRank(std::string_view* text);

// '0' to '9'.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// 'a' to 'z', or a capital.
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Where the digits begin that end before `at`; `at` where there are none.
std::size_t DigitsBefore(std::string_view text, std::size_t at);
inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// The words between blanks.
std::vector<std::string_view> WordsOf(std::string_view text);
// The number that is the whole of `word`; none where it is not finite.
std::optional<double> NumberOf(std::string_view word);
// The number that begins at `at`, behind blanks, and where it ends.
std::optional<double> NumberFrom(std::string_view text, std::size_t at, std::size_t* end);
// The same of what is printed for people, where thousands may be set apart: 1,200.5 or 1'200.5.
// None where the number may be another, as 12,345 may be 12 and a third, or 1 200 a 1 and a 200;
// what is read is never a part of a number. `Decimals::kNone` is a count, of which 12,345 is one.
enum class Decimals { kMayBe, kNone };
std::optional<double> PrintedNumberFrom(std::string_view text, std::size_t at, std::size_t* end);
// One without sign or exponent that ends before `at`; with `blanks` there may be some between.
// Where it begins goes into `begin`, if that is asked for.
std::optional<double> PrintedNumberUpTo(std::string_view text, std::size_t at, bool blanks,
                                        Decimals decimals = Decimals::kMayBe,
                                        std::size_t* begin = nullptr);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_LOG_LINES_H_
