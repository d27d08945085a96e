// Fitting, planning and checking, as the command line tells them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "data/plan/fields.h"
#include "model/step/discrepancy.h"
#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectSaid;
using program::ExpectText;
using program::Json;
using program::JsonOf;
using program::Stepcast;
using program::Words;
using program::operator+;

const std::string kFit = std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/ufrgs-tupi-fit.csv";
const std::string kHeader = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

const Words kCalibrate = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFit};

const Json& Parameter(const Json& report, const std::string& scope, const std::string& name) {
  for (const Json& p : report.at("parameters")) {
    if (p.at("scope") == scope && p.at("name") == name) return p;
  }
  throw std::logic_error("no parameter " + scope + " " + name);
}

// The cells of a row without quotes.
std::vector<std::string> Cells(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream rest(row + ",");
  for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
  return cells;
}

// A network is known by its own name, whatever a row calls it.
TEST(Calibrate, NetworksGoByTheirOwnNames) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "bert_large@384,t4,1,0,none,8,0.5\n"
                   "bert_large,Tesla T4,1,0,none,8,0.5\n"
                   "bert,t4,1,0,none,8,0.2\n"
                   "bert_base@128,t4,1,0,none,8,0.1\n"
                   "gpt:heads=4:hidden=256:layers=2@128,t4,1,0,none,8,0.05\n"
                   "gpt:layers=2:hidden=256:heads=4:mlp=1024@128,t4,1,0,none,8,0.05\n");
  const std::string fitted = folder.Path("fitted.yaml");
  const Json report =
      JsonOf({"calibrate", "--cluster", "gce-t4", "--runs", runs, "--output", fitted});
  std::set<std::string> scopes;
  for (const Json& p : report.at("parameters")) scopes.insert(p.at("scope").get<std::string>());
  scopes.erase("cluster");
  scopes.erase("device t4");
  EXPECT_EQ(scopes, (std::set<std::string>{"workload bert_large on t4", "workload bert_base on t4",
                                           "workload bert_base@128 on t4",
                                           "workload gpt:layers=2:hidden=256:heads=4@128 on t4"}));
  const auto step_of = [&](const std::string& name) {
    const Json prediction = JsonOf({"predict", "--cluster", fitted, "--workload", name, "--workers",
                                    "1", "--local-batch", "8"});
    EXPECT_EQ(prediction.at("compute_source"), "calibration") << name;
    return prediction.at("step_time_s").get<double>();
  };
  EXPECT_NEAR(step_of("bert_large") / 0.5, 1, 0.02);
  EXPECT_EQ(step_of("bert_large"), step_of("bert_large@384"));
  EXPECT_NEAR(step_of("bert_base") / 0.2, 1, 0.02);
  EXPECT_NEAR(step_of("bert_base@128") / 0.1, 1, 0.02);
  EXPECT_NEAR(step_of("gpt:hidden=256:layers=2:heads=4@128") / 0.05, 1, 0.02);
  const Json rows = JsonOf({"evaluate", "--cluster", fitted, "--runs", runs, "--rows"});
  for (const Json& row : rows.at("rows")) {
    const double measured = row.at("measured_step_time_s");
    EXPECT_NEAR(row.at("predicted_step_time_s").get<double>() / measured, 1, 0.05);
  }
}

// ---- Statements.

