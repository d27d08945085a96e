// stepcast microbench: what each operation of some workloads costs on a device, measured.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>

#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/operation_text.h"
#include "data/workloads/catalog.h"
#include "microbench/harness/campaign.h"
#include "microbench/harness/ceilings.h"
#include "microbench/harness/journal.h"
#include "microbench/harness/load_backend.h"
#include "predictor/cli/command.h"
#include "predictor/cli/profile_option.h"
#include "predictor/cli/signals.h"

namespace stepcast::cli {
namespace {

constexpr const char* kAllWorkloads = "all";
constexpr int kMostMeasuredBatch = 1'000'000;
constexpr int kMostOfAKind = 4096;  // threads, or GPUs

// Refuses the last of the list where it is in there twice.
template <class T>
void RequireOnce(const std::vector<T>& list, const std::string& option, const std::string& text) {
  if (std::count(list.begin(), list.end(), list.back()) == 1) return;
  throw InputError(OptionPlace(option), text, "is given twice", "each once");
}

po::options_description MicrobenchOptions() {
  po::options_description options("options");
  options.add_options()("workload", OptionValues("W"),
                        "name in the catalogue (stepcast workloads) or of a workload file, or all; "
                        "may be repeated")("workload-file", OptionValues("F"),
                                           "workload file; may be repeated")(
      "batch", OptionValue("B,..."), "local batches to measure (1,8,32)")(
      "precision", OptionValue("P,..."), "fp32, tf32, fp16, bf16 (fp32)")(
      "optimizer", OptionValue("O"), "sgd, momentum, adam (momentum)")(
      "backend", OptionValue("K"), "cuda: a GPU with cuDNN and cuBLAS; onednn: the CPU (cuda)")(
      "gpu", OptionValue("N"), "which GPU (0)")("threads", OptionValue("N"),
                                                "threads of the CPU (as many as it has cores)")(
      "layout", OptionValue("L"),
      "channels-first, channels-last: images on the GPU (channels-first)")(
      "search", "time the library's algorithms and take the fastest, instead of its heuristic")(
      "budget", OptionValue("T"), "time to spend at most (2 min)")(
      "error", OptionValue("E"), "standard error of a step's sum that is good enough (0.005)")(
      "output", OptionValue("F"), "profile to write, or to go on with (DEVICE.profile.jsonl)")(
      "ceilings", "measure the device's peaks only, and print them as a cluster file's device")(
      "json", "print one JSON object")("help", "print this text");
  return options;
}

constexpr const char* kMicrobenchHelp =
    "Times every distinct operation of the workloads, forward, backward and update, and appends\n"
    "each result to a profile, which predict, sweep, recommend and calibrate take with --profile.\n"
    "Spends the budget where it cuts the uncertainty of a step most. Interrupted at any moment it\n"
    "loses nothing: the same command goes on where it ended, and further workloads, batches and\n"
    "precisions can be added to the same file.";
constexpr const char* kMicrobenchExamples =
    "  stepcast microbench --workload resnet50 --batch 8,32,128 --precision fp32,bf16\n"
    "  stepcast microbench --backend onednn --threads 1 --workload resnet18 --batch 2,8\n"
    "  stepcast microbench --ceilings >> my-cluster.yaml\n";

// "nvidia-h200.profile.jsonl"
std::string FileNameOf(const std::string& device) {
  std::string name;
  for (const char c : device) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) {
      name += static_cast<char>(std::tolower(u));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return (name.empty() ? "device" : name) + ".profile.jsonl";
}

// ---- Ceilings.

std::string DeviceBlock(const ProfiledDevice& device, const std::vector<MeasuredRate>& rates,
                        const std::map<std::string, std::string>& settings) {
  std::string text = fmt::format("device:\n  name: \"{}\"\n", device.name);
  std::string others;
  for (const MeasuredRate& rate : rates) {
    const bool known = std::any_of(std::begin(kPrecisionNames), std::end(kPrecisionNames),
                                   [&](const char* name) { return rate.name == name; });
    if (rate.name == "copy") {
      text += fmt::format("  memory_bandwidth: {:.4g} GB/s\n", rate.per_second / 1e9);
    } else if (known) {
      text += fmt::format("  {}: {:.4g} TFLOP/s\n", rate.name, rate.per_second / 1e12);
    } else {
      others += fmt::format("; {} {:.4g}/s", rate.name, rate.per_second);
    }
  }
  if (const auto memory = device.facts.find("memory"); memory != device.facts.end()) {
    text += "  memory: " + memory->second + "\n";
  }
  return text + fmt::format("  source: \"measured by stepcast microbench: {}; {}{}\"\n",
                            JoinFacts(device.facts), JoinFacts(settings), others);
}

Json CeilingsJson(const ProfiledDevice& device, const std::vector<MeasuredRate>& rates,
                  const std::map<std::string, std::string>& settings) {
  Json list = Json::array();
  for (const MeasuredRate& rate : rates) {
    const bool flop = rate.name.find("copy") == std::string::npos;
    list.push_back({{"name", rate.name},
                    {flop ? "flop_per_s" : "bytes_per_s", rate.per_second},
                    {"relative_error", rate.relative_error},
                    {"stable", rate.stable}});
  }
  return {{"name", device.name},
          {"kind", device.kind},
          {"facts", device.facts},
          {"settings", settings},
          {"rates", list}};
}

int PrintCeilings(Backend* backend, bool json) {
  const ProfiledDevice device = backend->Device();
  const std::vector<MeasuredRate> rates = MeasureCeilings(backend);
  if (json) {
    PrintJson(CeilingsJson(device, rates, backend->Settings()));
  } else {
    Print(DeviceBlock(device, rates, backend->Settings()));
  }
  for (const MeasuredRate& rate : rates) {
    if (rate.stable) continue;
    Tell(fmt::format("{} did not settle ({:.1f} %): is the device busy or throttled?", rate.name,
                     100 * rate.relative_error));
  }
  return kDone;
}

// ---- The campaign.

StateSpaceAxes ReadAxes(const Arguments& args) {
  const Library library = LibraryOf(args);
  std::vector<std::string> names = args.Texts("workload");
  if (names.empty()) {
    throw InputError(OptionPlace("workload"), "", "is required, or --ceilings",
                     "names of stepcast workloads, or all");
  }
  if (names.size() == 1 && names.front() == kAllWorkloads) names = WorkloadNames();
  StateSpaceAxes axes;
  for (const std::string& name : names) {
    axes.workloads.push_back(library.LoadWorkload(name));
    const Workload& w = axes.workloads.back();
    if (std::all_of(w.layers.begin(), w.layers.end(),
                    [](const Layer& layer) { return layer.operation.index() == 0; })) {
      throw InputError(OptionPlace("workload"), name, "has no layers with operations to measure",
                       "a workload whose file states them (stepcast import onnx writes such)");
    }
  }
  for (const std::string& text : SplitList(args.TextOr("batch", "1,8,32"))) {
    axes.batches.push_back(ParseInteger(text, OptionPlace("batch"), 1, kMostMeasuredBatch));
    RequireOnce(axes.batches, "batch", text);
  }
  for (const std::string& text : SplitList(args.TextOr("precision", "fp32"))) {
    axes.precisions.push_back(ParseChoice<Precision>(
        text, "precision", std::span(kPrecisionNames).first(kMeasuredPrecisionCount)));
    RequireOnce(axes.precisions, "precision", text);
  }
  if (args.Has("optimizer")) {
    axes.optimizer = ParseEnum<Optimizer>(args.Text("optimizer"), OptionPlace("optimizer"));
  }
  return axes;
}

BackendOptions ReadBackendOptions(const Arguments& args) {
  constexpr const char* kLayouts[] = {"channels-first", "channels-last"};
  BackendOptions options;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options.threads =
      ReadInteger(args, "threads", 1, kMostOfAKind, static_cast<int>(std::max(1L, cores)));
  options.device = ReadInteger(args, "gpu", 0, kMostOfAKind, options.device);
  options.channels_last = ReadChoice(args, "layout", kLayouts, 0) == 1;
  options.search = args.Has("search");
  return options;
}

std::string ProgressText(const CampaignProgress& p) {
  const std::string left = FormatDuration(Seconds(std::round(p.left_s)));
  return p.refining ? fmt::format("refining: worst step known to {}, at most {} more",
                                  FormatPercent(p.worst_error), left)
                    : fmt::format("{} of {} operations, {} left: {}", p.visited, p.states, left,
                                  FormatOperation(p.state->operation));
}

Json OutcomeJson(const CampaignOutcome& outcome, const std::string& path,
                 const ProfiledDevice& device) {
  Json sums = Json::array();
  for (const SumOutcome& s : outcome.sums) {
    sums.push_back({{"workload", s.sum.workload},
                    {"local_batch", s.sum.batch},
                    {"precision", NameOf(s.sum.precision)},
                    {"seconds", s.seconds},
                    {"relative_error",
                     std::isfinite(s.relative_error) ? Json(s.relative_error) : Json(nullptr)},
                    {"points", s.points},
                    {"measured", s.measured},
                    {"out_of_memory", s.out_of_memory},
                    {"unsupported", s.unsupported}});
  }
  return {{"output", path},
          {"device", device.name},
          {"end", kCampaignEndNames[static_cast<int>(outcome.end)]},
          {"points", outcome.points},
          {"measured", outcome.measured},
          {"taken_over", outcome.taken_over},
          {"missing", outcome.missing},
          {"out_of_memory", outcome.out_of_memory},
          {"unsupported", outcome.unsupported},
          {"busy", outcome.busy},
          {"throttled", outcome.throttled},
          {"samples", outcome.samples},
          {"outliers", outcome.outliers},
          {"elapsed_s", outcome.elapsed_s},
          {"steps", sums}};
}

void PrintOutcome(const CampaignOutcome& outcome, const std::string& path,
                  const ProfiledDevice& device) {
  const Style style = DetectStyle();
  Table table({LeftColumn("workload"), "batch", LeftColumn("precision"), "sum of layers",
               "known to", "operations"});
  for (const SumOutcome& s : outcome.sums) {
    std::string operations = fmt::format("{} of {}", s.measured, s.points);
    if (s.out_of_memory > 0) operations += fmt::format(", {} out of memory", s.out_of_memory);
    if (s.unsupported > 0) operations += fmt::format(", {} unsupported", s.unsupported);
    table.AddRow({s.sum.workload, std::to_string(s.sum.batch), NameOf(s.sum.precision),
                  s.measured > 0 ? FormatDuration(Seconds(s.seconds)) : "-",
                  s.measured > 0 ? FormatPercent(s.relative_error) : "-", operations});
  }
  Print(Heading(device.name, style) + table.Render(style, 2));
  std::string text =
      fmt::format("{} samples of {} points in {}, {} of them outliers; profile: {}",
                  FormatCount(outcome.samples), outcome.measured,
                  FormatDuration(Seconds(outcome.elapsed_s)), outcome.outliers, path);
  if (outcome.taken_over > 0) {
    text += fmt::format("; {} points were known from before", outcome.taken_over);
  }
  Print(NoteLine(text, style));
  const auto flag = [&](std::size_t count, const std::string& sentence) {
    if (count > 0) Print(FlagLine(fmt::format(fmt::runtime(sentence), count), style));
  };
  flag(outcome.missing, "{} points are missing: the same command measures them");
  flag(outcome.busy,
       "{} points were only measured while others used the device: their times may be too long");
  flag(outcome.throttled,
       "{} points were only measured while the device's clock was down: their times may be too "
       "long");
  flag(outcome.out_of_memory, "{} points do not fit the device's memory, and are recorded so");
  flag(outcome.unsupported, "{} points are unsupported by the back end: they will be scaled");
}

int Measure(const Arguments& args, const StateSpaceAxes& axes, const CampaignOptions& options,
            Backend* backend) {
  ComputeProfile now;
  now.device = backend->Device();
  now.backend = backend->Name();
  now.settings = backend->Settings();
  now.version = STEPCAST_VERSION;
  now.started = TimeNow();
  const std::string path = args.TextOr("output", FileNameOf(now.device.name));
  Journal journal(path, now);
  if (journal.was_torn()) {
    Tell(fmt::format("the last line of {} was torn and has been cut off", path));
  }
  const StateSpace space = MakeStateSpace(axes);
  for (const std::string& layer : space.unstated) {
    Tell(layer + " states no operation and is not measured");
  }
  ProgressLine line;
  CampaignHooks hooks;
  hooks.now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  hooks.time = TimeNow;
  hooks.stop = [] { return interrupted.load(); };
  hooks.progress = [&](const CampaignProgress& progress) {
    line.Show(progress.elapsed_s, ProgressText(progress));
  };
  const CampaignOutcome outcome = RunCampaign(space, backend, &journal, options, hooks);
  line.End();
  if (args.Has("json")) {
    PrintJson(OutcomeJson(outcome, path, now.device));
  } else {
    PrintOutcome(outcome, path, now.device);
  }
  if (outcome.end == CampaignEnd::kStopped) {
    Tell("interrupted; the same command goes on from here");
    return kAnswerIsNo;
  }
  return outcome.missing > 0 ? kAnswerIsNo : kDone;
}

}  // namespace

int RunMicrobench(const std::vector<std::string>& arguments) {
  const po::options_description options = MicrobenchOptions();
  const Arguments args("microbench", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast microbench --workload W ... [options]", kMicrobenchHelp, options,
              kMicrobenchExamples);
    return kDone;
  }
  const std::string name = args.TextOr("backend", kBackendNames[0]);
  ParseChoice<int>(name, "backend", kBackendNames);
  const bool ceilings = args.Has("ceilings");
  const auto refuse = [&](const std::vector<const char*>& others, const std::string& with) {
    for (const char* option : others) {
      if (!args.Has(option)) continue;
      throw InputError(OptionPlace(option), "", "has no meaning with " + with, "without it");
    }
  };
  if (name == "onednn") refuse({"gpu", "layout", "search"}, "--backend onednn");
  if (name == "cuda") refuse({"threads"}, "--backend cuda");
  if (ceilings) {
    refuse({"workload", "workload-file", "batch", "precision", "optimizer", "budget", "error",
            "output"},
           "--ceilings");
  }
  const BackendOptions backend_options = ReadBackendOptions(args);
  CampaignOptions campaign;
  if (args.Has("budget")) {
    campaign.budget_s = ParseDuration(args.Text("budget"), OptionPlace("budget")).si();
  }
  if (args.Has("error")) {
    campaign.relative_error = ParseNumber(args.Text("error"), OptionPlace("error"), 1e-4, 1);
  }
  StateSpaceAxes axes = ceilings ? StateSpaceAxes() : ReadAxes(args);

  if (!ceilings) StopInOrder();  // before the back end starts threads
  const LoadedBackend loaded = LoadBackend(name, backend_options, ModuleFolders());
  if (!loaded.backend) {
    const char* remedy =
        name == "cuda" ? "run this on a machine with an NVIDIA GPU, CUDA 12 or newer and cuDNN 9, "
                         "or measure the CPU with --backend onednn"
                       : "install oneDNN (libdnnl-dev) and build again";
    Tell(fmt::format("{}; {}", loaded.message, remedy));
    return kAnswerIsNo;
  }
  if (ceilings) return PrintCeilings(loaded.backend.get(), args.Has("json"));
  axes.overheads = loaded.backend->Overheads();
  axes.updates_at_once = loaded.backend->UpdatesAtOnce();
  return Measure(args, axes, campaign, loaded.backend.get());
}

}  // namespace stepcast::cli
