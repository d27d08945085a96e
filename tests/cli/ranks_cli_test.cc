// stepcast import kineto-ranks, as a user runs it: numbers beside what the importer found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "data/io/runs.h"
#include "data/kineto/import_ranks.h"
#include "predictor/report/terminal.h"
#include "tests/cli/number_table.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

// Two steps of two ranks, in the form of the door of fuzzing: a file each.
Words RankSamples(const TempFolder& folder, const std::string& sample) {
  const std::string text =
      FileContent(std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/kineto_ranks/" + sample);
  Words paths;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find('\x1e', at);
    paths.push_back(folder.Write(fmt::format("rank{}.json", paths.size()),
                                 text.substr(at, end == std::string::npos ? end : end - at)));
    if (end == std::string::npos) return paths;
    at = end + 1;
  }
}
Words Ranks(const Words& files, const Words& more = {}) {
  return Words{"import", "kineto-ranks"} + files + more;
}
const Words kTarget = {"--workload", "resnet50", "--device", "v100", "--local-batch", "32"};

void AddTimes(const std::string& prefix, const RankTimes& times, NumberTable* table) {
  (*table)[prefix + "/step_time_s"] = times.step;
  (*table)[prefix + "/computing_s"] = times.computing;
  (*table)[prefix + "/communication_s"] = times.communication;
  (*table)[prefix + "/exposed_s"] = times.exposed;
  (*table)[prefix + "/hidden_s"] = times.hidden;
  (*table)[prefix + "/copying_s"] = times.copying;
  (*table)[prefix + "/idle_s"] = times.idle;
  (*table)[prefix + "/waits_s"] = times.waits;
  (*table)[prefix + "/waited_for_s"] = times.waited_for;
}

TEST(RanksCli, EveryNumberIsTheImporters) {
  const TempFolder folder;
  const Words files = RankSamples(folder, "two-ranks-of-nccl");
  const TrainingRanks training = ImportKinetoRanks(files);
  NumberTable table = {{"/backend", "nccl"},
                       {"/gpu", true},
                       {"/world_size", 2},
                       {"/marked", true},
                       {"/world_size_is_told", true},
                       {"/ranks_are_told", true},
                       {"/compared_in_part", 0}};
  AddTimes("", training.mean, &table);
  for (std::size_t i = 0; i < training.ranks.size(); ++i) {
    const RankOfTraining& rank = training.ranks[i];
    const std::string own = fmt::format("/ranks/{}", i);
    table[own + "/rank"] = rank.rank;
    table[own + "/collectives"] = rank.collectives;
    table[own + "/compared"] = rank.compared;
    table[own + "/came_last"] = rank.came_last;
    table[own + "/idle_marks"] = 0;
    AddTimes(own, rank.mean, &table);
    for (std::size_t k = 0; k < training.steps.size(); ++k) {
      AddTimes(fmt::format("/steps/{}/by_rank/{}", k, i), rank.steps[k], &table);
    }
  }
  for (std::size_t k = 0; k < training.steps.size(); ++k) {
    table[fmt::format("/steps/{}/step", k)] = training.steps[k].number;
    table[fmt::format("/steps/{}/last", k)] = *training.steps[k].last;
    AddTimes(fmt::format("/steps/{}", k), training.steps[k].mean, &table);
  }
  ASSERT_EQ(training.classes.size(), 2U);
  for (std::size_t k = 0; k < training.classes.size(); ++k) {
    const CollectiveClass& c = training.classes[k];
    const std::string own = fmt::format("/collectives/{}", k);
    table[own + "/collective"] = "all_reduce";
    table[own + "/type"] = c.type;
    table[own + "/bytes"] = *c.bytes;
    table[own + "/ranks"] = c.ranks;
    table[own + "/calls"] = c.calls;
    table[own + "/calls_per_step"] = c.calls_per_step;
    table[own + "/time_s"] = c.time_s;
    table[own + "/exposed_s"] = c.exposed_s;
    table[own + "/compared"] = c.compared;
    table[own + "/transfer_s"] = *c.transfer_s;
    table[own + "/bus_bytes_per_s"] = *c.bus_bytes_per_s;
  }
  ExpectNumbers(JsonOf(Ranks(files)), table);
  EXPECT_EQ(training.steps[0].last, 1);
}

