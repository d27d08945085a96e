// The public traces of four jobs on 1 to 64 devices, ways to split them, and scores.
#ifndef STEPCAST_TESTS_CALIBRATE_ADAPTDL_TRACES_H_
#define STEPCAST_TESTS_CALIBRATE_ADAPTDL_TRACES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "data/io/import_adaptdl.h"
#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "tests/support/datasets.h"

namespace stepcast {

inline constexpr const char* kTraceApps[] = {"bert", "cifar10", "deepspeech2", "imagenet"};

struct Traces {
  std::vector<Run> placements;   // layouts of up to four nodes
  std::vector<Run> scalability;  // up to sixteen nodes
  Cluster cluster;
  Device device;

  std::vector<Run> All() const {
    std::vector<Run> all = placements;
    all.insert(all.end(), scalability.begin(), scalability.end());
    return all;
  }
};

// Empty where the data are absent.
inline std::optional<Traces> ReadTraces() {
  const std::optional<std::string> folder = DatasetFolder("adaptdl");
  if (!folder) return std::nullopt;
  const std::string machines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines";
  Traces traces;
  for (const char* app : kTraceApps) {
    const auto read = [&](const char* kind, std::vector<Run>* runs) {
      const std::vector<Run> more =
          ImportAdaptdl(*folder + "/" + app + "_" + kind + ".csv", "", "t4");
      runs->insert(runs->end(), more.begin(), more.end());
    };
    read("placements", &traces.placements);
    read("scalability", &traces.scalability);
  }
  traces.cluster = ReadCluster(machines + "/aws-g4dn-12xlarge.yaml");
  traces.device = FindDevice(ReadDevices(machines + "/gpus.yaml"), "t4").value();
  return traces;
}

template <class Keep>
std::vector<Run> RunsWhere(const std::vector<Run>& runs, const Keep& keep) {
  std::vector<Run> kept;
  for (const Run& run : runs) {
    if (keep(run)) kept.push_back(run);
  }
  return kept;
}

struct TraceSplit {
  std::vector<Run> fitted;
  std::vector<Run> held_out;
};

// Layouts of at most so many nodes and four devices, against all runs of more than four devices.
inline TraceSplit SmallSplit(const Traces& traces, int most_nodes) {
  return {RunsWhere(traces.placements,
                    [&](const Run& run) {
                      return run.plan.nodes() <= most_nodes && run.plan.workers() <= 4;
                    }),
          RunsWhere(traces.All(), [](const Run& run) { return run.plan.workers() > 4; })};
}

// All runs of the other workloads and those of one device, against the rest.
inline TraceSplit NewJobSplit(const Traces& traces, const std::string& workload) {
  const auto known = [&](const Run& run) {
    return run.workload != workload || run.plan.workers() == 1;
  };
  return {RunsWhere(traces.All(), known),
          RunsWhere(traces.All(), [&](const Run& run) { return !known(run); })};
}

// A fifth of the rows, drawn by Fisher-Yates with a generator that is the same everywhere, against
// the rest.
inline TraceSplit FifthSplit(const Traces& traces, std::uint64_t seed) {
  std::vector<Run> runs = traces.All();
  std::mt19937_64 engine(seed);
  for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[engine() % i]);
  const auto cut = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 5);
  return {{runs.begin(), cut}, {cut, runs.end()}};
}

inline CalibrationProblem TraceProblem(const Traces& traces, const std::vector<Run>& runs) {
  CalibrationProblem problem;
  problem.cluster = traces.cluster;
  problem.runs = runs;
  for (const Run& run : runs) problem.workloads[run.workload] = *FindWorkload(run.workload);
  problem.devices["t4"] = traces.device;
  return problem;
}

// One held-out run.
struct Judged {
  double error = 0;       // predicted / measured - 1
  double half_width = 0;  // of the 90 % interval, as a share of the prediction
  bool covered = false;
};

struct TraceScore {
  std::vector<Judged> rows;

  double mape() const {
    return Mean([](const Judged& r) { return std::abs(r.error); });
  }
  double bias() const {
    return Mean([](const Judged& r) { return r.error; });
  }
  double coverage() const {
    return Mean([](const Judged& r) { return r.covered ? 1.0 : 0.0; });
  }
  double error_quantile(double q) const {
    return QuantileOf([](const Judged& r) { return std::abs(r.error); }, q);
  }
  // Median half-width over median error.
  double width_ratio() const {
    return QuantileOf([](const Judged& r) { return r.half_width; }, 0.5) / error_quantile(0.5);
  }

  void Add(const TraceScore& more) { rows.insert(rows.end(), more.rows.begin(), more.rows.end()); }

 private:
  template <class Of>
  double Mean(const Of& of) const {
    double sum = 0;
    for (const Judged& row : rows) sum += of(row);
    return sum / static_cast<double>(rows.size());
  }
  template <class Of>
  double QuantileOf(const Of& of, double q) const {
    std::vector<double> values;
    for (const Judged& row : rows) values.push_back(of(row));
    std::sort(values.begin(), values.end());
    return values.at(static_cast<std::size_t>(q * static_cast<double>(values.size() - 1)));
  }
};

// By workload.
using TraceScores = std::map<std::string, TraceScore>;

inline TraceScores JudgeTraces(const Traces& traces, const Cluster& fitted,
                               const std::vector<Run>& held_out) {
  std::map<std::string, Predictor> predictors;
  TraceScores scores;
  for (const Run& run : held_out) {
    const Predictor& predictor =
        predictors
            .try_emplace(run.workload, fitted, *FindWorkload(run.workload), traces.device, "t4")
            .first->second;
    const Prediction p = predictor.Predict(run.plan);
    scores[run.workload].rows.push_back({p.step_time / run.step_time - 1, p.high / p.step_time - 1,
                                         p.low <= run.step_time && run.step_time <= p.high});
  }
  return scores;
}

inline double MeanMape(const TraceScores& scores) {
  double sum = 0;
  for (const auto& [name, score] : scores) sum += score.mape();
  return sum / static_cast<double>(scores.size());
}

inline TraceScore Together(const TraceScores& scores) {
  TraceScore all;
  for (const auto& [name, score] : scores) all.Add(score);
  return all;
}

inline void PrintScores(const std::string& title, const TraceScores& scores) {
  const auto line = [&](const std::string& name, const TraceScore& s, double mape) {
    std::printf(
        "[ measured ] %-14s %-16s %4zu rows, MAPE %5.2f %%, p90 %5.1f %%, bias %+5.1f %%, %5.1f %% "
        "in their 90 %% interval, half-width %.2f x the median error\n",
        title.c_str(), name.c_str(), s.rows.size(), 100 * mape, 100 * s.error_quantile(0.9),
        100 * s.bias(), 100 * s.coverage(), s.width_ratio());
  };
  for (const auto& [name, score] : scores) line(name, score, score.mape());
  line("mean of apps", Together(scores), MeanMape(scores));
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_CALIBRATE_ADAPTDL_TRACES_H_
