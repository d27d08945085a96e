// What `stepcast calibrate`, its --check and `stepcast evaluate` tell in words: each cell beside
// the command's own JSON, each sentence where it is due and where it is not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

const std::string kTupiRuns =
    std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/ufrgs-tupi-fit.csv";
const std::string kColumns = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

std::string Number(const Json& value) { return FormatNumber(value.get<double>()); }
std::string Percent(const Json& share) { return FormatPercent(share.get<double>()); }
std::string Lasting(const Json& seconds) { return FormatDuration(Seconds(seconds.get<double>())); }
std::string Signed(const Json& share) {
  return (share.get<double>() > 0 ? "+" : "") + Percent(share);
}
std::string WithUnit(const Json& value, const Json& unit) {
  return Number(value) + (unit == "" ? "" : " " + unit.get<std::string>());
}

struct MeasuredRow {
  const char* placement;
  int local_batch;
  double step_s;
};
// Runs of resnet50 on the machines of ufrgs-tupi that agree with each other.
constexpr MeasuredRow kAlike[] = {
    {"1", 16, 0.0357},      {"1", 32, 0.0536},      {"1", 64, 0.1001},
    {"1", 128, 0.1952},     {"1-1", 16, 0.886},     {"1-1", 32, 0.893},
    {"1-1", 64, 0.912},     {"1-1", 128, 0.95},     {"1-1-1", 16, 1.176},
    {"1-1-1", 32, 1.184},   {"1-1-1", 64, 1.203},   {"1-1-1", 128, 1.242},
    {"1-1-1-1", 16, 1.322}, {"1-1-1-1", 32, 1.329}, {"1-1-1-1", 64, 1.348},
    {"1-1-1-1", 128, 1.388}};

// Them, each a factor longer.
template <class Factor>
std::string Runs(const Factor& factor_of, std::size_t count = std::size(kAlike)) {
  std::string text = kColumns;
  for (std::size_t i = 0; i < count; ++i) {
    const MeasuredRow& row = kAlike[i];
    text += fmt::format("resnet50,rtx_4090,{},0,{},{},{}\n", row.placement,
                        row.placement == std::string("1") ? "none" : "allreduce", row.local_batch,
                        row.step_s * factor_of(i));
  }
  return text;
}
std::string RunsLonger(double factor, std::size_t count = std::size(kAlike)) {
  return Runs([&](std::size_t) { return factor; }, count);
}

// ---- A fit.

// The table of parameters; how many of them are in none of its rows.
int ExpectParameters(const Json& json, const std::string& text, bool all) {
  int hidden = 0;
  std::string scope;
  for (const Json& p : json.at("parameters")) {
    const std::string of = p.at("scope");
    const bool is_hidden = !all && p.at("decided_by") == "prior" && p.at("prior_source") == "" &&
                           !of.starts_with("hosts ");
    std::string line = of == scope ? "" : of + " ";
    line += p.at("name").get<std::string>() + " " + WithUnit(p.at("value"), p.at("unit")) + " ";
    if (p.at("decided_by") != "stated") {
      line += fmt::format("{} - {} {} x/ {} ", Number(p.at("low")), Number(p.at("high")),
                          WithUnit(p.at("prior_value"), p.at("unit")),
                          FormatNumber(std::exp(p.at("prior_log_sd").get<double>())));
    }
    ExpectLine(text, line + p.at("decided_by").get<std::string>(), !is_hidden);
    if (is_hidden) {
      ++hidden;
    } else {
      scope = of;
    }
  }
  return hidden;
}

std::string Within(const Json& log_sd) {
  return fmt::format("{:.2f}", std::exp(1.6448536269514722 * log_sd.get<double>()));
}

void ExpectPairs(const Json& json, const std::string& text) {
  for (const Json& pair : json.at("ambiguities")) {
    ExpectSaid(
        text,
        fmt::format("{} and {} cannot be told apart: the runs show their {}. The worse is "
                    "known within a factor of {} (90 %), and would be within {} if the "
                    "other were known.",
                    pair.at("first").get<std::string>(), pair.at("second").get<std::string>(),
                    pair.at("known").get<std::string>(), Within(pair.at("log_sd")),
                    Within(pair.at("conditional_log_sd"))),
        true);
    const Json& run = pair.at("separating_run");
    if (run.is_null()) continue;
    EXPECT_GT(run.at("workers"), 0);
    ExpectSaid(text,
               fmt::format(", local batch {} would leave {}.", run.at("local_batch").get<int>(),
                           Within(pair.at("separated_log_sd"))),
               true);
  }
}

