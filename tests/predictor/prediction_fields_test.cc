// What is written by hand beside the list of what a prediction tells names all of it.
#include "predictor/prediction_fields.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace stepcast {
namespace {

std::string ReadSource(const std::string& path) {
  std::ifstream file(STEPCAST_SOURCE_DIR "/" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Names {
  std::set<std::string> keys;    // of the whole: parts by themselves, and groups
  std::set<std::string> leaves;  // of all groups
};

Names NamesOfThePrediction() {
  Prediction prediction;
  prediction.server_times.emplace();
  prediction.server_phases.emplace();
  prediction.async_servers.emplace();
  prediction.work.emplace();
  Names names;
  const auto note = [&](const char* group, const char* name, const auto&) {
    names.keys.insert(group != nullptr ? group : name);
    if (group != nullptr) names.leaves.insert(name);
  };
  ForEachPredicted(prediction, note);
  ForEachCaveat(prediction, note);
  return names;
}

// From the line that begins with `begin` to the next that begins with `end`.
std::string Part(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find("\n" + begin);
  EXPECT_NE(at, std::string::npos) << begin;
  return at == std::string::npos ? "" : text.substr(at, text.find("\n" + end, at + 1) - at);
}

TEST(PredictionFields, PythonHasAPropertyForEach) {
  const std::string stub =
      Part(ReadSource("predictor/python/stepcast/_core.pyi"), "class Prediction:", "class ");
  for (const std::string& key : NamesOfThePrediction().keys) {
    EXPECT_NE(stub.find("def " + key + "(self)"), std::string::npos) << key;
  }
}

TEST(PredictionFields, OpenApiHasAPropertyForEach) {
  const std::string schema =
      Part(ReadSource("predictor/serve/openapi.yaml"), "    Prediction:", "    Problem:");
  for (const std::string& key : NamesOfThePrediction().keys) {
    EXPECT_NE(schema.find("\n        " + key + ":"), std::string::npos) << key;
  }
}

// The struct grows at its end alone; what C leaves to others is named here.
TEST(PredictionFields, CHasAMemberForEachPartOfTheStep) {
  const std::string header = ReadSource("predictor/capi/stepcast.h");
  const std::set<std::string> of_the_step = {"step_time_s",
                                             "low_s",
                                             "high_s",
                                             "log_sd",
                                             "p50_s",
                                             "p95_s",
                                             "p99_s",
                                             "forward_s",
                                             "backward_s",
                                             "update_s",
                                             "exposed_transfer_s",
                                             "exposed_latency_s",
                                             "straggler_wait_s",
                                             "coding_s",
                                             "input_wait_s",
                                             "synchronisation_s",
                                             "throughput_samples_per_s"};
  const Names names = NamesOfThePrediction();
  const std::string values = header.substr(0, header.find("} stepcast_prediction_values;"));
  for (const std::string& name : of_the_step) {
    EXPECT_TRUE(names.keys.count(name) + names.leaves.count(name) > 0) << name;
    EXPECT_NE(values.rfind("double " + name + ";"), std::string::npos) << name;
  }
  // A time of the step that is new is a member of the struct too.
  const auto expect = [&](const char* group, const char* name, const auto&) {
    const bool of_step =
        group == nullptr || group == std::string("breakdown") || group == std::string("quantiles");
    const std::string text = name;
    if (!of_step || !text.ends_with("_s")) return;
    EXPECT_EQ(of_the_step.count(text), 1U) << name;
  };
  ForEachPredicted(Prediction(), expect);
}

}  // namespace
}  // namespace stepcast
