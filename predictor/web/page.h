// The page: one HTML file with the predictor in it, and with what it is asked about.
#ifndef STEPCAST_PREDICTOR_WEB_PAGE_H_
#define STEPCAST_PREDICTOR_WEB_PAGE_H_

#include <string>
#include <vector>

#include "predictor/serve/service.h"

namespace stepcast::web {

// What a command line calls the clusters and the workload files of an inventory, in its order.
struct Sources {
  std::vector<std::string> clusters;
  std::vector<std::string> workload_files;
};

std::string MakePage(const serve::Inventory& inventory, const Sources& sources);

}  // namespace stepcast::web

#endif  // STEPCAST_PREDICTOR_WEB_PAGE_H_
