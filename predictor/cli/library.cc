#include "predictor/cli/library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "data/io/machines.h"
#include "data/io/workload_file.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/spelling.h"
#include "data/values/suggest.h"
#include "data/workloads/by_numbers.h"
#include "data/workloads/catalog.h"
#include "model/step/belief.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDeviceFile = "gpus.yaml";
constexpr const char* kProfileEnding = ".profile.jsonl";

bool LooksLikePath(const std::string& text) {
  const std::string extension = fs::path(text).extension().string();
  return text.find('/') != std::string::npos || extension == ".yaml" || extension == ".yml" ||
         extension == ".json";
}

}  // namespace

std::string Library::DataFolder() {
  std::vector<fs::path> candidates;
  if (const char* own = std::getenv("STEPCAST_DATA")) {
    candidates.emplace_back(own);
  } else {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) candidates.push_back(program.parent_path().parent_path() / "share" / "stepcast");
    candidates.emplace_back(STEPCAST_SOURCE_DATA);
  }
  for (const fs::path& folder : candidates) {
    std::error_code error;
    if (fs::exists(folder / "machines" / kDeviceFile, error)) return folder.string();
  }
  throw InputError({"", 0, "STEPCAST_DATA"}, candidates.front().string(),
                   "has no machines/gpus.yaml", "the folder with stepcast's data files");
}

void Library::AddWorkloadFile(const std::string& path) {
  Workload workload = ReadWorkload(path);
  const std::string name = workload.name;
  if (!own_workloads_.emplace(name, std::move(workload)).second) {
    throw InputError({path, 0, "name"}, name, "is the name of two workload files",
                     "each name once");
  }
}

Cluster Library::LoadCluster(const std::string& name_or_path) const {
  const auto read = [](const std::string& path) {
    return WithUsableCalibration(ReadCluster(path), path);
  };
  if (LooksLikePath(name_or_path)) return read(name_or_path);
  const fs::path file = fs::path(DataFolder()) / "machines" / (name_or_path + ".yaml");
  std::error_code error;
  if (name_or_path + ".yaml" == kDeviceFile || !fs::exists(file, error)) {
    throw InputError({"", 0, "--cluster"}, name_or_path,
                     "is not a shipped cluster" +
                         OrDevice(name_or_path, DidYouMean(name_or_path, ClusterNames())),
                     fmt::format("a cluster file, or one of {}", fmt::join(ClusterNames(), ", ")));
  }
  return read(file.string());
}

ReadProfile Library::LoadProfile(const std::string& name_or_path) const {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".jsonl")) {
    return ReadComputeProfile(name_or_path);
  }
  const fs::path file = fs::path(DataFolder()) / "profiles" / (name_or_path + kProfileEnding);
  std::error_code error;
  if (!fs::exists(file, error)) {
    throw InputError({"", 0, "--profile"}, name_or_path,
                     "is not a shipped profile" + DidYouMean(name_or_path, ProfileNames()),
                     fmt::format("a .jsonl file of stepcast microbench, or one of {}",
                                 fmt::join(ProfileNames(), ", ")));
  }
  return ReadComputeProfile(file.string());
}

std::vector<const Workload*> Library::FindOwn(const std::string& name) const {
  const auto own = own_workloads_.find(name);
  if (own != own_workloads_.end()) return {&own->second};
  std::vector<const Workload*> alike;
  for (const auto& [known, workload] : own_workloads_) {
    if (CanonicalName(known) == CanonicalName(name)) alike.push_back(&workload);
  }
  return alike;
}

Workload Library::LoadWorkload(const std::string& name) const {
  const std::vector<const Workload*> own = FindOwn(name);
  if (own.size() == 1) return *own.front();
  if (own.size() > 1) {
    throw InputError({"", 0, "--workload"}, name, "may be one or another of one's own",
                     fmt::format("'{}' or '{}'", own[0]->name, own[1]->name));
  }
  if (std::optional<Workload> found = FindWorkload(name)) return *found;
  throw InputError(
      {"", 0, "--workload"}, name,
      "is not a known workload" + OrDevice(name, DidYouMeanWorkload(name, AllWorkloadNames())),
      fmt::format("a file given with --workload-file; a decoder by its numbers like "
                  "{}; a bare message by its bytes, 4 to 10^15, like message_1000000; or "
                  "one of {} (stepcast workloads lists them), with another size of input like "
                  "resnet50@160 or bert_base@128",
                  kDecoderByNumbers, JoinNames(AllWorkloadNames())));
}

std::string Library::OrDevice(const std::string& name, const std::string& otherwise) const {
  const std::optional<Device> device = FindDevice(Devices(), name);
  return device ? ", but a device (--device " + device->name + ")" : otherwise;
}

std::string Library::CanonicalWorkload(const std::string& name) const {
  const std::vector<const Workload*> own = FindOwn(name);
  if (own.size() == 1) return own.front()->name;
  if (own.size() > 1) return name;
  const std::optional<Workload> found = FindWorkload(name);
  return found ? found->name : name;
}

std::optional<Device> Library::LookUpDevice(const std::string& name, const Cluster& cluster) const {
  if (cluster.device_facts) {
    if (std::optional<Device> own = FindDevice({*cluster.device_facts}, name)) return own;
  }
  return FindDevice(Devices(), name);
}

std::string Library::CanonicalDevice(const std::string& name, const Cluster& cluster) const {
  const std::optional<Device> device = LookUpDevice(name, cluster);
  return device ? device->name : name;
}

const std::vector<Device>& Library::Devices() const {
  if (!devices_) devices_ = ReadDevices(DataFolder() + "/machines/" + kDeviceFile);
  return *devices_;
}

std::vector<std::string> Library::ClusterNames() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(DataFolder()) / "machines")) {
    if (entry.path().extension() == ".yaml" && entry.path().filename() != kDeviceFile) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Library::ProfileNames() const {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(DataFolder()) / "profiles", none)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kProfileEnding)) continue;
    names.push_back(name.substr(0, name.size() - std::string(kProfileEnding).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Library::AllWorkloadNames() const {
  std::vector<std::string> names = WorkloadNames();
  for (const auto& [name, workload] : own_workloads_) {
    if (!std::count(names.begin(), names.end(), name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace stepcast
