// stepcast completion: scripts by which bash, zsh and fish complete command lines, made of the
// words that --help prints and of the names that the code knows.
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <span>
#include <sstream>

#include "data/values/training_facts.h"
#include "data/workloads/catalog.h"
#include "microbench/harness/load_backend.h"
#include "microbench/steps/work.h"
#include "model/catalog/catalog.h"
#include "model/step/parameter_specs.h"
#include "predictor/cli/command.h"
#include "predictor/cli/import.h"
#include "predictor/search/recommend.h"

namespace stepcast::cli {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// Words that may be completed as an option's value, or where no option takes the word.
struct Values {
  Words words;
  bool files = false;
};

struct CommandWords {
  std::string name;
  std::string summary;
  std::vector<std::pair<Help::Option, Values>> options;
  std::vector<Values> positions;  // the last may be repeated
};

Words ListOf(std::span<const char* const> names) { return Words(names.begin(), names.end()); }

// The names behind options, and behind the capitals of a usage line.
std::map<std::string, Words> KnownNames() {
  const Library library;
  std::map<std::string, Words> names = {{"strategy", ListOf(kStrategyNames)},
                                        {"congestion-control", ListOf(kCongestionControlNames)},
                                        {"transport", ListOf(kTransportNames)},
                                        {"overlap", ListOf(kOverlapNames)},
                                        {"sharding", ListOf(kShardingNames)},
                                        {"shard", ListOf(kShardNames)},
                                        {"objective", ListOf(kObjectiveNames)},
                                        {"backend", ListOf(kBackendNames)},
                                        {"library", ListOf(steps::kLibraryNames)},
                                        {"cluster", library.ClusterNames()},
                                        {"profile", library.ProfileNames()},
                                        {"workload", WorkloadNames()},
                                        {"KIND", ListOf(kImportKinds)},
                                        {"WHAT", ListOf(kProbeKinds)},
                                        {"SHELL", ListOf(kShells)}};
  names["try-strategy"] = names["strategy"];
  names["try-shard"] = names["shard"];
  names["CLUSTER"] = names["cluster"];
  names["NAME"] = names["workload"];
  for (const TrainingFact& fact : TrainingFacts()) names[fact.key] = ListOf(fact.words.names);
  for (const Device& device : library.Devices()) names["device"].push_back(device.name);
  for (const Model<double>& model : Catalog<double>()) names["ID"].emplace_back(model.id);
  for (const ParameterSpec* spec : kParameterSpecs) names["ID"].emplace_back(spec->name);
  for (const Command& command : Commands()) names["COMMAND"].emplace_back(command.name);
  return names;
}

// Whether the placeholder stands for a file: F, FILE, FOLDER, R.csv; C is a file or a name.
bool IsFile(const std::string& placeholder) {
  const std::size_t dot = placeholder.find('.');
  return placeholder.starts_with('F') || placeholder == "C" ||
         (dot != std::string::npos && placeholder.find('.', dot + 1) == std::string::npos);
}

Values ValuesOf(const Help::Option& option, const std::map<std::string, Words>& names) {
  Values values;
  if (const auto known = names.find(option.name); known != names.end()) {
    values.words = known->second;
  } else if (option.placeholder.find('|') != std::string::npos) {  // "a|b", "[=a|b]"
    const std::size_t first = option.placeholder.find_first_not_of("[=");
    std::istringstream parts(
        option.placeholder.substr(first, option.placeholder.find(']') - first));
    for (std::string part; std::getline(parts, part, '|');) values.words.push_back(part);
  }
  values.files = IsFile(option.placeholder);
  return values;
}

// Words for arguments without an option: KIND and FILE of "stepcast import KIND FILE ... [--output
// F]".
std::vector<Values> PositionsOf(const std::string& usage,
                                const std::map<std::string, Words>& names) {
  std::vector<Values> positions;
  std::istringstream words(usage.substr(0, usage.find('\n')));
  std::string word;
  words >> word >> word;  // the program, the command
  while (words >> word) {
    std::erase_if(word, [](char c) { return c == '[' || c == ']'; });
    if (word.starts_with('-') || word == "options") break;
    if (word == "...") continue;
    const auto known = names.find(word);
    positions.push_back({known == names.end() ? Words() : known->second, IsFile(word)});
  }
  return positions;
}

std::vector<CommandWords> AllCommands() {
  const std::map<std::string, Words> names = KnownNames();
  std::vector<CommandWords> commands;
  for (const Command& command : Commands()) {
    const Help help = ReadHelp(command);
    CommandWords words{command.name, command.summary, {}, PositionsOf(help.usage, names)};
    for (const Help::Option& option : help.options) {
      words.options.emplace_back(option, ValuesOf(option, names));
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// ---- bash, which has no descriptions: one list of options for a command, one of values for an
// option, whatever the command.

std::string BashValues(const Values& values) {
  return fmt::format("words='{}' files={}", fmt::join(values.words, " "),
                     values.files ? "yes" : "");
}

std::string Bash(const std::vector<CommandWords>& commands) {
  std::set<std::string> seen;
  std::map<std::string, std::string> values;  // the options that take them
  std::string optional;                       // options that may go without their value
  std::string many;
  std::string words_of;
  Words names;
  for (const CommandWords& command : commands) {
    names.push_back(command.name);
    Words options;
    for (const auto& [option, its] : command.options) {
      const std::string flag = "--" + option.name;
      options.push_back(flag);
      if (option.placeholder.empty() || !seen.insert(flag).second) continue;
      const auto add = [&](std::string* flags) { *flags += (flags->empty() ? "" : "|") + flag; };
      add(&values[BashValues(its)]);
      if (option.value_is_optional) add(&optional);
      if (option.takes_many) add(&many);
    }
    std::string positions;
    for (std::size_t i = 0; i < command.positions.size(); ++i) {
      positions += fmt::format("        {}) {} ;;\n",
                               i + 1 == command.positions.size() ? "*" : std::to_string(i),
                               BashValues(command.positions[i]));
    }
    words_of += fmt::format("    {}) options='{}'\n", command.name, fmt::join(options, " "));
    if (!positions.empty()) words_of += "      case $place in\n" + positions + "      esac\n";
    words_of += "      ;;\n";
  }
  std::string values_of;
  for (const auto& [words, flags] : values) {
    values_of += fmt::format("    {}) {} ;;\n", flags, words);
  }
  return fmt::format(R"(# Completion of stepcast for bash, written by `stepcast completion bash`.
_stepcast() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option='' equals='' words='' files='' options='' place=0 i
  local command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$current")
    return
  fi
  # The option that takes the current word. bash cuts --option=value in three.
  i=$((COMP_CWORD - 1))
  [ "$current" != = ] || {{ current='' equals=yes; i=$COMP_CWORD; }}
  [ "${{COMP_WORDS[i]}}" != = ] || {{ equals=yes; i=$((i - 1)); }}
  option=${{COMP_WORDS[i]}}
  for ((; i > 1; --i)); do
    case ${{COMP_WORDS[i]}} in
      {}) option=${{COMP_WORDS[i]}}; break ;;
      -*) break ;;
    esac
  done
  case $option$equals in
    {}) option='' ;;
  esac
  case $option in
{}    *) option='' ;;
  esac
  if [ -z "$option" ]; then
    for ((i = 2; i < COMP_CWORD; ++i)); do
      [[ ${{COMP_WORDS[i]}} == -* ]] || place=$((place + 1))
    done
    case $command in
{}    esac
    [[ $current != -* && $words$files ]] || words=$options files=''
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" ${{files:+-f}} -- "$current")
  [ -z "$files" ] || compopt -o filenames 2>/dev/null || true
}}
complete -F _stepcast stepcast
)",
                     fmt::join(names, " "), many, optional, values_of, words_of);
}

