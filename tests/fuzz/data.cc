// Files and texts that the rooms of data read, but for those of other tools.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/record/operation_counts.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/operation_text.h"
#include "data/values/placement.h"
#include "data/values/suggest.h"
#include "data/values/utf8.h"
#include "data/workloads/catalog.h"
#include "model/compute/profiled_compute.h"
#include "predictor/compiled_plan.h"
#include "predictor/json/json.h"
#include "tests/fuzz/door.h"
#include "tests/fuzz/written.h"
#include "tests/support/devices.h"
#include "tests/support/markdown.h"

namespace stepcast::fuzz {
namespace {

Workload Perceptron() { return FindWorkload("mlp_mnist").value(); }

// What strategies make of a few of the cluster's nodes.
void RequireAnswers(const Cluster& cluster, const Workload& workload,
                    const std::optional<Device>& facts) {
  Plan plan;
  plan.placement.assign(static_cast<std::size_t>(std::min(cluster.nodes, 3)),
                        std::min(cluster.devices_per_node, 2));
  plan.local_batch = 8;
  Try([&] {
    const Predictor predictor(cluster, workload, facts);
    for (const Strategy strategy : {Strategy::kAuto, Strategy::kPsSync, Strategy::kPsAsync}) {
      plan.strategy = strategy;
      plan.servers = UsesServers(strategy) ? 2 : 0;
      RequireAnswer(predictor, plan);
    }
  });
}

STEPCAST_DOOR(cluster) {
  const Cluster cluster = ParseCluster(input, "cluster.yaml");
  RequireReadAgain(cluster);
  RequireFiniteJson(ClusterJson(cluster), "cluster");
  RequireAnswers(cluster, Perceptron(), cluster.device_facts ? cluster.device_facts : T4());
}

STEPCAST_DOOR(devices) {
  const std::vector<Device> devices = ReadDevices(FileOf(input, "devices.yaml"));
  constexpr std::size_t kAsked = 4;
  for (std::size_t i = 0; i < std::min(devices.size(), kAsked); ++i) {
    Require(FindDevice(devices, devices[i].name).has_value(), "no device " + devices[i].name);
    Cluster cluster;
    cluster.name = cluster.title = "lab";
    cluster.device = devices[i].name;
    cluster.device_facts = devices[i];
    cluster.nodes = 2;
    RequireReadAgain(cluster);
    RequireAnswers(cluster, Perceptron(), devices[i]);
  }
}

STEPCAST_DOOR(workload) {
  const Workload workload = ParseWorkload(input, "workload.yaml");
  RequireReadAgain(workload);
  RequireFiniteJson(WorkloadJson(workload), "workload");
  Cluster cluster;
  cluster.device = "t4";
  cluster.nodes = 2;
  RequireAnswers(cluster, workload, T4());
}

// A name in the catalogue, which may have a size of input or say a message's.
STEPCAST_DOOR(workload_name) {
  const std::optional<Workload> workload = FindWorkload(input);
  if (!workload) throw InputError({}, input, "is no name");
  RequireReadAgain(*workload);
  const std::optional<Workload> again = FindWorkload(workload->name);
  Require(again && *again == *workload, "the workload's own name is that of another");
}

STEPCAST_DOOR(runs) { RequireReadAgain(ParseRuns(input, "runs.csv")); }

STEPCAST_DOOR(profile) {
  const ReadProfile read = ParseComputeProfile(input, "device.profile.jsonl");
  Require(read.whole_bytes <= input.size() && read.torn == (read.whole_bytes < input.size()),
          "of " + std::to_string(input.size()) + " bytes " + std::to_string(read.whole_bytes) +
              " are whole");
  RequireReadAgain(read.profile);
  const Workload workload = Perceptron();
  const auto compute = std::make_shared<ProfiledCompute>(read.profile, workload);
  Cluster cluster;
  cluster.device = read.profile.device.name;
  Plan plan;
  plan.local_batch = 8;
  RequireAnswer(Predictor(cluster, workload, std::nullopt, "", compute), plan);
}

STEPCAST_DOOR(operation) {
  const Operation operation = ParseOperation(input, {"", 0, "operation"});
  const std::string text = FormatOperation(operation);
  Require(ReadAgain(text, [](const auto& t) { return ParseOperation(t, {}); }) == operation,
          "another operation is read: " + text);
  for (const TrainingPass pass :
       {TrainingPass::kForward, TrainingPass::kBackward, TrainingPass::kUpdate}) {
    const OperationCounts counts = CountOperation(operation, pass);
    for (const double count :
         {counts.flop_per_sample, counts.elements_per_sample, counts.elements}) {
      Require(std::isfinite(count) && count >= 0, text + " has " + std::to_string(count));
    }
  }
}

// Lines of FLAG=VALUE or COLUMN=VALUE.
STEPCAST_DOOR(plan) {
  static const Predictor predictor = [] {
    Cluster cluster;
    cluster.name = "lab";
    cluster.device = "t4";
    cluster.nodes = 16;
    cluster.devices_per_node = 4;
    cluster.link.bandwidth = GigabitsPerSecond(10.0);
    return Predictor(cluster, Perceptron(), T4());
  }();
  Plan plan;
  for (const std::string& line : Split(input, '\n')) {
    const std::size_t equals = std::min(line.find('='), line.size());
    const std::string key = line.substr(0, equals);
    const std::string value = line.substr(std::min(equals + 1, line.size()));
    for (const PlanField& field : PlanFields()) {
      if (key == field.flag) field.read_flag(value, {"", 0, key}, &plan);
      if (key == field.column) field.read_column(value, {"", 0, key}, &plan);
    }
  }
  CheckPlan(plan);
  Plan again;
  for (const PlanField& field : PlanFields()) {
    const std::string text = field.write(plan);
    if (text.empty()) continue;
    ReadAgain(text, [&](const auto& t) { return field.read_column(t, {"", 0, t}, &again), 0; });
  }
  RequireSamePlan(plan, again);
  RequireAnswer(predictor, plan);
  if (plan.placement.size() > 64) return;  // whose query has no answer sooner
  const CompiledPlan compiled(predictor, plan);
  const Forecast forecast = compiled.Predict(QueryOf(plan));
  Require(forecast.status == QueryStatus::kOk, "the compiled plan has no answer to itself");
  RequireFinite(forecast.step_time.si(), "the compiled plan's step");
}

STEPCAST_DOOR(values) {
  const InputPlace place = {"", 0, "value"};
  const auto number = [&](const auto& parse, double least) {
    Try([&] {
      const double value = parse();
      Require(std::isfinite(value) && value >= least, input + " is " + std::to_string(value));
    });
  };
  number([&] { return ParseDataRate(input, place).si(); }, kLeastRate);
  number([&] { return ParseDuration(input, place).si(); }, 0);
  number([&] { return ParseDataSize(input, place).si(); }, 1);
  number([&] { return ParseWorkRate(input, place).si(); }, 1);
  number([&] { return ParseWatts(input, place); }, 1e-3);
  number([&] { return ParseNumber(input, place, -1e9, 1e9); }, -1e9);
  number([&] { return ParseProbability(input, place); }, 0);
  number([&] { return ParseInteger(input, place, -7, 7); }, -7);
  number([&] { return ParseLongInteger(input, place, 1, 1'000'000'000'000'000); }, 1);
  Try([&] {
    const Placement placement = ParsePlacement(input, place);
    Require(ReadAgain(FormatPlacement(placement),
                      [](const auto& t) { return ParsePlacement(t, {}); }) == placement,
            "another placement is read");
  });
  Try([&] {
    const std::vector<std::string> hosts = ParseHosts(input, place);
    Require(ReadAgain(JoinHosts(hosts), [](const auto& t) { return ParseHosts(t, {}); }) == hosts,
            "other hosts are read");
  });
  Try([&] { ParseEnum<Strategy>(input, place); });
  Try([&] { ParseEnum<Overlap>(input, place); });
  Require(CanonicalName(CanonicalName(input)) == CanonicalName(input), "has two canonical names");
  const std::vector<std::string> names = WorkloadNames();
  const std::string nearest = NearestName(input, names);
  Require(nearest.empty() || std::count(names.begin(), names.end(), nearest) == 1,
          "did anybody mean " + nearest + "?");
  Require(IsUtf8(input + "a") == IsUtf8(input), "a letter decides what is text");
}

}  // namespace
}  // namespace stepcast::fuzz
