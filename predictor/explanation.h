// One prediction down to its terms: what was evaluated, from what, and how much it matters.
#ifndef STEPCAST_PREDICTOR_EXPLANATION_H_
#define STEPCAST_PREDICTOR_EXPLANATION_H_

#include <string>
#include <vector>

#include "data/record/plan.h"
#include "model/step/belief.h"
#include "model/step/explained_term.h"
#include "predictor/prediction.h"

namespace stepcast {

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
