#include "data/io/machines.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/plan.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

const std::string kMachines = std::string(STEPCAST_SOURCE_DIR) + "/data/machines";
const std::string kSmall = "name: lab\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n";

Cluster Parse(const std::string& text) { return ParseCluster(text, "lab.yaml"); }

// ---- Clusters.

TEST(Cluster, TheLeastThatIsNeeded) {
  const Cluster cluster = Parse(kSmall);
  EXPECT_EQ(cluster.name, "lab");
  EXPECT_EQ(cluster.title, "lab");
  EXPECT_EQ(cluster.device, "t4");
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_EQ(cluster.devices_per_node, 1);
  EXPECT_TRUE(cluster.link.empty()) << "what is not known is not guessed";
  EXPECT_EQ(cluster.nics_per_node, 1);
  EXPECT_TRUE(cluster.device_link.empty());
  EXPECT_TRUE(cluster.server_link.empty());
  EXPECT_FALSE(cluster.device_facts.has_value());
  EXPECT_FALSE(cluster.node_price_per_hour.has_value());
  EXPECT_FALSE(cluster.device_power_w.has_value());
  EXPECT_FALSE(cluster.calibration.has_value());
}

TEST(Cluster, AnUnknownIsNoZero) {
  const Cluster cluster = Parse(kSmall + "link: {bandwidth: 1 Gbit/s, loss: 0}\n");
  EXPECT_EQ(cluster.link.bandwidth, GigabitsPerSecond(1.0));
  EXPECT_FALSE(cluster.link.rtt.has_value());
  EXPECT_EQ(cluster.link.loss, 0.0);
}

TEST(Cluster, JsonIsReadToo) {
  const Cluster cluster = Parse(R"({"name": "lab", "device": "t4", "nodes": 2,
  "devices_per_node": 1, "link": {"bandwidth": "10 Gbit/s", "loss": 0.01}})");
  EXPECT_EQ(cluster.link.bandwidth, GigabitsPerSecond(10.0));
  EXPECT_EQ(cluster.link.loss, 0.01);
}

TEST(Cluster, ADeviceCanBeDescribedInPlace) {
  const Cluster cluster = Parse(
      "name: lab\nnodes: 2\ndevices_per_node: 1\n"
      "device: {name: tpu, fp32: 5 TFLOP/s, memory: 8 GiB, memory_bandwidth: 300 GB/s}\n");
  EXPECT_EQ(cluster.device, "tpu");
  ASSERT_TRUE(cluster.device_facts.has_value());
  EXPECT_EQ(cluster.device_facts->fp32, TeraflopPerSecond(5.0));
  EXPECT_EQ(cluster.device_facts->memory, Gibibytes(8.0));
  EXPECT_FALSE(cluster.device_facts->fp16.has_value());
}

// Everything that a cluster file can hold.
Cluster FullCluster() {
  Cluster c = Parse(R"(name: lab
title: "Lab: two racks"
source: a person
notes: |
  First line: with a colon.
  # second line
device:
  name: tpu
  title: Some TPU
  source: data sheet
  aliases: [tpu one, "1"]
  fp32: 5.5 TFLOP/s
  tf32: 10 TFLOP/s
  fp16: 20 TFLOP/s
  bf16: 21 TFLOP/s
  fp8: 42 TFLOP/s
  memory: 16 GB
  memory_bandwidth: 300 GB/s
  device_link: 150 GB/s
  host_link: 31.5 GB/s
  power: 75 W
  multiprocessors: 40
  last_cache: 4 MB
  process: 12 nm
nodes: 4
devices_per_node: 2
nics_per_node: 2
link: {bandwidth: 10 Gbit/s, rtt: 0.2 ms, loss: 0.001, congestion_control: bbr, loss_burst: 1.5 ms,
  background: 200 Mbit/s, oversubscription: 2.5, nodes_per_switch: 16}
device_link: {bandwidth: 64 GB/s}
server_link: {bandwidth: 100 Mbit/s, rtt: 0 s, congestion_control: reno, background: 0 Mbit/s}
hosts:
  - name: a1
    link: {bandwidth: 1 Gbit/s}
  - name: a2
prices: {node_per_hour: 3.912}
power: {device: 70 W}
sources: {nodes: counted, link.bandwidth: "label: on the switch"}
)");
  c.calibration.emplace();
  Calibration& k = *c.calibration;
  k.version = "0.1.0";
  k.residual_log_sd = 0.0625;
  k.scatter = {{"all", {0.03125, 0.125}}, {"workload resnet50 on tpu", {0.0625, 0.25}}};
  k.repeat_log_sd = 0.015625;
  k.sources = {{"runs, of may.csv", 12}, {"more.csv", 0}};
  k.range.max_workers = 8;
  k.range.max_nodes = 4;
  k.range.max_devices_per_node = 2;
  k.range.hosts_alone = {"a1", "a2"};
  k.range.exchanges = {{Strategy::kRing, std::nullopt}, {Strategy::kPsSync, Transport::kRdma}};
  k.range.local_batch = {{"resnet50 on tpu", {16, 128, 4}}, {"vgg16 on tpu", {8, 8, 0}}};
  k.range.local_batch["vgg16 on tpu"].ran = {{Shard::kOptimizer, 8, 8},
                                             {Shard::kGradients, 8, 8, 2, {}, Mebibytes(100.0)},
                                             {Shard::kNone, 1, 4, 4, {Compressor::kTopK, 0.125}},
                                             {Shard::kParameters, 2, 1, 4, {}, Bytes(123457.0)}};
  k.parameters = {
      {"cluster", "link_bandwidth", "GB/s", 1.125, 0.03125, 1.0, 1.25, 1.25, 0.5,
       "a data sheet: p. 3", DecidedBy::kStated},
      {"hosts a1+a2", "straggler", "", 0.01, 0.25, 0, 0, 0.02, 0.75, "", DecidedBy::kBoth, 7, 5},
      {"workload resnet50 on tpu", "overhead", "ms", 3.0, 1.0, 0.5, 24.0, 3.0, 1.0, "",
       DecidedBy::kPrior}};
  k.log_covariance.resize(3, 3);
  k.log_covariance << 0.0009765625, -0.001, 0, -0.001, 0.0625, 1e-9, 0, 1e-9, 1;
  k.alternatives.resize(2, 3);
  k.alternatives << 0.1, -2, 1e-17, -0.25, 1.0 / 3, 0;
  return c;
}

