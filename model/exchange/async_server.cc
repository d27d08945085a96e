// Parameter servers that workers exchange with each at its own pace.
#include "model/exchange/async_server.h"

#include <string>
#include <utility>

#include "model/exchange/exchange.h"
#include "model/exchange/growth.h"
#include "model/exchange/server_terms.h"
#include "model/sync/straggler.h"

namespace stepcast {
namespace {

class CycleTerms : public internal::ServerTerms {
 public:
  using ServerTerms::ServerTerms;

  void Cycle() const {
    const ServerPaths<double>& paths = terms.servers;
    const internal::AsyncDemands<double> demands =
        internal::MakeAsyncDemands(paths, facts.gradient);
    const internal::AsyncNetwork<double> network = internal::MakeAsyncNetwork(
        paths, demands,
        internal::WorkOf(facts, terms.micro, terms.backward, terms.overhead,
                         workload.straggler_spread(), Barrier()));
    const internal::AsyncState<double> state = internal::Analyse(network, facts.workers);
    const OneUpdate one = Demands(demands, network);
    const NamedValue think = Think(demands, network, state, one);
    const bool exact = facts.workers <= kExactCustomers;
    // Whether workers ever do all at once, and whether they wait for that.
    const bool waits = terms.async.together > 0 && Barrier().si() > 0;
    const bool at_once = waits || network.at_once < state.cycle;
    const NamedValue queues = TimeValue(at_once ? "C_q" : "C", state.cycle);
    to.Add(at_once ? "a worker's cycle by the queues" : "a worker's cycle",
           "collective/async_parameter_server", 5,
           {exact ? "Z + sum of R_i(w), R_i(j) = D_i (1 + Q_i(j-1)), "
                    "Q_i(j) = j R_i(j)/(Z + sum of R_i(j)), Q_i(0) = 0, D_i = D, D_u, D"
                  : "Z + Q_in + Q_u + Q_out",
            exact ? TermInputs{think, one.at_link, one.at_update, to.WorkerCount()}
                  : TermInputs{think, TimeValue("Q_in", state.residence[internal::kInbound]),
                               TimeValue("Q_u", state.residence[internal::kUpdateStation]),
                               TimeValue("Q_out", state.residence[internal::kOutbound],
                                         "outbound queue and service")}},
           queues);
    if (at_once) BesideAllAtOnce(network, one, queues, waits);
  }

  // What one update takes of the servers, of a worker's link, and beside both.
  struct OneUpdate {
    NamedValue at_link;    // of the fullest server, each way
    NamedValue at_update;  // of the model
    NamedValue own;        // on the worker's link
    NamedValue beside;
  };
  OneUpdate Demands(const internal::AsyncDemands<double>& demands,
                    const internal::AsyncNetwork<double>& network) const {
    const ServerPaths<double>& paths = terms.servers;
    const NamedValue hop = RateValue("B_hop", terms.node_hop.bandwidth);
    const NamedValue d_link = TimeValue("D", network.demand[internal::kInbound]);
    FormulaText link;
    if (facts.server.colocated) {
      link = {"max(m (s_l v + g f)/(w B_hop), s m/P + c_x)",
              {to.Gradient(), LinkShare(),
               PlainValue("v", paths.remote_workers(), "workers on other nodes"),
               to.DevicesOfNode(), LeavesNode(), to.WorkerCount(), hop}};
    } else {
      link = {"max(s m/B_s, s m/P + c_x)",
              {to.Gradient(), RateValue("B_s", paths.server_bandwidth)}};
    }
    link.Add("", {FullestShare(), Handled(), Initiation()});
    to.Add("one update at the fullest server, each way", "", 5, std::move(link), d_link);
    const NamedValue d_update = TimeValue("D_u", network.demand[internal::kUpdateStation]);
    to.Add("its update of the model", "", 7, {"s u", {FullestShare(), Update()}}, d_update);
    const NamedValue own = TimeValue("D_w", demands.own_link);
    to.Add("one update on a worker's link, each way", "", 5,
           {"m f/B_hop", {to.Gradient(), LeavesNode(), hop}}, own);
    const NamedValue rest = TimeValue("y", network.push_rest);
    FormulaText beside{"alpha (1 + 2 rho k) + (n-1) c_x + max(0, D_w - D)", PhaseLatencyInputs()};
    beside.Add("", {ServerCount(), Initiation(), own, d_link});
    if (paths.connection.si() > 0) {
      beside.formula = "alpha (1 + 2 rho k) + (n-1) c_x + max(0, D_w - D, m s c - D)";
      beside.Add("", {to.Gradient(), FullestShare(), Connection()});
    }
    to.Add("messages and link beside the servers, each way", "", 5, std::move(beside), rest);
    return {d_link, d_update, own, rest};
  }

