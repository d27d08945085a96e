// What each event and each head of a trace says. What is made of them is tested where they are
// imported.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/kineto/trace.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

KinetoTrace Read(const std::string& text) {
  const TempFolder folder;
  return ReadKinetoTrace(folder.Write("trace.json", text));
}

// An operator of process and thread 1, with more fields behind.
std::string EventWith(const std::string& more, const std::string& start = "1",
                      const std::string& duration = "2", const std::string& category = "cpu_op") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": "aten::mm", "ts": )" + start +
         R"(, "dur": )" + duration + (more.empty() ? R"(, "pid": 1, "tid": 1)" : ", " + more) + "}";
}
KinetoTrace ReadEvents(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += (text.empty() ? "" : ",\n") + event;
  return Read("{\"traceEvents\": [\n" + text + "\n]}\n");
}

// ---- Categories and times.

// The names of PyTorch 1.8 and of 2.x, of CUDA, ROCm and XPU; nothing for what is no event here.
TEST(KinetoTrace, Categories) {
  using C = KinetoCategory;
  const std::pair<const char*, std::optional<C>> cases[] = {{"", C::kOperator},
                                                            {"cpu_op", C::kOperator},
                                                            {"Operator", C::kOperator},
                                                            {"user_annotation", C::kAnnotation},
                                                            {"cuda_runtime", C::kLaunch},
                                                            {"cuda_driver", C::kLaunch},
                                                            {"hip_runtime", C::kLaunch},
                                                            {"xpu_runtime", C::kLaunch},
                                                            {"Runtime", C::kLaunch},
                                                            {"kernel", C::kKernel},
                                                            {"Kernel", C::kKernel},
                                                            {"gpu_memcpy", C::kTransfer},
                                                            {"Memcpy", C::kTransfer},
                                                            {"gpu_memset", C::kTransfer},
                                                            {"Memset", C::kTransfer},
                                                            {"gpu_user_annotation", std::nullopt},
                                                            {"python_function", std::nullopt},
                                                            {"cpu_instant_event", std::nullopt},
                                                            {"KERNEL", std::nullopt}};
  for (const auto& [name, category] : cases) {
    SCOPED_TRACE(name);
    const KinetoTrace trace = ReadEvents({EventWith("", "1", "2", name)});
    ASSERT_EQ(trace.events.size(), category ? 1U : 0U);
    if (!category) continue;
    EXPECT_EQ(trace.events[0].category, *category);
    const bool of_device = *category == C::kKernel || *category == C::kTransfer;
    EXPECT_EQ(trace.events[0].of_device(), of_device);
    EXPECT_EQ(trace.threads, of_device ? 0 : 1) << "threads are the host's";
  }
}

// Only what has a beginning and a length.
TEST(KinetoTrace, PhasesOfOtherKinds) {
  for (const char* phase : {"B", "E", "i", "XX", ""}) {
    EXPECT_TRUE(
        ReadEvents({std::string(R"({"name": "a", "ts": 1, "dur": 1, "ph": ")") + phase + R"("})"})
            .events.empty())
        << phase;
  }
}

// Microseconds, with what a double would round.
TEST(KinetoTrace, TimesInNanoseconds) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"0", 0},
      {"3", 3000},
      {"1.5", 1500},
      {"0.05", 50},
      {"0.005", 5},
      {"1.2349", 1234},
      {"7.0", 7000},
      {"-1.5", -1500},
      {"-2", -2000},
      {"1e3", 1'000'000},
      {"2.5e2", 250'000},
      {"1.2345e3", 1'234'500},
      {"1.2345E3", 1'234'500},
      {"1.5e-1", 150},
      {"\"12.25\"", 12'250},
      {"\"1666149715033200.125\"", 1'666'149'715'033'200'125},
      {"4e15", 4'000'000'000'000'000'000},
      {"4000000000000000", 4'000'000'000'000'000'000}};
  for (const auto& [text, ns] : cases) {
    const KinetoTrace trace = ReadEvents({EventWith("", text, "0.25")});
    ASSERT_EQ(trace.events.size(), 1U) << text;
    EXPECT_EQ(trace.events[0].start, ns) << text;
    EXPECT_EQ(trace.events[0].duration, 250) << text;
    EXPECT_EQ(trace.events[0].end(), ns + 250) << text;
  }
  for (const char* text : {"4000000000000001", "-4000000000000001", "true", "null"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { ReadEvents({EventWith("", text)}); }), "is not a time")) << text;
  }
  EXPECT_EQ(ReadEvents({EventWith("", "1", "1000000000000")}).events[0].duration,
            1'000'000'000'000'000);
}

