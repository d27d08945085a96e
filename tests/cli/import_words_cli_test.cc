// What `stepcast import` says beside what it writes: each sentence where it is due and where not,
// and the tables of ranks beside their JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

std::string Corpus(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
}
std::string Lasting(const Json& seconds) { return FormatDuration(Seconds(seconds.get<double>())); }

// ---- Steps of a training.

// The sentences that a log can give rise to.
const Words kSentences = {
    "the ranks differ: the numbers are those of rank",
    "means are of epochs with their validation, which makes them longer",
    "are rates of bars too short for their clock: they may be of the whole bar, warm-up included",
    "times that the job was begun anew:",
    "it is of the whole run: start-up, evaluations and saving are part of it",
    "the lines are several steps apart",
    "too few single steps for quantiles",
    "how single steps scatter, means do not tell: there are no quantiles",
    "the log has other forms too:",
    "is none of training:",
    "not understood, the first of them:",
};

TEST(StepLogTexts, EachSentenceWhereItIsDue) {
  const std::string means = kSentences[7];
  const std::string few = kSentences[6];
  const struct {
    const char* sample;
    Words says;  // all others of the list are not due
  } logs[] = {
      {"keras-2",
       {"from 3 numbers, means of epochs, lines 3 to 7",
        "left out 0 of the warm-up (0 steps), 1 line of validation",
        "! 3 of 3 means are of epochs with their validation, which makes them longer", means,
        "1 line of keras-2 not understood, the first of them: 1: Iniciando o treinamento"}},
      {"keras-2-bars",
       {"keras-2-bars: Keras", "step 9 s", "0 lines of validation", means,
        "why is it slow? stepcast diagnose ... --measured \"9 s\""}},
      {"horovod",
       {"from 2 numbers, means over the steps between two lines, lines 4 to 5", means,
        "! the ranks differ: the numbers are those of rank 1, the slowest, as a synchronous step "
        "ends with it",
        "2 lines of horovod not understood, the first of them:"}},
      {"nanogpt",
       {"step 7.27 s", "from 5 times of single steps, lines 2 to 9", "3 lines of validation", few,
        "1 line of nanogpt not understood, the first of them: 7: saving checkpoint to out",
        "--measured \"7.27358 s\""}},
      {"slim", {"from 4 times of single steps, lines 1 to 4", few}},
      {"trainer",
       {means, "the log has other forms too: Trainer (--form)",
        "bar \"Loading checkpoint shards:\" is none of training: 1 line - 1 line of trainer not "
        "understood, the first of them:"}},
      {"bars-begun-anew",
       {"left out 1 of the warm-up (0 steps)", ", line 1 ",
        "! 1 of 7 numbers are rates of bars too short for their clock: they may be of the whole "
        "bar, warm-up included",
        "times that the job was begun anew: 1; each warm-up is left out", means}},
      {"pytorch",
       {"1 of the warm-up (0 steps), 1 line of validation", few,
        "1 line of pytorch not understood, the first of them: 1: => creating model"}},
      {"tf_cnn_benchmarks",
       {"from 1 number, the mean of the whole run, line 5",
        "! it is of the whole run: start-up, evaluations and saving are part of it", means,
        "the log has other forms too: tf_cnn_benchmarks' processes (--form)",
        "3 lines of tf_cnn_benchmarks not understood, the first of them:"}},
      {"others",
       {few, "the log has other forms too: OpenMMLab, DeepSpeed, fairseq, samples/s (--form)"}},
  };
  for (const auto& log : logs) {
    SCOPED_TRACE(log.sample);
    const std::string text =
        Stepcast({"import", "steps", Corpus(std::string("step_log/") + log.sample), "--warm-up",
                  "0", "--local-batch", "32", "--workers", "2"})
            .out;
    for (const std::string& sentence : log.says) ExpectSaid(text, sentence, true);
    for (const std::string& sentence : kSentences) {
      bool due = false;
      for (const std::string& said : log.says)
        due = due || said.find(sentence) != std::string::npos;
      ExpectSaid(text, sentence, due);
    }
  }
}

