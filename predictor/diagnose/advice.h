// What could be done about a slow step, and what could be measured next: plans and measurements to
// be forecast, without a judgement of their own.
#ifndef STEPCAST_PREDICTOR_DIAGNOSE_ADVICE_H_
#define STEPCAST_PREDICTOR_DIAGNOSE_ADVICE_H_

#include <string>
#include <vector>

#include "predictor/diagnose/diagnose.h"
#include "predictor/diagnose/hypotheses.h"

namespace stepcast::internal {

struct RemedyIdea {
  std::string text;
  Plan plan;
  bool cured = false;    // the cause is gone
  bool repairs = false;  // and that is all
};
std::vector<RemedyIdea> RemediesFor(const Hypothesis& hypothesis, const Predictor& predictor,
                                    const Forecaster& model);

struct Candidate {
  Measurement measurement;
  std::string text;
  std::string command;
};
// Those that are not known yet.
std::vector<Candidate> CandidatesFor(const Complaint& complaint, const Predictor& predictor);

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_DIAGNOSE_ADVICE_H_
