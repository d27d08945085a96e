// What commands say in words: each sentence where it is due, and nowhere else, and the numbers of
// texts and tables beside those that the same command prints as JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/machines.h"
#include "data/workloads/catalog.h"
#include "predictor/predictor.h"
#include "predictor/report/terminal.h"
#include "predictor/shared_link.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"
#include "tests/support/wrong_points.h"

namespace stepcast {
namespace {

using program::ExpectError;
using program::ExpectText;
using program::ExpectTold;
using program::Json;
using program::JsonOf;
using program::RowOf;
using program::Stepcast;
using program::Telling;
using program::Unwrapped;
using program::Words;
using program::operator+;

const std::string kData = std::string(STEPCAST_SOURCE_DIR) + "/data";
const std::string kRunsHeader =
    "workload,device,placement,servers,strategy,local_batch,step_time_s\n";

std::string Time(const Json& seconds) { return FormatDuration(Seconds(seconds.get<double>())); }
std::string Percent(const Json& share) { return FormatPercent(share.get<double>()); }
std::string Rate(const Json& per_s) {
  return FormatThroughput(Samples(per_s.get<double>()) / Seconds(1.0));
}

// A command of eight samples on each of `workers` T4s, four to a node.
Words OnT4s(const char* command, const char* workload, const char* workers) {
  return {command,     "--cluster", "gce-t4",        "--workload", workload,
          "--workers", workers,     "--local-batch", "8"};
}

// ---- predict.

TEST(PredictSays, TheNumbersOfItsJson) {
  const struct {
    Words plan;
    const char* hidden;  // behind what synchronisation is
    bool coding = false;
    bool input = false;
  } cases[] = {
      {OnT4s("predict", "resnet50", "1"), ""},
      {OnT4s("predict", "resnet50", "16"), "the backward pass"},
      {OnT4s("predict", "resnet50", "16") +
           Words{"--compress", "fp16", "--compress-rate", "1 Gbit/s"},
       "the backward pass", true},
      {OnT4s("predict", "resnet50", "8") + Words{"--input-rate", "100 samples/s"},
       "the backward pass", false, true},
      {OnT4s("predict", "resnet50", "8") + Words{"--shard", "optimizer"}, "the backward pass"},
      {OnT4s("predict", "resnet50", "8") + Words{"--shard", "parameters"}, "both passes"},
      {OnT4s("predict", "resnet50", "8") + Words{"--shard", "hybrid"}, "both passes and itself"},
  };
  for (const auto& c : cases) {
    const Json json = JsonOf(c.plan);
    const std::string text = Stepcast(c.plan).out;
    SCOPED_TRACE(text);
    const Json& parts = json.at("breakdown");
    const double step = json.at("step_time_s");
    // A row of the bar: its swatch, unless there is nothing of it, its name, time and share.
    const auto expect_part = [&](const std::string& label, const char* key) {
      const double part = parts.at(key);
      const std::string share =
          part > 0 && part / step < 0.0005 ? "<0.1 %" : fmt::format("{:.1f} %", 100 * part / step);
      const std::string row = " " + label + " " + Time(part) + " " + share + " ";
      EXPECT_NE(Unwrapped(text).find(row), std::string::npos) << row;
    };
    expect_part("forward", "forward_s");
    expect_part("backward", "backward_s");
    expect_part("update", "update_s");
    expect_part("exposed transfer", "exposed_transfer_s");
    expect_part("exposed latency", "exposed_latency_s");
    expect_part("waiting for stragglers", "straggler_wait_s");
    EXPECT_EQ(text.find(" coding ") != std::string::npos, c.coding);
    if (c.coding) expect_part("coding", "coding_s");
    EXPECT_EQ(text.find(" waiting for input ") != std::string::npos, c.input);
    if (c.input) expect_part("waiting for input", "input_wait_s");

    const auto says = [&](const std::string& line) {
      EXPECT_NE(Unwrapped(text).find(line), std::string::npos) << line;
    };
    says(" idle " + Percent(json.at("idle_ratio")) + " of the step ");
    says(" binding " + json.at("binding").at("sentence").get<std::string>());
    const double synchronisation = json.at("synchronisation_s");
    const double shown = parts.at("exposed_transfer_s").get<double>() +
                         parts.at("exposed_latency_s").get<double>() + parts.value("coding_s", 0.0);
    if (*c.hidden == '\0') {
      EXPECT_EQ(text.find("of synchronisation"), std::string::npos);
      EXPECT_EQ(text.find("link busy"), std::string::npos);
      says(" traffic none ");
    } else {
      says(Time(synchronisation) + " of synchronisation, " + Time(synchronisation - shown) +
           " of it hidden behind ");
      EXPECT_NE(text.find(" of it hidden behind " + std::string(c.hidden) + "\n"),
                std::string::npos);
    }
    const Json& memory = json.at("memory");
    says(" memory about " + FormatSize(Bytes(memory.at("total_bytes").get<double>())) + " of " +
         FormatSize(Bytes(memory.at("available_bytes").get<double>())) + ": " +
         memory.at("verdict").get<std::string>());
  }
}

// What is busy are the nodes' links, or the uplinks of their switches where these are slower.
TEST(PredictSays, HowBusyItsLinksAre) {
  const Cluster cluster = ReadCluster(kData + "/machines/gce-t4.yaml");
  const Predictor predictor(cluster, *FindWorkload("resnet50"),
                            FindDevice(ReadDevices(kData + "/machines/gpus.yaml"), "t4"), "t4");
  for (const bool uplinks : {false, true}) {
    Plan plan;
    plan.placement = {4, 4, 4, 4};
    plan.local_batch = 8;
    plan.link.bandwidth = GigabitsPerSecond(10.0);
    Words words = OnT4s("predict", "resnet50", "16") + Words{"--bandwidth", "10 Gbit/s"};
    if (uplinks) {
      plan.link.oversubscription = 8;
      plan.link.nodes_per_switch = 2;
      words = words + Words{"--oversubscription", "8", "--nodes-per-switch", "2"};
    }
    const BusyLink busy = LinkBusy(predictor, plan);
    EXPECT_EQ(busy.is_core, uplinks);
    const std::string share = FormatPercent(busy.share);
    const std::string of_links = "link busy " + share + " of the step, if it has it to itself";
    const std::string of_uplinks =
        "core busy " + share + " of the step, if it has the uplinks to itself";
    ExpectTold({{words, {uplinks ? of_uplinks : of_links}, {uplinks ? "link busy" : "core busy"}}});
  }
}

// Without layers activations are unknown; but where as large a batch has run there is room for it.
TEST(PredictSays, WhatIsKnownOfTheMemoryOfABareModel) {
  const TempFolder folder;
  const std::string model = folder.Write("m.yaml", "name: bare\nparameters: 100000000\n");
  const std::string fitted = folder.Path("fitted.yaml");
  JsonOf({"calibrate", "--cluster", "gce-t4", "--workload-file", model, "--output", fitted,
          "--runs",
          folder.Write("runs.csv", kRunsHeader + "bare,t4,1,0,none,8,0.2\n"
                                                 "bare,t4,1-1,0,ring,8,0.5\n")});
  for (const char* batch : {"8", "16"}) {
    const Words words = {"predict", "--cluster", fitted, "--workload-file", model, "--workload",
                         "bare",    "--workers", "2",    "--local-batch",   batch};
    const std::string least =
        "memory at least " +
        FormatSize(Bytes(JsonOf(words).at("memory").at("total_bytes").get<double>())) +
        ": activations are unknown without layers";
    const bool has_run = *batch == '8';
    ExpectTold({{words,
                 {has_run ? least + ", but as large a batch has run " : least},
                 has_run ? Words() : Words{"as large a batch"}}});
  }
}

// Who could take turns loses nothing by it; who sends more than all of the time cannot.
TEST(PredictSays, WhatJobsOnTheSameLinksCouldDo) {
  const TempFolder folder;
  const std::string header = "workload,device,placement,hosts,servers,strategy,local_batch\n";
  const std::string met = "vgg16,t4,1-1,a+b,0,ring,16\n";
  const Words base = {"predict", "--cluster",   "gce-t4", "--workload",    "vgg16", "--hosts",
                      "a+e",     "--placement", "1-1",    "--local-batch", "32",    "--bandwidth"};
  const std::string taking_turns = "If the jobs took turns, none would lose anything: together";
  const std::string no_turns = "Taking turns would not do: alone they would send";
  const std::string drift = "Steps are taken to drift against each other.";
  const struct {
    const char* bandwidth;
    std::string others;
    const char* apart;
  } cases[] = {
      {"100 Gbit/s", met, ""},
      {"1 Gbit/s", met, ""},
      {"1 Gbit/s", met + "vgg16,t4,1-1,c+d,0,ring,16\n",
       "1 of the 3 jobs has no link in common with another."},
      {"100 Gbit/s", met + "vgg16,t4,1-1,c+d,0,ring,16\nvgg16,t4,1-1,f+g,0,ring,16\n",
       "2 of the 4 jobs have no link in common with another."},
  };
  for (const auto& c : cases) {
    const Words words =
        base + Words{c.bandwidth, "--beside", folder.Write("others.csv", header + c.others)};
    // Those two alone meet: each has the other's share beside its own.
    const Json beside = JsonOf(words).at("beside");
    const double together =
        beside.at(0).at("link_busy").get<double>() + beside.at(1).at("link_busy").get<double>();
    const bool turns = together <= 1;
    EXPECT_EQ(turns, std::string(c.bandwidth) == "100 Gbit/s");
    Telling said = {words,
                    {drift, (turns ? taking_turns + " they send " : no_turns + " ") +
                                FormatPercent(together) + " of the time."},
                    {turns ? no_turns : taking_turns, "jobs on links of their own"}};
    (*c.apart == '\0' ? said.keeps_back : said.says)
        .emplace_back(*c.apart == '\0' ? "in common" : c.apart);
    ExpectTold({said});
    for (std::size_t i = 0; i < beside.size(); ++i) {
      EXPECT_EQ(beside.at(i).at("workload"), "vgg16");
      EXPECT_EQ(beside.at(i).at("others").get<double>() > 0, i < 2) << "who meets nobody";
    }
  }
}

// ---- recommend.

TEST(RecommendSays, TheRowsOfItsTable) {
  const Words words = {"recommend",
                       "--cluster",
                       "aws-g4dn-12xlarge",
                       "--workload",
                       "resnet50",
                       "--local-batch",
                       "64",
                       "--workers",
                       "8",
                       "--strategy",
                       "ring",
                       "--try-strategy",
                       "ring,tree",
                       "--try-workers",
                       "8,16",
                       "--try-compress",
                       "none,fp16",
                       "--try-bucket",
                       "25 MiB,50 MiB",
                       "--objective",
                       "goodput",
                       "--noise-scale",
                       "1000",
                       "--known-batch",
                       "256"};
  const Json json = JsonOf(words);
  const std::string text = Stepcast(words).out;
  const auto expect_row = [&](const std::string& name, const Json& r) {
    const Json& plan = r.at("plan");
    const bool given = name == "as given";
    EXPECT_EQ(RowOf(text, name),
              (Words{name, plan.at("workers").dump(), given ? "default" : "25 MiB",
                     given ? "none" : "fp16",
                     fmt::format("{} x {}", plan.at("local_batch").dump(),
                                 plan.at("accumulation_steps").dump()),
                     FormatCount(plan.at("global_batch").get<double>()), Time(r.at("step_time_s")),
                     Rate(r.at("throughput_samples_per_s")), Percent(r.at("efficiency")),
                     Rate(r.at("goodput_samples_per_s"))}))
        << text;
  };
  // Strategies and servers are alike, and so have no column.
  EXPECT_NE(Unwrapped(text).find(" workers bucket compressed batch global batch step throughput "
                                 "efficiency goodput "),
            std::string::npos)
      << text;
  ASSERT_EQ(json.at("best").at("plan").at("compress"), "fp16");
  expect_row("as given", json.at("baseline"));
  expect_row("recommended", json.at("best"));
  expect_row("or", json.at("pareto").at(0));
  const Json& best = json.at("best");
  for (const std::string& said :
       {"Expected gain: at most " + FormatFactor(json.at("objective_gain").get<double>()) +
            " the goodput of the plan as given.",
        "What keeps it from being better: " + json.at("binding_constraint").get<std::string>() +
            ".",
        "Its goodput is at most " + Rate(best.at("goodput_samples_per_s")) + " (90 % interval " +
            Rate(best.at("goodput_low_samples_per_s")) + " to " +
            Rate(best.at("goodput_high_samples_per_s")) + ")."}) {
    EXPECT_NE(Unwrapped(text).find(said), std::string::npos) << said << "\n" << text;
  }
}

// Those of `all` that `others` do not have.
Words Beyond(const Words& all, const Words& others) {
  Words beyond;
  std::copy_if(all.begin(), all.end(), std::back_inserter(beyond), [&](const std::string& one) {
    return std::find(others.begin(), others.end(), one) == others.end();
  });
  return beyond;
}

// Each of what may be said of the plan as given, with the factor that JSON has.
TEST(RecommendSays, WhatToThinkOfThePlanAsGiven) {
  const auto asked = [](const Words& more) {
    return Words{"recommend", "--cluster", "gce-t4", "--workload", "resnet50"} + more;
  };
  const std::string better = "What keeps it from being better";
  const std::string gain = "Expected gain: ";
  const struct {
    Words words;
    const char* says;  // {} is the gain
    Words says_not;
    bool recommended;
  } cases[] = {
      {asked({"--workers", "8", "--local-batch", "32"}),
       "Expected gain: {} the throughput of the plan as given.",
       {"exceeds", "runs out of memory", "Keep that one"},
       true},
      {asked({"--workers", "8", "--local-batch", "32", "--most-global-batch", "128"}),
       "The plan as given exceeds the global batch of 128; this one has {} its throughput.",
       {gain, "runs out of memory"},
       true},
      {asked({"--workers", "8", "--local-batch", "8192"}),
       "The plan as given runs out of memory.",
       {gain, "exceeds"},
       true},
      {asked({"--workers", "16", "--local-batch", "32", "--bandwidth", "10 Mbit/s",
              "--try-local-batch", "8", "--try-accumulation", "1"}),
       "No: the best of the plans tried has {} the throughput of the plan as given. Keep that one. "
       "It would be as good with links of 40 Mbit/s or more",
       {gain, better, "Neither a faster network"},
       false},
      {asked({"--workers", "8", "--local-batch", "32", "--try-workers", "1", "--try-local-batch",
              "32", "--try-accumulation", "1"}),
       "No: the best of the plans tried has {} the throughput of the plan as given. Keep that one. "
       "Neither a faster network nor accumulation within a global batch of 8192 would make it as "
       "good.",
       {gain, better, "It would be as good with"},
       false},
  };
  std::size_t flags_of_kept = 0;
  for (const auto& c : cases) {
    const int code = c.recommended ? 0 : 1;
    const Json json = JsonOf(c.words, code);
    EXPECT_EQ(json.at("recommended"), c.recommended);
    const std::string factor = FormatFactor(json.at("objective_gain").get<double>());
    std::string says = c.says;
    if (const std::size_t at = says.find("{}"); at != std::string::npos)
      says.replace(at, 2, factor);
    const std::string heading =
        c.recommended ? "resnet50 on gce-t4: 8 workers" : "resnet50 on gce-t4: keep ";
    // Flags are those of the plan that is the answer.
    const Words best = json.at("best").at("flags").get<Words>();
    const Words given = json.at("baseline").at("flags").get<Words>();
    const Words& flags = c.recommended ? best : given;
    if (!c.recommended) flags_of_kept += Beyond(given, best).size();
    ExpectTold(
        {{c.words, Words{says, heading, c.recommended ? "recommended" : "best of these"} + flags,
          c.says_not + Words{c.recommended ? "best of these" : " recommended "} +
              (c.recommended ? Beyond(given, best) : Beyond(best, given)),
          code}});
  }
  EXPECT_GT(flags_of_kept, 0U) << "that the best of these does not have";
}

// A share for each speed, or why there is none, and whether it is worth to keep the slow nodes.
TEST(RecommendSays, WhatSlowNodesAreWorth) {
  const auto asked = [](const char* nodes, const char* speed, const char* batch,
                        const Words& more = {}) {
    return Words{"recommend", "--cluster",         "gce-t4", "--workload",
                 "resnet50",  "--workers",         "16",     "--slow-nodes",
                 nodes,       "--slow-speed",      speed,    "--local-batch",
                 batch,       "--try-local-batch", batch,    "--try-accumulation",
                 "1"} +
           more;
  };
  const std::string leave = "leave the ";
  const struct {
    Words words;
    Words says;
    Words says_not;
  } cases[] = {
      {asked("1", "0.5", "1"),
       {"With one sample on each device there is nothing to share out by speed. Without the slow "
        "node, ",
        ": with it throughput is ", "; leave the slow node out."},
       {"Shares by speed", "slow nodes"}},
      {asked("2", "0.2", "1"),
       {"nothing to share out by speed. Without the slow nodes, ", ": with them throughput is ",
        "; leave the slow nodes out."},
       {"Shares by speed"}},
      {asked("2", "0.9", "1"), {"nothing to share out by speed", " with them "}, {leave}},
      {asked("1", "0.5", "32"),
       {" the throughput of equal shares. Without the slow node, "},
       {leave}},
      {asked("1", "0.02", "32"), {"of equal shares", "; leave the slow node out."}, {}},
      {asked("1", "0.5", "32", {"--slow-local-batch", "16"}),
       {" the throughput of the given shares. "},
       {"equal shares", leave}},
  };
  for (const auto& c : cases) {
    const Json shares = JsonOf(c.words).at("shares");
    Telling said = {c.words, c.says, c.says_not};
    const Json& others = shares.at("fast_only");
    said.says.push_back(others.at("fast_local_batch").dump() +
                        " samples on each of the others take " + Time(others.at("step_time_s")) +
                        " (" + Rate(others.at("throughput_samples_per_s")) + "): with ");
    const double worth = shares.at("worth");
    said.says.push_back(" throughput is " + FormatFactor(worth) + " that" +
                        (worth <= 1 ? "; leave" : "."));
    if (const Json& by_speed = shares.at("by_speed"); !by_speed.is_null()) {
      const double longer = by_speed.at("throughput_samples_per_s").get<double>() /
                            shares.at("equal").at("throughput_samples_per_s").get<double>();
      said.says.push_back("Shares by speed (--local-batch " +
                          by_speed.at("fast_local_batch").dump() + " --slow-local-batch " +
                          by_speed.at("slow_local_batch").dump() + ") take " +
                          Time(by_speed.at("step_time_s")) + " a step (" +
                          Rate(by_speed.at("throughput_samples_per_s")) +
                          "): " + FormatFactor(longer) + " the throughput of ");
    }
    ExpectTold({said});
  }
}

// ---- sweep.

TEST(SweepSays, TheRowsOfItsTable) {
  const Words words = {"sweep",
                       "--cluster",
                       "gce-t4",
                       "--workload",
                       "resnet50",
                       "--rtt",
                       "2 ms",
                       "--over",
                       "workers=2,8",
                       "--over",
                       "strategy=ring,tree",
                       "--over",
                       "local-batch=8,8192"};
  const Json points = JsonOf(words).at("points");
  const std::string text = Stepcast(words).out;
  EXPECT_EQ(text.rfind("resnet50 on gce-t4 (t4)\n", 0), 0U) << text;
  ASSERT_EQ(points.size(), 8U);
  std::size_t at = 0;
  for (const Json& point : points) {
    const Json& plan = point.at("plan");
    const bool fits = point.at("memory").at("verdict") != "out of memory";
    const std::string row =
        " " + plan.at("workers").dump() + " " + plan.at("strategy").get<std::string>() + " " +
        plan.at("local_batch").dump() + " " + Time(point.at("step_time_s")) + " " +
        Time(point.at("low_s")) + " - " + Time(point.at("high_s")) + " " +
        Rate(point.at("throughput_samples_per_s")) + " " + Percent(point.at("idle_ratio")) + " " +
        point.at("binding").at("part").get<std::string>() + (fits ? "" : " out of memory") + " ";
    const std::size_t found = Unwrapped(text).find(row, at);
    ASSERT_NE(found, std::string::npos) << row << "\n" << text;
    at = found + 1;
  }
}

TEST(SweepSays, WhatIsWrong) {
  const Words sweep = {"sweep",         "--cluster", "gce-t4", "--workload", "resnet50",
                       "--local-batch", "8",         "--over", "workers=1,2"};
  ExpectError(sweep + Words{"--over", "workers=4"},
              {"--over: 'workers' is varied twice; allowed: each key once: workers=V,V,... takes "
               "all its values"});
  ExpectError(sweep + Words{"--y", "step_time"},
              {"--y: 'step_time' is what a plot shows; allowed: with --plot"});
  ExpectError(sweep + Words{"--plot", "scaling.png"},
              {"--plot: 'scaling.png' is no name of an SVG file"});
  ExpectError(
      {"sweep", "--cluster", "gce-t4", "--workload", "resnet50", "--over", "local-batch=1..200000"},
      {"has too many values; allowed: at most 100000"});
}

// ---- plan.

TEST(PlanSays, TheRowsOfItsTable) {
  const Words words = {"plan", "--cluster",     "gce-t4", "--workload", "resnet50", "--workers",
                       "8",    "--local-batch", "32",     "--count",    "4"};
  const Json json = JsonOf(words);
  const std::string text = Stepcast(words).out;
  ASSERT_EQ(json.at("runs").size(), 4U);
  const auto within = [](const Json& of) {
    return fmt::format("{:.2f}", 1 + of.at("half_width").get<double>());
  };
  int number = 0;
  for (const Json& run : json.at("runs")) {
    const Json& plan = run.at("plan");
    const Words row = RowOf(text, std::to_string(++number));
    ASSERT_EQ(row.size(), 6U) << text;
    const int workers = plan.at("workers");
    EXPECT_EQ(row[1].rfind(workers == 1 ? "1 worker, " : fmt::format("{} workers", workers), 0), 0U)
        << row[1];
    EXPECT_TRUE(row[1].ends_with("local batch " + plan.at("local_batch").dump())) << row[1];
    EXPECT_EQ(row[2], Time(run.at("step_time_s")));
    EXPECT_EQ(row[3], Time(run.at("device_s")));
    EXPECT_EQ(row[4], "a factor of " + within(run));
    const std::string tells = run.at("tells");
    EXPECT_EQ(row[5], tells.empty() ? "the formula, nearer to the target" : tells);
    EXPECT_NE(
        text.find(fmt::format("\n  # {}: {}\n  {}\n", number, run.at("command").get<std::string>(),
                              run.at("runs_row").get<std::string>())),
        std::string::npos)
        << text;
  }
  const Json forecast = JsonOf({"predict", "--cluster", "gce-t4", "--workload", "resnet50",
                                "--workers", "8", "--local-batch", "32"});
  EXPECT_NE(Unwrapped(text).find("Now: a step of " + Time(json.at("step_time_s")) +
                                 ", within a factor of " + within(json) + " (90 % interval " +
                                 Time(forecast.at("low_s")) + " to " + Time(forecast.at("high_s")) +
                                 ")."),
            std::string::npos)
      << text;
  EXPECT_EQ(json.at("flags"), forecast.at("flags"));
  // Five are chosen where nobody says how many; the run of a host alone is none of them.
  EXPECT_EQ(JsonOf(Words(words.begin(), words.end() - 2)).at("runs").size(), 5U);
}

// A command that starts what is to be measured, by all that it has to be told.
TEST(PlanSays, HowToStartARun) {
  const TempFolder folder;
  const Words base = {"plan", "--cluster",     "gce-t4", "--workload", "resnet50", "--workers",
                      "8",    "--local-batch", "32",     "--count",    "1"};
  const std::string header =
      "workload,device,placement,servers,strategy,local_batch,slow_nodes,slow_speed,"
      "slow_local_batch,accumulation_steps,hosts,step_time_s\n";
  const struct {
    const char* row;
    Words more;
    const char* command;
  } cases[] = {
      {"4-4,0,ring,32,,,,,,0.5",
       {},
       "torchrun --nnodes=2 --nproc-per-node=4 TRAIN.py --batch-size 32"},
      {"4-2,0,ring,16,,,,,,0.5",
       {},
       "torchrun --nnodes=2 --nproc-per-node=(of each node: 4-2) TRAIN.py --batch-size 16"},
      {"1-1,0,ring,32,1,0.5,16,2,a+b,0.5",
       {"--slow-nodes", "1", "--slow-speed", "0.5", "--slow-local-batch", "16"},
       "on a, b: torchrun --nnodes=2 --nproc-per-node=1 TRAIN.py --batch-size 32 (16 on slow "
       "nodes) "
       "--accumulation-steps 2"},
      {"4-2,2,ps-sync,32,,,,,,0.5",
       {"--strategy", "ps-sync", "--servers", "2"},
       "start 2 servers, then the workers 4-2 (devices of each node): python TRAIN.py --batch-size "
       "32"},
  };
  for (const auto& c : cases) {
    const std::string among = folder.Write("among.csv", header + "resnet50,t4," + c.row + "\n");
    const Json runs = JsonOf(base + c.more + Words{"--among", among}).at("runs");
    ASSERT_EQ(runs.size(), 1U) << c.row;
    EXPECT_EQ(runs.at(0).at("command"), c.command);
  }
}

// Of runs that are all kept to judge a fit by there is none to be measured.
TEST(PlanSays, ThatNoRunWouldTellMore) {
  const TempFolder folder;
  const std::string row = "resnet50,t4,4-2,0,ring,32,";
  const std::string measured = folder.Write("among.csv", kRunsHeader + row + "0.5\n");
  const std::string kept = folder.Write("kept.csv", kRunsHeader + row + "STEP_TIME\n");
  const Words words = {"plan", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch",
                       "32",   "--workers", "6",      "--among",    measured};
  const std::string none =
      "No run would tell more about it: what remains is how single steps scatter.";
  ExpectTold({{words, {"Measure the mean step over about 100 steps behind a warm-up"}, {none}}});
  const Words without = words + Words{"--without", kept};
  ExpectTold({{without, {"Now: a step of ", none}, {"Measure the mean step", "expected step"}}});
  EXPECT_EQ(JsonOf(without).at("runs"), Json::array());
}

// More names of workloads than anybody means are refused where the first one too many stands.
TEST(RunsSay, HowManyWorkloadsTheyMayName) {
  const TempFolder folder;
  std::string rows = kRunsHeader;
  for (int i = 0; i < 501; ++i) {
    rows += fmt::format("message_{},t4,1-1,0,ring,1,0.1\n", 1024 + 4 * i);
  }
  ExpectError({"evaluate", "--cluster", "gce-t4", "--runs", folder.Write("many.csv", rows)},
              {"many.csv:502: workload: 'message_3024' is one more than may be named; allowed: at "
               "most 500 workloads\n"});
}

// ---- profile.

TEST(ProfileSays, WhatItHolds) {
  const Json json = JsonOf({"profile", "xeon-onednn-1"});
  const std::string text = Stepcast({"profile", "xeon-onednn-1"}).out;
  EXPECT_EQ(text.rfind(json.at("device").at("name").get<std::string>() + "\n", 0), 0U) << text;
  int all = 0;
  for (const auto& [kind, count] : json.at("points").items()) {
    EXPECT_EQ(RowOf(text, kind), (Words{kind, count.dump()})) << text;
    all += count.get<int>();
  }
  EXPECT_EQ(RowOf(text, "all"), (Words{"all", std::to_string(all)}));
  Words batches;
  for (const Json& batch : json.at("batches")) batches.push_back(batch.dump());
  const auto says = [&](const std::string& line) {
    EXPECT_NE(Unwrapped(text).find(line), std::string::npos) << line << "\n" << text;
  };
  says(fmt::format(" batches {} precision {} ", fmt::join(batches, ", "),
                   json.at("precisions").at(0).get<std::string>()));
  says(" started " + json.at("started").get<std::string>() + ", stepcast " +
       json.at("version").get<std::string>());
  says(" back end " + json.at("backend").get<std::string>() + "; cold_bytes ");
  says(FormatCount(json.at("samples").get<double>()) + " samples, " + json.at("outliers").dump() +
       " of them outliers");
  for (const auto& [name, value] : json.at("device").at("facts").items()) {
    says(name + " " + value.get<std::string>());
  }
}

// What is wrong with points is said with as many as there are, and not said where there are none.
TEST(ProfileSays, WhatIsWrongWithItsPoints) {
  const ComputeProfile profile = ProfileWithWrongPoints();
  const TempFolder folder;
  const std::string file = folder.Write("it.profile.jsonl", FormatComputeProfile(profile));
  const Json json = JsonOf({"profile", file});
  const std::pair<const char*, const char*> wrongs[] = {
      {"busy", " points were only measured while others used the device"},
      {"throttled", " points were only measured while the device's clock was down"},
      {"out_of_memory", " points do not fit the device's memory"},
      {"unsupported", " points are unsupported by the back end"}};
  Telling wrong = {{"profile", file}, {}};
  Telling sound = {{"profile", "xeon-onednn-1"}, {}};
  for (const auto& [key, sentence] : wrongs) {
    const int count = json.at(key);
    if (count > 0) wrong.says.push_back("! " + std::to_string(count) + sentence);
    if (count == 0) wrong.keeps_back.emplace_back(sentence);
    sound.keeps_back.emplace_back(sentence);
  }
  EXPECT_GE(wrong.says.size(), 3U);
  ExpectTold({wrong});
  ExpectTold({sound});
}

TEST(ProfileSays, HowLayersAddUp) {
  const Words words = {"profile", "xeon-onednn-1", "--workload", "resnet50"};
  const Json json = JsonOf(words);
  EXPECT_EQ(json.at("local_batch"), 16) << "the largest that was measured";
  const std::string text = Stepcast(words).out;
  EXPECT_EQ(text.rfind("resnet50 at batch 16\n", 0), 0U) << text;
  EXPECT_EQ(RowOf(text, "sum"), (Words{"sum", Time(json.at("forward_s")),
                                       Time(json.at("backward_s")), Time(json.at("update_s"))}));
  // One dense layer, before the softmax at the end: a row of its own among the kinds.
  const Json& last = json.at("layers").at(json.at("layers").size() - 2);
  const double forward = last.at("forward").at("seconds");
  const double backward = last.at("backward").at("seconds");
  const double update = last.at("update").at("seconds");
  const double all = json.at("forward_s").get<double>() + json.at("backward_s").get<double>() +
                     json.at("update_s").get<double>();
  EXPECT_EQ(RowOf(text, "1 dense"), (Words{"1 dense", Time(forward), Time(backward), Time(update),
                                           FormatPercent((forward + backward + update) / all)}))
      << text;
  const std::string each = Stepcast(words + Words{"--layers"}).out;
  EXPECT_EQ(RowOf(each, last.at("name").get<std::string>()),
            (Words{last.at("name"), Time(forward), Time(backward), Time(update),
                   last.at("forward").at("origin")}))
      << each;
  // A CPU computes in turn with the program that calls it, a GPU behind it.
  const TempFolder folder;
  std::string gpu = FileContent(kData + "/profiles/xeon-onednn-1.profile.jsonl");
  const std::string kind = "\"kind\":\"cpu\"";
  gpu.replace(gpu.find(kind), kind.size(), "\"kind\":\"gpu\"");
  const std::string in_turn = "; it and the device work in turn. ";
  const std::string ahead = "; it runs ahead of the device, so that the longer counts. ";
  ExpectTold({{words, {in_turn}, {ahead}}});
  ExpectTold({{{"profile", folder.Write("gpu.profile.jsonl", gpu), "--workload", "resnet50"},
               {ahead},
               {in_turn}}});
}

TEST(ProfileSays, WhatIsWrong) {
  ExpectError({"profile"}, {"FILE: is required; allowed: a profile of stepcast microbench"});
  const std::pair<const char*, Words> options[] = {{"layers", {}},
                                                   {"local-batch", {"2"}},
                                                   {"workload-file", {"x.yaml"}},
                                                   {"precision", {"bf16"}},
                                                   {"recompute", {"full"}}};
  for (const auto& [option, value] : options) {
    const std::string flag = std::string("--") + option;
    ExpectError(Words{"profile", "xeon-onednn-1", flag} + value,
                {flag + ": is a choice of what to show of a workload; allowed: with --workload"});
  }
  // A line that was cut off is left out, and said to be.
  const TempFolder folder;
  const std::string shipped = FileContent(kData + "/profiles/xeon-onednn-1.profile.jsonl");
  const std::string torn = folder.Write("torn.profile.jsonl", shipped + "{\"operation\":\"all");
  const ProcessResult result = Stepcast({"profile", torn, "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("torn.profile.jsonl: the last line is torn and left out; stepcast "
                            "microbench goes on from it"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(Json::parse(result.out), JsonOf({"profile", "xeon-onednn-1"}));
}

// ---- page and report.

TEST(WhatIfSays, WhatWasWritten) {
  const TempFolder folder;
  const std::string file = folder.Path("what-if.html");
  const Words page = {"page", "--cluster", "ufrgs-tupi", "--cluster", "gce-t4", "--output", file};
  const ProcessResult result = Stepcast(page);
  if (result.err.find("emscripten") != std::string::npos) GTEST_SKIP() << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Unwrapped(result.out), "- written to " + file + ", which any browser opens ");
  const Json json = JsonOf(page);
  EXPECT_EQ(json, (Json{{"output", file},
                        {"bytes", FileContent(file).size()},
                        {"clusters", {"ufrgs-tupi", "gce-t4"}}}));
  ExpectError({"page", "--cluster", "gce-t4"}, {"--output: is required"});
  ExpectError(
      page + Words{"--cluster", "gce-t4"},
      {"--cluster: 'gce-t4' has the name of two clusters, gce-t4; allowed: each name once"});
  // Without a cluster of one's own those that are shipped.
  const Json all = JsonOf({"page", "--output", file}).at("clusters");
  const Json shipped = JsonOf({"machines"}).at("clusters");
  ASSERT_EQ(all.size(), shipped.size());
  for (const Json& cluster : shipped) {
    EXPECT_EQ(std::count(all.begin(), all.end(), cluster.at("name")), 1) << cluster.at("name");
  }
}

TEST(ReportSays, WhereItWasWritten) {
  const TempFolder folder;
  const std::string file = folder.Path("report.html");
  ExpectTold({{{"report", "--cluster", "ufrgs-tupi", "--runs",
                kData + "/measurements/ufrgs-tupi-fit.csv", "--output", file},
               {"- written to " + file + ", which any browser opens and prints "}}});
}

// ---- Options of training.

// The help of how a workload is trained says what holds where nobody does.
TEST(TrainingSays, WhatIsMeantWithoutTheOption) {
  const std::string help = Unwrapped(Stepcast({"predict", "--help"}).out);
  for (const char* otherwise : {"fp32", "momentum", "plain", "none"}) {
    const std::string said =
        "(as the cluster's runs of it were, else what the workload says, else as all other runs "
        "were, or " +
        std::string(otherwise) + ")";
    EXPECT_NE(help.find(said), std::string::npos) << said << "\n" << help;
  }
}

// Statements in each unit that there is.
TEST(StatementsSay, AValueInItsUnit) {
  const Words calibrate = {"calibrate", "--cluster", "ufrgs-tupi", "--runs",
                           kData + "/measurements/ufrgs-tupi-fit.csv"};
  const struct {
    const char* text;
    const char* name;
    double value;
  } cases[] = {{"flow_bandwidth=1 GB/s", "flow_bandwidth", 8},     // Gbit/s
               {"host_bandwidth=16 Gbit/s", "host_bandwidth", 2},  // GB/s
               {"link_latency=0.02 ms", "link_latency", 20},       // us
               {"loss_timeout=0.3 s", "loss_timeout", 300},        // ms
               {"flow_window=3000 kB", "flow_window", 3},          // MB
               {"hop_spread=0.5", "hop_spread", 0.5}};
  Words all = calibrate;
  for (const auto& c : cases) all = all + Words{"--fix", c.text};
  const Json parameters = JsonOf(all).at("parameters");
  for (const auto& c : cases) {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const Json& p) {
      return p.at("scope") == "cluster" && p.at("name") == c.name;
    });
    ASSERT_NE(found, parameters.end()) << c.name;
    EXPECT_NEAR(found->at("value").get<double>() / c.value, 1, 1e-9) << c.text;
    EXPECT_EQ(found->at("prior_source"), "stated on the command line") << c.text;
  }
}

}  // namespace
}  // namespace stepcast
