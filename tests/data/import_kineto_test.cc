#include "data/kineto/import_kineto.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/kineto/layers.h"
#include "data/values/operation_text.h"
#include "tests/support/input_error.h"
#include "tests/support/memory_peak.h"
#include "tests/support/temp_file.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPCAST_TEST_SANITIZED 1
#endif

namespace stepcast {
namespace {

// ---- Traces, written as PyTorch writes them.

class Trace {
 public:
  // Head: fields of the file beside the events.
  explicit Trace(std::string head = R"("deviceProperties": [])") : head_(std::move(head)) {}

  Trace& Event(const std::string& category, const std::string& name, double start, double duration,
               int thread, const std::string& arguments = "") {
    std::ostringstream out;
    out << R"({"ph": "X", "cat": ")" << category << R"(", "name": ")" << name << R"(", "pid": 7, )"
        << R"("tid": )" << thread << R"(, "ts": )" << 1000 + start << R"(, "dur": )" << duration
        << R"(, "args": {)" << arguments << "}}";
    return Raw(out.str());
  }
  Trace& Raw(const std::string& event) {
    events_ += (events_.empty() ? "" : ",\n") + event;
    return *this;
  }
  std::string Text() const {
    return "{\n\"schemaVersion\": 1,\n" + head_ + ",\n\"traceEvents\": [\n" + events_ + "\n]}\n";
  }

 private:
  std::string head_;
  std::string events_;
};

constexpr int kMain = 1;
constexpr int kEngine = 2;  // the thread of the backward pass

std::string Sequence(int number, bool node = false) {
  return R"("Sequence number": )" + std::to_string(number) + R"(, "Fwd thread id": )" +
         (node ? "1" : "0");
}
std::string Inputs(const std::string& dims, const std::string& types,
                   const std::string& values = "") {
  return R"("Input Dims": )" + dims + R"(, "Input type": )" + types +
         (values.empty() ? "" : R"(, "Concrete Inputs": )" + values);
}
std::string With(const std::string& a, const std::string& b) { return a + ", " + b; }

// Whatever is imported, the profile that is written of it is read again.
KinetoImport Import(const std::string& text) {
  const TempFolder folder;
  KinetoImport import = ImportKineto(folder.Write("trace.json", text));
  const ReadProfile read = ParseComputeProfile(FormatComputeProfile(import.profile), "profile");
  EXPECT_EQ(read.profile.samples.size(), import.profile.samples.size());
  for (std::size_t i = 0; i < import.profile.samples.size(); ++i) {
    EXPECT_EQ(read.profile.samples[i].point, import.profile.samples[i].point);
    EXPECT_EQ(read.profile.samples[i].seconds.size(), import.profile.samples[i].seconds.size());
  }
  return import;
}
KinetoImport Import(const Trace& trace) { return Import(trace.Text()); }

// "b8 fp32 forward dense inputs=4 units=2: 0.000030 0.000040", in the order of the profile.
std::vector<std::string> Lines(const KinetoImport& import) {
  std::vector<std::string> lines;
  for (const MeasuredSamples& samples : import.profile.samples) {
    std::string line = "b" + std::to_string(samples.point.batch) + " " +
                       kPrecisionNames[static_cast<int>(samples.point.precision)] + " " +
                       kTrainingPassNames[static_cast<int>(samples.point.pass)] + " " +
                       FormatOperation(samples.point.operation) + ":";
    for (const double s : samples.seconds) {
      char text[32];
      std::snprintf(text, sizeof text, " %.7g", s * 1e6);
      line += text;
    }
    lines.push_back(line);
  }
  return lines;
}

// Microseconds by name.
std::string Unattributed(const KinetoImport& import) {
  std::string text;
  for (const auto& [name, seconds] : import.summary.unattributed_s) {
    char line[200];
    std::snprintf(line, sizeof line, "%s %.7g\n", name.c_str(), seconds * 1e6);
    text += line;
  }
  return text;
}

// ---- A CPU, as PyTorch 1.13 writes it: no numbers among the arguments, one thread.

// One step of conv 3x3 of stride 2, batch norm, relu, linear; with momentum.
void CpuStep(Trace* trace, double t, int sequence, const std::string& name) {
  const std::string two = R"(["float", "float"])";
  const auto node = [&](const std::string& what, int number, double start, double duration,
                        const std::string& dims) {
    trace->Event("cpu_op", "autograd::engine::evaluate_function: " + what, t + start, duration,
                 kMain, Sequence(number, true));
    trace->Event("cpu_op", what, t + start + 1, duration - 1, kMain,
                 With(Sequence(number, true), Inputs(dims, R"(["float"])")));
  };
  const auto gradient = [&](double start, const std::string& dims) {
    trace->Event("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                 t + start, 2, kMain);
    trace->Event("cpu_op", "torch::autograd::AccumulateGrad", t + start, 1, kMain,
                 Inputs(dims, R"(["float"])"));
  };
  trace->Event("user_annotation", name, t, 1000, kMain);
  const std::string conv = Inputs("[[4, 3, 8, 8], [6, 3, 3, 3], [], [], [], [], []]",
                                  R"(["float", "float", "", "", "", "", "Scalar"])");
  trace->Event("cpu_op", "aten::conv2d", t + 10, 100, kMain, With(Sequence(sequence), conv));
  trace->Event("cpu_op", "aten::convolution", t + 11, 98, kMain, With(Sequence(sequence), conv));
  trace->Event("cpu_op", "aten::mkldnn_convolution", t + 12, 96, kMain, conv);
  // The number of batches, which is no layer.
  trace->Event("cpu_op", "aten::add_", t + 111, 2, kMain,
               With(Sequence(sequence + 1),
                    Inputs("[[], [], []]", R"(["long int", "long int", "Scalar"])")));
  trace->Event("cpu_op", "aten::batch_norm", t + 115, 50, kMain,
               With(Sequence(sequence + 1), Inputs("[[4, 6, 4, 4], [6], [6], [6], [6]]",
                                                   R"(["float", "float", "float"])")));
  trace->Event("cpu_op", "aten::native_batch_norm", t + 116, 48, kMain, Sequence(sequence + 1));
  trace->Event("cpu_op", "aten::relu_", t + 170, 20, kMain,
               With(Sequence(sequence + 2), Inputs("[[4, 6, 4, 4]]", R"(["float"])")));
  trace->Event("cpu_op", "aten::flatten", t + 191, 3, kMain, Sequence(sequence + 3));
  trace->Event("cpu_op", "aten::linear", t + 195, 40, kMain,
               With(Sequence(sequence + 4),
                    Inputs("[[4, 96], [5, 96], [5]]", R"(["float", "float", "float"])")));
  trace->Event("cpu_op", "aten::t", t + 196, 4, kMain, Sequence(sequence + 4));
  trace->Event("cpu_op", "aten::addmm", t + 201, 33, kMain,
               With(Sequence(sequence + 5), Inputs("[[5], [4, 96], [96, 5], [], []]",
                                                   R"(["float", "float", "float", "Scalar"])")));

  node("AddmmBackward0", sequence + 5, 300, 80, "[[4, 5]]");
  trace->Event("cpu_op", "aten::mm", t + 305, 30, kMain, Inputs("[[4, 5], [5, 96]]", two));
  trace->Event("cpu_op", "aten::mm", t + 340, 30, kMain, Inputs("[[5, 4], [4, 96]]", two));
  gradient(381, "[[5]]");
  node("TBackward0", sequence + 4, 384, 5, "[[96, 5]]");
  gradient(390, "[[5, 96]]");
  node("ReluBackward0", sequence + 2, 400, 15, "[[4, 6, 4, 4]]");
  node("NativeBatchNormBackward0", sequence + 1, 420, 60, "[[4, 6, 4, 4]]");
  gradient(481, "[[6]]");
  gradient(484, "[[6]]");
  node("ConvolutionBackward0", sequence, 500, 150, "[[4, 6, 4, 4]]");
  gradient(651, "[[6, 3, 3, 3]]");

  trace->Event("user_annotation", "Optimizer.step#SGD.step", t + 700, 90, kMain);
  for (const char* dims :
       {"[[6, 3, 3, 3], []]", "[[6], []]", "[[6], []]", "[[5, 96], []]", "[[5], []]"}) {
    trace->Event("cpu_op", "aten::mul_", t + 710, 1, kMain, Inputs(dims, two));
    trace->Event("cpu_op", "aten::add_", t + 712, 1, kMain, Inputs(dims, two));
    trace->Event("cpu_op", "aten::add_", t + 714, 1, kMain, Inputs(dims, two));
  }
}

Trace CpuTrace() {
  Trace trace;
  CpuStep(&trace, 0, 30, "ProfilerStep#1");
  CpuStep(&trace, 1000, 60, "ProfilerStep#2");
  trace.Event("user_annotation", "ProfilerStep#3", 2000, 4, kMain);  // the profiler is stopped
  return trace;
}

TEST(ImportKineto, StepsOnACpu) {
  const KinetoImport import = Import(CpuTrace());
  const std::string conv =
      "convolution channels=3 input=8x8 filters=6 kernel=3x3 stride=2x2 padding=1,1,1,1 "
      "input_gradient=no";
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{
                "b4 fp32 forward " + conv + ": 100 100",
                "b4 fp32 forward normalization kind=batch channels=6 input=4x4: 50 50",
                "b4 fp32 forward activation function=relu columns=96: 20 20",
                "b4 fp32 forward dense inputs=96 units=5 bias=yes: 40 40",
                "b4 fp32 backward dense inputs=96 units=5 bias=yes: 85 85",
                "b4 fp32 backward activation function=relu columns=96: 15 15",
                "b4 fp32 backward normalization kind=batch channels=6 input=4x4: 60 60",
                "b4 fp32 backward " + conv + ": 150 150",
                "b1 fp32 update update optimizer=momentum parameters=659: 90 90"}));
  EXPECT_EQ(Unattributed(import),
            "aten::add_ 4\naten::flatten 6\ntorch::autograd::AccumulateGrad 20\n");
  EXPECT_EQ(import.summary.steps, 2) << "nothing is trained in the third";
  EXPECT_DOUBLE_EQ(import.summary.step_time_s, 1e-3);
  EXPECT_EQ(import.summary.device_busy_share, 0);
  EXPECT_TRUE(import.summary.kernels.empty());
  EXPECT_EQ(import.profile.backend, "kineto");
  EXPECT_EQ(import.profile.device.name, "cpu");
  EXPECT_EQ(import.profile.device.kind, "cpu");
  EXPECT_EQ(import.profile.settings.at("steps"), "2");
  EXPECT_EQ(import.profile.settings.at("source"), "trace.json");
  EXPECT_EQ(import.profile.settings.count("convolutions"), 1U) << "strides are not in the trace";
  EXPECT_EQ(import.profile.started, "") << "the clock began with the machine";
}

TEST(ImportKineto, WhatIsImportedIsAProfile) {
  const ComputeProfile profile = Import(CpuTrace()).profile;
  const std::string text = FormatComputeProfile(profile);
  EXPECT_EQ(FormatComputeProfile(ParseComputeProfile(text, "profile").profile), text);
}

// Events may come in any order, and fields too.
TEST(ImportKineto, OrderDoesNotMatter) {
  Trace turned;
  turned.Event("user_annotation", "ProfilerStep#3", 2000, 4, kMain);
  CpuStep(&turned, 1000, 60, "ProfilerStep#2");
  CpuStep(&turned, 0, 30, "ProfilerStep#1");
  EXPECT_EQ(Lines(Import(turned)), Lines(Import(CpuTrace())));
  EXPECT_EQ(Unattributed(Import(turned)), Unattributed(Import(CpuTrace())));
}

// ---- A GPU, as PyTorch 2 writes it.

constexpr const char* kHead =
    R"("deviceProperties": [{"id": 0, "name": "NVIDIA A", "totalGlobalMem": 1000},
      {"id": 1, "name": "NVIDIA H200", "totalGlobalMem": 2000, "computeMajor": 9, "computeMinor": 0,
       "numSms": 132}],
  "cuda_runtime_version": 12040, "with_stack": 1, "pytorch_version": "2.4.1",
  "with_flops": true, "with_modules": false, "profile_memory": 0,
  "baseTimeNanoseconds": 1767189312000000000)";

class GpuTrace : public Trace {
 public:
  GpuTrace() : Trace(kHead) {}

  // A launch at `start` of the thread, and what it launches.
  void Kernel(double start, int thread, double begin, double duration,
              const std::string& name = "some_kernel", const std::string& kind = "kernel") {
    const std::string id = std::to_string(++correlation_);
    Event("cuda_runtime", "cudaLaunchKernel", start, 1, thread, R"("correlation": )" + id);
    Event(kind, name, begin, duration, 7, R"("device": 1, "stream": 7, "correlation": )" + id);
  }
  void Node(const std::string& what, int number, double start, double duration,
            const std::string& dims) {
    Event("cpu_op", "autograd::engine::evaluate_function: " + what, start, duration, kEngine,
          Sequence(number, true));
    Event("cpu_op", what, start + 1, duration - 5, kEngine,
          With(Sequence(number, true), Inputs(dims, R"(["c10::Half"])", R"([""])")));
  }

