// What is said of named hosts, on both sides of each bound.
#include "calibrate/host_findings.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/text.h"

namespace stepcast {
namespace {

using Sentences = std::vector<std::string>;

ParameterEstimate Link(const std::string& scope, double gbit, double low = 0) {
  ParameterEstimate p;
  p.scope = scope;
  p.name = "link_bandwidth";
  p.unit = "Gbit/s";
  p.value = gbit;
  p.low = low;
  p.log_sd = 0.1;
  p.decided_by = DecidedBy::kData;
  p.runs = 2;
  return p;
}

Cluster WithPort(double gbit) {
  Cluster cluster;
  if (gbit > 0) cluster.link.bandwidth = GigabitsPerSecond(gbit);
  return cluster;
}

Sentences Found(const std::vector<ParameterEstimate>& links, double port) {
  Calibration calibration;
  calibration.parameters = links;
  return HostFindings(calibration, WithPort(port), {});
}

// Two thirds of the port, or of the fastest link, are slow; of hosts that no run tells apart one is
// enough then.
TEST(HostFindingBounds, OfSlowLinks) {
  const std::string fitted = " Gbit/s, standard error 10 %)";
  EXPECT_EQ(Found({Link("hosts a+b", 6.6)}, 10),
            Sentences{"a or b sits on a link of about 5 Gbit/s (fitted 6.6" + fitted +
                      ": no run tells them apart."});
  EXPECT_EQ(Found({Link("hosts a+b", 6.7)}, 10),
            Sentences{"a and b sit on a link of about 5 Gbit/s (fitted 6.7" + fitted + "."});
  for (const auto& [gbit, slow] : {std::pair(6.3, true), std::pair(6.4, false)}) {
    const Sentences found = Found({Link("hosts a+b", gbit), Link("hosts c", 9.5)}, 0);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].rfind(slow ? "a or b sits" : "a and b sit", 0), 0U) << found[0];
    EXPECT_EQ(found[1].rfind("c sits on a link of about 10 Gbit/s", 0), 0U) << found[1];
  }
}

// A third of the port is a cable's; whose whole interval is a quarter above it misstates it; and
// within a hundredth a link has its port's rate.
TEST(HostFindingBounds, OfPorts) {
  for (const auto& [gbit, far] : {std::pair(3.3, true), std::pair(3.4, false)}) {
    const std::string found = Found({Link("hosts a", gbit)}, 10).at(0);
    EXPECT_EQ(found.find(" The cluster file says 10 Gbit/s: look at the cable and the port.") !=
                  std::string::npos,
              far)
        << found;
  }
  EXPECT_EQ(Found({Link("hosts a", 17, 12.4)}, 10),
            Sentences{"a sits on a port of 10 Gbit/s, and the runs show nothing slower."});
  EXPECT_EQ(Found({Link("hosts a", 17, 12.6)}, 10),
            Sentences{"a carries more than the port of 10 Gbit/s that the cluster file states: "
                      "correct it."});
  EXPECT_EQ(Found({Link("hosts a", 6.94)}, 7),
            Sentences{"a sits on a port of 7 Gbit/s, and the runs show nothing slower."});
  EXPECT_EQ(Found({Link("hosts a", 6.92)}, 7).at(0).rfind("a sits on a link of about 5 Gbit/s", 0),
            0U);
}

