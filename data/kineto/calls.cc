#include "data/kineto/calls.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace stepcast {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kStep = "Optimizer.step#";
constexpr std::string_view kZeroGradients = "Optimizer.zero_grad#";

// Meaning of an event's name, worked out once for each name.
struct NameInfo {
  enum Class : std::uint8_t {
    kPlain,
    kLayer,
    kOpaque,
    kEvaluation,  // the engine runs a node
    kGradient,    // ... and the node stores a gradient
    kUpdate,
    kMark,  // names a span of time and does nothing
    kCollective,
  };
  Class meaning = kPlain;
  KinetoLayer layer = KinetoLayer::kNone;
  bool computes = false;  // an operator whose arguments say what is computed
  bool product = false;   // mm or bmm
  bool addition = false;
  bool convolution_backward = false;
  // Number of the word that they are made of: "AddmmBackward0" and "aten::addmm" have the same.
  int stem = -1;
};

// "autograd::engine::evaluate_function: MulBackward0" -> "MulBackward0".
std::string_view WithoutEngine(std::string_view name) {
  if (name.starts_with(kEvaluate)) name.remove_prefix(kEvaluate.size());
  return name;
}

// "MulBackward0" -> "Mul"; empty for what is no node.
std::string_view NodeStem(std::string_view name) {
  constexpr std::string_view kSuffix = "Backward";
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.remove_suffix(1);
  }
  if (!name.ends_with(kSuffix) || name.find("::") != std::string_view::npos) return {};
  name.remove_suffix(kSuffix.size());
  return name;
}

