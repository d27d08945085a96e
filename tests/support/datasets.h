// Public data sets that some tests read and that the project does not contain.
//
//   const std::optional<std::string> folder = DatasetFolder("adaptdl");
//   if (!folder) GTEST_SKIP() << MissingDataset("adaptdl");
#ifndef STEPCAST_TESTS_SUPPORT_DATASETS_H_
#define STEPCAST_TESTS_SUPPORT_DATASETS_H_

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace stepcast {

// The environment variable STEPCAST_DATASETS, or the folder beside the checkout.
inline std::string DatasetRoot() {
  const char* root = std::getenv("STEPCAST_DATASETS");
  return root != nullptr && *root != '\0'
             ? std::string(root)
             : std::string(STEPCAST_SOURCE_DIR) + "/../shared/datasets";
}

// The path of a file or folder among the data sets; empty when it is not on this machine.
inline std::optional<std::string> DatasetFolder(const std::string& name) {
  const std::string path = DatasetRoot() + "/" + name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return path;
}

// Why the test that needs it is skipped.
inline std::string MissingDataset(const std::string& name) {
  return "no data set " + name + " in " + DatasetRoot() + "; set STEPCAST_DATASETS to its folder";
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_DATASETS_H_
