#include "data/logs/step_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include "data/plan/run_ranges.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

// ---- The forms.

// kBeside: before, after blanks, or behind; the unit, a rate, may go on as in "samples/second".
enum class Side { kBefore, kBeforeAfterBlanks, kAfter, kBeside };
// kBehindValidation: a number behind a line of validation includes it. kCount: it has no decimals.
enum class How { kPlain, kKeras, kBar, kEndOfRun, kBehindValidation, kCount };

struct Unit {
  double seconds = 1;  // that one of it is
  bool is_rate = false;
};
constexpr Unit kS{1, false};
constexpr Unit kMs{1e-3, false};
constexpr Unit kUs{1e-6, false};
constexpr Unit kPerS{1, true};

// Instead of a text behind which the counter stands: "450/1000" or "450/ 1000", the last before the
// number.
constexpr std::string_view kFraction = "/";
// A counter that begins anew with each epoch, whose steps it does not tell.
constexpr std::string_view kOfEpoch = "Batch [";

struct Form {
  StepForm what;
  std::string_view mark;  // stands beside the number
  Side side;              // where the number stands, seen from the mark
  Unit unit;
  std::string_view also = {};     // stands before the number, or before the mark
  std::string_view then = {};     // stands behind the number
  std::string_view counter = {};  // the steps so far stand behind it
  How how = How::kPlain;
};

constexpr StepForm Steps(const char* name, LoggedSpan span,
                         LoggedCount count = LoggedCount::kSteps) {
  return {name, span, count, std::nullopt};
}
constexpr StepForm Samples(const char* name, LoggedSpan span, SamplesOf samples) {
  return {name, span, LoggedCount::kSteps, samples};
}
constexpr StepForm Tokens(const char* name, LoggedSpan span, SamplesOf samples) {
  return {name, span, LoggedCount::kSteps, samples, true};
}

constexpr auto kOne = LoggedSpan::kStep;
constexpr auto kMean = LoggedSpan::kInterval;
constexpr auto kSoFar = LoggedSpan::kEpochSoFar;
constexpr auto kMicro = LoggedCount::kMicroSteps;
constexpr auto kEither = LoggedCount::kEither;

// The first that a line has is taken; of several in one log, the first name of this table. Each
// form is that of the program's source or of logs that its users published:
//   PyTorch    pytorch/examples imagenet/main.py, AverageMeter and ProgressMeter
//   timm       huggingface/pytorch-image-models train.py
//   nanoGPT    karpathy/nanoGPT train.py: of the last step, from the end of the one before, and
//              with it what is evaluated between them
//   OpenMMLab  open-mmlab/mmcv TextLoggerHook; detectron2 CommonMetricPrinter; torchvision
//              references MetricLogger: means over some steps
//   Megatron   NVIDIA/Megatron-LM training_log
//   torchtitan pytorch/torchtitan components/metrics.py: tokens of a device in a second
//   MaxText    AI-Hypercomputer/maxtext metric_logger.py; its first steps are handed over before
//              they are done, so that they tell too much, and then too little
//   NeMo       NVIDIA/NeMo TimingCallback, the mean of the last steps, of one where nobody says
//              more; in its own lines, at the end of Lightning's bar, and in the DLLogger's JSON
//   Composer   mosaicml/composer SpeedMonitor in the lines of its ConsoleLogger: batches of all
//              devices, the mean of a window of steps, which may reach back beyond the line before
//   DeepSpeed  deepspeed/utils/timer.py ThroughputTimer
//   fairseq    fairseq/logging/progress_bar.py: updates a second
//   TensorFlow StepCounterHook; slim's learning.py; the 2016 imagenet example of distributed slim
//   Keras      keras Progbar: of an epoch so far, its first step left out; a last line with
//              val_ includes the validation
//   bars       tqdm's format_meter, as it is and in PyTorch Lightning and Hugging Face's Trainer:
//              its rate is a moving average, or one of the whole bar (smoothing 0, as Lightning
//              has it), so that steps are told by how long the bar has taken
//   Trainer    transformers speed_metrics, as it is printed and in trainer_state.json
//   MXNet      mxnet.callback.Speedometer
//   Horovod    examples/*_synthetic_benchmark.py
//   tf_cnn_benchmarks  tensorflow/benchmarks benchmark_cnn.py
//   epochs     "Epoch 3 finished in 206.40s": the loops of Raddatz de Matos et al., Performance
//              Evaluation of Distributed Deep Learning Training on Low-Bandwidth Networks,
//              tensorflow/train-ctl.py of their companion repository
constexpr Form kForms[] = {
    {Steps("PyTorch", kOne, kMicro), "Time", Side::kAfter, kS, ": [", " (", kFraction},
    {Steps("TensorFlow slim", kOne), "sec/step)", Side::kBeforeAfterBlanks, kS, "step", "",
     "global step "},
    {Steps("TensorFlow slim", kOne), "sec/batch)", Side::kBeforeAfterBlanks, kS, "step", "",
     "step "},
    {Steps("timm", kOne), " Time: ", Side::kAfter, kS, "[", "s,", kFraction},
    {Steps("nanoGPT", kOne), ", time ", Side::kAfter, kMs, "iter ", "ms", "iter ",
     How::kBehindValidation},
    {Steps("OpenMMLab", kMean, kEither), " time: ", Side::kAfter, kS, "iter: ", "", "iter: "},
    {Steps("OpenMMLab", kMean, kEither), " time: ", Side::kAfter, kS, "eta: ", "", kFraction},
    {Steps("Megatron", kMean), "elapsed time per iteration (ms):", Side::kAfter, kMs, "iteration",
     "", kFraction},
    {Tokens("torchtitan", kMean, SamplesOf::kDevice), " tps: ", Side::kAfter, kPerS,
     " memory: ", "", "step: ", How::kCount},
    {Steps("MaxText", kOne), ", seconds: ", Side::kAfter, kS, "completed step: ", "",
     "completed step: "},
    {Steps("NeMo", kMean, kEither), "train_step_timing in s: ", Side::kAfter, kS, "", "",
     kFraction},
    {Steps("NeMo", kMean, kEither), "train_step_timing in s=", Side::kAfter, kS, "", "", kFraction},
    {Steps("NeMo", kMean, kEither), "\"train_step_timing in s\": ", Side::kAfter, kS, "", "",
     "\"global_step\": "},
    {Steps("Composer", kMean), "Train throughput/batches_per_sec: ", Side::kAfter, kPerS},
    {Samples("DeepSpeed", kMean, SamplesOf::kJob), "CurrSamplesPerSec=", Side::kAfter, kPerS, "",
     "", "global_step="},
    {Steps("fairseq", kMean), "ups=", Side::kAfter, kPerS, "", "", kFraction},
    {Steps("fairseq", kMean), "\"ups\": \"", Side::kAfter, kPerS, "", "\"", "\"num_updates\": \""},
    {Steps("Keras", kSoFar), "us/step", Side::kBefore, kUs, "", "", kFraction, How::kKeras},
    {Steps("Keras", kSoFar), "ms/step", Side::kBefore, kMs, "", "", kFraction, How::kKeras},
    {Steps("Keras", kSoFar), "s/step", Side::kBefore, kS, "", "", kFraction, How::kKeras},
    {Steps("progress bar", kMean, kEither), "it/s", Side::kBefore, kPerS, "", "", kFraction,
     How::kBar},
    {Steps("progress bar", kMean, kEither), "s/it", Side::kBefore, kS, "", "", kFraction,
     How::kBar},
    {Steps("TensorFlow", kMean), "global_step/sec: ", Side::kAfter, kPerS},
    {Samples("MXNet", kMean, SamplesOf::kProcess), "Speed: ", Side::kAfter, kPerS, kOfEpoch,
     " samples/sec", kOfEpoch},
    {Samples("Horovod", kMean, SamplesOf::kDevice), "img/sec per GPU", Side::kBeforeAfterBlanks,
     kPerS, "Iter #"},
    {Samples("tf_cnn_benchmarks", LoggedSpan::kRun, SamplesOf::kJob),
     "total images/sec: ", Side::kAfter, kPerS},
    {Samples("tf_cnn_benchmarks' processes", kSoFar, SamplesOf::kProcess),
     "images/sec: ", Side::kAfter, kPerS, "", " +/-"},
    {Samples("samples/s", kMean, SamplesOf::kProcess), "samples/sec", Side::kBeside, kPerS},
    {Samples("samples/s", kMean, SamplesOf::kProcess), "samples/s", Side::kBeside, kPerS},
    {Samples("samples/s", kMean, SamplesOf::kProcess), "images/s", Side::kBeside, kPerS},
    {Samples("samples/s", kMean, SamplesOf::kProcess), "imgs/s", Side::kBeside, kPerS},
    {Samples("samples/s", kMean, SamplesOf::kProcess), "img/s", Side::kBeside, kPerS},
    {Steps("Trainer", LoggedSpan::kRun), "'train_steps_per_second': ", Side::kAfter, kPerS, "", "",
     "", How::kEndOfRun},
    {Steps("Trainer", LoggedSpan::kRun), "\"train_steps_per_second\": ", Side::kAfter, kPerS, "",
     "", "", How::kEndOfRun},
    {Steps("epochs", LoggedSpan::kEpoch), " finished in ", Side::kAfter, kS, "Epoch ", "s"},
};
// What lines have that belong to a form and tell no time.
constexpr std::string_view kWithoutTime[] = {" - ETA: ", "?it/s",   "?s/it",
                                             "'loss': ", "step = ", "TIME TRAINING:"};
