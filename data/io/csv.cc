#include "data/io/csv.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

#include "data/io/text_file.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

bool IsComment(const CsvRow& row) { return Trim(row.fields.front()).starts_with('#'); }

constexpr const char* kNoComments = "no comments; what is to be remarked has a column of its own";

}  // namespace

CsvReader::CsvReader(std::string text, const std::string& path) : text_(std::move(text)) {
  path_ = path;
  CsvRow row;
  if (!TakeRow(&row)) throw InputError({path, 0, ""}, "", "is empty", "a header and rows");
  if (IsComment(row)) {
    throw InputError({path, row.line, "header"}, row.fields.front(),
                     "is a comment, where names of columns are looked for", kNoComments);
  }
  if (row.fields.size() > kMostColumns) {
    throw InputError({path, row.line, "header"}, "",
                     "has " + std::to_string(row.fields.size()) + " columns",
                     "at most " + std::to_string(kMostColumns));
  }
  for (const auto& [sign, problem] :
       {std::pair(';', "is separated by semicolons"), std::pair('\t', "is separated by tabs")}) {
    if (row.fields.size() == 1 && row.fields[0].find(sign) != std::string::npos) {
      throw InputError({path, row.line, "header"}, row.fields[0], problem,
                       "commas between fields, and a point before decimals");
    }
  }
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < row.fields.size(); ++i) {
    const InputPlace place{path, row.line, "column " + std::to_string(i + 1)};
    const std::string_view name = Trim(row.fields[i]);
    if (name.empty()) throw InputError(place, "", "has no name in the header");
    header_.push_back(CheckedName(name, place));
    if (!names.insert(header_.back()).second) {
      throw InputError(place, header_.back(), "is the name of an earlier column too",
                       "each column once");
    }
  }
}

bool CsvReader::Next(CsvRow* row) {
  if (!TakeRow(row)) return false;
  if (row->fields.size() != header_.size()) {
    if (IsComment(*row)) {
      throw InputError({path_, row->line, ""}, row->fields.front(),
                       "is a comment, where a row is looked for", kNoComments);
    }
    throw InputError({path_, row->line, ""}, "",
                     "has " + std::to_string(row->fields.size()) + " fields",
                     std::to_string(header_.size()) + ", as the header" +
                         (row->fields.size() < header_.size()
                              ? ""
                              : "; decimals follow a point, and a field with a comma stands in "
                                "quotes"));
  }
  if (++rows_ > kMostRows) {
    throw InputError({path_, row->line, ""}, "", "is a row too many",
                     "at most " + std::to_string(kMostRows));
  }
  return true;
}

// The next row that is not empty.
bool CsvReader::TakeRow(CsvRow* row) {
  do {
    if (at_ >= text_.size()) return false;
    row->line = line_;
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
      if (row->fields.size() == count) row->fields.emplace_back();
      more = TakeField(row->line, count + 1, &row->fields[count]);
    }
    row->fields.resize(count);
  } while (row->fields.size() == 1 && Trim(row->fields[0]).empty());
  return true;
}

// The next field of a row that began on line `first`, the `number`th; whether another follows.
bool CsvReader::TakeField(int first, std::size_t number, std::string* field) {
  const auto fail = [&](int line, const char* problem) {
    throw InputError({path_, line, "column " + std::to_string(number)}, *field, problem);
  };
  field->clear();
  bool closed = false;  // its quotes
  while (true) {
    const std::size_t end = std::min(text_.find_first_of(",\n\r\"", at_), text_.size());
    const bool is_return = end < text_.size() && text_[end] == '\r';
    const bool ends_line = is_return && end + 1 < text_.size() && text_[end + 1] == '\n';
    if (closed && (end > at_ || (is_return && !ends_line))) {
      fail(line_, "has text behind its closing quote");
    }
    field->append(text_, at_, end - at_);
    at_ = end + 1;
    if (end == text_.size()) return false;
    if (text_[end] == ',') return true;
    if (text_[end] == '\n' || ends_line) {
      if (ends_line) ++at_;
      ++line_;
      return false;
    }
    if (is_return) {
      *field += '\r';
      continue;
    }
    if (!field->empty() || closed) fail(line_, "has a quote in the middle of a field");
    // What is enclosed, in which two quotes are one.
    while (!closed) {
      const std::size_t quote = std::min(text_.find('"', at_), text_.size());
      field->append(text_, at_, quote - at_);
      line_ += static_cast<int>(std::count(text_.data() + at_, text_.data() + quote, '\n'));
      at_ = quote + 1;
      if (quote == text_.size()) fail(first, "begins with a quote that is never closed");
      closed = at_ >= text_.size() || text_[at_] != '"';
      if (!closed) *field += text_[at_++];
    }
  }
}

CsvTable CsvTable::Read(const std::string& path) {
  return Parse(ReadTextFile(path, kMostCsvBytes), path);
}

CsvTable CsvTable::Parse(const std::string& text, const std::string& path) {
  CsvReader reader(text, path);
  CsvTable table;
  for (CsvRow row; reader.Next(&row);) table.rows_.push_back(row);
  table.path_ = path;
  table.header_ = reader.header();
  return table;
}

std::optional<std::size_t> CsvColumns::Column(std::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  if (it == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(it - header_.begin());
}

std::size_t CsvColumns::RequiredColumn(std::string_view name, std::string_view other) const {
  if (const auto column = Column(name)) return *column;
  const std::string meant = NearestName(name, header_);
  throw InputError({path_, 1, std::string(name)}, "",
                   "is a required column that is missing" +
                       (meant.empty() ? "" : " (is it meant by " + meant + "?)"),
                   "a header with it" + (other.empty() ? "" : ", or with " + std::string(other)) +
                       "; this file has " + JoinNames(header_));
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

std::string CsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + CsvField(fields[i]);
  return line + "\n";
}

}  // namespace stepcast