TEST(FitCli, EachCellIsTheFits) {
  const TempFolder folder;
  const Words fit = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", kTupiRuns};
  const Words stated = {"--fix", "overlap_share=0.6", "--prior",
                        "resnet50/straggler_spread=0.02 x/ 1.5; seen before"};
  for (const Words& more : {Words{}, Words{"--all"}, stated}) {
    const Json json = JsonOf(fit + more);
    const std::string text = Stepcast(fit + more).out;
    ExpectLine(text, "ufrgs-tupi from 3 runs of 1 workload");
    ExpectSaid(text,
               fmt::format("Fitted runs are met within {} on average (MAPE); one more step would "
                           "scatter by {}.",
                           Percent(json.at("mape")), Percent(json.at("residual_log_sd"))),
               true);
    const int hidden = ExpectParameters(json, text, more == Words{"--all"});
    EXPECT_EQ(hidden > 0, more != Words{"--all"});
    ExpectSaid(text,
               fmt::format("{} parameters stayed on their priors: the runs say nothing of them "
                           "(--all shows them).",
                           hidden),
               hidden > 0);
    ExpectSaid(text, "stayed on their priors", hidden > 0);
    ExpectPairs(json, text);
    for (const char* key : {"findings", "flags"}) {
      for (const Json& sentence : json.at(key)) ExpectSaid(text, sentence, true);
    }
    const Json& whole = json.at("whole_cluster").at(0);
    const Json& u = whole.at("uncertainty");
    ExpectLine(text,
               fmt::format("resnet50 128 {} {} {} {} {} - {}", Lasting(whole.at("step_time_s")),
                           Percent(u.at("parameters_log_sd")), Percent(u.at("step_log_sd")),
                           Percent(u.at("beyond_range_log_sd")), Lasting(whole.at("low_s")),
                           Lasting(whole.at("high_s"))));
    for (const char* undue : {"stopped before", "repeats of a plan", "scatters by", "written to",
                              "calibrated before", "suspect rows", "more pairs"}) {
      ExpectSaid(text, undue, false);
    }
  }
}

// Messages that pass at 18 Gbit/s, beside a step as of a network a third as fast: the fit meets
// them all, by workers that wait for each other longer than they compute.
TEST(FitCli, SaysWhereMessagesAndStepsContradictEachOther) {
  const TempFolder folder;
  const std::string cluster = folder.Write("farm.yaml",
                                           "name: farm\ndevice: a10g\nnodes: 8\ndevices_per_node: "
                                           "4\nlink: {bandwidth: \"25 Gbit/s\"}\n");
  const auto flags = [&](const char* step) {
    const std::string runs = folder.Write(
        "runs.csv",
        std::string(
            "workload,device,placement,servers,strategy,local_batch,bucket_mib,step_time_s\n"
            "bert_base,a10g,1,0,none,16,,0.32\n"
            "message_16777216,a10g,4-4,0,allreduce,1,,0.0135\n"
            "message_67108864,a10g,4-4,0,allreduce,1,64,0.0531\n"
            "message_268435456,a10g,4-4,0,allreduce,1,256,0.2115\n"
            "bert_base,a10g,2-2,0,allreduce,16,,") +
            step + "\n");
    const Json json = JsonOf({"calibrate", "--cluster", cluster, "--runs", runs});
    EXPECT_LT(json.at("mape"), 0.02);
    return json.at("flags").dump();
  };
  const std::string of_both = flags("1");
  EXPECT_NE(of_both.find("straggler_spread of workload bert_base on a10g is "), std::string::npos)
      << of_both;
  EXPECT_NE(of_both.find("do not trust forecasts"), std::string::npos) << of_both;
  const std::string in_accord = flags("0.5");
  EXPECT_EQ(in_accord.find("do not trust forecasts"), std::string::npos) << in_accord;
}