constexpr std::string_view kNoRate[] = {"?it/s", "?s/it"};
constexpr std::string_view kOfValidation[] = {"'eval_", ", val loss "};

// Times of one name belong together, in whatever unit a line tells them.
constexpr std::size_t FirstOfItsName(std::size_t form) {
  const std::string_view name = kForms[form].what.name;
  while (form > 0 && kForms[form - 1].what.name == name) --form;
  return form;
}

constexpr StepForm kOfPattern = Steps("pattern", kOne, kEither);
constexpr std::size_t kPattern = std::size(kForms);

// ---- Words.

// The words that tell what a text is of, to the letter but for capitals.
constexpr std::string_view kValidationWords[] = {
    "val",  "valid",   "validation", "validating", "validate",   "sanity",
    "test", "testing", "eval",       "evaluating", "evaluation", "predicting"};
constexpr std::string_view kTrainingWords[] = {"epoch",      "epochs", "train",   "training",
                                               "step",       "steps",  "iter",    "iteration",
                                               "iterations", "batch",  "batches", "fit"};

bool HasWordOf(std::string_view text, std::span<const std::string_view> words) {
  std::string word;
  const auto known = [&] { return std::find(words.begin(), words.end(), word) != words.end(); };
  for (const char c : text) {
    if (IsLetter(c) || c == '_') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      if (known()) return true;
      word.clear();
    }
  }
  return known();
}

// ---- Numbers that count.

struct Fraction {
  std::int64_t part = 0;
  std::int64_t whole = 0;
  std::size_t begin = 0;
};

constexpr std::string_view kDigits = "0123456789";
constexpr std::int64_t kMostCounted = 1'000'000'000'000;

// The count that begins at `at`, behind blanks; its thousands may be set apart.
std::optional<double> CountFrom(std::string_view text, std::size_t at) {
  std::size_t end = 0;
  const auto plain = NumberFrom(text, at, &end);
  if (!plain || end == text.size()) return plain;
  end = std::min(text.find_first_not_of("0123456789,'_", end), text.size());
  while (!IsDigit(text[end - 1])) --end;
  std::size_t begin = 0;
  const auto apart = PrintedNumberUpTo(text, end, false, Decimals::kNone, &begin);
  return apart && begin == text.find_first_not_of(" \t", at) ? apart : plain;
}

