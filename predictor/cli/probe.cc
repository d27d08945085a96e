// stepcast probe: the network between hosts, and steps over it, measured by programs on each of
// them; and trainings.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "data/io/machines.h"
#include "data/io/network_profile_file.h"
#include "data/io/text_file.h"
#include "data/values/names.h"
#include "microbench/network/agent.h"
#include "microbench/network/coordinator.h"
#include "microbench/network/findings.h"
#include "predictor/cli/command.h"
#include "predictor/cli/probe_place.h"
#include "predictor/cli/probe_report.h"
#include "predictor/cli/probe_script.h"
#include "predictor/cli/probe_start.h"
#include "predictor/cli/probe_steps.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using network::NetworkError;

enum class What { kNetwork, kShow, kScript, kSteps, kCollectives };

po::options_description ProbeOptions() {
  po::options_description options("options");
  AddMeetingOptions(&options);
  options.add_options()("time", OptionValue("T"), "length of one measurement (1 s)")(
      "flows", OptionValue("N"), "connections at once where several are measured (4)")(
      "time-limit", OptionValue("T"),
      "time after which the probe ends (twice what it should take)")(
      "output", OptionValue("F"),
      "profile to write (network.json); script, steps: runs (runs.csv)")(
      "cluster", OptionValue("C"),
      "cluster file, or the name of a shipped one, to state the links in; steps: whose compute "
      "is waited for")("cluster-output", OptionValue("F"),
                       "cluster file to write: that of --cluster, links as measured")(
      "pairs", "show the tables of all pairs")("json", "print one JSON object")("help",
                                                                                "print this text");
  AddScriptOptions(&options);
  AddStepsOptions(&options);
  return options;
}

// Whether the option goes with what is asked for.
bool Belongs(const std::string& name, What what) {
  const auto among = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  po::options_description of_script;
  AddScriptOptions(&of_script);
  po::options_description of_steps;
  AddStepsOptions(&of_steps);
  po::options_description of_meeting;
  AddMeetingOptions(&of_meeting);
  const bool meets = of_meeting.find_nothrow(name, false) != nullptr;
  const bool scripts = of_script.find_nothrow(name, false) != nullptr;
  const bool steps = of_steps.find_nothrow(name, false) != nullptr;
  if (among({"output", "json", "time-limit"})) return true;
  if (what == What::kScript) return scripts;
  if (among({"sizes", "library"})) return what == What::kCollectives;
  if (what != What::kSteps && what != What::kCollectives) return !scripts && !steps;
  return steps || meets || among({"cluster", "steps", "warm-up", "run-limit"});
}

constexpr const char* kUsage = "stepcast probe WHAT [FILE] [options] [-- COMMAND ...]";
constexpr const char* kProbeHelp =
    "network measures between hosts, on each of which it is started: round trips, and what one\n"
    "connection and several carry, each way and both ways at once; what is lost; a host that "
    "sends\n"
    "to two others, and one to which all send. Rank 0 writes the profile and says what is slow.\n"
    "All must show one token. A host listens at one address, talks to the others alone, and ends\n"
    "by itself. show prints what the profile FILE says.\n\n"
    "script runs a training COMMAND for each row of FILE, a runs CSV without times as\n"
    "stepcast plan --output writes it, until enough steps were timed, and ends it. {workers},\n"
    "{local_batch} and the other columns stand for their values, as STEPCAST_WORKERS and so on\n"
    "do in its environment.\n\n"
    "steps trains for each row of FILE between the hosts, a worker on each, on all of which it is\n"
    "started as network is. Gloo's ring adds up gradients of the network's own sizes, or servers\n"
    "over gRPC take them, bucket by bucket behind the backward pass; compute is waited for, as\n"
    "long as a forecast of the row says. With --shape it does so under each of the conditions, "
    "which\n"
    "tc sets on the --shape-interface of all hosts and takes away again, whatever the end is.\n\n"
    "collectives times Gloo's ring over messages alone, from 1 KiB to 256 MiB, between all hosts:\n"
    "calls one after another, beside their forecasts. Started as network is; its runs are bare\n"
    "messages, which calibrate takes. With --library mpi, under mpirun or srun --mpi=pmix, it "
    "times\n"
    "Open MPI's all-reduce instead.";