TEST(RanksCli, Text) {
  const TempFolder folder;
  const Words files = RankSamples(folder, "two-ranks-of-nccl");
  ExpectText(Ranks(files),
             {"2 of 2 ranks on GPUs, nccl: 2 steps, ProfilerStep#4 to 5", "exposed communication",
              "waited for", "all_reduce", "Float", "1 MiB", "rank 1 is waited for the longest"});
  // Each of two ranks sends its message once: 1 MiB in 260 us, 2000 bytes in 150 us.
  ExpectText(Ranks(files), {" 32.3 Gbit/s\n", " 107 Mbit/s\n"});
  ExpectText(Ranks({files[1]}), {"1 of 2 ranks", "there is no trace of rank 0"});
  ExpectText(Ranks(RankSamples(folder, "without-marks")),
             {"whole trace", "no steps are marked (ProfilerStep#N)"});
  ExpectText(Ranks(RankSamples(folder, "without-kineto")),
             {"on CPUs", "the order of the files is taken for theirs",
              "no trace tells the size of the world: 2 ranks", "timed from where they are queued"});
  ExpectText(Ranks(RankSamples(folder, "not-understood")),
             {"not understood or left out: messages whose elements are not whole numbers (2 in 2 "
              "traces"});
}

// Each cell of the table of ranks, and the sentence below it, of ranks whose steps differ too.
TEST(RanksCli, TheTableHasTheNumbersOfEachRank) {
  const TempFolder folder;
  const std::string of_gloo = std::string(STEPCAST_SOURCE_DIR) + "/tests/data/ranks-of-gloo/rank";
  for (const Words& files : {RankSamples(folder, "two-ranks-of-nccl"),
                             Words{of_gloo + "0.json", of_gloo + "1.json", of_gloo + "2.json"}}) {
    const std::string text = Stepcast(Ranks(files)).out;
    const TrainingRanks training = ImportKinetoRanks(files);
    const auto lasting = [](double seconds) { return FormatDuration(Seconds(seconds)); };
    const RankOfTraining* last = nullptr;
    for (const RankOfTraining& rank : training.ranks) {
      const RankTimes& mean = rank.mean;
      if (last == nullptr || mean.waited_for > last->mean.waited_for) last = &rank;
      std::string row = fmt::format(R"(\n +{} +rank{}\.json)", rank.rank, rank.rank);
      for (const double seconds : {mean.step, mean.computing, mean.communication, mean.exposed,
                                   mean.hidden, mean.idle, mean.waits, mean.waited_for}) {
        row += " +" + std::regex_replace(lasting(seconds), std::regex("\\."), "\\.");
      }
      row += fmt::format(" +{} of {}\n", rank.came_last, rank.compared);
      EXPECT_TRUE(std::regex_search(text, std::regex(row))) << row << text;
    }
    ASSERT_NE(last, nullptr);
    const std::string sentence = fmt::format(
        "rank {} is waited for the longest: {} a step by each of the others on average, {} of the "
        "step;",
        last->rank, lasting(last->mean.waited_for),
        FormatPercent(last->mean.waited_for / training.mean.step));
    EXPECT_NE(std::regex_replace(text, std::regex("\\s+"), " ").find(sentence), std::string::npos)
        << text << "lacks: " << sentence;
  }
}

