#include "data/logs/link_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "data/io/text_file.h"
#include "data/logs/json_leaves.h"
#include "data/plan/si_range.h"
#include "data/record/input_error.h"
#include "data/record/quantile.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr double kMicrosecond = 1e-6;
constexpr double kBitsPerByte = 8;

std::string RateFlag(const char* flag, double bits_per_s) {
  return fmt::format("--{} \"{:.6g} Mbit/s\"", flag, bits_per_s / 1e6);
}

// States what is lost as a fact, where something is, and as what diagnose takes.
void AddLoss(double lost, double sent, const std::string& from, LinkLog* log) {
  if (sent <= 0 || lost < 0 || lost >= sent) return;
  log->flags.push_back(fmt::format("--lost {:.0f}/{:.0f}", lost, sent));
  if (lost == 0) return;
  log->link.loss = lost / sent;
  log->sources["loss"] = fmt::format("{}: {:.0f} of {:.0f}", from, lost, sent);
}

void AddControl(const std::string& name, const std::string& from, LinkLog* log) {
  if (const auto known = FindName(name, kCongestionControlNames)) {
    log->link.congestion_control = static_cast<CongestionControl>(*known);
    log->sources["congestion_control"] = from;
  } else {
    log->remarks.push_back(
        fmt::format("congestion control {} is none that is modelled ({})", Shortened(name), from));
  }
}

// ---- iperf3.

// One value that was found.
struct Value {
  double number = 0;
  std::string text;
  std::string from;
};

class Iperf3 {
 public:
  explicit Iperf3(const std::string& path) : path_(path) {
    const std::string text = ReadTextFile(path, kMostCsvBytes);
    // In an object it may be what the server had to say.
    if (Contains(text, kIperf3Table) && !Trim(text).starts_with('{')) {
      throw InputError({path, 0, ""}, "", "is what iperf3 prints as text",
                       "what iperf3 --json (-J) prints of a test");
    }
    ForEachJsonLeaf(text, path, kAllowed, [&](const JsonLeaf& leaf) { Take(leaf); });
  }

  LinkLog Log() {
    if (const Value* error = Find("error")) {
      throw InputError({path_, 0, "error"}, error->text, "is what iperf3 ended with",
                       "a test that came to its end");
    }
    if (Find("event") != nullptr) {
      throw InputError({path_, 0, "event"}, "", "is a stream of events",
                       "iperf3 --json without --json-stream");
    }
    const Value* protocol = Find("start.test_start.protocol");
    if (protocol == nullptr || (protocol->text != "TCP" && protocol->text != "UDP")) {
      throw InputError({path_, 0, "start.test_start.protocol"},
                       protocol == nullptr ? "" : protocol->text,
                       protocol == nullptr ? "is missing" : "is not known", kAllowed);
    }
    const Value* version = Find("start.version");
    log_.tool = version == nullptr ? "iperf3" : version->text;
    protocol->text == "TCP" ? Tcp() : Udp();
    return std::move(log_);
  }

 private:
  static constexpr const char* kAllowed = "what iperf3 --json prints of a test";

  void Take(const JsonLeaf& leaf) {
    // The intervals grow with the test: of the first the MTU is kept.
    constexpr std::string_view kIntervals = "intervals.";
    if (leaf.path.starts_with(kIntervals) && leaf.path != "intervals.0.streams.0.pmtu") return;
    constexpr std::size_t kLongestAsked = 64;
    if (leaf.path.size() > kLongestAsked) return;
    if (values_.size() >= kMostLogRows) {
      throw InputError({path_, leaf.line, leaf.path}, "", "is a value too many", kAllowed);
    }
    values_[leaf.path] = {leaf.number.value_or(0), leaf.text,
                          fmt::format("line {}: {}", leaf.line, leaf.path)};
  }
  const Value* Find(const std::string& path) const {
    const auto found = values_.find(path);
    return found == values_.end() ? nullptr : &found->second;
  }
  void Finding(const char* name, const Value* value, LinkUnit unit, const std::string& what,
               double scale = 1) {
    if (value == nullptr) return;
    log_.findings.push_back({name, value->number * scale, unit, what, value->from});
  }

