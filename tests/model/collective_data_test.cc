// Collectives against what others measured: fitted on some rows, judged on the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/io/csv.h"
#include "model/exchange/allreduce.h"
#include "model/exchange/broadcast.h"
#include "model/exchange/segments.h"
#include "model/statistics/order_statistics.h"
#include "model/step/parameters.h"
#include "tests/support/datasets.h"

namespace stepcast {
namespace {

// ---- Tables.

class Table {
 public:
  explicit Table(const std::string& path) : table_(CsvTable::Read(path)) {}
  std::size_t size() const { return table_.rows().size(); }
  const std::string& Text(std::size_t row, const char* column) const {
    return table_.rows()[row].fields[table_.RequiredColumn(column)];
  }
  // 0 where the field is empty.
  double Number(std::size_t row, const char* column) const {
    const std::string& text = Text(row, column);
    return text.empty() ? 0.0 : std::stod(text);
  }

 private:
  CsvTable table_;
};

// The text between two marks; empty where they are not there.
std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + before.size();
  const std::size_t end = text.find(after, from);
  return end == std::string::npos ? "" : text.substr(from, end - from);
}

// ---- Fits.

// A value to be found, positive, with what is known of it before: a centre and the standard
// deviation of its logarithm.
struct Unknown {
  double centre;
  double spread;
};
using Values = std::vector<double>;
using Predict = std::function<double(std::size_t row, const Values&)>;

// The most plausible values, if logarithms of measurements scatter by 6 per cent: least squares in
// the logarithms by search along each coordinate with a step that grows and shrinks.
Values Fit(const std::vector<Unknown>& unknowns, const std::vector<std::size_t>& rows,
           const std::vector<double>& measured, const Predict& predict) {
  constexpr double kScatter = 0.06;
  const auto cost = [&](const Values& logs) {
    Values values(logs.size());
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      values[i] = std::exp(logs[i]);
      sum += std::pow((logs[i] - std::log(unknowns[i].centre)) / unknowns[i].spread, 2);
    }
    for (const std::size_t row : rows) {
      sum += std::pow(std::log(predict(row, values) / measured[row]) / kScatter, 2);
    }
    return sum;
  };
  Values best;
  for (const Unknown& unknown : unknowns) best.push_back(std::log(unknown.centre));
  double least = cost(best);
  // Rosenbrock's rules on a set of directions, the last sweep's progress among them.
  for (double step = 1.0; step > 1e-6;) {
    const Values before = best;
    for (std::size_t i = 0; i <= best.size(); ++i) {
      for (const double sign : {1.0, -1.0}) {
        Values trial = best;
        for (std::size_t k = 0; k < best.size(); ++k) {
          trial[k] += i < best.size() ? (k == i ? sign * step : 0.0)
                                      : std::max(sign, 0.0) * (best[k] - before[k]);
        }
        const double at = cost(trial);
        if (at < least) {
          least = at;
          best = trial;
        }
      }
    }
    if (best == before) step /= 2;
  }
  for (double& value : best) value = std::exp(value);
  return best;
}

struct Errors {
  std::vector<double> all;  // absolute, relative to the measurement
  void Add(double predicted, double measured) { all.push_back(std::abs(predicted / measured - 1)); }
  void Add(const Errors& others) { all.insert(all.end(), others.all.begin(), others.all.end()); }
  double mean() const {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
  double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  }
};

void Print(const std::string& what, const Errors& errors) {
  std::printf("  %-44s %3zu rows  mean %5.1f %%  median %5.1f %%\n", what.c_str(),
              errors.all.size(), 100 * errors.mean(), 100 * errors.median());
}

// ---- Shaped links between cloud machines, Gloo and NCCL.

struct ShapedRow {
  std::string operation;
  std::string library;
  int workers = 0;
  DataSize<> message;
  std::optional<DataRate<>> shaped;
  Duration<> round_trip;  // the delay was set at both ends
  double measured_s = 0;
};

// Cloud machines of one placement exchange jumbo frames, and rates were set in bits of frames.
constexpr double kJumboPayload = 8949.0 / 9015.0;

