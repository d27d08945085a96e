// stepcast import: runs, networks and profiles from what people already have.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/io/compute_profile_file.h"
#include "data/io/import_adaptdl.h"
#include "data/kineto/import_kineto.h"
#ifdef STEPCAST_HAS_ONNX
#include "data/onnx/import_onnx.h"
#endif
#include "data/io/runs.h"
#include "data/io/text_file.h"
#include "data/io/workload_file.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"
#include "predictor/cli/command.h"
#include "predictor/cli/import.h"
#include "predictor/cli/import_logs.h"
#ifdef STEPCAST_HAS_PCAP
#include "predictor/cli/import_pcap.h"
#endif
#include "predictor/cli/import_ranks.h"

namespace stepcast::cli {

po::options_description ImportOptions() {
  po::options_description options("options");
  options.add_options()("dim", OptionValues("NAME=N"),
                        "onnx: length of a symbolic dimension, as sequence=128; may be repeated")(
      "steps", OptionValue("F"), "pcap: CSV of when steps began and ended")(
      "address", OptionValues("HOST=A,..."), "pcap: addresses of a host; may be repeated")(
      "filter", OptionValue("E"), "pcap: packets to read, as tcpdump's expressions tell them")(
      "flows", "pcap: show all flows")(
      "output", OptionValue("F"),
      "file to write (standard output); pcap: CSV of each flow's packets and bytes by step");
  AddLogOptions(&options);
  options.add_options()("json",
                        "print one JSON object about what was read or written; adaptdl, onnx and "
                        "kineto need --output with it")("help", "print this text");
  AddTargetOptions(&options);
  AddPlanOptions(&options);
  return options;
}

void Refuse(const Arguments& args, const std::string& kind, const std::string& option) {
  if (!args.Has(option)) return;
  throw InputError(OptionPlace(option), "", "has no meaning for " + kind,
                   "see stepcast import --help");
}

void RefuseTrainingOptions(const Arguments& args, const std::string& kind) {
  for (const TrainingFact& fact : TrainingFacts()) Refuse(args, kind, fact.key);
}

void AllowOnly(const Arguments& args, const std::string& kind,
               const std::set<std::string>& allowed) {
  const po::options_description options = ImportOptions();
  for (const auto& option : options.options()) {
    const std::string name = option->long_name();
    if (name != "output" && name != "json" && allowed.count(name) == 0) Refuse(args, kind, name);
  }
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void RequireOne(const std::vector<std::string>& files, const std::string& kind) {
  if (files.size() == 1) return;
  throw InputError({"", 0, "FILE"}, files[1], "is a second file", "one file of kind " + kind);
}

int Deliver(const Arguments& args, const std::string& text, std::size_t most_bytes,
            const std::string& sentence, const Json& facts) {
  if (text.size() > most_bytes) {
    throw InputError(OptionPlace("output"), fmt::format("{} MiB", text.size() >> 20),
                     "is more than such a file may hold",
                     fmt::format("at most {} MiB", most_bytes >> 20));
  }
  if (!args.Has("output")) {
    if (args.Has("json")) {
      throw InputError(OptionPlace("output"), "", "is required with --json", "a file to write");
    }
    Print(text);
    return kDone;
  }
  WriteTextFile(args.Text("output"), text);
  if (args.Has("json")) {
    Json json = {{"output", args.Text("output")}};
    json.update(facts);
    PrintJson(json);
    return kDone;
  }
  Tell(sentence + " written to " + args.Text("output"));
  return kDone;
}

namespace {

int ImportTraces(const Arguments& args, const std::vector<std::string>& files) {
  AllowOnly(args, "adaptdl", {"device", "workload"});
  std::vector<Run> runs;
  for (const std::string& path : files) {
    std::vector<Run> more =
        ImportAdaptdl(path, args.TextOr("workload", ""), args.TextOr("device", "t4"));
    runs.insert(runs.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
  std::map<std::string, int> workloads;
  for (const Run& run : runs) ++workloads[run.workload];
  return Deliver(args, FormatRuns(runs), kMostCsvBytes,
                 fmt::format("{} runs from {} files", FormatCount(runs.size()), files.size()),
                 {{"files", files.size()}, {"runs", runs.size()}, {"workloads", workloads}});
}

#ifdef STEPCAST_HAS_ONNX
int ImportNetwork(const Arguments& args, const std::vector<std::string>& files) {
  constexpr std::int64_t kLongest = 1'000'000'000;
  AllowOnly(args, "onnx", {"workload", "dim"});
  RequireOne(files, "onnx");
  OnnxOptions options;
  if (args.Has("workload"))
    options.name = CheckedWorkloadName(args.Text("workload"), OptionPlace("workload"));
  for (const std::string& text : args.Texts("dim")) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      throw InputError(OptionPlace("dim"), text, "has no length", "NAME=N");
    }
    options.dims[text.substr(0, equals)] =
        ParseLongInteger(text.substr(equals + 1), OptionPlace("dim"), 1, kLongest);
  }
  const Workload w = ImportOnnx(files.front(), options);
  const auto measurable = std::count_if(w.layers.begin(), w.layers.end(), [](const Layer& layer) {
    return layer.operation.index() > 0;
  });
  return Deliver(args, FormatWorkload(w), kMostYamlBytes,
                 fmt::format("{}: {} layers, {} trainable parameters, {:.4g} GFLOP forward", w.name,
                             w.layers.size(), FormatCount(w.trainable_parameters),
                             w.forward_flop().si() / 1e9),
                 {{"workload", w.name},
                  {"layers", w.layers.size()},
                  {"measurable_layers", measurable},
                  {"trainable_parameters", w.trainable_parameters},
                  {"forward_flop", CountJson(w.forward_flop().si())}});
}
#endif

int ImportTrainingTrace(const Arguments& args, const std::vector<std::string>& files) {
  AllowOnly(args, "kineto", {});
  RequireOne(files, "kineto");
  const KinetoImport import = ImportKineto(files.front());
  const KinetoSummary& s = import.summary;
  std::size_t calls = 0;
  for (const MeasuredSamples& samples : import.profile.samples) calls += samples.seconds.size();
  Json kernels = Json::array();
  for (const KernelTime& kernel : s.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"calls", kernel.calls},
                       {"total_s", kernel.total_s},
                       {"mean_s", kernel.mean_s}});
  }
  const int code = Deliver(
      args, FormatComputeProfile(import.profile), kMostProfileBytes,
      fmt::format("{} calls of layers in {} steps", FormatCount(calls), s.steps),
      {{"device", import.profile.device.name},
       {"steps", s.steps},
       {"step_time_s", s.step_time_s > 0 ? Json(s.step_time_s) : Json(nullptr)},
       {"device_busy_share", s.device_busy_share > 0 ? Json(s.device_busy_share) : Json(nullptr)},
       {"calls", calls},
       {"unattributed_s", s.unattributed_s},
       {"kernels", kernels}});
  if (args.Has("json") || !args.Has("output")) return code;
  if (s.step_time_s > 0) {
    Tell(fmt::format("a step took {} (median)", FormatDuration(Seconds(s.step_time_s))));
  }
  std::vector<std::pair<double, std::string>> others;
  for (const auto& [name, seconds] : s.unattributed_s) others.emplace_back(seconds, name);
  std::sort(others.rbegin(), others.rend());
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, others.size()); ++i) {
    Tell(fmt::format("no layer: {} of {}", FormatDuration(Seconds(others[i].first)),
                     others[i].second));
  }
  if (others.size() > kShown) {
    Tell(fmt::format("and {} more: --json lists them", others.size() - kShown));
  }
  return code;
}

}  // namespace

