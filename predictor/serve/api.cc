#include "predictor/serve/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "data/plan/fields.h"
#include "data/record/input_error.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "predictor/json/json.h"
#include "predictor/serve/binary.h"
#include "predictor/serve/json_value.h"

namespace stepcast::serve {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kColumnsType = "application/octet-stream";
constexpr std::size_t kLongestKey = 60;  // that an error quotes
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// ---- Reading.

const char* KindText(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a text";
    case Kind::kColumn:
      return "an array of numbers";
    default:
      return "an object";
  }
}

// ---- The keys of each object.

using Keys = std::vector<const char*>;

Keys operator+(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// A property of the description of a plan, in one line of YAML.
std::string SchemaOf(const PlanField& field) {
  const bool yes_no = field.kind == FieldKind::kYesNo;
  const char* type = yes_no                             ? "boolean"
                     : field.kind == FieldKind::kCount  ? "integer"
                     : field.kind == FieldKind::kNumber ? "number"
                                                        : "string";
  std::string text = fmt::format("{}: {{type: {}", field.column, type);
  if (!field.words.empty()) text += fmt::format(", enum: [{}]", fmt::join(field.words, ", "));
  if (const std::string value = field.default_text(); !value.empty()) {
    text += ", default: " + (yes_no ? JsonText(value == "yes") : value);
  }
  return text + ", description: " + JsonText(field.meaning) + "}";
}

const Keys& TargetKeys() {
  static const Keys keys = [] {
    Keys all = {"cluster", "workload", "device", "job"};
    for (const TrainingFact& fact : TrainingFacts()) all.push_back(fact.key);
    all.push_back("parameters");
    return all;
  }();
  return keys;
}
const Keys& PlanKeys() {
  static const Keys keys = [] {
    Keys all = {"workers"};
    for (const PlanField& field : PlanFields()) all.push_back(field.column);
    return all;
  }();
  return keys;
}
const Keys& ColumnKeys() {
  static const Keys keys = [] {
    Keys all;
    for (const CountColumn& column : kCountColumns) all.push_back(column.name);
    for (const NumberColumn& column : kNumberColumns) all.push_back(column.name);
    return all;
  }();
  return keys;
}

// A key that an object does not have. It is told as the request spells it, where what is wrong with
// a plan is told by the plan's keys.
class UnknownKey : public InputError {
  using InputError::InputError;
};

// What an unknown key may mean: the column of an option that is called so, or the nearest.
std::string MeantBy(const std::string& key, const Keys& allowed) {
  std::string flag = key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  const PlanField* field = FindPlanField(flag);
  const auto is_column = [&](const char* known) { return known == std::string(field->column); };
  if (field != nullptr && std::any_of(allowed.begin(), allowed.end(), is_column)) {
    return DidYouMean(std::string(field->column));
  }
  return DidYouMean(key, allowed);
}

// The digits of a number; of a whole one those of an integer, however it is written: JSON knows no
// two kinds of numbers, and many write 8 as 8.0.
std::string DigitsOf(const JsonValue& number) {
  const std::string& text = number.text;
  constexpr double kExact = 1e15;  // up to which each whole number is a double
  double value = 0.5;
  std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = std::trunc(value) == value && std::abs(value) < kExact;
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : text;
}

// A JSON object that has these keys and no others.
class Fields {
 public:
  // `prefix` stands before a key in errors. Throws InputError for a key that is not allowed.
  Fields(const JsonValue& object, std::string prefix, const Keys& allowed)
      : object_(object), prefix_(std::move(prefix)) {
    Require(object, prefix_.substr(0, prefix_.find('.')), Kind::kObject);
    for (const auto& [key, value] : object_.members) {
      const auto same = [&, name = &key](const char* known) { return *name == known; };
      if (std::any_of(allowed.begin(), allowed.end(), same)) continue;
      throw UnknownKey({"", 0, prefix_ + key.substr(0, kLongestKey)}, "",
                       "is not a key" + MeantBy(key, allowed), JoinNames(allowed));
    }
  }

  // The value of `key`; nullptr where there is none.
  const JsonValue* Find(const char* key, Kind kind) const {
    const JsonValue* value = Find(key);
    if (value != nullptr) Require(*value, prefix_ + key, kind);
    return value;
  }
  // The keys of the object under `key`, which has none where it is missing.
  Fields Under(const char* key, const Keys& allowed) const {
    static const JsonValue kNothing{Kind::kObject, false, {}, {}, {}};
    const JsonValue* value = Find(key, Kind::kObject);
    return {value == nullptr ? kNothing : *value, prefix_ + key + ".", allowed};
  }
  std::string Text(const char* key) const {
    const JsonValue* value = Find(key, Kind::kString);
    return value == nullptr ? "" : value->text;
  }
  bool Flag(const char* key, bool otherwise) const {
    const JsonValue* value = Find(key, Kind::kBoolean);
    return value == nullptr ? otherwise : value->boolean;
  }
  int Integer(const char* key, int otherwise, int low, int high) const {
    const JsonValue* value = Find(key, Kind::kNumber);
    return value == nullptr ? otherwise : ParseInteger(DigitsOf(*value), Place(key), low, high);
  }
  std::optional<std::int64_t> LongInteger(const char* key) const {
    const JsonValue* value = Find(key, Kind::kNumber);
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    if (value == nullptr) return std::nullopt;
    return ParseLongInteger(DigitsOf(*value), Place(key), -kAny, kAny);
  }
  std::optional<double> Number(const char* key) const {
    const JsonValue* value = Find(key, Kind::kNumber);
    constexpr double kAny = std::numeric_limits<double>::max();
    if (value == nullptr) return std::nullopt;
    return ParseNumber(value->text, Place(key), -kAny, kAny);
  }
  // The text of a plan's column. A flag of the command line may be true or false.
  std::optional<std::string> Column(const char* key, bool is_number) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return std::nullopt;
    if (!is_number && value->kind == Kind::kBoolean) return value->boolean ? "yes" : "no";
    Require(*value, prefix_ + key, is_number ? Kind::kNumber : Kind::kString);
    return is_number ? DigitsOf(*value) : value->text;
  }

  InputPlace Place(const char* key) const { return {"", 0, prefix_ + key}; }

 private:
  const JsonValue* Find(const char* key) const {
    for (const auto& [name, value] : object_.members) {
      if (name == key) return &value;
    }
    return nullptr;
  }
  static void Require(const JsonValue& value, const std::string& key, Kind kind) {
    if (value.kind == kind) return;
    throw InputError({"", 0, key.empty() ? "body" : key}, value.text,
                     fmt::format("is {}", KindText(value.kind)), KindText(kind));
  }

  const JsonValue& object_;
  std::string prefix_;
};

