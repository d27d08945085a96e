// Which parameters a set of runs has.
#include "calibrate/parameter_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "model/step/parameter_specs.h"
#include "model/step/priors.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

Run OnHosts(const std::vector<std::string>& hosts, const std::string& workload = "resnet50") {
  Run run;
  run.workload = workload;
  run.device = "t4";
  run.plan.placement = Placement(hosts.empty() ? 1 : hosts.size(), 1);
  run.plan.hosts = hosts;
  run.plan.local_batch = 32;
  return run;
}

ParameterLayout Layout(const Runs& runs, const Cluster& cluster = {},
                       const std::map<std::string, Device>& devices = {}) {
  std::map<std::string, Workload> workloads;
  for (const Run& run : runs) workloads[run.workload] = *FindWorkload(run.workload);
  return {cluster, runs, workloads, devices};
}

// Scopes of the groups of hosts, in order.
std::vector<std::string> HostScopes(const ParameterLayout& layout) {
  std::vector<std::string> scopes;
  for (const FittedParameter& p : layout.parameters()) {
    if (p.scope.rfind(kHostsScopePrefix, 0) == 0) scopes.push_back(p.scope);
  }
  return scopes;
}

using Scopes = std::vector<std::string>;

TEST(ParameterLayout, BlocksFollowOneAnother) {
  const Runs runs = {OnHosts({"a", "b"}), OnHosts({"b", "c"}), OnHosts({}, "vgg16")};
  const ParameterLayout layout = Layout(runs);
  // The cluster, three hosts, two workloads.
  ASSERT_EQ(layout.blocks().size(), 6U);
  int at = 0;
  for (const ParameterLayout::Block& block : layout.blocks()) {
    EXPECT_EQ(block.offset, at);
    at += block.size;
  }
  EXPECT_EQ(at, layout.size());
  EXPECT_EQ(layout.size(), kClusterParameterCount + 3 + 2 * kWorkloadParameterCount);
  EXPECT_EQ(layout.blocks()[0].size, int{kClusterParameterCount});
}

TEST(ParameterLayout, EveryParameterHasItsScopeAndName) {
  const Runs runs = {OnHosts({"a", "b"}), OnHosts({}, "vgg16"), OnHosts({"c", "d"})};
  const ParameterLayout layout = Layout(runs);
  const auto at = [&](int i) { return layout.parameters()[static_cast<std::size_t>(i)]; };
  EXPECT_EQ(at(ParameterLayout::kClusterOffset + kOverlapShare).scope, "cluster");
  EXPECT_EQ(at(ParameterLayout::kClusterOffset + kOverlapShare).spec->name, "overlap_share");
  EXPECT_EQ(at(layout.WorkloadOffset(runs[1]) + kSampleTime).scope, "workload vgg16 on t4");
  EXPECT_EQ(at(layout.WorkloadOffset(runs[1]) + kSampleTime).spec->name, "sample_time");
  EXPECT_EQ(at(layout.HostOffsets(runs[0]).at(0)).scope, "hosts a+b");
  EXPECT_EQ(at(layout.HostOffsets(runs[0]).at(0)).spec->name, "link_bandwidth");
}

TEST(ParameterLayout, AWorkloadOnAnotherDeviceIsAnotherCurve) {
  Runs runs = {OnHosts({}), OnHosts({}), OnHosts({})};
  runs[1].device = "v100";
  const ParameterLayout layout = Layout(runs);
  EXPECT_NE(layout.WorkloadOffset(runs[0]), layout.WorkloadOffset(runs[1]));
  EXPECT_EQ(layout.WorkloadOffset(runs[0]), layout.WorkloadOffset(runs[2]));
}

