#include "microbench/steps/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "microbench/network/protocol.h"
#include "microbench/network/token.h"

namespace stepcast::steps {

using network::Deadline;
using network::Message;
using network::NetworkError;

double TrainingTimes::CycleOf(std::size_t worker) const {
  double all_s = 0;
  for (const TimedStep& step : workers[worker]) all_s += step.step_s;
  return all_s / static_cast<double>(workers[worker].size());
}

std::vector<double> TrainingTimes::Means(double TimedStep::*part) const {
  std::vector<double> means(steps(), 0);
  double paces = 0;
  for (std::size_t k = 0; k < workers.size(); ++k) {
    const double pace = 1 / CycleOf(k);
    paces += pace;
    for (std::size_t i = 0; i < means.size(); ++i) means[i] += workers[k][i].*part * pace;
  }
  for (double& mean : means) mean /= paces;
  return means;
}

std::vector<double> TrainingTimes::Longest(double TimedStep::*part) const {
  std::vector<double> longest(steps(), 0);
  for (const std::vector<TimedStep>& worker : workers) {
    for (std::size_t i = 0; i < longest.size(); ++i) {
      longest[i] = std::max(longest[i], worker[i].*part);
    }
  }
  return longest;
}

namespace {

// One training, from the work that each host is told of to the last step that a worker tells.
class HeardTraining {
 public:
  // All must outlive it; `deadline` is the session's.
  HeardTraining(network::Members* members, const Training& training, const Cast& cast,
                const std::function<void(std::size_t steps)>& progress, const Deadline& deadline)
      : members_(*members),
        training_(training),
        cast_(cast),
        progress_(progress),
        workers_(static_cast<int>(cast.workers.size())),
        waiting_(training.servers ? training.servers->count : workers_),
        ports_(static_cast<std::size_t>(workers_) *
               static_cast<std::size_t>(training.servers ? waiting_ : workers_ - 1)),
        taking_part_(cast.workers.begin(), cast.workers.end()),
        // The workers' own hosts end them sooner.
        deadline_(deadline.AtMost(training.longest_s() + kStartS + network::kGraceS)) {
    taking_part_.insert(cast.servers.begin(), cast.servers.end());
    times_.workers.resize(cast.workers.size());
    times_.bucket_s.assign(training.buckets.size(), 0);
  }

  TrainingTimes Measure(int hosts) {
    for (const int rank : taking_part_) {
      if (!members_.Takes(rank) && times_.problem.empty()) {
        times_.problem = members_.ProblemOf(rank);
      }
    }
    if (!times_.problem.empty()) return times_;
    SayWork(hosts);
    HearAll();
    MissSilent();
    CutToWholeSteps();
    return times_;
  }

 private:
  void Fail(const std::string& why) {
    if (!times_.problem.empty()) return;
    times_.problem = why;
    for (const int other : running_) members_.Say(other, Message(kStop));
    deadline_ = deadline_.AtMost(network::kGraceS);
  }

  void SayWork(int hosts) {
    Work work;
    work.ranks = cast_.workers;
    work.server_ranks = cast_.servers;
    if (training_.servers) work.word = network::RandomWord();
    for (int rank = 0; rank < hosts; ++rank) {
      if (taking_part_.count(rank) == 0) {
        members_.Say(rank, Message(kRest).Set("limit", training_.longest_s()));
        continue;
      }
      work.rank = rank;
      work.training = TrainingOf(training_, work.worker(), workers_);
      for (const Message& message : WorkMessages(work)) members_.Say(rank, message);
    }
    running_ = taking_part_;
  }

  void HearAll() {
    while (!running_.empty() && !deadline_.over()) {
      bool idle = true;
      for (const int rank : taking_part_) {
        if (running_.count(rank) == 0) continue;
        try {
          const auto told = members_.HearNow(rank);
          if (told) Hear(rank, *told);
          idle = idle && !told && members_.Takes(rank);
        } catch (const NetworkError& e) {
          members_.Lose(rank, std::string("it ") + e.what());
        }
        if (members_.Takes(rank)) continue;
        running_.erase(rank);
        Fail(members_.ProblemOf(rank));
      }
      if (idle) members_.WaitForWord({running_.begin(), running_.end()});
    }
  }

  void Hear(int rank, const Message& told) {
    if (told.verb() == kDone || told.verb() == kFailed) {
      running_.erase(rank);
      if (told.verb() == kFailed) {
        Fail(members_.Name(rank) + ": " + network::PlainText(told, "why"));
      }
      return;
    }
    if (told.verb() == kListens) return HearPort(rank, told);
    const std::vector<int>& ranks = cast_.workers;
    const auto worker =
        static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    if (worker == ranks.size()) throw NetworkError("sent steps, but has no worker");
    if (told.verb() == kTimed) {
      HearStep(worker, told);
    } else {
      HearBucket(told);
    }
  }

