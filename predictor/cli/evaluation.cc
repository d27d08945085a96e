#include "predictor/cli/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/plan/fields.h"
#include "data/record/quantile.h"
#include "model/step/discrepancy.h"

namespace stepcast::cli {
namespace {

std::string LinkName(const LinkFacts& link) {
  const std::string facts = DescribeLink(link);
  return facts.empty() ? "not stated" : facts;
}

std::string DistanceName(double doublings) {
  constexpr double kRounding = 1e-9;
  return std::to_string(static_cast<int>(std::ceil(doublings - kRounding)));
}

using GroupOf = std::function<std::string(const Run&, const Answer&)>;

const std::map<std::string, GroupOf>& Groupings() {
  static const std::map<std::string, GroupOf> groupings = {
      {"workload", [](const Run& r, const Answer&) { return r.workload; }},
      {"device", [](const Run& r, const Answer&) { return r.device; }},
      {"strategy",
       [](const Run& r, const Answer&) { return std::string(StrategyName(r.plan.strategy)); }},
      {"workers", [](const Run& r, const Answer&) { return std::to_string(r.plan.workers()); }},
      {"nodes", [](const Run& r, const Answer&) { return std::to_string(r.plan.nodes()); }},
      {"servers", [](const Run& r, const Answer&) { return std::to_string(r.plan.servers); }},
      {"local_batch",
       [](const Run& r, const Answer&) { return std::to_string(r.plan.local_batch); }},
      {"link", [](const Run& r, const Answer&) { return LinkName(r.plan.link); }},
      {"file", [](const Run& r, const Answer&) { return r.place.file; }},
      {kByDistance, [](const Run&, const Answer& a) { return DistanceName(a.doublings); }},
  };
  return groupings;
}

// Numbers by value, and behind them names by letter.
bool GroupLess(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) != number(b)) return number(a);
  if (number(a) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

// How far off a forecast is; of two that are equally far the earlier one comes first.
bool Farther(const EvaluatedRun& a, const EvaluatedRun& b) {
  const auto off = [](const EvaluatedRun& run) {
    return std::abs(std::log(run.predicted.step_time / run.measured));
  };
  const double of_a = off(a);
  const double of_b = off(b);
  return of_a != of_b ? of_a > of_b : a.number < b.number;
}

}  // namespace

double EvaluatedRun::error() const {
  constexpr double kRounding = 1e-9;
  const double off = predicted.step_time / measured - 1;
  return std::abs(off) < kRounding ? 0 : off;
}

std::vector<std::string> GroupingNames() {
  std::vector<std::string> names;
  for (const auto& [name, of] : Groupings()) names.push_back(name);
  return names;
}

const Answer& Evaluation::Forecaster::Of(const Plan& plan) {
  if (!plan.hosts.empty()) return last_ = Ask(plan);
  PlanKey key = StatedKey(plan);
  key.insert(key.end(), plan.placement.begin(), plan.placement.end());
  const auto known = answers_.find(key);
  if (known != answers_.end()) return known->second;
  if (answers_.size() >= kMostRemembered) return last_ = Ask(plan);
  return answers_.emplace(std::move(key), Ask(plan)).first->second;
}

Answer Evaluation::Forecaster::Ask(const Plan& plan) const {
  Prediction prediction = predictor_.Predict(plan);
  const std::optional<Calibration>& calibration = predictor_.cluster().calibration;
  const double doublings = DoublingsBeyond(
      plan, calibration ? calibration->range : CalibratedRange(), predictor_.calibrated_batches());
  return {prediction.step_time, prediction.low, prediction.high, doublings,
          std::move(prediction.flags)};
}

void Evaluation::Errors::Add(const Run& run, const Answer& predicted) {
  if (run.stopped) {
    ++stopped;
    longer += predicted.high >= run.step_time ? 1 : 0;
    return;
  }
  relative.push_back(predicted.step_time / run.step_time - 1);
  covered += predicted.low <= run.step_time && run.step_time <= predicted.high ? 1 : 0;
}

Score Evaluation::ScoreOf(const Errors& all) {
  Score score;
  score.runs = static_cast<int>(all.relative.size());
  score.stopped = all.stopped;
  score.longer = all.longer;
  if (score.runs == 0) return score;
  std::vector<double> errors;
  errors.reserve(all.relative.size());
  for (const double error : all.relative) {
    errors.push_back(std::abs(error));
    score.bias += error;
    score.mape += errors.back();
  }
  score.bias /= score.runs;
  score.mape /= score.runs;
  score.coverage90 = static_cast<double>(all.covered) / score.runs;
  std::sort(errors.begin(), errors.end());
  score.median_ape = Quantile(errors, 0.5);
  score.p90_ape = Quantile(errors, 0.9);
  return score;
}

Evaluation::Evaluation(std::vector<std::string> groupings, const KeptRuns& keep) : keep_(keep) {
  for (std::string& name : groupings) groups_.try_emplace(std::move(name), &GroupLess);
}

void Evaluation::Take(const Run& run, const Cluster& cluster, const CalibrationProblem& known) {
  try {
    auto it = forecasters_.find({run.workload, run.device});
    if (it == forecasters_.end()) {
      Predictor predictor(cluster, known.workloads.at(run.workload),
                          DataSheetOf(known.devices, run.device), run.device);
      it = forecasters_
               .emplace(std::pair(run.workload, run.device), Forecaster(std::move(predictor)))
               .first;
    }
    const Answer& predicted = it->second.Of(run.plan);
    all_.Add(run, predicted);
    for (auto& [grouping, members] : groups_) {
      members[Groupings().at(grouping)(run, predicted)].Add(run, predicted);
    }
    ++taken_;
    extent_.Include(run.plan);
    const bool keeps = first_.size() < keep_.first || keep_.farthest > 0 || keep_.spread > 0;
    if (!keeps) return;
    Keep({taken_, run.place, run.workload, run.device, run.plan, run.step_time, run.stopped,
          predicted});
  } catch (const InputError& e) {
    throw InRow(e, run.place);
  }
}

void Evaluation::Keep(EvaluatedRun&& run) {
  if (first_.size() < keep_.first) first_.push_back(run);
  if (keep_.spread > 0 && (run.number - 1) % stride_ == 0) {
    if (spread_.size() == 2 * keep_.spread) {
      // Every other of them goes, the first stays.
      for (std::size_t i = 1; 2 * i < spread_.size(); ++i) spread_[i] = std::move(spread_[2 * i]);
      spread_.resize(keep_.spread);
      stride_ *= 2;
    }
    if ((run.number - 1) % stride_ == 0) spread_.push_back(run);
  }
  if (keep_.farthest == 0 || run.stopped) return;
  if (farthest_.size() < keep_.farthest) {
    farthest_.push_back(std::move(run));
  } else if (Farther(run, farthest_.front())) {
    std::pop_heap(farthest_.begin(), farthest_.end(), Farther);
    farthest_.back() = std::move(run);
  } else {
    return;
  }
  std::push_heap(farthest_.begin(), farthest_.end(), Farther);
}

std::vector<ScoredGroup> Evaluation::By(const std::string& grouping) const {
  std::vector<ScoredGroup> groups;
  for (const auto& [name, members] : groups_.at(grouping)) {
    groups.push_back({name, ScoreOf(members)});
  }
  return groups;
}

std::vector<EvaluatedRun> Evaluation::Farthest() const {
  std::vector<EvaluatedRun> runs = farthest_;
  std::sort(runs.begin(), runs.end(), Farther);
  return runs;
}

std::string ErrorText(const EvaluatedRun& run) {
  return run.stopped ? "" : (run.error() > 0 ? "+" : "") + FormatPercent(run.error());
}

Table RunsTable(const std::vector<EvaluatedRun>& runs, bool numbered) {
  std::vector<TableColumn> columns = {LeftColumn("workload"),
                                      LeftColumn("plan"),
                                      "measured",
                                      "predicted",
                                      "90 % interval",
                                      "error"};
  if (numbered) {
    columns.insert(columns.begin(), "run");
    columns.push_back(LeftColumn("row"));
  }
  Table table(std::move(columns));
  for (const EvaluatedRun& run : runs) {
    std::vector<std::string> cells = {
        run.workload,
        DescribePlan(run.plan),
        (run.stopped ? "> " : "") + FormatDuration(run.measured),
        FormatDuration(run.predicted.step_time),
        FormatDuration(run.predicted.low) + " - " + FormatDuration(run.predicted.high),
        ErrorText(run)};
    if (numbered) {
      cells.insert(cells.begin(), FormatCount(run.number));
      cells.push_back(fmt::format("{}:{}", run.place.file, run.place.line));
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

Table ScoreTable(const std::string& grouping, const std::vector<ScoredGroup>& groups,
                 const Score& all) {
  Table table(
      {LeftColumn(grouping), "runs", "MAPE", "median", "90th pct", "bias", "in 90 % interval"});
  const auto add = [&](const std::string& name, const Score& s) {
    if (s.runs == 0) {
      table.AddRow({name, "0", "", "", "", "", ""});
      return;
    }
    table.AddRow({name, FormatCount(s.runs), FormatPercent(s.mape), FormatPercent(s.median_ape),
                  FormatPercent(s.p90_ape), (s.bias > 0 ? "+" : "") + FormatPercent(s.bias),
                  FormatPercent(s.coverage90)});
  };
  for (const ScoredGroup& group : groups) add(group.name, group.score);
  if (!groups.empty()) table.AddRule();
  add("all", all);
  return table;
}

std::string StoppedText(const Score& all) {
  if (all.stopped == 0) return "";
  return fmt::format(
      "{} stopped before a step ended and {} above; for {} the forecast's interval "
      "reaches past the stop.",
      all.stopped == 1 ? "1 run was" : fmt::format("{} runs were", all.stopped),
      all.stopped == 1 ? "counts nowhere" : "count nowhere", all.longer);
}

Json ScoreJson(const Score& s) {
  const auto of_runs = [&](double value) { return s.runs > 0 ? Json(value) : Json(nullptr); };
  return {{"runs", s.runs},
          {"mape", of_runs(s.mape)},
          {"median_ape", of_runs(s.median_ape)},
          {"p90_ape", of_runs(s.p90_ape)},
          {"bias", of_runs(s.bias)},
          {"coverage90", of_runs(s.coverage90)},
          {"stopped_runs", s.stopped},
          {"stopped_forecast_longer", s.longer}};
}

Json RowJson(const EvaluatedRun& run) {
  return {{"predicted_step_time_s", run.predicted.step_time.in(kSeconds)},
          {"low_s", run.predicted.low.in(kSeconds)},
          {"high_s", run.predicted.high.in(kSeconds)},
          {"measured_step_time_s", run.measured.in(kSeconds)},
          {"stopped", run.stopped},
          {"doublings_beyond", run.predicted.doublings},
          {"flags", run.predicted.flags}};
}

}  // namespace stepcast::cli
