// What a user can do to a file, for every reader: each case is one InputError of one line that
// names the file, the line, the key and what is wrong, and nothing crashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/io/csv.h"
#include "data/io/import_adaptdl.h"
#include "data/io/machines.h"
#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

// ---- The readers, each with a good file. The cases below count its lines.

constexpr const char* kCluster =
    "name: lab\n"                       // 1
    "device: t4\n"                      // 2
    "nodes: 4\n"                        // 3
    "devices_per_node: 2\n"             // 4
    "link:\n"                           // 5
    "  bandwidth: \"10 Gbit/s\"\n"      // 6
    "  rtt: \"2 ms\"\n"                 // 7
    "  loss: 0.01\n"                    // 8
    "hosts:\n"                          // 9
    "  - name: a1\n"                    // 10
    "  - name: a2\n"                    // 11
    "prices: {node_per_hour: 3.912}\n"  // 12
    "power:\n"                          // 13
    "  device: \"70 W\"\n"              // 14
    "sources:\n"                        // 15
    "  nodes: \"counted, twice\"\n"     // 16
    "notes: |\n"                        // 17
    "  A note.\n";                      // 18

constexpr const char* kCalibrated =
    "name: lab\n"                                                                      // 1
    "device: t4\n"                                                                     // 2
    "nodes: 4\n"                                                                       // 3
    "devices_per_node: 2\n"                                                            // 4
    "calibration:\n"                                                                   // 5
    "  residual_log_sd: 0.05\n"                                                        // 6
    "  sources:\n"                                                                     // 7
    "    - {file: runs.csv, runs: 12}\n"                                               // 8
    "  range:\n"                                                                       // 9
    "    max_workers: 8\n"                                                             // 10
    "    max_nodes: 4\n"                                                               // 11
    "    max_devices_per_node: 2\n"                                                    // 12
    "    local_batch:\n"                                                               // 13
    "      resnet50 on t4: {min: 16, max: 128}\n"                                      // 14
    "  parameters:\n"                                                                  // 15
    "    - {scope: cluster, name: latency, unit: ms, value: 1.5, log_sd: 0.25,\n"      // 16
    "       prior_value: 1, prior_log_sd: 2, decided_by: data}\n"                      // 17
    "    - {scope: cluster, name: overhead, value: 2, log_sd: 0.5, prior_value: 1,\n"  // 18
    "       prior_log_sd: 2, decided_by: prior}\n"                                     // 19
    "  log_covariance: |\n"                                                            // 20
    "    0.0625\n"                                                                     // 21
    "    0.001 0.25\n";                                                                // 22

constexpr const char* kDevices =
    "devices:\n"                        // 1
    "  - name: t4\n"                    // 2
    "    title: NVIDIA T4\n"            // 3
    "    aliases: [tesla t4]\n"         // 4
    "    fp32: \"8.1 TFLOP/s\"\n"       // 5
    "    memory: \"16 GiB\"\n"          // 6
    "    memory_bandwidth: 320 GB/s\n"  // 7
    "    power: \"70 W\"\n"             // 8
    "  - name: v100\n"                  // 9
    "    fp32: \"15.7 TFLOP/s\"\n";     // 10

constexpr const char* kWorkload =
    "name: mine\n"                  // 1
    "parameters: 130\n"             // 2
    "gradient_bytes: 480\n"         // 3
    "layers:\n"                     // 4
    "  - name: conv\n"              // 5
    "    kind: convolution\n"       // 6
    "    tensors: [108, 4]\n"       // 7
    "    forward_flop: 1e6\n"       // 8
    "    activation_bytes: 4096\n"  // 9
    "  - kind: normalization\n"     // 10
    "    tensors: [4, 4]\n"         // 11
    "    statistics: 10\n";         // 12

constexpr const char* kRuns =
    "workload,device,placement,servers,strategy,local_batch,step_time_s,rtt_ms,loss_rate,"
    "hosts\n"                                             // 1
    "resnet50,t4,1,0,none,32,0.25,2,0,\n"                 // 2
    "resnet50,t4,4-4,0,allreduce,32,0.5,2,0.01,a1+a2\n";  // 3

constexpr const char* kPlacements =
    "placement,local_bsz,step_time,sync_time\n"  // 1
    "1,4,0.5,0.01\n"                             // 2
    "13,6,0.75,0.25\n";                          // 3

constexpr const char* kScalability =
    "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"  // 1
    "1,1,4,0.5,0.01\n"                                        // 2
    "2,8,6,0.75,0.25\n";                                      // 3

std::string Digest(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    Cluster cluster;
    cluster.device_facts = device;
    text += FormatCluster(cluster);
  }
  return text;
}

