// stepcast probe: the network between hosts, measured by programs on each of them; and trainings.
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "data/io/machines.h"
#include "data/io/network_profile_file.h"
#include "data/io/text_file.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "microbench/network/agent.h"
#include "microbench/network/coordinator.h"
#include "microbench/network/findings.h"
#include "microbench/network/host_facts.h"
#include "microbench/script/spawn.h"
#include "predictor/cli/command.h"
#include "predictor/cli/probe_place.h"
#include "predictor/cli/probe_report.h"
#include "predictor/cli/probe_script.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using network::Address;
using network::NetworkError;

constexpr const char* kTokenVariable = "STEPCAST_PROBE_TOKEN";
constexpr std::size_t kShortestToken = 8;
constexpr std::size_t kLongestToken = 256;

po::options_description Options() {
  po::options_description options("options");
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()(
      "hosts", text("H,..."),
      "hosts to measure between, this one first; the others are told how to join, "
      "or started with --ssh")(
      "ssh", "start the program on the other hosts by ssh, where it has the same path")(
      "rank", text("N"),
      "number of this host, from 0, instead of what torchrun, mpirun or srun set")(
      "of", text("N"), "how many hosts there are")("master", text("HOST[:PORT]"),
                                                   "where rank 0 waits (port 29411)")(
      "bind", text("I"),
      "interface or address of this host to listen at and send from; without it that of --master")(
      "token-file", text("F"),
      "file with the word that all hosts share, instead of STEPCAST_PROBE_TOKEN")(
      "name", text("N"), "name of this host, instead of its own")(
      "time", text("T"), "length of one measurement (1 s)")(
      "flows", text("N"), "connections at once where several are measured (4)")(
      "wait", text("T"), "time in which all hosts must have joined (1 min)")(
      "time-limit", text("T"), "time after which the probe ends (twice what it should take)")(
      "output", text("F"), "profile to write (network.json); script: runs (runs.csv)")(
      "cluster", text("C"), "cluster file, or the name of a shipped one, to state the links in")(
      "cluster-output", text("F"), "cluster file to write: that of --cluster, links as measured")(
      "pairs", "show the tables of all pairs")("json", "print one JSON object")("help",
                                                                                "print this text");
  AddScriptOptions(&options);
  return options;
}

constexpr const char* kUsage = "stepcast probe WHAT [FILE] [options] [-- COMMAND ...]";
constexpr const char* kWhat =
    "network measures between hosts, on each of which it is started: round trips, and what one\n"
    "connection and several carry, each way and both ways at once; what is lost; a host that "
    "sends\n"
    "to two others, and one to which all send. Rank 0 writes the profile and says what is slow.\n"
    "All must show one token. A host listens at one address, talks to the others alone, and ends\n"
    "by itself. show prints what the profile FILE says.\n\n"
    "script runs a training COMMAND for each row of FILE, a runs CSV without times as\n"
    "stepcast plan --output writes it, until enough steps were timed, and ends it. {workers},\n"
    "{local_batch} and the other columns stand for their values, as STEPCAST_WORKERS and so on\n"
    "do in its environment.";
constexpr const char* kExamples =
    "  stepcast probe network --hosts n1,n2,n3 --ssh --cluster lab.yaml --cluster-output "
    "measured.yaml\n"
    "  srun --ntasks-per-node 1 stepcast probe network --time 2s\n"
    "  torchrun --no-python --nnodes 4 --nproc-per-node 1 ... stepcast probe network\n"
    "  stepcast probe show network.json --pairs\n"
    "  stepcast probe script wanted.csv --pattern \"step (?<ms>[0-9.]+) ms\" -- torchrun "
    "--nproc-per-node {workers} train.py --batch-size {local_batch}\n";

// ---- What options say.

std::optional<std::string> VariableOf(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::string ReadToken(const Arguments& args, bool may_make) {
  std::string token;
  InputPlace where = {"", 0, kTokenVariable};
  if (args.Has("token-file")) {
    where = {args.Text("token-file"), 0, ""};
    token = std::string(Trim(ReadTextFile(args.Text("token-file"), std::size_t{1} << 16)));
  } else if (const auto variable = VariableOf(kTokenVariable)) {
    token = *variable;
  } else if (may_make) {
    std::array<unsigned char, 16> random{};
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
      throw std::runtime_error("the system gives no random numbers");
    }
    for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
    return token;
  }
  // Its length alone is told: an error may be read by others.
  if (token.size() < kShortestToken || token.size() > kLongestToken ||
      token.find_first_of(" \t\n\r") != std::string::npos) {
    throw InputError(where, token.empty() ? "" : fmt::format("{} characters", token.size()),
                     "is no token that all hosts share",
                     fmt::format("a word of {} to {} characters, as openssl rand -hex 16 makes",
                                 kShortestToken, kLongestToken));
  }
  return token;
}

