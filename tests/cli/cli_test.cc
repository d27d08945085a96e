// The program as scripts use it: names, exit codes, JSON keys and files are a contract.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "data/io/runs.h"
#include "predictor/binding.h"
#include "predictor/report/terminal.h"
#include "tests/cli/process.h"
#include "tests/cli/program.h"
#include "tests/support/changed_plans.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using program::Unwrapped;

const std::string kSource = STEPCAST_SOURCE_DIR;
const std::string kFitRuns = kSource + "/data/measurements/ufrgs-tupi-fit.csv";
const std::string kHeldOutRuns = kSource + "/data/measurements/ufrgs-tupi-holdout.csv";
constexpr const char* kCommands[] = {"predict",  "sweep",  "limits",    "recommend", "calibrate",
                                     "evaluate", "import", "workloads", "machines",  "explain",
                                     "models",   "plan",   "report"};
// Gradients of ResNet-50: 25,583,592 trained parameters of 4 bytes.
constexpr std::int64_t kResnet50Bytes = 102'334'368;

ProcessResult Stepcast(const Words& arguments, const ProcessOptions& options = {}) {
  Words words = {STEPCAST_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunProcess(words, options);
}

std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The JSON object that a command prints when it ends with `exit_code`.
Json JsonOf(const Words& arguments, int exit_code = 0) {
  const ProcessResult result = Stepcast(arguments + Words{"--json"});
  EXPECT_EQ(result.exit_code, exit_code) << Joined(arguments) << "\n" << result.err;
  EXPECT_EQ(result.err, "") << Joined(arguments);
  Json json = Json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << Joined(arguments) << "\n" << result.out;
  return json.is_object() ? json : Json::object();
}

// Bad input: exit 2, nothing on standard output, one line on standard error with all `fragments`.
void ExpectError(const Words& arguments, const Words& fragments,
                 const ProcessOptions& options = {}) {
  const ProcessResult result = Stepcast(arguments, options);
  const std::string what = "stepcast " + Joined(arguments) + "\n" + result.err;
  EXPECT_EQ(result.exit_code, 2) << what;
  EXPECT_EQ(result.out, "") << what;
  EXPECT_EQ(result.err.rfind("stepcast: ", 0), 0U) << what;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << what;
  for (const std::string& fragment : fragments) {
    EXPECT_NE(result.err.find(fragment), std::string::npos) << what << "lacks: " << fragment;
  }
}

const Words kPredict = {"predict",  "--cluster",     "gce-t4", "--workload",
                        "resnet50", "--local-batch", "32"};

std::string ReplaceAll(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// ---- Help.

TEST(Help, EveryCommandHasIt) {
  for (const char* command : kCommands) {
    const ProcessResult result = Stepcast({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_EQ(result.out.rfind(std::string("usage: stepcast ") + command, 0), 0U) << result.out;
    EXPECT_NE(result.out.find("examples:\n  stepcast "), std::string::npos) << result.out;
  }
}

// Examples stay as they are, and what follows them is filled again.
TEST(Man, WhatStaysAsItIsEndsBeforeTheNextSection) {
  int examples = 0;
  for (const char* command : kCommands) {
    std::istringstream page(Stepcast({"man", command}).out);
    bool as_it_is = false;
    std::string section;
    for (std::string line; std::getline(page, line);) {
      if (line == ".nf" || line == ".fi") {
        EXPECT_NE(as_it_is, line == ".nf") << command << ": " << section;
        as_it_is = line == ".nf";
        if (as_it_is && section == ".SH EXAMPLES") ++examples;
      }
      if (line.rfind(".SH ", 0) != 0) continue;
      EXPECT_FALSE(as_it_is) << command << ": " << section << " goes on into " << line;
      section = line;
    }
    EXPECT_EQ(section, ".SH SEE ALSO") << command;
    EXPECT_FALSE(as_it_is) << command;
  }
  EXPECT_GT(examples, 5);
}

// A value that may be left out belongs to its option, and any other stands apart.
TEST(Man, AnOptionalValueIsPartOfItsOption) {
  const std::string page = Stepcast({"man", "predict"}).out;
  for (const char* item :
       {"\n\\fB\\-\\-multicast\\fR\\fI[=yes|no]\\fR\n", "\n\\fB\\-\\-workers\\fR \\fIN\\fR\n"}) {
    EXPECT_NE(page.find(item), std::string::npos) << item;
  }
}

// fish offers files where the value is one (-F), and nothing but words elsewhere (-f).
TEST(Completion, FishOffersFilesWhereTheValueIsOne) {
  const std::string script = Stepcast({"completion", "fish"}).out;
  const auto line_of = [&](const std::string& command, const std::string& option) {
    const std::string head =
        "complete -c stepcast -n '__fish_seen_subcommand_from " + command + "' -l " + option + " ";
    const std::size_t at = script.find(head);
    EXPECT_NE(at, std::string::npos) << head;
    return at == std::string::npos ? "" : script.substr(at, script.find('\n', at) - at);
  };
  EXPECT_TRUE(line_of("evaluate", "runs").ends_with("' -r -F"));
  EXPECT_TRUE(line_of("evaluate", "group-by").ends_with("' -r -f"));
  EXPECT_NE(line_of("predict", "strategy").find("' -r -f -a '"), std::string::npos);
  EXPECT_NE(line_of("predict", "cluster").find("' -r -F -a '"), std::string::npos) << "or a name";
}

// The first of LC_ALL, LC_CTYPE and LANG that is set decides about lines and blocks.
TEST(Terminal, TheLanguageOfTheEnvironmentDecides) {
  const auto is_ascii = [](const Words& variables) {
    const std::string out =
        Stepcast(kPredict + Words{"--workers", "2"}, {.variables = variables}).out;
    EXPECT_FALSE(out.empty());
    return std::all_of(out.begin(), out.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  EXPECT_TRUE(is_ascii({}));
  EXPECT_FALSE(is_ascii({"LANG=en_US.UTF-8"}));
  EXPECT_FALSE(is_ascii({"LANG=C", "LC_CTYPE=en_US.UTF-8"}));
  EXPECT_TRUE(is_ascii({"LANG=en_US.UTF-8", "LC_CTYPE=C"}));
  EXPECT_FALSE(is_ascii({"LANG=C", "LC_CTYPE=C", "LC_ALL=en_US.UTF-8"}));
  EXPECT_TRUE(is_ascii({"LANG=en_US.UTF-8", "LC_CTYPE=en_US.UTF-8", "LC_ALL=C"}));
}

TEST(Help, ListsAllCommands) {
  for (const char* word : {"--help", "-h", "help"}) {
    const ProcessResult result = Stepcast({word});
    EXPECT_EQ(result.exit_code, 0);
    for (const char* command : kCommands) {
      EXPECT_NE(result.out.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    }
  }
}

TEST(Help, IsThatOfTheCommandThatIsNamed) {
  for (const char* command : kCommands) {
    const ProcessResult result = Stepcast({"help", command});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, Stepcast({command, "--help"}).out);
    EXPECT_EQ(result.out.rfind(std::string("usage: stepcast ") + command, 0), 0U) << result.out;
  }
  ExpectError({"help", "predcit"}, {"'predcit' is not a command (did you mean predict?)"});
}

TEST(Help, NamesTheOptionsOfAPlan) {
  for (const char* command : {"predict", "sweep", "limits", "recommend", "plan"}) {
    const std::string text = Stepcast({command, "--help"}).out;
    for (const char* option :
         {"--cluster", "--workload", "--workload-file", "--workers", "--placement", "--servers",
          "--strategy", "--local-batch", "--accumulation", "--bandwidth", "--rtt", "--loss",
          "--bucket", "--json"}) {
      EXPECT_NE(text.find(std::string(option) + " "), std::string::npos)
          << command << " " << option;
    }
  }
}

TEST(Help, TheExamplesWork) {
  // Commands that need no file of the user.
  for (const char* command : {"predict", "sweep", "limits", "recommend", "workloads", "machines",
                              "explain", "models", "plan"}) {
    const std::string text =
        std::regex_replace(Stepcast({command, "--help"}).out, std::regex(R"( \\\n *)"), " ");
    std::size_t at = text.find("examples:\n");
    ASSERT_NE(at, std::string::npos);
    const TempFolder folder;
    for (at = text.find("  stepcast ", at); at != std::string::npos;
         at = text.find("  stepcast ", at + 1)) {
      const std::string line = text.substr(at + 11, text.find('\n', at) - at - 11);
      const ProcessResult result =
          RunProcess({"/bin/sh", "-c", std::string(STEPCAST_PROGRAM) + " " + line + " >/dev/null"},
                     {.folder = folder.path()});
      // A step that would not finish within its limit is a "no".
      const bool no = line.find("--time-limit") != std::string::npos;
      EXPECT_EQ(result.exit_code, no ? 1 : 0) << line << "\n" << result.err;
    }
  }
}

// The examples of calibrate and evaluate name measurements of the repository, from its root.
TEST(Help, TheExamplesOfMeasurementsWork) {
  const std::string text =
      std::regex_replace(Stepcast({"evaluate", "--help"}).out, std::regex(R"( \\\n *)"), " ");
  const std::size_t at = text.find("examples:\n") + 10;
  const TempFolder folder;
  const ProcessResult result =
      RunProcess({"/bin/sh", "-ec",
                  "ln -s '" STEPCAST_SOURCE_DIR "/data' data\nstepcast() { '" STEPCAST_PROGRAM
                  "' \"$@\" >/dev/null; }\n" +
                      text.substr(at)},
                 {.folder = folder.path()});
  EXPECT_EQ(result.exit_code, 0) << text.substr(at) << result.err;
  EXPECT_NE(Stepcast({"calibrate", "--help"}).out.find("--runs data/measurements/"),
            std::string::npos);
}

TEST(Help, FitsATerminal) {
  for (const char* command : kCommands) {
    std::istringstream text(Stepcast({command, "--help"}).out);
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(line.size(), 100U) << command << ": " << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << command << ": " << line;
      EXPECT_EQ(line.find("(="), std::string::npos) << command << ": " << line;
    }
  }
}

TEST(Help, Version) {
  const ProcessResult result = Stepcast({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(std::regex_match(result.out, std::regex("stepcast \\d+\\.\\d+\\.\\d+\n")))
      << result.out;
}

// ---- Bad input: one line that says what to do.

TEST(Errors, NoCommand) {
  const ProcessResult result = Stepcast({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("usage: stepcast COMMAND"), std::string::npos);
}

TEST(Errors, UnknownCommandsAndOptions) {
  ExpectError({"forecast"}, {"'forecast' is not a command", "allowed: predict, sweep"});
  for (const char* command : kCommands) {
    ExpectError({command, "--colour"},
                {"--colour", std::string("see stepcast ") + command + " --help"});
    ExpectError({command, "--js"}, {"--js", "--help"});  // no guessing
  }
  ExpectError(kPredict + Words{"--json", "--json"}, {"json"});
  ExpectError(kPredict + Words{"surplus"}, {"see stepcast predict --help"});
  ExpectError({"predict", "--cluster"}, {"--cluster: has no value; allowed: cluster file"});
}

struct BadValue {
  Words options;
  Words fragments;
};

TEST(Errors, ValuesOfAPlan) {
  const BadValue cases[] = {
      {{"--workers", "0"}, {"--workers: '0'", "allowed: "}},
      {{"--workers", "-2"}, {"--workers", "allowed: "}},
      {{"--workers", "2.5"}, {"--workers: '2.5'", "allowed: "}},
      {{"--workers", "many"}, {"--workers: 'many'", "allowed: "}},
      {{"--placement", "4-"}, {"--placement: '4-'", "allowed: "}},
      {{"--placement", "4-0"}, {"--placement", "allowed: "}},
      {{"--workers", "8", "--placement", "4-4"}, {"--workers", "--placement", "one of the two"}},
      {{"--workers", "2", "--hosts", "a+b"}, {"hosts", "names 2 hosts", "allowed: 1"}},
      {{"--strategy", "ringg"}, {"--strategy: 'ringg'", "ring, tree, halving-doubling"}},
      {{"--strategy", "ps-sync"},
       {"servers: are required with strategy ps-sync", "allowed: at least 1"}},
      {{"--servers", "2"}, {"servers: '2' with strategy allreduce", "ps-sync"}},
      {{"--accumulation", "0"}, {"--accumulation: '0'", "allowed: "}},
      {{"--bandwidth", "10"}, {"--bandwidth: '10'", "Gbit/s"}},
      {{"--bandwidth", "10 Gb/s"}, {"--bandwidth: '10 Gb/s'", "Gbit/s"}},
      {{"--bandwidth", "0 Gbit/s"}, {"--bandwidth: '0 Gbit/s'"}},
      {{"--bandwidth", "-1 Gbit/s"}, {"--bandwidth: '-1 Gbit/s'"}},
      {{"--rtt", "2"}, {"--rtt: '2'", "ms"}},
      {{"--loss", "1"}, {"--loss: '1'", "allowed: "}},
      {{"--loss", "1%", "--rtt", "1 ms"}, {"--loss: '1%'", "allowed: "}},
      {{"--loss", "nan", "--rtt", "1 ms"}, {"--loss: 'nan'", "allowed: "}},
      {{"--hosts", "a+a"}, {"--hosts: 'a+a' names a host twice"}},
      {{"--bucket", "25"}, {"--bucket: '25'", "MiB"}},
      {{"--server-bandwidth", "fast"}, {"--server-bandwidth: 'fast'", "Gbit/s"}},
      {{"--congestion-control", "fast"}, {"--congestion-control: 'fast'", "reno, cubic, bbr"}},
      {{"--loss-burst", "1"}, {"--loss-burst: '1' has no unit", "ms"}},
      {{"--overlap", "all"}, {"--overlap: 'all'", "buckets, none, p-norm"}},
      {{"--multicast"}, {"multicast: with strategy allreduce", "allowed: strategy ps-sync"}},
      {{"--staleness-bound", "2"}, {"staleness-bound", "allowed: strategy ps-async"}},
      {{"--workers", "4", "--backup-workers", "4"}, {"backup-workers: '4'", "from 0 to 3"}},
      {{"--sharding", "odd"}, {"--sharding: 'odd'", "tensor, even"}},
      {{"--device", "abacus"}, {"--device", "abacus", "t4", "stepcast calibrate"}},
  };
  for (const BadValue& c : cases) ExpectError(kPredict + c.options, c.fragments);
}

TEST(Errors, WhatIsMissing) {
  ExpectError({"predict"}, {"--cluster: is required, or --device"});
  ExpectError({"predict", "--cluster", "gce-t4"},
              {"--workload: is required; allowed: name in the catalogue"});
  ExpectError({"predict", "--cluster", "gce-t4", "--workload", "resnet50"},
              {"--local-batch: is required"});
  ExpectError(Words{"sweep"} + Words(kPredict.begin() + 1, kPredict.end()),
              {"--over: is required"});
  ExpectError({"calibrate", "--cluster", "gce-t4"}, {"--runs: is required"});
  ExpectError({"evaluate", "--runs", kFitRuns}, {"--cluster: is required"});
  ExpectError({"import"}, {"KIND", "adaptdl"});
  ExpectError({"import", "adaptdl"}, {"FILE"});
}

// What is recommended has to fit, or to say that nobody knows whether it does.
TEST(Answers, ABatchOfUnknownMemoryIsSaidToBe) {
  TempFolder folder;
  for (const bool known : {false, true}) {
    const std::string cluster =
        folder.Write("c.yaml",
                     "name: c\nnodes: 2\ndevices_per_node: 1\ndevice: {name: d, fp32: 8 TFLOP/s, "
                     "memory_bandwidth: 300 GB/s" +
                         std::string(known ? ", memory: 16 GB" : "") + "}\n");
    const Words asked = {"recommend", "--cluster",   cluster,   "--workload",
                         "resnet50",  "--workers",   "2",       "--local-batch",
                         "8",         "--bandwidth", "1 Gbit/s"};
    const Json best = JsonOf(asked).at("best");
    const std::string text = Stepcast(asked).out;
    ASSERT_GT(best.at("plan").at("local_batch"), 8);
    EXPECT_EQ(best.at("memory").at("verdict") == "unknown", !known);
    EXPECT_EQ(text.find("nobody knows the device's memory") == std::string::npos, known) << text;
  }
}

// Of a workload without layers it is the activations that nobody knows, whatever is known of the
// device; one worker who cannot hold the model is no alternative.
TEST(Answers, ABatchOfUnknownActivationsIsSaidToBe) {
  TempFolder folder;
  const std::string model =
      folder.Write("m.yaml", "name: m\nparameters: 6738415616\noptimizer: adam\nprecision: bf16\n");
  for (const bool known : {false, true}) {
    const std::string cluster = folder.Write(
        "c.yaml",
        "name: c\nnodes: 16\ndevices_per_node: 1\ndevice: {name: d, fp32: 19.5 TFLOP/s, "
        "memory_bandwidth: 2039 GB/s" +
            std::string(known ? ", memory: 80 GiB" : "") + "}\n");
    const Words asked = {"recommend",
                         "--cluster",
                         cluster,
                         "--workload-file",
                         model,
                         "--workload",
                         "m",
                         "--workers",
                         "16",
                         "--local-batch",
                         "1",
                         "--bandwidth",
                         "200 Gbit/s",
                         "--transport",
                         "rdma",
                         "--try-shard",
                         "none,optimizer,gradients,parameters"};
    const Json json = JsonOf(asked);
    const Json best = json.at("best");
    ASSERT_GT(best.at("plan").at("local_batch"), 8);
    EXPECT_EQ(best.at("memory").at("verdict"), "unknown");
    EXPECT_EQ(json.at("baseline_usable"), !known);
    ASSERT_LT(best.at("efficiency"), 1.0 / 16);
    const std::string text = Unwrapped(Stepcast(asked).out);
    const auto says = [&](const std::string& words) {
      return text.find(words) != std::string::npos;
    };
    EXPECT_TRUE(says("activations are unknown without layers and not counted")) << text;
    EXPECT_TRUE(says("takes at least")) << text;
    EXPECT_TRUE(
        says("state layers in the workload file, or tell steps that did not fit "
             "(observe_out_of_memory)"))
        << text;
    EXPECT_EQ(says("of the device's 80 GiB; state layers"), known) << text;
    EXPECT_EQ(says("nobody knows the device's memory"), !known) << text;
    EXPECT_EQ(says("state memory in the cluster file"), !known) << text;
    EXPECT_EQ(says("one worker alone gives"), !known) << text;
    // Fewer samples than the plan that runs out of memory are not known to fit either.
    const std::string fewer =
        Unwrapped(Stepcast(asked + Words{"--try-local-batch", "1", "--try-accumulation", "1"}).out);
    EXPECT_EQ(fewer.find("activations are unknown") != std::string::npos, known) << fewer;
  }
}

// A forecast of rare exchanges is the mean of a round, and says what its two kinds of steps take.
TEST(Answers, RoundsSayWhatTheyAreTheMeanOf) {
  for (const char* local_steps : {"2", "16", "100"}) {
    const Words asked = {"predict",  "--device",      "t4",         "--workload",
                         "resnet50", "--local-batch", "32",         "--workers",
                         "4",        "--bandwidth",   "100 Mbit/s", "--local-steps",
                         local_steps};
    const Json parts = JsonOf(asked).at("breakdown");
    const int steps = std::stoi(local_steps);
    const double alone = parts.at("forward_s").get<double>() +
                         parts.at("backward_s").get<double>() + parts.at("update_s").get<double>();
    double step = 0;
    for (const Json& part : parts) step += part.get<double>();
    const std::string of = local_steps;
    const std::string said = std::to_string(steps - 1) + " of " + of + " steps take " +
                             FormatDuration(Seconds(alone)) + ", the one that exchanges " +
                             FormatDuration(Seconds(alone + (step - alone) * steps));
    const std::string text = Stepcast(asked, {.variables = {"COLUMNS=200"}}).out;
    for (const std::string& line :
         {said, "half the rounds of " + of + " steps", "every " + of + " steps "}) {
      EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
    }
  }
}

// Plans that differ are told apart wherever they are named, as in the rows of a table.
TEST(Answers, NameAllThatAPlanSays) {
  for (const ChangedPlan& changed : ChangedPlans()) {
    if (changed.facts.flag == nullptr) continue;
    std::vector<stepcast::Run> runs(2);
    for (stepcast::Run& run : runs) {
      run.workload = "resnet50";
      run.device = "t4";
      run.step_time = Seconds(123.0);
    }
    runs[0].plan = changed.before;
    runs[1].plan = changed.after;
    TempFolder folder;
    const std::string path = folder.Write("runs.csv", FormatRuns(runs));
    const ProcessResult result = Stepcast({"evaluate", "--cluster", "gce-t4", "--runs", path},
                                          {.variables = {"COLUMNS=400"}});
    ASSERT_EQ(result.exit_code, 0) << changed.facts.flag << "\n" << result.err;
    std::set<std::string> names;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = line.find(" 2 min 03 s");
      if (end != std::string::npos) names.insert(line.substr(0, end));
    }
    EXPECT_EQ(names.size(), 2u) << changed.facts.flag << "\n" << result.out;
  }
}

TEST(Errors, UnknownNames) {
  ExpectError({"predict", "--cluster", "gce-t5", "--workload", "resnet50", "--local-batch", "1"},
              {"--cluster: 'gce-t5'", "gce-t4", "ufrgs-tupi"});
  ExpectError({"predict", "--cluster", "gce-t4", "--workload", "resnet5000", "--local-batch", "1"},
              {"workload: 'resnet5000'", "--workload-file"});
  ExpectError({"workloads", "resnet5000"}, {"'resnet5000'", "resnet50"});
  ExpectError({"machines", "gce-t5"}, {"stepcast: CLUSTER: 'gce-t5'", "gce-t4"});
  ExpectError({"workloads", "resnet50x"},
              {"stepcast: NAME: 'resnet50x'", "did you mean resnet50?"});
  ExpectError({"predict", "--device", "t4", "--workload", "llama3_1_8b@4096", "--local-batch", "1"},
              {"(did you mean llama3.1_8b@4096?)", "one of alexnet, bert_base, ",
               " more (stepcast workloads lists them)"});
  ExpectError({"predict", "--device", "t5", "--workload", "resnet50", "--local-batch", "1"},
              {"allowed: k80, k40, ", " more (stepcast machines lists them); or a device that "});
  ExpectError({"import", "horovod", "x.csv"}, {"'horovod'", "adaptdl"});
  ExpectError({"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns, "--group-by", "colour"},
              {"--group-by: 'colour'", "workload"});
}

TEST(Errors, SweepAxes) {
  const Words sweep = {"sweep",    "--cluster",     "gce-t4", "--workload",
                       "resnet50", "--local-batch", "32"};
  ExpectError(sweep + Words{"--over", "workers"}, {"--over: 'workers'", "KEY=V,V"});
  ExpectError(sweep + Words{"--over", "workers="}, {"--over", "empty"});
  ExpectError(sweep + Words{"--over", "workers=1,,2"}, {"--over", "empty"});
  ExpectError(sweep + Words{"--over", "workers=8..1"}, {"'8..1'", "empty range"});
  ExpectError(sweep + Words{"--over", "workers=1..8..0"}, {"--over"});
  ExpectError(sweep + Words{"--over", "colour=1,2"}, {"'colour'", "workers", "bandwidth"});
  ExpectError(sweep + Words{"--over", "bandwidth=1,2"}, {"--bandwidth: '1'", "Gbit/s"});
  ExpectError(sweep + Words{"--over", "workers=1..1000", "--over", "local-batch=1..1000"},
              {"too many combinations", "100000"});
  ExpectError(sweep + Words{"--over", "workers=1,2", "--y", "speed"}, {"--y: 'speed'"});
  ExpectError(sweep + Words{"--over", "strategy=ring,tree", "--plot", "/tmp/never.svg"},
              {"no numbers to plot"});
  ExpectError(sweep + Words{"--workers", "2", "--slow-nodes", "1", "--slow-speed", "0.5", "--over",
                            "strategy=ring,none"},
              {"--strategy: 'none' says nothing of slow nodes, of which there are 1"});
  ExpectError(
      sweep + Words{"--workers", "2", "--shard", "optimizer", "--over", "strategy=ring,tree"},
      {"--strategy: 'tree' does not go with shard optimizer", "strategy allreduce"});
}

TEST(Errors, SearchOptions) {
  const Words base = {"--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "32"};
  ExpectError(Words{"limits"} + base + Words{"--most-workers", "0"}, {"--most-workers: '0'"});
  ExpectError(Words{"limits"} + base + Words{"--global-batch", "x"}, {"--global-batch: 'x'"});
  ExpectError(Words{"recommend"} + base + Words{"--try-workers", "1,x"}, {"--try-workers: 'x'"});
  ExpectError(Words{"recommend"} + base + Words{"--try-strategy", "ring,rung"},
              {"--try-strategy: 'rung'"});
  ExpectError(Words{"recommend"} + base + Words{"--most-global-batch", "0"},
              {"--most-global-batch"});
  // More than a plan may have is told of what was typed.
  for (const char* option : {"--try-workers", "--try-accumulation", "--try-servers"}) {
    ExpectError(Words{"recommend"} + base +
                    Words{"--strategy", "ps-sync", "--servers", "1", option, "2,1000001"},
                {std::string(option) + ": '1000001'", "allowed: a whole number from 1 to 1000000"});
  }
  ExpectError(Words{"recommend"} + base + Words{"--try-local-batch", "100000001"},
              {"--try-local-batch: '100000001'"});
}

TEST(Errors, FilesAreNamedWithTheirLine) {
  const TempFolder folder;
  const std::string header = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";
  const std::string good = "resnet50,t4,1,0,none,32,0.5\n";
  const auto evaluate = [&](const std::string& runs) {
    return Words{"evaluate", "--cluster", "gce-t4", "--runs", folder.Write("runs.csv", runs)};
  };
  ExpectError(evaluate(header + good + "resnet50,t4,1,0,none,32,zero\n"),
              {"runs.csv:3: step_time_s: 'zero'"});
  ExpectError(evaluate(header + good + "resnet5000,t4,1,0,none,32,0.5\n"),
              {"runs.csv:3: workload: 'resnet5000'"});
  ExpectError(evaluate(header + good + good + "resnet50,abacus,1,0,none,32,0.5\n"),
              {"runs.csv:4: ", "abacus"});
  const std::string bare = folder.Write("bare.csv", header);
  for (const Words& command : {Words{"evaluate", "--runs"},
                               {"calibrate", "--runs"},
                               {"calibrate", "--check"},
                               {"report", "--output", folder.Path("page.html"), "--runs"}}) {
    ExpectError(command + Words{bare, "--cluster", "gce-t4"},
                {command.back() + ": '", "bare.csv' holds no runs; allowed: at least one row"});
  }
  ExpectError(Words{"calibrate", "--cluster", "gce-t4", "--runs",
                    folder.Write("one.csv", header + good), "--fix", "link_latency=1 us", "--prior",
                    "link_latency=2 us x/ 2; a guess", "--output", folder.Path("out.yaml")},
              {"--prior: 'link_latency=2 us x/ 2; a guess' is stated twice"});
  const std::string network = folder.Write("net.yaml", "name: net\nparameters: 1000000\n");
  ExpectError({"workloads", "--workload-file", network, "--workload-file", network},
              {"net.yaml: name: 'net' is the name of two workload files"});
  ExpectError({"workloads", "--workload-file", network, "--workload-file",
               folder.Write("n_et.yaml", "name: n-et\nparameters: 2000000\n"), "NET"},
              {"'NET' may be one or another", "'n-et' or 'net'"});
  std::string jobs = "workload,device,placement,servers,strategy,local_batch\n";
  for (int i = 0; i < 100; ++i) jobs += "resnet50,t4,1-1,0,ring,8\n";
  ExpectError({"predict", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "8",
               "--workers", "2", "--beside", folder.Write("jobs.csv", jobs)},
              {"jobs.csv: '100' jobs are too many; allowed: at most 99"});
  // What a plan lacks is named as its column is.
  const std::string wide = "oversubscription," + header;
  const std::string lacks = "4,resnet50,t4,1-1,0,ring,32,0.5\n";
  for (const Words& command :
       {evaluate(wide + lacks), Words{"calibrate", "--cluster", "gce-t4", "--runs",
                                      folder.Write("wide.csv", wide + lacks)}}) {
    ExpectError(command, {".csv:2: nodes_per_switch: is required with oversubscription"});
  }
  ExpectError(evaluate("workload,device\nresnet50,t4\n"), {"runs.csv", "placement"});
  ExpectError({"evaluate", "--cluster", "gce-t4", "--runs", folder.Path("none.csv")}, {"none.csv"});
  const std::string cluster =
      folder.Write("lab.yaml", "name: lab\ndevice: t4\nnodes: many\ndevices_per_node: 1\n");
  ExpectError({"predict", "--cluster", cluster, "--workload", "resnet50", "--local-batch", "1"},
              {"lab.yaml:3: nodes: 'many'"});
  ExpectError({"import", "adaptdl",
               folder.Write("bert_placements.csv",
                            "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n1,4,-1,0\n")},
              {"bert_placements.csv:3: step_time: '-1'"});
  const std::string workload = folder.Write("mine.yaml", "name: mine\n");
  ExpectError({"workloads", "--workload-file", workload}, {"mine.yaml", "parameters"});
}

TEST(Errors, DataFolder) {
  ExpectError({"machines"}, {"STEPCAST_DATA", "/nowhere"},
              {.variables = {"STEPCAST_DATA=/nowhere"}});
}

TEST(Errors, StandardOutputThatIsFull) {
  // Little is written no sooner than at the end.
  for (const char* command : {"machines", "--version"}) {
    const ProcessResult result = Stepcast({command}, {.out_path = "/dev/full"});
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_EQ(result.err, "stepcast: standard output cannot be written\n") << command;
  }
}

// ---- predict.

TEST(Predict, HasTheKeysOfTheContract) {
  const Json json = JsonOf(kPredict + Words{"--workers", "8"});
  for (const char* key : {"step_time_s", "low_s", "high_s", "throughput_samples_per_s", "breakdown",
                          "traffic", "memory", "flags"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  const double step = json.at("step_time_s");
  EXPECT_LT(json.at("low_s"), step);
  EXPECT_GT(json.at("high_s"), step);
  EXPECT_NEAR(json.at("throughput_samples_per_s"), 8 * 32 / step, 1e-9 * 8 * 32 / step);
  double sum = 0;
  for (const auto& [part, seconds] : json.at("breakdown").items()) {
    EXPECT_EQ(part.substr(part.size() - 2), "_s") << "a unit in the name";
    sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, step, 1e-12);
  EXPECT_TRUE(json.at("flags").is_array());
  EXPECT_EQ(json.at("plan").at("placement"), "4-4");
  EXPECT_EQ(json.at("plan").at("global_batch"), 256);
  EXPECT_EQ(json.at("memory").at("verdict"), "fits");
  std::int64_t bytes = 0;
  for (const auto& [part, value] : json.at("memory").items()) {
    if (part != "total_bytes" && part != "available_bytes" && part != "verdict") {
      bytes += value.get<std::int64_t>();
    }
  }
  EXPECT_EQ(json.at("memory").at("total_bytes"), bytes);
  EXPECT_EQ(json.at("memory").at("available_bytes"), std::int64_t{16} << 30);
}

TEST(Predict, TrafficToTheByte) {
  constexpr std::int64_t m = kResnet50Bytes;
  const Json nothing;
  struct Case {
    Words options;
    std::int64_t transfers;
    std::int64_t per_worker;
    Json per_server;
    std::int64_t total;
  };
  // Eight workers on two nodes of four.
  const Case cases[] = {
      {{"--strategy", "none"}, 0, 0, nothing, 0},
      {{"--strategy", "allreduce"}, 112, m / 4 * 7, nothing, 14 * m},
      {{"--strategy", "ring"}, 112, m / 4 * 7, nothing, 14 * m},
      {{"--strategy", "halving-doubling"}, 64, m / 4 * 7, nothing, 14 * m},
      {{"--strategy", "tree"}, 28, 2 * m, nothing, 14 * m},
      {{"--strategy", "hierarchical"}, 64, m / 4 * 7, nothing, 14 * m},
      {{"--strategy", "ps-sync", "--servers", "2"}, 32, m, 4 * m, 16 * m},
      {{"--strategy", "ps-async", "--servers", "2"}, 4, m, m / 2, 2 * m},
  };
  static_assert(m % 4 == 0);
  for (const Case& c : cases) {
    const Json traffic = JsonOf(kPredict + Words{"--placement", "4-4"} + c.options).at("traffic");
    EXPECT_EQ(traffic.at("gradient_bytes"), m) << c.options[1];
    EXPECT_EQ(traffic.at("transfers"), c.transfers) << c.options[1];
    EXPECT_EQ(traffic.at("bytes_per_worker"), c.per_worker) << c.options[1];
    EXPECT_EQ(traffic.at("bytes_per_server"), c.per_server) << c.options[1];
    EXPECT_EQ(traffic.at("bytes_total"), c.total) << c.options[1];
    EXPECT_TRUE(traffic.at("bytes_total").is_number_integer()) << "bytes are whole";
  }
}

TEST(Predict, TransfersAreThoseOfEachBucket) {
  const auto json = [](const char* bucket) {
    return JsonOf(kPredict + Words{"--workers", "8", "--bucket", bucket});
  };
  const Json few = json("1 GiB").at("traffic");
  const Json many = json("10 MiB").at("traffic");
  EXPECT_EQ(few.at("buckets"), 2) << "the first one is small";
  EXPECT_GT(many.at("buckets"), 5);
  EXPECT_EQ(many.at("transfers"), few.at("transfers"));
  const std::string text =
      Unwrapped(Stepcast(kPredict + Words{"--workers", "8", "--bucket", "10 MiB"}).out);
  const int buckets = many.at("buckets");
  ASSERT_EQ(buckets, 9);
  EXPECT_NE(text.find("in all 1.33 GiB in 1,008 transfers, 112 for each of 9 buckets"),
            std::string::npos)
      << text;
  EXPECT_EQ(JsonOf(kPredict + Words{"--workers", "8"}).at("algorithm"), "ring");
}

// What is summed up is said beside the sum: 8 workers send 8 m each way, and where the network adds
// up and copies, 2 m of it cross the servers' links; an asynchronous worker's update is 2 m.
TEST(Predict, TheTrafficSaysWhatItSums) {
  const auto expect = [](const Words& options, const std::string& says) {
    const std::string text =
        Unwrapped(Stepcast(kPredict + Words{"--workers", "8", "--servers", "2"} + options).out);
    EXPECT_NE(text.find(says), std::string::npos) << says << "\n" << text;
  };
  const Words sync = {"--strategy", "ps-sync"};
  expect(sync, "traffic 97.6 MiB each way per worker, ");
  expect(sync, "; in all 1.52 GiB in ");
  expect(sync + Words{"--multicast", "--in-network-aggregation"},
         "; 195 MiB on the servers' links in ");
  for (const char* help : {"--multicast", "--in-network-aggregation"}) {
    expect(sync + Words{help}, "; 878 MiB on the servers' links in ");
  }
  expect({"--strategy", "ps-async"},
         "each update of a worker 97.6 MiB each way, 48.8 MiB per server");
  expect({"--strategy", "ps-async"}, "; in all 195 MiB in ");
}

// On a lone node nothing crosses the network, so that nothing in it helps; on two it does.
TEST(Predict, ANetworkThatNothingCrossesSavesNothing) {
  const auto network = [](const char* placement) {
    const std::string text =
        Unwrapped(Stepcast({"predict", "--device", "t4", "--workload", "resnet50", "--local-batch",
                            "32", "--placement", placement, "--strategy", "ps-sync", "--servers",
                            "1", "--colocated-servers", "--local-aggregation"})
                      .out);
    return text.find("nothing crosses it: neither multicast nor in-network aggregation saves") !=
           std::string::npos;
  };
  EXPECT_TRUE(network("4"));
  EXPECT_FALSE(network("4-4"));
}

// The kernels are the first of four variables of each layer, in turn on one of four servers.
TEST(Predict, SaysWhereVariablesInTurnFillAServer) {
  const auto text = [](const char* sharding) {
    return Unwrapped(Stepcast(kPredict + Words{"--workers", "8", "--servers", "4", "--strategy",
                                               "ps-sync", "--sharding", sharding})
                         .out);
  };
  const std::string in_turn = text("round-robin");
  EXPECT_NE(in_turn.find("of the model on one of 4 servers, where the largest first (--sharding "
                         "tensor) leave 25"),
            std::string::npos)
      << in_turn;
  EXPECT_EQ(text("tensor").find("on one of 4 servers"), std::string::npos);
  EXPECT_EQ(text("even").find("on one of 4 servers"), std::string::npos);
}

TEST(Predict, WorkersAtTheirOwnPaceHideNothingThatIsKnown) {
  const Words servers = kPredict + Words{"--workers", "8", "--servers", "2", "--strategy"};
  const std::string sync = Stepcast(servers + Words{"ps-sync"}).out;
  EXPECT_NE(sync.find("hidden behind the backward pass"), std::string::npos) << sync;
  const std::string async = Stepcast(servers + Words{"ps-async"}).out;
  EXPECT_EQ(async.find("of synchronisation"), std::string::npos) << async;
}

TEST(Predict, EqualNodesAreToldInShort) {
  EXPECT_NE(Stepcast(kPredict + Words{"--workers", "8"}).out.find("8 workers (2 x 4), "),
            std::string::npos);
  EXPECT_NE(Stepcast(kPredict + Words{"--workers", "6"}).out.find("6 workers (4-2), "),
            std::string::npos);
  EXPECT_EQ(JsonOf(kPredict + Words{"--workers", "8"}).at("plan").at("placement"), "4-4");
}

TEST(Predict, TakesEveryOption) {
  const Json json = JsonOf(
      kPredict +
      Words{"--workers",      "3",     "--strategy",         "ps-sync",   "--servers", "2",
            "--accumulation", "4",     "--bandwidth",        "10 Gbit/s", "--rtt",     "2 ms",
            "--loss",         "0.001", "--server-bandwidth", "25 Gbit/s", "--bucket",  "4 MiB",
            "--overlap",      "none"});
  const Json& plan = json.at("plan");
  EXPECT_EQ(plan.at("workers"), 3);
  EXPECT_EQ(plan.at("placement"), "3");
  EXPECT_EQ(plan.at("strategy"), "ps-sync");
  EXPECT_EQ(plan.at("servers"), 2);
  EXPECT_EQ(plan.at("local_batch"), 32);
  EXPECT_EQ(plan.at("accumulation_steps"), 4);
  EXPECT_EQ(plan.at("global_batch"), 3 * 32 * 4);
  EXPECT_DOUBLE_EQ(plan.at("link_gbit_per_s"), 10);
  EXPECT_DOUBLE_EQ(plan.at("rtt_ms"), 2);
  EXPECT_DOUBLE_EQ(plan.at("loss_rate"), 0.001);
  EXPECT_DOUBLE_EQ(plan.at("server_link_gbit_per_s"), 25);
  EXPECT_DOUBLE_EQ(plan.at("bucket_mib"), 4);
  EXPECT_EQ(plan.at("overlap"), "none");
}

// As from a runs file with that one row.
TEST(Predict, KnowsANetworkByItsSizeAndOneStep) {
  const TempFolder folder;
  const std::string cluster =
      folder.Write("a100s.yaml",
                   "name: a100s\ndevice: a100\nnodes: 16\ndevices_per_node: 1\nlink: {bandwidth: "
                   "\"25 Gbit/s\"}\n");
  const std::string network = folder.Write("mine.yaml", "name: mine\nparameters: 350000000\n");
  const std::string runs = folder.Write(
      "runs.csv",
      "workload,device,placement,servers,strategy,local_batch,accumulation_steps,step_time_s\n"
      "mine,a100,1,0,none,8,2,0.4\n");
  const std::string fitted = folder.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", cluster, "--workload-file", network, "--runs", runs, "--output",
          fitted});
  for (const char* workers : {"1", "4"}) {
    const Words plan = {"--local-batch", "8", "--accumulation", "2", "--workers", workers};
    const Json by_files = JsonOf(
        Words{"predict", "--cluster", fitted, "--workload-file", network, "--workload", "mine"} +
        plan);
    for (const char* step : {"400 ms", "2.5 steps/s", "40 samples/s"}) {
      const Json by_options = JsonOf(Words{"predict", "--cluster", cluster, "--parameters",
                                           "350000000", "--one-worker", step} +
                                     plan);
      const auto ratio = [&](const char* key) {
        return by_options.at(key).get<double>() / by_files.at(key).get<double>();
      };
      EXPECT_NEAR(ratio("step_time_s"), 1, 1e-3) << workers << " " << step;
      EXPECT_NEAR(ratio("low_s"), 1, 0.02) << workers << " " << step;
      EXPECT_NEAR(ratio("high_s"), 1, 0.02) << workers << " " << step;
    }
  }
}

// The links that runs of another network have shown are those of this one.
TEST(Predict, AMeasuredStepLeavesTheNetworkAsItWasCalibrated) {
  const TempFolder folder;
  const std::string fitted = folder.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns, "--output", fitted});
  const auto step = [&](const char* hosts) -> double {
    return JsonOf({"predict", "--cluster", fitted, "--parameters", "43000000", "--one-worker",
                   "55 ms", "--local-batch", "32", "--hosts", hosts})
        .at("step_time_s");
  };
  EXPECT_NEAR(step("tupi1"), 0.055, 0.002);
  EXPECT_GT(step("tupi5+tupi6"), 4 * step("tupi1+tupi2"));
}

TEST(Predict, OneMeasuredStepNeedsNoDevice) {
  const Words known = {"--parameters",  "350000000", "--one-worker", "210 ms",
                       "--local-batch", "8",         "--bandwidth",  "25 Gbit/s"};
  EXPECT_NEAR(JsonOf(Words{"predict"} + known).at("step_time_s"), 0.21, 0.005);
  EXPECT_NEAR(JsonOf({"predict", "--device", "t4", "--workload", "resnet50", "--one-worker",
                      "400 ms", "--local-batch", "32"})
                  .at("step_time_s"),
              0.4, 0.02);
  for (const Words& command :
       {Words{"explain", "--workers", "4"}, Words{"limits"}, Words{"recommend", "--workers", "4"},
        Words{"sweep", "--over", "workers=1,4"}}) {
    const ProcessResult result = Stepcast(command + known);
    EXPECT_NE(result.exit_code, 2) << command[0] << "\n" << result.err;
    EXPECT_NE(result.out.find("a network of 350,000,000 parameters"), std::string::npos)
        << command[0] << "\n"
        << result.out;
  }
}

TEST(Predict, RefusesAMeasuredStepThatTellsNothing) {
  const Words t4 = {"predict", "--device", "t4", "--local-batch", "8", "--workload"};
  ExpectError(t4 + Words{"resnet50", "--parameters", "1000"},
              {"--parameters", "says the same as --workload"});
  ExpectError(t4 + Words{"message_1048576", "--one-worker", "1 s"},
              {"--one-worker", "says nothing of a bare message"});
  ExpectError(t4 + Words{"resnet50", "--one-worker", "5 Gbit/s"},
              {"--one-worker", "has an unknown unit", "samples/s"});
  ExpectError({"predict", "--parameters", "1000", "--one-worker", "1 s"},
              {"--local-batch", "is required"});
  ExpectError({"predict", "--parameters", "1000", "--local-batch", "8"},
              {"--cluster", "is required"});
  ExpectError({"predict", "--parameters", "0", "--local-batch", "8", "--device", "t4"},
              {"--parameters", "'0'"});
  ExpectError({"predict", "--profile", "xeon-onednn-1", "--workload", "resnet50", "--one-worker",
               "1 s", "--local-batch", "8"},
              {"--one-worker", "as --profile does"});
}

TEST(Predict, TakesTheOptionsOfServersAndLinks) {
  const Json sync = JsonOf(kPredict + Words{"--workers",
                                            "8",
                                            "--strategy",
                                            "ps-sync",
                                            "--servers",
                                            "2",
                                            "--colocated-servers",
                                            "--sharding",
                                            "even",
                                            "--multicast",
                                            "--in-network-aggregation",
                                            "--pipelined-servers",
                                            "--backup-workers",
                                            "1",
                                            "--rtt",
                                            "1 ms",
                                            "--loss",
                                            "0.01",
                                            "--congestion-control",
                                            "bbr",
                                            "--loss-burst",
                                            "1 ms"});
  const Json& plan = sync.at("plan");
  EXPECT_EQ(plan.at("sharding"), "even");
  EXPECT_EQ(plan.at("congestion_control"), "bbr");
  EXPECT_DOUBLE_EQ(plan.at("loss_burst_ms"), 1);
  EXPECT_EQ(plan.at("backup_workers"), 1);
  for (const char* key :
       {"colocated_servers", "multicast", "in_network_aggregation", "pipelined_servers"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  const Json async = JsonOf(kPredict + Words{"--workers", "8", "--strategy", "ps-async",
                                             "--servers", "2", "--staleness-bound", "0"});
  EXPECT_EQ(async.at("plan").at("staleness_bound"), 0);
  const Json byteps =
      JsonOf(kPredict + Words{"--workers", "8", "--strategy", "byteps", "--servers", "2"});
  EXPECT_EQ(byteps.at("plan").at("servers"), 2);
  const Json chosen = JsonOf(kPredict + Words{"--workers", "8", "--strategy", "auto"});
  EXPECT_EQ(chosen.at("plan").at("strategy"), "auto");
}

TEST(Predict, WorkersFillNodes) {
  const Json workers = JsonOf(kPredict + Words{"--workers", "10"});
  const Json placement = JsonOf(kPredict + Words{"--placement", "4-4-2"});
  EXPECT_EQ(workers, placement);
  EXPECT_EQ(workers.at("plan").at("placement"), "4-4-2");
}

TEST(Predict, ADeviceIsEnough) {
  const Json json = JsonOf({"predict", "--device", "RTX 4090", "--workload", "bert_base",
                            "--local-batch", "8", "--workers", "2", "--bandwidth", "1 Gbit/s"});
  EXPECT_EQ(json.at("device"), "rtx_4090");
  EXPECT_EQ(json.at("plan").at("placement"), "1-1");
  EXPECT_EQ(json.at("compute_source"), "data sheet");
}

// Eight workers of a device that is in no cluster are eight nodes, which is said where the network
// that nobody stated sets the pace.
TEST(Predict, SaysHowDevicesOfOneNodeAreMeant) {
  const auto says = [](const Words& more) {
    const std::string text = Unwrapped(Stepcast(Words{"predict", "--device", "h100", "--workload",
                                                      "bert_large", "--local-batch", "8"} +
                                                more)
                                           .out);
    return text.find(
               "8 workers without a cluster are 8 nodes of one device each; devices of one "
               "node are --placement 8") != std::string::npos;
  };
  EXPECT_TRUE(says({"--workers", "8"}));
  EXPECT_FALSE(says({"--placement", "8"}));
  EXPECT_FALSE(says({"--workers", "8", "--bandwidth", "10 Gbit/s"}));
  EXPECT_FALSE(says({"--workers", "1"}));
}

// By an option, by the workload's file, and by an option in place of what the file says.
TEST(Predict, ComputesAsTheWorkloadIsTrained) {
  const Words v100 = {"predict",  "--device",      "v100", "--workload",
                      "resnet50", "--local-batch", "64"};
  const Words trained = {"--precision", "fp16", "--optimizer", "adam"};
  const Json single = JsonOf(v100);
  const Json mixed = JsonOf(v100 + trained);
  EXPECT_EQ(JsonOf(v100 + Words{"--precision", "fp16", "--optimizer", "adamw"}), mixed);
  EXPECT_LT(mixed.at("step_time_s"), 0.6 * single.at("step_time_s").get<double>());
  const auto bytes = [](const Json& of, const char* part) {
    return of.at("memory").at(part).get<double>();
  };
  EXPECT_EQ(bytes(mixed, "optimizer_bytes"), 2 * bytes(single, "optimizer_bytes"));
  // The loss is of 32 bits, and with it the thousand logits of a picture.
  EXPECT_EQ(bytes(mixed, "activations_bytes"),
            bytes(single, "activations_bytes") / 2 + 64 * 1000 * 2);
  EXPECT_EQ(bytes(mixed, "gradients_bytes"), bytes(single, "gradients_bytes"));

  const TempFolder folder;
  const std::string network = Stepcast({"workloads", "resnet50"}).out;
  const Words file = {"--workload-file",
                      folder.Write("net.yaml", network + "precision: fp16\noptimizer: adam\n")};
  EXPECT_EQ(JsonOf(v100 + file), mixed);
  EXPECT_EQ(JsonOf(v100 + file + Words{"--precision", "fp32", "--optimizer", "momentum"}), single);

  const Words evaluate = {
      "evaluate", "--cluster", "gce-t4", "--runs",
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "resnet50,v100,1,0,none,64,0.2\n")};
  const auto predicted = [&](const Words& more) {
    const Json rows = JsonOf(evaluate + more + Words{"--rows"}).at("rows");
    return rows.at(0).at("predicted_step_time_s").get<double>();
  };
  EXPECT_LT(predicted(trained), 0.6 * predicted({}));
  EXPECT_EQ(predicted(file), predicted(trained));
  const auto says = [](const Words& arguments, const std::string& text) {
    return Unwrapped(Stepcast(arguments).out).find(text) != std::string::npos;
  };
  const std::string where = " on nodes with one device each (v100): ";
  EXPECT_TRUE(says(v100 + trained, "resnet50 (fp16, adam)" + where));
  EXPECT_TRUE(says(v100 + Words{"--precision", "fp32"}, "resnet50" + where));
  EXPECT_TRUE(says(v100 + Words{"--precision", "bf16"}, "states no peak at bf16"));
  ExpectError(v100 + Words{"--precision", "fp8"}, {"'fp8'", "data sheet of v100", "h100"});
  const Words h100 = {"predict",       "--device", "h100",        "--workload", "opt_1.3b@2048",
                      "--local-batch", "4",        "--attention", "fused",      "--precision"};
  const double half = JsonOf(h100 + Words{"bf16"}).at("step_time_s").get<double>();
  const double eighth = JsonOf(h100 + Words{"fp8"}).at("step_time_s").get<double>();
  EXPECT_NE(eighth, half);
  EXPECT_TRUE(says(h100 + Words{"fp8"}, "opt_1.3b (fp8, fused) on"));
}

// An option, a file, and an option in place of what the network is known for.
TEST(Predict, AttentionIsFusedOrPlain) {
  const Words a100 = {"predict", "--device",      "a100_80gb", "--precision",
                      "bf16",    "--local-batch", "2",         "--workload"};
  const Json plain = JsonOf(a100 + Words{"opt_1.3b@2048"});
  const Json fused = JsonOf(a100 + Words{"opt_1.3b@2048", "--attention", "fused"});
  const auto activations = [](const Json& of) {
    return of.at("memory").at("activations_bytes").get<double>();
  };
  EXPECT_LT(fused.at("step_time_s"), 0.8 * plain.at("step_time_s").get<double>());
  EXPECT_EQ(activations(plain) - activations(fused), 2 * 2.0 * 24 * 32 * 2048 * 2048);
  const TempFolder folder;
  const std::string network = Stepcast({"workloads", "opt_1.3b"}).out;
  EXPECT_EQ(JsonOf(a100 + Words{"opt_1.3b", "--workload-file",
                                folder.Write("net.yaml", network + "attention: fused\n")}),
            fused);
  const Json llama = JsonOf(a100 + Words{"llama_7b@512"}, 1);
  EXPECT_EQ(JsonOf(a100 + Words{"llama_7b@512", "--attention", "fused"}, 1), llama);
  EXPECT_GT(JsonOf(a100 + Words{"llama_7b@512", "--attention", "plain"}, 1).at("step_time_s"),
            llama.at("step_time_s"));
}

// An option, a file, and what a sweep varies.
TEST(Predict, ActivationsAreKeptOrRecomputed) {
  const Words a100 = {"predict", "--device",      "a100_80gb", "--precision",
                      "bf16",    "--local-batch", "8",         "--workload"};
  const Json kept = JsonOf(a100 + Words{"opt_1.3b@2048", "--attention", "fused"});
  const Words full = a100 + Words{"opt_1.3b@2048", "--attention", "fused", "--recompute", "full"};
  const Json recomputed = JsonOf(full);
  const auto activations = [](const Json& of) {
    return of.at("memory").at("activations_bytes").get<double>();
  };
  EXPECT_LT(activations(recomputed), 0.25 * activations(kept));
  const double longer =
      recomputed.at("step_time_s").get<double>() / kept.at("step_time_s").get<double>();
  EXPECT_GT(longer, 1.2);
  EXPECT_LT(longer, 1.4);
  EXPECT_EQ(Stepcast(full).out.find("opt_1.3b (bf16, fused, full recompute) on"), 0U);
  const TempFolder folder;
  const std::string network = Stepcast({"workloads", "opt_1.3b"}).out;
  EXPECT_EQ(JsonOf(a100 + Words{"opt_1.3b", "--workload-file",
                                folder.Write("net.yaml",
                                             network + "attention: fused\nrecompute: full\n")}),
            recomputed);
  const Json sweep = JsonOf({"sweep", "--device", "a100_80gb", "--precision", "bf16",
                             "--local-batch", "8", "--workload", "opt_1.3b@2048", "--attention",
                             "fused", "--over", "recompute=none,full"});
  ASSERT_EQ(sweep.at("points").size(), 2U);
  EXPECT_EQ(sweep.at("points")[1].at("recompute"), "full");
  EXPECT_EQ(sweep.at("points")[1].at("step_time_s"), recomputed.at("step_time_s"));
  EXPECT_EQ(sweep.at("points")[0].at("step_time_s"), kept.at("step_time_s"));
  // Fused attention has no scores to save; of plain attention they are most of what is kept.
  const Words some = {"--recompute", "selective"};
  const Json fused = JsonOf(a100 + Words{"opt_1.3b@2048", "--attention", "fused"} + some);
  EXPECT_EQ(activations(fused), activations(kept));
  EXPECT_GT(fused.at("step_time_s"), kept.at("step_time_s"));
  EXPECT_LT(fused.at("step_time_s"), recomputed.at("step_time_s"));
  const Words small = {"predict", "--device",      "a100_80gb", "--precision",
                       "bf16",    "--local-batch", "1",         "--workload"};
  const Json plain = JsonOf(small + Words{"opt_1.3b@2048"});
  const Json selective = JsonOf(small + Words{"opt_1.3b@2048"} + some);
  EXPECT_LT(activations(selective), 0.6 * activations(plain));
  EXPECT_GT(selective.at("step_time_s"), plain.at("step_time_s"));
  EXPECT_EQ(Stepcast(small + Words{"opt_1.3b@2048"} + some)
                .out.find("opt_1.3b (bf16, selective recompute) on"),
            0U);
}

TEST(Predict, OutOfMemoryIsANo) {
  const Words arguments = {"predict", "--device",      "t4",  "--workload",
                           "vgg16",   "--local-batch", "4096"};
  const Json json = JsonOf(arguments, 1);
  EXPECT_EQ(json.at("memory").at("verdict"), "out of memory");
  EXPECT_GT(json.at("memory").at("total_bytes"), json.at("memory").at("available_bytes"));
  const ProcessResult text = Stepcast(arguments);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.out.find("out of memory"), std::string::npos);
}

TEST(Predict, TextSaysTheSame) {
  const ProcessResult result = Stepcast(kPredict + Words{"--workers", "8"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* fragment :
       {"resnet50 on gce-t4 (t4): 8 workers (2 x 4), allreduce, local batch 32", "90 % interval",
        "samples/s", "in all 1.33 GiB in 560 transfers, 112 for each",
        "! cluster not calibrated"}) {
    EXPECT_NE(result.out.find(fragment), std::string::npos) << fragment << "\n" << result.out;
  }
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << "no colours in a file";
}

// ---- What files may look like.

TEST(Files, ClustersInJson) {
  const TempFolder folder;
  const std::string text =
      "name: lab\ndevice: t4\nnodes: 8\ndevices_per_node: 2\n"
      "link: {bandwidth: 10 Gbit/s, rtt: 0.1 ms}\n";
  const std::string json = R"({"name": "lab", "device": "t4", "nodes": 8, "devices_per_node": 2,
    "link": {"bandwidth": "10 Gbit/s", "rtt": "0.1 ms"}})";
  const Words rest = {"--workload", "resnet50", "--local-batch", "32", "--workers", "6"};
  const Json from_yaml =
      JsonOf(Words{"predict", "--cluster", folder.Write("lab.yaml", text)} + rest);
  EXPECT_EQ(from_yaml.at("plan").at("placement"), "2-2-2");
  EXPECT_EQ(JsonOf(Words{"predict", "--cluster", folder.Write("lab.json", json)} + rest),
            from_yaml);
}

TEST(Files, CarriageReturnsChangeNothing) {
  const TempFolder folder;
  const auto crlf = [&](const std::string& name, const std::string& path) {
    return folder.Write(name, ReplaceAll(FileContent(path), "\n", "\r\n"));
  };
  const Words plain = {"evaluate",  "--rows",
                       "--cluster", kSource + "/data/machines/ufrgs-tupi.yaml",
                       "--runs",    kFitRuns};
  const Words windows = {"evaluate",  "--rows",
                         "--cluster", crlf("c.yaml", kSource + "/data/machines/ufrgs-tupi.yaml"),
                         "--runs",    crlf("r.csv", kFitRuns)};
  EXPECT_EQ(JsonOf(plain), JsonOf(windows));
}

TEST(Files, AWorkloadFileReplacesTheCataloguesOwn) {
  const TempFolder folder;
  const std::string mine = folder.Write("mine.yaml",
                                        "name: resnet50\n"
                                        "layers:\n"
                                        "  - {kind: dense, tensors: [1000, 10], forward_flop: 2e9, "
                                        "activation_bytes: 4000}\n");
  const Json json = JsonOf(kPredict + Words{"--workers", "8", "--workload-file", mine});
  EXPECT_EQ(json.at("traffic").at("gradient_bytes"), 4040);
  EXPECT_EQ(json.at("traffic").at("bytes_total"), 14 * 4040);
  EXPECT_EQ(JsonOf(Words{"predict", "--cluster", "gce-t4", "--workload", "ResNet-50",
                         "--local-batch", "32", "--workers", "8", "--workload-file", mine})
                .at("traffic")
                .at("gradient_bytes"),
            4040);
  // The catalogue's own, printed and given back, is the catalogue's own.
  const std::string copy = folder.Write("copy.yaml", Stepcast({"workloads", "resnet50"}).out);
  EXPECT_EQ(JsonOf(kPredict + Words{"--workers", "8", "--workload-file", copy}),
            JsonOf(kPredict + Words{"--workers", "8"}));
}

TEST(Files, OutputThatCannotBeWritten) {
  const TempFolder folder;
  const Words calibrate = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns, "--output"};
  ExpectError(calibrate + Words{folder.Path("none/fitted.yaml")},
              {"none/fitted.yaml", "cannot be written"});
  // There is no room for a file beside one with the longest possible name: it stays as it is.
  const std::string existing = folder.Write(std::string(254, 'x'), "precious");
  ExpectError(calibrate + Words{existing}, {"cannot be written"});
  EXPECT_EQ(FileContent(existing), "precious");
  // Bad input is found before anything is written.
  const std::string old = folder.Write("old.yaml", "precious");
  ExpectError(
      {"calibrate", "--cluster", "ufrgs-tupi", "--runs", folder.Path("none.csv"), "--output", old},
      {"none.csv"});
  EXPECT_EQ(FileContent(old), "precious");
  ExpectError({"sweep", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "32",
               "--over", "workers=1..4", "--plot", folder.Path("none/plot.svg")},
              {"none/plot.svg", "cannot be written"});
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 2) << "nothing half written is left behind";
}

TEST(Files, ShippedOnesCanBePrintedChangedAndGivenBack) {
  const TempFolder folder;
  const std::string copy = folder.Write("copy.yaml", Stepcast({"machines", "gce-t4"}).out);
  Words given_back = kPredict;
  given_back[2] = copy;
  EXPECT_EQ(JsonOf(given_back), JsonOf(kPredict));
}

// ---- Lists.

TEST(Lists, WorkloadsAndMachines) {
  const Json workloads = JsonOf({"workloads"}).at("workloads");
  std::map<std::string, Json> by_name;
  for (const Json& w : workloads) by_name[w.at("name")] = w;
  for (const char* name : {"resnet50", "vgg16", "mobilenet_v2", "densenet121", "inception_v3",
                           "efficientnet_b0", "bert_base"}) {
    EXPECT_EQ(by_name.count(name), 1U) << name;
  }
  EXPECT_EQ(by_name["resnet50"].at("gradient_bytes"), kResnet50Bytes);
  const Json machines = JsonOf({"machines"});
  // Who asks for clusters by name gets those alone, each as it stands in the list.
  const Json named = JsonOf({"machines", "ufrgs-tupi", "gce-t4"});
  EXPECT_EQ(named.size(), 1U) << named;
  ASSERT_EQ(named.at("clusters").size(), 2U);
  for (const Json& c : named.at("clusters")) {
    EXPECT_EQ(std::count(machines.at("clusters").begin(), machines.at("clusters").end(), c), 1)
        << c;
  }
  EXPECT_FALSE(machines.at("devices").empty());
  for (const Json& device : machines.at("devices")) {
    if (device.at("name") != "a100") continue;
    EXPECT_EQ(device.at("fp32_tflop_per_s"), 19.5);
    EXPECT_EQ(device.at("tf32_tflop_per_s"), 156);
    EXPECT_EQ(device.at("fp16_tflop_per_s"), 312);
    EXPECT_EQ(device.at("bf16_tflop_per_s"), 312);
    EXPECT_EQ(device.at("fp8_tflop_per_s"), nullptr);
  }
  bool found = false;
  for (const Json& c : machines.at("clusters")) {
    if (c.at("name") != "ufrgs-tupi") continue;
    found = true;
    EXPECT_EQ(c.at("nodes"), 4);
    EXPECT_EQ(c.at("calibrated"), false);
  }
  EXPECT_TRUE(found);
}

// Four nodes of four, and sixteen.
TEST(Machines, TheTableCountsAllDevices) {
  const std::string table = Stepcast({"machines"}).out;
  EXPECT_TRUE(std::regex_search(table, std::regex("\n *gce-t4 +4 +16 +t4 "))) << table;
  EXPECT_TRUE(std::regex_search(table, std::regex("\n *aws-g4dn-12xlarge +16 +64 +t4 "))) << table;
}

// A name with the ending of a file is one of the folder.
TEST(Machines, AFileNeedsNoFolderInItsName) {
  const TempFolder folder;
  for (const char* name : {"own.yaml", "own.yml", "own.json"}) {
    folder.Write(name,
                 "{\"name\": \"mine\", \"device\": \"t4\", \"nodes\": 3, "
                 "\"devices_per_node\": 2}\n");
    const ProcessResult result = Stepcast({"machines", name}, {.folder = folder.path()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("\nnodes: 3\n"), std::string::npos) << result.out;
  }
}

// ---- sweep.

const Words kSweep = {"sweep",    "--cluster",     "gce-t4", "--workload",
                      "resnet50", "--local-batch", "32"};

std::vector<int> WorkersOf(const Json& sweep) {
  std::vector<int> workers;
  for (const Json& point : sweep.at("points")) workers.push_back(point.at("plan").at("workers"));
  return workers;
}

TEST(Sweep, RangesAndLists) {
  EXPECT_EQ(WorkersOf(JsonOf(kSweep + Words{"--over", "workers=1..4"})),
            std::vector<int>({1, 2, 3, 4}));
  EXPECT_EQ(WorkersOf(JsonOf(kSweep + Words{"--over", "workers=1..8..3"})),
            std::vector<int>({1, 4, 7}));
  EXPECT_EQ(WorkersOf(JsonOf(kSweep + Words{"--over", "workers=16,2,4..5"})),
            std::vector<int>({16, 2, 4, 5}));
}

TEST(Sweep, EveryCombinationInOrder) {
  const Json json = JsonOf(
      kSweep + Words{"--rtt", "1 ms", "--over", "workers=2,8", "--over", "loss=0,0.001,0.01"});
  ASSERT_EQ(json.at("points").size(), 6U);
  std::size_t i = 0;
  for (const int workers : {2, 8}) {
    for (const double loss : {0.0, 0.001, 0.01}) {
      const Json& point = json.at("points")[i++];
      EXPECT_EQ(point.at("plan").at("workers"), workers);
      EXPECT_EQ(point.at("plan").at("loss_rate"), loss);
      // Each point is what predict says of it.
      EXPECT_EQ(point,
                JsonOf(kPredict + Words{"--rtt", "1 ms", "--workers", std::to_string(workers),
                                        "--loss", std::to_string(loss)}));
    }
  }
}

// How a workload is trained is no part of the plan, and varied like one.
TEST(Sweep, PrecisionsAndOptimizers) {
  const Words over = {"--over", "precision=fp32,fp16", "--over", "workers=1,8",
                      "--over", "optimizer=sgd,adam"};
  const Json json = JsonOf(kSweep + over);
  ASSERT_EQ(json.at("points").size(), 8U);
  std::size_t i = 0;
  for (const char* precision : {"fp32", "fp16"}) {
    for (const char* workers : {"1", "8"}) {
      for (const char* optimizer : {"sgd", "adam"}) {
        const Json& point = json.at("points")[i++];
        EXPECT_EQ(point.at("precision"), precision);
        EXPECT_EQ(point.at("optimizer"), optimizer);
        EXPECT_EQ(point, JsonOf(kPredict + Words{"--workers", workers, "--precision", precision,
                                                 "--optimizer", optimizer}));
      }
    }
  }
  EXPECT_NE(json.at("points")[0].at("step_time_s"), json.at("points")[4].at("step_time_s"));
  // What is varied is not said of all.
  const std::string text = Stepcast(kSweep + over + Words{"--precision", "fp16"}).out;
  EXPECT_EQ(text.find("resnet50 on gce-t4"), 0U) << text;
  ExpectError(kSweep + Words{"--over", "precision=fp32,fp4"}, {"--precision: 'fp4'", "bf16"});
  ExpectError({"sweep", "--profile", "xeon-onednn-1", "--workload", "resnet18", "--local-batch",
               "32", "--over", "precision=fp32,bf16"},
              {"--over: 'precision'", "--profile"});
}

TEST(Sweep, BatchesAndStrategies) {
  const Json json = JsonOf({"sweep", "--cluster", "gce-t4", "--workload", "resnet50", "--workers",
                            "8", "--servers", "2", "--strategy", "ps-sync", "--over",
                            "local-batch=16,64", "--over", "strategy=ring,ps-sync"});
  ASSERT_EQ(json.at("points").size(), 4U);
  EXPECT_EQ(json.at("points")[0].at("plan").at("local_batch"), 16);
  EXPECT_EQ(json.at("points")[0].at("plan").at("servers"), 0);
  EXPECT_EQ(json.at("points")[3].at("plan").at("local_batch"), 64);
  EXPECT_EQ(json.at("points")[3].at("plan").at("servers"), 2);
}

// What is there for one strategy does not keep another from being predicted, in any order.
TEST(Sweep, OptionsGoToTheStrategiesThatHaveThem) {
  const Words strategies = {"--over", "strategy=ring,ps-sync,ps-async"};
  const Words base = kSweep + Words{"--workers", "8", "--servers", "2"};
  const Json json = JsonOf(base + Words{"--multicast"} + strategies);
  ASSERT_EQ(json.at("points").size(), 3U);
  EXPECT_EQ(json.at("points")[0].at("plan").at("servers"), 0);
  EXPECT_FALSE(json.at("points")[0].at("plan").contains("multicast"));
  EXPECT_EQ(json.at("points")[1].at("plan").at("multicast"), "yes");
  EXPECT_EQ(json.at("points")[2].at("plan").at("servers"), 2);
  EXPECT_FALSE(json.at("points")[2].at("plan").contains("multicast"));
  const Words multicast = {"--over", "multicast=no,yes"};
  EXPECT_EQ(JsonOf(base + multicast + strategies).at("points").size(), 6U);
  EXPECT_EQ(JsonOf(base + strategies + multicast).at("points").size(), 6U);
  ExpectError(kSweep + Words{"--workers", "8", "--multicast", "--over", "loss=0"},
              {"multicast: with strategy allreduce"});
}

// Without a cluster's file the nodes of each plan are its own, whatever the other plans of the
// sweep have: a table says what a forecast of one of them says.
TEST(Sweep, PlacementsOfADeviceAreForecastAsEachByItself) {
  const Words of = {"--device", "a100",        "--workload", "vgg16",       "--local-batch",
                    "4",        "--transport", "rdma",       "--bandwidth", "200 Gbit/s"};
  const Json points = JsonOf(Words{"sweep", "--over", "placement=8,4,8-8,1-1"} + of).at("points");
  ASSERT_EQ(points.size(), 4u);
  const char* const placements[] = {"8", "4", "8-8", "1-1"};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Json alone = JsonOf(Words{"predict", "--placement", placements[i]} + of);
    EXPECT_EQ(points[i].at("step_time_s"), alone.at("step_time_s")) << placements[i];
    EXPECT_EQ(points[i].at("flags"), alone.at("flags")) << placements[i];
  }
  const Words known = {"--parameters", "100000000", "--one-worker", "0.2 s", "--local-batch", "4"};
  const Json of_size = JsonOf(Words{"sweep", "--over", "placement=8,1-1"} + known).at("points");
  for (std::size_t i = 0; i < of_size.size(); ++i) {
    const Json alone = JsonOf(Words{"predict", "--placement", i == 0 ? "8" : "1-1"} + known);
    EXPECT_EQ(of_size[i].at("step_time_s"), alone.at("step_time_s")) << i;
    EXPECT_EQ(of_size[i].at("flags"), alone.at("flags")) << i;
  }
}

// Each device as a forecast on it alone, with and without a cluster.
TEST(Sweep, DevicesAreForecastAsEachByItself) {
  for (const Words& on : {Words{}, Words{"--cluster", "gce-t4"}}) {
    const Words of = on + Words{"--workload", "resnet50", "--local-batch", "32"};
    const Json points = JsonOf(Words{"sweep", "--over", "device=V100,a100_80gb", "--over",
                                     "precision=fp32,fp16", "--workers", "4"} +
                               of)
                            .at("points");
    ASSERT_EQ(points.size(), 4U);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Json alone =
          JsonOf(Words{"predict", "--device", i < 2 ? "v100" : "a100_80gb", "--precision",
                       i % 2 == 0 ? "fp32" : "fp16", "--workers", "4"} +
                 of);
      EXPECT_EQ(points[i], alone) << i;
    }
    EXPECT_NE(points[0].at("step_time_s"), points[2].at("step_time_s"));
  }
  const Json apart = JsonOf({"sweep", "--over", "device=v100,a100", "--over", "placement=4,1-1",
                             "--workload", "vgg16", "--local-batch", "4"})
                         .at("points");
  const Json alone = JsonOf({"predict", "--device", "a100", "--placement", "4", "--workload",
                             "vgg16", "--local-batch", "4"});
  EXPECT_EQ(apart.at(2).at("step_time_s"), alone.at("step_time_s"));
}

TEST(Sweep, DevicesStandInATableAndInAPlot) {
  const TempFolder folder;
  const Words of = {"sweep", "--workload", "resnet50", "--local-batch", "32", "--over"};
  const ProcessResult result = Stepcast(of + Words{"workers=1,2", "--over", "device=v100,a100_80gb",
                                                   "--plot", folder.Path("devices.svg")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // No device is said to be that of all.
  EXPECT_NE(result.out.find("resnet50 on nodes with one device each\n"), std::string::npos)
      << result.out;
  for (const char* device : {"v100", "a100_80gb"}) {
    EXPECT_NE(result.out.find(device), std::string::npos) << result.out;
  }
  EXPECT_NE(FileContent(folder.Path("devices.svg")).find("device a100_80gb"), std::string::npos);
  ExpectError(of + Words{"device=v100,nosuch"}, {"--over: ", "nosuch"});
  ExpectError(of + Words{"device=v100", "--device", "a100"},
              {"--over: 'device' varies what --device says of one device; allowed: one of the "
               "two"});
  ExpectError(of + Words{"device=v100", "--one-worker", "1 s"}, {"what --one-worker says"});
  ExpectError(of + Words{"device=v100", "--profile", "xeon-onednn-1"}, {"what --profile says"});
}

TEST(Sweep, PlacementsOfADeviceAreOfNodesAsLargeAsTheLargest) {
  const ProcessResult result = Stepcast({"sweep", "--device", "a100", "--workload", "vgg16",
                                         "--local-batch", "4", "--over", "placement=4,8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("on nodes with up to 8 devices each (a100)"), std::string::npos)
      << result.out;
}

TEST(Predict, TellsTheShareOfThePeak) {
  const Words of = {"predict", "--device", "a100", "--workload", "gpt2", "--local-batch", "4"};
  const Json work = JsonOf(of + Words{"--precision", "bf16"}).at("work");
  const double share = work.at("share_of_peak").get<double>();
  EXPECT_NEAR(share, work.at("flop_per_s").get<double>() / 312e12, 1e-12);
  EXPECT_GT(share, 0.1);
  EXPECT_LT(share, 1);
  const std::string said = Stepcast(of + Words{"--precision", "bf16"}).out;
  EXPECT_NE(said.find(" TFLOP/s a device, "), std::string::npos) << said;
  EXPECT_NE(said.find(" % of its peak (MFU)"), std::string::npos) << said;
  // Of a network that is known by its size nobody knows the products.
  const Json of_size = JsonOf({"predict", "--device", "a100", "--parameters", "1000000",
                               "--one-worker", "10 ms", "--local-batch", "4"});
  EXPECT_FALSE(of_size.contains("work"));
}

TEST(Sweep, EachKindOfFlagIsSaidOnce) {
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++n;
    }
    return n;
  };
  const Words base = kSweep + Words{"--workers", "8", "--rtt", "20 ms"};
  const std::string bbr = Unwrapped(
      Stepcast(base + Words{"--congestion-control", "bbr", "--over", "loss=0.01,0.02,0.05,0.1"})
          .out);
  EXPECT_EQ(count(bbr, "BBR with a loss of"), 1U) << bbr;
  EXPECT_NE(bbr.find("BBR with a loss of 0.1: its rate is not certain beyond 2 %"),
            std::string::npos)
      << bbr;
  const std::string cubic = Unwrapped(Stepcast(base + Words{"--over", "loss=0.05,0.1"}).out);
  EXPECT_EQ(count(cubic, "sets the pace"), 1U) << cubic;
  // Hosts differ in name, not in number.
  const TempFolder folder;
  const std::string cluster = folder.Write(
      "open.yaml",
      "name: open\ndevice: rtx_4090\nnodes: 4\ndevices_per_node: 1\nlink: {bandwidth: 1 Gbit/s}\n");
  const std::string calibrated = folder.Path("fitted.yaml");
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,128,1.37,a+b\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,128,9.4,a+c\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,128,9.5,b+c\n");
  Stepcast({"calibrate", "--cluster", cluster, "--runs", runs, "--output", calibrated});
  const std::string hosts =
      Unwrapped(Stepcast({"sweep", "--cluster", calibrated, "--workload", "resnet50",
                          "--local-batch", "128", "--over", "hosts=a+a1,a+a2"})
                    .out);
  EXPECT_NE(hosts.find("no run has shown the link of host a1"), std::string::npos) << hosts;
  EXPECT_NE(hosts.find("no run has shown the link of host a2"), std::string::npos) << hosts;
}

// A host that a cluster file with hosts does not list, wherever it is named.
TEST(Errors, HostsThatTheClusterCannotHave) {
  const Words fragments = {"'tupi3' is no host of ufrgs-tupi (did you mean tupi1?)",
                           "allowed: tupi1, tupi2, tupi5, tupi6", "cluster file"};
  const auto with = [&](const std::string& place) { return Words{place} + fragments; };
  for (const char* command : {"predict", "explain", "recommend", "limits"}) {
    ExpectError({command, "--cluster", "ufrgs-tupi", "--workload", "resnet50", "--local-batch",
                 "128", "--hosts", "tupi1+tupi3"},
                with("--hosts: "));
  }
  ExpectError(
      {"predict", "--cluster", "ufrgs-tupi", "--workload", "resnet50", "--local-batch", "128",
       "--hosts", "tupi1,tupi2"},
      {"'tupi1,tupi2' is no host of ufrgs-tupi; names of hosts are joined by +; allowed: "});
  ExpectError({"sweep", "--cluster", "ufrgs-tupi", "--workload", "resnet50", "--local-batch", "128",
               "--over", "hosts=tupi1,tupi3"},
              with("--hosts: "));
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,128,1.37,tupi1+tupi2\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,128,1.37,tupi1+tupi3\n");
  for (const char* command : {"evaluate", "calibrate"}) {
    ExpectError({command, "--cluster", "ufrgs-tupi", "--runs", runs}, with("runs.csv:3: hosts: "));
  }
  ExpectError({"plan", "--cluster", "ufrgs-tupi", "--workload", "resnet50", "--local-batch", "128",
               "--among", runs},
              with("runs.csv:3: hosts: "));
}

TEST(Sweep, SaysHowManyPlansRunOutOfMemory) {
  const auto over = [](const char* batches) {
    return Words{"sweep",
                 "--cluster",
                 "gce-t4",
                 "--workload",
                 "resnet50",
                 "--over",
                 std::string("local-batch=") + batches};
  };
  const std::string text = Unwrapped(Stepcast(over("32,8192,16384")).out);
  EXPECT_NE(text.find("2 of 3 plans run out of memory"), std::string::npos) << text;
  EXPECT_EQ(Stepcast(over("16,32")).out.find("run out of memory"), std::string::npos);
  EXPECT_EQ(JsonOf(over("32,8192,16384")).at("out_of_memory"), 2);
}

TEST(Sweep, APlotIsAnSvg) {
  const TempFolder folder;
  const std::string plot = folder.Path("scaling.svg");
  const ProcessResult result =
      Stepcast(kSweep + Words{"--over", "workers=1..16", "--over", "bandwidth=1 Gbit/s,10 Gbit/s",
                              "--plot", plot});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string svg = FileContent(plot);
  EXPECT_EQ(svg.rfind("<?xml", 0), 0U);
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("bandwidth 10 Gbit/s"), std::string::npos) << "a line for each";
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

// ---- limits and recommend.

TEST(Limits, Json) {
  const Json json =
      JsonOf({"limits", "--cluster", "ec2-g3-ps", "--workload", "inception_v3", "--local-batch",
              "32", "--strategy", "ps-sync", "--servers", "1", "--most-workers", "20"});
  for (const char* key :
       {"plan", "most_workers", "worth_it_workers", "crossing_workers", "half_efficiency_workers",
        "half_utilisation_workers", "worth_it_from_workers", "efficiency_at_most", "best_workers",
        "binding", "strong_scaling", "server_ceiling_samples_per_s", "server_half_ceiling_workers",
        "ring_best_workers", "curve", "findings"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  std::vector<int> workers;
  for (const Json& point : json.at("curve")) workers.push_back(point.at("workers"));
  EXPECT_EQ(workers, std::vector<int>({1, 2, 4, 8, 16, 20}));
  EXPECT_TRUE(json.at("server_ceiling_samples_per_s").is_number());
  EXPECT_TRUE(json.at("ring_best_workers").is_null());
  const double ceiling = json.at("server_ceiling_samples_per_s");
  for (const Json& point : json.at("curve")) {
    EXPECT_LE(point.at("throughput_samples_per_s"), ceiling);
  }
}

TEST(Limits, ClosedFormsStandBesideTheSearch) {
  const Json json =
      JsonOf({"limits", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "32",
              "--strategy", "ps-async", "--servers", "2", "--workers", "8", "--target-efficiency",
              "0.8", "--most-workers", "1000000"});
  EXPECT_EQ(json.at("reference_workers"), 8);
  EXPECT_DOUBLE_EQ(json.at("target_efficiency"), 0.8);
  const Json& closed = json.at("closed_form");
  for (const char* key : {"half_ceiling_workers", "half_efficiency_workers", "crossing_workers",
                          "strong_best_workers", "knee_workers", "servers"}) {
    EXPECT_TRUE(closed.at(key).is_number()) << key;
  }
  EXPECT_TRUE(closed.at("accumulation").is_null()) << "it empties the queues";
  EXPECT_TRUE(closed.at("ceiling_samples_per_s").is_number());
  EXPECT_TRUE(closed.at("buckets").is_null()) << "every worker at its own pace";
  EXPECT_TRUE(json.at("accumulation").is_number_integer());
  const Json none = JsonOf({"limits", "--cluster", "gce-t4", "--workload", "resnet50",
                            "--local-batch", "32", "--strategy", "tree"});
  EXPECT_EQ(none.at("closed_form").at("ceiling_samples_per_s"), "none");
  const std::string text = Stepcast({"limits", "--cluster", "gce-t4", "--workload", "resnet50",
                                     "--local-batch", "32", "--strategy", "tree"})
                               .out;
  EXPECT_TRUE(
      std::regex_search(text, std::regex("buckets that suffice.* up to .*\\(within 1 %\\)")))
      << text;
  EXPECT_TRUE(none.at("buckets").is_number_integer());
  EXPECT_TRUE(none.at("most_buckets").is_null() || none.at("most_buckets") >= none.at("buckets"));
  EXPECT_NE(text.find("closed form"), std::string::npos) << text;
  EXPECT_NE(text.find("searched"), std::string::npos) << text;
  for (const char* bad : {"0", "1", "1.5", "-1", "90%"}) {
    ExpectError({"limits", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "32",
                 "--target-efficiency", bad},
                {"--target-efficiency", "allowed: "});
  }
}

// ---- explain and models.

TEST(Explain, PartsAddUpToTheStep) {
  for (const Words& strategy :
       {Words{"ring"}, Words{"tree"}, Words{"hierarchical"}, Words{"auto"}, Words{"none"},
        Words{"halving-doubling"}, Words{"byteps"}, Words{"ps-sync", "--servers", "2"},
        Words{"ps-async", "--servers", "2"}}) {
    const Words plan = Words{"--cluster", "gce-t4",    "--workload", "resnet50",  "--local-batch",
                             "32",        "--workers", "8",          "--strategy"} +
                       strategy;
    const Json json = JsonOf(Words{"explain"} + plan);
    const Json prediction = JsonOf(Words{"predict"} + plan);
    EXPECT_EQ(json.at("step_time_s"), prediction.at("step_time_s")) << strategy[0];
    double share = 0;
    for (const Json& term : json.at("terms")) {
      EXPECT_FALSE(term.at("formula").get<std::string>().empty());
      EXPECT_FALSE(term.at("source").get<std::string>().empty()) << term;
      EXPECT_TRUE(term.at("result").at("value").is_number()) << term;
      if (term.at("is_part")) share += term.at("share").get<double>();
    }
    EXPECT_NEAR(share, 1, 1e-6) << strategy[0];
  }
}

TEST(Explain, ElasticitiesAreThoseOfPredict) {
  const Words plan = {"--cluster", "gce-t4",    "--workload", "resnet50", "--local-batch",
                      "32",        "--workers", "8",          "--rtt",    "1 ms"};
  const Json json = JsonOf(Words{"explain"} + plan + Words{"--bandwidth", "1 Gbit/s"});
  double elasticity = 0;
  double largest = 1e300;
  for (const Json& parameter : json.at("parameters")) {
    const double e = parameter.at("elasticity");
    EXPECT_LE(std::abs(e), largest) << "the most influential first";
    largest = std::abs(e);
    EXPECT_FALSE(parameter.at("meaning").get<std::string>().empty());
    if (parameter.at("name") == "link bandwidth") elasticity = e;
  }
  const auto step = [&](const char* rate) {
    return JsonOf(Words{"predict"} + plan + Words{"--bandwidth", rate})
        .at("step_time_s")
        .get<double>();
  };
  const double expected =
      std::log(step("1.01 Gbit/s") / step("0.99 Gbit/s")) / std::log(1.01 / 0.99);
  EXPECT_LT(elasticity, -0.1) << "the link binds";
  EXPECT_NEAR(elasticity, expected, 1e-2 * std::abs(expected));
}

// Without a cluster file the placement says how many devices a node has, and so whether they use
// links of their own.
TEST(Explain, NodesOfADeviceHaveItsLinks) {
  const auto host_bandwidth = [](const char* device, const char* placement) {
    const Json json = JsonOf({"explain", "--device", device, "--workload", "vgg16", "--local-batch",
                              "4", "--overlap", "none", "--placement", placement});
    for (const Json& parameter : json.at("parameters")) {
      if (parameter.at("name") == "host_bandwidth") return parameter.at("value").get<double>();
    }
    return 0.0;
  };
  EXPECT_NEAR(host_bandwidth("a100", "8"), 300, 1e-9);
  EXPECT_LT(host_bandwidth("t4", "8"), 10) << "no links of their own";
}

TEST(Explain, TextNamesFormulasAndParameters) {
  const ProcessResult result = Stepcast({"explain", "--cluster", "gce-t4", "--workload", "resnet50",
                                         "--local-batch", "32", "--workers", "8"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* words : {"micro-step", "of the step", "What the step depends on",
                            "+1 % changes the step by", "flow_bandwidth"}) {
    EXPECT_NE(result.out.find(words), std::string::npos) << words << "\n" << result.out;
  }
  ExpectError({"explain", "--cluster", "gce-t4", "--workload", "resnet50"}, {"--local-batch"});
}

// Three runs leave many values to their priors: the table has no room for all that JSON says of it.
TEST(Explain, TextCallsAFitWeakWhereThePriorDecided) {
  const TempFolder folder;
  const std::string fitted = folder.Path("fitted.yaml");
  ASSERT_EQ(
      Stepcast({"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns, "--output", fitted})
          .exit_code,
      0);
  const Words explain = {"explain",       "--cluster", fitted,        "--workload", "resnet50",
                         "--local-batch", "128",       "--placement", "1-1"};
  const std::string text = Stepcast(explain).out;
  // Whether a row of the table begins and ends so.
  const auto has_row = [&](const std::string& name, const std::string& words) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("  " + name + " ", 0) == 0 && line.ends_with(" " + words)) return true;
    }
    return false;
  };
  int weak = 0;
  const Json answer = JsonOf(explain);
  for (const Json& parameter : answer.at("parameters")) {
    const std::string name = parameter.at("name");
    if (parameter.at("origin") == "fitted, but the prior decided") {
      ++weak;
      EXPECT_TRUE(has_row(name, "weak fit")) << name << "\n" << text;
    } else if (parameter.at("origin") == "fitted") {
      EXPECT_TRUE(has_row(name, "fitted")) << name << "\n" << text;
    }
  }
  EXPECT_GT(weak, 0);
}

TEST(Models, ListsTheCatalogue) {
  const Json all = JsonOf({"models"}).at("models");
  ASSERT_GT(all.size(), 30U);
  const std::string text = Stepcast({"models"}).out;
  for (const Json& model : all) {
    const std::string id = model.at("id");
    EXPECT_NE(text.find(id), std::string::npos) << id;
    for (const char* key : {"sentence", "formula", "source", "validity", "unit"}) {
      EXPECT_FALSE(model.at(key).get<std::string>().empty()) << id << " " << key;
    }
    EXPECT_TRUE(model.at("known").is_array()) << id;
    if (id.rfind("step/", 0) != 0) {
      EXPECT_GE(model.at("known").size(), 2U) << id;
    }
    for (const Json& input : model.at("inputs")) {
      EXPECT_LT(input.at("low").get<double>(), input.at("high").get<double>()) << id;
    }
  }
}

TEST(Models, OneIdAndAPrefix) {
  const Json one = JsonOf({"models", "collective/ring"}).at("models");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].at("id"), "collective/ring");
  const Json family = JsonOf({"models", "collective"}).at("models");
  EXPECT_GT(family.size(), 1U);
  for (const Json& model : family) {
    EXPECT_EQ(model.at("id").get<std::string>().rfind("collective/", 0), 0U);
  }
  EXPECT_EQ(JsonOf({"models", "collective", "collective/ring"}).at("models").size(),
            family.size() + 1);
  const std::string text = Stepcast({"models", "collective/ring"}).out;
  for (const char* words : {"collective/ring", "formula", "holds for", "source", "known: "}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
  for (const char* unknown : {"collective/rin", "coll", "", "physics"}) {
    ExpectError({"models", unknown}, {"is not in the catalogue of models", "stepcast models"});
  }
  const std::pair<const char*, const char*> meant[] = {{"ring", "collective/ring"},
                                                       {"collective/rin", "collective/ring"},
                                                       {"colective", "collective"},
                                                       {"host_sharin", "host_sharing"}};
  for (const auto& [said, id] : meant) {
    ExpectError({"models", said},
                {"is not in the catalogue of models (did you mean " + std::string(id) + "?)"});
  }
  ExpectError({"models", "physics"}, {"is not in the catalogue of models; allowed: "});
}

TEST(Models, AParameterLeadsToItsFormula) {
  const Json one = JsonOf({"models", "host_sharing"});
  EXPECT_TRUE(one.at("models").empty());
  ASSERT_EQ(one.at("parameters").size(), 1U);
  EXPECT_EQ(one.at("parameters")[0].at("model"), "network/hop_rate");
  const std::string text = Stepcast({"models", "host_sharing"}).out;
  for (const char* words : {"host_sharing", "prior", "source", "network/hop_rate",
                            "model/network/hop.h: HopRate", "tests/model/hop_test.cc"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(Limits, FixedStep) {
  const Json json =
      JsonOf({"limits", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "32",
              "--most-workers", "16", "--global-batch", "512"});
  EXPECT_EQ(json.at("strong_scaling").at("global_batch"), 512);
  EXPECT_GE(json.at("strong_scaling").at("best_workers"), 1);
  EXPECT_TRUE(json.at("ring_best_workers").is_number());
  EXPECT_TRUE(json.at("server_ceiling_samples_per_s").is_null());
}

// One worker alone has no backup worker, whatever the plan as given has.
TEST(Recommend, ShowsWhereBackupWorkersAreOthers) {
  const std::string text =
      Stepcast({"recommend", "--cluster", "gce-t4", "--workload", "vgg16", "--local-batch", "8",
                "--workers", "16", "--backup-workers", "1", "--bandwidth", "10 Mbit/s",
                "--try-workers", "1,16", "--try-accumulation", "1", "--try-local-batch", "8"})
          .out;
  EXPECT_NE(text.find("workers  backup  batch"), std::string::npos) << text;
}

// The batch that would do has two, where slow nodes take samples of their own.
TEST(Limits, SayThatSamplesOfSlowNodesGoWithTheLocalBatch) {
  const Words asked = {"limits",
                       "--cluster",
                       "aws-g4dn-12xlarge",
                       "--workload",
                       "resnet50",
                       "--workers",
                       "8",
                       "--local-batch",
                       "32",
                       "--slow-nodes",
                       "1",
                       "--slow-speed",
                       "0.5"};
  const std::string sentence = "slow nodes take theirs in proportion, 60 for 32";
  const std::string shared = Unwrapped(Stepcast(asked + Words{"--slow-local-batch", "60"}).out);
  EXPECT_NE(shared.find(sentence), std::string::npos) << shared;
  EXPECT_EQ(Unwrapped(Stepcast(asked).out).find("in proportion"), std::string::npos);
  EXPECT_LT(JsonOf(asked + Words{"--slow-local-batch", "600"}).at("given").at("efficiency"), 1);
}

TEST(Recommend, SaysWhatItLeavesOut) {
  const Words words = {"recommend", "--cluster", "gce-t4",        "--workload", "resnet50",
                       "--workers", "4",         "--local-batch", "32"};
  const Words both = {"--strategy", "ring", "--try-shard", "optimizer", "--try-compress", "fp16"};
  const Json json = JsonOf(words);
  int left_out = static_cast<int>(json.at("pareto").size());
  ASSERT_FALSE(json.at("left_out").empty());
  const std::string text = Unwrapped(Stepcast(words).out);
  for (const Json& reason : json.at("left_out")) {
    left_out += reason.at("plans").get<int>();
    EXPECT_NE(text.find("left out: " + reason.at("reason").get<std::string>()), std::string::npos)
        << text;
  }
  EXPECT_EQ(left_out, json.at("considered"));
  // Nothing can be tried.
  const Json none = JsonOf(words + both, 1);
  EXPECT_EQ(none.at("considered"), 0);
  EXPECT_EQ(none.at("binding_constraint"), "what does not go together");
  const std::string why = Unwrapped(Stepcast(words + both).out);
  EXPECT_NE(why.find(" left out: compression or shares that do not go with"), std::string::npos)
      << why;
}

// What is known within a quarter is not to be relied on to the last byte.
TEST(Recommend, SaysThatMemoryIsTight) {
  const Words words = {"recommend", "--cluster",          "ufrgs-tupi", "--workload",
                       "resnet50",  "--workers",          "2",          "--try-local-batch",
                       "256",       "--try-accumulation", "1",          "--local-batch"};
  const std::string text = Unwrapped(Stepcast(words + Words{"128"}).out);
  EXPECT_NE(text.find("memory of the recommended plan is tight: about 21.8 of 24.0"),
            std::string::npos)
      << text;
  const std::string less =
      Stepcast({"recommend", "--cluster", "ufrgs-tupi", "--workload", "resnet50", "--workers", "2",
                "--local-batch", "32", "--try-local-batch", "64"})
          .out;
  EXPECT_EQ(less.find("is tight"), std::string::npos) << less;
  // Where the plan as given is kept it is that of this one, whatever was tried.
  const Words kept = {"recommend",  "--cluster",     "ufrgs-tupi", "--workload",
                      "resnet50",   "--workers",     "4",          "--bandwidth",
                      "100 Gbit/s", "--try-workers", "1",          "--try-accumulation",
                      "1",          "--local-batch"};
  const std::string tried =
      Unwrapped(Stepcast(kept + Words{"128", "--try-local-batch", "256"}).out);
  EXPECT_NE(tried.find("Keep that one."), std::string::npos) << tried;
  EXPECT_EQ(tried.find("is tight"), std::string::npos) << tried;
  const std::string given =
      Unwrapped(Stepcast(kept + Words{"256", "--try-local-batch", "128"}).out);
  EXPECT_NE(given.find("Keep that one."), std::string::npos) << given;
  EXPECT_NE(given.find("memory of the plan as given is tight: about 21.8 of 24.0 GiB"),
            std::string::npos)
      << given;
}

TEST(Recommend, Json) {
  const Json json = JsonOf({"recommend", "--cluster", "gce-t4", "--workload", "resnet50",
                            "--local-batch", "32", "--workers", "8", "--bandwidth", "1 Gbit/s",
                            "--most-global-batch", "2048", "--try-strategy", "ring,hierarchical"});
  EXPECT_EQ(json.at("feasible"), true);
  EXPECT_GE(json.at("gain"), 1);
  EXPECT_FALSE(json.at("binding_constraint").get<std::string>().empty());
  EXPECT_EQ(json.at("baseline").at("plan").at("local_batch"), 32);
  const Json& best = json.at("best");
  EXPECT_LE(best.at("plan").at("global_batch"), 2048);
  EXPECT_NE(best.at("memory").at("verdict"), "out of memory");
  EXPECT_NEAR(json.at("gain"),
              best.at("throughput_samples_per_s").get<double>() /
                  json.at("baseline").at("throughput_samples_per_s").get<double>(),
              1e-9);
  ASSERT_FALSE(json.at("pareto").empty());
  for (const Json& r : json.at("pareto")) {
    EXPECT_LE(r.at("plan").at("global_batch"), 2048);
    EXPECT_TRUE(r.contains("efficiency"));
  }
}

// Sentence, heading, row and JSON say one thing where a smaller batch does as much.
TEST(Recommend, TheSameWithFewerSamples) {
  const Words asked = {"recommend", "--cluster",    "gce-t4",       "--workload",
                       "vgg16",     "--workers",    "16",           "--local-batch",
                       "64",        "--input-rate", "100 samples/s"};
  const Json json = JsonOf(asked);
  EXPECT_EQ(json.at("recommended"), true);
  EXPECT_EQ(json.at("gain"), 1);
  EXPECT_EQ(json.at("objective_gain"), 1);
  const int batch = json.at("best").at("plan").at("global_batch");
  ASSERT_LT(batch, 1024);
  const std::string text = Unwrapped(Stepcast(asked).out);
  EXPECT_NE(text.find("None of the plans tried brings more throughput. This one brings the same "
                      "with a global batch of " +
                      std::to_string(batch) + " instead of 1,024."),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("keep the plan as given"), std::string::npos) << text;
  // Nothing else is said where it is the plan as given.
  const std::string same =
      Unwrapped(Stepcast(asked + Words{"--try-local-batch", "64", "--try-accumulation", "1"}).out);
  EXPECT_NE(same.find("None of the plans tried is better: keep the plan as given."),
            std::string::npos)
      << same;
}

// The same sentence as of the other commands.
TEST(Recommend, WhatGoesWithNothingIsRefused) {
  const Words words = {"--cluster", "gce-t4",     "--workload",    "resnet50",
                       "--workers", "4",          "--local-batch", "32",
                       "--shard",   "parameters", "--compress",    "topk=0.01"};
  for (const char* command : {"predict", "recommend", "limits"}) {
    ExpectError(Words{command} + words, {"--shard: 'parameters' with compress topk=0.01; allowed: "
                                         "none: parameters are gathered as they are"});
  }
}

// Memory is that of the workers that are named: of the machines that there are, and of the most.
TEST(Limits, FlagsOfMemoryNameTheirWorkers) {
  const auto flags = [](const char* shard) {
    return JsonOf({"limits", "--cluster", "gce-t4", "--workload", "bert_large@512", "--local-batch",
                   "8", "--workers", "2", "--optimizer", "adam", "--most-workers", "16", "--shard",
                   shard})
        .at("flags");
  };
  const auto naming = [](const Json& all, const std::string& start) {
    return std::count_if(all.begin(), all.end(), [&](const Json& flag) {
      return flag.get<std::string>().rfind(start + "out of memory: needs about ", 0) == 0;
    });
  };
  const Json whole = flags("none");
  EXPECT_EQ(naming(whole, "on 2 workers: "), 1);
  EXPECT_EQ(naming(whole, "on 16 workers: "), 1);
  EXPECT_EQ(naming(whole, ""), 0);
}

TEST(Recommend, NoPlanFits) {
  const Words arguments = {"recommend",  "--device",          "t4",
                           "--workload", "bert_base",         "--local-batch",
                           "1000",       "--try-local-batch", "1000,2000"};
  const Json json = JsonOf(arguments, 1);
  EXPECT_EQ(json.at("feasible"), false);
  EXPECT_EQ(json.at("out_of_memory").get<int>() + json.at("over_global_batch").get<int>(),
            json.at("considered").get<int>());
  const ProcessResult text = Stepcast(arguments);
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_NE(text.out.find("No plan fits"), std::string::npos);
}

// Options that make a plan fit are those with which the same search finds one: the least that is
// shared out, and trainings that keep less, by themselves or the fewest together.
TEST(Recommend, WhatMakesAPlanFitIsFoundByTheSearch) {
  const auto out = [](const Words& of) { return Stepcast(Words{"recommend"} + of).out; };
  const auto fits = [&](const Words& of) {
    const std::string text = out(of);
    return text.substr(std::min(text.find('\n') + 1, text.size()));
  };
  const auto on_nodes_of_four = [](const std::string& workload, const std::string& workers) {
    return Words{"--cluster", "aws-g4dn-12xlarge", "--local-batch", "1", "--workload",
                 workload,    "--workers",         workers};
  };
  EXPECT_EQ(fits(on_nodes_of_four("gpt2_large", "16")),
            "A plan fits with --try-shard optimizer, --attention fused, --recompute selective or "
            "--recompute full.\n");
  // Who recomputes some of it may recompute all of it.
  for (const auto& [network, batch] : {std::pair("gpt2", "32"), std::pair("gpt2_medium", "16")}) {
    EXPECT_EQ(fits({"--cluster", "aws-g4dn-12xlarge", "--workload", network, "--workers", "16",
                    "--local-batch", batch, "--try-local-batch", batch, "--try-accumulation", "1",
                    "--recompute", "selective"}),
              "A plan fits with a smaller --try-local-batch or --recompute full.\n");
  }
  EXPECT_EQ(fits(on_nodes_of_four("gpt2_xl", "16")), "A plan fits with --try-shard hybrid.\n");
  // Within one node there is no other.
  EXPECT_EQ(fits(on_nodes_of_four("gpt2_xl", "4")), "A plan fits with --try-shard parameters.\n");
  EXPECT_EQ(
      fits({"--device", "t4", "--workload", "gpt2_xl", "--workers", "8", "--local-batch", "1"}),
      "A plan fits with --try-shard parameters.\n");
  const Words opt = on_nodes_of_four("opt_1.3b", "16");
  EXPECT_EQ(fits(opt), "A plan fits with --precision bf16 and --try-shard gradients together.\n");
  const Words taken = opt + Words{"--precision", "bf16"};
  EXPECT_NE(out(taken + Words{"--try-shard", "gradients"}).find("recommended"), std::string::npos);
  EXPECT_EQ(out(taken + Words{"--try-shard", "optimizer"}).find("recommended"), std::string::npos);
  // Who takes several steps alone, or compresses, shares nothing out.
  const auto beside = [](const std::string& stated, const std::string& without) {
    return "None fits beside " + stated + ", with which nothing is shared out; without " + without +
           " a plan fits with --try-shard hybrid.\n";
  };
  const Words xl = on_nodes_of_four("gpt2_xl", "16");
  EXPECT_EQ(fits(xl + Words{"--local-steps", "4"}), beside("--local-steps 4", "it"));
  EXPECT_EQ(fits(xl + Words{"--compress", "fp16"}), beside("--compress fp16", "it"));
  EXPECT_EQ(fits(xl + Words{"--try-compress", "fp16,int8"}), beside("--try-compress", "it"));
  EXPECT_EQ(fits(xl + Words{"--try-compress", "fp16,none"}),
            "A plan fits with --try-shard hybrid.\n");
  EXPECT_EQ(fits(xl + Words{"--strategy", "ring", "--local-steps", "4", "--backup-workers", "1"}),
            beside("--local-steps 4 and --backup-workers 1", "them"));
  const std::string none =
      "No smaller batch, no shares and no leaner training make one fit: it takes devices with more "
      "memory, or more workers that share the model out.\n";
  EXPECT_EQ(fits({"--device", "t4", "--workload", "llama2_70b", "--local-batch", "1"}), none);
}

// Only the reasons that there are, and what would leave a plan.
TEST(Recommend, NothingThatFitsIsToldWithWhatWouldFit) {
  const auto out = [](const Words& more) {
    return Stepcast(Words{"recommend", "--device", "t4", "--workload", "bert_base"} + more).out;
  };
  const Words large = {"--local-batch",      "1000", "--try-local-batch", "1000",
                       "--try-accumulation", "1"};
  EXPECT_EQ(out(large),
            "No plan fits: of 1 considered, 1 runs out of memory.\n"
            "A plan fits with a smaller --try-local-batch.\n");
  const Words small = {"--local-batch", "1", "--try-local-batch", "1,2", "--try-accumulation", "2"};
  EXPECT_EQ(out(small + Words{"--workers", "16", "--most-global-batch", "8"}),
            "No plan fits: of 2 considered, 2 exceed the global batch of 8.\n"
            "16 workers have at least 16 samples in a step, one each: try fewer, or a larger "
            "--most-global-batch.\n");
  EXPECT_EQ(out(small + Words{"--workers", "8", "--most-global-batch", "8"}),
            "No plan fits: of 2 considered, 2 exceed the global batch of 8.\n"
            "Less is in a step with fewer workers, a smaller --try-local-batch or a smaller "
            "--try-accumulation.\n");
  const Words wide = {"recommend", "--cluster",     "ufrgs-tupi", "--workload",
                      "resnet50",  "--local-batch", "32",         "--try-local-batch",
                      "32",        "--try-workers", "8",          "--try-accumulation",
                      "1"};
  EXPECT_EQ(Stepcast(wide).out,
            "No plan fits: of 1 considered, 1 needs more nodes than ufrgs-tupi has.\n"
            "Keep --try-workers to 4 at most, or state more nodes in the cluster file.\n");
  EXPECT_EQ(JsonOf(wide, 1).at("binding_constraint"), "the nodes of the cluster");
}

// ---- From runs to a forecast.

TEST(Pipeline, CalibrateEvaluatePredict) {
  const TempFolder folder;
  const std::string fitted = folder.Path("fitted.yaml");
  const Json calibration =
      JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns, "--output", fitted});
  EXPECT_EQ(calibration.at("usable"), true);
  EXPECT_EQ(calibration.at("runs"), 3);
  EXPECT_LT(calibration.at("mape"), 0.02);
  std::map<std::string, double> links;
  for (const Json& p : calibration.at("parameters")) {
    EXPECT_TRUE(p.contains("log_sd") && p.contains("prior_value") && p.contains("unit"));
    if (p.at("name") == "link_bandwidth") links[p.at("scope")] = p.at("value");
  }
  EXPECT_NEAR(links.at("hosts tupi5+tupi6"), 0.1, 0.03);
  EXPECT_NEAR(links.at("hosts tupi1+tupi2"), 0.85, 0.25);

  const Json evaluation =
      JsonOf({"evaluate", "--cluster", fitted, "--runs", kHeldOutRuns, "--rows"});
  EXPECT_EQ(evaluation.at("overall").at("runs"), 1);
  EXPECT_LT(evaluation.at("overall").at("mape"), 0.10);

  const Json prediction = JsonOf({"predict", "--cluster", fitted, "--workload", "resnet50",
                                  "--local-batch", "128", "--hosts", "tupi2+tupi5+tupi6"});
  EXPECT_DOUBLE_EQ(prediction.at("step_time_s"),
                   evaluation.at("rows")[0].at("predicted_step_time_s"));
  EXPECT_EQ(prediction.at("compute_source"), "calibration");
  EXPECT_EQ(prediction.at("plan").at("placement"), "1-1-1");
  // One node is what one node was measured at.
  EXPECT_NEAR(JsonOf({"predict", "--cluster", fitted, "--workload", "resnet50", "--local-batch",
                      "128", "--workers", "1"})
                  .at("step_time_s"),
              0.204, 0.02);
}

TEST(Pipeline, TheSameRunsGiveTheSameFile) {
  const TempFolder folder;
  for (const char* name : {"a.yaml", "b.yaml"}) {
    const ProcessResult result = Stepcast({"calibrate", "--cluster", "ufrgs-tupi", "--runs",
                                           kFitRuns, "--output", folder.Path(name)});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_FALSE(FileContent(folder.Path("a.yaml")).empty());
  EXPECT_EQ(FileContent(folder.Path("a.yaml")), FileContent(folder.Path("b.yaml")));
}

TEST(Pipeline, SeveralFilesOfRuns) {
  const Words together = {"evaluate", "--cluster", "ufrgs-tupi", "--rows",
                          "--runs",   kFitRuns,    kHeldOutRuns};
  const Words repeated = {"evaluate", "--cluster", "ufrgs-tupi", "--rows",
                          "--runs",   kFitRuns,    "--runs",     kHeldOutRuns};
  const Json json = JsonOf(together);
  EXPECT_EQ(json.at("overall").at("runs"), 4);
  EXPECT_EQ(JsonOf(repeated), json);
}

// A run that was stopped is a bound alone, of which nothing is learnt.
TEST(Pipeline, CalibrateOfNothingButABoundIsANo) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "resnet50,rtx_4090,1-1,0,allreduce,32,>1800\n");
  const Json json = JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output",
                            folder.Path("fitted.yaml")},
                           1);
  EXPECT_EQ(json.at("usable"), false);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("fitted.yaml")));
}

// ---- evaluate.

// Linear interpolation between order statistics.
double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

void ExpectScore(const Json& score, const std::vector<Json>& rows) {
  std::vector<double> errors;
  double bias = 0;
  double covered = 0;
  const auto count = static_cast<double>(rows.size());
  for (const Json& row : rows) {
    const double predicted = row.at("predicted_step_time_s");
    const double measured = row.at("measured_step_time_s");
    errors.push_back(std::abs(predicted / measured - 1));
    bias += (predicted / measured - 1) / count;
    covered += row.at("low_s") <= measured && measured <= row.at("high_s") ? 1 / count : 0;
  }
  EXPECT_EQ(score.at("runs"), rows.size());
  EXPECT_NEAR(score.at("mape"), std::accumulate(errors.begin(), errors.end(), 0.0) / count, 1e-12);
  EXPECT_NEAR(score.at("median_ape"), Quantile(errors, 0.5), 1e-12);
  EXPECT_NEAR(score.at("p90_ape"), Quantile(errors, 0.9), 1e-12);
  EXPECT_NEAR(score.at("bias"), bias, 1e-12);
  EXPECT_NEAR(score.at("coverage90"), covered, 1e-12);
}

TEST(Evaluate, ItsArithmetic) {
  const TempFolder folder;
  std::string csv = "note,step_time_s,workload,device,placement,servers,strategy,local_batch\n";
  const char* workloads[] = {"vgg16", "resnet50", "resnet50"};
  std::vector<double> measured;
  for (int i = 0; i < 11; ++i) {
    // From far too fast to far too slow: some in their intervals, some not.
    measured.push_back(0.02 * std::pow(1.7, i));
    csv += "row " + std::to_string(i) + "," + std::to_string(measured.back()) + "," +
           workloads[i % 3] + ",t4," + (i % 2 == 0 ? "1,0,none" : "4-4,0,ring") + ",32\n";
  }
  const Json json = JsonOf({"evaluate", "--cluster", "gce-t4", "--runs",
                            folder.Write("runs.csv", csv), "--rows", "--group-by", "workload"});
  ASSERT_EQ(json.at("rows").size(), measured.size());
  std::map<std::string, std::vector<Json>> groups;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Json& row = json.at("rows")[i];
    EXPECT_NEAR(row.at("measured_step_time_s"), measured[i], 1e-6) << "in the order of the file";
    EXPECT_LT(row.at("low_s"), row.at("predicted_step_time_s"));
    EXPECT_TRUE(row.at("flags").is_array());
    groups[workloads[i % 3]].push_back(row);
  }
  ExpectScore(json.at("overall"), json.at("rows"));
  EXPECT_GT(json.at("overall").at("coverage90"), 0);
  EXPECT_LT(json.at("overall").at("coverage90"), 1);
  ASSERT_EQ(json.at("groups").size(), 2U);
  for (const Json& group : json.at("groups")) ExpectScore(group, groups.at(group.at("name")));
  EXPECT_FALSE(JsonOf({"evaluate", "--cluster", "gce-t4", "--runs", folder.Path("runs.csv")})
                   .contains("rows"))
      << "only when asked for";
}

TEST(Evaluate, EveryGrouping) {
  for (const char* key : {"workload", "device", "strategy", "workers", "nodes", "servers",
                          "local_batch", "file", "distance"}) {
    const Json json = JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFitRuns,
                              kHeldOutRuns, "--group-by", key});
    int runs = 0;
    for (const Json& group : json.at("groups")) runs += group.at("runs").get<int>();
    EXPECT_EQ(runs, 4) << key;
  }
}

