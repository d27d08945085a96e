#include "model/sync/straggler.h"

#include "model/statistics/normal.h"

namespace stepcast {

double ExpectedLargest(int count) {
  return count <= 1 ? 0.0 : NormalQuantile((count - 0.375) / (count + 0.25));
}

}  // namespace stepcast
