#include "data/pcap/capture_file.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

#include "data/io/text_file.h"
#include "data/record/input_error.h"
#include "data/record/training_steps.h"

namespace stepcast::pcap {
namespace {

struct Close {
  void operator()(pcap_t* capture) const { pcap_close(capture); }
};
using Handle = std::unique_ptr<pcap_t, Close>;

InputError PacketError(const std::string& path, std::int64_t number, const std::string& problem,
                       const std::string& allowed = "") {
  return {{path, 0, fmt::format("packet {}", number)}, "", problem, allowed};
}

Handle Open(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Unreadable(path);
  std::array<char, PCAP_ERRBUF_SIZE> problem{};
  pcap_t* capture =
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, problem.data());
  if (capture == nullptr) {
    std::fclose(file);
    throw InputError({path, 0, ""}, "", fmt::format("is no capture: {}", Shortened(problem.data())),
                     "pcap or pcapng, as tcpdump -w writes it");
  }
  Handle handle(capture);
  if (!KnowsLinkType(pcap_datalink(capture))) {
    const char* name = pcap_datalink_val_to_name(pcap_datalink(capture));
    throw InputError({path, 0, "link type"},
                     name == nullptr ? std::to_string(pcap_datalink(capture)) : name,
                     "cannot be taken apart", "Ethernet, Linux cooked, raw IP or BSD loopback");
  }
  return handle;
}

// An expression of tcpdump.
class Filter {
 public:
  Filter(pcap_t* capture, const std::string& text) : given_(!text.empty()) {
    if (!given_ || pcap_compile(capture, &program_, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0) {
      return;
    }
    throw InputError({"", 0, "--filter"}, text,
                     std::string("is no filter: ") + pcap_geterr(capture),
                     "an expression of tcpdump, as \"tcp and net 10.0.0.0/24\"");
  }
  ~Filter() {
    if (given_) pcap_freecode(&program_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  bool Passes(const pcap_pkthdr& header, const u_char* data) const {
    return !given_ || pcap_offline_filter(&program_, &header, data) != 0;
  }

 private:
  bool given_;
  bpf_program program_{};
};

}  // namespace

Capture ReadCapture(const std::string& path, const std::string& filter,
                    const std::function<void(const Packet&)>& take) {
  const Handle handle = Open(path);
  const Filter passing(handle.get(), filter);
  const int link_type = pcap_datalink(handle.get());
  Capture capture;
  capture.path = path;
  Packet packet;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  for (int code = 0; (code = pcap_next_ex(handle.get(), &header, &data)) != PCAP_ERROR_BREAK;) {
    if (code == PCAP_ERROR) {
      // Who was ended while writing leaves half a packet.
      if (std::feof(pcap_file(handle.get())) != 0) {
        capture.truncated = true;
        break;
      }
      throw PacketError(
          path, capture.packets + 1,
          fmt::format("cannot be read: {}", Shortened(pcap_geterr(handle.get()), 200)));
    }
    ++capture.packets;
    if (!passing.Passes(*header, data)) continue;
    const auto seconds = static_cast<std::int64_t>(header->ts.tv_sec);
    const auto ns = static_cast<std::int64_t>(header->ts.tv_usec);  // as was asked for
    if (seconds < 0 || seconds > kLatestS || ns < 0 || ns >= kNsPerS) {
      throw PacketError(path, capture.packets,
                        fmt::format("has a time of {} s and {} ns, which is none", seconds, ns));
    }
    packet.time_ns = seconds * kNsPerS + ns;
    packet.number = capture.packets;
    if (capture.end_ns == 0 || packet.time_ns < capture.begin_ns) capture.begin_ns = packet.time_ns;
    capture.end_ns = std::max(capture.end_ns, packet.time_ns);
    switch (Decode(link_type, {data, header->caplen, header->len}, &packet)) {
      case Decoded::kPacket:
        take(packet);
        break;
      case Decoded::kOther:
        ++capture.others;
        break;
      case Decoded::kCutShort:
        ++capture.cut_short;
        break;
      case Decoded::kBroken:
        if (++capture.broken == 1) capture.first_broken = capture.packets;
        break;
    }
  }
  return capture;
}

}  // namespace stepcast::pcap
