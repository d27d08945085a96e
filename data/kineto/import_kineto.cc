#include "data/kineto/import_kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "data/io/compute_profile_file.h"
#include "data/kineto/calls.h"
#include "data/kineto/layers.h"
#include "data/kineto/spans.h"
#include "data/kineto/trace.h"
#include "data/record/input_error.h"
#include "data/record/summary.h"
#include "data/values/operation_text.h"

namespace stepcast {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr const char* kWanted =
    "a trace of training steps recorded with torch.profiler.profile(..., record_shapes=True)";

double InSeconds(double ns) { return ns * kNanosecond; }

// Time of one layer's backward pass, and where to find what decided it.
struct Backward {
  double time = 0;  // ns
  int nodes = 0;
  int first = -1;    // unit of its first node
  int products = 0;  // matrix products: one for each gradient
  int mask = -1;     // event that tells which gradients were wanted
  int output = -1;   // event whose first shape is that of the output's gradient
  bool tf32 = false;
};

// From one beginning of the forward pass to the next.
struct Phase {
  int first = -1;          // unit of the first layer that has a backward pass
  std::int64_t batch = 0;  // of what it reads; 0: not known
};

class Importer {
 public:
  Importer(std::string path, const KinetoTrace& trace) : path_(std::move(path)), trace_(trace) {}

  KinetoImport Import() {
    RequireShapes();
    calls_ = FindKinetoCalls(trace_);
    if (calls_.ambiguous >= 0) {
      throw InputError({path_, 0, "correlation"}, std::to_string(calls_.ambiguous),
                       "is the number of launches by several operators", "a trace of one process");
    }
    backward_.resize(calls_.units.size());
    phase_of_.resize(calls_.units.size(), -1);
    CollectBackward();
    FindPhases();
    for (std::size_t i = 0; i < calls_.units.size(); ++i) Take(static_cast<int>(i));
    for (const auto& [name, time] : calls_.stray) Leave(name, time);
    if (!trained_) {
      throw InputError({path_, 0, ""}, "", "has no backward pass of a layer", kWanted);
    }
    Summarise();
    DescribeDevice();
    DescribeSettings();
    return std::move(result_);
  }

 private:
  const KinetoEvent& Event(int i) const { return trace_.events[static_cast<std::size_t>(i)]; }
  const KinetoUnit& Unit(int i) const { return calls_.units[static_cast<std::size_t>(i)]; }
  Backward& BackwardOf(int layer) { return backward_[static_cast<std::size_t>(layer)]; }
  std::string_view Name(const KinetoUnit& unit) const {
    return KinetoNodeName(trace_.NameOf(Event(unit.event)));
  }
  const KinetoInputs* InputsOf(int event) const {
    return event < 0 ? nullptr : trace_.InputsOf(Event(event));
  }

  void RequireShapes() const {
    bool operators = false;
    bool shapes = false;
    for (const KinetoEvent& event : trace_.events) {
      if (event.category != KinetoCategory::kOperator) continue;
      operators = true;
      shapes = shapes || event.inputs >= 0;
    }
    if (!operators) throw InputError({path_, 0, ""}, "", "has no operators", kWanted);
    if (!shapes) throw InputError({path_, 0, ""}, "", "has no shapes", kWanted);
  }

  static bool IsRecurrent(KinetoLayer kind) {
    return kind == KinetoLayer::kLstm || kind == KinetoLayer::kGru;
  }

  // The layer whose backward pass a unit is part of; -1 where it is not.
  int LayerOf(const KinetoUnit& unit) const {
    if (unit.role == KinetoRole::kNode && unit.layer >= 0) {
      // A sum's node hands its gradient on; the sum of gradients is that of the fork.
      return Unit(unit.layer).kind == KinetoLayer::kAdd ? -1 : unit.layer;
    }
    if (unit.role == KinetoRole::kFork && unit.parent >= 0) {
      // A recurrent layer of many operators adds gradients up by itself.
      const int layer = Unit(unit.parent).layer;
      if (layer >= 0 && IsRecurrent(Unit(layer).kind)) return layer;
    }
    return -1;
  }