// Else one of them would have no curve, or that of the other.
TEST(ParameterLayout, TwoWorkloadsOfOneScopeAreRefused) {
  Workload net;
  net.name = "net";
  net.precision = Precision::kBf16;
  Workload other;
  other.name = "net (bf16)";
  Runs runs = {OnHosts({}, "net"), OnHosts({}, "other")};
  runs[1].place = {"runs.csv", 3, ""};
  const auto layout = [&] {
    return ParameterLayout({}, runs, {{"net", net}, {"other", other}}, {});
  };
  EXPECT_TRUE(Says(ErrorOf(layout),
                   "runs.csv:3: workload: 'other' on t4 would be fitted as what net on t4 is: "
                   "workload net (bf16) on t4; allowed: another name for one of the two"));
  other.name = "net (v2)";
  EXPECT_NE(layout().WorkloadOffset(runs[0]), layout().WorkloadOffset(runs[1]));
}

TEST(ParameterLayout, RunsWithoutHostsHaveNoHostLinks) {
  const Runs runs = {OnHosts({}), OnHosts({"a", "b"}), OnHosts({"c", "d"})};
  const ParameterLayout layout = Layout(runs);
  EXPECT_TRUE(layout.HostOffsets(runs[0]).empty());
  EXPECT_EQ(layout.HostOffsets(runs[1]).size(), 1U) << "a and b share one";
}

// ---- Which hosts can be told apart.

// c and d beside them, so that there is something to be told apart from.
TEST(HostGroups, AlwaysTogetherIsOneGroup) {
  const auto other = OnHosts({"c", "d"});
  const Scopes expected = {"hosts a+b", "hosts c+d"};
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), other})), expected);
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), OnHosts({"b", "a"}), other})), expected)
      << "the order of the placement is no other layout";
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), OnHosts({"a", "b"}, "vgg16"), other})),
            expected)
      << "nor is another workload";
}

TEST(HostGroups, HostsThatAreAllAlikeAreTheCluster) {
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), OnHosts({"a", "b"})})), Scopes());
  // But not beside a run on two nodes that nobody named.
  auto unnamed = OnHosts({});
  unnamed.plan.placement = {1, 1};
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), unnamed})), Scopes({"hosts a+b"}));
}

TEST(HostGroups, EachPairOfItsOwn) {
  EXPECT_EQ(HostScopes(Layout({OnHosts({"c", "d"}), OnHosts({"a", "b"}), OnHosts({"c", "d"})})),
            Scopes({"hosts a+b", "hosts c+d"}));
}

TEST(HostGroups, ASharedHostIsToldApart) {
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b"}), OnHosts({"b", "c"})})),
            Scopes({"hosts a", "hosts b", "hosts c"}));
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a", "b", "c"}), OnHosts({"b", "c"})})),
            Scopes({"hosts a", "hosts b+c"}));
}

TEST(HostGroups, OneNodeShowsNoLink) {
  const auto other = OnHosts({"d", "e"});
  const Scopes expected = {"hosts b+c", "hosts d+e"};
  EXPECT_EQ(HostScopes(Layout({OnHosts({"a"}), OnHosts({"b", "c"}), other})), expected);
  // A run on one node must not tell apart either.
  EXPECT_EQ(HostScopes(Layout({OnHosts({"b"}), OnHosts({"b", "c"}), other})), expected);
}

TEST(HostGroups, OneNodeWithServersDoes) {
  Runs runs = {OnHosts({"a"}), OnHosts({"b", "c"})};
  runs[0].plan.strategy = Strategy::kPsSync;
  runs[0].plan.servers = 1;
  EXPECT_EQ(HostScopes(Layout(runs)), Scopes({"hosts a", "hosts b+c"}));
}

TEST(HostGroups, ARunListsEachOfItsGroupsOnce) {
  const Runs runs = {OnHosts({"a", "b", "c", "d"}), OnHosts({"c", "d"})};
  const ParameterLayout layout = Layout(runs);
  ASSERT_EQ(HostScopes(layout), Scopes({"hosts a+b", "hosts c+d"}));
  EXPECT_EQ(layout.HostOffsets(runs[0]).size(), 2U);
  EXPECT_EQ(layout.HostOffsets(runs[1]).size(), 1U);
  EXPECT_EQ(layout.HostOffsets(runs[1])[0], layout.HostOffsets(runs[0])[1]);
}

