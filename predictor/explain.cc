// Predictor::Explain.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/catalog/catalog.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

// What changes the step by less than this share when it doubles is left out.
constexpr double kLeastElasticity = 5e-4;

using Inputs = std::vector<NamedValue>;

NamedValue Time(const char* symbol, Duration<> t, const char* name = "") {
  const double seconds = t.in(kSeconds);
  const double size = std::abs(seconds);
  if (size > 0 && size < 1e-3) return {symbol, t.in(kMicroseconds), "us", name};
  if (size > 0 && size < 1) return {symbol, t.in(kMilliseconds), "ms", name};
  return {symbol, seconds, "s", name};
}
// Of a network, and of what the cluster's parameters count in bytes.
NamedValue Rate(const char* symbol, DataRate<> rate, const char* name = "") {
  return {symbol, rate.in(kGigabitsPerSecond), "Gbit/s", name};
}
NamedValue ByteRate(const char* symbol, DataRate<> rate, const char* name) {
  return {symbol, rate.si() * 1e-9, "GB/s", name};
}
NamedValue Size(const char* symbol, DataSize<> size, const char* name) {
  if (size.si() < 1e5) return {symbol, size.si(), "B", name};
  return {symbol, size.in(kMegabytes), "MB", name};
}
NamedValue Plain(const char* symbol, double value, const char* name = "") {
  return {symbol, value, "", name};
}
NamedValue PerByte(const char* symbol, DurationPerByte<double> time, const char* name = "") {
  return {symbol, time.si() * 1e9, "ns/B", name};
}

// A formula that grows by the parts that apply, with what they take.
struct Text {
  std::string formula;
  Inputs inputs;

  void Add(const std::string& part, const Inputs& with) {
    formula += part;
    inputs.insert(inputs.end(), with.begin(), with.end());
  }
};

// The page that derives what has no entry in the catalogue.
std::string Section(int number) {
  return "docs/explanation/step-model.md, section " + std::to_string(number);
}

// Each term is printed with the values that it was evaluated from. What the model keeps to itself
// (limits of a flow, the queues of a cycle) is asked of the model's own functions.
class TermList {
 public:
  TermList(const StepFacts& facts, const ClusterParameters<double>& cluster,
           const WorkloadParameters<double>& workload)
      : facts_(facts),
        cluster_(cluster),
        workload_(workload),
        step_(EvaluateStep(facts, cluster, workload, &terms_)) {}

  std::vector<ExplainedTerm> Make() {
    if (facts_.has_compute) MicroStep();
    const bool exchanges = step_.synchronisation.si() > 0;
    const bool async = facts_.strategy == Strategy::kPsAsync;
    if (exchanges) {
      Hops();
      if (async) {
        Cycle();
      } else {
        Synchronisation();
      }
    }
    Compute();
    if (exchanges && async) {
      AsynchronousExchange();
    } else if (exchanges) {
      Exchange();
    }
    Wait();
    return std::move(list_);
  }

 private:
  // `model` is the id of the catalogue's entry; where there is none, `section` has the formula.
  void Add(const std::string& name, const char* model, int section, Text text, NamedValue result) {
    ExplainedTerm term{name,
                       model,
                       std::move(text.formula),
                       Section(section),
                       std::move(text.inputs),
                       std::move(result)};
    for (const Model<double>& entry : catalog_) {
      if (term.model == entry.id) term.source = entry.source;
    }
    list_.push_back(std::move(term));
  }
  void Part(const char* name, const char* model, int section, Text text, Duration<> value) {
    if (!(value.si() > 0)) return;
    Add(name, model, section, std::move(text), Time("", value));
    list_.back().is_part = true;
    list_.back().share = value / step_.total();
  }

  // ---- Compute.

  void MicroStep() {
    Text text{"t_fixed + (t_floor^4 + (c b)^4)^(1/4)",
              {Time("t_fixed", workload_.fixed_time(), "fixed_time"),
               Time("t_floor", workload_.floor_time(), "floor_time"),
               Time("c", workload_.sample_time() * Samples(1.0), "sample_time"),
               Plain("b", facts_.batch, "batch")}};
    const bool shaped = facts_.compute_shape != 1;
    if (shaped || facts_.devices_per_node > 1) text.formula = "(" + text.formula + ")";
    if (shaped) {
      text.Add(" s_b", {Plain("s_b", facts_.compute_shape, "shape of the profile at this batch")});
    }
    if (facts_.devices_per_node > 1) {
      text.Add(" (1 + h (g-1))",
               {Plain("h", cluster_.host_contention(), "host_contention"), DevicesOfNode()});
    }
    Add("micro-step", "compute/fitted_curve", 1, std::move(text), Time("t", terms_.micro));
  }

