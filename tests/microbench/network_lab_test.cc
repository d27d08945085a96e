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

// A full frame of 1538 bytes on the wire carries 1448 of payload.
constexpr double kPayload = 1448.0 / 1538.0;
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

  NetworkSummary Measure(const LabConditions& conditions, const ProbeSettings& settings) {
    const auto lab = Start(conditions, settings);
    for (const int code : lab->Wait()) EXPECT_EQ(code, 0);
    late_share_ = lab->LateShare();
    profile_ = Profile();
    EXPECT_TRUE(profile_.complete()) << profile_.problem;
    for (const NetworkRow& row : profile_.rows) {
      EXPECT_EQ(row.problem, "") << kNetworkKindNames[static_cast<int>(row.kind)] << " " << row.from
                                 << " to " << row.to;
    }
    return Summarise(profile_);
  }

  // Within 3 %; 0.3 ms or 5 %; a quarter.
  void ExpectAsSet(const LabConditions& set, const NetworkSummary& found) const {
    ASSERT_TRUE(found.bandwidth && found.rtt_s);
    constexpr double kMostLate = 0.1;
    if (late_share_ > kMostLate) {
      GTEST_SKIP() << fmt::format("this machine is too busy: {:.0f} % of the frames were late",
                                  100 * late_share_);
    }
    if (set.loss == 0) {
      EXPECT_NEAR(*found.bandwidth / (set.rate * kPayload), 1, 0.03);
      EXPECT_FALSE(found.loss.share()) << found.loss.lost << " of " << found.loss.segments;
    } else {
      ASSERT_TRUE(found.loss.share()) << found.loss.lost << " of " << found.loss.segments;
      EXPECT_NEAR(*found.loss.share() / set.loss, 1, 0.25)
          << found.loss.lost << " of " << found.loss.segments;
    }
    // Of the quieter round trips: others wait for a switch that shares its cores with all hosts.
    for (const NetworkRow& row : profile_.rows) {
      if (row.kind != NetworkKind::kLatency) continue;
      EXPECT_NEAR(*row.rtt_p10_s, set.rtt_s, std::max(3e-4, 0.05 * set.rtt_s));
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
  double late_share_ = 0;
};

TEST_F(NetworkLabTest, FindsTheSlowHostAndTheCappedPair) {
  LabConditions set;
  set.hosts = 4;
  set.rate = Mbit(80);
  set.rtt_s = 4e-3;
  set.host_rates[2] = Mbit(30);
  set.pair_flow_rates[{0, 3}] = Mbit(20);
  const NetworkSummary found = Measure(set, {0.6, 4});
  ExpectAsSet(set, found);
  if (!IsSkipped()) {
    EXPECT_NEAR(*found.links[2].bandwidth() / (Mbit(30) * kPayload), 1, 0.03);
  }
  EXPECT_EQ(Names(found), (std::set<std::string>{"slow_host 2", "capped_flow 0 3"}));
}

TEST_F(NetworkLabTest, FindsThePairThatIsSlowOneWay) {
  LabConditions set;
  set.hosts = 3;
  set.rate = Mbit(50);
  set.pair_rates[{1, 2}] = Mbit(20);
  const NetworkSummary found = Measure(set, {0.3, 2});
  EXPECT_EQ(Names(found), (std::set<std::string>{"asymmetric_pair 1 2"}));
}

TEST_F(NetworkLabTest, CountsWhatIsLost) {
  LabConditions set;
  set.rate = Mbit(100);
  set.rtt_s = 1e-3;
  set.loss = 0.02;
  ExpectAsSet(set, Measure(set, {1, 4}));
}

// Half a minute: not a part of the suite.
TEST_F(NetworkLabTest, DISABLED_MeasuresWhatIsSet) {
  const struct {
    double mbit, rtt_ms, loss;
  } settings[] = {{50, 0, 0},      {50, 20, 0},    {100, 5, 0},    {200, 1, 0},
                  {100, 1, 0.001}, {100, 5, 0.01}, {200, 2, 0.01}, {100, 10, 0.05}};
  for (const auto& s : settings) {
    LabConditions set;
    set.hosts = 3;
    set.rate = Mbit(s.mbit);
    set.rtt_s = s.rtt_ms * 1e-3;
    set.loss = s.loss;
    ExpectAsSet(set, Measure(set, {1, 4}));
  }
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
