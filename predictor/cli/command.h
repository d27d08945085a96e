// Shared by all commands: the entry in the list, options, errors, output.
#ifndef STEPCAST_PREDICTOR_CLI_COMMAND_H_
#define STEPCAST_PREDICTOR_CLI_COMMAND_H_

#include <boost/program_options.hpp>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/plan/fields.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/suggest.h"
#include "predictor/cli/console.h"
#include "predictor/cli/library.h"
#include "predictor/cli/option_place.h"
#include "predictor/json/json.h"
#include "predictor/predictor.h"

namespace stepcast::cli {

// Exit codes of the program, a contract.
inline constexpr int kDone = 0;
inline constexpr int kAnswerIsNo = 1;
inline constexpr int kBadInput = 2;
inline constexpr const char* kExitCodes = "0 done, 1 the answer is no, 2 usage or bad input";

inline constexpr const char* kWhatItDoes =
    "stepcast forecasts the training step: how long one step of data-parallel training takes,\n"
    "with what certainty, where scaling ends and why, and which batch to use.";

namespace po = boost::program_options;

struct Command {
  const char* name = nullptr;
  const char* summary = nullptr;  // one line of the list of commands
  int (*run)(const std::vector<std::string>& arguments) = nullptr;
  bool is_listed = true;  // among those that forecast
};
// All of them, in the order of the list.
std::span<const Command> Commands();

int RunPredict(const std::vector<std::string>& arguments);
int RunSweep(const std::vector<std::string>& arguments);
int RunLimits(const std::vector<std::string>& arguments);
int RunDiagnose(const std::vector<std::string>& arguments);
int RunRecommend(const std::vector<std::string>& arguments);
int RunExplain(const std::vector<std::string>& arguments);
int RunCalibrate(const std::vector<std::string>& arguments);
int RunEvaluate(const std::vector<std::string>& arguments);
int RunReport(const std::vector<std::string>& arguments);
int RunPlan(const std::vector<std::string>& arguments);
int RunImport(const std::vector<std::string>& arguments);
int RunMicrobench(const std::vector<std::string>& arguments);
int RunProbe(const std::vector<std::string>& arguments);
int RunProfile(const std::vector<std::string>& arguments);
int RunWorkloads(const std::vector<std::string>& arguments);
int RunMachines(const std::vector<std::string>& arguments);
int RunModels(const std::vector<std::string>& arguments);
int RunPage(const std::vector<std::string>& arguments);
int RunWatch(const std::vector<std::string>& arguments);
int RunServe(const std::vector<std::string>& arguments);
int RunMan(const std::vector<std::string>& arguments);
int RunCompletion(const std::vector<std::string>& arguments);

// What `stepcast probe` does: measures a network, shows what was measured, times a training, times
// steps whose compute is waited for, or all-reduces without any.
inline constexpr const char* kProbeKinds[] = {"network", "show", "script", "steps", "collectives"};

// The value of an option that is given once, and of one that may be repeated; `placeholder` stands
// for it in the help.
inline auto* OptionValue(const char* placeholder) {
  return po::value<std::string>()->value_name(placeholder);
}
inline auto* OptionValues(const char* placeholder) {
  return po::value<std::vector<std::string>>()->value_name(placeholder)->composing();
}

// The parsed options of a command.
class Arguments {
 public:
  // Parses `arguments`; an option that is not in `options` is an error. `positional` names the
  // option that takes what stands without one ("" for none).
  Arguments(const std::string& command, const po::options_description& options,
            const std::string& positional, const std::vector<std::string>& arguments);

  bool Has(const std::string& name) const { return values_.count(name) > 0; }
  std::string Text(const std::string& name) const { return values_[name].as<std::string>(); }
  // The text, or `otherwise` where the option is not given.
  std::string TextOr(const std::string& name, const std::string& otherwise) const {
    return Has(name) ? Text(name) : otherwise;
  }
  // The texts of a repeatable option; empty when it was not given.
  std::vector<std::string> Texts(const std::string& name) const;
  // The text, or an InputError that says the option is required.
  std::string Required(const std::string& name) const;
  // Throws InputError where the file that option `written` names is one that an option among `read`
  // names too: what was measured would be lost.
  void RequireOtherFile(const std::string& written, std::initializer_list<const char*> read) const;

 private:
  // The texts of an option, whether it may be repeated or not.
  std::vector<std::string> AllTexts(const std::string& name) const;

  // What stands for "allowed" where an option has no value: what the help says of it.
  std::string MeaningOf(const std::string& name) const;

