// The program `stepcast`: finds the command, and turns its outcome into an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "data/plan/fields.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

constexpr Command kCommands[] = {
    {"predict", "one plan: step time with interval, breakdown, traffic, memory", RunPredict},
    {"sweep", "many plans: a table, JSON or a plot", RunSweep},
    {"limits", "where scaling ends, and why", RunLimits},
    {"recommend", "which batch, accumulation, workers, servers to use", RunRecommend},
    {"diagnose", "why a measured step is slow, what to do, what to measure next", RunDiagnose},
    {"watch", "a running job beside its forecast: drift, and its likely cause", RunWatch},
    {"explain", "every term of one prediction: formula, inputs, source, elasticity", RunExplain},
    {"calibrate", "fit the model to measured runs of a cluster", RunCalibrate},
    {"evaluate", "predicted against measured", RunEvaluate},
    {"report", "a calibration as a page to read, hand on and print", RunReport},
    {"plan", "which runs to measure next, and what each would tell", RunPlan},
    {"import", "runs, profiles and networks from other tools", RunImport},
    {"microbench", "measure what layers cost on a device", RunMicrobench},
    {"probe", "measure the network between hosts, or a training's steps", RunProbe},
    {"profile", "what such measurements say, layer by layer", RunProfile},
    {"page", "what-if questions in a browser: one HTML file", RunPage},
    {"serve", "answer predictions over HTTP and gRPC", RunServe},
    {"workloads", "the networks known by name", RunWorkloads},
    {"machines", "the clusters and devices known by name", RunMachines},
    {"models", "the formulas: what each says, where it holds, its source", RunModels},
    {"man", "manual pages of the program and its commands", RunMan, false},
    {"completion", "completion of commands and options in a shell", RunCompletion, false},
};

std::string Usage() {
  std::string text = kWhatItDoes + std::string("\n\nusage: stepcast COMMAND [options]\n\n");
  for (const Command& command : kCommands) {
    if (!command.is_listed) continue;
    text += fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  return text +
         "\nstepcast COMMAND --help tells more, with examples. All of these take --json.\n"
         "stepcast man prints manual pages, stepcast completion what a shell completes by.\n"
         "Exit codes: " +
         kExitCodes + ".\n";
}

int RunProgram(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(Usage().c_str(), stderr);
    return kBadInput;
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() > 1) return RunProgram({arguments[1], "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    Print(Usage());
    return kDone;
  }
  if (name == "--version") {
    Print("stepcast " STEPCAST_VERSION "\n");
    return kDone;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  }
  std::vector<const char*> names;
  for (const Command& command : kCommands) {
    if (command.is_listed) names.push_back(command.name);
  }
  throw InputError({"", 0, "COMMAND"}, name, "is not a command" + DidYouMean(name, names),
                   JoinNames(names));
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

InputError InOptionTerms(const InputError& error) {
  const InputPlace& place = error.place();
  const bool is_option = place.key == "workload" || FindPlanField(place.key) != nullptr ||
                         FindTrainingFact(place.key) != nullptr;
  if (!place.file.empty() || !is_option) return error;
  return error.At(OptionPlace(place.key));
}

}  // namespace stepcast::cli

int main(int argc, char** argv) {
  int code = stepcast::cli::kBadInput;
  try {
    code = stepcast::cli::RunProgram({argv + 1, argv + argc});
  } catch (const stepcast::InputError& e) {
    std::fprintf(stderr, "stepcast: %s\n", stepcast::cli::InOptionTerms(e).what());
    return stepcast::cli::kBadInput;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "stepcast: %s: there is no memory for so much; fewer workers, plans or layers at "
                 "once take less\n",
                 argc > 1 ? argv[1] : "");
    return stepcast::cli::kBadInput;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "stepcast: %s\n", e.what());
    return stepcast::cli::kBadInput;
  }
  // Also where an earlier write failed, of which a flush tells nothing.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("stepcast: standard output cannot be written\n", stderr);
    return stepcast::cli::kBadInput;
  }
  return code;
}
