// stepcast page: what-if questions as one HTML file.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/io/text_file.h"
#include "data/io/workload_file.h"
#include "predictor/cli/command.h"
#ifdef STEPCAST_HAS_WEB
#include "predictor/web/page.h"
#endif

namespace stepcast::cli {
namespace {

#ifdef STEPCAST_HAS_WEB

int WritePage(const Arguments& args) {
  const std::string output = args.Required("output");
  const Library library;
  web::Sources sources{args.Texts("cluster"), args.Texts("workload-file")};
  if (sources.clusters.empty()) sources.clusters = library.ClusterNames();
  serve::Inventory inventory;
  for (const std::string& source : sources.clusters) {
    Cluster cluster = library.LoadCluster(source);
    const auto has_name = [&](const Cluster& other) { return other.name == cluster.name; };
    if (std::any_of(inventory.clusters.begin(), inventory.clusters.end(), has_name)) {
      throw InputError(OptionPlace("cluster"), source,
                       fmt::format("has the name of two clusters, {}", cluster.name),
                       "each name once");
    }
    inventory.clusters.push_back(std::move(cluster));
  }
  for (const std::string& file : sources.workload_files) {
    inventory.workloads.push_back(ReadWorkload(file));
  }
  inventory.devices = library.Devices();
  const serve::Snapshot checked(inventory, 1, {});  // each name once
  const std::string page = web::MakePage(inventory, sources);
  WriteTextFile(output, page);
  if (args.Has("json")) {
    Json clusters = Json::array();
    for (const Cluster& cluster : inventory.clusters) clusters.push_back(cluster.name);
    PrintJson({{"output", output}, {"bytes", page.size()}, {"clusters", clusters}});
  } else {
    Print(NoteLine("written to " + output + ", which any browser opens", DetectStyle()));
  }
  return kDone;
}

#else

int WritePage(const Arguments& /*args*/) { return NotBuilt("the page", "emscripten and npm,"); }

#endif

}  // namespace

int RunPage(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("cluster", OptionValues("C"),
                        "cluster file, or the name of a shipped one; may be repeated (all that are "
                        "shipped)")("workload-file", OptionValues("F"),
                                    "workload file; may be repeated")(
      "output", OptionValue("FILE.html"), "the page; required")("json", "print one JSON object")(
      "help", "print this text");
  const Arguments args("page", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast page [--cluster C ...] [--workload-file F ...] --output FILE.html",
              "Writes one HTML file that answers what-if questions in a browser: the predictor\n"
              "itself, with these clusters, their calibrations, and all networks and devices\n"
              "known by name. It opens from disk and asks nothing of any network.",
              options,
              "  stepcast page --output what-if.html\n"
              "  stepcast page --cluster fitted.yaml --output what-if.html\n");
    return kDone;
  }
  args.RequireOtherFile("output", {"cluster", "workload-file"});
  return WritePage(args);
}

}  // namespace stepcast::cli
