// What is believed before any run: the table, and what a cluster file or a data sheet puts in its
// place.
#include "model/step/priors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "data/workloads/catalog.h"
#include "model/compute/sheet_compute.h"
#include "model/step/parameters.h"
#include "tests/model/support.h"
#include "tests/support/devices.h"

namespace stepcast {
namespace {

template <class Specs>
void ExpectSound(const Specs& specs) {
  std::set<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.meaning.empty()) << spec.name;
    EXPECT_FALSE(spec.source.empty()) << spec.name;
    EXPECT_GT(spec.si_per_unit, 0) << spec.name;
    EXPECT_GT(spec.prior_log_sd, 0) << spec.name;
    EXPECT_GT(spec.low, 0) << spec.name;
    EXPECT_LT(spec.low, spec.prior) << spec.name;
    EXPECT_LT(spec.prior, spec.high) << spec.name;
    EXPECT_EQ(spec.unit.empty(), spec.si_per_unit == 1) << spec.name;
  }
}

TEST(ParameterTable, IsSound) {
  ExpectSound(kClusterParameterSpecs);
  ExpectSound(kWorkloadParameterSpecs);
}

// The enumerators are indices into the tables: each accessor reads the parameter of its name.
TEST(ParameterTable, IsInTheOrderOfTheEnumerators) {
  const ClusterParameters<double> c = PriorCluster();
  const auto name = [](std::size_t i) { return kClusterParameterSpecs[i].name; };
  EXPECT_EQ(c.link_bandwidth(), GigabitsPerSecond(10.0));
  EXPECT_EQ(c.flow_bandwidth(), GigabitsPerSecond(10.0));
  EXPECT_EQ(c.host_bandwidth(), GigabytesPerSecond(3.8));
  EXPECT_EQ(c.link_latency(), Microseconds(50.0));
  EXPECT_EQ(name(kRdmaLatency), "rdma_latency");
  EXPECT_EQ(c.device_latency(), Microseconds(10.0));
  EXPECT_EQ(c.node_sync_overhead(), Milliseconds(0.6));
  EXPECT_EQ(c.device_sync_overhead(), Milliseconds(0.3));
  EXPECT_EQ(c.transfer_initiation(), Microseconds(20.0));
  EXPECT_EQ(c.server_rate(), GigabytesPerSecond(kClusterParameterSpecs[kServerRate].prior));
  EXPECT_EQ(c.flow_window(), Megabytes(2.9));
  EXPECT_EQ(c.loss_timeout(), Milliseconds(200.0));
  EXPECT_EQ(PriorWorkload().update_time(), Milliseconds(1.0));
  EXPECT_EQ(name(kHostSharing), "host_sharing");
  EXPECT_EQ(name(kHopSpread), "hop_spread");
  EXPECT_EQ(name(kMeshShare), "mesh_share");
  EXPECT_EQ(name(kHostContention), "host_contention");
  EXPECT_EQ(name(kOverlapShare), "overlap_share");
  EXPECT_EQ(name(kTransferInitiation), "transfer_initiation");
  EXPECT_EQ(name(kServerRate), "server_rate");
  EXPECT_EQ(name(kRpcRounds), "rpc_rounds");
  EXPECT_EQ(name(kFlowWindow), "flow_window");
  EXPECT_EQ(name(kLossTimeout), "loss_timeout");
  EXPECT_EQ(name(kOverlapContention), "overlap_contention");
  EXPECT_EQ(kWorkloadParameterSpecs[kUpdateTime].name, "update_time");
  EXPECT_EQ(kWorkloadParameterSpecs[kFixedTime].name, "fixed_time");
  EXPECT_EQ(kWorkloadParameterSpecs[kFloorTime].name, "floor_time");
  EXPECT_EQ(kWorkloadParameterSpecs[kSampleTime].name, "sample_time");
  EXPECT_EQ(kWorkloadParameterSpecs[kStragglerSpread].name, "straggler_spread");
}

TEST(ClusterPriors, AreTheTableWhereNothingIsStated) {
  const ClusterPriors priors = MakeClusterPriors(Cluster(), std::nullopt);
  for (std::size_t i = 0; i < priors.size(); ++i) {
    EXPECT_EQ(priors[i].si, PriorCluster().si[i]) << kClusterParameterSpecs[i].name;
    EXPECT_EQ(priors[i].log_sd, kClusterParameterSpecs[i].prior_log_sd);
  }
}

