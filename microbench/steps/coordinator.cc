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

TrainingTimes Session::Measure(const Training& training, const Cast& cast,
                               const std::function<void(std::size_t steps)>& progress) {
  TrainingTimes times;
  const std::vector<int>& ranks = cast.workers;
  const auto workers = static_cast<int>(ranks.size());
  times.workers.resize(ranks.size());
  times.bucket_s.assign(training.buckets.size(), 0);
  const std::set<int> taking_part = [&] {
    std::set<int> all(ranks.begin(), ranks.end());
    all.insert(cast.servers.begin(), cast.servers.end());
    return all;
  }();
  std::set<int> running;
  // The workers' own hosts end them sooner.
  Deadline deadline = options_.deadline.AtMost(training.longest_s() + kStartS + network::kGraceS);
  const auto fail = [&](const std::string& why) {
    if (!times.problem.empty()) return;
    times.problem = why;
    for (const int other : running) members_.Say(other, Message(kStop));
    deadline = deadline.AtMost(network::kGraceS);
  };
  for (const int rank : taking_part) {
    if (!members_.Takes(rank) && times.problem.empty()) times.problem = members_.ProblemOf(rank);
  }
  if (!times.problem.empty()) return times;
  Work work;
  work.ranks = ranks;
  work.server_ranks = cast.servers;
  if (training.servers) work.word = network::RandomWord();
  for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank) {
    if (taking_part.count(rank) == 0) {
      members_.Say(rank, Message(kRest).Set("limit", training.longest_s()));
      continue;
    }
    work.rank = rank;
    work.training = TrainingOf(training, work.worker(), workers);
    for (const Message& message : WorkMessages(work)) members_.Say(rank, message);
  }
  running = taking_part;
  // Each worker is told where others wait for it.
  const int waiting = training.servers ? training.servers->count : workers;
  const std::size_t ports = static_cast<std::size_t>(workers) *
                            static_cast<std::size_t>(training.servers ? waiting : workers - 1);
  std::vector<Listening> listening;
  const auto hear_port = [&](int rank, const Message& told) {
    const Listening& last = listening.emplace_back(ReadListening(told, waiting, workers));
    const std::vector<int>& from = training.servers ? cast.servers : ranks;
    const bool is_own = from[static_cast<std::size_t>(last.from)] == rank;
    if (!is_own || (!training.servers && last.to == last.from) || listening.size() > ports) {
      throw NetworkError("told of a port that nobody asked for");
    }
    // All listen before the first connects.
    if (listening.size() < ports) return;
    for (const Listening& one : listening) {
      members_.Say(ranks[static_cast<std::size_t>(one.to)], ListeningMessage(one));
    }
  };
  const auto hear = [&](int rank, const Message& told) {
    if (told.verb() == kDone || told.verb() == kFailed) {
      running.erase(rank);
      if (told.verb() == kFailed)
        fail(members_.Name(rank) + ": " + network::PlainText(told, "why"));
      return;
    }
    if (told.verb() == kListens) return hear_port(rank, told);
    const auto worker =
        static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
    if (worker == ranks.size()) throw NetworkError("sent steps, but has no worker");
    if (told.verb() == kTimed) {
      std::vector<TimedStep>& steps = times.workers[worker];
      if (steps.size() >= static_cast<std::size_t>(training.steps)) {
        throw NetworkError("sent more steps than were asked for");
      }
      steps.push_back(ReadTimed(told));
      const auto least = std::min_element(
          times.workers.begin(), times.workers.end(),
          [](const auto& one, const auto& other) { return one.size() < other.size(); });
      if (progress && least->size() == steps.size()) progress(least->size());
    } else {
      std::vector<double> own(times.bucket_s.size(), 0);
      TakeBucketTime(told, &own);
      for (std::size_t k = 0; k < own.size(); ++k) {
        times.bucket_s[k] = std::max(times.bucket_s[k], own[k]);
      }
    }
  };
  while (!running.empty() && !deadline.over()) {
    bool idle = true;
    for (const int rank : taking_part) {
      if (running.count(rank) == 0) continue;
      try {
        const auto told = members_.HearNow(rank);
        if (told) hear(rank, *told);
        idle = idle && !told && members_.Takes(rank);
      } catch (const NetworkError& e) {
        members_.Lose(rank, std::string("it ") + e.what());
      }
      if (members_.Takes(rank)) continue;
      running.erase(rank);
      fail(members_.ProblemOf(rank));
    }
    if (idle) members_.WaitForWord({running.begin(), running.end()});
  }
  if (deadline.stopped()) {
    if (times.problem.empty()) times.problem = "interrupted";
  } else {
    // Who says nothing by now would be taken for the worker of another run.
    for (const int rank : running) {
      members_.Lose(rank, "its worker did not end in time");
      if (times.problem.empty()) times.problem = members_.ProblemOf(rank);
    }
  }
  std::size_t whole = times.steps();
  for (const auto& worker : times.workers) whole = std::min(whole, worker.size());
  for (auto& worker : times.workers) worker.resize(whole);
  return times;
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
