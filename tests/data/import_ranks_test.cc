// The traces of several ranks. NCCL's forms are written here by hand, with the names of fields that
// pytorch/kineto writes (libkineto/src/output_json.cpp: a kernel repeats the arguments of the
// record_param_comms that it was launched for) and pytorch/pytorch gives them
// (torch/csrc/profiler/util.h); those of PyTorch 1.9, whose kernels say nothing of their messages,
// are those of its TensorBoard plugin's tests (tb_plugin/test/test_profiler.py). Gloo's are what
// three processes wrote on a CPU.
#include "data/kineto/import_ranks.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/io/runs.h"
#include "data/kineto/rank_trace.h"
#include "data/kineto/spans.h"
#include "tests/support/input_error.h"
#include "tests/support/memory_peak.h"
#include "tests/support/temp_file.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPCAST_TEST_SANITIZED 1
#endif

namespace stepcast {
namespace {

constexpr double kUs = 1e-6;
constexpr double kTight = 1e-12;

// ---- Traces, in microseconds.

std::string World(int rank, int size, const std::string& backend = "nccl") {
  return R"("distributedInfo": {"backend": ")" + backend + R"(", "rank": )" + std::to_string(rank) +
         R"(, "world_size": )" + std::to_string(size) +
         R"(, "pg_count": 1, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]})";
}

class RankFile {
 public:
  // Launches are numbered from behind `correlation` on.
  explicit RankFile(std::string head, int correlation = 0)
      : head_(std::move(head)), correlation_(correlation) {}

  RankFile& Event(const std::string& category, const std::string& name, double start, double time,
                  int thread, const std::string& arguments = "") {
    std::ostringstream out;
    out.precision(12);
    out << R"({"ph": "X", "cat": ")" << category << R"(", "name": ")" << name << R"(", "pid": 7, )"
        << R"("tid": )" << thread << R"(, "ts": )" << 1000 + start << R"(, "dur": )" << time
        << R"(, "args": {)" << arguments << "}}";
    events_ += (events_.empty() ? "" : ",\n") + out.str();
    return *this;
  }
  RankFile& Step(int number, double start, double time) {
    Event("user_annotation", "ProfilerStep#" + std::to_string(number), start, time, 1);
    // As Kineto repeats it for the GPU, which is no mark.
    return Event("gpu_user_annotation", "ProfilerStep#" + std::to_string(number), start, time, 7);
  }
  // A kernel or copy on a stream, and its launch.
  RankFile& Work(const std::string& category, const std::string& name, double launch, double start,
                 double time, const std::string& arguments = "") {
    const std::string number = R"("correlation": )" + std::to_string(++correlation_);
    Event("cuda_runtime", "cudaLaunchKernel", launch, 1, 1, number);
    return Event(
        category, name, start, time, 20,
        number + R"(, "device": 0, "stream": 20)" + (arguments.empty() ? "" : ", " + arguments));
  }
  RankFile& Compute(double launch, double start, double time) {
    return Work("kernel", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", launch, start, time);
  }
  RankFile& Collective(const std::string& name, double launch, double start, double time,
                       const std::string& arguments) {
    return Work("kernel", name, launch, start, time, arguments);
  }
  RankFile& AllReduce(double launch, double start, double time, const std::string& arguments) {
    return Collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                      launch, start, time, arguments);
  }
  std::string Text() const {
    return "{\n\"schemaVersion\": 1,\n" + head_ + ",\n\"traceEvents\": [\n" + events_ + "\n]}\n";
  }

 private:
  std::string head_;
  std::string events_;
  int correlation_;
};

// What record_param_comms tells of a message, and a kernel that repeats it.
std::string Message(const std::string& name, std::int64_t in, std::int64_t out,
                    const std::string& type, int ranks, const std::string& more = "") {
  return R"("Collective name": ")" + name + R"(", "In msg nelems": )" + std::to_string(in) +
         R"(, "Out msg nelems": )" + std::to_string(out) + R"(, "Group size": )" +
         std::to_string(ranks) + R"(, "dtype": ")" + type + '"' + (more.empty() ? "" : ", " + more);
}
std::string Group(const std::string& name, const std::string& members) {
  return R"("Process Group Name": ")" + name + R"(", "Process Group Ranks": ")" + members + '"';
}

TrainingRanks Import(const std::vector<std::string>& texts) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    paths.push_back(folder.Write("rank" + std::to_string(paths.size()) + ".json", text));
  }
  return ImportKinetoRanks(paths);
}
TrainingRanks Import(const std::vector<RankFile>& files) {
  std::vector<std::string> texts;
  for (const RankFile& file : files) texts.push_back(file.Text());
  return Import(texts);
}

void ExpectTimes(const RankTimes& times, const RankTimes& in_us) {
  EXPECT_NEAR(times.step, in_us.step * kUs, kTight);
  EXPECT_NEAR(times.computing, in_us.computing * kUs, kTight);
  EXPECT_NEAR(times.communication, in_us.communication * kUs, kTight);
  EXPECT_NEAR(times.exposed, in_us.exposed * kUs, kTight);
  EXPECT_NEAR(times.hidden, in_us.hidden * kUs, kTight);
  EXPECT_NEAR(times.copying, in_us.copying * kUs, kTight);
  EXPECT_NEAR(times.idle, in_us.idle * kUs, kTight);
  EXPECT_NEAR(times.waits, in_us.waits * kUs, kTight);
  EXPECT_NEAR(times.waited_for, in_us.waited_for * kUs, kTight);
}

// ---- Two ranks with two buckets, the answers by arithmetic.

// Computes from 100 to 700; the first bucket is hidden behind it, the second only until 700, and a
// copy outlasts both.
RankFile TwoBuckets(int rank, double second, double time) {
  const std::string first =
      Message("allreduce", 262'144, 262'144, "Float", 2, Group("0", "[0, 1]"));
  const std::string last = Message("allreduce", 1000, 1000, "BFloat16", 2, Group("0", "[0, 1]"));
  return RankFile(World(rank, 2))
      .Step(3, 0, 1000)
      .Event("cpu_op", "aten::linear", 8, 950, 1)  // launches what the device computes
      .Compute(10, 100, 400)
      .Compute(20, 500, 200)
      .AllReduce(30, 300, rank == 0 ? 300 : 250, first)
      .AllReduce(40, second, time, last)
      .Work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 50, 880, 70);
}

TEST(ImportRanks, ExposedHiddenAndWaiting) {
  const TrainingRanks training = Import({TwoBuckets(0, 650, 250), TwoBuckets(1, 800, 100)});
  EXPECT_EQ(training.backend, "nccl");
  EXPECT_TRUE(training.gpu && training.marked && training.ranks_are_told && training.world_is_told);
  EXPECT_EQ(training.world_size, 2);
  EXPECT_TRUE(training.missing.empty() && training.others.empty() && training.not_compared.empty());
  EXPECT_FALSE(training.queued || training.groups_are_taken);
  ASSERT_EQ(training.ranks.size(), 2U);
  // 300 to 600 and 650 to 900: 200 are behind 700. The copy is alone from 900 to 950.
  ExpectTimes(training.ranks[0].mean, {1000, 600, 550, 200, 350, 50, 150, 200, 0});
  ExpectTimes(training.ranks[1].mean, {1000, 600, 350, 100, 250, 50, 250, 0, 200});
  ExpectTimes(training.mean, {1000, 600, 450, 150, 300, 50, 200, 100, 100});
  EXPECT_EQ(training.ranks[0].came_last, 0);
  EXPECT_EQ(training.ranks[1].came_last, 2);
  EXPECT_EQ(training.ranks[1].compared, 2);
  ASSERT_EQ(training.steps.size(), 1U);
  EXPECT_EQ(training.steps[0].number, 3);
  EXPECT_EQ(training.steps[0].last, 1);

  ASSERT_EQ(training.classes.size(), 2U);
  const CollectiveClass& first = training.classes[0];
  EXPECT_EQ(first.call, CollectiveCall::kAllReduce);
  EXPECT_EQ(first.type, "Float");
  EXPECT_EQ(first.bytes, 1048576.0);
  EXPECT_EQ(first.ranks, 2);
  EXPECT_EQ(first.calls, 2);
  EXPECT_EQ(first.calls_per_step, 1);
  EXPECT_NEAR(first.time_s, 275 * kUs, kTight);
  EXPECT_NEAR(first.exposed_s, 0, kTight);
  EXPECT_NEAR(*first.transfer_s, 250 * kUs, kTight);
  // 2 (n - 1) / n of the message, n = 2.
  EXPECT_NEAR(*first.bus_bytes_per_s, 1048576 / 250e-6, 1);
  const CollectiveClass& second = training.classes[1];
  EXPECT_EQ(second.bytes, 2000.0);
  EXPECT_NEAR(second.exposed_s, 150 * kUs, kTight);
  EXPECT_NEAR(*second.transfer_s, 100 * kUs, kTight);
}