std::vector<ShapedRow> ReadShaped(const std::string& path) {
  const Table table(path);
  std::vector<ShapedRow> rows;
  for (std::size_t i = 0; i < table.size(); ++i) {
    ShapedRow row;
    row.operation = table.Text(i, "strategy");
    row.library = table.Text(i, "notes").find(" Gloo;") != std::string::npos ? "Gloo" : "NCCL";
    row.workers = static_cast<int>(table.Number(i, "workers"));
    // "MB" there is 2^20 bytes: at a set 1 Gbit/s 128 of them take 1.082 s.
    row.message = Mebibytes(std::stod(Between(table.Text(i, "model"), "(message ", " MB)")));
    if (table.Number(i, "link_gbps") > 0) {
      row.shaped = GigabitsPerSecond(table.Number(i, "link_gbps")) * kJumboPayload;
    }
    row.round_trip = Milliseconds(2 * table.Number(i, "latency_ms"));
    row.measured_s = table.Number(i, "sync_time_s");
    rows.push_back(row);
  }
  return rows;
}

// What is fitted, and what it is by documents: a flow carries 5 Gbit/s, a machine 10; a host
// answers within a millisecond; slow start takes four round trips to fill the paths here.
enum ShapedUnknown { kFlow, kLine, kAnswer, kRamp };
const std::vector<Unknown> kShapedUnknowns = {
    {5e9 / 8, 0.3}, {10e9 / 8, 0.3}, {3e-4, 1.5}, {4.0, 0.5}};

double PredictShaped(const ShapedRow& row, const Values& v) {
  const DataRate<> line =
      row.shaped ? Min(*row.shaped, BytesPerSecond(v[kLine])) : BytesPerSecond(v[kLine]);
  const DataRate<> flow = BytesPerSecond(v[kFlow]);
  const Duration<> answer = row.round_trip + Seconds(v[kAnswer]);
  const Duration<> ramp = row.round_trip * v[kRamp];
  const auto ring_hop = [&] {
    const DataSize<> segment = SegmentOf(row.workers, row.message);
    return Hop<double>{ramp, SegmentedBandwidth(row.workers, Min(line, flow), answer, segment)};
  };
  if (row.library == "NCCL") {
    // Several flows, and pieces that need no request.
    return RingAllreduce(row.workers, Hop<double>{row.round_trip / 2.0, line})
        .Time(row.message)
        .si();
  }
  if (row.operation == "allreduce") {
    return SegmentedRingAllreduce(row.workers, Min(line, flow), answer, row.message)
        .Time(row.message)
        .si();
  }
  if (row.operation == "broadcast") {
    const Hop<double> link{ramp, line};
    return ConcurrentBinomialBroadcast(row.workers, link, flow).Time(row.message).si();
  }
  const DataRate<> gather = Min(line, flow * (row.workers - 1.0));
  SyncCost<double> cost = GatheringReduce(row.workers, ring_hop(), gather);
  cost.per_call = ramp;
  return cost.Time(row.message).si();
}

// How rows are divided in two: every second one (sizes apart), pairs of rows (shapes of the link
// apart), and the four shapes of one size of the cluster against the other.
const std::vector<std::pair<const char*, std::size_t>> kSplits = {
    {"by message", 1}, {"by link", 2}, {"by workers", 8}};

using Judged = std::map<std::string, Errors>;

// Fits each half of the rows of `operations` and judges the other.
void JudgeHalves(const std::vector<ShapedRow>& all, const std::string& library,
                 const std::vector<std::string>& operations, std::size_t stride, Judged* judged) {
  std::vector<ShapedRow> rows;
  std::vector<double> measured;
  for (const ShapedRow& row : all) {
    const bool named =
        std::find(operations.begin(), operations.end(), row.operation) != operations.end();
    if (!named || row.library != library) continue;
    rows.push_back(row);
    measured.push_back(row.measured_s);
  }
  ASSERT_EQ(rows.size(), 16 * operations.size());
  const auto predict = [&](std::size_t i, const Values& v) { return PredictShaped(rows[i], v); };
  for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
    std::vector<std::size_t> fitted;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i / stride % 2 == half) fitted.push_back(i);
    }
    const Values v = Fit(kShapedUnknowns, fitted, measured, predict);
    std::printf("  %s %s: flow %.2f Gbit/s, line %.2f Gbit/s, answer %.2f ms, ramp %.1f RTT\n",
                library.c_str(), operations.front().c_str(), v[kFlow] * 8e-9, v[kLine] * 8e-9,
                v[kAnswer] * 1e3, v[kRamp]);
    std::map<std::string, double> predicted_pair;
    std::map<std::string, double> measured_pair;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i / stride % 2 == half) continue;
      const double at = predict(i, v);
      (*judged)[library + " " + rows[i].operation].Add(at, rows[i].measured_s);
      if (operations.size() == 1) continue;
      const std::string key = std::to_string(rows[i].workers) + " " +
                              std::to_string(rows[i].message.si()) + " " +
                              std::to_string(rows[i].round_trip.si());
      predicted_pair[key] += at;
      measured_pair[key] += rows[i].measured_s;
    }
    for (const auto& [key, at] : predicted_pair) {
      (*judged)[library + " reduce + broadcast"].Add(at, measured_pair[key]);
    }
  }
}