// The same as a number of steps; none where it is negative or more than kMostCounted.
std::optional<std::int64_t> StepsFrom(std::string_view text, std::size_t at) {
  const auto count = CountFrom(text, at);
  if (!count || *count < 0 || *count > static_cast<double>(kMostCounted)) return std::nullopt;
  return static_cast<std::int64_t>(*count);
}

// The last "450/1000" or "450/ 1000" of a text.
std::optional<Fraction> LastFraction(std::string_view text) {
  for (std::size_t slash = text.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = text.rfind('/', slash - 1)) {
    const auto whole = CountFrom(text, slash + 1);
    if (!whole || *whole > static_cast<double>(kMostCounted)) continue;
    std::size_t begin = slash;
    auto part = PrintedNumberUpTo(text, slash, false, Decimals::kNone, &begin);
    if (!part || *part > *whole) {
      begin = DigitsBefore(text, slash);
      part = NumberOf(text.substr(begin, slash - begin));
    }
    if (!part || *whole < *part) continue;
    return Fraction{static_cast<std::int64_t>(*part), static_cast<std::int64_t>(*whole), begin};
  }
  return std::nullopt;
}

std::optional<std::int64_t> CounterOf(const Form& form, std::string_view text) {
  if (form.counter.empty()) return std::nullopt;
  const std::size_t at = text.find(form.counter);
  if (at == std::string_view::npos) return std::nullopt;
  return StepsFrom(text, at + form.counter.size());
}

// The count of steps in a line of a pattern, which has found `found` there: the number behind a
// word for a step, as in "step 450" or "iter: [450", else the last "450/1000".
std::optional<std::int64_t> CountBeside(std::string_view text, std::string_view found) {
  constexpr std::string_view kWords[] = {"global_step", "step",       "steps", "iter",
                                         "iteration",   "iterations", "batch"};
  const auto of_word = [](char c) { return IsLetter(c) || c == '_'; };
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view word : kWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      const std::size_t begin = lower.find_first_not_of(" \t:=#[(\"'", at + word.size());
      if (begin == std::string::npos || (at > 0 && of_word(lower[at - 1]))) continue;
      const std::size_t end = std::min(lower.find_first_not_of(kDigits, begin), lower.size());
      const bool is_part = end < lower.size() && (of_word(lower[end]) || lower[end] == '.');
      if (end == begin || is_part || text.substr(begin, end - begin) == found) continue;
      if (const auto count = StepsFrom(text, begin)) return count;
    }
  }
  const auto fraction = LastFraction(text);
  return fraction ? std::optional(fraction->part) : std::nullopt;
}

// DeepSpeed counts both: "micro_step=40/global_step=10" has four in a step.
std::int64_t MicroStepsOf(std::string_view text, std::int64_t steps) {
  constexpr std::string_view kMicroStep = "micro_step=";
  const std::size_t at = text.find(kMicroStep);
  if (at == std::string_view::npos || steps <= 0) return 0;
  const std::int64_t micro_steps = StepsFrom(text, at + kMicroStep.size()).value_or(0);
  return micro_steps % steps == 0 ? micro_steps / steps : 0;
}

// The "1:02:03" that a bar has taken, in whole seconds: behind its last "[", before "<" or ",".
std::optional<double> ElapsedOf(std::string_view before) {
  constexpr double kLongest = 1e9;
  const std::size_t open = before.rfind('[');
  if (open == std::string_view::npos) return std::nullopt;
  double seconds = 0;
  double part = 0;
  bool has_digits = false;
  bool has_parts = false;
  for (const char c : before.substr(open + 1)) {
    if (IsDigit(c)) {
      part = 10 * part + (c - '0');
      if (part > kLongest) return std::nullopt;
      has_digits = true;
      continue;
    }
    if (!has_digits) return std::nullopt;
    seconds = 60 * seconds + part;
    if (seconds > kLongest) return std::nullopt;
    if (c == '<' || c == ',') return has_parts ? std::optional(seconds) : std::nullopt;
    if (c != ':') return std::nullopt;
    part = 0;
    has_digits = false;
    has_parts = true;
  }
  return std::nullopt;
}

// The number of a unit at `mark`, where `before` stands before it. A number behind the unit and a
// ":" or "=" is the unit's, whatever stands before. Of two numbers without such a sign the one
// before is the unit's if it is written to it, or if the one behind has a unit of its own; else
// nobody knows.
std::optional<double> OfUnit(std::string_view text, std::size_t mark, std::size_t length,
                             std::optional<double> before) {
  const auto is_word = [&](std::size_t at) { return at < text.size() && IsLetter(text[at]); };
  std::size_t at = mark + length;
  for (const std::string_view rest : {"econd", "ec"}) {
    if (text.substr(at).starts_with(rest)) {
      at += rest.size();
      break;
    }
  }
  if (is_word(at)) return std::nullopt;  // samples/step
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
  at = std::min(text.find_first_not_of(" \t", at), text.size());
  const bool signs = at < text.size() && (text[at] == ':' || text[at] == '=');
  if (signs) {
    at = std::min(text.find_first_not_of(" \t", at + 1), text.size());
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
  }
  std::size_t end = 0;
  if (!NumberFrom(text, at, &end)) return before;
  const std::optional<double> behind = PrintedNumberFrom(text, at, &end);
  if (signs) return behind;
  const bool is_of_another = is_word(end) || text.substr(end).starts_with('%');
  const bool is_written_to_it = before && mark > 0 && IsDigit(text[mark - 1]);
  if (is_of_another || is_written_to_it) return before;
  return before ? std::nullopt : behind;
}

struct Found {
  double value = 0;
  std::size_t at = 0;  // where the number, or a mark before it, begins
};

