#include "predictor/cli/command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "data/io/machines.h"
#include "data/plan/bucket_words.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/controls.h"
#include "data/record/host_texts.h"
#include "data/record/link_path.h"
#include "data/values/compression.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "data/workloads/catalog.h"
#include "model/compute/carried_profile.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/training_option.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kHelpWidth = 100;

// Where PrintHelp leaves its words instead of printing them, while ReadHelp asks.
Help* help_wanted = nullptr;

// What other tools call an option, as CanonicalName spells it, and what it is here.
struct OtherOption {
  std::string_view theirs;
  const char* ours;
};
constexpr OtherOption kOtherOptions[] = {
    {"batch", "local-batch"},
    {"batchsize", "local-batch"},
    {"microbatchsize", "local-batch"},
    {"perdevicetrainbatchsize", "local-batch"},
    {"accumulate", "accumulation"},
    {"gradaccum", "accumulation"},
    {"gradientaccumulation", "accumulation"},
    {"gradientaccumulationsteps", "accumulation"},
    {"model", "workload"},
    {"network", "workload"},
    {"gpu", "device"},
    {"gpus", "workers"},
    {"numgpus", "workers"},
    {"ngpus", "workers"},
    {"numworkers", "workers"},
    {"worldsize", "workers"},
    {"nodes", "placement"},
    {"nnodes", "placement"},
    {"numnodes", "placement"},
    {"nprocpernode", "placement"},
    {"gpuspernode", "placement"},
    {"latency", "rtt"},
    {"ping", "rtt"},
    {"packetloss", "loss"},
    {"dtype", "precision"},
    {"amp", "precision"},
    {"fp16", "precision"},
    {"bf16", "precision"},
    {"zero", "shard"},
    {"fsdp", "shard"},
    {"parameterservers", "servers"},
    {"numps", "servers"},
    {"steptime", "measured"},
    {"out", "output"},
};

// The option of this command that `name` is called elsewhere, or else the nearest.
std::string OptionMeant(const std::string& name, const po::options_description& options) {
  const std::string spelled = CanonicalName(name);
  for (const OtherOption& other : kOtherOptions) {
    if (other.theirs == spelled && options.find_nothrow(other.ours, /*approx=*/false) != nullptr) {
      return DidYouMean("--" + std::string(other.ours));
    }
  }
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  return DidYouMean(name, known);
}

// Of many hosts the first few: "h0+h1+... (1,190 more)".
std::string HostsText(const std::vector<std::string>& hosts) {
  constexpr std::size_t kMostNamed = 20;
  constexpr std::size_t kFirst = 10;
  if (hosts.size() <= kMostNamed) return JoinHosts(hosts);
  return fmt::format("{}+... ({} more)", JoinHosts({hosts.begin(), hosts.begin() + kFirst}),
                     FormatCount(hosts.size() - kFirst));
}

// The network of --parameters, of which nothing but its size is known.
Workload NetworkOfSize(const Arguments& arguments) {
  const InputPlace place = OptionPlace("parameters");
  if (arguments.Has("workload")) {
    throw InputError(place, "", "says the same as --workload", "one of the two");
  }
  const std::int64_t parameters =
      ParseLongInteger(arguments.Text("parameters"), place, 1, kMostParameters);
  return WorkloadOfSize(fmt::format("a network of {} parameters", FormatCount(parameters)),
                        parameters);
}

}  // namespace

