#include "microbench/compute/cuda_nvml.h"

#include <dlfcn.h>

namespace stepcast {
namespace {

// The few declarations that are needed, by NVIDIA's NVML API reference: its header comes with the
// driver's development package, which a machine that builds this may not have.
using NvmlReturn = int;    // nvmlReturn_t, 0 is success
using NvmlDevice = void*;  // nvmlDevice_t
constexpr NvmlReturn kSuccess = 0;
constexpr int kClockSm = 1;  // nvmlClockType_t
constexpr int kClockMemory = 2;

template <class Function>
Function* Find(void* library, const char* name) {
  if (library == nullptr) return nullptr;
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id)
    : library_(dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)) {
  auto* init = Find<NvmlReturn()>(library_, "nvmlInit_v2");
  auto* by_bus =
      Find<NvmlReturn(const char*, NvmlDevice*)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || by_bus == nullptr || init() != kSuccess) {
    if (library_ != nullptr) dlclose(library_);
    library_ = nullptr;
    return;
  }
  if (by_bus(pci_bus_id.c_str(), &device_) != kSuccess) device_ = nullptr;
}

Nvml::~Nvml() {
  if (auto* shut_down = Find<NvmlReturn()>(library_, "nvmlShutdown")) shut_down();
  if (library_ != nullptr) dlclose(library_);
}

std::optional<std::uint64_t> Nvml::ThrottleBits() const {
  if (device_ == nullptr) return std::nullopt;
  using Get = NvmlReturn(NvmlDevice, unsigned long long*);
  // The name changed with the drivers of 2023.
  auto* get = Find<Get>(library_, "nvmlDeviceGetCurrentClocksEventReasons");
  if (get == nullptr) get = Find<Get>(library_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  unsigned long long bits = 0;
  if (get == nullptr || get(device_, &bits) != kSuccess) return std::nullopt;
  return bits;
}

std::optional<unsigned> Nvml::ClockMhz(int kind) const {
  if (device_ == nullptr) return std::nullopt;
  auto* get = Find<NvmlReturn(NvmlDevice, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo");
  unsigned mhz = 0;
  if (get == nullptr || get(device_, kind, &mhz) != kSuccess) return std::nullopt;
  return mhz;
}
std::optional<unsigned> Nvml::SmClockMhz() const { return ClockMhz(kClockSm); }
std::optional<unsigned> Nvml::MemoryClockMhz() const { return ClockMhz(kClockMemory); }

std::optional<double> Nvml::PowerLimitWatts() const {
  if (device_ == nullptr) return std::nullopt;
  auto* get = Find<NvmlReturn(NvmlDevice, unsigned*)>(library_, "nvmlDeviceGetEnforcedPowerLimit");
  unsigned milliwatts = 0;
  if (get == nullptr || get(device_, &milliwatts) != kSuccess) return std::nullopt;
  constexpr double kMilli = 1e-3;
  return milliwatts * kMilli;
}

std::optional<std::string> Nvml::DriverVersion() const {
  auto* get = Find<NvmlReturn(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  char text[96] = "";  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
  if (get == nullptr || get(text, sizeof text) != kSuccess) return std::nullopt;
  return text;
}

}  // namespace stepcast
