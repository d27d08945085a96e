#include "predictor/cli/fresh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "data/io/strict_json.h"
#include "data/io/text_file.h"
#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/training_facts.h"
#include "microbench/harness/load_backend.h"
#include "microbench/network/meeting.h"
#include "microbench/script/spawn.h"
#include "microbench/steps/agent.h"
#include "predictor/cli/fit.h"
#include "predictor/cli/probe_runs.h"
#include "predictor/cli/probe_start.h"
#include "predictor/cli/probe_training.h"
#include "predictor/cli/signals.h"
#include "predictor/cli/training_option.h"
#include "predictor/cli/wanted_runs.h"

namespace stepcast::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBackends[] = {"cuda", "onednn", "none"};
enum class Compute { kCuda, kOneDnn, kNone };

// Options of the plan whose forecast is wanted. Who takes part is up to the hosts.
constexpr const char* kGoalKeys[] = {"local-batch", "accumulation",      "bucket",
                                     "strategy",    "servers",           "colocated-servers",
                                     "sharding",    "pipelined-servers", "staleness-bound"};

constexpr std::size_t kLargestAnswer = std::size_t{64} << 20;  // of a command, in JSON

std::string Option(const std::string& name, const std::string& text) {
  return fmt::format("--{}={}", name, text);
}

// Those options that were given, as they were.
Words Passed(const Arguments& args, const std::vector<std::string>& names) {
  static const po::options_description all = [] {
    po::options_description options;
    AddFitOptions(&options);
    AddFreshOptions(&options);
    return options;
  }();
  Words words;
  for (const std::string& name : names) {
    if (!args.Has(name)) continue;
    const auto& kind = all.find(name, false).semantic();
    if (kind->max_tokens() == 0) {
      words.push_back("--" + name);
    } else if (kind->is_composing()) {
      for (const std::string& text : args.Texts(name)) words.push_back(Option(name, text));
    } else {
      words.push_back(Option(name, args.Text(name)));
    }
  }
  return words;
}

Words GivenToMeet(const Arguments& args) {
  po::options_description meeting;
  AddMeetingOptions(&meeting);
  std::vector<std::string> names;
  for (const auto& option : meeting.options()) names.push_back(option->long_name());
  return Passed(args, names);
}

// How the measurements of the way meet. Hosts that nobody starts by ssh are told once how to join
// in all of them.
Words HowToMeet(const Arguments& args, const Place& place) {
  Words words = GivenToMeet(args);
  if (!args.Has("hosts") || args.Has("ssh") || args.Has("rank")) return words;
  for (int rank = 1; rank < place.of; ++rank) {
    Tell(fmt::format("on {}: stepcast calibrate --fresh {}",
                     place.hosts[static_cast<std::size_t>(rank)], JoiningWords(args, place, rank)));
  }
  words.emplace_back("--rank=0");
  return words;
}

// What a command and its parts were given, behind one another.
Words Joined(Words words, const std::vector<Words>& more) {
  for (const Words& those : more) words.insert(words.end(), those.begin(), those.end());
  return words;
}

