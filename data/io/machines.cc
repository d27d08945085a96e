#include "data/io/machines.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "data/io/text_file.h"
#include "data/io/text_parts.h"
#include "data/io/yaml_section.h"
#include "data/plan/bucket_words.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "data/values/compression.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/placement.h"
#include "data/values/size_limits.h"

namespace stepcast {
namespace {

constexpr double kHighestPrice = 1e6;
constexpr int kMostMultiprocessors = 1'000'000;
constexpr Unit<FlopRateDimension> kFlopPerSecond{1, "FLOP/s"};

Device TakeDevice(YamlSection* section) {
  Device device;
  device.name = section->Name("name");
  device.title = section->OptionalLine("title").value_or(device.name);
  device.source = section->OptionalText("source").value_or("");
  device.aliases = section->Texts("aliases");
  device.fp32 = section->Optional("fp32", ParseWorkRate);
  device.tf32 = section->Optional("tf32", ParseWorkRate);
  device.fp16 = section->Optional("fp16", ParseWorkRate);
  device.bf16 = section->Optional("bf16", ParseWorkRate);
  device.fp8 = section->Optional("fp8", ParseWorkRate);
  device.memory = section->Optional("memory", ParseDataSize);
  device.memory_bandwidth = section->Optional("memory_bandwidth", ParseDataRate);
  device.device_link = section->Optional("device_link", ParseDataRate);
  device.host_link = section->Optional("host_link", ParseDataRate);
  device.power_w = section->Optional("power", ParseWatts);
  device.multiprocessors = section->OptionalInteger("multiprocessors", 1, kMostMultiprocessors);
  device.last_cache = section->Optional("last_cache", ParseDataSize);
  device.process_nm = section->Optional("process", ParseNanometres);
  section->Finish();
  return device;
}

template <class Fact>
Fact ParseFact(std::string_view text, const InputPlace& place) {
  if constexpr (std::is_enum_v<Fact>) {
    return ParseEnum<Fact>(text, place);
  } else if constexpr (std::is_same_v<Fact, double>) {
    return ParseProbability(text, place);  // the loss
  } else if constexpr (std::is_same_v<Fact, int>) {
    return static_cast<int>(ParseInteger(text, place, 1, kMostCount));
  } else {
    return ParseQuantity<Fact>(text, place);
  }
}

// The facts that are read of a link between devices, and of one host's link; others are refused as
// unknown keys.
constexpr std::string_view kOfDevices[] = {"bandwidth", "rtt", "loss"};
constexpr std::string_view kOfHost[] = {"bandwidth", "rtt", "loss", "transport"};

LinkFacts TakeLink(YamlSection* parent, const std::string& key,
                   std::span<const std::string_view> known = {}) {
  LinkFacts link;
  if (std::optional<YamlSection> section = parent->OptionalSection(key)) {
    LinkFacts::ForEach([&](const char* name, auto fact) {
      if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) return;
      using Fact = typename std::decay_t<decltype(link.*fact)>::value_type;
      if constexpr (std::is_same_v<Fact, double>) {
        if (fact != &LinkFacts::loss) {
          const char* flag = fact == &LinkFacts::others ? "link-others" : name;
          const NumberRange& range = FindPlanField(flag)->range;
          link.*fact = section->OptionalNumber(name, range.least, range.most);
          return;
        }
      }
      if constexpr (std::is_same_v<Fact, DataRate<>>) {
        if (fact == &LinkFacts::background) {
          link.*fact = section->Optional(name, ParseTraffic);
          return;
        }
      }
      link.*fact = section->Optional(name, ParseFact<Fact>);
    });
    section->Finish();
    if (LacksSwitches(link)) {
      throw InputError(section->PlaceOf("oversubscription"), section->Text("oversubscription"),
                       "says nothing without nodes_per_switch", "both, or neither");
    }
  }
  return link;
}

// The largest standard deviation of a time's or a parameter's logarithm: beyond it quantiles are no
// numbers.
constexpr double kMostLogSd = 50;

ParameterEstimate TakeEstimate(YamlSection* section) {
  constexpr double kMost = 1e30;
  constexpr int kMostRuns = 1'000'000'000;
  ParameterEstimate p;
  p.scope = section->Text("scope");
  p.name = section->Text("name");
  p.line = section->PlaceOf("name").line;
  p.unit = section->OptionalText("unit").value_or("");
  p.value = section->Number("value", 1e-30, kMost);
  p.log_sd = section->Number("log_sd", 0, kMostLogSd);
  if (section->Has("low") || section->Has("high")) {
    p.low = section->Number("low", 0, p.value);
    p.high = section->Number("high", p.value, kMost);
  }
  p.prior_value = section->Number("prior_value", 1e-30, kMost);
  p.prior_log_sd = section->Number("prior_log_sd", 0, kMostLogSd);
  p.prior_source = section->OptionalText("prior_source").value_or("");
  if (section->Has("runs") || section->Has("runs_nearer")) {
    p.runs = section->Integer("runs", 0, kMostRuns);
    p.runs_nearer = section->Integer("runs_nearer", 0, p.runs);
  }
  p.decided_by =
      static_cast<DecidedBy>(section->Choice("decided_by", kDecidedByNames, "is unknown"));
  section->Finish();
  return p;
}

// As many numbers as a matrix has: one text, not thousands of YAML nodes, keeps `predict` fast. Not
// before the text has shown that it holds so many is the matrix worth its memory.
std::vector<double> ParseNumbers(const std::string& text, std::size_t count,
                                 const InputPlace& place, const std::string& allowed) {
  std::vector<double> values;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto skip_space = [&] {
    while (at < end && std::isspace(static_cast<unsigned char>(*at))) ++at;
  };
  while (values.size() < count) {
    skip_space();
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value)) {
      throw InputError(place, std::string(at, std::min<std::size_t>(20, end - at)),
                       "is not a number", allowed);
    }
    values.push_back(value);
    at = next;
  }
  skip_space();
  if (at != end) throw InputError(place, std::string(at, end), "is left over", allowed);
  return values;
}

