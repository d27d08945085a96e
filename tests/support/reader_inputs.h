// What each reader of files is given to show that its time goes with the size of the file: a text
// that has `count` of what there may be many of.
#ifndef STEPCAST_TESTS_SUPPORT_READER_INPUTS_H_
#define STEPCAST_TESTS_SUPPORT_READER_INPUTS_H_

#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/import_adaptdl.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "data/kineto/import_kineto.h"
#include "data/kineto/import_ranks.h"
#include "tests/support/temp_file.h"
#ifdef STEPCAST_HAS_ONNX
#include "data/onnx/import_onnx.h"
#include "tests/support/onnx_model.h"
#endif

namespace stepcast {

struct ReaderInput {
  const char* name;
  int most;  // an honest large file has as many
  std::string (*text)(int count);
  void (*read)(const std::string& text);
  const char* file = nullptr;  // whose path `read` takes instead of the text
};

// What the input's reader is given: the text, or the path of a file that holds it.
inline std::string Given(const ReaderInput& input, const std::string& text,
                         const TempFolder& folder) {
  return input.file == nullptr ? text : folder.Write(input.file, text);
}

// `item` with its number in place of each #, `count` times.
inline std::string Times(int count, const std::string& item) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (const char c : item) text += c == '#' ? std::to_string(i) : std::string(1, c);
  }
  return text;
}

