// The arrows between rooms: reads every #include line of the sources and holds it against the table
// of the design. What may be included is listed, so that a new dependency is a change of this file.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

constexpr std::array<std::string_view, 5> kRooms = {"data", "model", "calibrate", "microbench",
                                                    "predictor"};

bool StartsWithAny(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// A header of the C++ standard library has neither a dot nor a slash: <vector>.
bool IsStandard(std::string_view header) {
  static const std::set<std::string_view> c_headers = {
      "assert.h", "errno.h",  "float.h",  "inttypes.h", "limits.h", "math.h",   "signal.h",
      "stdarg.h", "stddef.h", "stdint.h", "stdio.h",    "stdlib.h", "string.h", "time.h"};
  return header.find_first_of("./") == std::string_view::npos || c_headers.count(header) > 0;
}

bool IsPosix(std::string_view header) {
  return StartsWithAny(header, {"sys/", "arpa/", "net/", "netinet/", "unistd.h", "fcntl.h",
                                "netdb.h", "poll.h", "pthread.h", "sched.h", "spawn.h"});
}

bool IsCuda(std::string_view header) {
  return StartsWithAny(
      header, {"cuda", "cublas", "cudnn", "nccl", "nvml", "nvToolsExt", "curand", "cusolver",
               "cusparse", "cufft", "cooperative_groups", "cub/", "thrust/", "mma.h"});
}

// Rooms, or folders and files of them, that `file` may include.
std::vector<std::string_view> OwnAllowed(std::string_view file) {
  if (file.starts_with("data/units/")) return {"data/units/"};
  if (file.starts_with("data/record/")) return {"data/record/", "data/units/"};
  if (file.starts_with("data/values/")) return {"data/values/", "data/record/", "data/units/"};
  if (file.starts_with("data/plan/")) {
    return {"data/plan/", "data/values/", "data/record/", "data/units/"};
  }
  if (file.starts_with("data/workloads/"))
    return {"data/workloads/",
            "data/record/",
            "data/units/",
            "data/values/size_limits.h",
            "data/values/spelling.h",
            "data/values/suggest.h",
            "data/values/text_as_number.h"};
  if (file.starts_with("data/")) return {"data/"};
  if (file.starts_with("model/step/belief")) {
    return {"model/", "data/units/", "data/record/", "data/values/workload_scope.h"};
  }
  if (file.starts_with("model/")) return {"model/", "data/units/", "data/record/", "data/plan/"};
  if (file.starts_with("calibrate/online/")) {
    return {"calibrate/online/", "model/",      "data/plan/",
            "data/record/",      "data/units/", "data/values/"};
  }
  if (file.starts_with("calibrate/")) return {"calibrate/", "model/", "data/"};
  if (file.starts_with("microbench/")) return {"microbench/", "data/"};
  if (file.starts_with("predictor/cli/")) {
    return {"predictor/", "model/", "data/", "calibrate/", "microbench/"};
  }
  if (file.starts_with("predictor/python/")) {
    return {"predictor/", "model/", "data/", "calibrate/"};
  }
  if (StartsWithAny(file, {"predictor/capi/", "predictor/serve/"})) {
    return {"predictor/", "model/", "data/", "calibrate/online/"};
  }
  if (StartsWithAny(file, {"predictor/json/", "predictor/web/"})) {
    return {"predictor/", "model/", "data/"};
  }
  // The library knows none of its interfaces.
  if (file.starts_with("predictor/")) {
    return {"predictor/compiled",
            "predictor/diagnose/",
            "predictor/search/",
            "predictor/report/",
            "predictor/predict",
            "predictor/explanation.h",
            "predictor/active.h",
            "predictor/arrival.h",
            "predictor/binding.h",
            "predictor/outlook.h",
            "predictor/shared_link.h",
            "model/",
            "data/"};
  }
  return {};
}

// Whether a header that is not ours may be included by `file`.
bool OthersAllowed(std::string_view file, std::string_view header) {
  const bool eigen = header.starts_with("Eigen/");
  const bool fmt = header.starts_with("fmt/");
  if (file.starts_with("data/")) {
    // Files are for readers; who predicts has records.
    const bool reader =
        StartsWithAny(file, {"data/io/", "data/kineto/", "data/logs/", "data/onnx/", "data/pcap/"});
    if (!reader && (header == "filesystem" || header == "fstream")) return false;
    // Parsers and formatting are for sources: users of a header need not have the libraries.
    const bool source = file.ends_with(".cc");
    if (file.starts_with("data/io/") && header.starts_with("yaml-cpp/")) return true;
    // What programs write by the million lines is read by a parser of JSON alone.
    if (header.starts_with("nlohmann/")) {
      if (StartsWithAny(file, {"data/io/strict_json.", "data/io/json_members.",
                               "data/io/online_record_json."})) {
        return true;
      }
      return source && StartsWithAny(file, {"data/io/compute_profile", "data/io/fleet_record",
                                            "data/io/network_profile", "data/io/online_record"});
    }
    if (header.starts_with("rapidjson/")) {
      return source && StartsWithAny(file, {"data/kineto/", "data/logs/json_leaves"});
    }
    if (StartsWithAny(header, {"onnx/", "google/protobuf/"})) {
      return file.starts_with("data/onnx/") && file != "data/onnx/import_onnx.h";
    }
    if (header.starts_with("pcap/") || header == "arpa/inet.h") {
      return source && file.starts_with("data/pcap/");
    }
    // A log that somebody still writes is followed by its file, not by its name.
    if (IsPosix(header)) return file == "data/logs/log_follower.cc";
    if (fmt) return source && !StartsWithAny(file, {"data/record/", "data/workloads/"});
    return IsStandard(header) || eigen;
  }
  if (file.starts_with("model/")) {
    static const std::set<std::string_view> never = {"filesystem", "fstream", "chrono", "thread",
                                                     "ctime",      "time.h",  "random", "iostream"};
    return (IsStandard(header) && never.count(header) == 0) || eigen;
  }
  if (file.starts_with("calibrate/online/")) return IsStandard(header) || eigen;
  if (file.starts_with("calibrate/")) {
    return IsStandard(header) || eigen || fmt || header.starts_with("ceres/");
  }
  if (file.starts_with("microbench/")) {
    if (StartsWithAny(header, {"boost/program_options", "ceres/", "yaml-cpp/"})) return false;
    // CUDA sources see no Eigen: it would drag it into the device compiler.
    if (eigen) return !StartsWithAny(file.substr(file.rfind('.')), {".cu"});
    // Seen in no header: who times a training need not have it.
    if (header.starts_with("re2/")) return file == "microbench/script/step_pattern.cc";
    return true;
  }
  if (file.starts_with("predictor/cli/")) {
    return IsStandard(header) || IsPosix(header) || eigen || fmt ||
           StartsWithAny(header, {"boost/program_options", "nlohmann/"});
  }
  if (file.starts_with("predictor/python/")) {
    return IsStandard(header) || eigen || fmt || header.starts_with("pybind11/");
  }
  if (file.starts_with("predictor/serve/")) {
    // Only gRPC's module may know it: no other command loads its libraries.
    if (StartsWithAny(header, {"grpcpp/", "google/protobuf/", "stepcast.grpc.pb.h"})) {
      return file == "predictor/serve/grpc_server.cc";
    }
    return IsStandard(header) || IsPosix(header) || fmt || header == "dlfcn.h" ||
           StartsWithAny(header, {"boost/asio/", "boost/beast/", "boost/system/", "nlohmann/"});
  }
  if (file.starts_with("predictor/json/")) {
    return IsStandard(header) || eigen || header.starts_with("nlohmann/");
  }
  return IsStandard(header) || eigen || fmt;
}

// Why `file` must not include `header`, quoted or in angle brackets; empty when it may.
std::string Violation(std::string_view file, std::string_view header, bool quoted) {
  if (quoted) {
    if (header == "data/io/yaml_section.h" && !file.starts_with("data/io/")) {
      return "the parser is seen in data/io only";
    }
    // An installed C header includes nothing of ours.
    if (file == "predictor/capi/stepcast.h") return "a C header stands alone";
    if (StartsWithAny(header, OwnAllowed(file))) return "";
    const std::string_view room = header.substr(0, header.find('/'));
    if (std::find(kRooms.begin(), kRooms.end(), room) == kRooms.end()) {
      return "our headers are included by their place in the source tree";
    }
    return "the room does not know it";
  }
  if (IsCuda(header) && !file.starts_with("microbench/")) return "CUDA is microbench's";
  return OthersAllowed(file, header) ? "" : "the room does not know this library";
}

struct Include {
  std::string file;  // from the root of the source tree
  int line = 0;
  std::string header;
  bool quoted = false;
};

std::vector<Include> IncludesOf(const std::filesystem::path& root,
                                const std::filesystem::path& path) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  std::vector<Include> includes;
  std::ifstream in(path);
  int line = 0;
  std::smatch match;
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (!std::regex_match(text, match, include)) continue;
    includes.push_back(
        {path.lexically_relative(root).generic_string(), line, match[2], match[1] == "\""});
  }
  return includes;
}