// One rank alone: what it communicates is known, who waits is not.
TEST(ImportRanks, OneOfTwoRanks) {
  const TrainingRanks training = Import({TwoBuckets(1, 650, 250)});
  EXPECT_EQ(training.missing, (std::vector<int>{0}));
  ExpectTimes(training.mean, {1000, 600, 500, 200, 300, 50, 150, 0, 0});
  EXPECT_EQ(training.ranks[0].compared, 0);
  EXPECT_FALSE(training.steps[0].last);
  EXPECT_FALSE(training.classes[0].transfer_s);
  EXPECT_NEAR(*training.classes[0].bus_bytes_per_s, 1048576 / 250e-6, 1);
}

// Hosts that run ahead mark steps that are shorter than the device takes for them.
TEST(ImportRanks, StepsOfADeviceThatIsBehind) {
  RankFile file(World(0, 1));
  file.Step(1, 0, 100).Step(2, 100, 100).Step(3, 200, 100);
  file.Compute(-10, -50, 80);  // of the step before, until 30
  file.Compute(10, 30, 400).AllReduce(20, 430, 100, Message("allreduce", 8, 8, "Float", 1));
  file.Compute(110, 530, 400).AllReduce(120, 930, 100, Message("allreduce", 8, 8, "Float", 1));
  file.Compute(210, 1040, 300).AllReduce(220, 1340, 60, Message("allreduce", 8, 8, "Float", 1));
  file.Compute(310, 1400, 900);  // launched behind the last step
  const TrainingRanks training = Import({file});
  ASSERT_EQ(training.steps.size(), 3U);
  ExpectTimes(training.ranks[0].steps[0], {500, 400, 100, 100, 0, 0, 0, 0, 0});
  ExpectTimes(training.ranks[0].steps[1], {500, 400, 100, 100, 0, 0, 0, 0, 0});
  ExpectTimes(training.ranks[0].steps[2], {370, 300, 60, 60, 0, 0, 10, 0, 0});
}

// ---- Forms.

// The same call in three forms: with the kernel's own arguments, by the number that it shares with
// its call, and by the call that it was launched in.
TEST(ImportRanks, MessagesOfAnyForm) {
  const std::string message = Message("allreduce", 5000, 5000, "Half", 4);
  const auto step = [] { return RankFile(World(0, 4)).Step(1, 0, 100).Compute(5, 10, 50); };
  const std::string kernel = "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)";

  RankFile own = step().Collective(kernel, 20, 40, 30, message);
  RankFile shared =
      step().Event("cpu_op", "record_param_comms", 18, 6, 2, R"("External id": 77, )" + message);
  shared.Collective(kernel, 20, 40, 30, R"("External id": 77)");
  RankFile launched =
      step().Event("cpu_op", "record_param_comms", 18, 6, 1, R"("External id": 77, )" + message);
  launched.Collective(kernel, 20, 40, 30, "");
  RankFile old =
      step().Event("cpu_op", "nccl:all_reduce", 18, 6, 9,
                   R"("External id": 77, "Input Dims": [[50, 100]], "Input type": ["c10::Half"])");
  old.Collective(kernel, 20, 40, 30, R"("external id": 77)");
  for (const RankFile& file : {own, shared, launched, old}) {
    const TrainingRanks training = Import({file});
    ASSERT_EQ(training.classes.size(), 1U) << file.Text();
    EXPECT_EQ(training.classes[0].call, CollectiveCall::kAllReduce);
    EXPECT_EQ(training.classes[0].bytes, 10'000.0) << file.Text();
    EXPECT_EQ(training.classes[0].ranks, 4);
    EXPECT_NEAR(*training.classes[0].bus_bytes_per_s, 1.5 * 10'000 / 30e-6, 1);
    EXPECT_TRUE(training.ranks[0].remarks.empty());
  }
}

// Bytes of an element, by its type as PyTorch or C++ has it.
TEST(ImportRanks, TypesHaveTheirSizes) {
  const std::pair<double, std::vector<const char*>> sizes[] = {
      {1, {"Byte", "unsigned char", "Char", "signed char", "Bool", "bool", "Float8_e5m2"}},
      {1, {"Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz"}},
      {2, {"Short", "short int", "short", "Half", "c10::Half", "BFloat16", "c10::BFloat16"}},
      {4, {"Int", "int", "Float", "float"}},
      {8, {"Long", "long int", "long", "Double", "double"}},
      {8, {"ComplexFloat", "c10::complex<float>"}},
      {16, {"ComplexDouble", "c10::complex<double>"}}};
  for (const auto& [size, types] : sizes) {
    for (const char* type : types) {
      const TrainingRanks training =
          Import({RankFile(World(0, 4))
                      .Step(1, 0, 100)
                      .AllReduce(5, 10, 50, Message("allreduce", 50, 50, type, 4))});
      ASSERT_EQ(training.classes.size(), 1U) << type;
      EXPECT_EQ(training.classes[0].bytes, 50 * size) << type;
    }
  }
}

// A call that is over has launched nothing more.
TEST(ImportRanks, CallsBeforeALaunch) {
  RankFile file = RankFile(World(0, 4)).Step(1, 0, 100);
  file.Event("cpu_op", "record_param_comms", 10, 5, 1, Message("allreduce", 9, 9, "Float", 4));
  file.AllReduce(20, 40, 30, "");
  const TrainingRanks training = Import({file});
  EXPECT_EQ(training.classes.at(0).call, CollectiveCall::kAllReduce);
  EXPECT_FALSE(training.classes.at(0).bytes);
  EXPECT_TRUE(training.groups_are_taken);
}

TEST(ImportRanks, KindsOfCalls) {
  const struct {
    const char* kernel;
    std::string message;
    CollectiveCall call;
    double bytes;
    double bus;  // of bytes over time; 0: none
  } cases[] = {
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       Message("_allgather_base", 100, 400, "BFloat16", 4), CollectiveCall::kAllGather, 800, 0.75},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       Message("_reduce_scatter_base", 400, 100, "BFloat16", 4), CollectiveCall::kReduceScatter,
       800, 0.75},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
       Message("all_to_allv", 400, 300, "Long", 4), CollectiveCall::kAllToAll, 3200, 0.75},
      {"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       Message("broadcast", 7, 7, "Double", 4), CollectiveCall::kBroadcast, 56, 1},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
       Message("send", 64, 64, "Float", 4), CollectiveCall::kSend, 256, 0},
      {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
       Message("allreduce_coalesced", 64, 64, "Float8_e4m3fn", 4), CollectiveCall::kAllReduce, 64,
       1.5},
  };
  for (const auto& c : cases) {
    const TrainingRanks training =
        Import({RankFile(World(0, 4)).Step(1, 0, 100).Collective(c.kernel, 5, 10, 50, c.message)});
    ASSERT_EQ(training.classes.size(), 1U);
    EXPECT_EQ(training.classes[0].call, c.call) << c.message;
    EXPECT_EQ(training.classes[0].bytes, c.bytes) << c.message;
    EXPECT_EQ(training.classes[0].bus_bytes_per_s.has_value(), c.bus > 0) << c.message;
    EXPECT_NEAR(training.classes[0].bus_bytes_per_s.value_or(0), c.bus * c.bytes / 50e-6, 1e-3);
  }
}

