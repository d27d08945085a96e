#include "predictor/web/door.h"

#include <cstdint>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "data/values/training_facts.h"
#include "predictor/json/json.h"
#include "predictor/report/svg_plot.h"
#include "predictor/search/recommend.h"
#include "predictor/web/timeline.h"

namespace stepcast::web {
namespace {

serve::Reply Answered(const Json& json) {
  serve::Reply reply;
  reply.body = JsonText(json);
  return reply;
}

// A request that has been answered before, and is one for certain.
struct Question {
  std::shared_ptr<const serve::Target> target;
  Plan plan;

  Subject subject() const {
    const Predictor& predictor = target->predictor;
    return {predictor.cluster(), predictor.workload(), predictor.device(), target->facts};
  }
};

Question ReadQuestion(const serve::Snapshot& snapshot, std::string_view body) {
  const Json json = Json::parse(body);
  const auto text = [&](const char* key) { return json.value(key, ""); };
  Question question;
  serve::TargetName name = {text("cluster"), text("workload"), text("device")};
  for (const TrainingFact& fact : TrainingFacts()) {
    if (std::string word = text(fact.key); !word.empty()) {
      name.training[fact.key] = std::move(word);
    }
  }
  if (json.contains("parameters")) name.parameters = json["parameters"].get<std::int64_t>();
  question.target = snapshot.Find(name);
  question.plan = serve::ReadPlan(
      [&](const char* column, bool) -> std::optional<std::string> {
        const auto found = json.find(column);
        if (found == json.end()) return std::nullopt;
        if (found->is_boolean()) return *found ? "yes" : "no";
        return found->is_string() ? found->get<std::string>() : found->dump();
      },
      "", question.target->predictor.cluster());
  return question;
}

Json TimelineJson(const std::vector<Span>& spans) {
  Json json = Json::array();
  for (const Span& span : spans) {
    json.push_back({{"lane", span.lane == Lane::kDevice ? "device" : "network"},
                    {"name", span.name},
                    {"start_s", span.start.in(kSeconds)},
                    {"end_s", span.end.in(kSeconds)}});
  }
  return json;
}

PlotSeries ReadSeries(const Json& json) {
  PlotSeries series;
  series.name = json.at("name");
  for (const auto& [key, values] : {std::pair{"x", &series.x},
                                    {"y", &series.y},
                                    {"low", &series.low},
                                    {"high", &series.high}}) {
    for (const Json& value : json.at(key)) {
      values->push_back(value.is_number() ? value.get<double>()
                                          : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return series;
}

serve::Reply Plot(std::string_view body) {
  const Json json = Json::parse(body);
  std::vector<PlotSeries> series;
  for (const Json& one : json.at("series")) series.push_back(ReadSeries(one));
  PlotOptions options;
  options.title = json.at("title");
  options.subtitle = json.at("subtitle");
  options.x_label = "workers";
  options.y_label = json.at("y_label");
  options.x_powers_of_two = true;
  options.log_y = json.at("log_y");
  serve::Reply reply;
  reply.content_type = "image/svg+xml";
  reply.body = RenderSvgPlot(series, options);
  return reply;
}

}  // namespace

Door::Door(serve::Inventory inventory)
    : service_([inventory = std::move(inventory)] { return inventory; }, {}),
      api_(&service_, &metrics_) {}

serve::Reply Door::Explain(std::string_view body) const {
  const Question question = ReadQuestion(*service_.Current(), body);
  const Predictor& predictor = question.target->predictor;
  Json json = ExplanationJson(predictor.Explain(question.plan), question.plan, question.subject());
  json["timeline"] = TimelineJson(MakeTimeline(predictor, question.plan));
  return Answered(json);
}

serve::Reply Door::Recommend(std::string_view body) const {
  const Question question = ReadQuestion(*service_.Current(), body);
  const Predictor& predictor = question.target->predictor;
  const RecommendOutcome outcome =
      stepcast::Recommend(predictor, question.plan, predictor.cluster().devices_per_node, {});
  const auto row = [](const Recommendation& r) {
    return Json{{"local_batch", r.plan.local_batch},
                {"accumulation_steps", r.plan.accumulation_steps},
                {"global_batch", CountJson(r.plan.global_batch())},
                {"step_time_s", r.prediction.step_time.in(kSeconds)},
                {"throughput_samples_per_s", r.prediction.throughput.in(kSamplesPerSecond)},
                {"efficiency", r.efficiency}};
  };
  Json json = {{"recommended", outcome.is_advice},
               {"gain", outcome.gain},
               {"binding_constraint", outcome.binding}};
  json["best"] = outcome.best ? row(*outcome.best) : Json(nullptr);
  json["baseline"] = outcome.baseline ? row(*outcome.baseline) : Json(nullptr);
  json["pareto"] = Json::array();
  for (const Recommendation& r : outcome.pareto) json["pareto"].push_back(row(r));
  return Answered(json);
}

serve::Reply Door::Ask(std::string_view target, std::string_view body) const {
  const bool own = target == "explain" || target == "recommend";
  try {
    if (target == "plot") return Plot(body);
    if (target == "fields") return Answered(PlanFieldsJson());
    if (target == "training") return Answered(TrainingFactsJson());
    if (target == "devices") {
      Json json = Json::array();
      for (const Device& device : service_.Current()->inventory().devices) {
        json.push_back({{"name", device.name}, {"title", device.title}});
      }
      return Answered(json);
    }
    // What is wrong with a plan is said once, where plans are predicted.
    serve::Reply reply = api_.Answer(
        {body.empty() ? "GET" : "POST", own ? "/v1/predict" : target, "application/json", body});
    if (!own || reply.status != 200) return reply;
    return target == "explain" ? Explain(body) : Recommend(body);
  } catch (const InputError& e) {
    // Also a plan that is predicted may have nothing to compare with.
    return serve::Api::Problem(e);
  } catch (const std::exception& e) {
    return serve::Api::Problem(500, std::string("this should not have happened: ") + e.what());
  }
}

}  // namespace stepcast::web
