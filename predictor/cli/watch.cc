// stepcast watch: a running job beside its forecast, by its log.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "calibrate/online/online_calibration.h"
#include "calibrate/online/slow_drift.h"
#include "data/logs/log_follower.h"
#include "data/values/numbers.h"
#include "predictor/cli/command.h"
#include "predictor/cli/import_logs.h"
#include "predictor/cli/measured_step.h"
#include "predictor/cli/metrics_server.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUsualNumbers = 50;  // of a log, between two lines about them
constexpr int kMostNumbers = 1'000'000'000;
constexpr std::size_t kDriftsShown = 5;

// Whether standard output is a screen that can be drawn anew.
bool IsScreen() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

po::options_description WatchOptions() {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  options.add_options()("log", OptionValue("LOG"), "the log, or - for standard input")(
      "pattern", OptionValue("R"),
      "where a step's time stands, as \"step (?<ms>[0-9.]+) ms\", instead of known forms")(
      "tells", OptionValue("WHAT"),
      "what a pattern's numbers are: times of steps, or means over several")(
      "warm-up", OptionValue("N"), "first steps that are left out (20)")(
      "form", OptionValue("NAME"),
      "of a log that has several forms, which to take: the first seen")(
      "bar", OptionValue("BAR"),
      "of several progress bars, the training's: its steps or its title")(
      "counts", OptionValue("WHAT"), "what a log with --accumulation counts: steps or micro-steps")(
      "steps-per-epoch", OptionValue("N"), "of a log that tells times of epochs")(
      "samples-of", OptionValue("WHO"), "whose samples a throughput counts: job, device or node")(
      "tokens-per-sample", OptionValue("N"), "of a log that tells tokens in a second")(
      "for", OptionValue("TIME"),
      "end after it: \"10 min\"; \"0 s\" with what is in the log by now")(
      "every", OptionValue("N"), "without a screen, a line for so many numbers of the log (50)")(
      "metrics", OptionValue("A:P"),
      "serve predicted and measured steps to Prometheus at /metrics")(
      "json", "print one JSON object a line")("help", "print this text");
  return options;
}

// The cause of what is seen in the long run alone: it may be any.
constexpr const char* kSlowDrift = "slow drift";

struct Drift {
  int line = 0;
  double steps = 0;  // seen by then
  std::string cause;
  Duration<> before;  // what was expected; of a slow drift the first steps
  Duration<> now;     // as learnt since; of a slow drift the latest
};

// The job, as far as its log has told of it.
class Watched {
 public:
  Watched(const Arguments& args, const Target& target, const Plan& plan)
      : args_(args),
        target_(target),
        plan_(plan),
        choice_(ReadStepChoice(args)),
        job_(target.cluster, target.workload, target.facts, target.device),
        forecast_(target.MakePredictor().Predict(plan)),
        learnt_(forecast_) {}

