// Predictor::Explain.
#include <algorithm>
#include <cmath>
#include <utility>

#include "data/io/plan_fields.h"
#include "model/catalog/catalog.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

constexpr double kDerivativeStep = 1e-5;
// What changes the step by less than this share when it doubles is left out.
constexpr double kLeastElasticity = 5e-4;

NamedValue Time(const char* symbol, Duration<> t) {
  const double seconds = t.in(kSeconds);
  if (std::abs(seconds) < 1e-3) return {symbol, t.in(kMicroseconds), "us"};
  if (std::abs(seconds) < 1) return {symbol, t.in(kMilliseconds), "ms"};
  return {symbol, seconds, "s"};
}
NamedValue Rate(const char* symbol, DataRate<> rate) {
  return {symbol, rate.in(kGigabitsPerSecond), "Gbit/s"};
}
NamedValue Size(const char* symbol, DataSize<> size) { return {symbol, size.in(kMegabytes), "MB"}; }
NamedValue Plain(const char* symbol, double value) { return {symbol, value, ""}; }
NamedValue PerByte(const char* symbol, DurationPerByte<double> time) {
  return {symbol, time.si() * 1e9, "ns/B"};
}

const char* CollectiveId(Strategy strategy, bool nodes) {
  switch (strategy) {
    case Strategy::kTree:
      return nodes ? "collective/tree_over_nodes" : "collective/tree";
    case Strategy::kHalvingDoubling:
      return nodes ? "collective/halving_doubling_over_nodes" : "collective/halving_doubling";
    case Strategy::kHierarchical:
      return "collective/hierarchical";
    case Strategy::kBytePs:
      return "collective/byteps";
    case Strategy::kPsSync:
      return "collective/parameter_server";
    case Strategy::kPsAsync:
      return "collective/async_parameter_server";
    default:
      return nodes ? "collective/flat_ring" : "collective/ring";
  }
}

class TermList {
 public:
  TermList(const StepFacts& facts, const ClusterParameters<double>& cluster,
           const WorkloadParameters<double>& workload)
      : facts_(facts),
        cluster_(cluster),
        workload_(workload),
        step_(EvaluateStep(facts, cluster, workload, &terms_)) {}

  std::vector<ExplainedTerm> Make() {
    Compute();
    if (step_.synchronisation.si() > 0) Network();
    Part("waiting for the slowest worker", "sync/straggler",
         "sigma t sqrt(a) max(0, Phi^-1((w - k - 3/8) / (w + 1/4)))",
         {Plain("sigma", workload_.straggler_spread()), Time("t", terms_.micro),
          Plain("a", facts_.accumulation_steps), Plain("w", facts_.workers),
          Plain("k", facts_.backup_workers)},
         step_.straggler_wait);
    return std::move(list_);
  }

 private:
  void Add(const char* name, const char* model, const char* formula, std::vector<NamedValue> inputs,
           NamedValue result) {
    ExplainedTerm term{name, model, formula, "", std::move(inputs), std::move(result)};
    for (const Model<double>& entry : catalog_) {
      if (term.model == entry.id) term.source = entry.source;
    }
    if (term.source.empty()) term.source = "model/step/step.h";
    list_.push_back(std::move(term));
  }
  void Part(const char* name, const char* model, const char* formula,
            std::vector<NamedValue> inputs, Duration<> value) {
    if (!(value.si() > 0)) return;
    Add(name, model, formula, std::move(inputs), Time("", value));
    list_.back().is_part = true;
    list_.back().share = value / step_.total();
  }

  void Compute() {
    const double a = facts_.accumulation_steps;
    if (!facts_.has_compute) return;
    Add("micro-step", "compute/fitted_curve",
        "(t_fixed + (t_floor^4 + (c b)^4)^(1/4)) (1 + h (g-1))",
        {Time("t_fixed", workload_.fixed_time()), Time("t_floor", workload_.floor_time()),
         Time("c", workload_.sample_time() * Samples(1.0)), Plain("b", facts_.batch),
         Plain("h", cluster_.host_contention()), Plain("g", facts_.devices_per_node)},
        Time("t", terms_.micro));
    Part("forward pass", "", "a (1 - phi) t",
         {Plain("a", a), Plain("phi", cluster_.overlap_share()), Time("t", terms_.micro)},
         step_.forward);
    Part("backward pass", terms_.contention.si() > 0 ? "overlap/contention" : "",
         "a phi t + kappa min(hidden, t_b)",
         {Plain("a", a), Plain("phi", cluster_.overlap_share()), Time("t", terms_.micro),
          Plain("kappa", cluster_.overlap_contention()), Time("hidden", terms_.hidden)},
         step_.backward);
    Part("update", "", "u", {Time("u", workload_.update_time())}, step_.update);
  }

