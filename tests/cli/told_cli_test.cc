// What the program says of itself, and of what it refuses: the whole line, since that is all that a
// user sees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

const Words kOnT4 = {"predict", "--device", "t4", "--workload", "resnet50"};

TEST(RefusalTexts, AreWholeSentences) {
  const TempFolder folder;
  const std::string runs =
      folder.Write("runs.csv",
                   "workload,device,placement,servers,strategy,local_batch,step_time_s\n"
                   "resnet50,t4,1,0,none,32,0.5\n");
  const Words fresh = {"calibrate",     "--fresh", "--cluster", "gce-t4", "--workload", "resnet50",
                       "--local-batch", "8",       "--hosts",   "a,b",    "--rank",     "0"};
  const Words tupi = {"predict",  "--cluster",     "ufrgs-tupi", "--workload",
                      "resnet50", "--local-batch", "1",          "--hosts"};
  const std::string clusters =
      "; allowed: a cluster file, or one of aws-g4dn-12xlarge, ec2-g3-ps, gce-t4, mxnet-cpu-vms, "
      "networking-perspective, ufrgs-poti, ufrgs-tupi\n";
  const std::string commands =
      "; allowed: predict, sweep, limits, recommend, diagnose, watch, explain, calibrate, "
      "evaluate, "
      "report, plan, import, microbench, probe, profile, page, serve, workloads, machines, "
      "models\n";
  const std::string without = "; allowed: without it\n";
  const struct {
    Words words;
    std::string said;
  } refusals[] = {
      {{"nope"}, "COMMAND: 'nope' is not a command" + commands},
      {{"help", "nope"}, "COMMAND: 'nope' is not a command" + commands},
      {{"predikt"}, "COMMAND: 'predikt' is not a command (did you mean predict?)" + commands},
      {{"man", "nobody"}, "COMMAND: 'nobody' is not a command; allowed: see stepcast --help\n"},
      {{"man", "predict", "--output", folder.path()},
       "--output: writes the pages of all commands; allowed: no COMMAND beside it\n"},
      {{"completion"}, "SHELL: is required; allowed: bash, zsh, fish\n"},
      {{"completion", "csh"}, "SHELL: 'csh' is not known; allowed: bash, zsh, fish\n"},
      {{"predict", "--worker", "3"},
       "'--worker' is not an option of stepcast predict (did you mean --workers?); allowed: see "
       "stepcast predict --help\n"},
      {{"predict", "--seq-len", "4096"},
       "'--seq-len' is not an option of stepcast predict; allowed: --workload NAME@TOKENS, like "
       "llama3_8b@4096\n"},
      {{"predict", "x"}, "'x' belongs to no option; allowed: see stepcast predict --help\n"},
      {{"predict", "--cluster", "--workload", "x"},
       "--cluster: '--workload' is the next option, where the value of this one was to stand; "
       "allowed: see stepcast predict --help\n"},
      {{"predict", "--workload", "resnet50"},
       "--cluster: is required, or --device, or --profile; allowed: a cluster file, or one of "
       "stepcast machines\n"},
      {{"predict", "--device", "t4"},
       "--workload: is required; allowed: name in the catalogue (stepcast workloads) or of a "
       "workload file\n"},
      {{"predict", "--device", "t4", "--workload"},
       "--workload: has no value; allowed: name in the catalogue (stepcast workloads) or of a "
       "workload file\n"},
      {{"predict", "--workload="},
       "--workload: has no value; allowed: name in the catalogue (stepcast workloads) or of a "
       "workload file\n"},
      {{"calibrate", "--check"}, "--check: has no value; allowed: "},
      {{"predict", "--json=yes"}, "--json: takes no value; allowed: without one\n"},
      {{"predict", "--workload", "vgg16", "--workload", "vgg19"},
       "--workload: is given twice; allowed: once\n"},
      {{"predict", "--batch_size", "32"},
       "'--batch_size' is not an option of stepcast predict (did you mean --local-batch?); "
       "allowed: see stepcast predict --help\n"},
      {{"predict", "--model", "vgg16"},
       "'--model' is not an option of stepcast predict (did you mean --workload?); allowed: see "
       "stepcast predict --help\n"},
      {{"machines", "--gpus", "4"},
       "'--gpus' is not an option of stepcast machines; allowed: see stepcast machines --help\n"},
      {{"predict", "--workload", "RTX 4090", "--device", "t4", "--local-batch", "1"},
       "--workload: 'RTX 4090' is not a known workload, but a device (--device rtx_4090); allowed: "
       "a file given with --workload-file; "},
      {{"predict", "--cluster", "T4", "--workload", "vgg16", "--local-batch", "1"},
       "--cluster: 'T4' is not a shipped cluster, but a device (--device t4)" + clusters},
      {kOnT4,
       "--local-batch: is required; allowed: samples of one micro-step on one device, like "
       "32\n"},
      {kOnT4 + Words{"--local-batch", "1", "--workers", "2", "--placement", "1-1"},
       "--workers: says the same as --placement; allowed: one of the two\n"},
      {{"predict", "--cluster", "gpus", "--workload", "resnet50", "--local-batch", "1"},
       "--cluster: 'gpus' is not a shipped cluster" + clusters},
      {{"predict", "--cluster", "gce-t5", "--workload", "resnet50", "--local-batch", "1"},
       "--cluster: 'gce-t5' is not a shipped cluster (did you mean gce-t4?)" + clusters},
      {{"predict", "--profile", "nobody", "--workload", "resnet50", "--local-batch", "1"},
       "--profile: 'nobody' is not a shipped profile; allowed: a .jsonl file of stepcast "
       "microbench, "
       "or one of "},
      {tupi + Words{"tupi1,tupi2"},
       "--hosts: 'tupi1,tupi2' is no host of ufrgs-tupi; names of hosts are joined by +; allowed: "
       "tupi1, tupi2, tupi5, tupi6; list others under hosts in the cluster file\n"},
      {tupi + Words{"tupi9"},
       "--hosts: 'tupi9' is no host of ufrgs-tupi (did you mean tupi1?); allowed: tupi1, tupi2, "
       "tupi5, tupi6; list others under hosts in the cluster file\n"},
      {{"sweep", "--device", "t4", "--workload", "resnet50", "--local-batch", "1", "--over",
        "worker=1,2"},
       "--over: 'worker' is not a part of a plan (did you mean workers?); allowed: workers, "
       "placement, hosts, strategy, "},
      {kOnT4 + Words{"--local-batch", "1", "--loss", "5%"},
       "--loss: '5%' is not a number (did you mean 0.05?); allowed: 0, or from 1e-15 to below "
       "1\n"},
      {{"sweep", "--device", "t4", "--workload", "resnet50", "--local-batch", "1", "--over",
        "workers=1.."},
       "--over: '1..' is a range without an end; allowed: KEY=V,V,... or KEY=FROM..TO or "
       "KEY=FROM..TO..STEP\n"},
      {{"sweep", "--device", "t4", "--workload", "resnet50", "--local-batch", "1", "--over",
        "bandwidth=1 Gbit/s..10 Gbit/s"},
       "--over: '1 Gbit/s..10 Gbit/s' is no range of whole numbers; allowed: KEY=V,V,... "},
      {{"sweep", "--device", "t4", "--workload", "resnet50", "--local-batch", "1", "--over",
        "workers=1-16"},
       "--over: '1-16' is no value (did you mean 1..16?); allowed: KEY=V,V,... "},
      {{"calibrate", "--budget", "1 s", "--runs", runs, "--cluster", "gce-t4"},
       "--budget: has no meaning without --fresh; allowed: with --fresh\n"},
      {{"calibrate", "--fresh", "--check", runs},
       "--check: has no meaning beside --fresh" + without},
      {{"calibrate", "--fresh", "--all"}, "--all: has no meaning beside --fresh" + without},
      {{"calibrate", "--cluster", "gce-t4", "--check", runs, "--fix", "a=1"},
       "--fix: has no meaning beside --check; allowed: either a fit or a check\n"},
      {{"calibrate", "--cluster", "gce-t4", "--check", runs, "--precision", "bf16"},
       "--precision: has no meaning beside --check; allowed: either a fit or a check\n"},
      {{"calibrate", "--cluster", "gce-t4", "--check", runs},
       "--check: 'gce-t4' has no calibration to check; allowed: a cluster file written by stepcast "
       "calibrate --output\n"},
      {{"calibrate", "--cluster", "gce-t4", "--runs", runs, "--fix", "overlap_share=0.5", "--fix",
        "overlap_share=0.6"},
       "--fix: 'overlap_share=0.6' is stated twice; allowed: each parameter once\n"},
      {{"calibrate", "--cluster", "gce-t4", "--runs", runs, "--output", runs},
       "--output: '" + runs +
           "' is a file that is read, and would be lost; allowed: another file\n"},
      {fresh + Words{"--backend", "none", "--budget", "1 s", "--output", "o.yaml"},
       "--budget: '1 s' has no meaning where no compute is measured" + without},
      {fresh + Words{"--backend", "none", "--profile", "x.jsonl", "--output", "o.yaml"},
       "--backend: 'none' has no meaning beside --profile; allowed: one of the two\n"},
      {{"microbench"},
       "--workload: is required, or --ceilings; allowed: names of stepcast workloads, or all\n"},
      {{"microbench", "--workload", "resnet18", "--batch", "1,8,1"},
       "--batch: '1' is given twice; allowed: each once\n"},
      {{"microbench", "--workload", "resnet18", "--precision", "fp32,fp8"},
       "--precision: 'fp8' is not one of them; allowed: fp32, tf32, fp16, bf16\n"},
      {{"microbench", "--threads", "2", "--workload", "resnet18"},
       "--threads: has no meaning with --backend cuda" + without},
      {{"microbench", "--backend", "onednn", "--gpu", "1", "--workload", "resnet18"},
       "--gpu: has no meaning with --backend onednn" + without},
      {{"microbench", "--ceilings", "--budget", "1 s"},
       "--budget: has no meaning with --ceilings" + without},
      {{"microbench", "--workload", "message_1024"},
       "--workload: 'message_1024' has no layers with operations to measure; allowed: a workload "
       "whose file states them (stepcast import onnx writes such)\n"},
      {{"explain", "--cluster", "gce-t4", "--workload", "resnet50"},
       "--local-batch: is required; allowed: samples of one micro-step on one device, like 32\n"},
      {{"workloads", "nobody"}, "NAME: 'nobody' is not a known workload; allowed: a file "},
      {{"machines", "nobody"}, "CLUSTER: 'nobody' is not a shipped cluster" + clusters},
      {{"machines", runs}, runs + ":"},
      {{"calibrate", "--cluster", "gce-t4", "--runs", runs, "--fix", "resnet50/update_time=5 ms",
        "--fix", "vgg16/update_time=5 ms"},
       "parameter: 'vgg16/update_time' is no parameter of these runs"},
      {{"calibrate", "--cluster", "gce-t4", "--runs", runs, "--fix", "resnet50/update_time=5 ms",
        "--fix", "resnet50/update_time=6 ms"},
       "--fix: 'resnet50/update_time=6 ms' is stated twice; allowed: each parameter once\n"},
      {{"workloads", "--workload-file", folder.Path("none.yaml")},
       folder.Path("none.yaml") + ": cannot be read: No such file or directory\n"},
  };
  for (const auto& refusal : refusals) {
    ExpectError(refusal.words, {"stepcast: " + refusal.said});
  }
  const ProcessResult nowhere =
      RunProcess({STEPCAST_PROGRAM, "machines"}, {.variables = {"STEPCAST_DATA=/nowhere"}});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_EQ(nowhere.err,
            "stepcast: STEPCAST_DATA: '/nowhere' has no machines/gpus.yaml; allowed: the folder "
            "with stepcast's data files\n");
}

