// stepcast sweep: one plan with some of its parts varied, as a table, JSON or a plot.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "data/io/text_file.h"
#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/values/names.h"
#include "data/values/training_facts.h"
#include "predictor/binding.h"
#include "predictor/cli/command.h"
#include "predictor/cli/measured_step.h"
#include "predictor/cli/settings.h"
#include "predictor/report/svg_plot.h"

namespace stepcast::cli {
namespace {

// Each plan is kept node by node.
constexpr long long kMostNodesInAll = 50'000'000;

// The axis that is no part of the plan, and no fact of training.
constexpr const char* kDevice = "device";

// The workload as it is trained, on what, neither of which is part of the plan, and who forecasts
// it.
struct Trained {
  Workload workload;
  std::string device;
  std::optional<Device> facts;
  Predictor predictor;
};

struct Point {
  std::vector<std::string> values;  // by axis
  Plan plan;
  std::shared_ptr<const Trained> trained;
  Prediction prediction;
};

// The axis of that key; null where it is not varied.
const SweepAxis* FindAxis(const std::vector<SweepAxis>& axes, std::string_view key) {
  const auto axis =
      std::find_if(axes.begin(), axes.end(), [&](const SweepAxis& one) { return one.key == key; });
  return axis == axes.end() ? nullptr : &*axis;
}
bool Varies(const std::vector<SweepAxis>& axes, std::string_view key) {
  return FindAxis(axes, key) != nullptr;
}

// "resnet50", without what is varied of how it is trained.
std::string NameOfAll(const Workload& workload, const std::vector<SweepAxis>& axes) {
  Workload named = workload;
  for (const SweepAxis& axis : axes) {
    const TrainingFact* fact = FindTrainingFact(axis.key);
    if (fact != nullptr) fact->set(fact->get(Workload()), &named);
  }
  return DescribeWorkload(named);
}

// "gce-t4", or what all nodes are where they differ from plan to plan.
std::string NameOfNodes(const std::vector<Point>& points) {
  const auto devices = [](const Point& point) {
    return point.trained->predictor.cluster().devices_per_node;
  };
  const auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [&](const Point& a, const Point& b) { return devices(a) < devices(b); });
  if (devices(*least) == devices(*most)) return most->trained->predictor.cluster().name;
  return fmt::format("nodes with up to {} devices each", devices(*most));
}

// Where a plan stands on a plot over `key`, in the unit that the axis is labelled with; not a
// number for what has none, like a strategy.
double Coordinate(const std::string& key, const Plan& plan) {
  if (key == "workers") return plan.workers();
  const PlanField* field = FindPlanField(key);
  if (field == nullptr || field->unit == nullptr) return std::numeric_limits<double>::quiet_NaN();
  const std::string text = field->text(plan);
  return text.empty() ? 0 : std::stod(text);
}

std::string AxisLabel(const std::string& key) {
  const PlanField* field = FindPlanField(key);
  if (field == nullptr || field->unit == nullptr || *field->unit == '\0') return key;
  return key + " [" + field->unit + "]";
}

// What all the plans say alike, where it is not the default: "ring, local batch 64, rtt 2 ms".
std::string SettingsText(const std::vector<Point>& points) {
  const Plan& first = points.front().plan;
  const auto alike = [&](const auto& of) {
    return std::all_of(points.begin(), points.end(),
                       [&](const Point& point) { return of(point.plan) == of(first); });
  };
  std::vector<std::string> settings;
  if (alike([](const Plan& plan) { return plan.workers(); })) {
    settings.push_back(first.workers() == 1 ? "1 worker"
                                            : fmt::format("{} workers", first.workers()));
  }
  for (const PlanField& field : PlanFields()) {
    const std::string name = field.flag;
    if (name == "placement" || (field.is_default(first) && name != "strategy") ||
        !alike([&](const Plan& plan) { return field.text(plan); })) {
      continue;
    }
    std::string text = name == "strategy" ? "" : name + " ";
    std::replace(text.begin(), text.end(), '-', ' ');
    text += field.text(first);
    if (field.unit != nullptr && *field.unit != '\0') text += std::string(" ") + field.unit;
    settings.push_back(text);
  }
  return fmt::format("{}", fmt::join(settings, ", "));
}

// An axis over decades, which a linear one would press into its left end.
bool SpansDecades(const std::vector<PlotSeries>& series) {
  constexpr double kDecades = 50;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const PlotSeries& one : series) {
    for (const double x : one.x) {
      if (x > 0) least = std::min(least, x);
      most = std::max(most, x);
    }
  }
  return most >= kDecades * least;
}

