// Arrays of queries in parts, each with its memory of placements.
#ifndef STEPCAST_PREDICTOR_COMPILED_QUERY_PARTS_H_
#define STEPCAST_PREDICTOR_COMPILED_QUERY_PARTS_H_

#include <cstddef>
#include <memory>
#include <new>

#include "model/numeric/run_parts.h"
#include "predictor/compiled/exchange.h"
#include "predictor/compiled_plan.h"

namespace stepcast::internal {

// Calls work(part, begin, end, cache) for the parts into which `size` queries are shared out among
// up to `threads` threads; CompiledPlan::PredictPart takes the cache. That of one part alone is on
// the caller's stack. Threads may have less than it takes (128 kB of musl's): those of more parts
// are on the heap, and where there is no memory for them there is one part.
template <class Work>
void ShareOutQueries(std::size_t size, int threads, const Work& work) {
  const std::size_t parts = PartCount(size, kQueriesOfAThread, threads);
  const std::unique_ptr<ExchangeCache[]> caches(parts > 1 ? new (std::nothrow) ExchangeCache[parts]
                                                          : nullptr);
  if (!caches) {
    ExchangeCache cache;
    work(std::size_t{0}, std::size_t{0}, size, &cache);
    return;
  }
  ShareOut(size, parts, threads, [&](std::size_t part, std::size_t begin, std::size_t end) {
    work(part, begin, end, &caches[part]);
  });
}

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_QUERY_PARTS_H_