  void Compute() {
    const NamedValue a = Plain("a", facts_.accumulation_steps, "micro-steps");
    const NamedValue phi = Plain("phi", cluster_.overlap_share(), "overlap_share");
    const NamedValue t = Time("t", terms_.micro);
    Part("forward pass", "", 1, {"a (1 - phi) t", {a, phi, t}}, step_.forward);
    Text backward{"a phi t", {a, phi, t}};
    const bool contention = terms_.contention.si() > 0;
    if (contention) {
      backward.Add(" + kappa min(S - o - X, phi t)",
                   {Plain("kappa", cluster_.overlap_contention(), "overlap_contention"),
                    Time("S", step_.synchronisation), Time("o", terms_.overhead, OverheadName()),
                    Time("X", not_hidden_)});
    }
    Part("backward pass", contention ? "overlap/contention" : "", contention ? 2 : 1,
         std::move(backward), step_.backward);
    Part("update", "", 7, {"u", {Time("u", workload_.update_time(), "update_time")}}, step_.update);
  }

  // ---- Hops.

  bool servers() const { return UsesServers(facts_.strategy); }
  NamedValue DevicesOfNode() const {
    return Plain("g", facts_.devices_per_node, "devices of the fullest node");
  }
  NamedValue NodeCount() const { return Plain("N", facts_.nodes, "nodes"); }
  NamedValue WorkerCount() const { return Plain("w", facts_.workers, "workers"); }
  NamedValue ServerCount() const { return Plain("n", facts_.servers, "servers"); }
  NamedValue LinkLatency() const {
    return Time("alpha_link", cluster_.link_latency(), "link_latency");
  }

  // The round trip as stated for what leaves a node.
  std::optional<Duration<>> RoundTrip() const {
    return (servers() ? internal::PathToServers(facts_) : internal::NodeLink(facts_)).rtt;
  }

  // R E/W: a window in each round trip, which loss makes longer.
  Text WindowText(const PathTerms<double>& terms) const {
    const Path<double>& path = terms.path;
    const bool stated = RoundTrip() && RoundTrip()->si() > 0;
    Text text;
    if (stated) text.Add("R", {Time("R", *RoundTrip(), "round trip")});
    if (path.loss > 0) {
      text.Add(stated ? " + 2 alpha_link" : "2 alpha_link", {LinkLatency()});
      if (stated) text.formula = "(" + text.formula + ")";
      text.Add(" E", {Plain("E", terms.limits.window * path.window / path.rtt,
                            "round trips until a window has arrived")});
    }
    text.Add("/W", {Size("W", path.window, "flow_window")});
    return text;
  }
  static NamedValue LossLimit(const PathTerms<double>& terms) {
    return PerByte("t_loss", terms.limits.loss, "time per byte that loss allows");
  }

  // Time per byte of a path to `peers` others: only what applies.
  Text PathText(const PathTerms<double>& terms, const NamedValue& peers) const {
    Text text{"||1/B_link, 1/(" + peers.symbol + " B_flow)||_4",
              {Rate("B_link", terms.path.bandwidth, "1448/1538 of the line rate"), peers,
               Rate("B_flow", cluster_.flow_bandwidth(), "flow_bandwidth")}};
    const std::string shared = terms.connections > 1 ? "/" + peers.symbol : "";
    if (terms.connections > 0 && terms.limits.window.si() > 0) {
      const Text window = WindowText(terms);
      text.formula = "|| " + text.formula;
      text.Add(
          ", " + window.formula + shared + "||_" + std::to_string(std::lround(terms.window_knee)),
          window.inputs);
    }
    if (terms.connections > 0 && terms.limits.loss.si() > 0) {
      text.formula = "|| " + text.formula;
      text.Add(", t_loss" + shared + "||_4", {LossLimit(terms)});
    }
    if (terms.path.loss > 0) text.Add(" / (1 - p)", {Plain("p", terms.path.loss, "loss")});
    return text;
  }

  void PathRateTerm(const char* name, const char* symbol, int section,
                    const PathTerms<double>& terms, const NamedValue& peers) {
    Text text = PathText(terms, peers);
    text.formula = "1 / (" + text.formula + ")";
    Add(name, "network/path", section, std::move(text), Rate(symbol, terms.rate));
  }