// ---- What is known beforehand.

TEST(Priors, FollowWhatTheClusterStates) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(25.0);
  Host stated;
  stated.name = "c";
  stated.link.bandwidth = GigabitsPerSecond(2.5);
  cluster.hosts = {stated};
  const Runs runs = {OnHosts({"a", "b"}), OnHosts({"b", "c"})};
  const ParameterLayout layout = Layout(runs, cluster);
  const auto prior = [&](int offset) {
    return layout.parameters()[static_cast<std::size_t>(offset)].prior;
  };
  EXPECT_DOUBLE_EQ(prior(kLinkBandwidth).si, GigabitsPerSecond(25.0).si());
  EXPECT_DOUBLE_EQ(prior(layout.HostOffsets(runs[0])[0]).si, GigabitsPerSecond(25.0).si());
  EXPECT_DOUBLE_EQ(prior(layout.HostOffsets(runs[1])[1]).si, GigabitsPerSecond(2.5).si());
  EXPECT_LT(prior(layout.HostOffsets(runs[1])[1]).log_sd,
            prior(layout.HostOffsets(runs[0])[0]).log_sd)
      << "a host's own statement is worth more than the cluster's";
}

// Hosts that are never told apart have the slowest link among them, whichever comes first.
TEST(Priors, OfHostsTogetherAreThoseOfTheSlowest) {
  for (const bool slow_first : {false, true}) {
    Cluster cluster;
    for (const char* name : {"a", "b"}) {
      Host host;
      host.name = name;
      const bool slow = slow_first == (host.name == "a");
      host.link.bandwidth = GigabitsPerSecond(slow ? 1.0 : 10.0);
      cluster.hosts.push_back(host);
    }
    const Runs runs = {OnHosts({"a", "b", "c"}), OnHosts({"c", "d"}), OnHosts({"a", "b"})};
    const ParameterLayout layout = Layout(runs, cluster);
    ASSERT_EQ(layout.HostOffsets(runs[2]).size(), 1U);
    const auto offset = static_cast<std::size_t>(layout.HostOffsets(runs[2]).front());
    EXPECT_DOUBLE_EQ(layout.parameters()[offset].prior.si, GigabitsPerSecond(1.0).si());
  }
}

// The constant part of a step is believed to be a share of the smallest batch, of whichever run.
TEST(Priors, OfTheConstantPartFollowTheSmallestBatch) {
  const auto fixed = [](const std::vector<int>& batches) {
    Runs runs;
    for (const int batch : batches) {
      runs.push_back(OnHosts({}));
      runs.back().plan.local_batch = batch;
    }
    const ParameterLayout layout = Layout(runs);
    const auto at = static_cast<std::size_t>(layout.WorkloadOffset(runs.front()) + kFixedTime);
    return layout.parameters()[at].prior.si;
  };
  const double of_eight = fixed({8});
  EXPECT_GT(of_eight, 0);
  EXPECT_NEAR(fixed({32}) / of_eight, 4, 1e-12);
  EXPECT_NEAR(fixed({8, 32, 64}), of_eight, 1e-12 * of_eight);
  EXPECT_NEAR(fixed({64, 8, 32}), of_eight, 1e-12 * of_eight);
}

TEST(Priors, FollowTheDataSheetWhereThereIsOne) {
  Device t4;
  t4.name = "t4";
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  const Runs runs = {OnHosts({})};
  const ParameterLayout with = Layout(runs, {}, {{"t4", t4}});
  const ParameterLayout without = Layout(runs);
  const auto sample_time = static_cast<std::size_t>(with.WorkloadOffset(runs[0]) + kSampleTime);
  EXPECT_LT(with.parameters()[sample_time].prior.log_sd,
            without.parameters()[sample_time].prior.log_sd);
  EXPECT_NE(with.parameters()[sample_time].prior.si, without.parameters()[sample_time].prior.si);
}

