// The parameters of the step model: few, positive, each with a meaning, a unit and a plausible
// range.
//
// ClusterParameters belong to a cluster and are shared by all workloads; WorkloadParameters belong
// to one workload on one device. Both are arrays of SI values with typed accessors, so that
// calibration can treat them as vectors and formulas as quantities.
#ifndef STEPCAST_MODEL_STEP_PARAMETERS_H_
#define STEPCAST_MODEL_STEP_PARAMETERS_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "data/units/quantity.h"

namespace stepcast {

// A parameter before any run: it is log-normal around `prior` with `prior_log_sd`, and a value
// outside [low, high] means that the formula is wrong. Values are in `unit`.
struct ParameterSpec {
  std::string_view name;
  std::string_view unit;  // as people read it; empty for a plain number
  double si_per_unit;
  double prior;
  double prior_log_sd;
  double low;
  double high;
  std::string_view meaning;
  std::string_view source;  // of the prior
  std::string_view model;   // the entry of the catalogue whose formula reads it

  // The ends of the range, as ln(SI value).
  double log_low() const { return std::log(low * si_per_unit); }
  double log_high() const { return std::log(high * si_per_unit); }
};

enum ClusterParameter {
  kLinkBandwidth,
  kFlowBandwidth,
  kHostBandwidth,
  kLinkLatency,
  kRdmaLatency,
  kDeviceLatency,
  kNodeSyncOverhead,
  kDeviceSyncOverhead,
  kHostSharing,
  kHopSpread,
  kMeshShare,
  kHostContention,
  kOverlapShare,
  kTransferInitiation,
  kServerRate,
  kRpcRounds,
  kFlowWindow,
  kLossTimeout,
  kOverlapContention,
  kClusterParameterCount
};

enum WorkloadParameter {
  kFixedTime,
  kFloorTime,
  kSampleTime,
  kStragglerSpread,
  kUpdateTime,
  kWorkloadParameterCount
};

inline constexpr std::array<ParameterSpec, kClusterParameterCount> kClusterParameterSpecs = {{
    {"link_bandwidth", "Gbit/s", 1e9 / 8, 10, 1.5, 1e-3, 1e4,
     "line rate of a node's network link, each way",
     "between 1 and 100 Gbit/s Ethernet, where the cluster file states none", "network/path"},
    {"flow_bandwidth", "Gbit/s", 1e9 / 8, 10, 1.0, 1e-3, 1e4,
     "most that the flows to one peer carry, whatever the link",
     "5.4 and 18 Gbit/s fitted on two public clusters; 5 to 10 on EC2 (user guide)",
     "network/path"},
    {"host_bandwidth", "GB/s", 1e9, 3.8, 1.0, 0.05, 2000,
     "rate of an exchange within a node, which is also the host's end of a hop between nodes",
     "fitted on public clusters: 1.3 (Sia), 2 (AdaptDL), 6 to 9 (HKBU), 6 to 11 GB/s (DeepBench)",
     "network/hop_rate"},
    {"link_latency", "us", 1e-6, 50, 0.5, 0.5, 1e5,
     "one-way cost of a message between nodes beyond half the stated round trip",
     "kernel TCP within a data centre: tens of microseconds", "network/hop_latency"},
    {"rdma_latency", "us", 1e-6, 3, 0.7, 0.1, 1e5,
     "one-way cost of a message between nodes over RDMA, beyond half the stated round trip",
     "perftest within a rack: 1 to 2 us, and a library's call", "network/hop_latency"},
    {"device_latency", "us", 1e-6, 10, 0.5, 0.1, 1e4,
     "one-way cost of a message between devices of a node",
     "a copy between devices with its synchronisation: about ten microseconds",
     "network/hop_latency"},
    {"node_sync_overhead", "ms", 1e-3, 0.6, 0.7, 0.001, 100,
     "fixed cost of one synchronisation between nodes, before any byte",
     "measured with a 6 MB model: about 0.6 ms a step", "step/ring"},
    {"device_sync_overhead", "ms", 1e-3, 0.3, 0.7, 0.001, 100,
     "fixed cost of one synchronisation within a node, before any byte",
     "measured with a 6 MB model: about 0.3 ms a step", "step/ring"},
    {"host_sharing", "", 1, 0.08, 1.3, 1e-4, 2,
     "growth of a byte's time at the host's end of a hop for each further device in use there",
     "0.02 to 0.4 fitted on three public clusters", "network/hop_rate"},
    {"hop_spread", "", 1, 0.8, 0.6, 1e-4, 2,
     "spread of what flows carry between pairs of nodes; rounds wait for the slowest",
     "0.9 on public traces of one cloud; it is not felt where links set the pace", "network/path"},
    {"mesh_share", "", 1, 0.75, 0.3, 0.05, 1.5,
     "share of a link's rate that is left where all nodes send to all at once over TCP (byteps)",
     "BytePS reaches 5.4 of 10 Gbit/s, a ring 9.2 (HKBU's comparison)", "network/path"},
    {"host_contention", "", 1, 0.016, 0.67, 1e-4, 0.5,
     "growth of the compute time each time that the devices in use on a node double, and for each "
     "server there",
     "1.4 to 3.1 per cent a doubling on public traces of hosts with 4 and 8 devices",
     "compute/fitted_curve"},
    {"overlap_share", "", 1, 0.65, 0.25, 0.05, 0.95,
     "share of a micro-step behind which a synchronisation can hide: the backward pass, less what "
     "the exchange slows it",
     "fitted on public clusters: 0.6 (AdaptDL), 0.68 (Sia, HKBU), at least 0.73 (Horovod)",
     "step/ring"},
    {"transfer_initiation", "us", 1e-6, 20, 1.0, 0.1, 1e5,
     "processor time to start one transfer to or from a parameter server",
     "a remote procedure call of some kilobytes: tens of microseconds",
     "collective/parameter_server"},
    {"server_rate", "GB/s", 1e9, 1.2, 1.0, 0.01, 1000,
     "rate at which one server takes in, adds up and gives out bytes, each way",
     "a tensor of VGG-16 passes a TensorFlow server at 1.0 to 1.3 GB/s (Horovod, 2017); "
     "TensorFlow's benchmarks are fitted at 6 GB/s, and hardly tell it",
     "collective/parameter_server"},
    {"rpc_rounds", "", 1, 0.01, 1.5, 1e-4, 100,
     "round trips that a phase of a parameter server waits for with each tensor, beyond the first: "
     "round trips of one call over calls in flight at once",
     "calls for all tensors are in flight together", "collective/parameter_server"},
    {"flow_window", "MB", 1e6, 2.9, 1.0, 0.01, 1e4,
     "bytes that the flows to one peer have in flight before they wait for a round trip",
     "measured with the default TCP buffers of Linux: 2.9 MB; remote procedure calls and "
     "collectives may have less (HTTP/2 streams: 64 KiB, RFC 9113)",
     "network/path"},
    {"loss_timeout", "ms", 1e-3, 200, 0.7, 1, 5000, "what a retransmission timeout costs",
     "the least retransmission timeout of Linux: 200 ms", "network/sack_recovery"},
    {"overlap_contention", "", 1, 0.05, 0.7, 1e-4, 1,
     "growth of the compute time while a synchronisation runs beside it",
     "kernels of the exchange take processors and memory bandwidth from those of the network",
     "overlap/contention"},
}};

inline constexpr std::array<ParameterSpec, kWorkloadParameterCount> kWorkloadParameterSpecs = {{
    {"fixed_time", "ms", 1e-3, 10, 2.0, 1e-3, 1e5,
     "time of a micro-step that no batch changes: launches, input", "milliseconds",
     "compute/fitted_curve"},
    {"floor_time", "ms", 1e-3, 10, 2.0, 1e-3, 1e5,
     "device time of a micro-step while the batch is too small to fill it", "milliseconds",
     "compute/fitted_curve"},
    {"sample_time", "ms", 1e-3, 1, 4.0, 1e-6, 1e7,
     "device time of one more sample once the device is full", "from the device's data sheet",
     "compute/fitted_curve"},
    {"straggler_spread", "", 1, 0.045, 1.18, 1e-4, 2,
     "spread of a micro-step between workers, as a share of it",
     "fitted on jobs of AdaptDL, Sia, HKBU, Horovod, UFRGS and TensorFlow: 0.02 for inputs of one "
     "size, 0.1 and more for inputs of varying length",
     "sync/straggler"},
    {"update_time", "ms", 1e-3, 1, 1.5, 1e-3, 1e5, "time of the optimizer's update, once a step",
     "from the device's memory bandwidth", "step/ring"},
}};

template <class T>
struct ClusterParameters {
  std::array<T, kClusterParameterCount> si{};
  // Line rate of the slowest of the nodes that a plan names, where they have links of their own
  // [B/s]; otherwise they have the cluster's.
  std::optional<T> node_link_si;
  // compute_slowdown of the slowest of the nodes that a plan names, where that differs from the
  // others'.
  std::optional<T> node_slowdown;
  // Share of a line rate that a plan states which is reached, beyond the share of the payload: 1 in
  // every forecast, and uncertain in its interval.
  T stated_share = T(1.0);