struct Reader {
  const char* name;
  const char* good;
  bool is_yaml;
  std::size_t most_mib;
  // Reads a file, and writes down what was read.
  std::string (*read)(const std::string& path);
  // Reads a text, where the reader can.
  void (*parse)(const std::string& text, const std::string& path) = nullptr;
};

void ParseAsCluster(const std::string& text, const std::string& path) { ParseCluster(text, path); }
void ParseAsWorkload(const std::string& text, const std::string& path) {
  ParseWorkload(text, path);
}
void ParseAsRuns(const std::string& text, const std::string& path) { ParseRuns(text, path); }

constexpr Reader kReaders[] = {
    {"Cluster", kCluster, true, 64,
     [](const std::string& path) { return FormatCluster(ReadCluster(path)); }, ParseAsCluster},
    {"Calibrated", kCalibrated, true, 64,
     [](const std::string& path) { return FormatCluster(ReadCluster(path)); }, ParseAsCluster},
    {"Devices", kDevices, true, 64,
     [](const std::string& path) { return Digest(ReadDevices(path)); }},
    {"Workload", kWorkload, true, 64,
     [](const std::string& path) { return FormatWorkload(ReadWorkload(path)); }, ParseAsWorkload},
    {"Runs", kRuns, false, 256, [](const std::string& path) { return FormatRuns(ReadRuns(path)); },
     ParseAsRuns},
    {"Placements", kPlacements, false, 256,
     [](const std::string& path) { return FormatRuns(ImportAdaptdl(path, "", "t4")); }},
    {"Scalability", kScalability, false, 256,
     [](const std::string& path) { return FormatRuns(ImportAdaptdl(path, "", "t4")); }},
};

void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