double ReadSeconds(const Arguments& args, const char* option, double otherwise, double low,
                   double high) {
  if (!args.Has(option)) return otherwise;
  const double seconds = ParseDuration(args.Text(option), OptionPlace(option)).si();
  if (seconds >= low && seconds <= high) return seconds;
  throw InputError(OptionPlace(option), args.Text(option), "is out of range",
                   fmt::format("{} s to {} s", low, high));
}

// ---- Hosts that ssh reaches.

// As a shell reads it.
std::string Quoted(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-:,=@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string JoinCommand(const Arguments& args, const Place& place, int rank,
                        const std::string& program) {
  std::string command =
      fmt::format("{} probe network --rank {} --of {} --master {}", Quoted(program), rank, place.of,
                  Quoted(place.master.find(':') == std::string::npos
                             ? fmt::format("{}:{}", place.master, place.port)
                             : fmt::format("[{}]:{}", place.master, place.port)));
  for (const char* option : {"time", "flows", "wait", "time-limit"}) {
    if (args.Has(option)) command += fmt::format(" --{} {}", option, Quoted(args.Text(option)));
  }
  // Of an interface all hosts may have one; an address is this host's.
  if (args.Has("bind") &&
      network::InterfaceOf(network::LocalAddress(args.Text("bind"))) == args.Text("bind")) {
    command += " --bind " + Quoted(args.Text("bind"));
  }
  return command;
}

// The programs that start the others, each of which ends with its own.
class Started {
 public:
  Started() = default;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() { End(); }

  // The token goes by the program's input: command lines are for all to read.
  void Start(const std::string& host, const std::string& command, const std::string& token) {
    int input[2];
    if (pipe2(input, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for ssh");
    // It waits there: a program that ends at once reads nothing, and breaks no pipe of ours.
    const std::string line = token + "\n";
    const bool told = write(input[1], line.data(), line.size()) >= 0;
    close(input[1]);
    if (!told) throw std::runtime_error("no pipe for ssh");
    const std::string remote =
        fmt::format("IFS= read -r {0} && export {0} && exec {1}", kTokenVariable, command);
    pid_t pid = 0;
    // What it prints is news, not the answer.
    const int error =
        script::SpawnApart({"ssh", "-o", "BatchMode=yes", "-T", "--", host, remote}, {},
                           {{input[0], STDIN_FILENO}, {STDERR_FILENO, STDOUT_FILENO}}, &pid);
    close(input[0]);
    if (error == 0) programs_.push_back({pid, host});
    if (error != 0) throw InputError(OptionPlace("ssh"), "", "cannot be run: no program ssh");
  }

  // Waits a moment for them to end by themselves, and then ends them.
  void End() {
    constexpr double kPatienceS = 5;
    const network::Deadline deadline = network::Deadline::In(kPatienceS);
    bool asked = false;
    while (!programs_.empty()) {
      Reap();
      if (programs_.empty()) break;
      if (deadline.over() && !asked) {
        for (const Program& program : programs_) kill(program.pid, SIGTERM);
        asked = true;
      }
      if (deadline.left_s() < -kPatienceS) break;
      std::this_thread::sleep_for(network::SecondsToClock(0.02));
    }
  }
  // The hosts whose programs have ended.
  const std::vector<std::string>& Reap() {
    std::erase_if(programs_, [&](const Program& program) {
      if (waitpid(program.pid, nullptr, WNOHANG) == 0) return false;
      ended_.push_back(program.host);
      return true;
    });
    return ended_;
  }

 private:
  struct Program {
    pid_t pid = 0;
    std::string host;
  };
  std::vector<Program> programs_;
  std::vector<std::string> ended_;
};

// ---- The probe.

void Tell(const std::string& sentence) {
  std::fputs(("stepcast: " + sentence + "\n").c_str(), stderr);
}

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

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

Address Master(const Place& place) { return network::Resolve(place.master, place.port).front(); }

int Join(const Arguments& args, const Place& place, network::AgentOptions options) {
  options.rank = place.rank;
  options.of = place.of;
  options.name = args.Has("name") ? args.Text("name") : network::HostName();
  options.bind = args.Has("bind") ? args.Text("bind") : "";
  options.master = Master(place);
  const std::string problem = network::RunAgent(options);
  if (problem.empty()) return kDone;
  Tell("the probe ended early: " + problem);
  return kAnswerIsNo;
}

void WarnOfLoopback(const Place& place, const Address& own) {
  if (own.loopback() && own.host() != place.master && place.master != "localhost") {
    Tell(fmt::format("{} is {}, which only this host reaches; --bind names another interface",
                     place.master, own.host()));
  }
}

int Lead(const Arguments& args, const Place& place, network::ProbeOptions options) {
  const std::string path = args.Has("output") ? args.Text("output") : "network.json";
  options.hosts = place.of;
  options.names = place.hosts;
  options.name = args.Has("name") ? args.Text("name") : network::HostName();
  options.bind = args.Has("bind") ? args.Text("bind") : "";
  options.master = Master(place);
  NetworkProfile profile;
  profile.version = STEPCAST_VERSION;
  profile.started = Now();
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
  if (options.bind.empty()) WarnOfLoopback(place, options.master);
  Started started;
  if (!place.hosts.empty()) {
    std::error_code error;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    for (int rank = 1; rank < place.of; ++rank) {
      const std::string command = JoinCommand(args, place, rank, program);
      const std::string& host = place.hosts[static_cast<std::size_t>(rank)];
      if (args.Has("ssh")) {
        started.Start(host, command, options.token);
      } else {
        Tell(fmt::format("on {}: {}", host, command));
      }
    }
  }
  ProgressLine line;
  std::string unwritten;
  network::ProbeHooks hooks;
  const auto start = network::Clock::now();
  hooks.progress = [&](const network::ProbeProgress& p) {
    const double elapsed = std::chrono::duration<double>(network::Clock::now() - start).count();
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
  hooks.absent = [&] {
    const std::vector<std::string>& ended = started.Reap();
    return ended.empty() ? "" : fmt::format("ssh to {} has ended", fmt::join(ended, ", "));
  };
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
  const Place place = ReadPlace(
      [&](const char* option) {
        return args.Has(option) ? std::optional(args.Text(option)) : std::nullopt;
      },
      VariableOf);
  if (args.Has("ssh") && !args.Has("hosts")) args.Required("hosts");
  network::ProbeOptions options;
  options.token = ReadToken(args, args.Has("ssh"));
  options.settings.seconds = ReadSeconds(args, "time", options.settings.seconds, 0.05, 600);
  if (args.Has("flows")) {
    options.settings.flows =
        ParseInteger(args.Text("flows"), OptionPlace("flows"), 2, kMostProbeFlows);
  }
  options.join_s = ReadSeconds(args, "wait", options.join_s, 0.1, 86400);
  const double expected =
      network::ExpectedSeconds(network::MakeSchedule(place.of), 0, options.settings);
  const double limit =
      ReadSeconds(args, "time-limit", 2 * expected + options.join_s, 0.1, 7 * 86400);
  StopInOrder();
  options.deadline = network::Deadline::In(limit, &interrupted);
  try {
    if (args.Has("bind")) network::LocalAddress(args.Text("bind"));
  } catch (const NetworkError& e) {
    throw InputError(OptionPlace("bind"), "", e.what());
  }
  try {
    if (place.rank == 0) return Lead(args, place, options);
    network::AgentOptions agent;
    agent.token = options.token;
    agent.join_s = options.join_s;
    // It ends when rank 0 does; this is for when that cannot tell.
    agent.deadline = network::Deadline::In(limit + network::kGraceS, &interrupted);
    return Join(args, place, agent);
  } catch (const NetworkError& e) {
    Tell(interrupted ? "interrupted" : e.what());
    return kAnswerIsNo;
  }
}

}  // namespace

int RunProbe(const std::vector<std::string>& arguments) {
  const po::options_description options = Options();
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("probe", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp(kUsage, kWhat, options, kExamples);
    return kDone;
  }
  const std::vector<std::string> words = args.Texts("input");
  enum class What { kNetwork, kShow, kScript };
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
  po::options_description of_script;
  AddScriptOptions(&of_script);
  for (const auto& option : options.options()) {
    const std::string& name = option->long_name();
    const bool scripts = of_script.find_nothrow(name, false) != nullptr;
    const bool both = name == "output" || name == "json" || name == "time-limit";
    if (!args.Has(name) || both || scripts == (what == What::kScript)) continue;
    throw InputError(OptionPlace(name), "",
                     "has no meaning for " + std::string(kProbeKinds[*found]), "without it");
  }
  if (what == What::kScript) return ProbeScript(args, {words.begin() + 1, words.end()});
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