 private:
  int correlation_ = 100;
};

const char* const kConvTypes =
    R"(["c10::Half", "c10::Half", "c10::Half", "ScalarList", "ScalarList", "ScalarList", "Scalar"])";

TEST(ImportKineto, StepsOnAGpu) {
  GpuTrace trace;
  trace.Event("user_annotation", "ProfilerStep#5", 0, 2000, kMain);
  trace.Event("gpu_user_annotation", "ProfilerStep#5", 0, 1500, 7);
  const std::string dims = "[[8, 4, 10, 12], [6, 2, 3, 5], [6], [], [], [], []]";
  const std::string values = R"(["", "", "", "[2, 1]", "[1, 2]", "[1, 1]", "2"])";
  // Mixed precision: the arguments are converted first, and that is no part of the layer.
  trace.Event("cpu_op", "aten::conv2d", 10, 90, kMain,
              With(Sequence(3), Inputs(dims, R"(["float", "float", "float"])", values)));
  trace.Event("cpu_op", "aten::to", 11, 10, kMain, Sequence(3));
  trace.Event("cpu_op", "aten::copy_", 12, 8, kMain);
  trace.Kernel(13, kMain, 100, 7);
  trace.Event("cpu_op", "aten::conv2d", 30, 60, kMain,
              With(Sequence(3), Inputs(dims, kConvTypes, values)));
  trace.Event(
      "cpu_op", "aten::convolution", 31, 58, kMain,
      With(Sequence(3),
           Inputs(dims, kConvTypes,
                  R"(["", "", "", "[2, 1]", "[1, 2]", "[1, 1]", "False", "[0, 0]", "2"])")));
  trace.Kernel(40, kMain, 110, 30, "nhwc_transform");
  trace.Kernel(45, kMain, 140, 50, "implicit_gemm");
  // Outside of any step's operators.
  trace.Kernel(110, kMain, 190, 5, "mine");
  trace.Event("cpu_op", "aten::linear", 120, 50, kMain,
              With(Sequence(4), Inputs("[[8, 3, 16], [5, 16], []]", R"(["float", "float", ""])",
                                       R"(["", "", ""])")));
  trace.Event("cpu_op", "aten::matmul", 121, 48, kMain, Sequence(4));
  trace.Event("cpu_op", "aten::mm", 125, 30, kMain,
              With(Sequence(6), Inputs("[[24, 16], [16, 5]]", R"(["float", "float"])")));
  trace.Kernel(130, kMain, 200, 40, "sm90_xmma_gemm_f32f32_tf32f32_f32_tn");
  // On the CPU by itself: not timed.
  trace.Event("cpu_op", "aten::relu", 180, 5, kMain,
              With(Sequence(7), Inputs("[[8, 5]]", R"(["float"])")));

  trace.Node("MmBackward0", 6, 300, 60, "[[24, 5]]");
  trace.Event("cpu_op", "aten::mm", 310, 20, kEngine);
  trace.Kernel(315, kEngine, 400, 45);
  trace.Event("cpu_op", "aten::mm", 331, 20, kEngine);
  trace.Kernel(335, kEngine, 445, 35);
  trace.Node("ConvolutionBackward0", 3, 400, 100, "[[8, 6, 5, 12]]");
  trace.Event(
      "cpu_op", "aten::convolution_backward", 405, 80, kEngine,
      Inputs(
          "[[8, 6, 5, 12], [8, 4, 10, 12], [6, 2, 3, 5], [], [], [], [], [], [], [], []]",
          R"(["c10::Half"])",
          R"(["", "", "", "[6]", "[2, 1]", "[1, 2]", "[1, 1]", "False", "[0, 0]", "2", "[False, True, True]"])"));
  trace.Kernel(410, kEngine, 480, 20, "Memset (Device)", "gpu_memset");
  trace.Kernel(420, kEngine, 500, 100, "wgrad");
  trace.Event("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 510,
              100, kEngine);
  trace.Event("cpu_op", "torch::autograd::AccumulateGrad", 511, 90, kEngine,
              Inputs("[[6, 2, 3, 5]]", R"(["float"])"));
  trace.Event("cpu_op", "c10d::allreduce_", 520, 60, kEngine);
  trace.Event("cpu_op", "nccl:all_reduce", 521, 50, kEngine);
  trace.Kernel(530, kEngine, 600, 300, "ncclDevKernel");

  trace.Event("user_annotation", "Optimizer.step#AdamW.step", 1000, 100, kMain);
  trace.Event("cpu_op", "aten::_fused_adamw_", 1010, 80, kMain,
              Inputs("[[[6, 2, 3, 5], [6], [5, 16]], [[6, 2, 3, 5], [6], [5, 16]]]",
                     R"(["TensorList", "TensorList"])", R"(["", ""])"));
  trace.Kernel(1020, kMain, 1100, 25, "adamw");
  // Launched before the trace began; and an operator that is known by its number alone.
  trace.Event("kernel", "old", 1, 2, 7, R"("device": 1, "correlation": 5)");
  trace.Event("cpu_op", "aten::sort", 1200, 20, kMain, R"("External id": 77)");
  trace.Event("kernel", "sort", 1300, 11, 7, R"("device": 1, "correlation": 9, "External id": 77)");

  const KinetoImport import = Import(trace);
  const std::string conv =
      "convolution channels=4 input=10x12 filters=6 kernel=3x5 stride=2x1 padding=1,2,1,2 groups=2 "
      "bias=yes input_gradient=no";
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{"b8 fp16 forward " + conv + ": 80",
                                      "b8 tf32 forward dense positions=3 inputs=16 units=5: 40",
                                      "b8 tf32 backward dense positions=3 inputs=16 units=5: 80",
                                      "b8 fp16 backward " + conv + ": 120",
                                      "b1 fp32 update update optimizer=adam parameters=266: 25"}));
  EXPECT_EQ(import.profile.samples.back().algorithm, "fused");
  EXPECT_EQ(Unattributed(import),
            "aten::sort 11\naten::to 7\nc10d::allreduce_ 300\nkernels launched before the trace "
            "2\nkernels of no operator 5\n");
  EXPECT_EQ(import.summary.steps, 1);
  EXPECT_DOUBLE_EQ(import.summary.step_time_s, 2e-3);
  // 1-3, 100-107, 110-195, 200-240, 400-900, 1100-1125 and 1300-1311 of 2000.
  EXPECT_NEAR(import.summary.device_busy_share, (2 + 7 + 85 + 40 + 500 + 25 + 11) / 2000.0, 1e-9);
  ASSERT_EQ(import.summary.kernels.size(), 11U);
  EXPECT_EQ(import.summary.kernels[0].name, "ncclDevKernel");
  EXPECT_EQ(import.summary.kernels[1].name, "wgrad");
  EXPECT_EQ(import.summary.kernels[2].name, "some_kernel");
  EXPECT_EQ(import.summary.kernels[2].calls, 3);
  EXPECT_NEAR(import.summary.kernels[2].total_s, 87e-6, 1e-12);
  EXPECT_NEAR(import.summary.kernels[2].mean_s, 29e-6, 1e-12);
  const ComputeProfile& profile = import.profile;
  EXPECT_EQ(profile.device.name, "NVIDIA H200");
  EXPECT_EQ(profile.device.kind, "gpu");
  EXPECT_EQ(profile.device.facts.at("memory"), "2000 B");
  EXPECT_EQ(profile.device.facts.at("compute_capability"), "9.0");
  EXPECT_EQ(profile.device.facts.at("multiprocessors"), "132");
  EXPECT_EQ(profile.device.facts.at("cuda_runtime_version"), "12040");
  EXPECT_EQ(profile.settings.at("pytorch"), "2.4.1");
  EXPECT_EQ(profile.settings.at("with_stack"), "yes");
  EXPECT_EQ(profile.settings.at("with_flops"), "yes") << "as other versions write it";
  EXPECT_EQ(profile.settings.at("with_modules"), "no");
  EXPECT_EQ(profile.settings.at("profile_memory"), "no");
  EXPECT_EQ(profile.settings.at("calls_without_time"), "1");
  EXPECT_EQ(profile.settings.count("convolutions"), 0U);
  EXPECT_EQ(profile.started, "2025-12-31T13:55:12Z");
}

// Kernels of several streams run side by side: the device is busy once. Data that have a gradient,
// as the mask of the first convolution says, are differentiated.
TEST(ImportKineto, OverlappingKernelsAndMasks) {
  for (const std::string first : {"True", "False"}) {
    GpuTrace trace;
    trace.Event("user_annotation", "ProfilerStep#5", 0, 1000, kMain);
    trace.Event(
        "cpu_op", "aten::conv2d", 10, 60, kMain,
        With(Sequence(3), Inputs("[[8, 4, 10, 12], [6, 4, 3, 3], [], [], [], [], []]", kConvTypes,
                                 R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])")));
    trace.Event(
        "cpu_op", "aten::convolution", 11, 58, kMain,
        With(Sequence(3),
             Inputs("[[8, 4, 10, 12], [6, 4, 3, 3], [], [], [], [], []]", kConvTypes,
                    R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])")));
    trace.Kernel(20, kMain, 100, 100, "gemm");
    trace.Kernel(110, kMain, 150, 100, "elsewhere");  // half of it beside the first
    trace.Kernel(112, kMain, 160, 10, "elsewhere");   // and this within both
    trace.Kernel(114, kMain, 180, 60, "elsewhere");   // as is this, which ends later
    trace.Event("kernel", "of another", 600, 300, 7,
                R"("device": 0, "stream": 7, "correlation": 99)");
    trace.Node("ConvolutionBackward0", 3, 300, 100, "[[8, 6, 10, 12]]");
    trace.Event("cpu_op", "aten::convolution_backward", 305, 80, kEngine,
                Inputs("[[8, 6, 10, 12], [8, 4, 10, 12], [6, 4, 3, 3], [], [], [], [], [], [], [], "
                       "[]]",
                       R"(["c10::Half"])",
                       R"(["", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", )"
                       R"("1", "[)" +
                           first + R"(, True, False]"])"));
    trace.Kernel(310, kEngine, 400, 60, "dgrad");
    trace.Kernel(320, kEngine, 460, 40, "wgrad");
    const KinetoImport import = Import(trace);
    EXPECT_NEAR(import.summary.device_busy_share, 0.25, 1e-12);
    for (const std::string& line : Lines(import)) {
      EXPECT_EQ(line.find("input_gradient=no") == std::string::npos, first == "True") << line;
    }
  }
}

// A kernel is its operator's by the launch, or by a number that one operator alone has.
TEST(ImportKineto, KernelsOfWhichTheOperatorIsNotTold) {
  const std::string relu = Inputs("[[4, 6]]", R"(["float"])");
  struct Case {
    const char* second;    // the number of the second operator
    const char* launch;    // of a launch within no operator, or none
    const char* external;  // the kernel's number
    const char* whose;
  };
  const Case cases[] = {{"6", "", "5", ""},
                        {"5", "", "5", "kernels launched before the trace 30\n"},
                        {"6", "8", "5", "kernels of no operator 30\n"},
                        {"6", "900", "5", "kernels of no operator 30\n"},
                        {"900", "900", "5", "kernels of no operator 30\n"},
                        {"6", "5", "8", ""}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.second) + " " + c.launch + " " + c.external);
    GpuTrace trace;
    trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
                With(With(Sequence(1), relu), R"("External id": 5)"));
    trace.Event("cpu_op", "aten::tanh", 40, 20, kMain,
                With(With(Sequence(2), relu), std::string(R"("External id": )") + c.second));
    const std::string number = R"("correlation": 900)";
    if (*c.launch != '\0') {
      trace.Event("cuda_runtime", "cudaLaunchKernel", 80, 1, kMain,
                  With(number, std::string(R"("External id": )") + c.launch));
    }
    trace.Event("kernel", "k", 200, 30, 7,
                With(R"("device": 1, "stream": 7, )" + number,
                     std::string(R"("External id": )") + c.external));
    trace.Node("ReluBackward0", 1, 300, 20, "[[4, 6]]");
    trace.Kernel(305, kEngine, 400, 45);
    const KinetoImport import = Import(trace);
    EXPECT_EQ(Unattributed(import), c.whose);
    std::vector<std::string> lines;
    if (*c.whose == '\0') lines = {"b4 fp32 forward activation function=relu columns=6: 30"};
    lines.emplace_back("b4 fp32 backward activation function=relu columns=6: 45");
    EXPECT_EQ(Lines(import), lines);
  }
}