std::vector<Include> IncludesOfRooms(const std::filesystem::path& root) {
  static const std::set<std::string> sources = {".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu"};
  std::vector<Include> all;
  for (const std::string_view room : kRooms) {
    const std::filesystem::path folder = root / room;
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || !sources.count(entry.path().extension().string())) continue;
      const std::vector<Include> some = IncludesOf(root, entry.path());
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return all;
}

TEST(Arrows, EveryIncludeIsAllowed) {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  const std::vector<Include> includes = IncludesOfRooms(root);
  EXPECT_GT(includes.size(), 100U) << "the sources are not where they were";
  for (const Include& include : includes) {
    const std::string violation = Violation(include.file, include.header, include.quoted);
    if (violation.empty()) continue;
    ADD_FAILURE() << include.file << ":" << include.line << ": includes "
                  << (include.quoted ? "\"" : "<") << include.header
                  << (include.quoted ? "\"" : ">") << ": " << violation;
  }
}

// A quoted include of ours must exist, or be made of a .in file: a renamed header leaves no line
// behind, not even where nothing is compiled for want of CUDA.
TEST(Arrows, EveryOwnHeaderExists) {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  for (const Include& include : IncludesOfRooms(root)) {
    if (!include.quoted) continue;
    EXPECT_TRUE(std::filesystem::exists(root / include.header) ||
                std::filesystem::exists(root / (include.header + ".in")))
        << include.file << ":" << include.line << ": \"" << include.header << "\" does not exist";
  }
}