// The lower triangle, a row a line.
Eigen::MatrixXd ParseLowerTriangle(const std::string& text, int size, const InputPlace& place) {
  const auto count = static_cast<std::size_t>(size) * (static_cast<std::size_t>(size) + 1) / 2;
  const std::vector<double> values = ParseNumbers(
      text, count, place,
      fmt::format("the lower triangle of a {0} x {0} symmetric matrix, a row a line", size));
  Eigen::MatrixXd matrix(size, size);
  auto value = values.begin();
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column <= row; ++column) {
      matrix(row, column) = matrix(column, row) = *value++;
    }
  }
  return matrix;
}

// A alternative a line, with a number for each of `size` parameters.
Eigen::MatrixXd ParseAlternatives(const std::string& text, Eigen::Index size,
                                  const InputPlace& place) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
  const auto most = static_cast<std::ptrdiff_t>(kMostAlternatives);
  if (lines > most) {
    throw InputError(place, std::to_string(lines), "are too many", fmt::format("at most {}", most));
  }
  const std::vector<double> values =
      ParseNumbers(text, static_cast<std::size_t>(lines * size), place,
                   fmt::format("lines of {} numbers, one for each of parameters", size));
  for (const double value : values) {
    if (std::abs(value) <= kMostLogSd) continue;
    throw InputError(place, fmt::format("{:.6g}", value), "is out of range",
                     fmt::format("-{0} to {0}", kMostLogSd));
  }
  using ByRow = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return ByRow::Map(values.data(), lines, size);
}

std::string FormatAlternatives(const Eigen::MatrixXd& alternatives) {
  std::string text;
  for (const auto& alternative : alternatives.rowwise()) {
    text += fmt::format("{}\n", fmt::join(alternative.begin(), alternative.end(), " "));
  }
  return text;
}

// A row a line, from the row `first` on to `end`, each line begun by `indent`.
std::string FormatLowerTriangle(const Eigen::MatrixXd& matrix, Eigen::Index first, Eigen::Index end,
                                std::string_view indent = "") {
  std::string text;
  for (Eigen::Index row = first; row < end; ++row) {
    text += indent;
    for (Eigen::Index column = 0; column <= row; ++column) {
      if (column > 0) text += ' ';
      fmt::format_to(std::back_inserter(text), "{}", matrix(row, column));
    }
    text += '\n';
  }
  return text;
}

Eigen::MatrixXd VariancesOf(const std::vector<ParameterEstimate>& parameters) {
  Eigen::VectorXd variances(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    variances[static_cast<Eigen::Index>(i)] = parameters[i].log_sd * parameters[i].log_sd;
  }
  return variances.asDiagonal();
}

// No fit of two values or more leaves them all independent.
bool HasCovariance(const Eigen::MatrixXd& covariance) {
  Eigen::Index free = 0;
  for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
    if (covariance(i, i) > 0) ++free;
  }
  return free < 2 || !covariance.isDiagonal(0);
}

