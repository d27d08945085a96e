// Malformed input, made by kind from the lists of what there is: each ends with exit code 2 and one
// line that names the option, key or word, and what is allowed. And a full disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/plan/fields.h"
#include "data/workloads/catalog.h"
#include "tests/cli/process.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

using program::Stepcast;
using program::Words;
using program::operator+;

const std::string kSource = STEPCAST_SOURCE_DIR;

std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : " '") + word + "'";
  return text;
}

// One line that holds `named` and says what is allowed, or where that is told.
void ExpectRefusal(const Words& arguments, const std::string& named) {
  constexpr std::size_t kLongest = 2000;
  const ProcessResult result = Stepcast(arguments);
  const std::string what = "stepcast " + Joined(arguments) + "\n" + result.err;
  EXPECT_EQ(result.exit_code, 2) << what;
  EXPECT_EQ(result.out, "") << what;
  EXPECT_EQ(result.err.rfind("stepcast: ", 0), 0U) << what;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << what;
  EXPECT_NE(result.err.find(named), std::string::npos) << what << "lacks: " << named;
  EXPECT_NE(result.err.find("allowed: "), std::string::npos) << what;
  EXPECT_LT(result.err.size(), kLongest) << what;
}

const Words kPredict = {"predict",  "--device",      "t4", "--workload",
                        "resnet18", "--local-batch", "8"};
const Words kLink = {"--bandwidth", "1 Gbit/s"};

// A plan that is right, without the option.
Words PlanWithout(const std::string& option) {
  Words words = {"predict", "--device", "t4", "--workload", "resnet18"};
  const std::vector<std::pair<std::string, std::string>> rest = {{"local-batch", "8"},
                                                                 {"workers", "4"},
                                                                 {"bandwidth", "1 Gbit/s"},
                                                                 {"strategy", "ps-sync"},
                                                                 {"servers", "1"}};
  for (const auto& [name, value] : rest) {
    if (name == option || (name == "workers" && option == "placement")) continue;
    words = words + Words{"--" + name, value};
  }
  return words;
}

// What is wrong with a value, by the kind of its option.
const Words kNoCounts = {"",    " ",  "x", "-1", "1.5", "1e3", "0x10", "99999999999999999999",
                         "4 x", "nan"};
const Words kNoNumbers = {"", "x", "-1", "1e-400", "nan", "inf", "1e999", "1,5", "0.1 x"};
const Words kNoTimes = {"",        "5",        "x",     "-1 s", "1e99 s",
                        "1e-99 s", "5 parsec", "nan s", "ms",   "5 Gbit/s"};
const Words kNoRates = {
    "", "5", "x", "-1 Gbit/s", "0 Gbit/s", "1e99 Gbit/s", "1e-300 bit/s", "5 parsec", "5 ms"};
const Words kNoSizes = {"", "5", "x", "-1 MiB", "0 B", "1e99 GB", "1e-400 B", "5 parsec", "5 s"};
const Words kNoWords = {"", "x", "RINGS", "tensors!", "0"};

TEST(Refusals, OfThePlan) {
  const auto without = [](Words words, const std::string& word) {
    std::erase(words, word);
    return words;
  };
  // By the placeholder of the option's help.
  const std::map<std::string, Words> wrong = {{"N", kNoCounts},
                                              {"K", kNoCounts},
                                              {"RATE", kNoRates},
                                              {"TRAFFIC", without(kNoRates, "0 Gbit/s")},
                                              {"TIME", kNoTimes},
                                              {"SIZE", kNoSizes},
                                              {"HOW", kNoWords},
                                              {"CC", kNoWords},
                                              {"O", {"x", "-1", "1-x", "nan", "1001"}},
                                              {"P", {"x", "-1", "1-x", "nan", "1e-400"}}};
  int refused = 0;
  for (const PlanField& field : PlanFields()) {
    Words values = {"", "maybe", "1"};  // of yes and no
    if (field.placeholder != nullptr) {
      const auto found = wrong.find(field.placeholder);
      if (found == wrong.end()) continue;
      values = found->second;
    }
    for (const std::string& value : values) {
      SCOPED_TRACE(field.flag);
      ExpectRefusal(PlanWithout(field.flag) + Words{"--" + std::string(field.flag) + "=" + value},
                    std::string("--") + field.flag);
      ++refused;
    }
    if (field.placeholder == nullptr) continue;
    ExpectRefusal(PlanWithout(field.flag) + Words{"--" + std::string(field.flag), "--json"},
                  "is the next option");
    ++refused;
  }
  EXPECT_GT(refused, 100);
}

