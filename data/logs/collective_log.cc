#include "data/logs/collective_log.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "data/plan/run_ranges.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

constexpr double kBytesPerGb = 1e9;
constexpr double kBytesPerMb = 1e6;
constexpr double kSecondsPerUs = 1e-6;

using Words = std::vector<std::string_view>;

bool HasWord(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Beyond is no message of a computer of today, and no rate.
constexpr double kMostBytes = 1e15;
bool IsSize(double bytes) {
  return bytes >= 0 && bytes <= kMostBytes && bytes == std::floor(bytes);
}
bool IsRate(double bytes_per_s) { return bytes_per_s >= 0 && bytes_per_s <= kMostBytes; }

// ---- nccl-tests.

// "all_reduce" of "all_reduce_perf" and of "./build/all_reduce_perf_mpi".
CollectiveKind KindOf(std::string_view program) {
  return Contains(program, "all_reduce_perf") ? CollectiveKind::kAllreduce : CollectiveKind::kOther;
}

// What NCCL_DEBUG=VERSION and INFO have the library say of itself; its warnings are news.
bool IsOfNccl(std::string_view text) {
  return text.starts_with("NCCL version ") || Contains(text, " NCCL INFO ");
}

class NcclTests {
 public:
  explicit NcclTests(std::string path) : path_(std::move(path)) {}

  void Take(const LogLine& line) {
    std::string_view text = line.text;
    TakeRank(&text);
    const Words words = WordsOf(text);
    if (words.empty()) return;
    const bool is_remark = words.front().starts_with('#');
    if (!is_remark && NumberOf(words.front()) && !columns_.empty()) {
      if (!TakeRow(words, line.number)) log_.unknown.Add(line);
    } else if (is_remark && HasWord(words, "Rank") && TakeRankLine(words, text, line.number)) {
      return;
    } else if (HasWord(words, "algbw") && HasWord(words, "busbw") && HasWord(words, "size")) {
      Words columns = words;
      columns.erase(columns.begin(),
                    std::find(columns.begin(), columns.end(), std::string_view("size")));
      columns_.assign(columns.begin(), columns.end());
      has_units_ = false;
      Begin(line.number);
    } else if (is_remark && HasWord(words, "(us)")) {
      has_units_ = HasWord(words, "(GB/s)") && HasWord(words, "(B)");
    } else if (is_remark && Contains(text, "Collective test starting:")) {
      program_ = words.back();
    } else if (is_remark && HasWord(words, "nThread")) {
      // The devices of a new test follow.
      ranks_.clear();
    } else if (!is_remark && !IsOfNccl(text)) {
      log_.unknown.Add(line);
    }
  }

  CollectiveLog Finish() {
    Judge();
    if (log_.tables.empty()) {
      throw InputError({path_, 0, ""}, "", "has no table of nccl-tests",
                       "a header with size, time, algbw and busbw, as all_reduce_perf prints it");
    }
    return std::move(log_);
  }

 private:
  struct Rank {
    std::string number;
    std::string host;
    std::string device;
  };

  // "#  Rank  0 Group  0 Pid  653 on  host-a device  0 [0000:06:00] NVIDIA H100".
  bool TakeRankLine(const Words& words, std::string_view text, int line) {
    const auto rank = std::find(words.begin(), words.end(), std::string_view("Rank"));
    const auto on = std::find(rank, words.end(), std::string_view("on"));
    if (std::distance(rank, on) < 2 || std::distance(on, words.end()) < 3) return false;
    const std::size_t close = text.find(']');
    const std::string_view device =
        close == std::string_view::npos ? "" : Trim(text.substr(close + 1));
    if (ranks_.size() >= static_cast<std::size_t>(kMostNodes)) {
      throw InputError({path_, line, ""}, "", "is a rank too many",
                       "at most " + std::to_string(kMostNodes));
    }
    ranks_.push_back({std::string(rank[1]), std::string(on[1]), std::string(device)});
    return true;
  }

  void Begin(int line) {
    Judge();
    reduces_ = rooted_ = false;
    if (log_.tables.size() >= kMostLogSeries) {
      throw InputError({path_, line, ""}, "", "is a table too many",
                       "at most " + std::to_string(kMostLogSeries));
    }
    // Tables without rows take no room in the file, and their ranks are kept with each.
    placed_ += ranks_.size();
    if (placed_ > kMostLogRows) {
      throw InputError({path_, line, ""}, "", "is a table of ranks too many",
                       "at most " + std::to_string(kMostLogRows) + " ranks of all tables");
    }
    CollectiveTable& table = log_.tables.emplace_back();
    table.name = program_;
    table.kind = KindOf(program_);
    table.line = line;
    std::set<std::string> numbers;
    std::set<std::string> devices;
    std::map<std::string, std::size_t> places;
    for (const Rank& rank : ranks_) {
      if (!numbers.insert(rank.number).second) {
        throw InputError({path_, line, "Rank"}, rank.number,
                         "stands twice: each process tested alone",
                         "nccl-tests that were built with MPI=1, started together");
      }
      devices.insert(rank.device);
      const auto [place, is_new] = places.try_emplace(rank.host, places.size());
      if (is_new) {
        table.hosts.push_back(rank.host);
        table.placement.push_back(0);
      }
      ++table.placement[place->second];
    }
    if (devices.size() == 1) table.device = *devices.begin();
  }

  // Whether the words fit the header.
  bool TakeRow(const Words& words, int line) {
    if (words.size() != columns_.size()) return false;
    CollectiveRow row;
    row.line = line;
    bool wrong = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& column = columns_[i];
      const auto number = NumberOf(words[i]);
      if (column == "size") {
        if (!number || !IsSize(*number)) return false;
        row.bytes = *number;
      } else if (column == "time" && number && *number > 0) {
        const double seconds = *number * kSecondsPerUs;
        if (!kStepTimes.Holds(seconds)) return false;
        (Before(i, "time") ? row.in_place_s : row.out_of_place_s) = seconds;
      } else if (column.ends_with("bw") && number && !IsRate(*number * kBytesPerGb)) {
        return false;
      } else if (column == "algbw" && number && !Before(i, column)) {
        row.bytes_per_s = *number * kBytesPerGb;
      } else if (column == "busbw" && number && !Before(i, column)) {
        row.bus_bytes_per_s = *number * kBytesPerGb;
      } else if (column == "redop") {
        reduces_ = words[i] != "none";
      } else if (column == "root") {
        rooted_ = number && *number >= 0;
      } else if (column == "#wrong" || column == "error") {
        // Older versions print the largest error, which rounding makes.
        wrong = wrong || (column == "#wrong" && number && *number > 0);
      }
    }
    if (!row.out_of_place_s && !row.in_place_s) return false;
    if (!has_units_) {
      throw InputError({path_, line, "time"}, "", "has no unit",
                       "a line of units below the header, with (B), (us) and (GB/s)");
    }
    CollectiveTable& table = log_.tables.back();
    if (wrong) {
      ++table.wrong;
    } else {
      if (++rows_ > kMostLogRows) {
        throw InputError({path_, line, ""}, "", "is a row too many",
                         "at most " + std::to_string(kMostLogRows));
      }
      table.rows.push_back(row);
    }
    return true;
  }

  // Whether a column of that name stands further left.
  bool Before(std::size_t i, const std::string& column) const {
    return std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i), column) !=
           columns_.begin() + static_cast<std::ptrdiff_t>(i);
  }

  // What the columns say where the name is not told: an all-reduce reduces, has no root, and its
  // busbw is 2 (w-1) / w of algbw, where that of a reduce-scatter is (w-1) / w.
  CollectiveKind KindByRates(const CollectiveTable& table) const {
    const int w = Workers(table.placement);
    if (!reduces_ || rooted_ || w < 2) return CollectiveKind::kOther;
    const auto most =
        std::max_element(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
          return a.bytes_per_s.value_or(0) < b.bytes_per_s.value_or(0);
        });
    if (most == table.rows.end() || most->bytes_per_s.value_or(0) <= 0 || !most->bus_bytes_per_s) {
      return CollectiveKind::kOther;
    }
    const double ratio = *most->bus_bytes_per_s / *most->bytes_per_s * w / (w - 1);
    // Between the 1 of one and the 2 of the other.
    constexpr double kBetween = 1.5;
    return ratio > kBetween ? CollectiveKind::kAllreduce : CollectiveKind::kOther;
  }
  // Says what the last table is, now that it is whole.
  void Judge() {
    if (log_.tables.empty()) return;
    CollectiveTable& table = log_.tables.back();
    if (table.name.empty()) table.kind = KindByRates(table);
  }

  std::string path_;
  CollectiveLog log_;
  std::vector<std::string> columns_;
  bool has_units_ = false;
  bool reduces_ = false;
  bool rooted_ = false;
  std::string program_;
  std::vector<Rank> ranks_;
  std::size_t placed_ = 0;  // ranks of all tables
  std::size_t rows_ = 0;
};

