#include "data/kineto/import_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "data/io/runs.h"
#include "data/kineto/rank_trace.h"
#include "data/kineto/spans.h"
#include "data/record/input_error.h"
#include "data/record/quantile.h"

namespace stepcast {
namespace {

// Fewer steps tell little of how they scatter.
constexpr std::size_t kStepsForQuantiles = 10;

constexpr double RankTimes::*kRankParts[] = {
    &RankTimes::step,    &RankTimes::computing, &RankTimes::communication,
    &RankTimes::exposed, &RankTimes::hidden,    &RankTimes::copying,
    &RankTimes::idle,    &RankTimes::waits,     &RankTimes::waited_for};

double SecondsOf(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

// The traces of all ranks, in the order of the ranks.
class RanksImporter {
 public:
  explicit RanksImporter(std::vector<RankTrace> traces) : traces_(std::move(traces)) {}

  TrainingRanks Import() {
    NameRanks();
    CheckWorld();
    FindStepsOfAll();
    MeasureSteps();
    ClassifyCalls();
    CompareCalls();
    FinishClasses();
    FinishMeans();
    return std::move(result_);
  }

 private:
  // ---- Who is who.

  void NameRanks() {
    const auto tells = [](const RankTrace& trace) { return trace.rank.has_value(); };
    const auto first = std::find_if(traces_.begin(), traces_.end(), tells);
    result_.ranks_are_told = first != traces_.end();
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      if (result_.ranks_are_told && !traces_[i].rank) {
        throw InputError({traces_[i].path, 0, "distributedInfo.rank"}, "", "is missing",
                         "in all traces, as in " + first->path + ", or in none");
      }
      if (!result_.ranks_are_told) traces_[i].rank = static_cast<int>(i);
    }
    std::stable_sort(traces_.begin(), traces_.end(),
                     [](const RankTrace& a, const RankTrace& b) { return *a.rank < *b.rank; });
    const auto twice = std::adjacent_find(
        traces_.begin(), traces_.end(),
        [](const RankTrace& a, const RankTrace& b) { return *a.rank == *b.rank; });
    if (twice != traces_.end()) {
      throw InputError({(twice + 1)->path, 0, "distributedInfo.rank"}, std::to_string(*twice->rank),
                       "is the rank of " + twice->path + " too", "one trace of each rank");
    }
  }

  void CheckWorld() {
    const RankTrace& first = traces_.front();
    for (const RankTrace& trace : traces_) {
      const auto text = [](const std::optional<int>& size) {
        return size ? std::to_string(*size) : std::string();
      };
      if (trace.world_size != first.world_size) {
        throw InputError({trace.path, 0, "distributedInfo.world_size"}, text(trace.world_size),
                         "is another than that of " + first.path,
                         first.world_size ? text(first.world_size) : "none, as there");
      }
      if (trace.backend != first.backend) {
        throw InputError({trace.path, 0, "distributedInfo.backend"}, trace.backend,
                         "is another than that of " + first.path,
                         first.backend.empty() ? "none, as there" : first.backend);
      }
      if (trace.gpu != first.gpu) {
        throw InputError({trace.path, 0, ""}, "",
                         std::string(trace.gpu ? "has kernels of a GPU" : "has no kernels") +
                             ", unlike " + first.path,
                         "traces of the same activities");
      }
      if (trace.marked != first.marked) {
        throw InputError({trace.path, 0, ""}, "",
                         std::string(trace.marked ? "has marks of steps" : "marks no steps") +
                             ", unlike " + first.path,
                         "a schedule and profiler.step() on all ranks, or on none");
      }
    }
    result_.backend = first.backend;
    result_.gpu = first.gpu;
    result_.marked = first.marked;
    result_.world_is_told = first.world_size.has_value();
    result_.world_size = first.world_size.value_or(
        std::max(static_cast<int>(traces_.size()), *traces_.back().rank + 1));
    for (const RankTrace& trace : traces_) {
      RankOfTraining rank;
      rank.rank = *trace.rank;
      rank.path = trace.path;
      rank.idle_marks = trace.idle_marks;
      rank.remarks = trace.remarks;
      result_.ranks.push_back(rank);
    }
    auto known = traces_.begin();
    for (int rank = 0; rank < result_.world_size; ++rank) {
      if (known != traces_.end() && *known->rank == rank) {
        ++known;
      } else {
        result_.missing.push_back(rank);
      }
    }
  }

  // ---- Steps.

  void FindStepsOfAll() {
    std::map<std::int64_t, std::size_t> counts;
    for (const RankTrace& trace : traces_) {
      for (const RankStep& step : trace.steps) ++counts[step.number];
    }
    std::map<std::int64_t, int> places;
    for (const auto& [number, count] : counts) {
      if (count < traces_.size()) {
        result_.others.push_back(number);
        continue;
      }
      places[number] = static_cast<int>(result_.steps.size());
      result_.steps.emplace_back();
      result_.steps.back().number = number;
    }
    if (result_.steps.empty()) {
      throw InputError({traces_.back().path, 0, ""}, "",
                       "has no step that all others have too, by ProfilerStep#N",
                       "traces of the same steps of one training");
    }
    for (const RankTrace& trace : traces_) {
      std::vector<int>& own = place_of_.emplace_back();
      for (const RankStep& step : trace.steps) {
        const auto it = places.find(step.number);
        own.push_back(it == places.end() ? -1 : it->second);
      }
    }
  }

  // The step of all ranks that a rank's call is in; -1: none.
  int PlaceOf(std::size_t rank, const RankCollective& call) const {
    return call.step < 0 ? -1 : place_of_[rank][static_cast<std::size_t>(call.step)];
  }

  void MeasureSteps() {
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      std::vector<RankTimes>& steps = result_.ranks[rank].steps;
      steps.resize(result_.steps.size());
      for (std::size_t i = 0; i < traces_[rank].steps.size(); ++i) {
        const RankStep& step = traces_[rank].steps[i];
        if (place_of_[rank][i] < 0) continue;
        RankTimes& times = steps[static_cast<std::size_t>(place_of_[rank][i])];
        times.step = SecondsOf(step.time());
        times.computing = SecondsOf(step.computing);
        times.communication = SecondsOf(step.communication);
        times.exposed = SecondsOf(step.exposed);
        times.hidden = SecondsOf(step.communication - step.exposed);
        times.copying = SecondsOf(step.copying);
        times.idle = SecondsOf(step.time() - step.computing - step.exposed - step.copying);
      }
    }
  }