  void Tcp() {
    const Value* received = Find("end.sum_received.bits_per_second");
    const Value* streams = Find("start.test_start.num_streams");
    if (received == nullptr || received->number <= 0 || streams == nullptr) {
      throw InputError({path_, 0, "end.sum_received.bits_per_second"}, "", "tells no rate",
                       kAllowed);
    }
    if (!(streams->number >= 1 && streams->number <= kMostStreams)) {
      throw InputError({path_, 0, "start.test_start.num_streams"},
                       fmt::format("{:.6g}", streams->number), "is out of range",
                       fmt::format("1 to {}", kMostStreams));
    }
    const auto count = static_cast<std::int64_t>(streams->number);
    Finding("goodput", received, LinkUnit::kRate,
            count == 1 ? "one connection carried" : fmt::format("{} connections carried", count));
    // With --bidir both directions are tested at once.
    const Value* back = Find("end.sum_received_bidir_reverse.bits_per_second");
    Finding("reverse_goodput", back, LinkUnit::kRate, "the other way, at the same time");
    const Value* limit = Find("start.test_start.target_bitrate");
    if (back != nullptr) {
      log_.remarks.push_back(fmt::format(
          "both directions were tested at once ({}): what one carries alone is not shown, test it "
          "without --bidir",
          back->from));
    }
    if (limit != nullptr && limit->number > 0) {
      log_.remarks.push_back(
          fmt::format("iperf3 was told to send no more than {:.6g} Mbit/s a "
                      "connection ({}): what the link carries is not shown",
                      limit->number / 1e6, limit->from));
    } else if (back == nullptr && count == 1) {
      log_.flags.push_back(RateFlag("flow-rate", received->number));
    } else if (back == nullptr && count >= kAllOfALink) {
      log_.flags.push_back(RateFlag("link-rate", received->number));
    }
    const Value* least = nullptr;
    const Value* most = nullptr;
    for (std::int64_t i = 0; i < count; ++i) {
      const Value* own = Find(fmt::format("end.streams.{}.sender.min_rtt", i));
      const Value* mean = Find(fmt::format("end.streams.{}.sender.mean_rtt", i));
      if (own != nullptr && own->number > 0 && (least == nullptr || own->number < least->number)) {
        least = own;
      }
      // With -R the sender is elsewhere, and tells 0.
      if (mean != nullptr && mean->number > 0 && (most == nullptr || mean->number > most->number)) {
        most = mean;
      }
      if (own == nullptr && mean == nullptr) break;
    }
    if (least != nullptr) {
      log_.link.rtt = Seconds(least->number * kMicrosecond);
      log_.sources["rtt"] = least->from + ", the least that TCP saw";
      log_.flags.push_back(fmt::format("--ping \"{:.6g} us\"", least->number));
    }
    Finding("loaded_rtt", most, LinkUnit::kTime, "round trip while the test ran", kMicrosecond);
    Finding("retransmits", Find("end.sum_sent.retransmits"), LinkUnit::kCount,
            "segments sent again");
    Finding("mtu", Find("intervals.0.streams.0.pmtu"), LinkUnit::kSize, "MTU of the path");
    const Value* control = Find("end.sender_tcp_congestion");
    if (control != nullptr) AddControl(control->text, control->from, &log_);
  }