void ExpectEqual(const LinkFacts& a, const LinkFacts& b) {
  EXPECT_EQ(a.bandwidth, b.bandwidth);
  EXPECT_EQ(a.rtt, b.rtt);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.congestion_control, b.congestion_control);
  EXPECT_EQ(a.loss_burst, b.loss_burst);
}

void ExpectEqual(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.residual_log_sd, b.residual_log_sd);
  EXPECT_EQ(a.repeat_log_sd, b.repeat_log_sd);
  ASSERT_EQ(a.scatter.size(), b.scatter.size());
  for (const auto& [scope, scatter] : a.scatter) {
    ASSERT_EQ(b.scatter.count(scope), 1U) << scope;
    EXPECT_EQ(scatter.compute, b.scatter.at(scope).compute);
    EXPECT_EQ(scatter.sync, b.scatter.at(scope).sync);
  }
  ASSERT_EQ(a.sources.size(), b.sources.size());
  for (std::size_t i = 0; i < a.sources.size(); ++i) {
    EXPECT_EQ(a.sources[i].file, b.sources[i].file);
    EXPECT_EQ(a.sources[i].runs, b.sources[i].runs);
  }
  EXPECT_EQ(a.range.max_workers, b.range.max_workers);
  EXPECT_EQ(a.range.max_nodes, b.range.max_nodes);
  EXPECT_EQ(a.range.max_devices_per_node, b.range.max_devices_per_node);
  EXPECT_EQ(a.range.hosts_alone, b.range.hosts_alone);
  EXPECT_EQ(a.range.exchanges, b.range.exchanges);
  ASSERT_EQ(a.range.local_batch.size(), b.range.local_batch.size());
  for (const auto& [key, range] : a.range.local_batch) {
    EXPECT_EQ(range.max_workers, b.range.local_batch.at(key).max_workers);
  }
  for (const auto& [key, batch] : a.range.local_batch) {
    ASSERT_TRUE(b.range.local_batch.count(key)) << key;
    EXPECT_EQ(batch.min, b.range.local_batch.at(key).min);
    EXPECT_EQ(batch.max, b.range.local_batch.at(key).max);
    EXPECT_EQ(batch.ran, b.range.local_batch.at(key).ran);
  }
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const ParameterEstimate& p = a.parameters[i];
    const ParameterEstimate& q = b.parameters[i];
    SCOPED_TRACE(p.name);
    EXPECT_EQ(p.scope, q.scope);
    EXPECT_EQ(p.name, q.name);
    EXPECT_EQ(p.unit, q.unit);
    EXPECT_EQ(p.value, q.value);
    EXPECT_EQ(p.log_sd, q.log_sd);
    EXPECT_EQ(p.prior_value, q.prior_value);
    EXPECT_EQ(p.prior_log_sd, q.prior_log_sd);
    EXPECT_EQ(p.decided_by, q.decided_by);
    EXPECT_EQ(p.prior_source, q.prior_source);
    EXPECT_EQ(p.runs, q.runs);
    EXPECT_EQ(p.runs_nearer, q.runs_nearer);
    EXPECT_EQ(p.low, q.low);
    EXPECT_EQ(p.high, q.high);
  }
  ASSERT_EQ(a.log_covariance.rows(), b.log_covariance.rows());
  ASSERT_EQ(a.log_covariance.cols(), b.log_covariance.cols());
  EXPECT_EQ(a.log_covariance, b.log_covariance);
  ASSERT_EQ(a.alternatives.rows(), b.alternatives.rows());
  EXPECT_EQ(a.alternatives, b.alternatives);
}

