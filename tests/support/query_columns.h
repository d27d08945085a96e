// Queries of a compiled plan as arrays.
#ifndef STEPCAST_TESTS_SUPPORT_QUERY_COLUMNS_H_
#define STEPCAST_TESTS_SUPPORT_QUERY_COLUMNS_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "predictor/compiled_plan.h"

namespace stepcast {

struct QueryColumns {
  std::vector<int> workers, nodes, devices, servers, batches, accumulation;
  std::vector<double> bandwidth, rtt, loss;  // not a number where a query does not say

  QueryColumns() = default;
  explicit QueryColumns(const std::vector<PlanQuery>& queries) {
    for (const PlanQuery& query : queries) Add(query);
  }

  void Add(const PlanQuery& query) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    workers.push_back(query.workers);
    nodes.push_back(query.nodes);
    devices.push_back(query.devices_per_node);
    servers.push_back(query.servers);
    batches.push_back(query.local_batch);
    accumulation.push_back(query.accumulation_steps);
    bandwidth.push_back(query.link.bandwidth ? query.link.bandwidth->si() : kNone);
    rtt.push_back(query.link.rtt ? query.link.rtt->si() : kNone);
    loss.push_back(query.link.loss.value_or(kNone));
  }

  // `size` of them from `first` on.
  QueryArrays View(std::size_t first, std::size_t size, bool with_links = true) const {
    QueryArrays view{size};
    view.workers = workers.data() + first;
    view.nodes = nodes.data() + first;
    view.devices_per_node = devices.data() + first;
    view.servers = servers.data() + first;
    view.local_batch = batches.data() + first;
    view.accumulation_steps = accumulation.data() + first;
    if (with_links) {
      view.bandwidth_bytes_per_s = bandwidth.data() + first;
      view.rtt_s = rtt.data() + first;
      view.loss_rate = loss.data() + first;
    }
    return view;
  }
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_QUERY_COLUMNS_H_