const Reader& ReaderNamed(const std::string& name) {
  for (const Reader& reader : kReaders) {
    if (name == reader.name) return reader;
  }
  throw std::logic_error("no reader " + name);
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no '" + from + "' to replace");
  return text.replace(at, from.size(), to);
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// ---- Bad values: one change to the good file.

struct BadValue {
  const char* reader;
  const char* name;
  const char* from;  // this part of the good file ...
  std::string to;    // ... becomes this
  int line;          // where the error must point
  const char* key;
  const char* says;
};

void PrintTo(const BadValue& c, std::ostream* out) { *out << c.reader << " " << c.name; }

const std::vector<BadValue>& BadValues() {
  static const std::vector<BadValue> cases = {
      // Clusters.
      {"Cluster", "WrongUnit", "10 Gbit/s", "10 GB", 6, "link.bandwidth", "has an unknown unit"},
      {"Cluster", "MissingUnit", "\"2 ms\"", "2", 7, "link.rtt", "has no unit"},
      {"Cluster", "UnitAlone", "10 Gbit/s", "Gbit/s", 6, "link.bandwidth", "is not a number with"},
      {"Cluster", "NegativeTime", "2 ms", "-2 ms", 7, "link.rtt", "is out of range"},
      {"Cluster", "NegativeCount", "nodes: 4", "nodes: -4", 3, "nodes", "is out of range"},
      {"Cluster", "ZeroCount", "nodes: 4", "nodes: 0", 3, "nodes", "is out of range"},
      {"Cluster", "FractionalCount", "nodes: 4", "nodes: 4.5", 3, "nodes", "is not a whole number"},
      {"Cluster", "NegativePrice", "3.912", "-1", 12, "prices.node_per_hour", "is out of range"},
      {"Cluster", "NegativeLoss", "0.01", "-0.01", 8, "link.loss", "is out of range"},
      {"Cluster", "CertainLoss", "0.01", "1", 8, "link.loss", "would lose every packet"},
      {"Cluster", "LossWithPercent", "0.01", "1 %", 8, "link.loss", "is not a number"},
      {"Cluster", "NaN", "0.01", "nan", 8, "link.loss", "is not a finite number"},
      {"Cluster", "YamlNaN", "0.01", ".nan", 8, "link.loss", "is not a number"},
      {"Cluster", "Inf", "10 Gbit/s", "inf Gbit/s", 6, "link.bandwidth", "is not a finite number"},
      {"Cluster", "HugeRate", "10 Gbit/s", "1e400 Gbit/s", 6, "link.bandwidth",
       "is not a finite number"},
      {"Cluster", "LargeRate", "10 Gbit/s", "1e15 Gbit/s", 6, "link.bandwidth", "is out of range"},
      {"Cluster", "HugeCount", "nodes: 4", "nodes: 99999999999999999999", 3, "nodes",
       "is out of range; allowed: a whole number from 1 to 1000000"},
      {"Cluster", "DuplicateKey", "nodes: 4\n", "nodes: 4\nname: other\n", 4, "name",
       "is given twice, first on line 1"},
      {"Cluster", "DuplicateNestedKey", "  rtt:", "  bandwidth: 1 Gbit/s\n  rtt:", 7,
       "link.bandwidth", "is given twice, first on line 6"},
      {"Cluster", "DuplicateHost", "name: a2", "name: a1", 11, "hosts[1].name",
       "is the name of two hosts"},
      {"Cluster", "UnknownKey", "device: t4\n", "device: t4\ngpu: t4\n", 3, "gpu",
       "is an unknown key; allowed: name, title"},
      {"Cluster", "UnknownNestedKey", "  loss", "  jitter", 8, "link.jitter",
       "is an unknown key; allowed: bandwidth, rtt, loss"},
      {"Cluster", "MisspeltRequiredKey", "nodes: 4", "node: 4", 1, "nodes",
       "is a required key that is missing"},
      {"Cluster", "EmptyValue", "nodes: 4", "nodes:", 3, "nodes", "is empty; allowed: a value"},
      {"Cluster", "EmptyUnitValue", "\"10 Gbit/s\"", "\"\"", 6, "link.bandwidth", "is empty"},
      {"Cluster", "ListForScalar", "nodes: 4", "nodes: [4]", 3, "nodes",
       "is a list; allowed: a single value"},
      {"Cluster", "MappingForScalar", "nodes: 4", "nodes: {a: 4}", 3, "nodes",
       "is a mapping; allowed: a single value"},
      {"Cluster", "ScalarForMapping", "{node_per_hour: 3.912}", "3.912 USD", 12, "prices",
       "is not a mapping"},
      {"Cluster", "ListForMapping", "{node_per_hour: 3.912}", "[3.912]", 12, "prices",
       "is not a mapping"},
      {"Cluster", "MappingForList", "hosts:\n  - name: a1\n  - name: a2", "hosts: {name: a1}", 9,
       "hosts", "is not a list"},
      {"Cluster", "ListAsDevice", "device: t4", "device: [t4]", 2, "device", "is a list"},
      {"Cluster", "ListAsKey", "nodes: 4", "[nodes]: 4", 3, "", "has a key that is not a word"},
      {"Cluster", "SecondDocument", "link:", "---\nlink:", 5, "", "begins a second document"},
      {"Cluster", "Tab", "  rtt", "\trtt", 7, "", "is not valid YAML or JSON"},
      {"Cluster", "BadIndent", "  rtt", " rtt", 7, "", "is not valid YAML or JSON"},
      {"Cluster", "OpenQuote", "counted, twice\"", "counted, twice", 18, "",
       "is within a quote that is never closed"},
      {"Cluster", "UndefinedAlias", "t4", "*t4", 2, "", "is not valid YAML or JSON"},
      {"Cluster", "AliasOfItself", "link:\n", "link: &l\n  delay: *l\n", 6, "",
       "is an alias within its own anchor"},
      {"Cluster", "AliasOfItselfAsValue", "hosts:\n", "hosts: &h\n  - name: *h\n", 10, "",
       "is an alias within its own anchor"},
      {"Cluster", "TextBeforeTheMapping", "name: lab", ",\nname: lab", 1, "",
       "begins a second document"},
      {"Cluster", "ControlCharacter", "t4\n", "t4\nno\x01te: 1\n", 3, "no\x01te",
       "is an unknown key"},
      {"Cluster", "EscapeInItsName", "name: lab", "name: \"l\\e[31mab\"", 1, "name",
       "'l\\x1b[31mab' has a control character; allowed: text on one line"},
      {"Cluster", "EscapeInItsTitle", "name: lab\n", "name: lab\ntitle: \"\\x9b2J\"\n", 2, "title",
       "has a control character"},
      {"Cluster", "EscapeInADevice", "t4", "\"t\\e[31m4\"", 2, "device", "has a control character"},
      {"Cluster", "EscapeInAHost", "a2", "\"a\\e[31m2\"", 11, "hosts[1].name",
       "has a control character"},
      // Calibrations.
      {"Calibrated", "NegativeDeviation", "residual_log_sd: 0.05", "residual_log_sd: -1", 6,
       "calibration.residual_log_sd", "is out of range"},
      {"Calibrated", "EndlessDeviation", "residual_log_sd: 0.05", "residual_log_sd: 51", 6,
       "calibration.residual_log_sd", "is out of range"},
      {"Calibrated", "EndlessDoubt", "log_sd: 0.25", "log_sd: 1000", 16,
       "calibration.parameters[0].log_sd", "is out of range"},
      {"Calibrated", "EndlessJitter", "  sources:", "  sync_jitter: 1.5\n  sources:", 7,
       "calibration.sync_jitter", "is out of range"},
      {"Calibrated", "NegativeParameter", "value: 1.5", "value: -1.5", 16,
       "calibration.parameters[0].value", "is out of range"},
      {"Calibrated", "NaNParameter", "value: 1.5", "value: nan", 16,
       "calibration.parameters[0].value", "is not a finite number"},
      {"Calibrated", "InfDeviation", "log_sd: 0.25", "log_sd: inf", 16,
       "calibration.parameters[0].log_sd", "is not a finite number"},
      {"Calibrated", "UnknownDecision", "decided_by: prior", "decided_by: me", 19,
       "calibration.parameters[1].decided_by", "is unknown; allowed: data, both, prior"},
      {"Calibrated", "DuplicateKey", "unit: ms", "name: ms", 16, "calibration.parameters[0].name",
       "is given twice"},
      {"Calibrated", "UnknownKey", "unit: ms", "units: ms", 16, "calibration.parameters[0].units",
       "is an unknown key"},
      {"Calibrated", "MissingKey", "max_nodes: 4", "nodes: 4", 10, "calibration.range.max_nodes",
       "is a required key that is missing"},
      {"Calibrated", "ZeroBatch", "min: 16", "min: 0", 14,
       "calibration.range.local_batch.resnet50 on t4.min", "is out of range"},
      {"Calibrated", "RanWithMore", "max: 128",
       "max: 128, ran: [{shard: none, sharers: 1, local_batch: 129}]", 14,
       "calibration.range.local_batch.resnet50 on t4.ran[0].local_batch", "is out of range"},
      {"Calibrated", "RanWithHalfBytes", "max: 128",
       "max: 128, ran: [{shard: none, sharers: 1, local_batch: 1, bytes_per_parameter: 0.5}]", 14,
       "calibration.range.local_batch.resnet50 on t4.ran[0].bytes_per_parameter",
       "is not a whole number"},
      {"Calibrated", "RanCompressedBy", "max: 128",
       "max: 128, ran: [{shard: none, sharers: 1, local_batch: 1, compress: zip}]", 14,
       "calibration.range.local_batch.resnet50 on t4.ran[0].compress", "is not a way to compress"},
      {"Calibrated", "RanAsWhat", "max: 128",
       "max: 128, ran: [{shard: all, sharers: 1, local_batch: 1}]", 14,
       "calibration.range.local_batch.resnet50 on t4.ran[0].shard", "cannot be shared out"},
      {"Calibrated", "ExchangedHow",
       "    local_batch:", "    exchanges: [{strategy: rings}]\n    local_batch:", 13,
       "calibration.range.exchanges[0].strategy", "is not a strategy"},
      {"Calibrated", "ExchangedOverWhat", "    local_batch:",
       "    exchanges: [{strategy: ring, transport: air}]\n    local_batch:", 13,
       "calibration.range.exchanges[0].transport", "allowed: tcp, rdma"},
      {"Calibrated", "HugeCount", "runs: 12", "runs: 99999999999999999999", 8,
       "calibration.sources[0].runs", "is out of range"},
      {"Calibrated", "ShortMatrix", "0.001 0.25", "0.001", 20, "calibration.log_covariance",
       "is not a number; allowed: the lower triangle of a 2 x 2"},
      {"Calibrated", "LongMatrix", "0.001 0.25", "0.001 0.25 1", 20, "calibration.log_covariance",
       "is left over"},
      {"Calibrated", "NaNMatrix", "0.0625\n", "nan\n", 20, "calibration.log_covariance",
       "is not a number"},
      {"Calibrated", "HugeMatrix", "0.0625\n", "1e400\n", 20, "calibration.log_covariance",
       "is not a number"},
      {"Calibrated", "ShortAlternative", "  log_covariance:",
       "  alternatives: |\n    1 2\n    3\n  log_covariance:", 20, "calibration.alternatives",
       "is not a number; allowed: lines of 2 numbers, one for each of parameters"},
      {"Calibrated", "LongAlternative",
       "  log_covariance:", "  alternatives: |\n    1 2 3\n  log_covariance:", 20,
       "calibration.alternatives", "is left over; allowed: lines of 2 numbers"},
      {"Calibrated", "FarAlternative",
       "  log_covariance:", "  alternatives: |\n    1 51\n  log_covariance:", 20,
       "calibration.alternatives", "'51' is out of range; allowed: -50 to 50"},
      {"Calibrated", "ManyAlternatives", "  log_covariance:",
       "  alternatives: |\n" +
           [] {
             std::string lines;
             for (int i = 0; i < 33; ++i) lines += "    1 2\n";
             return lines;
           }() +
           "  log_covariance:",
       20, "calibration.alternatives", "'33' are too many; allowed: at most 32"},
      {"Calibrated", "ListMatrix", "|\n    0.0625\n    0.001 0.25", "[0.0625, 0.001, 0.25]", 20,
       "calibration.log_covariance", "is a list"},
      // Devices.
      {"Devices", "WrongUnit", "8.1 TFLOP/s", "8.1 TFLOPS", 5, "devices[0].fp32",
       "has an unknown unit"},
      {"Devices", "MissingUnit", "320 GB/s", "320", 7, "devices[0].memory_bandwidth",
       "has no unit"},
      {"Devices", "Negative", "16 GiB", "-16 GiB", 6, "devices[0].memory", "is out of range"},
      {"Devices", "Zero", "70 W", "0 W", 8, "devices[0].power", "is out of range"},
      {"Devices", "NaN", "16 GiB", "nan GiB", 6, "devices[0].memory", "is not a finite number"},
      {"Devices", "Inf", "16 GiB", "inf GiB", 6, "devices[0].memory", "is not a finite number"},
      {"Devices", "Huge", "16 GiB", "1e400 GiB", 6, "devices[0].memory", "is not a finite number"},
      {"Devices", "Large", "16 GiB", "99999999999999999999 GiB", 6, "devices[0].memory",
       "is out of range"},
      {"Devices", "EscapeInATitle", "NVIDIA T4", "\"NVIDIA\\tT4\"", 3, "devices[0].title",
       "has a control character"},
      {"Devices", "DuplicateKey", "title:", "name:", 3, "devices[0].name", "is given twice"},
      {"Devices", "DuplicateDevice", "v100", "T4", 9, "devices[1].name",
       "is the name of two devices"},
      {"Devices", "UnknownKey", "title:", "label:", 3, "devices[0].label", "is an unknown key"},
      {"Devices", "ListForScalar", "NVIDIA T4", "[NVIDIA T4]", 3, "devices[0].title", "is a list"},
      {"Devices", "ScalarForList", "[tesla t4]", "tesla t4", 4, "devices[0].aliases",
       "is not a list"},
      // Workload files.
      {"Workload", "UnitWhereNoneIs", "parameters: 130", "parameters: 130 M", 2, "parameters",
       "is not a whole number"},
      {"Workload", "Negative", "[108, 4]", "[108, -4]", 7, "layers[0].tensors", "is out of range"},
      {"Workload", "NegativeWork", "1e6", "-1e6", 8, "layers[0].forward_flop", "is out of range"},
      {"Workload", "NaN", "1e6", "nan", 8, "layers[0].forward_flop", "is not a finite number"},
      {"Workload", "Inf", "4096", "inf", 9, "layers[0].activation_bytes", "is not a finite number"},
      {"Workload", "Huge", "1e6", "1e400", 8, "layers[0].forward_flop", "is not a finite number"},
      {"Workload", "HugeCount", "[108, 4]", "[99999999999999999999]", 7, "layers[0].tensors",
       "is out of range"},
      {"Workload", "EscapeInALayer", "name: conv", "name: \"co\\e[31mnv\"", 5, "layers[0].name",
       "has a control character"},
      {"Workload", "Disagreement", "parameters: 130", "parameters: 131", 2, "parameters",
       "disagrees with the layers"},
      {"Workload", "DuplicateKey", "gradient_bytes", "parameters", 3, "parameters",
       "is given twice, first on line 2"},
      {"Workload", "UnknownKey", "    statistics", "    statistic", 12, "layers[1].statistic",
       "is an unknown key"},
      {"Workload", "UnknownKind", "convolution", "conv2d", 6, "layers[0].kind",
       "is not a kind of layer; allowed: convolution"},
      {"Workload", "ListForScalar", "convolution", "[convolution]", 6, "layers[0].kind",
       "is a list"},
      {"Workload", "ScalarForList", "[108, 4]", "112", 7, "layers[0].tensors", "is not a list"},
      {"Workload", "ListInList", "[108, 4]", "[[108, 4]]", 7, "layers[0].tensors", "is a list"},
      // Runs.
      {"Runs", "UnitInValue", "0.5,2", "0.5 s,2", 3, "step_time_s", "is not a number"},
      {"Runs", "WrongUnitInName", "step_time_s", "step_time_ms", 1, "step_time_s",
       "is a required column that is missing"},
      {"Runs", "MissingUnitInName", "step_time_s", "step_time", 1, "step_time_s",
       "is a required column that is missing"},
      {"Runs", "EscapeInAWorkload", "resnet50,t4,4", "resnet\x1b[31m50,t4,4", 3, "workload",
       "'resnet\\x1b[31m50' has a control character"},
      {"Runs", "Negative", "0.5,2", "-0.5,2", 3, "step_time_s", "is out of range"},
      {"Runs", "Zero", "0.5,2", "0,2", 3, "step_time_s",
       "is out of range; allowed: a number from 1e-12 to 1e+07"},
      {"Runs", "NegativeOptional", "0.5,2", "0.5,-2", 3, "rtt_ms", "is out of range"},
      {"Runs", "NaN", "0.5,2", "nan,2", 3, "step_time_s", "is not a finite number"},
      {"Runs", "Inf", "0.5,2", "inf,2", 3, "step_time_s", "is not a finite number"},
      {"Runs", "Huge", "0.5,2", "1e400,2", 3, "step_time_s", "is not a finite number"},
      {"Runs", "HugeCount", "32,0.5", "99999999999999999999,0.5", 3, "local_batch",
       "is out of range"},
      {"Runs", "EmptyRequired", "32,0.5", ",0.5", 3, "local_batch", "is empty"},
      {"Runs", "EmptyName", "resnet50,t4,4-4", ",t4,4-4", 3, "workload", "is empty"},
      {"Runs", "BadPlacement", "4-4", "4x4", 3, "placement", "is not a placement"},
      {"Runs", "UnknownStrategy", "allreduce", "all-reduces", 3, "strategy", "is not a strategy"},
      {"Runs", "HostsOfAnotherNumber", "a1+a2", "a1", 3, "hosts", "names 1 hosts; allowed: 2"},
      {"Runs", "DuplicateColumn", "rtt_ms", "placement", 1, "column 8",
       "is the name of an earlier column too"},
      {"Runs", "NamelessColumn", "rtt_ms", "", 1, "column 8", "has no name"},
      {"Runs", "FieldTooMany", "a1+a2", "a1+a2,x", 3, "", "has 11 fields; allowed: 10"},
      {"Runs", "FieldTooFew", ",a1+a2", "", 3, "", "has 9 fields; allowed: 10"},
      {"Runs", "OpenQuote", "a1+a2", "\"a1+a2", 3, "column 10", "a quote that is never closed"},
      {"Runs", "QuoteWithin", "a1+a2", "a1\"a2", 3, "column 10", "has a quote in the middle"},
      {"Runs", "Semicolons", "resnet50,t4,1,0,none,32,0.25,2,0,", "resnet50;t4;1;0;none;32;0.25", 2,
       "", "has 1 fields"},
      // Traces.
      {"Placements", "Negative", "0.75", "-0.75", 3, "step_time", "is out of range"},
      {"Placements", "NaN", "0.25", "nan", 3, "sync_time", "is not a finite number"},
      {"Placements", "Inf", "0.75", "inf", 3, "step_time", "is not a finite number"},
      {"Placements", "Huge", "0.75", "1e400", 3, "step_time", "is not a finite number"},
      {"Placements", "HugeCount", "6,0.75", "99999999999999999999,0.75", 3, "local_bsz",
       "is out of range"},
      {"Placements", "UnitInValue", "0.75", "750 ms", 3, "step_time", "is not a number"},
      {"Placements", "DuplicateColumn", "sync_time", "step_time", 1, "column 4",
       "is the name of an earlier column too"},
      {"Placements", "MissingColumn", "sync_time", "sync", 1, "sync_time",
       "is a required column that is missing"},
      {"Placements", "BadPlacement", "13", "1-3", 3, "placement", "is not a placement"},
      {"Placements", "Ragged", "13,6", "13", 3, "", "has 3 fields; allowed: 4"},
      {"Scalability", "FewerReplicasThanNodes", "2,8", "8,2", 3, "num_replicas", "is out of range"},
      {"Scalability", "NegativeNodes", "2,8", "-2,8", 3, "num_nodes", "is out of range"},
      {"Scalability", "HugeNodes", "2,8", "99999999999999999999,8", 3, "num_nodes",
       "is out of range"},
      {"Scalability", "MissingColumn", "num_replicas", "replicas", 1, "num_replicas",
       "is a required column that is missing"},
      {"Scalability", "NotATrace", "num_nodes", "nodes", 1, "placement",
       "is a required column that is missing"},
  };
  return cases;
}

class BadValueTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValueTest, IsNamed) {
  const BadValue& c = GetParam();
  const Reader& reader = ReaderNamed(c.reader);
  const TempFolder folder;
  const std::string path = folder.Write("input", Replaced(reader.good, c.from, c.to));
  const auto error = ErrorOf([&] { reader.read(path); });
  ASSERT_TRUE(Says(error, c.says));
  EXPECT_EQ(error->place().file, path) << error->what();
  EXPECT_EQ(error->place().line, c.line) << error->what();
  EXPECT_EQ(error->place().key, c.key) << error->what();
  EXPECT_TRUE(Says(error, path + ":" + std::to_string(c.line) + ": "));
}