  // The time that a worker is elsewhere.
  NamedValue Think(const internal::AsyncDemands<double>& demands,
                   const internal::AsyncNetwork<double>& network,
                   const internal::AsyncState<double>& state, const OneUpdate& one) const {
    // The bucket that ends last, as the queues are.
    const Duration<> at_in = state.residence[internal::kInbound];
    const Duration<> at_update = state.residence[internal::kUpdateStation];
    const Duration<> push = network.push_rest + at_in + at_update;
    internal::OverlapLines::Line last;
    Duration<> end;
    for (const internal::OverlapLines::Line& line : network.lines) {
      const Duration<> at = network.backward * line.ready + push * line.suffix;
      if (at < end) continue;
      end = at;
      last = line;
    }
    const NamedValue think = TimeValue("Z", network.Think(state.residence));
    FormulaText not_there{
        "t_f + r t_b + q (y + Q_in + Q_u) + y - Q_in - Q_u",
        {TimeValue("t_f", network.forward, "forward pass, micro-steps before and the fixed cost"),
         PlainValue("r", last.ready, "share of it before the last buckets leave"),
         TimeValue("t_b", network.backward, "backward pass"),
         PlainValue("q", last.suffix, "their share of the bytes"), one.beside,
         TimeValue("Q_in", at_in, "inbound queue and service"),
         TimeValue("Q_u", at_update, "update queue and service")}};
    if (network.at_own_link.si() > 0) {
      const NamedValue shared =
          NodeCycle(internal::ShareOwnLink(terms.servers, demands, network), one.own);
      not_there.formula =
          "max(t_f + r t_b + q (y + Q_in + Q_u) + y + Q_out, C_g) - Q_in - Q_u - Q_out";
      not_there.Add("", {TimeValue("Q_out", state.residence[internal::kOutbound],
                                   "outbound queue and service"),
                         shared});
    }
    to.Add("time that a worker is not at the servers", "", 5, std::move(not_there), think);
    return think;
  }

  // The cycle where workers also do all at once.
  void BesideAllAtOnce(const internal::AsyncNetwork<double>& network, const OneUpdate& one,
                       const NamedValue& queues, bool waits) const {
    const NamedValue all = AllAtOnce(network, one.own, one.at_update);
    const NamedValue cycle = TimeValue("C", terms.async.cycle - terms.async.input_wait);
    const NamedValue free = waits ? TimeValue("C_f", terms.async.unbounded) : cycle;
    to.Add(waits ? "a worker's cycle that never waits" : "a worker's cycle", "", 5,
           {"min(C_q, C_0)", {queues, all}}, free);
    if (!waits) return;
    const NamedValue barrier = TimeValue("W", Barrier(), "wait of a synchronous step");
    const NamedValue share = PlainValue("f", terms.async.together);
    to.Add("share of the cycles that end as a synchronous step does", "", 6,
           {"W/(W + s C_f)",
            {barrier, PlainValue("s", *facts.server.staleness_bound, "staleness bound"), free}},
           share);
    to.Add("a worker's cycle", "", 6, {"C_f + f (C_0 - C_f) + f W", {free, share, all, barrier}},
           cycle);
  }

  // The wait of a synchronous step for the slowest worker.
  Duration<> Barrier() const {
    return StragglerWait(terms.micro, workload.straggler_spread(), facts.accumulation_steps,
                         facts.workers);
  }

