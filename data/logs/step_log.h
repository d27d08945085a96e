// How long steps took, out of what a training printed.
//
// The forms that are known stand in one table (step_log.cc), each with what its number means: the
// time of one step, the mean of the steps since the number before, the mean of an epoch so far, of
// the whole run, or the time of an epoch. Lines of validation, and bars that are not of training,
// are told apart by their words. A number whose steps begin within the warm-up is not counted, nor
// the first step of a later epoch where one of many steps is told: it would be told too often.
//
// The time t of a step is the mean over what is counted, weighted by the steps w that a number
// stands for (1 where a log does not tell):  t = sum(w t) / sum(w).
// Rates are times: 1 / rate. Quantiles exist where the log tells of single steps. A pattern's times
// may be of either; a count of steps beside them, behind a word for a step or as "450/1000", that
// goes on by more than one from line to line makes that an open question.
//
// The rate of a progress bar is smoothed (tqdm), or that of the whole bar, warm-up included
// (Lightning): its steps are told by the count n and the clock e [s] of two of its lines,
//   t = (e2 - e1) / (n2 - n1),  off by less than 1 s / (e2 - e1), for clocks show whole seconds,
// which are so far apart that this is at most 5 %, or 10 % at the end of a bar. From where a bar
// begins, at 0 s, e2 + 0.5 s is off by half a second at most; n2 / rate, where it is within that
// second, is nearer still. A bar that ends before 5 s tells by its rate, and so does one with
// nothing else to count. Validation takes its time while the clock of the training's bar goes on:
// lines before it and behind it make no pair.
//
// Bars of different titles are different bars; what a number in a title is makes no difference, so
// that "Epoch 1" and "Epoch 2" are one, "Epoch N". A bar holds another that begins within each of
// its steps, as a loop over epochs holds the loop over steps.
//
// A count or a clock that goes back within an epoch is that of a job which was begun anew: what
// comes next has a warm-up of its own.
#ifndef STEPCAST_DATA_LOGS_STEP_LOG_H_
#define STEPCAST_DATA_LOGS_STEP_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "data/logs/log_lines.h"
#include "data/record/input_error.h"

namespace stepcast {

// What a number of a log tells of.
enum class LoggedSpan { kStep, kInterval, kEpochSoFar, kRun, kEpoch };
// Whose samples a throughput counts: the job's, one device's, or those of the process that prints.
enum class SamplesOf { kJob, kDevice, kProcess };
// What a log calls a step: an optimizer's, a micro-step, or it depends on the training.
enum class LoggedCount { kSteps, kMicroSteps, kEither };

struct StepForm {
  const char* name = nullptr;  // whose logs have it
  LoggedSpan span = LoggedSpan::kStep;
  LoggedCount count = LoggedCount::kSteps;
  std::optional<SamplesOf> samples;  // times are of a sample
  bool tokens = false;               // of a token of it
};

// The numbers of one form, rank and bar.
struct StepSeries {
  StepForm form;
  std::string rank;            // empty where nothing tells
  std::int64_t total = 0;      // steps of the bar, of one without a title; 0 for none
  std::string title;           // of the bar, as BarTitle has it
  std::int64_t bar_steps = 0;  // of the bar, with a title or without, as it was seen last
  bool holds_another = false;  // the bar does
  std::int64_t numbers = 0;
  std::int64_t warm_up = 0;      // numbers that are left out
  std::int64_t with_others = 0;  // numbers counted that include validation
  std::int64_t by_rate = 0;      // numbers counted of bars too short for their clock
  std::int64_t begun_anew = 0;   // times that the job was
  double steps = 0;              // that the counted numbers stand for
  double sum_s = 0;              // of the steps' times
  std::int64_t micro_steps = 0;  // of a step, where the log tells; 0 where it does not
  std::vector<double> step_s;    // of single steps, in the order of the log
  int first_line = 0;            // of those that are counted
  int last_line = 0;
  // Of a pattern of which nobody says what it tells: lines whose count of steps has gone on since
  // the line before, and those of them where it went on by more than one.
  std::int64_t gone_on = 0;
  std::int64_t apart = 0;

  double mean_s() const { return sum_s / steps; }
  // Whether a pattern's lines stand for several steps each, and nobody says whether their times are
  // those of one of the steps or means: then how single steps scatter is not known.
  bool may_be_means() const { return 2 * apart > gone_on; }
};

struct StepLog {
  std::vector<StepSeries> series;            // that have numbers, in the order of the table
  std::int64_t validation = 0;               // lines of it
  std::int64_t without_time = 0;             // known lines that tell no time
  std::map<std::string, std::int64_t> bars;  // that are neither training nor validation, by title
  UnknownLines unknown;
  bool by_pattern = false;
  // The first text that a pattern has found and that is no time of a step, and its line.
  std::optional<UnknownLines::Line> no_time;
};

// A number of a log, as it is read.
struct LoggedNumber {
  StepForm form;
  std::string_view rank;
  std::int64_t total = 0;  // of a bar without a title
  double time_s = 0;
  std::int64_t steps = 0;  // that it stands for
  bool warm_up = false;    // left out
  int line = 0;
  bool begins_anew = false;  // the first of a job that was begun anew, left out
  bool by_rate = false;      // of a bar, for whose clock it is too short
  std::string_view title;
  std::int64_t bar_steps = 0;
  bool holds_another = false;
};

struct StepLogOptions {
  int warm_up = 20;  // steps
  // Instead of the forms: the time of a step in a line, if it has one. What was found for it goes
  // into `found`, also where that is no time.
  std::function<std::optional<double>(const std::string& line, std::string* found)> pattern;
  // Told of each number as it is read; then no times of single steps are kept, however many.
  std::function<void(const LoggedNumber&)> on_number = nullptr;
  // Of the pattern's numbers: times of single steps (kStep) or means over several (kInterval). None
  // where nobody says so: they are taken for the former, and that they may be the latter is told.
  std::optional<LoggedSpan> pattern_tells = std::nullopt;
};

// Takes a log line by line.
class StepLogReader {
 public:
  explicit StepLogReader(StepLogOptions options);
  ~StepLogReader();
  StepLogReader(const StepLogReader&) = delete;
  StepLogReader& operator=(const StepLogReader&) = delete;

