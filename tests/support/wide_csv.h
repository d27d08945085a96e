// The wide CSVs of public measurements (one column for each thing a source may state), as runs.
#ifndef STEPCAST_TESTS_SUPPORT_WIDE_CSV_H_
#define STEPCAST_TESTS_SUPPORT_WIDE_CSV_H_

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "data/io/csv.h"
#include "data/record/run.h"
#include "data/record/workload.h"

namespace stepcast {

class WideRow {
 public:
  WideRow(const CsvTable& table, const CsvRow& row) {
    for (std::size_t i = 0; i < row.fields.size(); ++i) fields_[table.header()[i]] = row.fields[i];
    place_ = {table.path(), row.line, ""};
  }

  const std::string& Text(const std::string& column) const { return fields_.at(column); }
  bool Has(const std::string& column) const { return !fields_.at(column).empty(); }
  double Number(const std::string& column) const {
    return std::strtod(Text(column).c_str(), nullptr);
  }
  int Count(const std::string& column) const { return static_cast<int>(Number(column)); }
  bool Mentions(const std::string& what) const {
    return Text("notes").find(what) != std::string::npos;
  }
  // The number behind "key=" in the notes.
  double Note(const std::string& key) const {
    const std::string& notes = Text("notes");
    return std::strtod(notes.c_str() + notes.find(key + "=") + key.size() + 1, nullptr);
  }
  const InputPlace& place() const { return place_; }

 private:
  std::map<std::string, std::string> fields_;
  InputPlace place_;
};

inline std::vector<WideRow> ReadWide(const std::string& path) {
  const CsvTable table = CsvTable::Read(path);
  std::vector<WideRow> rows;
  for (const CsvRow& row : table.rows()) rows.emplace_back(table, row);
  return rows;
}

// `workers` on nodes of `devices` each, the last with what is left.
inline Placement OnNodesOf(int devices, int workers) {
  Placement placement;
  for (int left = workers; left > 0; left -= devices) {
    placement.push_back(left < devices ? left : devices);
  }
  return placement;
}

// A bare message of so many bytes.
inline Workload Message(const std::string& name, double bytes) {
  Workload workload;
  workload.name = workload.title = name;
  workload.gradient_bytes = Bytes(bytes);
  workload.parameters = workload.trainable_parameters = static_cast<std::int64_t>(bytes / 4);
  workload.communication_only = true;
  return workload;
}

// A network of which only the parameters are known.
inline Workload Network(const std::string& name, double parameters) {
  Workload workload = Message(name, 4 * parameters);
  workload.communication_only = false;
  return workload;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_WIDE_CSV_H_