TEST(Refusals, OfOtherOptions) {
  const Words limits = {"limits", "--device", "t4", "--workload", "resnet18", "--local-batch", "8"};
  const Words recommend = {"recommend", "--device",      "t4", "--workload",
                           "resnet18",  "--local-batch", "8"};
  const Words sweep = {"sweep", "--device", "t4", "--workload", "resnet18", "--local-batch", "8"};
  const struct {
    Words command;
    const char* option;
    Words values;
  } cases[] = {
      {kPredict, "workers", kNoCounts},
      {kPredict, "time-limit", kNoTimes},
      {kPredict, "node-mtbf", kNoTimes},
      {kPredict, "data-set", kNoCounts},
      {kPredict, "noise-scale", kNoNumbers},
      {kPredict, "least-steps", kNoNumbers},
      {limits, "most-workers", kNoCounts},
      {limits, "global-batch", kNoCounts},
      {limits, "target-efficiency", {"", "x", "0", "1", "-1", "2", "90 %"}},
      {recommend, "most-global-batch", kNoCounts},
      {recommend, "try-workers", {"", "x", "0", "1,,2", "1,x", "1.5"}},
      {recommend, "try-local-batch", {"", "x", "0", "1,,2", "1,x", "1.5"}},
      {recommend, "try-accumulation", {"", "x", "0", "1,,2", "1,x", "1.5"}},
      {recommend, "try-strategy", {"", "rings", "ring,,tree", "0"}},
      {recommend, "try-bucket", kNoSizes},
      {recommend, "objective", {"", "speed", "goodput", "Prices"}},
      {sweep,
       "over",
       {"", "x", "=1", "workers", "workers=", "workers=1,,2", "workers=2..1", "workers=1..9..0",
        "wrkers=1", "workers=1..999999", "workers=900000..999999"}},
      {sweep + Words{"--over", "workers=1,2"}, "over", {"workers=3,4"}},
      {sweep + Words{"--over", "workers=1,2"}, "y", {"throughput", "step_time", "steps"}},
      {kPredict, "precision", {"", "fp4", "FP1.6"}},
      {kPredict, "optimizer", {"", "lion", "Adams"}},
      {kPredict, "attention", {"", "flash", "Fuse"}},
      {kPredict, "recompute", {"", "some", "Fully", "Selection"}},
      {kPredict + Words{"--profile", "xeon-onednn-1"}, "precision", {"fp4"}},
      {kPredict, "profile", {"xeon-onednn-1", "none-such"}},
  };
  for (const auto& c : cases) {
    for (const std::string& value : c.values) {
      ExpectRefusal(c.command + Words{"--" + std::string(c.option) + "=" + value},
                    std::string("--") + c.option);
    }
  }
}

// A word with its first letters swapped, with one left out, and with one too many.
Words Misspelt(const std::string& word) {
  Words words;
  if (word.size() < 3) return words;
  if (word[1] != word[2]) {
    std::string swapped = word;
    std::swap(swapped[1], swapped[2]);
    words.push_back(swapped);
  }
  words.push_back(word.substr(0, word.size() - 1) + "zz");
  return words;
}

// What a misspelt word is refused with is a word of the list.
void ExpectMeant(const Words& arguments, const std::string& wrong, const std::string& meant) {
  SCOPED_TRACE(wrong);
  const ProcessResult result = Stepcast(arguments);
  EXPECT_EQ(result.exit_code, 2) << Joined(arguments) << result.out;
  EXPECT_NE(result.err.find(wrong), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("did you mean " + meant + "?"), std::string::npos) << result.err;
}