  void Udp() {
    const Value* rate = Find("end.sum_received.bits_per_second");
    if (rate == nullptr) rate = Find("end.sum.bits_per_second");
    if (rate == nullptr) {
      throw InputError({path_, 0, "end.sum.bits_per_second"}, "", "tells no rate", kAllowed);
    }
    Finding("udp_rate", rate, LinkUnit::kRate, "UDP at the rate that it was told");
    Finding("jitter", Find("end.sum.jitter_ms"), LinkUnit::kTime, "jitter", kMillisecond);
    const Value* lost = Find("end.sum.lost_packets");
    const Value* packets = Find("end.sum.packets");
    if (lost != nullptr && packets != nullptr) {
      Finding("lost", lost, LinkUnit::kCount, "packets lost");
      Finding("packets", packets, LinkUnit::kCount, "packets sent");
      AddLoss(lost->number, packets->number, lost->from, &log_);
    }
  }

  // Connections that fill a link together, as diagnose asks for them.
  static constexpr std::int64_t kAllOfALink = 8;
  static constexpr int kMostStreams = 1'000'000;

  std::string path_;
  std::map<std::string, Value> values_;
  LinkLog log_;
};

// ---- ping.

class Ping {
 public:
  explicit Ping(std::string path) : path_(std::move(path)) { log_.tool = "ping"; }

  void Take(const LogLine& line) {
    const std::string_view text = Trim(line.text);
    if (Contains(text, "packets transmitted")) {
      TakeCounts(line);
    } else if ((text.starts_with("rtt ") || text.starts_with("round-trip ")) &&
               Contains(text, "min/avg/max")) {
      TakeTimes(line);
    } else if (Contains(text, " bytes from ")) {
      TakeReply(line);
    } else if (!text.starts_with("PING ") && !text.ends_with(" ping statistics ---") &&
               !Contains(text, "icmp_seq")) {
      log_.unknown.Add(line);
    }
  }

  LinkLog Finish() {
    if (!counts_line_) {
      throw InputError({path_, 0, ""}, "", "has no count of packets",
                       "what ping prints once it is ended, with \"packets transmitted\"");
    }
    if (!replies_s_.empty()) {
      std::sort(replies_s_.begin(), replies_s_.end());
      State(Quantile(replies_s_, 0.5), fmt::format("lines {} to {}: the median of {} replies",
                                                   first_reply_, last_reply_, replies_s_.size()));
    } else if (average_) {
      State(average_->first, average_->second);
    }
    return std::move(log_);
  }