// ---- Who and what.

// A thread is one of its process; those of devices are none.
TEST(KinetoTrace, ThreadsOfProcesses) {
  const KinetoTrace trace =
      ReadEvents({EventWith(R"("pid": 1, "tid": 23)"), EventWith(R"("pid": 1, "tid": 4)"),
                  EventWith(R"("pid": 12, "tid": 3)"), EventWith(R"("tid": 23, "pid": 1)"),
                  EventWith(R"("pid": 9, "tid": 9)", "1", "2", "kernel"),
                  EventWith(R"("pid": "1", "tid": "4")", "1", "2", "cuda_runtime")});
  std::vector<int> threads;
  for (const KinetoEvent& event : trace.events) threads.push_back(event.thread);
  EXPECT_EQ(threads, (std::vector<int>{0, 1, 2, 0, 0, 1}));
  EXPECT_EQ(trace.threads, 3);
}

TEST(KinetoTrace, NumbersOfAnEvent) {
  const std::string all =
      R"("args": {"External id": 4, "correlation": 5, "Sequence number": 6, "Fwd thread id": 7,
                  "device": 65538})";
  const KinetoTrace trace = ReadEvents(
      {EventWith(all), EventWith(""),
       EventWith(R"("args": {"External id": 1.5, "correlation": "x", "Sequence number": true})"),
       EventWith(R"("args": {"External id": "8", "correlation": 99999999999999999999})"),
       EventWith(R"("args": {"external id": 3, "device": 2})")});
  ASSERT_EQ(trace.events.size(), 5U);
  EXPECT_EQ(trace.events[0].external, 4);
  EXPECT_EQ(trace.events[0].correlation, 5);
  EXPECT_EQ(trace.events[0].sequence, 6);
  EXPECT_EQ(trace.events[0].forward_thread, 7);
  EXPECT_EQ(trace.events[0].device, 2) << "of 16 bits";
  // What one event says is not the next one's.
  EXPECT_EQ(trace.events[1].external, -1);
  EXPECT_EQ(trace.events[1].correlation, -1);
  EXPECT_EQ(trace.events[1].sequence, -1);
  EXPECT_EQ(trace.events[1].forward_thread, 0);
  EXPECT_EQ(trace.events[1].device, 0);
  EXPECT_EQ(trace.events[1].inputs, -1);
  // What is no whole number is none.
  EXPECT_EQ(trace.events[2].external, -1);
  EXPECT_EQ(trace.events[2].correlation, -1);
  EXPECT_EQ(trace.events[2].sequence, -1);
  EXPECT_EQ(trace.events[3].external, 8);
  EXPECT_EQ(trace.events[3].correlation, -1);
  EXPECT_EQ(trace.events[4].external, 3);
  EXPECT_EQ(trace.events[4].device, 2);
}