TargetName ReadName(const Fields& fields) {
  TargetName name = {fields.Text("cluster"), fields.Text("workload"), fields.Text("device"),
                     fields.Text("job")};
  for (const TrainingFact& fact : TrainingFacts()) {
    if (std::string word = fields.Text(fact.key); !word.empty()) {
      name.training[fact.key] = std::move(word);
    }
  }
  name.parameters = fields.LongInteger("parameters");  // whose range PartsOf knows
  return name;
}

// The plan under the key "plan"; what `apart` states may be missing in it.
Plan ReadSharedPlan(const Fields& fields, const Cluster& cluster, const StatedApart& apart) {
  const Fields plan = fields.Under("plan", PlanKeys());
  return ReadPlan(
      [&](const char* column, bool is_number) { return plan.Column(column, is_number); }, "plan.",
      cluster, apart);
}

int WholeNumber(double value, const InputPlace& place) {
  constexpr double kMost = std::numeric_limits<int>::max();
  if (std::trunc(value) == value && std::abs(value) <= kMost) return static_cast<int>(value);
  throw InputError(place, std::isnan(value) ? "null" : fmt::format("{}", value),
                   "is not a whole number", "whole numbers up to 2147483647");
}

// The columns of the object under `key`.
QueryColumns ReadColumns(const Fields& fields, const char* key, std::size_t most) {
  QueryColumns columns;
  const std::string prefix = std::string(key) + ".";
  const Fields named = fields.Under(key, ColumnKeys());
  for (std::size_t i = 0; i < kCountColumns.size(); ++i) {
    const char* name = kCountColumns[i].name;
    const JsonValue* column = named.Find(name, Kind::kColumn);
    if (column == nullptr) continue;
    columns.counts[i].reserve(column->column.size());
    for (const double value : column->column) {
      columns.counts[i].push_back(WholeNumber(value, named.Place(name)));
    }
  }
  for (std::size_t i = 0; i < kNumberColumns.size(); ++i) {
    const JsonValue* column = named.Find(kNumberColumns[i].name, Kind::kColumn);
    if (column != nullptr) columns.numbers[i] = column->column;
  }
  CheckColumns(prefix, most, &columns);
  return columns;
}