  // ---- Classes of calls.

  int SizeOf(const RankCollective& call) const {
    return call.group_size > 0 ? call.group_size : result_.world_size;
  }

  void ClassifyCalls() {
    using Key = std::tuple<CollectiveCall, std::string, std::optional<std::int64_t>, int>;
    std::map<Key, std::size_t> numbers;
    std::vector<std::set<std::size_t>> takers;
    class_of_.resize(traces_.size());
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      const RankTrace& trace = traces_[rank];
      class_of_[rank].resize(trace.collectives.size());
      for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const RankCollective& call = trace.collectives[i];
        if (PlaceOf(rank, call) < 0) continue;
        ++result_.ranks[rank].collectives;
        result_.queued = result_.queued || call.queued;
        const std::string type =
            call.type < 0 ? "" : trace.types[static_cast<std::size_t>(call.type)];
        const auto [it, fresh] =
            numbers.try_emplace(Key{call.kind, type, call.bytes, SizeOf(call)}, numbers.size());
        if (fresh) {
          CollectiveClass& own = result_.classes.emplace_back();
          own.call = call.kind;
          own.type = type;
          if (call.bytes) own.bytes = static_cast<double>(*call.bytes);
          own.ranks = SizeOf(call);
          takers.emplace_back();
        }
        if (call.group_size == 0) result_.groups_are_taken = true;
        CollectiveClass& own = result_.classes[it->second];
        ++own.calls;
        own.time_s += SecondsOf(call.duration());
        own.exposed_s += SecondsOf(call.exposed);
        takers[it->second].insert(rank);
        class_of_[rank][i] = it->second;
      }
    }
    for (std::size_t i = 0; i < result_.classes.size(); ++i) {
      CollectiveClass& own = result_.classes[i];
      own.calls_per_step = static_cast<double>(own.calls) /
                           static_cast<double>(takers[i].size() * result_.steps.size());
    }
  }

  // ---- The same call on several ranks.

  struct Member {
    std::size_t rank = 0;  // of traces_
    std::size_t call = 0;
  };
  using Members = std::vector<Member>;  // calls of one step and group, each rank's in its order

  // Calls that could meet: of one step and one group.
  struct Meeting {
    int step = 0;
    RankGroup group;
    int size = 0;
    bool queued = false;
    bool operator<(const Meeting& other) const {
      if (step != other.step) return step < other.step;
      if (size != other.size) return size < other.size;
      if (queued != other.queued) return queued < other.queued;
      return group < other.group;
    }
  };

  const RankCollective& Call(const Member& member) const {
    return traces_[member.rank].collectives[member.call];
  }

  void CompareCalls() {
    if (traces_.size() < 2) return;
    std::map<Meeting, std::vector<Members>> meetings;  // of each group, by those of its ranks
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      const RankTrace& trace = traces_[rank];
      for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const RankCollective& call = trace.collectives[i];
        const int step = PlaceOf(rank, call);
        if (step < 0 || IsPointToPoint(call.kind)) continue;
        Meeting meeting{step, {}, SizeOf(call), call.queued};
        if (call.group >= 0) meeting.group = trace.groups[static_cast<std::size_t>(call.group)];
        std::vector<Members>& all = meetings[meeting];
        if (all.empty() || all.back().front().rank != rank) all.emplace_back();
        all.back().push_back({rank, i});
      }
    }
    for (const auto& [meeting, ranks] : meetings) CompareMeeting(meeting, ranks);
    MeasureWaits();
  }

  void NotCompared(const std::vector<Members>& ranks, const std::string& why) {
    std::int64_t calls = 0;
    for (const Members& members : ranks) {
      calls += std::count_if(members.begin(), members.end(),
                             [&](const Member& m) { return IsSynchronous(Call(m).kind); });
    }
    if (calls > 0) result_.not_compared[why] += calls;
  }

  void CompareMeeting(const Meeting& meeting, const std::vector<Members>& ranks) {
    // Of a part of the world whose ranks are not told, who meets whom is not known.
    const bool named = !meeting.group.name.empty() || !meeting.group.members.empty();
    if (!named && meeting.size != result_.world_size) {
      NotCompared(ranks, "of groups that are not told");
      return;
    }
    if (ranks.size() > static_cast<std::size_t>(meeting.size)) {
      NotCompared(ranks, "of more ranks than their group has");
      return;
    }
    if (ranks.size() < 2) {
      NotCompared(ranks, "of which one trace alone tells");
      return;
    }
    const auto numbered = [&](const Members& members) {
      std::set<std::int64_t> numbers;
      return std::all_of(members.begin(), members.end(), [&](const Member& m) {
        return Call(m).number >= 0 && numbers.insert(Call(m).number).second;
      });
    };
    if (std::all_of(ranks.begin(), ranks.end(), numbered)) {
      std::map<std::int64_t, Members> calls;
      for (const Members& members : ranks) {
        for (const Member& m : members) calls[Call(m).number].push_back(m);
      }
      for (const auto& [number, members] : calls) CompareCall(meeting, ranks.size(), members);
      return;
    }
    if (!result_.marked) {
      NotCompared(ranks, "of traces without marks of steps, whose order tells nothing");
      return;
    }
    if (std::any_of(ranks.begin(), ranks.end(),
                    [&](const Members& m) { return m.size() != ranks.front().size(); })) {
      NotCompared(ranks, "of steps in which ranks have unlike numbers of calls");
      return;
    }
    for (std::size_t i = 0; i < ranks.front().size(); ++i) {
      Members members;
      for (const Members& own : ranks) members.push_back(own[i]);
      CompareCall(meeting, ranks.size(), members);
    }
  }

  void CompareCall(const Meeting& meeting, std::size_t ranks, const Members& members) {
    const RankCollective& first = Call(members.front());
    if (std::any_of(members.begin(), members.end(), [&](const Member& m) {
          return Call(m).kind != first.kind || Call(m).bytes != first.bytes;
        })) {
      NotCompared({members}, "that differ between ranks");
      return;
    }
    if (!IsSynchronous(first.kind)) return;
    if (members.size() < ranks) {
      NotCompared({members}, "that some of the group's traces lack");
      return;
    }
    if (members.size() < static_cast<std::size_t>(meeting.size)) ++result_.compared_in_part;
    const auto shortest = std::min_element(
        members.begin(), members.end(),
        [&](const Member& a, const Member& b) { return Call(a).duration() < Call(b).duration(); });
    const std::int64_t transfer = Call(*shortest).duration();
    const auto as_short = std::count_if(members.begin(), members.end(), [&](const Member& m) {
      return Call(m).duration() == transfer;
    });
    for (const Member& m : members) {
      const RankCollective& call = Call(m);
      waits_[{m.rank, meeting.step}].Add(call.begin, call.end - transfer);
      ++result_.ranks[m.rank].compared;
      if (as_short > 1 || m.rank == shortest->rank) continue;
      waits_for_[{shortest->rank, meeting.step}][m.rank].Add(call.begin, call.end - transfer);
    }
    CollectiveClass& own = result_.classes[class_of_[shortest->rank][shortest->call]];
    ++own.compared;
    own.transfer_s = own.transfer_s.value_or(0) + SecondsOf(transfer);
    if (as_short == 1) ++result_.ranks[shortest->rank].came_last;  // else nobody did
  }

  static double SecondsIn(KinetoSpans* spans) {
    spans->Merge();
    return SecondsOf(spans->length());
  }

  void MeasureWaits() {
    for (auto& [whose, spans] : waits_) {
      TimesOf(whose.first, whose.second).waits = SecondsIn(&spans);
    }
    for (auto& [whose, others] : waits_for_) {
      double sum = 0;
      for (auto& [rank, spans] : others) sum += SecondsIn(&spans);
      TimesOf(whose.first, whose.second).waited_for = sum / static_cast<double>(others.size());
    }
  }

  RankTimes& TimesOf(std::size_t rank, int step) {
    return result_.ranks[rank].steps[static_cast<std::size_t>(step)];
  }

  // ---- Means.

  void FinishClasses() {
    for (CollectiveClass& own : result_.classes) {
      own.time_s /= static_cast<double>(own.calls);
      own.exposed_s /= static_cast<double>(own.calls);
      if (own.transfer_s) *own.transfer_s /= static_cast<double>(own.compared);
      const auto factor = BusFactor(own.call, own.ranks);
      const double time = own.transfer_s.value_or(own.time_s);
      if (factor && own.bytes && *own.bytes > 0 && time > 0) {
        own.bus_bytes_per_s = *factor * *own.bytes / time;
      }
    }
  }

  void FinishMeans() {
    const auto ranks = static_cast<double>(result_.ranks.size());
    const auto steps = static_cast<double>(result_.steps.size());
    for (RankOfTraining& rank : result_.ranks) {
      for (std::size_t i = 0; i < rank.steps.size(); ++i) {
        rank.mean += rank.steps[i];
        result_.steps[i].mean += rank.steps[i];
      }
      rank.mean /= steps;
    }
    for (std::size_t i = 0; i < result_.steps.size(); ++i) {
      StepOfTraining& step = result_.steps[i];
      const auto last = std::max_element(result_.ranks.begin(), result_.ranks.end(),
                                         [&](const RankOfTraining& a, const RankOfTraining& b) {
                                           return a.steps[i].waited_for < b.steps[i].waited_for;
                                         });
      if (last->steps[i].waited_for > 0) step.last = last->rank;
      step.mean /= ranks;
      result_.mean += step.mean;
    }
    result_.mean /= steps;
  }

  std::vector<RankTrace> traces_;
  std::vector<std::vector<int>> place_of_;          // of a rank's steps among those of all
  std::vector<std::vector<std::size_t>> class_of_;  // of a rank's calls
  using RankInStep = std::pair<std::size_t, int>;
  std::map<RankInStep, KinetoSpans> waits_;
  // When others wait for a rank, by whom: all that it kept waiting.
  std::map<RankInStep, std::map<std::size_t, KinetoSpans>> waits_for_;
  TrainingRanks result_;
};

}  // namespace