Calibration TakeCalibration(YamlSection* section) {
  constexpr int kMost = 1'000'000'000;
  Calibration c;
  c.version = section->OptionalText("version").value_or("");
  c.residual_log_sd = section->Number("residual_log_sd", 0, kMostLogSd);
  if (std::optional<YamlSection> scatter = section->OptionalSection("scatter")) {
    for (auto& [scope, own] : scatter->NamedSections()) {
      c.scatter[scope] = {own.Number("compute", 0, kMostLogSd), own.Number("sync", 0, kMostLogSd)};
      own.Finish();
    }
  }
  c.repeat_log_sd = section->OptionalNumber("repeat_log_sd", 0, kMostLogSd);
  c.sync_jitter = section->OptionalNumber("sync_jitter", 0, 1);
  for (YamlSection& source : section->Sections("sources")) {
    c.sources.push_back({source.Text("file"), source.Integer("runs", 0, kMost)});
    source.Finish();
  }
  if (std::optional<YamlSection> range = section->OptionalSection("range")) {
    c.range.max_workers = range->Integer("max_workers", 0, kMost);
    c.range.max_nodes = range->Integer("max_nodes", 0, kMost);
    c.range.max_devices_per_node = range->Integer("max_devices_per_node", 0, kMost);
    if (const std::optional<std::string> hosts = range->OptionalText("hosts_alone")) {
      const std::vector<std::string> names = ParseHosts(*hosts, range->PlaceOf("hosts_alone"));
      c.range.hosts_alone = {names.begin(), names.end()};
    }
    if (range->Has("exchanges")) {
      c.range.exchanges.emplace();
      for (YamlSection& step : range->Sections("exchanges")) {
        CalibratedRange::Exchange exchange{
            ParseEnum<Strategy>(step.Text("strategy"), step.PlaceOf("strategy"))};
        if (const std::optional<std::string> transport = step.OptionalText("transport")) {
          exchange.transport = ParseEnum<Transport>(*transport, step.PlaceOf("transport"));
        }
        c.range.exchanges->insert(exchange);
        step.Finish();
      }
    }
    if (std::optional<YamlSection> rates = range->OptionalSection("bandwidth")) {
      const DataRate<> low = ParseQuantity<DataRate<>>(rates->Text("min"), rates->PlaceOf("min"));
      const DataRate<> high = ParseQuantity<DataRate<>>(rates->Text("max"), rates->PlaceOf("max"));
      if (high < low) {
        throw InputError(rates->PlaceOf("max"), rates->Text("max"), "is below the least",
                         "at least " + rates->Text("min"));
      }
      c.range.bandwidth = {low, high};
      rates->Finish();
    }
    if (std::optional<YamlSection> batches = range->OptionalSection("local_batch")) {
      for (auto& [scope, batch] : batches->NamedSections()) {
        const int low = batch.Integer("min", 1, kMost);
        const int high = batch.Integer("max", low, kMost);
        const int workers = batch.OptionalInteger("max_workers", 1, kMost).value_or(0);
        CalibratedRange::BatchRange& own = c.range.local_batch[scope];
        own = {low, high, workers};
        for (YamlSection& step : batch.Sections("ran")) {
          CalibratedRange::Ran ran;
          ran.shard = ParseEnum<Shard>(step.Text("shard"), step.PlaceOf("shard"));
          ran.sharers = step.Integer("sharers", 1, kMost);
          ran.local_batch = step.Integer("local_batch", 1, high);
          const NumberRange sent = FindPlanField("bytes-per-parameter")->range;
          ran.bytes_per_parameter =
              step.OptionalInteger("bytes_per_parameter", 0, static_cast<int>(sent.most))
                  .value_or(0);
          if (const std::optional<std::string> compress = step.OptionalText("compress")) {
            ran.compress = ParseCompression(*compress, step.PlaceOf("compress"));
          }
          if (const std::optional<std::string> bucket = step.OptionalText("bucket")) {
            ran.bucket = ParseBucketCap(*bucket, step.PlaceOf("bucket"));
          }
          own.AddRan(ran);
          step.Finish();
        }
        batch.Finish();
      }
    }
    range->Finish();
  }
  std::vector<YamlSection> parameters = section->Sections("parameters");
  if (parameters.size() > kMostEstimates) {
    throw InputError(section->PlaceOf("parameters"), std::to_string(parameters.size()),
                     "are too many", fmt::format("at most {}", kMostEstimates));
  }
  for (YamlSection& parameter : parameters) {
    c.parameters.push_back(TakeEstimate(&parameter));
  }
  // Nothing was fitted: an empty matrix is an empty text. A file that was written by hand may state
  // standard errors alone.
  const bool written = c.parameters.empty() || section->Has("log_covariance");
  if (written) {
    const std::string triangle = section->OptionalText("log_covariance").value_or("");
    c.log_covariance = ParseLowerTriangle(triangle, static_cast<int>(c.parameters.size()),
                                          section->PlaceOf("log_covariance"));
  }
  if (const std::optional<std::string> alternatives = section->OptionalText("alternatives")) {
    c.alternatives =
        ParseAlternatives(*alternatives, static_cast<Eigen::Index>(c.parameters.size()),
                          section->PlaceOf("alternatives"));
  }
  if (!written || c.log_covariance.isZero(0)) c.log_covariance = VariancesOf(c.parameters);
  c.has_covariance = HasCovariance(c.log_covariance);
  if (c.log_covariance.size() > 0 && c.log_covariance.diagonal().minCoeff() < 0) {
    throw InputError(section->PlaceOf("log_covariance"), "", "has a negative variance",
                     "a diagonal of at least 0");
  }
  constexpr double kRounding = 1e-5;
  for (Eigen::Index row = 0; row < c.log_covariance.rows(); ++row) {
    for (Eigen::Index column = 0; column < row; ++column) {
      const double most = std::sqrt(c.log_covariance(row, row) * c.log_covariance(column, column));
      if (std::abs(c.log_covariance(row, column)) <= most * (1 + kRounding)) continue;
      throw InputError(section->PlaceOf("log_covariance"),
                       fmt::format("{:.6g}", c.log_covariance(row, column)),
                       fmt::format("in row {}, column {} is more than the two variances allow",
                                   row + 1, column + 1),
                       fmt::format("-{0:.6g} to {0:.6g}", most));
    }
  }
  section->Finish();
  return c;
}