// The first operator may have the number nought.
TEST(ImportKineto, NumbersOfOperatorsBeginWithNought) {
  GpuTrace trace;
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")), R"("External id": 0)"));
  trace.Event("kernel", "k", 200, 30, 7,
              R"("device": 1, "stream": 7, "correlation": 900, "External id": 0)");
  trace.Node("ReluBackward0", 1, 300, 20, "[[4, 6]]");
  trace.Kernel(305, kEngine, 400, 45);
  const KinetoImport import = Import(trace);
  EXPECT_EQ(Unattributed(import), "");
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{"b4 fp32 forward activation function=relu columns=6: 30",
                                      "b4 fp32 backward activation function=relu columns=6: 45"}));
}

// A layer is of tf32 where one of its kernels is, in whatever node that stands.
TEST(ImportKineto, ALayerIsOfTf32WhereAKernelIs) {
  for (const int in_tf32 : {0, 1, 2}) {
    GpuTrace trace;
    trace.Event("cpu_op", "aten::relu", 120, 50, kMain,
                With(Sequence(4), Inputs("[[8, 16]]", R"(["float"])")));
    trace.Kernel(130, kMain, 200, 40);
    for (const int node : {0, 1}) {
      trace.Node("ReluBackward0", 4, 300 + 50 * node, 40, "[[8, 16]]");
      trace.Kernel(305 + 50 * node, kEngine, 400 + 50 * node, 45,
                   node == in_tf32 ? "some_tf32" : "some");
    }
    const std::string precision = in_tf32 < 2 ? "tf32" : "fp32";
    const std::string relu = " activation function=relu columns=16: ";
    EXPECT_EQ(Lines(Import(trace)),
              (std::vector<std::string>{"b8 " + precision + " forward" + relu + "40",
                                        "b8 " + precision + " backward" + relu + "90"}));
  }
}

// The batch of a step is what its first layer reads, also where that looks words up.
TEST(ImportKineto, WordsThatAreLookedUpTellTheBatch) {
  Trace trace;
  trace.Event("cpu_op", "aten::embedding", 10, 20, kMain,
              With(Sequence(1), Inputs("[[1000, 64], [4, 20], [], [], []]",
                                       R"(["float", "long int", "Scalar", "Scalar", "Scalar"])")));
  trace.Event("cpu_op", "aten::mm", 40, 30, kMain,
              With(Sequence(2), Inputs("[[80, 64], [64, 5]]", R"(["float", "float"])")));
  trace.Event("cpu_op", "MmBackward0", 100, 50, kMain,
              With(Sequence(2, true), Inputs("[[80, 5]]", R"(["float"])")));
  trace.Event("cpu_op", "EmbeddingBackward0", 160, 40, kMain,
              With(Sequence(1, true), Inputs("[[4, 20, 64]]", R"(["float"])")));
  const std::vector<std::string> lines = Lines(Import(trace));
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_TRUE(line.starts_with("b4 ")) << line;
}

// A span that somebody named does nothing by itself.
TEST(ImportKineto, NamedSpansTakeNoTime) {
  Trace trace = CpuTrace();
  trace.Event("user_annotation", "loading", 5000, 700, kMain);
  trace.Event("cpu_op", "aten::sort", 5100, 20, kMain);
  const KinetoImport import = Import(trace);
  EXPECT_EQ(import.summary.unattributed_s.count("loading"), 0U);
  EXPECT_NEAR(import.summary.unattributed_s.at("aten::sort"), 20e-6, 1e-12);
}

// What a checkpoint computes again is a forward pass, and no part of the node that asks for it.
TEST(ImportKineto, CheckpointsAndForks) {
  Trace trace;
  const std::string relu = Inputs("[[4, 6]]", R"(["float"])");
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain, With(Sequence(5), relu));
  trace.Event("cpu_op", "aten::tanh", 40, 25, kMain, With(Sequence(6), relu));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: TanhBackward0", 100, 100, kEngine,
              Sequence(6, true));
  trace.Event("cpu_op", "TanhBackward0", 101, 80, kEngine, With(Sequence(6, true), relu));
  // The engine's thread counts by itself: that it is at five too means nothing.
  trace.Event("cpu_op", "aten::relu", 110, 30, kEngine, With(Sequence(5), relu));
  trace.Event("cpu_op", "aten::mul", 145, 5, kEngine, relu);
  // Where the branches meet, after the node itself.
  trace.Event("cpu_op", "aten::add", 185, 10, kEngine,
              Inputs("[[4, 6], [4, 6], []]", R"(["float", "float", "Scalar"])"));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: ReluBackward0", 300, 50, kEngine,
              Sequence(5, true));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 360, 20, kEngine,
              Sequence(3, true));
  trace.Event("cpu_op", "aten::add", 365, 6, kEngine,
              Inputs("[[9, 7], [9, 7], []]", R"(["float", "float", "Scalar"])"));
  const KinetoImport import = Import(trace);
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{"b4 fp32 forward activation function=relu columns=6: 20 30",
                                      "b4 fp32 forward activation function=tanh columns=6: 25",
                                      "b4 fp32 backward activation function=tanh columns=6: 60",
                                      "b4 fp32 backward elementwise kind=add channels=6: 10",
                                      "b4 fp32 backward activation function=relu columns=6: 50"}));
  EXPECT_EQ(Unattributed(import), "MmBackward0 14\ngradients added up 6\n");
  EXPECT_EQ(import.summary.steps, 0);
  EXPECT_EQ(import.summary.step_time_s, 0);
}

// A checkpoint goes back through what it has computed again, whose nodes are of its thread: that is
// no step of its own, and its batch is that of the layers before it.
TEST(ImportKineto, CheckpointsGoBackThroughTheirOwnGraph) {
  Trace trace;
  const std::string of_engine =
      R"("Sequence number": 1, "Fwd thread id": )" + std::to_string(kEngine);
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(Sequence(5), Inputs("[[4, 6]]", R"(["float"])")));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 100, 100,
              kEngine, Sequence(6, true));
  trace.Event("cpu_op", "CheckpointFunctionBackward", 101, 98, kEngine, Sequence(6, true));
  trace.Event("cpu_op", "aten::tanh", 110, 30, kEngine,
              With(Sequence(1), Inputs("[[8, 3]]", R"(["float"])")));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: TanhBackward0", 150, 40, kEngine,
              of_engine);
  trace.Event("cpu_op", "TanhBackward0", 151, 38, kEngine,
              With(of_engine, Inputs("[[8, 3]]", R"(["float"])")));
  trace.Event("cpu_op", "autograd::engine::evaluate_function: ReluBackward0", 300, 50, kEngine,
              Sequence(5, true));
  trace.Event("cpu_op", "ReluBackward0", 301, 48, kEngine,
              With(Sequence(5, true), Inputs("[[4, 6]]", R"(["float"])")));
  EXPECT_EQ(Lines(Import(trace)),
            (std::vector<std::string>{"b4 fp32 forward activation function=relu columns=6: 20",
                                      "b4 fp32 forward activation function=tanh columns=6: 30",
                                      "b4 fp32 backward activation function=tanh columns=6: 40",
                                      "b4 fp32 backward activation function=relu columns=6: 50"}));
}

// What is called without a gradient is no training: evaluation, averages of parameters.
TEST(ImportKineto, NoGradientNoLayer) {
  Trace trace = CpuTrace();
  const std::string two = R"(["float", "float"])";
  trace.Event("cpu_op", "aten::linear", 3000, 40, kMain, Inputs("[[4, 6], [5, 6]]", two));
  trace.Event("cpu_op", "aten::mm", 3001, 30, kMain, Inputs("[[4, 6], [6, 5]]", two));
  trace.Event("cpu_op", "aten::add_", 3100, 10, kMain, Inputs("[[5, 6], [5, 6]]", two));
  const KinetoImport import = Import(trace);
  EXPECT_EQ(Lines(import), Lines(Import(CpuTrace())));
  EXPECT_EQ(
      Unattributed(import),
      "aten::add_ 14\naten::flatten 6\naten::linear 40\ntorch::autograd::AccumulateGrad 20\n");
}

// A loss's softmax is one, the loss around it is not.
TEST(ImportKineto, TimeWithinIsCountedOnce) {
  Trace trace = CpuTrace();
  const std::string scores = Inputs("[[4, 9], [], []]", R"(["float", "Scalar", ""])");
  trace.Event("cpu_op", "aten::cross_entropy_loss", 240, 40, kMain, Sequence(40));
  trace.Event("cpu_op", "aten::log_softmax", 245, 25, kMain, With(Sequence(40), scores));
  trace.Event("cpu_op", "aten::dropout", 285, 12, kMain, Sequence(41));
  trace.Event("cpu_op", "aten::mul", 286, 10, kMain,
              With(Sequence(41), Inputs("[[4, 9], [4, 9]]", R"(["float", "float"])")));
  const KinetoImport import = Import(trace);
  EXPECT_EQ(import.summary.unattributed_s.at("aten::cross_entropy_loss"), 15e-6);
  EXPECT_EQ(import.summary.unattributed_s.at("aten::dropout"), 12e-6);
  EXPECT_EQ(import.summary.unattributed_s.count("aten::log_softmax"), 0U);
  EXPECT_EQ(import.summary.unattributed_s.count("aten::mul"), 0U);
}

// PyTorch 1.8: other categories, times as text, nodes without the engine around them.
TEST(ImportKineto, OldVersions) {
  Trace trace;
  const auto raw = [&](const std::string& category, const std::string& name, int start,
                       int duration, const std::string& arguments) {
    trace.Raw(R"({"args": {)" + arguments + R"(}, "tid": "t1", "pid": "p", "dur": ")" +
              std::to_string(duration) + R"(", "ts": "16661497150)" + std::to_string(start) +
              R"(.125", "name": ")" + name + R"(", "cat": ")" + category + R"(", "ph": "X"})");
  };
  raw("Operator", "aten::addmm", 10000, 100,
      R"("Input dims": [[5], [4, 6], [6, 5]], "Input type": ["float", "float", "float"],
         "Sequence number": "12", "External id": "3")");
  raw("Runtime", "cudaLaunchKernel", 10020, 5, R"("correlation": 900, "external id": "900")");
  raw("Operator", "AddmmBackward", 11000, 100,
      R"("Sequence number": "12", "Fwd thread id": "1", "Input dims": [[4, 5]])");
  raw("Operator", "aten::mm", 11010, 50, R"("External id": "5")");
  raw("Runtime", "cudaLaunchKernel", 11020, 5, R"("correlation": "901", "external id": "901")");
  trace.Event("Kernel", "gemm", 0, 30, 0, R"("device": 0, "correlation": 900, "external id": 900)");
  trace.Event("Kernel", "gemm", 40, 35, 0, R"("device": 0, "correlation": 901)");
  // Half a microsecond, with one digit.
  trace.Raw(R"({"ph": "X", "cat": "Memcpy", "name": "copy", "pid": 0, "tid": 0, "ts": "90.5",
                "dur": "4.5", "args": {"device": 0, "correlation": 901}})");
  const KinetoImport import = Import(trace);
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{
                "b4 fp32 forward dense inputs=6 units=5 bias=yes input_gradient=no: 30",
                "b4 fp32 backward dense inputs=6 units=5 bias=yes input_gradient=no: 39.5"}));
  EXPECT_EQ(import.profile.device.name, "gpu");
}

// The events alone, as Chrome's format also allows.
TEST(ImportKineto, AListOfEvents) {
  const std::string text = CpuTrace().Text();
  const std::size_t from = text.find("[\n{");
  const KinetoImport import = Import(text.substr(from, text.rfind(']') - from + 1));
  EXPECT_EQ(Lines(import), Lines(Import(CpuTrace())));
}

// ---- Updates.

KinetoImport ImportUpdate(const std::string& name, const std::string& operators, int passes = 1) {
  Trace trace;
  const std::string relu = Inputs("[[4, 6]]", R"(["float"])");
  for (int i = 0; i < passes; ++i) {
    trace.Event("cpu_op", "aten::relu", 10 + 200 * i, 20, kMain, With(Sequence(i), relu));
    trace.Event("cpu_op", "ReluBackward0", 100 + 200 * i, 50, kMain, Sequence(i, true));
    trace.Event("cpu_op", "torch::autograd::AccumulateGrad", 160 + 200 * i, 1, kMain,
                Inputs("[[30, 10]]", R"(["c10::BFloat16"])"));
  }
  trace.Event("user_annotation", "Optimizer.step#" + name + ".step", 5000, 90, kMain);
  std::istringstream lines(operators);
  double start = 5001;
  for (std::string line; std::getline(lines, line); ++start) {
    const std::size_t blank = line.find(' ');
    trace.Event("cpu_op", line.substr(0, blank), start, 1, kMain, line.substr(blank + 1));
  }
  return Import(trace);
}
std::string Update(const KinetoImport& import) {
  for (const std::string& line : Lines(import)) {
    if (line.find(" update ") != std::string::npos) return line;
  }
  return Unattributed(import);
}