// The columns that the head names, from behind it.
QueryColumns ReadBinaryColumns(const Fields& head, BinaryReader* reader, std::size_t most) {
  QueryColumns columns;
  const int size = head.Integer("size", 0, 1, static_cast<int>(most));
  std::string_view names;
  if (const JsonValue* stated = head.Find("columns", Kind::kString)) names = stated->text;
  const auto take = [&]<class Number>(const std::string& name, const auto& known,
                                      std::vector<Number>* into) {
    const auto column =
        std::find_if(known.begin(), known.end(), [&](const auto& one) { return name == one.name; });
    if (column == known.end()) return false;
    into[column - known.begin()] = reader->Next<Number>(name, static_cast<std::size_t>(size));
    return true;
  };
  std::set<std::string> seen;
  while (!names.empty()) {
    const std::string name(names.substr(0, names.find(',')));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const bool is_taken =
        seen.insert(name).second && (take(name, kCountColumns, columns.counts.data()) ||
                                     take(name, kNumberColumns, columns.numbers.data()));
    if (!is_taken) {
      throw InputError(head.Place("columns"), name, "is no column, or is there twice",
                       JoinNames(ColumnKeys()));
    }
  }
  reader->Finish();
  CheckColumns("", most, &columns);
  return columns;
}

// How batches are searched for `allocations` of them.
BatchSearch ReadSearch(const Fields& fields, std::size_t allocations, std::size_t most_plans) {
  static const Keys kKeys = {"least_global_batch", "most_global_batch", "least_local_batch",
                             "most_local_batch",   "accumulate",        "candidates",
                             "noise_scale",        "initial_batch"};
  const Fields keys = fields.Under("search", kKeys);
  constexpr int kAny = std::numeric_limits<int>::max();  // CheckSearch knows the ranges
  BatchSearch search;
  const auto read = [&](const char* key, int otherwise) {
    return keys.Integer(key, otherwise, -kAny, kAny);
  };
  search.least_global_batch = read("least_global_batch", search.least_global_batch);
  search.most_global_batch = read("most_global_batch", search.most_global_batch);
  search.least_local_batch = read("least_local_batch", search.least_local_batch);
  search.most_local_batch = read("most_local_batch", search.most_local_batch);
  search.accumulate = keys.Flag("accumulate", search.accumulate);
  search.candidates = read("candidates", search.candidates);
  search.noise_scale = keys.Number("noise_scale");
  search.initial_batch = keys.Number("initial_batch");
  CheckSearch(search, allocations, most_plans);
  return search;
}

// ---- Writing.

