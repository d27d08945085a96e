// Reads captures of a training's hosts, in bounded memory however long they are, as "Communication
// Patterns in Distributed Deep Learning" does [@farhat]: flows by SYN and FIN, packets and bytes
// before, in and after the steps, by step and by flow.
//
// Each packet between two hosts may be in both captures: it counts where its sender's host captured
// it, or else where most of what the sender sent that way was.
#ifndef STEPCAST_DATA_PCAP_IMPORT_PCAP_H_
#define STEPCAST_DATA_PCAP_IMPORT_PCAP_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/pcap/captured_traffic.h"

namespace stepcast {

struct CaptureFile {
  std::string path;
  std::string host;  // empty where nobody said; files of one host follow one another
};

struct PcapOptions {
  std::string filter;                            // an expression of tcpdump; "" for all
  std::map<std::string, std::string> addresses;  // names of hosts, by their addresses
  std::optional<double> compute_s;               // of each step, where the steps do not say it
};

// "NAME=FILE", or a file alone: of the host of that name where `steps` have one ("n1.pcap" of n1).
CaptureFile ParseCaptureFile(const std::string& text, const std::vector<HostSteps>& steps);

// Throws InputError naming file and packet, and for steps of hosts of which there is no capture and
// no address.
CapturedTraffic ImportPcap(const std::vector<CaptureFile>& files, std::vector<HostSteps> steps,
                           const PcapOptions& options);

}  // namespace stepcast

#endif  // STEPCAST_DATA_PCAP_IMPORT_PCAP_H_