// A text that is read as the same bits: in the unit that people use, where a number of it is read
// so, else in the unit of factor 1.
template <class D>
std::string ExactText(const Quantity<D>& value, const Unit<D>& unit, const Unit<D>& si) {
  const double number = value.in(unit);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double near :
       {number, std::nextafter(number, 0.0), std::nextafter(number, kInfinity)}) {
    if (near * unit.si == value.si()) return fmt::format("{} {}", near, unit.symbol);
  }
  return fmt::format("{} {}", value.si(), si.symbol);
}

std::string FactText(const DataRate<>& rate) {
  const bool fast = rate.in(kGigabitsPerSecond) >= 1;
  return ExactText(rate, fast ? kGigabitsPerSecond : kMegabitsPerSecond, kBytesPerSecond);
}
std::string FactText(const Duration<>& time) { return ExactText(time, kMilliseconds, kSeconds); }
std::string FactText(const DataSize<>& size) { return ExactText(size, kMebibytes, kBytes); }
std::string FactText(double number) { return fmt::format("{}", number); }
std::string FactText(CongestionControl control) { return NameOf(control); }
std::string FactText(Transport transport) { return NameOf(transport); }

void EmitLink(YAML::Emitter* out, const LinkFacts& link) {
  *out << YAML::Flow << YAML::BeginMap;
  LinkFacts::ForEach([&](const char* name, auto fact) {
    if (link.*fact) *out << YAML::Key << name << YAML::Value << FactText(*(link.*fact));
  });
  *out << YAML::EndMap << YAML::Block;
}

void EmitText(YAML::Emitter* out, const char* key, const std::string& text) {
  if (!text.empty()) *out << YAML::Key << key << YAML::Value << text;
}

// Whether a text keeps its lines as a YAML literal block: printable, ended by one line end, and
// beginning with neither a space nor a line end.
bool IsParagraph(const std::string& text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n') return false;
  if (text.front() == ' ' || text.front() == '\n') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; });
}