// Of whose time a data sheet tells: the speed of the device, samples around it, and constant parts
// around these. Of others the table alone tells.
TEST(Priors, OfOneValueAroundAnother) {
  Device t4;
  t4.name = "t4";
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  Runs runs = {OnHosts({}), OnHosts({}, "vgg16"), OnHosts({})};
  runs[0].plan.local_batch = 16;
  runs[2].device = "v100";
  const ParameterLayout layout = Layout(runs, {}, {{"t4", t4}});
  std::vector<int> speeds;
  for (const ParameterLayout::Block& block : layout.blocks()) {
    if (block.kind == ParameterLayout::Kind::kDevice) speeds.push_back(block.offset);
  }
  ASSERT_EQ(speeds.size(), 1U) << "of the device that is known, once";
  const FittedParameter& speed = layout.parameters()[static_cast<std::size_t>(speeds[0])];
  EXPECT_EQ(speed.scope, "device t4");
  EXPECT_EQ(speed.prior.si, PriorOf(kDeviceSpeedSpec).si);
  EXPECT_EQ(speed.prior.log_sd, PriorOf(kDeviceSpeedSpec).log_sd);
  for (const stepcast::Run& run : runs) {
    SCOPED_TRACE(run.workload + " on " + run.device);
    const bool known = run.device == "t4";
    const int offset = layout.WorkloadOffset(run);
    const auto at = [&](int i) -> const FittedParameter& {
      return layout.parameters()[static_cast<std::size_t>(offset + i)];
    };
    const WorkloadPriors priors =
        MakeWorkloadPriors(*FindWorkload(run.workload), known ? std::optional(t4) : std::nullopt);
    for (const int i : {kSampleTime, kFloorTime, kFixedTime, kStragglerSpread, kUpdateTime}) {
      EXPECT_FALSE(at(i).fixed);
      EXPECT_EQ(at(i).multiple_of, !known && i == kFixedTime ? offset + kSampleTime : -1) << i;
      EXPECT_EQ(at(i).relative_to, known && i == kSampleTime ? speeds[0] : -1) << i;
      const double log_sd = i == kFixedTime             ? (known ? 1.2 : 1)
                            : known && i == kSampleTime ? kWorkloadSpeedLogSd
                            : i == kFloorTime           ? kWorkloadParameterSpecs[i].prior_log_sd
                                                        : priors[i].log_sd;
      EXPECT_EQ(at(i).prior.log_sd, log_sd) << i;
      if (i == kFixedTime) continue;
      const double si =
          known && i == kFloorTime ? priors[kFixedTime].si + priors[kSampleTime].si : priors[i].si;
      EXPECT_DOUBLE_EQ(at(i).prior.si, si) << i;
    }
    if (known) {
      EXPECT_DOUBLE_EQ(at(kFixedTime).prior.si, 3.3 * priors[kFixedTime].si);
      continue;
    }
    const double samples = 0.25 * run.plan.local_batch;
    EXPECT_DOUBLE_EQ(at(kFixedTime).times, samples);
    EXPECT_DOUBLE_EQ(at(kFixedTime).prior.si, samples * at(kSampleTime).prior.si);
  }
}

// ---- What somebody states.