// What is not understood is counted, and no number is made of it.
TEST(ImportRanks, WhatIsNotUnderstood) {
  const auto remarks = [](RankFile file) {
    file.Step(1, 0, 100);
    const TrainingRanks training = Import({file});
    EXPECT_EQ(training.classes.size(), 1U);
    EXPECT_FALSE(training.classes[0].bytes);
    EXPECT_FALSE(training.classes[0].bus_bytes_per_s);
    std::string text;
    for (const auto& [what, count] : training.ranks[0].remarks) {
      text += what + ": " + std::to_string(count) + "\n";
    }
    return text;
  };
  const auto file = [] { return RankFile(World(0, 2)); };
  EXPECT_EQ(remarks(file().AllReduce(5, 10, 50, Message("allreduce", 9, 9, "Int3", 2))),
            "messages of type Int3, whose size is not known: 1\n");
  EXPECT_EQ(remarks(file().Collective("ncclDevKernel_Generic_4(ncclDevKernelArgs)", 5, 10, 50, "")),
            "a collective by kernel ncclDevKernel_Generic_4(ncclDevKernelArgs): 1\n");
  EXPECT_EQ(remarks(file().AllReduce(5, 10, 50,
                                     R"("Collective name": "allreduce", "In msg nelems": "many")")),
            "messages whose elements are not whole numbers: 1\n");
  const std::string shared = R"("External id": 5, )" + Message("all_to_all", 9, 9, "Float", 2);
  EXPECT_EQ(remarks(file()
                        .Collective("ncclDevKernel_SendRecv(a)", 5, 10, 20, shared)
                        .Collective("ncclDevKernel_SendRecv(a)", 6, 30, 20, shared)),
            "kernels that share a call, so that the bytes of each are not known: 2\n");
}

// ---- Names.

// Kinds as libraries spell them, of a message and of a kernel that says no more: a longer word
// comes before those that it holds.
TEST(ImportRanks, NamesOfCalls) {
  using C = CollectiveCall;
  const std::pair<const char*, C> cases[] = {{"all_reduce", C::kAllReduce},
                                             {"allreduce_coalesced", C::kAllReduce},
                                             {"reduce_scatter_tensor", C::kReduceScatter},
                                             {"ReduceScatter", C::kReduceScatter},
                                             {"_allgather_base", C::kAllGather},
                                             {"all_to_allv", C::kAllToAll},
                                             {"barrier", C::kBarrier},
                                             {"Broadcast", C::kBroadcast},
                                             {"SendRecv", C::kSendReceive},
                                             {"gather", C::kGather},
                                             {"scatter", C::kScatter},
                                             {"Reduce_Sum", C::kReduce},
                                             {"send", C::kSend},
                                             {"recv", C::kReceive},
                                             {"wait", C::kOther}};
  for (const auto& [name, call] : cases) {
    const RankFile start = RankFile(World(0, 4)).Step(1, 0, 100);
    const RankFile told =
        RankFile(start).Collective("ncclDevKernel_x(a)", 5, 10, 50, Message(name, 9, 9, "Int", 4));
    const RankFile named =
        RankFile(start).Collective(std::string("ncclDevKernel_") + name, 5, 10, 50, "");
    for (const RankFile& file : {told, named}) {
      const TrainingRanks training = Import({file});
      ASSERT_EQ(training.classes.size(), 1U) << name;
      EXPECT_EQ(training.classes[0].call, call) << name;
      EXPECT_EQ(training.ranks[0].remarks.size(), call == C::kOther ? 1U : 0U) << name;
    }
  }
}

// A kernel communicates that bears the name of such a library, or a template around it.
TEST(ImportRanks, KernelsOfLibraries) {
  const std::pair<const char*, bool> cases[] = {
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", true},
      {"void ncclKernel_AllReduce<1>(ncclWorkElem)", true},
      {"void ncclDevKernel_AllReduce<1>(ncclDevKernelArgs)", true},
      {"rcclGenericKernel<true>(ncclDevComm*)", true},
      {"mscclKernel_Sum_float_Simple(ncclDevComm*)", true},
      {"oneccl_allreduce_ring", true},
      {"void my_nccl_like(float*)", false},
      {"allreduce_in_place", false}};
  for (const auto& [name, communicates] : cases) {
    const TrainingRanks training =
        Import({RankFile(World(0, 4)).Step(1, 0, 100).Collective(name, 5, 10, 30, "")});
    EXPECT_NEAR(training.mean.communication, communicates ? 30 * kUs : 0, kTight) << name;
    EXPECT_NEAR(training.mean.computing, communicates ? 0 : 30 * kUs, kTight) << name;
  }
}

// A rank without a GPU, which computes for 10 us.
RankFile HostRank(const std::string& backend = "gloo") {
  return RankFile(World(0, 1, backend)).Step(1, 0, 100).Event("cpu_op", "aten::mm", 0, 10, 1);
}

// On a host operators of any library compute, and nodes of the graph, calls and marks do not.
TEST(ImportRanks, OperatorsThatCompute) {
  const std::pair<const char*, bool> cases[] = {
      {"aten::sort", true},
      {"torch_sparse::spmm_sum", true},
      {"torch::autograd::AccumulateGrad", false},
      {"autograd::engine::evaluate_function: MmBackward0", false},
      {"c10d::allreduce_", false},
      {"_c10d_functional::all_reduce", false},
      {"c10d_functional::all_reduce", false},
      {"profiler::_record_function_enter_new", false},
      {"my lib::mm", false},
      {"::mm", false},
      {"MmBackward0", false},
      {"Optimizer.step#SGD.step", false}};
  for (const auto& [name, computes] : cases) {
    const TrainingRanks training = Import({HostRank().Event("cpu_op", name, 40, 30, 1)});
    EXPECT_NEAR(training.mean.computing, (computes ? 40 : 10) * kUs, kTight) << name;
  }
  EXPECT_NEAR(Import({HostRank().Event("user_annotation", "aten::mm", 40, 30, 1)}).mean.computing,
              10 * kUs, kTight)
      << "a span that somebody named";
}

TEST(ImportRanks, LibrariesOnTheHost) {
  for (const std::string library : {"gloo", "mpi", "ucc", "tcp"}) {
    const bool known = library != "tcp";
    const TrainingRanks training =
        Import({HostRank(library).Event("cpu_op", library + ":all_reduce", 40, 30, 1)});
    EXPECT_NEAR(training.mean.communication, (known ? 30 : 0) * kUs, kTight) << library;
    EXPECT_EQ(training.queued, known) << library;
  }
}

// What a call on the host is given is its message where the same goes in and out.
TEST(ImportRanks, BytesOnTheHost) {
  const auto bytes = [](const std::string& call, const char* dims, const char* types) {
    const TrainingRanks training = Import({HostRank().Event(
        "cpu_op", "gloo:" + call, 40, 30, 1,
        std::string(R"("Input Dims": )") + dims + R"(, "Input type": )" + types)});
    return training.classes.at(0).bytes.value_or(-1);
  };
  const char* const floats = R"(["float", "float"])";
  EXPECT_EQ(bytes("all_reduce", "[[10], [5]]", floats), 60);
  EXPECT_EQ(bytes("broadcast", "[[10, 3]]", floats), 120);
  EXPECT_EQ(bytes("reduce", "[[10]]", R"(["", "double"])"), 80);
  EXPECT_EQ(bytes("all_gather", "[[10]]", floats), -1);
  EXPECT_EQ(bytes("scatter", "[[10]]", floats), -1);
  EXPECT_EQ(bytes("all_reduce", "[[[10], [5]]]", R"(["TensorList", "float"])"), -1);
}

// ---- Values beyond what there is.