TEST(Refusals, SayWhatWasMeant) {
  const Words target = {"--local-batch", "8"};
  for (const char* device : {"rtx_4090", "h100_sxm", "v100_sxm2_16gb"}) {
    std::string wrong = device;
    std::swap(wrong[0], wrong[1]);
    const ProcessResult result =
        Stepcast(Words{"predict", "--device", wrong, "--workload", "resnet18"} + target);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("has no data sheet"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("k80, k40, m60"), std::string::npos) << "lists what there is";
    EXPECT_NE(result.err.find("cluster file"), std::string::npos) << "or how to describe one";
  }
  ExpectMeant(Words{"predict", "--device", "rtx_4091", "--workload", "resnet18"} + target,
              "rtx_4091", "rtx_4090");
  // Which device it is stands in its words, whatever else they say.
  const std::pair<const char*, const char*> devices[] = {
      {"h100-80gb", "h100"},
      {"A100 40GB", "a100"},
      {"NVIDIA A100", "a100"},
      {"NVIDIA H100 SXM5", "h100"},
      {"V100-SXM3-32GB", "v100_32gb"},
      {"RTX 3090 Founders", "rtx_3090"},
      {"A100-SXM-80", "a100_80gb"},
      {"a100-80", "a100_80gb or a100_80gb_pcie"},
      {"v100 32", "v100_32gb or v100_32gb_pcie"}};
  for (const auto& [wrong, meant] : devices) {
    ExpectMeant(Words{"predict", "--device", wrong, "--workload", "resnet18"} + target, wrong,
                meant);
  }
  for (const std::string& name : WorkloadNames()) {
    std::string wrong = name;
    const std::size_t first = name[0] == name[1] ? 1 : 0;  // of two letters that differ
    std::swap(wrong[first], wrong[first + 1]);
    const ProcessResult result =
        Stepcast(Words{"predict", "--device", "t4", "--workload", wrong} + target);
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_NE(result.err.find("did you mean "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("'" + wrong + "'"), std::string::npos) << result.err;
  }
  for (const std::string& wrong : Misspelt("ufrgs-tupi")) {
    ExpectMeant(Words{"predict", "--cluster", wrong, "--workload", "resnet18"} + target, wrong,
                "ufrgs-tupi");
  }
  for (const PlanField& field : PlanFields()) {
    for (const std::string& wrong : Misspelt(field.flag)) {
      const Words arguments = kPredict + Words{"--" + wrong, "1"};
      const ProcessResult result = Stepcast(arguments);
      EXPECT_EQ(result.exit_code, 2) << wrong;
      EXPECT_NE(result.err.find("--" + wrong), std::string::npos) << result.err;
      EXPECT_NE(result.err.find("is not an option of stepcast predict"), std::string::npos)
          << result.err;
      if (std::string(field.flag).size() < 6) continue;
      EXPECT_NE(result.err.find("did you mean --"), std::string::npos) << result.err;
    }
  }
  for (const std::string& wrong : {std::string("predcit"), std::string("recomend")}) {
    ExpectMeant({wrong}, wrong, wrong[0] == 'p' ? "predict" : "recommend");
  }
  const std::vector<std::pair<std::string, std::string>> units = {
      {"1Gbps", "Gbit/s"},   {"1 gbit/s", "Gbit/s"}, {"1 Gb/s", "Gbit/s"},  {"1 Gbit", "Gbit/s"},
      {"10 Mbps", "Mbit/s"}, {"1 GBps", "GB/s"},     {"1 mbit/s", "Mbit/s"}};
  for (const auto& [wrong, meant] : units) {
    ExpectMeant(kPredict + Words{"--bandwidth", wrong}, wrong, meant);
  }
  for (const auto& [wrong, meant] :
       std::vector<std::pair<std::string, std::string>>{{"2 msec", "ms"},
                                                        {"2 sec", "s"},
                                                        {"2 minutes", "min"},
                                                        {"2 MS", "ms"},
                                                        {"2 hours", "h"}}) {
    ExpectMeant(kPredict + Words{"--rtt", wrong}, wrong, meant);
  }
}

TEST(Refusals, NameAStrayWord) {
  for (const char* command : {"predict", "limits", "recommend", "sweep", "explain", "calibrate"}) {
    ExpectRefusal({command, "stray"}, "'stray' belongs to no option");
  }
}

TEST(Refusals, OfWhatDoesNotGoTogether) {
  const Words recommend = {"recommend",     "--device", "t4",        "--workload", "resnet18",
                           "--local-batch", "8",        "--workers", "4"};
  const Words sweep = {"sweep", "--device", "t4", "--workload", "resnet18", "--local-batch", "8"};
  const struct {
    Words arguments;
    const char* named;
  } cases[] = {
      {kPredict + kLink + Words{"--workers", "4", "--server-bandwidth", "1 Gbit/s"},
       "--server-bandwidth"},
      {kPredict + Words{"--workers", "4", "--strategy", "ps-sync", "--servers", "2",
                        "--colocated-servers", "--server-bandwidth", "1 Gbit/s"},
       "--server-bandwidth"},
      {kPredict + Words{"--workers", "4", "--strategy", "ps-sync", "--servers", "2",
                        "--pipelined-servers", "--overlap", "none"},
       "--pipelined-servers"},
      {kPredict + Words{"--workers", "4", "--servers", "2"}, "--servers"},
      {Words{"predict", "--device", "t4", "--workload", "resnet50@5", "--local-batch", "8"},
       "stepcast: --workload: 'resnet50@5'"},
      {Words{"recommend", "--device", "t4", "--workload", "resnet18", "--local-batch", "8",
             "--workers", "4", "--compress", "topk=0.01", "--try-strategy", "ps-sync"},
       "--try-strategy: 'ps-sync'"},
      {recommend + Words{"--try-servers", "1,2"},
       "--try-servers: '1,2' are servers of no strategy that is tried"},
      {recommend + Words{"--strategy", "ps-sync", "--servers", "1", "--try-strategy", "ring,tree",
                         "--try-servers", "2"},
       "--try-servers: '2' are servers of no strategy that is tried"},
      {kPredict + Words{"--workers", "4", "--placement", "2-2"}, "--workers"},
      {sweep + Words{"--over", "placement=4,2-2", "--over", "workers=1,2"},
       "--over: 'workers' says the same as placement"},
      {sweep + Words{"--over", "workers=1,2", "--over", "placement=4,2-2"},
       "--over: 'workers' says the same as placement"},
      {sweep + Words{"--workers", "4", "--over", "workers=1,2"},
       "--over: 'workers' says the same as --workers"},
      {sweep + Words{"--placement", "4-4", "--over", "workers=1,2"},
       "--over: 'workers' says the same as --placement"},
      {sweep + Words{"--workers", "4", "--over", "placement=4,2-2"},
       "--over: 'placement' says the same as --workers"},
      {Words{"calibrate", "--cluster", "ufrgs-tupi", "--runs",
             kSource + "/data/measurements/ufrgs-tupi-fit.csv",
             kSource + "/data/../data/measurements/ufrgs-tupi-fit.csv"},
       "ufrgs-tupi-fit.csv: --runs: is given twice: its runs would count twice"},
      {kPredict + Words{"--workers", "2", "--hosts", "a+b+c"}, "--hosts"},
      {kPredict + Words{"--workers", "4", "--strategy", "ps-sync"}, "--servers"},
      {kPredict + Words{"--workers", "4", "--multicast"}, "--multicast"},
      {kPredict + Words{"--workers", "4", "--staleness-bound", "3"}, "--staleness-bound"},
      {kPredict + Words{"--workers", "4", "--backup-workers", "4"}, "--backup-workers"},
      {kPredict + Words{"--workers", "1", "--profile", "xeon-onednn-1"}, "--profile"},
      {kPredict + Words{"--precision", "fp8"}, "stepcast: --precision: 'fp8' needs units"},
  };
  for (const auto& c : cases) ExpectRefusal(c.arguments, c.named);
  for (const Words& tried :
       {Words{"--try-strategy", "ring,ps-sync"}, Words{"--strategy", "byteps", "--servers", "1"}}) {
    const ProcessResult result =
        Stepcast(recommend + kLink + tried + Words{"--try-servers", "1,2"});
    EXPECT_EQ(result.err, "") << Joined(tried);
  }
}

// A cluster file with one of its values left out by its sign, or replaced by another kind.
TEST(Refusals, OfClusterFiles) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"name", "mine"},
      {"title", "\"Mine\""},
      {"device", "t4"},
      {"nodes", "2"},
      {"devices_per_node", "1"},
      {"nics_per_node", "1"},
      {"link", "{bandwidth: 1 Gbit/s, rtt: 1 ms, loss: 0.01}"},
      {"hosts", "[{name: a}, {name: b}]"}};
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string text;
    for (const auto& [name, right] : lines) {
      text += name + ": " + (name == key ? value : right) + "\n";
    }
    return folder.Write("mine.yaml", text);
  };
  const Words rest = {"--workload", "resnet18", "--local-batch", "8", "--workers", "2"};
  ASSERT_EQ(Stepcast(Words{"predict", "--cluster", with("", "")} + rest).exit_code, 0);
  const auto refuse = [&](const std::string& key, const std::string& value,
                          const std::string& named) {
    SCOPED_TRACE(key + ": " + value);
    const ProcessResult result = Stepcast(Words{"predict", "--cluster", with(key, value)} + rest);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find("mine.yaml:"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  };
  for (const auto& [key, right] : lines) {
    for (const char* nothing : {"~", "null", ""}) refuse(key, nothing, key);
  }
  for (const char* key : {"nodes", "devices_per_node", "nics_per_node"}) {
    for (const char* value : {"x", "-1", "0", "1.5", "[1]", "{a: 1}", "99999999999"}) {
      refuse(key, value, key);
    }
  }
  for (const char* value :
       {"1 Gbit/s", "[1]", "{bandwidth: ~}", "{bandwidth: 1}", "{bandwidth: 1Gbps}",
        "{bandwidth: 0 Gbit/s}", "{rtt: 1}", "{rtt: -1 ms}", "{loss: 1}", "{loss: x}", "{los: 0.1}",
        "{bandwidth: 1 Gbit/s, bandwidth: 2 Gbit/s}"}) {
    refuse("link", value, "link");
  }
  refuse("hosts", "[{name: a}, {name: b}, {name: c}]", "hosts");
  refuse("hosts", "[{name: a}, {name: a}]", "hosts");
  refuse("hosts", "[a, b]", "hosts");
  refuse("device", "rtx_4091", "mine.yaml:3: device: 'rtx_4091' has no data sheet");
}