  void Hops() {
    const bool helpers = facts_.strategy == Strategy::kBytePs && facts_.servers > 0;
    if (facts_.nodes > 1 || servers()) {
      const PathTerms<double>& terms = terms_.node_path;
      const NamedValue path = PerByte("P", 1.0 / terms.rate);
      Add("path between nodes", "network/path", 3,
          PathText(terms,
                   servers() ? ServerCount() : Plain("peers", terms.peers, "neighbours of a node")),
          path);
      Text hop{"1 / ((P + 1/B_host)",
               {path, ByteRate("B_host", cluster_.host_bandwidth(), "host_bandwidth")}};
      if (facts_.devices_per_node > 1) {
        hop.Add(" (1 + d (g-1))",
                {Plain("d", cluster_.host_sharing(), "host_sharing"), DevicesOfNode()});
      }
      if (facts_.nodes > 1) {
        hop.Add(" (1 + s log2 N)",
                {Plain("s", cluster_.node_scaling(), "node_scaling"), NodeCount()});
      }
      hop.formula += ")";
      Add("rate of a hop between nodes", "network/hop_rate", 3, std::move(hop),
          Rate("B_hop", terms_.node_hop.bandwidth));
      Text latency{"alpha_link", {LinkLatency()}};
      if (RoundTrip()) latency.Add(" + R/2", {Time("R", *RoundTrip(), "round trip")});
      Add("latency of a hop between nodes", "network/hop_latency", 3, std::move(latency),
          Time("alpha", terms_.node_hop.alpha));
      if (helpers)
        PathRateTerm("rate of a helper's link", "B_h", 4, terms_.server_path, NodeCount());
    }
    if (servers() && !facts_.server.colocated) {
      PathRateTerm("rate of a server's link", "B_s", 5, terms_.server_path, WorkerCount());
    }
    if (servers() && terms_.servers.connection.si() > 0) {
      const PathTerms<double>& terms = terms_.server_path;
      Text text;
      if (terms.limits.window.si() > 0) text = WindowText(terms);
      if (terms.limits.loss.si() > 0) {
        text.formula = "max(" + text.formula + ", t_loss)";
        text.inputs.push_back(LossLimit(terms));
      }
      if (terms.path.loss > 0) text.Add(" / (1 - p)", {Plain("p", terms.path.loss, "loss")});
      Add("a connection between a worker and a server", "network/connection", 5, std::move(text),
          Connection());
    }
    if (!servers() && facts_.devices_per_node > 1) {
      Text latency{"alpha_device",
                   {Time("alpha_device", cluster_.device_latency(), "device_latency")}};
      if (facts_.device_rtt.si() > 0) {
        latency.Add(" + R/2", {Time("R", facts_.device_rtt, "round trip within a node")});
      }
      Add("latency of a hop within a node", "network/hop_latency", 3, std::move(latency),
          Time("alpha_i", terms_.device_hop.alpha));
    }
  }

  // ---- All-reduce.

  struct CallText {
    const char* model = "";
    Text per_call;
    Text per_byte;
  };

  CallText CollectiveText() const {
    const bool between = facts_.nodes > 1;
    const bool within = facts_.devices_per_node > 1;
    const NamedValue alpha = Time("alpha", terms_.node_hop.alpha);
    const NamedValue alpha_i = Time("alpha_i", terms_.device_hop.alpha);
    const NamedValue b_hop = Rate("B_hop", terms_.node_hop.bandwidth);
    const NamedValue b_host = ByteRate("B_host", terms_.device_hop.bandwidth, "host_bandwidth");
    const NamedValue w = WorkerCount();
    const NamedValue n = NodeCount();
    const NamedValue g = DevicesOfNode();
    const int used = std::min(facts_.devices_per_node, facts_.nics);
    const NamedValue cards = Plain("cards", used, "network cards in use");
    // Of one level the workers are the nodes, or the devices of the only node.
    const NamedValue& one = between ? alpha : alpha_i;
    const NamedValue& rate = between ? b_hop : b_host;
    const std::string over = " / " + rate.symbol;
    const auto power = [](int count) {
      return static_cast<int>(std::bit_floor(static_cast<unsigned>(count)));
    };
    const bool levels = between && within;
    switch (facts_.strategy) {
      case Strategy::kTree:
        if (levels) {
          return {
              "collective/tree_over_nodes",
              {"2 (g-1) alpha_i + 2 ceil(log2 N) alpha", {g, alpha_i, n, alpha}},
              {"max(min(2, N/2)/(cards B_hop), min(2, g-1)/B_host)", {n, cards, b_hop, g, b_host}}};
        }
        return {"collective/tree",
                {"2 ceil(log2 w) " + one.symbol, {w, one}},
                {"min(2, w/2)" + over, {w, rate}}};
      case Strategy::kHalvingDoubling: {
        const int count = levels ? facts_.nodes : facts_.workers;
        const bool odd = power(count) < count;
        const char* const name = "largest power of two among them";
        if (levels) {
          return {"collective/halving_doubling_over_nodes",
                  {"2 (g-1) alpha_i + 2 ceil(log2 N) alpha", {g, alpha_i, n, alpha}},
                  {std::string("2 (g-1)/g / B_host + ") +
                       (odd ? "(2 (N'-1)/N' + 2)" : "2 (N'-1)/N'") + " / (cards B_hop)",
                   {g, b_host, Plain("N'", power(count), name), cards, b_hop}}};
        }
        return {"collective/halving_doubling",
                {"2 ceil(log2 w) " + one.symbol, {w, one}},
                {(odd ? "(2 (w'-1)/w' + 2)" : "2 (w'-1)/w'") + over,
                 {Plain("w'", power(count), name), rate}}};
      }
      case Strategy::kHierarchical:
        if (!levels) break;
        return {used > 1 ? "collective/hierarchical_two_cards" : "collective/hierarchical",
                {"2 (g-1) alpha_i + 2 (N-1) alpha", {g, alpha_i, n, alpha}},
                {"2 (g-1)/g / B_host + 2 (N-1)/N / (cards B_hop)", {g, b_host, n, cards, b_hop}}};
      case Strategy::kBytePs: {
        if (!between) break;
        CallText text{"collective/byteps", {"2 alpha", {alpha}}, {}};
        if (facts_.servers > 0) {
          text.per_byte = {"(1 + (N-2) x) / (cards B_hop)",
                           {n, cards, b_hop, Plain("k", facts_.servers, "helpers"),
                            Rate("B_h", terms_.server_path.rate)}};
        } else {
          text.per_byte = {"2 (N-1)/N / (cards B_hop)", {n, cards, b_hop}};
        }
        if (within) {
          text.per_call.Add(" + 2 (g-1) alpha_i", {g, alpha_i});
          text.per_byte.Add(" + 2 (g-1)/g / B_host", {g, b_host});
        }
        if (facts_.servers > 0) {
          text.per_byte.formula +=
              ", x = (N - k')/(N^2 + k' (N-2)), k' = min(N, k B_h/(cards B_hop))";
        }
        return text;
      }
      default:
        if (!levels) break;
        return {
            "collective/flat_ring",
            {"h alpha + (2 (w-1) - h) alpha_i, h = 2 N - max(0, 3-g)", {alpha, w, alpha_i, n, g}},
            {"2 (w-1)/w max(1/(cards B_hop), 1/B_host)", {w, cards, b_hop, b_host}}};
    }
    return {
        "collective/ring", {"2 (w-1) " + one.symbol, {w, one}}, {"2 (w-1)/w" + over, {w, rate}}};
  }