// ---- OSU.

class OsuBenchmarks {
 public:
  explicit OsuBenchmarks(std::string path) : path_(std::move(path)) {}

  void Take(const LogLine& line) {
    const std::string_view text = Trim(line.text);
    const Words words = WordsOf(text);
    if (text.starts_with("# OSU ")) {
      title_ = text.substr(2);
      is_open_ = false;
    } else if (text.starts_with("# Size")) {
      Begin(text, line.number);
    } else if (is_open_ && NumberOf(words.front())) {
      if (!TakeRow(words, line.number)) log_.unknown.Add(line);
    } else if (!text.starts_with('#')) {
      log_.unknown.Add(line);
    }
  }

  CollectiveLog Finish() {
    if (log_.tables.empty()) {
      throw InputError({path_, 0, ""}, "", "has no table of the OSU micro-benchmarks",
                       "a header \"# OSU MPI ...\" and a line \"# Size\" below it");
    }
    return std::move(log_);
  }

 private:
  void Begin(std::string_view header, int line) {
    if (title_.empty()) {
      throw InputError({path_, line, ""}, std::string(header), "has no title",
                       "a line \"# OSU MPI ...\" above it");
    }
    if (log_.tables.size() >= kMostLogSeries) {
      throw InputError({path_, line, ""}, "", "is a table too many",
                       "at most " + std::to_string(kMostLogSeries));
    }
    CollectiveTable& table = log_.tables.emplace_back();
    table.name = title_;
    table.line = line;
    const bool in_us = Contains(header, "Latency(us)") || Contains(header, "Latency (us)");
    const bool in_mb = Contains(header, "Bandwidth (MB/s)");
    // Point to point it is "OSU MPI Latency Test", with what MPI runs on, as "OSU MPI-CUDA Latency
    // Test", and nothing else: "OSU MPI_Put Latency Test" is of one side.
    const Words words = WordsOf(title_);
    const auto is = [&](std::string_view what) {
      return words.size() >= 4 && (words[1] == "MPI" || words[1].starts_with("MPI-")) &&
             words[2] == what && words[3] == "Test";
    };
    const bool allreduce = words.size() >= 4 && words[2] == "Allreduce" && words[3] == "Latency";
    if (allreduce) table.kind = CollectiveKind::kAllreduce;
    if (is("Latency")) table.kind = CollectiveKind::kLatency;
    if (is("Bandwidth")) table.kind = CollectiveKind::kBandwidth;
    rate_ = table.kind == CollectiveKind::kBandwidth;
    if (table.kind != CollectiveKind::kOther && !(rate_ ? in_mb : in_us)) {
      throw InputError({path_, line, "Size"}, std::string(header), "has no unit that is known",
                       rate_ ? "Bandwidth (MB/s)" : "Latency (us)");
    }
    is_open_ = true;
  }