std::optional<Found> FindIn(const Form& form, std::string_view text) {
  // Where a mark stands more often, its number stands at the first few.
  constexpr int kMostMarks = 4;
  std::size_t mark = text.find(form.mark);
  for (int i = 0; i < kMostMarks && mark != std::string_view::npos; ++i) {
    std::optional<double> value;
    if (form.side == Side::kAfter) {
      std::size_t begin = mark + form.mark.size();
      if (begin < text.size() && text[begin] == '\'') ++begin;
      std::size_t end = 0;
      value =
          form.how == How::kCount ? CountFrom(text, begin) : PrintedNumberFrom(text, begin, &end);
      if (value && !text.substr(end).starts_with(form.then)) value.reset();
    } else {
      value = PrintedNumberUpTo(text, mark, form.side != Side::kBefore);
      if (form.side == Side::kBeside) value = OfUnit(text, mark, form.mark.size(), value);
    }
    if (value && Contains(text.substr(0, mark), form.also)) return Found{*value, mark};
    mark = text.find(form.mark, mark + 1);
  }
  return std::nullopt;
}

bool HasLetter(std::string_view text) { return std::any_of(text.begin(), text.end(), IsLetter); }

// Where a bar is drawn, "[===>...]", or its clock begins, "[00:45<": at the first bracket that is
// none of a title, as "[val]" or "Epoch [1/10]" is.
std::size_t BarBegins(std::string_view text) {
  std::size_t open = text.find('[');
  while (open != std::string_view::npos) {
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return open;
    const std::string_view within = text.substr(open + 1, close - open - 1);
    const bool counts = !within.empty() && std::all_of(within.begin(), within.end(), [](char c) {
      return IsDigit(c) || c == '/';
    });
    if (!counts && !HasLetter(within)) return open;
    open = text.find('[', close);
  }
  return text.size();
}

// A line's time in brackets, "[10:00:01] ", is no part of a title.
std::string_view WithoutTime(std::string_view text) {
  text = Trim(text);
  while (text.size() > 1 && text.front() == '[' && IsDigit(text[1])) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) break;
    text = Trim(text.substr(close + 1));
  }
  return text;
}

// What stands before a bar's clock or rate.
struct BarText {
  std::string_view title;
  std::optional<Fraction> fraction;
  std::optional<std::int64_t> count;  // of a bar without a total
};
BarText BarTextOf(std::string_view before) {
  BarText text;
  text.fraction = LastFraction(before);
  std::size_t end = std::string_view::npos;
  if (text.fraction) {
    end = text.fraction->begin;
  } else if (const std::size_t counted = before.find("it ["); counted != std::string_view::npos) {
    std::size_t begin = counted;
    const auto count = PrintedNumberUpTo(before, counted, false, Decimals::kNone, &begin);
    if (count && *count <= static_cast<double>(kMostCounted)) {
      text.count = static_cast<std::int64_t>(*count);
      end = begin;
    }
  }
  std::string_view title = WithoutTime(before.substr(0, end));
  title = title.substr(0, BarBegins(title));
  if (const std::size_t percent = title.find('%'); percent != std::string_view::npos) {
    title = title.substr(0, DigitsBefore(title, percent));
  }
  text.title = Trim(title);
  return text;
}

// The title as people are shown it.
std::string Shown(std::string_view title) {
  UnknownLines named;
  named.Add({title, 0});
  return named.first.front().text;
}

// "Epoch 1/5" alone.
bool IsKerasHeader(std::string_view text) {
  const std::string_view line = Trim(text);
  constexpr std::string_view kEpoch = "Epoch ";
  const auto fraction = LastFraction(line);
  return line.starts_with(kEpoch) && fraction && fraction->begin == kEpoch.size() &&
         IsDigit(line.back()) && !Contains(line, "[");
}

}  // namespace

struct StepLogReader::Number {
  std::size_t form = 0;
  std::string rank;
  std::int64_t total = 0;
  std::string title;           // of a bar
  bool holds_another = false;  // the bar does
  double time_s = 0;
  std::optional<std::int64_t> counter;
  std::int64_t micro_steps = 0;  // of a step
  std::int64_t whole = 0;        // of what is counted, where the line tells
  bool counts_the_job = false;   // an epoch does not begin the counter anew
  bool begins = false;           // the first of a bar that has another title than the one before
  bool last_of_epoch = false;
  bool with_others = false;
  bool behind_validation = false;   // that stands between it and the bar's line before
  std::optional<double> elapsed_s;  // of a bar, in whole seconds
  // The count that stands in a pattern's line; nothing is counted by it.
  std::optional<std::int64_t> beside;
};

// How long a bar had taken at a step.
struct BarMoment {
  std::int64_t step = 0;
  double elapsed_s = 0;
};

struct StepLogReader::Reading {
  StepSeries series;
  std::int64_t done = 0;  // steps before
  std::optional<std::int64_t> counter;
  // The mean of an epoch until the epoch is over.
  std::optional<double> so_far_s;
  bool so_far_with_others = false;
  int so_far_line = 0;
  // Steps from one that is told to the next, within an epoch; 0 before there are two.
  std::int64_t longest_between = 0;
  bool begins_anew = false;  // with the next number
  // What is known of a bar so far.
  BarMoment told;                   // up to which it was counted; all 0 where it begins
  std::optional<BarMoment> latest;  // of its line before
  bool ended = false;               // with the line before
  // By its rate, what its clock is too coarse for.
  double rated_s = 0;
  std::int64_t rated_steps = 0;
  int rated_line = 0;
  std::optional<std::int64_t> beside;  // the number's of the same name, of the line before

  // The first step of an epoch waits for its samples. Where all steps are told it is one of them;
  // where one of many is, it is told always, and stands for itself alone.
  bool IsToldAsTheFirst(std::int64_t of_epoch) const {
    constexpr std::int64_t kFirst = 1;  // or 0
    return of_epoch <= kFirst && longest_between > 2;
  }