// ---- import.

TEST(Import, AdaptdlTraces) {
  const TempFolder folder;
  const std::string placements = folder.Write("bert_placements.csv",
                                              "placement,local_bsz,step_time,sync_time\n"
                                              "1,4,0.5,0.01\n"
                                              "13,6,0.75,0.25\n"
                                              "4444,8,1.5,0.5\n");
  const std::string scalability = folder.Write("imagenet_scalability.csv",
                                               "num_nodes,num_replicas,local_bsz,step_time,"
                                               "sync_time\n"
                                               "2,8,20,0.4,0.2\n");
  const std::string output = folder.Path("runs.csv");
  const ProcessResult result =
      Stepcast({"import", "adaptdl", placements, scalability, "--output", output});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const auto runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].workload, "bert_base");
  EXPECT_EQ(runs[0].device, "t4");
  EXPECT_EQ(runs[1].plan.placement, Placement({1, 3}));
  EXPECT_EQ(runs[1].step_time, Seconds(0.75));
  EXPECT_EQ(runs[1].exposed_sync, Seconds(0.25));
  EXPECT_EQ(runs[2].plan.workers(), 16);
  EXPECT_EQ(runs[3].workload, "resnet50");
  EXPECT_EQ(runs[3].plan.placement, Placement({4, 4}));
  // What is read is written again, byte for byte.
  EXPECT_EQ(FormatRuns(runs), FileContent(output));
  // Standard output is the same file.
  EXPECT_EQ(Stepcast({"import", "adaptdl", placements, scalability}).out, FileContent(output));
  // And it can be used at once.
  EXPECT_EQ(JsonOf({"evaluate", "--cluster", "aws-g4dn-12xlarge", "--runs", output})
                .at("overall")
                .at("runs"),
            4);
}

