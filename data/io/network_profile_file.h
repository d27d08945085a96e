// Measurements of a network as files: one JSON object, as `stepcast probe network` writes it.
//
//   {"stepcast_network": 1, "version": "0.2.0", "started": "2026-01-31T12:00:00Z",
//    "planned": 44, "settings": {...},
//    "hosts": [{"name": "n1", "address": "10.0.0.1", "facts": {"interface": "eth0", ...}}, ...],
//    "rows": [{"kind": "latency", "from": "n1", "to": "n2", "flows": 1, "rtt_median_s": ...},
//             {"kind": "one_flow", "from": "n1", "to": "n2", "flows": 1, "bytes_per_s": ...},
//             {"kind": "incast", ..., "problem": "n2 is gone: the connection was closed"}, ...]}
#ifndef STEPCAST_DATA_IO_NETWORK_PROFILE_FILE_H_
#define STEPCAST_DATA_IO_NETWORK_PROFILE_FILE_H_

#include <string>

#include "data/record/network_profile.h"

namespace stepcast {

// Throws InputError for whatever is not such a file.
NetworkProfile ReadNetworkProfile(const std::string& path);
NetworkProfile ParseNetworkProfile(const std::string& text, const std::string& path);

// ParseNetworkProfile gives it back.
std::string FormatNetworkProfile(const NetworkProfile& profile);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_NETWORK_PROFILE_FILE_H_