  // Whether it is a step of the job.
  bool Take(const LoggedNumber& number) {
    if (number.form.span == LoggedSpan::kRun ||
        (!choice_.form.empty() && choice_.form != number.form.name)) {
      ++others_[number.form.name];
      return false;
    }
    // A bar that was seen before the one within it.
    if (series_ && number.holds_another && !choice_.names_a_bar() && numbers_ == 0 &&
        number.title == series_->title && number.total == series_->total) {
      series_.reset();
      others_["another bar"] += std::exchange(warm_up_, 0);
    }
    if (!series_) {
      const bool is_outer = number.holds_another && !choice_.names_a_bar();
      if (is_outer || !choice_.Takes(number.bar_steps, number.title)) {
        ++others_["another bar"];
        return false;
      }
      factor_ = StepsTimeFactor(args_, number.form, plan_);
      series_ = Series{number.form.name, std::string(number.rank), number.total,
                       std::string(number.title), number.form.span != LoggedSpan::kStep};
    }
    if (number.form.name != series_->form) {
      ++others_[number.form.name];
      return false;
    }
    const bool same_bar = number.total == series_->total && number.title == series_->title;
    if (!is_rank_chosen_ && same_bar) ChooseRank(number);
    if (number.rank != series_->rank && same_bar && !number.warm_up) {
      OfRank& beside = beside_[std::string(number.rank)];
      const auto steps = static_cast<double>(std::max<std::int64_t>(1, number.steps));
      beside.steps += steps;
      beside.sum_s += number.time_s * factor_ * steps;
    }
    if (number.rank != series_->rank || !same_bar) {
      ++others_[number.rank != series_->rank ? "another rank" : "another bar"];
      return false;
    }
    if (number.begins_anew) {
      ++begun_anew_;
      new_begin_ = number.line;
    }
    if (number.warm_up) {
      ++warm_up_;
      return false;
    }
    const Duration<> step = Seconds(number.time_s * factor_);
    Observation said;
    try {
      said = job_.Observe(plan_, step);
    } catch (const InputError&) {
      if (numbers_ == 0) throw;  // it is the plan, or no log of steps
      ++others_["no time of a step"];
      return false;
    }
    measured_ = step;
    expected_ = said.predicted;
    line_ = number.line;
    ++numbers_;
    inside_ += forecast_.low <= step && step <= forecast_.high ? 1 : 0;
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, number.steps));
    steps_ += steps;
    sum_ += step * steps;
    is_learnt_ = false;
    latest_.push_back(step);
    constexpr std::size_t kLatest = 400;
    if (latest_.size() > kLatest) latest_.pop_front();
    if (!said.cause.empty()) {
      const Drift drift = {line_, steps_, said.cause, said.predicted, Learnt().step_time};
      // One of less than what is looked for may be a piece of what comes slowly.
      if (std::abs(std::log(drift.now / drift.before)) >= SlowDrift::kLeastShift) {
        slow_drift_.BeginAnew();
      }
      Tell(drift);
    } else if (const auto slow = slow_drift_.Observe(step)) {
      Tell({line_, steps_, kSlowDrift, slow->before, slow->now});
    }
    return true;
  }

  // The drift that the last number has shown.
  std::optional<Drift> TakeDrift() { return std::exchange(drift_, std::nullopt); }
  // The line with which the job was begun anew, if the last number has told so.
  std::optional<int> TakeNewBegin() { return std::exchange(new_begin_, std::nullopt); }
  // The forecast by all that was learnt.
  const Prediction& Learnt() {
    if (!is_learnt_) {
      learnt_ =
          Predictor(job_.cluster(), target_.workload, target_.facts, target_.device).Predict(plan_);
      is_learnt_ = true;
    }
    return learnt_;
  }

  const Prediction& forecast() const { return forecast_; }
  const Plan& plan() const { return plan_; }
  const Target& target() const { return target_; }
  std::string form() const { return series_ ? series_->form : ""; }
  bool tells_means() const { return series_ && series_->means; }
  Duration<> measured() const { return measured_; }
  Duration<> expected() const { return expected_; }
  double steps() const { return steps_; }
  Duration<> mean() const { return sum_ / steps_; }
  std::string rank() const { return series_ ? series_->rank : ""; }
  // Whether it was taken for the slowest, instead of the first seen.
  bool is_slowest() const { return is_slowest_; }
  // Of the other ranks the slowest, if it takes longer than the one that is watched.
  struct Slower {
    std::string rank;
    Duration<> mean;
  };
  std::optional<Slower> slower() const {
    std::optional<Slower> slowest;
    for (const auto& [rank, beside] : beside_) {
      if (beside.steps < steps_ / 2) continue;  // it tells too little
      const Duration<> its = Seconds(beside.sum_s / beside.steps);
      if (its > kRanksAlike * mean() && (!slowest || its > slowest->mean)) slowest = {rank, its};
    }
    return slowest;
  }
  std::int64_t numbers() const { return numbers_; }
  std::int64_t inside() const { return inside_; }
  std::int64_t warm_up() const { return warm_up_; }
  std::int64_t begun_anew() const { return begun_anew_; }
  int line() const { return line_; }
  const std::deque<Duration<>>& latest() const { return latest_; }
  const std::vector<Drift>& drifts() const { return drifts_; }
  const std::map<std::string, std::int64_t>& causes() const { return causes_; }
  const std::map<std::string, std::int64_t>& others() const { return others_; }

 private:
  struct Series {
    std::string form;
    std::string rank;
    std::int64_t total = 0;
    std::string title;
    bool means = false;  // over several steps
  };
  // What a rank has told.
  struct OfRank {
    std::int64_t numbers = 0;  // of its warm-up
    double least_s = 0;        // of them
    double steps = 0;          // behind it, while another is watched
    double sum_s = 0;
  };

  void Tell(const Drift& drift) {
    // Causes follow each other without end; the first ones and their number tell enough.
    constexpr std::size_t kMostDrifts = 10'000;
    ++causes_[drift.cause];
    drift_ = drift;
    if (drifts_.size() < kMostDrifts) drifts_.push_back(drift);
  }

  // A synchronous step ends with the slowest rank, and the warm-up shows which that is: by the
  // least of its times, as others have the start in them.
  void ChooseRank(const LoggedNumber& number) {
    OfRank& own = beside_[std::string(number.rank)];
    if (number.warm_up) {
      own.least_s = own.numbers == 0 ? number.time_s : std::min(own.least_s, number.time_s);
      ++own.numbers;
      return;
    }
    is_rank_chosen_ = true;
    constexpr std::int64_t kFewest = 2;
    const OfRank& first = beside_[series_->rank];
    auto slowest = beside_.find(series_->rank);
    for (auto rank = beside_.begin(); rank != beside_.end(); ++rank) {
      if (rank->second.numbers < kFewest) continue;
      if (rank->second.least_s > slowest->second.least_s) slowest = rank;
    }
    if (first.numbers < kFewest || slowest->second.least_s <= kRanksAlike * first.least_s) return;
    is_slowest_ = true;
    others_["another rank"] += warm_up_ - slowest->second.numbers;
    warm_up_ = slowest->second.numbers;
    series_->rank = slowest->first;
  }

  const Arguments& args_;
  const Target& target_;
  Plan plan_;
  StepChoice choice_;
  OnlineCalibration job_;
  Prediction forecast_;
  Prediction learnt_;
  bool is_learnt_ = true;
  std::optional<Series> series_;  // of the first number, or of the slowest rank
  bool is_rank_chosen_ = false;
  bool is_slowest_ = false;
  std::map<std::string, OfRank> beside_;
  double factor_ = 1;
  Duration<> measured_;
  Duration<> expected_;
  double steps_ = 0;
  Duration<> sum_;
  std::int64_t numbers_ = 0;
  std::int64_t inside_ = 0;
  std::int64_t warm_up_ = 0;
  std::int64_t begun_anew_ = 0;
  std::optional<int> new_begin_;
  int line_ = 0;
  std::deque<Duration<>> latest_;
  SlowDrift slow_drift_;  // of what job_ learns without noticing
  std::optional<Drift> drift_;
  std::vector<Drift> drifts_;
  std::map<std::string, std::int64_t> causes_;
  std::map<std::string, std::int64_t> others_;  // numbers that are not looked at, by what they are
};

