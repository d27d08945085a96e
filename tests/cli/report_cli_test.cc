// Pages of calibrations and evaluations: another view of what calibrate, evaluate, plan and probe
// print, number by number.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/io/network_profile_file.h"
#include "model/statistics/normal.h"
#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/html.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::Json;
using program::JsonOf;
using program::Words;
using program::operator+;

using Cells = std::vector<std::string>;

const std::string kMeasurements = std::string(STEPCAST_SOURCE_DIR) + "/data/measurements/";
const std::string kFit = kMeasurements + "ufrgs-tupi-fit.csv";
const std::string kHeldOut = kMeasurements + "ufrgs-tupi-holdout.csv";
const std::string kHeader = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

std::string Time(const Json& seconds) { return FormatDuration(Seconds(seconds.get<double>())); }
std::string Percent(const Json& share) { return FormatPercent(share.get<double>()); }
std::string Signed(const Json& share) {
  return (share.get<double>() > 0 ? "+" : "") + Percent(share);
}
std::string Interval(const Json& of) {
  return Time(of.at("low_s")) + " - " + Time(of.at("high_s"));
}
std::string Valued(double value, const std::string& unit) {
  return FormatNumber(value) + (unit.empty() ? "" : " " + unit);
}

// Runs of which one is far off, on links of which one is slow, so that each part of a page has
// something to say.
std::string RunsWithSuspects(const TempFolder& folder) {
  return folder.Write("runs.csv", kHeader +
                                      "resnet50,rtx_4090,1,0,none,128,0.204\n"
                                      "resnet50,rtx_4090,1,0,none,64,0.11\n"
                                      "resnet50,rtx_4090,1-1,0,allreduce,128,1.37\n"
                                      "resnet50,rtx_4090,1-1,0,allreduce,128,9.33\n"
                                      "resnet50,rtx_4090,1-1-1,0,allreduce,128,12.30\n"
                                      "resnet50,rtx_4090,1-1-1,0,allreduce,128,>5\n"
                                      "vgg16,rtx_4090,1,0,none,64,0.3\n"
                                      "vgg16,rtx_4090,1-1,0,allreduce,64,7.2\n");
}

