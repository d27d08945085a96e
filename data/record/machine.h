// Devices, from their data sheets, and clusters, from their operators.
#ifndef STEPCAST_DATA_RECORD_MACHINE_H_
#define STEPCAST_DATA_RECORD_MACHINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/link.h"
#include "data/units/quantity.h"

namespace stepcast {

// One accelerator (or CPU) as its data sheet describes it. Peaks are dense; unknown is a value.
struct Device {
  std::string name;   // key in files: "rtx_4090"
  std::string title;  // "NVIDIA GeForce RTX 4090"
  std::string source;
  std::vector<std::string> aliases;
  std::optional<WorkRate<>> fp32;
  std::optional<WorkRate<>> tf32;
  std::optional<WorkRate<>> fp16;
  std::optional<WorkRate<>> bf16;
  std::optional<WorkRate<>> fp8;
  std::optional<DataSize<>> memory;
  std::optional<DataRate<>> memory_bandwidth;
  // Of the links to other devices of its node (NVLink), each way; unknown where there are none.
  std::optional<DataRate<>> device_link;
  // Of its PCI Express, each way; of a superchip, of its network cards.
  std::optional<DataRate<>> host_link;
  std::optional<double> power_w;
  // What the curve of an operation reads besides (model/compute/device_sheet.h).
  std::optional<int> multiprocessors;    // NVIDIA's SM, AMD's compute unit
  std::optional<DataSize<>> last_cache;  // the level before the memory
  std::optional<double> process_nm;      // of the chip, as its foundry names it
};

// The data sheet of the device that is called so in runs, where there is one.
inline std::optional<Device> DataSheetOf(const std::map<std::string, Device>& devices,
                                         const std::string& name) {
  const auto known = devices.find(name);
  return known != devices.end() ? std::optional(known->second) : std::nullopt;
}

// Its memory bandwidth.
inline std::optional<DataRate<>> MemoryBandwidthOf(const std::map<std::string, Device>& devices,
                                                   const std::string& name) {
  const auto known = devices.find(name);
  return known != devices.end() ? known->second.memory_bandwidth : std::nullopt;
}

struct Host {
  std::string name;
  LinkFacts link;  // of this host alone
};

struct Cluster {
  std::string name;
  std::string title;
  std::string source;
  std::string notes;
  std::string device;                  // a Device's name
  std::optional<Device> device_facts;  // where the cluster file itself describes the device
  int nodes = 1;
  int devices_per_node = 1;
  int nics_per_node = 1;  // network links of a node, each with the bandwidth of `link`
  LinkFacts link;         // node to node
  LinkFacts device_link;  // between devices of one node
  LinkFacts server_link;  // of a parameter server
  std::vector<Host> hosts;
  std::optional<double> node_price_per_hour;    // USD
  std::optional<double> server_price_per_hour;  // USD, of a parameter server's node
  std::optional<double> device_power_w;         // of a device that computes
  std::optional<double> device_idle_power_w;    // of one that waits in a job; at most the former
  std::optional<double> node_power_w;           // of a node but for its devices
  std::map<std::string, std::string> sources;   // dotted key -> where the figure stands
  // What a sample leaves in memory at least, since micro-steps did not fit: by the scope of their
  // workload on a device (data/record/calibration.h).
  std::map<std::string, DataSize<>> out_of_memory;
  // Present once the cluster has been calibrated.
  std::optional<Calibration> calibration;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_MACHINE_H_