std::string Plot(const std::vector<SweepAxis>& axes, const std::vector<Point>& points,
                 const Target& target, bool step_time) {
  std::map<std::string, std::size_t> index;
  std::vector<PlotSeries> series;
  for (const Point& point : points) {
    std::string name;
    for (std::size_t i = 1; i < axes.size(); ++i) {
      name += (name.empty() ? "" : ", ") + axes[i].key + " " + point.values[i];
    }
    if (name.empty()) name = "predicted";
    const auto [it, is_new] = index.try_emplace(name, series.size());
    if (is_new) series.push_back(PlotSeries{.name = name});
    PlotSeries& line = series[it->second];
    const Prediction& p = point.prediction;
    const double samples = point.plan.global_batch();
    line.x.push_back(Coordinate(axes[0].key, point.plan));
    if (step_time) {
      line.y.push_back(p.step_time.in(kSeconds));
      line.low.push_back(p.low.in(kSeconds));
      line.high.push_back(p.high.in(kSeconds));
    } else {
      line.y.push_back(p.throughput.in(kSamplesPerSecond));
      line.low.push_back(samples / p.high.in(kSeconds));
      line.high.push_back(samples / p.low.in(kSeconds));
    }
  }
  const bool workers = axes[0].key == "workers";
  // Where throughput grows with workers, linear scaling from the first point shows what is lost; of
  // several series each would have its own.
  if (workers && !step_time && series.size() == 1 && series[0].x.size() > 1) {
    PlotSeries ideal{.name = "linear scaling", .dashed = true};
    for (const double x : series[0].x) {
      ideal.x.push_back(x);
      ideal.y.push_back(series[0].y[0] * x / series[0].x[0]);
    }
    series.push_back(ideal);
  }
  PlotOptions options;
  options.title = fmt::format("{} on {}", NameOfAll(target.workload, axes), NameOfNodes(points));
  options.subtitle =
      fmt::format("{}{}{}; bands are 90 % prediction intervals",
                  Varies(axes, kDevice) ? "" : target.device + ": ", SettingsText(points),
                  target.cluster.calibration ? "" : "; not calibrated");
  options.x_label = AxisLabel(axes[0].key);
  options.y_label = step_time ? "step time [s]" : "throughput [samples/s]";
  options.x_powers_of_two = workers && axes[0].values.size() > 3;
  options.log_x = !options.x_powers_of_two && SpansDecades(series);
  // Over doublings of the workers, linear scaling is to be a straight line.
  options.log_y = step_time || options.x_powers_of_two;
  return RenderSvgPlot(series, options);
}

std::vector<SweepAxis> ReadAxes(const Arguments& args) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : args.Texts("over")) {
    SweepAxis axis = ParseSweepAxis(text, OptionPlace("over"));
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const SweepAxis& other) { return other.key == axis.key; })) {
      throw InputError(OptionPlace("over"), axis.key, "is varied twice",
                       "each key once: " + axis.key + "=V,V,... takes all its values");
    }
    axes.push_back(std::move(axis));
  }
  if (axes.empty()) {
    throw InputError(OptionPlace("over"), "", "is required", "at least one KEY=VALUES");
  }
  const auto varies = [&](const char* key) { return Varies(axes, key); };
  // Each of them says what one device is, or does.
  for (const char* stated : {kDevice, "profile", kOneWorker}) {
    if (!varies(kDevice) || !args.Has(stated)) continue;
    throw InputError(OptionPlace("over"), kDevice,
                     fmt::format("varies what --{} says of one device", stated), "one of the two");
  }
  if (varies("workers") && varies("placement")) {
    throw InputError(OptionPlace("over"), "workers", "says the same as placement",
                     "one of the two");
  }
  // The axis would take the place of what is stated, without a word.
  for (const char* varied : {"workers", "placement"}) {
    for (const char* stated : {"workers", "placement"}) {
      if (!varies(varied) || !args.Has(stated)) continue;
      throw InputError(OptionPlace("over"), varied, fmt::format("says the same as --{}", stated),
                       "one of the two");
    }
  }
  std::size_t count = 1;
  for (const SweepAxis& axis : axes) {
    count *= axis.values.size();
    if (count > kMostSweepPoints) {
      throw InputError(OptionPlace("over"), "", "makes too many combinations",
                       "at most " + std::to_string(kMostSweepPoints));
    }
  }
  return axes;
}

// As the values of a point say.
std::shared_ptr<const Trained> TrainedAs(const Target& target, const Cluster& cluster,
                                         const std::vector<SweepAxis>& axes,
                                         const std::vector<std::string>& values) {
  Workload workload = target.workload;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const TrainingFact* fact = FindTrainingFact(axes[i].key);
    if (fact != nullptr) fact->Read(values[i], OptionPlace(axes[i].key), &workload);
  }
  Predictor predictor(cluster, workload, target.facts, target.device, target.profile);
  return std::make_shared<const Trained>(
      Trained{std::move(workload), target.device, target.facts, std::move(predictor)});
}