TEST(Cluster, RoundTripsWithItsCalibration) {
  const Cluster a = FullCluster();
  const Cluster b = Parse(FormatCluster(a));
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.notes, b.notes);
  EXPECT_EQ(a.device, b.device);
  ASSERT_TRUE(b.device_facts.has_value());
  EXPECT_EQ(a.device_facts->name, b.device_facts->name);
  EXPECT_EQ(a.device_facts->title, b.device_facts->title);
  EXPECT_EQ(a.device_facts->source, b.device_facts->source);
  EXPECT_EQ(a.device_facts->aliases, b.device_facts->aliases);
  EXPECT_EQ(a.device_facts->fp32, b.device_facts->fp32);
  EXPECT_EQ(a.device_facts->tf32, b.device_facts->tf32);
  EXPECT_EQ(a.device_facts->fp16, b.device_facts->fp16);
  EXPECT_EQ(a.device_facts->bf16, b.device_facts->bf16);
  EXPECT_EQ(a.device_facts->fp8, b.device_facts->fp8);
  EXPECT_EQ(a.device_facts->memory, b.device_facts->memory);
  EXPECT_EQ(a.device_facts->memory_bandwidth, b.device_facts->memory_bandwidth);
  EXPECT_EQ(b.device_facts->device_link, GigabytesPerSecond(150.0));
  EXPECT_EQ(b.device_facts->host_link, GigabytesPerSecond(31.5));
  EXPECT_EQ(a.device_facts->device_link, b.device_facts->device_link);
  EXPECT_EQ(a.device_facts->host_link, b.device_facts->host_link);
  EXPECT_EQ(a.device_facts->multiprocessors, b.device_facts->multiprocessors);
  EXPECT_EQ(a.device_facts->last_cache, b.device_facts->last_cache);
  EXPECT_EQ(a.device_facts->process_nm, b.device_facts->process_nm);
  EXPECT_EQ(a.device_facts->power_w, b.device_facts->power_w);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.devices_per_node, b.devices_per_node);
  EXPECT_EQ(a.nics_per_node, 2);
  EXPECT_EQ(a.nics_per_node, b.nics_per_node);
  EXPECT_EQ(a.link.congestion_control, CongestionControl::kBbr);
  EXPECT_EQ(a.link.loss_burst, Milliseconds(1.5));
  ExpectEqual(a.link, b.link);
  ExpectEqual(a.device_link, b.device_link);
  ExpectEqual(a.server_link, b.server_link);
  ASSERT_EQ(a.hosts.size(), b.hosts.size());
  for (std::size_t i = 0; i < a.hosts.size(); ++i) {
    EXPECT_EQ(a.hosts[i].name, b.hosts[i].name);
    ExpectEqual(a.hosts[i].link, b.hosts[i].link);
  }
  EXPECT_EQ(a.node_price_per_hour, b.node_price_per_hour);
  EXPECT_EQ(a.device_power_w, b.device_power_w);
  EXPECT_EQ(a.sources, b.sources);
  ASSERT_TRUE(b.calibration.has_value());
  ExpectEqual(*a.calibration, *b.calibration);
  EXPECT_EQ(FormatCluster(b), FormatCluster(a)) << "written again, it is the same file";
}

TEST(Cluster, ACalibrationThatFittedNothingRoundTrips) {
  Cluster cluster = Parse(kSmall);
  cluster.calibration.emplace();
  const Cluster read = Parse(FormatCluster(cluster));
  ASSERT_TRUE(read.calibration.has_value());
  ExpectEqual(*cluster.calibration, *read.calibration);
}

TEST(Cluster, ThePlaceOfItsDeviceIsALine) {
  const TempFolder folder;
  const std::string path = folder.Write("lab.yaml", kSmall);
  EXPECT_EQ(PlaceOfDevice(path).file, path);
  EXPECT_EQ(PlaceOfDevice(path).line, 2);
  EXPECT_EQ(PlaceOfDevice(path).key, "device");
  const InputPlace gone = PlaceOfDevice(folder.Path("gone.yaml"));
  EXPECT_EQ(gone.file, folder.Path("gone.yaml"));
  EXPECT_EQ(gone.line, 0);
  EXPECT_EQ(gone.key, "device");
}

TEST(Cluster, ATitleEndsWithItsLine) {
  EXPECT_EQ(Parse(kSmall + "title: |\n  Two racks\n").title, "Two racks");
}

// Texts are the user's: quotes, colons, hashes and line ends are written so that they are read
// back. What is shown on one line has no control characters.
RC_GTEST_PROP(Cluster, AnyTextRoundTrips, ()) {
  const auto text = [] {
    return *rc::gen::container<std::string>(
        rc::gen::element('a', '0', ' ', '\n', '\t', ':', '#', '-', '"', '\'', '\\', '{', '}', '[',
                         ']', '*', '&', '!', '|', '>', '%', '@', '`', ',', '?', '~', '=', '\x01'));
  };
  const auto line = [&] {
    std::string some = text();
    std::erase_if(some, [](char c) { return c == '\n' || c == '\t' || c == '\x01'; });
    return some;
  };
  Cluster cluster = Parse(kSmall);
  cluster.name = "a" + line();
  cluster.title = "a" + line();
  cluster.source = text();
  cluster.notes = text();
  cluster.device = line() + "a";
  cluster.sources = {{text(), text() + "a"}};
  const Cluster read = Parse(FormatCluster(cluster));
  RC_ASSERT(read.name == cluster.name);
  RC_ASSERT(read.title == cluster.title);
  RC_ASSERT(read.source == cluster.source);
  RC_ASSERT(read.notes == cluster.notes);
  RC_ASSERT(read.device == cluster.device);
  RC_ASSERT(read.sources == cluster.sources);
}