// What the file states moves the centre and narrows the prior, of that parameter and of no other.
TEST(ClusterPriors, AreCentredOnWhatIsStated) {
  Cluster cluster;
  cluster.link.bandwidth = GigabitsPerSecond(25.0);
  cluster.device_link.bandwidth = GigabytesPerSecond(50.0);
  cluster.server_link.bandwidth = GigabitsPerSecond(1.0);
  const ClusterPriors priors = MakeClusterPriors(cluster, std::nullopt);
  const ClusterPriors table = MakeClusterPriors(Cluster(), std::nullopt);
  for (std::size_t i = 0; i < priors.size(); ++i) {
    const double centre = i == kLinkBandwidth ? 25e9 / 8 : i == kHostBandwidth ? 50e9 : table[i].si;
    EXPECT_EQ(priors[i].si, centre) << kClusterParameterSpecs[i].name;
    if (centre != table[i].si) {
      EXPECT_LT(priors[i].log_sd, table[i].log_sd);
    } else {
      EXPECT_EQ(priors[i].log_sd, table[i].log_sd);
    }
  }
}

// NVLink is a fact of the board; what the operator states of the cluster comes before it.
TEST(ClusterPriors, HostsBeginWithTheLinksOfTheirDevice) {
  Device device;
  device.device_link = GigabytesPerSecond(300.0);
  Cluster cluster;
  const Prior of_table = MakeClusterPriors(cluster, std::nullopt)[kHostBandwidth];
  EXPECT_EQ(MakeClusterPriors(cluster, device)[kHostBandwidth].si, of_table.si)
      << "nobody to talk to";
  cluster.devices_per_node = 8;
  const Prior of_sheet = MakeClusterPriors(cluster, device)[kHostBandwidth];
  EXPECT_EQ(of_sheet.si, 300e9);
  EXPECT_EQ(MakeClusterPriors(cluster, Device())[kHostBandwidth].si, of_table.si);
  cluster.device_link.bandwidth = GigabytesPerSecond(50.0);
  EXPECT_EQ(MakeClusterPriors(cluster, device)[kHostBandwidth].si, 50e9);
  EXPECT_EQ(MakeClusterPriors(cluster, device)[kHostBandwidth].log_sd, of_sheet.log_sd);
}

// Machines of such boards are built for networks; those of others, or with a single board, may have
// any link. What is stated comes first.
TEST(ClusterPriors, AnUnstatedLinkGoesWithTheLinksOfTheDevices) {
  Device device;
  device.device_link = GigabytesPerSecond(150.0);
  Cluster cluster;
  const auto link = [&] { return MakeClusterPriors(cluster, device)[kLinkBandwidth]; };
  const Prior of_table = PriorOf(kClusterParameterSpecs[kLinkBandwidth]);
  EXPECT_EQ(link().si, of_table.si);
  cluster.devices_per_node = 8;
  EXPECT_DOUBLE_EQ(link().si, 10.5e9);
  for (const double gbps : {25.0, 100.0, 400.0}) {
    EXPECT_LT(std::abs(std::log(gbps * 1e9 / 8 / link().si)), 1.645 * link().log_sd) << gbps;
  }
  EXPECT_EQ(HostLinkPrior(cluster, device, LinkFacts()).si, link().si);
  EXPECT_EQ(HostLinkPrior(cluster, device, LinkFacts()).log_sd, link().log_sd);
  cluster.link.bandwidth = GigabitsPerSecond(25.0);
  EXPECT_EQ(link().si, 25e9 / 8);
  EXPECT_LT(link().log_sd, of_table.log_sd);
  cluster.link.bandwidth.reset();
  device.device_link.reset();
  EXPECT_EQ(link().si, of_table.si);
  EXPECT_EQ(link().log_sd, of_table.log_sd);
}

