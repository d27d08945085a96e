// A term of a step as `explain` prints it.
#ifndef STEPCAST_MODEL_STEP_EXPLAINED_TERM_H_
#define STEPCAST_MODEL_STEP_EXPLAINED_TERM_H_

#include <string>
#include <vector>

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
  // Whether the term is one of the parts that add up to the step.
  bool is_part = false;
  double share = 0;  // of the step, of a part
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_STEP_EXPLAINED_TERM_H_