RC_GTEST_PROP(Cluster, AnyLinkRoundTrips, ()) {
  // Most have as many digits as a double holds.
  const auto some = [](double scale) {
    return *rc::gen::inRange(1, 1'000'000'000) / 1e9 / 3 * scale;
  };
  Cluster cluster = Parse(kSmall);
  cluster.link.bandwidth = GigabitsPerSecond(some(1000));
  cluster.link.rtt = Milliseconds(some(1000));
  cluster.link.loss = some(1);
  const LinkFacts read = Parse(FormatCluster(cluster)).link;
  RC_ASSERT(read.bandwidth == cluster.link.bandwidth);
  RC_ASSERT(read.rtt == cluster.link.rtt);
  RC_ASSERT(read.loss == cluster.link.loss);
}

TEST(Cluster, Errors) {
  const std::string estimate =
      "{scope: cluster, name: x, value: 1, log_sd: 0, prior_value: 1, prior_log_sd: 1, "
      "decided_by: ";
  const std::string range = "  range: {max_workers: 1, max_nodes: 1, max_devices_per_node: 1}\n";
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"device: t4\nnodes: 2\ndevices_per_node: 1\n",
       "lab.yaml:1: name: is a required key that is missing; allowed: a mapping with it; this one "
       "has device, nodes, devices_per_node"},
      {"# remark\n\nname: lab\nnodes: 2\ndevices_per_node: 1\n",
       "lab.yaml:3: device: is a required key that is missing"},
      {kSmall + "nodess: 3\n",
       "lab.yaml:5: nodess: is an unknown key (did you mean nodes?); allowed: name, title,"},
      {kSmall + "nics: 2\n", "devices_per_node, nics_per_node, link,"},
      {kSmall + "link:\n  latency: 2 ms\n",
       "lab.yaml:6: link.latency: is an unknown key; allowed: bandwidth, rtt, loss"},
      {kSmall + "link: {congestion_control: fast}\n",
       "lab.yaml:5: link.congestion_control: 'fast' is not a known congestion control; allowed: "
       "reno, cubic, bbr"},
      {kSmall + "link: {transport: ib}\n",
       "lab.yaml:5: link.transport: 'ib' is not a transport; allowed: tcp, rdma"},
      {kSmall + "device_link: {transport: rdma}\n",
       "lab.yaml:5: device_link.transport: is an unknown key; allowed: bandwidth, rtt, loss"},
      {kSmall + "hosts: [{name: a, link: {congestion_control: bbr}}]\n",
       "link.congestion_control: is an unknown key; allowed: bandwidth, rtt, loss, transport"},
      {kSmall + "link: {loss_burst: 1}\n", "lab.yaml:5: link.loss_burst: '1' has no unit"},
      {kSmall + "link: {oversubscription: 0.5, nodes_per_switch: 4}\n",
       "lab.yaml:5: link.oversubscription: '0.5' is out of range; allowed: a number from 1 to "
       "1000"},
      {kSmall + "link: {oversubscription: 4, nodes_per_switch: 1.5}\n",
       "lab.yaml:5: link.nodes_per_switch: '1.5' is not a whole number"},
      {kSmall + "link: {oversubscription: 4}\n",
       "lab.yaml:5: link.oversubscription: '4' says nothing without nodes_per_switch; allowed: "
       "both, or neither"},
      {kSmall + "hosts: [{name: a, link: {oversubscription: 4}}]\n",
       "link.oversubscription: is an unknown key; allowed: bandwidth, rtt, loss, transport"},
      {kSmall + "nics_per_node: 0\n", "lab.yaml:5: nics_per_node: '0' is out of range"},
      {kSmall + "nics_per_node: two\n", "lab.yaml:5: nics_per_node: 'two' is not a whole number"},
      {kSmall + "name: other\n", "lab.yaml:5: name: is given twice, first on line 1"},
      {kSmall + "link: {rtt: 1 ms, rtt: 2 ms}\n", "lab.yaml:5: link.rtt: is given twice"},
      {kSmall + "hosts: [{name: a}, {name: b}, {name: a}]\n",
       "lab.yaml:5: hosts[2].name: 'a' is the name of two hosts; allowed: each host once"},
      {kSmall + "hosts: [{name: a+b}]\n", "hosts[0].name: 'a+b' contains +"},
      {kSmall + "hosts: [a, b]\n", "lab.yaml:5: hosts[0]: 'a' is not a mapping"},
      {kSmall + "prices: {per_hour: 1}\n",
       "lab.yaml:5: prices.node_per_hour: is a required key that is missing"},
      {kSmall + "power: {device: 70}\n", "lab.yaml:5: power.device: '70' has no unit"},
      {kSmall + "power: {device: -70 W}\n", "lab.yaml:5: power.device: '-70 W' is out of range"},
      {kSmall + "link: 10 Gbit/s\n", "lab.yaml:5: link: '10 Gbit/s' is not a mapping"},
      {kSmall + "---\nnodes: 3\n", "lab.yaml:5: begins a second document"},
      {kSmall + "title: \"open\nnotes: x\n", "is within a quote that is never closed"},
      {kSmall + "calibration: {}\n",
       "lab.yaml:5: calibration.residual_log_sd: is a required key that is missing"},
      {kSmall + "calibration:\n  residual_log_sd: 0\n" + range + "  parameters: [" + estimate +
           "me}]\n  log_covariance: 1\n",
       "lab.yaml:8: calibration.parameters[0].decided_by: 'me' is unknown; allowed: data, both, "
       "prior, stated"},
      {kSmall + "calibration:\n  residual_log_sd: 0\n" + range + "  parameters: [" + estimate +
           "data}]\n  log_covariance: 1 2\n",
       "lab.yaml:9: calibration.log_covariance: '2' is left over; allowed: the lower triangle of a "
       "1 x 1 symmetric matrix"},
      {kSmall + "calibration:\n  residual_log_sd: 0\n" + range + "  parameters: [" + estimate +
           "data}]\n  log_covariance: nan\n",
       "lab.yaml:9: calibration.log_covariance: 'nan' is not a number"},
      {kSmall + "calibration:\n  residual_log_sd: 0\n" + range + "  parameters: [" + estimate +
           "data}]\n  log_covariance: x\n",
       "calibration.log_covariance: 'x' is not a number"},
      {kSmall + "calibration:\n  residual_log_sd: 0\n" + range +
           "  parameters: [{scope: cluster, name: x, value: 1, log_sd: 0, prior_value: 1, "
           "prior_log_sd: 1, runs: 3, runs_nearer: 4, decided_by: data}]\n  log_covariance: 1\n",
       "calibration.parameters[0].runs_nearer: '4' is out of range; allowed: a whole number from 0 "
       "to 3"}};
  for (const auto& c : cases) EXPECT_TRUE(Says(ErrorOf([&] { Parse(c.text); }), c.says)) << c.text;
}