// Over RDMA a card reads from a node's only device through PCI Express; the kernel copies nothing.
TEST(ClusterPriors, CardsReadFromOneDeviceThroughPciExpress) {
  Device device;
  device.device_link = GigabytesPerSecond(300.0);
  device.host_link = GigabytesPerSecond(31.5);
  Cluster cluster;
  cluster.link.transport = Transport::kRdma;
  cluster.link.bandwidth = GigabitsPerSecond(200.0);
  const auto host = [&] { return MakeClusterPriors(cluster, device)[kHostBandwidth]; };
  const Prior of_table = PriorOf(kClusterParameterSpecs[kHostBandwidth]);
  EXPECT_EQ(host().si, device.host_link->si());
  for (const double share : {0.35, 0.8}) {
    EXPECT_LT(std::abs(std::log(share)), 1.645 * host().log_sd) << "by way of the host, or past it";
  }
  cluster.link.bandwidth = GigabitsPerSecond(1600.0);
  EXPECT_EQ(host().si, 200e9) << "of several cards";
  cluster.link.bandwidth.reset();
  EXPECT_EQ(host().si, device.host_link->si());
  cluster.devices_per_node = 2;
  EXPECT_EQ(host().si, 300e9) << "between the devices";
  cluster.devices_per_node = 1;
  cluster.link.transport = Transport::kTcp;
  EXPECT_EQ(host().si, of_table.si);
  cluster.link.transport = Transport::kRdma;
  device.host_link.reset();
  EXPECT_EQ(host().si, of_table.si);
}

TEST(HostLinkPrior, GoesFromTheHostToTheClusterToTheTable) {
  Cluster cluster;
  const Prior table = HostLinkPrior(cluster, std::nullopt, LinkFacts());
  EXPECT_EQ(table.si, 10e9 / 8);
  cluster.link.bandwidth = GigabitsPerSecond(1.0);
  const Prior of_cluster = HostLinkPrior(cluster, std::nullopt, LinkFacts());
  EXPECT_EQ(of_cluster.si, 1e9 / 8);
  const Prior of_host =
      HostLinkPrior(cluster, std::nullopt, {.bandwidth = MegabitsPerSecond(100.0)});
  EXPECT_EQ(of_host.si, 100e6 / 8);
  // A statement is as certain wherever it stands; one about all says less of a single host.
  EXPECT_EQ(of_host.log_sd, MakeClusterPriors(cluster, std::nullopt)[kLinkBandwidth].log_sd);
  EXPECT_LT(of_host.log_sd, of_cluster.log_sd);
  EXPECT_LT(of_cluster.log_sd, table.log_sd);
  const LinkFacts slow = {.rtt = Milliseconds(1.0)};
  EXPECT_EQ(HostLinkPrior(cluster, std::nullopt, slow).si, of_cluster.si);
}

TEST(WorkloadPriors, AreTheTableWithoutADataSheet) {
  Device nameless;
  for (const std::optional<Device>& device :
       {std::optional<Device>(), std::optional<Device>(nameless)}) {
    Workload workload = *FindWorkload("resnet50");
    workload.inputs_vary = std::nullopt;
    const WorkloadPriors priors = MakeWorkloadPriors(workload, device);
    for (std::size_t i = 0; i < priors.size(); ++i) {
      EXPECT_EQ(priors[i].si, PriorWorkload().si[i]) << kWorkloadParameterSpecs[i].name;
      EXPECT_EQ(priors[i].log_sd, kWorkloadParameterSpecs[i].prior_log_sd);
    }
  }
}

TEST(WorkloadPriors, AreWhatTheDataSheetLetsExpect) {
  const Workload resnet = *FindWorkload("resnet50");
  const WorkloadPriors priors = MakeWorkloadPriors(resnet, T4());
  const SheetCompute sheet(resnet, T4());
  const FittedCurve<double> curve = sheet.Curve();
  EXPECT_EQ(priors[kFixedTime].si, curve.fixed.si());
  EXPECT_EQ(priors[kFloorTime].si, curve.floor.si());
  EXPECT_EQ(priors[kSampleTime].si, curve.per_sample.si());
  EXPECT_EQ(priors[kSampleTime].log_sd, kSheetTimeLogSd);
  EXPECT_EQ(priors[kUpdateTime].si, sheet.At(1).update.si());
  EXPECT_EQ(priors[kUpdateTime].log_sd, kSheetTimeLogSd);
}

