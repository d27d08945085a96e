// All that a plan says, by name: one list for what tells two plans apart and for what is written and
// read again. Quantities are in SI units, so that they come back bit by bit.
#ifndef STEPCAST_PREDICTOR_ONLINE_PLAN_TEXT_H_
#define STEPCAST_PREDICTOR_ONLINE_PLAN_TEXT_H_

#include <string>

#include "data/record/plan.h"

namespace stepcast::internal {

// Calls visit(name, value) for each part of a plan, const or not.
template <class SomePlan, class Visitor>
void VisitPlan(SomePlan& plan, const Visitor& visit) {
  visit("placement", plan.placement);
  visit("hosts", plan.hosts);
  visit("strategy", plan.strategy);
  visit("servers", plan.servers);
  visit("local_batch", plan.local_batch);
  visit("accumulation_steps", plan.accumulation_steps);
  visit("bucket_bytes", plan.bucket);
  visit("overlap", plan.overlap);
  visit("backup_workers", plan.backup_workers);
  visit("colocated_servers", plan.server.colocated);
  visit("sharding", plan.server.sharding);
  visit("pipelined_servers", plan.server.pipelined);
  visit("multicast", plan.server.multicast);
  visit("in_network_aggregation", plan.server.in_network_aggregation);
  visit("staleness_bound", plan.server.staleness_bound);
  visit("link_bytes_per_s", plan.link.bandwidth);
  visit("rtt_s", plan.link.rtt);
  visit("loss_rate", plan.link.loss);
  visit("congestion_control", plan.link.congestion_control);
  visit("loss_burst_s", plan.link.loss_burst);
  visit("server_link_bytes_per_s", plan.server_link.bandwidth);
  visit("server_rtt_s", plan.server_link.rtt);
  visit("server_loss_rate", plan.server_link.loss);
  visit("server_congestion_control", plan.server_link.congestion_control);
  visit("server_loss_burst_s", plan.server_link.loss_burst);
}

// Equal texts, equal plans; for a table, not for people. Overwrites `key`.
void WriteKey(const Plan& plan, std::string* key);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_ONLINE_PLAN_TEXT_H_
