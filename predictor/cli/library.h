// All that the program knows by name: shipped machines, the workload catalogue, the user's own
// files.
#ifndef STEPCAST_PREDICTOR_CLI_LIBRARY_H_
#define STEPCAST_PREDICTOR_CLI_LIBRARY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/record/machine.h"
#include "data/record/workload.h"

namespace stepcast {

class Library {
 public:
  // The folder with machines/ and measurements/: $STEPCAST_DATA, else the one installed beside the
  // program, else the source tree that it was built from. Throws InputError when none is there.
  static std::string DataFolder();

  // A workload of the file replaces one of the catalogue with the same name.
  void AddWorkloadFile(const std::string& path);

  // A path (with a / or ending in .yaml, .yml or .json) is read; anything else is the name of a
  // shipped cluster.
  Cluster LoadCluster(const std::string& name_or_path) const;
  Workload LoadWorkload(const std::string& name) const;
  // The name of the workload that `name` means ("bert" -> "bert_base"), or the name itself. Throws
  // InputError for a size of input that a network cannot have.
  std::string CanonicalWorkload(const std::string& name) const;
  // A path (with a / or ending in .jsonl) is read; anything else is the name of a shipped profile.
  ReadProfile LoadProfile(const std::string& name_or_path) const;
  // The device's data sheet: the cluster's own, or a shipped one; empty when unknown.
  std::optional<Device> LookUpDevice(const std::string& name, const Cluster& cluster) const;
  // The key of the data sheet that `name` means ("RTX 4090" -> "rtx_4090"), or the name itself.
  std::string CanonicalDevice(const std::string& name, const Cluster& cluster) const;

  const std::vector<Device>& Devices() const;
  std::vector<std::string> ClusterNames() const;
  std::vector<std::string> ProfileNames() const;
  std::vector<std::string> AllWorkloadNames() const;

 private:
  // Those of files that have this name: the one that is spelled so, else all that are spelled
  // alike.
  std::vector<const Workload*> FindOwn(const std::string& name) const;
  // For an error about a name that is a device's and was to be something else; `otherwise` of any
  // other.
  std::string OrDevice(const std::string& name, const std::string& otherwise) const;

  mutable std::optional<std::vector<Device>> devices_;
  std::map<std::string, Workload> own_workloads_;
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_CLI_LIBRARY_H_