// A file written by hand has no covariance, or one of variances alone; a fit's has more.
TEST(Cluster, WithoutACovarianceTheStandardErrorsStandAlone) {
  const std::string estimates =
      "calibration:\n  residual_log_sd: 0.05\n  parameters:\n"
      "    - {scope: cluster, name: link_bandwidth, unit: Gbit/s, value: 9, log_sd: 0.5, "
      "prior_value: 10, prior_log_sd: 1.5, decided_by: data}\n"
      "    - {scope: cluster, name: hop_spread, value: 0.1, log_sd: 0.25, prior_value: 0.1, "
      "prior_log_sd: 0.7, decided_by: data}\n";
  for (const char* covariance : {"", "  log_covariance: |\n    0\n    0 0\n",
                                 "  log_covariance: |\n    0.25\n    0 0.0625\n"}) {
    const Calibration read = *Parse(kSmall + estimates + covariance).calibration;
    EXPECT_FALSE(read.has_covariance) << covariance;
    const auto before = static_cast<int>(std::count(kSmall.begin(), kSmall.end(), '\n'));
    EXPECT_EQ(read.parameters[0].line, before + 4) << covariance;
    EXPECT_EQ(read.parameters[1].line, before + 5) << covariance;
    EXPECT_EQ(read.log_covariance(0, 0), 0.25) << covariance;
    EXPECT_EQ(read.log_covariance(1, 1), 0.0625) << covariance;
    EXPECT_EQ(read.log_covariance(0, 1), 0) << covariance;
  }
  const char* const fitted = "  log_covariance: |\n    0.25\n    0.01 0.0625\n";
  EXPECT_TRUE(Parse(kSmall + estimates + fitted).calibration->has_covariance);
  // One value that was fitted beside one that was stated is independent of it.
  std::string stated = estimates;
  stated.replace(stated.find("log_sd: 0.25"), 12, "log_sd: 0");
  const char* const one = "  log_covariance: |\n    0.25\n    0 0\n";
  EXPECT_TRUE(Parse(kSmall + stated + one).calibration->has_covariance);
}

TEST(Cluster, ACovarianceOfTheWrongSizeIsRefused) {
  Cluster cluster = FullCluster();
  cluster.calibration->log_covariance = Eigen::MatrixXd::Identity(2, 2);
  EXPECT_TRUE(
      Says(ErrorOf([&] { Parse(FormatCluster(cluster)); }),
           "calibration.log_covariance: is not a number; allowed: the lower triangle of a 3 "
           "x 3 symmetric matrix"));
}

// No correlation is beyond 1, up to the digits that are written.
TEST(Cluster, ACovarianceBeyondItsVariancesIsRefused) {
  Cluster cluster = FullCluster();
  Eigen::MatrixXd& covariance = cluster.calibration->log_covariance;
  covariance = Eigen::MatrixXd::Identity(3, 3) * 0.25;
  for (const double sign : {-1.0, 1.0}) {
    for (const double correlation : {0.5, 1.0, 1 + 5e-6}) {
      covariance(2, 0) = covariance(0, 2) = sign * correlation * 0.25;
      EXPECT_NO_THROW(Parse(FormatCluster(cluster))) << correlation;
    }
    covariance(2, 0) = covariance(0, 2) = sign * 0.2501;
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(FormatCluster(cluster)); }),
                     "in row 3, column 1 is more than the two variances allow; allowed: -0.25 to "
                     "0.25"));
  }
}

// ---- Devices.

std::vector<Device> Devices(const std::string& text) {
  const TempFolder folder;
  return ReadDevices(folder.Write("devices.yaml", text));
}