  void CollectBackward() {
    for (std::size_t i = 0; i < calls_.units.size(); ++i) {
      const KinetoUnit& unit = calls_.units[i];
      const int layer = LayerOf(unit);
      if (layer < 0) continue;
      Backward& backward = BackwardOf(layer);
      backward.time += unit.time;
      if (backward.first < 0) backward.first = static_cast<int>(i);
      ++backward.nodes;
      backward.products = std::max(backward.products, unit.products);
      backward.tf32 = backward.tf32 || unit.tf32;
      if (unit.mask >= 0) backward.mask = unit.mask;
      if (const KinetoInputs* inputs = InputsOf(unit.inner);
          inputs != nullptr && !inputs->empty() && inputs->front().dims.size() > 2) {
        backward.output = unit.inner;
      }
    }
  }

  void FindPhases() {
    bool turned = true;  // the backward pass has begun
    for (std::size_t i = 0; i < calls_.units.size(); ++i) {
      const KinetoUnit& unit = calls_.units[i];
      if (unit.role == KinetoRole::kNode) turned = true;
      const bool trains = unit.role == KinetoRole::kLayer && !unit.again && backward_[i].nodes > 0;
      if (trains && turned) {
        turned = false;
        phases_.push_back({static_cast<int>(i), 0});
      }
      if (trains && phases_.back().batch == 0) phases_.back().batch = BatchOf(unit);
      phase_of_[i] = static_cast<int>(phases_.size()) - 1;
    }
  }

  // The first length of what a layer reads.
  std::int64_t BatchOf(const KinetoUnit& unit) const {
    const KinetoInputs* inputs = InputsOf(unit.event);
    if (inputs == nullptr) return 0;
    const std::string_view name = Name(unit);
    const std::size_t data = name == "aten::addmm" || name == "aten::embedding" ? 1 : 0;
    if (inputs->size() <= data || (*inputs)[data].dims.size() < 2) return 0;
    return (*inputs)[data].dims.front();
  }

  void Leave(std::string_view name, double time) {
    if (time > 0) result_.summary.unattributed_s[std::string(name)] += InSeconds(time);
  }
  void Leave(std::string_view name, const std::string& problem, double time) {
    Leave(problem.empty() ? std::string(name) : std::string(name) + ": " + problem, time);
  }

  // `unit` is the call, or the layer whose backward pass it is.
  void Add(const KinetoUnit& unit, const KinetoOperation& what, int batch, TrainingPass pass,
           double time, const char* algorithm = "") {
    if (time <= 0) {  // on a GPU: nothing was launched; else shorter than the trace can tell
      ++untimed_;
      return;
    }
    if (!IsRunTime(InSeconds(time))) {
      throw InputError({path_, 0, std::string(Name(unit))}, fmt::format("{} s", InSeconds(time)),
                       "is longer than a call may take", "at most 1e6 s");
    }
    auto key = std::make_tuple(FormatOperation(what.operation), batch, what.precision, pass);
    std::vector<MeasuredSamples>& all = result_.profile.samples;
    const auto [it, fresh] = points_.try_emplace(std::move(key), all.size());
    if (fresh) {
      all.emplace_back();
      all.back().point = {what.operation, batch, what.precision, pass};
      all.back().algorithm = algorithm;
    }
    all[it->second].seconds.push_back(InSeconds(time));
  }

  void Take(int i) {
    const KinetoUnit& unit = Unit(i);
    switch (unit.role) {
      case KinetoRole::kLayer:
        TakeLayer(i);
        break;
      case KinetoRole::kNode: {
        const int layer = LayerOf(unit);
        if (layer < 0) {
          Leave(Name(unit), unit.time);
        } else if (BackwardOf(layer).first == i) {
          TakeBackward(layer);
        }
        break;
      }
      case KinetoRole::kFork:
        TakeFork(i);
        break;
      case KinetoRole::kUpdate:
        TakeUpdate(i);
        break;
      case KinetoRole::kGradient:
        NoteGradient(unit);
        Leave(Name(unit), unit.time);
        break;
      case KinetoRole::kOther:
        Leave(Name(unit), unit.time);
        break;
    }
  }

  // ---- Layers.