// This program with other words, as somebody could type them; an interrupt is passed on. In JSON
// its answer goes to `answer`. Returns its exit code.
int RunItself(const Words& words, const std::string& answer) {
  Words command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::pair<int, int>> descriptors;
  int file = -1;
  if (!answer.empty()) {
    command.emplace_back("--json");
    file = open(answer.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
      throw InputError({answer, 0, ""}, "",
                       std::string("cannot be written: ") + std::strerror(errno));
    }
    descriptors.emplace_back(file, STDOUT_FILENO);
  }
  pid_t pid = 0;
  const int error = script::SpawnApart(command, {}, descriptors, &pid);
  if (file >= 0) close(file);
  if (error != 0) {
    throw std::runtime_error(std::string("stepcast cannot start itself: ") + std::strerror(error));
  }
  int status = 0;
  bool passed_on = false;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (interrupted && !std::exchange(passed_on, true)) kill(pid, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kAnswerIsNo;
}

// One worker on each host that has no server alone, as the probe of steps trains.
Plan GoalOf(const Arguments& args, const Target& target, int hosts) {
  Plan plan;
  plan.local_batch = 0;
  for (const char* key : kGoalKeys) {
    if (args.Has(key)) SetPlanOption(key, args.Text(key), target.cluster, OptionPlace(key), &plan);
  }
  const int apart = ServersApart(plan);
  if (apart >= hosts) {
    throw InputError(OptionPlace("servers"), std::to_string(apart),
                     fmt::format("leaves none of {} hosts to a worker", hosts),
                     fmt::format("at most {}, or --colocated-servers", hosts - 1));
  }
  plan.placement.assign(static_cast<std::size_t>(hosts - apart), 1);
  RequireBatch(plan);
  CheckPlan(plan);
  return plan;
}

// Runs that are forecast and not fitted: the goal, the goal with rarer exchanges, and half of it.
std::string JudgedRows(const Target& target, const Plan& goal) {
  ChosenRuns wanted;
  wanted.workload.name = target.workload.name;
  wanted.device = target.device;
  const auto add = [&](const Plan& plan) {
    NextRun run;
    run.plan = plan;
    wanted.next.runs.push_back(run);
  };
  add(goal);
  constexpr int kRarer = 4;
  Plan rarer = goal;
  rarer.accumulation_steps = goal.accumulation_steps <= kMostCount / kRarer
                                 ? goal.accumulation_steps * kRarer
                                 : goal.accumulation_steps / kRarer;
  add(rarer);
  if (goal.nodes() > 3) {
    add(WithPlacement(goal, Placement(static_cast<std::size_t>(goal.nodes() / 2), 1)));
  }
  return fmt::format("{}\n", fmt::join(WantedRows(wanted), "\n"));
}

// The way on the host of rank 0, stage by stage. Files lie in one folder, and stages.json there
// says which commands have done their work, so that a second call goes on where the first one
// ended.
class Way {
 public:
  Way(const Arguments& args, const Place& place)
      : args_(args),
        compute_(ReadChoice(args, "backend", kBackends, Compute::kCuda)),
        measures_compute_(compute_ != Compute::kNone && !args.Has("profile")),
        output_(args.Required("output")),
        folder_(args.TextOr("folder", "fresh")) {
    if (args.Has("backend") && args.Has("profile")) {
      throw InputError(OptionPlace("backend"), args.Text("backend"),
                       "has no meaning beside --profile", "one of the two");
    }
    if (args.Has("budget") && !measures_compute_) {
      throw InputError(OptionPlace("budget"), args.Text("budget"),
                       "has no meaning where no compute is measured", "without it");
    }
    args.Required("cluster");
    args.Required("workload");
    RequireReadable();
    const Target target = ReadTarget(args, "", !measures_compute_);
    goal_ = GoalOf(args, target, place.of);
    steps::Training training;
    if (UsesServers(goal_.strategy)) training.servers.emplace();
    steps::RequireProgram(steps::FindPrograms(ModuleFolders()), training);
    OpenFolder();
    WriteTextFile(Path("to-judge.csv"), JudgedRows(target, goal_));
    // Those that ssh starts come when they are needed.
    if (!args.Has("ssh")) {
      others_ = ReadMeeting(args, place);
      others_->master = network::Resolve(place.master, place.port).front();
    }
    meeting_ = HowToMeet(args, place);
    for (const TrainingFact* fact : FactsToState(args, target.workload)) {
      training_.push_back(Option(fact->key, fact->WordOf(target.workload)));
    }
    profile_ = Joined(Those({"profile"}), {training_});
    files_ = Those({"workload-file"});
  }

  // What a device computes, at the batch of the goal and at a smaller one.
  bool MeasureCompute() {
    if (!measures_compute_) return true;
    const auto held = HoldOthers("measures its compute first");
    const std::string path = Path("compute.profile.jsonl");
    std::vector<int> batches = {goal_.local_batch};
    if (goal_.local_batch > 1) batches.push_back(std::max(1, goal_.local_batch / 4));
    profile_ = Joined({Option("profile", path)}, {training_});
    return Go("compute",
              Joined({"microbench", Option("batch", fmt::format("{}", fmt::join(batches, ","))),
                      Option("backend", kBackends[static_cast<int>(compute_)]),
                      Option("output", path)},
                     {Those({"workload", "budget"}), files_, training_}),
              path, Inputs({})) &&
           Exists(path);
  }

  // The other hosts cannot know what this one has: where it does not start them, they join anew.
  bool MeasureNetwork() {
    return Go("network",
              Joined({"probe", "network", Option("cluster-output", Path("measured.yaml")),
                      Option("output", Path("network.json"))},
                     {Those({"cluster", "time"}), meeting_}),
              args_.Has("ssh") ? Path("measured.yaml") : "", {args_.Text("cluster")}) &&
           code_ == kDone;
  }

  bool ChooseRuns() {
    const auto held = HoldOthers("chooses the runs to measure");
    return Go("wanted",
              Joined({"plan", Cluster(), Option("output", Path("wanted.csv"))},
                     {Goal(), {Option("without", Path("to-judge.csv"))}, Those({"count"})}),
              Path("wanted.csv"), Inputs({"to-judge.csv"}));
  }

  // Those that are fitted, and those that judge the fit.
  bool MeasureSteps() {
    const auto measure = [&](const char* name, const char* wanted, const char* runs) {
      const Words words =
          Joined({"probe", "steps", Path(wanted), Cluster(), Option("output", Path(runs))},
                 {Those({"device", "steps"}), files_, profile_});
      SetAside(name, Stamp(words, Inputs({wanted})), Path(runs));
      return Go(name, Joined(words, {meeting_})) && Exists(Path(runs));
    };
    return measure("steps", "wanted.csv", "runs.csv") &&
           measure("judged", "to-judge.csv", "judged.csv");
  }

  bool Fit() {
    return Go("fit", Joined({"calibrate", Option("output", output_)}, {Fitted()})) &&
           Exists(output_);
  }

  void Judge() {
    Go("evaluation",
       Joined({"evaluate", Option("cluster", output_), Option("runs", Path("judged.csv"))},
              {files_}));
    Go("report",
       Joined({"report", Option("judge", Path("judged.csv")),
               Option("network", Path("network.json")), Option("output", Path("report.html"))},
              {Fitted()}));
    Go("next", Joined({"plan", Option("cluster", output_)}, {Goal()}));
  }

  // What came of it, as far as it came; the exit code.
  int End() {
    if (interrupted) Tell("interrupted; the same command goes on from here");
    const std::pair<const char*, std::string> files[] = {{"cluster", output_},
                                                         {"network", Path("network.json")},
                                                         {"runs", Path("runs.csv")},
                                                         {"judged", Path("judged.csv")},
                                                         {"report", Path("report.html")}};
    if (!args_.Has("json")) {
      std::string out;
      for (const auto& [what, path] : files) {
        if (Exists(path)) out += NoteLine(fmt::format("{}: {}", what, path), DetectStyle());
      }
      Print("\n" + out);
      return code_;
    }
    for (const auto& [what, path] : files) {
      answers_["files"][what] = Exists(path) ? Json(path) : Json();
    }
    PrintJson(answers_);
    return code_;
  }

 private:
  static bool Exists(const std::string& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // What would be found out after minutes of measuring.
  void RequireReadable() const {
    ReadInteger(args_, "count", 1, kMostWanted, 1);
    ReadInteger(args_, "steps", static_cast<int>(kLeastSteps), kMostSteps, kMostSteps);
    for (const char* option : {"time", "budget"}) {
      if (args_.Has(option)) ParseDuration(args_.Text(option), OptionPlace(option));
    }
    ReadStatements(args_);
    const auto folder = std::filesystem::path(output_).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder)) {
      throw InputError(OptionPlace("output"), output_, "is in no folder that there is",
                       "a file in a folder that exists");
    }
  }

  void OpenFolder() {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error || !std::filesystem::is_directory(folder_, error)) {
      throw InputError(OptionPlace("folder"), folder_, "cannot be made", "a folder of its own");
    }
    const std::string path = Path("stages.json");
    if (!Exists(path)) return;
    const std::string allowed = "the file as it was written, or none";
    const auto done =
        ParseStrictJson(ReadTextFile(path, kLargestAnswer), 1, {path, 0, ""}, allowed);
    const bool is_list =
        done.is_object() &&
        std::all_of(done.begin(), done.end(), [](const auto& of) { return of.is_string(); });
    if (!is_list) throw InputError({path, 0, ""}, "", "is no list of finished commands", allowed);
    for (const auto& [name, stamp] : done.items()) done_[name] = stamp.get<std::string>();
  }

  // Has the other hosts wait meanwhile, which nobody else would tell that this one is there.
  std::unique_ptr<network::HoldOff> HoldOthers(const char* why) const {
    return others_ ? std::make_unique<network::HoldOff>(*others_, why) : nullptr;
  }

  Words Those(const std::vector<std::string>& names) const { return Passed(args_, names); }
  std::string Cluster() const { return Option("cluster", Path("measured.yaml")); }
  Words Goal() const {
    return Joined({Option("placement", fmt::format("{}", fmt::join(goal_.placement, "-")))},
                  {Those({"workload", "device"}),
                   Those({std::begin(kGoalKeys), std::end(kGoalKeys)}), files_, profile_});
  }
  Words Fitted() const {
    return Joined({Cluster(), Option("runs", Path("runs.csv"))},
                  {files_, profile_, Those({"fix", "prior"})});
  }

  // What a stage reads besides the measured network: these of the folder, the profile and the files
  // of workloads.
  std::vector<std::string> Inputs(const std::vector<std::string>& names) const {
    std::vector<std::string> paths = args_.Texts("workload-file");
    if (args_.Has("profile")) paths.push_back(args_.Text("profile"));
    if (measures_compute_ && Exists(Path("compute.profile.jsonl"))) {
      paths.push_back(Path("compute.profile.jsonl"));
    }
    for (const std::string& name : names) paths.push_back(Path(name));
    return paths;
  }
  // A command and what it reads.
  static std::string Stamp(const Words& words, const std::vector<std::string>& inputs) {
    std::string stamp = fmt::format("stepcast {}", fmt::join(words, " "));
    for (const std::string& path : inputs) {
      // A name that is no file is that of something shipped.
      if (!std::filesystem::is_regular_file(path)) continue;
      const std::size_t hash = std::hash<std::string>()(ReadTextFile(path, kLargestAnswer));
      stamp += fmt::format(" [{} {:016x}]", path, hash);
    }
    return stamp;
  }
  // What a command printed, in its order; null where the file is no such answer.
  static Json ReadAnswer(const std::string& path) {
    constexpr int kDeepest = 64;
    const std::string text = ReadTextFile(path, kLargestAnswer);
    try {
      return ParseStrictJsonInOrder(text, kDeepest, {path, 0, ""}, "");
    } catch (const InputError&) {
      return {};
    }
  }
  void KeepStamp(const std::string& name, const std::string& stamp) {
    done_[name] = stamp;
    WriteTextFile(Path("stages.json"), JsonText(done_, 2) + "\n");
  }
  // Rows that something else has measured stay, but not among these.
  void SetAside(const std::string& name, const std::string& stamp, const std::string& runs) {
    if (Exists(runs) && done_.contains(name) && done_[name] != stamp) {
      std::filesystem::rename(runs, runs + ".before");
      Tell(fmt::format("{} was measured otherwise: now {}.before", runs, runs));
    }
    KeepStamp(name, stamp);
  }

  // Runs a command, unless `output` is there and was written by the very same one, which read the
  // very same `inputs`. Whether the next may follow.
  bool Go(const std::string& name, const Words& words, const std::string& output = "",
          const std::vector<std::string>& inputs = {}) {
    const std::string line = fmt::format("stepcast {}", fmt::join(words, " "));
    const std::string stamp = output.empty() ? "" : Stamp(words, inputs);
    const std::string answer = Path("answer-" + name + ".json");
    const bool is_done =
        !output.empty() && Exists(output) && done_.contains(name) && done_[name] == stamp;
    Tell(fmt::format("stage {} of {}{}: {}", ++stage_, measures_compute_ ? 9 : 8,
                     is_done ? ", done before" : "", line));
    int code = kDone;
    if (!is_done) {
      if (!output.empty()) done_.erase(name);
      std::filesystem::remove(answer);  // of an earlier one
      code = RunItself(words, args_.Has("json") ? answer : "");
      if (code == kDone && !output.empty()) KeepStamp(name, stamp);
    }
    if (args_.Has("json")) {
      answers_[name] = Exists(answer) ? ReadAnswer(answer) : Json();
    }
    code_ = std::max(code_, code);
    return !interrupted && code != kBadInput;
  }

  const Arguments& args_;
  Compute compute_;
  bool measures_compute_;
  std::string output_;
  std::string folder_;
  Plan goal_;
  std::optional<network::MeetingOptions> others_;  // how they come, where they come by themselves
  Words meeting_;
  Words training_;  // how the workload is trained
  Words profile_;   // with it
  Words files_;
  int stage_ = 0;
  int code_ = kDone;
  Json done_ = Json::object();
  Json answers_;
};