// Ten steps are enough, and one that was left out is one step.
TEST(StepLogTexts, QuantilesAreThoseOfTheSteps) {
  const TempFolder folder;
  std::string log;
  for (int i = 0; i <= 10; ++i) log += fmt::format("took {} ms\n", 100 + 10 * i);
  const Words import = {
      "import",   "steps", folder.Write("own.log", log), "--pattern", "took (?<ms>[0-9]+) ms",
      "--warm-up"};
  const Json json = JsonOf(import + Words{"1"});
  const std::string text = Stepcast(import + Words{"1"}).out;
  EXPECT_NEAR(json.at("p50_s").get<double>(), 0.155, 1e-12);
  ExpectLine(text, fmt::format("step 155 ms (half within 155 ms, 95 % within {}, 99 % within {})",
                               Lasting(json.at("p95_s")), Lasting(json.at("p99_s"))));
  ExpectLine(text, "left out 1 of the warm-up (1 step), 0 lines of validation");
  for (const std::string& sentence : kSentences) ExpectSaid(text, sentence, false);
  ExpectSaid(Stepcast(import + Words{"2"}).out, "too few single steps for quantiles", true);
  const std::string runs = folder.Path("runs.csv");
  ExpectTold({{import + Words{"1", "--workload", "resnet50", "--device", "t4", "--local-batch", "8",
                              "--output", runs},
               {"runs: " + runs},
               {"why is it slow?"}}});
}

// ---- Tables and links.

TEST(TableTexts, SayWhatIsLeftOut) {
  const TempFolder folder;
  const auto told = [](const Words& command, const Words& says, const Words& keeps_back) {
    const ProcessResult result = Stepcast(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const std::string& sentence : says) ExpectSaid(result.err, sentence, true);
    for (const std::string& sentence : keeps_back) ExpectSaid(result.err, sentence, false);
  };
  const std::string small = "below 4 KiB ";
  told({"import", "nccl-tests", Corpus("nccl_tests/two-nodes.txt")},
       {"1 message below 4 KiB is left out: --at-least says where to begin",
        "1 line of two-nodes.txt not understood, the first of them: 16: n1: a line of something"},
       {"wrong results", "no run stands for"});
  told({"import", "nccl-tests", Corpus("nccl_tests/two-nodes.txt"), "--at-least", "2 MiB"},
       {"2 messages below 2 MiB are left out: --at-least says where to begin"}, {small});
  told({"import", "nccl-tests", Corpus("nccl_tests/of-other-collectives.txt")},
       {"1 row with wrong results is left out",
        "no run stands for the table at line 7: all-reduces alone do"},
       {small, "not understood"});
  told({"import", "osu", Corpus("osu/full-of-7.txt"), "--device", "cpu", "--placement", "1-1"}, {},
       {small, "wrong results", "no run stands for", "not understood"});
  const std::string runs = folder.Path("runs.csv");
  told({"import", "nccl-tests", Corpus("nccl_tests/two-nodes.txt"), "--output", runs},
       {"stepcast: 3 runs written to " + runs}, {});
  const std::string facts = folder.Path("link.yaml");
  told({"import", "ping", Corpus("ping/replies.txt"), "--output", facts},
       {"stepcast: facts of a link written to " + facts}, {});
}

// The part of a cluster file, with the number of each unit, and where it stands.
TEST(LinkTexts, HaveTheirUnits) {
  ExpectTold({{{"import", "ethtool", Corpus("ethtool/gigabit.txt")},
               {"link: bandwidth: \"1000 Mbit/s\" sources: link.bandwidth: \"gigabit.txt "
                "(ethtool), line 7: "
                "Speed\"",
                "# speed that the port has agreed on: 1 Gbit/s (gigabit.txt, line 7: Speed)",
                "# stepcast diagnose ... --bandwidth \"1000 Mbit/s\""}},
              {{"import", "ethtool", Corpus("ethtool/of-a-virtual-machine.txt")},
               {"# of-a-virtual-machine.txt: the port tells no speed (line 4: Speed)"},
               {"link:", "sources:", "stepcast diagnose"}},
              {{"import", "ss", Corpus("ss/one-of-bbr.txt")},
               {"rtt: \"0.024 ms\" congestion_control: bbr sources:",
                "# the longest round trip while it sends: 718 us (one-of-bbr.txt, line 3: rtt)",
                "# the most that one connection delivered: 322 Mbit/s (one-of-bbr.txt, line 3: "
                "delivery_rate)",
                "# the largest congestion window: 18,824 B (", "# segments with data sent: 3 (",
                "# stepcast diagnose ... --ping \"0.024 ms\" --lost 0/3"}},
              {{"import", "osu", Corpus("osu/latency-and-bandwidth.txt")},
               {"rtt: \"0.00318 ms\"", ", twice the latency of 0 bytes\"",
                "# the most, with messages of 1048576 bytes: 98 Gbit/s (",
                "# stepcast diagnose ... --ping \"3.18 us\""}},
              {{"import", "ping", Corpus("ping/quiet-with-loss.txt")}, {" loss: 0.02 "}}});
  ExpectError({"import", "ping", Corpus("ping/bsd.txt"), Corpus("ping/replies.txt")},
              {"replies.txt: rtt: is stated by bsd.txt too; allowed: each fact by one file\n"});
}