// Our lines that who includes `header` compiles, each header once.
int LinesBehind(const std::filesystem::path& root, const std::string& header,
                std::set<std::string>* seen) {
  if (!seen->insert(header).second || !std::filesystem::exists(root / header)) return 0;
  std::ifstream in(root / header);
  int lines = 0;
  for (std::string text; std::getline(in, text);) ++lines;
  for (const Include& include : IncludesOf(root, root / header)) {
    if (include.quoted) lines += LinesBehind(root, include.header, seen);
  }
  return lines;
}

// Who asks for a prediction reads records and results, and no formula.
TEST(Arrows, HeadersOfThePredictorAreLight) {
  constexpr int kMostLines = 2000;
  for (const char* header : {"predictor/prediction.h", "predictor/predictor.h"}) {
    std::set<std::string> seen;
    const int lines = LinesBehind(STEPCAST_SOURCE_DIR, header, &seen);
    EXPECT_LE(lines, kMostLines) << header;
    EXPECT_GE(seen.size(), 10U) << header << ": its includes are not found";
  }
}

// ---- The table itself: a rule that refuses nothing would keep no arrow true.

TEST(Arrows, TheTableRefusesWhatTheDesignRefuses) {
  const struct {
    const char* file;
    const char* header;
    bool quoted;
  } refused[] = {
      {"data/record/run.h", "model/step/step.h", true},
      {"data/io/runs.cc", "predictor/predict.h", true},
      {"data/record/run.h", "data/io/csv.h", true},
      {"data/record/run.h", "data/workloads/catalog.h", true},
      {"data/record/run.h", "data/values/names.h", true},
      {"data/values/names.h", "data/io/csv.h", true},
      {"data/units/quantity.h", "data/record/run.h", true},
      {"data/units/quantity.h", "data/workloads/catalog.h", true},
      {"data/record/run.h", "yaml-cpp/yaml.h", false},
      {"data/workloads/catalog.cc", "yaml-cpp/yaml.h", false},
      {"data/io/runs.cc", "ceres/ceres.h", false},
      {"data/io/runs.cc", "nlohmann/json.hpp", false},
      {"data/io/runs.h", "fmt/format.h", false},
      {"data/io/runs.cc", "onnx/onnx_pb.h", false},
      {"data/values/names.cc", "yaml-cpp/yaml.h", false},
      {"data/values/names.cc", "fstream", false},
      {"model/step/step.h", "data/io/machines.h", true},
      {"model/step/step.h", "calibrate/fit.h", true},
      {"model/step/step.h", "predictor/predict.h", true},
      {"model/step/step.h", "ceres/jet.h", false},
      {"model/step/step.h", "cuda_runtime.h", false},
      {"model/step/step.cc", "yaml-cpp/yaml.h", false},
      {"model/step/step.cc", "nlohmann/json.hpp", false},
      {"model/step/step.cc", "filesystem", false},
      {"model/step/step.cc", "fstream", false},
      {"model/step/step.cc", "chrono", false},
      {"calibrate/fit.cc", "predictor/predict.h", true},
      {"calibrate/fit.cc", "microbench/harness/state.h", true},
      {"calibrate/fit.cc", "cuda_runtime.h", false},
      {"calibrate/fit.cc", "yaml-cpp/yaml.h", false},
      {"calibrate/fit.cc", "boost/program_options.hpp", false},
      {"calibrate/online/state.cc", "ceres/ceres.h", false},
      {"calibrate/online/state.cc", "nlohmann/json.hpp", false},
      {"calibrate/online/state.cc", "calibrate/fit.h", true},
      {"calibrate/online/state.cc", "predictor/predict.h", true},
      {"predictor/capi/compiled.cc", "calibrate/fit.h", true},
      {"predictor/predict.cc", "calibrate/fit.h", true},
      {"predictor/predict.cc", "microbench/harness/state.h", true},
      {"predictor/search/search.cc", "ceres/ceres.h", false},
      {"predictor/report/report.cc", "boost/program_options.hpp", false},
      {"predictor/report/report.cc", "sys/ioctl.h", false},
      {"predictor/compiled_plan.cc", "predictor/serve/api.h", true},
      {"predictor/predictor.cc", "nlohmann/json.hpp", false},
      {"predictor/predictor.cc", "predictor/json/json.h", true},
      {"predictor/python/module.cc", "microbench/harness/state.h", true},
      {"predictor/serve/http_server.cc", "grpcpp/grpcpp.h", false},
      {"predictor/serve/service.cc", "calibrate/fit.h", true},
      {"predictor/capi/stepcast.h", "data/record/run.h", true},
      {"predictor/cli/main.cc", "ceres/ceres.h", false},
      {"predictor/cli/main.cc", "yaml-cpp/yaml.h", false},
      {"predictor/cli/main.cc", "data/io/yaml_section.h", true},
      {"predictor/cli/main.cc", "cuda_runtime.h", false},
      {"predictor/cli/main.cc", "options.h", true},
      {"microbench/compute/gemm.cc", "model/step/step.h", true},
      {"microbench/compute/gemm.cc", "calibrate/fit.h", true},
      {"microbench/compute/gemm.cc", "predictor/predict.h", true},
      {"microbench/compute/gemm.cu", "Eigen/Core", false},
      {"microbench/compute/gemm.cu", "ceres/ceres.h", false},
      {"microbench/script/step_pattern.h", "re2/re2.h", false},
      {"data/logs/step_log.cc", "re2/re2.h", false},
  };
  for (const auto& c : refused) {
    EXPECT_FALSE(Violation(c.file, c.header, c.quoted).empty()) << c.file << " -> " << c.header;
  }
}