// The part of a host that is not the first: it joins what rank 0 measures, in the same order.
int Join(const Arguments& args) {
  const Words meeting = GivenToMeet(args);
  // Rank 0 goes on from a network that was measured whole, and from runs that failed.
  int code = RunItself(Joined({"probe", "network"}, {meeting}), "");
  if (code != kDone) return code;
  for (int i = 0; i < 2 && code != kBadInput && !interrupted; ++i) {
    code = std::max(code, RunItself(Joined({"probe", "steps"}, {meeting}), ""));
  }
  return code;
}

}  // namespace

void AddFreshOptions(po::options_description* options) {
  options->add_options()("workload", OptionValue("W"),
                         "fresh: name in the catalogue (stepcast workloads) or of a workload file")(
      "device", OptionValue("D"), "fresh: device of the hosts, by default the cluster's")(
      "backend", OptionValue("K"),
      "fresh: what measures this host's compute: cuda, onednn, or none, without --profile (cuda)")(
      "budget", OptionValue("T"), "fresh: time to measure compute at most (2 min)")(
      "time", OptionValue("T"), "fresh: length of one measurement of the network (1 s)")(
      "count", OptionValue("N"), "fresh: runs to fit, 1 to 100 (5)")(
      "steps", OptionValue("N"), "fresh: steps to time in each run (30)")(
      "folder", OptionValue("DIR"), "fresh: where files are kept, and found again (fresh)");
  for (const char* key : kGoalKeys) AddPlanOption(*FindPlanField(key), "fresh: ", options);
  AddMeetingOptions(options);
}

int CalibrateFresh(const Arguments& args) {
  const Place place = ReadOwnPlace(args);
  StopInOrder();
  if (place.rank > 0) return Join(args);
  try {
    Way way(args, place);
    if (way.MeasureCompute() && way.MeasureNetwork() && way.ChooseRuns() && way.MeasureSteps() &&
        way.Fit()) {
      way.Judge();
    }
    return way.End();
  } catch (const network::NetworkError& e) {
    Tell(e.what());
    return kAnswerIsNo;
  }
}

}  // namespace stepcast::cli