class ReportCli : public testing::Test {
 protected:
  // The page of a fit of `runs`.
  std::vector<HtmlElement> PageOf(const std::string& runs, const Words& more = {}) {
    const std::string page = folder_.Path("report.html");
    const Json json =
        JsonOf(Words{"report", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", page} + more);
    EXPECT_EQ(json.at("usable"), true);
    EXPECT_EQ(json.at("output"), page);
    const std::string text = FileContent(page);
    EXPECT_EQ(json.at("bytes"), text.size());
    return ReadHtml(text);
  }

  // The texts of the page's list items.
  static bool Says(const std::vector<HtmlElement>& page, const std::string& sentence) {
    const auto items = HtmlNamed(page, "li");
    return std::any_of(items.begin(), items.end(), [&](const HtmlElement& item) {
      return item.text.find(sentence) != std::string::npos;
    });
  }

  // The tables of errors beside `evaluate --group-by` of the same runs.
  static void ExpectScores(const std::vector<HtmlElement>& page, const Words& evaluate,
                           std::size_t which) {
    for (const std::string grouping : {"distance", "workload", "workers"}) {
      SCOPED_TRACE(grouping);
      const Json judged = JsonOf(evaluate + Words{"--group-by", grouping});
      std::vector<HtmlTable> tables;
      for (const HtmlTable& table : TablesOf(page)) {
        if (table.rows.front().front() == grouping) tables.push_back(table);
      }
      ASSERT_GT(tables.size(), which);
      std::vector<Json> scores(judged.at("groups").begin(), judged.at("groups").end());
      scores.push_back(judged.at("overall"));
      scores.back()["name"] = "all";
      const std::vector<Cells>& rows = tables[which].rows;
      ASSERT_EQ(rows.size(), scores.size() + 1);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const Json& s = scores[i];
        EXPECT_EQ(rows[i + 1],
                  (Cells{s.at("name"), FormatCount(s.at("runs")), Percent(s.at("mape")),
                         Percent(s.at("median_ape")), Percent(s.at("p90_ape")),
                         Signed(s.at("bias")), Percent(s.at("coverage90"))}));
      }
    }
  }

  // The table of all runs beside `evaluate --rows`.
  static void ExpectRuns(const HtmlTable& table, const Words& evaluate) {
    const Json rows = JsonOf(evaluate + Words{"--rows"}).at("rows");
    ASSERT_EQ(table.rows.size(), rows.size() + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Json& row = rows[i];
      const Cells& cells = table.rows[i + 1];
      const bool stopped = row.at("stopped");
      EXPECT_EQ(cells.at(0), std::to_string(i + 1));
      EXPECT_EQ(cells.at(3), (stopped ? "> " : "") + Time(row.at("measured_step_time_s")));
      EXPECT_EQ(cells.at(4), Time(row.at("predicted_step_time_s")));
      EXPECT_EQ(cells.at(5), Interval(row));
      const double error = row.at("predicted_step_time_s").get<double>() /
                               row.at("measured_step_time_s").get<double>() -
                           1;
      EXPECT_EQ(cells.at(6), stopped ? "" : (error > 0 ? "+" : "") + FormatPercent(error));
    }
  }

  TempFolder folder_;
};

TEST_F(ReportCli, HasTheNumbersOfCalibrate) {
  const std::string runs = RunsWithSuspects(folder_);
  const std::string fitted = folder_.Path("fitted.yaml");
  const auto page = PageOf(runs);
  const Json fit =
      JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", fitted});
  EXPECT_NE(HtmlNamed(page, "h1").front().text.find("ufrgs-tupi from 7 runs of 2 workloads"),
            std::string::npos);
  EXPECT_TRUE(Says(page, fmt::format("met within {} on average", Percent(fit.at("mape")))));
  EXPECT_TRUE(Says(page, "scatter by " + Percent(fit.at("residual_log_sd"))));
  EXPECT_TRUE(Says(page, "One more run was stopped before a step ended"));
  ASSERT_GT(fit.at("flags").size(), 0U);
  for (const Json& flag : fit.at("flags")) EXPECT_TRUE(Says(page, flag)) << flag;
  ASSERT_GT(fit.at("suspects").size(), 0U);
  for (const Json& suspect : fit.at("suspects")) {
    EXPECT_TRUE(Says(page, fmt::format("measured {}, the model says {}: {}",
                                       Time(suspect.at("measured_step_time_s")),
                                       Time(suspect.at("predicted_step_time_s")),
                                       suspect.at("cause").get<std::string>())))
        << suspect;
  }

  const HtmlTable parameters = TableOf(page, "Fitted values");
  ASSERT_EQ(parameters.rows.size(), fit.at("parameters").size() + 1);
  std::string scope;
  for (std::size_t i = 0; i < fit.at("parameters").size(); ++i) {
    const Json& p = fit.at("parameters")[i];
    Cells cells = {p.at("scope"),
                   p.at("name"),
                   Valued(p.at("value"), p.at("unit")),
                   FormatNumber(p.at("low")) + " - " + FormatNumber(p.at("high")),
                   Valued(p.at("prior_value"), p.at("unit")) + " x/ " +
                       FormatNumber(std::exp(p.at("prior_log_sd").get<double>())),
                   p.at("decided_by")};
    // The scope stands beside all of its parameters.
    if (scope == cells.front()) cells.erase(cells.begin());
    scope = p.at("scope");
    EXPECT_EQ(parameters.rows[i + 1], cells);
  }

  const HtmlTable whole = TableOf(page, "The whole cluster");
  ASSERT_EQ(whole.rows.size(), fit.at("whole_cluster").size() + 1);
  for (std::size_t i = 0; i < fit.at("whole_cluster").size(); ++i) {
    const Json& p = fit.at("whole_cluster")[i];
    const Json& u = p.at("uncertainty");
    EXPECT_EQ(
        whole.rows[i + 1],
        (Cells{p.at("workload"), FormatCount(p.at("plan").at("local_batch")),
               Time(p.at("step_time_s")), Percent(u.at("parameters_log_sd")),
               Percent(u.at("step_log_sd")), Percent(u.at("beyond_range_log_sd")), Interval(p)}));
  }
  EXPECT_EQ(TableOf(page, "Fitted runs").rows.at(1), (Cells{runs, "7"}));

  const Words evaluate = {"evaluate", "--cluster", fitted, "--runs", runs};
  ExpectScores(page, evaluate, 0);
  ExpectRuns(TableOf(page, "All runs"), evaluate);
}

TEST_F(ReportCli, AsksForTheRunsThatPlanAsksFor) {
  const std::string runs = RunsWithSuspects(folder_);
  const std::string fitted = folder_.Path("fitted.yaml");
  const auto page = PageOf(runs);
  JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", fitted});
  const auto lines = HtmlNamed(page, "pre");
  ASSERT_EQ(lines.size(), 2U);
  int at = 0;
  for (const std::string workload : {"resnet50", "vgg16"}) {
    SCOPED_TRACE(workload);
    const Json plan = JsonOf({"plan", "--cluster", fitted, "--workload", workload});
    const HtmlTable table = TableOf(page, "Runs for " + workload);
    ASSERT_EQ(table.rows.size(), plan.at("runs").size() + 1);
    const std::string& file = lines[static_cast<std::size_t>(at++)].text;
    EXPECT_EQ(file.rfind(plan.at("runs_header").get<std::string>() + "\n", 0), 0U) << file;
    for (std::size_t i = 0; i < plan.at("runs").size(); ++i) {
      const Json& run = plan.at("runs")[i];
      const Cells& cells = table.rows[i + 1];
      EXPECT_EQ(cells.at(0), std::to_string(i + 1));
      EXPECT_EQ(cells.at(2), Time(run.at("step_time_s")));
      EXPECT_EQ(cells.at(3), Time(run.at("device_s")));
      EXPECT_EQ(cells.at(4),
                fmt::format("a factor of {:.2f}", 1 + run.at("half_width").get<double>()));
      for (const char* key : {"command", "runs_row"}) {
        EXPECT_NE(file.find(run.at(key).get<std::string>() + "\n"), std::string::npos) << file;
      }
    }
    const auto sentences = HtmlNamed(page, "p");
    const std::string now =
        fmt::format("Now: a step of {}, within a factor of {:.2f}", Time(plan.at("step_time_s")),
                    1 + plan.at("half_width").get<double>());
    EXPECT_TRUE(std::any_of(sentences.begin(), sentences.end(), [&](const HtmlElement& p) {
      return p.text.rfind(now, 0) == 0;
    })) << now;
  }
}

// One run of one batch does not tell what its samples take from what no batch changes.
TEST_F(ReportCli, SaysWhatTheRunsDoNotTellApart) {
  const std::string runs =
      folder_.Write("one.csv", kHeader + "resnet50,rtx_4090,1,0,none,8,0.03\n");
  const auto page = PageOf(runs);
  EXPECT_FALSE(Says(page, "No pair of parameters shows as a product or ratio."));
  const Json fit = JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs});
  ASSERT_GT(fit.at("ambiguities").size(), 0U);
  for (const Json& pair : fit.at("ambiguities")) {
    EXPECT_TRUE(Says(
        page, fmt::format("{} and {} cannot be told apart: the runs show their {}. The "
                          "worse is known within a factor of {:.2f} (90 %)",
                          pair.at("first").get<std::string>(), pair.at("second").get<std::string>(),
                          pair.at("known").get<std::string>(),
                          NinetyPercentFactor(pair.at("log_sd").get<double>()))))
        << pair;
    ASSERT_FALSE(pair.at("separating_run").is_null());
    const auto factor = [&](const char* key) {
      return fmt::format("{:.2f}", NinetyPercentFactor(pair.at(key).get<double>()));
    };
    EXPECT_TRUE(Says(page, "would be within " + factor("conditional_log_sd") + " if the other"));
    EXPECT_TRUE(Says(page, " would leave " + factor("separated_log_sd") + "."));
  }
}