TEST(ImportRanks, ValuesThatNoMessageHas) {
  const auto remarks = [](const std::string& message) {
    const TrainingRanks training =
        Import({RankFile(World(0, 4)).Step(1, 0, 100).AllReduce(5, 10, 50, message)});
    std::string text;
    for (const auto& [what, count] : training.ranks[0].remarks) text += what + "\n";
    return text;
  };
  const auto sized = [](const std::string& size) {
    return R"("Collective name": "allreduce", "Group size": )" + size;
  };
  EXPECT_EQ(remarks(sized("1000000")), "");
  for (const char* size : {"1000001", "0", "-1", "\"x\""}) {
    EXPECT_EQ(remarks(sized(size)), "collectives whose Group size is not a number of ranks\n")
        << size;
  }
  const auto of = [](std::int64_t elements) {
    return Message("allreduce", 1, elements, "Byte", 4);
  };
  EXPECT_EQ(remarks(of(1'000'000'000'000'000)), "");
  EXPECT_EQ(remarks(of(1'000'000'000'000'001)), "messages of more than 10^15 elements\n");
  const auto among = [](const std::string& members) {
    return R"("Collective name": "allreduce", )" + Group("0", members);
  };
  EXPECT_EQ(remarks(among("[0, 999999]")), "");
  EXPECT_EQ(remarks(among("[0, 1000000]")), "groups whose ranks are no ranks\n");
  EXPECT_EQ(remarks(R"("Collective name": "allreduce", "Seq": 0)"), "");
  EXPECT_EQ(remarks(R"("Collective name": "allreduce", "Seq": -1)"),
            "collectives whose Seq is not a whole number\n");
}

// ---- Launches.

// The call by the number that its launch has, unless that is the launch's own once more, and by the
// call around the one that the launch is in.
TEST(ImportRanks, CallsOfALaunch) {
  const std::string message = Message("allreduce", 5000, 5000, "Half", 4);
  const auto bytes = [](const RankFile& file) {
    return Import({file}).classes.at(0).bytes.value_or(-1);
  };
  for (const std::string number : {"77", "500"}) {
    const RankFile file = RankFile(World(0, 4))
                              .Step(1, 0, 100)
                              .Event("cpu_op", "record_param_comms", 18, 6, 2,
                                     R"("External id": )" + number + ", " + message)
                              .Event("cuda_runtime", "cudaLaunchKernel", 20, 1, 1,
                                     R"("correlation": 500, "External id": )" + number)
                              .Event("kernel", "ncclDevKernel_x(a)", 40, 30, 20,
                                     R"("correlation": 500, "device": 0)");
    EXPECT_EQ(bytes(file), number == "77" ? 10'000 : -1);
  }
  for (const double launch : {20, 25, 30}) {
    const RankFile file = RankFile(World(0, 4))
                              .Step(1, 0, 100)
                              .Event("cpu_op", "record_param_comms", 18, 10, 1, message)
                              .Event("cpu_op", "nccl:all_reduce", 19, 6, 1)
                              .Collective("ncclDevKernel_x(a)", launch, 40, 30, "");
    EXPECT_EQ(bytes(file), launch < 28 ? 10'000 : -1) << launch;
  }
}

// A call tells its group, size and number for a kernel that says nothing.
TEST(ImportRanks, ACallTellsTheGroupOfItsKernel) {
  std::vector<RankFile> files;
  for (const int rank : {0, 1}) {
    RankFile file = RankFile(World(rank, 4)).Step(1, 0, 100);
    // The first of one rank is the second of the other: numbers tell.
    for (const int call : {0, 1}) {
      const int number = rank == 0 ? call : 1 - call;
      const std::string id = R"("External id": )" + std::to_string(70 + call);
      file.Event("cpu_op", "record_param_comms", 10 + 10 * call, 5, 2,
                 id + ", " +
                     Message("allreduce", 9, 9, "Float", 2,
                             Group("7", "[0, 1]") + R"(, "Seq": )" + std::to_string(number)));
      file.Collective("ncclDevKernel_x(a)", 11 + 10 * call, 20 + 40 * call,
                      10 + 5 * rank + 10 * number, id);
    }
    files.push_back(file);
  }
  const TrainingRanks training = Import(files);
  EXPECT_TRUE(training.not_compared.empty());
  EXPECT_FALSE(training.groups_are_taken);
  EXPECT_NEAR(training.ranks[0].mean.waits, 0, kTight);
  EXPECT_NEAR(training.ranks[1].mean.waits, 10 * kUs, kTight);
  ASSERT_EQ(training.classes.size(), 1U);
  EXPECT_EQ(training.classes[0].type, "Float");
  EXPECT_EQ(training.classes[0].ranks, 2);
  EXPECT_NEAR(*training.classes[0].transfer_s, 15 * kUs, kTight);
}

// ---- The same call on several ranks.

// By their numbers where there are some, although the order of their kernels differs.
TEST(ImportRanks, CallsAreComparedByNumberOrOrder) {
  const auto file = [](int rank, double first, double second, bool numbered, bool swapped) {
    const auto message = [&](int number) {
      return Message(
          "allreduce", 100, 100, "Float", 2,
          Group("0", "[0, 1]") + (numbered ? R"(, "Seq": )" + std::to_string(number) : ""));
    };
    RankFile trace = RankFile(World(rank, 2)).Step(1, 0, 100);
    return trace.AllReduce(5, swapped ? 60 : 10, first, message(11))
        .AllReduce(6, swapped ? 10 : 60, second, message(12));
  };
  for (const bool numbered : {true, false}) {
    const TrainingRanks training =
        Import({file(0, 20, 10, numbered, false), file(1, 5, 30, numbered, numbered)});
    EXPECT_NEAR(training.ranks[0].mean.waits, 15 * kUs, kTight);
    EXPECT_NEAR(training.ranks[1].mean.waits, 20 * kUs, kTight);
    EXPECT_NEAR(training.ranks[0].mean.waited_for, 20 * kUs, kTight);
    EXPECT_NEAR(training.ranks[1].mean.waited_for, 15 * kUs, kTight);
    EXPECT_EQ(training.ranks[0].came_last, 1);
  }
}

// Four ranks in pairs, which wait for their own.
TEST(ImportRanks, GroupsWaitForThemselves) {
  std::vector<RankFile> files;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string members = rank < 2 ? "[0, 1]" : "[2, 3]";
    files.push_back(
        RankFile(World(rank, 4))
            .Step(1, 0, 100)
            .AllReduce(5, 10, 10 + 5 * rank,
                       Message("allreduce", 100, 100, "Float", 2, Group("7", members))));
  }
  const TrainingRanks training = Import(files);
  const double waits[] = {0, 5, 0, 5};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(training.ranks[static_cast<std::size_t>(rank)].mean.waits, waits[rank] * kUs,
                kTight);
  }
  EXPECT_EQ(training.compared_in_part, 0);
}

// A list of many ranks is cut off, "[0, 1, ..., 63]": its numbers are not all members, and the
// group's name and size tell the rest.
TEST(ImportRanks, AGroupWhoseListIsCutOffHasItsSize) {
  std::vector<RankFile> files;
  for (int rank = 0; rank < 2; ++rank) {
    files.push_back(
        RankFile(World(rank, 64))
            .Step(1, 0, 100)
            .AllReduce(5, 10, 10 + 5 * rank,
                       Message("allreduce", 100, 100, "Float", 64, Group("7", "[0, 1, ..., 63]"))));
  }
  const TrainingRanks training = Import(files);
  for (const auto& rank : training.ranks) EXPECT_TRUE(rank.remarks.empty()) << rank.rank;
  EXPECT_NEAR(training.ranks[1].mean.waits, 5 * kUs, kTight);
  EXPECT_EQ(training.compared_in_part, 1);
  ASSERT_EQ(training.classes.size(), 1U);
  EXPECT_EQ(training.classes[0].ranks, 64);
}

// A list of other ranks than its size says is as one that was cut off: the group's name and size
// tell the rest.
TEST(ImportRanks, AGroupWhoseListIsNotOfItsSizeHasItsSize) {
  std::vector<RankFile> files;
  for (const int rank : {0, 1}) {
    const std::string members = rank == 0 ? "[0, 1, 2]" : "[0, 1, 3]";
    files.push_back(
        RankFile(World(rank, 2))
            .Step(1, 0, 100)
            .AllReduce(5, 10, 10 + 5 * rank,
                       Message("allreduce", 100, 100, "Float", 2, Group("7", members))));
  }
  const TrainingRanks training = Import(files);
  EXPECT_NEAR(training.ranks[1].mean.waits, 5 * kUs, kTight);
  for (const RankOfTraining& rank : training.ranks) {
    EXPECT_EQ(rank.remarks.at("collectives whose group has other ranks than its size says"), 1);
  }
}

TEST(ImportRanks, CallsThatAreNotCompared) {
  const auto why = [](const std::vector<RankFile>& files) {
    const TrainingRanks training = Import(files);
    EXPECT_EQ(training.mean.waits, 0);
    std::string text;
    for (const auto& [reason, calls] : training.not_compared) {
      text += reason + ": " + std::to_string(calls);
    }
    return text;
  };
  const auto file = [](int rank, int size) { return RankFile(World(rank, size)).Step(1, 0, 100); };
  const std::string all = Message("allreduce", 100, 100, "Float", 2, Group("0", "[0, 1]"));
  EXPECT_EQ(why({file(0, 2).AllReduce(5, 10, 20, all),
                 file(1, 2).AllReduce(5, 10, 10, all).AllReduce(6, 50, 10, all)}),
            "of steps in which ranks have unlike numbers of calls: 3");
  EXPECT_EQ(why({file(0, 2).AllReduce(5, 10, 20, all),
                 file(1, 2).AllReduce(
                     5, 10, 10, Message("allreduce", 99, 99, "Float", 2, Group("0", "[0, 1]")))}),
            "that differ between ranks: 2");
  const std::string pair = Message("allreduce", 100, 100, "Float", 2);
  EXPECT_EQ(why({file(0, 4).AllReduce(5, 10, 20, pair), file(1, 4).AllReduce(5, 10, 10, pair)}),
            "of groups that are not told: 2");
  EXPECT_EQ(why({file(0, 2).AllReduce(5, 10, 20, all), file(1, 2).Compute(5, 10, 10)}),
            "of which one trace alone tells: 1");
  const auto numbered = [&](int number) { return all + R"(, "Seq": )" + std::to_string(number); };
  EXPECT_EQ(why({file(0, 2).AllReduce(5, 10, 20, numbered(4)),
                 file(1, 2).AllReduce(5, 10, 20, numbered(4)).AllReduce(6, 50, 10, numbered(5))}),
            "that some of the group's traces lack: 1");
  // Nobody waits in what one rank alone sends.
  const std::string broadcast = Message("broadcast", 9, 9, "Float", 2, Group("0", "[0, 1]"));
  EXPECT_EQ(
      why({file(0, 2).AllReduce(5, 10, 20, broadcast), file(1, 2).AllReduce(5, 10, 10, broadcast)}),
      "");
  // Three of four ranks: compared, and said to be a part.
  const std::string four = Message("allreduce", 100, 100, "Float", 4, Group("0", "[0, 1, 2, 3]"));
  const TrainingRanks part =
      Import({file(0, 4).AllReduce(5, 10, 20, four), file(3, 4).AllReduce(5, 10, 12, four)});
  EXPECT_EQ(part.missing, (std::vector<int>{1, 2}));
  EXPECT_EQ(part.compared_in_part, 1);
  EXPECT_NEAR(part.ranks[0].mean.waits, 8 * kUs, kTight);
}

// A number that a rank gives twice tells no call: their order does.
TEST(ImportRanks, NumbersGivenTwice) {
  const auto file = [](int rank, double first, double second) {
    const std::string message =
        Message("allreduce", 100, 100, "Float", 2, Group("0", "[0, 1]") + R"(, "Seq": 4)");
    return RankFile(World(rank, 2))
        .Step(1, 0, 100)
        .AllReduce(5, 10, first, message)
        .AllReduce(6, 60, second, message);
  };
  const TrainingRanks training = Import({file(0, 20, 10), file(1, 5, 30)});
  EXPECT_TRUE(training.not_compared.empty());
  EXPECT_NEAR(training.ranks[0].mean.waits, 15 * kUs, kTight);
  EXPECT_NEAR(training.ranks[1].mean.waits, 20 * kUs, kTight);
}

// Where two come together nobody is the last, and a third waits for no one of them.
TEST(ImportRanks, TwoThatComeTogether) {
  std::vector<RankFile> files;
  for (const int rank : {0, 1, 2}) {
    files.push_back(RankFile(World(rank, 3))
                        .Step(1, 0, 100)
                        .AllReduce(5, 10, rank == 1 ? 30 : 10,
                                   Message("allreduce", 100, 100, "Float", 3, Group("0", ""))));
  }
  const TrainingRanks training = Import(files);
  for (const RankOfTraining& rank : training.ranks) {
    EXPECT_NEAR(rank.mean.waits, (rank.rank == 1 ? 20 : 0) * kUs, kTight);
    EXPECT_EQ(rank.mean.waited_for, 0);
    EXPECT_EQ(rank.came_last, 0);
    EXPECT_EQ(rank.compared, 1);
  }
  EXPECT_FALSE(training.steps[0].last);
  EXPECT_EQ(training.classes[0].compared, 1);
  EXPECT_NEAR(*training.classes[0].transfer_s, 10 * kUs, kTight);
}

TEST(ImportRanks, MoreRanksThanTheirGroupHas) {
  std::vector<RankFile> files;
  for (const int rank : {0, 1, 2}) {
    files.push_back(
        RankFile(World(rank, 3))
            .Step(1, 0, 100)
            .AllReduce(5, 10, 10 + rank, Message("allreduce", 9, 9, "Float", 2, Group("7", ""))));
  }
  const TrainingRanks training = Import(files);
  EXPECT_EQ(training.not_compared.at("of more ranks than their group has"), 3);
  EXPECT_EQ(training.mean.waits, 0);
}

// Calls in a step are those of a rank that makes them.
TEST(ImportRanks, CallsInAStep) {
  std::vector<RankFile> files;
  for (const int rank : {0, 1}) {
    RankFile file(World(rank, 2));
    for (const int step : {0, 1}) {
      const double t = 200 * step;
      file.Step(step, t, 100).AllReduce(t + 5, t + 10, 10, Message("allreduce", 9, 9, "Int", 2));
      for (int i = 0; i < 3 && rank == 0; ++i) {
        file.Collective("ncclDevKernel_SendRecv(a)", t + 6, t + 30 + 10 * i, 2 + i,
                        Message("send", 9, 9, "Int", 2));
      }
    }
    files.push_back(file);
  }
  const TrainingRanks training = Import(files);
  ASSERT_EQ(training.classes.size(), 2U);
  EXPECT_EQ(training.classes[0].calls, 4);
  EXPECT_EQ(training.classes[0].calls_per_step, 1);
  EXPECT_EQ(training.classes[0].compared, 2);
  EXPECT_EQ(training.classes[1].call, CollectiveCall::kSend);
  EXPECT_EQ(training.classes[1].calls, 6);
  EXPECT_EQ(training.classes[1].calls_per_step, 3);
  EXPECT_NEAR(training.classes[1].time_s, 3 * kUs, kTight);
  EXPECT_EQ(training.classes[1].compared, 0) << "who sends and who receives are no one call";
  EXPECT_EQ(training.ranks[0].collectives, 8);
  EXPECT_EQ(training.ranks[1].collectives, 2);
}

// Where the world's size is not told it is the last rank's, and that of the traces.
TEST(ImportRanks, AWorldThatIsNotTold) {
  const auto file = [](const std::string& head) {
    return RankFile(head).Step(1, 0, 100).Compute(5, 10, 10);
  };
  const TrainingRanks far = Import(
      {file(R"("distributedInfo": {"rank": 3})"), file(R"("distributedInfo": {"rank": 0})")});
  EXPECT_EQ(far.world_size, 4);
  EXPECT_FALSE(far.world_is_told);
  EXPECT_TRUE(far.ranks_are_told);
  EXPECT_EQ(far.missing, (std::vector<int>{1, 2}));
  const TrainingRanks untold = Import({file(R"("a": 1)"), file(R"("a": 1)"), file(R"("a": 1)")});
  EXPECT_EQ(untold.world_size, 3);
  EXPECT_FALSE(untold.ranks_are_told);
  EXPECT_EQ(untold.ranks[2].rank, 2);
  EXPECT_TRUE(untold.missing.empty());
}

// ---- Steps.

TEST(ImportRanks, StepsThatNotAllHave) {
  const auto file = [](int rank, const std::vector<int>& numbers) {
    RankFile trace(World(rank, 2));
    for (const int n : numbers) {
      trace.Step(n, 100 * n, 100).Compute(100 * n + 1, 100 * n + 2, 10 + n);
    }
    return trace.Step(9, 900, 4);  // the profiler is stopped: nothing is done
  };
  const TrainingRanks training = Import({file(0, {2, 3, 4}), file(1, {3, 4, 5})});
  ASSERT_EQ(training.steps.size(), 2U);
  EXPECT_EQ(training.steps[0].number, 3);
  EXPECT_EQ(training.steps[1].number, 4);
  EXPECT_EQ(training.others, (std::vector<std::int64_t>{2, 5}));
  EXPECT_NEAR(training.mean.computing, 13.5 * kUs, kTight);
  EXPECT_EQ(training.ranks[0].idle_marks, 1);
  EXPECT_TRUE(training.classes.empty());
  EXPECT_TRUE(Says(ErrorOf([&] {
                     Import({file(0, {2, 3}), file(1, {5})});
                   }),
                   "rank1.json: has no step that all others have too, by ProfilerStep#N"));
}

// Without marks the whole trace is one span, whose calls numbers alone tell apart.
TEST(ImportRanks, WithoutMarks) {
  const auto file = [](int rank, double time, const std::string& number) {
    return RankFile(World(rank, 2))
        .Compute(5, 10, 50)
        .AllReduce(6, 40, time,
                   Message("allreduce", 9, 9, "Float", 2, Group("0", "[0, 1]") + number));
  };
  const TrainingRanks told = Import({file(0, 60, R"(, "Seq": 4)"), file(1, 40, R"(, "Seq": 4)")});
  EXPECT_FALSE(told.marked);
  ExpectTimes(told.ranks[0].mean, {90, 50, 60, 40, 20, 0, 0, 20, 0});
  const TrainingRanks untold = Import({file(0, 60, ""), file(1, 40, "")});
  EXPECT_EQ(untold.not_compared.begin()->first,
            "of traces without marks of steps, whose order tells nothing");
  stepcast::Run run;
  EXPECT_TRUE(Says(ErrorOf([&] { MeasureRun(told, 1, &run); }), "marks no steps"));
}

// Old versions round to whole microseconds, so that marks reach that far into each other.
TEST(ImportRanks, MarksThatAreRounded) {
  const auto file = [](double time) {
    return RankFile(World(0, 1, "gloo"))
        .Step(1, 0, time)
        .Step(2, 100, 50)
        .Event("cpu_op", "aten::mm", 0, 150, 1);
  };
  const TrainingRanks training = Import({file(101)});
  ExpectTimes(training.ranks[0].steps.at(0), {100, 100, 0, 0, 0, 0, 0, 0, 0});
  ExpectTimes(training.ranks[0].steps.at(1), {50, 50, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(Says(ErrorOf([&] { Import({file(101.001)}); }),
                   "ProfilerStep#1: has not ended where ProfilerStep#2 begins"));
}

// What is launched between two marks is in no step, and holds the next one up on the device.
TEST(ImportRanks, BetweenTheMarks) {
  const auto file = [](double time) {
    RankFile trace = RankFile(World(0, 1)).Step(1, 0, 100).Step(2, 200, 100);
    for (const double launch : {50, 150, 250}) {
      trace.AllReduce(launch, launch + 10, launch == 150 ? time : 20,
                      Message("allreduce", 8, 8, "Float", 1));
    }
    return trace;
  };
  for (const double time : {20, 40, 55}) {
    const TrainingRanks training = Import({file(time)});
    EXPECT_EQ(training.ranks[0].collectives, 2);
    EXPECT_EQ(training.classes.at(0).calls, 2);
    EXPECT_NEAR(training.classes[0].time_s, 20 * kUs, kTight);
    const double begin = std::max(200.0, 160 + time);
    ExpectTimes(training.ranks[0].steps.at(0), {100, 0, 20, 20, 0, 0, 80, 0, 0});
    ExpectTimes(training.ranks[0].steps.at(1), {300 - begin, 0, 20, 20, 0, 0, 280 - begin, 0, 0});
  }
}

// Without collectives it is the device that worked the longest.
TEST(ImportRanks, TheDeviceThatWorks) {
  RankFile file(World(0, 1));
  file.Step(1, 0, 100).Compute(5, 10, 20);
  file.Event("kernel", "k", 30, 11, 20, R"("device": 3)");
  file.Event("kernel", "k", 50, 10, 20, R"("device": 3)");
  const TrainingRanks training = Import({file});
  EXPECT_NEAR(training.mean.computing, 21 * kUs, kTight);
  EXPECT_EQ(training.ranks[0].remarks.at("kernels and copies of device 0 are left out"), 1);
}

// ---- Gloo.

// Spans from a call to its end, which say nothing of their group.
TEST(ImportRanks, OnTheHost) {
  const auto file = [](int rank, double end) {
    return RankFile(World(rank, 2, "gloo"))
        .Step(1, 0, 200)
        .Event("user_annotation", "DistributedDataParallel.forward", 0, 60, 1)
        .Event("cpu_op", "aten::linear", 10, 40, 1)
        .Event("cpu_op", "aten::addmm", 12, 30, 1)
        .Event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 60, 90, 2)
        .Event("cpu_op", "AddmmBackward0", 61, 88, 2)
        .Event("cpu_op", "aten::mm", 70, 40, 2)
        .Event("cpu_op", "c10d::allreduce_", 112, 8, 2)
        .Event("cpu_op", "gloo:all_reduce", 100, end - 100, 2,
               R"("Input Dims": [[25, 10]], "Input type": ["float"])");
  };
  const TrainingRanks training = Import({file(0, 180), file(1, 160)});
  EXPECT_FALSE(training.gpu);
  EXPECT_TRUE(training.queued && training.groups_are_taken);
  // 10 to 50 and 70 to 110; the nodes of the graph and the call itself do nothing.
  ExpectTimes(training.ranks[0].mean, {200, 80, 80, 70, 10, 0, 50, 20, 0});
  ExpectTimes(training.ranks[1].mean, {200, 80, 60, 50, 10, 0, 70, 0, 20});
  EXPECT_EQ(training.classes[0].bytes, 1000.0);
}

std::string RealFile(int rank) {
  return std::string(STEPCAST_SOURCE_DIR) + "/tests/data/ranks-of-gloo/rank" +
         std::to_string(rank) + ".json";
}

// Two steps of three processes on one host with DistributedDataParallel over Gloo by PyTorch 1.13
// without Kineto, whose traces are a list of events alone; rank 2 slept 150 ms before each backward
// pass. Operators of less than 1 us are left out.
TEST(ImportRanks, ThreeRealProcesses) {
  const TrainingRanks training = ImportKinetoRanks({RealFile(0), RealFile(1), RealFile(2)});
  EXPECT_FALSE(training.ranks_are_told || training.world_is_told || training.gpu);
  EXPECT_TRUE(training.marked && training.queued && training.groups_are_taken);
  EXPECT_EQ(training.world_size, 3);
  EXPECT_EQ(training.steps.size(), 2U);
  EXPECT_TRUE(training.not_compared.empty());
  for (const RankOfTraining& rank : training.ranks) {
    EXPECT_TRUE(rank.remarks.empty());
    EXPECT_EQ(rank.collectives, 4);
    EXPECT_EQ(rank.compared, 4);
    EXPECT_GT(rank.mean.computing, 0);
    EXPECT_LT(rank.mean.exposed, rank.mean.step);
  }
  for (const StepOfTraining& step : training.steps) EXPECT_EQ(step.last, 2);
  // The others waited for its sleep, save what they were late themselves, and nobody else.
  EXPECT_EQ(training.ranks[2].came_last, 4);
  EXPECT_NEAR(training.ranks[2].mean.waited_for, 0.17, 0.03);
  EXPECT_NEAR(training.ranks[0].mean.waits, 0.17, 0.03);
  EXPECT_EQ(training.ranks[2].mean.waits, 0);
}

// ---- Refused.

TEST(ImportRanks, TracesOfDifferentTrainings) {
  const auto file = [](const std::string& head) {
    return RankFile(head).Step(1, 0, 100).Compute(5, 10, 10).Text();
  };
  const std::string untold = R"("deviceProperties": [])";
  const std::string first = file(World(0, 2));
  const struct {
    std::string second;
    const char* says;
  } cases[] = {
      {file(World(0, 2)), "rank1.json: distributedInfo.rank: '0' is the rank of "},
      {file(World(1, 4)), "rank1.json: distributedInfo.world_size: '4' is another than that of "},
      {file(World(1, 2, "gloo")),
       "rank1.json: distributedInfo.backend: 'gloo' is another than that of "},
      {file(World(2, 2)),
       "rank1.json: distributedInfo.rank: '2' is none of the world's; allowed: less than its "
       "world_size, 2"},
      {file(untold),
       "rank1.json: distributedInfo.rank: is missing; allowed: in all traces, as in "},
      {file(R"("distributedInfo": {"rank": -1, "world_size": 2})"),
       "rank1.json: distributedInfo.rank: '-1' is not a number of ranks; allowed: 0 to 1000000"},
      {file(R"("distributedInfo": {"rank": 1, "world_size": "all"})"),
       "rank1.json: distributedInfo.world_size: 'all' is not a number of ranks"},
      {RankFile(World(1, 2)).Compute(5, 10, 10).Text(), "rank1.json: marks no steps, unlike "},
      {RankFile(World(1, 2)).Step(1, 0, 9).Event("cpu_op", "aten::mm", 1, 2, 1).Text(),
       "rank1.json: has no kernels, unlike "},
      {RankFile(World(1, 2)).Step(1, 0, 100).Step(1, 200, 9).Compute(5, 10, 10).Text(),
       "rank1.json: ProfilerStep#1: is marked twice; allowed: a trace of one process"},
      {RankFile(World(1, 2)).Step(1, 0, 100).Step(2, 50, 100).Compute(5, 10, 10).Text(),
       "ProfilerStep#1: has not ended where ProfilerStep#2 begins"},
      {RankFile(World(1, 2))
           .Event("user_annotation", "ProfilerStep#x", 0, 10, 1)
           .Compute(5, 10, 10)
           .Text(),
       "rank1.json: name: 'ProfilerStep#x' is not the mark of a step"},
      {RankFile(World(1, 2)).Step(1, 0, 9).Text(), "rank1.json: has neither kernels nor operators"},
      {RankFile(World(1, 2)).Step(1, 0, 9).Compute(5, 10, 0).Text(),
       "rank1.json: has no step in which anything took time"},
      {RankFile(World(1, 2))
           .Step(1, 0, 9)
           .Event("cpu_op", "aten::mm", 1, 2, 1)
           .Event("user_annotation", "nccl:all_reduce", 4, 2, 1)
           .Text(),
       "rank1.json: has calls of NCCL and no kernels; allowed: a trace with ProfilerActivity.CUDA"},
      {RankFile(World(1, 2))
           .Step(1, 0, 100)
           .Step(2, 100, 100)
           .Compute(5, 10, 10)
           .Event("cuda_runtime", "cudaLaunchKernel", 150, 1, 1, R"("correlation": 1)")
           .Text(),
       "rank1.json: correlation: '1' is the number of launches in several steps; allowed: a trace "
       "of one "},
      {"{}", "traceEvents: is missing"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] {
                       Import(std::vector<std::string>{first, c.second});
                     }),
                     c.says))
        << c.second;
  }
  // The order of files does not matter.
  const TrainingRanks training = Import(std::vector<std::string>{file(World(1, 2)), first});
  EXPECT_EQ(training.ranks[0].rank, 0);
  EXPECT_NE(training.ranks[0].path.find("rank1.json"), std::string::npos);
}

TEST(ImportRanks, OtherDevicesAreLeftOut) {
  RankFile file(World(0, 1));
  file.Step(1, 0, 100).Compute(5, 10, 10);
  file.Event("kernel", "k", 30, 50, 20, R"("device": 3)");
  file.AllReduce(6, 20, 5, Message("allreduce", 1, 1, "Float", 1));
  const TrainingRanks training = Import({file});
  EXPECT_NEAR(training.mean.computing, 10 * kUs, kTight);
  EXPECT_EQ(training.ranks[0].remarks.at("kernels and copies of device 3 are left out"), 1);
}

// ---- Properties.

// A set of spans beside one that counts each nanosecond.
RC_GTEST_PROP(KinetoSpansProperties, CountEachNanosecond, ()) {
  constexpr int kEnd = 60;
  const auto spans = [] {
    return *rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(0, kEnd), rc::gen::inRange(0, 12)));
  };
  KinetoSpans sets[2];
  std::vector<bool> counted[2] = {std::vector<bool>(2 * kEnd), std::vector<bool>(2 * kEnd)};
  for (int i = 0; i < 2; ++i) {
    for (const auto& [begin, length] : spans()) {
      sets[i].Add(begin, begin + length);
      for (int t = begin; t < begin + length; ++t) counted[i][static_cast<std::size_t>(t)] = true;
    }
    sets[i].Merge();
  }
  const int from = *rc::gen::inRange(-5, kEnd);
  const int to = *rc::gen::inRange(-5, kEnd + 20);
  std::int64_t covered = 0;
  std::int64_t shared = 0;
  for (int t = std::max(from, 0); t < std::min(to, 2 * kEnd); ++t) {
    const auto at = static_cast<std::size_t>(t);
    covered += counted[0][at] ? 1 : 0;
    shared += counted[0][at] && counted[1][at] ? 1 : 0;
  }
  RC_ASSERT(sets[0].Covered(from, to) == covered);
  RC_ASSERT(sets[0].Shared(sets[1], from, to) == shared);
  RC_ASSERT(sets[1].Shared(sets[0], from, to) == shared);
  const std::vector<KinetoSpan>& merged = sets[0].Merge();
  for (std::size_t i = 1; i < merged.size(); ++i) RC_ASSERT(merged[i - 1].end < merged[i].begin);
}

// A random step on the host, each microsecond counted: what computes, communicates, does both.
RC_GTEST_PROP(ImportRanksProperties, CountEachMicrosecond, ()) {
  constexpr int kStep = 80;
  const int ranks = *rc::gen::inRange(1, 4);
  std::vector<RankFile> files;
  std::vector<RankTimes> wanted;
  std::vector<std::vector<int>> durations;  // of each rank's calls, in order
  const int calls = *rc::gen::inRange(0, 4);
  for (int rank = 0; rank < ranks; ++rank) {
    RankFile file(World(rank, ranks, "gloo"));
    file.Step(1, 0, kStep);
    std::vector<bool> computes(kStep);
    std::vector<bool> communicates(kStep);
    const auto mark = [&](std::vector<bool>* all, int begin, int length) {
      for (int t = begin; t < std::min(begin + length, kStep); ++t) {
        (*all)[static_cast<std::size_t>(t)] = true;
      }
    };
    file.Event("cpu_op", "aten::mm", 0, 1, 1);
    mark(&computes, 0, 1);
    for (const auto& [begin, length] : *rc::gen::container<std::vector<std::pair<int, int>>>(
             rc::gen::pair(rc::gen::inRange(0, kStep), rc::gen::inRange(0, 20)))) {
      file.Event("cpu_op", "aten::mm", begin, length, 1);
      mark(&computes, begin, length);
    }
    durations.emplace_back();
    for (int i = 0; i < calls; ++i) {
      const int length = *rc::gen::inRange(0, 40);
      file.Event("cpu_op", "gloo:all_reduce", 10 * i, length, 2);
      mark(&communicates, 10 * i, length);
      durations.back().push_back(length);
    }
    RankTimes times;
    times.step = kStep;
    for (std::size_t t = 0; t < kStep; ++t) {
      times.computing += computes[t] ? 1 : 0;
      times.communication += communicates[t] ? 1 : 0;
      times.hidden += computes[t] && communicates[t] ? 1 : 0;
      times.exposed += !computes[t] && communicates[t] ? 1 : 0;
      times.idle += !computes[t] && !communicates[t] ? 1 : 0;
    }
    wanted.push_back(times);
    files.push_back(file);
  }
  // When each waits, and for whom, microsecond by microsecond.
  using Times = std::set<std::size_t>;
  std::vector<Times> waits(durations.size());
  std::vector<std::map<std::size_t, Times>> waits_for(durations.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(calls) && ranks > 1; ++i) {
    std::vector<int> own;
    for (const auto& all : durations) own.push_back(all[i]);
    const auto least = std::min_element(own.begin(), own.end());
    const bool alone = std::count(own.begin(), own.end(), *least) == 1;
    const auto last = static_cast<std::size_t>(least - own.begin());
    for (std::size_t rank = 0; rank < own.size(); ++rank) {
      if (alone && rank != last) waits_for[last][rank];
      for (int t = 0; t < own[rank] - *least; ++t) {
        waits[rank].insert(10 * i + static_cast<std::size_t>(t));
        if (alone) waits_for[last][rank].insert(10 * i + static_cast<std::size_t>(t));
      }
    }
  }
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    wanted[rank].waits = static_cast<double>(waits[rank].size());
    for (const auto& [other, times] : waits_for[rank]) {
      wanted[rank].waited_for +=
          static_cast<double>(times.size()) / static_cast<double>(waits_for[rank].size());
    }
  }
  const TrainingRanks training = Import(files);
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    ExpectTimes(training.ranks[rank].mean, wanted[rank]);
  }
  // What is measured is a row that is read again.
  stepcast::Run run;
  run.workload = "resnet50";
  run.device = "cpu";
  run.plan.placement = Placement(static_cast<std::size_t>(ranks), 1);
  run.plan.local_batch = 8;
  MeasureRun(training, 1, &run);
  const std::vector<stepcast::Run> again = ParseRuns(FormatRuns({run}), "runs.csv");
  RC_ASSERT(again.size() == 1U);
  RC_ASSERT(again[0].step_time == run.step_time);
  RC_ASSERT(again[0].exposed_sync == run.exposed_sync);
  RC_ASSERT(again[0].extra == run.extra);
}