// Every combination of the axes' values, the last axis fastest.
std::vector<Point> EvaluatePoints(const Arguments& args, const Target& first,
                                  const std::vector<SweepAxis>& axes) {
  const Plan base = ReadPlan(args, first);
  for (const SweepAxis& axis : axes) {
    if (first.profile && FindTrainingFact(axis.key) != nullptr) {
      throw InputError(OptionPlace("over"), axis.key, "is one for all times of a profile",
                       "a sweep without --profile, or a forecast for each --" + axis.key);
    }
  }
  // By their words, and the devices of a node.
  std::map<std::pair<std::string, int>, std::shared_ptr<const Trained>> ways;
  const auto varied = [&](const char* key) { return Varies(axes, key); };
  std::map<std::string, Target> targets;  // of --over device, of which `first` is the first one's
  if (const SweepAxis* devices = FindAxis(axes, kDevice)) {
    targets.emplace(devices->values.front(), first);
  }
  const auto given = [&](const char* key) { return args.Has(key) || varied(key); };
  // Without a cluster's file nodes are those of the plan, as in a forecast of it alone.
  const bool nodes_vary = varied("placement") && !args.Has("cluster");
  std::size_t count = 1;
  for (const SweepAxis& axis : axes) count *= axis.values.size();
  std::vector<Point> points;
  long long nodes = 0;
  for (std::size_t n = 0; n < count; ++n) {
    Point point;
    point.plan = base;
    point.values.resize(axes.size());
    std::size_t rest = n;
    for (std::size_t i = axes.size(); i-- > 0;) {
      point.values[i] = axes[i].values[rest % axes[i].values.size()];
      rest /= axes[i].values.size();
    }
    std::string way;
    const Target* on = &first;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (FindTrainingFact(axes[i].key) != nullptr) {
        way += point.values[i] + ",";
      } else if (axes[i].key == kDevice) {
        const std::string& device = point.values[i];
        way += device + ",";
        auto known = targets.find(device);
        if (known == targets.end()) {
          known = targets.emplace(device, ReadTarget(args, "", true, device)).first;
        }
        on = &known->second;
      } else {
        SetPlanOption(axes[i].key, point.values[i], first.cluster, OptionPlace("over"),
                      &point.plan);
      }
    }
    const Target& target = *on;
    const int devices =
        nodes_vary ? DevicesOnFullestNode(point.plan.placement) : target.cluster.devices_per_node;
    std::shared_ptr<const Trained>& trained = ways[{way, devices}];
    if (trained == nullptr) {
      const Cluster cluster =
          nodes_vary ? WithKnownStep(args, target, NodesOf(target.cluster.device, devices))
                     : target.cluster;
      trained = TrainedAs(target, cluster, axes, point.values);
    }
    point.trained = trained;
    // Another strategy keeps those options of the plan that it can have.
    if (varied("strategy")) {
      RequireKeptWith(point.plan, point.plan.strategy);
      point.plan = WithStrategy(point.plan, point.plan.strategy);
    }
    // Hosts say how many nodes there are, unless the plan does.
    if (!given("workers") && !given("placement") && !point.plan.hosts.empty()) {
      point.plan.placement.assign(point.plan.hosts.size(), target.cluster.devices_per_node);
    }
    RequireBatch(point.plan);
    nodes += point.plan.nodes();
    if (nodes > kMostNodesInAll) {
      throw InputError(
          OptionPlace("over"), "",
          fmt::format("makes {} plans, of {} nodes already in the first {}", count, nodes, n + 1),
          fmt::format("at most {} nodes in all plans together", kMostNodesInAll));
    }
    point.prediction = trained->predictor.Predict(point.plan);
    points.push_back(std::move(point));
  }
  return points;
}

// How many of the plans no device holds.
int OutOfMemory(const std::vector<Point>& points) {
  return static_cast<int>(std::count_if(points.begin(), points.end(), [](const Point& point) {
    return !point.prediction.memory.may_fit();
  }));
}