  bool ring() const {
    return facts_.strategy == Strategy::kAllreduce || facts_.strategy == Strategy::kRing;
  }

  // Adds the terms of a call; returns what all calls and their bytes take.
  Text AllreduceCalls() {
    const double buckets = static_cast<double>(facts_.buckets->size());
    const NamedValue count = Plain("K", buckets, "buckets");
    const NamedValue bytes = Size("m", facts_.gradient, "gradient");
    const NamedValue per_byte = PerByte("per_byte", terms_.cost.per_byte);
    CallText text = CollectiveText();
    if (!ring()) {
      const NamedValue per_call = Time("per_call", terms_.cost.per_call);
      Add("cost of a call", text.model, 4, std::move(text.per_call), per_call);
      Add("time per byte", text.model, 4, std::move(text.per_byte), per_byte);
      return {"K per_call + per_byte m", {count, per_call, per_byte, bytes}};
    }
    const NodeShape shape{facts_.workers, facts_.nodes, facts_.devices_per_node, facts_.nics};
    const SyncCost<double> rounds =
        AllreduceCost(facts_.strategy, shape, terms_.node_hop, terms_.device_hop);
    const Duration<> slowest = facts_.nodes > 1 ? terms_.node_hop.alpha : terms_.device_hop.alpha;
    const NamedValue latency = Time("L", rounds.per_call);
    const NamedValue alpha = Time(facts_.nodes > 1 ? "alpha" : "alpha_i", slowest);
    Add("latency of all rounds", text.model, 4, std::move(text.per_call), latency);
    Add("time per byte", text.model, 4, std::move(text.per_byte), per_byte);
    const PipelinedRing<double> pipelined = PipelineRing(rounds, slowest);
    const DataSize<> mean = internal::MeanBucket(facts_);
    const std::string steady = "min(L, 4 " + alpha.symbol + ")";
    Add("one call, of a mean bucket", "collective/pipelined_ring", 4,
        {"max(" + steady + " + per_byte m/K, L + per_byte m/(2 K))",
         {latency, alpha, per_byte, bytes, count}},
        Time("T", pipelined.Time(mean)));
    // Short buckets wait for one piece that goes all the way round.
    double chains = 0;
    DataSize<> in_chains;
    for (const Bucket& bucket : *facts_.buckets) {
      if (!(pipelined.steady.Time(bucket.bytes) < pipelined.chain.Time(bucket.bytes))) continue;
      ++chains;
      in_chains += bucket.bytes;
    }
    if (chains == 0) {
      return {"K " + steady + " + per_byte m", {count, latency, alpha, per_byte, bytes}};
    }
    return {"(K - K_L) " + steady + " + K_L L + per_byte (m - m_L/2)",
            {count, Plain("K_L", chains, "buckets that latency sets"), latency, alpha, per_byte,
             bytes, Size("m_L", in_chains, "their bytes")}};
  }

  // ---- Servers.

  const char* ServersId() const {
    const ServerOptions& options = facts_.server;
    if (options.colocated) return "collective/parameter_server_colocated";
    if (options.multicast && options.in_network_aggregation) {
      return "collective/parameter_server_both";
    }
    if (options.multicast) return "collective/parameter_server_multicast";
    if (options.in_network_aggregation) return "collective/parameter_server_aggregation";
    return "collective/parameter_server";
  }