// A row of runs with one of its fields spoilt.
TEST(Refusals, OfRuns) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"workload", "resnet50"}, {"device", "t4"},     {"placement", "1-1"},
      {"servers", "0"},         {"strategy", "ring"}, {"local_batch", "32"},
      {"step_time_s", "0.5"},   {"rtt_ms", "1"},      {"loss_rate", "0.01"}};
  const auto refuse = [&](const std::string& column, const std::string& value) {
    std::string header;
    std::string row;
    for (const auto& [name, right] : fields) {
      header += (header.empty() ? "" : ",") + name;
      row += (name == fields.front().first ? "" : ",") + (name == column ? value : right);
    }
    SCOPED_TRACE(column + "=" + value);
    const ProcessResult result = Stepcast({"evaluate", "--cluster", "gce-t4", "--runs",
                                           folder.Write("runs.csv", header + "\n" + row + "\n")});
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(column), std::string::npos) << result.err;
  };
  for (const auto& [column, right] : fields) {
    const std::string optional[] = {"rtt_ms", "loss_rate", "device", "servers"};
    if (std::count(std::begin(optional), std::end(optional), column) > 0) continue;
    refuse(column, "");
  }
  for (const char* column : {"servers", "local_batch"}) {
    for (const char* value : {"x", "-1", "1.5", "1e3", "99999999999"}) refuse(column, value);
  }
  for (const char* column : {"step_time_s", "rtt_ms", "loss_rate"}) {
    for (const char* value : {"x", "-1", "nan", "1e999", "1 s"}) refuse(column, value);
  }
  for (const char* value : {"x", "0", "1-x", "1--1", "-"}) refuse("placement", value);
  for (const char* value : {"rings", "ring ring", "0"}) refuse("strategy", value);
}