TEST(ImportRanks, AMeasuredRun) {
  RankFile file(World(0, 1));
  for (int i = 0; i < 10; ++i) {
    file.Step(i + 1, 1000 * i, 1000).Compute(1000 * i, 1000 * i, 700 + i);
    file.AllReduce(1000 * i + 1, 1000 * i + 600, 200, Message("allreduce", 1, 1, "Float", 1));
  }
  const TrainingRanks training = Import({file});
  stepcast::Run run;
  MeasureRun(training, 1, &run);
  EXPECT_NEAR(run.step_time.si(), 1e-3, kTight);
  EXPECT_NEAR(run.exposed_sync->si(), 95.5e-6, kTight);
  EXPECT_NEAR(run.spread.p50->si(), 1e-3, kTight);
  EXPECT_EQ(run.source, "PyTorch's profiler on 1 of 1 ranks, 10 marked steps from 1 on");
  EXPECT_EQ(run.extra.front(), "10");
  stepcast::Run whole;
  MeasureRun(training, 4, &whole);
  EXPECT_NEAR(whole.step_time.si(), 4e-3, kTight);
  EXPECT_NEAR(whole.exposed_sync->si(), 382e-6, kTight);
  EXPECT_FALSE(whole.spread.p50);
  EXPECT_EQ(whole.extra.front(), "2.5");
}