Arguments::Arguments(const std::string& command, const po::options_description& options,
                     const std::string& positional, const std::vector<std::string>& arguments)
    : command_(command) {
  for (const auto& option : options.options()) {
    meanings_[option->long_name()] = option->description();
  }
  po::positional_options_description positions;
  if (!positional.empty()) positions.add(positional.c_str(), -1);
  const std::string see = "see stepcast " + command + " --help";
  try {
    po::command_line_parser parser(arguments);
    parser.options(options).style(po::command_line_style::unix_style &
                                  ~po::command_line_style::allow_guessing);
    if (!positional.empty()) parser.positional(positions);
    const po::parsed_options parsed = parser.run();
    for (const po::option& option : parsed.options) {
      if (option.value.empty()) continue;
      const std::string& value = option.value.front();
      if (option.string_key.empty()) {
        throw InputError({"", 0, ""}, value, "belongs to no option", see);
      }
      // Boost takes whatever follows an option for its value.
      const std::string flag = value.substr(0, value.find('='));
      if (option.position_key < 0 && flag.rfind("--", 0) == 0 &&
          options.find_nothrow(flag.substr(2), /*approx=*/false) != nullptr) {
        throw InputError(OptionPlace(option.string_key), value,
                         "is the next option, where the value of this one was to stand", see);
      }
    }
    po::store(parsed, values_);
    po::notify(values_);
  } catch (const po::unknown_option& e) {
    // As Megatron and others have it.
    constexpr std::string_view kLengths[] = {"--seq-len",     "--seq-length",
                                             "--seq_len",     "--sequence-length",
                                             "--max-seq-len", "--max-seq-length"};
    if (std::find(std::begin(kLengths), std::end(kLengths), e.get_option_name()) !=
        std::end(kLengths)) {
      throw InputError({"", 0, ""}, e.get_option_name(), "is not an option of stepcast " + command,
                       "--workload NAME@TOKENS, like llama3_8b@4096");
    }
    throw InputError(
        {"", 0, ""}, e.get_option_name(),
        "is not an option of stepcast " + command + OptionMeant(e.get_option_name(), options), see);
  } catch (const po::invalid_command_line_syntax& e) {
    const std::string flag = e.get_option_name();
    if (e.kind() == po::invalid_command_line_syntax::extra_parameter) {
      throw InputError({"", 0, flag}, "", "takes no value", "without one");
    }
    throw InputError({"", 0, flag}, "", "has no value",
                     MeaningOf(flag.substr(std::min(flag.find_first_not_of('-'), flag.size()))));
  } catch (const po::multiple_occurrences& e) {
    throw InputError({"", 0, e.get_option_name()}, "", "is given twice", "once");
  } catch (const po::error& e) {
    throw InputError({"", 0, ""}, "", e.what(), see);
  }
}

std::vector<std::string> Arguments::Texts(const std::string& name) const {
  if (!Has(name)) return {};
  return values_[name].as<std::vector<std::string>>();
}

std::string Arguments::Required(const std::string& name) const {
  if (!Has(name)) {
    throw InputError(OptionPlace(name), "", "is required", MeaningOf(name));
  }
  return Text(name);
}

std::string Arguments::MeaningOf(const std::string& name) const {
  const auto known = meanings_.find(name);
  if (known == meanings_.end() || known->second.empty()) {
    return "see stepcast " + command_ + " --help";
  }
  return known->second.substr(0, known->second.find(';'));
}

std::vector<std::string> Arguments::AllTexts(const std::string& name) const {
  if (!Has(name)) return {};
  const auto* one = boost::any_cast<std::string>(&values_[name].value());
  return one != nullptr ? std::vector<std::string>{*one} : Texts(name);
}

void Arguments::RequireOtherFile(const std::string& written,
                                 std::initializer_list<const char*> read) const {
  if (!Has(written)) return;
  std::error_code error;  // of a file that is not there, which none can be
  if (!std::filesystem::is_regular_file(Text(written), error)) return;
  for (const char* name : read) {
    for (const std::string& text : AllTexts(name)) {
      // A capture may stand behind the name of its host.
      for (const std::string& path : {text, text.substr(text.find('=') + 1)}) {
        if (!std::filesystem::equivalent(Text(written), path, error)) continue;
        throw InputError(OptionPlace(written), Text(written),
                         "is a file that is read, and would be lost", "another file");
      }
    }
  }
}

