// The entries of the catalogue, for any scalar, in the order in which data flows.
#ifndef STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_
#define STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_

#include <vector>

#include "model/catalog/catalog.h"
#include "model/catalog/collective_entries.h"
#include "model/catalog/compute_entries.h"
#include "model/catalog/limits_entries.h"
#include "model/catalog/network_entries.h"
#include "model/catalog/overlap_entries.h"
#include "model/catalog/server_entries.h"
#include "model/catalog/statistics_entries.h"
#include "model/catalog/step_entries.h"

namespace stepcast {

template <class T>
std::vector<Model<T>> Catalog() {
  std::vector<Model<T>> models;
  internal::AddComputeEntries(&models);
  internal::AddNetworkEntries(&models);
  internal::AddCollectiveEntries(&models);
  internal::AddServerEntries(&models);
  internal::AddOverlapEntries(&models);
  internal::AddStatisticsEntries(&models);
  internal::AddStepEntries(&models);
  internal::AddLimitsEntries(&models);
  return models;
}

}  // namespace stepcast

#endif  // STEPCAST_MODEL_CATALOG_CATALOG_IMPL_H_