void EmitDevice(YAML::Emitter* out, const Device& d) {
  *out << YAML::BeginMap;
  EmitText(out, "name", d.name);
  if (d.title != d.name) EmitText(out, "title", d.title);
  EmitText(out, "source", d.source);
  if (!d.aliases.empty()) {
    *out << YAML::Key << "aliases" << YAML::Value << YAML::Flow << d.aliases << YAML::Block;
  }
  const auto work_rate = [&](const char* key, const std::optional<WorkRate<>>& rate) {
    if (rate) EmitText(out, key, ExactText(*rate, kTeraflopPerSecond, kFlopPerSecond));
  };
  work_rate("fp32", d.fp32);
  work_rate("tf32", d.tf32);
  work_rate("fp16", d.fp16);
  work_rate("bf16", d.bf16);
  work_rate("fp8", d.fp8);
  if (d.memory) EmitText(out, "memory", ExactText(*d.memory, kGigabytes, kBytes));
  const auto data_rate = [&](const char* key, const std::optional<DataRate<>>& rate) {
    if (rate) EmitText(out, key, ExactText(*rate, kGigabytesPerSecond, kBytesPerSecond));
  };
  data_rate("memory_bandwidth", d.memory_bandwidth);
  data_rate("device_link", d.device_link);
  data_rate("host_link", d.host_link);
  if (d.power_w) EmitText(out, "power", fmt::format("{} W", *d.power_w));
  if (d.multiprocessors) {
    *out << YAML::Key << "multiprocessors" << YAML::Value << *d.multiprocessors;
  }
  if (d.last_cache) {
    EmitText(out, "last_cache", ExactText(*d.last_cache, kGigabytes, kBytes));
  }
  if (d.process_nm) EmitText(out, "process", fmt::format("{} nm", *d.process_nm));
  *out << YAML::EndMap;
}

// All but the rows of the covariance behind its first, with which it ends.
void EmitCalibration(YAML::Emitter* out, const Calibration& c) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  *out << YAML::BeginMap;
  EmitText(out, "version", c.version);
  *out << YAML::Key << "residual_log_sd" << YAML::Value << number(c.residual_log_sd);
  if (!c.scatter.empty()) *out << YAML::Key << "scatter" << YAML::Value << YAML::BeginMap;
  for (const auto& [scope, scatter] : c.scatter) {
    *out << YAML::Key << scope << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::Key
         << "compute" << YAML::Value << number(scatter.compute) << YAML::Key << "sync"
         << YAML::Value << number(scatter.sync) << YAML::EndMap << YAML::Block;
  }
  if (!c.scatter.empty()) *out << YAML::EndMap;
  if (c.repeat_log_sd) {
    *out << YAML::Key << "repeat_log_sd" << YAML::Value << number(*c.repeat_log_sd);
  }
  if (c.sync_jitter) *out << YAML::Key << "sync_jitter" << YAML::Value << number(*c.sync_jitter);
  *out << YAML::Key << "sources" << YAML::Value << YAML::BeginSeq;
  for (const Calibration::Source& source : c.sources) {
    *out << YAML::Flow << YAML::BeginMap << YAML::Key << "file" << YAML::Value << source.file
         << YAML::Key << "runs" << YAML::Value << source.runs << YAML::EndMap << YAML::Block;
  }
  *out << YAML::EndSeq;
  *out << YAML::Key << "range" << YAML::Value << YAML::BeginMap;
  *out << YAML::Key << "max_workers" << YAML::Value << c.range.max_workers;
  *out << YAML::Key << "max_nodes" << YAML::Value << c.range.max_nodes;
  *out << YAML::Key << "max_devices_per_node" << YAML::Value << c.range.max_devices_per_node;
  if (const auto& rates = c.range.bandwidth) {
    *out << YAML::Key << "bandwidth" << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::Key
         << "min" << YAML::Value << FactText(rates->min) << YAML::Key << "max" << YAML::Value
         << FactText(rates->max) << YAML::EndMap << YAML::Block;
  }
  EmitText(out, "hosts_alone", JoinHosts({c.range.hosts_alone.begin(), c.range.hosts_alone.end()}));
  if (const auto& exchanges = c.range.exchanges) {
    *out << YAML::Key << "exchanges" << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const CalibratedRange::Exchange& exchange : *exchanges) {
      *out << YAML::BeginMap << YAML::Key << "strategy" << YAML::Value
           << StrategyName(exchange.strategy);
      if (exchange.transport) EmitText(out, "transport", NameOf(*exchange.transport));
      *out << YAML::EndMap;
    }
    *out << YAML::EndSeq << YAML::Block;
  }
  *out << YAML::Key << "local_batch" << YAML::Value << YAML::BeginMap;
  for (const auto& [key, batch] : c.range.local_batch) {
    *out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::Key << "min"
         << YAML::Value << batch.min << YAML::Key << "max" << YAML::Value << batch.max;
    if (batch.max_workers > 0) {
      *out << YAML::Key << "max_workers" << YAML::Value << batch.max_workers;
    }
    if (batch.tells_more_than_batches()) {
      *out << YAML::Key << "ran" << YAML::Value << YAML::BeginSeq;
      for (const CalibratedRange::Ran& step : batch.ran) {
        *out << YAML::BeginMap << YAML::Key << "shard" << YAML::Value << NameOf(step.shard)
             << YAML::Key << "sharers" << YAML::Value << step.sharers << YAML::Key << "local_batch"
             << YAML::Value << step.local_batch;
        if (step.bytes_per_parameter > 0) {
          *out << YAML::Key << "bytes_per_parameter" << YAML::Value << step.bytes_per_parameter;
        }
        if (step.compress.exists()) {
          *out << YAML::Key << "compress" << YAML::Value << FormatCompression(step.compress);
        }
        if (step.bucket) *out << YAML::Key << "bucket" << YAML::Value << FactText(*step.bucket);
        *out << YAML::EndMap;
      }
      *out << YAML::EndSeq;
    }
    *out << YAML::EndMap << YAML::Block;
  }
  *out << YAML::EndMap << YAML::EndMap;
  *out << YAML::Key << "parameters" << YAML::Value << YAML::BeginSeq;
  for (const ParameterEstimate& p : c.parameters) {
    *out << YAML::Flow << YAML::BeginMap;
    *out << YAML::Key << "scope" << YAML::Value << p.scope;
    *out << YAML::Key << "name" << YAML::Value << p.name;
    EmitText(out, "unit", p.unit);
    EmitText(out, "prior_source", p.prior_source);
    *out << YAML::Key << "value" << YAML::Value << number(p.value);
    *out << YAML::Key << "log_sd" << YAML::Value << number(p.log_sd);
    if (p.high > 0) {
      // Rounding must not leave the value outside.
      *out << YAML::Key << "low" << YAML::Value << number(std::min(p.low, p.value));
      *out << YAML::Key << "high" << YAML::Value << number(std::max(p.high, p.value));
    }
    *out << YAML::Key << "prior_value" << YAML::Value << number(p.prior_value);
    *out << YAML::Key << "prior_log_sd" << YAML::Value << number(p.prior_log_sd);
    *out << YAML::Key << "decided_by" << YAML::Value
         << kDecidedByNames[static_cast<int>(p.decided_by)];
    if (p.runs > 0) {
      *out << YAML::Key << "runs" << YAML::Value << p.runs << YAML::Key << "runs_nearer"
           << YAML::Value << p.runs_nearer;
    }
    *out << YAML::EndMap << YAML::Block;
  }
  *out << YAML::EndSeq;
  if (c.alternatives.rows() > 0) {
    *out << YAML::Key << "alternatives" << YAML::Value << YAML::Literal
         << FormatAlternatives(c.alternatives);
  }
  const Eigen::Index first = std::min<Eigen::Index>(1, c.log_covariance.rows());
  *out << YAML::Key << "log_covariance" << YAML::Value << YAML::Literal
       << FormatLowerTriangle(c.log_covariance, 0, first);
  *out << YAML::EndMap;
}

