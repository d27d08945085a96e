// A strict reader of comma-separated values (RFC 4180) that keeps every column and knows the line
// of every row. The packaged CSV library fixes the columns at compile time; the runs format keeps
// columns that it does not know, so the splitting is done here.
#ifndef STEPCAST_DATA_IO_CSV_H_
#define STEPCAST_DATA_IO_CSV_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/input_error.h"

namespace stepcast {

struct CsvRow {
  int line = 0;  // of the file, 1-based, where the row begins
  std::vector<std::string> fields;
};

class CsvTable {
 public:
  // Reads `path`: a header and rows with as many fields. Quotes may enclose commas, quotes and line
  // ends; CRLF and a byte order mark are accepted; empty lines are skipped. Throws InputError for a
  // row with another number of fields (a truncated file), an unclosed quote, a column named twice
  // or not at all, or a file without a header.
  static CsvTable Read(const std::string& path);
  static CsvTable Parse(const std::string& text, const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  const std::vector<CsvRow>& rows() const { return rows_; }

  // The index of a column; empty when the file has none of that name.
  std::optional<std::size_t> Column(std::string_view name) const;
  // The same, or InputError naming the columns the file has.
  std::size_t RequiredColumn(std::string_view name) const;

  InputPlace Place(const CsvRow& row, std::size_t column) const {
    return {path_, row.line, header_[column]};
  }

 private:
  std::string path_;
  std::vector<std::string> header_;
  std::vector<CsvRow> rows_;
};

// A field as it must be written: quoted when it has to be.
std::string CsvField(std::string_view text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_CSV_H_