RankTimes& RankTimes::operator+=(const RankTimes& other) {
  for (double RankTimes::*part : kRankParts) this->*part += other.*part;
  return *this;
}

RankTimes& RankTimes::operator/=(double count) {
  for (double RankTimes::*part : kRankParts) this->*part /= count;
  return *this;
}

TrainingRanks ImportKinetoRanks(const std::vector<std::string>& paths) {
  std::vector<RankTrace> traces;
  traces.reserve(paths.size());
  for (const std::string& path : paths) traces.push_back(ReadRankTrace(path));
  return RanksImporter(std::move(traces)).Import();
}

void MeasureRun(const TrainingRanks& training, int marks, Run* run) {
  const std::string& path = training.ranks.front().path;
  if (!training.marked) {
    throw InputError({path, 0, ""}, "", "marks no steps, so that no run can be written",
                     "ProfilerStep#N, as a schedule and profiler.step() mark them");
  }
  const double step = training.mean.step * marks;
  run->step_time = Seconds(step);
  // Both are means of the same steps: that of the part may be rounded above that of the whole.
  run->exposed_sync = Seconds(std::min(training.mean.exposed * marks, step));
  const std::size_t count = training.steps.size();
  if (marks == 1 && count >= kStepsForQuantiles) {
    std::vector<double> times;
    for (const StepOfTraining& own : training.steps) times.push_back(own.mean.step);
    std::sort(times.begin(), times.end());
    run->spread.p50 = Seconds(Quantile(times, 0.5));
    run->spread.p95 = Seconds(Quantile(times, 0.95));
    run->spread.p99 = Seconds(Quantile(times, 0.99));
  }
  run->source = fmt::format("PyTorch's profiler on {} of {} ranks, {} marked step{} from {} on",
                            training.ranks.size(), training.world_size, count,
                            count == 1 ? "" : "s", training.steps.front().number);
  run->extra_columns = std::make_shared<const std::vector<std::string>>(1, "measured_steps");
  run->extra = {fmt::format("{:.6g}", static_cast<double>(count) / marks)};
  run->place = {path, 0, ""};
  if (!kStepTimes.Holds(step)) {
    throw InputError({path, 0, "step_time_s"}, fmt::format("{:.6g}", step), "is out of range",
                     kStepTimes.Text());
  }
}

}  // namespace stepcast