Cluster TakeCluster(YamlSection file) {
  Cluster cluster;
  cluster.name = file.Name("name");
  cluster.title = file.OptionalLine("title").value_or(cluster.name);
  cluster.source = file.OptionalText("source").value_or("");
  cluster.notes = file.OptionalText("notes").value_or("");
  if (file.IsSection("device")) {
    std::optional<YamlSection> device = file.OptionalSection("device");
    cluster.device_facts = TakeDevice(&*device);
    cluster.device = cluster.device_facts->name;
  } else {
    cluster.device = file.Name("device");
  }
  cluster.nodes = file.Integer("nodes", 1, kMostNodes);
  cluster.devices_per_node = file.Integer("devices_per_node", 1, kMostDevicesPerNode);
  cluster.nics_per_node =
      file.OptionalInteger("nics_per_node", 1, kMostDevicesPerNode).value_or(cluster.nics_per_node);
  cluster.link = TakeLink(&file, "link");
  cluster.device_link = TakeLink(&file, "device_link", kOfDevices);
  if (cluster.device_link.loss.value_or(0) > 0) {
    throw InputError(file.PlaceOf("device_link"), fmt::format("loss {}", *cluster.device_link.loss),
                     "is not a thing between devices of one node", "loss 0, or none");
  }
  cluster.server_link = TakeLink(&file, "server_link");
  std::set<std::string> names;
  for (YamlSection& section : file.Sections("hosts")) {
    Host host;
    host.name = section.Name("name");
    if (host.name.find('+') != std::string::npos) {
      throw InputError(section.PlaceOf("name"), host.name, "contains +, which joins host names");
    }
    if (!names.insert(host.name).second) {
      throw InputError(section.PlaceOf("name"), host.name, "is the name of two hosts",
                       "each host once");
    }
    host.link = TakeLink(&section, "link", kOfHost);
    section.Finish();
    cluster.hosts.push_back(std::move(host));
  }
  const auto own_links = static_cast<std::size_t>(
      std::count_if(cluster.hosts.begin(), cluster.hosts.end(),
                    [](const Host& host) { return host.link.bandwidth.has_value(); }));
  if (own_links > kMostEstimates) {
    throw InputError(file.PlaceOf("hosts"), std::to_string(own_links),
                     "hosts state a bandwidth of their own",
                     fmt::format("at most {}; the others have that of link", kMostEstimates));
  }
  if (static_cast<int>(cluster.hosts.size()) > cluster.nodes) {
    throw InputError(file.PlaceOf("hosts"), std::to_string(cluster.hosts.size()),
                     "hosts are more than the cluster has nodes",
                     fmt::format("at most nodes, {}", cluster.nodes));
  }
  if (std::optional<YamlSection> prices = file.OptionalSection("prices")) {
    cluster.node_price_per_hour = prices->Number("node_per_hour", 0, kHighestPrice);
    cluster.server_price_per_hour = prices->OptionalNumber("server_per_hour", 0, kHighestPrice);
    prices->Finish();
  }
  if (std::optional<YamlSection> power = file.OptionalSection("power")) {
    cluster.device_power_w = power->Optional("device", ParseWatts);
    cluster.device_idle_power_w = power->Optional("device_idle", ParseWatts);
    cluster.node_power_w = power->Optional("node", ParseWatts);
    if (cluster.device_idle_power_w && !cluster.device_power_w) {
      throw InputError(power->PlaceOf("device_idle"),
                       fmt::format("{} W", *cluster.device_idle_power_w),
                       "says nothing without power.device", "both, or neither");
    }
    if (cluster.device_idle_power_w && *cluster.device_idle_power_w > *cluster.device_power_w) {
      throw InputError(power->PlaceOf("device_idle"),
                       fmt::format("{} W", *cluster.device_idle_power_w),
                       "is more than a device draws that computes",
                       fmt::format("at most power.device, {} W", *cluster.device_power_w));
    }
    power->Finish();
  }
  cluster.sources = file.NamedTexts("sources");
  if (std::optional<YamlSection> seen = file.OptionalSection("out_of_memory")) {
    for (const auto& [scope, text] : seen->NamedTexts()) {
      cluster.out_of_memory[scope] = ParseQuantity<DataSize<>>(text, seen->PlaceOf(scope));
    }
  }
  if (std::optional<YamlSection> section = file.OptionalSection("calibration")) {
    cluster.calibration = TakeCalibration(&*section);
  }
  file.Finish();
  return cluster;
}

}  // namespace