// The commands that the program lists, each with its summary.
std::map<std::string, std::string> Listed() {
  std::map<std::string, std::string> commands;
  std::istringstream lines(Stepcast({"--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    const std::size_t end = line.find(' ', 2);
    commands[line.substr(2, end - 2)] = line.substr(line.find_first_not_of(' ', end));
  }
  return commands;
}

// Without roff's escapes.
std::string Plain(std::string page) {
  page = std::regex_replace(page, std::regex(R"(\\\(aq)"), "'");
  page.erase(std::remove(page.begin(), page.end(), '\\'), page.end());
  return page;
}

TEST(ManPages, AreTheirCommands) {
  const std::map<std::string, std::string> commands = Listed();
  EXPECT_EQ(commands.size(), 20U);
  const std::string whole = Plain(Stepcast({"man"}).out);
  ExpectSaid(whole, ".TH STEPCAST 1 ", true);
  ExpectSaid(whole, ".SH NAME stepcast - forecasts the step time of data-parallel training", true);
  const std::string codes = ".SH EXIT STATUS 0 done, 1 the answer is no, 2 usage or bad input ";
  for (const char* item :
       {"fB--helpfR list the commands", "fB--versionfR print the version",
        "fBSTEPCAST_DATAfR the folder with the shipped machines, instead of the installed one",
        "fBNO_COLORfR no colours on a terminal",
        "fBCOLUMNSfR where sentences wrap, when the output is no terminal"}) {
    ExpectSaid(whole, std::string(".TP ") + item, true);
  }
  ExpectSaid(whole, codes, true);
  const TempFolder folder;
  EXPECT_EQ(Stepcast({"man", "--output", folder.path()}).exit_code, 0);
  EXPECT_EQ(FileContent(folder.Path("stepcast.1")), Stepcast({"man"}).out);
  for (const auto& [name, summary] : commands) {
    SCOPED_TRACE(name);
    const std::string written = FileContent(folder.Path("stepcast-" + name + ".1"));
    const std::string page = Plain(written);
    std::string title = name;
    for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    ExpectSaid(page, ".TH STEPCAST-" + title + " 1 ", true);
    ExpectSaid(page, ".SH NAME stepcast-" + name + " - " + summary + " .SH SYNOPSIS ", true);
    ExpectSaid(page, " stepcast " + name, true);
    ExpectSaid(page, codes, true);
    ExpectSaid(page, ".SH SEE ALSO fBstepcastfR(1)", true);
    ExpectSaid(whole, ".TP fB" + name + "fR " + summary + " ", true);
    ExpectSaid(whole, "fBstepcast-" + name + "fR(1)", true);
    // An item for each option of the help.
    std::istringstream help(Stepcast({name, "--help"}).out);
    int options = 0;
    for (std::string line; std::getline(help, line);) options += line.starts_with("  --") ? 1 : 0;
    int items = 0;
    for (std::size_t at = 0; (at = written.find("\n.TP\n", at)) != std::string::npos; ++at) ++items;
    EXPECT_EQ(items, options);
  }
  EXPECT_EQ(Stepcast({"man", "predict"}).out, FileContent(folder.Path("stepcast-predict.1")));
  ExpectSaid(
      Stepcast({"--help"}).out,
      "stepcast COMMAND --help tells more, with examples. All of these take --json. stepcast "
      "man prints manual pages, stepcast completion what a shell completes by. Exit codes: 0 "
      "done, 1 the answer is no, 2 usage or bad input.",
      true);
}

// What bash offers for the last word of a line.
TEST(BashCompletion, OffersWhatMayStandThere) {
  const TempFolder folder;
  const std::string script = folder.Write("stepcast.bash", Stepcast({"completion", "bash"}).out);
  const std::string ask = folder.Write("ask.sh",
                                       "source \"$1\"; shift\n"
                                       "COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n"
                                       "_stepcast 2>/dev/null\n"
                                       "echo \"${COMPREPLY[*]}\"\n");
  folder.Write("zeta.csv", "");
  const struct {
    Words line;
    std::string offered;
  } lines[] = {
      {{"pre"}, "predict"},
      {{"mac"}, "machines"},
      {{"--ver"}, "--version"},
      {{"predict", "--strategy", ""},
       "none allreduce ring tree halving-doubling hierarchical ps-sync ps-async byteps auto"},
      {{"predict", "--strategy", "=", "ri"}, "ring"},
      {{"predict", "--multicast", "=", ""}, "yes no"},
      {{"predict", "--multicast", "--in-net"}, "--in-network-aggregation"},
      {{"predict", "--workers", ""}, ""},
      {{"predict", "--cluster", "ufrgs-t"}, "ufrgs-tupi"},
      {{"predict", "--device", "a100_p"}, "a100_pcie"},
      {{"predict", "--workload", "vgg1"}, "vgg16 vgg19"},
      {{"predict", "--optimizer", ""}, "sgd momentum adam"},
      {{"recommend", "--try-shard", ""}, "none optimizer gradients parameters hybrid"},
      {{"recommend", "--try-strategy", "ps"}, "ps-sync ps-async"},
      {{"import", ""},
       "steps nccl-tests osu iperf3 ping ethtool ss adaptdl onnx kineto kineto-ranks pcap"},
      {{"import", "steps", "zet"}, "zeta.csv"},
      {{"calibrate", "--check", "first.csv", "zet"}, "zeta.csv"},
      {{"calibrate", "--runs", "zet"}, "zeta.csv"},
      {{"completion", ""}, "bash zsh fish"},
      {{"probe", "st"}, "steps"},
      {{"models", "collective/ring_"}, "collective/ring_with_reduction"},
      {{"models", "overlap_sh"}, "overlap_share"},
      {{"machines", "gce"}, "gce-t4"},
      {{"man", "expl"}, "explain"},
  };
  for (const auto& line : lines) {
    const ProcessResult result =
        RunProcess(Words{"bash", ask, script, "stepcast"} + line.line, {.folder = folder.path()});
    EXPECT_EQ(result.out, line.offered + "\n") << line.line.back() << result.err;
  }
}

// The same for zsh, in the words of its _arguments: a number for each place but the last, and what
// means something to zsh behind a backslash.
TEST(ZshCompletion, OffersWhatMayStandThere) {
  const std::string script = Stepcast({"completion", "zsh"}).out;
  const std::string imports =
      "steps nccl-tests osu iperf3 ping ethtool ss adaptdl onnx kineto kineto-ranks pcap";
  for (const std::string& line :
       {"'1:value:(" + imports + ")' \\ '*:value:_files'",
        std::string("'1:value:(network show script steps collectives)' \\ '*:value:_files'"),
        std::string("'*:value:(bash zsh fish)'"),
        std::string(R"('*--multicast=-[the network copies what servers distribute (ps-sync)])") +
            R"(::\[=yes|no\]:(yes no)')",
        std::string(
            R"('*--filter=[pcap\: packets to read, as tcpdump'\''s expressions tell them])") +
            ":E:'",
        std::string(":V,V,...:(none optimizer gradients parameters hybrid)'"),
        std::string("'*--flows[pcap\\: show all flows]'")}) {
    ExpectSaid(script, line, true);
  }
}

}  // namespace
}  // namespace stepcast::program