// ---- zsh

// Within single quotes, and within the brackets of a description.
std::string ZshQuoted(const std::string& text) { return Replaced(text, "'", "'\\''"); }
std::string ZshText(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = Replaced(text, special, std::string("\\") + special);
  }
  return ZshQuoted(text);
}

std::string ZshAction(const Values& values) {
  if (values.words.empty()) return values.files ? "_files" : "";
  const std::string words = fmt::format("{}", fmt::join(values.words, " "));
  return values.files ? " _stepcast_name_or_file " + words : "(" + words + ")";
}

std::string Zsh(const std::vector<CommandWords>& commands) {
  std::string list;
  std::string cases;
  for (const CommandWords& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, ZshText(command.summary));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const auto& [option, values] : command.options) {
      cases += fmt::format(" \\\n        '*--{}", option.name);
      if (!option.placeholder.empty()) {
        cases += option.takes_many ? "" : option.value_is_optional ? "=-" : "=";
      }
      cases += "[" + ZshText(option.text) + "]";
      if (!option.placeholder.empty()) {
        cases += option.takes_many ? ":*-*" : option.value_is_optional ? ":" : "";
        cases += fmt::format(":{}:{}", ZshText(option.placeholder), ZshAction(values));
      }
      cases += "'";
    }
    for (std::size_t i = 0; i < command.positions.size(); ++i) {
      cases += fmt::format(" \\\n        '{}:value:{}'",
                           i + 1 == command.positions.size() ? "*" : std::to_string(i + 1),
                           ZshAction(command.positions[i]));
    }
    cases += "\n      ;;\n";
  }
  return fmt::format(R"(#compdef stepcast
# Completion of stepcast for zsh, written by `stepcast completion zsh`.
_stepcast_name_or_file() {{
  compadd -- "$@"
  _files
}}
_stepcast() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '--help[list the commands]' '--version[print the version]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
# Loaded as a function of compsys, or sourced.
if [ "$funcstack[1]" = _stepcast ]; then _stepcast "$@"; else compdef _stepcast stepcast; fi
)",
                     list, cases);
}