  // Whether a count that goes back, where no epoch has ended, tells of a job that was begun anew.
  // Those of processes that print into one log are a few lines apart.
  bool IsBegunAnew(const Number& number) const {
    constexpr std::int64_t kLinesApart = 3;
    if (!counter || !number.counter || number.begins) return false;
    return longest_between > 0 &&
           (number.counts_the_job || *counter + longest_between < number.whole) &&
           *counter - *number.counter > kLinesApart * longest_between;
  }
  void BeginAnew() {
    begins_anew = true;
    ++series.begun_anew;
    done = 0;
  }

  // Counts a time that stands for so many steps, the first of which is the step `begin`.
  void Count(double time_s, std::int64_t steps, std::int64_t begin, const StepLogOptions& options,
             int line, bool leave_out = false, bool by_rate = false) {
    const bool anew = std::exchange(begins_anew, false);
    leave_out = leave_out || anew;
    const bool is_left_out = leave_out || begin < options.warm_up;
    if (options.on_number) {
      options.on_number({series.form, series.rank, series.total, time_s, steps, is_left_out, line,
                         anew, by_rate, series.title, series.bar_steps, series.holds_another});
    }
    if (is_left_out) {
      ++series.warm_up;
      return;
    }
    ++series.numbers;
    series.by_rate += by_rate ? 1 : 0;
    series.steps += static_cast<double>(steps);
    series.sum_s += static_cast<double>(steps) * time_s;
    if (series.first_line == 0) series.first_line = line;
    series.last_line = line;
  }
  // Counts steps of a bar by its rate.
  void CountRated(const StepLogOptions& options) {
    Count(rated_s, rated_steps, done, options, rated_line, false, true);
    rated_steps = 0;
  }
  // A bar's steps since those that were counted last, once they took long enough for its clock.
  void CountBar(const Number& number, const StepLogOptions& options, int line) {
    constexpr double kMostOff = 0.05;
    constexpr double kMostOffAtTheEnd = 0.1;
    constexpr double kProcessesApart = 1;  // s, of those that print into one log
    const BarMoment now = {*number.counter, *number.elapsed_s};
    const BarMoment before = latest.value_or(BarMoment{});
    const bool clock_is_back = now.elapsed_s + kProcessesApart < before.elapsed_s;
    const bool is_new =
        clock_is_back || (ended && 2 * now.step <= before.step) ||
        (number.begins && (ended || now.step <= before.step || now.elapsed_s < before.elapsed_s));
    const bool anew =
        clock_is_back && !number.begins && before.step + longest_between < number.whole;
    if (is_new) {
      told = {};
    } else if (latest) {
      longest_between = std::max(longest_between, now.step - before.step);
    }
    const bool is_first = is_new || !latest;
    latest = now;
    ended = number.last_of_epoch;
    if (anew) {
      BeginAnew();
      // The steps before were another bar's.
      Count(number.time_s, 1, 0, options, line);
      rated_steps = 0;
      told = now;
      return;
    }
    const std::int64_t steps = now.step - told.step;
    if (steps <= 0) return;  // the line was written anew, or is another process'
    rated_s = number.time_s;
    rated_steps = steps;
    rated_line = line;
    if (done < options.warm_up) {
      CountRated(options);
    } else if (is_first || !number.behind_validation) {
      const bool from_beginning = told.step == 0;
      double took = now.elapsed_s - told.elapsed_s;
      double off = 1;
      if (from_beginning) {
        const double by_rate = static_cast<double>(steps) * number.time_s;
        took = by_rate >= took && by_rate <= took + 1 ? by_rate : took + 0.5;
        off = 0.5;
      }
      const double time_s = took / static_cast<double>(steps);
      if (off <= (ended ? kMostOffAtTheEnd : kMostOff) * took && kStepTimes.Holds(time_s)) {
        Count(time_s, steps, done, options, line);
      } else if (ended && from_beginning) {
        CountRated(options);
      } else {
        return;
      }
    }
    done += steps;
    told = now;
  }
  // Counts what is there where the clock was too coarse for all of it.
  void EndBar(const StepLogOptions& options) {
    if (series.numbers == 0 && rated_steps > 0 && done >= options.warm_up) CountRated(options);
  }
  // Ends the epoch of which a mean so far is known.
  void EndEpoch(const StepLogOptions& options) {
    if (!so_far_s) return;
    const std::int64_t steps = std::max<std::int64_t>(1, counter.value_or(1));
    const std::int64_t before = series.numbers;
    Count(*so_far_s, steps, counter ? done : options.warm_up, options, so_far_line);
    if (series.numbers > before && so_far_with_others) ++series.with_others;
    done += steps;
    so_far_s.reset();
    counter.reset();
  }
};

StepLogReader::StepLogReader(StepLogOptions options) : options_(std::move(options)) {
  log_.by_pattern = options_.pattern != nullptr;
}
StepLogReader::~StepLogReader() = default;

void StepLogReader::AddValidation(Rank* rank) {
  ++log_.validation;
  if (rank != nullptr) rank->validates = true;
}

// Whether a bar is one of training; it says which, and how far it is.
bool StepLogReader::IsTraining(std::string_view before, Rank* rank, Number* number) {
  constexpr std::size_t kMostTitles = 1'000;
  const BarText bar = BarTextOf(before);
  const auto& fraction = bar.fraction;
  if (fraction) {
    number->last_of_epoch = fraction->part == fraction->whole;
  } else if (bar.count) {
    number->counter = bar.count;
  }
  if (HasWordOf(bar.title, kValidationWords)) {
    AddValidation(rank);
    return false;
  }
  if (HasWordOf(bar.title, kTrainingWords)) {
    number->title = BarTitle(bar.title);
    // What stands behind the number of an epoch may be another with each line, as a loss.
    const std::size_t digit = std::min(bar.title.find_first_of(kDigits), bar.title.size());
    const std::size_t end = std::min(bar.title.find_first_not_of(kDigits, digit), bar.title.size());
    const std::string_view title = bar.title.substr(0, end);
    if (rank->titles.size() >= kMostTitles) rank->titles.clear();
    std::string& last = rank->titles[number->title];
    number->begins = last != title;
    last = title;
    if (!fraction) return true;
    if (const Bar* seen = Follow(rank, number->title, fraction->whole, fraction->part)) {
      number->holds_another = seen->HoldsAnother();
      if (number->holds_another && seen->by_its_like) number->total = fraction->whole;
    }
    return true;
  }
  if (HasLetter(bar.title)) {
    const std::string name = Shown(bar.title);
    if (log_.bars.size() < kMostTitles || log_.bars.count(name) > 0) ++log_.bars[name];
    return false;
  }
  number->total = fraction ? fraction->whole : 0;
  if (fraction) Follow(rank, "", fraction->whole, fraction->part);
  if (rank->ended) {
    AddValidation(rank);
    return false;
  }
  const std::int64_t at = fraction ? fraction->part : 0;
  const bool same = number->total == rank->bar_total && at >= rank->bar_at;
  // A bar that begins before another has ended stands within it.
  if (!same && rank->bar_at < rank->bar_total) {
    AddValidation(rank);
    return false;
  }
  rank->bar_total = number->total;
  rank->bar_at = at;
  return true;
}