  bool TakeRow(const Words& words, int line) {
    if (words.size() < 2) return false;
    const double bytes = NumberOf(words[0]).value_or(-1);
    const double value = NumberOf(words[1]).value_or(-1);
    if (!IsSize(bytes)) return false;
    if (rate_ ? !IsRate(value * kBytesPerMb) : !kStepTimes.Holds(value * kSecondsPerUs)) {
      return false;
    }
    if (++rows_ > kMostLogRows) {
      throw InputError({path_, line, ""}, "", "is a row too many",
                       "at most " + std::to_string(kMostLogRows));
    }
    CollectiveRow row;
    row.bytes = bytes;
    row.line = line;
    if (rate_) {
      row.bytes_per_s = value * kBytesPerMb;
    } else {
      row.out_of_place_s = value * kSecondsPerUs;
    }
    log_.tables.back().rows.push_back(row);
    return true;
  }

  std::string path_;
  CollectiveLog log_;
  std::string title_;
  bool is_open_ = false;
  bool rate_ = false;
  std::size_t rows_ = 0;
};

template <class Reader>
CollectiveLog ReadTable(const std::string& path) {
  Reader reader(path);
  ForEachLogLine(path, [&](const LogLine& line) { reader.Take(line); });
  return reader.Finish();
}

}  // namespace

CollectiveLog ReadNcclTests(const std::string& path) { return ReadTable<NcclTests>(path); }
CollectiveLog ReadOsuBenchmarks(const std::string& path) { return ReadTable<OsuBenchmarks>(path); }

}  // namespace stepcast
