#include "microbench/network/host_facts.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

namespace stepcast::network {
namespace {

// The first line of a small file of the system; empty where there is none.
std::string LineOf(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

// Asks the interface by ioctl: a folder of /sys may be that of another network namespace.
class Interface {
 public:
  explicit Interface(const std::string& name)
      : name_(name), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  int Mtu() const {
    ifreq request = Request();
    return ioctl(socket_.fd(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
  }
  std::string Driver() const {
    ethtool_drvinfo info{};
    info.cmd = ETHTOOL_GDRVINFO;
    return Ask(&info) ? info.driver : "";
  }
  // In Mbit/s; 0 where it has none.
  long Speed() const {
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    if (!Ask(&command)) return 0;
    // Interfaces that are none of a wire state whatever they like.
    constexpr std::string_view kOfNoWire[] = {"tun", "veth", "bridge"};
    for (const std::string_view driver : kOfNoWire) {
      if (Driver() == driver) return 0;
    }
    const __u32 speed = ethtool_cmd_speed(&command);
    return speed == static_cast<__u32>(SPEED_UNKNOWN) ? 0 : speed;
  }

 private:
  ifreq Request() const {
    ifreq request{};
    std::strncpy(request.ifr_name, name_.c_str(), IFNAMSIZ - 1);
    return request;
  }
  bool Ask(void* data) const {
    ifreq request = Request();
    request.ifr_data = static_cast<char*>(data);
    return ioctl(socket_.fd(), SIOCETHTOOL, &request) == 0;
  }

  std::string name_;
  Socket socket_;
};

}  // namespace

std::map<std::string, std::string> HostFacts(const Address& own) {
  std::map<std::string, std::string> facts;
  const auto set = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) facts[name] = value;
  };
  if (const std::string name = InterfaceOf(own); !name.empty()) {
    const Interface interface(name);
    set("interface", name);
    set("driver", interface.Driver());
    if (const int mtu = interface.Mtu(); mtu > 0) set("mtu", fmt::format("{}", mtu));
    if (const long speed = interface.Speed(); speed > 0) {
      set("speed", fmt::format("{} Mbit/s", speed));
    }
  }
  utsname system{};
  if (uname(&system) == 0) set("kernel", system.release);
  set("cores", fmt::format("{}", std::thread::hardware_concurrency()));
  const std::filesystem::path net = "/proc/sys/net/ipv4";
  set("congestion_control", LineOf(net / "tcp_congestion_control"));
  set("receive_buffer", LineOf(net / "tcp_rmem"));
  set("send_buffer", LineOf(net / "tcp_wmem"));
  std::error_code error;
  std::set<std::string> rdma;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    rdma.insert(entry.path().filename().string());
  }
  set("rdma_devices", fmt::format("{}", fmt::join(rdma, " ")));
  return facts;
}

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "host";
}

}  // namespace stepcast::network
