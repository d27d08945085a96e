#include "data/logs/guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "data/io/text_file.h"
#include "data/logs/link_log.h"
#include "data/logs/log_lines.h"
#include "data/logs/step_log.h"
#include "data/record/input_error.h"

namespace stepcast {
namespace {

// The first of these of which the file has both marks.
struct Known {
  std::string_view mark;
  std::string_view beside;  // or nothing
  const char* what;
  const char* command;
  bool at_start = false;  // the first mark begins the file
};
constexpr const char* kPcap = "stepcast import pcap FILE";
constexpr const char* kNccl = "stepcast import nccl-tests FILE --cluster C --output runs.csv";
constexpr Known kKnown[] = {
    {"\xd4\xc3\xb2\xa1", "", "a capture of packets (pcap)", kPcap, true},
    {"\xa1\xb2\xc3\xd4", "", "a capture of packets (pcap)", kPcap, true},
    {"\x4d\x3c\xb2\xa1", "", "a capture of packets (pcap)", kPcap, true},
    {"\xa1\xb2\x3c\x4d", "", "a capture of packets (pcap)", kPcap, true},
    {"\x0a\x0d\x0d\x0a", "", "a capture of packets (pcapng)", kPcap, true},
    {"\x1f\x8b", "", "compressed with gzip: gunzip it first", "", true},
    {"\"distributedInfo\"", "\"traceEvents\"",
     "a trace of PyTorch's profiler, of one of several ranks", "stepcast import kineto-ranks FILE"},
    {"\"traceEvents\"", "", "a trace of PyTorch's profiler",
     "stepcast import kineto FILE --output trace.profile.jsonl"},
    {"NEGOTIATE_ALLREDUCE", "", "a timeline of Horovod", ""},
    {"\"test_start\"", "\"iperf 3", "what iperf3 --json prints", "stepcast import iperf3 FILE"},
    {kIperf3Table, "", "what iperf3 prints as text: run iperf3 --json (-J), which is read", ""},
    {"local_bsz", "sync_time", "a throughput trace of AdaptDL",
     "stepcast import adaptdl FILE --output runs.csv"},
    {"step_time_s", "placement", "measured runs", "stepcast calibrate --cluster C --runs FILE"},
    {"throughput_samples_per_s", "placement", "measured runs",
     "stepcast calibrate --cluster C --runs FILE"},
    {"begin_s", "end_s", "when steps began and ended",
     "stepcast import pcap n1.pcap n2.pcap --steps FILE"},
    {"algbw", "busbw", "a table of nccl-tests", kNccl},
    {"# OSU ", "Allreduce", "a table of the OSU micro-benchmarks",
     "stepcast import osu FILE --cluster C --placement P --output runs.csv"},
    {"# OSU ", "Latency Test", "a table of the OSU micro-benchmarks", "stepcast import osu FILE"},
    {"# OSU ", "Bi-Directional Bandwidth",
     "a table of osu_bibw, of both directions at once: run osu_bw", ""},
    {"# OSU ", "Multiple Bandwidth", "a table of osu_mbw_mr, of many pairs at once: run osu_bw",
     ""},
    {"# OSU ", "", "a table of the OSU micro-benchmarks", "stepcast import osu FILE"},
    {"packets transmitted", "", "what ping prints", "stepcast import ping FILE"},
    {"Settings for ", "", "what ethtool prints", "stepcast import ethtool FILE"},
    {"rtt:", "cwnd:", "what ss -ti prints", "stepcast import ss FILE"},
    {"devices_per_node:", "", "a cluster file",
     "stepcast predict --cluster FILE --workload W --local-batch N --workers N"},
    {"gradient_bytes:", "", "a workload file",
     "stepcast predict --workload-file FILE --workload W"},
    {"name:", "parameters:", "a workload file",
     "stepcast predict --workload-file FILE --workload W"},
};

// A mark may have quotation marks of its own, which say no more.
std::string InQuotes(std::string_view mark) {
  std::string text(mark);
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  return '"' + text + '"';
}

std::string HeadOf(const std::string& path) {
  constexpr std::size_t kLooked = std::size_t{1} << 20;
  std::ifstream in = OpenFile(path);
  std::string head(kLooked, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

}  // namespace

std::optional<FileGuess> GuessFile(const std::string& path) {
  const std::string head = HeadOf(path);
  for (const Known& known : kKnown) {
    const bool has = known.at_start ? head.starts_with(known.mark) : Contains(head, known.mark);
    if (!has || !Contains(head, known.beside)) continue;
    std::string why = known.at_start ? "its first bytes" : InQuotes(known.mark);
    if (!known.beside.empty()) why += " and " + InQuotes(known.beside);
    return FileGuess{known.what, why, known.command};
  }
  if (path.ends_with(".onnx")) {
    return FileGuess{"a network in ONNX", "its name",
                     "stepcast import onnx FILE --output network.yaml"};
  }
  StepLogReader reader({0, nullptr});
  ForEachLogLineOf(head, [&](const LogLine& line) { reader.Take(line, path); });
  const StepLog log = reader.Finish();
  const auto most = std::max_element(
      log.series.begin(), log.series.end(),
      [](const StepSeries& a, const StepSeries& b) { return a.numbers < b.numbers; });
  if (most == log.series.end() || most->numbers == 0) return std::nullopt;
  return FileGuess{"a log of a training",
                   fmt::format("{} times of the form \"{}\", from line {} on", most->numbers,
                               most->form.name, most->first_line),
                   "stepcast import steps FILE"};
}

}  // namespace stepcast