// Three or more that have about their port's rate are told together, behind the others.
TEST(HostFindingBounds, OfLinksAsStated) {
  const auto with = [](const ParameterEstimate& third, const std::string& more = "") {
    std::vector<ParameterEstimate> links = {Link("hosts a", 9.5), Link("hosts b+c", 9.7), third};
    if (!more.empty()) links.push_back(Link("hosts " + more, 1));
    return Found(links, 10);
  };
  EXPECT_EQ(with(Link("hosts d", 6.7)),
            Sentences{"4 hosts sit on links as the cluster file says (the slowest fitted 6.7 "
                      "Gbit/s)."});
  EXPECT_EQ(with(Link("hosts d", 6.6)).size(), 3U);
  EXPECT_EQ(with(Link("hosts d", 9.6, 12.6)).size(), 3U) << "its port is misstated";
  ParameterEstimate untold = Link("hosts d", 9.6);
  untold.decided_by = DecidedBy::kPrior;
  EXPECT_EQ(with(untold).size(), 3U);
  const Sentences behind = with(Link("hosts d", 9.6), "e");
  ASSERT_EQ(behind.size(), 2U);
  EXPECT_EQ(behind[0].rfind("e sits on a link of about 1 Gbit/s", 0), 0U) << behind[0];
  EXPECT_EQ(behind[1],
            "4 other hosts sit on links as the cluster file says (the slowest fitted 9.5 Gbit/s).");
  // Fitted beyond the port they have its rate.
  EXPECT_EQ(Found({Link("hosts a", 12), Link("hosts b", 13), Link("hosts c", 14)}, 10),
            Sentences{"3 hosts sit on links as the cluster file says (the slowest fitted 10 "
                      "Gbit/s)."});
}

Run Between(const std::vector<std::string>& hosts) {
  Run run;
  run.plan.strategy = Strategy::kAllreduce;
  run.plan.placement.assign(hosts.size(), 1);
  run.plan.hosts = hosts;
  return run;
}

// Less than half of what is stated, and within a factor of 1.5 of each other; one in each run that
// exchanges something between hosts that are named.
TEST(LinksBelowStatedBounds, OfRatesAndRuns) {
  const auto below = [](const std::vector<ParameterEstimate>& links,
                        const std::vector<stepcast::Run>& runs) {
    Calibration calibration;
    calibration.parameters = links;
    return FindLinksBelowStated(calibration, WithPort(50), runs);
  };
  const std::vector<stepcast::Run> runs = {Between({"b", "a"}), Between({"d", "a"})};
  const auto found = below({Link("hosts a+c", 8), Link("hosts b", 5.4)}, runs);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->hosts, (Sentences{"a", "b", "c"}));
  EXPECT_DOUBLE_EQ(found->slowest.in(kGigabitsPerSecond), 5.4);
  EXPECT_DOUBLE_EQ(found->fastest.in(kGigabitsPerSecond), 8);
  EXPECT_DOUBLE_EQ(found->stated.in(kGigabitsPerSecond), 50);
  EXPECT_FALSE(below({Link("hosts a+c", 8.2), Link("hosts b", 5.4)}, runs));
  EXPECT_TRUE(below({Link("hosts a", 24.9), Link("hosts b", 24.8)}, runs));
  EXPECT_FALSE(below({Link("hosts a", 25.1), Link("hosts b", 24.8)}, runs));
  EXPECT_FALSE(below({Link("hosts a+b", 8)}, runs)) << "one link is one to blame";

  // Of other hosts, runs between them that exchange something tell.
  const auto with = [&](const stepcast::Run& run) {
    std::vector<stepcast::Run> more = runs;
    more.push_back(run);
    return below({Link("hosts a+c", 8), Link("hosts b", 5.4)}, more).has_value();
  };
  stepcast::Run other = Between({"d", "e"});
  EXPECT_FALSE(with(other));
  other.plan.strategy = Strategy::kNone;
  EXPECT_TRUE(with(other));
  EXPECT_TRUE(with(Between({"d"})));
  other = Between({"d", "e"});
  other.plan.hosts.clear();
  EXPECT_TRUE(with(other));
  EXPECT_TRUE(with(Between({"d", "c"})));
}

// Hosts that compute otherwise come first, whatever their links are.
TEST(HostFindingBounds, OfTheirOrder) {
  ParameterEstimate slow;
  slow.scope = "hosts z";
  slow.name = "compute_slowdown";
  slow.value = 1.5;
  slow.runs = 3;
  slow.runs_nearer = 2;
  const Sentences found = Found({Link("hosts b", 9.5), Link("hosts a", 1), slow}, 10);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], "z computes 1.50 times slower (2 of 3 runs).");
  EXPECT_EQ(found[1].rfind("a sits on a link of about 1 Gbit/s", 0), 0U) << found[1];
  EXPECT_EQ(found[2],
            "b sits on a link of about 10 Gbit/s (fitted 9.5 Gbit/s, standard error 10 "
            "%).");
}

}  // namespace
}  // namespace stepcast
