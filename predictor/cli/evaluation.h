// Forecasts of measured runs beside the measurements, and scores of them: what `stepcast evaluate`
// and the pages of reports tell.
#ifndef STEPCAST_PREDICTOR_CLI_EVALUATION_H_
#define STEPCAST_PREDICTOR_CLI_EVALUATION_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate.h"
#include "calibrate/caveats.h"
#include "data/plan/key.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {

// What is kept of a prediction.
struct Answer {
  Duration<> step_time;
  Duration<> low;
  Duration<> high;
  double doublings = 0;  // of the plan beyond the fitted runs (model/step/discrepancy.h)
  std::vector<std::string> flags;
};

struct EvaluatedRun {
  std::size_t number = 0;  // from 1, in the order of the runs
  InputPlace place;
  std::string workload;
  std::string device;
  Plan plan;
  Duration<> measured;
  bool stopped = false;
  Answer predicted;

  // predicted / measured - 1.
  double error() const;
};

// Fractions, not per cent.
struct Score {
  int runs = 0;
  double mape = 0;
  double median_ape = 0;
  double p90_ape = 0;
  double bias = 0;  // mean of predicted / measured - 1
  double coverage90 = 0;
  int stopped = 0;  // beside the runs: those that were stopped
  int longer = 0;   // those of them for which the interval reaches past the stop
};

struct ScoredGroup {
  std::string name;
  Score score;
};

// The keys that runs can be grouped by; one of them is kByDistance.
std::vector<std::string> GroupingNames();
// By doublings beyond the fitted runs, rounded up: "0" is within them.
inline constexpr const char* kByDistance = "distance";

// Which of the runs are kept one by one.
struct KeptRuns {
  std::size_t first = 0;     // so many
  std::size_t farthest = 0;  // so many of those that are farthest off
  std::size_t spread = 0;    // at least so many, if there are: every n-th of all
};

class Evaluation {
 public:
  Evaluation(std::vector<std::string> groupings, const KeptRuns& keep);

  // Forecasts the run on the cluster; `known` has its workload and device. An InputError names the
  // run's line.
  void Take(const Run& run, const Cluster& cluster, const CalibrationProblem& known);

  std::size_t runs() const { return all_.relative.size(); }  // of which a step ended
  std::size_t taken() const { return taken_; }
  Score overall() const { return ScoreOf(all_); }
  // The most that any of the runs taken asks of a cluster.
  const PlansExtent& extent() const { return extent_; }
  std::vector<ScoredGroup> By(const std::string& grouping) const;

  const std::vector<EvaluatedRun>& first() const { return first_; }
  // The farthest first.
  std::vector<EvaluatedRun> Farthest() const;
  // Every stride()-th of the runs.
  const std::vector<EvaluatedRun>& spread() const { return spread_; }
  std::size_t stride() const { return stride_; }

 private:
  // What is kept of all runs of a group.
  struct Errors {
    std::vector<double> relative;  // predicted / measured - 1
    int covered = 0;
    int stopped = 0;
    int longer = 0;

    void Add(const Run& run, const Answer& predicted);
  };
  static Score ScoreOf(const Errors& all);

  // Predicts plans of one workload on one device. Runs repeat plans: so many answers are
  // remembered.
  class Forecaster {
   public:
    explicit Forecaster(Predictor predictor) : predictor_(std::move(predictor)) {}
    const Answer& Of(const Plan& plan);

   private:
    static constexpr std::size_t kMostRemembered = 20'000;
    Answer Ask(const Plan& plan) const;

    Predictor predictor_;
    std::map<PlanKey, Answer> answers_;
    Answer last_;
  };

  void Keep(EvaluatedRun&& run);

  KeptRuns keep_;
  std::map<std::pair<std::string, std::string>, Forecaster> forecasters_;
  Errors all_;
  PlansExtent extent_;
  std::map<std::string,
           std::map<std::string, Errors, bool (*)(const std::string&, const std::string&)>>
      groups_;
  std::size_t taken_ = 0;
  std::size_t stride_ = 1;
  std::vector<EvaluatedRun> first_;
  std::vector<EvaluatedRun> farthest_;  // a heap: the nearest of them on top
  std::vector<EvaluatedRun> spread_;
};

// ---- As tables and JSON.

// "+2.66 %"; nothing for a run that was stopped.
std::string ErrorText(const EvaluatedRun& run);
// A line for each run; `numbered` ones begin with their number and end with where they were read.
Table RunsTable(const std::vector<EvaluatedRun>& runs, bool numbered = false);
// A line for each group, and one for all.
Table ScoreTable(const std::string& grouping, const std::vector<ScoredGroup>& groups,
                 const Score& all);
// What runs say that were stopped; empty where there is none.
std::string StoppedText(const Score& all);
Json ScoreJson(const Score& score);
Json RowJson(const EvaluatedRun& run);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_EVALUATION_H_
