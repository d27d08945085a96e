// The measurements that are shipped: they can be read, and agree with the rest of data/.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "data/io/csv.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/values/device_name.h"
#include "data/values/numbers.h"
#include "data/workloads/catalog.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

const std::string kData = std::string(STEPCAST_SOURCE_DIR) + "/data";
const std::string kPaperFigures = kData + "/measurements/paper-figures.csv";
const std::string kMatrixProducts = kData + "/measurements/matrix-products.csv";

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

// By path: every runs file of data/measurements.
std::map<std::string, Runs> ShippedRuns() {
  std::map<std::string, Runs> all;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "/measurements")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".csv" || path == kPaperFigures) continue;
    if (path == kMatrixProducts) continue;
    all[path] = ReadRuns(path);
  }
  return all;
}

std::string Extra(const Run& run, const std::string& column) {
  for (std::size_t i = 0; i < run.extra.size(); ++i) {
    if ((*run.extra_columns)[i] == column) return run.extra[i];
  }
  return "";
}

TEST(Measurements, EveryRunsFileIsRead) {
  const std::map<std::string, Runs> all = ShippedRuns();
  EXPECT_GE(all.size(), 4U);
  for (const auto& [path, runs] : all) {
    EXPECT_FALSE(runs.empty()) << path;
    for (const auto& run : runs) {
      EXPECT_FALSE(run.source.empty()) << path << ":" << run.place.line << " has no source";
    }
  }
}

TEST(Measurements, WorkloadsAndDevicesAreKnown) {
  const std::vector<Device> devices = ReadDevices(kData + "/machines/gpus.yaml");
  for (const auto& [path, runs] : ShippedRuns()) {
    for (const auto& run : runs) {
      const std::string where = path + ":" + std::to_string(run.place.line);
      EXPECT_TRUE(FindWorkload(run.workload).has_value()) << where << " " << run.workload;
      EXPECT_TRUE(FindDevice(devices, run.device).has_value()) << where << " " << run.device;
    }
  }
}

// Where the source printed a throughput, the step time is derived from it, to six digits.
TEST(Measurements, StepTimesAgreeWithThePrintedThroughput) {
  int checked = 0;
  for (const auto& [path, runs] : ShippedRuns()) {
    for (const auto& run : runs) {
      const std::string printed = Extra(run, "throughput_samples_per_s");
      if (printed.empty()) continue;
      const double throughput = ParseNumber(printed, run.place, 0, 1e9);
      const double step = run.plan.global_batch() / throughput;
      EXPECT_NEAR(run.step_time.in(kSeconds), step, 1e-5 * step) << path << ":" << run.place.line;
      ++checked;
    }
  }
  EXPECT_GE(checked, 11);
}

// `inferred` lists columns that the file has.
TEST(Measurements, InferredNamesColumns) {
  for (const auto& [path, runs] : ShippedRuns()) {
    const CsvTable table = CsvTable::Read(path);
    for (const auto& run : runs) {
      std::istringstream names(Extra(run, "inferred"));
      for (std::string name; names >> name;) {
        EXPECT_TRUE(table.Column(name).has_value()) << path << ":" << run.place.line << " " << name;
      }
    }
  }
}

TEST(Measurements, TheHeldOutRunIsNotAmongTheFitted) {
  const Runs fit = ReadRuns(kData + "/measurements/ufrgs-tupi-fit.csv");
  const Runs held_out = ReadRuns(kData + "/measurements/ufrgs-tupi-holdout.csv");
  const Cluster tupi = ReadCluster(kData + "/machines/ufrgs-tupi.yaml");
  std::set<std::string> names;
  for (const Host& host : tupi.hosts) names.insert(host.name);
  for (const auto& run : held_out) {
    for (const auto& other : fit) EXPECT_NE(run.plan.hosts, other.plan.hosts);
  }
  for (const Runs& runs : {fit, held_out}) {
    for (const auto& run : runs) {
      for (const std::string& host : run.plan.hosts) EXPECT_TRUE(names.count(host)) << host;
    }
  }
}