// Where in the log: its line, which has the log's own count where there is one, and how many steps
// have been looked at.
std::string PlaceText(int line, double steps) {
  return fmt::format("line {}, step {} behind the warm-up", line, FormatCount(steps));
}

std::string DriftText(const Drift& drift) {
  const std::string what = drift.cause == kSlowDrift ? "steps have changed little by little"
                                                     : drift.cause + " has changed";
  return fmt::format("{}: {}: {} instead of {}", PlaceText(drift.line, drift.steps), what,
                     FormatDuration(drift.now), FormatDuration(drift.before));
}

Json DriftJson(const Drift& drift) {
  return {{"line", drift.line},
          {"steps", CountJson(drift.steps)},
          {"cause", drift.cause},
          {"before_s", drift.before.in(kSeconds)},
          {"now_s", drift.now.in(kSeconds)}};
}

// The latest steps, each as high as its place between the least and the longest of them.
std::string Curve(const std::deque<Duration<>>& steps, int width, const Style& style) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
  const auto shown = std::min(steps.size(), static_cast<std::size_t>(std::max(1, width)));
  const auto begin = steps.end() - static_cast<std::ptrdiff_t>(shown);
  const auto [least, most] = std::minmax_element(begin, steps.end());
  const double range = (*most - *least).si();
  std::string text;
  for (auto step = begin; step != steps.end(); ++step) {
    const double share = range > 0 ? (*step - *least).si() / range : 0;
    const auto at = static_cast<std::size_t>(std::lround(share * 7));
    text += style.utf8 ? kBlocks[at] : kAscii[at];
  }
  return text;
}

