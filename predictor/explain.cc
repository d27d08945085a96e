// Predictor::Explain.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/compute/profiled_compute.h"
#include "model/step/belief.h"
#include "model/step/explainer.h"
#include "model/step/parameter_specs.h"
#include "predictor/active.h"
#include "predictor/explanation.h"
#include "predictor/predictor.h"

namespace stepcast {
namespace {

// Parameters that change the step by less than this share when they double are left out.
constexpr double kLeastElasticity = 5e-4;

// From the catalogue of models.
void AddSources(std::vector<ExplainedTerm>* terms) {
  const std::vector<Model<double>> catalog = Catalog<double>();
  for (ExplainedTerm& term : *terms) {
    for (const Model<double>& entry : catalog) {
      if (term.model == entry.id) term.source = entry.source;
    }
  }
}

}  // namespace

Explanation Predictor::Explain(const Plan& plan) const {
  Explanation explanation;
  explanation.prediction = Predict(plan);
  const Active active = ActiveParameters(plan);
  StepFacts facts = Facts(plan, active);
  const auto& [cluster, workload] = active.values;
  explanation.terms = Explainer(facts, cluster, workload).Make();
  AddSources(&explanation.terms);

  std::vector<ExplainedParameter>& parameters = explanation.parameters;
  const PlanGradient elasticities =
      PlanModel(facts).Answer(active.values, Derivatives::kAll).log_step_gradient;
  const auto add = [&](const ParameterSpec& spec, const std::string& name, int column) {
    const double elasticity = elasticities[static_cast<std::size_t>(column)];
    if (std::abs(elasticity) < kLeastElasticity) return;
    const int position = active.hosts.Position(column);
    const bool of_layers =
        profile_ && column >= kWorkloadColumn && column < kLinkColumn && name != "straggler_spread";
    parameters.push_back(
        {{name, std::exp(belief_->log_value(position)) / spec.si_per_unit, std::string(spec.unit)},
         std::sqrt(belief_->log_covariance()(position, position)),
         elasticity,
         belief_->origin(position),
         std::string(spec.meaning),
         of_layers ? "its layers, measured on " + profile_->device() : std::string(spec.source)});
  };
  for (int column = 0; column < kLinkColumn; ++column) {
    const ParameterSpec& spec = belief_->SpecOf(column);
    add(spec, std::string(spec.name), column);
  }
  add(belief_->SpecOf(kLinkBandwidth), "link_bandwidth of the slowest node", kLinkColumn);
  if (active.hosts.slowdown) {
    add(kComputeSlowdownSpec, belief_->NameOf(*active.hosts.slowdown), kSlowdownColumn);
  }

  // The facts that the plan and the cluster file state are no parameters: by one-sided differences
  // of second order, whose steps are long enough for the last digits to tell nothing.
  constexpr double kDerivativeStep = 3e-4;
  const double log_step = std::log(explanation.prediction.step_time.si());
  const auto stated = [&](const char* name, NamedValue value, const char* meaning, auto scale,
                          double log_sd = 0) {
    const auto change = [&](double steps) {
      StepFacts moved = facts;
      scale(std::exp(steps * kDerivativeStep), &moved);
      return std::log(active.Evaluate(moved).total().si()) - log_step;
    };
    const double elasticity = (4 * change(1) - change(2)) / (2 * kDerivativeStep);
    if (std::abs(elasticity) < kLeastElasticity) return;
    value.symbol = name;
    parameters.push_back({value, log_sd, elasticity, Origin::kStated, meaning, "the plan"});
  };
  stated("local batch", PlainValue("", facts.batch), "samples of one micro-step on one device",
         [this](double f, StepFacts* x) {
           x->batch *= f;
           x->recomputing = recomputation().At(x->batch);
           if (profile_) x->compute_shape = profile_->ShapeAt(x->batch);
         });
  if (facts.slow_share) {
    stated("slow local batch", PlainValue("", facts.slow_share->batch),
           "samples of one micro-step on a device of the slow nodes",
           [this](double f, StepFacts* x) {
             StepFacts::SlowShare& share = *x->slow_share;
             share.batch *= f;
             share.recomputing = recomputation().At(share.batch);
             if (profile_) share.compute_shape = profile_->ShapeAt(share.batch);
           });
  }
  const auto link_facts = [&](const std::string& whose, LinkFacts StepFacts::*link,
                              double share_log_sd) {
    const LinkFacts& now = facts.*link;
    if (now.bandwidth) {
      stated((whose + " bandwidth").c_str(), RateValue("", *now.bandwidth), "line rate, each way",
             [link](double f, StepFacts* x) { (x->*link).bandwidth = *(x->*link).bandwidth * f; },
             share_log_sd);
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
  if (facts.input_rate) {
    NamedValue rate = PlainValue("", facts.input_rate->in(kSamplesPerSecond));
    rate.unit = kSamplesPerSecond.symbol;
    stated("input rate", std::move(rate), "samples that a node gets each second",
           [](double f, StepFacts* x) { x->input_rate = *x->input_rate * f; });
  }
  const int position = active.hosts.link;
  link_facts("link", &StepFacts::link, belief_->StatedShareLogSd(facts.link, {}, position));
  link_facts("server link", &StepFacts::server_link,
             belief_->StatedShareLogSd({}, facts.server_link, position));
  std::stable_sort(parameters.begin(), parameters.end(),
                   [](const ExplainedParameter& a, const ExplainedParameter& b) {
                     return std::abs(a.elasticity) > std::abs(b.elasticity);
                   });
  return explanation;
}

}  // namespace stepcast