// How the runs were trained is kept with what they say: asked for again, or not at all, it is
// answered by them; another way is not.
TEST(Calibrate, KeepsHowTheRunsWereTrained) {
  const TempFolder folder;
  const std::string runs = folder.Write("runs.csv", kHeader +
                                                        "gpt2,rtx_4090,1,0,none,4,0.2\n"
                                                        "gpt2,rtx_4090,1,0,none,8,0.39\n");
  const std::string fitted = folder.Path("fitted.yaml");
  const std::string cluster =
      folder.Write("cluster.yaml",
                   "name: c\ndevice: rtx_4090\nnodes: 2\ndevices_per_node: 2\n"
                   "link: {bandwidth: 10 Gbit/s}\n");
  const Json report = JsonOf({"calibrate", "--cluster", cluster, "--runs", runs, "--output", fitted,
                              "--precision", "bf16", "--optimizer", "adam"});
  EXPECT_NO_THROW(Parameter(report, "workload gpt2 (bf16, adam) on rtx_4090", "sample_time"));
  const Words ask = {"predict",   "--cluster", fitted,          "--workload", "gpt2",
                     "--workers", "1",         "--local-batch", "8"};
  const Json silent = JsonOf(ask);
  EXPECT_EQ(silent.at("compute_source"), "calibration");
  EXPECT_NEAR(silent.at("step_time_s").get<double>() / 0.39, 1, 0.02);
  EXPECT_EQ(JsonOf(ask + Words{"--precision", "bf16"}), silent);
  const Json single = JsonOf(ask + Words{"--precision", "fp32"});
  EXPECT_EQ(single.at("compute_source"), "calibration of it trained otherwise");
  EXPECT_GT(single.at("step_time_s").get<double>(), 0.5);
  const Json rows = JsonOf({"evaluate", "--cluster", fitted, "--runs", runs, "--rows"});
  EXPECT_EQ(rows.at("rows").at(1).at("predicted_step_time_s"), silent.at("step_time_s"));
  ExpectText({"predict", "--cluster", fitted, "--workload", "gpt2", "--workers", "1",
              "--local-batch", "8", "--precision", "fp32"},
             {"measured on rtx_4090 with precision bf16, not fp32: compute is taken from there"});
  // Another network that nobody ran is taken as trained like it.
  const Words other = {"predict",   "--cluster", fitted,          "--workload", "bert_base@128",
                       "--workers", "1",         "--local-batch", "8"};
  const Words as_it = {"--precision", "bf16", "--optimizer", "adam"};
  Json taken = JsonOf(other);
  Json stated = JsonOf(other + as_it);
  EXPECT_EQ(taken.at("step_time_s"), stated.at("step_time_s"));
  EXPECT_EQ(taken.at("memory"), stated.at("memory"));
  EXPECT_EQ(taken.at("flags").size(), stated.at("flags").size() + 1);
  const std::string printed = Stepcast(other).out;
  ExpectSaid(printed, "bert_base@128 (bf16, adam) on c (rtx_4090): 1 worker", true);
  ExpectSaid(printed,
             "! nobody states precision, optimizer of bert_base@128, of which c has no run: taken "
             "as bf16, adam, as all its runs were",
             true);
  const std::string others =
      folder.Write("others.csv", kHeader + "bert_base@128,rtx_4090,1,0,none,8,0.1\n");
  const Json judged = JsonOf({"evaluate", "--cluster", fitted, "--runs", others, "--rows"});
  EXPECT_EQ(judged.at("rows").at(0).at("predicted_step_time_s"), taken.at("step_time_s"));
  EXPECT_EQ(judged.at("flags").size(), 1U);
  ExpectText({"evaluate", "--cluster", fitted, "--runs", others, "--optimizer", "sgd"},
             {"nobody states precision of bert_base@128"});
}

TEST(CalibrateStatements, AFixedValueStays) {
  const Json report = JsonOf(kCalibrate + Words{"--fix", "overlap_share=0.6; a trace of one step",
                                                "--fix", "flow_bandwidth=5 Gbit/s"});
  const Json& share = Parameter(report, "cluster", "overlap_share");
  EXPECT_DOUBLE_EQ(share.at("value"), 0.6);
  EXPECT_EQ(share.at("log_sd"), 0);
  EXPECT_EQ(share.at("low"), share.at("high"));
  EXPECT_EQ(share.at("decided_by"), "stated");
  EXPECT_EQ(share.at("prior_source"), "a trace of one step");
  EXPECT_NEAR(Parameter(report, "cluster", "flow_bandwidth").at("value"), 5, 1e-12);
}

TEST(CalibrateStatements, APriorIsUsedAndNamed) {
  const Json report = JsonOf(
      kCalibrate + Words{"--prior", "resnet50/straggler_spread=0.02 x/ 1.5; inputs of one size"});
  const Json& spread = Parameter(report, "workload resnet50 on rtx_4090", "straggler_spread");
  EXPECT_NEAR(spread.at("prior_value"), 0.02, 1e-12);
  EXPECT_NEAR(spread.at("prior_log_sd"), std::log(1.5), 1e-12);
  EXPECT_EQ(spread.at("prior_source"), "inputs of one size");
  EXPECT_NEAR(spread.at("value"), 0.02, 0.002) << "three runs say nothing of it";
}

TEST(CalibrateStatements, ErrorsNameWhatIsAllowed) {
  ExpectError(kCalibrate + Words{"--fix", "foo=3"},
              {"--fix: 'foo' is not a parameter; allowed: link_bandwidth", "overlap_share"});
  ExpectError(kCalibrate + Words{"--fix", "link_bandwith=1 Gbit/s"},
              {"--fix: 'link_bandwith' is not a parameter (did you mean link_bandwidth?)"});
  ExpectError(kCalibrate + Words{"--fix", "overlap_share"}, {"has no value", "NAME=VALUE"});
  ExpectError(kCalibrate + Words{"--fix", "overlap_share=3"},
              {"--fix overlap_share: '3' is out of range; allowed: 0.05 to 0.95\n"});
  ExpectError(kCalibrate + Words{"--prior", "overlap_share=3 x/ 2; a guess"},
              {"--prior overlap_share: '3' is out of range; allowed: 0.05 to 0.95\n"});
  ExpectError(kCalibrate + Words{"--fix", "flow_bandwidth=5"}, {"--fix: '5'", "Gbit/s"});
  ExpectError(kCalibrate + Words{"--fix", "flow_bandwidth=5 Gbit/s x/ 2"}, {"has a factor"});
  ExpectError(kCalibrate + Words{"--prior", "flow_bandwidth=5 Gbit/s"}, {"has no factor"});
  ExpectError(kCalibrate + Words{"--prior", "flow_bandwidth=5 Gbit/s x/ 1"}, {"leaves no doubt"});
  ExpectError(kCalibrate + Words{"--fix", "vgg16/update_time=5 ms"},
              {"is no parameter of these runs"});
}