 private:
  // "20 packets transmitted, 19 received, +1 errors, 5% packet loss, time 1144ms".
  void TakeCounts(const LogLine& line) {
    if (counts_line_) {
      throw InputError({path_, line.number, ""}, "", "ends a second ping", "one ping a file");
    }
    counts_line_ = line.number;
    const std::vector<std::string_view> words = WordsOf(line.text);
    std::optional<double> sent;
    std::optional<double> received;
    double errors = 0;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string_view next = words[i + 1];
      if (words[i].starts_with('+') && next.starts_with("errors")) {
        errors = NumberOf(words[i].substr(1)).value_or(0);
      }
      const auto number = NumberOf(words[i]);
      if (!number) continue;
      const bool of_packets = next == "packets" && i + 2 < words.size();
      const std::string_view done = of_packets ? words[i + 2] : next;
      if (done.starts_with("transmitted")) sent = number;
      if (done.starts_with("received")) received = number;
    }
    if (!sent || !received || *sent <= 0 || *received < 0 || *received > *sent) {
      throw InputError({path_, line.number, ""}, std::string(Trim(line.text)),
                       "is no count of packets", "\"20 packets transmitted, 20 received, ...\"");
    }
    const std::string from = fmt::format("line {}", line.number);
    log_.findings.push_back({"packets", *sent, LinkUnit::kCount, "packets sent", from});
    log_.findings.push_back(
        {"lost", *sent - *received, LinkUnit::kCount, "packets without a reply", from});
    if (*received == 0) {
      log_.remarks.emplace_back("nobody replied: that is no loss, the host may be away or mute");
    }
    if (errors > 0 && errors <= *sent - *received) {
      log_.remarks.push_back(fmt::format(
          "{:.0f} of those lost were answered by errors ({}): a host that is away loses no packets",
          errors, from));
    }
    AddLoss(*sent - *received, *sent, from, &log_);
    constexpr double kFewPackets = 100;
    if (log_.link.loss && *sent < kFewPackets) {
      log_.sources["loss"] += ", which are few";
      log_.remarks.push_back(fmt::format(
          "{:.0f} of {:.0f} packets lost tells little of the share that gets lost: send "
          "{:.0f} or more (ping -c)",
          *sent - *received, *sent, kFewPackets));
    }
  }

  // "rtt min/avg/max/mdev = 0.036/0.119/0.285/0.117 ms".
  void TakeTimes(const LogLine& line) {
    const std::size_t equals = line.text.find('=');
    const std::string_view rest =
        equals == std::string_view::npos ? "" : line.text.substr(equals + 1);
    std::vector<double> times;
    std::size_t at = 0;
    for (std::size_t end = 0; times.size() < 4; at = end + 1) {
      const auto number = NumberFrom(rest, std::min(at, rest.size()), &end);
      if (!number) break;
      times.push_back(*number);
      if (end >= rest.size() || rest[end] != '/') {
        at = end;
        break;
      }
    }
    const std::string_view unit = Trim(rest.substr(std::min(at, rest.size())));
    if (times.size() < 3 || !unit.starts_with("ms") || times[0] < 0) {
      throw InputError({path_, line.number, ""}, std::string(Trim(line.text)),
                       "is no line of times in ms",
                       "\"rtt min/avg/max/mdev = 0.1/0.2/0.3/0.1 ms\"");
    }
    const std::string from = fmt::format("line {}", line.number);
    const char* const names[] = {"rtt_min", "rtt_mean", "rtt_max"};
    const char* const what[] = {"the shortest", "the mean", "the longest"};
    for (std::size_t i = 0; i < std::size(names); ++i) {
      log_.findings.push_back({names[i], times[i] * kMillisecond, LinkUnit::kTime,
                               fmt::format("{} round trip", what[i]), from});
    }
    average_ = {times[1] * kMillisecond, from + ": the mean of all"};
  }

  // "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.285 ms".
  void TakeReply(const LogLine& line) {
    constexpr std::string_view kTime = "time=";
    const std::size_t at = line.text.find(kTime);
    std::size_t end = 0;
    std::optional<double> time;
    if (at != std::string_view::npos) time = NumberFrom(line.text, at + kTime.size(), &end);
    const bool duplicate = Contains(line.text, "(DUP!)");
    if (!time || *time < 0 || duplicate || !Trim(line.text.substr(end)).starts_with("ms")) {
      log_.unknown.Add(line);
      return;
    }
    if (replies_s_.size() >= static_cast<std::size_t>(kMostLoggedSteps)) {
      throw InputError({path_, line.number, ""}, "", "is a reply too many",
                       fmt::format("at most {}", kMostLoggedSteps));
    }
    if (first_reply_ == 0) first_reply_ = line.number;
    last_reply_ = line.number;
    replies_s_.push_back(*time * kMillisecond);
  }

  void State(double rtt_s, const std::string& from) {
    log_.link.rtt = Seconds(rtt_s);
    log_.sources["rtt"] = from;
    log_.flags.push_back(fmt::format("--ping \"{:.6g} ms\"", rtt_s / kMillisecond));
  }

  std::string path_;
  LinkLog log_;
  std::optional<int> counts_line_;
  std::optional<std::pair<double, std::string>> average_;
  std::vector<double> replies_s_;
  int first_reply_ = 0;
  int last_reply_ = 0;
};

// ---- ethtool.

class Ethtool {
 public:
  explicit Ethtool(std::string path) : path_(std::move(path)) { log_.tool = "ethtool"; }

