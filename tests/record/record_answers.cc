// The answers to random questions, a line each, for tests/record/compare_answers.py:
//
//   record_answers [--plans N] [--first I] > FILE
//   record_answers --check [--plans N]
//
// The first form records plans I to I + N - 1. The second compares answers that have to agree with
// each other (facade, compiled plan, the parts of a step) and exits with 1 where they do not.
//
// A line is "KIND NUMBER VALUE ...", separated by tabs; the first line of each kind, which begins
// with #, names its columns and says how each is compared. Numbers have 17 digits.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/record/input_error.h"
#include "predictor/binding.h"
#include "predictor/explanation.h"
#include "predictor/search/limits.h"
#include "predictor/search/recommend.h"
#include "tests/record/random_questions.h"

namespace stepcast {
namespace {

constexpr long kPlansOfAPlace = 20;
constexpr long kExplainEvery = 50;
constexpr long kSearchEvery = 500;
constexpr long kLearnEvery = 5000;

// How a column is compared: to rounding, to the error of a difference quotient (an elasticity in
// units of one), to the tolerance of a search, as text.
enum class How { kAnswer, kInterval, kElasticity, kLearnt, kText };
constexpr const char* kHowNames[] = {"answer", "interval", "elasticity", "learnt", "text"};

std::string Hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::string Number(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  return digits;
}

class Line {
 public:
  Line(const char* kind, long number) : kind_(kind), line_(kind_ + '\t' + std::to_string(number)) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    static std::set<std::string> known;
    if (known.insert(kind_).second) std::printf("#%s\tnumber%s\n", kind_.c_str(), names_.c_str());
    std::printf("%s\n", line_.c_str());
  }

  void Text(const char* name, const std::string& text) {
    names_ += std::string("\t") + name + ":" + kHowNames[static_cast<int>(how_)];
    line_ += '\t' + (text.empty() ? "-" : text);
  }
  // How the values that follow are compared.
  void Compare(How how) { how_ = how; }
  void Add(const char* name, double value) { Text(name, Number(value)); }
  template <class Q>
  void Add(const char* name, const Q& value) requires requires {
    value.si();
  }
  { Add(name, static_cast<double>(value.si())); }
  template <class V>
  void Add(const char* name, const std::optional<V>& value) {
    if (value) {
      Add(name, *value);
    } else {
      Text(name, "");
    }
  }
  template <class V>
  void Add(const char* name, const std::optional<Limit<V>>& limit) {
    if (limit && !limit->exists()) {
      Text(name, "none");
    } else if (limit) {
      Add(name, limit->value());
    } else {
      Text(name, "");
    }
  }
  void Add(const char* name, const std::vector<double>& values) {
    std::string list;
    for (const double value : values) list += (list.empty() ? "" : ";") + Number(value);
    Text(name, list);
  }
  template <class E>
  requires std::is_enum_v<E>
  void Add(const char* name, E value) { Text(name, std::to_string(static_cast<int>(value))); }

