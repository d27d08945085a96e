// stepcast workloads, stepcast machines: what is known by name.
#include <fmt/format.h>

#include "data/io/machines.h"
#include "data/io/workload_file.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

std::string Peak(const std::optional<WorkRate<>>& rate) {
  return rate ? FormatNumber(rate->in(kTeraflopPerSecond)) : "";
}

Json DeviceJson(const Device& d) {
  return {{"name", d.name},
          {"title", d.title},
          {"fp32_tflop_per_s", OptionalJson(d.fp32, kTeraflopPerSecond)},
          {"tf32_tflop_per_s", OptionalJson(d.tf32, kTeraflopPerSecond)},
          {"fp16_tflop_per_s", OptionalJson(d.fp16, kTeraflopPerSecond)},
          {"bf16_tflop_per_s", OptionalJson(d.bf16, kTeraflopPerSecond)},
          {"fp8_tflop_per_s", OptionalJson(d.fp8, kTeraflopPerSecond)},
          {"memory_bytes", d.memory ? CountJson(d.memory->in(kBytes)) : Json(nullptr)},
          {"memory_bandwidth_gb_per_s", OptionalJson(d.memory_bandwidth, kGigabytesPerSecond)},
          {"power_w", OptionalJson(d.power_w)},
          {"source", d.source}};
}

// What load() gives of a name that stands without an option; `word` is what help calls it, and what
// an error names that names no file.
template <class Load>
auto LoadNamed(const char* word, const Load& load) {
  try {
    return load();
  } catch (const InputError& e) {
    throw e.place().file.empty() ? e.At({"", 0, word}) : e;
  }
}

}  // namespace

int RunWorkloads(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("workload-file", OptionValues("F"), "workload file; may be repeated")(
      "json", "print one JSON object")("help", "print this text");
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("workloads", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast workloads [NAME ...]",
              "Lists the workload catalogue; with names, prints each layer by layer as a workload\n"
              "file that can be changed and given back with --workload-file.",
              options, "  stepcast workloads\n  stepcast workloads resnet50 > mine.yaml\n");
    return kDone;
  }
  const Library library = LibraryOf(args);
  const std::vector<std::string> wanted = args.Texts("input");
  const auto load = [&](const std::string& name) {
    return LoadNamed("NAME", [&] { return library.LoadWorkload(name); });
  };
  if (!wanted.empty() && !args.Has("json")) {
    for (const std::string& name : wanted) Print(FormatWorkload(load(name)));
    return kDone;
  }
  Json json = Json::array();
  Table table({LeftColumn("name"),
               "parameters",
               "gradients",
               {"forward", "GFLOP"},
               "layers",
               LeftColumn("title")});
  for (const std::string& name : wanted.empty() ? library.AllWorkloadNames() : wanted) {
    const Workload w = load(name);
    if (args.Has("json")) {
      json.push_back(WorkloadJson(w));
    } else {
      table.AddRow({w.name, FormatCount(w.parameters), FormatSize(w.gradient_bytes),
                    w.layers.empty() ? "" : FormatNumber(w.forward_flop().in(kGigaflop)),
                    w.layers.empty() ? "" : std::to_string(w.layers.size()), w.title});
    }
  }
  if (args.Has("json")) {
    PrintJson(Json{{"workloads", json}});
  } else {
    Print(table.Render(DetectStyle()));
  }
  return kDone;
}

int RunMachines(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("json", "print one JSON object")("help", "print this text");
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("machines", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast machines [CLUSTER ...]",
              "Lists the shipped clusters and devices; with names, prints each cluster as a file\n"
              "that can be changed and given back with --cluster.",
              options, "  stepcast machines\n  stepcast machines gce-t4 > mine.yaml\n");
    return kDone;
  }
  const Library library;
  const std::vector<std::string> wanted = args.Texts("input");
  const auto load = [&](const std::string& name) {
    return LoadNamed("CLUSTER", [&] { return library.LoadCluster(name); });
  };
  if (!wanted.empty() && !args.Has("json")) {
    for (const std::string& name : wanted) Print(FormatCluster(load(name)));
    return kDone;
  }
  Json clusters = Json::array();
  Json devices = Json::array();
  Table cluster_table({LeftColumn("cluster"), "nodes", "devices", LeftColumn("device"), "link",
                       LeftColumn("title")});
  for (const std::string& name : wanted.empty() ? library.ClusterNames() : wanted) {
    const Cluster c = load(name);
    clusters.push_back(ClusterJson(c));
    cluster_table.AddRow({c.name, std::to_string(c.nodes),
                          std::to_string(c.nodes * c.devices_per_node), c.device,
                          c.link.bandwidth ? FormatRate(*c.link.bandwidth) : "", c.title});
  }
  Table device_table({LeftColumn("device"),
                      {"fp32", "TFLOP/s"},
                      {"tf32", "TFLOP/s"},
                      {"fp16", "TFLOP/s"},
                      "memory",
                      {"bandwidth", "GB/s"},
                      LeftColumn("title")});
  for (const Device& d : library.Devices()) {
    devices.push_back(DeviceJson(d));
    device_table.AddRow(
        {d.name, Peak(d.fp32), Peak(d.tf32), Peak(d.fp16), d.memory ? FormatSize(*d.memory) : "",
         d.memory_bandwidth ? FormatNumber(d.memory_bandwidth->in(kGigabytesPerSecond)) : "",
         d.title});
  }
  if (args.Has("json")) {
    Json json;
    json["clusters"] = clusters;
    if (wanted.empty()) json["devices"] = devices;
    PrintJson(json);
    return kDone;
  }
  const Style style = DetectStyle();
  Print(cluster_table.Render(style) + "\n" + device_table.Render(style));
  return kDone;
}

}  // namespace stepcast::cli