  void Network() {
    const bool servers = UsesServers(facts_.strategy);
    if (facts_.nodes > 1 || servers) {
      const double peers = servers ? facts_.servers : std::min(facts_.nodes - 1, 2);
      std::vector<NamedValue> inputs = {
          Rate("B", facts_.link.bandwidth.value_or(cluster_.node_link())),
          Plain("peers", peers),
          Rate("B_flow", cluster_.flow_bandwidth()),
          Rate("B_host", cluster_.host_bandwidth()),
          Plain("d", cluster_.host_sharing()),
          Plain("g", facts_.devices_per_node),
          Plain("s", cluster_.node_scaling()),
          Plain("N", facts_.nodes)};
      if (facts_.link.rtt) {
        inputs.push_back(Time("R", *facts_.link.rtt));
        inputs.push_back(Size("W", cluster_.flow_window()));
      }
      if (facts_.link.loss.value_or(0) > 0) {
        inputs.push_back(Plain("p", *facts_.link.loss));
        inputs.push_back(Time("T_0", cluster_.loss_timeout()));
      }
      Add("rate of a hop between nodes", "network/transport_bandwidth",
          "1 / ((||1/B, 1/(peers B_flow), R/(peers W), loss||_4 + 1/B_host) (1 + d (g-1)) "
          "(1 + s log2 N))",
          std::move(inputs), Rate("B_hop", terms_.node_hop.bandwidth));
      Add("latency of a hop between nodes", "", "alpha_link + R/2",
          {Time("alpha_link", cluster_.link_latency()),
           Time("R", facts_.link.rtt.value_or(Duration<>()))},
          Time("alpha", terms_.node_hop.alpha));
    }
    if (!servers && facts_.devices_per_node > 1) {
      Add("hop within a node", "", "alpha_device + R_device/2 + bytes / B_host",
          {Time("alpha_device", cluster_.device_latency()),
           Rate("B_host", cluster_.host_bandwidth())},
          Time("alpha_i", terms_.device_hop.alpha));
    }
    const char* id = CollectiveId(facts_.strategy, facts_.nodes > 1);
    if (facts_.strategy == Strategy::kPsAsync) {
      Asynchronous(id);
      return;
    }
    if (facts_.strategy == Strategy::kPsSync) {
      Synchronous(id);
    } else {
      Add("one call of the collective", id, "per_call + per_byte bytes",
          {Time("alpha", terms_.node_hop.alpha), Plain("w", facts_.workers),
           Plain("N", facts_.nodes), Plain("g", facts_.devices_per_node),
           PerByte("per_byte", terms_.cost.per_byte)},
          Time("per_call", terms_.cost.per_call));
    }
    Synchronisation();
  }

  void Synchronous(const char* id) {
    const auto phase = [&](const char* name, const SyncCost<double>& cost) {
      Add(name, id, "per_call + per_byte bytes",
          {Plain("n", facts_.servers), Plain("w", facts_.workers),
           Plain("share of the fullest server", facts_.server_share),
           Time("c_x", cluster_.transfer_initiation()), PerByte("per_byte", cost.per_byte)},
          Time("per_call", cost.per_call));
    };
    phase("push of one bucket", terms_.phases.push);
    phase("pull of one bucket", terms_.phases.pull);
  }