constexpr const char* kProbeExamples =
    "  stepcast probe network --hosts n1,n2,n3 --ssh --cluster lab.yaml --cluster-output "
    "measured.yaml\n"
    "  srun --ntasks-per-node 1 stepcast probe network --time 2s\n"
    "  stepcast probe steps wanted.csv --hosts n1,n2,n3 --ssh --cluster lab.yaml --output "
    "runs.csv\n"
    "  stepcast probe steps wanted.csv --hosts n1,n2,n3 --ssh --cluster lab.yaml --shape "
    "\"bandwidth=100 Mbit/s,1 Gbit/s; rtt=0 ms,10 ms\" --shape-interface eth0 --replicates 2\n"
    "  stepcast probe collectives --hosts n1,n2,n3 --ssh --cluster measured.yaml --output "
    "messages.csv\n"
    "  mpirun --map-by node -x STEPCAST_PROBE_TOKEN stepcast probe collectives --library mpi "
    "--master n1 --cluster measured.yaml --output mpi.csv\n"
    "  torchrun --no-python --nnodes 4 --nproc-per-node 1 ... stepcast probe network\n"
    "  stepcast probe show network.json --pairs\n"
    "  stepcast probe script wanted.csv --pattern \"step (?<ms>[0-9.]+) ms\" -- torchrun "
    "--nproc-per-node {workers} train.py --batch-size {local_batch}\n";

// ---- The probe.

void RequireClusterOptions(const Arguments& args) {
  if (args.Has("cluster-output") && !args.Has("cluster")) args.Required("cluster");
  if (args.Has("cluster") && !args.Has("cluster-output")) args.Required("cluster-output");
}

// Throws where a file could not be written. One that is there stays as it is.
void RequireWritable(const std::string& path) {
  std::error_code error;
  const bool beside =
      !std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error);
  const std::string target = beside ? path + ".partial" : path;
  std::ofstream out(target, std::ios::app);
  if (out && beside) out << "\n" << std::flush;
  const std::string reason = std::strerror(errno);
  if (beside) std::filesystem::remove(target, error);
  if (!out) throw InputError({path, 0, ""}, "", "cannot be written: " + reason);
}

// Prints what was found, and writes the cluster file where one is asked for.
int Report(const Arguments& args, const NetworkProfile& profile, const std::string& path) {
  const network::NetworkSummary summary = network::Summarise(profile);
  if (args.Has("json")) {
    Json json = {{"profile", path}};
    json.update(NetworkJson(profile, summary));
    PrintJson(json);
  } else {
    Print(NetworkText(profile, summary, args.Has("pairs"), DetectStyle()));
  }
  if (args.Has("cluster")) {
    const Cluster cluster = Library().LoadCluster(args.Text("cluster"));
    const std::string file = args.Text("cluster-output");
    if (cluster.calibration) {
      Tell(fmt::format("{} was calibrated with other links: {} is without its calibration",
                       args.Text("cluster"), file));
    }
    WriteTextFile(
        file, FormatCluster(WithMeasuredLinks(cluster, profile, summary, args.Text("cluster"))));
    Tell("links written to " + file);
  }
  return profile.complete() ? kDone : kAnswerIsNo;
}

int Join(const network::AgentOptions& options) {
  const std::string problem = network::RunAgent(options);
  if (problem.empty()) return kDone;
  Tell("the probe ended early: " + problem);
  return kAnswerIsNo;
}

int Lead(const Arguments& args, const Place& place, network::ProbeOptions options) {
  const std::string path = args.TextOr("output", "network.json");
  options.master = network::Resolve(place.master, place.port).front();
  NetworkProfile profile;
  profile.version = STEPCAST_VERSION;
  profile.started = TimeNow();
  profile.settings = {{"time", fmt::format("{} s", options.settings.seconds)},
                      {"flows", fmt::format("{}", options.settings.flows)},
                      {"transport", "tcp"}};
  // What cannot be written, or read, should be known before an hour's work.
  RequireWritable(path);
  if (args.Has("cluster")) {
    const std::string cluster = args.Text("cluster");
    WithMeasuredLinks(Library().LoadCluster(cluster), profile, network::Summarise(profile),
                      cluster);
    RequireWritable(args.Text("cluster-output"));
  }

  const std::vector<network::ProbeStep> steps = network::MakeSchedule(place.of);
  Tell(fmt::format(
      "{} hosts, {} measurements: about {}", place.of, steps.size(),
      FormatDuration(Seconds(std::ceil(network::ExpectedSeconds(steps, 0, options.settings))))));
  Started started;
  started.StartOthers(args, place, "network", {"time", "flows", "time-limit"}, options);
  ProgressLine line;
  std::string unwritten;
  network::ProbeHooks hooks;
  const auto start = network::Clock::now();
  hooks.progress = [&](const network::ProbeProgress& p) {
    const double elapsed = network::ClockToSeconds(network::Clock::now() - start);
    line.Show(elapsed, fmt::format("{} of {} measurements, {} left: {}", p.done, p.steps,
                                   FormatDuration(Seconds(std::ceil(p.left_s))), p.what));
  };
  hooks.keep = [&](const NetworkProfile& so_far) {
    try {
      WriteTextFile(path, FormatNetworkProfile(so_far));
      unwritten.clear();
    } catch (const InputError& e) {
      unwritten = e.what();  // a disk that is full now may have room at the end
    }
  };
  hooks.absent = [&] { return started.Absent(); };
  profile = network::RunProbe(options, std::move(profile), hooks);
  line.End();
  const int code = Report(args, profile, path);
  started.End();
  if (!unwritten.empty()) {
    Tell(unwritten + "; what was measured is printed alone");
    return kBadInput;
  }
  if (!args.Has("json")) Print(NoteLine("profile: " + path, DetectStyle()));
  return code;
}