// Reduce and broadcast together are what a parameter server does: all push, all pull.
TEST(CollectiveData, ShapedLinks) {
  const auto path = DatasetFolder("tc_netem_collectives.csv");
  if (!path) GTEST_SKIP() << MissingDataset("tc_netem_collectives.csv");
  const std::vector<ShapedRow> all = ReadShaped(*path);
  for (const auto& [split, stride] : kSplits) {
    Judged judged;
    JudgeHalves(all, "Gloo", {"allreduce"}, stride, &judged);
    JudgeHalves(all, "Gloo", {"reduce", "broadcast"}, stride, &judged);
    JudgeHalves(all, "NCCL", {"allreduce"}, stride, &judged);
    for (const auto& [operation, errors] : judged) {
      Print(operation + ", halves " + split, errors);
      EXPECT_EQ(errors.all.size(), 16U) << operation;
      EXPECT_LE(errors.mean(), 0.12) << operation << " " << split;
    }
  }
}

// ---- The lab: Gloo over real TCP and emulated links. Nothing is fitted.

// Share of a frame's bytes that are payload, as the lab counts frames; the round trip of its switch
// when none is set.
constexpr double kLabPayload = 1448.0 / 1514.0;
const Duration<> kLabRoundTrip = Milliseconds(0.36);

TEST(CollectiveData, LabRingWithoutLoss) {
  const auto path = DatasetFolder("../lab/gloo_sweep_cases.csv");
  if (!path) GTEST_SKIP() << MissingDataset("../lab/gloo_sweep_cases.csv");
  const Table table(*path);
  std::map<std::string, Errors> errors;
  Errors plain;
  for (std::size_t i = 0; i < table.size(); ++i) {
    // Where the processors are busy all the time the links are not what is measured.
    if (table.Text(i, "op") != "allreduce" || table.Text(i, "engine") != "gloo" ||
        table.Number(i, "loss_pct") > 0 || table.Number(i, "cpu_pct") > 80) {
      continue;
    }
    const int workers = static_cast<int>(table.Number(i, "workers"));
    const double buckets = table.Number(i, "buckets");
    const DataSize<> bucket = Bytes(table.Number(i, "bytes") / buckets);
    const DataRate<> line = MegabitsPerSecond(table.Number(i, "link_mbit")) * kLabPayload;
    const Duration<> set = Milliseconds(table.Number(i, "rtt_ms"));
    // Gradients become ready at equal distances in the last two thirds of the compute time.
    const double compute = table.Number(i, "compute_s");
    const auto end = [&](const SyncCost<double>& cost) {
      double last = compute;
      for (double b = 1; b <= buckets; ++b) {
        last = std::max(
            last, compute * (1 + 2 * b / buckets) / 3 + (buckets - b + 1) * cost.Time(bucket).si());
      }
      return last;
    };
    const SyncCost<double> cost =
        SegmentedRingAllreduce(workers, line, set + kLabRoundTrip, bucket);
    const double measured = table.Number(i, "mean_s");
    const std::string group = buckets > 1    ? "with buckets"
                              : set.si() > 0 ? "with a round trip"
                                             : "without a round trip";
    errors[group].Add(end(cost), measured);
    plain.Add(end(RingAllreduce(workers, Hop<double>{set / 2.0, line})), measured);
    if (std::getenv("STEPCAST_ROWS") != nullptr) {
      std::printf("    w %d, %.0f Mbit/s, %.0f ms, %.0f x %.1f MB: %.3f %.3f s %+.1f %%\n", workers,
                  table.Number(i, "link_mbit"), set.in(kMilliseconds), buckets,
                  bucket.in(kMegabytes), end(cost), measured, 100 * (end(cost) / measured - 1));
    }
  }
  Errors all;
  for (const auto& [group, of_group] : errors) {
    Print("lab, ring " + group, of_group);
    EXPECT_LE(of_group.median(), 0.05) << group;
    all.Add(of_group);
  }
  Print("lab, all", all);
  Print("lab, plain ring with half a round trip a hop", plain);
  EXPECT_GE(all.all.size(), 50U);
  EXPECT_LE(all.median(), 0.03);
  EXPECT_LE(all.mean(), plain.mean());
}