// ---- What is refused, with what is allowed instead.

TEST(ImportRefusals, SayWhatIsAllowed) {
  const TempFolder folder;
  const std::string log = Corpus("step_log/pytorch");
  const std::string tables = Corpus("osu/allreduce.txt");
  const std::string kinds =
      "; allowed: steps, nccl-tests, osu, iperf3, ping, ethtool, ss, adaptdl, onnx, kineto, "
      "kineto-ranks, pcap\n";
  const struct {
    Words words;
    std::string said;
  } refusals[] = {
      {{}, "stepcast: KIND: is required" + kinds},
      {{"horovod", log}, "stepcast: KIND: 'horovod' is not a kind of input" + kinds},
      {{"osu"}, "stepcast: FILE: is required; allowed: files of kind osu\n"},
      {{"steps", log, tables},
       "stepcast: FILE: '" + tables + "' is a second file; allowed: one file of kind steps\n"},
      {{"--guess", log, tables},
       "stepcast: --guess: '" + tables + "' is a second file; allowed: one FILE\n"},
      {{"ping", log, "--workers", "2"},
       "stepcast: --workers: has no meaning for ping; allowed: see stepcast import --help\n"},
      {{"steps", log, "--precision", "bf16"}, "stepcast: --precision: has no meaning for steps;"},
      {{"nccl-tests", log, "--warm-up", "1"},
       "stepcast: --warm-up: has no meaning for nccl-tests;"},
      {{"osu", log, "--workload", "resnet50"}, "stepcast: --workload: has no meaning for osu;"},
      {{"adaptdl", log, "--placement", "1"}, "stepcast: --placement: has no meaning for adaptdl;"},
      {{"steps", log, "--tells", "means"},
       "stepcast: --tells: 'means' is known of known forms; allowed: --pattern with it\n"},
      {{"osu", tables, "--placement", "1-1"},
       "stepcast: --device: is required, or --cluster: allreduce.txt names no device; allowed: the "
       "device of a rank, or cpu\n"},
      {{"osu", tables, "--device", "cpu"},
       "stepcast: --placement: is required: allreduce.txt does not say where the ranks are; "
       "allowed: the ranks of each node, as 1-1 or 8-8\n"},
      {{"osu", tables, "--device", "cpu", "--placement", "1"},
       "allreduce.txt: has no all-reduce between two ranks or more; allowed: all_reduce_perf or "
       "osu_allreduce, and messages of --at-least\n"},
      {{"steps", Corpus("step_log/epochs")},
       "stepcast: --steps-per-epoch: is required: the log tells times of epochs; allowed: "
       "optimizer "
       "steps of an epoch\n"},
      {{"steps", log, "--tokens-per-sample", "8"},
       "stepcast: --tokens-per-sample: says nothing of PyTorch; allowed: a log that tells tokens "
       "in "
       "a second\n"},
  };
  for (const auto& refusal : refusals) {
    ExpectError(Words{"import"} + refusal.words, {refusal.said});
  }
  const std::string trace = folder.Write("bert_placements.csv",
                                         "placement,local_bsz,step_time,sync_time\n1,4,0.5,0.01\n");
  ExpectError({"import", "adaptdl", trace, "--json"},
              {"--output: is required with --json; allowed: a file to write\n"});
}

TEST(GuessTexts, SayWhatAFileIs) {
  const std::string log = Corpus("step_log/pytorch");
  const Json json = JsonOf({"import", "--guess", log});
  EXPECT_EQ(json.at("file"), log);
  ExpectSaid(Stepcast({"import", "--guess", log}).out,
             fmt::format("{}: {}, by {} {} ", log, json.at("what").get<std::string>(),
                         json.at("why").get<std::string>(), json.at("command").get<std::string>()),
             true);
  // A name with a space would need quotes.
  const TempFolder folder;
  const std::string spaced = folder.Write("of mine.log", FileContent(log));
  EXPECT_EQ(JsonOf({"import", "--guess", spaced}).at("command"), "stepcast import steps FILE");
  const std::string nothing = Corpus("guess/nothing");
  ExpectTold(
      {{{"import", "--guess", nothing},
        {nothing + ": nothing that stepcast knows; where a log has times of steps, read it by "
                   "stepcast import steps FILE --pattern \"...(?<ms>[0-9.]+)...\""},
        {},
        1}});
  const std::string packed = folder.Write("log.gz", "\x1f\x8b\x08 and so on");
  ExpectTold({{{"import", "--guess", packed},
               {"compressed with gzip: gunzip it first", "no command reads it"},
               {"nothing that stepcast knows"}}});
}