TEST(Measurements, PaperFigures) {
  const CsvTable table = CsvTable::Read(kPaperFigures);
  const std::size_t paper = table.RequiredColumn("paper");
  const std::size_t place = table.RequiredColumn("place");
  const std::size_t kind = table.RequiredColumn("kind");
  const std::size_t quantity = table.RequiredColumn("quantity");
  const std::size_t value = table.RequiredColumn("value");
  const std::size_t unit = table.RequiredColumn("unit");
  const std::size_t text = table.RequiredColumn("text");
  const std::set<std::string> papers = {"networking-perspective", "low-bandwidth-training",
                                        "communication-patterns", "network-evolution",
                                        "performance-and-consistency"};
  const std::set<std::string> kinds = {"quantity", "ratio", "claim"};
  for (const CsvRow& row : table.rows()) {
    SCOPED_TRACE(row.line);
    EXPECT_TRUE(papers.count(row.fields[paper])) << row.fields[paper];
    EXPECT_TRUE(kinds.count(row.fields[kind])) << row.fields[kind];
    EXPECT_FALSE(row.fields[place].empty());
    EXPECT_FALSE(row.fields[text].empty());
    if (row.fields[kind] == "claim") {
      EXPECT_TRUE(row.fields[value].empty());
      continue;
    }
    EXPECT_FALSE(row.fields[quantity].empty());
    EXPECT_FALSE(row.fields[unit].empty());
    EXPECT_NO_THROW(ParseNumber(row.fields[value], table.Place(row, value), -1e12, 1e12));
  }
}

// A board whose clock is above the stated one may pass its peak by little.
TEST(Measurements, NoMatrixProductBeatsThePeakOfItsBoard) {
  const std::vector<Device> devices = ReadDevices(kData + "/machines/gpus.yaml");
  const CsvTable table = CsvTable::Read(kMatrixProducts);
  const auto text = [&](const CsvRow& row, const char* column) {
    return row.fields[table.RequiredColumn(column)];
  };
  for (const CsvRow& row : table.rows()) {
    SCOPED_TRACE(row.line);
    const std::optional<Device> device = FindDevice(devices, text(row, "device"));
    ASSERT_TRUE(device.has_value());
    const std::string precision = text(row, "precision");
    const std::optional<WorkRate<>> peak = precision == "fp16"   ? device->fp16
                                           : precision == "bf16" ? device->bf16
                                           : precision == "tf32" ? device->tf32
                                                                 : device->fp8;
    ASSERT_TRUE(peak.has_value());
    const std::size_t rate = table.RequiredColumn("tflop_per_s");
    EXPECT_LT(ParseNumber(row.fields[rate], table.Place(row, rate), 1, 1e5),
              1.01 * peak->in(kTeraflopPerSecond));
    for (const char* column : {"m", "n", "k"}) {
      const std::size_t at = table.RequiredColumn(column);
      EXPECT_GE(ParseNumber(row.fields[at], table.Place(row, at), 1, 1e6), 1024);
    }
    EXPECT_FALSE(text(row, "source").empty() || text(row, "place").empty());
  }
}

// The table of README.md has a row for each file, with the number of its rows.
TEST(Measurements, TheReadmeCountsTheRows) {
  std::map<std::string, std::size_t> told;
  std::istringstream readme(FileContent(kData + "/measurements/README.md"));
  for (std::string line; std::getline(readme, line);) {
    std::istringstream words(line);
    std::string bar;
    std::string file;
    std::size_t rows = 0;
    if (words >> bar >> file >> bar >> rows && file.ends_with(".csv")) told[file] = rows;
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "/measurements")) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(told.count(name)) << name << " is not in README.md";
    EXPECT_EQ(CsvTable::Read(entry.path().string()).rows().size(), told[name]) << name;
  }
  EXPECT_EQ(files, told.size());
}

}  // namespace
}  // namespace stepcast