  NamedValue FullestShare() const {
    return Plain("s", terms_.servers.share(), "share of the fullest server");
  }
  NamedValue Initiation() const {
    return Time("c_x", cluster_.transfer_initiation(), "transfer_initiation");
  }
  NamedValue Handled() const { return ByteRate("P", cluster_.server_rate(), "server_rate"); }
  NamedValue Connection() const { return PerByte("c", terms_.servers.connection); }
  NamedValue Gradient() const { return Size("m", facts_.gradient, "gradient"); }
  NamedValue Update() const { return Time("u", workload_.update_time(), "update_time"); }
  NamedValue LeavesNode() const {
    return Plain("f", terms_.servers.worker_passes() / facts_.devices_per_node,
                 "share of bytes that leave their node");
  }
  // The share of the model behind a server's link; colocated servers may share one.
  NamedValue LinkShare() const {
    return Plain("s_l", terms_.servers.link_share(), "share of the fullest link");
  }
  Inputs PhaseLatencyInputs() const {
    return {Time("alpha", terms_.node_hop.alpha), Plain("rho", cluster_.rpc_rounds(), "rpc_rounds"),
            Plain("k", facts_.tensors, "tensors")};
  }

  // One phase of a bucket: its two terms, whose symbols begin with `letter`.
  Inputs Phase(const std::string& name, const std::string& letter, const SyncCost<double>& cost,
               bool network_helps, bool update) {
    const char* const id = ServersId();
    const ServerPaths<double>& paths = terms_.servers;
    const double remote = paths.remote_workers();
    const double copies = network_helps ? std::min(1.0, remote) : remote;
    const NamedValue handled = Plain("w_s", network_helps ? 1.0 : facts_.workers,
                                     network_helps ? "transfers, network helps" : "workers");
    const std::string call_symbol = letter + "_call";
    const std::string byte_symbol = letter + "_byte";
    const NamedValue call = Time(call_symbol.c_str(), cost.per_call);
    const NamedValue byte = PerByte(byte_symbol.c_str(), cost.per_byte);
    Add(name + " of one bucket, its calls", id, 5,
        {"c_x max(n, w_s)", {Initiation(), ServerCount(), handled}}, call);
    const NamedValue on_link = Plain("v", copies, "copies that cross a server's link");
    Text bytes;
    if (facts_.server.colocated) {
      bytes = {"max(g f/B_hop, s_l v/B_hop, s w_s/P)",
               {DevicesOfNode(), LeavesNode(), Rate("B_hop", terms_.node_hop.bandwidth),
                LinkShare(), on_link, FullestShare(), handled, Handled()}};
    } else {
      bytes = {"max(g/B_hop, s v/B_s, s w_s/P)",
               {DevicesOfNode(), Rate("B_hop", terms_.node_hop.bandwidth), FullestShare(), on_link,
                Rate("B_s", paths.server_bandwidth), handled, Handled()}};
    }
    if (paths.connection.si() > 0) {
      bytes.formula = "||" + bytes.formula;
      bytes.Add(", s c||_4", {Connection()});
    }
    if (update) bytes.Add(" + s u/m", {Update(), Gradient()});
    Add(name + " of one bucket, per byte", id, 5, std::move(bytes), byte);
    return {call, byte};
  }

  Text ServerCalls() {
    const ServerOptions& options = facts_.server;
    Text text{"K (p_call + q_call) + 2 l + (p_byte + q_byte) m",
              {Plain("K", static_cast<double>(facts_.buckets->size()), "buckets"), Gradient()}};
    text.Add("", Phase("push", "p", terms_.phases.push, options.in_network_aggregation, true));
    text.Add("", Phase("pull", "q", terms_.phases.pull, options.multicast, false));
    const NamedValue latency = Time("l", PhaseLatency(terms_.servers));
    Add("latency of a phase", ServersId(), 5, {"alpha (1 + 2 rho k)", PhaseLatencyInputs()},
        latency);
    text.Add("", {latency});
    return text;
  }

  // ---- The exchange.

  // What the first bucket loses, in one phase; returns it as an input of the whole.
  NamedValue SlowStartTerm(const std::string& name, const char* symbol, double flows, double passes,
                           DurationPerByte<double> per_byte, DataSize<> first, Duration<> idle) {
    const LinkFacts link = servers() ? internal::PathToServers(facts_) : internal::NodeLink(facts_);
    const Duration<> trip = internal::SlowStartTrip(link, terms_.node_hop);
    const Duration<> lost =
        internal::SlowStart(trip, cluster_.loss_timeout(), flows, passes, per_byte, first, idle);
    const NamedValue result = Time(symbol, lost);
    if (!(lost.si() > 0)) return result;
    const DataRate<> rate = passes / per_byte;
    const DataSize<> window = Bytes(kInitialSegments * kSegmentBytes * flows);
    Inputs inputs{Time("R", trip,
                       link.loss.value_or(0) > 0 ? "round trip with 2 link_latency" : "round trip"),
                  Size("d", first * passes, "bytes that leave"),
                  Size("I", window, flows > 1 ? "ten segments of each flow" : "ten segments")};
    const double halvings = idle / cluster_.loss_timeout() - 0.5;
    if (halvings < std::log2(rate * trip / window)) {
      inputs.push_back(Time("idle", idle, "silence"));
      inputs.push_back(Time("T_0", cluster_.loss_timeout(), "loss_timeout"));
      Add(name, "", 6,
          {"R (j - (2^j - 1)/2^h), j = min(h, log2((1 + d/I)/2)), h = idle/T_0 - 1/2", inputs},
          result);
    } else {
      inputs.push_back(Rate("r", rate, "rate reached"));
      Add(name, "network/slow_start", 6,
          {"R (j - (2^j - 1) I/(r R)), j = log2 min(r R/I, (1 + d/I)/2)", inputs}, result);
    }
    return result;
  }

