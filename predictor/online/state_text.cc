// What was learnt as JSON, and back. Numbers are written with as many digits as it takes to read
// the same bits; what does not follow from the rest is written, such as the normal equations, whose
// rounding is that of the order in which rows came.
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/plan/field_list.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "predictor/online/state.h"

namespace stepcast {
namespace {

using internal::MeasuredTime;
using internal::ObservedPlan;
using nlohmann::json;

constexpr int kVersion = 2;  // 1 told plans apart that have one answer
constexpr double kMostRows = 1e9;

[[noreturn]] void Refuse(const std::string& key, const std::string& value,
                         const std::string& problem, const std::string& allowed = "") {
  throw InputError({"", 0, key}, value, problem, allowed);
}

// ---- Values.

json ToJson(const Eigen::VectorXd& vector) {
  return std::vector<double>(vector.data(), vector.data() + vector.size());
}
// Row by row, up to the diagonal.
json LowerTriangle(const Eigen::MatrixXd& matrix) {
  std::vector<double> values;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) values.push_back(matrix(i, j));
  }
  return values;
}

// The members of an object, each of which has to be there; no other may be.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Refuse(where_, object.type_name(), "is no object");
  }

  const json& Member(const char* name) {
    const auto it = object_.find(name);
    if (it == object_.end()) Refuse(Place(name), "", "is missing");
    ++read_;
    return *it;
  }
  bool Has(const char* name) const { return object_.contains(name); }

  double Number(const char* name, double least, double most) {
    return NumberOf(Member(name), Place(name), least, most);
  }
  std::int64_t Whole(const char* name, double least, double most) {
    const json& value = Member(name);
    if (!value.is_number_integer()) Refuse(Place(name), value.type_name(), "is no whole number");
    return static_cast<std::int64_t>(NumberOf(value, Place(name), least, most));
  }
  bool YesNo(const char* name) {
    const json& value = Member(name);
    if (!value.is_boolean()) Refuse(Place(name), value.type_name(), "is neither true nor false");
    return value.get<bool>();
  }
  std::string Text(const char* name) {
    const json& value = Member(name);
    if (!value.is_string()) Refuse(Place(name), value.type_name(), "is no text");
    return value.get<std::string>();
  }
  const json& Array(const char* name) {
    const json& value = Member(name);
    if (!value.is_array()) Refuse(Place(name), value.type_name(), "is no array");
    return value;
  }
  std::vector<double> Numbers(const char* name, std::size_t size) {
    const json& array = Array(name);
    if (array.size() != size) {
      Refuse(Place(name), std::to_string(array.size()) + " numbers", "is of another length",
             std::to_string(size));
    }
    std::vector<double> numbers;
    for (const json& number : array) {
      numbers.push_back(NumberOf(number, Place(name), -kMost, kMost));
    }
    return numbers;
  }
  Eigen::VectorXd Vector(const char* name, Eigen::Index size) {
    const std::vector<double> numbers = Numbers(name, static_cast<std::size_t>(size));
    return Eigen::Map<const Eigen::VectorXd>(numbers.data(), size);
  }
  Eigen::MatrixXd Triangle(const char* name, Eigen::Index size) {
    const std::vector<double> numbers =
        Numbers(name, static_cast<std::size_t>(size * (size + 1) / 2));
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
    std::size_t at = 0;
    for (Eigen::Index i = 0; i < size; ++i) {
      for (Eigen::Index j = 0; j <= i; ++j) matrix(i, j) = numbers[at++];
    }
    return matrix;
  }
  // After the last member.
  void Finish() const {
    if (read_ != object_.size()) {
      Refuse(where_, std::to_string(object_.size()) + " members", "has members that are not known",
             std::to_string(read_));
    }
  }
  std::string Place(const char* name) const { return where_.empty() ? name : where_ + "." + name; }

  static constexpr double kMost = 1e100;
  static double NumberOf(const json& value, const std::string& place, double least, double most) {
    if (!value.is_number()) Refuse(place, value.type_name(), "is no number");
    const auto number = value.get<double>();
    if (!(number >= least && number <= most)) Refuse(place, value.dump(), "is out of range");
    return number;
  }

 private:
  const json& object_;
  std::string where_;
  std::size_t read_ = 0;
};

// ---- Plans: quantities are in SI units, so that they come back bit by bit.

class PlanWriter {
 public:
  explicit PlanWriter(json* to) : to_(to) {}

  template <class T>
  void operator()(const char* name, const T& value) const {
    (*to_)[name] = value;
  }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(const char* name, const T& value) const {
    (*to_)[name] = static_cast<int>(value);
  }
  template <class D, class T>
  void operator()(const char* name, const Quantity<D, T>& value) const {
    (*to_)[name] = value.si();
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) const {
    if (value) (*this)(name, *value);
  }

 private:
  json* to_;
};

class PlanReader {
 public:
  explicit PlanReader(Reader* from) : from_(from) {}

