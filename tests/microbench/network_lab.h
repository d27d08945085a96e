// A network of its own for tests, on one machine: each host is a process in a network namespace,
// and their interfaces meet in a switch that lives in the test. The kernel's TCP is real; the
// switch gives every frame what a link would: a rate each way, a delay, and a chance to be lost.
//
// Namespaces and interfaces go with the processes. Needs root, and /dev/net/tun.
#ifndef STEPCAST_TESTS_MICROBENCH_NETWORK_LAB_H_
#define STEPCAST_TESTS_MICROBENCH_NETWORK_LAB_H_

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stepcast {

// A full frame of 1538 bytes on the wire carries 1448 of payload.
inline constexpr double kPayload = 1448.0 / 1538.0;

struct LabConditions {
  int hosts = 2;
  double rate = 100e6 / 8;  // of each link, each way, by the frames on the wire [B/s]
  double rtt_s = 0;
  double loss = 0;                                        // of frames with a packet of TCP
  std::map<int, double> host_rates;                       // of those that differ
  std::map<std::pair<int, int>, double> pair_rates;       // from one host to another
  std::map<std::pair<int, int>, double> pair_flow_rates;  // of each connection there
};

class NetworkLab {
 public:
  // What a queue before a port holds.
  static constexpr double kQueueBytes = 400e3;

  // Why there is none here; empty where it can be.
  static std::string Unavailable() {
    if (geteuid() != 0) return "a network of namespaces needs root";
    if (access("/dev/net/tun", R_OK | W_OK) != 0) return "there is no /dev/net/tun";
    const pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? "" : "this system lets nobody make network namespaces";
  }
  static std::string AddressOf(int host) { return "10.99.0." + std::to_string(host + 1); }

  // `work` runs in each host, whose exit code it returns, once all have their interface.
  NetworkLab(const LabConditions& conditions, const std::function<int(int host)>& work)
      : conditions_(conditions) {
    for (int host = 0; host < conditions.hosts; ++host) StartHost(host, work);
    thread_ = std::thread([this] { Switch(); });
    for (const int control : controls_) {
      if (write(control, "g", 1) != 1) throw std::runtime_error("a host of the lab is gone");
    }
  }
  ~NetworkLab() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    Wait();
    over_ = true;
    thread_.join();
    for (const int fd : taps_) close(fd);
    for (const int fd : controls_) close(fd);
  }
  NetworkLab(const NetworkLab&) = delete;
  NetworkLab& operator=(const NetworkLab&) = delete;

  void Kill(int host) { kill(pids_[static_cast<std::size_t>(host)], SIGKILL); }
  // The host's program gets no processor for so long.
  void Suspend(int host, double seconds) {
    kill(pids_[static_cast<std::size_t>(host)], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    kill(pids_[static_cast<std::size_t>(host)], SIGCONT);
  }
  // No frame of the host passes any more.
  void Cut(int host) { cut_ = host; }

  // The share of frames that came later than they should have by more than anybody would put up
  // with: on a machine that is busy with other things the lab is not the network that was set.
  double LateShare() const {
    return frames_out_ == 0 ? 0 : static_cast<double>(late_) / static_cast<double>(frames_out_);
  }

  // The longest time in which the switch did not come round, which it should each hundredth.
  double StoodStillS() const { return stood_still_s_; }

  // Exit codes of all hosts, 128 + the signal of those that were killed.
  const std::vector<int>& Wait() {
    for (std::size_t i = codes_.size(); i < pids_.size(); ++i) {
      int status = 0;
      waitpid(pids_[i], &status, 0);
      codes_.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return codes_;
  }

 private:
  using Time = double;  // s
  static Time Now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  static void Check(bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  static int OpenInterface(int host) {
    Check(unshare(CLONE_NEWNET) == 0, "unshare");
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    Check(tap >= 0, "/dev/net/tun");
    ifreq request{};
    std::strcpy(request.ifr_name, "eth0");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    Check(ioctl(tap, TUNSETIFF, &request) == 0, "TUNSETIFF");
    const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto set = [&](const char* interface, unsigned long what, const std::string& address) {
      ifreq one{};
      std::strcpy(one.ifr_name, interface);
      auto* in = reinterpret_cast<sockaddr_in*>(&one.ifr_addr);
      in->sin_family = AF_INET;
      inet_pton(AF_INET, address.c_str(), &in->sin_addr);
      Check(ioctl(control, what, &one) == 0, "address");
    };
    const auto up = [&](const char* interface) {
      ifreq one{};
      std::strcpy(one.ifr_name, interface);
      one.ifr_flags = IFF_UP | IFF_RUNNING;
      Check(ioctl(control, SIOCSIFFLAGS, &one) == 0, "up");
    };
    // The switch finds a host by the last byte.
    ifreq hardware{};
    std::strcpy(hardware.ifr_name, "eth0");
    hardware.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    hardware.ifr_hwaddr.sa_data[0] = 2;
    hardware.ifr_hwaddr.sa_data[5] = static_cast<char>(host);
    Check(ioctl(control, SIOCSIFHWADDR, &hardware) == 0, "hardware address");
    // What waits here counts as sent, so that the whole window of a connection may come: it is the
    // link that loses frames, not the way to it.
    ifreq queue{};
    std::strcpy(queue.ifr_name, "eth0");
    queue.ifr_qlen = 10'000;
    Check(ioctl(control, SIOCSIFTXQLEN, &queue) == 0, "queue");
    set("eth0", SIOCSIFADDR, AddressOf(host));
    set("eth0", SIOCSIFNETMASK, "255.255.255.0");
    up("lo");
    up("eth0");
    close(control);
    // What loss does to a rate is up to it; Reno is on all machines, for everyone.
    Check(static_cast<bool>(std::ofstream("/proc/sys/net/ipv4/tcp_congestion_control")
                            << "reno" << std::flush),
          "reno");
    return tap;
  }

  void StartHost(int host, const std::function<int(int)>& work) {
    std::array<int, 2> pair{};
    Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0, "socketpair");
    std::fflush(nullptr);  // what the test has printed is not the host's to print again
    const pid_t pid = fork();
    Check(pid >= 0, "fork");
    if (pid == 0) {
      int code = 99;
      try {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (const int other : taps_) close(other);
        SendDescriptor(pair[1], OpenInterface(host));
        char go = 0;
        if (read(pair[1], &go, 1) == 1) code = work(host);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "host %d of the lab: %s\n", host, e.what());
      }
      std::fflush(nullptr);
      _exit(code);
    }
    close(pair[1]);
    pids_.push_back(pid);
    controls_.push_back(pair[0]);
    taps_.push_back(TakeDescriptor(pair[0]));
  }

  static void SendDescriptor(int socket, int fd) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    Check(sendmsg(socket, &message, 0) == 1, "sendmsg");
    close(fd);
  }
  static int TakeDescriptor(int socket) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    Check(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1, "a host of the lab");
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
  }

  // ---- The switch.

  struct Frame {
    Time due = 0;
    std::uint64_t number = 0;
    int from = 0;
    int to = 0;
    bool at_port = false;  // it has been through the receiver's port
    std::string bytes;
    bool operator<(const Frame& other) const {
      return std::pair(due, number) > std::pair(other.due, other.number);  // the earliest on top
    }
  };
  // Preamble, checksum and gap, which no program sees.
  static constexpr double kUnseen = 24;
  static constexpr Time kLateS = 2e-4;
  // A host whose frames wait is behind the line's rate for so long at most where the switch was: it
  // makes up for it.
  static constexpr Time kMadeUpS = 0.03;

  double RateOf(int host) const {
    const auto own = conditions_.host_rates.find(host);
    return own == conditions_.host_rates.end() ? conditions_.rate : own->second;
  }

  void Switch() {
    prctl(PR_SET_TIMERSLACK, 1UL);
    const auto hosts = static_cast<std::size_t>(conditions_.hosts);
    up_free_.assign(hosts, 0);
    down_free_.assign(hosts, 0);
    std::vector<bool> waiting(hosts, false);  // it had more when it was last read
    std::vector<char> buffer(65536);
    Time last = Now();
    while (!over_) {
      const Time now = Now();
      stood_still_s_ = std::max(stood_still_s_.load(), now - last);
      last = now;
      Time next = now + 0.01;
      while (!frames_.empty() && frames_.top().due <= now) {
        Frame frame = frames_.top();
        frames_.pop();
        Forward(std::move(frame));
      }
      if (!frames_.empty()) next = std::min(next, frames_.top().due);
      std::vector<pollfd> polled;
      for (std::size_t i = 0; i < hosts; ++i) {
        // What the link cannot take yet stays with the sender.
        while (up_free_[i] <= now) {
          const ssize_t n = read(taps_[i], buffer.data(), buffer.size());
          if (n <= 0) {
            waiting[i] = false;
            break;
          }
          Enter(static_cast<int>(i), {buffer.data(), static_cast<std::size_t>(n)},
                std::max(up_free_[i], waiting[i] ? now - kMadeUpS : now));
          waiting[i] = true;
        }
        if (up_free_[i] <= now) polled.push_back({taps_[i], POLLIN, 0});
        if (up_free_[i] > now) next = std::min(next, up_free_[i]);
      }
      if (!frames_.empty()) next = std::min(next, frames_.top().due);
      const auto wait = static_cast<long>(std::max(0.0, next - Now()) * 1e9);
      const timespec time{0, wait};
      ppoll(polled.data(), polled.size(), &time, nullptr);
    }
  }

  // A frame leaves its host at `start`.
  void Enter(int from, const std::string& bytes, Time start) {
    const double wire = static_cast<double>(bytes.size()) + kUnseen;
    Time& free = up_free_[static_cast<std::size_t>(from)];
    free = start + wire / RateOf(from);
    const bool broadcast = (bytes[0] & 1) != 0;
    const bool tcp = bytes.size() > 34 && bytes[12] == 8 && bytes[13] == 0 && bytes[23] == 6;
    for (int to = 0; to < conditions_.hosts; ++to) {
      if (to == from || (!broadcast && to != bytes[5])) continue;
      if (cut_ == to || cut_ == from) continue;
      if (tcp && random_(generator_) < conditions_.loss) continue;
      Time due = free;
      if (!Shape(conditions_.pair_rates, {from, to}, {from, to, 0, 0}, wire, &due)) continue;
      if (tcp &&
          !Shape(
              conditions_.pair_flow_rates, {from, to},
              {from, to,
               static_cast<unsigned char>(bytes[34]) * 256 + static_cast<unsigned char>(bytes[35]),
               static_cast<unsigned char>(bytes[36]) * 256 + static_cast<unsigned char>(bytes[37])},
              wire, &due)) {
        continue;
      }
      frames_.push({due + conditions_.rtt_s / 2, ++numbers_, from, to, false, bytes});
    }
  }

  // Whether the frame passes a narrower part of the way, and when.
  bool Shape(const std::map<std::pair<int, int>, double>& rates, std::pair<int, int> pair,
             std::array<int, 4> lane, double wire, Time* due) {
    const auto rate = rates.find(pair);
    if (rate == rates.end()) return true;
    Time& free = lanes_[lane];
    if ((free - *due) * rate->second > kQueueBytes) return false;
    *due = free = std::max(free, *due) + wire / rate->second;
    return true;
  }

  void Forward(Frame frame) {
    if (frame.at_port) {
      ++frames_out_;
      if (Now() > frame.due + kLateS) ++late_;
      // Whose host has gone takes no more.
      if (write(taps_[static_cast<std::size_t>(frame.to)], frame.bytes.data(), frame.bytes.size()) <
          0) {
        return;
      }
      return;
    }
    const double rate = RateOf(frame.to);
    Time& free = down_free_[static_cast<std::size_t>(frame.to)];
    if ((free - frame.due) * rate > kQueueBytes) return;
    free = std::max(free, frame.due) + (static_cast<double>(frame.bytes.size()) + kUnseen) / rate;
    frame.due = free;
    frame.at_port = true;
    frames_.push(std::move(frame));
  }

  LabConditions conditions_;
  std::vector<pid_t> pids_;
  std::vector<int> controls_;
  std::vector<int> taps_;
  std::vector<int> codes_;
  std::atomic<std::int64_t> frames_out_ = 0;
  std::atomic<std::int64_t> late_ = 0;
  std::atomic<double> stood_still_s_ = 0;
  std::atomic<int> cut_ = -1;
  std::atomic<bool> over_ = false;
  std::thread thread_;

  std::vector<Time> up_free_;
  std::vector<Time> down_free_;
  std::map<std::array<int, 4>, Time> lanes_;
  std::priority_queue<Frame> frames_;
  std::uint64_t numbers_ = 0;
  std::mt19937_64 generator_{1};
  std::uniform_real_distribution<double> random_{0, 1};
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MICROBENCH_NETWORK_LAB_H_