// The same two ranks, of four: in each of the two steps two collectives are compared.
TEST(RanksCli, WhatIsComparedInPartIsSaid) {
  const TempFolder folder;
  Words files = RankSamples(folder, "two-ranks-of-nccl");
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string text = FileContent(files[i]);
    for (const auto& [two, four] : {std::pair("\"world_size\": 2", "\"world_size\": 4"),
                                    std::pair("\"Group size\": 2", "\"Group size\": 4"),
                                    std::pair("[0, 1]", "[0, 1, 2, 3]")}) {
      for (std::size_t at = text.find(two); at != std::string::npos; at = text.find(two, at + 1)) {
        text.replace(at, std::string(two).size(), four);
      }
    }
    files[i] = folder.Write(fmt::format("of_four{}.json", i), text);
  }
  ExpectText(Ranks(files), {"2 of 4 ranks", "there is no trace of ranks 2",
                            "4 collectives compared without all ranks of the group"});
  EXPECT_EQ(JsonOf(Ranks(files)).at("compared_in_part"), 4);
  const std::string whole = Stepcast(Ranks(RankSamples(folder, "two-ranks-of-nccl"))).out;
  EXPECT_EQ(whole.find("compared without"), std::string::npos) << whole;
}

// What is written is read by calibrate.
TEST(RanksCli, ARowOfRuns) {
  const TempFolder folder;
  const Words files = RankSamples(folder, "two-ranks-of-nccl");
  const std::string output = folder.Path("runs.csv");
  const Json json = JsonOf(Ranks(files, kTarget + Words{"--placement", "1-1", "--output", output}));
  EXPECT_EQ(json.at("output"), output);
  const std::vector<stepcast::Run> runs = ReadRuns(output);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_NEAR(runs[0].step_time.si(), json.at("step_time_s"), 1e-15);
  EXPECT_NEAR(runs[0].exposed_sync->si(), json.at("exposed_s"), 1e-15);
  EXPECT_EQ(runs[0].plan.placement, (Placement{1, 1}));
  EXPECT_EQ(runs[0].plan.local_batch, 32);
  const std::string cluster =
      folder.Write("pair.yaml", "name: pair\ndevice: v100\nnodes: 2\ndevices_per_node: 1\n");
  EXPECT_EQ(Stepcast({"calibrate", "--cluster", cluster, "--runs", output, "--output",
                      folder.Path("fitted.yaml")})
                .exit_code,
            0);
  // Micro-steps are marked: a step is four of them.
  JsonOf(Ranks(files, kTarget + Words{"--placement", "1-1", "--accumulation", "4", "--counts",
                                      "micro-steps", "--output", output}));
  EXPECT_NEAR(ReadRuns(output)[0].step_time.si(), 4 * json.at("step_time_s").get<double>(), 1e-12);
}

TEST(RanksCli, Errors) {
  const TempFolder folder;
  const Words files = RankSamples(folder, "two-ranks-of-nccl");
  const Words output = {"--output", folder.Path("runs.csv")};
  ExpectError(Ranks(files, output), {"--device: is required"});
  ExpectError(Ranks(files, kTarget + output),
              {"--placement: is required: traces do not say on which nodes", "2 in all"});
  ExpectError(Ranks(files, kTarget + output + Words{"--placement", "2-2"}),
              {"--placement", "has other ranks than the traces", "2 in all"});
  ExpectError(Ranks(files, kTarget + output + Words{"--placement", "1-1", "--accumulation", "2"}),
              {"--counts: is required"});
  ExpectError(Ranks(files, {"--warm-up", "3"}), {"--warm-up: has no meaning for kineto-ranks"});
  ExpectError(Ranks({files[0], files[0]}), {"distributedInfo.rank: '0' is the rank of "});
  ExpectError(Ranks({}), {"FILE: is required"});
  const Words unmarked = RankSamples(folder, "without-marks");
  ExpectError(Ranks(unmarked, kTarget + output + Words{"--placement", "1-1"}), {"marks no steps"});
  ExpectText({"import", "--guess", files[0]}, {"stepcast import kineto-ranks " + files[0]});
}

}  // namespace
}  // namespace stepcast::program