TEST(KinetoTrace, ArgumentsOfAnOperator) {
  for (const auto& [dims, types] :
       {std::pair("Input Dims", "Input type"), std::pair("Input dims", "Input Type")}) {
    const KinetoTrace trace = ReadEvents(
        {EventWith(std::string(R"("args": {")") + dims + R"(": [[8, 3], [], [[2], [3, 4]]], ")" +
                   types + R"(": ["float", "", "TensorList", "Scalar"],
                       "Concrete Inputs": ["", "2", "", "True"]})")});
    const KinetoInputs* inputs = trace.InputsOf(trace.events.at(0));
    ASSERT_NE(inputs, nullptr);
    ASSERT_EQ(inputs->size(), 4U) << "a type makes an argument too";
    using Dims = std::vector<std::int64_t>;
    EXPECT_EQ((*inputs)[0].dims, (Dims{8, 3}));
    EXPECT_TRUE((*inputs)[0].list.empty());
    EXPECT_EQ((*inputs)[0].type, "float");
    EXPECT_EQ((*inputs)[0].value, "");
    EXPECT_TRUE((*inputs)[1].dims.empty());
    EXPECT_EQ((*inputs)[1].type, "");
    EXPECT_EQ((*inputs)[1].value, "2");
    EXPECT_TRUE((*inputs)[2].dims.empty());
    EXPECT_EQ((*inputs)[2].list, (std::vector<Dims>{{2}, {3, 4}}));
    EXPECT_EQ((*inputs)[2].type, "TensorList");
    EXPECT_EQ((*inputs)[3].type, "Scalar");
    EXPECT_EQ((*inputs)[3].value, "True");
  }
}

// Arguments that repeat are kept once; what differs in any of their parts is not the same.
TEST(KinetoTrace, ArgumentsAreKeptOnce) {
  const auto with = [](const char* dims, const char* types, const char* values) {
    return EventWith(std::string(R"("args": {"Input Dims": )") + dims + R"(, "Input type": )" +
                     types + R"(, "Concrete Inputs": )" + values + "}");
  };
  const KinetoTrace trace =
      ReadEvents({with("[[2]]", R"(["float"])", "[]"), with("[[2]]", R"(["int"])", "[]"),
                  with("[[2]]", R"(["float"])", R"(["1"])"), with("[[3]]", R"(["float"])", "[]"),
                  with("[[2]]", R"(["float"])", "[]"),
                  // Texts of the one are not those of the other.
                  with("[[2]]", "[]", R"(["float"])"), EventWith("")});
  std::vector<int> numbers;
  for (const KinetoEvent& event : trace.events) numbers.push_back(event.inputs);
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 0, 4, -1}));
  EXPECT_EQ(trace.inputs.size(), 5U);
  EXPECT_EQ(trace.InputsOf(trace.events.back()), nullptr);
  EXPECT_EQ(trace.names, (std::vector<std::string>{"aten::mm"}));
  EXPECT_EQ(trace.NameOf(trace.events.back()), "aten::mm");
}

// An event has arguments of its own alone, and only an operator has shapes.
TEST(KinetoTrace, ArgumentsOfOthers) {
  const KinetoTrace trace =
      ReadEvents({EventWith(R"("other": {"Input Dims": [[9]], "External id": 3},
                    "args": {"nested": {"Input Dims": [[9]], "External id": 3},
                             "Input Dims": [[8]], "more": [[7]]},
                    "last": {"External id": 4, "Input Dims": [[6]]})"),
                  EventWith(R"("args": {"Input Dims": [[8]], "name": "b", "ts": 9, "ph": "i"})",
                            "1", "2", "kernel")});
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].external, -1);
  ASSERT_EQ(trace.inputs.size(), 1U);
  ASSERT_EQ(trace.inputs[0].size(), 1U);
  EXPECT_EQ(trace.inputs[0][0].dims, (std::vector<std::int64_t>{8}));
  EXPECT_EQ(trace.events[1].inputs, -1);
  EXPECT_EQ(trace.events[1].start, 1000);
  EXPECT_EQ(trace.NameOf(trace.events[1]), "aten::mm");
}

TEST(KinetoTrace, LongestLengths) {
  const auto read = [](const std::string& length) {
    return ReadEvents({EventWith(R"("args": {"Input Dims": [[)" + length + "]]}")});
  };
  EXPECT_EQ(read("1000000000000").inputs[0][0].dims[0], 1'000'000'000'000);
  EXPECT_EQ(read("0").inputs[0][0].dims[0], 0);
  EXPECT_TRUE(Says(ErrorOf([&] { read("1000000000001"); }),
                   ":2: Input Dims: '[[1000000000001]]' is not a list of shapes"));
}

// ---- The head.