// ---- DeepBench: each system and library fitted on 4 and 16 ranks, judged on 8 and 32.

enum DeepBenchUnknown { kAlpha, kRate, kDeviceAlpha, kDeviceRate };

TEST(CollectiveData, DeepBench) {
  const auto path = DatasetFolder("deepbench_allreduce.csv");
  if (!path) GTEST_SKIP() << MissingDataset("deepbench_allreduce.csv");
  const Table table(*path);
  struct Row {
    NodeShape shape;
    DataSize<> message;
  };
  std::vector<Row> rows;
  std::vector<double> measured;
  struct Group {
    std::vector<std::size_t> fitted;
    std::vector<std::size_t> judged;
  };
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string& notes = table.Text(i, "notes");
    Row row;
    row.shape = {static_cast<int>(table.Number(i, "workers")),
                 static_cast<int>(table.Number(i, "nodes")),
                 static_cast<int>(table.Number(i, "gpus_per_node")), 1};
    row.message = Bytes(std::stod(Between(notes, "message_bytes=", ";")));
    rows.push_back(row);
    measured.push_back(table.Number(i, "sync_time_s"));
    if (row.message < Megabytes(1.0)) continue;
    // One process for all devices or one for each: the same library.
    const std::string library = Between(notes, "algorithm '", "'");
    const bool nccl = library.find("NCCL") == 0;
    Group& group = groups[table.Text(i, "gpu") + ", " + (nccl ? "NCCL 2.0" : library)];
    const int w = row.shape.workers;
    if (w == 4 || w == 16) group.fitted.push_back(i);
    if (w == 8 || w == 32) group.judged.push_back(i);
  }
  const auto prior = [](ClusterParameter p) {
    const ParameterSpec& spec = kClusterParameterSpecs[static_cast<std::size_t>(p)];
    return Unknown{spec.prior * spec.si_per_unit, spec.prior_log_sd};
  };
  const std::vector<Unknown> unknowns = {prior(kLinkLatency), prior(kLinkBandwidth),
                                         prior(kDeviceLatency), prior(kHostBandwidth)};
  const auto predict = [&](std::size_t i, const Values& v) {
    const NodeShape& shape = rows[i].shape;
    const Hop<double> inter{Seconds(v[kAlpha]), BytesPerSecond(v[kRate])};
    const Hop<double> intra{Seconds(v[kDeviceAlpha]), BytesPerSecond(v[kDeviceRate])};
    return FlatRingAllreduce(shape, inter, intra).Time(rows[i].message).si();
  };
  Errors all;
  Errors medians;
  std::map<std::string, double> by_system;
  for (const auto& [name, group] : groups) {
    if (group.fitted.empty() || group.judged.empty()) continue;
    const Values v = Fit(unknowns, group.fitted, measured, predict);
    Errors errors;
    for (const std::size_t i : group.judged) {
      const double at = predict(i, v);
      errors.Add(at, measured[i]);
      if (std::getenv("STEPCAST_ROWS") != nullptr) {
        std::printf("    %d ranks, %.1f MB: %.3f %.3f ms %+.0f %%\n", rows[i].shape.workers,
                    rows[i].message.in(kMegabytes), 1e3 * at, 1e3 * measured[i],
                    100 * (at / measured[i] - 1));
      }
    }
    Print(name, errors);
    std::printf("      link %.2f GB/s, %.0f us; device %.2f GB/s, %.0f us\n", v[kRate] / 1e9,
                v[kAlpha] * 1e6, v[kDeviceRate] / 1e9, v[kDeviceAlpha] * 1e6);
    RecordProperty(name, std::to_string(errors.median()));
    all.Add(errors);
    medians.all.push_back(errors.median());
    by_system[name] = errors.median();
  }
  Print("DeepBench, all systems", all);
  Print("DeepBench, medians of the systems", medians);
  EXPECT_GE(all.all.size(), 60U);
  EXPECT_LE(all.median(), 0.15);
  EXPECT_LE(medians.median(), 0.15);
  EXPECT_LE(by_system.at("M40, NCCL 2.0"), 0.15);
  // This one grows with the nodes, as a quiet ring does not.
  EXPECT_LE(by_system.at("Xeon Phi 7250F (CPU), Intel MLSL"), 0.25);
}

}  // namespace
}  // namespace stepcast