  // Each worker is told where others wait for it, once all listen: before the first connects.
  void HearPort(int rank, const Message& told) {
    const Listening& last = listening_.emplace_back(ReadListening(told, waiting_, workers_));
    const std::vector<int>& from = training_.servers ? cast_.servers : cast_.workers;
    const bool is_own = from[static_cast<std::size_t>(last.from)] == rank;
    if (!is_own || (!training_.servers && last.to == last.from) || listening_.size() > ports_) {
      throw NetworkError("told of a port that nobody asked for");
    }
    if (listening_.size() < ports_) return;
    for (const Listening& one : listening_) {
      members_.Say(cast_.workers[static_cast<std::size_t>(one.to)], ListeningMessage(one));
    }
  }

  void HearStep(std::size_t worker, const Message& told) {
    std::vector<TimedStep>& steps = times_.workers[worker];
    if (steps.size() >= static_cast<std::size_t>(training_.steps)) {
      throw NetworkError("sent more steps than were asked for");
    }
    steps.push_back(ReadTimed(told));
    const auto least = std::min_element(
        times_.workers.begin(), times_.workers.end(),
        [](const auto& one, const auto& other) { return one.size() < other.size(); });
    if (progress_ && least->size() == steps.size()) progress_(least->size());
  }

  void HearBucket(const Message& told) {
    std::vector<double> own(times_.bucket_s.size(), 0);
    TakeBucketTime(told, &own);
    for (std::size_t k = 0; k < own.size(); ++k) {
      times_.bucket_s[k] = std::max(times_.bucket_s[k], own[k]);
    }
  }

  // Who says nothing by now would be taken for the worker of another run.
  void MissSilent() {
    if (deadline_.stopped()) {
      if (times_.problem.empty()) times_.problem = "interrupted";
      return;
    }
    for (const int rank : running_) {
      members_.Lose(rank, "its worker did not end in time");
      if (times_.problem.empty()) times_.problem = members_.ProblemOf(rank);
    }
  }

  void CutToWholeSteps() {
    std::size_t whole = times_.steps();
    for (const auto& worker : times_.workers) whole = std::min(whole, worker.size());
    for (auto& worker : times_.workers) worker.resize(whole);
  }

  network::Members& members_;
  const Training& training_;
  const Cast& cast_;
  const std::function<void(std::size_t steps)>& progress_;
  const int workers_;
  const int waiting_;        // at whose ports a worker may be waited for
  const std::size_t ports_;  // that are told of, in all
  std::set<int> taking_part_;
  std::set<int> running_;
  Deadline deadline_;
  std::vector<Listening> listening_;
  TrainingTimes times_;
};

}  // namespace

TrainingTimes Session::Measure(const Training& training, const Cast& cast,
                               const std::function<void(std::size_t steps)>& progress) {
  return HeardTraining(&members_, training, cast, progress, options_.deadline)
      .Measure(static_cast<int>(hosts_.size()));
}

std::string Session::Ask(const char* verb, const Conditions& conditions) {
  constexpr double kShapeS = 30;  // the guard of a host gives each of its commands a third of it
  const auto hosts = static_cast<int>(hosts_.size());
  const Message message = ConditionsMessage(verb, conditions);
  for (int rank = 0; rank < hosts; ++rank) members_.Say(rank, message);
  const Deadline deadline = options_.deadline.AtMost(kShapeS);
  std::string problem;
  const auto note = [&](const std::string& why) {
    if (problem.empty()) problem = why;
  };
  for (int rank = 0; rank < hosts; ++rank) {
    if (!members_.Takes(rank)) continue;
    try {
      const std::optional<Message> told = members_.Hear(rank, deadline);
      if (deadline.stopped()) return "interrupted";
      if (!told) {
        note(members_.ProblemOf(rank));
      } else if (told->verb() == kFailed) {
        note(members_.Name(rank) + ": " + network::PlainText(*told, "why"));
      } else if (told->verb() != kShaped) {
        throw NetworkError("sent what is no answer");
      } else if (told->Integer(kReceives, 0, 1) == 0) {
        sending_only_.insert(members_.Name(rank));
      }
    } catch (const NetworkError& e) {
      members_.Lose(rank, std::string("it ") + e.what());
      note(members_.ProblemOf(rank));
    }
  }
  return problem;
}

void Session::End(const std::string& problem) { members_.End(problem, network::kGraceS); }

void LeadSession(const network::MeetingOptions& options, const Programs& programs,
                 const network::Absent& absent, const std::function<void(Session*)>& lead,
                 const std::string& shaped) {
  network::Lead(
      options,
      [&](const network::AgentOptions& agent, network::Door* door) {
        RunAgent(agent, programs, door, shaped);
      },
      [&](network::Door* door) {
        Session session(options);
        session.Gather(door, absent);
        lead(&session);
        session.End(options.deadline.stopped() ? "interrupted" : "");
      });
}

}  // namespace stepcast::steps
