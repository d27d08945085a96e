#include "predictor/shared_link.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "model/network/sharing.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"

namespace stepcast {

namespace {

Plan Beside(Plan plan, double others) {
  plan.link.others = others;
  return plan;
}

// How many times as long the nodes' links take for a byte beside traffic of no job, where so many
// other jobs are on them.
double LongerBeside(const SharingJob& job, double others) {
  if (job.predictor->Facts(job.plan).link.background.value_or(DataRate<>()).si() == 0) return 1;
  const auto rate_beside = [&](const std::optional<DataRate<>>& background) {
    Plan plan = Beside(job.plan, others);
    if (background) plan.link.background = background;
    return job.predictor->Terms(plan).node_path.path.bandwidth;
  };
  const DataRate<> left = rate_beside({});
  return left.si() > 0 ? rate_beside(DataRate<>()) / left : 1;
}

StepTime<double> StepBeside(const SharingJob& job, double others) {
  return job.predictor->PredictStep(Beside(job.plan, others));
}

// The time in which the fullest of the nodes' links carries what a step sends in a direction,
// beside so many other exchanges on it.
Duration<> CarryingBeside(const SharingJob& job, double others) {
  const bool asynchronous = TraitsOf(job.plan.strategy).asynchronous();
  // Elsewhere both directions are full at the same time.
  const bool apart = UsesServers(job.plan.strategy) && !job.plan.server.colocated;
  if (!asynchronous && !apart) return StepBeside(job, others).synchronisation;
  const StepTerms<double> terms = job.predictor->Terms(Beside(job.plan, others));
  // Synchronous workers have one direction after the other, which a network that adds up or copies
  // keeps shorter than the other one.
  if (!asynchronous) return Max(terms.server_times.push, terms.server_times.pull);
  // Asynchronous ones push and pull at the same time, and a cycle has their queues in it.
  return terms.async.cycle * std::max(terms.async.worker_link, terms.async.server_link);
}

// The same of a link at its rate: what that time grows by with each other exchange on it, where
// those are so many that nothing else counts, nor traffic of no job.
Duration<> TimeOnLink(const SharingJob& job) {
  constexpr double kCrowd = kMostOthers;
  return (CarryingBeside(job, kCrowd) - CarryingBeside(job, kCrowd / 2)) / (kCrowd / 2);
}

struct Alone {
  Duration<> step;
  Duration<> on_link;
  double longer = 1;  // beside other traffic

  double busy() const { return std::clamp(on_link / step * longer, 0.0, 1.0); }
};

Alone AloneOnLink(const SharingJob& job) {
  return {StepBeside(job, 0).total(), TimeOnLink(job), LongerBeside(job, 0)};
}

bool CoreBinds(const SharingJob& job) {
  return IsOversubscribed(job.predictor->Facts(job.plan).link) &&
         job.predictor->Terms(job.plan).node_path.shape.core.binds;
}

// The jobs on a link by their places, in order.
using OnLink = std::vector<std::size_t>;

// The links that several jobs are on, each crowd once: those of hosts, and the uplinks.
std::set<OnLink> LinksInCommon(const std::vector<SharingJob>& jobs) {
  std::map<std::string_view, OnLink> of_hosts;
  OnLink anywhere;
  OnLink uplinks;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].plan.hosts.empty()) anywhere.push_back(i);
    for (const std::string& host : jobs[i].plan.hosts) {
      OnLink& link = of_hosts[host];
      if (link.empty() || link.back() != i) link.push_back(i);
    }
    if (CoreBinds(jobs[i])) uplinks.push_back(i);
  }
  std::set<OnLink> links;
  const auto add = [&](const OnLink& link) {
    if (link.size() > 1) links.insert(link);
  };
  for (const auto& [host, named] : of_hosts) {
    OnLink link;
    std::merge(named.begin(), named.end(), anywhere.begin(), anywhere.end(),
               std::back_inserter(link));
    add(link);
  }
  add(anywhere);
  add(uplinks);
  return links;
}

// The jobs in groups, of which none has a link in common with another.
std::vector<OnLink> GroupsOf(const std::set<OnLink>& links, std::size_t jobs) {
  std::vector<std::size_t> group(jobs);
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (const OnLink& link : links) {
    for (const std::size_t i : link) {
      const std::size_t old = group[i];
      std::replace(group.begin(), group.end(), old, std::size_t{group[link[0]]});
    }
  }
  std::map<std::size_t, OnLink> members;
  for (std::size_t i = 0; i < jobs; ++i) members[group[i]].push_back(i);
  std::vector<OnLink> groups;
  for (const auto& [name, of_group] : members) groups.push_back(of_group);
  return groups;
}

}  // namespace

BusyLink LinkBusy(const Predictor& predictor, const Plan& plan) {
  const SharingJob job{&predictor, plan};
  return {AloneOnLink(job).busy(), CoreBinds(job)};
}

std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs) {
  std::vector<Alone> alone;
  std::vector<SharedJob> shared;
  for (const SharingJob& job : jobs) {
    alone.push_back(AloneOnLink(job));
    shared.push_back({alone.back().busy(), 0, alone.back().step, {}, 0, alone.back().busy()});
  }
  const std::set<OnLink> links = LinksInCommon(jobs);
  std::vector<double> most(jobs.size());  // that o may be
  for (const OnLink& link : links) {
    double together = 0;
    for (const std::size_t i : link) together += alone[i].busy();
    for (const std::size_t i : link) {
      std::vector<double> shares;
      for (const std::size_t j : link) {
        if (j != i) shares.push_back(alone[j].busy());
      }
      SharedJob& job = shared[i];
      job.others = std::max(job.others, OthersOnLink<double>(std::span<const double>(shares)));
      most[i] = std::max(most[i], static_cast<double>(shares.size()));
      if (together > job.together || job.met == 0) {
        job.together = together;
        job.met = static_cast<int>(shares.size());
      }
    }
  }
  for (const OnLink& group : GroupsOf(links, jobs.size())) {
    // With each o of the group grown by `share` of what is left to the most that it may be.
    const auto grown = [&](double share) {
      std::vector<SharedJob> beside = shared;
      for (const std::size_t i : group) {
        beside[i].others += share * (most[i] - beside[i].others);
        beside[i].beside = StepBeside(jobs[i], beside[i].others).total();
      }
      return beside;
    };
    const auto is_too_much = [&](const std::vector<SharedJob>& beside) {
      return std::any_of(links.begin(), links.end(), [&](const OnLink& link) {
        if (!std::binary_search(group.begin(), group.end(), link[0])) return false;
        double sent = 0;
        for (const std::size_t i : link) {
          sent += alone[i].on_link / beside[i].beside * LongerBeside(jobs[i], beside[i].others);
        }
        return sent > 1;
      });
    };
    // The least growth at which every link carries it all.
    double enough = 0;
    if (is_too_much(grown(0))) {
      double too_little = 0;
      enough = 1;
      constexpr int kHalvings = 30;
      for (int i = 0; i < kHalvings; ++i) {
        const double middle = (too_little + enough) / 2;
        (is_too_much(grown(middle)) ? too_little : enough) = middle;
      }
    }
    shared = grown(enough);
  }
  return shared;
}

}  // namespace stepcast