std::vector<Device> ReadDevices(const std::string& path) {
  YamlSection file = YamlSection::Read(path);
  std::vector<Device> devices;
  std::set<std::string> names;
  for (YamlSection& section : file.Sections("devices")) {
    devices.push_back(TakeDevice(&section));
    if (!names.insert(CanonicalName(devices.back().name)).second) {
      throw InputError(section.PlaceOf("name"), devices.back().name, "is the name of two devices",
                       "each device once");
    }
  }
  file.Finish();
  if (devices.empty()) {
    throw InputError(file.PlaceOf("devices"), "", "is missing or empty", "a list of devices");
  }
  return devices;
}

std::string FormatDevicePart(const Device& device) {
  YAML::Emitter out;
  EmitDevice(&out, device);
  return std::string(out.c_str()) + "\n";
}

Device ParseDevicePart(const std::string& text, const std::string& path) {
  YamlSection section = YamlSection::ParsePart(text, path);
  return TakeDevice(&section);
}

std::string FormatCalibrationPart(const Calibration& calibration, const std::string& name) {
  Cluster cluster;
  cluster.name = cluster.title = cluster.device = name;
  cluster.calibration = calibration;
  return FormatCluster(cluster);
}

Calibration ParseCalibrationPart(const std::string& text, const std::string& path) {
  std::optional<Calibration> read = TakeCluster(YamlSection::ParsePart(text, path)).calibration;
  if (!read) throw InputError({path, 0, "calibration"}, "", "is missing");
  // A matrix that the text does not have would be larger than the text.
  if (read->parameters.size() * (read->parameters.size() + 1) > text.size()) {
    throw InputError({path, 0, "calibration.log_covariance"}, "", "is missing");
  }
  return *std::move(read);
}