  void operator()(const char* name, int& value) const {
    value = static_cast<int>(from_->Whole(name, -1e9, 1e9));
  }
  void operator()(const char* name, double& value) const {
    value = from_->Number(name, -Reader::kMost, Reader::kMost);
  }
  void operator()(const char* name, bool& value) const { value = from_->YesNo(name); }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(const char* name, T& value) const {
    value =
        static_cast<T>(from_->Whole(name, 0, static_cast<double>(NamesOf(T()).names.size()) - 1));
  }
  template <class D, class T>
  void operator()(const char* name, Quantity<D, T>& value) const {
    value = Quantity<D, T>::FromSi(from_->Number(name, -Reader::kMost, Reader::kMost));
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) const {
    if (from_->Has(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::vector<int>& values) const {
    for (const json& value : from_->Array(name)) {
      const double number = Reader::NumberOf(value, from_->Place(name), 0, 1e6);
      if (number != std::floor(number)) Refuse(from_->Place(name), value.dump(), "is not whole");
      values.push_back(static_cast<int>(number));
    }
  }
  void operator()(const char* name, std::vector<std::string>& values) const {
    for (const json& value : from_->Array(name)) {
      if (!value.is_string()) Refuse(from_->Place(name), value.type_name(), "is no text");
      values.push_back(value.get<std::string>());
    }
  }

 private:
  Reader* from_;
};

json ToJson(const ObservedPlan& observed) {
  json plan = json::object();
  const PlanWriter write(&plan);
  ForEachField(
      [&](const FieldFacts& facts, auto field) { write(facts.state, field.Of(observed.plan)); });
  json times = json::array();
  for (const MeasuredTime& time : observed.times) {
    times.push_back({{"log_step_time_s", time.log_step}, {"rows", time.rows}});
  }
  return {{"plan", std::move(plan)},          {"times", std::move(times)},
          {"last_row", observed.last},        {"log_step", observed.log_step},
          {"weight", observed.weight},        {"target", observed.target},
          {"slopes", ToJson(observed.slopes)}};
}

std::vector<MeasuredTime> ReadTimes(const json& array) {
  std::vector<MeasuredTime> times;
  for (const json& value : array) {
    Reader reader(value, "times");
    MeasuredTime time;
    time.log_step = reader.Number("log_step_time_s", -1e3, 1e3);
    time.rows = reader.Number("rows", 1, kMostRows);
    reader.Finish();
    const bool whole = time.rows == std::floor(time.rows);
    if (!whole || (!times.empty() && !(times.back().log_step < time.log_step))) {
      Refuse("times", value.dump(), "is out of order, or no number of rows");
    }
    times.push_back(time);
  }
  if (times.empty() || times.size() > internal::kMostTimes) {
    Refuse("times", std::to_string(times.size()), "is no number of times that a plan has");
  }
  return times;
}

// ---- The start, to which all that was learnt is relative.

void CheckSame(const char* key, const std::string& text, const std::string& own) {
  if (text != own) Refuse(key, text, "is another", own);
}

void CheckSame(const char* key, const Eigen::VectorXd& numbers, const Eigen::VectorXd& own) {
  // Logarithms may be rounded otherwise on another machine.
  constexpr double kRounding = 1e-9;
  for (Eigen::Index i = 0; i < own.size(); ++i) {
    if (std::abs(numbers[i] - own[i]) <= kRounding * (1 + std::abs(own[i]))) continue;
    Refuse(key, std::to_string(numbers[i]),
           "is of another calibration of the cluster, or another workload", std::to_string(own[i]));
  }
}

}  // namespace

std::string internal::OnlineState::Export() const {
  json out;
  out["version"] = kVersion;
  out["cluster"] = start.cluster().name;
  out["workload"] = start.workload().name;
  out["device"] = start.device();
  out["start_log_values"] = ToJson(centre);
  out["start_log_sds"] = ToJson(Eigen::VectorXd(root.rowwise().norm()));
  out["start_scatter"] = start_scatter;
  out["rows"] = rows;
  out["y"] = ToJson(y);
  out["scatter"] = scatter;
  out["next_scatter"] = next_scatter;
  out["next_plan"] = next_plan;
  out["drift"] = {{"up", cusum.up}, {"down", cusum.down}, {"alarm", cusum.alarm}};
  out["folded"] = LowerTriangle(folded);
  out["folded_b"] = ToJson(folded_b);
  out["a"] = LowerTriangle(a);
  out["b"] = ToJson(b);
  json batches = json::object();
  for (const auto& [scope, batch] : range.local_batch) {
    batches[scope] = {batch.min, batch.max, batch.max_workers};
  }
  out["range"] = {{"max_workers", range.max_workers},
                  {"max_nodes", range.max_nodes},
                  {"max_devices_per_node", range.max_devices_per_node},
                  {"local_batch", std::move(batches)}};
  json observed = json::array();
  for (const ObservedPlan& plan : plans) observed.push_back(ToJson(plan));
  out["plans"] = std::move(observed);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

void internal::OnlineState::Import(const std::string& text) {
  const json in = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (in.is_discarded()) Refuse("state", text.substr(0, 20), "is not JSON");
  Reader reader(in, "");
  if (reader.Whole("version", -1e9, 1e9) != kVersion) {
    Refuse("version", reader.Member("version").dump(), "is another", std::to_string(kVersion));
  }
  CheckSame("cluster", reader.Text("cluster"), start.cluster().name);
  CheckSame("workload", reader.Text("workload"), start.workload().name);
  CheckSame("device", reader.Text("device"), start.device());
  CheckSame("start_log_values", reader.Vector("start_log_values", size()), centre);
  CheckSame("start_log_sds", reader.Vector("start_log_sds", size()), root.rowwise().norm());
  const Eigen::VectorXd own_scatter = Eigen::VectorXd::Constant(1, start_scatter);
  CheckSame("start_scatter", Eigen::VectorXd::Constant(1, reader.Number("start_scatter", 0, 1e6)),
            own_scatter);
  rows = reader.Whole("rows", 0, kMostRows);
  SetY(reader.Vector("y", size()));
  // In standard deviations of the start.
  constexpr double kFarthest = 1e3;
  if (!values.allFinite() || y.cwiseAbs().maxCoeff() > kFarthest) {
    Refuse("y", "", "is of no parameters that can be");
  }
  scatter = reader.Number("scatter", 1e-6, 1e6);
  next_scatter = reader.Whole("next_scatter", 0, 2 * kMostRows);
  Reader drift(reader.Member("drift"), "drift");
  cusum = {drift.Number("up", 0, 1e9), drift.Number("down", 0, 1e9), drift.YesNo("alarm")};
  drift.Finish();
  folded = reader.Triangle("folded", size());
  folded_b = reader.Vector("folded_b", size());
  const Eigen::MatrixXd with_start = Eigen::MatrixXd::Identity(size(), size()) + folded;
  if (with_start.selfadjointView<Eigen::Lower>().llt().info() != Eigen::Success) {
    Refuse("folded", "", "is of no normal equations");
  }
  a = reader.Triangle("a", size());
  b = reader.Vector("b", size());
  Reader box(reader.Member("range"), "range");
  constexpr double kMostSeen = 1e9;
  range.max_workers = static_cast<int>(box.Whole("max_workers", 0, kMostSeen));
  range.max_nodes = static_cast<int>(box.Whole("max_nodes", 0, kMostSeen));
  range.max_devices_per_node = static_cast<int>(box.Whole("max_devices_per_node", 0, kMostSeen));
  const json& batches = box.Member("local_batch");
  if (!batches.is_object()) Refuse("range.local_batch", batches.type_name(), "is no object");
  range.local_batch.clear();
  for (const auto& [scope, limits] : batches.items()) {
    std::vector<int> numbers;
    if (limits.is_array() && limits.size() == 3) {
      for (const json& value : limits) {
        if (value.is_number_integer()) {
          numbers.push_back(
              static_cast<int>(Reader::NumberOf(value, "range.local_batch", 0, kMostSeen)));
        }
      }
    }
    if (numbers.size() != 3 || numbers[0] < 1 || numbers[1] < numbers[0]) {
      Refuse("range.local_batch", limits.dump(), "is no range of batches", "least, most, workers");
    }
    range.local_batch[scope] = {numbers[0], numbers[1], numbers[2]};
  }
  box.Finish();

  const json& observed = reader.Array("plans");
  if (observed.size() > internal::kMostPlans) {
    Refuse("plans", std::to_string(observed.size()), "is too many",
           std::to_string(internal::kMostPlans));
  }
  double kept = 0;
  for (const json& value : observed) {
    Reader of_plan(value, "plans");
    Reader parts(of_plan.Member("plan"), "plan");
    Plan plan;
    plan.placement.clear();
    const PlanReader read_part(&parts);
    ForEachField(
        [&](const FieldFacts& facts, auto field) { read_part(facts.state, field.Of(plan)); });
    parts.Finish();
    const std::size_t before = plans.size();
    const std::size_t at = FindOrAdd(plan);
    if (at < before) Refuse("plans", parts.Member("placement").dump(), "is there twice");
    ObservedPlan& read = plans[at];
    read.times = ReadTimes(of_plan.Array("times"));
    for (const MeasuredTime& time : read.times) read.rows += time.rows;
    kept += read.rows;
    read.last = of_plan.Whole("last_row", 1, static_cast<double>(rows));
    read.log_step = of_plan.Number("log_step", -1e3, 1e3);
    read.weight = of_plan.Number("weight", 0, Reader::kMost);
    read.target = of_plan.Number("target", -Reader::kMost, Reader::kMost);
    read.slopes = of_plan.Vector("slopes", size());
    of_plan.Finish();
  }
  if (kept > static_cast<double>(rows) || (rows > 0 && plans.empty())) {
    Refuse("rows", std::to_string(rows), "is not what the plans have");
  }
  next_plan = static_cast<std::size_t>(
      reader.Whole("next_plan", 0, static_cast<double>(internal::kMostPlans)));
  reader.Finish();
  solver.compute(a);
  if (solver.info() != Eigen::Success) Refuse("a", "", "is not positive definite");
}

}  // namespace stepcast
