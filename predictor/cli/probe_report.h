// What `stepcast probe` says of a measured network, and what it makes of it for a cluster file.
#ifndef STEPCAST_PREDICTOR_CLI_PROBE_REPORT_H_
#define STEPCAST_PREDICTOR_CLI_PROBE_REPORT_H_

#include <string>
#include <vector>

#include "data/record/machine.h"
#include "data/record/network_profile.h"
#include "microbench/network/findings.h"
#include "predictor/json/json.h"
#include "predictor/report/html_page.h"
#include "predictor/report/terminal.h"

namespace stepcast::cli {

std::string NetworkTitle(const NetworkProfile& profile);
// A row for each host, and what its columns mean.
Table LinksTable(const NetworkProfile& profile, const network::NetworkSummary& summary);
inline constexpr const char* kLinksMean =
    "Payload of TCP. sends, receives: with the best peer; both ways: the sum, at once; to two: "
    "the sum to two peers at once; from all: the sum while all others send; loss: of packets "
    "sent at four fifths of the rate, as far as they are many enough.";
// What each host carries to each other one, and how far it is.
HeatMap RatesOfPairs(const NetworkProfile& profile);
HeatMap RoundTripsOfPairs(const NetworkProfile& profile);
// What is slower than its like, what could not be measured, and that there is neither.
std::vector<std::string> FindingTexts(const NetworkProfile& profile,
                                      const network::NetworkSummary& summary);
std::vector<std::string> MissingTexts(const NetworkProfile& profile);
std::vector<std::string> SoundTexts(const NetworkProfile& profile,
                                    const network::NetworkSummary& summary);

// Links, findings and what is missing; with `pairs` a table of rates and one of round trips, too.
std::string NetworkText(const NetworkProfile& profile, const network::NetworkSummary& summary,
                        bool pairs, const Style& style);
Json NetworkJson(const NetworkProfile& profile, const network::NetworkSummary& summary);

// The cluster with its links as measured. A forecast takes the share of a line rate that headers
// leave: line rates are stated such that this is what was measured. Fields of a host are stated
// where it differs from the others; what one flow carries, where that is less than several do, is
// stated as the parameter flow_bandwidth. An earlier calibration, of other links, is left out.
// Throws InputError where the file says that bytes go by RDMA, which was not measured.
Cluster WithMeasuredLinks(Cluster cluster, const NetworkProfile& profile,
                          const network::NetworkSummary& summary, const std::string& place);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_PROBE_REPORT_H_
