#include "microbench/compute/onednn_backend.h"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "microbench/compute/onednn_loops.h"
#include "microbench/compute/onednn_operations.h"
#include "microbench/compute/onednn_plan.h"

namespace stepcast {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// Value of a "name : value" line of a file of /proc, without its unit; empty where there is none.
std::string ProcValue(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, name.size(), name) != 0) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::optional<double> FirstNumber(const std::filesystem::path& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// Bytes that can be allocated before the system begins to kill: of the machine, or of the container
// that this runs in.
double FreeBytes() {
  double free = std::numeric_limits<double>::infinity();
  if (const std::string text = ProcValue("/proc/meminfo", "MemAvailable"); !text.empty()) {
    free = std::stod(text) * 1024;  // in kB
  }
  const auto limit = FirstNumber("/sys/fs/cgroup/memory.max");
  const auto used = FirstNumber("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    // Cached files count as used, but make room.
    double cached = 0;
    std::ifstream statistics("/sys/fs/cgroup/memory.stat");
    std::string name;
    for (double value = 0; statistics >> name >> value;) {
      if (name == "inactive_file") cached = value;
    }
    free = std::min(free, *limit - *used + cached);
  }
  return free;
}

std::string Size(double bytes) {
  constexpr double kKib = 1024;
  constexpr double kMib = kKib * kKib;
  std::array<char, 64> text{};
  if (bytes < kMib) {
    std::snprintf(text.data(), text.size(), "%.0f KiB", bytes / kKib);
  } else if (bytes < kGib) {
    std::snprintf(text.data(), text.size(), "%.4g MiB", bytes / kMib);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f GiB", bytes / kGib);
  }
  return text.data();
}

std::string IsaName() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 with VNNI";
    case dnnl::cpu_isa::avx512_mic:
    case dnnl::cpu_isa::avx512_mic_4ops:
      return "AVX-512 of Xeon Phi";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 with VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 with VNNI and BF16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AVX-512 with VNNI, BF16 and AMX";
    case dnnl::cpu_isa::all:
      break;
  }
  return "none that oneDNN knows";
}

double CacheBytes(int name) { return static_cast<double>(std::max(0L, sysconf(name))); }

class OneDnnTrial : public Trial {
 public:
  explicit OneDnnTrial(std::unique_ptr<OneDnnPlan> plan) : plan_(std::move(plan)) {}
  TimedRun Run(TrainingPass pass) override { return plan_->Run(pass); }
  std::string Algorithm(TrainingPass pass) const override { return plan_->Names(pass); }

 private:
  std::unique_ptr<OneDnnPlan> plan_;
};

// Maps memory, writes to each page and gives it back, as malloc does with large blocks.
class AllocateTrial : public Trial {
 public:
  explicit AllocateTrial(std::int64_t elements)
      : bytes_(static_cast<std::size_t>(elements) * sizeof(float)) {}

  TimedRun Run(TrainingPass) override {
    return TimeRun(1, [this] {
      void* const at =
          mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (at == MAP_FAILED)
        throw std::runtime_error("memory ran out during a run");  // NOLINT(*-cstyle-cast)
      const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
      auto* const begin = static_cast<volatile char*>(at);
      for (std::size_t i = 0; i < bytes_; i += page) begin[i] = 1;
      munmap(at, bytes_);
    });
  }
  std::string Algorithm(TrainingPass) const override { return "mmap"; }

 private:
  std::size_t bytes_;
};

Preparation Refusal(PointStatus status, std::string reason) {
  return {nullptr, status, std::move(reason)};
}

Preparation TooLittle(double needed, double free) {
  return Refusal(PointStatus::kOutOfMemory,
                 "needs " + Size(needed) + ", " + Size(free) + " are free");
}

class OneDnnBackend : public Backend {
 public:
  explicit OneDnnBackend(int threads) : threads_(threads), engine_(dnnl::engine::kind::cpu, 0) {
    throttles_ = Throttles();
  }

  std::string Name() const override { return kOneDnnBackend; }