TEST_F(ReportCli, JudgesByRunsThatWereNotFitted) {
  const std::string fitted = folder_.Path("fitted.yaml");
  const auto page = PageOf(kFit, {"--judge", kHeldOut});
  const Json fit =
      JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", kFit, "--output", fitted});
  for (const Json& finding : fit.at("findings")) EXPECT_TRUE(Says(page, finding)) << finding;
  const Words evaluate = {"evaluate", "--cluster", fitted, "--runs"};
  ExpectScores(page, evaluate + Words{kFit}, 0);
  ExpectScores(page, evaluate + Words{kHeldOut}, 1);
  std::vector<HtmlTable> of_runs;
  for (const HtmlTable& table : TablesOf(page)) {
    if (table.caption == "All runs") of_runs.push_back(table);
  }
  ASSERT_EQ(of_runs.size(), 2U);
  ExpectRuns(of_runs[1], evaluate + Words{kHeldOut});
}

TEST_F(ReportCli, TakesWhatCalibrateTakes) {
  const Words statements = {"--fix", "overlap_share=0.6", "--prior",
                            "resnet50/straggler_spread=0.02 x/ 1.5; inputs of one size"};
  const HtmlTable table = TableOf(PageOf(kFit, statements), "Fitted values");
  const auto row_of = [&](const std::string& name) {
    for (Cells cells : table.rows) {
      if (cells.size() == 6) cells.erase(cells.begin());
      if (cells.at(0) == name) return cells;
    }
    return Cells(5);
  };
  EXPECT_EQ(row_of("overlap_share"), (Cells{"overlap_share", "0.6", "", "", "stated"}));
  EXPECT_EQ(row_of("straggler_spread").at(3), "0.02 x/ 1.5");
}

TEST_F(ReportCli, IsTheSameEachTime) {
  PageOf(kFit);
  const std::string first = FileContent(folder_.Path("report.html"));
  PageOf(kFit);
  EXPECT_EQ(FileContent(folder_.Path("report.html")), first);
  for (const char* way : {"http:", "https:", "url(", "@import", "<script", " src="}) {
    EXPECT_EQ(first.find(way), std::string::npos) << way;
  }
}