  void Take(const LogLine& line) {
    const std::string_view text = Trim(line.text);
    if (text.starts_with("Settings for ")) {
      if (has_settings_) {
        throw InputError({path_, line.number, ""}, std::string(text), "is a second port",
                         "one port a file");
      }
      has_settings_ = true;
      return;
    }
    const std::size_t colon = text.find(':');
    if (!has_settings_ || (colon == std::string_view::npos && !in_list_)) {
      log_.unknown.Add(line);
      return;
    }
    // A list of modes goes on in lines of its own.
    in_list_ = true;
    if (colon == std::string_view::npos) return;
    TakeSetting(text.substr(0, colon), Trim(text.substr(colon + 1)), line);
  }

  LinkLog Finish() {
    if (!has_settings_) {
      throw InputError({path_, 0, ""}, "", "has no settings of a port",
                       "what \"ethtool eth0\" prints, from \"Settings for eth0:\" on");
    }
    if (!log_.link.bandwidth && log_.remarks.empty()) {
      log_.remarks.emplace_back("the port tells no speed");
    }
    return std::move(log_);
  }

 private:
  void TakeSetting(std::string_view key, std::string_view value, const LogLine& line) {
    const std::string from = fmt::format("line {}: {}", line.number, key);
    if (key == "Speed") {
      constexpr double kMostMbit = 1e8;
      std::size_t end = 0;
      const auto speed = NumberFrom(value, 0, &end);
      if (value.starts_with("Unknown!")) {
        log_.remarks.push_back(fmt::format("the port tells no speed ({})", from));
      } else if (!speed || *speed <= 0 || *speed > kMostMbit || value.substr(end) != "Mb/s") {
        throw InputError({path_, line.number, "Speed"}, std::string(value), "is no speed",
                         "like 10000Mb/s");
      } else {
        log_.link.bandwidth = MegabitsPerSecond(*speed);
        log_.sources["bandwidth"] = from;
        log_.findings.push_back({"port_speed", *speed * 1e6, LinkUnit::kRate,
                                 "speed that the port has agreed on", from});
        log_.flags.push_back(fmt::format("--bandwidth \"{:.6g} Mbit/s\"", *speed));
      }
    } else if (key == "Duplex" && value.starts_with("Half")) {
      log_.remarks.push_back(
          fmt::format("the port sends or receives, not both at once ({})", from));
    } else if (key == "Link detected" && value != "yes") {
      log_.remarks.push_back(fmt::format("the port has no link ({})", from));
    }
  }

  std::string path_;
  LinkLog log_;
  bool has_settings_ = false;
  bool in_list_ = false;
};

// ---- ss.

class Ss {
 public:
  explicit Ss(std::string path) : path_(std::move(path)) { log_.tool = "ss"; }

