// The catalogue as its tests go through it.
#ifndef STEPCAST_TESTS_MODEL_ENTRIES_H_
#define STEPCAST_TESTS_MODEL_ENTRIES_H_

#include <vector>

#include "model/catalog/catalog.h"

namespace stepcast {

// Made once for a process: ctest runs each test in one, which first names all of them.
inline const std::vector<Model<double>>& Entries() {
  static const std::vector<Model<double>> entries = Catalog<double>();
  return entries;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_ENTRIES_H_