// ---- What a report says beside the parameters.

TEST(CalibrateReport, ContradictoryRunsBehaveLikeTheirLinks) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv", kHeader +
                                   "resnet50,rtx_4090,1,0,none,128,0.204\n"
                                   "resnet50,rtx_4090,1-1,0,allreduce,128,1.37\n"
                                   "resnet50,rtx_4090,1-1,0,allreduce,128,9.33\n"
                                   "resnet50,rtx_4090,1-1-1,0,allreduce,128,12.30\n");
  const Json report = JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs});
  std::vector<std::string> causes(6);
  for (const Json& suspect : report.at("suspects")) {
    causes.at(suspect.at("line").get<std::size_t>()) = suspect.at("cause");
  }
  EXPECT_NE(causes[3].find("1 Gbit/s"), std::string::npos) << causes[3];
  EXPECT_NE(causes[4].find("100 Mbit/s"), std::string::npos) << causes[4];
  EXPECT_EQ(causes[2], "") << "the run on one node is in order";
}

TEST(CalibrateReport, TellsOfRunsThatWereStoppedAndOfSpreads) {
  const TempFolder folder;
  const std::string head = kHeader.substr(0, kHeader.size() - 1) + ",p50_s,p95_s\n";
  const std::string runs =
      folder.Write("runs.csv", head +
                                   "resnet50,rtx_4090,1,0,none,128,0.2,0.2,0.21\n"
                                   "resnet50,rtx_4090,1-1,0,ring,128,1.3,1.3,1.6\n"
                                   "resnet50,rtx_4090,1-1-1-1,0,ring,128,>0.1,,\n"
                                   "resnet50,rtx_4090,1-1-1-1,0,ring,128,>30,,\n");
  const Words fit = {"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs};
  ExpectText(fit,
             {"2 more runs were stopped before a step ended: their times count each as a lower",
              "The exposed synchronisation of single steps scatters by"});
  const Json report = JsonOf(fit);
  EXPECT_GT(report.at("sync_jitter"), 0.05);
  EXPECT_LT(report.at("mape"), 0.05) << "what was stopped has no error";
  EXPECT_EQ(report.at("runs"), 2);
  EXPECT_EQ(report.at("stopped_runs"), 2);
  ASSERT_EQ(report.at("suspects").size(), 1) << "30 s beside 1.4 s";
  EXPECT_EQ(report.at("suspects").at(0).at("line"), 5);
  EXPECT_EQ(report.at("suspects").at(0).at("stopped"), true);
  const Words judge = {"evaluate", "--cluster",  "ufrgs-tupi", "--runs",
                       runs,       "--group-by", "nodes"};
  const Json judged = JsonOf(judge + Words{"--rows"});
  EXPECT_EQ(judged.at("overall").at("runs"), 2);
  EXPECT_EQ(judged.at("overall").at("stopped_runs"), 2);
  EXPECT_EQ(judged.at("overall").at("stopped_forecast_longer"), 1);
  EXPECT_EQ(judged.at("groups").at(2).at("name"), "4");
  EXPECT_TRUE(judged.at("groups").at(2).at("mape").is_null());
  EXPECT_EQ(judged.at("rows").at(1).at("stopped"), false);
  EXPECT_EQ(judged.at("rows").at(3).at("stopped"), true);
  ExpectText(judge, {"> 30 s",
                     "2 runs were stopped before a step ended and count nowhere above; for 1 the"});
  const std::string none =
      folder.Write("none.csv", kHeader + "resnet50,rtx_4090,1-1,0,ring,128,>30\n");
  ExpectError({"evaluate", "--cluster", "ufrgs-tupi", "--runs", none},
              {"holds no run of which a step ended"});
}

// A workload of which no step ended is in no range, and other commands know nothing of it.
TEST(CalibrateReport, OfAWorkloadThatNeverEndedAStep) {
  const TempFolder folder;
  const std::string runs = folder.Write("runs.csv", kHeader +
                                                        "resnet50,rtx_4090,1,0,none,128,0.2\n"
                                                        "resnet50,rtx_4090,1-1,0,ring,128,1.3\n"
                                                        "vgg16,rtx_4090,1-1,0,ring,64,>0.5\n");
  const std::string fitted = folder.Path("fitted.yaml");
  ExpectText({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", fitted},
             {"from 2 runs", "One more run was stopped before a step ended"});
  ExpectText({"predict", "--cluster", fitted, "--workload", "vgg16", "--local-batch", "64"},
             {"step"});
  const Json check = JsonOf({"calibrate", "--cluster", fitted, "--check", runs}, 1);
  EXPECT_EQ(check.at("runs"), 2);
  EXPECT_EQ(check.at("stopped_runs"), 1);
  EXPECT_EQ(check.at("overdue_runs"), 0);
  const std::string late =
      folder.Write("late.csv", kHeader + "resnet50,rtx_4090,1-1,0,ring,128,>1750\n");
  ExpectText({"calibrate", "--cluster", fitted, "--check", late},
             {"There are no steps to check", "One run was stopped before a step ended, later than"},
             1);
}

// Six of them would have plots of their own in the page of a report.
TEST(CalibrateReport, TakesMoreNetworksThanItShowsOneByOne) {
  constexpr int kNetworks = 20;
  const TempFolder folder;
  std::string runs = kHeader;
  for (int i = 0; i < kNetworks; ++i) {
    runs += fmt::format("resnet50@{},rtx_4090,1,0,none,32,{}\n", 64 + i, 0.05 + 0.001 * i);
  }
  const Json report =
      JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", folder.Write("runs.csv", runs)});
  std::set<std::string> scopes;
  for (const Json& p : report.at("parameters")) {
    const std::string scope = p.at("scope");
    if (scope.starts_with("workload ")) scopes.insert(scope);
  }
  EXPECT_EQ(scopes.size(), kNetworks);
}

TEST(CalibrateReport, SaysWhatTheRunsCouldNotShow) {
  const Json flags = JsonOf(kCalibrate).at("flags");
  ASSERT_EQ(flags.size(), 3U);
  EXPECT_NE(flags[0].get<std::string>().find("tupi5+tupi6 is 0.09"), std::string::npos);
  EXPECT_NE(flags[1].get<std::string>().find("three nodes"), std::string::npos);
  EXPECT_NE(flags[2].get<std::string>().find("one batch only (128)"), std::string::npos);
}

TEST(CalibrateReport, TheFileIsReadAsItWasWritten) {
  const TempFolder folder;
  const std::string file = folder.Path("fitted.yaml");
  const Json report = JsonOf(kCalibrate + Words{"--output", file});
  const Words predict = {"--workload", "resnet50", "--local-batch", "128", "--workers", "4"};
  const Json p = JsonOf(Words{"predict", "--cluster", file} + predict);
  const Json& u = p.at("uncertainty");
  EXPECT_NEAR(u.at("log_sd"),
              std::hypot(u.at("parameters_log_sd").get<double>(), u.at("step_log_sd").get<double>(),
                         u.at("beyond_range_log_sd").get<double>()),
              1e-12);
  // Fitted to two workers on two nodes; four on four are a doubling in both directions.
  EXPECT_NEAR(u.at("beyond_range_log_sd"), kDiscrepancyPerDoubling * std::sqrt(2.0), 1e-12);
}

// ---- plan.

// One worker beside its servers has nobody to send a message to.
TEST(PlanCommand, SendsAMessageToSomebody) {
  const Json plan = JsonOf({"plan", "--cluster", "ufrgs-tupi", "--workload", "message_1048576",
                            "--local-batch", "1", "--strategy", "ps-async", "--servers", "2",
                            "--colocated-servers", "--placement", "1-1-1"});
  EXPECT_FALSE(plan.at("runs").empty());
  for (const Json& run : plan.at("runs")) EXPECT_GT(run.at("plan").at("workers"), 1);
}

TEST(PlanCommand, ChoosesRunsThatNarrowTheInterval) {
  const Json plan = JsonOf({"plan", "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                            "--local-batch", "128", "--count", "4"});
  EXPECT_EQ(plan.at("target").at("workers"), 4) << "the whole cluster";
  double log_sd = plan.at("log_sd");
  // Beside the four, one run of each of the file's hosts alone that is not among them.
  ASSERT_GE(plan.at("runs").size(), 4U + 3U);
  std::set<std::string> placements;
  bool third_node = false;
  for (const Json& run : plan.at("runs")) {
    if (run.at("plan").at("workers") > 1) {
      EXPECT_LT(run.at("log_sd"), log_sd);
    } else {
      EXPECT_LE(run.at("log_sd"), log_sd);
    }
    log_sd = run.at("log_sd");
    EXPECT_NEAR(run.at("half_width"), std::expm1(1.6448536 * log_sd), 1e-6);
    EXPECT_GT(run.at("device_s"), 0);
    const std::string row = run.at("runs_row");
    EXPECT_EQ(row.rfind("resnet50,rtx_4090,", 0), 0U) << row;
    // Each row is of its own plan.
    const std::vector<std::string> columns = Cells(plan.at("runs_header"));
    const std::vector<std::string> cells = Cells(row);
    ASSERT_EQ(cells.size(), columns.size()) << row;
    const std::string placement = run.at("plan").at("placement");
    placements.insert(placement);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == "placement") {
        EXPECT_EQ(cells[i], placement) << row;
      }
      if (columns[i] == "local_batch") {
        EXPECT_EQ(cells[i], run.at("plan").at("local_batch").dump()) << row;
      }
    }
    EXPECT_NE(run.at("command").get<std::string>().find("torchrun"), std::string::npos);
    third_node = third_node || run.at("plan").at("workers") >= 3;
  }
  EXPECT_TRUE(third_node) << "two nodes cannot show what distinct peers do";
  EXPECT_GT(placements.size(), 1U);
}

// Rows of a network by another of its names are its rows.
TEST(PlanCommand, NetworksGoByTheirOwnNames) {
  const TempFolder folder;
  const auto among = [&](const std::string& name) {
    return Words{"plan",
                 "--cluster",
                 "gce-t4",
                 "--workload",
                 "bert_large",
                 "--local-batch",
                 "8",
                 "--count",
                 "1",
                 "--among",
                 folder.Write("among.csv", kHeader + name + ",t4,1-1,0,allreduce,8,1\n")};
  };
  const Json named = JsonOf(among("bert_large"));
  EXPECT_FALSE(named.at("runs").empty());
  EXPECT_EQ(JsonOf(among("bert_large@384")).at("runs"), named.at("runs"));
  ExpectError(among("bert_large@128"), {"--among", "holds no run of bert_large"});
  ExpectError(among("bert_large@0"), {"among.csv:2: workload: 'bert_large@0' has no such size"});
}

// A workload of one's own keeps its name, whatever the catalogue calls so.
TEST(PlanCommand, AFilesNetworkGoesByItsNameAlone) {
  const TempFolder folder;
  const auto among = [&](const std::string& name) {
    const std::string own =
        folder.Write("own.json", Json({{"name", "resnet50@224"}, {"parameters", 1000000}}).dump());
    return Words{"plan",
                 "--cluster",
                 "gce-t4",
                 "--workload-file",
                 own,
                 "--workload",
                 "resnet50@224",
                 "--local-batch",
                 "8",
                 "--count",
                 "1",
                 "--among",
                 folder.Write("among.csv", kHeader + name + ",t4,1-1,0,allreduce,8,1\n")};
  };
  EXPECT_FALSE(JsonOf(among("resnet50@224")).at("runs").empty());
  ExpectError(among("resnet50"), {"--among", "holds no run of resnet50@224"});
}

TEST(PlanCommand, RunsThatWereMeasuredNarrowIt) {
  const TempFolder folder;
  const std::string file = folder.Path("fitted.yaml");
  JsonOf(kCalibrate + Words{"--output", file});
  const Json before = JsonOf({"plan", "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                              "--local-batch", "128", "--count", "1"});
  // The workload and the batch are those of the calibration.
  const Json after = JsonOf({"plan", "--cluster", file, "--count", "1"});
  EXPECT_EQ(after.at("workload"), "resnet50");
  EXPECT_EQ(after.at("target").at("local_batch"), 128);
  EXPECT_LT(after.at("log_sd"), before.at("log_sd"));
  // Of several batches the smallest, which exchanges most often.
  const std::string runs = folder.Write("two.csv", kHeader +
                                                       "resnet50,rtx_4090,1,0,none,128,0.204\n"
                                                       "resnet50,rtx_4090,1,0,none,64,0.11\n"
                                                       "resnet50,rtx_4090,1-1,0,allreduce,96,1\n");
  JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", file});
  EXPECT_EQ(JsonOf({"plan", "--cluster", file, "--count", "1"}).at("target").at("local_batch"), 64);
}

// Whoever measures and fits as told fits the workload as it was asked for.
TEST(PlanCommand, SaysHowTheWorkloadIsTrained) {
  const Words base = {"plan", "--cluster", "gce-t4", "--workload", "gpt2", "--local-batch",
                      "2",    "--workers", "8",      "--count",    "1"};
  const Words trained = {"--precision", "bf16", "--optimizer", "adam", "--recompute", "full"};
  ExpectText(base + trained,
             {"gpt2 (bf16, adam, full recompute) on gce-t4 (t4): what to measure for 8 workers",
              "Measure the mean step of gpt2 (bf16, adam, full recompute) over about",
              "(stepcast calibrate --precision bf16 --optimizer adam"});
  ExpectText(base, {"gpt2 on gce-t4 (t4): what to measure", "Measure the mean step over about",
                    "(stepcast calibrate) and ask again"});
  ExpectText(base + Words{"--precision", "fp32"}, {"(stepcast calibrate --precision fp32) and"});

  Words predict = base + trained;
  predict[0] = "predict";
  predict.erase(predict.begin() + 9, predict.begin() + 11);  // --count
  Words explain = predict;
  explain[0] = "explain";
  Words diagnose = predict + Words{"--measured", "2 s"};
  diagnose[0] = "diagnose";
  for (const Words& words : {base + trained, predict, explain, diagnose}) {
    const Json json = JsonOf(words);
    EXPECT_EQ(json.at("workload"), "gpt2") << words[0];
    EXPECT_EQ(json.at("device"), "t4") << words[0];
    EXPECT_EQ(json.at("precision"), "bf16") << words[0];
    EXPECT_EQ(json.at("optimizer"), "adam") << words[0];
    EXPECT_EQ(json.at("attention"), "plain") << words[0];
    EXPECT_EQ(json.at("recompute"), "full") << words[0];
  }
}

// A network of one's own whose name begins like one of the catalogue is none of it.
TEST(PlanCommand, PlansTheNetworkThatWasCalibrated) {
  const TempFolder folder;
  const std::string net = folder.Write("net.yaml", "name: resnet50 (v2)\nparameters: 8000000\n");
  const std::string runs =
      folder.Write("runs.csv", kHeader +
                                   "resnet50 (v2),rtx_4090,1,0,none,8,0.03\n"
                                   "resnet50 (v2),rtx_4090,1,0,none,16,0.055\n"
                                   "resnet50 (v2),rtx_4090,1-1,0,allreduce,8,0.06\n");
  const std::string file = folder.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--workload-file", net,
          "--output", file});
  const Json plan = JsonOf({"plan", "--cluster", file, "--workload-file", net, "--count", "1"});
  EXPECT_EQ(plan.at("workload"), "resnet50 (v2)");
  EXPECT_EQ(plan.at("target").at("local_batch"), 8);
  EXPECT_NE(JsonOf({"predict", "--cluster", file, "--workload", "resnet50", "--local-batch", "8"})
                .at("compute_source"),
            "calibration");
}

// Runs that are kept to judge a fit by are not asked for.
TEST(PlanCommand, AsksForNoneOfTheRunsThatAreKept) {
  const TempFolder folder;
  const Words plan = {"plan",          "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                      "--local-batch", "128",       "--count",    "4"};
  const auto rows = [&](const Words& words) {
    std::set<std::string> found;
    const Json next = JsonOf(plan + words);
    for (const Json& run : next.at("runs")) found.insert(run.at("runs_row"));
    return found;
  };
  const std::string kept = folder.Path("kept.csv");
  const std::set<std::string> first = rows({"--output", kept});
  ASSERT_EQ(first.size(), 7U);  // four, one of them of a host alone, and each of three others
  const std::set<std::string> others = rows({"--without", kept});
  EXPECT_FALSE(others.empty());
  for (const std::string& row : others) EXPECT_EQ(first.count(row), 0U) << row;
  // Runs of another network that were kept are none of this one.
  std::string of_vgg = FileContent(kept);
  for (std::size_t at = 0; (at = of_vgg.find("resnet50", at)) != std::string::npos;) {
    of_vgg.replace(at, 8, "vgg16");
  }
  EXPECT_EQ(rows({"--without", folder.Write("vgg.csv", of_vgg)}), first);
  // Of a host that was kept by itself, no other host.
  const auto of_host = [](const std::string& host) { return ",1," + host + ",none,"; };
  const auto asked = [&](const std::set<std::string>& all, const std::string& host) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& row) {
      return row.find(of_host(host)) != std::string::npos;
    });
  };
  std::string one = FileContent(kept);
  one = one.substr(0, one.find('\n') + 1);
  for (const std::string& row : first) {
    if (row.find(of_host("tupi2")) != std::string::npos) one += row + "\n";
  }
  const std::set<std::string> but_one = rows({"--without", folder.Write("one.csv", one)});
  for (const char* host : {"tupi1", "tupi2", "tupi5", "tupi6"}) {
    EXPECT_TRUE(asked(first, host)) << host;
    EXPECT_EQ(asked(but_one, host), std::string(host) != "tupi2") << host;
  }
}