// Ten steps tell how they scatter, and nine do not.
TEST(ImportRanks, QuantilesOfAMeasuredRun) {
  const auto measured = [](int steps) {
    RankFile file(World(0, 1, "gloo"));
    double start = 0;
    for (int i = 1; i <= steps; ++i) {
      file.Step(i, start, 100 * i).Event("cpu_op", "aten::mm", start, 50, 1);
      start += 100 * i;
    }
    stepcast::Run run;
    MeasureRun(Import({file}), 1, &run);
    return run;
  };
  const stepcast::Run ten = measured(10);
  // 100, 200, ..., 1000, between which it is linear.
  EXPECT_NEAR(ten.step_time.si(), 550 * kUs, kTight);
  EXPECT_NEAR(ten.spread.p50->si(), 550 * kUs, kTight);
  EXPECT_NEAR(ten.spread.p95->si(), 955 * kUs, kTight);
  EXPECT_NEAR(ten.spread.p99->si(), 991 * kUs, kTight);
  const stepcast::Run nine = measured(9);
  EXPECT_FALSE(nine.spread.p50 || nine.spread.p95 || nine.spread.p99);
  EXPECT_EQ(measured(1).source, "PyTorch's profiler on 1 of 1 ranks, 1 marked step from 1 on");
}

TEST(ImportRanks, StepsThatNoRunHas) {
  const TrainingRanks training = Import(
      {RankFile(World(0, 1, "gloo")).Step(1, 0, 1e12).Event("cpu_op", "aten::mm", 0, 10, 1)});
  stepcast::Run run;
  MeasureRun(training, 9, &run);
  EXPECT_NEAR(run.step_time.si(), 9e6, 1);
  EXPECT_TRUE(Says(ErrorOf([&] { MeasureRun(training, 11, &run); }),
                   "rank0.json: step_time_s: '1.1e+07' is out of range"));
}