// What no file means is refused at once, in a line that can be read.
// Names are bytes to a shell: JSON has a mark where they are none of UTF-8.
TEST(Refusals, NotOfANameThatIsNoUtf8) {
  const ProcessResult result =
      Stepcast({"predict", "--cluster", "gce-t4", "--workload", "message_400", "--device", "a\xffz",
                "--workers", "2", "--local-batch", "1", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\"a\xef\xbf\xbdz\""), std::string::npos) << result.out;
}

// A decoder of 256 blocks has some 6,000 layers, whatever its width.
TEST(Refusals, OfMoreLayersThanMemoryHolds) {
  const TempFolder folder;
  std::string runs = "workload,device,placement,servers,strategy,local_batch,step_time_s\n";
  for (int i = 1; i <= 60; ++i) {
    runs += "llama:layers=256:hidden=" + std::to_string(8 * i) +
            ":heads=2,t4,4-4,0,ring,1,0.9\nresnet50,t4,1,0,none,32,0.5\n";
  }
  const ProcessResult result =
      Stepcast({"evaluate", "--cluster", "gce-t4", "--runs", folder.Write("deep.csv", runs)});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_NE(result.err.find("deep.csv:"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("has more layers, with the workloads before it"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("at most 100000 layers"), std::string::npos) << result.err;
}

TEST(Refusals, OfAMillionColumns) {
  const TempFolder folder;
  std::string header = "workload";
  for (int i = 1; i < 1'000'000; ++i) header += ",c" + std::to_string(i);
  const ProcessResult result = Stepcast(
      {"evaluate", "--cluster", "gce-t4", "--runs", folder.Write("wide.csv", header + "\n")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("has 1000000 columns; allowed: at most"), std::string::npos)
      << result.err.substr(0, 300);
  EXPECT_LT(result.err.size(), 300U);
  EXPECT_LT(result.processor_s, 1);
}

// What is written over what was measured, by the same name or another.
TEST(Refusals, OfAFileThatIsReadToo) {
  const TempFolder folder;
  const auto copy = [&](const char* name, const std::string& from) {
    return folder.Write(name, FileContent(kSource + "/data/" + from));
  };
  const std::string runs = copy("runs.csv", "measurements/ufrgs-tupi-fit.csv");
  const std::string others = copy("others.csv", "measurements/ufrgs-tupi-holdout.csv");
  const std::string cluster = copy("c.yaml", "machines/ufrgs-tupi.yaml");
  const std::string log = folder.Write("a=train.log", "step 5 ms\n");
  const std::string link = folder.Path("link.csv");
  std::filesystem::create_symlink(runs, link);
  const Words target = {"--workload", "resnet50", "--local-batch", "128"};
  const struct {
    Words arguments;
    std::string kept;
  } cases[] = {
      {{"calibrate", "--cluster", cluster, "--runs", others, runs, "--output", runs}, runs},
      {{"calibrate", "--cluster", cluster, "--runs", runs, "--output", link}, runs},
      {{"report", "--cluster", cluster, "--runs", runs, "--output", cluster}, cluster},
      {{"report", "--cluster", cluster, "--runs", runs, "--judge", others, "--output", others},
       others},
      {{"evaluate", "--cluster", cluster, "--runs", runs, "--report", runs}, runs},
      {{"page", "--cluster", cluster, "--output", cluster}, cluster},
      {Words{"plan", "--cluster", cluster, "--among", runs, "--output", runs} + target, runs},
      {{"import", "steps", log, "--pattern", "(?<ms>[0-9.]+) ms", "--output", log}, log},
      {{"import", "iperf3", "none.json", "--cluster", cluster, "--output", cluster}, cluster},
  };
  for (const auto& c : cases) {
    const std::string before = FileContent(c.kept);
    ExpectRefusal(c.arguments, "is a file that is read, and would be lost");
    EXPECT_EQ(FileContent(c.kept), before) << Joined(c.arguments);
  }
  // A calibration may take the place of an earlier one, and new files that of old ones.
  const std::string page = folder.Write("page.html", "an older page");
  for (const Words& written :
       {Words{"calibrate", "--cluster", cluster, "--runs", runs, "--output", cluster},
        Words{"report", "--cluster", cluster, "--runs", runs, "--output", page}}) {
    const ProcessResult result = Stepcast(written);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_NE(FileContent(cluster).find("calibration:"), std::string::npos);
  EXPECT_NE(FileContent(page).find("<html"), std::string::npos);
}

// Output that is lost is told, whatever the command and however much it prints.
TEST(Refusals, OfAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const TempFolder folder;
  ProcessOptions full;
  full.out_path = "/dev/full";
  const Words plan = {"--device",      "t4", "--workload", "resnet18",
                      "--local-batch", "8",  "--workers",  "2"};
  const std::vector<Words> commands = {
      Words{"predict"} + plan,
      Words{"predict", "--json"} + plan,
      Words{"sweep", "--over", "accumulation=1..100"} + plan,
      Words{"sweep", "--over", "accumulation=1..100", "--json"} + plan,
      Words{"limits"} + plan,
      Words{"recommend"} + plan,
      Words{"explain"} + plan,
      Words{"explain", "--json"} + plan,
      {"evaluate", "--cluster", "ufrgs-tupi", "--runs",
       kSource + "/data/measurements/ufrgs-tupi-holdout.csv"},
      {"workloads"},
      {"workloads", "--json"},
      {"machines"},
      {"models"},
      {"models", "--json"},
      {"man"},
      {"man", "predict"},
      {"completion", "bash"},
      {"profile", "xeon-onednn-1"},
      {"--help"},
      {"predict", "--help"},
      {"--version"}};
  for (const Words& command : commands) {
    const ProcessResult result = RunProcess(Words{STEPCAST_PROGRAM} + command, full);
    EXPECT_EQ(result.exit_code, 2) << Joined(command);
    EXPECT_EQ(result.err, "stepcast: standard output cannot be written\n") << Joined(command);
  }
}

}  // namespace
}  // namespace stepcast