INSTANTIATE_TEST_SUITE_P(Readers, BadValueTest, ::testing::ValuesIn(BadValues()),
                         [](const auto& param_info) {
                           return std::string(param_info.param.reader) + param_info.param.name;
                         });

// ---- Bad files: the same for every reader.

class ReaderTest : public ::testing::TestWithParam<Reader> {
 protected:
  std::string Read(const std::string& content) const {
    return GetParam().read(folder_.Write("my_input", content));
  }
  // The error must name the file, and this line of it (0: none).
  void ExpectError(const std::string& content, int line, const std::string& says) const {
    const auto error = ErrorOf([&] { Read(content); });
    ASSERT_TRUE(Says(error, says));
    EXPECT_EQ(error->place().file, folder_.Path("my_input")) << error->what();
    EXPECT_EQ(error->place().line, line) << error->what();
  }
  int Lines() const {
    const std::string good = GetParam().good;
    return static_cast<int>(std::count(good.begin(), good.end(), '\n'));
  }

  const TempFolder folder_;
};

TEST_P(ReaderTest, TheGoodFileIsRead) { EXPECT_FALSE(Read(GetParam().good).empty()); }

TEST_P(ReaderTest, CrLfIsAccepted) {
  const std::string good = GetParam().good;
  std::string crlf;
  for (const char c : good) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(Read(crlf), Read(good));
}

