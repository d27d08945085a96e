#include "predictor/cli/probe_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "data/io/text_file.h"
#include "data/values/numbers.h"
#include "microbench/network/host_facts.h"
#include "microbench/network/token.h"
#include "microbench/script/spawn.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

using network::Address;

constexpr const char* kTokenVariable = "STEPCAST_PROBE_TOKEN";
constexpr std::size_t kShortestToken = 8;
constexpr std::size_t kLongestToken = 256;

std::string ReadToken(const Arguments& args, bool may_make) {
  std::string token;
  InputPlace where = {"", 0, kTokenVariable};
  if (args.Has("token-file")) {
    where = {args.Text("token-file"), 0, ""};
    token = std::string(Trim(ReadTextFile(args.Text("token-file"), std::size_t{1} << 16)));
  } else if (const auto variable = VariableOf(kTokenVariable)) {
    token = *variable;
  } else if (may_make) {
    return network::RandomWord();
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

// "n1:29411", "[fd00::1]:29411": what --master takes.
std::string MasterText(const Place& place) {
  const bool is_address = place.master.find(':') != std::string::npos;
  return is_address ? fmt::format("[{}]:{}", place.master, place.port)
                    : fmt::format("{}:{}", place.master, place.port);
}

std::string JoinCommand(const Arguments& args, const Place& place, int rank,
                        const std::string& program, const char* kind,
                        const std::vector<const char*>& passed) {
  std::string command =
      fmt::format("{} probe {} {}", Quoted(program), kind, JoiningWords(args, place, rank));
  for (const char* option : passed) {
    if (args.Has(option)) command += fmt::format(" --{} {}", option, Quoted(args.Text(option)));
  }
  return command;
}

void WarnOfLoopback(const Place& place, const Address& own) {
  if (own.loopback() && own.host() != place.master && place.master != "localhost") {
    Tell(fmt::format("{} is {}, which only this host reaches; --bind names another interface",
                     place.master, own.host()));
  }
}

}  // namespace

std::optional<std::string> VariableOf(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

void AddMeetingOptions(po::options_description* options) {
  options->add_options()(
      "hosts", OptionValue("H,..."),
      "hosts to measure between, this one first without --rank; the others are told how to join, "
      "or started with --ssh")(
      "ssh", "start the program on the other hosts by ssh, where it has the same path")(
      "rank", OptionValue("N"),
      "number of this host, from 0, instead of what torchrun, mpirun or srun set; with "
      "--hosts, which all hosts are given then, none is told how to join")(
      "of", OptionValue("N"), "how many hosts there are")("master", OptionValue("HOST[:PORT]"),
                                                          "where rank 0 waits (port 29411)")(
      "bind", OptionValue("I"),
      "interface or address of this host to listen at and send from; without it that of --master")(
      "token-file", OptionValue("F"),
      "file with the word that all hosts share, instead of STEPCAST_PROBE_TOKEN")(
      "name", OptionValue("N"), "name of this host, instead of its own")(
      "wait", OptionValue("T"), "time in which all hosts must have joined (1 min)");
}

Place ReadOwnPlace(const Arguments& args) {
  return ReadPlace(
      [&](const char* option) {
        return args.Has(option) ? std::optional(args.Text(option)) : std::nullopt;
      },
      VariableOf);
}

std::string JoiningWords(const Arguments& args, const Place& place, int rank) {
  std::string words =
      fmt::format("--rank {} --of {} --master {}", rank, place.of, Quoted(MasterText(place)));
  // All hosts may have an interface of the name; an address is this host's alone.
  if (args.Has("bind") &&
      network::InterfaceOf(network::LocalAddress(args.Text("bind"))) == args.Text("bind")) {
    words += " --bind " + Quoted(args.Text("bind"));
  }
  if (args.Has("wait")) words += " --wait " + Quoted(args.Text("wait"));
  return words;
}

double ReadSeconds(const Arguments& args, const char* option, double otherwise, double low,
                   double high) {
  if (!args.Has(option)) return otherwise;
  const double seconds = ParseDuration(args.Text(option), OptionPlace(option)).si();
  if (seconds >= low && seconds <= high) return seconds;
  throw InputError(OptionPlace(option), args.Text(option), "is out of range",
                   fmt::format("{} s to {} s", low, high));
}

network::MeetingOptions ReadMeeting(const Arguments& args, const Place& place) {
  if (args.Has("ssh") && !args.Has("hosts")) args.Required("hosts");
  if (args.Has("ssh") && args.Has("rank")) {
    throw InputError(OptionPlace("rank"), "", "has no meaning with --ssh, which starts the others",
                     "one of the two");
  }
  network::MeetingOptions options;
  options.token = ReadToken(args, args.Has("ssh"));
  options.join_s = ReadSeconds(args, "wait", options.join_s, 0.1, 86400);
  options.hosts = place.of;
  options.names = place.hosts;
  options.name = args.TextOr("name", network::HostName());
  options.bind = args.TextOr("bind", "");
  try {
    if (args.Has("bind")) network::LocalAddress(options.bind);
  } catch (const network::NetworkError& e) {
    throw InputError(OptionPlace("bind"), "", e.what());
  }
  return options;
}

network::AgentOptions AsAgent(const network::MeetingOptions& options, const Place& place) {
  network::AgentOptions agent;
  agent.rank = place.rank;
  agent.of = place.of;
  agent.name = options.name;
  agent.master = network::Resolve(place.master, place.port).front();
  agent.token = options.token;
  agent.bind = options.bind;
  agent.join_s = options.join_s;
  // It ends when rank 0 does; this is for when that cannot tell.
  agent.deadline = {options.deadline.until + network::SecondsToClock(network::kGraceS),
                    options.deadline.stop};
  agent.waits = [at = MasterText(place), join_s = options.join_s](const std::string& why,
                                                                  bool is_there) {
    Tell(is_there ? fmt::format("waiting for rank 0 at {}, which {}", at, why)
                  : fmt::format("waiting for rank 0 at {}, {} at most (--wait): {}", at,
                                FormatDuration(Seconds(join_s)), why));
  };
  return agent;
}

void Started::StartOthers(const Arguments& args, const Place& place, const char* kind,
                          const std::vector<const char*>& passed,
                          const network::MeetingOptions& options) {
  if (options.bind.empty()) WarnOfLoopback(place, options.master);
  if (place.hosts.empty() || args.Has("rank")) return;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  for (int rank = 1; rank < place.of; ++rank) {
    const std::string command = JoinCommand(args, place, rank, program, kind, passed);
    const std::string& host = place.hosts[static_cast<std::size_t>(rank)];
    if (args.Has("ssh")) {
      Start(host, command, options.token);
    } else {
      Tell(fmt::format("on {}: {}", host, command));
    }
  }
}

std::string Started::Absent() {
  const std::vector<std::string>& ended = Reap();
  return ended.empty() ? "" : fmt::format("ssh to {} has ended", fmt::join(ended, ", "));
}

// The token goes by the program's input: command lines are for all to read.
void Started::Start(const std::string& host, const std::string& command, const std::string& token) {
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

void Started::End() {
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

const std::vector<std::string>& Started::Reap() {
  std::erase_if(programs_, [&](const Program& program) {
    if (waitpid(program.pid, nullptr, WNOHANG) == 0) return false;
    ended_.push_back(program.host);
    return true;
  });
  return ended_;
}

}  // namespace stepcast::cli
