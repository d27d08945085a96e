// What is written is read again, and says the same; and answers are numbers.
#ifndef STEPCAST_TESTS_FUZZ_WRITTEN_H_
#define STEPCAST_TESTS_FUZZ_WRITTEN_H_

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "data/io/fleet_record.h"
#include "data/io/machines.h"
#include "data/io/online_record.h"
#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "data/plan/field_list.h"
#include "predictor/json/json.h"
#include "predictor/prediction_fields.h"
#include "predictor/predictor.h"
#include "tests/fuzz/door.h"

namespace stepcast::fuzz {

// Text that a writer has written, again, of what a reader made of it.
inline void RequireSame(const std::string& again, const std::string& text) {
  Require(again == text, "what was written is read as something else:\n" + text + "\n" + again);
}

inline void RequireReadAgain(const Workload& workload) {
  const std::string text = FormatWorkload(workload);
  const Workload again = ReadAgain(text, [](const auto& t) { return ParseWorkload(t, "again"); });
  RequireSame(FormatWorkload(again), text);
  Require(again.gradient_bytes == workload.gradient_bytes &&
              again.parameters == workload.parameters &&
              again.trainable_parameters == workload.trainable_parameters &&
              again.layers.size() == workload.layers.size(),
          "other totals are read: " + text);
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const Layer& a = workload.layers[i];
    const Layer& b = again.layers[i];
    Require(a.kind == b.kind && a.tensors == b.tensors && a.statistics == b.statistics &&
                a.forward_flop == b.forward_flop && a.activation_bytes == b.activation_bytes &&
                a.operation == b.operation,
            "another layer " + std::to_string(i) + " is read: " + text);
  }
}

inline void RequireReadAgain(const Cluster& cluster) {
  const std::string text = FormatCluster(cluster);
  const Cluster again = ReadAgain(text, [](const auto& t) { return ParseCluster(t, "again"); });
  RequireSame(FormatCluster(again), text);
  Require(again.name == cluster.name && again.title == cluster.title &&
              again.source == cluster.source && again.notes == cluster.notes &&
              again.device == cluster.device && again.sources == cluster.sources &&
              again.hosts.size() == cluster.hosts.size() &&
              again.calibration.has_value() == cluster.calibration.has_value(),
          "another cluster is read: " + text);
}

template <class T>
bool Same(const T& a, const T& b) {
  return a == b;
}
// A flag in another unit than the column's is rounded twice.
template <class D>
bool Same(const std::optional<Quantity<D>>& a, const std::optional<Quantity<D>>& b) {
  constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
  if (!a || !b) return a == b;
  return std::abs(a->si() - b->si()) <= kRounding * a->si();
}

inline void RequireSamePlan(const Plan& a, const Plan& b) {
  ForEachField([&](const FieldFacts& facts, auto at) {
    using At = decltype(at);
    if (facts.column == nullptr) return;
    Require(Same(At::Of(a), At::Of(b)), std::string("another ") + facts.column + " is read");
  });
}

inline void RequireReadAgain(const std::vector<Run>& runs) {
  const std::string text = FormatRuns(runs);
  const std::vector<Run> again =
      ReadAgain(text, [](const auto& t) { return ParseRuns(t, "again"); });
  RequireSame(FormatRuns(again), text);
  Require(again.size() == runs.size(), "other runs are read");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RequireSamePlan(runs[i].plan, again[i].plan);
    Require(runs[i].workload == again[i].workload && runs[i].device == again[i].device &&
                runs[i].step_time == again[i].step_time &&
                runs[i].exposed_sync == again[i].exposed_sync &&
                runs[i].source == again[i].source && runs[i].extra == again[i].extra,
            "another run is read");
  }
}

inline void RequireReadAgain(const ComputeProfile& profile) {
  const std::string text = FormatComputeProfile(profile);
  const ReadProfile again =
      ReadAgain(text, [](const auto& t) { return ParseComputeProfile(t, "again"); });
  Require(!again.torn && again.whole_bytes == text.size(), "a whole profile is read as a torn one");
  RequireSame(FormatComputeProfile(again.profile), text);
}

inline void RequireReadAgain(const OnlineRecord& record) {
  const std::string text = FormatOnlineRecord(record);
  RequireSame(FormatOnlineRecord(ReadAgain(text, ParseOnlineRecord)), text);
}

inline void RequireReadAgain(const FleetRecord& record) {
  const std::string text = FormatFleetRecord(record);
  RequireSame(FormatFleetRecord(ReadAgain(text, ParseFleetRecord)), text);
}

inline void RequireFinite(double number, const std::string& what) {
  Require(std::isfinite(number), what + " is " + std::to_string(number));
}

inline void RequireFiniteJson(const Json& json, const std::string& what) {
  if (json.is_number_float()) RequireFinite(json.get<double>(), what);
  for (const auto& [key, value] : json.items()) {
    if (json.is_structured()) RequireFiniteJson(value, what + "." + key);
  }
}

// Each part of a prediction: JSON has null for what is not finite.
struct RequireFiniteParts {
  void operator()(const char* /*group*/, const char* name, double value) const {
    RequireFinite(value, name);
  }
  template <class D>
  void operator()(const char* /*group*/, const char* name, const Quantity<D>& value) const {
    RequireFinite(value.si(), name);
  }
  void operator()(const char* /*group*/, const char* name, const Count& count) const {
    RequireFinite(count.value, name);
  }
  void operator()(const char* /*group*/, const char* /*name*/, const std::string& /*text*/) const {}
  template <class T>
  void operator()(const char* group, const char* name, const std::optional<T>& value) const {
    if (value) (*this)(group, name, *value);
  }
};

// The answer to the plan, or why there is none.
inline void RequireAnswer(const Predictor& predictor, const Plan& plan) {
  Try([&] {
    const Prediction p = predictor.Predict(plan);
    Require(p.step_time.si() > 0 && p.low <= p.step_time && p.step_time <= p.high,
            "a step of " + std::to_string(p.step_time.si()) + " s, " + std::to_string(p.low.si()) +
                " to " + std::to_string(p.high.si()));
    ForEachPredicted(p, RequireFiniteParts());
  });
}

}  // namespace stepcast::fuzz

#endif  // STEPCAST_TESTS_FUZZ_WRITTEN_H_