TEST_P(ReaderTest, AByteOrderMarkIsAccepted) {
  EXPECT_EQ(Read("\xef\xbb\xbf" + std::string(GetParam().good)), Read(GetParam().good));
}

TEST_P(ReaderTest, AMissingLastLineEndIsAccepted) {
  const std::string good = GetParam().good;
  EXPECT_EQ(Read(good.substr(0, good.size() - 1)), Read(good));
}

TEST_P(ReaderTest, MissingFile) {
  const std::string path = folder_.Path("none");
  EXPECT_TRUE(Says(ErrorOf([&] { GetParam().read(path); }),
                   path + ": cannot be read: No such file or directory"));
}

TEST_P(ReaderTest, Folder) {
  EXPECT_TRUE(Says(ErrorOf([&] { GetParam().read(folder_.path()); }),
                   folder_.path() + ": is a folder, not a file"));
}

TEST_P(ReaderTest, EmptyFile) {
  ExpectError("", 0, "is empty");
  ExpectError("\n\n", 0, "is empty");
  ExpectError("\xef\xbb\xbf", 0, "is empty");
}

TEST_P(ReaderTest, NotUtf8) {
  const std::string good = GetParam().good;
  ExpectError(good + "caf\xe9\n", Lines() + 1, "is not UTF-8 text");
  ExpectError("\xff\xfe" + good, 1, "is not UTF-8 text");  // UTF-16
  ExpectError(good + "\xc3", Lines() + 1, "is not UTF-8 text");
}