// ---- Ranks.

Words RanksOf(const TempFolder& folder, const std::string& sample) {
  const std::string text = FileContent(Corpus("kineto_ranks/" + sample));
  Words words = {"import", "kineto-ranks"};
  std::istringstream ranks(text);
  for (std::string rank; std::getline(ranks, rank, '\x1e');) {
    words.push_back(folder.Write(fmt::format("rank{}.json", words.size() - 2), rank));
  }
  return words;
}

TEST(RankTexts, EachCellAndSentenceIsTheTrainings) {
  const TempFolder folder;
  for (const char* sample :
       {"two-ranks-of-nccl", "pairs-of-four", "gloo-on-the-host", "one-rank-of-two",
        "by-their-launches", "without-marks", "without-kineto", "not-understood"}) {
    SCOPED_TRACE(sample);
    const Words words = RanksOf(folder, sample);
    const Json json = JsonOf(words);
    const std::string text = Stepcast(words).out;
    const bool marked = json.at("marked");
    ExpectLine(text,
               std::string(marked ? "step " : "whole trace ") + Lasting(json.at("step_time_s")));
    const double communication = json.at("communication_s");
    std::string line = "communication " + Lasting(json.at("communication_s"));
    if (communication > 0) {
      const double exposed = json.at("exposed_s");
      line += fmt::format(", of which {} is hidden and {} exposed ({} of the step)",
                          FormatPercent(json.at("hidden_s").get<double>() / communication),
                          Lasting(json.at("exposed_s")),
                          FormatPercent(exposed / json.at("step_time_s").get<double>()));
    }
    ExpectLine(text, line);
    for (const Json& flag : json.at("flags")) {
      ExpectSaid(text, "! " + flag.get<std::string>(), true);
    }
    const struct {
      const char* sentence;
      bool due;
    } flags[] = {
        {"no steps are marked (ProfilerStep#N): the times are those of the whole trace. A schedule "
         "and profiler.step() mark them",
         !marked},
        {"no trace tells its rank (distributedInfo): the order of the files is taken for theirs",
         !json.at("ranks_are_told")},
        {"no trace tells the size of the world: ", !json.at("world_size_is_told")},
        {"there is no trace of rank", !json.at("missing_ranks").empty()},
        {"not all ranks have step", !json.at("steps_left_out").empty()},
        {"there is no collective in these steps", json.at("collectives").empty()},
        {"compared without all ranks of the group", json.at("compared_in_part") > 0},
        {"not compared between ranks: those ", !json.at("not_compared").empty()}};
    for (const auto& flag : flags) ExpectSaid(text, flag.sentence, flag.due);
    for (const auto& [why, calls] : json.at("not_compared").items()) {
      ExpectSaid(text,
                 fmt::format("{} collective{} not compared between ranks: those {}",
                             FormatCount(calls.get<double>()), calls == 1 ? "" : "s", why),
                 true);
    }
    for (const Json& c : json.at("collectives")) {
      const bool has_transfer = !c.at("transfer_s").is_null();
      ExpectLine(text,
                 fmt::format(
                     "{} {} {} {} {} {} {} {} {}", c.at("collective").get<std::string>(),
                     c.at("type").is_null() ? "-" : c.at("type").get<std::string>(),
                     c.at("bytes").is_null() ? "-" : FormatSize(Bytes(c.at("bytes").get<double>())),
                     c.at("ranks").get<int>(), FormatNumber(c.at("calls_per_step").get<double>()),
                     Lasting(c.at("time_s")), Lasting(c.at("exposed_s")),
                     has_transfer ? Lasting(c.at("transfer_s")) : "-",
                     c.at("bus_bytes_per_s").is_null()
                         ? "-"
                         : FormatRate(BytesPerSecond(c.at("bus_bytes_per_s").get<double>()))));
    }
    // Only what takes time has a part of the bar.
    const std::pair<const char*, const char*> parts[] = {{"computing", "computing_s"},
                                                         {"exposed communication", "exposed_s"},
                                                         {"copying alone", "copying_s"}};
    for (const auto& [name, key] : parts) {
      const double seconds = json.at(key);
      ExpectSaid(text, fmt::format(" {} {} ", name, FormatDuration(Seconds(seconds))), seconds > 0);
    }
    double waited = 0;
    for (const Json& rank : json.at("ranks")) {
      if (rank.at("compared") == 0) continue;
      waited = std::max(waited, rank.at("waited_for_s").get<double>());
    }
    ExpectSaid(text, "is waited for the longest", waited > 0);
  }
}

}  // namespace
}  // namespace stepcast::program