int ReadInteger(const Arguments& arguments, const std::string& option, int low, int high,
                int otherwise) {
  if (!arguments.Has(option)) return otherwise;
  return ParseInteger(arguments.Text(option), OptionPlace(option), low, high);
}

std::string TimeNow() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string BreakCommands(const std::string& lines, std::size_t width) {
  const std::string joint = " \\";
  std::string out;
  std::istringstream stream(lines);
  for (std::string rest; std::getline(stream, rest);) {
    while (rest.size() > width) {
      const std::size_t at = rest.rfind(" --", width - joint.size());
      if (at == std::string::npos || rest.find_first_not_of(' ') >= at) break;
      out += rest.substr(0, at) + joint + '\n';
      rest = "     " + rest.substr(at);
    }
    out += rest + '\n';
  }
  return out;
}

void PrintHelp(const std::string& usage, const std::string& what,
               const po::options_description& options, const std::string& examples) {
  if (help_wanted != nullptr) {
    *help_wanted = {usage, what, {}, examples};
    for (const auto& option : options.options()) {
      const po::value_semantic& value = *option->semantic();
      const bool is_switch = value.max_tokens() == 0;
      help_wanted->options.push_back({option->long_name(), is_switch ? "" : value.name(),
                                      option->description(), !is_switch && value.min_tokens() == 0,
                                      value.max_tokens() > 1});
    }
    return;
  }
  std::stringstream text;
  text << "usage: " << usage << "\n\n" << what << "\n\n" << options;
  std::string out;
  for (std::string line; std::getline(text, line);) {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  if (!examples.empty()) out += "\nexamples:\n" + BreakCommands(examples, kHelpWidth);
  Print(out);
}

Help ReadHelp(const Command& command) {
  Help help;
  help_wanted = &help;
  command.run({"--help"});
  help_wanted = nullptr;
  return help;
}

void AddTargetOptions(po::options_description* options) {
  options->add_options()("cluster", OptionValue("C"),
                         "cluster file, or the name of a shipped one (stepcast machines)")(
      "workload", OptionValue("W"),
      "name in the catalogue (stepcast workloads) or of a workload file; with another size of "
      "input like resnet50@160, bert_base@128; a decoder by its numbers like "
      "gpt:layers=24:hidden=2048:heads=16@2048")("workload-file", OptionValues("F"),
                                                 "workload file; may be repeated")(
      "device", OptionValue("D"),
      "device, by default the cluster's; without --cluster one device a node");
  AddTrainingOptions(options);
  AddProfileOption(options);
}

void AddPlanOptions(po::options_description* options) {
  options->add_options()("workers", OptionValue("N"),
                         "devices to train on; nodes are filled one after another");
  for (const PlanField& field : PlanFields()) AddPlanOption(field, "", options);
}

void AddPlanOption(const PlanField& field, const std::string& of,
                   po::options_description* options) {
  auto* value = po::value<std::string>();
  if (field.placeholder == nullptr) {
    value->implicit_value("yes", "")->value_name("[=yes|no]");
  } else {
    value->value_name(field.placeholder);
  }
  options->add_options()(field.flag, value, (of + field.help).c_str());
}

Library LibraryOf(const Arguments& arguments) {
  Library library;
  for (const std::string& path : arguments.Texts("workload-file")) library.AddWorkloadFile(path);
  return library;
}

Cluster NodesOf(const std::string& device, int devices) {
  Cluster cluster;
  cluster.name = cluster.title = devices == 1 ? "nodes with one device each"
                                              : fmt::format("nodes with {} devices each", devices);
  cluster.device = device;
  cluster.devices_per_node = devices;
  cluster.nodes = kMostCount;
  return cluster;
}

Target ReadTarget(const Arguments& arguments, const std::string& workload, bool needs_device,
                  const std::string& varied_device) {
  Target target;
  const bool varied = !varied_device.empty();
  const bool stated = varied || arguments.Has("device");
  const auto device_or = [&](const std::string& otherwise) {
    return varied ? varied_device : arguments.TextOr("device", otherwise);
  };
  target.library = LibraryOf(arguments);
  std::optional<ComputeProfile> profile = ReadProfileOption(arguments);
  if (arguments.Has("cluster")) {
    target.cluster = target.library.LoadCluster(arguments.Text("cluster"));
  } else if (stated || profile || !needs_device) {
    const int devices = arguments.Has("placement")
                            ? DevicesOnFullestNode(ParsePlacement(arguments.Text("placement"),
                                                                  OptionPlace("placement")))
                            : 1;
    target.cluster = NodesOf(device_or(profile ? profile->device.name : "your devices"), devices);
  } else {
    throw InputError(OptionPlace("cluster"), "", "is required, or --device, or --profile",
                     "a cluster file, or one of stepcast machines");
  }
  const std::string device = device_or(target.cluster.device);
  target.facts = target.library.LookUpDevice(device, target.cluster);
  target.device = target.facts ? target.facts->name : device;
  target.workload = arguments.Has("parameters")
                        ? NetworkOfSize(arguments)
                        : target.library.LoadWorkload(arguments.Has("workload") || workload.empty()
                                                          ? arguments.Required("workload")
                                                          : workload);
  ReadTrainingOptions(arguments, target.cluster.calibration, target.device, &target.workload);
  // Without a data sheet only measurements tell how long it computes.
  if (needs_device && !target.facts && !profile && !target.cluster.calibration &&
      !target.workload.communication_only) {
    throw NoDataSheet(device, target.library.Devices(),
                      varied                     ? OptionPlace("over")
                      : stated                   ? OptionPlace("device")
                      : arguments.Has("cluster") ? PlaceOfDevice(arguments.Text("cluster"))
                                                 : OptionPlace("profile"));
  }
  if (profile) {
    profile->device.name = target.library.CanonicalDevice(profile->device.name, target.cluster);
    const std::optional<Device> measured =
        target.library.LookUpDevice(profile->device.name, target.cluster);
    if (measured && target.facts && measured->name != target.facts->name &&
        CanCarryOver(*profile, *measured, *target.facts)) {
      profile = CarryOver(*profile, *measured, *target.facts);
    }
    RequireProfileOf(profile->device.name, target.device, target.facts, OptionPlace("profile"));
    target.profile = std::make_shared<const ProfiledCompute>(*profile, target.workload);
  }
  return target;
}

void SetPlanOption(const std::string& key, const std::string& text, const Cluster& cluster,
                   const InputPlace& of_key, Plan* plan) {
  const InputPlace place = OptionPlace(key);
  if (key == "workers") {
    plan->placement = FillNodes(ParseInteger(text, place, 1, kMostCount), cluster.devices_per_node);
    return;
  }
  const PlanField* field = FindPlanField(key);
  if (field == nullptr) {
    std::string allowed = "workers";
    for (const PlanField& known : PlanFields()) allowed += ", " + std::string(known.flag);
    std::vector<std::string> keys = {"workers"};
    for (const PlanField& known : PlanFields()) keys.emplace_back(known.flag);
    throw InputError(of_key, key, "is not a part of a plan" + DidYouMean(key, keys), allowed);
  }
  field->read_flag(text, place, plan);
  if (key == "hosts") RequireKnownHosts(cluster, KnownHosts(cluster), plan->hosts, place);
}

Plan ReadPlan(const Arguments& arguments, const Target& target) {
  Plan plan;
  plan.local_batch = 0;
  if (arguments.Has("workers") && arguments.Has("placement")) {
    throw InputError(OptionPlace("workers"), "", "says the same as --placement", "one of the two");
  }
  if (arguments.Has("workers")) {
    SetPlanOption("workers", arguments.Text("workers"), target.cluster, OptionPlace("workers"),
                  &plan);
  }
  for (const PlanField& field : PlanFields()) {
    if (arguments.Has(field.flag)) {
      SetPlanOption(field.flag, arguments.Text(field.flag), target.cluster, OptionPlace(field.flag),
                    &plan);
    }
  }
  // Named hosts say how many nodes there are.
  if (arguments.Has("hosts") && !arguments.Has("workers") && !arguments.Has("placement")) {
    plan.placement.assign(plan.hosts.size(), target.cluster.devices_per_node);
  }
  return plan;
}

void RequireBatch(const Plan& plan) {
  if (plan.local_batch > 0) return;
  throw InputError(OptionPlace("local-batch"), "", "is required",
                   "samples of one micro-step on one device, like 32");
}

void RequireKnownHosts(const Cluster& cluster, const std::set<std::string>& known,
                       const std::vector<std::string>& hosts, const InputPlace& place) {
  if (cluster.hosts.empty()) return;
  for (const std::string& host : hosts) {
    if (known.count(host) > 0) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    const bool is_list = host.find(',') != std::string::npos;
    throw InputError(
        place, host,
        fmt::format("is no host of {}{}", cluster.name,
                    is_list ? "; names of hosts are joined by +" : DidYouMean(host, names)),
        fmt::format("{}; list others under hosts in the cluster file",
                    JoinNames(std::span<const std::string>(names))));
  }
}

std::string DescribeLink(const LinkFacts& link) {
  std::vector<std::string> facts;
  if (link.bandwidth) facts.push_back(FormatRate(*link.bandwidth));
  if (link.rtt) facts.push_back("round trip " + FormatDuration(*link.rtt));
  if (link.loss) facts.push_back(FormatLoss(*link.loss) + " lost");
  if (link.loss_burst) {
    facts.push_back(fmt::format("{} of it at once", FormatDuration(*link.loss_burst)));
  }
  if (link.congestion_control) facts.emplace_back(NameOf(*link.congestion_control));
  if (link.transport) facts.emplace_back(NameOf(*link.transport));
  if (link.others.value_or(0) > 0) {
    facts.push_back(fmt::format("shared with {:.3g} others", *link.others));
  }
  if (link.background.value_or(DataRate<>()).si() > 0) {
    facts.push_back(FormatRate(*link.background) + " of other traffic");
  }
  if (IsOversubscribed(link)) {
    facts.push_back(fmt::format("a core oversubscribed by {:.6g}", *link.oversubscription) +
                    (link.nodes_per_switch
                         ? fmt::format(", {} nodes on a switch", *link.nodes_per_switch)
                         : ""));
  }
  return JoinNames(facts);
}

namespace {

std::string DescribeServers(const ServerOptions& server) {
  std::string text;
  if (server.colocated) text += " on the workers' nodes";
  if (server.sharding != Sharding::kTensor)
    text += fmt::format(", sharding {}", NameOf(server.sharding));
  if (server.pipelined) text += ", pipelined";
  if (server.local_aggregation) text += ", one push a node";
  if (server.multicast) text += ", multicast";
  if (server.in_network_aggregation) text += ", added up in the network";
  if (server.staleness_bound) text += fmt::format(", staleness bound {}", *server.staleness_bound);
  return text;
}

}  // namespace

std::string CapText(DataSize<> cap) {
  for (const BucketWord& word : kBucketWords) {
    if (cap == word.cap) return std::string(word.word);
  }
  return FormatSize(cap);
}

// What is not told is the default.
std::string DescribePlan(const Plan& plan) {
  std::string text = fmt::format("{} worker{}", plan.workers(), plan.workers() == 1 ? "" : "s");
  if (plan.nodes() > 1) {
    const std::string placement = AreNodesEqual(plan.placement)
                                      ? fmt::format("{} x {}", plan.nodes(), plan.placement.front())
                                      : FormatPlacement(plan.placement);
    text += placement.size() <= 24 ? fmt::format(" ({})", placement)
                                   : fmt::format(" on {} nodes", plan.nodes());
  }
  if (!plan.hosts.empty()) text += " on " + HostsText(plan.hosts);
  if (plan.workers() > 1 || plan.servers > 0) {
    text += fmt::format(", {}", StrategyName(plan.strategy));
    if (plan.servers > 0) {
      text += fmt::format(" with {} server{}", plan.servers, plan.servers == 1 ? "" : "s");
    }
    text += DescribeServers(plan.server);
  }
  text += fmt::format(", local batch {}", plan.local_batch);
  if (plan.accumulation_steps > 1) {
    text += fmt::format(" x {} accumulated", plan.accumulation_steps);
  }
  if (plan.overlap == Overlap::kNone) text += ", nothing overlaps";
  if (plan.overlap == Overlap::kPNorm) text += ", overlap by p-norm";
  if (plan.bucket) text += ", bucket " + CapText(*plan.bucket);
  if (plan.bytes_per_parameter != Plan().bytes_per_parameter) {
    text += fmt::format(", {} bytes a parameter", plan.bytes_per_parameter);
  }
  if (plan.backup_workers > 0) {
    text += fmt::format(", {} of them backup", plan.backup_workers);
  }
  if (plan.slow_nodes > 0) {
    text += fmt::format(", {} {} at {:g} of the others' speed", plan.slow_nodes,
                        plan.slow_nodes == 1 ? "node" : "nodes", *plan.slow_speed);
    if (plan.slow_local_batch) {
      text += fmt::format(" with a local batch of {}", *plan.slow_local_batch);
    }
  }
  if (plan.shard == Shard::kHybrid) {
    text += ", parameters shared out within nodes";
  } else if (plan.shard != Shard::kNone) {
    text += fmt::format(", {} shared out", NameOf(plan.shard));
  }
  if (plan.local_steps > 1) text += fmt::format(", exchanged every {} steps", plan.local_steps);
  if (plan.compress.exists()) text += ", compressed " + FormatCompression(plan.compress);
  if (plan.compress_rate) text += fmt::format(" at {}", FormatRate(*plan.compress_rate));
  if (plan.input_rate) {
    text += fmt::format(", {} arrive at a node", FormatThroughput(*plan.input_rate));
  }
  const std::string link = DescribeLink(plan.link);
  const std::string server_link = DescribeLink(plan.server_link);
  if (!link.empty()) text += ", " + link;
  if (!server_link.empty()) text += ", servers " + server_link;
  return text;
}

std::string PlanHeading(const Target& target, const Plan& plan, const Style& style) {
  return Heading(fmt::format("{} on {} ({}): {}", DescribeWorkload(target.workload),
                             target.cluster.name, target.device, DescribePlan(plan)),
                 style);
}

std::string IntervalText(const Prediction& prediction) {
  return fmt::format("{}  (90 % interval {} to {})", FormatDuration(prediction.step_time),
                     FormatDuration(prediction.low), FormatDuration(prediction.high));
}

std::string InputText(SampleRate<> given, SampleRate<> needed) {
  const std::string text = fmt::format(
      "A node gets {} and could take {}: ", FormatThroughput(given), FormatThroughput(needed));
  return text + (needed <= given
                     ? "samples are there in time."
                     : "faster loaders or storage help, and no link, batch or accumulation does.");
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintJson(const Json& json) { Print(JsonText(json, 2) + "\n"); }

void Tell(const std::string& sentence) {
  std::fputs(("stepcast: " + Printable(sentence) + "\n").c_str(), stderr);
}

int NotBuilt(const std::string& what, const std::string& packages) {
  Tell(fmt::format("this stepcast was built without {}; install {} and build again", what,
                   packages));
  return kAnswerIsNo;
}

}  // namespace stepcast::cli