TEST(FitCli, SaysWhereTheFileIsAndWhatItReplaces) {
  const TempFolder folder;
  const std::string fitted = folder.Path("fitted.yaml");
  const std::string again = folder.Path("again.yaml");
  const std::string before =
      "The cluster file was calibrated before; this fit starts anew from the priors and these runs "
      "alone.";
  const std::string runs = folder.Write(
      "runs.csv", kColumns + "resnet50,rtx_4090,1,0,none,8,0.02\nvgg16,rtx_4090,1,0,none,8,0.03\n");
  const std::string one = folder.Write("one.csv", kColumns + "resnet50,rtx_4090,1,0,none,8,0.02\n");
  ExpectTold({{{"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", fitted},
               {"ufrgs-tupi from 2 runs of 2 workloads", "written to " + fitted},
               {before}},
              {{"calibrate", "--cluster", fitted, "--runs", one, "--output", again},
               {"ufrgs-tupi from 1 run of 1 workload", "written to " + again, before},
               {fitted}}});
}

// Two plans of which one ran twice, with times that differ by a factor of two.
TEST(FitCli, SaysHowRepeatsDiffer) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv", RunsLonger(1) + "resnet50,rtx_4090,1-1,0,allreduce,128,1.9\n" +
                                   "resnet50,rtx_4090,1-1,0,allreduce,128,>0.01\n");
  const Words fit = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs};
  const Json json = JsonOf(fit);
  EXPECT_TRUE(json.at("repeat_log_sd").is_number());
  ExpectTold({{fit,
               {"scatter by " + Percent(json.at("residual_log_sd")) +
                    ", and repeats of a plan differ by " + Percent(json.at("repeat_log_sd")) + ".",
                "ufrgs-tupi from 17 runs of 1 workload",
                "One more run was stopped before a step ended: its time counts as a lower bound."},
               {"more runs were stopped"}}});
}

// Seven of sixteen rows are in milliseconds: five are shown, or all of them.
TEST(FitCli, NamesTheFirstSuspectRows) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv", Runs([](std::size_t i) { return i % 2 == 1 && i < 14 ? 1e3 : 1; }));
  const Words fit = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs};
  const Json suspects = JsonOf(fit).at("suspects");
  ASSERT_GT(suspects.size(), 5U);
  const std::string few = Stepcast(fit).out;
  const std::string all = Stepcast(fit + Words{"--all"}).out;
  ExpectSaid(few, fmt::format("and {} more suspect rows (--all shows them)", suspects.size() - 5),
             true);
  ExpectSaid(all, "more suspect rows", false);
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    const Json& suspect = suspects[i];
    EXPECT_EQ(suspect.at("file"), runs);
    const std::string place =
        fmt::format("! {}:{} resnet50, ", runs, suspect.at("line").get<int>());
    const std::string said = fmt::format(
        ": measured {}, the model says {}: {}", Lasting(suspect.at("measured_step_time_s")),
        Lasting(suspect.at("predicted_step_time_s")), suspect.at("cause").get<std::string>());
    for (const std::string& sentence : {place, said}) {
      ExpectSaid(few, sentence, i < 5);
      ExpectSaid(all, sentence, true);
    }
  }
}

// ---- --check.

class FitCliCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    fitted = folder.Path("fitted.yaml");
    ASSERT_EQ(Stepcast({"calibrate", "--cluster", "ufrgs-tupi", "--runs",
                        folder.Write("runs.csv", RunsLonger(1)), "--output", fitted})
                  .exit_code,
              0);
  }
  Words CheckOf(const std::string& runs) const {
    return {"calibrate", "--cluster", fitted, "--check", folder.Write("new.csv", runs)};
  }

  TempFolder folder;
  std::string fitted;
};