// Each sentence of a page where it is due, and nowhere else: of runs that name hosts, of runs of
// which some are suspect, and of messages without compute.
TEST_F(ReportCli, SentencesStandWhereTheyAreDue) {
  const std::string messages =
      folder_.Write("messages.csv", kHeader +
                                        "message_1048576,rtx_4090,1-1,0,ring,1,0.02\n"
                                        "message_4194304,rtx_4090,1-1,0,ring,1,0.08\n");
  const std::vector<HtmlElement> pages[] = {PageOf(kFit), PageOf(RunsWithSuspects(folder_)),
                                            PageOf(messages)};
  const struct {
    const char* begin;  // of a paragraph, a caption or a heading
    const char* name;   // of its element
    bool due[3];
  } sentences[] = {
      {"The runs name no hosts, so that all links are taken to be alike.",
       "p",
       {false, true, true}},
      {"No measured network was given", "p", {true, true, true}},
      {"MAPE is the mean of |predicted / measured - 1|; beside it the median and the 90th "
       "percentile of the same, and its mean with its sign, the bias. In 90 % interval is the "
       "share of the runs that were measured within the interval of their forecast: nine in ten",
       "p",
       {true, true, true}},
      {"A prior of 10 x/ 2 is a belief of 10 with a factor of 2 as its standard deviation. data "
       "decided where the runs removed at least three quarters of the variance of ln(value), the "
       "prior where they removed less than one quarter.",
       "p",
       {true, true, true}},
      {"parameters, one step and beyond the runs are standard deviations of ln(step)",
       "p",
       {true, true, false}},
      {"The runs have no workload with compute, so that there is no step to forecast.",
       "p",
       {false, false, true}},
      {"The runs have no workload with compute, of which a forecast could be narrowed.",
       "p",
       {false, false, true}},
      {"The runs that would narrow the forecast of the whole cluster the most.",
       "p",
       {true, true, false}},
      {"None: the fit meets all runs, and no two of one plan contradict each other.",
       "p",
       {true, false, true}},
      {"No pair of parameters shows as a product or ratio.", "p", {true, true, true}},
      {"Errors and coverage by distance: doublings of nodes, workers, devices or batch beyond the "
       "fitted runs, rounded up; 0 is within them",
       "caption",
       {true, true, true}},
      {"The whole cluster with the smallest batch that was fitted", "caption", {true, true, false}},
      {"resnet50 on rtx_4090: 4 workers (4 x 1) on tupi1+tupi2+tupi5+tupi6, allreduce, local batch "
       "128",
       "h3",
       {true, false, false}},
      {"vgg16 on rtx_4090: 4 workers", "h3", {false, true, false}},
  };
  for (const auto& sentence : sentences) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto elements = HtmlNamed(pages[i], sentence.name);
      const auto said = std::count_if(
          elements.begin(), elements.end(),
          [&](const HtmlElement& element) { return element.text.rfind(sentence.begin, 0) == 0; });
      EXPECT_EQ(said, sentence.due[i] ? 1 : 0) << sentence.begin << " on page " << i;
    }
  }
}

// A section for each question, and one more for the runs that judge; forecasts beyond the fitted
// runs have a plot of their errors by how far they are.
TEST_F(ReportCli, SectionsAreTheQuestions) {
  const auto texts = [](const std::vector<HtmlElement>& page, const char* name) {
    Words all;
    for (const HtmlElement& element : HtmlNamed(page, name)) all.push_back(element.text);
    return all;
  };
  const Words first = {"Summary", "Caveats", "Links", "Fits and residuals"};
  const Words rest = {"Forecasts", "Parameters", "Suspect runs",
                      "What these runs cannot tell apart", "What to measure next"};
  const auto by_distance = [](const Words& captions) {
    return std::count(captions.begin(), captions.end(),
                      "Error by distance from the fitted runs At zero are runs within the range of "
                      "the fitted ones.");
  };
  const auto page = PageOf(kFit);
  EXPECT_EQ(texts(page, "h2"), first + rest);
  EXPECT_EQ(by_distance(texts(page, "figcaption")), 0);
  const auto judged = PageOf(kFit, {"--judge", kHeldOut});
  EXPECT_EQ(texts(judged, "h2"), first + Words{"Judged by runs that were not fitted"} + rest);
  EXPECT_EQ(by_distance(texts(judged, "figcaption")), 1);
  EXPECT_EQ(HtmlNamed(page, "p").front().text,
            "UFRGS PCAD, tupi machines: RTX 4090, one a node, 1 Gbit/s Ethernet");

  const std::string file = folder_.Path("judged.html");
  JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFit, "--report", file});
  const auto evaluation = ReadHtml(FileContent(file));
  EXPECT_EQ(HtmlNamed(evaluation, "h1").front().text, "ufrgs-tupi: predicted against measured");
  EXPECT_EQ(texts(evaluation, "h2"),
            (Words{"Errors and coverage", "Predicted over measured", "Runs"}));
}

// ---- The network.

NetworkProfile SlowHostProfile() {
  NetworkProfile profile;
  profile.version = "test";
  profile.started = "2026-01-31T12:00:00Z";
  for (const char* name : {"tupi1", "tupi2", "<b>tupi5</b>"}) {
    profile.hosts.push_back({name, "10.0.0.1", {}});
  }
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      NetworkRow row;
      row.from = from;
      row.to = to;
      row.rtt_median_s = 1e-4 * (1 + from + to);
      row.rtt_p10_s = 1e-4;
      profile.rows.push_back(row);
      row = {};
      row.from = from;
      row.to = to;
      row.kind = NetworkKind::kSeveralFlows;
      row.flows = 4;
      row.bytes_per_s = from == 2 || to == 2 ? 11.7e6 : 117e6;
      profile.rows.push_back(row);
    }
  }
  profile.planned = static_cast<int>(profile.rows.size());
  return profile;
}