TEST(KinetoTrace, FactsOfTheFile) {
  const KinetoTrace trace = Read(R"({"deviceProperties": [
    {"id": 65539, "name": "A", "other": {"name": "B"}, "computeMajor": 8, "computeMinor": 6},
    {"id": "x", "numSms": 7, "computeMajor": 9}],
    "distributedInfo": {"rank": 1, "pg_config": [{"rank": 5}], "more": {"rank": 6},
                        "backend": "nccl", "world_size": 2},
    "hip_runtime_version": 60, "hip_driver_version": 61, "cuda_driver_version": 12,
    "nested": {"pytorch_version": "9", "baseTimeNanoseconds": 3},
    "torch_version": "2.1", "baseTimeNanoseconds": 17, "with_modules": "True", "with_flops": 0,
    "traceEvents": [], "profile_memory": "1", "with_stack": "yes"})");
  ASSERT_EQ(trace.devices.size(), 2U);
  using Texts = std::map<std::string, std::string>;
  EXPECT_EQ(trace.devices[0].id, 3);
  EXPECT_EQ(trace.devices[0].name, "A");
  EXPECT_EQ(trace.devices[0].facts, (Texts{{"compute_capability", "8.6"}}));
  EXPECT_EQ(trace.devices[1].id, 0xffff) << "what is no number is no device of an event";
  EXPECT_EQ(trace.devices[1].name, "");
  EXPECT_EQ(trace.devices[1].facts, (Texts{{"compute_capability", "9"}, {"multiprocessors", "7"}}));
  EXPECT_EQ(trace.distributed, (Texts{{"rank", "1"}, {"backend", "nccl"}, {"world_size", "2"}}));
  EXPECT_EQ(trace.facts, (Texts{{"hip_runtime_version", "60"},
                                {"hip_driver_version", "61"},
                                {"cuda_driver_version", "12"}}));
  EXPECT_EQ(trace.settings, (Texts{{"pytorch", "2.1"},
                                   {"with_modules", "yes"},
                                   {"with_flops", "no"},
                                   {"profile_memory", "yes"},
                                   {"with_stack", "no"}}));
  EXPECT_EQ(trace.base_time, 17);
  EXPECT_EQ(Read(R"({"traceEvents": [], "baseTimeNanoseconds": "soon"})").base_time, 0);
}

TEST(KinetoTrace, LongestFacts) {
  const auto read = [](std::size_t length) {
    return Read(R"({"traceEvents": [], "pytorch_version": ")" + std::string(length, '2') + "\"}");
  };
  EXPECT_EQ(read(1000).settings.at("pytorch").size(), 1000U);
  EXPECT_TRUE(Says(ErrorOf([&] { read(1001); }), "is too long; allowed: at most 1000 bytes"));
}

TEST(KinetoTrace, DeepestJson) {
  const auto read = [](std::size_t lists) {
    return Read("{\"x\": " + std::string(lists, '[') + std::string(lists, ']') +
                ", \"traceEvents\": [" + EventWith("") + "]}");
  };
  EXPECT_EQ(read(63).events.size(), 1U);  // and the object around
  EXPECT_TRUE(Says(ErrorOf([&] { read(64); }), "is nested too deeply"));
}

// ---- Bytes.

TEST(KinetoTrace, MarksAndBlanksAround) {
  EXPECT_EQ(Read("\xef\xbb\xbf{\"traceEvents\": [" + EventWith("") + "]} \n\n").events.size(), 1U);
}

// Lines and bytes are counted over the whole file, however often the buffer is filled.
TEST(KinetoTrace, PlacesFarBehind) {
  const std::string head = "{\"traceEvents\": [\n";
  for (const std::size_t lines : {10U, 300'000U, 700'000U}) {
    const std::string blank(lines, '\n');
    const std::string line = ":" + std::to_string(lines + 2) + ": ";
    const std::size_t byte = head.size() + lines + 1;
    EXPECT_TRUE(Says(ErrorOf([&] { Read(head + blank + "x"); }),
                     line + "byte " + std::to_string(byte) + ": is not JSON"));
    EXPECT_TRUE(Says(ErrorOf([&] { Read(head + blank + "7]}"); }), line + "traceEvents: '7'"));
    EXPECT_TRUE(Says(ErrorOf([&] { Read(head + blank); }), line + "ends before its JSON does"));
  }
}

}  // namespace
}  // namespace stepcast