  // The cycle of workers who all push and all pull at the same time.
  NamedValue AllAtOnce(const internal::AsyncNetwork<double>& network, const NamedValue& own,
                       const NamedValue& update) const {
    const ServerPaths<double>& paths = terms.servers;
    const std::string link = facts.server.colocated ? "m s_l v/B_hop" : "m s w/B_s";
    FormulaText text{"alpha (1 + 2 rho k) + (n-1) c_x + max(" + link + ", w (s m/P + c_x), g D_w",
                     PhaseLatencyInputs()};
    text.Add("", {ServerCount(), Initiation(), to.Gradient(), FullestShare(), Handled(),
                  to.WorkerCount(), to.DevicesOfNode(), own});
    if (facts.server.colocated) {
      text.Add("", {LinkShare(), PlainValue("v", paths.remote_workers(), "workers on other nodes"),
                    RateValue("B_hop", terms.node_hop.bandwidth)});
    } else {
      text.Add("", {RateValue("B_s", paths.server_bandwidth)});
    }
    if (paths.connection.si() > 0) text.Add(", m s c", {Connection()});
    text.formula += ")";
    const NamedValue phase = TimeValue("y_0", network.phase);
    to.Add("one phase of all workers at once", "", 5, std::move(text), phase);
    const auto push = network.phase + network.demand[internal::kUpdateStation] * facts.workers;
    const internal::OverlapLines::Line* const last =
        network.lines.Highest(network.backward, push, network.lines.begin());
    const NamedValue result = TimeValue("C_0", network.at_once);
    to.Add(
        "cycle of workers who exchange at the same time", "", 5,
        {"t_f + r t_b + q (y_0 + w D_u) + y_0",
         {TimeValue("t_f", network.forward, "forward pass, micro-steps before and the fixed cost"),
          PlainValue("r", last->ready, "share of it before the last buckets leave"),
          TimeValue("t_b", network.backward, "backward pass"),
          PlainValue("q", last->suffix, "their share of the bytes"), phase, to.WorkerCount(),
          update}},
        result);
    return result;
  }

  // The cycle with the other workers of a node alone, who share its link.
  NamedValue NodeCycle(const internal::SharedLink<double>& shared, const NamedValue& own) const {
    const NamedValue result = TimeValue("C_g", shared.cycle);
    to.Add(
        "cycle of the workers of one node, who share its link", "", 5,
        {"(z + sqrt(z^2 - 4 (g-1) D_w A))/2, z = A + (g + q) D_w",
         {TimeValue("A", shared.beside, "what a cycle has beside its transfers"),
          to.DevicesOfNode(),
          PlainValue("q", shared.suffix, "share of the push that the backward pass does not hide"),
          own}},
        result);
    return result;
  }

  void Parts() const {
    const bool waits = step.straggler_wait.si() > 0;
    std::string rest = std::string("C - ") + (waits ? "x - " : "") + "o - a t";
    TermInputs inputs{TimeValue("C", terms.async.cycle - terms.async.input_wait),
                      to.Overhead(),
                      PlainValue("a", facts.accumulation_steps, "micro-steps"),
                      TimeValue("t", terms.micro),
                      TimeValue("alpha", terms.node_hop.alpha),
                      ServerCount(),
                      Initiation()};
    if (waits) inputs.push_back(TimeValue("x", step.straggler_wait, "wait for the slowest"));
    if (terms.async.slow_updates > 0) {
      const FormulaText mean = to.MeanPace();
      rest += mean.formula;
      inputs.insert(inputs.end(), mean.inputs.begin(), mean.inputs.end());
    }
    to.Part("exposed transfer", "", 5, {"max(0, " + rest + " - 2 (alpha + n c_x))", inputs},
            step.exposed_transfer);
    to.Part("exposed latency", "", 5, {"min(" + rest + ", 2 (alpha + n c_x)) + o", inputs},
            step.exposed_latency);
  }
};

class AsynchronousServerExchange final : public Exchange {
 public:
  Traffic CountTraffic(const Plan& plan, DataSize<> gradient, DataSize<> shard) const override {
    return {2.0 * plan.servers, gradient, shard, gradient * 2.0, shard, shard};
  }

  // A cycle is no S(w): see async_server_limits.h.
  SyncGrowth<double> Growth(const GrowthQuestion& /*question*/) const override { return {}; }

  void ExplainHops(Explainer* explainer) const override { CycleTerms(explainer).AddHops(); }
  void Explain(Explainer* explainer) const override { CycleTerms(explainer).Cycle(); }
  void ExplainParts(Explainer* explainer) const override { CycleTerms(explainer).Parts(); }
  FormulaText ExplainCalls(Explainer* /*explainer*/) const override { return {}; }
};

}  // namespace

const Exchange& AsyncServerExchange() {
  static const AsynchronousServerExchange exchange;
  return exchange;
}

}  // namespace stepcast
