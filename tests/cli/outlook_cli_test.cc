// Limits, servers, money and jobs, as the command line tells them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectText;
using program::Json;
using program::JsonOf;
using program::Stepcast;
using program::Words;
using program::operator+;

const Words kPredict = {"predict",       "--cluster", "ec2-g3-ps", "--workload", "vgg16",
                        "--local-batch", "32",        "--workers", "8"};
const Words kServers = kPredict + Words{"--strategy", "ps-sync", "--servers", "2"};
const Words kAsync = kPredict + Words{"--strategy", "ps-async", "--servers", "2"};

// Seconds as an option's value, exact to the last digit.
std::string SecondsText(double seconds) { return Json(seconds).dump() + " s"; }

TEST(OutlookCli, AStepThatDoesNotFinishIsAnswerNo) {
  const Json plain = JsonOf(kServers);
  EXPECT_FALSE(plain.contains("finishes_within_limit"));
  const double low = plain.at("low_s");
  const double step = plain.at("step_time_s");
  const Words above = kServers + Words{"--time-limit", SecondsText(0.9 * low)};
  const Json no = JsonOf(above, 1);
  EXPECT_EQ(no.at("finishes_within_limit"), false);
  EXPECT_LT(no.at("finishes_probability"), 0.05);
  EXPECT_EQ(no.at("step_time_s"), plain.at("step_time_s"));
  ExpectText(above, {"step        does not finish within"}, 1);
  const Words even = kServers + Words{"--time-limit", SecondsText(step)};
  const Json yes = JsonOf(even);
  EXPECT_EQ(yes.at("finishes_within_limit"), true);
  EXPECT_NEAR(yes.at("finishes_probability").get<double>(), 0.5, 1e-6);
  ExpectText(even, {"finishes within", "probability 50 %"});
  EXPECT_GT(JsonOf(kServers + Words{"--time-limit", "1 d"}).at("finishes_probability"), 0.999);
}

// Near its ends a probability is told as a bound, and else as it is.
TEST(OutlookCli, AProbabilityIsToldAsItIsOrAsABound) {
  const double step = JsonOf(kServers).at("step_time_s");
  int below = 0;
  int above = 0;
  for (const double factor : {0.05, 0.5, 0.7, 1.2, 3.0, 100.0}) {
    const Words words = kServers + Words{"--time-limit", SecondsText(factor * step)};
    const Json json = Json::parse(Stepcast(words + Words{"--json"}).out);
    const double probability = json.at("finishes_probability");
    below += probability < 0.001 ? 1 : 0;
    above += probability > 0.999 ? 1 : 0;
    const std::string said = probability < 0.001   ? "under 0.1 %"
                             : probability > 0.999 ? "over 99.9 %"
                                                   : FormatPercent(probability);
    const std::string text = Stepcast(words).out;
    EXPECT_NE(text.find(": probability " + said + "\n"), std::string::npos) << said << "\n" << text;
  }
  EXPECT_EQ(below, 1);
  EXPECT_EQ(above, 1);
}

TEST(OutlookCli, SynchronousServersTellTheirPhases) {
  const Json json = JsonOf(kServers);
  const Json& phases = json.at("server_phases");
  for (const char* key : {"multicast_saves_s", "in_network_aggregation_saves_s"}) {
    EXPECT_GE(phases.at(key), 0);
    EXPECT_GE(phases.at("both_save_s"), phases.at(key));
  }
  EXPECT_GT(phases.at("remaining_distribution_s"), 0);
  EXPECT_EQ(json.at("largest_shard").at("layer"), "fc1");
  EXPECT_EQ(json.at("largest_shard").at("one_tensor"), true);
  EXPECT_FALSE(json.contains("async_servers"));
  ExpectText(kServers, {"after the backward pass, distribution", "multicast saves",
                        "the tensor of fc1 puts 74.3 % of the model on one server",
                        "half the steps within", "99 % within"});
}

TEST(OutlookCli, AsynchronousServersTellTheirQueues) {
  const Json json = JsonOf(kAsync);
  const Json& queues = json.at("async_servers");
  EXPECT_NEAR(queues.at("updates_per_s").get<double>() * json.at("step_time_s").get<double>(), 8,
              0.04);
  EXPECT_EQ(queues.at("mean_staleness"), 7);
  for (const char* key :
       {"server_link_busy", "server_processor_busy", "server_update_busy", "worker_link_busy"}) {
    EXPECT_GT(queues.at(key), 0);
    EXPECT_LE(queues.at(key), 1);
  }
  EXPECT_FALSE(json.contains("server_phases"));
  ExpectText(kAsync, {"updates by others, give or take", "fullest server: link"});
}