void AppendNumber(double value, std::string* text) {
  if (!std::isfinite(value)) {
    *text += "null";
    return;
  }
  char digits[32];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// "name": [...] at the end of an object that is still open.
template <class Values, class Value>
void AppendColumn(const char* name, const Values& values, const Value& value, std::string* text) {
  *text += fmt::format(",\"{}\":[", name);
  bool first = true;
  for (const auto& one : values) {
    if (!first) *text += ',';
    first = false;
    AppendNumber(value(one), text);
  }
  *text += ']';
}

// Where a job was asked for, whether its steps have taught what answers.
void TellLearnt(const Target& target, Json* answer) {
  if (target.learnt) (*answer)["learnt"] = *target.learnt;
}

Json HeadJson(const Target& target, std::size_t size, std::size_t failed) {
  Json head = {{"cluster", target.predictor.cluster().name},
               {"workload", target.predictor.workload().name},
               {"device", target.predictor.device()},
               {"size", size},
               {"failed", failed}};
  TellLearnt(target, &head);
  return head;
}

// The head as an object that is still open.
std::string OpenObject(const Json& head, std::size_t bytes_to_come) {
  std::string text = JsonText(head);
  text.pop_back();
  text.reserve(text.size() + bytes_to_come);
  return text;
}

Json FlagsJson(const std::vector<BatchFlag>& flags) {
  Json json = Json::array();
  for (const BatchFlag& flag : flags) {
    json.push_back({{"index", flag.index}, {"flag", flag.flag}});
  }
  return json;
}

Json ProblemsJson(const std::vector<BatchProblem>& problems) {
  Json json = Json::array();
  for (const BatchProblem& one : problems) {
    json.push_back({{"index", one.index}, {"problem", one.problem}});
  }
  return json;
}

// "memory": [...] at the end of an object that is still open.
void AppendMemory(const std::vector<MemoryVerdict>& memory, std::string* text) {
  *text += ",\"memory\":[";
  for (std::size_t i = 0; i < memory.size(); ++i) {
    *text += fmt::format("{}\"{}\"", i == 0 ? "" : ",",
                         kMemoryVerdictNames[static_cast<int>(memory[i])]);
  }
  *text += ']';
}

std::string BatchJson(const Target& target, const ForecastColumns& forecasts) {
  Json head = HeadJson(target, forecasts.status.size(), forecasts.failed);
  head["problems"] = ProblemsJson(forecasts.problems);
  head["flags"] = FlagsJson(forecasts.flags);
  constexpr std::size_t kBytesOfNumber = 22;
  const bool interval = !forecasts.low_s.empty();
  std::string text =
      OpenObject(head, forecasts.status.size() * kBytesOfNumber * (interval ? 3 : 1) + 64);
  AppendColumn("step_time_s", forecasts.step_time_s, std::identity{}, &text);
  if (interval) {
    AppendColumn("low_s", forecasts.low_s, std::identity{}, &text);
    AppendColumn("high_s", forecasts.high_s, std::identity{}, &text);
  }
  AppendMemory(forecasts.memory, &text);
  text += '}';
  return text;
}

std::string BatchBinary(const Target& target, const ForecastColumns& forecasts) {
  const bool interval = !forecasts.low_s.empty();
  Json head = HeadJson(target, forecasts.status.size(), forecasts.failed);
  head["columns"] =
      interval ? "step_time_s,low_s,high_s,status,memory" : "step_time_s,status,memory";
  head["problems"] = ProblemsJson(forecasts.problems);
  head["flags"] = FlagsJson(forecasts.flags);
  BinaryWriter writer(JsonText(head), forecasts.status.size() * (interval ? 32 : 16));
  writer.Add(forecasts.step_time_s);
  if (interval) {
    writer.Add(forecasts.low_s);
    writer.Add(forecasts.high_s);
  }
  std::vector<int> status;
  status.reserve(forecasts.status.size());
  for (const QueryStatus one : forecasts.status) status.push_back(static_cast<int>(one));
  writer.Add(status);
  std::vector<int> memory;
  memory.reserve(forecasts.memory.size());
  for (const MemoryVerdict one : forecasts.memory) memory.push_back(static_cast<int>(one));
  writer.Add(memory);
  return writer.Take();
}

std::string RecommendJson(const Target& target, const ChosenBatches& chosen) {
  const std::vector<BatchChoice>& choices = chosen.choices;
  Json head = HeadJson(target, choices.size(), chosen.failed);
  head["problems"] = ProblemsJson(chosen.problems);
  head["flags"] = FlagsJson(chosen.flags);
  constexpr std::size_t kBytesOfChoice = 110;
  std::string text = OpenObject(head, choices.size() * kBytesOfChoice + 200);
  const auto add = [&](const char* name, auto BatchChoice::*member) {
    AppendColumn(
        name, choices,
        [&](const BatchChoice& c) { return c.local_batch == 0 ? kNone : double(c.*member); },
        &text);
  };
  add("local_batch", &BatchChoice::local_batch);
  add("accumulation_steps", &BatchChoice::accumulation_steps);
  add("step_time_s", &BatchChoice::step_time_s);
  add("throughput_samples_per_s", &BatchChoice::throughput);
  add("statistical_efficiency", &BatchChoice::statistical_efficiency);
  add("goodput_samples_per_s", &BatchChoice::goodput);
  AppendMemory(chosen.memory, &text);
  text += '}';
  return text;
}

Json JobJson(const JobTold& job) {
  return {{"job", job.job},       {"cluster", job.cluster}, {"workload", job.workload},
          {"device", job.device}, {"steps", job.rows},      {"drifted", job.drifted}};
}

Reply JsonReply(const Snapshot& snapshot, std::string body) {
  Reply reply;
  reply.snapshot = snapshot.number();
  reply.body = std::move(body);
  return reply;
}

Reply TextReply(const char* content_type, std::string body) {
  Reply reply;
  reply.content_type = content_type;
  reply.body = std::move(body);
  return reply;
}

Json ProblemJson(int status, const std::string& sentence) {
  return {{"type", "about:blank"},
          {"title", StatusText(status)},
          {"status", status},
          {"detail", sentence}};
}

Reply ProblemReply(int status, const Json& problem) {
  Reply reply;
  reply.status = status;
  reply.content_type = "application/problem+json";
  reply.body = JsonText(problem);
  return reply;
}

// The media type without its parameters, in lower case.
std::string MediaType(std::string_view content_type) {
  std::string type(Trim(content_type.substr(0, content_type.find(';'))));
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

}  // namespace

struct Endpoints {
  static constexpr Endpoint kAll[] = {
      {"/v1/predict", "POST", true, false, false, &Api::Predict},
      {"/v1/predict_batch", "POST", true, true, true, &Api::PredictBatch},
      {"/v1/recommend", "POST", true, false, true, &Api::Recommend},
      {"/v1/observe", "POST", true, false, true, &Api::Observe},
      {"/v1/end_job", "POST", true, false, true, &Api::EndJob},
      {"/v1/jobs", "GET", false, false, true, &Api::JobList},
      {"/v1/reload", "POST", false, false, true, &Api::Reload},
      {"/v1/clusters", "GET", false, false, true, &Api::Clusters},
      {"/v1/workloads", "GET", false, false, true, &Api::Workloads},
      {"/healthz", "GET", false, false, false, &Api::Health},
      {"/readyz", "GET", false, false, false, &Api::Ready},
      {"/metrics", "GET", false, false, false, &Api::ShowMetrics},
      {"/openapi.yaml", "GET", false, false, false, &Api::ShowOpenApi},
      {"/", "GET", false, false, true, &Api::ShowPage},
  };
};

const Endpoint* Api::Find(const Request& request, Reply* refusal) {
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  const auto* const found = std::find_if(std::begin(Endpoints::kAll), std::end(Endpoints::kAll),
                                         [&](const Endpoint& e) { return path == e.path; });
  if (found == std::end(Endpoints::kAll)) {
    *refusal = Problem(
        404, fmt::format("{}: is not served; /openapi.yaml tells what is", path.substr(0, 60)));
    return nullptr;
  }
  if (path.size() != request.target.size()) {
    *refusal = Problem(
        400, fmt::format("{}: takes no query; what is asked stands in the body", found->path));
    return nullptr;
  }
  const bool get = std::string_view(found->method) == "GET";
  if (request.method != found->method && !(get && request.method == "HEAD")) {
    *refusal = Problem(405, fmt::format("{}: does not know the method {}; allowed: {}", found->path,
                                        request.method.substr(0, 20), found->method));
    refusal->allow = get ? "GET, HEAD" : "POST";
    return nullptr;
  }
  const std::string type = MediaType(request.content_type);
  if (found->json && type != kJsonType && !(found->columns && type == kColumnsType)) {
    *refusal = Problem(
        415, fmt::format("Content-Type: '{}' is not read; allowed: {}{}", type.substr(0, 60),
                         kJsonType, found->columns ? ", application/octet-stream" : ""));
    return nullptr;
  }
  return found;
}

Reply Api::Answer(const Endpoint& endpoint, const Request& request) const {
  const std::string_view path = endpoint.path;
  if (!service_->ready() && path.starts_with("/v1/")) return ProblemForNow(503, kNotReady);
  try {
    return (this->*endpoint.answer)(request);
  } catch (const UnknownKey& e) {
    return Problem(e);
  } catch (const InputError& e) {
    return Problem(InRequestTerms(e));
  } catch (const JsonError& e) {
    return Problem(400, fmt::format("body: is not JSON that is read here: {}", e.what()));
  } catch (const std::bad_alloc&) {
    return ProblemForNow(503, "there is no memory for this request now");
  } catch (const std::exception& e) {
    return Problem(500, fmt::format("this should not have happened: {}", e.what()));
  }
}

Reply Api::Answer(const Request& request) const {
  Reply refusal;
  const Endpoint* endpoint = Find(request, &refusal);
  return endpoint == nullptr ? refusal : Answer(*endpoint, request);
}

Reply Api::Problem(int status, const std::string& sentence) {
  return ProblemReply(status, ProblemJson(status, sentence));
}

Reply Api::Problem(const InputError& whole) {
  constexpr int kUnprocessable = 422;
  constexpr std::size_t kLongestValue = 200;
  const InputError e(whole.place(), whole.value().substr(0, kLongestValue), whole.problem(),
                     whole.allowed());
  Json problem = ProblemJson(kUnprocessable, e.what());
  problem["key"] = e.place().key;
  problem["value"] = e.value();
  problem["allowed"] = e.allowed();
  return ProblemReply(kUnprocessable, problem);
}

Reply Api::ProblemForNow(int status, const std::string& sentence) {
  Reply reply = Problem(status, sentence);
  reply.retry_later = true;
  return reply;
}

Reply Api::Predict(const Request& request) const {
  static const Keys kKeys = TargetKeys() + PlanKeys();
  const JsonValue json = ParseJson(request.body, 0);
  const Fields fields(json, "", kKeys);
  const TargetName name = ReadName(fields);
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  const std::shared_ptr<const Target> target = service_->Find(*snapshot, name);
  const Predictor& predictor = target->predictor;
  const Plan plan =
      ReadPlan([&](const char* column, bool is_number) { return fields.Column(column, is_number); },
               "", predictor.cluster());
  const Prediction prediction = predictor.Predict(plan);
  ++metrics_->plans;
  Json answer = PredictionJson(
      prediction, plan,
      {predictor.cluster(), predictor.workload(), predictor.device(), target->facts});
  TellLearnt(*target, &answer);
  return JsonReply(*snapshot, JsonText(answer));
}

Reply Api::PredictBatch(const Request& request) const {
  const std::size_t most = service_->options().most_plans;
  const bool binary = MediaType(request.content_type) == kColumnsType;
  std::optional<BinaryReader> reader;
  if (binary) reader.emplace(request.body);
  const JsonValue json = ParseJson(binary ? reader->head() : request.body, most);
  static const Keys kJsonKeys = TargetKeys() + Keys{"plan", "interval", "queries"};
  static const Keys kBinaryKeys = TargetKeys() + Keys{"plan", "interval", "size", "columns"};
  const Fields fields(json, "", binary ? kBinaryKeys : kJsonKeys);
  const TargetName name = ReadName(fields);
  const bool interval = fields.Flag("interval", true);
  QueryColumns queries =
      binary ? ReadBinaryColumns(fields, &*reader, most) : ReadColumns(fields, "queries", most);
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  const std::shared_ptr<const Target> target = service_->Find(*snapshot, name);
  const Plan plan = ReadSharedPlan(fields, target->predictor.cluster(),
                                   StatedBy(queries, queries.Has(kLocalBatch) ? 1 : 0));
  const ForecastColumns forecasts = PredictMany(*snapshot, *target, plan, interval, &queries);
  metrics_->plans += static_cast<std::int64_t>(queries.size);
  Reply reply = JsonReply(*snapshot,
                          binary ? BatchBinary(*target, forecasts) : BatchJson(*target, forecasts));
  if (binary) reply.content_type = kColumnsType.data();
  return reply;
}

Reply Api::Recommend(const Request& request) const {
  const std::size_t most = service_->options().most_plans;
  static const Keys kKeys = TargetKeys() + Keys{"plan", "allocations", "search"};
  const JsonValue json = ParseJson(request.body, most);
  const Fields fields(json, "", kKeys);
  const TargetName name = ReadName(fields);
  QueryColumns allocations = ReadColumns(fields, "allocations", most);
  const BatchSearch search = ReadSearch(fields, allocations.size, most);
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  const std::shared_ptr<const Target> target = service_->Find(*snapshot, name);
  const Plan plan = ReadSharedPlan(fields, target->predictor.cluster(),
                                   StatedBy(allocations, UnstatedBatch(target->predictor)));
  const ChosenBatches chosen = serve::Recommend(*snapshot, *target, plan, search, &allocations);
  metrics_->plans += static_cast<std::int64_t>(chosen.choices.size()) * MostTried(search);
  return JsonReply(*snapshot, RecommendJson(*target, chosen));
}

Reply Api::Observe(const Request& request) const {
  static const Keys kKeys = TargetKeys() + Keys{"plan", "step_times_s", "out_of_memory"};
  const JsonValue json = ParseJson(request.body, kMostSteps);
  const Fields fields(json, "", kKeys);
  TargetName start = ReadName(fields);
  const std::string job = std::exchange(start.job, "");
  SeenSteps seen;
  const JsonValue* times = fields.Find("step_times_s", Kind::kColumn);
  if (times != nullptr) seen.times_s = times->column;
  seen.out_of_memory = fields.Flag("out_of_memory", false);
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  const ObservedSteps observed = service_->jobs().Observe(
      *snapshot, job, start,
      [&](const Cluster& cluster) { return ReadSharedPlan(fields, cluster, {}); }, seen);
  metrics_->observed += static_cast<std::int64_t>(observed.steps.size());
  Json head = JobJson(observed.job);
  head["changes"] = Json::array();
  for (std::size_t i = 0; i < observed.steps.size(); ++i) {
    if (observed.steps[i].cause.empty()) continue;
    ++metrics_->changes;
    head["changes"].push_back({{"index", i}, {"cause", observed.steps[i].cause}});
  }
  std::string text = OpenObject(head, 0);
  AppendColumn(
      "predicted_s", observed.steps, [](const Observation& o) { return o.predicted.in(kSeconds); },
      &text);
  AppendColumn(
      "surprise", observed.steps, [](const Observation& o) { return o.surprise; }, &text);
  text += '}';
  return JsonReply(*snapshot, std::move(text));
}

Reply Api::EndJob(const Request& request) const {
  static const Keys kKeys = {"job", "forget"};
  const JsonValue json = ParseJson(request.body, 0);
  const Fields fields(json, "", kKeys);
  const JobTold ended = service_->jobs().End(fields.Text("job"), fields.Flag("forget", false));
  return JsonReply(*service_->Current(), JsonText(JobJson(ended)));
}

Reply Api::JobList(const Request& /*request*/) const {
  Json json = {{"jobs", Json::array()}};
  for (const JobTold& job : service_->jobs().List()) json["jobs"].push_back(JobJson(job));
  return JsonReply(*service_->Current(), JsonText(json));
}

Reply Api::Reload(const Request& request) const {
  if (!Trim(request.body).empty()) throw JsonError("a reload takes no body");
  std::unique_lock one(reloading_, std::try_to_lock);
  if (!one) return ProblemForNow(429, "the files are being read anew already");
  try {
    const int number = service_->Reload();
    ++metrics_->reloads;
    Reply reply = TextReply(kJsonType.data(), JsonText(Json{{"snapshot", number}}));
    reply.snapshot = number;
    return reply;
  } catch (const std::exception& e) {
    ++metrics_->failed_reloads;
    Reply reply = Problem(500, e.what());
    reply.snapshot = service_->Current()->number();  // which stays
    return reply;
  }
}

Reply Api::Clusters(const Request& /*request*/) const {
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  Json json = {{"clusters", Json::array()}};
  for (const Cluster& c : snapshot->inventory().clusters) {
    json["clusters"].push_back(ClusterJson(c));
  }
  return JsonReply(*snapshot, JsonText(json));
}

Reply Api::Workloads(const Request& /*request*/) const {
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  Json json = {{"workloads", Json::array()}};
  for (const Workload& w : snapshot->Workloads()) json["workloads"].push_back(WorkloadJson(w));
  return JsonReply(*snapshot, JsonText(json));
}

Reply Api::Health(const Request& /*request*/) const { return TextReply("text/plain", "ok\n"); }

Reply Api::Ready(const Request& /*request*/) const {
  if (stopping_) return Problem(503, "the service is being stopped");
  if (!service_->ready()) return ProblemForNow(503, kNotReady);
  return TextReply("text/plain", "ready\n");
}

Reply Api::ShowMetrics(const Request& /*request*/) const {
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  return TextReply(
      "text/plain; version=0.0.4",
      metrics_->Text(snapshot->number(), snapshot->compiled(), service_->jobs().size()));
}

Reply Api::ShowOpenApi(const Request& /*request*/) const {
  std::string text = OpenApiText();
  const std::size_t mark = text.find("PLAN_FIELDS");
  std::string fields;
  for (const PlanField& field : PlanFields()) {
    fields += fmt::format("{}{}\n", fields.empty() ? "" : "        ", SchemaOf(field));
  }
  text.replace(mark, text.find('\n', mark) + 1 - mark, fields);
  return TextReply("application/yaml", std::move(text));
}

Reply Api::ShowPage(const Request& /*request*/) const {
  if (!make_page_) {
    return Problem(404,
                   "/: this stepcast was built without the page; /openapi.yaml tells what "
                   "is served");
  }
  const std::shared_ptr<const Snapshot> snapshot = service_->Current();
  Reply reply = TextReply("text/html; charset=utf-8", make_page_(snapshot->inventory()));
  reply.snapshot = snapshot->number();
  return reply;
}

const char* StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace stepcast::serve
