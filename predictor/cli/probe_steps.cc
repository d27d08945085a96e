#include "predictor/cli/probe_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "data/plan/bucket_words.h"
#include "data/record/collective_call.h"
#include "data/values/compression.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "microbench/harness/load_backend.h"
#include "microbench/steps/agent.h"
#include "microbench/steps/coordinator.h"
#include "model/overlap/buckets.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"
#include "predictor/cli/probe_runs.h"
#include "predictor/cli/probe_shape.h"
#include "predictor/cli/probe_start.h"
#include "predictor/cli/probe_training.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/signals.h"
#include "predictor/cli/training_option.h"
#include "predictor/cli/wanted_runs.h"

namespace stepcast::cli {
namespace {

using network::NetworkError;
using script::WantedRun;
using steps::TimedStep;
using steps::TrainingTimes;

constexpr double kLongestLimitS = 86400;

// The parts of a step, each with its key.
struct Part {
  const char* key = "";
  const char* title = "";
  double TimedStep::*of = nullptr;
};
constexpr Part kParts[] = {{"forward_s", "forward", &TimedStep::forward_s},
                           {"backward_s", "backward", &TimedStep::backward_s},
                           {"exposed_sync_s", "exposed", &TimedStep::exposed_s},
                           {"update_s", "update", &TimedStep::update_s},
                           {"synchronising_s", "exchanging", &TimedStep::synchronising_s}};

// Who adds up, or takes and gives: in a row's source.
const char* WhatExchanges(steps::Library library) {
  return library == steps::Library::kMpi ? "MPI's all-reduce" : "Gloo's ring";
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// What came of it beside its result.
struct Detail {
  const PreparedRun* prepared = nullptr;
  TrainingTimes times;
  std::vector<std::string> hosts;         // of the workers
  std::vector<std::string> server_hosts;  // of the servers
};

Result Judge(const WantedRun& wanted, const TrainingTimes& times, int steps) {
  Result result;
  result.wanted = &wanted;
  result.sentence = times.problem;
  if (interrupted) {
    result.outcome = Outcome::kInterrupted;
    return result;
  }
  result.timed.step_s = times.Means(&TimedStep::step_s);
  std::sort(result.timed.step_s.begin(), result.timed.step_s.end());
  const std::size_t seen = times.steps();
  if (seen < static_cast<std::size_t>(steps)) {
    if (result.sentence.empty()) result.sentence = "there was no time for more";
    result.sentence = fmt::format("{} steps of {}: {}", seen, steps, result.sentence);
  }
  if (seen < kLeastSteps || !times.problem.empty()) result.outcome = Outcome::kFailed;
  return result;
}

bool IsAsynchronous(const Detail& detail) {
  return detail.prepared->training.servers->asynchronous;
}

// A phase of an exchange with servers: workers that wait for each other have all of it together.
double PhaseOf(const Detail& detail, double TimedStep::*part) {
  return Mean(IsAsynchronous(detail) ? detail.times.Means(part) : detail.times.Longest(part));
}

// Updates of the parameters in a second.
double UpdateRate(const Detail& detail) {
  const double each_s = Mean(detail.times.Means(&TimedStep::step_s));
  return (IsAsynchronous(detail) ? static_cast<double>(detail.hosts.size()) : 1.0) / each_s;
}

// What was timed of servers, each beside its forecast; empty where no run has any.
std::string SumOfServers(const std::vector<Detail>& details) {
  Table table({LeftColumn("run"),
               "push",
               "forecast",
               "update",
               "forecast",
               "pull",
               "forecast",
               "held back",
               {"updates", "1/s"},
               "staleness"});
  bool any = false;
  for (const Detail& detail : details) {
    if (!detail.prepared->training.servers) continue;
    any = true;
    const auto phase = [&](double TimedStep::*part) {
      return FormatDuration(Seconds(PhaseOf(detail, part)));
    };
    const auto forecast = [&](Duration<> ServerTimes<double>::*part) {
      const auto& times = detail.prepared->predicted.server_times;
      return times ? FormatDuration((*times).*part) : "-";
    };
    table.AddRow({DescribeRun(*detail.prepared->wanted), phase(&TimedStep::push_s),
                  forecast(&ServerTimes<double>::push), phase(&TimedStep::server_update_s),
                  forecast(&ServerTimes<double>::update), phase(&TimedStep::pull_s),
                  forecast(&ServerTimes<double>::pull),
                  FormatDuration(Seconds(Mean(detail.times.Means(&TimedStep::held_s)))),
                  FormatNumber(UpdateRate(detail)),
                  FormatNumber(Mean(detail.times.Means(&TimedStep::staleness)))});
  }
  if (!any) return "";
  const Style style = DetectStyle();
  return Heading("Parameter servers", style) + table.Render(style, 2);
}

Json ServersJson(const Detail& detail) {
  const auto mean = [&](double TimedStep::*part) { return Mean(detail.times.Means(part)); };
  const auto workers = static_cast<double>(detail.hosts.size());
  Json json = {{"hosts", detail.server_hosts},
               {"push_s", PhaseOf(detail, &TimedStep::push_s)},
               {"update_s", PhaseOf(detail, &TimedStep::server_update_s)},
               {"pull_s", PhaseOf(detail, &TimedStep::pull_s)},
               {"held_back_s", mean(&TimedStep::held_s)},
               {"updates_per_s", UpdateRate(detail)},
               {"mean_staleness", mean(&TimedStep::staleness)},
               {"messages", workers * mean(&TimedStep::messages)},
               {"bytes", workers * mean(&TimedStep::bytes)},
               {"cycles_s", Json::array()}};
  for (std::size_t k = 0; k < detail.times.workers.size(); ++k) {
    json["cycles_s"].push_back(detail.times.CycleOf(k));
  }
  if (const auto& times = detail.prepared->predicted.server_times) {
    json["predicted"] = {{"push_s", times->push.si()},
                         {"update_s", times->update.si()},
                         {"pull_s", times->pull.si()}};
  }
  const auto& async = detail.prepared->predicted.async_servers;
  if (async && async->slow_updates > 0) {
    json["predicted"]["fast_cycle_s"] = async->fast_cycle.si();
    json["predicted"]["slow_cycle_s"] = async->slow_cycle.si();
  }
  return json;
}

std::string Sum(const std::vector<Detail>& details) {
  const Style style = DetectStyle();
  Table table = [] {
    std::vector<TableColumn> columns = {LeftColumn("run")};
    for (const Part& part : kParts) columns.push_back({part.title, ""});
    columns.emplace_back("step");
    columns.emplace_back("forecast");
    return Table(columns);
  }();
  for (const Detail& detail : details) {
    std::vector<std::string> row = {DescribeRun(*detail.prepared->wanted)};
    const auto mean = [&](double TimedStep::*part) {
      return FormatDuration(Seconds(Mean(detail.times.Means(part))));
    };
    for (const Part& part : kParts) row.push_back(mean(part.of));
    row.push_back(mean(&TimedStep::step_s));
    row.push_back(FormatDuration(detail.prepared->predicted.step_time));
    table.AddRow(row);
  }
  return Heading("Parts of the steps", style) + table.Render(style, 2) + SumOfServers(details);
}

Json PartsJson(const Detail& detail) {
  Json parts;
  for (const Part& part : kParts) parts[part.key] = Mean(detail.times.Means(part.of));
  Json buckets = Json::array();
  const steps::Training& training = detail.prepared->training;
  for (std::size_t k = 0; k < training.buckets.size(); ++k) {
    buckets.push_back({{"bytes", training.buckets[k].floats * kBytesPerFloat},
                       {"ready_s", training.buckets[k].ready_s},
                       {"synchronising_s", detail.times.bucket_s[k]}});
  }
  Json json = {{"hosts", detail.hosts},
               {"parts", parts},
               {"buckets", buckets},
               {"predicted_step_time_s", detail.prepared->predicted.step_time.si()}};
  if (!training.servers && !training.buckets.empty()) {
    json["library"] = steps::kLibraryNames[static_cast<std::size_t>(training.library)];
  }
  if (training.servers) json["servers"] = ServersJson(detail);
  return json;
}

}  // namespace

void AddStepsOptions(po::options_description* options) {
  options->add_options()("workload-file", OptionValues("F"),
                         "steps: workload file; may be repeated")(
      "device", OptionValue("D"),
      "steps: device whose compute is waited for, by default the cluster's")(
      "sizes", OptionValue("S,..."), "collectives: bytes of the messages (1 KiB to 256 MiB)")(
      "library", OptionValue("L"),
      "collectives: what adds up: gloo, or mpi under mpirun or srun (gloo)");
  AddShapeOptions(options);
  AddTrainingOptions(options);
  AddProfileOption(options);
}

namespace {

// The part of a host that is not the first.
int Join(const Arguments& args, const Place& place, const steps::Programs& programs,
         network::MeetingOptions options) {
  // Rank 0 ends it, or says nothing for too long.
  options.deadline = network::Deadline::In(
      ReadSeconds(args, "time-limit", 7 * 86400, 0.1, 7 * 86400), &interrupted);
  try {
    const std::string problem =
        steps::RunAgent(AsAgent(options, place), programs, nullptr, ReadShapedInterface(args));
    if (problem.empty()) return kDone;
    Tell("the probe ended early: " + problem);
  } catch (const NetworkError& e) {
    Tell(interrupted ? "interrupted" : e.what());
  }
  return kAnswerIsNo;
}

// How the steps of each run are timed.
struct Timing {
  int steps = 0;
  int warm_up = 0;  // steps before them
  double run_limit_s = 0;
};

Timing ReadTiming(const Arguments& args) {
  Timing timing;
  timing.steps = ReadInteger(args, "steps", static_cast<int>(kLeastSteps), kMostSteps, 30);
  timing.warm_up = ReadInteger(args, "warm-up", 0, kMostSteps, 3);
  timing.run_limit_s = ReadSeconds(args, "run-limit", 300, 0.1, kLongestLimitS);
  return timing;
}

std::vector<PreparedRun> PrepareRuns(const Arguments& args, const script::WantedRuns& wanted,
                                     const Timing& timing, steps::Library library,
                                     const steps::Programs& programs) {
  std::vector<PreparedRun> runs;
  for (const WantedRun& run : wanted.runs) {
    runs.push_back(PrepareRun(args, run));
    steps::Training& training = runs.back().training;
    training.library = library;
    steps::RequireProgram(programs, training);
    training.steps = timing.steps;
    training.warm_up = timing.warm_up;
    training.limit_s = timing.run_limit_s;
  }
  return runs;
}

// What a row says of where its steps come from.
std::string SourceOf(const Detail& detail, const std::string& began, std::size_t steps,
                     int warm_up) {
  const steps::Training& training = detail.prepared->training;
  return fmt::format(
      "stepcast {} probe steps, {}, {} steps behind {} of {} on {}; "
      "compute waited for: {:.6g} s forward, {:.6g} s backward{}",
      STEPCAST_VERSION, began, steps, warm_up,
      training.servers
          ? fmt::format("gRPC's servers on {}, workers", fmt::join(detail.server_hosts, "+"))
          : WhatExchanges(training.library),
      fmt::join(detail.hosts, "+"), training.forward_s, training.backward_s,
      training.slow_workers == 0 ? ""
                                 : fmt::format(", {:.4g} times as long on {} of them",
                                               training.slowdown, training.slow_workers));
}

// The runs, measured in turn by a session of all hosts. Each is written before the next begins.
class StepsProbe {
 public:
  // What it is given by reference outlives it.
  StepsProbe(const Design& design, const DesignedRuns& designed, std::vector<PreparedRun> runs,
             const Timing& timing, RunsFile* file)
      : design_(design),
        designed_(designed),
        runs_(std::move(runs)),
        timing_(timing),
        file_(*file) {
    for (const PreparedRun& run : runs_) left_s_ += ExpectedS(run);
  }