TEST(Devices, AreFoundWhateverTheSpelling) {
  const std::vector<Device> devices = Devices(
      "devices:\n  - {name: rtx_4090, title: NVIDIA GeForce RTX 4090, aliases: [4090 card, 日本]}\n"
      "  - {name: t4}\n");
  for (const char* name : {"rtx_4090", "RTX 4090", "rtx-4090", "NVIDIA GeForce RTX 4090",
                           "nvidia-geforce-rtx-4090", "4090 Card"}) {
    const std::optional<Device> device = FindDevice(devices, name);
    ASSERT_TRUE(device.has_value()) << name;
    EXPECT_EQ(device->name, "rtx_4090");
  }
  for (const char* name : {"", "-", "4090", "rtx 409", "t40", "µ"}) {
    EXPECT_FALSE(FindDevice(devices, name).has_value()) << name;
  }
}

TEST(Devices, Errors) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"devices:\n  - {name: t4}\n  - {name: T-4}\n",
       ":3: devices[1].name: 'T-4' is the name of two devices"},
      {"devices:\n  - {name: t4, fp32: 8.1 TFLOPS}\n",
       ":2: devices[0].fp32: '8.1 TFLOPS' has an unknown unit"},
      {"devices:\n  - {title: t4}\n", ":2: devices[0].name: is a required key that is missing"},
      {"devices:\n  - {name: t4, fp4: 1 TFLOP/s}\n", ":2: devices[0].fp4: is an unknown key"},
      {"devices: []\n", ":1: devices: is missing or empty; allowed: a list of devices"},
      {"device: []\n", ": device: is an unknown key (did you mean devices?); allowed: devices"},
      {"{}\n", "devices: is missing or empty"}};
  for (const auto& c : cases) {
    EXPECT_TRUE(Says(ErrorOf([&] { Devices(c.text); }), c.says)) << c.text;
  }
}

// ---- The files that are shipped.

std::vector<Cluster> ShippedClusters() {
  std::vector<Cluster> clusters;
  for (const auto& entry : std::filesystem::directory_iterator(kMachines)) {
    if (entry.path().filename() == "gpus.yaml") continue;
    clusters.push_back(ReadCluster(entry.path().string()));
    EXPECT_EQ(clusters.back().name, entry.path().stem().string()) << "files are called by the name";
  }
  return clusters;
}

// The dotted keys of the figures that a cluster states.
std::vector<std::string> Figures(const Cluster& cluster) {
  std::vector<std::string> figures = {"nodes", "devices_per_node"};
  if (cluster.device != "unstated_gpu") figures.emplace_back("device");
  const auto add_link = [&](const std::string& key, const LinkFacts& link) {
    if (link.bandwidth) figures.push_back(key + ".bandwidth");
    if (link.rtt) figures.push_back(key + ".rtt");
    if (link.loss) figures.push_back(key + ".loss");
  };
  add_link("link", cluster.link);
  add_link("device_link", cluster.device_link);
  add_link("server_link", cluster.server_link);
  if (!cluster.hosts.empty()) figures.emplace_back("hosts");
  if (cluster.node_price_per_hour) figures.emplace_back("prices.node_per_hour");
  if (cluster.device_power_w) figures.emplace_back("power.device");
  if (cluster.device_idle_power_w) figures.emplace_back("power.device_idle");
  if (cluster.node_power_w) figures.emplace_back("power.node");
  return figures;
}

TEST(ShippedMachines, EveryFigureHasASource) {
  const std::vector<Cluster> clusters = ShippedClusters();
  EXPECT_GE(clusters.size(), 7U);
  for (const Cluster& cluster : clusters) {
    SCOPED_TRACE(cluster.name);
    EXPECT_FALSE(cluster.source.empty());
    std::map<std::string, std::string> left = cluster.sources;
    for (const std::string& figure : Figures(cluster)) {
      EXPECT_EQ(left.erase(figure), 1U) << figure << " has no source";
    }
    for (const auto& [key, source] : left) {
      ADD_FAILURE() << key << " has a source and no figure: " << source;
    }
  }
}

TEST(ShippedMachines, EveryDeviceIsDescribed) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  for (const Cluster& cluster : ShippedClusters()) {
    EXPECT_TRUE(cluster.device_facts || FindDevice(devices, cluster.device)) << cluster.name;
  }
}

TEST(ShippedMachines, DevicesAreSourcedAndOrdered) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  EXPECT_GE(devices.size(), 10U);
  for (const Device& device : devices) {
    SCOPED_TRACE(device.name);
    EXPECT_FALSE(device.source.empty());
    EXPECT_FALSE(device.title.empty());
    if (device.name == "unstated_gpu") continue;
    ASSERT_TRUE(device.fp32 && device.memory);
    // Lower precision is never slower.
    const WorkRate<> tf32 = device.tf32.value_or(*device.fp32);
    EXPECT_GE(tf32, *device.fp32);
    EXPECT_GE(device.fp16.value_or(tf32), tf32);
    EXPECT_GE(device.bf16.value_or(tf32), tf32);
    // Units for matrices take half as long for half the bits, in all architectures that have fp8.
    if (device.fp8) {
      EXPECT_NEAR(*device.fp8 / device.bf16.value(), 2, 0.03);
    }
  }
}