  const char* OverheadName() const {
    return facts_.nodes > 1 || servers() ? "node_sync_overhead" : "device_sync_overhead";
  }

  void Synchronisation() {
    const bool sync_servers = facts_.strategy == Strategy::kPsSync;
    Text whole = sync_servers ? ServerCalls() : AllreduceCalls();
    if (terms_.slow_start.si() > 0) {
      const Duration<> idle = internal::IdleTime(facts_, terms_.micro, terms_.backward);
      const DataSize<> bucket = facts_.buckets->front().bytes;
      if (sync_servers) {
        const double n = facts_.servers;
        const double passes = terms_.servers.worker_passes();
        const DataSize<> first =
            Max(bucket, facts_.held_buckets->front().bytes / terms_.phases.share);
        whole.Add(" + x_p + x_q", {SlowStartTerm("slow start of the push", "x_p", n, passes,
                                                 terms_.phases.push.per_byte, first, idle),
                                   SlowStartTerm("slow start of the pull", "x_q", n, passes,
                                                 terms_.phases.pull.per_byte, first, idle)});
      } else {
        const double w = facts_.workers;
        whole.Add(" + x", {SlowStartTerm("slow start after silence", "x", 1, 1 / w,
                                         terms_.cost.per_byte / (2 * (w - 1)), bucket, idle)});
      }
    }
    const NamedValue overhead = Time("o", terms_.overhead, OverheadName());
    whole.Add(" + o", {overhead});
    const NamedValue all = Time("S", step_.synchronisation);
    Add("whole synchronisation", "", sync_servers ? 5 : 4, std::move(whole), all);

    // X, and the parts that it is shared out to.
    not_hidden_ = step_.exposed() - terms_.overhead;
    const NamedValue backward = Time("t_b", terms_.backward, "backward pass");
    const char* const name = "what the backward pass does not hide";
    const NamedValue exposed = Time("X", not_hidden_);
    switch (facts_.overlap) {
      case Overlap::kBuckets:
        Add(name, "overlap/buckets", 2,
            {"max(t_b, E_K) - t_b", {backward, Time("E_K", terms_.end, "end of the last bucket")}},
            exposed);
        break;
      case Overlap::kNone:
        Add(name, "", 2, {"S - o", {all, overhead}}, exposed);
        break;
      case Overlap::kPNorm:
        Add(name, "overlap/p_norm", 2,
            {"(t_b^3 + (S - o)^3)^(1/3) - t_b", {backward, all, overhead}}, exposed);
        break;
    }
  }

  void Exchange() {
    const NamedValue overhead = Time("o", terms_.overhead, OverheadName());
    const Inputs inputs{Time("X", not_hidden_), PerByte("c", terms_.cost.per_byte, "time per byte"),
                        Gradient(), Time("S", step_.synchronisation), overhead};
    Part("exposed transfer", "", 2, {"X c m/(S - o)", inputs}, step_.exposed_transfer);
    Part("exposed latency", "", 2, {"X (1 - c m/(S - o)) + o", inputs}, step_.exposed_latency);
  }

  // ---- Asynchronous servers.

