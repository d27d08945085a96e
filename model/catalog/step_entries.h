// Catalogue entries of model/step: whole steps, with every parameter as an input.
#ifndef STEPCAST_MODEL_CATALOG_STEP_ENTRIES_H_
#define STEPCAST_MODEL_CATALOG_STEP_ENTRIES_H_

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/catalog/catalog.h"
#include "model/catalog/overlap_entries.h"
#include "model/step/step.h"

namespace stepcast::internal {

inline constexpr Files kStepFiles{"model/step/step.h", "docs/explanation/step-model.md",
                                  "tests/model/step_test.cc"};

// 12 devices on 3 nodes, and 2 servers where there are any.
inline StepFacts EntryFacts(Strategy strategy) {
  constexpr DataSize<> kGradient = Megabytes(100.0);
  StepFacts facts;
  facts.workers = 12;
  facts.nodes = 3;
  facts.devices_per_node = 4;
  facts.servers = TraitsOf(strategy).may_have_servers() ? 2 : 0;
  facts.accumulation_steps = 2;
  facts.batch = 32;
  facts.strategy = strategy;
  facts.gradient = kGradient;
  facts.tensors = 60;
  facts.server_share = 0.5;
  facts.buckets = EntryBuckets(kGradient);
  facts.held_buckets = EntryBuckets(kGradient * 0.5);
  facts.link.rtt = Milliseconds(1.0);
  return facts;
}

// The SI unit of what the table states in a unit for people.
inline const char* SiUnit(std::string_view unit) {
  if (unit.empty()) return "";
  if (unit == "MB") return "B";
  return unit.substr(unit.size() - 2) == "/s" ? "B/s" : "s";
}

// All parameters are inputs, in SI, within a factor of three of their priors.
template <class T>
Model<T> StepEntry(const char* id, const char* sentence, const StepFacts& facts) {
  Model<T> model{
      .id = id,
      .sentence = sentence,
      .formula = "(a-1) t + t_f + t_b + kappa min(hidden, t_b) + exposed + u + o + wait",
      .source = "model/step/step.h",
      .validity = "equal devices on equal nodes, synchronous steps; ps-async in the mean",
      .constants = "m = 100 MB, R = 1 ms, M = 1448 B, I = 14480 B",
      .home = {kStepFiles, "EvaluateStep", "how-a-step-is-put-together"}};
  const auto add = [&](const ParameterSpec& spec, Trend trend) {
    const double centre = spec.prior * spec.si_per_unit;
    const bool share = spec.name == "overlap_share" || spec.name == "overlap_contention";
    model.inputs.push_back({spec.name.data(), SiUnit(spec.unit), centre / 3,
                            share ? std::min(0.8, centre * 3) : centre * 3, trend,
                            spec.meaning.data()});
  };
  for (int i = 0; i < kClusterParameterCount; ++i) {
    const bool rate = i == kLinkBandwidth || i == kFlowBandwidth || i == kHostBandwidth ||
                      i == kMeshShare || i == kOverlapShare || i == kServerRate || i == kFlowWindow;
    // A long timeout makes a loss dear, and keeps windows open while the devices compute.
    const Trend trend = i == kLossTimeout ? Trend::kEither
                        : rate            ? Trend::kNeverRises
                                          : Trend::kNeverFalls;
    add(kClusterParameterSpecs[static_cast<std::size_t>(i)], trend);
  }
  for (const ParameterSpec& spec : kWorkloadParameterSpecs) add(spec, Trend::kNeverFalls);
  model.evaluate = [facts](const std::vector<T>& x) {
    ClusterParameters<T> cluster{};
    WorkloadParameters<T> workload{};
    std::copy_n(x.begin(), cluster.si.size(), cluster.si.begin());
    std::copy_n(x.begin() + kClusterParameterCount, workload.si.size(), workload.si.begin());
    return EvaluateStep(facts, cluster, workload).total().si();
  };
  return model;
}

template <class T>
void AddStepEntries(std::vector<Model<T>>* models) {
  const auto add = [&](const char* id, const char* sentence, const StepFacts& facts) {
    models->push_back(StepEntry<T>(id, sentence, facts));
  };
  add("step/ring", "A whole step with a flat ring.", EntryFacts(Strategy::kAllreduce));
  add("step/tree", "A whole step with a double binary tree.", EntryFacts(Strategy::kTree));
  add("step/halving_doubling", "A whole step with recursive halving and doubling.",
      EntryFacts(Strategy::kHalvingDoubling));
  add("step/hierarchical", "A whole step, reduced within nodes first.",
      EntryFacts(Strategy::kHierarchical));
  add("step/byteps", "A whole step with helper machines that sum.", EntryFacts(Strategy::kBytePs));
  add("step/ps-sync", "A whole step through synchronous servers.", EntryFacts(Strategy::kPsSync));
  add("step/ps-async", "A worker's cycle through asynchronous servers.",
      EntryFacts(Strategy::kPsAsync));
  StepFacts lossy = EntryFacts(Strategy::kAllreduce);
  lossy.link.loss = 1e-3;
  add("step/ring_with_loss", "A whole step with a flat ring that loses a packet in a thousand.",
      lossy);
  StepFacts colocated = EntryFacts(Strategy::kPsSync);
  colocated.server.colocated = true;
  add("step/ps-sync_colocated", "A whole step through synchronous servers beside the workers.",
      colocated);
  StepFacts summed = EntryFacts(Strategy::kAllreduce);
  summed.overlap = Overlap::kPNorm;
  add("step/p_norm", "A whole step with a flat ring whose overlap is the p-norm.", summed);
}

}  // namespace stepcast::internal

#endif  // STEPCAST_MODEL_CATALOG_STEP_ENTRIES_H_