TEST_P(ReaderTest, NulByte) {
  ExpectError(GetParam().good + std::string(1, '\0'), Lines() + 1, "contains a NUL byte");
  ExpectError(std::string(1, '\0') + GetParam().good, 1, "contains a NUL byte");
}

// The size alone is enough to refuse it: the file is sparse, its bytes are not looked at.
TEST_P(ReaderTest, FileBeyondTheLimit) {
  const std::string path = folder_.Write("large", GetParam().good);
  std::filesystem::resize_file(path, (GetParam().most_mib << 20) + 1);
  EXPECT_TRUE(Says(
      ErrorOf([&] { GetParam().read(path); }),
      path + ": is too large; allowed: at most " + std::to_string(GetParam().most_mib) + " MiB"));
}

// A file of another kind: a photograph, a program, the other format.
TEST_P(ReaderTest, AnotherKindOfFile) {
  ErrorOf([&] { GetParam().read("/proc/self/exe"); });
  ExpectError("\x89PNG\r\n\x1a\n", 1, "is not UTF-8 text");
  const auto error = ErrorOf([&] { Read(GetParam().is_yaml ? kRuns : kCluster); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->place().file, folder_.Path("my_input"));
}

// Cut anywhere, a file is read or refused. In YAML a cut between two lines can leave a good file.
TEST_P(ReaderTest, EveryTruncationIsReadOrRefused) {
  const std::string good = GetParam().good;
  int refused = 0;
  for (std::size_t length = 0; length < good.size(); ++length) {
    try {
      Read(good.substr(0, length));
    } catch (const InputError& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_LE(error.place().line, Lines()) << error.what();
    }
  }
  EXPECT_GT(refused, 0);
}

// A byte changed anywhere: the same. Fewer bytes where each text must go by way of a file.
TEST_P(ReaderTest, EveryChangedByteIsReadOrRefused) {
  const std::string good = GetParam().good;
  const bool in_memory = GetParam().parse != nullptr;
  const std::string bytes = in_memory ? "\"':-,{[]}&*!|>%?@`\n\r\t #9.~\x01\x7f" : "\",:\n";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char byte : bytes) {
      std::string text = good;
      text[at] = byte;
      try {
        if (in_memory) {
          GetParam().parse(text, folder_.Path("my_input"));
        } else {
          Read(text);
        }
      } catch (const InputError& error) {
        EXPECT_FALSE(error.problem().empty());
        EXPECT_EQ(error.place().file, folder_.Path("my_input")) << error.what();
        EXPECT_LE(error.place().line, Lines() + 1) << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReaderTest, ::testing::ValuesIn(kReaders),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// ---- Files that exploit the parser.

class YamlTest : public ReaderTest {};

TEST_P(YamlTest, DeepNesting) {
  for (const char* open : {"[", "{a: ", "- ", "? ", "[{a: "}) {
    ExpectError(GetParam().good + std::string("deep:\n  ") + Repeated(open, 100'000) + "\n",
                Lines() + 2, "is nested too deeply");
  }
}

// Ten aliases of ten aliases of ...: 10^9 values, were they written out.
TEST_P(YamlTest, AliasBomb) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string alias = "*a" + std::to_string(level - 1);
    const std::string name = "a" + std::to_string(level);
    bomb += name + ": &" + name + " [" + Repeated(alias + ", ", 9) + alias + "]\n";
  }
  ExpectError(GetParam().good + bomb, Lines() + 7, "repeats too much by aliases");
}

TEST_P(YamlTest, ManyKeys) {
  std::string keys;
  for (int i = 0; i < 100'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  ExpectError(GetParam().good + keys, Lines() + 1, "k0: is an unknown key");
}

TEST_P(YamlTest, NotAMapping) {
  ExpectError("- a\n- b\n", 1, "is not a mapping");
  ExpectError("just words\n", 1, "'just words' is not a mapping");
  ExpectError("[]\n", 1, "is not a mapping");
}

TEST_P(YamlTest, OnlyRemarks) { ExpectError("# nothing here\n", 0, "is empty"); }

TEST_P(YamlTest, TruncatedJson) {
  ExpectError("{\"name\": \"lab\",", 1, "is not valid YAML or JSON");
  ExpectError("{\"name\": \"la", 1, "is within a quote that is never closed");
}

TEST_P(YamlTest, TextBehindTheDocument) {
  const std::string json = "{\"name\": \"lab\"}";
  ExpectError(json + "}\n", 1, "is not valid YAML or JSON");
  ExpectError(json + " x\n", 1, "begins a second document");
  ExpectError(json + "\n" + json + "\n", 2, "begins a second document");
  ExpectError(json + ",\n", 1, "begins a second document");
  ExpectError(GetParam().good + std::string("...\nnodes: 5\n"), Lines() + 2,
              "begins a second document");
  EXPECT_EQ(Read("---\n" + std::string(GetParam().good) + "...\n# the end\n"),
            Read(GetParam().good));
}

INSTANTIATE_TEST_SUITE_P(All, YamlTest,
                         ::testing::Values(ReaderNamed("Cluster"), ReaderNamed("Calibrated"),
                                           ReaderNamed("Devices"), ReaderNamed("Workload")),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// Where aliases stand for values that are asked for, they are not written out either.
TEST(AliasBomb, InTheLayersOfAWorkload) {
  const TempFolder folder;
  std::string text = "name: mine\nlayers:\n  - kind: dense\n    tensors:\n";
  text += "      - &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string alias = "*a" + std::to_string(level - 1);
    text += "      - &a" + std::to_string(level) + " [" + Repeated(alias + ", ", 9) + alias + "]\n";
  }
  const std::string path = folder.Write("net.yaml", text);
  EXPECT_TRUE(Says(ErrorOf([&] { ReadWorkload(path); }),
                   path + ":11: repeats too much by aliases; allowed: at most 4 MiB in all"));
}

}  // namespace
}  // namespace stepcast