 private:
  std::string kind_;
  std::string line_;
  std::string names_;
  How how_ = How::kAnswer;
};

// ---- What is written of an answer.

void WriteBreakdown(const StepTime<double>& step, Line* line) {
  line->Add("forward", step.forward);
  line->Add("backward", step.backward);
  line->Add("update", step.update);
  line->Add("exposed_latency", step.exposed_latency);
  line->Add("exposed_transfer", step.exposed_transfer);
  line->Add("straggler_wait", step.straggler_wait);
  line->Add("synchronisation", step.synchronisation);
}

void WriteTraffic(const Traffic& traffic, Line* line) {
  line->Add("transfers", traffic.transfers);
  line->Add("per_worker", traffic.per_worker);
  line->Add("per_server", traffic.per_server);
  line->Add("total_traffic", traffic.total);
  line->Add("server_in", traffic.server_in);
  line->Add("server_out", traffic.server_out);
}

void WriteMemory(const MemoryNeed& memory, Line* line) {
  line->Add("parameters", memory.parameters);
  line->Add("gradients", memory.gradients);
  line->Add("optimizer", memory.optimizer);
  line->Add("accumulation", memory.accumulation);
  line->Add("bucket_copies", memory.buckets);
  line->Add("activations", memory.activations);
  line->Add("workspace", memory.workspace);
  line->Add("memory", memory.total);
  line->Add("available", memory.available);
  line->Add("verdict", memory.verdict);
}

void WriteServers(const Prediction& prediction, Line* line) {
  const auto phase = [&](const char* name, auto member) {
    std::optional<Duration<>> time;
    if (prediction.server_phases) time = *prediction.server_phases.*member;
    line->Add(name, time);
  };
  using Phases = PhaseBenefit<double>;
  phase("remaining_aggregation", &Phases::remaining_aggregation);
  phase("remaining_distribution", &Phases::remaining_distribution);
  phase("multicast_saves", &Phases::multicast_saves);
  phase("in_network_aggregation_saves", &Phases::in_network_aggregation_saves);
  phase("both_save", &Phases::both_save);
  std::vector<double> async;
  if (prediction.async_servers) {
    const AsyncServers<double>& servers = *prediction.async_servers;
    async = {servers.cycle.si(),
             servers.alone.si(),
             servers.updates.si(),
             servers.server_link,
             servers.server_processor,
             servers.server_update,
             servers.worker_link,
             servers.mean_staleness,
             servers.staleness_sd,
             static_cast<double>(servers.limiter),
             static_cast<double>(servers.exchange)};
  }
  line->Add("async_servers", async);
}

void WritePrediction(const Prediction& prediction, Line* line) {
  line->Add("step_time", prediction.step_time);
  WriteBreakdown(prediction.breakdown, line);
  line->Add("scatter_log_sd", prediction.scatter_log_sd);
  line->Add("discrepancy_log_sd", prediction.discrepancy_log_sd);
  line->Add("p50", prediction.p50);
  line->Add("p95", prediction.p95);
  line->Add("p99", prediction.p99);
  line->Add("throughput", prediction.throughput);
  WriteTraffic(prediction.traffic, line);
  WriteMemory(prediction.memory, line);
  WriteServers(prediction, line);
  line->Compare(How::kInterval);
  line->Add("low", prediction.low);
  line->Add("high", prediction.high);
  line->Add("log_sd", prediction.log_sd);
  line->Add("parameter_log_sd", prediction.parameter_log_sd);
  line->Compare(How::kText);
  line->Add("limiter", prediction.breakdown.limiter);
  line->Add("algorithm", prediction.algorithm);
  line->Add("compute_source", prediction.compute_source);
  line->Text("buckets", std::to_string(prediction.buckets));
  line->Text("binding", FindBinding(prediction).part);
  std::string words = prediction.algorithm_reason;
  for (const std::string& flag : prediction.flags) words += '\n' + flag;
  line->Text("flags", Hash(words));
}

void WriteForecast(const char* which, const Forecast& forecast, Line* line) {
  const auto name = [&](const char* what) { return std::string(which) + what; };
  line->Compare(How::kAnswer);
  line->Add(name("_step_time").c_str(), forecast.step_time);
  line->Add(name("_low").c_str(), forecast.low);
  line->Add(name("_high").c_str(), forecast.high);
  line->Add(name("_log_sd").c_str(), forecast.log_sd);
  line->Compare(How::kText);
  line->Add(name("_limiter").c_str(), forecast.limiter);
  line->Add(name("_status").c_str(), forecast.status);
}

CompileOptions ServersOf(const Plan& plan) {
  CompileOptions options;
  options.most_servers = std::max(1, plan.servers);  // each more takes its time
  return options;
}

void RecordPlan(const Predictor& predictor, const Plan& plan, const PlanQuery& query, long number) {
  const Prediction prediction = predictor.Predict(plan);
  const CompiledPlan compiled(predictor, plan, ServersOf(plan));
  Line line("plan", number);
  WritePrediction(prediction, &line);
  WriteForecast("compiled", compiled.Predict(QueryOf(plan)), &line);
  WriteForecast("asked", compiled.Predict(query), &line);
  line.Text("most_local_batch", std::to_string(compiled.MostLocalBatch(query)));
}

void RecordExplanation(const Predictor& predictor, const Plan& plan, long number) {
  const Explanation explanation = predictor.Explain(plan);
  std::string formulas;
  std::string references;
  std::vector<double> values;
  const auto add = [&](const NamedValue& named) {
    formulas += named.symbol + '|' + named.unit + '|' + named.name + '\n';
    values.push_back(named.value);
  };
  for (const ExplainedTerm& term : explanation.terms) {
    formulas += term.name + '|' + term.formula + '\n';
    references += term.model + '|' + term.source + '\n';
    for (const NamedValue& input : term.inputs) add(input);
    add(term.result);
    values.push_back(term.share);
  }
  Line line("explanation", number);
  line.Add("values", values);
  line.Compare(How::kText);
  line.Text("formulas", Hash(formulas));
  line.Text("references", Hash(references));
  // By name, because those that matter as much may come in another order.
  std::vector<std::pair<std::string, const ExplainedParameter*>> parameters;
  for (const ExplainedParameter& p : explanation.parameters) {
    parameters.emplace_back(p.value.symbol, &p);
  }
  std::sort(parameters.begin(), parameters.end());
  std::string names;
  std::vector<double> believed;
  std::vector<double> elasticities;
  for (const auto& [name, parameter] : parameters) {
    names += name + '|' + parameter->value.unit + '|' + parameter->meaning + '|' +
             parameter->source + '|' + std::to_string(static_cast<int>(parameter->origin)) + '\n';
    believed.push_back(parameter->value.value);
    believed.push_back(parameter->log_sd);
    elasticities.push_back(parameter->elasticity);
  }
  line.Text("parameters", Hash(names));
  line.Compare(How::kAnswer);
  line.Add("believed", believed);
  line.Compare(How::kElasticity);
  line.Add("elasticities", elasticities);
}

void RecordLimits(const Predictor& predictor, const Plan& plan, long number) {
  const ScalingLimits limits =
      FindScalingLimits(predictor, plan, DevicesOnFullestNode(plan.placement), {});
  Line line("limits", number);
  std::vector<double> curve;
  for (const ScalingPoint& point : limits.curve) {
    curve.insert(curve.end(), {1.0 * point.workers, point.step_time.si(), point.throughput.si(),
                               point.efficiency});
  }
  line.Add("curve", curve);
  line.Add("best_throughput", limits.best_throughput);
  line.Add("strong_best_step", limits.strong_best_step);
  line.Add("efficiency_at_most", limits.efficiency_at_most);
  line.Add("closed_ceiling", limits.closed.ceiling);
  line.Add("closed_half_ceiling", limits.closed.half_ceiling);
  line.Add("closed_half_efficiency", limits.closed.half_efficiency);
  line.Add("closed_crossing", limits.closed.crossing);
  line.Add("closed_strong_best_workers", limits.closed.strong_best_workers);
  line.Add("closed_knee", limits.closed.knee);
  line.Add("closed_accumulation", limits.closed.accumulation);
  line.Add("closed_buckets", limits.closed.buckets);
  line.Add("closed_servers", limits.closed.servers);
  std::string counts;
  for (const std::optional<int>& count :
       {limits.worth_it, limits.half_efficiency, limits.crossing, limits.half_ceiling,
        std::optional(limits.best_workers), std::optional(limits.strong_best_workers),
        std::optional(limits.strong_global_batch), std::optional(limits.reference_workers),
        limits.accumulation, limits.servers}) {
    counts += (count ? std::to_string(*count) : "-") + ' ';
  }
  if (limits.buckets) {
    counts += std::to_string(limits.buckets->from) + ".." +
              (limits.buckets->to ? std::to_string(*limits.buckets->to) : "");
  }
  std::string words = limits.strong_binding.sentence + limits.weak_binding.sentence;
  for (const std::string& flag : limits.flags) words += '\n' + flag;
  line.Compare(How::kText);
  line.Text("counts", counts);
  line.Text("words", Hash(words));
}

// As flags of the command line would be too long here: what Recommend may change of a plan.
std::string ChosenOf(const Recommendation& chosen) {
  const Plan& plan = chosen.plan;
  return std::to_string(plan.workers()) + ' ' + std::to_string(plan.local_batch) + ' ' +
         std::to_string(plan.accumulation_steps) + ' ' + std::to_string(plan.servers) + ' ' +
         StrategyName(plan.strategy);
}

void RecordRecommendation(const Predictor& predictor, Plan plan, long number) {
  plan.hosts.clear();  // other workers need others
  plan.backup_workers = 0;
  RecommendOptions options;
  options.workers = {2, 8, 32};
  if (number % (2 * kSearchEvery) == 0) {
    options.objective = Objective::kGoodput;
    options.outlook.noise_scale = Samples(1000.0);
    options.outlook.known_batch = Samples(128.0);
  }
  const RecommendOutcome outcome =
      Recommend(predictor, plan, DevicesOnFullestNode(plan.placement), options);
  Line line("recommendation", number);
  line.Add("gain", outcome.gain);
  line.Add("score_gain", outcome.score_gain);
  std::vector<double> scores;
  std::vector<double> highs;
  std::string chosen;
  const auto add = [&](const Recommendation& of) {
    scores.insert(scores.end(), {of.score, of.efficiency, of.prediction.step_time.si()});
    highs.push_back(of.prediction.high.si());
    chosen += ChosenOf(of) + ", ";
  };
  if (outcome.best) add(*outcome.best);
  if (outcome.baseline) add(*outcome.baseline);
  for (const Recommendation& of : outcome.pareto) add(of);
  line.Add("scores", scores);
  line.Compare(How::kInterval);
  line.Add("highs", highs);
  line.Compare(How::kText);
  line.Text("chosen", chosen);
  line.Text("binding", Hash(outcome.binding));
  line.Text("counts", std::to_string(outcome.considered) + ' ' +
                          std::to_string(outcome.out_of_memory) + ' ' +
                          std::to_string(outcome.over_global_batch));
}

// A job that runs on a cluster other than believed, until 30 rows are learnt.
void RecordLearning(const Shipped& shipped, long number) {
  Draw draw(static_cast<std::uint64_t>(number) ^ 0x10b);
  Place place = DrawPlace(shipped, &draw);
  place.profile.reset();
  while (place.workload.communication_only || !place.cluster.calibration) {
    place = DrawPlace(shipped, &draw);
    place.profile.reset();
  }
  Place true_place = place;
  for (ParameterEstimate& estimate : true_place.cluster.calibration->parameters) {
    estimate.value *= std::exp(std::min(estimate.log_sd, 0.3) * draw.Between(-1, 1));
  }
  const Predictor truth = true_place.MakePredictor();
  OnlineCalibration job(place.cluster, place.workload, place.facts, place.device);
  std::vector<Plan> plans;
  while (plans.size() < 8) {
    plans.push_back(DrawPlan(place, &draw));
    const Strategy strategy = plans.back().strategy;
    if (strategy == Strategy::kAuto || plans.back().nodes() > 64) plans.pop_back();
  }
  std::vector<double> predicted;
  std::vector<double> surprises;
  bool drifted = false;
  for (int row = 0; row < 30; ++row) {
    const Plan& plan = draw.From(plans);
    const Observation seen =
        job.Observe(plan, truth.PredictStep(plan).total() * std::exp(draw.Between(-0.08, 0.08)));
    predicted.push_back(seen.predicted.si());
    surprises.push_back(seen.surprise);
    drifted = seen.drifted;
  }
  Place learnt = place;
  learnt.cluster = job.cluster();
  const Predictor predictor = learnt.MakePredictor();
  std::vector<double> steps;
  std::vector<double> highs;
  for (const Plan& plan : plans) {
    const Prediction prediction = predictor.Predict(plan);
    steps.push_back(prediction.step_time.si());
    highs.push_back(prediction.high.si());
  }
  std::vector<double> values;
  std::vector<double> log_sds;
  for (const ParameterEstimate& estimate : learnt.cluster.calibration->parameters) {
    values.push_back(estimate.value);
    log_sds.push_back(estimate.log_sd);
  }
  Line line("learning", number);
  line.Compare(How::kLearnt);
  line.Add("predicted", predicted);
  line.Add("surprises", surprises);
  line.Add("values", values);
  line.Add("log_sds", log_sds);
  line.Add("scatter", learnt.cluster.calibration->residual_log_sd);
  line.Add("steps", steps);
  line.Compare(How::kInterval);
  line.Add("highs", highs);
  line.Compare(How::kText);
  line.Text("drifted", drifted ? "yes" : "no");
}

// ---- What has to agree with each other.

class Agreement {
 public:
  void Expect(const char* what, double got, double expected, double tolerance, long number) {
    ++compared_;
    const double apart = std::abs(got - expected);
    if (got == expected || apart <= tolerance * std::max(std::abs(got), std::abs(expected))) return;
    if (++wrong_ > 20) return;
    std::fprintf(stderr, "plan %ld: %s: %.17g beside %.17g\n", number, what, got, expected);
  }
  long wrong() const { return wrong_; }
  long compared() const { return compared_; }

