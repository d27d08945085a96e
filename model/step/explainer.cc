#include "model/step/explainer.h"

#include <cmath>
#include <optional>
#include <utility>

#include "model/sync/straggler.h"

namespace stepcast {

NamedValue TimeValue(const char* symbol, Duration<> t, const char* name) {
  const double seconds = t.in(kSeconds);
  const double size = std::abs(seconds);
  if (size > 0 && size < 1e-3) return {symbol, t.in(kMicroseconds), "us", name};
  if (size > 0 && size < 1) return {symbol, t.in(kMilliseconds), "ms", name};
  return {symbol, seconds, "s", name};
}
NamedValue RateValue(const char* symbol, DataRate<> rate, const char* name) {
  return {symbol, rate.in(kGigabitsPerSecond), "Gbit/s", name};
}
NamedValue ByteRateValue(const char* symbol, DataRate<> rate, const char* name) {
  return {symbol, rate.si() * 1e-9, "GB/s", name};
}
NamedValue SizeValue(const char* symbol, DataSize<> size, const char* name) {
  if (size.si() < 1e5) return {symbol, size.si(), "B", name};
  return {symbol, size.in(kMegabytes), "MB", name};
}
NamedValue PlainValue(const char* symbol, double value, const char* name) {
  return {symbol, value, "", name};
}
NamedValue PerByteValue(const char* symbol, DurationPerByte<double> time, const char* name) {
  return {symbol, time.si() * 1e9, "ns/B", name};
}

namespace {

// What the exposed part of an exchange follows from.
const char* ExposedModel(Shard shard) {
  if (shard == Shard::kNone) return "overlap/buckets";
  if (shard == Shard::kHybrid) return "overlap/hybrid_units";
  return shard == Shard::kParameters ? "overlap/gathered_units" : "overlap/shared_update";
}
const char* LastEnd(Shard shard) {
  if (shard == Shard::kNone) return "end of the last bucket";
  return GathersUnits(shard) ? "end of the backward pass, with what all passes wait for"
                             : "end of the last all-gather";
}

}  // namespace

Explainer::Explainer(const StepFacts& facts, const ClusterParameters<double>& cluster,
                     const WorkloadParameters<double>& workload)
    : facts_(LaterSide(facts, cluster, workload)),
      asked_(facts),
      cluster_(cluster),
      workload_(workload),
      step_(EvaluateStep(facts_, cluster, workload, &terms_)) {}

std::vector<ExplainedTerm> Explainer::Make() {
  const Exchange& exchange = ExchangeOf(facts_.strategy);
  const bool exchanges = step_.synchronisation.si() > 0;
  if (facts_.has_compute) MicroStep();
  if (exchanges) {
    Hops(exchange);
    exchange.Explain(this);
  }
  Compute();
  if (exchanges) exchange.ExplainParts(this);
  Wait();
  Input();
  return std::move(list_);
}

void Explainer::Add(const std::string& name, const char* model, int section, FormulaText text,
                    NamedValue result) {
  list_.push_back({name, model, std::move(text.formula),
                   "docs/explanation/step-model.md, section " + std::to_string(section),
                   std::move(text.inputs), std::move(result)});
}

void Explainer::Part(const char* name, const char* model, int section, FormulaText text,
                     Duration<> value) {
  if (!(value.si() > 0)) return;
  Add(name, model, section, std::move(text), TimeValue("", value));
  list_.back().is_part = true;
  list_.back().share = value / step_.total();
}

NamedValue Explainer::DevicesOfNode() const {
  return PlainValue("g", facts_.devices_per_node, "devices of the fullest node");
}
NamedValue Explainer::NodeCount() const { return PlainValue("N", facts_.nodes, "nodes"); }
NamedValue Explainer::WorkerCount() const { return PlainValue("w", facts_.workers, "workers"); }
NamedValue Explainer::Gradient() const { return SizeValue("m", facts_.gradient, "gradient"); }
NamedValue Explainer::Overhead() const {
  if (!facts_.has_compute) return TimeValue("o", terms_.overhead, "no framework's: a bare message");
  NamedValue value = TimeValue("o", terms_.overhead);
  value.name = internal::LeavesNode(facts_) ? "node_sync_overhead" : "device_sync_overhead";
  if (facts_.local_steps > 1) value.name += ", a local step's share";
  return value;
}
NamedValue Explainer::Passes() const {
  return PlainValue("k", terms_.passes, "exchanges of all buckets in a step");
}
FormulaText Explainer::MeanPace() const {
  return {" (v + (1 - v) y)",
          {PlainValue("v", *facts_.slow_speed, "slow_speed"),
           PlainValue("y", terms_.async.slow_updates, "share of updates of slow nodes")}};
}
NamedValue Explainer::Slowdown() const {
  if (internal::StatedIsSlowest(facts_, cluster_)) {
    return PlainValue("q", 1 / *facts_.slow_speed, "1 / slow_speed");
  }
  return PlainValue("q", *cluster_.node_slowdown, "compute_slowdown");
}
NamedValue Explainer::Batch() const {
  const bool of_slow = asked_.slow_share && facts_.batch == asked_.slow_share->batch;
  return PlainValue("b", facts_.batch, of_slow ? "batch on slow nodes" : "batch");
}
NamedValue Explainer::LinkLatency() const {
  const LinkFacts link = *internal::ExchangeLink(facts_);
  return TimeValue("alpha_link", internal::LatencyOf(link, cluster_),
                   kClusterParameterSpecs[internal::LatencyParameter(link)].name.data());
}

std::optional<Duration<>> Explainer::RoundTrip() const {
  return internal::ExchangeLink(facts_)->rtt;
}

void Explainer::MicroStep() {
  FormulaText text{
      "t_fixed + (t_floor^4 + (c b)^4)^(1/4)",
      {TimeValue("t_fixed", workload_.fixed_time(), "fixed_time"),
       TimeValue("t_floor", workload_.floor_time(), "floor_time"),
       TimeValue("c", workload_.sample_time() * Samples(1.0), "sample_time"), Batch()}};
  const bool shaped = facts_.compute_shape != 1;
  const double servers = internal::ServersBeside(facts_);
  const bool shared = internal::Crowding(facts_) > 0;
  const bool slowed = internal::SlowdownOf(facts_, cluster_).has_value();
  if (shaped || shared || slowed) {
    text.formula = "(" + text.formula + ")";
  }
  if (shaped) {
    text.Add(" s_b",
             {PlainValue("s_b", facts_.compute_shape, "shape of the profile at this batch")});
  }
  if (shared) {
    text.Add(servers > 0 ? " (1 + h (log2 g + n_c))" : " (1 + h log2 g)",
             {PlainValue("h", cluster_.host_contention(), "host_contention"), DevicesOfNode()});
    if (servers > 0)
      text.inputs.push_back(PlainValue("n_c", servers, "servers of the fullest node"));
  }
  if (slowed) text.Add(" q", {Slowdown()});
  Add("micro-step", "compute/fitted_curve", 1, std::move(text), TimeValue("t", terms_.micro));
}

void Explainer::Compute() {
  const NamedValue a = PlainValue("a", facts_.accumulation_steps, "micro-steps");
  const Recomputing& again = facts_.recomputing;
  const NamedValue phi =
      PlainValue(again.exists() ? "phi_0" : "phi", cluster_.overlap_share(), "overlap_share");
  const auto define_share = [&](FormulaText* pass) {
    if (again.of_all != 0) {
      pass->Add(", phi = 1 - (1 - phi_0)/(1 + r_b)",
                {PlainValue("r_b", again.of_all, "growth of t by what is recomputed")});
    } else if (again.of_forward != 0) {
      pass->Add(", phi = 1 - (1 - phi_0)/(1 + r (1 - phi_0))",
                {PlainValue("r", again.of_forward, "share of the forward pass, recomputed")});
    }
  };
  const NamedValue t = TimeValue("t", terms_.micro);
  FormulaText forward{"a (1 - phi) t", {a, phi, t}};
  FormulaText backward{"a phi t", {a, phi, t}};
  if (terms_.async.slow_updates > 0) {
    const FormulaText mean = MeanPace();
    for (FormulaText* pass : {&forward, &backward}) pass->Add(mean.formula, mean.inputs);
  }
  define_share(&forward);
  Part("forward pass", "", 1, std::move(forward), step_.forward);
  const bool contention = terms_.contention.si() > 0;
  if (contention) {
    const FormulaText exchanged = Exchanged();
    backward.Add(" + kappa min(" + exchanged.formula + " - X, phi t)",
                 {PlainValue("kappa", cluster_.overlap_contention(), "overlap_contention")});
    backward.Add("", exchanged.inputs);
    backward.Add("", {TimeValue("X", not_hidden_)});
    if (GathersUnits(facts_.shard)) {
      backward.formula.replace(backward.formula.rfind("phi t"), 3, "a ");
    }
  }
  define_share(&backward);
  Part("backward pass", contention ? "overlap/contention" : "", contention ? 2 : 1,
       std::move(backward), step_.backward);
  FormulaText update{"u", {TimeValue("u", workload_.update_time(), "update_time")}};
  if (internal::UpdateShare(facts_) != 1) {
    const bool hybrid = facts_.shard == Shard::kHybrid;
    update.Add(hybrid ? "/g" : "/w", {hybrid ? DevicesOfNode() : WorkerCount()});
  }
  if (internal::SlowdownOf(facts_, cluster_)) update.Add(" q", {Slowdown()});
  Part("update", "", 7, std::move(update), step_.update);
}

void Explainer::Hops(const Exchange& exchange) {
  const NamedValue bandwidth = RateValue("B_hop", terms_.node_hop.bandwidth);
  const bool servers = UsesServers(facts_.strategy);
  if (internal::AddedUpAtHome(facts_) > 1) {
    Add("rate of a hop within the node", "", 5,
        {"B_host", {ByteRateValue("B_host", cluster_.host_bandwidth(), "host_bandwidth")}},
        bandwidth);
  } else if (internal::LeavesNode(facts_)) {
    const PathTerms<double>& terms = terms_.node_path;
    const NamedValue path = PerByteValue("P", 1.0 / terms.rate);
    const bool serves = TraitsOf(facts_.strategy).servers;
    CoreTerm(terms, serves ? facts_.link : *internal::NodeLink(facts_));
    Add("path between nodes", "network/path", 3,
        PathText(terms, serves ? PlainValue("n", facts_.servers, "servers")
                               : PlainValue("peers", terms.shape.peers, "neighbours of a node")),
        path);
    const bool shared = facts_.devices_per_node > 1;
    FormulaText hop{"1 / || P, ", {path}};
    hop.Add(shared ? "(1 + d (g-1)) / B_host" : "1/B_host",
            {ByteRateValue("B_host", cluster_.host_bandwidth(), "host_bandwidth")});
    if (shared) {
      hop.Add("", {PlainValue("d", cluster_.host_sharing(), "host_sharing"), DevicesOfNode()});
    }
    hop.formula += " ||_4";
    Add("rate of a hop between nodes", "network/hop_rate", 3, std::move(hop), bandwidth);
  }
  if (internal::LeavesNode(facts_)) {
    FormulaText latency{"alpha_link", {LinkLatency()}};
    if (RoundTrip()) latency.Add(" + R/2", {TimeValue("R", *RoundTrip(), "round trip")});
    Add("latency of a hop between nodes", "network/hop_latency", 3, std::move(latency),
        TimeValue("alpha", terms_.node_hop.alpha));
  } else if (servers) {
    DeviceLatency("alpha", terms_.node_hop.alpha);
  }
  exchange.ExplainHops(this);
}

FormulaText Explainer::WindowText(const PathTerms<double>& terms) const {
  const Path<double>& path = terms.path;
  const bool stated = RoundTrip() && RoundTrip()->si() > 0;
  FormulaText text;
  if (stated) text.Add("R", {TimeValue("R", *RoundTrip(), "round trip")});
  if (path.loss > 0) {
    text.Add(stated ? " + 2 alpha_link" : "2 alpha_link", {LinkLatency()});
    if (stated) text.formula = "(" + text.formula + ")";
    text.Add(" E", {PlainValue("E", terms.limits.window * path.window / path.rtt,
                               "round trips until a window has arrived")});
  }
  text.Add("/W", {SizeValue("W", path.window, "flow_window")});
  return text;
}
NamedValue Explainer::LossLimit(const PathTerms<double>& terms) {
  return PerByteValue("t_loss", terms.limits.loss, "time per byte that loss allows");
}

// Time per byte of a path to `peers` others: only what applies.
FormulaText Explainer::PathText(const PathTerms<double>& terms, const NamedValue& peers) const {
  const double mesh = terms.shape.mesh ? cluster_.mesh_share() : 1;
  const double crowd = 1 + terms.path.others;
  const double core = CrossedBy(terms.path, terms.shape);
  std::string one = crowd == 1 ? "1" : "(1+o)";
  if (core > 1) one = crowd == 1 ? "c_core" : "c_core (1+o)";
  const bool taken = terms.path.taken.si() > 0;
  const std::string left = taken ? "(B_link-b)" : "B_link";
  const auto line = [&](DataRate<double> rate) {
    TermInputs inputs{
        RateValue("B_link", rate * crowd + terms.path.taken, "1448/1538 of the line rate")};
    if (taken) inputs.push_back(RateValue("b", terms.path.taken, "what other traffic has of it"));
    if (crowd > 1) inputs.push_back(PlainValue("o", crowd - 1, "exchanges of other jobs on it"));
    if (core > 1) inputs.push_back(PlainValue("c_core", core, "in the core"));
    return inputs;
  };
  if (terms.path.transport == Transport::kRdma) {
    FormulaText text{one + "/" + left, line(terms.path.bandwidth)};
    if (terms.path.loss > 0) {
      text.Add(" (1 + p N/(1-p))",
               {PlainValue("p", terms.path.loss, "loss"),
                PlainValue("N", PacketsInFlight(terms.path, core), "packets of a round trip")});
    }
    return text;
  }
  FormulaText text{"||" + one + (mesh == 1 ? "/" + left + ", " : "/(m " + left + "), "),
                   line(terms.path.bandwidth / mesh)};
  if (mesh != 1) text.inputs.insert(text.inputs.begin(), PlainValue("m", mesh, "mesh_share"));
  if (terms.shape.slowest > 0) {
    text.Add("(1 + s z)",
             {PlainValue("s", cluster_.hop_spread(), "hop_spread"),
              PlainValue("z", terms.shape.slowest,
                         "the largest of as many standard normal values as there are nodes")});
  } else {
    text.formula += "1";
  }
  text.Add("/(" + peers.symbol + " B_flow)||_4",
           {peers, RateValue("B_flow", cluster_.flow_bandwidth(), "flow_bandwidth")});
  const std::string shared = terms.shape.connections > 1 ? "/" + peers.symbol : "";
  if (terms.shape.connections > 0 && terms.limits.window.si() > 0) {
    const FormulaText window = WindowText(terms);
    text.formula = "|| " + text.formula;
    text.Add(", " + window.formula + shared + "||_" +
                 std::to_string(std::lround(terms.shape.window_knee)),
             window.inputs);
  }
  if (terms.shape.connections > 0 && terms.limits.loss.si() > 0) {
    text.formula = "|| " + text.formula;
    text.Add(", t_loss" + shared + "||_4", {LossLimit(terms)});
  }
  if (terms.path.loss > 0) text.Add(" / (1 - p)", {PlainValue("p", terms.path.loss, "loss")});
  return text;
}

// How much longer the core makes a byte take, where it does.
void Explainer::CoreTerm(const PathTerms<double>& terms, const LinkFacts& link) {
  const double crossing = CrossedBy(terms.path, terms.shape);
  if (!(crossing > 1)) return;
  const NetworkCore<> core = internal::CoreOf(link);
  const Crossing<>& crossed = terms.shape.core;
  const auto is = [&](const CoreForm& form) { return crossed.form == &form; };
  FormulaText text{crossed.form->formula,
                   {PlainValue("o", core.oversubscription, "oversubscription"),
                    PlainValue("S", core.nodes, "nodes_per_switch")}};
  if (!is(kCoreOfRing) && !is(kCoreOfTree)) {
    text.inputs.push_back(
        PlainValue("N", is(kCoreOfSome) ? facts_.nodes : crossed.count, "nodes that send"));
  }
  if (is(kCoreOfTree)) {
    text.inputs.push_back(PlainValue("X", core.TreeHalves(facts_.nodes),
                                     "halves of the gradients that leave a switch"));
  }
  if (is(kCoreOfShare)) {
    text.inputs.push_back(
        PlainValue("s", crossed.share, "share of a machine's bytes that leave its switch"));
  }
  if (is(kCoreOfHalvingDoubling)) {
    const auto rounds = core.HalvingDoublingRounds(crossed.count);
    text.inputs = {text.inputs.front(),
                   PlainValue("u", rounds.near, "share of the bytes that the links hold back"),
                   PlainValue("v", rounds.beyond, "share of them that leaves a switch")};
  }
  if (is(kCoreOfSome)) text.inputs.push_back(PlainValue("n", crossed.count, "servers"));
  if (terms.path.left < 1) {
    text.formula = "max(1, L " + text.formula + ")";
    text.inputs.push_back(
        PlainValue("L", terms.path.left, "what other traffic leaves of the link"));
  }
  Add("a byte's time in the core", crossed.form->model, 19, std::move(text),
      PlainValue("c_core", crossing));
}

void Explainer::PathRateTerm(const char* name, const char* symbol, int section,
                             const PathTerms<double>& terms, const NamedValue& peers) {
  CoreTerm(terms, *internal::PathToServer(facts_.link, facts_.server_link));
  FormulaText text = PathText(terms, peers);
  text.formula = "1 / (" + text.formula + ")";
  Add(name, "network/path", section, std::move(text), RateValue(symbol, terms.rate));
}

void Explainer::DeviceLatency(const char* symbol, Duration<> alpha) {
  FormulaText latency{"alpha_device",
                      {TimeValue("alpha_device", cluster_.device_latency(), "device_latency")}};
  if (facts_.device_rtt.si() > 0) {
    latency.Add(" + R/2", {TimeValue("R", facts_.device_rtt, "round trip within a node")});
  }
  Add("latency of a hop within a node", "network/hop_latency", 3, std::move(latency),
      TimeValue(symbol, alpha));
}

void Explainer::DeviceHop() {
  if (facts_.devices_per_node > 1) DeviceLatency("alpha_i", terms_.device_hop.alpha);
}

NamedValue Explainer::SlowStart(const std::string& name, const char* symbol, double flows,
                                double passes, DurationPerByte<double> per_byte, DataSize<> first) {
  const Duration<> idle = internal::IdleTime(facts_, terms_.micro, terms_.backward);
  const LinkFacts link = *internal::ExchangeLink(facts_);
  const Duration<> trip = internal::SlowStartTrip(link, terms_.node_hop);
  const Duration<> lost =
      internal::SlowStart(trip, cluster_.loss_timeout(), flows, passes, per_byte, first, idle);
  const NamedValue result = TimeValue(symbol, lost);
  if (!(lost.si() > 0)) return result;
  const DataRate<> rate = passes / per_byte;
  const DataSize<> window = Bytes(kInitialSegments * kSegmentBytes * flows);
  TermInputs inputs{
      TimeValue("R", trip,
                link.loss.value_or(0) > 0 ? "round trip with 2 link_latency" : "round trip"),
      SizeValue("d", first * passes, "bytes that leave"),
      SizeValue("I", window, flows > 1 ? "ten segments of each flow" : "ten segments")};
  const double halvings = idle / cluster_.loss_timeout() - 0.5;
  if (halvings < std::log2(rate * trip / window)) {
    inputs.push_back(TimeValue("idle", idle, "silence"));
    inputs.push_back(TimeValue("T_0", cluster_.loss_timeout(), "loss_timeout"));
    Add(name, "", 6,
        {"R (j - (2^j - 1)/2^h), j = min(h, log2((1 + d/I)/2)), h = idle/T_0 - 1/2", inputs},
        result);
  } else {
    inputs.push_back(RateValue("r", rate, "rate reached"));
    Add(name, "network/slow_start", 6,
        {"R (j - (2^j - 1) I/(r R)), j = log2 min(r R/I, (1 + d/I)/2)", inputs}, result);
  }
  return result;
}

NamedValue Explainer::Coding() const { return TimeValue("C", terms_.coding); }

// "S - o", without what coding takes of it.
FormulaText Explainer::Exchanged() const {
  FormulaText text{"S - o", {TimeValue("S", step_.synchronisation), Overhead()}};
  if (terms_.coding.si() > 0) text.Add(" - C", {Coding()});
  return text;
}

void Explainer::ExplainCoding() {
  if (!(terms_.coding.si() > 0)) return;
  const NamedValue m = SizeValue("M", facts_.dense_gradient, "gradients in float32");
  if (facts_.coding_rate) {
    Add("encoding and decoding", "", 16,
        {"M / r", {m, ByteRateValue("r", *facts_.coding_rate, "as stated")}}, Coding());
    return;
  }
  const double k = facts_.compress.kept;
  FormulaText text{"M (", {m}};
  switch (facts_.compress.method) {
    case Compressor::kInt8:
      if (UsesServers(facts_.strategy)) {
        text.Add("14/4", {});
      } else {
        text.Add("15/4 + 13/(4 w)", {WorkerCount()});
      }
      break;
    case Compressor::kTopK:
      text.Add("8 + 3 k + 4 k w", {PlainValue("k", k, "share that is kept"), WorkerCount()});
      break;
    case Compressor::kPowerSgd:
      text.Add("9", {});
      break;
    default:
      text.Add("3", {});
      break;
  }
  text.Add(") / B_mem",
           {ByteRateValue("B_mem", facts_.memory_bandwidth, "memory bandwidth of the device")});
  Add("encoding and decoding", "", 16, std::move(text), Coding());
}

void Explainer::Synchronisation(const Exchange& exchange, int section) {
  ExplainCoding();
  FormulaText whole = exchange.ExplainCalls(this);
  if (terms_.slow_start.si() > 0) exchange.ExplainSlowStart(this, &whole);
  if (terms_.passes != 1) {
    whole.formula = "k (" + whole.formula + ")";
    whole.inputs.push_back(Passes());
  }
  const NamedValue overhead = Overhead();
  whole.Add(" + o", {overhead});
  if (terms_.coding.si() > 0) whole.Add(" + C", {Coding()});
  const NamedValue all = TimeValue("S", step_.synchronisation);
  Add("whole synchronisation", "", section, std::move(whole), all);

  // X, and the parts that it is shared out to.
  not_hidden_ = step_.exposed() - terms_.overhead - terms_.coding;
  const NamedValue backward = TimeValue("t_b", terms_.backward, "backward pass");
  const char* const name = "what the backward pass does not hide";
  const NamedValue exposed = TimeValue("X", not_hidden_);
  switch (facts_.overlap) {
    case Overlap::kBuckets:
      Add(name, ExposedModel(facts_.shard), 2,
          {"max(t_b, E_K) - t_b", {backward, TimeValue("E_K", terms_.end, LastEnd(facts_.shard))}},
          exposed);
      break;
    case Overlap::kNone:
      Add(name, "", 2, Exchanged(), exposed);
      break;
    case Overlap::kPNorm: {
      FormulaText text = Exchanged();
      text.formula = "(t_b^3 + (" + text.formula + ")^3)^(1/3) - t_b";
      text.inputs.insert(text.inputs.begin(), backward);
      Add(name, "overlap/p_norm", 2, std::move(text), exposed);
      break;
    }
  }
}

void Explainer::SynchronisationParts() {
  const NamedValue overhead = Overhead();
  const FormulaText exchanged = Exchanged();
  TermInputs inputs{TimeValue("X", not_hidden_),
                    PerByteValue("c", terms_.cost.per_byte, "time per byte"), Gradient()};
  inputs.insert(inputs.end(), exchanged.inputs.begin(), exchanged.inputs.end());
  std::string bytes = "c m/(" + exchanged.formula + ")";
  if (terms_.passes != 1) {
    bytes = "k " + bytes;
    inputs.push_back(Passes());
  }
  Part("exposed transfer", "", 2, {"X " + bytes, inputs}, step_.exposed_transfer);
  Part("exposed latency", "", 2, {"X (1 - " + bytes + ") + o", inputs}, step_.exposed_latency);
  Part("coding", "", 16, {"C", {Coding()}}, step_.coding);
}

void Explainer::Wait() {
  if (!(step_.straggler_wait.si() > 0)) return;
  const bool backup = facts_.backup_workers > 0;
  const bool rare = facts_.local_steps > 1;
  FormulaText text{std::string("sigma t sqrt(a") + (rare ? "/H" : "") + ") max(0, Phi^-1((w - " +
                       (backup ? "k - " : "") + "3/8)/(w + 1/4)))",
                   {PlainValue("sigma", workload_.straggler_spread(), "straggler_spread"),
                    TimeValue("t", terms_.micro),
                    PlainValue("a", facts_.accumulation_steps, "micro-steps"), WorkerCount()}};
  if (backup) text.Add("", {PlainValue("k", facts_.backup_workers, "backup workers")});
  if (rare) text.Add("", {PlainValue("H", facts_.local_steps, "local steps")});
  const char* const id = backup ? "sync/backup_workers" : "sync/straggler";
  const char* const name = "waiting for the slowest worker";
  if (!facts_.server.staleness_bound) {
    Part(name, id, 8, std::move(text), step_.straggler_wait);
    return;
  }
  const Duration<> barrier =
      StragglerWait(terms_.micro, workload_.straggler_spread(), facts_.accumulation_steps,
                    facts_.workers, facts_.backup_workers);
  Add("the wait of a synchronous step", id, 8, std::move(text), TimeValue("W", barrier));
  Part(
      name, "sync/bounded_staleness", 8,
      {"W^2/(W + s T)",
       {TimeValue("W", barrier), PlainValue("s", *facts_.server.staleness_bound, "staleness bound"),
        TimeValue("T", terms_.async.unbounded, "cycle without a bound")}},
      step_.straggler_wait);
}

void Explainer::Input() {
  if (!facts_.input_rate || !facts_.has_compute) return;
  const NamedValue arrival = TimeValue("A", internal::ArrivalOf(facts_));
  Add("arrival of the samples of a step", "", 15,
      {"g b a / r",
       {DevicesOfNode(),
        Batch(),
        PlainValue("a", facts_.accumulation_steps, "micro-steps"),
        {"r", facts_.input_rate->in(kSamplesPerSecond), kSamplesPerSecond.symbol,
         "samples that a node gets"}}},
      arrival);
  const char* const name = "waiting for input";
  if (!(terms_.async.slow_updates > 0)) {
    Part(name, "overlap/input", 15,
         {"max(0, A - R)",
          {arrival, TimeValue("R", step_.supplied(), "the step if all samples were there")}},
         step_.input_wait);
    return;
  }
  // Each kind of workers waits by itself.
  StepFacts supplied = facts_;
  supplied.input_rate = std::nullopt;
  StepTerms<double> without;
  EvaluateStep(supplied, cluster_, workload_, &without);
  Part(name, "overlap/input", 15,
       {"(1 - y) max(0, A - R_f) + y max(0, A - R_s)",
        {PlainValue("y", terms_.async.slow_updates, "share of updates of slow nodes"), arrival,
         TimeValue("R_f", without.async.fast_cycle, "a fast cycle if all samples were there"),
         TimeValue("R_s", without.async.slow_cycle, "a slow one")}},
       step_.input_wait);
}

}  // namespace stepcast