  void Take(const LogLine& line) {
    std::vector<std::string_view> words = WordsOf(line.text);
    // Before the queues stand the kind and the state of the socket, or one of them, or none, as its
    // filters are.
    std::size_t at = 0;
    while (at < 2 && at < words.size() && !NumberOf(words[at])) ++at;
    const bool is_socket = words.size() >= at + 4 && NumberOf(words[at]) && NumberOf(words[at + 1]);
    const bool is_info = std::any_of(
        words.begin(), words.end(), [](std::string_view word) { return word.starts_with("rtt:"); });
    if (is_socket) is_control_ = IsOfSsh(words[at + 2]) || IsOfSsh(words[at + 3]);
    if (is_info) {
      // With -O both are one line.
      if (is_socket) {
        words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at + 4));
      }
      TakeInfo(words, line.number);
      return;
    }
    const bool is_header =
        words.front() == "State" || words.front() == "Netid" || words.front() == "Recv-Q";
    // What a connection that has sent nothing tells.
    const bool is_idle = Contains(line.text, " rto:") || Contains(line.text, "cwnd:");
    if (!is_header && !is_socket && !is_idle) log_.unknown.Add(line);
  }

  LinkLog Finish() {
    if (connections_ == 0) {
      throw InputError(
          {path_, 0, ""}, "",
          control_ == 0 ? "tells of no connection that sent"
                        : "tells of no connection that sent but those of ssh (port 22)",
          "what \"ss -ti\" prints while a training runs, with rtt: and data_segs_out:");
    }
    const auto finding = [&](const char* name, double value, LinkUnit unit, const char* what,
                             const std::string& from) {
      log_.findings.push_back({name, value, unit, what, from});
    };
    finding("connections", connections_, LinkUnit::kCount, "connections that sent", "all lines");
    if (least_rtt_) {
      log_.link.rtt = Seconds(least_rtt_->first);
      log_.sources["rtt"] = least_rtt_->second;
      log_.flags.push_back(fmt::format("--ping \"{:.6g} ms\"", least_rtt_->first / kMillisecond));
    }
    if (most_rtt_) {
      finding("loaded_rtt", most_rtt_->first, LinkUnit::kTime,
              "the longest round trip while it sends", most_rtt_->second);
    }
    if (rate_) {
      finding("delivery_rate", rate_->first, LinkUnit::kRate,
              "the most that one connection delivered", rate_->second);
    }
    if (window_) {
      finding("window", window_->first, LinkUnit::kSize, "the largest congestion window",
              window_->second);
    }
    if (mtu_) finding("mtu", mtu_->first, LinkUnit::kSize, "MTU of the path", mtu_->second);
    const std::string from =
        fmt::format("lines {} to {}: retrans and data_segs_out", first_, last_);
    finding("segments", sent_, LinkUnit::kCount, "segments with data sent", from);
    finding("retransmits", again_, LinkUnit::kCount,
            "segments sent again, less those that had arrived", from);
    AddLoss(again_, sent_, from, &log_);
    if (controls_.size() == 1) {
      AddControl(controls_.begin()->first, controls_.begin()->second, &log_);
    } else if (controls_.size() > 1) {
      log_.remarks.emplace_back("the connections have different congestion controls");
    }
    if (control_ > 0) {
      log_.remarks.push_back(
          control_ == 1 ? "one connection of ssh (port 22) is left out"
                        : fmt::format("{} connections of ssh (port 22) are left out", control_));
    }
    return std::move(log_);
  }

 private:
  using Seen = std::optional<std::pair<double, std::string>>;
  static void Keep(Seen* seen, double value, const std::string& from, bool least) {
    if (value > 0 && (!*seen || (least ? value < (*seen)->first : value > (*seen)->first))) {
      *seen = {value, from};
    }
  }

  // Whether an end of a connection is a server of ssh: no training, but the one who looks at it.
  static bool IsOfSsh(std::string_view address) {
    const std::string_view port = address.substr(address.rfind(':') + 1);
    return port == "22" || port == "ssh";
  }

  // "cubic wscale:10,10 rto:212 rtt:10.905/18.603 mss:1448 pmtu:1500 cwnd:4957 ... retrans:0/5".
  void TakeInfo(const std::vector<std::string_view>& words, int line) {
    std::map<std::string, double> facts;
    double all_again = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t colon = words[i].find(':');
      std::size_t end = 0;
      if (words[i] == "delivery_rate" && i + 1 < words.size()) {
        const auto rate = NumberFrom(words[i + 1], 0, &end);
        if (rate && words[i + 1].substr(end) == "bps") facts["delivery_rate"] = *rate;
      }
      if (colon == std::string_view::npos) continue;
      const std::string_view value = words[i].substr(colon + 1);
      const auto number = NumberFrom(value, 0, &end);
      if (!number || *number < 0) continue;
      facts[std::string(words[i].substr(0, colon))] = *number;
      // Unanswered now, and all so far.
      if (words[i].substr(0, colon) == "retrans" && end < value.size() && value[end] == '/') {
        all_again = NumberOf(value.substr(end + 1)).value_or(0);
      }
    }
    if (facts["data_segs_out"] <= 0) return;  // it only listens
    if (is_control_) {
      ++control_;
      return;
    }
    ++connections_;
    if (first_ == 0) first_ = line;
    last_ = line;
    const auto from = [&](const char* what) { return fmt::format("line {}: {}", line, what); };
    Keep(&least_rtt_, facts["minrtt"] * kMillisecond, from("minrtt"), true);
    Keep(&most_rtt_, facts["rtt"] * kMillisecond, from("rtt"), false);
    Keep(&rate_, facts["delivery_rate"], from("delivery_rate"), false);
    Keep(&window_, facts["cwnd"] * facts["mss"], from("cwnd x mss"), false);
    Keep(&mtu_, facts["pmtu"], from("pmtu"), true);
    sent_ += facts["data_segs_out"];
    again_ += std::max(0.0, all_again - facts["dsack_dups"]);
    // The name of the congestion control is the first word that is none of the options.
    const std::set<std::string_view> options = {"ts", "sack", "ecn", "ecnseen", "fastopen"};
    const auto control = std::find_if(words.begin(), words.end(), [&](std::string_view word) {
      return options.count(word) == 0 && !Contains(word, ":") && word != "<->";
    });
    if (control != words.end() && controls_.size() < kMostLogSeries) {
      controls_.emplace(std::string(*control), from("congestion control"));
    }
  }

  std::string path_;
  LinkLog log_;
  double connections_ = 0;
  bool is_control_ = false;  // the socket of the line before, or of this one
  int control_ = 0;          // of those that sent
  Seen least_rtt_;
  Seen most_rtt_;
  Seen rate_;
  Seen window_;
  Seen mtu_;
  double sent_ = 0;
  double again_ = 0;
  std::map<std::string, std::string> controls_;
  int first_ = 0;
  int last_ = 0;
};

