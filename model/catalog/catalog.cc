#include "model/catalog/catalog_impl.h"

namespace stepcast {

template std::vector<Model<double>> Catalog<double>();

}  // namespace stepcast
