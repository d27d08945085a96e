// What the five papers state: the rows of data/measurements.
#ifndef STEPCAST_TESTS_PAPERS_ROWS_H_
#define STEPCAST_TESTS_PAPERS_ROWS_H_

#include <optional>
#include <string>
#include <vector>

namespace stepcast::papers {

struct Row {
  std::string id;
  std::string paper;
  std::string place;
  std::string text;
  std::string note;
  // The value of a quantity or a ratio; a claim has none.
  std::optional<double> value;
  std::string unit;
  int local_batch = 0;  // of a run
  double step_time_s = 0;

  bool is_claim() const { return !value.has_value(); }
};

struct Paper {
  std::string name;
  std::string title;
  std::string authors;
};
const std::vector<Paper>& Papers();

// All rows, by paper in the order of Papers(): the figures, then the runs.
std::vector<Row> ReadRows();

}  // namespace stepcast::papers

#endif  // STEPCAST_TESTS_PAPERS_ROWS_H_