// Lower case without underscores: how nodes and operators spell the same word alike.
std::string Spelling(std::string_view name) {
  std::string spelling;
  for (const char c : name) {
    if (c != '_') spelling += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return spelling;
}

std::vector<NameInfo> Understand(const std::vector<std::string>& names) {
  std::unordered_map<std::string, int> stems;
  std::vector<NameInfo> infos;
  infos.reserve(names.size());
  for (const std::string& name : names) {
    NameInfo& info = infos.emplace_back();
    const std::string_view bare = WithoutEngine(name);
    const std::string_view node = NodeStem(bare);
    const std::string_view plain = KinetoOperatorName(name);
    if (name.starts_with(kStep)) {
      info.meaning = NameInfo::kUpdate;
    } else if (bare == kAccumulate) {
      info.meaning = NameInfo::kGradient;
    } else if (name.starts_with(kEvaluate) || !node.empty()) {
      info.meaning = NameInfo::kEvaluation;
    } else if (name.starts_with("ProfilerStep#") || name.starts_with("enumerate(DataLoader)")) {
      info.meaning = NameInfo::kMark;
    } else if (name.starts_with(kZeroGradients)) {
      info.meaning = NameInfo::kOpaque;
    } else if (name.starts_with("nccl:") || name.starts_with("c10d::") ||
               name.starts_with("gloo:") || name.starts_with("_c10d_functional::")) {
      info.meaning = NameInfo::kCollective;
    } else if (name.starts_with("aten::")) {
      info.layer = KinetoLayerOf(plain);
      if (info.layer != KinetoLayer::kNone) info.meaning = NameInfo::kLayer;
      if (IsOpaqueKinetoOperator(plain)) info.meaning = NameInfo::kOpaque;
      info.product = plain == "mm" || plain == "bmm" || plain == "addmm" || plain == "baddbmm";
      info.computes = info.product || plain == "convolution" || plain == "linear" ||
                      plain == "mean" || plain == "native_layer_norm" || plain == "_softmax" ||
                      plain == "_log_softmax" || plain == "max_pool2d_with_indices" ||
                      plain.ends_with("batch_norm");
      info.addition = plain == "add";
      info.convolution_backward = plain == "convolution_backward";
    }
    const std::string spelling = Spelling(node.empty() ? plain : node);
    info.stem = stems.try_emplace(spelling, static_cast<int>(stems.size())).first->second;
  }
  return infos;
}

// A forward operator by the number that its node will have.
struct Made {
  std::int64_t sequence = 0;
  std::int64_t start = 0;
  int stem = 0;
  int thread = 0;
  int unit = -1;
};

class Finder {
 public:
  explicit Finder(const KinetoTrace& trace) : trace_(trace), infos_(Understand(trace.names)) {}

  KinetoCalls Find() {
    for (const KinetoEvent& event : trace_.events) {
      if (event.category == KinetoCategory::kKernel) calls_.gpu = true;
    }
    std::vector<std::vector<int>> threads(static_cast<std::size_t>(trace_.threads));
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const KinetoEvent& event = trace_.events[i];
      if (event.of_device()) continue;
      if (event.category == KinetoCategory::kLaunch && !calls_.gpu) continue;
      threads[static_cast<std::size_t>(event.thread)].push_back(static_cast<int>(i));
    }
    for (std::vector<int>& thread : threads) {
      Walk(&thread);
      std::vector<int>().swap(thread);
    }
    if (calls_.gpu) {
      for (KinetoUnit& unit : calls_.units) unit.time = 0;
      AddKernels();
    }
    LinkNodes();
    SortUnits();
    return std::move(calls_);
  }

 private:
  // An event that is open while those within it are read.
  struct Open {
    std::int64_t end = 0;
    int unit = -1;
    bool engine = false;  // evaluates a node
  };

  const KinetoEvent& Event(int i) const { return trace_.events[static_cast<std::size_t>(i)]; }
  const NameInfo& Info(const KinetoEvent& event) const {
    return infos_[static_cast<std::size_t>(event.name)];
  }
  KinetoUnit& Unit(int i) { return calls_.units[static_cast<std::size_t>(i)]; }

  // One thread's events, each within those that were open when it started: durations are rounded
  // down, so that an end may lie behind that of the event around it, but no neighbour's start does.
  void Walk(std::vector<int>* thread) {
    std::stable_sort(thread->begin(), thread->end(), [&](int a, int b) {
      const KinetoEvent& x = Event(a);
      const KinetoEvent& y = Event(b);
      return x.start != y.start ? x.start < y.start : x.duration > y.duration;
    });
    std::vector<Open> open;
    for (const int i : *thread) {
      const KinetoEvent& event = Event(i);
      while (!open.empty() && event.start >= open.back().end) open.pop_back();
      const Open around = open.empty() ? Open{} : open.back();
      if (event.category == KinetoCategory::kLaunch) {
        NoteLaunch(event, around.unit);
        continue;
      }
      const int unit = UnitOf(event, i, around);
      const NameInfo& info = Info(event);
      if (calls_.gpu && event.external >= 0 && unit >= 0) {
        // Numbers that were given twice tell nothing.
        const auto [it, fresh] = by_external_.try_emplace(event.external, unit);
        if (!fresh && it->second != unit) it->second = -1;
      }
      if (event.sequence >= 0 && info.meaning != NameInfo::kEvaluation) {
        made_.push_back({event.sequence, event.start, info.stem, event.thread, unit});
      }
      open.push_back(
          {event.end(), unit,
           info.meaning == NameInfo::kEvaluation && trace_.NameOf(event).starts_with(kEvaluate)});
    }
  }

  int New(const KinetoEvent& event, int i, int parent, KinetoRole role) {
    KinetoUnit unit;
    unit.start = event.start;
    unit.time = static_cast<double>(event.duration);
    unit.event = i;
    unit.parent = parent;
    unit.role = role;
    if (parent >= 0) Unit(parent).time = std::max(0.0, Unit(parent).time - unit.time);
    calls_.units.push_back(unit);
    return static_cast<int>(calls_.units.size()) - 1;
  }

  // The unit that an event belongs to: a new one or that around it.
  int UnitOf(const KinetoEvent& event, int i, const Open& around) {
    const NameInfo& info = Info(event);
    const int parent = around.unit;
    const bool inside = parent >= 0;
    const KinetoRole role = inside ? Unit(parent).role : KinetoRole::kOther;
    if (info.meaning == NameInfo::kMark) return parent;
    if (inside && role == KinetoRole::kUpdate) {
      NoteUpdate(event, parent);
      return parent;
    }
    if (info.meaning == NameInfo::kCollective) {
      const bool known = inside && Info(Event(Unit(parent).event)).meaning == info.meaning;
      return known ? parent : New(event, i, parent, KinetoRole::kOther);
    }
    if (inside && (role == KinetoRole::kLayer || role == KinetoRole::kFork)) {
      if (info.meaning == NameInfo::kOpaque && role == KinetoRole::kLayer) {
        return New(event, i, parent, KinetoRole::kOther);
      }
      NoteWithinLayer(event, i, info, parent);
      return parent;
    }
    if (inside && info.meaning == NameInfo::kGradient && role == KinetoRole::kGradient) {
      Unit(parent).inner = i;
      return parent;
    }
    if (info.meaning == NameInfo::kGradient) {
      const int unit = New(event, i, parent, KinetoRole::kGradient);
      if (event.inputs >= 0) Unit(unit).inner = i;
      return unit;
    }
    if (inside && role == KinetoRole::kNode) return WithinNode(event, i, info, around);
    if (inside && role == KinetoRole::kOther && IsClosed(parent)) return parent;
    if (info.meaning == NameInfo::kEvaluation) {
      const int unit = New(event, i, parent, KinetoRole::kNode);
      if (event.inputs >= 0) Unit(unit).inner = i;  // old versions show nodes without the engine
      return unit;
    }
    if (info.meaning == NameInfo::kUpdate) {
      const int unit = New(event, i, parent, KinetoRole::kUpdate);
      calls_.updates[unit];
      return unit;
    }
    if (info.meaning == NameInfo::kLayer && event.sequence >= 0) {
      const int unit = New(event, i, parent, KinetoRole::kLayer);
      Unit(unit).kind = info.layer;
      return unit;
    }
    if (info.meaning == NameInfo::kOpaque) return New(event, i, parent, KinetoRole::kOther);
    if (inside) return parent;
    // A span that somebody named does nothing by itself.
    if (event.category == KinetoCategory::kAnnotation) return -1;
    return New(event, i, parent, KinetoRole::kOther);
  }

  // Whether everything within an unattributed unit belongs to it.
  bool IsClosed(int unit) {
    const NameInfo::Class meaning = Info(Event(Unit(unit).event)).meaning;
    return meaning == NameInfo::kOpaque || meaning == NameInfo::kCollective;
  }

  int WithinNode(const KinetoEvent& event, int i, const NameInfo& info, const Open& around) {
    const int node = around.unit;
    if (info.meaning == NameInfo::kLayer && event.sequence >= 0) {
      // Gradients are enabled: a checkpoint computes its layers again.
      const int unit = New(event, i, node, KinetoRole::kLayer);
      Unit(unit).kind = info.layer;
      Unit(unit).again = true;
      return unit;
    }
    if (info.meaning == NameInfo::kEvaluation) {
      if (!around.engine) return New(event, i, node, KinetoRole::kNode);  // of a graph within
      if (Unit(node).inner < 0) Unit(node).inner = i;
      return node;
    }
    if (around.engine && info.addition) {
      const int unit = New(event, i, node, KinetoRole::kFork);
      Unit(unit).kind = KinetoLayer::kAdd;
      return unit;
    }
    if (info.product) ++Unit(node).products;
    if (info.convolution_backward) Unit(node).mask = i;
    return node;
  }

  void NoteWithinLayer(const KinetoEvent& event, int i, const NameInfo& info, int unit) {
    KinetoUnit& layer = Unit(unit);
    const KinetoInputs* inputs = trace_.InputsOf(event);
    if (inputs == nullptr || inputs->empty() || !info.computes) return;
    const bool linear = info.layer == KinetoLayer::kDense && !info.product;
    if (linear && inputs->front().dims.size() == 3) ++layer.products;
    if (layer.inner < 0) layer.inner = i;
  }

  void NoteUpdate(const KinetoEvent& event, int unit) {
    const KinetoInputs* inputs = trace_.InputsOf(event);
    if (inputs == nullptr || inputs->empty()) return;
    const KinetoInput& first = inputs->front();
    KinetoUpdate& update = calls_.updates[unit];
    std::int64_t elements = KinetoElements(first.list);
    if (!first.dims.empty()) elements = KinetoSum(elements, KinetoElements(first.dims));
    if (first.type == "TensorList" && first.list.empty()) update.unknown = true;
    const std::string_view name = trace_.NameOf(event);
    std::int64_t& sum = update.elements[std::string(name)];
    sum = KinetoSum(sum, elements);
    Precision precision = Precision::kFp32;
    if (update.type.empty() && KinetoPrecision(first.type, &precision)) {
      update.type = first.type;
    }
    if (name == "aten::_fused_sgd_" && inputs->size() > 4) update.momentum = (*inputs)[4].value;
  }

  // ---- The GPU's time.

  void NoteLaunch(const KinetoEvent& event, int unit) {
    if (event.correlation < 0) return;
    launches_.push_back({event.correlation, event.external, unit});
  }

  struct Launch {
    std::int64_t correlation = 0;
    std::int64_t external = 0;
    int unit = -1;
  };

  void AddKernels() {
    std::stable_sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
      return a.correlation < b.correlation;
    });
    std::vector<char> tf32(trace_.names.size());
    for (std::size_t i = 0; i < tf32.size(); ++i) {
      const std::string& name = trace_.names[i];
      // CUTLASS calls products of tf32 with sums of fp32 s1688.
      tf32[i] = name.find("tf32") != std::string::npos ||
                name.find("tensorop_s1688gemm") != std::string::npos;
    }
    for (const KinetoEvent& event : trace_.events) {
      if (!event.of_device()) continue;
      const auto [unit, launched] = Launcher(event);
      if (unit < 0) {
        calls_.stray[launched ? "kernels of no operator" : "kernels launched before the trace"] +=
            static_cast<double>(event.duration);
        continue;
      }
      Unit(unit).time += static_cast<double>(event.duration);
      if (tf32[static_cast<std::size_t>(event.name)] != 0) Unit(unit).tf32 = true;
    }
  }

  // By the launch; where that is not within an operator, or not in the trace, by the number that
  // newer versions give operators and kernels alike (older ones repeat the correlation there).
  std::pair<int, bool> Launcher(const KinetoEvent& event) {
    const auto by_external = [&](std::int64_t external) {
      const auto it = by_external_.find(external);
      return external < 0 || it == by_external_.end() ? -1 : it->second;
    };
    const auto it = std::lower_bound(
        launches_.begin(), launches_.end(), event.correlation,
        [](const Launch& launch, std::int64_t value) { return launch.correlation < value; });
    const bool launched =
        event.correlation >= 0 && it != launches_.end() && it->correlation == event.correlation;
    const bool repeats = event.external == event.correlation;
    if (launched) {
      const auto next = it + 1;
      if (next != launches_.end() && next->correlation == it->correlation &&
          next->unit != it->unit) {
        calls_.ambiguous = it->correlation;
      }
      if (it->unit >= 0) return {it->unit, true};
      return {it->external == it->correlation ? -1 : by_external(it->external), true};
    }
    const int unit = repeats ? -1 : by_external(event.external);
    return {unit, unit >= 0};
  }

  // ---- Nodes and their layers.

  // Forward operators of one number and word come thread by thread, each in the order of time.
  static auto Order(const Made& made) {
    return std::tie(made.sequence, made.stem, made.thread, made.start);
  }
  // Behind the last operator that may have made a node of this thread's: started no later.
  std::vector<Made>::const_iterator Behind(const KinetoEvent& node, int thread,
                                           std::int64_t start) const {
    const Made latest{node.sequence, start, Info(node).stem, thread, -1};
    return std::upper_bound(made_.begin(), made_.end(), latest,
                            [](const Made& x, const Made& y) { return Order(x) < Order(y); });
  }
  bool Fits(std::vector<Made>::const_iterator made, const KinetoEvent& node) const {
    return made != made_.end() && made->sequence == node.sequence && made->stem == Info(node).stem;
  }

  // Sequence numbers count within a thread, and nodes name the forward thread by a number of its
  // own: the thread whose operators match most of a number's nodes is taken.
  void LinkNodes() {
    std::sort(made_.begin(), made_.end(),
              [](const Made& x, const Made& y) { return Order(x) < Order(y); });
    constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
    std::map<std::pair<std::int64_t, int>, std::int64_t> votes;
    for (const KinetoUnit& unit : calls_.units) {
      const KinetoEvent& node = Event(unit.event);
      if (unit.role != KinetoRole::kNode || node.sequence < 0) continue;
      for (auto it = Behind(node, -1, kEver); Fits(it, node);
           it = Behind(node, it->thread, kEver)) {
        if (it->start <= node.start) ++votes[{node.forward_thread, it->thread}];
      }
    }
    std::map<std::int64_t, int> threads;
    std::map<std::int64_t, std::int64_t> most;
    for (const auto& [key, count] : votes) {
      if (count > most[key.first]) {
        most[key.first] = count;
        threads[key.first] = key.second;
      }
    }
    for (KinetoUnit& unit : calls_.units) {
      if (unit.role != KinetoRole::kNode) continue;
      const KinetoEvent& node = Event(unit.event);
      const auto thread = threads.find(node.forward_thread);
      if (node.sequence < 0 || thread == threads.end()) continue;
      // The last operator before the number went up is the one that made the node.
      const auto behind = Behind(node, thread->second, node.start);
      if (behind == made_.begin()) continue;
      const auto made = behind - 1;
      const int found = Fits(made, node) && made->thread == thread->second ? made->unit : -1;
      if (found >= 0 && Unit(found).role == KinetoRole::kLayer) unit.layer = found;
    }
  }

  void SortUnits() {
    std::vector<KinetoUnit>& units = calls_.units;
    std::vector<int> order(units.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return Unit(a).start < Unit(b).start; });
    std::vector<int> place(units.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    }
    const auto moved = [&](int unit) {
      return unit < 0 ? -1 : place[static_cast<std::size_t>(unit)];
    };
    std::vector<KinetoUnit> sorted;
    sorted.reserve(units.size());
    for (const int i : order) {
      KinetoUnit unit = Unit(i);
      unit.parent = moved(unit.parent);
      unit.layer = moved(unit.layer);
      sorted.push_back(unit);
    }
    units = std::move(sorted);
    std::map<int, KinetoUpdate> updates;
    for (auto& [unit, update] : calls_.updates) updates[moved(unit)] = std::move(update);
    calls_.updates = std::move(updates);
  }

  const KinetoTrace& trace_;
  std::vector<NameInfo> infos_;
  KinetoCalls calls_;
  std::vector<Made> made_;
  std::vector<Launch> launches_;
  std::unordered_map<std::int64_t, int> by_external_;
};

}  // namespace

KinetoCalls FindKinetoCalls(const KinetoTrace& trace) { return Finder(trace).Find(); }

std::string_view KinetoNodeName(std::string_view name) { return WithoutEngine(name); }

}  // namespace stepcast
