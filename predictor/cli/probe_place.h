// Which of the hosts of a probe this one is, and where the first of them waits.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_PLACE_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_PLACE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::cli {

inline constexpr int kProbePort = 29411;

struct Place {
  int rank = 0;
  int of = 0;
  std::string master;  // host
  int port = kProbePort;
  std::vector<std::string> hosts;
};

// What an option, or a variable of the environment, says; empty where it is not given.
using Given = std::function<std::optional<std::string>(const char* name)>;

// What options say, or else what torchrun, mpirun or srun set. Throws InputError.
Place ReadPlace(const Given& option, const Given& variable);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_PLACE_H_
