// What `explain` prints of parameter servers, synchronous or not: the values that their formulas
// take, and their links.
#ifndef STEPCAST_MODEL_EXCHANGE_SERVER_TERMS_H_
#define STEPCAST_MODEL_EXCHANGE_SERVER_TERMS_H_

#include <utility>

#include "model/exchange/parameter_server.h"
#include "model/exchange/server_step.h"
#include "model/step/explainer.h"

namespace stepcast::internal {

struct ServerTerms {
  explicit ServerTerms(Explainer* explainer)
      : to(*explainer),
        facts(to.facts()),
        cluster(to.cluster()),
        workload(to.workload()),
        terms(to.terms()),
        step(to.step()) {}

  Explainer& to;
  const StepFacts& facts;
  const ClusterParameters<double>& cluster;
  const WorkloadParameters<double>& workload;
  const StepTerms<double>& terms;
  const StepTime<double>& step;

  NamedValue ServerCount() const { return PlainValue("n", facts.servers, "servers"); }
  NamedValue FullestShare() const {
    return PlainValue("s", terms.servers.share(), "share of the fullest server");
  }
  NamedValue Initiation() const {
    return TimeValue("c_x", cluster.transfer_initiation(), "transfer_initiation");
  }
  NamedValue Handled() const { return ByteRateValue("P", cluster.server_rate(), "server_rate"); }
  NamedValue Connection() const { return PerByteValue("c", terms.servers.connection); }
  NamedValue Update() const {
    const double sharing = UpdateSharing(facts, cluster.host_contention());
    return TimeValue("u", workload.update_time() * sharing,
                     sharing > 1 ? "update_time, beside the workers of the node" : "update_time");
  }
  // Those who exchange with servers.
  const char* Clients() const { return facts.server.local_aggregation ? "nodes" : "workers"; }
  NamedValue ClientsOfNode() const {
    return PlainValue("g", terms.servers.workers_per_node, "exchanges of the fullest node");
  }
  NamedValue LeavesNode() const {
    return PlainValue("f", terms.servers.worker_passes() / terms.servers.workers_per_node,
                      terms.servers.added_up > 1 ? "share of bytes that leave their device"
                                                 : "share of bytes that leave their node");
  }
  // The share of the model behind a server's link; colocated servers may share one.
  NamedValue LinkShare() const {
    return PlainValue("s_l", terms.servers.link_share(), "share of the fullest link");
  }
  TermInputs PhaseLatencyInputs() const {
    return {TimeValue("alpha", terms.node_hop.alpha),
            PlainValue("rho", cluster.rpc_rounds(), "rpc_rounds"),
            PlainValue("k", facts.tensors, "tensors")};
  }

  // The links of servers, and a connection to one.
  void AddHops() const {
    if (!facts.server.colocated) {
      to.PathRateTerm("rate of a server's link", "B_s", 5, terms.server_path,
                      PlainValue("w", terms.servers.workers, Clients()));
    }
    if (terms.servers.connection.si() > 0) {
      const PathTerms<double>& path = terms.server_path;
      FormulaText text;
      if (path.limits.window.si() > 0) text = to.WindowText(path);
      if (path.limits.loss.si() > 0) {
        text.formula = "max(" + text.formula + ", t_loss)";
        text.inputs.push_back(Explainer::LossLimit(path));
      }
      if (path.path.loss > 0) text.Add(" / (1 - p)", {PlainValue("p", path.path.loss, "loss")});
      to.Add("a connection between a worker and a server", "network/connection", 5, std::move(text),
             Connection());
    }
  }
};

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_EXCHANGE_SERVER_TERMS_H_