int Probe(const Arguments& args) {
  RequireClusterOptions(args);
  const Place place = ReadOwnPlace(args);
  network::ProbeOptions options{ReadMeeting(args, place), {}};
  options.settings.seconds = ReadSeconds(args, "time", options.settings.seconds, 0.05, 600);
  options.settings.flows = ReadInteger(args, "flows", 2, kMostProbeFlows, options.settings.flows);
  const double expected =
      network::ExpectedSeconds(network::MakeSchedule(place.of), 0, options.settings);
  const double limit =
      ReadSeconds(args, "time-limit", 2 * expected + options.join_s, 0.1, 7 * 86400);
  StopInOrder();
  options.deadline = network::Deadline::In(limit, &interrupted);
  try {
    if (place.rank == 0) return Lead(args, place, options);
    return Join(AsAgent(options, place));
  } catch (const NetworkError& e) {
    Tell(interrupted ? "interrupted" : e.what());
    return kAnswerIsNo;
  }
}

}  // namespace

int RunProbe(const std::vector<std::string>& arguments) {
  const po::options_description options = ProbeOptions();
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("probe", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp(kUsage, kProbeHelp, options, kProbeExamples);
    return kDone;
  }
  const std::vector<std::string> words = args.Texts("input");
  if (words.empty()) {
    throw InputError({"", 0, "WHAT"}, "", "is required", JoinNames(kProbeKinds));
  }
  const auto found = FindName(words.front(), kProbeKinds);
  if (!found) {
    throw InputError({"", 0, "WHAT"}, words.front(),
                     "is not one of them" + DidYouMean(words.front(), kProbeKinds),
                     JoinNames(kProbeKinds));
  }
  const What what = static_cast<What>(*found);
  for (const auto& option : options.options()) {
    const std::string& name = option->long_name();
    if (!args.Has(name) || Belongs(name, what)) continue;
    throw InputError(OptionPlace(name), "",
                     "has no meaning for " + std::string(kProbeKinds[*found]), "without it");
  }
  if (what == What::kScript) return ProbeScript(args, {words.begin() + 1, words.end()});
  if (what == What::kSteps || what == What::kCollectives) {
    const std::size_t most = what == What::kSteps ? 2 : 1;
    if (words.size() > most) {
      throw InputError({"", 0, "FILE"}, words[most], "belongs to nothing",
                       "see stepcast probe --help");
    }
    if (what == What::kCollectives) return ProbeCollectives(args);
    return ProbeSteps(args, {words.begin() + 1, words.end()});
  }
  const bool show = what == What::kShow;
  const std::size_t files = show ? 1 : 0;
  if (words.size() < 1 + files) {
    throw InputError({"", 0, "FILE"}, "", "is required", "a profile of stepcast probe network");
  }
  if (words.size() > 1 + files) {
    throw InputError({"", 0, "FILE"}, words[1 + files], "belongs to nothing",
                     "see stepcast probe --help");
  }
  if (!show) return Probe(args);
  for (const auto& option : options.options()) {
    const std::string name = option->long_name();
    const bool shows = name == "pairs" || name == "json" || name.starts_with("cluster");
    if (shows || !args.Has(name)) continue;
    throw InputError(OptionPlace(name), "", "has no meaning for show", "without it");
  }
  RequireClusterOptions(args);
  return Report(args, ReadNetworkProfile(words[1]), words[1]);
}

}  // namespace stepcast::cli