  const KinetoOperation& Describe(int i) {
    const KinetoUnit& unit = Unit(i);
    const Backward& backward = backward_[static_cast<std::size_t>(i)];
    const int phase = phase_of_[static_cast<std::size_t>(i)];
    KinetoCall call;
    call.name = KinetoOperatorName(Name(unit));
    call.inputs = InputsOf(unit.event);
    call.inner = InputsOf(unit.inner);
    if (call.inner != nullptr) {
      call.inner_name = KinetoOperatorName(trace_.NameOf(Event(unit.inner)));
    }
    int output = -1;
    if (const KinetoInputs* inputs = InputsOf(backward.output); inputs != nullptr) {
      output = Event(backward.output).inputs;
      call.output = &inputs->front().dims;
    }
    call.inner_products = unit.products;
    call.input_gradient = HasInputGradient(i, unit, backward);
    if (phase >= 0) call.step_batch = phases_[static_cast<std::size_t>(phase)].batch;
    const auto key = std::make_tuple(unit.kind, Event(unit.event).name, Event(unit.event).inputs,
                                     unit.inner < 0 ? -1 : Event(unit.inner).name,
                                     unit.inner < 0 ? -1 : Event(unit.inner).inputs, output,
                                     call.inner_products, call.input_gradient, call.step_batch);
    const auto it = described_.find(key);
    if (it != described_.end()) return it->second;
    return described_.emplace(key, DescribeKinetoCall(unit.kind, call)).first->second;
  }

  bool HasInputGradient(int i, const KinetoUnit& unit, const Backward& backward) const {
    if (backward.nodes == 0) return true;
    if (unit.kind == KinetoLayer::kConvolution) {
      const KinetoInputs* inputs = InputsOf(backward.mask);
      // convolution_backward(..., output_mask): of data, weight and bias.
      if (inputs != nullptr && !inputs->empty()) {
        const std::string& mask = inputs->back().value;
        if (mask.starts_with("[True")) return true;
        if (mask.starts_with("[False")) return false;
      }
      const int phase = phase_of_[static_cast<std::size_t>(i)];
      return phase < 0 || phases_[static_cast<std::size_t>(phase)].first != i;
    }
    // A single product is that of the weights.
    return backward.products != 1;
  }

  KinetoOperation WithTf32(int i, const KinetoOperation& described) const {
    KinetoOperation what = described;
    if (what.precision == Precision::kFp32 &&
        (Unit(i).tf32 || backward_[static_cast<std::size_t>(i)].tf32)) {
      what.precision = Precision::kTf32;
    }
    return what;
  }

  void TakeLayer(int i) {
    const KinetoUnit& unit = Unit(i);
    const KinetoOperation what = WithTf32(i, Describe(i));
    if (what.operation.index() == 0) {
      Leave(Name(unit), what.problem, unit.time);
      return;
    }
    derived_ = derived_ || what.derived;
    layer_starts_.push_back(unit.start);
    Add(unit, what, what.batch, TrainingPass::kForward, unit.time);
  }

  void TakeBackward(int layer) {
    const Backward& backward = BackwardOf(layer);
    const KinetoOperation what = WithTf32(layer, Describe(layer));
    if (what.operation.index() == 0) {
      Leave(Name(Unit(layer)), what.problem, backward.time);
      return;
    }
    trained_ = true;
    Add(Unit(layer), what, what.batch, TrainingPass::kBackward, backward.time);
  }

  void TakeFork(int i) {
    const KinetoUnit& unit = Unit(i);
    if (LayerOf(unit) >= 0) return;  // counted there
    const KinetoOperation& what = Describe(i);
    const KinetoInputs* inputs = InputsOf(unit.event);
    const int phase = phase_of_[static_cast<std::size_t>(i)];
    const std::int64_t batch = phase < 0 ? 0 : phases_[static_cast<std::size_t>(phase)].batch;
    // Gradients of parameters that are used twice are added up here too.
    const bool activations =
        what.operation.index() != 0 && inputs != nullptr && batch > 0 && what.batch == batch;
    if (!activations) {
      Leave("gradients added up", unit.time);
      return;
    }
    Add(unit, what, what.batch, TrainingPass::kBackward, unit.time);
  }

  // ---- The update.

  void NoteGradient(const KinetoUnit& unit) {
    const KinetoInputs* inputs = InputsOf(unit.inner);
    if (inputs == nullptr || inputs->empty() || inputs->front().type.empty()) return;
    gradients_ = KinetoSum(gradients_, KinetoElements(inputs->front().dims));
    gradient_type_ = inputs->front().type;
  }

