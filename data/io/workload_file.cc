#include "data/io/workload_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <iterator>
#include <optional>

#include "data/io/text_file.h"
#include "data/io/text_parts.h"
#include "data/io/yaml_section.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/operation_text.h"
#include "data/values/size_limits.h"
#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"

namespace stepcast {
namespace {

constexpr long long kBytesPerGradient = 4;
// By Workload::inputs_vary.
constexpr const char* kInputNames[] = {"alike", "varying"};
// By Layer::causal.
constexpr const char* kCausalNames[] = {"no", "yes"};

// `tensors` counts those of all layers: an alias repeats a list in a few bytes.
Layer TakeLayer(YamlSection* section, std::size_t index, std::size_t* tensors) {
  Layer layer;
  layer.name = section->OptionalLine("name").value_or("layer" + std::to_string(index + 1));
  layer.kind =
      static_cast<LayerKind>(section->Choice("kind", kLayerKindNames, "is not a kind of layer"));
  const std::vector<std::string> lengths = section->Texts("tensors");
  *tensors += lengths.size();
  if (*tensors > kMostTensors) {
    throw InputError(section->PlaceOf("tensors"), "", "are too many with those before",
                     "at most " + std::to_string(kMostTensors) + " in all layers");
  }
  for (const std::string& text : lengths) {
    layer.tensors.push_back(
        ParseLongInteger(text, section->PlaceOf("tensors"), 1, kMostParameters));
  }
  if (section->Has("statistics")) {
    layer.statistics = section->LongInteger("statistics", 0, kMostParameters);
  }
  const auto number = [&](const char* key, double most) {
    return section->OptionalNumber(key, 0, most).value_or(0);
  };
  layer.forward_flop = Flop(number("forward_flop", kMostFlop));
  layer.activation_bytes = Bytes(number("activation_bytes", kMostActivationBytes));
  if (const std::optional<std::string> operation = section->OptionalText("operation")) {
    layer.operation = ParseOperation(*operation, section->PlaceOf("operation"));
    if (std::holds_alternative<UpdateOp>(layer.operation) ||
        std::holds_alternative<AllocateOp>(layer.operation)) {
      throw InputError(section->PlaceOf("operation"), *operation, "is no layer's",
                       "what the layer computes");
    }
  }
  layer.causal = section->OptionalChoice("causal", kCausalNames, "is neither") == 1;
  if (layer.causal && layer.kind != LayerKind::kAttention) {
    throw InputError(section->PlaceOf("causal"), kCausalNames[1], "is of attention alone",
                     "no, or a layer of kind attention");
  }
  section->Finish();
  return layer;
}

void RequireEqual(const YamlSection& file, const char* key, long long given, long long layers) {
  if (given == layers) return;
  throw InputError(file.PlaceOf(key), std::to_string(given), "disagrees with the layers",
                   std::to_string(layers) + ", their sum");
}

void RequireMeant(const YamlSection& file, long long sum) {
  if (sum <= kMostParameters) return;
  throw InputError(file.PlaceOf("layers"), "", "have too many parameters",
                   "at most " + std::to_string(kMostParameters));
}

Workload TakeWorkload(YamlSection file) {
  Workload w;
  w.name = CheckedWorkloadName(file.Text("name"), file.PlaceOf("name"));
  w.title = file.OptionalLine("title").value_or(w.name);
  w.source = file.OptionalText("source").value_or("");
  const auto count = [&](const char* key, long long each = 1) -> std::optional<long long> {
    if (!file.Has(key)) return std::nullopt;
    return file.LongInteger(key, each, each * kMostParameters);
  };
  const std::optional<long long> parameters = count("parameters");
  const std::optional<long long> trainable = count("trainable_parameters");
  const std::optional<long long> gradient_bytes = count("gradient_bytes", kBytesPerGradient);
  if (const std::optional<std::string> compute = file.OptionalText("compute")) {
    if (*compute != "none") {
      throw InputError(file.PlaceOf("compute"), *compute, "is not a kind of compute",
                       "none, for a bare message as collective benchmarks send it");
    }
    w.communication_only = true;
  }
  if (const auto inputs = file.OptionalChoice("inputs", kInputNames, "is no kind of inputs")) {
    w.inputs_vary = *inputs == 1;
  }
  for (const TrainingFact& fact : TrainingFacts()) {
    const std::optional<std::string> word = file.OptionalText(fact.key);
    if (word) fact.Read(*word, file.PlaceOf(fact.key), &w);
  }
  const std::vector<YamlSection> sections = file.Sections("layers");
  std::size_t tensors = 0;
  for (YamlSection section : sections) {
    w.layers.push_back(TakeLayer(&section, w.layers.size(), &tensors));
  }
  file.Finish();

  if (!w.layers.empty()) {
    for (const Layer& layer : w.layers) {
      w.parameters += layer.statistics;
      for (const std::int64_t tensor : layer.tensors) {
        w.trainable_parameters += tensor;
        RequireMeant(file, w.trainable_parameters);
      }
      RequireMeant(file, w.parameters);
    }
    w.parameters += w.trainable_parameters;
    // Publishers count the statistics in the total (Keras) or do not (the others).
    if (parameters == w.trainable_parameters) w.parameters = w.trainable_parameters;
    if (parameters) RequireEqual(file, "parameters", *parameters, w.parameters);
    if (trainable) RequireEqual(file, "trainable_parameters", *trainable, w.trainable_parameters);
    if (w.trainable_parameters == 0) {
      throw InputError(file.PlaceOf("layers"), "", "have no trainable tensor",
                       "at least one layer with tensors");
    }
  } else if (parameters) {
    w.parameters = *parameters;
    w.trainable_parameters = trainable.value_or(*parameters);
    if (w.trainable_parameters > w.parameters) {
      throw InputError(file.PlaceOf("trainable_parameters"), std::to_string(w.trainable_parameters),
                       "is more than all parameters", "at most " + std::to_string(w.parameters));
    }
  } else if (gradient_bytes) {
    w.parameters = w.trainable_parameters = trainable.value_or(*gradient_bytes / kBytesPerGradient);
  } else {
    throw InputError({file.file(), 0, "parameters"}, "", "is a required key that is missing",
                     "parameters (a count), gradient_bytes, or layers with tensors");
  }
  w.gradient_bytes = Bytes(static_cast<double>(
      gradient_bytes ? *gradient_bytes : kBytesPerGradient * w.trainable_parameters));
  return w;
}

}  // namespace

Workload ReadWorkload(const std::string& path) {
  return ParseWorkload(ReadTextFile(path, kMostYamlBytes), path);
}

Workload ParseWorkload(const std::string& text, const std::string& path) {
  return TakeWorkload(YamlSection::Parse(text, path));
}

Workload ParseWorkloadPart(const std::string& text, const std::string& path) {
  return TakeWorkload(YamlSection::ParsePart(text, path));
}

std::string FormatWorkload(const Workload& w) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "name" << YAML::Value << w.name;
  if (w.title != w.name) out << YAML::Key << "title" << YAML::Value << w.title;
  if (!w.source.empty()) out << YAML::Key << "source" << YAML::Value << w.source;
  out << YAML::Key << "parameters" << YAML::Value << w.parameters;
  out << YAML::Key << "trainable_parameters" << YAML::Value << w.trainable_parameters;
  out << YAML::Key << "gradient_bytes" << YAML::Value
      << fmt::format("{:.0f}", w.gradient_bytes.in(kBytes));
  if (w.communication_only) out << YAML::Key << "compute" << YAML::Value << "none";
  if (w.inputs_vary) {
    out << YAML::Key << "inputs" << YAML::Value << kInputNames[*w.inputs_vary ? 1 : 0];
  }
  for (const TrainingFact& fact : TrainingFacts()) {
    if (fact.IsDefault(w)) continue;
    out << YAML::Key << fact.key << YAML::Value << fact.WordOf(w);
  }
  if (!w.layers.empty()) {
    out << YAML::Key << "layers" << YAML::Value << YAML::BeginSeq;
    for (const Layer& layer : w.layers) {
      out << YAML::Flow << YAML::BeginMap;
      out << YAML::Key << "name" << YAML::Value << layer.name;
      out << YAML::Key << "kind" << YAML::Value
          << kLayerKindNames[static_cast<std::size_t>(layer.kind)];
      if (!layer.tensors.empty()) out << YAML::Key << "tensors" << YAML::Value << layer.tensors;
      if (layer.statistics > 0) {
        out << YAML::Key << "statistics" << YAML::Value << layer.statistics;
      }
      out << YAML::Key << "forward_flop" << YAML::Value
          << fmt::format("{}", layer.forward_flop.si());
      out << YAML::Key << "activation_bytes" << YAML::Value
          << fmt::format("{:.0f}", layer.activation_bytes.in(kBytes));
      if (layer.operation.index() > 0) {
        out << YAML::Key << "operation" << YAML::Value << FormatOperation(layer.operation);
      }
      if (layer.causal) out << YAML::Key << "causal" << YAML::Value << kCausalNames[1];
      out << YAML::EndMap << YAML::Block;
    }
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace stepcast