TEST_F(ReportCli, ShowsAMeasuredNetwork) {
  const NetworkProfile profile = SlowHostProfile();
  const std::string file = folder_.Write("network.json", FormatNetworkProfile(profile));
  const auto page = PageOf(kFit, {"--network", file});
  const HtmlTable rates = TableOf(page, "What each host carries");
  const HtmlTable trips = TableOf(page, "Round trips");
  ASSERT_EQ(rates.rows.size(), 4U);
  EXPECT_EQ(rates.rows[0], (Cells{"from \\ to", "tupi1", "tupi2", "<b>tupi5</b>"}));
  for (const NetworkRow& row : profile.rows) {
    const auto a = static_cast<std::size_t>(row.from) + 1;
    const auto b = static_cast<std::size_t>(row.to) + 1;
    if (row.bytes_per_s) {
      EXPECT_EQ(rates.rows[a][b], FormatRate(BytesPerSecond(*row.bytes_per_s)));
    } else {
      EXPECT_EQ(trips.rows[a][b], FormatDuration(Seconds(*row.rtt_median_s)));
    }
  }
  const Json shown = JsonOf({"probe", "show", file});
  const HtmlTable links = TableOf(page, "Links by host");
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& host = shown.at("hosts")[i];
    EXPECT_EQ(links.rows[i + 1].at(0), host.at("name"));
    EXPECT_EQ(links.rows[i + 1].at(2),
              FormatRate(BytesPerSecond(host.at("sends_bytes_per_s").get<double>())));
    EXPECT_EQ(links.rows[i + 1].at(8), Time(host.at("rtt_s")));
  }
  ASSERT_GT(shown.at("findings").size(), 0U);
  for (const Json& finding : shown.at("findings")) {
    EXPECT_TRUE(Says(page, finding.at("sentence"))) << finding;
  }
  // The slow paths are darker.
  for (const HtmlElement& cell : HtmlNamed(page, "td")) {
    if (cell.Get("class").empty()) continue;
    if (cell.text == "93.6 Mbit/s") {
      EXPECT_EQ(cell.Get("class"), "h4");
    }
    if (cell.text == "936 Mbit/s") {
      EXPECT_EQ(cell.Get("class"), "h0");
    }
  }
}

TEST_F(ReportCli, SaysThatNoNetworkWasMeasured) {
  const auto page = PageOf(kFit);
  for (const HtmlTable& table : TablesOf(page)) {
    EXPECT_EQ(table.caption.find("Round trips"), std::string::npos);
  }
  const auto sentences = HtmlNamed(page, "p");
  EXPECT_TRUE(std::any_of(sentences.begin(), sentences.end(), [](const HtmlElement& p) {
    return p.text.find("No measured network was given") != std::string::npos;
  }));
}

// ---- Texts of others.

// A name as a cell of CSV, and in YAML.
std::string Quoted(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return '"' + text + '"';
}

TEST_F(ReportCli, NamesNeverBecomeMarkup) {
  const auto tags = [](const std::vector<HtmlElement>& page) {
    std::vector<std::string> names;
    for (const HtmlElement& element : page) names.push_back(element.name);
    return names;
  };
  // What a page of harmless names has; hosts, devices and workloads are called in order.
  const auto page_of = [&](const std::string& name) {
    const TempFolder folder;
    const std::string workload = "w" + name;
    const std::string device = "d" + name;
    const std::string own =
        folder.Write("own.json", Json({{"name", workload}, {"parameters", 43000000}}).dump());
    const std::string cluster = folder.Write("c.json", Json({{"name", "c" + name},
                                                             {"title", "t" + name},
                                                             {"device", device},
                                                             {"nodes", 3},
                                                             {"devices_per_node", 1}})
                                                           .dump());
    const auto row = [&](const std::string& rest) {
      return Quoted(workload) + "," + Quoted(device) + "," + rest + "\n";
    };
    const std::string runs = folder.Write(
        "runs.csv", "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n" +
                        row("1,0,none,8,0.2," + Quoted("h1" + name)) +
                        row("1-1,0,ring,8,0.9," + Quoted("h1" + name + "+h2" + name)) +
                        row("1-1,0,ring,8,5.9," + Quoted("h1" + name + "+h3" + name)));
    const std::string page = folder.Path("report.html");
    const ProcessResult result =
        program::Stepcast({"report", "--cluster", cluster, "--runs", runs, "--workload-file", own,
                           "--output", page, "--prior", "flow_bandwidth=5 Gbit/s x/ 2; s" + name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadHtml(FileContent(page));
  };
  const auto plain = page_of("xxxx");
  for (const std::string name :
       {"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</td></table><h1>x</h1>",
        "&lt;b&gt;", "'><svg/onload=alert(1)>"}) {
    SCOPED_TRACE(name);
    const auto page = page_of(name);
    EXPECT_EQ(tags(page), tags(plain));
    EXPECT_EQ(HtmlNamed(page, "h1").front().text,
              "Calibration of c" + name + " from 3 runs of 1 workload");
    EXPECT_TRUE(Says(page, "h3" + name)) << "the slow host is named";
  }
}

// ---- evaluate --report.

TEST_F(ReportCli, EvaluateWritesOneToo) {
  const std::string page_file = folder_.Path("judged.html");
  const std::string runs = RunsWithSuspects(folder_);
  const Words evaluate = {"evaluate", "--cluster", "ufrgs-tupi", "--runs", runs};
  const Json with = JsonOf(evaluate + Words{"--report", page_file, "--group-by", "nodes"});
  EXPECT_EQ(with, JsonOf(evaluate + Words{"--group-by", "nodes"})) << "prints what it always does";
  const auto page = ReadHtml(FileContent(page_file));
  ExpectScores(page, evaluate, 0);
  ExpectRuns(TableOf(page, "All runs"), evaluate);
  EXPECT_EQ(TableOf(page, "Errors by nodes").rows.size(), with.at("groups").size() + 2);
  program::ExpectText(evaluate + Words{"--report", page_file}, {"written to " + page_file});
}

// Of many runs the worst are listed, and a plot has some of them.
TEST_F(ReportCli, ManyRunsStayReadable) {
  std::string rows = kHeader;
  constexpr int kRuns = 7000;
  std::set<std::string> far;
  for (int i = 0; i < kRuns; ++i) {
    const bool off = i % 250 == 100;  // 28 of them
    if (off) far.insert(FormatCount(i + 1));
    rows += fmt::format("resnet50,rtx_4090,1,0,none,128,{}\n", (off ? 50 : 0.2) + 0.00001 * i);
  }
  const std::string page_file = folder_.Path("judged.html");
  JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs", folder_.Write("many.csv", rows),
          "--report", page_file});
  const std::string text = FileContent(page_file);
  EXPECT_LT(text.size(), 2'000'000U);
  const auto page = ReadHtml(text);
  const HtmlTable table = TableOf(page, "The 30 runs of 7,000 that are farthest off");
  ASSERT_EQ(table.rows.size(), 31U);
  EXPECT_EQ(table.rows[1][0], "6,851");
  for (std::size_t i = 1; i <= far.size(); ++i) {
    EXPECT_EQ(far.count(table.rows[i][0]), 1U) << table.rows[i][0];
  }
  EXPECT_NE(text.find("resnet50: forecast and measurement of each run"), std::string::npos)
      << "all of them are of one workload on one device";
  EXPECT_NE(text.find("One of every 4 runs is shown."), std::string::npos);
}

