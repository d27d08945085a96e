#include "predictor/cli/runs_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "data/io/runs.h"
#include "data/record/host_texts.h"
#include "data/values/size_limits.h"
#include "predictor/cli/training_option.h"

namespace stepcast::cli {

void AddRunsOptions(po::options_description* options) {
  options->add_options()("cluster", OptionValue("C"),
                         "cluster file, or the name of a shipped one (stepcast machines)")(
      "runs", OptionValues("R.csv")->multitoken(),
      "measured runs; several files may follow, and the option may be repeated")(
      "workload-file", OptionValues("F"), "workload file; may be repeated");
  AddTrainingOptions(options);
}

CalibrationProblem ReadRunsProblem(const Arguments& arguments, const std::string& option) {
  std::vector<Run> runs;
  CalibrationProblem problem = ReadEachRun(
      arguments, option,
      [&](Run&& run, const CalibrationProblem& /*problem*/) { runs.push_back(std::move(run)); });
  problem.runs = std::move(runs);
  return problem;
}

CalibrationProblem ReadEachRun(
    const Arguments& arguments, const std::string& option,
    const std::function<void(Run&& run, const CalibrationProblem& problem)>& take) {
  const Library library = LibraryOf(arguments);
  CalibrationProblem problem;
  problem.cluster = library.LoadCluster(arguments.Required("cluster"));
  const std::vector<std::string> files = arguments.Texts(option);
  if (files.empty()) {
    throw InputError(OptionPlace(option), "", "is required", "a CSV file of measured runs");
  }
  for (auto file = files.begin(); file != files.end(); ++file) {
    const bool again = std::any_of(files.begin(), file, [&](const std::string& earlier) {
      std::error_code error;  // of a file that is not there, which reading it tells
      return std::filesystem::equivalent(earlier, *file, error);
    });
    if (!again) continue;
    throw InputError({*file, 0, OptionPlace(option).key}, "",
                     "is given twice: its runs would count twice", "each file once");
  }
  const std::set<std::string> hosts = KnownHosts(problem.cluster);
  // The names in files, and what is meant by them.
  std::map<std::string, std::string> devices;
  std::map<std::string, std::string> workloads;
  std::size_t layers = 0;
  bool any = false;
  for (const std::string& file : files) {
    ForEachRun(file, [&](Run&& run) {
      any = true;
      RequireKnownHosts(problem.cluster, hosts, run.plan.hosts, {file, run.place.line, "hosts"});
      const auto [device, is_new_device] = devices.try_emplace(run.device);
      if (is_new_device) {
        const std::optional<Device> facts = library.LookUpDevice(run.device, problem.cluster);
        device->second = facts ? facts->name : run.device;
        if (facts) problem.devices[facts->name] = *facts;
      }
      run.device = device->second;
      const auto [workload, is_new_workload] = workloads.try_emplace(run.workload);
      if (is_new_workload) {
        if (problem.workloads.size() == kMostWorkloads) {
          throw InputError({file, run.place.line, "workload"}, run.workload,
                           "is one more than may be named",
                           "at most " + std::to_string(kMostWorkloads) + " workloads");
        }
        Workload network;
        try {
          network = library.LoadWorkload(run.workload);
        } catch (const InputError& e) {
          throw e.At({file, run.place.line, "workload"});
        }
        ReadTrainingOptions(arguments, problem.cluster.calibration, run.device, &network);
        workload->second = network.name;
        if (problem.workloads.count(network.name) == 0) layers += network.layers.size();
        if (layers > kMostLayersInAll) {
          throw InputError(
              {file, run.place.line, "workload"}, run.workload,
              "has more layers, with the workloads before it, than all together may have",
              "at most " + std::to_string(kMostLayersInAll) + " layers");
        }
        problem.workloads.try_emplace(network.name, std::move(network));
      }
      run.workload = workload->second;
      take(std::move(run), problem);
    });
  }
  if (!any) {
    throw InputError(OptionPlace(option), fmt::format("{}", fmt::join(files, ", ")),
                     "holds no runs", "at least one row");
  }
  return problem;
}

}  // namespace stepcast::cli