TEST(Import, JsonSaysWhatWasWritten) {
  const TempFolder folder;
  const std::string trace = folder.Write(
      "bert_placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n11,4,0.7,0.1\n");
  const Words import = {"import", "adaptdl", trace};
  const Json json = JsonOf(import + Words{"--output", folder.Path("runs.csv")});
  EXPECT_EQ(json.at("output"), folder.Path("runs.csv"));
  EXPECT_EQ(json.at("files"), 1);
  EXPECT_EQ(json.at("runs"), 2);
  EXPECT_EQ(json.at("workloads"), Json({{"bert_base", 2}}));
  EXPECT_EQ(ReadRuns(folder.Path("runs.csv")).size(), 2U);
  ExpectError(import + Words{"--json"}, {"--output: is required with --json"});
}

TEST(Import, NamesCanBeGiven) {
  const TempFolder folder;
  const std::string trace =
      folder.Write("own_placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n");
  const ProcessResult result =
      Stepcast({"import", "adaptdl", trace, "--workload", "vgg16", "--device", "v100"});
  EXPECT_NE(result.out.find("\nvgg16,v100,1,0,none,4,0.5"), std::string::npos) << result.out;
}

// ---- The main job, as ./run shows it.

TEST(MainJob, SaysWhatItIsFor) {
  const TempFolder folder;
  const ProcessResult result = RunProcess(
      {"bash", kSource + "/docs/tutorial/main-job.sh"},
      {.folder = folder.path(), .variables = {std::string("STEPCAST=") + STEPCAST_PROGRAM}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_LT(result.wall_s, 10);
  const std::string text = Unwrapped(result.out);
  for (const char* sentence : {"tupi5 or tupi6 sits on a link of about 100 Mbit/s",
                               "tupi1 and tupi2 sit on a link of about 1 Gbit/s",
                               "3 workers (3 x 1) on tupi2+tupi5+tupi6", "Expected gain: "}) {
    EXPECT_NE(text.find(sentence), std::string::npos) << sentence << "\n" << result.out;
  }
  EXPECT_EQ(FileContent(folder.Path("stepcast-tour/scaling.svg")).rfind("<?xml", 0), 0U);
}

// Hosts as the cluster file says them to be are told together, and slow ones one by one.
TEST(Pipeline, SoundHostsAreToldTogether) {
  const TempFolder folder;
  const std::string cluster =
      folder.Write("six.yaml",
                   "name: six\ndevice: rtx_4090\nnodes: 8\ndevices_per_node: 1\n"
                   "link: {bandwidth: 1 Gbit/s}\n");
  std::string runs =
      "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n"
      "resnet50,rtx_4090,1,0,none,128,0.204,a\n";
  for (const char* pair : {"a+b", "c+d", "e+f"}) {
    runs += "resnet50,rtx_4090,1-1,0,allreduce,128,1.37," + std::string(pair) + "\n";
  }
  runs += "resnet50,rtx_4090,1-1,0,allreduce,128,9.3,g+h\n";
  const ProcessResult result =
      Stepcast({"calibrate", "--cluster", cluster, "--runs", folder.Write("runs.csv", runs),
                "--output", folder.Path("fitted.yaml")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string text = Unwrapped(result.out);
  EXPECT_NE(text.find("g or h sits on a link of about 100 Mbit/s"), std::string::npos) << text;
  EXPECT_NE(text.find("6 other hosts sit on links as the cluster file says"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("a and b sit"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepcast
