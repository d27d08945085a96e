// The dashboards for Grafana: each asks for metrics that exist.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "predictor/serve/watch_metrics.h"
#include "tests/serve/support.h"

namespace stepcast::serve {
namespace {

TestJson ReadDashboard(const std::string& name) {
  std::ifstream in(DataFile("dashboards/" + name + ".json"));
  EXPECT_TRUE(in) << name;
  return TestJson::parse(in, nullptr, false);
}

// The names in a text of Prometheus: of its samples, as a query would ask for them.
std::set<std::string> SamplesOf(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find_first_of("{ ")));
  }
  return names;
}

// Every text below `key`, however deep.
void TextsOf(const TestJson& json, const std::string& key, std::string* texts) {
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (json.is_object() && entry.key() == key && entry->is_string()) {
      *texts += entry->get<std::string>() + "\n";
    } else if (entry->is_structured()) {
      TextsOf(*entry, key, texts);
    }
  }
}

void ExpectKnown(const std::string& name, const std::string& text) {
  const TestJson dashboard = ReadDashboard(name);
  ASSERT_TRUE(dashboard.is_object()) << name;
  std::string asked;
  TextsOf(dashboard, "expr", &asked);
  TextsOf(dashboard, "query", &asked);
  const std::set<std::string> known = SamplesOf(text);
  const std::regex metric("stepcast_[a-z_]+");
  int metrics = 0;
  for (std::sregex_iterator at(asked.begin(), asked.end(), metric), end; at != end; ++at) {
    EXPECT_EQ(known.count(at->str()), 1u) << name << " asks for " << at->str();
    ++metrics;
  }
  EXPECT_GE(metrics, static_cast<int>(dashboard.at("panels").size())) << name;
}

TEST(Dashboards, AskForMetricsOfTheServiceThatExist) {
  TestService test;
  test.metrics.Answered("/v1/predict", "200", 0.001);
  ExpectKnown("serve", test.Get("/metrics").body);
}

TEST(Dashboards, AskForMetricsOfAWatchedJobThatExist) {
  WatchMetrics watched;
  watched.numbers = 1;
  TestService test;
  test.metrics.AlsoTell([&] { return watched.Text(); });
  ExpectKnown("watch", test.Get("/metrics").body);
}

// Before the first step there is none to tell of; causes are there from the start, so that a rate
// sees the first.
TEST(WatchMetricsText, TellsWhatThereIs) {
  WatchMetrics watched;
  watched.forecast_s = 0.25;
  EXPECT_EQ(SamplesOf(watched.Text()).count("stepcast_watch_step_seconds"), 0u);
  EXPECT_NE(watched.Text().find("stepcast_watch_drifts_total{cause=\"network\"} 0\n"),
            std::string::npos);
  watched.numbers = 3;
  watched.measured_s = 0.5;
  watched.drifts["network"] = 2;
  watched.drifts["compute or network"] = 1;
  const std::string text = watched.Text();
  for (const char* line :
       {"stepcast_watch_step_seconds 0.5\n", "stepcast_watch_forecast_step_seconds 0.25\n",
        "stepcast_watch_numbers_total 3\n", "stepcast_watch_drifts_total{cause=\"node\"} 0\n",
        "stepcast_watch_drifts_total{cause=\"network\"} 2\n",
        "stepcast_watch_drifts_total{cause=\"compute or network\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text << "lacks " << line;
  }
  EXPECT_EQ(text.find("cause=\"network\"} 0"), std::string::npos);
}

TEST(WatchMetricsText, EachNumberIsItsOwn) {
  WatchMetrics watched;
  watched.measured_s = 1.5;
  watched.predicted_s = 2.5;
  watched.forecast_s = 3.5;
  watched.low_s = 4.5;
  watched.high_s = 5.5;
  watched.learnt_s = 6.5;
  watched.steps = 17;
  watched.seconds = 18.5;
  watched.inside = 19;
  watched.numbers = 20;
  watched.warm_up = 21;
  watched.validation = 22;
  const std::string text = watched.Text();
  for (const char* line :
       {"step_seconds 1.5", "expected_step_seconds 2.5", "forecast_step_seconds 3.5",
        "forecast_low_seconds 4.5", "forecast_high_seconds 5.5", "learnt_step_seconds 6.5",
        "steps_total 17", "steps_seconds_total 18.5", "inside_total 19", "numbers_total 20",
        "warm_up_total 21", "validation_lines_total 22"}) {
    EXPECT_NE(text.find("\nstepcast_watch_" + std::string(line) + "\n"), std::string::npos)
        << text << "lacks " << line;
  }
}

}  // namespace
}  // namespace stepcast::serve