  void Asynchronous(const char* id) {
    const AsyncServers<double>& async = terms_.async;
    Add("a worker's cycle", id, "t_f + max(t_b, push) + pull, queues by mean value analysis",
        {Time("alone", async.alone), Time("queueing", async.queueing()), Plain("w", facts_.workers),
         Plain("n", facts_.servers),
         Plain("busy share of a server's link", std::max(async.inbound_link, async.outbound_link)),
         Plain("mean staleness", async.mean_staleness)},
        Time("C", async.cycle));
    Part("exchange that the cycle does not hide", "", "C - t_f - t_b", {Time("C", async.cycle)},
         step_.exposed_transfer);
    Part("messages", "", "2 (alpha + n c_x) + o",
         {Time("alpha", terms_.node_hop.alpha), Time("c_x", cluster_.transfer_initiation()),
          Time("o", terms_.overhead)},
         step_.exposed_latency);
  }

  void Synchronisation() {
    const double buckets = static_cast<double>(facts_.buckets->size());
    if (terms_.slow_start.si() > 0) {
      Add("slow start after silence", "network/slow_start", "R log2(1 + d'/I') - d'/r",
          {Time("R", *facts_.link.rtt)}, Time("", terms_.slow_start));
    }
    Add("whole synchronisation", "", "K per_call + per_byte m + slow start + o",
        {Plain("K", buckets), Time("per_call", terms_.cost.per_call),
         PerByte("per_byte", terms_.cost.per_byte), Size("m", facts_.gradient),
         Time("o", terms_.overhead)},
        Time("S", step_.synchronisation));
    const bool by_buckets = facts_.overlap == Overlap::kBuckets;
    const char* overlap = by_buckets                          ? "overlap/buckets"
                          : facts_.overlap == Overlap::kPNorm ? "overlap/p_norm"
                                                              : "";
    const char* formula = by_buckets ? "bytes' share of max(t_b, E_K) - t_b"
                                     : "bytes' share of what the backward pass does not hide";
    const std::vector<NamedValue> inputs = {Time("t_b", terms_.backward), Time("E_K", terms_.end)};
    Part("exposed transfer", overlap, formula, inputs, step_.exposed_transfer);
    Part("exposed latency", overlap,
         by_buckets ? "calls' share of max(t_b, E_K) - t_b, and o" : "calls' share, and o", inputs,
         step_.exposed_latency);
  }

  const StepFacts& facts_;
  const ClusterParameters<double>& cluster_;
  const WorkloadParameters<double>& workload_;
  StepTerms<double> terms_;
  StepTime<double> step_;
  const std::vector<Model<double>> catalog_ = Catalog<double>();
  std::vector<ExplainedTerm> list_;
};

}  // namespace

Explanation Predictor::Explain(const Plan& plan) const {
  Explanation explanation;
  explanation.prediction = Predict(plan);
  const Active active = ActiveParameters(plan);
  StepFacts facts = Facts(plan, active);
  const ClusterParameters<double> cluster = active.cluster();
  const WorkloadParameters<double> workload = active.workload();
  explanation.terms = TermList(facts, cluster, workload).Make();

  std::vector<ExplainedParameter>& parameters = explanation.parameters;
  const std::array<double, kActiveCount> elasticities = Elasticities(facts, active);
  const auto add = [&](const ParameterSpec& spec, const std::string& name, std::size_t i) {
    if (std::abs(elasticities[i]) < kLeastElasticity) return;
    const int position = active.index[i];
    parameters.push_back(
        {{name, std::exp(active.log_values[i]) / spec.si_per_unit, std::string(spec.unit)},
         std::sqrt(log_covariance_(position, position)),
         elasticities[i],
         origins_[static_cast<std::size_t>(position)],
         std::string(spec.meaning),
         std::string(spec.source)});
  };
  for (std::size_t i = 0; i < kClusterParameterCount; ++i) {
    add(kClusterParameterSpecs[i], std::string(kClusterParameterSpecs[i].name), i);
  }
  for (std::size_t i = 0; i < kWorkloadParameterCount; ++i) {
    add(kWorkloadParameterSpecs[i], std::string(kWorkloadParameterSpecs[i].name),
        kClusterParameterCount + i);
  }
  add(kClusterParameterSpecs[kLinkBandwidth], "link_bandwidth of the slowest node", kNodeLink);

  // What the plan and the cluster file state.
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
         [](double f, StepFacts* x) { x->batch *= f; });
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