  void Cycle() {
    const ServerPaths<double>& paths = terms_.servers;
    const internal::AsyncDemands<double> demands =
        internal::MakeAsyncDemands(paths, facts_.gradient);
    const internal::AsyncNetwork<double> network = internal::MakeAsyncNetwork(
        paths, demands,
        internal::WorkOf(facts_, terms_.micro, terms_.backward, workload_.straggler_spread()));
    const internal::AsyncState<double> state = internal::Analyse(network, facts_.workers);

    const NamedValue hop = Rate("B_hop", terms_.node_hop.bandwidth);
    const NamedValue d_link = Time("D", network.demand[internal::kInbound]);
    Text link;
    if (facts_.server.colocated) {
      link = {
          "max(m (s_l v + g f)/(w B_hop), s m/P + c_x)",
          {Gradient(), LinkShare(), Plain("v", paths.remote_workers(), "workers on other nodes"),
           DevicesOfNode(), LeavesNode(), WorkerCount(), hop}};
    } else {
      link = {"max(s m/B_s, s m/P + c_x)", {Gradient(), Rate("B_s", paths.server_bandwidth)}};
    }
    link.Add("", {FullestShare(), Handled(), Initiation()});
    Add("one update at the fullest server, each way", "", 5, std::move(link), d_link);
    const NamedValue d_update = Time("D_u", network.demand[internal::kUpdateStation]);
    Add("its update of the model", "", 7, {"s u", {FullestShare(), Update()}}, d_update);
    const NamedValue own = Time("D_w", demands.own_link);
    Add("one update on a worker's link, each way", "", 5,
        {"m f/B_hop", {Gradient(), LeavesNode(), hop}}, own);
    const NamedValue rest = Time("y", network.push_rest);
    Text beside{"alpha (1 + 2 rho k) + (n-1) c_x + max(0, D_w - D)", PhaseLatencyInputs()};
    beside.Add("", {ServerCount(), Initiation(), own, d_link});
    if (paths.connection.si() > 0) {
      beside.formula = "alpha (1 + 2 rho k) + (n-1) c_x + max(0, D_w - D, m s c - D)";
      beside.Add("", {Gradient(), FullestShare(), Connection()});
    }
    Add("messages and link beside the servers, each way", "", 5, std::move(beside), rest);

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
    const NamedValue think = Time("Z", network.Think(state.residence));
    Text not_there{"t_f + r t_b + q (y + Q_in + Q_u) + y - Q_in - Q_u",
                   {Time("t_f", network.forward, "forward pass and micro-steps before"),
                    Plain("r", last.ready, "share of it before the last buckets leave"),
                    Time("t_b", network.backward, "backward pass"),
                    Plain("q", last.suffix, "their share of the bytes"), rest,
                    Time("Q_in", at_in, "inbound queue and service"),
                    Time("Q_u", at_update, "update queue and service")}};
    if (network.at_own_link.si() > 0) {
      const NamedValue shared = SharedLink(internal::ShareOwnLink(paths, demands, network), own);
      not_there.formula =
          "max(t_f + r t_b + q (y + Q_in + Q_u) + y + Q_out, C_g) - Q_in - Q_u - Q_out";
      not_there.Add(
          "", {Time("Q_out", state.residence[internal::kOutbound], "outbound queue and service"),
               shared});
    }
    Add("time that a worker is not at the servers", "", 5, std::move(not_there), think);
    const bool exact = facts_.workers <= kExactCustomers;
    Add("a worker's cycle", "collective/async_parameter_server", 5,
        {exact ? "Z + sum of R_i(w), R_i(j) = D_i (1 + Q_i(j-1)), "
                 "Q_i(j) = j R_i(j)/(Z + sum of R_i(j)), Q_i(0) = 0, D_i = D, D_u, D"
               : "Z + Q_in + Q_u + Q_out",
         exact ? Inputs{think, d_link, d_update, WorkerCount()}
               : Inputs{think, Time("Q_in", at_in), Time("Q_u", at_update),
                        Time("Q_out", state.residence[internal::kOutbound],
                             "outbound queue and service")}},
        Time("C", terms_.async.cycle));
  }

  // The cycle with the other workers of a node alone, who share its link.
  NamedValue SharedLink(const internal::SharedLink<double>& shared, const NamedValue& own) {
    const NamedValue result = Time("C_g", shared.cycle);
    Add("cycle of the workers of one node, who share its link", "", 5,
        {"(z + sqrt(z^2 - 4 (g-1) D_w A))/2, z = A + (g + q) D_w",
         {Time("A", shared.beside, "what a cycle has beside its transfers"), DevicesOfNode(),
          Plain("q", shared.suffix, "share of the push that the backward pass does not hide"),
          own}},
        result);
    return result;
  }

  void AsynchronousExchange() {
    const Inputs inputs{Time("C", terms_.async.cycle),
                        Plain("a", facts_.accumulation_steps, "micro-steps"),
                        Time("t", terms_.micro),
                        Time("alpha", terms_.node_hop.alpha),
                        ServerCount(),
                        Initiation()};
    Part("exposed transfer", "", 5, {"max(0, C - a t - 2 (alpha + n c_x))", inputs},
         step_.exposed_transfer);
    Text latency{"min(C - a t, 2 (alpha + n c_x))", inputs};
    latency.Add(" + o", {Time("o", terms_.overhead, OverheadName())});
    Part("exposed latency", "", 5, std::move(latency), step_.exposed_latency);
  }

  // ---- The slowest worker.