TEST(Stated, TakesThePlaceOfWhatWasBelieved) {
  Device t4;
  t4.name = "t4";
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  const Runs runs = {OnHosts({}), OnHosts({}, "vgg16")};
  const auto layout = [&](const ParameterStatement& statement) {
    return ParameterLayout(
        {}, runs, {{"resnet50", *FindWorkload("resnet50")}, {"vgg16", *FindWorkload("vgg16")}},
        {{"t4", t4}}, {statement});
  };
  for (const bool with_factor : {false, true}) {
    const ParameterLayout its = layout(
        {"sample_time", "resnet50", 0.007, with_factor ? std::optional(2.0) : std::nullopt, "me"});
    const auto at = [&](const stepcast::Run& run, int i) -> const FittedParameter& {
      return its.parameters()[static_cast<std::size_t>(its.WorkloadOffset(run) + i)];
    };
    const FittedParameter& sample = at(runs[0], kSampleTime);
    EXPECT_EQ(sample.prior.si, 0.007);
    EXPECT_EQ(sample.fixed, !with_factor);
    EXPECT_EQ(sample.source, "me");
    EXPECT_EQ(sample.relative_to, -1) << "whatever the device's speed is";
    if (with_factor) {
      EXPECT_DOUBLE_EQ(sample.prior.log_sd, std::log(2.0));
    }
    // The constant part is the host's and the layers'.
    EXPECT_EQ(at(runs[0], kFixedTime).multiple_of, -1);
    EXPECT_EQ(at(runs[0], kFixedTime).source, "");
    EXPECT_NE(at(runs[1], kSampleTime).prior.si, 0.007);
    EXPECT_FALSE(at(runs[1], kSampleTime).fixed);
    const ParameterLayout fixed_part = layout({"fixed_time", "resnet50", 0.01, 3.0, ""});
    const FittedParameter& fixed = fixed_part.parameters()[static_cast<std::size_t>(
        fixed_part.WorkloadOffset(runs[0]) + kFixedTime)];
    EXPECT_EQ(fixed.prior.si, 0.01);
    EXPECT_EQ(fixed.multiple_of, -1);
  }
  for (const double factor : {1.0, 0.5}) {
    EXPECT_TRUE(Says(ErrorOf([&] {
                       layout({"sample_time", "", 0.007, factor, ""});
                     }),
                     "is no factor of a prior; allowed: more than 1"))
        << factor;
  }
  EXPECT_FALSE(ErrorOf([&] { layout({"sample_time", "", 0.007, 1.001, ""}); }));
}

// ---- Hosts that compute slower.

TEST(SlowHostsOfARun, AreThoseThatItNamesAtTheirOwnSpeed) {
  Runs runs = {OnHosts({"a", "b", "c"}), OnHosts({"c"}), OnHosts({"b", "a"}), OnHosts({"d"})};
  ParameterLayout layout = Layout(runs);
  const int size = layout.size();
  const int of_c = layout.AddSlowHosts({"c"});
  const int of_two = layout.AddSlowHosts({"a", "b"});
  EXPECT_EQ(of_c, size);
  EXPECT_EQ(of_two, size + 1);
  ASSERT_EQ(layout.size(), size + 2);
  EXPECT_EQ(layout.blocks().back().offset, of_two);
  EXPECT_EQ(layout.blocks().back().size, 1);
  const FittedParameter& slow = layout.parameters().back();
  EXPECT_EQ(slow.scope, "hosts a+b");
  EXPECT_EQ(slow.spec->name, "compute_slowdown");
  EXPECT_EQ(slow.prior.si, PriorOf(kComputeSlowdownSpec).si);
  EXPECT_EQ(slow.prior.log_sd, PriorOf(kComputeSlowdownSpec).log_sd);
  const auto expect = [&](const stepcast::Run& run, const std::vector<int>& offsets, bool others) {
    const ParameterLayout::Slowdowns its = layout.SlowdownsOf(run);
    EXPECT_EQ(its.offsets, offsets);
    EXPECT_EQ(its.others, others);
  };
  expect(runs[0], {of_c, of_two}, false);
  expect(runs[1], {of_c}, false);
  expect(runs[2], {of_two}, false);
  expect(runs[3], {}, true);
  // Of the last nodes the plan states how slow they are.
  runs[0].plan.slow_nodes = 1;
  expect(runs[0], {of_two}, false);
  expect(OnHosts({"d", "c"}), {of_c}, true);
  expect(OnHosts({}), {}, false);
}

}  // namespace
}  // namespace stepcast