// Three and twenty passes over the parameters where momentum makes eight, known as well.
TEST(WorkloadPriors, TheUpdateOfASizeAloneFollowsTheOptimizer) {
  Workload workload;
  workload.parameters = workload.trainable_parameters = 1000000;
  const WorkloadPriors momentum = MakeWorkloadPriors(workload, std::nullopt);
  EXPECT_DOUBLE_EQ(momentum[kUpdateTime].si, 1e-3);
  for (const auto& [optimizer, times] :
       {std::pair(Optimizer::kSgd, 3 / 8.0), std::pair(Optimizer::kAdam, 20 / 8.0)}) {
    workload.optimizer = optimizer;
    const WorkloadPriors priors = MakeWorkloadPriors(workload, std::nullopt);
    EXPECT_DOUBLE_EQ(priors[kUpdateTime].si, times * 1e-3);
    EXPECT_EQ(priors[kUpdateTime].log_sd, momentum[kUpdateTime].log_sd);
    EXPECT_EQ(priors[kSampleTime].si, momentum[kSampleTime].si);
  }
}

// Speech and detection at several sizes spread more than images of one size; of a network whose
// inputs nobody knows the table's is believed, which lies between them.
TEST(WorkloadPriors, SpreadByWhetherInputsVary) {
  const auto spread = [](const Workload& workload) {
    return MakeWorkloadPriors(workload, T4())[kStragglerSpread];
  };
  const Prior alike = spread(*FindWorkload("resnet50"));
  EXPECT_EQ(alike.si, kSpreadOfAlike);
  EXPECT_EQ(spread(*FindWorkload("bert_base")).si, alike.si);
  const Prior varying = spread(*FindWorkload("deepspeech2"));
  EXPECT_EQ(varying.si, kSpreadOfVarying);
  EXPECT_EQ(spread(*FindWorkload("yolov3")).si, varying.si);
  Workload unknown = *FindWorkload("resnet50");
  unknown.inputs_vary = std::nullopt;
  const Prior between = spread(unknown);
  EXPECT_EQ(between.si, PriorWorkload().si[kStragglerSpread]);
  EXPECT_LT(alike.si, between.si);
  EXPECT_LT(between.si, varying.si);
  EXPECT_GT(between.log_sd, varying.log_sd);
}

// No network of the catalogue starts outside the range in which the table believes.
TEST(WorkloadPriors, AreWithinTheTablesRange) {
  for (const std::string& name : WorkloadNames()) {
    const WorkloadPriors priors = MakeWorkloadPriors(*FindWorkload(name), T4());
    for (std::size_t i = 0; i < priors.size(); ++i) {
      const ParameterSpec& spec = kWorkloadParameterSpecs[i];
      EXPECT_GE(priors[i].si, spec.low * spec.si_per_unit) << name << " " << spec.name;
      EXPECT_LE(priors[i].si, spec.high * spec.si_per_unit) << name << " " << spec.name;
    }
  }
}

struct MeasuredStep {
  const char* workload;
  double step_s;  // of 64 pictures
};

// tensorflow/docs, performance benchmarks of 2017, synthetic pictures on a DGX-1's P100: 219, 91.8,
// 142 and 154 of them a second. The data sheet is within two standard deviations.
TEST(WorkloadPriors, TheDataSheetIsWithinItsOwnErrorOfMeasurements) {
  constexpr MeasuredStep kMeasured[] = {{"resnet50", 64 / 219.0},
                                        {"resnet152", 64 / 91.8},
                                        {"inception_v3", 64 / 142.0},
                                        {"vgg16", 64 / 154.0}};
  Device p100;
  p100.fp32 = TeraflopPerSecond(10.6);
  p100.memory_bandwidth = GigabytesPerSecond(732.0);
  for (const MeasuredStep& measured : kMeasured) {
    const Workload workload = *FindWorkload(measured.workload);
    const SheetTime sheet = SheetCompute(workload, p100).At(64);
    const double predicted = (sheet.forward + sheet.backward + sheet.update).si();
    EXPECT_LT(std::abs(std::log(predicted / measured.step_s)), 2 * kSheetTimeLogSd)
        << measured.workload << ": " << predicted << " s, measured " << measured.step_s;
    RecordProperty(measured.workload, std::to_string(predicted / measured.step_s));
  }
}

}  // namespace
}  // namespace stepcast