  void Wait() {
    if (!(step_.straggler_wait.si() > 0)) return;
    const bool backup = facts_.backup_workers > 0;
    Text text{
        std::string("sigma t sqrt(a) max(0, Phi^-1((w - ") + (backup ? "k - " : "") +
            "3/8)/(w + 1/4)))",
        {Plain("sigma", workload_.straggler_spread(), "straggler_spread"), Time("t", terms_.micro),
         Plain("a", facts_.accumulation_steps, "micro-steps"), WorkerCount()}};
    if (backup) text.Add("", {Plain("k", facts_.backup_workers, "backup workers")});
    const char* const id = backup ? "sync/backup_workers" : "sync/straggler";
    const char* const name = "waiting for the slowest worker";
    if (!facts_.server.staleness_bound || facts_.strategy != Strategy::kPsAsync) {
      Part(name, id, 8, std::move(text), step_.straggler_wait);
      return;
    }
    const Duration<> barrier =
        StragglerWait(terms_.micro, workload_.straggler_spread(), facts_.accumulation_steps,
                      facts_.workers, facts_.backup_workers);
    Add("the wait of a synchronous step", id, 8, std::move(text), Time("W", barrier));
    Part(name, "sync/bounded_staleness", 8,
         {"W^2/(W + s T)",
          {Time("W", barrier), Plain("s", *facts_.server.staleness_bound, "staleness bound"),
           Time("T", step_.total() - step_.straggler_wait, "step without any wait")}},
         step_.straggler_wait);
  }

  const StepFacts& facts_;
  const ClusterParameters<double>& cluster_;
  const WorkloadParameters<double>& workload_;
  StepTerms<double> terms_;
  StepTime<double> step_;
  Duration<> not_hidden_;  // X
  const std::vector<Model<double>> catalog_ = Catalog<double>();
  std::vector<ExplainedTerm> list_;
};

}  // namespace

Explanation Predictor::Explain(const Plan& plan) const {
  Explanation explanation;
  explanation.prediction = Predict(plan);
  const Active active = ActiveParameters(plan);
  StepFacts facts = Facts(plan, active);
  const auto& [cluster, workload] = active.values;
  explanation.terms = TermList(facts, cluster, workload).Make();

  std::vector<ExplainedParameter>& parameters = explanation.parameters;
  const PlanGradient elasticities =
      PlanModel(facts).Answer(active.values, Derivatives::kAll).log_step_gradient;
  const auto add = [&](const ParameterSpec& spec, const std::string& name, int column) {
    const double elasticity = elasticities[static_cast<std::size_t>(column)];
    if (std::abs(elasticity) < kLeastElasticity) return;
    const int position = active.Position(column);
    const bool of_layers =
        profile_ && column >= kWorkloadColumn && column < kLinkColumn && name != "straggler_spread";
    parameters.push_back(
        {{name, std::exp(belief_.log_value(position)) / spec.si_per_unit, std::string(spec.unit)},
         std::sqrt(belief_.log_covariance()(position, position)),
         elasticity,
         belief_.origin(position),
         std::string(spec.meaning),
         of_layers ? "its layers, measured on " + profile_->device() : std::string(spec.source)});
  };
  for (int column = 0; column < kLinkColumn; ++column) {
    const ParameterSpec& spec = Belief::SpecOf(column);
    add(spec, std::string(spec.name), column);
  }
  add(Belief::SpecOf(kLinkBandwidth), "link_bandwidth of the slowest node", kLinkColumn);

  // The facts that the plan and the cluster file state are no parameters: by one-sided differences.
  constexpr double kDerivativeStep = 1e-5;
  const double log_step = std::log(explanation.prediction.step_time.si());
  const auto stated = [&](const char* name, NamedValue value, const char* meaning, auto scale) {
    StepFacts moved = facts;
    scale(std::exp(kDerivativeStep), &moved);
    const double at = std::log(active.Evaluate(moved).total().si());
    const double elasticity = (at - log_step) / kDerivativeStep;
    if (std::abs(elasticity) < kLeastElasticity) return;
    value.symbol = name;
    parameters.push_back({value, 0, elasticity, Origin::kStated, meaning, "the plan"});
  };
  stated("local batch", Plain("", facts.batch), "samples of one micro-step on one device",
         [this](double f, StepFacts* x) {
           x->batch *= f;
           if (profile_) x->compute_shape = profile_->ShapeAt(x->batch);
         });
  const auto link_facts = [&](const std::string& whose, LinkFacts StepFacts::*link) {
    const LinkFacts& now = facts.*link;
    if (now.bandwidth) {
      stated((whose + " bandwidth").c_str(), Rate("", *now.bandwidth), "line rate, each way",
             [link](double f, StepFacts* x) { (x->*link).bandwidth = *(x->*link).bandwidth * f; });
    }
    if (now.rtt && now.rtt->si() > 0) {
      stated((whose + " round trip").c_str(), Time("", *now.rtt), "round-trip time",
             [link](double f, StepFacts* x) { (x->*link).rtt = *(x->*link).rtt * f; });
    }
    if (now.loss.value_or(0) > 0) {
      stated((whose + " loss").c_str(), Plain("", *now.loss), "share of packets that are lost",
             [link](double f, StepFacts* x) { (x->*link).loss = *(x->*link).loss * f; });
    }
  };
  link_facts("link", &StepFacts::link);
  link_facts("server link", &StepFacts::server_link);
  std::stable_sort(parameters.begin(), parameters.end(),
                   [](const ExplainedParameter& a, const ExplainedParameter& b) {
                     return std::abs(a.elasticity) > std::abs(b.elasticity);
                   });
  return explanation;
}

}  // namespace stepcast