const StepLogReader::Bar* StepLogReader::Follow(Rank* rank, const std::string& title,
                                                std::int64_t steps, std::int64_t at) {
  constexpr std::size_t kMostBars = 64;
  const auto key = std::pair(title, steps);
  const auto found = rank->bars.find(key);
  const bool is_new = found == rank->bars.end();
  if (is_new && rank->bars.size() >= kMostBars) return nullptr;
  Bar& bar = is_new ? rank->bars[key] : found->second;
  if (is_new || at < bar.at) {
    for (auto& [of, other] : rank->bars) {
      if (&other == &bar || other.at >= of.second) continue;
      other.entered = true;
      other.by_its_like = other.by_its_like || of.first == title;
    }
    bar.entered = false;
  } else if (at > bar.at) {
    ++(bar.entered && at == bar.at + 1 ? bar.loops : bar.plain);
    bar.entered = false;
  }
  bar.at = at;
  return &bar;
}

// A bar's first line has no rate, but tells that it has begun.
void StepLogReader::FollowFirst(std::string_view text, const std::string& rank) {
  const BarText bar = BarTextOf(text.substr(0, text.find('?')));
  if (!bar.fraction || HasWordOf(bar.title, kValidationWords)) return;
  const bool has_title = HasWordOf(bar.title, kTrainingWords);
  if (!has_title && HasLetter(bar.title)) return;
  if (ranks_.size() >= kMostLogSeries && ranks_.count(rank) == 0) return;
  Follow(&ranks_[rank], has_title ? BarTitle(bar.title) : "", bar.fraction->whole,
         bar.fraction->part);
}

void StepLogReader::Add(const Number& number, const LogLine& line, const std::string& path) {
  const auto [found, is_new] =
      series_.try_emplace({number.form, number.rank, number.total, number.title});
  Reading& reading = found->second;
  if (is_new) {
    if (series_.size() > kMostLogSeries) {
      throw InputError({path, line.number, ""}, "", "has a rank or a bar too many",
                       fmt::format("at most {}", kMostLogSeries));
    }
    reading.series.form = number.form == kPattern ? kOfPattern : kForms[number.form].what;
    if (number.form == kPattern && options_.pattern_tells) {
      reading.series.form.span = *options_.pattern_tells;
    }
    reading.series.rank = number.rank;
    reading.series.total = number.total;
    if (!number.title.empty()) reading.series.title = Shown(number.title);
  }
  if (!number.title.empty() || number.total > 0) reading.series.bar_steps = number.whole;
  reading.series.holds_another = number.holds_another;
  if (number.micro_steps > 0) reading.series.micro_steps = number.micro_steps;
  if (number.beside) {
    const std::int64_t before = reading.beside.value_or(*number.beside);
    if (*number.beside > before) ++reading.series.gone_on;
    if (*number.beside > before + 1) ++reading.series.apart;
    reading.beside = number.beside;
  }
  const int warm_up = options_.warm_up;
  const auto last = reading.counter;
  const auto counter = number.counter;
  const bool restarts = counter && last && (*counter < *last || number.begins);
  const bool anew = !number.elapsed_s && restarts && reading.IsBegunAnew(number);
  switch (reading.series.form.span) {
    case LoggedSpan::kStep: {
      if (anew) reading.BeginAnew();
      // Counters begin at 0 or at 1.
      const std::int64_t on = !counter ? 1 : last && !restarts ? *counter - *last : *counter + 1;
      reading.done += anew ? 1 : on;
      const std::int64_t before = reading.series.numbers;
      if (last && !restarts) reading.longest_between = std::max(reading.longest_between, on);
      reading.Count(number.time_s, 1, std::max<std::int64_t>(0, reading.done - 1), options_,
                    line.number, restarts && reading.IsToldAsTheFirst(*counter));
      if (reading.series.numbers > before && !options_.on_number) {
        if (++single_steps_ > kMostLoggedSteps) {
          throw InputError({path, line.number, ""}, "", "is one step too many",
                           fmt::format("at most {} of one log", kMostLoggedSteps));
        }
        reading.series.step_s.push_back(number.time_s);
      }
      break;
    }
    case LoggedSpan::kInterval: {
      if (!counter) {
        // How many steps it stands for is not told: the first has the warm-up.
        reading.Count(number.time_s, 1, reading.done == 0 ? 0 : warm_up, options_, line.number);
        reading.done = 1;
        break;
      }
      if (number.elapsed_s) {
        reading.CountBar(number, options_, line.number);
        break;
      }
      std::int64_t on = last && !restarts ? *counter - *last : *counter;
      if (anew) {
        reading.BeginAnew();
        on = std::min(on, reading.longest_between);
      } else if (last && !restarts) {
        reading.longest_between = std::max(reading.longest_between, on);
      }
      if (on <= 0) break;  // the line was written anew
      reading.Count(number.time_s, on, reading.done, options_, line.number);
      reading.done += on;
      break;
    }
    case LoggedSpan::kEpochSoFar:
      if (restarts) reading.EndEpoch(options_);
      reading.so_far_s = number.time_s;
      reading.so_far_with_others = number.with_others;
      reading.so_far_line = line.number;
      reading.counter = counter;
      if (number.last_of_epoch) reading.EndEpoch(options_);
      return;
    case LoggedSpan::kRun:
      reading.Count(number.time_s, 1, warm_up, options_, line.number);
      break;
    case LoggedSpan::kEpoch:
      reading.Count(number.time_s, 1, reading.done == 0 ? 0 : warm_up, options_, line.number);
      reading.done = 1;
      break;
  }
  reading.counter = counter;
}

