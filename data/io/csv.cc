#include "data/io/csv.h"

#include <algorithm>
#include <unordered_set>

#include "data/io/text_file.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostNamed = 50;  // columns that an error lists

// Splits one row that begins at `*at`; moves `*at` past its line end and `*line` past its lines.
CsvRow TakeRow(const std::string& text, const std::string& path, std::size_t* at, int* line) {
  CsvRow row;
  row.line = *line;
  std::string field;
  bool quoted = false;  // inside quotes
  bool closed = false;  // this field's quotes have been closed
  std::size_t i = *at;
  const auto fail = [&](const char* problem) {
    throw InputError({path, *line, "column " + std::to_string(row.fields.size() + 1)}, field,
                     problem);
  };
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
        if (c == '\n') ++*line;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += c;
        ++i;
      } else {
        quoted = false;
        closed = true;
      }
    } else if (c == '"') {
      if (!field.empty() || closed) fail("has a quote in the middle of a field");
      quoted = true;
    } else if (c == ',') {
      row.fields.push_back(std::move(field));
      field.clear();
      closed = false;
    } else if (c == '\n' || (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n')) {
      i += c == '\r' ? 2 : 1;
      ++*line;
      break;
    } else {
      if (closed) fail("has text behind its closing quote");
      field += c;
    }
  }
  if (quoted) {
    throw InputError({path, row.line, "column " + std::to_string(row.fields.size() + 1)}, field,
                     "begins with a quote that is never closed");
  }
  row.fields.push_back(std::move(field));
  *at = i;
  return row;
}

}  // namespace

CsvTable CsvTable::Read(const std::string& path) {
  return Parse(ReadTextFile(path, kMostCsvBytes), path);
}

CsvTable CsvTable::Parse(const std::string& text, const std::string& path) {
  CsvTable table;
  table.path_ = path;
  std::size_t at = 0;
  int line = 1;
  while (at < text.size()) {
    CsvRow row = TakeRow(text, path, &at, &line);
    if (row.fields.size() == 1 && Trim(row.fields[0]).empty()) continue;
    if (table.header_.empty()) {
      for (std::string& name : row.fields) name = std::string(Trim(name));
      table.header_ = std::move(row.fields);
      if (table.header_.size() > kMostColumns) {
        throw InputError({path, row.line, "header"}, "",
                         "has " + std::to_string(table.header_.size()) + " columns",
                         "at most " + std::to_string(kMostColumns));
      }
      std::unordered_set<std::string_view> names;
      for (std::size_t i = 0; i < table.header_.size(); ++i) {
        const std::string& name = table.header_[i];
        const InputPlace place{path, row.line, "column " + std::to_string(i + 1)};
        if (name.empty()) throw InputError(place, "", "has no name in the header");
        if (!names.insert(name).second) {
          throw InputError(place, name, "is the name of an earlier column too", "each column once");
        }
      }
      continue;
    }
    if (row.fields.size() != table.header_.size()) {
      throw InputError({path, row.line, ""}, "",
                       "has " + std::to_string(row.fields.size()) + " fields",
                       std::to_string(table.header_.size()) + ", as the header");
    }
    table.rows_.push_back(std::move(row));
  }
  if (table.header_.empty()) throw InputError({path, 0, ""}, "", "is empty", "a header and rows");
  return table;
}

std::optional<std::size_t> CsvTable::Column(std::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  if (it == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(it - header_.begin());
}

std::size_t CsvTable::RequiredColumn(std::string_view name) const {
  if (const auto column = Column(name)) return *column;
  std::string present;
  for (std::size_t i = 0; i < std::min(header_.size(), kMostNamed); ++i) {
    present += (i == 0 ? "" : ", ") + header_[i];
  }
  if (header_.size() > kMostNamed) {
    present += ", ... (" + std::to_string(header_.size()) + " columns)";
  }
  const std::string meant = NearestName(name, header_);
  throw InputError({path_, 1, std::string(name)}, "",
                   "is a required column that is missing" +
                       (meant.empty() ? "" : " (is it meant by " + meant + "?)"),
                   "a header with it; this file has " + present);
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace stepcast
