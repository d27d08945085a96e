// docs/reference/papers.md: every row beside the model's answer.
#ifndef STEPCAST_TESTS_PAPERS_PAGE_H_
#define STEPCAST_TESTS_PAPERS_PAGE_H_

#include <string>
#include <vector>

#include "tests/papers/evaluator.h"
#include "tests/papers/rows.h"

namespace stepcast::papers {

// A value within this share of the printed one is reproduced; what is counted has nothing to fit.
inline constexpr double kTolerance = 0.25;
inline constexpr double kCountedTolerance = 0.1;

struct Judgement {
  Row row;
  Evaluator evaluator;
  Answer answer;
  bool good = false;  // within the tolerance, or the claim holds

  bool in_reach() const { return evaluator.standing != Standing::kOutOfReach; }
  // Reproduced, of all in reach: what is disputed is not, whatever the model says.
  bool reproduced() const { return good && evaluator.standing != Standing::kDisputed; }
  // Judged by the value printed in the row, which nothing contradicts.
  bool undisputed() const { return evaluator.standing == Standing::kInScope; }
};

// One for each row, in the order of the rows. Rows without an evaluator are left out.
std::vector<Judgement> Judge(const std::vector<Row>& rows, const std::vector<PaperModel>& models);

// Counted in three ways: of the undisputed rows, of those in reach, of all.
struct Tally {
  int all = 0;
  int in_reach = 0;
  int undisputed = 0;
  int undisputed_good = 0;
  int other_figure = 0;  // judged by the paper's other figure
  int disputed = 0;
  int good = 0;       // of all; what is disputed or out of reach is not
  int predicted = 0;  // of those in reach
  int predicted_good = 0;
};
// Counts the quantities or the claims; those of one paper, or of all where it is empty.
Tally Count(const std::vector<Judgement>& judgements, bool claims, const std::string& paper = "");

// Where the first set-up of a paper is a cluster file, in the source tree.
std::string ClusterFile(const std::string& paper);

std::string RenderPage(const std::vector<Judgement>& judgements,
                       const std::vector<PaperModel>& models);

// The page with what its commands print as `old` has it, where that has the same commands.
std::string WithOutputsOf(const std::string& old, const std::string& page);

// Whether two texts agree but for numbers that differ by a few per cent, as another processor's
// rounding makes them.
bool SameButForNoise(const std::string& said, const std::string& actual);

}  // namespace stepcast::papers

#endif  // STEPCAST_TESTS_PAPERS_PAGE_H_