// ---- What is refused.

TEST_F(ReportCli, Errors) {
  const std::string page = folder_.Path("report.html");
  const Words report = {"report", "--cluster", "ufrgs-tupi", "--runs", kFit};
  const Words to = {"--output", page};
  ExpectError(report, {"--output: is required; allowed: the page"});
  ExpectError(Words{"report"} + to, {"--cluster: is required"});
  ExpectError(Words{"report", "--cluster", "ufrgs-tupi"} + to, {"--runs: is required"});
  ExpectError(report + to + Words{"--fix", "foo=3"}, {"--fix: 'foo' is not a parameter"});
  ExpectError(report + to + Words{"--network", folder_.Path("none.json")}, {"none.json"});
  const std::string list = folder_.Write("list.json", "[1, 2]");
  ExpectError(report + to + Words{"--network", list}, {"list.json"});
  const std::string wrong =
      folder_.Write("wrong.csv", kHeader + "resnet50,rtx_4090,1,0,none,x,0.2\n");
  ExpectError(report + to + Words{"--judge", wrong},
              {"wrong.csv:2: local_batch: 'x'", "allowed: "});
  ExpectError(Words{"report", "--cluster", "ufrgs-tupi", "--runs", wrong} + to,
              {"wrong.csv:2: local_batch: 'x'"});
  const std::string stopped =
      folder_.Write("stopped.csv", kHeader + "resnet50,rtx_4090,1-1,0,ring,128,>30\n");
  ExpectError(report + to + Words{"--judge", stopped}, {"--judge: holds no run of which a step"});
  ExpectError(report + Words{"--output", folder_.Path("no/such/report.html")}, {"report.html"});
  ExpectError({"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFit, "--report",
               folder_.Path("no/such/report.html")},
              {"report.html"});
  ExpectError(report + to + Words{"stray"}, {"'stray' belongs to no option"});
  EXPECT_FALSE(std::filesystem::exists(page)) << "nothing that is wrong leaves a page";
}