  DataRate<T> node_link() const {
    return node_link_si ? DataRate<T>::FromSi(*node_link_si) : link_bandwidth();
  }
  DataRate<T> link_bandwidth() const { return DataRate<T>::FromSi(si[kLinkBandwidth]); }
  DataRate<T> flow_bandwidth() const { return DataRate<T>::FromSi(si[kFlowBandwidth]); }
  DataRate<T> host_bandwidth() const { return DataRate<T>::FromSi(si[kHostBandwidth]); }
  Duration<T> link_latency() const { return Duration<T>::FromSi(si[kLinkLatency]); }
  Duration<T> device_latency() const { return Duration<T>::FromSi(si[kDeviceLatency]); }
  Duration<T> node_sync_overhead() const { return Duration<T>::FromSi(si[kNodeSyncOverhead]); }
  Duration<T> device_sync_overhead() const { return Duration<T>::FromSi(si[kDeviceSyncOverhead]); }
  const T& host_sharing() const { return si[kHostSharing]; }
  const T& hop_spread() const { return si[kHopSpread]; }
  const T& mesh_share() const { return si[kMeshShare]; }
  const T& host_contention() const { return si[kHostContention]; }
  const T& overlap_share() const { return si[kOverlapShare]; }
  Duration<T> transfer_initiation() const { return Duration<T>::FromSi(si[kTransferInitiation]); }
  DataRate<T> server_rate() const { return DataRate<T>::FromSi(si[kServerRate]); }
  const T& rpc_rounds() const { return si[kRpcRounds]; }
  DataSize<T> flow_window() const { return DataSize<T>::FromSi(si[kFlowWindow]); }
  Duration<T> loss_timeout() const { return Duration<T>::FromSi(si[kLossTimeout]); }
  const T& overlap_contention() const { return si[kOverlapContention]; }
};

template <class T>
struct WorkloadParameters {
  std::array<T, kWorkloadParameterCount> si{};

  Duration<T> fixed_time() const { return Duration<T>::FromSi(si[kFixedTime]); }
  Duration<T> floor_time() const { return Duration<T>::FromSi(si[kFloorTime]); }
  DurationPerSample<T> sample_time() const { return DurationPerSample<T>::FromSi(si[kSampleTime]); }
  const T& straggler_spread() const { return si[kStragglerSpread]; }
  Duration<T> update_time() const { return Duration<T>::FromSi(si[kUpdateTime]); }
};

// The values at which a plan is evaluated.
struct PlanParameters {
  ClusterParameters<double> cluster;
  WorkloadParameters<double> workload;

  // From arrays of ln(SI value); `log_link` is the link of the slowest named host, and null where
  // the plan takes the cluster's; `log_slowdown` is the largest factor on compute, and null where
  // no host has one.
  static PlanParameters FromLogs(const double* log_cluster, const double* log_workload,
                                 const double* log_link, const double* log_slowdown = nullptr);
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_PARAMETERS_H_