TEST(OutlookCli, AutoSaysWhatItChoseAndWhy) {
  const Words arguments = {"predict", "--cluster", "gce-t4", "--workload", "vgg19", "--local-batch",
                           "32",      "--workers", "8",      "--strategy", "auto"};
  const Json json = JsonOf(arguments);
  const std::string chosen = json.at("algorithm");
  EXPECT_NE(chosen, "auto");
  EXPECT_FALSE(json.at("algorithm_reason").get<std::string>().empty());
  ExpectText(arguments, {"algorithm   " + chosen});
}

TEST(OutlookCli, MoneyAndEnergyOfAStep) {
  const Json json = JsonOf(kServers);
  const double step = json.at("step_time_s");
  const Json& spending = json.at("spending");
  EXPECT_NEAR(spending.at("price_usd").get<double>(), 8 * 1.14 / 3600 * step, 1e-9);
  EXPECT_EQ(spending.at("servers_priced"), false);
  EXPECT_NEAR(spending.at("energy_j").get<double>(), 8 * 150 * step, 1e-6);
  EXPECT_EQ(spending.at("energy_at_most"), true);

  // Where a busy and an idle power are known, the answer is no bound.
  const Words tupi = {"predict",       "--cluster", "ufrgs-tupi", "--workload", "resnet50",
                      "--local-batch", "128",       "--workers",  "2"};
  EXPECT_EQ(JsonOf(tupi).at("spending").at("energy_at_most"), false);
  EXPECT_EQ(JsonOf(tupi).at("spending").at("device_busy_w"), 349);
  ExpectText(tupi, {" a step (devices alone)"});

  const TempFolder folder;
  const Words with = {"predict",
                      "--cluster",
                      folder.Write("lab.yaml",
                                   "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n"
                                   "power: {device: 70 W, device_idle: 30 W, node: 200 W}\n"),
                      "--workload",
                      "resnet50",
                      "--local-batch",
                      "32",
                      "--workers",
                      "2"};
  const Json lab = JsonOf(with);
  double compute = 0;
  for (const char* part : {"forward_s", "backward_s", "update_s"}) {
    compute += lab.at("breakdown").at(part).get<double>();
  }
  EXPECT_NEAR(lab.at("spending").at("energy_j").get<double>(),
              2 * 40 * compute + 2 * 230 * lab.at("step_time_s").get<double>(), 1e-9);
  EXPECT_EQ(lab.at("spending").at("energy_at_most"), false);
  EXPECT_EQ(lab.at("spending").at("price_usd"), nullptr);
}

TEST(OutlookCli, AJobIsToldWhenAskedFor) {
  EXPECT_FALSE(JsonOf(kServers).contains("outlook"));
  const Words asked = kServers + Words{"--data-set",     "1281167", "--noise-scale",     "8000",
                                       "--known-batch",  "256",     "--least-steps",     "14000",
                                       "--node-mtbf",    "60 d",    "--checkpoint-time", "20 s",
                                       "--restart-time", "5 min",   "--device-mtbf",     "400 d"};
  const Json json = JsonOf(asked);
  const double step = json.at("step_time_s");
  const Json& job = json.at("outlook");
  EXPECT_EQ(job.at("update_batch"), 256);
  EXPECT_NEAR(job.at("statistical_efficiency").get<double>(), 1, 1e-12);
  EXPECT_NEAR(job.at("epoch").at("time_s").get<double>(), 1281167.0 / 256 * step, 1e-6);
  EXPECT_NEAR(job.at("target").at("updates").get<double>(), 14000 * (1 + 8000.0 / 256), 1e-6);
  const Json& failures = job.at("failures");
  // Ten nodes and eight devices.
  EXPECT_NEAR(failures.at("between_failures_s").get<double>(), 86400 / (10 / 60.0 + 8 / 400.0),
              1e-6);
  EXPECT_GT(failures.at("slowdown"), 1);
  EXPECT_EQ(failures.at("at_least"), false);
  EXPECT_NEAR(failures.at("worker_loss").at("stall_s").get<double>(), 300 + step / 2, 1e-9);
  ExpectText(asked, {"epoch ", "goodput ", "target ", "failures ", "Daly; Young", "a lost chief"});
  ExpectError(kServers + Words{"--noise-scale", "8000"}, {"--noise-scale", "--known-batch"});
  ExpectError(kServers + Words{"--node-mtbf", "60 d"}, {"--node-mtbf", "--checkpoint-time"});
  ExpectError(kServers + Words{"--time-limit", "30"}, {"--time-limit: '30' has no unit"});
  ExpectError(kServers + Words{"--data-set", "many"}, {"--data-set: 'many' is not a whole number"});
}