inline std::vector<ReaderInput> ReaderInputs() {
  const auto cluster = [](const std::string& text) { ParseCluster(text, "c.yaml"); };
  const auto runs = [](const std::string& text) { ParseRuns(text, "r.csv"); };
  const auto profile = [](const std::string& text) { ParseComputeProfile(text, "p.jsonl"); };
  return {
      {"rows of runs", 1'000'000,
       [](int count) {
         return "workload,device,placement,servers,strategy,local_batch,step_time_s\n" +
                Times(count, "resnet50,t4,4-4,0,ring,32,0.5#\n");
       },
       runs},
      {"columns of runs", 10'000 - 7,
       [](int count) {
         const std::string row = "resnet50,t4,4-4,0,ring,32,0.5" + Times(count, ",#") + "\n";
         return "workload,device,placement,servers,strategy,local_batch,step_time_s" +
                Times(count, ",c#") + "\n" + row + row;
       },
       runs},
      {"hosts of a run", 100'000,
       [](int count) {
         return "workload,device,placement,servers,strategy,local_batch,step_time_s,hosts\n"
                "resnet50,t4,1" +
                Times(count - 1, "-1") + ",0,ring,32,0.5,h" + Times(count - 1, "#+h") + "x\n";
       },
       runs},
      {"hosts of a cluster", 100'000,
       [](int count) {
         return "{name: c, device: t4, nodes: 1000000, devices_per_node: 8, hosts: [" +
                Times(count, "{name: h#, link: {rtt: 1 ms}},\n") + "]}";
       },
       cluster},
      {"sources of a cluster", 10'000,
       [](int count) {
         return "name: c\ndevice: t4\nnodes: 1\ndevices_per_node: 8\nsources:\n" +
                Times(count, "  key#: its source\n");
       },
       cluster},
      {"workloads of a calibration", 10'000,
       [](int count) {
         return "name: c\ndevice: t4\nnodes: 1\ndevices_per_node: 8\ncalibration:\n"
                "  residual_log_sd: 0.1\n  scatter:\n" +
                Times(count, "    w#: {compute: 0.1, sync: 0.2}\n") +
                "  range:\n    max_workers: 1\n    max_nodes: 1\n    max_devices_per_node: 1\n"
                "    local_batch:\n" +
                Times(count, "      w#: {min: 1, max: 2}\n");
       },
       cluster},
      {"hosts measured alone", 100'000,
       [](int count) {
         return "name: c\ndevice: t4\nnodes: 1\ndevices_per_node: 8\ncalibration:\n"
                "  residual_log_sd: 0.1\n  range: {max_workers: 1, max_nodes: 1, "
                "max_devices_per_node: 1, hosts_alone: h" +
                Times(count, "#+h") + "}\n";
       },
       cluster},
      {"aliases of a device", 10'000,
       [](int count) {
         return "name: c\ndevice: {name: d, aliases: [" + Times(count, "alias#, ") +
                "d]}\nnodes: 1\ndevices_per_node: 8\n";
       },
       cluster},
      {"layers of a workload", 20'000,
       [](int count) {
         return "name: w\nlayers:\n" +
                Times(count,
                      "  - {name: l#, kind: dense, tensors: [100, 10], operation: dense "
                      "inputs=10 units=10 bias=yes}\n");
       },
       [](const std::string& text) { ParseWorkload(text, "w.yaml"); }},
      {"tensors of a layer", 100'000,
       [](int count) {
         return "name: w\nlayers:\n  - {kind: dense, tensors: [1" + Times(count, ", 1#") + "]}\n";
       },
       [](const std::string& text) { ParseWorkload(text, "w.yaml"); }},
      {"points of a profile", 100'000,
       [](int count) {
         return R"({"stepcast_profile": 1, "backend": "onednn", "device": {"name": "d", "kind": )"
                R"("cpu", "facts": {}}, "settings": {}, "version": "1", "started": "x"})"
                "\n" +
                Times(count, R"({"operation": "dense inputs=512 units=1000 bias=yes", "batch": )"
                             R"(1#, "precision": "fp32", "pass": "forward", "seconds": [0.1, 0.2]})"
                             "\n");
       },
       profile},
      {"facts and settings of a profile", 10'000,
       [](int count) {
         return R"({"stepcast_profile": 1, "backend": "onednn", "device": {"name": "d", "kind": )"
                R"("cpu", "facts": {"f": "")" +
                Times(count, R"(, "fact#": "x")") + R"(}}, "settings": {"s": "")" +
                Times(count, R"(, "set#": "x")") + R"(}, "version": "1", "started": "x"})" + "\n";
       },
       profile},
      {"times of a sample", 100'000,
       [](int count) {
         return R"({"stepcast_profile": 1, "backend": "onednn", "device": {"name": "d", "kind": )"
                R"("cpu", "facts": {}}, "settings": {}, "version": "1", "started": "x"})"
                "\n"
                R"({"operation": "dense inputs=512 units=1000 bias=yes", "batch": 1, )"
                R"("precision": "fp32", "pass": "forward", "seconds": [0.1)" +
                Times(count, ", 0.1#") + "]}\n";
       },
       profile},
      {"workloads of a saved state", 10'000,
       [](int count) {
         OnlineRecord record;
         record.cluster = record.workload = record.device = "x";
         record.scatter = 0.1;
         std::string text = FormatOnlineRecord(record);
         const std::string empty = "\"local_batch\":{";
         text.insert(text.find(empty) + empty.size(),
                     "\"w\":[1,2,3]" + Times(count, ",\"w#\":[1,2,3]"));
         return text;
       },
       [](const std::string& text) { ParseOnlineRecord(text); }},
      {"rows of an AdaptDL trace", 200'000,
       [](int count) {
         return "placement,local_bsz,step_time,sync_time\n" + Times(count, "13,6,0.75#,0.25\n");
       },
       [](const std::string& path) { ImportAdaptdl(path, "", "t4"); }, "bert_placements.csv"},
#ifdef STEPCAST_HAS_ONNX
      {"nodes of an ONNX graph", 20'000,
       [](int count) {
         Model model;
         std::string last = model.Input("x", {"4", "8"});
         const std::string weight = model.Weight("w", {8, 8});
         for (int i = 0; i < count / 2; ++i) {
           last = model.Add("MatMul", {last, weight}).output(0);
           last = model.Add("Relu", {last}).output(0);
         }
         model.graph().add_output()->set_name(last);
         return model.proto.SerializeAsString();
       },
       [](const std::string& path) { ImportOnnx(path, {}); }, "net.onnx"},
#endif
      // A forward operator and its backward node each.
      {"operators of a PyTorch trace", 200'000,
       [](int count) {
         return "{\"traceEvents\": [\n" +
                Times(
                    count,
                    R"({"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, )"
                    R"("ts": 1#0, "dur": 4, "args": {"Sequence number": #, "Fwd thread id": 0, )"
                    R"("Input Dims": [[4, 6]], "Input type": ["float"]}},)"
                    "\n"
                    R"({"ph": "X", "cat": "cpu_op", "name": "ReluBackward0", "pid": 1, "tid": 2, )"
                    R"("ts": 1#5, "dur": 4, "args": {"Sequence number": #, "Fwd thread id": 1}},)"
                    "\n") +
                R"({"ph": "M"}]})";
       },
       [](const std::string& path) { ImportKineto(path); }, "trace.json"},
      // A collective's call, its launch and its kernel, and one that computes.
      {"collectives of a rank's trace", 100'000,
       [](int count) {
         return "{\"traceEvents\": [\n" +
                Times(
                    count,
                    R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, )"
                    R"("tid": 1, "ts": 1#0, "dur": 4, "args": {"External id": #, )"
                    R"("Collective name": "allreduce", "In msg nelems": 9, "Out msg nelems": 9, )"
                    R"("dtype": "Float", "Group size": 1, "Process Group Name": "0"}},)"
                    "\n"
                    R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, )"
                    R"("tid": 1, "ts": 1#1, "dur": 1, "args": {"correlation": #}},)"
                    "\n"
                    R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, )"
                    R"("tid": 9, "ts": 1#2, "dur": 5, "args": {"device": 0, "correlation": #}},)"
                    "\n"
                    R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, )"
                    R"("ts": 1#4, "dur": 5, "args": {"device": 0}},)"
                    "\n") +
                R"({"ph": "M"}]})";
       },
       [](const std::string& path) { ImportKinetoRanks({path}); }, "rank0.json"}};
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_READER_INPUTS_H_