 private:
  long wrong_ = 0;
  long compared_ = 0;
};

constexpr double kRounding = 1e-12;

void CheckAnswer(const Predictor& predictor, const Plan& plan, long number, Agreement* agreement) {
  const auto expect = [&](const char* what, double got, double expected, double tolerance) {
    agreement->Expect(what, got, expected, tolerance, number);
  };
  const Prediction prediction = predictor.Predict(plan);
  const double step = prediction.step_time.si();
  expect("sum of the parts", prediction.breakdown.total().si(), step, kRounding);
  expect("step alone", predictor.PredictStep(plan).total().si(), step, kRounding);
  expect("interval that holds the step",
         std::clamp(step, prediction.low.si(), prediction.high.si()), step, 0);
  const CompiledPlan compiled(predictor, plan, ServersOf(plan));
  const Forecast forecast = compiled.Predict(QueryOf(plan));
  expect("compiled step", forecast.step_time.si(), step, kRounding);
  expect("compiled step alone", compiled.StepTime(QueryOf(plan)).si(), step, kRounding);
  expect("compiled interval's low end", forecast.low.si(), prediction.low.si(), kRounding);
  expect("compiled interval's high end", forecast.high.si(), prediction.high.si(), kRounding);
}

// ---- The questions in their order.

struct Arguments {
  long plans = 200'000;
  long first = 0;
  bool check = false;
};

// A question that no model covers has its refusal for an answer.
template <class Ask>
void OrRefusal(long number, const Ask& ask) {
  try {
    ask();
  } catch (const InputError& refusal) {
    Line line("refusal", number);
    line.Compare(How::kText);
    line.Text("what", refusal.what());
  }
}

void Record(const Shipped& shipped, const Place& place, const Predictor& predictor, long number) {
  Draw draw(static_cast<std::uint64_t>(number));
  const Plan plan = DrawPlan(place, &draw);
  const PlanQuery query = DrawQuery(plan, &draw);
  OrRefusal(number, [&] { RecordPlan(predictor, plan, query, number); });
  if (number % kExplainEvery == 0) {
    OrRefusal(number, [&] { RecordExplanation(predictor, plan, number); });
  }
  if (number % kSearchEvery == 0 && !place.workload.communication_only) {
    OrRefusal(number, [&] { RecordLimits(predictor, plan, number); });
    OrRefusal(number, [&] { RecordRecommendation(predictor, plan, number); });
  }
  if (number % kLearnEvery == 0) OrRefusal(number, [&] { RecordLearning(shipped, number); });
}

void Check(const Place& place, const Predictor& predictor, long number, Agreement* agreement) {
  Draw draw(static_cast<std::uint64_t>(number));
  const Plan plan = DrawPlan(place, &draw);
  OrRefusal(number, [&] { CheckAnswer(predictor, plan, number, agreement); });
}

int RecordAnswers(const Arguments& arguments) {
  const Shipped shipped(STEPCAST_SOURCE_DIR);
  Agreement agreement;
  std::optional<Place> place;
  std::optional<Predictor> predictor;  // none where the place has no answers
  long place_number = -1;
  for (long i = arguments.first; i < arguments.first + arguments.plans; ++i) {
    if (i / kPlansOfAPlace != place_number) {
      place_number = i / kPlansOfAPlace;
      Draw draw(static_cast<std::uint64_t>(place_number) << 32U);
      predictor.reset();
      OrRefusal(i, [&] {
        place = DrawPlace(shipped, &draw);
        predictor.emplace(place->MakePredictor());
      });
    }
    if (!predictor) continue;
    if (arguments.check) {
      Check(*place, *predictor, i, &agreement);
    } else {
      Record(shipped, *place, *predictor, i);
    }
  }
  if (arguments.check) {
    std::printf("%ld of %ld comparisons failed\n", agreement.wrong(), agreement.compared());
  }
  return agreement.wrong() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stepcast

int main(int count, char** values) {
  stepcast::Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(values[i], "--check") == 0) {
      arguments.check = true;
    } else if (more && std::strcmp(values[i], "--plans") == 0) {
      arguments.plans = std::atol(values[++i]);
    } else if (more && std::strcmp(values[i], "--first") == 0) {
      arguments.first = std::atol(values[++i]);
    } else {
      std::fputs("usage: record_answers [--check] [--plans N] [--first I]\n", stderr);
      return 2;
    }
  }
  try {
    return stepcast::RecordAnswers(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "record_answers: %s\n", error.what());
    return 2;
  }
}