  // Throws InputError, which names `path` and the line, beyond kMostLoggedSteps single steps or
  // kMostLogSeries series.
  void Take(const LogLine& line, const std::string& path);
  StepLog Finish();
  // So far: lines of validation, bars that are not of training, lines that nobody understands.
  const StepLog& so_far() const { return log_; }

 private:
  struct Reading;  // a series, and how far it has come
  // How bars stand within each other.
  struct Bar {
    std::int64_t at = 0;
    bool entered = false;      // another has begun since its last line
    bool by_its_like = false;  // one of the same title
    std::int64_t loops = 0;    // steps within which another has begun
    std::int64_t plain = 0;    // lines of other steps

    bool HoldsAnother() const { return loops > plain; }
  };
  struct Rank {
    std::int64_t bar_total = 0;  // of the bar without a title that was seen last
    std::int64_t bar_at = 0;
    // Of bars with one, up to its first number: the one that was seen last, by BarTitle.
    std::map<std::string, std::string> titles;
    std::map<std::pair<std::string, std::int64_t>, Bar> bars;  // by title and steps
    bool validates = false;  // since the last line of a training's bar
    bool fits = false;       // Keras: behind "Epoch 1/5", before the last step of the epoch
    bool ended = false;      // the training itself
  };
  // Form, rank, total, title.
  using Key = std::tuple<std::size_t, std::string, std::int64_t, std::string>;
  struct Number;

  void AddValidation(Rank* rank);  // a line of it, by a rank whose bars are read or nullptr
  bool IsTraining(std::string_view before, Rank* rank, Number* number);
  // Takes note of how far a bar is; nullptr where there are too many.
  static const Bar* Follow(Rank* rank, const std::string& title, std::int64_t steps,
                           std::int64_t at);
  void FollowFirst(std::string_view text, const std::string& rank);
  void Add(const Number& number, const LogLine& line, const std::string& path);

  StepLogOptions options_;
  StepLog log_;
  std::map<Key, Reading> series_;
  std::map<std::string, Rank> ranks_;
  std::int64_t single_steps_ = 0;
};

StepLog ReadStepLog(const std::string& path, const StepLogOptions& options);
// The names of the forms, each once, in the order of the table.
std::vector<std::string> StepFormNames();

// A bar's title without what changes from line to line: "Epoch 3, loss 0.1:" is "Epoch N".
std::string BarTitle(std::string_view title);

// What is taken of a log that has more than one form or bar.
struct StepChoice {
  std::string form;            // empty: the first of the table that the log has
  std::int64_t bar_steps = 0;  // of a bar with so many; 0: the only one
  std::string bar_title = {};  // of a bar with this one; empty: the only one

  std::string BarText() const { return bar_steps > 0 ? std::to_string(bar_steps) : bar_title; }
  bool names_a_bar() const { return bar_steps > 0 || !bar_title.empty(); }
  bool Takes(std::int64_t steps, std::string_view title) const {
    return bar_title.empty() ? bar_steps == 0 || steps == bar_steps : title == bar_title;
  }
};

// A bar of a log, whatever the rank.
struct LoggedBar {
  std::int64_t total = 0;  // of one without a title, as in StepSeries
  std::string title;
  std::int64_t steps = 0;
  bool holds_another = false;

  // Its title in quotation marks, if it has one, and its steps.
  std::string Text() const;
};

// Means of ranks within this factor are one job's, told several times.
inline constexpr double kRanksAlike = 1.1;

struct LoggedSteps {
  StepForm form;
  std::vector<StepSeries> ranks;  // one a rank
  // Of them the one whose numbers are taken, where ranks differ by more than kRanksAlike: a
  // synchronous step ends with the slowest.
  std::optional<std::size_t> slowest;
  std::vector<std::string> others;    // forms that the log has besides
  std::string bar;                    // its title, where it has one
  std::vector<LoggedBar> other_bars;  // of training, or without a title, that are not taken
  std::int64_t numbers = 0;
  std::int64_t warm_up = 0;
  std::int64_t with_others = 0;
  std::int64_t by_rate = 0;
  std::int64_t begun_anew = 0;
  std::int64_t micro_steps = 0;  // of a step, as StepSeries has them
  double steps = 0;
  bool may_be_means = false;   // those of a rank, as StepSeries has it
  double mean_s = 0;           // of a sample, where form.samples says so
  std::vector<double> step_s;  // of single steps, the least first
};

// The error of a log that tells no time of a step.
InputError NoStepTimes(const StepLog& log, const std::string& path);

// Throws InputError, which names `path`, where the log has no times of steps, only those of a
// warm-up, or several bars of which none is chosen and none is held by all others.
LoggedSteps ChooseSteps(const StepLog& log, const StepChoice& choice, const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_STEP_LOG_H_