void StepLogReader::Take(const LogLine& line, const std::string& path) {
  std::string_view text = line.text;
  Number number;
  number.rank = TakeRank(&text);
  if (options_.pattern) {
    std::string found;
    const auto time = options_.pattern(std::string(text), &found);
    if (!time) {
      if (!found.empty() && !log_.no_time) log_.no_time = {line.number, Shown(found)};
      return log_.unknown.Add(line);
    }
    number.form = kPattern;
    number.time_s = *time;
    if (!options_.pattern_tells) number.beside = CountBeside(text, found);
    return Add(number, line, path);
  }
  const auto has_one_of = [&](std::span<const std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return Contains(text, part); });
  };
  const auto validates = [&] {
    const auto rank = ranks_.find(number.rank);
    AddValidation(rank == ranks_.end() ? nullptr : &rank->second);
  };
  if (IsKerasHeader(text)) {
    ranks_[number.rank].fits = true;
    ++log_.without_time;
    return;
  }
  for (std::size_t i = 0; i < std::size(kForms); ++i) {
    const Form& form = kForms[i];
    const auto found = FindIn(form, text);
    if (!found) continue;
    number.form = FirstOfItsName(i);
    const std::string_view before = text.substr(0, found->at);
    if (form.counter != kFraction) {
      number.counter = CounterOf(form, text);
      number.counts_the_job = form.counter != kOfEpoch;
      number.micro_steps = MicroStepsOf(text, number.counter.value_or(0));
    } else if (const auto fraction = LastFraction(before)) {
      number.counter = fraction->part;
      number.whole = fraction->whole;
    }
    const bool is_plain = form.how == How::kPlain || form.how == How::kCount;
    if (is_plain && HasWordOf(before, kValidationWords)) return validates();
    if (!is_plain) {
      if (ranks_.size() > kMostLogSeries) {
        throw InputError({path, line.number, ""}, "", "has a rank too many",
                         fmt::format("at most {}", kMostLogSeries));
      }
      Rank& rank = ranks_[number.rank];
      if (form.how == How::kBar) {
        if (!IsTraining(before, &rank, &number)) return;
        number.behind_validation = std::exchange(rank.validates, false);
        if (number.counter) number.elapsed_s = ElapsedOf(before);
      }
      if (form.how == How::kEndOfRun) rank.ended = true;
      if (form.how == How::kBehindValidation && std::exchange(rank.validates, false)) {
        ++log_.validation;
        return;
      }
      if (form.how == How::kKeras) {
        if (!rank.fits) return AddValidation(&rank);
        number.last_of_epoch = number.counter && *number.counter == number.whole;
        if (number.last_of_epoch) rank.fits = false;
        number.with_others = Contains(text, " val_");
      }
    }
    number.time_s = form.unit.is_rate ? 1 / found->value : found->value * form.unit.seconds;
    if (!kStepTimes.Holds(number.time_s)) {
      ++log_.without_time;
      return;
    }
    return Add(number, line, path);
  }
  if (has_one_of(kOfValidation)) {
    validates();
  } else if (has_one_of(kWithoutTime)) {
    ++log_.without_time;
    if (has_one_of(kNoRate)) FollowFirst(text, number.rank);
  } else {
    log_.unknown.Add(line);
  }
}

StepLog StepLogReader::Finish() {
  for (auto& [key, reading] : series_) {
    reading.EndEpoch(options_);
    reading.EndBar(options_);
    log_.series.push_back(std::move(reading.series));
  }
  series_.clear();
  return std::move(log_);
}

StepLog ReadStepLog(const std::string& path, const StepLogOptions& options) {
  StepLogReader reader(options);
  ForEachLogLine(path, [&](const LogLine& line) { reader.Take(line, path); });
  return reader.Finish();
}

std::vector<std::string> StepFormNames() {
  std::vector<std::string> names;
  for (const Form& form : kForms) {
    if (names.empty() || names.back() != form.what.name) names.emplace_back(form.what.name);
  }
  return names;
}

std::string BarTitle(std::string_view title) {
  const std::size_t digit = std::min(title.find_first_of(kDigits), title.size());
  std::string_view words = title.substr(0, digit);
  while (!words.empty() && std::isalnum(static_cast<unsigned char>(words.back())) == 0 &&
         static_cast<unsigned char>(words.back()) < 0x80) {
    words.remove_suffix(1);
  }
  // A bracket whose other end has gone.
  if (words.starts_with('[') && words.find(']') == std::string_view::npos) words.remove_prefix(1);
  std::string text(Trim(words));
  if (digit < title.size()) text += text.empty() ? "N" : " N";
  return text;
}

namespace {

// The bars that the numbers of a form stand for.
std::vector<LoggedBar> BarsOf(const StepLog& log, const std::string& form) {
  std::map<std::pair<std::int64_t, std::string>, LoggedBar> bars;
  for (const StepSeries& series : log.series) {
    if (series.form.name != form) continue;
    LoggedBar& bar = bars[{series.total, series.title}];
    bar = {series.total, series.title, std::max(bar.steps, series.bar_steps),
           bar.holds_another || series.holds_another};
  }
  std::vector<LoggedBar> all;
  for (const auto& [key, bar] : bars) all.push_back(bar);
  return all;
}

std::string Describe(const std::vector<LoggedBar>& bars) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, bars.size()); ++i) {
    text += i == 0 ? "one of " : ", ";
    text += bars[i].Text();
  }
  if (bars.size() > kShown) text += fmt::format(" and {} more", bars.size() - kShown);
  return text + " steps";
}

