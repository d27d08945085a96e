#include "data/kineto/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "data/kineto/layers.h"
#include "data/kineto/spans.h"
#include "data/kineto/trace.h"
#include "data/plan/limits.h"
#include "data/record/controls.h"
#include "data/record/input_error.h"
#include "data/values/text_as_number.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostWork = 40'000'000;        // kernels and copies; and launches
constexpr std::size_t kMostCollectives = 1'000'000;  // of a rank
constexpr std::size_t kMostRemarks = 100;            // of different ones
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;
constexpr std::int64_t kRounding = 1000;  // ns: old versions tell whole microseconds
constexpr const char* kWantedRanks = "a trace of training steps by torch.profiler";

std::optional<std::int64_t> CountOf(std::string_view text) {
  const auto value = TextAsNumber<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// Letters alone and small: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" and "_allgather_base" say
// it with and without underscores.
CollectiveCall CallNamed(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  // Longer words before those that they hold.
  constexpr std::pair<std::string_view, CollectiveCall> kWords[] = {
      {"allreduce", CollectiveCall::kAllReduce},
      {"reducescatter", CollectiveCall::kReduceScatter},
      {"allgather", CollectiveCall::kAllGather},
      {"alltoall", CollectiveCall::kAllToAll},
      {"barrier", CollectiveCall::kBarrier},
      {"broadcast", CollectiveCall::kBroadcast},
      {"sendrecv", CollectiveCall::kSendReceive},
      {"gather", CollectiveCall::kGather},
      {"scatter", CollectiveCall::kScatter},
      {"reduce", CollectiveCall::kReduce},
      {"send", CollectiveCall::kSend},
      {"recv", CollectiveCall::kReceive},
  };
  for (const auto& [word, call] : kWords) {
    if (letters.find(word) != std::string::npos) return call;
  }
  return CollectiveCall::kOther;
}

// A kernel of NCCL, RCCL, MSCCL or oneCCL, by its name; Kineto tells collectives by theirs too.
bool IsCollectiveKernel(std::string_view name) {
  for (const std::string_view start : {"nccl", "rccl", "msccl", "oneccl"}) {
    if (name.starts_with(start)) return true;
  }
  return name.find("ncclKernel") != std::string_view::npos ||
         name.find("ncclDevKernel") != std::string_view::npos;
}

// Spans of libraries that run on the host: from where a call is queued to where it is done.
bool IsHostCollective(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:");
}

// Bytes of an element by the names that PyTorch gives its types, in collectives and of tensors.
std::optional<int> BytesOfType(std::string_view type) {
  static const std::map<int, std::vector<std::string_view>> kTypes = {
      {1,
       {"Byte", "unsigned char", "Char", "signed char", "Bool", "bool", "Float8_e5m2",
        "Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz"}},
      {2, {"Short", "short int", "short", "Half", "c10::Half", "BFloat16", "c10::BFloat16"}},
      {4, {"Int", "int", "Float", "float"}},
      {8, {"Long", "long int", "long", "Double", "double", "ComplexFloat", "c10::complex<float>"}},
      {16, {"ComplexDouble", "c10::complex<double>"}}};
  for (const auto& [bytes, types] : kTypes) {
    if (std::find(types.begin(), types.end(), type) != types.end()) return bytes;
  }
  return std::nullopt;
}

// An operator that does something itself: "aten::mm", not the node of the graph around it, nor a
// call that communicates or marks.
bool Computes(std::string_view name) {
  const std::size_t colons = name.find("::");
  if (colons == std::string_view::npos || colons == 0) return false;
  const std::string_view library = name.substr(0, colons);
  for (const std::string_view other :
       {"autograd", "torch", "c10d", "_c10d_functional", "c10d_functional", "profiler"}) {
    if (library == other) return false;
  }
  return std::all_of(library.begin(), library.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

class RankReader : public KinetoVisitor {
 public:
  explicit RankReader(std::string path) { result_.path = std::move(path); }

  bool WantsInputs(std::string_view name) const override {
    return IsHostCollective(name) || name.starts_with("nccl:");
  }

  void Take(const KinetoEvent& event, const std::string& name, const KinetoInputs* inputs,
            const KinetoMessage& message) override {
    switch (event.category) {
      case KinetoCategory::kKernel:
      case KinetoCategory::kTransfer:
        TakeWork(event, name, message);
        break;
      case KinetoCategory::kLaunch:
        Limit(launches_.size(), kMostWork, "launches");
        if (event.correlation >= 0) {
          launches_.push_back({event.correlation, event.start, event.external, event.thread});
        }
        break;
      case KinetoCategory::kOperator:
      case KinetoCategory::kAnnotation:
        TakeOfHost(event, name, inputs, message);
        break;
    }
  }

  RankTrace Finish(const KinetoTrace& file) {
    TakeDistributed(file.distributed);
    if (!result_.gpu && nccl_calls_) {
      throw InputError({result_.path, 0, ""}, "", "has calls of NCCL and no kernels",
                       "a trace with ProfilerActivity.CUDA");
    }
    if (work_.empty() && computing_.empty() && host_.empty()) {
      throw InputError({result_.path, 0, ""}, "", "has neither kernels nor operators",
                       kWantedRanks);
    }
    std::stable_sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
      return a.correlation < b.correlation;
    });
    OrderMarks();
    RequireOneProcess();
    ChooseDevice();
    TakeCollectives();
    FindSteps();
    MeasureCollectives();
    return std::move(result_);
  }

 private:
  enum class WorkKind : std::uint8_t { kComputing, kCopying, kCollective };
  struct Work {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t correlation = -1;
    std::int64_t external = -1;
    int collective = -1;  // index of facts_
    std::uint16_t device = 0;
    WorkKind kind = WorkKind::kComputing;
  };
  struct Launch {
    std::int64_t correlation = 0;
    std::int64_t start = 0;
    std::int64_t external = 0;
    int thread = 0;
  };
  // record_param_comms, or nccl:all_reduce, within which a kernel is launched.
  struct HostCall {
    int thread = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t external = -1;
    CollectiveFacts facts;
  };

  void Limit(std::size_t count, std::size_t most, const char* what) const {
    if (count < most) return;
    throw InputError({result_.path, 0, "traceEvents"}, "", fmt::format("has too many {}", what),
                     fmt::format("at most {}: record fewer steps", most));
  }

  void Remark(const std::string& text) {
    if (result_.remarks.size() < kMostRemarks || result_.remarks.count(text) > 0) {
      ++result_.remarks[text];
    } else {
      ++result_.remarks["more that was not understood"];
    }
  }

  // ---- Events.

  void TakeWork(const KinetoEvent& event, const std::string& name, const KinetoMessage& message) {
    Limit(work_.size(), kMostWork, "kernels and copies");
    Work work;
    work.begin = event.start;
    work.end = event.end();
    work.correlation = event.correlation;
    work.external = event.external == event.correlation ? -1 : event.external;
    work.device = static_cast<std::uint16_t>(event.device);
    if (event.category == KinetoCategory::kTransfer) {
      work.kind = WorkKind::kCopying;
    } else {
      if (!result_.gpu) computing_.Clear();  // the host's operators only launch what is computed
      result_.gpu = true;
      if (!message.collective.empty() || IsCollectiveKernel(name)) {
        Limit(facts_.size(), kMostCollectives, "collectives");
        work.kind = WorkKind::kCollective;
        work.collective = static_cast<int>(facts_.size());
        CollectiveFacts facts = FactsOf(message);
        if (facts.kind == CollectiveCall::kOther) facts.kind = CallNamed(name);
        facts_.push_back(facts);
        names_.push_back(NumberOf(&kernel_numbers_, &kernel_names_, name));
      }
    }
    work_.push_back(work);
  }

  void TakeOfHost(const KinetoEvent& event, const std::string& name, const KinetoInputs* inputs,
                  const KinetoMessage& message) {
    constexpr std::string_view kMark = "ProfilerStep#";
    if (name.starts_with(kMark)) {
      const auto number = CountOf(std::string_view(name).substr(kMark.size()));
      if (!number) {
        throw InputError({result_.path, 0, "name"}, name.substr(0, 80), "is not the mark of a step",
                         "ProfilerStep#N");
      }
      marks_.push_back({*number, event.start, event.end()});
    } else if (IsHostCollective(name)) {
      Limit(host_.size(), kMostCollectives, "collectives");
      RankCollective call{FactsOf(message)};
      call.Complete(FactsOf(name, inputs));
      call.begin = event.start;
      call.end = event.end();
      call.queued = true;
      if (call.kind == CollectiveCall::kOther) Remark("a collective called " + name.substr(0, 80));
      host_.push_back(call);
    } else if (name == "record_param_comms" || name.starts_with("nccl:")) {
      nccl_calls_ = nccl_calls_ || name.starts_with("nccl:");
      Limit(calls_.size(), kMostCollectives, "calls of collectives");
      CollectiveFacts facts = FactsOf(message);
      if (name.starts_with("nccl:")) facts.Complete(FactsOf(name, inputs));
      calls_.push_back({event.thread, event.start, event.end(), event.external, facts});
    } else if (!result_.gpu && event.category == KinetoCategory::kOperator && Computes(name)) {
      computing_.Add(event.start, event.end());
    }
  }

  // ---- What is said of a collective.

  static int NumberOf(std::unordered_map<std::string, int>* numbers, std::vector<std::string>* all,
                      const std::string& text) {
    const auto [it, fresh] = numbers->try_emplace(text, static_cast<int>(all->size()));
    if (fresh) all->push_back(text);
    return it->second;
  }
  int TypeNumber(const std::string& type) {
    return type.empty() ? -1 : NumberOf(&type_numbers_, &result_.types, type.substr(0, 80));
  }

  std::optional<std::int64_t> BytesOf(std::int64_t elements, const std::string& type) {
    const auto size = BytesOfType(type);
    if (!size) {
      Remark("messages of type " + (type.empty() ? "unknown" : type.substr(0, 80)) +
             ", whose size is not known");
      return std::nullopt;
    }
    if (elements > kMostElements) {
      Remark("messages of more than 10^15 elements");
      return std::nullopt;
    }
    return elements * *size;
  }

  CollectiveFacts FactsOf(const KinetoMessage& message) {
    CollectiveFacts facts;
    if (message.collective.empty() && message.in_elements.empty()) return facts;
    facts.kind = CallNamed(message.collective);
    facts.type = TypeNumber(message.type);
    if (!message.in_elements.empty() || !message.out_elements.empty()) {
      const auto in = CountOf(message.in_elements);
      const auto out = CountOf(message.out_elements);
      if (in && out) {
        facts.bytes = BytesOf(std::max(*in, *out), message.type);
      } else {
        Remark("messages whose elements are not whole numbers");
      }
    }
    if (!message.number.empty()) {
      const auto number = CountOf(message.number);
      if (number) {
        facts.number = *number;
      } else {
        Remark("collectives whose Seq is not a whole number");
      }
    }
    if (!message.group_size.empty()) {
      const auto size = CountOf(message.group_size);
      if (size && *size > 0 && *size <= kMostCount) {
        facts.group_size = static_cast<int>(*size);
      } else {
        Remark("collectives whose Group size is not a number of ranks");
      }
    }
    if (!message.group.empty() || !message.members.empty()) {
      RankGroup group{message.group.substr(0, 200), MembersOf(message.members)};
      if (!group.members.empty() && facts.group_size > 0 &&
          group.members.size() != static_cast<std::size_t>(facts.group_size)) {
        Remark("collectives whose group has other ranks than its size says");
        group.members.clear();
      }
      const auto [it, fresh] =
          group_numbers_.try_emplace(group, static_cast<int>(result_.groups.size()));
      if (fresh) result_.groups.push_back(group);
      facts.group = it->second;
    }
    return facts;
  }

  // "[0, 1, 2]"; none for a list that is cut off, "[0, 1, ..., 63]".
  std::vector<int> MembersOf(std::string_view text) {
    std::vector<int> members;
    if (text.find("...") != std::string_view::npos) return members;
    constexpr std::string_view kDigits = "0123456789";
    for (std::size_t at = text.find_first_of(kDigits); at != std::string_view::npos;
         at = text.find_first_of(kDigits, at)) {
      const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
      const auto rank = CountOf(text.substr(at, end - at));
      if (!rank || *rank >= kMostCount || members.size() >= kMostCount) {
        Remark("groups whose ranks are no ranks");
        return {};
      }
      members.push_back(static_cast<int>(*rank));
      at = end;
    }
    return members;
  }

  // The facts of a call such as "gloo:all_reduce", with the tensors that it was given.
  CollectiveFacts FactsOf(const std::string& name, const KinetoInputs* inputs) {
    CollectiveFacts facts;
    facts.kind = CallNamed(name.substr(name.find(':')));
    if (inputs == nullptr || inputs->empty()) return facts;
    std::int64_t elements = 0;
    std::string type;
    for (const KinetoInput& input : *inputs) {
      if (!input.list.empty()) elements = KinetoSum(elements, KinetoElements(input.list));
      if (!input.dims.empty()) elements = KinetoSum(elements, KinetoElements(input.dims));
      if (type.empty()) type = input.type;
    }
    facts.type = TypeNumber(type);
    // What comes out of the others is more than goes in, or goes to one rank alone.
    if (facts.kind == CollectiveCall::kAllReduce || facts.kind == CollectiveCall::kBroadcast ||
        facts.kind == CollectiveCall::kReduce) {
      facts.bytes = BytesOf(elements, type);
    }
    return facts;
  }

  // ---- The whole.

  std::optional<int> Distributed(const std::map<std::string, std::string>& told, const char* key,
                                 std::int64_t least) const {
    const auto it = told.find(key);
    if (it == told.end() || it->second.empty()) return std::nullopt;
    const auto value = CountOf(it->second);
    if (!value || *value < least || *value > kMostCount) {
      throw InputError({result_.path, 0, std::string("distributedInfo.") + key}, it->second,
                       "is not a number of ranks", fmt::format("{} to {}", least, kMostCount));
    }
    return static_cast<int>(*value);
  }

  void TakeDistributed(const std::map<std::string, std::string>& told) {
    result_.rank = Distributed(told, "rank", 0);
    result_.world_size = Distributed(told, "world_size", 1);
    if (result_.rank && result_.world_size && *result_.rank >= *result_.world_size) {
      throw InputError({result_.path, 0, "distributedInfo.rank"}, std::to_string(*result_.rank),
                       "is none of the world's",
                       fmt::format("less than its world_size, {}", *result_.world_size));
    }
    if (const auto it = told.find("backend"); it != told.end()) result_.backend = it->second;
    if (HasControls(result_.backend)) {
      throw InputError({result_.path, 0, "distributedInfo.backend"}, result_.backend,
                       "has a control character", "a name like nccl");
    }
  }

  void OrderMarks() {
    std::sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return std::tie(a.begin, a.number) < std::tie(b.begin, b.number);
    });
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      numbers.push_back(marks_[i].number);
      if (i + 1 == marks_.size() || marks_[i].end <= marks_[i + 1].begin) continue;
      if (marks_[i].end - marks_[i + 1].begin > kRounding) {
        throw InputError(
            {result_.path, 0, fmt::format("ProfilerStep#{}", marks_[i].number)}, "",
            fmt::format("has not ended where ProfilerStep#{} begins", marks_[i + 1].number),
            "a trace of one process");
      }
      marks_[i].end = std::max(marks_[i].begin, marks_[i + 1].begin);
    }
    std::sort(numbers.begin(), numbers.end());
    const auto twice = std::adjacent_find(numbers.begin(), numbers.end());
    if (twice != numbers.end()) {
      throw InputError({result_.path, 0, fmt::format("ProfilerStep#{}", *twice)}, "",
                       "is marked twice", "a trace of one process");
    }
  }

  // Launches of several processes in one file have the same numbers.
  void RequireOneProcess() const {
    for (std::size_t i = 1; i < launches_.size(); ++i) {
      const Launch& one = launches_[i - 1];
      const Launch& next = launches_[i];
      if (one.correlation != next.correlation || MarkBefore(one.start) == MarkBefore(next.start)) {
        continue;
      }
      throw InputError({result_.path, 0, "correlation"}, std::to_string(one.correlation),
                       "is the number of launches in several steps", "a trace of one process");
    }
  }

  // The device of the collectives, or else the one that worked the longest.
  void ChooseDevice() {
    std::map<int, std::pair<std::int64_t, std::int64_t>> times;
    std::map<int, int> counts;
    constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max() / 4;
    for (const Work& work : work_) {
      auto& [collectives, all] = times[work.device];
      const std::int64_t time = work.end - work.begin;
      if (work.kind == WorkKind::kCollective) collectives = std::min(collectives + time, kWhole);
      all = std::min(all + time, kWhole);
      ++counts[work.device];
    }
    for (const auto& [device, time] : times) {
      if (device_ < 0 || time > times[device_]) device_ = device;
    }
    for (const auto& [device, count] : counts) {
      if (device == device_) continue;
      result_.remarks[fmt::format("kernels and copies of device {} are left out", device)] = count;
    }
  }

  const Launch* LaunchOf(const Work& work) const {
    if (work.correlation < 0) return nullptr;
    const auto it = std::lower_bound(
        launches_.begin(), launches_.end(), work.correlation,
        [](const Launch& launch, std::int64_t value) { return launch.correlation < value; });
    return it != launches_.end() && it->correlation == work.correlation ? &*it : nullptr;
  }

  // The last mark that begins no later; -1 before the first.
  int MarkBefore(std::int64_t time) const {
    const auto it =
        std::upper_bound(marks_.begin(), marks_.end(), time,
                         [](std::int64_t value, const Mark& mark) { return value < mark.begin; });
    return static_cast<int>(it - marks_.begin()) - 1;
  }

  void TakeCollectives() {
    std::unordered_map<std::int64_t, const HostCall*> by_external;
    std::unordered_map<std::int64_t, int> kernels;  // of a call
    std::sort(calls_.begin(), calls_.end(), [](const HostCall& a, const HostCall& b) {
      return std::tie(a.thread, a.begin) < std::tie(b.thread, b.begin);
    });
    for (const HostCall& call : calls_) {
      if (call.external >= 0) by_external.try_emplace(call.external, &call);
    }
    for (const Work& work : work_) {
      if (work.kind == WorkKind::kCollective && work.external >= 0) ++kernels[work.external];
    }
    for (const Work& work : work_) {
      if (work.kind != WorkKind::kCollective || work.device != device_) continue;
      const auto at = static_cast<std::size_t>(work.collective);
      CollectiveFacts& facts = facts_[at];
      const Launch* launch = LaunchOf(work);
      if (const auto it = by_external.find(work.external); it != by_external.end()) {
        facts.Complete(it->second->facts);
      }
      if (launch != nullptr) CompleteByLaunch(*launch, by_external, &facts);
      if (facts.kind == CollectiveCall::kOther) {
        Remark("a collective by kernel " +
               kernel_names_[static_cast<std::size_t>(names_[at])].substr(0, 80));
      }
      if (work.external >= 0 && kernels[work.external] > 1 && facts.bytes) {
        Remark("kernels that share a call, so that the bytes of each are not known");
        facts.bytes.reset();
      }
      RankCollective call{facts};
      call.begin = work.begin;
      call.end = work.end;
      // As each rank's program has it, however far its device is behind.
      call.step = StepOf(launch != nullptr ? launch->start : work.begin);
      result_.collectives.push_back(call);
    }
    for (RankCollective call : host_) {
      call.step = StepOf(call.begin);
      result_.collectives.push_back(call);
    }
    std::stable_sort(
        result_.collectives.begin(), result_.collectives.end(),
        [](const RankCollective& a, const RankCollective& b) { return a.begin < b.begin; });
  }

  int StepOf(std::int64_t time) const {
    if (marks_.empty()) return 0;
    const int mark = MarkBefore(time);
    return mark >= 0 && time < marks_[static_cast<std::size_t>(mark)].end ? mark : -1;
  }

  // The call that a kernel was launched for, by the launch's number or within its time.
  void CompleteByLaunch(const Launch& launch,
                        const std::unordered_map<std::int64_t, const HostCall*>& by_external,
                        CollectiveFacts* facts) const {
    if (launch.external != launch.correlation) {
      const auto it = by_external.find(launch.external);
      if (it != by_external.end()) facts->Complete(it->second->facts);
    }
    auto it =
        std::upper_bound(calls_.begin(), calls_.end(), std::make_tuple(launch.thread, launch.start),
                         [](const std::tuple<int, std::int64_t>& value, const HostCall& c) {
                           return value < std::make_tuple(c.thread, c.begin);
                         });
    // nccl:all_reduce is within record_param_comms.
    constexpr int kNested = 2;
    for (int i = 0; i < kNested && it != calls_.begin(); ++i) {
      --it;
      if (it->thread == launch.thread && launch.start < it->end) facts->Complete(it->facts);
    }
  }

  // A step begins on a device where the host begins it and all is done that was launched before,
  // and ends where the next begins: a host that runs ahead marks steps that are shorter than the
  // device takes for them. On the host alone a step is its mark.
  void FindSteps() {
    KinetoSpans communication;
    KinetoSpans copying;
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
    // When all was done that was launched in a step, and behind it; the first are none's.
    std::vector<std::int64_t> done(marks_.size() + 1, kNever);
    std::vector<std::int64_t> done_behind(marks_.size() + 1, kNever);
    for (const Work& work : work_) {
      if (work.device != device_) continue;
      if (work.kind == WorkKind::kComputing) {
        computing_.Add(work.begin, work.end);
      } else {
        (work.kind == WorkKind::kCopying ? copying : communication).Add(work.begin, work.end);
      }
      const Launch* launch = LaunchOf(work);
      if (launch == nullptr) continue;
      const auto mark = static_cast<std::size_t>(MarkBefore(launch->start) + 1);
      const bool within = StepOf(launch->start) >= 0;
      std::int64_t& last = (within ? done : done_behind)[mark];
      last = std::max(last, work.end);
    }
    for (const RankCollective& call : host_) communication.Add(call.begin, call.end);
    computing_.Merge();
    communication.Merge();
    copying.Merge();
    KinetoSpans busy = computing_;
    busy.Add(communication);
    busy.Merge();
    KinetoSpans all = busy;
    all.Add(copying);
    const std::vector<KinetoSpan>& spans = all.Merge();

    result_.marked = !marks_.empty();
    std::vector<RankStep> steps;
    std::int64_t reached = done_behind[0];
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      RankStep step;
      step.number = marks_[i].number;
      step.begin = std::max(marks_[i].begin, reached);
      step.end = std::max({marks_[i].end, reached, done[i + 1]});
      reached = std::max(step.end, done_behind[i + 1]);
      steps.push_back(step);
    }
    if (marks_.empty()) {
      RankStep step;
      if (!spans.empty()) {
        step.begin = spans.front().begin;
        step.end = spans.back().end;
      }
      steps.push_back(step);
    }
    std::vector<int> moved(steps.size(), -1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      RankStep& step = steps[i];
      if (all.Covered(step.begin, step.end) == 0) {
        ++result_.idle_marks;
        continue;
      }
      step.computing = computing_.Covered(step.begin, step.end);
      step.communication = communication.Covered(step.begin, step.end);
      step.exposed = step.communication - communication.Shared(computing_, step.begin, step.end);
      step.copying =
          copying.Covered(step.begin, step.end) - copying.Shared(busy, step.begin, step.end);
      moved[i] = static_cast<int>(result_.steps.size());
      result_.steps.push_back(step);
    }
    if (result_.steps.empty()) {
      throw InputError({result_.path, 0, ""}, "", "has no step in which anything took time",
                       kWantedRanks);
    }
    for (RankCollective& call : result_.collectives) {
      if (call.step >= 0) call.step = moved[static_cast<std::size_t>(call.step)];
    }
  }

  void MeasureCollectives() {
    for (RankCollective& call : result_.collectives) {
      call.exposed = call.duration() - computing_.Covered(call.begin, call.end);
    }
  }

  struct Mark {
    std::int64_t number = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  RankTrace result_;
  std::vector<Mark> marks_;
  std::vector<Work> work_;
  std::vector<Launch> launches_;
  std::vector<CollectiveFacts> facts_;  // of collective kernels
  std::vector<int> names_;              // theirs, as numbers of kernel_names_
  std::vector<std::string> kernel_names_;
  std::vector<HostCall> calls_;
  std::vector<RankCollective> host_;
  KinetoSpans computing_;
  std::unordered_map<std::string, int> kernel_numbers_;
  std::unordered_map<std::string, int> type_numbers_;
  std::map<RankGroup, int> group_numbers_;
  int device_ = -1;
  bool nccl_calls_ = false;
};

}  // namespace

RankTrace ReadRankTrace(const std::string& path) {
  RankReader reader(path);
  const KinetoTrace file = VisitKinetoTrace(path, &reader);
  return reader.Finish(file);
}

}  // namespace stepcast