TEST(ImportKineto, Updates) {
  const std::string three =
      " " + Inputs("[[[3, 4], [8]], [[3, 4], [8]], []]", R"(["TensorList", "TensorList"])");
  const std::string hidden =
      " " + Inputs("[[], [], []]", R"(["TensorList", "TensorList", "Scalar"])");
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_foreach_add_" + three)),
            "b1 bf16 update update optimizer=sgd parameters=20: 90");
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_foreach_mul_" + three + "\naten::_foreach_add_" +
                                           three + "\naten::_foreach_add_" + three)),
            "b1 bf16 update update optimizer=momentum parameters=20: 90");
  EXPECT_EQ(Update(ImportUpdate(
                "AdamW", "aten::_foreach_mul_" + three + "\naten::_foreach_addcdiv_" + three)),
            "b1 bf16 update update optimizer=adam parameters=20: 90");
  const std::string fused =
      " " + Inputs("[[[3, 4], [8]], [[3, 4], [8]], [[3, 4], [8]], [], [], []]",
                   R"(["TensorList", "TensorList", "TensorList", "Scalar", "Scalar", "Scalar"])",
                   R"(["", "", "", "0.", "MOMENTUM", "0.1"])");
  const auto with = [&](const std::string& momentum) {
    std::string text = "aten::_fused_sgd_" + fused;
    return text.replace(text.find("MOMENTUM"), 8, momentum);
  };
  EXPECT_EQ(Update(ImportUpdate("SGD", with("0."))),
            "b1 bf16 update update optimizer=sgd parameters=20: 90");
  EXPECT_EQ(Update(ImportUpdate("SGD", with("0"))),
            "b1 bf16 update update optimizer=sgd parameters=20: 90");
  EXPECT_EQ(Update(ImportUpdate("SGD", with("0.90000000000000002"))),
            "b1 bf16 update update optimizer=momentum parameters=20: 90");
  // Lists without shapes: what was accumulated since the last update, once.
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_foreach_add_" + hidden)),
            "b1 bf16 update update optimizer=sgd parameters=300: 90");
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_foreach_add_" + hidden, 3)),
            "b1 bf16 update update optimizer=sgd parameters=300: 90");
  // One list without shapes, and the others say less than all.
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_foreach_mul_" + three + "\naten::_foreach_add_" +
                                           hidden + "\naten::_foreach_add_" + three)),
            "b1 bf16 update update optimizer=momentum parameters=300: 90");
  EXPECT_EQ(Update(ImportUpdate("FusedAdam", "")),
            "b1 bf16 update update optimizer=adam parameters=300: 90");
  // The first step with momentum; one that is not known.
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::clone" + three + "\naten::add_" + three)),
            "Optimizer.step#SGD.step 90\ntorch::autograd::AccumulateGrad 1\n");
  EXPECT_EQ(Update(ImportUpdate("Shampoo", "aten::add_" + three)),
            "Optimizer.step#Shampoo.step 90\ntorch::autograd::AccumulateGrad 1\n");
}

TEST(ImportKineto, UpdatesBeyondAnyNetwork) {
  const auto update = [](const std::string& list) {
    return Update(ImportUpdate(
        "SGD", "aten::_foreach_add_ " + Inputs("[" + list + ", []]", R"(["TensorList", ""])")));
  };
  EXPECT_EQ(update("[[10000000, 1000000]]"),
            "b1 bf16 update update optimizer=sgd parameters=10000000000000: 90");
  EXPECT_EQ(
      update("[[10000000, 1000000], [1]]"),
      "Optimizer.step#SGD.step: that is out of range 90\ntorch::autograd::AccumulateGrad 1\n");
  std::string many = "[[1000000000000, 1000]";
  for (int i = 0; i < 20'000; ++i) many += ", [1000000000000, 1000]";
  EXPECT_EQ(
      update(many + "]"),
      "Optimizer.step#SGD.step: that is out of range 90\ntorch::autograd::AccumulateGrad 1\n");
}

// How an optimizer ran: one kernel, one operator for all parameters, or some for each.
TEST(ImportKineto, HowUpdatesRan) {
  const std::string one = " " + Inputs("[[3, 4], [3, 4]]", R"(["float", "float"])");
  const std::string all = " " + Inputs("[[[3, 4]], [[3, 4]]]", R"(["TensorList", "TensorList"])");
  const struct {
    const char* optimizer;
    std::string operators;
    const char* is;
    const char* how;
  } cases[] = {
      {"Adam", "aten::addcdiv_" + one, "fp32 update update optimizer=adam", ""},
      {"Adam", "aten::_foreach_addcdiv_" + all, "bf16 update update optimizer=adam", "foreach"},
      {"Adam", "aten::_fused_adam_" + all, "bf16 update update optimizer=adam", "fused"},
      {"AdamW", "aten::_fused_adamw_" + all, "bf16 update update optimizer=adam", "fused"},
      {"SGD", "aten::add_" + one, "fp32 update update optimizer=sgd", ""},
      {"SGD", "aten::mul_" + one, "fp32 update update optimizer=momentum", ""},
      {"SGD", "aten::_foreach_mul_" + all, "bf16 update update optimizer=momentum", "foreach"}};
  for (const auto& c : cases) {
    const KinetoImport import = ImportUpdate(c.optimizer, c.operators);
    EXPECT_EQ(Update(import), std::string("b1 ") + c.is + " parameters=12: 90") << c.operators;
    EXPECT_EQ(import.profile.samples.back().algorithm, c.how) << c.operators;
  }
  EXPECT_EQ(ImportUpdate("FusedAdam", "").profile.samples.back().algorithm, "fused");
  // A fused operator that does not say its momentum is either.
  EXPECT_EQ(Update(ImportUpdate("SGD", "aten::_fused_sgd_" + all)),
            "Optimizer.step#SGD.step 90\ntorch::autograd::AccumulateGrad 1\n");
}

// Parameters of a type that no profile knows have no update.
TEST(ImportKineto, UpdatesInAnotherType) {
  Trace trace;
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")));
  trace.Event("cpu_op", "ReluBackward0", 100, 50, kMain, Sequence(1, true));
  trace.Event("cpu_op", "torch::autograd::AccumulateGrad", 160, 1, kMain,
              Inputs("[[30, 10]]", R"(["double"])"));
  trace.Event("user_annotation", "Optimizer.step#FusedAdam.step", 200, 90, kMain);
  EXPECT_EQ(Unattributed(Import(trace)),
            "Optimizer.step#FusedAdam.step: in double 90\ntorch::autograd::AccumulateGrad 1\n");
}

// ---- Calls, one kind of event at a time, on a CPU.

// A rectifier's forward pass of 20 us and its node of 60 us from 100 on, and what else there is.
Trace ReluAnd(const std::function<void(Trace*)>& more) {
  Trace trace;
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")));
  trace.Event("cpu_op", "ReluBackward0", 100, 60, kMain, Sequence(1, true));
  more(&trace);
  return trace;
}
const std::string kReluForward = "b4 fp32 forward activation function=relu columns=6: ";
const std::string kReluBackward = "b4 fp32 backward activation function=relu columns=6: ";

// A collective that a node waits for is no work of the layer's; another operator is.
TEST(ImportKineto, CollectivesWithinANode) {
  const std::pair<const char*, bool> cases[] = {
      {"nccl:all_reduce", true},     {"gloo:all_reduce", true},   {"c10d::allreduce_", true},
      {"_c10d_functional::a", true}, {"mine::all_reduce", false}, {"aten::sort", false}};
  for (const auto& [name, collective] : cases) {
    const KinetoImport import = Import(ReluAnd([&, name = name](Trace* trace) {
      trace->Event("cpu_op", name, 110, 25, kMain);
      trace->Event("cpu_op", "nccl:within", 112, 20, kMain);
      trace->Event("cpu_op", "aten::copy_", 113, 5, kMain);
    }));
    // What stands within a collective is part of it, whatever it is.
    EXPECT_EQ(Lines(import), (std::vector<std::string>{kReluForward + "20",
                                                       kReluBackward + (collective ? "35" : "40")}))
        << name;
    EXPECT_EQ(Unattributed(import),
              collective ? std::string(name) + " 25\n" : std::string("nccl:within 20\n"));
  }
}

// Operators of which no layer is known keep the layers within, which are how they are computed.
TEST(ImportKineto, OperatorsThatAreOneThing) {
  for (const char* name :
       {"aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::native_dropout",
        "aten::alpha_dropout", "aten::to", "aten::_to_copy", "aten::group_norm",
        "aten::instance_norm", "aten::rms_norm", "aten::rnn_tanh", "aten::rnn_relu",
        "aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "Optimizer.zero_grad#SGD"}) {
    const KinetoImport import = Import(ReluAnd([&](Trace* trace) {
      trace->Event("cpu_op", name, 40, 30, kMain, Sequence(2));
      trace->Event("cpu_op", "aten::tanh", 45, 10, kMain,
                   With(Sequence(2), Inputs("[[4, 6]]", R"(["float"])")));
    }));
    EXPECT_EQ(Lines(import), (std::vector<std::string>{kReluForward + "20", kReluBackward + "60"}))
        << name;
    EXPECT_EQ(Unattributed(import), std::string(name) + " 30\n");
  }
}

// Marks are spans around what is done, also where they are recorded as operators.
TEST(ImportKineto, MarksTakeNoTime) {
  const KinetoImport import = Import(ReluAnd([](Trace* trace) {
    trace->Event("cpu_op", "ProfilerStep#4", 0, 500, kMain);
    trace->Event("cpu_op", "enumerate(DataLoader)#_SingleProcess.__next__", 200, 50, kMain);
    trace->Event("cpu_op", "aten::stack", 210, 7, kMain);
  }));
  EXPECT_EQ(Lines(import), (std::vector<std::string>{kReluForward + "20", kReluBackward + "60"}));
  EXPECT_EQ(Unattributed(import), "aten::stack 7\n");
  EXPECT_EQ(import.summary.steps, 1);
  EXPECT_DOUBLE_EQ(import.summary.step_time_s, 500e-6);
  EXPECT_EQ(import.profile.settings.at("time"), "of operators");
}

// What begins where another ends stands beside it, and of two that begin together the longer one is
// around the other, whichever is written first.
TEST(ImportKineto, WhatIsWithinWhat) {
  const KinetoImport import = Import(ReluAnd([](Trace* trace) {
    trace->Event("cpu_op", "aten::sort", 30, 5, kMain);
    trace->Event("cpu_op", "aten::copy_", 50, 8, kMain);
    trace->Event("cpu_op", "aten::sort", 50, 10, kMain);
  }));
  EXPECT_EQ(Unattributed(import), "aten::sort 15\n");
}

// The node of a sum hands its gradient on: that is no work of the layer's.
TEST(ImportKineto, NodesOfSums) {
  const KinetoImport import = Import(ReluAnd([](Trace* trace) {
    trace->Event("cpu_op", "aten::add", 40, 12, kMain,
                 With(Sequence(2), Inputs("[[4, 6], [4, 6], []]", R"(["float", "float"])")));
    trace->Event("cpu_op", "AddBackward0", 90, 4, kMain, Sequence(2, true));
  }));
  EXPECT_EQ(Lines(import),
            (std::vector<std::string>{kReluForward + "20",
                                      "b4 fp32 forward elementwise kind=add channels=6: 12",
                                      kReluBackward + "60"}));
  EXPECT_EQ(Unattributed(import), "AddBackward0 4\n");
}

// Several operators of one number: the last of them before the node has made it.
TEST(ImportKineto, TheLastOfANumberMadeTheNode) {
  const auto relu = [](Trace* trace, const char* dims, double start, double time) {
    trace->Event("cpu_op", "aten::relu", start, time, kMain,
                 With(Sequence(1), Inputs(dims, R"(["float"])")));
  };
  EXPECT_EQ(Lines(Import(ReluAnd([&](Trace* trace) {
              relu(trace, "[[7, 3]]", 40, 25);
              relu(trace, "[[9, 5]]", 200, 30);
            }))),
            (std::vector<std::string>{kReluForward + "20",
                                      "b7 fp32 forward activation function=relu columns=3: 25",
                                      "b7 fp32 backward activation function=relu columns=3: 60",
                                      "b9 fp32 forward activation function=relu columns=5: 30"}));
}

// Sequence numbers count within a thread, and nodes call the forward thread by another name: it is
// the one whose operators are those of the nodes.
TEST(ImportKineto, ForwardPassesOfTwoThreads) {
  constexpr int kOther = 12;
  Trace trace;
  const auto forward = [&](const char* name, int number, int thread, double start, double time) {
    trace.Event(
        "cpu_op", name, start, time, thread,
        With(Sequence(number), Inputs(thread == kMain ? "[[4, 6]]" : "[[7, 3]]", R"(["float"])")));
  };
  const auto backward = [&](const char* name, int number, int of, double start, double time) {
    trace.Event("cpu_op", name, start, time, kEngine,
                R"("Sequence number": )" + std::to_string(number) + R"(, "Fwd thread id": )" +
                    std::to_string(of));
  };
  forward("aten::relu", 1, kMain, 10, 20);
  forward("aten::relu", 1, kOther, 12, 25);
  forward("aten::sigmoid", 2, kMain, 40, 21);
  forward("aten::tanh", 2, kOther, 42, 22);
  backward("SigmoidBackward0", 2, 1, 100, 10);
  backward("ReluBackward0", 1, 1, 120, 20);
  backward("TanhBackward0", 2, 2, 150, 30);
  backward("ReluBackward0", 1, 2, 190, 40);
  EXPECT_EQ(Lines(Import(trace)),
            (std::vector<std::string>{
                kReluForward + "20", "b7 fp32 forward activation function=relu columns=3: 25",
                "b4 fp32 forward activation function=sigmoid columns=6: 21",
                "b7 fp32 forward activation function=tanh columns=3: 22",
                "b4 fp32 backward activation function=sigmoid columns=6: 10", kReluBackward + "20",
                "b7 fp32 backward activation function=tanh columns=3: 30",
                "b7 fp32 backward activation function=relu columns=3: 40"}));
}

// What computes within a layer tells its type: conversions come before it.
TEST(ImportKineto, TheFirstThatComputesTellsTheType) {
  const std::string window = R"(["", "[2, 2]", "[2, 2]", "[0, 0]", "[1, 1]", "False"])";
  const std::string geometry = R"(["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "", "1"])";
  const struct {
    const char* outer;
    const char* outer_dims;
    const char* inner;
    const char* inner_dims;
    const char* precision;
    std::string values;
  } cases[] = {
      {"linear", "[[4, 6], [5, 6]]", "addmm", "[[5], [4, 6], [6, 5]]", "fp16", ""},
      {"linear", "[[4, 6], [5, 6]]", "copy_", "[[5], [4, 6], [6, 5]]", "bf16", ""},
      {"matmul", "[[4, 6], [6, 5]]", "mm", "[[4, 6], [6, 5]]", "fp16", ""},
      {"matmul", "[[4, 2, 6], [4, 6, 3]]", "bmm", "[[4, 2, 6], [4, 6, 3]]", "fp16", ""},
      {"matmul", "[[4, 2, 6], [4, 6, 3]]", "baddbmm", "[[4, 2, 3]]", "fp16", ""},
      {"matmul", "[[4, 6], [6, 5]]", "linear", "[[4, 6], [5, 6]]", "fp16", ""},
      {"layer_norm", "[[4, 6], [], [6], [6]]", "native_layer_norm", "[[4, 6]]", "fp16", ""},
      {"softmax", "[[4, 6]]", "_softmax", "[[4, 6]]", "fp16", ""},
      {"log_softmax", "[[4, 6]]", "_log_softmax", "[[4, 6]]", "fp16", ""},
      {"batch_norm", "[[4, 6, 2, 2]]", "cudnn_batch_norm", "[[4, 6, 2, 2]]", "fp16", ""},
      {"adaptive_avg_pool2d", "[[4, 6, 8, 8]]", "mean", "[[4, 6, 8, 8]]", "fp16", ""},
      {"max_pool2d", "[[4, 6, 8, 8]]", "max_pool2d_with_indices", "[[4, 6, 8, 8]]", "fp16", window},
      {"conv2d", "[[4, 6, 8, 8], [6, 6, 1, 1]]", "convolution", "[[4, 6, 8, 8], [6, 6, 1, 1]]",
       "fp16", geometry},
  };
  for (const auto& c : cases) {
    const std::vector<std::string> lines = Lines(Import(ReluAnd([&](Trace* trace) {
      trace->Event("cpu_op", std::string("aten::") + c.outer, 40, 50, kMain,
                   With(Sequence(2), Inputs(c.outer_dims, R"(["float"])", c.values)));
      trace->Event("cpu_op", "aten::to", 41, 4, kMain, Inputs("[[4, 6]]", R"(["float"])"));
      trace->Event("cpu_op", std::string("aten::") + c.inner, 46, 10, kMain,
                   Inputs(c.inner_dims, R"(["c10::Half"])", c.values));
      trace->Event("cpu_op", "aten::mm", 57, 10, kMain,
                   Inputs("[[4, 6], [6, 5]]", R"(["c10::BFloat16"])"));
    })));
    ASSERT_EQ(lines.size(), 3U) << c.outer << " " << c.inner;
    EXPECT_TRUE(lines[1].starts_with(std::string("b4 ") + c.precision + " forward "))
        << c.inner << ": " << lines[1];
    EXPECT_TRUE(lines[1].ends_with(": 46")) << "without the conversion: " << lines[1];
  }
}