// ---- fish

std::string FishQuoted(const std::string& text) {
  return "'" + Replaced(Replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

// The options of `complete` for a value.
std::string FishValues(const Values& values) {
  std::string text = values.files ? " -F" : " -f";
  if (!values.words.empty()) text += fmt::format(" -a '{}'", fmt::join(values.words, " "));
  return text;
}

std::string Fish(const std::vector<CommandWords>& commands) {
  std::string out =
      "# Completion of stepcast for fish, written by `stepcast completion fish`.\n"
      "complete -c stepcast -f\n"
      "complete -c stepcast -n __fish_use_subcommand -l help -d 'list the commands'\n"
      "complete -c stepcast -n __fish_use_subcommand -l version -d 'print the version'\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("complete -c stepcast -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       FishQuoted(command.summary));
    const std::string head =
        fmt::format("complete -c stepcast -n '__fish_seen_subcommand_from {}'", command.name);
    for (const auto& [option, values] : command.options) {
      out += fmt::format("{} -l {} -d {}", head, option.name, FishQuoted(option.text));
      if (!option.placeholder.empty()) {
        out += (option.value_is_optional ? "" : " -r") + FishValues(values);
      }
      out += "\n";
    }
    for (const Values& values : command.positions) out += head + FishValues(values) + "\n";
  }
  return out;
}

}  // namespace

int RunCompletion(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("help", "print this text");
  po::options_description all;
  all.add(options).add_options()("shell", po::value<std::string>());
  const Arguments args("completion", all, "shell", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast completion SHELL",
              "Prints the script by which bash, zsh or fish completes commands, options and names.",
              options,
              "  source <(stepcast completion bash)\n"
              "  stepcast completion fish > ~/.config/fish/completions/stepcast.fish\n");
    return kDone;
  }
  const std::string shell = args.TextOr("shell", "");
  const auto found = FindAlike(shell, kShells);
  if (!found) {
    throw InputError({"", 0, "SHELL"}, shell, shell.empty() ? "is required" : "is not known",
                     JoinNames(kShells));
  }
  constexpr decltype(&Bash) kWriters[] = {Bash, Zsh, Fish};
  Print(kWriters[*found](AllCommands()));
  return kDone;
}

}  // namespace stepcast::cli