TEST_F(FitCliCheck, SaysWhatItsNumbersSay) {
  const std::string units = "are their times in seconds?";
  const struct {
    std::string runs;
    int exit_code;
    std::string title;
    bool in_seconds;
  } checks[] = {{RunsLonger(1), 0, "ufrgs-tupi against 16 new runs", true},
                {RunsLonger(1, 1), 1, "ufrgs-tupi against 1 new run", true},
                {RunsLonger(1e3), 1, "ufrgs-tupi against 16 new runs", false},
                {Runs([](std::size_t i) { return i < 4 ? 1.5 : 1; }), 1,
                 "ufrgs-tupi against 16 new runs", true},
                {RunsLonger(1.2, 4), 1, "ufrgs-tupi against 4 new runs", true},
                {RunsLonger(20), 1, "ufrgs-tupi against 16 new runs", true}};
  int others = 0;
  for (const auto& check : checks) {
    const Words words = CheckOf(check.runs);
    const Json json = JsonOf(words, check.exit_code);
    const std::string text = Stepcast(words).out;
    ExpectLine(text, check.title);
    const double p_value = json.at("p_value");
    ExpectSaid(text, "! The calibration is stale", json.at("stale"));
    ExpectSaid(text, json.at("verdict"), true);
    ExpectSaid(text,
               fmt::format("They lie {} times as far from their forecasts as expected; were "
                           "nothing changed, {} of such runs would lie as far or farther.",
                           Number(json.at("scatter")),
                           p_value < 0.001 ? std::string("under 0.1 %") : FormatPercent(p_value)),
               json.at("runs") >= 4);
    ExpectSaid(text, "They lie ", json.at("runs") >= 4);
    for (const Json& drift : json.at("drifts")) {
      const double before = drift.at("before");
      const double now = drift.at("now");
      others += drift.at("alternative") ? 1 : 0;
      ExpectSaid(
          text,
          fmt::format("- {}{} of {}: {} became {} (x {:.3g}, {:.1f} standard errors)",
                      drift.at("alternative") ? "or " : "", drift.at("name").get<std::string>(),
                      drift.at("scope").get<std::string>(),
                      WithUnit(drift.at("before"), drift.at("unit")),
                      WithUnit(drift.at("now"), drift.at("unit")), now / before,
                      std::abs(drift.at("z").get<double>())),
          true);
    }
    ExpectSaid(text, units, !check.in_seconds);
    if (!check.in_seconds) {
      ExpectSaid(text,
                 fmt::format("! on average the runs take {} times as long as forecast: ",
                             FormatNumber(std::exp(json.at("mean_log_ratio").get<double>()))),
                 true);
    }
    ExpectSaid(text, "stopped before a step ended", false);
    ExpectSaid(text, "has no covariance", false);
  }
  EXPECT_GT(others, 0);
}

// Those whose step may still have ended in time are no news; those that are late are.
TEST_F(FitCliCheck, TellsOfRunsThatWereStopped) {
  const std::string early = "resnet50,rtx_4090,1,0,none,128,>0.01\n";
  const std::string late = "resnet50,rtx_4090,1,0,none,128,>50\n";
  const std::string one = "One run was stopped before a step ended";
  const std::string later = "later than the calibration has steps end";
  ExpectTold({{CheckOf(RunsLonger(1) + early), {"- " + one + "."}, {later}}});
  ExpectTold({{CheckOf(RunsLonger(1) + late), {"! " + one + ", " + later + "."}}});
  const auto said = [&](const std::string& stopped) {
    return Stepcast(CheckOf(RunsLonger(1) + stopped)).out;
  };
  ExpectSaid(said(early + early),
             "- 2 runs were stopped before a step ended, 0 of them " + later + ".", true);
  ExpectSaid(said(early + late),
             "! 2 runs were stopped before a step ended, 1 of them " + later + ".", true);
}

TEST_F(FitCliCheck, TellsThatThereIsNoCovariance) {
  std::string file = FileContent(fitted);
  const std::size_t at = file.find("  log_covariance:");
  ASSERT_NE(at, std::string::npos);
  folder.Write("fitted.yaml", file.substr(0, at));
  ExpectSaid(Stepcast(CheckOf(RunsLonger(1))).out,
             "! the calibration has no covariance: its parameters are taken as independent of each "
             "other, and runs may seem to scatter more or less than they do",
             true);
}

// ---- evaluate.

std::string ScoreLine(const std::string& name, const Json& score) {
  if (score.at("runs") == 0) return name + " 0";
  return fmt::format("{} {} {} {} {} {} {}", name, FormatCount(score.at("runs").get<double>()),
                     Percent(score.at("mape")), Percent(score.at("median_ape")),
                     Percent(score.at("p90_ape")), Signed(score.at("bias")),
                     Percent(score.at("coverage90")));
}