// ---- Steps.

// Each step has the batch of its own first layer, which tells batch and positions of those that
// read rows.
TEST(ImportKineto, StepsOfDifferentBatches) {
  Trace trace;
  const std::string two = R"(["float", "float"])";
  for (const int step : {0, 1}) {
    const std::string batch = step == 0 ? "4" : "2";
    const std::string rows = step == 0 ? "80" : "40";
    const double t = 1000 * step;
    const int number = 10 * step;
    trace.Event("cpu_op", "aten::linear", t + 10, 20 + step, kMain,
                With(Sequence(number), Inputs("[[" + batch + ", 20, 64], [16, 64]]", two)));
    trace.Event("cpu_op", "aten::mm", t + 40, 30 + step, kMain,
                With(Sequence(number + 1), Inputs("[[" + rows + ", 16], [16, 5]]", two)));
    trace.Event("cpu_op", "MmBackward0", t + 100, 50 + step, kMain, Sequence(number + 1, true));
    trace.Event("cpu_op", "LinearBackward0", t + 160, 40 + step, kMain, Sequence(number, true));
  }
  const auto lines = [](const std::string& batch, int more) {
    const std::string start = "b" + batch + " fp32 ";
    const std::string wide = " dense positions=20 inputs=64 units=16: ";
    const std::string narrow = " dense positions=20 inputs=16 units=5: ";
    return std::vector<std::string>{start + "forward" + wide + std::to_string(20 + more),
                                    start + "forward" + narrow + std::to_string(30 + more),
                                    start + "backward" + narrow + std::to_string(50 + more),
                                    start + "backward" + wide + std::to_string(40 + more)};
  };
  std::vector<std::string> expected = lines("4", 0);
  for (const std::string& line : lines("2", 1)) expected.push_back(line);
  EXPECT_EQ(Lines(Import(trace)), expected);
}

// Where the first layer adds a product to its bias, what it reads comes second.
TEST(ImportKineto, AProductWithBiasTellsTheBatch) {
  Trace trace;
  trace.Event("cpu_op", "aten::addmm", 10, 20, kMain,
              With(Sequence(1), Inputs("[[5], [4, 96], [96, 5]]", R"(["float", "float"])")));
  trace.Event("cpu_op", "aten::mm", 40, 30, kMain,
              With(Sequence(2), Inputs("[[80, 64], [64, 5]]", R"(["float", "float"])")));
  trace.Event("cpu_op", "MmBackward0", 100, 50, kMain, Sequence(2, true));
  trace.Event("cpu_op", "AddmmBackward0", 160, 40, kMain, Sequence(1, true));
  const std::vector<std::string> lines = Lines(Import(trace));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1], "b4 fp32 forward dense positions=20 inputs=64 units=5: 30");
}

// The time of a step is the median of those that train: a layer that begins where a mark ends is
// the next one's.
TEST(ImportKineto, TheTimeOfAStep) {
  Trace trace;
  const std::string relu = Inputs("[[4, 6]]", R"(["float"])");
  const double ends[] = {0, 100, 220, 420, 500, 900};
  for (int step = 1; step <= 5; ++step) {
    trace.Event("user_annotation", "ProfilerStep#" + std::to_string(step), ends[step - 1],
                ends[step] - ends[step - 1], kMain);
    if (step == 4) continue;
    const double start = step == 5 ? 500 : ends[step - 1] + 10;
    trace.Event("cpu_op", "aten::relu", start, 20, kMain, With(Sequence(step), relu));
  }
  trace.Event("cpu_op", "ReluBackward0", 300, 60, kMain, Sequence(3, true));
  const KinetoImport import = Import(trace);
  EXPECT_EQ(import.summary.steps, 4);
  EXPECT_DOUBLE_EQ(import.summary.step_time_s, 160e-6) << "between 120 and 200";
}

// Without marks updates are the steps, and a GPU is watched from its first kernel to its last.
TEST(ImportKineto, WithoutMarks) {
  EXPECT_EQ(ImportUpdate("FusedAdam", "").summary.steps, 1);
  GpuTrace trace;
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")));
  trace.Kernel(15, kMain, 200, 30);
  trace.Node("ReluBackward0", 1, 300, 20, "[[4, 6]]");
  trace.Kernel(305, kEngine, 400, 45);
  const KinetoImport import = Import(trace);
  EXPECT_NEAR(import.summary.device_busy_share, 75 / 245.0, 1e-12);
  EXPECT_EQ(import.profile.settings.at("time"), "of kernels");
}

// The first event says when the trace was recorded, where its clock is the calendar's.
TEST(ImportKineto, TheBeginningOfATrace) {
  const auto started = [](const std::string& first) {
    Trace trace;
    for (const std::string& start : {std::string("1999999999000000"), first}) {
      trace.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "aten::relu", "ts": )" + start +
                R"(, "dur": 5, "args": {"Sequence number": 1, "Input Dims": [[4, 6]]}})");
    }
    trace.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "ReluBackward0", "ts": 1999999999000010,
                  "dur": 5, "args": {"Sequence number": 1, "Fwd thread id": 1}})");
    return Import(trace).profile.started;
  };
  EXPECT_EQ(started("1666149715010000"), "2022-10-19T03:21:55Z");
  EXPECT_EQ(started("978307200000000"), "2001-01-01T00:00:00Z");
  EXPECT_EQ(started("978307199999999"), "") << "a clock that began with the machine";
}

// ---- Kernels.

// A number is one although it is 0.
TEST(ImportKineto, NumbersBeginAtNought) {
  for (const bool launched : {true, false}) {
    GpuTrace trace;
    trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
                With(With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")),
                     launched ? R"("External id": 5)" : R"("External id": 0)"));
    if (launched) {
      trace.Event("cuda_runtime", "cudaLaunchKernel", 15, 1, kMain, R"("correlation": 0)");
    }
    trace.Event("kernel", "k", 200, 30, 7,
                launched ? R"("device": 1, "correlation": 0)" : R"("device": 1, "External id": 0)");
    trace.Node("ReluBackward0", 1, 300, 20, "[[4, 6]]");
    trace.Kernel(305, kEngine, 400, 45);
    const KinetoImport import = Import(trace);
    EXPECT_EQ(Lines(import), (std::vector<std::string>{kReluForward + "30", kReluBackward + "45"}));
    EXPECT_EQ(Unattributed(import), "");
  }
}

// Old versions repeat a kernel's correlation as its other number, which is no operator's then.
TEST(ImportKineto, ARepeatedNumberIsNoOperators) {
  GpuTrace trace;
  trace.Event("cpu_op", "aten::relu", 10, 20, kMain,
              With(With(Sequence(1), Inputs("[[4, 6]]", R"(["float"])")), R"("External id": 900)"));
  trace.Event("kernel", "k", 200, 30, 7, R"("device": 1, "correlation": 900, "external id": 900)");
  trace.Node("ReluBackward0", 1, 300, 20, "[[4, 6]]");
  trace.Kernel(305, kEngine, 400, 45);
  const KinetoImport import = Import(trace);
  EXPECT_EQ(Lines(import), (std::vector<std::string>{kReluBackward + "45"}));
  EXPECT_EQ(Unattributed(import), "kernels launched before the trace 30\n");
}

// cuBLAS says tf32, CUTLASS the instruction: 16 x 8 x 8 in single precision.
TEST(ImportKineto, KernelsOfTf32) {
  const std::pair<const char*, const char*> cases[] = {
      {"sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16", "tf32"},
      {"cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", "tf32"},
      {"cutlass_80_tensorop_s16816gemm_f16_128x128", "fp32"},
      {"ampere_sgemm_128x64_nn", "fp32"}};
  for (const auto& [kernel, precision] : cases) {
    GpuTrace trace;
    trace.Event("cpu_op", "aten::mm", 10, 20, kMain,
                With(Sequence(1), Inputs("[[4, 6], [6, 5]]", R"(["float", "float"])")));
    trace.Kernel(15, kMain, 200, 30, kernel);
    trace.Node("MmBackward0", 1, 300, 20, "[[4, 5]]");
    trace.Kernel(305, kEngine, 400, 45);
    EXPECT_EQ(Lines(Import(trace)).front(),
              std::string("b4 ") + precision + " forward dense inputs=6 units=5: 30");
  }
}