std::string TableText(const std::vector<SweepAxis>& axes, const std::vector<Point>& points,
                      const Target& target) {
  const Style style = DetectStyle();
  std::vector<TableColumn> columns;
  for (const SweepAxis& axis : axes) columns.emplace_back(axis.key);
  for (const char* name : {"step", "90 % interval", "throughput", "idle"}) {
    columns.emplace_back(name);
  }
  columns.push_back(LeftColumn("binds"));
  columns.push_back(LeftColumn(""));
  Table table(columns);
  // Flags that differ in their numbers only are said once, with the last, which is the farthest.
  std::map<std::string, std::string> flags;
  for (const Point& point : points) {
    const Prediction& p = point.prediction;
    std::vector<std::string> row = point.values;
    row.push_back(FormatDuration(p.step_time));
    row.push_back(FormatDuration(p.low) + " - " + FormatDuration(p.high));
    row.push_back(FormatThroughput(p.throughput));
    row.push_back(FormatPercent(p.idle_ratio()));
    row.push_back(FindBinding(p).part);
    row.emplace_back(p.memory.may_fit() ? "" : "out of memory");
    table.AddRow(std::move(row));
    for (const std::string& flag : p.flags) flags[KindOfFlag(flag)] = flag;
  }
  std::string heading =
      fmt::format("{} on {}", NameOfAll(target.workload, axes), NameOfNodes(points));
  if (!Varies(axes, kDevice)) heading += fmt::format(" ({})", target.device);
  std::string out = Heading(heading, style);
  out += table.Render(style, 2);
  if (const int count = OutOfMemory(points); count > 0 && points.size() > 1) {
    out += NoteLine(fmt::format("{} of {} plans run out of memory: they are shown as if they did "
                                "not, in a plot too.",
                                FormatCount(count), FormatCount(points.size())),
                    style, TerminalWidth());
  }
  for (const auto& [kind, flag] : flags) out += FlagLine(flag, style, TerminalWidth());
  return out;
}

}  // namespace

int RunSweep(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  AddTargetOptions(&options);
  AddKnownOptions(&options);
  AddPlanOptions(&options);
  options.add_options()(
      "over", OptionValues("KEY=..."),
      "what to vary: KEY=V,V,... or, for whole numbers, KEY=FROM..TO or "
      "KEY=FROM..TO..STEP, where KEY is workers or another option of the plan "
      "without its --, like strategy=ring,tree or loss=0,0.01, or device, precision, "
      "optimizer, attention or recompute; repeated, every combination is predicted")(
      "plot", OptionValue("FILE.svg"), "draw a plot over the first --over")(
      "y", OptionValue("throughput|step_time"), "what the plot shows (throughput)")(
      "json", "print one JSON object")("help", "print this text");
  const Arguments args("sweep", options, "", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast sweep --cluster C --workload W --local-batch N --over KEY=VALUES ...",
              "Predicts a plan for every combination of the values given.", options,
              "  stepcast sweep --cluster ufrgs-tupi --workload resnet50 --local-batch 128 "
              "--over workers=1..16\n"
              "  stepcast sweep --device t4 --workload vgg16 --local-batch 32 --workers 8 "
              "--over \"bandwidth=1 Gbit/s,10 Gbit/s,25 Gbit/s\" --over strategy=ring,ps-sync "
              "--servers 1\n"
              "  stepcast sweep --workload resnet50 --local-batch 64 --workers 8 "
              "--over device=v100,a100,h100\n"
              "  stepcast sweep --cluster gce-t4 --workload resnet50 --local-batch 64 "
              "--over workers=1..64 --plot scaling.svg\n");
    return kDone;
  }
  static constexpr const char* kShown[] = {"throughput", "step_time"};
  const bool step_time = ReadChoice(args, "y", kShown, 0) == 1;
  if (args.Has("y") && !args.Has("plot")) {
    throw InputError(OptionPlace("y"), args.Text("y"), "is what a plot shows", "with --plot");
  }
  const std::vector<SweepAxis> axes = ReadAxes(args);
  const SweepAxis* devices = FindAxis(axes, kDevice);
  // Of several devices it tells what they have in common.
  const Target target = devices == nullptr ? ReadKnownTarget(args)
                                           : ReadTarget(args, "", true, devices->values.front());
  const std::vector<Point> points = EvaluatePoints(args, target, axes);
  if (args.Has("plot")) {
    if (!args.Text("plot").ends_with(".svg")) {
      throw InputError(OptionPlace("plot"), args.Text("plot"), "is no name of an SVG file",
                       "a name that ends in .svg");
    }
    if (std::isnan(Coordinate(axes[0].key, points.front().plan))) {
      throw InputError(OptionPlace("over"), axes[0].key, "has no numbers to plot over",
                       "a first --over with numbers");
    }
    WriteTextFile(args.Text("plot"), Plot(axes, points, target, step_time));
  }
  if (args.Has("json")) {
    Json rows = Json::array();
    for (const Point& point : points) {
      rows.push_back(PredictionJson(point.prediction, point.plan,
                                    {point.trained->predictor.cluster(), point.trained->workload,
                                     point.trained->device, point.trained->facts}));
    }
    PrintJson(Json{{"points", rows}, {"out_of_memory", OutOfMemory(points)}});
    return kDone;
  }
  Print(TableText(axes, points, target));
  if (args.Has("plot")) Print(NoteLine("plot written to " + args.Text("plot"), DetectStyle()));
  return kDone;
}

}  // namespace stepcast::cli