// A name, title or alias leads to one device only: the one that bears it.
TEST(ShippedMachines, NoTwoDevicesShareAName) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  for (const Device& device : devices) {
    std::vector<std::string> names = device.aliases;
    names.push_back(device.name);
    names.push_back(device.title);
    for (const std::string& name : names) {
      const std::optional<Device> found = FindDevice(devices, name);
      ASSERT_TRUE(found.has_value()) << name;
      EXPECT_EQ(found->name, device.name) << name;
    }
  }
}

// What several boards of different figures are called leads to none of them.
TEST(ShippedMachines, ANameOfSeveralBoardsLeadsToNone) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  for (const char* name : {"Tesla P100", "Tesla V100", "NVIDIA A100", "NVIDIA H100",
                           "NVIDIA TITAN X", "RTX 6000", "Xavier", "Orin"}) {
    EXPECT_FALSE(FindDevice(devices, name).has_value()) << name;
  }
}

// As people call them.
TEST(ShippedMachines, AShortNameLeadsToItsBoard) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  constexpr const char* kShort[][2] = {
      {"2080Ti", "rtx_2080_ti"}, {"1080 Ti", "gtx_1080_ti"},
      {"4090", "rtx_4090"},      {"4070 Ti Super", "rtx_4070_ti_super"},
      {"H100 SXM", "h100"},      {"h100_sxm5", "h100"},
      {"A100 SXM 40GB", "a100"}, {"H200 SXM", "h200"}};
  for (const auto& [said, name] : kShort) {
    const std::optional<Device> found = FindDevice(devices, said);
    ASSERT_TRUE(found.has_value()) << said;
    EXPECT_EQ(found->name, name) << said;
  }
}

// Boards that differ in memory, clocks or links alone are told apart by what the driver prints.
TEST(ShippedMachines, TheDriversNameLeadsToItsBoard) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  struct Board {
    const char* printed;
    const char* name;
    double memory_gib;
    double fp16_teraflop;
    double link;  // GB/s each way; 0: none
  };
  constexpr Board kBoards[] = {
      {"Tesla V100-SXM2-16GB", "v100", 16, 125, 150},
      {"Tesla V100-SXM2-32GB", "v100_32gb", 32, 125, 150},
      {"Tesla V100-PCIE-32GB", "v100_32gb_pcie", 32, 112, 0},
      {"Tesla V100S-PCIE-32GB", "v100s_pcie", 32, 130, 0},
      {"NVIDIA A100-SXM4-80GB", "a100_80gb", 80, 312, 300},
      {"NVIDIA A800-SXM4-80GB", "a800", 80, 312, 200},
      {"NVIDIA H100 80GB HBM3", "h100", 80, 989.4, 450},
      {"NVIDIA H800", "h800", 80, 989.4, 200},
      {"NVIDIA H800 PCIe", "h800_pcie", 80, 756, 0},
      {"NVIDIA H100 NVL", "h100_nvl", 94, 835.5, 0},
      {"NVIDIA H20", "h20", 96, 148, 450},
      {"NVIDIA GH200 480GB", "gh200", 96, 990, 450},
      {"NVIDIA A10", "a10", 24, 125, 0},
      {"NVIDIA A10G", "a10g", 24, 70, 0},
      {"NVIDIA L20", "l20", 48, 119.5, 0},
      {"NVIDIA RTX A6000", "rtx_a6000", 48, 154.8, 0},
      {"NVIDIA RTX A5000", "rtx_a5000", 24, 111.1, 0},
      {"NVIDIA RTX 6000 Ada Generation", "rtx_6000_ada", 48, 364.2, 0},
      {"Quadro RTX 6000", "quadro_rtx_6000", 24, 130.5, 0},
      {"Quadro RTX 8000", "quadro_rtx_8000", 48, 130.5, 0},
      {"TITAN V", "titan_v", 12, 110, 0},
      {"TITAN RTX", "titan_rtx", 24, 130.5, 0},
      {"NVIDIA L40", "l40", 48, 181.05, 0},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx_pro_6000", 96, 503.8, 0},
      {"NVIDIA GB200", "gb200", 186, 2500, 900},
      {"NVIDIA B300 SXM6 AC", "b300", 270, 2250, 900},
      {"NVIDIA GB300", "gb300", 279, 2500, 900},
      {"NVIDIA RTX A4000", "rtx_a4000", 16, 76.7, 0},
      {"NVIDIA GeForce RTX 3060 Ti", "rtx_3060_ti", 8, 32.4, 0},
      {"NVIDIA GeForce RTX 3080 Ti", "rtx_3080_ti", 12, 68.2, 0},
      {"NVIDIA GeForce RTX 3090 Ti", "rtx_3090_ti", 24, 80, 0},
      {"NVIDIA GeForce RTX 4070 SUPER", "rtx_4070_super", 12, 71, 0},
      {"NVIDIA GeForce RTX 4070 Ti SUPER", "rtx_4070_ti_super", 16, 88.2, 0},
      {"NVIDIA GeForce RTX 4080 SUPER", "rtx_4080_super", 16, 104.4, 0},
      {"AMD Instinct MI250", "mi250", 64, 181.05, 150},
      {"AMD Instinct MI325X", "mi325x", 256, 1307.4, 448},
      {"AMD Instinct MI355X", "mi355x", 288, 2516.6, 537.6}};
  for (const Board& board : kBoards) {
    const std::optional<Device> found = FindDevice(devices, board.printed);
    ASSERT_TRUE(found.has_value()) << board.printed;
    EXPECT_EQ(found->name, board.name);
    EXPECT_EQ(found->memory, Gibibytes(board.memory_gib)) << board.name;
    EXPECT_EQ(found->fp16, TeraflopPerSecond(board.fp16_teraflop)) << board.name;
    EXPECT_EQ(found->device_link.has_value(), board.link > 0) << board.name;
    if (found->device_link) {
      EXPECT_EQ(found->device_link, GigabytesPerSecond(board.link)) << board.name;
    }
  }
}