// ---- Layers.

KinetoInput Tensor(std::vector<std::int64_t> dims, const std::string& type = "float") {
  return {std::move(dims), {}, type, ""};
}
KinetoInput Number(const std::string& value) { return {{}, {}, "Scalar", value}; }
KinetoInput TensorList(std::vector<std::vector<std::int64_t>> list) {
  return {{}, std::move(list), "TensorList", ""};
}

std::string Described(const char* name, const KinetoInputs& inputs, std::int64_t step_batch = 0,
                      const std::vector<std::int64_t>& output = {}) {
  KinetoCall call;
  call.name = name;
  call.inputs = &inputs;
  call.step_batch = step_batch;
  if (!output.empty()) call.output = &output;
  const KinetoOperation what = DescribeKinetoCall(KinetoLayerOf(name), call);
  if (what.operation.index() == 0) return what.problem.empty() ? "-" : what.problem;
  return "b" + std::to_string(what.batch) + " " +
         kPrecisionNames[static_cast<int>(what.precision)] + " " + FormatOperation(what.operation);
}

TEST(ImportKineto, DenseLayersAndProducts) {
  EXPECT_EQ(Described("linear", {Tensor({32, 784}), Tensor({10, 784}), Tensor({10})}),
            "b32 fp32 dense inputs=784 units=10 bias=yes");
  EXPECT_EQ(Described("linear", {Tensor({8, 20, 64}), Tensor({10, 64})}, 8),
            "b8 fp32 dense positions=20 inputs=64 units=10");
  EXPECT_EQ(Described("linear", {Tensor({20, 8, 64}), Tensor({10, 64})}, 8),
            "b8 fp32 dense positions=20 inputs=64 units=10")
      << "the batch may come second";
  EXPECT_EQ(Described("addmm", {Tensor({10}), Tensor({160, 64}), Tensor({64, 10})}, 8),
            "b8 fp32 dense positions=20 inputs=64 units=10 bias=yes");
  EXPECT_EQ(Described("addmm", {Tensor({10}), Tensor({7, 64}), Tensor({64, 10})}, 8),
            "b7 fp32 dense inputs=64 units=10 bias=yes");
  EXPECT_EQ(Described("addmm", {Tensor({160, 10}), Tensor({160, 64}), Tensor({64, 10})}, 8),
            "b8 fp32 dense positions=20 inputs=64 units=10")
      << "a matrix that is added is no bias";
  EXPECT_EQ(Described("mm", {Tensor({7, 64}, "c10::BFloat16"), Tensor({64, 10}, "c10::BFloat16")}),
            "b7 bf16 dense inputs=64 units=10");
  EXPECT_EQ(Described("matmul", {Tensor({7, 3, 64}), Tensor({64, 10})}),
            "b7 fp32 dense positions=3 inputs=64 units=10");
  EXPECT_EQ(Described("matmul", {Tensor({7, 12, 5, 64}), Tensor({7, 12, 64, 6})}),
            "b7 fp32 batched_product count=12 rows=5 columns=6 depth=64");
  EXPECT_EQ(Described("bmm", {Tensor({84, 5, 64}), Tensor({84, 64, 6})}, 7),
            "b7 fp32 batched_product count=12 rows=5 columns=6 depth=64");
  EXPECT_EQ(Described("baddbmm", {Tensor({84, 5, 6}), Tensor({84, 5, 64}), Tensor({84, 64, 6})}),
            "b84 fp32 batched_product rows=5 columns=6 depth=64");
  EXPECT_EQ(Described("matmul", {Tensor({7, 12, 5, 64}), Tensor({12, 64, 6})}),
            "of shapes that are repeated");
  EXPECT_EQ(Described("linear", {Tensor({32, 784}), Tensor({10, 700}), Tensor({10})}),
            "of shapes that do not fit");
  EXPECT_EQ(Described("linear", {Tensor({32, 7}), Tensor({10, 7}), Tensor({3, 3}), Tensor({2})}),
            "of shapes that do not fit")
      << "arguments of several calls in one";
  EXPECT_EQ(Described("linear", {Tensor({32, 784}, "double"), Tensor({10, 784}, "double")}),
            "in double");
  EXPECT_EQ(Described("linear", {Tensor({0, 784}), Tensor({10, 784})}), "-");
  EXPECT_EQ(Described("linear", {}), "-");
  EXPECT_EQ(Described("linear", {Tensor({32, 9'000'000}), Tensor({10, 9'000'000})}),
            "that is out of range");
  EXPECT_EQ(Described("linear", {Tensor({1'000'000'000, 4}), Tensor({2, 4})}),
            "b1000000000 fp32 dense inputs=4 units=2");
  EXPECT_EQ(Described("linear", {Tensor({1'000'000'001, 4}), Tensor({2, 4})}),
            "of no usable batch");
  EXPECT_EQ(Described("cat", {TensorList({20'000, {1'000'000'000'000, 1000}})}),
            "of no usable size");
}

TEST(ImportKineto, Convolutions) {
  const auto conv = [](const std::string& stride, const std::string& padding,
                       const std::string& dilation, const std::string& groups) {
    return Described("conv2d", {Tensor({2, 8, 20, 20}), Tensor({8, 4, 3, 3}), Tensor({8}),
                                Number(stride), Number(padding), Number(dilation), Number(groups)});
  };
  EXPECT_EQ(conv("[2, 2]", "[1, 1]", "[1, 1]", "2"),
            "b2 fp32 convolution channels=8 input=20x20 filters=8 kernel=3x3 stride=2x2 "
            "padding=1,1,1,1 groups=2 bias=yes");
  EXPECT_EQ(conv("[1]", "[2]", "[2]", "2"),
            "b2 fp32 convolution channels=8 input=20x20 filters=8 kernel=3x3 dilation=2x2 "
            "padding=2,2,2,2 groups=2 bias=yes");
  for (const char* name : {"convolution", "_convolution"}) {
    EXPECT_EQ(Described(name, {Tensor({2, 8, 20, 20}), Tensor({8, 2, 3, 3}), Tensor({8}),
                               Number("[2, 2]"), Number("[1, 1]"), Number("[1, 1]"),
                               Number("False"), Number("[0, 0]"), Number("4")}),
              "b2 fp32 convolution channels=8 input=20x20 filters=8 kernel=3x3 stride=2x2 "
              "padding=1,1,1,1 groups=4 bias=yes")
        << name;
  }
  EXPECT_TRUE(conv("[1, 1]", "same", "[1, 1]", "2").starts_with("without stride: record the"));
  EXPECT_EQ(conv("[0, 1]", "[1, 1]", "[1, 1]", "2"), "that is out of range");
  EXPECT_EQ(Described("conv1d", {Tensor({2, 8, 20}), Tensor({6, 8, 3}), Tensor({}), Number("[2]"),
                                 Number("[1]"), Number("[1]"), Number("1")}),
            "b2 fp32 convolution channels=8 input=20x1 filters=6 kernel=3x1 stride=2x1 "
            "padding=1,0,1,0");
  EXPECT_EQ(Described("conv3d", {Tensor({2, 8, 20, 20, 20}), Tensor({6, 8, 3, 3, 3})}),
            "three-dimensional");
  EXPECT_EQ(Described("conv_transpose2d", {Tensor({2, 8, 20, 20}), Tensor({8, 6, 3, 3})}),
            "transposed");
}

// What strides and zeros do to an image tells them, unless several pairs do the same.
TEST(ImportKineto, StridesFromShapes) {
  const auto derived = [](std::int64_t input, std::int64_t kernel, std::int64_t output) {
    return Described("conv2d", {Tensor({2, 3, input, input}), Tensor({6, 3, kernel, kernel})}, 0,
                     {2, 6, output, output});
  };
  const std::string start = "b2 fp32 convolution channels=3 ";
  EXPECT_EQ(derived(224, 7, 112),
            start + "input=224x224 filters=6 kernel=7x7 stride=2x2 padding=3,3,3,3");
  EXPECT_EQ(derived(56, 3, 56), start + "input=56x56 filters=6 kernel=3x3 padding=1,1,1,1");
  EXPECT_EQ(derived(56, 3, 54), start + "input=56x56 filters=6 kernel=3x3");
  EXPECT_EQ(derived(56, 1, 28), start + "input=56x56 filters=6 stride=2x2");
  EXPECT_TRUE(derived(224, 11, 55).starts_with("without stride")) << "zeros may be 2 or 3";
  EXPECT_TRUE(derived(4, 3, 2).starts_with("without stride"));
  EXPECT_TRUE(derived(56, 3, 99).starts_with("without stride"));
  EXPECT_TRUE(derived(56, 3, 0).starts_with("without stride"));
  EXPECT_EQ(derived(9000, 9000, 1).substr(0, 14), "without stride");
  EXPECT_TRUE(derived(100'000, 100'000, 7).starts_with("without stride"));
}

TEST(ImportKineto, OtherLayers) {
  const KinetoInput image = Tensor({2, 8, 15, 15});
  const KinetoInput none = Tensor({});
  EXPECT_EQ(Described("batch_norm", {image, Tensor({8}), Tensor({8})}),
            "b2 fp32 normalization kind=batch channels=8 input=15x15");
  EXPECT_EQ(Described("batch_norm", {image, none, none, none, none, Number("False")}),
            "in evaluation mode");
  EXPECT_EQ(Described("layer_norm", {Tensor({4, 20, 64}), none, Tensor({64}), Tensor({64})}, 4),
            "b4 fp32 normalization kind=layer channels=64 input=20x1");
  EXPECT_EQ(Described("layer_norm", {Tensor({4, 20, 64}), none, Tensor({20, 64}), none}),
            "b4 fp32 normalization kind=layer channels=1280");
  EXPECT_EQ(Described("layer_norm", {Tensor({4, 20, 64}), Number("[20, 64]"), none, none}),
            "b4 fp32 normalization kind=layer channels=1280");
  EXPECT_EQ(Described("clamp", {image, Number("0."), Number("6.")}),
            "b2 fp32 activation function=relu6 columns=1800");
  EXPECT_EQ(Described("hardtanh", {image, Number("-1."), Number("1.")}),
            "b2 fp32 activation function=hardtanh columns=1800");
  EXPECT_EQ(Described("gelu", {image, Number("tanh")}),
            "b2 fp32 activation function=gelu_tanh columns=1800");
  EXPECT_EQ(Described("softmax", {Tensor({2, 12, 20, 30}), Number("-1"), none}),
            "b2 fp32 activation function=softmax rows=240 columns=30");
  EXPECT_EQ(Described("softmax", {Tensor({2, 12, 20, 30}), Number("1"), none}),
            "over another dimension than the last");
  EXPECT_EQ(Described("softmax", {Tensor({24, 20, 30}), Number("2"), none}, 2),
            "b2 fp32 activation function=softmax rows=240 columns=30");
  EXPECT_EQ(Described("max_pool2d", {image, Number("[3, 3]"), Number("[2, 2]"), Number("[0, 0]"),
                                     Number("[1, 1]"), Number("True")}),
            "b2 fp32 pooling kind=max channels=8 input=15x15 window=3x3 stride=2x2");
  EXPECT_EQ(
      Described("max_pool2d", {Tensor({2, 8, 16, 16}), Number("[3, 3]"), Number("[2, 2]"),
                               Number("[0, 0]"), Number("[1, 1]"), Number("True")}),
      "b2 fp32 pooling kind=max channels=8 input=16x16 window=3x3 stride=2x2 padding=0,0,1,1");
  // A last window that begins at the image's end, or behind it, is none.
  EXPECT_EQ(Described("max_pool2d", {Tensor({2, 8, 4, 4}), Number("[1, 1]"), Number("[2, 2]"),
                                     Number("[0, 0]"), Number("[1, 1]"), Number("True")}),
            "b2 fp32 pooling kind=max channels=8 input=4x4 stride=2x2");
  EXPECT_EQ(Described("max_pool2d", {Tensor({2, 8, 3, 3}), Number("[2, 2]"), Number("[4, 4]"),
                                     Number("[0, 0]"), Number("[1, 1]"), Number("True")}),
            "b2 fp32 pooling kind=max channels=8 input=3x3 window=2x2 stride=4x4");
  EXPECT_EQ(Described("avg_pool2d", {image, Number("[3]"), Number("[]"), Number("[0, 0]")}),
            "b2 fp32 pooling kind=average channels=8 input=15x15 window=3x3 stride=3x3");
  EXPECT_TRUE(Described("max_pool2d", {image, none, none, none}).starts_with("without window"));
  EXPECT_EQ(Described("max_pool2d", {image, Number("[30]"), Number("[1]"), Number("[0]")}),
            "of no usable window");
  EXPECT_EQ(Described("max_pool2d", {image, Number("[3]"), Number("[0]"), Number("[0]")}),
            "of no usable window");
  EXPECT_EQ(Described("adaptive_avg_pool2d", {image, Number("[1, 1]")}),
            "b2 fp32 pooling kind=average channels=8 input=15x15 window=15x15");
  EXPECT_EQ(Described("adaptive_avg_pool2d", {image, none}, 0, {2, 8, 5, 3}),
            "b2 fp32 pooling kind=average channels=8 input=15x15 window=3x5 stride=3x5");
  EXPECT_EQ(Described("adaptive_avg_pool2d", {image, Number("[7, 7]")}), "of uneven windows");
  EXPECT_EQ(Described("mean", {image, Number("[-1, -2]")}),
            "b2 fp32 pooling kind=average channels=8 input=15x15 window=15x15");
  EXPECT_EQ(Described("mean", {image, Number("[1]")}), "-");
  EXPECT_EQ(Described("add", {image, image}),
            "b2 fp32 elementwise kind=add channels=8 positions=225");
  EXPECT_EQ(Described("mul", {Tensor({2, 8, 1, 1}), image}),
            "b2 fp32 elementwise kind=multiply channels=8 positions=225 broadcast=yes");
  EXPECT_EQ(Described("add", {Tensor({4, 20, 64}), Tensor({64})}, 4),
            "b4 fp32 elementwise kind=add channels=64 positions=20 broadcast=yes");
  EXPECT_EQ(Described("add", {Tensor({4, 20, 64}), Tensor({1, 20, 64})}),
            "of shapes that are repeated");
  EXPECT_EQ(Described("add", {image, Number("1")}), "-");
  EXPECT_EQ(Described("cat", {TensorList({{2, 8, 15, 15}, {2, 4, 15, 15}}), Number("1")}),
            "b2 fp32 copy elements=2700");
  EXPECT_EQ(Described("embedding", {Tensor({1000, 64}), Tensor({4, 20}, "long int")}),
            "b4 fp32 embedding rows=1000 features=64 tokens=20");
  EXPECT_EQ(Described("sort", {image}), "-");
}

TEST(ImportKineto, RecurrentLayers) {
  const auto lstm = [](std::int64_t stacked, const std::string& both) {
    return Described(
        "lstm", {Tensor({20, 8, 64}), TensorList({{stacked, 8, 128}, {stacked, 8, 128}}),
                 TensorList({{512, 64}, {512, 128}, {512}, {512}}), Number("True"), Number("1"),
                 Number("0."), Number("True"), Number(both), Number("False")});
  };
  EXPECT_EQ(lstm(1, "False"), "b8 fp32 recurrent cell=lstm positions=20 inputs=64 hidden=128");
  EXPECT_EQ(lstm(2, "True"),
            "b8 fp32 recurrent cell=lstm positions=20 inputs=64 hidden=128 directions=2");
  EXPECT_EQ(lstm(2, "False"), "of several layers");
  EXPECT_EQ(Described("gru", {Tensor({8, 20, 64}), Tensor({1, 8, 128}),
                              TensorList({{384, 64}, {384, 128}})}),
            "b8 fp32 recurrent cell=gru positions=20 inputs=64 hidden=128");
  EXPECT_EQ(Described("gru", {Tensor({8, 20, 64}), Tensor({})}), "whose states have no shapes");
}

// On a CPU a recurrent layer is made of operators: the product of a whole sequence with the weights
// of what goes in tells its sizes, and the sums of its gradients are its own.
TEST(ImportKineto, RecurrentLayersOfManyOperators) {
  const auto import = [](const std::string& cell, const char* rows, int products) {
    return Import(ReluAnd([&](Trace* trace) {
      trace->Event("cpu_op", "aten::" + cell, 210, 100, kMain,
                   With(Sequence(2), Inputs("[[20, 8, 64], [], []]",
                                            R"(["float", "TensorList", "TensorList"])")));
      for (int i = 0; i < products; ++i) {
        trace->Event(
            "cpu_op", "aten::linear", 215 + 10 * i, 9, kMain,
            Inputs("[[20, 8, 64], [" + std::string(rows) + ", 64]]", R"(["float", "float"])"));
      }
      trace->Event("cpu_op", "aten::linear", 260, 9, kMain,  // of one position
                   Inputs("[[8, 128], [512, 128]]", R"(["float", "float"])"));
      trace->Event("cpu_op", "aten::tanh", 280, 9, kMain, Sequence(3));
      trace->Event("cpu_op", "autograd::engine::evaluate_function: TanhBackward0", 400, 50, kEngine,
                   Sequence(3, true));
      trace->Event("cpu_op", "TanhBackward0", 401, 30, kEngine, Sequence(3, true));
      trace->Event("cpu_op", "aten::add", 435, 10, kEngine,
                   Inputs("[[8, 128], [8, 128], []]", R"(["float", "float"])"));
    }));
  };
  const auto lines = [](const std::string& layer) {
    return std::vector<std::string>{kReluForward + "20", kReluBackward + "60",
                                    "b8 fp32 forward recurrent " + layer + ": 100",
                                    "b8 fp32 backward recurrent " + layer + ": 50"};
  };
  EXPECT_EQ(Lines(import("lstm", "512", 1)), lines("cell=lstm positions=20 inputs=64 hidden=128"));
  EXPECT_EQ(Lines(import("gru", "384", 1)), lines("cell=gru positions=20 inputs=64 hidden=128"));
  EXPECT_EQ(Unattributed(import("lstm", "512", 1)), "");
  // Of two layers, which are two products, or of other gates than the cell has.
  for (const auto& other : {import("lstm", "512", 2), import("lstm", "514", 1)}) {
    EXPECT_EQ(Unattributed(other), "aten::lstm: whose states have no shapes 150\n");
  }
}

// Each spelling of a layer's operator, in place or not.
TEST(ImportKineto, NamesOfLayers) {
  const KinetoInput rows = Tensor({2, 8});
  const KinetoInput image = Tensor({2, 8, 6, 6});
  const std::pair<const char*, const char*> activations[] = {
      {"relu", "relu"},         {"relu6", "relu6"},
      {"clamp_min", "relu"},    {"leaky_relu", "leaky_relu"},
      {"sigmoid", "sigmoid"},   {"silu", "swish"},
      {"tanh", "tanh"},         {"gelu", "gelu"},
      {"hardtanh", "hardtanh"}, {"clamp", "hardtanh"}};
  for (const auto& [name, function] : activations) {
    EXPECT_EQ(Described(name, {rows}),
              std::string("b2 fp32 activation function=") + function + " columns=8");
    EXPECT_EQ(KinetoOperatorName(std::string("aten::") + name + "_"), name);
  }
  for (const char* name : {"softmax", "_softmax", "log_softmax", "_log_softmax"}) {
    EXPECT_EQ(Described(name, {rows}), "b2 fp32 activation function=softmax columns=8");
  }
  for (const char* name :
       {"batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"}) {
    EXPECT_EQ(Described(name, {image}), "b2 fp32 normalization kind=batch channels=8 input=6x6");
    EXPECT_EQ(Described(name, {rows}), "b2 fp32 normalization kind=batch channels=8");
    EXPECT_EQ(Described(name, {Tensor({2, 8, 6})}),
              "b2 fp32 normalization kind=batch channels=8 input=6x1");
    EXPECT_EQ(Described(name, {Tensor({8})}), "of no image");
    EXPECT_EQ(Described(name, {Tensor({2, 8, 6, 6, 6})}), "of no image");
  }
  for (const char* name : {"layer_norm", "native_layer_norm"}) {
    EXPECT_EQ(Described(name, {rows}), "b2 fp32 normalization kind=layer channels=8");
    EXPECT_EQ(Described(name, {rows, Number("[3]")}), "of shapes that do not fit");
  }
  for (const char* name : {"max_pool2d", "max_pool2d_with_indices"}) {
    EXPECT_EQ(Described(name, {image, Number("2"), Number("[]"), Number("0"), Number("1")}),
              "b2 fp32 pooling kind=max channels=8 input=6x6 window=2x2 stride=2x2");
    EXPECT_EQ(Described(name, {image, Number("2"), Number("[]"), Number("0"), Number("2")}),
              "dilated");
  }
  for (const char* name : {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}) {
    EXPECT_EQ(Described(name, {image, Tensor({8, 8, 3, 3})}), "transposed");
  }
  EXPECT_EQ(KinetoOperatorName("mine::relu_"), "mine::relu_");
  EXPECT_EQ(KinetoOperatorName("aten::_"), "_");
  for (const char* name : {"rsub", "div", "native_dropout", ""}) {
    EXPECT_EQ(KinetoLayerOf(name), KinetoLayer::kNone) << name;
  }
}

// Where two windows end beside each other, or behind the image, by the rule of the window that is
// not whole: its end, in zeros.
TEST(ImportKineto, WindowsAtTheEdge) {
  const auto pooled = [](std::int64_t side, int window, int stride, int zeros, bool ceil) {
    const auto number = [](int value) { return Number(std::to_string(value)); };
    return Described("avg_pool2d", {Tensor({2, 8, side, side}), number(window), number(stride),
                                    number(zeros), Number(ceil ? "True" : "False")});
  };
  const std::string start = "b2 fp32 pooling kind=average channels=8 input=";
  // 7 with a window of 3 and a stride of 3: two windows, and a third of which one is within.
  EXPECT_EQ(pooled(7, 3, 3, 0, false), start + "7x7 window=3x3 stride=3x3");
  EXPECT_EQ(pooled(7, 3, 3, 0, true), start + "7x7 window=3x3 stride=3x3 padding=0,0,2,2");
  // 6 with one zero on each side: 8 have two windows and a third of two, one of which is the zero.
  EXPECT_EQ(pooled(6, 3, 3, 1, true), start + "6x6 window=3x3 stride=3x3 padding=1,1,2,2");
  EXPECT_EQ(pooled(6, 3, 3, 1, false), start + "6x6 window=3x3 stride=3x3 padding=1,1,1,1");
  // As wide as the image with its zeros, and one wider.
  EXPECT_EQ(pooled(4, 6, 6, 1, false), start + "4x4 window=6x6 stride=6x6 padding=1,1,1,1");
  EXPECT_EQ(pooled(4, 7, 6, 1, false), "of no usable window");
  // As many zeros as the window is wide, and one more.
  EXPECT_EQ(pooled(4, 1, 1, 1, false), start + "4x4 padding=1,1,1,1");
  EXPECT_EQ(pooled(4, 1, 1, 2, false), "of no usable window");
}

// What is joined along the batch is no copy of samples.
TEST(ImportKineto, WhatIsJoined) {
  EXPECT_EQ(Described("cat", {TensorList({{2, 3}, {2, 5}})}), "b2 fp32 copy elements=8");
  EXPECT_EQ(Described("cat", {TensorList({{}, {2, 3}, {2, 5}})}), "of samples")
      << "one element more than two samples have";
  EXPECT_EQ(Described("cat", {TensorList({{2, 3}, {1, 3}})}), "of samples");
  EXPECT_EQ(Described("cat", {TensorList({})}), "-");
}

// ---- What is refused.

TEST(ImportKineto, Errors) {
  const auto with = [](const std::string& raw) { return Trace().Raw(raw).Text(); };
  const std::string head =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1)";
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"", "trace.json: is empty; allowed: a trace in JSON"},
      {"\x1f\x8b\x08 and so on",
       "trace.json: is compressed with gzip; allowed: plain JSON: gunzip"},
      {"Name,Self CPU\n", ":1: byte 1: is not JSON; allowed: a trace as export_chrome_trace()"},
      {"{\"traceEvents\": [\n{\"ph\": \"X\",\n\"dur\": nan}]}", ":3: byte 39: is not JSON"},
      {"{\"traceEvents\": [\n{\"ph\": \"X\",\n\"dur\": 1e999}]}", ":3: byte 38: is not JSON"},
      {"{\"traceEvents\": [\xff]}", ":1: byte 18: is not JSON"},
      {"{\"traceEvents\": [\n", ":2: ends before its JSON does: the trace was cut off"},
      {"{} {}", ":1: byte 4: is not JSON"},
      {std::string("{}\0{}", 5), ":1: byte 3: is not JSON"},
      {std::string("{\"a\": \"\0\"}", 10), ":1: byte 8: is not JSON"},
      {"{\"a\": 01}", ":1: byte 8: is not JSON"},
      {"{\"a\": \"\xed\xa0\x80\"}", ":1: byte 8: is not JSON"},
      {"{\"a\": \"\\ud800\"}", ":1: byte 8: is not JSON"},
      {"{\"a\": \"\\udc00\"}", ":1: byte 15: is not JSON"},
      {"{}", "trace.json: traceEvents: is missing; allowed: a trace as export_chrome_trace()"},
      {"7", "'7' is not a trace"},
      {"{\"traceEvents\": 7}", "traceEvents: '7' is not a list"},
      {"{\"traceEvents\": [7]}", "traceEvents: '7' is not an event"},
      {"{\"traceEvents\": [[{}]]}", "traceEvents: '[' is not an event"},
      {"{\"traceEvents\": [], \"traceEvents\": []}", "traceEvents: is given twice"},
      {"{\"traceEvents\": []}", "trace.json: has no operators; allowed: a trace of training steps"},
      {with(head + R"(, "ts": 1, "dur": 2})"),
       "trace.json: has no shapes; allowed: a trace of training steps recorded with "
       "torch.profiler.profile(..., record_shapes=True)"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [[2, 3]]}})"),
       "trace.json: has no backward pass of a layer"},
      {with(head + R"(, "ts": 1, "dur": -2})"), ":5: dur: '-2' is negative; allowed: 0 or more"},
      {with(head + R"(, "ts": 1, "dur": 1000000000001})"),
       ":5: dur: '1000000000001' is out of range; allowed: at most 1e6 s"},
      {Trace(R"("deviceProperties": [{"id": 0, "name": "a\nb"}])").Text(),
       ":3: name: 'a\\x0ab' has a control character"},
      {Trace("\"pytorch_version\": \"" + std::string(200'000, '2') + '"').Text(),
       "222...' is too long; allowed: at most 1000 bytes"},
      {with(head + R"(, "ts": 1})"), ":5: dur: is not a time"},
      {with(head + R"(, "ts": "soon", "dur": 1})"), ":5: ts: 'soon' is not a time"},
      {with(head + R"(, "ts": "nan", "dur": 1})"), ":5: ts: 'nan' is not a time"},
      {with(head + R"(, "ts": "inf", "dur": 1})"), ":5: ts: 'inf' is not a time"},
      {with(head + R"(, "ts": 1e300, "dur": 1})"), ":5: ts: '1e300' is not a time"},
      {with(head + R"(, "ts": [1], "dur": 1})"), ":5: ts: is not a time"},
      {with(R"({"ph": "X", "cat": "cpu_op", "name": 7, "ts": 1, "dur": 1})"),
       ":5: name: '7' is not a name; allowed: text"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [[2, "x"]]}})"),
       ":5: Input Dims: 'x' is not a length"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [[2, -3]]}})"),
       ":5: Input Dims: '[[2,-3]]' is not a list of shapes"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [[2.5]]}})"),
       ":5: Input Dims: '[[2.5]]' is not a list of shapes"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [[[[2]]]]}})"),
       ":5: Input Dims: '[[[[2]]]]' is not a list of shapes"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [5]}})"),
       ":5: Input Dims: '[5]' is not a list of shapes"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Dims": [{}]}})"),
       ":5: Input Dims: '{' is no list"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input type": [["float"]]}})"),
       ":5: Input type: '[' is a list within the list"},
      // A key is told as the trace spells it.
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input dims": [[2, "x"]]}})"),
       ":5: Input dims: 'x' is not a length"},
      {with(head + R"(, "ts": 1, "dur": 2, "args": {"Input Type": [["float"]]}})"),
       ":5: Input Type: '[' is a list within the list"},
      {"{\"traceEvents\": [" + std::string(5000, '['), "traceEvents: '[' is not an event"},
      {"{\"x\": " + std::string(5000, '['), ":1: is nested too deeply; allowed: at most 64 levels"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] { Import(c.text); }), c.says)) << c.text.substr(0, 400);
  }
  const TempFolder folder;
  EXPECT_TRUE(Says(ErrorOf([&] { ImportKineto(folder.path()); }), "is a folder, not a file"));
  EXPECT_TRUE(Says(ErrorOf([&] { ImportKineto(folder.Path("none")); }), "none: cannot be read: "));
}