// The slowest of ranks that differ; none of those that tell less than half of what another does.
std::optional<std::size_t> SlowestOf(const std::vector<StepSeries>& ranks) {
  double most_steps = 0;
  for (const StepSeries& series : ranks) most_steps = std::max(most_steps, series.steps);
  std::optional<std::size_t> slowest;
  std::optional<std::size_t> fastest;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].numbers == 0 || ranks[i].steps < most_steps / 2) continue;
    if (!slowest || ranks[i].mean_s() > ranks[*slowest].mean_s()) slowest = i;
    if (!fastest || ranks[i].mean_s() < ranks[*fastest].mean_s()) fastest = i;
  }
  const bool differ = slowest && ranks[*slowest].mean_s() > kRanksAlike * ranks[*fastest].mean_s();
  return differ ? slowest : std::nullopt;
}

}  // namespace

std::string LoggedBar::Text() const {
  return title.empty() ? fmt::format("{}", total) : fmt::format("\"{}\" ({})", title, steps);
}

InputError NoStepTimes(const StepLog& log, const std::string& path) {
  if (!log.by_pattern) {
    return {{path, 0, ""},
            "",
            "tells no time of a training step that is known here",
            fmt::format("--pattern, or a log of {}", fmt::join(StepFormNames(), ", "))};
  }
  if (log.no_time) {
    return {{path, log.no_time->number, "--pattern"},
            log.no_time->text,
            "is no time of a step",
            "a group that holds digits, with a point where there is a fraction: 6500.5"};
  }
  return {{path, 0, "--pattern"},
          "",
          log.unknown.count == 1 ? "does not match the only line"
                                 : fmt::format("matches none of {} lines", log.unknown.count),
          "a regular expression that stands somewhere in a line"};
}

LoggedSteps ChooseSteps(const StepLog& log, const StepChoice& choice, const std::string& path) {
  std::vector<std::string> names;
  for (const StepSeries& series : log.series) {
    if (names.empty() || names.back() != series.form.name) names.emplace_back(series.form.name);
  }
  if (names.empty()) {
    throw NoStepTimes(log, path);
  }
  if (!choice.form.empty() && std::count(names.begin(), names.end(), choice.form) == 0) {
    throw InputError({path, 0, "--form"}, choice.form, "is no form that the log has",
                     fmt::format("{}", fmt::join(names, ", ")));
  }
  LoggedSteps chosen;
  const std::string name = choice.form.empty() ? names.front() : choice.form;
  for (const std::string& other : names) {
    if (other != name) chosen.others.push_back(other);
  }
  // Of several bars: the one that is asked for, or that holds no other; one with a title is of
  // training.
  const std::vector<LoggedBar> all = BarsOf(log, name);
  std::vector<LoggedBar> bars = all;
  const auto take = [&](const auto& is) {
    std::vector<LoggedBar> taken;
    std::copy_if(bars.begin(), bars.end(), std::back_inserter(taken), is);
    return taken;
  };
  const auto prefer = [&](const auto& is) {
    if (std::vector<LoggedBar> taken = take(is); !taken.empty()) bars = std::move(taken);
  };
  const auto is_none = [](const LoggedBar& bar) { return bar.steps == 0 && bar.title.empty(); };
  if (choice.names_a_bar() && std::all_of(all.begin(), all.end(), is_none)) {
    throw InputError({path, 0, "--bar"}, choice.BarText(), "is no bar of a log that has none",
                     "nothing");
  }
  if (choice.names_a_bar()) {
    bars = take([&](const LoggedBar& bar) { return choice.Takes(bar.steps, bar.title); });
  } else {
    prefer([](const LoggedBar& bar) { return !bar.holds_another; });
    prefer([](const LoggedBar& bar) { return !bar.title.empty(); });
  }
  if (bars.size() != 1) {
    throw InputError({path, 0, "--bar"}, choice.BarText(),
                     "does not say which bar is the training's", Describe(all));
  }
  const LoggedBar bar = bars.front();
  chosen.bar = bar.title;
  const auto is_bar = [&](const auto& other) {
    return other.total == bar.total && other.title == bar.title;
  };
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen.other_bars),
               [&](const LoggedBar& other) { return !is_bar(other); });
  double sum_s = 0;
  for (const StepSeries& series : log.series) {
    if (series.form.name != name || !is_bar(series)) continue;
    chosen.form = series.form;
    chosen.warm_up += series.warm_up;
    chosen.begun_anew += series.begun_anew;
    chosen.may_be_means = chosen.may_be_means || series.may_be_means();
    chosen.ranks.push_back(series);
  }
  chosen.slowest = SlowestOf(chosen.ranks);
  for (std::size_t i = 0; i < chosen.ranks.size(); ++i) {
    const StepSeries& series = chosen.ranks[i];
    if (chosen.slowest && i != *chosen.slowest) continue;
    chosen.numbers += series.numbers;
    chosen.with_others += series.with_others;
    chosen.by_rate += series.by_rate;
    chosen.micro_steps = std::max(chosen.micro_steps, series.micro_steps);
    chosen.steps += series.steps;
    sum_s += series.sum_s;
    chosen.step_s.insert(chosen.step_s.end(), series.step_s.begin(), series.step_s.end());
  }
  if (chosen.numbers == 0) {
    throw InputError({path, 0, "--warm-up"}, "",
                     fmt::format("leaves none of {} numbers of {}", chosen.warm_up, name),
                     "fewer steps of warm-up, as --warm-up 0");
  }
  chosen.mean_s = sum_s / chosen.steps;
  std::sort(chosen.step_s.begin(), chosen.step_s.end());
  return chosen;
}

}  // namespace stepcast