// Whatever a plan states that `plan` takes, up to the ends of its range, `calibrate` reads the rows
// that come of it once they have times.
TEST(PlanCommand, CalibrateReadsWhatPlanWrites) {
  const TempFolder folder;
  const std::string fitted = folder.Path("fitted.yaml");
  const Words base = {"plan", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch",
                      "32",   "--workers", "8",      "--count",    "2"};
  constexpr double kLongestStep = 1e7;  // s; what a row may state
  int read = 0;
  const auto check = [&](const Words& flags) {
    const ProcessResult plan = program::Stepcast(base + flags + Words{"--json"});
    if (plan.exit_code == 2) return;
    ASSERT_EQ(plan.exit_code, 0) << plan.err;
    const Json next = Json::parse(plan.out);
    std::string rows = next.at("runs_header").get<std::string>() + "\n";
    for (const Json& run : next.at("runs")) {
      const std::string row = run.at("runs_row");
      const std::size_t at = row.find("STEP_TIME");
      ASSERT_NE(at, std::string::npos) << row;
      const double step = std::min(run.at("step_time_s").get<double>(), kLongestStep);
      rows += fmt::format("{}{}{}\n", row.substr(0, at), step, row.substr(at + 9));
    }
    const std::string file = folder.Write("next.csv", rows);
    const ProcessResult fit =
        program::Stepcast({"calibrate", "--cluster", "gce-t4", "--runs", file, "--output", fitted});
    EXPECT_NE(fit.exit_code, 2) << fit.err << rows;
    if (fit.exit_code != 0) return;
    const ProcessResult again = program::Stepcast(
        {"predict", "--cluster", fitted, "--workload", "resnet50", "--local-batch", "32"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    ++read;
  };
  const auto strategy_of = [](const PlanField& field) -> const char* {
    switch (field.with) {
      case GoesWith::kServers:
      case GoesWith::kParameterServers:
      case GoesWith::kPsSync:
        return "ps-sync";
      case GoesWith::kPsAsync:
        return "ps-async";
      default:
        return "allreduce";
    }
  };
  int numbers = 0;
  for (const PlanField& field : PlanFields()) {
    if (field.unit == nullptr || field.flag == std::string("local-batch")) continue;
    ++numbers;
    const std::string strategy = strategy_of(field);
    Words with = {"--strategy", strategy};
    const bool of_servers = field.flag == std::string("servers");
    if (of_servers || strategy != "allreduce") with = {"--strategy", "ps-sync", "--servers", "2"};
    if (strategy == "ps-async") with[1] = strategy;
    if (of_servers) with.resize(2);
    for (const double value : {field.range.least, field.range.most, 1.0, 0.123456789012345}) {
      const std::string text =
          fmt::format("{}{}{}", value, *field.unit == '\0' ? "" : " ", field.unit);
      SCOPED_TRACE(fmt::format("--{} {}", field.flag, text));
      check(with + Words{std::string("--") + field.flag, text});
    }
  }
  EXPECT_GT(numbers, 8);
  EXPECT_GT(read, numbers);
}

TEST(PlanCommand, ChoosesAmongWhatCanBeMeasured) {
  const Json plan = JsonOf({"plan", "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                            "--local-batch", "128", "--among", kFit});
  for (const Json& run : plan.at("runs")) EXPECT_LE(run.at("plan").at("workers"), 2);
  EXPECT_GE(plan.at("runs").size(), 1U);
}

TEST(PlanCommand, Errors) {
  const Words plan = {"plan", "--cluster", "ufrgs-tupi", "--workload", "resnet50"};
  ExpectError(plan, {"--local-batch: is required"});
  ExpectError(plan + Words{"--local-batch", "8", "--count", "0"}, {"--count: '0'", "1 to 100"});
  ExpectError({"plan", "--cluster", "ufrgs-tupi"}, {"--workload: is required"});
  ExpectError({"plan", "--cluster", "ufrgs-tupi", "--workload", "vgg16", "--local-batch", "8",
               "--among", kFit},
              {"--among", "holds no run of vgg16"});
  const TempFolder folder;
  const std::string vast =
      folder.Write("vast.yaml", "name: vast\ndevice: t4\nnodes: 1000000\ndevices_per_node: 1000\n");
  ExpectError({"plan", "--cluster", vast, "--workload", "resnet50", "--local-batch", "8"},
              {"--workers: is required: vast has 1000000000 devices, more than a plan may have; "
               "allowed: at "
               "most 1000000\n"});
}

// ---- --check.

// A calibrated cluster, and runs as it predicts them, each multiplied by `factor`.
class CheckCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string rows = kHeader;
    for (const char* placement : {"1", "1-1", "1-1-1", "1-1-1-1"}) {
      for (const int batch : {16, 32, 64, 128}) rows += Row(placement, batch, 1);
    }
    file = folder.Path("fitted.yaml");
    JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", folder.Write("runs.csv", rows),
            "--output", file});
  }

  // As the uncalibrated cluster predicts it: a truth without noise.
  static std::string Row(const std::string& placement, int batch, double factor) {
    const Json p = JsonOf({"predict", "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                           "--placement", placement, "--local-batch", std::to_string(batch)});
    const double step = p.at("step_time_s").get<double>() * factor;
    return "resnet50,rtx_4090," + placement + ",0," + (placement == "1" ? "none," : "allreduce,") +
           std::to_string(batch) + "," + std::to_string(step) + "\n";
  }

  Json Check(double factor_of_one, int exit_code) const {
    std::string rows = kHeader;
    for (const int batch : {16, 24, 32, 48, 64, 96, 128}) rows += Row("1", batch, factor_of_one);
    return JsonOf({"calibrate", "--cluster", file, "--check", folder.Write("new.csv", rows)},
                  exit_code);
  }

  TempFolder folder;
  std::string file;
};

TEST_F(CheckCommand, ACalibrationHoldsForRunsLikeItsOwn) {
  const Json report = Check(1, 0);
  EXPECT_EQ(report.at("stale"), false);
  EXPECT_EQ(report.at("runs"), 7);
  EXPECT_EQ(report.at("drifts").size(), 0U);
  // The text has the figures that the verdict rests on.
  const Words words = {"calibrate", "--cluster", file, "--check", folder.Path("new.csv")};
  ExpectText(words, {"The calibration still holds: 7 new runs", "They lie ",
                     FormatNumber(report.at("scatter").get<double>()) + " times as far"});
  EXPECT_EQ(program::Stepcast(words).out.find("under 0.1 %"), std::string::npos);
}

TEST_F(CheckCommand, ASlowerDeviceIsNamed) {
  const Json report = Check(1.5, 1);
  EXPECT_EQ(report.at("stale"), true);
  ASSERT_GE(report.at("drifts").size(), 1U);
  const Json& drift = report.at("drifts").at(0);
  EXPECT_EQ(drift.at("name"), "device_speed");
  EXPECT_NEAR(drift.at("before").get<double>() / drift.at("now").get<double>(), 1.5, 0.15);
  ExpectText({"calibrate", "--cluster", file, "--check", folder.Path("new.csv")},
             {"device_speed of ", " standard errors)", "They lie "}, 1);
}

TEST_F(CheckCommand, Errors) {
  ExpectError({"calibrate", "--cluster", "ufrgs-tupi", "--check", kFit},
              {"--check", "has no calibration"});
  ExpectError({"calibrate", "--cluster", file, "--check", kFit, "--runs", kFit},
              {"--runs", "beside --check"});
}

// ---- evaluate.

TEST(EvaluateCommand, SaysWhatTheClusterDoesNotHave) {
  const TempFolder folder;
  const auto judge = [&](const std::string& placement) {
    return Words{"evaluate", "--cluster", "gce-t4", "--runs",
                 folder.Write("r.csv",
                              "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                              "resnet50,t4,4-4,0,ring,32,0.5\nresnet50,t4," +
                                  placement + ",0,ring,32,0.5\n")};
  };
  EXPECT_EQ(JsonOf(judge("4-4-4-4")).at("flags"), Json::array());
  EXPECT_EQ(JsonOf(judge("1-1-1-1-1-1")).at("flags"),
            Json::array({"a run is on 6 nodes, gce-t4 has 4"}));
  const std::string page = folder.Path("judged.html");
  program::ExpectText(
      judge("8-8-8-8-8") + Words{"--report", page},
      {"a run is on 5 nodes, gce-t4 has 4", "a run has 8 devices on a node, gce-t4 has 4"});
  EXPECT_NE(FileContent(page).find("a run is on 5 nodes, gce-t4 has 4"), std::string::npos);
}

TEST(EvaluateCommand, NamesTheFirstOfManyHosts) {
  const TempFolder folder;
  std::string placement = "1";
  std::string hosts = "h0";
  for (int i = 1; i < 1200; ++i) {
    placement += "-1";
    hosts += "+h" + std::to_string(i);
  }
  const std::string runs =
      "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n" +
      ("resnet50,t4," + placement + ",0,ring,32,0.5," + hosts + "\n");
  program::ExpectText({"evaluate", "--cluster", "gce-t4", "--runs", folder.Write("r.csv", runs)},
                      {" on h0+h1+h2+h3+h4+h5+h6+h7+h8+h9+... (1,190 more), ring"});
}

// A dozen runs are shown one by one, and of more the scores alone.
TEST(EvaluateCommand, ShowsTheRowsOfADozenRuns) {
  const TempFolder folder;
  std::string runs = kHeader;
  for (int i = 1; i <= 13; ++i) {
    runs += "resnet50,t4,1,0,none,32,0." + std::to_string(770 + i) + "\n";
    const std::string text = program::Stepcast({"evaluate", "--cluster", "gce-t4", "--runs",
                                                folder.Write("runs.csv", runs)})
                                 .out;
    EXPECT_NE(text.find("in 90 % interval"), std::string::npos) << text;
    EXPECT_EQ(text.find("771 ms") != std::string::npos, i <= 12) << i << "\n" << text;
  }
}

}  // namespace
}  // namespace stepcast