std::string Line(const char* name, const std::string& text) {
  return HangingLine(fmt::format("  {:<10}", name), text, TerminalWidth());
}

std::string Summary(Watched* job, const StepLog& log) {
  const Style style = DetectStyle();
  std::string out = PlanHeading(job->target(), job->plan(), style);
  out += Line("forecast", IntervalText(job->forecast()));
  if (job->numbers() == 0) {
    out += Line("measured", fmt::format("nothing yet; {} of the warm-up", job->warm_up()));
    return out;
  }
  const bool may_be_means =
      std::any_of(log.series.begin(), log.series.end(),
                  [](const StepSeries& series) { return series.may_be_means(); });
  const char* const means = job->tells_means() ? ", which is of one step: means scatter less"
                            : may_be_means
                                ? ", which is of one step: these may be means, which scatter less "
                                  "(--tells)"
                                : "";
  out += Line(
      "measured",
      fmt::format("{} in the mean of {} steps, {:.0f} % of {} numbers within the interval{}",
                  FormatDuration(job->mean()), FormatCount(job->steps()),
                  100.0 * static_cast<double>(job->inside()) / static_cast<double>(job->numbers()),
                  FormatCount(job->numbers()), means));
  out += Line("last", fmt::format("{}, where {} was expected", FormatDuration(job->measured()),
                                  FormatDuration(job->expected())));
  out += Line("learnt", IntervalText(job->Learnt()));
  const auto name = [](const std::string& rank) { return rank.empty() ? "-" : rank; };
  if (const auto slower = job->slower()) {
    out += Line("ranks", fmt::format("rank {} takes {}, {} times as long as rank {}, which is "
                                     "watched: a synchronous step ends with the slowest",
                                     name(slower->rank), FormatDuration(slower->mean),
                                     FormatNumber(slower->mean / job->mean()), name(job->rank())));
  } else if (job->is_slowest()) {
    out += Line("ranks", fmt::format("rank {} is watched, the slowest in the warm-up: a "
                                     "synchronous step ends with it",
                                     name(job->rank())));
  }
  const auto& drifts = job->drifts();
  if (drifts.empty()) out += Line("drift", "none");
  const std::size_t first = drifts.size() - std::min(drifts.size(), kDriftsShown);
  for (std::size_t i = first; i < drifts.size(); ++i) {
    out += Line(i == first ? "drift" : "", DriftText(drifts[i]));
  }
  std::vector<std::string> left;
  const auto leave = [&](std::int64_t count, const std::string& what) {
    if (count > 0) left.push_back(fmt::format("{} {}", FormatCount(count), what));
  };
  leave(job->warm_up(),
        job->begun_anew() > 0
            ? fmt::format("of the warm-ups (times begun anew: {})", job->begun_anew())
            : "of the warm-up");
  if (log.validation > 0) left.push_back(Several(log.validation, "line") + " of validation");
  if (log.unknown.count > 0) left.push_back(Several(log.unknown.count, "line") + " not understood");
  for (const auto& [what, count] : job->others()) leave(count, "of " + what);
  if (!left.empty()) out += Line("left out", fmt::format("{}", fmt::join(left, ", ")));
  return out;
}

std::string Screen(Watched* job, const StepLog& log) {
  std::string out = "\033[H\033[J" + Summary(job, log);
  if (job->numbers() > 0) {
    const auto [least, most] = std::minmax_element(job->latest().begin(), job->latest().end());
    out += "\n  " + Curve(job->latest(), TerminalWidth() - 4, DetectStyle());
    out += fmt::format("\n  the latest steps, {} to {}\n", FormatDuration(*least),
                       FormatDuration(*most));
  }
  return out;
}

Json StateJson(const char* event, Watched* job) {
  const Prediction& learnt = job->Learnt();
  return {{"event", event},
          {"line", job->line()},
          {"steps", CountJson(job->steps())},
          {"numbers", job->numbers()},
          {"inside", job->inside()},
          {"step_time_s", job->measured().in(kSeconds)},
          {"expected_s", job->expected().in(kSeconds)},
          {"mean_s", job->mean().in(kSeconds)},
          {"learnt_s", learnt.step_time.in(kSeconds)},
          {"low_s", learnt.low.in(kSeconds)},
          {"high_s", learnt.high.in(kSeconds)}};
}