Cluster ReadCluster(const std::string& path) {
  return ParseCluster(ReadTextFile(path, kMostYamlBytes), path);
}

Cluster ParseCluster(const std::string& text, const std::string& path) {
  return TakeCluster(YamlSection::Parse(text, path));
}

InputPlace PlaceOfDevice(const std::string& path) {
  try {
    return YamlSection::Read(path).PlaceOf("device");
  } catch (const InputError&) {
    return {path, 0, "device"};
  }
}

std::string FormatCluster(const Cluster& cluster) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  EmitText(&out, "name", cluster.name);
  if (cluster.title != cluster.name) EmitText(&out, "title", cluster.title);
  EmitText(&out, "source", cluster.source);
  if (cluster.device_facts) {
    out << YAML::Key << "device" << YAML::Value;
    EmitDevice(&out, *cluster.device_facts);
  } else {
    EmitText(&out, "device", cluster.device);
  }
  out << YAML::Key << "nodes" << YAML::Value << cluster.nodes;
  out << YAML::Key << "devices_per_node" << YAML::Value << cluster.devices_per_node;
  if (cluster.nics_per_node != 1) {
    out << YAML::Key << "nics_per_node" << YAML::Value << cluster.nics_per_node;
  }
  const auto link = [&](const char* key, const LinkFacts& facts) {
    if (facts.empty()) return;
    out << YAML::Key << key << YAML::Value;
    EmitLink(&out, facts);
  };
  link("link", cluster.link);
  link("device_link", cluster.device_link);
  link("server_link", cluster.server_link);
  if (!cluster.hosts.empty()) {
    out << YAML::Key << "hosts" << YAML::Value << YAML::BeginSeq;
    for (const Host& host : cluster.hosts) {
      out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << host.name;
      link("link", host.link);
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  if (cluster.node_price_per_hour) {
    out << YAML::Key << "prices" << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::Key
        << "node_per_hour" << YAML::Value << fmt::format("{}", *cluster.node_price_per_hour);
    if (cluster.server_price_per_hour) {
      out << YAML::Key << "server_per_hour" << YAML::Value
          << fmt::format("{}", *cluster.server_price_per_hour);
    }
    out << YAML::EndMap << YAML::Block;
  }
  if (cluster.device_power_w || cluster.node_power_w) {
    out << YAML::Key << "power" << YAML::Value << YAML::Flow << YAML::BeginMap;
    const auto watts = [&](const char* key, const std::optional<double>& value) {
      if (value) out << YAML::Key << key << YAML::Value << fmt::format("{} W", *value);
    };
    watts("device", cluster.device_power_w);
    watts("device_idle", cluster.device_idle_power_w);
    watts("node", cluster.node_power_w);
    out << YAML::EndMap << YAML::Block;
  }
  if (!cluster.sources.empty()) {
    out << YAML::Key << "sources" << YAML::Value << cluster.sources;
  }
  if (!cluster.out_of_memory.empty()) {
    out << YAML::Key << "out_of_memory" << YAML::Value << YAML::BeginMap;
    for (const auto& [scope, least] : cluster.out_of_memory) {
      EmitText(&out, scope.c_str(), ExactText(least, kMegabytes, kBytes));
    }
    out << YAML::EndMap;
  }
  if (IsParagraph(cluster.notes)) {
    out << YAML::Key << "notes" << YAML::Value << YAML::Literal << cluster.notes;
  } else {
    EmitText(&out, "notes", cluster.notes);
  }
  if (cluster.calibration) {
    out << YAML::Key << "calibration" << YAML::Value;
    EmitCalibration(&out, *cluster.calibration);
  }
  out << YAML::EndMap;
  std::string text = out.c_str();
  // The emitter looks at each character of a text: a covariance of thousands is written past it.
  if (cluster.calibration && cluster.calibration->log_covariance.rows() > 1) {
    const Eigen::MatrixXd& covariance = cluster.calibration->log_covariance;
    text += FormatLowerTriangle(covariance, 1, covariance.rows(), "    ");
  }
  return text + "\n";
}

}  // namespace stepcast