// ---- Damage and size.

TEST(ImportRanks, DamagedBytes) {
  const std::string whole = TwoBuckets(0, 650, 250).Text();
  const std::string other = TwoBuckets(1, 800, 100).Text();
  std::mt19937 random(5);
  const std::string bytes = "0123456789-.,:[]{}\"eEaX \n\x80";
  int read = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = whole;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      damaged[random() % damaged.size()] = bytes[random() % bytes.size()];
    }
    try {
      const TrainingRanks training = Import(std::vector<std::string>{damaged, other});
      for (const RankOfTraining& rank : training.ranks) {
        EXPECT_GE(rank.mean.idle, -1e-9 * rank.mean.step);
        EXPECT_GE(rank.mean.waits, 0);
      }
      ++read;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("rank"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(read, 50);
}

// A long trace takes a tenth of its size in memory, and seconds.
TEST(ImportRanks, LongTraces) {
  constexpr int kSteps = 2000;
  const TempFolder folder;
  const std::string path = folder.Path("long.json");
  {
    std::ofstream out(path);
    out << "{" << World(0, 1) << ", \"traceEvents\": [\n";
    for (int step = 0; step < kSteps; ++step) {
      RankFile trace("\"a\": 1", 100 * step);
      const double t = 1000.0 * step;
      trace.Step(step, t, 1000);
      for (int i = 0; i < 10; ++i) {
        trace.Event("cpu_op", "aten::mm", t + 20 * i, 15, 1,
                    R"("Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"])");
        trace.Compute(t + 20 * i, t + 90 * i, 80);
        trace.AllReduce(t + 20 * i, t + 90 * i + 40, 60,
                        Message("allreduce", 99, 99, "Float", 1, Group("0", "[0]")));
      }
      const std::string text = trace.Text();
      const std::size_t from = text.find("[\n{") + 2;
      out << (step == 0 ? "" : ",") << text.substr(from, text.rfind(']') - from);
      // Call stacks make up most of a real trace.
      out << R"(,{"ph": "X", "cat": "python_function", "name": "f", "args": {"Call stack": ")"
          << std::string(12'000, 's') << "\"}}\n";
    }
    out << "]}";
  }
  const std::size_t size = FileContent(path).size();
  ASSERT_GT(size, 30'000'000U);
  const std::size_t before = MemoryPeak();
  const auto start = std::chrono::steady_clock::now();
  const TrainingRanks training = ImportKinetoRanks({path});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(training.steps.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(training.classes[0].calls, 10 * kSteps);
#ifndef STEPCAST_TEST_SANITIZED
  EXPECT_LT(MemoryPeak() - before, size / 3) << "of " << size << " bytes";
  EXPECT_LT(took.count(), 20);
#else
  (void)before;
  (void)took;
#endif
}

}  // namespace
}  // namespace stepcast
