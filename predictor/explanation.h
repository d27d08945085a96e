// One prediction down to its terms: what was evaluated, from what, and how much it matters.
#ifndef STEPCAST_PREDICTOR_EXPLANATION_H_
#define STEPCAST_PREDICTOR_EXPLANATION_H_

#include <string>
#include <vector>

#include "data/record/plan.h"
#include "model/step/belief.h"
#include "predictor/prediction.h"

namespace stepcast {

// A value with its unit as people read it: "B_flow", 5, "Gbit/s", "flow_bandwidth".
struct NamedValue {
  std::string symbol;
  double value = 0;
  std::string unit = {};  // empty for a plain number
  std::string name = {};  // the parameter's, or a few words; empty where a term above has it
};

struct ExplainedTerm {
  std::string name;     // "backward pass"
  std::string model;    // id of the catalogue entry that has its formula, where there is one
  std::string formula;  // of the inputs: evaluated with them it gives the result
  std::string source;
  std::vector<NamedValue> inputs;
  NamedValue result;
  // Whether it is one of the parts that add up to the step.
  bool is_part = false;
  double share = 0;  // of the step, of a part
};

struct ExplainedParameter {
  NamedValue value;       // symbol is the parameter's name
  double log_sd = 0;      // of ln(value); 0 for what is stated
  double elasticity = 0;  // d ln(step) / d ln(value)
  Origin origin = Origin::kPrior;
  std::string meaning;
  std::string source;
};

struct Explanation {
  Prediction prediction;
  std::vector<ExplainedTerm> terms;  // in the order in which data flows
  // All parameters and stated facts that the step depends on, the most influential first.
  std::vector<ExplainedParameter> parameters;
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_EXPLANATION_H_