// Times that no step takes are refused where they belong to a layer, and add up where they do not.
TEST(ImportKineto, TimesThatNoStepTakes) {
  const std::string relu = Inputs("[[30, 10]]", R"(["float"])");
  const auto backward = [&](double first, double second) {
    Trace trace;
    trace.Event("cpu_op", "aten::relu", 10, 20, kMain, With(Sequence(1), relu));
    trace.Event("cpu_op", "ReluBackward0", 100, first, kMain, Sequence(1, true));
    trace.Event("cpu_op", "ReluBackward0", 2e12, second, kMain, Sequence(1, true));
    return trace;
  };
  EXPECT_EQ(Import(backward(5e11, 4e11)).profile.samples.back().seconds.front(), 9e5);
  EXPECT_TRUE(Says(ErrorOf([&] { Import(backward(9e11, 9e11)); }),
                   "trace.json: aten::relu: '1800000 s' is longer than a call may take"));

  GpuTrace gpu;
  CpuStep(&gpu, 0, 30, "ProfilerStep#1");
  gpu.Kernel(50, kMain, 60, 30);
  gpu.Kernel(310, kMain, 320, 30);
  for (int i = 0; i < 20'000; ++i) gpu.Event("kernel", "endless", 400, 1e12, 0);
  const KinetoSummary summary = Import(gpu).summary;
  EXPECT_EQ(summary.kernels.front().total_s, 2e10);
  EXPECT_EQ(summary.unattributed_s.at("kernels launched before the trace"), 2e10);
  EXPECT_GT(summary.device_busy_share, 0);
  EXPECT_LE(summary.device_busy_share, 1);
}

// Two processes in one file: which of them launched a kernel is not known.
TEST(ImportKineto, NumbersOfLaunchesMustBeUnique) {
  Trace trace = CpuTrace();
  trace.Event("cuda_runtime", "cudaLaunchKernel", 50, 1, kMain, R"("correlation": 4)");
  trace.Event("kernel", "k", 60, 1, 0, R"("correlation": 4)");
  EXPECT_TRUE(Says(
      ErrorOf([&] {
        Trace twice = trace;
        twice.Event("cuda_runtime", "cudaLaunchKernel", 180, 1, kMain, R"("correlation": 4)");
        Import(twice);
      }),
      "trace.json: correlation: '4' is the number of launches by several operators; allowed: a "
      "trace of one process"));
}

// Other events and arguments are not looked at, whatever they hold.
TEST(ImportKineto, OtherEventsAreIgnored) {
  Trace trace = CpuTrace();
  trace.Raw(R"({"ph": "M", "name": "process_name", "args": {"name": [{"a": [1]}]}})");
  trace.Raw(R"({"ph": "i", "name": 5, "ts": "x", "s": "g"})");
  trace.Raw(R"({"ph": "X", "cat": "python_function", "name": null, "dur": -7})");
  trace.Raw(R"({"ph": "s", "id": 1, "cat": "ac2g", "ts": -1e9})");
  trace.Raw(R"({"name": "Record Window End", "ph": "i", "args": [{"Input Dims": [["x"]]}]})");
  trace.Raw("{}");
  EXPECT_EQ(Lines(Import(trace)), Lines(Import(CpuTrace())));
}

// Cut off anywhere, a trace is refused with one sentence.
TEST(ImportKineto, EveryTruncation) {
  const std::string text = CpuTrace().Text();
  const TempFolder folder;
  const std::size_t whole = text.rfind('}');
  for (std::size_t size = 0; size <= whole; size += size < 600 ? 1 : 97) {
    const std::string path = folder.Write("cut.json", text.substr(0, size));
    EXPECT_TRUE(Says(ErrorOf([&] { ImportKineto(path); }), "cut.json")) << size;
  }
}

// Damaged anywhere, it is read or refused.
TEST(ImportKineto, DamagedBytes) {
  GpuTrace gpu;
  CpuStep(&gpu, 0, 30, "ProfilerStep#1");
  gpu.Kernel(50, kMain, 60, 30);
  gpu.Kernel(510, kMain, 520, 30);
  const std::string text = gpu.Text();
  const TempFolder folder;
  std::mt19937 random(7);
  const std::string bytes = "0123456789-.,:[]{}\"eEaX \n\x80";
  int read = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = text;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      damaged[random() % damaged.size()] = bytes[random() % bytes.size()];
    }
    const std::string path = folder.Write("damaged.json", damaged);
    try {
      const KinetoImport import = ImportKineto(path);
      const std::string profile = FormatComputeProfile(import.profile);
      EXPECT_NO_THROW(ParseComputeProfile(profile, "profile")) << profile;
      ++read;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("damaged.json"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(read, 50);
}

// Whatever its numbers are, it is refused or gives a profile that is read, and figures.
TEST(ImportKineto, NumbersOfAnySize) {
  GpuTrace gpu;
  CpuStep(&gpu, 0, 30, "ProfilerStep#1");
  gpu.Kernel(50, kMain, 60, 30);
  gpu.Kernel(510, kMain, 520, 30);
  const std::string text = gpu.Text();
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  for (std::size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;) {
    const std::size_t end = text.find_first_not_of("0123456789", at);
    if (text[at - 1] != 'd' && text[at - 1] != '#') numbers.emplace_back(at, end - at);
    at = end;
  }
  const std::vector<std::string> others = {"0",          "1",    "3",    "64",           "1000000",
                                           "2000000000", "1e12", "4e15", "999999999999", "-1",
                                           "1000000000", "0.001"};
  std::mt19937 random(11);
  int read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string changed = text;
    // From behind, so that places stay.
    for (std::size_t i = numbers.size(); i-- > 0;) {
      if (random() % numbers.size() > 2) continue;
      changed.replace(numbers[i].first, numbers[i].second, others[random() % others.size()]);
    }
    try {
      const KinetoSummary summary = Import(changed).summary;
      EXPECT_TRUE(summary.device_busy_share >= 0 && summary.device_busy_share <= 1);
      for (const KernelTime& kernel : summary.kernels) EXPECT_GE(kernel.total_s, 0);
      for (const auto& [name, seconds] : summary.unattributed_s) EXPECT_GE(seconds, 0) << name;
      ++read;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("trace.json"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(read, 100);
}

// ---- Size.

// Operators and nodes that all have one number: four times as many take about four times as long.
TEST(ImportKineto, NumbersThatMeanNothing) {
  const auto cost = [](int count) {
    Trace trace;
    const std::string relu = Inputs("[[30, 10]]", R"(["float"])");
    for (int i = 0; i < count; ++i) {
      trace.Event("cpu_op", "aten::relu", 2 * i, 1, kMain, With(Sequence(1), relu));
      trace.Event("cpu_op", "ReluBackward0", 1e6 + 2 * i, 1, kMain, Sequence(1, true));
    }
    const TempFolder folder;
    const std::string path = folder.Write("trace.json", trace.Text());
    const std::clock_t start = std::clock();
    EXPECT_EQ(ImportKineto(path).profile.samples.size(), 2U);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double small = cost(2500) + 2e-3;
  EXPECT_LT(cost(40'000) / small, 16 * 3.0);
}

// A long trace takes less memory than it has bytes, and seconds.
TEST(ImportKineto, LongTraces) {
  constexpr int kSteps = 4000;
  const TempFolder folder;
  const std::string path = folder.Path("long.json");
  {
    std::ofstream out(path);
    out << "{\"traceEvents\": [\n";
    for (int step = 0; step < kSteps; ++step) {
      Trace trace;
      CpuStep(&trace, 1000.0 * step, 10 * step, "ProfilerStep#" + std::to_string(step));
      const std::string text = trace.Text();
      const std::size_t from = text.find("[\n{") + 2;
      out << (step == 0 ? "" : ",") << text.substr(from, text.rfind(']') - from);
      // Call stacks make up most of a real trace.
      out << R"(,{"ph": "X", "cat": "python_function", "name": "f", "args": {"Call stack": ")"
          << std::string(4000, 's') << "\"}}\n";
    }
    out << "]}";
  }
  const std::size_t size = FileContent(path).size();
  ASSERT_GT(size, 40'000'000U);
  const std::size_t before = MemoryPeak();
  const auto start = std::chrono::steady_clock::now();
  const KinetoImport import = ImportKineto(path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(import.summary.steps, kSteps);
  ASSERT_EQ(import.profile.samples.size(), 9U);
  for (const MeasuredSamples& samples : import.profile.samples) {
    EXPECT_EQ(samples.seconds.size(), static_cast<std::size_t>(kSteps));
  }
#ifndef STEPCAST_TEST_SANITIZED
  EXPECT_LT(MemoryPeak() - before, size) << "of " << size << " bytes";
  EXPECT_LT(took.count(), 30);
#else
  (void)before;
  (void)took;
#endif
}

}  // namespace
}  // namespace stepcast