TEST(Arrows, TheTableAllowsWhatTheDesignAllows) {
  const struct {
    const char* file;
    const char* header;
    bool quoted;
  } allowed[] = {
      {"data/record/run.h", "data/units/quantity.h", true},
      {"data/record/calibration.h", "Eigen/Core", false},
      {"data/io/runs.cc", "data/record/run.h", true},
      {"data/io/yaml_section.h", "yaml-cpp/yaml.h", false},
      {"model/step/step.h", "data/record/plan.h", true},
      {"model/step/step.h", "Eigen/Core", false},
      {"model/step/step.h", "cmath", false},
      {"calibrate/fit.cc", "model/step/step.h", true},
      {"calibrate/fit.cc", "data/io/machines.h", true},
      {"calibrate/fit.cc", "ceres/ceres.h", false},
      {"predictor/predict.h", "model/step/step.h", true},
      {"predictor/cli/main.cc", "calibrate/fit.h", true},
      {"predictor/cli/main.cc", "microbench/harness/state.h", true},
      {"predictor/cli/main.cc", "boost/program_options.hpp", false},
      {"predictor/python/module.cc", "pybind11/pybind11.h", false},
      {"predictor/capi/stepcast.h", "stddef.h", false},
      {"predictor/serve/http_server.cc", "boost/beast/http/read.hpp", false},
      {"predictor/serve/grpc_server.cc", "grpcpp/grpcpp.h", false},
      {"predictor/json/json.h", "nlohmann/json.hpp", false},
      {"microbench/compute/gemm.cu", "cuda_runtime.h", false},
      {"microbench/harness/state.cc", "data/record/run.h", true},
      {"microbench/script/step_pattern.cc", "re2/re2.h", false},
  };
  for (const auto& c : allowed) {
    EXPECT_EQ(Violation(c.file, c.header, c.quoted), "") << c.file << " -> " << c.header;
  }
}

// Includes are found however they are written, and no others are.
TEST(Arrows, IncludeLinesAreFound) {
  const TempFolder folder;
  const std::string path = folder.Write("x.cc",
                                        "#include <vector>\n"
                                        "  #  include \"data/record/run.h\"  // why\n"
                                        "// #include <fstream>\n"
                                        "#ifdef X\n"
                                        "#include<chrono>\n"
                                        "const char* text = \"#include <ctime>\";\n");
  const std::vector<Include> includes = IncludesOf(folder.path(), path);
  ASSERT_EQ(includes.size(), 3U);
  EXPECT_EQ(includes[0].header, "vector");
  EXPECT_FALSE(includes[0].quoted);
  EXPECT_EQ(includes[1].header, "data/record/run.h");
  EXPECT_TRUE(includes[1].quoted);
  EXPECT_EQ(includes[1].line, 2);
  EXPECT_EQ(includes[2].header, "chrono");
  EXPECT_EQ(includes[2].line, 5);
  EXPECT_EQ(includes[2].file, "x.cc");
}

}  // namespace
}  // namespace stepcast
