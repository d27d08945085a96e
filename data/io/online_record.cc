// What does not follow from the rest is written, such as the normal equations, whose rounding is
// that of the order in which rows came.
#include "data/io/online_record.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/io/json_members.h"
#include "data/io/online_record_json.h"
#include "data/io/strict_json.h"
#include "data/io/text_parts.h"
#include "data/plan/bucket_words.h"
#include "data/plan/field_list.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/input_error.h"
#include "data/units/shortest.h"
#include "data/values/compression.h"
#include "data/values/names.h"

namespace stepcast {
namespace {

using nlohmann::json;

constexpr int kVersion = 3;  // 1 told plans apart that have one answer; 2 had one kind of drift
constexpr auto kMostSeenRows = static_cast<double>(kMostObservedRows);
constexpr double kMostLatestRows = 1e3;

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

// ---- Plans: quantities are in SI units, so that they come back bit by bit.

class PlanWriter {
 public:
  explicit PlanWriter(json* to) : to_(to) {}

  template <class T>
  void operator()(const char* name, const T& value) const {
    (*to_)[name] = value;
  }
  void operator()(const char* name, const Compression& value) const {
    (*to_)[name] = FormatCompression(value);
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
  explicit PlanReader(JsonMembers* from) : from_(from) {}

  void operator()(const char* name, int& value) const {
    value = static_cast<int>(from_->Whole(name, -1e9, 1e9));
  }
  void operator()(const char* name, double& value) const {
    value = from_->Number(name, -JsonMembers::kMost, JsonMembers::kMost);
  }
  void operator()(const char* name, bool& value) const { value = from_->YesNo(name); }
  // Records of before there were any lack it.
  void operator()(const char* name, Compression& value) const {
    if (!from_->Has(name)) return;
    value = ParseCompression(from_->Text(name), InputPlace{"", 0, from_->Place(name)});
  }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(const char* name, T& value) const {
    value =
        static_cast<T>(from_->Whole(name, 0, static_cast<double>(NamesOf(T()).names.size()) - 1));
  }
  template <class D, class T>
  void operator()(const char* name, Quantity<D, T>& value) const {
    value = Quantity<D, T>::FromSi(from_->Number(name, -JsonMembers::kMost, JsonMembers::kMost));
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) const {
    if (from_->Has(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::vector<int>& values) const {
    for (const json& value : from_->Array(name)) {
      const double number = JsonMembers::NumberOf(value, from_->Place(name), 0, 1e6);
      if (number != std::floor(number))
        RefuseMember(from_->Place(name), value.dump(), "is not whole");
      values.push_back(static_cast<int>(number));
    }
  }
  void operator()(const char* name, std::vector<std::string>& values) const {
    for (const json& value : from_->Array(name)) {
      values.push_back(JsonMembers::TextOf(value, from_->Place(name)));
    }
  }

 private:
  JsonMembers* from_;
};

json ToJson(const Plan& plan) {
  json written = json::object();
  const PlanWriter write(&written);
  ForEachField([&](const FieldFacts& facts, auto field) { write(facts.state, field.Of(plan)); });
  return written;
}

Plan ReadPlanOf(JsonMembers* reader) {
  JsonMembers parts(reader->Member("plan"), "plan");
  Plan plan;
  plan.placement.clear();
  const PlanReader read_part(&parts);
  ForEachField(
      [&](const FieldFacts& facts, auto field) { read_part(facts.state, field.Of(plan)); });
  parts.Finish();
  return plan;
}

json ToJson(const MeasuredPlan& observed) {
  json times = json::array();
  for (const MeasuredTime& time : observed.times) {
    times.push_back({{"log_step_time_s", time.log_step}, {"rows", time.rows}});
  }
  return {{"plan", ToJson(observed.plan)},    {"times", std::move(times)},
          {"last_row", observed.last},        {"log_step", observed.log_step},
          {"weight", observed.weight},        {"target", observed.target},
          {"slopes", ToJson(observed.slopes)}};
}

std::vector<MeasuredTime> ReadTimes(const json& array) {
  std::vector<MeasuredTime> times;
  for (const json& value : array) {
    JsonMembers reader(value, "times");
    MeasuredTime time;
    time.log_step = reader.Number("log_step_time_s", -1e3, 1e3);
    time.rows = reader.Number("rows", 1, kMostSeenRows);
    reader.Finish();
    const bool whole = time.rows == std::floor(time.rows);
    if (!whole || (!times.empty() && !(times.back().log_step < time.log_step))) {
      RefuseMember("times", value.dump(), "is out of order, or no number of rows");
    }
    times.push_back(time);
  }
  return times;
}

MeasuredPlan ReadPlan(const json& value) {
  JsonMembers reader(value, "plans");
  MeasuredPlan read;
  read.plan = ReadPlanOf(&reader);
  read.times = ReadTimes(reader.Array("times"));
  read.last = reader.Whole("last_row", 1, kMostSeenRows);
  read.log_step = reader.Number("log_step", -1e3, 1e3);
  read.weight = reader.Number("weight", 0, JsonMembers::kMost);
  read.target = reader.Number("target", -JsonMembers::kMost, JsonMembers::kMost);
  read.slopes = reader.Vector("slopes");
  reader.Finish();
  return read;
}

json ToJson(const OnlineRecord::LatestRow& row) {
  return {{"plan", ToJson(row.plan)},
          {"log_step_time_s", row.log_step},
          {"residual", row.residual},
          {"sd", row.sd},
          {"slopes", row.slopes}};
}

OnlineRecord::LatestRow ReadLatestRow(const json& value) {
  JsonMembers reader(value, "latest");
  OnlineRecord::LatestRow row;
  row.plan = ReadPlanOf(&reader);
  row.log_step = reader.Number("log_step_time_s", -1e3, 1e3);
  row.residual = reader.Number("residual", -1e6, 1e6);
  row.sd = reader.Number("sd", 1e-9, 1e6);
  row.slopes = reader.Numbers("slopes");
  reader.Finish();
  return row;
}

constexpr double kMostSeen = 1e9;

json ToJson(const CalibratedRange::Ran& ran) {
  json step = {
      {"shard", NameOf(ran.shard)}, {"sharers", ran.sharers}, {"local_batch", ran.local_batch}};
  if (ran.bytes_per_parameter > 0) step["bytes_per_parameter"] = ran.bytes_per_parameter;
  if (ran.compress.exists()) step["compress"] = FormatCompression(ran.compress);
  if (ran.bucket) step["bucket_bytes"] = ran.bucket->in(kBytes);
  return step;
}

// A step that has run, of at most so many samples. Older records have [shard, sharers, local
// batch].
CalibratedRange::Ran ReadStepThatRan(const json& value, int most_batch) {
  json named = value;
  if (value.is_array() && value.size() == 3) {
    named = {{"shard", value[0]}, {"sharers", value[1]}, {"local_batch", value[2]}};
  }
  if (!named.is_object()) {
    RefuseMember("range.ran", value.dump(), "is no step that has run",
                 "shard, sharers, local_batch");
  }
  JsonMembers box(named, "range.ran");
  const InputPlace place{"", 0, "range.ran"};
  const auto text = [&](const char* name) {
    return JsonMembers::TextOf(box.Member(name), "range.ran");
  };
  CalibratedRange::Ran ran;
  ran.shard = ParseEnum<Shard>(text("shard"), place);
  ran.sharers = static_cast<int>(box.Whole("sharers", 1, kMostSeen));
  ran.local_batch = static_cast<int>(box.Whole("local_batch", 1, most_batch));
  if (box.Has("bytes_per_parameter")) {
    const NumberRange sent = FindPlanField("bytes-per-parameter")->range;
    ran.bytes_per_parameter = static_cast<int>(box.Whole("bytes_per_parameter", 0, sent.most));
  }
  if (box.Has("compress")) ran.compress = ParseCompression(text("compress"), place);
  if (box.Has("bucket_bytes")) {
    ran.bucket =
        Bytes(JsonMembers::NumberOf(box.Member("bucket_bytes"), "range.ran",
                                    kBucketPerTensor.cap.in(kBytes), kOneMessage.cap.in(kBytes)));
  }
  box.Finish();
  return ran;
}

// The steps, by workload.
void ReadRan(const json& value, CalibratedRange* range) {
  if (!value.is_object()) RefuseMember("range.ran", value.type_name(), "is no object");
  for (const auto& [scope, steps] : value.items()) {
    const auto batches = range->local_batch.find(scope);
    if (batches == range->local_batch.end()) {
      RefuseMember("range.ran", scope, "has no batches", "a workload of local_batch");
    }
    if (!steps.is_array()) RefuseMember("range.ran", steps.type_name(), "is no array");
    for (const json& step : steps) {
      batches->second.AddRan(ReadStepThatRan(step, batches->second.max));
    }
  }
}

CalibratedRange ReadRange(const json& value) {
  JsonMembers box(value, "range");
  CalibratedRange range;
  range.max_workers = static_cast<int>(box.Whole("max_workers", 0, kMostSeen));
  range.max_nodes = static_cast<int>(box.Whole("max_nodes", 0, kMostSeen));
  range.max_devices_per_node = static_cast<int>(box.Whole("max_devices_per_node", 0, kMostSeen));
  const json& batches = box.Member("local_batch");
  if (!batches.is_object()) RefuseMember("range.local_batch", batches.type_name(), "is no object");
  for (const auto& [scope, limits] : batches.items()) {
    std::vector<int> numbers;
    if (limits.is_array() && limits.size() == 3) {
      for (const json& limit : limits) {
        if (limit.is_number_integer()) {
          numbers.push_back(
              static_cast<int>(JsonMembers::NumberOf(limit, "range.local_batch", 0, kMostSeen)));
        }
      }
    }
    if (numbers.size() != 3 || numbers[0] < 1 || numbers[1] < numbers[0]) {
      RefuseMember("range.local_batch", limits.dump(), "is no range of batches",
                   "least, most, workers");
    }
    range.local_batch[scope] = {numbers[0], numbers[1], numbers[2]};
  }
  if (box.Has("ran")) ReadRan(box.Member("ran"), &range);
  if (box.Has("hosts_alone")) {
    for (const json& host : box.Array("hosts_alone")) {
      range.hosts_alone.insert(JsonMembers::TextOf(host, "range.hosts_alone"));
    }
  }
  if (box.Has("exchanges")) {
    range.exchanges.emplace();
    for (const json& names : box.Array("exchanges")) {
      if (!names.is_array() || names.empty() || names.size() > 2) {
        RefuseMember("range.exchanges", names.dump(), "is no exchange", "strategy, transport");
      }
      const auto text = [&](std::size_t i) {
        return JsonMembers::TextOf(names[i], "range.exchanges");
      };
      const InputPlace place{"", 0, "range.exchanges"};
      CalibratedRange::Exchange exchange{ParseEnum<Strategy>(text(0), place)};
      if (names.size() == 2) exchange.transport = ParseEnum<Transport>(text(1), place);
      range.exchanges->insert(exchange);
    }
  }
  if (box.Has("bandwidth_bytes_per_s")) {
    const json& rates = box.Array("bandwidth_bytes_per_s");
    const bool pair = rates.size() == 2 && rates[0].is_number() && rates[1].is_number();
    const double low =
        pair ? JsonMembers::NumberOf(rates[0], "range.bandwidth_bytes_per_s", 0, JsonMembers::kMost)
             : 0;
    const double high =
        pair ? JsonMembers::NumberOf(rates[1], "range.bandwidth_bytes_per_s", 0, JsonMembers::kMost)
             : 0;
    if (!(low > 0) || high < low) {
      RefuseMember("range.bandwidth_bytes_per_s", rates.dump(), "is no range of rates",
                   "least, most");
    }
    range.bandwidth = {DataRate<>::FromSi(low), DataRate<>::FromSi(high)};
  }
  box.Finish();
  return range;
}

}  // namespace

json OnlineRecordJson(const OnlineRecord& record) {
  json out;
  out["version"] = kVersion;
  out["cluster"] = record.cluster;
  out["workload"] = record.workload;
  out["device"] = record.device;
  out["start_log_values"] = ToJson(record.start_log_values);
  out["start_log_sds"] = ToJson(record.start_log_sds);
  out["start_scatter"] = record.start_scatter;
  if (record.anew) out["anew"] = FormatCalibrationPart(*record.anew, "anew");
  out["earlier_rows"] = record.earlier_rows;
  out["rows"] = record.rows;
  out["y"] = ToJson(record.y);
  out["scatter"] = record.scatter;
  out["next_scatter"] = record.next_scatter;
  out["next_plan"] = record.next_plan;
  out["smallest_batch"] = record.smallest_batch;
  json latest = json::array();
  for (const OnlineRecord::LatestRow& row : record.latest) latest.push_back(ToJson(row));
  out["drift"] = {{"sums", record.drift_sums}, {"rows", record.drift_rows}};
  out["latest"] = std::move(latest);
  out["folded"] = LowerTriangle(record.folded);
  out["folded_b"] = ToJson(record.folded_b);
  out["a"] = LowerTriangle(record.a);
  out["b"] = ToJson(record.b);
  if (record.least_activations.si() > 0) {
    out["least_activations_bytes"] = record.least_activations.in(kBytes);
  }
  json batches = json::object();
  json ran = json::object();
  for (const auto& [scope, batch] : record.range.local_batch) {
    batches[scope] = {batch.min, batch.max, batch.max_workers};
    if (!batch.tells_more_than_batches()) continue;
    for (const CalibratedRange::Ran& step : batch.ran) ran[scope].push_back(ToJson(step));
  }
  out["range"] = {{"max_workers", record.range.max_workers},
                  {"max_nodes", record.range.max_nodes},
                  {"max_devices_per_node", record.range.max_devices_per_node},
                  {"local_batch", std::move(batches)}};
  if (!ran.empty()) out["range"]["ran"] = std::move(ran);
  if (!record.range.hosts_alone.empty()) out["range"]["hosts_alone"] = record.range.hosts_alone;
  if (const auto& exchanges = record.range.exchanges) {
    json names = json::array();
    for (const CalibratedRange::Exchange& exchange : *exchanges) {
      names.push_back({StrategyName(exchange.strategy)});
      if (exchange.transport) names.back().push_back(NameOf(*exchange.transport));
    }
    out["range"]["exchanges"] = std::move(names);
  }
  if (const auto& rates = record.range.bandwidth) {
    out["range"]["bandwidth_bytes_per_s"] = {rates->min.si(), rates->max.si()};
  }
  json plans = json::array();
  for (const MeasuredPlan& plan : record.plans) plans.push_back(ToJson(plan));
  out["plans"] = std::move(plans);
  return out;
}

OnlineRecord ReadOnlineRecord(const json& in) {
  JsonMembers reader(in, "");
  if (reader.Whole("version", -1e9, 1e9) != kVersion) {
    RefuseMember("version", reader.Member("version").dump(), "is another",
                 std::to_string(kVersion));
  }
  OnlineRecord record;
  record.cluster = reader.Text("cluster");
  record.workload = reader.Text("workload");
  record.device = reader.Text("device");
  record.start_log_values = reader.Vector("start_log_values");
  record.start_log_sds = reader.Vector("start_log_sds");
  record.start_scatter = reader.Number("start_scatter", 0, 1e6);
  if (reader.Has("anew")) record.anew = ParseCalibrationPart(reader.Text("anew"), "anew");
  record.earlier_rows = reader.Whole("earlier_rows", 0, kMostSeenRows);
  record.rows = reader.Whole("rows", 0, kMostSeenRows);
  record.y = reader.Vector("y");
  record.scatter = reader.Number("scatter", 1e-6, 1e6);
  record.next_scatter = reader.Whole("next_scatter", 0, 2 * kMostSeenRows);
  JsonMembers drift(reader.Member("drift"), "drift");
  record.drift_sums = drift.Numbers("sums");
  for (const double sum : record.drift_sums) {
    if (sum < 0) RefuseMember("drift.sums", ShortestText(sum), "is out of range", "at least 0");
  }
  for (const double of : drift.Numbers("rows")) {
    if (of < 0 || of > kMostLatestRows || of != std::floor(of)) {
      RefuseMember("drift.rows", ShortestText(of), "is no number of rows");
    }
    record.drift_rows.push_back(static_cast<std::int64_t>(of));
  }
  drift.Finish();
  for (const json& value : reader.Array("latest")) record.latest.push_back(ReadLatestRow(value));
  record.folded = reader.Triangle("folded");
  record.folded_b = reader.Vector("folded_b");
  record.a = reader.Triangle("a");
  record.b = reader.Vector("b");
  record.range = ReadRange(reader.Member("range"));
  for (const json& value : reader.Array("plans")) record.plans.push_back(ReadPlan(value));
  record.next_plan = reader.Whole("next_plan", 0, kMostSeenRows);
  record.smallest_batch = static_cast<int>(reader.Whole("smallest_batch", 0, kMostBatch));
  if (reader.Has("least_activations_bytes")) {
    constexpr double kMostBytes = 1e18;
    record.least_activations = Bytes(reader.Number("least_activations_bytes", 0, kMostBytes));
  }
  reader.Finish();
  return record;
}

std::string FormatOnlineRecord(const OnlineRecord& record) {
  return OnlineRecordJson(record).dump(-1, ' ', false, json::error_handler_t::replace);
}

OnlineRecord ParseOnlineRecord(const std::string& text) {
  return ReadOnlineRecord(
      ParseStrictJson(text, kDeepestOnlineRecord, {"", 0, "state"}, "what was saved"));
}

}  // namespace stepcast
