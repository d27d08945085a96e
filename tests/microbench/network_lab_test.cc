// The probe in a network whose rates, delays and losses are known: see network_lab.h.
#include "tests/microbench/network_lab.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "data/io/network_profile_file.h"
#include "data/io/text_file.h"
#include "microbench/network/agent.h"
#include "microbench/network/coordinator.h"
#include "microbench/network/findings.h"
#include "tests/support/temp_file.h"

namespace stepcast::network {
namespace {

constexpr int kPort = 29411;
constexpr const char* kToken = "a token of tests";

double Mbit(double rate) { return rate * 1e6 / 8; }

class NetworkLabTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = NetworkLab::Unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  // What each host does. Its exit code: 0 for a whole profile, 1 else.
  int Host(int host, int hosts, const ProbeSettings& settings, double limit_s) const {
    const Address master = Resolve(NetworkLab::AddressOf(0), kPort).front();
    try {
      if (host > 0) {
        AgentOptions options;
        options.rank = host;
        options.of = hosts;
        options.name = fmt::format("h{}", host);
        options.master = master;
        options.token = kToken;
        options.join_s = 10;
        options.deadline = Deadline::In(limit_s);
        return RunAgent(options).empty() ? 0 : 1;
      }
      ProbeOptions options;
      options.hosts = hosts;
      for (int i = 0; i < hosts; ++i) options.names.push_back(fmt::format("h{}", i));
      options.settings = settings;
      options.master = master;
      options.token = kToken;
      options.join_s = 10;
      options.deadline = Deadline::In(limit_s);
      NetworkProfile profile;
      profile.version = "test";
      profile.started = "now";
      profile = RunProbe(options, profile, {});
      WriteTextFile(folder_.Path("network.json"), FormatNetworkProfile(profile));
      return profile.complete() ? 0 : 1;
    } catch (const NetworkError& e) {
      std::fprintf(stderr, "h%d: %s\n", host, e.what());
      return 1;
    }
  }

  std::unique_ptr<NetworkLab> Start(const LabConditions& conditions, const ProbeSettings& settings,
                                    double limit_s = 100) {
    return std::make_unique<NetworkLab>(conditions, [&, settings, limit_s](int host) {
      return Host(host, conditions.hosts, settings, limit_s);
    });
  }

  NetworkProfile Profile() const { return ReadNetworkProfile(folder_.Path("network.json")); }

  // Once more, at most twice, where the machine was too busy to be the network that was set.
  NetworkSummary Measure(const LabConditions& conditions, const ProbeSettings& settings) {
    std::vector<int> codes;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto lab = Start(conditions, settings);
      codes = lab->Wait();
      profile_ = Profile();
      busy_ = WhyBusy(*lab, profile_);
      if (busy_.empty()) break;
    }
    const NetworkSummary summary = Summarise(profile_);
    if (!busy_.empty()) return summary;
    for (const int code : codes) EXPECT_EQ(code, 0);
    EXPECT_TRUE(profile_.complete()) << profile_.problem;
    for (const NetworkRow& row : profile_.rows) {
      EXPECT_EQ(row.problem, "") << kNetworkKindNames[static_cast<int>(row.kind)] << " " << row.from
                                 << " to " << row.to;
    }
    return summary;
  }

  // Where the machine has other things to do, the lab is not the network that was set.
  static std::string WhyBusy(const NetworkLab& lab, const NetworkProfile& profile) {
    constexpr double kMostLate = 0.1;
    constexpr double kLongestS = 0.1;
    if (lab.LateShare() > kMostLate) {
      return fmt::format("{:.0f} % of the frames were late", 100 * lab.LateShare());
    }
    if (lab.StoodStillS() > kLongestS) {
      return fmt::format("the switch stood still for {:.2f} s", lab.StoodStillS());
    }
    for (const NetworkRow& row : profile.rows) {
      // No host was suspended here, so that the machine is what had no time for it.
      if (row.problem.find("was too busy") != std::string::npos) return row.problem;
    }
    return "";
  }

  // How far a rate may be off where the switch is on time.
  static constexpr double kRateTolerance = 0.02;

  // Within the tolerance; 0.5 ms, the switch's own share, or 5 %; four
  // standard deviations of the number of packets lost.
  void ExpectAsSet(const LabConditions& set, const NetworkSummary& found) const {
    if (!busy_.empty()) GTEST_SKIP() << "this machine is too busy: " << busy_;
    ASSERT_TRUE(found.bandwidth && found.rtt_s);
    const double rate = *found.bandwidth / (set.rate * kPayload);
    if (set.loss == 0) {
      EXPECT_FALSE(found.loss.share()) << found.loss.lost << " of " << found.loss.segments;
    } else {
      const double lost = set.loss * static_cast<double>(found.loss.segments);
      EXPECT_NEAR(static_cast<double>(found.loss.lost), lost, 4 * std::sqrt(lost))
          << found.loss.lost << " of " << found.loss.segments;
    }
    if (found.loss_limited) {
      EXPECT_LT(rate, 1);
    } else {
      // What is lost has left its host.
      EXPECT_NEAR(rate, 1 - set.loss, kRateTolerance);
    }
    // Of the quieter round trips: others wait for a switch that shares its cores with all hosts.
    for (const NetworkRow& row : profile_.rows) {
      if (row.kind != NetworkKind::kLatency) continue;
      EXPECT_NEAR(*row.rtt_p10_s, set.rtt_s, std::max(5e-4, 0.05 * set.rtt_s));
    }
    std::printf(
        "[ %6.1f Mbit/s %5.1f ms %6.2f %% ] %7.2f Mbit/s of line, %7.3f ms, %ld of %ld lost\n",
        set.rate * 8 / 1e6, set.rtt_s * 1e3, set.loss * 100, *found.bandwidth / kPayload * 8 / 1e6,
        *found.rtt_s * 1e3, found.loss.lost, found.loss.segments);
  }