// A GPU with a data sheet has all that the forecast of its operations reads.
TEST(ShippedMachines, GpusHaveWhatTheirForecastReads) {
  int gpus = 0;
  for (const Device& device : ReadDevices(kMachines + "/gpus.yaml")) {
    if (!device.memory_bandwidth) continue;  // a machine that a paper describes
    ++gpus;
    EXPECT_TRUE(device.fp32 && device.power_w) << device.name;
    ASSERT_TRUE(device.multiprocessors && device.last_cache && device.process_nm) << device.name;
    EXPECT_GE(*device.multiprocessors, 8) << device.name;
    EXPECT_LT(*device.last_cache, *device.memory) << device.name;
  }
  EXPECT_GT(gpus, 40);
}

TEST(ShippedMachines, FiguresStandAsInTheirSources) {
  const std::vector<Device> devices = ReadDevices(kMachines + "/gpus.yaml");
  const Device rtx_4090 = FindDevice(devices, "RTX 4090").value();
  EXPECT_EQ(rtx_4090.fp32, TeraflopPerSecond(82.6));
  EXPECT_EQ(rtx_4090.memory, Gibibytes(24.0));
  EXPECT_EQ(rtx_4090.memory_bandwidth, GigabytesPerSecond(1008.0));
  EXPECT_EQ(rtx_4090.power_w, 450.0);
  EXPECT_EQ(rtx_4090.multiprocessors, 128);
  EXPECT_EQ(rtx_4090.last_cache, Mebibytes(72.0));
  EXPECT_EQ(rtx_4090.process_nm, 5.0);
  // Kepler issues for 128 of the 192 cores of a multiprocessor: 13 of them at 875 MHz.
  EXPECT_NEAR(FindDevice(devices, "Tesla K40m")->fp32->in(kTeraflopPerSecond),
              15 * 128 * 2 * 0.875e-3, 0.005);
  EXPECT_NEAR(FindDevice(devices, "k80")->fp32->in(kTeraflopPerSecond), 13 * 128 * 2 * 0.875e-3,
              0.005);
  // Two operations of each core at the boost clock.
  constexpr struct {
    const char* name;
    double cores;
    double gigahertz;
  } kBoosted[] = {{"rtx_a4000", 6144, 1.56},       {"rtx_3060_ti", 4864, 1.665},
                  {"rtx_3080_ti", 10240, 1.665},   {"rtx_3090_ti", 10752, 1.86},
                  {"rtx_4070_super", 7168, 2.475}, {"rtx_4070_ti_super", 8448, 2.61},
                  {"rtx_4080_super", 10240, 2.55}};
  for (const auto& board : kBoosted) {
    const Device device = FindDevice(devices, board.name).value();
    EXPECT_NEAR(device.fp32->in(kTeraflopPerSecond), 2e-3 * board.cores * board.gigahertz, 0.06)
        << board.name;
    EXPECT_EQ(device.multiprocessors, board.cores / 128) << board.name;
  }
  // Seven links of 64 GB/s each way to the others of its platform; three of 50 out of the module.
  EXPECT_EQ(FindDevice(devices, "mi300x")->device_link, GigabytesPerSecond(7 * 64.0));
  EXPECT_EQ(FindDevice(devices, "mi250x")->device_link, GigabytesPerSecond(3 * 50.0));
  // Lanes of PCI Express: 8, 16 and 32 GT/s, of which 128 of 130 bits are payload.
  EXPECT_NEAR(FindDevice(devices, "t4")->host_link->si(), 16 * 1e9 * 128 / 130, 1e7);
  EXPECT_NEAR(FindDevice(devices, "rtx_4060")->host_link->si(), 8 * 2e9 * 128 / 130, 1e7);
  EXPECT_NEAR(FindDevice(devices, "a100")->host_link->si(), 16 * 2e9 * 128 / 130, 1e7);
  EXPECT_NEAR(FindDevice(devices, "h100")->host_link->si(), 16 * 4e9 * 128 / 130, 1e8);
  const Cluster tupi = ReadCluster(kMachines + "/ufrgs-tupi.yaml");
  EXPECT_EQ(tupi.device, "rtx_4090");
  EXPECT_EQ(tupi.link.bandwidth, GigabitsPerSecond(1.0));
  EXPECT_EQ(tupi.hosts.size(), 4U);
  const Cluster aws = ReadCluster(kMachines + "/aws-g4dn-12xlarge.yaml");
  EXPECT_EQ(aws.nodes * aws.devices_per_node, 64);
}

}  // namespace
}  // namespace stepcast
