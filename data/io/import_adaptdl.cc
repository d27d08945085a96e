#include "data/io/import_adaptdl.h"

#include <algorithm>
#include <filesystem>

#include "data/io/csv.h"
#include "data/io/runs.h"
#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/utf8.h"
#include "data/values/workload_scope.h"

namespace stepcast {
namespace {

Placement DigitPlacement(const std::string& field, const InputPlace& place) {
  const std::string text(Trim(field));
  Placement placement;
  for (const char c : text) {
    if (c < '1' || c > '9') {
      throw InputError(place, field, "is not a placement", "one digit from 1 to 9 for each node");
    }
    placement.push_back(c - '0');
  }
  if (placement.empty()) throw InputError(place, "", "is empty", "one digit for each node");
  return placement;
}

Placement EvenPlacement(int nodes, int replicas) {
  Placement placement;
  for (int i = 0; i < nodes; ++i) {
    placement.push_back(replicas / nodes + (i < replicas % nodes ? 1 : 0));
  }
  return placement;
}

}  // namespace

std::string AdaptdlApplication(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string stem = file.stem().string();
  if (stem == "placements" || stem == "scalability") {
    return std::filesystem::absolute(file).parent_path().filename().string();
  }
  const std::size_t cut = stem.rfind('_');
  return cut == std::string::npos || cut == 0 ? stem : stem.substr(0, cut);
}

std::string AdaptdlWorkload(const std::string& application) {
  static constexpr struct {
    const char* application;
    const char* workload;
  } kKnown[] = {{"bert", "bert_base"},    {"cifar10", "resnet18_cifar10"},
                {"imagenet", "resnet50"}, {"deepspeech2", "deepspeech2"},
                {"yolov3", "yolov3"},     {"ncf", "ncf"}};
  for (const auto& known : kKnown) {
    if (application == known.application) return known.workload;
  }
  return application;
}

std::vector<Run> ImportAdaptdl(const std::string& path, const std::string& workload,
                               const std::string& device) {
  const CsvTable table = CsvTable::Read(path);
  if (!IsUtf8(path)) {
    throw InputError({path, 0, ""}, "", "has a name that is not UTF-8", "a name for its runs");
  }
  const std::string file = std::filesystem::path(path).filename().string();
  const auto placement_column = table.Column("placement");
  const bool scalability = !placement_column && table.Column("num_nodes");
  if (!placement_column && !scalability) {
    throw InputError({path, 1, "placement"}, "", "is a required column that is missing",
                     "a header with placement, or with num_nodes and num_replicas");
  }
  const std::size_t nodes_column = scalability ? table.RequiredColumn("num_nodes") : 0;
  const std::size_t replicas_column = scalability ? table.RequiredColumn("num_replicas") : 0;
  const std::size_t batch_column = table.RequiredColumn("local_bsz");
  const std::size_t step_column = table.RequiredColumn("step_time");
  const std::size_t sync_column = table.RequiredColumn("sync_time");

  const std::string name = CheckedWorkloadName(
      Trim(workload.empty() ? AdaptdlWorkload(AdaptdlApplication(path)) : workload),
      {path, 0, "workload"});
  const std::string its_device = CheckedName(Trim(device), {path, 0, "device"});
  std::size_t placed_nodes = 0;
  const auto place_nodes = [&](std::size_t count, const CsvRow& row, std::size_t column) {
    placed_nodes += count;
    if (placed_nodes <= kMostPlacedNodes) return;
    throw InputError(table.Place(row, column), Shortened(row.fields[column]),
                     "are too many with those before",
                     "at most " + std::to_string(kMostPlacedNodes) + " nodes in all rows");
  };
  std::vector<Run> runs;
  for (const CsvRow& row : table.rows()) {
    Run run;
    run.workload = name;
    run.device = its_device;
    run.place = {path, row.line, ""};
    run.source = file + " line " + std::to_string(row.line);
    const auto field = [&](std::size_t column) -> const std::string& { return row.fields[column]; };
    if (scalability) {
      const int nodes =
          ParseInteger(field(nodes_column), table.Place(row, nodes_column), 1, kMostNodes);
      const int replicas = ParseInteger(field(replicas_column), table.Place(row, replicas_column),
                                        nodes, std::min(kMostCount, nodes * kMostDevicesPerNode));
      place_nodes(static_cast<std::size_t>(nodes), row, nodes_column);
      run.plan.placement = EvenPlacement(nodes, replicas);
      if (replicas % nodes != 0) run.source += "; layout within nodes taken as even";
    } else {
      place_nodes(field(*placement_column).size(), row, *placement_column);
      run.plan.placement =
          DigitPlacement(field(*placement_column), table.Place(row, *placement_column));
    }
    run.plan.strategy = run.plan.workers() == 1 ? Strategy::kNone : Strategy::kAllreduce;
    run.plan.local_batch =
        ParseInteger(field(batch_column), table.Place(row, batch_column), 1, kMostBatch);
    CheckPlan(run.plan, [&](const FieldFacts& /*fact*/) {
      return table.Place(row, placement_column.value_or(nodes_column));
    });
    const double step = ParseNumber(field(step_column), table.Place(row, step_column), kStepTimes);
    run.step_time = Seconds(step);
    const double sync =
        ParseNumber(field(sync_column), table.Place(row, sync_column), kExposedTimes);
    if (sync <= step) {
      run.exposed_sync = Seconds(sync);
    } else {
      run.source += "; sync_time is longer than the step and was left out";
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace stepcast
