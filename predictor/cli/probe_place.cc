#include "predictor/cli/probe_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/network_profile.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "predictor/cli/option_place.h"

namespace stepcast::cli {
namespace {

constexpr int kHighestPort = 65535;

InputPlace VariablePlace(const std::string& name) { return {"", 0, name}; }

// The first of "n[01-04,7],m3", as Slurm lists nodes.
std::string FirstHost(const std::string& list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

// Host and port of "n1", "n1:29411", "[fd00::1]:29411".
void SplitMaster(const std::string& text, const InputPlace& where, Place* place) {
  std::size_t colon = text.rfind(':');
  place->master = text;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string::npos || close == 1) {
      throw InputError(where, text, "is no host with a port", "HOST:PORT, or [ADDRESS]:PORT");
    }
    place->master = text.substr(1, close - 1);
    if (close + 1 == text.size()) return;
    colon = close + 1;
  } else if (colon == std::string::npos || text.find(':') != colon) {
    return;  // no port, or an address of IPv6
  } else {
    place->master = text.substr(0, colon);
  }
  if (place->master.empty() || text[colon] != ':') {
    throw InputError(where, text, "is no host with a port", "HOST:PORT, or [ADDRESS]:PORT");
  }
  place->port = ParseInteger(std::string_view(text).substr(colon + 1), where, 1, kHighestPort);
}

std::vector<std::string> ReadHosts(const std::string& text) {
  std::vector<std::string> hosts;
  for (const std::string& host : SplitList(text)) {
    // It becomes an argument of ssh.
    const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '@';
    });
    if (host.empty() || !plain || host.front() == '-' || host.back() == '@') {
      throw InputError(OptionPlace("hosts"), host, "is no name of a host",
                       "names joined by commas");
    }
    if (std::count(hosts.begin(), hosts.end(), host) > 0) {
      throw InputError(OptionPlace("hosts"), host, "is given twice", "each once");
    }
    hosts.push_back(host);
    if (hosts.size() > kMostProbedHosts) break;
  }
  if (hosts.size() < 2 || hosts.size() > kMostProbedHosts) {
    throw InputError(OptionPlace("hosts"), text, "is no list of hosts",
                     fmt::format("2 to {} names", kMostProbedHosts));
  }
  return hosts;
}

std::string Required(const Given& option, const char* name) {
  if (std::optional<std::string> text = option(name)) return *text;
  throw InputError(OptionPlace(name), "", "is required", "see stepcast probe --help");
}

}  // namespace

Place ReadPlace(const Given& option, const Given& variable) {
  Place place;
  const std::optional<std::string> hosts = option("hosts");
  if (hosts) {
    place.hosts = ReadHosts(*hosts);
    place.of = static_cast<int>(place.hosts.size());
    place.master = place.hosts.front().substr(place.hosts.front().find('@') + 1);
  }
  if (hosts && option("of")) {
    throw InputError(OptionPlace("of"), "", "has no meaning with --hosts", "without it");
  }
  if (option("rank") || option("of")) {
    if (!hosts) {
      place.of = ParseInteger(Required(option, "of"), OptionPlace("of"), 2, kMostProbedHosts);
    }
    place.rank = ParseInteger(Required(option, "rank"), OptionPlace("rank"), 0, place.of - 1);
  }
  constexpr std::array<std::array<const char*, 2>, 4> kPairs = {
      {{"RANK", "WORLD_SIZE"},
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
       {"PMI_RANK", "PMI_SIZE"},
       {"SLURM_PROCID", "SLURM_NTASKS"}}};
  for (const auto& [rank, size] : kPairs) {
    const std::optional<std::string> number = variable(rank);
    const std::optional<std::string> count = variable(size);
    if (place.of > 0 || !number || !count) continue;
    place.of = ParseInteger(*count, VariablePlace(size), 2, kMostProbedHosts);
    place.rank = ParseInteger(*number, VariablePlace(rank), 0, place.of - 1);
  }
  if (place.of == 0) {
    throw InputError(OptionPlace("hosts"), "", "is required",
                     "--hosts, or --rank, --of and --master, or to be started by torchrun, mpirun "
                     "or srun");
  }
  if (const auto master = option("master")) {
    SplitMaster(*master, OptionPlace("master"), &place);
  } else if (place.master.empty()) {
    if (const auto address = variable("MASTER_ADDR")) {
      place.master = *address;
      if (const auto port = variable("MASTER_PORT")) {
        place.port = ParseInteger(*port, VariablePlace("MASTER_PORT"), 1, kHighestPort - 1);
        // torchrun listens at this one itself.
        if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") ++place.port;
      }
    } else if (const auto nodes = variable("SLURM_STEP_NODELIST")) {
      place.master = FirstHost(*nodes);
      if (place.master.empty()) {
        throw InputError(VariablePlace("SLURM_STEP_NODELIST"), *nodes, "names no host",
                         "a list as Slurm writes it, like n[01-04,7],m3");
      }
    } else {
      Required(option, "master");
    }
  }
  return place;
}

}  // namespace stepcast::cli
