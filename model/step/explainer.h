// The terms of one step, as a person with a calculator reads them: each formula with the values
// that it was evaluated from. What the model keeps to itself (limits of a flow, the queues of a
// cycle) is asked of the model's own functions; what belongs to one exchange is added by it
// (model/exchange/exchange.h).
#ifndef STEPCAST_MODEL_STEP_EXPLAINER_H_
#define STEPCAST_MODEL_STEP_EXPLAINER_H_

#include <optional>
#include <string>
#include <vector>

#include "data/units/quantity.h"
#include "model/exchange/exchange.h"
#include "model/step/explained_term.h"
#include "model/step/step.h"

namespace stepcast {

using TermInputs = std::vector<NamedValue>;

// Values with the unit that fits them.
NamedValue TimeValue(const char* symbol, Duration<> t, const char* name = "");
// Rates are shown in bits, and in bytes where the cluster's parameters count in bytes.
NamedValue RateValue(const char* symbol, DataRate<> rate, const char* name = "");
NamedValue ByteRateValue(const char* symbol, DataRate<> rate, const char* name);
NamedValue SizeValue(const char* symbol, DataSize<> size, const char* name);
NamedValue PlainValue(const char* symbol, double value, const char* name = "");
NamedValue PerByteValue(const char* symbol, DurationPerByte<double> time, const char* name = "");

// A formula that grows by the parts that apply, with what they take.
struct FormulaText {
  std::string formula;
  TermInputs inputs;

  void Add(const std::string& part, const TermInputs& with) {
    formula += part;
    inputs.insert(inputs.end(), with.begin(), with.end());
  }
};

class Explainer {
 public:
  Explainer(const StepFacts& facts, const ClusterParameters<double>& cluster,
            const WorkloadParameters<double>& workload);

  // In the order in which data flows.
  std::vector<ExplainedTerm> Make();

  // ---- For exchanges.

  const StepFacts& facts() const { return facts_; }
  const ClusterParameters<double>& cluster() const { return cluster_; }
  const WorkloadParameters<double>& workload() const { return workload_; }
  const StepTerms<double>& terms() const { return terms_; }
  const StepTime<double>& step() const { return step_; }

  // `model` is the id of the catalogue's entry; where there is none, `section` of
  // docs/explanation/step-model.md has the formula.
  void Add(const std::string& name, const char* model, int section, FormulaText text,
           NamedValue result);
  // One of the parts that add up to the step, unless it is nothing.
  void Part(const char* name, const char* model, int section, FormulaText text, Duration<> value);

  NamedValue DevicesOfNode() const;
  NamedValue NodeCount() const;
  NamedValue WorkerCount() const;
  NamedValue Gradient() const;
  NamedValue Overhead() const;
  NamedValue Coding() const;
  // The mean compute of an asynchronous update, as a share of that of a slow node.
  FormulaText MeanPace() const;
  NamedValue Passes() const;  // where a step has more or less than one exchange

  void CoreTerm(const PathTerms<double>& terms, const LinkFacts& link);
  void PathRateTerm(const char* name, const char* symbol, int section,
                    const PathTerms<double>& terms, const NamedValue& peers);
  // R E/W: a window in each round trip, which loss makes longer.
  FormulaText WindowText(const PathTerms<double>& terms) const;
  static NamedValue LossLimit(const PathTerms<double>& terms);
  void DeviceHop();
  // alpha_i, by the name of what it is there.
  void DeviceLatency(const char* symbol, Duration<> alpha);
  // The time that the first bucket loses in one phase; returned as an input of the whole.
  NamedValue SlowStart(const std::string& name, const char* symbol, double flows, double passes,
                       DurationPerByte<double> per_byte, DataSize<> first);
  // A synchronisation beside the backward pass, and the parts of the step that it is shared out to.
  void Synchronisation(const Exchange& exchange, int section);
  void SynchronisationParts();

 private:
  void MicroStep();
  void Compute();
  void Hops(const Exchange& exchange);
  void Wait();
  void Input();
  void ExplainCoding();
  FormulaText Exchanged() const;
  std::optional<Duration<>> RoundTrip() const;
  NamedValue Slowdown() const;  // where a named host has one
  NamedValue Batch() const;
  NamedValue LinkLatency() const;
  FormulaText PathText(const PathTerms<double>& terms, const NamedValue& peers) const;

  StepFacts facts_;  // of the workers that the step waits for
  const StepFacts& asked_;
  const ClusterParameters<double>& cluster_;
  const WorkloadParameters<double>& workload_;
  StepTerms<double> terms_;
  StepTime<double> step_;
  Duration<> not_hidden_;  // X
  std::vector<ExplainedTerm> list_;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_EXPLAINER_H_
