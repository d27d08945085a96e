// stepcast import pcap: the traffic of a training as it was, beside what the model counts.
#ifndef STEPCAST_PREDICTOR_CLI_IMPORT_PCAP_H_
#define STEPCAST_PREDICTOR_CLI_IMPORT_PCAP_H_

#include <string>
#include <vector>

#include "predictor/cli/command.h"

namespace stepcast::cli {

int ImportTraffic(const Arguments& args, const std::vector<std::string>& files);

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_IMPORT_PCAP_H_