// What a plan may say of a link.
NumberRange RangeOf(LinkUnit unit) {
  switch (unit) {
    case LinkUnit::kRate: {
      const NumberRange bytes = SiRangeOf("bandwidth");
      return {kBitsPerByte * bytes.least, kBitsPerByte * bytes.most, true};
    }
    case LinkUnit::kTime:
      return SiRangeOf("rtt");
    case LinkUnit::kSize:
    case LinkUnit::kCount:
      break;
  }
  constexpr double kMostCounted = 1e15;
  return {0, kMostCounted};
}

}  // namespace

LinkLog CheckedLink(LinkLog log, const std::string& path) {
  const auto check = [&](const std::string& from, double value, const NumberRange& range) {
    if (range.Holds(value)) return;
    throw InputError({path, 0, from}, fmt::format("{:.6g}", value), "is out of range",
                     range.Text());
  };
  for (const LinkFinding& found : log.findings) check(found.from, found.value, RangeOf(found.unit));
  if (log.link.rtt) {
    check(log.sources.at("rtt"), log.link.rtt->si(), RangeOf(LinkUnit::kTime));
  }
  if (log.link.bandwidth) {
    check(log.sources.at("bandwidth"), kBitsPerByte * log.link.bandwidth->si(),
          RangeOf(LinkUnit::kRate));
  }
  if (log.link.loss) check(log.sources.at("loss"), *log.link.loss, {kLeastLoss, 1});
  return log;
}

namespace {

template <class Reader>
LinkLog ReadLink(const std::string& path) {
  Reader reader(path);
  ForEachLogLine(path, [&](const LogLine& line) { reader.Take(line); });
  return CheckedLink(reader.Finish(), path);
}

}  // namespace

LinkLog ReadIperf3(const std::string& path) { return CheckedLink(Iperf3(path).Log(), path); }
LinkLog ReadPing(const std::string& path) { return ReadLink<Ping>(path); }
LinkLog ReadEthtool(const std::string& path) { return ReadLink<Ethtool>(path); }
LinkLog ReadSs(const std::string& path) { return ReadLink<Ss>(path); }

}  // namespace stepcast
