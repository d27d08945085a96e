// A strict reader of comma-separated values (RFC 4180) that keeps every column and knows the line
// of every row. The packaged CSV library fixes the columns at compile time; the runs format keeps
// columns that it does not know, so the splitting is done here.
#ifndef STEPCAST_DATA_IO_CSV_H_
#define STEPCAST_DATA_IO_CSV_H_

#include <cstddef>
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

// What the header says.
class CsvColumns {
 public:
  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }

  // The index of a column; empty when the file has none of that name.
  std::optional<std::size_t> Column(std::string_view name) const;
  // The same, or InputError naming the columns the file has, and `other`, which would do as well.
  std::size_t RequiredColumn(std::string_view name, std::string_view other = {}) const;

  InputPlace Place(const CsvRow& row, std::size_t column) const {
    return {path_, row.line, header_[column]};
  }

 protected:
  std::string path_;
  std::vector<std::string> header_;
};

// Row by row: a header and rows with as many fields. Quotes may enclose commas, quotes and line
// ends; CRLF is accepted; empty lines are skipped.
class CsvReader : public CsvColumns {
 public:
  // Throws InputError for a column named twice or not at all, and for a text without a header.
  CsvReader(std::string text, const std::string& path);

  // False behind the last row. Throws InputError for a row with another number of fields (a
  // truncated file) or an unclosed quote.
  bool Next(CsvRow* row);

 private:
  bool TakeRow(CsvRow* row);
  bool TakeField(int first, std::size_t number, std::string* field);

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t rows_ = 0;
};

// All rows together.
class CsvTable : public CsvColumns {
 public:
  // Throws what CsvReader throws. A byte order mark is accepted.
  static CsvTable Read(const std::string& path);
  static CsvTable Parse(const std::string& text, const std::string& path);

  const std::vector<CsvRow>& rows() const { return rows_; }

 private:
  std::vector<CsvRow> rows_;
};

// A field as it must be written: quoted when it has to be.
std::string CsvField(std::string_view text);
// A row of them, with its end.
std::string CsvLine(const std::vector<std::string>& fields);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_CSV_H_
