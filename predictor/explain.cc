// Predictor::Explain.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/step/explainer.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

// What changes the step by less than this share when it doubles is left out.
constexpr double kLeastElasticity = 5e-4;

}  // namespace

Explanation Predictor::Explain(const Plan& plan) const {
  Explanation explanation;
  explanation.prediction = Predict(plan);
  const Active active = ActiveParameters(plan);
  StepFacts facts = Facts(plan, active);
  const ClusterParameters<double> cluster = active.cluster();
  const WorkloadParameters<double> workload = active.workload();
  explanation.terms = Explainer(facts, cluster, workload).Make();
  const std::vector<Model<double>> catalog = Catalog<double>();
  for (ExplainedTerm& term : explanation.terms) {
    for (const Model<double>& entry : catalog) {
      if (term.model == entry.id) term.source = entry.source;
    }
  }

  std::vector<ExplainedParameter>& parameters = explanation.parameters;
  const ActiveGradient elasticities = Elasticities(facts, active).step;
  const auto add = [&](const ParameterSpec& spec, const std::string& name, std::size_t i) {
    if (std::abs(elasticities[i]) < kLeastElasticity) return;
    const int position = active.index[i];
    const bool of_layers = profile_ && i >= std::size_t{kWorkloadOffset} &&
                           i < std::size_t{kHostOffset} && name != "straggler_spread";
    parameters.push_back(
        {{name, std::exp(active.log_values[i]) / spec.si_per_unit, std::string(spec.unit)},
         std::sqrt(belief_.log_covariance()(position, position)),
         elasticities[i],
         belief_.origin(position),
         std::string(spec.meaning),
         of_layers ? "its layers, measured on " + profile_->device() : std::string(spec.source)});
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
  stated("local batch", PlainValue("", facts.batch), "samples of one micro-step on one device",
         [this](double f, StepFacts* x) {
           x->batch *= f;
           if (profile_) x->compute_shape = profile_->ShapeAt(x->batch);
         });
  const auto link_facts = [&](const std::string& whose, LinkFacts StepFacts::*link) {
    const LinkFacts& now = facts.*link;
    if (now.bandwidth) {
      stated((whose + " bandwidth").c_str(), RateValue("", *now.bandwidth), "line rate, each way",
             [link](double f, StepFacts* x) { (x->*link).bandwidth = *(x->*link).bandwidth * f; });
    }
    if (now.rtt && now.rtt->si() > 0) {
      stated((whose + " round trip").c_str(), TimeValue("", *now.rtt), "round-trip time",
             [link](double f, StepFacts* x) { (x->*link).rtt = *(x->*link).rtt * f; });
    }
    if (now.loss.value_or(0) > 0) {
      stated((whose + " loss").c_str(), PlainValue("", *now.loss), "share of packets that are lost",
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