  // How long what is not measured yet is expected to take.
  double left_s() const { return left_s_; }
  const std::vector<Result>& results() const { return results_; }
  const std::vector<Detail>& details() const { return details_; }  // of the runs just measured
  // Why a row could not be written, and why links could not be shaped; empty where all went well.
  const std::string& unwritten() const { return unwritten_; }
  const std::string& unshaped() const { return unshaped_; }
  // Hosts that set a bandwidth on what they send alone.
  const std::set<std::string>& sending_only() const { return sending_only_; }

  void MeasureAll(steps::Session* session, const network::Deadline& deadline) {
    if (design_.shapes()) {
      unshaped_ = session->WhyNotShape(design_.hardest());
      session->Refuse(unshaped_);
      sending_only_ = session->sending_only();
      if (!unshaped_.empty()) return;
    }
    for (const PreparedRun& run : runs_) {
      if (file_.Has(*run.wanted)) {
        results_.push_back({run.wanted, Outcome::kTakenOver, {}, ""});
      } else if (!unwritten_.empty() || deadline.over()) {
        results_.push_back({run.wanted, Outcome::kInterrupted, {}, "it was not begun"});
      } else {
        MeasureOne(run, session);
      }
    }
  }

  void EndProgress() { line_.End(); }

 private:
  double ExpectedS(const PreparedRun& run) const {
    if (file_.Has(*run.wanted)) return 0.0;
    // Workers that do not wait go on until the slow ones have as many.
    const auto& async = run.predicted.async_servers;
    const Duration<> step =
        async && async->slow_updates > 0 ? async->slow_cycle : run.predicted.step_time;
    return std::min(timing_.run_limit_s, step.si() * (timing_.warm_up + timing_.steps));
  }