  ProfiledDevice Device() override {
    ProfiledDevice device;
    device.name = ProcValue("/proc/cpuinfo", "model name");
    if (device.name.empty()) device.name = "unknown CPU";
    device.kind = "cpu";
    device.facts["threads"] = std::to_string(threads_);
    device.facts["cores"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
    const auto fact = [&](const char* name, double bytes) {
      if (bytes > 0) device.facts[name] = Size(bytes);
    };
    fact("l2_cache", CacheBytes(_SC_LEVEL2_CACHE_SIZE));
    fact("l3_cache", CacheBytes(_SC_LEVEL3_CACHE_SIZE));
    fact("memory", CacheBytes(_SC_PHYS_PAGES) * CacheBytes(_SC_PAGESIZE));
    device.facts["isa"] = IsaName();
    const std::string clock = ProcValue("/proc/cpuinfo", "cpu MHz");
    if (!clock.empty()) device.facts["clock"] = clock + " MHz";
    return device;
  }

  std::map<std::string, std::string> Settings() const override {
    const dnnl_version_t* const version = dnnl::version();
    const ColdCaches cold = Cold();
    return {{"onednn", std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                           std::to_string(version->patch)},
            {"threads", std::to_string(threads_)},
            {"layout", "blocked"},
            {"cold_layers", std::to_string(cold.layers)},
            {"cold_bytes", std::to_string(cold.least_bytes)},
            {"most_cold_bytes", std::to_string(cold.most_bytes)}};
  }

  Preparation Prepare(const Operation& operation, int batch, Precision precision,
                      const std::vector<TrainingPass>& passes) override {
    if (std::string reason = WhyUnsupported(operation, batch, precision, passes); !reason.empty()) {
      return Refusal(PointStatus::kUnsupported, std::move(reason));
    }
    const double free = FreeBytes();
    const PlainSize plain = PlainSizeOf(operation, batch, precision);
    if (plain.bytes > free) return TooLittle(plain.bytes, free);
    if (plain.largest_tensor > std::numeric_limits<std::int32_t>::max()) {
      return Refusal(PointStatus::kUnsupported,
                     "a tensor has more than 2^31 elements, which kernels of oneDNN 2.6 count in "
                     "32 bits");
    }
    if (const auto* allocate = std::get_if<AllocateOp>(&operation)) {
      return {std::make_unique<AllocateTrial>(allocate->elements), PointStatus::kMeasured, {}};
    }
    try {
      omp_set_num_threads(threads_);
      auto plan = std::make_unique<OneDnnPlan>(engine_, threads_, Cold());
      DescribeOperation(operation, batch, precision, passes, plan.get());
      if (plan->LeastBytes() > free) return TooLittle(plan->LeastBytes(), free);
      plan->Allocate(free);
      return {std::make_unique<OneDnnTrial>(std::move(plan)), PointStatus::kMeasured, {}};
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) {
        return Refusal(PointStatus::kOutOfMemory, std::string("oneDNN: ") + error.what());
      }
      return Refusal(PointStatus::kUnsupported, std::string("oneDNN: ") + error.what());
    } catch (const std::bad_alloc&) {
      return Refusal(PointStatus::kOutOfMemory, "the system gave no memory");
    }
  }

  // As much as a layer's tensor takes.
  std::vector<Operation> Overheads() const override {
    constexpr std::int64_t kElements = std::int64_t{4} << 20;
    return {AllocateOp{kElements}};
  }

  TimedRun RunReference() override {
    volatile double result = 0;
    return TimeRun(threads_, [&] { result = SpinArithmetic(threads_); });
  }

  // Linux counts how often Intel CPUs were too hot (drivers/thermal/intel/therm_throt.c).
  std::string ThrottleReason() override {
    const double before = std::exchange(throttles_, Throttles());
    return throttles_ > before ? "too hot" : "";
  }

 private:
  ColdCaches Cold() const {
    // 1 MiB, as the least of today's cores, where the system does not tell.
    const double l2 = std::max(CacheBytes(_SC_LEVEL2_CACHE_SIZE), 1024.0 * 1024.0) * threads_;
    ColdCaches cold;
    cold.least_bytes = std::max(kLeastColdBytes, static_cast<std::size_t>(2 * l2));
    cold.most_bytes =
        std::max(cold.least_bytes, static_cast<std::size_t>(CacheBytes(_SC_LEVEL3_CACHE_SIZE)));
    return cold;
  }

  static double Throttles() {
    const std::filesystem::path folder = "/sys/devices/system/cpu/cpu0/thermal_throttle";
    return FirstNumber(folder / "core_throttle_count").value_or(0) +
           FirstNumber(folder / "package_throttle_count").value_or(0);
  }

  int threads_;
  dnnl::engine engine_;
  double throttles_ = 0;
};

}  // namespace

std::unique_ptr<Backend> MakeOneDnnBackend(int threads) {
  if (threads <= 0) throw std::invalid_argument("oneDNN needs at least one thread");
  return std::make_unique<OneDnnBackend>(threads);
}

}  // namespace stepcast