// What stale updates, local steps and compression cost in samples nobody derives.
TEST(OutlookCli, SamplesThatMayBeWorthLessAreBounds) {
  const Words job = {"--noise-scale", "8000",    "--known-batch", "256",
                     "--data-set",    "1281167", "--least-steps", "14000"};
  const Words ring = kPredict + Words{"--strategy", "ring"} + job;
  const auto text_of = [](const Words& arguments) {
    std::string text;
    std::istringstream words(Stepcast(arguments).out);
    for (std::string word; words >> word;) text += word + " ";
    return text;
  };
  const auto says = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string exact = text_of(ring);
  EXPECT_FALSE(says(exact, "goodput at most ")) << exact;
  EXPECT_FALSE(says(exact, "target at least ")) << exact;
  EXPECT_FALSE(says(exact, "not counted")) << exact;
  EXPECT_EQ(JsonOf(ring).at("outlook").at("not_counted"), Json::array());
  const struct {
    Words plan;
    std::vector<std::string> costs;
    const char* sentence;
  } cases[] = {
      {kAsync + job, {"stale updates"}, "what stale updates cost in samples is not counted"},
      {ring + Words{"--local-steps", "8"},
       {"local steps"},
       "what local steps cost in samples is not counted"},
      {ring + Words{"--compress", "int8"},
       {"compressed gradients"},
       "what compressed gradients cost in samples is not counted"}};
  for (const auto& bound : cases) {
    const std::string text = text_of(bound.plan);
    EXPECT_TRUE(says(text, "goodput at most ")) << text;
    EXPECT_TRUE(says(text, "target at least ")) << text;
    EXPECT_FALSE(says(text, "epoch at ")) << text;
    EXPECT_TRUE(says(text, bound.sentence)) << text;
    EXPECT_EQ(JsonOf(bound.plan).at("outlook").at("not_counted"), Json(bound.costs));
  }
  // Energy of devices that count as busy is a bound from above, and that of such a target neither.
  EXPECT_TRUE(says(text_of(cases[1].plan), "with devices busy throughout"));
}

TEST(OutlookCli, RecommendSaysThatCompressionCostsSamples) {
  const Words base = {"recommend",
                      "--device",
                      "v100",
                      "--workload",
                      "vgg16",
                      "--workers",
                      "8",
                      "--local-batch",
                      "16",
                      "--bandwidth",
                      "1 Gbit/s",
                      "--try-compress",
                      "none,topk=0.001"};
  const Words goodput = {"--objective", "goodput", "--noise-scale", "8000", "--known-batch", "128"};
  ExpectText(base + goodput, {"Expected gain: at most ", "Its goodput is at most ",
                              "What compressed gradients cost in samples is not counted"});
  const Json json = JsonOf(base + goodput);
  EXPECT_EQ(json.at("best").at("not_counted"), Json(Words{"compressed gradients"}));
  EXPECT_EQ(json.at("baseline").at("not_counted"), Json::array());
  // Both have it: the one gain may be either way off.
  const Words both = base + goodput + Words{"--compress", "int8"};
  ExpectText(both, {"Its goodput is at most ", "not counted"});
  EXPECT_EQ(Stepcast(both).out.find("Expected gain: at "), std::string::npos);
  // The plan as given alone has it: its goodput may be less, and the gain more.
  const Words whole = {
      "recommend", "--device",        "v100",    "--workload",     "vgg16",    "--workers",
      "8",         "--local-batch",   "16",      "--bandwidth",    "1 Gbit/s", "--compress",
      "int8",      "--compress-rate", "10 MB/s", "--try-compress", "none"};
  ExpectText(whole + goodput, {"Expected gain: at least ", "Its goodput is ", "not counted"});
  EXPECT_EQ(Stepcast(whole + goodput).out.find("Its goodput is at most"), std::string::npos);
  // Samples a second are what they are.
  EXPECT_EQ(Stepcast(base).out.find("gain: at most"), std::string::npos);
  EXPECT_EQ(Stepcast(base).out.find("not counted"), std::string::npos);
}