  static bool Did(const KinetoUpdate& update, std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return update.elements.find(name) != update.elements.end();
    });
  }
  static std::int64_t Elements(const KinetoUpdate& update,
                               std::initializer_list<std::string_view> names) {
    std::int64_t elements = 0;
    for (const std::string_view name : names) {
      const auto it = update.elements.find(name);
      if (it != update.elements.end()) elements = KinetoSum(elements, it->second);
    }
    return elements;
  }

  // Which optimizer, and the parameters that its operators passed over once.
  static std::optional<UpdateOp> UpdateOf(std::string_view name, const KinetoUpdate& update) {
    name.remove_prefix(name.find('#') + 1);
    name = name.substr(0, name.find('.'));
    if (name == "Adam" || name == "AdamW" || name == "FusedAdam") {
      return UpdateOp{Optimizer::kAdam,
                      Elements(update, {"aten::addcdiv_", "aten::_foreach_addcdiv_",
                                        "aten::_fused_adam_", "aten::_fused_adamw_"})};
    }
    if (name != "SGD") return std::nullopt;
    if (Did(update, {"aten::_fused_sgd_"})) {
      if (update.momentum.empty()) return std::nullopt;
      const bool plain = update.momentum == "0." || update.momentum == "0";
      return UpdateOp{plain ? Optimizer::kSgd : Optimizer::kMomentum,
                      Elements(update, {"aten::_fused_sgd_"})};
    }
    if (Did(update, {"aten::mul_", "aten::_foreach_mul_"})) {
      return UpdateOp{Optimizer::kMomentum,
                      Elements(update, {"aten::mul_", "aten::_foreach_mul_"})};
    }
    // The first step with momentum keeps a copy of the gradients.
    if (Did(update, {"aten::clone"})) return std::nullopt;
    if (!Did(update, {"aten::add_", "aten::_foreach_add_"})) return std::nullopt;
    return UpdateOp{Optimizer::kSgd, Elements(update, {"aten::add_", "aten::_foreach_add_"})};
  }

  // How the optimizer ran: "fused" where one kernel does all its arithmetic, "foreach" where one
  // operator takes all parameters, else "".
  static const char* HowUpdated(std::string_view name, const KinetoUpdate& update) {
    const auto named = [&](std::string_view part) {
      return std::any_of(update.elements.begin(), update.elements.end(),
                         [&](const auto& done) { return done.first.starts_with(part); });
    };
    if (named("aten::_fused_") || name.find("#Fused") != std::string_view::npos) return "fused";
    return named("aten::_foreach_") ? "foreach" : "";
  }

  void TakeUpdate(int i) {
    const KinetoUnit& unit = Unit(i);
    const KinetoUpdate& update = calls_.updates.at(i);
    const int phase = phase_of_[static_cast<std::size_t>(i)];
    // Gradients were added up as often as the forward pass began since the last update.
    const std::int64_t passes = std::max(1, phase - last_phase_);
    const std::int64_t gradients = gradients_ % passes == 0 ? gradients_ / passes : 0;
    gradients_ = 0;
    last_phase_ = phase;
    ++updates_;
    std::optional<UpdateOp> op = UpdateOf(Name(unit), update);
    if (op && (op->parameters == 0 || update.unknown)) op->parameters = gradients;
    if (!op || op->parameters < 1) {
      Leave(Name(unit), unit.time);
      return;
    }
    KinetoOperation what;
    what.operation = *op;
    const std::string& type = update.type.empty() ? gradient_type_ : update.type;
    if (!type.empty() && !KinetoPrecision(type, &what.precision)) {
      Leave(Name(unit), "in " + type, unit.time);
      return;
    }
    if (const std::string problem = KinetoProblem(what.operation); !problem.empty()) {
      Leave(Name(unit), problem, unit.time);
      return;
    }
    Add(unit, what, 1, TrainingPass::kUpdate, unit.time, HowUpdated(Name(unit), update));
  }

  // ---- The summary.

  void Summarise() {
    KinetoSummary& summary = result_.summary;
    std::vector<double> times;
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (const KinetoEvent& event : trace_.events) {
      if (!IsStep(event)) continue;
      const auto it = std::lower_bound(layer_starts_.begin(), layer_starts_.end(), event.start);
      if (it == layer_starts_.end() || *it >= event.end()) continue;  // trains nothing
      if (times.empty() || event.start < from) from = event.start;
      if (times.empty() || event.end() > to) to = event.end();
      times.push_back(InSeconds(static_cast<double>(event.duration)));
    }
    summary.steps = times.empty() ? updates_ : static_cast<int>(times.size());
    if (!times.empty()) summary.step_time_s = stepcast::Summarise(std::move(times)).median;
    if (calls_.gpu) SummariseGpu(from, to);
  }

  bool IsStep(const KinetoEvent& event) const {
    return (event.category == KinetoCategory::kAnnotation ||
            event.category == KinetoCategory::kOperator) &&
           trace_.NameOf(event).starts_with("ProfilerStep#");
  }

  void SummariseGpu(std::int64_t from, std::int64_t to) {
    struct Total {
      int calls = 0;
      double time = 0;
    };
    std::map<int, Total> kernels;  // by the number of the name
    std::map<int, double> devices;
    for (const KinetoEvent& event : trace_.events) {
      if (!event.of_device()) continue;
      Total& total = kernels[event.name];
      ++total.calls;
      total.time += static_cast<double>(event.duration);
      devices[event.device] += static_cast<double>(event.duration);
    }
    for (const auto& [name, total] : kernels) {
      result_.summary.kernels.push_back({trace_.names[static_cast<std::size_t>(name)], total.calls,
                                         InSeconds(total.time),
                                         InSeconds(total.time) / total.calls});
    }
    std::stable_sort(
        result_.summary.kernels.begin(), result_.summary.kernels.end(),
        [](const KernelTime& a, const KernelTime& b) { return a.total_s > b.total_s; });
    device_ = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->first;
    KinetoSpans busy;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = 0;
    for (const KinetoEvent& event : trace_.events) {
      if (!event.of_device() || event.device != device_) continue;
      busy.Add(event.start, event.end());
      first = std::min(first, event.start);
      last = std::max(last, event.end());
    }
    busy.Merge();
    if (from == to) {  // no step is marked
      from = first;
      to = last;
    }
    if (to > from) {
      result_.summary.device_busy_share =
          static_cast<double>(busy.Covered(from, to)) / static_cast<double>(to - from);
    }
  }

  void DescribeDevice() {
    ProfiledDevice& device = result_.profile.device;
    device = {"cpu", "cpu", {}};
    if (!calls_.gpu) return;
    device = {"gpu", "gpu", trace_.facts};
    for (const KinetoDevice& known : trace_.devices) {
      if (known.id != device_) continue;
      if (!known.name.empty()) device.name = known.name;
      device.facts.insert(known.facts.begin(), known.facts.end());
    }
  }

  void DescribeSettings() {
    ComputeProfile& profile = result_.profile;
    profile.backend = kKinetoBackend;
    profile.settings = trace_.settings;
    profile.settings["source"] = std::filesystem::path(path_).filename().string();
    profile.settings["steps"] = std::to_string(result_.summary.steps);
    profile.settings["time"] = calls_.gpu ? "of kernels" : "of operators";
    if (derived_) {
      profile.settings["convolutions"] = "stride and padding from shapes, dilation taken as 1";
    }
    if (untimed_ > 0) profile.settings["calls_without_time"] = std::to_string(untimed_);
    profile.started = Started();
  }

  // Empty where the trace's clock is not that of the calendar.
  std::string Started() const {
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::int64_t kYear2001 = 978'307'200;
    const auto first =
        std::min_element(trace_.events.begin(), trace_.events.end(),
                         [](const auto& a, const auto& b) { return a.start < b.start; });
    const std::time_t seconds =
        static_cast<std::time_t>(trace_.base_time / kSecond + first->start / kSecond);
    std::tm calendar{};
    if (seconds < kYear2001 || gmtime_r(&seconds, &calendar) == nullptr) return {};
    char text[40];
    const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &calendar);
    return {text, length};
  }

  std::string path_;
  const KinetoTrace& trace_;
  KinetoCalls calls_;
  KinetoImport result_;
  std::vector<Backward> backward_;  // by unit
  std::vector<int> phase_of_;       // by unit; -1 before the first
  std::vector<Phase> phases_;
  std::vector<std::int64_t> layer_starts_;  // ns, ascending
  std::map<std::tuple<std::string, int, Precision, TrainingPass>, std::size_t> points_;
  std::map<std::tuple<KinetoLayer, int, int, int, int, int, int, bool, std::int64_t>,
           KinetoOperation>
      described_;
  std::int64_t gradients_ = 0;  // elements stored since the last update
  std::string gradient_type_;
  int last_phase_ = -1;
  int updates_ = 0;
  int untimed_ = 0;
  int device_ = 0;
  bool trained_ = false;
  bool derived_ = false;
};

}  // namespace

KinetoImport ImportKineto(const std::string& path) {
  const KinetoTrace trace = ReadKinetoTrace(path);
  return Importer(path, trace).Import();
}

}  // namespace stepcast
