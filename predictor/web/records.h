// Clusters, workloads and devices as bytes: what the program gives to a page that it writes. Both
// are of one build, so that there is one version, and neither a parser nor a loss of digits.
#ifndef STEPCAST_PREDICTOR_WEB_RECORDS_H_
#define STEPCAST_PREDICTOR_WEB_RECORDS_H_

#include <string>
#include <string_view>

#include "predictor/serve/service.h"

namespace stepcast::web {

std::string WriteRecords(const serve::Inventory& inventory);
// Throws InputError for bytes that WriteRecords of this build has not written.
serve::Inventory ReadRecords(std::string_view bytes);

}  // namespace stepcast::web

#endif  // STEPCAST_PREDICTOR_WEB_RECORDS_H_
