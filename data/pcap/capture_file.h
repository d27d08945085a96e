// Reads a capture packet by packet, in the memory that one packet takes: pcap and pcapng, by
// libpcap.
#ifndef STEPCAST_DATA_PCAP_CAPTURE_FILE_H_
#define STEPCAST_DATA_PCAP_CAPTURE_FILE_H_

#include <functional>
#include <string>

#include "data/pcap/captured_traffic.h"
#include "data/pcap/packet.h"

namespace stepcast::pcap {

// Calls `take` for each packet of TCP or UDP that passes `filter`, an expression of tcpdump ("" for
// all), and counts all others. A file that ends within a packet is read up to there. Throws
// InputError, which names the file, and the packet where there is one, for whatever is no capture.
Capture ReadCapture(const std::string& path, const std::string& filter,
                    const std::function<void(const Packet&)>& take);

}  // namespace stepcast::pcap

#endif  // STEPCAST_DATA_PCAP_CAPTURE_FILE_H_
