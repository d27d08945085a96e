// Parameter servers that all workers push to and pull from in each step.
#include "model/exchange/parameter_server.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "model/exchange/exchange.h"
#include "model/exchange/parameter_server_limits.h"
#include "model/exchange/server_terms.h"

namespace stepcast {
namespace {

class SyncTerms : public internal::ServerTerms {
 public:
  using ServerTerms::ServerTerms;

  // One phase of a bucket: its two terms, whose symbols begin with `letter`.
  TermInputs Phase(const std::string& name, const std::string& letter, const SyncCost<double>& cost,
                   bool merged, bool update) {
    const char* const id = Id();
    const ServerPaths<double>& paths = terms.servers;
    const double copies = paths.copies(merged);
    const bool network_helps = merged && copies > 0;
    const NamedValue handled = PlainValue("w_s", paths.handled(merged),
                                          network_helps ? "transfers, network helps" : Clients());
    const std::string call_symbol = letter + "_call";
    const std::string byte_symbol = letter + "_byte";
    const NamedValue call = TimeValue(call_symbol.c_str(), cost.per_call);
    const NamedValue byte = PerByteValue(byte_symbol.c_str(), cost.per_byte);
    to.Add(name + " of one bucket, its calls", id, 5,
           {"c_x max(n, w_s)", {Initiation(), ServerCount(), handled}}, call);
    const NamedValue on_link = PlainValue("v", copies, "copies that cross a server's link");
    FormulaText bytes;
    if (facts.server.colocated) {
      bytes = {"max(g f/B_hop, s_l v/B_hop, s w_s/P)",
               {ClientsOfNode(), LeavesNode(), RateValue("B_hop", terms.node_hop.bandwidth),
                LinkShare(), on_link, FullestShare(), handled, Handled()}};
    } else {
      bytes = {"max(g/B_hop, s v/B_s, s w_s/P)",
               {ClientsOfNode(), RateValue("B_hop", terms.node_hop.bandwidth), FullestShare(),
                on_link, RateValue("B_s", paths.server_bandwidth), handled, Handled()}};
    }
    if (paths.connection.si() > 0) {
      bytes.formula = "||" + bytes.formula;
      bytes.Add(", s c||_4", {Connection()});
    }
    if (update) bytes.Add(" + s u/m", {Update(), to.Gradient()});
    to.Add(name + " of one bucket, per byte", id, 5, std::move(bytes), byte);
    return {call, byte};
  }

  FormulaText Calls() {
    const ServerOptions& options = facts.server;
    FormulaText text{
        "K (p_call + q_call) + 2 l + (p_byte + q_byte) m",
        {PlainValue("K", static_cast<double>(facts.buckets->size()), "buckets"), to.Gradient()}};
    text.Add("", Phase("push", "p", terms.phases.push, options.in_network_aggregation, true));
    text.Add("", Phase("pull", "q", terms.phases.pull, options.multicast, false));
    const NamedValue latency = TimeValue("l", PhaseLatency(terms.servers));
    to.Add("latency of a phase", Id(), 5, {"alpha (1 + 2 rho k)", PhaseLatencyInputs()}, latency);
    text.Add("", {latency});
    return text;
  }