TEST(OutlookCli, ALostShareOfTheModelTakesAllBack) {
  const Words sharded = {
      "predict", "--cluster",      "gce-t4", "--workload",  "resnet50", "--local-batch",
      "32",      "--workers",      "4",      "--node-mtbf", "60 d",     "--checkpoint-time",
      "1 min",   "--restart-time", "5 min",  "--shard",     "optimizer"};
  // Without the breaks of lines.
  std::string text;
  std::istringstream words(Stepcast(sharded).out);
  for (std::string word; words >> word;) text += word + " ";
  EXPECT_NE(
      text.find("a lost worker, whose share of the model nobody else has, costs all workers "),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(": all begin again at the last checkpoint"), std::string::npos) << text;
  EXPECT_EQ(text.find("replaced in place"), std::string::npos) << text;
  EXPECT_TRUE(JsonOf(sharded).at("outlook").at("failures").at("worker_loss").is_null());
}

// Where each node has the whole model a worker is replaced in place.
TEST(OutlookCli, ANodeThatHasTheWholeModelGivesAShareBack) {
  const Words hybrid = {
      "predict", "--cluster",      "gce-t4", "--workload",  "resnet50", "--local-batch",
      "32",      "--placement",    "2-2",    "--node-mtbf", "60 d",     "--checkpoint-time",
      "1 min",   "--restart-time", "5 min",  "--shard",     "hybrid"};
  std::string text;
  std::istringstream words(Stepcast(hybrid).out);
  for (std::string word; words >> word;) text += word + " ";
  EXPECT_NE(text.find("parameters shared out within nodes"), std::string::npos) << text;
  EXPECT_NE(text.find("a lost chief costs all workers "), std::string::npos) << text;
  EXPECT_NE(text.find("replaced in place"), std::string::npos) << text;
  EXPECT_NE(text.find("hidden behind both passes and itself"), std::string::npos) << text;
  EXPECT_EQ(JsonOf(hybrid).at("plan").at("shard"), "hybrid");
}

TEST(OutlookCli, RecommendTakesAnObjective) {
  const Words base = {
      "recommend",     "--cluster", "aws-g4dn-12xlarge", "--workload", "resnet50",
      "--local-batch", "64",        "--workers",         "16",         "--try-workers",
      "4,16,32"};
  const Words noise = {"--noise-scale", "1000", "--known-batch", "256"};
  const Json fastest = JsonOf(base);
  EXPECT_EQ(fastest.at("objective"), "throughput");
  EXPECT_EQ(fastest.at("objective_gain"), fastest.at("gain"));
  const Json goodput = JsonOf(base + noise + Words{"--objective", "goodput"});
  // Who tells what a sample is worth asks for it, and may say otherwise.
  EXPECT_EQ(JsonOf(base + noise), goodput);
  EXPECT_EQ(JsonOf(base + noise + Words{"--objective", "throughput"}).at("objective"),
            "throughput");
  const Json& best = goodput.at("best");
  EXPECT_NEAR(best.at("goodput_samples_per_s").get<double>(),
              best.at("throughput_samples_per_s").get<double>() *
                  best.at("statistical_efficiency").get<double>(),
              1e-6);
  // Its interval is that of the step, upside down.
  const double step = best.at("step_time_s").get<double>();
  const double worth = best.at("goodput_samples_per_s").get<double>();
  EXPECT_NEAR(best.at("goodput_low_samples_per_s").get<double>(),
              worth * step / best.at("high_s").get<double>(), 1e-9 * worth);
  EXPECT_NEAR(best.at("goodput_high_samples_per_s").get<double>(),
              worth * step / best.at("low_s").get<double>(), 1e-9 * worth);
  ExpectText(base + noise + Words{"--objective", "goodput"}, {"Its goodput is ", "90 % interval"});
  for (const Json& other : goodput.at("pareto")) {
    EXPECT_LE(other.at("goodput_samples_per_s"), best.at("goodput_samples_per_s"));
  }
  EXPECT_LT(best.at("plan").at("global_batch"), fastest.at("best").at("plan").at("global_batch"));
  const Json cheap = JsonOf(base + Words{"--objective", "price"});
  EXPECT_LT(cheap.at("best").at("plan").at("workers"), fastest.at("best").at("plan").at("workers"));
  EXPECT_GT(cheap.at("best").at("samples_per_usd"), 0);
  const Words energy = base + Words{"--objective", "energy"};
  const double per_kj = 1e3 * JsonOf(energy).at("best").at("samples_per_j").get<double>();
  ExpectText(energy, {"samples per kJ", "workers", " " + FormatNumber(per_kj) + "\n"});
  std::istringstream lines(Stepcast(energy).out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
  ExpectError(base + Words{"--objective", "goodput"}, {"--objective", "--noise-scale"});
  ExpectError(base + Words{"--objective", "speed"}, {"throughput, goodput, price, energy"});
}

}  // namespace
}  // namespace stepcast