int RunImport(const std::vector<std::string>& arguments) {
  const po::options_description options = ImportOptions();
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("import", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp(
        "stepcast import KIND FILE ... [--output F]\n       stepcast import --guess FILE",
        "Turns what other tools made into files of stepcast.\n\n"
        "  steps     the log of a training (Keras, TensorFlow, PyTorch, progress bars of tqdm\n"
        "            and Lightning, Hugging Face, Megatron, DeepSpeed, MXNet, Horovod, ...;\n"
        "            of srun, torchrun or mpirun too) into a row of runs\n"
        "  nccl-tests, osu\n"
        "            tables of all-reduces into a runs CSV of workloads message_N, which\n"
        "            calibrate takes; of osu_latency and osu_bw, facts of a link\n"
        "  iperf3, ping, ethtool, ss\n"
        "            what they print (iperf3 --json, ss -ti) into the part of a cluster file that\n"
        "            states a link, and options of diagnose\n"
        "  adaptdl   throughput traces of AdaptDL (Pollux), APP_placements.csv and\n"
        "            APP_scalability.csv, into a runs CSV. bert is bert_base, cifar10\n"
        "            resnet18_cifar10, imagenet resnet50; others keep their name.\n"
        "  onnx      a network (.onnx) into a workload file: layers with shapes, parameters\n"
        "            and work. Export it for training (TrainingMode.TRAINING), or batch\n"
        "            normalisations are gone.\n"
        "  kineto    a PyTorch profiler trace (.json, record_shapes=True) of training steps\n"
        "            into a profile: the times of its layers.\n"
        "  kineto-ranks\n"
        "            the traces of the ranks of one training, into what of their communication\n"
        "            is exposed, their messages, who is waited for, and a row of runs\n"
        "  pcap      captures of the hosts of a training (HOST=FILE, or FILE), into its\n"
        "            traffic by flow and step, beside what a plan should send.\n\n"
        "adaptdl takes --device (t4) and --workload, onnx --workload: names, instead of those\n"
        "that files are named after. pcap takes those of a plan, as predict does. steps,\n"
        "nccl-tests, osu and kineto-ranks take them for the row that they write.",
        options,
        "  stepcast import --guess train.log\n"
        "  stepcast import steps train.log --pattern \"step: (?<ms>[0-9.]+) ms\"\n"
        "  stepcast import steps train.log --workload resnet50 --device v100 --local-batch 32 "
        "--workers 4 --output runs.csv\n"
        "  stepcast import nccl-tests all_reduce.txt --output runs.csv\n"
        "  stepcast import osu osu_allreduce.txt --device cpu --placement 1-1 --output runs.csv\n"
        "  stepcast import iperf3 iperf3.json\n"
        "  stepcast import adaptdl bert_placements.csv imagenet_placements.csv "
        "--output runs.csv\n"
        "  stepcast import onnx model.onnx --dim sequence=128 --output model.yaml\n"
        "  stepcast import kineto trace.json --output gpu.profile.jsonl\n"
        "  stepcast import kineto-ranks rank0.json rank1.json --workload resnet50 --device v100 "
        "--local-batch 32 --placement 1-1 --output runs.csv\n"
        "  stepcast import pcap n1.pcap n2.pcap --steps steps.csv --cluster lab.yaml "
        "--workload resnet50 --local-batch 32 --workers 2\n");
    return kDone;
  }
  std::vector<std::string> files = args.Texts("input");
  if (args.Has("guess")) {
    AllowOnly(args, "--guess", {"guess"});
    Refuse(args, "--guess", "output");
    if (!files.empty()) {
      throw InputError(OptionPlace("guess"), files.front(), "is a second file", "one FILE");
    }
    return GuessKind(args, args.Text("guess"));
  }
  if (files.empty()) {
    throw InputError({"", 0, "KIND"}, "", "is required",
                     fmt::format("{}", fmt::join(kImportKinds, ", ")));
  }
  const std::string kind = files.front();
  files.erase(files.begin());
  if (std::find(std::begin(kImportKinds), std::end(kImportKinds), kind) == std::end(kImportKinds)) {
    throw InputError({"", 0, "KIND"}, kind, "is not a kind of input",
                     fmt::format("{}", fmt::join(kImportKinds, ", ")));
  }
  if (files.empty()) throw InputError({"", 0, "FILE"}, "", "is required", "files of kind " + kind);
  args.RequireOtherFile("output", {"input", "cluster", "workload-file", "profile", "steps"});
  if (kind == "adaptdl") return ImportTraces(args, files);
  if (kind == "steps") return ImportSteps(args, files);
  if (kind == "nccl-tests" || kind == "osu") return ImportCollectives(args, kind, files);
  for (const char* link : {"iperf3", "ping", "ethtool", "ss"}) {
    if (kind == link) return ImportLink(args, kind, files);
  }
  if (kind == "kineto") return ImportTrainingTrace(args, files);
  if (kind == "kineto-ranks") return ImportRanks(args, files);
  if (kind == "pcap") {
#ifdef STEPCAST_HAS_PCAP
    Refuse(args, kind, "dim");
    RefuseLogOptions(args, kind);
    return ImportTraffic(args, files);
#else
    return NotBuilt("libpcap", "libpcap-dev");
#endif
  }
#ifdef STEPCAST_HAS_ONNX
  return ImportNetwork(args, files);
#else
  return NotBuilt("ONNX", "libonnx-dev");
#endif
}

}  // namespace stepcast::cli
