#include "data/record/host_texts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/record/machine.h"

namespace stepcast {
namespace {

using HostNames = std::vector<std::string>;

Cluster ClusterOf(int nodes, const HostNames& hosts) {
  Cluster cluster;
  cluster.nodes = nodes;
  for (const std::string& name : hosts) {
    Host host;
    host.name = name;
    cluster.hosts.push_back(host);
  }
  return cluster;
}

TEST(HostTexts, HostsOfAllNodesAreThoseWithoutAChoice) {
  const Cluster named = ClusterOf(3, {"c", "a", "b"});
  EXPECT_EQ(HostsOfAllNodes(named, 3), (HostNames{"a", "b", "c"}));
  EXPECT_EQ(HostsOfAllNodes(named, 2), HostNames()) << "which two is a choice";
  EXPECT_EQ(HostsOfAllNodes(named, 5), (HostNames{"a", "b", "c", "", ""}));
  // One of three has no name.
  const Cluster partly = ClusterOf(3, {"b", "a"});
  EXPECT_EQ(HostsOfAllNodes(partly, 3), (HostNames{"a", "b", ""}));
  EXPECT_EQ(HostsOfAllNodes(partly, 2), HostNames());
  EXPECT_EQ(HostsOfAllNodes(ClusterOf(3, {}), 3), HostNames());
  // More hosts than the cluster says it has nodes: there is a choice again.
  EXPECT_EQ(HostsOfAllNodes(ClusterOf(2, {"a", "b", "c"}), 2), HostNames());
  // Those that a calibration knows count as well.
  Cluster calibrated = partly;
  calibrated.calibration.emplace();
  calibrated.calibration->range.hosts_alone.insert("d");
  EXPECT_EQ(HostsOfAllNodes(calibrated, 3), (HostNames{"a", "b", "d"}));
}

TEST(HostTexts, NamesAreListedInWords) {
  EXPECT_EQ(ListedNames({}), "");
  EXPECT_EQ(ListedNames({"a"}), "a");
  EXPECT_EQ(ListedNames({"a", "b"}, "or"), "a or b");
  EXPECT_EQ(ListedNames({"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace stepcast
