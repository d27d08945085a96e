// Predictions as JSON: what `stepcast predict --json` prints and `stepcast serve` answers. Keys are
// a contract; units are in their names.
//
// Needs nlohmann-json, and is a library of its own: of the program, the service and the package for
// Python.
#ifndef STEPCAST_PREDICTOR_JSON_JSON_H_
#define STEPCAST_PREDICTOR_JSON_JSON_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/record/machine.h"
#include "data/record/workload.h"
#include "predictor/explanation.h"
#include "predictor/prediction.h"
#include "predictor/search/payoff.h"
#include "predictor/search/unequal.h"

namespace stepcast {

// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

// Whom a prediction is about. Refers to what the caller keeps.
struct Subject {
  const Cluster& cluster;
  const Workload& workload;
  const std::string& device;
  const std::optional<Device>& facts;  // the device's data sheet
};

// As text: on one line, or indented. What is no UTF-8, as names of files may be, becomes U+FFFD.
std::string JsonText(const Json& json, int indent = -1);

// A number of bytes or transfers: whole where it is whole.
Json CountJson(double value);
// null where there is none, or none that is finite.
Json NumberJson(const std::optional<double>& value);
// null where there is none.
template <class T>
Json OptionalJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
// The same of a quantity, in `unit`.
template <class Q, class U>
Json OptionalJson(const std::optional<Q>& value, const U& unit) {
  return value ? Json(value->in(unit)) : Json(nullptr);
}
// null where there is no text.
Json TextJson(const std::string& text);

// The plan by its columns (data/plan/fields.h), with workers and global_batch.
Json PlanJson(const Plan& plan);
Json PredictionJson(const Prediction& prediction, const Plan& plan, const Subject& subject);

// The same with every term and parameter behind it.
Json ExplanationJson(const Explanation& explanation, const Plan& plan, const Subject& subject);

// The list of what a plan says, for who makes controls of it: column, flag, meaning, what a value
// may be, its default, and the strategies beside which it may say something else.
Json PlanFieldsJson();
// The same of how the workload is trained, of which a plan says nothing: `noun` stands behind a
// word that says too little by itself.
Json TrainingFactsJson();

// What would make a plan pay: null where nothing does.
Json PayoffJson(const Payoff& payoff);

// What it is worth to share samples out by speed; null for what there is none of.
Json UnequalJson(const UnequalWorkers& unequal);

// The keys of one cluster, or workload, in a list.
Json ClusterJson(const Cluster& cluster);
Json WorkloadJson(const Workload& workload);
// How the workload is trained, a key for each fact of it.
void TellTraining(const Workload& workload, Json* json);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_JSON_JSON_H_
