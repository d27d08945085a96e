// stepcast import: runs from what people already have.
#include <fmt/format.h>

#include <cstdio>

#include "data/io/import_adaptdl.h"
#include "data/io/parse.h"
#include "data/io/runs.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

int RunImport(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("device", po::value<std::string>()->value_name("D"),
                        "device that the trace was measured on (t4)")(
      "workload", po::value<std::string>()->value_name("W"),
      "workload name of all files, instead of the one that each file is named after")(
      "output", po::value<std::string>()->value_name("F"), "runs CSV to write (standard output)")(
      "json", "print one JSON object about what was written; needs --output")("help",
                                                                              "print this text");
  po::options_description all;
  all.add(options).add_options()("input", po::value<std::vector<std::string>>());
  const Arguments args("import", all, "input", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast import adaptdl FILE.csv ... [--output RUNS.csv]",
              "Turns measurements of other tools into a runs CSV.\n\n"
              "  adaptdl   throughput traces of AdaptDL (Pollux): APP_placements.csv and\n"
              "            APP_scalability.csv. bert is bert_base, cifar10 resnet18_cifar10,\n"
              "            imagenet resnet50; other applications keep their name.",
              options,
              "  stepcast import adaptdl bert_placements.csv imagenet_placements.csv "
              "--output runs.csv\n");
    return kDone;
  }
  std::vector<std::string> inputs = args.Texts("input");
  if (inputs.empty()) {
    throw InputError({"", 0, "KIND"}, "", "is required", "adaptdl");
  }
  if (inputs.front() != "adaptdl") {
    throw InputError({"", 0, "KIND"}, inputs.front(), "is not a kind of input", "adaptdl");
  }
  inputs.erase(inputs.begin());
  if (inputs.empty()) throw InputError({"", 0, "FILE"}, "", "is required", "trace files");
  std::vector<Run> runs;
  for (const std::string& path : inputs) {
    std::vector<Run> more = ImportAdaptdl(path, args.Has("workload") ? args.Text("workload") : "",
                                          args.Has("device") ? args.Text("device") : "t4");
    runs.insert(runs.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
  const std::string text = FormatRuns(runs);
  if (!args.Has("output")) {
    if (args.Has("json")) {
      throw InputError(OptionPlace("output"), "", "is required with --json", "a file to write");
    }
    Print(text);
    return kDone;
  }
  WriteTextFile(args.Text("output"), text);
  if (args.Has("json")) {
    std::map<std::string, int> workloads;
    for (const Run& run : runs) ++workloads[run.workload];
    PrintJson({{"output", args.Text("output")},
               {"files", inputs.size()},
               {"runs", runs.size()},
               {"workloads", workloads}});
    return kDone;
  }
  std::fputs(
      fmt::format("stepcast: {} runs from {} files written to {}\n",
                  FormatCount(static_cast<double>(runs.size())), inputs.size(), args.Text("output"))
          .c_str(),
      stderr);
  return kDone;
}

}  // namespace stepcast::cli