  std::string command_;
  std::map<std::string, std::string> meanings_;  // of options, as the help has them
  po::variables_map values_;
};

// The time of day as profiles keep it, in UTC.
std::string TimeNow();

// The error with its dashes where a check of the plan, or of how it is trained, names an option of
// the command line.
InputError InOptionTerms(const InputError& error);

// The position of `text` among `names`; an InputError that lists them where it is none.
template <class E>
E ParseChoice(const std::string& text, const std::string& option,
              std::span<const char* const> names) {
  if (const auto found = FindAlike(text, names)) return static_cast<E>(*found);
  throw InputError(OptionPlace(option), text, "is not one of them" + DidYouMean(text, names),
                   JoinNames(names));
}

// One of `names`, by its position; `otherwise` where the option is not given.
template <class E>
E ReadChoice(const Arguments& arguments, const std::string& option,
             std::span<const char* const> names, E otherwise) {
  if (!arguments.Has(option)) return otherwise;
  return ParseChoice<E>(arguments.Text(option), option, names);
}

// The whole number within [low, high] that an option gives; `otherwise` where it is not given.
int ReadInteger(const Arguments& arguments, const std::string& option, int low, int high,
                int otherwise);

// Prints usage, options and examples, one command a line: long ones are broken here.
void PrintHelp(const std::string& usage, const std::string& what,
               const po::options_description& options, const std::string& examples);
// Command lines of at most `width` columns, broken before options as a shell reads them.
std::string BreakCommands(const std::string& lines, std::size_t width);

// The words of --help, for manual pages and completion.
struct Help {
  struct Option {
    std::string name;         // without its dashes
    std::string placeholder;  // of its value; empty for a switch
    std::string text;
    bool value_is_optional = false;  // --NAME or --NAME=VALUE
    bool takes_many = false;         // values that follow one another
  };
  std::string usage;  // a line for each form
  std::string what;
  std::vector<Option> options;
  std::string examples;
};
// The help that `command` would print for --help, by its parts.
Help ReadHelp(const Command& command);

// ---- The cluster, workload and plan that several commands ask for.

void AddTargetOptions(po::options_description* options);
void AddPlanOptions(po::options_description* options);
// One of them, whose help `of` stands in front of.
void AddPlanOption(const PlanField& field, const std::string& of, po::options_description* options);

struct Target {
  Library library;
  Cluster cluster;
  Workload workload;
  std::string device;
  std::optional<Device> facts;
  std::shared_ptr<const ProfiledCompute> profile;  // null without --profile

  Predictor MakePredictor() const { return {cluster, workload, facts, device, profile}; }
  Subject subject() const { return {cluster, workload, device, facts}; }
};

// All that is known by name, with what every --workload-file holds.
Library LibraryOf(const Arguments& arguments);
// What --device means without a cluster's file: any number of nodes with so many devices each.
Cluster NodesOf(const std::string& device, int devices);
// `workload` where --workload is missing; it is required where that is empty, unless --parameters
// tells the network's size. A device need not be told where something that was measured tells how
// long it computes. `device`, where it is not empty, is one of --over, for that of --device.
Target ReadTarget(const Arguments& arguments, const std::string& workload = "",
                  bool needs_device = true, const std::string& device = "");
// The batch is 0 where --local-batch is missing: a command that needs it says so by RequireBatch.
Plan ReadPlan(const Arguments& arguments, const Target& target);
void RequireBatch(const Plan& plan);
// Throws InputError for a host that the cluster cannot have: its file lists hosts, and neither they
// nor the calibration, which make up `known`, name it. Where the file lists none, any may be.
void RequireKnownHosts(const Cluster& cluster, const std::set<std::string>& known,
                       const std::vector<std::string>& hosts, const InputPlace& place);

// Sets what the option `key` ("workers", "bandwidth", ...) says of a plan. `of_key` is where the
// key itself stands: a wrong one is at fault there.
void SetPlanOption(const std::string& key, const std::string& text, const Cluster& cluster,
                   const InputPlace& of_key, Plan* plan);

// ---- Output.

// "8 workers (4 x 2), ring, local batch 128 x 4 accumulated": nodes x devices where all are equal,
// else the placement.
std::string DescribePlan(const Plan& plan);
// The heading "resnet50 on gce-t4 (t4): 8 workers ...".
std::string PlanHeading(const Target& target, const Plan& plan, const Style& style);
// "2.8 s  (90 % interval 2.58 s to 3.04 s)".
std::string IntervalText(const Prediction& prediction);
// What a node gets, and what it would need for nothing to wait; whether that binds, and what helps.
std::string InputText(SampleRate<> given, SampleRate<> needed);
// "25 MiB", "tensor".
std::string CapText(DataSize<> cap);
// "10 Gbit/s, round trip 2 ms, 1 % lost": what is stated; empty where nothing is.
std::string DescribeLink(const LinkFacts& link);

void Print(const std::string& text);
void PrintJson(const Json& json);
// A sentence on standard error.
void Tell(const std::string& sentence);
// Tells that this program is without `what`, and what to install; returns the exit code.
int NotBuilt(const std::string& what, const std::string& packages);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_COMMAND_H_