// What is shown while the log comes: a screen, lines or JSON.
class Show {
 public:
  Show(const Arguments& args, Watched* job)
      : job_(job),
        json_(args.Has("json")),
        screen_(!json_ && IsScreen()),
        every_(ReadInteger(args, "every", 1, kMostNumbers, kUsualNumbers)) {
    if (json_) {
      const Prediction& p = job->forecast();
      Tell({{"event", "forecast"},
            {"plan", PlanJson(job->plan())},
            {"step_time_s", p.step_time.in(kSeconds)},
            {"low_s", p.low.in(kSeconds)},
            {"high_s", p.high.in(kSeconds)}});
    } else if (!screen_) {
      Tell("forecast " + IntervalText(job->forecast()));
    }
  }

  void NewBegin() {
    const std::optional<int> line = job_->TakeNewBegin();
    if (!line || screen_) return;
    if (json_) {
      Tell({{"event", "begun_anew"}, {"line", *line}});
    } else {
      Tell(fmt::format("line {}: the job was begun anew; its warm-up is left out", *line));
    }
  }
  void Step() {
    if (const std::optional<Drift> drift = job_->TakeDrift(); drift && !screen_) {
      if (json_) {
        Json json = DriftJson(*drift);
        json["event"] = "drift";
        Tell(json);
      } else {
        Tell(DriftText(*drift));
      }
    }
    if (screen_ || job_->numbers() % every_ != 0) return;
    if (json_) {
      Tell(StateJson("steps", job_));
    } else {
      Tell(fmt::format("{}: {}, where {} was expected; learnt {}",
                       PlaceText(job_->line(), job_->steps()), FormatDuration(job_->measured()),
                       FormatDuration(job_->expected()), IntervalText(job_->Learnt())));
    }
  }
  // Draws the screen anew, now and then.
  void Draw(const StepLog& log) {
    constexpr std::chrono::milliseconds kPause(500);
    if (!screen_ || Clock::now() - drawn_ < kPause) return;
    Print(Screen(job_, log));
    std::fflush(stdout);
    drawn_ = Clock::now();
  }
  void End(const StepLog& log) {
    if (screen_) return Print(Screen(job_, log));
    if (!json_) return Print("\n" + Summary(job_, log));
    Json json = StateJson("end", job_);
    json["form"] = job_->form();
    json["rank"] = TextJson(job_->rank());
    json["slower_rank"] = nullptr;
    if (const auto slower = job_->slower()) {
      json["slower_rank"] = {{"rank", slower->rank}, {"mean_s", slower->mean.in(kSeconds)}};
    }
    json["forecast_s"] = job_->forecast().step_time.in(kSeconds);
    json["warm_up"] = job_->warm_up();
    json["begun_anew"] = job_->begun_anew();
    json["validation_lines"] = log.validation;
    json["unknown_lines"] = log.unknown.count;
    json["others"] = Json(job_->others());
    json["drifts"] = Json::array();
    for (const Drift& drift : job_->drifts()) json["drifts"].push_back(DriftJson(drift));
    Tell(json);
  }

 private:
  static void Tell(const std::string& line) {
    Print(line + "\n");
    std::fflush(stdout);
  }
  static void Tell(const Json& json) { Tell(JsonText(json)); }

  Watched* job_;
  bool json_;
  bool screen_;
  std::int64_t every_;
  Clock::time_point drawn_;
};

#ifdef STEPCAST_HAS_SERVE
serve::WatchMetrics MetricsOf(Watched* job, const StepLog& log) {
  serve::WatchMetrics metrics;
  metrics.measured_s = job->measured().in(kSeconds);
  metrics.predicted_s = job->expected().in(kSeconds);
  metrics.forecast_s = job->forecast().step_time.in(kSeconds);
  metrics.low_s = job->forecast().low.in(kSeconds);
  metrics.high_s = job->forecast().high.in(kSeconds);
  metrics.learnt_s = job->Learnt().step_time.in(kSeconds);
  metrics.steps = job->steps();
  if (job->numbers() > 0) metrics.seconds = job->steps() * job->mean().in(kSeconds);
  metrics.inside = job->inside();
  metrics.numbers = job->numbers();
  metrics.warm_up = job->warm_up();
  metrics.validation = log.validation;
  metrics.drifts = job->causes();
  return metrics;
}
#endif

