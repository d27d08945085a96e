#include "predictor/shared_link.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "data/plan/limits.h"
#include "model/network/sharing.h"

namespace stepcast {

namespace {

StepTime<double> StepBeside(const SharingJob& job, double others) {
  Plan plan = job.plan;
  plan.link.others = others;
  return job.predictor->PredictStep(plan);
}

// The time in which the fullest of the nodes' links, at its rate, carries what a step sends in a
// direction: what an exchange grows by with each other one on them, where those are so many that
// nothing else counts.
Duration<> TimeOnLink(const SharingJob& job) {
  constexpr double kCrowd = kMostOthers;
  const Duration<> grows =
      StepBeside(job, kCrowd).synchronisation - StepBeside(job, kCrowd / 2).synchronisation;
  // Those who push and then pull have one direction after the other.
  const bool in_turn = UsesServers(job.plan.strategy) && !job.plan.server.colocated;
  return grows / (kCrowd / 2) / (in_turn ? 2.0 : 1.0);
}

struct Alone {
  Duration<> step;
  Duration<> on_link;

  double busy() const { return std::clamp(on_link / step, 0.0, 1.0); }
};

Alone AloneOnLink(const SharingJob& job) { return {StepBeside(job, 0).total(), TimeOnLink(job)}; }

// The steps where each o has grown by `share` of what is left to that of all others always there.
std::vector<Duration<>> StepsBeside(const std::vector<SharingJob>& jobs,
                                    const std::vector<SharedJob>& shared, double share) {
  const auto most = static_cast<double>(jobs.size() - 1);
  std::vector<Duration<>> steps;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double others = shared[i].others + share * (most - shared[i].others);
    steps.push_back(StepBeside(jobs[i], others).total());
  }
  return steps;
}

}  // namespace

double LinkBusy(const Predictor& predictor, const Plan& plan) {
  return AloneOnLink({&predictor, plan}).busy();
}

std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs) {
  std::vector<Alone> alone;
  for (const SharingJob& job : jobs) alone.push_back(AloneOnLink(job));
  std::vector<SharedJob> shared(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) shares.push_back(alone[j].busy());
    }
    shared[i] = {
        alone[i].busy(), OthersOnLink<double>(std::span<const double>(shares)), alone[i].step, {}};
  }
  const auto sent = [&](const std::vector<Duration<>>& steps) {
    double sum = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) sum += alone[i].on_link / steps[i];
    return sum;
  };
  // The least growth at which the link carries it all.
  double share = 0;
  if (sent(StepsBeside(jobs, shared, 0)) > 1) {
    double too_little = 0;
    share = 1;
    constexpr int kHalvings = 30;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (too_little + share) / 2;
      (sent(StepsBeside(jobs, shared, middle)) > 1 ? too_little : share) = middle;
    }
  }
  const std::vector<Duration<>> steps = StepsBeside(jobs, shared, share);
  const auto most = static_cast<double>(jobs.size() - 1);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    shared[i].others += share * (most - shared[i].others);
    shared[i].beside = steps[i];
  }
  return shared;
}

}  // namespace stepcast
