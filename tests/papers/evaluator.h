// The model's answer to one row of the papers.
#ifndef STEPCAST_TESTS_PAPERS_EVALUATOR_H_
#define STEPCAST_TESTS_PAPERS_EVALUATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/papers/setup.h"

namespace stepcast::papers {

// Where the model's answer comes from.
enum class Role {
  kPredicted,     // no row it is judged by was used for it
  kCalibratedOn,  // the row fixed a value, or a choice, that the paper does not give
  // Arithmetic: of parameters, transfers and bytes; quotients and sums of rows calibrated on; and
  // what holds by definition.
  kCounted,
};
inline constexpr const char* kRoleNames[] = {"predicted", "calibrated on", "counted"};

enum class Standing {
  kInScope,
  kOtherFigure,  // the same paper says something else elsewhere, which is judged instead
  kDisputed,     // arithmetic, a definition or another source says something else
  kOutOfReach,   // no model of this library speaks of it
};

// How a value is held against the printed one.
enum class Compare {
  kRatio,    // by their ratio
  kLoss,     // a loss of throughput in per cent: by what is lost, and by what remains
  kAtLeast,  // the printed one is a lower bound
};

struct Answer {
  double value = 0;  // in the row's unit
  bool holds = false;
  std::string says = {};  // of a claim: what the model says, with its numbers

  static Answer Value(double value) { return {value, false, ""}; }
  static Answer Claim(bool holds, std::string says) { return {0, holds, std::move(says)}; }
};

struct Evaluator {
  std::string id;
  Role role = Role::kPredicted;
  std::function<Answer()> evaluate;  // empty: out of reach
  std::string remark = {};           // why out of reach, disputed, or missed
  Standing standing = Standing::kInScope;
  Compare compare = Compare::kRatio;
  double other = 0;  // of kOtherFigure: the paper's other value; the remark has its place
};

// A paper's set-up, or set-ups, for the page, and its evaluators.
struct PaperModel {
  std::string paper;
  std::vector<std::string> prose;  // what was calibrated and why, a paragraph each
  // What holds for some answers only comes after what holds for all, and has a name.
  struct NamedSetup {
    std::string name;
    std::shared_ptr<const Setup> setup;
  };
  std::vector<NamedSetup> setups;
  // The program's answers with the first set-up, as a cluster file (ClusterFile): text, with
  // console blocks of commands only.
  std::string commands;
  std::vector<Evaluator> evaluators;
};

PaperModel NetworkingPerspective();
PaperModel LowBandwidthTraining();
PaperModel CommunicationPatterns();
PaperModel NetworkEvolution();
PaperModel PerformanceAndConsistency();
std::vector<PaperModel> AllPaperModels();

}  // namespace stepcast::papers

#endif  // STEPCAST_TESTS_PAPERS_EVALUATOR_H_