int Watch(const Arguments& args) {
  const std::string path = args.Required("log");
  const Target target = ReadKnownTarget(args);
  if (target.profile) {
    throw InputError(OptionPlace("profile"), args.Text("profile"), "cannot be followed by steps",
                     "a cluster that was calibrated with it: stepcast calibrate --profile");
  }
  const Plan plan = ReadPlan(args, target);
  RequireBatch(plan);
  std::optional<Clock::duration> patience;
  if (args.Has("for")) {
    const Duration<> time = ParseDuration(args.Text("for"), OptionPlace("for"));
    patience = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(time.in(kSeconds)));
  }
  Watched job(args, target, plan);
  StepLogOptions options = ReadStepLogOptions(args);
  std::optional<Show> show;
  options.on_number = [&](const LoggedNumber& number) {
    const bool is_step = job.Take(number);
    show->NewBegin();
    if (is_step) show->Step();
  };
  StepLogReader reader(options);
  LogFollower log(path, [&](const LogLine& line) { reader.Take(line, path); });
  StopInOrder();
#ifdef STEPCAST_HAS_SERVE
  std::optional<MetricsServer> server;
  if (args.Has("metrics")) {
    server.emplace(args.Text("metrics"), OptionPlace("metrics"), target);
  }
#else
  if (args.Has("metrics")) {
    throw InputError(OptionPlace("metrics"), args.Text("metrics"), "cannot be served",
                     "a stepcast that was built with serve (libboost-dev)");
  }
#endif
  show.emplace(args, &job);
  const Clock::time_point begin = Clock::now();
  Clock::time_point told;
  for (bool ends = false; !ends && !interrupted;) {
    const LogFollower::News news = log.Read();
    ends = news == LogFollower::News::kEnd ||
           (news == LogFollower::News::kNone && patience && Clock::now() - begin >= *patience);
    if (news == LogFollower::News::kEnd) log.Finish();
    show->Draw(reader.so_far());
#ifdef STEPCAST_HAS_SERVE
    constexpr std::chrono::seconds kOften(1);
    if (server && (ends || Clock::now() - told >= kOften)) {
      server->Tell(MetricsOf(&job, reader.so_far()));
      told = Clock::now();
    }
#endif
    constexpr std::chrono::milliseconds kPause(50);
    if (news == LogFollower::News::kNone && !ends) std::this_thread::sleep_for(kPause);
  }
  const StepLog seen = reader.Finish();
  if (job.numbers() == 0) {
    if (job.warm_up() == 0) throw NoStepTimes(seen, path);
    throw InputError({path, 0, ""}, "",
                     fmt::format("tells of {} steps of the warm-up alone", job.warm_up()),
                     "fewer steps of warm-up, as --warm-up 0");
  }
  show->End(seen);
  return job.drifts().empty() ? kDone : kAnswerIsNo;
}

}  // namespace

int RunWatch(const std::vector<std::string>& arguments) {
  const po::options_description options = WatchOptions();
  const Arguments args("watch", options, "log", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast watch LOG --cluster C --workload W --local-batch N [--workers N] ...",
        "Follows a running job by its log, beside its forecast: each step against what was\n"
        "expected of it, and what has changed where steps no longer fit. It learns from the\n"
        "steps as they come. A log that grows, is cut or rotated is followed until an\n"
        "interrupt or --for; standard input (-) until it ends. Exit code 1 if it has drifted.",
        options,
        "  stepcast watch train.log --cluster gce-t4 --workload resnet50 --local-batch 32 "
        "--workers 8\n"
        "  python train.py | stepcast watch - --device v100 --workload bert_base --local-batch 8 "
        "--placement 4-4 --bandwidth \"10 Gbit/s\" --metrics 127.0.0.1:9100\n"
        "  stepcast watch train.log --for \"0 s\" --cluster gce-t4 --workload resnet50 "
        "--local-batch 32 --workers 8 --json\n");
    return kDone;
  }
  return Watch(args);
}

}  // namespace stepcast::cli