// Forecasts that are too low, too high, and as they should be; and one that nothing is known of.
TEST(EvaluateCli, EachCellIsTheEvaluations) {
  const TempFolder folder;
  const std::string runs = folder.Write(
      "runs.csv",
      "workload,device,placement,servers,strategy,local_batch,step_time_s,link_gbit_per_s\n"
      "resnet50,rtx_4090,1,0,none,16,0.0114,\n"
      "resnet50,rtx_4090,1-1-1-1-1-1-1-1-1-1,0,ring,8,30,1\n"
      "resnet50,rtx_4090,1-1,0,ring,16,>3000,10\n"
      "resnet50,rtx_4090,1-1,0,ring,16,0.2,10\n"
      "resnet50,rtx_4090,1-1-1,0,ring,16,>0.01,10\n");
  const Words evaluate = {"evaluate", "--cluster", "ufrgs-tupi", "--runs", runs};
  const struct {
    const char* group_by;
    Words names;  // in their order: numbers by value, then words
  } groupings[] = {{"workers", {"1", "2", "3", "10"}},
                   {"nodes", {"1", "2", "3", "10"}},
                   {"local_batch", {"8", "16"}},
                   {"servers", {"0"}},
                   {"strategy", {"none", "ring"}},
                   {"workload", {"resnet50"}},
                   {"device", {"rtx_4090"}},
                   {"link", {"1 Gbit/s", "10 Gbit/s", "not stated"}},
                   {"file", {runs}}};
  const Json rows = JsonOf(evaluate + Words{"--rows"}).at("rows");
  const char* plans[] = {"1 worker, local batch 16",
                         "10 workers (10 x 1), ring, local batch 8, 1 Gbit/s",
                         "2 workers (2 x 1), ring, local batch 16, 10 Gbit/s",
                         "2 workers (2 x 1), ring, local batch 16, 10 Gbit/s",
                         "3 workers (3 x 1), ring, local batch 16, 10 Gbit/s"};
  for (const auto& grouping : groupings) {
    SCOPED_TRACE(grouping.group_by);
    const Words words = evaluate + Words{"--group-by", grouping.group_by};
    const Json json = JsonOf(words);
    const std::string text = Stepcast(words).out;
    ExpectLine(text, "ufrgs-tupi: predicted against measured");
    ExpectLine(text,
               std::string(grouping.group_by) + " runs MAPE median 90th pct bias in 90 % interval");
    ASSERT_EQ(json.at("groups").size(), grouping.names.size());
    std::size_t before = 0;
    for (std::size_t i = 0; i < grouping.names.size(); ++i) {
      const Json& group = json.at("groups")[i];
      EXPECT_EQ(group.at("name"), grouping.names[i]);
      const std::string line = ScoreLine(grouping.names[i], group);
      ExpectLine(text, line);
      const std::size_t at = Unwrapped(text).find(" " + line + " ");
      EXPECT_GT(at, before) << "groups in their order";
      before = at;
    }
    ExpectLine(text, ScoreLine("all", json.at("overall")));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Json& row = rows[i];
      const double measured = row.at("measured_step_time_s");
      const double predicted = row.at("predicted_step_time_s");
      const bool stopped = row.at("stopped");
      ExpectLine(text, fmt::format("resnet50 {} {}{} {} {} - {}{}", plans[i], stopped ? "> " : "",
                                   Lasting(measured), Lasting(predicted), Lasting(row.at("low_s")),
                                   Lasting(row.at("high_s")),
                                   stopped ? "" : " " + Signed(predicted / measured - 1)));
    }
    ExpectSaid(text,
               "2 runs were stopped before a step ended and count nowhere above; for 1 the "
               "forecast's interval reaches past the stop.",
               true);
  }
}

TEST(EvaluateCli, SaysWhatWasStoppedAndWhereThePageIs) {
  const TempFolder folder;
  const std::string row = "resnet50,rtx_4090,1-1,0,ring,16,";
  const auto evaluate = [&](const std::string& rows, const Words& more = {}) {
    return Words{"evaluate", "--cluster", "ufrgs-tupi", "--runs",
                 folder.Write("runs.csv", kColumns + rows)} +
           more;
  };
  const std::string page = folder.Path("page.html");
  const std::string one = "1 run was stopped before a step ended and counts nowhere above; for ";
  ExpectTold({{evaluate(row + "1\n"), {"runs of runs MAPE"}, {"stopped", "written to", " > "}}});
  ExpectTold({{evaluate(row + "1\n" + row + ">9000\n"),
               {one + "0 the forecast's interval reaches past the stop."}}});
  ExpectTold({{evaluate(row + "1\n" + row + ">0.01\n", {"--report", page}),
               {one + "1 the forecast's interval reaches past the stop.", "written to " + page}}});
  ExpectError(evaluate(row + "1\n", {"--group-by", "colour"}),
              {"--group-by: 'colour' is not a grouping; allowed: device, distance, file, link, "
               "local_batch, nodes, servers, strategy, workers, workload\n"});
}

}  // namespace
}  // namespace stepcast::program