  // Sets the conditions of the next run. Why the links do not have them, else.
  std::string Shape(steps::Session* session) {
    const std::optional<steps::Conditions>& asked = designed_.conditions[results_.size()];
    if (!asked || asked == set_) return "";
    set_.reset();
    std::string problem = session->Shape(*asked);
    if (problem.empty()) set_ = asked;
    return problem;
  }

  void ShowProgress(const PreparedRun& run, std::size_t seen) {
    const double elapsed = network::ClockToSeconds(network::Clock::now() - start_);
    const double done = static_cast<double>(seen) / timing_.steps;
    const double left_s = std::max(0.0, left_s_ - done * ExpectedS(run));
    line_.Show(elapsed,
               fmt::format("{} of {}, about {} left: {}: {} of {} steps", results_.size() + 1,
                           runs_.size(), FormatDuration(Seconds(std::ceil(left_s))),
                           DescribeRun(*run.wanted), seen, timing_.steps));
  }

  void MeasureOne(const PreparedRun& run, steps::Session* session) {
    std::string why;
    const auto cast = CastOf(run.wanted->run.plan, session->hosts(), &why);
    if (!cast) {
      results_.push_back({run.wanted, Outcome::kFailed, {}, why});
      return;
    }
    const auto show = [&](std::size_t seen) { ShowProgress(run, seen); };
    show(0);
    if (std::string problem = Shape(session); !problem.empty()) {
      const Outcome outcome = interrupted ? Outcome::kInterrupted : Outcome::kFailed;
      results_.push_back({run.wanted, outcome, {}, std::move(problem)});
      left_s_ -= ExpectedS(run);
      return;
    }
    const std::string began = TimeNow();
    TrainingTimes times = session->Measure(run.training, *cast, show);
    left_s_ -= ExpectedS(run);
    results_.push_back(Judge(*run.wanted, times, timing_.steps));
    Result& result = results_.back();
    if (result.outcome != Outcome::kMeasured) return;
    const auto names = [&](const std::vector<int>& ranks) {
      std::vector<std::string> all;
      for (const int rank : ranks) {
        all.push_back(session->hosts()[static_cast<std::size_t>(rank)].name);
      }
      return all;
    };
    details_.push_back({&run, std::move(times), names(cast->workers), names(cast->servers)});
    result.timed.source =
        SourceOf(details_.back(), began, result.timed.step_s.size(), timing_.warm_up);
    try {
      file_.Append(result);
    } catch (const InputError& e) {
      unwritten_ = e.what();
    }
  }