 private:
  const char* Id() const {
    const ServerOptions& options = facts.server;
    if (options.colocated) return "collective/parameter_server_colocated";
    if (options.multicast && options.in_network_aggregation) {
      return "collective/parameter_server_both";
    }
    if (options.multicast) return "collective/parameter_server_multicast";
    if (options.in_network_aggregation) return "collective/parameter_server_aggregation";
    return "collective/parameter_server";
  }
};

class SynchronousServerExchange final : public Exchange {
 public:
  Traffic CountTraffic(const Plan& plan, DataSize<> gradient, DataSize<> shard) const override {
    const bool by_node = plan.server.local_aggregation;
    const double w = by_node ? plan.nodes() : plan.workers();
    const double n = plan.servers;
    // Workers at hand of each server: of all together and of the one with fewest, which serves most
    // over the wire; and the servers with workers elsewhere, which are all but a lone node's.
    double at_hand = 0;
    double fewest = 0;
    double stays = 0;  // share of a worker's bytes, where fewest of the servers are at hand
    double serving = n;
    if (plan.server.colocated) {
      const auto nodes = static_cast<double>(plan.nodes());
      fewest = w;
      for (int server = 0; server < plan.servers; ++server) {
        const auto node = static_cast<std::size_t>(server % plan.nodes());
        const int workers = by_node ? 1 : plan.placement[node];
        at_hand += workers;
        fewest = std::min<double>(fewest, workers);
      }
      stays = std::floor(n / nodes) / n;
      if (plan.nodes() == 1) serving = 0;
    }
    const auto phase = [&](bool merged, DataSize<>* server) {
      *server = shard * (merged ? std::min(1.0, w - fewest) : w - fewest);
      return gradient * (merged ? serving / n : w - at_hand / n);
    };
    DataSize<> in;
    DataSize<> out;
    Traffic traffic;
    traffic.total =
        phase(plan.server.in_network_aggregation, &in) + phase(plan.server.multicast, &out);
    traffic.transfers = (n * w - at_hand) + (plan.server.multicast ? serving : n * w - at_hand);
    traffic.per_worker = gradient * (1 - stays);
    traffic.server_in = in;
    traffic.server_out = out;
    traffic.per_server = Max(in, out);
    return traffic;
  }

  SyncGrowth<double> Growth(const GrowthQuestion& q) const override {
    SyncGrowth<double> growth = WithoutLatencies(q);
    if (!q.terms.servers.alone()) growth.time.fixed += PhaseLatency(q.terms.servers) * 2.0;
    return growth;
  }

  CallPaces Paces(const GrowthQuestion& q) const override {
    if (!q.plan.server.pipelined) return Exchange::Paces(q);
    // The slower phase sets the pace.
    const SyncCost<double>& push = q.terms.phases.push;
    const SyncCost<double>& pull = q.terms.phases.pull;
    const SyncCost<double>& slower = pull.Time(q.bytes) < push.Time(q.bytes) ? push : pull;
    return {slower, slower};
  }

  void ExplainHops(Explainer* explainer) const override { SyncTerms(explainer).AddHops(); }

  void Explain(Explainer* explainer) const override { explainer->Synchronisation(*this, 5); }

  FormulaText ExplainCalls(Explainer* explainer) const override {
    return SyncTerms(explainer).Calls();
  }

  void ExplainSlowStart(Explainer* explainer, FormulaText* whole) const override {
    const StepFacts& facts = explainer->facts();
    const StepTerms<double>& terms = explainer->terms();
    const double passes = terms.servers.worker_passes();
    const DataSize<> first =
        Max(facts.buckets->front().bytes, facts.held_buckets->front().bytes / terms.phases.share);
    const auto phase = [&](const char* name, const char* symbol, const SyncCost<double>& cost) {
      return explainer->SlowStart(name, symbol, facts.servers, passes, cost.per_byte, first);
    };
    whole->Add(" + x_p + x_q", {phase("slow start of the push", "x_p", terms.phases.push),
                                phase("slow start of the pull", "x_q", terms.phases.pull)});
  }

 private:
  // All buckets of a phase wait for its latency together.
  static SyncGrowth<double> WithoutLatencies(const GrowthQuestion& q) {
    const ServerPaths<double> paths = WithoutLatency(PathsOfLaws(q.terms.servers));
    const auto of = [&](const CostGrowth<double>& growth) {
      const bool by_node = q.plan.server.local_aggregation;
      return (by_node ? OverNodes(growth, q.devices_per_node) : growth).Of(q.bytes, q.calls());
    };
    // Where more servers leave the fullest one as it is, they are as good as a fixed number.
    if (q.server_on_every_node && paths.share() * paths.servers <= kEvenShare) {
      return of(ColocatedServerGrowth(paths));
    }
    const bool pipelined = q.plan.server.pipelined && q.plan.overlap == Overlap::kBuckets;
    if (!pipelined || paths.colocated) return of(ServerGrowth(paths));
    DataSize<> largest;
    for (const Bucket& bucket : q.buckets) largest = Max(largest, bucket.bytes);
    return of(ServerGrowth(paths, 1 / q.calls(), largest / q.bytes));
  }

  // Shares up to so many times the equal one count as equal.
  static constexpr double kEvenShare = 2;
};

}  // namespace

const Exchange& ServerExchange() {
  static const SynchronousServerExchange exchange;
  return exchange;
}

}  // namespace stepcast
