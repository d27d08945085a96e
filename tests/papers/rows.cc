#include "tests/papers/rows.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "data/io/csv.h"

namespace stepcast::papers {
namespace {

const std::string kMeasurements = std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/";

class Fields {
 public:
  Fields(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  const std::string& operator[](const std::string& column) const {
    return row_.fields[table_.RequiredColumn(column)];
  }
  double Number(const std::string& column) const {
    const std::string& text = (*this)[column];
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') {
      throw std::runtime_error(table_.path() + ": " + column + ": no number: " + text);
    }
    return value;
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

std::vector<Row> ReadFigures() {
  const CsvTable table = CsvTable::Read(kMeasurements + "paper-figures.csv");
  std::vector<Row> rows;
  for (const CsvRow& line : table.rows()) {
    const Fields field(table, line);
    Row row;
    row.id = field["id"];
    row.paper = field["paper"];
    row.place = field["place"];
    row.text = field["text"];
    row.note = field["note"];
    row.unit = field["unit"];
    if (field["kind"] != "claim") row.value = field.Number("value");
    rows.push_back(row);
  }
  return rows;
}

// A run is judged by the figure that the paper prints: a throughput, or else a step time.
std::vector<Row> ReadRunFigures(const std::string& paper) {
  const CsvTable table = CsvTable::Read(kMeasurements + paper + ".csv");
  std::vector<Row> rows;
  for (const CsvRow& line : table.rows()) {
    const Fields field(table, line);
    Row row;
    row.id = field["id"];
    row.paper = paper;
    row.place = field["place"];
    row.note = field["note"];
    row.local_batch = static_cast<int>(field.Number("local_batch"));
    row.step_time_s = field.Number("step_time_s");
    row.text = fmt::format("{}, batch {}, placement {}", field["workload"], field["local_batch"],
                           field["placement"]);
    if (!field["link_gbit_per_s"].empty()) row.text += ", " + field["link_gbit_per_s"] + " Gbit/s";
    if (!field["throughput_samples_per_s"].empty()) {
      row.value = field.Number("throughput_samples_per_s");
      row.unit = "img/s";
    } else {
      row.value = row.step_time_s;
      row.unit = "s";
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

const std::vector<Paper>& Papers() {
  static const std::vector<Paper> papers = {
      {"networking-perspective",
       "Performance Evaluation of Distributed Deep Learning: A Networking Perspective",
       "Cheng, Liu, Kurihana"},
      {"low-bandwidth-training",
       "Performance Evaluation of Distributed Deep Learning Training on Low-Bandwidth Networks",
       "Raddatz de Matos, Oliveira Gulart, Brumato, Schnorr"},
      {"communication-patterns", "Communication Patterns in Distributed Deep Learning",
       "Farhat, Ghobadi"},
      {"network-evolution", "Network Evolution for DNNs",
       "Chang, Panda, Bottini, Jian, Kumar, Shenker"},
      {"performance-and-consistency",
       "Performance and Consistency Analysis for Distributed Deep Learning Applications",
       "Jia, Saha, Bhimani, Mi"},
  };
  return papers;
}

std::vector<Row> ReadRows() {
  std::vector<Row> all = ReadFigures();
  for (const char* paper : {"networking-perspective", "communication-patterns"}) {
    for (const Row& run : ReadRunFigures(paper)) all.push_back(run);
  }
  std::vector<Row> rows;
  for (const Paper& paper : Papers()) {
    for (const Row& row : all) {
      if (row.paper == paper.name) rows.push_back(row);
    }
  }
  if (rows.size() != all.size()) throw std::runtime_error("a row names no paper of the list");
  return rows;
}

}  // namespace stepcast::papers