// Forecasts over nodes reach to one node, and to more than were measured.
TEST_F(ReportCli, RunsOfSlowNodesAreAsGoodAsOthers) {
  const std::string page = folder_.Path("report.html");
  const std::string runs = folder_.Write(
      "slow.csv",
      "workload,device,placement,servers,strategy,local_batch,slow_nodes,slow_speed,step_time_s\n"
      "resnet50,rtx_4090,1-1,0,ring,128,1,0.625,1.5\n"
      "resnet50,rtx_4090,1-1-1,0,ring,128,1,0.625,1.8\n"
      "resnet50,rtx_4090,1-1-1-1,0,ring,128,1,0.625,2\n");
  JsonOf({"report", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", page});
  EXPECT_NE(FileContent(page).find("step time over nodes"), std::string::npos);
  // Where the slow one alone is left, its samples are the local batch.
  const std::string shares =
      folder_.Write("shares.csv",
                    "workload,device,placement,servers,strategy,local_batch,slow_nodes,slow_speed,"
                    "slow_local_batch,step_time_s\n"
                    "resnet50,rtx_4090,1-1,0,ring,128,1,0.625,80,1.1\n"
                    "resnet50,rtx_4090,1-1-1,0,ring,128,1,0.625,80,1.3\n"
                    "resnet50,rtx_4090,1-1-1-1,0,ring,128,1,0.625,80,1.5\n");
  JsonOf({"report", "--cluster", "ufrgs-tupi", "--runs", shares, "--output", page});
  EXPECT_NE(FileContent(page).find("step time over nodes"), std::string::npos);
}

// A run that was stopped has no step time to draw over its nodes.
TEST_F(ReportCli, RunsThatWereStoppedAreNotDrawn) {
  const auto drawn = [&](const std::string& third) {
    const std::string runs = folder_.Write("runs.csv", kHeader +
                                                           "resnet50,rtx_4090,1-1,0,ring,128,1.37\n"
                                                           "resnet50,rtx_4090,1-1,0,ring,128,1.4\n"
                                                           "resnet50,rtx_4090,1-1-1,0,ring,128," +
                                                           third + "\n");
    const std::string page = folder_.Path("report.html");
    JsonOf({"report", "--cluster", "ufrgs-tupi", "--runs", runs, "--output", page});
    return FileContent(page).find("step time over nodes") != std::string::npos;
  };
  EXPECT_TRUE(drawn("1.6"));
  EXPECT_FALSE(drawn(">1")) << "of two nodes alone nothing is known over nodes";
}

// Nor is it a point of any other plot.
TEST_F(ReportCli, PlotsHaveTheRunsOfWhichAStepIsKnown) {
  const std::string measured =
      kHeader + "resnet50,rtx_4090,1,0,none,128,0.2\nresnet50,rtx_4090,1-1,0,ring,128,1.4\n";
  const auto plots = [&](const std::string& stopped) {
    const std::string page_file = folder_.Path("judged.html");
    JsonOf({"evaluate", "--cluster", "ufrgs-tupi", "--runs",
            folder_.Write("runs.csv", measured + stopped), "--report", page_file});
    std::vector<std::string> texts;
    for (const HtmlElement& plot : HtmlNamed(ReadHtml(FileContent(page_file)), "desc")) {
      texts.push_back(plot.text);
      if (plot.text.find("resnet50: ") != std::string::npos) {
        EXPECT_NE(plot.text.find("resnet50: 2 points"), std::string::npos) << plot.text;
      }
    }
    return texts;
  };
  const std::vector<std::string> without = plots("");
  EXPECT_GT(without.size(), 2U);
  EXPECT_EQ(plots("resnet50,rtx_4090,1-1-1,0,ring,128,>5\n"), without);
}

// Plots say in words where they begin and end: errors in per cent, by the runs' workers.
TEST_F(ReportCli, PlotsHaveTheErrorsOfTheirRuns) {
  const std::string page_file = folder_.Path("judged.html");
  const Words evaluate = {"evaluate", "--cluster", "ufrgs-tupi", "--runs", kFit};
  const Json rows = JsonOf(evaluate + Words{"--rows", "--report", page_file}).at("rows");
  ASSERT_EQ(rows.size(), 3U);
  const auto error = [&](std::size_t row) {
    return FormatNumber(100 * (rows.at(row).at("predicted_step_time_s").get<double>() /
                                   rows.at(row).at("measured_step_time_s").get<double>() -
                               1));
  };
  // One machine alone comes first, a pair last.
  const std::string expected = fmt::format(
      "Predicted / measured - 1 (%) against Workers. resnet50: 3 points, from {} at 1 "
      "to {} at 2.",
      error(0), error(2));
  const auto plots = HtmlNamed(ReadHtml(FileContent(page_file)), "desc");
  EXPECT_TRUE(std::any_of(plots.begin(), plots.end(), [&](const HtmlElement& plot) {
    return plot.text == expected;
  })) << expected;
}

// Over nodes there is a forecast for each power of two, each number of nodes that was measured, and
// the whole cluster.
TEST_F(ReportCli, ForecastsOverNodesDoubleUpToTheWholeCluster) {
  const auto points = [&](int nodes) {
    const std::string cluster = folder_.Write(
        "big.yaml", fmt::format("name: big\ndevice: t4\nnodes: {}\ndevices_per_node: 1\n", nodes));
    const std::string page_file = folder_.Path("report.html");
    JsonOf({"report", "--cluster", cluster, "--runs",
            folder_.Write("runs.csv", kHeader + "resnet50,t4,1-1,0,ring,64,1.2\n"
                                                "resnet50,t4,1-1-1,0,ring,64,1.5\n"),
            "--output", page_file});
    for (const HtmlElement& plot : HtmlNamed(ReadHtml(FileContent(page_file)), "desc")) {
      const std::string begin = "Step time (s) against Nodes. 1 device a node: ";
      if (plot.text.rfind(begin, 0) == 0) return std::stoi(plot.text.substr(begin.size()));
    }
    return 0;
  };
  EXPECT_EQ(points(3), 3);   // 1, 2, 3
  EXPECT_EQ(points(16), 6);  // 1, 2, 3, 4, 8, 16
  EXPECT_EQ(points(20), 7);  // and 20
}

// Of as many workloads as there may be six have their next runs told, and the others are counted.
TEST_F(ReportCli, WorkloadsBeyondSixAreCounted) {
  const std::vector<std::string> workloads = {"resnet18",     "resnet50", "vgg16",
                                              "alexnet",      "vgg19",    "mobilenet_v2",
                                              "inception_v3", "mlp_mnist"};
  for (const std::size_t count : {std::size_t{1}, std::size_t{6}, std::size_t{8}}) {
    std::string rows = kHeader;
    for (std::size_t i = 0; i < count; ++i) rows += workloads[i] + ",rtx_4090,1,0,none,8,0.2\n";
    const auto sentences = HtmlNamed(PageOf(folder_.Write("runs.csv", rows)), "p");
    std::vector<std::string> told;
    for (const HtmlElement& p : sentences) {
      if (p.text.find("more workloads") != std::string::npos) told.push_back(p.text);
    }
    EXPECT_EQ(told, count == 8 ? Words{"Of 2 more workloads stepcast plan --workload tells the "
                                       "same."}
                               : Words())
        << count;
  }
}

// Of plans that differ in nodes alone those with the most numbers of nodes are drawn, and of as
// many those with the most runs.
TEST_F(ReportCli, TheLargestFamilyIsDrawnOverNodes) {
  const auto drawn = [&](const std::vector<std::pair<int, std::vector<int>>>& families) {
    std::string rows = kHeader;
    for (const auto& [batch, nodes] : families) {
      for (const int n : nodes) {
        rows += fmt::format("resnet50,rtx_4090,{},0,ring,{},{}\n",
                            fmt::join(std::vector<int>(static_cast<std::size_t>(n), 1), "-"), batch,
                            0.6 + 0.3 * n + 0.001 * batch);
      }
    }
    const std::string page_file = folder_.Path("report.html");
    JsonOf({"report", "--cluster", "ufrgs-tupi", "--runs", folder_.Write("runs.csv", rows),
            "--output", page_file});
    const std::string text = FileContent(page_file);
    int batch = 0;
    for (const auto& [of, nodes] : families) {
      if (text.find(fmt::format("intervals, ring, local batch {};", of)) == std::string::npos) {
        continue;
      }
      EXPECT_EQ(batch, 0) << "one of them";
      batch = of;
    }
    return batch;
  };
  // Whichever of the two the larger one is.
  for (const auto& [large, small] : {std::pair(64, 128), std::pair(128, 64)}) {
    EXPECT_EQ(drawn({{small, {2, 3}}, {large, {2, 3, 4}}}), large);
    EXPECT_EQ(drawn({{small, {2, 2, 2, 3}}, {large, {2, 3, 4}}}), large);
    EXPECT_EQ(drawn({{small, {2, 3}}, {large, {2, 3, 3}}}), large);
  }
}

// Of many suspects a hundred are listed, and the others counted.
TEST_F(ReportCli, SuspectsBeyondAHundredAreCounted) {
  std::string rows = kHeader;
  for (int i = 0; i < 130; ++i) rows += fmt::format("resnet50,rtx_4090,1-1,0,ring,128,{}\n", 1.3);
  for (int i = 0; i < 103; ++i) rows += fmt::format("resnet50,rtx_4090,1-1,0,ring,128,{}\n", 9.5);
  rows += "resnet50,rtx_4090,1,0,none,128,0.2\n";
  const std::string runs = folder_.Write("runs.csv", rows);
  const auto page = PageOf(runs);
  const Json fit = JsonOf({"calibrate", "--cluster", "ufrgs-tupi", "--runs", runs, "--output",
                           folder_.Path("fitted.yaml")});
  const std::size_t suspects = fit.at("suspects").size();
  ASSERT_GT(suspects, 100U);
  const auto items = HtmlNamed(page, "li");
  const auto listed = std::count_if(items.begin(), items.end(), [](const HtmlElement& item) {
    return item.text.find("the model says") != std::string::npos;
  });
  EXPECT_EQ(listed, 100);
  EXPECT_TRUE(
      Says(page, fmt::format("and {} more (stepcast calibrate --all shows them)", suspects - 100)));
}

TEST_F(ReportCli, AFitThatIsNotUsableIsANo) {
  const std::string page = folder_.Path("report.html");
  const std::string none =
      folder_.Write("none.csv", kHeader + "resnet50,rtx_4090,1-1,0,ring,128,>30\n");
  const Words report = {"report", "--cluster", "ufrgs-tupi", "--runs", none, "--output", page};
  const Json json = JsonOf(report, 1);
  EXPECT_EQ(json.at("usable"), false);
  EXPECT_TRUE(json.at("output").is_null());
  EXPECT_NE(json.at("message"), "");
  program::ExpectText(report, {json.at("message").get<std::string>()}, 1);
  EXPECT_FALSE(std::filesystem::exists(page));
}

}  // namespace
}  // namespace stepcast