  static std::set<std::string> Names(const NetworkSummary& summary) {
    std::set<std::string> names;
    for (const Finding& f : summary.findings) {
      names.insert(fmt::format("{} {}{}", kFindingNames[static_cast<int>(f.kind)], f.host,
                               f.peer < 0 ? "" : fmt::format(" {}", f.peer)));
    }
    return names;
  }

  TempFolder folder_;
  NetworkProfile profile_;
  std::string busy_;  // why the last measurement was none
};

TEST_F(NetworkLabTest, FindsTheSlowHostAndTheCappedPair) {
  LabConditions set;
  set.hosts = 4;
  set.rate = Mbit(80);
  set.rtt_s = 4e-3;
  set.host_rates[2] = Mbit(30);
  set.pair_flow_rates[{0, 3}] = Mbit(20);
  const NetworkSummary found = Measure(set, {1.2, 4});
  ExpectAsSet(set, found);
  if (IsSkipped()) return;
  EXPECT_NEAR(*found.links[2].bandwidth() / (Mbit(30) * kPayload), 1, kRateTolerance);
  EXPECT_EQ(Names(found), (std::set<std::string>{"slow_host 2", "capped_flow 0 3"}));
}

TEST_F(NetworkLabTest, FindsThePairThatIsSlowOneWay) {
  LabConditions set;
  set.hosts = 3;
  set.rate = Mbit(50);
  set.pair_rates[{1, 2}] = Mbit(20);
  const NetworkSummary found = Measure(set, {0.3, 2});
  if (!busy_.empty()) GTEST_SKIP() << "this machine is too busy: " << busy_;
  EXPECT_EQ(Names(found), (std::set<std::string>{"asymmetric_pair 1 2"}));
}

TEST_F(NetworkLabTest, CountsWhatIsLost) {
  LabConditions set;
  set.rate = Mbit(40);  // which four flows fill all the same
  set.rtt_s = 1e-3;
  set.loss = 0.02;
  ExpectAsSet(set, Measure(set, {1, 4}));
}

TEST_F(NetworkLabTest, MeasuresWhatIsSet) {
  const struct {
    double mbit, rtt_ms, loss;
    bool limited;  // by loss: four flows do not fill the line
  } settings[] = {{100, 0, 0, false},    {100, 10, 0, false},  {200, 1, 0, false},
                  {100, 1, 1e-3, false}, {50, 1, 1e-2, false}, {200, 10, 1e-2, true}};
  for (const auto& s : settings) {
    LabConditions set;
    set.rate = Mbit(s.mbit);
    set.rtt_s = s.rtt_ms * 1e-3;
    set.loss = s.loss;
    const NetworkSummary found = Measure(set, {1, 4});
    ExpectAsSet(set, found);
    if (IsSkipped()) return;
    EXPECT_EQ(found.loss_limited, s.limited);
    if (s.loss == 0) {
      EXPECT_EQ(Names(found), std::set<std::string>());
    }
  }
}

TEST_F(NetworkLabTest, AHostThatIsNotRunSaysSoInsteadOfARate) {
  LabConditions set;
  set.rate = Mbit(50);
  const auto lab = Start(set, {0.6, 2}, 40);
  // One of them at least falls into a transfer.
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(SecondsToClock(0.6));
    lab->Suspend(1, 0.5);
  }
  EXPECT_EQ(lab->Wait()[0], 1);
  const std::vector<NetworkRow> rows = Profile().rows;
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const NetworkRow& row) {
    return row.problem.find("was too busy") != std::string::npos;
  }));
}

TEST_F(NetworkLabTest, AKilledHostAndACutLinkAreNamed) {
  LabConditions set;
  set.hosts = 3;
  set.rate = Mbit(50);
  for (const bool cut : {false, true}) {
    const auto start = Clock::now();
    const auto lab = Start(set, {0.2, 2}, 40);
    std::this_thread::sleep_for(SecondsToClock(1.5));
    if (cut) {
      lab->Cut(2);
    } else {
      lab->Kill(2);
    }
    const std::vector<int> codes = lab->Wait();
    EXPECT_EQ(codes[0], 1);
    EXPECT_NE(codes[2], 0);
    EXPECT_LT(Clock::now() - start, SecondsToClock(60));
    const NetworkProfile profile = Profile();
    EXPECT_EQ(profile.problem.find("h2 is gone: "), 0U) << profile.problem;
    EXPECT_FALSE(profile.complete());
    // The other two have gone on.
    const MeasuredRows rows(profile);
    EXPECT_TRUE(rows.Best(0, 1) && rows.Best(1, 0));
  }
}

}  // namespace
}  // namespace stepcast::network
