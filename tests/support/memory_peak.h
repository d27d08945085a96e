// How much memory the process has had at most.
#ifndef STEPCAST_TESTS_SUPPORT_MEMORY_PEAK_H_
#define STEPCAST_TESTS_SUPPORT_MEMORY_PEAK_H_

#include <cstddef>
#include <fstream>
#include <string>

namespace stepcast {

// Bytes; 0 where the system does not tell.
inline std::size_t MemoryPeak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_MEMORY_PEAK_H_