  const Design& design_;
  const DesignedRuns& designed_;
  const std::vector<PreparedRun> runs_;
  const Timing timing_;
  RunsFile& file_;
  const network::Clock::time_point start_ = network::Clock::now();
  double left_s_ = 0;
  std::vector<Result> results_;
  std::vector<Detail> details_;
  std::string unwritten_;
  std::string unshaped_;
  std::set<std::string> sending_only_;
  std::optional<steps::Conditions> set_;  // what the links have
  ProgressLine line_;
};

void TellWhatIsMeasured(int hosts, const DesignedRuns& designed, const Design& design,
                        double left_s) {
  Tell(fmt::format("{} hosts, {} runs: about {}", hosts, designed.wanted.runs.size(),
                   FormatDuration(Seconds(std::ceil(left_s)))));
  if (!design.shapes()) return;
  Tell(fmt::format("{} conditions of {}, {} in an order by chance: --seed {}", design.cells.size(),
                   design.interface,
                   design.replicates == 1 ? "once" : fmt::format("{} times", design.replicates),
                   design.seed));
}

// What came of each run, in the order of the results.
Json ProbeJson(const StepsProbe& probe, const Design& design, const std::vector<std::string>& flags,
               const std::string& path) {
  const std::vector<Result>& results = probe.results();
  Json json = ResultsJson(results, flags, path);
  if (design.shapes()) json["shape"] = DesignJson(design, probe.sending_only());
  for (std::size_t i = 0, k = 0; i < results.size(); ++i) {
    if (results[i].outcome != Outcome::kMeasured) continue;
    json["runs"][i].update(PartsJson(probe.details()[k++]));
  }
  return json;
}

// On the host of rank 0 `wants` says what is measured, into `file_name` where no file is
// named, and `show_details` what came of it.
int Measure(const Arguments& args,
            const std::function<script::WantedRuns(const Place& place)>& wants,
            steps::Library library, const char* file_name,
            const std::function<std::string(const std::vector<Detail>& details)>& show_details) {
  const Place place = ReadOwnPlace(args);
  network::MeetingOptions options = ReadMeeting(args, place);
  const steps::Programs programs = steps::FindPrograms(ModuleFolders());
  StopInOrder();
  if (place.rank > 0) return Join(args, place, programs, options);
  const Design design = ReadDesign(args);
  const DesignedRuns designed = Spread(wants(place), design);
  const Timing timing = ReadTiming(args);
  std::vector<PreparedRun> runs = PrepareRuns(args, designed.wanted, timing, library, programs);
  const std::string path = args.TextOr("output", file_name);
  RunsFile file(path, designed.wanted);
  const double limit = ReadSeconds(
      args, "time-limit",
      static_cast<double>(runs.size()) * (timing.run_limit_s + steps::kStartS) + options.join_s,
      0.1, 1e9);
  options.deadline = network::Deadline::In(limit, &interrupted);

  StepsProbe probe(design, designed, std::move(runs), timing, &file);
  try {
    options.master = network::Resolve(place.master, place.port).front();
    Started started;
    TellWhatIsMeasured(place.of, designed, design, probe.left_s());
    started.StartOthers(args, place, "steps", {"time-limit", "shape-interface"}, options);
    steps::LeadSession(
        options, programs, [&] { return started.Absent(); },
        [&](steps::Session* session) { probe.MeasureAll(session, options.deadline); },
        design.interface);
  } catch (const NetworkError& e) {
    probe.EndProgress();
    Tell(interrupted ? "interrupted" : e.what());
    return kAnswerIsNo;
  }
  probe.EndProgress();
  if (interrupted && probe.results().empty()) {
    Tell("interrupted");
    return kAnswerIsNo;
  }
  if (!probe.unshaped().empty()) throw InputError(OptionPlace("shape"), "", probe.unshaped());
  const std::vector<std::string> flags = FlagsOf(designed, probe.sending_only());
  if (args.Has("json")) {
    PrintJson(ProbeJson(probe, design, flags, path));
  } else {
    if (!probe.details().empty()) Print(show_details(probe.details()));
    PrintResults(probe.results(), flags, path);
  }
  if (!probe.unwritten().empty()) {
    Tell(probe.unwritten() + "; what was measured is printed alone");
    return kBadInput;
  }
  return CodeOf(probe.results());
}

// ---- Messages alone.

// As benchmarks of collectives send them, but for every second size.
constexpr double kSmallestMessage = 1024;
constexpr double kLargestMessage = 256.0 * 1024 * 1024;
constexpr double kNextMessage = 4;

steps::Library ReadLibrary(const Arguments& args) {
  const auto library = ReadChoice(args, "library", steps::kLibraryNames, steps::Library::kGloo);
  // A worker is its host's rank, and hears of the others by what the launcher has told its host.
  if (library == steps::Library::kMpi && !VariableOf("PMIX_RANK") && !VariableOf("PMI_RANK")) {
    throw InputError(OptionPlace("library"), args.Text("library"),
                     "needs hosts that an MPI launcher has started",
                     "mpirun --map-by node -x STEPCAST_PROBE_TOKEN stepcast probe collectives "
                     "--library mpi --master HOST ..., or the same behind srun --mpi=pmix");
  }
  return library;
}

std::vector<DataSize<>> ReadSizes(const Arguments& args, steps::Library library) {
  const double most_floats =
      library == steps::Library::kMpi ? steps::kMostFloatsOfMpi : steps::kMostFloats;
  std::vector<DataSize<>> sizes;
  if (!args.Has("sizes")) {
    for (double bytes = kSmallestMessage; bytes <= kLargestMessage; bytes *= kNextMessage) {
      sizes.push_back(Bytes(bytes));
    }
    return sizes;
  }
  for (const std::string& part : SplitList(args.Text("sizes"))) {
    const DataSize<> size = ParseDataSize(part, OptionPlace("sizes"));
    const double most = kBytesPerFloat * most_floats;
    const bool is_whole = std::fmod(size.in(kBytes), kBytesPerFloat) == 0;
    if (!is_whole || size.in(kBytes) > most) {
      throw InputError(
          OptionPlace("sizes"), part,
          is_whole ? "is too large a message" : "is no message of numbers of four bytes",
          fmt::format("a multiple of 4 B, like \"64 KiB\", up to {}", FormatSize(Bytes(most))));
    }
    sizes.push_back(size);
  }
  return sizes;
}

// One worker on each host. Rows of another library than Gloo say so, and have a file of their own:
// what a fit learns of one is not the other's.
script::WantedRuns Messages(const Arguments& args, const Place& place, steps::Library library) {
  const bool is_gloo = library == steps::Library::kGloo;
  const Target target = ReadTarget(args, "message_4");
  ChosenRuns rows;
  rows.device = target.device;
  NextRun run;
  // MPI chooses the algorithm.
  run.plan.strategy = is_gloo ? Strategy::kRing : Strategy::kAllreduce;
  run.plan.bucket = kOneMessage.cap;
  run.plan.placement.assign(static_cast<std::size_t>(place.of), 1);
  rows.next.runs.push_back(run);
  std::string text;
  const char* name = steps::kLibraryNames[static_cast<std::size_t>(library)];
  for (const DataSize<>& size : ReadSizes(args, library)) {
    rows.workload.name = fmt::format("message_{}", static_cast<std::int64_t>(size.in(kBytes)));
    const std::vector<std::string> lines = WantedRows(rows);
    if (text.empty()) text = lines.front() + (is_gloo ? "\n" : ",library\n");
    text += lines.back() + (is_gloo ? "\n" : fmt::format(",{}\n", name));
  }
  return script::ParseWantedRuns(text, "--sizes");
}

// The rate at which a message of so many bytes is done with, and that at which a link would carry
// what a worker sends for it: nccl-tests' algbw and busbw.
std::string SumOfMessages(const std::vector<Detail>& details) {
  const Style style = DetectStyle();
  Table table(
      {LeftColumn("message"), "workers", "time", "forecast", "of the message", "on the wire"});
  for (const Detail& detail : details) {
    const DataSize<> size =
        Bytes(detail.prepared->training.buckets.front().floats * kBytesPerFloat);
    const Duration<> time = Seconds(Mean(detail.times.Means(&TimedStep::step_s)));
    const auto workers = static_cast<int>(detail.hosts.size());
    const double bus_factor = BusFactor(CollectiveCall::kAllReduce, workers).value_or(0);
    table.AddRow({FormatSize(size), FormatCount(workers), FormatDuration(time),
                  FormatDuration(detail.prepared->predicted.step_time), FormatRate(size / time),
                  FormatRate(size * bus_factor / time)});
  }
  const steps::Library library = details.front().prepared->training.library;
  return Heading(fmt::format("{} over messages", WhatExchanges(library)), style) +
         table.Render(style, 2);
}

}  // namespace

int ProbeSteps(const Arguments& args, const std::vector<std::string>& words) {
  const auto wants = [&](const Place& /*place*/) {
    if (words.empty()) {
      throw InputError({"", 0, "FILE"}, "", "is required",
                       "stepcast probe steps FILE, with FILE of stepcast plan --output");
    }
    return script::ReadWantedRuns(words.front());
  };
  return Measure(args, wants, steps::Library::kGloo, "runs.csv", Sum);
}

int ProbeCollectives(const Arguments& args) {
  const steps::Library library = ReadLibrary(args);
  return Measure(
      args, [&](const Place& place) { return Messages(args, place, library); }, library,
      "messages.csv", SumOfMessages);
}

}  // namespace stepcast::cli
