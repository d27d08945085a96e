// The driver's management library, found at run time: what holds a GPU's clocks down, and what they
// are at the moment. Everything is empty where the library is not there.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_NVML_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_NVML_H_

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast {

class Nvml {
 public:
  // `pci_bus_id` as cudaDeviceGetPCIBusId writes it.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<std::uint64_t> ThrottleBits() const;
  std::optional<unsigned> SmClockMhz() const;
  std::optional<unsigned> MemoryClockMhz() const;
  std::optional<double> PowerLimitWatts() const;
  std::optional<std::string> DriverVersion() const;

 private:
  std::optional<unsigned> ClockMhz(int kind) const;

  void* library_ = nullptr;
  void* device_ = nullptr;  // nvmlDevice_t, null where the library does not know the device
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_NVML_H_
